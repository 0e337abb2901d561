#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"
#include "schema/json.h"

/* Who dies at work is as a rule ordered back to where it was, within milliseconds. While its
 * end is written and the order made, its host makes the next process, and looks at the chain of
 * the task and at the body of the newest entry; what became of earlier recoveries is read
 * beside the task. Nothing is decided on any of it that would not be decided on a read of now:
 * it is young, of the same task, and reaches as far. An entry never changes, so the one that
 * the dead process committed last need not be read at all. */

void hf_node_drop_kept(struct node_agent *a)
{
    hf_json_free(a->kept);
    a->kept = NULL;
}

void hf_node_on_kept(struct node_agent *a, struct node_ask *ask)
{
    hf_node_drop_kept(a);
    a->kept = ask->message;
    a->kept_rev = ask->cell.seen.mod_rev;
    ask->message = NULL;
}

void hf_node_drop_ahead(struct node_agent *a)
{
    if (a->ahead.stage != AHEAD_NONE)
        hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    a->ahead = (struct node_ahead){ 0 };
}

/* Only the first restart is ordered at once. */
bool hf_node_may_make(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)a->wanted.record;
    struct hf_restart none_before = { .held = false };
    struct hf_restart_decision decision;

    if (!node->policy.make_ahead || !hf_node_may_begin(node) || node->leaderless ||
        spec == NULL || spec->starter == HOLDFAST__V1__SPEC__STARTER__external ||
        (health != NULL && (health->held || health->restarts > 0)))
        return false;
    decision = hf_restart_decide(
        &none_before, &node->policy.restart,
        &(struct hf_restart_case){
            .death = a->kind,
            .restart = spec->restart,
            .wanted = wanted != NULL ? wanted->state : HOLDFAST__V1__WANTED__STATE__running },
        node->now, node->random);
    return decision.verdict == HF_RESTART_START_AT && decision.at <= node->now;
}

void hf_node_expect_order(struct hf_node *node, struct node_agent *a)
{
    hf_node_drop_ahead(a);
    if (a->reg != REG_HOLDS || a->owned_count == 0)
        return;
    hf_node_clear_cells(&a->chain, &a->chain_count, &a->chain_cap);
    (void)snprintf(a->ahead.task, sizeof a->ahead.task, "%s", a->owned[0].name);
    a->ahead.stage = AHEAD_CHAIN;
    a->ahead.until = node->now + node->policy.retry;
    a->ahead.make = a->spare.process == PROCESS_NONE && hf_node_may_make(node, a);
}

/* The process. */

static int make_spare(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    a->ahead.make = false;
    a->spare = (struct node_spare){ .process = PROCESS_MAKING, .until = a->ahead.until };
    hf_node_make_id(node, a->spare.instance);
    (void)hf_node_tell(a, HF_PROCESS_MAKE, "its start will be ordered", ret);
    ret->process.instance_id = a->spare.instance;
    ret->process.spec = hf_node_spec(a);
    return NODE_INTENT;
}

static int discard_spare(struct node_agent *a, struct hf_intent *ret)
{
    memcpy(a->discarded, a->spare.instance, sizeof a->discarded);
    a->spare = (struct node_spare){ .process = PROCESS_NONE };
    (void)hf_node_tell(a, HF_PROCESS_DISCARD, "its start was not ordered", ret);
    ret->process.instance_id = a->discarded;
    return NODE_INTENT;
}

void hf_node_on_spare(struct node_agent *a, const struct hf_event_process *news)
{
    if (a->spare.process == PROCESS_NONE || strcmp(a->spare.instance, news->instance_id) != 0)
        return;
    if (news->news == HF_PROCESS_HELD) {
        a->spare.process = PROCESS_HELD;
        a->spare.pid = news->pid;
        a->spare.start_time = news->start_time;
        a->ping = news->ping;
    } else if (news->news == HF_PROCESS_FAILED || news->news == HF_PROCESS_ENDED) {
        a->spare = (struct node_spare){ .process = PROCESS_NONE };
    }
}

void hf_node_take_spare(struct node_agent *a)
{
    if (a->process != PROCESS_NONE || a->spare.process == PROCESS_NONE)
        return;
    a->process = a->spare.process;
    a->pid = a->spare.pid;
    a->start_time = a->spare.start_time;
    a->life = (struct hf_life){ .agent = a->name };
    memcpy(a->instance, a->spare.instance, sizeof a->instance);
    a->spare = (struct node_spare){ .process = PROCESS_NONE };
}

/* The chain. */

/* The flight of a read that nothing else has to wait for. */
static uint64_t set_apart(struct node_agent *a, const struct node_flight *before)
{
    uint64_t token = a->flight.token;

    a->flight = *before;
    return token;
}

static const Holdfast__V1__Checkpoint *find_newest(const struct node_agent *a)
{
    const Holdfast__V1__Checkpoint *newest = NULL;

    for (size_t i = 0; i < a->chain_count; i++) {
        const Holdfast__V1__Checkpoint *entry =
            (const Holdfast__V1__Checkpoint *)a->chain[i].record;

        if (newest == NULL || entry->seq > newest->seq)
            newest = entry;
    }
    return newest;
}

/* What the dead process committed last takes the place of a read, if it is of that task. */
static int remember_newest(struct node_agent *a)
{
    const Holdfast__V1__Checkpoint *entry = (const Holdfast__V1__Checkpoint *)a->kept;

    if (a->ahead.stage != AHEAD_CHAIN || entry == NULL ||
        strcmp(entry->task, a->ahead.task) != 0)
        return HF_OK;
    if (!hf_grow(&a->chain, &a->chain_cap, 1, sizeof *a->chain))
        return HF_ENOMEM;
    a->chain[a->chain_count++] = (struct hf_cell){ .record = a->kept };
    a->kept = NULL;
    a->ahead.chain_rev = a->kept_rev;
    a->ahead.partial = true;
    a->ahead.stage = AHEAD_BODY;
    return HF_OK;
}

static int look_at_chain(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    const struct hf_intent_read chain = { .whole_scope = true,
                                          .scope = HF_KEY_IN_CHECKPOINTS_TASK,
                                          .name = a->ahead.task };
    const Holdfast__V1__Checkpoint *newest = NULL;
    struct node_flight flight = a->flight;

    /* etcd writes the end first: everything waits for that, but what an heir goes on from. */
    if (a->ahead.token != 0 ||
        (a->process == PROCESS_ENDED && (a->heir.of == 0 || a->kept == NULL)))
        return NODE_GO_ON;
    if (remember_newest(a) != HF_OK)
        return HF_ENOMEM;
    if (a->ahead.stage == AHEAD_BODY && (newest = find_newest(a)) == NULL)
        a->ahead.stage = AHEAD_OVER;
    if (a->ahead.stage == AHEAD_CHAIN)
        (void)hf_node_read(node, a, OP_CHAIN, chain, ret);
    else if (a->ahead.stage == AHEAD_BODY)
        (void)hf_node_verify(node, a, newest, ret);
    else
        return NODE_GO_ON;
    a->ahead.token = set_apart(a, &flight);
    return NODE_INTENT;
}

int hf_node_look_ahead(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    bool is_told = node->synced && node->lease.lease != 0;

    /* What may be registered by now is kept until that is known. */
    if (a->spare.until == NODE_SPARE_UNSEEN && is_told)
        a->spare.until = node->now + node->policy.retry;
    if (a->spare.process != PROCESS_NONE && a->spare.until != NODE_SPARE_UNSEEN &&
        node->now >= a->spare.until && a->heir.flight.token == 0)
        return discard_spare(a, ret);
    if (a->spare.process != PROCESS_NONE && a->spare.until != NODE_SPARE_UNSEEN)
        hf_node_wake(a, a->spare.until);
    if (a->ahead.stage == AHEAD_NONE)
        return NODE_GO_ON;
    if (node->now >= a->ahead.until) {
        if (a->walk != WALK_VERIFY) /* else it is in use, and was young enough */
            hf_node_drop_ahead(a);
        return NODE_GO_ON;
    }
    hf_node_wake(a, a->ahead.until);
    return a->ahead.make ? make_spare(node, a, ret) : look_at_chain(node, a, ret);
}

int hf_node_read_recovery(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    const struct hf_intent_read read = { .key = { HF_KEY_RECOVERY,
                                                  .name = hf_node_command(a)->task } };
    struct node_flight flight = a->flight;

    if (a->ahead.recovery_rev == a->command.seen.mod_rev || a->ahead.stage == AHEAD_NONE ||
        strcmp(a->ahead.task, read.key.name) != 0 ||
        (a->ahead.chain_rev != 0 && a->chain_count == 0))
        return NODE_GO_ON;
    (void)hf_node_read(node, a, OP_RECOVERY, read, ret);
    a->ahead.recovery_rev = a->command.seen.mod_rev;
    a->ahead.recovery_token = set_apart(a, &flight);
    return NODE_INTENT;
}

/* Answers. */

/* Without an answer it is read again when it is needed, as everything else. */
static void take_recovery(struct node_agent *a, const struct hf_event_answer *answer)
{
    a->ahead.recovery_token = 0;
    if (answer->err != HF_OK)
        hf_node_drop_ahead(a);
    else
        hf_node_take_recovery(a, answer);
}

static int take_chain(struct node_agent *a, struct hf_event_answer *answer)
{
    if (answer->err != HF_OK) {
        hf_node_drop_ahead(a);
        return HF_OK;
    }
    if (hf_node_take_entries(a, answer) != HF_OK)
        return HF_ENOMEM;
    if (answer->more)
        return HF_OK;
    a->ahead.token = 0;
    a->ahead.chain_rev = answer->revision;
    a->ahead.stage = AHEAD_BODY;
    return HF_OK;
}

int hf_node_ahead_answer(struct hf_node *node, struct hf_event_answer *answer)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        if (answer->token == a->ahead.recovery_token)
            take_recovery(a, answer);
        else if (answer->token != a->ahead.token)
            continue;
        else if (take_chain(a, answer) != HF_OK)
            return HF_ENOMEM;
        a->dirty = true;
    }
    return HF_OK;
}

void hf_node_ahead_verified(struct hf_node *node, const struct hf_event_verified *verified)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        if (verified->token != a->ahead.token)
            continue;
        if (verified->err == HF_OK)
            a->ahead.whole = find_newest(a)->seq;
        a->ahead.token = 0;
        a->ahead.stage = AHEAD_OVER;
        a->dirty = true;
    }
}

/* What the walk of a start makes of it. */

/* The task may have been submitted anew since, or have grown. */
static bool is_of_task(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Task *task = hf_node_task(&a->task);

    return a->walking == NULL && a->ahead.stage != AHEAD_NONE && node->now < a->ahead.until &&
           task != NULL && strcmp(task->id, a->ahead.task) == 0 &&
           (a->ahead.chain_rev == 0 || (a->task.seen.create_rev <= a->ahead.chain_rev &&
                                        hf_node_find_entry(a, a->head) != NULL));
}

int hf_node_wait_ahead(struct hf_node *node, struct node_agent *a)
{
    if (!is_of_task(node, a)) {
        hf_node_drop_ahead(a);
        return NODE_GO_ON;
    }
    if (a->ahead.stage == AHEAD_OVER)
        return NODE_GO_ON;
    hf_node_wake(a, a->ahead.until);
    return NODE_REST;
}
