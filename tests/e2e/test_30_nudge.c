/* What an agent is asked reaches it by the ways that its launcher names, each once, whatever
 * becomes of the link; that it did, and that it was read, stands in etcd. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
    fleet.host_options = "heartbeat: 2s\n";
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* w<n> takes t<n>, begins with it and does no more. Who is told to go says that it has read
 * what it was asked; w2 answers instead, and goes on, so that it is not asked anew. */
#define AGENT                                                                                  \
    "call() { curl -sN --unix-socket \"$HOLDFAST_SOCKET\" -H \"Authorization: Bearer "         \
    "$HOLDFAST_TOKEN\" \"$@\"; }\n"                                                            \
    "t=t${HOLDFAST_AGENT#w}\n"                                                                 \
    "exec 3<&0\n"                                                                              \
    "case $HOLDFAST_AGENT in\n"                                                                \
    "w1) while :; do call http://agentd/v1/events >>\"$LEDGER.events\"; sleep 0.1; done & "    \
    ";;\n"                                                                                     \
    "w2) cat <&3 >>\"$LEDGER.stdin\" & ;;\n"                                                   \
    "esac\n"                                                                                   \
    "until call -f -d '{\"wait\":\"20s\"}' http://agentd/v1/tasks/claim | grep '\"id\"'; do "  \
    "sleep 0.1; done\n"                                                                        \
    "call -d '' http://agentd/v1/tasks/$t/start\n"                                             \
    "until [ -e \"$LEDGER.go\" ]; do sleep 0.1; done\n"                                        \
    "id() { sed -n 's/.*\"id\":\"\\([0-9a-z]*\\)\",\"text\":\"task.*/\\1/p' \"$1\" | head "    \
    "-1; }\n"                                                                                  \
    "case $HOLDFAST_AGENT in\n"                                                                \
    "w1) until call -f -d '' http://agentd/v1/nudges/$(id \"$LEDGER.events\")/read; do sleep " \
    "0.1; done ;;\n"                                                                           \
    "w2) n=1; until [ -e \"$LEDGER.end\" ]; do call -f -d \"{\\\"percent\\\":$n}\" "           \
    "http://agentd/v1/tasks/$t/progress; n=$((n%99+1)); sleep 0.2; done ;;\n"                  \
    "w3) until call -f -d '' http://agentd/v1/nudges/$(tail -1 \"$LEDGER.hook\" | cut -d' ' "  \
    "-f2)/read; do sleep 0.1; done ;;\n"                                                       \
    "esac\n"                                                                                   \
    "until [ -e \"$LEDGER.end\" ]; do sleep 0.1; done\n"                                       \
    "until call -f -d '{\"result\":\"done\"}' http://agentd/v1/tasks/$t/complete; do sleep "   \
    "0.1; done\n"                                                                              \
    "exec sleep 1000\n"

static const char *path_of(const char *suffix)
{
    static char path[HFT_PATH_MAX + 64];

    (void)snprintf(path, sizeof path, "%s.%s", fleet.ledger, suffix);
    return path;
}

static void write_hook(const char *script)
{
    FILE *file = fopen(path_of("sh"), "we");

    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "#!/bin/sh\nLEDGER=%s\n%s", fleet.ledger, script);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path_of("sh"), 0755), 0);
}

static void make(const char *suffix)
{
    FILE *file = fopen(path_of(suffix), "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fclose(file), 0);
}

/* How many lines of the file have that part; the last of them in `line`. */
static unsigned count_lines(const char *suffix, const char *part, char line[512])
{
    FILE *file = fopen(path_of(suffix), "re");
    char next[512];
    unsigned count = 0;

    while (file != NULL && fgets(next, sizeof next, file) != NULL) {
        if (strstr(next, part) == NULL)
            continue;
        count++;
        (void)snprintf(line, 512, "%s", next);
    }
    if (file != NULL)
        (void)fclose(file);
    return count;
}

struct lines {
    const char *suffix, *part;
    unsigned least;
};

static bool has_lines(void *arg)
{
    const struct lines *lines = arg;
    char line[512];

    return count_lines(lines->suffix, lines->part, line) >= lines->least;
}

static void await_lines(const char *suffix, const char *part, unsigned least)
{
    struct lines lines = { suffix, part, least };

    hft_wait_or_fail(has_lines, &lines, HFT_FLEET_STEP_MS, suffix);
}

/* Host i with agent w<i+1>, whose launcher says that, and its task. */
static void begin(unsigned i, const char *options)
{
    static char role[8];
    char agent[8], task[8], live[32];

    (void)snprintf(role, sizeof role, "r%u", i + 1);
    (void)snprintf(agent, sizeof agent, "w%u", i + 1);
    (void)snprintf(task, sizeof task, "t%u", i + 1);
    fleet.role = role;
    hft_fleet_launch_with(&fleet, options);
    hft_fleet_host(&fleet, i, agent, NULL);
    (void)snprintf(live, sizeof live, "agents/%s/live", agent);
    hft_fleet_await(&fleet, live, "\"pid\":"); /* its files are read */
    free(hft_fleet_cli(&fleet, "task", "submit", "--role", role, "--id", task, "--expected",
                       "1s", NULL));
}

static void begin_hook(unsigned i, const char *more)
{
    char options[HFT_PATH_MAX + 200];

    (void)snprintf(options, sizeof options, "nudge:\n  by: [hook]\n  command: [%s]\n%s",
                   path_of("sh"), more);
    begin(i, options);
}

static void expect_explained(const char *subject, const char *part)
{
    HF_CLEANUP_FREE char *text = hft_fleet_cli(&fleet, "explain", subject, "-o", "json", NULL);

    ck_assert_msg(strstr(text, part) != NULL, "%s is not in:\n%s", part, text);
}

static bool is_new_link(void *arg)
{
    const pid_t *old = arg;
    bool all = true;

    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        pid_t now = hft_fleet_link(&fleet, i);

        all &= now > 0 && now != old[i];
    }
    return all;
}

static void kill_links(void)
{
    pid_t links[HFT_FLEET_SIZE];

    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        links[i] = hft_fleet_link(&fleet, i);
        ck_assert_int_eq(kill(links[i], SIGKILL), 0);
    }
    hft_wait_or_fail(is_new_link, links, HFT_FLEET_STEP_MS, "other links");
}

static void expect_lines(const char *suffix, const char *part, unsigned want)
{
    char line[512] = "";

    ck_assert_msg(count_lines(suffix, part, line) == want, "%s has another count of %s: %s",
                  suffix, part, line);
}

START_TEST(each_way_brings_it_once_and_the_receipts_are_in_etcd)
{
    hft_fleet_launch(&fleet, AGENT);
    write_hook("echo \"$HOLDFAST_AGENT $HOLDFAST_NUDGE $HOLDFAST_TASK $(cat)\" >>$LEDGER.hook\n"
               "[ -e $LEDGER.tried ] || { touch $LEDGER.tried; exit 1; }\n");
    hft_fleet_lead(&fleet, 0, "--progress-max", "3s", "--inquiry-answer", "5m", NULL);
    begin(0, "");
    begin(1, "nudge:\n  by: [stdin]\n");
    begin_hook(2, "");
    hft_fleet_await(&fleet, "agents/w1/report", "\"delivered\":{\"by\":\"events\",\"at\":");
    hft_fleet_await(&fleet, "agents/w2/report", "\"delivered\":{\"by\":\"stdin\",\"at\":");
    hft_fleet_await(&fleet, "agents/w3/report", "\"delivered\":{\"by\":\"hook\",\"at\":");
    await_lines("stdin", "{\"nudge\":{\"id\":\"", 1);
    expect_lines("stdin", "\"text\":\"task t2 should be done", 1);
    await_lines("hook", " t3 task t3 should be done", 2); /* the first run failed */
    expect_explained("w2", "delivered by stdin");
    expect_explained("w2", "not read yet");

    kill_links();
    await_lines("events", "event: nudge", 2); /* who listens anew hears it anew */
    make("go");
    hft_fleet_await(&fleet, "agents/w1/report", "\"readAt\":\"");
    hft_fleet_await(&fleet, "agents/w2/report", "\"readAt\":\"");
    hft_fleet_await(&fleet, "agents/w3/report", "\"readAt\":\"");
    expect_explained("w3", ", read at ");
    /* Who answers answers; to have read it is no answer. */
    hft_fleet_await(&fleet, "health/w2", "\"answered\":true");
    ck_assert_uint_eq(hft_fleet_count(&fleet, "health/w1", "\"answered\":false"), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "health/w3", "\"answered\":false"), 1);
    make("end");
    hft_fleet_await(&fleet, "tasks/t1", "\"state\":\"completed\"");
    hft_fleet_await(&fleet, "tasks/t2", "\"state\":\"completed\"");
    hft_fleet_await(&fleet, "tasks/t3", "\"state\":\"completed\"");
    expect_lines("stdin", "nudge", 1);
    expect_lines("hook", "w3", 2);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "agents/w2/report", "\"by\":\"stdin\""), 1);
    ck_assert_uint_eq(hft_fleet_count(&fleet, "agents/w3/report", "\"by\":\"hook\""), 1);
    hft_fleet_check(&fleet);
}
END_TEST

static bool is_gone(void *arg)
{
    return kill(*(const pid_t *)arg, 0) != 0 && errno == ESRCH;
}

/* Each run is ended in time, there are three, and then it is left at that. */
START_TEST(a_hook_that_hangs_harms_nobody)
{
    HF_CLEANUP_FREE char *report = NULL;
    char line[512] = "";
    pid_t agent, hook;
    unsigned runs;

    hft_fleet_launch(&fleet, AGENT);
    write_hook("echo $$ >>$LEDGER.hook\nexec sleep 1000\n");
    hft_fleet_lead(&fleet, 0, "--progress-max", "3s", "--inquiry-answer", "5m", NULL);
    begin_hook(2, "  timeout: 1s\n");
    agent = hft_fleet_agent(&fleet, "w3");
    /* On a busy machine one may end before it has written anything. */
    hft_program_until_said(&fleet.hosts[2], "next=\"gives up\"", HFT_FLEET_STEP_MS);
    ck_assert_uint_eq(hft_program_count(&fleet.hosts[2], "event=not_nudged"), 3);
    runs = count_lines("hook", "", line);
    ck_assert(runs >= 1 && runs <= 3);
    hook = (pid_t)strtol(line, NULL, 10);
    hft_wait_or_fail(is_gone, &hook, HFT_FLEET_STEP_MS, "the end of the hook");
    make("end"); /* it does what it has to */
    make("go");
    hft_fleet_await(&fleet, "health/w3", "\"inquiry\":{\"id\":\"");
    report = hft_fleet_get(&fleet, "agents/w3/report");
    ck_assert(report == NULL || strstr(report, "delivered") == NULL);
    ck_assert_int_eq(hft_fleet_agent(&fleet, "w3"), agent);
    ck_assert_uint_eq(hft_program_count(&fleet.hosts[2], "event=not_nudged"), 3);
    ck_assert_uint_eq(count_lines("hook", "", line), runs);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("nudge");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, each_way_brings_it_once_and_the_receipts_are_in_etcd);
    tcase_add_test(t, a_hook_that_hangs_harms_nobody);
    return hft_suite_run("e2e: nudge", t, NULL);
}
