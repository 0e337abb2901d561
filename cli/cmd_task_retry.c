#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/rows.h"
#include "core/task.h"

struct retry_settings {
    bool lost_files;
};

static const struct hf_option OPTIONS[] = {
    { .flag = "lost-files",
      HF_OPTION_FIELD(BOOL, struct retry_settings, lost_files),
      .help =
          "Nobody will read the files again that its checkpoint lies in: go on from an older "
          "one that can be read, or start over." },
};

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 }, recovery = { 0 };
    const struct retry_settings *settings = cli->settings;
    Holdfast__V1__Root lost;
    Holdfast__V1__Task next;
    struct hf_task_step step;
    int rc = cli_read_task(cli, cli->args[0], &record);

    (void)arg;
    if (rc == HF_OK)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_RECOVERY, .name = cli->args[0] },
                      &recovery);
    if (rc != HF_OK)
        return rc;
    next = *cli_task_of(&record);
    if (settings->lost_files && next.root == NULL)
        return cli_fail(cli, HF_EINVAL,
                        "--lost-files: the newest checkpoint of task %s does not lie in files",
                        cli->args[0]);
    if (settings->lost_files) {
        lost = *next.root;
        lost.lost = true;
        next.root = &lost;
    }
    step = hf_task_next(&next, settings->lost_files ? HF_TASK_RETRY_LOST : HF_TASK_RETRY);
    if (!step.allowed)
        return cli_fail(cli, HF_ECONFLICT, "task %s cannot be retried: %s", cli->args[0],
                        step.why);
    hf_row_retry(plan, &(struct hf_seen_task){ .seen = record.seen, .task = &next },
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
    CLI_OPTIONS(OPTIONS, struct retry_settings),
    .run = run,
};
