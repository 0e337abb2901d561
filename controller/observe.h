/* observe.h - stands between the runner and the engine, and writes down what passes.
 *
 * A decider around another one: every event and every intent goes through unchanged. What a
 * person would want to know is logged once, here, and what a metric counts is counted. */
#ifndef CTL_OBSERVE_H
#define CTL_OBSERVE_H

#include "core/engine.h"
#include "io/decider.h"

/* Records that cannot be read are logged by key, but not without end. */
#define CTL_BAD_LOGGED 64

struct ctl_observer {
    struct hf_decider inner;
    struct hf_engine *engine;
    const char *id; /* of this controller */
    bool leads;
    bool synced;
    int64_t synced_rev; /* what changed after it is news */
    char leader[64];    /* as last told; empty: nobody */
};

/* `engine` and `id` must outlive it. */
void ctl_observer_init(struct ctl_observer *observer, struct hf_engine *engine, const char *id);

struct hf_decider ctl_observer_get_decider(struct ctl_observer *observer);

#endif
