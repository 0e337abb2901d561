#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/agenda.h"
#include "unit/suite.h"

static struct hf_agenda agenda;
static struct hf_agenda_item items[3];

static void setup(void)
{
    agenda = (struct hf_agenda){ 0 };
    for (size_t i = 0; i < COUNT(items); i++)
        items[i] = (struct hf_agenda_item){ 0 };
}

START_TEST(what_was_added_first_is_taken_first_and_once)
{
    hf_agenda_add(&agenda, &items[1]);
    hf_agenda_add(&agenda, &items[0]);
    hf_agenda_add(&agenda, &items[1]);
    hf_agenda_add_first(&agenda, &items[2]);
    ck_assert_uint_eq(agenda.count, 3);
    ck_assert_int_eq(hf_agenda_deadline(&agenda, 7), 7);
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 0), &items[2]);
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 0), &items[1]);
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 0), &items[0]);
    ck_assert_ptr_null(hf_agenda_take(&agenda, 0));
    ck_assert_int_eq(hf_agenda_deadline(&agenda, 7), HF_AGENDA_NEVER);
}
END_TEST

START_TEST(an_alarm_puts_an_item_into_the_queue_when_its_time_has_come)
{
    hf_agenda_set_alarm(&agenda, &items[0], 20);
    hf_agenda_set_alarm(&agenda, &items[1], 10);
    ck_assert_int_eq(hf_agenda_deadline(&agenda, 5), 10);
    ck_assert_ptr_null(hf_agenda_take(&agenda, 9));
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 10), &items[1]);
    ck_assert_ptr_null(hf_agenda_take(&agenda, 10));
    hf_agenda_set_alarm(&agenda, &items[0], 30);
    ck_assert_ptr_null(hf_agenda_take(&agenda, 29));
    hf_agenda_set_alarm(&agenda, &items[0], HF_AGENDA_NEVER);
    ck_assert_int_eq(hf_agenda_deadline(&agenda, 5), HF_AGENDA_NEVER);
}
END_TEST

START_TEST(what_is_removed_never_comes)
{
    hf_agenda_add(&agenda, &items[0]);
    hf_agenda_add(&agenda, &items[1]);
    hf_agenda_add(&agenda, &items[2]);
    hf_agenda_set_alarm(&agenda, &items[1], 10);
    hf_agenda_remove(&agenda, &items[1]);
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 50), &items[0]);
    ck_assert_ptr_eq(hf_agenda_take(&agenda, 50), &items[2]);
    ck_assert_ptr_null(hf_agenda_take(&agenda, 50));
    ck_assert_uint_eq(agenda.count, 0);
}
END_TEST

/* Many share a moment, as when many leases end at once. */
START_TEST(alarms_that_are_late_come_in_the_order_of_their_times)
{
    enum { MOMENTS = 7, MANY = 150 * MOMENTS };
    static struct hf_agenda_item many[MANY];
    const struct hf_agenda_item *taken;
    hf_ms last = 0;
    size_t count = 0;

    for (size_t i = 0; i < MANY; i++) {
        many[i] = (struct hf_agenda_item){ 0 };
        hf_agenda_set_alarm(&agenda, &many[i], 1 + (hf_ms)(i * 31 % MOMENTS));
    }
    ck_assert_ptr_null(hf_agenda_take(&agenda, 0));
    while ((taken = hf_agenda_take(&agenda, MOMENTS - 1)) != NULL) {
        ck_assert_int_ge(taken->at, last);
        ck_assert(!hf_agenda_is_timed(&agenda, taken) && !hf_agenda_is_queued(&agenda, taken));
        last = taken->at;
        count++;
    }
    ck_assert_uint_eq(count, MANY - MANY / MOMENTS);
    ck_assert_int_eq(hf_agenda_deadline(&agenda, MOMENTS - 1), MOMENTS);
}
END_TEST

/* Against a table that is searched from end to end. */
START_TEST(alarms_come_in_their_order_whatever_is_set_and_removed)
{
    enum { MANY = 300, STEPS = 20000 };
    static struct hf_agenda_item many[MANY];
    hf_ms at[MANY];
    uint64_t random = 88172645463325252u + (uint64_t)_i;
    hf_ms now = 0;

    for (size_t i = 0; i < MANY; i++) {
        many[i] = (struct hf_agenda_item){ 0 };
        at[i] = HF_AGENDA_NEVER;
    }
    for (size_t step = 0; step < STEPS; step++) {
        hf_ms earliest = HF_AGENDA_NEVER;
        struct hf_agenda_item *taken;
        size_t i;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        i = (size_t)(random % MANY);
        if ((random >> 32) % 8 == 0) {
            hf_agenda_remove(&agenda, &many[i]);
            at[i] = HF_AGENDA_NEVER;
        } else {
            at[i] = now + 1 + (hf_ms)((random >> 40) % 500);
            hf_agenda_set_alarm(&agenda, &many[i], at[i]);
        }
        if (step % 3 == 0)
            now++;
        while ((taken = hf_agenda_take(&agenda, now)) != NULL) {
            ck_assert_int_le(at[taken - many], now);
            at[taken - many] = HF_AGENDA_NEVER;
        }
        for (i = 0; i < MANY; i++)
            earliest = at[i] < earliest ? at[i] : earliest;
        ck_assert_int_eq(hf_agenda_deadline(&agenda, now), earliest);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("agenda");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, what_was_added_first_is_taken_first_and_once);
    tcase_add_test(t, an_alarm_puts_an_item_into_the_queue_when_its_time_has_come);
    tcase_add_test(t, what_is_removed_never_comes);
    tcase_add_test(t, alarms_that_are_late_come_in_the_order_of_their_times);
    tcase_add_loop_test(t, alarms_come_in_their_order_whatever_is_set_and_removed, 0, 5);
    return run("core/agenda", t);
}
