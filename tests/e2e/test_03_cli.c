/* What a person sees and what a script relies on, of agents and hosts. */
#include "e2e/cli_fixture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

START_TEST(agents_are_shown_as_wide_as_the_terminal_is)
{
    put_fleet();
    cli("ps");
    expect(0, "AGENT  ROLE    HOST    LIVE  SAID  STATE  HEALTH   TASK      RESTARTS  NEXT\n"
              "w1     writer  node-7  yes      -  -      healthy  report-1         0  -\n"
              "w2     writer  node-7  no       -  -      held     -               10  a person "
              "releases it\n");
    hft_output_done(&last);
    hft_cli_env((const char *const[]){ "COLUMNS=76", NULL }, &last, server.endpoint, "ps",
                NULL);
    expect(0, "AGENT  ROLE    HOST    LIVE  SAID  STATE  HEALTH   TASK      NEXT\n"
              "w1     writer  node-7  yes      -  -      healthy  report-1  -\n"
              "w2     writer  node-7  no       -  -      held     -         a person "
              "relea…\n");
    hft_output_done(&last);
    hft_cli_env((const char *const[]){ "COLUMNS=40", NULL }, &last, server.endpoint, "ps",
                NULL);
    expect(0, "AGENT  LIVE  STATE  HEALTH   TASK\n"
              "w1     yes   -      healthy  report-1\n"
              "w2     no    -      held     -\n");
    cli("ps", "-o", "name");
    expect(0, "w1\nw2\n");
    cli("ps", "--role", "coder");
    expect(0, "");
    ck_assert_str_eq(last.err, "There are no such agents.\n");
}
END_TEST

static const char *text_at(const json_t *object, const char *member)
{
    return json_string_value(json_object_get(object, member));
}

START_TEST(json_has_the_members_that_scripts_rely_on)
{
    json_error_t err;
    json_t *ps, *agent;
    char revision[32];

    put_fleet();
    cli("ps", "-o", "json");
    expect(0, NULL);
    ps = json_loads(last.out, 0, &err);
    ck_assert_msg(ps != NULL, "%s: %s", err.text, last.out);
    agent = json_array_get(json_object_get(ps, "agents"), 0);
    ck_assert_str_eq(text_at(agent, "name"), "w1");
    ck_assert_str_eq(text_at(agent, "state"), "unknown");
    ck_assert_str_eq(text_at(agent, "health"), "healthy");
    ck_assert_str_eq(text_at(agent, "task"), "report-1");
    ck_assert(json_is_true(json_object_get(agent, "live")));
    (void)snprintf(revision, sizeof revision, "%" PRId64, look("agents/w1/live").create_rev);
    ck_assert_str_eq(text_at(json_object_get(agent, "incarnation"), "createRevision"),
                     revision);
    json_decref(ps);
    cli("invariants", "-o", "json");
    expect(0, "{\n    \"ok\": true,\n    \"violations\": []\n}\n");
    cli("storm", "status", "-o", "json");
    expect(0, "{\n    \"state\": \"normal\"\n}\n");
}
END_TEST

/* As its agentd writes it, of the life that was registered at `rev`. */
static void put_report(hf_rev rev, const char *rest)
{
    char text[600];

    (void)snprintf(text, sizeof text, "{\"incarnation\":{\"createRevision\":\"%lld\"},%s}",
                   (long long)rev, rest);
    (void)put("agents/w1/report", text, HF_NO_LEASE);
}

#define WAITS                                                                                  \
    "\"state\":\"waiting\",\"reason\":\"a person has to agree\","                              \
    "\"until\":\"2999-01-01T00:00:00Z\",\"at\":\"2026-01-31T08:09:11Z\""

START_TEST(what_a_life_before_said_is_not_shown_as_if_it_held)
{
    hf_rev rev;

    put_fleet();
    rev = look("agents/w1/live").create_rev;
    put_report(rev, WAITS);
    cli("ps", "-o", "wide");
    ck_assert_msg(strstr(last.out, "waiting (ends in ") != NULL &&
                      strstr(last.out, "a person has to agree") != NULL,
                  "%s", last.out);
    cli("explain", "w1");
    ck_assert_msg(strstr(last.out, "said of itself: waiting until 2999-01-01 00:00:00 (a "
                                   "person has to agree)\n") != NULL,
                  "%s", last.out);
    put_report(rev - 1, WAITS);
    cli("ps", "--role", "writer");
    expect(0, "AGENT  ROLE    HOST    LIVE  SAID  STATE  HEALTH   TASK      RESTARTS  NEXT\n"
              "w1     writer  node-7  yes      -  -      healthy  report-1         0  -\n"
              "w2     writer  node-7  no       -  -      held     -               10  a person "
              "releases it\n");
    cli("ps", "-o", "json");
    ck_assert_msg(strstr(last.out, "freshness") == NULL && strstr(last.out, "2999") == NULL,
                  "%s", last.out);
    cli("explain", "w1");
    ck_assert_msg(strstr(last.out, "said of itself in a life before: waiting") != NULL, "%s",
                  last.out);
}
END_TEST

/* Its agentd writes the report, too, and more often the longer nothing is heard. */
START_TEST(who_is_suspected_does_not_look_as_if_it_had_spoken)
{
    char text[400], now[40];
    time_t wall = time(NULL);
    hf_rev rev;

    (void)strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime(&wall));
    (void)snprintf(text, sizeof text,
                   "\"saidAt\":\"2021-01-31T08:09:11Z\",\"heartbeatAt\":"
                   "\"2021-01-31T08:09:12Z\",\"at\":\"%s\",\"suspicion\":{\"kind\":"
                   "\"heartbeat\",\"why\":\"no heartbeat came\"}",
                   now);
    put_fleet();
    rev = look("agents/w1/live").create_rev;
    put_report(rev, text);
    cli("ps");
    ck_assert_msg(strstr(last.out, "suspect") != NULL && strstr(last.out, "d ") != NULL &&
                      strstr(last.out, " 0s ") == NULL,
                  "%s", last.out);
    cli("ps", "-o", "json");
    ck_assert_msg(strstr(last.out, "\"freshness\": \"") != NULL &&
                      strstr(last.out, "\"freshness\": \"0s") == NULL,
                  "%s", last.out);
}
END_TEST

/* What a script asks for it can read, whatever the command. The fleet is that of put_fleet. */
static const struct {
    const char *words[4];
    const char *name; /* with -o name; NULL: it cannot be done twice */
    int status;       /* of that */
} SCRIPTED[] = {
    { { "ps" }, "w1\nw2\n", 0 },
    { { "hosts" }, "node-7\n", 0 },
    { { "task", "ls" }, "old\nreport-1\n", 0 },
    { { "task", "show", "report-1" }, "report-1\n", 0 },
    { { "task", "watch", "old" }, "old\n", 0 },
    { { "explain", "w1" }, "", 2 },
    { { "checkpoint", "verify", "report-1" }, "", 0 },
    { { "storm", "status" }, "normal\n", 0 },
    { { "invariants" }, "", 0 },
    { { "doctor" }, "", 2 },
    { { "host", "cordon", "node-7" }, "node-7\n", 0 },
    { { "stop", "w1" }, "w1\n", 0 },
    { { "restart", "w1" }, "w1\n", 0 },
    { { "agent", "rm", "w2" }, NULL, 0 },
    { { "task", "rm", "old" }, NULL, 0 },
};

START_TEST(what_is_for_scripts_can_be_read_by_them)
{
    const char *const *words = SCRIPTED[_i].words;
    json_error_t err;
    json_t *json;

    put_fleet();
    (void)put("tasks/old", "{\"id\":\"old\",\"role\":\"r\",\"state\":\"cancelled\"}",
              HF_NO_LEASE);
    if (SCRIPTED[_i].name != NULL) {
        cli("-o", "name", words[0], words[1], words[2]);
        expect(SCRIPTED[_i].status, SCRIPTED[_i].name);
    }
    if (SCRIPTED[_i].status == 2)
        expect_error(2, "has no names: leave -o name out");
    cli("-o", "json", words[0], words[1], words[2]);
    json = json_loads(last.out, 0, &err);
    ck_assert_msg(json_is_object(json), "%s: %s%s", err.text, last.out, last.err);
    json_decref(json);
}
END_TEST

START_TEST(an_agent_is_stopped_and_a_held_one_released)
{
    put_fleet();
    cli("stop", "w1", "--reason", "wrong model");
    expect(0, "w1: wanted stopped; its agentd ends it, and nobody starts it again\n");
    ck_assert_ptr_nonnull(strstr(look("wanted/w1").value, "\"state\":\"stopped\""));
    ck_assert_ptr_nonnull(strstr(look("wanted/w1").value, "\"by\":\"ada\""));
    ck_assert_ptr_nonnull(strstr(look("wanted/w1").value, "\"reason\":\"wrong model\""));
    cli("restart", "w2");
    expect(0, NULL);
    ck_assert_ptr_nonnull(strstr(look("health/w2").value, "\"held\":false"));
    ck_assert_ptr_nonnull(strstr(look("health/w2").value, "\"startedAt\":[]"));
    cli("events");
    expect(0, NULL);
    ck_assert_ptr_nonnull(
        strstr(last.out, "operator         w1: agent stopped [wrong model]\n"));
    ck_assert_ptr_nonnull(strstr(last.out, "operator         w2: agent restarted\n"));
    cli("events", "-o", "name");
    expect(0, "1\n2\n");
    cli("explain", "w1");
    expect(0, NULL);
    ck_assert_ptr_nonnull(strstr(last.out, "w1 is stopping: it is wanted stopped\n"));
    ck_assert_ptr_nonnull(strstr(last.out, "registered on node-7 as pid 17"));
    ck_assert_ptr_nonnull(strstr(last.out, "wanted stopped by ada: wrong model"));
    cli("agent", "rm", "w1");
    expect_error(4, "agent w1 is alive. Stop it first");
    cli("agent", "rm", "w2", "-o", "json");
    expect(0, "{\n    \"subject\": \"w2\",\n    \"what\": \"removed\"\n}\n");
    ck_assert_int_eq(look("agents/w2/spec").count, 0);
    ck_assert_int_eq(look("health/w2").count, 0);
}
END_TEST

START_TEST(a_host_is_cordoned_and_given_up)
{
    put_fleet();
    cli("host", "cordon", "node-7");
    expect(0, NULL);
    cli("hosts");
    expect(0, "HOST    LIVE  STATE     AGENTS  CAPACITY  POOLS          LAUNCHERS  VERSION\n"
              "node-7  yes   cordoned       1        40  batch,default  writer     0.1.0\n");
    cli("host", "uncordon", "node-7");
    expect(0, NULL);
    cli("host", "lost", "node-7");
    expect_error(4, "host node-7 is alive");
    hft_revoke(&hand, look("hosts/node-7/live").lease);
    cli("host", "lost", "node-7");
    expect(0, NULL);
    ck_assert_ptr_nonnull(strstr(look("hosts/node-7/record").value, "\"left\":true"));
    cli("host", "rm", "node-7");
    expect(0, "node-7: removed\n");
    cli("hosts");
    ck_assert_str_eq(last.err, "There are no hosts.\n");
}
END_TEST

/* On a terminal of eighty columns no word is cut in two. */
START_TEST(an_explanation_fits_the_line)
{
    put_fleet();
    (void)put("tasks/report-2",
              "{\"id\":\"report-2\",\"role\":\"writer\",\"state\":\"in_progress\","
              "\"owner\":{\"agent\":\"w1\"},\"reason\":\"its owner is gone\"}",
              HF_NO_LEASE);
    hft_output_done(&last);
    hft_cli_env((const char *const[]){ "COLUMNS=80", NULL }, &last, server.endpoint, "explain",
                "w1", NULL);
    expect(0, NULL);
    ck_assert_msg(strstr(last.out, " described: role writer, launcher writer, home\n"
                                   "                                 anywhere\n") != NULL,
                  "%s", last.out);
    (void)put("agents/w1/report", "{\"progress\":{\"percent\":40}}", HF_NO_LEASE);
    cli("explain", "w1"); /* it works, which is nothing that it said of itself */
    ck_assert_msg(strstr(last.out, "said of itself") == NULL, "%s", last.out);
    (void)put("agents/w1/report", "{\"phase\":\"drafting\"}", HF_NO_LEASE);
    cli("explain", "w1");
    ck_assert_msg(strstr(last.out, "said of itself: phase drafting\n") != NULL, "%s", last.out);
    cli("explain", "report-2"); /* why it was once taken away does not hold any more */
    ck_assert_msg(strstr(last.out, "report-2 is in_progress, by w1\n") == last.out, "%s",
                  last.out);
}
END_TEST

START_TEST(what_must_hold_is_checked_and_named)
{
    put_fleet();
    (void)put("pending/writer/ghost", "{}", HF_NO_LEASE);
    (void)put("agents/w3/live", "{\"host\":\"node-7\"}", HF_NO_LEASE);
    cli("invariants");
    expect(1, "I1   agents/w3/live: it hangs on no lease, and would outlive its agent\n"
              "I9   pending/writer/ghost: there is no such task\n");
    cli("invariants", "-o", "name");
    expect(1, "agents/w3/live\npending/writer/ghost\n");
}
END_TEST

START_TEST(a_bad_record_is_named_and_the_others_are_shown)
{
    put_fleet();
    (void)put("tasks/bad", "{\"id\":", HF_NO_LEASE);
    cli("task", "ls", "-o", "name");
    expect(0, "report-1\n");
    ck_assert_ptr_nonnull(
        strstr(last.err, "warning: /holdfast/default/tasks/bad cannot be read"));
    cli("task", "show", "bad");
    expect_error(1, "tasks/bad cannot be read");
    cli("doctor");
    ck_assert_int_eq(last.status, 1);
    ck_assert_ptr_nonnull(strstr(last.out, "trouble nobody leads"));
    ck_assert_ptr_nonnull(strstr(last.out, "trouble 1 agents are held"));
    ck_assert_ptr_nonnull(strstr(last.out, "trouble 1 records cannot be read"));
    (void)put("agents/w1/report", "{\"state\":\"nonsense\"}", HF_NO_LEASE);
    cli("explain", "w1");
    ck_assert_int_eq(last.status, 0);
    ck_assert_ptr_nonnull(strstr(last.out, "w1 is "));
    ck_assert_ptr_nonnull(strstr(last.err, "agents/w1/report cannot be read"));
    (void)put("health/w1", "{\"state\":\"nonsense\"}", HF_NO_LEASE);
    cli("explain", "w1");
    expect_error(1, "health/w1 cannot be read");
    (void)put("meta", "{}}", HF_NO_LEASE); /* for a number that is shown; not to act on */
    cli("ps", "-o", "name");
    ck_assert_int_eq(last.status, 0);
    ck_assert_ptr_nonnull(strstr(last.out, "w1\n"));
    ck_assert_ptr_nonnull(strstr(last.err, "warning: /holdfast/default/meta cannot be read"));
    cli("restart", "w1");
    expect_error(1, "Correct it; etcdctl get --rev shows what it was before");
}
END_TEST

/* Whoever reads a pipe may have enough, and hears nothing of it. */
START_TEST(a_reader_that_is_gone_is_no_error)
{
    const char *const argv[] = {
        HOLDFAST_PROGRAMS "/holdfast", "--endpoints", server.endpoint, "task", "ls", NULL
    };
    int out[2], err[2], status;
    char said[64];
    pid_t pid;

    put_fleet();
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
    (void)close(out[0]);
    pid = hft_process_spawn(&(struct hft_spawn){
        .argv = argv, .env = hft_sanitizer_env(), .out = out[1], .err = err[1] });
    (void)close(out[1]);
    (void)close(err[1]);
    status = hft_process_reap(pid, STEP_MS);
    ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE, "%#x", (unsigned)status);
    ck_assert_int_eq(read(err[0], said, sizeof said), 0);
    (void)close(err[0]);
}
END_TEST

START_TEST(a_host_is_drained)
{
    put_fleet();
    cli("host", "drain", "node-7");
    expect(0, "node-7: gets no new starts; what runs there ends, and is started elsewhere\n");
    ck_assert_ptr_nonnull(strstr(look("hosts/node-7/record").value, "\"cordoned\":true"));
    ck_assert_ptr_nonnull(strstr(look("wanted/w1").value, "\"state\":\"running\""));
    ck_assert_ptr_null(strstr(look("wanted/w1").value, "\"endUpto\":\"0\""));
    ck_assert_int_eq(look("wanted/w2").count, 0); /* it does not run there */
    cli("host", "drain", "nowhere");
    expect_error(3, "there is no host nowhere");
}
END_TEST

START_TEST(what_a_person_stopped_is_not_called_back_by_a_drain)
{
    put_fleet();
    cli("stop", "w1"); /* which takes a while: it lives on */
    ck_assert_int_eq(last.status, 0);
    cli("host", "drain", "node-7");
    ck_assert_int_eq(last.status, 0);
    ck_assert_ptr_nonnull(strstr(look("hosts/node-7/record").value, "\"cordoned\":true"));
    ck_assert_ptr_nonnull(strstr(look("wanted/w1").value, "\"state\":\"stopped\""));
}
END_TEST

static bool is_logged(void *arg)
{
    (void)arg;
    cli("logs", "w9");
    return last.status == 0 && strstr(last.out, "second") != NULL;
}

START_TEST(an_agent_s_words_are_shown_where_it_runs)
{
    struct hft_program agentd = { 0 };
    char dir[HFT_PATH_MAX + 32];

    (void)snprintf(dir, sizeof dir, "%s/state", server.dir.path);
    hft_program_start(&agentd, "agentd", server.dir.path, "agentd", server.endpoint, "run",
                      "--name", "w9", "--state-dir", dir, "--", "sh", "-c",
                      "echo first; echo second >&2; exec sleep 600", NULL);
    hft_wait_or_fail(is_logged, NULL, STEP_MS, "what the agent wrote");
    ck_assert_str_eq(last.out, "first\nsecond\n");
    (void)hft_program_stop(&agentd);
    cli("logs", "w9");
    expect_error(3, "--state-dir");
    cli("logs", "w9", "--state-dir", dir);
    expect(0, "first\nsecond\n");
    cli("logs", "nobody");
    expect_error(3, "there is no agent nobody");
    put_fleet();
    cli("logs", "w1");
    expect_error(3, "lies on its host, node-7");
}
END_TEST

START_TEST(a_mistake_is_answered_with_what_to_do)
{
    cli("tsk", "ls");
    expect_error(2, "did you mean task ls?");
    cli("task", "show");
    expect_error(2, "TASK is missing");
    cli("task", "show", "Not A Name");
    ck_assert_int_eq(last.status, 2);
    cli("task", "submit", "--payload", "x");
    expect_error(2, "--role is missing");
    cli("task", "ls", "--state", "done");
    expect_error(2, "done is no state of a task");
    cli("task", "show", "nope");
    expect_error(3, "there is no task nope; holdfast task ls lists them");
    cli("leader");
    expect_error(3, "nobody leads");
    hft_output_done(&last);
    hft_cli(&last, "127.0.0.1:1", "ps", NULL);
    expect_error(5, "Is it running?");
    cli("ps", "--user", "u", "--password-file", "/no/such");
    expect_error(2, "/no/such: cannot be read: No such file");
    cli("ps", "--user", "u", "--password-file", "/");
    expect_error(2, "/: cannot be read: Is a directory");
}
END_TEST

START_TEST(records_of_a_newer_version_are_read_and_not_written)
{
    (void)put("meta", "{\"clusterId\":\"x\",\"schemaVersion\":2}", HF_NO_LEASE);
    (void)put("agents/w1/spec", "{\"role\":\"coder\"}", HF_NO_LEASE);
    cli("ps", "-o", "name");
    ck_assert_int_eq(last.status, 0);
    cli("stop", "w1");
    expect_error(1, "the records in etcd are of version 2");
    cli("task", "submit", "--role", "coder");
    expect_error(1, "use a newer one");
    ck_assert_int_eq(look("wanted/w1").count, 0);
    (void)put("meta", "nonsense", HF_NO_LEASE);
    cli("task", "submit", "--role", "coder");
    ck_assert_msg(last.status == 0, "%s", last.err);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cli");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_reader_that_is_gone_is_no_error);
    tcase_add_test(t, agents_are_shown_as_wide_as_the_terminal_is);
    tcase_add_test(t, json_has_the_members_that_scripts_rely_on);
    tcase_add_test(t, what_a_life_before_said_is_not_shown_as_if_it_held);
    tcase_add_test(t, who_is_suspected_does_not_look_as_if_it_had_spoken);
    tcase_add_loop_test(t, what_is_for_scripts_can_be_read_by_them, 0,
                        sizeof SCRIPTED / sizeof SCRIPTED[0]);
    tcase_add_test(t, an_agent_is_stopped_and_a_held_one_released);
    tcase_add_test(t, a_host_is_cordoned_and_given_up);
    tcase_add_test(t, an_explanation_fits_the_line);
    tcase_add_test(t, what_must_hold_is_checked_and_named);
    tcase_add_test(t, a_bad_record_is_named_and_the_others_are_shown);
    tcase_add_test(t, a_host_is_drained);
    tcase_add_test(t, what_a_person_stopped_is_not_called_back_by_a_drain);
    tcase_add_test(t, an_agent_s_words_are_shown_where_it_runs);
    tcase_add_test(t, a_mistake_is_answered_with_what_to_do);
    tcase_add_test(t, records_of_a_newer_version_are_read_and_not_written);
    return hft_suite_run("e2e: cli", t, NULL);
}
