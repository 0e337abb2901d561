/* demo host: a whole host is gone at once, and nobody is left there who could say so. */
#include "cli/commands.h"
#include "cli/demo.h"

enum { KILL_MS = 10000 };

static int lose_host(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;

    if (!victim->has_agentd)
        return cli_fail(demo->cli, HF_ENOENT, "the agentd of %s on %s cannot be found here",
                        victim->name, victim->host);
    if (!cli_process_kill_tree(victim->agentd.link.parent, KILL_MS))
        return cli_fail(demo->cli, HF_EIO, "not everything on %s could be killed",
                        victim->host);
    return HF_OK;
}

static int tell(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;
    int rc;

    cli_demo_act(demo);
    rc = lose_host(demo);
    if (rc != HF_OK)
        return rc;
    cli_demo_tell(
        demo,
        "kill -9 of everything on %s: agentd (pid %d), its link (pid %d) and all that "
        "they started; %s was in the middle of %s",
        victim->host, (int)victim->agentd.link.parent, (int)victim->agentd.link.pid,
        victim->name, victim->task);
    cli_demo_tell(
        demo,
        "nobody saw that, so nobody knows: waiting until the lease of %s has run out, "
        "%.0f s after it was last renewed",
        victim->host, (double)victim->ttl / 1000);
    return cli_demo_watch_recovery(demo);
}

static int run(struct cli *cli)
{
    struct cli_demo demo;
    int rc = cli_demo_begin(&demo, cli);

    if (rc == HF_OK)
        rc = tell(&demo);
    cli_demo_end(&demo);
    return rc;
}

const struct cli_command CLI_DEMO_HOST = {
    .name = "demo host",
    .args = "[AGENT]",
    .arg_max = 1,
    .summary = "Kill the whole host of an agent that is at work, and tell what follows.",
    .more =
        "agentd of that host and everything that it started is killed at once. The agent must\n"
        "run on this machine and be at work on a task; without a name one of them is chosen.\n"
        "It goes on where another host of its pool has its launcher, as in `holdfast up`,\n"
        "which brings the host back later.",
    .nameless = true,
    .run = run,
};
