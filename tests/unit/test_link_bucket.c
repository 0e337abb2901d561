/* How often somebody may ask. */
#include <check.h>

#include "agentd/link/bucket.h"
#include "unit/suite.h"

static int take_all(struct link_bucket *bucket, hf_ms now)
{
    int count = 0;

    while (link_bucket_take(bucket, 10, 1, now))
        count++;
    return count;
}

START_TEST(two_seconds_are_worth_of_at_once)
{
    struct link_bucket bucket = { 0 };

    ck_assert_int_eq(take_all(&bucket, 5000), 20);
    ck_assert_int_eq(take_all(&bucket, 5000), 0);
}
END_TEST

START_TEST(it_fills_as_time_goes_by_and_no_further)
{
    struct link_bucket bucket = { 0 };

    (void)take_all(&bucket, 5000);
    ck_assert_int_eq(take_all(&bucket, 5099), 0);
    ck_assert_int_eq(take_all(&bucket, 5100), 1);
    ck_assert_int_eq(take_all(&bucket, 6100), 10);
    ck_assert_int_eq(take_all(&bucket, INT64_MAX / 2), 20);
}
END_TEST

START_TEST(who_asks_slowly_is_never_refused)
{
    struct link_bucket bucket = { 0 };

    for (hf_ms now = 1; now < 100000; now += 100)
        ck_assert(link_bucket_take(&bucket, 10, 1, now));
}
END_TEST

START_TEST(a_clock_that_goes_back_gives_nothing)
{
    struct link_bucket bucket = { 0 };

    (void)take_all(&bucket, 5000);
    ck_assert_int_eq(take_all(&bucket, 1000), 0);
    ck_assert_int_eq(take_all(&bucket, 5000), 0);
    ck_assert_int_eq(take_all(&bucket, 6000), 10);
}
END_TEST

START_TEST(what_is_worth_more_takes_more)
{
    struct link_bucket bucket = { 0 };

    ck_assert(link_bucket_take(&bucket, 10, 15, 5000));
    ck_assert(!link_bucket_take(&bucket, 10, 6, 5000));
    ck_assert_int_eq(take_all(&bucket, 5000), 5);
}
END_TEST

/* Or it could never be had. */
START_TEST(what_is_worth_more_than_all_takes_all)
{
    struct link_bucket bucket = { 0 };

    ck_assert(link_bucket_take(&bucket, 10, INT64_MAX, 5000));
    ck_assert(!link_bucket_take(&bucket, 10, INT64_MAX, 6999));
    ck_assert(link_bucket_take(&bucket, 10, INT64_MAX, 7000));
    ck_assert_int_eq(take_all(&bucket, 7000), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("bucket");

    tcase_add_test(t, two_seconds_are_worth_of_at_once);
    tcase_add_test(t, it_fills_as_time_goes_by_and_no_further);
    tcase_add_test(t, who_asks_slowly_is_never_refused);
    tcase_add_test(t, a_clock_that_goes_back_gives_nothing);
    tcase_add_test(t, what_is_worth_more_takes_more);
    tcase_add_test(t, what_is_worth_more_than_all_takes_all);
    return run("agentd/bucket", t);
}
