/* Numbers of processes that are used again at once, in a pid namespace with room for few: the
 * keeper signals nobody who has the number of one of its own, and the link describes nobody
 * else. The test runs itself in such a namespace, which needs root. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/link/proc.h"
#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/wait.h"

#define LONG_MS 60000

/* After the first round numbers begin at 300 again. */
#define PID_MAX "380"

/* The flock takes all numbers that are left. */
enum { SKIPPED = 77, FLOCK = 100, LIVES = 25, FAMILY_SIZE = 5 };

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

/* Somebody who does nothing and has nothing to do with the keeper. */
static pid_t make_canary(bool lies)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (lies)
        (void)raise(SIGSTOP);
    for (;;)
        (void)pause();
}

static void end_canary(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

/* One that has this number, which nobody has any more. */
static pid_t make_canary_at(pid_t number, bool lies)
{
    for (int64_t end = hft_now() + LONG_MS; hft_now() < end;) {
        pid_t pid = make_canary(lies);

        if (pid == number)
            return pid;
        if (pid > 0)
            end_canary(pid);
    }
    ck_abort_msg("%d is not used again", (int)number);
}

static bool is_stopped(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

static void expect_untouched(pid_t canary)
{
    int status;

    ck_assert_msg(waitpid(canary, &status, WNOHANG | WUNTRACED | WCONTINUED) == 0,
                  "%d was signalled: %x", (int)canary, (unsigned)status);
}

/* Its processes, and what they leave free at every moment; or nothing at all. */
#define FAMILY                                                                                 \
    "for i in 1 2 3 4; do (setsid sh -c 'echo $$ > $D/c'$i'; exec sleep 1000' &); done; "      \
    "echo 1 > $D/made; "
static const char CHURN[] = FAMILY "while :; do /bin/true; done";
static const char STILL[] = FAMILY "exec sleep 1000";

struct flock {
    pid_t list[FLOCK];
    unsigned count;
    pid_t own[FAMILY_SIZE]; /* the numbers of the family, and ... */
    unsigned reused;        /* ... how many of them canaries have */
};

/* False when no number is left. */
static bool add_canary(struct flock *flock)
{
    pid_t pid = flock->count < FLOCK ? make_canary(false) : -1;

    if (pid <= 0)
        return false;
    flock->list[flock->count++] = pid;
    for (int i = 0; i < FAMILY_SIZE; i++)
        flock->reused += flock->own[i] == pid;
    return true;
}

static void remove_file(const char *name)
{
    char path[HFT_PATH_MAX + 64];

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, name);
    ck_assert_int_eq(unlink(path), 0);
}

static void find_family(const char *instance, struct flock *flock)
{
    char name[8];

    flock->own[0] = hft_keeper_tree(k, instance)->pid;
    for (int i = 1; i < FAMILY_SIZE; i++) {
        (void)snprintf(name, sizeof name, "c%d", i);
        hft_keeper_wait_file(k, name);
        flock->own[i] = (pid_t)hft_keeper_number(k, name);
        remove_file(name);
    }
}

static bool is_reused(void *arg)
{
    struct flock *flock = arg;

    while (add_canary(flock))
        ;
    return flock->reused == FAMILY_SIZE;
}

/* Canaries take the numbers while the keeper is about to kill those who have them. With all
 * others taken before, there are none but these. Returns how many of theirs they got before the
 * keeper was done. */
static unsigned kill_among_canaries(const char *instance, bool is_full)
{
    struct flock flock = { .count = 0 };
    unsigned early;

    find_family(instance, &flock);
    while (is_full && add_canary(&flock))
        ;
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", instance), AGENTD_CODE_OK);
    while (hft_keeper_tree(k, instance)->state != AGENTD_STATE_ENDED) {
        (void)add_canary(&flock);
        (void)hft_keeper_take(k, 0);
    }
    early = flock.reused;
    hft_wait_or_fail(is_reused, &flock, LONG_MS, "canaries with the numbers of all of them");
    for (unsigned i = 0; i < flock.count; i++) {
        expect_untouched(flock.list[i]);
        end_canary(flock.list[i]);
    }
    return early;
}

START_TEST(nobody_else_is_killed)
{
    unsigned early = 0;
    char instance[16];

    if (!hft_keeper_begin(k, _i))
        return;
    for (int life = 0; life < LIVES; life++) {
        bool is_full = life % 2 != 0;

        (void)snprintf(instance, sizeof instance, "n%d", life);
        (void)hft_keeper_run(k, "a", instance, is_full ? STILL : CHURN);
        hft_keeper_wait_file(k, "made");
        early += kill_among_canaries(instance, is_full);
        remove_file("made");
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", instance), AGENTD_CODE_OK);
        k->tree_count = 0;
        hft_keeper_extend(k, 60000);
    }
    printf("mode %d: %u numbers were used again at once\n", _i, early);
    ck_assert_uint_gt(early, 0);
    hft_keeper_done(k);
}
END_TEST

/* One of those that stand still is killed, and another has its number: it stands for a reason
 * of its own. */
START_TEST(nobody_else_is_continued)
{
    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1",
                         "(setsid sh -c 'echo $$ > $D/orphan; exec sleep 1000' &); sleep 1000");
    hft_keeper_wait_file(k, "orphan");
    pid_t orphan = (pid_t)hft_keeper_number(k, "orphan");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    ck_assert_int_eq(kill(orphan, SIGKILL), 0);
    pid_t canary = make_canary_at(orphan, true);
    hft_wait_or_fail(is_stopped, &canary, LONG_MS, "the canary to lie down");
    ck_assert_int_eq(waitpid(canary, NULL, WUNTRACED), canary);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    expect_untouched(canary);
    ck_assert_int_eq(hft_process_state(canary), 'T');
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    expect_untouched(canary);
    end_canary(canary);
    hft_keeper_done(k);
}
END_TEST

static bool is_recorded(void *arg)
{
    (void)arg;
    return hft_keeper_has_file(k, "state/run/i1");
}

/* What a keeper left behind is known by number and start: the next one looks at both. */
START_TEST(the_next_keeper_ends_nobody_else)
{
    if (!hft_keeper_begin(k, _i))
        return;
    pid_t pid = hft_keeper_run(k, "a", "i1", "exec sleep 1000")->pid;
    hft_wait_or_fail(is_recorded, NULL, LONG_MS, "its record");
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
    (void)hft_process_reap(k->pid, LONG_MS);
    hft_process_wait_gone(pid);
    pid_t canary = make_canary_at(pid, false);
    hft_keeper_start(k);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_ne(a->exit.causes & AGENTD_CAUSE_ABANDONED, 0);
    ck_assert_int_eq(a->pid, pid);
    expect_untouched(canary);
    end_canary(canary);
    hft_keeper_done(k);
}
END_TEST

static uint64_t start_of(pid_t pid)
{
    char path[32], text[512] = "";
    unsigned long long start = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(text, sizeof text, file));
    (void)fclose(file);
    ck_assert_int_eq(sscanf(strrchr(text, ')') + 2,
                            "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
                            "%*d %*d %*d %llu",
                            &start),
                     1);
    return start;
}

static bool is_a_tick_later(void *arg)
{
    pid_t canary = make_canary(false);
    uint64_t start = start_of(canary);

    end_canary(canary);
    return start > *(const uint64_t *)arg;
}

START_TEST(nobody_else_is_described)
{
    struct link_proc proc = { 0 };
    pid_t first = make_canary(false);
    uint64_t start = start_of(first);

    ck_assert(link_proc_read(first, start, true, hft_now(), &proc));
    ck_assert(link_proc_is(first, start));
    end_canary(first);
    ck_assert(!link_proc_read(first, start, true, hft_now(), &proc));
    hft_wait_or_fail(is_a_tick_later, &start, LONG_MS, "another time");
    pid_t second = make_canary_at(first, false);
    ck_assert(!link_proc_read(second, start, true, hft_now(), &proc));
    ck_assert(!link_proc_is(second, start));
    ck_assert(link_proc_is(second, start_of(second)));
    end_canary(second);
}
END_TEST

/* Linux has a limit of its own for each namespace since 6.14. Before that, who sets it in one
 * takes the numbers away from the whole machine. */
static bool has_own_limits(void)
{
    struct utsname system;
    int major = 0, minor = 0;

    return uname(&system) == 0 && sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 14));
}

/* In a namespace of its own, whose first process waits for whoever is left to it. */
static int run_inside(const char *self)
{
    static const char SCRIPT[] = "echo " PID_MAX " > /proc/sys/kernel/pid_max || exit 77\n"
                                 "i=0; while [ $i -lt 400 ]; do /bin/true; i=$((i+1)); done\n"
                                 "HFT_INSIDE=1 \"$0\"; exit $?\n";

    if (!has_own_limits()) {
        printf("skipped: a namespace with few numbers of its own needs Linux 6.14\n");
        return SKIPPED;
    }
    if (geteuid() == 0)
        (void)execlp("unshare", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                     "sh", "-c", SCRIPT, self, NULL);
    printf("skipped: a pid namespace needs root and unshare(1)\n");
    return SKIPPED;
}

int main(int argc, char **argv)
{
    TCase *t = tcase_create("reuse");

    (void)argc;
    if (getenv("HFT_INSIDE") == NULL)
        return run_inside(argv[0]);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, nobody_else_is_killed, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, nobody_else_is_continued, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, the_next_keeper_ends_nobody_else, 0, HFT_KEEPER_MODES);
    tcase_add_test(t, nobody_else_is_described);
    return hft_suite_run("keeper: reuse", t, NULL);
}
