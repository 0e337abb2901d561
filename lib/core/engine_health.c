#include "core/engine_private.h"

struct hf_restart hf_health_get_restart(const Holdfast__V1__Health *health)
{
    struct hf_restart restart = { 0 };

    if (health == NULL)
        return restart;
    restart.starts = hf_moments_read(health->started_at, health->n_started_at);
    restart.held = health->held;
    restart.next_at = hf_moment_read(health->next_start);
    restart.planned = health->next_start != NULL;
    return restart;
}

void hf_health_set_restart(const struct hf_engine *e, struct hf_health_draft *draft,
                           const struct hf_restart *restart)
{
    hf_moments_write(&restart->starts, &draft->started);
    draft->record.started_at = draft->started.list;
    draft->record.n_started_at = draft->started.count;
    draft->record.restarts = (int32_t)hf_backoff_count(
        &restart->starts, e->policy.restart.window, hf_engine_clock(e));
    draft->record.held = restart->held;
    draft->record.next_start =
        restart->planned ? hf_moment_write(restart->next_at, &draft->next_start) : NULL;
}

void hf_health_set_recover(struct hf_health_draft *draft,
                           const struct hf_recover_agent *recover)
{
    hf_moments_write(&recover->recovered, &draft->recovered);
    draft->record.recovered_at = draft->recovered.list;
    draft->record.n_recovered_at = draft->recovered.count;
    draft->record.recovered_upto = recover->recovered_upto;
}

void hf_health_set_taken(struct hf_health_draft *draft, int64_t life)
{
    if (life > draft->record.taken_upto)
        draft->record.taken_upto = life;
}

/* The newest life that we know of, and where it was, for a leader that did not see it. */
static void set_life(const struct hf_engine *e, const struct hf_agent *agent,
                     struct hf_health_draft *draft)
{
    int64_t rev =
        agent->live.record != NULL ? agent->live.seen.create_rev : hf_agent_gone_rev(agent);
    int64_t life = rev != 0 ? hf_life_number(e->generation, rev) : 0;
    const char *host = agent->host != NULL ? agent->host->name : hf_death_host(e, agent);

    if (host != NULL)
        draft->record.host = (char *)host;
    if (life > draft->record.incarnation)
        draft->record.incarnation = life;
}

void hf_health_begin(const struct hf_engine *e, const struct hf_agent *agent,
                     struct hf_health_draft *draft)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    struct hf_restart restart = hf_health_get_restart(health);
    struct hf_recover_agent recover = hf_recover_agent_load(health);

    if (health != NULL)
        draft->record = *health;
    else
        holdfast__v1__health__init(&draft->record);
    /* A start that was ordered and whose command is gone is not outstanding any more. */
    if (agent->commands == NULL)
        draft->record.command_host = (char *)"";
    hf_health_set_restart(e, draft, &restart);
    hf_health_set_recover(draft, &recover);
    set_life(e, agent, draft);
    draft->record.heir_of = hf_heir_get_leave(e, agent);
}

void hf_health_guard(const struct hf_agent *agent, struct hf_plan *plan)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);

    if (health != NULL && agent->commands == NULL &&
        hf_name_check("host", health->command_host, NULL) == HF_OK) {
        hf_plan_begin_row(plan, HF_ROW_NO_START);
        hf_plan_guard(
            plan,
            (struct hf_key){ HF_KEY_COMMAND, .name = health->command_host, .sub = agent->name },
            HF_GUARD_ABSENT, 0);
    }
    if (health != NULL && health->heir_of != 0) {
        hf_plan_begin_row(plan, HF_ROW_NO_HEIR);
        hf_plan_guard(plan, (struct hf_key){ HF_KEY_AGENT_EXIT, .name = agent->name },
                      HF_GUARD_MOD, agent->exit.seen.mod_rev);
    }
}

void hf_health_set(struct hf_health_draft *draft, Holdfast__V1__Health__State state,
                   const char *why, const char *next, hf_ms at)
{
    draft->record.state = state;
    draft->record.why = (char *)why;
    draft->record.next = NULL;
    draft->record.evidence = NULL;
    draft->record.n_evidence = 0;
    if (next == NULL)
        return;
    holdfast__v1__next__init(&draft->next);
    draft->next.what = (char *)next;
    draft->next.at = at != 0 ? hf_moment_write(at, &draft->next_at) : NULL;
    draft->record.next = &draft->next;
}

static void set_one_evidence(const struct hf_engine *e, const char *source, const char *text,
                             struct hf_health_draft *draft)
{
    holdfast__v1__evidence__init(&draft->evidence);
    draft->evidence.source = (char *)source;
    draft->evidence.text = (char *)text;
    draft->evidence.at = hf_moment_write(hf_engine_clock(e), &draft->evidence_at);
    draft->evidence_list[0] = &draft->evidence;
    draft->record.evidence = draft->evidence_list;
    draft->record.n_evidence = 1;
}

void hf_health_set_unwell(struct hf_engine *e, const struct hf_agent *agent,
                          struct hf_health_draft *draft)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;
    const Holdfast__V1__Report__Suspicion *suspicion = report->suspicion;
    bool has_reason = suspicion == NULL && report->reason[0] != '\0';
    const char *why =
        suspicion != NULL
            ? hf_draft_why(e, "its agentd %s: %s",
                           suspicion->frozen ? "finds it frozen" : "suspects it",
                           suspicion->why)
            : hf_draft_why(e, "it says that it is not well%s%s", has_reason ? ": " : "",
                           has_reason ? report->reason : "");

    hf_health_set(draft, HOLDFAST__V1__HEALTH__STATE__degraded, why, NULL, 0);
    if (suspicion == NULL) {
        set_one_evidence(e, "agent", "its report says degraded", draft);
    } else if (suspicion->n_evidence == 0) {
        set_one_evidence(e, suspicion->kind, suspicion->why, draft);
    } else {
        draft->record.evidence = suspicion->evidence;
        draft->record.n_evidence = suspicion->n_evidence;
    }
}

void hf_health_set_evidence(const struct hf_engine *e, const struct hf_agent *agent,
                            const struct hf_death *death, struct hf_health_draft *draft)
{
    const Holdfast__V1__Exit *exit = hf_agent_exit(agent);

    if (death->seen && exit != NULL) {
        draft->record.evidence = exit->evidence;
        draft->record.n_evidence = exit->n_evidence;
        return;
    }
    set_one_evidence(e, "etcd",
                     agent->live.record != NULL
                         ? "its live key was created anew by the same process"
                         : "its live key is gone, and no exit was written",
                     draft);
}

void hf_health_tell(struct hf_engine *e, const struct hf_agent *agent,
                    const struct hf_health_draft *draft, Holdfast__V1__Event__Kind kind,
                    struct hf_intent *ret)
{
    const Holdfast__V1__Health *record = &draft->record;
    bool timed = record->next != NULL && record->next->at != NULL;
    bool inquires = kind == HOLDFAST__V1__EVENT__KIND__stalled ||
                    kind == HOLDFAST__V1__EVENT__KIND__answered;

    hf_draft_event(
        e, ret,
        &(struct hf_draft_event){
            .kind = kind,
            .agent = agent->name,
            .task = inquires ? record->inquiry->task : NULL,
            .host = record->host,
            .why = record->why,
            .next = record->next != NULL ? record->next->what : NULL,
            .next_at = timed ? hf_clusterclock_local(&e->clock,
                                                     hf_moment_read(record->next->at), e->now)
                             : 0,
            .source = record->n_evidence > 0 ? record->evidence[0]->source : NULL,
            .evidence = record->n_evidence > 0 ? record->evidence[0]->text : NULL });
}

int hf_health_write(struct hf_engine *e, struct hf_agent *agent, struct hf_health_draft *draft,
                    const struct hf_death *death, Holdfast__V1__Event__Kind kind,
                    struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    int rc;

    hf_draft_begin(e, ret);
    hf_health_guard(agent, &ret->plan);
    hf_row_write(&ret->plan, &e->term, (struct hf_key){ HF_KEY_HEALTH, .name = agent->name },
                 &agent->health.seen, &draft->record.base);
    if (death != NULL)
        hf_trail_tell_end(e, agent, death, ret);
    if (kind == HOLDFAST__V1__EVENT__KIND__joined)
        hf_trail_tell_join(e, agent, ret);
    else if (kind != HOLDFAST__V1__EVENT__KIND__unknown)
        hf_health_tell(e, agent, draft, kind, ret);
    rc = hf_draft_end(e, ret, &state->item, NULL, draft->record.why);
    if (rc == 1)
        state->health_at = e->now;
    return rc;
}
