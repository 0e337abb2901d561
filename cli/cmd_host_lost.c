#include "cli/commands.h"
#include "cli/hosts.h"

static void change(Holdfast__V1__Host *host)
{
    host->left = true;
}

static int run(struct cli *cli)
{
    static const struct cli_host_change CHANGE = {
        .change = change,
        .when_gone = true,
        .what = "host lost",
        .then = "counts as gone for good; what it had is started elsewhere",
    };

    return cli_change_host(cli, &CHANGE);
}

const struct cli_command CLI_HOST_LOST = {
    .name = "host lost",
    .args = "HOST",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Say that a host will not come back, so that nobody waits for it.",
    .run = run,
};
