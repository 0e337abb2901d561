#include "cli/commands.h"
#include "cli/hosts.h"

static void change(Holdfast__V1__Host *host)
{
    host->cordoned = true;
}

static int run(struct cli *cli)
{
    static const struct cli_host_change CHANGE = {
        .change = change,
        .when_gone = false,
        .what = "host cordoned",
        .then = "gets no new starts; what runs there goes on",
    };

    return cli_change_host(cli, &CHANGE);
}

const struct cli_command CLI_HOST_CORDON = {
    .name = "host cordon",
    .args = "HOST",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Let no more agents be started on a host.",
    .run = run,
};
