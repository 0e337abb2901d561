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

enum { LOOK_MS = 20, PATIENCE_MS = 30000, PATH_BYTES = 4096, TEXT_BYTES = 512 };

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

static void read_text(const char *state_dir, const char *name, char ret_text[TEXT_BYTES])
{
    char path[PATH_BYTES];
    HF_CLEANUP_FD int fd = -1;
    ssize_t len;

    (void)snprintf(path, sizeof path, "%s/%s", state_dir, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    len = fd >= 0 ? pread(fd, ret_text, TEXT_BYTES - 1, 0) : 0;
    ret_text[len > 0 ? len : 0] = '\0';
    ret_text[strcspn(ret_text, "\n")] = '\0';
}

void link_upgrade_refuse(const char *state_dir, const char *why)
{
    char path[PATH_BYTES], new[PATH_BYTES + 8];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/link.why", state_dir);
    (void)snprintf(new, sizeof new, "%s.new", path);
    fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && dprintf(fd, "%s\n", why) > 0)
        (void)rename(new, path);
}

static void forget_refusal(const char *state_dir)
{
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/link.why", state_dir);
    (void)unlink(path);
}

/* 1: there is a new link. 0: not yet. Below 0: it is not coming. */
static int look_for_link(const char *state_dir, pid_t before, const char *failed_before,
                         struct hf_error *err)
{
    char failed[TEXT_BYTES], why[TEXT_BYTES];
    pid_t now = read_pid_file(state_dir, "link.pid");

    if (now > 1 && now != before)
        return printf("agentd goes on with link %d\n", (int)now) < 0 ? HF_EIO : 1;
    read_text(state_dir, "link.failed", failed);
    read_text(state_dir, "link.why", why);
    if (why[0] != '\0')
        return hf_error_set(err, HF_EIO, "no new link: %s", why);
    if (failed[0] == '\0' || strcmp(failed, failed_before) == 0)
        return 0;
    return hf_error_set(err, HF_EIO,
                        "the new link (pid %ld) ended with status %ld before it was ready; the "
                        "log of agentd says why. The agents run until their lease ends, and "
                        "agentd tries again",
                        strtol(failed, NULL, 10),
                        strtol(failed + strcspn(failed, " "), NULL, 10));
}

int link_upgrade(const char *state_dir, struct hf_error *err)
{
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
    char failed[TEXT_BYTES];
    pid_t keeper = 0, before;
    int rc = find_keeper(state_dir, &keeper, err);

    if (rc != HF_OK)
        return rc;
    before = read_pid_file(state_dir, "link.pid");
    read_text(state_dir, "link.failed", failed);
    forget_refusal(state_dir);
    if (kill(keeper, SIGUSR2) != 0)
        return hf_error_set(err, errno == EPERM ? HF_EDENIED : HF_EIO, "agentd (pid %d): %s",
                            (int)keeper, strerror(errno));
    for (int waited = 0; waited < PATIENCE_MS && rc == 0; waited += LOOK_MS) {
        (void)nanosleep(&pause, NULL);
        rc = look_for_link(state_dir, before, failed, err);
    }
    if (rc != 0)
        return rc > 0 ? HF_OK : rc;
    return hf_error_set(err, HF_ETIMEOUT,
                        "agentd (pid %d) has no new link that is ready after %d s; its log "
                        "says why",
                        (int)keeper, PATIENCE_MS / 1000);
}
