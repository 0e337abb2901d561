#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "cli/checkpoints.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "holdfast/v1/cli.pb-c.h"

static const struct cli_column COLUMNS[] = {
    { .title = "SEQ", .right = true },
    { .title = "SIZE", .right = true, .drop = 2 },
    { .title = "WHERE", .drop = 1 },
    { .title = "RESULT" },
};

struct findings {
    struct cli_table table;
    Holdfast__V1__ChainReport__Entry *entries;
    struct cli_body_found *found;
    Holdfast__V1__ChainReport__Entry **list;
    size_t count;
    bool ok;
};

static int look(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                struct findings *findings)
{
    struct cli_body_found *found = &findings->found[findings->count];
    int rc = cli_body_look(cli, entry, found);
    Holdfast__V1__ChainReport__Entry *next = &findings->entries[findings->count];
    char where[300];

    if (rc != HF_OK)
        return rc;
    holdfast__v1__chain_report__entry__init(next);
    next->seq = entry->seq;
    next->ok = found->what == CLI_BODY_WHOLE;
    next->text = found->text;
    findings->list[findings->count++] = next;
    findings->ok = findings->ok && next->ok;
    cli_table_add(&findings->table, CLI_PLAIN, "%" PRId64, entry->seq);
    cli_table_add(&findings->table, CLI_PLAIN, "%" PRId64, entry->size);
    cli_table_add(&findings->table, CLI_PLAIN, "%s", cli_body_where(entry, where));
    cli_table_add(&findings->table, next->ok ? CLI_GOOD : CLI_BAD, "%s", next->text);
    return HF_OK;
}

/* The task names one that nobody can find. */
static void miss(int64_t seq, struct findings *findings)
{
    Holdfast__V1__ChainReport__Entry *next = &findings->entries[findings->count];

    holdfast__v1__chain_report__entry__init(next);
    next->seq = seq;
    next->text = (char *)"its entry is not there";
    findings->list[findings->count++] = next;
    findings->ok = false;
    cli_table_add(&findings->table, CLI_PLAIN, "%" PRId64, seq);
    cli_table_add(&findings->table, CLI_PLAIN, "-");
    cli_table_add(&findings->table, CLI_PLAIN, "-");
    cli_table_add(&findings->table, CLI_BAD, "%s", next->text);
}

/* What a script has to do something about. */
static int print_names(struct cli *cli, const struct findings *findings)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    for (size_t i = 0; i < findings->count; i++) {
        if (!findings->list[i]->ok)
            hf_buf_printf(&out, "%" PRId64 "\n", findings->list[i]->seq);
    }
    return cli_out_text(cli, &out);
}

static int print(struct cli *cli, struct findings *findings)
{
    Holdfast__V1__ChainReport report = HOLDFAST__V1__CHAIN_REPORT__INIT;

    cli->status = findings->ok ? 0 : CLI_EXIT_FAILURE;
    if (cli->output == CLI_NAME)
        return print_names(cli, findings);
    if (cli->output != CLI_JSON)
        return cli_table_print(cli, &findings->table, "This task has no checkpoints.");
    report.task = (char *)cli->args[0];
    report.ok = findings->ok;
    report.checkpoints = findings->list;
    report.n_checkpoints = findings->count;
    return cli_out_json(cli, &report.base);
}

static int run(struct cli *cli)
{
    const struct cli_body_settings *settings = cli->settings;
    CLI_CLEANUP_CHECKPOINTS struct cli_checkpoints chain = { 0 };
    struct findings findings = { .ok = true };
    int rc = cli_checkpoints_read(cli, cli->args[0], &chain);

    cli_table_init(&findings.table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    findings.entries = hf_calloc(chain.count + 1, sizeof *findings.entries);
    findings.list = hf_calloc(chain.count + 1, sizeof(Holdfast__V1__ChainReport__Entry *));
    findings.found = hf_calloc(chain.count + 1, sizeof *findings.found);
    if (findings.entries == NULL || findings.list == NULL || findings.found == NULL) {
        (void)cli_fail(cli, HF_ENOMEM, "out of memory");
        rc = HF_ENOMEM;
    }
    for (size_t i = 0; rc == HF_OK && i < chain.count; i++) {
        if (settings->seq == 0 || chain.entries[i]->seq == settings->seq)
            rc = look(cli, chain.entries[i], &findings);
    }
    if (rc == HF_OK && chain.head != 0 &&
        (chain.count == 0 || chain.entries[chain.count - 1]->seq < chain.head) &&
        (settings->seq == 0 || settings->seq == chain.head))
        miss(chain.head, &findings);
    if (rc == HF_OK && settings->seq != 0 && findings.count == 0)
        rc = cli_fail(cli, HF_ENOENT, "task %s has no checkpoint %" PRId64, cli->args[0],
                      settings->seq);
    if (rc == HF_OK)
        rc = print(cli, &findings);
    free(findings.entries);
    free(findings.found);
    free(findings.list);
    cli_table_done(&findings.table);
    return rc;
}

const struct cli_command CLI_CHECKPOINT_VERIFY = {
    .name = "checkpoint verify",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Hold the checkpoints of a task against their sizes and digests.",
    .more =
        "Exit status 1 when one of them is not whole, or cannot be looked at from here. With\n"
        "-o name the numbers of those alone.",
    CLI_OPTIONS(CLI_BODY_OPTIONS, struct cli_body_settings),
    .run = run,
};
