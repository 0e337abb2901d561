#include <string.h>

#include "io/alarms.h"
#include "unit/suite.h"

enum { ALARMS = 4 };

static struct hf_alarms alarms;
static struct hf_alarm ones[ALARMS];
static char rung[32]; /* the places of those that rang, in order */
static struct hf_alarm *to_unset, *to_set;

static void on_ring(struct hf_alarm *alarm)
{
    size_t len = strlen(rung);

    ck_assert(!hf_alarm_is_set(alarm));
    ck_assert_uint_lt(len, sizeof rung - 1);
    rung[len] = (char)('0' + (alarm - ones));
    if (to_unset != NULL)
        hf_alarms_unset(to_unset);
    if (to_set != NULL)
        hf_alarms_set(&alarms, to_set, 0);
}

static void set_up(void)
{
    alarms = (struct hf_alarms){ 0 };
    memset(rung, 0, sizeof rung);
    to_unset = to_set = NULL;
    for (size_t i = 0; i < ALARMS; i++)
        ones[i] = (struct hf_alarm){ .fn = on_ring };
}

START_TEST(they_ring_in_the_order_of_their_times)
{
    hf_alarms_set(&alarms, &ones[0], 30);
    hf_alarms_set(&alarms, &ones[1], 10);
    hf_alarms_set(&alarms, &ones[2], 20);
    hf_alarms_set(&alarms, &ones[3], 10);
    ck_assert_int_eq(hf_alarms_get_next(&alarms), 10);
    hf_alarms_ring(&alarms, 9);
    ck_assert_str_eq(rung, "");
    hf_alarms_ring(&alarms, 20);
    ck_assert_str_eq(rung, "132");
    ck_assert_int_eq(hf_alarms_get_next(&alarms), 30);
    hf_alarms_ring(&alarms, 30);
    ck_assert_str_eq(rung, "1320");
    ck_assert_int_eq(hf_alarms_get_next(&alarms), HF_ALARMS_NEVER);
}
END_TEST

START_TEST(one_that_is_set_again_rings_once_at_its_new_time)
{
    hf_alarms_set(&alarms, &ones[0], 10);
    hf_alarms_set(&alarms, &ones[1], 15);
    hf_alarms_set(&alarms, &ones[0], 20);
    hf_alarms_ring(&alarms, 100);
    ck_assert_str_eq(rung, "10");
}
END_TEST

START_TEST(one_that_was_unset_does_not_ring)
{
    for (size_t i = 0; i < ALARMS; i++)
        hf_alarms_set(&alarms, &ones[i], 10);
    hf_alarms_unset(&ones[1]);
    hf_alarms_unset(&ones[1]);
    to_unset = &ones[2]; /* while it is already due */
    hf_alarms_ring(&alarms, 10);
    ck_assert_str_eq(rung, "03");
}
END_TEST

START_TEST(one_that_sets_itself_for_now_waits_for_the_next_round)
{
    hf_alarms_set(&alarms, &ones[0], 10);
    to_set = &ones[0];
    hf_alarms_ring(&alarms, 10);
    ck_assert_str_eq(rung, "0");
    ck_assert(hf_alarm_is_set(&ones[0]));
    hf_alarms_ring(&alarms, 10);
    ck_assert_str_eq(rung, "00");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("alarms");

    tcase_add_checked_fixture(t, set_up, NULL);
    tcase_add_test(t, they_ring_in_the_order_of_their_times);
    tcase_add_test(t, one_that_is_set_again_rings_once_at_its_new_time);
    tcase_add_test(t, one_that_was_unset_does_not_ring);
    tcase_add_test(t, one_that_sets_itself_for_now_waits_for_the_next_round);
    return run("io/alarms", t);
}
