#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define UNSURE_LIMIT (250 * KEEPER_MS) /* who is blocked for longer may be so for ever */

/* Whoever is found is signalled at once, not after the scan: what forks and goes is another
 * process by then. Numbers grow, so who is made meanwhile is found later in the same scan.
 *
 * A process with a SIGSTOP or SIGKILL pending cannot fork any more. But one that is stopped can
 * be continued by one that was not found yet, or has not stopped yet, and a look at one after
 * the other could find each of them at a moment at which it stands. So a tree stands still only
 * when two scans in a row found the same processes, all standing, and none of them was given a
 * processor in between: then at the moment between the scans nobody was left who could wake
 * anybody. */

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
        if (is_shim_of(k->slots[i], pid))
            return false;
    }
    return true;
}

/* Who is above a process, in the words of one who looks for it: OWNER_ABOVE when only the
 * parent could tell. */
struct search {
    struct keeper_scan *scan;
    int32_t (*owner)(const struct search *search, const struct keeper_process *process);
    void (*act)(const struct search *search, struct keeper_process *process, int pidfd);
    struct keeper *keeper;
    int64_t now;
    pid_t root;
    size_t *count;
};

static int32_t owner_with_cgroups(const struct search *search,
                                  const struct keeper_process *process)
{
    return keeper_owner_find(search->keeper, process);
}

static int32_t owner_behind_shims(const struct search *search,
                                  const struct keeper_process *process)
{
    const struct keeper *k = search->keeper;

    /* Who was there before us, of whoever became us, is nobody's business here. */
    if (process->ppid == k->pid)
        return process->start_time >= k->born && is_stray(k, process->pid) ? OWNER_STRAY
                                                                           : OWNER_NONE;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (is_shim_of(k->slots[i], process->ppid))
            return (int32_t)i;
    }
    return OWNER_ABOVE;
}

static int32_t owner_below_root(const struct search *search,
                                const struct keeper_process *process)
{
    return process->ppid == search->root ? 0 : OWNER_ABOVE;
}

/* The parent as it is now. Its number can have become another's since the child was read; but
 * then the child has another parent, too. */
static bool read_parent(const struct keeper_process *child, struct keeper_process *ret)
{
    struct keeper_process again;

    return keeper_read_stat(child->ppid, ret) && keeper_read_stat(child->pid, &again) &&
           again.start_time == child->start_time && again.ppid == child->ppid;
}

/* Then somebody may be there whom we could not look at. */
static bool is_for_want(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* Whoever stands above it, as far up as this scan does not know. A process may move while we
 * look, when its parent ends. */
static int32_t find_owner(const struct search *search, struct keeper_process process)
{
    struct keeper_process parent;
    const struct keeper_process *known;
    int tries = 0;

    for (int depth = 0; depth < 4096; depth++) {
        int32_t owner = search->owner(search, &process);

        if (owner != OWNER_ABOVE)
            return owner;
        known = look_up(search->scan, process.ppid);
        if (process.ppid <= 1 || (known != NULL && known->owner == OWNER_NONE))
            return OWNER_NONE;
        if (read_parent(&process, &parent)) {
            if (known != NULL && known->start_time == parent.start_time)
                return known->owner;
            process = parent;
        } else if (++tries > 8 || !keeper_read_stat(process.pid, &process)) {
            search->scan->is_cut |= is_for_want(errno);
            return OWNER_NONE;
        }
    }
    return OWNER_NONE;
}

/* What is read of a process while its pidfd is open, and a signal still reaches through that,
 * is of the very process that gets the signal, however soon numbers are used again. */
static void visit(pid_t pid, void *arg)
{
    const struct search *search = arg;
    struct keeper_process process;
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

    if (pidfd >= 0 && keeper_read_stat(pid, &process)) {
        process.owner = find_owner(search, process);
        search->scan->is_unsure |= process.owner == OWNER_UNSURE;
        if (process.owner != OWNER_NONE && process.owner != OWNER_UNSURE)
            search->act(search, &process, pidfd);
        if (!add(search->scan, &process))
            search->scan->is_cut = true;
    } else if (is_for_want(errno)) {
        search->scan->is_cut = true;
    }
    keeper_close(&pidfd);
}

static void look(const struct search *search)
{
    search->scan->count = 0;
    search->scan->is_cut = search->scan->is_unsure = false;
    if (!keeper_each_number("/proc", visit, (void *)search))
        search->scan->is_cut = true;
}

static void send_to(int pidfd, int signal)
{
    (void)syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

struct keeper_stopped *keeper_stopped_find(const struct keeper_slot *s,
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
                                 .switches = -1,
                                 .was_stopped = process->state == 'T',
                                 .is_seen = true };
    return true;
}

/* A zombie whose other threads live on is none. */
static bool is_dead(const struct keeper_process *process)
{
    return process->state == 'X' || (process->state == 'Z' && process->threads <= 1);
}

/* Whether it stands as it stood at the last scan. Who is blocked in the kernel counts as
 * standing: it may stay so for long, and stops before it does anything else. */
static bool check_stopped(struct keeper_stopped *known, struct keeper_process *process)
{
    bool runs = true, has_run;
    int64_t switches = -1;

    known->is_seen = true;
    process->is_loose = true;
    if (!keeper_read_threads(process->pid, &runs, &switches))
        return false;
    has_run = known->switches >= 0 && known->switches != switches;
    /* Somebody has continued what had stopped itself. */
    if (has_run || process->state == 'R' || process->state == 'S')
        known->was_stopped = false;
    bool is_new = known->switches < 0 && !known->was_stopped;
    known->switches = switches;
    process->is_loose = has_run;
    return !runs && (process->state == 'D' || (!has_run && !is_new));
}

/* The first time the signal is sent whatever its state is: it may be continued right now. */
static void stop_one(struct keeper_slot *s, struct keeper_process *process, int pidfd)
{
    struct keeper_stopped *known = keeper_stopped_find(s, process);

    process->is_loose = known == NULL;
    process->is_still = is_dead(process) || (known != NULL && check_stopped(known, process));
    if (!process->is_still && (known != NULL || remember(s, process)))
        send_to(pidfd, SIGSTOP);
}

/* Stopped first, and killed after the scan: who dies gives its children to the keeper, and what
 * is found of them later could not be told from others'. */
static void stop_to_kill(struct keeper_slot *s, const struct keeper_process *process, int pidfd)
{
    struct keeper_stopped *known = keeper_stopped_find(s, process);

    if (known != NULL)
        known->is_seen = true;
    else
        (void)remember(s, process);
    send_to(pidfd, SIGSTOP);
}

/* It was moved back since it was stopped, and a cgroup that thaws does not continue it. */
static void stay_remembered(struct keeper_slot *s, const struct keeper_process *process)
{
    struct keeper_stopped *known = keeper_stopped_find(s, process);

    if (known != NULL)
        known->is_seen = true;
}

/* Whom its own cgroup has needs nothing of us. */
static void act_with_cgroups(const struct search *search, struct keeper_process *process,
                             int pidfd)
{
    struct keeper_slot *s = search->keeper->slots[process->owner];

    process->is_still = is_dead(process);
    if (process->is_still || s->goal == GOAL_RUN)
        return;
    if (s->a.state == AGENTD_STATE_ENDED) {
        send_to(pidfd, SIGKILL);
        return;
    }
    if (s->look_at > search->now)
        return;
    process->is_still = keeper_cgroup_find(search->keeper, process->pid) == process->owner;
    if (process->is_still) {
        stay_remembered(s, process);
        return;
    }
    if (s->goal == GOAL_STILL)
        stop_one(s, process, pidfd);
    else
        stop_to_kill(s, process, pidfd);
}

static void act_behind_shims(const struct search *search, struct keeper_process *process,
                             int pidfd)
{
    if (process->owner == OWNER_STRAY) {
        send_to(pidfd, SIGKILL);
        return;
    }
    struct keeper_slot *s = search->keeper->slots[process->owner];
    if (s->goal == GOAL_GONE)
        send_to(pidfd, SIGKILL);
    else if (s->goal == GOAL_STILL && s->look_at <= search->now)
        stop_one(s, process, pidfd);
}

void keeper_scan(struct keeper *k, int64_t now)
{
    bool has_cgroups = k->cgroup_fd >= 0;
    struct search search = { .scan = &k->scan,
                             .owner = has_cgroups ? owner_with_cgroups : owner_behind_shims,
                             .act = has_cgroups ? act_with_cgroups : act_behind_shims,
                             .keeper = k,
                             .now = now };

    look(&search);
}

void keeper_scan_nobody(struct keeper *k)
{
    k->scan.count = 0;
    k->scan.is_cut = k->scan.is_unsure = false;
}

static int32_t index_of(const struct keeper *k, const struct keeper_slot *s)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i] == s)
            return (int32_t)i;
    }
    return OWNER_NONE;
}

/* Those who have ended need not be remembered. Who was not looked at, in a scan that was cut,
 * may not have: found anew, it would be taken for one that had stopped itself. */
static void forget_unseen(struct keeper_slot *s, bool is_cut)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->stopped_count; i++) {
        if (!s->stopped[i].is_seen && !is_cut)
            continue;
        s->stopped[kept] = s->stopped[i];
        s->stopped[kept++].is_seen = false;
    }
    s->stopped_count = kept;
}

/* Who stands, but was not seen to stand twice, does not resist; nor who was told to, and has
 * yet to be given a processor. */
static bool have_all_stopped(struct keeper *k, struct keeper_slot *s, bool *ret_resists)
{
    int32_t index = index_of(k, s);
    bool still = !k->scan.is_cut;

    *ret_resists = k->scan.is_cut;
    for (size_t i = 0; i < k->scan.count; i++) {
        const struct keeper_process *process = &k->scan.list[i];

        if (process->owner != index || process->is_still)
            continue;
        still = false;
        *ret_resists = *ret_resists || process->is_loose;
    }
    forget_unseen(s, k->scan.is_cut);
    return still;
}

/* Who was outside may have made others, with numbers that the scan had passed already. And who
 * was not known for anybody's, for a while, may have been one. */
static bool is_nobody_outside(const struct keeper *k, struct keeper_slot *s, bool is_anybody,
                              int64_t since)
{
    if (is_anybody)
        s->looks_due = 2;
    else if (k->scan.is_unsure && (since == 0 || keeper_now() - since < UNSURE_LIMIT))
        s->looks_due = 1;
    else if (s->looks_due > 0)
        s->looks_due--;
    return s->looks_due == 0;
}

void keeper_tree_halt(struct keeper *k, struct keeper_slot *s)
{
    if (s->cgroup_fd < 0)
        return;
    (void)keeper_cgroup_freeze(s->cgroup_fd);
    keeper_cgroup_take_back(k, s);
}

bool keeper_tree_freeze(struct keeper *k, struct keeper_slot *s, bool *ret_may_run)
{
    bool stands = have_all_stopped(k, s, ret_may_run);
    int rc = 1;

    if (s->cgroup_fd >= 0) {
        rc = keeper_cgroup_freeze(s->cgroup_fd);
        stands = is_nobody_outside(k, s, !stands, s->freeze_since);
    }
    *ret_may_run = *ret_may_run || rc < 0;
    return rc == 1 && stands;
}

bool keeper_tree_thaw(struct keeper *k, struct keeper_slot *s)
{
    bool runs = s->cgroup_fd < 0 || keeper_cgroup_thaw(s->cgroup_fd);
    size_t kept = 0;

    (void)k;
    for (size_t i = 0; i < s->stopped_count; i++) {
        errno = 0;
        if (!s->stopped[i].was_stopped &&
            !keeper_signal(s->stopped[i].pid, s->stopped[i].start_time, SIGCONT) &&
            is_for_want(errno))
            s->stopped[kept++] = s->stopped[i];
    }
    s->stopped_count = kept;
    return runs && kept == 0;
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

/* The first process has come to us after its shim, and its status is still to be had. */
static bool is_unheard(const struct keeper *k, const struct keeper_slot *s,
                       const struct keeper_process *process)
{
    return process->pid == s->a.pid && process->ppid == k->pid && !s->main_gone;
}

/* Returns how many there are. */
static size_t kill_outside(struct keeper *k, struct keeper_slot *s)
{
    int32_t index = index_of(k, s);
    size_t count = k->scan.is_cut;

    for (size_t i = 0; i < k->scan.count; i++) {
        const struct keeper_process *process = &k->scan.list[i];

        if (process->owner != index || process->is_still)
            continue;
        (void)keeper_signal(process->pid, process->start_time, SIGKILL);
        count++;
    }
    forget_unseen(s, k->scan.is_cut);
    return count;
}

static size_t kill_with_cgroup(struct keeper *k, struct keeper_slot *s)
{
    size_t outside = kill_outside(k, s);
    bool is_nobody_left = is_nobody_outside(k, s, outside > 0, s->kill_since);

    if (!s->main_gone)
        send_to(s->pidfd, SIGKILL); /* it may have left its cgroup */
    if (!keeper_cgroup_is_populated(s->cgroup_fd))
        return is_nobody_left || outside > 0 ? outside : 1;
    size_t inside = count_lines(s->cgroup_fd, "cgroup.procs");
    keeper_cgroup_kill(s->cgroup_fd, s->kill_since != 0);
    return outside + (inside > 0 ? inside : 1);
}

size_t keeper_tree_kill(struct keeper *k, struct keeper_slot *s)
{
    int32_t index = index_of(k, s);
    size_t count = 0;

    if (s->cgroup_fd >= 0)
        return kill_with_cgroup(k, s);
    for (size_t i = 0; i < k->scan.count; i++) {
        const struct keeper_process *process = &k->scan.list[i];

        if ((process->owner == index || (process->owner == OWNER_STRAY && s->shim_gone)) &&
            (!is_dead(process) || is_unheard(k, s, process)))
            count++;
    }
    /* An intact shim ends by itself when it has no child left. */
    return s->shim_gone && !k->scan.is_cut ? count : count + 1;
}

static void kill_and_count(const struct search *search, struct keeper_process *process,
                           int pidfd)
{
    if (is_dead(process))
        return;
    send_to(pidfd, SIGKILL);
    (*search->count)++;
}

size_t keeper_tree_kill_below(struct keeper_scan *scan, pid_t root)
{
    size_t count = 0;
    struct search search = { .scan = scan,
                             .owner = owner_below_root,
                             .act = kill_and_count,
                             .root = root,
                             .count = &count };

    look(&search);
    return count;
}
