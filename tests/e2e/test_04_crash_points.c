/* Somebody dies at every point of a recovery, and it is finished by whoever comes next, once:
 * the leader with a standby behind it, and the link of the agentd that starts the successor. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/fleet.h"
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

/* A recovery is over when its task is, and then nothing is left of it. */
static void check_one_recovery(void)
{
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2); /* one death, one heir */
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 1);
    hft_fleet_await(&fleet, "health/w1", "\"state\":\"healthy\"");
    hft_fleet_await(&fleet, "commands/h1/w1", NULL);
    hft_fleet_check(&fleet);
}

static void kill_agent_at_work(void)
{
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_fleet_kill_agent(&fleet, "w1");
}

/* In the order in which a leader does them: task, recovery, order and health in one step; the
 * successor is seen, and the recovery has somebody to watch; the task is done, and what was
 * counted against it is forgotten. */
static const char *const LEADERS[] = {
    "before:tasks/t",      "sent:tasks/t",        "done:tasks/t",
    "before:health/w1#2",  "done:health/w1#2",    "before:recoveries/t#2",
    "sent:recoveries/t#2", "done:recoveries/t#2", "before:recoveries/t#3",
    "done:recoveries/t#3",
};

START_TEST(a_leader_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it)
{
    hft_fleet_crash_at(&fleet, LEADERS[_i]);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, NULL);
    hft_fleet_lead(&fleet, 1, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    kill_agent_at_work();
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, LEADERS[_i]);
    ck_assert_int_eq(hft_program_wait(&fleet.controllers[0], HFT_FLEET_STEP_MS), 128 + SIGKILL);
    hft_fleet_until_leads(&fleet, 1);
    check_one_recovery();
}
END_TEST

/* The end is written; the successor is registered while it is held, and then let go, with what
 * etcd says that it was given. */
static const char *const LINKS[] = {
    "before:agents/w1/exit",   "sent:agents/w1/exit",   "done:agents/w1/exit",
    "before:agents/w1/live#3", "sent:agents/w1/live#3", "done:agents/w1/live#3",
};

START_TEST(a_link_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it)
{
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, LINKS[_i]);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    kill_agent_at_work();
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, LINKS[_i]);
    check_one_recovery();
    ck_assert(hft_program_said(&fleet.hosts[0], "event=link_ended"));
}
END_TEST

int main(void)
{
    TCase *leaders = tcase_create("leaders"), *links = tcase_create("links");

    tcase_add_checked_fixture(leaders, setup, teardown);
    tcase_set_timeout(leaders, 240);
    tcase_add_loop_test(
        leaders,
        a_leader_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it, 0,
        sizeof LEADERS / sizeof LEADERS[0]);
    tcase_add_checked_fixture(links, setup, teardown);
    tcase_set_timeout(links, 240);
    tcase_add_loop_test(
        links, a_link_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it, 0,
        sizeof LINKS / sizeof LINKS[0]);
    return hft_suite_run("e2e: crash points", leaders, links, NULL);
}
