#include "core/moments.h"

#define MS_PER_S  1000
#define NS_PER_MS 1000000

hf_ms hf_moment_read(const Google__Protobuf__Timestamp *stamp)
{
    if (stamp == NULL)
        return 0;
    if (stamp->seconds >= INT64_MAX / MS_PER_S)
        return INT64_MAX;
    if (stamp->seconds <= INT64_MIN / MS_PER_S)
        return INT64_MIN;
    return stamp->seconds * MS_PER_S + stamp->nanos / NS_PER_MS;
}

Google__Protobuf__Timestamp *hf_moment_write(hf_ms moment,
                                             Google__Protobuf__Timestamp *ret_stamp)
{
    hf_ms rest = moment % MS_PER_S;

    /* The part below the second counts forward, also before 1970. */
    if (rest < 0)
        rest += MS_PER_S;
    google__protobuf__timestamp__init(ret_stamp);
    ret_stamp->seconds = (moment - rest) / MS_PER_S;
    ret_stamp->nanos = (int32_t)rest * NS_PER_MS;
    return moment == 0 ? NULL : ret_stamp;
}

struct hf_backoff hf_moments_read(Google__Protobuf__Timestamp *const *stamps, size_t count)
{
    struct hf_backoff backoff = { 0 };

    for (size_t i = count > HF_BACKOFF_KEPT ? count - HF_BACKOFF_KEPT : 0; i < count; i++)
        hf_backoff_on_attempt(&backoff, hf_moment_read(stamps[i]));
    return backoff;
}

void hf_moments_write(const struct hf_backoff *backoff, struct hf_moments *ret_moments)
{
    ret_moments->count = backoff->count;
    for (uint8_t i = 0; i < backoff->count; i++) {
        (void)hf_moment_write(backoff->at[i], &ret_moments->stamps[i]);
        ret_moments->list[i] = &ret_moments->stamps[i];
    }
}
