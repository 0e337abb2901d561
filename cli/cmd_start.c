#include "cli/commands.h"
#include "cli/want.h"

static int run(struct cli *cli)
{
    static const struct cli_want WANT = {
        .stopped = false,
        .ends = false,
        .releases = true,
        .what = "agent started",
        .then = "wanted running; the controller starts it if it is not live",
    };

    return cli_want(cli, &WANT);
}

const struct cli_command CLI_START = {
    .name = "start",
    .args = "AGENT",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Want an agent running; also releases one that is held.",
    CLI_OPTIONS(CLI_WANT_OPTIONS, struct cli_want_settings),
    .run = run,
};
