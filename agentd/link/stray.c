#include "agentd/link/stray.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/link/proc.h"
#include "base/cleanup.h"

#define MARK "HOLDFAST_STARTED_BY="

enum { AT_ONCE = 256, ENVIRON = 32768 };

void link_stray_mark(const void *data, char ret_entry[LINK_STRAY_MARK])
{
    (void)snprintf(ret_entry, LINK_STRAY_MARK, MARK "%" PRIxPTR, (uintptr_t)data);
}

/* 0: it has none, or nobody may look. */
static uintptr_t read_mark(pid_t pid)
{
    char path[64], text[ENVIRON];
    HF_CLEANUP_FD int fd = -1;
    ssize_t len;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    text[len > 0 ? len : 0] = '\0';
    for (const char *entry = text; entry < text + len; entry += strlen(entry) + 1) {
        if (strncmp(entry, MARK, strlen(MARK)) == 0)
            return (uintptr_t)strtoumax(entry + strlen(MARK), NULL, 16);
    }
    return 0;
}

struct look {
    pid_t pid;
    uintptr_t mark;
    bool known;
};

static void look_at(uv_handle_t *handle, void *arg)
{
    struct look *look = arg;

    if (handle->type != UV_PROCESS || !uv_is_active(handle))
        return;
    look->known = look->known ||
                  uv_process_get_pid((const uv_process_t *)handle) == look->pid ||
                  (uintptr_t)handle->data == look->mark;
}

/* Whoever starts something in the background and waits for it must not lose that. */
static bool is_wanted(uv_loop_t *loop, pid_t pid)
{
    struct look look = { .pid = pid };

    uv_walk(loop, look_at, &look);
    if (look.known)
        return true;
    look.mark = read_mark(pid);
    if (look.mark != 0)
        uv_walk(loop, look_at, &look);
    return look.known;
}

/* With all that is below it, which would come to us next. */
static void end_tree(pid_t pid)
{
    pid_t tree[AT_ONCE];
    size_t count = link_proc_find_below(pid, true, tree, AT_ONCE);

    for (size_t i = 0; i < count; i++)
        (void)kill(tree[i], SIGKILL);
    (void)kill(pid, SIGKILL);
}

void link_stray_sweep(uv_loop_t *loop)
{
    siginfo_t info;
    pid_t children[AT_ONCE];
    size_t count;

    /* As ever: there is nobody, which costs nothing to find out. */
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD)
        return;
    count = link_proc_find_below(getpid(), false, children, AT_ONCE);
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(loop, children[i]))
            continue;
        end_tree(children[i]);
        (void)waitpid(children[i], NULL, WNOHANG); /* or after the next one */
    }
}

void link_stray_begin(void)
{
    pid_t children[AT_ONCE];
    size_t count = link_proc_find_below(getppid(), false, children, AT_ONCE);

    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    for (size_t i = 0; i < count; i++) {
        if (children[i] != getpid() && read_mark(children[i]) != 0)
            end_tree(children[i]);
    }
}
