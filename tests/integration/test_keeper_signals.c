/* What becomes of the signals that agentd gets, with real processes. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/keeper.h"
#include "support/suite.h"
#include "support/wait.h"

#define LONG_MS      30000
#define COUNT(list)  (sizeof(list) / sizeof(list)[0])
#define TRAP(signal) "trap 'echo 1 > $D/" #signal "' " #signal "; "

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

static const struct {
    int number;
    const char *name;
} PASSED[] = {
    { SIGHUP, "HUP" },     { SIGUSR1, "USR1" }, { SIGQUIT, "QUIT" },
    { SIGWINCH, "WINCH" }, { SIGCONT, "CONT" },
};

/* An agent that notes every signal that it gets. */
static void run_noting(uint32_t flags)
{
    ck_assert_uint_eq(
        hft_keeper_spawn(k,
                         &(struct hft_keeper_spawn){
                             .agent = "a",
                             .instance = "i1",
                             .flags = flags,
                             .script = TRAP(HUP) TRAP(USR1) TRAP(QUIT) TRAP(WINCH) TRAP(CONT)
                                 TRAP(USR2) "echo 1 > $D/begun; while :; do sleep 0.01; "
                                            "done" }),
        AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    hft_keeper_wait_file(k, "begun");
}

static uint64_t pending_of(pid_t pid)
{
    char path[64], text[4096] = "";
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    (void)close(fd);
    const char *line = strstr(text, "ShdPnd:");
    ck_assert_ptr_nonnull(line);
    return strtoull(line + strlen("ShdPnd:"), NULL, 16);
}

static bool has_taken_all(void *arg)
{
    (void)arg;
    return pending_of(k->hello.keeper_pid) == 0;
}

/* A request lets it look. */
static struct agentd_agent *let_fence_fall(void)
{
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    return hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
}

/* The keeper has taken it, and done what it does about it. */
static void signal_keeper(int number)
{
    ck_assert_int_eq(kill(k->hello.keeper_pid, number), 0);
    hft_wait_or_fail(has_taken_all, NULL, LONG_MS, "the keeper to take a signal");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
}

START_TEST(an_agent_gets_the_signals_that_it_is_to_get)
{
    if (!hft_keeper_begin(k, _i))
        return;
    run_noting(AGENTD_SPAWN_PASS_SIGNALS);
    for (size_t i = 0; i < COUNT(PASSED); i++) {
        signal_keeper(PASSED[i].number);
        hft_keeper_wait_file(k, PASSED[i].name);
    }
    signal_keeper(SIGUSR2); /* is agentd's own */
    ck_assert_int_eq(k->signal, SIGUSR2);
    ck_assert(!hft_keeper_has_file(k, "USR2"));
    hft_keeper_done(k);
}
END_TEST

/* Ctrl-Z would stop the keeper alone, and nobody would let the fence fall. */
START_TEST(no_signal_but_those_of_the_link_touches_agentd_or_its_agents)
{
    static const int FAULTS[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };

    if (!hft_keeper_begin(k, _i))
        return;
    run_noting(0);
    for (int number = 1; number <= SIGRTMAX; number++) {
        bool spared = number == SIGKILL || number == SIGSTOP || number == SIGTERM ||
                      number == SIGINT || (number > 31 && number < SIGRTMIN);

        for (size_t i = 0; i < COUNT(FAULTS); i++)
            spared |= number == FAULTS[i];
        if (!spared)
            signal_keeper(number);
    }
    ck_assert_int_ne(hft_process_state(k->hello.keeper_pid), 'T');
    for (size_t i = 0; i < COUNT(PASSED); i++)
        ck_assert(!hft_keeper_has_file(k, PASSED[i].name));
    (void)let_fence_fall();
    hft_keeper_done(k);
}
END_TEST

START_TEST(nobody_who_stands_still_is_woken)
{
    struct agentd_agent *a;

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    run_noting(AGENTD_SPAWN_PASS_SIGNALS);
    a = let_fence_fall();
    signal_keeper(SIGCONT);
    /* A shell whose child was stopped between vfork and exec waits for that one. */
    ck_assert_ptr_nonnull(strchr("TD", hft_process_state(a->pid)));
    ck_assert(!hft_keeper_has_file(k, "CONT"));
    hft_keeper_done(k);
}
END_TEST

/* Whoever starts agentd may leave it that, through an exec; the kernel would reap its children.
 */
START_TEST(ends_are_seen_by_a_keeper_that_inherited_an_ignored_sigchld)
{
    struct agentd_agent *a;

    if (!hft_keeper_can((enum hft_keeper_mode)_i))
        return;
    hft_keeper_init(k, (enum hft_keeper_mode)_i);
    (void)signal(SIGCHLD, SIG_IGN);
    hft_keeper_start(k);
    (void)signal(SIGCHLD, SIG_DFL);
    hft_keeper_extend(k, 60000);
    (void)hft_keeper_run(k, "a", "i1", "exit 7");
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_uint_eq(a->exit.causes, 0);
    ck_assert_int_eq(WEXITSTATUS(a->exit.wait_status), 7);
    hft_keeper_done(k);
}
END_TEST

/* The link that was told to stop may die before it has. */
START_TEST(the_next_link_is_told_to_stop_as_well)
{
    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    ck_assert_int_eq(kill(k->hello.keeper_pid, SIGINT), 0);
    while (k->signal != SIGINT)
        ck_assert(hft_keeper_take(k, LONG_MS));
    k->signal = 0;
    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    hft_keeper_accept(k);
    while (k->signal != SIGINT)
        ck_assert(hft_keeper_take(k, LONG_MS));
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("signals");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_agent_gets_the_signals_that_it_is_to_get, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, no_signal_but_those_of_the_link_touches_agentd_or_its_agents, 0,
                        HFT_KEEPER_MODES);
    tcase_add_test(t, nobody_who_stands_still_is_woken);
    tcase_add_loop_test(t, ends_are_seen_by_a_keeper_that_inherited_an_ignored_sigchld, 0,
                        HFT_KEEPER_MODES);
    tcase_add_test(t, the_next_link_is_told_to_stop_as_well);
    return hft_suite_run("keeper: signals", t, NULL);
}
