#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

/* Reaps; tells the keeper about the first process; ends with the last child. */
static void reap(int keeper_fd, pid_t main_pid)
{
    struct keeper_shim_news news = { .gone = 1 };
    pid_t pid;

    while ((pid = wait4(-1, &news.status, WNOHANG, &news.rusage)) > 0) {
        news.pid = pid;
        if (pid == main_pid)
            (void)send(keeper_fd, &news, sizeof news, MSG_NOSIGNAL);
    }
    if (pid < 0 && errno == ECHILD)
        _exit(0);
}

/* The keeper is gone, and nobody else knows what this agent started. */
_Noreturn static void end_all(struct keeper_scan *scan)
{
    for (;;) {
        (void)keeper_tree_kill_below(scan, getpid());
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            _exit(0);
        (void)poll(NULL, 0, 1);
    }
}

static void settle_down(int keeper_fd)
{
    int null_fd = open("/dev/null", O_RDWR);

    for (int fd = 0; fd < 3 && null_fd >= 0; fd++)
        (void)dup2(null_fd, fd);
    keeper_keep_only(&keeper_fd, 1);
}

_Noreturn void keeper_shim_main(int keeper_fd, struct keeper_plan *plan)
{
    struct keeper_shim_news news = { 0 };
    struct keeper_scan scan = { 0 };
    sigset_t all;

    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    (void)setsid();
    (void)prctl(PR_SET_NAME, "agentd-shim");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        _exit(1);
    plan->parent = getpid();
    news.pid = fork();
    if (news.pid == 0)
        keeper_child_main(plan);
    news.error = news.pid < 0 ? errno : 0;
    settle_down(keeper_fd);
    (void)send(keeper_fd, &news, sizeof news, MSG_NOSIGNAL);

    int signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd fds[2] = { { .fd = keeper_fd, .events = POLLIN },
                                 { .fd = signal_fd, .events = POLLIN } };
        struct signalfd_siginfo info;

        reap(keeper_fd, news.pid);
        (void)poll(fds, 2, -1);
        if (fds[0].revents != 0)
            end_all(&scan);
        while (read(signal_fd, &info, sizeof info) > 0)
            ;
    }
}

static void made(struct keeper *k, struct keeper_slot *s, const struct keeper_shim_news *news)
{
    struct keeper_process process;

    if (news->error != 0) {
        s->a.exit.causes |= AGENTD_CAUSE_NOT_MADE;
        s->a.exit.error = news->error;
        (void)snprintf(s->a.exit.evidence, sizeof s->a.exit.evidence, "could not be made: %s",
                       strerrordesc_np(news->error));
        keeper_slot_main_gone(k, s, NULL, NULL);
        return;
    }
    s->a.pid = news->pid;
    s->pidfd = (int)syscall(SYS_pidfd_open, news->pid, 0);
    /* The shim has not told its end, so it is still that process, or a zombie. */
    if (keeper_read_stat(news->pid, &process) && process.ppid == s->shim)
        s->a.start_time = process.start_time;
    if (s->a.state == AGENTD_STATE_MAKING)
        keeper_slot_changed(s, AGENTD_STATE_HELD);
}

void keeper_on_shim(struct keeper *k, struct keeper_slot *s)
{
    struct keeper_shim_news news;

    while (s->shim_fd >= 0) {
        ssize_t len = recv(s->shim_fd, &news, sizeof news, MSG_DONTWAIT);

        if (len < 0 && errno == EAGAIN)
            return;
        if (len != (ssize_t)sizeof news) {
            keeper_close(&s->shim_fd); /* its end follows as a SIGCHLD */
            return;
        }
        if (news.gone == 0)
            made(k, s, &news);
        else if (news.pid == s->a.pid)
            keeper_slot_main_gone(k, s, &news.status, &news.rusage);
    }
}
