#include "core/stall.h"

#include <stddef.h>

#include "core/moments.h"

#define LIMIT_MAX INT64_C(2592000000) /* 30 days */

enum { MISSED = 3 }; /* heartbeats in a row that say that they have stopped */

struct hf_stall_policy hf_stall_policy_default(void)
{
    return (struct hf_stall_policy){ .progress_max = 1800000, .inquiry_answer = 300000 };
}

int hf_stall_policy_check(const struct hf_stall_policy *p, const char **ret_why)
{
    if (p->progress_max <= 0 || p->progress_max > LIMIT_MAX)
        *ret_why = "task.progress_max must be positive and not above 30 days";
    else if (p->inquiry_answer <= 0 || p->inquiry_answer > LIMIT_MAX)
        *ret_why = "task.inquiry_answer must be positive and not above 30 days";
    else
        return HF_OK;
    return HF_EINVAL;
}

static hf_ms later(hf_ms a, hf_ms b)
{
    return a > b ? a : b;
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_STALL_NEVER - delay ? HF_STALL_NEVER : moment + delay;
}

static struct hf_stall_view judge_quiet(const struct hf_stall_policy *p,
                                        const struct hf_stall_case *c, hf_ms now)
{
    hf_ms due = later(after(c->moved, p->progress_max), later(c->expected, c->explained));

    if (now < due)
        return (struct hf_stall_view){ .due = HF_STALL_FINE,
                                       .why = "it moves, has time, or said why it does not",
                                       .next = "it is asked why",
                                       .at = due };
    return (struct hf_stall_view){ .due = HF_STALL_ASK,
                                   .why = "its task should be done, does not move, and nothing "
                                          "that it says explains it",
                                   .next = "unless it answers it is ended if its heartbeats "
                                           "have stopped, or a person is told",
                                   .at = now };
}

/* The promise counts, not a constant; and who is asked may be slow for as long as it has to
 * answer. */
static hf_ms silence_of(const struct hf_stall_policy *p, const struct hf_stall_case *c)
{
    hf_ms promised = c->cadence < LIMIT_MAX ? c->cadence * MISSED : LIMIT_MAX;

    return later(p->inquiry_answer, promised);
}

static struct hf_stall_view judge_silent(const struct hf_stall_policy *p,
                                         const struct hf_stall_case *c, hf_ms now)
{
    hf_ms stopped = later(c->answer_by, after(c->heard, silence_of(p, c)));

    if (now >= stopped)
        return (struct hf_stall_view){ .due = HF_STALL_END,
                                       .why = "it was asked why its task does not move, did "
                                              "not answer, and its heartbeats have stopped",
                                       .next = "it is ended, and its task recovered",
                                       .at = now };
    if (c->told || !c->hears)
        return (struct hf_stall_view){ .due = HF_STALL_ASKED,
                                       .why = "it was asked why its task does not move, and "
                                              "did not answer",
                                       .next = "it is ended if its heartbeats stop",
                                       .at = stopped };
    return (struct hf_stall_view){ .due = HF_STALL_TELL,
                                   .why =
                                       "it was asked why its task does not move, and did not "
                                       "answer, though its heartbeats come",
                                   .next = "it goes on, or `holdfast restart` ends it; it is "
                                           "ended if its heartbeats stop",
                                   .at = now };
}

static struct hf_stall_view judge_mute(const struct hf_stall_case *c, hf_ms now)
{
    static const char WHY[] = "it was asked why its task does not move, and did not answer; it "
                              "never sent heartbeats that could have stopped";
    static const char NEXT[] = "it goes on, or `holdfast restart` ends it";

    return (struct hf_stall_view){ .due = c->told ? HF_STALL_ASKED : HF_STALL_TELL,
                                   .why = WHY,
                                   .next = NEXT,
                                   .at = c->told ? HF_STALL_NEVER : now };
}

struct hf_stall_view hf_stall_judge(const struct hf_stall_policy *p,
                                    const struct hf_stall_case *facts, hf_ms now)
{
    if (!facts->asked)
        return judge_quiet(p, facts, now);
    if (facts->answered)
        return (struct hf_stall_view){ .due = HF_STALL_ANSWERED,
                                       .why = "it was asked why its task did not move, and "
                                              "said or did something since",
                                       .next = "nothing",
                                       .at = now };
    if (now < facts->answer_by)
        return (struct hf_stall_view){ .due = HF_STALL_ASKED,
                                       .why = "it was asked why its task does not move",
                                       .next =
                                           "unless it answers it is ended if its heartbeats "
                                           "have stopped, or a person is told",
                                       .at = facts->answer_by };
    return facts->beats ? judge_silent(p, facts, now) : judge_mute(facts, now);
}

const Holdfast__V1__Health__Inquiry *hf_stall_open(const Holdfast__V1__Health *health,
                                                   int64_t life)
{
    const Holdfast__V1__Health__Inquiry *inquiry = health != NULL ? health->inquiry : NULL;

    return inquiry != NULL && !inquiry->answered && inquiry->incarnation == life && life != 0
               ? inquiry
               : NULL;
}

bool hf_stall_is_answer(const Holdfast__V1__Health__Inquiry *inquiry, hf_ms said_at)
{
    return hf_moment_read(inquiry->said_at) != said_at;
}
