/* What a person has before them: colours and widths on a real terminal, screens that are left
 * as they were found, and commands that go on until they are told to end. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/process.h"
#include "support/program.h"
#include "support/suite.h"
#include "support/tempdir.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;

/* A command that runs, and what it has said so far. */
static struct {
    pid_t pid;
    int fd;
    struct hf_buf said;
} shown;

static void setup(void)
{
    int64_t lease;

    shown.fd = -1;
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    lease = hft_grant(&hand, 60);
    (void)hft_put(&hand, ROOT "agents/w1/spec", "{\"role\":\"writer\"}", HF_NO_LEASE);
    (void)hft_put(&hand, ROOT "agents/w1/live", "{\"host\":\"node-7\",\"pid\":17}", lease);
}

static void teardown(void)
{
    if (shown.pid != 0)
        (void)kill(shown.pid, SIGKILL);
    if (shown.fd >= 0)
        (void)close(shown.fd);
    hf_buf_done(&shown.said);
    hft_client_close(&hand);
    hft_etcd_done(&server);
}

/* Runs `holdfast` on a terminal so wide (0: into a pipe), with these more in its environment.
 */
static void show(unsigned short columns, const char *more, const char *const args[])
{
    const char *argv[16] = { HOLDFAST_PROGRAMS "/holdfast", "--endpoints", server.endpoint };
    const char *env[8] = { more != NULL ? more : "TERM=xterm", "TERM=xterm" }; /* first */
    const char *const *sanitizer = hft_sanitizer_env();
    struct winsize size = { .ws_row = 40, .ws_col = columns };
    int other, pair[2];

    for (size_t i = 0; args[i] != NULL; i++)
        argv[3 + i] = args[i];
    for (size_t i = 2; *sanitizer != NULL && i < 7; i++)
        env[i] = *sanitizer++;
    if (columns > 0) {
        ck_assert_int_eq(openpty(&shown.fd, &other, NULL, NULL, &size), 0);
    } else {
        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        shown.fd = pair[0];
        other = pair[1];
    }
    (void)fcntl(shown.fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(other, F_SETFD, FD_CLOEXEC);
    shown.pid =
        hft_process_spawn(&(struct hft_spawn){ .argv = argv, .env = env, .out = other });
    (void)close(other);
}

/* False when it has said everything. */
static bool hear(void)
{
    struct pollfd look = { .fd = shown.fd, .events = POLLIN };
    char chunk[4096];
    ssize_t n;

    ck_assert_msg(poll(&look, 1, STEP_MS) == 1, "nothing more after: %s", shown.said.data);
    n = read(shown.fd, chunk, sizeof chunk); /* a terminal without its other end: EIO */
    if (n > 0)
        hf_buf_append(&shown.said, chunk, (size_t)n);
    hf_buf_printf(&shown.said, "%s", "");
    return n > 0;
}

static bool has_said(const char *text)
{
    return shown.said.data != NULL && strstr(shown.said.data, text) != NULL;
}

static void until_said(const char *text)
{
    while (!has_said(text))
        ck_assert_msg(hear(), "it ended without \"%s\": %s", text, shown.said.data);
}

/* Its wait status; ready for the next one. */
static int end(void)
{
    int status;

    while (hear())
        continue;
    status = hft_process_reap(shown.pid, STEP_MS);
    (void)close(shown.fd);
    shown.pid = 0;
    shown.fd = -1;
    return status;
}

static void forget(void)
{
    hf_buf_clear(&shown.said);
}

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })

START_TEST(colours_are_for_terminals_and_for_those_who_want_them)
{
    show(120, NULL, ARGS("ps"));
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(has_said("\033[32myes\033[0m"), "%s", shown.said.data);
    forget();
    show(120, "NO_COLOR=1", ARGS("ps"));
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(has_said("yes") && !has_said("\033["), "%s", shown.said.data);
    forget();
    show(0, NULL, ARGS("ps"));
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(has_said("yes") && !has_said("\033["), "%s", shown.said.data);
}
END_TEST

START_TEST(a_table_is_as_wide_as_the_terminal)
{
    show(120, "NO_COLOR=1", ARGS("ps"));
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(has_said("RESTARTS"), "%s", shown.said.data);
    forget();
    show(40, "NO_COLOR=1", ARGS("ps"));
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(has_said("HEALTH") && !has_said("RESTARTS"), "%s", shown.said.data);
}
END_TEST

/* Sentences are broken between words, and what hangs over is indented. */
START_TEST(a_sentence_is_as_wide_as_the_terminal)
{
    enum { WIDTH = 50 };

    (void)hft_put(&hand, ROOT "health/w1",
                  "{\"state\":\"failing\",\"held\":true,\"why\":\"it crashed too often in too "
                  "short a time, and nobody knows why\",\"next\":{\"what\":\"`holdfast "
                  "restart` releases it, when whatever ends it was found\"}}",
                  HF_NO_LEASE);
    show(WIDTH, "NO_COLOR=1", ARGS("explain", "w1"));
    ck_assert_int_eq(end(), 0);
    for (const char *line = shown.said.data; *line != '\0';) {
        size_t len = strcspn(line, "\r\n");

        ck_assert_msg(len <= WIDTH, "%zu columns: %s", len, line);
        line += len + strspn(line + len, "\r\n");
    }
    ck_assert_msg(has_said("next: `holdfast restart w1` releases it"), "%s", shown.said.data);
}
END_TEST

START_TEST(events_are_followed_until_somebody_says_stop)
{
    show(0, NULL, ARGS("events", "--follow"));
    (void)hft_put(&hand, ROOT "events/0000000000000000001",
                  "{\"kind\":\"leader\",\"actor\":\"c1\",\"why\":\"it leads\"}", HF_NO_LEASE);
    until_said("c1: it leads\n");
    (void)hft_put(&hand, ROOT "events/0000000000000000002",
                  "{\"kind\":\"held\",\"agent\":\"w1\",\"why\":\"too often\"}", HF_NO_LEASE);
    until_said("w1: too often\n");
    ck_assert_int_eq(kill(shown.pid, SIGINT), 0);
    ck_assert_int_ne(end(), 0);
    ck_assert_ptr_null(strstr(strstr(shown.said.data, "it leads") + 1, "it leads"));
}
END_TEST

static void append(const char *path, const char *text)
{
    FILE *out = fopen(path, "ae");

    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
}

START_TEST(a_log_is_followed_through_what_agentd_does_to_it)
{
    char agents[HFT_PATH_MAX + 16], log[HFT_PATH_MAX + 32], old[HFT_PATH_MAX + 32];

    (void)snprintf(agents, sizeof agents, "%s/agents", server.dir.path);
    (void)snprintf(log, sizeof log, "%s/agents/w1.log", server.dir.path);
    (void)snprintf(old, sizeof old, "%s/agents/w1.log.1", server.dir.path);
    ck_assert_int_eq(mkdir(agents, 0700), 0);
    append(log, "one\n");
    show(0, NULL, ARGS("logs", "w1", "-f", "--state-dir", server.dir.path));
    until_said("one\n");
    append(log, "two\n");
    until_said("one\ntwo\n");
    /* It grew too long and is put aside; what is still written to it comes first. */
    ck_assert_int_eq(rename(log, old), 0);
    append(old, "three\n");
    append(log, "four\n");
    until_said("one\ntwo\nthree\nfour\n");
    append(log, "five\n");
    until_said("four\nfive\n");
    ck_assert_int_eq(kill(shown.pid, SIGINT), 0);
    (void)end();
    ck_assert_str_eq(shown.said.data, "one\ntwo\nthree\nfour\nfive\n");
}
END_TEST

/* The alternate screen, without a cursor; both are given back. */
START_TEST(a_live_screen_leaves_the_terminal_as_it_was)
{
    show(100, NULL, ARGS("up", "--empty"));
    until_said("\033[?1049h\033[?25l");
    until_said("\033[H\033[J");
    until_said("leader"); /* the first thing that the trail tells */
    ck_assert_int_eq(kill(shown.pid, SIGINT), 0);
    ck_assert_int_eq(end(), 0);
    ck_assert(has_said("\033[?25h\033[?1049l"));
    ck_assert_ptr_null(strstr(strstr(shown.said.data, "\033[?1049l"), "\033[H"));
}
END_TEST

/* A shell that has the terminal, and brings it to the front when it is told something. */
static void show_behind_a_shell(void)
{
    const char *const argv[] = { "setsid",
                                 "--ctty",
                                 "--wait",
                                 "sh",
                                 "-c",
                                 "set -m; \"$0\" up --empty & read -r word; fg",
                                 HOLDFAST_PROGRAMS "/holdfast",
                                 NULL };
    const char *env[8] = { "TERM=xterm" };
    const char *const *sanitizer = hft_sanitizer_env();
    struct winsize size = { .ws_row = 40, .ws_col = 100 };
    int other;

    for (size_t i = 1; *sanitizer != NULL && i < 7; i++)
        env[i] = *sanitizer++;
    ck_assert_int_eq(openpty(&shown.fd, &other, NULL, NULL, &size), 0);
    (void)fcntl(shown.fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(other, F_SETFD, FD_CLOEXEC);
    shown.pid = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = env, .in = other, .out = other });
    (void)close(other);
}

START_TEST(in_the_background_it_leaves_the_terminal_alone)
{
    show_behind_a_shell();
    until_said("it runs in the background: `fg` shows it");
    ck_assert_msg(!has_said("\033"), "%s", shown.said.data);
    ck_assert_int_eq(write(shown.fd, "now\n", 4), 4);
    until_said("\033[?1049h\033[?25l");
    until_said("leader");
    ck_assert_int_eq(write(shown.fd, "\003", 1), 1);
    (void)end();
    ck_assert(has_said("\033[?25h\033[?1049l"));
}
END_TEST

START_TEST(without_a_screen_it_tells_line_by_line)
{
    show(100, "TERM=dumb", ARGS("up", "--empty"));
    until_said("leader");
    ck_assert_int_eq(kill(shown.pid, SIGINT), 0);
    ck_assert_int_eq(end(), 0);
    ck_assert_msg(!has_said("\033"), "%s", shown.said.data);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("terminal");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, colours_are_for_terminals_and_for_those_who_want_them);
    tcase_add_test(t, a_table_is_as_wide_as_the_terminal);
    tcase_add_test(t, a_sentence_is_as_wide_as_the_terminal);
    tcase_add_test(t, events_are_followed_until_somebody_says_stop);
    tcase_add_test(t, a_log_is_followed_through_what_agentd_does_to_it);
    tcase_add_test(t, a_live_screen_leaves_the_terminal_as_it_was);
    tcase_add_test(t, in_the_background_it_leaves_the_terminal_alone);
    tcase_add_test(t, without_a_screen_it_tells_line_by_line);
    return hft_suite_run("e2e: terminal", t, NULL);
}
