#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

/* Why a scan after which nobody had to be signalled proves that all are: a process with a
 * SIGSTOP or SIGKILL pending cannot fork any more, so whoever was made by one that had been
 * signalled before the scan was there when the scan began, and /proc lists by growing pid
 * everything that is there from begin to end. Hence everybody is signalled once, even who
 * stands still already: it could have been continued by one that we had not found yet. */

static bool add(struct keeper_scan *scan, const struct keeper_process *process)
{
    if (scan->count == scan->cap) {
        size_t cap = scan->cap == 0 ? 256 : scan->cap * 2;
        struct keeper_process *list = realloc(scan->list, cap * sizeof *list);

        if (list == NULL)
            return false;
        scan->list = list;
        scan->cap = cap;
    }
    scan->list[scan->count++] = *process;
    return true;
}

static const struct keeper_process *look_up(const struct keeper_scan *scan, pid_t pid)
{
    size_t low = 0;
    size_t high = scan->count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (scan->list[mid].pid == pid)
            return &scan->list[mid];
        if (scan->list[mid].pid < pid)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* The number of a shim that was reaped may be anybody's by now. */
static bool is_shim_of(const struct keeper_slot *s, pid_t pid)
{
    return s->shim == pid && pid > 0 && !s->shim_gone;
}

/* A child of ours that we did not make: its shim was killed, or a helper's parent. */
static bool is_stray(const struct keeper *k, pid_t pid)
{
    if (pid == k->link || pid == k->scribe)
        return false;
    for (size_t i = 0; i < k->slot_count; i++) {
        const struct keeper_slot *s = k->slots[i];

        if (is_shim_of(s, pid) || (s->cgroup_fd >= 0 && s->a.pid == pid && !s->main_gone))
            return false;
    }
    return true;
}

static int32_t owner_of(const struct keeper *k, const struct keeper_process *process)
{
    /* A process may have moved while we looked, so the way up may be a circle. */
    for (int depth = 0; process != NULL && depth < 4096; depth++) {
        if (process->ppid == k->pid)
            return is_stray(k, process->pid) ? OWNER_STRAY : OWNER_NONE;
        for (size_t i = 0; i < k->slot_count; i++) {
            if (is_shim_of(k->slots[i], process->ppid))
                return (int32_t)i;
        }
        process = look_up(&k->scan, process->ppid);
    }
    return OWNER_NONE;
}

static void look(struct keeper_scan *scan)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;
    struct keeper_process process;

    scan->count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0 && keeper_read_stat(pid, &process) && !add(scan, &process))
            break;
    }
    if (dir != NULL)
        (void)closedir(dir);
}

void keeper_scan(struct keeper *k)
{
    look(&k->scan);
    for (size_t i = 0; i < k->scan.count; i++)
        k->scan.list[i].owner = owner_of(k, &k->scan.list[i]);
    for (size_t i = 0; i < k->scan.count; i++) {
        if (k->scan.list[i].owner == OWNER_STRAY)
            (void)keeper_signal(k->scan.list[i].pid, k->scan.list[i].start_time, SIGKILL);
    }
}

static int32_t index_of(const struct keeper *k, const struct keeper_slot *s)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i] == s)
            return (int32_t)i;
    }
    return OWNER_NONE;
}

static struct keeper_stopped *find_stopped(struct keeper_slot *s,
                                           const struct keeper_process *process)
{
    for (size_t i = 0; i < s->stopped_count; i++) {
        if (s->stopped[i].pid == process->pid &&
            s->stopped[i].start_time == process->start_time)
            return &s->stopped[i];
    }
    return NULL;
}

static bool remember(struct keeper_slot *s, const struct keeper_process *process)
{
    if (s->stopped_count == s->stopped_cap) {
        size_t cap = s->stopped_cap == 0 ? 16 : s->stopped_cap * 2;
        struct keeper_stopped *list = realloc(s->stopped, cap * sizeof *list);

        if (list == NULL)
            return false;
        s->stopped = list;
        s->stopped_cap = cap;
    }
    s->stopped[s->stopped_count++] =
        (struct keeper_stopped){ .pid = process->pid,
                                 .start_time = process->start_time,
                                 .was_stopped = process->state == 'T' };
    return true;
}

/* A zombie whose other threads live on is none. */
static bool is_dead(const struct keeper_process *process)
{
    return process->state == 'X' || (process->state == 'Z' && process->threads <= 1);
}

static bool stop_one(struct keeper_slot *s, struct keeper_process *process)
{
    const struct keeper_stopped *known = find_stopped(s, process);

    if (is_dead(process))
        return true;
    if (known != NULL && process->state != 'R' && process->state != 'S')
        return true;
    /* The state as it is now, not as it was when the scan came by. */
    if (known == NULL && (!keeper_read_stat(process->pid, process) || !remember(s, process)))
        return false;
    (void)keeper_signal(process->pid, process->start_time, SIGSTOP);
    return false;
}

static bool stop_all(struct keeper *k, struct keeper_slot *s)
{
    int32_t index = index_of(k, s);
    bool still = true;

    for (size_t i = 0; i < k->scan.count; i++) {
        if (k->scan.list[i].owner == index && !stop_one(s, &k->scan.list[i]))
            still = false;
    }
    return still;
}

bool keeper_tree_freeze(struct keeper *k, struct keeper_slot *s)
{
    if (s->cgroup_fd < 0)
        return stop_all(k, s);
    (void)keeper_write_at(s->cgroup_fd, "cgroup.freeze", "1");
    return keeper_cgroup_event(s->cgroup_fd, "frozen") ||
           !keeper_cgroup_event(s->cgroup_fd, "populated");
}

bool keeper_tree_thaw(struct keeper *k, struct keeper_slot *s)
{
    (void)k;
    if (s->cgroup_fd >= 0) {
        (void)keeper_write_at(s->cgroup_fd, "cgroup.freeze", "0");
        return !keeper_cgroup_event(s->cgroup_fd, "frozen");
    }
    for (size_t i = 0; i < s->stopped_count; i++) {
        if (!s->stopped[i].was_stopped)
            (void)keeper_signal(s->stopped[i].pid, s->stopped[i].start_time, SIGCONT);
    }
    s->stopped_count = 0;
    return true;
}

static size_t count_lines(int dir_fd, const char *name)
{
    char text[4096];
    size_t count = 0;

    (void)keeper_read_at(dir_fd, name, text, sizeof text);
    for (const char *p = text; *p != '\0'; p++)
        count += *p == '\n';
    return count;
}

size_t keeper_tree_kill(struct keeper *k, struct keeper_slot *s)
{
    int32_t index = index_of(k, s);
    size_t count = 0;

    if (s->cgroup_fd >= 0) {
        if (!keeper_cgroup_event(s->cgroup_fd, "populated"))
            return 0;
        count = count_lines(s->cgroup_fd, "cgroup.procs");
        (void)keeper_write_at(s->cgroup_fd, "cgroup.kill", "1");
        return count > 0 ? count : 1;
    }
    for (size_t i = 0; i < k->scan.count; i++) {
        const struct keeper_process *process = &k->scan.list[i];

        if (process->owner == OWNER_STRAY && s->shim_gone && !is_dead(process))
            count++;
        if (process->owner != index || is_dead(process))
            continue;
        count++;
        (void)keeper_signal(process->pid, process->start_time, SIGKILL);
    }
    /* An intact shim ends by itself when it has no child left. */
    return s->shim_gone ? count : count + 1;
}

static bool is_below(const struct keeper_scan *scan, const struct keeper_process *process,
                     pid_t root)
{
    for (int depth = 0; process != NULL && depth < 4096; depth++) {
        if (process->pid == root)
            return true;
        process = look_up(scan, process->ppid);
    }
    return false;
}

size_t keeper_tree_kill_below(struct keeper_scan *scan, pid_t root)
{
    size_t count = 0;

    look(scan);
    for (size_t i = 0; i < scan->count; i++) {
        const struct keeper_process *process = &scan->list[i];

        if (process->pid != root && is_below(scan, process, root) && !is_dead(process) &&
            keeper_signal(process->pid, process->start_time, SIGKILL))
            count++;
    }
    return count;
}
