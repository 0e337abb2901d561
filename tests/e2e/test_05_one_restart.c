/* A hundred reasons at once to start an agent anew, with two controllers: it is started once.
 *
 * The agentd's link and both controllers stand still while the reasons come, so that all of
 * them mean the same life. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 15, ORDERS = 84, PEOPLE = 15 }; /* and one SIGKILL */

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* `holdfast restart w1`, by many people at once; all of them are told that it is done. */
static void restart_by_people(void)
{
    pid_t people[PEOPLE];

    for (unsigned i = 0; i < PEOPLE; i++)
        people[i] = hft_cli_spawn(fleet.etcd.endpoint, "restart", "w1", NULL);
    for (unsigned i = 0; i < PEOPLE; i++) {
        int status = hft_process_reap(people[i], HFT_FLEET_STEP_MS);

        /* 4: others changed the record again and again before this one could. */
        ck_assert_msg(WIFEXITED(status) &&
                          (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4),
                      "%#x", (unsigned)status);
    }
}

/* What a program of somebody's own may write, all of it under way at the same time. */
static void restart_by_writes(long long life)
{
    static struct hft_outcome outcomes[ORDERS];
    char json[200];

    (void)snprintf(json, sizeof json,
                   "{\"state\":\"running\",\"endUpto\":\"%lld\",\"by\":\"a program\"}", life);
    memset(outcomes, 0, sizeof outcomes);
    for (unsigned i = 0; i < ORDERS; i++) {
        struct hf_txn *txn = hf_txn_new();

        hf_txn_then_put(txn, hf_bytes_of(HFT_ROOT "wanted/w1"), hf_bytes_of(json), HF_NO_LEASE);
        ck_assert_int_eq(
            hf_txn_commit(fleet.hand.etcd, txn, NULL, hft_on_txn, &outcomes[i], NULL), HF_OK);
        hf_txn_free(txn);
    }
    for (unsigned i = 0; i < ORDERS; i++) {
        hft_await(&fleet.hand, &outcomes[i], HFT_FLEET_STEP_MS);
        ck_assert(outcomes[i].succeeded);
    }
}

/* Who of the two does not lead when they go on. */
START_TEST(a_hundred_reasons_at_once_are_followed_by_one_start)
{
    pid_t link;
    long long life;

    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_lead(&fleet, 1, NULL);
    fleet.ttl = 12 * HFT_FLEET_TTL_MS; /* however long all these people take */
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 4);
    life = hft_fleet_look(&fleet, "agents/w1/live").create_rev;
    link = hft_fleet_link(&fleet, 0);
    ck_assert_int_eq(kill(link, SIGSTOP), 0);
    hft_process_pause(fleet.controllers[0].pid);
    hft_process_pause(fleet.controllers[1].pid);
    restart_by_writes(life);
    restart_by_people();
    hft_fleet_kill_agent(&fleet, "w1");
    if (_i == 1)
        hft_program_kill(&fleet.controllers[0]);
    else
        hft_process_resume(fleet.controllers[0].pid);
    hft_process_resume(fleet.controllers[1].pid);
    ck_assert_int_eq(kill(link, SIGCONT), 0);

    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    hft_fleet_expect_one_start(&fleet, "w1");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 1);
    hft_fleet_await(&fleet, "health/w1", "\"state\":\"healthy\"");
    hft_fleet_await(&fleet, "commands/h1/w1", NULL);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("one restart");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, a_hundred_reasons_at_once_are_followed_by_one_start, 0, 2);
    return hft_suite_run("e2e: one restart", t, NULL);
}
