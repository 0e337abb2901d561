#include <string.h>

#include "core/clusterclock.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S };

#define WALL INT64_C(1700000000000) /* what the clock began with */

static struct hf_clusterclock unread(void)
{
    struct hf_clusterclock_policy p = hf_clusterclock_policy_default();
    struct hf_clusterclock c;

    hf_clusterclock_init(&c, &p);
    return c;
}

static void observe(struct hf_clusterclock *c, hf_ms value, int64_t revision, hf_ms now)
{
    ck_assert_int_eq(hf_clusterclock_on_observed(c, value, revision, false, now), HF_OK);
}

static void observe_own(struct hf_clusterclock *c, hf_ms value, int64_t revision, hf_ms now)
{
    ck_assert_int_eq(hf_clusterclock_on_observed(c, value, revision, true, now), HF_OK);
}

/* WALL was seen at 0. */
static struct hf_clusterclock seen(void)
{
    struct hf_clusterclock c = unread();

    observe(&c, WALL, 10, 0);
    return c;
}

START_TEST(a_clock_that_was_not_read_is_as_late_as_can_be)
{
    struct hf_clusterclock c = unread();

    ck_assert_int_eq(hf_clusterclock_now(&c, 5), HF_CLUSTERCLOCK_UNREAD);
    ck_assert_int_eq(hf_clusterclock_age(&c, 0, 5), 0);
    ck_assert_int_eq(hf_clusterclock_local(&c, 0, 5), HF_CLUSTERCLOCK_NEVER);
    ck_assert(!hf_clusterclock_next(&c, WALL, 5).due);
    ck_assert_int_eq(hf_clusterclock_next(&c, WALL, 5).at, HF_CLUSTERCLOCK_NEVER);
}
END_TEST

START_TEST(the_first_leader_begins_at_wall_time)
{
    struct hf_clusterclock c = unread();

    ck_assert_int_eq(hf_clusterclock_on_absent(&c), HF_OK);
    struct hf_clusterclock_step s = hf_clusterclock_next(&c, WALL, 7);
    ck_assert(s.due);
    ck_assert_int_eq(s.value, WALL);
    ck_assert_int_eq(s.at, 7);
    observe(&c, WALL, 10, 8);
    ck_assert_int_eq(hf_clusterclock_now(&c, 8), WALL);
    ck_assert(!hf_clusterclock_next(&c, WALL + 99 * MIN, 8).due);
}
END_TEST

START_TEST(a_reader_counts_on_by_itself)
{
    struct hf_clusterclock c = seen();

    ck_assert_int_eq(hf_clusterclock_now(&c, 29 * S), WALL + 29 * S);
    ck_assert_int_eq(hf_clusterclock_now(&c, -5 * S), WALL);
    ck_assert_int_eq(hf_clusterclock_age(&c, WALL - 10 * S, 5 * S), 15 * S);
    ck_assert_int_eq(hf_clusterclock_age(&c, WALL + 10 * S, 5 * S), 0);
    ck_assert_int_eq(hf_clusterclock_local(&c, WALL + 60 * S, 5 * S), 60 * S);
    ck_assert_int_eq(hf_clusterclock_local(&c, WALL, 5 * S), 5 * S);
}
END_TEST

START_TEST(the_leader_stores_it_every_thirty_seconds)
{
    struct hf_clusterclock c = seen();

    ck_assert(!hf_clusterclock_next(&c, 0, 30 * S - 1).due);
    ck_assert_int_eq(hf_clusterclock_next(&c, 0, 30 * S - 1).at, 30 * S);
    struct hf_clusterclock_step s = hf_clusterclock_next(&c, 0, 31 * S);
    ck_assert(s.due);
    ck_assert_int_eq(s.value, WALL + 31 * S);
    ck_assert_int_eq(s.at, 31 * S);
    observe_own(&c, s.value, 20, 32 * S);
    ck_assert_int_eq(hf_clusterclock_now(&c, 32 * S), WALL + 32 * S);
    ck_assert_int_eq(hf_clusterclock_next(&c, 0, 32 * S).at, 62 * S);
}
END_TEST

START_TEST(what_passes_while_nobody_counts_is_lost)
{
    struct hf_clusterclock successor = unread();

    observe(&successor, WALL, 10, 500 * S); /* an hour after it was written, for all we know */
    ck_assert_int_eq(hf_clusterclock_now(&successor, 500 * S), WALL);
}
END_TEST

START_TEST(whoever_wrote_may_know_more_or_less_than_we)
{
    struct hf_clusterclock c = seen();

    observe(&c, WALL + 40 * S, 11, 30 * S);
    ck_assert_int_eq(hf_clusterclock_now(&c, 30 * S), WALL + 40 * S);
    observe(&c, WALL + 41 * S, 12, 60 * S);
    ck_assert_int_eq(hf_clusterclock_now(&c, 60 * S), WALL + 41 * S);
}
END_TEST

START_TEST(what_a_leader_wrote_itself_does_not_set_it_back)
{
    struct hf_clusterclock c = seen();

    observe_own(&c, WALL + 30 * S, 11, 39 * S); /* told late, after another attempt */
    ck_assert_int_eq(hf_clusterclock_now(&c, 39 * S), WALL + 39 * S);
    observe(&c, WALL + 31 * S, 12, 40 * S); /* somebody else's */
    ck_assert_int_eq(hf_clusterclock_now(&c, 40 * S), WALL + 31 * S);
}
END_TEST

START_TEST(a_stored_value_that_goes_back_is_another_history)
{
    struct hf_clusterclock c = seen();

    ck_assert_int_eq(hf_clusterclock_on_observed(&c, WALL - 1, 11, false, S), HF_EHISTORY);
    ck_assert_int_eq(hf_clusterclock_on_observed(&c, WALL + 1, 10, false, S), HF_EHISTORY);
    ck_assert_int_eq(hf_clusterclock_on_absent(&c), HF_EHISTORY);
    ck_assert_int_eq(hf_clusterclock_now(&c, S), WALL + S);

    hf_clusterclock_on_history_reset(&c);
    ck_assert_int_eq(hf_clusterclock_now(&c, S), HF_CLUSTERCLOCK_UNREAD);
    observe(&c, WALL - 5 * MIN, 4, 2 * S);
    ck_assert_int_eq(hf_clusterclock_now(&c, 2 * S), WALL - 5 * MIN);
    ck_assert_int_eq(c.policy.interval, 30 * S);
}
END_TEST

START_TEST(old_and_repeated_news_change_nothing)
{
    struct hf_clusterclock c = seen();

    observe(&c, WALL, 10, 20 * S);
    observe(&c, WALL - MIN, 9, 20 * S);
    ck_assert_int_eq(hf_clusterclock_next(&c, 0, 20 * S).at, 30 * S);
    ck_assert_int_eq(hf_clusterclock_on_observed(&c, WALL, 0, false, S), HF_EINVAL);
    ck_assert_int_eq(c.revision, 10);
}
END_TEST

START_TEST(the_ends_of_the_range_do_not_overflow)
{
    struct hf_clusterclock c = unread();

    observe(&c, INT64_MAX - 1, 1, INT64_MIN);
    ck_assert_int_eq(hf_clusterclock_now(&c, INT64_MAX), INT64_MAX);
    ck_assert_int_eq(hf_clusterclock_age(&c, INT64_MIN, 0), INT64_MAX);
    c = unread();
    observe(&c, -10, 1, 5);
    ck_assert_int_eq(hf_clusterclock_local(&c, INT64_MAX, 5), HF_CLUSTERCLOCK_NEVER);
}
END_TEST

/* Leaders that come, go, pause and hand over: held against true time, the clock that anybody
 * reads is never early, never ahead of the leader's, and never behind what is stored. */
START_TEST(nobody_is_ever_early)
{
    enum { READERS = 3 };
    uint64_t seed = 0x9E3779B97F4A7C15 * (uint64_t)(_i + 1);
    struct hf_clusterclock c[READERS] = { seen(), seen(), seen() };
    hf_ms now = 0, stored = WALL;
    int64_t revision = 10;
    size_t leader = 0;

    for (int step = 0; step < 500; step++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        now += (hf_ms)(seed >> 33) % (20 * S);
        bool changes = (seed >> 60) == 0;
        if (changes)
            leader = (seed >> 50) % READERS;
        if ((seed >> 55) % 16 == 1)
            c[(leader + 1) % READERS] = unread(); /* it starts anew */

        struct hf_clusterclock_step s = hf_clusterclock_next(&c[leader], WALL, now);
        if (c[leader].present && changes && !s.due)
            s = (struct hf_clusterclock_step){ true, hf_clusterclock_now(&c[leader], now),
                                               now };
        if (s.due) {
            ck_assert_int_ge(s.value, stored);
            stored = s.value;
            revision++;
        }
        for (size_t i = 0; i < READERS; i++) {
            if (s.due && i == leader)
                observe_own(&c[i], stored, revision, now);
            else if (s.due || !c[i].present)
                observe(&c[i], stored, revision, now);
            hf_ms reading = hf_clusterclock_now(&c[i], now);
            ck_assert_int_le(reading, WALL + now);
            ck_assert_int_ge(reading, stored);
            ck_assert_int_le(reading, hf_clusterclock_now(&c[leader], now));
        }
    }
    ck_assert_int_gt(revision, 50);
}
END_TEST

START_TEST(an_interval_that_makes_no_sense_is_refused)
{
    static const struct {
        hf_ms interval;
        int want;
    } CHECKS[] = {
        { 999, HF_EINVAL }, { 1000, HF_OK }, { 600000, HF_OK }, { 600001, HF_EINVAL }
    };

    for (size_t i = 0; i < COUNT(CHECKS); i++) {
        struct hf_clusterclock_policy p = { CHECKS[i].interval };
        const char *why = NULL;

        ck_assert_int_eq(hf_clusterclock_policy_check(&p, &why), CHECKS[i].want);
        ck_assert_int_eq(why != NULL, CHECKS[i].want != HF_OK);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("clusterclock");

    tcase_add_test(t, a_clock_that_was_not_read_is_as_late_as_can_be);
    tcase_add_test(t, the_first_leader_begins_at_wall_time);
    tcase_add_test(t, a_reader_counts_on_by_itself);
    tcase_add_test(t, the_leader_stores_it_every_thirty_seconds);
    tcase_add_test(t, what_passes_while_nobody_counts_is_lost);
    tcase_add_test(t, whoever_wrote_may_know_more_or_less_than_we);
    tcase_add_test(t, what_a_leader_wrote_itself_does_not_set_it_back);
    tcase_add_test(t, a_stored_value_that_goes_back_is_another_history);
    tcase_add_test(t, old_and_repeated_news_change_nothing);
    tcase_add_test(t, the_ends_of_the_range_do_not_overflow);
    tcase_add_loop_test(t, nobody_is_ever_early, 0, 50);
    tcase_add_test(t, an_interval_that_makes_no_sense_is_refused);
    return run("core/clusterclock", t);
}
