/* The clients that agents are written with, in C, Python and Node.js: each says and hears
 * everything that there is, on a real agentd, and is killed in the middle of it. */
#include "e2e/agentd_fixture.h"

#define EXAMPLES HOLDFAST_SOURCE_DIR "/examples"
#define TALKER   HOLDFAST_SOURCE_DIR "/tests/e2e/talker"
#define PAGE     HOLDFAST_SOURCE_DIR "/docs/agents.md"

enum { C, PYTHON, NODE, LANGUAGES };

/* A line of the agent's own log. */
static void await_said(const char *line)
{
    await_line("agents/a1.log", line);
}

/* Starts the talker of a language; 0: that language is not installed here. */
static pid_t start_talker(int language, const char *mode)
{
    static const char *const PROGRAMS[] = {
        "exec '" HOLDFAST_TALKER "' \"$@\"",
        "PYTHONDONTWRITEBYTECODE=1 PYTHONPATH='" EXAMPLES "/python' exec python3 '" TALKER
        "/talker.py' \"$@\"",
        "exec node '" TALKER "/talker.mjs' \"$@\"",
    };
    struct hft_output found;
    bool is_there;

    hft_process_run((const char *[]){ "sh", "-c", "command -v node", NULL }, NULL, &found);
    is_there = language != NODE || found.status == 0;
    hft_output_done(&found);
    if (!is_there)
        hft_skip("node is not installed");
    return is_there ? start("a1", (const char *[]){ "sh", "-c", PROGRAMS[language], "sh",
                                                    dir.path, mode, NULL })
                    : 0;
}

static pid_t agent(void)
{
    return (pid_t)number_in("agents/a1/live", "\"pid\"");
}

/* It says how it is, and what makes no sense is refused with a reason. */
static void check_first_words(void)
{
    await_said("self a1 r1 same\n");
    await_said("waiting 1 go on\n");
    await("agents/a1/report", "\"state\":\"parked\"");
    await("agents/a1/report", "\"until\":\"20");
    await("agents/a1/report", "\"reason\":\"rate limit\"");
    await("agents/a1/report", "\"phase\":\"think\\\"ing \xe2\x82\xac\"");
    await("agents/a1/report", "\"tokens\":\"1234\"");
    await("agents/a1/report", "\"percent\":12.5");
    await_said("EINVAL percent: 0 to 100\n");
    await_said("EINVAL ");
    await_said("ENOENT there is no such task (check the name)\n");
    await_said("submitted t0 x\n");
    await_said("ECONFLICT the task is not this agent's: it is pending (read the task again and "
               "decide anew)\n");
    await_said("ENOENT it was never asked that, or something else since (check the name)\n");
}

/* While nobody can be sure of it, it stands still, and is told before and afterwards. */
static void check_fence(void)
{
    await_said("event ping");
    hft_etcd_pause(&server);
    await_line("agentd.log", "event=fenced");
    hft_etcd_resume(&server);
    await_said("event jeopardy until\n");
    await_said("event thawed length\n");
}

START_TEST(an_agent_says_and_hears_everything_and_survives_its_death)
{
    pid_t agentd, first;
    char *log;

    begin_leader();
    agentd = start_talker(_i, "talk");
    if (agentd == 0)
        return;
    check_first_words();
    submit("t1", "r1", "5");
    await_said("claimed t1 5 attempt 0\n");
    await_said("nothing kept\n");
    await_said("saved 1\n");
    await("agents/a1/report", "\"note\":\"step 1\"");
    check_fence();

    first = agent();
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    await_said("claimed t1 5 attempt 1\n");
    await_said("loaded 1 one\n");
    await_said("saved 2\n");
    await_said("loaded 2 from a file\n");
    await("tasks/t1", "\"state\":\"completed\"");
    await("tasks/t1", "\"result\":\"done\"");
    ck_assert_int_ne(agent(), first);

    /* Work is told of, not asked for. */
    await_said("completed t1\n");
    submit("t2", "r1", "fail");
    await_said("event task t2\n");
    await("tasks/t2", "\"state\":\"failed\"");
    await("tasks/t2", "\"reason\":\"no use\"");

    /* A link that is replaced is listened to again. */
    kill_link();
    await_link(2);
    submit("t3", "r1", "last");
    await_said("event task t3\n");
    await_said("completed t3\n");
    ck_assert_int_eq(stop(agentd), 0);
    await_said("event stop length\n");
    log = read_file("agentd.log");
    ck_assert_msg(strstr(log, "event=frozen") == NULL, "%s", log);
    free(log);
}
END_TEST

/* A task that should be done in a second, by a controller that soon asks why it is not. */
static void lead_and_submit(void)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };

    hft_program_start(&leader, "holdfast-controller", dir.path, "c1", server.endpoint, "--id",
                      "c1", "--progress-max", "2s", "--inquiry-answer", "5m", NULL);
    hft_program_until_said(&leader, "event=leading", STEP_MS);
    hft_cli(&output, server.endpoint, "task", "submit", "--role", "r1", "--id", "t1",
            "--expected", "1s", NULL);
    ck_assert_msg(output.status == 0, "%s", output.err);
}

START_TEST(an_agent_reads_what_it_is_asked_and_gives_back_what_it_cannot_do)
{
    pid_t agentd = start_talker(_i, "ponder");

    if (agentd == 0)
        return;
    lead_and_submit();
    await_said("pondering t1\n");
    await("agents/a1/report", "\"delivered\":{\"by\":\"events\",\"at\":");
    await_said("read task t1 should be done");
    await("agents/a1/report", "\"readAt\":\"");
    await("tasks/t1", "\"state\":\"in_progress\"");
    ck_assert_int_eq(stop(agentd), 0);
    await_said("released t1\n");
    await("tasks/t1", "\"state\":\"pending\"");
    await("tasks/t1", "\"reason\":\"too hard\"");
}
END_TEST

/* Whoever has said goodbye is fenced, and reads why. */
START_TEST(an_agent_leaves_and_is_nobody_then)
{
    pid_t agentd = start_talker(_i, "leave");
    int status;

    if (agentd == 0)
        return;
    await_said("EFENCED ");
    await_said("(stop: another incarnation may be this agent now)\n");
    status = hft_process_reap(agentd, STEP_MS);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    await("agents/a1/exit", "\"kind\":\"left\"");
    await("agents/a1/exit", "enough");
    check_log();
}
END_TEST

/* A wait of minutes ends with a signal. */
START_TEST(an_agent_that_waits_can_be_interrupted)
{
    pid_t agentd = start_talker(_i, "claim");
    int status;

    if (agentd == 0)
        return;
    await_said("claiming\n");
    ck_assert_int_eq(kill(agent(), SIGUSR1), 0);
    await_said("ECANCELED interrupted\n");
    status = hft_process_reap(agentd, STEP_MS);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    check_log();
}
END_TEST

/* The programs on the page for authors, word for word. */
START_TEST(what_the_manual_shows_does_what_it_says)
{
    static const char *const RUN[] = {
        "'" TALKER "/page.sh' '" PAGE "' c >page.c && " HOLDFAST_COMPILER
        " -Wall -Werror -I '" HOLDFAST_SOURCE_DIR "/lib' -I '" HOLDFAST_SOURCE_DIR
        "/lib/client' page.c '" HOLDFAST_LIBRARY
        "' -o page && exec env LD_LIBRARY_PATH=\"$(dirname '" HOLDFAST_LIBRARY "')\" ./page",
        "'" TALKER "/page.sh' '" PAGE "' python >page.py && PYTHONDONTWRITEBYTECODE=1 "
        "PYTHONPATH='" EXAMPLES "/python' exec python3 page.py",
        "'" TALKER "/page.sh' '" PAGE "' js >page.mjs && cp '" EXAMPLES
        "/node/holdfast.mjs' . && exec node page.mjs",
    };
    char script[2000];
    struct hft_output found;
    pid_t agentd, first;
    bool is_there;

    hft_process_run((const char *[]){ "sh", "-c", "command -v node", NULL }, NULL, &found);
    is_there = _i != NODE || found.status == 0;
    hft_output_done(&found);
    if (!is_there) {
        hft_skip("node is not installed");
        return;
    }
    begin_leader();
    (void)snprintf(script, sizeof script, "cd '%s' && %s", dir.path, RUN[_i]);
    agentd = start("a1", (const char *[]){ "sh", "-c", script, NULL });
    submit("t1", "r1", "5");
    await_head("t1", 1);
    first = agent();
    ck_assert_int_eq(kill(first, SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    await("tasks/t1", "\"result\":\"5 steps\"");
    await("tasks/t1", "\"checkpoint\":{\"seq\":\"5\""); /* none was kept twice */
    ck_assert_int_ne(agent(), first);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_loop_test(stories, an_agent_says_and_hears_everything_and_survives_its_death, 0,
                        LANGUAGES);
    tcase_add_loop_test(stories,
                        an_agent_reads_what_it_is_asked_and_gives_back_what_it_cannot_do, 0,
                        LANGUAGES);
    tcase_add_loop_test(stories, an_agent_leaves_and_is_nobody_then, 0, LANGUAGES);
    tcase_add_loop_test(stories, an_agent_that_waits_can_be_interrupted, 0, LANGUAGES);
    tcase_add_loop_test(stories, what_the_manual_shows_does_what_it_says, 0, LANGUAGES);
    return hft_suite_run("clients of agents", stories, NULL);
}
