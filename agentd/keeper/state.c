#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define RECORD_MAGIC  UINT32_C(0x48464b52)
#define SCRIBE_ROUNDS 1000 /* 5 s: a disk may hang, and agents are to be started */

/* run/<instance>: what the next keeper must know of a process tree. The blob follows. */
struct record {
    uint32_t magic;
    uint32_t version;
    int32_t shim; /* 0: it is in a cgroup */
    uint32_t reserved;
    uint64_t shim_start;
    struct agentd_agent a;
};

size_t keeper_state_encode(const struct keeper_slot *s, char *buf, size_t size)
{
    struct record record = { .magic = RECORD_MAGIC,
                             .version = AGENTD_PROTOCOL_VERSION,
                             .shim = s->shim,
                             .shim_start = s->shim_start,
                             .a = s->a };

    record.a.head.length = (uint32_t)sizeof record.a + s->a.blob_len;
    if (sizeof record + s->a.blob_len > size)
        return 0;
    memcpy(buf, &record, sizeof record);
    if (s->a.blob_len > 0)
        memcpy(buf + sizeof record, s->blob, s->a.blob_len);
    return sizeof record + s->a.blob_len;
}

static int make_path(const char *path)
{
    char part[AGENTD_PATH_BYTES];

    for (size_t len = 1; len <= strlen(path); len++) {
        if (path[len] != '/' && path[len] != '\0')
            continue;
        keeper_copy(part, len + 1 < sizeof part ? len + 1 : sizeof part, path);
        if (mkdir(part, 0700) < 0 && errno != EEXIST)
            return -errno;
    }
    return 0;
}

static int open_dir(struct keeper *k)
{
    char *absolute = NULL;
    int rc = make_path(k->state_dir);

    if (rc == 0 && (absolute = realpath(k->state_dir, NULL)) == NULL)
        rc = -errno;
    if (absolute != NULL && strlen(absolute) >= sizeof k->state_dir)
        rc = -ENAMETOOLONG;
    if (absolute != NULL && rc == 0) {
        keeper_copy(k->state_dir, sizeof k->state_dir, absolute);
        k->state_fd = open(absolute, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        if (k->state_fd < 0 || (mkdirat(k->state_fd, "agents", 0700) < 0 && errno != EEXIST) ||
            (mkdirat(k->state_fd, "run", 0700) < 0 && errno != EEXIST))
            rc = -errno;
    }
    free(absolute);
    return rc;
}

/* The pid is written after the lock was taken, so a loser may have to look twice. */
static void name_holder(const struct keeper *k)
{
    char text[32] = "";

    for (int i = 0; i < 100 && keeper_read_at(k->state_fd, "keeper.pid", text, 32) <= 0; i++)
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10 * KEEPER_MS }, NULL);
    (void)dprintf(STDERR_FILENO, "agentd: another agentd (pid %ld) uses %s\n",
                  strtol(text, NULL, 10), k->state_dir);
}

static int lock(struct keeper *k)
{
    char text[32];

    k->lock_fd =
        openat(k->state_fd, "keeper.pid", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (k->lock_fd < 0)
        return -errno;
    if (flock(k->lock_fd, LOCK_EX | LOCK_NB) < 0) {
        name_holder(k);
        return -EBUSY;
    }
    /* The lock is what counts. The number is for who is turned away. */
    (void)snprintf(text, sizeof text, "%d\n", (int)k->pid);
    int rc = keeper_overwrite(k->lock_fd, text);
    if (rc < 0) {
        keeper_log("warn", "event=unrecorded what=pid why=\"%s\"", strerrordesc_np(-rc));
        (void)!ftruncate(k->lock_fd, 0); /* it would be another's */
    }
    return 0;
}

int keeper_state_open(struct keeper *k)
{
    char text[AGENTD_BOOT_BYTES + 1];
    int rc = open_dir(k);

    if (rc == 0)
        rc = lock(k);
    if (rc < 0 && rc != -EBUSY)
        (void)dprintf(STDERR_FILENO, "agentd: cannot use %s: %s\n", k->state_dir,
                      strerrordesc_np(-rc));
    if (rc < 0)
        return rc;
    (void)keeper_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", text, sizeof text);
    text[strcspn(text, "\n")] = '\0';
    keeper_copy(k->boot_id, sizeof k->boot_id, text);
    return 0;
}

int keeper_state_open_run(const struct keeper *k)
{
    return openat(k->state_fd, "run", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
}

static bool is_there(pid_t pid, uint64_t start_time)
{
    struct keeper_process process;

    return pid > 0 && start_time != 0 && keeper_read_stat(pid, &process) &&
           process.start_time == start_time && process.state != 'Z';
}

/* A shim whose keeper is gone ends its agent by itself; what it cannot we do. */
static void end_old(struct keeper *k, const struct record *record)
{
    const struct agentd_agent *a = &record->a;

    for (int i = 0; i < 1000; i++) {
        bool has_shim = is_there(record->shim, record->shim_start);
        bool has_main = is_there(a->pid, a->start_time);

        if (!has_shim && !has_main)
            return;
        if (has_shim)
            (void)keeper_tree_kill_below(&k->scan, record->shim);
        if (has_main) {
            (void)keeper_tree_kill_below(&k->scan, a->pid);
            (void)keeper_signal(a->pid, a->start_time, SIGKILL);
        }
        (void)nanosleep(&(struct timespec){ .tv_nsec = 10 * KEEPER_MS }, NULL);
    }
    keeper_log("error", "event=unkillable agent=%s pid=%d", a->who.agent, (int)a->pid);
}

/* How its first process ended may be known: then it was the rest of the tree that was left. */
static void mark_abandoned(struct agentd_agent *a)
{
    a->state = AGENTD_STATE_ENDED;
    a->exit.causes |= AGENTD_CAUSE_ABANDONED;
    a->frozen_ns = 0;
    a->done_order = a->order;
    if (a->exit.ended_ns != 0)
        return;
    a->exit.causes |= AGENTD_CAUSE_NO_STATUS;
    a->exit.ended_ns = keeper_now();
    keeper_copy(a->exit.evidence, sizeof a->exit.evidence,
                "its agentd was killed; the next one ended what was left");
}

/* A record under another name than its own could never be removed. */
static bool take_over(struct keeper *k, const char *name, const char *buf, size_t len)
{
    struct record record;
    struct keeper_slot *s;

    if (len < sizeof record)
        return false;
    memcpy(&record, buf, sizeof record);
    if (record.magic != RECORD_MAGIC || record.version != AGENTD_PROTOCOL_VERSION ||
        agentd_check_news(buf + offsetof(struct record, a), len - offsetof(struct record, a)) !=
            NULL ||
        strcmp(record.a.who.instance, name) != 0 || k->slot_count >= AGENTD_AGENTS_MAX)
        return false;
    if (record.a.state != AGENTD_STATE_ENDED) {
        if (strcmp(record.a.boot_id, k->boot_id) == 0)
            end_old(k, &record);
        mark_abandoned(&record.a);
        keeper_log("warn", "event=abandoned agent=%s pid=%d", record.a.who.agent,
                   (int)record.a.pid);
    }
    s = keeper_slot_new(k, &record.a.who);
    if (s == NULL)
        return false;
    s->a = record.a;
    s->goal = GOAL_GONE;
    s->main_gone = s->released = s->dirty = s->unrecorded = true;
    s->blob = record.a.blob_len > 0 ? malloc(record.a.blob_len) : NULL;
    if (s->blob == NULL)
        s->a.blob_len = 0;
    else
        memcpy(s->blob, buf + sizeof record, record.a.blob_len);
    return true;
}

static void recover_file(struct keeper *k, const char *name)
{
    static _Alignas(8) char buf[sizeof(struct record) + AGENTD_BLOB_MAX + 2];
    char path[300];

    (void)snprintf(path, sizeof path, "run/%s", name);
    ssize_t len = keeper_read_at(k->state_fd, path, buf, sizeof buf);
    if (len >= 0 && take_over(k, name, buf, (size_t)len))
        return;
    keeper_log("warn", "event=unreadable file=%s next=removed", path);
    (void)unlinkat(k->state_fd, path, 0);
}

/* The scribe of a killed keeper lives until it has written what it was given. What it writes
 * after we looked would be missed, or stay here for ever. */
static void wait_for_old_scribe(int run_fd)
{
    for (int i = 0; i < SCRIBE_ROUNDS; i++) {
        if (flock(run_fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return;
        (void)nanosleep(&(struct timespec){ .tv_nsec = 5 * KEEPER_MS }, NULL);
    }
    keeper_log("warn", "event=old_scribe_hangs next=\"what it has not written is not known\"");
}

void keeper_state_recover(struct keeper *k)
{
    char text[32];
    int fd = keeper_state_open_run(k);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (dir != NULL)
        wait_for_old_scribe(fd);
    if (keeper_read_at(k->state_fd, "lease", text, sizeof text) > 0)
        k->lost_lease_id = strtoll(text, NULL, 10);
    keeper_cgroup_empty_old(k);
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.')
            recover_file(k, entry->d_name);
    }
    if (dir != NULL)
        (void)closedir(dir);
}
