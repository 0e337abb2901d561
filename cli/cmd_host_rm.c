#include "cli/commands.h"
#include "cli/removal.h"
#include "core/rows.h"

static int run(struct cli *cli)
{
    static const struct cli_removal REMOVAL = {
        .what = "host",
        .kept = HF_KEY_HOST_RECORD,
        .live = HF_KEY_HOST_LIVE,
        .row = hf_row_remove_host,
        .how_to_end = "Stop its agentd first.",
    };

    return cli_remove(cli, &REMOVAL);
}

const struct cli_command CLI_HOST_RM = {
    .name = "host rm",
    .args = "HOST",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Remove a host that is gone.",
    .run = run,
};
