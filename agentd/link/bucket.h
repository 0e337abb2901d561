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

/* Takes so many, or all of a full one where that is more than it can hold. False: there are not
 * that many, and nothing was taken. */
bool link_bucket_take(struct link_bucket *bucket, int64_t per_second, int64_t count, hf_ms now);

#endif
