/* Calls at odd moments, against a port where nobody listens. */
#include <check.h>
#include <stdint.h>

#include "etcd/client.h"
#include "support/client.h"
#include "support/suite.h"

static const char *const NOBODY[] = { "http://127.0.0.1:1" };

/* A clock that catches up when it is read for the n-th time: the process was stopped there. */
static struct {
    hf_ms behind;
    unsigned reads_left; /* 0: no jump is due */
} machine;

static hf_ms read_clock(void *arg)
{
    struct hf_clock boottime = hf_clock_boottime();

    (void)arg;
    if (machine.reads_left > 0 && --machine.reads_left == 0)
        machine.behind = 0;
    return hf_clock_now(&boottime) - machine.behind;
}

static void open_client(struct hft_client *client)
{
    machine.behind = 60000;
    hft_client_open_with(client, &(struct hf_etcd_config){ .endpoints = NOBODY,
                                                           .endpoint_count = 1,
                                                           .clock = { .now = read_clock } });
}

/* From its n-th look at the clock on. */
static void stop_machine(int n)
{
    machine.reads_left = (unsigned)n + 1;
}

static int start(struct hft_client *client, struct hft_outcome *outcome, hf_ms timeout,
                 struct hf_call **ret_call)
{
    struct hf_range_request request = { .range.key = hf_bytes_of("k"), .timeout = timeout };

    return hf_etcd_range(client->etcd, &request, hft_on_range, outcome, ret_call);
}

START_TEST(process_stopped_while_a_call_is_started_is_told_later_and_once)
{
    struct hft_outcome outcome = { 0 };
    struct hf_call *call = NULL;
    struct hft_client client;

    open_client(&client);
    stop_machine(_i);
    ck_assert_int_eq(start(&client, &outcome, 0, &call), HF_OK);
    ck_assert(!outcome.done);
    ck_assert_ptr_nonnull(call);
    hft_await(&client, &outcome, 10000);
    ck_assert(outcome.err == HF_ETIMEOUT || outcome.err == HF_EAGAIN);
    hft_client_close(&client);
}
END_TEST

START_TEST(call_cancelled_after_the_process_was_stopped_is_never_told)
{
    struct hft_outcome outcome = { 0 };
    struct hf_call *call = NULL;
    struct hft_client client;

    open_client(&client);
    stop_machine(_i);
    ck_assert_int_eq(start(&client, &outcome, 0, &call), HF_OK);
    hf_call_cancel(call);
    hft_client_close(&client);
    ck_assert(!outcome.done);
}
END_TEST

START_TEST(timeout_without_end_is_no_timeout_in_the_past)
{
    struct hft_outcome outcome = { 0 };
    struct hft_client client;

    open_client(&client);
    ck_assert_int_eq(start(&client, &outcome, INT64_MAX, NULL), HF_OK);
    ck_assert(!outcome.done);
    hft_client_close(&client);
    ck_assert(outcome.done);
    ck_assert(outcome.err == HF_ECANCELED || outcome.err == HF_EAGAIN);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("call");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, process_stopped_while_a_call_is_started_is_told_later_and_once, 0,
                        5);
    tcase_add_loop_test(t, call_cancelled_after_the_process_was_stopped_is_never_told, 0, 5);
    tcase_add_test(t, timeout_without_end_is_no_timeout_in_the_past);
    return hft_suite_run("etcd/call", t, NULL);
}
