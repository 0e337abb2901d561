/* The life of a mirror: beginning before etcd does, outliving it, and ending at any moment. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/admin.h"
#include "support/etcd.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

static struct hft_etcd etcd;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, etcd.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&etcd);
}

START_TEST(a_mirror_begun_while_etcd_is_down_is_synced_once_it_is_up)
{
    struct hft_follower follower = { 0 };

    hft_etcdctl_ok(&etcd, NULL, "put", "w/a", "1", NULL);
    hft_etcd_stop(&etcd);
    hft_follower_start(&client, &follower, "w/");
    hft_client_until(&client, &follower.troubles, 3, 30000, "trouble to be told");
    ck_assert_uint_eq(follower.synced, 0);
    hft_etcd_restart(&etcd);
    hft_follower_until_synced(&follower, 1, 15000);
    hft_follower_settle(&follower, &etcd, 5000);
    hft_follower_stop(&follower);
}
END_TEST

START_TEST(a_killed_etcd_that_comes_back_is_followed_without_losing_an_event)
{
    struct hft_follower follower = { 0 };
    struct hft_writer writer;

    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 5000);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 100,
                                                  .delete_percent = 20,
                                                  .in_flight = 4 });
    for (int i = 0; i < 3; i++) {
        hft_writer_until(&writer, 300, 30000);
        hft_etcd_kill(&etcd);
        hft_etcd_restart(&etcd);
    }
    hft_writer_until(&writer, 300, 30000);
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 15000);
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_eq(follower.synthesised, 0);
    ck_assert_uint_ge(hf_mirror_get_stats(follower.mirror).opens, 4);
    hft_follower_stop(&follower);
}
END_TEST

START_TEST(two_mirrors_of_one_client_do_not_disturb_each_other)
{
    struct hft_follower first = { 0 }, second = { 0 };

    hft_follower_start(&client, &first, "w/");
    hft_follower_start(&client, &second, "w/a");
    hft_follower_until_synced(&first, 1, 5000);
    hft_follower_until_synced(&second, 1, 5000);
    hft_put(&client, "w/a1", "", HF_NO_LEASE);
    hft_put(&client, "w/b1", "", HF_NO_LEASE);
    hft_client_until(&client, &first.puts, 2, 5000, "both keys");
    hft_client_until(&client, &second.puts, 1, 5000, "one key");
    hft_follower_stop(&first);
    hft_put(&client, "w/a2", "", HF_NO_LEASE);
    hft_client_until(&client, &second.puts, 2, 5000, "the other key");
    hft_follower_settle(&second, &etcd, 5000);
    hft_follower_stop(&second);
}
END_TEST

/* Messages that come alone and those that come in bursts are asked for by different threads. */
START_TEST(no_event_is_lost_where_single_ones_and_bursts_take_turns)
{
    struct hft_follower follower = { 0 };
    struct hft_writer writer;

    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 5000);
    for (unsigned i = 0; i < 10; i++) {
        unsigned before = follower.events;

        hft_put(&client, "w/single", "", HF_NO_LEASE);
        hft_client_until(&client, &follower.events, before + 1, 10000, "the single event");
        hft_writer_start(&client, &writer,
                         &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                      .prefix = "w/burst",
                                                      .keys = 10,
                                                      .in_flight = 32,
                                                      .seed = i });
        hft_writer_until(&writer, 100, 30000);
        hft_writer_stop(&writer);
        hft_client_until(&client, &follower.events, before + 1 + writer.done, 10000,
                         "the burst");
    }
    hft_follower_settle(&follower, &etcd, 5000);
    ck_assert_uint_eq(follower.synthesised, 0);
    hft_follower_assert_undisturbed(&follower);
    hft_follower_stop(&follower);
}
END_TEST

/* Ends the mirror from inside a callback of the given kind, after `skip` of them. */
static struct hft_closer {
    struct hf_mirror *mirror;
    int kind; /* enum hf_mirror_kind, or TROUBLE */
    unsigned skip;
    unsigned synced;
    bool closed;
} closer;

enum { TROUBLE = 100 };

static void close_maybe(int kind)
{
    ck_assert_msg(!closer.closed, "told after the end");
    if (kind != closer.kind || closer.skip-- > 0)
        return;
    closer.closed = true;
    hf_mirror_close(closer.mirror);
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    (void)arg;
    closer.synced += event->kind == HF_MIRROR_SYNCED;
    close_maybe((int)event->kind);
}

static void on_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    (void)err;
    (void)message;
    (void)retry_in;
    (void)arg;
    close_maybe(TROUBLE);
}

static bool is_closed(void *arg)
{
    (void)arg;
    return closer.closed;
}

static void start_closer(int kind, unsigned skip)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    closer = (struct hft_closer){ .kind = kind, .skip = skip };
    ck_assert_int_eq(hf_mirror_new(client.etcd,
                                   &(struct hf_mirror_config){ .ranges = &range,
                                                               .range_count = 1,
                                                               .on_event = on_event,
                                                               .on_trouble = on_trouble },
                                   &closer.mirror, NULL),
                     HF_OK);
}

static void until_synced(void)
{
    hft_client_until(&client, &closer.synced, 1, 5000, "the mirror to be synced");
}

static void until_closed(void)
{
    hft_loop_until(&client.loop, is_closed, NULL, 30000, "the mirror to be closed");
}

/* That nothing is told afterwards is seen by close_maybe while other things go on. */
static void expect_silence(void)
{
    hft_write_many(&client, "w/", 200, 8);
    hft_delete(&client, "w/00000");
}

START_TEST(closed_while_the_list_is_told)
{
    hft_write_many(&client, "w/", 12000, 8);
    start_closer(HF_MIRROR_PUT, (unsigned[]){ 0, 5000, 9999, 10000, 11999 }[_i]);
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_at_synced)
{
    hft_write_many(&client, "w/", 10, 8);
    start_closer(HF_MIRROR_SYNCED, 0);
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_while_events_of_one_revision_are_told)
{
    start_closer(HF_MIRROR_PUT, (unsigned[]){ 0, 1, 63 }[_i]);
    until_synced();
    hft_write_many(&client, "w/", 64, 8);
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_at_a_deletion)
{
    hft_write_many(&client, "w/", 64, 8);
    start_closer(HF_MIRROR_DELETE, (unsigned)_i);
    until_synced();
    hft_etcdctl_ok(&etcd, NULL, "del", "--prefix", "w/", NULL);
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_while_a_list_finds_deletions)
{
    hft_write_many(&client, "w/", 64, 8);
    start_closer(HF_MIRROR_DELETE, (unsigned)_i);
    until_synced();
    hft_etcd_stop(&etcd);
    hft_etcd_restart(&etcd);
    hft_etcdctl_ok(&etcd, NULL, "del", "--prefix", "w/", NULL);
    hft_etcdctl_ok(&etcd, NULL, "put", "x", "", NULL);
    hft_etcd_compact(&etcd, hft_etcd_revision(&etcd));
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_at_a_reset)
{
    char path[HFT_PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s/backup", etcd.dir.path);
    hft_write_many(&client, "w/", 10, 8);
    hft_etcd_snapshot_save(&etcd, path);
    hft_write_many(&client, "w/", 640, 8);
    start_closer(HF_MIRROR_RESET, 0);
    until_synced();
    hft_put(&client, "w/later", "", HF_NO_LEASE);
    hft_etcd_kill(&etcd);
    hft_etcd_snapshot_restore(&etcd, path);
    hft_etcd_restart(&etcd);
    until_closed();
    expect_silence();
}
END_TEST

START_TEST(closed_at_trouble_while_etcd_is_down)
{
    hft_etcd_stop(&etcd);
    start_closer(TROUBLE, (unsigned)_i);
    until_closed();
}
END_TEST

START_TEST(closed_at_trouble_after_etcd_went_away)
{
    struct hft_follower other = { 0 };

    start_closer(TROUBLE, (unsigned)_i);
    hft_follower_start(&client, &other, "x/");
    hft_follower_until_synced(&other, 1, 5000);
    hft_etcd_stop(&etcd);
    until_closed();
    hft_client_until(&client, &other.troubles, 5, 30000, "the other mirror to go on trying");
    hft_follower_stop(&other);
}
END_TEST

/* From outside, in every phase: just begun, listing, synced, waiting for etcd. */
START_TEST(closed_at_any_moment)
{
    hft_write_many(&client, "w/", 500, 8);
    for (int turns = 0; turns < 60; turns++) {
        start_closer(TROUBLE, UINT32_MAX);
        if (turns == 40)
            hft_etcd_stop(&etcd);
        for (int i = 0; i < turns; i++)
            (void)uv_run(&client.loop.uv, UV_RUN_NOWAIT);
        hf_mirror_close(closer.mirror);
        closer.closed = true;
    }
}
END_TEST

static struct hft_follower *asker;

/* Whatever is told, the list is wanted again. */
static void ask_again(const struct hf_mirror_event *event, void *arg)
{
    (void)event;
    (void)arg;
    hf_mirror_resync(asker->mirror);
}

START_TEST(a_list_may_be_asked_for_in_every_callback)
{
    struct hft_follower follower = { .on = ask_again };
    char path[HFT_PATH_MAX + 16];

    asker = &follower;
    (void)snprintf(path, sizeof path, "%s/backup", etcd.dir.path);
    hft_write_many(&client, "w/", 100, 8);
    hft_etcd_snapshot_save(&etcd, path);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 5000);
    hft_delete(&client, "w/00007");
    hft_put(&client, "w/later", "", HF_NO_LEASE);
    hft_client_until(&client, &follower.deletes, 1, 5000, "the deletion");
    hft_etcd_kill(&etcd);
    hft_etcd_snapshot_restore(&etcd, path);
    hft_etcd_restart(&etcd);
    hft_client_until(&client, &follower.resets, 1, 20000, "the reset");
    hft_follower_until_synced(&follower, 2, 10000);
    hft_follower_settle(&follower, &etcd, 10000);
    hft_follower_stop(&follower);
}
END_TEST

START_TEST(a_list_that_fails_is_made_up_for)
{
    struct hft_follower follower = { 0 };
    struct hft_proxy *proxy = hft_proxy_new(etcd.client.number);
    struct hft_client spoiled;
    uint64_t lists;

    hft_write_many(&client, "w/", 20000, 100);
    hft_client_open(&spoiled, hft_proxy_endpoint(proxy), NULL);
    hft_follower_start(&spoiled, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 30000);
    lists = hf_mirror_get_stats(follower.mirror).lists;
    hf_mirror_resync(follower.mirror);
    hft_proxy_cut_after(proxy, HFT_PROXY_DOWN, 1500000); /* in the middle of the list */
    while (hf_mirror_get_stats(follower.mirror).lists == lists)
        (void)uv_run(&spoiled.loop.uv, UV_RUN_ONCE);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_gt(hft_proxy_stats(proxy).accepted, 2);
    hft_follower_stop(&follower);
    hft_client_close(&spoiled);
    hft_proxy_free(proxy);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("life");
    TCase *end = tcase_create("end");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_mirror_begun_while_etcd_is_down_is_synced_once_it_is_up);
    tcase_add_test(t, a_killed_etcd_that_comes_back_is_followed_without_losing_an_event);
    tcase_add_test(t, two_mirrors_of_one_client_do_not_disturb_each_other);
    tcase_add_test(t, no_event_is_lost_where_single_ones_and_bursts_take_turns);
    tcase_add_test(t, a_list_may_be_asked_for_in_every_callback);
    tcase_add_test(t, a_list_that_fails_is_made_up_for);
    tcase_add_checked_fixture(end, setup, teardown);
    tcase_set_timeout(end, 60);
    tcase_add_loop_test(end, closed_while_the_list_is_told, 0, 5);
    tcase_add_test(end, closed_at_synced);
    tcase_add_loop_test(end, closed_while_events_of_one_revision_are_told, 0, 3);
    tcase_add_loop_test(end, closed_at_a_deletion, 0, 2);
    tcase_add_loop_test(end, closed_while_a_list_finds_deletions, 0, 2);
    tcase_add_test(end, closed_at_a_reset);
    tcase_add_loop_test(end, closed_at_trouble_while_etcd_is_down, 0, 3);
    tcase_add_loop_test(end, closed_at_trouble_after_etcd_went_away, 0, 2);
    tcase_add_test(end, closed_at_any_moment);
    return hft_suite_run("etcd/mirror: life", t, end, NULL);
}
