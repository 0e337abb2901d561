/* node.h - the agentd of one host: decides when its agents' processes are made, let go, frozen,
 * ended and registered, and what becomes of what they ask for.
 *
 * A decider (core/event.h, core/intent.h): step takes one event in, next gives one intent after
 * the other, deadline says when time alone makes a difference. Pure: no I/O, no clock, no
 * globals, no threads; `now` is the caller's monotonic time and never goes back, `wall` is for
 * people to read, `random` is a fresh random word.
 *
 * Level-triggered: what is done about an agent follows from what etcd holds, what the keeper
 * holds and the lease. Guarantees:
 *   - a program begins only after the Txn that registered it has committed, and only while the
 *     lease is held; what was made and did not become registered is discarded;
 *   - what was frozen runs again only when the lease is proven, the process is registered under
 *     it, and every task that it had is its own again; else it is killed;
 *   - a live key under our lease that stands for no process that the keeper holds is deleted,
 *     also one that a link before this one sent and that comes late, whosever agent it is of;
 *   - an order to end an incarnation never ends a later one;
 *   - an agent is answered after what it asked for is committed, and not before;
 *   - at most one write or read of an agent is under way;
 *   - without memory (HF_ENOMEM) an event is not taken in, or an intent not given; nothing is
 *     lost or broken, and the call may be repeated. */
#ifndef HF_CORE_NODE_H
#define HF_CORE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/chain.h"
#include "core/event.h"
#include "core/intent.h"
#include "core/restart.h"

#define HF_NODE_NEVER  INT64_MAX
#define HF_NODE_RANGES 28 /* that hf_node_get_ranges gives at most */

struct hf_node;

struct hf_node_policy {
    hf_ms stop_grace;       /* between asking a process to end and ending it: 10 s */
    hf_ms unwell_grace;     /* the same, where it answers nothing: 1 s */
    hf_ms verdict_wait;     /* it is ended when that is reported, or so much later: 1 s */
    hf_ms cleanup;          /* an agent that said goodbye has this long to go by itself: 30 s */
    hf_ms kill_timeout;     /* what survives SIGKILL for so long is unkillable: 10 s */
    hf_ms frozen_max;       /* what stood still for so long is killed: 1 h */
    hf_ms start_seconds;    /* a failure this soon is one of the start: 1 s */
    hf_ms lost_grace;       /* what is not registered any more may run on for so long: 1 s */
    hf_ms leaderless_after; /* nobody has led for so long: we restart by ourselves: 15 s */
    hf_ms look_back;        /* tasks that a process had are looked at again so often: 5 min */
    hf_ms look_first;       /* what hangs on the lease is looked at so soon: 5 s, ... */
    hf_ms look_again;       /* ... and then so often: 30 s */
    hf_ms retry;            /* after a write or read that failed for no reason of ours: 1 s */
    hf_ms report_every;     /* a report is written at most this often: 1 s */
    hf_ms report_quiet;     /* and when only counters changed: 60 s */
    hf_ms heartbeat;        /* cadences that are promised in live: 30 s */
    hf_ms ping;             /* 2 s */
    uint32_t max_tasks;     /* of an agent whose spec does not say: 1 */
    uint32_t max_asks;      /* of one agent that wait at once; more are HF_ELIMIT: 32 */
    uint32_t claim_spread;  /* a claim takes one of so many that are equally good: 8 */
    uint32_t max_guests;    /* agents of other hosts that may be started here: 64 */
    bool make_ahead;        /* a process whose start will probably be ordered: yes */
    struct hf_restart_policy restart; /* while nobody leads */
    struct hf_chain_policy chain;     /* of a recovery's checkpoints */
};

/* The numbers above. Cannot fail. */
struct hf_node_policy hf_node_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_node_policy_check(const struct hf_node_policy *policy,
                         const char **ret_why) HF_MUST_CHECK;

/* What the keeper still holds of an agent when a link begins. */
struct hf_node_held {
    const char *instance_id; /* of the process; NULL: there is none */
    int32_t pid;
    int64_t start_time;
    bool begun;         /* it was let go; else it is held before its program begins */
    bool frozen;        /* it stands still */
    int64_t lease;      /* it was registered under, and ... */
    int64_t create_rev; /* ... as; 0: not that we know */
    int32_t generation;
    bool leaving;           /* it said goodbye, ... */
    const char *leave_text; /* ... and why; may be NULL */
    /* Of one that has ended: what was made in good time for its successor, and is held. It may
     * have been registered. NULL: nothing. */
    const char *spare_id;
    int32_t spare_pid;
    int64_t spare_start_time;
    hf_ms ping;        /* as in struct hf_event_process */
    bool started;      /* this agentd has let a process of this agent go before */
    bool spec_written; /* ... or has seen its spec in etcd: where it is missing, it was removed
                        */
};

/* An agent that is configured here. */
struct hf_node_agent_config {
    const char *name;
    const Holdfast__V1__Spec *spec;
    bool foreign; /* not configured here: the spec is that of its process, and not ours to write
                   */
    struct hf_node_held held;
};

struct hf_node_config {
    const char *ns; /* everything is copied */
    const char *host;
    const char *boot_id;
    const Holdfast__V1__Host *record; /* pools, capacity, launchers, version */
    const struct hf_node_agent_config *agents;
    size_t agent_count;
    struct hf_node_policy policy;
    uint64_t seed;    /* random: of tables whose keys others choose, and of ids */
    uint64_t mutants; /* rules that are missing (core/mutant.h): 0 but in tests */
};

/* NULL: no memory. The policy must have passed its check, the names theirs. Processes that the
 * keeper holds of agents that are not configured any more are given as well, with their spec:
 * it is on the caller to leave nobody out. */
struct hf_node *hf_node_new(const struct hf_node_config *cfg);
void hf_node_free(struct hf_node *node);

/* Takes the event in. HF_ENOMEM: it was not, and a change keeps its record. */
int hf_node_step(struct hf_node *node, struct hf_event *event, hf_ms now) HF_MUST_CHECK;

/* 1: *ret is an intent, to be released with hf_intent_done; ask again. 0: none now. HF_ENOMEM:
 * ask again later. */
int hf_node_next(struct hf_node *node, hf_ms now, hf_ms wall, uint32_t random,
                 struct hf_intent *ret) HF_MUST_CHECK;

/* When to give it HF_EVENT_TIME at the latest, and to ask for intents: `now` when there may be
 * some, HF_NODE_NEVER when only an event changes anything. */
hf_ms hf_node_deadline(const struct hf_node *node, hf_ms now);

/* What must be mirrored, as what could be read: single keys and scopes, none within another.
 * Returns how many, at most HF_NODE_RANGES; with many agents whole kinds instead of each. The
 * names are borrowed until the version changes. */
size_t hf_node_get_ranges(const struct hf_node *node,
                          struct hf_intent_read ret_ranges[HF_NODE_RANGES]);

/* What an agent was asked and did not answer yet; NULL: nothing. Borrowed until the next call.
 */
const Holdfast__V1__Health__Inquiry *hf_node_get_inquiry(const struct hf_node *node,
                                                         const char *agent);

/* Changes when the ranges do (an agent of another host is to be started here): then the mirror
 * is opened anew, which HF_EVENT_FORGET tells. */
uint64_t hf_node_get_ranges_version(const struct hf_node *node);

/* One key that hangs on the lease, for its verification. */
struct hf_node_key {
    struct hf_key key; /* the name is borrowed */
    int64_t create_rev;
};

/* Gives up to `max` keys that must exist under `lease` and returns how many there are. Lesser
 * or no keys than what runs prove nothing: HF_EAGAIN while a process is let run that is not
 * registered under that lease. One that stands still does so until it is, and one that holds
 * needs no lease: neither keeps the others waiting. 0: nothing runs at all. */
int hf_node_get_keys(const struct hf_node *node, int64_t lease, struct hf_node_key *ret_keys,
                     size_t max) HF_MUST_CHECK;

/* clang-format off */
#define HF_NODE_STATE_MAP(X)                                                                   \
    X(ABSENT,   "absent")    /* no process; `why` says whether there will be one */            \
    X(STARTING, "starting")  /* made, not let go yet */                                        \
    X(RUNNING,  "running")   /* registered, or `why` says how that is going */                 \
    X(REJOINING,"rejoining") /* the lease was lost; it is to be registered anew */             \
    X(ENDING,   "ending")    /* it was told to end */                                          \
    X(ENDED,    "ended")     /* the process is gone; its end is still to be written */         \
    X(STUCK,    "stuck")     /* it survived SIGKILL */
/* clang-format on */

enum hf_node_state {
#define X(name, text) HF_NODE_##name,
    HF_NODE_STATE_MAP(X)
#undef X
};

/* What holds of an agent here, for /v1/self, logs and `explain`. Borrowed until the next call.
 */
struct hf_node_view {
    enum hf_node_state state;
    const char *why;         /* a sentence */
    const char *next;        /* what happens next */
    hf_ms at;                /* when at the latest, if by itself; HF_NODE_NEVER */
    const char *instance_id; /* NULL without a process */
    int32_t pid;
    bool registered; /* `life` holds */
    bool frozen;
    bool jeopardy; /* nothing new may begin */
    bool ready;
    struct hf_life life;
    int64_t incarnation; /* the fencing token; 0 without a life */
    hf_ms ttl;
    const char *task; /* the first that it owns, as far as we know; NULL */
    size_t asks;
    bool stopped;                   /* it is not wanted running */
    bool held;                      /* a person has to release it before it is started again */
    bool spec_written;              /* its spec stood in etcd since this agentd began */
    bool told;                      /* everything that etcd has of it was told: */
    const Holdfast__V1__Exit *exit; /* its last end; NULL for none */
    const Holdfast__V1__Report *report; /* its last report; NULL for none */
};

/* HF_ENOENT when it is not known here. */
int hf_node_get_view(const struct hf_node *node, const char *agent, hf_ms now,
                     struct hf_node_view *ret_view) HF_MUST_CHECK;

/* The task that it would get if it claimed one now; NULL for none. Borrowed until the next
 * call. */
const char *hf_node_get_waiting(const struct hf_node *node, const char *agent);

/* The name of the index-th agent; NULL past the last. */
const char *hf_node_get_agent(const struct hf_node *node, size_t index);

/* The id that the controller gave this namespace; empty before one was there. Borrowed until
 * the next call. */
const char *hf_node_get_cluster(const struct hf_node *node);

/* generation * 2^48 + create_revision: grows from life to life. */
int64_t hf_node_incarnation(const struct hf_life *life);

/* "running" ...; "?" for a value that is none. A static string. */
const char *hf_node_state_name(enum hf_node_state state);

#endif
