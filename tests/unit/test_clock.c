#include <check.h>
#include <time.h>

#include "base/clock.h"
#include "support/suite.h"

static hf_ms read_directly(clockid_t id)
{
    struct timespec ts;

    ck_assert_int_eq(clock_gettime(id, &ts), 0);
    return (hf_ms)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

START_TEST(boottime_is_the_kernels)
{
    struct hf_clock clock = hf_clock_boottime();
    hf_ms before = read_directly(CLOCK_BOOTTIME);
    hf_ms now = hf_clock_now(&clock);

    ck_assert_int_ge(now, before);
    ck_assert_int_le(now, read_directly(CLOCK_BOOTTIME));
}
END_TEST

START_TEST(boottime_never_goes_back_and_is_never_cached)
{
    struct hf_clock clock = hf_clock_boottime();
    hf_ms start = hf_clock_now(&clock);
    hf_ms last = start;

    while (last < start + 5) { /* ends only if the clock is read afresh */
        hf_ms now = hf_clock_now(&clock);

        ck_assert_int_ge(now, last);
        last = now;
    }
}
END_TEST

START_TEST(wall_is_the_time_of_day)
{
    hf_ms before = read_directly(CLOCK_REALTIME);
    hf_ms now = hf_clock_wall();

    ck_assert_int_ge(now, before);
    ck_assert_int_le(now, read_directly(CLOCK_REALTIME));
}
END_TEST

static hf_ms count_up(void *arg)
{
    hf_ms *now = arg;

    return ++*now;
}

START_TEST(a_clock_can_be_replaced)
{
    hf_ms time = 41;
    struct hf_clock clock = { .now = count_up, .arg = &time };

    ck_assert_int_eq(hf_clock_now(&clock), 42);
    ck_assert_int_eq(hf_clock_now(&clock), 43);
}
END_TEST

/* Ticks are due every 100 ms, the first is at 1000; what does the second at `now` report? A
 * time that goes back does not happen, and must not wrap if it does. */
static const struct {
    hf_ms now;
    hf_ms late;
} TICKS[] = {
    { 1000, 0 },  { 1001, 0 },  { 1100, 0 },   { 1101, 0 },      { 1149, 0 },
    { 1150, 50 }, { 1151, 51 }, { 1200, 100 }, { 11100, 10000 }, { 999, 0 },
};

START_TEST(a_tick_is_late_from_the_tolerance_on)
{
    struct hf_clock_jump jump = { .interval = 100, .tolerance = 50 };

    ck_assert_int_eq(hf_clock_jump_tick(&jump, 1000), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, TICKS[_i].now), TICKS[_i].late);
}
END_TEST

START_TEST(the_first_tick_is_never_late)
{
    struct hf_clock_jump jump = { .interval = 100, .tolerance = 50 };

    ck_assert_int_eq(hf_clock_jump_tick(&jump, INT64_C(1) << 40), 0);
}
END_TEST

START_TEST(each_jump_is_reported_once)
{
    struct hf_clock_jump jump = { .interval = 100, .tolerance = 50 };

    ck_assert_int_eq(hf_clock_jump_tick(&jump, 0), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 100), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 5000), 4800);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 5100), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 5200), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 5400), 100);
}
END_TEST

START_TEST(without_tolerance_a_tick_in_time_is_still_no_jump)
{
    struct hf_clock_jump jump = { .interval = 100 };

    ck_assert_int_eq(hf_clock_jump_tick(&jump, 0), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 100), 0);
    ck_assert_int_eq(hf_clock_jump_tick(&jump, 201), 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("clock");

    tcase_add_test(t, boottime_is_the_kernels);
    tcase_add_test(t, boottime_never_goes_back_and_is_never_cached);
    tcase_add_test(t, wall_is_the_time_of_day);
    tcase_add_test(t, a_clock_can_be_replaced);
    tcase_add_loop_test(t, a_tick_is_late_from_the_tolerance_on, 0,
                        sizeof TICKS / sizeof TICKS[0]);
    tcase_add_test(t, the_first_tick_is_never_late);
    tcase_add_test(t, each_jump_is_reported_once);
    tcase_add_test(t, without_tolerance_a_tick_in_time_is_still_no_jump);
    return hft_suite_run("base/clock", t, NULL);
}
