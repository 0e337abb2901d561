#include <stdio.h>

#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/tasks.h"
#include "core/rows.h"
#include "core/task.h"

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = cli_read_task(cli, cli->args[0], &record);

    (void)arg;
    if (rc != HF_OK)
        return rc;
    if (!hf_task_is_final(cli_task_of(&record)->state))
        return cli_fail(cli, HF_ECONFLICT,
                        "task %s is %s, so somebody may still work on it. Cancel it first: "
                        "holdfast task cancel %s.",
                        cli->args[0], hf_task_state_name(cli_task_of(&record)->state),
                        cli->args[0]);
    hf_row_remove_task(
        plan, &(struct hf_seen_task){ .seen = record.seen, .task = cli_task_of(&record) });
    return HF_OK;
}

static int run(struct cli *cli)
{
    char sentence[HF_NAME_MAX + 16];
    int rc = cli_act(
        cli, &(struct cli_act){ .fill = fill, .task = cli->args[0], .what = "task removed" });

    if (rc != HF_OK)
        return rc;
    (void)snprintf(sentence, sizeof sentence, "%s: removed", cli->args[0]);
    return cli_out_done(cli, cli->args[0], "removed", sentence);
}

const struct cli_command CLI_TASK_RM = {
    .name = "task rm",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Remove a task that has ended, with its input, its result and its checkpoints.",
    .run = run,
};
