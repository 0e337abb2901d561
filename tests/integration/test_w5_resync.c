/* W5: events can be lost without a trace, so everything is listed again from time to time; and
 * what happens during such a list must not suffer from it. */
#include <check.h>
#include <stdlib.h>

#include "support/etcd.h"
#include "support/follower.h"
#include "support/suite.h"
#include "support/writer.h"

static struct hft_etcd etcd;
static struct hft_client client;
static struct hft_follower follower;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, etcd.endpoint, NULL);
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_etcd_done(&etcd);
}

static void follow(hf_ms resync_every)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = &range,
                                                        .range_count = 1,
                                                        .resync_every = resync_every });
    hft_follower_until_synced(&follower, 1, 30000);
}

static uint64_t lists_wanted;

static bool has_listed(void *arg)
{
    (void)arg;
    return hf_mirror_get_stats(follower.mirror).lists >= lists_wanted;
}

static void until_listed(uint64_t more, hf_ms timeout)
{
    lists_wanted = hf_mirror_get_stats(follower.mirror).lists + more;
    hft_loop_until(&client.loop, has_listed, NULL, timeout, "more lists");
}

START_TEST(w5_lists_from_time_to_time_find_nothing_on_a_healthy_etcd)
{
    hft_write_many(&client, "w/", 1000, 16);
    follow(100);
    ck_assert_uint_eq(follower.events, 1000);
    until_listed(10, 20000);
    ck_assert_uint_eq(follower.events, 1000);
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_eq(hf_mirror_get_stats(follower.mirror).missed, 0);
    hft_follower_assert_undisturbed(&follower);
    hft_follower_settle(&follower, &etcd, 10000);
}
END_TEST

/* Lists one after the other, each of two pages, while 2,000 of the keys are put and deleted. */
START_TEST(w5_events_during_lists_are_neither_lost_nor_told_twice)
{
    struct hft_writer writer;

    hft_write_many(&client, "w/", 12000, 16);
    follow(1);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 2000,
                                                  .delete_percent = 40,
                                                  .in_flight = 8,
                                                  .seed = (uint32_t)_i });
    until_listed(20, 60000);
    hft_writer_until(&writer, 1000, 60000);
    hft_writer_stop(&writer);
    ck_assert_uint_gt(follower.events, 12000 + 1000);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synced, 1);
    hft_follower_assert_undisturbed(&follower);
}
END_TEST

START_TEST(w5_a_list_can_be_asked_for_at_any_time)
{
    hft_write_many(&client, "w/", 100, 16);
    follow(0);
    hf_mirror_resync(follower.mirror);
    hf_mirror_resync(follower.mirror);
    until_listed(1, 10000);
    ck_assert_uint_eq(follower.events, 100);
    for (int i = 0; i < 5; i++) {
        hf_mirror_resync(follower.mirror);
        until_listed(1, 10000);
    }
    ck_assert_uint_eq(hf_mirror_get_stats(follower.mirror).lists, 7);
    hft_follower_assert_undisturbed(&follower);
    hft_follower_settle(&follower, &etcd, 10000);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w5");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, w5_lists_from_time_to_time_find_nothing_on_a_healthy_etcd);
    tcase_add_loop_test(t, w5_events_during_lists_are_neither_lost_nor_told_twice, 0, 2);
    tcase_add_test(t, w5_a_list_can_be_asked_for_at_any_time);
    return hft_suite_run("etcd/mirror: W5", t, NULL);
}
