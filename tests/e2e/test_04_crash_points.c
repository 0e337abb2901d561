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
    hft_fleet_expect_one_start(&fleet, "w1");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 1);
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

/* When it has leave. A leader that dies of giving it is followed by one that does, when the
 * lease of the first has run out, and the agent still is at work. */
static void kill_agent_with_leave(void)
{
    char leave[60];

    hft_fleet_submit(&fleet, "t", STEPS, 0.6);
    hft_fleet_until_step(&fleet, "t", 1);
    (void)snprintf(leave, sizeof leave, "\"heirOf\":\"%lld\"",
                   (long long)hft_fleet_look(&fleet, "agents/w1/live").create_rev);
    hft_fleet_await(&fleet, "health/w1", leave);
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

static void leader_dies_at(const char *point, const char *leave, void (*kill_agent)(void))
{
    hft_fleet_crash_at(&fleet, point);
    hft_fleet_lead(&fleet, 0, "--restart-leave", leave, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, NULL);
    hft_fleet_lead(&fleet, 1, "--restart-leave", leave, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    kill_agent();
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, point);
    ck_assert_int_eq(hft_program_wait(&fleet.controllers[0], HFT_FLEET_STEP_MS), 128 + SIGKILL);
    hft_fleet_until_leads(&fleet, 1);
    check_one_recovery();
}

START_TEST(a_leader_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it)
{
    leader_dies_at(LEADERS[_i], "0s", kill_agent_at_work);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"succeeded\""), 0);
}
END_TEST

/* Leave is given; the start that was made of it is counted, with the recovery; the recovery has
 * somebody to watch, and is forgotten. */
static const char *const GIVERS[] = {
    "before:health/w1", "sent:health/w1",   "done:health/w1",        "before:health/w1#2",
    "sent:health/w1#2", "done:health/w1#2", "before:recoveries/t#2", "sent:recoveries/t#2",
};

START_TEST(a_leader_that_dies_before_it_has_counted_is_followed_by_one_that_counts)
{
    leader_dies_at(GIVERS[_i], "1s", kill_agent_with_leave);
}
END_TEST

/* The end is written; the successor is registered while it is held, and then let go, with what
 * etcd says that it was given. */
static const char *const LINKS[] = {
    "before:agents/w1/exit",   "sent:agents/w1/exit",   "done:agents/w1/exit",
    "before:agents/w1/live#3", "sent:agents/w1/live#3", "done:agents/w1/live#3",
};

enum { LINK_POINTS = sizeof LINKS / sizeof LINKS[0] };

/* Each of them by order, and then by leave. */
START_TEST(a_link_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it)
{
    const char *point = LINKS[_i % LINK_POINTS];

    hft_fleet_lead(&fleet, 0, "--restart-leave", _i < LINK_POINTS ? "0s" : "1s", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, point);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    if (_i < LINK_POINTS)
        kill_agent_at_work();
    else
        kill_agent_with_leave();
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, point);
    check_one_recovery();
    ck_assert(hft_program_said(&fleet.hosts[0], "event=link_ended"));
}
END_TEST

int main(void)
{
    TCase *leaders = tcase_create("leaders"), *givers = tcase_create("givers"),
          *links = tcase_create("links");

    tcase_add_checked_fixture(leaders, setup, teardown);
    tcase_set_timeout(leaders, 240);
    tcase_add_loop_test(
        leaders,
        a_leader_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it, 0,
        sizeof LEADERS / sizeof LEADERS[0]);
    tcase_add_checked_fixture(givers, setup, teardown);
    tcase_set_timeout(givers, 240);
    tcase_add_loop_test(givers,
                        a_leader_that_dies_before_it_has_counted_is_followed_by_one_that_counts,
                        0, sizeof GIVERS / sizeof GIVERS[0]);
    tcase_add_checked_fixture(links, setup, teardown);
    tcase_set_timeout(links, 240);
    tcase_add_loop_test(
        links, a_link_that_dies_at_a_point_of_a_recovery_is_followed_by_one_that_finishes_it, 0,
        2 * LINK_POINTS);
    return hft_suite_run("e2e: crash points", leaders, givers, links, NULL);
}
