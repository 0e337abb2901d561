#include "client/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "schema/json_scan.h"
#include "schema/json_text.h"

enum { DEPTH_MAX = 32, BLOCK_BYTES = 1024 };

/* Reading. */

static int read_object(struct hf_json_scan *scan, const struct hf_field *fields, size_t count);

/* The characters of the string that comes next, with no NUL among them. */
static int read_text(struct hf_json_scan *scan, struct hf_json_span *ret_text)
{
    const char *at;
    int rc;

    if (hf_json_scan_peek(scan) != '"')
        return hf_json_scan_expected(scan, scan->at, "a string");
    at = scan->at;
    rc = hf_json_scan_text(scan, ret_text);
    if (rc == HF_OK && memchr(ret_text->text, '\0', ret_text->len) != NULL)
        return hf_json_scan_fail(scan, HF_EINVAL, at, "a NUL in a string");
    return rc;
}

static int keep_text(struct hf_json_scan *scan, const struct hf_field *field)
{
    struct hf_json_span text = { "", 0 };
    char *copy, **place = field->place;
    int rc = read_text(scan, &text);

    if (rc != HF_OK)
        return rc;
    copy = hf_memdup(text.text, text.len);
    if (copy == NULL)
        return hf_json_scan_no_memory(scan);
    free(*place);
    *place = copy;
    return HF_OK;
}

static int keep_short(struct hf_json_scan *scan, const struct hf_field *field)
{
    struct hf_json_span text = { "", 0 };
    const char *at = scan->at;
    char *place = field->place;
    int rc = read_text(scan, &text);

    if (rc != HF_OK)
        return rc;
    if (text.len >= field->size && field->kind == HF_FIELD_NAME)
        return hf_json_scan_fail(scan, HF_ELIMIT, at, "longer than %zu bytes", field->size - 1);
    if (text.len >= field->size) {
        text.len = field->size - 1;
        while (text.len > 0 && !hf_str_is_utf8(text.text, text.len))
            text.len--;
    }
    memcpy(place, text.text, text.len);
    place[text.len] = '\0';
    return HF_OK;
}

static int keep_int(struct hf_json_scan *scan, const struct hf_field *field)
{
    bool is_short = field->kind == HF_FIELD_INT32;
    struct hf_json_span text = { "", 0 };
    const char *at = scan->at;
    int64_t value;
    int rc = hf_json_scan_peek(scan) == '"' ? read_text(scan, &text)
                                            : hf_json_scan_number(scan, &text);

    if (rc != HF_OK)
        return rc;
    rc = hf_json_text_parse_int(text.text, text.len, is_short ? INT32_MIN : INT64_MIN,
                                is_short ? INT32_MAX : INT64_MAX, &value);
    if (rc != HF_OK)
        return hf_json_scan_fail(scan, rc, at, "expected an integer");
    if (is_short)
        *(int32_t *)field->place = (int32_t)value;
    else
        *(int64_t *)field->place = value;
    return HF_OK;
}

static int keep_bool(struct hf_json_scan *scan, const struct hf_field *field)
{
    bool value = hf_json_scan_peek(scan) == 't';
    int rc = hf_json_scan_word(scan, value ? "true" : "false");

    if (rc == HF_OK)
        *(bool *)field->place = value;
    return rc;
}

static int keep_time(struct hf_json_scan *scan, const struct hf_field *field)
{
    struct hf_json_span text = { "", 0 };
    const char *at = scan->at;
    int64_t seconds = 0;
    int32_t nanos = 0;
    int rc = read_text(scan, &text);

    if (rc != HF_OK)
        return rc;
    rc = field->kind == HF_FIELD_TIME
             ? hf_json_text_parse_time(text.text, text.len, &seconds, &nanos)
             : hf_json_text_parse_duration(text.text, text.len, &seconds, &nanos);
    if (rc != HF_OK)
        return hf_json_scan_fail(scan, rc, at, "expected a %s",
                                 field->kind == HF_FIELD_TIME ? "time" : "duration");
    *(hf_ms *)field->place = seconds * 1000 + nanos / 1000000;
    return HF_OK;
}

static int read_value(struct hf_json_scan *scan, const struct hf_field *field)
{
    if (hf_json_scan_peek(scan) == 'n')
        return hf_json_scan_word(scan, "null");
    switch (field->kind) {
    case HF_FIELD_TEXT: return keep_text(scan, field);
    case HF_FIELD_CUT:
    case HF_FIELD_NAME: return keep_short(scan, field);
    case HF_FIELD_INT:
    case HF_FIELD_INT32: return keep_int(scan, field);
    case HF_FIELD_BOOL: return keep_bool(scan, field);
    case HF_FIELD_DURATION:
    case HF_FIELD_TIME: return keep_time(scan, field);
    case HF_FIELD_OBJECT: break;
    }
    return read_object(scan, field->inner, field->size);
}

static int read_member(struct hf_json_scan *scan, const struct hf_field *fields, size_t count)
{
    struct hf_json_path here = { .up = scan->path };
    struct hf_json_name name;
    size_t i = 0;
    int rc = hf_json_scan_member(scan, &name);

    if (rc == HF_OK)
        rc = hf_json_scan_remember(scan, &name);
    if (rc != HF_OK)
        return rc;
    while (i < count && (strlen(fields[i].name) != name.name.len ||
                         memcmp(fields[i].name, name.name.text, name.name.len) != 0))
        i++;
    here.field = i < count ? fields[i].name : NULL;
    here.key = name.name.text;
    here.key_len = name.name.len;
    scan->path = &here;
    rc = i < count ? read_value(scan, &fields[i]) : hf_json_scan_skip(scan);
    scan->path = here.up;
    return rc;
}

static int read_object(struct hf_json_scan *scan, const struct hf_field *fields, size_t count)
{
    size_t first = scan->n_names, n = 0;
    int rc;

    if (hf_json_scan_peek(scan) != '{')
        return hf_json_scan_expected(scan, scan->at, "an object");
    rc = hf_json_scan_enter(scan);
    if (rc != HF_OK)
        return rc;
    while ((rc = hf_json_scan_more(scan, '}', n++)) > 0) {
        rc = read_member(scan, fields, count);
        if (rc != HF_OK)
            return rc;
    }
    return rc != HF_OK ? rc : hf_json_scan_distinct(scan, first);
}

int hf_fields_read(const char *text, size_t len, const struct hf_field *fields, size_t count,
                   struct hf_error *err)
{
    struct hf_json_arena arena = { .block_bytes = BLOCK_BYTES };
    struct hf_json_scan scan = { .depth_left = DEPTH_MAX, .arena = &arena, .err = err };
    int rc;

    scan.begin = scan.at = len > 0 ? text : "";
    scan.end = scan.begin + len;
    rc = read_object(&scan, fields, count);
    if (rc == HF_OK)
        rc = hf_json_scan_finish(&scan);
    hf_json_scan_done(&scan);
    hf_json_arena_done(&arena);
    return rc;
}

/* Writing. */

void hf_fields_begin(struct hf_buf *buf)
{
    hf_buf_putc(buf, '{');
}

void hf_fields_end(struct hf_buf *buf)
{
    hf_buf_putc(buf, '}');
}

/* What stands before the value; `name` is a constant that needs no escapes. */
static void put_name(struct hf_buf *buf, const char *name)
{
    bool is_first = buf->len == 0 || buf->data[buf->len - 1] == '{';

    hf_buf_printf(buf, "%s\"%s\":", is_first ? "" : ",", name);
}

void hf_fields_add_text(struct hf_buf *buf, const char *name, const char *text)
{
    if (text == NULL)
        return;
    if (!hf_str_is_utf8(text, strlen(text))) {
        if (buf->err == HF_OK)
            buf->err = HF_EINVAL;
        return;
    }
    put_name(buf, name);
    hf_buf_putc(buf, '"');
    while (*text != '\0') {
        size_t plain = 0;

        while ((unsigned char)text[plain] >= ' ' && text[plain] != '"' && text[plain] != '\\')
            plain++;
        hf_buf_append(buf, text, plain);
        text += plain;
        if (*text != '\0')
            hf_buf_printf(buf, "\\u%04x", (unsigned)(unsigned char)*text++);
    }
    hf_buf_putc(buf, '"');
}

void hf_fields_add_int(struct hf_buf *buf, const char *name, int64_t value)
{
    put_name(buf, name);
    hf_buf_printf(buf, "\"%lld\"", (long long)value);
}

void hf_fields_add_number(struct hf_buf *buf, const char *name, double value)
{
    char text[HF_JSON_DOUBLE_SIZE];
    size_t len = hf_json_text_format_double(value, text);

    put_name(buf, name);
    hf_buf_append(buf, text, len);
}

void hf_fields_add_time(struct hf_buf *buf, const char *name, hf_ms wall)
{
    char text[40];

    (void)hf_format_time(wall, text, sizeof text);
    hf_fields_add_text(buf, name, text);
}

void hf_fields_add_duration(struct hf_buf *buf, const char *name, hf_ms length)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%lld.%03llds", (long long)(length / 1000),
                   (long long)(length % 1000));
    hf_fields_add_text(buf, name, text);
}
