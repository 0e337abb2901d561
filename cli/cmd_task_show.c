#include "cli/commands.h"
#include "cli/tasks.h"

static int run(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = cli_read_task(cli, cli->args[0], &record);

    return rc == HF_OK ? cli_print_task(cli, cli_task_of(&record)) : rc;
}

const struct cli_command CLI_TASK_SHOW = {
    .name = "task show",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Show everything about a task.",
    .run = run,
};
