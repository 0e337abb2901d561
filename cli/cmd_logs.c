/* logs: what an agent wrote to its standard output and error, as its agentd keeps it. The file
 * lies on the agent's own host, so this works there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/local.h"
#include "cli/out.h"
#include "cli/store.h"
#include "schema/name.h"

enum { LOOK_MS = 200, CHUNK = 65536 };

struct settings {
    bool follow;
    const char *state_dir;
};

static const struct hf_option TABLE[] = {
    { .flag = "follow",
      .letter = 'f',
      HF_OPTION_FIELD(BOOL, struct settings, follow),
      .help = "Go on with what it writes from now on, through its restarts." },
    { .flag = "state-dir",
      .env = "HOLDFAST_STATE_DIR",
      .value = "DIR",
      HF_OPTION_FIELD(STRING, struct settings, state_dir),
      .help =
          "The state directory of its agentd. Without it the agent has to be running here." },
};

static int find_log(struct cli *cli, char *ret_path, size_t size)
{
    const struct settings *settings = cli->settings;
    const char *agent = cli->args[0];
    CLI_CLEANUP_RECORD struct cli_record live = { 0 }, spec = { 0 };
    char dir[PATH_MAX];
    int rc;

    if (settings->state_dir != NULL) {
        (void)snprintf(ret_path, size, "%s/agents/%s.log", settings->state_dir, agent);
        return HF_OK;
    }
    rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_AGENT_LIVE, .name = agent }, &live);
    if (rc == HF_OK && live.message == NULL)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_AGENT_SPEC, .name = agent }, &spec);
    if (rc != HF_OK)
        return rc;
    if (live.message == NULL && spec.message == NULL)
        return cli_fail(cli, HF_ENOENT, "there is no agent %s; holdfast ps lists them", agent);
    if (live.message == NULL)
        return cli_fail(cli, HF_ENOENT,
                        "%s does not run: say with --state-dir where its agentd keeps its log",
                        agent);
    if (!cli_find_agents_dir((const Holdfast__V1__Live *)live.message, dir, sizeof dir))
        return cli_fail(cli, HF_ENOENT,
                        "the log of %s lies on its host, %s: ask there, as the user of its "
                        "agentd, or say --state-dir",
                        agent, ((const Holdfast__V1__Live *)live.message)->host);
    (void)snprintf(ret_path, size, "%s/%s.log", dir, agent);
    return HF_OK;
}

/* All that is there now. */
static int copy(struct cli *cli, int fd)
{
    static char chunk[CHUNK];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        if (fwrite(chunk, 1, (size_t)n, stdout) != (size_t)n)
            return cli_out_failed(cli);
    }
    if (n < 0)
        return cli_fail(cli, HF_EIO, "its log cannot be read: %s", strerror(errno));
    return fflush(stdout) == 0 ? HF_OK : cli_out_failed(cli);
}

static bool is_replaced(int fd, const char *path)
{
    struct stat ours, named;

    return fstat(fd, &ours) == 0 && stat(path, &named) == 0 &&
           (ours.st_ino != named.st_ino || ours.st_dev != named.st_dev);
}

static void rest(struct cli *cli)
{
    struct hf_clock clock = hf_clock_boottime();
    bool never = false;

    (void)!cli_wait(cli, &never, hf_clock_now(&clock) + LOOK_MS);
}

/* Until Ctrl-C, or nobody reads any more. When the log grew too long it is put aside: what was
 * still written to it comes first. */
static int follow(struct cli *cli, const char *path, int fd)
{
    int rc = HF_OK, next;

    while (rc == HF_OK) {
        rest(cli);
        next = is_replaced(fd, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        rc = copy(cli, fd);
        if (next >= 0) {
            (void)dup3(next, fd, O_CLOEXEC);
            (void)close(next);
        }
    }
    return rc;
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    char path[2 * PATH_MAX];
    HF_CLEANUP_FD int fd = -1;
    int rc = hf_name_check("agent", cli->args[0], &cli->err);

    if (rc == HF_OK)
        rc = find_log(cli, path, sizeof path);
    if (rc != HF_OK)
        return rc;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail(cli, errno == EACCES ? HF_EDENIED : HF_ENOENT, "%s: %s", path,
                        strerror(errno));
    rc = copy(cli, fd);
    return rc == HF_OK && settings->follow ? follow(cli, path, fd) : rc;
}

const struct cli_command CLI_LOGS = {
    .name = "logs",
    .args = "AGENT",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Print what an agent on this machine wrote.",
    CLI_OPTIONS(TABLE, struct settings),
    .nameless = true,
    .run = run,
};
