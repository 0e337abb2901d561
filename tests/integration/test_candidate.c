/* Several want to lead, one does: takeover, hand-over, a paused leader, a lost lease; and who
 * holds the key when answers are lost or somebody else has it: S2. */
#include <check.h>

#include "io/candidate.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

#define KEY "leader"

enum { TTL_MS = 6000 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static struct hft_client direct;

struct runner {
    struct hf_candidate *candidate;
    const char *name;
    unsigned elected, deposed, troubles, closed;
    hf_rev term, last_term;
};

static void on_change(const struct hf_candidate_view *view, void *arg)
{
    struct runner *runner = arg;
    bool leads = view->state == HF_ELECTION_LEADER;

    if (leads && runner->term == 0) {
        runner->elected++;
        ck_assert_int_ge(view->term, runner->last_term); /* the same one after a suspension */
        runner->last_term = view->term;
    }
    if (!leads && runner->term != 0)
        runner->deposed++;
    runner->term = leads ? view->term : 0;
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    (void)what;
    (void)err;
    (void)message;
    ((struct runner *)arg)->troubles++;
}

static void on_closed(void *arg)
{
    ((struct runner *)arg)->closed++;
}

static void stand(struct runner *runner, const char *name)
{
    struct hf_candidate_config cfg = { .key = KEY,
                                       .value = hf_bytes_of(name),
                                       .lease = hf_lease_policy_default(),
                                       .election = hf_election_policy_default(),
                                       .on_change = on_change,
                                       .on_trouble = on_trouble,
                                       .arg = runner };
    struct hf_error err = { "" };

    *runner = (struct runner){ .name = name };
    cfg.lease.ttl = TTL_MS;
    cfg.lease.ttl_floor = TTL_MS;
    cfg.lease.retry_max = 300;
    ck_assert_msg(hf_candidate_new(&client.backend, &cfg, &runner->candidate, &err) == HF_OK,
                  "%s", err.text);
}

static void stop(struct runner *runner)
{
    hf_candidate_close(runner->candidate, on_closed, runner);
    hft_client_until(&client, &runner->closed, 1, 10000, "the candidate to close");
}

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_client_open(&direct, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_client_close(&direct);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

START_TEST(one_of_three_leads_and_hands_over_at_once)
{
    struct runner runners[3];
    struct hft_ticker ticker;
    unsigned leader = 0;
    hf_ms left_at;

    hft_ticker_start(&ticker);
    stand(&runners[0], "a");
    hft_client_until(&client, &runners[0].elected, 1, 10000, "the first leader");
    stand(&runners[1], "b");
    stand(&runners[2], "c");
    ck_assert(hf_candidate_can_act(runners[0].candidate));

    hft_ticker_mark(&ticker);
    left_at = hft_now();
    stop(&runners[0]);
    while (runners[1].elected + runners[2].elected == 0)
        (void)uv_run(&client.loop.uv, UV_RUN_ONCE);
    /* The spread of candidates is half a second; long before the lease would be over. */
    ck_assert_int_le(hft_now() - left_at, 1500 + hft_ticker_stall(&ticker));
    leader = runners[1].elected > 0 ? 1 : 2;
    ck_assert_int_gt(runners[leader].term, runners[0].last_term);
    ck_assert_uint_eq(runners[3 - leader].elected, 0);
    stop(&runners[1]);
    stop(&runners[2]);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(s2_a_leader_whose_lease_is_revoked_steps_down_and_stands_again)
{
    struct runner runner;
    int64_t lease;

    stand(&runner, "a");
    hft_client_until(&client, &runner.elected, 1, 10000, "leadership");
    lease = hf_candidate_get_view(runner.candidate).lease;
    hft_revoke(&client, lease);
    hft_client_until(&client, &runner.deposed, 1, 5000, "stepping down");
    hft_client_until(&client, &runner.elected, 2, 10000, "leadership in a new term");
    ck_assert_int_ne(hf_candidate_get_view(runner.candidate).lease, lease);
    stop(&runner);
}
END_TEST

START_TEST(s1_a_leader_that_hears_nothing_stops_acting_before_another_can_lead)
{
    struct hft_ticker ticker;
    struct runner runner;
    hf_ms stopped_at;

    hft_ticker_start(&ticker);
    stand(&runner, "a");
    hft_client_until(&client, &runner.elected, 1, 10000, "leadership");
    hft_etcd_pause(&server);
    stopped_at = hft_now();
    hft_ticker_mark(&ticker);
    hft_client_until(&client, &runner.deposed, 1, 10000, "stepping down by its own clock");
    ck_assert_int_le(hft_now() - stopped_at, TTL_MS * 2 / 3 + 100 + hft_ticker_stall(&ticker));
    ck_assert(!hf_candidate_can_act(runner.candidate));
    hft_etcd_resume(&server);
    hft_client_until(&client, &runner.elected, 2, 20000, "leadership again");
    stop(&runner);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(a_candidate_waits_for_an_etcd_that_is_down)
{
    struct runner runner;

    hft_etcd_kill(&server);
    stand(&runner, "a");
    hft_client_until(&client, &runner.troubles, 2, 20000, "troubles");
    hft_etcd_restart(&server);
    hft_client_until(&client, &runner.elected, 1, 20000, "leadership");
    stop(&runner);
}
END_TEST

START_TEST(a_candidate_closes_while_etcd_hangs)
{
    struct runner runner;

    stand(&runner, "a");
    hft_client_until(&client, &runner.elected, 1, 10000, "leadership");
    hft_etcd_pause(&server);
    stop(&runner);
    hft_etcd_resume(&server);
}
END_TEST

/* The key says who leads: the lease of one of them, and the term that it believes in. */
static void expect_holder(const struct runner *runner)
{
    struct hf_candidate_view view = hf_candidate_get_view(runner->candidate);
    struct hft_outcome key = hft_read(&direct, KEY);

    ck_assert_int_eq(key.count, 1);
    ck_assert_int_eq(key.lease, view.lease);
    ck_assert_int_eq(key.create_rev, view.term);
    ck_assert_str_eq(key.value, runner->name);
}

static bool one_leads(void *runners)
{
    const struct runner *two = runners;

    return two[0].term != 0 || two[1].term != 0;
}

START_TEST(s2_of_two_that_stand_at_once_one_leads)
{
    struct runner runners[2];

    stand(&runners[0], "a");
    stand(&runners[1], "b");
    hft_loop_until(&client.loop, one_leads, runners, 30000, "a leader");
    ck_assert_uint_eq(runners[0].elected + runners[1].elected, 1);
    expect_holder(&runners[runners[0].term != 0 ? 0 : 1]);
    stop(&runners[0]);
    stop(&runners[1]);
    ck_assert_int_eq(hft_read(&direct, KEY).count, 0);
}
END_TEST

static bool has_lease(void *arg)
{
    return hf_candidate_get_view(((struct runner *)arg)->candidate).lease != 0;
}

/* It does not know yet that its lease is gone when the key becomes free. */
START_TEST(s2_a_candidate_whose_lease_died_leads_only_with_a_new_one)
{
    struct runner first, second;
    int64_t dead;

    stand(&first, "a");
    hft_client_until(&client, &first.elected, 1, 30000, "leadership");
    stand(&second, "b");
    hft_loop_until(&client.loop, has_lease, &second, 30000, "a lease");
    dead = hf_candidate_get_view(second.candidate).lease;
    hft_revoke(&direct, dead);
    stop(&first);
    hft_client_until(&client, &second.elected, 1, 30000, "leadership");
    ck_assert_int_ne(hf_candidate_get_view(second.candidate).lease, dead);
    expect_holder(&second);
    stop(&second);
}
END_TEST

static bool nobody_is_elected(void *arg)
{
    return ((struct runner *)arg)->elected == 0;
}

/* Somebody put the key by hand: it hangs on no lease, and whose it is nobody can say. */
START_TEST(s2_key_without_a_lease_is_nobodys_victory)
{
    struct runner runner;

    hft_put(&direct, KEY, "ghost", HF_NO_LEASE);
    stand(&runner, "a");
    hft_loop_until(&client.loop, has_lease, &runner, 30000, "a lease");
    hft_loop_hold(&client.loop, nobody_is_elected, &runner, 1500, "nobody leads");
    stop(&runner);
    ck_assert_str_eq(hft_read(&direct, KEY).value, "ghost");

    stand(&runner, "a");
    hft_delete(&direct, KEY);
    hft_client_until(&client, &runner.elected, 1, 30000, "leadership");
    expect_holder(&runner);
    stop(&runner);
}
END_TEST

static bool knows_of_another(void *arg)
{
    return has_lease(arg) && hf_candidate_get_view(((struct runner *)arg)->candidate).state ==
                                 HF_ELECTION_FOLLOWER;
}

static bool wants_to_lead(void *arg)
{
    return hf_candidate_get_view(((struct runner *)arg)->candidate).state !=
           HF_ELECTION_FOLLOWER;
}

static bool key_exists(void *arg)
{
    (void)arg;
    return hft_read(&direct, KEY).count == 1;
}

/* etcd creates the key, and no word of it gets through. The copy finds it taken, by us. */
START_TEST(s2_a_campaign_whose_answer_is_lost_is_won_by_our_lease)
{
    struct runner runner;

    hft_put(&direct, KEY, "ghost", HF_NO_LEASE);
    stand(&runner, "a");
    hft_loop_until(&client.loop, knows_of_another, &runner, 30000, "it to hear of the ghost");
    hft_proxy_delay(proxy, HFT_PROXY_DOWN, 1000); /* so that no answer is quicker than us */
    hft_delete(&direct, KEY);
    hft_loop_until(&client.loop, wants_to_lead, &runner, 30000, "it to hear of its end");
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    hft_loop_until(&client.loop, key_exists, NULL, 30000, "etcd to create the key");
    ck_assert_uint_eq(runner.elected, 0);
    hft_proxy_heal(proxy);
    hft_client_until(&client, &runner.elected, 1, 30000, "leadership");
    expect_holder(&runner);
    ck_assert_int_eq(hft_read(&direct, KEY).version, 1);
    stop(&runner);
}
END_TEST

/* One that was deposed, and has not heard of it, leaves: its successor's key stays. */
START_TEST(s2_who_resigns_deletes_only_the_key_of_its_own_term)
{
    int64_t other = hft_grant(&direct, 60);
    struct runner runner;

    stand(&runner, "a");
    hft_client_until(&client, &runner.elected, 1, 30000, "leadership");
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_HOLD);
    hft_delete(&direct, KEY);
    hft_put(&direct, KEY, "b", other);
    ck_assert(runner.term != 0);
    stop(&runner);
    hft_proxy_heal(proxy);
    ck_assert_int_eq(hft_read(&client, KEY).lease, other); /* behind whatever it has sent */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("candidate");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, one_of_three_leads_and_hands_over_at_once);
    tcase_add_test(t, s2_a_leader_whose_lease_is_revoked_steps_down_and_stands_again);
    tcase_add_test(t, s2_of_two_that_stand_at_once_one_leads);
    tcase_add_test(t, s2_a_candidate_whose_lease_died_leads_only_with_a_new_one);
    tcase_add_test(t, s2_key_without_a_lease_is_nobodys_victory);
    tcase_add_test(t, s2_a_campaign_whose_answer_is_lost_is_won_by_our_lease);
    tcase_add_test(t, s2_who_resigns_deletes_only_the_key_of_its_own_term);
    tcase_add_test(t, s1_a_leader_that_hears_nothing_stops_acting_before_another_can_lead);
    tcase_add_test(t, a_candidate_waits_for_an_etcd_that_is_down);
    tcase_add_test(t, a_candidate_closes_while_etcd_hangs);
    return hft_suite_run("io/candidate", t, NULL);
}
