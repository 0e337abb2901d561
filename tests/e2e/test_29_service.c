/* agentd and the controller as services of a manager that wants to be told (systemd's
 * Type=notify): when they are ready, that they live, that they end. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/manager.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

enum { WATCHDOG_MS = 1234 };

static struct hft_fleet fleet;
static struct hft_manager manager;

static void setup(void)
{
    hft_fleet_open(&fleet);
    hft_manager_open(&manager, fleet.etcd.dir.path, WATCHDOG_MS);
}

static void teardown(void)
{
    hft_manager_close(&manager);
    hft_fleet_close(&fleet);
}

/* What is still to be heard of the past. */
static void forget_what_was_said(void)
{
    while (hft_manager_hear(&manager, 0) != NULL)
        continue;
}

START_TEST(a_controller_says_when_it_is_ready_that_it_lives_and_that_it_ends)
{
    fleet.controllers[0].more_env = fleet.controllers[1].more_env = manager.env;
    hft_fleet_lead(&fleet, 0, NULL);
    hft_manager_until(&manager, "READY=1\nSTATUS=", "STOPPING");
    if (strstr(manager.heard, "Leads.") == NULL) /* it knew everything before it did */
        hft_manager_until(&manager, "STATUS=Leads.", "STOPPING");
    for (int i = 0; i < 3; i++)
        hft_manager_until(&manager, "WATCHDOG=1", "STOPPING");
    hft_fleet_lead(&fleet, 1, NULL);
    hft_manager_until(&manager, "READY=1\nSTATUS=Stands by.", "STOPPING");
    ck_assert_int_eq(hft_program_stop(&fleet.controllers[0]), 0);
    hft_manager_until(&manager, "STOPPING=1", NULL);
    hft_manager_until(&manager, "STATUS=Leads.", NULL); /* the other one */
}
END_TEST

START_TEST(a_controller_that_finds_no_etcd_is_not_ready)
{
    fleet.controllers[0].more_env = manager.env;
    hft_etcd_stop(&fleet.etcd);
    hft_fleet_lead(&fleet, 0, "--etcd-wait", "2s", NULL);
    hft_manager_until(&manager, "WATCHDOG=1", "READY");
    hft_manager_until(&manager, "STOPPING=1", "READY");
    ck_assert_int_eq(hft_program_wait(&fleet.controllers[0], HFT_FLEET_STEP_MS), 5);
    hft_etcd_restart(&fleet.etcd);
}
END_TEST

/* agentd holds no lease before etcd has given it one. */
START_TEST(agentd_is_ready_when_it_holds_a_lease)
{
    fleet.hosts[0].more_env = manager.env;
    hft_etcd_stop(&fleet.etcd);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_manager_until(&manager, "STATUS=Waits for etcd", "READY");
    for (int i = 0; i < 3; i++)
        hft_manager_until(&manager, "WATCHDOG=1", "READY");
    hft_etcd_restart(&fleet.etcd);
    hft_manager_until(&manager, "READY=1\nSTATUS=Holds its lease.", NULL);
    hft_fleet_await(&fleet, "hosts/h1/live", "leaseId");

    forget_what_was_said();
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    hft_manager_until(&manager, "STOPPING=1", NULL);
}
END_TEST

static bool has_another_link(void *arg)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    return link > 0 && link != *(const pid_t *)arg;
}

/* A link comes and goes; the service, and its agents, do not. */
START_TEST(a_dead_link_is_no_business_of_the_manager)
{
    pid_t link, agent;

    fleet.hosts[0].more_env = manager.env;
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    hft_manager_until(&manager, "READY=1", "STOPPING");
    link = hft_fleet_link(&fleet, 0);
    agent = hft_fleet_agent(&fleet, "w1");
    ck_assert_int_eq(kill(link, SIGKILL), 0);
    hft_wait_or_fail(has_another_link, &link, HFT_FLEET_STEP_MS, "another link");
    forget_what_was_said();
    for (int i = 0; i < 3; i++)
        hft_manager_until(&manager, "WATCHDOG=1", "STOPPING");
    ck_assert_int_eq(hft_fleet_agent(&fleet, "w1"), agent);
    ck_assert_int_eq(kill(agent, 0), 0);
    hft_fleet_submit(&fleet, "t", 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 3), 1);

    /* It waits for agents as long as they may take. */
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    hft_manager_until(&manager, "EXTEND_TIMEOUT_USEC=", NULL);
}
END_TEST

static bool has_env(void *path)
{
    HF_CLEANUP_FREE char *text = hft_read_text(path, NULL);

    return strstr(text, "HOLDFAST_AGENT=w1\n") != NULL;
}

/* What is meant for agentd is not for its agents: they would speak for it. */
START_TEST(agents_do_not_find_the_managers_socket)
{
    HF_CLEANUP_FREE char *text = NULL;
    char file[HFT_PATH_MAX + 16], script[HFT_PATH_MAX + 64];

    (void)snprintf(file, sizeof file, "%s/env", fleet.etcd.dir.path);
    (void)snprintf(script, sizeof script, "env >%s\nexec \"$DEMO\"\n", file);
    fleet.hosts[0].more_env = manager.env;
    hft_fleet_launch(&fleet, script);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_wait_or_fail(has_env, file, HFT_FLEET_STEP_MS, "the agent's environment");
    text = hft_read_text(file, NULL);
    ck_assert_ptr_nonnull(strstr(text, "\nNOTIFY_SOCKET=/")); /* the one that agentd made */
    ck_assert_msg(strstr(text, manager.address) == NULL, "%s", text);
    ck_assert_msg(strstr(text, manager.watchdog_env) == NULL, "%s", text);
    ck_assert_msg(strstr(text, "WATCHDOG_PID=") == NULL, "%s", text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("service");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_controller_says_when_it_is_ready_that_it_lives_and_that_it_ends);
    tcase_add_test(t, a_controller_that_finds_no_etcd_is_not_ready);
    tcase_add_test(t, agentd_is_ready_when_it_holds_a_lease);
    tcase_add_test(t, a_dead_link_is_no_business_of_the_manager);
    tcase_add_test(t, agents_do_not_find_the_managers_socket);
    return hft_suite_run("e2e: service", t, NULL);
}
