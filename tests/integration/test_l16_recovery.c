/* Nothing is fatal: every kind of call fails once, then works again. L5, L6, L16. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/id.h"
#include "support/admin.h"
#include "support/cluster.h"
#include "support/holder.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static int64_t lease;            /* of those who need one */

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    lease = hft_grant(&client, 600);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

/* One of each kind. */

static int start_range(struct hft_outcome *outcome)
{
    struct hf_range_request request = { .range.key = hf_bytes_of("k") };

    return hf_etcd_range(client.etcd, &request, hft_on_range, outcome, NULL);
}

static int start_list(struct hft_outcome *outcome)
{
    struct hf_range_request request = { .range = { .key = hf_bytes_of("k"), .prefix = true },
                                        .timeout = 4000 };

    return hf_etcd_list(client.etcd, &request, hft_on_range, outcome, NULL);
}

static int start_put(struct hft_outcome *outcome)
{
    return hf_etcd_put(client.etcd, hf_bytes_of("k"), hf_bytes_of("v"), HF_NO_LEASE,
                       hft_on_write, outcome, NULL);
}

static int start_delete(struct hft_outcome *outcome)
{
    return hf_etcd_delete(client.etcd, (struct hf_key_range){ .key = hf_bytes_of("gone") },
                          hft_on_write, outcome, NULL);
}

static int start_txn(struct hft_outcome *outcome)
{
    struct hf_txn *txn = hf_txn_new();
    int err;

    hf_txn_if_create(txn, hf_bytes_of("k2"), HF_TXN_EQUAL, 0);
    hf_txn_then_put(txn, hf_bytes_of("k2"), hf_bytes_of("v"), HF_NO_LEASE);
    err = hf_txn_commit(client.etcd, txn, &(struct hf_txn_options){ .resend = true },
                        hft_on_txn, outcome, NULL);
    hf_txn_free(txn);
    return err;
}

static int start_grant(struct hft_outcome *outcome)
{
    int64_t id;

    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    return hf_etcd_lease_grant(client.etcd, id, 600, 0, hft_on_grant, outcome, NULL);
}

static int start_ttl(struct hft_outcome *outcome)
{
    return hf_etcd_lease_ttl(client.etcd, lease, true, hft_on_ttl, outcome, NULL);
}

/* Of a lease that is not there: that it is not is an answer, too. */
static int start_revoke(struct hft_outcome *outcome)
{
    return hf_etcd_lease_revoke(client.etcd, lease + 1, hft_on_write, outcome, NULL);
}

static int start_status(struct hft_outcome *outcome)
{
    return hf_etcd_status(client.etcd, hft_on_status, outcome, NULL);
}

static const struct {
    const char *name;
    int (*start)(struct hft_outcome *outcome);
} CALLS[] = {
    { "range", start_range },   { "list", start_list },     { "put", start_put },
    { "delete", start_delete }, { "txn", start_txn },       { "grant", start_grant },
    { "ttl", start_ttl },       { "revoke", start_revoke }, { "status", start_status },
};

#define CALL_COUNT (sizeof CALLS / sizeof CALLS[0])

static bool was_answered(const struct hft_outcome *outcome)
{
    return outcome->err == HF_OK || outcome->err == HF_ENOENT;
}

/* Faults. The call is under way, or starts, while they last. */

static void refuse(size_t call, struct hft_outcome *outcome)
{
    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    ck_assert_int_eq(CALLS[call].start(outcome), HF_OK);
    hft_await(&client, outcome, 30000);
    ck_assert_msg(outcome->err == HF_EAGAIN, "%s: %s: %s", CALLS[call].name,
                  hf_err_name(outcome->err), outcome->message);
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
}

/* Its bytes are on their way when the connection breaks: it may be sent again, or not. */
static void cut_on_the_way(size_t call, struct hft_outcome *outcome)
{
    hft_proxy_cut_after(proxy, HFT_PROXY_UP, 1);
    ck_assert_int_eq(CALLS[call].start(outcome), HF_OK);
    hft_await(&client, outcome, 30000);
    ck_assert_msg(was_answered(outcome) || outcome->err == HF_EAGAIN, "%s: %s: %s",
                  CALLS[call].name, hf_err_name(outcome->err), outcome->message);
}

static void kill_etcd(size_t call, struct hft_outcome *outcome)
{
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_HOLD);
    ck_assert_int_eq(CALLS[call].start(outcome), HF_OK);
    hft_etcd_kill(&server);
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_PASS);
    hft_etcd_restart(&server);
    hft_await(&client, outcome, 30000);
    ck_assert_msg(was_answered(outcome) || outcome->err == HF_EAGAIN ||
                      outcome->err == HF_ETIMEOUT,
                  "%s: %s: %s", CALLS[call].name, hf_err_name(outcome->err), outcome->message);
}

static void (*const FAULTS[])(size_t call, struct hft_outcome *outcome) = {
    refuse,
    cut_on_the_way,
    kill_etcd,
};

/* Runs a call that need not be answered at once: what broke last may only be noticed by it. */
static void expect_recovery(size_t call)
{
    struct hft_outcome outcome;

    for (int i = 0; i < 3; i++) {
        outcome = (struct hft_outcome){ 0 };
        ck_assert_int_eq(CALLS[call].start(&outcome), HF_OK);
        hft_await(&client, &outcome, 30000);
        if (was_answered(&outcome))
            return;
    }
    ck_abort_msg("%s: %s: %s", CALLS[call].name, hf_err_name(outcome.err), outcome.message);
}

START_TEST(l16_every_call_fails_once_and_recovers)
{
    struct hft_renewals renewals;
    struct hft_watcher watcher;
    unsigned puts;

    hft_watcher_start(&client, &watcher, "event");
    hft_renewals_start(&client, &renewals, lease);
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).err, HF_OK);
    for (size_t call = 0; call < CALL_COUNT; call++) {
        struct hft_outcome outcome = { 0 };

        FAULTS[_i](call, &outcome);
        expect_recovery(call);
    }
    /* What was open all the time went through every fault. */
    (void)hft_renew(&client, &renewals, 30000); /* its stream broke: this one may tell */
    ck_assert_int_gt(hft_renew(&client, &renewals, 30000).ttl_s, 0);
    puts = watcher.puts;
    hft_put(&client, "event", "", HF_NO_LEASE);
    hft_client_until(&client, &watcher.puts, puts + 1, 30000, "the event");
    ck_assert_uint_eq(watcher.resets, 0);
    hft_renewals_stop(&renewals);
    hft_watcher_stop(&watcher);
}
END_TEST

START_TEST(l16_a_second_renewal_waits_for_the_first)
{
    struct hft_renewals renewals;

    hft_renewals_start(&client, &renewals, lease);
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_HOLD);
    ck_assert_int_eq(hf_renewer_send(renewals.renewer, 300), HF_OK);
    ck_assert_int_eq(hf_renewer_send(renewals.renewer, 300), HF_EAGAIN);
    hft_client_until(&client, &renewals.count, 1, 10000, "the attempt to end");
    ck_assert_int_eq(renewals.last.err, HF_ETIMEOUT);
    hft_proxy_heal(proxy);
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).ttl_s, 600);
    ck_assert_uint_eq(renewals.count, 2); /* the first was not answered after all */

    /* One that is given up is never heard of. */
    ck_assert_int_eq(hf_renewer_send(renewals.renewer, 5000), HF_OK);
    hf_renewer_give_up(renewals.renewer);
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).ttl_s, 600);
    ck_assert_uint_eq(renewals.count, 3);
    hft_renewals_stop(&renewals);
}
END_TEST

/* Lists, one after the other. */
struct lists {
    struct hft_client *client;
    bool going;
    unsigned done, failed;
};

static void list_next(struct lists *lists);

static void on_page(const struct hf_range_result *page, void *arg)
{
    struct lists *lists = arg;

    if (page->more)
        return;
    lists->done++;
    if (page->result.err != HF_OK)
        lists->failed++;
    if (lists->going)
        list_next(lists);
}

static void list_next(struct lists *lists)
{
    struct hf_range_request request = { .range = { .key = hf_bytes_of("big/"),
                                                   .prefix = true } };

    ck_assert_int_eq(hf_etcd_list(lists->client->etcd, &request, on_page, lists, NULL), HF_OK);
}

static bool has_three_connections(void *arg)
{
    (void)arg;
    return hft_proxy_stats(proxy).open >= 3;
}

START_TEST(l6_renewals_do_not_wait_behind_lists)
{
    const hf_ms ttl = 15000;
    const char *endpoint = hft_proxy_endpoint(proxy);
    struct lists lists = { .client = &client, .going = true };
    struct hft_renewals renewals;
    struct hft_ticker ticker;
    unsigned finished;

    hft_client_close(&client);
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = &endpoint,
                                                            .endpoint_count = 1,
                                                            .separate_channels = true });
    (void)hft_etcd_put_many(&server, "big/", 32, 512 << 10);
    lease = hft_grant(&client, ttl / 1000);
    hft_ticker_start(&ticker);
    hft_renewals_start(&client, &renewals, lease);
    list_next(&lists);
    while (lists.done < 10) {
        struct hf_renewal renewal = hft_renew(&client, &renewals, ttl);

        ck_assert_int_eq(renewal.err, HF_OK);
        ck_assert_int_le(renewals.ended_at - renewal.sent_at,
                         ttl / 6 + hft_ticker_stall(&ticker));
    }
    /* Each purpose on a connection of its own; that of the lists is made anew for each. */
    hft_loop_until(&client.loop, has_three_connections, NULL, 10000, "three connections");
    lists.going = false;
    finished = lists.done + 1;
    hft_client_until(&client, &lists.done, finished, 30000, "the last list");
    ck_assert_uint_eq(lists.failed, 0);
    hft_renewals_stop(&renewals);
    hft_ticker_stop(&ticker);
}
END_TEST

static bool has_no_leader(void *arg)
{
    return hft_etcd_metric(arg, "etcd_server_has_leader", 1) == 0;
}

static bool has_leader(void *arg)
{
    return !has_no_leader(arg);
}

/* Without fixture: it needs three members. */
START_TEST(l5_a_member_without_a_leader_says_so_at_once_and_serves_again_with_one)
{
    const hf_ms ttl = 15000;
    struct hft_renewals before, fresh;
    struct hft_cluster cluster;
    struct hft_etcd *alone = &cluster.member[0];
    struct hf_renewal renewal;
    struct hft_ticker ticker;

    hft_ticker_start(&ticker);
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, alone->endpoint, NULL);
    lease = hft_grant(&client, 60);
    hft_renewals_start(&client, &before, lease);
    hft_renewals_start(&client, &fresh, lease);
    ck_assert_int_eq(hft_renew(&client, &before, 30000).ttl_s, 60);

    hft_etcd_pause(&cluster.member[1]);
    hft_etcd_pause(&cluster.member[2]);
    hft_loop_until(&client.loop, has_no_leader, alone, 30000, "the leader to be missed");
    hft_ticker_mark(&ticker);
    renewal = hft_renew(&client, &fresh, 7000); /* as long as etcd itself would take */
    ck_assert_int_eq(renewal.err, HF_EAGAIN);
    ck_assert_msg(strstr(renewal.message, "no leader") != NULL, "%s", renewal.message);
    ck_assert_int_le(fresh.ended_at - renewal.sent_at, ttl / 6 + hft_ticker_stall(&ticker));

    hft_etcd_resume(&cluster.member[1]);
    hft_etcd_resume(&cluster.member[2]);
    hft_loop_until(&client.loop, has_leader, alone, 30000, "a leader");
    while ((renewal = hft_renew(&client, &fresh, 30000)).err != HF_OK)
        ck_assert_int_eq(renewal.err, HF_EAGAIN);
    ck_assert_int_eq(renewal.ttl_s, 60);
    (void)hft_renew(&client, &before, 30000); /* may find its old stream ended */
    ck_assert_int_eq(hft_renew(&client, &before, 30000).ttl_s, 60);
    hft_renewals_stop(&before);
    hft_renewals_stop(&fresh);
    hft_client_close(&client);
    hft_cluster_done(&cluster);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    TCase *recovery = tcase_create("recovery");
    TCase *cluster = tcase_create("cluster");

    tcase_add_checked_fixture(recovery, setup, teardown);
    tcase_set_timeout(recovery, 120);
    tcase_add_loop_test(recovery, l16_every_call_fails_once_and_recovers, 0,
                        (int)(sizeof FAULTS / sizeof FAULTS[0]));
    tcase_add_test(recovery, l16_a_second_renewal_waits_for_the_first);
    tcase_add_test(recovery, l6_renewals_do_not_wait_behind_lists);
    tcase_set_timeout(cluster, 90);
    tcase_add_test(cluster,
                   l5_a_member_without_a_leader_says_so_at_once_and_serves_again_with_one);
    return hft_suite_run("etcd/recovery", recovery, cluster, NULL);
}
