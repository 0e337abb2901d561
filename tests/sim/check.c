#include "sim/check_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/json.h"

/* Tables. */

struct c_agent *hfs_check_agent(struct hfs_check *check, const char *name)
{
    struct c_agent *agent;

    for (size_t i = 0; i < check->agent_count; i++) {
        if (strcmp(check->agents[i].name, name) == 0)
            return &check->agents[i];
    }
    hfs_grow(&check->agents, &check->agent_cap, check->agent_count + 1, sizeof *agent);
    agent = &check->agents[check->agent_count++];
    *agent = (struct c_agent){ 0 };
    (void)snprintf(agent->name, sizeof agent->name, "%s", name);
    return agent;
}

struct c_task *hfs_check_task(struct hfs_check *check, const char *name)
{
    struct c_task *task;

    for (size_t i = 0; i < check->task_count; i++) {
        if (strcmp(check->tasks[i].name, name) == 0)
            return &check->tasks[i];
    }
    hfs_grow(&check->tasks, &check->task_cap, check->task_count + 1, sizeof *task);
    task = &check->tasks[check->task_count++];
    *task = (struct c_task){ 0 };
    (void)snprintf(task->name, sizeof task->name, "%s", name);
    return task;
}

struct c_host *hfs_check_host(struct hfs_check *check, const char *name)
{
    struct c_host *host;

    for (size_t i = 0; i < check->host_count; i++) {
        if (strcmp(check->hosts[i].name, name) == 0)
            return &check->hosts[i];
    }
    hfs_grow(&check->hosts, &check->host_cap, check->host_count + 1, sizeof *host);
    host = &check->hosts[check->host_count++];
    *host = (struct c_host){ 0 };
    (void)snprintf(host->name, sizeof host->name, "%s", name);
    return host;
}

struct c_lease *hfs_check_find_lease(struct hfs_check *check, int64_t id)
{
    for (size_t i = check->lease_count; i-- > 0;) {
        if (check->leases[i].id == id)
            return &check->leases[i];
    }
    return NULL;
}

void hfs_check_violate(struct hfs_check *check, const char *fmt, ...)
{
    va_list args;

    if (check->violation[0] != '\0')
        return;
    va_start(args, fmt);
    (void)vsnprintf(check->violation, sizeof check->violation, fmt, args);
    va_end(args);
    hfs_note(check->world, "VIOLATION %s", check->violation);
}

const char *hfs_check_get_violation(const struct hfs_check *check)
{
    return check->violation[0] != '\0' ? check->violation : NULL;
}

/* Revisions. */

static void release_changes(struct hfs_check *check)
{
    for (size_t i = 0; i < check->change_count; i++)
        hf_json_free(check->changes[i].record);
    check->change_count = 0;
}

/* Others may use the same etcd. */
static bool is_foreign(const struct hfs_entry *entry)
{
    static const char OURS[] = "/holdfast";
    enum { LEN = sizeof OURS - 1 };

    return entry->key->len < LEN || memcmp(entry->key->bytes, OURS, LEN) != 0;
}

/* Of the key, so that what a person reads is short; a body lies elsewhere. */
static size_t prefix_of(const struct hfs_check *check, const struct hfs_entry *entry)
{
    static const char RECORDS[] = "/holdfast/";
    size_t len = sizeof RECORDS + strlen(check->ns);

    if (entry->key->len < len || memcmp(entry->key->bytes, RECORDS, sizeof RECORDS - 1) != 0)
        return 0;
    return len;
}

static void take_entry(struct hfs_check *check, const struct hfs_entry *entry)
{
    size_t prefix = prefix_of(check, entry);
    struct c_change *change;
    const ProtobufCMessageDescriptor *type;

    if (is_foreign(entry))
        return;
    hfs_grow(&check->changes, &check->change_cap, check->change_count + 1, sizeof *change);
    change = &check->changes[check->change_count];
    *change = (struct c_change){ .entry = entry, .deleted = entry->version == 0 };
    if (hf_key_parse(check->ns, hfs_entry_key(entry), change->scratch, &change->key, NULL) !=
        HF_OK) {
        hfs_check_violate(check, "I9 a key that none is: %.*s", (int)entry->key->len,
                          entry->key->bytes);
        return;
    }
    check->change_count++;
    hfs_note(check->world, "  %lld %s %s %.*s%s%.*s", (long long)entry->mod_rev,
             check->writer != NULL ? check->writer->name : "etcd",
             change->deleted ? "deletes" : "puts", (int)(entry->key->len - prefix),
             entry->key->bytes + prefix, check->world->note_values ? " " : "",
             check->world->note_values ? (int)entry->value_len : 0, entry->value);
    type = hf_key_get_record(change->key.kind);
    if (change->deleted || type == NULL)
        return;
    if (hf_json_decode(type, entry->value, entry->value_len, NULL, &change->record, NULL) !=
            HF_OK &&
        check->writer != NULL)
        hfs_check_violate(check, "I9 %.*s cannot be read", (int)entry->key->len,
                          entry->key->bytes);
}

/* The strings of a parsed key lie in its own scratch, which has moved with the array. */
static void mend_keys(struct hfs_check *check)
{
    for (size_t i = 0; i < check->change_count; i++) {
        struct c_change *change = &check->changes[i];

        (void)!hf_key_parse(check->ns, hfs_entry_key(change->entry), change->scratch,
                            &change->key, NULL);
    }
}

static void look(struct hfs_check *check, bool judge)
{
    mend_keys(check);
    for (size_t i = 0; i < check->change_count && judge; i++)
        hfs_check_judge(check, &check->changes[i]);
    /* Of two moments that are known with a slack the first is taken for as early as it may have
     * been, and the second for as late: what is too soon then was too soon. */
    check->world->now -= check->slack;
    for (size_t i = 0; i < check->change_count; i++)
        hfs_check_apply(check, &check->changes[i]);
    check->world->now += check->slack;
    for (size_t i = 0; i < check->change_count && judge; i++)
        hfs_check_judge_after(check, &check->changes[i]);
    hfs_check_judge_bodies(check, judge);
    release_changes(check);
}

void hfs_check_commit(struct hfs_check *check, const struct hfs_process *writer)
{
    const struct hfs_store *store = hfs_etcd_get_store(check->etcd);
    size_t i = hfs_store_find(store, check->revision + 1);

    check->writer = writer;
    if (hfs_etcd_get_faults(check->etcd)->lose_percent > 0)
        check->lossy_at = check->world->now;
    if (check->calm)
        hfs_check_judge_waits(check);
    while (i < store->log_count) {
        check->revision = store->log[i]->mod_rev;
        for (; i < store->log_count && store->log[i]->mod_rev == check->revision; i++)
            take_entry(check, store->log[i]);
        check->counts.revisions++;
        look(check, true);
    }
    check->revision = store->revision;
    if (writer != NULL && check->letter != NULL)
        hfs_check_judge_repeat(check, check->letter);
    if (writer != NULL)
        hfs_check_note_done(check);
}

/* An agent that a person removed stays removed, also where a compaction took the deletion out
 * of what was saved. */
static void keep_removed(struct hfs_check *check, const struct c_agent *before, size_t count,
                         hfs_rev revision)
{
    for (size_t i = 0; i < count; i++) {
        struct c_agent *agent = hfs_check_agent(check, before[i].name);

        if (!before[i].removed || before[i].removed_rev > revision || agent->spec_at != 0)
            continue;
        agent->removed = true;
        agent->removed_rev = before[i].removed_rev;
    }
}

bool hfs_check_is_void(const struct hfs_check *check)
{
    return check->was_restored &&
           check->letter->made_at - check->restored_at < HFS_RESTORE_EXCUSE;
}

bool hfs_check_is_blind(const struct hfs_check *check)
{
    return check->lossy_at >= 0 && check->writer->listed_at <= check->lossy_at;
}

bool hfs_check_was_blind(const struct hfs_check *check, hf_ms within)
{
    return check->lossy_at >= 0 && check->letter->made_at - check->writer->listed_at < within;
}

void hfs_check_restored(struct hfs_check *check)
{
    const struct hfs_store *store = hfs_etcd_get_store(check->etcd);
    size_t count = check->agent_count;
    struct c_agent *before = hfs_alloc((count + 1) * sizeof *before);

    if (count > 0)
        memcpy(before, check->agents, count * sizeof *before);
    check->agent_count = check->task_count = check->host_count = 0;
    check->clock = check->clock_at = 0;
    check->kept_count = 0;
    hfs_check_forget_seen(check);
    check->past_rev = check->leader_rev;
    check->past_lease = check->leader_lease;
    check->leader_rev = check->leader_lease = 0;
    check->term = 0;
    check->restored_at = check->world->now;
    check->writer = NULL;
    check->was_restored = true;
    for (size_t i = 0; i < store->key_count; i++)
        take_entry(check, store->keys[i]->newest);
    look(check, false);
    keep_removed(check, before, count, store->revision);
    free(before);
    check->revision = store->revision;
}

void hfs_check_served(struct hfs_check *check, const struct hfs_process *from,
                      struct hfs_letter *letter, const struct hfs_answer *answer)
{
    check->from = from;
    check->letter = letter;
    if (letter->request->kind != HFS_TXN || answer->err != HF_OK)
        return;
    letter->applied += answer->succeeded;
    if (answer->succeeded && from != NULL && from->role == HFS_AGENTD)
        hfs_check_note_proof(check);
    if (answer->succeeded)
        hfs_check_judge_txn(check, letter, answer);
    else if (check->calm)
        hfs_check_judge_refused(check, letter);
}

void hfs_check_forgot(struct hfs_check *check)
{
    check->forgot_at = check->world->now;
}

void hfs_check_set_calm(struct hfs_check *check, bool calm)
{
    check->calm = calm;
}

const struct c_change *hfs_check_find_change(const struct hfs_check *check,
                                             enum hf_key_kind kind, const char *name)
{
    for (size_t i = 0; i < check->change_count; i++) {
        const struct c_change *change = &check->changes[i];

        if (change->key.kind == kind && strcmp(change->key.name, name) == 0)
            return change;
    }
    return NULL;
}

void hfs_check_set_running_max(struct hfs_check *check, uint32_t running_max)
{
    check->running_max = running_max;
}

void hfs_check_set_sweep_after(struct hfs_check *check, hf_ms sweep_after)
{
    check->sweep_after = sweep_after;
}

void hfs_check_set_watched(struct hfs_check *check, const struct hf_recover_policy *recover,
                           const struct hf_restart_policy *restart)
{
    check->watched = true;
    check->recover = *recover;
    check->restart = *restart;
}

void hfs_check_set_slack(struct hfs_check *check, hf_ms slack)
{
    check->slack = slack;
}

/* Leases. */

void hfs_check_lease(struct hfs_check *check, int64_t id, const struct hfs_process *owner)
{
    struct c_lease *lease = hfs_check_find_lease(check, id);

    if (lease == NULL) {
        hfs_grow(&check->leases, &check->lease_cap, check->lease_count + 1, sizeof *lease);
        lease = &check->leases[check->lease_count++];
        *lease = (struct c_lease){ .id = id };
    }
    lease->owner = owner;
}

void hfs_check_renewed(struct hfs_check *check, int64_t id, hf_ms until)
{
    struct c_lease *lease = hfs_check_find_lease(check, id);

    if (lease != NULL && until > lease->promised_until)
        lease->promised_until = until;
}

/* From two thirds of its time on nothing begins; etcd counts from when it was asked, at the
 * earliest. */
void hfs_check_judge_promise(struct hfs_check *check, int64_t id, const char *what)
{
    enum { TTL_MS = 15000 };
    const struct c_lease *lease = hfs_check_find_lease(check, id);

    if (lease != NULL && !hfs_check_excuses(check, id) &&
        check->world->now >= lease->promised_until - TTL_MS / 3)
        hfs_check_violate(check, "J %s, and etcd may end its lease in %lld ms", what,
                          (long long)(lease->promised_until - check->world->now));
}

/* Processes. */

void hfs_check_runs(struct hfs_check *check, const char *agent, const char *instance,
                    int64_t lease)
{
    const struct c_life *life = &hfs_check_agent(check, agent)->life;
    struct c_process *process;

    /* It may have been registered anew while it ran, which its keeper need not know. */
    if (strcmp(life->instance, instance) == 0)
        lease = life->lease;
    for (size_t i = 0; i < check->process_count; i++) {
        process = &check->processes[i];
        if (strcmp(process->agent, agent) == 0 && strcmp(process->instance, instance) != 0 &&
            !hfs_check_excuses(check, process->lease))
            hfs_check_violate(check, "I10 two processes of %s run at once: %s and %s", agent,
                              process->instance, instance);
    }
    hfs_check_stands(check, instance);
    hfs_grow(&check->processes, &check->process_cap, check->process_count + 1, sizeof *process);
    process = &check->processes[check->process_count++];
    *process = (struct c_process){ .lease = lease };
    (void)snprintf(process->agent, sizeof process->agent, "%s", agent);
    (void)snprintf(process->instance, sizeof process->instance, "%s", instance);
}

struct c_process *hfs_check_find_process(struct hfs_check *check, const char *instance)
{
    for (size_t i = 0; i < check->process_count; i++) {
        if (strcmp(check->processes[i].instance, instance) == 0)
            return &check->processes[i];
    }
    return NULL;
}

void hfs_check_stands(struct hfs_check *check, const char *instance)
{
    struct c_process *process = hfs_check_find_process(check, instance);

    if (process != NULL)
        *process = check->processes[--check->process_count];
}

bool hfs_check_has_begun(const struct hfs_check *check, const char *instance)
{
    for (size_t i = check->begun_count; i-- > 0;) {
        if (strcmp(check->begun[i].instance, instance) == 0)
            return true;
    }
    return false;
}

/* etcd was restored a moment ago. */
static bool is_fresh(const struct hfs_check *check)
{
    return check->was_restored && check->world->now - check->restored_at < HFS_RESTORE_EXCUSE;
}

/* Others refuse whoever shows a lower number than they have seen: it only grows, also where
 * etcd was restored and its revisions have not. The generation that makes it so is remembered
 * by controllers alone while etcd has forgotten it: who ended since takes it along. */
static bool is_out_of_mind(const struct hfs_check *check, const struct c_begun *begun)
{
    return check->was_restored && begun->at < check->restored_at &&
           check->forgot_at >= begun->at;
}

static void note_begun(struct hfs_check *check, const char *agent, const char *instance,
                       int64_t number)
{
    struct c_begun *begun;

    for (size_t i = 0; i < check->begun_count && !is_fresh(check); i++) {
        begun = &check->begun[i];
        if (strcmp(begun->agent, agent) == 0 && begun->number >= number && number != 0 &&
            !is_out_of_mind(check, begun))
            hfs_check_violate(check, "I2 %s begins as %lld, and was %lld before", agent,
                              (long long)number, (long long)begun->number);
    }
    hfs_grow(&check->begun, &check->begun_cap, check->begun_count + 1, sizeof *begun);
    begun = &check->begun[check->begun_count++];
    *begun = (struct c_begun){ .number = number, .at = check->world->now };
    (void)snprintf(begun->agent, HFS_NAME, "%s", agent);
    (void)snprintf(begun->instance, HFS_NAME, "%s", instance);
}

void hfs_check_begins(struct hfs_check *check, const char *agent, const char *instance,
                      int64_t incarnation)
{
    struct c_agent *known = hfs_check_agent(check, agent);
    int64_t create_rev = incarnation & ((INT64_C(1) << 48) - 1);

    check->counts.starts++;
    if (create_rev != 0 && known->begun_rev >= create_rev && !is_fresh(check))
        hfs_check_violate(check, "I8 %s begins twice as incarnation %lld", agent,
                          (long long)create_rev);
    if (!is_fresh(check) && strcmp(known->life.instance, instance) != 0)
        hfs_check_violate(check, "I8 %s begins as %s, but what was registered last is %s",
                          agent, instance, known->life.instance);
    known->begun_rev = create_rev;
    memcpy(known->begun_boot, known->life.boot, HFS_NAME);
    known->begun_at = check->world->now;
    note_begun(check, agent, instance, incarnation);
}

/* Life. */

struct hfs_check *hfs_check_new(struct hfs_world *world, struct hfs_etcd *etcd, const char *ns)
{
    struct hfs_check *check = hfs_alloc(sizeof *check);

    check->world = world;
    check->etcd = etcd;
    check->ns = ns;
    check->revision = hfs_etcd_get_store(etcd)->revision;
    check->lossy_at = check->forgot_at = -1;
    check->recover = hf_recover_policy_default();
    check->restart = hf_restart_policy_default();
    return check;
}

void hfs_check_free(struct hfs_check *check)
{
    if (check == NULL)
        return;
    release_changes(check);
    free(check->changes);
    free(check->agents);
    free(check->tasks);
    free(check->kept);
    free(check->hosts);
    free(check->leases);
    free(check->processes);
    free(check->begun);
    free(check);
}

/* Rest. */

bool hfs_check_is_live(const struct hfs_check *check, const char *agent)
{
    return hfs_check_agent((struct hfs_check *)check, agent)->life.present;
}

bool hfs_check_is_owner(const struct hfs_check *check, const char *agent, const char *task)
{
    const struct c_task *known = hfs_check_task((struct hfs_check *)check, task);

    return known->exists && strcmp(known->owner, agent) == 0;
}

bool hfs_check_has_spec(const struct hfs_check *check, const char *agent)
{
    const struct c_agent *known = hfs_check_agent((struct hfs_check *)check, agent);

    return known->spec_at != 0 && !known->removed;
}

bool hfs_check_is_stopped(const struct hfs_check *check, const char *agent)
{
    const struct c_agent *known = hfs_check_agent((struct hfs_check *)check, agent);

    return known->stopped || known->removed;
}

int hfs_check_get_state(const struct hfs_check *check, const char *task)
{
    const struct c_task *known = hfs_check_task((struct hfs_check *)check, task);

    return known->exists ? (int)known->state : -1;
}

const char *hfs_check_get_live_host(const struct hfs_check *check, const char *agent)
{
    return hfs_check_agent((struct hfs_check *)check, agent)->life.host;
}

static bool is_open(const struct c_task *task)
{
    return task->exists && !hfs_check_is_final(task->state);
}

const char *hfs_check_find_task(const struct hfs_check *check, const char *agent)
{
    for (size_t i = 0; i < check->task_count; i++) {
        const struct c_task *task = &check->tasks[i];

        if (is_open(task) &&
            (strcmp(task->owner, agent) == 0 || strcmp(task->reserved_for, agent) == 0))
            return task->name;
    }
    return NULL;
}

struct hfs_check_rest hfs_check_get_rest(const struct hfs_check *check,
                                         bool (*has_agent)(const char *role, void *arg),
                                         void *arg)
{
    struct hfs_check_rest rest = { 0 };

    for (size_t i = 0; i < check->task_count; i++) {
        const struct c_task *task = &check->tasks[i];

        rest.tasks += task->exists;
        rest.final += task->exists && !is_open(task);
        if (!is_open(task) || !has_agent(task->role, arg))
            continue;
        rest.tasks_open++;
        (void)snprintf(rest.example, sizeof rest.example, "%s of %s is %s%s%s", task->name,
                       task->role, hfs_check_state_name(task->state),
                       task->owner[0] != '\0' ? " with " : "", task->owner);
    }
    for (size_t i = 0; i < check->agent_count; i++) {
        rest.commands += check->agents[i].commands;
        if (check->agents[i].commands > 0)
            (void)snprintf(rest.example, sizeof rest.example, "%s", check->agents[i].name);
    }
    return rest;
}

struct hfs_check_counts hfs_check_get_counts(const struct hfs_check *check)
{
    return check->counts;
}
