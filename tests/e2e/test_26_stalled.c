/* An agent stands still with a task that should be done: it is asked why. One answers, of one
 * whose heartbeats come a person is told, and one that is not heard of any more is ended and
 * its task recovered. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

static struct hft_fleet fleet;
static char told[HFT_PATH_MAX + 32], hook[HFT_PATH_MAX + 32];

static void setup(void)
{
    FILE *script;

    hft_fleet_open(&fleet);
    fleet.host_options = "heartbeat: 2s\n";
    (void)snprintf(hook, sizeof hook, "%s/hook", fleet.etcd.dir.path);
    (void)snprintf(told, sizeof told, "%s/told", fleet.etcd.dir.path);
    script = fopen(hook, "we");
    ck_assert_ptr_nonnull(script);
    (void)fprintf(script, "#!/bin/sh\n{ cat; echo; } >>%s\n", told);
    ck_assert_int_eq(fclose(script), 0);
    ck_assert_int_eq(chmod(hook, 0700), 0);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* It takes a task and begins with it. Whoever is started to go on with one works as usual. */
#define TAKES                                                                                  \
    "[ -n \"$HOLDFAST_TASK\" ] && exec \"$DEMO\"\n"                                            \
    "call() { curl -sN --unix-socket \"$HOLDFAST_SOCKET\" -H \"Authorization: Bearer "         \
    "$HOLDFAST_TOKEN\" \"$@\"; }\n"                                                            \
    "beat() { call -d '{\"status\":\"healthy\"}' http://agentd/v1/heartbeat; }\n"              \
    "beat\n"                                                                                   \
    "until call -f -d '{\"wait\":\"20s\"}' http://agentd/v1/tasks/claim | grep '\"id\"'; do "  \
    "sleep 0.1; done\n"                                                                        \
    "call -d '' http://agentd/v1/tasks/t/start\n"

/* One that takes the task, with an agentd and a controller that have little patience. */
static void begin(const char *script)
{
    hft_fleet_launch(&fleet, script);
    hft_fleet_lead(&fleet, 0, "--progress-max", "3s", "--inquiry-answer", "3s",
                   "--alert-command", hook, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    free(hft_fleet_cli(&fleet, "task", "submit", "--role", "r", "--id", "t", "--expected", "1s",
                       "--payload", "{\"steps\": 2, \"seconds\": 0.1}", NULL));
    hft_fleet_await(&fleet, "health/w1", "\"inquiry\":{\"id\":\"");
}

static void expect_explained(const char *subject, const char *part)
{
    HF_CLEANUP_FREE char *text = hft_fleet_cli(&fleet, "explain", subject, "-o", "json", NULL);

    ck_assert_msg(strstr(text, part) != NULL, "%s is not in:\n%s", part, text);
}

START_TEST(who_is_not_heard_of_any_more_is_ended_and_its_task_recovered)
{
    begin(TAKES "exec sleep 1000\n");
    expect_explained("w1", "stuck: its task should be done, does not move");
    expect_explained("t", "unless it answers it is ended");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 2), 1); /* the first did nothing */
    ck_assert_uint_eq(hft_fleet_count(&fleet, "agents/w1/exit", "\"terminated\""), 1);
    /* Asked, and ended; where everything is slow its successor may be asked, too. */
    ck_assert_uint_ge(hft_fleet_count(&fleet, "events/", "\"kind\":\"stalled\""), 2);
    expect_explained("t", "did not answer, and its heartbeats have stopped");
    hft_fleet_check(&fleet);
}
END_TEST

static bool is_told(void *arg)
{
    FILE *file = fopen(told, "re");
    char line[4096];
    bool found = false;

    (void)arg;
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, "\"kind\":\"stalled\"") != NULL &&
                strstr(line, "though its heartbeats come") != NULL;
    if (file != NULL)
        (void)fclose(file);
    return found;
}

START_TEST(while_its_heartbeats_come_a_person_is_told)
{
    begin(TAKES "while sleep 0.3; do beat; done\n");
    hft_wait_or_fail(is_told, NULL, HFT_FLEET_STEP_MS, "the alert");
    hft_fleet_await(&fleet, "health/w1", "\"told\":true");
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"in_progress\"");
    expect_explained("w1", "holdfast restart");
    free(hft_fleet_cli(&fleet, "restart", "w1", NULL));
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 2), 1);
    hft_fleet_check(&fleet);
}
END_TEST

static void let_go(void)
{
    char path[HFT_PATH_MAX + 64];
    FILE *go;

    (void)snprintf(path, sizeof path, "%s.go", fleet.ledger);
    go = fopen(path, "we");
    ck_assert_ptr_nonnull(go);
    ck_assert_int_eq(fclose(go), 0);
}

/* It hears of it twice: by what its heartbeats are answered, and by name. */
START_TEST(who_answers_goes_on)
{
    begin(TAKES
          "call http://agentd/v1/events >\"$LEDGER.events\" &\n"
          "until beat | grep '\"nudges\":1'; do sleep 0.2; done\n"
          "until grep -A1 'event: nudge' \"$LEDGER.events\" | grep 'task t should be done'; do "
          "sleep 0.1; done\n"
          "until [ -e \"$LEDGER.go\" ]; do\n"
          "    call -d '{\"percent\":50,\"note\":\"it takes longer\"}' "
          "http://agentd/v1/tasks/t/progress\n"
          "    sleep 0.3\n"
          "done\n"
          "call -d '{\"result\":\"done\"}' http://agentd/v1/tasks/t/complete\n"
          "wait\n");
    hft_fleet_await(&fleet, "health/w1", "\"answered\":true");
    hft_fleet_await(&fleet, "health/w1", "\"state\":\"healthy\"");
    expect_explained("w1", "answered by");
    let_go();
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
    ck_assert_uint_ge(hft_fleet_count(&fleet, "events/", "\"kind\":\"answered\""), 1);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stalled");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_is_not_heard_of_any_more_is_ended_and_its_task_recovered);
    tcase_add_test(t, while_its_heartbeats_come_a_person_is_told);
    tcase_add_test(t, who_answers_goes_on);
    return hft_suite_run("e2e: stalled", t, NULL);
}
