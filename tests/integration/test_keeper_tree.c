/* Whatever an agent left behind ends, stops and goes on with it, and the fence falls on time.
 */
#include <check.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/keeper.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/wait.h"

#define LONG_MS 30000

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

START_TEST(escaped_children_end_with_the_agent)
{
    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", HFT_KEEPER_ESCAPE "exit 3");
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 3);
    ck_assert_uint_ge(a->exit.stragglers, 1);
    ck_assert_int_gt(hft_keeper_number(k, "deep"), 0);
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deep"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    hft_keeper_done(k);
}
END_TEST

START_TEST(kill_ends_the_whole_tree)
{
    if (!hft_keeper_begin(k, _i))
        return;
    const struct agentd_agent *a =
        hft_keeper_run(k, "a", "i1", HFT_KEEPER_ESCAPE "wait; sleep 1000");
    pid_t pid = a->pid;
    hft_keeper_wait_file(k, "escaped");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_ASKED, 0);
    hft_process_wait_gone(pid);
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deep"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    hft_keeper_done(k);
}
END_TEST

#define COUNT(file)                                                                            \
    "n=0; while :; do n=$((n+1)); echo $n > $D/" file ".new; mv $D/" file ".new $D/" file      \
    "; done"

struct growth {
    const char *file;
    long beyond;
};

static bool has_grown(void *arg)
{
    const struct growth *growth = arg;

    return hft_keeper_number(k, growth->file) > growth->beyond;
}

static bool does_grow(const char *file)
{
    return hft_wait(has_grown, &(struct growth){ file, hft_keeper_number(k, file) + 1 },
                    LONG_MS);
}

static bool has_stopped_itself(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

START_TEST(frozen_stands_still_and_thawed_runs_as_before)
{
    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(
        k, "a", "i1",
        "sh -c 'echo $$ > $D/self; kill -STOP $$; echo 1 > $D/woke' & "
        "sh -c '" COUNT("one") "' & (setsid sh -c '" COUNT("two") "' &); wait");
    hft_keeper_wait_file(k, "one");
    hft_keeper_wait_file(k, "two");
    hft_keeper_wait_file(k, "self");
    (void)hft_keeper_run(k, "free", "i2", COUNT("free"));
    hft_keeper_wait_file(k, "free");
    pid_t self = (pid_t)hft_keeper_number(k, "self");
    hft_wait_or_fail(has_stopped_itself, &self, LONG_MS, "a process that stops itself");
    for (int round = 0; round < 5; round++) {
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
        const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
        ck_assert_int_gt(a->frozen_ns, 0);
        ck_assert_uint_eq(a->fenced, 0);
        ck_assert_uint_eq(a->done_order, a->order);
        long one = hft_keeper_number(k, "one");
        long two = hft_keeper_number(k, "two");
        ck_assert(does_grow("free")); /* time passes for others */
        ck_assert_int_eq(hft_keeper_number(k, "one"), one);
        ck_assert_int_eq(hft_keeper_number(k, "two"), two);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
        a = hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
        ck_assert_int_eq(a->frozen_ns, 0);
        ck_assert(does_grow("one"));
        ck_assert(does_grow("two"));
        ck_assert_int_eq(hft_process_state(self), 'T');
        ck_assert(!hft_keeper_has_file(k, "woke"));
    }
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_STATE);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_end(k, "a", "i1", 20000), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    hft_process_wait_gone(self);
    hft_keeper_done(k);
}
END_TEST

static void extend_and_spawn(const char *agent, const char *instance, uint32_t fence,
                             const char *script)
{
    ck_assert_uint_eq(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = agent,
                                                                      .instance = instance,
                                                                      .script = script,
                                                                      .fence = fence }),
                      AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, instance, AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, agent, instance), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, instance, AGENTD_STATE_RUNNING);
}

/* The fence falls at five sixths of a lease; of the shortest one, 2 s, this is left. */
enum { LEFT_MS = 333 };

/* It must have fallen: its time, what is left, and what the machine stood still. */
struct fence_due {
    int64_t deadline_ns;
    struct hft_ticker *ticker;
};

static bool is_past_fence(void *arg)
{
    const struct fence_due *due = arg;

    return hft_now() * 1000000 >=
           due->deadline_ns + (LEFT_MS + hft_ticker_stall(due->ticker)) * 1000000;
}

START_TEST(fence_falls_on_time_while_the_link_is_stopped)
{
    struct hft_ticker ticker;

    if (!hft_keeper_begin(k, _i))
        return;
    extend_and_spawn("froze", "i1", AGENTD_FENCE_FREEZE, COUNT("froze"));
    extend_and_spawn("killed", "i2", AGENTD_FENCE_KILL, COUNT("killed"));
    extend_and_spawn("held", "i3", AGENTD_FENCE_HOLD, COUNT("held"));
    hft_keeper_wait_file(k, "froze");
    hft_ticker_start(&ticker);
    hft_keeper_extend(k, 300);
    int64_t deadline = k->page->deadline_ns;
    struct agentd_lease lease = {
        .head = { .length = sizeof lease, .type = AGENTD_LEASE, .id = ++k->last_id }
    };
    ck_assert_uint_eq(hft_keeper_raw(k, &lease, sizeof lease), AGENTD_CODE_OK);
    hft_keeper_pause_link(k);
    hft_wait_or_fail(is_past_fence, &(struct fence_due){ deadline, &ticker }, LONG_MS,
                     "the fence");
    long froze = hft_keeper_number(k, "froze");
    long killed = hft_keeper_number(k, "killed");
    ck_assert(does_grow("held"));
    ck_assert_int_eq(hft_keeper_number(k, "froze"), froze);
    ck_assert_int_eq(hft_keeper_number(k, "killed"), killed);
    hf_ms stall = hft_ticker_stall(&ticker);
    ck_assert_int_eq(kill(k->link_pid, SIGCONT), 0);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    ck_assert_uint_eq(a->fenced, 1);
    ck_assert_int_ge(a->frozen_ns, deadline);
    printf("fence: stands still %.2f ms after the deadline (stall %ld ms)\n",
           (double)(a->frozen_ns - deadline) / 1e6, (long)stall);
    ck_assert_int_le(a->frozen_ns - deadline, (LEFT_MS + stall) * 1000000);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_FENCED, 0);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "froze", "i1"), AGENTD_CODE_FENCED);
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "froze", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_uint_eq(a->fenced, 0);
    ck_assert(does_grow("froze"));
    hft_ticker_stop(&ticker);
    hft_keeper_done(k);
}
END_TEST

struct awake {
    pid_t pid;
    int64_t switches;
};

/* How often it was given a processor; -1: it is gone. */
static int64_t switches_of(pid_t pid)
{
    static const char LABEL[] = "\nvoluntary_ctxt_switches:";
    char path[64], text[4096] = "";
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    const char *found =
        fd >= 0 && read(fd, text, sizeof text - 1) > 0 ? strstr(text, LABEL) : NULL;
    return found != NULL ? strtoll(found + strlen(LABEL), NULL, 10) : -1;
}

/* It ran, and was stopped once more. */
static bool is_stopped_again(void *arg)
{
    const struct awake *awake = arg;

    return hft_process_state(awake->pid) == 'T' && switches_of(awake->pid) > awake->switches;
}

/* Somebody continues one whom the fence has stopped: that is no reason to kill it. */
START_TEST(who_is_woken_behind_the_fence_is_stopped_again)
{
    struct awake awake;

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    extend_and_spawn("a", "i1", AGENTD_FENCE_FREEZE, "exec sleep 1000");
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    awake.pid = hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN)->pid;
    for (int round = 0; round < 3; round++) {
        awake.switches = switches_of(awake.pid);
        ck_assert_int_eq(kill(awake.pid, SIGCONT), 0);
        hft_wait_or_fail(is_stopped_again, &awake, LONG_MS, "a process to be stopped again");
    }
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    hft_keeper_done(k);
}
END_TEST

/* Continues it again and again, as long as it is there, and sooner than the keeper looks. */
static void keep_awake(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    pid_t parent = getpid();

    ck_assert_int_ge(pidfd, 0);
    if (fork() == 0) {
        /* Before everybody else, where that is allowed. */
        (void)sched_setscheduler(0, SCHED_RR, &(struct sched_param){ 2 });
        while (getppid() == parent &&
               syscall(SYS_pidfd_send_signal, pidfd, SIGCONT, NULL, 0) == 0)
            (void)usleep(200);
        _exit(0);
    }
    (void)close(pidfd);
}

/* It was the link's order that it resisted, and then the fence falls. */
START_TEST(who_cannot_be_stopped_is_killed_by_the_fence)
{
    const struct agentd_agent *a;

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    extend_and_spawn("a", "i1", AGENTD_FENCE_FREEZE, "while :; do :; done");
    keep_awake(hft_keeper_tree(k, "i1")->pid);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_wait(k, "i1", AGENTD_STATE_FREEZING)->fenced, 0);
    hft_keeper_extend(k, -1);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_FENCED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    hft_keeper_done(k);
}
END_TEST

/* Everybody has been told to stand, and does, before the keeper can look again. */
START_TEST(who_stands_is_not_killed_by_a_fence_that_was_held_up)
{
    enum { ROUNDS = 5, HELD_UP_MS = 1300 };

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    extend_and_spawn("a", "i1", AGENTD_FENCE_FREEZE, "while :; do :; done");
    for (int round = 0; round < ROUNDS; round++) {
        hft_keeper_extend(k, -1);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
        while (hft_process_state(hft_keeper_tree(k, "i1")->pid) == 'R')
            ;
        ck_assert_int_eq(kill(k->hello.keeper_pid, SIGSTOP), 0);
        hft_pass_until(hft_now() + HELD_UP_MS);
        ck_assert_int_eq(kill(k->hello.keeper_pid, SIGCONT), 0);
        (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
        hft_keeper_extend(k, 60000);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
        (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    }
    hft_keeper_done(k);
}
END_TEST

START_TEST(fence_holds_back_what_is_not_released_yet)
{
    if (!hft_keeper_begin(k, _i))
        return;
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(
        hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "a",
                                                        .instance = "i1",
                                                        .script = "echo 1 > $D/begun" }),
        AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_FENCED);
    hft_keeper_extend(k, INT64_C(1000) * AGENTD_TTL_MAX); /* garbage counts as passed */
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_FENCED);
    ck_assert(!hft_keeper_has_file(k, "begun"));
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(hft_keeper_has_file(k, "begun"));
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *tree = tcase_create("tree");
    TCase *fence = tcase_create("fence");

    tcase_set_timeout(tree, 60);
    tcase_set_timeout(fence, 60);
    tcase_add_loop_test(tree, escaped_children_end_with_the_agent, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(tree, kill_ends_the_whole_tree, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(tree, frozen_stands_still_and_thawed_runs_as_before, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(fence, fence_falls_on_time_while_the_link_is_stopped, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(fence, who_is_woken_behind_the_fence_is_stopped_again, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(fence, who_cannot_be_stopped_is_killed_by_the_fence, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(fence, who_stands_is_not_killed_by_a_fence_that_was_held_up, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(fence, fence_holds_back_what_is_not_released_yet, 0, HFT_KEEPER_MODES);
    return hft_suite_run("keeper: tree", tree, fence, NULL);
}
