#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

void keeper_oom_init(struct keeper *k)
{
    k->kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (k->kmsg_fd >= 0 && lseek(k->kmsg_fd, 0, SEEK_END) < 0)
        keeper_close(&k->kmsg_fd);
}

/* One record per read; a reader that was overrun gets EPIPE once. */
static void read_kernel_log(struct keeper *k)
{
    char record[1024];

    for (int i = 0; i < 4096 && k->kmsg_fd >= 0; i++) {
        ssize_t len = read(k->kmsg_fd, record, sizeof record - 1);

        if (len < 0 && errno == EPIPE)
            continue;
        if (len <= 0)
            return;
        record[len] = '\0';
        const char *found = strstr(record, "Killed process ");
        if (found != NULL)
            k->oom_pids[k->oom_count++ % (sizeof k->oom_pids / sizeof k->oom_pids[0])] =
                (pid_t)strtol(found + strlen("Killed process "), NULL, 10);
    }
}

static bool cgroup_says_so(const struct keeper_slot *s)
{
    char text[512];
    const char *found;

    if (s->cgroup_fd < 0 ||
        keeper_read_at(s->cgroup_fd, "memory.events", text, sizeof text) <= 0)
        return false;
    found = strstr(text, "oom_kill ");
    return found != NULL && strtol(found + strlen("oom_kill "), NULL, 10) > 0;
}

bool keeper_oom_killed(struct keeper *k, struct keeper_slot *s)
{
    int status = s->a.exit.wait_status;

    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return false;
    read_kernel_log(k);
    for (size_t i = 0; i < sizeof k->oom_pids / sizeof k->oom_pids[0]; i++) {
        if (k->oom_pids[i] == s->a.pid)
            return true;
    }
    return cgroup_says_so(s);
}
