/* Many timers on one descriptor: their order, their memory, and callbacks that interfere. */
#include <check.h>
#include <stdlib.h>

#include "etcd/timer.h"
#include "support/chaos.h"
#include "support/loop.h"
#include "support/suite.h"

enum { MANY = 200 };

struct alarm {
    struct hf_timer timer;
    hf_ms fired_at; /* 0: not yet */
    unsigned fired;
};

static struct hft_loop loop;
static struct hf_timers timers;
static struct alarm alarms[MANY];
static hf_ms last_due;
static unsigned fired, closed;

static void on_alarm(struct hf_timer *timer)
{
    struct alarm *alarm = (struct alarm *)timer; /* its first member */

    alarm->fired_at = hft_now();
    alarm->fired++;
    fired++;
    ck_assert_int_ge(alarm->fired_at, timer->at);
    ck_assert_int_ge(timer->at, last_due);
    last_due = timer->at;
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
    closed++;
}

static void setup(void)
{
    hft_loop_init(&loop);
    ck_assert_int_eq(hf_timers_init(&timers, &loop.uv, hf_clock_boottime()), HF_OK);
    for (size_t i = 0; i < MANY; i++)
        alarms[i].timer.fn = on_alarm;
}

static bool is_closed(void *arg)
{
    (void)arg;
    return closed > 0;
}

static void teardown(void)
{
    if (timers.fd >= 0)
        hf_timers_close(&timers, on_closed);
    hft_loop_until(&loop, is_closed, NULL, 5000, "the timers to close");
    hft_loop_done(&loop);
}

static void until_fired(unsigned count)
{
    hf_ms end = hft_now() + 10000;

    while (fired < count && hft_now() < end)
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    ck_assert_uint_eq(fired, count);
}

START_TEST(timers_fire_in_order_whatever_was_armed_moved_and_stopped)
{
    hf_ms now = hft_now();
    unsigned armed = 0;

    srand(7);
    for (unsigned i = 0; i < 20 * MANY; i++) {
        struct alarm *alarm = &alarms[rand() % MANY];

        if (rand() % 3 == 0)
            hf_timer_stop(&timers, &alarm->timer);
        else
            ck_assert_int_eq(hf_timer_start(&timers, &alarm->timer, now + 50 + rand() % 100),
                             HF_OK);
    }
    for (size_t i = 0; i < MANY; i++)
        armed += hf_timer_is_armed(&alarms[i].timer);
    ck_assert_uint_eq(timers.count, armed);
    until_fired(armed);
    for (size_t i = 0; i < MANY; i++)
        ck_assert_uint_le(alarms[i].fired, 1);
}
END_TEST

START_TEST(armed_timer_needs_no_memory_to_be_armed_anew)
{
    hf_ms now = hft_now();
    size_t armed = 0;
    int err;

    /* As many as fit. */
    hft_chaos_fail_at(4, true);
    while (armed < MANY && hf_timer_start(&timers, &alarms[armed].timer, now + 60000) == HF_OK)
        armed++;
    err = hf_timer_start(&timers, &alarms[0].timer, now);
    hft_chaos_stop();
    ck_assert_uint_gt(armed, 0);
    ck_assert_uint_lt(armed, MANY);
    ck_assert_int_eq(err, HF_OK);
    ck_assert(!hf_timer_is_armed(&alarms[armed].timer));
    until_fired(1);
    ck_assert_uint_eq(alarms[0].fired, 1);
}
END_TEST

static void close_all(struct hf_timer *timer)
{
    (void)timer;
    hf_timers_close(&timers, on_closed);
}

START_TEST(timers_may_be_closed_by_one_of_them)
{
    hf_ms now = hft_now();

    alarms[0].timer.fn = close_all;
    for (size_t i = 0; i < 10; i++)
        ck_assert_int_eq(hf_timer_start(&timers, &alarms[i].timer, now + (hf_ms)i), HF_OK);
    hft_loop_until(&loop, is_closed, NULL, 5000, "the timers to close");
    ck_assert_uint_eq(fired, 0);
}
END_TEST

START_TEST(time_that_has_passed_fires_at_once)
{
    ck_assert_int_eq(hf_timer_start(&timers, &alarms[0].timer, INT64_MIN), HF_OK);
    last_due = INT64_MIN;
    until_fired(1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("timer");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 30);
    tcase_add_test(t, timers_fire_in_order_whatever_was_armed_moved_and_stopped);
    tcase_add_test(t, armed_timer_needs_no_memory_to_be_armed_anew);
    tcase_add_test(t, timers_may_be_closed_by_one_of_them);
    tcase_add_test(t, time_that_has_passed_fires_at_once);
    return hft_suite_run("etcd/timer", t, NULL);
}
