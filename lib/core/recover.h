/* recover.h - decides what becomes of a task whose owner is gone: recovered at once, later, or
 * not before a person has looked.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; plain values that may be copied. The
 * state is what etcd holds in recoveries/<task>, and in health/<agent> of the owner; nothing
 * else counts, so that a new leader goes on where the last one stopped. What was drawn is
 * stored with the reset, and whoever asks again reads it. Times are of the cluster clock.
 *
 * A recovery begins with a reset and has an outcome: ORDERED until it is known, then RECOVERED
 * (a successor has had the task for `probation`, or brought it to an end), DIED (so has the
 * successor), REFUSED or WITHDRAWN (the start that was ordered with it did not come; the task
 * is for anyone then, and the recovery goes on). A successor that left, or was ended because
 * somebody said so, is WITHDRAWN, too: that speaks against no checkpoint. Success closes the
 * counting. It is counted for the checkpoint that the successor was given to go on from, as
 * its task says (Task.restored), which may be older than the one that was thought of when the
 * recovery was ordered.
 *
 * Guarantees, whoever leads and however often that changes:
 *   - between two successes a task is recovered `limit` times at most; then a person is asked;
 *   - of any `agent_limit` + 1 deaths of one agent that were followed by a recovery, the last
 *     is at least `agent_window` after the first;
 *   - two recoveries of a task without a success between them are apart by the delay of the
 *     backoff, less its jitter;
 *   - a success is counted when the task has ended, or when somebody owns it `probation` after
 *     a leader saw somebody with it, and no leader saw it without an owner in between.
 * A person who retries a task deletes its record, and with it all that was counted. */
#ifndef HF_CORE_RECOVER_H
#define HF_CORE_RECOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/backoff.h"
#include "core/moments.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_RECOVER_NEVER    INT64_MAX
#define HF_RECOVER_OUTCOMES 16 /* that are remembered; no limit can be higher */

struct hf_recover_policy {
    struct hf_backoff_policy backoff;
    uint32_t limit;       /* recoveries of one task before a person is asked */
    uint32_t agent_limit; /* of one agent's deaths in `agent_window`, likewise */
    hf_ms agent_window;
    hf_ms probation; /* this long with one owner is a success */
};

/* At once, 60, 120, 240 s; 3 per task; 5 per hour and agent; 15 min. Cannot fail. */
struct hf_recover_policy hf_recover_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_recover_policy_check(const struct hf_recover_policy *policy,
                            const char **ret_why) HF_MUST_CHECK;

struct hf_recover_outcome {
    hf_ms at;           /* when it was ordered; when it became known, if that is all we know */
    int64_t checkpoint; /* that it is to go on from, or did; 0: the task starts over */
    Holdfast__V1__Recovery__Result result;
    bool reserved; /* it waits for a successor that is started with it */
};

/* What is stored of one task. Zero-initialise. */
struct hf_recover {
    uint32_t attempts;     /* recoveries since the last success */
    hf_ms next_at;         /* queued until then; 0: not queued for this */
    hf_ms probation_until; /* 0: nobody has had it since */
    struct hf_recover_outcome outcomes[HF_RECOVER_OUTCOMES]; /* oldest first */
    uint8_t outcome_count;
};

/* What is stored of the agent that owned it. Zero-initialise. */
struct hf_recover_agent {
    struct hf_backoff recovered; /* Health.recovered_at */
    int64_t recovered_upto;      /* the newest of its lives whose end is counted there */
};

/* How things are. */
struct hf_recover_case {
    int64_t incarnation;            /* that owned the task, as one growing number */
    Holdfast__V1__Exit__Kind death; /* of that life */
    int64_t restored;               /* what it went on from; 0: from the beginning */
    int64_t checkpoint;             /* the newest of the task; 0: there is none */
    uint32_t poison;                /* a successor passes over what killed so many */
    bool successor; /* the owner is started again in the same step, so it may be reserved */
};

enum hf_recover_verdict {
    HF_RECOVER_NOW,    /* reset it: pending, for its successor alone if .reserved */
    HF_RECOVER_LATER,  /* reset it: queued until .at */
    HF_RECOVER_REVIEW, /* needs_review */
    HF_RECOVER_WAIT,   /* the cluster clock is not known yet: no time can be drawn */
};

struct hf_recover_decision {
    enum hf_recover_verdict verdict;
    const char *why;  /* a sentence; static */
    const char *next; /* what happens next, or what would change it; static */
    hf_ms at;         /* when it may be claimed; HF_RECOVER_NEVER for REVIEW and WAIT */
    uint32_t attempt; /* 1-based, since the last success; for NOW and LATER */
    bool reserved;
    bool alert; /* somebody has to be told; a task comes to REVIEW once */
};

/* Decides for a task whose owner is gone. Changes nothing. Cannot fail. */
struct hf_recover_decision hf_recover_decide(const struct hf_recover *recover,
                                             const struct hf_recover_agent *agent,
                                             const struct hf_recover_policy *policy,
                                             const struct hf_recover_case *facts, hf_ms now,
                                             uint32_t random);

/* Makes of both records what is to be stored with that decision, in the step that carries it
 * out. The agent is counted once for each death, however many tasks it had. */
void hf_recover_on_decided(struct hf_recover *recover, struct hf_recover_agent *agent,
                           const struct hf_recover_case *facts,
                           const struct hf_recover_decision *decision, hf_ms now);

/* What a record asks for by itself, as its task stands. */
enum hf_recover_due {
    HF_RECOVER_FINE,
    HF_RECOVER_PROMOTE,  /* queued, and as far as recovery goes it may be pending */
    HF_RECOVER_TAKEN,    /* somebody has it: hf_recover_on_taken */
    HF_RECOVER_RELEASED, /* nobody has it any more: hf_recover_on_released */
    HF_RECOVER_CLOSE,    /* it is over: hf_recover_on_closed */
};

struct hf_recover_view {
    enum hf_recover_due due;
    const char *why;
    const char *next;
    hf_ms at; /* when to look again if nothing happens; `now` if due, or HF_RECOVER_NEVER */
};

/* Asking changes nothing. Cannot fail. */
struct hf_recover_view hf_recover_judge(const struct hf_recover *recover,
                                        Holdfast__V1__Task__State state, hf_ms now);

/* A successor has the task: its probation begins. */
void hf_recover_on_taken(struct hf_recover *recover, const struct hf_recover_policy *policy,
                         hf_ms now);

/* It gave the task back: the recovery goes on, its probation begins anew with the next owner.
 */
void hf_recover_on_released(struct hf_recover *recover);

/* Nobody will be started with the task, which is for anyone now, and nothing says so yet. What
 * its leader withdrew is written as that in the same step: so its host has refused it. */
bool hf_recover_is_refused(const struct hf_recover *recover, const Holdfast__V1__Task *task);

/* The start that was ordered with it did not come: `refused` by the host, or `withdrawn`. */
void hf_recover_on_unstarted(struct hf_recover *recover, Holdfast__V1__Recovery__Result result);

/* Probation is over, or the task is final: nothing that was counted stands against it. */
void hf_recover_on_closed(struct hf_recover *recover, Holdfast__V1__Task__State state,
                          int64_t restored, hf_ms now);

/* What the recovery under way is to go on from; 0: the task starts over. */
int64_t hf_recover_checkpoint(const struct hf_recover *recover);

/* The newest up to `checkpoint` that killed fewer than `poison` successors; 0: none did. */
int64_t hf_recover_newest(const struct hf_recover *recover, int64_t checkpoint,
                          uint32_t poison);

/* How many successors died that went on from this checkpoint, as far as is remembered. */
uint32_t hf_recover_deaths(const struct hf_recover *recover, int64_t checkpoint);

/* From the record; NULL: there is none. Cannot fail: what makes no sense counts as nothing. */
struct hf_recover hf_recover_load(const Holdfast__V1__Recovery *record);
struct hf_recover_agent hf_recover_agent_load(const Holdfast__V1__Health *health);

/* The record to store. It points into itself and to `task`: do not copy it. */
struct hf_recover_record {
    Holdfast__V1__Recovery record;
    Google__Protobuf__Timestamp next_at;
    Google__Protobuf__Timestamp probation_until;
    Holdfast__V1__Recovery__Outcome *list[HF_RECOVER_OUTCOMES];
    struct {
        Holdfast__V1__Recovery__Outcome outcome;
        Google__Protobuf__Timestamp at;
        Holdfast__V1__CheckpointRef checkpoint;
    } outcomes[HF_RECOVER_OUTCOMES];
};

void hf_recover_store(const struct hf_recover *recover, const char *task,
                      struct hf_recover_record *ret_record);

/* "NOW" ..., "PROMOTE" ...; "?" for a value that is none. Static strings. */
const char *hf_recover_verdict_name(enum hf_recover_verdict verdict);
const char *hf_recover_due_name(enum hf_recover_due due);

#endif
