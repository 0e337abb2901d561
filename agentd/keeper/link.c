#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define DELAY_FIRST  (100 * KEEPER_MS)
#define DELAY_MAX    (5 * KEEPER_SECOND)
#define PROVEN_LIFE  KEEPER_SECOND /* one that lived so long did not die of its start */
#define STOP_GRACE   (10 * KEEPER_SECOND)
#define SILENCE_MIN  (30 * KEEPER_SECOND) /* of a link, whatever its TTL */
#define TURN_MAX     64                   /* requests until the loop looks at the fence again */
#define LINK_URGENCY 10                   /* nice levels above the agents */

/* Beside us in a build tree as well as where we were installed. */
_Noreturn void keeper_link_exec(char **argv)
{
    char path[PATH_MAX + 64];
    const char *wish = getenv("HOLDFAST_AGENTD_LINK");
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);

    path[len > 0 ? len : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        (void)snprintf(slash, sizeof path - (size_t)(slash - path),
                       "/../libexec/holdfast/agentd-link");
    argv[0] = (char *)"agentd-link";
    (void)execv(wish != NULL ? wish : path, argv);
    (void)dprintf(STDERR_FILENO, "agentd: cannot start %s: %s\n", wish != NULL ? wish : path,
                  strerrordesc_np(errno));
    _exit(1);
}

_Noreturn static void become_link(struct keeper *k, int fd)
{
    char number[16];
    /* First out of the way, so that neither overwrites the other. */
    int link_fd = fcntl(fd, F_DUPFD, 16);
    int page_fd = fcntl(k->page_fd, F_DUPFD, 16);
    int kept_fd = fcntl(k->kept_fd, F_DUPFD, 16);

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != k->pid)
        _exit(1);
    (void)setpgid(0, 0); /* a terminal's Ctrl-C is for the keeper, which tells it */
    (void)dup2(link_fd, AGENTD_LINK_FD);
    (void)dup2(page_fd, AGENTD_PAGE_FD);
    (void)dup2(kept_fd, AGENTD_KEPT_FD);
    keeper_keep_only((int[]){ AGENTD_LINK_FD, AGENTD_PAGE_FD, AGENTD_KEPT_FD },
                     kept_fd >= 0 ? 3 : 2);
    keeper_reset_signals();
    (void)snprintf(number, sizeof number, "%d", k->oom_score);
    if (k->oom_score != INT32_MIN)
        (void)keeper_write_at(AT_FDCWD, "/proc/self/oom_score_adj", number);
    /* A lease must be renewed however busy its agents are. */
    (void)setpriority(PRIO_PROCESS, 0, k->nice - LINK_URGENCY);
    keeper_link_exec(k->argv);
}

int keeper_link_start(struct keeper *k)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    /* One message of the largest size must fit, whatever the default is. */
    for (int i = 0; i < 2; i++)
        (void)setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &(int){ AGENTD_MESSAGE_MAX * 2 },
                         sizeof(int));
    pid_t pid = fork();
    if (pid == 0)
        become_link(k, pair[1]);
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return -errno;
    }
    k->link = pid;
    k->link_fd = pair[0];
    k->link_at = KEEPER_NEVER;
    k->link_started = k->link_heard = keeper_now();
    k->link_answer_by = KEEPER_NEVER;
    k->ask_due = false;
    k->link_starts++;
    k->link_ready = false;
    k->link_blocked = false;
    k->last_id = 0;
    k->reply_due = false;
    k->hello_due = k->synced_due = true;
    if (k->stop_signals > 0) /* the one before had not come to the end of it */
        k->signals |= UINT64_C(1) << k->stop_signal;
    for (size_t i = 0; i < k->slot_count; i++)
        k->slots[i]->dirty = !k->slots[i]->forgotten;
    for (struct keeper_held *held = k->held; held != NULL; held = held->next)
        held->dirty = true;
    keeper_watch(k, k->link_fd, WATCH_LINK, 0);
    return 0;
}

void keeper_link_ask(struct keeper *k, int64_t answer_by)
{
    if (k->link_fd < 0 || k->stopping || k->link_answer_by <= answer_by)
        return;
    k->ask_due = true;
    k->link_answer_by = answer_by;
}

/* While etcd is away no deadline moves, and the link does all that can be done: only its answer
 * tells it from one that hangs. A machine that stood still as a whole finds both awake again.
 */
int64_t keeper_link_watch(struct keeper *k, int64_t now)
{
    int64_t silence = 2 * k->lease.ttl_ms * KEEPER_MS, since = keeper_fence_get(k);

    if (k->link_fd < 0 || k->stopping)
        return KEEPER_NEVER;
    if (k->link_answer_by <= now) {
        keeper_log("warn", "event=link_hangs pid=%d next=\"another one\"", (int)k->link);
        (void)kill(k->link, SIGKILL);
        k->link_answer_by = KEEPER_NEVER; /* SIGCHLD follows */
        k->link_heard = now;
        return KEEPER_NEVER;
    }
    if (k->link_answer_by != KEEPER_NEVER)
        return k->link_answer_by;
    since = since > k->link_heard ? since : k->link_heard;
    since += silence > SILENCE_MIN ? silence : SILENCE_MIN;
    if (since > now)
        return since;
    keeper_link_ask(k, now + AGENTD_ANSWER_MS * KEEPER_MS);
    return k->link_answer_by;
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The next one comes at once, for the lease runs; unless they die of their start, one after the
 * other, which neither this machine nor etcd shall suffer from. Even then one tries as often as
 * a renewal is tried, while there is a lease that it could save. */
static void plan_next(struct keeper *k, int64_t now, bool was_asked_for)
{
    bool has_lease = k->lease.ttl_ms > 0 && !keeper_fence_has_passed(k);
    int64_t most = has_lease ? k->lease.ttl_ms * KEEPER_MS / 6 : DELAY_MAX;

    if (was_asked_for || (k->link_ready && now - k->link_started > PROVEN_LIFE))
        k->link_delay = 0;
    k->link_at = now + (k->link_delay < most ? k->link_delay : most);
    k->link_delay = k->link_delay == 0 ? DELAY_FIRST : k->link_delay * 2;
    if (k->link_delay > DELAY_MAX)
        k->link_delay = DELAY_MAX;
}

void keeper_link_ended(struct keeper *k, int status)
{
    int64_t now = keeper_now();

    keeper_close(&k->link_fd);
    if (k->link_ready) {
        k->link_lost = now;
    } else {
        k->link_failed = k->link;
        k->link_failed_code = code_of(status);
    }
    k->link = 0;
    k->link_unrecorded = true;
    if (k->stopping)
        return;
    if (!k->link_was_ready && k->slot_count == 0) {
        k->stopping = true; /* it could not even begin, and has said why */
        k->exit_code = code_of(status);
        return;
    }
    if (k->stop_signals > 0 && !k->link_ready && WIFEXITED(status)) {
        /* No link comes that could be told to stop: this one says that it cannot begin. The
         * next agentd here writes the ends. */
        keeper_log("warn", "event=stopping_alone code=%d", code_of(status));
        keeper_shutdown(k, code_of(status), STOP_GRACE);
        return;
    }
    plan_next(k, now,
              k->link_ready && WIFEXITED(status) && WEXITSTATUS(status) == AGENTD_LINK_AGAIN);
    keeper_log("warn", "event=link_ended code=%d next_ms=%jd", code_of(status),
               (intmax_t)((k->link_at - now) / KEEPER_MS));
}

static void set_blocked(struct keeper *k, bool is_blocked)
{
    struct epoll_event event = { .events = is_blocked ? EPOLLOUT : EPOLLIN,
                                 .data.u64 = (uint64_t)WATCH_LINK << 32 };

    if (k->link_blocked != is_blocked)
        (void)epoll_ctl(k->epoll_fd, EPOLL_CTL_MOD, k->link_fd, &event);
    k->link_blocked = is_blocked;
}

/* True when the socket took it. What it did not take is sent later, as it is then. */
static bool give_message(struct keeper *k, const struct msghdr *message)
{
    bool is_sent =
        k->link_fd >= 0 && sendmsg(k->link_fd, message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;

    if (!is_sent && k->link_fd >= 0)
        set_blocked(k, true);
    return is_sent;
}

static bool give(struct keeper *k, const void *fixed, size_t len, const void *rest,
                 size_t rest_len)
{
    struct iovec parts[] = { { (void *)fixed, len }, { (void *)rest, rest_len } };

    return give_message(k, &(struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 });
}

static bool give_hello(struct keeper *k)
{
    struct agentd_hello m = { .head = { .length = (uint32_t)(sizeof m + k->memo_len),
                                        .type = AGENTD_HELLO },
                              .version = AGENTD_PROTOCOL_VERSION,
                              .flags = k->flags,
                              .keeper_pid = k->pid,
                              .link_starts = k->link_starts,
                              .memo_len = k->memo_len,
                              .lease = k->lease,
                              .lost_lease_id = k->lost_lease_id };

    for (size_t i = 0; i < k->slot_count; i++)
        m.agents += !k->slots[i]->forgotten;
    keeper_copy(m.boot_id, sizeof m.boot_id, k->boot_id);
    keeper_copy(m.state_dir, sizeof m.state_dir, k->state_dir);
    return give(k, &m, sizeof m, k->memo, k->memo_len);
}

static bool give_agents(struct keeper *k)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (!s->dirty || s->forgotten)
            continue;
        s->a.head.length = (uint32_t)sizeof s->a + s->a.blob_len;
        if (!give(k, &s->a, sizeof s->a, s->blob, s->a.blob_len))
            return false;
        s->dirty = false;
    }
    return true;
}

static bool give_descriptor(struct keeper *k, const struct keeper_held *held)
{
    struct agentd_held m = { .head = { .length = sizeof m, .type = AGENTD_HELD } };
    struct iovec part = { &m, sizeof m };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS } };

    memcpy(m.agent, held->agent, sizeof m.agent);
    memcpy(CMSG_DATA(&control.head), &held->fd, sizeof held->fd);
    return give_message(k, &(struct msghdr){ .msg_iov = &part,
                                             .msg_iovlen = 1,
                                             .msg_control = control.bytes,
                                             .msg_controllen = sizeof control.bytes });
}

static bool give_held(struct keeper *k)
{
    for (struct keeper_held *held = k->held; held != NULL; held = held->next) {
        if (held->dirty && !give_descriptor(k, held))
            return false;
        held->dirty = false;
    }
    return true;
}

static bool give_signals(struct keeper *k)
{
    for (int signal = 1; signal < 64 && k->link_ready; signal++) {
        struct agentd_signal m = { .head = { .length = sizeof m, .type = AGENTD_SIGNAL },
                                   .signal = signal };

        if ((k->signals & UINT64_C(1) << signal) == 0)
            continue;
        if (!give(k, &m, sizeof m, NULL, 0))
            return false;
        k->signals &= ~(UINT64_C(1) << signal);
    }
    return true;
}

void keeper_link_flush(struct keeper *k)
{
    const struct agentd_head synced = { .length = sizeof synced, .type = AGENTD_SYNCED };
    const struct agentd_head ask = { .length = sizeof ask, .type = AGENTD_ASK };

    if (k->link_fd < 0)
        return;
    if (k->reply_due && !give(k, k->out, sizeof *k->out, NULL, 0))
        return;
    k->reply_due = false;
    if (k->hello_due && !give_hello(k))
        return;
    k->hello_due = false;
    if (!give_agents(k) || !give_held(k))
        return;
    if (k->synced_due && !give(k, &synced, sizeof synced, NULL, 0))
        return;
    k->synced_due = false;
    if (!give_signals(k) || (k->ask_due && !give(k, &ask, sizeof ask, NULL, 0)))
        return;
    k->ask_due = false;
    set_blocked(k, false);
}

static void reply(struct keeper *k, uint64_t id, uint32_t code, const char *text)
{
    struct agentd_reply m = { .head = { .length = sizeof m, .type = AGENTD_REPLY, .id = id },
                              .code = code };

    keeper_copy(m.text, sizeof m.text, text);
    if (give(k, &m, sizeof m, NULL, 0))
        return;
    *k->out = m;
    k->reply_due = true; /* until then no other request is read */
}

static void answer(struct keeper *k, size_t len)
{
    const struct agentd_head *head = (const struct agentd_head *)k->in;
    uint64_t id = len >= sizeof *head ? head->id : 0;
    const char *why = agentd_check_request(k->in, len);
    uint32_t code = AGENTD_CODE_MALFORMED;

    if (why == NULL && id <= k->last_id) {
        why = "the id is not greater than the last one";
    } else if (why == NULL) {
        k->last_id = id;
        why = "";
        code = keeper_request(k, k->in, &why);
    }
    reply(k, id, code, why);
    explicit_bzero(k->in, len); /* an agent's token does not lie about */
    keeper_close(&k->in_fd);    /* unless somebody wanted it */
}

/* One packet, and the descriptor that came with it. Room for one: the kernel closes others. */
static ssize_t take(struct keeper *k)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { k->in, AGENTD_MESSAGE_MAX };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = CMSG_LEN(sizeof(int)) };
    ssize_t len = recvmsg(k->link_fd, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *cmsg = len < 0 ? NULL : CMSG_FIRSTHDR(&message);

    k->in_fd = -1;
    if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET && cmsg->cmsg_type == SCM_RIGHTS &&
        cmsg->cmsg_len >= CMSG_LEN(sizeof(int)))
        memcpy(&k->in_fd, CMSG_DATA(cmsg), sizeof k->in_fd);
    return len;
}

void keeper_link_read(struct keeper *k)
{
    for (int i = 0; i < TURN_MAX && k->link_fd >= 0 && !k->reply_due; i++) {
        ssize_t len = take(k);

        if (len < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (len <= 0) {
            /* It does not talk to us any more: SIGCHLD follows, and a new one. */
            if (k->link > 0)
                (void)kill(k->link, SIGKILL);
            keeper_close(&k->link_fd);
            return;
        }
        k->link_heard = keeper_now();
        if (len > AGENTD_MESSAGE_MAX) {
            keeper_close(&k->in_fd);
            reply(k, 0, AGENTD_CODE_MALFORMED, "longer than a message may be");
        } else {
            answer(k, (size_t)len);
        }
    }
}
