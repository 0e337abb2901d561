/* moments.h - times of the cluster clock, as they stand in records.
 *
 * Pure: no allocation, no I/O. A record has a message, or none, where the decisions have
 * milliseconds, or 0: the cluster clock began at wall time, so that 0 is no moment of it.
 *
 * Guarantees: what was written is read as it was; of what others wrote, the finer part of a
 * millisecond is dropped, and what no clock can say saturates. */
#ifndef HF_CORE_MOMENTS_H
#define HF_CORE_MOMENTS_H

#include <stddef.h>

#include "base/clock.h"
#include "core/backoff.h"
#include "google/protobuf/timestamp.pb-c.h"

/* 0 for NULL. Cannot fail. */
hf_ms hf_moment_read(const Google__Protobuf__Timestamp *stamp);

/* Initialises *ret_stamp; returns it, or NULL for 0, as a record's field wants it. */
Google__Protobuf__Timestamp *hf_moment_write(hf_ms moment,
                                             Google__Protobuf__Timestamp *ret_stamp);

/* The newest HF_BACKOFF_KEPT of a record's list. */
struct hf_backoff hf_moments_read(Google__Protobuf__Timestamp *const *stamps, size_t count);

/* A list for a record: `list` and `count` go into it. It points into itself: do not copy it. */
struct hf_moments {
    Google__Protobuf__Timestamp stamps[HF_BACKOFF_KEPT];
    Google__Protobuf__Timestamp *list[HF_BACKOFF_KEPT];
    size_t count;
};

void hf_moments_write(const struct hf_backoff *backoff, struct hf_moments *ret_moments);

#endif
