/* memory.c - who runs out of memory is told from who is killed, by a kernel whose cgroups are
 * all of version 2, as those of most machines are (run.sh starts one).
 *
 * Three ways to know it, of which each must do alone: the kernel's log; without that, the count
 * of the agent's own cgroup; and behind a shim that of the cgroup that it shares with the
 * keeper. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/keeper.h"
#include "support/suite.h"

#define MAX_BYTES UINT64_C(33554432)
#define SHARED    "/sys/fs/cgroup/shared"

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
    ck_assert_msg(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s: %s", path,
                  strerror(errno));
    (void)close(fd);
}

static void run(const char *agent, const char *instance, const char *script, uint64_t max)
{
    ck_assert_msg(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = agent,
                                                                  .instance = instance,
                                                                  .script = script,
                                                                  .memory_max = max }) ==
                      AGENTD_CODE_OK,
                  "%s", k->reply.text);
    (void)hft_keeper_wait(k, instance, AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, agent, instance), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, instance, AGENTD_STATE_RUNNING);
}

/* One runs out of it, and another one is killed by somebody. */
static void expect_told_apart(uint64_t max)
{
    const struct agentd_agent *a;

    run("b", "i2", "exec sleep 1000", max);
    run("a", "i1", "sleep 0.2; exec tail /dev/zero", max);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_msg(a->exit.causes == AGENTD_CAUSE_OOM, "%s", a->exit.evidence);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    ck_assert_str_eq(a->exit.evidence, "killed by the kernel for memory");
    ck_assert_int_eq(kill(hft_keeper_tree(k, "i2")->pid, SIGKILL), 0);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_msg(a->exit.causes == 0, "%s", a->exit.evidence);
    hft_keeper_done(k);
}

START_TEST(the_kernel_log_tells)
{
    ck_assert_int_eq(access("/dev/kmsg", R_OK), 0);
    ck_assert(hft_keeper_begin(k, HFT_KEEPER_CGROUP));
    expect_told_apart(MAX_BYTES);
}
END_TEST

START_TEST(without_it_its_own_cgroup_tells)
{
    ck_assert(unlink("/dev/kmsg") == 0 || errno == ENOENT);
    ck_assert(hft_keeper_begin(k, HFT_KEEPER_CGROUP));
    expect_told_apart(MAX_BYTES);
}
END_TEST

/* A shell outlives what it ran, and says so with its status or does not. */
START_TEST(a_wrapper_whose_worker_runs_out_of_it_tells_so)
{
    const struct agentd_agent *a;

    if (_i == 1)
        ck_assert(unlink("/dev/kmsg") == 0 || errno == ENOENT);
    ck_assert(hft_keeper_begin(k, HFT_KEEPER_CGROUP));
    run("a", "i1", "sleep 0.2; tail /dev/zero; exit $?", MAX_BYTES);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 128 + SIGKILL);
    ck_assert_msg(a->exit.causes == AGENTD_CAUSE_OOM, "%s", a->exit.evidence);
    ck_assert_str_eq(a->exit.evidence,
                     "exited with status 137; the kernel killed 1 of its processes for memory");
    run("b", "i2", "sleep 0.2; tail /dev/zero; exit 3", MAX_BYTES);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, 0);
    ck_assert_str_eq(a->exit.evidence,
                     "exited with status 3; the kernel killed 1 of its processes for memory");
    run("c", "i3", "sleep 0.2; sh -c 'kill -9 $$'; exit $?", MAX_BYTES);
    a = hft_keeper_wait(k, "i3", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, 0);
    ck_assert_str_eq(a->exit.evidence, "exited with status 137");
    hft_keeper_done(k);
}
END_TEST

/* Of whom nobody tells but the count of its own cgroup, as above: a child that was killed long
 * before says nothing of who kills the agent, or its last program, now. */
START_TEST(who_has_lost_a_child_for_memory_is_not_killed_for_it_later)
{
    const struct agentd_agent *a;

    ck_assert(unlink("/dev/kmsg") == 0 || errno == ENOENT);
    ck_assert(hft_keeper_begin(k, HFT_KEEPER_CGROUP));
    run("a", "i1", "tail /dev/zero; echo $? > $D/one; exec sleep 1000", MAX_BYTES);
    run("b", "i2",
        "tail /dev/zero; echo $? > $D/two; until [ -e $D/go ]; do sleep 0.1; done; "
        "sh -c 'kill -9 $$'; exit $?",
        MAX_BYTES);
    hft_keeper_wait_file(k, "one");
    hft_keeper_wait_file(k, "two");
    hft_keeper_pass_renewals(k);
    ck_assert_int_eq(kill(hft_keeper_tree(k, "i1")->pid, SIGKILL), 0);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_msg(a->exit.causes == 0, "%s", a->exit.evidence);
    hft_keeper_make_file(k, "go");
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_msg(a->exit.causes == 0, "%s", a->exit.evidence);
    hft_keeper_done(k);
}
END_TEST

START_TEST(behind_a_shim_the_cgroup_that_is_shared_tells)
{
    char number[32];

    ck_assert(unlink("/dev/kmsg") == 0 || errno == ENOENT);
    ck_assert_int_eq(mkdir(SHARED, 0755), 0);
    put(SHARED "/memory.max", "67108864");
    ck_assert(hft_keeper_begin(k, HFT_KEEPER_SHIM));
    (void)snprintf(number, sizeof number, "%d", (int)k->hello.keeper_pid);
    put(SHARED "/cgroup.procs", number);
    expect_told_apart(0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memory");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_kernel_log_tells);
    tcase_add_loop_test(t, a_wrapper_whose_worker_runs_out_of_it_tells_so, 0, 1);
    tcase_add_test(t, without_it_its_own_cgroup_tells);
    tcase_add_loop_test(t, a_wrapper_whose_worker_runs_out_of_it_tells_so, 1, 2);
    tcase_add_test(t, who_has_lost_a_child_for_memory_is_not_killed_for_it_later);
    tcase_add_test(t, behind_a_shim_the_cgroup_that_is_shared_tells);
    return hft_suite_run("guest: memory", t, NULL);
}
