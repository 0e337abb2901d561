#include "schema/json_text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

size_t hf_json_text_number(const char *p, const char *end)
{
    const char *begin = p;
    const char *digits;

    if (p < end && *p == '-')
        p++;
    digits = p;
    p = p < end && *p == '0' ? p + 1 : skip_digits(p, end);
    if (p == digits)
        return 0;
    if (p < end && *p == '.') {
        digits = p + 1;
        p = skip_digits(digits, end);
        if (p == digits)
            return 0;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        digits = p;
        p = skip_digits(digits, end);
        if (p == digits)
            return 0;
    }
    return (size_t)(p - begin);
}

/* A number taken apart: its digits, the point left out, times ten to the exponent. */
struct decimal {
    bool negative;
    const char *digits;
    const char *digits_end; /* a point may stand between the digits */
    int64_t exponent;
};

/* Far outside every type's range, near enough that sums of it do not overflow. */
#define EXPONENT_MAX INT32_MAX

static int64_t parse_exponent(const char *p, const char *end)
{
    bool negative = *p == '-';
    int64_t value = 0;

    if (*p == '-' || *p == '+')
        p++;
    for (; p < end && value < EXPONENT_MAX; p++)
        value = value * 10 + (*p - '0');
    return negative ? -value : value;
}

static int take_apart(const char *text, size_t len, struct decimal *ret)
{
    const char *end = text + len;
    const char *point = NULL;
    const char *p;

    if (len == 0 || hf_json_text_number(text, end) != len)
        return HF_EINVAL;
    *ret = (struct decimal){ .negative = *text == '-' };
    ret->digits = text + ret->negative;
    for (p = ret->digits; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.')
            point = p;
    }
    ret->digits_end = p;
    if (p < end)
        ret->exponent = parse_exponent(p + 1, end);
    if (point != NULL)
        ret->exponent -= p - point - 1;
    return HF_OK;
}

/* Zeros at the end carry no value; without them a negative exponent means a fraction. */
static void strip_zeros(struct decimal *d)
{
    while (d->digits_end > d->digits) {
        char last = d->digits_end[-1];

        if (last == '0')
            d->exponent++;
        else if (last != '.')
            return;
        d->digits_end--;
    }
    d->exponent = 0; /* nothing is left: the number is zero */
}

static int whole_magnitude(struct decimal *d, uint64_t *ret_value)
{
    uint64_t value = 0;

    strip_zeros(d);
    if (d->exponent < 0)
        return HF_EINVAL;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.')
            continue;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
            return HF_ELIMIT;
    }
    for (; d->exponent > 0; d->exponent--) {
        if (__builtin_mul_overflow(value, 10u, &value))
            return HF_ELIMIT;
    }
    *ret_value = value;
    return HF_OK;
}

/* The form that nearly every integer has: up to 18 digits, nothing else. */
static bool parse_plain(const char *text, size_t len, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (len == 0 || len > 18 || (text[0] == '0' && len > 1))
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    *ret_value = value;
    return true;
}

static int parse_whole(const char *text, size_t len, bool *ret_negative, uint64_t *ret_value)
{
    struct decimal d;
    int err;

    *ret_negative = false;
    if (parse_plain(text, len, ret_value))
        return HF_OK;
    err = take_apart(text, len, &d);
    if (err == HF_OK)
        err = whole_magnitude(&d, ret_value);
    if (err == HF_OK)
        *ret_negative = d.negative && *ret_value != 0;
    return err;
}

int hf_json_text_parse_uint(const char *text, size_t len, uint64_t max, uint64_t *ret_value)
{
    uint64_t value;
    bool negative;
    int err = parse_whole(text, len, &negative, &value);

    if (err != HF_OK)
        return err;
    if (negative || value > max)
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

int hf_json_text_parse_int(const char *text, size_t len, int64_t min, int64_t max,
                           int64_t *ret_value)
{
    uint64_t value;
    bool negative;
    int err = parse_whole(text, len, &negative, &value);

    if (err != HF_OK)
        return err;
    if (negative ? value > -(uint64_t)min : value > (uint64_t)max)
        return HF_ELIMIT;
    *ret_value = (int64_t)(negative ? -value : value);
    return HF_OK;
}

size_t hf_json_text_format_uint(uint64_t value, char out[HF_JSON_INT_SIZE])
{
    char digits[HF_JSON_INT_SIZE];
    size_t n = 0;

    do {
        digits[n++] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    for (size_t i = 0; i < n; i++)
        out[i] = digits[n - 1 - i];
    return n;
}

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* glibc answers this request with a static object: it cannot fail and needs no freelocale. */
static locale_t c_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* strtod needs a NUL and obeys the locale; the caller's text has neither. */
static int copy_number(const char *text, size_t len, char out[HF_JSON_NUMBER_MAX + 1])
{
    if (len == 0 || hf_json_text_number(text, text + len) != len)
        return HF_EINVAL;
    if (len > HF_JSON_NUMBER_MAX)
        return HF_ELIMIT;
    memcpy(out, text, len);
    out[len] = '\0';
    return HF_OK;
}

static bool parse_special(const char *text, size_t len, double *ret_value)
{
    if (is_word(text, len, "NaN"))
        *ret_value = (double)NAN;
    else if (is_word(text, len, "Infinity"))
        *ret_value = (double)INFINITY;
    else if (is_word(text, len, "-Infinity"))
        *ret_value = -(double)INFINITY;
    else
        return false;
    return true;
}

int hf_json_text_parse_double(const char *text, size_t len, double *ret_value)
{
    char copy[HF_JSON_NUMBER_MAX + 1];
    double value;
    int err;

    if (parse_special(text, len, ret_value))
        return HF_OK;
    err = copy_number(text, len, copy);
    if (err != HF_OK)
        return err;
    value = strtod_l(copy, NULL, c_locale());
    if (isinf(value))
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

int hf_json_text_parse_float(const char *text, size_t len, float *ret_value)
{
    char copy[HF_JSON_NUMBER_MAX + 1];
    double special;
    float value;
    int err;

    if (parse_special(text, len, &special)) {
        *ret_value = (float)special;
        return HF_OK;
    }
    err = copy_number(text, len, copy);
    if (err != HF_OK)
        return err;
    value = strtof_l(copy, NULL, c_locale());
    if (isinf(value))
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

static const char *special_name(double value)
{
    if (isnan(value))
        return "NaN";
    if (isinf(value))
        return value > 0 ? "Infinity" : "-Infinity";
    return NULL;
}

static bool reads_back(const char *text, double value, bool single)
{
    return single ? strtof(text, NULL) == (float)value : strtod(text, NULL) == value;
}

/* As few digits as read back as the value, from those that every decimal survives to those that
 * every value does. */
static size_t format_real(double value, bool single, char *out)
{
    const char *special = special_name(value);
    int digits = single ? FLT_DIG : DBL_DIG;
    int most = single ? FLT_DECIMAL_DIG : DBL_DECIMAL_DIG;
    locale_t callers;
    int n;

    if (special != NULL)
        return (size_t)(stpcpy(out, special) - out);
    callers = uselocale(c_locale());
    do {
        n = snprintf(out, HF_JSON_DOUBLE_SIZE, "%.*g", digits, value);
    } while (digits++ < most && !reads_back(out, value, single));
    (void)uselocale(callers);
    return (size_t)n;
}

size_t hf_json_text_format_double(double value, char out[HF_JSON_DOUBLE_SIZE])
{
    return format_real(value, false, out);
}

size_t hf_json_text_format_float(float value, char out[HF_JSON_DOUBLE_SIZE])
{
    return format_real((double)value, true, out);
}
