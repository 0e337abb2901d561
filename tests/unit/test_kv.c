/* Ranges as etcd wants them: a first key and an end. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "etcd/range.h"
#include "support/chaos.h"
#include "support/suite.h"

#define BYTES(text)                                                                            \
    {                                                                                          \
        .data = (text), .len = sizeof(text) - 1                                                \
    }

static const struct {
    struct hf_bytes prefix, first, end;
} PREFIXES[] = {
    { BYTES("a"), BYTES("a"), BYTES("b") },
    { BYTES("tasks/"), BYTES("tasks/"), BYTES("tasks0") },
    { BYTES("a\xff"), BYTES("a\xff"), BYTES("b") },
    { BYTES("a\xff\xff\xff"), BYTES("a\xff\xff\xff"), BYTES("b") },
    { BYTES("a\xfe\xff"), BYTES("a\xfe\xff"), BYTES("a\xff") },
    { BYTES("a\0"), BYTES("a\0"), BYTES("a\1") },
    { BYTES("\0"), BYTES("\0"), BYTES("\1") },
    /* A single NUL as the end means: to the end of all keys. */
    { BYTES("\xff"), BYTES("\xff"), BYTES("\0") },
    { BYTES("\xff\xff"), BYTES("\xff\xff"), BYTES("\0") },
    { BYTES(""), BYTES("\0"), BYTES("\0") },
};

static void expect_bytes(ProtobufCBinaryData got, struct hf_bytes want)
{
    ck_assert_uint_eq(got.len, want.len);
    ck_assert_mem_eq(got.data, want.data, want.len);
}

START_TEST(a_prefix_ends_before_its_successor)
{
    struct hf_key_range range = { .key = PREFIXES[_i].prefix, .prefix = true };
    struct hf_range_bounds bounds;

    ck_assert_int_eq(hf_range_bounds_init(&bounds, &range), HF_OK);
    expect_bytes(bounds.key, PREFIXES[_i].first);
    expect_bytes(bounds.end, PREFIXES[_i].end);
    hf_range_bounds_done(&bounds);
    ck_assert_ptr_null(bounds.key.data);
}
END_TEST

START_TEST(a_key_alone_has_no_end)
{
    struct hf_key_range range = { .key = BYTES("a\0b") };
    struct hf_range_bounds bounds;

    ck_assert_int_eq(hf_range_bounds_init(&bounds, &range), HF_OK);
    expect_bytes(bounds.key, range.key);
    ck_assert_uint_eq(bounds.end.len, 0);
    hf_range_bounds_done(&bounds);
}
END_TEST

START_TEST(an_empty_key_is_none)
{
    struct hf_key_range range = { .key = BYTES("") };
    struct hf_range_bounds bounds;

    ck_assert_int_eq(hf_range_bounds_init(&bounds, &range), HF_EINVAL);
}
END_TEST

static int compare(const void *a, size_t a_len, const void *b, size_t b_len)
{
    size_t shared = a_len < b_len ? a_len : b_len;
    int order = shared > 0 ? memcmp(a, b, shared) : 0;

    return order != 0 ? order : (a_len > b_len) - (a_len < b_len);
}

/* Property, over all keys of up to three bytes of a small alphabet that has both ends. */
START_TEST(a_key_is_in_the_range_exactly_if_it_has_the_prefix)
{
    static const uint8_t LETTERS[] = { 0x00, 0x01, 'a', 0xfe, 0xff };
    enum { COUNT = sizeof LETTERS, MOST = COUNT * COUNT * COUNT };
    uint8_t prefix[3], key[3];

    for (int p = 0; p < 3 * MOST; p++) {
        size_t prefix_len = 1 + (size_t)(p / MOST);
        struct hf_key_range range = { .key = { .data = prefix, .len = prefix_len },
                                      .prefix = true };
        struct hf_range_bounds bounds;

        for (int i = 0, rest = p % MOST; i < 3; i++, rest /= COUNT)
            prefix[i] = LETTERS[rest % COUNT];
        ck_assert_int_eq(hf_range_bounds_init(&bounds, &range), HF_OK);
        bool endless = bounds.end.len == 1 && bounds.end.data[0] == 0;
        for (int k = 0; k < 3 * MOST; k++) {
            size_t len = 1 + (size_t)(k / MOST);

            for (int i = 0, rest = k % MOST; i < 3; i++, rest /= COUNT)
                key[i] = LETTERS[rest % COUNT];
            bool has = len >= prefix_len && memcmp(key, prefix, prefix_len) == 0;
            bool in = compare(key, len, bounds.key.data, bounds.key.len) >= 0 &&
                      (endless || compare(key, len, bounds.end.data, bounds.end.len) < 0);
            if (has != in)
                ck_abort_msg("prefix %d, key %d: %d and %d", p, k, has, in);
        }
        hf_range_bounds_done(&bounds);
    }
}
END_TEST

static int init_under_chaos(void *arg)
{
    struct hf_range_bounds bounds;
    int err = hf_range_bounds_init(&bounds, arg);

    if (err == HF_OK)
        hf_range_bounds_done(&bounds);
    hft_chaos_stop();
    return err;
}

START_TEST(every_allocation_may_fail)
{
    struct hf_key_range range = { .key = BYTES("a/"), .prefix = true };

    ck_assert_uint_eq(hft_chaos_run(init_under_chaos, &range), 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("range");

    tcase_set_timeout(t, 30);
    tcase_add_loop_test(t, a_prefix_ends_before_its_successor, 0,
                        sizeof PREFIXES / sizeof PREFIXES[0]);
    tcase_add_test(t, a_key_alone_has_no_end);
    tcase_add_test(t, an_empty_key_is_none);
    tcase_add_test(t, a_key_is_in_the_range_exactly_if_it_has_the_prefix);
    tcase_add_test(t, every_allocation_may_fail);
    return hft_suite_run("etcd/kv", t, NULL);
}
