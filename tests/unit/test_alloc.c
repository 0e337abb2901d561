#include <check.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "support/chaos.h"
#include "support/suite.h"

START_TEST(calloc_zeroes_and_refuses_overflow)
{
    HF_CLEANUP_FREE uint64_t *items = hf_calloc(100, sizeof *items);
    volatile size_t half = SIZE_MAX / 2;

    ck_assert_ptr_nonnull(items);
    for (size_t i = 0; i < 100; i++)
        ck_assert_uint_eq(items[i], 0);
    ck_assert_ptr_null(hf_calloc(half, 3));
}
END_TEST

START_TEST(calloc_of_nothing_is_not_a_lack_of_memory)
{
    HF_CLEANUP_FREE void *none = hf_calloc(0, 8);
    HF_CLEANUP_FREE void *empty = hf_calloc(8, 0);

    ck_assert_ptr_nonnull(none);
    ck_assert_ptr_nonnull(empty);
}
END_TEST

START_TEST(strndup_stops_at_the_nul_and_at_the_limit)
{
    const char unterminated[3] = { 'a', 'b', 'c' };
    HF_CLEANUP_FREE char *whole = hf_strdup("holdfast");
    HF_CLEANUP_FREE char *cut = hf_strndup(unterminated, 3);
    HF_CLEANUP_FREE char *shorter = hf_strndup("ab\0cd", 5);
    HF_CLEANUP_FREE char *none = hf_strndup("abc", 0);

    ck_assert_str_eq(whole, "holdfast");
    ck_assert_str_eq(cut, "abc");
    ck_assert_str_eq(shorter, "ab");
    ck_assert_str_eq(none, "");
}
END_TEST

START_TEST(memdup_copies_nuls_and_appends_one)
{
    HF_CLEANUP_FREE char *copy = hf_memdup("a\0b", 3);
    HF_CLEANUP_FREE char *empty = hf_memdup(NULL, 0);

    ck_assert_mem_eq(copy, "a\0b", 4);
    ck_assert_mem_eq(empty, "", 1);
    ck_assert_ptr_null(hf_memdup("", SIZE_MAX));
}
END_TEST

START_TEST(grow_keeps_the_content)
{
    HF_CLEANUP_FREE uint32_t *items = NULL;
    size_t cap = 0;

    for (uint32_t i = 0; i < 1000; i++) {
        ck_assert(hf_grow(&items, &cap, i + 1, sizeof *items));
        ck_assert_uint_gt(cap, i);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        ck_assert_uint_eq(items[i], i);
}
END_TEST

/* Appending one by one must cost a logarithmic number of reallocations. */
START_TEST(grow_grows_by_half_at_least)
{
    HF_CLEANUP_FREE char *items = NULL;
    size_t cap = 0;
    size_t reallocations;
    bool ok = true;

    hft_chaos_fail_at(0, false);
    for (size_t i = 1; i <= 1000000; i++)
        ok = ok && hf_grow(&items, &cap, i, 1);
    reallocations = hft_chaos_count();
    hft_chaos_stop();
    ck_assert(ok);
    ck_assert_uint_le(reallocations, 32);
}
END_TEST

START_TEST(grow_does_nothing_when_there_is_room)
{
    char room[8];
    char *items = room;
    size_t cap = sizeof room;

    ck_assert(hf_grow(&items, &cap, 8, 1));
    ck_assert_ptr_eq(items, room);
    ck_assert_uint_eq(cap, 8);
}
END_TEST

START_TEST(grow_that_fails_changes_nothing)
{
    HF_CLEANUP_FREE uint64_t *items = NULL;
    uint64_t *before;
    size_t cap = 0;
    bool grown;

    ck_assert(hf_grow(&items, &cap, 10, sizeof *items));
    before = items;

    ck_assert(!hf_grow(&items, &cap, SIZE_MAX / 4, sizeof *items));
    ck_assert(!hf_grow(&items, &cap, SIZE_MAX, sizeof *items));
    hft_chaos_fail_at(1, false);
    grown = hf_grow(&items, &cap, 11, sizeof *items);
    hft_chaos_stop();

    ck_assert(!grown);
    ck_assert_ptr_eq(items, before);
    ck_assert_uint_eq(cap, 10);
}
END_TEST

/* The capacity is near the top of size_t: half as much again would wrap to something small. */
START_TEST(grow_survives_the_wrap_of_its_own_arithmetic)
{
    char *items = NULL;
    size_t cap = SIZE_MAX - 8;

    ck_assert(!hf_grow(&items, &cap, SIZE_MAX - 4, 1));
    ck_assert_ptr_null(items);
    ck_assert_uint_eq(cap, SIZE_MAX - 8);
}
END_TEST

static int copy_all(void *arg)
{
    HF_CLEANUP_FREE char *a = hf_strdup("a");
    HF_CLEANUP_FREE char *b = a != NULL ? hf_strndup("b", 1) : NULL;
    HF_CLEANUP_FREE char *c = b != NULL ? hf_memdup("c", 1) : NULL;
    HF_CLEANUP_FREE char *d = c != NULL ? hf_calloc(1, 1) : NULL;
    size_t cap = 1;

    (void)arg;
    if (d == NULL)
        return HF_ENOMEM;
    return hf_grow(&d, &cap, 100, 1) ? HF_OK : HF_ENOMEM;
}

START_TEST(every_function_reports_a_lack_of_memory)
{
    ck_assert_uint_eq(hft_chaos_run(copy_all, NULL), 5);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("alloc");

    tcase_add_test(t, calloc_zeroes_and_refuses_overflow);
    tcase_add_test(t, calloc_of_nothing_is_not_a_lack_of_memory);
    tcase_add_test(t, strndup_stops_at_the_nul_and_at_the_limit);
    tcase_add_test(t, memdup_copies_nuls_and_appends_one);
    tcase_add_test(t, grow_keeps_the_content);
    tcase_add_test(t, grow_grows_by_half_at_least);
    tcase_add_test(t, grow_does_nothing_when_there_is_room);
    tcase_add_test(t, grow_that_fails_changes_nothing);
    tcase_add_test(t, grow_survives_the_wrap_of_its_own_arithmetic);
    tcase_add_test(t, every_function_reports_a_lack_of_memory);
    return hft_suite_run("base/alloc", t, NULL);
}
