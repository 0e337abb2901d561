#include <string.h>

#include "core/engine_private.h"

#define WAIT_LOOK                                                                              \
    10000 /* a task that waits for what its agent waits for is looked at so often */

enum { SWEEP_FLIGHTS = 8, SWEEP_AGAIN = 1000 };

/* What nobody acts on is noted: that it was submitted, and how it ended. */
static void note_story(struct hf_engine *e, const struct hf_task *task)
{
    const struct hf_task_state *state = hf_task_state(task);

    if (!e->synced)
        return;
    if (state->state == 0)
        hf_trail_note(e, HOLDFAST__V1__EVENT__KIND__submitted, &hf_task_state(task)->item,
                      task->task.seen.create_rev);
    if (state->state != (uint8_t)hf_task_record(task)->state + 1)
        hf_trail_note_end(e, task);
}

/* A checkpoint, say: whoever was asked why it does not move has answered. */
static void note_step(struct hf_engine *e, const struct hf_task *task)
{
    struct hf_agent_state *owner = task->owner != NULL ? hf_agent_state(task->owner) : NULL;

    if (owner == NULL)
        return;
    owner->spoke_at = e->now;
    if (owner->asked)
        hf_agenda_add(&e->agenda, &owner->item.agenda);
}

bool hf_engine_note_task(struct hf_engine *e, struct hf_task *task)
{
    struct hf_task_state *state = hf_task_state(task);
    const Holdfast__V1__Task *record = hf_task_record(task);
    uint32_t owner_rev;
    bool owned;

    if (record == NULL) {
        hf_limit_forget_task(task);
        return true;
    }
    if (e->changing == HF_KEY_TASK)
        note_step(e, task);
    owner_rev = (uint32_t)hf_rows_owner_rev(
        &(struct hf_seen_task){ .seen = task->task.seen, .task = record });
    owned = task->owner != NULL;
    /* Its owner writes progress and checkpoints: these are nobody else's business. */
    if (e->changing == HF_KEY_TASK && owned && state->state == (uint8_t)record->state + 1 &&
        state->owner_rev == owner_rev)
        return false;
    hf_limit_note_task(task);
    note_story(e, task);
    /* Who is at work may be given leave to be succeeded. */
    if (owned && record->state == HOLDFAST__V1__TASK__STATE__in_progress)
        hf_agenda_add(&e->agenda, &hf_agent_state(task->owner)->item.agenda);
    if (state->state != (uint8_t)record->state + 1 || state->owner_rev != owner_rev) {
        state->since = e->now;
        state->alerts &= HF_ALERT_LATE;
    }
    state->state = (uint8_t)((uint8_t)record->state + 1);
    state->owner_rev = owner_rev;
    return true;
}

static struct hf_seen_task seen_of(const struct hf_task *task)
{
    return (struct hf_seen_task){ .seen = task->task.seen, .task = hf_task_record(task) };
}

/* The record of its recovery, as it shall be by itself. */
static int write_recovery(struct hf_engine *e, struct hf_task *task,
                          const struct hf_recover *recover, const struct hf_recover_view *view,
                          struct hf_intent *ret)
{
    Holdfast__V1__Event__Kind kind = hf_trail_kind_of_end(hf_task_record(task)->state);
    struct hf_recover_record record;

    hf_draft_begin(e, ret);
    hf_recover_store(recover, task->name, &record);
    if (hf_task_is_final(hf_task_record(task)->state)) {
        struct hf_seen_task seen = seen_of(task);

        hf_row_close(&ret->plan, &e->term, &seen, &task->recovery.seen, &record.record);
    } else {
        hf_row_write(&ret->plan, &e->term,
                     (struct hf_key){ HF_KEY_RECOVERY, .name = task->name },
                     &task->recovery.seen, &record.record.base);
    }
    if (view->due == HF_RECOVER_CLOSE)
        hf_draft_event(
            e, ret,
            &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__recovered,
                                      .agent = task->owner != NULL ? task->owner->name : NULL,
                                      .task = task->name,
                                      .why = view->why });
    if (kind != HOLDFAST__V1__EVENT__KIND__unknown &&
        hf_trail_has_note(e, kind, &hf_task_state(task)->item))
        hf_trail_tell_task(e, task, kind, ret);
    return hf_draft_end(e, ret, &hf_task_state(task)->item, NULL, view->why);
}

int hf_engine_promote(struct hf_engine *e, struct hf_task *task, struct hf_item *other,
                      const char *why, struct hf_intent *ret)
{
    struct hf_seen_task seen = seen_of(task);

    hf_draft_begin(e, ret);
    hf_row_promote(&ret->plan, &e->term, &seen, &task->recovery.seen);
    return hf_draft_end(e, ret, &hf_task_state(task)->item, other, why);
}

/* What its recovery asks for by itself. */
static int judge_recovery(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    hf_ms now = hf_engine_clock(e);
    struct hf_recover recover = hf_recover_load(hf_task_recovery(task));
    Holdfast__V1__Task__State state = hf_task_record(task)->state;
    struct hf_recover_view view = hf_recover_judge(&recover, state, now);

    if (hf_recover_is_refused(&recover, hf_task_record(task))) {
        hf_recover_on_unstarted(&recover, HOLDFAST__V1__RECOVERY__RESULT__refused);
        view = (struct hf_recover_view){ .why = "the start with it was refused" };
        return write_recovery(e, task, &recover, &view, ret);
    }
    switch (view.due) {
    case HF_RECOVER_FINE:
        if (view.at != HF_RECOVER_NEVER)
            hf_engine_wake(e, &hf_task_state(task)->item,
                           hf_clusterclock_local(&e->clock, view.at, e->now));
        return 0;
    case HF_RECOVER_PROMOTE:
        if (hf_mutated(e, HF_MUTANT_NO_PROMOTE) || hf_limit_wait(e, task))
            return 0;
        return hf_engine_promote(e, task, NULL, view.why, ret);
    case HF_RECOVER_TAKEN:
        if (task->owner != NULL &&
            hf_engine_has_just_begun(e, task->owner, &hf_task_state(task)->item))
            return 0;
        hf_recover_on_taken(&recover, &e->policy.recover, now);
        break;
    case HF_RECOVER_RELEASED: hf_recover_on_released(&recover); break;
    case HF_RECOVER_CLOSE:
        hf_recover_on_closed(&recover, state, hf_engine_restored(task), now);
        break;
    }
    return write_recovery(e, task, &recover, &view, ret);
}

static int take_back(struct hf_engine *e, struct hf_task *task, const char *why,
                     struct hf_intent *ret)
{
    struct hf_seen_task seen = seen_of(task);
    struct hf_recover recover = hf_recover_load(hf_task_recovery(task));
    struct hf_recover_record recovery;

    hf_draft_begin(e, ret);
    hf_row_take_back(&ret->plan, &e->term, &seen, why);
    if (seen.task->reserved_for[0] != '\0' && task->recovery.record != NULL) {
        hf_recover_on_unstarted(&recover, HOLDFAST__V1__RECOVERY__RESULT__withdrawn);
        hf_recover_store(&recover, task->name, &recovery);
        hf_row_write(&ret->plan, &e->term,
                     (struct hf_key){ HF_KEY_RECOVERY, .name = task->name },
                     &task->recovery.seen, &recovery.record.base);
    }
    hf_draft_event(
        e, ret,
        &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__reset,
                                  .agent = task->owner != NULL ? task->owner->name : NULL,
                                  .task = task->name,
                                  .why = why,
                                  .next = "anyone of its role may have it" });
    return hf_draft_end(e, ret, &hf_task_state(task)->item, NULL, why);
}

/* A task that nobody comes for. */
static int review_lonely(struct hf_engine *e, struct hf_task *task,
                         const struct hf_task_wait *wait, struct hf_intent *ret)
{
    struct hf_task_state *state = hf_task_state(task);
    struct hf_seen_task seen = seen_of(task);

    if ((state->alerts & HF_ALERT_REVIEW) == 0) {
        state->alerts |= HF_ALERT_REVIEW;
        return hf_draft_alert(
            e, ret, &state->item,
            &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
                                       .task = task->name,
                                       .why = wait->why,
                                       .next = wait->next });
    }
    hf_draft_begin(e, ret);
    hf_row_review(&ret->plan, &e->term, &seen, &task->recovery.seen, NULL, wait->why);
    hf_draft_event(e, ret,
                   &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
                                             .task = task->name,
                                             .why = wait->why,
                                             .next = wait->next });
    return hf_draft_end(e, ret, &state->item, NULL, wait->why);
}

/* A task whose checkpoint only some hosts can read. */
static int decide_rooted(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    struct hf_task_state *state = hf_task_state(task);
    struct hf_task_wait wait = hf_engine_judge_rooted(e, task);

    if (wait.due == HF_TASK_DUE_REVIEW)
        return review_lonely(e, task, &wait, ret);
    if (wait.due != HF_TASK_ALERT || (state->alerts & HF_ALERT_LONELY) != 0)
        return 0;
    state->alerts |= HF_ALERT_LONELY;
    if (hf_told_has(e, HF_TOLD_ROOT, task->name))
        return 0;
    hf_told_add(e, HF_TOLD_ROOT, task->name);
    return hf_draft_alert(
        e, ret, &state->item,
        &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
                                   .task = task->name,
                                   .why = wait.why,
                                   .next = wait.next });
}

/* NULL: the agent that it is reserved for may still come for it. */
static const char *reason_to_unreserve(struct hf_engine *e, struct hf_task *task)
{
    const struct hf_agent *agent =
        hf_fleet_get_agent(e->fleet, hf_task_record(task)->reserved_for);
    hf_ms until = hf_task_state(task)->since + e->policy.task.start_within;

    if (agent != NULL && agent->commands != NULL)
        return NULL;
    if (agent == NULL || agent->live.record == NULL)
        return "the agent that it was reserved for does not come";
    if (e->now >= until)
        return "the agent that it was reserved for did not take it in time";
    hf_engine_wake(e, &hf_task_state(task)->item, until);
    return NULL;
}

static int decide_pending(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    struct hf_task_state *state = hf_task_state(task);
    const struct hf_role_state *role = task->role != NULL ? hf_role_state(task->role) : NULL;
    bool lonely = role == NULL || role->lonely;
    hf_ms since = role != NULL && lonely && role->lonely_since > state->since
                      ? role->lonely_since
                      : state->since;
    struct hf_task_wait wait;

    if (hf_task_record(task)->reserved_for[0] != '\0' &&
        !hf_mutated(e, HF_MUTANT_NO_UNRESERVE)) {
        const char *why = reason_to_unreserve(e, task);

        if (why != NULL)
            return take_back(e, task, why, ret);
    } else if (hf_task_root(task) != NULL) {
        return decide_rooted(e, task, ret);
    }
    wait = hf_task_judge_wait(&e->policy.task, HOLDFAST__V1__TASK__STATE__pending, !lonely,
                              since, e->now);
    if (wait.due == HF_TASK_DUE_REVIEW)
        return review_lonely(e, task, &wait, ret);
    /* While somebody is there, the day on which nobody was has not begun. */
    hf_engine_wake(e, &state->item,
                   lonely ? since + e->policy.task.review_after
                          : e->now + e->policy.task.review_after);
    return 0;
}

/* An owner that is decided with its task is not looked at for the same reason again. */
static int decide_owner(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    struct hf_agenda_item *item = &hf_agent_state(agent)->item.agenda;
    int rc;

    hf_agenda_remove(&e->agenda, item);
    rc = hf_engine_decide_waiting(e, agent, ret);
    if (rc < 0)
        hf_agenda_add(&e->agenda, item);
    return rc;
}

static int decide_owned(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    struct hf_task_state *state = hf_task_state(task);
    struct hf_agent *agent = task->owner;
    struct hf_death death;
    struct hf_task_wait wait;
    bool uncounted;
    int rc;

    if (agent == NULL || hf_bad_of_agent(e, agent->name) != NULL)
        return 0;
    if (!hf_death_of_owner(e, task, &death)) {
        wait = hf_task_judge_wait(&e->policy.task, hf_task_record(task)->state, true,
                                  state->since, e->now);
        if (wait.due == HF_TASK_DUE_RELEASE && !hf_mutated(e, HF_MUTANT_NO_TAKE_BACK))
            return take_back(e, task, wait.why, ret);
        if (wait.at != HF_TASK_NEVER && wait.at > e->now)
            hf_engine_wake(e, &state->item, wait.at);
        hf_engine_watch_stall(e, task);
        return judge_recovery(e, task, ret);
    }
    if (death.due > e->now) {
        hf_engine_wake(e, &state->item, death.due);
        return 0;
    }
    /* Its agent first: where a start is due, too, both go in one step. */
    if (hf_agent_state(agent)->item.flight != 0)
        return 0;
    uncounted = hf_heir_is_uncounted(e, agent);
    rc = agent->live.record == NULL || uncounted ? decide_owner(e, agent, ret) : 0;
    if (rc != 0) {
        hf_agenda_add(&e->agenda, &state->item.agenda);
        return rc;
    }
    if (uncounted) {
        hf_engine_wake(e, &state->item, e->now + e->policy.unknown_pause);
        return 0;
    }
    /* Its host or the storm guard wakes it; this is for what nobody thought of. */
    hf_engine_wake(e, &state->item, e->now + WAIT_LOOK);
    if (hf_death_is_on_hold(e, agent, &death) || !hf_engine_is_granted(e, agent, &death))
        return 0;
    return hf_engine_reset(e, task, &death, ret);
}

/* Nobody goes on with it any more. One that failed, or that a person has to look at, keeps what
 * it had. */
static bool is_over(const struct hf_engine *e, const Holdfast__V1__Task *task)
{
    return task->state == HOLDFAST__V1__TASK__STATE__completed ||
           task->state == HOLDFAST__V1__TASK__STATE__cancelled ||
           hf_mutated(e, HF_MUTANT_ANY_CHAIN);
}

static int sweep_chain(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    static const char WHY[] = "it is over, and its checkpoints were kept for long enough";
    struct hf_task_state *state = hf_task_state(task);
    struct hf_seen_task seen = seen_of(task);
    hf_ms due = state->since + e->policy.task.keep_chain;

    /* Many may be due at once, and others must not wait for them. */
    if (e->flight_count >= SWEEP_FLIGHTS && due <= e->now)
        due = e->now + SWEEP_AGAIN;
    if (e->now < due && !hf_mutated(e, HF_MUTANT_ANY_CHAIN)) {
        hf_engine_wake(e, &state->item, due);
        return 0;
    }
    hf_draft_begin(e, ret);
    hf_row_sweep_chain(&ret->plan, &e->term, &seen);
    return hf_draft_end(e, ret, &state->item, NULL, WHY);
}

/* Somebody is told, once; nothing else follows from it. */
static int judge_deadline(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    const Holdfast__V1__Task *record = hf_task_record(task);
    struct hf_task_state *state = hf_task_state(task);
    hf_ms due;

    if (record->deadline == NULL || hf_task_is_final(record->state) ||
        (state->alerts & HF_ALERT_LATE) != 0)
        return 0;
    due = hf_clusterclock_local(&e->clock, hf_moment_read(record->deadline), e->now);
    if (due > e->now) {
        hf_engine_wake(e, &state->item, due);
        return 0;
    }
    state->alerts |= HF_ALERT_LATE;
    if (hf_told_has(e, HF_TOLD_LATE, task->name))
        return 0;
    hf_told_add(e, HF_TOLD_LATE, task->name);
    return hf_draft_alert(
        e, ret, &state->item,
        &(struct hf_intent_alert){
            .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
            .agent = task->owner != NULL ? task->owner->name : NULL,
            .task = task->name,
            .why = hf_draft_why(e, "its deadline is over, and it is %s",
                                hf_task_state_name(record->state)),
            .next = "it goes on as ever; `holdfast explain` says how it stands" });
}

int hf_engine_decide_task(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret)
{
    const Holdfast__V1__Task *record = hf_task_record(task);
    int rc;

    if (record == NULL || hf_bad_of_task(e, task->name) != NULL)
        return 0;
    hf_limit_look(e, task);
    rc = judge_deadline(e, task, ret);
    if (rc != 0)
        return rc;
    if (hf_task_is_owned(record->state))
        return decide_owned(e, task, ret);
    rc = judge_recovery(e, task, ret);
    if (rc == 0 && record->state == HOLDFAST__V1__TASK__STATE__pending)
        rc = decide_pending(e, task, ret);
    if (rc == 0 && record->checkpoint != NULL && is_over(e, record))
        rc = sweep_chain(e, task, ret);
    return rc;
}

/* Roles. */

bool hf_engine_note_role(struct hf_engine *e, struct hf_role *role)
{
    struct hf_role_state *state = hf_role_state(role);
    bool lonely = role->live_count == 0, has_work = role->pending_count > 0;

    if (lonely && !state->lonely)
        state->lonely_since = e->now;
    if (has_work && !state->has_work)
        state->work_since = e->now;
    if (!lonely || !has_work) {
        state->alerts = 0;
        hf_told_on_over(e, HF_TOLD_ROLE, role->name);
    }
    state->lonely = lonely;
    state->has_work = has_work;
    return hf_limit_note_role(e, role) ||
           (has_work && (lonely || state->dormant.first != NULL));
}

/* It may go before there is less to do, like one that ends with each task: then it, or another
 * one, has to be called again. */
void hf_engine_answer_call(struct hf_engine *e, struct hf_agent *agent)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    struct hf_role_state *role = agent->role != NULL ? hf_role_state(agent->role) : NULL;

    if (!state->called)
        return;
    state->called = false;
    if (role == NULL)
        return;
    role->called_for -= role->called_for > 0;
    role->came_at = e->now;
    if (role->has_work)
        hf_agenda_add(&e->agenda, &role->item.agenda);
}

/* Wakes as many of those that sleep as there are tasks, and not the same again and again while
 * those that were woken are on their way, or have just come. */
static void call_dormant(struct hf_engine *e, struct hf_role *role)
{
    struct hf_role_state *state = hf_role_state(role);
    hf_ms offered = state->work_since > state->came_at ? state->work_since : state->came_at;
    hf_ms due = state->lonely ? e->now : offered + e->policy.demand_after;
    bool recent = state->called_at != 0 && e->now < state->called_at + e->policy.command_within;
    size_t want;

    if (state->dormant.first == NULL)
        return;
    if (e->now < due) {
        hf_engine_wake(e, &state->item, due);
        return;
    }
    want = hf_engine_count_work(role);
    if (recent)
        want = want > state->called_for ? want - state->called_for : 0;
    else
        state->called_for = 0;
    if (want == 0) {
        hf_engine_wake(e, &state->item,
                       (recent ? state->called_at : e->now) + e->policy.command_within);
        return;
    }
    state->called_at = e->now;
    /* Who was called may fail to start, and others still sleep. */
    hf_engine_wake(e, &state->item, state->called_at + e->policy.command_within);
    for (struct hf_agent_state *agent = state->dormant.first; agent != NULL && want > 0;
         agent = agent->wait_next, want--) {
        agent->called = true;
        state->called_for++;
        hf_agenda_add(&e->agenda, &agent->item.agenda);
    }
}

int hf_engine_decide_role(struct hf_engine *e, struct hf_role *role, struct hf_intent *ret)
{
    struct hf_role_state *state = hf_role_state(role);
    hf_ms since =
        state->work_since > state->lonely_since ? state->work_since : state->lonely_since;
    hf_ms due = since + e->policy.task.alert_after;
    int rc = hf_engine_decide_limit(e, role, ret);

    if (rc != 0 || !state->has_work)
        return rc;
    call_dormant(e, role);
    if (!state->lonely || (state->alerts & HF_ALERT_LONELY) != 0)
        return 0;
    if (e->now < due) {
        hf_engine_wake(e, &state->item, due);
        return 0;
    }
    state->alerts |= HF_ALERT_LONELY;
    if (hf_told_has(e, HF_TOLD_ROLE, role->name))
        return 0;
    hf_told_add(e, HF_TOLD_ROLE, role->name);
    return hf_draft_alert(
        e, ret, &state->item,
        &(struct hf_intent_alert){
            .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
            .task = role->pending->name,
            .why = hf_draft_why(e, "%zu tasks of role %s wait, and no agent of it is here",
                                role->pending_count, role->name),
            .next = "an agent of that role joins, or a person has to look" });
}
