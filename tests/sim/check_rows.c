/* check_rows.c - what one revision may change, key by key. */
#include <stdio.h>
#include <string.h>

#include "core/plan.h"
#include "sim/check_private.h"

enum { KEPT = 5 }; /* entries of a chain */

static const enum hf_writer WRITERS[] = { HF_WRITER_OWNER, HF_WRITER_CONTROLLER,
                                          HF_WRITER_OPERATOR };

bool hfs_check_is_final(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__completed ||
           state == HOLDFAST__V1__TASK__STATE__failed ||
           state == HOLDFAST__V1__TASK__STATE__cancelled ||
           state == HOLDFAST__V1__TASK__STATE__needs_review;
}

const char *hfs_check_state_name(Holdfast__V1__Task__State state)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__task__state__descriptor, (int)state);

    return value != NULL ? value->name : "?";
}

static const struct c_change *find_command(const struct hfs_check *check, const char *agent)
{
    for (size_t i = 0; i < check->change_count; i++) {
        if (check->changes[i].key.kind == HF_KEY_COMMAND &&
            strcmp(check->changes[i].key.sub, agent) == 0)
            return &check->changes[i];
    }
    return NULL;
}

/* Whether that incarnation is registered: before this revision, or by it. */
static bool is_live(struct hfs_check *check, const char *agent, int64_t create_rev)
{
    const struct c_life *life = &hfs_check_agent(check, agent)->life;
    const struct c_change *change = hfs_check_find_change(check, HF_KEY_AGENT_LIVE, agent);

    if (life->present && life->create_rev == create_rev)
        return true;
    return change != NULL && !change->deleted && change->entry->create_rev == create_rev;
}

/* As it is when this revision is taken in. */
static const char *instance_of(struct hfs_check *check, const char *agent)
{
    const struct c_change *change = hfs_check_find_change(check, HF_KEY_AGENT_LIVE, agent);

    if (change != NULL && change->record != NULL)
        return ((const Holdfast__V1__Live *)change->record)->instance_id;
    return hfs_check_agent(check, agent)->life.instance;
}

/* Lives. */

/* Which agentd that is: what it starts by itself is counted per boot. */
static const char *boot_of(const struct hfs_check *check, const struct c_change *change,
                           char scratch[HFS_NAME])
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)change->record;

    if (!check->watched)
        return live->boot_id;
    (void)snprintf(scratch, HFS_NAME, "%llx", (unsigned long long)change->entry->lease);
    return scratch;
}

/* By whose word a process is started: its agentd's, once per boot and while nobody leads, or by
 * a command, which is used up by it. A process that was there before only registers again. What
 * the agentd sent before another start was ordered may come after that, and is reaped. */
static void judge_start(struct hfs_check *check, const struct c_agent *agent,
                        const struct c_change *change)
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)change->record;
    const struct c_change *command = find_command(check, agent->name);
    char scratch[HFS_NAME];
    bool rejoins = hfs_check_has_begun(check, live->instance_id);

    if (command != NULL && command->deleted)
        return;
    if (hfs_check_is_heir(check, agent->name)) {
        hfs_check_judge_heir(check, agent);
        return;
    }
    if (agent->commands > 0 && strcmp(agent->command_host, live->host) == 0)
        hfs_check_violate(check, "I8 %s is started on %s beside the start that was ordered",
                          agent->name, live->host);
    if (!rejoins && !hfs_check_is_void(check) && check->leader_rev != 0 &&
        check->letter->made_at > agent->begun_at &&
        strcmp(agent->begun_boot, boot_of(check, change, scratch)) == 0)
        hfs_check_violate(check, "I8 the agentd of %s starts %s again by itself", live->host,
                          agent->name);
}

static void judge_live(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)change->record;

    if (change->deleted || live == NULL)
        return;
    if (change->entry->lease == 0)
        hfs_check_violate(check, "I1 the live key of %s hangs on no lease", agent->name);
    if (change->entry->version > 1) {
        if (strcmp(agent->life.instance, live->instance_id) != 0 ||
            agent->life.lease != change->entry->lease)
            hfs_check_violate(check, "I1 %s is registered again while it is", agent->name);
        return;
    }
    if (agent->stopped)
        hfs_check_violate(check, "I12 %s is started though it is wanted stopped", agent->name);
    hfs_check_judge_spec(check, agent);
    judge_start(check, agent, change);
}

static void apply_live(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)change->record;
    struct c_process *process;
    char scratch[HFS_NAME];

    agent->life.present = !change->deleted;
    if (change->deleted) {
        agent->life.gone_at = check->world->now;
        agent->life.missed = check->writer == NULL;
    }
    if (live == NULL)
        return;
    agent->forgotten = false;
    hfs_check_apply_heir(check, agent);
    if (agent->life.create_rev != change->entry->create_rev) {
        agent->life.since = check->world->now;
        agent->life.proven_at = -1;
    }
    agent->life.ttl = live->ttl != NULL ? live->ttl->seconds * 1000 : 0;
    agent->life.create_rev = change->entry->create_rev;
    agent->life.lease = change->entry->lease;
    agent->passed_host[0] = '\0'; /* where it was now may be the worse place */
    (void)snprintf(agent->life.host, HFS_NAME, "%s", live->host);
    (void)snprintf(agent->life.boot, HFS_NAME, "%s", boot_of(check, change, scratch));
    (void)snprintf(agent->life.instance, HFS_NAME, "%s", live->instance_id);
    process = hfs_check_find_process(check, live->instance_id);
    if (process != NULL)
        process->lease = change->entry->lease;
}

/* What only a life may write: it was there before this revision. */
static void judge_life(struct hfs_check *check, const struct c_change *change,
                       const char *agent, const Holdfast__V1__Incarnation *incarnation)
{
    const struct c_life *life = &hfs_check_agent(check, agent)->life;

    if (change->deleted || incarnation == NULL)
        return;
    if (!life->present || life->create_rev != incarnation->create_revision ||
        life->lease != incarnation->lease_id)
        hfs_check_violate(check, "I2 %.*s was written by incarnation %lld of %s, which is gone",
                          (int)change->entry->key->len, change->entry->key->bytes,
                          (long long)incarnation->create_revision, agent);
}

static void judge_exit(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Exit *exit = (const Holdfast__V1__Exit *)change->record;
    const struct c_change *live =
        hfs_check_find_change(check, HF_KEY_AGENT_LIVE, change->key.name);

    if (exit == NULL || exit->incarnation == NULL || hfs_check_is_heir(check, change->key.name))
        return;
    judge_life(check, change, change->key.name, exit->incarnation);
    hfs_check_judge_ended(check, hfs_check_agent(check, change->key.name), exit);
    if (live == NULL || !live->deleted)
        hfs_check_violate(check, "I2 the end of %s was written, and it is still registered",
                          change->key.name);
}

/* Tasks. */

/* Whether a class of writers has written this revision of the record. */
static bool wrote(const struct c_task *old, const ProtobufCMessage *record,
                  enum hf_writer writer)
{
    const char *op_id = hf_plan_find_op_id(record, writer);

    return op_id != NULL && strcmp(op_id, old->op_ids[writer]) != 0;
}

/* What somebody else brings back of a person's word is not a person's. */
static bool is_by_person(const struct hfs_check *check, const struct c_task *old,
                         const struct c_change *change)
{
    return (check->writer == NULL || check->writer->role == HFS_PERSON) &&
           wrote(old, change->record, HF_WRITER_OPERATOR);
}

static int64_t owner_rev_of(const Holdfast__V1__Task *task, const struct c_change *change)
{
    if (task->owner == NULL || task->owner->incarnation == NULL)
        return 0;
    if (task->owner->incarnation->create_revision != 0)
        return task->owner->incarnation->create_revision;
    return change->entry->mod_rev; /* acknowledged by the Txn that created the live key */
}

static bool has_owner(const Holdfast__V1__Task *task)
{
    return task->owner != NULL && task->owner->agent[0] != '\0';
}

/* A revision may be given out twice, where etcd was restored; a lease never is. */
static bool is_lease_of(struct hfs_check *check, const Holdfast__V1__Owner *owner)
{
    const struct c_change *change =
        hfs_check_find_change(check, HF_KEY_AGENT_LIVE, owner->agent);

    return change != NULL || owner->incarnation == NULL ||
           owner->incarnation->lease_id == hfs_check_agent(check, owner->agent)->life.lease;
}

static void judge_taken(struct hfs_check *check, const struct c_task *old,
                        const struct c_change *change, const Holdfast__V1__Task *task)
{
    if (old->state != HOLDFAST__V1__TASK__STATE__pending)
        hfs_check_violate(check, "I3 %s was taken while it was %s", old->name,
                          hfs_check_state_name(old->state));
    if (old->reserved_for[0] != '\0' && strcmp(old->reserved_for, task->owner->agent) != 0)
        hfs_check_violate(check, "I3 %s was taken by %s, but reserved for %s", old->name,
                          task->owner->agent, old->reserved_for);
    if (!is_live(check, task->owner->agent, owner_rev_of(task, change)) ||
        !is_lease_of(check, task->owner))
        hfs_check_violate(check, "I3 %s was taken by %s, which is not registered as %lld",
                          old->name, task->owner->agent, (long long)owner_rev_of(task, change));
}

static void judge_adopted(struct hfs_check *check, const struct c_task *old,
                          const struct c_change *change, const Holdfast__V1__Task *task)
{
    if (strcmp(old->owner, task->owner->agent) != 0)
        hfs_check_violate(check, "I3 %s went from %s to %s without a reset", old->name,
                          old->owner, task->owner->agent);
    if (is_live(check, old->owner, old->owner_rev))
        hfs_check_violate(check, "I3 %s was adopted while its owner's life lasted", old->name);
    if (!is_live(check, task->owner->agent, owner_rev_of(task, change)))
        hfs_check_violate(check, "I2 %s was adopted by a life that is gone", old->name);
    check->counts.adopted++;
}

/* Its owner had the time to begin with it, and anyone may have it now: nobody died of it. */
static bool is_taken_back(const struct hfs_check *check, const struct c_task *old,
                          const Holdfast__V1__Task *task)
{
    return old->state == HOLDFAST__V1__TASK__STATE__acknowledged &&
           check->world->now - old->taken_at >= HFS_UNSTARTED &&
           task->state == HOLDFAST__V1__TASK__STATE__pending && task->attempt == old->attempt;
}

/* Its owner is not its owner any more. */
static void judge_dropped(struct hfs_check *check, const struct c_task *old,
                          const struct c_change *change)
{
    if (is_by_person(check, old, change))
        return;
    if (wrote(old, change->record, HF_WRITER_CONTROLLER)) {
        const struct c_life *life = &hfs_check_agent(check, old->owner)->life;

        if (is_taken_back(check, old, (const Holdfast__V1__Task *)change->record))
            return;
        if (life->present && life->create_rev == old->owner_rev)
            hfs_check_violate(check, "I7 %s was reset while %s, its owner, is alive as %lld",
                              old->name, old->owner, (long long)old->owner_rev);
        hfs_check_judge_reset(check, old);
    } else if (!is_live(check, old->owner, old->owner_rev)) {
        hfs_check_violate(check, "I2 %s was given up by a life that is gone", old->name);
    }
}

static void judge_owner(struct hfs_check *check, const struct c_task *old,
                        const struct c_change *change, const Holdfast__V1__Task *task)
{
    bool had = old->owner[0] != '\0', has = has_owner(task);

    if (has && !had)
        judge_taken(check, old, change, task);
    else if (had && !has)
        judge_dropped(check, old, change);
    else if (hfs_check_is_inherited(check, old, task))
        hfs_check_judge_inherited(check, old, task, owner_rev_of(task, change));
    else if (had && old->owner_rev != owner_rev_of(task, change))
        judge_adopted(check, old, change, task);
    else if (had && wrote(old, change->record, HF_WRITER_OWNER) &&
             (!is_live(check, old->owner, old->owner_rev) || !is_lease_of(check, task->owner)))
        hfs_check_violate(check, "I2 %s was changed by a life of %s that is gone", old->name,
                          old->owner);
}

static bool is_waiting(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__pending ||
           state == HOLDFAST__V1__TASK__STATE__queued;
}

/* When the controller takes it from an owner that was lost. */
static bool is_reset(const struct c_task *old, const struct c_change *change,
                     const Holdfast__V1__Task *task)
{
    return wrote(old, change->record, HF_WRITER_CONTROLLER) && old->exists &&
           task->attempt > old->attempt && old->owner[0] != '\0';
}

/* When it makes it claimable again: at once, or after a while. */
static bool is_recovery(const struct c_task *old, const struct c_change *change,
                        const Holdfast__V1__Task *task)
{
    return wrote(old, change->record, HF_WRITER_CONTROLLER) && old->exists &&
           task->state == HOLDFAST__V1__TASK__STATE__pending && task->attempt > 0 &&
           (old->state == HOLDFAST__V1__TASK__STATE__queued || task->attempt > old->attempt);
}

/* When it does so by its own word alone. */
static bool is_move(const struct c_task *old, const struct c_change *change,
                    const Holdfast__V1__Task *task, Holdfast__V1__Task__State from,
                    Holdfast__V1__Task__State to)
{
    return wrote(old, change->record, HF_WRITER_CONTROLLER) && old->exists &&
           old->state == from && task->state == to;
}

/* What waits for an ordered start waits until that is served, refused or withdrawn. */
static void judge_reservation(struct hfs_check *check, const struct c_task *old,
                              const struct c_change *change, const Holdfast__V1__Task *task)
{
    const struct c_agent *agent;
    const struct c_change *command;

    if (old->reserved_for[0] == '\0' || task->reserved_for[0] != '\0' ||
        task->state != HOLDFAST__V1__TASK__STATE__pending ||
        !wrote(old, change->record, HF_WRITER_CONTROLLER))
        return;
    agent = hfs_check_agent(check, old->reserved_for);
    command = find_command(check, agent->name);
    if (agent->commands > 0 && (command == NULL || !command->deleted) &&
        !hfs_check_is_blind(check) && strcmp(agent->command_task, old->name) == 0)
        hfs_check_violate(check, "I8 %s is offered to all while its start on %s is outstanding",
                          old->name, agent->command_host);
}

static void judge_task(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Task *task = (const Holdfast__V1__Task *)change->record;
    struct c_task *old = hfs_check_task(check, change->key.name);

    if (change->deleted) {
        if (!hfs_check_is_final(old->state) || check->writer == NULL ||
            check->writer->role == HFS_AGENTD)
            hfs_check_violate(check, "I9 %s is lost: its key was deleted", old->name);
        return;
    }
    if (task == NULL)
        return;
    if (!old->exists) {
        if (!is_waiting(task->state) || has_owner(task))
            hfs_check_violate(check, "I3 %s begins as %s", old->name,
                              hfs_check_state_name(task->state));
        return;
    }
    if (hfs_check_is_final(old->state) && task->state != old->state &&
        !is_by_person(check, old, change))
        hfs_check_violate(check, "I6 %s was %s and is %s", old->name,
                          hfs_check_state_name(old->state), hfs_check_state_name(task->state));
    if (old->head != 0 && task->checkpoint == NULL &&
        task->state != HOLDFAST__V1__TASK__STATE__completed &&
        task->state != HOLDFAST__V1__TASK__STATE__cancelled)
        hfs_check_violate(check, "I5 %s is %s and forgets its checkpoints", old->name,
                          hfs_check_state_name(task->state));
    judge_owner(check, old, change, task);
    judge_reservation(check, old, change, task);
    if (is_reset(old, change, task))
        hfs_check_judge_deaths(check, old);
    if (is_recovery(old, change, task) && !hfs_check_is_void(check))
        hfs_check_judge_recovered(check, old);
    if (is_move(old, change, task, HOLDFAST__V1__TASK__STATE__queued,
                HOLDFAST__V1__TASK__STATE__pending))
        hfs_check_judge_promoted(check, old);
    if (is_move(old, change, task, HOLDFAST__V1__TASK__STATE__pending,
                HOLDFAST__V1__TASK__STATE__queued))
        hfs_check_judge_demoted(check, old);
}

static void apply_task(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Task *task = (const Holdfast__V1__Task *)change->record;
    struct c_task *known = hfs_check_task(check, change->key.name);
    struct c_task before = *known;
    const char *op_id;

    if (task == NULL) {
        known->exists = false;
        return;
    }
    known->exists = true;
    known->state = task->state;
    known->attempt = task->attempt;
    known->rooted = task->root != NULL;
    known->head = task->checkpoint != NULL ? task->checkpoint->seq : 0;
    known->restored = task->restored != NULL ? task->restored->seq : 0;
    (void)snprintf(known->reserved_for, HFS_NAME, "%s", task->reserved_for);
    known->owner_rev = has_owner(task) ? owner_rev_of(task, change) : 0;
    (void)snprintf(known->role, HFS_NAME, "%s", task->role);
    (void)snprintf(known->owner, HFS_NAME, "%s", has_owner(task) ? task->owner->agent : "");
    if (has_owner(task) && known->owner_rev != before.owner_rev)
        (void)snprintf(known->owner_instance, HFS_NAME, "%s",
                       instance_of(check, task->owner->agent));
    if (before.owner[0] == '\0' && has_owner(task))
        known->taken_at = check->world->now;
    if (before.owner[0] != '\0' && !has_owner(task) && is_waiting(task->state) &&
        wrote(&before, change->record, HF_WRITER_CONTROLLER))
        check->counts.resets++;
    if (task->state == HOLDFAST__V1__TASK__STATE__completed && before.state != task->state)
        check->counts.completed++;
    hfs_check_note_running(check, known,
                           before.exists ? before.state : HOLDFAST__V1__TASK__STATE__queued,
                           wrote(&before, change->record, HF_WRITER_CONTROLLER));
    if (is_reset(&before, change, task))
        hfs_check_apply_deaths(check, &before);
    if (is_recovery(&before, change, task)) {
        known->resets++;
        known->reset_at = check->world->now;
    }
    if (hfs_check_is_inherited(check, &before, task)) {
        hfs_check_apply_deaths(check, &before);
        known->resets++;
        known->reset_at = known->taken_at = check->world->now;
    }
    if (wrote(&before, change->record, HF_WRITER_OPERATOR)) {
        known->resets = 0;
        if (before.owner[0] != '\0' && !hfs_check_is_final(before.state))
            hfs_check_excuse(check, before.owner_instance, known->name);
    }
    for (size_t i = 0; i < sizeof WRITERS / sizeof WRITERS[0]; i++) {
        op_id = hf_plan_find_op_id(change->record, WRITERS[i]);
        (void)snprintf(known->op_ids[WRITERS[i]], HFS_NAME, "%s", op_id != NULL ? op_id : "");
    }
}

/* An entry may go when KEPT newer ones are there, and with its task. */
static bool is_trimmed(const struct c_change *change, const struct c_task *task,
                       const struct c_change *next)
{
    return change->key.seq <= task->head - KEPT || (next != NULL && next->deleted);
}

/* A chain grows by its owner, one entry at a time, and nothing in it is changed. */
static void judge_checkpoint(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Checkpoint *entry = (const Holdfast__V1__Checkpoint *)change->record;
    const struct c_task *task = hfs_check_task(check, change->key.name);
    const struct c_change *next = hfs_check_find_change(check, HF_KEY_TASK, change->key.name);
    const Holdfast__V1__Task *record =
        next != NULL ? (const Holdfast__V1__Task *)next->record : NULL;

    if (entry == NULL) {
        if (change->deleted && !is_trimmed(change, task, next) &&
            (record == NULL || record->checkpoint != NULL ||
             (record->state != HOLDFAST__V1__TASK__STATE__completed &&
              record->state != HOLDFAST__V1__TASK__STATE__cancelled)))
            hfs_check_violate(check, "I5 checkpoint %lld of %s is removed, and it is not over",
                              (long long)change->key.seq, task->name);
        return;
    }
    if (change->entry->version > 1)
        hfs_check_violate(check, "I5 checkpoint %lld of %s was overwritten",
                          (long long)change->key.seq, task->name);
    if (entry->seq != change->key.seq || entry->parent != task->head ||
        entry->seq <= entry->parent)
        hfs_check_violate(check, "I5 checkpoint %lld of %s follows %lld, but the head is %lld",
                          (long long)entry->seq, task->name, (long long)entry->parent,
                          (long long)task->head);
    if (record == NULL || record->checkpoint == NULL || record->checkpoint->seq != entry->seq)
        hfs_check_violate(check, "I5 checkpoint %lld of %s is not its head",
                          (long long)entry->seq, task->name);
    if (task->owner[0] == '\0') {
        hfs_check_violate(check, "I5 %s has no owner and gets a checkpoint", task->name);
        return;
    }
    judge_life(check, change, task->owner, entry->incarnation);
}

/* Commands. */

static void judge_command(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.sub);

    if (change->deleted)
        return;
    if (agent->commands > 0)
        hfs_check_violate(check, "I8 a second start of %s is ordered", agent->name);
    if (agent->life.present)
        hfs_check_violate(check, "I8 a start of %s is ordered while it lives", agent->name);
    if (agent->stopped)
        hfs_check_violate(check, "I12 a start of %s is ordered though it is wanted stopped",
                          agent->name);
    hfs_check_judge_spec(check, agent);
    hfs_check_judge_order(check, agent);
    hfs_check_judge_left(check, agent, change);
    hfs_check_judge_host(check, agent, change->key.name);
}

static void apply_command(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.sub);

    if (change->deleted) {
        hfs_check_note_withdrawn(check, agent);
        agent->commands -= agent->commands > 0;
        return;
    }
    if (change->entry->version > 1)
        return;
    agent->commands++;
    agent->command_at = check->world->now;
    (void)snprintf(agent->command_host, HFS_NAME, "%s", change->key.name);
    (void)snprintf(
        agent->command_task, HFS_NAME, "%s",
        change->record != NULL ? ((const Holdfast__V1__Command *)change->record)->task : "");
    check->counts.orders++;
    hf_backoff_on_attempt(&agent->orders, check->world->now);
}

static void apply_wanted(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)change->record;

    bool stopped = wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped;

    if (agent->stopped || stopped)
        agent->stopped_at = check->world->now;
    agent->stopped = stopped;
    if (wanted != NULL && wanted->end_upto > agent->end_upto)
        agent->end_upto = wanted->end_upto;
}

static void apply_exit(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Exit *exit = (const Holdfast__V1__Exit *)change->record;

    if (exit != NULL && exit->kind == HOLDFAST__V1__EXIT__KIND__start_failed) {
        hfs_check_host(check, agent->life.host)->avoided_at = check->world->now;
        hfs_check_host(check, agent->command_host)->avoided_at = check->world->now;
    }
    agent->exit_at = check->world->now;
    agent->exit_mod = exit != NULL ? change->entry->mod_rev : 0;
    agent->exit_rev =
        exit != NULL && exit->incarnation != NULL ? exit->incarnation->create_revision : 0;
    if (agent->exit_rev != 0 && agent->exit_rev == agent->life.create_rev)
        (void)snprintf(agent->exit_instance, HFS_NAME, "%s", agent->life.instance);
}

static void apply_spec(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Spec *spec = (const Holdfast__V1__Spec *)change->record;

    agent->spec_at = check->world->now;
    if (!change->deleted && change->entry->version == 1)
        agent->spec_since = check->world->now;
    agent->unreadable = spec == NULL && !change->deleted;
    if (agent->unreadable)
        return; /* nobody can read it: what it said before holds */
    agent->removed = change->deleted;
    agent->forgotten |= change->deleted;
    agent->removed_rev = change->deleted ? change->entry->mod_rev : 0;
    agent->holds = spec != NULL && spec->fence == HOLDFAST__V1__SPEC__FENCE__hold;
}

static void apply_host(struct hfs_check *check, const struct c_change *change)
{
    struct c_host *host = hfs_check_host(check, change->key.name);

    if (change->key.kind == HF_KEY_HOST_RECORD) {
        const Holdfast__V1__Host *record = (const Holdfast__V1__Host *)change->record;

        host->recorded = record != NULL && !record->left;
        if (host->cordoned)
            host->free_since = check->world->now;
        host->cordoned = record != NULL && record->cordoned;
        return;
    }
    if (!change->deleted)
        host->since = check->world->now;
    host->present = !change->deleted;
    host->lease = change->entry->lease;
    if (change->deleted)
        host->gone_at = check->hosts_gone_at = check->world->now;
}

/* Whoever writes holds the lease on which the host hangs. */
static bool is_here(struct hfs_check *check, const char *name)
{
    const struct c_host *host = hfs_check_host(check, name);
    const struct c_lease *lease = hfs_check_find_lease(check, host->lease);

    return host->present && lease != NULL && lease->owner == check->writer;
}

/* A start is refused by the agentd whose host is here. */
static void judge_refusal(struct hfs_check *check, const struct c_change *change)
{
    if (!change->deleted || check->writer == NULL || check->writer->role != HFS_AGENTD ||
        hfs_check_find_change(check, HF_KEY_AGENT_LIVE, change->key.sub) != NULL)
        return;
    if (!is_here(check, change->key.name))
        hfs_check_violate(check, "I2 a start of %s is refused by %s, which is not here",
                          change->key.sub, change->key.name);
}

/* What a host is, is said by the agentd that is there; that it left, by one that may not be. */
static void judge_host(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Host *record = (const Holdfast__V1__Host *)change->record;

    if (record == NULL || record->left || check->writer == NULL ||
        check->writer->role != HFS_AGENTD ||
        hfs_check_find_change(check, HF_KEY_HOST_LIVE, change->key.name) != NULL)
        return;
    if (!is_here(check, change->key.name) ||
        record->lease_id != hfs_check_host(check, change->key.name)->lease)
        hfs_check_violate(check, "I2 %s is described by an agentd that is not here",
                          change->key.name);
}

/* What hangs on a lease that etcd ended by itself: whoever holds it has not been told. */
static void note_lost_lease(struct hfs_check *check, const struct c_change *change)
{
    struct c_lease *lease;
    const struct c_agent *agent;

    if (!change->deleted || check->writer != NULL || change->key.kind != HF_KEY_AGENT_LIVE)
        return;
    agent = hfs_check_agent(check, change->key.name);
    lease = hfs_check_find_lease(check, agent->life.lease);
    if (lease != NULL)
        lease->gone = true;
}

void hfs_check_judge(struct hfs_check *check, const struct c_change *change)
{
    const ProtobufCMessage *record = change->record;

    hfs_check_judge_writer(check, change);
    note_lost_lease(check, change);
    hfs_check_judge_seen(check, change);
    switch (change->key.kind) {
    case HF_KEY_AGENT_LIVE: judge_live(check, change); break;
    case HF_KEY_AGENT_REPORT:
        if (record != NULL)
            judge_life(check, change, change->key.name,
                       ((const Holdfast__V1__Report *)record)->incarnation);
        break;
    case HF_KEY_AGENT_EXIT: judge_exit(check, change); break;
    case HF_KEY_AGENT_SPEC: hfs_check_judge_swept(check, change); break;
    case HF_KEY_TASK: judge_task(check, change); break;
    case HF_KEY_CHECKPOINT: judge_checkpoint(check, change); break;
    case HF_KEY_RECOVERY:
        hfs_check_judge_recovery(check, change);
        hfs_check_judge_closed(check, change);
        break;
    case HF_KEY_COMMAND:
        judge_command(check, change);
        judge_refusal(check, change);
        break;
    case HF_KEY_HOST_RECORD: judge_host(check, change); break;
    case HF_KEY_HEALTH: hfs_check_judge_stalled(check, change); break;
    case HF_KEY_LEADER: hfs_check_judge_leader(check, change); break;
    case HF_KEY_CLOCK: hfs_check_judge_clock(check, change); break;
    case HF_KEY_EVENT: hfs_check_judge_told(check, change); break;
    default: break;
    }
}

void hfs_check_apply(struct hfs_check *check, const struct c_change *change)
{
    switch (change->key.kind) {
    case HF_KEY_AGENT_LIVE: apply_live(check, change); break;
    case HF_KEY_AGENT_EXIT: apply_exit(check, change); break;
    case HF_KEY_AGENT_SPEC: apply_spec(check, change); break;
    case HF_KEY_HOST_RECORD:
    case HF_KEY_HOST_LIVE: apply_host(check, change); break;
    case HF_KEY_TASK: apply_task(check, change); break;
    case HF_KEY_RECOVERY:
        hfs_check_apply_recovery(check, change);
        hfs_check_apply_promise(check, change);
        break;
    case HF_KEY_AGENT_REPORT:
        hfs_check_agent(check, change->key.name)->reported_at = check->world->now;
        break;
    case HF_KEY_HEALTH:
        hfs_check_apply_health(check, change);
        hfs_check_apply_inquiry(check, change);
        break;
    case HF_KEY_CLOCK: hfs_check_apply_clock(check, change); break;
    case HF_KEY_PENDING:
        hfs_check_task(check, change->key.sub)->indexed = !change->deleted;
        break;
    case HF_KEY_COMMAND: apply_command(check, change); break;
    case HF_KEY_WANTED: apply_wanted(check, change); break;
    case HF_KEY_LEADER: hfs_check_apply_leader(check, change); break;
    case HF_KEY_CHECKPOINT: hfs_check_apply_entry(check, change); break;
    case HF_KEY_CHECKPOINT_BODY: hfs_check_apply_body(check, change); break;
    default: break;
    }
}

/* A task can be found by its index exactly while it can be claimed. */
void hfs_check_judge_after(struct hfs_check *check, const struct c_change *change)
{
    const struct c_task *task;
    bool pending;

    if (change->key.kind != HF_KEY_TASK && change->key.kind != HF_KEY_PENDING)
        return;
    task = hfs_check_task(check,
                          change->key.kind == HF_KEY_TASK ? change->key.name : change->key.sub);
    pending = task->exists && task->state == HOLDFAST__V1__TASK__STATE__pending;
    if (pending != task->indexed)
        hfs_check_violate(check, "I9 %s is %s and %s in the index", task->name,
                          hfs_check_state_name(task->state), task->indexed ? "is" : "is not");
}
