/* W7: etcd's history goes back, or is another one; and what only looks like it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/admin.h"
#include "support/cluster.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/writer.h"

enum { RESET_MS = 10000, PATIENCE_MS = 20000 };

static struct hft_etcd etcd;
static struct hft_client client;
static struct hft_follower follower;
static struct hft_ticker ticker;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_ticker_start(&ticker);
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_ticker_stop(&ticker);
    hft_etcd_done(&etcd);
}

static void follow(const char *endpoint)
{
    hft_client_open(&client, endpoint, NULL);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
}

static void backup(char *path, size_t size)
{
    (void)snprintf(path, size, "%s/backup", etcd.dir.path);
    hft_etcd_snapshot_save(&etcd, path);
}

static void restore(const char *path)
{
    hft_etcd_kill(&etcd);
    hft_etcd_snapshot_restore(&etcd, path);
    hft_etcd_restart(&etcd);
}

/* Ten keys are in the backup; two of them are changed, one deleted and one created after it. */
static void make_two_pasts(char *path, size_t size)
{
    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    backup(path, size);
    follow(etcd.endpoint);
    hft_put(&client, "w/000003", "changed", HF_NO_LEASE);
    hft_put(&client, "w/000004", "changed", HF_NO_LEASE);
    hft_delete(&client, "w/000005");
    hft_put(&client, "w/created", "", HF_NO_LEASE);
    hft_client_until(&client, &follower.events, 14, 5000, "all events");
}

static void expect_reset(hf_ms since)
{
    hft_client_until(&client, &follower.resets, 1, PATIENCE_MS, "the reset");
    ck_assert_int_le(follower.reset_at - since, RESET_MS + hft_ticker_stall(&ticker));
    hft_follower_until_synced(&follower, 2, 10000);
    hft_follower_settle(&follower, &etcd, 10000);
    ck_assert_uint_eq(follower.resets, 1);
}

START_TEST(w7_snapshot_restored_to_an_older_revision_resets_within_10s)
{
    char path[HFT_PATH_MAX + 16];

    make_two_pasts(path, sizeof path);
    restore(path);
    expect_reset(hft_now());
}
END_TEST

START_TEST(w7_restored_and_written_past_the_old_revision_is_noticed_by_the_witness)
{
    char path[HFT_PATH_MAX + 16];
    struct hft_proxy *proxy = hft_proxy_new(etcd.client.number);
    hf_rev seen;

    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    backup(path, sizeof path);
    follow(hft_proxy_endpoint(proxy));
    seen = _i == 0 ? hft_put(&client, "w/created", "", HF_NO_LEASE)
                   : hft_delete(&client, "w/000005"); /* an absence is a witness, too */
    hft_client_until(&client, &follower.events, 11, 5000, "all events");

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    restore(path);
    ck_assert_int_gt(hft_etcd_put_many(&etcd, "x/", 20, 8), seen);
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    expect_reset(hft_now());
    hft_proxy_free(proxy);
}
END_TEST

/* The witness's revision was compacted away on the way, so that only the present can tell. */
START_TEST(w7_restored_written_past_and_compacted_is_noticed_by_the_witness)
{
    char path[HFT_PATH_MAX + 16];
    struct hft_proxy *proxy = hft_proxy_new(etcd.client.number);
    hf_rev seen;

    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    backup(path, sizeof path);
    follow(hft_proxy_endpoint(proxy));
    seen = hft_put(&client, "w/000003", "changed", HF_NO_LEASE);
    hft_client_until(&client, &follower.events, 11, 5000, "all events");

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    restore(path);
    hft_etcd_compact(&etcd, hft_etcd_put_many(&etcd, "x/", 20, 8));
    ck_assert_int_gt(hft_etcd_revision(&etcd), seen);
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    expect_reset(hft_now());
    hft_proxy_free(proxy);
}
END_TEST

static void follow_from(const char *prefix, struct hf_recall *past)
{
    struct hf_key_range range = { .key = hf_bytes_of(prefix), .prefix = true };

    hft_follower_start_with(
        &client, &follower,
        &(struct hf_mirror_config){ .ranges = &range, .range_count = 1, .past = past });
    hft_follower_until_synced(&follower, 1, PATIENCE_MS);
}

/* Who follows other ranges from now on begins with what was seen before: of an etcd that was
 * restored meanwhile, and perhaps written past what was seen, nothing is told before that. Nor
 * where the last that was seen comes again, to the byte and at the same revision. */
START_TEST(w7_restored_between_two_mirrors_resets_the_second)
{
    bool restored = _i > 0, written_past = _i == 2, repeated = _i == 3;
    char path[HFT_PATH_MAX + 16];
    struct hf_recall past = { 0 };
    hf_rev seen;

    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    (void)hft_etcd_put_many(&etcd, "x/", 5, 8);
    backup(path, sizeof path);
    hft_client_open(&client, etcd.endpoint, NULL);
    follow_from("w/", &past);
    hft_put(&client, "w/000003", "changed", HF_NO_LEASE);
    seen = hft_put(&client, "w/created", "", HF_NO_LEASE);
    hft_client_until(&client, &follower.events, 12, 5000, "all events");
    hft_follower_stop(&follower);
    ck_assert_int_eq(past.revision, seen);

    if (restored)
        restore(path);
    if (written_past)
        ck_assert_int_gt(hft_etcd_put_many(&etcd, "y/", 20, 8), seen);
    if (repeated) {
        (void)hft_etcd_put_many(&etcd, "y/", 1, 8);
        ck_assert_int_eq(hft_put(&client, "w/created", "", HF_NO_LEASE), seen);
    }
    follow_from("x/", &past);
    ck_assert_uint_eq(follower.resets, restored);
    ck_assert_uint_eq(follower.events, 5);
    hft_follower_stop(&follower);
    ck_assert_int_eq(past.revision, hft_etcd_revision(&etcd));
    hf_recall_done(&past);
}
END_TEST

START_TEST(w7_another_cluster_on_the_same_endpoint_resets)
{
    static const char *const flags[] = { "--initial-cluster-token=another", NULL };

    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    follow(etcd.endpoint);
    hft_etcd_kill(&etcd);
    hft_remove_tree(etcd.data_dir);
    etcd.options.extra_flags = flags;
    hft_etcd_restart(&etcd);
    (void)hft_etcd_put_many(&etcd, "w/", 100, 8); /* it must not be its revision that tells */
    expect_reset(hft_now());
}
END_TEST

START_TEST(w7_a_reset_is_over_when_the_restored_etcd_is_restored_again)
{
    char path[HFT_PATH_MAX + 16];

    make_two_pasts(path, sizeof path);
    for (unsigned round = 1; round <= 2; round++) {
        restore(path);
        hft_client_until(&client, &follower.resets, round, PATIENCE_MS, "the reset");
        hft_follower_until_synced(&follower, 1 + round, 10000);
        hft_follower_settle(&follower, &etcd, 10000);
    }
    ck_assert_uint_eq(follower.resets, 2);
}
END_TEST

START_TEST(w7_restarts_and_compactions_are_not_mistaken_for_another_history)
{
    (void)hft_etcd_put_many(&etcd, "w/", 10, 8);
    follow(etcd.endpoint);
    for (int round = 0; round < 3; round++) {
        char key[16];

        (void)snprintf(key, sizeof key, "w/%06d", round);
        hft_etcdctl_ok(&etcd, NULL, "del", key, NULL);
        hft_etcdctl_ok(&etcd, NULL, "put", "x", "", NULL);
        hft_etcd_compact(&etcd, hft_etcd_revision(&etcd));
        hft_etcd_kill(&etcd);
        hft_etcd_restart(&etcd);
        hft_follower_settle(&follower, &etcd, 20000);
    }
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

/* The answer to a question about the history is older than what the watch has told since it
 * was asked; on a busy etcd that is so every time. */
START_TEST(w7_a_busy_etcd_is_not_mistaken_for_another_history)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };
    struct hft_writer writer;

    hft_client_open_with(
        &client, &(struct hf_etcd_config){ .endpoints = &(const char *){ etcd.endpoint },
                                           .endpoint_count = 1,
                                           .separate_channels = true });
    hft_follower_start_with(
        &client, &follower,
        &(struct hf_mirror_config){ .ranges = &range, .range_count = 1, .history_every = 2 });
    hft_follower_until_synced(&follower, 1, 10000);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 500,
                                                  .delete_percent = 30,
                                                  .in_flight = 16,
                                                  .limit = 10000 });
    hft_writer_until(&writer, 10000, 60000);
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 10000);
    ck_assert_uint_eq(follower.resets, 0);
    ck_assert_uint_gt(hf_etcd_get_stats(client.etcd).calls, 100);
}
END_TEST

START_TEST(w7_a_paused_and_lagging_member_is_not_mistaken_for_another_history)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };
    struct hft_cluster cluster;
    struct hft_writer writer;
    struct hft_etcd *slow;

    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    slow = hft_cluster_follower(&cluster);
    hft_client_open(&client, slow->endpoint, NULL);
    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = &range,
                                                        .range_count = 1,
                                                        .probe_every = 300,
                                                        .probe_timeout = 300,
                                                        .history_every = 50 });
    hft_follower_until_synced(&follower, 1, 10000);
    hft_writer_start(
        &client, &writer,
        &(struct hft_writer_config){ .endpoint = { hft_cluster_leader(&cluster)->endpoint },
                                     .prefix = "w/",
                                     .keys = 100,
                                     .delete_percent = 20,
                                     .in_flight = 4,
                                     .pause = 2 });
    for (int round = 0; round < 3; round++) {
        unsigned troubles = follower.troubles;

        hft_etcd_pause(slow);
        hft_client_until(&client, &follower.troubles, troubles + 1, 10000,
                         "the watch to be given up");
        hft_writer_until(&writer, 200, 20000);
        hft_etcd_resume(slow);
        hft_client_until(&client, &follower.events, follower.events + 200, 30000,
                         "the mirror to go on");
    }
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, slow, 20000);
    ck_assert_uint_eq(follower.resets, 0);
    ck_assert_uint_eq(follower.synced, 1);
    hft_cluster_done(&cluster);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w7");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, w7_snapshot_restored_to_an_older_revision_resets_within_10s);
    tcase_add_loop_test(
        t, w7_restored_and_written_past_the_old_revision_is_noticed_by_the_witness, 0, 2);
    tcase_add_test(t, w7_restored_written_past_and_compacted_is_noticed_by_the_witness);
    tcase_add_loop_test(t, w7_restored_between_two_mirrors_resets_the_second, 0, 4);
    tcase_add_test(t, w7_another_cluster_on_the_same_endpoint_resets);
    tcase_add_test(t, w7_a_reset_is_over_when_the_restored_etcd_is_restored_again);
    tcase_add_test(t, w7_restarts_and_compactions_are_not_mistaken_for_another_history);
    tcase_add_test(t, w7_a_busy_etcd_is_not_mistaken_for_another_history);
    tcase_add_test(t, w7_a_paused_and_lagging_member_is_not_mistaken_for_another_history);
    return hft_suite_run("etcd/mirror: W7", t, NULL);
}
