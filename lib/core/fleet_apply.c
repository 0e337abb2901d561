#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fleet_private.h"

/* Makes the cell that shall replace another; the record stays the change's until it does. */
static int make_cell(const struct hf_fleet_change *change, bool keep_text,
                     struct hf_cell *ret_cell)
{
    struct hf_cell cell = { .seen = change->seen, .record = change->record };

    cell.seen.text = (struct hf_bytes){ 0 };
    if (!hf_cell_exists(&cell))
        cell = (struct hf_cell){ 0 };
    if (hf_cell_exists(&cell) && keep_text) {
        cell.seen.text.data = hf_memdup(change->seen.text.data, change->seen.text.len);
        cell.seen.text.len = change->seen.text.len;
        if (cell.seen.text.data == NULL)
            return HF_ENOMEM;
    }
    *ret_cell = cell;
    return HF_OK;
}

/* Reads ahead what free() will look at: it stands in front of the memory. */
static void fetch_header(const void *memory)
{
    if (memory != NULL)
        __builtin_prefetch((const char *)memory - _Alignof(max_align_t), 1);
}

/* What nobody has read for a while is in no cache, and freeing it at once would wait for the
 * memory: that took more than half of the time of a change. So it is asked for now, and freed
 * when it has come. */
static void retire(struct hf_fleet *fleet, ProtobufCMessage *record, const void *text)
{
    struct hf_retired *oldest = &fleet->retired[fleet->oldest];

    fetch_header(record);
    fetch_header(text);
    hf_retired_clear(oldest);
    *oldest = (struct hf_retired){ .record = record, .text = text };
    fleet->oldest = (fleet->oldest + 1) % HF_FLEET_RETIRED;
}

static void replace_cell(struct hf_fleet *fleet, struct hf_cell *cell, struct hf_cell *next)
{
    if (hf_cell_exists(cell))
        retire(fleet, cell->record, cell->seen.text.data);
    *cell = *next;
    *next = (struct hf_cell){ 0 };
}

static void replace_lean_cell(struct hf_fleet *fleet, struct hf_lean_cell *cell,
                              const struct hf_lean_cell *next)
{
    if (hf_lean_cell_exists(cell))
        retire(fleet, cell->record, NULL);
    *cell = *next;
}

/* What is kept of a cell that has no text. */
static struct hf_lean_cell take_lean(struct hf_cell *cell)
{
    struct hf_lean_cell lean = { .seen = { .create_rev = cell->seen.create_rev,
                                           .mod_rev = cell->seen.mod_rev,
                                           .lease = cell->seen.lease },
                                 .record = cell->record };

    assert(cell->seen.text.data == NULL);
    *cell = (struct hf_cell){ 0 };
    return lean;
}

static void set_lean_cell(struct hf_fleet *fleet, struct hf_lean_cell *cell,
                          struct hf_cell *next)
{
    struct hf_lean_cell lean = take_lean(next);

    replace_lean_cell(fleet, cell, &lean);
}

static void touch(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    if (object != NULL)
        fleet->cfg.on_touched(kind, object, fleet->cfg.arg);
}

static void set_agent_role(struct hf_fleet *fleet, struct hf_agent *agent, struct hf_role *role)
{
    struct hf_role *old = agent->role;
    size_t lives = hf_lean_cell_exists(&agent->live) ? 1 : 0;

    if (old == role)
        return;
    hf_fleet_count_seat(fleet, role, agent->host, true);
    hf_fleet_count_seat(fleet, old, agent->host, false);
    if (old != NULL) {
        UNLINK(agent, next_in_role, at_in_role);
        old->agent_count--;
        old->live_count -= lives;
        old->users--;
    }
    agent->role = role;
    if (role != NULL) {
        LINK(role->agents, agent, next_in_role, at_in_role);
        role->agent_count++;
        role->live_count += lives;
        role->users++;
    }
    touch(fleet, HF_FLEET_ROLE, old);
    touch(fleet, HF_FLEET_ROLE, role);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_ROLE, old);
}

static void set_agent_host(struct hf_fleet *fleet, struct hf_agent *agent, struct hf_host *host)
{
    struct hf_host *old = agent->host;

    if (old == host)
        return;
    hf_fleet_count_seat(fleet, agent->role, host, true);
    hf_fleet_count_seat(fleet, agent->role, old, false);
    agent->host = host;
    if (old != NULL) {
        UNLINK(agent, next_on_host, at_on_host);
        old->agents--;
    }
    if (host != NULL) {
        LINK(host->lives, agent, next_on_host, at_on_host);
        host->agents++;
    }
    touch(fleet, HF_FLEET_HOST, old);
    touch(fleet, HF_FLEET_HOST, host);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_HOST, old);
}

static void set_task_owner(struct hf_fleet *fleet, struct hf_task *task, struct hf_agent *owner)
{
    struct hf_agent *old = task->owner;

    if (old == owner)
        return;
    if (old != NULL)
        UNLINK(task, next_owned, at_owned);
    task->owner = owner;
    if (owner != NULL)
        LINK(owner->tasks, task, next_owned, at_owned);
    touch(fleet, HF_FLEET_AGENT, old);
    touch(fleet, HF_FLEET_AGENT, owner);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_AGENT, old);
}

/* Somebody has the task, or may take it. */
static bool runs(const Holdfast__V1__Task *record)
{
    return record != NULL && (record->state == HOLDFAST__V1__TASK__STATE__pending ||
                              record->state == HOLDFAST__V1__TASK__STATE__acknowledged ||
                              record->state == HOLDFAST__V1__TASK__STATE__in_progress);
}

static void set_task_role(struct hf_fleet *fleet, struct hf_task *task, struct hf_role *role,
                          bool pending, struct hf_waiting *waiting)
{
    struct hf_role *old = task->role;

    hf_fleet_set_waiting(fleet, task, waiting);
    if (task->runs)
        old->running_count--;
    task->runs = role != NULL && runs(hf_task_record(task));
    if (task->runs)
        role->running_count++;
    if (task->at_pending != NULL) {
        UNLINK(task, next_pending, at_pending);
        old->pending_count--;
    }
    if (old != NULL)
        old->users--;
    task->role = role;
    if (role != NULL)
        role->users++;
    if (role != NULL && pending) {
        LINK(role->pending, task, next_pending, at_pending);
        role->pending_count++;
    }
    touch(fleet, HF_FLEET_ROLE, role);
    if (old != role) {
        touch(fleet, HF_FLEET_ROLE, old);
        hf_fleet_drop_if_empty(fleet, HF_FLEET_ROLE, old);
    }
}

static void touch_tasks(struct hf_fleet *fleet, const struct hf_agent *agent)
{
    for (struct hf_task *task = agent->tasks; task != NULL; task = task->next_owned)
        touch(fleet, HF_FLEET_TASK, task);
}

/* Changes, one kind of key after the other. What may fail is done before anything is changed.
 */

/* The object of a key: made if need be for a put, only looked up for a deletion. */
static void *object_of(struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name,
                       const struct hf_cell *next)
{
    return hf_cell_exists(next) ? hf_fleet_need(fleet, kind, name)
                                : hf_fleet_find(fleet, kind, name);
}

/* Finds it or makes it. What a record named before it mostly names again: then there is nothing
 * to look up. `was` may be NULL. */
static void *need_again(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *was,
                        const char *name)
{
    if (was != NULL && strcmp(hf_fleet_name(was), name) == 0)
        return was;
    return hf_fleet_need(fleet, kind, name);
}

static int apply_spec(struct hf_fleet *fleet, struct hf_agent *agent, struct hf_cell *next)
{
    const Holdfast__V1__Spec *spec = (const Holdfast__V1__Spec *)next->record;
    struct hf_role *role = NULL;

    if (spec != NULL && spec->role[0] != '\0') {
        role = need_again(fleet, HF_FLEET_ROLE, agent->role, spec->role);
        if (role == NULL)
            return HF_ENOMEM;
    }
    if (role != agent->role && hf_fleet_need_seat(fleet, role, agent->host) != HF_OK) {
        hf_fleet_undo(fleet, HF_FLEET_ROLE, role);
        return HF_ENOMEM;
    }
    set_lean_cell(fleet, &agent->spec, next);
    set_agent_role(fleet, agent, role);
    return HF_OK;
}

/* Room for a life that is over; false: no memory. */
static bool need_past(struct hf_agent *agent)
{
    if (agent->past == NULL)
        agent->past = hf_calloc(1, sizeof *agent->past);
    return agent->past != NULL;
}

static int apply_live(struct hf_fleet *fleet, struct hf_agent *agent, struct hf_cell *next,
                      hf_ms at)
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)next->record;
    size_t was = hf_lean_cell_exists(&agent->live) ? 1 : 0, is = live != NULL ? 1 : 0;
    int64_t old_life = agent->live.seen.create_rev;
    /* A list may show the next life without the end of the one before. */
    bool ends = was == 1 && next->seen.create_rev != old_life;
    struct hf_host *host = NULL;

    if (ends && !need_past(agent))
        return HF_ENOMEM;
    if (live != NULL && live->host[0] != '\0') {
        host = need_again(fleet, HF_FLEET_HOST, agent->host, live->host);
        if (host == NULL)
            return HF_ENOMEM;
    }
    /* A host that was made for this reads nothing: there is none to undo. */
    if (host != agent->host && hf_fleet_need_seat(fleet, agent->role, host) != HF_OK)
        return HF_ENOMEM;
    if (ends && live == NULL) {
        agent->past->gone_at = at;
        agent->past->gone_rev = old_life;
    }
    if (ends) {
        replace_lean_cell(fleet, &agent->past->live, &agent->live);
        agent->live = (struct hf_lean_cell){ 0 };
    }
    set_lean_cell(fleet, &agent->live, next);
    fleet->live_agents += is - was;
    if (agent->role != NULL && was != is) {
        agent->role->live_count += is - was;
        touch(fleet, HF_FLEET_ROLE, agent->role);
    }
    set_agent_host(fleet, agent, host);
    if (agent->live.seen.create_rev != old_life)
        touch_tasks(fleet, agent);
    return HF_OK;
}

static bool has_record(const struct hf_agent *agent, enum hf_key_kind kind)
{
    switch (kind) {
    case HF_KEY_AGENT_SPEC: return hf_lean_cell_exists(&agent->spec);
    case HF_KEY_AGENT_LIVE: return hf_lean_cell_exists(&agent->live);
    case HF_KEY_AGENT_REPORT: return hf_lean_cell_exists(&agent->report);
    case HF_KEY_AGENT_EXIT: return hf_lean_cell_exists(&agent->exit);
    case HF_KEY_WANTED: return hf_cell_exists(&agent->wanted);
    default: return hf_cell_exists(&agent->health);
    }
}

static int apply_agent_record(struct hf_fleet *fleet, struct hf_agent *agent,
                              const struct hf_fleet_change *change, struct hf_cell *next)
{
    switch (change->key.kind) {
    case HF_KEY_AGENT_SPEC: return apply_spec(fleet, agent, next);
    case HF_KEY_AGENT_LIVE: return apply_live(fleet, agent, next, change->at);
    case HF_KEY_AGENT_REPORT: set_lean_cell(fleet, &agent->report, next); return HF_OK;
    case HF_KEY_AGENT_EXIT: set_lean_cell(fleet, &agent->exit, next); return HF_OK;
    case HF_KEY_WANTED: replace_cell(fleet, &agent->wanted, next); return HF_OK;
    default: replace_cell(fleet, &agent->health, next); return HF_OK;
    }
}

static int apply_agent(struct hf_fleet *fleet, const struct hf_fleet_change *change,
                       struct hf_cell *next)
{
    struct hf_agent *agent = object_of(fleet, HF_FLEET_AGENT, change->key.name, next);
    int err;

    if (agent == NULL && hf_cell_exists(next))
        return HF_ENOMEM;
    if (agent == NULL || (!hf_cell_exists(next) && !has_record(agent, change->key.kind)))
        return HF_OK;
    err = apply_agent_record(fleet, agent, change, next);
    if (err != HF_OK) {
        hf_fleet_undo(fleet, HF_FLEET_AGENT, agent);
        return err;
    }
    if (change->key.kind == HF_KEY_AGENT_EXIT)
        touch_tasks(fleet, agent);
    touch(fleet, HF_FLEET_AGENT, agent);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_AGENT, agent);
    return HF_OK;
}

static void apply_host_live(struct hf_fleet *fleet, struct hf_host *host, struct hf_cell *next,
                            hf_ms at)
{
    size_t was = hf_cell_exists(&host->live) ? 1 : 0, is = hf_cell_exists(next) ? 1 : 0;

    if (is == 0) {
        host->live_gone_at = at;
        host->live_gone_rev = host->live.seen.create_rev;
    }
    replace_cell(fleet, &host->live, next);
    fleet->live_hosts += is - was;
    for (struct hf_command *start = host->starts; start != NULL && was != is;
         start = start->next_here)
        touch(fleet, HF_FLEET_AGENT, start->agent);
}

static int apply_host_record(struct hf_fleet *fleet, struct hf_host *host, struct hf_cell *next)
{
    struct hf_fleet_roots roots;
    int err =
        hf_fleet_need_roots(fleet, host, (const Holdfast__V1__Host *)next->record, &roots);

    if (err != HF_OK)
        return err;
    replace_cell(fleet, &host->record, next);
    hf_fleet_set_roots(fleet, host, &roots);
    return HF_OK;
}

static int apply_host(struct hf_fleet *fleet, const struct hf_fleet_change *change,
                      struct hf_cell *next)
{
    struct hf_host *host = object_of(fleet, HF_FLEET_HOST, change->key.name, next);
    bool is_live = change->key.kind == HF_KEY_HOST_LIVE;
    int err = HF_OK;

    if (host == NULL && hf_cell_exists(next))
        return HF_ENOMEM;
    if (host == NULL ||
        (!hf_cell_exists(next) && !hf_cell_exists(is_live ? &host->live : &host->record)))
        return HF_OK;
    if (is_live)
        apply_host_live(fleet, host, next, change->at);
    else
        err = apply_host_record(fleet, host, next);
    if (err != HF_OK) {
        hf_fleet_undo(fleet, HF_FLEET_HOST, host);
        return err;
    }
    hf_fleet_open_host(host);
    touch(fleet, HF_FLEET_HOST, host);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_HOST, host);
    return HF_OK;
}

/* Who works on the task, or NULL. A final task still says who did: that makes it nobody's. */
static const char *owner_of(const Holdfast__V1__Task *record)
{
    if (record == NULL || record->owner == NULL || record->owner->agent[0] == '\0')
        return NULL;
    if (record->state != HOLDFAST__V1__TASK__STATE__acknowledged &&
        record->state != HOLDFAST__V1__TASK__STATE__in_progress)
        return NULL;
    return record->owner->agent;
}

/* Whom and what a task refers to. */
struct task_links {
    struct hf_agent *owner;
    struct hf_role *role;
    struct hf_waiting *waiting;
    bool pending;
};

/* All of it, or nothing. */
static int need_links(struct hf_fleet *fleet, struct hf_task *task,
                      const Holdfast__V1__Task *record, struct task_links *ret_links)
{
    const char *owner = owner_of(record);
    struct task_links links = { 0 };
    bool waits;

    if (record != NULL && record->role[0] != '\0') {
        links.role = need_again(fleet, HF_FLEET_ROLE, task->role, record->role);
        if (links.role == NULL)
            return HF_ENOMEM;
        links.pending = record->state == HOLDFAST__V1__TASK__STATE__pending;
    }
    waits = links.pending && hf_record_root(record) != NULL;
    if (waits)
        links.waiting =
            hf_fleet_need_waiting(fleet, task, links.role, hf_record_root(record)->id);
    if (owner != NULL)
        links.owner = need_again(fleet, HF_FLEET_AGENT, task->owner, owner);
    if ((waits && links.waiting == NULL) || (owner != NULL && links.owner == NULL)) {
        hf_fleet_undo_waiting(fleet, links.waiting);
        hf_fleet_undo(fleet, HF_FLEET_AGENT, links.owner);
        hf_fleet_undo(fleet, HF_FLEET_ROLE, links.role);
        return HF_ENOMEM;
    }
    *ret_links = links;
    return HF_OK;
}

static int apply_task_record(struct hf_fleet *fleet, struct hf_task *task, struct hf_cell *next)
{
    struct task_links links;
    int err = need_links(fleet, task, (const Holdfast__V1__Task *)next->record, &links);

    if (err != HF_OK)
        return err;
    replace_cell(fleet, &task->task, next);
    set_task_owner(fleet, task, links.owner);
    set_task_role(fleet, task, links.role, links.pending, links.waiting);
    return HF_OK;
}

static int apply_task(struct hf_fleet *fleet, const struct hf_fleet_change *change,
                      struct hf_cell *next)
{
    struct hf_task *task = object_of(fleet, HF_FLEET_TASK, change->key.name, next);
    bool is_task = change->key.kind == HF_KEY_TASK;
    int err = HF_OK;

    if (task == NULL && hf_cell_exists(next))
        return HF_ENOMEM;
    if (task == NULL ||
        (!hf_cell_exists(next) && !hf_cell_exists(is_task ? &task->task : &task->recovery)))
        return HF_OK;
    if (is_task)
        err = apply_task_record(fleet, task, next);
    else
        replace_cell(fleet, &task->recovery, next);
    if (err != HF_OK) {
        hf_fleet_undo(fleet, HF_FLEET_TASK, task);
        return err;
    }
    touch(fleet, HF_FLEET_TASK, task);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_TASK, task);
    return HF_OK;
}

static struct hf_command *find_command(const struct hf_fleet *fleet, const struct hf_key *key)
{
    const struct hf_agent *agent = hf_fleet_find(fleet, HF_FLEET_AGENT, key->sub);
    struct hf_command *command = agent != NULL ? agent->commands : NULL;

    while (command != NULL && strcmp(command->host->name, key->name) != 0)
        command = command->next;
    return command;
}

static struct hf_command *make_command(struct hf_fleet *fleet, const struct hf_key *key)
{
    struct hf_command *command = hf_calloc(1, sizeof *command);
    struct hf_agent *agent =
        command != NULL ? hf_fleet_need(fleet, HF_FLEET_AGENT, key->sub) : NULL;
    struct hf_host *host =
        agent != NULL ? hf_fleet_need(fleet, HF_FLEET_HOST, key->name) : NULL;

    if (host == NULL) {
        hf_fleet_undo(fleet, HF_FLEET_AGENT, agent);
        free(command);
        return NULL;
    }
    command->agent = agent;
    command->host = host;
    LINK(agent->commands, command, next, at);
    LINK(host->starts, command, next_here, at_here);
    host->commands++;
    fleet->commands++;
    return command;
}

static void free_command(struct hf_fleet *fleet, struct hf_command *command)
{
    UNLINK(command, next, at);
    UNLINK(command, next_here, at_here);
    command->host->commands--;
    fleet->commands--;
    hf_cell_clear(&command->command);
    free(command);
}

static int apply_command(struct hf_fleet *fleet, const struct hf_fleet_change *change,
                         struct hf_cell *next)
{
    struct hf_command *command = find_command(fleet, &change->key);
    struct hf_agent *agent;
    struct hf_host *host;

    if (command == NULL && !hf_cell_exists(next))
        return HF_OK;
    if (command == NULL)
        command = make_command(fleet, &change->key);
    if (command == NULL)
        return HF_ENOMEM;
    agent = command->agent;
    host = command->host;
    if (hf_cell_exists(next))
        replace_cell(fleet, &command->command, next);
    else
        free_command(fleet, command);
    touch(fleet, HF_FLEET_AGENT, agent);
    touch(fleet, HF_FLEET_HOST, host);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_AGENT, agent);
    hf_fleet_drop_if_empty(fleet, HF_FLEET_HOST, host);
    return HF_OK;
}

/* Records that we write again ourselves keep their text, for what we do not understand in it,
 * and to compare it with what is there by then. So does what a person wants: there are few. */
static bool keeps_text(enum hf_key_kind kind)
{
    return kind == HF_KEY_TASK || kind == HF_KEY_RECOVERY || kind == HF_KEY_HEALTH ||
           kind == HF_KEY_META || kind == HF_KEY_CLOCK || kind == HF_KEY_WANTED;
}

static int apply(struct hf_fleet *fleet, const struct hf_fleet_change *change,
                 struct hf_cell *next)
{
    switch (change->key.kind) {
    case HF_KEY_META: replace_cell(fleet, &fleet->meta, next); return HF_OK;
    case HF_KEY_CLOCK: replace_cell(fleet, &fleet->clock, next); return HF_OK;
    case HF_KEY_LEADER: replace_cell(fleet, &fleet->leader, next); return HF_OK;
    case HF_KEY_HOST_RECORD:
    case HF_KEY_HOST_LIVE: return apply_host(fleet, change, next);
    case HF_KEY_AGENT_SPEC:
    case HF_KEY_AGENT_LIVE:
    case HF_KEY_AGENT_REPORT:
    case HF_KEY_AGENT_EXIT:
    case HF_KEY_WANTED:
    case HF_KEY_HEALTH: return apply_agent(fleet, change, next);
    case HF_KEY_TASK:
    case HF_KEY_RECOVERY: return apply_task(fleet, change, next);
    case HF_KEY_COMMAND: return apply_command(fleet, change, next);
    case HF_KEY_PENDING:
    case HF_KEY_CHECKPOINT:
    case HF_KEY_EVENT:
    case HF_KEY_TASK_PAYLOAD:
    case HF_KEY_TASK_RESULT:
    case HF_KEY_CHECKPOINT_BODY:
    case HF_KEY_KINDS: break;
    }
    hf_cell_clear(next);
    return HF_OK;
}

int hf_fleet_apply(struct hf_fleet *fleet, const struct hf_fleet_change *change)
{
    struct hf_cell next = { 0 };
    int err;

    assert(change->record == NULL ||
           change->record->descriptor == hf_key_get_record(change->key.kind));

    err = make_cell(change, keeps_text(change->key.kind), &next);
    if (err == HF_OK)
        err = apply(fleet, change, &next);
    if (err != HF_OK) { /* the record is the caller's again */
        next.record = NULL;
        hf_cell_clear(&next);
    }
    return err;
}
