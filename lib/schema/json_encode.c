#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/str.h"
#include "schema/json.h"
#include "schema/json_old.h"
#include "schema/json_text.h"
#include "schema/json_type.h"

struct writer {
    struct hf_buf *out;
    struct hf_json_old *old; /* NULL: nothing is written over */
    bool pretty;
    unsigned level;
    int err; /* sticky, like the buffer's own */
};

static const struct hf_json_span NOTHING;

static void put_message(struct writer *w, const ProtobufCMessage *message,
                        struct hf_json_span old);

static void fail(struct writer *w, int code)
{
    if (w->err == HF_OK)
        w->err = code;
}

/* Begins the next element of an object or array: a comma if it is not the first, a new line if
 * people are to read it. */
static void put_separator(struct writer *w, size_t n_before)
{
    if (n_before > 0)
        hf_buf_putc(w->out, ',');
    if (!w->pretty)
        return;
    hf_buf_putc(w->out, '\n');
    for (unsigned i = 0; i < w->level; i++)
        hf_buf_append(w->out, "    ", 4);
}

/* What is written can be read again: the reader's default limit holds here, too. */
static void open_bracket(struct writer *w, char bracket)
{
    hf_buf_putc(w->out, bracket);
    if (++w->level > HF_JSON_MAX_DEPTH)
        fail(w, HF_ELIMIT);
}

static void close_bracket(struct writer *w, char bracket, size_t n_elements)
{
    w->level--;
    if (n_elements > 0)
        put_separator(w, 0);
    hf_buf_putc(w->out, bracket);
}

static void put_colon(struct writer *w)
{
    hf_buf_append(w->out, ": ", w->pretty ? 2 : 1);
}

static void put_escape(struct writer *w, char c)
{
    static const char HEX[] = "0123456789abcdef";
    static const char SHORT[] = "btn?fr"; /* for 0x08 to 0x0d */
    char text[6] = { '\\', c };
    size_t len = 2;

    if (c >= 0x08 && c <= 0x0d && c != 0x0b) {
        text[1] = SHORT[c - 0x08];
    } else if (c != '"' && c != '\\') {
        text[1] = 'u';
        text[2] = '0';
        text[3] = '0';
        text[4] = HEX[c >> 4 & 15];
        text[5] = HEX[c & 15];
        len = 6;
    }
    hf_buf_append(w->out, text, len);
}

static bool is_plain(char c)
{
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The end of the longest run from `p` that needs no escape; NULL when it is not UTF-8. */
static const char *plain_run(const char *p, const char *end)
{
    while (p < end) {
        size_t len;

        if (is_plain(*p)) {
            p++;
            continue;
        }
        if ((unsigned char)*p < 0x80)
            return p;
        len = hf_str_utf8_length(p, (size_t)(end - p));
        if (len == 0)
            return NULL;
        p += len;
    }
    return p;
}

static void put_string(struct writer *w, struct hf_json_span text)
{
    const char *p = text.text;
    const char *end = p + text.len;

    hf_buf_putc(w->out, '"');
    while (p < end) {
        const char *run = plain_run(p, end);

        if (run == NULL) {
            fail(w, HF_EINVAL);
            return;
        }
        hf_buf_append(w->out, p, (size_t)(run - p));
        if (run < end)
            put_escape(w, *run++);
        p = run;
    }
    hf_buf_putc(w->out, '"');
}

static struct hf_json_span span_of(const char *text)
{
    if (text == NULL) /* not what protobuf-c initialises a string to, but people do */
        text = "";
    return (struct hf_json_span){ .text = text, .len = strlen(text) };
}

static void put_name(struct writer *w, const ProtobufCFieldDescriptor *field)
{
    char *room = hf_buf_reserve(w->out, strlen(field->name) + 2);
    size_t len;

    if (room == NULL)
        return;
    room[0] = '"';
    len = 1 + hf_json_type_name(field->name, room + 1);
    room[len++] = '"';
    w->out->len += len;
    put_colon(w);
}

/* A decimal number, in quotes where JSON readers would round it. */
static void put_integer(struct writer *w, bool negative, uint64_t magnitude, bool quoted)
{
    char text[HF_JSON_INT_SIZE + 3];
    size_t len = 0;

    if (quoted)
        text[len++] = '"';
    if (negative)
        text[len++] = '-';
    len += hf_json_text_format_uint(magnitude, text + len);
    if (quoted)
        text[len++] = '"';
    hf_buf_append(w->out, text, len);
}

static void put_signed(struct writer *w, int64_t value, bool quoted)
{
    put_integer(w, value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, quoted);
}

static void put_real(struct writer *w, double value, bool single)
{
    char text[HF_JSON_DOUBLE_SIZE + 2] = "\"";
    size_t len = single ? hf_json_text_format_float((float)value, text + 1)
                        : hf_json_text_format_double(value, text + 1);

    text[len + 1] = '"';
    if (isfinite(value))
        hf_buf_append(w->out, text + 1, len);
    else
        hf_buf_append(w->out, text, len + 2);
}

static void put_bytes(struct writer *w, const ProtobufCBinaryData *bytes)
{
    char *room;
    size_t len;

    if (bytes->len > SIZE_MAX / 2) {
        fail(w, HF_ELIMIT);
        return;
    }
    len = HF_JSON_BASE64_SIZE(bytes->len);
    room = hf_buf_reserve(w->out, len + 2);
    if (room == NULL)
        return;
    room[0] = '"';
    hf_json_text_format_base64(bytes->data, bytes->len, room + 1);
    room[len + 1] = '"';
    w->out->len += len + 2;
}

static void put_enum(struct writer *w, const ProtobufCEnumDescriptor *type, int32_t number)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(type, number);

    if (value != NULL)
        put_string(w, span_of(value->name));
    else
        put_signed(w, number, false);
}

static void put_time(struct writer *w, const ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    char text[HF_JSON_TIME_SIZE];
    int64_t seconds;
    int32_t nanos;
    size_t len;
    int err;

    memcpy(&seconds, hf_json_type_slot(message, &fields[0]), sizeof seconds);
    memcpy(&nanos, hf_json_type_slot(message, &fields[1]), sizeof nanos);
    if (hf_json_type_kind(message->descriptor) == HF_JSON_DURATION)
        err = hf_json_text_format_duration(seconds, nanos, text, &len);
    else
        err = hf_json_text_format_time(seconds, nanos, text, &len);
    if (err != HF_OK)
        fail(w, HF_EINVAL);
    else
        put_string(w, (struct hf_json_span){ .text = text, .len = len });
}

/* The entry of a map may lack its value, which then is the type's default. */
static void put_submessage(struct writer *w, const ProtobufCFieldDescriptor *field,
                           ProtobufCMessage *const *slot, struct hf_json_span old)
{
    static const char *const DEFAULTS[] = {
        [HF_JSON_PLAIN] = "{}",
        [HF_JSON_DURATION] = "\"0s\"",
        [HF_JSON_TIMESTAMP] = "\"1970-01-01T00:00:00Z\"",
    };

    if (*slot != NULL)
        put_message(w, *slot, old);
    else
        hf_buf_puts(w->out, DEFAULTS[hf_json_type_kind(field->descriptor)]);
}

/* `slot` is where the value lies; `old` is what stood in its place. */
static void put_value(struct writer *w, const ProtobufCFieldDescriptor *field, const void *slot,
                      struct hf_json_span old)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32: put_signed(w, *(const int32_t *)slot, false); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: put_signed(w, *(const int64_t *)slot, true); break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: put_integer(w, false, *(const uint32_t *)slot, false); break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: put_integer(w, false, *(const uint64_t *)slot, true); break;
    case PROTOBUF_C_TYPE_FLOAT: put_real(w, (double)*(const float *)slot, true); break;
    case PROTOBUF_C_TYPE_DOUBLE: put_real(w, *(const double *)slot, false); break;
    case PROTOBUF_C_TYPE_BOOL:
        hf_buf_puts(w->out, *(const protobuf_c_boolean *)slot ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM: put_enum(w, field->descriptor, *(const int32_t *)slot); break;
    case PROTOBUF_C_TYPE_STRING: put_string(w, span_of(*(char *const *)slot)); break;
    case PROTOBUF_C_TYPE_BYTES: put_bytes(w, slot); break;
    case PROTOBUF_C_TYPE_MESSAGE: put_submessage(w, field, slot, old); break;
    }
}

static void put_array(struct writer *w, const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field)
{
    const char *items = *(char *const *)hf_json_type_slot(message, field);
    size_t count = *hf_json_type_count(message, field);
    size_t size = hf_json_type_size(field);

    open_bracket(w, '[');
    for (size_t i = 0; i < count; i++) {
        put_separator(w, i);
        put_value(w, field, items + i * size, NOTHING);
    }
    close_bracket(w, ']', count);
}

/* The key as the text of a member name; `buffer` holds it where it is a number. */
static struct hf_json_span key_text(const ProtobufCMessage *entry,
                                    char buffer[HF_JSON_INT_SIZE + 1])
{
    const ProtobufCFieldDescriptor *field = &entry->descriptor->fields[0];
    const void *slot = hf_json_type_slot(entry, field);
    bool negative = false;
    uint64_t magnitude;
    int64_t value;

    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: return span_of(*(char *const *)slot);
    case PROTOBUF_C_TYPE_BOOL:
        return span_of(*(const protobuf_c_boolean *)slot ? "true" : "false");
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: magnitude = *(const uint32_t *)slot; break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: magnitude = *(const uint64_t *)slot; break;
    default:
        value = hf_json_type_size(field) == sizeof(int64_t) ? *(const int64_t *)slot
                                                            : *(const int32_t *)slot;
        negative = value < 0;
        magnitude = negative ? -(uint64_t)value : (uint64_t)value;
    }
    buffer[0] = '-';
    return (struct hf_json_span){
        .text = buffer + !negative,
        .len = negative + hf_json_text_format_uint(magnitude, buffer + 1),
    };
}

/* Opens the object that stood in the place of what is written now, if there was one. Returns
 * the number of members before it, to give back to close_old. */
static size_t open_old(struct writer *w, struct hf_json_span old,
                       const ProtobufCMessageDescriptor *type)
{
    size_t first;
    int err;

    if (w->old == NULL)
        return 0;
    first = w->old->n_members;
    if (old.len == 0 || old.text[0] != '{')
        return first;
    err = hf_json_old_open(w->old, old, type);
    if (err != HF_OK)
        fail(w, err);
    return first;
}

static void close_old(struct writer *w, size_t first)
{
    if (w->old != NULL)
        w->old->n_members = first;
}

static void put_map(struct writer *w, const ProtobufCMessage *message,
                    const ProtobufCFieldDescriptor *field, struct hf_json_span old)
{
    ProtobufCMessage *const *entries =
        *(ProtobufCMessage *const *const *)hf_json_type_slot(message, field);
    size_t count = *hf_json_type_count(message, field);
    size_t first = open_old(w, old, NULL);

    open_bracket(w, '{');
    for (size_t i = 0; i < count; i++) {
        const ProtobufCFieldDescriptor *value = &entries[i]->descriptor->fields[1];
        char buffer[HF_JSON_INT_SIZE + 1];
        struct hf_json_span key = key_text(entries[i], buffer);

        put_separator(w, i);
        put_string(w, key);
        put_colon(w);
        put_value(w, value, hf_json_type_slot(entries[i], value),
                  w->old != NULL ? hf_json_old_key(w->old, first, key) : NOTHING);
    }
    close_bracket(w, '}', count);
    close_old(w, first);
}

static void put_field(struct writer *w, const ProtobufCMessage *message,
                      const ProtobufCFieldDescriptor *field, struct hf_json_span old)
{
    put_name(w, field);
    if (field->label != PROTOBUF_C_LABEL_REPEATED)
        put_value(w, field, hf_json_type_slot(message, field), old);
    else if (hf_json_type_is_map(field))
        put_map(w, message, field, old);
    else
        put_array(w, message, field);
}

/* Returns how many members the object then has. */
static size_t put_unknown(struct writer *w, size_t first, size_t n_before)
{
    for (size_t i = first; w->old != NULL && i < w->old->n_members; i++) {
        const struct hf_json_old_member *member = &w->old->members[i];

        if (member->field != NULL)
            continue;
        put_separator(w, n_before++);
        put_string(w, member->name);
        put_colon(w);
        hf_json_old_copy(member->value, w->out);
    }
    return n_before;
}

/* The members from `first` on are those of the object that stood here. */
static void put_members(struct writer *w, const ProtobufCMessage *message, size_t first)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    size_t n = 0;

    open_bracket(w, '{');
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];

        if (!hf_json_type_is_set(message, field))
            continue;
        put_separator(w, n++);
        put_field(w, message, field,
                  w->old != NULL ? hf_json_old_field(w->old, first, field) : NOTHING);
    }
    n = put_unknown(w, first, n);
    close_bracket(w, '}', n);
}

static void put_message(struct writer *w, const ProtobufCMessage *message,
                        struct hf_json_span old)
{
    size_t first;

    if (w->err != HF_OK)
        return; /* no deeper: it may be the depth that failed */
    if (hf_json_type_kind(message->descriptor) != HF_JSON_PLAIN) {
        put_time(w, message);
        return;
    }
    first = open_old(w, old, message->descriptor);
    put_members(w, message, first);
    close_old(w, first);
}

/* Takes back what was written since `before` if anything of it failed. */
static int finish(struct writer *w, size_t before)
{
    if (w->err == HF_OK)
        w->err = w->out->err;
    if (w->err != HF_OK && w->out->data != NULL) {
        w->out->len = before;
        w->out->data[before] = '\0';
    }
    return w->err;
}

static int encode(const ProtobufCMessage *message, bool pretty, struct hf_buf *out)
{
    struct writer w = { .out = out, .pretty = pretty };
    size_t before = out->len;

    put_message(&w, message, NOTHING);
    return finish(&w, before);
}

int hf_json_encode(const ProtobufCMessage *message, struct hf_buf *out)
{
    return encode(message, false, out);
}

int hf_json_encode_pretty(const ProtobufCMessage *message, struct hf_buf *out)
{
    return encode(message, true, out);
}

int hf_json_encode_over(const ProtobufCMessage *message, const char *old, size_t old_len,
                        struct hf_buf *out, struct hf_error *err)
{
    struct hf_json_span text = { .text = old, .len = old_len };
    struct hf_json_old members = { .err = err };
    struct writer w = { .out = out, .old = &members };
    size_t before = out->len;
    int code;

    if (old_len == 0)
        return hf_json_encode(message, out);
    if (old_len > HF_JSON_MAX_BYTES)
        return hf_error_set(err, HF_ELIMIT, "%zu bytes of JSON are more than the limit of %zu",
                            old_len, HF_JSON_MAX_BYTES);
    code = hf_json_old_open(&members, text, message->descriptor);
    if (code == HF_OK) {
        put_members(&w, message, 0);
        code = finish(&w, before);
    }
    hf_json_old_done(&members);
    return code;
}
