/* What a task is recovered from, how often, and when a person has to look: the last valid
 * checkpoint, the one before it, beyond a gap, past a poisoned one, from the beginning. */
#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/keeper.h"
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

static void begin(double seconds, const char *backoff, const char *limit)
{
    hft_fleet_lead(&fleet, 0, "--recovery-backoff", backoff, "--recovery-limit", limit, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, seconds);
}

/* Checkpoints. Step n is kept as checkpoint n by the first who works on a task. */

static void entry_key(unsigned seq, char key[64])
{
    (void)snprintf(key, 64, "checkpoints/t/%019u", seq);
}

static void corrupt(unsigned seq)
{
    char entry[64], data[300];
    HF_CLEANUP_FREE char *record = NULL;
    const char *at;

    entry_key(seq, entry);
    record = hft_fleet_get(&fleet, entry);
    at = strstr(record, "\"key\":\"");
    ck_assert_msg(at != NULL, "%s: %s", entry, record);
    at += strlen("\"key\":\"");
    (void)snprintf(data, sizeof data, "/holdfast-data/default/checkpoints/t/%019lld",
                   strtoll(at, NULL, 10));
    ck_assert_msg(hft_read(&fleet.hand, data).count == 1, "%s", data);
    (void)hft_put(&fleet.hand, data, "rubbish", HF_NO_LEASE);
}

static void tear_out(unsigned seq)
{
    char entry[64], key[300];

    entry_key(seq, entry);
    (void)snprintf(key, sizeof key, HFT_ROOT "%s", entry);
    hft_history_excuse(&fleet.history, hft_delete(&fleet.hand, key));
}

enum fault { VALID, CORRUPT, TORN };

/* The newest comes first. */
static const struct {
    enum fault faults[5];
    unsigned lost; /* steps that are done again; all: from the beginning */
} TREES[] = {
    { { VALID }, 0 },
    { { CORRUPT }, 1 },
    { { CORRUPT, CORRUPT }, 2 },
    { { CORRUPT, TORN }, 2 },
    { { CORRUPT, CORRUPT, CORRUPT, CORRUPT, CORRUPT }, STEPS },
};

static void spoil(unsigned head, const enum fault faults[5])
{
    for (unsigned i = 0; i < 5 && i < head; i++) {
        if (faults[i] == CORRUPT)
            corrupt(head - i);
        else if (faults[i] == TORN)
            tear_out(head - i);
    }
}

static bool is_second_at_work(void *arg)
{
    (void)arg;
    return hft_fleet_began_with(&fleet, "t", 1) != 0;
}

static bool is_stopped(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

/* Stops the agent while it keeps nothing: a step is marked before its checkpoint is on its way,
 * so that all that are marked are kept, and no other can come. */
static bool has_stopped_between(void *arg)
{
    pid_t agent = *(const pid_t *)arg;

    ck_assert_int_eq(kill(agent, SIGSTOP), 0);
    hft_wait_or_fail(is_stopped, &agent, HFT_FLEET_STEP_MS, "the agent to stand still");
    if (hft_fleet_number(&fleet, "tasks/t", "seq") == hft_fleet_last_step(&fleet, "t"))
        return true;
    ck_assert_int_eq(kill(agent, SIGCONT), 0);
    return false;
}

static bool has_another_link(void *arg)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    return link > 0 && link != *(const pid_t *)arg;
}

/* What a link saw being kept it knows by heart; the next one has to look. */
static void replace_link(void)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    ck_assert_int_eq(kill(link, SIGKILL), 0);
    hft_wait_or_fail(has_another_link, &link, HFT_FLEET_STEP_MS, "the next link");
}

START_TEST(the_last_valid_checkpoint_is_found)
{
    unsigned head;
    pid_t agent;

    begin(0.2, "60s", "3");
    hft_fleet_until_step(&fleet, "t", 6);
    agent = hft_fleet_agent(&fleet, "w1");
    hft_wait_or_fail(has_stopped_between, &agent, HFT_FLEET_STEP_MS, "a kept step");
    head = hft_fleet_last_step(&fleet, "t");
    ck_assert_uint_ge(head, 5);
    spoil(head, TREES[_i].faults);
    replace_link();
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    hft_wait_or_fail(is_second_at_work, NULL, HFT_FLEET_STEP_MS, "the successor");
    ck_assert_uint_eq(hft_fleet_began_with(&fleet, "t", 1),
                      TREES[_i].lost == STEPS ? 1 : head + 1 - TREES[_i].lost);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
    ck_assert_uint_eq(hft_fleet_workers(&fleet, "t"), 2);
    if (TREES[_i].lost > 0) /* a person hears of it */
        ck_assert(hft_program_said(&fleet.hosts[0], "event=alert"));
}
END_TEST

/* The n-th attempt has somebody who has begun, and not come to a step. */
static void kill_at_attempt(unsigned attempt)
{
    char part[32];

    (void)snprintf(part, sizeof part, "\"attempt\":%u", attempt);
    hft_fleet_await(&fleet, "tasks/t", part);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"in_progress\"");
    hft_fleet_kill_agent(&fleet, "w1");
}

static bool is_restored(void *arg)
{
    struct hft_program agent = { 0 }; /* for its log */

    (void)snprintf(agent.log_file, sizeof agent.log_file, "%s/h1/agents/w1.log",
                   fleet.etcd.dir.path);
    return hft_program_count(&agent, "going on after step") >= *(unsigned *)arg;
}

/* The n-th successor has what its predecessor kept, and has done no step. */
static void kill_when_restored(unsigned n)
{
    hft_wait_or_fail(is_restored, &n, HFT_FLEET_STEP_MS, "a successor");
    hft_fleet_kill_agent(&fleet, "w1");
}

START_TEST(a_checkpoint_that_killed_two_is_passed_over)
{
    unsigned head;

    begin(2, "200ms", "4");
    hft_fleet_await(&fleet, "tasks/t", "\"seq\":\"2\"");
    head = (unsigned)hft_fleet_number(&fleet, "tasks/t", "seq");
    hft_fleet_kill_agent(&fleet, "w1");
    kill_when_restored(1);
    kill_when_restored(2);
    hft_wait_or_fail(is_second_at_work, NULL, HFT_FLEET_STEP_MS, "the last successor");
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 3);
    ck_assert_uint_eq(hft_fleet_began_with(&fleet, "t", 1), head); /* from the one before */
}
END_TEST

START_TEST(after_the_last_attempt_a_person_looks_and_says_go_on)
{
    begin(0.5, "200ms", "2");
    hft_fleet_until_step(&fleet, "t", 2);
    hft_fleet_kill_agent(&fleet, "w1");
    kill_at_attempt(1);
    kill_at_attempt(2);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"needs_review\"");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"needs_review\""), 1);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\""); /* the agent itself may go on */
    ck_assert_uint_eq(hft_fleet_count(&fleet, "tasks/", "\"state\":\"needs_review\""), 1);
    free(hft_fleet_cli(&fleet, "task", "retry", "t", NULL));
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
    hft_fleet_check(&fleet);
}
END_TEST

/* However often each of its tasks may be recovered. */
START_TEST(an_agent_that_dies_too_often_in_an_hour_takes_no_task_along)
{
    hft_fleet_lead(&fleet, 0, "--recovery-hourly-limit", "1", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.5);
    hft_fleet_until_step(&fleet, "t", 2);
    hft_fleet_kill_agent(&fleet, "w1");
    kill_at_attempt(1);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"needs_review\"");
}
END_TEST

static void read_next_at(char ret[64])
{
    HF_CLEANUP_FREE char *record = hft_fleet_get(&fleet, "recoveries/t");
    const char *at = strstr(record, "\"nextAt\":\"");

    ck_assert_msg(at != NULL, "%s", record);
    at += strlen("\"nextAt\":\"");
    (void)snprintf(ret, 64, "%.*s", (int)strcspn(at, "\""), at);
}

START_TEST(the_next_leader_waits_as_long_as_the_last_one_would_have)
{
    char before[64], after[64];

    hft_fleet_lead(&fleet, 1, "--recovery-backoff", "8s", NULL); /* leads, or stands by */
    begin(0.5, "8s", "3");
    hft_fleet_until_step(&fleet, "t", 2);
    hft_fleet_kill_agent(&fleet, "w1");
    kill_at_attempt(1);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"queued\"");
    read_next_at(before);
    for (unsigned i = 0; i < 2; i++) /* whoever led: another one does then */
        hft_program_kill(&fleet.controllers[i]);
    hft_fleet_lead(&fleet, 2, "--recovery-backoff", "8s", NULL);
    hft_fleet_until_leads(&fleet, 2);
    read_next_at(after);
    ck_assert_str_eq(before, after);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 2);
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 2);
    hft_fleet_check(&fleet);
}
END_TEST

START_TEST(a_recovery_that_lasts_is_forgotten)
{
    hft_fleet_lead(&fleet, 0, "--recovery-probation", "1s", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.5);
    hft_fleet_until_step(&fleet, "t", 2);
    hft_fleet_kill_agent(&fleet, "w1");
    hft_fleet_await(&fleet, "recoveries/t", "\"result\":\"recovered\"");
    ck_assert_int_eq(hft_fleet_number(&fleet, "recoveries/t", "attempts"), 0);
    hft_fleet_kill_agent(&fleet, "w1"); /* counted from the beginning: no wait */
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("recovery tree");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, the_last_valid_checkpoint_is_found, 0,
                        sizeof TREES / sizeof TREES[0]);
    tcase_add_test(t, a_checkpoint_that_killed_two_is_passed_over);
    tcase_add_test(t, after_the_last_attempt_a_person_looks_and_says_go_on);
    tcase_add_test(t, an_agent_that_dies_too_often_in_an_hour_takes_no_task_along);
    tcase_add_test(t, the_next_leader_waits_as_long_as_the_last_one_would_have);
    tcase_add_test(t, a_recovery_that_lasts_is_forgotten);
    return hft_suite_run("e2e: recovery tree", t, NULL);
}
