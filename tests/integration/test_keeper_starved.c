/* A keeper that cannot open a file any more: it cannot see, so it says nothing of anybody that
 * it does not know, and goes on when it can. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/wait.h"

#define LONG_MS 30000

enum { ENOUGH = 256 }; /* files */

/* Grows as long as somebody runs. */
#define COUNT(file) "n=0; while :; do n=$((n+1)); echo $n >> $D/" file "; done"

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

/* By a process of the same user: not every root may set the limits of others. */
static void allow(int files)
{
    char pid[32], limit[32];
    const char *const argv[] = { "prlimit", pid, limit, NULL };

    (void)snprintf(pid, sizeof pid, "--pid=%d", (int)k->hello.keeper_pid);
    (void)snprintf(limit, sizeof limit, "--nofile=%d:", files);
    ck_assert_int_eq(
        hft_process_reap(hft_process_spawn(&(struct hft_spawn){
                             .argv = argv, .as_nobody = k->mode == HFT_KEEPER_NOBODY }),
                         LONG_MS),
        0);
}

static void starve(bool is_starved)
{
    allow(is_starved ? 3 : ENOUGH);
}

/* What the keeper says of it after it had time to take a step. */
static enum agentd_state state_after_a_step(void)
{
    for (int i = 0; i < 2; i++)
        (void)hft_keeper_order(k, AGENTD_FORGET, "a", "i1");
    return (enum agentd_state)hft_keeper_tree(k, "i1")->state;
}

static long size_of(const char *file)
{
    char path[HFT_PATH_MAX + 16];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, file);
    return stat(path, &st) == 0 ? (long)st.st_size : 0;
}

static bool has_grown(void *arg)
{
    return size_of("one") > *(const long *)arg;
}

static bool does_grow(void)
{
    long size = size_of("one");

    return hft_wait(has_grown, &size, LONG_MS);
}

START_TEST(nobody_is_called_frozen_or_running_who_is_not)
{
    long size;

    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", COUNT("one"));
    starve(true);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FREEZING);
    ck_assert_uint_eq(state_after_a_step(), AGENTD_STATE_FREEZING);
    ck_assert(does_grow());
    starve(false);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    size = size_of("one");
    starve(true);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_THAWING);
    ck_assert_uint_eq(state_after_a_step(), AGENTD_STATE_THAWING);
    ck_assert_int_eq(size_of("one"), size);
    starve(false);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert(does_grow());
    hft_keeper_done(k);
}
END_TEST

START_TEST(nobody_has_ended_whose_children_have_not)
{
    pid_t child, pid;

    if (!hft_keeper_begin(k, _i))
        return;
    pid = hft_keeper_run(k, "a", "i1",
                         "(setsid sh -c 'echo $$ > $D/child; exec sleep 1000' &); sleep 1000")
              ->pid;
    hft_keeper_wait_file(k, "child");
    child = (pid_t)hft_keeper_number(k, "child");
    starve(true);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDING);
    ck_assert_uint_eq(state_after_a_step(), AGENTD_STATE_ENDING);
    ck_assert(!hft_process_is_gone(child));
    starve(false);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(hft_process_is_gone(child));
    hft_keeper_done(k);
}
END_TEST

/* It looks at who stands once a second, and then finds nobody; as soon as it can, it looks
 * again.
 */
START_TEST(who_was_stopped_is_continued_by_a_keeper_that_lost_sight_of_it)
{
    enum { LOOKS_MS = 1500, LOOK_MS = 100 };

    if (!hft_keeper_begin(k, _i))
        return;
    (void)hft_keeper_run(k, "a", "i1", COUNT("one"));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    starve(true);
    hft_pass_until(hft_now() + LOOKS_MS);
    starve(false);
    hft_pass_until(hft_now() + LOOK_MS);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert(does_grow());
    hft_keeper_done(k);
}
END_TEST

/* Neither agents nor sockets are taken that would leave it blind: both are refused before. */
START_TEST(a_keeper_that_is_full_still_sees)
{
    enum { FILES = 100, CROWD = 60 };
    char agent[16], instance[16];
    int count = 0, pair[2];
    uint32_t code = AGENTD_CODE_OK;

    if (!hft_keeper_begin(k, _i))
        return;
    allow(FILES);
    for (; count < CROWD && code == AGENTD_CODE_OK; count++) {
        (void)snprintf(agent, sizeof agent, "a%d", count);
        (void)snprintf(instance, sizeof instance, "i%d", count);
        code = hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = agent,
                                                               .instance = instance,
                                                               .script = "exec sleep 1000" });
        if (code != AGENTD_CODE_OK)
            break;
        (void)hft_keeper_wait(k, instance, AGENTD_STATE_HELD);
        ck_assert_uint_eq(hft_keeper_release(k, agent, instance), AGENTD_CODE_OK);
        (void)hft_keeper_wait(k, instance, AGENTD_STATE_RUNNING);
    }
    ck_assert_uint_eq(code, AGENTD_CODE_SYSTEM);
    ck_assert_int_gt(count, 1);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    for (int i = 0; i < FILES; i++) {
        (void)snprintf(agent, sizeof agent, "s%d", i);
        code = hft_keeper_hold(k, AGENTD_HOLD, agent, pair[0]);
    }
    ck_assert_uint_ne(code, AGENTD_CODE_OK);
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a0", "i0"), AGENTD_CODE_STATE);
    for (int i = 0; i < count; i++) {
        (void)snprintf(instance, sizeof instance, "i%d", i);
        (void)hft_keeper_wait(k, instance, AGENTD_STATE_FROZEN);
    }
    allow(ENOUGH);
    (void)close(pair[0]);
    (void)close(pair[1]);
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("starved");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, nobody_is_called_frozen_or_running_who_is_not, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, who_was_stopped_is_continued_by_a_keeper_that_lost_sight_of_it, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(t, a_keeper_that_is_full_still_sees, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, nobody_has_ended_whose_children_have_not, 0, HFT_KEEPER_MODES);
    return hft_suite_run("keeper: starved", t, NULL);
}
