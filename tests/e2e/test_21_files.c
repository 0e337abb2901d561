/* Checkpoints in files: a host that has them goes on from them, whoever wrote them, and one
 * that does not never starts a task over that is whole elsewhere. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 40 }; /* more than another host takes to come, on a slow machine */

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* w1 is in the middle of t when its host is lost; w2 is on the other one, and idle. */
static void lose_the_home(void)
{
    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_fleet_host(&fleet, 1, "w2", NULL);
    hft_fleet_await(&fleet, "agents/w2/live", "\"pid\"");
    hft_fleet_lose_host(&fleet, 0);
}

START_TEST(a_host_that_shares_the_directory_goes_on)
{
    HF_CLEANUP_FREE char *task = NULL;

    fleet.files = HFT_FILES_SHARED;
    lose_the_home();
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    task = hft_fleet_get(&fleet, "tasks/t");
    ck_assert_ptr_nonnull(strstr(task, "\"root\":{\"id\""));
    ck_assert_ptr_nonnull(strstr(task, "\"host\":\"h2\""));
    hft_fleet_check(&fleet);
}
END_TEST

/* w1 lives elsewhere by now, w2 is idle; both take other work, and neither takes t. */
static void expect_that_it_waits(void)
{
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h2\"");
    hft_fleet_await(&fleet, "pending/r/t", "\"host\":\"h1\"");
    for (const char *other = "uvw"; *other != '\0'; other++)
        hft_fleet_submit(&fleet, (char[]){ *other, '\0' }, 2, 0.1);
    for (const char *other = "uvw"; *other != '\0'; other++)
        (void)hft_fleet_until_done(&fleet, (char[]){ *other, '\0' }, 2);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"pending\"");
    ck_assert_uint_eq(hft_fleet_workers(&fleet, "t"), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "health/", "\"held\":true"), 0);
}

START_TEST(a_task_waits_for_the_host_that_has_its_files)
{
    fleet.files = HFT_FILES_OWN;
    lose_the_home();
    expect_that_it_waits();
    hft_fleet_host_again(&fleet, 0);
    hft_fleet_await(&fleet, "hosts/h1/live", "\"bootId\"");
    free(hft_fleet_cli(&fleet, "restart", "w1", NULL)); /* it is started where the files are */
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h1\"");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(files_that_a_person_gives_up_are_not_waited_for)
{
    fleet.files = HFT_FILES_OWN;
    lose_the_home();
    expect_that_it_waits();
    free(hft_fleet_cli(&fleet, "task", "retry", "--lost-files", "t", NULL));
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
    ck_assert_uint_eq(hft_fleet_workers(&fleet, "t"), 2);
    ck_assert_uint_eq(hft_fleet_began_with(&fleet, "t", 1), 1);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("files");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_host_that_shares_the_directory_goes_on);
    tcase_add_test(t, a_task_waits_for_the_host_that_has_its_files);
    tcase_add_test(t, files_that_a_person_gives_up_are_not_waited_for);
    return hft_suite_run("e2e: files", t, NULL);
}
