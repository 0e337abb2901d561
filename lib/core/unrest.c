#include "core/unrest.h"

#include <assert.h>

static hf_ms nth_last(const struct hf_unrest *unrest, uint32_t n)
{
    return unrest->changes[(unrest->count - n) % HF_UNREST_MOST];
}

static bool is_calm(const struct hf_unrest *unrest, hf_ms window, hf_ms now)
{
    return unrest->count == 0 || now - nth_last(unrest, 1) > window;
}

void hf_unrest_on_change(struct hf_unrest *unrest, uint32_t limit, hf_ms window, hf_ms now)
{
    assert(limit > 0 && limit <= HF_UNREST_MOST);

    if (is_calm(unrest, window, now))
        *unrest = (struct hf_unrest){ .count = 0 };
    unrest->changes[unrest->count++ % HF_UNREST_MOST] = now;
    unrest->holds |= unrest->count >= limit && now - nth_last(unrest, limit) <= window;
}

bool hf_unrest_holds(const struct hf_unrest *unrest, hf_ms window, hf_ms now)
{
    return unrest->holds && !is_calm(unrest, window, now);
}

bool hf_unrest_take_alert(struct hf_unrest *unrest, hf_ms window, hf_ms now)
{
    bool due = hf_unrest_holds(unrest, window, now) && !unrest->told;

    unrest->told |= due;
    return due;
}
