/* json_type.h - what the descriptors of protobuf-c mean for JSON.
 *
 * Internal to json. Pure; all functions cannot fail. */
#ifndef HF_SCHEMA_JSON_TYPE_H
#define HF_SCHEMA_JSON_TYPE_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

/* Messages that JSON writes as one string. */
enum hf_json_kind {
    HF_JSON_PLAIN,
    HF_JSON_DURATION,
    HF_JSON_TIMESTAMP,
};

enum hf_json_kind hf_json_type_kind(const ProtobufCMessageDescriptor *type);

/* A map<k, v> reaches C as a repeated message named after its field. */
bool hf_json_type_is_map(const ProtobufCFieldDescriptor *field);

/* The size in memory of one value of the field. */
size_t hf_json_type_size(const ProtobufCFieldDescriptor *field);

/* The field of that JSON name, in either spelling, or NULL. Records are written in the order of
 * their fields: *hint, 0 before the first lookup, is where the search begins. */
const ProtobufCFieldDescriptor *hf_json_type_field(const ProtobufCMessageDescriptor *type,
                                                   const char *name, size_t len,
                                                   unsigned *hint);

/* Writes a field's JSON name ("lease_id" -> leaseId) to `out`, which has room for
 * strlen(field_name) bytes; no NUL is added. Returns the length. */
size_t hf_json_type_name(const char *field_name, char *out);

/* The value of that name, or NULL. */
const ProtobufCEnumValue *hf_json_type_enum_value(const ProtobufCEnumDescriptor *type,
                                                  const char *name, size_t len);

/* Where the message keeps the field's value, and how many it has (repeated fields). */
static inline void *hf_json_type_slot(const ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field)
{
    return (char *)message + field->offset;
}

static inline size_t *hf_json_type_count(const ProtobufCMessage *message,
                                         const ProtobufCFieldDescriptor *field)
{
    return (void *)((char *)message + field->quantifier_offset);
}

/* The number of the field that is set in this field's oneof, or the has_ flag of an optional
 * field. NULL when the field has neither. */
int *hf_json_type_presence(const ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field);

static inline bool hf_json_type_is_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* Whether the field is written at all. */
bool hf_json_type_is_set(const ProtobufCMessage *message,
                         const ProtobufCFieldDescriptor *field);

#endif
