#include <inttypes.h>

#include "cli/checkpoints.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "holdfast/v1/localapi.pb-c.h"

static const struct cli_column COLUMNS[] = {
    { .title = "SEQ", .right = true },
    { .title = "PARENT", .right = true, .drop = 3 },
    { .title = "SIZE", .right = true },
    { .title = "WHERE", .drop = 2 },
    { .title = "KEY", .drop = 4, .cuts = true },
    { .title = "SHA256", .drop = 5, .cuts = true },
};

static int print_names(struct cli *cli, const struct cli_checkpoints *chain)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    for (size_t i = 0; i < chain->count; i++)
        hf_buf_printf(&out, "%" PRId64 "\n", chain->entries[i]->seq);
    return cli_out_text(cli, &out);
}

static int print(struct cli *cli, struct cli_table *table, const struct cli_checkpoints *chain)
{
    Holdfast__V1__CheckpointList list = HOLDFAST__V1__CHECKPOINT_LIST__INIT;

    if (cli->output == CLI_NAME)
        return print_names(cli, chain);
    if (cli->output != CLI_JSON)
        return cli_table_print(cli, table, "This task has no checkpoints.");
    list.checkpoints = chain->entries;
    list.n_checkpoints = chain->count;
    return cli_out_json(cli, &list.base);
}

static int run(struct cli *cli)
{
    CLI_CLEANUP_CHECKPOINTS struct cli_checkpoints chain = { 0 };
    CLI_CLEANUP_TABLE struct cli_table table;
    int rc = cli_checkpoints_read(cli, cli->args[0], &chain);

    cli_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; i < chain.count; i++) {
        const Holdfast__V1__Checkpoint *entry = chain.entries[i];
        char where[300];

        cli_table_add(&table, CLI_PLAIN, "%" PRId64, entry->seq);
        cli_table_add(&table, CLI_PLAIN, "%" PRId64, entry->parent);
        cli_table_add(&table, CLI_PLAIN, "%" PRId64, entry->size);
        cli_table_add(&table, CLI_PLAIN, "%s", cli_body_where(entry, where));
        cli_table_add(&table, CLI_PLAIN, "%s", entry->key);
        cli_table_add(&table, CLI_PLAIN, "%s", entry->sha256);
    }
    return rc == HF_OK ? print(cli, &table, &chain) : rc;
}

const struct cli_command CLI_CHECKPOINT_LS = {
    .name = "checkpoint ls",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "List the checkpoints of a task, oldest first.",
    .run = run,
};
