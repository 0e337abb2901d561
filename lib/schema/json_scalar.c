#include "schema/json_scalar.h"

#include <string.h>

#include "schema/json_text.h"
#include "schema/json_type.h"

/* Where a value stood, and its characters. */
struct token {
    const char *at;
    struct hf_json_span text;
};

static bool begins_number(char c)
{
    return c == '-' || (c >= '0' && c <= '9');
}

/* A number, or a string that holds one: proto3 allows both wherever a number is expected. */
static int read_number(struct hf_json_scan *scan, const char *what, struct token *ret)
{
    char c = hf_json_scan_peek(scan);

    ret->at = scan->at;
    if (c == '"')
        return hf_json_scan_text(scan, &ret->text);
    if (begins_number(c))
        return hf_json_scan_number(scan, &ret->text);
    return hf_json_scan_expected(scan, scan->at, what);
}

static int read_text(struct hf_json_scan *scan, const char *what, struct token *ret)
{
    if (hf_json_scan_peek(scan) != '"')
        return hf_json_scan_expected(scan, scan->at, what);
    ret->at = scan->at;
    return hf_json_scan_text(scan, &ret->text);
}

/* Turns the verdict of one of the text parsers into a failure of the scan. */
static int fail_value(struct hf_json_scan *scan, int code, const struct token *token,
                      const char *what)
{
    char excerpt[HF_JSON_EXCERPT_SIZE];

    if (code == HF_ELIMIT)
        return hf_json_scan_fail(scan, HF_EINVAL, token->at, "%s is out of range for %s",
                                 hf_json_scan_excerpt(token->text, excerpt), what);
    return hf_json_scan_expected(scan, token->at, what);
}

static const char *type_name(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: return "a uint32";
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64: return "an int64";
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return "a uint64";
    case PROTOBUF_C_TYPE_FLOAT: return "a float";
    case PROTOBUF_C_TYPE_DOUBLE: return "a double";
    default: return "an int32";
    }
}

static int parse_int32(struct hf_json_span text, int32_t *ret_value)
{
    int64_t value;
    int err = hf_json_text_parse_int(text.text, text.len, INT32_MIN, INT32_MAX, &value);

    if (err == HF_OK)
        *ret_value = (int32_t)value;
    return err;
}

static int parse_uint32(struct hf_json_span text, uint32_t *ret_value)
{
    uint64_t value;
    int err = hf_json_text_parse_uint(text.text, text.len, UINT32_MAX, &value);

    if (err == HF_OK)
        *ret_value = (uint32_t)value;
    return err;
}

static int parse_number(ProtobufCType type, struct hf_json_span text, union hf_json_value *ret)
{
    switch (type) {
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32: return parse_uint32(text, &ret->u32);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return hf_json_text_parse_int(text.text, text.len, INT64_MIN, INT64_MAX, &ret->i64);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return hf_json_text_parse_uint(text.text, text.len, UINT64_MAX, &ret->u64);
    case PROTOBUF_C_TYPE_FLOAT: return hf_json_text_parse_float(text.text, text.len, &ret->f32);
    case PROTOBUF_C_TYPE_DOUBLE:
        return hf_json_text_parse_double(text.text, text.len, &ret->f64);
    default: return parse_int32(text, &ret->i32);
    }
}

static int decode_number(struct hf_json_scan *scan, ProtobufCType type,
                         union hf_json_value *ret)
{
    struct token token;
    int err = read_number(scan, type_name(type), &token);

    if (err != HF_OK)
        return err;
    err = parse_number(type, token.text, ret);
    return err == HF_OK ? HF_OK : fail_value(scan, err, &token, type_name(type));
}

static int decode_bool(struct hf_json_scan *scan, union hf_json_value *ret)
{
    char c = hf_json_scan_peek(scan);

    ret->boolean = c == 't';
    if (c != 't' && c != 'f')
        return hf_json_scan_expected(scan, scan->at, "true or false");
    return hf_json_scan_word(scan, c == 't' ? "true" : "false");
}

static int fail_nul(struct hf_json_scan *scan, const char *at)
{
    return hf_json_scan_fail(scan, HF_EINVAL, at, "\\u0000 cannot be kept in a string");
}

static int decode_string(struct hf_json_scan *scan, union hf_json_value *ret)
{
    struct hf_json_string string;
    const char *at;
    char *copy;
    char *end;
    int err;

    if (hf_json_scan_peek(scan) != '"')
        return hf_json_scan_expected(scan, scan->at, "a string");
    at = scan->at;
    err = hf_json_scan_string(scan, &string);
    if (err != HF_OK)
        return err;
    if (string.has_nul)
        return fail_nul(scan, at);
    copy = hf_json_arena_alloc(scan->arena, string.raw.len + 1, 1);
    if (copy == NULL)
        return hf_json_scan_no_memory(scan);
    if (string.has_escapes) {
        end = hf_json_scan_unescape(&string, copy);
        hf_json_arena_trim(scan->arena, end + 1);
    } else {
        memcpy(copy, string.raw.text, string.raw.len);
        end = copy + string.raw.len;
    }
    *end = '\0';
    ret->text = copy;
    return HF_OK;
}

static int decode_bytes(struct hf_json_scan *scan, union hf_json_value *ret)
{
    struct token token;
    uint8_t *data;
    size_t len;
    int err = read_text(scan, "base64", &token);

    if (err != HF_OK)
        return err;
    data = hf_json_arena_alloc(scan->arena, HF_JSON_BASE64_ROOM(token.text.len), 1);
    if (data == NULL)
        return hf_json_scan_no_memory(scan);
    err = hf_json_text_parse_base64(token.text.text, token.text.len, data, &len);
    if (err != HF_OK)
        return fail_value(scan, err, &token, "base64");
    hf_json_arena_trim(scan->arena, data + len);
    ret->bytes = (ProtobufCBinaryData){ .len = len, .data = len > 0 ? data : NULL };
    return HF_OK;
}

static int fail_enum(struct hf_json_scan *scan, const ProtobufCEnumDescriptor *type,
                     const struct token *token)
{
    char excerpt[HF_JSON_EXCERPT_SIZE];
    struct hf_json_guess guess;

    hf_json_scan_guess_init(&guess, token->text);
    for (unsigned i = 0; i < type->n_value_names; i++)
        hf_json_scan_guess(&guess, type->values_by_name[i].name);
    return hf_json_scan_fail(scan, HF_EINVAL, token->at, "unknown value \"%s\"%s",
                             hf_json_scan_excerpt(token->text, excerpt),
                             hf_json_scan_guess_text(&guess));
}

static int decode_enum(struct hf_json_scan *scan, const ProtobufCEnumDescriptor *type,
                       union hf_json_value *ret)
{
    const ProtobufCEnumValue *value;
    struct token token;
    int err;

    if (begins_number(hf_json_scan_peek(scan)))
        return decode_number(scan, PROTOBUF_C_TYPE_INT32, ret);
    err = read_text(scan, "the name of a value", &token);
    if (err != HF_OK)
        return err;
    value = hf_json_type_enum_value(type, token.text.text, token.text.len);
    if (value == NULL)
        return fail_enum(scan, type, &token);
    ret->i32 = value->value;
    return HF_OK;
}

int hf_json_scalar_decode(struct hf_json_scan *scan, const ProtobufCFieldDescriptor *field,
                          union hf_json_value *ret_value)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL: return decode_bool(scan, ret_value);
    case PROTOBUF_C_TYPE_ENUM: return decode_enum(scan, field->descriptor, ret_value);
    case PROTOBUF_C_TYPE_STRING: return decode_string(scan, ret_value);
    case PROTOBUF_C_TYPE_BYTES: return decode_bytes(scan, ret_value);
    default: return decode_number(scan, field->type, ret_value);
    }
}

static int decode_text_key(struct hf_json_scan *scan, const struct hf_json_name *name,
                           union hf_json_value *ret)
{
    char *copy;

    if (memchr(name->name.text, '\0', name->name.len) != NULL)
        return fail_nul(scan, name->at);
    copy = hf_json_arena_alloc(scan->arena, name->name.len + 1, 1);
    if (copy == NULL)
        return hf_json_scan_no_memory(scan);
    memcpy(copy, name->name.text, name->name.len);
    copy[name->name.len] = '\0';
    ret->text = copy;
    return HF_OK;
}

/* Digits behind at most a minus; that no zero leads is the number parser's business. */
static bool is_plain_integer(struct hf_json_span text)
{
    bool negative = text.len > 0 && text.text[0] == '-';

    for (size_t i = negative; i < text.len; i++) {
        if (text.text[i] < '0' || text.text[i] > '9')
            return false;
    }
    return text.len > negative && !(negative && text.text[1] == '0');
}

static bool is_word(struct hf_json_span text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.text, word, text.len) == 0;
}

int hf_json_scalar_decode_key(struct hf_json_scan *scan, const ProtobufCFieldDescriptor *field,
                              const struct hf_json_name *name, union hf_json_value *ret_value)
{
    struct token token = { .at = name->at, .text = name->name };
    int err;

    if (field->type == PROTOBUF_C_TYPE_STRING)
        return decode_text_key(scan, name, ret_value);
    if (field->type == PROTOBUF_C_TYPE_BOOL) {
        ret_value->boolean = is_word(token.text, "true");
        if (!ret_value->boolean && !is_word(token.text, "false"))
            return hf_json_scan_expected(scan, token.at, "\"true\" or \"false\" as the key");
        return HF_OK;
    }
    if (!is_plain_integer(token.text))
        return hf_json_scan_expected(scan, token.at, "an integer as the key");
    err = parse_number(field->type, token.text, ret_value);
    return err == HF_OK ? HF_OK : fail_value(scan, err, &token, type_name(field->type));
}

int hf_json_scalar_decode_time(struct hf_json_scan *scan, ProtobufCMessage *message)
{
    const ProtobufCFieldDescriptor *fields = message->descriptor->fields;
    bool duration = hf_json_type_kind(message->descriptor) == HF_JSON_DURATION;
    const char *what =
        duration ? "a duration such as \"1.5s\"" : "a time such as \"2026-01-31T08:15:30Z\"";
    struct token token;
    int64_t seconds;
    int32_t nanos;
    int err = read_text(scan, what, &token);

    if (err != HF_OK)
        return err;
    if (duration)
        err = hf_json_text_parse_duration(token.text.text, token.text.len, &seconds, &nanos);
    else
        err = hf_json_text_parse_time(token.text.text, token.text.len, &seconds, &nanos);
    if (err != HF_OK)
        return fail_value(scan, err, &token,
                          err != HF_ELIMIT ? what
                          : duration       ? "a duration"
                                           : "a time");
    memcpy(hf_json_type_slot(message, &fields[0]), &seconds, sizeof seconds);
    memcpy(hf_json_type_slot(message, &fields[1]), &nanos, sizeof nanos);
    return HF_OK;
}
