/* Agents that hang are found by what they do not do any more, named, and ended with what was
 * seen of them; and nobody else is. */
#include <sys/ptrace.h>

#include "base/clock.h"
#include "e2e/agentd_fixture.h"
#include "support/port.h"
#include "support/ticker.h"

enum { FOUND_MS = 5000, HOGS = 6 };

#define AGENT HOLDFAST_SOURCE_DIR "/tests/e2e/pinged.py"

static struct hft_ticker ticker;
static hf_ms since;

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

static pid_t agent_pid(void)
{
    return (pid_t)number_in("agents/a1/live", "\"pid\"");
}

static pid_t begin(const char *mode, const char *const flags[], const char *until)
{
    pid_t agentd = start_with("a1", flags, (const char *[]){ "python3", AGENT, mode, NULL });

    await("agents/a1/live", "\"pid\"");
    await_line("agents/a1.log", until);
    return agentd;
}

static void end(pid_t agentd)
{
    (void)kill(agentd, SIGTERM);
    (void)hft_process_reap(agentd, STEP_MS);
    check_log();
}

static void hang(int signal)
{
    hft_ticker_mark(&ticker);
    since = now();
    ck_assert_int_eq(kill(agent_pid(), signal), 0);
}

/* In the report, and named, within five seconds of a machine that lets us run. */
static void expect_found(const char *part)
{
    hf_ms took;

    await("agents/a1/report", part);
    took = now() - since;
    ck_assert_msg(took <= FOUND_MS + hft_ticker_stall(&ticker), "found after %lld ms",
                  (long long)took);
}

/* As a command line shows it; to be freed. */
static char *shown(const char *command, const char *subject)
{
    struct hft_output output = { 0 };
    char *text;

    hft_cli(&output, server.endpoint, command, subject, NULL);
    text = strdup(output.out);
    ck_assert_ptr_nonnull(text);
    hft_output_done(&output);
    return text;
}

static void expect_shown(const char *command, const char *subject, const char *part)
{
    char *text = shown(command, subject);

    ck_assert_msg(strstr(text, part) != NULL, "%s is not in:\n%s", part, text);
    free(text);
}

static const struct {
    int signal;
    const char *word; /* of the verdict */
    const char *seen; /* of the process */
} HANGS[] = {
    { SIGSTOP, "it is stopped by a signal", "state T" },
    { SIGUSR1, "it computes without a pause", "state R" },
    { SIGUSR2, "it sleeps", "system call" },
};

static void expect_exit(const char *part)
{
    char *value = look_whole("agents/a1/exit");

    ck_assert_msg(strstr(value, part) != NULL, "no %s in %s", part, value);
    free(value);
}

START_TEST(who_hangs_is_found_named_and_ended)
{
    pid_t agentd;

    hft_ticker_start(&ticker);
    begin_leader();
    agentd = begin("ping", (const char *[]){ NULL }, "pong 8");
    hang(HANGS[_i].signal);
    expect_found(HANGS[_i].word);
    await("agents/a1/exit", "\"kind\":\"frozen\"");
    expect_exit(HANGS[_i].word);
    expect_exit(HANGS[_i].seen);
    expect_exit("{\"source\":\"output\"");
    expect_exit("pong 8");
    expect_exit("{\"source\":\"sockets\"");
    /* And another one goes on in its place. */
    hft_wait_or_fail(is_later_life, &(hf_rev){ look("agents/a1/exit").mod_rev }, STEP_MS,
                     "its successor");
    end(agentd);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(a_watchdog_that_is_not_fed_any_more_bites)
{
    pid_t agentd = begin("watchdog", (const char *[]){ "--watchdog", "2s", NULL }, "fed");

    await("agents/a1/report", "\"phase\":\"feeding\"");
    ck_assert_int_eq(kill(agent_pid(), SIGUSR2), 0);
    await("agents/a1/exit", "\"kind\":\"frozen\"");
    expect_exit("no watchdog came for");
    end(agentd);
}
END_TEST

static bool is_clear(void *arg)
{
    char *value = look_whole("agents/a1/report");
    bool clear = strstr(value, "suspicion") == NULL;

    (void)arg;
    free(value);
    return clear;
}

/* What a launcher wants to be reported is not ended, and may come back. */
START_TEST(who_is_only_to_be_reported_goes_on)
{
    pid_t agentd =
        begin("ping", (const char *[]){ "--detect-freeze", "report", NULL }, "pong 8");
    hf_rev life = look("agents/a1/live").create_rev;

    ck_assert_int_eq(kill(agent_pid(), SIGSTOP), 0);
    await("agents/a1/report", "\"frozen\":true");
    ck_assert_int_eq(kill(agent_pid(), SIGCONT), 0);
    hft_wait_or_fail(is_clear, NULL, STEP_MS, "a report without a suspicion");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    end(agentd);
}
END_TEST

/* It promised nothing: what the kernel says of it is shown, and no more. */
START_TEST(who_opted_into_nothing_is_judged_by_its_process_alone)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c", "echo up; sleep 1000", NULL });
    hf_rev life;

    await_line("agents/a1.log", "up");
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill(agent_pid(), SIGSTOP), 0);
    await("agents/a1/report", "it is stopped by a signal");
    expect_shown("ps", NULL, "suspect");
    expect_shown("explain", "a1", "suspected by its agentd (process");
    (void)sleep(8); /* for longer than anybody else would live */
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(kill(agent_pid(), SIGCONT), 0);
    hft_wait_or_fail(is_clear, NULL, STEP_MS, "a report without a suspicion");
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=frozen" }));
    end(agentd);
}
END_TEST

START_TEST(a_debugger_may_hold_an_agent_for_as_long_as_it_wants)
{
    pid_t agentd = begin("ping", (const char *[]){ NULL }, "pong 8"), pid = agent_pid();
    hf_rev life = look("agents/a1/live").create_rev;

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0) {
        end(agentd);
        hft_skip("nothing may be traced here");
        return;
    }
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    await("agents/a1/report", "a debugger holds it");
    (void)sleep(8);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(ptrace(PTRACE_DETACH, pid, NULL, NULL), 0);
    hft_wait_or_fail(is_clear, NULL, STEP_MS, "a report without a suspicion");
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=frozen" }));
    end(agentd);
}
END_TEST

START_TEST(who_is_busy_need_not_answer)
{
    pid_t agentd = begin("busy", (const char *[]){ NULL }, "busy");
    hf_rev life = look("agents/a1/live").create_rev;

    await("agents/a1/report", "\"until\":\"");
    expect_shown("ps", NULL, "busy (ends in ");
    await_line("agents/a1.log", "done");
    await_line("agents/a1.log", "pong 6");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=suspect" }));
    end(agentd);
}
END_TEST

/* It serves over HTTP, and stands still: its kernel goes on to accept connections. */
START_TEST(a_probe_finds_who_does_not_serve_any_more)
{
    struct hft_port port = { 0 };
    char number[8], address[64];
    pid_t agentd;

    hft_port_take(&port);
    (void)snprintf(number, sizeof number, "%d", port.number);
    (void)snprintf(address, sizeof address, "http://127.0.0.1:%d/", port.number);
    agentd =
        start_with("a1", (const char *[]){ "--probe", address, "--probe-every", "1s", NULL },
                   (const char *[]){ "python3", "-u", "-m", "http.server", "--bind",
                                     "127.0.0.1", number, NULL });
    await_line("agents/a1.log", "\"GET / HTTP/1.1\" 200");
    ck_assert_int_eq(kill(agent_pid(), SIGSTOP), 0);
    await("agents/a1/exit", "\"kind\":\"frozen\"");
    expect_exit("3 probes failed in");
    expect_exit("it is stopped by a signal");
    expect_exit("tcp listens at 127.0.0.1");
    expect_shown("explain", "a1", "found frozen by its agentd (probe");
    end(agentd);
    hft_port_release(&port);
}
END_TEST

/* Asked by grpc.health.v1, which etcd speaks; and by a program. */
START_TEST(good_probes_disturb_nobody)
{
    char address[100];
    pid_t agentd;
    hf_rev life;

    (void)snprintf(address, sizeof address, "grpc%s", strstr(server.endpoint, "://"));
    agentd = start_with("a1",
                        (const char *[]){ _i == 0 ? "--probe" : "--probe-command",
                                          _i == 0 ? address : "true", "--probe-every", "100ms",
                                          "--log-level", "debug", NULL },
                        (const char *[]){ "sleep", "1000", NULL });
    await_line("agentd.log", "event=probed");
    await_line("agentd.log", "good=true");
    life = look("agents/a1/live").create_rev;
    (void)sleep(3);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert(!is_logged(&(struct line){ "agentd.log", "good=false" }));
    end(agentd);
}
END_TEST

/* It may: nobody has to be asked all the time. */
START_TEST(who_does_not_listen_any_more_is_left_in_peace)
{
    pid_t agentd = begin("deaf", (const char *[]){ NULL }, "deaf");
    hf_rev life = look("agents/a1/live").create_rev;

    (void)sleep(10);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=frozen" }));
    end(agentd);
}
END_TEST

static void burn(pid_t hogs[HOGS])
{
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        ck_assert_int_ge(hogs[i], 0);
        if (hogs[i] == 0) {
            for (;;)
                ;
        }
    }
}

/* More than all processors, for longer than a verdict takes. */
START_TEST(who_gets_no_processor_is_not_blamed)
{
    pid_t agentd = begin("ping", (const char *[]){ NULL }, "pong 8"), hogs[HOGS];
    hf_rev life = look("agents/a1/live").create_rev;

    burn(hogs);
    (void)sleep(10);
    for (int i = 0; i < HOGS; i++) {
        ck_assert_int_eq(kill(hogs[i], SIGKILL), 0);
        (void)waitpid(hogs[i], NULL, 0);
    }
    await_line("agents/a1.log", "pong 16");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=frozen" }));
    end(agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("frozen");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, who_hangs_is_found_named_and_ended, 0,
                        sizeof HANGS / sizeof HANGS[0]);
    tcase_add_test(t, a_watchdog_that_is_not_fed_any_more_bites);
    tcase_add_test(t, who_is_only_to_be_reported_goes_on);
    tcase_add_test(t, who_opted_into_nothing_is_judged_by_its_process_alone);
    tcase_add_test(t, a_debugger_may_hold_an_agent_for_as_long_as_it_wants);
    tcase_add_test(t, who_is_busy_need_not_answer);
    tcase_add_test(t, a_probe_finds_who_does_not_serve_any_more);
    tcase_add_loop_test(t, good_probes_disturb_nobody, 0, 2);
    tcase_add_test(t, who_does_not_listen_any_more_is_left_in_peace);
    tcase_add_test(t, who_gets_no_processor_is_not_blamed);
    return hft_suite_run("e2e: frozen", t, NULL);
}
