/* What a keeper does for its links and with them, one after the other. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/keeper.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/wait.h"

#define LONG_MS 30000
#define LATE_MS                                                                                \
    1000 /* for the keeper to see that a time has come, and to start another link              \
          */

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

static void replace_link(void)
{
    k->held[0] = '\0';
    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    hft_keeper_accept(k);
}

START_TEST(a_socket_that_is_held_outlives_every_link)
{
    int pair[2];
    char word[8] = "";

    if (!hft_keeper_begin(k, _i))
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", pair[1]), AGENTD_CODE_OK);
    (void)close(pair[1]);
    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    ck_assert_int_eq(send(pair[0], "word", 5, MSG_NOSIGNAL), 5);
    hft_keeper_accept(k);
    ck_assert_str_eq(k->held, "a");
    ck_assert_int_eq(recv(k->held_fd, word, sizeof word, MSG_DONTWAIT), 5);
    ck_assert_str_eq(word, "word");
    replace_link();
    ck_assert_str_eq(k->held, "a");
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_LET, "a", -1), AGENTD_CODE_OK);
    replace_link();
    ck_assert_str_eq(k->held, "");
    (void)close(k->held_fd);
    k->held_fd = -1;
    ck_assert_int_eq(send(pair[0], "word", 5, MSG_NOSIGNAL), -1); /* nobody has it any more */
    (void)close(pair[0]);
    hft_keeper_done(k);
}
END_TEST

/* Another one for the same agent takes its place. */
START_TEST(only_sockets_are_held)
{
    int pair[2], pipes[2];

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", -1), AGENTD_CODE_MALFORMED);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", pipes[0]), AGENTD_CODE_MALFORMED);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "../a", pair[0]), AGENTD_CODE_MALFORMED);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_LET, "nobody", pair[0]), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", pair[0]), AGENTD_CODE_OK);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", pair[1]), AGENTD_CODE_OK);
    (void)close(pair[0]);
    /* Nothing that was refused or replaced is kept: the other end notices. */
    ck_assert_int_eq(send(pair[1], "word", 5, MSG_NOSIGNAL), -1);
    (void)close(pair[1]);
    (void)close(pipes[0]);
    ck_assert_int_eq(fcntl(pipes[1], F_SETFL, O_NONBLOCK), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(write(pipes[1], "x", 1), -1);
    ck_assert_int_eq(errno, EPIPE);
    (void)close(pipes[1]);
    hft_keeper_done(k);
}
END_TEST

static bool is_taken(void *arg)
{
    return send(*(const int *)arg, "word", 5, MSG_NOSIGNAL | MSG_DONTWAIT) == 5;
}

/* Whoever feeds its watchdog must not hang in that because no link comes. */
START_TEST(who_sends_does_not_wait_for_a_link_for_ever)
{
    int pair[2];

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_uint_eq(hft_keeper_hold(k, AGENTD_HOLD, "a", pair[1]), AGENTD_CODE_OK);
    (void)close(pair[1]);
    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    while (is_taken(&pair[0]))
        ;
    ck_assert_int_eq(errno, EAGAIN);
    hft_wait_or_fail(is_taken, &pair[0], LONG_MS, "room for another word");
    hft_keeper_accept(k);
    (void)close(pair[0]);
    hft_keeper_done(k);
}
END_TEST

static void signal_keeper(int number)
{
    ck_assert_int_eq(kill(k->hello.keeper_pid, number), 0);
}

/* `agentd upgrade` is what people try when agentd does not move. */
START_TEST(a_link_that_hangs_is_replaced_when_another_is_wanted)
{
    struct hft_ticker ticker;
    hf_ms began, took;
    pid_t agent, link;

    if (!hft_keeper_begin(k, _i))
        return;
    agent = hft_keeper_run(k, "a", "i1", "sleep 1000")->pid;
    link = k->link_pid;
    hft_ticker_start(&ticker);
    hft_keeper_pause_link(k);
    hft_ticker_mark(&ticker);
    began = hft_now();
    signal_keeper(SIGUSR2);
    hft_keeper_accept(k);
    took = hft_now() - began;
    ck_assert_int_ne(k->link_pid, link);
    ck_assert_int_ge(took, AGENTD_UPGRADE_MS);
    ck_assert_int_le(took, AGENTD_UPGRADE_MS + LATE_MS + hft_ticker_stall(&ticker));
    ck_assert_uint_eq(hft_keeper_tree(k, "i1")->state, AGENTD_STATE_RUNNING);
    ck_assert_int_eq(hft_keeper_tree(k, "i1")->pid, agent);
    hft_ticker_stop(&ticker);
    hft_keeper_done(k);
}
END_TEST

static void take_until(hf_ms moment)
{
    while (hft_now() < moment)
        (void)hft_keeper_take(k, moment - hft_now());
}

/* It may have its reasons to stay, such as a mistake in its files. */
START_TEST(a_link_that_answers_is_not_replaced_when_another_is_wanted)
{
    pid_t link;

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    link = k->link_pid;
    signal_keeper(SIGUSR2);
    while (k->asked == 0)
        ck_assert(hft_keeper_take(k, LONG_MS));
    ck_assert_int_eq(k->signal, SIGUSR2);
    take_until(hft_now() + AGENTD_UPGRADE_MS + LATE_MS);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_UNKNOWN);
    ck_assert(!hft_process_is_gone(link));
    hft_keeper_done(k);
}
END_TEST

/* Without etcd no deadline moves, whatever the link does: it is asked, and stays if it answers.
 */
START_TEST(a_link_that_is_silent_after_the_fence_is_asked_and_replaced)
{
    pid_t link;

    if (!hft_keeper_begin(k, HFT_KEEPER_SHIM))
        return;
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    link = k->link_pid;
    hft_keeper_extend(k, -1);
    while (k->asked == 0)
        ck_assert(hft_keeper_take(k, 2 * LONG_MS));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    k->is_mute = true;
    while (hft_keeper_take(k, 2 * LONG_MS))
        ;
    ck_assert_uint_eq(k->asked, 2);
    hft_process_wait_gone(link);
    k->is_mute = false;
    hft_keeper_accept(k);
    ck_assert_uint_eq(hft_keeper_tree(k, "i1")->state, AGENTD_STATE_FROZEN);
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *links = tcase_create("links"), *hanging = tcase_create("hanging");
    TCase *silent = tcase_create("silent");

    tcase_set_timeout(links, 240);
    tcase_set_timeout(hanging, 240);
    tcase_set_timeout(silent, 240);
    tcase_add_loop_test(hanging, a_link_that_hangs_is_replaced_when_another_is_wanted, 0,
                        HFT_KEEPER_MODES);
    tcase_add_test(silent, a_link_that_is_silent_after_the_fence_is_asked_and_replaced);
    tcase_add_test(links, a_link_that_answers_is_not_replaced_when_another_is_wanted);
    tcase_add_loop_test(links, a_socket_that_is_held_outlives_every_link, 0, HFT_KEEPER_MODES);
    tcase_add_test(links, only_sockets_are_held);
    tcase_add_test(links, who_sends_does_not_wait_for_a_link_for_ever);
    return hft_suite_run("keeper: links", links, hanging, silent, NULL);
}
