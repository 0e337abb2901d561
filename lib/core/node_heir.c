#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

/* The leader may give leave in advance: a life that crashes with its task is started again at
 * once by its own agentd, without an order. The end says that it comes to that, so that who
 * leads waits for a moment; the start compares the health record that gave the leave, and the
 * task as the dead life had it, which is known from its own last write. Whatever is not as
 * simple as that is for the leader to order. */

/* Its task, as it was written last. */

void hf_node_drop_estate(struct node_agent *a)
{
    hf_node_clear_cell(&a->heir.task);
}

int hf_node_copy_estate(struct node_ask *ask, struct hf_bytes text)
{
    char *copy = hf_memdup(text.data, text.len);

    if (copy == NULL)
        return HF_ENOMEM;
    free((void *)ask->written.data);
    ask->written = (struct hf_bytes){ copy, text.len };
    return HF_OK;
}

/* What it submits is not its own, and what it gives away is so no more. */
void hf_node_on_estate(struct node_agent *a, struct node_ask *ask, int64_t revision)
{
    if (ask->kind == HF_ASK_SUBMIT)
        return;
    hf_node_drop_estate(a);
    if (ask->kind == HF_ASK_COMPLETE || ask->kind == HF_ASK_FAIL || ask->kind == HF_ASK_RELEASE)
        return;
    a->heir.task.seen = (struct hf_seen){ .create_rev = ask->cell.seen.create_rev,
                                          .mod_rev = revision,
                                          .text = ask->written };
    ask->written = (struct hf_bytes){ 0 };
}

/* The end. */

static bool has_leave(const struct hf_node *node, const struct node_agent *a, int64_t life)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;

    if (hf_node_lacks(node, HF_MUTANT_ANY_LEAVE))
        return life != 0;
    return health != NULL && life != 0 && health->heir_of == life;
}

static bool is_cordoned(const struct hf_node *node)
{
    const Holdfast__V1__Host *record = (const Holdfast__V1__Host *)node->host_record.record;

    return record == NULL || record->cordoned || record->left;
}

/* What it owned is one task, which is known, its own, and was never recovered. */
static bool is_simple(const struct node_agent *a)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->heir.task);

    return a->settled && !a->blind && !a->doubtful && a->owned_count == 1 &&
           a->owned[0].claim_rev == 0 && task != NULL && task->attempt == 0 &&
           strcmp(task->id, a->owned[0].name) == 0 && hf_task_is_owned(task->state) &&
           hf_node_owns(&a->life, &a->heir.task);
}

static bool has_crashed(const struct node_agent *a)
{
    return a->process == PROCESS_ENDED && a->end == END_NONE && !a->leaving &&
           (a->kind == HOLDFAST__V1__EXIT__KIND__crashed ||
            a->kind == HOLDFAST__V1__EXIT__KIND__oom);
}

/* What is compared is what is known now, so that has to allow it, too. */
static bool is_allowed(const struct hf_node *node, const struct node_agent *a, int64_t life)
{
    bool readable = !hf_node_exists(&a->wanted) || a->wanted.record != NULL;

    return has_leave(node, a, life) && !hf_node_exists(&a->command) &&
           hf_node_exists(&a->spec) && readable && hf_node_may_make(node, a);
}

/* Of a start before this one that nobody has counted yet the leader still has to know. What we
 * sent ourselves may not have been told yet; what an earlier link sent was. */
static void carry(const struct hf_node *node, struct node_agent *a,
                  Holdfast__V1__Exit__Succession *ret, Holdfast__V1__Exit *exit)
{
    const Holdfast__V1__Exit *before = (const Holdfast__V1__Exit *)a->exit.record;

    if (has_leave(node, a, a->succeeded)) {
        ret->heir_of = a->succeeded;
        ret->task = a->succeeded_with;
        ret->done = true;
        exit->succession = ret;
    } else if (before != NULL && before->succession != NULL && before->succession->done &&
               has_leave(node, a, before->succession->heir_of)) {
        *ret = *before->succession;
        exit->succession = ret;
    }
}

static int decode(const ProtobufCMessageDescriptor *type, struct hf_cell *cell)
{
    int err;

    if (cell->record != NULL || cell->seen.text.len == 0)
        return HF_OK;
    err = hf_json_decode(type, cell->seen.text.data, cell->seen.text.len, NULL, &cell->record,
                         NULL);
    return err == HF_ENOMEM ? err : HF_OK;
}

int hf_node_announce_heir(const struct hf_node *node, struct node_agent *a,
                          Holdfast__V1__Exit__Succession *ret, Holdfast__V1__Exit *exit)
{
    int64_t life = hf_node_incarnation(&a->life);

    holdfast__v1__exit__succession__init(ret);
    a->heir.of = 0;
    if (!has_crashed(a) || is_cordoned(node) || !is_allowed(node, a, life)) {
        carry(node, a, ret, exit);
        return HF_OK;
    }
    if (decode(&holdfast__v1__task__descriptor, &a->heir.task) != HF_OK)
        return HF_ENOMEM;
    if (!is_simple(a))
        return HF_OK;
    a->heir.of = life;
    a->heir.until = node->now + node->policy.retry;
    ret->heir_of = life;
    ret->task = hf_node_task(&a->heir.task)->id;
    exit->succession = ret;
    return HF_OK;
}

/* The start of the heir says the same of the end, and that it has come. */
int hf_node_keep_exit(struct node_agent *a, const struct hf_plan *plan)
{
    struct hf_bytes text =
        hf_plan_find_put(plan, (struct hf_key){ HF_KEY_AGENT_EXIT, .name = a->name });
    char *copy;

    if (a->heir.of == 0 || text.data == NULL)
        return HF_OK;
    copy = hf_memdup(text.data, text.len);
    if (copy == NULL)
        return HF_ENOMEM;
    hf_node_clear_cell(&a->heir.exit);
    a->heir.exit.seen.text = (struct hf_bytes){ copy, text.len };
    return HF_OK;
}

static void free_heir(struct node_heir *heir)
{
    hf_node_clear_cell(&heir->task);
    hf_node_clear_cell(&heir->exit);
    free(heir->resume);
    *heir = (struct node_heir){ 0 };
}

void hf_node_drop_heir(struct node_agent *a)
{
    free_heir(&a->heir);
}

/* What was made takes the place of the dead process, with its task, and what becomes of its
 * registration is what is under way. */
static void take_place(struct node_agent *a, struct node_heir *heir)
{
    bool knows = a->owned_count == 1 && heir->resume != NULL;
    struct node_owned owned = { .name = knows ? a->owned[0].name : NULL };

    if (knows)
        a->owned_count = 0; /* the name stays */
    hf_node_forget_process(a);
    hf_node_take_spare(a);
    a->flight = heir->flight;
    a->dirty = true;
    if (!knows)
        return; /* it is read from etcd */
    a->owned[a->owned_count++] = owned;
    a->resume = heir->resume;
    heir->resume = NULL;
    a->checkpoint = heir->restored;
    a->start_why = START_HEIR;
    a->start_sent = true;
}

/* What is known of the task serves for the start. */
static void prepare(struct node_agent *a, struct node_heir *heir)
{
    hf_node_forget_process(a);
    hf_node_clear_cell(&a->task);
    a->task = heir->task;
    heir->task = (struct hf_cell){ 0 };
    a->recover = hf_recover_load(NULL);
    a->walk = WALK_NONE;
    a->command_rev = a->ahead.recovery_rev = 0;
    a->heir = (struct node_heir){
        .of = heir->of, .until = heir->until, .exit = heir->exit, .sent = true
    };
    heir->exit = (struct hf_cell){ 0 };
}

void hf_node_inherit(struct node_agent *a)
{
    struct node_heir heir = a->heir;

    a->heir = (struct node_heir){ 0 };
    if (heir.flight.token != 0)
        take_place(a, &heir);
    else if (heir.of != 0)
        prepare(a, &heir);
    else
        hf_node_forget_process(a);
    free_heir(&heir);
}

/* What etcd shows. */

static bool is_end_told(const struct node_agent *a)
{
    const Holdfast__V1__Exit *exit = (const Holdfast__V1__Exit *)a->exit.record;

    return exit != NULL && exit->succession != NULL && exit->succession->heir_of == a->heir.of;
}

/* The watch may tell of it before the answer comes. */
bool hf_node_take_heir(struct node_agent *a)
{
    if (a->heir.of == 0)
        return false;
    if (!is_end_told(a))
        return a->flight.op == OP_END;
    hf_node_inherit(a);
    return true;
}

/* Whatever is known of the answers, what was made ahead is registered. */
void hf_node_recognise_heir(const struct hf_node *node, struct node_agent *a)
{
    const Holdfast__V1__Live *live = hf_node_live(a);

    if (a->spare.process == PROCESS_NONE || live == NULL || node->lease.lease == 0 ||
        a->live.seen.lease != node->lease.lease ||
        strcmp(live->instance_id, a->spare.instance) != 0 ||
        (a->process != PROCESS_ENDED && a->process != PROCESS_NONE))
        return;
    if (a->heir.flight.token != 0) {
        hf_node_inherit(a);
    } else if (a->flight.token == 0) {
        hf_node_forget_process(a);
        hf_node_take_spare(a);
    }
}

struct node_agent *hf_node_heir_outcome(const struct hf_node *node,
                                        const struct hf_event_outcome *outcome)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        if (a->heir.flight.token == 0 || a->heir.flight.token != outcome->token)
            continue;
        a->dirty = true;
        if (outcome->outcome == HF_OUTCOME_DONE) {
            hf_node_inherit(a); /* so the end is written, too */
            return a;
        }
        a->heir.flight = (struct node_flight){ 0 };
        return NULL;
    }
    return NULL;
}

/* The start. */

static void plan_heir(struct node_agent *a, const struct node_live *live,
                      const struct hf_cell *task, int64_t restored, struct hf_plan *plan)
{
    Holdfast__V1__Exit exit = *(const Holdfast__V1__Exit *)a->heir.exit.record;
    Holdfast__V1__Exit__Succession succession = *exit.succession;

    succession.done = true;
    exit.succession = &succession;
    hf_row_succeed(plan, &live->start,
                   &(struct hf_succession){ .heir_of = a->heir.of,
                                            .health = a->health.seen,
                                            .task = hf_node_seen_task(task),
                                            .restored = restored,
                                            .reason = "its owner crashed, and its heir was "
                                                      "started with it at once",
                                            .exit_text = a->heir.exit.seen.text,
                                            .exit = &exit });
    a->succeeded = a->heir.of;
    (void)snprintf(a->succeeded_with, sizeof a->succeeded_with, "%s", succession.task);
}

/* The newest checkpoint is whole, or there is none. */
static bool is_body_known(const struct node_agent *a)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->heir.task);
    int64_t head = task->checkpoint != NULL ? task->checkpoint->seq : 0;

    return head == 0 || (a->ahead.stage == AHEAD_OVER && a->ahead.whole == head &&
                         strcmp(a->ahead.task, task->id) == 0);
}

/* Under the lease of the dead life: where that is over, its key is gone without its end, and so
 * is what is put under it. */
static bool may_send(const struct hf_node *node, const struct node_agent *a)
{
    return a->life.lease == node->lease.lease && is_allowed(node, a, a->heir.of) &&
           !a->heir.sent && a->process == PROCESS_ENDED && a->flight.op == OP_END &&
           a->spare.process == PROCESS_HELD && node->host_rev != 0 &&
           hf_node_task(&a->heir.task) != NULL && is_body_known(a);
}

/* Behind the end, while that is under way: should it come first it is refused, and sent again
 * when the end is written. */
int hf_node_send_heir(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->heir.task);
    struct node_flight end = a->flight;
    struct node_live live;
    char *resume;
    int rc;

    if (!may_send(node, a))
        return NODE_GO_ON;
    resume = hf_strdup(task->id);
    if (resume == NULL || decode(&holdfast__v1__exit__descriptor, &a->heir.exit) != HF_OK) {
        free(resume);
        return HF_ENOMEM;
    }
    free(a->heir.resume);
    a->heir.resume = resume;
    a->heir.restored = task->checkpoint != NULL ? task->checkpoint->seq : 0;
    hf_node_fill_live(node, a, &live);
    live.live.pid = a->spare.pid;
    live.live.start_time = a->spare.start_time;
    live.live.instance_id = a->spare.instance;
    hf_node_plan(node, ret);
    plan_heir(a, &live, &a->heir.task, a->heir.restored, &ret->plan);
    ret->plan.at_once = true;
    rc = hf_node_send(node, a, OP_START, "it crashed, and the leader gave leave", ret);
    a->heir.sent = rc != HF_ENOMEM;
    if (rc == NODE_INTENT)
        a->heir.flight = a->flight;
    a->flight = end;
    return rc == NODE_REST ? NODE_GO_ON : rc;
}

bool hf_node_is_heir_due(struct hf_node *node, struct node_agent *a)
{
    if (a->heir.of == 0)
        return false;
    if (node->now >= a->heir.until || !is_allowed(node, a, a->heir.of) ||
        hf_node_task(&a->task) == NULL) {
        a->heir.of = 0; /* the leader orders its start */
        return false;
    }
    hf_node_wake(a, a->heir.until);
    return true;
}

int hf_node_plan_heir(struct node_agent *a, const struct node_live *live, struct hf_plan *plan)
{
    if (decode(&holdfast__v1__exit__descriptor, &a->heir.exit) != HF_OK)
        return HF_ENOMEM;
    plan_heir(a, live, &a->task, a->checkpoint, plan);
    return HF_OK;
}
