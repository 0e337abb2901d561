#include "core/rows.h"

#include <string.h>

#include "core/body.h"
#include "core/rows_private.h"

/* Tasks. */

int32_t hf_rows_next_attempt(const Holdfast__V1__Task *task)
{
    return task->attempt < INT32_MAX ? task->attempt + 1 : INT32_MAX;
}

int64_t hf_rows_owner_rev(const struct hf_seen_task *task)
{
    const Holdfast__V1__Owner *owner = task->task->owner;

    int64_t create_rev;

    if (owner == NULL)
        return 0;
    create_rev = owner->incarnation != NULL ? owner->incarnation->create_revision : 0;
    return create_rev != 0 ? create_rev : task->seen.mod_rev;
}

static void put_index(struct hf_plan *plan, const Holdfast__V1__Task *task)
{
    Holdfast__V1__Pending entry = HOLDFAST__V1__PENDING__INIT;

    entry.priority = task->priority;
    entry.reserved_for = task->reserved_for;
    entry.root = task->root != NULL && !task->root->lost ? task->root : NULL;
    hf_plan_put(plan, PENDING(task->role, task->id), &entry.base, NOTHING, 0);
}

/* The task as it shall be when a life owns it. */
struct owned {
    Holdfast__V1__Task task;
    Holdfast__V1__Owner owner;
    Holdfast__V1__Incarnation incarnation;
};

static void set_owner(struct owned *owned, const Holdfast__V1__Task *task,
                      const struct hf_life *life)
{
    owned->task = *task;
    holdfast__v1__owner__init(&owned->owner);
    holdfast__v1__incarnation__init(&owned->incarnation);
    owned->incarnation.lease_id = life->lease;
    owned->incarnation.create_revision = life->create_rev;
    owned->incarnation.generation = life->generation;
    owned->owner.agent = (char *)life->agent;
    owned->owner.incarnation = &owned->incarnation;
    owned->task.owner = &owned->owner;
}

/* What an owner was given is its own: nobody has it after another's time with the task. */
static void put_acknowledged(struct hf_plan *plan, const struct hf_seen_task *task,
                             const struct hf_life *life, Holdfast__V1__CheckpointRef *restored)
{
    struct owned next;

    set_owner(&next, task->task, life);
    next.task.restored = restored;
    next.task.state = HOLDFAST__V1__TASK__STATE__acknowledged;
    next.task.reserved_for = (char *)"";
    put_task(plan, task, &next.task);
    hf_plan_delete(plan, PENDING(task->task->role, task->task->id));
}

/* Claimable by anyone, or by the one it is reserved for. */
static void put_pending(struct hf_plan *plan, const struct hf_seen_task *task,
                        Holdfast__V1__Task *next)
{
    next->state = HOLDFAST__V1__TASK__STATE__pending;
    next->owner = NULL;
    next->restored = NULL;
    put_task(plan, task, next);
    put_index(plan, next);
}

/* A task that waited for a start which will not come: anyone may have it. */
static void unreserve(struct hf_plan *plan, const struct hf_seen_task *task)
{
    Holdfast__V1__Task next;

    if (task == NULL)
        return;
    next = *task->task;
    next.reserved_for = (char *)"";
    put_pending(plan, task, &next);
}

/* A text that is too long for the record becomes a body of the same plan. */
static void move_out(struct hf_plan *plan, struct hf_key key, char **text,
                     Holdfast__V1__Body **member, struct hf_body *body)
{
    struct hf_bytes bytes = { *text, strlen(*text) };
    int rc;

    if (bytes.len <= HF_BODY_INLINE_MAX)
        return;
    rc = hf_body_init(body, bytes);
    if (rc != HF_OK) {
        hf_plan_fail(plan, rc, hf_err_text(rc));
        return;
    }
    hf_plan_put_body(plan, key, bytes);
    *text = (char *)"";
    *member = &body->record;
}

static void put_new(struct hf_plan *plan, const Holdfast__V1__Task *task,
                    Holdfast__V1__Task__State state)
{
    Holdfast__V1__Task next = *task;
    struct hf_body body;

    hf_plan_begin_row(plan, HF_ROW_SUBMIT);
    next.state = state;
    guard_absent(plan, TASK(task->id));
    move_out(plan, PAYLOAD(task->id), &next.payload, &next.payload_body, &body);
    hf_plan_put(plan, TASK(task->id), &next.base, NOTHING, 0);
}

void hf_row_submit(struct hf_plan *plan, const Holdfast__V1__Task *task)
{
    put_new(plan, task, HOLDFAST__V1__TASK__STATE__pending);
    put_index(plan, task);
}

void hf_row_enqueue(struct hf_plan *plan, const Holdfast__V1__Task *task)
{
    put_new(plan, task, HOLDFAST__V1__TASK__STATE__queued);
}

void hf_row_claim(struct hf_plan *plan, const struct hf_life *life,
                  const struct hf_seen_task *task)
{
    hf_plan_begin_row(plan, HF_ROW_CLAIM);
    guard_life(plan, life);
    put_acknowledged(plan, task, life, NULL);
}

static void put_owned(struct hf_plan *plan, const struct hf_life *life,
                      const struct hf_seen_task *task, const Holdfast__V1__Task *next)
{
    struct owned owned;
    struct hf_body body;

    guard_life(plan, life);
    set_owner(&owned, next, life);
    move_out(plan, RESULT(next->id), &owned.task.result, &owned.task.result_body, &body);
    if (task->task->result_body != NULL && owned.task.result_body == NULL)
        hf_plan_delete(plan, RESULT(next->id)); /* of an attempt before a person's retry */
    put_task(plan, task, &owned.task);
}

void hf_row_task(struct hf_plan *plan, const struct hf_life *life,
                 const struct hf_seen_task *task, const Holdfast__V1__Task *next)
{
    hf_plan_begin_row(plan, HF_ROW_TASK);
    put_owned(plan, life, task, next);
}

void hf_row_release(struct hf_plan *plan, const struct hf_life *life,
                    const struct hf_seen_task *task, const char *reason)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_RELEASE);
    guard_life(plan, life);
    next.reason = (char *)reason;
    put_pending(plan, task, &next);
}

/* The number of a body is nobody else's, and the entry that names it is guarded. */
static void put_checkpoint_body(struct hf_plan *plan, const Holdfast__V1__Checkpoint *entry,
                                struct hf_bytes body)
{
    int64_t number = hf_body_number(entry);

    if (body.data == NULL)
        return;
    if (number > 0)
        hf_plan_put_body(plan, BODY(entry->task, number), body);
    else
        hf_plan_fail(plan, HF_EINVAL, "a checkpoint has a body and does not say where");
}

void hf_row_checkpoint(struct hf_plan *plan, const struct hf_life *life,
                       const struct hf_seen_task *task, const Holdfast__V1__Checkpoint *entry,
                       struct hf_bytes body)
{
    Holdfast__V1__CheckpointRef head = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    struct owned next;

    hf_plan_begin_row(plan, HF_ROW_CHECKPOINT);
    guard_life(plan, life);
    guard_absent(plan, CHECKPOINT(entry->task, entry->seq));
    hf_plan_put(plan, CHECKPOINT(entry->task, entry->seq), &entry->base, NOTHING, 0);
    put_checkpoint_body(plan, entry, body);
    set_owner(&next, task->task, life);
    head.seq = entry->seq;
    next.task.checkpoint = &head;
    next.task.root = entry->root;
    put_task(plan, task, &next.task);
}

void hf_row_adopt(struct hf_plan *plan, const struct hf_life *life,
                  const struct hf_seen_task *task)
{
    hf_plan_begin_row(plan, HF_ROW_ADOPT);
    put_owned(plan, life, task, task->task);
}

void hf_row_cancel(struct hf_plan *plan, const struct hf_seen_task *task, const char *reason)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_CANCEL);
    next.state = HOLDFAST__V1__TASK__STATE__cancelled;
    next.reason = (char *)reason;
    next.owner = NULL;
    put_task(plan, task, &next);
    hf_plan_delete(plan, PENDING(task->task->role, task->task->id));
}

void hf_row_retry(struct hf_plan *plan, const struct hf_seen_task *task,
                  const struct hf_seen *recovery)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_RETRY);
    guard_mod(plan, RECOVERY(task->task->id), recovery);
    next.attempt = 0;
    next.inherited = NULL;
    next.reserved_for = (char *)"";
    next.reason = (char *)"";
    next.next = NULL;
    put_pending(plan, task, &next);
    hf_plan_delete(plan, RECOVERY(task->task->id));
}

/* Starts and ends. */

void hf_row_join(struct hf_plan *plan, const char *host, const struct hf_seen *record,
                 const Holdfast__V1__Host *next, const Holdfast__V1__HostLive *live)
{
    hf_plan_begin_row(plan, HF_ROW_JOIN);
    guard_absent(plan, HOST_LIVE(host));
    guard_mod(plan, HOST(host), record);
    hf_plan_put(plan, HOST_LIVE(host), &live->base, NOTHING, live->lease_id);
    hf_plan_put(plan, HOST(host), &next->base, record->text, 0);
}

void hf_row_host(struct hf_plan *plan, const char *host, const struct hf_seen *record,
                 int64_t create_rev, const Holdfast__V1__Host *next)
{
    hf_plan_begin_row(plan, HF_ROW_HOST);
    guard_key(plan, HOST_LIVE(host), create_rev, next->lease_id);
    put_over(plan, HOST(host), record, &next->base);
}

void hf_row_spec(struct hf_plan *plan, const char *agent, const struct hf_seen *spec,
                 const Holdfast__V1__Spec *next)
{
    hf_plan_begin_row(plan, HF_ROW_SPEC);
    put_over(plan, SPEC(agent), spec, &next->base);
}

static void put_live(struct hf_plan *plan, const struct hf_start *start)
{
    guard_absent(plan, LIVE(start->agent));
    guard_mod(plan, SPEC(start->agent), &start->spec);
    guard_mod(plan, WANTED(start->agent), &start->wanted);
    hf_plan_put(plan, LIVE(start->agent), &start->live->base, NOTHING, start->lease);
}

void hf_row_start_by_command(struct hf_plan *plan, const struct hf_start *start,
                             const struct hf_seen *command, const struct hf_seen_task *task,
                             int64_t restored)
{
    Holdfast__V1__CheckpointRef from = HOLDFAST__V1__CHECKPOINT_REF__INIT;

    hf_plan_begin_row(plan, HF_ROW_START_BY_COMMAND);
    from.seq = restored;
    put_live(plan, start);
    guard_mod(plan, COMMAND(start->host, start->agent), command);
    hf_plan_delete(plan, COMMAND(start->host, start->agent));
    if (task != NULL)
        put_acknowledged(plan, task,
                         &(struct hf_life){ .agent = start->agent,
                                            .lease = start->lease,
                                            .create_rev = 0, /* of this very Txn */
                                            .generation = start->generation },
                         task->task->checkpoint != NULL ? &from : NULL);
}

static void put_live_unordered(struct hf_plan *plan, const struct hf_start *start)
{
    put_live(plan, start);
    guard_absent(plan, COMMAND(start->host, start->agent));
}

void hf_row_boot_start(struct hf_plan *plan, const struct hf_start *start)
{
    hf_plan_begin_row(plan, HF_ROW_BOOT_START);
    put_live_unordered(plan, start);
}

void hf_row_rejoin(struct hf_plan *plan, const struct hf_start *start)
{
    hf_plan_begin_row(plan, HF_ROW_REJOIN);
    put_live_unordered(plan, start);
}

void hf_row_local_restart(struct hf_plan *plan, const struct hf_start *start)
{
    hf_plan_begin_row(plan, HF_ROW_LOCAL_RESTART);
    guard_absent(plan, LEADER);
    put_live_unordered(plan, start);
}

void hf_row_succeed(struct hf_plan *plan, const struct hf_start *start,
                    const struct hf_succession *succession)
{
    const struct hf_seen_task *task = &succession->task;
    Holdfast__V1__CheckpointRef from = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    Holdfast__V1__Task__Inherited inherited = HOLDFAST__V1__TASK__INHERITED__INIT;
    struct owned next;

    hf_plan_begin_row(plan, HF_ROW_SUCCEED);
    put_live_unordered(plan, start);
    guard_mod(plan, HEALTH(start->agent), &succession->health);
    hf_plan_guard_text(plan, EXIT(start->agent), succession->exit_text);
    hf_plan_put(plan, EXIT(start->agent), &succession->exit->base, succession->exit_text, 0);
    set_owner(&next, task->task,
              &(struct hf_life){ .agent = start->agent,
                                 .lease = start->lease,
                                 .create_rev = 0, /* of this very Txn */
                                 .generation = start->generation });
    from.seq = succession->restored;
    next.task.restored = task->task->checkpoint != NULL ? &from : NULL;
    next.task.state = HOLDFAST__V1__TASK__STATE__acknowledged;
    next.task.attempt = hf_rows_next_attempt(task->task);
    inherited.incarnation = succession->heir_of;
    next.task.inherited = &inherited;
    next.task.reason = (char *)succession->reason;
    put_task(plan, task, &next.task);
}

void hf_row_external_start(struct hf_plan *plan, const struct hf_start *start)
{
    hf_plan_begin_row(plan, HF_ROW_EXTERNAL_START);
    put_live(plan, start);
    hf_plan_delete(plan, COMMAND(start->host, start->agent));
}

void hf_row_reap(struct hf_plan *plan, const struct hf_life *life)
{
    hf_plan_begin_row(plan, HF_ROW_REAP);
    guard_life(plan, life);
    hf_plan_delete(plan, LIVE(life->agent));
}

void hf_row_report(struct hf_plan *plan, const struct hf_life *life,
                   const struct hf_seen *report, const Holdfast__V1__Report *next)
{
    hf_plan_begin_row(plan, HF_ROW_REPORT);
    guard_life(plan, life);
    put_over(plan, REPORT(life->agent), report, &next->base);
}

void hf_row_end(struct hf_plan *plan, const struct hf_life *life, const struct hf_seen *exit,
                const Holdfast__V1__Exit *next)
{
    hf_plan_begin_row(plan, HF_ROW_END);
    guard_life(plan, life);
    hf_plan_put(plan, EXIT(life->agent), &next->base, exit->text, 0);
    hf_plan_delete(plan, LIVE(life->agent));
}

void hf_row_refuse(struct hf_plan *plan, const struct hf_refusal *refusal,
                   const struct hf_seen_task *task)
{
    hf_plan_begin_row(plan, HF_ROW_REFUSE);
    guard_key(plan, HOST_LIVE(refusal->host), refusal->host_create_rev, refusal->host_lease);
    guard_mod(plan, COMMAND(refusal->host, refusal->agent), &refusal->command);
    hf_plan_put(plan, EXIT(refusal->agent), &refusal->next_exit->base, refusal->exit.text, 0);
    hf_plan_delete(plan, COMMAND(refusal->host, refusal->agent));
    unreserve(plan, task);
}

/* The controller. */

void hf_row_reset(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_seen_task *task, const struct hf_seen *recovery,
                  const struct hf_reset *reset)
{
    Holdfast__V1__Task next = *task->task;
    Holdfast__V1__Next step = HOLDFAST__V1__NEXT__INIT;
    const char *owner = next.owner != NULL ? next.owner->agent : NULL;

    hf_plan_begin_row(plan, HF_ROW_RESET);
    guard_term(plan, term);
    guard_mod(plan, RECOVERY(next.id), recovery);
    hf_plan_guard(plan, LIVE(owner), HF_GUARD_GONE, hf_rows_owner_rev(task));
    next.attempt = hf_rows_next_attempt(task->task);
    next.reason = (char *)reset->reason;
    next.reserved_for = (char *)(reset->reserved_for != NULL ? reset->reserved_for : "");
    hf_plan_put(plan, RECOVERY(next.id), &reset->recovery->base, recovery->text, 0);
    if (reset->pending) {
        next.next = NULL;
        put_pending(plan, task, &next);
    } else {
        step.what = (char *)(reset->next != NULL ? reset->next : "");
        step.at = reset->recovery->next_at;
        next.next = &step;
        next.state = HOLDFAST__V1__TASK__STATE__queued;
        next.owner = NULL;
        next.restored = NULL;
        put_task(plan, task, &next);
    }
}

void hf_row_order(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_order *order)
{
    const char *host = order->command->host;

    hf_plan_begin_row(plan, HF_ROW_ORDER);
    guard_term(plan, term);
    guard_mod(plan, HEALTH(order->agent), &order->health_seen);
    guard_absent(plan, COMMAND(host, order->agent));
    guard_absent(plan, LIVE(order->agent));
    guard_mod(plan, SPEC(order->agent), &order->spec);
    guard_mod(plan, WANTED(order->agent), &order->wanted);
    hf_plan_put(plan, COMMAND(host, order->agent), &order->command->base, NOTHING, 0);
    hf_plan_put(plan, HEALTH(order->agent), &order->health->base, order->health_seen.text, 0);
    if (order->recovery != NULL)
        put_over(plan, RECOVERY(order->command->task), &order->recovery->seen,
                 &order->next_recovery->base);
}

void hf_row_promote(struct hf_plan *plan, const struct hf_term *term,
                    const struct hf_seen_task *task, const struct hf_seen *recovery)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_PROMOTE);
    guard_term(plan, term);
    guard_mod(plan, RECOVERY(next.id), recovery);
    next.next = NULL;
    if (next.attempt == 0)
        next.reason = (char *)""; /* that others ran is over; that an owner was lost is not */
    put_pending(plan, task, &next);
}

void hf_row_demote(struct hf_plan *plan, const struct hf_term *term,
                   const struct hf_seen_task *task, const char *reason, const char *next_step)
{
    Holdfast__V1__Task next = *task->task;
    Holdfast__V1__Next step = HOLDFAST__V1__NEXT__INIT;

    hf_plan_begin_row(plan, HF_ROW_DEMOTE);
    guard_term(plan, term);
    step.what = (char *)next_step;
    next.state = HOLDFAST__V1__TASK__STATE__queued;
    next.reason = (char *)reason;
    next.next = &step;
    put_task(plan, task, &next);
    hf_plan_delete(plan, PENDING(next.role, next.id));
}

void hf_row_withdraw(struct hf_plan *plan, const struct hf_term *term,
                     const struct hf_withdrawal *w)
{
    hf_plan_begin_row(plan, HF_ROW_WITHDRAW);
    guard_term(plan, term);
    guard_mod(plan, COMMAND(w->host, w->agent), &w->command);
    hf_plan_delete(plan, COMMAND(w->host, w->agent));
    put_over(plan, HEALTH(w->agent), &w->health, &w->next_health->base);
    unreserve(plan, w->task);
    if (w->recovery_of != NULL)
        put_over(plan, RECOVERY(w->recovery_of), &w->recovery, &w->next_recovery->base);
}

void hf_row_take_back(struct hf_plan *plan, const struct hf_term *term,
                      const struct hf_seen_task *task, const char *reason)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_TAKE_BACK);
    guard_term(plan, term);
    next.reason = (char *)reason;
    next.reserved_for = (char *)"";
    put_pending(plan, task, &next);
}

void hf_row_review(struct hf_plan *plan, const struct hf_term *term,
                   const struct hf_seen_task *task, const struct hf_seen *recovery,
                   const Holdfast__V1__Recovery *next_recovery, const char *reason)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_REVIEW);
    guard_term(plan, term);
    if (next.owner != NULL)
        hf_plan_guard(plan, LIVE(next.owner->agent), HF_GUARD_GONE, hf_rows_owner_rev(task));
    next.state = HOLDFAST__V1__TASK__STATE__needs_review;
    next.reason = (char *)reason;
    next.reserved_for = (char *)"";
    next.owner = NULL;
    next.next = NULL;
    put_task(plan, task, &next);
    hf_plan_delete(plan, PENDING(next.role, next.id));
    if (next_recovery != NULL)
        put_over(plan, RECOVERY(next.id), recovery, &next_recovery->base);
    else
        guard_mod(plan, RECOVERY(next.id), recovery);
}

void hf_row_end_by_controller(struct hf_plan *plan, const struct hf_term *term,
                              const char *agent, const struct hf_seen *health,
                              const Holdfast__V1__Health *next)
{
    hf_row_write(plan, term, HEALTH(agent), health, &next->base);
}

void hf_row_end_stalled(struct hf_plan *plan, const struct hf_term *term,
                        const struct hf_stalled *stalled)
{
    hf_plan_begin_row(plan, HF_ROW_END_STALLED);
    guard_term(plan, term);
    guard_mod(plan, REPORT(stalled->agent), &stalled->report);
    guard_mod(plan, TASK(stalled->task.task->id), &stalled->task.seen);
    put_over(plan, HEALTH(stalled->agent), &stalled->health, &stalled->next->base);
}

void hf_row_want(struct hf_plan *plan, const char *agent, const struct hf_seen *wanted,
                 const Holdfast__V1__Wanted *next)
{
    hf_plan_begin_row(plan, HF_ROW_WANT);
    put_over(plan, WANTED(agent), wanted, &next->base);
}

void hf_row_write(struct hf_plan *plan, const struct hf_term *term, struct hf_key key,
                  const struct hf_seen *target, const ProtobufCMessage *next)
{
    hf_plan_begin_row(plan, HF_ROW_WRITE);
    guard_term(plan, term);
    guard_mod(plan, key, target);
    if (next != NULL)
        hf_plan_put(plan, key, next, target->text, 0);
    else
        hf_plan_delete(plan, key);
}

void hf_row_close(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_seen_task *task, const struct hf_seen *recovery,
                  const Holdfast__V1__Recovery *next)
{
    hf_plan_begin_row(plan, HF_ROW_CLOSE);
    guard_term(plan, term);
    guard_mod(plan, TASK(task->task->id), &task->seen);
    put_over(plan, RECOVERY(task->task->id), recovery, &next->base);
}

void hf_row_operate(struct hf_plan *plan, struct hf_key key, const struct hf_seen *target,
                    const ProtobufCMessage *next)
{
    hf_plan_begin_row(plan, HF_ROW_OPERATE);
    put_over(plan, key, target, next);
}

void hf_row_lead(struct hf_plan *plan, const struct hf_term *term)
{
    hf_plan_begin_row(plan, HF_ROW_LEAD);
    guard_term(plan, term);
}

void hf_row_event(struct hf_plan *plan, int64_t seq, const Holdfast__V1__Event *event)
{
    hf_plan_begin_row(plan, HF_ROW_EVENT);
    guard_absent(plan, EVENT(seq));
    hf_plan_put(plan, EVENT(seq), &event->base, NOTHING, 0);
}
