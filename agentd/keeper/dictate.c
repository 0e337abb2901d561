/* dictate.c - the keeper's half of the scribe: starts it and hands over what is due. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"
#include "agentd/keeper/scribe.h"

#define RECORD_AFTER (50 * KEEPER_MS)
#define RETRY_AFTER  (20 * KEEPER_MS)
#define MEND_AFTER   (5 * KEEPER_SECOND) /* a disk that has no room */
#define LAST_WAIT    (3 * KEEPER_SECOND)

/* Taken before the scribe is made and kept by it alone, so that there is no moment at which it
 * has something to write and the next keeper does not see it. */
static int lock_for_scribe(const struct keeper *k)
{
    int fd = keeper_state_open_run(k);

    if (fd >= 0)
        (void)flock(fd, LOCK_EX | LOCK_NB); /* an old one that hangs has it: it goes without */
    return fd;
}

/* A file takes whatever it is given, or lets wait for its disk. While there is no scribe we
 * write to it ourselves: one that waits for a disk cannot end. */
static void let_it_log(const struct keeper *k)
{
    struct stat st;

    if (fstat(STDERR_FILENO, &st) == 0 && S_ISREG(st.st_mode))
        keeper_log_through(k->scribe_fd);
}

void keeper_scribe_close(struct keeper *k)
{
    keeper_log_through(-1);
    keeper_close(&k->scribe_fd);
}

int keeper_scribe_start(struct keeper *k)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    int lock_fd = lock_for_scribe(k);
    pid_t pid = fork();
    if (pid == 0) {
        keeper_keep_only((int[]){ pair[1], k->state_fd, lock_fd }, 3);
        keeper_scribe_main(pair[1], k->state_fd);
    }
    keeper_close(&lock_fd);
    (void)close(pair[1]);
    if (pid < 0) {
        (void)close(pair[0]);
        return -errno;
    }
    k->scribe = pid;
    k->scribe_fd = pair[0];
    k->scribe_at = KEEPER_NEVER;
    keeper_watch(k, k->scribe_fd, WATCH_SCRIBE, 0);
    let_it_log(k);
    for (size_t i = 0; i < k->slot_count; i++) {
        k->slots[i]->log_due = k->slots[i]->log_fds[0] >= 0;
        k->slots[i]->log_open = false;
    }
    return 0;
}

/* What it was given last it may not have written. */
void keeper_scribe_ended(struct keeper *k)
{
    for (size_t i = 0; i < k->slot_count; i++)
        k->slots[i]->unrecorded = true;
    k->lease_unrecorded = k->link_unrecorded = true;
    keeper_scribe_close(k);
    k->scribe = 0;
    k->scribe_at = keeper_now() + 100 * KEEPER_MS;
    if (!k->stopping)
        keeper_log("warn", "event=scribe_ended next_ms=100");
}

static void on_log_end(struct keeper_slot *s, const struct scribe_end *end)
{
    s->log_open = false;
    keeper_copy(s->a.exit.output, sizeof s->a.exit.output, end->output);
    keeper_close(&s->log_fds[0]);
    keeper_close(&s->log_fds[1]);
    if (s->gone_ns != 0)
        s->look_at = 0;
}

/* Without a slot it was of the keeper itself. */
static void on_not_written(struct keeper *k, struct keeper_slot *s)
{
    int64_t at = keeper_now() + MEND_AFTER;

    if (s == NULL) {
        k->lease_unrecorded = k->link_unrecorded = true;
        k->record_at = at;
        return;
    }
    s->unrecorded = s->is_put_off = true;
    s->record_at = at;
}

void keeper_scribe_read(struct keeper *k)
{
    struct scribe_end end;
    ssize_t len;

    while (k->scribe_fd >= 0 &&
           (len = recv(k->scribe_fd, &end, sizeof end, MSG_DONTWAIT)) != -1) {
        if (len != (ssize_t)sizeof end) {
            keeper_scribe_close(k); /* SIGCHLD follows */
            return;
        }
        struct keeper_slot *s = keeper_slot_by_key(k, end.key);
        if (end.not_written != 0 && (s != NULL || end.key == 0))
            on_not_written(k, s);
        else if (s != NULL && s->log_open)
            on_log_end(s, &end);
    }
}

/* False when the scribe takes no more at the moment: a disk may be slow. */
static bool dictate(struct keeper *k, const struct scribe_order *order, const void *bytes,
                    const int fds[2])
{
    struct iovec parts[] = { { (void *)order, sizeof *order }, { (void *)bytes, order->len } };
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * 2)];
    } control;
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };

    if (fds != NULL) {
        size_t len = sizeof(int) * (fds[1] >= 0 ? 2 : 1);

        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(len);
        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(len);
        memcpy(CMSG_DATA(cmsg), fds, len);
    }
    return k->scribe_fd >= 0 &&
           sendmsg(k->scribe_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static bool put(struct keeper *k, const char *name, const void *bytes, size_t len)
{
    struct scribe_order order = { .kind = SCRIBE_PUT, .len = (uint32_t)len };

    keeper_copy(order.name, sizeof order.name, name);
    return dictate(k, &order, bytes, NULL);
}

static bool drop(struct keeper *k, const char *name)
{
    struct scribe_order order = { .kind = SCRIBE_DROP };

    keeper_copy(order.name, sizeof order.name, name);
    return dictate(k, &order, NULL, NULL);
}

static bool put_number(struct keeper *k, const char *name, intmax_t number)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%jd\n", number);

    return number == 0 ? drop(k, name) : put(k, name, text, (size_t)len);
}

static bool record(struct keeper *k, struct keeper_slot *s)
{
    static char buf[SCRIBE_PUT_MAX];
    struct scribe_order order = { .kind = SCRIBE_RECORD, .key = s->key };

    (void)snprintf(order.name, sizeof order.name, "run/%s", s->a.who.instance);
    if (s->forgotten)
        return drop(k, order.name);
    order.len = (uint32_t)keeper_state_encode(s, buf, sizeof buf);
    return dictate(k, &order, buf, NULL);
}

static bool open_log(struct keeper *k, struct keeper_slot *s)
{
    struct scribe_order order = { .kind = SCRIBE_LOG, .key = s->key, .flags = s->flags };

    keeper_copy(order.name, sizeof order.name, s->a.who.agent);
    return dictate(k, &order, NULL, s->log_fds);
}

/* Whoever waits for a successor waits for the same disk. A process that is held ends with its
 * keeper, and what is forgotten is written in etcd: that can wait a moment. */
static bool is_record_due(const struct keeper *k, struct keeper_slot *s, int64_t now)
{
    bool can_wait = (!s->released || s->forgotten) && !k->stopping;
    bool is_put_off = s->is_put_off && !s->forgotten;

    if (!s->unrecorded && !s->forgotten)
        return false;
    if (s->record_at == 0)
        s->record_at = now + RECORD_AFTER;
    return (!can_wait && !is_put_off) || s->record_at <= now;
}

static bool flush_slot(struct keeper *k, struct keeper_slot *s, int64_t now)
{
    if (s->log_due) {
        if (!open_log(k, s))
            return false;
        s->log_due = false;
        s->log_open = true;
    }
    if (is_record_due(k, s, now)) {
        if (!record(k, s))
            return false;
        s->unrecorded = s->is_put_off = false;
        s->record_at = 0;
    }
    return true;
}

/* Who waits for another link finds here that it is ready, or how it ended. */
static bool record_link(struct keeper *k)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%d %d\n", (int)k->link_failed, k->link_failed_code);

    if (!(k->link_failed == 0 ? drop(k, "link.failed")
                              : put(k, "link.failed", text, (size_t)len)))
        return false;
    return put_number(k, "link.pid", k->link_ready ? k->link : 0);
}

static bool flush_keeper(struct keeper *k)
{
    if (k->lease_unrecorded && !put_number(k, "lease", k->lease.lease_id))
        return false;
    k->lease_unrecorded = false;
    if (k->link_unrecorded && !record_link(k))
        return false;
    k->link_unrecorded = false;
    return true;
}

int64_t keeper_scribe_flush(struct keeper *k, int64_t now)
{
    int64_t next = KEEPER_NEVER;

    for (size_t i = 0; i < k->slot_count;) {
        struct keeper_slot *s = k->slots[i];

        if (!flush_slot(k, s, now))
            return now + RETRY_AFTER;
        if (s->forgotten && s->record_at == 0) {
            keeper_slot_free(k, s);
            continue;
        }
        next = s->record_at != 0 && s->record_at < next ? s->record_at : next;
        i++;
    }
    if (k->record_at > now)
        return k->record_at < next ? k->record_at : next;
    return flush_keeper(k) ? next : now + RETRY_AFTER;
}

void keeper_scribe_finish(struct keeper *k)
{
    int64_t until = keeper_now() + LAST_WAIT;

    k->record_at = 0;
    for (size_t i = 0; i < k->slot_count; i++)
        k->slots[i]->is_put_off = false;
    if (k->scribe_fd < 0)
        (void)keeper_scribe_start(k);
    for (int64_t now = keeper_now(); now < until && k->scribe_fd >= 0; now = keeper_now()) {
        struct pollfd poll_fd = { .fd = k->scribe_fd, .events = POLLIN | POLLOUT };

        keeper_scribe_read(k); /* who does not listen to it to the end is not listened to */
        if (keeper_scribe_flush(k, now) > now + RETRY_AFTER)
            break;
        (void)poll(&poll_fd, 1, RETRY_AFTER / KEEPER_MS);
    }
}
