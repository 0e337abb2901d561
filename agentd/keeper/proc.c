#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"
#include "agentd/keeper/scribe.h"

int64_t keeper_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * KEEPER_SECOND + now.tv_nsec;
}

static int log_fd = -1;

void keeper_log_through(int scribe_fd)
{
    log_fd = scribe_fd;
}

/* Only if it takes that at once: a reader that hangs must not hang the fence. */
static void say(const char *line, size_t len)
{
    struct scribe_order order = { .kind = SCRIBE_SAY, .len = (uint32_t)len };
    struct iovec parts[] = { { &order, sizeof order }, { (void *)line, len } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    struct pollfd poll_fd = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (log_fd >= 0)
        (void)sendmsg(log_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0)
        (void)!write(STDERR_FILENO, line, len);
}

void keeper_log(const char *level, const char *format, ...)
{
    char line[1024];
    int len = snprintf(line, sizeof line, "level=%s component=keeper ", level);
    va_list args;

    va_start(args, format);
    len += vsnprintf(line + len, sizeof line - (size_t)len - 1, format, args);
    va_end(args);
    if (len > (int)sizeof line - 2)
        len = (int)sizeof line - 2;
    line[len++] = '\n';
    say(line, (size_t)len);
}

ssize_t keeper_read_at(int dir_fd, const char *name, char *buf, size_t size)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t len = fd < 0 ? -1 : read(fd, buf, size - 1);

    keeper_close(&fd);
    buf[len > 0 ? len : 0] = '\0';
    return len;
}

int keeper_write_at(int dir_fd, const char *name, const char *text)
{
    int fd = openat(dir_fd, name, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    int rc = 0;

    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        rc = -errno;
    keeper_close(&fd);
    return rc;
}

int keeper_overwrite(int fd, const char *text)
{
    ssize_t len = (ssize_t)strlen(text);
    ssize_t written = pwrite(fd, text, (size_t)len, 0);

    if (written < 0)
        return -errno;
    return written < len ? -ENOSPC : ftruncate(fd, len) < 0 ? -errno : 0;
}

/* The name in parentheses is the process's own choice and may hold anything, a ')' as well. */
bool keeper_read_stat(pid_t pid, struct keeper_process *ret)
{
    char path[32];
    char text[1024];

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (keeper_read_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return false;
    const char *p = strrchr(text, ')');
    if (p == NULL || p[1] != ' ')
        return false;
    *ret = (struct keeper_process){ .pid = pid, .state = p[2], .owner = OWNER_NONE };
    p += 3;
    for (int field = 4; field <= 22 && p != NULL; field++) {
        char *end = NULL;
        uint64_t value = strtoull(p, &end, 10);

        if (end == p)
            return false;
        if (field == 4)
            ret->ppid = (pid_t)value;
        else if (field == 6)
            ret->session = (pid_t)value;
        else if (field == 20)
            ret->threads = (int)value;
        else if (field == 22)
            ret->start_time = value;
        p = end;
    }
    return true;
}

/* As it is at that moment, two at a time: libc would read a thousand ahead, and of those who
 * fork and go nobody would be there any more when its turn comes. */
bool keeper_each_number(const char *path, keeper_number_fn fn, void *arg)
{
    enum { TWO = 64 }; /* bytes */
    struct dirent64 room[1];
    const char *entries = (const char *)room;
    int fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    ssize_t len = -1;

    while (fd >= 0 && (len = getdents64(fd, room, TWO)) > 0) {
        for (ssize_t at = 0; at < len;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            pid_t number = (pid_t)strtol(entry->d_name, NULL, 10);

            if (number > 0)
                fn(number, arg);
            at += entry->d_reclen;
        }
    }
    keeper_close(&fd);
    return len == 0;
}

struct threads {
    pid_t pid;
    bool is_found, runs, is_blocked;
    int64_t switches;
};

static int64_t number_behind(const char *text, const char *label)
{
    const char *found = strstr(text, label);

    return found != NULL ? strtoll(found + strlen(label), NULL, 10) : 0;
}

/* The name of a thread is its own choice, but a line break in it is printed as a \n. */
static void add_thread(pid_t thread, void *arg)
{
    static const char STATE[] = "\nState:\t";
    struct threads *sum = arg;
    char path[64], text[4096];
    const char *state;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)sum->pid, (int)thread);
    if (keeper_read_at(AT_FDCWD, path, text, sizeof text) <= 0 ||
        (state = strstr(text, STATE)) == NULL)
        return;
    state += sizeof STATE - 1;
    sum->is_found = true;
    sum->runs = sum->runs || *state == 'R' || *state == 'S';
    sum->is_blocked = sum->is_blocked || *state == 'D';
    sum->switches += number_behind(text, "\nvoluntary_ctxt_switches:") +
                     number_behind(text, "\nnonvoluntary_ctxt_switches:");
}

static bool read_threads(pid_t pid, struct threads *ret)
{
    char path[32];

    *ret = (struct threads){ .pid = pid };
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return keeper_each_number(path, add_thread, ret) && ret->is_found;
}

bool keeper_read_threads(pid_t pid, bool *ret_runs, int64_t *ret_switches)
{
    struct threads sum;

    if (!read_threads(pid, &sum))
        return false;
    *ret_runs = sum.runs;
    *ret_switches = sum.switches;
    return true;
}

bool keeper_is_blocked(pid_t pid)
{
    struct threads sum;

    return !read_threads(pid, &sum) || sum.is_blocked;
}

bool keeper_signal(pid_t pid, uint64_t start_time, int signal)
{
    struct keeper_process now;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    /* Only after the pidfd is open does the start time tell whom it stands for. */
    bool sent = fd >= 0 && keeper_read_stat(pid, &now) && now.start_time == start_time &&
                syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) == 0;

    keeper_close(&fd);
    return sent;
}

void keeper_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

bool keeper_has_spare_files(void)
{
    enum { SPARE = 32 }; /* half of which a process takes that is being made */
    int fds[SPARE];
    size_t count = 0;

    while (count < SPARE && (fds[count] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
        count++;
    for (size_t i = 0; i < count; i++)
        (void)close(fds[i]);
    return count == SPARE;
}

static int by_value(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

void keeper_keep_only(int *fds, size_t count)
{
    unsigned from = 3;

    qsort(fds, count, sizeof fds[0], by_value);
    for (size_t i = 0; i < count; i++) {
        if (fds[i] < (int)from)
            continue;
        if (fds[i] > (int)from)
            (void)close_range(from, (unsigned)fds[i] - 1, 0);
        from = (unsigned)fds[i] + 1;
    }
    (void)close_range(from, ~0U, 0);
}

void keeper_reset_signals(void)
{
    sigset_t none;

    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        struct sigaction action = { .sa_handler = SIG_DFL };
        (void)sigaction(signal, &action, NULL);
    }
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void keeper_copy(char *out, size_t size, const char *text)
{
    size_t len = strnlen(text, size - 1);

    memcpy(out, text, len);
    memset(out + len, 0, size - len);
}
