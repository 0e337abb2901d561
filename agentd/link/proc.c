#include "agentd/link/proc.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

enum {
    TEXT = 4096,
    MOST_THREADS = 64,
    MOST_THREADS_SHOWN = 18, /* with `.` and `..` */
    MOST_CHILDREN = 16,
    MOST_DEPTH = 32,
    MOST_OTHERS = 8192,
    MOST_SOCKETS = 16,
    MOST_FDS = 1024,
    NET_BYTES = 256 << 10,
    SPINS_PERCENT = 80,
    SPINS_MS = 700, /* for less than that nothing is said */
};

/* Words of a line of /proc/net/tcp and its like. */
enum { SOCKET_LOCAL = 1, SOCKET_REMOTE = 2, SOCKET_STATE = 3, SOCKET_INODE = 9 };

/* A small file of /proc, with a NUL; false: it cannot be read. */
static bool read_text(const char *path, char *text, size_t size)
{
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = 0;
    ssize_t n = -1;

    while (fd >= 0 && len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return fd >= 0 && n >= 0;
}

static bool read_of(pid_t pid, const char *name, char *text, size_t size)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    return read_text(path, text, size);
}

struct stat_line {
    char name[32];
    char state;
    pid_t parent;
    uint64_t ticks, start_time;
    int32_t threads;
};

/* The name in parentheses is the process's own choice and may hold anything, a ')' as well. */
static bool read_stat(pid_t pid, struct stat_line *ret)
{
    char text[TEXT], *name, *p;
    uint64_t fields[23] = { 0 };

    if (!read_of(pid, "stat", text, sizeof text) || (p = strrchr(text, ')')) == NULL ||
        (name = strchr(text, '(')) == NULL || p[1] != ' ')
        return false;
    *p = '\0';
    *ret = (struct stat_line){ .state = p[2] };
    for (size_t i = 0; name[i + 1] != '\0' && i < sizeof ret->name - 1; i++) {
        ret->name[i] = name[i + 1];
        if (name[i + 1] <= ' ' || name[i + 1] >= 127) /* whether a char has a sign or not */
            ret->name[i] = '?';
    }
    p += 3;
    for (int field = 4; field <= 22; field++) {
        char *end = NULL;

        fields[field] = strtoull(p, &end, 10);
        if (end == p)
            return false;
        p = end;
    }
    ret->parent = (pid_t)fields[4];
    ret->ticks = fields[14] + fields[15];
    ret->threads = (int32_t)fields[20];
    ret->start_time = fields[22];
    return true;
}

/* A thread that computes, or would if it had a processor. */
static bool is_ready(pid_t pid, const char *thread)
{
    char path[300], text[TEXT];
    const char *end;

    if (thread[0] == '.')
        return false;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%s/stat", (int)pid, thread);
    end = read_text(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    return end != NULL && end[1] == ' ' && end[2] == 'R';
}

/* Milliseconds that all threads together have waited for a processor. */
static int64_t read_waits(pid_t pid, bool *ret_ready)
{
    char path[64], text[128];
    int64_t sum = 0;
    DIR *threads;
    const struct dirent *entry;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    for (int i = 0; threads != NULL && i < MOST_THREADS && (entry = readdir(threads)) != NULL;
         i++) {
        char name[300], *at;

        (void)snprintf(name, sizeof name, "/proc/%d/task/%s/schedstat", (int)pid,
                       entry->d_name);
        if (entry->d_name[0] != '.' && read_text(name, text, sizeof text) &&
            (at = strchr(text, ' ')) != NULL)
            sum += strtoll(at, NULL, 10) / 1000000;
        *ret_ready = *ret_ready || is_ready(pid, entry->d_name);
    }
    if (threads != NULL)
        (void)closedir(threads);
    return sum;
}

/* That it may use. */
static int32_t count_processors(pid_t pid)
{
    cpu_set_t set;

    return sched_getaffinity(pid, sizeof set, &set) == 0
               ? CPU_COUNT(&set)
               : (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
}

static pid_t read_tracer(pid_t pid)
{
    static const char LABEL[] = "TracerPid:";
    char text[TEXT];
    const char *at = read_of(pid, "status", text, sizeof text) ? strstr(text, LABEL) : NULL;

    return at != NULL ? (pid_t)strtol(at + sizeof LABEL - 1, NULL, 10) : 0;
}

/* What a thread waited for is counted when it gets a processor, and not before: who is found
 * about to compute, again, has waited for all the time that it did not use. Threads that wait
 * for each other's processors are kept waiting by nobody else. */
static int64_t starved(const struct link_proc *before, const struct link_proc *now)
{
    int64_t length = now->at - before->at, used = now->cpu_ms - before->cpu_ms;
    int64_t idle = length - used, others = length * now->processors - used;
    int64_t waited = now->run_wait_ms - before->run_wait_ms;

    if (before->run_wait_ms == 0 || now->run_wait_ms == 0)
        waited = 0;
    if (before->ready && now->ready && waited < idle)
        waited = idle;
    waited = waited < others ? waited : others;
    return waited < 0 ? 0 : waited < length ? waited : length;
}

/* Between others that compute it gets less, and waits for the rest. */
static void compare(const struct link_proc *before, struct link_proc *now)
{
    int64_t used = now->cpu_ms - before->cpu_ms, length = now->at - before->at;

    if (before->at == 0 || length <= 0 || before->pid != now->pid ||
        before->start_time != now->start_time)
        return;
    now->cpu_percent = (int32_t)(used * 100 / length);
    now->starved_ms = starved(before, now);
    if ((used + now->starved_ms) * 100 / length >= SPINS_PERCENT)
        now->busy_since = before->busy_since != 0 ? before->busy_since : before->at;
    /* A program that starts, or works for a moment, does so as well. */
    now->computes = now->busy_since != 0 && now->at - now->busy_since >= SPINS_MS;
}

uint64_t link_proc_find(pid_t pid)
{
    struct stat_line line;

    return read_stat(pid, &line) && line.state != 'Z' ? line.start_time : 0;
}

bool link_proc_is_below(pid_t pid, pid_t ancestor)
{
    struct stat_line line;

    for (int depth = 0; depth < MOST_DEPTH && pid > 1 && read_stat(pid, &line); depth++) {
        if (line.parent == ancestor)
            return true;
        pid = line.parent;
    }
    return false;
}

bool link_proc_is(pid_t pid, uint64_t start_time)
{
    struct stat_line line;

    return read_stat(pid, &line) && line.start_time == start_time;
}

/* The line that says who it is is read last: whoever has the number then had it before. */
bool link_proc_read(pid_t pid, uint64_t start_time, bool whole, hf_ms now,
                    struct link_proc *proc)
{
    static long tick;
    struct link_proc next = {
        .pid = pid, .start_time = start_time, .at = now, .cpu_percent = -1
    };
    struct stat_line line;

    if (tick == 0)
        tick = sysconf(_SC_CLK_TCK);
    next.tracer = whole ? read_tracer(pid) : 0;
    next.run_wait_ms = whole ? read_waits(pid, &next.ready) : 0;
    next.processors = whole ? count_processors(pid) : 1;
    if (!read_stat(pid, &line) || line.start_time != start_time)
        return false;
    (void)snprintf(next.name, sizeof next.name, "%.15s", line.name);
    next.state = line.state;
    next.threads = line.threads;
    next.cpu_ms = (int64_t)line.ticks * 1000 / tick;
    compare(proc, &next);
    *proc = next;
    return true;
}

enum hf_process_shape link_proc_shape(const struct link_proc *proc)
{
    if (proc->state == 't' || proc->tracer != 0)
        return HF_PROCESS_TRACED;
    if (proc->state == 'T')
        return HF_PROCESS_STOPPED;
    return proc->state == 'D' ? HF_PROCESS_BLOCKED : HF_PROCESS_GOES;
}

const char *link_proc_word(const struct link_proc *proc)
{
    switch (link_proc_shape(proc)) {
    case HF_PROCESS_TRACED: return "a debugger holds it";
    case HF_PROCESS_STOPPED: return "it is stopped by a signal";
    case HF_PROCESS_BLOCKED: return "it is blocked in the kernel";
    case HF_PROCESS_GOES: break;
    }
    if (proc->computes)
        return "it computes without a pause";
    return proc->state == 'R' ? "it is about to compute" : "it sleeps";
}

/* For people. */

static const char *syscall_name(long number)
{
    switch (number) {
#define X(name)                                                                                \
    case SYS_##name: return #name
        X(read);
        X(write);
        X(readv);
        X(writev);
        X(pread64);
        X(pwrite64);
        X(futex);
        X(ppoll);
        X(pselect6);
        X(epoll_pwait);
        X(nanosleep);
        X(clock_nanosleep);
        X(recvfrom);
        X(recvmsg);
        X(sendto);
        X(sendmsg);
        X(accept);
        X(accept4);
        X(connect);
        X(wait4);
        X(waitid);
        X(flock);
        X(fcntl);
        X(fsync);
        X(fdatasync);
        X(openat);
        X(rt_sigsuspend);
        X(rt_sigtimedwait);
        X(restart_syscall);
#ifdef SYS_poll
        X(poll);
        X(select);
        X(epoll_wait);
        X(pause);
        X(open);
#endif
#undef X
    default: return "";
    }
}

/* "running", or the number of the call with its arguments; below 0 outside of one. False: it
 * cannot be read. */
static bool read_syscall(pid_t pid, const char *name, long *ret_number)
{
    char text[256], *end;

    if (!read_of(pid, name, text, sizeof text) || text[0] == '\0')
        return false;
    *ret_number = strtol(text, &end, 10);
    *ret_number = end == text ? -1 : *ret_number;
    return true;
}

static void describe_syscall(pid_t pid, struct hf_buf *ret)
{
    long number;

    if (!read_syscall(pid, "syscall", &number))
        return;
    if (number < 0)
        hf_buf_puts(ret, ", in no system call");
    else
        hf_buf_printf(ret, ", system call %ld%s%s", number,
                      syscall_name(number)[0] != '\0' ? " " : "", syscall_name(number));
}

/* " in read", of who sleeps; nothing where that cannot be read. */
static void name_syscall(pid_t pid, const char *name, struct hf_buf *ret)
{
    long number;

    if (!read_syscall(pid, name, &number) || number < 0)
        return;
    if (syscall_name(number)[0] != '\0')
        hf_buf_printf(ret, " in %s", syscall_name(number));
    else
        hf_buf_printf(ret, " in system call %ld", number);
}

void link_proc_say(const struct link_proc *proc, struct hf_buf *ret)
{
    bool sleeps = proc->state == 'S' && link_proc_shape(proc) == HF_PROCESS_GOES;

    hf_buf_puts(ret, link_proc_word(proc));
    if (proc->computes && sleeps)
        hf_buf_puts(ret, ", while its first thread sleeps");
    if (sleeps)
        name_syscall(proc->pid, "syscall", ret);
}

void link_proc_describe(const struct link_proc *proc, struct hf_buf *ret)
{
    char text[128];

    hf_buf_printf(ret, "pid %d, state %c, %d thread%s, %.2f s of CPU time", (int)proc->pid,
                  proc->state, proc->threads, proc->threads == 1 ? "" : "s",
                  (double)proc->cpu_ms / 1000);
    if (proc->cpu_percent >= 0)
        hf_buf_printf(ret, ", %d %% now", proc->cpu_percent);
    if (proc->tracer != 0)
        hf_buf_printf(ret, ", traced by pid %d", (int)proc->tracer);
    describe_syscall(proc->pid, ret);
    if (read_of(proc->pid, "wchan", text, sizeof text) && text[0] != '\0' &&
        strcmp(text, "0") != 0)
        hf_buf_printf(ret, ", wait channel %s", text);
}

static void describe_thread(pid_t pid, const char *tid, struct hf_buf *ret)
{
    char path[300];
    struct stat_line line;
    pid_t thread = (pid_t)strtol(tid, NULL, 10);

    if (thread <= 0 || !read_stat(thread, &line))
        return;
    hf_buf_printf(ret, "%s%s (%d, state %c", ret->len > 0 ? ", " : "", line.name, (int)thread,
                  line.state);
    (void)snprintf(path, sizeof path, "task/%s/syscall", tid);
    if (line.state != 'R')
        name_syscall(pid, path, ret);
    hf_buf_putc(ret, ')');
}

void link_proc_threads(pid_t pid, struct hf_buf *ret)
{
    char path[64];
    DIR *threads;
    const struct dirent *entry;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    for (int i = 0;
         threads != NULL && i < MOST_THREADS_SHOWN && (entry = readdir(threads)) != NULL; i++)
        describe_thread(pid, entry->d_name, ret);
    if (threads != NULL)
        (void)closedir(threads);
}

void link_proc_stack(pid_t pid, struct hf_buf *ret)
{
    char text[TEXT], *rest = text, *line;

    if (!read_of(pid, "stack", text, sizeof text))
        return;
    while ((line = strsep(&rest, "\n")) != NULL) {
        const char *frame = strstr(line, "] ");

        if (frame != NULL && ret->len < TEXT / 4)
            hf_buf_printf(ret, "%s%s", ret->len > 0 ? " < " : "", frame + 2);
    }
}

/* All processes, as far as they find room: the kernel need not list who is whose child. */
struct others {
    size_t count;
    struct {
        pid_t pid, parent;
    } list[MOST_OTHERS];
};

static struct others *find_others(void)
{
    struct others *others = hf_calloc(1, sizeof *others);
    DIR *all = others != NULL ? opendir("/proc") : NULL;
    const struct dirent *entry;
    struct stat_line line;

    while (all != NULL && others->count < MOST_OTHERS && (entry = readdir(all)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid <= 0 || !read_stat(pid, &line))
            continue;
        others->list[others->count].pid = pid;
        others->list[others->count++].parent = line.parent;
    }
    if (all != NULL)
        (void)closedir(all);
    return others;
}

static void describe_child(pid_t pid, struct hf_buf *ret)
{
    struct stat_line line;

    if (read_stat(pid, &line))
        hf_buf_printf(ret, "%s%s (pid %d, child of %d, state %c)", ret->len > 0 ? ", " : "",
                      line.name, (int)pid, (int)line.parent, line.state);
}

static size_t find_among_all(pid_t pid, bool deep, pid_t *ret_pids, size_t max)
{
    HF_CLEANUP_FREE struct others *others = find_others();
    size_t count = 0;

    for (size_t i = 0; others != NULL && i <= count && (deep || i == 0); i++) {
        pid_t parent = i == 0 ? pid : ret_pids[i - 1];

        for (size_t j = 0; j < others->count && count < max; j++) {
            if (others->list[j].parent == parent)
                ret_pids[count++] = others->list[j].pid;
        }
    }
    return count;
}

/* The children of all its threads. False: it is gone, or the kernel does not list them. */
static bool add_listed(pid_t pid, pid_t *pids, size_t *count, size_t max)
{
    char path[64], text[TEXT], *rest;
    const struct dirent *entry;
    bool is_listed = false;
    DIR *threads;

    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    threads = opendir(path);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        (void)snprintf(path, sizeof path, "/proc/%d/task/%ld/children", (int)pid,
                       strtol(entry->d_name, NULL, 10));
        if (!read_text(path, text, sizeof text))
            continue;
        is_listed = true;
        rest = text;
        for (long child; *count < max && (child = strtol(rest, &rest, 10)) > 0;)
            pids[(*count)++] = (pid_t)child;
    }
    if (threads != NULL)
        (void)closedir(threads);
    return is_listed;
}

/* Breadth first, so that of a deep tree the nearest are found. To look at every process of a
 * machine for one of them takes long, where there are many of both. */
size_t link_proc_find_below(pid_t pid, bool deep, pid_t *ret_pids, size_t max)
{
    size_t count = 0;

    if (!add_listed(pid, ret_pids, &count, max))
        return find_among_all(pid, deep, ret_pids, max);
    for (size_t i = 0; deep && i < count; i++)
        (void)add_listed(ret_pids[i], ret_pids, &count, max);
    return count;
}

void link_proc_children(pid_t pid, struct hf_buf *ret)
{
    pid_t found[MOST_CHILDREN];
    size_t count = link_proc_find_below(pid, true, found, MOST_CHILDREN);

    for (size_t i = 0; i < count; i++)
        describe_child(found[i], ret);
}

struct link_proc_tree link_proc_read_tree(pid_t pid)
{
    struct link_proc_tree tree = { .ready = false };
    pid_t found[1 + MOST_CHILDREN] = { pid };
    size_t count = 1 + link_proc_find_below(pid, true, found + 1, MOST_CHILDREN);
    struct stat_line line;

    for (size_t i = 0; i < count; i++) {
        if (!read_stat(found[i], &line))
            continue;
        tree.ready = tree.ready || line.state == 'R' || line.state == 'D';
        tree.cpu_ms += (int64_t)line.ticks * 1000 / sysconf(_SC_CLK_TCK);
        tree.run_wait_ms += read_waits(found[i], &tree.ready);
    }
    return tree;
}

/* Sockets. */

struct sockets {
    unsigned long inodes[MOST_SOCKETS];
    bool named[MOST_SOCKETS];
    size_t count, all;
};

static void find_sockets(pid_t pid, struct sockets *sockets)
{
    static const char PREFIX[] = "socket:[";
    char path[64], target[64];
    const struct dirent *entry;
    DIR *fds;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    fds = opendir(path);
    for (int i = 0; fds != NULL && i < MOST_FDS && (entry = readdir(fds)) != NULL; i++) {
        ssize_t len = readlinkat(dirfd(fds), entry->d_name, target, sizeof target - 1);

        if (len <= 0 || strncmp(target, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        target[len] = '\0';
        sockets->all++;
        if (sockets->count < MOST_SOCKETS)
            sockets->inodes[sockets->count++] = strtoul(target + sizeof PREFIX - 1, NULL, 10);
    }
    if (fds != NULL)
        (void)closedir(fds);
}

/* As /proc/net has them: groups of 32 bits in the byte order of the machine, and a port. */
static void format_address(const char *hex, char out[64])
{
    uint32_t words[4] = { 0 };
    const char *colon = strchr(hex, ':');
    size_t groups = colon != NULL ? (size_t)(colon - hex) / 8 : 0;
    char text[INET6_ADDRSTRLEN] = "?";

    for (size_t i = 0; i < groups && i < 4; i++) {
        char group[9] = { 0 };

        memcpy(group, hex + 8 * i, 8);
        words[i] = (uint32_t)strtoul(group, NULL, 16);
    }
    (void)inet_ntop(groups == 4 ? AF_INET6 : AF_INET, words, text, sizeof text);
    (void)snprintf(out, 64, groups == 4 ? "[%s]:%lu" : "%s:%lu", text,
                   colon != NULL ? strtoul(colon + 1, NULL, 16) : 0);
}

/* A line of /proc/net/tcp or its like, cut into its words; false: it is none. */
static bool cut_socket(char *line, char *ret_words[SOCKET_INODE + 1])
{
    char *rest = NULL;

    for (int i = 0; i <= SOCKET_INODE; i++) {
        ret_words[i] = strtok_r(i == 0 ? line : NULL, " ", &rest);
        if (ret_words[i] == NULL)
            return false;
    }
    return strchr(ret_words[SOCKET_LOCAL], ':') != NULL;
}

static void name_sockets(pid_t pid, const char *file, struct sockets *sockets,
                         struct hf_buf *ret)
{
    HF_CLEANUP_FREE char *text = hf_calloc(1, NET_BYTES);
    char *rest = text, *line;

    if (text == NULL || !read_of(pid, file, text, NET_BYTES))
        return;
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *words[SOCKET_INODE + 1], from[64], to[64];
        unsigned long inode;

        if (!cut_socket(line, words))
            continue;
        inode = strtoul(words[SOCKET_INODE], NULL, 10);
        for (size_t i = 0; i < sockets->count; i++) {
            if (sockets->inodes[i] != inode || sockets->named[i])
                continue;
            sockets->named[i] = true;
            format_address(words[SOCKET_LOCAL], from);
            format_address(words[SOCKET_REMOTE], to);
            if (strcmp(words[SOCKET_STATE], "0A") == 0)
                hf_buf_printf(ret, "%s%.3s listens at %s", ret->len > 0 ? ", " : "", file + 4,
                              from);
            else
                hf_buf_printf(ret, "%s%.3s %s to %s", ret->len > 0 ? ", " : "", file + 4, from,
                              to);
        }
    }
}

void link_proc_sockets(pid_t pid, struct hf_buf *ret)
{
    static const char *const FILES[] = { "net/tcp", "net/tcp6", "net/udp", "net/udp6" };
    struct sockets sockets = { .count = 0 };
    size_t named = 0;

    find_sockets(pid, &sockets);
    for (size_t i = 0; sockets.count > 0 && i < sizeof FILES / sizeof FILES[0]; i++)
        name_sockets(pid, FILES[i], &sockets, ret);
    for (size_t i = 0; i < sockets.count; i++)
        named += sockets.named[i];
    if (sockets.all > named)
        hf_buf_printf(ret, "%s%zu other%s", ret->len > 0 ? ", " : "", sockets.all - named,
                      sockets.all - named == 1 ? "" : "s");
}
