#include <inttypes.h>

#include "base/cleanup.h"
#include "cli/checkpoints.h"
#include "cli/commands.h"
#include "cli/out.h"

/* The newest that is whole, or the one that was asked for. */
static int run(struct cli *cli)
{
    const struct cli_body_settings *settings = cli->settings;
    CLI_CLEANUP_CHECKPOINTS struct cli_checkpoints chain = { 0 };
    struct cli_body_found found;
    int rc = cli_checkpoints_read(cli, cli->args[0], &chain);

    for (size_t i = chain.count; rc == HF_OK && i > 0; i--) {
        const Holdfast__V1__Checkpoint *entry = chain.entries[i - 1];

        if (settings->seq != 0 && entry->seq != settings->seq)
            continue;
        rc = cli_body_print(cli, entry, &found);
        if (rc == HF_OK && found.what == CLI_BODY_WHOLE)
            return HF_OK;
        /* One that cannot be looked at may be the newest: an older one is not what was meant.
         */
        if (rc == HF_OK && (settings->seq != 0 || found.what == CLI_BODY_UNSEEN))
            return cli_fail(cli, found.what == CLI_BODY_UNSEEN ? HF_EINVAL : HF_ECORRUPT,
                            "checkpoint %" PRId64 " of %s: %s", entry->seq, cli->args[0],
                            found.text);
    }
    if (rc != HF_OK)
        return rc;
    return cli_fail(cli, HF_ENOENT,
                    "task %s has no such checkpoint that is whole; holdfast "
                    "checkpoint verify %s says why",
                    cli->args[0], cli->args[0]);
}

const struct cli_command CLI_CHECKPOINT_GET = {
    .name = "checkpoint get",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Write the newest checkpoint that is whole to standard output.",
    CLI_OPTIONS(CLI_BODY_OPTIONS, struct cli_body_settings),
    .nameless = true,
    .run = run,
};
