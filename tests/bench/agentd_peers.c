#include "bench/agentd_peers.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/process.h"

enum { STOP_MS = 60000, MOST_AGENTS = 2000 };

static const struct {
    const char *name;
    const char *program;
    bool is_heavy;
    bool per_agent; /* one process of its own for each */
} PEERS[HFB_IDLE_PEERS] = {
    [HFB_IDLE_GO] = { "go session", "etcd_peer", true, true },
    [HFB_IDLE_ETCDCTL] = { "etcdctl", "etcdctl", true, true },
    [HFB_IDLE_RUNIT] = { "runit", "runsvdir", false, false },
    [HFB_IDLE_S6] = { "s6", "s6-svscan", false, false },
    [HFB_IDLE_SUPERVISOR] = { "supervisor", "supervisord", false, false },
    [HFB_IDLE_PM2] = { "pm2", "pm2", true, false },
};

struct start {
    char dir[HFT_PATH_MAX + 32]; /* of this peer alone */
    const char *agent;
    const struct hft_etcd *etcd;
    unsigned ttl_s, count;
};

const char *hfb_idle_name(enum hfb_idle_peer peer)
{
    return PEERS[peer].name;
}

bool hfb_idle_is_heavy(enum hfb_idle_peer peer)
{
    return PEERS[peer].is_heavy;
}

/* Go's stands beside us, all others in the PATH. */
static bool find_program(const char *program, char path[PATH_MAX])
{
    char text[4096], *dir, *rest = text;
    ssize_t len = readlink("/proc/self/exe", text, sizeof text - 1);

    text[len > 0 ? len : 0] = '\0';
    if (strrchr(text, '/') != NULL)
        *strrchr(text, '/') = '\0';
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), ":%s", getenv("PATH"));
    while ((dir = strsep(&rest, ":")) != NULL) {
        (void)snprintf(path, PATH_MAX, "%.2000s/%s", dir, program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static void write_file(const char *dir, const char *name, mode_t mode, const char *text)
{
    char path[HFT_PATH_MAX + 128];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_msg(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s",
                  path);
}

static pid_t spawn(const struct start *start, const char *const argv[], const char *const env[])
{
    char path[HFT_PATH_MAX + 64];
    HF_CLEANUP_FD int log = -1;

    (void)snprintf(path, sizeof path, "%s/log", start->dir);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    return hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = env, .out = log, .err = log });
}

static pid_t start_go(const struct start *start, const char *program, unsigned i)
{
    char ttl[16], number[16];

    (void)snprintf(ttl, sizeof ttl, "%u", start->ttl_s);
    (void)snprintf(number, sizeof number, "%u", i);
    return spawn(
        start, (const char *[]){ program, "session", start->etcd->endpoint, ttl, number, NULL },
        NULL);
}

static pid_t start_etcdctl(const struct start *start, const char *program)
{
    HF_CLEANUP_FREE char *said = NULL;
    char ttl[16], id[32] = "";

    (void)snprintf(ttl, sizeof ttl, "%u", start->ttl_s);
    hft_etcdctl_ok(start->etcd, &said, "lease", "grant", ttl, NULL);
    ck_assert_int_eq(sscanf(said, "lease %31s", id), 1);
    return spawn(start,
                 (const char *[]){ program, "--endpoints", start->etcd->endpoint, "lease",
                                   "keep-alive", id, NULL },
                 (const char *[]){ "ETCDCTL_API=3", NULL });
}

/* runit and s6 have the same service directories. */
static pid_t start_run_files(const struct start *start, const char *program, bool s6)
{
    char text[PATH_MAX + 16], name[HFT_PATH_MAX + 128], services[HFT_PATH_MAX + 64];

    (void)snprintf(services, sizeof services, "%s/services", start->dir);
    ck_assert_int_eq(mkdir(services, 0700), 0);
    (void)snprintf(text, sizeof text, "#!%s\n", start->agent);
    for (unsigned i = 0; i < start->count; i++) {
        (void)snprintf(name, sizeof name, "%s/%u", services, i);
        ck_assert_int_eq(mkdir(name, 0700), 0);
        write_file(name, "run", 0700, text);
    }
    return s6 ? spawn(start, (const char *[]){ program, "-c", "2000", services, NULL }, NULL)
              : spawn(start, (const char *[]){ program, services, NULL }, NULL);
}

static pid_t start_supervisor(const struct start *start, const char *program)
{
    char text[PATH_MAX + 1024], path[HFT_PATH_MAX + 64];

    (void)snprintf(text, sizeof text,
                   "[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\n"
                   "pidfile=%s/pid\nchildlogdir=%s\nminfds=8192\n[program:a]\ncommand=%s\n"
                   "process_name=%%(program_name)s_%%(process_num)d\nnumprocs=%u\n"
                   "stdout_logfile=NONE\nstderr_logfile=NONE\n",
                   start->dir, start->dir, start->agent, start->count);
    write_file(start->dir, "conf", 0600, text);
    (void)snprintf(path, sizeof path, "%s/conf", start->dir);
    return spawn(start, (const char *[]){ program, "-c", path, NULL }, NULL);
}

static pid_t start_pm2(const struct start *start, const char *program)
{
    char text[PATH_MAX + 256], path[HFT_PATH_MAX + 64], home[HFT_PATH_MAX + 64];

    (void)snprintf(text, sizeof text,
                   "{\"apps\":[{\"name\":\"a\",\"script\":\"%s\",\"interpreter\":\"none\","
                   "\"exec_mode\":\"fork\",\"instances\":%u}]}",
                   start->agent, start->count);
    write_file(start->dir, "apps.json", 0600, text);
    (void)snprintf(path, sizeof path, "%s/apps.json", start->dir);
    (void)snprintf(home, sizeof home, "PM2_HOME=%s/pm2", start->dir);
    return spawn(start, (const char *[]){ program, "start", path, "--no-daemon", NULL },
                 (const char *[]){ home, NULL });
}

static pid_t start_one(const struct start *start, enum hfb_idle_peer peer, const char *program,
                       unsigned i)
{
    switch (peer) {
    case HFB_IDLE_GO: return start_go(start, program, i);
    case HFB_IDLE_ETCDCTL: return start_etcdctl(start, program);
    case HFB_IDLE_RUNIT: return start_run_files(start, program, false);
    case HFB_IDLE_S6: return start_run_files(start, program, true);
    case HFB_IDLE_SUPERVISOR: return start_supervisor(start, program);
    case HFB_IDLE_PM2: return start_pm2(start, program);
    case HFB_IDLE_PEERS: break;
    }
    return 0;
}

bool hfb_idle_start(struct hfb_idle *idle, enum hfb_idle_peer peer, const char *dir,
                    const char *agent, const struct hft_etcd *etcd, unsigned ttl_s,
                    unsigned count)
{
    struct start start = { .agent = agent, .etcd = etcd, .ttl_s = ttl_s, .count = count };
    char program[PATH_MAX];

    *idle = (struct hfb_idle){ NULL, 0 };
    if (!find_program(PEERS[peer].program, program))
        return false;
    (void)snprintf(start.dir, sizeof start.dir, "%s/%s", dir, PEERS[peer].program);
    ck_assert_int_eq(mkdir(start.dir, 0700), 0);
    idle->root_count = PEERS[peer].per_agent ? count : 1;
    idle->roots = calloc(idle->root_count, sizeof *idle->roots);
    ck_assert_ptr_nonnull(idle->roots);
    for (unsigned i = 0; i < idle->root_count; i++)
        idle->roots[i] = start_one(&start, peer, program, i);
    return true;
}

bool hfb_idle_is_complete(const struct hfb_idle *idle, enum hfb_idle_peer peer, unsigned count)
{
    return PEERS[peer].per_agent || hfb_crowd_agents(idle->roots[0], NULL, 0) >= count;
}

/* A supervisor that is killed leaves its agents behind, so these go first, and again: it may
 * just have started one of them anew. */
void hfb_idle_stop(struct hfb_idle *idle)
{
    static struct hfb_crowd crowd;
    static pid_t agents[MOST_AGENTS];
    size_t count = 0;

    hfb_crowd_find(&crowd, idle->roots, idle->root_count);
    for (size_t i = 0; i < crowd.count; i++)
        (void)kill(crowd.pids[i], SIGSTOP);
    if (idle->root_count == 1) /* who has one of its own for each has none below it */
        count = hfb_crowd_agents(idle->roots[0], agents, MOST_AGENTS);
    for (size_t i = 0; i < count; i++)
        (void)kill(agents[i], SIGKILL);
    for (size_t i = 0; i < crowd.count; i++)
        (void)kill(crowd.pids[i], SIGKILL);
    for (size_t i = 0; i < idle->root_count; i++)
        (void)hft_process_reap(idle->roots[i], STOP_MS);
    free(idle->roots);
    *idle = (struct hfb_idle){ NULL, 0 };
}
