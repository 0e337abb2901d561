#include "core/engine_private.h"

struct hf_engine_status hf_engine_get_status(const struct hf_engine *e, hf_ms now)
{
    return (struct hf_engine_status){
        .leads = e->term.lease != 0,
        .synced = e->synced,
        .term = e->term,
        .counts = hf_fleet_get_counts(e->fleet),
        .generation = e->generation,
        .revision = e->told_rev,
        .queued = e->agenda.count,
        .flights = e->flight_count - e->resting_count,
        .resting = e->resting_count,
        .bad = e->bad.count,
        .paced = e->paced.count,
        .storm = hf_storm_get(&e->storm, now),
        .tilt = hf_tilt_get(&e->tilt, now),
        .cluster_now = hf_clusterclock_now(&e->clock, now),
    };
}

static const char *exit_evidence(const struct hf_agent *agent)
{
    const Holdfast__V1__Exit *record = hf_agent_exit(agent);

    return record != NULL && record->n_evidence > 0 ? record->evidence[0]->text : "";
}

static struct hf_engine_view explain_gone(struct hf_engine *e, const struct hf_agent *agent)
{
    const struct hf_agent_state *state = hf_agent_state(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    struct hf_death death = hf_death_of_agent(e, agent);
    struct hf_engine_view view = {
        .verdict = "gone",
        .why = health != NULL ? health->why : "it is not live",
        .evidence =
            death.seen ? exit_evidence(agent) : "its live key is gone, and no exit was written",
        .next = health != NULL && health->next != NULL ? health->next->what : "nothing",
        .at = state->item.agenda.timed ? state->item.agenda.at : HF_ENGINE_NEVER,
    };

    if (agent->commands != NULL) {
        view.verdict = "ordered";
        view.next = "its host starts or refuses it, or the command is withdrawn";
    } else if (death.due > e->now) {
        view.verdict = "suspect";
        view.why = death.why;
        view.next = "it is given up";
        view.at = death.due;
    } else if (state->waits == &e->paced) {
        view.verdict = "paced";
        view.why = hf_storm_get(&e->storm, e->now).why;
        view.next = "it is started again in its turn";
    } else if (health != NULL && health->held) {
        view.verdict = "held";
    } else if (health != NULL && health->state == HOLDFAST__V1__HEALTH__STATE__terminated) {
        view.verdict = "terminated";
    }
    return view;
}

int hf_engine_explain_agent(struct hf_engine *e, const char *name, hf_ms now,
                            struct hf_engine_view *ret_view)
{
    const struct hf_agent *agent = hf_fleet_get_agent(e->fleet, name);
    const char *bad = hf_bad_of_agent(e, name);

    if (agent == NULL)
        return HF_ENOENT;
    e->now = now;
    if (bad != NULL) {
        *ret_view = (struct hf_engine_view){ .verdict = "set aside",
                                             .why = "a record of it cannot be read",
                                             .evidence = bad,
                                             .next = "that record is corrected",
                                             .at = HF_ENGINE_NEVER };
    } else if (agent->live.record != NULL) {
        const Holdfast__V1__Health *health = hf_agent_health(agent);
        bool degraded =
            health != NULL && health->state == HOLDFAST__V1__HEALTH__STATE__degraded;

        *ret_view = (struct hf_engine_view){
            .verdict = degraded ? "degraded" : "healthy",
            .why = degraded ? health->why : "its lease is held",
            .evidence = hf_draft_evidence(e, "its live key of revision %lld on lease %llx",
                                          (long long)agent->live.seen.create_rev,
                                          (unsigned long long)agent->live.seen.lease),
            .next = "nothing",
            .at = HF_ENGINE_NEVER
        };
    } else {
        *ret_view = explain_gone(e, agent);
    }
    return HF_OK;
}

static struct hf_engine_view explain_owned(struct hf_engine *e, const struct hf_task *task)
{
    struct hf_engine_view view = { .why = "its owner is live",
                                   .evidence = task->owner->name,
                                   .next = "its owner brings it to an end",
                                   .at = HF_ENGINE_NEVER };
    struct hf_death death;

    if (!hf_death_of_owner(e, task, &death))
        return view;
    view.why = death.due > e->now ? death.why : "its owner is gone";
    view.evidence = death.seen ? exit_evidence(task->owner)
                               : "the live key of its owner's incarnation is gone";
    view.next = "it is reset";
    view.at = death.due;
    return view;
}

static void explain_limit(struct hf_engine *e, const struct hf_task *task,
                          struct hf_engine_view *view)
{
    view->why = hf_limit_say(e, task->role, task->role->running_count);
    view->next = "it may be taken when fewer tasks of its role run";
    view->at = HF_ENGINE_NEVER;
}

static void explain_rooted(struct hf_engine *e, const struct hf_task *task,
                           struct hf_engine_view *view)
{
    view->why = hf_engine_say_rooted(e, task, &view->next);
    view->at = HF_ENGINE_NEVER;
}

int hf_engine_explain_task(struct hf_engine *e, const char *name, hf_ms now,
                           struct hf_engine_view *ret_view)
{
    const struct hf_task *task = hf_fleet_get_task(e->fleet, name);
    const Holdfast__V1__Task *record = task != NULL ? hf_task_record(task) : NULL;
    const char *bad = hf_bad_of_task(e, name);
    struct hf_recover recover;
    struct hf_recover_view recovery;

    if (record == NULL)
        return HF_ENOENT;
    e->now = now;
    if (task->owner != NULL) {
        *ret_view = explain_owned(e, task);
    } else {
        recover = hf_recover_load(hf_task_recovery(task));
        recovery = hf_recover_judge(&recover, record->state, hf_engine_clock(e));
        *ret_view = (struct hf_engine_view){
            .why = recovery.why,
            .evidence = record->reason,
            .next = recovery.next,
            .at = recovery.at == HF_RECOVER_NEVER
                      ? HF_ENGINE_NEVER
                      : hf_clusterclock_local(&e->clock, recovery.at, now),
        };
        if (record->state == HOLDFAST__V1__TASK__STATE__pending && hf_task_root(task) != NULL &&
            !hf_engine_is_served(task))
            explain_rooted(e, task, ret_view);
        if (recovery.due == HF_RECOVER_PROMOTE && hf_limit_holds(task))
            explain_limit(e, task, ret_view);
    }
    ret_view->verdict = hf_task_state_name(record->state);
    if (bad != NULL) {
        ret_view->verdict = "set aside";
        ret_view->evidence = bad;
    }
    return HF_OK;
}
