#include "cli/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/agents.h"
#include "cli/out.h"
#include "cli/store.h"
#include "cli/tasks.h"
#include "cli/trail.h"
#include "core/rows.h"
#include "core/task.h"
#include "schema/json.h"

/* What terminals understand. */
#define SCREEN_ENTER "\033[?1049h\033[?25l"
#define SCREEN_LEAVE "\033[?25h\033[?1049l"
#define SCREEN_TOP   "\033[H\033[J"

#define BAD "%u records cannot be read: `holdfast doctor` names them"

enum { TASK_STEPS = 12, TASK_STATES = HOLDFAST__V1__TASK__STATE__needs_review + 1 };

static const struct cli_column COLUMNS[] = {
    { .title = "AGENT" },
    { .title = "ROLE", .drop = 2 },
    { .title = "HOST", .drop = 3 },
    { .title = "LIVE" },
    { .title = "TASK", .cuts = true },
    { .title = "PROGRESS", .drop = 1 },
    { .title = "RESTARTS", .drop = 4, .right = true },
    { .title = "HEALTH", .drop = 5 },
};

static const struct cli_column EVENT_COLUMNS[] = {
    { .title = "TIME" },
    { .title = "EVENT" },
    { .title = "WHAT", .cuts = true },
    { .title = "NEXT", .drop = 1, .cuts = true },
};

/* Events. */

struct events {
    Holdfast__V1__Event *items[CLI_LIVE_EVENTS]; /* the newest, oldest first */
    int64_t seqs[CLI_LIVE_EVENTS];
    size_t count;
};

static void events_done(struct events *events)
{
    for (size_t i = 0; i < events->count; i++)
        hf_json_free(&events->items[i]->base);
}

/* Keys come in order: the newest are the last. */
static int keep_event(struct hf_fleet_change *found, void *arg)
{
    struct events *events = arg;
    Holdfast__V1__Event__Kind kind = ((const Holdfast__V1__Event *)found->record)->kind;

    /* Work that comes and is done is counted above; here it would hide what happens. */
    if (kind == HOLDFAST__V1__EVENT__KIND__submitted ||
        kind == HOLDFAST__V1__EVENT__KIND__completed)
        return HF_OK;
    if (events->count == CLI_LIVE_EVENTS) {
        hf_json_free(&events->items[0]->base);
        events->count--;
        memmove(events->items, events->items + 1,
                events->count * sizeof(Holdfast__V1__Event *));
        memmove(events->seqs, events->seqs + 1, events->count * sizeof events->seqs[0]);
    }
    events->items[events->count] = (Holdfast__V1__Event *)found->record;
    events->seqs[events->count++] = found->key.seq;
    found->record = NULL;
    return HF_OK;
}

static void add_event(struct cli_table *table, const Holdfast__V1__Event *event)
{
    HF_CLEANUP_BUF struct hf_buf what = { 0 };
    char time[CLI_AGE_SIZE];
    const char *day_and_time = cli_time(event->at, time);
    const char *clock = strchr(day_and_time, ' ');

    cli_event_write(&what, event);
    cli_table_add(table, CLI_DIM, "%s", clock != NULL ? clock + 1 : day_and_time);
    cli_table_add(table, cli_event_colour(event->kind), "%s", cli_event_name(event->kind));
    cli_table_add(table, CLI_PLAIN, "%s", what.data != NULL ? what.data : "");
    cli_table_add(table, CLI_PLAIN, "%s", event->next != NULL ? event->next->what : "");
}

/* Those after `seq`, with the titles of the columns if there are any. */
static int draw_events(struct cli *cli, const struct events *events, int64_t seq)
{
    CLI_CLEANUP_TABLE struct cli_table table;

    cli_table_init(&table, EVENT_COLUMNS, sizeof EVENT_COLUMNS / sizeof EVENT_COLUMNS[0]);
    for (size_t i = 0; i < events->count; i++) {
        if (events->seqs[i] > seq)
            add_event(&table, events->items[i]);
    }
    return table.count > 0 ? cli_table_print(cli, &table, "") : HF_OK;
}

/* Agents and tasks. */

struct picture {
    const struct hf_agent **agents;
    size_t agent_count, agent_cap;
    bool whole; /* there was memory for all */
    size_t live;
    size_t tasks[TASK_STATES];
    size_t unfinished_of_role; /* of the one that is being counted */
    const char *role;
};

static bool is_final(Holdfast__V1__Task__State state)
{
    return state >= HOLDFAST__V1__TASK__STATE__completed;
}

static void look_at(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct picture *picture = arg;
    const Holdfast__V1__Task *task;

    if (kind == HF_FLEET_AGENT && ((struct hf_agent *)object)->spec.record != NULL) {
        picture->whole =
            picture->whole && hf_grow(&picture->agents, &picture->agent_cap,
                                      picture->agent_count + 1, sizeof(struct hf_agent *));
        if (picture->whole)
            picture->agents[picture->agent_count++] = object;
        picture->live += ((struct hf_agent *)object)->live.record != NULL;
    }
    if (kind != HF_FLEET_TASK)
        return;
    task = (const Holdfast__V1__Task *)((struct hf_task *)object)->task.record;
    if (task != NULL && (unsigned)task->state < TASK_STATES)
        picture->tasks[task->state]++;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct hf_agent *const *)a)->name,
                  (*(const struct hf_agent *const *)b)->name);
}

static void add_agent(struct cli_table *table, const struct hf_agent *agent)
{
    const Holdfast__V1__Spec *spec = (const Holdfast__V1__Spec *)agent->spec.record;
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)agent->health.record;
    const Holdfast__V1__Task *task =
        agent->tasks != NULL ? (const Holdfast__V1__Task *)agent->tasks->task.record : NULL;
    bool live = agent->live.record != NULL;

    cli_table_add(table, CLI_PLAIN, "%s", agent->name);
    cli_table_add(table, CLI_PLAIN, "%s", spec->role);
    cli_table_add(table, CLI_PLAIN, "%s", agent->host != NULL ? agent->host->name : "");
    cli_table_add(table, live ? CLI_GOOD : CLI_BAD, "%s", live ? "live" : "gone");
    cli_table_add(table, CLI_PLAIN, "%s", task != NULL ? task->id : "");
    if (task != NULL && report != NULL && report->progress != NULL)
        cli_table_add(table, CLI_PLAIN, "%3.0f%% %s", report->progress->percent,
                      report->progress->note);
    else
        cli_table_add(table, CLI_PLAIN, "%s", "");
    cli_table_add(table, CLI_PLAIN, "%" PRId32, health != NULL ? health->restarts : 0);
    cli_table_add(table, health != NULL && health->held ? CLI_BAD : CLI_PLAIN, "%s%s%s",
                  cli_agent_verdict(agent),
                  health != NULL && health->why[0] != '\0' ? ": " : "",
                  health != NULL ? health->why : "");
}

static int draw_agents(struct cli *cli, const struct picture *picture)
{
    CLI_CLEANUP_TABLE struct cli_table table;

    cli_table_init(&table, COLUMNS, sizeof COLUMNS / sizeof COLUMNS[0]);
    for (size_t i = 0; i < picture->agent_count; i++)
        add_agent(&table, picture->agents[i]);
    return cli_table_print(cli, &table, "No agent is here yet.");
}

static int draw(struct cli *cli, const struct cli_live *live, const struct picture *picture,
                const struct events *events)
{
    HF_CLEANUP_BUF struct hf_buf top = { 0 }, rest = { 0 }, end = { 0 };
    int rc;

    hf_buf_printf(&top,
                  SCREEN_TOP "holdfast  etcd %s  %zu of %zu agents live  Ctrl-C ends it\n\n",
                  live->endpoint, picture->live, picture->agent_count);
    rc = cli_out_text(cli, &top);
    if (rc == HF_OK)
        rc = draw_agents(cli, picture);
    hf_buf_puts(&rest, "\ntasks:");
    for (int state = 0; state < TASK_STATES; state++) {
        if (picture->tasks[state] > 0)
            hf_buf_printf(&rest, "  %zu %s", picture->tasks[state],
                          hf_task_state_name((Holdfast__V1__Task__State)state));
    }
    hf_buf_puts(&rest, "\n\n");
    if (cli->bad > 0)
        hf_buf_printf(&rest, BAD "\n\n", cli->bad);
    if (rc == HF_OK)
        rc = cli_out_text(cli, &rest);
    if (rc == HF_OK)
        rc = draw_events(cli, events, 0);
    hf_buf_printf(&end,
                  "\nIn another terminal:  export HOLDFAST_ENDPOINTS=%s\n"
                  "                      %s/holdfast %s\n",
                  live->endpoint, live->programs,
                  live->demo ? "demo crash  (or: host, freeze)" : "ps");
    return rc == HF_OK ? cli_out_text(cli, &end) : rc;
}

/* Where nobody looks at a screen: what is new, a line each. */
static int print_new(struct cli *cli, struct cli_live *live, const struct events *events)
{
    int rc = draw_events(cli, events, live->last_seq);

    if (cli->bad != live->bad)
        (void)printf(BAD "\n", cli->bad);
    live->bad = cli->bad;
    if (events->count > 0)
        live->last_seq = events->seqs[events->count - 1];
    return rc;
}

/* Work: each role always has one task that is not finished. */

static int submit(struct cli *cli, struct cli_live *live, const char *role)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    char id[300], payload[80];
    struct hf_plan plan;
    int rc = cli_plan_begin(cli, &plan);

    if (rc != HF_OK)
        return rc;
    (void)snprintf(id, sizeof id, "%s-%" PRId64, role, ++live->next_task);
    (void)snprintf(payload, sizeof payload, "{\"steps\": %d, \"seconds\": 1}", TASK_STEPS);
    task.id = id;
    task.role = (char *)role;
    task.attempt = 1;
    task.payload = payload;
    hf_row_submit(&plan, &task);
    rc = cli_commit(cli, &plan);
    return rc == HF_ECONFLICT ? HF_OK : rc; /* an older `up` had one of that name */
}

static void count_unfinished(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct picture *picture = arg;
    const Holdfast__V1__Task *task =
        (const Holdfast__V1__Task *)((struct hf_task *)object)->task.record;

    (void)kind;
    if (task != NULL && strcmp(task->role, picture->role) == 0 && !is_final(task->state))
        picture->unfinished_of_role++;
}

static int give_work(struct cli *cli, struct cli_live *live, const struct hf_fleet *fleet,
                     struct picture *picture)
{
    int rc = HF_OK;

    for (size_t i = 0; i < picture->agent_count && rc == HF_OK; i++) {
        picture->role = ((const Holdfast__V1__Spec *)picture->agents[i]->spec.record)->role;
        picture->unfinished_of_role = 0;
        hf_fleet_each(fleet, HF_FLEET_TASK, count_unfinished, picture);
        if (picture->unfinished_of_role == 0)
            rc = submit(cli, live, picture->role);
    }
    return rc;
}

/* In the background it would draw over what somebody types there. */
static void look_at_terminal(struct cli_live *live)
{
    pid_t front =
        tcgetpgrp(STDOUT_FILENO); /* -1: it is not the one that we are controlled by */
    bool shown = live->terminal && (front == -1 || front == getpgrp());

    if (shown && !live->screen)
        (void)fputs(SCREEN_ENTER, stdout);
    live->screen = shown;
}

static int refresh(struct cli *cli, struct cli_live *live, const struct hf_fleet *fleet,
                   const struct events *events)
{
    struct picture picture = { .whole = true };
    int rc;

    hf_fleet_each(fleet, HF_FLEET_AGENT, look_at, &picture);
    hf_fleet_each(fleet, HF_FLEET_TASK, look_at, &picture);
    if (picture.agent_count > 0)
        qsort(picture.agents, picture.agent_count, sizeof(struct hf_agent *), by_name);
    live->all_live = picture.live == picture.agent_count;
    look_at_terminal(live);
    if (live->screen)
        rc = draw(cli, live, &picture, events);
    else
        rc = live->terminal ? HF_OK : print_new(cli, live, events);
    if (rc == HF_OK && live->demo)
        rc = give_work(cli, live, fleet, &picture);
    free(picture.agents);
    return rc;
}

void cli_live_begin(struct cli_live *live)
{
    const char *term = getenv("TERM");

    live->terminal = isatty(STDOUT_FILENO) != 0 && term != NULL && strcmp(term, "dumb") != 0;
    look_at_terminal(live);
    if (live->terminal && !live->screen)
        (void)printf("it runs in the background: `fg` shows it, SIGTERM ends it\n");
    (void)fflush(stdout);
}

int cli_live_refresh(struct cli *cli, struct cli_live *live)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_AGENTS, HF_KEY_IN_HEALTH,
                                                HF_KEY_IN_TASKS };
    struct hf_fleet *fleet = NULL;
    struct events events = { .count = 0 };
    int rc;

    cli->revision = 0; /* everything anew, and of one moment */
    cli->bad = 0;
    cli->hushed = true;
    rc = cli_load_fleet(cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &fleet);
    if (rc == HF_OK)
        rc = cli_list(cli, HF_KEY_IN_EVENTS, NULL, keep_event, &events);
    if (rc == HF_OK)
        rc = refresh(cli, live, fleet, &events);
    hf_fleet_free(fleet);
    events_done(&events);
    if (rc != HF_EAGAIN)
        return rc;
    if (live->screen || !live->terminal)
        (void)printf("%s%s\n", live->screen ? SCREEN_TOP : "", cli->err.text);
    return HF_OK;
}

void cli_live_end(struct cli_live *live)
{
    if (live->screen)
        (void)fputs(SCREEN_LEAVE, stdout);
    (void)fflush(stdout);
}
