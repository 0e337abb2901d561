#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* A fixed sequence: a failure repeats. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state ^ *state >> 29;
}

static const struct {
    const char *text;
    hf_ms value;
} DURATIONS[] = {
    { "0", 0 },
    { "0s", 0 },
    { "-0s", 0 },
    { "0h0m0s0ms", 0 },
    { "15s", 15000 },
    { "015s", 15000 },
    { "250ms", 250 },
    { "1m", 60000 },
    { "1h", 3600000 },
    { "1h30m", 5400000 },
    { "1h2m3s4ms", 3723004 },
    { "1h4ms", 3600004 },
    { "90m", 5400000 },
    { "1h90m", 9000000 },
    { "2.5s", 2500 },
    { "0.001s", 1 },
    { "1.000s", 1000 },
    { "1.50000000000000000000s", 1500 },
    { "1.0ms", 1 },
    { "0.5h", 1800000 },
    { "1.5h1.5m1.5s", 5400000 + 90000 + 1500 },
    { "0.0000025h", 9 },
    { "0.00005m", 3 },
    { "-5s", -5000 },
    { "-1h30m", -5400000 },
    { "87600h", HF_DURATION_MAX },
    { "315360000s", HF_DURATION_MAX },
    { "315360000000ms", HF_DURATION_MAX },
    { "-87600h", -HF_DURATION_MAX },
    { "87599h59m59s1000ms", HF_DURATION_MAX },
};

START_TEST(durations)
{
    hf_ms value = 77;

    ck_assert_int_eq(hf_parse_duration(DURATIONS[_i].text, &value), HF_OK);
    ck_assert_int_eq(value, DURATIONS[_i].value);
}
END_TEST

static const struct {
    const char *text;
    int rc;
} NO_DURATIONS[] = {
    { "", HF_EINVAL },
    { "-", HF_EINVAL },
    { "-0", HF_EINVAL },
    { "00", HF_EINVAL },
    { "0 ", HF_EINVAL },
    { "15", HF_EINVAL },
    { "s", HF_EINVAL },
    { ".5s", HF_EINVAL },
    { "5.s", HF_EINVAL },
    { "1..5s", HF_EINVAL },
    { "1.5.5s", HF_EINVAL },
    { "1,5s", HF_EINVAL },
    { "+5s", HF_EINVAL },
    { "--5s", HF_EINVAL },
    { "1h-5m", HF_EINVAL },
    { " 5s", HF_EINVAL },
    { "5 s", HF_EINVAL },
    { "5s ", HF_EINVAL },
    { "5s\n", HF_EINVAL },
    { "1h 30m", HF_EINVAL },
    { "1h30", HF_EINVAL },
    { "5S", HF_EINVAL },
    { "5sec", HF_EINVAL },
    { "5sm", HF_EINVAL },
    { "5mss", HF_EINVAL },
    { "1d", HF_EINVAL },
    { "5us", HF_EINVAL },
    { "5ns", HF_EINVAL },
    { "1m1h", HF_EINVAL },
    { "1s1m", HF_EINVAL },
    { "1ms1s", HF_EINVAL },
    { "1m1m", HF_EINVAL },
    { "1ms1ms", HF_EINVAL },
    { "1e3s", HF_EINVAL },
    { "0x1s", HF_EINVAL },
    { "inf", HF_EINVAL },
    { "infs", HF_EINVAL },
    { "0.5ms", HF_EINVAL },
    { "0.0005s", HF_EINVAL },
    { "1.0001s", HF_EINVAL },
    { "0.0000001h", HF_EINVAL },
    { "0.0000000000000000000001s", HF_EINVAL },
    { "0.3333333333333333333333h", HF_EINVAL },
    { "99999999999999999999999999999999x", HF_EINVAL },
    { "99999999999999999999999999999999h1h", HF_EINVAL },
    { "99999999999999999999999999999999.0001s", HF_EINVAL },
    { "87600h1ms", HF_ELIMIT },
    { "-87600h1ms", HF_ELIMIT },
    { "87600.5h", HF_ELIMIT },
    { "315360000001ms", HF_ELIMIT },
    { "87600h87600m87600s", HF_ELIMIT },
    { "9223372036854775807ms", HF_ELIMIT },
    { "9223372036854775808ms", HF_ELIMIT },
    { "18446744073709551617ms", HF_ELIMIT },
    { "99999999999999999999999999999999h", HF_ELIMIT },
    { "99999999999999999999999999999999h1ms", HF_ELIMIT },
};

START_TEST(what_is_no_duration_is_refused)
{
    hf_ms value = 77;

    ck_assert_int_eq(hf_parse_duration(NO_DURATIONS[_i].text, &value), NO_DURATIONS[_i].rc);
    ck_assert_int_eq(value, 77);
}
END_TEST

static const struct {
    hf_ms value;
    const char *text;
} DURATION_TEXTS[] = {
    { 0, "0s" },
    { 1, "1ms" },
    { 250, "250ms" },
    { 999, "999ms" },
    { 1000, "1s" },
    { 1500, "1.5s" },
    { 1050, "1.05s" },
    { 1005, "1.005s" },
    { 15000, "15s" },
    { 20000, "20s" },
    { 60000, "1m" },
    { 60001, "1m0.001s" },
    { 90000, "1m30s" },
    { 600000, "10m" },
    { 3600000, "1h" },
    { 3600001, "1h0.001s" },
    { 3601000, "1h1s" },
    { 36000000, "10h" },
    { 5400000, "1h30m" },
    { -5000, "-5s" },
    { -1, "-1ms" },
    { -90500, "-1m30.5s" },
    { HF_DURATION_MAX, "87600h" },
    { INT64_MAX, "2562047788015h12m55.807s" },
    { INT64_MIN, "-2562047788015h12m55.808s" },
};

START_TEST(durations_have_one_text)
{
    char text[64];

    ck_assert_int_eq(hf_format_duration(DURATION_TEXTS[_i].value, text, sizeof text),
                     (int)strlen(DURATION_TEXTS[_i].text));
    ck_assert_str_eq(text, DURATION_TEXTS[_i].text);
}
END_TEST

START_TEST(durations_survive_the_round_trip)
{
    uint64_t state = 3;

    for (int round = 0; round < 10000; round++) {
        uint64_t word = next_random(&state) >> next_random(&state) % 64;
        hf_ms want = (hf_ms)(word % (HF_DURATION_MAX + 1));
        hf_ms got = 77;
        char text[64];

        want = round % 2 == 0 ? want : -want;
        if (round % 3 == 0)
            want -= want % 1000;
        ck_assert_int_lt(hf_format_duration(want, text, sizeof text), (int)sizeof text);
        if (hf_parse_duration(text, &got) != HF_OK || got != want)
            ck_abort_msg("%" PRId64 " became %s, which is %" PRId64, want, text, got);
    }
}
END_TEST

/* As snprintf: what does not fit is cut, terminated, and the whole length is returned. */
START_TEST(short_room_cuts_the_text)
{
    char text[4] = "zzz";

    ck_assert_int_eq(hf_format_duration(5400000, text, sizeof text), 5);
    ck_assert_str_eq(text, "1h3");
    ck_assert_int_eq(hf_format_duration(5400000, NULL, 0), 5);
    ck_assert_int_eq(hf_format_time(0, text, sizeof text), 20);
    ck_assert_str_eq(text, "197");
    ck_assert_int_eq(hf_format_time(0, NULL, 0), 20);
}
END_TEST

static const struct {
    const char *text;
    hf_ms wall;
} TIMES[] = {
    { "1970-01-01T00:00:00Z", 0 },
    { "1970-01-01T00:00:00.001Z", 1 },
    { "1969-12-31T23:59:59.999Z", -1 },
    { "1969-12-31T23:59:59Z", -1000 },
    { "2026-01-31T08:15:30Z", 1769847330000 },
    { "2026-01-31T08:15:30.123Z", 1769847330123 },
    { "2000-02-29T12:00:00Z", 951825600000 },
    { "2024-02-29T00:00:00Z", 1709164800000 },
    { "1900-02-28T23:59:59Z", -2203891201000 },
    { "2038-01-19T03:14:08Z", 2147483648000 },
    { "0000-01-01T00:00:00Z", -62167219200000 },
    { "0000-02-29T00:00:00Z", -62162121600000 },
    { "9999-12-31T23:59:59.999Z", 253402300799999 },
};

START_TEST(times_are_read_and_written)
{
    hf_ms wall = 77;
    char text[40];

    ck_assert_int_eq(hf_parse_time(TIMES[_i].text, &wall), HF_OK);
    ck_assert_int_eq(wall, TIMES[_i].wall);
    ck_assert_int_eq(hf_format_time(wall, text, sizeof text), (int)strlen(TIMES[_i].text));
    ck_assert_str_eq(text, TIMES[_i].text);
}
END_TEST

static const struct {
    const char *text;
    const char *same;
} SAME_TIMES[] = {
    { "2026-01-31T08:15:30+00:00", "2026-01-31T08:15:30Z" },
    { "2026-01-31T08:15:30-00:00", "2026-01-31T08:15:30Z" },
    { "2026-01-31T08:15:30+02:00", "2026-01-31T06:15:30Z" },
    { "2026-01-31T08:15:30-05:30", "2026-01-31T13:45:30Z" },
    { "2026-01-01T00:15:00+05:45", "2025-12-31T18:30:00Z" },
    { "2024-02-28T23:30:00-01:00", "2024-02-29T00:30:00Z" },
    { "2026-01-31T08:15:30+23:59", "2026-01-30T08:16:30Z" },
    { "2026-01-31T08:15:30-23:59", "2026-02-01T08:14:30Z" },
    { "2026-01-31T08:15:30.1Z", "2026-01-31T08:15:30.100Z" },
    { "2026-01-31T08:15:30.12Z", "2026-01-31T08:15:30.120Z" },
    { "2026-01-31T08:15:30.1239Z", "2026-01-31T08:15:30.123Z" },
    { "2026-01-31T08:15:30.123999999Z", "2026-01-31T08:15:30.123Z" },
    { "2026-01-31T08:15:30.000000001Z", "2026-01-31T08:15:30Z" },
    { "2026-01-31T08:15:30.5+01:00", "2026-01-31T07:15:30.500Z" },
    { "0000-01-01T00:00:00-00:01", "0000-01-01T00:01:00Z" },
    { "9999-12-31T23:59:59+00:01", "9999-12-31T23:58:59Z" },
};

START_TEST(offsets_and_fractions_are_understood)
{
    hf_ms wall = 77;
    char text[40];

    ck_assert_int_eq(hf_parse_time(SAME_TIMES[_i].text, &wall), HF_OK);
    (void)hf_format_time(wall, text, sizeof text);
    ck_assert_str_eq(text, SAME_TIMES[_i].same);
}
END_TEST

static const struct {
    const char *text;
    int rc;
} NO_TIMES[] = {
    { "", HF_EINVAL },
    { "now", HF_EINVAL },
    { "2026", HF_EINVAL },
    { "2026-01-31", HF_EINVAL },
    { "2026-01-31T", HF_EINVAL },
    { "2026-01-31T08:15Z", HF_EINVAL },
    { "2026-01-31T08:15:30", HF_EINVAL },
    { "2026-01-31 08:15:30Z", HF_EINVAL },
    { "2026-01-31t08:15:30Z", HF_EINVAL },
    { "2026-01-31T08:15:30z", HF_EINVAL },
    { " 2026-01-31T08:15:30Z", HF_EINVAL },
    { "2026-01-31T08:15:30Z ", HF_EINVAL },
    { "2026-01-31T08:15:30ZZ", HF_EINVAL },
    { "2026-1-31T08:15:30Z", HF_EINVAL },
    { "2026-01-31T8:15:30Z", HF_EINVAL },
    { "20260131T081530Z", HF_EINVAL },
    { "2026/01/31T08:15:30Z", HF_EINVAL },
    { "+2026-01-31T08:15:30Z", HF_EINVAL },
    { "-2026-01-31T08:15:30Z", HF_EINVAL },
    { "12026-01-31T08:15:30Z", HF_EINVAL },
    { "202a-01-31T08:15:30Z", HF_EINVAL },
    { "2026-00-31T08:15:30Z", HF_EINVAL },
    { "2026-13-31T08:15:30Z", HF_EINVAL },
    { "2026-01-00T08:15:30Z", HF_EINVAL },
    { "2026-01-32T08:15:30Z", HF_EINVAL },
    { "2026-04-31T08:15:30Z", HF_EINVAL },
    { "2026-06-31T08:15:30Z", HF_EINVAL },
    { "2026-09-31T08:15:30Z", HF_EINVAL },
    { "2026-11-31T08:15:30Z", HF_EINVAL },
    { "2026-02-29T08:15:30Z", HF_EINVAL },
    { "2024-02-30T08:15:30Z", HF_EINVAL },
    { "1900-02-29T08:15:30Z", HF_EINVAL },
    { "2100-02-29T08:15:30Z", HF_EINVAL },
    { "2026-01-31T24:00:00Z", HF_EINVAL },
    { "2026-01-31T08:60:00Z", HF_EINVAL },
    { "2026-01-31T08:15:60Z", HF_EINVAL },
    { "2016-12-31T23:59:60Z", HF_EINVAL },
    { "2026-01-31T08:15:30.Z", HF_EINVAL },
    { "2026-01-31T08:15:30,5Z", HF_EINVAL },
    { "2026-01-31T08:15:30.1234567890Z", HF_EINVAL },
    { "2026-01-31T08:15:30.-1Z", HF_EINVAL },
    { "2026-01-31T08:15:30+0200", HF_EINVAL },
    { "2026-01-31T08:15:30+02", HF_EINVAL },
    { "2026-01-31T08:15:30+2:00", HF_EINVAL },
    { "2026-01-31T08:15:30+24:00", HF_EINVAL },
    { "2026-01-31T08:15:30+02:60", HF_EINVAL },
    { "2026-01-31T08:15:30+02:00x", HF_EINVAL },
    { "2026-01-31T08:15:30 +02:00", HF_EINVAL },
    { "2026-01-31T08:15:30UTC", HF_EINVAL },
    { "0000-01-01T00:00:00+00:01", HF_ELIMIT },
    { "9999-12-31T23:59:59-00:01", HF_ELIMIT },
};

START_TEST(what_is_no_time_is_refused)
{
    hf_ms wall = 77;

    ck_assert_int_eq(hf_parse_time(NO_TIMES[_i].text, &wall), NO_TIMES[_i].rc);
    ck_assert_int_eq(wall, 77);
}
END_TEST

/* Every way to cut a good text short is refused, and none is read past its end: the copy has
 * the exact size, so that the AddressSanitizer build sees it. */
START_TEST(a_time_cut_short_is_refused)
{
    const char *whole = "2026-01-31T08:15:30.123+02:00";

    for (size_t len = 0; len < strlen(whole); len++) {
        char *text = strndup(whole, len);
        hf_ms wall = 77;
        int rc;

        ck_assert_ptr_nonnull(text);
        rc = hf_parse_time(text, &wall);
        free(text);
        ck_assert_int_eq(rc, HF_EINVAL);
    }
}
END_TEST

/* Against the C library: every day from 1800 to 2400, where all the rules for leap years apply,
 * and every 17th of the other years that have a text. */
START_TEST(the_calendar_is_right)
{
    const int64_t day = 86400;
    int64_t step = day;

    for (int64_t seconds = -62167219200; seconds < 253402300800; seconds += step) {
        time_t t = seconds + (seconds / day % day + day) % day; /* another time on each day */
        struct tm tm = { 0 };
        char want[40];
        char got[40];
        hf_ms wall = 0;

        (void)gmtime_r(&t, &tm);
        step = tm.tm_year + 1900 < 1800 || tm.tm_year + 1900 > 2400 ? 17 * day : day;
        (void)snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year + 1900,
                       tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        (void)hf_format_time((hf_ms)t * 1000, got, sizeof got);
        if (strcmp(got, want) != 0)
            ck_abort_msg("%s instead of %s", got, want);
        if (hf_parse_time(got, &wall) != HF_OK || wall != (hf_ms)t * 1000)
            ck_abort_msg("%s was read as %" PRId64, got, wall);
    }
}
END_TEST

START_TEST(times_survive_the_round_trip)
{
    const hf_ms first = -62167219200000;
    const uint64_t span = 253402300799999 - first + 1;
    uint64_t state = 4;

    for (int round = 0; round < 10000; round++) {
        hf_ms want = first + (hf_ms)(next_random(&state) % span);
        hf_ms got = 77;
        char text[40];

        ck_assert_int_lt(hf_format_time(want, text, sizeof text), (int)sizeof text);
        if (hf_parse_time(text, &got) != HF_OK || got != want)
            ck_abort_msg("%" PRId64 " became %s, which is %" PRId64, want, text, got);
    }
}
END_TEST

START_TEST(times_without_a_text_become_the_nearest_end)
{
    char text[40];

    (void)hf_format_time(INT64_MIN, text, sizeof text);
    ck_assert_str_eq(text, "0000-01-01T00:00:00Z");
    (void)hf_format_time(-62167219200001, text, sizeof text);
    ck_assert_str_eq(text, "0000-01-01T00:00:00Z");
    (void)hf_format_time(253402300800000, text, sizeof text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999Z");
    (void)hf_format_time(INT64_MAX, text, sizeof text);
    ck_assert_str_eq(text, "9999-12-31T23:59:59.999Z");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("time");

    tcase_add_loop_test(t, durations, 0, COUNT(DURATIONS));
    tcase_add_loop_test(t, what_is_no_duration_is_refused, 0, COUNT(NO_DURATIONS));
    tcase_add_loop_test(t, durations_have_one_text, 0, COUNT(DURATION_TEXTS));
    tcase_add_test(t, durations_survive_the_round_trip);
    tcase_add_test(t, short_room_cuts_the_text);
    tcase_add_loop_test(t, times_are_read_and_written, 0, COUNT(TIMES));
    tcase_add_loop_test(t, offsets_and_fractions_are_understood, 0, COUNT(SAME_TIMES));
    tcase_add_loop_test(t, what_is_no_time_is_refused, 0, COUNT(NO_TIMES));
    tcase_add_test(t, a_time_cut_short_is_refused);
    tcase_add_test(t, the_calendar_is_right);
    tcase_add_test(t, times_survive_the_round_trip);
    tcase_add_test(t, times_without_a_text_become_the_nearest_end);
    tcase_set_timeout(t, 60);
    return hft_suite_run("base/str, time", t, NULL);
}
