/* The life of one process under a keeper, with real processes: each case in a cgroup, behind a
 * shim, and as nobody. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
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

START_TEST(held_until_released_and_its_end_is_told)
{
    if (!hft_keeper_begin(k, _i))
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
    ck_assert(!hft_keeper_has_file(k, "begun"));
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(hft_keeper_has_file(k, "begun"));
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
    hft_keeper_done(k);
}
END_TEST

/* Some machines let nobody, and nobody may anywhere. */
static bool can_go_first(void)
{
    bool can = sched_setscheduler(0, SCHED_RR, &(struct sched_param){ 1 }) == 0;

    (void)sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){ 0 });
    return can && (k->hello.flags & AGENTD_HAS_ROOT) != 0;
}

START_TEST(the_keeper_goes_first_and_its_agents_do_not)
{
    struct agentd_agent *a;

    if (!hft_keeper_begin(k, _i))
        return;
    ck_assert_uint_eq(
        hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "a",
                                                        .instance = "i1",
                                                        .script = "exec sleep 60" }),
        AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert_int_eq(sched_getscheduler(k->hello.keeper_pid),
                     can_go_first() ? SCHED_RR | SCHED_RESET_ON_FORK : SCHED_OTHER);
    ck_assert_int_eq(sched_getscheduler(a->pid), SCHED_OTHER);
    ck_assert_int_eq(getpriority(PRIO_PROCESS, (id_t)a->pid), getpriority(PRIO_PROCESS, 0));
    hft_keeper_done(k);
}
END_TEST

/* As everybody may read it. */
static unsigned long files_of(pid_t pid)
{
    char path[64], line[256];
    unsigned long soft = 0;
    FILE *in;

    (void)snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    in = fopen(path, "re");
    ck_assert_ptr_nonnull(in);
    while (soft == 0 && fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, "Max open files", 14) == 0)
            soft = strtoul(line + 14, NULL, 10);
    }
    (void)fclose(in);
    return soft;
}

/* One who has hundreds of agents needs more files than a program usually may open. */
START_TEST(the_keeper_may_open_many_files_and_its_agents_as_many_as_before)
{
    struct rlimit files;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = 500;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1",
                         "ulimit -Sn > $D/soft; ulimit -Hn > $D/hard; echo 1 > $D/done; "
                         "sleep 1000");
    hft_keeper_wait_file(k, "done");
    ck_assert_int_eq(hft_keeper_number(k, "soft"), 500);
    ck_assert_int_eq(hft_keeper_number(k, "hard"), (long)files.rlim_max);
    ck_assert_uint_eq(files_of(k->pid), files.rlim_max);
    hft_keeper_done(k);
}
END_TEST

START_TEST(discarded_never_begins)
{
    if (!hft_keeper_begin(k, _i))
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
    ck_assert(!hft_keeper_has_file(k, "begun"));
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_STATE);
    hft_keeper_done(k);
}
END_TEST

/* The next one is asked for in the same breath. */
START_TEST(discarded_is_in_nobodys_way)
{
    struct hft_keeper_spawn spawn = { .agent = "a", .instance = "i1", .script = "exit 0" };

    if (!hft_keeper_begin(k, _i))
        return;
    ck_assert_uint_eq(hft_keeper_spawn(k, &spawn), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_DISCARD, "a", "i1"), AGENTD_CODE_OK);
    spawn.instance = "i2";
    ck_assert_uint_eq(hft_keeper_spawn(k, &spawn), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i2", AGENTD_STATE_HELD);
    spawn.instance = "i3"; /* which may be released */
    ck_assert_uint_eq(hft_keeper_spawn(k, &spawn), AGENTD_CODE_EXISTS);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    hft_keeper_done(k);
}
END_TEST

START_TEST(what_cannot_be_executed_says_why)
{
    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
}
END_TEST

START_TEST(death_by_signal_is_told)
{
    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", "kill -SEGV $$");
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(WIFSIGNALED(a->exit.wait_status));
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGSEGV);
    hft_keeper_done(k);
}
END_TEST

START_TEST(nothing_of_the_keeper_is_inherited)
{
    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
}
END_TEST

START_TEST(end_asks_first)
{
    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
}
END_TEST

START_TEST(one_process_per_agent)
{
    const struct hft_keeper_spawn again = { .agent = "a",
                                            .instance = "i2",
                                            .script = "exit 0" };

    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
}
END_TEST

START_TEST(user_is_taken_on)
{
    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
}
END_TEST

START_TEST(second_keeper_is_turned_away)
{
    char want[64];

    if (!hft_keeper_begin(k, _i))
        return;
    const char *const argv[] = { HOLDFAST_AGENTD, "run", "--name", "x", "--state-dir",
                                 k->state,        "--",  "true",   NULL };
    HFT_CLEANUP_OUTPUT struct hft_output out;
    hft_process_run(argv, hft_sanitizer_env(), &out);
    ck_assert_int_eq(out.status, 1);
    (void)snprintf(want, sizeof want, "another agentd (pid %d) uses ",
                   (int)k->hello.keeper_pid);
    ck_assert_msg(strstr(out.err, want) != NULL, "%s", out.err);
    hft_keeper_done(k);
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

    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
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
    if (!hft_keeper_begin(k, _i))
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
    hft_keeper_done(k);
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

/* It has what was last said, and never less than before. */
START_TEST(who_needs_longer_to_end_is_given_it)
{
    struct hft_ticker ticker;
    hf_ms began, took;

    if (!hft_keeper_begin(k, _i))
        return;
    hft_ticker_start(&ticker);
    (void)hft_keeper_run(k, "a", "i1", "trap '' TERM; echo 1 > $D/begun; sleep 1000");
    hft_keeper_wait_file(k, "begun");
    ck_assert_uint_eq(hft_keeper_extend_grace(k, "a", "i1", 3000), AGENTD_CODE_STATE);
    hft_ticker_mark(&ticker);
    began = hft_now();
    ck_assert_uint_eq(hft_keeper_end(k, "a", "i1", 500), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_extend_grace(k, "a", "i1", 2000), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_extend_grace(k, "a", "i1", 10), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    took = hft_now() - began;
    ck_assert_int_ge(took, 2000);
    ck_assert_int_le(took, 2000 + 1000 + hft_ticker_stall(&ticker));
    ck_assert_uint_eq(hft_keeper_extend_grace(k, "a", "i1", 1000), AGENTD_CODE_STATE);
    hft_ticker_stop(&ticker);
    hft_keeper_done(k);
}
END_TEST

/* Nothing else happens meanwhile that could remind the keeper of it. */
START_TEST(who_is_frozen_while_it_is_to_end_has_no_more_time_than_before)
{
    enum { GRACE_MS = 500 };
    struct hft_ticker ticker;
    hf_ms began, took;

    if (!hft_keeper_begin(k, _i))
        return;
    hft_ticker_start(&ticker);
    (void)hft_keeper_run(k, "a", "i1", "trap '' TERM; echo 1 > $D/begun; sleep 1000");
    hft_keeper_wait_file(k, "begun");
    hft_ticker_mark(&ticker);
    began = hft_now();
    ck_assert_uint_eq(hft_keeper_end(k, "a", "i1", GRACE_MS), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    took = hft_now() - began;
    ck_assert_int_ge(took, GRACE_MS);
    ck_assert_int_le(took, GRACE_MS + 400 + hft_ticker_stall(&ticker));
    hft_ticker_stop(&ticker);
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *life = tcase_create("life");
    TCase *start = tcase_create("start");

    tcase_set_timeout(life, 60);
    tcase_set_timeout(start, 60);
    tcase_add_loop_test(life, held_until_released_and_its_end_is_told, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, the_keeper_goes_first_and_its_agents_do_not, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, the_keeper_may_open_many_files_and_its_agents_as_many_as_before,
                        0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, discarded_never_begins, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, discarded_is_in_nobodys_way, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, what_cannot_be_executed_says_why, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, death_by_signal_is_told, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, nothing_of_the_keeper_is_inherited, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, end_asks_first, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, who_needs_longer_to_end_is_given_it, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, who_is_frozen_while_it_is_to_end_has_no_more_time_than_before, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(life, one_process_per_agent, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, user_is_taken_on, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(life, output_is_bounded_and_one_flood_does_not_hold_up_others, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(life, keeper_is_small, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(start, second_keeper_is_turned_away, 0, HFT_KEEPER_MODES);
    tcase_add_test(start, commands_for_the_link_need_no_keeper);
    tcase_add_test(start, link_that_cannot_begin_ends_agentd_with_its_code);
    return hft_suite_run("keeper: life", life, start, NULL);
}
