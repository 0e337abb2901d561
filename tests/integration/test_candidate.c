/* Several want to lead, one does: takeover, hand-over, a paused leader, a lost lease. */
#include <check.h>

#include "io/candidate.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/suite.h"
#include "support/ticker.h"

enum { TTL_MS = 6000 };

static struct hft_etcd server;
static struct hft_client client;

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
    struct hf_candidate_config cfg = { .key = "leader",
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
    hft_client_open(&client, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
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

int main(void)
{
    TCase *t = tcase_create("candidate");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, one_of_three_leads_and_hands_over_at_once);
    tcase_add_test(t, s2_a_leader_whose_lease_is_revoked_steps_down_and_stands_again);
    tcase_add_test(t, s1_a_leader_that_hears_nothing_stops_acting_before_another_can_lead);
    tcase_add_test(t, a_candidate_waits_for_an_etcd_that_is_down);
    tcase_add_test(t, a_candidate_closes_while_etcd_hangs);
    return hft_suite_run("io/candidate", t, NULL);
}
