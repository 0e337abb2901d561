#include "io/decider_node.h"

#include "base/alloc.h"
#include "base/cleanup.h"

_Static_assert(HF_NODE_RANGES <= HF_DECIDER_RANGES, "a mirror follows all that a node wants");

static int step(void *self, struct hf_event *event, hf_ms now)
{
    return hf_node_step(self, event, now);
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    return hf_node_next(self, now, wall, random, ret);
}

static hf_ms deadline(const void *self, hf_ms now)
{
    return hf_node_deadline(self, now);
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    return hf_node_get_ranges(self, ret);
}

static uint64_t get_ranges_version(const void *self)
{
    return hf_node_get_ranges_version(self);
}

static int get_keys(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                    size_t max)
{
    HF_CLEANUP_FREE struct hf_node_key *keys = hf_calloc(max + 1, sizeof *keys);
    int count;

    if (keys == NULL)
        return HF_ENOMEM;
    count = hf_node_get_keys(self, lease, keys, max);
    for (size_t i = 0; count > 0 && i < (size_t)count && i < max; i++)
        ret_keys[i] =
            (struct hf_decider_key){ .key = keys[i].key, .create_rev = keys[i].create_rev };
    return count;
}

static const struct hf_decider_ops OPS = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
    .get_ranges_version = get_ranges_version,
    .get_keys = get_keys,
};

struct hf_decider hf_decider_node(struct hf_node *node)
{
    return (struct hf_decider){ .ops = &OPS, .self = node };
}
