/* json.h - proto3 JSON <-> protobuf-c messages, driven by the descriptors.
 *
 * The form of every value in etcd, of the local API and of the command line:
 *   - member names are written in lowerCamelCase; that and the proto's own spelling are read;
 *   - zero values, empty arrays and empty maps are written; an unset sub-message, an unset
 *     oneof and an unset optional field are not; null is read as "not given";
 *   - enums are written by name (by number when the number has none), read by both;
 *   - 64-bit integers are written as decimal strings; integers are read from strings and
 *     numbers, 1e3 and 1.0 included, when the value is whole and in range;
 *   - bytes are base64 (read with either alphabet, padded or not); NaN, Infinity and -Infinity
 *     are strings; google.protobuf.Duration is "1.500s", Timestamp is RFC 3339 in UTC.
 *
 * Strict about everything else: UTF-8 is checked, a member that comes twice is an error, as are
 * two members of one oneof and a NUL inside a string (C could not tell where it ends).
 *
 * Pure and reentrant: no global state, no locale, no I/O. A message type may have up to
 * HF_JSON_FIELDS_MAX fields. */
#ifndef HF_SCHEMA_JSON_H
#define HF_SCHEMA_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"

#define HF_JSON_MAX_BYTES  ((size_t)4 << 20)
#define HF_JSON_MAX_DEPTH  64
#define HF_JSON_FIELDS_MAX 256

/* What a text may be. All zero means the defaults. */
struct hf_json_options {
    size_t max_bytes;    /* of the text; 0: HF_JSON_MAX_BYTES */
    unsigned max_depth;  /* of objects and arrays in each other; 0: HF_JSON_MAX_DEPTH */
    bool reject_unknown; /* a member that the schema does not know is an error, not skipped */
};

/* Decodes one text into a new message of `type`; `options` may be NULL. HF_EINVAL when the text
 * is not JSON or not such a message, HF_ELIMIT when it is too large or too deep; err says
 * where: `owner.incarnation.leaseId: line 4, column 17: expected an int64, got true`. Columns
 * count characters. The text is not needed afterwards. */
int hf_json_decode(const ProtobufCMessageDescriptor *type, const char *text, size_t len,
                   const struct hf_json_options *options, ProtobufCMessage **ret_message,
                   struct hf_error *err) HF_MUST_CHECK;

/* A message of its own that says the same, to be released with hf_json_free. HF_EINVAL or
 * HF_ELIMIT when it could not be a record. */
int hf_json_copy(const ProtobufCMessage *message, ProtobufCMessage **ret_copy) HF_MUST_CHECK;

/* Releases a message that hf_json_decode made, and nothing else: it is one piece of memory, so
 * never give it, or a message inside it, to protobuf_c_message_free_unpacked. Its fields may be
 * changed to point at other memory, which stays the caller's. NULL is fine. */
void hf_json_free(ProtobufCMessage *message);

/* Appends the message as compact text (the value in etcd), or indented for people. HF_EINVAL
 * when a string is not UTF-8 or a Duration or Timestamp is out of range; a failure of the
 * buffer otherwise. What was appended is taken back on failure. */
int hf_json_encode(const ProtobufCMessage *message, struct hf_buf *out) HF_MUST_CHECK;
int hf_json_encode_pretty(const ProtobufCMessage *message, struct hf_buf *out) HF_MUST_CHECK;

/* As hf_json_encode, laid over the text that the message replaces: members of `old` that the
 * schema does not know stay, behind the known ones of their object, so that a record written by
 * a newer program keeps what only that program understands. Holds for objects in objects and
 * for the values of maps. Elements of arrays have no identity: unknown members in them go, as
 * do those of a sub-message that is now unset. An empty `old` is as none; one that is no JSON
 * object is HF_EINVAL, and the default limits hold for it. Not for a Duration or Timestamp. */
int hf_json_encode_over(const ProtobufCMessage *message, const char *old, size_t old_len,
                        struct hf_buf *out, struct hf_error *err) HF_MUST_CHECK;

#endif
