#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

#define VERIFY_MOST 60000 /* a store that says nothing for so long will not */

static int64_t seq_of(const Holdfast__V1__CheckpointRef *entry)
{
    return entry != NULL ? entry->seq : 0;
}

/* Begins when the task is known, and anew when its newest checkpoint is another. */
static void begin_walk(struct node_agent *a, const Holdfast__V1__Task *task)
{
    if (a->ahead.stage == AHEAD_NONE)
        hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    a->head = seq_of(task->checkpoint);
    a->checkpoint = 0;
    a->chain_at = 0;
    hf_json_free(a->elsewhere);
    a->elsewhere = NULL;
    a->walk = a->head != 0 ? WALK_RECOVERY : WALK_OVER;
}

bool hf_node_has_root(const struct hf_node *node, const Holdfast__V1__Root *root)
{
    const Holdfast__V1__Host *record = (const Holdfast__V1__Host *)node->record;

    if (root == NULL || root->lost)
        return true;
    for (size_t i = 0; i < record->n_roots; i++) {
        if (strcmp(record->roots[i], root->id) == 0)
            return true;
    }
    return false;
}

/* What a person gave up is not there; what only others can read is theirs to tell. */
static bool is_out_of_reach(const struct hf_node *node, const Holdfast__V1__Task *task,
                            const Holdfast__V1__Checkpoint *entry,
                            enum hf_chain_result *ret_result)
{
    bool lost = task->root != NULL && task->root->lost && entry->root != NULL &&
                strcmp(task->root->id, entry->root->id) == 0;

    if (hf_node_has_root(node, entry->root))
        return false;
    *ret_result = lost ? HF_CHAIN_MISSING : HF_CHAIN_ELSEWHERE;
    return true;
}

static struct hf_cell *find_cell(const struct node_agent *a, int64_t seq)
{
    for (size_t i = 0; i < a->chain_count; i++) {
        if (((const Holdfast__V1__Checkpoint *)a->chain[i].record)->seq == seq)
            return &a->chain[i];
    }
    return NULL;
}

const Holdfast__V1__Checkpoint *hf_node_find_entry(const struct node_agent *a, int64_t seq)
{
    const struct hf_cell *cell = find_cell(a, seq);

    return cell != NULL ? (const Holdfast__V1__Checkpoint *)cell->record : NULL;
}

static bool is_broken(const Holdfast__V1__Task *task, const Holdfast__V1__Checkpoint *entry)
{
    return strcmp(entry->task, task->id) != 0 || entry->parent < 0 ||
           entry->parent >= entry->seq;
}

/* While a body is looked at for an agent that runs, its registration is not kept waiting. */
static int verify_beside(struct hf_node *node, struct node_agent *a,
                         const Holdfast__V1__Checkpoint *entry, struct hf_intent *ret)
{
    (void)hf_node_verify(node, a, entry, ret);
    a->verifying = a->flight.token;
    a->flight = (struct node_flight){ 0 };
    a->walking->stage = ASK_SENT;
    a->walking->until = node->now + VERIFY_MOST;
    return NODE_INTENT;
}

static void begin_verifying(const struct hf_node *node, struct node_agent *a)
{
    hf_chain_init(&a->walker, &node->policy.chain, a->head, &a->recover);
    a->walk = WALK_VERIFY;
}

static int need_chain(struct hf_node *node, struct node_agent *a,
                      const Holdfast__V1__Task *task, struct hf_intent *ret)
{
    int rc = hf_node_wait_ahead(node, a);

    if (rc != NODE_GO_ON)
        return rc;
    if (a->ahead.stage == AHEAD_NONE)
        return hf_node_read(node, a, OP_CHAIN,
                            (struct hf_intent_read){ .whole_scope = true,
                                                     .scope = HF_KEY_IN_CHECKPOINTS_TASK,
                                                     .name = task->id },
                            ret);
    begin_verifying(node, a);
    return NODE_GO_ON;
}

/* Settles what needs no look at a body; an intent for what does. */
static int verify(struct hf_node *node, struct node_agent *a, const Holdfast__V1__Task *task,
                  const struct hf_chain_step *step, struct hf_intent *ret)
{
    const Holdfast__V1__Checkpoint *entry = hf_node_find_entry(a, step->seq);
    enum hf_chain_result result;

    if (entry != NULL && !is_broken(task, entry) &&
        is_out_of_reach(node, task, entry, &result)) {
        hf_chain_on_verified(&a->walker, step->seq, result, entry->parent);
        return NODE_GO_ON;
    }
    if (entry != NULL && !is_broken(task, entry)) {
        if (a->walking != NULL && step->wait > 0) { /* who runs can ask again */
            hf_node_answer(a->walking, HF_EAGAIN, "%s", step->why);
            a->walk = WALK_OVER;
            return NODE_GO_ON;
        }
        if (step->wait > 0 && !a->chain_waited) {
            a->chain_waited = true;
            a->pause_until = node->now + step->wait;
            hf_node_say(a, step->why, step->next, a->pause_until);
            return NODE_REST;
        }
        a->chain_waited = false;
        a->chain_at = step->seq;
        if (a->ahead.whole == step->seq) {
            hf_node_chain_verified(a, HF_OK);
            return NODE_GO_ON;
        }
        return a->walking != NULL ? verify_beside(node, a, entry, ret)
                                  : hf_node_verify(node, a, entry, ret);
    }
    if (entry == NULL && a->ahead.partial) {
        hf_node_drop_ahead(a);
        a->walk = WALK_CHAIN;
        return need_chain(node, a, task, ret);
    }
    hf_chain_on_verified(&a->walker, step->seq,
                         entry == NULL ? HF_CHAIN_MISSING : HF_CHAIN_BROKEN, -1);
    return NODE_GO_ON;
}

/* Why there is no going on here, for whoever has to do something about it. */
static void describe_refusal(struct node_agent *a, const struct hf_chain_step *step,
                             char ret_text[NODE_TEXT_SIZE])
{
    struct hf_cell *cell = a->walker.elsewhere ? find_cell(a, a->walker.at) : NULL;
    const Holdfast__V1__Root *root;

    if (cell == NULL) {
        hf_node_keep_text(ret_text, step->why);
        return;
    }
    hf_json_free(a->elsewhere);
    a->elsewhere = cell->record;
    cell->record = NULL;
    root = ((const Holdfast__V1__Checkpoint *)a->elsewhere)->root;
    (void)snprintf(ret_text, NODE_TEXT_SIZE,
                   "checkpoint %lld lies in files of host %.64s, which this host does not "
                   "have: bring that host back, or let both share checkpoints.directory",
                   (long long)a->walker.at, root->host);
}

/* What its agent gets is the entry; a person who was told once knows. */
static bool end_for_agent(struct node_agent *a, const struct hf_chain_step *step)
{
    struct node_ask *ask = a->walking;
    const Holdfast__V1__Task *task = hf_node_task(&ask->cell);
    struct hf_cell *cell = a->checkpoint != 0 ? find_cell(a, a->checkpoint) : NULL;
    char text[NODE_TEXT_SIZE];

    if (step->verdict == HF_CHAIN_REFUSE) {
        describe_refusal(a, step, text);
        hf_node_answer(ask, HF_EAGAIN, "%s", text);
    }
    hf_json_free(ask->message);
    ask->message = cell != NULL ? cell->record : NULL;
    if (cell != NULL)
        cell->record = NULL;
    return hf_node_owns(&a->life, &ask->cell) &&
           (task->restored == NULL || task->restored->seq != a->checkpoint);
}

static int end_walk(struct hf_node *node, struct node_agent *a, const Holdfast__V1__Task *task,
                    const struct hf_chain_step *step, struct hf_intent *ret)
{
    bool told = step->alert;

    a->walk = WALK_OVER;
    a->checkpoint = step->verdict == HF_CHAIN_USE ? step->seq : 0;
    if (a->walking != NULL)
        told = end_for_agent(a, step) && told;
    else if (step->verdict == HF_CHAIN_REFUSE)
        describe_refusal(a, step, a->failed);
    hf_node_drop_ahead(a);
    hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    if (!told)
        return NODE_GO_ON;
    a->next = step->next;
    (void)hf_node_alert(node, a, HOLDFAST__V1__EVENT__KIND__recovered, step->why, ret);
    ret->alert.task = task->id;
    return NODE_INTENT;
}

static int go_along(struct hf_node *node, struct node_agent *a, const Holdfast__V1__Task *task,
                    struct hf_intent *ret)
{
    struct hf_chain_step step;
    int rc = NODE_GO_ON;

    while (rc == NODE_GO_ON && a->walk == WALK_VERIFY) {
        step = hf_chain_next(&a->walker);
        rc = step.verdict == HF_CHAIN_VERIFY ? verify(node, a, task, &step, ret)
                                             : end_walk(node, a, task, &step, ret);
    }
    return rc;
}

/* Of a start it was read beside the task. */
static int need_recovery(struct hf_node *node, struct node_agent *a,
                         const Holdfast__V1__Task *task, struct hf_intent *ret)
{
    if (a->walking == NULL && a->ahead.recovery_token != 0)
        return NODE_REST;
    if (a->walking != NULL || a->ahead.recovery_rev != a->command_rev)
        return hf_node_read(
            node, a, OP_RECOVERY,
            (struct hf_intent_read){ .key = { HF_KEY_RECOVERY, .name = task->id } }, ret);
    a->walk = WALK_CHAIN;
    return NODE_GO_ON;
}

int hf_node_walk(struct hf_node *node, struct node_agent *a, const Holdfast__V1__Task *task,
                 struct hf_intent *ret)
{
    int rc = NODE_GO_ON;

    if (a->walk == WALK_NONE || a->head != seq_of(task->checkpoint))
        begin_walk(a, task);
    if (a->walk == WALK_RECOVERY)
        rc = need_recovery(node, a, task, ret);
    if (a->walk == WALK_CHAIN && rc == NODE_GO_ON)
        rc = need_chain(node, a, task, ret);
    if (a->walk == WALK_VERIFY && rc == NODE_GO_ON)
        rc = go_along(node, a, task, ret);
    return rc;
}

void hf_node_take_recovery(struct node_agent *a, const struct hf_event_answer *answer)
{
    const ProtobufCMessage *record = answer->found_count > 0 ? answer->found[0].record : NULL;

    a->recover = hf_recover_load((const Holdfast__V1__Recovery *)record);
}

int hf_node_take_entries(struct node_agent *a, struct hf_event_answer *answer)
{
    if (!hf_grow(&a->chain, &a->chain_cap, a->chain_count + answer->found_count,
                 sizeof *a->chain))
        return HF_ENOMEM;
    for (size_t i = 0; i < answer->found_count; i++) {
        struct hf_fleet_change *found = &answer->found[i];

        if (found->record == NULL || found->key.kind != HF_KEY_CHECKPOINT)
            continue;
        a->chain[a->chain_count++] = (struct hf_cell){ .record = found->record };
        found->record = NULL;
    }
    return HF_OK;
}

int hf_node_chain_answer(const struct hf_node *node, struct node_agent *a,
                         struct hf_event_answer *answer)
{
    if (a->walk != (a->flight.op == OP_RECOVERY ? WALK_RECOVERY : WALK_CHAIN))
        return HF_OK; /* whoever asked does not wait for it any more */
    if (a->flight.op == OP_RECOVERY) {
        hf_node_take_recovery(a, answer);
        a->walk = WALK_CHAIN;
        return HF_OK;
    }
    if (hf_node_take_entries(a, answer) != HF_OK)
        return HF_ENOMEM;
    if (answer->more)
        return HF_OK;
    begin_verifying(node, a);
    return HF_OK;
}

void hf_node_chain_verified(struct node_agent *a, int err)
{
    const Holdfast__V1__Checkpoint *entry = hf_node_find_entry(a, a->chain_at);
    enum hf_chain_result result = HF_CHAIN_UNREADABLE;

    if (err == HF_OK)
        result = HF_CHAIN_VALID;
    else if (err == HF_ECORRUPT)
        result = HF_CHAIN_CORRUPT;
    else if (err == HF_ENOENT)
        result = HF_CHAIN_MISSING;
    hf_chain_on_verified(&a->walker, a->chain_at, result, entry != NULL ? entry->parent : -1);
}

/* An agent that runs asks. */

static int write_restored(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                          struct hf_intent *ret)
{
    struct hf_seen_task task = hf_node_seen_task(&ask->cell);
    Holdfast__V1__CheckpointRef restored = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    Holdfast__V1__Task next = *task.task;

    restored.seq = a->checkpoint;
    next.restored = &restored;
    hf_plan_init(&ret->plan, node->ns, HF_WRITER_OWNER, ask->op_id);
    hf_row_task(&ret->plan, &a->life, &task, &next);
    return hf_node_ask_send(node, a, ask, ask->task, ret);
}

/* Its task names what its owner went on from, before the owner has it: whoever counts the
 * deaths that a checkpoint caused must not blame another. Anybody else may just look. */
static bool is_to_be_written(const struct node_agent *a, const struct node_ask *ask)
{
    const Holdfast__V1__Task *task = hf_node_task(&ask->cell);

    return a->head != 0 && hf_node_owns(&a->life, &ask->cell) &&
           hf_task_next(task, HF_TASK_RESTORE).allowed &&
           (task->restored == NULL || task->restored->seq != a->checkpoint);
}

static int wait_for_store(struct hf_node *node, struct node_agent *a, struct node_ask *ask)
{
    if (a->walking != ask || a->verifying == 0)
        return NODE_GO_ON;
    if (node->now >= ask->until)
        hf_node_answer(ask, HF_EAGAIN, "a checkpoint cannot be read here at the moment");
    else
        hf_node_wake(a, ask->until);
    return NODE_GO_ON;
}

int hf_node_restore(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                    struct hf_intent *ret)
{
    int rc;

    if (ask->stage == ASK_SENT)
        return wait_for_store(node, a, ask);
    if (a->walking != NULL && a->walking != ask)
        return NODE_GO_ON; /* one after the other */
    if (ask->stage == ASK_NEW)
        return hf_node_ask_read(node, a, ask, ask->task, ret);
    if (hf_node_task(&ask->cell) == NULL) {
        hf_node_answer(ask, HF_ENOENT, "there is no such task");
        return NODE_GO_ON;
    }
    if (hf_node_find_owned(a, ask->task) != NULL && !hf_node_owns(&a->life, &ask->cell)) {
        hf_node_part_with(a, ask->task);
        hf_node_answer(ask, HF_ECONFLICT, "the task is not this agent's any more");
        return NODE_GO_ON;
    }
    if (a->walking == NULL)
        a->walk = WALK_NONE;
    a->walking = ask;
    rc = hf_node_walk(node, a, hf_node_task(&ask->cell), ret);
    if (rc != NODE_GO_ON || ask->stage == ASK_ANSWERED)
        return rc;
    ask->seq = a->checkpoint;
    if (is_to_be_written(a, ask))
        return write_restored(node, a, ask, ret);
    hf_node_answer_read(ask);
    return NODE_GO_ON;
}

void hf_node_restore_verified(struct node_agent *a, int err)
{
    a->verifying = 0;
    if (a->walking == NULL || a->walking->stage != ASK_SENT)
        return; /* it was answered meanwhile */
    hf_node_chain_verified(a, err);
    a->walking->stage = ASK_NEW; /* the task may have been adopted, or taken, since */
    a->dirty = true;
}
