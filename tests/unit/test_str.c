#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* A fixed sequence: a failure repeats. */
static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005U + 1442695040888963407U;
    return *state ^ *state >> 29;
}

/* Numbers of all sizes, small ones as likely as large ones. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t value = next_random(state);

    return value >> next_random(state) % 64;
}

static const struct {
    const char *text;
    int64_t min;
    int64_t max;
    int rc;
    int64_t value;
} SIGNED[] = {
    { "0", INT64_MIN, INT64_MAX, HF_OK, 0 },
    { "-0", INT64_MIN, INT64_MAX, HF_OK, 0 },
    { "17", INT64_MIN, INT64_MAX, HF_OK, 17 },
    { "-17", INT64_MIN, INT64_MAX, HF_OK, -17 },
    { "007", INT64_MIN, INT64_MAX, HF_OK, 7 },
    { "010", INT64_MIN, INT64_MAX, HF_OK, 10 },
    { "00000000000000000000000000001", INT64_MIN, INT64_MAX, HF_OK, 1 },
    { "9223372036854775807", INT64_MIN, INT64_MAX, HF_OK, INT64_MAX },
    { "-9223372036854775808", INT64_MIN, INT64_MAX, HF_OK, INT64_MIN },
    { "9223372036854775808", INT64_MIN, INT64_MAX, HF_ELIMIT, 0 },
    { "-9223372036854775809", INT64_MIN, INT64_MAX, HF_ELIMIT, 0 },
    { "18446744073709551616", INT64_MIN, INT64_MAX, HF_ELIMIT, 0 },
    { "-18446744073709551617", INT64_MIN, INT64_MAX, HF_ELIMIT, 0 },
    { "99999999999999999999999999999999", INT64_MIN, INT64_MAX, HF_ELIMIT, 0 },
    { "5", 5, 9, HF_OK, 5 },
    { "9", 5, 9, HF_OK, 9 },
    { "4", 5, 9, HF_ELIMIT, 0 },
    { "10", 5, 9, HF_ELIMIT, 0 },
    { "-1", 0, 9, HF_ELIMIT, 0 },
    { "99999999999999999999999999999999x", INT64_MIN, INT64_MAX, HF_EINVAL, 0 },
};

START_TEST(signed_numbers)
{
    int64_t value = 77;

    ck_assert_int_eq(hf_parse_i64(SIGNED[_i].text, SIGNED[_i].min, SIGNED[_i].max, &value),
                     SIGNED[_i].rc);
    ck_assert_int_eq(value, SIGNED[_i].rc == HF_OK ? SIGNED[_i].value : 77);
}
END_TEST

static const struct {
    const char *text;
    uint64_t min;
    uint64_t max;
    int rc;
    uint64_t value;
} UNSIGNED[] = {
    { "0", 0, UINT64_MAX, HF_OK, 0 },
    { "42", 0, UINT64_MAX, HF_OK, 42 },
    { "0042", 0, UINT64_MAX, HF_OK, 42 },
    { "18446744073709551615", 0, UINT64_MAX, HF_OK, UINT64_MAX },
    { "18446744073709551616", 0, UINT64_MAX, HF_ELIMIT, 0 },
    { "18446744073709551620", 0, UINT64_MAX, HF_ELIMIT, 0 },
    { "28446744073709551615", 0, UINT64_MAX, HF_ELIMIT, 0 },
    { "184467440737095516150", 0, UINT64_MAX, HF_ELIMIT, 0 },
    { "184467440737095516160", 0, UINT64_MAX, HF_ELIMIT, 0 }, /* wraps to 0, and stays there */
    { "1", 1, 3, HF_OK, 1 },
    { "3", 1, 3, HF_OK, 3 },
    { "0", 1, 3, HF_ELIMIT, 0 },
    { "4", 1, 3, HF_ELIMIT, 0 },
    { "-1", 0, UINT64_MAX, HF_EINVAL, 0 },
    { "-0", 0, UINT64_MAX, HF_EINVAL, 0 },
};

START_TEST(unsigned_numbers)
{
    uint64_t value = 77;

    ck_assert_int_eq(
        hf_parse_u64(UNSIGNED[_i].text, UNSIGNED[_i].min, UNSIGNED[_i].max, &value),
        UNSIGNED[_i].rc);
    ck_assert_uint_eq(value, UNSIGNED[_i].rc == HF_OK ? UNSIGNED[_i].value : 77);
}
END_TEST

static const char *const NO_NUMBERS[] = {
    "",    " ",   "+1",    " 1",    "1 ",  "1\n", "\t1", "--1",   "-", "1-", "- 1", "0x10",
    "1e3", "1.0", "1,000", "1_000", "one", "١",   "１",  "1\x80", "/", ":",  "nan", "inf",
};

START_TEST(what_is_no_number_is_refused)
{
    int64_t i = 77;
    uint64_t u = 77;

    ck_assert_int_eq(hf_parse_i64(NO_NUMBERS[_i], INT64_MIN, INT64_MAX, &i), HF_EINVAL);
    ck_assert_int_eq(hf_parse_u64(NO_NUMBERS[_i], 0, UINT64_MAX, &u), HF_EINVAL);
    ck_assert_int_eq(i, 77);
    ck_assert_uint_eq(u, 77);
}
END_TEST

START_TEST(numbers_survive_the_round_trip)
{
    uint64_t state = 1;

    for (int round = 0; round < 5000; round++) {
        uint64_t want = next_number(&state);
        int64_t want_signed = (int64_t)want;
        uint64_t got = 0;
        int64_t got_signed = 0;
        char text[32];

        (void)snprintf(text, sizeof text, "%" PRIu64, want);
        ck_assert_int_eq(hf_parse_u64(text, 0, UINT64_MAX, &got), HF_OK);
        ck_assert_uint_eq(got, want);
        (void)snprintf(text, sizeof text, "%" PRId64, want_signed);
        ck_assert_int_eq(hf_parse_i64(text, INT64_MIN, INT64_MAX, &got_signed), HF_OK);
        ck_assert_int_eq(got_signed, want_signed);
    }
}
END_TEST

START_TEST(only_true_and_false_are_booleans)
{
    const char *const bad[] = { "",   "True", "TRUE", "yes",   "no",    "1",      "0",
                                "on", "t",    "tru",  "truex", " true", "false\n" };
    bool value = false;

    ck_assert_int_eq(hf_parse_bool("true", &value), HF_OK);
    ck_assert(value);
    for (size_t i = 0; i < COUNT(bad); i++) {
        ck_assert_int_eq(hf_parse_bool(bad[i], &value), HF_EINVAL);
        ck_assert(value);
    }
    ck_assert_int_eq(hf_parse_bool("false", &value), HF_OK);
    ck_assert(!value);
}
END_TEST

static const struct {
    const char *a;
    const char *b;
    size_t distance;
} DISTANCES[] = {
    { "", "", 0 },
    { "abc", "abc", 0 },
    { "", "abc", 3 },
    { "abc", "abcd", 1 },
    { "abc", "xabc", 1 },
    { "abc", "axc", 1 },
    { "abc", "acb", 1 },
    { "abcdef", "badcfe", 3 },
    { "kitten", "sitting", 3 },
    { "ca", "abc", 3 }, /* a swap is not edited again: that is what tells it from Damerau's */
    { "endpoints", "enpdoints", 1 },
    { "Abc", "abc", 1 },
};

START_TEST(distance_counts_the_edits)
{
    ck_assert_uint_eq(hf_str_distance(DISTANCES[_i].a, DISTANCES[_i].b),
                      DISTANCES[_i].distance);
    ck_assert_uint_eq(hf_str_distance(DISTANCES[_i].b, DISTANCES[_i].a),
                      DISTANCES[_i].distance);
}
END_TEST

/* The definition, word for word and exponential. */
static size_t slow_distance(const char *a, size_t len_a, const char *b, size_t len_b)
{
    size_t best;
    size_t other;

    if (len_a == 0 || len_b == 0)
        return len_a + len_b;
    best = slow_distance(a, len_a - 1, b, len_b - 1) + (a[len_a - 1] != b[len_b - 1] ? 1 : 0);
    other = slow_distance(a, len_a - 1, b, len_b) + 1;
    best = other < best ? other : best;
    other = slow_distance(a, len_a, b, len_b - 1) + 1;
    best = other < best ? other : best;
    if (len_a > 1 && len_b > 1 && a[len_a - 1] == b[len_b - 2] &&
        a[len_a - 2] == b[len_b - 1]) {
        other = slow_distance(a, len_a - 2, b, len_b - 2) + 1;
        best = other < best ? other : best;
    }
    return best;
}

static void random_word(uint64_t *state, char word[8])
{
    size_t len = next_random(state) % 7;

    for (size_t i = 0; i < len; i++)
        word[i] = (char)('a' + next_random(state) % 3);
    word[len] = '\0';
}

START_TEST(distance_agrees_with_its_definition)
{
    uint64_t state = 2;

    for (int round = 0; round < 2000; round++) {
        char a[8];
        char b[8];
        size_t want;

        random_word(&state, a);
        random_word(&state, b);
        want = slow_distance(a, strlen(a), b, strlen(b));
        ck_assert_msg(hf_str_distance(a, b) == want, "%s -> %s is not %zu", a, b, want);
    }
}
END_TEST

START_TEST(long_texts_are_infinitely_far)
{
    char a[67];
    char b[67];

    memset(a, 'a', sizeof a);
    memset(b, 'a', sizeof b);
    a[64] = b[64] = '\0';
    ck_assert_uint_eq(hf_str_distance(a, b), 0);
    ck_assert_uint_eq(hf_str_distance(a, ""), 64);
    b[0] = b[63] = 'b';
    ck_assert_uint_eq(hf_str_distance(a, b), 2);
    b[64] = 'a';
    b[65] = '\0';
    ck_assert_uint_eq(hf_str_distance(a, b), SIZE_MAX);
    ck_assert_uint_eq(hf_str_distance(b, b), SIZE_MAX);
    ck_assert_uint_eq(hf_str_distance(b, ""), SIZE_MAX);
}
END_TEST

static const char *const KNOWN[] = { "endpoints", "namespace", "log-level", "log-format",
                                     "ttl",       "key",       "cert",      "cacert" };

static const struct {
    const char *word;
    const char *nearest;
} WORDS[] = {
    { "endpoint", "endpoints" },
    { "enpdoints", "endpoints" },
    { "loglevel", "log-level" },
    { "log-fromat", "log-format" },
    { "tll", "ttl" },
    { "ttl", "ttl" },
    { "kye", "key" },
    { "crt", "cert" },
    { "certs", "cert" },
    { "ca-cert", "cacert" },
    { "Namespace", "namespace" },
    { "port", NULL },
    { "xyz", NULL },
    { "k", NULL },
    { "", NULL },
    { "zzzzzzzzz", NULL },
};

START_TEST(nearest_suggests_what_was_meant_and_nothing_else)
{
    const char *nearest = hf_str_nearest(WORDS[_i].word, KNOWN, COUNT(KNOWN));

    ck_assert_pstr_eq(nearest, WORDS[_i].nearest);
}
END_TEST

START_TEST(nearest_of_equals_is_the_first)
{
    const char *const known[] = { "bat", "cat", "hat" };

    ck_assert_ptr_eq(hf_str_nearest("rat", known, 3), known[0]);
    ck_assert_ptr_eq(hf_str_nearest("hat", known, 3), known[2]);
    ck_assert_ptr_null(hf_str_nearest("rat", known, 0));
    ck_assert_ptr_null(hf_str_nearest("a", (const char *const[]){ "b" }, 1));
}
END_TEST

#define BYTES(text) text, sizeof(text) - 1

static const struct {
    const char *data;
    size_t len;
    bool valid;
} UTF8[] = {
    { BYTES(""), true },
    { BYTES("ascii"), true },
    { BYTES("a\0b"), true },
    { BYTES("\x7f"), true },
    { BYTES("\xc2\x80"), true },         /* U+0080, the first of two bytes */
    { BYTES("\xdf\xbf"), true },         /* U+07FF, the last */
    { BYTES("\xe0\xa0\x80"), true },     /* U+0800 */
    { BYTES("\xed\x9f\xbf"), true },     /* U+D7FF, before the surrogates */
    { BYTES("\xee\x80\x80"), true },     /* U+E000, after them */
    { BYTES("\xef\xbf\xbf"), true },     /* U+FFFF */
    { BYTES("\xf0\x90\x80\x80"), true }, /* U+10000 */
    { BYTES("\xf4\x8f\xbf\xbf"), true }, /* U+10FFFF, the last of all */
    { BYTES("\x80"), false },            /* a continuation that continues nothing */
    { BYTES("\xbf"), false },
    { BYTES("\xc0\x80"), false }, /* overlong forms */
    { BYTES("\xc1\xbf"), false },
    { BYTES("\xe0\x9f\xbf"), false },
    { BYTES("\xf0\x8f\xbf\xbf"), false },
    { BYTES("\xed\xa0\x80"), false }, /* surrogates */
    { BYTES("\xed\xbf\xbf"), false },
    { BYTES("\xf4\x90\x80\x80"), false }, /* beyond U+10FFFF */
    { BYTES("\xf5\x80\x80\x80"), false },
    { BYTES("\xff"), false },
    { BYTES("\xfe"), false },
    { BYTES("\xc3"), false }, /* cut short */
    { BYTES("\xe2\x82"), false },
    { BYTES("\xf0\x9f\x99"), false },
    { BYTES("\xc3("), false }, /* broken off */
    { BYTES("\xe2\x28\xa1"), false },
    { BYTES("\xe2\x82\x28"), false },
    { BYTES("\xf0\x28\x8c\xbc"), false },
    { BYTES("\xf0\x90\x28\xbc"), false },
    { BYTES("\xf0\x90\x8c\x28"), false },
    { BYTES("good \xc3\xbc then bad \xfc"), false },
};

START_TEST(a_text_is_cut_between_characters)
{
    ck_assert_uint_eq(hf_str_cut("abc", 3), 3);
    ck_assert_uint_eq(hf_str_cut("abcd", 3), 3);
    ck_assert_uint_eq(hf_str_cut("ab\xc3\xa9", 3), 2);
    ck_assert_uint_eq(hf_str_cut("ab\xc3\xa9", 4), 4);
    ck_assert_uint_eq(hf_str_cut("\xe2\x82\xac", 2), 0);
    ck_assert_uint_eq(hf_str_cut("", 0), 0);
}
END_TEST

START_TEST(utf8_is_recognised)
{
    ck_assert_int_eq(hf_str_is_utf8(UTF8[_i].data, UTF8[_i].len), UTF8[_i].valid);
}
END_TEST

static size_t encode(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Every character there is, and every value up to 2^21 that is none. */
START_TEST(every_character_has_its_length)
{
    for (uint32_t c = 0; c < 0x200000; c++) {
        char out[5] = { 0, 0, 0, 0, 'x' };
        size_t len = encode(c, out);
        bool valid = c < 0xd800 || (c > 0xdfff && c < 0x110000);
        size_t got = hf_str_utf8_length(out, len);

        if (got != (valid ? len : 0) || (len > 1 && hf_str_utf8_length(out, len - 1) != 0))
            ck_abort_msg("U+%04x has length %zu", c, got);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("str");

    tcase_add_loop_test(t, signed_numbers, 0, COUNT(SIGNED));
    tcase_add_loop_test(t, unsigned_numbers, 0, COUNT(UNSIGNED));
    tcase_add_loop_test(t, what_is_no_number_is_refused, 0, COUNT(NO_NUMBERS));
    tcase_add_test(t, numbers_survive_the_round_trip);
    tcase_add_test(t, only_true_and_false_are_booleans);
    tcase_add_loop_test(t, distance_counts_the_edits, 0, COUNT(DISTANCES));
    tcase_add_test(t, distance_agrees_with_its_definition);
    tcase_add_test(t, long_texts_are_infinitely_far);
    tcase_add_loop_test(t, nearest_suggests_what_was_meant_and_nothing_else, 0, COUNT(WORDS));
    tcase_add_test(t, nearest_of_equals_is_the_first);
    tcase_add_test(t, a_text_is_cut_between_characters);
    tcase_add_loop_test(t, utf8_is_recognised, 0, COUNT(UTF8));
    tcase_add_test(t, every_character_has_its_length);
    tcase_set_timeout(t, 60);
    return hft_suite_run("base/str", t, NULL);
}
