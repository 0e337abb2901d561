/* What is over leaves nothing behind: checkpoints of tasks that ended well go, those of others
 * stay, and a person may remove a task that has ended. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 4 };

#define DATA "/holdfast-data/default/"

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static unsigned count_keys(const char *prefix)
{
    HF_CLEANUP_FREE char *keys = NULL;
    unsigned count = 0;

    hft_etcdctl_ok(&fleet.etcd, &keys, "get", "--prefix", "--keys-only", prefix, NULL);
    for (const char *at = keys; (at = strstr(at, prefix)) != NULL; at++)
        count++;
    return count;
}

static bool has_no_checkpoints(void *task)
{
    char entries[100], bodies[100];

    (void)snprintf(entries, sizeof entries, HFT_ROOT "checkpoints/%s/", (const char *)task);
    (void)snprintf(bodies, sizeof bodies, DATA "checkpoints/%s/", (const char *)task);
    return count_keys(entries) == 0 && count_keys(bodies) == 0;
}

START_TEST(checkpoints_go_when_the_task_is_over)
{
    HF_CLEANUP_FREE char *task = NULL;

    hft_fleet_lead(&fleet, 0, "--keep-checkpoints", "5s", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 1);
    ck_assert_uint_gt(count_keys(HFT_ROOT "checkpoints/t/"), 0);
    ck_assert_uint_gt(count_keys(DATA "checkpoints/t/"), 0);
    hft_wait_or_fail(has_no_checkpoints, (void *)"t", HFT_FLEET_STEP_MS, "no checkpoints");
    task = hft_fleet_get(&fleet, "tasks/t");
    ck_assert_ptr_nonnull(strstr(task, "\"state\":\"completed\""));
    ck_assert_ptr_null(strstr(task, "\"checkpoint\""));
    hft_fleet_check(&fleet);
}
END_TEST

/* Whoever leads next finds what the one before did not do. */
static const char *const POINTS[] = { "before:checkpoints/t/", "sent:checkpoints/t/",
                                      "done:checkpoints/t/" };

START_TEST(a_leader_that_dies_amid_the_removal_leaves_it_to_the_next)
{
    hft_fleet_crash_at(&fleet, POINTS[_i]);
    hft_fleet_lead(&fleet, 0, "--keep-checkpoints", "1s", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    (void)hft_fleet_until_done(&fleet, "t", STEPS);
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, "the crash");
    hft_fleet_lead(&fleet, 1, "--keep-checkpoints", "1s", NULL);
    hft_wait_or_fail(has_no_checkpoints, (void *)"t", HFT_FLEET_STEP_MS, "no checkpoints");
    hft_fleet_check(&fleet);
}
END_TEST

/* The link dies at its first checkpoint, and its host before the next link has got far. What
 * was kept until then goes when nobody will go on with it; there is nothing that no checkpoint
 * names. */
START_TEST(a_task_that_is_cancelled_while_its_owner_is_dead_leaves_nothing)
{
    hft_fleet_lead(&fleet, 0, "--keep-checkpoints", "1s", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_crash_at(&fleet, POINTS[_i]);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 5);
    hft_wait_or_fail(hft_fleet_has_crashed, &fleet, HFT_FLEET_STEP_MS, "the crash");
    hft_fleet_lose_host(&fleet, 0);
    free(hft_fleet_cli(&fleet, "task", "cancel", "t", NULL));
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"cancelled\"");
    hft_wait_or_fail(has_no_checkpoints, (void *)"t", HFT_FLEET_STEP_MS, "no checkpoints");
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(a_person_removes_a_task_that_has_ended_and_no_other)
{
    HF_CLEANUP_FREE char *said = NULL;

    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    (void)hft_fleet_until_done(&fleet, "t", STEPS);
    ck_assert(!has_no_checkpoints((void *)"t"));
    said = hft_fleet_cli(&fleet, "task", "rm", "t", NULL);
    ck_assert_str_eq(said, "t: removed\n");
    hft_fleet_await(&fleet, "tasks/t", NULL);
    ck_assert(has_no_checkpoints((void *)"t"));
    ck_assert_uint_eq(count_keys(DATA "tasks/t/"), 0);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "task removed"), 1);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sweep");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, checkpoints_go_when_the_task_is_over);
    tcase_add_loop_test(t, a_leader_that_dies_amid_the_removal_leaves_it_to_the_next, 0,
                        sizeof POINTS / sizeof POINTS[0]);
    tcase_add_loop_test(t, a_task_that_is_cancelled_while_its_owner_is_dead_leaves_nothing, 0,
                        sizeof POINTS / sizeof POINTS[0]);
    tcase_add_test(t, a_person_removes_a_task_that_has_ended_and_no_other);
    return hft_suite_run("e2e: sweep", t, NULL);
}
