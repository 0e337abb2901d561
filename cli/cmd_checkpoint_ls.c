#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/tasks.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

static const struct cli_column COLUMNS[] = {
    { .title = "SEQ", .right = true },
    { .title = "PARENT", .right = true, .drop = 3 },
    { .title = "SIZE", .right = true },
    { .title = "STORE", .drop = 2 },
    { .title = "KEY", .drop = 4, .cuts = true },
    { .title = "SHA256", .drop = 5, .cuts = true },
};

struct chain {
    struct cli_table table;
    Holdfast__V1__Checkpoint **entries;
    size_t count, cap;
};

static int add(struct hf_fleet_change *found, void *arg)
{
    const Holdfast__V1__Checkpoint *entry = (const Holdfast__V1__Checkpoint *)found->record;
    struct chain *chain = arg;

    if (!hf_grow(&chain->entries, &chain->cap, chain->count + 1,
                 sizeof(Holdfast__V1__Checkpoint *)))
        return HF_ENOMEM;
    chain->entries[chain->count++] = (Holdfast__V1__Checkpoint *)found->record;
    found->record = NULL;
    cli_table_add(&chain->table, CLI_PLAIN, "%" PRId64, entry->seq);
    cli_table_add(&chain->table, CLI_PLAIN, "%" PRId64, entry->parent);
    cli_table_add(&chain->table, CLI_PLAIN, "%" PRId64, entry->size);
    cli_table_add(&chain->table, CLI_PLAIN, "%s", entry->store);
    cli_table_add(&chain->table, CLI_PLAIN, "%s", entry->key);
    cli_table_add(&chain->table, CLI_PLAIN, "%s", entry->sha256);
    return HF_OK;
}

static int print(struct cli *cli, struct chain *chain)
{
    Holdfast__V1__CheckpointList list = HOLDFAST__V1__CHECKPOINT_LIST__INIT;

    if (cli->output != CLI_JSON)
        return cli_table_print(cli, &chain->table, "This task has no checkpoints.");
    list.checkpoints = chain->entries;
    list.n_checkpoints = chain->count;
    return cli_out_json(cli, &list.base);
}

static int run(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record task = { 0 };
    struct chain chain = { .count = 0 };
    int rc = cli_read_task(cli, cli->args[0], &task);

    cli_table_init(&chain.table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    if (rc == HF_OK)
        rc = cli_list(cli, HF_KEY_IN_CHECKPOINTS_TASK, cli->args[0], add, &chain);
    if (rc == HF_OK)
        rc = print(cli, &chain);
    for (size_t i = 0; i < chain.count; i++)
        hf_json_free(&chain.entries[i]->base);
    free(chain.entries);
    cli_table_done(&chain.table);
    return rc;
}

const struct cli_command CLI_CHECKPOINT_LS = {
    .name = "checkpoint ls",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "List the checkpoints of a task, oldest first.",
    .run = run,
};
