/* A leader stands still, or cannot be heard, for three times its lease, amid a recovery that it
 * has decided on. The other one leads and finishes it; nothing that the first one still sends
 * is accepted. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "support/fleet.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 12 };

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static void kill_agent_at_work(void)
{
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_fleet_kill_agent(&fleet, "w1");
}

static void check_that_the_second_did_it(hf_rev term)
{
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_look(&fleet, "controller/leader").create_rev, term);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\",\"actor\":\"c1\""),
                      0);
    ck_assert_uint_eq(
        hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\",\"actor\":\"c1\""), 0);
    hft_fleet_check(&fleet);
}

/* It goes on where it stood: before a write that it has decided on, or with one handed over. */
static const char *const POINTS[] = { "before:tasks/t", "sent:tasks/t" };

START_TEST(a_leader_that_stood_still_writes_nothing_late)
{
    hf_ms stopped_at;
    hf_rev term;

    hft_fleet_stop_at(&fleet, POINTS[_i]);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_stop_at(&fleet, NULL);
    hft_fleet_lead(&fleet, 1, NULL);
    kill_agent_at_work();
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, POINTS[_i]);
    stopped_at = hft_now();
    hft_fleet_until_leads(&fleet, 1);
    term = hft_fleet_look(&fleet, "controller/leader").create_rev;
    hft_pass_until(stopped_at + 3 * HFT_LEADER_TTL_MS);
    ck_assert_int_eq(kill(fleet.controllers[0].pid, SIGCONT), 0);
    hft_program_until_said(&fleet.controllers[0], "event=following", HFT_FLEET_STEP_MS);
    if (_i == 0)
        check_that_the_second_did_it(term);
    else /* it may have arrived at once, in the first one's time */
        ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    hft_fleet_check(&fleet);
}
END_TEST

static void begin_behind(const struct hft_proxy *proxy)
{
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", hft_proxy_endpoint(proxy));
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", fleet.etcd.endpoint);
}

/* It hears everything and is not heard: what it decided is on the way for as long, and arrives.
 */
START_TEST(writes_that_arrive_late_are_refused)
{
    struct hft_proxy *proxy = hft_proxy_new(fleet.etcd.client.number);
    hf_ms held_at;
    hf_rev term;

    begin_behind(proxy);
    hft_fleet_lead(&fleet, 1, NULL);
    hft_program_until_said(&fleet.controllers[1], "event=synced", HFT_FLEET_STEP_MS);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_HOLD);
    held_at = hft_now();
    hft_fleet_kill_agent(&fleet, "w1");
    hft_program_until_said(&fleet.controllers[0], "subject=\"agent w1\"", HFT_FLEET_STEP_MS);
    hft_fleet_until_leads(&fleet, 1);
    term = hft_fleet_look(&fleet, "controller/leader").create_rev;
    hft_pass_until(held_at + 3 * HFT_LEADER_TTL_MS);
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_PASS);
    hft_program_until_said(&fleet.controllers[0], "event=following", HFT_FLEET_STEP_MS);
    check_that_the_second_did_it(term);
    hft_program_kill(&fleet.controllers[0]);
    hft_proxy_free(proxy);
}
END_TEST

static bool exists(void *key)
{
    return hft_fleet_look(&fleet, key).count == 1;
}

/* What waits before a proxy that holds it: more than who leads says to stay the leader. */
static bool has_said_much(void *proxy)
{
    FILE *sockets = fopen("/proc/net/tcp", "re");
    unsigned port, waiting, most = 0;
    char line[256];

    ck_assert_ptr_nonnull(sockets);
    while (fgets(line, sizeof line, sockets) != NULL) {
        if (sscanf(line, " %*u: %*x:%x %*x:%*x %*x %*x:%x", &port, &waiting) == 2 &&
            port == hft_proxy_port(proxy) && waiting > most)
            most = waiting;
    }
    (void)fclose(sockets);
    return most > 800;
}

/* Nobody else leads and nothing has changed: of all that the late write is compared with, the
 * term alone is not what it was. What it wanted is done in the next term. */
START_TEST(a_term_that_is_over_is_enough_to_refuse_a_late_write)
{
    struct hft_proxy *proxy = hft_proxy_new(fleet.etcd.client.number);
    hf_rev reset_at;

    begin_behind(proxy);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_HOLD);
    hft_fleet_kill_agent(&fleet, "w1");
    hft_wait_or_fail(has_said_much, proxy, HFT_FLEET_STEP_MS, "a decision");
    hft_process_pause(fleet.controllers[0].pid); /* or it would take back what it said */
    hft_fleet_await(&fleet, "controller/leader", NULL);
    ck_assert(!exists((void *)"recoveries/t"));
    hft_proxy_set(proxy, HFT_PROXY_UP, HFT_PROXY_PASS);
    hft_process_resume(fleet.controllers[0].pid);
    hft_wait_or_fail(exists, (void *)"recoveries/t", HFT_FLEET_STEP_MS, "the reset");
    reset_at = hft_fleet_look(&fleet, "recoveries/t").create_rev;
    hft_wait_or_fail(exists, (void *)"controller/leader", HFT_FLEET_STEP_MS, "a leader");
    ck_assert_int_gt(reset_at, hft_fleet_look(&fleet, "controller/leader").create_rev);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    hft_fleet_check(&fleet);
    hft_program_kill(&fleet.controllers[0]);
    hft_proxy_free(proxy);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("late leader");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, a_leader_that_stood_still_writes_nothing_late, 0,
                        sizeof POINTS / sizeof POINTS[0]);
    tcase_add_test(t, writes_that_arrive_late_are_refused);
    tcase_add_test(t, a_term_that_is_over_is_enough_to_refuse_a_late_write);
    return hft_suite_run("e2e: late leader", t, NULL);
}
