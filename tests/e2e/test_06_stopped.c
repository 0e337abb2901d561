/* What was stopped on purpose stays stopped, whoever is started anew. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static bool is_later_life(void *arg)
{
    return hft_fleet_look(&fleet, "agents/w2/live").create_rev > *(const hf_rev *)arg;
}

/* The other agent of the host is started, and does a task that the stopped one could do, too:
 * by then everybody has had the opportunity. */
static void expect_only_the_other(hf_rev before, const char *task)
{
    hft_wait_or_fail(is_later_life, &before, HFT_FLEET_STEP_MS, "another life of w2");
    hft_fleet_submit(&fleet, task, 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, task, 3), 1);
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/live").count, 0);
    ck_assert_int_eq(hft_fleet_look(&fleet, "commands/h1/w1").count, 0);
    hft_fleet_check(&fleet);
}

START_TEST(a_stopped_agent_stays_stopped)
{
    hf_rev life;

    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", "w2", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    hft_fleet_await(&fleet, "agents/w2/live", "\"pid\"");
    free(hft_fleet_cli(&fleet, "stop", "w1", NULL));
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"terminated\"");
    life = hft_fleet_look(&fleet, "agents/w2/live").create_rev;

    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    hft_fleet_host_again(&fleet, 0);
    expect_only_the_other(life, "after-a-restart");

    life = hft_fleet_look(&fleet, "agents/w2/live").create_rev;
    hft_fleet_lose_host(&fleet, 0);
    hft_program_kill(&fleet.controllers[0]);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host_again(&fleet, 0);
    expect_only_the_other(life, "after-a-crash");

    free(hft_fleet_cli(&fleet, "start", "w1", NULL));
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    hft_fleet_check(&fleet);
}
END_TEST

static bool has_another_link(void *arg)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    return link > 0 && link != *(const pid_t *)arg;
}

/* It begins with the same configuration, and without what the one before it knew. */
static void check_with_the_next_link(void)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    ck_assert_int_eq(kill(link, SIGKILL), 0);
    hft_wait_or_fail(has_another_link, &link, HFT_FLEET_STEP_MS, "another link");
    expect_only_the_other(0, "after-a-link");
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/spec").count, 0);
}

/* Stopped before this agentd began, so that it has never started it, and then removed. */
START_TEST(a_removed_agent_stays_removed)
{
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", "w2", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    free(hft_fleet_cli(&fleet, "stop", "w1", NULL));
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    hft_fleet_host_again(&fleet, 0);
    hft_fleet_await(&fleet, "agents/w2/live", "\"pid\"");
    free(hft_fleet_cli(&fleet, "agent", "rm", "w1", NULL));
    expect_only_the_other(0, "after-it-was-removed");
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/spec").count, 0);
    check_with_the_next_link();
}
END_TEST

/* The word on a transient agent stays when that is swept: no agent, but somebody's to remove.
 */
START_TEST(what_is_wanted_of_an_agent_that_is_gone_can_be_removed)
{
    HF_CLEANUP_FREE char *list = NULL, *removed = NULL;
    HFT_CLEANUP_OUTPUT struct hft_output again = { 0 };

    hft_history_excuse(&fleet.history, hft_put(&fleet.hand, HFT_ROOT "wanted/w9",
                                               "{\"state\":\"stopped\"}", HF_NO_LEASE));
    list = hft_fleet_cli(&fleet, "ps", NULL);
    ck_assert_msg(strstr(list, "w9") == NULL, "%s", list);
    removed = hft_fleet_cli(&fleet, "agent", "rm", "w9", NULL);
    ck_assert_str_eq(removed, "w9: removed\n");
    ck_assert_int_eq(hft_fleet_look(&fleet, "wanted/w9").count, 0);
    hft_cli(&again, fleet.etcd.endpoint, "agent", "rm", "w9", NULL);
    ck_assert_int_eq(again.status, 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stopped");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_stopped_agent_stays_stopped);
    tcase_add_test(t, a_removed_agent_stays_removed);
    tcase_add_test(t, what_is_wanted_of_an_agent_that_is_gone_can_be_removed);
    return hft_suite_run("e2e: stopped", t, NULL);
}
