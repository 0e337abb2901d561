#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

static int64_t head_of(const struct node_agent *a)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->task);

    return task != NULL && task->checkpoint != NULL ? task->checkpoint->seq : 0;
}

/* Begins when the task is known, and anew when its newest checkpoint is another. */
static void begin_walk(struct node_agent *a)
{
    hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    a->head = head_of(a);
    a->checkpoint = 0;
    a->chain_at = 0;
    a->walk = a->head != 0 ? WALK_RECOVERY : WALK_OVER;
}

static const Holdfast__V1__Checkpoint *find_entry(const struct node_agent *a, int64_t seq)
{
    for (size_t i = 0; i < a->chain_count; i++) {
        const Holdfast__V1__Checkpoint *entry =
            (const Holdfast__V1__Checkpoint *)a->chain[i].record;

        if (entry->seq == seq)
            return entry;
    }
    return NULL;
}

static bool is_broken(const struct node_agent *a, const Holdfast__V1__Checkpoint *entry)
{
    return strcmp(entry->task, hf_node_task(&a->task)->id) != 0 || entry->parent < 0 ||
           entry->parent >= entry->seq;
}

/* Settles what needs no look at a body; an intent for what does. */
static int verify(struct hf_node *node, struct node_agent *a, const struct hf_chain_step *step,
                  struct hf_intent *ret)
{
    const Holdfast__V1__Checkpoint *entry = find_entry(a, step->seq);

    if (entry != NULL && !is_broken(a, entry)) {
        if (step->wait > 0 && !a->chain_waited) {
            a->chain_waited = true;
            a->pause_until = node->now + step->wait;
            hf_node_say(a, step->why, step->next, a->pause_until);
            return NODE_REST;
        }
        a->chain_waited = false;
        a->chain_at = step->seq;
        return hf_node_verify(node, a, entry, ret);
    }
    hf_chain_on_verified(&a->walker, step->seq,
                         entry == NULL ? HF_CHAIN_MISSING : HF_CHAIN_BROKEN, -1);
    return NODE_GO_ON;
}

static int end_walk(struct hf_node *node, struct node_agent *a,
                    const struct hf_chain_step *step, struct hf_intent *ret)
{
    a->walk = WALK_OVER;
    a->checkpoint = step->verdict == HF_CHAIN_USE ? step->seq : 0;
    hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    if (step->verdict == HF_CHAIN_REFUSE)
        hf_node_keep_text(a->failed, step->why);
    if (!step->alert)
        return NODE_GO_ON;
    a->next = step->next;
    (void)hf_node_alert(node, a, HOLDFAST__V1__EVENT__KIND__recovered, step->why, ret);
    ret->alert.task = hf_node_task(&a->task)->id;
    return NODE_INTENT;
}

static int go_along(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    struct hf_chain_step step;
    int rc = NODE_GO_ON;

    while (rc == NODE_GO_ON && a->walk == WALK_VERIFY) {
        step = hf_chain_next(&a->walker);
        rc = step.verdict == HF_CHAIN_VERIFY ? verify(node, a, &step, ret)
                                             : end_walk(node, a, &step, ret);
    }
    return rc;
}

int hf_node_walk(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    const char *task = hf_node_task(&a->task)->id;

    if (a->walk == WALK_NONE || a->head != head_of(a))
        begin_walk(a);
    switch (a->walk) {
    case WALK_RECOVERY:
        return hf_node_read(node, a, OP_RECOVERY,
                            (struct hf_intent_read){ .key = { HF_KEY_RECOVERY, .name = task } },
                            ret);
    case WALK_CHAIN:
        return hf_node_read(node, a, OP_CHAIN,
                            (struct hf_intent_read){ .whole_scope = true,
                                                     .scope = HF_KEY_IN_CHECKPOINTS_TASK,
                                                     .name = task },
                            ret);
    case WALK_VERIFY: return go_along(node, a, ret);
    case WALK_NONE:
    case WALK_OVER: break;
    }
    return NODE_GO_ON;
}

static int take_entries(struct node_agent *a, struct hf_event_answer *answer)
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
    if (a->flight.op == OP_RECOVERY) {
        const ProtobufCMessage *record =
            answer->found_count > 0 ? answer->found[0].record : NULL;

        a->recover = hf_recover_load((const Holdfast__V1__Recovery *)record);
        a->walk = WALK_CHAIN;
        return HF_OK;
    }
    if (take_entries(a, answer) != HF_OK)
        return HF_ENOMEM;
    if (answer->more)
        return HF_OK;
    hf_chain_init(&a->walker, &node->policy.chain, a->head, &a->recover);
    a->walk = WALK_VERIFY;
    return HF_OK;
}

void hf_node_chain_verified(struct node_agent *a, int err)
{
    const Holdfast__V1__Checkpoint *entry = find_entry(a, a->chain_at);
    enum hf_chain_result result = HF_CHAIN_UNREADABLE;

    if (err == HF_OK)
        result = HF_CHAIN_VALID;
    else if (err == HF_ECORRUPT)
        result = HF_CHAIN_CORRUPT;
    else if (err == HF_ENOENT)
        result = HF_CHAIN_MISSING;
    hf_chain_on_verified(&a->walker, a->chain_at, result, entry != NULL ? entry->parent : -1);
}
