/* No more tasks of a role run at once than the controller was told. What it promotes is judged
 * from the history of the etcd when the fleet is closed (support/history.h). */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { TASKS = 6, STEPS = 3 };

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static void name_task(unsigned i, char name[16])
{
    (void)snprintf(name, 16, "t%u", i + 1);
}

static void enqueue(const char *task, unsigned steps, double seconds)
{
    char payload[100];

    (void)snprintf(payload, sizeof payload, "{\"steps\": %u, \"seconds\": %g}", steps, seconds);
    free(hft_fleet_cli(&fleet, "task", "submit", "--queued", "--role", "r", "--id", task,
                       "--payload", payload, NULL));
}

/* The revision at which the key was last changed. */
static long long revision_of(const char *task)
{
    char key[64];
    HF_CLEANUP_FREE char *json = NULL;
    const char *at;

    (void)snprintf(key, sizeof key, HFT_ROOT "tasks/%s", task);
    hft_etcdctl_ok(&fleet.etcd, &json, "get", "-w", "json", key, NULL);
    at = strstr(json, "\"mod_revision\":");
    ck_assert_ptr_nonnull(at);
    return strtoll(at + strlen("\"mod_revision\":"), NULL, 10);
}

/* How many ran at that revision. */
static unsigned count_running(long long revision)
{
    static const char *const STATES[] = { "\"state\":\"pending\"", "\"state\":\"acknowledged\"",
                                          "\"state\":\"in_progress\"" };
    HF_CLEANUP_FREE char *records = NULL;
    unsigned count = 0;
    char rev[32];

    (void)snprintf(rev, sizeof rev, "--rev=%lld", revision);
    hft_etcdctl_ok(&fleet.etcd, &records, "get", "--prefix", "--print-value-only", rev,
                   HFT_ROOT "tasks/", NULL);
    for (size_t i = 0; i < sizeof STATES / sizeof STATES[0]; i++) {
        for (const char *at = records; (at = strstr(at, STATES[i])) != NULL; at++)
            count++;
    }
    return count;
}

/* Three agents are free, and two may work. */
START_TEST(six_tasks_are_done_two_at_a_time)
{
    unsigned together = 0;
    long long first, last = 0;

    hft_fleet_lead(&fleet, 0, "--running-max", "2", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_host(&fleet, 0, "w1", "w2", "w3", NULL);
    for (unsigned i = 0; i < TASKS; i++) {
        char task[16];

        name_task(i, task);
        enqueue(task, STEPS, 0.2);
    }
    first = revision_of("t1");
    for (unsigned i = 0; i < TASKS; i++) {
        char task[16];

        name_task(i, task);
        (void)hft_fleet_until_done(&fleet, task, STEPS);
        last = revision_of(task) > last ? revision_of(task) : last;
    }
    for (long long revision = first; revision <= last; revision++) {
        unsigned running = count_running(revision);

        ck_assert_msg(running <= 2, "%u ran at revision %lld", running, revision);
        together = running > together ? running : together;
    }
    ck_assert_uint_eq(together, 2);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(what_nobody_has_beyond_the_limit_waits_and_says_so)
{
    HF_CLEANUP_FREE char *shown = NULL, *explained = NULL;

    hft_fleet_lead(&fleet, 0, "--running-max-of", "other=9,r=1", "--running-max", "1", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_submit(&fleet, "t1", STEPS, 0.1);
    hft_fleet_await(&fleet, "tasks/t1", "\"state\":\"pending\"");
    hft_fleet_submit(&fleet, "t2", STEPS, 0.1);
    hft_fleet_await(&fleet, "tasks/t2", "\"state\":\"queued\"");
    hft_fleet_await(&fleet, "pending/r/t2", NULL);
    shown = hft_fleet_cli(&fleet, "task", "show", "t2", NULL);
    ck_assert_ptr_nonnull(strstr(shown, "it may be taken when fewer tasks of its role run"));
    explained = hft_fleet_cli(&fleet, "explain", "t2", NULL);
    ck_assert_ptr_nonnull(strstr(explained, "queued: 1 of 1 tasks of role r are running"));
    ck_assert_ptr_nonnull(
        strstr(explained, "it may be taken when fewer tasks of its role run"));
    hft_fleet_host(&fleet, 0, "w1", NULL);
    (void)hft_fleet_until_done(&fleet, "t1", STEPS);
    (void)hft_fleet_until_done(&fleet, "t2", STEPS);
    hft_fleet_check(&fleet);
}
END_TEST

/* Whoever leads next goes on with the same limit, and the queue is not forgotten. */
START_TEST(a_leader_that_dies_amid_a_promotion_leaves_the_rest_to_the_next)
{
    static const char *const POINTS[] = { "before:tasks/t3", "sent:tasks/t3", "done:tasks/t3" };

    hft_fleet_crash_at(&fleet, POINTS[_i]);
    hft_fleet_lead(&fleet, 0, "--running-max", "2", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, NULL);
    hft_fleet_host(&fleet, 0, "w1", "w2", "w3", NULL);
    enqueue("t1", STEPS, 0.1);
    enqueue("t2", STEPS, 0.1);
    enqueue("t3", STEPS, 0.1);
    enqueue("t4", STEPS, 0.1);
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, "the crash");
    hft_fleet_lead(&fleet, 1, "--running-max", "2", NULL);
    for (unsigned i = 0; i < 4; i++) {
        char task[16];

        name_task(i, task);
        (void)hft_fleet_until_done(&fleet, task, STEPS);
    }
    hft_fleet_check(&fleet);
}
END_TEST

static const struct {
    const char *value, *want;
} LIMITS[] = {
    { "r", "r is not ROLE=N" },
    { "r=", "r= is not ROLE=N" },
    { "r=many", "r=many is not ROLE=N" },
    { "r=1000001", "with N from 0 to 1000000" },
    { "=1", "task.running_max_of: role" },
    { "R=1", "task.running_max_of: role" },
    { "r=1,s=2,r=3", "names r twice" },
};

START_TEST(a_limit_that_makes_no_sense_is_refused_with_a_sentence)
{
    hft_fleet_lead(&fleet, 0, "--running-max-of", LIMITS[_i].value, NULL);
    ck_assert_int_eq(hft_program_wait(&fleet.controllers[0], HFT_FLEET_STEP_MS), 2);
    ck_assert(hft_program_said(&fleet.controllers[0], LIMITS[_i].want));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("limit");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, six_tasks_are_done_two_at_a_time);
    tcase_add_test(t, what_nobody_has_beyond_the_limit_waits_and_says_so);
    tcase_add_loop_test(t, a_leader_that_dies_amid_a_promotion_leaves_the_rest_to_the_next, 0,
                        3);
    tcase_add_loop_test(t, a_limit_that_makes_no_sense_is_refused_with_a_sentence, 0,
                        sizeof LIMITS / sizeof LIMITS[0]);
    return hft_suite_run("e2e: limit", t, NULL);
}
