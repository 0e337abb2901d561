#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

enum { PATH_BYTES = 4096, MOST_DEEP = 8 };

static void pause_ms(long ms)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = ms * KEEPER_MS }, NULL);
}

/* Only one in which nobody is left can be that. */
static bool is_removed(int rc)
{
    return rc == -ENOENT || rc == -ENODEV;
}

/* 1 or 0; -errno when it cannot be read. */
static int read_event(int cgroup_fd, const char *name)
{
    char text[256];
    const char *found;

    if (keeper_read_at(cgroup_fd, "cgroup.events", text, sizeof text) < 0)
        return -errno;
    found = strstr(text, name);
    return found != NULL && strncmp(found + strlen(name), " 1", 2) == 0;
}

bool keeper_cgroup_is_populated(int cgroup_fd)
{
    int rc = read_event(cgroup_fd, "populated");

    return rc != 0 && !is_removed(rc);
}

int keeper_cgroup_freeze(int cgroup_fd)
{
    int rc = keeper_write_at(cgroup_fd, "cgroup.freeze", "1");

    return rc < 0 ? rc : read_event(cgroup_fd, "frozen") == 1;
}

bool keeper_cgroup_thaw(int cgroup_fd)
{
    int rc = keeper_write_at(cgroup_fd, "cgroup.freeze", "0");

    return is_removed(rc) || (rc == 0 && read_event(cgroup_fd, "frozen") == 0);
}

/* The agent may have made cgroups of its own in it: calls for each of them. */
static void each_below(int dir_fd, int depth,
                       void (*fn)(int dir_fd, const char *name, int child_fd, int depth))
{
    int fd = dup(dir_fd);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (dir == NULL) {
        keeper_close(&fd);
        return;
    }
    rewinddir(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        int child = openat(dir_fd, entry->d_name, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
        if (child >= 0)
            fn(dir_fd, entry->d_name, child, depth);
        keeper_close(&child);
    }
    (void)closedir(dir);
}

static void remove_one(int dir_fd, const char *name, int child_fd, int depth)
{
    if (depth > 0)
        each_below(child_fd, depth - 1, remove_one);
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* Who is in the cgroup itself, as far as they find room; returns how many. */
static size_t read_members(int fd, pid_t *pids, size_t room)
{
    char text[4096];
    size_t count = 0;
    char *end = NULL;

    (void)keeper_read_at(fd, "cgroup.procs", text, sizeof text);
    for (const char *p = text; count < room; p = end) {
        pid_t pid = (pid_t)strtol(p, &end, 10);

        if (end == p)
            break;
        if (pid > 0)
            pids[count++] = pid;
    }
    return count;
}

/* One that is a member while its pidfd is open, and is reached through that, is that member. */
static void kill_members(int fd)
{
    enum { ROOM = 64 };
    pid_t before[ROOM], now[2 * ROOM];
    int pidfds[ROOM];
    size_t count = read_members(fd, before, ROOM), now_count;

    for (size_t i = 0; i < count; i++)
        pidfds[i] = (int)syscall(SYS_pidfd_open, before[i], 0);
    now_count = read_members(fd, now, sizeof now / sizeof now[0]);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < now_count; j++) {
            if (now[j] == before[i])
                (void)syscall(SYS_pidfd_send_signal, pidfds[i], SIGKILL, NULL, 0);
        }
        keeper_close(&pidfds[i]);
    }
}

static void kill_one(int dir_fd, const char *name, int child_fd, int depth)
{
    (void)dir_fd;
    (void)name;
    kill_members(child_fd);
    if (depth > 0)
        each_below(child_fd, depth - 1, kill_one);
}

void keeper_cgroup_kill(int fd, bool again)
{
    (void)keeper_write_at(fd, "cgroup.kill", "1");
    if (!again)
        return;
    kill_members(fd);
    each_below(fd, MOST_DEEP, kill_one);
}

static void empty(int fd)
{
    for (int i = 0; i < 1000 && keeper_cgroup_is_populated(fd); i++) {
        keeper_cgroup_kill(fd, i > 0);
        pause_ms(10);
    }
    if (keeper_cgroup_is_populated(fd))
        keeper_log("error", "event=unkillable what=cgroup");
    each_below(fd, MOST_DEEP, remove_one);
}

/* Where cgroup v2 is mounted, alone or beside the hierarchies of v1; or, of those, the one that
 * counts memory. */
static bool find_mount(bool of_v1, char ret_path[PATH_BYTES])
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[PATH_BYTES * 2];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *kind = strstr(line, of_v1 ? " - cgroup " : " - cgroup2 ");

        found = kind != NULL && (!of_v1 || strstr(kind, ",memory") != NULL) &&
                sscanf(line, "%*s %*s %*s %*s %4095s", ret_path) == 1;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* Our own cgroup in it: agents' are made below, so that what limits us limits them. */
static bool find_own(bool of_v1, char ret_path[PATH_BYTES])
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    char line[PATH_BYTES];
    bool found = false;

    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        const char *path = strstr(line, ":/");

        found = path != NULL &&
                (of_v1 ? strstr(line, "memory") != NULL && strstr(line, "memory") < path
                       : strncmp(line, "0::", 3) == 0) &&
                sscanf(path + 1, "%4095s", ret_path) == 1;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

/* The directory of our own; returns the length of its name, 0 when there is none. */
static size_t find_directory(bool of_v1, char ret_path[PATH_BYTES])
{
    char own[PATH_BYTES];
    size_t len;

    if (!find_mount(of_v1, ret_path) || !find_own(of_v1, own))
        return 0;
    len = strlen(ret_path);
    int more = snprintf(ret_path + len, PATH_BYTES - len, "%s", own);
    if (more < 0 || (size_t)more >= PATH_BYTES - len)
        return 0;
    /* In a container that sees only its own part, that part is mounted under no name. */
    if (of_v1 && access(ret_path, F_OK) < 0) {
        ret_path[len] = '\0';
        return len;
    }
    return len + (size_t)more;
}

int keeper_cgroup_open_memory(void)
{
    char path[PATH_BYTES];
    int fd = -1;

    for (int of_v1 = 1; of_v1 >= 0 && fd < 0; of_v1--) {
        size_t len = find_directory(of_v1 != 0, path);
        int more = snprintf(path + len, PATH_BYTES - len, "/%s",
                            of_v1 != 0 ? "memory.oom_control" : "memory.events");

        if (len > 0 && more > 0 && (size_t)more < PATH_BYTES - len)
            fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return fd;
}

/* A service manager marks a cgroup that is ours to divide as we like. */
static bool is_delegated(const char *path)
{
    static const char *const MARKS[] = { "trusted.delegate", "user.delegate" };
    char mark = '0';

    for (size_t i = 0; i < sizeof MARKS / sizeof MARKS[0] && mark != '1'; i++)
        (void)!getxattr(path, MARKS[i], &mark, sizeof mark);
    return mark == '1';
}

/* For limits; where the controllers are not ours to give, there are none. */
static void give_controllers(int fd)
{
    (void)keeper_write_at(fd, "cgroup.subtree_control", "+memory");
    (void)keeper_write_at(fd, "cgroup.subtree_control", "+pids");
}

/* Nobody may be in a cgroup that gives controllers to those below: the keeper, and whoever it
 * will start beside the agents, takes one there, too. */
static void step_aside(const char *path)
{
    int fd = is_delegated(path) ? open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC) : -1;

    if (fd < 0)
        return;
    (void)mkdirat(fd, "keeper", 0755);
    if (keeper_write_at(fd, "keeper/cgroup.procs", "0") == 0)
        give_controllers(fd);
    keeper_close(&fd);
}

/* Whether a process of ours can be moved there, frozen and killed. */
static bool works(int base_fd)
{
    int fd = -1;
    int status = -1;

    if (mkdirat(base_fd, "probe", 0755) < 0 && errno != EEXIST)
        return false;
    fd = openat(base_fd, "probe", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && faccessat(fd, "cgroup.kill", W_OK, 0) == 0 &&
        keeper_write_at(fd, "cgroup.freeze", "0") == 0) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(keeper_write_at(fd, "cgroup.procs", "0") == 0 ? 0 : 1);
        if (pid > 0)
            (void)waitpid(pid, &status, 0);
    }
    keeper_close(&fd);
    /* The kernel lets the dead leave a moment after they were reaped. */
    for (int i = 0; i < 100 && unlinkat(base_fd, "probe", AT_REMOVEDIR) < 0; i++)
        pause_ms(5);
    return status == 0;
}

static int open_base(struct keeper *k, char path[PATH_BYTES])
{
    struct stat st;
    size_t len = find_directory(false, path);
    int more;

    if (len == 0 || fstat(k->state_fd, &st) < 0)
        return -1;
    step_aside(path);
    (void)snprintf(k->cgroup_name, sizeof k->cgroup_name, "/holdfast-%jx-%jx/",
                   (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    more = snprintf(path + len, PATH_BYTES - len, "%s%.*s", path[len - 1] == '/' ? "" : "/",
                    (int)strlen(k->cgroup_name) - 2, k->cgroup_name + 1);
    if (more < 0 || (size_t)more >= PATH_BYTES - len ||
        (mkdir(path, 0755) < 0 && errno != EEXIST))
        return -1;
    return open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
}

void keeper_cgroup_init(struct keeper *k)
{
    char path[PATH_BYTES];
    const char *wish = getenv("HOLDFAST_AGENTD_CGROUPS");

    k->cgroup_fd = -1;
    if (wish != NULL && strcmp(wish, "off") == 0)
        return;
    k->cgroup_fd = open_base(k, path);
    if (k->cgroup_fd >= 0 && !works(k->cgroup_fd)) {
        keeper_close(&k->cgroup_fd);
        (void)rmdir(path);
    }
    if (k->cgroup_fd < 0)
        return;
    k->flags |= AGENTD_HAS_CGROUPS;
    empty(k->cgroup_fd); /* the directory is ours alone, so what is in it is left over */
    give_controllers(k->cgroup_fd);
    int fd = openat(k->state_fd, "cgroup", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || keeper_overwrite(fd, path) < 0)
        keeper_log("warn", "event=unrecorded what=cgroup");
    keeper_close(&fd);
}

void keeper_cgroup_done(struct keeper *k)
{
    char path[PATH_BYTES];

    if (k->cgroup_fd < 0)
        return;
    keeper_close(&k->cgroup_fd);
    if (keeper_read_at(k->state_fd, "cgroup", path, sizeof path) > 0 && rmdir(path) == 0)
        (void)unlinkat(k->state_fd, "cgroup", 0);
}

/* Where the controller is not ours to give, the agent runs without it, and a person is told. */
static void set_limit(const struct keeper_slot *s, const char *file, uint64_t limit)
{
    char number[32];
    int rc;

    if (limit == 0)
        return;
    (void)snprintf(number, sizeof number, "%ju", (uintmax_t)limit);
    rc = keeper_write_at(s->cgroup_fd, file, number);
    if (rc < 0)
        keeper_log("warn", "event=not_limited agent=%s limit=%s why=\"%s\"", s->a.who.agent,
                   file, strerrordesc_np(-rc));
}

int keeper_cgroup_make(struct keeper *k, struct keeper_slot *s, const struct agentd_spawn *m)
{
    if (mkdirat(k->cgroup_fd, m->who.instance, 0755) < 0)
        return -errno;
    s->cgroup_fd = openat(k->cgroup_fd, m->who.instance, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (s->cgroup_fd < 0)
        return -errno;
    set_limit(s, "memory.max", m->memory_max);
    set_limit(s, "pids.max", m->pids_max);
    return 0;
}

int keeper_cgroup_enter(int cgroup_fd, pid_t pid)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)pid);
    return keeper_write_at(cgroup_fd, "cgroup.procs", number);
}

int32_t keeper_cgroup_find(const struct keeper *k, pid_t pid)
{
    char path[32], text[2 * PATH_BYTES];

    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    if (keeper_read_at(AT_FDCWD, path, text, sizeof text) <= 0)
        return OWNER_NONE;
    const char *at = strstr(text, "0::/");
    at = at != NULL ? strstr(at, k->cgroup_name) : NULL;
    if (at == NULL)
        return OWNER_NONE;
    at += strlen(k->cgroup_name);
    size_t len = strcspn(at, "/\n");
    for (size_t i = 0; i < k->slot_count; i++) {
        const char *instance = k->slots[i]->a.who.instance;

        if (strncmp(instance, at, len) == 0 && instance[len] == '\0')
            return (int32_t)i;
    }
    return OWNER_NONE;
}

void keeper_cgroup_take_back(const struct keeper *k, const struct keeper_slot *s)
{
    int32_t in = keeper_cgroup_find(k, s->a.pid);

    if ((in < 0 || k->slots[in] != s) && keeper_cgroup_enter(s->cgroup_fd, s->a.pid) == 0)
        keeper_log("warn", "event=taken_back agent=%s pid=%d why=\"it had left its cgroup\"",
                   s->a.who.agent, (int)s->a.pid);
}

void keeper_cgroup_remove(struct keeper *k, struct keeper_slot *s)
{
    if (s->cgroup_fd < 0)
        return;
    each_below(s->cgroup_fd, MOST_DEEP, remove_one);
    keeper_close(&s->cgroup_fd);
    if (k->cgroup_fd >= 0)
        (void)unlinkat(k->cgroup_fd, s->a.who.instance, AT_REMOVEDIR);
}

void keeper_cgroup_empty_old(struct keeper *k)
{
    char path[PATH_BYTES];
    int fd = -1;

    if (keeper_read_at(k->state_fd, "cgroup", path, sizeof path) <= 0)
        return;
    /* A name that is anything else is not ours to kill. */
    if (strstr(path, "/holdfast-") != NULL)
        fd = open(path, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    empty(fd);
    keeper_close(&fd);
    if (rmdir(path) == 0)
        (void)unlinkat(k->state_fd, "cgroup", 0);
}
