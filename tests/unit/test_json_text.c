#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "schema/json_text.h"
#include "support/suite.h"

/* splitmix64: the same numbers in every run. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

START_TEST(every_double_reads_back)
{
    uint64_t state = 1;

    for (int i = 0; i < 20000; i++) {
        char text[HF_JSON_DOUBLE_SIZE];
        uint64_t bits = next_random(&state);
        double value;
        double back = 0;
        size_t len;

        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        len = hf_json_text_format_double(value, text);
        ck_assert_uint_lt(len, sizeof text);
        ck_assert_int_eq(hf_json_text_parse_double(text, len, &back), HF_OK);
        ck_assert_mem_eq(&back, &value, sizeof value);
    }
}
END_TEST

START_TEST(every_float_reads_back)
{
    uint64_t state = 2;

    for (int i = 0; i < 20000; i++) {
        char text[HF_JSON_DOUBLE_SIZE];
        uint32_t bits = (uint32_t)next_random(&state);
        float value;
        float back = 0;
        size_t len;

        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        len = hf_json_text_format_float(value, text);
        ck_assert_int_eq(hf_json_text_parse_float(text, len, &back), HF_OK);
        ck_assert_mem_eq(&back, &value, sizeof value);
    }
}
END_TEST

START_TEST(numbers_longer_than_any_double_needs_are_refused)
{
    char text[HF_JSON_NUMBER_MAX + 1];
    double value = 5;

    memset(text, '1', sizeof text);
    text[1] = '.';
    ck_assert_int_eq(hf_json_text_parse_double(text, HF_JSON_NUMBER_MAX, &value), HF_OK);
    ck_assert_int_eq(hf_json_text_parse_double(text, sizeof text, &value), HF_ELIMIT);
}
END_TEST

/* Against the C library, over days that calendars get wrong and over random moments. */
static void check_time(int64_t seconds, int32_t nanos, const char *fraction)
{
    char text[HF_JSON_TIME_SIZE];
    char want[64];
    struct tm tm;
    time_t moment = seconds;
    int64_t back_seconds = 0;
    int32_t back_nanos = 0;
    size_t len = 0;

    ck_assert_int_eq(hf_json_text_format_time(seconds, nanos, text, &len), HF_OK);
    ck_assert_ptr_nonnull(gmtime_r(&moment, &tm));
    (void)snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, fraction);
    ck_assert_uint_eq(len, strlen(want));
    ck_assert_msg(memcmp(text, want, len) == 0, "%.*s is not %s", (int)len, text, want);
    ck_assert_int_eq(hf_json_text_parse_time(text, len, &back_seconds, &back_nanos), HF_OK);
    ck_assert_int_eq(back_seconds, seconds);
    ck_assert_int_eq(back_nanos, nanos);
}

START_TEST(times_agree_with_the_c_library)
{
    const int64_t first = -62135596800;
    const int64_t last = 253402300799;
    uint64_t state = 3;

    check_time(first, 0, "");
    check_time(last, 999999999, ".999999999");
    check_time(-1, 500000000, ".500");
    check_time(0, 1000, ".000001");
    for (int i = 0; i < 20000; i++)
        check_time(first + (int64_t)(next_random(&state) % (uint64_t)(last - first)), 0, "");
    for (int64_t day = first; day < last; day += 31556952) { /* near every turn of a year */
        check_time(day, 0, "");
        check_time(day - day % 86400, 0, "");
    }
}
END_TEST

static const struct {
    const char *text;
    int64_t seconds;
    int32_t nanos;
    int want;
} TIMES[] = {
    { "1970-01-01T00:00:00Z", 0, 0, HF_OK },
    { "1969-12-31T23:59:59.5Z", -1, 500000000, HF_OK },
    { "2000-02-29T00:00:00Z", 951782400, 0, HF_OK },
    { "1970-01-01T05:30:00+05:30", 0, 0, HF_OK },
    { "1969-12-31T16:00:00.123456789-08:00", 0, 123456789, HF_OK },
    { "0001-01-01T00:00:00Z", -62135596800, 0, HF_OK },
    { "9999-12-31T23:59:59.999999999Z", 253402300799, 999999999, HF_OK },
    { "0001-01-01T00:00:00+00:01", 0, 0, HF_ELIMIT },
    { "9999-12-31T23:59:59-00:01", 0, 0, HF_ELIMIT },
    { "0000-01-01T00:00:00Z", 0, 0, HF_EINVAL },
    { "1900-02-29T00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-13-01T00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-00-01T00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-01-00T00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-04-31T00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-01-01T24:00:00Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:60:00Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:60Z", 0, 0, HF_EINVAL },
    { "1970-01-01t00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00z", 0, 0, HF_EINVAL },
    { "1970-01-01 00:00:00Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00.Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00.1234567890Z", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00+0100", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00+24:00", 0, 0, HF_EINVAL },
    { "1970-01-01T00:00:00Zx", 0, 0, HF_EINVAL },
    { "1970-1-01T00:00:00Z", 0, 0, HF_EINVAL },
    { "", 0, 0, HF_EINVAL },
};

START_TEST(times)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    int code =
        hf_json_text_parse_time(TIMES[_i].text, strlen(TIMES[_i].text), &seconds, &nanos);

    ck_assert_msg(code == TIMES[_i].want, "%s gave %d", TIMES[_i].text, code);
    ck_assert_int_eq(seconds, TIMES[_i].seconds);
    ck_assert_int_eq(nanos, TIMES[_i].nanos);
}
END_TEST

static const struct {
    const char *text;
    int64_t seconds;
    int32_t nanos;
    int want;
    const char *written;
} DURATIONS[] = {
    { "0s", 0, 0, HF_OK, "0s" },
    { "15s", 15, 0, HF_OK, "15s" },
    { "-0s", 0, 0, HF_OK, "0s" },
    { "1.5s", 1, 500000000, HF_OK, "1.500s" },
    { "-1.000001s", -1, -1000, HF_OK, "-1.000001s" },
    { "-0.000000001s", 0, -1, HF_OK, "-0.000000001s" },
    { "007s", 7, 0, HF_OK, "7s" },
    { "315576000000s", 315576000000, 0, HF_OK, "315576000000s" },
    { "-315576000000s", -315576000000, 0, HF_OK, "-315576000000s" },
    { "315576000001s", 0, 0, HF_ELIMIT, NULL },
    { "99999999999999999999999999s", 0, 0, HF_ELIMIT, NULL },
    { "315576000000.000000001s", 0, 0, HF_ELIMIT, NULL },
    { "", 0, 0, HF_EINVAL, NULL },
    { "s", 0, 0, HF_EINVAL, NULL },
    { "1", 0, 0, HF_EINVAL, NULL },
    { "1m", 0, 0, HF_EINVAL, NULL },
    { "+1s", 0, 0, HF_EINVAL, NULL },
    { "1.s", 0, 0, HF_EINVAL, NULL },
    { ".5s", 0, 0, HF_EINVAL, NULL },
    { "1.0000000000s", 0, 0, HF_EINVAL, NULL },
    { "1s ", 0, 0, HF_EINVAL, NULL },
};

START_TEST(durations)
{
    int64_t seconds = 0;
    int32_t nanos = 0;
    char text[HF_JSON_TIME_SIZE];
    size_t len = 0;
    int code = hf_json_text_parse_duration(DURATIONS[_i].text, strlen(DURATIONS[_i].text),
                                           &seconds, &nanos);

    ck_assert_msg(code == DURATIONS[_i].want, "%s gave %d", DURATIONS[_i].text, code);
    ck_assert_int_eq(seconds, DURATIONS[_i].seconds);
    ck_assert_int_eq(nanos, DURATIONS[_i].nanos);
    if (code != HF_OK)
        return;
    ck_assert_int_eq(hf_json_text_format_duration(seconds, nanos, text, &len), HF_OK);
    ck_assert_uint_eq(len, strlen(DURATIONS[_i].written));
    ck_assert_mem_eq(text, DURATIONS[_i].written, len);
}
END_TEST

START_TEST(base64_of_every_length_reads_back)
{
    uint8_t data[64];
    uint64_t state = 4;

    for (size_t len = 0; len <= sizeof data; len++) {
        char text[HF_JSON_BASE64_SIZE(sizeof data)];
        uint8_t back[HF_JSON_BASE64_ROOM(sizeof text)];
        size_t text_len = HF_JSON_BASE64_SIZE(len);
        size_t back_len = 0;

        for (size_t i = 0; i < len; i++)
            data[i] = (uint8_t)next_random(&state);
        hf_json_text_format_base64(data, len, text);
        ck_assert_int_eq(hf_json_text_parse_base64(text, text_len, back, &back_len), HF_OK);
        ck_assert_uint_eq(back_len, len);
        ck_assert_mem_eq(back, data, len);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("text");

    tcase_add_test(t, every_double_reads_back);
    tcase_add_test(t, every_float_reads_back);
    tcase_add_test(t, numbers_longer_than_any_double_needs_are_refused);
    tcase_add_test(t, times_agree_with_the_c_library);
    tcase_add_loop_test(t, times, 0, sizeof TIMES / sizeof TIMES[0]);
    tcase_add_loop_test(t, durations, 0, sizeof DURATIONS / sizeof DURATIONS[0]);
    tcase_add_test(t, base64_of_every_length_reads_back);
    return hft_suite_run("schema/json", t, NULL);
}
