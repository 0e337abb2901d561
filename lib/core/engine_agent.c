#include <string.h>

#include "core/engine_private.h"

#define FAILING    HOLDFAST__V1__HEALTH__STATE__failing
#define TERMINATED HOLDFAST__V1__HEALTH__STATE__terminated
#define SUSPECT    HOLDFAST__V1__HEALTH__STATE__suspect
#define HEALTHY    HOLDFAST__V1__HEALTH__STATE__healthy
#define DEGRADED   HOLDFAST__V1__HEALTH__STATE__degraded

#define HOLD_LOOK 5000 /* an agent that waits for its host is looked at this often */

enum { REPORTED = 1, DEGRADED_MARK = 2, SUSPICION_MARK = 4 };
#define NOT_WELL (DEGRADED_MARK | SUSPICION_MARK)

/* What of a report matters to a decision: whether it is well, by its own word. */
static uint8_t report_mark(const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;

    if (report == NULL)
        return 0;
    return (uint8_t)(REPORTED |
                     (report->status == HOLDFAST__V1__AGENT_STATUS__VALUE__degraded
                          ? DEGRADED_MARK
                          : 0) |
                     (report->suspicion != NULL ? SUSPICION_MARK : 0));
}

/* Whether it says more than that it lives; who has been asked something is looked at then. */
static bool note_words(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;
    struct hf_agent_state *state = hf_agent_state(agent);
    hf_ms said = report != NULL ? hf_moment_read(report->said_at) : 0;

    state->heard_at = e->now;
    if (said == state->said)
        return false;
    state->said = said;
    state->spoke_at = e->now;
    return state->asked;
}

/* Most changes are reports that say nothing new: they look at nothing else. */
static bool note_report(const struct hf_engine *e, const struct hf_agent *agent)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    uint8_t mark = report_mark(agent);
    bool answers = note_words(e, agent);

    if (mark == state->mark)
        return answers;
    state->mark = mark;
    return true;
}

/* A process that registered again, after a suspicion, say, has not joined: it is cleared. */
static bool is_new_process(const struct hf_agent *agent)
{
    const Holdfast__V1__Live *past = hf_agent_past(agent), *live = hf_agent_live(agent);

    return live != NULL && (past == NULL || strcmp(past->instance_id, live->instance_id) != 0);
}

/* Somebody may have spoken of it long before, as a person does who wants it stopped. */
static bool is_made_known(const struct hf_engine *e, const struct hf_agent *agent)
{
    return e->changing == HF_KEY_AGENT_SPEC && agent->live.seen.create_rev == 0 &&
           agent->spec.seen.mod_rev != 0 &&
           agent->spec.seen.create_rev == agent->spec.seen.mod_rev;
}

bool hf_engine_note_agent(struct hf_engine *e, struct hf_agent *agent)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    bool known = state->known;

    state->known = true;
    if (e->changing == HF_KEY_AGENT_REPORT && known)
        return note_report(e, agent);
    if (e->changing == HF_KEY_AGENT_EXIT)
        state->failed = false;
    if (e->changing == HF_KEY_HEALTH) {
        const Holdfast__V1__Health *health = hf_agent_health(agent);

        state->asked = health != NULL && health->inquiry != NULL && !health->inquiry->answered;
    }
    if (is_made_known(e, agent))
        state->life_at = e->now;
    if (agent->live.seen.create_rev != state->life || !known) {
        state->life = agent->live.seen.create_rev;
        state->life_at = e->now;
        if (e->synced && is_new_process(agent))
            hf_trail_note(e, HOLDFAST__V1__EVENT__KIND__joined, &state->item, state->life);
    }
    return e->changing != HF_KEY_AGENT_REPORT || note_report(e, agent);
}

bool hf_engine_has_just_begun(struct hf_engine *e, const struct hf_agent *agent,
                              struct hf_item *item)
{
    hf_ms settled = hf_agent_state(agent)->life_at + e->policy.settle_after;

    if (agent->live.record == NULL || e->now >= settled)
        return false;
    hf_engine_wake(e, item, settled);
    return true;
}

/* Whether the health record says this already. */
static bool says(const struct hf_agent *agent, Holdfast__V1__Health__State state,
                 const char *why)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);

    return health != NULL && health->state == state && strcmp(health->why, why) == 0 &&
           health->command_host[0] == '\0';
}

/* Health for its own sake is not written more often than a person can read; false: not now. */
static bool may_write_health(struct hf_engine *e, struct hf_agent *agent)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    hf_ms at = state->health_at + e->policy.health_every;

    if (state->health_at == 0 || e->now >= at)
        return true;
    hf_engine_wake(e, &state->item, at);
    return false;
}

/* The state that it is in for good, until something else happens, or until `at` on the cluster
 * clock (0: no such time). */
struct rest {
    Holdfast__V1__Health__State state;
    const char *why, *next;
    hf_ms at;
};

static int settle(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                  const struct rest *rest, struct hf_intent *ret)
{
    struct hf_health_draft draft;

    /* Of an agent that never lived there is nothing to say. */
    if (says(agent, rest->state, rest->why) ||
        (death->life == 0 && !death->seen && rest->state == TERMINATED) ||
        !may_write_health(e, agent))
        return 0;
    hf_health_begin(e, agent, &draft);
    hf_health_set(&draft, rest->state, rest->why, rest->next, rest->at);
    hf_health_set_evidence(e, agent, death, &draft);
    return hf_health_write(e, agent, &draft,
                           hf_death_is_on_hold(e, agent, death) ? NULL : death,
                           HOLDFAST__V1__EVENT__KIND__unknown, ret);
}

/* An agent that is here. */

bool hf_engine_is_degraded(const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;

    return (hf_agent_state(agent)->mark & NOT_WELL) != 0 && report != NULL &&
           report->incarnation != NULL &&
           report->incarnation->create_revision == agent->live.seen.create_rev;
}

/* A key that hangs on no lease would stay for ever: nobody is proven alive by it. */
static int remove_ghost(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    static const char WHY[] = "its live key hangs on no lease, so it proves nothing";
    struct hf_seen live = hf_lean_cell_seen(&agent->live);

    hf_draft_begin(e, ret);
    hf_row_write(&ret->plan, &e->term,
                 (struct hf_key){ HF_KEY_AGENT_LIVE, .name = agent->name }, &live, NULL);
    hf_draft_event(e, ret,
                   &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__ended,
                                             .agent = agent->name,
                                             .why = WHY });
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item, NULL, WHY);
}

static bool is_new_life(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    int64_t life = hf_life_number(e->generation, agent->live.seen.create_rev);

    return is_new_process(agent) && !hf_trail_knows_join(agent) &&
           (health == NULL || health->incarnation < life);
}

static int decide_live(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    bool degraded = hf_engine_is_degraded(agent);
    Holdfast__V1__Health__State state = degraded ? DEGRADED : HEALTHY;
    bool ending =
        health != NULL &&
        health->end_upto >= hf_life_number(e->generation, agent->live.seen.create_rev);
    struct hf_health_draft draft;
    int rc;

    hf_agent_state(agent)->alerts &= HF_ALERT_STALLED;
    if (agent->live.seen.lease == 0)
        return remove_ghost(e, agent, ret);
    rc = ending ? 0 : hf_engine_judge_stall(e, agent, ret);
    if (rc != 0 || hf_engine_is_asked(e, agent))
        return rc;
    /* Without a record it is taken for healthy. */
    if (health == NULL ? !degraded : health->state == state && health->command_host[0] == '\0')
        return ending ? 0 : hf_heir_give_leave(e, agent, ret);
    if (ending ||
        ((health == NULL || health->command_host[0] == '\0') && !may_write_health(e, agent)) ||
        hf_engine_has_just_begun(e, agent, &hf_agent_state(agent)->item))
        return 0;
    hf_health_begin(e, agent, &draft);
    if (degraded)
        hf_health_set_unwell(e, agent, &draft);
    else
        hf_health_set(&draft, HEALTHY, "it is live", NULL, 0);
    draft.record.next_start = NULL;
    return hf_health_write(e, agent, &draft, NULL,
                           degraded                ? HOLDFAST__V1__EVENT__KIND__suspect
                           : is_new_life(e, agent) ? HOLDFAST__V1__EVENT__KIND__joined
                                                   : HOLDFAST__V1__EVENT__KIND__cleared,
                           ret);
}

/* An agent that is gone. */

static int sweep(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                 struct hf_intent *ret)
{
    static const char WHY[] = "it was transient, and its end is long ago";
    hf_ms since = hf_agent_state(agent)->life_at; /* or made known again since it was gone */
    struct hf_seen spec = hf_lean_cell_seen(&agent->spec);

    (void)death;
    if (hf_agent_gone_rev(agent) != 0 && hf_agent_gone_at(agent) > since)
        since = hf_agent_gone_at(agent);
    if (!hf_agent_spec(agent)->transient || agent->tasks != NULL || agent->commands != NULL)
        return 0;
    if (e->now < since + e->policy.sweep_after) {
        hf_engine_wake(e, &hf_agent_state(agent)->item, since + e->policy.sweep_after);
        return 0;
    }
    hf_draft_begin(e, ret);
    hf_row_sweep(&ret->plan, &e->term, agent->name, &spec);
    if (hf_mutated(e, HF_MUTANT_SWEEP_WANTED))
        hf_plan_delete(&ret->plan,
                       (struct hf_key){ .kind = HF_KEY_WANTED, .name = agent->name });
    hf_draft_event(e, ret,
                   &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__ended,
                                             .agent = agent->name,
                                             .why = WHY });
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item, NULL, WHY);
}

/* In a storm nobody writes thousands of records to say what the storm says already. */
static int suspect(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                   struct hf_intent *ret)
{
    hf_ms left = death->due - e->now;
    struct hf_health_draft draft;

    hf_engine_wake(e, &hf_agent_state(agent)->item, death->due);
    if (death->life == 0 || says(agent, SUSPECT, death->why) ||
        hf_storm_get(&e->storm, e->now).state != HF_STORM_NORMAL ||
        (hf_agent_health(agent) != NULL && hf_agent_health(agent)->state == SUSPECT) ||
        !may_write_health(e, agent))
        return 0;
    hf_health_begin(e, agent, &draft);
    hf_health_set(&draft, SUSPECT, death->why, "it is given up", hf_engine_clock(e) + left);
    hf_health_set_evidence(e, agent, death, &draft);
    return hf_health_write(e, agent, &draft, NULL, HOLDFAST__V1__EVENT__KIND__suspect, ret);
}

static bool is_host_gone(const struct hf_engine *e, const struct hf_agent *agent)
{
    const char *name = hf_death_host(e, agent);
    const struct hf_host *host = name != NULL ? hf_fleet_get_host(e->fleet, name) : NULL;

    return host == NULL || host->live.record == NULL;
}

/* A host that failed to start it is passed over for that launcher; noted once. */
static void note_failed_start(struct hf_engine *e, struct hf_agent *agent,
                              const struct hf_death *death)
{
    struct hf_agent_state *state = hf_agent_state(agent);

    if (!death->seen || death->kind != HOLDFAST__V1__EXIT__KIND__start_failed || state->failed)
        return;
    state->failed = true;
    hf_engine_pass_over(e, hf_death_host(e, agent), hf_agent_spec(agent)->launcher);
}

static int ask_other_host(struct hf_engine *e, struct hf_agent *agent,
                          const struct hf_death *death, bool *ret_has_one)
{
    struct hf_place place;
    int err;

    *ret_has_one = false;
    if (death->kind != HOLDFAST__V1__EXIT__KIND__start_failed)
        return HF_OK;
    err = hf_engine_place(e, agent, HF_PLACE_FRESH, death, &place);
    if (err == HF_OK)
        *ret_has_one = place.verdict == HF_PLACEMENT_HOST;
    return err;
}

static int alert_once(struct hf_engine *e, struct hf_agent *agent, uint8_t which,
                      const struct hf_restart_decision *d, struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);

    if ((state->alerts & which) != 0)
        return 0;
    state->alerts |= which;
    return hf_draft_alert(e, ret, &state->item,
                          &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__held,
                                                     .agent = agent->name,
                                                     .host = hf_death_host(e, agent),
                                                     .why = d->why,
                                                     .next = d->next });
}

static int hold(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                const struct hf_restart *restart, const struct hf_restart_decision *d,
                struct hf_intent *ret)
{
    struct hf_health_draft draft;
    int rc = d->alert ? alert_once(e, agent, HF_ALERT_HELD, d, ret) : 0;

    if (rc != 0 || !d->alert)
        return rc;
    hf_health_begin(e, agent, &draft);
    hf_health_set_restart(e, &draft, restart);
    hf_health_set(&draft, FAILING, d->why, d->next, 0);
    hf_health_set_evidence(e, agent, death, &draft);
    return hf_health_write(e, agent, &draft, death, HOLDFAST__V1__EVENT__KIND__held, ret);
}

/* What was drawn is stored before it is waited for, so that the next leader waits as long. */
static int plan_start(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                      const struct hf_restart *restart, const struct hf_restart_decision *d,
                      struct hf_intent *ret)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    struct hf_health_draft draft;

    hf_engine_wake(e, &hf_agent_state(agent)->item,
                   hf_clusterclock_local(&e->clock, d->at, e->now));
    if (health != NULL && health->next_start != NULL)
        return 0;
    hf_health_begin(e, agent, &draft);
    hf_health_set_restart(e, &draft, restart);
    hf_health_set(&draft, FAILING, d->why, d->next, d->at);
    hf_health_set_evidence(e, agent, death, &draft);
    return hf_health_write(e, agent, &draft, death, HOLDFAST__V1__EVENT__KIND__unknown, ret);
}

static int start(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                 const struct hf_restart *restart, const struct hf_restart_decision *d,
                 struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    struct hf_place place;
    int err;

    if (d->alert && alert_once(e, agent, HF_ALERT_UNKILLABLE, d, ret) != 0)
        return 1;
    /* Before anything is written: in a storm there are thousands of these. */
    if (!hf_engine_is_granted(e, agent, death))
        return 0;
    if (d->at > hf_engine_clock(e) && !hf_mutated(e, HF_MUTANT_NO_BACKOFF))
        return plan_start(e, agent, death, restart, d, ret);
    /* A host that is only gone may come back; placement waits for it as long as it should. */
    err = hf_engine_place(e, agent,
                          death->kind == HOLDFAST__V1__EXIT__KIND__start_failed &&
                                  d->verdict == HF_RESTART_ELSEWHERE
                              ? HF_PLACE_ELSEWHERE
                              : HF_PLACE_ANYWHERE,
                          death, &place);
    if (err != HF_OK)
        return err;
    if (place.verdict != HF_PLACEMENT_HOST) {
        bool waits = place.verdict == HF_PLACEMENT_WAIT_HOME;

        hf_engine_wait_in(&e->homeless, state);
        hf_engine_wake(e, &state->item, place.at);
        return settle(
            e, agent, death,
            &(struct rest){ .state = FAILING,
                            .why = place.why,
                            .next = place.next,
                            .at = waits ? hf_engine_clock(e) + place.at - e->now : 0 },
            ret);
    }
    return hf_engine_order(e, agent,
                           &(struct hf_start_order){ .host = place.host,
                                                     .restart = *restart,
                                                     .death = death,
                                                     .why = d->why,
                                                     .attempt = d->attempt },
                           ret);
}

/* Whoever says that it shall run after it was seen to end knows how it ended. What began after
 * that word has been given already; its end may be one that nobody wrote down. */
static bool is_asked_for(const struct hf_engine *e, const struct hf_agent *agent,
                         const struct hf_death *death)
{
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);
    int64_t said = agent->wanted.seen.mod_rev;

    return wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__running &&
           hf_agent_exit(agent) != NULL && said > agent->exit.seen.mod_rev &&
           hf_life_number(e->generation, said) > death->life;
}

/* There may be work already, which the role was not asked about while nobody slept. */
static void fall_asleep(struct hf_engine *e, struct hf_agent *agent)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    struct hf_role_state *role = hf_role_state(agent->role);
    bool joins = state->waits != &role->dormant;

    hf_engine_wait_in(&role->dormant, state);
    if (joins && role->has_work)
        hf_agenda_add(&e->agenda, &role->item.agenda);
}

static int restart(struct hf_engine *e, struct hf_agent *agent, const struct hf_death *death,
                   struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    struct hf_restart r = hf_health_get_restart(hf_agent_health(agent));
    struct hf_restart_case facts = {
        .death = death->kind,
        .restart = hf_agent_spec(agent)->restart,
        .wanted = HOLDFAST__V1__WANTED__STATE__running,
        .ordered = agent->commands != NULL && !hf_mutated(e, HF_MUTANT_NO_OUTSTANDING),
        .has_work = agent->role != NULL && agent->role->pending_count > 0 && state->called,
        .host_gone = is_host_gone(e, agent),
        .asked = is_asked_for(e, agent, death),
    };
    struct hf_restart_decision d;
    int err = ask_other_host(e, agent, death, &facts.has_other_host);

    if (err != HF_OK)
        return err;
    if (hf_mutated(e, HF_MUTANT_NO_HELD))
        hf_restart_on_released(&r);
    d = hf_restart_decide(&r, &e->policy.restart, &facts, hf_engine_clock(e), e->random);
    switch (d.verdict) {
    case HF_RESTART_START_AT:
    case HF_RESTART_ELSEWHERE: return start(e, agent, death, &r, &d, ret);
    case HF_RESTART_HELD: return hold(e, agent, death, &r, &d, ret);
    case HF_RESTART_ON_DEMAND:
        if (agent->role != NULL)
            fall_asleep(e, agent);
        break;
    case HF_RESTART_NOT_WANTED: break;
    case HF_RESTART_DUPLICATE: return 0;
    }
    return settle(e, agent, death,
                  &(struct rest){ .state = TERMINATED, .why = d.why, .next = d.next }, ret);
}

/* NULL: it is wanted running. */
static const char *why_unwanted(const struct hf_agent *agent)
{
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);

    if (wanted == NULL || wanted->state == HOLDFAST__V1__WANTED__STATE__running)
        return NULL;
    return wanted->state == HOLDFAST__V1__WANTED__STATE__stopped
               ? "it is wanted stopped"
               : "it is wanted in a way that this version does not know";
}

static int decide_gone(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const char *unwanted = why_unwanted(agent);
    struct hf_death death;
    int rc;

    /* Nothing says how it is started; its tasks are looked after by themselves. */
    if (spec == NULL)
        return 0;
    death = hf_death_of_agent(e, agent);
    rc = sweep(e, agent, &death, ret);
    if (rc != 0)
        return rc;
    if (unwanted != NULL && !hf_mutated(e, HF_MUTANT_NO_WANTED))
        return settle(e, agent, &death,
                      &(struct rest){ .state = TERMINATED,
                                      .why = unwanted,
                                      .next = "`holdfast start` starts it" },
                      ret);
    if (death.due > e->now && death.seen) { /* nothing is written that its heir compares */
        hf_engine_wake(e, &hf_agent_state(agent)->item, death.due);
        return 0;
    }
    if (death.due > e->now)
        return suspect(e, agent, &death, ret);
    if (hf_death_is_on_hold(e, agent, &death)) {
        hf_engine_wake(e, &hf_agent_state(agent)->item, e->now + HOLD_LOOK);
        return settle(e, agent, &death,
                      &(struct rest){ .state = FAILING,
                                      .why = "its host is gone, and it may be running there",
                                      .next = "its host comes back, or `holdfast host lost`" },
                      ret);
    }
    if (spec->starter == HOLDFAST__V1__SPEC__STARTER__external)
        return settle(e, agent, &death,
                      &(struct rest){ .state = FAILING,
                                      .why = "it is gone, and others start it",
                                      .next = "whoever starts it starts it again" },
                      ret);
    note_failed_start(e, agent, &death);
    return restart(e, agent, &death, ret);
}

int hf_engine_decide_agent(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    int rc;

    if (hf_bad_of_agent(e, agent->name) != NULL)
        return 0;
    if (hf_heir_is_uncounted(e, agent))
        return hf_heir_count(e, agent, ret);
    rc = hf_engine_judge_starts(e, agent, ret);
    if (rc != 0)
        return rc;
    if (agent->live.record != NULL) {
        hf_engine_answer_call(e, agent);
        return decide_live(e, agent, ret);
    }
    if (agent->commands != NULL && !hf_mutated(e, HF_MUTANT_NO_OUTSTANDING))
        return 0;
    return decide_gone(e, agent, ret);
}
