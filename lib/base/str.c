#include "base/str.h"

#include <string.h>

#define DISTANCE_MAX 64

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* HF_ELIMIT only for text that is a number all the way: garbage is garbage however long. */
static int parse_digits(const char *text, uint64_t *ret_value)
{
    uint64_t value = 0;
    bool overflow = false;

    if (*text == '\0')
        return HF_EINVAL;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_digit(*p))
            return HF_EINVAL;
        overflow = overflow || __builtin_mul_overflow(value, 10, &value) ||
                   __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value);
    }
    if (overflow)
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

int hf_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value)
{
    bool negative = *text == '-';
    uint64_t magnitude;
    int64_t value;
    int rc = parse_digits(text + (negative ? 1 : 0), &magnitude);

    if (rc < 0)
        return rc;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1 : 0))
        return HF_ELIMIT;
    value =
        (int64_t)(negative ? 0 - magnitude : magnitude); /* unsigned: INT64_MIN is in reach */
    if (value < min || value > max)
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

int hf_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value)
{
    uint64_t value;
    int rc = parse_digits(text, &value);

    if (rc < 0)
        return rc;
    if (value < min || value > max)
        return HF_ELIMIT;
    *ret_value = value;
    return HF_OK;
}

int hf_parse_bool(const char *text, bool *ret_value)
{
    bool value = strcmp(text, "true") == 0;

    if (!value && strcmp(text, "false") != 0)
        return HF_EINVAL;
    *ret_value = value;
    return HF_OK;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: three rows are enough, because a swap looks back by two. */
size_t hf_str_distance(const char *a, const char *b)
{
    size_t len_a = strnlen(a, DISTANCE_MAX + 1);
    size_t len_b = strnlen(b, DISTANCE_MAX + 1);
    size_t rows[3][DISTANCE_MAX + 1];

    if (len_a > DISTANCE_MAX || len_b > DISTANCE_MAX)
        return SIZE_MAX;

    for (size_t j = 0; j <= len_b; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= len_a; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above2 = rows[(i + 1) % 3];

        row[0] = i;
        for (size_t j = 1; j <= len_b; j++) {
            size_t replace = above[j - 1] + (a[i - 1] != b[j - 1] ? 1 : 0);

            row[j] = min_size(replace, min_size(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min_size(row[j], above2[j - 2] + 1);
        }
    }
    return rows[len_a % 3][len_b];
}

/* One slip in a short word, one more for every three letters of a longer one; but a word of
 * which nothing is left is another word. */
static bool is_near(const char *word, const char *known, size_t distance)
{
    size_t len_word = strlen(word);
    size_t len_known = strlen(known);
    size_t len = len_word > len_known ? len_word : len_known;
    size_t allowed = len < 5 ? 1 : (len + 1) / 3;

    return distance == 0 || (distance <= allowed && distance < len);
}

const char *hf_str_nearest(const char *word, const char *const *known, size_t count)
{
    const char *nearest = NULL;
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < count; i++) {
        size_t distance = hf_str_distance(word, known[i]);

        if (distance < best && is_near(word, known[i], distance)) {
            best = distance;
            nearest = known[i];
        }
    }
    return nearest;
}

/* The second byte carries the whole difficulty: its range is what excludes overlong forms,
 * surrogates and what is beyond U+10FFFF. */
size_t hf_str_utf8_length(const void *data, size_t len)
{
    const uint8_t *p = data;
    size_t want;
    uint8_t low = 0x80;
    uint8_t high = 0xbf;

    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xc2 || p[0] > 0xf4)
        return 0;
    want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (want > len)
        return 0;

    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < want; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    }
    return want;
}

bool hf_str_is_utf8(const void *data, size_t len)
{
    const uint8_t *p = data;

    for (size_t at = 0; at < len;) {
        size_t n = hf_str_utf8_length(p + at, len - at);

        if (n == 0)
            return false;
        at += n;
    }
    return true;
}

size_t hf_str_cut(const char *text, size_t max)
{
    size_t len = strnlen(text, max + 1);

    if (len <= max)
        return len;
    len = max;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}
