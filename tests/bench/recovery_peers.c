#include "bench/recovery_peers.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/process.h"
#include "support/tempdir.h"

static const struct {
    const char *name;
    const char *program;
    bool slow;
} PEERS[HFB_PEERS] = {
    [HFB_RUNIT] = { "runit", "runsv", false },
    [HFB_RUN_SH] = { "runit-sh", "runsv", false },
    [HFB_PM2] = { "pm2", "pm2", false },
    [HFB_S6] = { "s6", "s6-supervise", true },
    [HFB_SUPERVISOR] = { "supervisor", "supervisord", true },
    [HFB_MONIT] = { "monit", "monit", true },
};

/* What is put into the files and arguments of them all. */
struct charge {
    char dir[HFT_PATH_MAX + 32]; /* of this peer alone */
    const char *child;
    char word[2 * HFT_PATH_MAX + 64]; /* the child's one argument */
};

const char *hfb_peer_name(enum hfb_peer peer)
{
    return PEERS[peer].name;
}

bool hfb_peer_is_slow(enum hfb_peer peer)
{
    return PEERS[peer].slow;
}

static bool is_installed(const char *program)
{
    char path[4096], text[4096], *dir, *rest = text;

    (void)snprintf(text, sizeof text, "%s", getenv("PATH"));
    while ((dir = strsep(&rest, ":")) != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s", dir, program);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

static void write_file(const struct charge *charge, const char *name, mode_t mode,
                       const char *text)
{
    char path[HFT_PATH_MAX + 64];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", charge->dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    ck_assert_msg(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s",
                  path);
}

static pid_t spawn(const struct charge *charge, const char *const argv[],
                   const char *const env[])
{
    char path[HFT_PATH_MAX + 64];
    HF_CLEANUP_FD int log = -1;

    (void)snprintf(path, sizeof path, "%s/log", charge->dir);
    log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    return hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = env, .out = log, .err = log });
}

/* runit and s6 have the same service directory. */
static pid_t start_run_file(const struct charge *charge, const char *program, bool with_shell)
{
    char text[4096];

    if (with_shell)
        (void)snprintf(text, sizeof text, "#!/bin/sh\nexec %s %s\n", charge->child,
                       charge->word);
    else
        (void)snprintf(text, sizeof text, "#!%s %s\n", charge->child, charge->word);
    write_file(charge, "run", 0700, text);
    return spawn(charge, (const char *[]){ program, charge->dir, NULL }, NULL);
}

static pid_t start_pm2(const struct charge *charge)
{
    char home[HFT_PATH_MAX + 64];

    (void)snprintf(home, sizeof home, "PM2_HOME=%s/pm2", charge->dir);
    return spawn(charge,
                 (const char *[]){ "pm2", "start", charge->child, "--no-daemon",
                                   "--interpreter", "none", "--name", "child", "--",
                                   charge->word, NULL },
                 (const char *[]){ home, NULL });
}

static pid_t start_supervisor(const struct charge *charge)
{
    char text[4096], path[HFT_PATH_MAX + 64];

    (void)snprintf(text, sizeof text,
                   "[supervisord]\nnodaemon=true\nlogfile=/dev/null\nlogfile_maxbytes=0\n"
                   "pidfile=%s/pid\nchildlogdir=%s\n[program:child]\ncommand=%s %s\n"
                   "autorestart=true\n",
                   charge->dir, charge->dir, charge->child, charge->word);
    write_file(charge, "conf", 0600, text);
    (void)snprintf(path, sizeof path, "%s/conf", charge->dir);
    return spawn(charge, (const char *[]){ "supervisord", "-c", path, NULL }, NULL);
}

/* Once a second is as often as monit can look. */
static pid_t start_monit(const struct charge *charge)
{
    char text[4096], path[HFT_PATH_MAX + 64];

    (void)snprintf(text, sizeof text,
                   "set daemon 1\nset log %s/monit.log\nset pidfile %s/monit.pid\n"
                   "set idfile %s/id\nset statefile %s/state\n"
                   "check process child with pidfile %s/child.pid\n"
                   "  start program = \"/bin/sh -c '%s %s & echo $! >%s/child.pid'\"\n",
                   charge->dir, charge->dir, charge->dir, charge->dir, charge->dir,
                   charge->child, charge->word, charge->dir);
    write_file(charge, "conf", 0600, text);
    (void)snprintf(path, sizeof path, "%s/conf", charge->dir);
    return spawn(charge, (const char *[]){ "monit", "-I", "-c", path, NULL }, NULL);
}

pid_t hfb_peer_start(enum hfb_peer peer, const char *dir, const char *child, const char *socket,
                     const char *state)
{
    struct charge charge = { .child = child };

    if (!is_installed(PEERS[peer].program))
        return 0;
    (void)snprintf(charge.word, sizeof charge.word, "%s,%s,%s", socket, PEERS[peer].name,
                   state);
    (void)snprintf(charge.dir, sizeof charge.dir, "%s/%s", dir, PEERS[peer].name);
    ck_assert_int_eq(mkdir(charge.dir, 0700), 0);
    switch (peer) {
    case HFB_RUNIT: return start_run_file(&charge, "runsv", false);
    case HFB_RUN_SH: return start_run_file(&charge, "runsv", true);
    case HFB_PM2: return start_pm2(&charge);
    case HFB_S6: return start_run_file(&charge, "s6-supervise", false);
    case HFB_SUPERVISOR: return start_supervisor(&charge);
    case HFB_MONIT: return start_monit(&charge);
    case HFB_PEERS: break;
    }
    return 0;
}
