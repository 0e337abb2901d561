/* sse.h - server-sent events, out of bytes that come in any pieces.
 *
 * Pure but for memory. Foreign bytes: what the HTML standard calls an event stream, with a
 * limit for one event. Ids and retry times mean nothing here. */
#ifndef HF_CLIENT_SSE_H
#define HF_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Bytes of the name and of the data of one event, each. */
#define HF_SSE_EVENT_MAX ((size_t)64 << 10)

/* Zero-initialise, or hf_sse_clear. */
struct hf_sse {
    struct hf_buf name;
    struct hf_buf data;
    struct hf_buf line;
    size_t seen;     /* bytes of the stream, counted up to the length of a byte order mark */
    bool has_data;   /* a line of data came, if an empty one */
    bool after_cr;   /* a line feed that comes next belongs to the end of the last line */
    bool is_over;    /* the event was told: the next byte begins another one */
    bool is_dropped; /* the event is too long, and is passed over */
};

void hf_sse_done(struct hf_sse *sse);
/* For another stream. */
void hf_sse_clear(struct hf_sse *sse);

/* Takes bytes up to the end of an event and sets *ret_used to their number. 1: an event is
 * complete, its name and data are valid until the next call; 0: all were taken. HF_ENOMEM; or
 * HF_ELIMIT for an event that is too long, which is passed over. */
int hf_sse_feed(struct hf_sse *sse, const char *data, size_t len,
                size_t *ret_used) HF_MUST_CHECK;

#endif
