/* What is given up until a person looks: an agent that cannot be started, one that dies again
 * and again, a task that no successor finishes, a fleet that is gone. The person is told, once,
 * finds out why, and says go on. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { TEXT_SIZE = 1 << 16, LIMIT = 10, JITTER_PERCENT = 10 };

static struct hft_fleet fleet;
static char told[HFT_PATH_MAX + 32], hook[HFT_PATH_MAX + 32];

/* A hook that writes each event that it is told in a line of its own. */
static void setup(void)
{
    FILE *script;

    hft_fleet_open(&fleet);
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

/* How many events of that kind the hook was told of, all of it valid JSON and with a reason.
 */
static unsigned count_alerts(const char *kind, const char *member, const char *name)
{
    FILE *file = fopen(told, "re");
    char line[TEXT_SIZE];
    unsigned count = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *event = line[0] != '\n' ? json_loads(line, 0, NULL) : NULL;
        const char *value = json_string_value(json_object_get(event, member));

        ck_assert_msg(line[0] == '\n' || event != NULL, "not JSON: %s", line);
        if (event != NULL &&
            strcmp(json_string_value(json_object_get(event, "kind")), kind) == 0 &&
            value != NULL && strcmp(value, name) == 0) {
            ck_assert_str_ne(json_string_value(json_object_get(event, "why")), "");
            count++;
        }
        json_decref(event);
    }
    if (file != NULL)
        (void)fclose(file);
    return count;
}

struct alert {
    const char *kind, *member, *name;
};

static bool is_told(void *arg)
{
    const struct alert *alert = arg;

    return count_alerts(alert->kind, alert->member, alert->name) > 0;
}

static void until_told(const char *kind, const char *member, const char *name)
{
    hft_wait_or_fail(is_told, &(struct alert){ kind, member, name }, HFT_FLEET_STEP_MS,
                     "the alert");
}

static void expect_explained(const char *subject, const char *part)
{
    HF_CLEANUP_FREE char *text = hft_fleet_cli(&fleet, "explain", subject, NULL);

    ck_assert_msg(strstr(text, part) != NULL, "%s is not in:\n%s", part, text);
}

/* The way out can be copied, by people and by programs. */
static void expect_way_out(const char *subject, const char *command)
{
    HF_CLEANUP_FREE char *json = hft_fleet_cli(&fleet, "explain", subject, "-o", "json", NULL);
    const char *next = strstr(json, "\"next\":");

    ck_assert_msg(next != NULL && strstr(next, command) != NULL, "%s is not next in:\n%s",
                  command, json);
    expect_explained(subject, command);
}

static void mend(void)
{
    char path[HFT_PATH_MAX + 64];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s.mended", fleet.ledger);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
}

/* The end of each story: a person restarts it, and it works. */
static void expect_freed(void)
{
    mend();
    free(hft_fleet_cli(&fleet, "restart", "w1", NULL));
    hft_fleet_submit(&fleet, "t", 2, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 2), 1);
    hft_fleet_await(&fleet, "health/w1", "\"held\":false");
    hft_fleet_check(&fleet);
}

START_TEST(what_cannot_be_started_anywhere_is_held)
{
    hft_fleet_launch(&fleet, "[ -e \"$LEDGER.mended\" ] && exec \"$DEMO\"\nexit 3\n");
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, NULL);
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_await(&fleet, "hosts/h2/live", "\"bootId\"");
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "health/w1", "\"held\":true");
    until_told("held", "agent", "w1");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "agents/w1/exit", "\"start_failed\""), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 1);
    expect_explained("w1", "could not be started");
    expect_way_out("w1", "`holdfast restart w1`");
    ck_assert_uint_eq(count_alerts("held", "agent", "w1"), 1);
    expect_freed();
}
END_TEST

/* It begins to work, and dies. When it began is written down. */
static const char DIES[] = "[ -e \"$LEDGER.mended\" ] && exec \"$DEMO\"\n"
                           "date +%s%3N >>\"$LEDGER.begun\"\n"
                           "curl -s --unix-socket \"$HOLDFAST_SOCKET\" -H \"Authorization: "
                           "Bearer $HOLDFAST_TOKEN\" \\\n"
                           "    -d '{\"status\": \"healthy\"}' http://agentd/v1/heartbeat\n"
                           "exit 3\n";

/* When its lives began. */
static unsigned read_begun(hf_ms ret_begun[2 * LIMIT])
{
    char path[HFT_PATH_MAX + 64];
    unsigned count = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s.begun", fleet.ledger);
    file = fopen(path, "re");
    while (file != NULL && count < 2 * LIMIT && fscanf(file, "%ld", &ret_begun[count]) == 1)
        count++;
    if (file != NULL)
        (void)fclose(file);
    return count;
}

static bool has_begun(void *arg)
{
    hf_ms begun[2 * LIMIT];

    return read_begun(begun) >= *(unsigned *)arg;
}

/* The first restart comes at once; the others after 1, 2, 4 ... 60 s, less what jitter takes.
 * How much later it may be is up to the machine. */
static void expect_growing_delays(unsigned lives)
{
    hf_ms begun[2 * LIMIT], delay = 1000;

    ck_assert_uint_ge(read_begun(begun), lives);
    for (unsigned i = 2; i < lives; i++) {
        ck_assert_int_ge(begun[i] - begun[i - 1], delay - delay * JITTER_PERCENT / 100);
        delay = delay > 30000 ? 60000 : 2 * delay;
    }
}

static void begin_dying(unsigned lives)
{
    hft_fleet_launch(&fleet, DIES);
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_wait_or_fail(has_begun, &lives, 10 * HFT_FLEET_STEP_MS, "its lives");
    expect_growing_delays(lives);
}

START_TEST(what_dies_again_and_again_waits_longer_each_time)
{
    begin_dying(5);
    ck_assert_int_ge(hft_fleet_number(&fleet, "health/w1", "restarts"), 4);
    expect_explained("w1", "crashed");
    expect_freed();
}
END_TEST

/* The same in seconds: an operator may set how often, how soon, and in which time. */
START_TEST(how_often_is_too_often_can_be_set)
{
    hft_fleet_launch(&fleet, DIES);
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, "--restart-limit", "3",
                   "--restart-backoff-base", "200ms", "--restart-backoff-cap", "400ms", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "health/w1", "\"held\":true");
    until_told("held", "agent", "w1");
    expect_explained("w1", "too often");
    expect_way_out("w1", "`holdfast restart w1`");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 3);
    expect_freed();
}
END_TEST

/* Four minutes: only with ./dev test --all. */
START_TEST(what_dies_too_often_is_held)
{
    begin_dying(LIMIT + 1);
    hft_fleet_await(&fleet, "health/w1", "\"held\":true");
    until_told("held", "agent", "w1");
    expect_explained("w1", "too often");
    expect_way_out("w1", "`holdfast restart w1`");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""),
                      LIMIT);
    ck_assert_uint_eq(count_alerts("held", "agent", "w1"), 1);
    expect_freed();
}
END_TEST

START_TEST(a_task_that_nobody_finishes_is_told_to_a_person)
{
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, "--recovery-limit", "1", NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", 4, 0.5);
    for (unsigned i = 0; i < 2; i++) {
        hft_fleet_await(&fleet, "tasks/t", i == 0 ? "\"attempt\":0" : "\"attempt\":1");
        hft_fleet_await(&fleet, "tasks/t", "\"state\":\"in_progress\"");
        hft_fleet_kill_agent(&fleet, "w1");
    }
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"needs_review\"");
    until_told("needs_review", "task", "t");
    ck_assert_uint_eq(count_alerts("needs_review", "task", "t"), 1);
    expect_explained("t", "recovered as often as may be");
    expect_way_out("t", "`holdfast task retry t`");
    expect_way_out("t", "`holdfast task cancel t`");
    free(hft_fleet_cli(&fleet, "task", "retry", "t", NULL));
    hft_fleet_await(&fleet, "tasks/t", "\"state\":\"completed\"");
}
END_TEST

static bool storms_fully(void *arg)
{
    HF_CLEANUP_FREE char *text = hft_fleet_cli(&fleet, "storm", "status", NULL);

    (void)arg;
    return strstr(text, "full") != NULL || strstr(text, "FULL") != NULL;
}

/* Nothing is reset or restarted, and one person is told once, not once for each agent. */
START_TEST(a_fleet_that_is_gone_is_told_once)
{
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_host(&fleet, 1, "w2", NULL);
    hft_fleet_host(&fleet, 2, "w3", NULL);
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        char agent[32];

        (void)snprintf(agent, sizeof agent, "agents/w%u/live", i + 1);
        hft_fleet_await(&fleet, agent, "\"pid\"");
    }
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++)
        hft_fleet_lose_host(&fleet, i);
    hft_wait_or_fail(storms_fully, NULL, HFT_FLEET_STEP_MS, "the storm");
    until_told("storm", "agent", "");
    ck_assert_uint_eq(count_alerts("storm", "agent", ""), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "events/", "\"kind\":\"restart_ordered\""), 0);
    hft_fleet_host_again(&fleet, 0);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("held");

    tcase_add_checked_fixture(t, setup, teardown);
    if (getenv("HOLDFAST_HELD") != NULL) {
        tcase_set_timeout(t, 900);
        tcase_add_test(t, what_dies_too_often_is_held);
        return hft_suite_run("e2e: held", t, NULL);
    }
    tcase_set_timeout(t, 240);
    tcase_add_test(t, what_cannot_be_started_anywhere_is_held);
    tcase_add_test(t, what_dies_again_and_again_waits_longer_each_time);
    tcase_add_test(t, how_often_is_too_often_can_be_set);
    tcase_add_test(t, a_task_that_nobody_finishes_is_told_to_a_person);
    tcase_add_test(t, a_fleet_that_is_gone_is_told_once);
    return hft_suite_run("e2e: held", t, NULL);
}
