#include "cli/commands.h"
#include "cli/removal.h"
#include "core/rows.h"

static int run(struct cli *cli)
{
    static const struct cli_removal REMOVAL = {
        .what = "agent",
        .kept = HF_KEY_AGENT_SPEC,
        .live = HF_KEY_AGENT_LIVE,
        .has_wish = true,
        .row = hf_row_remove_agent,
        .how_to_end = "Stop it first: holdfast stop AGENT.",
    };

    return cli_remove(cli, &REMOVAL);
}

const struct cli_command CLI_AGENT_RM = {
    .name = "agent rm",
    .args = "AGENT",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Remove an agent that is not alive, with all its records.",
    .run = run,
};
