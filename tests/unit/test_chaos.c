#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "support/chaos.h"

static bool can_allocate(void)
{
    void *volatile p = malloc(1); /* volatile, or the optimiser knows better */
    bool ok = p != NULL;

    free(p);
    return ok;
}

START_TEST(transient_failure_hits_exactly_one_allocation)
{
    bool first;
    bool second;
    bool third;

    hft_chaos_fail_at(2, false);
    first = can_allocate();
    errno = 0;
    second = can_allocate();
    int err = errno;
    third = can_allocate();
    hft_chaos_stop();

    ck_assert(first);
    ck_assert(!second);
    ck_assert_int_eq(err, ENOMEM);
    ck_assert(third);
    ck_assert(hft_chaos_has_failed());
    ck_assert_uint_eq(hft_chaos_count(), 3);
}
END_TEST

static bool is_even(size_t n, void *arg)
{
    *(size_t *)arg = n;
    return can_allocate() && n % 2 == 0; /* which is not counted */
}

START_TEST(whoever_is_asked_decides_which_ones_fail)
{
    bool first, second, third;
    size_t asked = 0;

    hft_chaos_ask(is_even, &asked);
    hft_chaos_fail_at(0, false);
    first = can_allocate();
    second = can_allocate();
    third = can_allocate();
    hft_chaos_stop();
    hft_chaos_ask(NULL, NULL);

    ck_assert(first);
    ck_assert(!second);
    ck_assert(third);
    ck_assert_uint_eq(asked, 3);
    ck_assert_uint_eq(hft_chaos_count(), 3);
}
END_TEST

START_TEST(persistent_failure_lasts_until_stopped)
{
    bool first;
    bool second;
    bool third;

    hft_chaos_fail_at(2, true);
    first = can_allocate();
    second = can_allocate();
    third = can_allocate();
    hft_chaos_stop();

    ck_assert(first);
    ck_assert(!second);
    ck_assert(!third);
    ck_assert(can_allocate());
    ck_assert_uint_eq(hft_chaos_count(), 3);
}
END_TEST

START_TEST(every_wrapped_function_fails)
{
    char *volatile results[6];
    size_t count;

    hft_chaos_fail_at(1, true);
    results[0] = malloc(1);
    results[1] = calloc(1, 1);
    results[2] = realloc(NULL, 100);
    results[3] = reallocarray(NULL, 100, 2);
    results[4] = strdup("a");
    results[5] = strndup("a", 1);
    count = hft_chaos_count();
    hft_chaos_stop();

    ck_assert_uint_eq(count, 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_ptr_null(results[i]);
}
END_TEST

static void *allocate_elsewhere(void *arg)
{
    bool *ok = arg;

    *ok = can_allocate();
    return NULL;
}

START_TEST(other_threads_are_spared)
{
    pthread_t thread;
    bool ok = false;
    int rc;

    hft_chaos_fail_at(1, true);
    rc = pthread_create(&thread, NULL, allocate_elsewhere, &ok);
    if (rc == 0)
        rc = pthread_join(thread, NULL);
    hft_chaos_stop();

    ck_assert_int_eq(rc, 0);
    ck_assert(ok);
}
END_TEST

/* What a body may do wrong, and one that does it right. */
struct body {
    size_t allocations;
    int when_failed;
    int when_fine;
};

static int run_body(void *arg)
{
    const struct body *body = arg;

    for (size_t i = 0; i < body->allocations; i++) {
        if (!can_allocate())
            return body->when_failed;
    }
    return body->when_fine;
}

START_TEST(run_fails_each_allocation_in_turn)
{
    struct body body = { .allocations = 4, .when_failed = HF_ENOMEM };

    ck_assert_uint_eq(hft_chaos_run(run_body, &body), 4);
    ck_assert(can_allocate());
}
END_TEST

static const struct body BAD_BODIES[] = {
    { .allocations = 2, .when_failed = HF_OK },
    { .allocations = 2, .when_failed = HF_EIO },
    { .allocations = 2, .when_failed = HF_ENOMEM, .when_fine = HF_EIO },
    { .allocations = 0, .when_failed = HF_ENOMEM },
};

START_TEST(run_with_a_bad_body)
{
    struct body body = BAD_BODIES[_i];

    (void)hft_chaos_run(run_body, &body);
}
END_TEST

static int build_json(void *arg)
{
    json_t *json = json_pack("{s:s, s:[i, i]}", "name", "a1", "list", 1, 2);
    int rc = json != NULL ? HF_OK : HF_ENOMEM;

    (void)arg;
    json_decref(json);
    return rc;
}

START_TEST(jansson_fails_once_adopted)
{
    hft_chaos_fail_at(1, true);
    int untouched = build_json(NULL);
    hft_chaos_stop();
    ck_assert_int_eq(untouched, HF_OK);

    hft_chaos_adopt_jansson();
    ck_assert_uint_gt(hft_chaos_run(build_json, NULL), 5);
}
END_TEST

START_TEST(protobuf_allocator_fails)
{
    ProtobufCAllocator *allocator = hft_chaos_protobuf();
    void *first;
    void *second;

    hft_chaos_fail_at(2, false);
    first = allocator->alloc(allocator->allocator_data, 10);
    second = allocator->alloc(allocator->allocator_data, 10);
    hft_chaos_stop();

    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(second);
    allocator->free(allocator->allocator_data, first);
}
END_TEST

START_TEST(what_is_left_over_is_counted)
{
    size_t kept, grown, left, none;
    char *first, *second, *before = malloc(8);

    hft_chaos_watch();
    first = malloc(8);
    second = strdup("text");
    kept = hft_chaos_live();
    first = realloc(first, 100000);
    grown = hft_chaos_live();
    free(before); /* from before: it does not count */
    free(second);
    left = hft_chaos_live();
    free(first);
    none = hft_chaos_live();
    ck_assert_uint_eq(kept, 2);
    ck_assert_uint_eq(grown, 2);
    ck_assert_uint_eq(left, 1);
    ck_assert_uint_eq(none, 0);
}
END_TEST

static int count_failures(Suite *suite, enum print_output print)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, print);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed;
}

/* The helper's own assertions: each of these tests has to fail, or it would prove nothing in
 * the tests that rely on it. */
static bool bad_bodies_are_rejected(void)
{
    const int count = sizeof BAD_BODIES / sizeof BAD_BODIES[0];
    Suite *s = suite_create("bad bodies");
    TCase *t = tcase_create("bad bodies");

    tcase_add_loop_test(t, run_with_a_bad_body, 0, count);
    suite_add_tcase(s, t);
    return count_failures(s, CK_SILENT) == count;
}

int main(void)
{
    Suite *s = suite_create("support/chaos");
    TCase *t = tcase_create("chaos");

    tcase_add_test(t, transient_failure_hits_exactly_one_allocation);
    tcase_add_test(t, whoever_is_asked_decides_which_ones_fail);
    tcase_add_test(t, persistent_failure_lasts_until_stopped);
    tcase_add_test(t, every_wrapped_function_fails);
    tcase_add_test(t, other_threads_are_spared);
    tcase_add_test(t, run_fails_each_allocation_in_turn);
    tcase_add_test(t, jansson_fails_once_adopted);
    tcase_add_test(t, protobuf_allocator_fails);
    tcase_add_test(t, what_is_left_over_is_counted);
    suite_add_tcase(s, t);

    int failed = count_failures(s, CK_ENV);
    if (!bad_bodies_are_rejected()) {
        (void)fprintf(stderr, "hft_chaos_run accepts a bad body\n");
        failed++;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
