/* The embedded default: a private etcd, a controller and a small fleet that has something to
 * do, shown until Ctrl-C, which ends everything in order and leaves nothing behind. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "cli/children.h"
#include "cli/commands.h"
#include "cli/live.h"
#include "cli/store.h"

enum {
    START_TRIES = 3, /* another program may take the port that we found free */
    READY_MS = 30000,
    GRACE_MS = 15000, /* more than an agent gets to stop */
    LOOK_MS = 100,
    REFRESH_MS = 500,
    HOST_AWAY_MS = 30000,      /* a host that was killed comes back: not sooner */
    HOST_AWAY_MAX_MS = 120000, /* nor later, whether its agents live elsewhere or not */
};

/* What happens to the fleet that is shown is to be seen soon, and again and again: short
 * leases, which are sane with an etcd of one member; a home is waited for no longer than the
 * doubt lasts whether its agents are dead; recoveries follow each other closely. */
#define TTL              "6s"
#define HOME_GRACE       "4s"
#define RECOVERY_BACKOFF "5s"
#define RECOVERY_LIMIT   "32" /* an hour */

struct settings {
    bool empty;
    const char *state_dir;
    const char *env_file;
};

static const struct hf_option TABLE[] = {
    { .flag = "empty",
      HF_OPTION_FIELD(BOOL, struct settings, empty),
      .help = "Start etcd and a controller alone, for agents of your own." },
    { .flag = "state-dir",
      .value = "DIR",
      HF_OPTION_FIELD(STRING, struct settings, state_dir),
      .help =
          "Keep etcd's data and the logs here, and leave them here. Without it they lie in a "
          "temporary directory, which is removed at the end." },
    { .flag = "env-file",
      .value = "FILE",
      HF_OPTION_FIELD(STRING, struct settings, env_file),
      .help = "When everything is ready, write what other programs need here: source FILE. It "
              "is removed at the end." },
};

/* The fleet that is shown: an agent of each role, at home on a host of its own; the others can
 * run it as well. */
static const struct {
    const char *agent, *role, *host;
} FLEET[] = {
    { "ada", "research", "host-1" },
    { "ben", "write", "host-2" },
    { "eve", "review", "host-3" },
};

enum { FLEET_SIZE = sizeof FLEET / sizeof FLEET[0] };

/* What says that it is to end: Ctrl-C, a service manager, a terminal that is closed, Ctrl-\\.
 */
static const int STOPS[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

enum { STOP_COUNT = sizeof STOPS / sizeof STOPS[0] };

struct up {
    struct cli *cli;
    const struct settings *settings;
    char dir[PATH_MAX - 64];
    char programs[PATH_MAX - 64]; /* where our own program lies, and the others beside it */
    char endpoint[64];
    const char *endpoints[1];
    struct cli_child etcd, controller, hosts[FLEET_SIZE];
    hf_ms lost_at[FLEET_SIZE]; /* when we saw that a host had ended; 0: it runs */
    uv_signal_t stops[STOP_COUNT];
    bool stop;     /* somebody said so */
    char env[512]; /* what was written into the file for others; empty: nothing */
};

/* Directories and ports. */

static int make_dir(struct up *up)
{
    const char *given = up->settings->state_dir, *tmp = getenv("TMPDIR");
    HF_CLEANUP_FREE char *whole = NULL;

    if (given == NULL) {
        (void)snprintf(up->dir, sizeof up->dir, "%s/holdfast-XXXXXX",
                       tmp != NULL && tmp[0] != '\0' ? tmp : "/tmp");
        if (mkdtemp(up->dir) == NULL)
            return cli_fail(up->cli, HF_EIO, "%s: %s", up->dir, strerror(errno));
        return HF_OK;
    }
    if (mkdir(given, 0700) != 0 && errno != EEXIST)
        return cli_fail(up->cli, HF_EIO, "%s: %s", given, strerror(errno));
    whole = realpath(given, NULL);
    if (whole == NULL || strlen(whole) >= sizeof up->dir)
        return cli_fail(up->cli, HF_EIO, "%s: %s", given,
                        strerror(whole ? ENAMETOOLONG : errno));
    (void)snprintf(up->dir, sizeof up->dir, "%s", whole);
    return HF_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int remove_cgroup(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    if (type == FTW_DP)
        (void)rmdir(path);
    return 0;
}

/* A keeper that was killed leaves the cgroups of its agents behind, and says where. */
static void remove_cgroups(const struct up *up, const char *host)
{
    char path[PATH_MAX] = "", name[PATH_MAX];
    FILE *file;

    (void)snprintf(name, sizeof name, "%s/%s/cgroup", up->dir, host);
    file = fopen(name, "re");
    if (file == NULL)
        return;
    if (fgets(path, sizeof path, file) != NULL && strstr(path, "/holdfast-") != NULL)
        (void)nftw(path, remove_cgroup, 16, FTW_DEPTH | FTW_PHYS);
    (void)fclose(file);
}

static void remove_dir(struct up *up)
{
    if (up->settings->state_dir == NULL && up->dir[0] != '\0')
        (void)nftw(up->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int find_programs(struct up *up)
{
    ssize_t len = readlink("/proc/self/exe", up->programs, sizeof up->programs - 1);

    if (len <= 0)
        return cli_fail(up->cli, HF_EIO, "/proc/self/exe: %s", strerror(errno));
    up->programs[len] = '\0';
    *strrchr(up->programs, '/') = '\0';
    return HF_OK;
}

static int free_port(void)
{
    HF_CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in where = { .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof where;

    if (fd < 0 || bind(fd, (struct sockaddr *)&where, len) != 0 ||
        getsockname(fd, (struct sockaddr *)&where, &len) != 0)
        return 0;
    return ntohs(where.sin_port);
}

/* Waiting. */

static void on_signal(uv_signal_t *signal, int number)
{
    struct up *up = signal->data;

    (void)number;
    up->stop = true;
}

/* Who cannot be heard at the moment waits: whatever was begun is to be ended in order. */
static void hold_stops(int how)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < STOP_COUNT; i++)
        (void)sigaddset(&set, STOPS[i]);
    (void)sigprocmask(how, &set, NULL);
}

/* As nohup and shells do it for what they start in the background. */
static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void watch_signals(struct up *up)
{
    for (size_t i = 0; i < STOP_COUNT; i++) {
        up->stops[i].data = up;
        (void)uv_signal_init(&up->cli->loop, &up->stops[i]);
        if ((STOPS[i] != SIGHUP && STOPS[i] != SIGQUIT) || !is_ignored(STOPS[i]))
            (void)uv_signal_start(&up->stops[i], on_signal, STOPS[i]);
    }
    hold_stops(SIG_UNBLOCK);
}

static void connect_done(struct up *up)
{
    if (!up->cli->connected)
        return;
    hold_stops(SIG_BLOCK);
    for (size_t i = 0; i < STOP_COUNT; i++)
        uv_close((uv_handle_t *)&up->stops[i], NULL);
    cli_disconnect(up->cli);
}

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* HF_ECANCELED when somebody said stop meanwhile. */
static int pause_for(struct up *up, hf_ms span)
{
    return cli_wait(up->cli, &up->stop, now() + span) == HF_OK ? HF_ECANCELED : HF_OK;
}

/* Says which process ended against our will, with the end of its log. */
static int check_alive(struct up *up, struct cli_child *child)
{
    if (!cli_child_has_ended(child))
        return HF_OK;
    cli_child_show_log(child);
    return cli_fail(up->cli, HF_EIO, "%s has ended, see above", child->name);
}

/* Waits until the record is there (or, for NULL, until etcd answers at all). */
static int wait_for(struct up *up, const struct hf_key *key, struct cli_child *child)
{
    hf_ms until = now() + READY_MS;
    int rc = HF_OK;

    while (rc == HF_OK) {
        CLI_CLEANUP_RECORD struct cli_record record = { 0 };
        struct hf_key wanted = key != NULL ? *key : (struct hf_key){ .kind = HF_KEY_META };
        int read = cli_read(up->cli, wanted, &record);

        if (read == HF_OK && (key == NULL || record.message != NULL))
            return HF_OK;
        rc = check_alive(up, child);
        if (rc == HF_OK && now() > until)
            rc = cli_fail(up->cli, HF_ETIMEOUT, "%s is not ready after %d s; its log is %s",
                          child->name, READY_MS / 1000, child->log);
        if (rc == HF_OK)
            rc = pause_for(up, LOOK_MS);
    }
    return rc;
}

/* Starting. */

static int launch(struct up *up, struct cli_child *child, const char *name,
                  const struct cli_args *args, const char *log_name)
{
    char log[PATH_MAX];

    (void)snprintf(log, sizeof log, "%s/%s.log", up->dir, log_name);
    return cli_child_start(child, name, args, log, &up->cli->err);
}

static int launch_etcd(struct up *up)
{
    struct cli_args args = { .count = 0 };
    int peer = free_port(), rc;

    (void)snprintf(up->endpoint, sizeof up->endpoint, "http://127.0.0.1:%d", free_port());
    cli_args_add(&args, "etcd");
    cli_args_add(&args, "--name=up");
    cli_args_add(&args, "--data-dir=%s/etcd", up->dir);
    cli_args_add(&args, "--listen-client-urls=%s", up->endpoint);
    cli_args_add(&args, "--advertise-client-urls=%s", up->endpoint);
    cli_args_add(&args, "--listen-peer-urls=http://127.0.0.1:%d", peer);
    cli_args_add(&args, "--initial-advertise-peer-urls=http://127.0.0.1:%d", peer);
    cli_args_add(&args, "--initial-cluster=up=http://127.0.0.1:%d", peer);
    cli_args_add(&args, "--backend-batch-limit=500");
    cli_args_add(&args, "--auto-compaction-mode=periodic");
    cli_args_add(&args, "--auto-compaction-retention=1h");
    cli_args_add(&args, "--logger=zap");
    rc = launch(up, &up->etcd, "etcd", &args, "etcd");
    if (rc == HF_ENOENT)
        (void)cli_fail(
            up->cli, rc,
            "etcd is not in PATH. Install it (Debian: apt-get install etcd-server), or "
            "use an etcd of your own with --endpoints and without `up`.");
    return rc;
}

static int start_etcd(struct up *up)
{
    int rc = HF_EIO;

    for (int try = 0; try < START_TRIES && rc == HF_EIO; try++) {
        rc = launch_etcd(up);
        if (rc != HF_OK)
            return rc;
        connect_done(up);
        up->endpoints[0] = up->endpoint;
        up->cli->common.endpoints = (struct hf_strings){ .items = up->endpoints, .count = 1 };
        rc = cli_connect(up->cli);
        if (rc != HF_OK)
            return rc;
        watch_signals(up);
        rc = wait_for(up, NULL, &up->etcd);
    }
    return rc;
}

static void add_common(const struct up *up, struct cli_args *args)
{
    cli_args_add(args, "--endpoints=%s", up->endpoint);
    cli_args_add(args, "--namespace=%s", up->cli->common.namespace);
}

static int start_controller(struct up *up)
{
    struct cli_args args = { .count = 0 };
    struct hf_key leader = { .kind = HF_KEY_LEADER };
    int rc;

    cli_args_add(&args, "%s/holdfast-controller", up->programs);
    add_common(up, &args);
    if (!up->settings->empty) {
        cli_args_add(&args, "--home-grace=" HOME_GRACE);
        cli_args_add(&args, "--recovery-backoff=" RECOVERY_BACKOFF);
        cli_args_add(&args, "--recovery-hourly-limit=" RECOVERY_LIMIT);
    }
    rc = launch(up, &up->controller, "holdfast-controller", &args, "controller");
    return rc == HF_OK ? wait_for(up, &leader, &up->controller) : rc;
}

/* In single quotes YAML takes everything as it is, except for themselves. */
static void put_quoted(struct hf_buf *text, const char *value)
{
    hf_buf_putc(text, '\'');
    for (; *value != '\0'; value++)
        hf_buf_puts(text, *value == '\'' ? "''" : (char[]){ *value, '\0' });
    hf_buf_putc(text, '\'');
}

static int write_file(struct up *up, const char *name, const struct hf_buf *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s.yaml", up->dir, name);
    if (text->err != HF_OK)
        return cli_fail(up->cli, text->err, "%s: %s", path, hf_err_text(text->err));
    return hf_file_write(path, text->data, text->len, &up->cli->err);
}

/* The same launcher for all, so that each host can run each agent. */
static int write_launcher(struct up *up)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    char command[PATH_MAX];

    (void)snprintf(command, sizeof command, "%s/../libexec/holdfast/demo-agent", up->programs);
    hf_buf_puts(&text, "name: worker\ncommand: [");
    put_quoted(&text, command);
    hf_buf_puts(&text, "]\n");
    return write_file(up, "worker", &text);
}

static int write_host(struct up *up, size_t i)
{
    HF_CLEANUP_BUF struct hf_buf agent = { 0 }, host = { 0 };
    int rc;

    hf_buf_printf(&agent, "name: %s\nrole: %s\nlauncher: worker\n", FLEET[i].agent,
                  FLEET[i].role);
    hf_buf_printf(&host, "launchers: [worker.yaml]\nagents: [%s.yaml]\n", FLEET[i].agent);
    rc = write_file(up, FLEET[i].agent, &agent);
    return rc == HF_OK ? write_file(up, FLEET[i].host, &host) : rc;
}

/* Names and times as flags: the user's environment must not say otherwise. */
static int launch_host(struct up *up, size_t i)
{
    struct cli_args args = { .count = 0 };

    cli_args_add(&args, "%s/agentd", up->programs);
    add_common(up, &args);
    cli_args_add(&args, "--config=%s/%s.yaml", up->dir, FLEET[i].host);
    cli_args_add(&args, "--host=%s", FLEET[i].host);
    cli_args_add(&args, "--ttl=" TTL);
    cli_args_add(&args, "--state-dir=%s/%s", up->dir, FLEET[i].host);
    return launch(up, &up->hosts[i], "agentd", &args, FLEET[i].host);
}

static int start_host(struct up *up, size_t i)
{
    struct hf_key live = { .kind = HF_KEY_AGENT_LIVE, .name = FLEET[i].agent };
    int rc = write_host(up, i);

    if (rc == HF_OK)
        rc = launch_host(up, i);
    return rc == HF_OK ? wait_for(up, &live, &up->hosts[i]) : rc;
}

static int start_fleet(struct up *up)
{
    int rc = write_launcher(up);

    for (size_t i = 0; i < FLEET_SIZE && rc == HF_OK; i++) {
        (void)fprintf(stderr, "starting %s with agent %s\n", FLEET[i].host, FLEET[i].agent);
        rc = start_host(up, i);
    }
    return rc;
}

static int write_env_file(struct up *up)
{
    const char *name = up->settings->env_file;
    struct hf_error why = { "" };
    int rc;

    if (name == NULL)
        return HF_OK;
    (void)snprintf(up->env, sizeof up->env,
                   "export HOLDFAST_ENDPOINTS=%s\nexport HOLDFAST_NAMESPACE=%s\n", up->endpoint,
                   up->cli->common.namespace);
    rc = hf_file_write(name, up->env, strlen(up->env), &why);
    return rc == HF_OK ? HF_OK : cli_fail(up->cli, rc, "%s", why.text);
}

/* Whoever waits for the file must not find the one of another time. */
static void remove_old_env_file(const struct up *up)
{
    const char *name = up->settings->env_file;
    struct stat status;

    if (name != NULL && lstat(name, &status) == 0 && S_ISREG(status.st_mode))
        (void)unlink(name);
}

/* Unless somebody else has written it since. */
static void remove_env_file(const struct up *up)
{
    char text[sizeof up->env + 1] = "";
    FILE *file = up->env[0] != '\0' ? fopen(up->settings->env_file, "re") : NULL;

    if (file == NULL)
        return;
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    if (strcmp(text, up->env) == 0)
        (void)unlink(up->settings->env_file);
}

static int start(struct up *up)
{
    int rc = find_programs(up);

    hold_stops(SIG_BLOCK);
    remove_old_env_file(up);
    if (rc == HF_OK)
        rc = make_dir(up);
    if (rc != HF_OK)
        return rc;
    (void)fprintf(stderr, "starting etcd, its data and all logs in %s\n", up->dir);
    rc = start_etcd(up);
    if (rc == HF_OK) {
        (void)fprintf(stderr, "etcd answers at %s; starting holdfast-controller\n",
                      up->endpoint);
        rc = start_controller(up);
    }
    if (rc == HF_OK && !up->settings->empty)
        rc = start_fleet(up);
    return rc == HF_OK ? write_env_file(up) : rc;
}

/* Ending: hosts first, while there is an etcd that they can say goodbye to. */
static void end(struct up *up)
{
    remove_env_file(up);
    for (size_t i = 0; i < FLEET_SIZE; i++)
        cli_child_ask(&up->hosts[i]);
    for (size_t i = 0; i < FLEET_SIZE; i++) {
        cli_child_reap(&up->hosts[i], GRACE_MS);
        remove_cgroups(up, FLEET[i].host);
    }
    cli_child_ask(&up->controller);
    cli_child_reap(&up->controller, GRACE_MS);
    connect_done(up);
    cli_child_ask(&up->etcd);
    cli_child_reap(&up->etcd, GRACE_MS);
    remove_dir(up);
}

static int check_children(struct up *up)
{
    int rc = check_alive(up, &up->etcd);

    if (rc == HF_OK)
        rc = check_alive(up, &up->controller);
    return rc;
}

/* A host that was killed stays away until its agents live elsewhere. */
static bool is_repaired(struct up *up, size_t i, bool all_live)
{
    hf_ms away;

    if (up->lost_at[i] == 0)
        up->lost_at[i] = now();
    away = now() - up->lost_at[i];
    return away > HOST_AWAY_MAX_MS || (all_live && away > HOST_AWAY_MS);
}

static int repair_hosts(struct up *up, bool all_live)
{
    int rc = HF_OK;

    for (size_t i = 0; i < FLEET_SIZE && rc == HF_OK && !up->settings->empty; i++) {
        if (!cli_child_has_ended(&up->hosts[i]) || !is_repaired(up, i, all_live))
            continue;
        up->lost_at[i] = 0;
        rc = launch_host(up, i);
    }
    return rc;
}

static int show(struct up *up)
{
    char here[PATH_MAX];
    size_t len = getcwd(here, sizeof here) != NULL ? strlen(here) : 0;
    bool beneath = len > 1 && strncmp(up->programs, here, len) == 0 && up->programs[len] == '/';
    struct cli_live live = { .endpoint = up->endpoint,
                             .programs = up->programs + (beneath ? len + 1 : 0),
                             .demo = !up->settings->empty };
    int rc = HF_OK;

    cli_live_begin(&live);
    while (rc == HF_OK) {
        rc = cli_live_refresh(up->cli, &live);
        if (rc == HF_OK)
            rc = check_children(up);
        if (rc == HF_OK)
            rc = repair_hosts(up, live.all_live);
        if (rc == HF_OK)
            rc = pause_for(up, REFRESH_MS);
    }
    cli_live_end(&live);
    return rc;
}

static int run(struct cli *cli)
{
    struct up up = { .cli = cli, .settings = cli->settings };
    int rc = start(&up);

    if (rc == HF_OK)
        rc = show(&up);
    (void)fprintf(stderr, "ending everything\n");
    end(&up);
    return rc == HF_ECANCELED ? HF_OK : rc;
}

const struct cli_command CLI_UP = {
    .name = "up",
    .args = "",
    .summary = "Start a fleet on this machine: etcd, a controller and three agents with work.",
    .more =
        "It stays in the foreground and shows what happens until Ctrl-C, which ends "
        "everything\n"
        "and leaves nothing behind. Several can run side by side. Try in another terminal:\n\n"
        "  holdfast demo crash    an agent is killed\n"
        "  holdfast demo host     a whole host is killed, and back half a minute later\n"
        "  holdfast demo freeze   a host stands still for a while",
    CLI_OPTIONS(TABLE, struct settings),
    .offline = true,
    .nameless = true,
    .run = run,
};
