#include <inttypes.h>
#include <stdio.h>
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

/* Its body may be whole, and still nobody knows what it follows. */
static void look_at_parent(const struct cli_checkpoints *chain, size_t i,
                           struct cli_body_found *found)
{
    const Holdfast__V1__Checkpoint *entry = chain->entries[i];

    if (found->what != CLI_BODY_WHOLE ||
        (entry->parent < entry->seq && (i == 0 || entry->parent >= chain->entries[i - 1]->seq)))
        return;
    found->what = CLI_BODY_BAD;
    (void)snprintf(found->text, sizeof found->text,
                   "its parent is %" PRId64 ", which is not the entry before it",
                   entry->parent);
}

static int look(struct cli *cli, const struct cli_checkpoints *chain, size_t i,
                struct findings *findings)
{
    const Holdfast__V1__Checkpoint *entry = chain->entries[i];
    struct cli_body_found *found = &findings->found[findings->count];
    int rc = cli_body_look(cli, entry, found);
    Holdfast__V1__ChainReport__Entry *next = &findings->entries[findings->count];
    char where[300];

    if (rc != HF_OK)
        return rc;
    look_at_parent(chain, i, found);
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

/* The task, or the entry after it, names one that nobody can find; `since`: the last that was
 * found before. */
static void miss(int64_t seq, int64_t since, struct findings *findings)
{
    Holdfast__V1__ChainReport__Entry *next = &findings->entries[findings->count];
    struct cli_body_found *found = &findings->found[findings->count];
    int len = snprintf(found->text, sizeof found->text, "its entry is not there");

    if (since != 0 && since < seq - 1)
        (void)snprintf(found->text + len, sizeof found->text - (size_t)len,
                       ", nor any after %" PRId64, since);
    holdfast__v1__chain_report__entry__init(next);
    next->seq = seq;
    next->text = found->text;
    findings->list[findings->count++] = next;
    findings->ok = false;
    cli_table_add(&findings->table, CLI_PLAIN, "%" PRId64, seq);
    cli_table_add(&findings->table, CLI_PLAIN, "-");
    cli_table_add(&findings->table, CLI_PLAIN, "-");
    cli_table_add(&findings->table, CLI_BAD, "%s", next->text);
}

/* Every entry but the oldest, whose parent was dropped when it was old, follows its parent. */
static bool is_parent_missing(const struct cli_checkpoints *chain, size_t i)
{
    int64_t parent = chain->entries[i]->parent;

    return i > 0 && parent > chain->entries[i - 1]->seq && parent < chain->entries[i]->seq;
}

static int look_at_all(struct cli *cli, const struct cli_checkpoints *chain,
                       struct findings *findings)
{
    int64_t seq = ((const struct cli_body_settings *)cli->settings)->seq;
    int64_t newest = chain->count > 0 ? chain->entries[chain->count - 1]->seq : 0;
    int rc = HF_OK;

    for (size_t i = 0; rc == HF_OK && i < chain->count; i++) {
        const Holdfast__V1__Checkpoint *entry = chain->entries[i];

        if (is_parent_missing(chain, i) && (seq == 0 || seq == entry->parent))
            miss(entry->parent, chain->entries[i - 1]->seq, findings);
        if (seq == 0 || seq == entry->seq)
            rc = look(cli, chain, i, findings);
    }
    if (rc == HF_OK && newest < chain->head && (seq == 0 || seq == chain->head))
        miss(chain->head, newest, findings);
    return rc;
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
    size_t most = 2 * chain.count + 1; /* each with a parent that is missing, and the newest */

    cli_table_init(&findings.table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    findings.entries = hf_calloc(most, sizeof *findings.entries);
    findings.list = hf_calloc(most, sizeof(Holdfast__V1__ChainReport__Entry *));
    findings.found = hf_calloc(most, sizeof *findings.found);
    if (findings.entries == NULL || findings.list == NULL || findings.found == NULL) {
        (void)cli_fail(cli, HF_ENOMEM, "out of memory");
        rc = HF_ENOMEM;
    }
    if (rc == HF_OK)
        rc = look_at_all(cli, &chain, &findings);
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
    .summary = "Hold the checkpoints of a task against their sizes, digests and order.",
    .more =
        "Exit status 1 when one of them is not whole, is missing among the others, or cannot\n"
        "be looked at from here. With -o name the numbers of those alone.",
    CLI_OPTIONS(CLI_BODY_OPTIONS, struct cli_body_settings),
    .run = run,
};
