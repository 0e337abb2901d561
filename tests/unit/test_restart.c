#include <string.h>

#include "core/restart.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S };

enum {
    UNKNOWN = HOLDFAST__V1__EXIT__KIND__unknown,
    LEFT = HOLDFAST__V1__EXIT__KIND__left,
    FINISHED = HOLDFAST__V1__EXIT__KIND__finished,
    CRASHED = HOLDFAST__V1__EXIT__KIND__crashed,
    OOM = HOLDFAST__V1__EXIT__KIND__oom,
    FROZEN = HOLDFAST__V1__EXIT__KIND__frozen,
    UNREACHABLE = HOLDFAST__V1__EXIT__KIND__unreachable,
    FENCED = HOLDFAST__V1__EXIT__KIND__fenced,
    TERMINATED = HOLDFAST__V1__EXIT__KIND__terminated,
    START_FAILED = HOLDFAST__V1__EXIT__KIND__start_failed,
    UNKILLABLE = HOLDFAST__V1__EXIT__KIND__unkillable,
    NEWER = 99,
};

enum {
    ON_FAILURE = HOLDFAST__V1__SPEC__RESTART__on_failure,
    ALWAYS = HOLDFAST__V1__SPEC__RESTART__always,
    NEVER = HOLDFAST__V1__SPEC__RESTART__never,
};

#define START     HF_RESTART_START_AT
#define ELSEWHERE HF_RESTART_ELSEWHERE
#define DEMAND    HF_RESTART_ON_DEMAND
#define NO        HF_RESTART_NOT_WANTED
#define HELD      HF_RESTART_HELD

/* The default without jitter, so that moments are round numbers. */
static struct hf_restart_policy exact_policy(void)
{
    struct hf_restart_policy p = hf_restart_policy_default();

    p.backoff.jitter_percent = 0;
    return p;
}

static struct hf_restart_case died(int death, int restart)
{
    return (struct hf_restart_case){
        .death = (Holdfast__V1__Exit__Kind)death,
        .restart = (Holdfast__V1__Spec__Restart)restart,
        .wanted = HOLDFAST__V1__WANTED__STATE__running,
        .has_other_host = true,
    };
}

static struct hf_restart_decision decide(struct hf_restart *r, struct hf_restart_case c,
                                         hf_ms now)
{
    struct hf_restart_policy p = exact_policy();
    struct hf_restart_decision d = hf_restart_decide(r, &p, &c, now, 0);

    ck_assert_ptr_nonnull(d.why);
    ck_assert_ptr_nonnull(d.next);
    ck_assert_int_eq(d.at != HF_RESTART_NEVER, d.verdict == START || d.verdict == ELSEWHERE);
    return d;
}

/* Dies, is decided on, and is started when that is due; returns when that was. */
static hf_ms crash_and_start(struct hf_restart *r, hf_ms now)
{
    struct hf_restart_decision d = decide(r, died(CRASHED, ON_FAILURE), now);

    ck_assert_int_eq(d.verdict, START);
    hf_restart_on_ordered(r, d.at);
    return d.at;
}

static const struct {
    int death;
    enum hf_restart_verdict on_failure, always, never;
    const char *why; /* part of the sentence under on_failure */
} RULES[] = {
    { UNKNOWN, START, START, NO, "how it ended is not known: it is started again" },
    { LEFT, NO, NO, NO, "it said goodbye, and by its restart policy that is the end" },
    { FINISHED, DEMAND, START, NO, "it finished: it is started when its role has work" },
    { CRASHED, START, START, NO, "it crashed: it is started again" },
    { OOM, START, START, NO, "memory" },
    { FROZEN, START, START, NO, "frozen" },
    { UNREACHABLE, START, START, NO, "lease expired" },
    { FENCED, START, START, NO, "own agentd" },
    { TERMINATED, START, START, START, "on request" },
    { START_FAILED, ELSEWHERE, ELSEWHERE, NO,
      "could not be started: it is started on another" },
    { UNKILLABLE, ELSEWHERE, ELSEWHERE, NO, "cannot be killed" },
    { NEWER, START, START, NO, "not known" },
};

START_TEST(every_death_has_a_rule_under_every_policy)
{
    struct hf_restart r[4] = { 0 };
    int death = RULES[_i].death;
    struct hf_restart_decision d = decide(&r[0], died(death, ON_FAILURE), 0);

    ck_assert_int_eq(d.verdict, RULES[_i].on_failure);
    ck_assert_msg(strstr(d.why, RULES[_i].why) != NULL, "%s", d.why);
    ck_assert_int_eq(decide(&r[1], died(death, ALWAYS), 0).verdict, RULES[_i].always);
    ck_assert_int_eq(decide(&r[2], died(death, NEVER), 0).verdict, RULES[_i].never);
    ck_assert_int_eq(decide(&r[3], died(death, NEWER), 0).verdict, RULES[_i].on_failure);
}
END_TEST

/* It is what `holdfast start` and `holdfast restart` promise, and nobody else can do. */
START_TEST(a_person_who_asks_for_it_after_its_death_gets_it)
{
    struct hf_restart r[3] = { 0 };
    struct hf_restart_case c = died(RULES[_i].death, ON_FAILURE);

    c.asked = true;
    c.has_other_host = false;
    ck_assert_int_eq(decide(&r[0], c, 0).verdict,
                     RULES[_i].death == UNKILLABLE ? ELSEWHERE : START);
    c.restart = HOLDFAST__V1__SPEC__RESTART__never;
    ck_assert_int_eq(decide(&r[1], c, 0).verdict, START);
    r[2].held = true; /* not released by the same word */
    ck_assert_int_eq(decide(&r[2], c, 0).verdict, HELD);
}
END_TEST

START_TEST(what_is_wanted_stopped_is_never_started)
{
    for (int death = UNKNOWN; death <= UNKILLABLE; death++) {
        for (int restart = ON_FAILURE; restart <= NEVER; restart++) {
            struct hf_restart r = { .planned = true };
            struct hf_restart_case c = died(death, restart);

            c.has_work = c.host_gone = true;
            c.wanted = HOLDFAST__V1__WANTED__STATE__stopped;
            ck_assert_int_eq(decide(&r, c, 0).verdict, NO);
            ck_assert(!r.planned);
            c.wanted = (Holdfast__V1__Wanted__State)NEWER;
            ck_assert_int_eq(decide(&r, c, 0).verdict, NO);
        }
    }
}
END_TEST

START_TEST(one_that_came_back_or_is_being_started_is_left_alone)
{
    struct hf_restart r = { .planned = true };
    struct hf_restart_case c = died(CRASHED, ALWAYS);

    c.live = true;
    ck_assert_int_eq(decide(&r, c, 0).verdict, HF_RESTART_DUPLICATE);
    ck_assert(!r.planned);
    c.live = false;
    c.ordered = true;
    ck_assert_int_eq(decide(&r, c, 0).verdict, HF_RESTART_DUPLICATE);
}
END_TEST

START_TEST(one_that_finished_comes_back_when_there_is_work)
{
    struct hf_restart r = { 0 };
    struct hf_restart_case c = died(FINISHED, ON_FAILURE);

    ck_assert_int_eq(decide(&r, c, 5 * S).verdict, DEMAND);
    c.has_work = true;
    ck_assert_int_eq(decide(&r, c, 6 * S).at, 6 * S);
    c.has_work = false; /* somebody else took it */
    ck_assert_int_eq(decide(&r, c, 7 * S).verdict, DEMAND);
    ck_assert(!r.planned);
}
END_TEST

START_TEST(one_whose_host_is_gone_is_started_elsewhere)
{
    struct hf_restart r = { 0 };
    struct hf_restart_case c = died(UNREACHABLE, ON_FAILURE);

    c.host_gone = true;
    ck_assert_int_eq(decide(&r, c, 0).verdict, ELSEWHERE);
    c.host_gone = false;
    ck_assert_int_eq(decide(&r, c, 0).verdict, START);
    c.death = HOLDFAST__V1__EXIT__KIND__crashed; /* seen: where is placement's business */
    c.host_gone = true;
    ck_assert_int_eq(decide(&r, c, 0).verdict, START);
}
END_TEST

START_TEST(one_that_no_host_can_start_is_held)
{
    struct hf_restart r = { 0 };
    struct hf_restart_case c = died(START_FAILED, ON_FAILURE);

    c.has_other_host = false;
    struct hf_restart_decision d = decide(&r, c, 0);
    ck_assert_int_eq(d.verdict, HELD);
    ck_assert_msg(strstr(d.why, "no other host") != NULL, "%s", d.why);
    ck_assert(d.alert);
    ck_assert(r.held);
}
END_TEST

START_TEST(one_that_cannot_be_killed_waits_for_another_host_and_says_so_once)
{
    struct hf_restart r = { 0 };
    struct hf_restart_case c = died(UNKILLABLE, ALWAYS);

    c.has_other_host = false;
    struct hf_restart_decision d = decide(&r, c, 0);
    ck_assert_int_eq(d.verdict, ELSEWHERE);
    ck_assert(d.alert);
    ck_assert(!decide(&r, c, 1 * S).alert);
}
END_TEST

START_TEST(the_first_start_is_at_once_and_the_next_ones_wait)
{
    static const hf_ms DELAYS[] = { 0,      1 * S,  2 * S,  4 * S,  8 * S,
                                    16 * S, 32 * S, 60 * S, 60 * S, 60 * S };
    struct hf_restart r = { 0 };
    hf_ms now = 100 * S;

    for (uint32_t i = 0; i < COUNT(DELAYS); i++) {
        struct hf_restart_decision d = decide(&r, died(CRASHED, ON_FAILURE), now);

        ck_assert_int_eq(d.verdict, START);
        ck_assert_int_eq(d.at, now + DELAYS[i]);
        ck_assert_uint_eq(d.attempt, i + 1);
        hf_restart_on_ordered(&r, d.at);
        now = d.at;
    }
}
END_TEST

START_TEST(the_eleventh_start_in_ten_minutes_is_held_until_released)
{
    struct hf_restart r = { 0 };
    hf_ms now = 0;

    for (int i = 0; i < 10; i++)
        now = crash_and_start(&r, now);
    struct hf_restart_decision d = decide(&r, died(CRASHED, ON_FAILURE), now);
    ck_assert_int_eq(d.verdict, HELD);
    ck_assert_msg(strstr(d.why, "too often") != NULL, "%s", d.why);
    ck_assert(d.alert);

    d = decide(&r, died(CRASHED, ON_FAILURE), now + 60 * MIN);
    ck_assert_int_eq(d.verdict, HELD);
    ck_assert(!d.alert);
    hf_restart_on_released(&r);
    ck_assert_int_eq(decide(&r, died(CRASHED, ON_FAILURE), now).at, now);
}
END_TEST

START_TEST(ten_minutes_of_health_forget_the_delay)
{
    struct hf_restart r = { 0 };
    hf_ms now = 0;

    for (int i = 0; i < 9; i++)
        now = crash_and_start(&r, now);
    ck_assert_int_eq(decide(&r, died(OOM, ON_FAILURE), now + 10 * MIN).at, now + 10 * MIN);
}
END_TEST

START_TEST(the_same_death_gets_the_same_answer_whenever_and_whoever_asks)
{
    struct hf_restart r = { 0 };
    struct hf_restart_policy p = hf_restart_policy_default();
    struct hf_restart_case c = died(CRASHED, ON_FAILURE);

    (void)crash_and_start(&r, 0);
    struct hf_restart_decision first = hf_restart_decide(&r, &p, &c, 5 * S, 12345);
    struct hf_restart stored = r; /* a new leader reads it */
    for (uint32_t i = 0; i < 10; i++) {
        struct hf_restart_decision d = hf_restart_decide(&stored, &p, &c, 5 * S + i * S, i);

        ck_assert_int_eq(d.at, first.at);
        ck_assert_uint_eq(d.attempt, first.attempt);
        ck_assert_str_eq(d.why, first.why);
    }
}
END_TEST

/* Random lives under random deaths: no burst is ever above the limit, and no start is early. */
START_TEST(no_history_has_more_than_ten_starts_in_ten_minutes)
{
    uint64_t seed = 0x9E3779B97F4A7C15 * (uint64_t)(_i + 1);
    struct hf_restart_policy p = hf_restart_policy_default();
    struct hf_restart r = { 0 };
    hf_ms now = 0, starts[400];
    int count = 0;

    for (int step = 0; step < 400; step++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        struct hf_restart_case c = died((int)(seed >> 33) % 11, (int)(seed >> 40) % 3);
        c.has_work = (seed >> 45) % 2 == 0;
        c.host_gone = (seed >> 46) % 2 == 0;
        struct hf_restart_decision d =
            hf_restart_decide(&r, &p, &c, now, (uint32_t)(seed >> 13));

        if (d.verdict == HELD)
            break;
        if (d.verdict == START || d.verdict == ELSEWHERE) {
            ck_assert_int_ge(d.at, now);
            ck_assert_int_le(d.at, now + p.backoff.cap);
            now = d.at;
            hf_restart_on_ordered(&r, now);
            starts[count++] = now;
        }
        now += (hf_ms)(seed >> 50) % (2 * MIN);
    }
    for (int i = 10; i < count; i++)
        ck_assert_int_ge(starts[i] - starts[i - 10], p.window);
}
END_TEST

static const struct {
    uint32_t limit;
    hf_ms window, base;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { 10, 10 * MIN, 1 * S, NULL },
    { 32, 60 * MIN, 1 * S, NULL },
    { 0, 10 * MIN, 1 * S, "limit must be" },
    { 33, 60 * MIN, 1 * S, "limit must be" },
    { 10, 0, 1 * S, "window must be" },
    { 10, INT64_C(604800001), 1 * S, "window must be" },
    { 20, 10 * MIN, 1 * S, "cannot be reached" },
    { 10, 10 * MIN, 0, "base must be positive" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    struct hf_restart_policy p = hf_restart_policy_default();
    const char *why = NULL;

    p.limit = CHECKS[_i].limit;
    p.window = CHECKS[_i].window;
    p.backoff.base = CHECKS[_i].base;
    ck_assert_int_eq(hf_restart_policy_check(&p, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(verdicts_have_names)
{
    ck_assert_str_eq(hf_restart_verdict_name(START), "START_AT");
    ck_assert_str_eq(hf_restart_verdict_name(ELSEWHERE), "ELSEWHERE");
    ck_assert_str_eq(hf_restart_verdict_name(DEMAND), "ON_DEMAND");
    ck_assert_str_eq(hf_restart_verdict_name(NO), "NOT_WANTED");
    ck_assert_str_eq(hf_restart_verdict_name(HELD), "HELD");
    ck_assert_str_eq(hf_restart_verdict_name(HF_RESTART_DUPLICATE), "DUPLICATE");
    ck_assert_str_eq(hf_restart_verdict_name((enum hf_restart_verdict)NEWER), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("restart");

    tcase_add_loop_test(t, a_person_who_asks_for_it_after_its_death_gets_it, 0,
                        sizeof RULES / sizeof RULES[0]);
    tcase_add_loop_test(t, every_death_has_a_rule_under_every_policy, 0, COUNT(RULES));
    tcase_add_test(t, what_is_wanted_stopped_is_never_started);
    tcase_add_test(t, one_that_came_back_or_is_being_started_is_left_alone);
    tcase_add_test(t, one_that_finished_comes_back_when_there_is_work);
    tcase_add_test(t, one_whose_host_is_gone_is_started_elsewhere);
    tcase_add_test(t, one_that_no_host_can_start_is_held);
    tcase_add_test(t, one_that_cannot_be_killed_waits_for_another_host_and_says_so_once);
    tcase_add_test(t, the_first_start_is_at_once_and_the_next_ones_wait);
    tcase_add_test(t, the_eleventh_start_in_ten_minutes_is_held_until_released);
    tcase_add_test(t, ten_minutes_of_health_forget_the_delay);
    tcase_add_test(t, the_same_death_gets_the_same_answer_whenever_and_whoever_asks);
    tcase_add_loop_test(t, no_history_has_more_than_ten_starts_in_ten_minutes, 0, 50);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, verdicts_have_names);
    return run("core/restart", t);
}
