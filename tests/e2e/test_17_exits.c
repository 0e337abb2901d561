/* Agents that end by themselves, and which of them are started again: who said goodbye never,
 * who finished when there is work, and by the policy of each. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
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

/* The first life of w1 does what the test wants; every other agent and life works. */
static void begin(const char *first_life, const char *options)
{
    char script[1000];

    (void)snprintf(script, sizeof script,
                   "api() { curl -s --unix-socket \"$HOLDFAST_SOCKET\" -H "
                   "\"Authorization: Bearer $HOLDFAST_TOKEN\" -d \"$2\" "
                   "http://agentd/v1/$1; }\n"
                   "if [ \"$HOLDFAST_AGENT\" = w1 ] && ! [ -e \"$LEDGER.lived\" ]; then\n"
                   "touch \"$LEDGER.lived\"\n%s\nfi\nexec \"$DEMO\"\n",
                   first_life);
    hft_fleet_launch(&fleet, script);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    fleet.agent_options = options;
    hft_fleet_host(&fleet, 0, "w1", NULL);
    fleet.role = "other";
    fleet.agent_options = "";
    hft_fleet_host(&fleet, 1, "w2", NULL);
    hft_fleet_await(&fleet, "agents/w2/live", "\"pid\"");
}

struct life {
    hf_rev before;
};

static bool has_another_life(void *arg)
{
    struct hft_outcome live = hft_fleet_look(&fleet, "agents/w2/live");

    return live.count == 1 && live.create_rev > ((struct life *)arg)->before;
}

/* What the controller does about w1 it has done when it has done all this about w2. */
static void let_it_decide(void)
{
    struct life life = { hft_fleet_look(&fleet, "agents/w2/live").create_rev };

    hft_fleet_kill_agent(&fleet, "w2");
    hft_wait_or_fail(has_another_life, &life, HFT_FLEET_STEP_MS, "another life of w2");
}

static unsigned count_starts(const char *agent)
{
    char part[100];

    (void)snprintf(part, sizeof part,
                   "\"kind\":\"restart_ordered\",\"actor\":\"c1\",\"agent\":\"%s\"", agent);
    return hft_fleet_count(&fleet, "events/", part);
}

static void expect_not_started(const char *kind, const char *why)
{
    HF_CLEANUP_FREE char *text = NULL;

    hft_fleet_await(&fleet, "agents/w1/exit", kind);
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    let_it_decide();
    ck_assert_uint_eq(count_starts("w2"), 1);
    ck_assert_uint_eq(count_starts("w1"), 0);
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/live").count, 0);
    text = hft_fleet_cli(&fleet, "explain", "w1", NULL);
    ck_assert_msg(strstr(text, why) != NULL, "%s is not in:\n%s", why, text);
}

/* Also while there is work for it. */
START_TEST(who_said_goodbye_is_not_started_again)
{
    begin("api leave '{\"reason\": \"enough\"}'; exit 0", "");
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"left\"");
    hft_fleet_submit(&fleet, "t", 2, 0.1);
    expect_not_started("\"kind\":\"left\"", "it said goodbye");
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"pending\"");
    free(hft_fleet_cli(&fleet, "start", "w1", NULL)); /* a person may want it */
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 2), 1);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(who_finished_is_started_again_when_there_is_work)
{
    begin("exit 0", "");
    expect_not_started("\"kind\":\"finished\"", "it finished");
    hft_fleet_submit(&fleet, "t", 2, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 2), 1);
    ck_assert_uint_eq(count_starts("w1"), 1);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(who_is_always_wanted_is_started_again_without_work)
{
    begin("exit 0", "restart: always\n");
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"finished\"");
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    let_it_decide();
    ck_assert_uint_eq(count_starts("w1"), 1);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(who_is_never_to_be_started_again_is_not)
{
    begin("api heartbeat '{\"status\": \"healthy\"}'; kill -SEGV $$", "restart: never\n");
    expect_not_started("\"kind\":\"crashed\"", "by its restart policy that is the end");
    hft_fleet_submit(&fleet, "t", 2, 0.1);
    let_it_decide();
    ck_assert_uint_eq(count_starts("w1"), 0);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"pending\"");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("exits");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_said_goodbye_is_not_started_again);
    tcase_add_test(t, who_finished_is_started_again_when_there_is_work);
    tcase_add_test(t, who_is_always_wanted_is_started_again_without_work);
    tcase_add_test(t, who_is_never_to_be_started_again_is_not);
    return hft_suite_run("e2e: exits", t, NULL);
}
