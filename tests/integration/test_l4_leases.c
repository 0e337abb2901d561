/* Leases as mechanism: L4, L7, L8, L9, L14. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "support/etcd.h"
#include "support/holder.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

enum { DELAY_MS = 4000 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static struct hft_ticker ticker;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_ticker_start(&ticker);
}

static void teardown(void)
{
    hft_ticker_stop(&ticker);
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

/* What etcd itself says of the lease, in whole seconds, rounded down. */
static int64_t seconds_left(int64_t lease)
{
    HF_CLEANUP_FREE char *json = NULL;
    const char *ttl;
    char id[24];

    (void)snprintf(id, sizeof id, "%" PRIx64, lease);
    hft_etcdctl_ok(&server, &json, "lease", "timetolive", id, "-w", "json", NULL);
    ttl = strstr(json, "\"ttl\":");
    ck_assert_ptr_nonnull(ttl);
    return strtoll(ttl + strlen("\"ttl\":"), NULL, 10);
}

static unsigned count_leases(void)
{
    HF_CLEANUP_FREE char *text = NULL;

    hft_etcdctl_ok(&server, &text, "lease", "list", NULL);
    ck_assert_int_eq(strncmp(text, "found ", 6), 0);
    return (unsigned)strtoul(text + 6, NULL, 10);
}

START_TEST(l4_replies_delayed_4s_renewal_counts_from_its_send_time)
{
    const int64_t ttl_s = 90; /* an attempt may take a sixth: far more than the delay */
    struct hf_lease_policy policy = hf_lease_policy_default();
    struct hft_renewals renewals;
    struct hf_lease_reply reply;
    struct hf_renewal renewal;
    struct hf_lease machine;
    int64_t id = hft_grant(&client, ttl_s);
    hf_ms before, after, expires_before;

    hft_renewals_start(&client, &renewals, id);
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).err, HF_OK);
    hf_lease_init(&machine, &policy);
    reply = (struct hf_lease_reply){ .id = id, .sent_at = hft_now(), .ttl_s = ttl_s };
    ck_assert_int_eq(hf_lease_on_granted(&machine, &reply, hft_now(), 0), HF_LEASE_COUNTED);

    hft_proxy_delay(proxy, HFT_PROXY_DOWN, DELAY_MS);
    before = hft_now();
    ck_assert_int_eq(hf_renewer_send(renewals.renewer, ttl_s * 1000 / 6), HF_OK);
    after = hft_now();
    hf_lease_on_renew_sent(&machine, hf_renewer_get_sent_at(renewals.renewer));
    hft_client_until(&client, &renewals.count, 2, 30000, "the delayed answer");
    renewal = renewals.last;
    ck_assert_int_eq(renewal.err, HF_OK);
    ck_assert_int_eq(renewal.ttl_s, ttl_s);
    ck_assert_int_ge(renewal.sent_at, before);
    ck_assert_int_le(renewal.sent_at, after);
    ck_assert_int_ge(renewals.ended_at - renewal.sent_at, DELAY_MS);

    /* The machine's fence runs from there ... */
    reply.sent_at = renewal.sent_at;
    reply.term = renewal.header.raft_term;
    ck_assert_int_eq(hf_lease_on_reply(&machine, &reply, hft_now(), 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(hf_lease_save(&machine).fence_at, renewal.sent_at + ttl_s * 1000 * 5 / 6);

    /* ... and etcd's own count shows that the lease never outlives what we believe. */
    expires_before = (seconds_left(id) + 1) * 1000 + hft_now();
    ck_assert_int_le(renewal.sent_at + ttl_s * 1000, expires_before);
    hft_renewals_stop(&renewals);
}
END_TEST

START_TEST(l4_answers_that_come_after_their_attempt_do_not_put_off_the_fence)
{
    const hf_ms ttl = 15000; /* an attempt may take 2.5 s: less than the delay */
    struct hft_holder holder;
    hf_ms counted_at;

    hft_holder_start(&client, &holder, ttl);
    hft_holder_register(&holder, "live");
    hft_proxy_delay(proxy, HFT_PROXY_DOWN, DELAY_MS);
    counted_at = holder.counted_at;
    hft_ticker_mark(&ticker);
    hft_client_until(&client, &holder.fences, 1, 2 * ttl, "the fence");
    ck_assert_int_eq(holder.counted_at, counted_at);
    ck_assert_int_ge(holder.fence_at - counted_at, ttl * 5 / 6);
    ck_assert_int_le(holder.fence_at - counted_at,
                     ttl * 5 / 6 + 100 + hft_ticker_stall(&ticker));
    ck_assert_int_gt(seconds_left(holder.lease), 0); /* we gave up long before etcd did */

    hft_proxy_heal(proxy);
    hft_client_until(&client, &holder.thaws, 1, 30000, "proof that the key is still there");
    ck_assert_uint_eq(holder.losses, 0);
    hft_holder_stop(&holder, true);
}
END_TEST

/* Renewals that a renewer sends by itself. */
struct repeated {
    struct hft_renewals renewals;
    hf_ms from; /* look at those only that were sent later */
};

static bool has_renewed(void *arg)
{
    const struct repeated *repeated = arg;
    const struct hf_renewal *last = &repeated->renewals.last;

    return last->sent_at > repeated->from && last->err == HF_OK;
}

static bool has_failed(void *arg)
{
    return ((const struct repeated *)arg)->renewals.last.err != HF_OK;
}

static bool is_silent(void *arg)
{
    return ((const struct repeated *)arg)->renewals.count == 0;
}

START_TEST(l4_a_renewer_that_repeats_keeps_its_lease_and_goes_on_after_an_outage)
{
    const int64_t ttl_s = 8;
    const hf_ms period = 1000;
    struct repeated repeated = { 0 };
    int64_t id = hft_grant(&client, ttl_s);
    hf_ms start = hft_now();

    hft_renewals_start(&client, &repeated.renewals, id);
    ck_assert_int_eq(hf_renewer_repeat(repeated.renewals.renewer, 0), HF_EINVAL);
    ck_assert_int_eq(hf_renewer_repeat(repeated.renewals.renewer, period), HF_OK);
    ck_assert_uint_eq(repeated.renewals.count, 0);
    repeated.from = start + (ttl_s + 2) * 1000; /* without them it would be gone by then */
    hft_loop_until(&client.loop, has_renewed, &repeated, 30000, "a lease older than its TTL");
    ck_assert_int_eq(repeated.renewals.last.ttl_s, ttl_s);
    ck_assert_int_le(repeated.renewals.count, (hft_now() - start) / period + 1);

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    hft_loop_until(&client.loop, has_failed, &repeated, 20000, "a renewal to fail");
    hft_proxy_heal(proxy);
    hft_loop_until(&client.loop, has_renewed, &repeated, 20000, "a renewal to succeed");

    hft_renewals_stop(&repeated.renewals);
    repeated.renewals.count = 0;
    hft_loop_hold(&client.loop, is_silent, &repeated, 2 * period, "silence");
}
END_TEST

START_TEST(l7_a_lease_that_does_not_exist_is_answered_without_a_ttl_and_without_an_error)
{
    struct hft_renewals unknown, revoked;
    struct hf_renewal renewal;
    int64_t lease = hft_grant(&client, 15);
    int64_t id;

    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    hft_renewals_start(&client, &unknown, id);
    renewal = hft_renew(&client, &unknown, 30000);
    ck_assert_int_eq(renewal.err, HF_OK);
    ck_assert_int_le(renewal.ttl_s, 0);
    ck_assert_uint_ne(renewal.header.raft_term, 0);
    hft_renewals_stop(&unknown);

    hft_renewals_start(&client, &revoked, lease);
    ck_assert_int_eq(hft_renew(&client, &revoked, 30000).ttl_s, 15);
    hft_revoke(&client, lease);
    renewal = hft_renew(&client, &revoked, 30000);
    ck_assert_int_eq(renewal.err, HF_OK);
    ck_assert_int_le(renewal.ttl_s, 0);
    hft_renewals_stop(&revoked);
}
END_TEST

START_TEST(l7_revoking_and_asking_about_a_lease_that_is_gone)
{
    struct hft_outcome revoked = { 0 }, asked = { 0 };
    int64_t lease = hft_grant(&client, 15);

    hft_revoke(&client, lease);
    ck_assert_int_eq(hf_etcd_lease_revoke(client.etcd, lease, hft_on_write, &revoked, NULL),
                     HF_OK);
    hft_await(&client, &revoked, 10000);
    ck_assert_int_eq(revoked.err, HF_ENOENT);
    ck_assert(!revoked.maybe_applied);

    ck_assert_int_eq(hf_etcd_lease_ttl(client.etcd, lease, true, hft_on_ttl, &asked, NULL),
                     HF_OK);
    hft_await(&client, &asked, 10000);
    ck_assert_int_eq(asked.err, HF_OK);
    ck_assert_int_eq(asked.ttl_s, -1);
}
END_TEST

static bool has_granted(void *arg)
{
    (void)arg;
    return hft_etcd_metric(&server, "etcd_debugging_lease_granted_total", 0) >= 1;
}

START_TEST(l8_first_reply_to_a_grant_dropped_exactly_one_lease_remains)
{
    struct hft_outcome grant = { 0 };
    hf_ms before, after;
    int64_t id;

    (void)hft_read(&client, "warm"); /* there is a connection */
    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    before = hft_now();
    ck_assert_int_eq(
        hf_etcd_lease_grant(client.etcd, id, 20, 30000, hft_on_grant, &grant, NULL), HF_OK);
    after = hft_now();
    hft_loop_until(&client.loop, has_granted, NULL, 10000, "etcd to grant the lease");
    ck_assert(!grant.done);
    hft_proxy_heal(proxy);
    hft_await(&client, &grant, 30000);

    ck_assert_msg(grant.err == HF_OK, "%s: %s", hf_err_name(grant.err), grant.message);
    ck_assert(!grant.maybe_applied);
    ck_assert_uint_ge(grant.resent, 1);
    ck_assert_int_eq(grant.id, id);
    ck_assert_int_eq(grant.ttl_s, 20);
    ck_assert_int_ge(grant.sent_at, before); /* the lease may live from then on */
    ck_assert_int_le(grant.sent_at, after);
    ck_assert_uint_eq(count_leases(), 1);
    ck_assert_int_gt(seconds_left(id), 0);
}
END_TEST

START_TEST(l8_an_id_that_somebody_else_has_is_not_ours)
{
    struct hft_outcome grant = { 0 };
    int64_t id = hft_grant(&client, 20);

    ck_assert_int_eq(hf_etcd_lease_grant(client.etcd, id, 20, 0, hft_on_grant, &grant, NULL),
                     HF_OK);
    hft_await(&client, &grant, 10000);
    ck_assert_int_eq(grant.err, HF_EEXIST);
    ck_assert(!grant.maybe_applied);
}
END_TEST

START_TEST(l8_a_grant_without_an_id_or_a_ttl_is_not_sent)
{
    ck_assert_int_eq(hf_etcd_lease_grant(client.etcd, 0, 20, 0, hft_on_grant, NULL, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hf_etcd_lease_grant(client.etcd, 1, 0, 0, hft_on_grant, NULL, NULL),
                     HF_EINVAL);
    ck_assert_uint_eq(count_leases(), 0);
}
END_TEST

START_TEST(l14_a_put_without_the_lease_detaches_the_key_and_one_with_it_does_not)
{
    int64_t lease = hft_grant(&client, 20);
    struct hft_outcome asked = { 0 };
    struct hf_txn *txn = hf_txn_new();
    struct hft_outcome written;

    hft_put(&client, "ghost", "1", lease);
    hft_put(&client, "live", "1", lease);
    hft_etcdctl_ok(&server, NULL, "put", "ghost", "2", NULL); /* as a careless writer does */
    ck_assert_int_eq(hft_read(&client, "ghost").lease, HF_NO_LEASE);

    hf_txn_if_lease(txn, hf_bytes_of("live"), HF_TXN_EQUAL, lease);
    hf_txn_then_put(txn, hf_bytes_of("live"), hf_bytes_of("2"), lease);
    written = hft_commit(&client, txn, true);
    ck_assert(written.succeeded);
    ck_assert_int_eq(hft_read(&client, "live").lease, lease);
    ck_assert_int_eq(hf_etcd_lease_ttl(client.etcd, lease, true, hft_on_ttl, &asked, NULL),
                     HF_OK);
    hft_await(&client, &asked, 10000);
    ck_assert_int_eq(asked.count, 1);

    hft_revoke(&client, lease);
    ck_assert_int_eq(hft_read(&client, "live").count, 0);
    ck_assert_int_eq(hft_read(&client, "ghost").count, 1); /* for ever: nobody owns it */
}
END_TEST

/* Without fixture: it needs an etcd of its own kind. */
START_TEST(l9_the_ttl_is_the_granted_one_not_the_one_that_was_asked)
{
    struct hft_outcome grant = { 0 };
    struct hft_renewals renewals;
    struct hft_client slow;
    int64_t id;

    hft_etcd_start(&server, &(struct hft_etcd_options){
                                .no_fsync = true, .heartbeat_ms = 500, .election_ms = 5000 });
    hft_client_open(&slow, server.endpoint, NULL);
    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    ck_assert_int_eq(hf_etcd_lease_grant(slow.etcd, id, 5, 0, hft_on_grant, &grant, NULL),
                     HF_OK);
    hft_await(&slow, &grant, 10000);
    ck_assert_int_eq(grant.err, HF_OK);
    ck_assert_int_eq(grant.ttl_s, 8); /* one and a half election timeouts */
    hft_renewals_start(&slow, &renewals, id);
    ck_assert_int_eq(hft_renew(&slow, &renewals, 30000).ttl_s, 8);
    hft_renewals_stop(&renewals);
    hft_client_close(&slow);
    hft_etcd_done(&server);
}
END_TEST

int main(void)
{
    TCase *leases = tcase_create("leases");
    TCase *slow = tcase_create("slow elections");

    tcase_add_checked_fixture(leases, setup, teardown);
    tcase_set_timeout(leases, 90);
    tcase_add_test(leases, l4_replies_delayed_4s_renewal_counts_from_its_send_time);
    tcase_add_test(leases, l4_answers_that_come_after_their_attempt_do_not_put_off_the_fence);
    tcase_add_test(leases,
                   l4_a_renewer_that_repeats_keeps_its_lease_and_goes_on_after_an_outage);
    tcase_add_test(
        leases, l7_a_lease_that_does_not_exist_is_answered_without_a_ttl_and_without_an_error);
    tcase_add_test(leases, l7_revoking_and_asking_about_a_lease_that_is_gone);
    tcase_add_test(leases, l8_first_reply_to_a_grant_dropped_exactly_one_lease_remains);
    tcase_add_test(leases, l8_an_id_that_somebody_else_has_is_not_ours);
    tcase_add_test(leases, l8_a_grant_without_an_id_or_a_ttl_is_not_sent);
    tcase_add_test(leases,
                   l14_a_put_without_the_lease_detaches_the_key_and_one_with_it_does_not);
    tcase_set_timeout(slow, 60);
    tcase_add_test(slow, l9_the_ttl_is_the_granted_one_not_the_one_that_was_asked);
    return hft_suite_run("etcd/lease", leases, slow, NULL);
}
