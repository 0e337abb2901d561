#include "schema/json_type.h"

#include <stdint.h>
#include <string.h>

static bool is_upper_after_underscore(const char *p)
{
    return p[0] == '_' && p[1] != '\0' && p[1] != '_';
}

static char upper(char c)
{
    if (c >= 'a' && c <= 'z')
        c = (char)(c - 'a' + 'A');
    return c;
}

size_t hf_json_type_name(const char *field_name, char *out)
{
    size_t n = 0;

    for (const char *p = field_name; *p != '\0'; p++) {
        if (is_upper_after_underscore(p))
            out[n++] = upper(*++p);
        else if (*p != '_')
            out[n++] = *p;
    }
    return n;
}

/* Compares without writing the JSON name down: this runs for every member that is read. */
static bool is_camel_name(const char *field, const char *name, size_t len)
{
    const char *end = name + len;

    for (const char *p = field; *p != '\0'; p++) {
        char want = *p;

        if (is_upper_after_underscore(p))
            want = upper(*++p);
        else if (want == '_')
            continue;
        if (name == end || *name++ != want)
            return false;
    }
    return name == end;
}

static bool is_name(const char *field, const char *name, size_t len)
{
    return is_camel_name(field, name, len) ||
           (strncmp(field, name, len) == 0 && strlen(field) == len);
}

const ProtobufCFieldDescriptor *hf_json_type_field(const ProtobufCMessageDescriptor *type,
                                                   const char *name, size_t len, unsigned *hint)
{
    unsigned index = *hint;

    for (unsigned tried = 0; tried < type->n_fields; tried++, index++) {
        if (index >= type->n_fields)
            index = 0;
        if (is_name(type->fields[index].name, name, len)) {
            *hint = index + 1;
            return &type->fields[index];
        }
    }
    return NULL;
}

static bool is_seconds_and_nanos(const ProtobufCMessageDescriptor *type)
{
    return type->n_fields == 2 && type->fields[0].type == PROTOBUF_C_TYPE_INT64 &&
           type->fields[1].type == PROTOBUF_C_TYPE_INT32;
}

enum hf_json_kind hf_json_type_kind(const ProtobufCMessageDescriptor *type)
{
    if (!is_seconds_and_nanos(type))
        return HF_JSON_PLAIN;
    if (strcmp(type->name, "google.protobuf.Duration") == 0)
        return HF_JSON_DURATION;
    if (strcmp(type->name, "google.protobuf.Timestamp") == 0)
        return HF_JSON_TIMESTAMP;
    return HF_JSON_PLAIN;
}

/* protoc names the entry of `op_ids` OpIdsEntry. Asking for that, and not only for a key and a
 * value, keeps a repeated message of somebody's own that happens to have those two an array. */
static bool is_entry_name(const char *entry, const char *field)
{
    bool raise = true;

    for (; *field != '\0'; field++) {
        if (*field == '_') {
            raise = true;
            continue;
        }
        if (*entry++ != (raise ? upper(*field) : *field))
            return false;
        raise = false;
    }
    return strcmp(entry, "Entry") == 0;
}

bool hf_json_type_is_map(const ProtobufCFieldDescriptor *field)
{
    const ProtobufCMessageDescriptor *entry = field->descriptor;

    if (field->label != PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE)
        return false;
    return entry->n_fields == 2 && entry->fields[0].id == 1 && entry->fields[1].id == 2 &&
           strcmp(entry->fields[0].name, "key") == 0 &&
           strcmp(entry->fields[1].name, "value") == 0 &&
           is_entry_name(entry->short_name, field->name);
}

size_t hf_json_type_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64: return sizeof(uint64_t);
    case PROTOBUF_C_TYPE_DOUBLE: return sizeof(double);
    case PROTOBUF_C_TYPE_BOOL: return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING: return sizeof(char *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(ProtobufCMessage *);
    default: return sizeof(uint32_t);
    }
}

const ProtobufCEnumValue *hf_json_type_enum_value(const ProtobufCEnumDescriptor *type,
                                                  const char *name, size_t len)
{
    unsigned low = 0;
    unsigned high = type->n_value_names;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        const char *candidate = type->values_by_name[middle].name;
        int order = strncmp(name, candidate, len);

        if (order == 0 && strlen(candidate) == len)
            return &type->values[type->values_by_name[middle].index];
        if (order > 0)
            low = middle + 1;
        else
            high = middle; /* smaller, or a prefix of the candidate */
    }
    return NULL;
}

int *hf_json_type_presence(const ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field)
{
    bool pointer =
        field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;

    if (hf_json_type_is_oneof(field) || (field->label == PROTOBUF_C_LABEL_OPTIONAL && !pointer))
        return (void *)((char *)message + field->quantifier_offset);
    return NULL;
}

bool hf_json_type_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const int *presence = hf_json_type_presence(message, field);
    bool oneof = hf_json_type_is_oneof(field);
    bool message_or_text = field->type == PROTOBUF_C_TYPE_MESSAGE ||
                           (field->label == PROTOBUF_C_LABEL_OPTIONAL && !oneof);
    void *pointer;

    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return true;
    if (oneof && *presence != (int)field->id)
        return false;
    if (!oneof && presence != NULL)
        return *presence != 0;
    if (!message_or_text)
        return true;
    memcpy(&pointer, hf_json_type_slot(message, field), sizeof pointer);
    return pointer != NULL;
}
