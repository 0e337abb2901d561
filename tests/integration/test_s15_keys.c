/* S15: somebody writes more keys than there is memory for. Then nothing is followed, which is
 * said again and again, until there are fewer. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/etcd.h"
#include "support/follower.h"
#include "support/suite.h"
#include "support/writer.h"

enum { MOST = 200 };

static struct hft_etcd etcd;
static struct hft_client client;
static struct hft_follower follower;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, etcd.endpoint, NULL);
    follower = (struct hft_follower){ 0 };
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_etcd_done(&etcd);
}

static void follow(size_t range_count)
{
    static const struct hf_key_range RANGES[] = { { .key = { "a/", 2 }, .prefix = true },
                                                  { .key = { "b/", 2 }, .prefix = true } };

    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = RANGES,
                                                        .range_count = range_count,
                                                        .keys_max = MOST });
}

static struct hf_mirror_stats stats(void)
{
    return hf_mirror_get_stats(follower.mirror);
}

static void until_refused(void)
{
    unsigned before = follower.troubles;

    hft_client_until(&client, &follower.troubles, before + 1, 10000, "the trouble");
    ck_assert_int_eq(follower.last_trouble, HF_ELIMIT);
    ck_assert(!stats().synced);
}

static void erase(const char *prefix)
{
    hft_etcdctl_ok(&etcd, NULL, "del", "--prefix", prefix, NULL);
}

/* By the number that etcd says, before any of them was taken in. */
START_TEST(s15_what_is_too_much_is_not_taken_in)
{
    hft_write_many(&client, "a/", MOST + 1, 16);
    follow(1);
    until_refused();
    until_refused();
    ck_assert_uint_eq(follower.puts, 0);
    ck_assert_uint_eq(stats().keys, 0);
    erase("a/");
    hft_follower_until_synced(&follower, 1, 10000);
    ck_assert_uint_eq(stats().keys, 0);
}
END_TEST

START_TEST(s15_ranges_that_are_too_much_together_are_refused)
{
    hft_write_many(&client, "a/", MOST / 2 + 1, 16);
    hft_write_many(&client, "b/", MOST / 2, 16);
    follow(2);
    until_refused();
    erase("b/");
    hft_follower_until_synced(&follower, 1, 10000);
    ck_assert_uint_eq(stats().keys, MOST / 2 + 1);
}
END_TEST

START_TEST(s15_what_grows_until_it_is_too_much_is_not_followed_any_more)
{
    hft_write_many(&client, "a/", MOST, 16);
    follow(2);
    hft_follower_until_synced(&follower, 1, 10000); /* as many as may be */
    (void)hft_put(&client, "b/one", "", HF_NO_LEASE);
    until_refused();
    erase("b/");
    hft_follower_until_synced(&follower, 2, 10000);
    ck_assert_uint_eq(stats().keys, MOST);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("s15");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, s15_what_is_too_much_is_not_taken_in);
    tcase_add_test(t, s15_ranges_that_are_too_much_together_are_refused);
    tcase_add_test(t, s15_what_grows_until_it_is_too_much_is_not_followed_any_more);
    return hft_suite_run("etcd/mirror: S15", t, NULL);
}
