/* What becomes of an agent that is cut off from etcd, where its policy is not to stand still:
 * `kill` ends it, and `hold` lets it go on, and then nobody takes its place until its host is
 * back or a person says that it is lost. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 30 };

static struct hft_fleet fleet;
static struct hft_proxy *wire; /* of hosts that may be cut off */

static void setup(void)
{
    hft_fleet_open(&fleet);
    wire = hft_proxy_new(fleet.etcd.client.number);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
    hft_proxy_free(wire);
}

static void host_with_a_wire(unsigned i, const char *agent, const char *options)
{
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", hft_proxy_endpoint(wire));
    fleet.agent_options = options;
    hft_fleet_host(&fleet, i, agent, NULL);
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", fleet.etcd.endpoint);
}

static bool is_gone(void *arg)
{
    return kill(*(const pid_t *)arg, 0) != 0 && errno == ESRCH;
}

/* It is ended while nobody can have taken its place; when the wire is whole again its end is
 * told as what it was, and a successor goes on. */
START_TEST(who_is_to_be_killed_is_ended_and_started_again)
{
    pid_t agent;

    hft_fleet_lead(&fleet, 0, NULL);
    host_with_a_wire(0, "w1", "fence: kill\n");
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    agent = hft_fleet_agent(&fleet, "w1");
    hft_proxy_set_both(wire, HFT_PROXY_HOLD);
    hft_wait_or_fail(is_gone, &agent, HFT_FLEET_STEP_MS, "the agent's end");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 0);
    hft_proxy_heal(wire);
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"fenced\"");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 1);
    hft_fleet_check(&fleet);
}
END_TEST

/* Beside its work it does something all the time, without asking anybody. */
static const char BEATS[] =
    "while :; do echo >>\"$LEDGER.$HOLDFAST_AGENT.$HOLDFAST_INCARNATION\"; sleep 0.05; done &\n"
    "exec \"$DEMO\"\n";

static long long beats_of(long long incarnation)
{
    char path[HFT_PATH_MAX + 128];
    struct stat status;

    (void)snprintf(path, sizeof path, "%s.w1.%lld", fleet.ledger, incarnation);
    return stat(path, &status) == 0 ? (long long)status.st_size : 0;
}

struct beats {
    long long incarnation, before;
};

static bool has_beaten(void *arg)
{
    const struct beats *beats = arg;

    return beats_of(beats->incarnation) > beats->before;
}

/* h1 and h3 are cut off; w3 of h3, which stands still, is replaced: so w1 could have been. */
START_TEST(who_holds_runs_on_and_is_not_replaced_before_a_person_says_so)
{
    struct beats beats;
    pid_t agent;

    hft_fleet_launch(&fleet, BEATS);
    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    host_with_a_wire(0, "w1", "fence: hold\n");
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    host_with_a_wire(2, "w3", "");
    hft_fleet_await(&fleet, "agents/w3/live", "\"pid\"");
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_await(&fleet, "hosts/h2/live", "\"bootId\"");
    agent = hft_fleet_agent(&fleet, "w1");
    beats.incarnation = hft_fleet_look(&fleet, "agents/w1/live").create_rev;

    hft_proxy_set_both(wire, HFT_PROXY_HOLD);
    hft_fleet_await(&fleet, "agents/w3/live", "\"host\":\"h2\"");
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/live").count, 0);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 0);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "tasks/t", "\"state\":\"in_progress\""), 1);
    beats.before = beats_of(beats.incarnation);
    hft_wait_or_fail(has_beaten, &beats, HFT_FLEET_STEP_MS, "a sign of life of who holds");

    free(hft_fleet_cli(&fleet, "host", "lost", "h1", NULL));
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h2\"");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    hft_proxy_heal(wire);
    hft_wait_or_fail(is_gone, &agent, HFT_FLEET_STEP_MS, "the end of who was replaced");
    hft_fleet_check(&fleet);
    ck_assert_uint_eq(hft_fleet_workers(&fleet, "t"), 2);
}
END_TEST

/* The wire is whole before anybody says so: it costs nothing. */
START_TEST(who_holds_and_comes_back_has_lost_nothing)
{
    pid_t agent;

    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    host_with_a_wire(0, "w1", "fence: hold\n");
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    agent = hft_fleet_agent(&fleet, "w1");
    hft_proxy_set_both(wire, HFT_PROXY_HOLD);
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    hft_pass_until(hft_now() + HFT_FLEET_TTL_MS); /* longer than its grace */
    hft_proxy_heal(wire);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 1);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 0);
    ck_assert_int_eq(hft_fleet_agent(&fleet, "w1"), agent);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 0);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fences");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_is_to_be_killed_is_ended_and_started_again);
    tcase_add_test(t, who_holds_runs_on_and_is_not_replaced_before_a_person_says_so);
    tcase_add_test(t, who_holds_and_comes_back_has_lost_nothing);
    return hft_suite_run("e2e: fences", t, NULL);
}
