#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

void hf_node_free_ask(struct node_ask *ask)
{
    hf_node_clear_cell(&ask->cell);
    hf_json_free(ask->message);
    hf_json_free(ask->reply);
    free(ask->task);
    free(ask->text);
    free(ask->body);
    free((void *)ask->written.data);
    free(ask);
}

void hf_node_answer(struct node_ask *ask, int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(ask->why, sizeof ask->why, fmt, args);
    va_end(args);
    ask->err = err;
    ask->stage = ASK_ANSWERED;
}

void hf_node_grant(struct node_ask *ask)
{
    ask->err = HF_OK;
    ask->stage = ASK_ANSWERED;
}

/* One that something is under way for is answered as well; what becomes of that is not waited
 * for. */
void hf_node_refuse_asks(struct node_agent *a, int err, const char *text)
{
    for (struct node_ask *ask = a->asks; ask != NULL; ask = ask->next) {
        if (ask->stage != ASK_ANSWERED)
            hf_node_answer(ask, err, "%s", text);
    }
    a->asking = NULL;
    a->dirty = true;
}

void hf_node_doubt_asks(struct node_agent *a)
{
    for (struct node_ask *ask = a->asks; ask != NULL; ask = ask->next) {
        ask->looked = false;
        ask->cursor = 0;
        if (ask->stage == ASK_READ)
            ask->stage = ASK_NEW;
    }
}

/* An ask comes in. */

static const ProtobufCMessage *message_of(const struct hf_event_ask *event)
{
    switch (event->kind) {
    case HF_ASK_REPORT:
    case HF_ASK_PROGRESS: return event->report != NULL ? &event->report->base : NULL;
    case HF_ASK_SUBMIT: return event->next_task != NULL ? &event->next_task->base : NULL;
    case HF_ASK_CHECKPOINT: return event->checkpoint != NULL ? &event->checkpoint->base : NULL;
    case HF_ASK_SELF:
    case HF_ASK_CLAIM:
    case HF_ASK_START:
    case HF_ASK_COMPLETE:
    case HF_ASK_FAIL:
    case HF_ASK_RELEASE:
    case HF_ASK_RESTORE:
    case HF_ASK_LEAVE: break;
    }
    return NULL;
}

static int copy_text(const char *text, char **ret_copy)
{
    if (text == NULL)
        return HF_OK;
    *ret_copy = hf_strdup(text);
    return *ret_copy != NULL ? HF_OK : HF_ENOMEM;
}

static int copy_body(struct hf_bytes body, struct node_ask *ask)
{
    if (body.data == NULL)
        return HF_OK;
    ask->body = hf_memdup(body.data, body.len);
    ask->body_len = body.len;
    return ask->body != NULL ? HF_OK : HF_ENOMEM;
}

/* HF_EINVAL of the message is an answer, not a failure. */
static int make_ask(const struct hf_event_ask *event, struct node_ask **ret_ask)
{
    const ProtobufCMessage *message = message_of(event);
    struct node_ask *ask = hf_calloc(1, sizeof *ask);
    int err = HF_OK;

    if (ask == NULL)
        return HF_ENOMEM;
    ask->token = event->token;
    ask->kind = event->kind;
    ask->until = event->until;
    ask->beats = event->beats;
    ask->speaks = event->speaks;
    if (message != NULL)
        err = hf_json_copy(message, &ask->message);
    if (err == HF_EINVAL || err == HF_ELIMIT) {
        hf_node_answer(ask, err, "%s", hf_err_text(err));
        err = HF_OK;
    }
    if (err == HF_OK)
        err = copy_text(event->task, &ask->task);
    if (err == HF_OK)
        err = copy_text(event->text, &ask->text);
    if (err == HF_OK)
        err = copy_body(event->body, ask);
    if (err != HF_OK) {
        hf_node_free_ask(ask);
        return err;
    }
    *ret_ask = ask;
    return HF_OK;
}

static void append(struct node_ask **list, struct node_ask *ask)
{
    while (*list != NULL)
        list = &(*list)->next;
    *list = ask;
}

static bool needs_task_name(enum hf_ask_kind kind)
{
    return kind == HF_ASK_START || kind == HF_ASK_PROGRESS || kind == HF_ASK_COMPLETE ||
           kind == HF_ASK_FAIL || kind == HF_ASK_RELEASE || kind == HF_ASK_CHECKPOINT ||
           kind == HF_ASK_RESTORE;
}

static bool is_complete(const struct node_ask *ask)
{
    if (needs_task_name(ask->kind) && ask->task == NULL)
        return false;
    return ask->message != NULL || (ask->kind != HF_ASK_REPORT && ask->kind != HF_ASK_SUBMIT &&
                                    ask->kind != HF_ASK_CHECKPOINT);
}

/* What needs nothing from etcd is answered at once. */
static void answer_at_once(struct hf_node *node, struct node_agent *a, struct node_ask *ask)
{
    switch (ask->kind) {
    case HF_ASK_REPORT: hf_node_take_report(node, a, ask); __attribute__((fallthrough));
    case HF_ASK_SELF:
        ask->stop = a->end != END_NONE;
        ask->nudges = hf_node_find_inquiry(a) != NULL;
        ask->tasks = hf_node_count_claimable(node, a);
        hf_node_grant(ask);
        break;
    case HF_ASK_LEAVE:
        /* Its end is written when it has come: until then the name is taken, so that no two
         * processes of one agent run at once. */
        if (!a->leaving)
            a->leave_by = node->now + node->policy.cleanup;
        a->leaving = true;
        hf_node_keep_text(a->end_text, ask->text);
        hf_node_grant(ask);
        break;
    default: break;
    }
}

/* What stands against it before anybody is asked. */
static void receive(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                    const struct hf_event_ask *event)
{
    bool current = event->instance_id != NULL && strcmp(event->instance_id, a->instance) == 0;

    if (!current || a->process != PROCESS_BEGUN) {
        hf_node_answer(ask, HF_EFENCED, "the process that asks is not %s any more: %s", a->name,
                       a->why);
        return;
    }
    a->ready = true;
    if (ask->stage == ASK_ANSWERED)
        return;
    if (!is_complete(ask)) {
        hf_node_answer(ask, HF_EINVAL, "something is missing in what was asked");
        return;
    }
    if (a->ask_count > node->policy.max_asks) {
        hf_node_answer(ask, HF_ELIMIT, "too much that was asked is not answered yet");
        return;
    }
    answer_at_once(node, a, ask);
    if (a->leaving && ask->kind == HF_ASK_CLAIM)
        hf_node_answer(ask, HF_EFENCED, "it said that it leaves");
}

int hf_node_on_ask(struct hf_node *node, const struct hf_event_ask *event)
{
    struct node_agent *a = hf_node_find(node, event->agent);
    struct node_ask *ask;
    int err = make_ask(event, &ask);

    if (err != HF_OK)
        return err;
    if (a == NULL) {
        hf_node_answer(ask, HF_ENOENT, "there is no such agent here");
        append(&node->orphans, ask);
        return HF_OK;
    }
    append(&a->asks, ask);
    a->ask_count++;
    a->dirty = true;
    receive(node, a, ask, event);
    return HF_OK;
}

/* An answer goes out. */

static int give(struct hf_node *node, struct node_ask **at, const char *subject,
                struct hf_intent *ret)
{
    struct node_ask *ask = *at;

    *at = ask->next;
    ask->next = NULL;
    node->replied = ask; /* what is given points into it */
    ret->kind = HF_INTENT_REPLY;
    ret->token = ask->token;
    ret->subject = subject;
    ret->why = "it was asked for";
    ret->reply = (struct hf_intent_reply){ .err = ask->err,
                                           .text = ask->err != HF_OK ? ask->why : NULL,
                                           .seq = ask->err == HF_OK ? ask->seq : 0,
                                           .existed = ask->existed,
                                           .stop = ask->stop,
                                           .tasks = ask->tasks,
                                           .nudges = ask->nudges };
    if (ask->err == HF_OK)
        ret->reply.task = (const Holdfast__V1__Task *)ask->reply;
    if (ask->err == HF_OK && ask->kind == HF_ASK_RESTORE)
        ret->reply.checkpoint = (const Holdfast__V1__Checkpoint *)ask->message;
    return NODE_INTENT;
}

int hf_node_reply_orphan(struct hf_node *node, struct hf_intent *ret)
{
    return node->orphans != NULL ? give(node, &node->orphans, "agent", ret) : NODE_GO_ON;
}

int hf_node_reply(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    for (struct node_ask **at = &a->asks; *at != NULL; at = &(*at)->next) {
        if ((*at)->stage == ASK_ANSWERED) {
            a->ask_count--;
            if (*at == a->walking) {
                a->walking = NULL;
                a->walk = WALK_NONE;
            }
            return give(node, at, a->subject, ret);
        }
    }
    return NODE_GO_ON;
}

/* Asks that need etcd. */

static int decide(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                  struct hf_intent *ret)
{
    if (ask->stage == ASK_ANSWERED || (ask->stage == ASK_SENT && ask->kind != HF_ASK_RESTORE))
        return NODE_GO_ON;
    if (ask->op_id[0] == '\0')
        hf_node_make_id(node, ask->op_id);
    if (ask->kind == HF_ASK_CLAIM)
        return hf_node_claim(node, a, ask, ret);
    if (ask->kind == HF_ASK_SUBMIT)
        return hf_node_submit(node, a, ask, ret);
    if (ask->kind == HF_ASK_RESTORE)
        return hf_node_restore(node, a, ask, ret);
    return hf_node_work(node, a, ask, ret);
}

int hf_node_serve(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    int rc = NODE_GO_ON;

    if (a->asks == NULL)
        return NODE_GO_ON;
    if (hf_node_is_outdated(node)) {
        hf_node_refuse_asks(a, HF_EAGAIN, HF_NODE_OUTDATED ": a person has to upgrade it");
        return hf_node_reply(node, a, ret);
    }
    if (a->reg != REG_HOLDS ||
        (!hf_node_lease_holds(node) && !hf_node_lacks(node, HF_MUTANT_CLAIM_JEOPARDY))) {
        hf_node_refuse_asks(a, HF_EAGAIN,
                            "the lease is in jeopardy: begin nothing new, and try again");
        return hf_node_reply(node, a, ret);
    }
    hf_node_wake(a, node->lease.proven_until);
    if (!a->settled)
        return NODE_GO_ON;
    for (struct node_ask *ask = a->asks; ask != NULL && rc == NODE_GO_ON; ask = ask->next)
        rc = decide(node, a, ask, ret);
    return rc != NODE_GO_ON ? rc : hf_node_reply(node, a, ret);
}

int hf_node_ask_read(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                     const char *task, struct hf_intent *ret)
{
    ask->stage = ASK_SENT;
    a->asking = ask;
    return hf_node_read(node, a, OP_ASK,
                        (struct hf_intent_read){ .key = { HF_KEY_TASK, .name = task } }, ret);
}

/* The record as the plan writes it takes the place of *record. */
static int take_put(const struct hf_plan *plan, struct hf_key key, ProtobufCMessage **record)
{
    struct hf_bytes text = hf_plan_find_put(plan, key);
    ProtobufCMessage *next = NULL;
    int err = HF_EINVAL;

    if (text.data != NULL)
        err =
            hf_json_decode(hf_key_get_record(key.kind), text.data, text.len, NULL, &next, NULL);
    if (err != HF_OK)
        return err;
    hf_json_free(*record);
    *record = next;
    return HF_OK;
}

/* The task is what the answer will show, an entry what is known of the chain when that is
 * needed. */
static int keep_written(struct node_ask *ask, const struct hf_plan *plan, const char *task)
{
    const struct hf_key key = { HF_KEY_TASK, .name = task };
    int err = take_put(plan, key, &ask->reply);

    if (err == HF_OK)
        err = hf_node_copy_estate(ask, hf_plan_find_put(plan, key));
    if (err == HF_OK && ask->kind == HF_ASK_CHECKPOINT)
        err =
            take_put(plan, (struct hf_key){ HF_KEY_CHECKPOINT, .name = task, .seq = ask->seq },
                     &ask->message);
    return err;
}

int hf_node_ask_send(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                     const char *task, struct hf_intent *ret)
{
    struct hf_error why = { "" };
    int err = hf_plan_check(&ret->plan, &why);

    if (err == HF_OK)
        err = keep_written(ask, &ret->plan, task);
    if (err != HF_OK) {
        hf_plan_done(&ret->plan);
        if (err == HF_ENOMEM)
            return err;
        hf_node_answer(ask, err, "%s", why.text);
        return NODE_GO_ON;
    }
    ask->stage = ASK_SENT;
    a->asking = ask;
    return hf_node_send(node, a, OP_ASK, "its agent asked for it", ret);
}

int hf_node_ask_answer(struct node_agent *a, struct hf_event_answer *answer)
{
    struct node_ask *ask = a->asking;
    struct hf_cell next = { 0 };

    if (ask == NULL)
        return HF_OK;
    if (answer->err != HF_OK) {
        hf_node_answer(ask, HF_EAGAIN, "etcd could not be asked: %s", hf_err_text(answer->err));
        a->asking = NULL;
        return HF_OK;
    }
    if (a->flight.is_void) {
        ask->stage = ASK_NEW; /* the task may have been adopted since */
        a->asking = NULL;
        return HF_OK;
    }
    if (answer->found_count > 0) {
        int err = hf_node_make_cell(&answer->found[0], &next);

        if (err != HF_OK)
            return err;
        answer->found[0].record = NULL;
    }
    hf_node_clear_cell(&ask->cell);
    ask->cell = next;
    ask->stage = ASK_READ;
    a->asking = NULL;
    return HF_OK;
}

static void answer_failed(struct node_ask *ask, int err)
{
    hf_node_answer(ask, err != HF_OK ? err : HF_EAGAIN, "it was not written: %s",
                   hf_err_text(err));
}

/* A write that was refused, or whose outcome is not known, is decided anew on a fresh read,
 * which also shows by its op_id whether it is there. A full etcd may have written it when it
 * said so first; that it says so again tells that it did not, and will not. */
void hf_node_ask_outcome(struct node_agent *a, const struct hf_event_outcome *outcome)
{
    struct node_ask *ask = a->asking;

    a->asking = NULL;
    if (ask == NULL)
        return;
    switch (outcome->outcome) {
    case HF_OUTCOME_DONE:
        hf_node_on_estate(a, ask, outcome->revision);
        hf_node_ask_done(a, ask);
        break;
    case HF_OUTCOME_REFUSED:
    case HF_OUTCOME_UNKNOWN:
        if (outcome->err == HF_ENOSPACE && ask->full) {
            answer_failed(ask, outcome->err);
            break;
        }
        ask->full = outcome->err == HF_ENOSPACE;
        ask->reread = true;
        ask->stage = ASK_NEW;
        hf_node_ask_again(a, ask, outcome->outcome == HF_OUTCOME_UNKNOWN);
        break;
    case HF_OUTCOME_FAILED: answer_failed(ask, outcome->err); break;
    }
}
