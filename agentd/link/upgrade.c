#include "agentd/link/upgrade.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { LOOK_MS = 20, PATIENCE_MS = 30000, PATH_BYTES = 4096 };

static pid_t read_pid(int fd)
{
    char text[32] = "";

    return fd >= 0 && pread(fd, text, sizeof text - 1, 0) > 0 ? (pid_t)strtol(text, NULL, 10)
                                                              : 0;
}

static pid_t read_pid_file(const char *state_dir, const char *name)
{
    char path[PATH_BYTES];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", state_dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return read_pid(fd);
}

/* The keeper holds a lock on its file for as long as it lives: without it the number may be
 * that of anybody. */
static int find_keeper(const char *state_dir, pid_t *ret_pid, struct hf_error *err)
{
    char path[PATH_BYTES];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/keeper.pid", state_dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return hf_error_set(err, errno == EACCES ? HF_EDENIED : HF_EIO, "%s: %s", path,
                            strerror(errno));
    if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || read_pid(fd) <= 1)
        return hf_error_set(err, HF_ENOENT, "no agentd runs in %s", state_dir);
    *ret_pid = read_pid(fd);
    return HF_OK;
}

int link_upgrade(const char *state_dir, struct hf_error *err)
{
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
    pid_t keeper = 0, before, now = 0;
    int rc = find_keeper(state_dir, &keeper, err);

    if (rc != HF_OK)
        return rc;
    before = read_pid_file(state_dir, "link.pid");
    if (kill(keeper, SIGUSR2) != 0)
        return hf_error_set(err, errno == EPERM ? HF_EDENIED : HF_EIO, "agentd (pid %d): %s",
                            (int)keeper, strerror(errno));
    for (int waited = 0; waited < PATIENCE_MS; waited += LOOK_MS) {
        now = read_pid_file(state_dir, "link.pid");
        if (now > 1 && now != before)
            return printf("agentd (pid %d) goes on with link %d\n", (int)keeper, (int)now) < 0
                       ? HF_EIO
                       : HF_OK;
        (void)nanosleep(&pause, NULL);
    }
    return hf_error_set(err, HF_ETIMEOUT,
                        "agentd (pid %d) has no new link after %d s; its log "
                        "says why",
                        (int)keeper, PATIENCE_MS / 1000);
}
