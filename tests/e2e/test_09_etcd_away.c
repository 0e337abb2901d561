/* etcd is away, for less than a lease and for three of them: the agents stand still, go on as
 * the same processes, and nothing is lost or done twice. */
#include <check.h>
#include <stdlib.h>

#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 40 };

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static const struct {
    hf_ms away;
    bool killed;  /* and started again; else it stands still */
    bool freezes; /* for certain */
} OUTAGES[] = {
    { HFT_FLEET_TTL_MS - 2000, false, false },
    { HFT_FLEET_TTL_MS - 2000, true, false },
    { 3 * HFT_FLEET_TTL_MS, false, true },
    { 3 * HFT_FLEET_TTL_MS, true, true },
};

static void take_etcd_away(unsigned which)
{
    hf_ms end;

    if (OUTAGES[which].killed)
        hft_etcd_kill(&fleet.etcd);
    else
        hft_etcd_pause(&fleet.etcd);
    end = hft_now() + OUTAGES[which].away;
    if (OUTAGES[which].freezes)
        hft_program_until_said(&fleet.hosts[0], "event=fenced", HFT_FLEET_STEP_MS);
    hft_pass_until(end);
    if (OUTAGES[which].killed)
        hft_etcd_restart(&fleet.etcd);
    else
        hft_etcd_resume(&fleet.etcd);
}

START_TEST(an_outage_costs_nothing_but_time)
{
    pid_t agent;

    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_lead(&fleet, 1, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.1);
    hft_fleet_until_step(&fleet, "t", 10);
    agent = hft_fleet_agent(&fleet, "w1");
    take_etcd_away((unsigned)_i);

    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 1);
    if (OUTAGES[_i].freezes)
        hft_program_until_said(&fleet.hosts[0], "event=thawed", HFT_FLEET_STEP_MS);
    ck_assert_int_eq(hft_fleet_agent(&fleet, "w1"), agent);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 0);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"reset\""), 0);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 0);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("etcd away");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, an_outage_costs_nothing_but_time, 0,
                        sizeof OUTAGES / sizeof OUTAGES[0]);
    return hft_suite_run("e2e: etcd away", t, NULL);
}
