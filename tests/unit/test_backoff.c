#include <string.h>

#include "core/backoff.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S };

/* The defaults without jitter, so that delays are round numbers. */
static struct hf_backoff_policy exact(struct hf_backoff_policy p)
{
    p.jitter_percent = 0;
    return p;
}

static struct hf_backoff tried(const hf_ms *at, size_t count)
{
    struct hf_backoff b = { 0 };

    for (size_t i = 0; i < count; i++)
        hf_backoff_on_attempt(&b, at[i]);
    return b;
}

#define TRIED(...)                                                                             \
    tried((const hf_ms[]){ __VA_ARGS__ },                                                      \
          sizeof((const hf_ms[]){ __VA_ARGS__ }) / sizeof(hf_ms))

START_TEST(an_agent_is_restarted_at_once_then_after_1_s_doubling_to_60_s)
{
    static const hf_ms WANT[] = { 0,      1 * S,  2 * S,  4 * S,  8 * S,
                                  16 * S, 32 * S, 60 * S, 60 * S, 60 * S };
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    for (uint32_t i = 0; i < COUNT(WANT); i++)
        ck_assert_int_eq(hf_backoff_delay(&p, i + 1, 0), WANT[i]);
}
END_TEST

START_TEST(a_task_is_recovered_at_once_then_after_60_120_and_240_s)
{
    static const hf_ms WANT[] = { 0, 60 * S, 120 * S, 240 * S, 240 * S, 240 * S };
    struct hf_backoff_policy p = exact(hf_backoff_policy_recovery());

    for (uint32_t i = 0; i < COUNT(WANT); i++)
        ck_assert_int_eq(hf_backoff_delay(&p, i + 1, 0), WANT[i]);
}
END_TEST

START_TEST(without_first_at_once_the_first_attempt_waits_too)
{
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    p.first_at_once = false;
    ck_assert_int_eq(hf_backoff_delay(&p, 1, 0), 1 * S);
    ck_assert_int_eq(hf_backoff_delay(&p, 2, 0), 2 * S);
}
END_TEST

START_TEST(no_attempt_number_is_too_large)
{
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    ck_assert_int_eq(hf_backoff_delay(&p, UINT32_MAX, 0), 60 * S);
    p.first_at_once = false;
    ck_assert_int_eq(hf_backoff_delay(&p, UINT32_MAX, 0), 60 * S);
    p.factor_percent = 100;
    ck_assert_int_eq(hf_backoff_delay(&p, UINT32_MAX, 0), 1 * S);
    p = exact(hf_backoff_policy_recovery());
    ck_assert_int_eq(hf_backoff_delay(&p, UINT32_MAX, 0), 240 * S);
}
END_TEST

START_TEST(a_factor_between_whole_numbers_rounds_up_and_gets_on)
{
    struct hf_backoff_policy p = { .base = 1, .factor_percent = 150, .cap = 10 };
    static const hf_ms WANT[] = { 1, 2, 3, 5, 8, 10, 10 };

    for (uint32_t i = 0; i < COUNT(WANT); i++)
        ck_assert_int_eq(hf_backoff_delay(&p, i + 1, 0), WANT[i]);
}
END_TEST

START_TEST(jitter_takes_off_between_nothing_and_its_share)
{
    struct hf_backoff_policy p = hf_backoff_policy_recovery();

    ck_assert_int_eq(hf_backoff_delay(&p, 2, 0), 60 * S);
    ck_assert_int_eq(hf_backoff_delay(&p, 2, UINT32_MAX / 2), 57 * S);
    ck_assert_int_eq(hf_backoff_delay(&p, 2, UINT32_MAX), 54 * S);
    p.jitter_percent = 50;
    ck_assert_int_eq(hf_backoff_delay(&p, 2, UINT32_MAX), 30 * S);
    ck_assert_int_eq(hf_backoff_delay(&p, 1, UINT32_MAX), 0);
}
END_TEST

/* Over many policies, attempts and random words. */
START_TEST(delays_stay_in_bounds_and_never_shrink)
{
    struct hf_backoff_policy p = { .first_at_once = _i % 2 == 0,
                                   .base = 1 + 37 * _i,
                                   .factor_percent = (uint16_t)(100 + 9 * _i),
                                   .cap = 100000 + 604700000 / 99 * _i,
                                   .jitter_percent = (uint8_t)(_i % 51) };
    const char *why = NULL;

    ck_assert_int_eq(hf_backoff_policy_check(&p, &why), HF_OK);
    for (uint32_t random = 1; random < UINT32_MAX / 3; random = random * 3 + 1) {
        hf_ms last = 0;

        for (uint32_t attempt = 1; attempt <= 300; attempt++) {
            hf_ms delay = hf_backoff_delay(&p, attempt, random);

            ck_assert_int_ge(delay, last);
            ck_assert_int_le(delay, p.cap);
            if (attempt > 1)
                ck_assert_int_ge(delay, p.base - p.base * p.jitter_percent / 100);
            last = delay;
        }
    }
}
END_TEST

START_TEST(attempts_are_counted_in_a_window_that_ends_now)
{
    struct hf_backoff b = TRIED(0, 1 * MIN, 2 * MIN);

    ck_assert_uint_eq(hf_backoff_count(&b, 10 * MIN, 2 * MIN), 3);
    ck_assert_uint_eq(hf_backoff_count(&b, 10 * MIN, 10 * MIN - 1), 3);
    ck_assert_uint_eq(hf_backoff_count(&b, 10 * MIN, 10 * MIN), 2);
    ck_assert_uint_eq(hf_backoff_count(&b, 10 * MIN, 12 * MIN), 0);
    ck_assert_uint_eq(hf_backoff_count(&b, 0, 2 * MIN), 0);
}
END_TEST

START_TEST(a_time_in_the_future_counts_as_just_now)
{
    struct hf_backoff b = TRIED(30 * S);
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    ck_assert_uint_eq(hf_backoff_count(&b, 10 * MIN, 0), 1);
    ck_assert_uint_eq(hf_backoff_streak(&b, &p, 0), 1);
    ck_assert_int_eq(hf_backoff_room_at(&b, 10 * MIN, 1, 0), 10 * MIN + 30 * S);
}
END_TEST

START_TEST(times_at_the_ends_of_the_range_do_not_overflow)
{
    struct hf_backoff b = TRIED(INT64_MIN, INT64_MAX);
    struct hf_backoff_policy p = exact(hf_backoff_policy_recovery());

    ck_assert_uint_eq(hf_backoff_count(&b, INT64_MAX, INT64_MAX), 1);
    ck_assert_uint_eq(hf_backoff_count(&b, INT64_MAX, INT64_MIN), 2);
    ck_assert_int_eq(hf_backoff_room_at(&b, 1, 1, 0), HF_BACKOFF_NEVER);
    ck_assert_int_eq(hf_backoff_next(&b, &p, INT64_MAX - 1, 0), HF_BACKOFF_NEVER);
    ck_assert_int_eq(hf_backoff_next(&b, &p, INT64_MIN, 0), INT64_MIN + 120 * S);
}
END_TEST

START_TEST(a_limit_says_when_there_is_room_again)
{
    struct hf_backoff b = TRIED(0, 10 * MIN, 20 * MIN, 30 * MIN, 40 * MIN);

    ck_assert_int_eq(hf_backoff_room_at(&b, 60 * MIN, 6, 50 * MIN), 50 * MIN);
    ck_assert_int_eq(hf_backoff_room_at(&b, 60 * MIN, 5, 50 * MIN), 60 * MIN);
    ck_assert_int_eq(hf_backoff_room_at(&b, 60 * MIN, 5, 60 * MIN), 60 * MIN);
    ck_assert_int_eq(hf_backoff_room_at(&b, 60 * MIN, 3, 50 * MIN), 80 * MIN);
    ck_assert_int_eq(hf_backoff_room_at(&b, 60 * MIN, 0, 50 * MIN), HF_BACKOFF_NEVER);
}
END_TEST

START_TEST(ten_minutes_of_health_forget_every_attempt)
{
    struct hf_backoff b = TRIED(0, 1 * S, 3 * S);
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    ck_assert_uint_eq(hf_backoff_streak(&b, &p, 3 * S + 10 * MIN - 1), 3);
    ck_assert_int_eq(hf_backoff_next(&b, &p, 3 * S + 10 * MIN - 1, 0),
                     3 * S + 10 * MIN - 1 + 4 * S);
    ck_assert_uint_eq(hf_backoff_streak(&b, &p, 3 * S + 10 * MIN), 0);
    ck_assert_int_eq(hf_backoff_next(&b, &p, 3 * S + 10 * MIN, 0), 3 * S + 10 * MIN);
}
END_TEST

START_TEST(what_came_before_a_healthy_life_stays_forgotten)
{
    struct hf_backoff b = TRIED(0, 1 * S, 3 * S, 3 * S + 10 * MIN, 4 * S + 10 * MIN);
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    ck_assert_uint_eq(hf_backoff_streak(&b, &p, 5 * S + 10 * MIN), 2);
}
END_TEST

START_TEST(lives_of_nine_minutes_are_not_health)
{
    struct hf_backoff b = TRIED(0, 9 * MIN, 18 * MIN, 27 * MIN);
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    ck_assert_uint_eq(hf_backoff_streak(&b, &p, 36 * MIN), 4);
}
END_TEST

START_TEST(recoveries_of_a_task_are_never_forgotten)
{
    struct hf_backoff b = TRIED(0, 1 * S);
    struct hf_backoff_policy p = exact(hf_backoff_policy_recovery());

    ck_assert_uint_eq(hf_backoff_streak(&b, &p, INT64_MAX), 2);
}
END_TEST

START_TEST(the_oldest_attempt_makes_room_for_the_newest)
{
    struct hf_backoff b = { 0 };
    struct hf_backoff_policy p = exact(hf_backoff_policy_restart());

    for (hf_ms i = 0; i < HF_BACKOFF_KEPT + 5; i++)
        hf_backoff_on_attempt(&b, i);
    ck_assert_uint_eq(b.count, HF_BACKOFF_KEPT);
    ck_assert_int_eq(b.at[0], 5);
    ck_assert_int_eq(b.at[HF_BACKOFF_KEPT - 1], HF_BACKOFF_KEPT + 4);
    ck_assert_uint_eq(hf_backoff_streak(&b, &p, HF_BACKOFF_KEPT + 4), HF_BACKOFF_KEPT);
}
END_TEST

START_TEST(attempts_that_come_out_of_order_are_taken_for_newer)
{
    struct hf_backoff b = TRIED(5 * MIN, 1 * MIN);

    ck_assert_int_eq(b.at[0], 5 * MIN);
    ck_assert_int_eq(b.at[1], 5 * MIN);
}
END_TEST

/* Held against plain counting, for random histories and windows. */
START_TEST(counts_and_room_agree_with_plain_counting)
{
    uint64_t seed = 0x9E3779B97F4A7C15 * (uint64_t)(_i + 1);
    struct hf_backoff b = { 0 };
    hf_ms now = 0;

    for (int step = 0; step < 60; step++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        now += (hf_ms)(seed >> 33) % (2 * MIN);
        hf_backoff_on_attempt(&b, now);

        hf_ms window = (hf_ms)(seed >> 40) % (20 * MIN);
        uint32_t limit = 1 + (uint32_t)(seed >> 20) % 12, plain = 0;
        for (uint8_t i = 0; i < b.count; i++)
            plain += now - b.at[i] < window;
        ck_assert_uint_eq(hf_backoff_count(&b, window, now), plain);

        hf_ms room = hf_backoff_room_at(&b, window, limit, now);
        ck_assert_uint_lt(hf_backoff_count(&b, window, room), limit);
        if (room > now)
            ck_assert_uint_ge(hf_backoff_count(&b, window, room - 1), limit);
    }
}
END_TEST

#define GROWTH .base = 1000, .factor_percent = 200, .cap = 60000

static const struct {
    struct hf_backoff_policy policy;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { { GROWTH }, NULL },
    { { .base = 1, .factor_percent = 100, .cap = 1 }, NULL },
    { { .base = 1, .factor_percent = 1000, .cap = 604800000 }, NULL },
    { { 0 }, "base must be positive" },
    { { .base = 1000, .factor_percent = 200, .cap = 999 }, "cap must not be below" },
    { { .base = 1000, .factor_percent = 200, .cap = 604800001 }, "above a week" },
    { { .base = 1000, .factor_percent = 99, .cap = 60000 }, "factor must be" },
    { { .base = 1000, .factor_percent = 1001, .cap = 60000 }, "factor must be" },
    { { GROWTH, .jitter_percent = 50 }, NULL },
    { { GROWTH, .jitter_percent = 51 }, "jitter_percent" },
    { { GROWTH, .forget_after = -1 }, "must not be negative" },
    { { GROWTH, .forget_after = 60000 }, "taken for health" },
    { { GROWTH, .forget_after = 60001 }, NULL },
    { { .list = { 5 }, .list_count = 1 }, NULL },
    { { .list = { 1, 2, 3, 4, 5, 6, 7, 604800000 }, .list_count = 8 }, NULL },
    { { .list = { 5 }, .list_count = 9 }, "more than 8" },
    { { .list = { 5, 0 }, .list_count = 2 }, "positive delays" },
    { { .list = { 5, 604800001 }, .list_count = 2 }, "positive delays" },
    { { .list = { 5 }, .list_count = 1, .base = 1 }, "together" },
    { { .list = { 5 }, .list_count = 1, .cap = 1 }, "together" },
    { { .list = { 5 }, .list_count = 1, .factor_percent = 200 }, "together" },
    { { .list = { 5, 9 }, .list_count = 2, .forget_after = 9 }, "taken for health" },
    { { .list = { 9, 5 }, .list_count = 2, .forget_after = 9 }, "taken for health" },
    { { .list = { 9, 5 }, .list_count = 2, .forget_after = 10 }, NULL },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;
    int rc = hf_backoff_policy_check(&CHECKS[_i].policy, &why);

    if (CHECKS[_i].want == NULL) {
        ck_assert_int_eq(rc, HF_OK);
        ck_assert_ptr_null(why);
    } else {
        ck_assert_int_eq(rc, HF_EINVAL);
        ck_assert_ptr_nonnull(why);
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
    }
}
END_TEST

START_TEST(the_defaults_pass_their_check)
{
    struct hf_backoff_policy restart = hf_backoff_policy_restart();
    struct hf_backoff_policy recovery = hf_backoff_policy_recovery();
    const char *why = NULL;

    ck_assert_int_eq(hf_backoff_policy_check(&restart, &why), HF_OK);
    ck_assert_int_eq(hf_backoff_policy_check(&recovery, &why), HF_OK);
    ck_assert_int_eq(restart.forget_after, 10 * MIN);
    ck_assert_uint_eq(restart.jitter_percent, 10);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("backoff");

    tcase_add_test(t, an_agent_is_restarted_at_once_then_after_1_s_doubling_to_60_s);
    tcase_add_test(t, a_task_is_recovered_at_once_then_after_60_120_and_240_s);
    tcase_add_test(t, without_first_at_once_the_first_attempt_waits_too);
    tcase_add_test(t, no_attempt_number_is_too_large);
    tcase_add_test(t, a_factor_between_whole_numbers_rounds_up_and_gets_on);
    tcase_add_test(t, jitter_takes_off_between_nothing_and_its_share);
    tcase_add_loop_test(t, delays_stay_in_bounds_and_never_shrink, 0, 99);
    tcase_add_test(t, attempts_are_counted_in_a_window_that_ends_now);
    tcase_add_test(t, a_time_in_the_future_counts_as_just_now);
    tcase_add_test(t, times_at_the_ends_of_the_range_do_not_overflow);
    tcase_add_test(t, a_limit_says_when_there_is_room_again);
    tcase_add_test(t, ten_minutes_of_health_forget_every_attempt);
    tcase_add_test(t, what_came_before_a_healthy_life_stays_forgotten);
    tcase_add_test(t, lives_of_nine_minutes_are_not_health);
    tcase_add_test(t, recoveries_of_a_task_are_never_forgotten);
    tcase_add_test(t, the_oldest_attempt_makes_room_for_the_newest);
    tcase_add_test(t, attempts_that_come_out_of_order_are_taken_for_newer);
    tcase_add_loop_test(t, counts_and_room_agree_with_plain_counting, 0, 50);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, the_defaults_pass_their_check);
    return run("core/backoff", t);
}
