#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

static enum hf_task_event event_of(enum hf_ask_kind kind)
{
    switch (kind) {
    case HF_ASK_START: return HF_TASK_START;
    case HF_ASK_PROGRESS: return HF_TASK_PROGRESS;
    case HF_ASK_COMPLETE: return HF_TASK_COMPLETE;
    case HF_ASK_FAIL: return HF_TASK_FAIL;
    case HF_ASK_RELEASE: return HF_TASK_RELEASE;
    default: return HF_TASK_CHECKPOINT;
    }
}

/* Shows the task as it was read. */
void hf_node_answer_read(struct node_ask *ask)
{
    hf_json_free(ask->reply);
    ask->reply = ask->cell.record;
    ask->cell.record = NULL;
    hf_node_grant(ask);
}

bool hf_node_is_written(const struct node_ask *ask)
{
    const char *op_id =
        ask->cell.record != NULL ? hf_plan_find_op_id(ask->cell.record, HF_WRITER_OWNER) : NULL;

    return op_id != NULL && strcmp(op_id, ask->op_id) == 0;
}

/* Asked again because the answer was lost: it is as was wanted already. */
static bool is_there(const struct node_ask *ask)
{
    Holdfast__V1__Task__State state = hf_node_task(&ask->cell)->state;

    return (ask->kind == HF_ASK_START && state == HOLDFAST__V1__TASK__STATE__in_progress) ||
           (ask->kind == HF_ASK_COMPLETE && state == HOLDFAST__V1__TASK__STATE__completed) ||
           (ask->kind == HF_ASK_FAIL && state == HOLDFAST__V1__TASK__STATE__failed);
}

static void fill_checkpoint(const struct node_agent *a, const Holdfast__V1__Task *task,
                            Holdfast__V1__Incarnation *incarnation,
                            Holdfast__V1__Checkpoint *entry)
{
    int64_t head = task->checkpoint != NULL ? task->checkpoint->seq : 0;

    incarnation->lease_id = a->life.lease;
    incarnation->create_revision = a->life.create_rev;
    incarnation->generation = a->life.generation;
    entry->task = task->id;
    entry->seq = head + 1;
    entry->parent = head;
    entry->incarnation = incarnation;
}

static void plan_checkpoint(struct hf_plan *plan, const struct node_agent *a,
                            struct node_ask *ask)
{
    struct hf_seen_task task = hf_node_seen_task(&ask->cell);
    Holdfast__V1__Checkpoint entry = *(const Holdfast__V1__Checkpoint *)ask->message;
    Holdfast__V1__Incarnation incarnation = HOLDFAST__V1__INCARNATION__INIT;

    fill_checkpoint(a, task.task, &incarnation, &entry);
    ask->seq = entry.seq;
    hf_row_checkpoint(plan, &a->life, &task, &entry,
                      (struct hf_bytes){ ask->body, ask->body_len });
}

static void plan_task(struct hf_plan *plan, const struct node_agent *a,
                      const struct node_ask *ask, Holdfast__V1__Task__State state)
{
    struct hf_seen_task task = hf_node_seen_task(&ask->cell);
    Holdfast__V1__Task next = *task.task;

    next.state = state;
    if (ask->kind == HF_ASK_COMPLETE && ask->text != NULL) {
        next.result = ask->text;
        next.result_body = NULL;
    }
    if (ask->kind == HF_ASK_FAIL && ask->text != NULL)
        next.reason = ask->text;
    hf_row_task(plan, &a->life, &task, &next);
}

static void take_progress(const struct hf_node *node, struct node_agent *a,
                          struct node_ask *ask)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)ask->message;

    if (report == NULL || report->progress == NULL)
        return;
    a->has_progress = a->progress_newest = a->said_new = true;
    a->percent = report->progress->percent;
    hf_node_keep_text(a->note, report->progress->note);
    a->progress_wall = node->wall;
    hf_node_note_word(node, a);
}

/* What moves the task that it was asked about is an answer, too. */
static void note_move(const struct hf_node *node, struct node_agent *a,
                      const struct node_ask *ask)
{
    const Holdfast__V1__Health__Inquiry *inquiry = hf_node_find_inquiry(a);

    if (inquiry != NULL && strcmp(inquiry->task, ask->task) == 0)
        hf_node_note_answer(node, a);
}

static int write_task(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                      Holdfast__V1__Task__State state, struct hf_intent *ret)
{
    struct hf_seen_task task = hf_node_seen_task(&ask->cell);

    hf_plan_init(&ret->plan, node->ns, HF_WRITER_OWNER, ask->op_id);
    if (ask->kind == HF_ASK_CHECKPOINT)
        plan_checkpoint(&ret->plan, a, ask);
    else if (ask->kind == HF_ASK_RELEASE)
        hf_row_release(&ret->plan, &a->life, &task, ask->text != NULL ? ask->text : "");
    else
        plan_task(&ret->plan, a, ask, state);
    return hf_node_ask_send(node, a, ask, ask->task, ret);
}

/* start, progress, complete, fail, release, checkpoint: on the task as it stands now. */
int hf_node_work(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                 struct hf_intent *ret)
{
    const Holdfast__V1__Task *task = hf_node_task(&ask->cell);
    struct hf_task_step step;

    if (ask->stage == ASK_NEW)
        return hf_node_ask_read(node, a, ask, ask->task, ret);
    if (task == NULL) {
        hf_node_answer(ask, HF_ENOENT, "there is no such task");
        return NODE_GO_ON;
    }
    if (hf_node_is_written(ask)) { /* by an attempt that we did not hear of again */
        hf_node_answer_read(ask);
        hf_node_drop_estate(a);
        hf_node_ask_done(a, ask);
        return NODE_GO_ON;
    }
    if (!hf_node_owns(&a->life, &ask->cell)) {
        hf_node_part_with(a, ask->task);
        hf_node_answer(ask, HF_ECONFLICT, "the task is not this agent's: it is %s",
                       hf_task_state_name(task->state));
        return NODE_GO_ON;
    }
    step = hf_task_next(task, event_of(ask->kind));
    if (!step.allowed && is_there(ask)) {
        hf_node_answer_read(ask);
        return NODE_GO_ON;
    }
    if (!step.allowed) {
        hf_node_answer(ask, HF_ECONFLICT, "%s", step.why);
        return NODE_GO_ON;
    }
    if (ask->kind == HF_ASK_PROGRESS) {
        take_progress(node, a, ask);
        hf_node_answer_read(ask);
        return NODE_GO_ON;
    }
    note_move(node, a, ask);
    return write_task(node, a, ask, step.state, ret);
}

void hf_node_ask_done(struct node_agent *a, struct node_ask *ask)
{
    struct node_owned *owned = ask->task != NULL ? hf_node_find_owned(a, ask->task) : NULL;

    hf_node_grant(ask);
    if (ask->kind == HF_ASK_CHECKPOINT)
        hf_node_on_kept(a, ask);
    if (ask->kind == HF_ASK_CLAIM && owned != NULL)
        owned->claim_rev = 0;
    if (ask->kind == HF_ASK_START && owned != NULL)
        owned->begun = true;
    if (ask->kind == HF_ASK_COMPLETE || ask->kind == HF_ASK_FAIL || ask->kind == HF_ASK_RELEASE)
        hf_node_part_with(a, ask->task);
}

/* submit: the id is what makes it happen once. */
int hf_node_submit(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                   struct hf_intent *ret)
{
    Holdfast__V1__Task *task = (Holdfast__V1__Task *)ask->message;

    if (ask->task == NULL) {
        char id[HF_ID_LEN + 1];

        hf_node_make_id(node, id);
        ask->task = hf_strdup(task->id[0] != '\0' ? task->id : id);
        if (ask->task == NULL)
            return HF_ENOMEM;
    }
    if (ask->stage == ASK_NEW && ask->reread)
        return hf_node_ask_read(node, a, ask, ask->task, ret);
    if (ask->stage == ASK_READ && hf_node_exists(&ask->cell)) {
        ask->existed = !hf_node_is_written(ask);
        hf_node_answer_read(ask);
        return NODE_GO_ON;
    }
    task->id = ask->task;
    hf_plan_init(&ret->plan, node->ns, HF_WRITER_OWNER, ask->op_id);
    if (task->state == HOLDFAST__V1__TASK__STATE__queued)
        hf_row_enqueue(&ret->plan, task);
    else
        hf_row_submit(&ret->plan, task);
    return hf_node_ask_send(node, a, ask, ask->task, ret);
}
