/* decider.h - a pure decider behind its functions: the controller's engine, an agentd's node,
 * or what a test puts in their place. */
#ifndef HF_IO_DECIDER_H
#define HF_IO_DECIDER_H

#include "core/event.h"
#include "core/intent.h"

#define HF_DECIDER_RANGES 32 /* that a mirror follows at most */

/* One key that hangs on the lease, for its verification. */
struct hf_decider_key {
    struct hf_key key; /* its names are borrowed until the decider's next call */
    int64_t create_rev;
};

/* The functions mean what core/engine.h and core/node.h say of theirs. */
struct hf_decider_ops {
    int (*step)(void *self, struct hf_event *event, hf_ms now);
    int (*next)(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret);
    hf_ms (*deadline)(const void *self, hf_ms now);

    /* What is to be mirrored: none within another. Its names are borrowed likewise. */
    size_t (*get_ranges)(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES]);
    uint64_t (*get_ranges_version)(const void *self); /* NULL: they never change */

    /* Up to `max` of the keys that must exist under `lease`, and returns how many there are;
     * HF_EAGAIN while that is not known. NULL: there never are any. */
    int (*get_keys)(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                    size_t max);
};

struct hf_decider {
    const struct hf_decider_ops *ops;
    void *self;
};

#endif
