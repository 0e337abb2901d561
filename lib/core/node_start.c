#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

void hf_node_forget_start(struct node_agent *a)
{
    hf_node_clear_cell(&a->task);
    if (a->ahead.stage == AHEAD_NONE)
        hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    free(a->resume);
    a->resume = NULL;
    a->start_sent = false;
    a->walk = WALK_NONE;
    a->checkpoint = 0;
    a->command_rev = 0;
    a->needless_at = HF_NODE_NEVER;
}

/* Records. */

Google__Protobuf__Timestamp hf_node_timestamp(hf_ms wall)
{
    Google__Protobuf__Timestamp at = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    at.seconds = wall / 1000;
    at.nanos = (int32_t)(wall % 1000) * 1000000;
    return at;
}

Google__Protobuf__Duration hf_node_duration(hf_ms value)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

    duration.seconds = value / 1000;
    duration.nanos = (int32_t)(value % 1000) * 1000000;
    return duration;
}

void hf_node_fill_live(const struct hf_node *node, const struct node_agent *a,
                       struct node_live *ret)
{
    Holdfast__V1__Live *live = &ret->live;

    holdfast__v1__live__init(live);
    holdfast__v1__live__cadences__init(&ret->cadences);
    ret->ttl = hf_node_duration(node->lease.ttl);
    ret->heartbeat = hf_node_duration(node->policy.heartbeat);
    ret->ping = hf_node_duration(a->ping != 0 ? a->ping : node->policy.ping);
    ret->cadences.heartbeat = &ret->heartbeat;
    ret->cadences.ping = &ret->ping;
    live->host = node->host;
    live->boot_id = node->boot_id;
    live->pid = a->pid;
    live->start_time = a->start_time;
    live->instance_id = (char *)a->instance;
    live->ttl = &ret->ttl;
    live->cadences = &ret->cadences;
    ret->start = (struct hf_start){ .agent = a->name,
                                    .host = node->host,
                                    .live = live,
                                    .lease = node->lease.lease,
                                    .spec = a->spec.seen,
                                    .wanted = a->wanted.seen,
                                    .generation = hf_node_generation(node) };
}

/* Reasons. */

static bool may_be_started(struct node_agent *a, const Holdfast__V1__Spec *spec)
{
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)a->wanted.record;

    if (hf_node_exists(&a->live)) {
        /* Somebody else has it. We do not wait in line for the key. */
        if (hf_node_live(a) != NULL && strcmp(hf_node_live(a)->instance_id, a->instance) != 0)
            a->boot_over = true;
        hf_node_say(a, "it is live already", "nothing", HF_NODE_NEVER);
        return false;
    }
    if (hf_node_exists(&a->wanted) &&
        (wanted == NULL || wanted->state != HOLDFAST__V1__WANTED__STATE__running)) {
        hf_node_say(a, "it is not wanted running", "a person has to want it", HF_NODE_NEVER);
        return false;
    }
    /* Its spec stood in etcd. A start that was ordered all the same is decided by its guards.
     */
    if (a->spec_written && !hf_node_exists(&a->spec) && !hf_node_exists(&a->command)) {
        hf_node_say(a, "a person has removed it", "agentd begins anew with it", HF_NODE_NEVER);
        return false;
    }
    if (spec != NULL && spec->starter == HOLDFAST__V1__SPEC__STARTER__external) {
        hf_node_say(a, "somebody else starts its process", "nothing", HF_NODE_NEVER);
        return false;
    }
    return true;
}

static bool has_work(const struct hf_node *node, const Holdfast__V1__Spec *spec)
{
    const struct node_role *role = hf_node_find_role(node, spec->role);

    return role != NULL && role->entries.count > 0;
}

/* While nobody leads its agentd restarts an agent by itself, with a count of its own. */
static enum node_why may_restart(struct hf_node *node, struct node_agent *a,
                                 const Holdfast__V1__Spec *spec)
{
    const Holdfast__V1__Exit *exit = (const Holdfast__V1__Exit *)a->exit.record;
    hf_ms alone_at = node->leaderless_at + node->policy.leaderless_after;
    struct hf_restart_case facts = {
        .death = exit != NULL ? exit->kind : HOLDFAST__V1__EXIT__KIND__unreachable,
        .restart = spec->restart,
        .wanted = HOLDFAST__V1__WANTED__STATE__running,
        .has_work = has_work(node, spec),
    };
    struct hf_restart_decision decision;

    if (!hf_node_exists(&a->spec)) {
        hf_node_say(a, "it was removed", "its agentd registers it when it begins anew",
                    HF_NODE_NEVER);
        return START_NONE;
    }
    if (!node->leaderless || (a->guest && !a->started)) {
        hf_node_say(a, "starting it is for the leader to order", "nothing", HF_NODE_NEVER);
        return START_NONE;
    }
    if (node->now < alone_at) {
        hf_node_say(a, "nobody leads, but not for long yet",
                    "its own agentd decides about a restart", alone_at);
        return START_NONE;
    }
    decision =
        hf_restart_decide(&a->restart, &node->policy.restart, &facts, node->now, node->random);
    hf_node_say(a, decision.why, decision.next, decision.at);
    return decision.verdict == HF_RESTART_START_AT && decision.at <= node->now ? START_LOCAL
                                                                               : START_NONE;
}

/* What holds runs on through any outage. One that was last started on another host is for the
 * leader to order, who knows what has become of that. */
static bool may_hold_elsewhere(const struct hf_node *node, const Holdfast__V1__Health *health,
                               const Holdfast__V1__Spec *spec)
{
    return spec->fence == HOLDFAST__V1__SPEC__FENCE__hold && health != NULL &&
           health->host[0] != '\0' && strcmp(health->host, node->host) != 0 &&
           !hf_node_lacks(node, HF_MUTANT_NO_HOLD);
}

static enum node_why why_start(struct hf_node *node, struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;

    if (!may_be_started(a, spec))
        return START_NONE;
    if (hf_node_exists(&a->command)) {
        hf_node_say(a, "its start was ordered", "it is started", HF_NODE_NEVER);
        return hf_node_command(a) != NULL ? START_COMMAND : START_NONE;
    }
    if (spec == NULL) {
        hf_node_say(a, "it has no spec", "nothing", HF_NODE_NEVER);
        return START_NONE;
    }
    if (health != NULL && health->held) {
        hf_node_say(a, "it is held", "a person has to release it", HF_NODE_NEVER);
        return START_NONE;
    }
    if (may_hold_elsewhere(node, health, spec)) {
        hf_node_say(a, "it may be running on the host where it was last",
                    "that host comes back, or `holdfast host lost`", HF_NODE_NEVER);
        return START_NONE;
    }
    if (hf_node_is_heir_due(node, a)) {
        hf_node_say(a, "it crashed, and the leader gave leave to start it again at once",
                    "it is started", HF_NODE_NEVER);
        return START_HEIR;
    }
    if (!a->boot_over || hf_node_lacks(node, HF_MUTANT_BOOT_TWICE)) {
        hf_node_say(a, "this agentd has not started it yet", "it is started", HF_NODE_NEVER);
        return START_BOOT;
    }
    return may_restart(node, a, spec);
}

/* What a command names. */

static bool needs_task(const struct node_agent *a)
{
    return hf_node_command(a)->task[0] != '\0' && a->command_rev != a->command.seen.mod_rev;
}

static void set_task(struct node_agent *a, const struct hf_cell *next, int64_t command_rev)
{
    if (hf_node_task(&a->task) == NULL || next->record == NULL ||
        strcmp(hf_node_task(&a->task)->id, hf_node_task(next)->id) != 0)
        a->walk = WALK_NONE;
    hf_node_clear_cell(&a->task);
    a->task = *next;
    a->command_rev = command_rev;
}

static int decode_task(const Holdfast__V1__Command *command, ProtobufCMessage **ret_task)
{
    ProtobufCMessage *task = NULL;
    int err = hf_json_decode(&holdfast__v1__task__descriptor, command->task_text,
                             strlen(command->task_text), NULL, &task, NULL);

    if (err == HF_OK && strcmp(((Holdfast__V1__Task *)task)->id, command->task) != 0)
        err = HF_EINVAL;
    if (err != HF_OK)
        hf_json_free(task);
    else
        *ret_task = task;
    return err;
}

/* A command says how the Txn that put it left the task, so it is of the command's revision.
 * Once: whoever refused a start on that has changed the task since, and it is read. */
static int take_carried(struct node_agent *a)
{
    const Holdfast__V1__Command *command = hf_node_command(a);
    struct hf_fleet_change change = { .seen = { .create_rev = command->task_create_revision,
                                                .mod_rev = a->command.seen.mod_rev,
                                                .text = { command->task_text,
                                                          strlen(command->task_text) } } };
    ProtobufCMessage *recovery = NULL;
    struct hf_cell next;
    int err;

    if (change.seen.text.len == 0 || a->carried_rev == change.seen.mod_rev)
        return HF_OK;
    err = hf_json_decode(&holdfast__v1__recovery__descriptor, command->recovery_text,
                         strlen(command->recovery_text), NULL, &recovery, NULL);
    if (err == HF_OK)
        err = decode_task(command, &change.record);
    if (err == HF_OK)
        err = hf_node_make_cell(&change, &next);
    if (err != HF_ENOMEM)
        a->carried_rev = change.seen.mod_rev;
    if (err == HF_OK) {
        a->recover = hf_recover_load((const Holdfast__V1__Recovery *)recovery);
        a->ahead.recovery_rev = change.seen.mod_rev;
        a->ahead.recovery_token = 0; /* of a command before it */
        set_task(a, &next, change.seen.mod_rev);
    } else {
        hf_json_free(change.record);
    }
    hf_json_free(recovery);
    return err;
}

/* The task, if it is still to be had. */
static const struct hf_cell *usable_task(const struct node_agent *a, bool reserved)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->task);

    if (hf_node_command(a)->task[0] == '\0' || task == NULL ||
        task->state != HOLDFAST__V1__TASK__STATE__pending)
        return NULL;
    if (strcmp(task->reserved_for, a->name) == 0)
        return &a->task;
    return !reserved && task->reserved_for[0] == '\0' ? &a->task : NULL;
}

static bool has_launcher(const struct hf_node *node, const char *launcher)
{
    const Holdfast__V1__Host *record = (const Holdfast__V1__Host *)node->record;

    for (size_t i = 0; i < record->n_launchers; i++) {
        if (strcmp(record->launchers[i], launcher) == 0)
            return true;
    }
    return false;
}

/* Why a start can only fail here; an agent of our own configuration was checked with it. */
static const char *find_fault(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);

    if (a->failed[0] != '\0')
        return a->failed;
    if (spec == NULL)
        return "it has no spec";
    if (a->guest && !has_launcher(node, spec->launcher))
        return "this host has no such launcher";
    return NULL;
}

static int refuse(struct hf_node *node, struct node_agent *a, const char *fault,
                  struct hf_intent *ret)
{
    const struct hf_cell *reserved = usable_task(a, true);
    struct hf_seen_task task = { 0 };
    Holdfast__V1__Task next;
    Holdfast__V1__Exit exit = HOLDFAST__V1__EXIT__INIT;
    Holdfast__V1__Evidence evidence = HOLDFAST__V1__EVIDENCE__INIT, *list = &evidence;
    Google__Protobuf__Timestamp at = hf_node_timestamp(node->wall);
    struct hf_refusal refusal = { .host = node->host,
                                  .host_lease = node->host_lease,
                                  .host_create_rev = node->host_rev,
                                  .agent = a->name,
                                  .command = a->command.seen,
                                  .exit = a->exit.seen,
                                  .next_exit = &exit };

    evidence.source = (char *)"agentd";
    evidence.text = (char *)fault;
    evidence.at = &at;
    exit.kind = HOLDFAST__V1__EXIT__KIND__start_failed;
    exit.n_evidence = 1;
    exit.evidence = &list;
    if (reserved != NULL)
        task = hf_node_seen_task(reserved);
    /* It waits for a host that can read what it goes on from. */
    if (reserved != NULL && a->elsewhere != NULL) {
        next = *task.task;
        next.root = ((const Holdfast__V1__Checkpoint *)a->elsewhere)->root;
        task.task = &next;
    }
    hf_node_plan(node, ret);
    hf_row_refuse(&ret->plan, &refusal, reserved != NULL ? &task : NULL);
    hf_node_say(a, "its start was ordered, and is not possible here", "the order is refused",
                HF_NODE_NEVER);
    return hf_node_send(node, a, OP_REFUSE, a->why, ret);
}

void hf_node_on_refused(struct node_agent *a, const struct hf_event_outcome *outcome)
{
    a->command_rev = 0;
    a->walk = WALK_NONE;
    if (outcome->outcome == HF_OUTCOME_DONE)
        a->failed[0] = '\0';
}

/* A start that nobody ordered and that cannot be: somebody is told, once. */
static int give_up(struct hf_node *node, struct node_agent *a, enum node_why why,
                   const char *fault, struct hf_intent *ret)
{
    if (why == START_LOCAL)
        hf_restart_on_ordered(&a->restart, node->now);
    a->boot_over = true;
    (void)snprintf(a->end_text, sizeof a->end_text, "%s", fault);
    a->failed[0] = '\0';
    a->next = "the leader may order its start";
    return hf_node_alert(node, a, HOLDFAST__V1__EVENT__KIND__ended, a->end_text, ret);
}

static int make(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    hf_node_make_id(node, a->instance);
    a->process = PROCESS_MAKING;
    a->life = (struct hf_life){ .agent = a->name };
    (void)hf_node_tell(a, HF_PROCESS_MAKE, a->why, ret);
    ret->process.spec = hf_node_spec(a);
    return NODE_INTENT;
}

int hf_node_set_resumed(struct node_agent *a, const char *task)
{
    char *name = NULL;

    if (task != NULL) {
        name = hf_strdup(task);
        if (name == NULL || hf_node_add_owned(a, name) != HF_OK) {
            free(name);
            return HF_ENOMEM;
        }
    } else {
        a->checkpoint = 0;
    }
    free(a->resume);
    a->resume = name;
    return HF_OK;
}

/* Registers what was made. Should the outcome stay unknown it is held, and registered again
 * under the same name: whichever copy arrives, etcd shows this process. */
static int enrol(struct hf_node *node, struct node_agent *a, enum node_why why,
                 struct hf_intent *ret)
{
    const struct hf_cell *task = why == START_COMMAND ? usable_task(a, false)
                                 : why == START_HEIR  ? &a->task
                                                      : NULL;
    struct hf_seen_task seen = { 0 };
    struct node_live live;
    int rc;

    if (hf_node_set_resumed(a, task != NULL ? hf_node_task(task)->id : NULL) != HF_OK)
        return HF_ENOMEM;
    if (task != NULL)
        seen = hf_node_seen_task(task);
    hf_node_plan(node, ret);
    hf_node_fill_live(node, a, &live);
    if (why == START_COMMAND)
        hf_row_start_by_command(&ret->plan, &live.start, &a->command.seen,
                                task != NULL ? &seen : NULL, a->checkpoint);
    else if (why == START_HEIR && hf_node_plan_heir(a, &live, &ret->plan) != HF_OK)
        hf_plan_fail(&ret->plan, HF_ENOMEM, hf_err_text(HF_ENOMEM));
    else if (why == START_BOOT)
        hf_row_boot_start(&ret->plan, &live.start);
    else if (why == START_LOCAL)
        hf_row_local_restart(&ret->plan, &live.start);
    rc = hf_node_send(node, a, OP_START, a->why, ret);
    if (rc == NODE_INTENT) {
        a->start_why = why;
        a->start_sent = true;
        a->command_rev = 0; /* whatever becomes of it, the task is another one then */
        a->heir.of = 0;     /* and the next start is ordered */
    }
    return rc;
}

static int throw_away(struct node_agent *a, const char *why, struct hf_intent *ret)
{
    memcpy(a->discarded, a->instance, sizeof a->discarded);
    (void)hf_node_tell(a, HF_PROCESS_DISCARD, why, ret);
    ret->process.instance_id = a->discarded;
    hf_node_drop_ahead(a);
    hf_node_forget_process(a); /* should it be registered all the same, that is reaped */
    return NODE_INTENT;
}

/* A reason may be missing only because its end and our registration are told one by one. */
static int discard(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    if (a->needless_at == HF_NODE_NEVER)
        a->needless_at = node->now + node->policy.retry;
    if (node->now < a->needless_at) {
        hf_node_wake(a, a->needless_at);
        return NODE_GO_ON;
    }
    return throw_away(a, "there is no reason to start it any more", ret);
}

bool hf_node_may_begin(const struct hf_node *node)
{
    return hf_node_lease_holds(node) ||
           (node->lease.lease != 0 && hf_node_lacks(node, HF_MUTANT_START_JEOPARDY));
}

/* There is a reason, and the lease to do it under. The process is made first: its host makes it
 * while etcd tells of the task and its checkpoints. */
static int go_ahead(struct hf_node *node, struct node_agent *a, enum node_why why,
                    struct hf_intent *ret)
{
    const char *fault = find_fault(node, a);
    int rc = NODE_GO_ON;

    if (fault == NULL && a->process == PROCESS_NONE)
        return make(node, a, ret);
    if (why == START_COMMAND && needs_task(a) && take_carried(a) == HF_ENOMEM)
        return HF_ENOMEM;
    if (why == START_COMMAND && needs_task(a)) {
        rc = hf_node_read_recovery(node, a, ret);
        if (rc != NODE_GO_ON)
            return rc;
        a->read_rev = a->command.seen.mod_rev;
        return hf_node_read(
            node, a, OP_COMMAND_TASK,
            (struct hf_intent_read){ .key = { HF_KEY_TASK, .name = hf_node_command(a)->task } },
            ret);
    }
    if (fault == NULL &&
        (why == START_HEIR || (why == START_COMMAND && usable_task(a, false) != NULL)))
        rc = hf_node_walk(node, a, hf_node_task(&a->task), ret);
    if (rc != NODE_GO_ON || a->process == PROCESS_MAKING)
        return rc;
    fault = find_fault(node, a);
    if (fault != NULL && why == START_HEIR) /* the leader orders it, here or elsewhere */
        hf_node_drop_heir(a);
    if (a->process == PROCESS_HELD)
        return fault != NULL ? throw_away(a, fault, ret) : enrol(node, a, why, ret);
    if (why == START_HEIR)
        return NODE_GO_ON;
    return why == START_COMMAND ? refuse(node, a, fault, ret)
                                : give_up(node, a, why, fault, ret);
}

int hf_node_start(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    enum node_why why;

    if (a->reg != REG_NONE || (a->process != PROCESS_NONE && a->process != PROCESS_MAKING &&
                               a->process != PROCESS_HELD))
        return NODE_GO_ON;
    if (!a->known || !hf_node_is_told(node, a))
        return NODE_GO_ON;
    hf_node_take_spare(a);
    why = why_start(node, a);
    if (why == START_NONE && a->process == PROCESS_NONE)
        a->failed[0] = '\0'; /* nobody waits for what failed, and the next start is another */
    if (why == START_NONE)
        return a->process == PROCESS_HELD ? discard(node, a, ret) : NODE_GO_ON;
    a->needless_at = HF_NODE_NEVER;
    if (!hf_node_may_begin(node) || node->host_rev == 0) {
        a->next = "it is started when the lease is held and the host registered";
        return NODE_GO_ON;
    }
    return go_ahead(node, a, why, ret);
}

static int take_task(struct node_agent *a, struct hf_event_answer *answer)
{
    struct hf_cell next = { 0 };

    if (answer->found_count > 0) {
        int err = hf_node_make_cell(&answer->found[0], &next);

        if (err != HF_OK)
            return err;
        answer->found[0].record = NULL;
    }
    set_task(a, &next, a->read_rev); /* another command may be there by now */
    return HF_OK;
}

int hf_node_start_answer(struct hf_node *node, struct node_agent *a,
                         struct hf_event_answer *answer)
{
    if (answer->err != HF_OK) {
        if (a->walking != NULL)
            hf_node_answer(a->walking, HF_EAGAIN, "etcd could not be asked: %s",
                           hf_err_text(answer->err));
        return HF_OK;
    }
    if (a->flight.op == OP_COMMAND_TASK)
        return take_task(a, answer);
    return hf_node_chain_answer(node, a, answer);
}

/* Begin. */

int hf_node_let_go(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    if (a->process != PROCESS_HELD || a->reg != REG_HOLDS || !a->settled ||
        !hf_node_may_begin(node))
        return NODE_GO_ON;
    a->process = PROCESS_BEGUN;
    a->begun_at = node->now;
    a->started = a->boot_over = true;
    hf_node_drop_ahead(a);
    if (a->start_why == START_LOCAL)
        hf_restart_on_ordered(&a->restart, node->now);
    hf_node_say(a, "it is registered", "nothing", HF_NODE_NEVER);
    (void)hf_node_tell(a, HF_PROCESS_LET_GO, a->why, ret);
    ret->process.incarnation = hf_node_incarnation(&a->life);
    ret->process.task = a->resume;
    ret->process.checkpoint = a->checkpoint;
    return NODE_INTENT;
}
