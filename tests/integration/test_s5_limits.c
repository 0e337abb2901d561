/* A store that is full, and requests that are too large: S5, S8. (S7, overload, cannot be made
 * to order: tests/unit/test_status.c tells it apart from both.) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "support/admin.h"
#include "support/client.h"
#include "support/suite.h"

enum { QUOTA_BYTES = 16 << 20, REQUEST_LIMIT_BYTES = 1536 * 1024 };

static struct hft_etcd server;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&server,
                   &(struct hft_etcd_options){ .no_fsync = true, .quota_bytes = QUOTA_BYTES });
    hft_client_open(&client, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&server);
}

static struct hft_outcome put(const char *key, struct hf_bytes value)
{
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of(key), value, HF_NO_LEASE,
                                 hft_on_write, &outcome, NULL),
                     HF_OK);
    hft_await(&client, &outcome, 20000);
    return outcome;
}

static struct hft_outcome grant(void)
{
    struct hft_outcome outcome = { 0 };
    int64_t id;

    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    ck_assert_int_eq(hf_etcd_lease_grant(client.etcd, id, 10, 0, hft_on_grant, &outcome, NULL),
                     HF_OK);
    hft_await(&client, &outcome, 20000);
    return outcome;
}

static void expect_no_space(struct hft_outcome outcome, const char *what)
{
    ck_assert_msg(outcome.err == HF_ENOSPACE, "%s: %s: %s", what, hf_err_name(outcome.err),
                  outcome.message);
    ck_assert_msg(outcome.maybe_applied, "%s", what); /* the first one is, for all we know */
}

START_TEST(s5_a_full_store_is_told_apart_from_overload_and_works_again_when_there_is_room)
{
    int64_t lease = hft_grant(&client, 30);
    struct hft_renewals renewals;
    struct hft_outcome status = { 0 };
    struct hf_etcd_stats before, after;
    struct hf_txn *txn;

    hft_put(&client, "old", "1", lease);
    hft_renewals_start(&client, &renewals, lease);
    hft_etcd_fill(&server);

    /* What writes is refused, once, and nothing is tried again. */
    before = hf_etcd_get_stats(client.etcd);
    expect_no_space(put("new", hf_bytes_of("1")), "put");
    expect_no_space(grant(), "grant");
    txn = hf_txn_new();
    hf_txn_if_create(txn, hf_bytes_of("new"), HF_TXN_EQUAL, 0);
    hf_txn_then_put(txn, hf_bytes_of("new"), hf_bytes_of("1"), HF_NO_LEASE);
    expect_no_space(hft_commit(&client, txn, true), "txn");
    after = hf_etcd_get_stats(client.etcd);
    ck_assert_uint_eq(after.calls - before.calls, 3 + after.failures - before.failures);
    ck_assert_uint_eq(after.rotations - before.rotations, after.failures - before.failures);

    /* Leases live on, and what reads or frees goes through. */
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).ttl_s, 30);
    ck_assert_str_eq(hft_read(&client, "old").value, "1");
    ck_assert_int_eq(hft_read(&client, "new").count, 0);
    (void)hft_delete(&client, "old");
    ck_assert_int_eq(hf_etcd_status(client.etcd, hft_on_status, &status, NULL), HF_OK);
    hft_await(&client, &status, 20000);
    ck_assert_ptr_nonnull(strstr(status.value, "NOSPACE"));

    hft_etcd_make_room(&server);
    ck_assert_int_eq(put("new", hf_bytes_of("1")).err, HF_OK);
    ck_assert_int_eq(grant().err, HF_OK);
    hft_renewals_stop(&renewals);
}
END_TEST

/* Space alone does not help: the alarm stays until somebody disarms it. */
START_TEST(s5_the_alarm_outlasts_the_lack_of_space)
{
    hft_etcd_fill(&server);
    hft_etcdctl_ok(&server, NULL, "del", "--prefix", "fill/", NULL);
    hft_etcd_compact(&server, hft_etcd_revision(&server));
    hft_etcdctl_ok(&server, NULL, "defrag", NULL);
    expect_no_space(put("new", hf_bytes_of("1")), "before the alarm is disarmed");
    hft_etcdctl_ok(&server, NULL, "alarm", "disarm", NULL);
    ck_assert_int_eq(put("new", hf_bytes_of("1")).err, HF_OK);
}
END_TEST

static struct hf_txn *txn_of(unsigned compares, unsigned puts, unsigned reads)
{
    struct hf_txn *txn = hf_txn_new();
    char key[32];

    for (unsigned i = 0; i < compares; i++) {
        (void)snprintf(key, sizeof key, "k/%u", i);
        hf_txn_if_create(txn, hf_bytes_of(key), HF_TXN_EQUAL, 0);
    }
    for (unsigned i = 0; i < puts; i++) {
        (void)snprintf(key, sizeof key, "k/%u", i);
        hf_txn_then_put(txn, hf_bytes_of(key), hf_bytes_of("v"), HF_NO_LEASE);
    }
    for (unsigned i = 0; i < reads; i++) {
        (void)snprintf(key, sizeof key, "k/%u", i);
        hf_txn_else_range(txn, (struct hf_key_range){ .key = hf_bytes_of(key) });
    }
    return txn;
}

static void expect_refused(struct hf_txn *txn, int err)
{
    uint64_t calls = hf_etcd_get_stats(client.etcd).calls;
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_txn_commit(client.etcd, txn, NULL, hft_on_txn, &outcome, NULL), err);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).calls, calls);
    ck_assert(!outcome.done);
    hf_txn_free(txn);
}

START_TEST(s8_64_operations_are_one_txn_and_65_are_never_sent)
{
    struct hft_outcome full = hft_commit(&client, txn_of(64, 64, 64), false);

    ck_assert_int_eq(full.err, HF_OK);
    ck_assert(full.succeeded);
    ck_assert_int_eq(hft_read(&client, "k/63").mod_rev, full.header.revision);
    expect_refused(txn_of(65, 0, 0), HF_ELIMIT);
    expect_refused(txn_of(0, 65, 0), HF_ELIMIT);
    expect_refused(txn_of(0, 0, 65), HF_ELIMIT);
}
END_TEST

START_TEST(s8_a_key_written_twice_or_without_a_name_is_never_sent)
{
    struct hf_txn *txn = txn_of(0, 3, 0);

    hf_txn_then_put(txn, hf_bytes_of("k/1"), hf_bytes_of("again"), HF_NO_LEASE);
    expect_refused(txn, HF_EINVAL);
    txn = hf_txn_new();
    hf_txn_then_put(txn, hf_bytes_of(""), hf_bytes_of("v"), HF_NO_LEASE);
    expect_refused(txn, HF_EINVAL);
    txn = hf_txn_new();
    hf_txn_if_create(txn, hf_bytes_of(""), HF_TXN_EQUAL, 0);
    expect_refused(txn, HF_EINVAL);
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of(""), hf_bytes_of("v"), HF_NO_LEASE,
                                 hft_on_write, NULL, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hft_read(&client, "k/1").count, 0);
}
END_TEST

/* The first error stays, whatever is added after it. */
START_TEST(s8_a_txn_that_went_wrong_stays_wrong)
{
    struct hf_txn *txn = txn_of(0, 65, 0);

    hf_txn_then_put(txn, hf_bytes_of(""), hf_bytes_of("v"), HF_NO_LEASE);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = hf_bytes_of("other") });
    expect_refused(txn, HF_ELIMIT);
}
END_TEST

/* From just fitting to far too large: etcd's own limit, then that of its transport. */
START_TEST(s8_a_value_beyond_the_request_limit_is_a_limit_not_an_outage)
{
    static const size_t TOO_LARGE[] = { REQUEST_LIMIT_BYTES, REQUEST_LIMIT_BYTES + (1 << 20),
                                        8 << 20 };
    HF_CLEANUP_FREE char *value = calloc(1, 8 << 20);
    struct hf_etcd_stats before = hf_etcd_get_stats(client.etcd), after;

    ck_assert_ptr_nonnull(value);
    ck_assert_int_eq(
        put("k", (struct hf_bytes){ .data = value, .len = REQUEST_LIMIT_BYTES - 64 }).err,
        HF_OK);
    for (size_t i = 0; i < 3; i++) {
        struct hft_outcome outcome =
            put("k", (struct hf_bytes){ .data = value, .len = TOO_LARGE[i] });

        ck_assert_msg(outcome.err == HF_ELIMIT, "%zu bytes: %s: %s", TOO_LARGE[i],
                      hf_err_name(outcome.err), outcome.message);
        ck_assert(!outcome.maybe_applied);
    }
    after = hf_etcd_get_stats(client.etcd);
    ck_assert_uint_eq(after.calls - before.calls, 4 + after.failures - before.failures);
    ck_assert_uint_eq(after.rotations - before.rotations, after.failures - before.failures);
    ck_assert_int_eq(hft_read(&client, "k").version, 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("limits");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 90);
    tcase_add_test(
        t, s5_a_full_store_is_told_apart_from_overload_and_works_again_when_there_is_room);
    tcase_add_test(t, s5_the_alarm_outlasts_the_lack_of_space);
    tcase_add_test(t, s8_64_operations_are_one_txn_and_65_are_never_sent);
    tcase_add_test(t, s8_a_key_written_twice_or_without_a_name_is_never_sent);
    tcase_add_test(t, s8_a_txn_that_went_wrong_stays_wrong);
    tcase_add_test(t, s8_a_value_beyond_the_request_limit_is_a_limit_not_an_outage);
    return hft_suite_run("etcd/limits", t, NULL);
}
