/* json_scalar.h - reads one value that is neither an object nor an array into its C form.
 *
 * Internal to json. */
#ifndef HF_SCHEMA_JSON_SCALAR_H
#define HF_SCHEMA_JSON_SCALAR_H

#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "schema/json_scan.h"

/* One value of a field, as it stands in a message. */
union hf_json_value {
    int32_t i32; /* enums, too */
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f32;
    double f64;
    protobuf_c_boolean boolean;
    char *text;
    ProtobufCBinaryData bytes;
    ProtobufCMessage *message;
};

/* Any type but a message. Memory comes from the scanner's arena. */
int hf_json_scalar_decode(struct hf_json_scan *scan, const ProtobufCFieldDescriptor *field,
                          union hf_json_value *ret_value) HF_MUST_CHECK;

/* The key of a map, whose type is the field's, from the member name that stands for it. Texts
 * that are not the only way to write their value ("1e1", "-0") are refused, so that different
 * names are different keys. */
int hf_json_scalar_decode_key(struct hf_json_scan *scan, const ProtobufCFieldDescriptor *field,
                              const struct hf_json_name *name,
                              union hf_json_value *ret_value) HF_MUST_CHECK;

/* Duration or Timestamp into a message that has been initialised. */
int hf_json_scalar_decode_time(struct hf_json_scan *scan,
                               ProtobufCMessage *message) HF_MUST_CHECK;

#endif
