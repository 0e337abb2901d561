/* S7: an etcd that has more to do than it can take says so, with the code that also means that
 * its store is full. It is given time; whoever was refused comes again, but not everybody. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/client.h"
#include "support/fake.h"
#include "support/suite.h"

enum { RESOURCE_EXHAUSTED = 8, PAUSE_MS = 1000, ROUNDING_MS = 1, ALWAYS = 1000000 };
static const char OVERLOAD[] = "etcdserver: too many requests";

static struct hft_fake *fake, *other;
static struct hft_client client;

/* An attempt that a busy machine holds up is not given up for the other endpoint. */
static void setup(void)
{
    const char *endpoints[2];

    fake = hft_fake_new();
    other = hft_fake_new();
    endpoints[0] = hft_fake_endpoint(fake);
    endpoints[1] = hft_fake_endpoint(other);
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = endpoints,
                                                            .endpoint_count = 2,
                                                            .keep_order = true,
                                                            .timeout = 60000,
                                                            .attempt_timeout = 60000 });
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_fake_free(fake);
    hft_fake_free(other);
}

static struct hf_etcd_stats stats(void)
{
    return hf_etcd_get_stats(client.etcd);
}

static void start_put(struct hft_outcome *outcome)
{
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of("k"), hf_bytes_of("v"), HF_NO_LEASE,
                                 hft_on_write, outcome, NULL),
                     HF_OK);
}

static struct hft_outcome put(void)
{
    struct hft_outcome outcome = { 0 };

    start_put(&outcome);
    hft_await(&client, &outcome, 30000);
    return outcome;
}

static struct hft_outcome get(void)
{
    return hft_read(&client, "k");
}

static struct hft_outcome (*const CALLS[])(void) = { put, get };

/* Nothing is wrong with the endpoint, so it is not left for another; and what was refused was
 * not done, so even a put may be sent again. */
START_TEST(s7_an_overloaded_etcd_is_left_alone_for_a_second_each_time_and_asked_again)
{
    const unsigned refusals = 3;
    struct hft_outcome outcome;
    struct hft_fake_stats seen;

    hft_fake_refuse(fake, refusals, RESOURCE_EXHAUSTED, OVERLOAD);
    outcome = CALLS[_i]();
    ck_assert_msg(outcome.err == HF_OK, "%s: %s", hf_err_name(outcome.err), outcome.message);
    ck_assert(!outcome.maybe_applied);
    ck_assert_uint_eq(outcome.resent, 0);

    seen = hft_fake_stats(fake);
    ck_assert_uint_eq(seen.calls, refusals + 1);
    for (unsigned i = 0; i < refusals; i++)
        ck_assert_int_ge(seen.called_at[i + 1] - seen.called_at[i], PAUSE_MS - ROUNDING_MS);
    ck_assert_uint_eq(stats().retries, refusals);
    ck_assert_uint_eq(stats().failures, 0);
    ck_assert_uint_eq(stats().rotations, 0);
    ck_assert_uint_eq(hft_fake_stats(other).calls, 0);
    if (CALLS[_i] == put)
        ck_assert_int_eq(get().version, 1);
}
END_TEST

/* The same code, another text: waiting would not help. */
static const struct {
    const char *details;
    int err;
} OTHERS[] = {
    { "etcdserver: mvcc: database space exceeded", HF_ENOSPACE },
    { "grpc: received message larger than max (2097216 vs. 2097152)", HF_ELIMIT },
};

START_TEST(s7_what_else_the_code_means_is_told_at_once)
{
    hft_fake_refuse(fake, ALWAYS, RESOURCE_EXHAUSTED, OTHERS[_i].details);
    ck_assert_int_eq(put().err, OTHERS[_i].err);
    ck_assert_uint_eq(hft_fake_stats(fake).calls, 1);
    ck_assert_uint_eq(stats().retries, 0);
}
END_TEST

START_TEST(s7_a_call_with_less_than_a_second_left_is_not_held_back_in_vain)
{
    struct hf_range_request request = { .range.key = hf_bytes_of("k"), .timeout = PAUSE_MS };
    struct hft_outcome outcome;
    uint64_t retries;

    do { /* a machine that stands still takes the second away, and the client goes elsewhere */
        outcome = (struct hft_outcome){ 0 };
        retries = stats().retries;
        hft_fake_refuse(fake, ALWAYS, RESOURCE_EXHAUSTED, OVERLOAD);
        hft_fake_refuse(other, ALWAYS, RESOURCE_EXHAUSTED, OVERLOAD);
        ck_assert_int_eq(hf_etcd_range(client.etcd, &request, hft_on_range, &outcome, NULL),
                         HF_OK);
        hft_await(&client, &outcome, 30000);
    } while (outcome.err == HF_ETIMEOUT);
    ck_assert_int_eq(outcome.err, HF_EAGAIN);
    ck_assert_str_eq(outcome.message, OVERLOAD);
    ck_assert_uint_eq(stats().retries, retries);
}
END_TEST

/* Ten tokens a refusal, no retry at half of a hundred: however many wait, four come again. A
 * success gives one back. */
START_TEST(s7_a_crowd_comes_again_only_as_far_as_the_budget_goes)
{
    enum { CROWD = 40, FREE_RETRIES = 4, TO_FULL = 100 };
    struct hft_outcome crowd[CROWD] = { 0 };

    hft_fake_refuse(fake, ALWAYS, RESOURCE_EXHAUSTED, OVERLOAD);
    for (int i = 0; i < CROWD; i++)
        start_put(&crowd[i]);
    for (int i = 0; i < CROWD; i++) {
        hft_await(&client, &crowd[i], 30000);
        ck_assert_int_eq(crowd[i].err, HF_EAGAIN);
        ck_assert(!crowd[i].maybe_applied);
    }
    ck_assert_uint_eq(hft_fake_stats(fake).calls, CROWD + FREE_RETRIES);
    ck_assert_uint_eq(stats().retries, FREE_RETRIES);
    ck_assert_uint_eq(stats().budget_spent, CROWD);
    ck_assert_int_eq(put().err, HF_EAGAIN); /* first attempts are made all the same */
    ck_assert_uint_eq(hft_fake_stats(fake).calls, CROWD + FREE_RETRIES + 1);

    hft_fake_refuse(fake, 0, 0, "");
    for (int i = 0; i < TO_FULL; i++)
        ck_assert_int_eq(get().err, HF_OK);
    ck_assert_int_eq(get().count, 0); /* nothing of what was refused has happened */
    hft_fake_refuse(fake, 1, RESOURCE_EXHAUSTED, OVERLOAD);
    ck_assert_int_eq(put().err, HF_OK);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("s7");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(
        t, s7_an_overloaded_etcd_is_left_alone_for_a_second_each_time_and_asked_again, 0,
        sizeof CALLS / sizeof CALLS[0]);
    tcase_add_loop_test(t, s7_what_else_the_code_means_is_told_at_once, 0,
                        sizeof OTHERS / sizeof OTHERS[0]);
    tcase_add_test(t, s7_a_call_with_less_than_a_second_left_is_not_held_back_in_vain);
    tcase_add_test(t, s7_a_crowd_comes_again_only_as_far_as_the_budget_goes);
    return hft_suite_run("etcd/call: S7", t, NULL);
}
