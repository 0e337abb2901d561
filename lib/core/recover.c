#include "core/recover.h"

#include <stddef.h>

#include "core/clusterclock.h"

#define SPAN_MAX INT64_C(604800000) /* a week */

#define ORDERED   HOLDFAST__V1__RECOVERY__RESULT__ordered
#define RECOVERED HOLDFAST__V1__RECOVERY__RESULT__recovered
#define DIED      HOLDFAST__V1__RECOVERY__RESULT__died
#define WITHDRAWN HOLDFAST__V1__RECOVERY__RESULT__withdrawn

struct hf_recover_policy hf_recover_policy_default(void)
{
    return (struct hf_recover_policy){
        .backoff = hf_backoff_policy_recovery(),
        .limit = 3,
        .agent_limit = 5,
        .agent_window = 3600000,
        .probation = 900000,
    };
}

int hf_recover_policy_check(const struct hf_recover_policy *p, const char **ret_why)
{
    const char *why = NULL;

    if (hf_backoff_policy_check(&p->backoff, &why) != HF_OK)
        *ret_why = why;
    else if (p->backoff.forget_after != 0)
        *ret_why = "recover.backoff must not have forget_after: only success is forgotten";
    else if (p->limit == 0 || p->limit > HF_RECOVER_OUTCOMES)
        *ret_why = "recover.limit must be 1..16";
    else if (p->agent_limit == 0 || p->agent_limit > HF_BACKOFF_KEPT)
        *ret_why = "recover.agent_limit must be 1..32";
    else if (p->agent_window <= 0 || p->agent_window > SPAN_MAX)
        *ret_why = "recover.agent_window must be positive and not above a week";
    else if (p->probation <= 0 || p->probation > SPAN_MAX)
        *ret_why = "recover.probation must be positive and not above a week";
    else
        return HF_OK;
    return HF_EINVAL;
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_RECOVER_NEVER - delay ? HF_RECOVER_NEVER : moment + delay;
}

static struct hf_recover_decision review(const char *why)
{
    return (struct hf_recover_decision){
        .verdict = HF_RECOVER_REVIEW,
        .why = why,
        .next = "`holdfast task retry` begins anew",
        .at = HF_RECOVER_NEVER,
        .alert = true,
    };
}

static struct hf_recover_decision recover_now(const struct hf_recover_case *facts)
{
    struct hf_recover_decision d = { .verdict = HF_RECOVER_NOW };

    d.reserved = facts->successor;
    d.why = d.reserved ? "its owner is gone: it is kept for the owner's successor"
                       : "its owner is gone: anyone of its role may have it";
    d.next = d.reserved ? "its successor starts with it" : "an agent of its role claims it";
    return d;
}

static bool is_counted(const struct hf_recover_agent *agent, const struct hf_recover_case *c)
{
    return c->incarnation <= agent->recovered_upto;
}

struct hf_recover_decision hf_recover_decide(const struct hf_recover *r,
                                             const struct hf_recover_agent *agent,
                                             const struct hf_recover_policy *p,
                                             const struct hf_recover_case *facts, hf_ms now,
                                             uint32_t random)
{
    if (now == HF_CLUSTERCLOCK_UNREAD)
        return (struct hf_recover_decision){
            .verdict = HF_RECOVER_WAIT,
            .why = "its owner is gone, but the cluster clock is not known yet",
            .next = "the cluster clock is read",
            .at = HF_RECOVER_NEVER,
        };
    if (r->attempts >= p->limit)
        return review("its owner is gone, and it was recovered as often as may be");
    if (!is_counted(agent, facts) &&
        hf_backoff_count(&agent->recovered, p->agent_window, now) >= p->agent_limit)
        return review("its owner is gone, and died with tasks too often in too short a time");

    hf_ms delay = hf_backoff_delay(&p->backoff, r->attempts + 1, random);
    struct hf_recover_decision d = recover_now(facts);
    if (delay > 0)
        d = (struct hf_recover_decision){
            .verdict = HF_RECOVER_LATER,
            .why = "its owner is gone again: the next attempt waits",
            .next = "anyone of its role may have it",
        };
    d.at = after(now, delay);
    d.attempt = r->attempts + 1;
    return d;
}

/* The newest outcome while it is not known; else NULL. */
static struct hf_recover_outcome *find_open(struct hf_recover *r)
{
    struct hf_recover_outcome *last =
        &r->outcomes[r->outcome_count > 0 ? r->outcome_count - 1 : 0];

    return r->outcome_count > 0 && last->result == ORDERED ? last : NULL;
}

/* Makes room: the oldest that says nothing against a checkpoint goes first. */
static void drop_one(struct hf_recover *r)
{
    uint8_t victim = 0;

    while (victim < r->outcome_count && r->outcomes[victim].result == DIED)
        victim++;
    if (victim == r->outcome_count)
        victim = 0;
    r->outcome_count--;
    for (uint8_t i = victim; i < r->outcome_count; i++)
        r->outcomes[i] = r->outcomes[i + 1];
}

static void add_outcome(struct hf_recover *r, struct hf_recover_outcome outcome)
{
    if (r->outcome_count == HF_RECOVER_OUTCOMES)
        drop_one(r);
    r->outcomes[r->outcome_count++] = outcome;
}

/* The recovery that is under way came to this. One whose start was refused has no open outcome,
 * and neither has one that somebody took while nobody looked: it gets one. */
static void settle(struct hf_recover *r, Holdfast__V1__Recovery__Result result,
                   int64_t checkpoint, hf_ms now)
{
    struct hf_recover_outcome *open = find_open(r);

    if (open == NULL && r->attempts > 0) {
        add_outcome(r, (struct hf_recover_outcome){ .at = now });
        open = &r->outcomes[r->outcome_count - 1];
    }
    if (open == NULL)
        return;
    open->result = result;
    open->checkpoint = checkpoint;
}

/* Whether an end speaks against what the successor went on from. The switch has no default: a
 * kind without a place does not compile. */
static Holdfast__V1__Recovery__Result result_of(Holdfast__V1__Exit__Kind death)
{
    switch (death) {
    case HOLDFAST__V1__EXIT__KIND__left:
    case HOLDFAST__V1__EXIT__KIND__terminated: return WITHDRAWN;
    case HOLDFAST__V1__EXIT__KIND__unknown:
    case HOLDFAST__V1__EXIT__KIND__finished:
    case HOLDFAST__V1__EXIT__KIND__crashed:
    case HOLDFAST__V1__EXIT__KIND__oom:
    case HOLDFAST__V1__EXIT__KIND__frozen:
    case HOLDFAST__V1__EXIT__KIND__unreachable:
    case HOLDFAST__V1__EXIT__KIND__fenced:
    case HOLDFAST__V1__EXIT__KIND__start_failed:
    case HOLDFAST__V1__EXIT__KIND__unkillable:
    case _HOLDFAST__V1__EXIT__KIND_IS_INT_SIZE: break;
    }
    return DIED;
}

void hf_recover_on_decided(struct hf_recover *r, struct hf_recover_agent *agent,
                           const struct hf_recover_case *facts,
                           const struct hf_recover_decision *d, hf_ms now)
{
    if (d->verdict == HF_RECOVER_WAIT)
        return;
    settle(r, result_of(facts->death), facts->restored, now);
    r->next_at = r->probation_until = 0;
    if (d->verdict == HF_RECOVER_REVIEW)
        return;

    r->attempts = d->attempt;
    r->next_at = d->verdict == HF_RECOVER_LATER ? d->at : 0;
    add_outcome(r, (struct hf_recover_outcome){
                       .at = now,
                       .checkpoint = hf_recover_newest(r, facts->checkpoint, facts->poison),
                       .result = ORDERED,
                       .reserved = d->reserved });
    if (!is_counted(agent, facts)) {
        hf_backoff_on_attempt(&agent->recovered, now);
        agent->recovered_upto = facts->incarnation;
    }
}

static struct hf_recover_view view_of(enum hf_recover_due due, const char *why,
                                      const char *next, hf_ms at)
{
    return (struct hf_recover_view){ .due = due, .why = why, .next = next, .at = at };
}

static struct hf_recover_view judge_final(const struct hf_recover *r, hf_ms now)
{
    if (r->attempts > 0)
        return view_of(HF_RECOVER_CLOSE, "the task has ended", "the counting is closed", now);
    return view_of(HF_RECOVER_FINE, "the task has ended", "nothing", HF_RECOVER_NEVER);
}

static struct hf_recover_view judge_owned(const struct hf_recover *r, hf_ms now)
{
    if (r->attempts == 0)
        return view_of(HF_RECOVER_FINE, "its owner has it", "nothing", HF_RECOVER_NEVER);
    if (r->probation_until == 0)
        return view_of(HF_RECOVER_TAKEN, "somebody has it again", "its probation begins", now);
    if (now < r->probation_until)
        return view_of(HF_RECOVER_FINE, "somebody has it again, on probation",
                       "it counts as recovered", r->probation_until);
    return view_of(HF_RECOVER_CLOSE, "its probation is over", "the counting is closed", now);
}

static struct hf_recover_view judge_unowned(const struct hf_recover *r, bool queued, hf_ms now)
{
    if (r->probation_until != 0)
        return view_of(HF_RECOVER_RELEASED, "its owner gave it back", "another one has it",
                       now);
    if (!queued)
        return view_of(HF_RECOVER_FINE, "it waits for somebody of its role",
                       "an agent of its role claims it", HF_RECOVER_NEVER);
    if (now < r->next_at)
        return view_of(HF_RECOVER_FINE, "the next attempt waits",
                       "anyone of its role may have it", r->next_at);
    return view_of(HF_RECOVER_PROMOTE, "no attempt has to wait",
                   "anyone of its role may have it", now);
}

struct hf_recover_view hf_recover_judge(const struct hf_recover *r,
                                        Holdfast__V1__Task__State state, hf_ms now)
{
    bool queued = state == HOLDFAST__V1__TASK__STATE__queued;

    switch (state) {
    case HOLDFAST__V1__TASK__STATE__completed:
    case HOLDFAST__V1__TASK__STATE__failed:
    case HOLDFAST__V1__TASK__STATE__cancelled: return judge_final(r, now);
    case HOLDFAST__V1__TASK__STATE__needs_review:
        return view_of(HF_RECOVER_FINE, "a person has to look at it",
                       "`holdfast task retry` begins anew", HF_RECOVER_NEVER);
    case HOLDFAST__V1__TASK__STATE__queued:
    case HOLDFAST__V1__TASK__STATE__pending:
    case HOLDFAST__V1__TASK__STATE__acknowledged:
    case HOLDFAST__V1__TASK__STATE__in_progress:
        if (now == HF_CLUSTERCLOCK_UNREAD)
            return view_of(HF_RECOVER_FINE, "the cluster clock is not known yet",
                           "the cluster clock is read", HF_RECOVER_NEVER);
        if (queued || state == HOLDFAST__V1__TASK__STATE__pending)
            return judge_unowned(r, queued, now);
        return judge_owned(r, now);
    case _HOLDFAST__V1__TASK__STATE_IS_INT_SIZE: break;
    }
    return view_of(HF_RECOVER_FINE, "this version of the program does not know its state",
                   "nothing", HF_RECOVER_NEVER);
}

void hf_recover_on_taken(struct hf_recover *r, const struct hf_recover_policy *p, hf_ms now)
{
    struct hf_recover_outcome *open = find_open(r);

    if (open == NULL)
        settle(r, ORDERED, hf_recover_checkpoint(r), now);
    else
        open->reserved = false; /* it waits for nobody any more */
    r->next_at = 0;
    r->probation_until = after(now, p->probation);
}

void hf_recover_on_released(struct hf_recover *r)
{
    r->probation_until = 0;
}

bool hf_recover_is_refused(const struct hf_recover *r, const Holdfast__V1__Task *task)
{
    const struct hf_recover_outcome *last =
        &r->outcomes[r->outcome_count > 0 ? r->outcome_count - 1 : 0];

    return r->outcome_count > 0 && last->result == ORDERED && last->reserved &&
           r->probation_until == 0 && task->reserved_for[0] == '\0' &&
           task->state == HOLDFAST__V1__TASK__STATE__pending;
}

void hf_recover_on_unstarted(struct hf_recover *r, Holdfast__V1__Recovery__Result result)
{
    struct hf_recover_outcome *open = find_open(r);

    if (open != NULL)
        open->result = result;
}

void hf_recover_on_closed(struct hf_recover *r, Holdfast__V1__Task__State state,
                          int64_t restored, hf_ms now)
{
    bool unheard = state == HOLDFAST__V1__TASK__STATE__cancelled && r->probation_until == 0;

    settle(r, unheard ? WITHDRAWN : RECOVERED, unheard ? hf_recover_checkpoint(r) : restored,
           now);
    r->attempts = 0;
    r->next_at = r->probation_until = 0;
}

int64_t hf_recover_checkpoint(const struct hf_recover *r)
{
    return r->outcome_count > 0 ? r->outcomes[r->outcome_count - 1].checkpoint : 0;
}

/* Entries are numbered without gaps, so that the one before is known even of one that nobody
 * has read. */
int64_t hf_recover_newest(const struct hf_recover *r, int64_t checkpoint, uint32_t poison)
{
    while (checkpoint > 0 && hf_recover_deaths(r, checkpoint) >= poison)
        checkpoint--;
    return checkpoint;
}

uint32_t hf_recover_deaths(const struct hf_recover *r, int64_t checkpoint)
{
    uint32_t deaths = 0;

    for (uint8_t i = 0; i < r->outcome_count; i++)
        if (r->outcomes[i].result == DIED && r->outcomes[i].checkpoint == checkpoint)
            deaths++;
    return deaths;
}

const char *hf_recover_verdict_name(enum hf_recover_verdict verdict)
{
    switch (verdict) {
    case HF_RECOVER_NOW: return "NOW";
    case HF_RECOVER_LATER: return "LATER";
    case HF_RECOVER_REVIEW: return "REVIEW";
    case HF_RECOVER_WAIT: return "WAIT";
    }
    return "?";
}

const char *hf_recover_due_name(enum hf_recover_due due)
{
    switch (due) {
    case HF_RECOVER_FINE: return "FINE";
    case HF_RECOVER_PROMOTE: return "PROMOTE";
    case HF_RECOVER_TAKEN: return "TAKEN";
    case HF_RECOVER_RELEASED: return "RELEASED";
    case HF_RECOVER_CLOSE: return "CLOSE";
    }
    return "?";
}
