/* task.h - decides what may happen to a task, and what it becomes: one table of states and
 * events.
 *
 * Pure: no clock, no randomness, no allocation, no I/O. Every state x event pair has a cell; a
 * forgotten one does not compile. A cell says what the task becomes or why not; whether the one
 * who asks may do it (is the owner, leads, is a person) is for the guards of the transaction.
 *
 * Guarantees, by the table:
 *   - completed, failed, cancelled and needs_review are left by RETRY and CANCEL alone, which
 *     are a person's, and completed is not left at all: whoever was told of a result keeps it;
 *   - a task is owned in acknowledged and in_progress and nowhere else; an owner comes by
 *     CLAIM and START_BY_COMMAND alone;
 *   - no event makes a task disappear;
 *   - from every state that is not final a person can CANCEL it and the leader can send it to
 *     REVIEW. */
#ifndef HF_CORE_TASK_H
#define HF_CORE_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_TASK_NEVER INT64_MAX

/* clang-format off */
#define HF_TASK_EVENT_MAP(X)                                                                   \
    X(SUBMIT,           "submit")           /* by its submitter: claimable at once */          \
    X(ENQUEUE,          "enqueue")          /* likewise, behind a concurrency limit */         \
    X(PROMOTE,          "promote")          /* its backoff or limit is over */                 \
    X(DEMOTE,           "demote")           /* more of its role run than may */                \
    X(UNRESERVE,        "unreserve")        /* the start that it waited for does not come */   \
    X(CLAIM,            "claim")            /* an agent takes it */                            \
    X(START_BY_COMMAND, "start_by_command") /* an agent is started with it */                  \
    X(START,            "start")            /* by its owner, as are the next seven */          \
    X(PROGRESS,         "progress")                                                            \
    X(CHECKPOINT,       "checkpoint")                                                          \
    X(RESTORE,          "restore")          /* it is given a checkpoint to go on from */       \
    X(COMPLETE,         "complete")                                                            \
    X(FAIL,             "fail")                                                                \
    X(RELEASE,          "release")          /* cannot or need not go on; anyone may */         \
    X(ADOPT,            "adopt")            /* the owner is back as another incarnation */     \
    X(RESET,            "reset")            /* its owner is gone: claimable at once */         \
    X(RESET_LATER,      "reset_later")      /* likewise, after a backoff */                    \
    X(REVIEW,           "review")           /* recovering it is over: a person has to look */  \
    X(CANCEL,           "cancel")           /* by a person, as are the next two */             \
    X(RETRY,            "retry")                                                               \
    X(RETRY_LOST,       "retry_lost")       /* likewise; files that nobody has are given up */
/* clang-format on */

enum hf_task_event {
#define X(name, text) HF_TASK_##name,
    HF_TASK_EVENT_MAP(X)
#undef X
};

/* What became of an event. */
struct hf_task_step {
    bool allowed;
    Holdfast__V1__Task__State state; /* afterwards; valid if allowed */
    const char *why; /* when refused: a sentence that says what stands against it; else NULL */
};

/* `task` is NULL when there is none. Cannot fail: a state that only a newer version knows
 * refuses everything. */
struct hf_task_step hf_task_next(const Holdfast__V1__Task *task, enum hf_task_event event);

/* Somebody works on it; it has ended; it stands in the index of what may be claimed. */
bool hf_task_is_owned(Holdfast__V1__Task__State state);
bool hf_task_is_final(Holdfast__V1__Task__State state);
bool hf_task_is_claimable(Holdfast__V1__Task__State state);

/* How many tasks of one role may be pending, acknowledged or in progress at once; 0: any. */
struct hf_task_limit {
    const char *role;
    uint32_t running_max;
};

/* How long a task may wait for somebody else, and be of use; and how many run at once. */
struct hf_task_policy {
    hf_ms start_within;   /* acknowledged but not started: released */
    hf_ms alert_after;    /* pending while no agent of its role is there: somebody is told, */
    hf_ms review_after;   /* and a person has to look */
    hf_ms keep_chain;     /* completed or cancelled: its checkpoints are removed */
    uint32_t running_max; /* of every role, as above, ... */
    const struct hf_task_limit *limits; /* ... but for these; borrowed */
    size_t limit_count;
};

/* Of that role; 0: any number. */
uint32_t hf_task_policy_get_limit(const struct hf_task_policy *policy, const char *role);

/* 2 min, 5 min, 24 h, 1 h; no limits. Cannot fail. */
struct hf_task_policy hf_task_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_task_policy_check(const struct hf_task_policy *policy,
                         const char **ret_why) HF_MUST_CHECK;

enum hf_task_due {
    HF_TASK_FINE,
    HF_TASK_ALERT,       /* tell somebody that no agent comes for it */
    HF_TASK_DUE_RELEASE, /* RELEASE it */
    HF_TASK_DUE_REVIEW,  /* REVIEW it */
};

/* What holds of a task that waits, why, and what is next and when (NEVER: nothing by itself).
 */
struct hf_task_wait {
    enum hf_task_due due;
    const char *why;
    const char *next;
    hf_ms at;
};

/* `since` is when it came into its state or, if that was later, when its role lost its last
 * agent; it is of the clock that `now` is of. Cannot fail. */
struct hf_task_wait hf_task_judge_wait(const struct hf_task_policy *policy,
                                       Holdfast__V1__Task__State state, bool role_has_agent,
                                       hf_ms since, hf_ms now);

/* "claim", "in_progress" ...; "?" for a value that is none. Static strings. */
const char *hf_task_event_name(enum hf_task_event event);
const char *hf_task_state_name(Holdfast__V1__Task__State state);

#endif
