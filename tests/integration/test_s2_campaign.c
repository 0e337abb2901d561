/* Leadership on one key: S2. */
#include <stdio.h>

#include <check.h>

#include "etcd/campaign.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"

#define KEY "leader"

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

struct ballot {
    unsigned done;
    int err;
    unsigned resent;
    bool held, won;
    hf_rev term;
    int64_t lease;
    char value[64];
};

static void on_campaign(const struct hf_campaign_result *result, void *arg)
{
    struct ballot *ballot = arg;

    ballot->done++;
    ballot->err = result->result.err;
    ballot->resent = result->result.resent;
    ballot->held = result->held;
    ballot->won = result->won;
    ballot->term = result->holder.create_rev;
    ballot->lease = result->holder.lease;
    if (result->holder.value.len > 0)
        (void)snprintf(ballot->value, sizeof ballot->value, "%.*s",
                       (int)result->holder.value.len, (const char *)result->holder.value.data);
}

static void start_run(struct ballot *ballot, const char *name, int64_t lease)
{
    ck_assert_int_eq(hf_campaign_run(client.etcd, hf_bytes_of(KEY), hf_bytes_of(name), lease,
                                     on_campaign, ballot, NULL),
                     HF_OK);
}

static struct ballot run(const char *name, int64_t lease)
{
    struct ballot ballot = { 0 };

    start_run(&ballot, name, lease);
    hft_client_until(&client, &ballot.done, 1, 20000, "the ballot");
    return ballot;
}

static struct ballot look(int64_t lease)
{
    struct ballot ballot = { 0 };

    ck_assert_int_eq(
        hf_campaign_look(client.etcd, hf_bytes_of(KEY), lease, on_campaign, &ballot, NULL),
        HF_OK);
    hft_client_until(&client, &ballot.done, 1, 20000, "the answer");
    return ballot;
}

static struct ballot resign(int64_t lease, hf_rev term)
{
    struct ballot ballot = { 0 };

    ck_assert_int_eq(hf_campaign_resign(client.etcd, hf_bytes_of(KEY), lease, term, on_campaign,
                                        &ballot, NULL),
                     HF_OK);
    hft_client_until(&client, &ballot.done, 1, 20000, "the resignation");
    return ballot;
}

START_TEST(s2_a_candidate_whose_lease_died_is_told_so_and_leaves_no_key)
{
    int64_t lease = hft_grant(&client, 10);
    struct ballot ballot;

    hft_revoke(&client, lease);
    ballot = run("a", lease);
    ck_assert_int_eq(ballot.err, HF_ENOENT);
    ck_assert(!ballot.won);
    ck_assert_int_eq(hft_read(&client, KEY).count, 0);
    ck_assert(!look(lease).held);
}
END_TEST

START_TEST(s2_without_a_lease_nobody_can_lead)
{
    struct ballot ballot = { 0 };

    ck_assert_int_eq(hf_campaign_run(client.etcd, hf_bytes_of(KEY), hf_bytes_of("a"),
                                     HF_NO_LEASE, on_campaign, &ballot, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hft_read(&client, KEY).count, 0);
    ck_assert_uint_eq(ballot.done, 0);
}
END_TEST

/* Somebody put the key by hand: it hangs on no lease, and neither do we. */
START_TEST(s2_key_without_a_lease_is_nobodys_victory)
{
    hft_put(&client, KEY, "ghost", HF_NO_LEASE);
    ck_assert(look(HF_NO_LEASE).held);
    ck_assert(!look(HF_NO_LEASE).won);
    ck_assert(resign(hft_grant(&client, 10), 1).held);
    ck_assert(!resign(hft_grant(&client, 10), 1).won);
}
END_TEST

START_TEST(s2_of_two_candidates_one_wins_and_the_other_sees_who)
{
    int64_t leases[2] = { hft_grant(&client, 10), hft_grant(&client, 10) };
    const char *names[2] = { "a", "b" };
    struct ballot ballots[2] = { 0 };
    int winner, loser;

    for (int i = 0; i < 2; i++)
        start_run(&ballots[i], names[i], leases[i]);
    for (int i = 0; i < 2; i++)
        hft_client_until(&client, &ballots[i].done, 1, 20000, "both ballots");
    ck_assert_int_eq(ballots[0].won + ballots[1].won, 1);
    winner = ballots[0].won ? 0 : 1;
    loser = 1 - winner;
    ck_assert(ballots[loser].held);
    ck_assert_int_eq(ballots[loser].lease, leases[winner]);
    ck_assert_int_eq(ballots[loser].term, ballots[winner].term);
    ck_assert_str_eq(ballots[loser].value, names[winner]);
    ck_assert_int_eq(hft_read(&client, KEY).create_rev, ballots[winner].term);
    ck_assert(look(leases[winner]).won);
    ck_assert(!look(leases[loser]).won);
}
END_TEST

/* Whose lease dies while another leads is not woken up as leader: there is no queue. */
START_TEST(s2_a_leader_whose_lease_dies_is_replaced_only_by_a_new_ballot)
{
    int64_t first = hft_grant(&client, 10), second = hft_grant(&client, 10);
    struct ballot won = run("a", first), next;

    ck_assert(won.won);
    ck_assert(!run("b", second).won);
    hft_revoke(&client, first);
    ck_assert_int_eq(hft_read(&client, KEY).count, 0);
    next = run("b", second);
    ck_assert(next.won);
    ck_assert_int_gt(next.term, won.term);
    ck_assert_int_eq(run("a", first).err, HF_OK); /* compare first: the key is taken, */
    ck_assert(!run("a", first).won);              /* so the dead lease is not even looked at */
}
END_TEST

START_TEST(s2_campaigning_again_finds_that_we_lead_already)
{
    int64_t lease = hft_grant(&client, 10);
    struct ballot first = run("a", lease), again = run("a", lease);

    ck_assert(first.won);
    ck_assert(again.won);
    ck_assert_int_eq(again.term, first.term);
}
END_TEST

static bool key_exists(void *arg)
{
    return hft_etcd_revision(&server) > *(const int64_t *)arg;
}

START_TEST(s2_a_ballot_whose_reply_is_lost_is_won_by_our_lease_id)
{
    int64_t lease = hft_grant(&client, 30);
    struct ballot ballot = { 0 };
    int64_t before = hft_etcd_revision(&server);

    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    start_run(&ballot, "a", lease);
    hft_loop_until(&client.loop, key_exists, &before, 10000, "etcd to create the key");
    ck_assert_uint_eq(ballot.done, 0);
    hft_proxy_heal(proxy);
    hft_client_until(&client, &ballot.done, 1, 20000, "the ballot");
    ck_assert_int_eq(ballot.err, HF_OK);
    ck_assert_uint_gt(ballot.resent, 0);
    ck_assert(ballot.won);
    ck_assert_int_eq(ballot.lease, lease);
    ck_assert_int_eq(ballot.term, hft_read(&client, KEY).create_rev);
    ck_assert_int_eq(hft_read(&client, KEY).version, 1);
}
END_TEST

START_TEST(s2_who_resigns_deletes_only_the_key_of_its_own_term)
{
    int64_t first = hft_grant(&client, 10), second = hft_grant(&client, 10);
    struct ballot won = run("a", first), next, late;

    ck_assert_int_eq(resign(first, won.term).err, HF_OK);
    ck_assert_int_eq(hft_read(&client, KEY).count, 0);

    next = run("b", second);
    ck_assert(next.won);
    late = resign(first, won.term); /* a copy that comes late */
    ck_assert_int_eq(late.err, HF_OK);
    ck_assert(late.held);
    ck_assert_int_eq(late.lease, second);
    ck_assert_int_eq(resign(first, next.term).err, HF_OK); /* another's term is not enough, */
    ck_assert_int_eq(resign(second, won.term).err, HF_OK); /* nor is our own of an older one */
    ck_assert_int_eq(hft_read(&client, KEY).create_rev, next.term);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("campaign");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, s2_a_candidate_whose_lease_died_is_told_so_and_leaves_no_key);
    tcase_add_test(t, s2_without_a_lease_nobody_can_lead);
    tcase_add_test(t, s2_key_without_a_lease_is_nobodys_victory);
    tcase_add_test(t, s2_of_two_candidates_one_wins_and_the_other_sees_who);
    tcase_add_test(t, s2_a_leader_whose_lease_dies_is_replaced_only_by_a_new_ballot);
    tcase_add_test(t, s2_campaigning_again_finds_that_we_lead_already);
    tcase_add_test(t, s2_a_ballot_whose_reply_is_lost_is_won_by_our_lease_id);
    tcase_add_test(t, s2_who_resigns_deletes_only_the_key_of_its_own_term);
    return hft_suite_run("etcd/campaign", t, NULL);
}
