#include "agentd/keeper/scribe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

enum {
    LOG_BYTES = 1 << 20,    /* of a file, before it becomes <name>.log.1 */
    CHUNK_BYTES = 1 << 14,  /* of one agent, before the next has its turn */
    WINDOW_BYTES = 8 << 20, /* of one agent per second; the rest waits in its pipe */
    RETRY_MS = 20,
};

#define CALM (5 * KEEPER_SECOND) /* without a failure: it is over */

struct log {
    struct log *next;
    struct scribe_end end; /* told when both pipes have ended */
    size_t tail;           /* bytes of end.output in use */
    int fds[2];            /* stdout, and stderr where it is apart */
    bool is_watched[2];
    bool is_passed;
    int file;
    size_t size;
    int64_t window;      /* the second that ... */
    size_t window_bytes; /* ... these were read in */
    char name[AGENTD_NAME_BYTES + 8];
};

struct scribe {
    int keeper_fd, state_fd, epoll_fd;
    struct log *logs;
    bool has_paused; /* some pipe is not watched for a while */
    bool has_failed; /* a write did, and that was told; ... */
    int64_t failed;  /* ... when one last did */
};

/* Nobody waits for a disk that has no room, and nobody ends because of it: what is not written
 * of a log is lost, and that is said once. */
static void tell_written(struct scribe *b, bool is_written, const char *name)
{
    int error = errno;
    int64_t now = keeper_now();

    if (is_written) {
        if (!b->has_failed || now - b->failed <= CALM)
            return;
        keeper_log("info", "event=state_written name=%s", name);
        b->has_failed = false;
        return;
    }
    if (!b->has_failed)
        keeper_log("warn",
                   "event=state_not_written name=%s why=\"%s\" next=\"agents go on; what they "
                   "print and where they run is not kept until this is mended\"",
                   name, strerror(error));
    b->has_failed = true;
    b->failed = now;
}

/* The keeper has what should be there, and will bring it again. */
static void answer(struct scribe *b, const struct scribe_order *order, bool is_written)
{
    const struct scribe_end end = { .key = order->key, .not_written = 1 };

    tell_written(b, is_written, order->name);
    if (!is_written)
        (void)send(b->keeper_fd, &end, sizeof end, MSG_NOSIGNAL); /* it never waits for us */
}

static void open_file(struct scribe *b, struct log *log)
{
    char path[AGENTD_NAME_BYTES + 32];
    struct stat st;

    (void)snprintf(path, sizeof path, "agents/%s.log", log->name);
    log->file = openat(b->state_fd, path,
                       O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);
    log->size = log->file >= 0 && fstat(log->file, &st) == 0 ? (size_t)st.st_size : 0;
}

static void rotate(struct scribe *b, struct log *log)
{
    char path[AGENTD_NAME_BYTES + 32];
    char old[AGENTD_NAME_BYTES + 40];

    (void)snprintf(path, sizeof path, "agents/%s.log", log->name);
    (void)snprintf(old, sizeof old, "%s.1", path);
    (void)renameat(b->state_fd, path, b->state_fd, old);
    keeper_close(&log->file);
    open_file(b, log);
}

static void keep_tail(struct log *log, const char *bytes, size_t len)
{
    const size_t room = sizeof log->end.output - 1;

    if (len > room) {
        bytes += len - room;
        len = room;
    }
    if (log->tail + len > room) {
        size_t drop = log->tail + len - room;

        memmove(log->end.output, log->end.output + drop, log->tail - drop);
        log->tail -= drop;
    }
    memcpy(log->end.output + log->tail, bytes, len);
    log->tail += len;
}

static bool can_write(int fd)
{
    struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };

    return poll(&poll_fd, 1, 0) == 1;
}

/* The keeper has the same pipes, so a descriptor that is only closed would stay watched. */
static void watch(struct scribe *b, struct log *log, int i, bool on)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = log };

    if (log->is_watched[i] == on || log->fds[i] < 0)
        return;
    (void)epoll_ctl(b->epoll_fd, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, log->fds[i], &event);
    log->is_watched[i] = on;
}

/* Whether this pipe may be read now; else it is left alone until the next round. */
static bool has_turn(const struct log *log, int i, int64_t second)
{
    if (log->is_passed && !can_write(STDOUT_FILENO + i))
        return false;
    return log->window != second || log->window_bytes < WINDOW_BYTES;
}

static void store(struct scribe *b, struct log *log, int i, const char *bytes, size_t len)
{
    keep_tail(log, bytes, len);
    /* A reader that went away takes nothing from the log. */
    if (log->is_passed && write(STDOUT_FILENO + i, bytes, len) < 0 && errno == EPIPE)
        log->is_passed = false;
    if (log->size + len > LOG_BYTES)
        rotate(b, log);
    if (log->file < 0)
        open_file(b, log);
    ssize_t written = log->file >= 0 ? write(log->file, bytes, len) : -1;
    if (written >= 0 && written < (ssize_t)len)
        errno = ENOSPC; /* which the next one would say */
    tell_written(b, written == (ssize_t)len, log->name);
    if (written > 0)
        log->size += (size_t)written;
}

/* False when there was nothing to read. */
static bool read_pipe(struct scribe *b, struct log *log, int i)
{
    static char chunk[CHUNK_BYTES];
    int64_t second = keeper_now() / KEEPER_SECOND;

    if (log->fds[i] < 0)
        return false;
    if (!has_turn(log, i, second)) {
        watch(b, log, i, false);
        b->has_paused = true;
        return false;
    }
    /* A pipe that can be written to at all takes PIPE_BUF bytes without waiting. */
    ssize_t len = read(log->fds[i], chunk, log->is_passed ? PIPE_BUF : sizeof chunk);
    if (len < 0)
        return false;
    if (len == 0) {
        watch(b, log, i, false);
        keeper_close(&log->fds[i]);
        return false;
    }
    log->window_bytes = log->window == second ? log->window_bytes + (size_t)len : (size_t)len;
    log->window = second;
    store(b, log, i, chunk, (size_t)len);
    return true;
}

static void free_log(struct scribe *b, struct log *log)
{
    for (struct log **at = &b->logs; *at != NULL; at = &(*at)->next) {
        if (*at == log) {
            *at = log->next;
            break;
        }
    }
    keeper_close(&log->fds[0]);
    keeper_close(&log->fds[1]);
    keeper_close(&log->file);
    free(log);
}

static void serve(struct scribe *b, struct log *log)
{
    (void)read_pipe(b, log, 0);
    (void)read_pipe(b, log, 1);
    if (log->fds[0] >= 0 || log->fds[1] >= 0)
        return;
    for (size_t i = 0; i < log->tail; i++) {
        if (log->end.output[i] == '\0')
            log->end.output[i] = '?';
    }
    memset(log->end.output + log->tail, 0, sizeof log->end.output - log->tail);
    (void)send(b->keeper_fd, &log->end, sizeof log->end, MSG_DONTWAIT | MSG_NOSIGNAL);
    free_log(b, log);
}

static void begin_log(struct scribe *b, const struct scribe_order *order, const int fds[2])
{
    struct log *log = calloc(1, sizeof *log);

    if (log == NULL) {
        (void)close(fds[0]);
        if (fds[1] >= 0)
            (void)close(fds[1]);
        return;
    }
    log->end.key = order->key;
    log->is_passed = (order->flags & AGENTD_SPAWN_PASS_OUTPUT) != 0;
    memcpy(log->name, order->name, sizeof log->name);
    open_file(b, log);
    log->next = b->logs;
    b->logs = log;
    for (int i = 0; i < 2; i++) {
        log->fds[i] = fds[i];
        if (fds[i] >= 0)
            (void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
        watch(b, log, i, true);
    }
}

/* Under another name first: a reader sees the old file or the new one, never a part. */
static void put(struct scribe *b, const struct scribe_order *order)
{
    char path[sizeof order->name + 8];

    (void)snprintf(path, sizeof path, "%s.new", order->name);
    int fd =
        openat(b->state_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_written = fd >= 0 && write(fd, order + 1, order->len) == (ssize_t)order->len &&
                      renameat(b->state_fd, path, b->state_fd, order->name) == 0;

    answer(b, order, is_written);
    keeper_close(&fd);
}

/* Renamed over an old file, a new one is written to the disk at once, and etcd may be about to
 * commit to the same disk. A record is read by the next keeper alone, and one that it cannot
 * read was cut short by the end of the machine. */
static void record(struct scribe *b, const struct scribe_order *order)
{
    struct stat st;
    int fd =
        openat(b->state_fd, order->name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

    bool is_written = fd >= 0 && write(fd, order + 1, order->len) == (ssize_t)order->len;

    answer(b, order, is_written);
    if (is_written && fstat(fd, &st) == 0 && st.st_size > (off_t)order->len)
        (void)!ftruncate(fd, (off_t)order->len);
    keeper_close(&fd);
}

/* False: the keeper is gone. */
static bool take_order(struct scribe *b)
{
    static _Alignas(8) char buf[sizeof(struct scribe_order) + SCRIBE_PUT_MAX];
    const struct scribe_order *order = (const struct scribe_order *)buf;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int) * 2)];
    } control;
    struct iovec part = { buf, sizeof buf };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t len = recvmsg(b->keeper_fd, &message, MSG_CMSG_CLOEXEC);
    int fds[2] = { -1, -1 };

    /* A keeper that was killed before it had read all that we said: its orders come next. */
    if (len < (ssize_t)sizeof *order)
        return len < 0 && (errno == EINTR || errno == ECONNRESET);
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);
    if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(cmsg), cmsg->cmsg_len - CMSG_LEN(0));
    if (order->kind == SCRIBE_LOG && fds[0] >= 0)
        begin_log(b, order, fds);
    else if (order->kind == SCRIBE_PUT)
        put(b, order);
    else if (order->kind == SCRIBE_RECORD)
        record(b, order);
    else if (order->kind == SCRIBE_SAY)
        (void)!write(STDERR_FILENO, order + 1, order->len);
    else if (order->kind == SCRIBE_DROP)
        (void)unlinkat(b->state_fd, order->name, 0);
    return true;
}

/* What the agents wrote before they were killed with the keeper is not lost. */
static void drain(struct scribe *b)
{
    for (struct log *log = b->logs; log != NULL; log = log->next) {
        log->is_passed = false;
        for (int i = 0; i < 2; i++) {
            while (read_pipe(b, log, i))
                ;
        }
    }
}

static void resume(struct scribe *b)
{
    b->has_paused = false;
    for (struct log *log = b->logs; log != NULL; log = log->next) {
        watch(b, log, 0, true);
        watch(b, log, 1, true);
    }
}

_Noreturn void keeper_scribe_main(int keeper_fd, int state_fd)
{
    struct scribe b = { .keeper_fd = keeper_fd, .state_fd = state_fd };
    struct epoll_event event = { .events = EPOLLIN };
    sigset_t all;

    (void)prctl(PR_SET_NAME, "agentd-scribe");
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL); /* SIGPIPE, too; it ends with the keeper */
    b.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    (void)epoll_ctl(b.epoll_fd, EPOLL_CTL_ADD, keeper_fd, &event);
    for (;;) {
        /* One at a time: serving one may free what another would point to. */
        int count = epoll_wait(b.epoll_fd, &event, 1, b.has_paused ? RETRY_MS : -1);

        if (b.has_paused)
            resume(&b);
        if (count == 1 && event.data.ptr != NULL)
            serve(&b, event.data.ptr);
        else if (count == 1 && !take_order(&b))
            break;
    }
    drain(&b);
    _exit(0);
}
