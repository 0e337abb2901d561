/* agentd run: one command, as if agentd were not there: its input, its signals, its end. */
#include "e2e/agentd_fixture.h"

/* Waits until it ends by itself, and returns its exit code. */
static int code_of(pid_t agentd)
{
    int status = hft_process_reap(agentd, STEP_MS);

    ck_assert_msg(WIFEXITED(status), "agentd ended with %#x", (unsigned)status);
    check_log();
    return WEXITSTATUS(status);
}

static void stop_agent(void)
{
    HFT_CLEANUP_OUTPUT struct hft_output output;

    hft_cli(&output, server.endpoint, "stop", "a1", NULL);
    ck_assert_msg(output.status == 0, "%s", output.err);
}

#define REST "while :; do sleep 0.05; done"

START_TEST(it_ends_with_the_code_of_an_agent_that_is_stopped)
{
    pid_t agentd;

    begin_leader();
    agentd = start("a1",
                   (const char *[]){ "sh", "-c", "trap 'exit 5' TERM; " SAY_READY REST, NULL });
    await("agents/a1/report", "\"state\":\"ready\"");
    stop_agent();
    ck_assert_int_eq(code_of(agentd), 5);
    await("agents/a1/exit", "\"kind\":\"terminated\"");
    agentd = start("a1", (const char *[]){ "true", NULL }); /* nobody wants it, still */
    ck_assert_int_eq(code_of(agentd), 0);
    await_line("agentd.log", "it is wanted stopped: `holdfast start` wants it again");
}
END_TEST

/* Another host has it: nobody waits in line for a key, and a person is told what holds. */
START_TEST(it_says_why_it_does_not_start_its_agent)
{
    int64_t lease = hft_grant(&hand, 60);
    pid_t agentd;

    (void)hft_put(&hand, "/holdfast/default/agents/a1/live", "{\"host\":\"elsewhere\"}", lease);
    agentd = start("a1", (const char *[]){ "true", NULL });
    await_line("agentd.log", "event=waiting program=agentd ns=default agent=a1 "
                             "why=\"it is live already\"");
    (void)stop(agentd);
}
END_TEST

/* It can be started nowhere else, so a person has to look. */
START_TEST(it_ends_with_the_code_of_an_agent_that_is_held)
{
    pid_t agentd;

    begin_leader();
    agentd = start("a1", (const char *[]){ "sh", "-c", "exit 7", NULL });
    ck_assert_int_eq(code_of(agentd), 7);
    await_line("agentd.log", "it is held: `holdfast restart` releases it");
    await("health/a1", "\"held\":true");
}
END_TEST

START_TEST(with_once_it_ends_with_the_first_process)
{
    hf_rev life;
    pid_t agentd;

    begin_leader();
    agentd = start_with("a1", (const char *[]){ "--once", "--restart", "always", NULL },
                        (const char *[]){ "sh", "-c", SAY_READY "exec sleep 600", NULL });
    await("agents/a1/report", "\"state\":\"ready\"");
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    ck_assert_int_eq(code_of(agentd), 128 + SIGKILL);
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
}
END_TEST

/* Nobody leads, so the agent is absent for a while: a link that begins then has never seen it.
 */
START_TEST(a_new_link_knows_the_code_of_a_process_that_ended_before_it_came)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c", SAY_READY "exit 9", NULL });

    await("agents/a1/exit", "\"status\":9");
    await_line("agentd.log", "event=ended");
    kill_link();
    await_link(2);
    stop_agent();
    ck_assert_int_eq(code_of(agentd), 9);
}
END_TEST

static const struct {
    int number;
    const char *name;
} SIGNALS[] = { { SIGINT, "INT" }, { SIGTERM, "TERM" } };

/* As the signal that it was, and not as a crash. */
START_TEST(a_signal_that_stops_agentd_stops_the_agent)
{
    pid_t agentd =
        start("a1", (const char *[]){ "sh", "-c",
                                      "trap 'echo got INT; exit 3' INT; "
                                      "trap 'echo got TERM; exit 3' TERM; " SAY_READY REST,
                                      NULL });
    char expected[16];

    await("agents/a1/report", "\"state\":\"ready\"");
    ck_assert_int_eq(kill(agentd, SIGNALS[_i].number), 0);
    ck_assert_int_eq(code_of(agentd), 3);
    (void)snprintf(expected, sizeof expected, "got %s", SIGNALS[_i].name);
    await_line("agents/a1.log", expected);
    await("agents/a1/exit", "\"kind\":\"terminated\"");
    await("hosts/h1/record", "\"left\":true");
}
END_TEST

START_TEST(the_other_signals_are_for_the_agent)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 "trap 'echo got HUP' HUP; "
                                                 "trap 'echo got USR1' USR1; " SAY_READY REST,
                                                 NULL });
    pid_t link;

    await("agents/a1/report", "\"state\":\"ready\"");
    link = pid_in("link.pid");
    ck_assert_int_eq(kill(agentd, SIGTSTP), 0);
    ck_assert_int_eq(kill(agentd, SIGHUP), 0);
    await_line("agents/a1.log", "got HUP");
    ck_assert_int_eq(kill(agentd, SIGUSR1), 0);
    await_line("agents/a1.log", "got USR1");
    ck_assert_int_eq(pid_in("link.pid"), link); /* nothing was read anew */
    (void)stop(agentd);
}
END_TEST

START_TEST(the_agent_reads_what_is_for_agentd_to_read)
{
    static const char TEXT[] = "through a pipe\n";
    pid_t agentd;
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    input = ends[0];
    agentd = start("a1", (const char *[]){ "cat", NULL });
    (void)close(ends[0]);
    ck_assert_int_eq(write(ends[1], TEXT, strlen(TEXT)), (ssize_t)strlen(TEXT));
    await_line("agents/a1.log", TEXT);
    (void)close(ends[1]);
    ck_assert_int_eq(code_of(agentd), 0);
    await("agents/a1/exit", "\"kind\":\"finished\"");
}
END_TEST

/* It would take what is typed for others. */
START_TEST(a_terminal_is_not_for_the_agent_to_read)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    pid_t agentd;

    ck_assert_int_ge(master, 0);
    ck_assert_int_eq(grantpt(master), 0);
    ck_assert_int_eq(unlockpt(master), 0);
    input = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(input, 0);
    agentd = start("a1", (const char *[]){ "sh", "-c", "cat; echo nothing to read", NULL });
    ck_assert_int_eq(code_of(agentd), 0);
    await_line("agents/a1.log", "nothing to read");
    (void)close(input);
    (void)close(master);
}
END_TEST

/* Told to end, it says again and again that it needs another two seconds, sixteen in all: more
 * than its grace, than agentd waits for ends to be written, and than anybody waits for a
 * SIGKILL to work. */
static const char DRAINS[] = "import os, signal, socket, sys, time\n"
                             "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                             "s.connect(os.environ['NOTIFY_SOCKET'])\n"
                             "def drain(number, frame):\n"
                             "    for i in range(int(sys.argv[2]) * 2):\n"
                             "        s.send(b'STOPPING=1\\nEXTEND_TIMEOUT_USEC=2000000')\n"
                             "        time.sleep(0.5)\n"
                             "    open(sys.argv[1] + '/drained', 'w').write('all')\n"
                             "    os._exit(0)\n"
                             "signal.signal(signal.SIGTERM, drain)\n"
                             "s.send(b'READY=1')\n"
                             "while True:\n"
                             "    time.sleep(1)\n";

static pid_t start_drainer(const char *seconds)
{
    pid_t agentd =
        start_with("a1", (const char *[]){ "--stop-grace", "1s", NULL },
                   (const char *[]){ "python3", "-c", DRAINS, dir.path, seconds, NULL });

    await("agents/a1/report", "\"state\":\"ready\"");
    return agentd;
}

START_TEST(who_needs_longer_to_end_says_so_as_to_systemd)
{
    pid_t agentd = start_drainer("16");

    if (_i == 0)
        (void)hft_put(&hand, ROOT "wanted/a1", "{\"state\":\"stopped\"}", HF_NO_LEASE);
    else
        ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    await("agents/a1/report", "\"state\":\"draining\"");
    await("agents/a1/report", "\"until\"");
    ck_assert_int_eq(hft_process_reap(agentd, STEP_MS), 0);
    await_line("drained", "all");
    check_log();
}
END_TEST

static bool is_told_until_it_ends(void *arg)
{
    (void)kill(*(const pid_t *)arg, SIGTERM);
    return hft_process_has_ended(*(const pid_t *)arg, &(int){ 0 });
}

/* Whoever cannot wait need not. */
START_TEST(the_third_signal_ends_who_asks_for_more_time)
{
    pid_t agentd = start_drainer("600");

    ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    await("agents/a1/report", "\"state\":\"draining\"");
    hft_wait_or_fail(is_told_until_it_ends, &agentd, STEP_MS, "the end of agentd");
}
END_TEST

static bool is_there(pid_t pid)
{
    char path[64], *text, *end;
    bool there;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    text = hft_read_text(path, NULL);
    end = strrchr(text, ')');
    there = end != NULL && end[2] != 'Z';
    free(text);
    return there;
}

/* As an entry point of a container does it: what it has started becomes agentd's child. Without
 * rights, where all that is nobody else's would be an agent's. */
START_TEST(who_was_there_before_agentd_is_not_its_to_end)
{
    static const char SCRIPT[] = "sleep 600 & echo $! >\"$0/early\"; exec \"$@\"";
    hf_rev life;
    pid_t agentd, early;

    is_nobodys = hft_is_nobodys(true);
    if (is_nobodys)
        hft_settle_nobody(dir.path, NULL);
    begin_leader();
    const char *argv[] = { "sh",
                           "-c",
                           SCRIPT,
                           dir.path,
                           agentd_program(),
                           "run",
                           "--name",
                           "a1",
                           "--role",
                           "r1",
                           "--state-dir",
                           dir.path,
                           "--host",
                           "h1",
                           "--endpoints",
                           server.endpoint,
                           "--",
                           "sh",
                           "-c",
                           SAY_READY "exec sleep 600",
                           NULL };
    agentd = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = sanitizer_env(), .as_nobody = is_nobodys });
    await("agents/a1/report", "\"state\":\"ready\""); /* its start has not failed */
    early = pid_in("early");
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
    ck_assert(is_there(early));
    ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    (void)hft_process_reap(agentd, STEP_MS);
    ck_assert(is_there(early));
    ck_assert_int_eq(kill(early, SIGKILL), 0);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, it_ends_with_the_code_of_an_agent_that_is_stopped);
    tcase_add_test(stories, it_says_why_it_does_not_start_its_agent);
    tcase_add_test(stories, it_ends_with_the_code_of_an_agent_that_is_held);
    tcase_add_test(stories, with_once_it_ends_with_the_first_process);
    tcase_add_test(stories, a_new_link_knows_the_code_of_a_process_that_ended_before_it_came);
    tcase_add_loop_test(stories, a_signal_that_stops_agentd_stops_the_agent, 0,
                        sizeof SIGNALS / sizeof SIGNALS[0]);
    tcase_add_test(stories, the_other_signals_are_for_the_agent);
    tcase_add_test(stories, the_agent_reads_what_is_for_agentd_to_read);
    tcase_add_test(stories, a_terminal_is_not_for_the_agent_to_read);
    tcase_add_loop_test(stories, who_needs_longer_to_end_says_so_as_to_systemd, 0, 2);
    tcase_add_test(stories, the_third_signal_ends_who_asks_for_more_time);
    tcase_add_test(stories, who_was_there_before_agentd_is_not_its_to_end);
    return hft_suite_run("agentd run", stories, NULL);
}
