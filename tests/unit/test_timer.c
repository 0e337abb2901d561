/* Timers on a real loop and a real timerfd: short times, and conditions instead of sleeps. */
#include <stddef.h>
#include <string.h>

#include "etcd/timer.h"
#include "support/chaos.h"
#include "support/loop.h"
#include "unit/suite.h"

enum { MANY = 5000, PATIENCE_MS = 10000 };

static struct hft_loop loop;
static struct hf_timers timers;
static bool is_open;

/* A timer that knows what it was armed for. */
struct probe {
    struct hf_timer timer;
    hf_ms due; /* what it was last started for */
    unsigned fired;
    unsigned early; /* fired before it was due */
};

static struct probe probes[MANY];

/* In the order of firing. */
static struct {
    struct probe *probe[2 * MANY];
    size_t count;
} fired;

static void note(struct hf_timer *timer)
{
    struct probe *probe = (struct probe *)timer;

    ck_assert(!hf_timer_is_armed(timer));
    probe->fired++;
    probe->early += hft_now() < probe->due;
    ck_assert_uint_lt(fired.count, COUNT(fired.probe));
    fired.probe[fired.count++] = probe;
}

static void start(struct probe *probe, hf_ms at)
{
    probe->due = at;
    hf_timer_start(&timers, &probe->timer, at);
    ck_assert(hf_timer_is_armed(&probe->timer));
}

static bool have_fired(void *arg)
{
    return fired.count >= *(const size_t *)arg;
}

static void run_until_fired(size_t count)
{
    hft_loop_until(&loop, have_fired, &count, PATIENCE_MS, "the timers");
    ck_assert_uint_eq(fired.count, count);
}

/* Whatever was due at that time has fired when another timer with a later time has. */
static void run_past(hf_ms at)
{
    static struct probe last;
    size_t count = fired.count;

    last = (struct probe){ .timer.fn = note };
    start(&last, at);
    while (last.fired == 0) {
        count++;
        hft_loop_until(&loop, have_fired, &count, PATIENCE_MS, "the last timer");
        count = fired.count;
    }
    fired.count--;
}

static void on_closed(uv_handle_t *handle)
{
    *(bool *)handle->data = false;
}

static bool is_closed(void *arg)
{
    (void)arg;
    return !is_open;
}

static void setup(void)
{
    memset(probes, 0, sizeof probes);
    for (size_t i = 0; i < MANY; i++)
        probes[i].timer.fn = note;
    fired.count = 0;
    hft_loop_init(&loop);
    ck_assert_int_eq(hf_timers_init(&timers, &loop.uv, hf_clock_boottime()), HF_OK);
    timers.poll.data = &is_open;
    is_open = true;
}

static void teardown(void)
{
    if (timers.fd >= 0)
        hf_timers_close(&timers, on_closed);
    hft_loop_until(&loop, is_closed, NULL, PATIENCE_MS, "the timers to be closed");
    hft_loop_done(&loop);
}

static void expect_order(void)
{
    for (size_t i = 1; i < fired.count; i++)
        ck_assert_int_le(fired.probe[i - 1]->due, fired.probe[i]->due);
    for (size_t i = 0; i < fired.count; i++)
        ck_assert_uint_eq(fired.probe[i]->early, 0);
}

START_TEST(timers_fire_once_in_the_order_of_their_times_and_not_before)
{
    static const hf_ms DELAYS[] = { 30, 5, 20, 0, 25, 10, 15, -40 };
    hf_ms now = hft_now();

    for (size_t i = 0; i < COUNT(DELAYS); i++)
        start(&probes[i], now + DELAYS[i]);
    ck_assert_uint_eq(fired.count, 0); /* not even those that are late come at once */
    run_until_fired(COUNT(DELAYS));
    expect_order();
    run_past(hft_now() + 40);
    ck_assert_uint_eq(fired.count, COUNT(DELAYS));
}
END_TEST

START_TEST(times_before_the_machine_started_are_due_now)
{
    start(&probes[0], 0);
    start(&probes[1], -1);
    start(&probes[2], INT64_MIN);
    run_until_fired(3);
    expect_order();
}
END_TEST

START_TEST(a_time_that_never_comes_holds_up_no_other)
{
    start(&probes[0], INT64_MAX);
    start(&probes[1], hft_now() + 5);
    run_until_fired(1);
    ck_assert_uint_eq(probes[1].fired, 1);
    ck_assert(hf_timer_is_armed(&probes[0].timer));
}
END_TEST

START_TEST(a_timer_started_again_counts_from_the_last_time)
{
    hf_ms now = hft_now();

    start(&probes[0], now + 5);
    start(&probes[1], now + 10000);
    start(&probes[2], now + 15);
    start(&probes[0], now + 25); /* later */
    start(&probes[1], now + 10); /* earlier */
    start(&probes[2], now + 15); /* the same */
    run_until_fired(3);
    expect_order();
    ck_assert_ptr_eq(fired.probe[0], &probes[1]);
    ck_assert_ptr_eq(fired.probe[2], &probes[0]);
}
END_TEST

START_TEST(a_stopped_timer_does_not_fire)
{
    hf_ms now = hft_now();

    for (size_t i = 0; i < 5; i++)
        start(&probes[i], now + 5 + (hf_ms)i);
    hf_timer_stop(&timers, &probes[0].timer); /* the one that the timerfd was set for */
    hf_timer_stop(&timers, &probes[2].timer);
    hf_timer_stop(&timers, &probes[2].timer);
    hf_timer_stop(&timers, &probes[4].timer);
    ck_assert(!hf_timer_is_armed(&probes[2].timer));
    run_past(now + 20);
    ck_assert_uint_eq(fired.count, 2);
    ck_assert_uint_eq(probes[1].fired + probes[3].fired, 2);
    start(&probes[2], now);
    run_until_fired(3);
}
END_TEST

/* From inside callbacks. */

static void start_again(struct hf_timer *timer)
{
    struct probe *probe = (struct probe *)timer;

    note(timer);
    if (probe->fired < 5)
        start(probe, hft_now() + 3);
}

START_TEST(a_timer_may_start_itself_again)
{
    hf_ms now = hft_now();

    probes[0].timer.fn = start_again;
    start(&probes[0], now);
    run_until_fired(5);
    ck_assert_uint_eq(probes[0].early, 0);
    ck_assert_int_ge(hft_now(), now + (hf_ms)4 * 3);
}
END_TEST

enum { ENDLESS = 50000000 };

static void start_for_now(struct hf_timer *timer)
{
    struct probe *probe = (struct probe *)timer;

    if (++probe->fired < ENDLESS)
        start(probe, 0);
}

static void stop_the_first(void *arg)
{
    *(size_t *)arg = probes[0].fired;
    hf_timer_stop(&timers, &probes[0].timer);
}

static bool is_set(void *arg)
{
    return *(const size_t *)arg != SIZE_MAX;
}

START_TEST(a_timer_that_is_always_due_does_not_hold_up_the_loop)
{
    size_t seen = SIZE_MAX;

    probes[0].timer.fn = start_for_now;
    start(&probes[0], 0);
    hft_loop_after(&loop, 5, stop_the_first, &seen);
    hft_loop_until(&loop, is_set, &seen, PATIENCE_MS, "the loop to come to another timer");
    ck_assert_uint_lt(seen, ENDLESS);
}
END_TEST

static void stop_the_second(struct hf_timer *timer)
{
    note(timer);
    hf_timer_stop(&timers, &probes[1].timer);
}

START_TEST(a_timer_stopped_by_one_that_fires_does_not_fire_although_it_is_due)
{
    hf_ms now = hft_now();

    probes[0].timer.fn = stop_the_second;
    start(&probes[0], now - 3);
    start(&probes[1], now - 2);
    start(&probes[2], now - 1);
    run_until_fired(2);
    run_past(hft_now() + 5);
    ck_assert_uint_eq(probes[1].fired, 0);
    ck_assert_uint_eq(probes[2].fired, 1);
}
END_TEST

static void put_off_the_second(struct hf_timer *timer)
{
    note(timer);
    start(&probes[1], hft_now() + 10);
}

START_TEST(a_timer_put_off_by_one_that_fires_comes_later_although_it_is_due)
{
    hf_ms now = hft_now();

    probes[0].timer.fn = put_off_the_second;
    start(&probes[0], now - 3);
    start(&probes[1], now - 2);
    start(&probes[2], now - 1);
    run_until_fired(3);
    ck_assert_ptr_eq(fired.probe[2], &probes[1]);
    expect_order();
}
END_TEST

static void close_all(struct hf_timer *timer)
{
    note(timer);
    hf_timers_close(&timers, on_closed);
}

START_TEST(closed_by_one_that_fires_none_fires_after_it)
{
    hf_ms now = hft_now();

    probes[1].timer.fn = close_all;
    for (size_t i = 0; i < 100; i++)
        start(&probes[i], now - 200 + (hf_ms)i);
    hft_loop_until(&loop, is_closed, NULL, PATIENCE_MS, "the timers to be closed");
    ck_assert_uint_eq(fired.count, 2);
    for (size_t i = 0; i < 100; i++)
        ck_assert(!hf_timer_is_armed(&probes[i].timer));
}
END_TEST

START_TEST(closed_before_any_was_started_or_fired_none_fires)
{
    if (_i == 1)
        start(&probes[0], 0);
    hf_timers_close(&timers, on_closed);
    hft_loop_until(&loop, is_closed, NULL, PATIENCE_MS, "the timers to be closed");
    ck_assert_uint_eq(fired.count, 0);
}
END_TEST

static uint32_t rng_state;

static size_t rng(size_t below)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return (rng_state >> 8) % below;
}

START_TEST(thousands_are_started_moved_and_stopped_and_the_rest_fire_in_order)
{
    hf_ms now = hft_now();
    size_t armed = 0;

    rng_state = (uint32_t)_i;
    for (size_t n = 0; n < (size_t)4 * MANY; n++) {
        struct probe *probe = &probes[rng(MANY)];

        if (rng(4) == 0)
            hf_timer_stop(&timers, &probe->timer);
        else
            start(probe, now + 20 + (hf_ms)rng(200));
    }
    for (size_t i = 0; i < MANY; i++)
        armed += hf_timer_is_armed(&probes[i].timer);
    ck_assert_uint_eq(timers.count, armed);
    ck_assert_uint_eq(fired.count, 0);
    run_until_fired(armed);
    expect_order();
    run_past(now + 220);
    ck_assert_uint_eq(fired.count, armed);
    for (size_t i = 0; i < armed; i++)
        ck_assert_uint_eq(fired.probe[i]->fired, 1);
}
END_TEST

START_TEST(timers_are_armed_and_moved_without_memory)
{
    hf_ms now = hft_now();

    hft_chaos_fail_at(1, true);
    for (size_t i = 0; i < MANY; i++)
        hf_timer_start(&timers, &probes[i].timer, now + 1);
    hf_timer_start(&timers, &probes[0].timer, now + 10);
    hft_chaos_stop();
    run_until_fired(MANY);
    ck_assert_ptr_eq(fired.probe[MANY - 1], &probes[0]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("timer");

    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, timers_fire_once_in_the_order_of_their_times_and_not_before);
    tcase_add_test(t, times_before_the_machine_started_are_due_now);
    tcase_add_test(t, a_time_that_never_comes_holds_up_no_other);
    tcase_add_test(t, a_timer_started_again_counts_from_the_last_time);
    tcase_add_test(t, a_stopped_timer_does_not_fire);
    tcase_add_test(t, a_timer_may_start_itself_again);
    tcase_add_test(t, a_timer_that_is_always_due_does_not_hold_up_the_loop);
    tcase_add_test(t, a_timer_stopped_by_one_that_fires_does_not_fire_although_it_is_due);
    tcase_add_test(t, a_timer_put_off_by_one_that_fires_comes_later_although_it_is_due);
    tcase_add_test(t, closed_by_one_that_fires_none_fires_after_it);
    tcase_add_loop_test(t, closed_before_any_was_started_or_fired_none_fires, 0, 2);
    tcase_add_loop_test(t, thousands_are_started_moved_and_stopped_and_the_rest_fire_in_order,
                        0, 3);
    tcase_add_test(t, timers_are_armed_and_moved_without_memory);
    return run("etcd/timer", t);
}
