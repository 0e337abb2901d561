/* observe.h - stands between the runner and the engine, and writes down what passes.
 *
 * A decider around another one: every event and every intent goes through unchanged. What a
 * person would want to know is logged once, here, and what a metric counts is counted. */
#ifndef CTL_OBSERVE_H
#define CTL_OBSERVE_H

#include "core/engine.h"
#include "io/decider.h"
#include "io/metrics.h"

/* Records that cannot be read are logged by key, but not without end. */
#define CTL_BAD_LOGGED 64

#define CTL_EVENT_KINDS 20 /* of Holdfast__V1__Event__Kind */

/* One write that was sent, or whose change is not told yet. */
struct ctl_sent {
    uint64_t token; /* 0: free */
    hf_ms at;
    int64_t revision; /* 0: not answered yet */
};

/* Counted since the start, except while everything is told for the first time. */
struct ctl_counters {
    uint64_t joins, ends;
    uint64_t starts;    /* commands that were written, by whomever */
    uint64_t resets;    /* tasks that lost their owner */
    uint64_t writes[4]; /* by enum hf_outcome */
    uint64_t events[CTL_EVENT_KINDS];
    uint64_t bad;
    struct hf_histogram write_took;  /* from the decision to etcd's answer */
    struct hf_histogram watch_lag;   /* from etcd's answer to the watch telling it */
    struct hf_histogram detected_in; /* from the end of a live key to the order of a start */
    struct hf_histogram back_in;     /* from the end of a live key to the next one */
};

struct ctl_observer {
    struct hf_decider inner;
    struct hf_engine *engine;
    const char *id; /* of this controller */
    bool leads;
    bool synced;
    int64_t synced_rev; /* what changed after it is news */
    char leader[64];    /* as last told; empty: nobody */
    struct ctl_counters counters;
    struct ctl_sent sent[HF_ENGINE_FLIGHTS];
};

/* `engine` and `id` must outlive it. */
void ctl_observer_init(struct ctl_observer *observer, struct hf_engine *engine, const char *id);

struct hf_decider ctl_observer_get_decider(struct ctl_observer *observer);

#endif
