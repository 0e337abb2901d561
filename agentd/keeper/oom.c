#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

#define SAMPLE_AFTER (5 * KEEPER_SECOND) /* whoever was counted before was reaped by then */

enum {
    OOM_PIDS = sizeof((struct keeper *)0)->oom_pids / sizeof(pid_t),
    RECORD_BYTES = 8192,
    RECORDS_MAX = 65536, /* more than any kernel keeps */
    OWN_SAMPLES = 64,    /* of agents at a time */
};

/* The log has numbers of the first pid namespace. */
static bool is_in_first_namespace(void)
{
    static const char FIRST[] = "pid:[4026531836]";
    char name[sizeof FIRST + 16];
    ssize_t len = readlink("/proc/self/ns/pid", name, sizeof name);

    return len == (ssize_t)sizeof FIRST - 1 && memcmp(name, FIRST, sizeof FIRST - 1) == 0;
}

void keeper_oom_init(struct keeper *k)
{
    k->oom_fd = -1;
    k->kmsg_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (!is_in_first_namespace() || lseek(k->kmsg_fd, 0, SEEK_END) < 0)
        keeper_close(&k->kmsg_fd);
    k->oom_is_told = k->kmsg_fd >= 0;
}

/* One record per read. A reader that was overrun gets EPIPE once, and EINVAL for a record that
 * is too long; both go on with the next. Returns whether none was lost. */
static bool read_kernel_log(struct keeper *k)
{
    static const char KILLED[] = "Killed process ";
    char record[RECORD_BYTES];
    bool is_whole = true;

    for (int i = 0; i < RECORDS_MAX && k->kmsg_fd >= 0; i++) {
        ssize_t len = read(k->kmsg_fd, record, sizeof record - 1);

        if (len < 0 && (errno == EPIPE || errno == EINVAL)) {
            is_whole = false;
            continue;
        }
        if (len <= 0)
            return is_whole;
        record[len] = '\0';
        const char *found = strstr(record, KILLED);
        if (found != NULL)
            k->oom_pids[k->oom_count++ % OOM_PIDS] =
                (pid_t)strtol(found + strlen(KILLED), NULL, 10);
    }
    return false;
}

/* Of those since it was about to be made: numbers are used again. */
static bool is_named(const struct keeper *k, const struct keeper_slot *s)
{
    for (size_t i = 0; i < OOM_PIDS && i < k->oom_count - s->oom_from; i++) {
        if (k->oom_pids[(k->oom_count - 1 - i) % OOM_PIDS] == s->a.pid)
            return true;
    }
    return false;
}

static int64_t count_in(const char *text)
{
    const char *found = strstr(text, "oom_kill ");

    return found != NULL ? strtoll(found + strlen("oom_kill "), NULL, 10) : -1;
}

int64_t keeper_oom_count(const struct keeper_slot *s)
{
    char text[512];
    int64_t count = -1;

    if (s->cgroup_fd >= 0 &&
        keeper_read_at(s->cgroup_fd, "memory.events", text, sizeof text) > 0)
        count = count_in(text);
    return count > 0 ? count : 0;
}

static int64_t count_all(const struct keeper *k)
{
    char text[512];
    ssize_t len = k->oom_fd < 0 ? -1 : pread(k->oom_fd, text, sizeof text - 1, 0);

    text[len > 0 ? len : 0] = '\0';
    return count_in(text);
}

void keeper_oom_begin(struct keeper *k, struct keeper_slot *s)
{
    (void)read_kernel_log(k);
    s->oom_from = k->oom_count;
    if (k->oom_is_told)
        return;
    keeper_close(&k->oom_fd); /* we may have been moved */
    k->oom_fd = keeper_cgroup_open_memory();
    s->oom_before = k->oom_sample = count_all(k);
    k->oom_sampled = keeper_now();
}

/* The next of them, in turn. */
static void sample_own(struct keeper *k)
{
    for (size_t i = 0; i < OWN_SAMPLES && i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[k->oom_next++ % k->slot_count];

        s->oom_own_before = s->oom_own_sample;
        s->oom_own_sample = keeper_oom_count(s);
    }
}

/* Who was counted so long ago was somebody's child, and says nothing of who ends now. */
void keeper_oom_sample(struct keeper *k)
{
    int64_t now = keeper_now();

    if (now - k->oom_sampled < SAMPLE_AFTER)
        return;
    k->oom_sampled = now;
    sample_own(k);
    if (k->oom_is_told)
        return;
    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (s->oom_before >= 0 && s->oom_before < k->oom_sample)
            s->oom_before = k->oom_sample;
    }
    k->oom_sample = count_all(k);
}

/* One of its own cgroup was killed lately. */
static bool own_cgroup_says_so(const struct keeper_slot *s)
{
    return keeper_oom_count(s) > s->oom_own_before;
}

/* Where the log cannot be read: one more of the cgroup that it shares with us was killed
 * lately, and nobody else was found to have been that. */
static bool shared_cgroup_says_so(struct keeper *k, const struct keeper_slot *s)
{
    if (k->oom_is_told || s->oom_before < 0 || count_all(k) <= s->oom_before)
        return false;
    for (size_t i = 0; i < k->slot_count; i++)
        k->slots[i]->oom_before++;
    return true;
}

bool keeper_oom_killed(struct keeper *k, struct keeper_slot *s)
{
    int status = s->a.exit.wait_status;

    /* So ends a shell whose last program was killed, and only its own cgroup can tell of that:
     * the log has a number that nobody has any more. */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL)
        return own_cgroup_says_so(s);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
        return false;
    bool is_whole = read_kernel_log(k);
    if (is_named(k, s))
        return true;
    /* A count of its cgroup may be of a child that was killed before. */
    if (k->oom_is_told && is_whole)
        return false;
    return own_cgroup_says_so(s) || shared_cgroup_says_so(k, s);
}
