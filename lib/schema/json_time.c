#include <stdio.h>
#include <string.h>

#include "schema/json_text.h"

#define NANOS           1000000000
#define DURATION_MAX    INT64_C(315576000000) /* ten thousand years of 365.25 days */
#define TIME_MIN        INT64_C(-62135596800) /* 0001-01-01T00:00:00Z */
#define TIME_MAX        INT64_C(253402300799) /* 9999-12-31T23:59:59Z */
#define SECONDS_PER_DAY 86400

/* A parser's place in its text. Reading past the end yields a failure, never a byte. */
struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *c, char want)
{
    if (c->at == c->end || *c->at != want)
        return false;
    c->at++;
    return true;
}

/* Exactly `count` digits, or -1. */
static int take_digits(struct cursor *c, int count)
{
    int value = 0;

    if (c->end - c->at < count)
        return -1;
    for (int i = 0; i < count; i++) {
        char digit = *c->at++;

        if (digit < '0' || digit > '9')
            return -1;
        value = value * 10 + (digit - '0');
    }
    return value;
}

/* ".5" is 500,000,000; no point at all is 0; -1 when it is not one to nine digits. */
static int32_t take_fraction(struct cursor *c)
{
    int32_t value = 0;
    int digits = 0;

    if (!take(c, '.'))
        return 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9' && digits < 9; digits++)
        value = value * 10 + (*c->at++ - '0');
    if (digits == 0)
        return -1;
    for (; digits < 9; digits++)
        value *= 10;
    return value;
}

/* Nothing for whole seconds, else the fewest of 3, 6 and 9 digits that say it all. */
static int format_fraction(int32_t nanos, char *out, size_t size)
{
    if (nanos == 0)
        return 0;
    if (nanos % 1000000 == 0)
        return snprintf(out, size, ".%03d", nanos / 1000000);
    if (nanos % 1000 == 0)
        return snprintf(out, size, ".%06d", nanos / 1000);
    return snprintf(out, size, ".%09d", nanos);
}

int hf_json_text_parse_duration(const char *text, size_t len, int64_t *ret_seconds,
                                int32_t *ret_nanos)
{
    struct cursor c = { .at = text, .end = text + len };
    bool negative = take(&c, '-');
    const char *digits = c.at;
    int64_t seconds = 0;
    int32_t nanos;

    for (; c.at < c.end && *c.at >= '0' && *c.at <= '9'; c.at++) {
        if (seconds <= DURATION_MAX)
            seconds = seconds * 10 + (*c.at - '0');
    }
    if (c.at == digits)
        return HF_EINVAL;
    nanos = take_fraction(&c);
    if (nanos < 0 || !take(&c, 's') || c.at != c.end)
        return HF_EINVAL;
    if (seconds > DURATION_MAX || (seconds == DURATION_MAX && nanos > 0))
        return HF_ELIMIT;
    *ret_seconds = negative ? -seconds : seconds;
    *ret_nanos = negative ? -nanos : nanos;
    return HF_OK;
}

int hf_json_text_format_duration(int64_t seconds, int32_t nanos, char out[HF_JSON_TIME_SIZE],
                                 size_t *ret_len)
{
    bool negative = seconds < 0 || nanos < 0;
    int n;

    if (seconds < -DURATION_MAX || seconds > DURATION_MAX || nanos <= -NANOS || nanos >= NANOS)
        return HF_ELIMIT;
    if ((seconds < 0 && nanos > 0) || (seconds > 0 && nanos < 0))
        return HF_EINVAL;
    if (negative) {
        seconds = -seconds;
        nanos = -nanos;
    }
    n = snprintf(out, HF_JSON_TIME_SIZE, "%s%lld", negative ? "-" : "", (long long)seconds);
    n += format_fraction(nanos, out + n, HF_JSON_TIME_SIZE - (size_t)n);
    out[n++] = 's';
    *ret_len = (size_t)n;
    return HF_OK;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int year, int month)
{
    static const int8_t DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return month == 2 && is_leap(year) ? 29 : DAYS[month - 1];
}

/* Days before January 1st of the year, counted from 1970. */
static int64_t days_before_year(int year)
{
    int past = year - 1;

    return (int64_t)past * 365 + past / 4 - past / 100 + past / 400 - 719162;
}

static int take_date(struct cursor *c, int64_t *ret_days)
{
    int year = take_digits(c, 4);
    int month = take(c, '-') ? take_digits(c, 2) : -1;
    int day = take(c, '-') ? take_digits(c, 2) : -1;

    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return HF_EINVAL;
    *ret_days = days_before_year(year) + day - 1;
    for (int m = 1; m < month; m++)
        *ret_days += days_in_month(year, m);
    return HF_OK;
}

static int take_clock(struct cursor *c, int *ret_seconds)
{
    int hour = take_digits(c, 2);
    int minute = take(c, ':') ? take_digits(c, 2) : -1;
    int second = take(c, ':') ? take_digits(c, 2) : -1;

    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return HF_EINVAL;
    *ret_seconds = hour * 3600 + minute * 60 + second;
    return HF_OK;
}

/* "Z", "+02:00" or "-08:30", as the seconds by which the clock is ahead of UTC. */
static int take_offset(struct cursor *c, int *ret_seconds)
{
    bool behind;
    int hour;
    int minute;

    *ret_seconds = 0;
    if (take(c, 'Z'))
        return HF_OK;
    behind = take(c, '-');
    if (!behind && !take(c, '+'))
        return HF_EINVAL;
    hour = take_digits(c, 2);
    minute = take(c, ':') ? take_digits(c, 2) : -1;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59)
        return HF_EINVAL;
    *ret_seconds = (hour * 3600 + minute * 60) * (behind ? -1 : 1);
    return HF_OK;
}

int hf_json_text_parse_time(const char *text, size_t len, int64_t *ret_seconds,
                            int32_t *ret_nanos)
{
    struct cursor c = { .at = text, .end = text + len };
    int64_t days;
    int64_t seconds;
    int32_t nanos;
    int clock;
    int offset;

    if (take_date(&c, &days) != HF_OK || !take(&c, 'T') || take_clock(&c, &clock) != HF_OK)
        return HF_EINVAL;
    nanos = take_fraction(&c);
    if (nanos < 0 || take_offset(&c, &offset) != HF_OK || c.at != c.end)
        return HF_EINVAL;
    seconds = days * SECONDS_PER_DAY + clock - offset;
    if (seconds < TIME_MIN || seconds > TIME_MAX)
        return HF_ELIMIT;
    *ret_seconds = seconds;
    *ret_nanos = nanos;
    return HF_OK;
}

/* The year that the day lies in, and the day's number in it from 0. */
static int year_of(int64_t days, int *ret_day_of_year)
{
    int year = (int)((days + 719162) * 400 / 146097); /* the mean; it may be a year early */

    while (days_before_year(year + 1) <= days)
        year++;
    *ret_day_of_year = (int)(days - days_before_year(year));
    return year;
}

int hf_json_text_format_time(int64_t seconds, int32_t nanos, char out[HF_JSON_TIME_SIZE],
                             size_t *ret_len)
{
    int64_t days;
    int month = 1;
    int year;
    int clock;
    int day;
    int n;

    if (seconds < TIME_MIN || seconds > TIME_MAX || nanos < 0 || nanos >= NANOS)
        return HF_ELIMIT;
    clock = (int)((seconds - TIME_MIN) % SECONDS_PER_DAY); /* TIME_MIN is a midnight */
    days = (seconds - clock) / SECONDS_PER_DAY;
    year = year_of(days, &day);
    for (; day >= days_in_month(year, month); month++)
        day -= days_in_month(year, month);
    n = snprintf(out, HF_JSON_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day + 1,
                 clock / 3600, clock / 60 % 60, clock % 60);
    n += format_fraction(nanos, out + n, HF_JSON_TIME_SIZE - (size_t)n);
    out[n++] = 'Z';
    *ret_len = (size_t)n;
    return HF_OK;
}
