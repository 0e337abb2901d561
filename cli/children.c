#include "cli/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LOG_TAIL = 2048, MOST_ARGS = sizeof((struct cli_args *)0)->argv / sizeof(char *) };

void cli_args_add(struct cli_args *args, const char *fmt, ...)
{
    size_t left = sizeof args->text - args->used;
    va_list list;
    int len;

    va_start(list, fmt);
    len = vsnprintf(args->text + args->used, left, fmt, list);
    va_end(list);
    if (len < 0 || (size_t)len >= left || args->count + 1 == MOST_ARGS) {
        args->count = MOST_ARGS; /* too long: remembered until the start */
        return;
    }
    if (args->count == MOST_ARGS)
        return;
    args->argv[args->count++] = args->text + args->used;
    args->argv[args->count] = NULL;
    args->used += (size_t)len + 1;
}

/* After fork: only what is safe beside other threads. Does not return. */
static void become(char *const *argv, int log_fd, int report_fd, pid_t parent)
{
    sigset_t none;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127); /* it died before it could be told of */
    if (dup2(null_fd, STDIN_FILENO) >= 0 && dup2(log_fd, STDOUT_FILENO) >= 0 &&
        dup2(log_fd, STDERR_FILENO) >= 0)
        (void)execvp(argv[0], argv);
    (void)!write(report_fd, &errno, sizeof errno);
    _exit(127);
}

int cli_child_start(struct cli_child *child, const char *name, const struct cli_args *args,
                    const char *log, struct hf_error *err)
{
    HF_CLEANUP_FD int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    HF_CLEANUP_FD int failed_fd = -1;
    pid_t parent = getpid(), pid;
    int ends[2], why = 0;

    if (args->count == MOST_ARGS)
        return hf_error_set(err, HF_ELIMIT, "the command line of %s is too long", name);
    if (log_fd < 0)
        return hf_error_set(err, HF_EIO, "%s: %s", log, strerror(errno));
    if (pipe2(ends, O_CLOEXEC) != 0)
        return hf_error_set(err, HF_EIO, "%s: %s", name, strerror(errno));
    failed_fd = ends[0];
    pid = fork();
    if (pid == 0)
        become(args->argv, log_fd, ends[1], parent);
    (void)close(ends[1]);
    if (pid < 0)
        return hf_error_set(err, HF_EIO, "%s cannot be started: %s", name, strerror(errno));
    if (read(failed_fd, &why, sizeof why) == (ssize_t)sizeof why) { /* else exec closed it */
        (void)waitpid(pid, NULL, 0);
        return hf_error_set(err, why == ENOENT ? HF_ENOENT : HF_EIO,
                            "%s cannot be started: %s: %s", name, args->argv[0], strerror(why));
    }
    *child = (struct cli_child){ .name = name, .pid = pid };
    (void)snprintf(child->log, sizeof child->log, "%s", log);
    return HF_OK;
}

bool cli_child_has_ended(struct cli_child *child)
{
    if (child->pid != 0 && waitpid(child->pid, &child->status, WNOHANG) == child->pid)
        child->pid = 0;
    return child->pid == 0;
}

void cli_child_ask(const struct cli_child *child)
{
    if (child->pid != 0)
        (void)kill(child->pid, SIGTERM);
}

void cli_child_reap(struct cli_child *child, hf_ms grace)
{
    HF_CLEANUP_FD int pidfd = -1;

    if (cli_child_has_ended(child))
        return;
    pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
    (void)poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, (int)grace);
    if (cli_child_has_ended(child))
        return;
    (void)kill(child->pid, SIGKILL);
    (void)waitpid(child->pid, &child->status, 0);
    child->pid = 0;
}

void cli_child_show_log(const struct cli_child *child)
{
    HF_CLEANUP_FD int fd = open(child->log, O_RDONLY | O_CLOEXEC);
    char tail[LOG_TAIL];
    ssize_t n;

    if (fd < 0)
        return;
    if (lseek(fd, -(off_t)sizeof tail, SEEK_END) < 0)
        (void)lseek(fd, 0, SEEK_SET);
    n = read(fd, tail, sizeof tail);
    if (n > 0)
        (void)fprintf(stderr, "--- the end of %s\n%.*s---\n", child->log, (int)n, tail);
}
