/* restart.h - decides whether an agent that is gone is started again: now, later, elsewhere,
 * when there is work, or not before a person says so.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; a plain value that may be copied.
 * Level- triggered: the state is what etcd holds in health/<agent>, and the answer follows from
 * it and from how things are, not from how often a death was reported. A time that was drawn is
 * kept until the start is ordered, so whoever asks again, a new leader, too, gets the same
 * answer. Times are of the cluster clock; an agentd that restarts its own agents while nobody
 * leads uses its own clock and its own state.
 *
 * Guarantees:
 *   - an agent that is wanted stopped, is live, has a start ordered, or is held is not started;
 *   - of any `limit` + 1 starts in a row, the last is at least `window` after the first,
 *     unless a person released the agent in between;
 *   - every death x policy pair has a rule: a forgotten one does not compile.
 *
 * A person who says that it shall run has the last word about a death that is not followed by a
 * start by itself: one that left, finished or could not be started is started, once, anywhere.
 *
 * `left` means no under every policy: the agent itself said that it is done. `terminated` asks
 * `wanted` alone, even under `never`: whoever ends an agent that shall not come back says so
 * there. A death of a kind that only a newer version knows counts as one of unknown cause. */
#ifndef HF_CORE_RESTART_H
#define HF_CORE_RESTART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/backoff.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_RESTART_NEVER INT64_MAX

struct hf_restart_policy {
    struct hf_backoff_policy backoff;
    uint32_t limit; /* more starts than this within `window` hold the agent */
    hf_ms window;
};

/* At once, 1 s doubling to 60 s, forgotten after 10 min; 10 in 10 min. Cannot fail. */
struct hf_restart_policy hf_restart_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_restart_policy_check(const struct hf_restart_policy *policy,
                            const char **ret_why) HF_MUST_CHECK;

/* What is stored of one agent. Zero-initialise. */
struct hf_restart {
    struct hf_backoff starts;
    bool held;     /* until a person releases it */
    bool planned;  /* `next_at` is valid */
    hf_ms next_at; /* drawn for the start that is to be ordered next */
};

/* How things are. */
struct hf_restart_case {
    Holdfast__V1__Exit__Kind death; /* of its last incarnation */
    Holdfast__V1__Spec__Restart restart;
    Holdfast__V1__Wanted__State wanted;
    bool live;           /* it is here (again) */
    bool ordered;        /* a start command is outstanding */
    bool has_work;       /* a task of its role is pending */
    bool host_gone;      /* the host that it died on has no lease */
    bool has_other_host; /* some host that has not failed to start it could take it */
    bool asked;          /* a person has said since it died that it shall run */
};

enum hf_restart_verdict {
    HF_RESTART_START_AT,   /* order a start at .at */
    HF_RESTART_ELSEWHERE,  /* likewise, but not on the host that it died on */
    HF_RESTART_ON_DEMAND,  /* when its role has work */
    HF_RESTART_NOT_WANTED, /* it is meant to be gone */
    HF_RESTART_HELD,       /* a person has to release it */
    HF_RESTART_DUPLICATE,  /* already taken care of */
};

struct hf_restart_decision {
    enum hf_restart_verdict verdict;
    const char *why;  /* a sentence; static */
    const char *next; /* what happens next, or what would change it; static */
    hf_ms at;         /* when it is due; HF_RESTART_NEVER unless START_AT or ELSEWHERE */
    uint32_t attempt; /* 1-based, since the last healthy life; for START_AT and ELSEWHERE */
    bool alert;       /* it became HELD, or has a process that cannot be killed: said once */
};

/* Decides for an agent that has died at some time. Sets `held`, `planned` and `next_at`, which
 * the caller stores with what it does about the decision. Cannot fail. */
struct hf_restart_decision hf_restart_decide(struct hf_restart *restart,
                                             const struct hf_restart_policy *policy,
                                             const struct hf_restart_case *facts, hf_ms now,
                                             uint32_t random);

/* A start was ordered. */
void hf_restart_on_ordered(struct hf_restart *restart, hf_ms now);

/* A person wants it restarted: nothing that was counted stands against it any more. */
void hf_restart_on_released(struct hf_restart *restart);

/* "START_AT" ...; "?" for a value that is none. Static strings. */
const char *hf_restart_verdict_name(enum hf_restart_verdict verdict);

#endif
