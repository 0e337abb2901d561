/* stall.h - decides when an agent that stands still with a task is asked why, and what follows
 * when it does not answer.
 *
 * Pure: no clock, no allocation, no I/O. All moments are of the clock that `now` is of: the
 * caller's own, on which it saw things happen.
 *
 * An agent stands still when for `progress_max` neither it said anything but that it lives nor
 * its task moved, when the task should be done by now, and when nothing that it announced
 * (busy, waiting, parked, draining) explains it. Then it is asked, once, and has
 * `inquiry_answer` to answer: anything that it says or does does that. Guarantees:
 *   - nothing is done to an agent whose heartbeats come; a person is told instead, once;
 *   - nor to one that never sent any: what never began cannot have stopped;
 *   - a task for which nobody said when it should be done is never asked about. */
#ifndef HF_CORE_STALL_H
#define HF_CORE_STALL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_STALL_NEVER INT64_MAX

struct hf_stall_policy {
    hf_ms progress_max;   /* a task that should be done may stand still for so long */
    hf_ms inquiry_answer; /* and its owner has this long to answer */
};

/* 30 min, 5 min. Cannot fail. */
struct hf_stall_policy hf_stall_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_stall_policy_check(const struct hf_stall_policy *policy,
                          const char **ret_why) HF_MUST_CHECK;

/* What is known of an agent and one task of it. */
struct hf_stall_case {
    hf_ms moved;     /* when it last said something, or its task moved */
    hf_ms expected;  /* when the task should be done; NEVER: nobody said */
    hf_ms explained; /* what it announced lasts until then; NEVER: has no end; 0: it did not */
    bool asked;      /* it was, and what follows holds */
    bool answered;   /* it said something since, or the task moved */
    bool told;       /* a person was told that it did not */
    hf_ms answer_by;
    bool beats;    /* it has sent heartbeats in this life */
    hf_ms heard;   /* when a report of it was last seen, or when we began to look */
    bool hears;    /* the former */
    hf_ms cadence; /* how often one must be seen while its heartbeats come */
};

enum hf_stall_due {
    HF_STALL_FINE,     /* it does not stand still, or not for long enough */
    HF_STALL_ASK,      /* ask it */
    HF_STALL_ASKED,    /* it was asked, and there is time left, or nothing more to do */
    HF_STALL_ANSWERED, /* the inquiry is over */
    HF_STALL_TELL,     /* tell a person */
    HF_STALL_END,      /* end it */
};

struct hf_stall_view {
    enum hf_stall_due due;
    const char *why;  /* a sentence; static */
    const char *next; /* likewise: what happens then, unless it answers */
    hf_ms at;         /* when to look again; `now` if something is due, NEVER: not by itself */
};

/* Cannot fail. */
struct hf_stall_view hf_stall_judge(const struct hf_stall_policy *policy,
                                    const struct hf_stall_case *facts, hf_ms now);

/* The last inquiry of an agent, if that was for this life, as one number, and is not answered;
 * else NULL. */
const Holdfast__V1__Health__Inquiry *hf_stall_open(const Holdfast__V1__Health *health,
                                                   int64_t life);

/* Whether what is reported answers the inquiry. `said_at` of the agentd that wrote both. */
bool hf_stall_is_answer(const Holdfast__V1__Health__Inquiry *inquiry, hf_ms said_at);

#endif
