/* main.c - agentd: begins, and turns the loop. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"
#include "agentd/keeper/place.h"

#define FORGET_GRACE                                                                           \
    (3 * KEEPER_SECOND)  /* after the last end, for a link that is shutting down */
#define REAP_MAX     256 /* dead of an agent that forks and forks, until we look at the fence */
#define OOM_SCORE    (-900)
#define STRAY_ROUNDS 100

void keeper_watch(struct keeper *k, int fd, uint32_t kind, uint32_t key)
{
    struct epoll_event event = { .events = EPOLLIN, .data.u64 = (uint64_t)kind << 32 | key };

    (void)epoll_ctl(k->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

/* Commands that start no agents, and questions. */
static bool is_for_link_alone(char **argv)
{
    static const char *const QUESTIONS[] = { "--help", "-h", "--version", "--config-dump" };

    if (argv[1] == NULL || (argv[1][0] != '-' && strcmp(argv[1], "run") != 0))
        return true;
    for (char **arg = argv + 1; *arg != NULL && strcmp(*arg, "--") != 0; arg++) {
        for (size_t i = 0; i < sizeof QUESTIONS / sizeof QUESTIONS[0]; i++) {
            if (strcmp(*arg, QUESTIONS[i]) == 0)
                return true;
        }
    }
    return false;
}

/* Standard descriptors that are closed would be taken by what we open next. */
static void fill_stdio(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        (void)close(fd);
}

/* The fence must fall in time, and a death be seen, however busy the machine is. What the
 * keeper does is short, and whoever it makes is as urgent as the keeper was before; where we
 * may not, it takes its turn as everybody does. */
static void take_precedence(struct keeper *k)
{
    const struct sched_param first = { .sched_priority = 1 };

    k->nice = getpriority(PRIO_PROCESS, 0);
    (void)sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first);
}

/* Each agent takes some descriptors of the keeper and of the link: as many as we may have, not
 * the few that are customary, which are for programs that use select. */
static void allow_many_files(struct keeper *k)
{
    struct rlimit all;

    if (getrlimit(RLIMIT_NOFILE, &k->files) < 0)
        k->files = (struct rlimit){ .rlim_cur = 1024, .rlim_max = 1024 };
    all = (struct rlimit){ .rlim_cur = k->files.rlim_max, .rlim_max = k->files.rlim_max };
    (void)setrlimit(RLIMIT_NOFILE, &all);
}

static void protect(struct keeper *k)
{
    char text[16];

    k->oom_score = INT32_MIN;
    if (keeper_read_at(AT_FDCWD, "/proc/self/oom_score_adj", text, sizeof text) > 0 &&
        strtol(text, NULL, 10) > OOM_SCORE) {
        int old = (int)strtol(text, NULL, 10);

        (void)snprintf(text, sizeof text, "%d", OOM_SCORE);
        if (keeper_write_at(AT_FDCWD, "/proc/self/oom_score_adj", text) == 0)
            k->oom_score = old;
    }
#ifndef __SANITIZE_ADDRESS__
    /* Nobody of our user reads the environment or the memory of the keeper. */
    (void)prctl(PR_SET_DUMPABLE, 0);
    if (mlockall(MCL_CURRENT | MCL_FUTURE) == 0)
        k->flags |= AGENTD_HAS_LOCKED;
    else
        keeper_log("warn", "event=not_locked why=\"%s\"", strerrordesc_np(errno));
#endif
    if (geteuid() == 0)
        k->flags |= AGENTD_HAS_ROOT;
    k->flags |= AGENTD_HAS_TELL;
    take_precedence(k);
}

/* Whoever is our child already, of whoever became us, is told from those that we make by when
 * it began, and the kernel counts hundredths of a second. */
static void let_time_pass(void)
{
    siginfo_t info;

    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
        (void)usleep(20000);
}

static int begin(struct keeper *k)
{
    struct keeper_process first;
    int rc = 0;

    allow_many_files(k);
    k->in = malloc(AGENTD_MESSAGE_MAX);
    k->out = malloc(sizeof *k->out);
    k->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->in == NULL || k->out == NULL || k->epoll_fd < 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return -ENOMEM;
    if ((rc = keeper_signals_open(k)) < 0 || (rc = keeper_fence_init(k)) < 0)
        return rc;
    k->kept_fd = memfd_create("holdfast-settings", MFD_CLOEXEC);
    keeper_oom_init(k);
    keeper_state_recover(k);
    keeper_cgroup_init(k);
    protect(k);
    let_time_pass();
    if ((rc = keeper_scribe_start(k)) < 0)
        return rc;
    if (keeper_read_stat(k->scribe, &first))
        k->born = first.start_time;
    keeper_log("info", "event=kept state_dir=%s trees=%s", k->state_dir,
               k->cgroup_fd >= 0 ? "cgroup" : "shim");
    return keeper_link_start(k);
}

static void reaped(struct keeper *k, pid_t pid, int status, const struct rusage *ru)
{
    if (pid == k->link) {
        keeper_link_ended(k, status);
        return;
    }
    if (pid == k->scribe) {
        keeper_scribe_ended(k);
        return;
    }
    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (s->shim == pid && !s->shim_gone && s->a.state != AGENTD_STATE_ENDED) {
            keeper_on_shim(k, s); /* what it said last */
            s->shim_gone = true;
            keeper_slot_kill(k, s, 0);
        } else if (s->a.pid == pid && !s->main_gone) {
            keeper_slot_main_gone(k, s, &status, ru);
        }
    }
}

/* An agent can stop its shim, which then neither tells its end nor ends itself. */
static void continue_shim(const struct keeper *k, pid_t pid)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->shim == pid && !k->slots[i]->shim_gone)
            (void)kill(pid, SIGCONT); /* not reaped yet, so it is still that process */
    }
}

static void reap(struct keeper *k)
{
    struct rusage ru;
    int status;
    pid_t pid;

    for (int i = 0; (pid = wait4(-1, &status, WNOHANG | WUNTRACED, &ru)) > 0; i++) {
        if (WIFSTOPPED(status))
            continue_shim(k, pid);
        else
            reaped(k, pid, status, &ru);
        if (i < REAP_MAX)
            continue;
        (void)kill(k->pid, SIGCHLD); /* more next turn */
        break;
    }
}

static void on_event(struct keeper *k, uint64_t data)
{
    uint64_t expirations;
    struct keeper_slot *s = keeper_slot_by_key(k, (uint32_t)data);

    switch (data >> 32) {
    case WATCH_SIGNAL:
        keeper_signals_read(k);
        reap(k);
        break;
    case WATCH_FENCE: (void)!read(k->fence_fd, &expirations, sizeof expirations); break;
    case WATCH_LINK: keeper_link_read(k); break;
    case WATCH_SCRIBE: keeper_scribe_read(k); break;
    case WATCH_EXEC:
        if (s != NULL && s->exec_fd >= 0)
            keeper_on_exec(k, s);
        break;
    case WATCH_SHIM:
        if (s != NULL)
            keeper_on_shim(k, s);
        break;
    default: break;
    }
}

static int64_t start_what_is_due(struct keeper *k, int64_t now)
{
    if (k->stopping)
        k->link_at = KEEPER_NEVER;
    if (k->link_at <= now && keeper_link_start(k) < 0)
        k->link_at = now + KEEPER_SECOND;
    if (k->scribe_at <= now && keeper_scribe_start(k) < 0)
        k->scribe_at = now + KEEPER_SECOND;
    return k->link_at < k->scribe_at ? k->link_at : k->scribe_at;
}

/* Everything has ended, and the link has taken notice or will not. */
static bool is_over(struct keeper *k, int64_t now)
{
    bool is_known = true;

    if (!k->stopping)
        return false;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->a.state != AGENTD_STATE_ENDED)
            return false;
        is_known = is_known && k->slots[i]->forgotten;
    }
    if (k->stop_until == KEEPER_NEVER)
        k->stop_until = now + FORGET_GRACE;
    return is_known || k->link_fd < 0 || now >= k->stop_until;
}

static int wait_ms(int64_t until, int64_t now)
{
    if (until == KEEPER_NEVER)
        return -1;
    if (until <= now)
        return 0;
    int64_t ms = (until - now + KEEPER_MS - 1) / KEEPER_MS;
    return ms > 60000 ? 60000 : (int)ms;
}

static void turn(struct keeper *k)
{
    struct epoll_event events[32];
    int64_t next = 0;

    for (int64_t now = keeper_now(); !is_over(k, now); now = keeper_now()) {
        int count = epoll_wait(k->epoll_fd, events, 32, wait_ms(next, now));

        keeper_fence_check(k);
        for (int i = 0; i < count; i++)
            on_event(k, events[i].data.u64);
        now = keeper_now();
        next = start_what_is_due(k, now);
        keeper_fence_check(k); /* something may have been released */
        int64_t settle = keeper_settle(k, now);
        int64_t watch = keeper_link_watch(k, now);
        keeper_link_flush(k);
        keeper_tidy(k);
        int64_t record = keeper_scribe_flush(k, now);
        int64_t service = keeper_service_tell(k, now);
        next = settle < next ? settle : next;
        next = record < next ? record : next;
        int64_t drain = keeper_held_drain(k, now);
        next = service < next ? service : next;
        next = drain < next ? drain : next;
        next = watch < next ? watch : next;
        /* Once that is over, only an end is waited for. */
        next = k->stop_until > now && k->stop_until < next ? k->stop_until : next;
    }
}

static void wait_for(pid_t pid, int seconds)
{
    for (int i = 0; pid > 0 && i < seconds * 100; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        (void)usleep(10000);
    }
    if (pid > 0)
        (void)kill(pid, SIGKILL);
}

/* What a link started and could not end itself. Who was there before us stays; what dies leaves
 * its children to us. */
static void end_strays(struct keeper *k)
{
    size_t left = 1;

    for (int i = 0; left > 0 && i < STRAY_ROUNDS; i++) {
        left = 0;
        keeper_scan(k, keeper_now());
        for (size_t n = 0; n < k->scan.count; n++) {
            const struct keeper_process *p = &k->scan.list[n];

            if (p->ppid == k->pid && p->start_time >= k->born && p->state != 'Z' &&
                keeper_signal(p->pid, p->start_time, SIGKILL))
                left++;
        }
        if (left > 0)
            (void)usleep(2000);
    }
}

static void end(struct keeper *k)
{
    /* The link sees the end of the socket and goes. */
    keeper_close(&k->link_fd);
    wait_for(k->link, k->stop_until == 0 ? 0 : 3);
    k->link = 0;
    k->link_failed = 0;
    k->link_unrecorded = true;
    keeper_scribe_finish(k);
    keeper_scribe_close(k);
    wait_for(k->scribe, 3);
    end_strays(k);
    while (k->slot_count > 0)
        keeper_slot_free(k, k->slots[0]);
    keeper_let_all(k);
    keeper_cgroup_done(k);
    hf_sdnotify_done(&k->service);
    /* Not removed: who waits for the lock of a removed file would share it with nobody. */
    (void)!ftruncate(k->lock_fd, 0);
    free(k->slots);
    free(k->scan.list);
    free(k->memo);
    free(k->in);
    free(k->out);
}

int main(int argc, char **argv)
{
    static struct keeper keeper;
    struct keeper *k = &keeper;
    int rc;

    (void)argc;
    fill_stdio();
    if (is_for_link_alone(argv))
        keeper_link_exec(argv);
    k->argv = argv;
    rc = agentd_choose_state_dir(argv, k->state_dir, sizeof k->state_dir);
    if (rc == -EINVAL)
        keeper_link_exec(argv); /* `run` without a valid name: it knows what to say */
    k->pid = getpid();
    keeper_service_init(k);
    k->state_fd = k->lock_fd = k->cgroup_fd = k->link_fd = k->scribe_fd = k->in_fd = -1;
    k->link_at = k->scribe_at = k->stop_until = k->link_answer_by = KEEPER_NEVER;
    if (rc < 0 || keeper_state_open(k) < 0)
        return 1;
    rc = begin(k);
    if (rc < 0) {
        (void)dprintf(STDERR_FILENO, "agentd: cannot begin: %s\n", strerrordesc_np(-rc));
        return 1;
    }
    turn(k);
    end(k);
    return k->exit_code;
}
