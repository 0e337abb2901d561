/* What a kernel does to agents, and what the keeper says of it: ended for memory, or not ended
 * by anything. Both are brought about with a cgroup v1 beside the keeper's own. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

enum { MODES = 2 }; /* a cgroup and a shim: who may read the kernel's log */

static struct hft_keeper keepers[HFT_KEEPER_MODES];
static char cage[128]; /* the cgroup v1 that an agent is put into */
static pid_t main_pid; /* of which it has its name */

static void name_cage(const char *controller)
{
    (void)snprintf(cage, sizeof cage, "/sys/fs/cgroup/%s/holdfast-test-%d", controller,
                   (int)main_pid);
}

static int write_cage(const char *file, const char *text)
{
    char path[256];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", cage, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

static bool is_removed(void *arg)
{
    (void)arg;
    return rmdir(cage) == 0 || errno == ENOENT; /* the dead leave a moment after their end */
}

/* What is frozen when a test fails could not even be killed: this is for who outlives it. */
static void open_cage(const char *controller)
{
    char path[256];
    FILE *inmates;
    int pid;

    name_cage(controller);
    (void)snprintf(path, sizeof path, "%s/cgroup.procs", cage);
    inmates = fopen(path, "re");
    if (inmates == NULL)
        return;
    while (fscanf(inmates, "%d", &pid) == 1)
        (void)kill(pid, SIGKILL);
    (void)fclose(inmates);
    (void)write_cage("freezer.state", "THAWED");
    (void)hft_wait(is_removed, NULL, 5000);
}

static bool make_cage(const char *controller)
{
    name_cage(controller);
    if (mkdir(cage, 0755) == 0 || errno == EEXIST)
        return true;
    hft_skip("no cgroup v1 with %s can be made here", controller);
    return false;
}

static void put_into_cage(pid_t pid)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)pid);
    ck_assert_int_eq(write_cage("cgroup.procs", number), 0);
}

/* Root reads it in the kernel's log, by the number of the process. Nobody may not: it is told
 * by the count of a cgroup v1 that the keeper is in as well. Should the cage not hold, the
 * limit of the process itself ends it with a status. */
START_TEST(who_is_killed_for_memory_is_told_from_who_is_killed)
{
    struct hft_keeper *k = &keepers[_i];
    const struct agentd_agent *a;
    pid_t other;

    if (!make_cage("memory") || !hft_keeper_begin(k, _i))
        return;
    ck_assert_int_eq(write_cage("memory.limit_in_bytes", "33554432"), 0);
    (void)write_cage("memory.swappiness", "0");
    if (_i == HFT_KEEPER_NOBODY)
        put_into_cage(k->hello.keeper_pid);
    a = hft_keeper_run(k, "a", "i1",
                       "ulimit -v 400000; while ! test -e $D/go; do sleep 0.01; done; "
                       "exec tail /dev/zero");
    put_into_cage(a->pid);
    other = hft_keeper_run(k, "b", "i2", "sleep 1000")->pid;
    hft_keeper_make_file(k, "go");
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_msg(WIFSIGNALED(a->exit.wait_status), "%s", a->exit.evidence);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_OOM);
    ck_assert_str_eq(a->exit.evidence, "killed by the kernel for memory");
    ck_assert_int_eq(kill(other, SIGKILL), 0);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, 0);
    hft_keeper_done(k);
}
END_TEST

/* Where only a count tells: that of a child that was killed, and that the agent outlived, is
 * not held against whoever kills the agent later. */
START_TEST(who_has_lost_a_child_for_memory_is_not_killed_for_it_later)
{
    struct hft_keeper *k = &keepers[HFT_KEEPER_NOBODY];
    pid_t pid;

    if (!make_cage("memory") || !hft_keeper_begin(k, HFT_KEEPER_NOBODY))
        return;
    ck_assert_int_eq(write_cage("memory.limit_in_bytes", "33554432"), 0);
    (void)write_cage("memory.swappiness", "0");
    put_into_cage(k->hello.keeper_pid);
    pid = hft_keeper_run(k, "a", "i1",
                         "(ulimit -v 400000; exec tail /dev/zero); echo $? > $D/eaten; "
                         "exec sleep 1000")
              ->pid;
    hft_keeper_wait_file(k, "eaten");
    ck_assert_int_eq(hft_keeper_number(k, "eaten"), 128 + SIGKILL);
    hft_keeper_pass_renewals(k);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_uint_eq(hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED)->exit.causes, 0);
    hft_keeper_done(k);
}
END_TEST

/* A record in the kernel's log, as the kernel would write it; each by a descriptor of its own,
 * since what comes by one is limited. */
static void tell_log(const char *text)
{
    HF_CLEANUP_FD int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(write(fd, text, strlen(text)), 0);
}

static void tell_log_killed(pid_t pid)
{
    char text[64];

    (void)snprintf(text, sizeof text, "<6>Killed process %d (of a test)\n", (int)pid);
    tell_log(text);
}

static bool has_log(void)
{
    char name[64] = "";

    if (access("/dev/kmsg", R_OK | W_OK) == 0 &&
        readlink("/proc/self/ns/pid", name, sizeof name - 1) > 0 &&
        strcmp(name, "pid:[4026531836]") == 0)
        return true;
    hft_skip("no kernel log that tells of our processes");
    return false;
}

START_TEST(the_kernel_log_is_read_past_a_record_that_is_too_long)
{
    struct hft_keeper *k = &keepers[0];
    char record[900] = "<6>";
    pid_t pid;

    if (!has_log() || !hft_keeper_begin(k, _i))
        return;
    pid = hft_keeper_run(k, "a", "i1", "exec sleep 1000")->pid;
    memset(record + 3, 1, sizeof record - 4); /* each is read as four */
    record[sizeof record - 2] = '\n';
    tell_log(record);
    tell_log_killed(pid);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_uint_eq(hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED)->exit.causes,
                      AGENTD_CAUSE_OOM);
    hft_keeper_done(k);
}
END_TEST

static pid_t last_number(void)
{
    HF_CLEANUP_FREE char *text = hft_read_text("/proc/loadavg", NULL);

    return (pid_t)strtol(strrchr(text, ' '), NULL, 10);
}

START_TEST(a_number_that_was_killed_for_memory_before_means_nothing)
{
    enum { AHEAD = 60, TRIES = 20 }; /* others take numbers, too */
    struct hft_keeper *k = &keepers[0];
    const struct agentd_agent *a = NULL;
    pid_t last = 0, pid = 0;
    char instance[16];

    if (!has_log() || !hft_keeper_begin(k, _i))
        return;
    for (int i = 0; i < TRIES && (pid <= last || pid > last + AHEAD); i++) {
        (void)snprintf(instance, sizeof instance, "n%d", i);
        last = last_number();
        for (int ahead = 1; ahead <= AHEAD; ahead++)
            tell_log_killed(last + ahead);
        pid = hft_keeper_run(k, "a", instance, "exec sleep 1000")->pid;
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        a = hft_keeper_wait(k, instance, AGENTD_STATE_ENDED);
        ck_assert_uint_eq(a->exit.causes, 0);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", instance), AGENTD_CODE_OK);
    }
    ck_assert_msg(pid > last && pid <= last + AHEAD, "others took all numbers");
    hft_keeper_done(k);
}
END_TEST

static bool is_frozen(void *arg)
{
    char path[256], text[16] = "";
    HF_CLEANUP_FD int fd = -1;

    (void)arg;
    (void)snprintf(path, sizeof path, "%s/freezer.state", cage);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strncmp(text, "FROZEN", 6) == 0;
}

/* Said when it is certain, tried on, and said again when it is over; others live as ever. */
START_TEST(who_survives_a_kill_is_told_and_ends_as_soon_as_it_can)
{
    hf_ms killed_at;

    if (!make_cage("freezer"))
        return;
    for (int mode = 0; mode < HFT_KEEPER_MODES; mode++) {
        ck_assert(hft_keeper_begin(&keepers[mode], mode));
        put_into_cage(hft_keeper_run(&keepers[mode], "a", "i1", "sleep 1000")->pid);
    }
    ck_assert_int_eq(write_cage("freezer.state", "FROZEN"), 0);
    hft_wait_or_fail(is_frozen, NULL, 30000, "the freezer");
    killed_at = hft_now();
    for (int mode = 0; mode < HFT_KEEPER_MODES; mode++)
        ck_assert_uint_eq(hft_keeper_order(&keepers[mode], AGENTD_KILL, "a", "i1"),
                          AGENTD_CODE_OK);
    for (int mode = 0; mode < HFT_KEEPER_MODES; mode++) {
        struct hft_keeper *k = &keepers[mode];

        (void)hft_keeper_wait(k, "i1", AGENTD_STATE_STUCK);
        ck_assert_int_ge(hft_now() - killed_at, AGENTD_STUCK_MS);
        (void)hft_keeper_run(k, "b", "i2", "exit 3");
        ck_assert_int_eq(
            WEXITSTATUS(hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED)->exit.wait_status), 3);
        ck_assert_uint_eq(hft_keeper_tree(k, "i1")->state, AGENTD_STATE_STUCK);
    }
    ck_assert_int_eq(write_cage("freezer.state", "THAWED"), 0);
    for (int mode = 0; mode < HFT_KEEPER_MODES; mode++) {
        const struct agentd_agent *a =
            hft_keeper_wait(&keepers[mode], "i1", AGENTD_STATE_ENDED);

        ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
        hft_keeper_done(&keepers[mode]);
    }
}
END_TEST

/* User and system time of it, in ticks. */
static long time_of(pid_t pid)
{
    char path[64];
    long user = 0, system = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    HF_CLEANUP_FREE char *text = hft_read_text(path, NULL);
    ck_assert_int_eq(sscanf(strrchr(text, ')') + 1,
                            " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                            &system),
                     2);
    return user + system;
}

static bool is_told(void *arg)
{
    struct hft_keeper *k = arg;

    while (hft_keeper_take(k, 0))
        ;
    (void)kill(k->hello.keeper_pid, SIGTERM);
    return hft_keeper_tree(k, "i1")->state == AGENTD_STATE_ENDING;
}

/* The third signal ends everybody at once; who cannot be ended is waited for. */
START_TEST(who_waits_for_one_that_survives_the_third_signal_rests)
{
    enum { REST_MS = 1000 };
    struct hft_keeper *k = &keepers[_i];
    long before;

    if (!make_cage("freezer"))
        return;
    ck_assert(hft_keeper_begin(k, _i));
    put_into_cage(hft_keeper_run(k, "a", "i1", "sleep 1000")->pid);
    ck_assert_int_eq(write_cage("freezer.state", "FROZEN"), 0);
    hft_wait_or_fail(is_frozen, NULL, 30000, "the freezer");
    hft_wait_or_fail(is_told, k, 30000, "the third signal");
    before = time_of(k->hello.keeper_pid);
    hft_pass_until(hft_now() + REST_MS);
    ck_assert_int_le(time_of(k->hello.keeper_pid) - before, sysconf(_SC_CLK_TCK) / 2);
    ck_assert_int_eq(write_cage("freezer.state", "THAWED"), 0);
    hft_keeper_done(k);
}
END_TEST

/* A child of it holds up the end of the tree, and agentd is killed meanwhile. */
START_TEST(who_has_ended_before_its_agentd_was_killed_has_its_status)
{
    enum { WRITTEN_MS = 500 };
    struct hft_keeper *k = &keepers[_i];
    const struct agentd_agent *a;

    if (!make_cage("freezer"))
        return;
    ck_assert(hft_keeper_begin(k, _i));
    (void)hft_keeper_run(k, "a", "i1",
                         "sleep 1000 & echo $! > $D/child; "
                         "while ! test -e $D/go; do sleep 0.01; done; exit 7");
    hft_keeper_wait_file(k, "child");
    put_into_cage((pid_t)hft_keeper_number(k, "child"));
    ck_assert_int_eq(write_cage("freezer.state", "FROZEN"), 0);
    hft_wait_or_fail(is_frozen, NULL, 30000, "the freezer");
    hft_keeper_make_file(k, "go");
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDING);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 7);
    hft_pass_until(hft_now() + WRITTEN_MS);
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
    (void)hft_process_reap(k->pid, 30000);
    ck_assert_int_eq(write_cage("freezer.state", "THAWED"), 0);
    hft_keeper_start(k);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_ABANDONED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 7);
    ck_assert_str_eq(a->exit.evidence, "exited with status 7");
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "child"));
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("evidence");
    int code;

    main_pid = getpid();
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, who_is_killed_for_memory_is_told_from_who_is_killed, 0,
                        HFT_KEEPER_MODES);
    tcase_add_test(t, who_has_lost_a_child_for_memory_is_not_killed_for_it_later);
    tcase_add_loop_test(t, the_kernel_log_is_read_past_a_record_that_is_too_long, 0, MODES);
    tcase_add_loop_test(t, a_number_that_was_killed_for_memory_before_means_nothing, 0, MODES);
    tcase_add_test(t, who_survives_a_kill_is_told_and_ends_as_soon_as_it_can);
    tcase_add_loop_test(t, who_waits_for_one_that_survives_the_third_signal_rests, 0, MODES);
    tcase_add_loop_test(t, who_has_ended_before_its_agentd_was_killed_has_its_status, 0, MODES);
    code = hft_suite_run("keeper: evidence", t, NULL);
    open_cage("memory");
    open_cage("freezer");
    return code;
}
