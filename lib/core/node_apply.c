#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"
#include "schema/name.h"

void hf_node_clear_cell(struct hf_cell *cell)
{
    hf_json_free(cell->record);
    free((void *)cell->seen.text.data);
    *cell = (struct hf_cell){ 0 };
}

/* The text is copied: whoever writes the record again lays it over. */
int hf_node_make_cell(const struct hf_fleet_change *change, struct hf_cell *ret_cell)
{
    struct hf_cell cell = { .seen = change->seen };

    if (change->record == NULL) { /* deleted */
        *ret_cell = (struct hf_cell){ 0 };
        return HF_OK;
    }
    cell.seen.text.data = hf_memdup(change->seen.text.data, change->seen.text.len);
    if (cell.seen.text.data == NULL)
        return HF_ENOMEM;
    cell.record = change->record;
    *ret_cell = cell;
    return HF_OK;
}

/* Roles, and what may be claimed. */

struct node_role *hf_node_find_role(const struct hf_node *node, const char *name)
{
    for (size_t i = 0; i < node->role_count; i++) {
        if (strcmp(node->roles[i]->name, name) == 0)
            return node->roles[i];
    }
    return NULL;
}

static void free_entry(struct node_entry *entry)
{
    free((char *)entry->name);
    free(entry->reserved_for);
    free(entry);
}

static void clear_role(struct node_role *role)
{
    size_t cursor = 0;
    struct node_entry *entry;

    while ((entry = hf_index_next(&role->entries, &cursor)) != NULL)
        free_entry(entry);
    hf_index_done(&role->entries);
}

void hf_node_free_role(struct node_role *role)
{
    clear_role(role);
    free(role->name);
    free(role);
}

int hf_node_need_role(struct hf_node *node, const char *name)
{
    struct node_role *role;

    /* A record may say anything; what cannot be part of a key has no work to wait for. */
    if (hf_name_check("role", name, NULL) != HF_OK || hf_node_find_role(node, name) != NULL)
        return HF_OK;
    if (!hf_grow(&node->roles, &node->role_cap, node->role_count + 1, sizeof(void *)))
        return HF_ENOMEM;
    role = hf_calloc(1, sizeof *role);
    if (role != NULL)
        role->name = hf_strdup(name);
    if (role == NULL || role->name == NULL) {
        free(role);
        return HF_ENOMEM;
    }
    role->entries.seed = node->by_name.seed;
    node->roles[node->role_count++] = role;
    node->ranges_version++;
    return HF_OK;
}

static void touch_role(struct hf_node *node, const char *role)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        const Holdfast__V1__Spec *spec = hf_node_spec(node->agents[i]);

        if (spec != NULL && strcmp(spec->role, role) == 0)
            node->agents[i]->dirty = true;
    }
}

static struct node_entry *make_entry(const struct hf_node *node,
                                     const struct hf_fleet_change *change)
{
    const Holdfast__V1__Pending *pending = (const Holdfast__V1__Pending *)change->record;
    struct node_entry *entry = hf_calloc(1, sizeof *entry);

    if (entry == NULL)
        return NULL;
    entry->name = hf_strdup(change->key.sub);
    entry->reserved_for = hf_strdup(pending->reserved_for);
    entry->priority = pending->priority;
    entry->elsewhere = !hf_node_has_root(node, pending->root);
    entry->create_rev = change->seen.create_rev;
    if (entry->name == NULL || entry->reserved_for == NULL) {
        free_entry(entry);
        return NULL;
    }
    return entry;
}

static int apply_pending(struct hf_node *node, struct hf_fleet_change *change)
{
    struct node_role *role = hf_node_find_role(node, change->key.name);
    struct node_entry *old =
        role != NULL ? hf_index_get(&role->entries, change->key.sub) : NULL;
    struct node_entry *next = NULL;

    if (role != NULL && change->record != NULL) {
        next = make_entry(node, change);
        if (next == NULL)
            return HF_ENOMEM;
    }
    if (old != NULL) {
        hf_index_remove(&role->entries, old);
        free_entry(old);
    }
    /* Where one was taken out there is room; where none was, nothing is lost yet. */
    if (next != NULL && hf_index_add(&role->entries, next) != HF_OK) {
        free_entry(next);
        return HF_ENOMEM;
    }
    hf_json_free(change->record);
    touch_role(node, change->key.name);
    return HF_OK;
}

/* Agents. */

void hf_node_clear_cells(struct hf_cell **list, size_t *count, size_t *cap)
{
    for (size_t i = 0; i < *count; i++)
        hf_node_clear_cell(&(*list)[i]);
    free(*list);
    *list = NULL;
    *count = *cap = 0;
}

static void clear_told(struct node_agent *a)
{
    hf_node_clear_cell(&a->spec);
    hf_node_clear_cell(&a->live);
    hf_node_clear_cell(&a->report);
    hf_node_clear_cell(&a->exit);
    hf_node_clear_cell(&a->wanted);
    hf_node_clear_cell(&a->health);
    hf_node_clear_cell(&a->command);
}

void hf_node_free_agent(struct node_agent *a)
{
    clear_told(a);
    hf_node_drop_ahead(a);
    hf_node_drop_kept(a);
    hf_node_forget_process(a);
    hf_node_clear_cell(&a->task);
    hf_json_free(a->elsewhere);
    hf_json_free(a->config);
    free((char *)a->name);
    free(a->owned);
    free(a);
}

/* One whose key hangs on our lease is not: that is still to be reaped. */
static bool is_idle_guest(const struct hf_node *node, const struct node_agent *a)
{
    bool is_here = hf_node_exists(&a->live) && a->live.seen.lease == node->lease.lease;

    return a->guest && a->process == PROCESS_NONE && a->reg == REG_NONE &&
           a->flight.token == 0 && a->spare.process == PROCESS_NONE &&
           !hf_node_exists(&a->command) && a->asks == NULL && !is_here;
}

void hf_node_drop_idle_guests(struct hf_node *node)
{
    size_t kept = 0;

    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        if (is_idle_guest(node, a)) {
            hf_index_remove(&node->by_name, a);
            hf_node_free_agent(a);
            node->guest_count--;
        } else {
            node->agents[kept++] = a;
        }
    }
    if (kept != node->agent_count)
        node->ranges_version++;
    node->agent_count = kept;
}

int hf_node_add_agent(struct hf_node *node, const char *name, struct node_agent **ret_agent)
{
    struct node_agent *a;

    if (!hf_grow(&node->agents, &node->agent_cap, node->agent_count + 1, sizeof(void *)))
        return HF_ENOMEM;
    a = hf_calloc(1, sizeof *a);
    if (a == NULL)
        return HF_ENOMEM;
    a->name = hf_strdup(name);
    if (a->name == NULL || hf_index_add(&node->by_name, a) != HF_OK) {
        hf_node_free_agent(a);
        return HF_ENOMEM;
    }
    (void)snprintf(a->subject, sizeof a->subject, "agent %s", name);
    hf_node_say(a, "it has not been looked at yet", "it is looked at", HF_NODE_NEVER);
    a->dirty = true;
    a->known = true;
    a->wake_at = HF_NODE_NEVER;
    node->agents[node->agent_count++] = a;
    node->ranges_version++;
    *ret_agent = a;
    return HF_OK;
}

/* Room for a guest is made by forgetting one that has gone. */
int hf_node_invite(struct hf_node *node, const char *name, struct node_agent **ret_agent)
{
    int err;

    if (node->guest_count >= node->policy.max_guests)
        hf_node_drop_idle_guests(node);
    if (node->guest_count >= node->policy.max_guests) {
        *ret_agent = NULL;
        return HF_OK; /* the start is withdrawn after a while, and ordered elsewhere */
    }
    err = hf_node_add_agent(node, name, ret_agent);
    if (err != HF_OK)
        return err;
    (*ret_agent)->guest = true;
    (*ret_agent)->boot_over = true;
    (*ret_agent)->known = hf_node_ranges_are_whole(node);
    node->guest_count++;
    return HF_OK;
}

static struct hf_cell *agent_cell(struct node_agent *a, enum hf_key_kind kind)
{
    switch (kind) {
    case HF_KEY_AGENT_SPEC: return &a->spec;
    case HF_KEY_AGENT_LIVE: return &a->live;
    case HF_KEY_AGENT_REPORT: return &a->report;
    case HF_KEY_AGENT_EXIT: return &a->exit;
    case HF_KEY_WANTED: return &a->wanted;
    case HF_KEY_HEALTH: return &a->health;
    default: return &a->command;
    }
}

/* The agent that a key is about; none, if it is none of ours. */
static int find_agent(struct hf_node *node, const struct hf_key *key, bool put,
                      struct node_agent **ret_agent)
{
    const char *name = key->kind == HF_KEY_COMMAND ? key->sub : key->name;

    *ret_agent = NULL;
    if (key->kind == HF_KEY_COMMAND && strcmp(key->name, node->host) != 0)
        return HF_OK;
    *ret_agent = hf_node_find(node, name);
    if (*ret_agent == NULL && key->kind == HF_KEY_COMMAND && put)
        return hf_node_invite(node, name, ret_agent);
    return HF_OK;
}

static bool is_agent_key(enum hf_key_kind kind)
{
    return kind == HF_KEY_AGENT_SPEC || kind == HF_KEY_AGENT_LIVE ||
           kind == HF_KEY_AGENT_REPORT || kind == HF_KEY_AGENT_EXIT || kind == HF_KEY_WANTED ||
           kind == HF_KEY_HEALTH || kind == HF_KEY_COMMAND;
}

/* Where a key's cell is; NULL: it is nothing to us. */
static int find_cell(struct hf_node *node, const struct hf_key *key, bool put,
                     struct hf_cell **ret_cell, struct node_agent **ret_agent)
{
    int err = HF_OK;

    *ret_cell = NULL;
    *ret_agent = NULL;
    if (key->kind == HF_KEY_META)
        *ret_cell = &node->meta;
    else if (key->kind == HF_KEY_LEADER)
        *ret_cell = &node->leader;
    else if (key->kind == HF_KEY_HOST_RECORD && strcmp(key->name, node->host) == 0)
        *ret_cell = &node->host_record;
    else if (key->kind == HF_KEY_HOST_LIVE && strcmp(key->name, node->host) == 0)
        *ret_cell = &node->host_live;
    else if (is_agent_key(key->kind))
        err = find_agent(node, key, put, ret_agent);
    if (*ret_agent != NULL)
        *ret_cell = agent_cell(*ret_agent, key->kind);
    return err;
}

static void note_leader(struct hf_node *node)
{
    bool leaderless = !hf_node_exists(&node->leader);

    if (leaderless && !node->leaderless)
        node->leaderless_at = node->now;
    node->leaderless = leaderless;
}

/* A guest brings its role with its spec. */
static int note_spec(struct hf_node *node, const struct node_agent *a,
                     const struct hf_fleet_change *change)
{
    const Holdfast__V1__Spec *spec = (const Holdfast__V1__Spec *)change->record;

    if (a == NULL || !a->guest || change->key.kind != HF_KEY_AGENT_SPEC || spec == NULL)
        return HF_OK;
    return hf_node_need_role(node, spec->role);
}

/* The leader has noticed that etcd was restored, and our mirror perhaps has not: what agents
 * own may not be what it was, and what we were told before may not be there. Everything is
 * listed anew. */
static void note_generation(struct hf_node *node)
{
    int32_t generation = hf_node_generation(node);

    if (generation <= node->generation)
        return;
    node->generation = generation;
    if (node->synced)
        node->ranges_version++;
    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        if (a->process == PROCESS_BEGUN && a->reg == REG_HOLDS)
            hf_node_unsettle(a);
    }
}

static void replace(struct hf_node *node, struct node_agent *a, struct hf_cell *cell,
                    struct hf_cell *next)
{
    int64_t was = cell->seen.create_rev;

    hf_node_clear_cell(cell);
    *cell = *next;
    if (a == NULL) {
        note_leader(node);
        hf_node_touch_all(node);
    } else {
        a->dirty = true;
    }
    if (a != NULL && cell == &a->live)
        hf_node_on_live(node, a, was);
    if (cell == &node->host_live)
        hf_node_on_host_live(node, was);
    if (cell == &node->meta)
        note_generation(node);
}

static void note_told(struct hf_node *node, int64_t revision)
{
    if (node->synced && revision > node->told_rev)
        node->told_rev = revision;
}

int hf_node_apply(struct hf_node *node, struct hf_fleet_change *change)
{
    struct hf_cell *cell, next = { 0 };
    struct node_agent *a;
    int err;

    note_told(node, change->seen.mod_rev);
    if (change->key.kind == HF_KEY_PENDING)
        return apply_pending(node, change);
    err = find_cell(node, &change->key, change->record != NULL, &cell, &a);
    if (err == HF_OK)
        err = note_spec(node, a, change);
    if (err == HF_OK)
        err = hf_node_make_cell(change, &next);
    if (err != HF_OK)
        return err;
    if (cell == NULL) {
        hf_node_clear_cell(&next);
        return HF_OK;
    }
    replace(node, a, cell, &next);
    return HF_OK;
}

/* It exists, and that is all that can be said. */
int hf_node_apply_bad(struct hf_node *node, const struct hf_event_bad *bad)
{
    struct hf_cell *cell, next = { .seen = bad->seen };
    struct node_agent *a;
    int err;

    note_told(node, bad->seen.mod_rev);
    if (bad->key.kind == HF_KEY_KINDS)
        return HF_OK;
    err = find_cell(node, &bad->key, true, &cell, &a);
    next.seen.text = (struct hf_bytes){ 0 };
    if (err == HF_OK && cell != NULL)
        replace(node, a, cell, &next);
    return err;
}

void hf_node_forget(struct hf_node *node)
{
    for (size_t i = 0; i < node->agent_count; i++)
        clear_told(node->agents[i]);
    for (size_t i = 0; i < node->role_count; i++)
        clear_role(node->roles[i]);
    hf_node_clear_cell(&node->meta);
    hf_node_clear_cell(&node->leader);
    hf_node_clear_cell(&node->host_record);
    hf_node_clear_cell(&node->host_live);
    note_leader(node);
    hf_node_touch_all(node);
}
