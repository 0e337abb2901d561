#include <string.h>

#include "core/tilt.h"
#include "unit/suite.h"

enum { S = 1000, G = 9 * S };

static struct hf_tilt begun(void)
{
    struct hf_tilt_policy p = hf_tilt_policy_default();
    struct hf_tilt t;

    hf_tilt_init(&t, &p, 0);
    return t;
}

/* Ticks on time until `until`. */
static void tick_until(struct hf_tilt *t, hf_ms until)
{
    while (t->last < until)
        hf_tilt_on_tick(t, t->last + 1 * S);
}

START_TEST(whoever_ticks_on_time_may_judge)
{
    struct hf_tilt t = begun();

    ck_assert(hf_tilt_can_judge(&t, 0));
    for (hf_ms now = 0; now < 100 * S; now += 1 * S) {
        hf_tilt_on_tick(&t, now);
        ck_assert(hf_tilt_can_judge(&t, now));
        ck_assert_int_eq(hf_tilt_get(&t, now).at, now);
        ck_assert_str_eq(hf_tilt_get(&t, now).why, "we are well");
    }
    ck_assert_uint_eq(t.score, 0);
}
END_TEST

START_TEST(a_missing_tick_suspends_verdicts_before_anybody_reports_it)
{
    struct hf_tilt t = begun();

    ck_assert(hf_tilt_can_judge(&t, 3 * S));
    ck_assert(!hf_tilt_can_judge(&t, 3 * S + 1));
    struct hf_tilt_view v = hf_tilt_get(&t, 10 * S);
    ck_assert(strstr(v.why, "stood still") != NULL);
    ck_assert_int_eq(v.at, 15 * S);
}
END_TEST

START_TEST(a_stall_of_ten_seconds_is_followed_by_five_of_silence)
{
    struct hf_tilt t = begun();

    hf_tilt_on_tick(&t, 10 * S);
    for (hf_ms now = 10 * S; now < 15 * S; now += 1 * S) {
        hf_tilt_on_tick(&t, now);
        ck_assert(!hf_tilt_can_judge(&t, now));
        ck_assert_int_eq(hf_tilt_get(&t, now).at, 15 * S);
    }
    hf_tilt_on_tick(&t, 15 * S);
    ck_assert(hf_tilt_can_judge(&t, 15 * S));
}
END_TEST

START_TEST(a_suspicion_is_counted_anew_after_a_stall)
{
    struct hf_tilt t = begun();

    ck_assert_int_eq(hf_tilt_due(&t, 1 * S, G), 1 * S + G);
    hf_tilt_on_tick(&t, 10 * S);
    tick_until(&t, 12 * S); /* the score is forgiven by now */
    ck_assert_int_eq(hf_tilt_due(&t, 1 * S, G), 10 * S + G);
    ck_assert_int_eq(hf_tilt_due(&t, 11 * S, G), 11 * S + G);
}
END_TEST

START_TEST(nothing_is_counted_from_before_we_began)
{
    struct hf_tilt_policy p = hf_tilt_policy_default();
    struct hf_tilt t;

    hf_tilt_init(&t, &p, 50 * S);
    ck_assert_int_eq(hf_tilt_due(&t, 1 * S, G), 50 * S + G);
}
END_TEST

START_TEST(a_clock_that_goes_back_is_a_stall)
{
    struct hf_tilt t = begun();

    tick_until(&t, 100 * S);
    ck_assert(!hf_tilt_can_judge(&t, 99 * S));
    hf_tilt_on_tick(&t, 50 * S);
    ck_assert(!hf_tilt_can_judge(&t, 50 * S));
    ck_assert_int_eq(t.resumed_at, 50 * S);
    tick_until(&t, 55 * S);
    ck_assert(hf_tilt_can_judge(&t, 55 * S));
}
END_TEST

START_TEST(late_ticks_raise_the_score_to_seven_and_good_ones_lower_it)
{
    struct hf_tilt t = begun();
    hf_ms now = 0;

    for (unsigned i = 1; i <= 10; i++) {
        hf_tilt_on_tick(&t, now += 1251);
        ck_assert_uint_eq(t.score, i < 7 ? i : 7);
    }
    ck_assert(hf_tilt_can_judge(&t, now));
    ck_assert(strstr(hf_tilt_get(&t, now).why, "more time") != NULL);
    ck_assert_int_eq(hf_tilt_due(&t, now, G), now + 8 * G);
    for (unsigned i = 1; i <= 10; i++) {
        hf_tilt_on_tick(&t, now += 1250);
        ck_assert_uint_eq(hf_tilt_get(&t, now).score, i < 7 ? 7 - i : 0);
    }
}
END_TEST

START_TEST(many_late_things_in_one_tick_count_once)
{
    struct hf_tilt t = begun();

    for (int i = 0; i < 100; i++)
        hf_tilt_on_late(&t);
    hf_tilt_on_tick(&t, 1 * S);
    ck_assert_uint_eq(t.score, 1);
    ck_assert_int_eq(hf_tilt_due(&t, 1 * S, G), 1 * S + 2 * G);
    hf_tilt_on_tick(&t, 2 * S);
    ck_assert_uint_eq(t.score, 0);
}
END_TEST

START_TEST(ticks_in_a_hurry_do_not_make_us_well)
{
    struct hf_tilt t = begun();

    hf_tilt_on_late(&t);
    hf_tilt_on_tick(&t, 1 * S);
    for (hf_ms now = 1 * S; now < 1 * S + 500; now++)
        hf_tilt_on_tick(&t, now);
    ck_assert_uint_eq(t.score, 1);
    hf_tilt_on_tick(&t, 1 * S + 500);
    ck_assert_uint_eq(t.score, 0);
}
END_TEST

START_TEST(the_ends_of_the_range_do_not_overflow)
{
    struct hf_tilt t = begun();

    ck_assert_int_eq(hf_tilt_due(&t, INT64_MAX - 1, G), HF_TILT_NEVER);
    hf_tilt_on_tick(&t, INT64_MAX - 1);
    ck_assert(!hf_tilt_can_judge(&t, INT64_MAX - 1));
    ck_assert_int_eq(hf_tilt_due(&t, 0, INT64_MAX), HF_TILT_NEVER);
}
END_TEST

/* Whatever happens, a verdict is never allowed within `quiet` of a gap that was too long. */
START_TEST(no_verdict_comes_soon_after_a_gap)
{
    uint64_t seed = 0x9E3779B97F4A7C15 * (uint64_t)(_i + 1);
    struct hf_tilt t = begun();
    hf_ms now = 0, gap_end = -100 * S;

    for (int step = 0; step < 500; step++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        hf_ms ahead = (seed >> 60) == 0 ? 3001 + (hf_ms)(seed >> 40) % (60 * S)
                                        : 500 + (hf_ms)(seed >> 40) % 2500;

        now += ahead;
        if (ahead > 3 * S)
            gap_end = now;
        ck_assert_int_eq(hf_tilt_can_judge(&t, now), ahead <= 3 * S && now >= gap_end + 5 * S);
        hf_tilt_on_tick(&t, now);
        ck_assert_int_eq(hf_tilt_can_judge(&t, now), now >= gap_end + 5 * S);
        ck_assert_int_ge(hf_tilt_due(&t, now, G), now + G);
        ck_assert_int_le(hf_tilt_due(&t, now, G), now + 8 * G);
        ck_assert_int_ge(hf_tilt_due(&t, 0, G), gap_end + G);
    }
}
END_TEST

static const struct {
    struct hf_tilt_policy policy;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { { 1000, 250, 2000, 5000 }, NULL },
    { { 60000, 1, 60000, 600000 }, NULL },
    { { 0, 250, 2000, 5000 }, "tick must be positive" },
    { { 60001, 250, 2000, 70000 }, "tick must be positive" },
    { { 1000, 0, 2000, 5000 }, "lag must be positive" },
    { { 1000, 250, 250, 5000 }, "stall must be above" },
    { { 1000, 250, 60001, 5000 }, "stall must not be above" },
    { { 1000, 250, 2000, 999 }, "quiet must not be below" },
    { { 1000, 250, 2000, 600001 }, "quiet must not be above" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;

    ck_assert_int_eq(hf_tilt_policy_check(&CHECKS[_i].policy, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tilt");

    tcase_add_test(t, whoever_ticks_on_time_may_judge);
    tcase_add_test(t, a_missing_tick_suspends_verdicts_before_anybody_reports_it);
    tcase_add_test(t, a_stall_of_ten_seconds_is_followed_by_five_of_silence);
    tcase_add_test(t, a_suspicion_is_counted_anew_after_a_stall);
    tcase_add_test(t, nothing_is_counted_from_before_we_began);
    tcase_add_test(t, a_clock_that_goes_back_is_a_stall);
    tcase_add_test(t, late_ticks_raise_the_score_to_seven_and_good_ones_lower_it);
    tcase_add_test(t, many_late_things_in_one_tick_count_once);
    tcase_add_test(t, ticks_in_a_hurry_do_not_make_us_well);
    tcase_add_test(t, the_ends_of_the_range_do_not_overflow);
    tcase_add_loop_test(t, no_verdict_comes_soon_after_a_gap, 0, 50);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    return run("core/tilt", t);
}
