#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/rows.h"
#include "core/task.h"

struct settings {
    const char *reason;
};

static const struct hf_option TABLE[] = {
    { .flag = "reason",
      .value = "TEXT",
      HF_OPTION_FIELD(STRING, struct settings, reason),
      .help = "Why; it is kept with the task." },
};

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    const struct settings *settings = cli->settings;
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    struct hf_task_step step;
    int rc = cli_read_task(cli, cli->args[0], &record);

    (void)arg;
    if (rc != HF_OK)
        return rc;
    step = hf_task_next(cli_task_of(&record), HF_TASK_CANCEL);
    if (!step.allowed)
        return cli_fail(cli, HF_ECONFLICT, "task %s cannot be cancelled: %s", cli->args[0],
                        step.why);
    hf_row_cancel(plan,
                  &(struct hf_seen_task){ .seen = record.seen, .task = cli_task_of(&record) },
                  settings->reason != NULL ? settings->reason : "cancelled by a person");
    return HF_OK;
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = cli_act(cli, &(struct cli_act){ .fill = fill,
                                             .task = cli->args[0],
                                             .what = "task cancelled",
                                             .reason = settings->reason });

    if (rc == HF_OK)
        rc = cli_read_task(cli, cli->args[0], &record);
    return rc == HF_OK ? cli_print_task(cli, cli_task_of(&record)) : rc;
}

const struct cli_command CLI_TASK_CANCEL = {
    .name = "task cancel",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Cancel a task; whoever works on it can no longer report on it.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
