/* owner.c - whose process it is, where each agent has a cgroup and somebody has left it.
 *
 * Whoever is below an agent's first process is the agent's, wherever it was moved to. Who has
 * lost its parent is the keeper's child, and told by what it has inherited: its cgroup, its
 * session, its output, its environment; or by that only one agent was there to make it. Nobody
 * is taken for an agent's who may be another's, or the link's. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define OF_LINK "HOLDFAST_STARTED_BY=" /* as agentd/link/stray.c marks its programs */

enum { PIECES_MAX = 64 }; /* of an environment, which nobody makes longer than that */

static uint64_t to_ticks(int64_t ns)
{
    return (uint64_t)(ns / (KEEPER_SECOND / sysconf(_SC_CLK_TCK)));
}

/* A number stays taken as long as it is that of a session. */
static bool is_of_session(const struct keeper_slot *s, const struct keeper_process *process)
{
    return s->a.pid > 0 && process->session == s->a.pid &&
           (!s->main_gone || process->start_time <= to_ticks(s->a.exit.ended_ns));
}

static bool is_end_of(int log_fd, pid_t pid, int number)
{
    char path[48], expected[48], target[48];
    struct stat st;

    if (log_fd < 0 || fstat(log_fd, &st) < 0)
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, number);
    int len = snprintf(expected, sizeof expected, "pipe:[%ju]", (uintmax_t)st.st_ino);
    return readlink(path, target, sizeof target) == len &&
           memcmp(target, expected, (size_t)len) == 0;
}

/* Only the agent was given the other ends of these. */
static bool has_output(const struct keeper_slot *s, pid_t pid)
{
    for (int number = STDOUT_FILENO; number <= STDERR_FILENO; number++) {
        if (is_end_of(s->log_fds[0], pid, number) || is_end_of(s->log_fds[1], pid, number))
            return true;
    }
    return false;
}

struct marks {
    char instance[AGENTD_ID_BYTES];
    bool is_of_link;
    bool is_blocked, is_read;
};

static void take_entry(const char *entry, struct marks *marks)
{
    if (strncmp(entry, OF_LINK, strlen(OF_LINK)) == 0)
        marks->is_of_link = true;
    if (strncmp(entry, KEEPER_INSTANCE_ENV, strlen(KEEPER_INSTANCE_ENV)) == 0)
        keeper_copy(marks->instance, sizeof marks->instance,
                    entry + strlen(KEEPER_INSTANCE_ENV));
}

static void take_entries(int fd, struct marks *marks)
{
    char text[4096];
    size_t have = 0;
    bool is_tail = false; /* of an entry that is longer than any of ours */
    ssize_t len = 1;

    for (int i = 0; i < PIECES_MAX && len > 0; i++) {
        len = read(fd, text + have, sizeof text - have);
        have += len > 0 ? (size_t)len : 0;
        char *entry = text, *end;
        while ((end = memchr(entry, '\0', (size_t)(text + have - entry))) != NULL) {
            if (!is_tail)
                take_entry(entry, marks);
            is_tail = false;
            entry = end + 1;
        }
        have = (size_t)(text + have - entry);
        memmove(text, entry, have);
        if (have == sizeof text) {
            is_tail = true;
            have = 0;
        }
    }
    marks->is_read = len == 0;
}

/* Whoever reads the memory of one that is blocked in the kernel may have to wait for it. */
static struct marks read_marks(pid_t pid)
{
    struct marks marks = { .is_blocked = keeper_is_blocked(pid) };
    char path[32];
    int fd;

    if (marks.is_blocked)
        return marks;
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        take_entries(fd, &marks);
    keeper_close(&fd);
    return marks;
}

/* Whether it was there when the process was made, all of it or what was left. */
static bool can_have_made(const struct keeper_slot *s, const struct keeper_process *process)
{
    bool is_of_old_keeper = s->a.state == AGENTD_STATE_ENDED && s->gone_ns == 0;

    return !is_of_old_keeper && s->a.start_time <= process->start_time &&
           (s->gone_ns == 0 || process->start_time <= to_ticks(s->gone_ns));
}

static int32_t find_only_one(const struct keeper *k, const struct keeper_process *process)
{
    int32_t found = OWNER_NONE;

    if (process->start_time <= to_ticks(k->forgotten_gone_ns))
        return OWNER_NONE;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (!can_have_made(k->slots[i], process))
            continue;
        if (found != OWNER_NONE)
            return OWNER_NONE;
        found = (int32_t)i;
    }
    return found;
}

static int32_t find_by_marks(const struct keeper *k, const struct keeper_process *process)
{
    struct marks marks = read_marks(process->pid);

    if (marks.is_blocked)
        return OWNER_UNSURE;
    if (marks.is_of_link)
        return OWNER_NONE;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (strcmp(k->slots[i]->a.who.instance, marks.instance) == 0)
            return (int32_t)i;
    }
    return marks.is_read && marks.instance[0] == '\0' ? find_only_one(k, process) : OWNER_NONE;
}

static int32_t find_orphans(const struct keeper *k, const struct keeper_process *process)
{
    int32_t owner = keeper_cgroup_find(k, process->pid);

    for (size_t i = 0; i < k->slot_count && owner == OWNER_NONE; i++) {
        const struct keeper_slot *s = k->slots[i];

        if (keeper_stopped_find(s, process) != NULL || is_of_session(s, process) ||
            has_output(s, process->pid))
            owner = (int32_t)i;
    }
    return owner != OWNER_NONE ? owner : find_by_marks(k, process);
}

int32_t keeper_owner_find(const struct keeper *k, const struct keeper_process *process)
{
    if (process->ppid != k->pid)
        return OWNER_ABOVE;
    if (process->pid == k->link || process->pid == k->scribe || process->state == 'X' ||
        process->start_time < k->born)
        return OWNER_NONE;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->a.pid == process->pid && !k->slots[i]->main_gone)
            return (int32_t)i;
    }
    return find_orphans(k, process);
}

static bool is_made_by_us(const struct keeper *k, pid_t pid)
{
    if (pid == k->link || pid == k->scribe)
        return true;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->a.pid == pid && !k->slots[i]->main_gone)
            return true;
    }
    return false;
}

/* Each number has a space behind it. Nobody but us takes one off that list while we read it. A
 * kernel may not have it. */
bool keeper_has_orphans(const struct keeper *k)
{
    char path[64], text[1024];
    pid_t number = 0;
    ssize_t len = -1;
    bool found = false;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)k->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (len = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < len && !found; i++) {
            bool is_digit = text[i] >= '0' && text[i] <= '9';

            found = !is_digit && !is_made_by_us(k, number);
            number = is_digit ? number * 10 + (text[i] - '0') : 0;
        }
    }
    keeper_close(&fd);
    return found || len < 0;
}
