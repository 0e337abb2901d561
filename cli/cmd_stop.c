#include "cli/commands.h"
#include "cli/want.h"

static int run(struct cli *cli)
{
    static const struct cli_want WANT = {
        .stopped = true,
        .ends = true,
        .releases = false,
        .what = "agent stopped",
        .then = "wanted stopped; its agentd ends it, and nobody starts it again",
    };

    return cli_want(cli, &WANT);
}

const struct cli_command CLI_STOP = {
    .name = "stop",
    .args = "AGENT",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Stop an agent, and keep it stopped until holdfast start.",
    CLI_OPTIONS(CLI_WANT_OPTIONS, struct cli_want_settings),
    .run = run,
};
