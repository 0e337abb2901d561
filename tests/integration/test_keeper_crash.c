/* Links, keepers, shims and agents that die, in every mode: nothing is lost, nobody stays. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

#define LONG_MS 30000

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

START_TEST(next_link_is_handed_everything)
{
    static const char MEMO[] = "what the link knows";
    struct {
        struct agentd_memo fixed;
        char bytes[sizeof MEMO];
    } memo = { .fixed = {
                   .head = { .length = sizeof memo.fixed + sizeof MEMO, .type = AGENTD_MEMO },
                   .len = sizeof MEMO } };
    struct {
        struct agentd_remember fixed;
        char bytes[4];
    } remember = { .fixed = { .head = { .length = sizeof remember.fixed + 4,
                                        .type = AGENTD_REMEMBER },
                              .who = { "a", "i1" },
                              .op_id = "op9",
                              .incarnation = { 11, 12, 13 },
                              .blob_len = 4 },
                   .bytes = "blob" };
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE },
                                  .lease = { 4711, 15000, 99, 3 } };

    if (!hft_keeper_begin(k, _i))
        return;
    const struct agentd_agent *a =
        hft_keeper_run(k, "a", "i1", "echo 1 > $D/begun; sleep 1000");
    pid_t pid = a->pid;
    uint64_t start_time = a->start_time;
    (void)hft_keeper_run(k, "b", "i2", "while ! test -e $D/go; do sleep 0.01; done; exit 9");
    memcpy(memo.bytes, MEMO, sizeof MEMO);
    memo.fixed.head.id = ++k->last_id;
    ck_assert_uint_eq(hft_keeper_raw(k, &memo, memo.fixed.head.length), AGENTD_CODE_OK);
    remember.fixed.head.id = ++k->last_id;
    ck_assert_uint_eq(hft_keeper_raw(k, &remember, remember.fixed.head.length), AGENTD_CODE_OK);
    lease.head.id = ++k->last_id;
    ck_assert_uint_eq(hft_keeper_raw(k, &lease, sizeof lease), AGENTD_CODE_OK);
    int64_t deadline = k->page->deadline_ns;

    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    char path[HFT_PATH_MAX + 16];
    (void)snprintf(path, sizeof path, "%s/go", k->dir.path);
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    hft_keeper_accept(k);
    ck_assert_uint_eq(k->hello.link_starts, 2);
    ck_assert_uint_eq(k->hello.agents, 2);
    ck_assert_str_eq(k->memo, MEMO);
    ck_assert_mem_eq(&k->hello.lease, &lease.lease, sizeof lease.lease);
    ck_assert_int_eq(k->page->deadline_ns, deadline);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 9);
    a = hft_keeper_tree(k, "i1");
    ck_assert_int_eq(a->pid, pid);
    ck_assert_uint_eq(a->start_time, start_time);
    ck_assert_str_eq(a->op_id, "op9");
    ck_assert_int_eq(a->incarnation.create_revision, 12);
    ck_assert_uint_eq(a->blob_len, 4);
    ck_assert_uint_eq(a->state, AGENTD_STATE_RUNNING);
    ck_assert_int_ne(hft_process_state(pid), 0);
    hft_keeper_done(k);
}
END_TEST

START_TEST(malformed_messages_are_answered)
{
    static _Alignas(8) char packet[AGENTD_MESSAGE_MAX];
    struct agentd_head *head = (struct agentd_head *)packet;
    unsigned seed = 1;

    if (!hft_keeper_begin(k, _i))
        return;
    ck_assert_uint_eq(hft_keeper_raw(k, "x", 1), AGENTD_CODE_MALFORMED);
    for (int round = 0; round < 500; round++) {
        size_t len = sizeof *head + (size_t)rand_r(&seed) % (round % 10 == 0 ? 100000 : 600);

        for (size_t i = 0; i < len; i++)
            packet[i] = (char)rand_r(&seed);
        *head = (struct agentd_head){ .length = (uint32_t)len,
                                      .type = (uint16_t)(rand_r(&seed) % 32),
                                      .id = ++k->last_id };
        ck_assert_uint_ne(hft_keeper_raw(k, packet, len), AGENTD_CODE_OK);
    }
    struct agentd_ready old = { .head = { .length = sizeof old, .type = AGENTD_READY, .id = 1 },
                                .version = AGENTD_PROTOCOL_VERSION };
    ck_assert_uint_eq(hft_keeper_raw(k, &old, sizeof old), AGENTD_CODE_MALFORMED);
    (void)hft_keeper_run(k, "a", "i1", "exit 0");
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    hft_keeper_done(k);
}
END_TEST

START_TEST(after_a_crash_of_both_the_next_keeper_cleans_up)
{
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE },
                                  .lease = { 4711, 15000, 99, 3 } };

    if (!hft_keeper_begin(k, _i))
        return;
    const struct agentd_agent *a =
        hft_keeper_run(k, "a", "i1", HFT_KEEPER_ESCAPE "wait; sleep 1000");
    pid_t pid = a->pid;
    hft_keeper_wait_file(k, "escaped");
    lease.head.id = ++k->last_id;
    ck_assert_uint_eq(hft_keeper_raw(k, &lease, sizeof lease), AGENTD_CODE_OK);
    hft_keeper_wait_file(k, "state/lease");
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
    (void)hft_process_reap(k->pid, LONG_MS);
    hft_keeper_start(k);
    ck_assert_int_eq(k->hello.lost_lease_id, 4711);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_ABANDONED | AGENTD_CAUSE_NO_STATUS);
    ck_assert_int_eq(a->pid, pid);
    ck_assert_int_eq(a->incarnation.create_revision, 77);
    hft_process_wait_gone(pid);
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deep"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_OK);
    hft_keeper_extend(k, 60000);
    (void)hft_keeper_run(k, "a", "i2", "exit 0");
    (void)hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    hft_keeper_done(k);
}
END_TEST

START_TEST(signals_are_told_and_shutdown_gives_the_code)
{
    if (!hft_keeper_begin(k, _i))
        return;
    const struct agentd_agent *a = hft_keeper_run(
        k, "a", "i1", "trap 'exit 6' TERM; echo 1 > $D/t; while :; do sleep 0.02; done");
    pid_t pid = a->pid;
    hft_keeper_wait_file(k, "t");
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGTERM), 0);
    while (k->signal != SIGTERM)
        ck_assert(hft_keeper_take(k, LONG_MS));
    ck_assert_uint_eq(hft_keeper_shutdown(k, 23, 20000), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 6);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_OK);
    int status = hft_process_reap(k->pid, LONG_MS);
    k->pid = 0;
    ck_assert_int_eq(WEXITSTATUS(status), 23);
    ck_assert(hft_process_is_gone(pid));
    ck_assert_int_eq(hft_keeper_number(k, "state/keeper.pid"), 0);
    ck_assert(!hft_keeper_has_file(k, "state/link.pid"));
    ck_assert(!hft_keeper_has_file(k, "state/run/i1"));
    hft_keeper_done(k);
}
END_TEST

/* Signals of one kind merge while nobody looks: so it is told until it has heard three. */
static bool is_told_until_it_ends(void *arg)
{
    if (hft_process_has_ended(k->pid, arg))
        return true;
    (void)kill(k->hello.keeper_pid, SIGTERM);
    return false;
}

START_TEST(third_signal_ends_all)
{
    if (!hft_keeper_begin(k, _i))
        return;
    pid_t pid = hft_keeper_run(k, "a", "i1", "sleep 1000")->pid;
    hft_keeper_pause_link(k);
    int status = 0;
    hft_wait_or_fail(is_told_until_it_ends, &status, LONG_MS, "the keeper's end");
    k->pid = 0;
    ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGTERM);
    hft_process_wait_gone(pid);
    hft_keeper_done(k);
}
END_TEST

START_TEST(agent_that_kills_its_shim_ends)
{
    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "other", "i0", "sleep 1000");
    pid_t pid =
        hft_keeper_run(k, "a", "i1", HFT_KEEPER_ESCAPE "kill -9 $PPID; sleep 1000")->pid;
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    hft_process_wait_gone(pid);
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deep"));
    hft_process_wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    ck_assert_uint_eq(hft_keeper_tree(k, "i0")->state, AGENTD_STATE_RUNNING);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "other", "i0"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i0", AGENTD_STATE_ENDED);
    hft_keeper_done(k);
}
END_TEST

/* Whether it ends itself then or is to be ended. */
START_TEST(agent_that_stops_its_shim_ends_as_any_other)
{
    const struct agentd_agent *a;

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", "kill -STOP $PPID; exit 3");
    (void)hft_keeper_run(k, "b", "i2", "kill -STOP $PPID; echo 1 > $D/done; sleep 1000");
    hft_keeper_wait_file(k, "done");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "b", "i2"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_ASKED);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 3);
    ck_assert_uint_eq(a->exit.causes, 0);
    hft_keeper_done(k);
}
END_TEST

/* Its first process ends with the shim, and comes to the keeper, which was its parent's. */
START_TEST(who_loses_its_shim_has_a_status)
{
    enum { LIVES = 60 };
    char command[64], instance[16];

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    for (int life = 0; life < LIVES; life++) {
        (void)snprintf(instance, sizeof instance, "n%d", life);
        (void)snprintf(command, sizeof command, "kill -9 $(ps -o ppid= -p %d)",
                       (int)hft_keeper_run(k, "a", instance, "sleep 1000")->pid);
        HFT_CLEANUP_OUTPUT struct hft_output out;
        hft_process_run((const char *[]){ "sh", "-c", command, NULL }, NULL, &out);
        ck_assert_int_eq(out.status, 0);
        const struct agentd_agent *a = hft_keeper_wait(k, instance, AGENTD_STATE_ENDED);
        ck_assert_uint_eq(a->exit.causes, 0);
        ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", instance), AGENTD_CODE_OK);
        k->tree_count = 0;
    }
    hft_keeper_done(k);
}
END_TEST

static pid_t parent_of(pid_t pid)
{
    char path[64];
    size_t len;
    const char *end;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    HF_CLEANUP_FREE char *text = hft_read_text(path, &len);
    end = strrchr(text, ')');
    return end != NULL ? (pid_t)strtol(end + 4, NULL, 10) : 0;
}

/* As soon as it is there: it may notice that it has another parent before the signal comes. */
START_TEST(who_loses_its_shim_before_it_begins_has_not_finished)
{
    enum { LIVES = 60 };
    char instance[16];

    if (_i == HFT_KEEPER_CGROUP || !hft_keeper_begin(k, _i))
        return;
    for (int life = 0; life < LIVES; life++) {
        (void)snprintf(instance, sizeof instance, "n%d", life);
        ck_assert_uint_eq(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "a",
                                                                          .instance = instance,
                                                                          .script = "exit 5" }),
                          AGENTD_CODE_OK);
        pid_t shim = parent_of(hft_keeper_wait(k, instance, AGENTD_STATE_HELD)->pid);
        ck_assert_int_ne(shim, k->hello.keeper_pid);
        ck_assert_int_eq(kill(shim, SIGKILL), 0);
        const struct agentd_agent *a = hft_keeper_wait(k, instance, AGENTD_STATE_ENDED);
        ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_DISCARDED);
        ck_assert_msg(WIFSIGNALED(a->exit.wait_status), "%s", a->exit.evidence);
        ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", instance), AGENTD_CODE_OK);
        k->tree_count = 0;
    }
    hft_keeper_done(k);
}
END_TEST

/* 200 kills of links and agents in any order: every end is told, once, with its status, and
 * nothing is left. */
START_TEST(random_kills_lose_nothing)
{
    enum { AGENTS = 6, KILLS = 200 };
    pid_t pids[AGENTS] = { 0 };
    unsigned seed = 7;
    int lives = 0;
    int links = 0;
    char agent[16];
    char instance[32];
    char names[AGENTS][32] = { "" };

    if (!hft_keeper_begin(k, _i))
        return;
    for (int kills = 0; kills < KILLS; kills++) {
        int n = rand_r(&seed) % AGENTS;

        (void)snprintf(agent, sizeof agent, "a%d", n);
        if (pids[n] == 0) {
            (void)snprintf(instance, sizeof instance, "n%d", ++lives);
            memcpy(names[n], instance, sizeof instance);
            pids[n] =
                hft_keeper_run(k, agent, instance,
                               "(setsid sleep 1000 &); (sleep 1000 &); sleep 1000; exit 4")
                    ->pid;
        }
        bool with_link = kills % 45 == 20; /* some come with a delay */
        if (with_link)
            ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
        int signal = rand_r(&seed) % 2 == 0 ? SIGKILL : SIGTERM;
        ck_assert_int_eq(kill(pids[n], signal), 0);
        if (with_link) {
            hft_keeper_accept(k);
            links++;
        }
        const struct agentd_agent *a = hft_keeper_wait(k, names[n], AGENTD_STATE_ENDED);
        ck_assert_int_eq(a->pid, pids[n]);
        ck_assert(WIFSIGNALED(a->exit.wait_status));
        ck_assert_int_eq(WTERMSIG(a->exit.wait_status), signal);
        ck_assert_uint_eq(a->exit.causes & AGENTD_CAUSE_NO_STATUS, 0);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, agent, names[n]), AGENTD_CODE_OK);
        k->tree_count = 0;
        pids[n] = 0;
    }
    printf("%d lives, %d kills, %d links\n", lives, KILLS, links);
    /* Whoever is left is a child of the keeper's own: the link and the scribe. */
    char command[128];
    (void)snprintf(command, sizeof command, "ps --ppid %d -o comm= | sort | tr '\\n' ' '",
                   (int)k->hello.keeper_pid);
    const char *const argv[] = { "sh", "-c", command, NULL };
    HFT_CLEANUP_OUTPUT struct hft_output out;
    hft_process_run(argv, NULL, &out);
    ck_assert_str_eq(out.out, "agentd-scribe keeper_relay ");
    hft_keeper_done(k);
}
END_TEST

/* Kills the link; returns how long it took until the next one was ready. */
static hf_ms replace_link(void)
{
    hf_ms killed_at = hft_now();

    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    hft_keeper_accept(k);
    return hft_now() - killed_at;
}

static void send_lease(struct agentd_lease *lease)
{
    lease->head.id = ++k->last_id;
    ck_assert_uint_eq(hft_keeper_raw(k, lease, sizeof *lease), AGENTD_CODE_OK);
}

/* An agent's lease runs out while there is no link. */
START_TEST(only_links_that_die_of_their_start_are_waited_for)
{
    enum { PROVEN_MS = 1000, LONGEST_MS = 1600 };
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE },
                                  .lease = { 4711, 1200, 99, 3 } };
    hf_ms delay = 0, took;

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    hft_pass_until(hft_now() + PROVEN_MS + 1);
    while (delay < LONGEST_MS) {
        took = replace_link();
        ck_assert_int_ge(took, delay);
        if (took - delay > PROVEN_MS / 2) /* this machine stood still: it may be proven now */
            delay = 0;
        else
            delay = delay == 0 ? 100 : delay * 2;
    }
    send_lease(&lease);
    ck_assert_int_lt(replace_link(), LONGEST_MS); /* there is a lease to be saved */
    lease.lease = (struct agentd_lease_state){ 0 };
    send_lease(&lease);
    hft_pass_until(hft_now() + PROVEN_MS + 1);
    ck_assert_int_lt(replace_link(), LONGEST_MS);
    hft_keeper_done(k);
}
END_TEST

START_TEST(killed_scribe_is_replaced)
{
    char command[HFT_PATH_MAX + 128];

    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", "while ! test -e $D/go; do sleep 0.01; done; echo late");
    (void)snprintf(command, sizeof command,
                   "kill -9 $(ps --ppid %d -o pid=,comm= | awk '/scribe/{print $1}') && "
                   "touch %s/go",
                   (int)k->hello.keeper_pid, k->dir.path);
    const char *const argv[] = { "sh", "-c", command, NULL };
    HFT_CLEANUP_OUTPUT struct hft_output out;
    hft_process_run(argv, NULL, &out);
    ck_assert_int_eq(out.status, 0);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    (void)hft_keeper_run(k, "b", "i2", "echo fine");
    ck_assert_str_eq(hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED)->exit.output, "fine\n");
    hft_keeper_done(k);
}
END_TEST

static bool is_recorded(void *arg)
{
    char path[HFT_PATH_MAX + 64];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/run/%s", k->state, (const char *)arg);
    return stat(path, &st) == 0 && st.st_size >= (off_t)sizeof(struct agentd_agent);
}

static pid_t find_scribe(void)
{
    char command[128];
    HFT_CLEANUP_OUTPUT struct hft_output out;

    (void)snprintf(command, sizeof command,
                   "ps --ppid %d -o pid=,comm= | awk '/scribe/{print $1}'",
                   (int)k->hello.keeper_pid);
    hft_process_run((const char *[]){ "sh", "-c", command, NULL }, NULL, &out);
    return (pid_t)strtol(out.out, NULL, 10);
}

/* It had orders that it did not come to. Nothing else changes that would be written. */
START_TEST(what_a_killed_scribe_had_to_write_is_written_by_the_next)
{
    pid_t scribe;

    if (!hft_keeper_begin(k, _i))
        return;
    scribe = find_scribe();
    ck_assert_int_gt(scribe, 0);
    ck_assert_int_eq(kill(scribe, SIGSTOP), 0);
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_int_eq(kill(scribe, SIGKILL), 0);
    hft_wait_or_fail(is_recorded, (void *)"i1", LONG_MS, "the record of an agent");
    hft_keeper_done(k);
}
END_TEST

/* Goes on when the next keeper has begun, which must not have looked by then. */
static pid_t continue_when_locked(pid_t scribe)
{
    char command[HFT_PATH_MAX + 128];
    const char *const argv[] = { "sh", "-c", command, NULL };

    (void)snprintf(
        command, sizeof command,
        "while test \"$(cat %s/keeper.pid)\" = %d; do sleep 0.01; done; kill -CONT %d",
        k->state, (int)k->hello.keeper_pid, (int)scribe);
    return hft_process_spawn(&(struct hft_spawn){ .argv = argv });
}

START_TEST(what_a_killed_keeper_dictated_is_known_to_the_next)
{
    const struct agentd_agent *tree;
    pid_t scribe, helper;

    if (!hft_keeper_begin(k, _i))
        return;
    scribe = find_scribe();
    ck_assert_int_gt(scribe, 0);
    ck_assert_int_eq(kill(scribe, SIGSTOP), 0);
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
    (void)hft_process_reap(k->pid, LONG_MS);
    helper = continue_when_locked(scribe);
    hft_keeper_start(k);
    ck_assert_int_eq(hft_process_reap(helper, LONG_MS), 0);
    tree = hft_keeper_tree(k, "i1");
    ck_assert_ptr_nonnull(tree);
    ck_assert_uint_eq(tree->state, AGENTD_STATE_ENDED);
    ck_assert_uint_ne(tree->exit.causes & AGENTD_CAUSE_ABANDONED, 0);
    hft_keeper_done(k);
}
END_TEST

/* The end of the socket that the scribe has. */
static int borrow_socket(pid_t scribe)
{
    enum { FILES = 64 };
    HF_CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, scribe, 0);

    for (int number = 3; number < FILES; number++) {
        int fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0), type = 0;
        socklen_t len = sizeof type;

        if (fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0)
            return fd;
        if (fd >= 0)
            (void)close(fd);
    }
    return -1;
}

/* The kernel tells the scribe of that before it gives it what was dictated. */
START_TEST(what_a_killed_keeper_dictated_counts_though_it_had_not_read_all)
{
    static const char UNREAD[2000];
    pid_t scribe, helper;

    if (geteuid() != 0 || !hft_keeper_begin(k, _i))
        return;
    scribe = find_scribe();
    ck_assert_int_eq(kill(scribe, SIGSTOP), 0);
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGSTOP), 0);
    int fd = borrow_socket(scribe);
    ck_assert_int_eq(send(fd, UNREAD, sizeof UNREAD, MSG_NOSIGNAL), sizeof UNREAD);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
    (void)hft_process_reap(k->pid, LONG_MS);
    helper = continue_when_locked(scribe);
    hft_keeper_start(k);
    ck_assert_int_eq(hft_process_reap(helper, LONG_MS), 0);
    ck_assert_ptr_nonnull(hft_keeper_tree(k, "i1"));
    hft_keeper_done(k);
}
END_TEST

/* As a disk of its own, which only this test and what it starts see. */
static bool mount_state(void)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("state", k->state, "tmpfs", 0, "size=256k,mode=700") == 0)
        return true;
    hft_skip("no disk can be made here: %s", strerror(errno));
    return false;
}

static void fill_state(bool full)
{
    char path[HFT_PATH_MAX + 64], block[4096] = { 1 };
    int fd;

    (void)snprintf(path, sizeof path, "%s/filler", k->state);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    while (full && write(fd, block, sizeof block) > 0)
        ;
    ck_assert(!full || errno == ENOSPC);
    ck_assert_int_eq(close(fd), 0);
}

START_TEST(what_found_no_room_is_written_when_there_is_some)
{
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE },
                                  .lease = { 4711, 15000, 99, 3 } };

    if (!hft_keeper_can((enum hft_keeper_mode)_i))
        return;
    hft_keeper_init(k, (enum hft_keeper_mode)_i);
    if (geteuid() != 0 || !mount_state())
        return;
    hft_keeper_start(k);
    hft_keeper_extend(k, 60000);
    fill_state(true);
    send_lease(&lease);
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    /* The scribe takes one after the other. */
    (void)hft_keeper_run(k, "b", "i2", "echo lost");
    (void)hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert(!is_recorded((void *)"i1"));
    ck_assert_int_eq(hft_keeper_number(k, "state/lease"), 0);
    fill_state(false);
    hft_wait_or_fail(is_recorded, (void *)"i1", LONG_MS, "the record of an agent");
    hft_keeper_wait_file(k, "state/lease");
    hft_keeper_done(k);
}
END_TEST

START_TEST(a_full_disk_keeps_no_agentd_from_beginning)
{
    if (!hft_keeper_can((enum hft_keeper_mode)_i))
        return;
    hft_keeper_init(k, (enum hft_keeper_mode)_i);
    if (geteuid() != 0 || !mount_state())
        return;
    fill_state(true);
    hft_keeper_start(k);
    hft_keeper_extend(k, 60000);
    (void)hft_keeper_run(k, "a", "i1", "exit 3");
    ck_assert_int_eq(
        WEXITSTATUS(hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED)->exit.wait_status), 3);
    hft_keeper_done(k);
}
END_TEST

#define THAW_MS 8000 /* nothing else ends who writes there */

/* A file on a disk of its own, and that disk, which an ioctl freezes. */
static int open_on_disk(int *ret_disk)
{
    char command[4 * HFT_PATH_MAX], path[HFT_PATH_MAX + 32];
    HFT_CLEANUP_OUTPUT struct hft_output out;

    (void)snprintf(command, sizeof command,
                   "cd %s && mkdir disk && truncate -s 16M image && mkfs.ext4 -q image && "
                   "mount -o loop image disk",
                   k->dir.path);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    hft_process_run((const char *[]){ "sh", "-c", command, NULL }, NULL, &out);
    if (out.status != 0)
        return -1;
    (void)snprintf(path, sizeof path, "%s/disk", k->dir.path);
    *ret_disk = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)snprintf(path, sizeof path, "%s/disk/log", k->dir.path);
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void freeze_for_a_while(int disk)
{
    ck_assert_int_eq(ioctl(disk, FIFREEZE, 0), 0);
    if (fork() != 0)
        return;
    (void)setsid();
    (void)usleep(THAW_MS * 1000);
    (void)ioctl(disk, FITHAW, 0);
    _exit(0);
}

static bool is_fence_said(void *arg)
{
    char path[HFT_PATH_MAX + 32];

    (void)arg;
    (void)snprintf(path, sizeof path, "%s/disk/log", k->dir.path);
    HF_CLEANUP_FREE char *text = hft_read_text(path, NULL);
    return strstr(text, "event=fence") != NULL;
}

START_TEST(the_fence_waits_for_no_disk_that_its_log_is_on)
{
    const struct agentd_agent *a;
    int disk = -1, log;

    if (geteuid() != 0 || !hft_keeper_can((enum hft_keeper_mode)_i))
        return;
    hft_keeper_init(k, (enum hft_keeper_mode)_i);
    log = open_on_disk(&disk);
    if (log < 0) {
        hft_skip("no disk can be made here: %s", strerror(errno));
        return;
    }
    int own = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(log, STDERR_FILENO), 0);
    hft_keeper_start(k);
    ck_assert_int_ge(dup2(own, STDERR_FILENO), 0);
    hft_keeper_extend(k, 60000);
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    freeze_for_a_while(disk);
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    ck_assert_int_lt(a->frozen_ns - k->page->deadline_ns, THAW_MS / 2 * INT64_C(1000000));
    (void)ioctl(disk, FITHAW, 0);
    hft_wait_or_fail(is_fence_said, NULL, LONG_MS, "what the fence did in the log");
    hft_keeper_done(k);
}
END_TEST

static pid_t continue_later(pid_t scribe)
{
    char command[64];
    const char *const argv[] = { "sh", "-c", command, NULL };

    (void)snprintf(command, sizeof command, "sleep 1; kill -CONT %d", (int)scribe);
    return hft_process_spawn(&(struct hft_spawn){ .argv = argv });
}

/* More than the scribe, which is slow, can be told at once. */
START_TEST(how_everybody_ended_with_agentd_is_known_to_the_next)
{
    enum { AGENTS = 60 };
    char agent[16], instance[16];
    int status = 0;

    if (!hft_keeper_begin(k, _i))
        return;
    for (int n = 0; n < AGENTS; n++) {
        (void)snprintf(agent, sizeof agent, "a%d", n);
        (void)snprintf(instance, sizeof instance, "n%d", n);
        (void)hft_keeper_run(k, agent, instance, "exec sleep 1000");
        hft_wait_or_fail(is_recorded, instance, LONG_MS, "the record of an agent");
    }
    pid_t scribe = find_scribe();
    ck_assert_int_eq(kill(scribe, SIGSTOP), 0);
    hft_keeper_pause_link(k);
    pid_t helper = continue_later(scribe);
    hft_wait_or_fail(is_told_until_it_ends, &status, LONG_MS, "the keeper's end");
    ck_assert_int_eq(hft_process_reap(helper, LONG_MS), 0);
    hft_keeper_start(k);
    for (int n = 0; n < AGENTS; n++) {
        (void)snprintf(instance, sizeof instance, "n%d", n);
        const struct agentd_agent *a = hft_keeper_wait(k, instance, AGENTD_STATE_ENDED);
        ck_assert_uint_eq(a->exit.causes, AGENTD_CAUSE_ASKED);
        ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    }
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *link = tcase_create("link");
    TCase *crash = tcase_create("crash");
    TCase *written = tcase_create("written");

    tcase_set_timeout(link, 60);
    tcase_set_timeout(crash, 60);
    tcase_set_timeout(written, 60);
    tcase_add_loop_test(link, next_link_is_handed_everything, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(link, malformed_messages_are_answered, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(link, signals_are_told_and_shutdown_gives_the_code, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(link, third_signal_ends_all, 0, HFT_KEEPER_MODES);
    tcase_add_test(link, only_links_that_die_of_their_start_are_waited_for);
    tcase_add_loop_test(crash, after_a_crash_of_both_the_next_keeper_cleans_up, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(crash, agent_that_kills_its_shim_ends, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(crash, agent_that_stops_its_shim_ends_as_any_other, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(crash, who_loses_its_shim_has_a_status, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(crash, who_loses_its_shim_before_it_begins_has_not_finished, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(crash, killed_scribe_is_replaced, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(written, what_a_killed_scribe_had_to_write_is_written_by_the_next, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(written, what_a_killed_keeper_dictated_is_known_to_the_next, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(written,
                        what_a_killed_keeper_dictated_counts_though_it_had_not_read_all, 0,
                        HFT_KEEPER_NOBODY);
    tcase_add_loop_test(written, what_found_no_room_is_written_when_there_is_some, 0,
                        HFT_KEEPER_NOBODY);
    tcase_add_loop_test(written, a_full_disk_keeps_no_agentd_from_beginning, 0,
                        HFT_KEEPER_NOBODY);
    tcase_add_loop_test(written, how_everybody_ended_with_agentd_is_known_to_the_next, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(written, the_fence_waits_for_no_disk_that_its_log_is_on, 0,
                        HFT_KEEPER_NOBODY);
    tcase_add_loop_test(crash, random_kills_lose_nothing, 0, HFT_KEEPER_MODES);
    return hft_suite_run("keeper: crash", link, crash, written, NULL);
}
