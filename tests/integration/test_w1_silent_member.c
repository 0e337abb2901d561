/* W1: the member that serves the watch goes silent. Its connection stays, and nothing comes. */
#include <check.h>
#include <stdlib.h>

#include "support/cluster.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/writer.h"

/* A probe after 5 s of silence, 3 s for its answer (the default), half a second to be
 * elsewhere.
 */
enum { PROBE_MS = 3000, MOVED_MS = 8500 };

static struct hft_client client;
static struct hft_follower follower;
static struct hft_writer writer;
static struct hft_ticker ticker;

static void open_client(const char *first, const char *second, const char *third, bool separate)
{
    const char *endpoints[] = { first, second, third };

    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = endpoints,
                                                            .endpoint_count = third ? 3 : 2,
                                                            .keep_order = true,
                                                            .separate_channels = separate });
}

/* Follows "w/" through the first endpoint while the others are written through. */
static void follow_and_write(const char *first, const char *second, const char *third,
                             bool separate, struct hf_mirror_config cfg)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    hft_ticker_start(&ticker);
    open_client(first, second, third, separate);
    cfg.ranges = &range;
    cfg.range_count = 1;
    cfg.probe_timeout = PROBE_MS;
    hft_follower_start_with(&client, &follower, &cfg);
    hft_follower_until_synced(&follower, 1, 10000);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { second, third },
                                                  .prefix = "w/",
                                                  .keys = 50,
                                                  .delete_percent = 20,
                                                  .pause = 5 });
    hft_writer_until(&writer, 50, 10000);
    hft_client_until(&client, &follower.events, 20, 5000, "the first events");
    hft_ticker_mark(&ticker);
    hft_follower_mark(&follower);
}

static void end(const struct hft_etcd *truth)
{
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, truth, 10000);
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_ticker_stop(&ticker);
}

/* Until more has been told than can have been on its way when the fault began. */
static void expect_move(void)
{
    uint64_t opens = hf_mirror_get_stats(follower.mirror).opens;
    unsigned events;

    while (hf_mirror_get_stats(follower.mirror).opens == opens) {
        events = follower.events;
        hft_client_until(&client, &follower.events, events + 1, 30000, "the watch to move");
    }
    /* A step of the watchdog that ends late is made again: with its lateness up to three times
     * what the ticker saw. */
    ck_assert_int_le(follower.silence, MOVED_MS + 3 * hft_ticker_stall(&ticker));
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_eq(follower.resets, 0);
}

START_TEST(w1_member_sigstopped_watch_moves_within_8500ms_without_losing_an_event)
{
    bool leads = _i == 0, separate = _i == 1;
    struct hft_cluster cluster;
    struct hft_etcd *first, *others[2];
    size_t count = 0;

    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    first = leads ? hft_cluster_leader(&cluster) : hft_cluster_follower(&cluster);
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        if (&cluster.member[i] != first)
            others[count++] = &cluster.member[i];
    }
    follow_and_write(first->endpoint, others[0]->endpoint, others[1]->endpoint, separate,
                     (struct hf_mirror_config){ 0 });

    hft_etcd_pause(first);
    expect_move();
    hft_writer_until(&writer, 100, 20000);
    end(others[0]);
    hft_cluster_done(&cluster);
}
END_TEST

/* While the history is being asked for, or a list is being made, on that connection. */
START_TEST(w1_half_open_connection_watch_moves_within_8500ms_without_losing_an_event)
{
    static const struct hf_mirror_config BUSY[] = { { .history_every = 1 },
                                                    { .resync_every = 1 } };
    struct hft_etcd etcd;
    struct hft_proxy *proxy;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    follow_and_write(hft_proxy_endpoint(proxy), etcd.endpoint, NULL, false, BUSY[_i]);

    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    expect_move();
    end(&etcd);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}
END_TEST

/* Answers are lost, requests are not: the probe arrives and does not help. */
START_TEST(w1_one_way_connection_watch_moves_within_8500ms_without_losing_an_event)
{
    struct hft_etcd etcd;
    struct hft_proxy *proxy;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    follow_and_write(hft_proxy_endpoint(proxy), etcd.endpoint, NULL, true,
                     (struct hf_mirror_config){ 0 });

    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    expect_move();
    end(&etcd);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}
END_TEST

/* Thanks to `hasleader` a member without a majority ends the stream; without it, it is silent
 * for ever and answers every probe. */
START_TEST(w1_member_without_a_leader_ends_the_watch_which_resumes_when_it_is_healed)
{
    struct hft_cluster cluster;
    const struct hft_etcd *first = &cluster.member[0];

    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, first->endpoint, NULL);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    hft_put(&client, "w/before", "", HF_NO_LEASE);
    hft_client_until(&client, &follower.puts, 1, 5000, "the first event");

    hft_etcd_kill(&cluster.member[1]);
    hft_etcd_kill(&cluster.member[2]);
    hft_client_until(&client, &follower.troubles, 1, 15000, "the watch to end");
    ck_assert_int_eq(follower.last_trouble, HF_EAGAIN);

    hft_etcd_run(&cluster.member[1]);
    ck_assert(hft_etcd_wait_ready(&cluster.member[1]));
    (void)hft_read_at_last(&client, "w/before"); /* from then on they have a leader */
    hft_put(&client, "w/after", "", HF_NO_LEASE);
    hft_client_until(&client, &follower.puts, 2, 15000, "the event after the cut");
    hft_follower_settle(&follower, first, 10000);
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_eq(follower.resets, 0);
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w1");

    tcase_set_timeout(t, 90);
    tcase_add_loop_test(
        t, w1_member_sigstopped_watch_moves_within_8500ms_without_losing_an_event, 0, 2);
    tcase_add_loop_test(
        t, w1_half_open_connection_watch_moves_within_8500ms_without_losing_an_event, 0, 2);
    tcase_add_test(t, w1_one_way_connection_watch_moves_within_8500ms_without_losing_an_event);
    tcase_add_test(t,
                   w1_member_without_a_leader_ends_the_watch_which_resumes_when_it_is_healed);
    return hft_suite_run("etcd/mirror: W1", t, NULL);
}
