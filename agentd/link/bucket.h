/* bucket.h - how often something may be done: so many times a second on average, and as many as
 * two seconds are worth at once.
 *
 * Pure: the caller says what time it is. */
#ifndef LINK_BUCKET_H
#define LINK_BUCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/* Zero-initialise: it is full. */
struct link_bucket {
    int64_t taken; /* thousandths that have not flowed back yet */
    hf_ms at;      /* as of then */
};

/* Takes one. False: there is none, and nothing was taken. */
bool link_bucket_take(struct link_bucket *bucket, int64_t per_second, hf_ms now);

#endif
