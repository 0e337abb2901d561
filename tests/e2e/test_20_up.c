/* holdfast up: from nothing to a cluster that works, and back to nothing. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/program.h"
#include "support/suite.h"
#include "support/wait.h"

enum { STEP_MS = 60000 };

#define EMPTY   "--empty"
#define FLEET   NULL
#define NOWHERE "http://127.0.0.1:1" /* up has an etcd of its own, whatever it is told */

struct up {
    struct hft_program program;
    char env_file[HFT_PATH_MAX + 32];
    char endpoint[128];
    char dir[HFT_PATH_MAX]; /* where it keeps everything */
};

static struct hft_tempdir dir;
static struct up first, second;

static void setup(void)
{
    hft_tempdir_init(&dir);
    first = second = (struct up){ 0 };
}

static void teardown(void)
{
    if (first.program.pid != 0)
        hft_program_kill(&first.program);
    if (second.program.pid != 0)
        hft_program_kill(&second.program);
    hft_tempdir_done(&dir);
}

static bool has_env_file(void *arg)
{
    const struct up *up = arg;

    ck_assert_msg(!hft_program_said(&up->program, "ending everything"), "it gave up");
    return access(up->env_file, R_OK) == 0;
}

/* What stands between `before` and the end of the line in a file. */
static void find_in(const char *file, const char *before, char *ret_text, size_t size)
{
    FILE *f = fopen(file, "re");
    char line[1024];

    ck_assert_ptr_nonnull(f);
    ret_text[0] = '\0';
    while (ret_text[0] == '\0' && fgets(line, sizeof line, f) != NULL) {
        const char *at = strstr(line, before);

        if (at != NULL)
            (void)snprintf(ret_text, size, "%.*s", (int)strcspn(at + strlen(before), "\n"),
                           at + strlen(before));
    }
    (void)fclose(f);
    ck_assert_msg(ret_text[0] != '\0', "%s says nothing of \"%s\"", file, before);
}

static void start(struct up *up, const char *label, const char *how)
{
    (void)snprintf(up->env_file, sizeof up->env_file, "%s/%s.env", dir.path, label);
    hft_program_start(&up->program, "holdfast", dir.path, label, NOWHERE, "up", "--env-file",
                      up->env_file, how, NULL);
    hft_wait_or_fail(has_env_file, up, STEP_MS, "the env file");
    find_in(up->env_file, "HOLDFAST_ENDPOINTS=", up->endpoint, sizeof up->endpoint);
    find_in(up->program.log_file, "all logs in ", up->dir, sizeof up->dir);
}

static int ask_leader(const struct up *up)
{
    HFT_CLEANUP_OUTPUT struct hft_output leader = { 0 };

    hft_cli(&leader, up->endpoint, "leader", NULL);
    return leader.status;
}

static bool is_gone(void *arg)
{
    return ask_leader(arg) == 5; /* nobody listens there */
}

static bool file_has(const char *directory, const char *name, const char *part)
{
    char path[64], text[16384];
    HF_CLEANUP_FD int fd = -1;
    ssize_t len;

    (void)snprintf(path, sizeof path, "/proc/%.20s/%s", directory, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd >= 0 ? read(fd, text, sizeof text) : -1;
    return len > 0 && memmem(text, (size_t)len, part, strlen(part)) != NULL;
}

/* Whoever works for it was started with its directory or its etcd. */
static unsigned count_processes(const struct up *up)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    unsigned count = 0;

    ck_assert_ptr_nonnull(proc);
    while ((entry = readdir(proc)) != NULL) {
        const char *name = entry->d_name;

        if (name[0] < '1' || name[0] > '9')
            continue;
        if (file_has(name, "cmdline", up->dir) || file_has(name, "cmdline", up->endpoint) ||
            file_has(name, "environ", up->dir))
            count++;
    }
    (void)closedir(proc);
    return count;
}

static void expect_nothing_left(struct up *up)
{
    ck_assert(is_gone(up));
    ck_assert_uint_eq(count_processes(up), 0);
    ck_assert_int_ne(access(up->dir, F_OK), 0);
    ck_assert_int_ne(access(up->env_file, F_OK), 0);
}

START_TEST(a_cluster_is_there_when_the_env_file_is_and_nothing_is_left_after_ctrl_c)
{
    HFT_CLEANUP_OUTPUT struct hft_output submitted = { 0 };

    start(&first, "first", EMPTY);
    ck_assert_int_eq(ask_leader(&first), 0);
    hft_cli(&submitted, first.endpoint, "task", "submit", "--role", "r", NULL);
    ck_assert_int_eq(submitted.status, 0);
    ck_assert_uint_eq(count_processes(&first), 2);
    ck_assert_int_eq(kill(first.program.pid, SIGINT), 0);
    ck_assert_int_eq(hft_program_wait(&first.program, STEP_MS), 0);
    expect_nothing_left(&first);
}
END_TEST

static bool has_ended_while_told_again(void *arg)
{
    pid_t pid = *(pid_t *)arg;
    siginfo_t info = { .si_pid = 0 };

    (void)kill(pid, SIGINT);
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid;
}

/* A terminal that is closed, and somebody who cannot wait. */
START_TEST(nothing_is_left_however_often_and_how_it_is_told_to_end)
{
    start(&first, "first", EMPTY);
    ck_assert_int_eq(kill(first.program.pid, SIGHUP), 0);
    hft_program_until_said(&first.program, "ending everything", STEP_MS);
    hft_wait_or_fail(has_ended_while_told_again, &first.program.pid, STEP_MS, "its end");
    ck_assert_int_eq(hft_program_wait(&first.program, STEP_MS), 0);
    expect_nothing_left(&first);
}
END_TEST

/* Whoever waits for the file after one that was killed waits for the next one. */
START_TEST(an_env_file_of_another_time_is_gone_before_anything_is_ready)
{
    char old[128];

    start(&first, "first", EMPTY);
    (void)snprintf(old, sizeof old, "%s", first.endpoint);
    hft_program_kill(&first.program);
    hft_wait_or_fail(is_gone, &first, STEP_MS, "the end of etcd");
    hft_remove_tree(first.dir);
    ck_assert_int_eq(access(first.env_file, F_OK), 0);
    hft_program_start(&first.program, "holdfast", dir.path, "again", NOWHERE, "up", EMPTY,
                      "--env-file", first.env_file, NULL);
    hft_program_until_said(&first.program, "starting etcd", STEP_MS);
    hft_wait_or_fail(has_env_file, &first, STEP_MS, "the env file");
    find_in(first.env_file, "HOLDFAST_ENDPOINTS=", first.endpoint, sizeof first.endpoint);
    find_in(first.program.log_file, "all logs in ", first.dir, sizeof first.dir);
    ck_assert_str_ne(first.endpoint, old);
    ck_assert_int_eq(ask_leader(&first), 0);
    ck_assert_int_eq(hft_program_stop(&first.program), 0);
    expect_nothing_left(&first);
}
END_TEST

START_TEST(when_it_is_killed_its_processes_end_too)
{
    start(&first, "first", EMPTY);
    hft_program_kill(&first.program);
    hft_wait_or_fail(is_gone, &first, STEP_MS, "the end of etcd");
    hft_remove_tree(first.dir);
}
END_TEST

/* Two, so that one is left when the other one's task is done a moment later. */
static bool has_checkpoints(void *arg)
{
    HFT_CLEANUP_OUTPUT struct hft_output tasks = { 0 };
    unsigned count = 0;

    hft_cli(&tasks, ((struct up *)arg)->endpoint, "task", "ls", "--state", "in_progress", "-o",
            "json", NULL);
    for (const char *at = tasks.out;
         tasks.status == 0 && (at = strstr(at, "\"checkpoint\": {")) != NULL; at++)
        count++;
    return count >= 2;
}

/* Runs the demo, which must see the agent at work again. */
static void demo(struct up *up, struct hft_output *ret_output, const char *what)
{
    HFT_CLEANUP_OUTPUT struct hft_output invariants = { 0 };

    hft_wait_or_fail(has_checkpoints, up, STEP_MS, "agents with checkpoints");
    hft_cli(ret_output, up->endpoint, "demo", what, NULL);
    ck_assert_msg(ret_output->status == 0, "%s%s", ret_output->out, ret_output->err);
    ck_assert_msg(strstr(ret_output->out, "it was started once") != NULL, "%s",
                  ret_output->out);
    ck_assert_msg(strstr(ret_output->out, "from its checkpoint on") != NULL, "%s",
                  ret_output->out);
    hft_cli(&invariants, up->endpoint, "invariants", NULL);
    ck_assert_msg(invariants.status == 0, "%s%s", invariants.out, invariants.err);
}

/* The number behind the first "host-" after `before`. */
static char host_after(const char *text, const char *before)
{
    const char *at = strstr(text, before);

    at = at != NULL ? strstr(at, "host-") : NULL;
    ck_assert_msg(at != NULL, "no host after \"%s\": %s", before, text);
    return at[strlen("host-")];
}

static void expect_in_order(const char *text, const char *const parts[])
{
    const char *at = text;

    for (; *parts != NULL; parts++) {
        at = strstr(at, *parts);
        ck_assert_msg(at != NULL, "\"%s\" is missing, or too early: %s", *parts, text);
    }
}

/* Where the agents of a host have their cgroups; empty when they have none. */
static void read_cgroup(char host, char *ret_path, size_t size)
{
    char name[HFT_PATH_MAX + 32];
    FILE *file;

    (void)snprintf(name, sizeof name, "%s/host-%c/cgroup", first.dir, host);
    file = fopen(name, "re");
    if (file == NULL || fgets(ret_path, (int)size, file) == NULL)
        ret_path[0] = '\0';
    if (file != NULL)
        (void)fclose(file);
}

static void stop_and_expect_nothing_left(struct up *up)
{
    ck_assert_uint_ge(count_processes(up), 2);
    ck_assert_int_eq(hft_program_stop(&up->program), 0);
    expect_nothing_left(up);
}

START_TEST(an_agent_of_the_fleet_that_crashes_at_work_is_at_work_again)
{
    HFT_CLEANUP_OUTPUT struct hft_output crash = { 0 };

    start(&first, "first", FLEET);
    demo(&first, &crash, "crash");
    ck_assert_int_eq(host_after(crash.out, "kill -9"), host_after(crash.out, "done"));
    stop_and_expect_nothing_left(&first);
}
END_TEST

/* Two whole fleets, whose hosts and agents have the same names. */
START_TEST(two_of_them_do_not_disturb_each_other)
{
    HFT_CLEANUP_OUTPUT struct hft_output crash = { 0 }, again = { 0 };

    start(&first, "first", FLEET);
    start(&second, "second", FLEET);
    ck_assert_str_ne(first.endpoint, second.endpoint);
    /* etcd, a controller; and on three hosts a keeper, a link and an agent at least. */
    ck_assert_uint_ge(count_processes(&first), 11);
    ck_assert_uint_ge(count_processes(&second), 11);
    demo(&first, &crash, "crash");
    stop_and_expect_nothing_left(&first);
    demo(&second, &again, "crash");
    stop_and_expect_nothing_left(&second);
}
END_TEST

static bool are_all_hosts_here(void *arg)
{
    HFT_CLEANUP_OUTPUT struct hft_output hosts = { 0 };

    hft_cli(&hosts, ((struct up *)arg)->endpoint, "hosts", NULL);
    return hosts.status == 0 && strstr(hosts.out, "lost") == NULL;
}

/* And again when the host is back; then everything ends while another one is away. */
START_TEST(an_agent_whose_host_is_killed_goes_on_elsewhere)
{
    static const char *const STORY[] = { "kill -9 of everything on host-",
                                         "waiting until",
                                         "the lease of host-",
                                         "took",
                                         "lives again",
                                         "done",
                                         NULL };
    char cgroup[HFT_PATH_MAX];

    start(&first, "first", FLEET);
    for (int i = 0; i < 2; i++) {
        HFT_CLEANUP_OUTPUT struct hft_output host = { 0 };

        demo(&first, &host, "host");
        expect_in_order(host.out, STORY);
        ck_assert_int_ne(host_after(host.out, "kill -9"), host_after(host.out, "done"));
        read_cgroup(host_after(host.out, "kill -9"), cgroup, sizeof cgroup);
        if (i == 0)
            hft_wait_or_fail(are_all_hosts_here, &first, 3 * STEP_MS, "the host, repaired");
    }
    stop_and_expect_nothing_left(&first);
    ck_assert_msg(cgroup[0] == '\0' || access(cgroup, F_OK) != 0, "%s is left", cgroup);
}
END_TEST

START_TEST(an_agent_whose_host_stands_still_goes_on_elsewhere_and_never_twice)
{
    static const char *const STORY[] = { "SIGSTOP",
                                         "frozen",
                                         "the lease of host-",
                                         "lives again",
                                         "is still there, and stands still",
                                         "SIGCONT",
                                         "is here again",
                                         "has ended the old process",
                                         "done",
                                         NULL };
    HFT_CLEANUP_OUTPUT struct hft_output freeze = { 0 };

    start(&first, "first", FLEET);
    demo(&first, &freeze, "freeze");
    expect_in_order(freeze.out, STORY);
    ck_assert_int_ne(host_after(freeze.out, "SIGSTOP"), host_after(freeze.out, "done"));
    stop_and_expect_nothing_left(&first);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("up");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 400);
    tcase_add_test(t, a_cluster_is_there_when_the_env_file_is_and_nothing_is_left_after_ctrl_c);
    tcase_add_test(t, nothing_is_left_however_often_and_how_it_is_told_to_end);
    tcase_add_test(t, an_env_file_of_another_time_is_gone_before_anything_is_ready);
    tcase_add_test(t, two_of_them_do_not_disturb_each_other);
    tcase_add_test(t, when_it_is_killed_its_processes_end_too);
    tcase_add_test(t, an_agent_of_the_fleet_that_crashes_at_work_is_at_work_again);
    tcase_add_test(t, an_agent_whose_host_is_killed_goes_on_elsewhere);
    tcase_add_test(t, an_agent_whose_host_stands_still_goes_on_elsewhere_and_never_twice);
    return hft_suite_run("e2e: up", t, NULL);
}
