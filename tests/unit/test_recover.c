#include <string.h>

#include "base/buf.h"
#include "core/clusterclock.h"
#include "core/recover.h"
#include "schema/json.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S, HOUR = 60 * MIN, NEWER = 99 };

#define NOW    HF_RECOVER_NOW
#define LATER  HF_RECOVER_LATER
#define REVIEW HF_RECOVER_REVIEW

#define ORDERED   HOLDFAST__V1__RECOVERY__RESULT__ordered
#define RECOVERED HOLDFAST__V1__RECOVERY__RESULT__recovered
#define DIED      HOLDFAST__V1__RECOVERY__RESULT__died
#define REFUSED   HOLDFAST__V1__RECOVERY__RESULT__refused
#define WITHDRAWN HOLDFAST__V1__RECOVERY__RESULT__withdrawn

#define QUEUED    HOLDFAST__V1__TASK__STATE__queued
#define PENDING   HOLDFAST__V1__TASK__STATE__pending
#define ACKED     HOLDFAST__V1__TASK__STATE__acknowledged
#define PROGRESS  HOLDFAST__V1__TASK__STATE__in_progress
#define COMPLETED HOLDFAST__V1__TASK__STATE__completed
#define FAILED    HOLDFAST__V1__TASK__STATE__failed
#define CANCELLED HOLDFAST__V1__TASK__STATE__cancelled
#define IN_REVIEW HOLDFAST__V1__TASK__STATE__needs_review

/* A task and its owner, both as etcd has them. */
struct pair {
    struct hf_recover task;
    struct hf_recover_agent agent;
    int64_t life;
};

/* The default without jitter, so that moments are round numbers. */
static struct hf_recover_policy exact_policy(void)
{
    struct hf_recover_policy p = hf_recover_policy_default();

    p.backoff.jitter_percent = 0;
    return p;
}

static struct hf_recover_case crashed(int64_t life)
{
    return (struct hf_recover_case){
        .incarnation = life,
        .death = HOLDFAST__V1__EXIT__KIND__crashed,
        .restored = 5,
        .checkpoint = 5,
        .poison = 2,
        .successor = true,
    };
}

static struct hf_recover_decision decide(const struct pair *x, struct hf_recover_case c,
                                         hf_ms now)
{
    struct hf_recover_policy p = exact_policy();
    struct hf_recover_decision d = hf_recover_decide(&x->task, &x->agent, &p, &c, now, 0);

    ck_assert_ptr_nonnull(d.why);
    ck_assert_ptr_nonnull(d.next);
    ck_assert_int_eq(d.at != HF_RECOVER_NEVER, d.verdict == NOW || d.verdict == LATER);
    ck_assert_int_eq(d.alert, d.verdict == REVIEW);
    return d;
}

/* The next life of the owner ends, and that is decided and stored. */
static struct hf_recover_decision lose(struct pair *x, hf_ms now)
{
    struct hf_recover_case c = crashed(++x->life);
    struct hf_recover_decision d = decide(x, c, now);

    hf_recover_on_decided(&x->task, &x->agent, &c, &d, now);
    return d;
}

static void take(struct pair *x, hf_ms now)
{
    struct hf_recover_policy p = exact_policy();

    ck_assert_int_eq(hf_recover_judge(&x->task, ACKED, now).due, HF_RECOVER_TAKEN);
    hf_recover_on_taken(&x->task, &p, now);
}

static Holdfast__V1__Recovery__Result last_result(const struct pair *x)
{
    ck_assert_uint_gt(x->task.outcome_count, 0);
    return x->task.outcomes[x->task.outcome_count - 1].result;
}

START_TEST(the_first_recovery_is_at_once_and_kept_for_the_successor)
{
    struct pair x = { 0 };
    struct hf_recover_decision d = lose(&x, 10 * S);

    ck_assert_int_eq(d.verdict, NOW);
    ck_assert_int_eq(d.at, 10 * S);
    ck_assert_uint_eq(d.attempt, 1);
    ck_assert(d.reserved);
    ck_assert_uint_eq(x.task.attempts, 1);
    ck_assert_int_eq(x.task.next_at, 0);
    ck_assert_uint_eq(x.task.outcome_count, 1);
    ck_assert_int_eq(x.task.outcomes[0].at, 10 * S);
    ck_assert_int_eq(x.task.outcomes[0].checkpoint, 5);
    ck_assert_int_eq(last_result(&x), ORDERED);
}
END_TEST

START_TEST(without_a_successor_it_is_for_anyone)
{
    struct pair x = { 0 };
    struct hf_recover_case c = crashed(1);

    c.successor = false;
    struct hf_recover_decision d = decide(&x, c, 10 * S);
    ck_assert_int_eq(d.verdict, NOW);
    ck_assert(!d.reserved);
}
END_TEST

START_TEST(the_next_ones_wait_and_the_fourth_is_for_a_person)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    struct hf_recover_decision d = lose(&x, 1 * MIN);
    ck_assert_int_eq(d.verdict, LATER);
    ck_assert_int_eq(d.at, 2 * MIN);
    ck_assert_uint_eq(d.attempt, 2);
    ck_assert(!d.reserved);
    ck_assert_int_eq(x.task.next_at, 2 * MIN);

    d = lose(&x, 3 * MIN);
    ck_assert_int_eq(d.verdict, LATER);
    ck_assert_int_eq(d.at, 5 * MIN);
    ck_assert_uint_eq(d.attempt, 3);

    d = lose(&x, 6 * MIN);
    ck_assert_int_eq(d.verdict, REVIEW);
    ck_assert_msg(strstr(d.why, "as often as may be") != NULL, "%s", d.why);
    ck_assert_uint_eq(x.task.attempts, 3);
    ck_assert_int_eq(x.task.next_at, 0);
    ck_assert_uint_eq(x.task.outcome_count, 3);
    for (uint8_t i = 0; i < 3; i++)
        ck_assert_int_eq(x.task.outcomes[i].result, DIED);
    ck_assert_int_eq(lose(&x, 100 * HOUR).verdict, REVIEW); /* time heals nothing */
}
END_TEST

START_TEST(without_a_clock_nothing_is_drawn_or_counted)
{
    struct pair x = { .task = { .attempts = 1, .next_at = 7 } };
    struct pair before = x;
    struct hf_recover_case c = crashed(1);
    struct hf_recover_decision d = decide(&x, c, HF_CLUSTERCLOCK_UNREAD);

    ck_assert_int_eq(d.verdict, HF_RECOVER_WAIT);
    hf_recover_on_decided(&x.task, &x.agent, &c, &d, HF_CLUSTERCLOCK_UNREAD);
    ck_assert_mem_eq(&x, &before, sizeof x);
    for (int state = QUEUED; state <= PROGRESS; state++) {
        struct hf_recover_view view =
            hf_recover_judge(&x.task, (Holdfast__V1__Task__State)state, HF_CLUSTERCLOCK_UNREAD);

        ck_assert_int_eq(view.due, HF_RECOVER_FINE);
        ck_assert_int_eq(view.at, HF_RECOVER_NEVER);
    }
}
END_TEST

START_TEST(what_was_drawn_is_what_the_next_leader_finds)
{
    struct hf_recover_policy p = hf_recover_policy_default();
    struct pair x = { 0 };
    struct hf_recover_record stored;

    (void)lose(&x, 1 * S);
    struct hf_recover_case c = crashed(2);
    struct hf_recover_decision d =
        hf_recover_decide(&x.task, &x.agent, &p, &c, 20 * S, 0xDEADBEEF);
    ck_assert_int_gt(d.at, 20 * S + 54 * S);
    ck_assert_int_lt(d.at, 20 * S + 60 * S);
    hf_recover_on_decided(&x.task, &x.agent, &c, &d, 20 * S);
    hf_recover_store(&x.task, "t1", &stored);

    struct hf_recover next = hf_recover_load(&stored.record);
    struct hf_recover_view view = hf_recover_judge(&next, QUEUED, 21 * S);
    ck_assert_int_eq(view.due, HF_RECOVER_FINE);
    ck_assert_int_eq(view.at, d.at);
    ck_assert_int_eq(hf_recover_judge(&next, QUEUED, d.at - 1).at, d.at);
    ck_assert_int_eq(hf_recover_judge(&next, QUEUED, d.at).due, HF_RECOVER_PROMOTE);
}
END_TEST

START_TEST(a_probation_that_is_over_closes_the_counting)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    (void)lose(&x, 1 * MIN);
    take(&x, 3 * MIN);
    struct hf_recover_view view = hf_recover_judge(&x.task, PROGRESS, 4 * MIN);
    ck_assert_int_eq(view.due, HF_RECOVER_FINE);
    ck_assert_int_eq(view.at, 18 * MIN);
    ck_assert_int_eq(hf_recover_judge(&x.task, PROGRESS, 18 * MIN - 1).due, HF_RECOVER_FINE);
    ck_assert_int_eq(hf_recover_judge(&x.task, PROGRESS, 18 * MIN).due, HF_RECOVER_CLOSE);

    hf_recover_on_closed(&x.task, PROGRESS, 4, 18 * MIN);
    ck_assert_int_eq(last_result(&x), RECOVERED);
    ck_assert_int_eq(x.task.outcomes[1].checkpoint, 4);
    ck_assert_int_eq(x.task.outcomes[0].result, DIED);
    ck_assert_int_eq(hf_recover_judge(&x.task, PROGRESS, 19 * MIN).due, HF_RECOVER_FINE);
    struct hf_recover_decision d = lose(&x, 20 * MIN);
    ck_assert_int_eq(d.verdict, NOW);
    ck_assert_uint_eq(d.attempt, 1);
}
END_TEST

START_TEST(a_death_on_probation_counts)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    take(&x, 1 * S);
    struct hf_recover_decision d = lose(&x, 14 * MIN);
    ck_assert_uint_eq(d.attempt, 2);
    ck_assert_int_eq(x.task.outcomes[0].result, DIED);
    ck_assert_int_eq(x.task.probation_until, 0);
}
END_TEST

START_TEST(waiting_for_somebody_is_no_probation)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    ck_assert_int_eq(hf_recover_judge(&x.task, PENDING, 24 * HOUR).due, HF_RECOVER_FINE);
    take(&x, 24 * HOUR);
    ck_assert_int_eq(hf_recover_judge(&x.task, ACKED, 24 * HOUR + 1 * S).due, HF_RECOVER_FINE);
}
END_TEST

START_TEST(who_gives_a_task_back_has_not_recovered_it)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    take(&x, 1 * MIN);
    ck_assert_int_eq(hf_recover_judge(&x.task, PENDING, 14 * MIN).due, HF_RECOVER_RELEASED);
    hf_recover_on_released(&x.task);
    ck_assert_int_eq(hf_recover_judge(&x.task, PENDING, 14 * MIN).due, HF_RECOVER_FINE);
    take(&x, 15 * MIN);
    ck_assert_int_eq(hf_recover_judge(&x.task, PROGRESS, 17 * MIN).at, 30 * MIN);
    ck_assert_uint_eq(x.task.outcome_count, 1);
}
END_TEST

static const struct {
    Holdfast__V1__Task__State state;
    bool taken;
    Holdfast__V1__Recovery__Result want;
} ENDS[] = {
    { COMPLETED, true, RECOVERED }, { COMPLETED, false, RECOVERED },
    { FAILED, true, RECOVERED },    { FAILED, false, RECOVERED },
    { CANCELLED, true, RECOVERED }, { CANCELLED, false, WITHDRAWN },
};

START_TEST(a_task_that_ended_closes_the_counting)
{
    struct pair x = { 0 };

    ck_assert_int_eq(hf_recover_judge(&x.task, ENDS[_i].state, 0).due, HF_RECOVER_FINE);
    (void)lose(&x, 0);
    if (ENDS[_i].taken)
        take(&x, 1 * S);
    ck_assert_int_eq(hf_recover_judge(&x.task, ENDS[_i].state, 2 * S).due, HF_RECOVER_CLOSE);
    hf_recover_on_closed(&x.task, ENDS[_i].state, 4, 2 * S);
    ck_assert_int_eq(last_result(&x), ENDS[_i].want);
    ck_assert_uint_eq(x.task.outcome_count, 1);
    ck_assert_uint_eq(x.task.attempts, 0);
    ck_assert_int_eq(hf_recover_judge(&x.task, ENDS[_i].state, 3 * S).due, HF_RECOVER_FINE);
}
END_TEST

START_TEST(a_person_or_a_newer_program_is_waited_for)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    struct hf_recover_view view = hf_recover_judge(&x.task, IN_REVIEW, 1 * S);
    ck_assert_int_eq(view.due, HF_RECOVER_FINE);
    ck_assert_int_eq(view.at, HF_RECOVER_NEVER);
    view = hf_recover_judge(&x.task, (Holdfast__V1__Task__State)NEWER, 1 * S);
    ck_assert_int_eq(view.due, HF_RECOVER_FINE);
    ck_assert_int_eq(hf_recover_judge(&(struct hf_recover){ 0 }, QUEUED, 1 * S).due,
                     HF_RECOVER_PROMOTE); /* a limit may hold it, a backoff does not */
}
END_TEST

START_TEST(a_start_that_was_refused_leaves_the_recovery_to_anyone)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    hf_recover_on_unstarted(&x.task, REFUSED);
    hf_recover_on_unstarted(&x.task, WITHDRAWN); /* too late: it is refused already */
    ck_assert_int_eq(last_result(&x), REFUSED);
    ck_assert_uint_eq(x.task.attempts, 1);

    take(&x, 5 * S);
    ck_assert_uint_eq(x.task.outcome_count, 2);
    ck_assert_int_eq(last_result(&x), ORDERED);
    ck_assert_int_eq(x.task.outcomes[1].checkpoint, 5);
    struct hf_recover_decision d = lose(&x, 6 * S);
    ck_assert_uint_eq(d.attempt, 2);
    ck_assert_int_eq(x.task.outcomes[0].result, REFUSED);
    ck_assert_int_eq(x.task.outcomes[1].result, DIED);
}
END_TEST

START_TEST(a_task_that_waits_for_nobody_in_particular_any_more_was_refused)
{
    struct pair x = { 0 };
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;

    task.state = PENDING;
    ck_assert(!hf_recover_is_refused(&x.task, &task));
    (void)lose(&x, 0);
    task.reserved_for = (char *)"a";
    ck_assert(!hf_recover_is_refused(&x.task, &task));
    task.reserved_for = (char *)"";
    ck_assert(hf_recover_is_refused(&x.task, &task));
    task.state = ACKED; /* by whoever it was kept for, or somebody who was quick */
    ck_assert(!hf_recover_is_refused(&x.task, &task));
    take(&x, 1 * S);
    task.state = PENDING; /* given back */
    ck_assert(!hf_recover_is_refused(&x.task, &task));
    hf_recover_on_released(&x.task);
    ck_assert(!hf_recover_is_refused(&x.task, &task));
}
END_TEST

START_TEST(what_was_never_kept_for_anybody_cannot_be_refused)
{
    struct pair x = { 0 };
    struct hf_recover_case c = crashed(1);
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    struct hf_recover_decision d;

    c.successor = false;
    d = decide(&x, c, 0);
    hf_recover_on_decided(&x.task, &x.agent, &c, &d, 0);
    task.state = PENDING;
    ck_assert(!hf_recover_is_refused(&x.task, &task));
}
END_TEST

START_TEST(a_successor_that_nobody_saw_is_counted_all_the_same)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    hf_recover_on_unstarted(&x.task, WITHDRAWN);
    ck_assert_uint_eq(lose(&x, 6 * S).attempt, 2);
    ck_assert_int_eq(x.task.outcomes[1].result, DIED);
    ck_assert_int_eq(x.task.outcomes[1].at, 6 * S);
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 5), 1);

    struct pair bare = { .task = { .attempts = 1 } }; /* somebody cut the list */
    (void)lose(&bare, 7 * S);
    ck_assert_int_eq(bare.task.outcomes[0].result, DIED);
    ck_assert_int_eq(bare.task.outcomes[0].checkpoint, 5);
}
END_TEST

static const struct {
    int death;
    Holdfast__V1__Recovery__Result want;
} BLAME[] = {
    { HOLDFAST__V1__EXIT__KIND__unknown, DIED },
    { HOLDFAST__V1__EXIT__KIND__left, WITHDRAWN },
    { HOLDFAST__V1__EXIT__KIND__finished, DIED },
    { HOLDFAST__V1__EXIT__KIND__crashed, DIED },
    { HOLDFAST__V1__EXIT__KIND__oom, DIED },
    { HOLDFAST__V1__EXIT__KIND__frozen, DIED },
    { HOLDFAST__V1__EXIT__KIND__unreachable, DIED },
    { HOLDFAST__V1__EXIT__KIND__fenced, DIED },
    { HOLDFAST__V1__EXIT__KIND__terminated, WITHDRAWN },
    { HOLDFAST__V1__EXIT__KIND__start_failed, DIED },
    { HOLDFAST__V1__EXIT__KIND__unkillable, DIED },
    { NEWER, DIED },
};

START_TEST(only_an_end_that_nobody_asked_for_speaks_against_a_checkpoint)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    struct hf_recover_case c = crashed(2);
    c.death = (Holdfast__V1__Exit__Kind)BLAME[_i].death;
    struct hf_recover_decision d = decide(&x, c, 1 * S);
    hf_recover_on_decided(&x.task, &x.agent, &c, &d, 1 * S);
    ck_assert_int_eq(x.task.outcomes[0].result, BLAME[_i].want);
    ck_assert_uint_eq(x.task.attempts, 2); /* but it counts */
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 5), BLAME[_i].want == DIED ? 1 : 0);
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 4), 0);
}
END_TEST

START_TEST(the_sixth_death_with_a_task_in_an_hour_is_for_a_person)
{
    struct hf_recover_agent agent = { 0 };
    hf_ms now = 0;

    for (int64_t life = 1; life <= 5; life++) {
        struct pair x = { .agent = agent, .life = life - 1 };

        ck_assert_int_eq(lose(&x, now += 10 * MIN).verdict, NOW);
        agent = x.agent;
    }
    struct pair x = { .agent = agent, .life = 5 };
    struct hf_recover_decision d = decide(&x, crashed(6), 70 * MIN - 1);
    ck_assert_int_eq(d.verdict, REVIEW);
    ck_assert_msg(strstr(d.why, "too often") != NULL, "%s", d.why);
    ck_assert_int_eq(decide(&x, crashed(6), 70 * MIN).verdict, NOW);
    ck_assert_int_eq(decide(&x, crashed(5), 51 * MIN).verdict, NOW); /* another of its tasks */
}
END_TEST

START_TEST(one_death_counts_once_however_many_tasks_there_were)
{
    struct hf_recover_agent agent = { 0 };

    for (int i = 0; i < 20; i++) {
        struct pair x = { .agent = agent };

        ck_assert_int_eq(lose(&x, i * S).verdict, NOW);
        agent = x.agent;
    }
    ck_assert_uint_eq(agent.recovered.count, 1);
    ck_assert_int_eq(agent.recovered_upto, 1);
}
END_TEST

/* The agentd that ran the recovery found the newest damaged. */
START_TEST(a_death_counts_for_what_was_restored_not_for_what_was_ordered)
{
    struct pair x = { 0 };
    struct hf_recover_case c = crashed(2);
    struct hf_recover_decision d;

    (void)lose(&x, 0);
    ck_assert_int_eq(hf_recover_checkpoint(&x.task), 5);
    c.restored = 3;
    d = decide(&x, c, 1 * MIN);
    hf_recover_on_decided(&x.task, &x.agent, &c, &d, 1 * MIN);
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 3), 1);
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 5), 0);
}
END_TEST

START_TEST(what_killed_twice_is_not_ordered_again)
{
    struct pair x = { 0 };

    (void)lose(&x, 0);
    (void)lose(&x, 1 * MIN);
    ck_assert_int_eq(hf_recover_checkpoint(&x.task), 5);
    (void)lose(&x, 3 * MIN);
    ck_assert_uint_eq(hf_recover_deaths(&x.task, 5), 2);
    ck_assert_int_eq(hf_recover_checkpoint(&x.task), 4);
    ck_assert_int_eq(hf_recover_newest(&x.task, 7, 2), 7);
    ck_assert_int_eq(hf_recover_newest(&x.task, 5, 1), 4);
    ck_assert_int_eq(hf_recover_newest(&(struct hf_recover){ 0 }, 0, 2), 0);
}
END_TEST

START_TEST(deaths_are_remembered_longest)
{
    struct hf_recover r = { 0 };
    struct hf_recover_policy p = exact_policy();
    struct hf_recover_agent agent = { 0 };
    hf_ms now = 0;
    int64_t life = 0;

    for (int i = 0; i < 30; i++) {
        struct hf_recover_case c = crashed(++life);
        c.checkpoint = i < 2 ? 5 : 6;
        struct hf_recover_decision d =
            hf_recover_decide(&r, &agent, &p, &c, now += 2 * HOUR, 0);
        ck_assert_int_le(d.verdict, LATER);
        hf_recover_on_decided(&r, &agent, &c, &d, now);
        if (i >= 2)
            hf_recover_on_closed(&r, COMPLETED, 6, now);
    }
    ck_assert_uint_eq(r.outcome_count, HF_RECOVER_OUTCOMES);
    ck_assert_uint_eq(hf_recover_deaths(&r, 5), 2);
    ck_assert_int_eq(r.outcomes[HF_RECOVER_OUTCOMES - 1].at, now);
}
END_TEST

START_TEST(when_all_died_the_oldest_is_forgotten)
{
    struct hf_recover r = { .attempts = 1, .outcome_count = HF_RECOVER_OUTCOMES };
    struct hf_recover_policy p = exact_policy();

    for (int i = 0; i < HF_RECOVER_OUTCOMES; i++)
        r.outcomes[i] = (struct hf_recover_outcome){ .at = i, .checkpoint = i, .result = DIED };
    hf_recover_on_taken(&r, &p, 100);
    ck_assert_uint_eq(r.outcome_count, HF_RECOVER_OUTCOMES);
    ck_assert_int_eq(r.outcomes[0].checkpoint, 1);
    ck_assert_int_eq(r.outcomes[HF_RECOVER_OUTCOMES - 1].result, ORDERED);
}
END_TEST

START_TEST(a_record_comes_back_through_etcd_as_it_was)
{
    struct hf_recover r = {
        .attempts = 2,
        .next_at = INT64_C(1769846951430),
        .probation_until = INT64_C(1769847851430),
        .outcomes = { { .at = INT64_C(1769846951000), .checkpoint = 6, .result = DIED },
                      { .at = INT64_C(1769846951430), .result = ORDERED } },
        .outcome_count = 2,
    };
    struct hf_recover_record record;
    struct hf_buf text = { 0 };
    ProtobufCMessage *message = NULL;

    hf_recover_store(&r, "t1", &record);
    ck_assert_ptr_null(record.record.outcomes[1]->checkpoint);
    ck_assert_int_eq(hf_json_encode(&record.record.base, &text), HF_OK);
    ck_assert_int_eq(hf_json_decode(&holdfast__v1__recovery__descriptor, text.data, text.len,
                                    NULL, &message, NULL),
                     HF_OK);
    ck_assert_str_eq(((Holdfast__V1__Recovery *)message)->task, "t1");
    struct hf_recover back = hf_recover_load((Holdfast__V1__Recovery *)message);
    ck_assert_mem_eq(&back, &r, sizeof r);
    hf_json_free(message);
    hf_buf_done(&text);
}
END_TEST

START_TEST(what_others_wrote_into_a_record_is_taken_as_far_as_it_goes)
{
    Holdfast__V1__Recovery__Outcome outcome = HOLDFAST__V1__RECOVERY__OUTCOME__INIT;
    Holdfast__V1__Recovery__Outcome *list[HF_RECOVER_OUTCOMES + 2];
    Holdfast__V1__Recovery record = HOLDFAST__V1__RECOVERY__INIT;

    outcome.result = DIED;
    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = &outcome;
    record.attempts = -4;
    record.outcomes = list;
    record.n_outcomes = COUNT(list);
    struct hf_recover r = hf_recover_load(&record);
    ck_assert_uint_eq(r.attempts, 0);
    ck_assert_uint_eq(r.outcome_count, HF_RECOVER_OUTCOMES);
    ck_assert_uint_eq(hf_recover_load(NULL).outcome_count, 0);
}
END_TEST

START_TEST(the_agents_part_is_read_from_its_health)
{
    Holdfast__V1__Health health = HOLDFAST__V1__HEALTH__INIT;
    struct hf_backoff times = { .at = { 1 * S, 2 * S }, .count = 2 };
    struct hf_moments moments;

    hf_moments_write(&times, &moments);
    health.recovered_at = moments.list;
    health.n_recovered_at = moments.count;
    health.recovered_upto = 77;
    struct hf_recover_agent agent = hf_recover_agent_load(&health);
    ck_assert_uint_eq(agent.recovered.count, 2);
    ck_assert_int_eq(agent.recovered.at[1], 2 * S);
    ck_assert_int_eq(agent.recovered_upto, 77);
    ck_assert_uint_eq(hf_recover_agent_load(NULL).recovered.count, 0);
}
END_TEST

static const struct {
    uint32_t limit, agent_limit;
    hf_ms agent_window, probation, forget_after, first;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { 3, 5, HOUR, 15 * MIN, 0, 60 * S, NULL },
    { 16, 32, 168 * HOUR, 168 * HOUR, 0, 60 * S, NULL },
    { 0, 5, HOUR, 15 * MIN, 0, 60 * S, "limit must be 1..16" },
    { 17, 5, HOUR, 15 * MIN, 0, 60 * S, "limit must be 1..16" },
    { 3, 0, HOUR, 15 * MIN, 0, 60 * S, "agent_limit must be 1..32" },
    { 3, 33, HOUR, 15 * MIN, 0, 60 * S, "agent_limit must be 1..32" },
    { 3, 5, 0, 15 * MIN, 0, 60 * S, "agent_window" },
    { 3, 5, 168 * HOUR + 1, 15 * MIN, 0, 60 * S, "agent_window" },
    { 3, 5, HOUR, 0, 0, 60 * S, "probation" },
    { 3, 5, HOUR, 168 * HOUR + 1, 0, 60 * S, "probation" },
    { 3, 5, HOUR, 15 * MIN, HOUR, 60 * S, "only success" },
    { 3, 5, HOUR, 15 * MIN, 0, 0, "positive delays" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    struct hf_recover_policy p = hf_recover_policy_default();
    const char *why = NULL;

    p.limit = CHECKS[_i].limit;
    p.agent_limit = CHECKS[_i].agent_limit;
    p.agent_window = CHECKS[_i].agent_window;
    p.probation = CHECKS[_i].probation;
    p.backoff.forget_after = CHECKS[_i].forget_after;
    p.backoff.list[0] = CHECKS[_i].first;
    ck_assert_int_eq(hf_recover_policy_check(&p, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(verdicts_have_names)
{
    ck_assert_str_eq(hf_recover_verdict_name(NOW), "NOW");
    ck_assert_str_eq(hf_recover_verdict_name(LATER), "LATER");
    ck_assert_str_eq(hf_recover_verdict_name(REVIEW), "REVIEW");
    ck_assert_str_eq(hf_recover_verdict_name(HF_RECOVER_WAIT), "WAIT");
    ck_assert_str_eq(hf_recover_verdict_name((enum hf_recover_verdict)NEWER), "?");
    ck_assert_str_eq(hf_recover_due_name(HF_RECOVER_FINE), "FINE");
    ck_assert_str_eq(hf_recover_due_name(HF_RECOVER_PROMOTE), "PROMOTE");
    ck_assert_str_eq(hf_recover_due_name(HF_RECOVER_TAKEN), "TAKEN");
    ck_assert_str_eq(hf_recover_due_name(HF_RECOVER_RELEASED), "RELEASED");
    ck_assert_str_eq(hf_recover_due_name(HF_RECOVER_CLOSE), "CLOSE");
    ck_assert_str_eq(hf_recover_due_name((enum hf_recover_due)NEWER), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("recover");

    tcase_add_test(t, the_first_recovery_is_at_once_and_kept_for_the_successor);
    tcase_add_test(t, without_a_successor_it_is_for_anyone);
    tcase_add_test(t, the_next_ones_wait_and_the_fourth_is_for_a_person);
    tcase_add_test(t, without_a_clock_nothing_is_drawn_or_counted);
    tcase_add_test(t, what_was_drawn_is_what_the_next_leader_finds);
    tcase_add_test(t, a_probation_that_is_over_closes_the_counting);
    tcase_add_test(t, a_death_on_probation_counts);
    tcase_add_test(t, waiting_for_somebody_is_no_probation);
    tcase_add_test(t, who_gives_a_task_back_has_not_recovered_it);
    tcase_add_loop_test(t, a_task_that_ended_closes_the_counting, 0, COUNT(ENDS));
    tcase_add_test(t, a_person_or_a_newer_program_is_waited_for);
    tcase_add_test(t, a_start_that_was_refused_leaves_the_recovery_to_anyone);
    tcase_add_test(t, a_task_that_waits_for_nobody_in_particular_any_more_was_refused);
    tcase_add_test(t, what_was_never_kept_for_anybody_cannot_be_refused);
    tcase_add_test(t, a_successor_that_nobody_saw_is_counted_all_the_same);
    tcase_add_loop_test(t, only_an_end_that_nobody_asked_for_speaks_against_a_checkpoint, 0,
                        COUNT(BLAME));
    tcase_add_test(t, the_sixth_death_with_a_task_in_an_hour_is_for_a_person);
    tcase_add_test(t, one_death_counts_once_however_many_tasks_there_were);
    tcase_add_test(t, a_death_counts_for_what_was_restored_not_for_what_was_ordered);
    tcase_add_test(t, what_killed_twice_is_not_ordered_again);
    tcase_add_test(t, deaths_are_remembered_longest);
    tcase_add_test(t, when_all_died_the_oldest_is_forgotten);
    tcase_add_test(t, a_record_comes_back_through_etcd_as_it_was);
    tcase_add_test(t, what_others_wrote_into_a_record_is_taken_as_far_as_it_goes);
    tcase_add_test(t, the_agents_part_is_read_from_its_health);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, verdicts_have_names);
    return run("core/recover", t);
}
