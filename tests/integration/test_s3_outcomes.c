/* Writes whose answer is lost, and writes that certainly did not happen: S3. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"

enum { OPS = 50, READS = 5, LOSS_PERCENT = 20, SEED = 20261116 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    (void)hft_read(&client, "warm"); /* there is a connection */
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

struct passed {
    int64_t revision;
    const struct hft_outcome *outcome; /* whose end is waited for, too; may be NULL */
};

static bool has_passed(void *arg)
{
    const struct passed *seen = arg;

    return (seen->outcome != NULL && seen->outcome->done) ||
           hft_etcd_revision(&server) > seen->revision;
}

/* Runs the loop until etcd has committed one more change, of which no word gets through, and
 * heals the connection. */
static void lose_the_reply(struct passed *seen, const struct hft_outcome *outcome)
{
    seen->outcome = outcome;
    hft_loop_until(&client.loop, has_passed, seen, 20000, "the commit");
    ck_assert_msg(!outcome->done, "ended: %s", outcome->message);
    hft_proxy_heal(proxy);
}

static void start_losing(struct passed *seen)
{
    *seen = (struct passed){ .revision = hft_etcd_revision(&server) };
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
}

/* The value of the key is set to `op_id` if its revision is `mod_rev`; else it is read. */
static struct hf_txn *swap(const char *key, hf_rev mod_rev, const char *op_id)
{
    struct hf_txn *txn = hf_txn_new();

    hf_txn_if_mod(txn, hf_bytes_of(key), HF_TXN_EQUAL, mod_rev);
    hf_txn_then_put(txn, hf_bytes_of(key), hf_bytes_of(op_id), HF_NO_LEASE);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = hf_bytes_of(key) });
    return txn;
}

static struct hft_outcome commit_losing_the_reply(struct hf_txn *txn, bool resend)
{
    struct hf_txn_options options = { .resend = resend, .timeout = 30000 };
    struct hft_outcome outcome = { 0 };
    struct passed seen;

    start_losing(&seen);
    ck_assert_int_eq(hf_txn_commit(client.etcd, txn, &options, hft_on_txn, &outcome, NULL),
                     HF_OK);
    hf_txn_free(txn);
    lose_the_reply(&seen, &outcome);
    hft_await(&client, &outcome, 40000);
    return outcome;
}

START_TEST(s3_reply_of_a_committed_txn_dropped_exactly_one_effect)
{
    struct hft_outcome outcome = commit_losing_the_reply(swap("a", 0, "op-1"), true);
    struct hft_outcome now = hft_read(&client, "a");

    ck_assert_int_eq(outcome.err, HF_OK);
    ck_assert(!outcome.succeeded); /* the copy found the work done ... */
    ck_assert_uint_gt(outcome.resent, 0);
    ck_assert_str_eq(outcome.value, "op-1"); /* ... by its own mark */
    ck_assert_int_eq(now.version, 1);
    ck_assert_str_eq(now.value, "op-1");
}
END_TEST

START_TEST(s3_a_lost_reply_without_resend_is_an_unknown_outcome)
{
    struct hft_outcome outcome = commit_losing_the_reply(swap("a", 0, "op-1"), false);
    struct hft_outcome now = hft_read(&client, "a");

    ck_assert_int_eq(outcome.err, HF_EAGAIN);
    ck_assert(outcome.maybe_applied);
    ck_assert_uint_eq(outcome.resent, 0);
    ck_assert_int_eq(now.version, 1);
}
END_TEST

START_TEST(s3_an_unguarded_put_or_delete_is_never_sent_twice)
{
    struct hft_outcome put = { 0 }, erase = { 0 };
    struct passed seen;

    start_losing(&seen);
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of("a"), hf_bytes_of("1"), HF_NO_LEASE,
                                 hft_on_write, &put, NULL),
                     HF_OK);
    lose_the_reply(&seen, &put);
    hft_await(&client, &put, 20000);
    ck_assert_int_eq(put.err, HF_EAGAIN);
    ck_assert(put.maybe_applied);
    ck_assert_int_eq(hft_read(&client, "a").version, 1);

    start_losing(&seen);
    ck_assert_int_eq(hf_etcd_delete(client.etcd,
                                    (struct hf_key_range){ .key = hf_bytes_of("a") },
                                    hft_on_write, &erase, NULL),
                     HF_OK);
    lose_the_reply(&seen, &erase);
    hft_await(&client, &erase, 20000);
    ck_assert_int_eq(erase.err, HF_EAGAIN);
    ck_assert(erase.maybe_applied);
    ck_assert_int_eq(hft_read(&client, "a").count, 0);
}
END_TEST

START_TEST(s3_a_request_that_never_left_did_certainly_not_happen)
{
    struct hft_outcome outcome;

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    outcome = hft_read(&client, "a"); /* finds the connection gone */
    ck_assert_int_eq(outcome.err, HF_EAGAIN);
    outcome = hft_commit(&client, swap("a", 0, "op-1"), false);
    ck_assert_int_eq(outcome.err, HF_EAGAIN);
    ck_assert_msg(!outcome.maybe_applied, "%s", outcome.message);
    ck_assert_ptr_nonnull(strstr(outcome.message, "onnect"));
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    ck_assert_int_eq(hft_read(&client, "a").count, 0);
}
END_TEST

START_TEST(s3_what_etcd_refuses_did_certainly_not_happen)
{
    struct hf_txn *txn;
    struct hft_outcome outcome;

    /* The compare. */
    hft_put(&client, "a", "theirs", HF_NO_LEASE);
    outcome = hft_commit(&client, swap("a", 0, "ours"), true);
    ck_assert_int_eq(outcome.err, HF_OK);
    ck_assert(!outcome.succeeded);
    ck_assert(!outcome.maybe_applied);
    ck_assert_uint_eq(outcome.resent, 0);
    ck_assert_str_eq(outcome.value, "theirs");

    /* The lease. */
    txn = hf_txn_new();
    hf_txn_then_put(txn, hf_bytes_of("b"), hf_bytes_of(""), 4711);
    outcome = hft_commit(&client, txn, true);
    ck_assert_int_eq(outcome.err, HF_ENOENT);
    ck_assert(!outcome.maybe_applied);

    /* The argument: a key that is put and deleted. */
    txn = hf_txn_new();
    hf_txn_then_put(txn, hf_bytes_of("b"), hf_bytes_of(""), HF_NO_LEASE);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = hf_bytes_of("b") });
    outcome = hft_commit(&client, txn, true);
    ck_assert_int_eq(outcome.err, HF_EINVAL);
    ck_assert(!outcome.maybe_applied);
    ck_assert_int_eq(hft_read(&client, "b").count, 0);
}
END_TEST

/* One register, many writers' worth of swaps; every fifth reply or so is lost. What the history
 * of the register holds at each op's revision is that op, and nothing else ever happened. */
START_TEST(s3_a_fifth_of_all_replies_lost_every_op_takes_effect_exactly_once)
{
    unsigned state = SEED, lost = 0;
    hf_rev revisions[OPS];
    hf_rev seen = 0;
    char op_id[32];

    for (int i = 0; i < OPS; i++) {
        struct hft_outcome outcome;
        bool lose = (unsigned)rand_r(&state) % 100 < LOSS_PERCENT;

        (void)snprintf(op_id, sizeof op_id, "op-%d", i);
        if (lose)
            outcome = commit_losing_the_reply(swap("register", seen, op_id), true);
        else
            outcome = hft_commit(&client, swap("register", seen, op_id), true);
        lost += lose;
        ck_assert_msg(outcome.err == HF_OK, "op %d: %s", i, outcome.message);
        ck_assert(outcome.succeeded || strcmp(outcome.value, op_id) == 0);
        seen = outcome.succeeded ? outcome.header.revision : outcome.mod_rev;
        revisions[i] = seen;
        for (int n = 0; n < READS; n++) /* what succeeds pays for what is sent again */
            ck_assert_str_eq(hft_read(&client, "register").value, op_id);
    }
    ck_assert_uint_gt(lost, OPS / 10);
    ck_assert_int_eq(hft_read(&client, "register").version, OPS);
    for (int i = 0; i < OPS; i++) {
        struct hf_range_request request = { .range.key = hf_bytes_of("register"),
                                            .revision = revisions[i] };
        struct hft_outcome then = { 0 };

        (void)snprintf(op_id, sizeof op_id, "op-%d", i);
        ck_assert_int_eq(hf_etcd_range(client.etcd, &request, hft_on_range, &then, NULL),
                         HF_OK);
        hft_await(&client, &then, 10000);
        ck_assert_str_eq(then.value, op_id);
        ck_assert_int_eq(then.mod_rev, revisions[i]);
    }
}
END_TEST

/* Cancelling says that the caller does not care, not that nothing happens. */
START_TEST(s3_a_cancelled_call_never_calls_back)
{
    struct hft_outcome outcome = { 0 };
    struct hf_call *call = NULL;
    struct passed seen;

    start_losing(&seen);
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of("a"), hf_bytes_of("1"), HF_NO_LEASE,
                                 hft_on_write, &outcome, &call),
                     HF_OK);
    hft_loop_until(&client.loop, has_passed, &seen, 20000, "the commit");
    hf_call_cancel(call);
    hft_proxy_heal(proxy);
    ck_assert_int_eq(hft_read(&client, "a").version, 1);
    ck_assert(!outcome.done);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("outcomes");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, s3_reply_of_a_committed_txn_dropped_exactly_one_effect);
    tcase_add_test(t, s3_a_lost_reply_without_resend_is_an_unknown_outcome);
    tcase_add_test(t, s3_an_unguarded_put_or_delete_is_never_sent_twice);
    tcase_add_test(t, s3_a_request_that_never_left_did_certainly_not_happen);
    tcase_add_test(t, s3_what_etcd_refuses_did_certainly_not_happen);
    tcase_add_test(t, s3_a_fifth_of_all_replies_lost_every_op_takes_effect_exactly_once);
    tcase_add_test(t, s3_a_cancelled_call_never_calls_back);
    return hft_suite_run("etcd/outcomes", t, NULL);
}
