/* The real agentd, keeper and link, with real agents that are really killed, on a real etcd.
 */
#include "e2e/agentd_fixture.h"

/* Registered before it begins, and its end is written with what is known of it. */
START_TEST(an_agent_is_registered_and_its_death_is_told)
{
    pid_t agentd =
        start("a1", (const char *[]){ "sh", "-c", SAY_READY "exec sleep 600", NULL });
    hf_rev life;
    char *exit, ended[200];

    await("agents/a1/live", "\"host\":\"h1\"");
    await("agents/a1/spec", "\"transient\":true");
    await("hosts/h1/record", "\"launchers\":[\"run.a1\"]");
    await("agents/a1/report", "\"state\":\"ready\"");
    await_event("joined");
    life = look("agents/a1/live").create_rev;
    (void)snprintf(ended, sizeof ended,
                   "event=ended program=agentd ns=default agent=a1 pid=%lld incarnation=%lld",
                   number_in("agents/a1/live", "\"pid\""), (long long)life);
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await("agents/a1/exit", "\"signal\":9");
    await_line("agentd.log", ended);
    exit = look_whole("agents/a1/exit");
    ck_assert_msg(strstr(exit, "\"kind\":\"crashed\"") != NULL, "%s", exit);
    free(exit);
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
    ck_assert_int_eq(stop(agentd), 128 + SIGKILL);
    ck_assert_int_eq(look("hosts/h1/live").count, 0);
    await("hosts/h1/record", "\"left\":true");
}
END_TEST

/* The agent knows who it is. */
START_TEST(an_agent_gets_its_environment_and_ends_as_it_likes)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 "env >\"$0\"/env.new; mv \"$0\"/env.new "
                                                 "\"$0\"/env; exit 0",
                                                 dir.path, NULL });
    int status = hft_process_reap(agentd, STEP_MS);
    char *env = read_file("env"), expected[64];

    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    (void)snprintf(expected, sizeof expected, "HOLDFAST_INCARNATION=%lld\n",
                   number_in("agents/a1/exit", "\"createRevision\""));
    ck_assert_ptr_nonnull(strstr(env, expected));
    ck_assert_ptr_nonnull(strstr(env, "HOLDFAST_AGENT=a1\n"));
    ck_assert_ptr_nonnull(strstr(env, "HOLDFAST_ROLE=r1\n"));
    ck_assert_ptr_nonnull(strstr(env, "/agents/a1.sock\n"));
    ck_assert_ptr_null(strstr(env, "HOLDFAST_TASK="));
    free(env);
    await("agents/a1/exit", "\"kind\":\"finished\"");
    await("agents/a1/live", NULL);
}
END_TEST

/* The whole story: a task, its checkpoints, a death, a successor that goes on, one end. */
static void tell_story(const char *const command[])
{
    pid_t agentd;
    hf_rev life;
    char *log;

    begin_leader();
    agentd = start("a1", command);
    submit("t1", "r1", "12");
    await_head("t1", 3);
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    ck_assert_int_gt(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(number_in("tasks/t1", "\"attempt\""), 1); /* it was 0 */
    await("tasks/t1", "\"restored\":{\"seq\":\"");             /* and it says from where */
    await_line("agents/a1.log", "completed t1");
    log = read_file("agents/a1.log");
    ck_assert_msg(strstr(log, "resume t1 behind step") != NULL, "%s", log);
    ck_assert_ptr_eq(strstr(strstr(log, "completed t1") + 1, "completed t1"), NULL);
    free(log);
    /* The last five are kept, with their bodies. */
    await("checkpoints/t1/0000000000000000007", NULL);
    ck_assert_int_eq(look("checkpoints/t1/0000000000000000008").count, 1);
    ck_assert_int_eq(stop(agentd), 0); /* asked to end while it waits for work, it does */
}

START_TEST(a_task_is_resumed_from_its_checkpoint_by_the_successor)
{
    tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "python3",
                                 HOLDFAST_SOURCE_DIR "/examples/python/worker.py", NULL });
    await("tasks/t1", "\\\"sum\\\": 78");
}
END_TEST

START_TEST(a_shell_can_do_it_too)
{
    tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "sh",
                                 HOLDFAST_SOURCE_DIR "/examples/shell/worker.sh", NULL });
}
END_TEST

START_TEST(node_can_do_it_too)
{
    struct hft_output found;

    hft_process_run((const char *[]){ "sh", "-c", "command -v node", NULL }, NULL, &found);
    if (found.status == 0) {
        tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "node",
                                     HOLDFAST_SOURCE_DIR "/examples/node/worker.mjs", NULL });
        await("tasks/t1", "\\\"sum\\\":78");
    } else {
        hft_skip("node is not installed");
    }
    hft_output_done(&found);
}
END_TEST

/* A link that is killed costs no agent: the next one has its lease, its life and its socket. */
START_TEST(a_link_that_is_killed_costs_nothing)
{
    pid_t agentd, link, agent;
    long long lease;
    hf_rev life;

    begin_leader();
    agentd =
        start("a1", (const char *[]){ "env", "STEP_SECONDS=0.1", "python3",
                                      HOLDFAST_SOURCE_DIR "/examples/python/worker.py", NULL });
    submit("t1", "r1", "30");
    await_head("t1", 3);
    life = look("agents/a1/live").create_rev;
    lease = look("agents/a1/live").lease;
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    link = pid_in("link.pid");
    ck_assert_int_eq(kill(link, SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(look("agents/a1/live").lease, lease);
    ck_assert_int_eq(kill(agent, 0), 0);
    ck_assert_int_ne(pid_in("link.pid"), link);

    /* And it sees to the end of what another one began. */
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    await("agents/a1/exit", "\"signal\":9");
    (void)stop(agentd);
}
END_TEST

static char state_of(pid_t pid)
{
    char path[64], text[512] = "", *end;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return '?';
    end = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
    (void)fclose(file);
    return end != NULL ? end[2] : '?';
}

/* What is left of an agentd that crashed is ended and told of by the next one, at once. */
START_TEST(an_agentd_that_crashed_is_followed_by_another_at_once)
{
    const char *const command[] = { "sh", "-c", SAY_READY "exec sleep 600", NULL };
    pid_t agentd = start("a1", command);
    long long pid, lease;
    hf_rev life;

    await("agents/a1/report", "\"state\":\"ready\"");
    life = look("agents/a1/live").create_rev;
    lease = look("agents/a1/live").lease;
    pid = number_in("agents/a1/live", "\"pid\"");
    ck_assert_int_eq(kill(agentd, SIGKILL), 0);
    (void)hft_process_reap(agentd, STEP_MS);
    agentd = start("a1", command);
    hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
    ck_assert_int_ne(look("agents/a1/live").lease, lease);
    ck_assert_int_ne(number_in("agents/a1/live", "\"pid\""), pid);
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
    ck_assert_ptr_nonnull(strchr("?ZX", state_of((pid_t)pid))); /* whoever reaps it */
    (void)stop(agentd);
}
END_TEST

/* While etcd cannot be asked nobody can be sure of the lease: the agent stands still, and goes
 * on as the same process, registered. */
START_TEST(an_agent_stands_still_while_nobody_can_be_sure_of_it)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 SAY_READY CURL
                                                 "-N http://localhost/v1/events >\"$0\"/events",
                                                 dir.path, NULL });
    char jeopardy[200];
    pid_t agent;

    await("agents/a1/report", "\"state\":\"ready\"");
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    (void)snprintf(jeopardy, sizeof jeopardy,
                   "agent=a1 pid=%d incarnation=%lld fence_in_ms=", (int)agent,
                   (long long)look("agents/a1/live").create_rev);
    hft_etcd_pause(&server);
    await_line("agentd.log", "event=fenced");
    hft_etcd_resume(&server);
    await_line("agentd.log", jeopardy);
    await_line("agentd.log", "event=thawed");
    await_line("events", "event: jeopardy\ndata: {\"until\":");
    await_line("events", "event: thawed\ndata: {\"frozenFor\":");
    ck_assert_int_eq(number_in("agents/a1/live", "\"pid\""), agent);
    (void)stop(agentd);
}
END_TEST

/* The lease is gone, and the agent as well as ever: it goes on under another one. */
START_TEST(an_agent_that_lost_its_lease_is_registered_anew)
{
    pid_t agentd =
        start("a1", (const char *[]){ "sh", "-c", SAY_READY "exec sleep 600", NULL });
    pid_t agent;
    hf_rev life;

    await("agents/a1/report", "\"state\":\"ready\"");
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    life = look("agents/a1/live").create_rev;
    revoke_lease();
    hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
    await_event("adopted");
    ck_assert_int_eq(number_in("agents/a1/live", "\"pid\""), agent);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, an_agent_is_registered_and_its_death_is_told);
    tcase_add_test(stories, an_agent_gets_its_environment_and_ends_as_it_likes);
    tcase_add_test(stories, a_task_is_resumed_from_its_checkpoint_by_the_successor);
    tcase_add_test(stories, a_shell_can_do_it_too);
    tcase_add_test(stories, node_can_do_it_too);
    tcase_add_test(stories, a_link_that_is_killed_costs_nothing);
    tcase_add_test(stories, an_agentd_that_crashed_is_followed_by_another_at_once);
    tcase_add_test(stories, an_agent_stands_still_while_nobody_can_be_sure_of_it);
    tcase_add_test(stories, an_agent_that_lost_its_lease_is_registered_anew);
    return hft_suite_run("agentd on an etcd", stories, NULL);
}
