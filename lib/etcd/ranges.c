#include <string.h>

#include "etcd/range.h"

static bool contains(const struct hf_key_range *outer, const struct hf_key_range *inner)
{
    if (!outer->prefix)
        return !inner->prefix && inner->key.len == outer->key.len && outer->key.len > 0 &&
               memcmp(inner->key.data, outer->key.data, outer->key.len) == 0;
    if (outer->key.len == 0) /* memcmp may not be given NULL, not even for nothing */
        return true;
    return inner->key.len >= outer->key.len &&
           memcmp(inner->key.data, outer->key.data, outer->key.len) == 0;
}

int hf_ranges_check(const struct hf_key_range *ranges, size_t count, struct hf_error *err)
{
    if (count == 0 || count > HF_RANGES_MOST)
        return hf_error_set(err, HF_ELIMIT, "a mirror has 1 to %d ranges, not %zu",
                            HF_RANGES_MOST, count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            if (i != j && contains(&ranges[i], &ranges[j]))
                return hf_error_set(err, HF_EINVAL,
                                    "range %zu of the mirror contains range %zu", i, j);
        }
    }
    return HF_OK;
}
