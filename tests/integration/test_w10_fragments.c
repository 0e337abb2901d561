/* W10: changes of many megabytes, which etcd sends in pieces. */
#include <check.h>
#include <stdlib.h>

#include "support/etcd.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

enum {
    IN_A_TXN = 64,
    TXNS = 24,
    ALL = IN_A_TXN * TXNS,
    VALUE_BYTES = 16 * 1024, /* a txn is 1 MiB, the limit of etcd 1.5 */
};

static struct hft_etcd etcd;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static struct hft_client direct;
static struct hft_follower follower;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_client_open(&direct, etcd.endpoint, NULL);
    follower = (struct hft_follower){ 0 };
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_client_close(&direct);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}

/* The events of one txn must come together: all, and nothing in between. */
static struct {
    hf_rev revision;
    unsigned count;
} txn;

static void count_in_txn(const struct hf_mirror_event *event, void *arg)
{
    (void)arg;
    if (event->synthesised || event->kind != HF_MIRROR_PUT)
        return;
    if (event->revision != txn.revision) {
        ck_assert_msg(txn.count % IN_A_TXN == 0, "only %u events of revision %lld were told",
                      txn.count, (long long)txn.revision);
        txn.revision = event->revision;
        txn.count = 0;
    }
    txn.count++;
}

static void follow(size_t pending_bytes)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    txn.count = 0;
    follower.on = count_in_txn;
    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = &range,
                                                        .range_count = 1,
                                                        .pending_bytes = pending_bytes });
    hft_follower_until_synced(&follower, 1, 10000);
}

/* Cut off while 24 MiB are written, which etcd then sends as one batch in many pieces. */
static void fall_behind(void)
{
    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    hft_write_many(&direct, "w/", ALL, VALUE_BYTES);
}

static void expect_all(void)
{
    hft_client_until(&client, &follower.puts, ALL, 60000, "all events");
    ck_assert_uint_eq(txn.count, IN_A_TXN);
    follower.on = NULL;
    hft_follower_settle(&follower, &etcd, 20000);
}

START_TEST(w10_a_batch_of_24_mib_is_put_together_complete_and_in_order)
{
    follow(0);
    fall_behind();
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    expect_all();
    ck_assert_uint_eq(follower.synthesised, 0);
}
END_TEST

/* What came of a batch before the cut is not told, and comes again. */
START_TEST(w10_a_batch_that_is_cut_midway_is_told_once_and_whole)
{
    follow(0);
    fall_behind();
    for (unsigned i = 1; i <= 3; i++) {
        uint64_t accepted = hft_proxy_stats(proxy).accepted;

        hft_proxy_cut_after(proxy, HFT_PROXY_DOWN, (uint64_t)i * 6000000);
        hft_proxy_door(proxy, HFT_PROXY_OPEN);
        while (hft_proxy_stats(proxy).accepted == accepted || hft_proxy_stats(proxy).open > 0)
            (void)uv_run(&client.loop.uv, UV_RUN_ONCE);
        ck_assert_uint_eq(follower.events, 0);
    }
    expect_all();
    ck_assert_uint_eq(follower.synthesised, 0);
}
END_TEST

START_TEST(w10_a_batch_larger_than_may_be_kept_is_listed_instead)
{
    follow(4 << 20);
    fall_behind();
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    hft_follower_until_synced(&follower, 2, 60000);
    ck_assert_int_eq(follower.last_trouble, HF_ELIMIT);
    ck_assert_uint_eq(follower.synthesised, ALL);
    follower.on = NULL;
    hft_follower_settle(&follower, &etcd, 20000);
}
END_TEST

/* 80 MB in one list, far beyond the 4 MiB that gRPC takes by itself; and the txns that follow
 * while it is there. */
START_TEST(w10_20000_keys_of_4_kb_are_listed_and_followed)
{
    hft_write_many(&direct, "w/", 20000, 4096);
    follow(0);
    ck_assert_uint_eq(follower.puts, 20000);
    hft_write_many(&direct, "w/", 20032, 4096);
    hft_client_until(&client, &follower.puts, 40032, 60000, "all events");
    follower.on = NULL;
    hft_follower_settle(&follower, &etcd, 30000);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w10");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, w10_a_batch_of_24_mib_is_put_together_complete_and_in_order);
    tcase_add_test(t, w10_a_batch_that_is_cut_midway_is_told_once_and_whole);
    tcase_add_test(t, w10_a_batch_larger_than_may_be_kept_is_listed_instead);
    tcase_add_test(t, w10_20000_keys_of_4_kb_are_listed_and_followed);
    return hft_suite_run("etcd/mirror: W10", t, NULL);
}
