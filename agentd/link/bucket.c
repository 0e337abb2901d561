#include "agentd/link/bucket.h"

enum { ONE = 1000, WORTH_S = 2 };

bool link_bucket_take(struct link_bucket *bucket, int64_t per_second, int64_t count, hf_ms now)
{
    hf_ms passed = now > bucket->at ? now - bucket->at : 0;
    int64_t size = per_second * WORTH_S * ONE;
    int64_t wanted = count < per_second * WORTH_S ? count * ONE : size;

    /* A thousandth per millisecond for each one per second. */
    if (passed >= (hf_ms)WORTH_S * ONE || passed * per_second >= bucket->taken)
        bucket->taken = 0;
    else
        bucket->taken -= passed * per_second;
    bucket->at = now > bucket->at ? now : bucket->at;
    if (bucket->taken + wanted > size)
        return false;
    bucket->taken += wanted;
    return true;
}
