#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/task.h"
#include "holdfast/v1/cli.pb-c.h"
#include "schema/json.h"

struct settings {
    const char *role;
    const char *state;
    const char *owner;
};

static const struct hf_option TABLE[] = {
    { .flag = "role",
      .value = "ROLE",
      HF_OPTION_FIELD(NAME, struct settings, role),
      .help = "Only tasks of this role." },
    { .flag = "state",
      .value = "STATE",
      HF_OPTION_FIELD(STRING, struct settings, state),
      .help = "Only tasks in this state: " CLI_TASK_STATES "." },
    { .flag = "owner",
      .value = "AGENT",
      HF_OPTION_FIELD(NAME, struct settings, owner),
      .help = "Only tasks that this agent works on." },
};

static const struct cli_column COLUMNS[] = {
    { .title = "TASK" },
    { .title = "ROLE", .drop = 1 },
    { .title = "STATE" },
    { .title = "OWNER", .drop = 2 },
    { .title = "ATTEMPT", .drop = 4, .right = true },
    { .title = "PRIORITY", .drop = 6, .right = true },
    { .title = "CHECKPOINT", .drop = 5, .right = true },
    { .title = "RESERVED", .wide = true },
    { .title = "REASON", .drop = 3, .cuts = true },
};

struct tasks {
    const struct settings *settings;
    Holdfast__V1__Task **items;
    size_t count, cap;
};

static bool is_wanted(const struct settings *wanted, const Holdfast__V1__Task *task)
{
    if (wanted->role != NULL && strcmp(wanted->role, task->role) != 0)
        return false;
    if (wanted->state != NULL && strcmp(wanted->state, hf_task_state_name(task->state)) != 0)
        return false;
    return wanted->owner == NULL ||
           (task->owner != NULL && strcmp(wanted->owner, task->owner->agent) == 0);
}

static int keep(struct hf_fleet_change *found, void *arg)
{
    struct tasks *tasks = arg;

    if (!is_wanted(tasks->settings, (const Holdfast__V1__Task *)found->record))
        return HF_OK;
    if (!hf_grow(&tasks->items, &tasks->cap, tasks->count + 1, sizeof(Holdfast__V1__Task *)))
        return HF_ENOMEM;
    tasks->items[tasks->count++] = (Holdfast__V1__Task *)found->record;
    found->record = NULL;
    return HF_OK;
}

static void add_row(struct cli_table *table, const Holdfast__V1__Task *task)
{
    cli_table_add(table, CLI_PLAIN, "%s", task->id);
    cli_table_add(table, CLI_PLAIN, "%s", task->role);
    cli_table_add(table, cli_task_colour(task->state), "%s", hf_task_state_name(task->state));
    cli_table_add(table, CLI_PLAIN, "%s", task->owner != NULL ? task->owner->agent : "");
    cli_table_add(table, task->attempt > 1 ? CLI_WARN : CLI_PLAIN, "%" PRId32, task->attempt);
    cli_table_add(table, CLI_PLAIN, "%" PRId32, task->priority);
    if (task->checkpoint != NULL)
        cli_table_add(table, CLI_PLAIN, "%" PRId64, task->checkpoint->seq);
    else
        cli_table_add(table, CLI_DIM, "-");
    cli_table_add(table, CLI_PLAIN, "%s", task->reserved_for);
    cli_table_add(table, CLI_PLAIN, "%s", cli_task_reason(task));
}

static int print(struct cli *cli, const struct tasks *tasks)
{
    CLI_CLEANUP_TABLE struct cli_table table;
    Holdfast__V1__TaskList list = HOLDFAST__V1__TASK_LIST__INIT;
    HF_CLEANUP_BUF struct hf_buf names = { 0 };

    cli_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    if (cli->output == CLI_JSON) {
        list.tasks = tasks->items;
        list.n_tasks = tasks->count;
        return cli_out_json(cli, &list.base);
    }
    for (size_t i = 0; i < tasks->count; i++) {
        hf_buf_printf(&names, "%s\n", tasks->items[i]->id);
        add_row(&table, tasks->items[i]);
    }
    if (cli->output == CLI_NAME)
        return cli_out_text(cli, &names);
    return cli_table_print(cli, &table, "There are no such tasks.");
}

static int run(struct cli *cli)
{
    struct tasks tasks = { .settings = cli->settings };
    int rc = cli_check_task_state(cli, tasks.settings->state);

    if (rc == HF_OK)
        rc = cli_list(cli, HF_KEY_IN_TASKS, NULL, keep, &tasks);
    if (rc == HF_OK)
        rc = print(cli, &tasks);
    for (size_t i = 0; i < tasks.count; i++)
        hf_json_free(&tasks.items[i]->base);
    free(tasks.items);
    return rc;
}

const struct cli_command CLI_TASK_LS = {
    .name = "task ls",
    .args = "",
    .summary = "List tasks.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
