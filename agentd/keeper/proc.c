#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

int64_t keeper_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * KEEPER_SECOND + now.tv_nsec;
}

/* One line, only if stderr takes it at once: a reader that hangs must not hang the fence. */
void keeper_log(const char *level, const char *format, ...)
{
    char line[1024];
    int len = snprintf(line, sizeof line, "level=%s component=keeper ", level);
    va_list args;
    struct pollfd poll_fd = { .fd = STDERR_FILENO, .events = POLLOUT };

    va_start(args, format);
    len += vsnprintf(line + len, sizeof line - (size_t)len - 1, format, args);
    va_end(args);
    if (len > (int)sizeof line - 2)
        len = (int)sizeof line - 2;
    line[len++] = '\n';
    if (poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0)
        (void)!write(STDERR_FILENO, line, (size_t)len);
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
        else if (field == 20)
            ret->threads = (int)value;
        else if (field == 22)
            ret->start_time = value;
        p = end;
    }
    return true;
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
