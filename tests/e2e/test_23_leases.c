/* etcd takes leases back under agents that are well, one and all at once, and runs full: the
 * same processes go on, and nothing is lost or done twice. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 20, QUOTA = 4 << 20, PIECE = 1 << 19 };

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open_with(&fleet, &(struct hft_etcd_options){ .quota_bytes = QUOTA });
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* Host i has agent w<i+1> with task t<i+1>, which is at work. */
static void begin(unsigned hosts)
{
    char agent[16], task[16];

    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    hft_fleet_until_leads(&fleet, 0);
    for (unsigned i = 0; i < hosts; i++) {
        (void)snprintf(agent, sizeof agent, "w%u", i + 1);
        (void)snprintf(task, sizeof task, "t%u", i + 1);
        hft_fleet_host(&fleet, i, agent, NULL);
        hft_fleet_submit(&fleet, task, STEPS, 0.2);
        hft_fleet_until_step(&fleet, task, 3);
    }
}

static void take_back(int64_t lease)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%" PRIx64, lease);
    hft_etcdctl_ok(&fleet.etcd, NULL, "lease", "revoke", text, NULL);
}

static void expect_undisturbed(unsigned i, pid_t agent)
{
    char name[16], task[16], key[32];

    (void)snprintf(name, sizeof name, "w%u", i + 1);
    (void)snprintf(task, sizeof task, "t%u", i + 1);
    (void)snprintf(key, sizeof key, "tasks/%s", task);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, task, STEPS), 1);
    ck_assert_int_eq(hft_fleet_number(&fleet, key, "attempt"), 0);
    ck_assert_int_eq(hft_fleet_agent(&fleet, name), agent);
}

static void expect_nothing_done(void)
{
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 0);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 0);
    hft_fleet_check(&fleet);
}

/* Each loses its lease, all within a moment. */
START_TEST(who_loses_its_lease_and_is_well_goes_on)
{
    static const unsigned HOSTS[] = { 1, HFT_FLEET_SIZE };
    unsigned hosts = HOSTS[_i];
    int64_t leases[HFT_FLEET_SIZE];
    pid_t agents[HFT_FLEET_SIZE];

    begin(hosts);
    for (unsigned i = 0; i < hosts; i++) {
        char key[32], name[16];

        (void)snprintf(name, sizeof name, "w%u", i + 1);
        (void)snprintf(key, sizeof key, "agents/%s/live", name);
        leases[i] = hft_fleet_look(&fleet, key).lease;
        agents[i] = hft_fleet_agent(&fleet, name);
    }
    for (unsigned i = 0; i < hosts; i++)
        take_back(leases[i]);
    for (unsigned i = 0; i < hosts; i++) {
        char key[32];

        (void)snprintf(key, sizeof key, "agents/w%u/live", i + 1);
        hft_program_until_said(&fleet.hosts[i], "event=adopted", HFT_FLEET_STEP_MS);
        expect_undisturbed(i, agents[i]);
        ck_assert_int_ne(hft_fleet_look(&fleet, key).lease, leases[i]);
    }
    expect_nothing_done();
}
END_TEST

/* Bodies of some task that is none, one over the other: what is overwritten takes space. */
static bool is_full(void *arg)
{
    static char text[PIECE];
    struct hf_bytes key = hf_bytes_of("/holdfast-data/default/tasks/no/payload");
    struct hft_outcome outcome = { 0 };

    (void)arg;
    memset(text, 'x', sizeof text);
    ck_assert_int_eq(hf_etcd_put(fleet.hand.etcd, key, (struct hf_bytes){ text, sizeof text },
                                 HF_NO_LEASE, hft_on_write, &outcome, NULL),
                     HF_OK);
    hft_await(&fleet.hand, &outcome, HFT_FLEET_STEP_MS);
    return outcome.err != HF_OK;
}

static void fill(void)
{
    hft_wait_or_fail(is_full, NULL, HFT_FLEET_STEP_MS, "etcd to be full");
}

static void make_room(void)
{
    char revision[32];

    (void)snprintf(revision, sizeof revision, "%" PRId64, hft_etcd_revision(&fleet.etcd));
    hft_etcdctl_ok(&fleet.etcd, NULL, "compact", revision, NULL);
    hft_etcdctl_ok(&fleet.etcd, NULL, "defrag", NULL);
    hft_etcdctl_ok(&fleet.etcd, NULL, "alarm", "disarm", NULL);
}

START_TEST(a_full_etcd_in_the_middle_of_a_task_costs_time_alone)
{
    unsigned step;
    pid_t agent;

    begin(1);
    agent = hft_fleet_agent(&fleet, "w1");
    fill();
    step = hft_fleet_last_step(&fleet, "t1");
    /* Longer than a lease: renewals need no space. */
    hft_pass_until(hft_now() + 3 * HFT_FLEET_TTL_MS / 2);
    ck_assert_uint_le(hft_fleet_last_step(&fleet, "t1"), step + 1);
    make_room();
    expect_undisturbed(0, agent);
    expect_nothing_done();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("leases");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, who_loses_its_lease_and_is_well_goes_on, 0, 2);
    tcase_add_test(t, a_full_etcd_in_the_middle_of_a_task_costs_time_alone);
    return hft_suite_run("e2e: leases", t, NULL);
}
