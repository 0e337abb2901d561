#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/rows.h"
#include "core/task.h"

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 }, recovery = { 0 };
    struct hf_task_step step;
    int rc = cli_read_task(cli, cli->args[0], &record);

    (void)arg;
    if (rc == HF_OK)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_RECOVERY, .name = cli->args[0] },
                      &recovery);
    if (rc != HF_OK)
        return rc;
    step = hf_task_next(cli_task_of(&record), HF_TASK_RETRY);
    if (!step.allowed)
        return cli_fail(cli, HF_ECONFLICT, "task %s cannot be retried: %s", cli->args[0],
                        step.why);
    hf_row_retry(plan,
                 &(struct hf_seen_task){ .seen = record.seen, .task = cli_task_of(&record) },
                 &recovery.seen);
    return HF_OK;
}

static int run(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = cli_act(
        cli, &(struct cli_act){ .fill = fill, .task = cli->args[0], .what = "task retried" });

    if (rc == HF_OK)
        rc = cli_read_task(cli, cli->args[0], &record);
    return rc == HF_OK ? cli_print_task(cli, cli_task_of(&record)) : rc;
}

const struct cli_command CLI_TASK_RETRY = {
    .name = "task retry",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Offer a task again that ended without success; its counters begin anew.",
    .run = run,
};
