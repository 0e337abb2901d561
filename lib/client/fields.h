/* fields.h - the members of JSON objects: some are read into variables, others written.
 *
 * Pure but for memory. Reading is strict about JSON and about the kind of each member that is
 * wanted; members that nobody asked for are passed over, so that versions can mix. */
#ifndef HF_CLIENT_FIELDS_H
#define HF_CLIENT_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

enum hf_field_kind {
    HF_FIELD_TEXT,     /* char *, allocated; what it had before is freed */
    HF_FIELD_CUT,      /* char[size], cut between two characters if it has to be */
    HF_FIELD_NAME,     /* char[size], HF_ELIMIT when it does not fit */
    HF_FIELD_INT,      /* int64_t, from a number or a string */
    HF_FIELD_INT32,    /* int32_t */
    HF_FIELD_BOOL,     /* bool */
    HF_FIELD_DURATION, /* hf_ms, rounded down */
    HF_FIELD_TIME,     /* hf_ms since 1970 */
    HF_FIELD_OBJECT    /* `inner`, of which there are `size` */
};

struct hf_field {
    const char *name;
    enum hf_field_kind kind;
    void *place; /* untouched when the member is not there, or null */
    size_t size;
    const struct hf_field *inner;
};

/* One object, and nothing else, is the text. HF_EINVAL, HF_ELIMIT or HF_ENOMEM; `err` says
 * where it is wrong. After a failure some places may be set. */
int hf_fields_read(const char *text, size_t len, const struct hf_field *fields, size_t count,
                   struct hf_error *err) HF_MUST_CHECK;

/* Writing: begin, add any number, end; then look at buf->err, which is HF_EINVAL after a text
 * that is not UTF-8. A text that is NULL is left out. */
void hf_fields_begin(struct hf_buf *buf);
void hf_fields_add_text(struct hf_buf *buf, const char *name, const char *text);
void hf_fields_add_int(struct hf_buf *buf, const char *name, int64_t value);
void hf_fields_add_number(struct hf_buf *buf, const char *name, double value);
void hf_fields_add_time(struct hf_buf *buf, const char *name, hf_ms wall);
void hf_fields_add_duration(struct hf_buf *buf, const char *name, hf_ms length);
void hf_fields_end(struct hf_buf *buf);

#endif
