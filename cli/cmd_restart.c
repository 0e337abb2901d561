#include "cli/commands.h"
#include "cli/want.h"

static int run(struct cli *cli)
{
    static const struct cli_want WANT = {
        .stopped = false,
        .ends = true,
        .releases = true,
        .what = "agent restarted",
        .then = "the life that it has ends, and another one begins",
    };

    return cli_want(cli, &WANT);
}

const struct cli_command CLI_RESTART = {
    .name = "restart",
    .args = "AGENT",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "End the present life of an agent and start it anew; releases one that is held.",
    CLI_OPTIONS(CLI_WANT_OPTIONS, struct cli_want_settings),
    .run = run,
};
