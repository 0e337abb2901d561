#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/store.h"
#include "holdfast/v1/cli.pb-c.h"

static const struct cli_column COLUMNS[] = {
    { .title = "HOST" },
    { .title = "LIVE" },
    { .title = "STATE" },
    { .title = "AGENTS", .right = true },
    { .title = "CAPACITY", .drop = 3, .right = true },
    { .title = "POOLS", .drop = 2, .cuts = true },
    { .title = "LAUNCHERS", .drop = 4, .cuts = true },
    { .title = "VERSION", .drop = 5 },
    { .title = "LEASE", .wide = true, .right = true },
};

struct hosts {
    const struct hf_host **items;
    size_t count, cap;
    int err;
};

static void keep(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct hosts *hosts = arg;

    (void)kind;
    if (hosts->err != HF_OK)
        return;
    if (hf_grow(&hosts->items, &hosts->cap, hosts->count + 1, sizeof(struct hf_host *)))
        hosts->items[hosts->count++] = object;
    else
        hosts->err = HF_ENOMEM;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct hf_host *const *)a)->name, (*(struct hf_host *const *)b)->name);
}

static void fill(const struct hf_host *host, Holdfast__V1__HostRow *row)
{
    const Holdfast__V1__Host *record = hf_host_record(host);

    holdfast__v1__host_row__init(row);
    row->name = (char *)host->name;
    row->live = host->live.record != NULL;
    row->agents = (int32_t)host->agents;
    if (record == NULL)
        return;
    row->pools = record->pools;
    row->n_pools = record->n_pools;
    row->launchers = record->launchers;
    row->n_launchers = record->n_launchers;
    row->capacity = record->capacity;
    row->version = record->version;
    row->lease_id = record->lease_id;
    row->left = record->left;
    row->cordoned = record->cordoned;
}

static void add_words(struct cli_table *table, char *const *words, size_t count)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    for (size_t i = 0; i < count; i++)
        hf_buf_printf(&text, "%s%s", i > 0 ? "," : "", words[i]);
    cli_table_add(table, CLI_PLAIN, "%s", text.data != NULL ? text.data : "");
}

static void add_row(struct cli_table *table, const Holdfast__V1__HostRow *row)
{
    const char *state = "ready";
    enum cli_colour colour = CLI_PLAIN;

    if (row->cordoned) {
        state = "cordoned";
        colour = CLI_WARN;
    }
    if (!row->live) {
        state = row->left ? "left" : "lost";
        colour = row->left ? CLI_DIM : CLI_BAD;
    }
    cli_table_add(table, CLI_PLAIN, "%s", row->name);
    cli_table_add(table, row->live ? CLI_GOOD : CLI_BAD, "%s", row->live ? "yes" : "no");
    cli_table_add(table, colour, "%s", state);
    cli_table_add(table, CLI_PLAIN, "%d", row->agents);
    if (row->capacity > 0)
        cli_table_add(table, CLI_PLAIN, "%d", row->capacity);
    else
        cli_table_add(table, CLI_DIM, "any");
    add_words(table, row->pools, row->n_pools);
    add_words(table, row->launchers, row->n_launchers);
    cli_table_add(table, CLI_PLAIN, "%s", row->version);
    cli_table_add(table, CLI_PLAIN, "%llx", (unsigned long long)row->lease_id);
}

static int print(struct cli *cli, Holdfast__V1__HostRow *rows, Holdfast__V1__HostRow **list,
                 size_t count)
{
    CLI_CLEANUP_TABLE struct cli_table table;
    HF_CLEANUP_BUF struct hf_buf names = { 0 };
    Holdfast__V1__HostList all = HOLDFAST__V1__HOST_LIST__INIT;

    cli_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; i < count; i++) {
        list[i] = &rows[i];
        hf_buf_printf(&names, "%s\n", rows[i].name);
        add_row(&table, &rows[i]);
    }
    all.hosts = list;
    all.n_hosts = count;
    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &all.base);
    return cli->output == CLI_NAME ? cli_out_text(cli, &names)
                                   : cli_table_print(cli, &table, "There are no hosts.");
}

static int show(struct cli *cli, const struct hosts *hosts)
{
    Holdfast__V1__HostRow *rows = hf_calloc(hosts->count + 1, sizeof *rows);
    Holdfast__V1__HostRow **list = hf_calloc(hosts->count + 1, sizeof(Holdfast__V1__HostRow *));
    int rc = HF_ENOMEM;

    if (hosts->count > 0)
        qsort(hosts->items, hosts->count, sizeof(struct hf_host *), by_name);
    for (size_t i = 0; rows != NULL && i < hosts->count; i++)
        fill(hosts->items[i], &rows[i]);
    if (rows != NULL && list != NULL)
        rc = print(cli, rows, list, hosts->count);
    free(rows);
    free(list);
    return rc;
}

static int run(struct cli *cli)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_HOSTS, HF_KEY_IN_AGENTS };
    struct hosts hosts = { .err = HF_OK };
    struct hf_fleet *fleet = NULL;
    int rc = cli_load_fleet(cli, SCOPES, 2, &fleet);

    if (rc == HF_OK) {
        hf_fleet_each(fleet, HF_FLEET_HOST, keep, &hosts);
        rc = hosts.err;
    }
    if (rc == HF_OK)
        rc = show(cli, &hosts);
    free(hosts.items);
    hf_fleet_free(fleet);
    return rc;
}

const struct cli_command CLI_HOSTS = {
    .name = "hosts",
    .args = "",
    .summary = "List hosts.",
    .run = run,
};
