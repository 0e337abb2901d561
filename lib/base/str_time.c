/* str_time.c - durations and points in time as text. Own calendar arithmetic: the C library's
 * reads the time zone files and takes a lock on the way to UTC. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define MS_SECOND 1000
#define MS_MINUTE 60000
#define MS_HOUR   3600000
#define MS_DAY    INT64_C(86400000)

#define DAYS_TO_1970 719528 /* from 0000-01-01, in the Gregorian calendar extended back */
#define YEAR_MAX     9999

static const struct unit {
    char text[3];
    int64_t ms;
} UNITS[] = { { "h", MS_HOUR }, { "m", MS_MINUTE }, { "s", MS_SECOND }, { "ms", 1 } };

#define UNIT_COUNT (sizeof UNITS / sizeof UNITS[0])

/* Enough: a fraction of an hour that is whole in milliseconds has at most seven digits. */
#define FRACTION_DIGITS_MAX 9

/* One <number> of a duration, as digits of its text. */
struct number {
    int64_t whole; /* stops growing above HF_DURATION_MAX */
    int64_t fraction;
    int64_t scale; /* the fraction counts 1/scale */
    bool too_fine;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *scan_fraction(const char *p, struct number *n)
{
    const char *end = p;
    const char *last;

    while (is_digit(*end))
        end++;
    for (last = end; last > p && last[-1] == '0';)
        last--;
    n->too_fine = last - p > FRACTION_DIGITS_MAX;
    for (; p < last && !n->too_fine; p++) {
        n->fraction = n->fraction * 10 + (*p - '0');
        n->scale *= 10;
    }
    return end;
}

/* Returns the first character after the number, NULL when there is none. */
static const char *scan_number(const char *p, struct number *ret_number)
{
    struct number n = { .scale = 1 };

    if (!is_digit(*p))
        return NULL;
    for (; is_digit(*p); p++) {
        if (n.whole <= HF_DURATION_MAX)
            n.whole = n.whole * 10 + (*p - '0');
    }
    if (*p == '.') {
        if (!is_digit(p[1]))
            return NULL;
        p = scan_fraction(p + 1, &n);
    }
    *ret_number = n;
    return p;
}

/* The unit at p, of those from *index on; *index moves behind it, so that units only fall. */
static const struct unit *scan_unit(const char *p, size_t *index)
{
    size_t len = 0;

    while (p[len] >= 'a' && p[len] <= 'z')
        len++;
    for (size_t i = *index; i < UNIT_COUNT; i++) {
        if (strlen(UNITS[i].text) == len && memcmp(UNITS[i].text, p, len) == 0) {
            *index = i + 1;
            return &UNITS[i];
        }
    }
    return NULL;
}

/* Adds number * unit. What is too long leaves the total just above the limit, where the parts
 * that follow cannot overflow it. False when the number is finer than a millisecond. */
static bool add_part(hf_ms *total, const struct number *n, const struct unit *unit)
{
    int64_t part = n->fraction * unit->ms; /* < 10^9 * 3.6 * 10^6 */

    if (n->too_fine || part % n->scale != 0)
        return false;
    if (n->whole > HF_DURATION_MAX / unit->ms)
        *total = HF_DURATION_MAX + 1;
    else
        *total += n->whole * unit->ms + part / n->scale;
    return true;
}

int hf_parse_duration(const char *text, hf_ms *ret_value)
{
    bool negative = *text == '-';
    const char *p = text + (negative ? 1 : 0);
    size_t index = 0;
    hf_ms total = 0;

    if (strcmp(text, "0") == 0) {
        *ret_value = 0;
        return HF_OK;
    }
    do {
        struct number number;
        const struct unit *unit;

        p = scan_number(p, &number);
        if (p == NULL)
            return HF_EINVAL;
        unit = scan_unit(p, &index);
        if (unit == NULL || !add_part(&total, &number, unit))
            return HF_EINVAL;
        p += strlen(unit->text);
    } while (*p != '\0');

    if (total > HF_DURATION_MAX)
        return HF_ELIMIT;
    *ret_value = negative ? -total : total;
    return HF_OK;
}

/* "30", "1.5", "1.25": seconds, without zeros at the end of the fraction. */
static void format_seconds(uint64_t ms, char out[16])
{
    int len = snprintf(out, 16, "%u.%03u", (unsigned)(ms / 1000), (unsigned)(ms % 1000));

    while (out[len - 1] == '0')
        len--;
    if (out[len - 1] == '.')
        len--;
    out[len] = '\0';
}

int hf_format_duration(hf_ms value, char *out, size_t size)
{
    uint64_t ms = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    uint64_t hours = ms / MS_HOUR;
    unsigned minutes = (unsigned)(ms / MS_MINUTE % 60);
    uint64_t rest = ms % MS_MINUTE;
    char text_h[24] = "";
    char text_m[8] = "";
    char text_s[16] = "";

    if (ms > 0 && ms < MS_SECOND)
        return snprintf(out, size, "%s%ums", value < 0 ? "-" : "", (unsigned)ms);
    if (hours > 0)
        (void)snprintf(text_h, sizeof text_h, "%lluh", (unsigned long long)hours);
    if (minutes > 0)
        (void)snprintf(text_m, sizeof text_m, "%um", minutes);
    if (rest > 0 || ms == 0)
        format_seconds(rest, text_s);
    return snprintf(out, size, "%s%s%s%s%s", value < 0 ? "-" : "", text_h, text_m, text_s,
                    text_s[0] != '\0' ? "s" : "");
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int DAYS[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };

    return DAYS[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 0000-01-01 to the first of January; year 0 is itself a leap year. */
static int64_t days_before_year(int year)
{
    return (int64_t)year * 365 + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
}

/* Exactly `count` digits at p; -1 when there is something else. */
static int scan_digits(const char *p, int count)
{
    int value = 0;

    for (int i = 0; i < count; i++) {
        if (!is_digit(p[i]))
            return -1;
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* "2026-01-31" in days since 0000-01-01, or -1. */
static int64_t scan_date(const char *p)
{
    int year = scan_digits(p, 4);
    int month = year >= 0 && p[4] == '-' ? scan_digits(p + 5, 2) : -1;
    int day = month >= 0 && p[7] == '-' ? scan_digits(p + 8, 2) : -1;
    int64_t days;

    if (month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return -1;
    days = days_before_year(year) + day - 1;
    for (int m = 1; m < month; m++)
        days += days_in_month(year, m);
    return days;
}

/* "08:15" in minutes, or -1. */
static int scan_hour_minute(const char *p)
{
    int hour = scan_digits(p, 2);
    int minute = hour >= 0 && p[2] == ':' ? scan_digits(p + 3, 2) : -1;

    return hour > 23 || minute < 0 || minute > 59 ? -1 : hour * 60 + minute;
}

/* "30" or "30.123456789" in milliseconds; NULL when it is neither. A leap second (60) is
 * refused: time since 1970 has no room for it. */
static const char *scan_seconds(const char *p, int *ret_ms)
{
    int second = scan_digits(p, 2);
    int ms = 0;
    int count = 0;

    if (second < 0 || second > 59)
        return NULL;
    p += 2;
    if (*p == '.') {
        for (p++; is_digit(*p); p++) {
            if (count++ < 3)
                ms = ms * 10 + (*p - '0');
        }
        if (count < 1 || count > 9)
            return NULL;
        for (; count < 3; count++)
            ms *= 10;
    }
    *ret_ms = second * MS_SECOND + ms;
    return p;
}

/* "Z" or "+02:00" to the end of the text, in minutes east of Greenwich. */
static bool scan_offset(const char *p, int *ret_minutes)
{
    int minutes;

    if (strcmp(p, "Z") == 0) {
        *ret_minutes = 0;
        return true;
    }
    if (*p != '+' && *p != '-')
        return false;
    minutes = scan_hour_minute(p + 1);
    if (minutes < 0 || p[6] != '\0')
        return false;
    *ret_minutes = *p == '-' ? -minutes : minutes;
    return true;
}

int hf_parse_time(const char *text, hf_ms *ret_wall)
{
    int64_t days = scan_date(text);
    int minutes = days >= 0 && text[10] == 'T' ? scan_hour_minute(text + 11) : -1;
    const char *rest;
    int ms;
    int offset;
    hf_ms since_0000;

    if (minutes < 0 || text[16] != ':')
        return HF_EINVAL;
    rest = scan_seconds(text + 17, &ms);
    if (rest == NULL || !scan_offset(rest, &offset))
        return HF_EINVAL;

    since_0000 = days * MS_DAY + (int64_t)(minutes - offset) * MS_MINUTE + ms;
    if (since_0000 < 0 || since_0000 >= days_before_year(YEAR_MAX + 1) * MS_DAY)
        return HF_ELIMIT; /* the offset leads to a year that has no text in UTC */
    *ret_wall = since_0000 - DAYS_TO_1970 * MS_DAY;
    return HF_OK;
}

/* Splits days since 0000-01-01, within the years that have four digits. */
static void split_date(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int year = (int)(days / 366); /* too early by some years, never too late */
    int month = 1;

    while (days_before_year(year + 1) <= days)
        year++;
    days -= days_before_year(year);
    for (; days >= days_in_month(year, month); month++)
        days -= days_in_month(year, month);
    *ret_year = year;
    *ret_month = month;
    *ret_day = (int)days + 1;
}

int hf_format_time(hf_ms wall, char *out, size_t size)
{
    const hf_ms first = -DAYS_TO_1970 * MS_DAY;
    const hf_ms last = (days_before_year(YEAR_MAX + 1) - DAYS_TO_1970) * MS_DAY - 1;
    int64_t since_0000 = (wall < first ? first : wall > last ? last : wall) - first;
    int in_day = (int)(since_0000 % MS_DAY);
    char fraction[8] = "";
    int year;
    int month;
    int day;

    split_date(since_0000 / MS_DAY, &year, &month, &day);
    if (in_day % 1000 != 0)
        (void)snprintf(fraction, sizeof fraction, ".%03d", in_day % 1000);
    return snprintf(out, size, "%04d-%02d-%02dT%02d:%02d:%02d%sZ", year, month, day,
                    in_day / MS_HOUR, in_day / MS_MINUTE % 60, in_day / MS_SECOND % 60,
                    fraction);
}
