#include "core/unrest.h"

#include "unit/suite.h"

#define LIMIT  3
#define WINDOW 45000

static struct hf_unrest unrest;

static void setup(void)
{
    unrest = (struct hf_unrest){ .count = 0 };
}

static bool change(hf_ms now)
{
    hf_unrest_on_change(&unrest, LIMIT, WINDOW, now);
    return hf_unrest_take_alert(&unrest, WINDOW, now);
}

START_TEST(as_many_as_the_limit_within_the_window_are_unrest)
{
    ck_assert(!change(1000));
    ck_assert(!change(2000));
    ck_assert(!hf_unrest_holds(&unrest, WINDOW, 2000));
    ck_assert(change(1000 + WINDOW));
    ck_assert(hf_unrest_holds(&unrest, WINDOW, 1000 + WINDOW));
}
END_TEST

START_TEST(a_moment_later_they_are_not)
{
    (void)change(1000);
    (void)change(2000);
    ck_assert(!change(1001 + WINDOW));
    ck_assert(change(1002 + WINDOW)); /* with the two before it */
}
END_TEST

START_TEST(it_ends_when_there_was_no_change_for_as_long)
{
    for (hf_ms at = 0; at < 3; at++)
        (void)change(at);
    ck_assert(hf_unrest_holds(&unrest, WINDOW, 2 + WINDOW));
    ck_assert(!hf_unrest_holds(&unrest, WINDOW, 3 + WINDOW));
}
END_TEST

/* A change now and then keeps it alive, though by itself it would not begin it. */
START_TEST(one_alert_for_all_of_it)
{
    hf_ms now = 0;
    unsigned alerts = 0;

    for (int i = 0; i < 100; i++) {
        alerts += change(now);
        now += i < 50 ? 1000 : WINDOW;
    }
    ck_assert_uint_eq(alerts, 1);
    ck_assert(hf_unrest_holds(&unrest, WINDOW, now));
}
END_TEST

START_TEST(the_next_unrest_has_its_own)
{
    for (int i = 0; i < 5; i++) {
        hf_ms begin = i * (WINDOW + 10);

        ck_assert(!change(begin));
        ck_assert(!change(begin + 1));
        ck_assert(change(begin + 2));
    }
}
END_TEST

START_TEST(every_limit_can_be_asked_for)
{
    uint32_t limit = (uint32_t)_i;

    for (uint32_t i = 1; i <= 3 * HF_UNREST_MOST; i++) {
        hf_unrest_on_change(&unrest, limit, WINDOW, i);
        ck_assert_int_eq(hf_unrest_take_alert(&unrest, WINDOW, i), i == limit);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("unrest");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, as_many_as_the_limit_within_the_window_are_unrest);
    tcase_add_test(t, a_moment_later_they_are_not);
    tcase_add_test(t, it_ends_when_there_was_no_change_for_as_long);
    tcase_add_test(t, one_alert_for_all_of_it);
    tcase_add_test(t, the_next_unrest_has_its_own);
    tcase_add_loop_test(t, every_limit_can_be_asked_for, 1, HF_UNREST_MOST + 1);
    return run("core/unrest", t);
}
