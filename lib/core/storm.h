/* storm.h - decides how fast agents that nobody saw die may be given up: as they come, slowly,
 * or not at all for a while, when so many vanish that it is more likely that etcd, or we, are
 * wrong.
 *
 * Pure: no clock, no allocation, no I/O; a plain value that may be copied. It is told of leases
 * that are lost and come back, of what casts doubt on etcd, and of proofs that etcd is well;
 * what holds at `now` follows from these. A leader begins with an empty one.
 *
 *     NORMAL   restarts and resets go at `normal`
 *     PARTIAL  graces are multiplied, and they go at `partial`: many leases were lost at once,
 *              until `partial_for` after that; or there is doubt
 *     FULL     nothing of it goes: nearly all were lost at once, or the last one; until
 * somebody is back, `well_for` has passed in which etcd was proven well, `hold_max` has passed,
 * or a person says so; then on as PARTIAL
 *
 * Only what rests on silence is paced: an end that an agentd saw, and work that is handed to a
 * live agent, never is.
 *
 * Guarantees:
 *   - in any span of time d no more than burst + rate * d go, with the largest of both in it;
 *     a new leader has nothing saved up, so that a series of them cannot multiply the burst;
 *   - FULL is entered by a loss, or by a person, never because time passes;
 *   - in one episode, from NORMAL to NORMAL, nothing is held for longer than `hold_max` in all,
 *     unless a person holds it;
 *   - silence is no proof: without reports that etcd is well, only somebody's return, a person
 *     or `hold_max` ends FULL;
 *   - an episode has one alert, and a second one if it becomes FULL after the first. */
#ifndef HF_CORE_STORM_H
#define HF_CORE_STORM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

/* What a person's entry of the audit trail says. */
#define HF_STORM_WORD_PROCEED "storm proceed"
#define HF_STORM_WORD_HOLD    "storm hold"

#define HF_STORM_NEVER   INT64_MAX
#define HF_STORM_BUCKETS 20

/* So many in a second, or all agents in `all_within`, whichever is more. */
struct hf_storm_rate {
    uint32_t per_second;
    hf_ms all_within;
    uint32_t burst;
};

struct hf_storm_policy {
    hf_ms window;            /* in which losses count as one event */
    uint32_t lost_min;       /* fewer are no storm, unless nobody is left */
    uint8_t partial_percent; /* of the hosts lost in the window */
    uint8_t full_percent;
    struct hf_storm_rate normal;
    struct hf_storm_rate partial;
    uint8_t grace_factor; /* of PARTIAL and FULL */
    hf_ms partial_for;    /* after the last loss of a storm, or the end of FULL */
    hf_ms doubt_margin;   /* doubt lasts a TTL and this */
    hf_ms well_for;       /* etcd must be proven well for so long ... */
    hf_ms proof_every;    /* ... by reports that are not further apart than this */
    hf_ms hold_max;
};

/* 10 s, 3, 30 %, 80 %; 10/s or N in 60 s, burst 50; 1/s or N in 240 s, burst 5; 2; 60 s, 5 s,
 * 60 s, 25 s, 1 h. Cannot fail. */
struct hf_storm_policy hf_storm_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_storm_policy_check(const struct hf_storm_policy *policy,
                          const char **ret_why) HF_MUST_CHECK;

/* How things are. */
struct hf_storm_facts {
    uint32_t hosts; /* that have a record and have not left */
    uint32_t live;  /* of these */
};

enum hf_storm_state { HF_STORM_NORMAL, HF_STORM_PARTIAL, HF_STORM_FULL };

/* What makes it doubtful that a lost lease means anything. */
/* clang-format off */
#define HF_STORM_DOUBT_MAP(X)                                                                  \
    X(TERM,    "etcd has changed its leader a moment ago: lost leases may mean nothing")       \
    X(UNREST,  "etcd changes its leader again and again: leases of dead hosts may not expire") \
    X(SPACE,   "etcd has no space left a moment ago: lost leases may mean nothing")            \
    X(CORRUPT, "members of etcd have different data: lost leases may mean nothing")            \
    X(HISTORY, "etcd's history went back a moment ago: lost leases may mean nothing")
/* clang-format on */

enum hf_storm_doubt {
#define X(name, text) HF_STORM_DOUBT_##name,
    HF_STORM_DOUBT_MAP(X)
#undef X
};

/* Why it is as it is; doubt apart, which may come on top. */
enum hf_storm_cause {
    HF_STORM_MANY,     /* were lost at once */
    HF_STORM_MOST,     /* likewise */
    HF_STORM_ALL,      /* nobody is left */
    HF_STORM_BACK,     /* FULL ended: somebody came back, */
    HF_STORM_PROVEN,   /* etcd was well for long enough, */
    HF_STORM_TOO_LONG, /* or hold_max was over */
    HF_STORM_PERSON,   /* somebody said so */
};

/* Read-only for callers. */
struct hf_storm {
    struct hf_storm_policy policy;
    struct {
        int64_t slot; /* which of all the time there is */
        uint32_t lost;
    } buckets[HF_STORM_BUCKETS];
    bool full;
    hf_ms full_since; /* valid if full */
    hf_ms held;       /* in this episode, before full_since */
    bool was_full;    /* in this episode: the next is valid */
    hf_ms first_full;
    hf_ms partial_until;       /* by losses, or since FULL ended */
    enum hf_storm_cause cause; /* of these */
    hf_ms doubt_until;
    enum hf_storm_doubt doubt;
    hf_ms since; /* the present state, or the last one but NORMAL */
    hf_ms anew;
    bool proven; /* the next two are valid */
    hf_ms well_since;
    hf_ms proof_at;
    enum hf_storm_state worst; /* of this episode, by losses */
    enum hf_storm_state told;  /* of that */
    int64_t level;             /* what is saved up, in billionths of one */
    hf_ms level_at;
};

/* What holds at a moment. */
struct hf_storm_view {
    enum hf_storm_state state;
    const char *why;  /* a sentence; static */
    const char *next; /* what happens next, or what would change it; static */
    hf_ms since;      /* not valid for NORMAL */
    hf_ms at;         /* when it changes, if all stays as it is; HF_STORM_NEVER for NORMAL,
                       * and for what a person holds */
    bool by_person;   /* it is FULL because a person holds it */
    uint8_t grace_factor;
    hf_ms anew; /* no suspicion counts from before this */
};

/* Begins at `now`, with nothing saved up. `policy` must have passed its check. */
void hf_storm_init(struct hf_storm *storm, const struct hf_storm_policy *policy, hf_ms now);

/* We begin to lead, or learn everything anew: nothing counts, and nothing is saved up. Doubt
 * stays, and so does what a person holds. */
void hf_storm_on_begin(struct hf_storm *storm, hf_ms now);

/* So many hosts lost their lease, not counting those that left; `facts` are those afterwards.
 * Hosts that a new leader misses are lost when it begins. */
void hf_storm_on_lost(struct hf_storm *storm, uint32_t count,
                      const struct hf_storm_facts *facts, hf_ms now);

/* A host that was lost has a lease again. */
void hf_storm_on_back(struct hf_storm *storm, hf_ms now);

/* Leases of `ttl`, the longest there is, may be lost for this reason. Say it again for as long
 * as it lasts. */
void hf_storm_on_doubt(struct hf_storm *storm, enum hf_storm_doubt doubt, hf_ms ttl, hf_ms now);

/* A look at etcd, and at ourselves: `well` if its members agree, a write of ours was committed
 * and our loop did not stall since the last look. */
void hf_storm_on_proof(struct hf_storm *storm, bool well, hf_ms now);

/* A person lets it go on: FULL ends, or PARTIAL, and what was counted is forgotten. */
void hf_storm_on_proceed(struct hf_storm *storm, hf_ms now);

/* A person holds it: FULL, until a person says otherwise. */
void hf_storm_on_hold(struct hf_storm *storm, hf_ms now);

/* Asking changes nothing. Cannot fail. */
struct hf_storm_view hf_storm_get(const struct hf_storm *storm, hf_ms now);

/* What somebody wants to do about an agent or a task. */
/* clang-format off */
#define HF_STORM_ACT_MAP(X)                                                                    \
    X(RESTART_UNSEEN, true)  /* start an agent that nobody saw die */                          \
    X(RESET_UNSEEN,   true)  /* take a task from one, where no start goes with it */           \
    X(RESTART_SEEN,   false) /* likewise, but an agentd saw it */                              \
    X(RESET_SEEN,     false)                                                                   \
    X(PROMOTE,        false) /* let live agents have a task that waits */
/* clang-format on */

enum hf_storm_act {
#define X(name, paced) HF_STORM_##name,
    HF_STORM_ACT_MAP(X)
#undef X
};

struct hf_storm_decision {
    bool allowed;
    const char *why;
    const char *next;
    hf_ms at; /* when to ask again, if nothing happens; `now` if allowed */
};

/* Asks to act once, in a fleet of so many agents; what is allowed is counted, so ask only when
 * it is then done. */
struct hf_storm_decision hf_storm_take(struct hf_storm *storm, enum hf_storm_act act,
                                       uint32_t agents, hf_ms now);

/* True once when a person should be told of a storm. Doubt alone is not told, nor what a person
 * did. */
bool hf_storm_take_alert(struct hf_storm *storm);

/* "NORMAL" ..., "RESTART_UNSEEN" ...; "?" for a value that is none. Static strings. */
const char *hf_storm_state_name(enum hf_storm_state state);
const char *hf_storm_act_name(enum hf_storm_act act);

#endif
