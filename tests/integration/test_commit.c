/* Plans on a real etcd: done, refused, and once only when answers are lost. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rows.h"
#include "io/commit.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client;

struct outcome {
    unsigned done;
    enum hf_outcome what;
    hf_rev revision;
    unsigned resent;
};

static void on_commit(const struct hf_commit_result *result, void *arg)
{
    struct outcome *outcome = arg;

    outcome->done++;
    outcome->what = result->outcome;
    outcome->revision = result->revision;
    outcome->resent = result->result.resent;
}

static void setup(void)
{
    char endpoint[64];

    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    (void)snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", hft_proxy_port(proxy));
    hft_client_open(&client, endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

static Holdfast__V1__Task make_task(void)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;

    task.id = (char *)"t";
    task.role = (char *)"r";
    return task;
}

static void begin_submit(struct outcome *outcome, const char *op_id, hf_ms timeout)
{
    Holdfast__V1__Task task = make_task();
    struct hf_plan plan;

    hf_plan_init(&plan, "default", HF_WRITER_OPERATOR, op_id);
    hf_row_submit(&plan, &task);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    ck_assert_int_eq(hf_commit_start(&client.backend, &plan, timeout, on_commit, outcome, NULL),
                     HF_OK);
    hf_plan_done(&plan);
}

static struct outcome submit(const char *op_id)
{
    struct outcome outcome = { 0 };

    begin_submit(&outcome, op_id, 0);
    hft_client_until(&client, &outcome.done, 1, 20000, "the outcome");
    return outcome;
}

static struct hft_outcome read_task(void)
{
    struct hft_outcome outcome = { 0 };
    struct hf_range_request request = { .range.key = hf_bytes_of("/holdfast/default/tasks/t") };

    ck_assert_int_eq(hf_etcd_range(client.etcd, &request, hft_on_range, &outcome, NULL), HF_OK);
    hft_await(&client, &outcome, 10000);
    return outcome;
}

START_TEST(a_plan_is_done_and_its_copy_refused)
{
    struct outcome first = submit("op1"), second = submit("op2");

    ck_assert_int_eq(first.what, HF_OUTCOME_DONE);
    ck_assert_int_eq(second.what, HF_OUTCOME_REFUSED);
    ck_assert_int_eq(read_task().mod_rev, first.revision);
}
END_TEST

START_TEST(s3_a_plan_whose_answer_is_lost_is_done_once)
{
    struct outcome outcome = { 0 };

    (void)hft_put(&client, "warm", "", HF_NO_LEASE); /* the connection is there */
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    begin_submit(&outcome, "op1", 20000);
    while (hft_etcd_revision(&server) < 3) /* it has happened, and nobody knows */
        (void)uv_run(&client.loop.uv, UV_RUN_NOWAIT);
    ck_assert_uint_eq(outcome.done, 0);
    hft_proxy_heal(proxy);
    hft_client_until(&client, &outcome.done, 1, 30000, "the outcome");
    ck_assert_int_eq(outcome.what, HF_OUTCOME_DONE);
    ck_assert_uint_gt(outcome.resent, 0);
    ck_assert_int_eq(read_task().create_rev, outcome.revision);
    ck_assert_int_eq(read_task().mod_rev, outcome.revision);
}
END_TEST

START_TEST(s3_a_plan_that_somebody_else_beat_is_refused_after_a_lost_answer)
{
    struct outcome outcome = { 0 };

    ck_assert_int_eq(submit("op1").what, HF_OUTCOME_DONE);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    begin_submit(&outcome, "op2", 20000);
    while (hf_etcd_get_stats(client.etcd).retries == 0)
        (void)uv_run(&client.loop.uv, UV_RUN_ONCE);
    hft_proxy_heal(proxy);
    hft_client_until(&client, &outcome.done, 1, 30000, "the outcome");
    ck_assert_int_eq(outcome.what, HF_OUTCOME_REFUSED);
}
END_TEST

START_TEST(a_plan_that_was_never_answered_is_unknown_and_one_never_sent_has_failed)
{
    struct outcome unknown = { 0 }, failed = { 0 };

    (void)hft_put(&client, "warm", "", HF_NO_LEASE);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    begin_submit(&unknown, "op1", 3000);
    hft_client_until(&client, &unknown.done, 1, 30000, "giving up");
    ck_assert_int_eq(unknown.what, HF_OUTCOME_UNKNOWN);

    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    begin_submit(&failed, "op2", 3000);
    hft_client_until(&client, &failed.done, 1, 30000, "giving up");
    ck_assert_int_eq(failed.what, HF_OUTCOME_FAILED);
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("commit");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_plan_is_done_and_its_copy_refused);
    tcase_add_test(t, s3_a_plan_whose_answer_is_lost_is_done_once);
    tcase_add_test(t, s3_a_plan_that_somebody_else_beat_is_refused_after_a_lost_answer);
    tcase_add_test(t, a_plan_that_was_never_answered_is_unknown_and_one_never_sent_has_failed);
    return hft_suite_run("io/commit", t, NULL);
}
