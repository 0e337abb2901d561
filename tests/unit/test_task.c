#include <string.h>

#include "core/task.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S, HOUR = 60 * MIN };

enum {
    QUEUED = HOLDFAST__V1__TASK__STATE__queued,
    PENDING = HOLDFAST__V1__TASK__STATE__pending,
    ACKNOWLEDGED = HOLDFAST__V1__TASK__STATE__acknowledged,
    IN_PROGRESS = HOLDFAST__V1__TASK__STATE__in_progress,
    COMPLETED = HOLDFAST__V1__TASK__STATE__completed,
    FAILED = HOLDFAST__V1__TASK__STATE__failed,
    CANCELLED = HOLDFAST__V1__TASK__STATE__cancelled,
    NEEDS_REVIEW = HOLDFAST__V1__TASK__STATE__needs_review,
    STATES,
    NONE = -1,
};

#define X(name, text) +1
enum { EVENTS = 0 HF_TASK_EVENT_MAP(X) };
#undef X

/* All that is allowed; what is not in here must be refused. */
static const struct {
    int from;
    enum hf_task_event event;
    int to;
} ALLOWED[] = {
    { NONE, HF_TASK_SUBMIT, PENDING },
    { NONE, HF_TASK_ENQUEUE, QUEUED },

    { QUEUED, HF_TASK_PROMOTE, PENDING },
    { QUEUED, HF_TASK_UNRESERVE, QUEUED },
    { QUEUED, HF_TASK_REVIEW, NEEDS_REVIEW },
    { QUEUED, HF_TASK_CANCEL, CANCELLED },
    { QUEUED, HF_TASK_RETRY, PENDING },
    { QUEUED, HF_TASK_RETRY_LOST, PENDING },
    { PENDING, HF_TASK_RETRY_LOST, PENDING },

    { PENDING, HF_TASK_DEMOTE, QUEUED },
    { PENDING, HF_TASK_UNRESERVE, PENDING },
    { PENDING, HF_TASK_CLAIM, ACKNOWLEDGED },
    { PENDING, HF_TASK_START_BY_COMMAND, ACKNOWLEDGED },
    { PENDING, HF_TASK_REVIEW, NEEDS_REVIEW },
    { PENDING, HF_TASK_CANCEL, CANCELLED },

    { ACKNOWLEDGED, HF_TASK_START, IN_PROGRESS },
    { ACKNOWLEDGED, HF_TASK_FAIL, FAILED },
    { ACKNOWLEDGED, HF_TASK_RELEASE, PENDING },
    { ACKNOWLEDGED, HF_TASK_ADOPT, ACKNOWLEDGED },
    { ACKNOWLEDGED, HF_TASK_RESET, PENDING },
    { ACKNOWLEDGED, HF_TASK_RESET_LATER, QUEUED },
    { ACKNOWLEDGED, HF_TASK_REVIEW, NEEDS_REVIEW },
    { ACKNOWLEDGED, HF_TASK_CANCEL, CANCELLED },

    { IN_PROGRESS, HF_TASK_PROGRESS, IN_PROGRESS },
    { IN_PROGRESS, HF_TASK_CHECKPOINT, IN_PROGRESS },
    { ACKNOWLEDGED, HF_TASK_RESTORE, ACKNOWLEDGED },
    { IN_PROGRESS, HF_TASK_RESTORE, IN_PROGRESS },
    { IN_PROGRESS, HF_TASK_COMPLETE, COMPLETED },
    { IN_PROGRESS, HF_TASK_FAIL, FAILED },
    { IN_PROGRESS, HF_TASK_RELEASE, PENDING },
    { IN_PROGRESS, HF_TASK_ADOPT, IN_PROGRESS },
    { IN_PROGRESS, HF_TASK_RESET, PENDING },
    { IN_PROGRESS, HF_TASK_RESET_LATER, QUEUED },
    { IN_PROGRESS, HF_TASK_REVIEW, NEEDS_REVIEW },
    { IN_PROGRESS, HF_TASK_CANCEL, CANCELLED },

    { FAILED, HF_TASK_RETRY, PENDING },
    { CANCELLED, HF_TASK_RETRY, PENDING },
    { NEEDS_REVIEW, HF_TASK_RETRY, PENDING },
    { FAILED, HF_TASK_RETRY_LOST, PENDING },
    { CANCELLED, HF_TASK_RETRY_LOST, PENDING },
    { NEEDS_REVIEW, HF_TASK_RETRY_LOST, PENDING },
    { NEEDS_REVIEW, HF_TASK_CANCEL, CANCELLED },
};

static struct hf_task_step step(int from, enum hf_task_event event)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;

    if (from == NONE)
        return hf_task_next(NULL, event);
    task.state = (Holdfast__V1__Task__State)from;
    return hf_task_next(&task, event);
}

static int expected(int from, enum hf_task_event event)
{
    for (size_t i = 0; i < COUNT(ALLOWED); i++)
        if (ALLOWED[i].from == from && ALLOWED[i].event == event)
            return ALLOWED[i].to;
    return NONE;
}

START_TEST(every_pair_is_allowed_or_refused_as_listed)
{
    enum hf_task_event event = (enum hf_task_event)_i;

    for (int from = NONE; from < STATES; from++) {
        struct hf_task_step s = step(from, event);
        int want = expected(from, event);
        const char *name = hf_task_event_name(event);

        ck_assert_msg(s.allowed == (want != NONE), "%s in state %d", name, from);
        ck_assert_msg((s.why == NULL) == s.allowed, "%s in state %d", name, from);
        if (s.allowed)
            ck_assert_msg((int)s.state == want, "%s in state %d: %d", name, from, (int)s.state);
        else
            ck_assert_msg(strlen(s.why) > 10, "%s in state %d", name, from);
    }
}
END_TEST

static const struct {
    int from;
    enum hf_task_event event;
    const char *want; /* part of the sentence */
} REFUSALS[] = {
    { NONE, HF_TASK_CLAIM, "no such task" },
    { NONE, HF_TASK_RETRY, "no such task" },
    { COMPLETED, HF_TASK_SUBMIT, "exists already" },
    { QUEUED, HF_TASK_ENQUEUE, "exists already" },
    { QUEUED, HF_TASK_CLAIM, "queued" },
    { QUEUED, HF_TASK_START_BY_COMMAND, "queued" },
    { PENDING, HF_TASK_PROMOTE, "pending already" },
    { QUEUED, HF_TASK_DEMOTE, "queued" },
    { ACKNOWLEDGED, HF_TASK_DEMOTE, "somebody works" },
    { PENDING, HF_TASK_RETRY, "pending already" },
    { PENDING, HF_TASK_COMPLETE, "nobody works" },
    { QUEUED, HF_TASK_RESET, "nobody works" },
    { ACKNOWLEDGED, HF_TASK_CLAIM, "somebody works" },
    { IN_PROGRESS, HF_TASK_START_BY_COMMAND, "somebody works" },
    { IN_PROGRESS, HF_TASK_RETRY, "somebody works" },
    { ACKNOWLEDGED, HF_TASK_COMPLETE, "not started" },
    { ACKNOWLEDGED, HF_TASK_PROGRESS, "not started" },
    { ACKNOWLEDGED, HF_TASK_CHECKPOINT, "not started" },
    { IN_PROGRESS, HF_TASK_START, "started already" },
    { COMPLETED, HF_TASK_RETRY, "under another id" },
    { COMPLETED, HF_TASK_CANCEL, "has completed" },
    { FAILED, HF_TASK_RESET, "has failed" },
    { CANCELLED, HF_TASK_COMPLETE, "was cancelled" },
    { NEEDS_REVIEW, HF_TASK_CLAIM, "waits for a person" },
    { STATES, HF_TASK_CANCEL, "does not know its state" },
    { INT32_MAX, HF_TASK_SUBMIT, "does not know its state" },
    { -7, HF_TASK_CLAIM, "does not know its state" },
    { PENDING, (enum hf_task_event)EVENTS, "does not know the event" },
};

START_TEST(a_refusal_says_what_stands_against_it)
{
    struct hf_task_step s = step(REFUSALS[_i].from, REFUSALS[_i].event);

    ck_assert(!s.allowed);
    ck_assert_msg(strstr(s.why, REFUSALS[_i].want) != NULL, "%s", s.why);
}
END_TEST

static bool is_by_a_person(enum hf_task_event event)
{
    return event == HF_TASK_CANCEL || event == HF_TASK_RETRY || event == HF_TASK_RETRY_LOST;
}

START_TEST(what_has_ended_is_left_by_a_person_alone)
{
    for (int from = 0; from < STATES; from++)
        for (int e = 0; e < EVENTS; e++)
            if (hf_task_is_final((Holdfast__V1__Task__State)from) &&
                step(from, (enum hf_task_event)e).allowed)
                ck_assert(is_by_a_person((enum hf_task_event)e));
    for (int e = 0; e < EVENTS; e++)
        ck_assert(!step(COMPLETED, (enum hf_task_event)e).allowed);
}
END_TEST

START_TEST(an_owner_comes_and_goes_only_by_the_events_that_say_so)
{
    for (int from = 0; from < STATES; from++) {
        for (int i = 0; i < EVENTS; i++) {
            enum hf_task_event e = (enum hf_task_event)i;
            struct hf_task_step s = step(from, e);
            bool before = hf_task_is_owned((Holdfast__V1__Task__State)from);

            if (!s.allowed)
                continue;
            if (!before && hf_task_is_owned(s.state))
                ck_assert(e == HF_TASK_CLAIM || e == HF_TASK_START_BY_COMMAND);
            if (before && !hf_task_is_owned(s.state))
                ck_assert(e == HF_TASK_RESET || e == HF_TASK_RESET_LATER ||
                          e == HF_TASK_RELEASE || hf_task_is_final(s.state));
        }
    }
}
END_TEST

/* Whatever has happened to a task, it can still complete, unless it has; and it can be ended by
 * a person and sent to one. */
START_TEST(no_state_is_a_dead_end)
{
    bool completes[STATES] = { [COMPLETED] = true };

    for (int round = 0; round < STATES; round++)
        for (size_t i = 0; i < COUNT(ALLOWED); i++)
            if (ALLOWED[i].from != NONE && completes[ALLOWED[i].to])
                completes[ALLOWED[i].from] = true;
    for (int from = 0; from < STATES; from++) {
        ck_assert(completes[from]);
        if (!hf_task_is_final((Holdfast__V1__Task__State)from)) {
            ck_assert(step(from, HF_TASK_CANCEL).allowed);
            ck_assert(step(from, HF_TASK_REVIEW).allowed);
        }
    }
}
END_TEST

START_TEST(every_state_is_exactly_one_of_waiting_owned_and_final)
{
    for (int state = 0; state < STATES; state++) {
        Holdfast__V1__Task__State s = (Holdfast__V1__Task__State)state;

        ck_assert_int_eq(hf_task_is_owned(s), state == ACKNOWLEDGED || state == IN_PROGRESS);
        ck_assert_int_eq(hf_task_is_final(s), state >= COMPLETED);
        ck_assert_int_eq(hf_task_is_claimable(s), state == PENDING);
        ck_assert_int_eq(step(state, HF_TASK_CLAIM).allowed, hf_task_is_claimable(s));
    }
}
END_TEST

START_TEST(a_life_with_two_deaths_reads_like_one)
{
    static const struct {
        enum hf_task_event event;
        int to;
    } LIFE[] = {
        { HF_TASK_SUBMIT, PENDING },
        { HF_TASK_CLAIM, ACKNOWLEDGED },
        { HF_TASK_START, IN_PROGRESS },
        { HF_TASK_CHECKPOINT, IN_PROGRESS },
        { HF_TASK_RESET, PENDING },     /* reserved for the successor, */
        { HF_TASK_UNRESERVE, PENDING }, /* whose host refuses */
        { HF_TASK_CLAIM, ACKNOWLEDGED },
        { HF_TASK_ADOPT, ACKNOWLEDGED }, /* its lease was revoked falsely */
        { HF_TASK_START, IN_PROGRESS },
        { HF_TASK_RESET_LATER, QUEUED },
        { HF_TASK_PROMOTE, PENDING },
        { HF_TASK_START_BY_COMMAND, ACKNOWLEDGED },
        { HF_TASK_START, IN_PROGRESS },
        { HF_TASK_PROGRESS, IN_PROGRESS },
        { HF_TASK_COMPLETE, COMPLETED },
    };
    int state = NONE;

    for (size_t i = 0; i < COUNT(LIFE); i++) {
        struct hf_task_step s = step(state, LIFE[i].event);

        ck_assert_msg(s.allowed, "%zu: %s", i, s.why);
        ck_assert_int_eq(s.state, LIFE[i].to);
        state = (int)s.state;
    }
}
END_TEST

static struct hf_task_wait judge(int state, bool role_has_agent, hf_ms now)
{
    struct hf_task_policy p = hf_task_policy_default();

    return hf_task_judge_wait(&p, (Holdfast__V1__Task__State)state, role_has_agent, 0, now);
}

static const struct {
    int state;
    bool role_has_agent;
    hf_ms now;
    enum hf_task_due due;
    hf_ms at;
} WAITS[] = {
    { PENDING, false, -1, HF_TASK_FINE, 5 * MIN },
    { PENDING, false, 5 * MIN - 1, HF_TASK_FINE, 5 * MIN },
    { PENDING, false, 5 * MIN, HF_TASK_ALERT, 24 * HOUR },
    { PENDING, false, 24 * HOUR - 1, HF_TASK_ALERT, 24 * HOUR },
    { PENDING, false, 24 * HOUR, HF_TASK_DUE_REVIEW, 24 * HOUR },
    { PENDING, false, 25 * HOUR, HF_TASK_DUE_REVIEW, 25 * HOUR },
    { PENDING, true, 25 * HOUR, HF_TASK_FINE, HF_TASK_NEVER },
    { ACKNOWLEDGED, true, 2 * MIN - 1, HF_TASK_FINE, 2 * MIN },
    { ACKNOWLEDGED, true, 2 * MIN, HF_TASK_DUE_RELEASE, 2 * MIN },
    { ACKNOWLEDGED, false, 3 * MIN, HF_TASK_DUE_RELEASE, 3 * MIN },
    { QUEUED, false, 25 * HOUR, HF_TASK_FINE, HF_TASK_NEVER },
    { IN_PROGRESS, false, 25 * HOUR, HF_TASK_FINE, HF_TASK_NEVER },
    { COMPLETED, false, 25 * HOUR, HF_TASK_FINE, HF_TASK_NEVER },
};

START_TEST(whoever_waits_too_long_is_helped)
{
    struct hf_task_wait w = judge(WAITS[_i].state, WAITS[_i].role_has_agent, WAITS[_i].now);

    ck_assert_int_eq(w.due, WAITS[_i].due);
    ck_assert_int_eq(w.at, WAITS[_i].at);
    ck_assert_uint_gt(strlen(w.why), 10);
    ck_assert_uint_ge(strlen(w.next), 7);
}
END_TEST

START_TEST(what_comes_next_is_said_before_it_comes)
{
    ck_assert_str_eq(judge(PENDING, false, 0).next, "somebody is told");
    ck_assert_str_eq(judge(PENDING, false, 5 * MIN).next, "a person has to look");
    ck_assert_str_eq(judge(ACKNOWLEDGED, true, 0).next, "it is released to anyone");
}
END_TEST

START_TEST(a_wait_that_began_late_does_not_overflow)
{
    struct hf_task_policy p = hf_task_policy_default();
    struct hf_task_wait w =
        hf_task_judge_wait(&p, HOLDFAST__V1__TASK__STATE__pending, false, INT64_MAX - 1, 0);

    ck_assert_int_eq(w.due, HF_TASK_FINE);
    ck_assert_int_eq(w.at, HF_TASK_NEVER);
}
END_TEST

#define MONTH INT64_C(2592000000)

#define POLICY(start, alert, review, keep)                                                     \
    {                                                                                          \
        .start_within = (start), .alert_after = (alert), .review_after = (review),             \
        .keep_chain = (keep)                                                                   \
    }

static const struct {
    struct hf_task_policy policy;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { POLICY(1, 1, 2, 0), NULL },
    { POLICY(MONTH, 1, MONTH, 0), NULL },
    { POLICY(0, 1, 2, 0), "start_within must be positive" },
    { POLICY(1, 0, 2, 0), "alert_after must be positive" },
    { POLICY(1, 2, 2, 0), "must come after" },
    { POLICY(MONTH + 1, 1, 2, 0), "above 30 days" },
    { POLICY(1, 1, MONTH + 1, 0), "above 30 days" },
    { POLICY(1, 1, 2, MONTH), NULL },
    { POLICY(1, 1, 2, -1), "keep_chain" },
    { POLICY(1, 1, 2, MONTH + 1), "keep_chain" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;
    int rc = hf_task_policy_check(&CHECKS[_i].policy, &why);

    ck_assert_int_eq(rc, CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(the_defaults_pass_their_check)
{
    struct hf_task_policy p = hf_task_policy_default();
    const char *why = NULL;

    ck_assert_int_eq(hf_task_policy_check(&p, &why), HF_OK);
}
END_TEST

START_TEST(a_role_has_its_own_limit_or_that_of_all)
{
    static const struct hf_task_limit LIMITS[] = { { "coder", 5 }, { "free", 0 } };
    struct hf_task_policy p = hf_task_policy_default();

    ck_assert_uint_eq(hf_task_policy_get_limit(&p, "coder"), 0);
    p.limits = LIMITS;
    p.limit_count = COUNT(LIMITS);
    p.running_max = 2;
    ck_assert_uint_eq(hf_task_policy_get_limit(&p, "coder"), 5);
    ck_assert_uint_eq(hf_task_policy_get_limit(&p, "code"), 2);
    ck_assert_uint_eq(hf_task_policy_get_limit(&p, "free"), 0);
}
END_TEST

START_TEST(names_are_those_of_the_records)
{
    ck_assert_str_eq(hf_task_event_name(HF_TASK_START_BY_COMMAND), "start_by_command");
    ck_assert_str_eq(hf_task_event_name((enum hf_task_event)EVENTS), "?");
    ck_assert_str_eq(hf_task_state_name(HOLDFAST__V1__TASK__STATE__in_progress), "in_progress");
    ck_assert_str_eq(hf_task_state_name((Holdfast__V1__Task__State)STATES), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("task");

    tcase_add_loop_test(t, every_pair_is_allowed_or_refused_as_listed, 0, EVENTS);
    tcase_add_loop_test(t, a_refusal_says_what_stands_against_it, 0, COUNT(REFUSALS));
    tcase_add_test(t, what_has_ended_is_left_by_a_person_alone);
    tcase_add_test(t, an_owner_comes_and_goes_only_by_the_events_that_say_so);
    tcase_add_test(t, no_state_is_a_dead_end);
    tcase_add_test(t, every_state_is_exactly_one_of_waiting_owned_and_final);
    tcase_add_test(t, a_life_with_two_deaths_reads_like_one);
    tcase_add_loop_test(t, whoever_waits_too_long_is_helped, 0, COUNT(WAITS));
    tcase_add_test(t, what_comes_next_is_said_before_it_comes);
    tcase_add_test(t, a_wait_that_began_late_does_not_overflow);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, the_defaults_pass_their_check);
    tcase_add_test(t, a_role_has_its_own_limit_or_that_of_all);
    tcase_add_test(t, names_are_those_of_the_records);
    return run("core/task", t);
}
