#include "cli/commands.h"
#include "cli/hosts.h"

static void change(Holdfast__V1__Host *host)
{
    host->cordoned = false;
}

static int run(struct cli *cli)
{
    static const struct cli_host_change CHANGE = {
        .change = change,
        .when_gone = false,
        .what = "host uncordoned",
        .then = "may get starts again",
    };

    return cli_change_host(cli, &CHANGE);
}

const struct cli_command CLI_HOST_UNCORDON = {
    .name = "host uncordon",
    .args = "HOST",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Let agents be started on a host again.",
    .run = run,
};
