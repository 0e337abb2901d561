#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/store.h"
#include "core/task.h"
#include "holdfast/v1/cli.pb-c.h"

/* What can be seen of the invariants in what stands in etcd at one revision. */

struct check {
    struct cli *cli;
    struct hf_fleet *fleet;
    Holdfast__V1__InvariantReport__Violation *items;
    size_t count, cap;
    int err;

    /* Of the checkpoint chain that is being listed. */
    char task[HF_NAME_SIZE];
    int64_t last;
};

static void HF_PRINTF(4, 5)
    violated(struct check *check, const char *id, const char *key, const char *fmt, ...)
{
    Holdfast__V1__InvariantReport__Violation *added;
    char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    if (text == NULL ||
        !hf_grow(&check->items, &check->cap, check->count + 1, sizeof *check->items)) {
        free(text);
        check->err = HF_ENOMEM;
        return;
    }
    added = &check->items[check->count++];
    holdfast__v1__invariant_report__violation__init(added);
    added->id = (char *)id;
    added->key = hf_strdup(key);
    added->text = text;
    if (added->key == NULL)
        check->err = HF_ENOMEM;
}

/* The key as people know it, without what all keys of the namespace begin with. */
static const char *short_key(struct check *check, const struct hf_key *key,
                             char text[HF_KEY_SIZE])
{
    const char *ns = check->cli->common.namespace;
    int prefix = hf_key_prefix(ns, HF_KEY_IN_NAMESPACE, NULL, text, &check->cli->err);
    int len = hf_key_format(ns, key, text, &check->cli->err);

    if (prefix < 0 || len < 0) {
        check->err = HF_EINVAL;
        return "?";
    }
    return text + prefix;
}

#define KEY(check, text, ...) short_key(check, &(struct hf_key){ __VA_ARGS__ }, text)

static void check_agent(struct check *check, const struct hf_agent *agent)
{
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);
    bool live = agent->live.record != NULL;
    char text[HF_KEY_SIZE];

    if (live && agent->live.seen.lease == 0)
        violated(check, "I1", KEY(check, text, HF_KEY_AGENT_LIVE, .name = agent->name),
                 "it hangs on no lease, and would outlive its agent");
    if (live && wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped &&
        agent->live.seen.create_rev > agent->wanted.seen.mod_rev)
        violated(check, "I12", KEY(check, text, HF_KEY_AGENT_LIVE, .name = agent->name),
                 "it was started at revision %" PRId64 ", after it was stopped at %" PRId64,
                 agent->live.seen.create_rev, agent->wanted.seen.mod_rev);
    for (const struct hf_command *c = agent->commands; c != NULL; c = c->next) {
        const char *key =
            KEY(check, text, HF_KEY_COMMAND, .name = c->host->name, .sub = agent->name);

        if (live && c->command.seen.create_rev > agent->live.seen.create_rev)
            violated(check, "I8", key, "a start was ordered for an agent that is live");
        if (c->next != NULL)
            violated(check, "I8", key, "more than one start is outstanding");
    }
}

static void check_task(struct check *check, const struct hf_task *object)
{
    const Holdfast__V1__Task *task = hf_task_record(object);
    char text[HF_KEY_SIZE];
    const char *key = KEY(check, text, HF_KEY_TASK, .name = object->name);

    if (task == NULL)
        return;
    if (strcmp(task->id, object->name) != 0)
        violated(check, "I9", key, "it says that it is task %s", task->id);
    if (hf_task_is_owned(task->state) && task->owner == NULL)
        violated(check, "I3", key, "it is %s, but nobody owns it",
                 hf_task_state_name(task->state));
    if ((hf_task_is_claimable(task->state) ||
         task->state == HOLDFAST__V1__TASK__STATE__queued) &&
        task->owner != NULL && task->owner->agent[0] != '\0')
        violated(check, "I3", key, "it is %s, but %s owns it", hf_task_state_name(task->state),
                 task->owner->agent);
}

static void check_host(struct check *check, const struct hf_host *host)
{
    char text[HF_KEY_SIZE];

    if (host->live.record != NULL && host->live.seen.lease == 0)
        violated(check, "I1", KEY(check, text, HF_KEY_HOST_LIVE, .name = host->name),
                 "it hangs on no lease, and would outlive its host");
}

static void check_object(enum hf_fleet_kind kind, void *object, void *arg)
{
    switch (kind) {
    case HF_FLEET_AGENT: check_agent(arg, object); break;
    case HF_FLEET_TASK: check_task(arg, object); break;
    case HF_FLEET_HOST: check_host(arg, object); break;
    case HF_FLEET_ROLE: break;
    }
}

/* The index of what can be claimed, against the tasks. */

static int check_pending(struct hf_fleet_change *found, void *arg)
{
    struct check *check = arg;
    const struct hf_task *object = hf_fleet_get_task(check->fleet, found->key.sub);
    const Holdfast__V1__Task *task = object != NULL ? hf_task_record(object) : NULL;
    char text[HF_KEY_SIZE];
    const char *key = short_key(check, &found->key, text);

    if (task == NULL)
        violated(check, "I9", key, "there is no such task");
    else if (!hf_task_is_claimable(task->state))
        violated(check, "I9", key, "the task is %s", hf_task_state_name(task->state));
    else if (strcmp(task->role, found->key.name) != 0)
        violated(check, "I9", key, "the task is of role %s", task->role);
    return check->err;
}

struct index {
    struct check *check;
    size_t entries, claimable;
};

static int count_entry(struct hf_fleet_change *found, void *arg)
{
    struct index *index = arg;

    index->entries++;
    return check_pending(found, index->check);
}

static void count_claimable(enum hf_fleet_kind kind, void *object, void *arg)
{
    const Holdfast__V1__Task *task = hf_task_record(object);
    struct index *index = arg;

    (void)kind;
    index->claimable += task != NULL && hf_task_is_claimable(task->state);
}

static int check_index(struct check *check)
{
    struct index index = { .check = check };
    int rc = cli_list(check->cli, HF_KEY_IN_PENDING, NULL, count_entry, &index);

    hf_fleet_each(check->fleet, HF_FLEET_TASK, count_claimable, &index);
    if (rc == HF_OK && index.claimable > index.entries)
        violated(check, "I9", "pending", "%zu tasks are pending, but only %zu can be found",
                 index.claimable, index.entries);
    return rc;
}

/* Checkpoint chains come in the order of their entries, one after the other. */
static int check_chain(struct hf_fleet_change *found, void *arg)
{
    const Holdfast__V1__Checkpoint *entry = (const Holdfast__V1__Checkpoint *)found->record;
    struct check *check = arg;
    char text[HF_KEY_SIZE];

    if (strcmp(check->task, found->key.name) != 0) {
        (void)snprintf(check->task, sizeof check->task, "%s", found->key.name);
        check->last = 0;
    }
    if (entry->seq != found->key.seq || entry->parent >= entry->seq ||
        (check->last != 0 && entry->parent != check->last))
        violated(check, "I5", short_key(check, &found->key, text),
                 "its parent is %" PRId64 ", and the entry before it is %" PRId64,
                 entry->parent, check->last);
    check->last = entry->seq;
    return check->err;
}

static int print(struct check *check)
{
    Holdfast__V1__InvariantReport report = HOLDFAST__V1__INVARIANT_REPORT__INIT;
    Holdfast__V1__InvariantReport__Violation **list =
        hf_calloc(check->count + 1, sizeof(Holdfast__V1__InvariantReport__Violation *));
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    int rc;

    if (list == NULL)
        return cli_fail(check->cli, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < check->count; i++) {
        list[i] = &check->items[i];
        if (check->cli->output == CLI_NAME)
            hf_buf_printf(&out, "%s\n", list[i]->key);
        else
            hf_buf_printf(&out, "%-4s %s: %s\n", list[i]->id, list[i]->key, list[i]->text);
    }
    report.ok = check->count == 0;
    report.violations = list;
    report.n_violations = check->count;
    if (report.ok && check->cli->output != CLI_NAME)
        hf_buf_printf(&out, "All hold at revision %" PRId64 ".\n", check->cli->revision);
    rc = check->cli->output == CLI_JSON ? cli_out_json(check->cli, &report.base)
                                        : cli_out_text(check->cli, &out);
    check->cli->status = report.ok ? 0 : CLI_EXIT_FAILURE;
    free(list);
    return rc;
}

static int run(struct cli *cli)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_HOSTS,  HF_KEY_IN_AGENTS,
                                                HF_KEY_IN_WANTED, HF_KEY_IN_HEALTH,
                                                HF_KEY_IN_TASKS,  HF_KEY_IN_COMMANDS };
    struct check check = { .cli = cli };
    int rc = cli_load_fleet(cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &check.fleet);

    for (enum hf_fleet_kind kind = 0; rc == HF_OK && kind < HF_FLEET_ROLE; kind++)
        hf_fleet_each(check.fleet, kind, check_object, &check);
    if (rc == HF_OK)
        rc = check_index(&check);
    if (rc == HF_OK)
        rc = cli_list(cli, HF_KEY_IN_CHECKPOINTS, NULL, check_chain, &check);
    if (rc == HF_OK)
        rc = check.err;
    if (rc == HF_OK)
        rc = print(&check);
    for (size_t i = 0; i < check.count; i++) {
        free(check.items[i].key);
        free(check.items[i].text);
    }
    free(check.items);
    hf_fleet_free(check.fleet);
    return rc;
}

const struct cli_command CLI_INVARIANTS = {
    .name = "invariants",
    .args = "",
    .summary = "Check what must always hold, as far as one look can show it.",
    .more = "Exit status 1 when something does not hold; -o name prints the keys alone.",
    .run = run,
};
