#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

/* What may fail between release and exec; index into WHAT. */
enum stage { STAGE_LIMITS, STAGE_USER, STAGE_DIRECTORY, STAGE_MEMORY, STAGE_EXEC };

static const char *const WHAT[] = { "set its limits", "become its user", "enter its directory",
                                    "build its environment", "execute its program" };

struct failure {
    int32_t stage;
    int32_t error;
};

_Noreturn static void fail(int fd, enum stage stage)
{
    struct failure failure = { .stage = (int32_t)stage, .error = errno };

    (void)!write(fd, &failure, sizeof failure);
    _exit(127);
}

/* Waits for the release: the length of the environment, then that environment. Anything less
 * means that there will be none. */
static const char *wait_at_gate(int fd, uint32_t *ret_len)
{
    static char text[AGENTD_RELEASE_MAX];
    uint32_t len = 0;

    if (read(fd, &len, sizeof len) != (ssize_t)sizeof len || len > sizeof text)
        _exit(0);
    for (size_t have = 0; have < len;) {
        ssize_t got = read(fd, text + have, len - have);

        if (got <= 0)
            _exit(0);
        have += (size_t)got;
    }
    *ret_len = len;
    return text;
}

static bool set_limits(const struct agentd_spawn *m)
{
    for (size_t i = 0; i < m->rlimit_count; i++) {
        const struct agentd_rlimit *limit = &m->rlimits[i];
        struct rlimit value = { .rlim_cur = limit->soft, .rlim_max = limit->hard };

        if (setrlimit((int)limit->resource, &value) < 0)
            return false;
    }
    errno = 0;
    if (m->nice != 0 && nice(m->nice) == -1 && errno != 0)
        return false;
    (void)umask(m->umask);
    return true;
}

static bool set_user(const struct agentd_spawn *m)
{
    gid_t groups[AGENTD_GROUPS_MAX];

    if (m->uid != AGENTD_KEEP_ID) {
        for (size_t i = 0; i < m->group_count; i++)
            groups[i] = m->groups[i];
        if (setgroups(m->group_count, groups) < 0 || setresgid(m->gid, m->gid, m->gid) < 0 ||
            setresuid(m->uid, m->uid, m->uid) < 0)
            return false;
    }
    return (m->flags & AGENTD_SPAWN_NO_NEW_PRIVS) == 0 ||
           prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

/* Whether the entry's name stands among those that the release brought. */
static bool is_replaced(const char *entry, const char *more, uint32_t more_len)
{
    size_t name_len = strcspn(entry, "=") + 1;

    for (const char *p = more; p < more + more_len; p += strlen(p) + 1) {
        if (strncmp(p, entry, name_len) == 0)
            return true;
    }
    return false;
}

/* argv and env as pointers into the request and into what the release brought. */
static char **build(const struct agentd_spawn *m, const char *more, uint32_t more_len,
                    char ***ret_env)
{
    static char own[sizeof KEEPER_INSTANCE_ENV + AGENTD_ID_BYTES];
    size_t at = 0;
    char **list = calloc((size_t)m->argc + m->envc + more_len + 3, sizeof *list);
    const char *text = (const char *)(m + 1);

    if (list == NULL)
        return NULL;
    text += strlen(text) + 1;
    for (uint32_t i = 0; i < m->argc; i++, text += strlen(text) + 1)
        list[at++] = (char *)text;
    *ret_env = &list[++at];
    (void)snprintf(own, sizeof own, KEEPER_INSTANCE_ENV "%s", m->who.instance);
    list[at++] = own; /* the first of that name counts */
    for (uint32_t i = 0; i < m->envc; i++, text += strlen(text) + 1) {
        if (!is_replaced(text, more, more_len))
            list[at++] = (char *)text;
    }
    for (const char *p = more; p < more + more_len; p += strlen(p) + 1)
        list[at++] = (char *)p;
    return list;
}

static void set_stdio(const struct keeper_plan *plan)
{
    if (plan->in_fd >= 0) {
        (void)dup2(plan->in_fd, STDIN_FILENO);
    } else if ((plan->spawn->flags & AGENTD_SPAWN_PASS_INPUT) == 0) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
            (void)dup2(fd, STDIN_FILENO);
        keeper_close(&fd);
    }
    (void)dup2(plan->out_fd, STDOUT_FILENO);
    (void)dup2(plan->err_fd, STDERR_FILENO);
}

static void set_oom_score(int score)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", score);
    if (score != INT32_MIN)
        (void)keeper_write_at(AT_FDCWD, "/proc/self/oom_score_adj", number);
}

/* It ends with its parent, which is the keeper or its shim. Asked for again after a change of
 * user, which forgets it. A parent that is gone may not have left the signal, or not yet; the
 * end is the same, and not that of a program which has finished. */
static void die_with_parent(const struct keeper_plan *plan)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != plan->parent)
        (void)kill(getpid(), SIGKILL);
}

_Noreturn void keeper_child_main(struct keeper_plan *plan)
{
    const struct agentd_spawn *m = plan->spawn;
    char **env = NULL;
    uint32_t more_len = 0;

    (void)setsid();
    die_with_parent(plan);
    set_stdio(plan);
    keeper_keep_only((int[]){ plan->gate_fd, plan->exec_fd }, 2);
    keeper_reset_signals();
    set_oom_score(plan->oom_score);
    (void)setpriority(PRIO_PROCESS, 0, plan->nice);
    (void)setrlimit(RLIMIT_NOFILE, &plan->files);

    const char *more = wait_at_gate(plan->gate_fd, &more_len);
    char **argv = build(m, more, more_len, &env);
    if (argv == NULL || argv[0] == NULL)
        fail(plan->exec_fd, STAGE_MEMORY);
    if (!set_limits(m))
        fail(plan->exec_fd, STAGE_LIMITS);
    if (!set_user(m))
        fail(plan->exec_fd, STAGE_USER);
    die_with_parent(plan);
    if (chdir((const char *)(m + 1)) < 0)
        fail(plan->exec_fd, STAGE_DIRECTORY);
    (void)close(plan->gate_fd);
    environ = env; /* execvp takes PATH from there */
    (void)execvp(argv[0], argv);
    fail(plan->exec_fd, STAGE_EXEC);
}

/* The keeper's ends and the child's. */
struct pipes {
    int gate[2]; /* child reads */
    int exec[2]; /* child writes */
    int in[2];   /* child reads; where it can be told something */
    int out[2];  /* child writes */
    int err[2];  /* child writes; as out unless output is passed on */
    int shim[2]; /* [1]: the shim's */
};

static void close_pipes(struct pipes *p)
{
    int *all[] = { p->gate, p->exec, p->in, p->out, p->err, p->shim };

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        keeper_close(&all[i][0]);
        keeper_close(&all[i][1]);
    }
}

static int open_pipes(struct pipes *p, uint32_t flags, bool behind_shim)
{
    bool apart = (flags & AGENTD_SPAWN_PASS_OUTPUT) != 0;
    bool is_told = (flags & AGENTD_SPAWN_TELL_INPUT) != 0;

    *p = (struct pipes){
        { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }
    };
    if (pipe2(p->gate, O_CLOEXEC) < 0 || pipe2(p->exec, O_CLOEXEC) < 0 ||
        (is_told && pipe2(p->in, O_CLOEXEC) < 0) || pipe2(p->out, O_CLOEXEC) < 0 ||
        (apart && pipe2(p->err, O_CLOEXEC) < 0) ||
        (behind_shim && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p->shim) < 0)) {
        int rc = -errno;

        close_pipes(p);
        return rc;
    }
    return 0;
}

/* A fork that begins in its cgroup. Moving a process there afterwards can wait for tens of
 * milliseconds for the other processors; where the kernel cannot do better, it is moved. */
static pid_t fork_into(int cgroup_fd)
{
    struct clone_args args = { .flags = CLONE_INTO_CGROUP,
                               .exit_signal = SIGCHLD,
                               .cgroup = (uint64_t)cgroup_fd };
    pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);

    if (pid >= 0)
        return pid;
    pid = fork();
    int rc = pid > 0 ? keeper_cgroup_enter(cgroup_fd, pid) : 0;
    if (rc < 0) {
        (void)kill(pid, SIGKILL); /* not reaped yet, so it is still that process */
        (void)waitpid(pid, NULL, 0);
        errno = -rc;
        return -1;
    }
    return pid;
}

static pid_t make(struct keeper *k, struct keeper_slot *s, const struct agentd_spawn *m,
                  struct pipes *p)
{
    struct keeper_plan plan = { .spawn = m,
                                .gate_fd = p->gate[0],
                                .exec_fd = p->exec[1],
                                .in_fd = p->in[0],
                                .out_fd = p->out[1],
                                .err_fd = p->err[1] >= 0 ? p->err[1] : p->out[1],
                                .oom_score = k->oom_score,
                                .nice = k->nice,
                                .files = k->files,
                                .parent = k->pid };
    pid_t pid = s->cgroup_fd >= 0 ? fork_into(s->cgroup_fd) : fork();

    if (pid != 0)
        return pid;
    if (s->cgroup_fd >= 0)
        keeper_child_main(&plan);
    keeper_keep_only(
        (int[]){ p->shim[1], plan.gate_fd, plan.exec_fd, plan.in_fd, plan.out_fd, plan.err_fd },
        6);
    keeper_shim_main(p->shim[1], &plan);
}

static void take_ends(struct keeper *k, struct keeper_slot *s, struct pipes *p)
{
    s->gate_fd = p->gate[1];
    s->exec_fd = p->exec[0];
    s->tell_fd = p->in[1];
    s->log_fds[0] = p->out[0];
    s->log_fds[1] = p->err[0];
    s->shim_fd = p->shim[0];
    p->gate[1] = p->exec[0] = p->in[1] = p->out[0] = p->err[0] = p->shim[0] = -1;
    s->log_due = true;
    (void)fcntl(s->gate_fd, F_SETFL, O_NONBLOCK);
    (void)fcntl(s->exec_fd, F_SETFL, O_NONBLOCK);
    if (s->tell_fd >= 0)
        (void)fcntl(s->tell_fd, F_SETFL, O_NONBLOCK);
    keeper_watch(k, s->exec_fd, WATCH_EXEC, s->key);
    if (s->shim_fd >= 0)
        keeper_watch(k, s->shim_fd, WATCH_SHIM, s->key);
}

static int start(struct keeper *k, struct keeper_slot *s, const struct agentd_spawn *m,
                 struct pipes *p)
{
    struct keeper_process process;
    pid_t pid = make(k, s, m, p);

    if (pid < 0)
        return -errno;
    bool is_known = keeper_read_stat(pid, &process);
    if (s->cgroup_fd < 0) {
        s->shim = pid;
        s->shim_start = is_known ? process.start_time : 0;
        keeper_slot_changed(s, AGENTD_STATE_MAKING);
        return 0;
    }
    s->a.pid = pid;
    s->a.start_time = is_known ? process.start_time : 0;
    s->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (s->pidfd < 0) {
        (void)kill(pid, SIGKILL); /* not reaped yet, so it is still that process */
        (void)waitpid(pid, NULL, 0);
        return -EMFILE;
    }
    keeper_slot_changed(s, AGENTD_STATE_HELD);
    return 0;
}

int keeper_spawn(struct keeper *k, const struct agentd_spawn *m, const char **ret_why)
{
    struct pipes pipes;
    int rc = keeper_has_spare_files() ? 0 : -EMFILE;
    struct keeper_slot *s = rc == 0 ? keeper_slot_new(k, &m->who) : NULL;

    if (rc == 0 && s == NULL)
        rc = -ENOMEM;
    if (rc == 0) {
        memcpy(s->a.op_id, m->op_id, sizeof s->a.op_id);
        s->a.fence = m->fence;
        s->a.made_ns = keeper_now();
        s->flags = m->flags;
        keeper_oom_begin(k, s);
        rc = open_pipes(&pipes, m->flags, k->cgroup_fd < 0);
    }
    if (rc == 0) {
        if (k->cgroup_fd >= 0)
            rc = keeper_cgroup_make(k, s, m);
        if (rc == 0)
            rc = start(k, s, m, &pipes);
        if (rc == 0)
            take_ends(k, s, &pipes);
        close_pipes(&pipes);
    }
    if (rc < 0) {
        *ret_why = strerrordesc_np(-rc);
        if (s != NULL)
            keeper_slot_free(k, s);
    }
    return rc;
}

int keeper_release(struct keeper *k, struct keeper_slot *s, const struct agentd_release *m)
{
    static char text[sizeof(uint32_t) + AGENTD_RELEASE_MAX];
    ssize_t len = (ssize_t)(sizeof(uint32_t) + m->text_len);

    (void)k;
    memcpy(text, &m->text_len, sizeof(uint32_t));
    memcpy(text + sizeof(uint32_t), m + 1, m->text_len);
    if (write(s->gate_fd, text, (size_t)len) != len)
        return -EPIPE; /* it has died meanwhile, as SIGCHLD will tell */
    keeper_close(&s->gate_fd);
    s->released = true;
    s->a.incarnation = m->incarnation;
    keeper_slot_changed(s, AGENTD_STATE_STARTING);
    return 0;
}

/* A pipe takes up to PIPE_BUF bytes at once, or none of them. */
_Static_assert(AGENTD_TELL_MAX <= PIPE_BUF, "what is told could be cut in two");

int keeper_tell(struct keeper_slot *s, const struct agentd_tell *m)
{
    ssize_t len;

    do
        len = write(s->tell_fd, m + 1, m->len);
    while (len < 0 && errno == EINTR);
    if (len < 0)
        return -errno;
    memcpy(s->told, m->id, sizeof s->told);
    return 0;
}

void keeper_on_exec(struct keeper *k, struct keeper_slot *s)
{
    struct failure failure;
    ssize_t len = read(s->exec_fd, &failure, sizeof failure);

    (void)k;
    if (len < 0 && errno == EAGAIN)
        return;
    keeper_close(&s->exec_fd);
    if (!s->released)
        return; /* it died while it was held */
    if (len == (ssize_t)sizeof failure) {
        size_t stage = failure.stage >= 0 && failure.stage <= STAGE_EXEC ? failure.stage : 0;

        s->a.exit.causes |= AGENTD_CAUSE_NOT_BEGUN;
        s->a.exit.error = failure.error;
        (void)snprintf(s->a.exit.evidence, sizeof s->a.exit.evidence, "could not %s: %s",
                       WHAT[stage], strerror(failure.error));
        s->dirty = true;
        return;
    }
    s->a.begun_ns = keeper_now();
    if (s->a.state == AGENTD_STATE_STARTING) {
        s->a.done_order = s->a.order;
        keeper_slot_changed(s, AGENTD_STATE_RUNNING);
    }
}
