#include "schema/json_scan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "schema/json_text.h"

void hf_json_scan_done(struct hf_json_scan *scan)
{
    free(scan->names);
    scan->names = NULL;
}

int hf_json_scan_enter(struct hf_json_scan *scan)
{
    if (scan->depth_left == 0)
        return hf_json_scan_fail(scan, HF_ELIMIT, scan->at, "nested deeper than the limit");
    scan->depth_left--;
    scan->at++;
    return HF_OK;
}

int hf_json_scan_more(struct hf_json_scan *scan, char close, size_t n_before)
{
    char c = hf_json_scan_peek(scan);

    if (c == close) {
        scan->depth_left++;
        scan->at++;
        return 0;
    }
    if (n_before == 0)
        return 1;
    if (c == ',') {
        scan->at++;
        return 1;
    }
    return hf_json_scan_expected(scan, scan->at, close == '}' ? "',' or '}'" : "',' or ']'");
}

int hf_json_scan_member(struct hf_json_scan *scan, struct hf_json_name *ret_name)
{
    int err;

    if (hf_json_scan_peek(scan) != '"')
        return hf_json_scan_expected(scan, scan->at, "a member name");
    ret_name->at = scan->at;
    err = hf_json_scan_text(scan, &ret_name->name);
    if (err != HF_OK)
        return err;
    if (hf_json_scan_peek(scan) != ':')
        return hf_json_scan_expected(scan, scan->at, "':'");
    scan->at++;
    return HF_OK;
}

int hf_json_scan_remember(struct hf_json_scan *scan, const struct hf_json_name *name)
{
    if (!hf_grow(&scan->names, &scan->cap_names, scan->n_names + 1, sizeof *scan->names))
        return hf_json_scan_no_memory(scan);
    scan->names[scan->n_names++] = *name;
    return HF_OK;
}

static int compare_text(struct hf_json_span a, struct hf_json_span b)
{
    int order = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_names(const void *left, const void *right)
{
    const struct hf_json_name *a = left;
    const struct hf_json_name *b = right;
    int order = compare_text(a->name, b->name);

    return order != 0 ? order : (a->at > b->at) - (a->at < b->at);
}

/* Sorting finds them without a quadratic worst case for whoever sends ten thousand names. */
int hf_json_scan_distinct(struct hf_json_scan *scan, size_t first)
{
    const struct hf_json_name *twice = NULL;
    char excerpt[HF_JSON_EXCERPT_SIZE];

    if (scan->n_names - first > 1)
        qsort(scan->names + first, scan->n_names - first, sizeof *scan->names, compare_names);
    for (size_t i = first + 1; i < scan->n_names; i++) {
        const struct hf_json_name *name = &scan->names[i];

        if (compare_text(name[-1].name, name->name) == 0 &&
            (twice == NULL || name->at < twice->at))
            twice = name;
    }
    if (twice != NULL)
        return hf_json_scan_fail(scan, HF_EINVAL, twice->at, "duplicate member \"%s\"",
                                 hf_json_scan_excerpt(twice->name, excerpt));
    scan->n_names = first;
    return HF_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* The four digits of \uXXXX, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t value = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = hex_value(p[i]);

        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool is_high_surrogate(int32_t unit)
{
    return unit >= 0xd800 && unit <= 0xdbff;
}

static bool is_low_surrogate(int32_t unit)
{
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* The character of \uXXXX or of a pair of them at `p`, and the length of the escape; -1 when it
 * is malformed or half of a pair. */
static int32_t unicode_escape(const char *p, const char *end, size_t *ret_len)
{
    int32_t unit = hex4(p + 2, end);
    int32_t low;

    *ret_len = 6;
    if (unit < 0 || is_low_surrogate(unit))
        return -1;
    if (!is_high_surrogate(unit))
        return unit;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u')
        return -1;
    low = hex4(p + 8, end);
    if (!is_low_surrogate(low))
        return -1;
    *ret_len = 12;
    return 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
}

static const char ESCAPES[] = "\"\\/bfnrt";
static const char ESCAPED[] = "\"\\/\b\f\n\r\t";

/* The length of the escape at `at`, or a failure. */
static int check_escape(struct hf_json_scan *scan, struct hf_json_string *string)
{
    const char *p = scan->at;
    int32_t character;
    size_t len;

    if (scan->end - p < 2)
        return hf_json_scan_fail(scan, HF_EINVAL, p, "invalid escape in a string");
    if (p[1] != 'u') {
        if (p[1] == '\0' || strchr(ESCAPES, p[1]) == NULL)
            return hf_json_scan_fail(scan, HF_EINVAL, p, "invalid escape in a string");
        return 2;
    }
    character = unicode_escape(p, scan->end, &len);
    if (character < 0)
        return hf_json_scan_fail(scan, HF_EINVAL, p, "invalid escape in a string");
    if (character == 0)
        string->has_nul = true;
    return (int)len;
}

/* Passes what is not plain ASCII inside a string: an escape or a longer character. */
static int pass_special(struct hf_json_scan *scan, struct hf_json_string *string)
{
    unsigned char c = (unsigned char)*scan->at;
    int len;

    if (c < 0x20)
        return hf_json_scan_fail(scan, HF_EINVAL, scan->at,
                                 "unescaped control character 0x%02x", c);
    if (c == '\\') {
        string->has_escapes = true;
        len = check_escape(scan, string);
        if (len < 0)
            return len;
    } else {
        len = (int)hf_str_utf8_length(scan->at, (size_t)(scan->end - scan->at));
        if (len == 0)
            return hf_json_scan_fail(scan, HF_EINVAL, scan->at, "invalid UTF-8");
    }
    scan->at += len;
    return HF_OK;
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

int hf_json_scan_string(struct hf_json_scan *scan, struct hf_json_string *ret_string)
{
    struct hf_json_string string = { .raw.text = ++scan->at };

    for (;;) {
        int err;

        while (scan->at < scan->end && is_plain(*scan->at))
            scan->at++;
        if (scan->at == scan->end)
            return hf_json_scan_fail(scan, HF_EINVAL, string.raw.text - 1,
                                     "this string does not end");
        if (*scan->at == '"')
            break;
        err = pass_special(scan, &string);
        if (err != HF_OK)
            return err;
    }
    string.raw.len = (size_t)(scan->at++ - string.raw.text);
    *ret_string = string;
    return HF_OK;
}

static char *put_utf8(int32_t character, char *out)
{
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    if (character < 0x800) {
        *out++ = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *out++ = (char)(0xe0 | character >> 12);
        } else {
            *out++ = (char)(0xf0 | character >> 18);
            *out++ = (char)(0x80 | (character >> 12 & 0x3f));
        }
        *out++ = (char)(0x80 | (character >> 6 & 0x3f));
    }
    *out++ = (char)(0x80 | (character & 0x3f));
    return out;
}

char *hf_json_scan_unescape(const struct hf_json_string *string, char *out)
{
    const char *p = string->raw.text;
    const char *end = p + string->raw.len;

    while (p < end) {
        size_t len = 2;

        if (*p != '\\') {
            *out++ = *p++;
            continue;
        }
        if (p[1] == 'u')
            out = put_utf8(unicode_escape(p, end, &len), out);
        else
            *out++ = ESCAPED[strchr(ESCAPES, p[1]) - ESCAPES];
        p += len;
    }
    return out;
}

int hf_json_scan_text(struct hf_json_scan *scan, struct hf_json_span *ret_text)
{
    struct hf_json_string string = { .has_escapes = false };
    char *copy;
    char *end;
    int err = hf_json_scan_string(scan, &string);

    if (err != HF_OK)
        return err;
    if (!string.has_escapes) {
        *ret_text = string.raw;
        return HF_OK;
    }
    copy = hf_json_arena_alloc(scan->arena, string.raw.len, 1);
    if (copy == NULL)
        return hf_json_scan_no_memory(scan);
    end = hf_json_scan_unescape(&string, copy);
    hf_json_arena_trim(scan->arena, end);
    *ret_text = (struct hf_json_span){ .text = copy, .len = (size_t)(end - copy) };
    return HF_OK;
}

int hf_json_scan_number(struct hf_json_scan *scan, struct hf_json_span *ret_text)
{
    size_t len = hf_json_text_number(scan->at, scan->end);

    if (len == 0)
        return hf_json_scan_expected(scan, scan->at, "a number");
    *ret_text = (struct hf_json_span){ .text = scan->at, .len = len };
    scan->at += len;
    return HF_OK;
}

int hf_json_scan_word(struct hf_json_scan *scan, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
        return hf_json_scan_expected(scan, scan->at, "a value");
    scan->at += len;
    return HF_OK;
}

static int skip_object(struct hf_json_scan *scan)
{
    size_t first = scan->n_names;
    struct hf_json_name name;
    size_t n = 0;
    int err = hf_json_scan_enter(scan);

    if (err != HF_OK)
        return err;
    while ((err = hf_json_scan_more(scan, '}', n++)) > 0) {
        err = hf_json_scan_member(scan, &name);
        if (err == HF_OK)
            err = hf_json_scan_remember(scan, &name);
        if (err == HF_OK)
            err = hf_json_scan_skip(scan);
        if (err != HF_OK)
            return err;
    }
    return err != HF_OK ? err : hf_json_scan_distinct(scan, first);
}

static int skip_array(struct hf_json_scan *scan)
{
    size_t n = 0;
    int err = hf_json_scan_enter(scan);

    if (err != HF_OK)
        return err;
    while ((err = hf_json_scan_more(scan, ']', n++)) > 0) {
        err = hf_json_scan_skip(scan);
        if (err != HF_OK)
            return err;
    }
    return err;
}

int hf_json_scan_skip(struct hf_json_scan *scan)
{
    struct hf_json_string string;
    struct hf_json_span number;
    char c = hf_json_scan_peek(scan);

    switch (c) {
    case '{': return skip_object(scan);
    case '[': return skip_array(scan);
    case '"': return hf_json_scan_string(scan, &string);
    case 't': return hf_json_scan_word(scan, "true");
    case 'f': return hf_json_scan_word(scan, "false");
    case 'n': return hf_json_scan_word(scan, "null");
    default:
        if (c == '-' || (c >= '0' && c <= '9'))
            return hf_json_scan_number(scan, &number);
        return hf_json_scan_expected(scan, scan->at, "a value");
    }
}

int hf_json_scan_finish(struct hf_json_scan *scan)
{
    (void)hf_json_scan_peek(scan);
    if (scan->at != scan->end)
        return hf_json_scan_expected(scan, scan->at, "nothing more");
    return HF_OK;
}
