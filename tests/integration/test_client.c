/* The client against a healthy etcd: every kind of request, and what comes back. */
#include <check.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/suite.h"

static struct hft_etcd server;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&server);
}

static struct hft_outcome read_key(const char *key, hf_rev revision)
{
    struct hft_outcome outcome = { 0 };
    struct hf_range_request request = { .range.key = hf_bytes_of(key), .revision = revision };

    ck_assert_int_eq(hf_etcd_range(client.etcd, &request, hft_on_range, &outcome, NULL), HF_OK);
    hft_await(&client, &outcome, 10000);
    return outcome;
}

START_TEST(what_is_put_is_read_and_what_is_deleted_is_gone)
{
    hf_rev put = hft_put(&client, "a", "one", HF_NO_LEASE);
    struct hft_outcome seen = read_key("a", 0);

    ck_assert_int_eq(seen.err, HF_OK);
    ck_assert_int_eq(seen.count, 1);
    ck_assert_str_eq(seen.value, "one");
    ck_assert_int_eq(seen.create_rev, put);
    ck_assert_int_gt(hft_delete(&client, "a"), put);
    ck_assert_int_eq(read_key("a", 0).count, 0);
    ck_assert_str_eq(read_key("a", put).value, "one");
}
END_TEST

START_TEST(a_revision_to_come_and_one_compacted_are_told_apart)
{
    hf_rev old = hft_put(&client, "a", "one", HF_NO_LEASE);
    hf_rev now = hft_put(&client, "a", "two", HF_NO_LEASE);
    char revision[32];

    ck_assert_int_eq(read_key("a", now + 100).err, HF_EHISTORY);
    (void)snprintf(revision, sizeof revision, "%lld", (long long)now);
    hft_etcdctl_ok(&server, NULL, "compact", revision, NULL);
    ck_assert_int_eq(read_key("a", old).err, HF_ECOMPACT);
}
END_TEST

START_TEST(a_mirror_lists_then_follows)
{
    struct hft_watcher watcher;
    struct hf_kv kv;

    hft_put(&client, "p/1", "one", HF_NO_LEASE);
    hft_put(&client, "p/2", "two", HF_NO_LEASE);
    hft_put(&client, "q", "elsewhere", HF_NO_LEASE);
    hft_watcher_start(&client, &watcher, "p/");
    ck_assert_uint_eq(watcher.puts, 2);

    hft_put(&client, "p/3", "three", HF_NO_LEASE);
    hft_client_until(&client, &watcher.puts, 3, 5000, "the new key");
    ck_assert_str_eq(watcher.last_key, "p/3");
    hft_delete(&client, "p/1");
    hft_client_until(&client, &watcher.deletes, 1, 5000, "the deletion");
    ck_assert_str_eq(watcher.last_key, "p/1");

    ck_assert(!hf_mirror_get(watcher.mirror, hf_bytes_of("p/1"), &kv));
    ck_assert(hf_mirror_get(watcher.mirror, hf_bytes_of("p/3"), &kv));
    ck_assert_int_eq((int)kv.value.len, 5);
    ck_assert_uint_eq(hf_mirror_get_stats(watcher.mirror).keys, 2);
    hft_watcher_stop(&watcher);
}
END_TEST

START_TEST(a_revoked_lease_takes_its_keys_along_in_one_revision)
{
    struct hft_watcher watcher;
    int64_t lease = hft_grant(&client, 10);
    hf_rev last;

    hft_put(&client, "p/1", "", lease);
    hft_put(&client, "p/2", "", lease);
    last = hft_put(&client, "p/3", "", HF_NO_LEASE);
    hft_watcher_start(&client, &watcher, "p/");
    hft_revoke(&client, lease);
    hft_client_until(&client, &watcher.deletes, 2, 5000, "both keys to go");
    ck_assert_int_eq(watcher.last_rev, last + 1);
    hft_watcher_stop(&watcher);
}
END_TEST

static struct hft_outcome commit(struct hf_txn *txn)
{
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_txn_commit(client.etcd, txn, NULL, hft_on_txn, &outcome, NULL), HF_OK);
    hft_await(&client, &outcome, 10000);
    hf_txn_free(txn);
    return outcome;
}

START_TEST(a_txn_writes_only_when_its_compares_hold)
{
    struct hf_bytes key = hf_bytes_of("a");
    hf_rev rev = hft_put(&client, "a", "one", HF_NO_LEASE);
    struct hf_txn *txn = hf_txn_new();
    struct hft_outcome outcome;

    hf_txn_if_mod(txn, key, HF_TXN_EQUAL, rev);
    hf_txn_then_put(txn, key, hf_bytes_of("two"), HF_NO_LEASE);
    ck_assert(commit(txn).succeeded);

    txn = hf_txn_new();
    hf_txn_if_mod(txn, key, HF_TXN_EQUAL, rev);
    hf_txn_then_put(txn, key, hf_bytes_of("three"), HF_NO_LEASE);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = key });
    outcome = commit(txn);
    ck_assert_int_eq(outcome.err, HF_OK);
    ck_assert(!outcome.succeeded);
    ck_assert_str_eq(outcome.value, "two");
}
END_TEST

START_TEST(a_client_that_closes_tells_every_caller)
{
    struct hft_outcome outcomes[50] = { 0 };

    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of("a"), hf_bytes_of("b"),
                                     HF_NO_LEASE, hft_on_write, &outcomes[i], NULL),
                         HF_OK);
    hft_client_close(&client);
    for (int i = 0; i < 50; i++)
        ck_assert(outcomes[i].done);
    hft_client_open(&client, server.endpoint, NULL);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("client");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_is_put_is_read_and_what_is_deleted_is_gone);
    tcase_add_test(t, a_revision_to_come_and_one_compacted_are_told_apart);
    tcase_add_test(t, a_mirror_lists_then_follows);
    tcase_add_test(t, a_revoked_lease_takes_its_keys_along_in_one_revision);
    tcase_add_test(t, a_txn_writes_only_when_its_compares_hold);
    tcase_add_test(t, a_client_that_closes_tells_every_caller);
    return hft_suite_run("etcd/client", t, NULL);
}
