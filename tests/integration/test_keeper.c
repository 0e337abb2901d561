/* The keeper, with real processes: each case in a cgroup, behind a shim, and as nobody. */
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

#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/wait.h"

#define LONG_MS 30000

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

static bool begin(int mode)
{
    if (!hft_keeper_can((enum hft_keeper_mode)mode))
        return false;
    hft_keeper_init(k, (enum hft_keeper_mode)mode);
    hft_keeper_start(k);
    bool has_cgroups = (k->hello.flags & AGENTD_HAS_CGROUPS) != 0;
    if (mode == HFT_KEEPER_CGROUP && !has_cgroups) {
        printf("skipped: no cgroup v2 that we may use\n");
        hft_keeper_done(k);
        return false;
    }
    ck_assert_int_eq(has_cgroups, mode == HFT_KEEPER_CGROUP);
    hft_keeper_extend(k, 60000);
    return true;
}

static void finish(void)
{
    hft_keeper_done(k);
}

static bool has_file(const char *name)
{
    char path[HFT_PATH_MAX + 64];

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, name);
    return access(path, F_OK) == 0;
}

static bool is_gone(void *arg)
{
    char state = hft_process_state(*(const pid_t *)arg);

    return state == 0 || state == 'Z';
}

static void wait_gone(pid_t pid)
{
    hft_wait_or_fail(is_gone, &pid, LONG_MS, "the end of a process");
}

START_TEST(held_until_released_and_its_end_is_told)
{
    if (!begin(_i))
        return;
    ck_assert_uint_eq(
        hft_keeper_spawn(k,
                         &(struct hft_keeper_spawn){
                             .agent = "a",
                             .instance = "i1",
                             .script = "echo 1 > $D/begun; echo to-out $SEEN "
                                       "$HOLDFAST_INCARNATION; echo to-err >&2; exit 7" }),
        AGENTD_CODE_OK);
    struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_int_gt(a->pid, 0);
    ck_assert_uint_gt(a->start_time, 0);
    ck_assert_str_eq(a->boot_id, k->hello.boot_id);
    ck_assert(!has_file("begun"));
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(has_file("begun"));
    ck_assert(WIFEXITED(a->exit.wait_status));
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 7);
    ck_assert_int_gt(a->begun_ns, 0);
    ck_assert_uint_eq(a->exit.causes, 0);
    ck_assert_str_eq(a->exit.evidence, "exited with status 7");
    ck_assert_str_eq(a->exit.output, "to-out yes 77\nto-err\n");
    ck_assert_int_eq(a->incarnation.create_revision, 77);
    ck_assert_uint_eq(a->done_order, a->order);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_STATE);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_UNKNOWN);
    finish();
}
END_TEST

START_TEST(discarded_never_begins)
{
    if (!begin(_i))
        return;
    ck_assert_uint_eq(
        hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "a",
                                                        .instance = "i1",
                                                        .script = "echo 1 > $D/begun" }),
        AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_DISCARD, "a", "i1"), AGENTD_CODE_OK);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_DISCARDED, 0);
    ck_assert_int_eq(a->begun_ns, 0);
    ck_assert(!has_file("begun"));
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_STATE);
    finish();
}
END_TEST

START_TEST(what_cannot_be_executed_says_why)
{
    if (!begin(_i))
        return;
    ck_assert_uint_eq(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "a",
                                                                      .instance = "i1",
                                                                      .program = "/none" }),
                      AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_NOT_BEGUN, 0);
    ck_assert_int_eq(a->exit.error, ENOENT);
    ck_assert_int_eq(a->begun_ns, 0);
    ck_assert_ptr_nonnull(strstr(a->exit.evidence, "could not execute"));
    finish();
}
END_TEST

START_TEST(death_by_signal_is_told)
{
    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "a", "i1", "kill -SEGV $$");
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(WIFSIGNALED(a->exit.wait_status));
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGSEGV);
    finish();
}
END_TEST

START_TEST(nothing_of_the_keeper_is_inherited)
{
    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "a", "i1",
                         "n=0; while test $n -lt 64; do test -e /proc/$$/fd/$n && echo fd=$n; "
                         "n=$((n+1)); done; env; grep Sig /proc/self/status; cat");
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    const char *out = a->exit.output;
    ck_assert_msg(strncmp(out, "fd=0\nfd=1\nfd=2\n", 15) == 0, "%s", out);
    ck_assert_ptr_null(strstr(out + 15, "fd="));
    ck_assert_ptr_null(strstr(out, "HOLDFAST_SECRET"));
    ck_assert_ptr_null(strstr(out, "HFT_RELAY"));
    ck_assert_ptr_nonnull(strstr(out, "SigBlk:\t0000000000000000"));
    ck_assert_ptr_nonnull(strstr(out, "SigIgn:\t0000000000000000"));
    finish();
}
END_TEST

/* Children that left for another session and another parent. */
#define ESCAPE                                                                                 \
    "(setsid sh -c 'sleep 1000 & echo $! > $D/deep; (setsid sleep 1000 & echo $! > "           \
    "$D/deeper);"                                                                              \
    " echo $$ > $D/escaped; wait' &); while ! test -s $D/escaped; do sleep 0.01; done; "

START_TEST(escaped_children_end_with_the_agent)
{
    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "a", "i1", ESCAPE "exit 3");
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 3);
    ck_assert_uint_ge(a->exit.stragglers, 1);
    ck_assert_int_gt(hft_keeper_number(k, "deep"), 0);
    wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    wait_gone((pid_t)hft_keeper_number(k, "deep"));
    wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    finish();
}
END_TEST

START_TEST(kill_ends_the_whole_tree)
{
    if (!begin(_i))
        return;
    const struct agentd_agent *a = hft_keeper_run(k, "a", "i1", ESCAPE "wait; sleep 1000");
    pid_t pid = a->pid;
    hft_keeper_wait_file(k, "escaped");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_ASKED, 0);
    wait_gone(pid);
    wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    wait_gone((pid_t)hft_keeper_number(k, "deep"));
    wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    finish();
}
END_TEST

START_TEST(end_asks_first)
{
    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "polite", "i1",
                         "trap 'exit 5' TERM; echo 1 > $D/p; while :; do sleep 0.02; done");
    (void)hft_keeper_run(k, "deaf", "i2",
                         "trap '' TERM; echo 1 > $D/q; while :; do sleep 0.02; done");
    hft_keeper_wait_file(k, "p");
    hft_keeper_wait_file(k, "q");
    ck_assert_uint_eq(hft_keeper_end(k, "polite", "i1", 20000), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_end(k, "deaf", "i2", 300), AGENTD_CODE_OK);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 5);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    finish();
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
    if (!begin(_i))
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
        ck_assert(!has_file("woke"));
    }
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_STATE);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_end(k, "a", "i1", 20000), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    wait_gone(self);
    finish();
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

/* The fence must have fallen: its time, a fifth of a second, and what the machine stood still.
 */
struct fence_due {
    int64_t deadline_ns;
    struct hft_ticker *ticker;
};

static bool is_past_fence(void *arg)
{
    const struct fence_due *due = arg;

    return hft_now() * 1000000 >=
           due->deadline_ns + 200000000 + hft_ticker_stall(due->ticker) * 1000000;
}

START_TEST(fence_falls_on_time_while_the_link_is_stopped)
{
    struct hft_ticker ticker;

    if (!begin(_i))
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
    ck_assert_int_le(a->frozen_ns - deadline, (100 + stall) * 1000000);
    a = hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_FENCED, 0);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "froze", "i1"), AGENTD_CODE_FENCED);
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "froze", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_uint_eq(a->fenced, 0);
    ck_assert(does_grow("froze"));
    hft_ticker_stop(&ticker);
    finish();
}
END_TEST

START_TEST(fence_holds_back_what_is_not_released_yet)
{
    if (!begin(_i))
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
    ck_assert(!has_file("begun"));
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(has_file("begun"));
    finish();
}
END_TEST

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

    if (!begin(_i))
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
    finish();
}
END_TEST

START_TEST(malformed_messages_are_answered)
{
    static _Alignas(8) char packet[AGENTD_MESSAGE_MAX];
    struct agentd_head *head = (struct agentd_head *)packet;
    unsigned seed = 1;

    if (!begin(_i))
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
    finish();
}
END_TEST

START_TEST(one_process_per_agent)
{
    const struct hft_keeper_spawn again = { .agent = "a",
                                            .instance = "i2",
                                            .script = "exit 0" };

    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    ck_assert_uint_eq(hft_keeper_spawn(k, &again), AGENTD_CODE_EXISTS);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(hft_keeper_spawn(k, &again), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i2", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i2"), AGENTD_CODE_STATE);
    ck_assert_uint_eq(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "b",
                                                                      .instance = "i1",
                                                                      .script = "exit 0" }),
                      AGENTD_CODE_EXISTS);
    finish();
}
END_TEST

START_TEST(user_is_taken_on)
{
    if (!begin(_i))
        return;
    uint32_t code = hft_keeper_spawn(
        k, &(struct hft_keeper_spawn){
               .agent = "a", .instance = "i1", .script = "id -u", .uid = 1234 });
    if (_i == HFT_KEEPER_NOBODY || geteuid() != 0) {
        ck_assert_uint_eq(code, AGENTD_CODE_SYSTEM);
    } else {
        (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
        ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
        ck_assert_str_eq(hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED)->exit.output, "1234\n");
    }
    finish();
}
END_TEST

START_TEST(second_keeper_is_turned_away)
{
    char want[64];

    if (!begin(_i))
        return;
    const char *const argv[] = { HOLDFAST_AGENTD, "run", "--name", "x", "--state-dir",
                                 k->state,        "--",  "true",   NULL };
    HFT_CLEANUP_OUTPUT struct hft_output out;
    hft_process_run(argv, hft_sanitizer_env(), &out);
    ck_assert_int_eq(out.status, 1);
    (void)snprintf(want, sizeof want, "another agentd (pid %d) uses ",
                   (int)k->hello.keeper_pid);
    ck_assert_msg(strstr(out.err, want) != NULL, "%s", out.err);
    finish();
}
END_TEST

START_TEST(after_a_crash_of_both_the_next_keeper_cleans_up)
{
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE },
                                  .lease = { 4711, 15000, 99, 3 } };

    if (!begin(_i))
        return;
    const struct agentd_agent *a = hft_keeper_run(k, "a", "i1", ESCAPE "wait; sleep 1000");
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
    wait_gone(pid);
    wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    wait_gone((pid_t)hft_keeper_number(k, "deep"));
    wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_OK);
    hft_keeper_extend(k, 60000);
    (void)hft_keeper_run(k, "a", "i2", "exit 0");
    (void)hft_keeper_wait(k, "i2", AGENTD_STATE_ENDED);
    finish();
}
END_TEST

START_TEST(signals_are_told_and_shutdown_gives_the_code)
{
    if (!begin(_i))
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
    ck_assert(is_gone(&pid));
    ck_assert_int_eq(hft_keeper_number(k, "state/keeper.pid"), 0);
    ck_assert(!has_file("state/link.pid"));
    ck_assert(!has_file("state/run/i1"));
    finish();
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
    if (!begin(_i))
        return;
    pid_t pid = hft_keeper_run(k, "a", "i1", "sleep 1000")->pid;
    hft_keeper_pause_link(k);
    int status = 0;
    hft_wait_or_fail(is_told_until_it_ends, &status, LONG_MS, "the keeper's end");
    k->pid = 0;
    ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGTERM);
    wait_gone(pid);
    finish();
}
END_TEST

struct look {
    const char *path;
    struct stat *ret_stat;
};

/* A log that is being rotated is between two names for a moment. */
static bool is_there(void *arg)
{
    const struct look *look = arg;

    return stat(look->path, look->ret_stat) == 0;
}

START_TEST(output_is_bounded_and_one_flood_does_not_hold_up_others)
{
    char path[HFT_PATH_MAX + 64];
    struct stat st;

    if (!begin(_i))
        return;
    (void)hft_keeper_run(k, "flood", "i1", "yes 0123456789012345678901234567890123456789");
    for (int i = 0; i < 5; i++) {
        char instance[16];

        (void)snprintf(instance, sizeof instance, "q%d", i);
        (void)hft_keeper_run(k, "quiet", instance, "echo hello");
        ck_assert_str_eq(hft_keeper_wait(k, instance, AGENTD_STATE_ENDED)->exit.output,
                         "hello\n");
    }
    (void)snprintf(path, sizeof path, "%s/agents/flood.log.1", k->state);
    hft_wait_or_fail(is_there, &(struct look){ path, &st }, LONG_MS, "a second log");
    ck_assert_int_le(st.st_size, 1 << 20);
    (void)snprintf(path, sizeof path, "%s/agents/flood.log", k->state);
    hft_wait_or_fail(is_there, &(struct look){ path, &st }, LONG_MS, "the log");
    ck_assert_int_le(st.st_size, 1 << 20);
    ck_assert_uint_eq(st.st_mode & 077, 0);
    (void)snprintf(path, sizeof path, "%s/agents/quiet.log", k->state);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, 5 * 6);
    finish();
}
END_TEST

START_TEST(agent_that_kills_its_shim_ends)
{
    if (_i == HFT_KEEPER_CGROUP || !begin(_i))
        return;
    (void)hft_keeper_run(k, "other", "i0", "sleep 1000");
    pid_t pid = hft_keeper_run(k, "a", "i1", ESCAPE "kill -9 $PPID; sleep 1000")->pid;
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    wait_gone(pid);
    wait_gone((pid_t)hft_keeper_number(k, "escaped"));
    wait_gone((pid_t)hft_keeper_number(k, "deep"));
    wait_gone((pid_t)hft_keeper_number(k, "deeper"));
    ck_assert_uint_eq(hft_keeper_tree(k, "i0")->state, AGENTD_STATE_RUNNING);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "other", "i0"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i0", AGENTD_STATE_ENDED);
    finish();
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

    if (!begin(_i))
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
        bool with_link = kills % 45 == 20; /* each waits longer than the one before */
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
    finish();
}
END_TEST

START_TEST(killed_scribe_is_replaced)
{
    char command[HFT_PATH_MAX + 128];

    if (!begin(_i))
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
    finish();
}
END_TEST

static long status_kb(pid_t pid, const char *field)
{
    char path[64];
    char line[256];
    long value = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, field, strlen(field)) == 0)
            value = strtol(line + strlen(field), NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return value;
}

START_TEST(keeper_is_small)
{
    if (!begin(_i))
        return;
    pid_t pid = hft_keeper_run(k, "a", "i1", "sleep 1000")->pid;
    pid_t parent = (pid_t)status_kb(pid, "PPid:");
    long keeper_kb = status_kb(k->hello.keeper_pid, "VmRSS:");
    long shim_kb = parent != k->hello.keeper_pid ? status_kb(parent, "VmRSS:") : 0;

    printf("RSS kB: keeper %ld, locked %ld, shim %ld\n", keeper_kb,
           status_kb(k->hello.keeper_pid, "VmLck:"), shim_kb);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const char *const argv[] = { "ldd", HOLDFAST_AGENTD, NULL };
    HFT_CLEANUP_OUTPUT struct hft_output out;
    hft_process_run(argv, NULL, &out);
    ck_assert_int_ne(out.status, 0);
    ck_assert_ptr_nonnull(strstr(out.err, "not a dynamic executable"));
    ck_assert_int_le(keeper_kb, 1536);
    ck_assert_int_le(shim_kb, 1024);
#endif
    finish();
}
END_TEST

START_TEST(commands_for_the_link_need_no_keeper)
{
    const char *const argv[] = { HOLDFAST_AGENTD, "check", NULL };
    const char *env[16] = { "HOLDFAST_AGENTD_LINK=" HOLDFAST_RELAY };
    size_t count = 1;
    HFT_CLEANUP_OUTPUT struct hft_output out;

    for (const char *const *more = hft_sanitizer_env(); *more != NULL; more++)
        env[count++] = *more;
    hft_process_run(argv, env, &out);
    ck_assert_int_eq(out.status, 42);
}
END_TEST

START_TEST(link_that_cannot_begin_ends_agentd_with_its_code)
{
    struct hft_tempdir dir;
    const char *env[16] = { "HOLDFAST_AGENTD_LINK=" HOLDFAST_RELAY };
    size_t count = 1;
    HFT_CLEANUP_OUTPUT struct hft_output out;

    hft_tempdir_init(&dir);
    for (const char *const *more = hft_sanitizer_env(); *more != NULL; more++)
        env[count++] = *more;
    const char *const argv[] = { HOLDFAST_AGENTD, "run", "--name", "x", "--state-dir",
                                 dir.path,        "--",  "true",   NULL };
    hft_process_run(argv, env, &out);
    ck_assert_int_eq(out.status, 2);
    hft_tempdir_done(&dir);
}
END_TEST

int main(void)
{
    TCase *life = tcase_create("life");
    TCase *tree = tcase_create("tree");
    TCase *fence = tcase_create("fence");
    TCase *link = tcase_create("link");
    TCase *crash = tcase_create("crash");
    TCase *start = tcase_create("start");
    TCase *const all[] = { life, tree, fence, link, crash, start };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tcase_set_timeout(all[i], 60);
#define EACH(t, test) tcase_add_loop_test(t, test, 0, HFT_KEEPER_MODES)
    EACH(life, held_until_released_and_its_end_is_told);
    EACH(life, discarded_never_begins);
    EACH(life, what_cannot_be_executed_says_why);
    EACH(life, death_by_signal_is_told);
    EACH(life, nothing_of_the_keeper_is_inherited);
    EACH(life, end_asks_first);
    EACH(life, one_process_per_agent);
    EACH(life, user_is_taken_on);
    EACH(life, output_is_bounded_and_one_flood_does_not_hold_up_others);
    EACH(life, keeper_is_small);
    EACH(tree, escaped_children_end_with_the_agent);
    EACH(tree, kill_ends_the_whole_tree);
    EACH(tree, frozen_stands_still_and_thawed_runs_as_before);
    EACH(fence, fence_falls_on_time_while_the_link_is_stopped);
    EACH(fence, fence_holds_back_what_is_not_released_yet);
    EACH(link, next_link_is_handed_everything);
    EACH(link, malformed_messages_are_answered);
    EACH(link, signals_are_told_and_shutdown_gives_the_code);
    EACH(link, third_signal_ends_all);
    EACH(crash, after_a_crash_of_both_the_next_keeper_cleans_up);
    EACH(crash, agent_that_kills_its_shim_ends);
    EACH(crash, killed_scribe_is_replaced);
    EACH(crash, random_kills_lose_nothing);
    EACH(start, second_keeper_is_turned_away);
    tcase_add_test(start, commands_for_the_link_need_no_keeper);
    tcase_add_test(start, link_that_cannot_begin_ends_agentd_with_its_code);
    return hft_suite_run("keeper", life, tree, fence, link, crash, start, NULL);
}
