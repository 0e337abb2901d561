/* W2 and W3: where a watch that was cut goes on. A watch that is far behind gets its events in
 * batches whose header, like every answer to a probe, is ahead of them; whoever resumes after
 * that instead of after the last event loses the rest. */
#include <check.h>
#include <stdlib.h>

#include "support/etcd.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

enum { BEHIND = 5000 };

static struct hft_etcd etcd;
static struct hft_proxy *proxy;
static struct hft_client client;
static struct hft_follower follower;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}

static void follow(hf_ms probe_every)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = &range,
                                                        .range_count = 1,
                                                        .probe_every = probe_every });
    hft_follower_until_synced(&follower, 1, 10000);
}

/* Cut off, while 5,000 changes are made. */
static void fall_behind(void)
{
    struct hft_writer writer;

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 400,
                                                  .delete_percent = 20,
                                                  .value_bytes = 100,
                                                  .in_flight = 16,
                                                  .limit = BEHIND });
    hft_writer_until(&writer, BEHIND, 200000);
    hft_writer_stop(&writer);
}

static bool was_cut(void *arg)
{
    (void)arg;
    return hft_proxy_stats(proxy).open == 0;
}

/* Lets the mirror catch up over connections which are cut after so many bytes each. */
static void catch_up_in_pieces(unsigned pieces, uint64_t bytes)
{
    for (unsigned i = 0; i < pieces; i++) {
        unsigned events = follower.events;

        hft_proxy_cut_after(proxy, HFT_PROXY_DOWN, bytes);
        hft_proxy_door(proxy, HFT_PROXY_OPEN);
        hft_client_until(&client, &follower.events, events + 1, 20000, "more events");
        hft_loop_until(&client.loop, was_cut, NULL, 20000, "the next cut");
    }
}

START_TEST(w2_cut_several_times_5000_revisions_behind_loses_and_doubles_nothing)
{
    follow(0);
    fall_behind();
    catch_up_in_pieces(3, 180000);
    ck_assert_uint_lt(follower.events, BEHIND - 1000);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synthesised, 0);
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_ge(hf_mirror_get_stats(follower.mirror).opens, 5);
}
END_TEST

START_TEST(w2_cut_at_random_while_it_is_written_loses_and_doubles_nothing)
{
    struct hft_writer writer;

    follow(0);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 100,
                                                  .delete_percent = 30,
                                                  .in_flight = 4 });
    for (unsigned i = 0; i < 30; i++) {
        hft_proxy_cut_after(proxy, HFT_PROXY_DOWN, 50 + i * 401 % 2000);
        hft_writer_until(&writer, 50, 20000);
    }
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synthesised, 0);
    ck_assert_uint_ge(hf_mirror_get_stats(follower.mirror).opens, 3);
    ck_assert_uint_ge(hft_proxy_stats(proxy).accepted, 5);
}
END_TEST

/* etcd looks after those who are behind every 100 ms; in between there is silence, which is
 * probed, and the answers are of a revision that the events have not reached. */
START_TEST(w3_progress_answered_ahead_of_the_events_does_not_move_the_place_to_resume)
{
    follow(10);
    fall_behind();
    catch_up_in_pieces(3, 180000);
    ck_assert_uint_lt(follower.events, BEHIND - 1000);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synthesised, 0);
    ck_assert_uint_eq(follower.synced, 1);
}
END_TEST

static hf_ms heard_since;

static bool was_heard(void *arg)
{
    (void)arg;
    return hf_mirror_get_stats(follower.mirror).heard_at > heard_since;
}

START_TEST(w3_an_idle_watch_is_probed_and_stays)
{
    follow(50);
    for (int i = 0; i < 10; i++) {
        heard_since = hf_mirror_get_stats(follower.mirror).heard_at;
        hft_loop_until(&client.loop, was_heard, NULL, 5000, "a sign of life");
        hft_etcdctl_ok(&etcd, NULL, "put", i % 2 == 0 ? "x/elsewhere" : "w/here", "", NULL);
    }
    hft_follower_settle(&follower, &etcd, 5000);
    ck_assert_uint_eq(follower.events, 6);
    hft_follower_assert_undisturbed(&follower);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w2, w3");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, w2_cut_several_times_5000_revisions_behind_loses_and_doubles_nothing);
    tcase_add_test(t, w2_cut_at_random_while_it_is_written_loses_and_doubles_nothing);
    tcase_add_test(t,
                   w3_progress_answered_ahead_of_the_events_does_not_move_the_place_to_resume);
    tcase_add_test(t, w3_an_idle_watch_is_probed_and_stays);
    return hft_suite_run("etcd/mirror: W2, W3", t, NULL);
}
