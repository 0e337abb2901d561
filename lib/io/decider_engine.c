#include "io/decider_engine.h"

static int step(void *self, struct hf_event *event, hf_ms now)
{
    return hf_engine_step(self, event, now);
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    return hf_engine_next(self, now, wall, random, ret);
}

static hf_ms deadline(const void *self, hf_ms now)
{
    return hf_engine_deadline(self, now);
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    (void)self;
    ret[0] = (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_NAMESPACE };
    return 1;
}

static const struct hf_decider_ops OPS = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
};

struct hf_decider hf_decider_engine(struct hf_engine *engine)
{
    return (struct hf_decider){ .ops = &OPS, .self = engine };
}
