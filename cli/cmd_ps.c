#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/agents.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/store.h"
#include "cli/tasks.h"
#include "core/moments.h"
#include "holdfast/v1/cli.pb-c.h"

struct settings {
    const char *role;
    const char *host;
};

static const struct hf_option TABLE[] = {
    { .flag = "role",
      .value = "ROLE",
      HF_OPTION_FIELD(NAME, struct settings, role),
      .help = "Only agents of this role." },
    { .flag = "host",
      .value = "HOST",
      HF_OPTION_FIELD(NAME, struct settings, host),
      .help = "Only agents on this host." },
};

static const struct cli_column COLUMNS[] = {
    { .title = "AGENT" },
    { .title = "ROLE", .drop = 4 },
    { .title = "HOST", .drop = 3 },
    { .title = "LIVE" },
    { .title = "SAID", .drop = 6, .right = true },
    { .title = "STATE" },
    { .title = "HEALTH" },
    { .title = "TASK", .drop = 1, .cuts = true },
    { .title = "RESTARTS", .drop = 7, .right = true },
    { .title = "REASON", .wide = true, .cuts = true },
    { .title = "INCARNATION", .wide = true, .right = true },
    { .title = "SINCE", .wide = true, .right = true },
    { .title = "NEXT", .drop = 5, .cuts = true },
};

/* One agent with the messages that its row points to. */
struct row {
    Holdfast__V1__AgentRow row;
    Holdfast__V1__Incarnation incarnation;
    Google__Protobuf__Duration freshness;
    Google__Protobuf__Timestamp since;
};

struct rows {
    const struct settings *settings;
    const struct hf_agent **agents;
    size_t count, cap;
    int32_t generation;
    int err;
};

/* What was said in the present life; what one before said holds no more. */
static const Holdfast__V1__Report *report_of(const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;

    return agent->live.record != NULL && cli_is_report_of(report, agent->live.seen.create_rev)
               ? report
               : NULL;
}

static bool is_wanted(const struct settings *wanted, const struct hf_agent *agent)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const char *host = cli_agent_host(agent);

    return (wanted->role == NULL || (spec != NULL && strcmp(spec->role, wanted->role) == 0)) &&
           (wanted->host == NULL || strcmp(host, wanted->host) == 0);
}

/* What a person wants of an agent outlasts it, and is no agent by itself. */
static bool is_no_agent(const struct hf_agent *agent)
{
    return hf_agent_spec(agent) == NULL && hf_agent_live(agent) == NULL &&
           hf_agent_exit(agent) == NULL && hf_agent_health(agent) == NULL &&
           agent->tasks == NULL;
}

static void keep(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct rows *rows = arg;

    (void)kind;
    if (is_no_agent(object) || !is_wanted(rows->settings, object) || rows->err != HF_OK)
        return;
    if (!hf_grow(&rows->agents, &rows->cap, rows->count + 1, sizeof(struct hf_agent *))) {
        rows->err = HF_ENOMEM;
        return;
    }
    rows->agents[rows->count++] = object;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct hf_agent *const *)a)->name, (*(struct hf_agent *const *)b)->name);
}

static void fill_life(const struct rows *rows, const struct hf_agent *agent, struct row *row)
{
    const Holdfast__V1__Report *report = report_of(agent);
    const Google__Protobuf__Timestamp *said = cli_report_said(report);
    hf_ms age = hf_clock_wall() - hf_moment_read(said);
    hf_ms since = cli_agent_since(agent);

    row->row.live = agent->live.record != NULL;
    if (since != 0)
        *(row->row.live ? &row->row.registered_at : &row->row.offline_since) =
            hf_moment_write(since, &row->since);
    if (row->row.live) {
        holdfast__v1__incarnation__init(&row->incarnation);
        row->incarnation.lease_id = agent->live.seen.lease;
        row->incarnation.create_revision = agent->live.seen.create_rev;
        row->incarnation.generation = rows->generation;
        row->row.incarnation = &row->incarnation;
    }
    if (report == NULL)
        return;
    row->row.state = report->state;
    row->row.until = report->until;
    row->row.reason = report->reason;
    row->row.suspicion = report->suspicion;
    row->row.nudge = report->nudge;
    if (said != NULL) {
        google__protobuf__duration__init(&row->freshness);
        row->freshness.seconds = age > 0 ? age / 1000 : 0;
        row->row.freshness = &row->freshness;
    }
}

static void fill(const struct rows *rows, const struct hf_agent *agent, struct row *row)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);

    holdfast__v1__agent_row__init(&row->row);
    row->row.name = (char *)agent->name;
    row->row.role = (char *)cli_agent_role(agent);
    row->row.host = (char *)cli_agent_host(agent);
    row->row.task = (char *)(agent->tasks != NULL ? agent->tasks->name : "");
    row->row.health = cli_agent_health(agent);
    if (agent->tasks != NULL)
        row->row.progress = (Holdfast__V1__Report__Progress *)cli_progress_of(
            report_of(agent), agent->tasks->name);
    if (health != NULL) {
        row->row.restarts = health->restarts;
        row->row.next = health->next;
    }
    fill_life(rows, agent, row);
}

/* What it said of itself, and when that ends. */
static void add_state(struct cli_table *table, const Holdfast__V1__AgentRow *row)
{
    char text[CLI_AGE_SIZE];
    const char *end = cli_until(row->until, text);

    if (!row->live || row->state == 0)
        cli_table_add(table, CLI_PLAIN, "%s", "");
    else if (row->until == NULL)
        cli_table_add(table, CLI_PLAIN, "%s", cli_state_name(row->state));
    else if (strcmp(end, "now") == 0)
        cli_table_add(table, CLI_WARN, "%s (over)", cli_state_name(row->state));
    else
        cli_table_add(table, CLI_PLAIN, "%s (ends %s)", cli_state_name(row->state), end);
}

static void add_row(struct cli_table *table, const struct rows *rows,
                    const struct hf_agent *agent)
{
    char text[CLI_AGE_SIZE];
    struct row row;

    memset(&row, 0, sizeof row);
    fill(rows, agent, &row);
    cli_table_add(table, CLI_PLAIN, "%s", agent->name);
    cli_table_add(table, CLI_PLAIN, "%s", row.row.role);
    cli_table_add(table, CLI_PLAIN, "%s", row.row.host);
    cli_table_add(table, row.row.live ? CLI_GOOD : CLI_BAD, "%s", row.row.live ? "yes" : "no");
    cli_table_add(table, CLI_PLAIN, "%s", cli_age(cli_report_said(report_of(agent)), text));
    add_state(table, &row.row);
    cli_table_add(table,
                  row.row.suspicion != NULL ? CLI_WARN : cli_health_colour(row.row.health),
                  "%s", cli_agent_verdict(agent));
    if (row.row.progress != NULL)
        cli_table_add(table, CLI_PLAIN, "%s %.0f%%", row.row.task, row.row.progress->percent);
    else
        cli_table_add(table, CLI_PLAIN, "%s", row.row.task);
    cli_table_add(table, row.row.restarts > 0 ? CLI_WARN : CLI_PLAIN, "%d", row.row.restarts);
    cli_table_add(table, CLI_PLAIN, "%s", row.row.reason);
    if (row.row.live)
        cli_table_add(table, CLI_PLAIN, "%lld",
                      (long long)cli_number(rows->generation, agent->live.seen.create_rev));
    else
        cli_table_add(table, CLI_DIM, "-");
    cli_table_add(table, CLI_PLAIN, "%s",
                  cli_age(row.row.live ? row.row.registered_at : row.row.offline_since, text));
    if (row.row.next != NULL)
        cli_table_add(table, CLI_PLAIN, "%s %s", row.row.next->what,
                      cli_until(row.row.next->at, text));
    else
        cli_table_add(table, CLI_DIM, "-");
}

static int print_json(struct cli *cli, const struct rows *rows)
{
    Holdfast__V1__AgentList list = HOLDFAST__V1__AGENT_LIST__INIT;
    struct row *all = hf_calloc(rows->count + 1, sizeof *all);
    int rc = HF_ENOMEM;

    list.agents = hf_calloc(rows->count + 1, sizeof(Holdfast__V1__AgentRow *));
    if (all != NULL && list.agents != NULL) {
        for (size_t i = 0; i < rows->count; i++) {
            fill(rows, rows->agents[i], &all[i]);
            list.agents[i] = &all[i].row;
        }
        list.n_agents = rows->count;
        rc = cli_out_json(cli, &list.base);
    }
    free(list.agents);
    free(all);
    return rc;
}

static int print(struct cli *cli, const struct rows *rows)
{
    CLI_CLEANUP_TABLE struct cli_table table;
    HF_CLEANUP_BUF struct hf_buf names = { 0 };

    cli_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    if (cli->output == CLI_JSON)
        return print_json(cli, rows);
    for (size_t i = 0; i < rows->count; i++) {
        hf_buf_printf(&names, "%s\n", rows->agents[i]->name);
        add_row(&table, rows, rows->agents[i]);
    }
    return cli->output == CLI_NAME ? cli_out_text(cli, &names)
                                   : cli_table_print(cli, &table, "There are no such agents.");
}

static int run(struct cli *cli)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_AGENTS, HF_KEY_IN_WANTED,
                                                HF_KEY_IN_HEALTH, HF_KEY_IN_TASKS };
    struct rows rows = { .settings = cli->settings };
    struct hf_fleet *fleet = NULL;
    int rc = cli_load_fleet(cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &fleet);

    if (rc == HF_OK)
        rc = cli_show_generation(cli, &rows.generation);
    if (rc == HF_OK) {
        hf_fleet_each(fleet, HF_FLEET_AGENT, keep, &rows);
        rc = rows.err;
    }
    if (rc == HF_OK) {
        if (rows.count > 0)
            qsort(rows.agents, rows.count, sizeof(struct hf_agent *), by_name);
        rc = print(cli, &rows);
    }
    free(rows.agents);
    hf_fleet_free(fleet);
    return rc;
}

const struct cli_command CLI_PS = {
    .name = "ps",
    .args = "",
    .summary = "List agents: three facts for each, liveness, freshness and state.",
    .more = "LIVE   its lease is held, which proves that it is alive\n"
            "SAID   how long ago it last said something: shown, never a verdict\n"
            "STATE  what it last said of itself, and when that ends; REASON why (-o wide)\n"
            "SINCE  how long it has been registered or offline (-o wide)\n"
            "HEALTH what the controller makes of it, or suspect and frozen, which its agentd "
            "says;\n"
            "       holdfast explain AGENT says why",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
