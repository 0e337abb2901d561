#include "agentd/link/bucket.h"

enum { ONE = 1000, WORTH_S = 2 };

bool link_bucket_take(struct link_bucket *bucket, int64_t per_second, hf_ms now)
{
    hf_ms passed = now > bucket->at ? now - bucket->at : 0;
    int64_t size = per_second * WORTH_S * ONE;

    /* A thousandth per millisecond for each one per second. */
    if (passed >= (hf_ms)WORTH_S * ONE || passed * per_second >= bucket->taken)
        bucket->taken = 0;
    else
        bucket->taken -= passed * per_second;
    bucket->at = now > bucket->at ? now : bucket->at;
    if (bucket->taken + ONE > size)
        return false;
    bucket->taken += ONE;
    return true;
}
