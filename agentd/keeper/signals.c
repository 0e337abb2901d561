/* signals.c - what becomes of the signals that agentd gets.
 *
 * None but SIGKILL and SIGSTOP ends or stops the keeper: whoever cannot wait for the fence any
 * more would leave the agents to themselves. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* For the link, which says what follows; and for those agents that get what agentd gets. */
static const int TOLD[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR2 };
static const int PASSED[] = { SIGHUP, SIGUSR1, SIGQUIT, SIGWINCH, SIGCONT };

static bool is_among(int signal, const int *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == signal)
            return true;
    }
    return false;
}

/* What is wrong with ourselves is not to be ignored. */
static bool is_fault(int signal)
{
    static const int FAULTS[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS };

    return is_among(signal, FAULTS, COUNT(FAULTS));
}

int keeper_signals_open(struct keeper *k)
{
    sigset_t set;

    (void)signal(SIGCHLD, SIG_DFL); /* ignored, it would take every status with it */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    for (int number = 1; number <= SIGRTMAX; number++) {
        if (is_among(number, TOLD, COUNT(TOLD)) || is_among(number, PASSED, COUNT(PASSED)))
            (void)sigaddset(&set, number);
        else if (number != SIGCHLD && !is_fault(number))
            (void)signal(number, SIG_IGN); /* SIGTSTP, too: Ctrl-Z would stop us alone */
    }
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (k->signal_fd < 0)
        return -errno;
    keeper_watch(k, k->signal_fd, WATCH_SIGNAL, 0);
    return 0;
}

/* Not before its program has begun, which could not be ready for it; and nobody is woken whom
 * the fence, or the link, has stopped. */
static void pass_on(struct keeper *k, int number)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        const struct keeper_slot *s = k->slots[i];

        if ((s->flags & AGENTD_SPAWN_PASS_SIGNALS) != 0 && s->a.begun_ns != 0 &&
            !s->main_gone && s->pidfd >= 0 && (number != SIGCONT || s->goal == GOAL_RUN))
            (void)syscall(SYS_pidfd_send_signal, s->pidfd, number, NULL, 0);
    }
}

static void tell(struct keeper *k, int number)
{
    int64_t patience = number == SIGUSR2 ? AGENTD_UPGRADE_MS : AGENTD_ANSWER_MS;

    k->signals |= UINT64_C(1) << number;
    if (k->link_ready) /* it may hang, and would never hear of it */
        keeper_link_ask(k, keeper_now() + patience * KEEPER_MS);
    if (number != SIGTERM && number != SIGINT)
        return;
    k->stop_signal = number;
    if (++k->stop_signals == 3) {
        keeper_shutdown(k, 128 + number, 0);
        k->stop_until = 0; /* whatever the link still wanted */
    }
}

void keeper_signals_read(struct keeper *k)
{
    struct signalfd_siginfo info;

    while (read(k->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int number = (int)info.ssi_signo;

        if (is_among(number, PASSED, COUNT(PASSED)))
            pass_on(k, number);
        if (is_among(number, TOLD, COUNT(TOLD)))
            tell(k, number);
    }
}
