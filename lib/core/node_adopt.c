#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"

/* Adopt. What it had is read from etcd, since the outcome of a claim may be unknown; after the
 * new registration, which no write of the old one can follow. */

static bool was_owned(const struct node_agent *a, const struct hf_cell *task)
{
    for (size_t i = 0; i < a->life_count; i++) {
        if (hf_node_owns(&a->lives[i], task))
            return true;
    }
    return false;
}

/* To be adopted. */
static bool is_left(const struct node_agent *a, const struct hf_cell *task)
{
    return was_owned(a, task) && hf_task_is_owned(hf_node_task(task)->state);
}

/* By a person, and it does not say from whom: somebody else may have had it meanwhile. */
static bool is_cancelled(const struct hf_cell *task)
{
    const Holdfast__V1__Task *record = hf_node_task(task);

    return record != NULL && record->state == HOLDFAST__V1__TASK__STATE__cancelled;
}

/* Its own, or over by its own doing or a person's word. What somebody else has brought to an
 * end was taken from it. */
static bool is_kept(const struct node_agent *a, const struct hf_cell *task)
{
    return hf_node_owns(&a->life, task) || was_owned(a, task) || is_cancelled(task);
}

struct node_owned *hf_node_find_owned(const struct node_agent *a, const char *task)
{
    for (size_t i = 0; i < a->owned_count; i++) {
        if (strcmp(a->owned[i].name, task) == 0)
            return &a->owned[i];
    }
    return NULL;
}

int hf_node_add_owned(struct node_agent *a, const char *task)
{
    char *name;

    if (hf_node_find_owned(a, task) != NULL)
        return HF_OK;
    if (!hf_grow(&a->owned, &a->owned_cap, a->owned_count + 1, sizeof *a->owned))
        return HF_ENOMEM;
    name = hf_strdup(task);
    if (name == NULL)
        return HF_ENOMEM;
    a->owned[a->owned_count++] = (struct node_owned){ .name = name };
    return HF_OK;
}

void hf_node_drop_owned(struct node_agent *a, const char *task)
{
    struct node_owned *owned = hf_node_find_owned(a, task);

    if (owned == NULL)
        return;
    free(owned->name);
    *owned = a->owned[--a->owned_count];
}

void hf_node_part_with(struct node_agent *a, const char *task)
{
    struct node_owned *owned = hf_node_find_owned(a, task);
    size_t at = 0;

    if (owned == NULL)
        return;
    while (at < NODE_PARTED - 1 && a->parted[at].name != NULL &&
           strcmp(a->parted[at].name, task) != 0)
        at++;
    free(a->parted[at].name);
    memmove(&a->parted[1], &a->parted[0], at * sizeof a->parted[0]);
    a->parted[0] = (struct node_parted){ .name = owned->name };
    *owned = a->owned[--a->owned_count];
}

void hf_node_forget_parted(struct node_agent *a)
{
    for (size_t i = 0; i < NODE_PARTED; i++) {
        free(a->parted[i].name);
        a->parted[i] = (struct node_parted){ 0 };
    }
    a->look_back_at = 0;
}

void hf_node_unsettle(struct node_agent *a)
{
    a->flight.is_void = true;
    a->said_new = a->said_new || a->flight.op == OP_REPORT;
    a->suspicion_new = a->suspicion_new || a->flight.op == OP_REPORT;
    a->settled = a->tasks_read = a->adopt_again = false;
    hf_node_clear_cells(&a->todo, &a->todo_count, &a->todo_cap);
    hf_node_doubt_asks(a);
    a->dirty = true;
}

int hf_node_settle(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    if (a->reg != REG_HOLDS || a->settled || a->asked != ASKED_NOTHING ||
        (a->unadopted && !hf_node_lacks(node, HF_MUTANT_ADOPT_SOME)) ||
        (a->process != PROCESS_BEGUN && a->process != PROCESS_HELD))
        return NODE_GO_ON;
    if (!a->tasks_read) {
        hf_node_clear_cells(&a->todo, &a->todo_count, &a->todo_cap);
        for (size_t i = 0; i < a->owned_count; i++)
            a->owned[i].found = false;
        hf_node_say(a, "what it owns has to be known", "its tasks are read", HF_NODE_NEVER);
        return hf_node_read(
            node, a, OP_SETTLE,
            (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_TASKS }, ret);
    }
    if (a->todo_count > 0) {
        struct hf_seen_task task = hf_node_seen_task(&a->todo[a->todo_count - 1]);

        if (a->adopt_again)
            return hf_node_read(
                node, a, OP_ADOPT_READ,
                (struct hf_intent_read){ .key = { HF_KEY_TASK, .name = task.task->id } }, ret);
        hf_node_plan(node, ret);
        hf_row_adopt(&ret->plan, &a->life, &task);
        hf_node_say(a, "it was registered anew", "its tasks become its own again",
                    HF_NODE_NEVER);
        return hf_node_send(node, a, OP_ADOPT, "its owner is back as another incarnation", ret);
    }
    if ((a->blind || a->doubtful) && a->life_count > 0)
        return hf_node_read(
            node, a, OP_RECOVERED,
            (struct hf_intent_read){ .key = { HF_KEY_HEALTH, .name = a->name } }, ret);
    a->settled = true;
    a->doubtful = false;
    a->life_count = 0;
    a->dirty = true;
    hf_node_say(a, "it is registered, and its tasks are its own", "nothing", HF_NODE_NEVER);
    return NODE_GO_ON;
}

void hf_node_on_adopted(struct node_agent *a, const struct hf_event_outcome *outcome)
{
    a->adopt_again = outcome->outcome != HF_OUTCOME_DONE;
    if (!a->adopt_again && a->todo_count > 0)
        hf_node_clear_cell(&a->todo[--a->todo_count]);
}

/* Of a life after the one that the keeper knew of: an earlier link had registered the process
 * again and went before it could say so, or another process has been this agent since. */
static bool is_unheard(const struct node_agent *a, const struct hf_cell *cell)
{
    struct hf_seen_task task = hf_node_seen_task(cell);

    return a->blind && a->life_count > 0 && !is_kept(a, cell) && task.task->owner != NULL &&
           strcmp(task.task->owner->agent, a->name) == 0 &&
           hf_task_is_owned(task.task->state) &&
           hf_rows_owner_rev(&task) > a->lives[0].create_rev;
}

/* What one task that was read means for the agent. Needs no memory but what was set aside. */
static void sort_task(struct node_agent *a, struct hf_fleet_change *found, char *text)
{
    struct hf_cell cell = { .seen = found->seen, .record = found->record };
    struct node_owned *owned = hf_node_find_owned(a, found->key.name);

    if (owned != NULL) {
        owned->found = is_kept(a, &cell);
        if ((owned->found &&
             hf_node_task(&cell)->state == HOLDFAST__V1__TASK__STATE__in_progress) ||
            is_unheard(a, &cell))
            owned->begun = true; /* an earlier link has heard of it */
        a->doubtful = a->doubtful || (owned->begun && is_cancelled(&cell));
    }
    if (!is_left(a, &cell))
        return;
    cell.seen.text.data = text;
    a->todo[a->todo_count++] = cell;
    found->record = NULL;
}

static bool concerns(const struct node_agent *a, const struct hf_fleet_change *found)
{
    const Holdfast__V1__Task *task = (const Holdfast__V1__Task *)found->record;

    return found->key.kind == HF_KEY_TASK && task != NULL && task->owner != NULL &&
           hf_task_is_owned(task->state) && strcmp(task->owner->agent, a->name) == 0;
}

/* A claim whose outcome nobody heard of, or what a process completed in a history that etcd has
 * forgotten. */
static int add_found(struct node_agent *a, const char *task)
{
    bool known = hf_node_find_owned(a, task) != NULL;
    int err = hf_node_add_owned(a, task);

    if (err == HF_OK && !known)
        hf_node_find_owned(a, task)->unheard = true;
    return err;
}

/* A task that it had begun and that is not its own any more is somebody else's, or will be: the
 * process must not go on with it. */
static void finish_settling(struct node_agent *a)
{
    a->tasks_read = true;
    for (size_t i = a->owned_count; i-- > 0;) {
        if (a->owned[i].found)
            continue;
        if (a->owned[i].begun)
            a->unadopted = true;
        hf_node_drop_owned(a, a->owned[i].name);
    }
}

/* A start that an earlier link sent gave it this task, and says what it goes on from. */
static int take_resumed(struct node_agent *a, const struct hf_fleet_change *found)
{
    struct hf_cell cell = { .seen = found->seen, .record = found->record };
    const Holdfast__V1__Task *task = hf_node_task(&cell);
    int err;

    if (a->process != PROCESS_HELD || !hf_node_owns(&a->life, &cell))
        return HF_OK;
    err = hf_node_set_resumed(a, task->id);
    if (err == HF_OK)
        a->checkpoint = task->restored != NULL ? task->restored->seq : 0;
    return err;
}

static int take_found(struct node_agent *a, struct hf_fleet_change *found)
{
    char *text;

    if (!hf_grow(&a->todo, &a->todo_cap, a->todo_count + 1, sizeof *a->todo))
        return HF_ENOMEM;
    if (concerns(a, found) && add_found(a, found->key.name) != HF_OK)
        return HF_ENOMEM;
    if (take_resumed(a, found) != HF_OK)
        return HF_ENOMEM;
    text = hf_memdup(found->seen.text.data, found->seen.text.len);
    if (text == NULL)
        return HF_ENOMEM;
    sort_task(a, found, text);
    if (found->record != NULL)
        free(text);
    return HF_OK;
}

/* Without memory it begins from the front: the event is told again, and what was taken from it
 * is recognised by its missing record. */
static int take_tasks(struct node_agent *a, struct hf_event_answer *answer)
{
    for (size_t i = 0; i < answer->found_count; i++) {
        struct hf_fleet_change *found = &answer->found[i];
        bool known = found->record != NULL && found->key.kind == HF_KEY_TASK &&
                     (concerns(a, found) || hf_node_find_owned(a, found->key.name) != NULL);

        if (known && take_found(a, found) != HF_OK)
            return HF_ENOMEM;
    }
    return HF_OK;
}

/* One task, after its adoption did not go through as it was. */
static int look_again(struct node_agent *a, struct hf_event_answer *answer)
{
    struct hf_cell *last = &a->todo[a->todo_count - 1], next = { 0 };

    if (answer->found_count > 0) {
        int err = hf_node_make_cell(&answer->found[0], &next);

        if (err != HF_OK)
            return err;
        answer->found[0].record = NULL;
    }
    hf_node_clear_cell(last);
    *last = next;
    a->adopt_again = false;
    if (is_left(a, last))
        return HF_OK;
    if (!is_kept(a, last))
        a->unadopted = true;
    a->doubtful = a->doubtful || is_cancelled(last);
    hf_node_clear_cell(last);
    a->todo_count--;
    return HF_OK;
}

/* A task that was taken from it does not name it any more; that one was stands with the agent.
 */
static void look_back(struct node_agent *a, const struct hf_event_answer *answer)
{
    const Holdfast__V1__Health *health =
        answer->found_count > 0 ? (const Holdfast__V1__Health *)answer->found[0].record : NULL;

    a->blind = a->doubtful = false;
    if (health != NULL && health->taken_upto >= hf_node_incarnation(&a->lives[0]))
        a->unadopted = true;
}

int hf_node_settle_answer(struct node_agent *a, struct hf_event_answer *answer)
{
    int err;

    if (answer->err != HF_OK)
        return HF_OK;
    if (a->flight.op == OP_RECOVERED) {
        look_back(a, answer);
        return HF_OK;
    }
    if (a->flight.op == OP_ADOPT_READ)
        return look_again(a, answer);
    err = take_tasks(a, answer);
    if (err == HF_OK && !answer->more && answer->revision >= a->life.create_rev)
        finish_settling(a);
    return err;
}
