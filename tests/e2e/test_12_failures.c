/* The failures that the other stories do not tell of: between claim and start, cut off from
 * etcd, ended by somebody else. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/fleet.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEPS = 30 };

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* F4. The first life claims a task, and waits. */
static const char CLAIMS_ONCE[] = "[ -e \"$LEDGER.claimed\" ] && exec \"$DEMO\"\n"
                                  "touch \"$LEDGER.claimed\"\n"
                                  "curl -s --unix-socket \"$HOLDFAST_SOCKET\" -H "
                                  "\"Authorization: Bearer $HOLDFAST_TOKEN\" \\\n"
                                  "    -d '{\"wait\": \"60s\"}' http://agentd/v1/tasks/claim\n"
                                  "exec sleep 600\n";

START_TEST(a_task_that_was_claimed_and_not_begun_is_recovered)
{
    hft_fleet_launch(&fleet, CLAIMS_ONCE);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", 3, 0.1);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"acknowledged\"");
    hft_fleet_kill_agent(&fleet, "w1");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 3), 1);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    hft_fleet_expect_one_start(&fleet, "w1");
    hft_fleet_check(&fleet);
}
END_TEST

/* F5. An agentd with a wire of its own to etcd, and another host beside it. */
static struct hft_proxy *begin_with_a_wire(void)
{
    struct hft_proxy *proxy = hft_proxy_new(fleet.etcd.client.number);

    hft_fleet_lead(&fleet, 0, "--home-grace", "1s", NULL);
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", hft_proxy_endpoint(proxy));
    hft_fleet_host(&fleet, 0, "w1", NULL);
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", fleet.etcd.endpoint);
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.2);
    hft_fleet_until_step(&fleet, "t", 4);
    return proxy;
}

/* Shorter than the lease: it costs nothing. */
START_TEST(a_short_partition_costs_nothing)
{
    struct hft_proxy *proxy = begin_with_a_wire();

    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    hft_pass_until(hft_now() + HFT_FLEET_TTL_MS / 2);
    hft_proxy_heal(proxy);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 1);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 0);
    hft_fleet_check(&fleet);
    hft_fleet_lose_host(&fleet, 0);
    hft_proxy_free(proxy);
}
END_TEST

/* Beside its work the agent does something all the time, without asking anybody. */
static const char BEATS[] =
    "while :; do echo \"$HOLDFAST_INCARNATION\" >>\"$LEDGER.beats\"; sleep 0.05; done &\n"
    "exec \"$DEMO\"\n";

/* Two lives have beaten, the second only after the last of the first. */
static void check_beats(void)
{
    char path[HFT_PATH_MAX + 64];
    unsigned long long beat, last = 0;
    unsigned lives = 0;
    FILE *beats;

    (void)snprintf(path, sizeof path, "%s.beats", fleet.ledger);
    beats = fopen(path, "re");
    ck_assert_ptr_nonnull(beats);
    while (fscanf(beats, "%llu", &beat) == 1) {
        ck_assert_msg(beat >= last, "life %llu went on after %llu had begun", beat, last);
        lives += beat != last;
        last = beat;
    }
    (void)fclose(beats);
    ck_assert_uint_eq(lives, 2);
}

/* As long as it takes for another host to go on. The process that was cut off stands still from
 * before its lease can have expired, so that the two never work at the same time; when the wire
 * is whole again it is ended. */
START_TEST(a_long_partition_moves_the_agent_and_ends_the_one_that_was_cut_off)
{
    struct hft_proxy *proxy;
    pid_t cut_off;

    hft_fleet_launch(&fleet, BEATS);
    proxy = begin_with_a_wire();
    cut_off = hft_fleet_agent(&fleet, "w1");
    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h2\"");
    ck_assert_int_eq(kill(cut_off, 0), 0);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    hft_proxy_heal(proxy);
    hft_fleet_await(&fleet, "hosts/h1/live", "\"bootId\"");
    hft_fleet_check(&fleet); /* waits for the end of what etcd does not name */
    ck_assert_uint_eq(hft_fleet_workers(&fleet, "t"), 2);
    check_beats();
    hft_fleet_lose_host(&fleet, 0);
    hft_proxy_free(proxy);
}
END_TEST

/* F6. Somebody else asks the agent to end, and it does: etcd knows at once, not when a lease
 * expires, and it is back when there is work. */
START_TEST(an_agent_that_others_end_is_gone_at_once_and_back_for_work)
{
    hft_fleet_lead(&fleet, 0, NULL);
    fleet.ttl = 600000; /* nothing here expires in time */
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "first", 1, 0.1);
    hft_fleet_await(&fleet, "tasks/first", "\"state\":\"completed\"");
    ck_assert_int_eq(kill(hft_fleet_agent(&fleet, "w1"), SIGTERM), 0);
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"finished\"");
    hft_fleet_submit(&fleet, "t", 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 3), 1);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("failures");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_task_that_was_claimed_and_not_begun_is_recovered);
    tcase_add_test(t, a_short_partition_costs_nothing);
    tcase_add_test(t, a_long_partition_moves_the_agent_and_ends_the_one_that_was_cut_off);
    tcase_add_test(t, an_agent_that_others_end_is_gone_at_once_and_back_for_work);
    return hft_suite_run("e2e: failures", t, NULL);
}
