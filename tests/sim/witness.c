#include "sim/witness.h"

static int step(void *self, struct hf_event *event, hf_ms now)
{
    struct hfs_witness *witness = self;
    struct hf_decider *inner = &witness->decider;

    if (witness->lacks_memory && event->kind == HF_EVENT_CHANGE) {
        witness->lacks_memory = false;
        return HF_ENOMEM;
    }
    return inner->ops->step(inner->self, event, now);
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    struct hfs_witness *witness = self;
    struct hf_decider *inner = &witness->decider;
    int rc = inner->ops->next(inner->self, now, wall, random, ret);

    if (rc == 1 && witness->see != NULL)
        witness->see(ret, witness->arg);
    return rc;
}

static hf_ms deadline(const void *self, hf_ms now)
{
    const struct hf_decider *inner = &((const struct hfs_witness *)self)->decider;

    return inner->ops->deadline(inner->self, now);
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    const struct hf_decider *inner = &((const struct hfs_witness *)self)->decider;

    return inner->ops->get_ranges(inner->self, ret);
}

static uint64_t get_ranges_version(const void *self)
{
    const struct hf_decider *inner = &((const struct hfs_witness *)self)->decider;

    return inner->ops->get_ranges_version != NULL ? inner->ops->get_ranges_version(inner->self)
                                                  : 0;
}

static int get_keys(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                    size_t max)
{
    const struct hf_decider *inner = &((const struct hfs_witness *)self)->decider;

    return inner->ops->get_keys != NULL
               ? inner->ops->get_keys(inner->self, lease, ret_keys, max)
               : 0;
}

static const struct hf_decider_ops OPS = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
    .get_ranges_version = get_ranges_version,
    .get_keys = get_keys,
};

struct hf_decider hfs_witness_decider(struct hfs_witness *witness)
{
    return (struct hf_decider){ .ops = &OPS, .self = witness };
}
