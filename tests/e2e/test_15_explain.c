/* What a person is told who asks why something is as it is and what comes next: the command
 * line on a real etcd. Hosts, agents and work are keys that the test writes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/id.h"
#include "base/str.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/program.h"
#include "support/suite.h"
#include "support/wait.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_program controller;
static struct hft_output last; /* of the last command */
static char op_id[HF_ID_LEN + 1];

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    controller = (struct hft_program){ 0 };
    ck_assert_int_eq(hf_id_new(op_id), HF_OK);
}

static void teardown(void)
{
    if (controller.pid != 0)
        hft_program_kill(&controller);
    hft_output_done(&last);
    hft_client_close(&hand);
    hft_etcd_done(&server);
}

static hf_rev put(const char *key, const char *value, int64_t lease)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_put(&hand, text, value, lease);
}

/* With an op_id of this moment, as everybody leaves it. */
static hf_rev put_now(const char *key, const char *members, int64_t lease)
{
    char text[600];

    (void)snprintf(text, sizeof text, "{%s,\"opIds\":{\"owner\":\"%s\"}}", members, op_id);
    return put(key, text, lease);
}

#define cli(...)                                                                               \
    do {                                                                                       \
        hft_output_done(&last);                                                                \
        hft_cli(&last, server.endpoint, __VA_ARGS__, NULL);                                    \
        ck_assert_msg(last.status == 0, "%d: %s", last.status, last.err);                      \
    } while (0)

static json_t *parse(void)
{
    json_error_t err;
    json_t *json = json_loads(last.out, 0, &err);

    ck_assert_msg(json != NULL, "%s: %s", err.text, last.out);
    return json;
}

static const char *text_at(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));

    return text != NULL ? text : "";
}

/* What is said to come next, and whether a time is. */
static void expect_next(const char *subject, const char *part, bool timed)
{
    json_t *json, *next;

    cli("explain", subject, "-o", "json");
    json = parse();
    next = json_object_get(json, "next");
    ck_assert_msg(strstr(text_at(next, "what"), part) != NULL, "%s", last.out);
    ck_assert_msg((text_at(next, "at")[0] != '\0') == timed, "%s", last.out);
    json_decref(json);
}

static void expect_said(const char *part)
{
    ck_assert_msg(strstr(last.out, part) != NULL, "no %s in %s", part, last.out);
}

START_TEST(a_task_is_explained_with_its_owner)
{
    int64_t lease = hft_grant(&hand, 60);
    char task[300];
    hf_rev life;

    (void)put_now("tasks/lonely", "\"id\":\"lonely\",\"role\":\"poet\",\"state\":\"pending\"",
                  HF_NO_LEASE);
    expect_next("lonely", "somebody is told", false); /* by nobody, as long as nobody leads */
    (void)put("controller/leader", "{\"id\":\"old\"}", HF_NO_LEASE);
    expect_next("lonely", "somebody is told", false); /* nor does it say when */
    (void)put("controller/leader", "{\"id\":", HF_NO_LEASE);
    expect_next("lonely", "somebody is told", false);
    ck_assert_msg(strstr(last.err, "controller/leader cannot be read") != NULL, "%s", last.err);
    (void)put("controller/leader",
              "{\"id\":\"c\",\"waits\":{\"startWithin\":\"60s\",\"alertAfter\":\"100s\","
              "\"reviewAfter\":\"200s\"}}",
              HF_NO_LEASE);
    expect_next("lonely", "somebody is told", true);
    (void)put("agents/w1/spec", "{\"role\":\"writer\"}", HF_NO_LEASE);
    life = put_now("agents/w1/live", "\"host\":\"node-7\",\"pid\":17", lease);
    (void)snprintf(task, sizeof task,
                   "\"id\":\"t\",\"role\":\"writer\",\"state\":\"acknowledged\",\"owner\":{"
                   "\"agent\":\"w1\",\"incarnation\":{\"createRevision\":\"%lld\"}}",
                   (long long)life);
    (void)put_now("tasks/t", task, HF_NO_LEASE);
    expect_next("t", "released to anyone", true);
    expect_said("its owner w1 is live on node-7 as pid 17");
    /* It vanishes, and nobody knows why. */
    hft_revoke(&hand, lease);
    (void)put("health/w1",
              "{\"state\":\"suspect\",\"why\":\"its lease is gone\",\"evidence\":[{\"source\":"
              "\"etcd\",\"text\":\"no exit was written\"}],\"next\":{\"what\":\"it is given "
              "up\",\"at\":\"2036-01-31T08:09:11Z\"}}",
              HF_NO_LEASE);
    expect_next("t", "is given up, and it is reset", true);
    expect_said("its owner w1 is judged suspect: its lease is gone");
    expect_said("no exit was written");
    /* Then it is known. */
    (void)put_now("agents/w1/exit",
                  "\"kind\":\"oom\",\"signal\":9,\"evidence\":[{\"source\":\"cgroup\",\"text\":"
                  "\"oom_kill 1\"}]",
                  HF_NO_LEASE);
    (void)put("health/w1", "{\"state\":\"failing\",\"why\":\"x\"}", HF_NO_LEASE);
    expect_next("t", "it is reset: its owner is gone", false);
    expect_said("its owner w1: oom (status 0, signal 9)");
    expect_said("oom_kill 1");
}
END_TEST

START_TEST(an_agent_is_shown_with_when_it_came_and_went)
{
    int64_t lease = hft_grant(&hand, 60);
    json_t *json, *agent;

    (void)put("agents/w1/spec", "{\"role\":\"writer\"}", HF_NO_LEASE);
    (void)put_now("agents/w1/live", "\"host\":\"node-7\",\"pid\":17", lease);
    cli("ps", "-o", "json");
    json = parse();
    agent = json_array_get(json_object_get(json, "agents"), 0);
    ck_assert_str_ne(text_at(agent, "registeredAt"), "");
    ck_assert_ptr_null(json_object_get(agent, "offlineSince"));
    json_decref(json);
    cli("explain", "w1");
    expect_said("w1 is healthy: its lease is held; registered since 20");
    hft_revoke(&hand, lease);
    (void)put_now("agents/w1/exit", "\"kind\":\"crashed\",\"signal\":9", HF_NO_LEASE);
    cli("ps", "-o", "json");
    json = parse();
    agent = json_array_get(json_object_get(json, "agents"), 0);
    ck_assert_str_ne(text_at(agent, "offlineSince"), "");
    ck_assert_ptr_null(json_object_get(agent, "registeredAt"));
    json_decref(json);
    cli("explain", "w1");
    expect_said("; offline since 20");
    expect_next("w1", "whether it is started again", false);
    cli("ps", "-o", "wide");
    expect_said("SINCE");
}
END_TEST

START_TEST(progress_and_deadlines_are_shown)
{
    int64_t lease = hft_grant(&hand, 60);
    char report[200];
    hf_rev rev;

    cli("task", "submit", "--role", "writer", "--id", "t", "--expected", "1h", "--deadline",
        "2h", "-o", "json");
    expect_said("\"expectedCompletion\": \"20");
    expect_said("\"deadline\": \"20");
    (void)put("agents/w1/spec", "{\"role\":\"writer\"}", HF_NO_LEASE);
    rev = put("agents/w1/live", "{\"host\":\"node-7\"}", lease);
    (void)snprintf(report, sizeof report,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"task\":\"t\","
                   "\"progress\":{\"percent\":42,\"note\":\"half of it\"}}",
                   (long long)rev);
    (void)put("agents/w1/report", report, HF_NO_LEASE);
    (void)put(
        "tasks/t",
        "{\"id\":\"t\",\"role\":\"writer\",\"state\":\"in_progress\",\"owner\":{\"agent\":"
        "\"w1\"},\"deadline\":\"2026-01-31T08:09:11Z\"}",
        HF_NO_LEASE);
    cli("task", "show", "t");
    expect_said("progress     42%, half of it\n");
    expect_said("deadline     2026-01-31 08:09:11, which is over\n");
    cli("ps");
    expect_said(" t 42% ");
    cli("ps", "-o", "json");
    expect_said("\"percent\": 42");
}
END_TEST

static bool has_alerted(void *file)
{
    HFT_CLEANUP_OUTPUT struct hft_output output;

    hft_process_run((const char *[]){ "cat", file, NULL }, NULL, &output);
    return strstr(output.out, "its deadline is over") != NULL;
}

START_TEST(somebody_is_told_of_a_deadline_that_is_over)
{
    char command[HFT_PATH_MAX + 64], file[HFT_PATH_MAX + 32];

    (void)snprintf(file, sizeof file, "%s/alerts", server.dir.path);
    (void)snprintf(command, sizeof command, "/usr/bin/tee,-a,%s", file);
    hft_program_start(&controller, "holdfast-controller", server.dir.path, "c", server.endpoint,
                      "--id", "c", "--alert-command", command, "--task-alert-after", "40m",
                      NULL);
    hft_program_until_said(&controller, "event=leading", STEP_MS);
    /* Whoever asks is told by what this leader goes. */
    cli("task", "submit", "--role", "poet", "--id", "lonely");
    cli("explain", "lonely");
    expect_said("next: somebody is told in 39m");
    cli("task", "submit", "--role", "writer", "--id", "t", "--deadline", "1s");
    hft_wait_or_fail(has_alerted, file, STEP_MS, "the alert");
    ck_assert_int_eq(hft_program_stop(&controller), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("explain");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_task_is_explained_with_its_owner);
    tcase_add_test(t, an_agent_is_shown_with_when_it_came_and_went);
    tcase_add_test(t, progress_and_deadlines_are_shown);
    tcase_add_test(t, somebody_is_told_of_a_deadline_that_is_over);
    return hft_suite_run("e2e: explain", t, NULL);
}
