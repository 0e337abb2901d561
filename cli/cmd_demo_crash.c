/* demo crash: one agent dies, and its agentd sees it. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/demo.h"

static int crash(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;

    cli_demo_act(demo);
    if (kill(victim->pid, SIGKILL) != 0)
        return cli_fail(demo->cli, errno == EPERM ? HF_EDENIED : HF_EIO, "kill %d: %s",
                        (int)victim->pid, strerror(errno));
    cli_demo_tell(demo, "kill -9 of %s (pid %d on %s), in the middle of %s", victim->name,
                  (int)victim->pid, victim->host, victim->task);
    return cli_demo_watch_recovery(demo);
}

static int run(struct cli *cli)
{
    struct cli_demo demo;
    int rc = cli_demo_begin(&demo, cli);

    if (rc == HF_OK)
        rc = crash(&demo);
    cli_demo_end(&demo);
    return rc;
}

const struct cli_command CLI_DEMO_CRASH = {
    .name = "demo crash",
    .args = "[AGENT]",
    .arg_max = 1,
    .summary = "Kill an agent in the middle of its work, and tell what follows.",
    .more =
        "The agent must run on this machine and be at work on a task. Without a name one of\n"
        "them is chosen.",
    .nameless = true,
    .run = run,
};
