/* All members of a cluster are asked how they are, and whether they agree. */
#include <check.h>
#include <string.h>

#include "etcd/survey.h"
#include "support/admin.h"
#include "support/client.h"
#include "support/cluster.h"
#include "support/suite.h"

static struct hft_cluster cluster;
static struct hft_client client;

struct view {
    unsigned done;
    struct hf_survey_result result;
};

static void setup(void)
{
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, cluster.member[0].endpoint, cluster.member[1].endpoint,
                    cluster.member[2].endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}

static void on_survey(const struct hf_survey_result *result, void *arg)
{
    struct view *view = arg;

    view->done++;
    view->result = *result;
    ck_assert_ptr_nonnull(result->result.message);
}

static struct hf_survey_result ask(void)
{
    struct view view = { 0 };

    ck_assert_int_eq(hf_etcd_survey(client.etcd, on_survey, &view, NULL), HF_OK);
    hft_client_until(&client, &view.done, 1, 20000, "the survey");
    return view.result;
}

/* A member that is well may be late on a busy machine: asks until so many answered in time. */
static struct hf_survey_result ask_for(unsigned answers)
{
    struct hf_survey_result result;

    do {
        result = ask();
        ck_assert_uint_le(result.answered, answers);
    } while (result.answered < answers);
    return result;
}

START_TEST(members_that_are_well_agree)
{
    hf_rev revision = hft_put(&client, "k", "v", HF_NO_LEASE);
    struct hf_survey_result result = ask_for(3);

    ck_assert_int_eq(result.result.err, HF_OK);
    ck_assert(result.agrees);
    ck_assert(!result.no_space);
    ck_assert_int_ge(result.result.header.revision, revision);
    ck_assert_uint_gt(result.result.header.raft_term, 0);
}
END_TEST

/* All answer, with the same leader and revision: only the alarm says that it is worth nothing.
 */
START_TEST(members_of_which_one_is_corrupt_do_not_agree)
{
    struct hf_txn *txn = hf_txn_new();
    struct hf_survey_result result;
    struct hft_outcome refused;

    (void)ask_for(3);
    hft_etcd_raise_corrupt(&cluster.member[0]);
    hf_txn_if_create(txn, hf_bytes_of("new"), HF_TXN_EQUAL, 0);
    hf_txn_then_put(txn, hf_bytes_of("new"), hf_bytes_of("1"), HF_NO_LEASE);
    refused = hft_commit(&client, txn, true);
    ck_assert_int_eq(refused.err, HF_ECORRUPT);
    ck_assert_ptr_nonnull(strstr(refused.message, "corrupt cluster"));
    result = ask_for(3);
    ck_assert(result.corrupt);
    ck_assert(!result.agrees);
    ck_assert(!result.no_space);
    hft_etcd_disarm(&cluster.member[0]);
    while (!ask().agrees)
        continue;
    ck_assert(!ask().corrupt);
}
END_TEST

/* The two that are left elect their leader and go on, and still the cluster is not well. */
START_TEST(a_member_that_hangs_or_is_gone_is_missed_and_nobody_is_left_for_it)
{
    struct hft_etcd *hung = hft_cluster_follower(&cluster);
    struct hf_survey_result result;
    uint64_t rotations;

    (void)hft_put(&client, "k", "v", HF_NO_LEASE);
    rotations = hf_etcd_get_stats(client.etcd).rotations;
    hft_etcd_pause(hung);
    result = ask_for(2);
    ck_assert_int_eq(result.result.err, HF_OK);
    ck_assert(!result.agrees);
    hft_etcd_resume(hung);

    hft_etcd_kill(hung);
    (void)ask_for(2);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).rotations, rotations);
    hft_etcd_restart(hung);
    while (!ask().agrees)
        continue;
}
END_TEST

/* A single one of three answers, but cannot have heard of any leader's doings since. */
START_TEST(a_lone_member_agrees_with_nobody_and_no_member_at_all_is_an_error)
{
    struct hf_survey_result result;

    hft_etcd_kill(&cluster.member[1]);
    hft_etcd_kill(&cluster.member[2]);
    result = ask_for(1);
    ck_assert_int_eq(result.result.err, HF_OK);
    ck_assert(!result.agrees);

    hft_etcd_kill(&cluster.member[0]);
    result = ask();
    ck_assert_int_ne(result.result.err, HF_OK);
    ck_assert_uint_eq(result.answered, 0);
}
END_TEST

START_TEST(a_survey_that_is_cancelled_is_not_heard_of)
{
    struct view cancelled = { 0 };
    struct hf_survey *survey = NULL;

    hft_etcd_pause(&cluster.member[0]);
    ck_assert_int_eq(hf_etcd_survey(client.etcd, on_survey, &cancelled, &survey), HF_OK);
    hf_survey_cancel(survey);
    (void)ask();
    ck_assert_uint_eq(cancelled.done, 0);
    hft_etcd_resume(&cluster.member[0]);
}
END_TEST

/* As by a program that ends while it asks. */
START_TEST(a_client_that_closes_ends_its_survey)
{
    static struct view view;

    hft_etcd_pause(&cluster.member[0]);
    ck_assert_int_eq(hf_etcd_survey(client.etcd, on_survey, &view, NULL), HF_OK);
    hft_client_close(&client);
    ck_assert_uint_eq(view.done, 1);
    hft_client_open(&client, cluster.member[1].endpoint, NULL);
    hft_etcd_resume(&cluster.member[0]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("survey");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, members_of_which_one_is_corrupt_do_not_agree);
    tcase_add_test(t, members_that_are_well_agree);
    tcase_add_test(t, a_member_that_hangs_or_is_gone_is_missed_and_nobody_is_left_for_it);
    tcase_add_test(t, a_lone_member_agrees_with_nobody_and_no_member_at_all_is_an_error);
    tcase_add_test(t, a_survey_that_is_cancelled_is_not_heard_of);
    tcase_add_test(t, a_client_that_closes_ends_its_survey);
    return hft_suite_run("etcd/survey", t, NULL);
}
