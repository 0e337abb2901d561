/* engine.h - the controller's reconciler: decides what is done about hosts, agents and tasks.
 *
 * A decider (core/event.h, core/intent.h): step takes one event in, next gives one intent after
 * the other, deadline says when time alone makes a difference. Pure: no I/O, no clock, no
 * globals, no threads; `now` is the caller's monotonic time and never goes back, `wall` is for
 * people to read, `random` is a fresh random word.
 *
 * Level-triggered: an event only says which objects to look at again; each is decided from what
 * etcd holds by then. Guarantees:
 *   - a standby, or a leader that has not seen everything yet, asks for nothing;
 *   - at most one write that concerns an object is under way, and the object is not looked at
 *     again before what the write did, or what refused it, was told;
 *   - the cost of an event does not depend on the size of the fleet;
 *   - without memory (HF_ENOMEM) an event is not taken in, or an intent not given; nothing is
 *     lost or broken, and the call may be repeated. */
#ifndef HF_CORE_ENGINE_H
#define HF_CORE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/clusterclock.h"
#include "core/event.h"
#include "core/fleet.h"
#include "core/intent.h"
#include "core/mutant.h"
#include "core/placement.h"
#include "core/recover.h"
#include "core/restart.h"
#include "core/stall.h"
#include "core/storm.h"
#include "core/task.h"
#include "core/tilt.h"

#define HF_ENGINE_NEVER   INT64_MAX
#define HF_ENGINE_FLIGHTS 256 /* writes that may be under way at once */

struct hf_engine;

struct hf_engine_policy {
    struct hf_restart_policy restart;
    struct hf_task_policy task;
    struct hf_stall_policy stall;
    struct hf_tilt_policy tilt;
    struct hf_clusterclock_policy clock;
    struct hf_recover_policy recover;
    struct hf_placement_policy placement;
    struct hf_storm_policy storm;
    hf_ms ttl;             /* of a lease that nobody saw */
    hf_ms grace_margin;    /* added to the grace of a third and a sixth of the TTL */
    hf_ms command_within;  /* a start that is not served by then is withdrawn */
    hf_ms avoid_host;      /* a host that did not serve a start is a last resort for so long */
    hf_ms unknown_pause;   /* before an object is decided anew whose write has no outcome */
    hf_ms told_within;     /* an answered write is not waited for any longer in what is told */
    hf_ms settle_after;    /* who was just started has the machines to itself for so long */
    hf_ms heir_within;     /* an agentd that starts an agent again by leave has this long; 0:
                              nobody is given leave */
    hf_ms health_every;    /* the health of an agent is written at most this often by itself */
    hf_ms demand_after;    /* live peers have this long to take work before others are woken */
    hf_ms sweep_after;     /* transient agents are removed this long after their end */
    uint32_t unrest_limit; /* changes of etcd's leader within three TTLs that are too many */
    uint32_t ring;         /* events that are kept */
    hf_ms report_floor;    /* agents may report at least this often ... */
    uint32_t report_rate;  /* ... and all of them together this often in a second */
};

/* Cannot fail. */
struct hf_engine_policy hf_engine_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_engine_policy_check(const struct hf_engine_policy *policy,
                           const char **ret_why) HF_MUST_CHECK;

struct hf_engine_config {
    const char *ns;                 /* copied, as is the id */
    const char *id;                 /* of this controller */
    struct hf_engine_policy policy; /* copied, but for task.limits, which must outlive it */
    uint64_t seed;                  /* random: of tables whose keys others choose, and of ids */
    uint64_t mutants; /* core/mutant.h: rules that are missing, for the simulator; else 0 */
};

/* NULL: no memory. The policy must have passed its check. */
struct hf_engine *hf_engine_new(const struct hf_engine_config *cfg);
void hf_engine_free(struct hf_engine *engine);

/* Takes the event in. HF_ENOMEM: it was not, and a change keeps its record. HF_EHISTORY: what
 * was told contradicts what was told before; everything is forgotten, and has to be told again
 * beginning with HF_EVENT_RESET (the change's record is taken). */
int hf_engine_step(struct hf_engine *engine, struct hf_event *event, hf_ms now) HF_MUST_CHECK;

/* 1: *ret is an intent, to be released with hf_intent_done; ask again. 0: none now. HF_ENOMEM:
 * ask again later. */
int hf_engine_next(struct hf_engine *engine, hf_ms now, hf_ms wall, uint32_t random,
                   struct hf_intent *ret) HF_MUST_CHECK;

/* When to give it HF_EVENT_TIME at the latest, and to ask for intents: `now` when there may be
 * some, HF_ENGINE_NEVER is never said. */
hf_ms hf_engine_deadline(const struct hf_engine *engine, hf_ms now);

struct hf_engine_status {
    bool leads;  /* in `term` */
    bool synced; /* and knows everything: it acts */
    struct hf_term term;
    struct hf_fleet_counts counts;
    int32_t generation;
    int64_t revision; /* everything up to it was told */
    size_t queued;    /* objects to look at */
    size_t flights;   /* writes under way */
    size_t resting;   /* objects whose write was answered and is not told yet */
    size_t bad;       /* keys that cannot be read */
    size_t paced;     /* agents that wait for the storm guard */
    struct hf_storm_view storm;
    struct hf_tilt_view tilt;
    hf_ms cluster_now; /* HF_CLUSTERCLOCK_UNREAD while it is not known */
};

struct hf_engine_status hf_engine_get_status(const struct hf_engine *engine, hf_ms now);

/* Borrowed; read-only. */
const struct hf_fleet *hf_engine_get_fleet(const struct hf_engine *engine);

#endif
