/* A host is gone with everything on it: another one of the pool goes on from the checkpoint. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

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

static void lose_the_home(void)
{
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_host(&fleet, 1, "w2", NULL);
    hft_fleet_await(&fleet, "agents/w2/live", "\"pid\"");
    free(hft_fleet_cli(&fleet, "stop", "w2", NULL)); /* it would take the task */
    hft_fleet_await(&fleet, "agents/w2/live", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    hft_fleet_lose_host(&fleet, 0);
}

static void expect_it_elsewhere(void)
{
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h2\"");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    hft_fleet_check(&fleet);
}

/* Nobody saw the end: the lease expires, the agent is suspect for the grace, and the home is
 * waited for as long as the controller is told to. When it is back it finds its agent
 * elsewhere.
 */
START_TEST(another_host_goes_on_from_the_checkpoint)
{
    struct hft_outcome live;

    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    lose_the_home();
    expect_it_elsewhere();
    live = hft_fleet_look(&fleet, "agents/w1/live");
    hft_fleet_host_again(&fleet, 0);
    hft_fleet_await(&fleet, "hosts/h1/live", "\"bootId\"");
    hft_fleet_submit(&fleet, "u", 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "u", 3), 1);
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/live").mod_rev, live.mod_rev);
    ck_assert_int_eq(live.mod_rev, live.create_rev); /* nobody ever wrote it but its own Txn */
    hft_fleet_check(&fleet);
}
END_TEST

/* A person knows that it will not come back: nobody waits for it. */
START_TEST(a_person_says_that_a_host_is_lost)
{
    hft_fleet_lead(&fleet, 0, "--home-grace", "1h", NULL);
    lose_the_home();
    hft_fleet_await(&fleet, "hosts/h1/live", NULL);
    free(hft_fleet_cli(&fleet, "host", "lost", "h1", NULL));
    expect_it_elsewhere();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("host lost");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, another_host_goes_on_from_the_checkpoint);
    tcase_add_test(t, a_person_says_that_a_host_is_lost);
    return hft_suite_run("e2e: host lost", t, NULL);
}
