/* json_old.h - the text that a record is written over: which members stood where.
 *
 * Internal to json. Objects are opened as the writer comes to them, so the whole text is
 * checked when the outermost one is opened, and the inner ones cannot fail but for memory. */
#ifndef HF_SCHEMA_JSON_OLD_H
#define HF_SCHEMA_JSON_OLD_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "schema/json_arena.h"
#include "schema/json_scan.h"

struct hf_json_old_member {
    struct hf_json_span name;
    const ProtobufCFieldDescriptor *field; /* NULL: the schema does not know it */
    struct hf_json_span value;             /* from its first to its last character */
};

/* Zero-initialise but for `err`, which may be NULL. */
struct hf_json_old {
    struct hf_json_arena arena;         /* names that had escapes */
    struct hf_json_old_member *members; /* of all open objects, the innermost last */
    size_t n_members;
    size_t cap_members;
    struct hf_error *err;
};

void hf_json_old_done(struct hf_json_old *old);

/* Adds the members of the object that `text` is, nothing else standing around it but white
 * space; `type` is NULL for a map. The caller takes them off again by resetting n_members. */
int hf_json_old_open(struct hf_json_old *old, struct hf_json_span text,
                     const ProtobufCMessageDescriptor *type) HF_MUST_CHECK;

/* The value of a known member, or of a key of a map, among the members from `first` on; empty
 * when there is none. */
struct hf_json_span hf_json_old_field(const struct hf_json_old *old, size_t first,
                                      const ProtobufCFieldDescriptor *field);
struct hf_json_span hf_json_old_key(const struct hf_json_old *old, size_t first,
                                    struct hf_json_span key);

/* Appends a value without the white space between its tokens. */
void hf_json_old_copy(struct hf_json_span value, struct hf_buf *out);

#endif
