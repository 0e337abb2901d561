#include <string.h>

#include "core/engine_private.h"

#define TTL_MAX 3600000 /* a record may say anything */

/* Counts of hosts that the guard goes by: those that have a record and have not left. */
static void count_host(struct hf_engine *e, struct hf_host_state *state, bool counted,
                       bool live)
{
    e->facts.hosts += (counted ? 1U : 0U) - (state->counted ? 1U : 0U);
    e->facts.live +=
        (counted && live ? 1U : 0U) - (state->counted && state->was_live ? 1U : 0U);
    state->counted = counted;
    state->was_live = live;
}

static void set_ttl(struct hf_engine *e, const struct hf_host *host)
{
    const Holdfast__V1__HostLive *live = (const Holdfast__V1__HostLive *)host->live.record;
    hf_ms ttl = live != NULL && live->ttl != NULL ? live->ttl->seconds * 1000 : 0;

    if (ttl > e->longest_ttl && ttl <= TTL_MAX)
        e->longest_ttl = ttl;
}

static void take_grant_back(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    (void)arg;
    hf_agent_state(object)->granted = false;
}

/* What was let go and has not happened when everybody is missed waits with all others. */
static void lose_host(struct hf_engine *e)
{
    bool was_full = hf_storm_get(&e->storm, e->now).state == HF_STORM_FULL;

    hf_storm_on_lost(&e->storm, 1, &e->facts, e->now);
    if (!was_full && hf_storm_get(&e->storm, e->now).state == HF_STORM_FULL)
        hf_fleet_each(e->fleet, HF_FLEET_AGENT, take_grant_back, NULL);
}

bool hf_engine_note_host(struct hf_engine *e, struct hf_host *host)
{
    struct hf_host_state *state = hf_host_state(host);
    const Holdfast__V1__Host *record = hf_host_record(host);
    bool was_live = state->was_live, was_counted = state->counted;
    bool live = host->live.record != NULL;

    if (state->place == 0) {
        hf_engine_add_host(e, host);
        state->known_at = e->now;
    }
    count_host(e, state, record != NULL && !record->left, live);
    set_ttl(e, host);
    if (live && !was_live)
        state->live_at = e->now;
    /* Whatever stood against it was true of the agentd that was there before. */
    if (live && host->live.seen.lease != state->lease) {
        memset(state->passed, 0, sizeof state->passed);
        state->lease = host->live.seen.lease;
    }
    if (!e->synced)
        return false;
    if (was_counted && state->counted && was_live && !live)
        lose_host(e);
    if (state->counted && !was_live && live)
        hf_storm_on_back(&e->storm, e->now);
    if (was_live != live)
        hf_agenda_add(&e->agenda, &e->storm_item.agenda);
    /* Whoever waits for a host may find one now. */
    if (live)
        hf_engine_wake_list(e, &e->homeless, 1000);
    return false;
}

/* Leases that are kept alive by leaders of etcd that follow each other too fast are not seen in
 * less than this. */
static hf_ms unrest_window(const struct hf_engine *e)
{
    return 3 * e->longest_ttl;
}

void hf_engine_note_raft(struct hf_engine *e)
{
    bool unrest;

    hf_unrest_on_change(&e->unrest, e->policy.unrest_limit, unrest_window(e), e->now);
    unrest = hf_unrest_holds(&e->unrest, unrest_window(e), e->now);
    hf_storm_on_doubt(&e->storm, unrest ? HF_STORM_DOUBT_UNREST : HF_STORM_DOUBT_TERM,
                      e->longest_ttl, e->now);
}

/* What its members say depends on whom one asks: an agent that is gone may be there, and a
 * compare that holds may not. Whatever is due waits, and is judged with doubt afterwards. */
void hf_engine_note_corrupt(struct hf_engine *e, bool corrupt)
{
    e->corrupt = corrupt;
    e->corrupt_told = e->corrupt_told && corrupt;
    if (!corrupt)
        return;
    hf_storm_on_doubt(&e->storm, HF_STORM_DOUBT_CORRUPT, e->longest_ttl, e->now);
    e->hears_since = e->now;
}

int hf_engine_decide_corrupt(struct hf_engine *e, struct hf_intent *ret)
{
    if (e->corrupt_told)
        return 0;
    e->corrupt_told = true;
    return hf_draft_alert(
        e, ret, &e->storm_item,
        &(struct hf_intent_alert){
            .kind = HOLDFAST__V1__EVENT__KIND__storm,
            .why = "members of etcd have different data (its alarm CORRUPT): nothing is reset "
                   "or started",
            .next =
                "repair etcd: `etcdctl alarm list` names the member; replace it, or restore "
                "a snapshot, then `etcdctl alarm disarm`" });
}

static int alert_unrest(struct hf_engine *e, struct hf_intent *ret)
{
    return hf_draft_alert(
        e, ret, &e->storm_item,
        &(struct hf_intent_alert){
            .kind = HOLDFAST__V1__EVENT__KIND__storm,
            .why = "etcd changes its leader again and again; leases of dead hosts may not "
                   "expire",
            .next =
                "bring etcd to rest: its disks, its network; `etcdctl lease revoke` ends the "
                "lease of a host that is known to be dead" });
}

/* The last word of a person that the audit trail has. */
static void obey(struct hf_engine *e)
{
    bool held = hf_storm_get(&e->storm, e->now).by_person;

    if (e->word_seq == 0 || e->word_holds == held)
        return;
    if (e->word_holds)
        hf_storm_on_hold(&e->storm, e->now);
    else
        hf_storm_on_proceed(&e->storm, e->now);
}

void hf_engine_begin_storm(struct hf_engine *e)
{
    hf_storm_on_begin(&e->storm, e->now);
    if (e->facts.hosts > e->facts.live)
        hf_storm_on_lost(&e->storm, e->facts.hosts - e->facts.live, &e->facts, e->now);
    obey(e);
    /* A storm that goes on is the same storm, whoever leads. */
    if (hf_storm_get(&e->storm, e->now).state <= e->storm_told)
        (void)hf_storm_take_alert(&e->storm);
    e->storm_state = e->storm_told;
}

/* "FULL: no host is live", as record_storm() writes it. */
static void note_told(struct hf_engine *e, int64_t seq, const Holdfast__V1__Event *event)
{
    const char *colon = strchr(event->why, ':');

    if (seq < e->storm_seq || colon == NULL)
        return;
    e->storm_seq = seq;
    e->storm_told = HF_STORM_NORMAL;
    e->storm_person = strcmp(colon, ": a person holds it") == 0;
    e->storm_until = event->next != NULL && event->next->at != NULL
                         ? hf_moment_read(event->next->at)
                         : HF_STORM_NEVER;
    for (int state = HF_STORM_PARTIAL; state <= (int)HF_STORM_FULL; state++) {
        const char *name = hf_storm_state_name((enum hf_storm_state)state);

        if (strlen(name) == (size_t)(colon - event->why) &&
            strncmp(name, event->why, strlen(name)) == 0)
            e->storm_told = (enum hf_storm_state)state;
    }
}

/* Before everything was told, a later word may follow: then it is obeyed when we begin. */
static void note_word(struct hf_engine *e, int64_t seq, const char *why)
{
    bool holds = strcmp(why, HF_STORM_WORD_HOLD) == 0;

    if (seq <= e->word_seq || (!holds && strcmp(why, HF_STORM_WORD_PROCEED) != 0))
        return;
    e->word_seq = seq;
    e->word_holds = holds;
    if (!e->synced)
        return;
    if (!holds)
        hf_storm_on_proceed(&e->storm, e->now);
    obey(e);
    hf_agenda_add(&e->agenda, &e->storm_item.agenda);
}

/* What a person holds must not be let go because the entry that says so falls out of the ring.
 */
static bool is_word_old(const struct hf_engine *e)
{
    return e->word_seq != 0 && e->word_holds &&
           e->event_seq - e->word_seq >= e->policy.ring / 2;
}

void hf_engine_note_storm(struct hf_engine *e, int64_t seq, const Holdfast__V1__Event *event)
{
    if (event->kind == HOLDFAST__V1__EVENT__KIND__storm)
        note_told(e, seq, event);
    if (event->kind == HOLDFAST__V1__EVENT__KIND__operator)
        note_word(e, seq, event->why);
    if (is_word_old(e))
        hf_agenda_add(&e->agenda, &e->storm_item.agenda);
}

bool hf_engine_is_granted(struct hf_engine *e, struct hf_agent *agent,
                          const struct hf_death *death)
{
    struct hf_agent_state *state = hf_agent_state(agent);

    if (death->seen || hf_mutated(e, HF_MUTANT_NO_STORM))
        return true;
    /* What was allowed for one life is allowed for those before it, not for the next. */
    if (state->asks_for < death->life + 1) {
        state->asks_for = death->life + 1;
        state->granted = false;
    }
    if (state->granted)
        return true;
    hf_engine_wait_in(&e->paced, state);
    hf_agenda_add(&e->agenda, &e->storm_item.agenda);
    return false;
}

/* Lets those go that may, in the order in which they came. */
static void grant(struct hf_engine *e)
{
    uint32_t agents = (uint32_t)hf_fleet_get_counts(e->fleet).agents;

    while (e->paced.first != NULL) {
        struct hf_agent_state *state = e->paced.first;
        struct hf_agent *agent = state->item.object;
        struct hf_storm_decision d;

        if (agent->live.record != NULL && agent->tasks == NULL) {
            hf_engine_wait_out(state);
            continue;
        }
        d = hf_storm_take(&e->storm, HF_STORM_RESTART_UNSEEN, agents, e->now);
        if (!d.allowed) {
            hf_engine_wake(e, &e->storm_item, d.at);
            return;
        }
        hf_engine_wait_out(state);
        state->granted = true;
        hf_agenda_add(&e->agenda, &state->item.agenda);
        for (struct hf_task *task = agent->tasks; task != NULL; task = task->next_owned)
            hf_agenda_add(&e->agenda, &hf_task_state(task)->item.agenda);
    }
}

static int alert_storm(struct hf_engine *e, const struct hf_storm_view *view,
                       struct hf_intent *ret)
{
    return hf_draft_alert(e, ret, &e->storm_item,
                          &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__storm,
                                                     .why = view->why,
                                                     .next = view->next });
}

/* The audit trail tells of a storm that begins, becomes worse or ends. */
static int record_storm(struct hf_engine *e, const struct hf_storm_view *view,
                        struct hf_intent *ret)
{
    int rc;

    hf_draft_begin(e, ret);
    hf_draft_event(
        e, ret,
        &(struct hf_draft_event){
            .kind = HOLDFAST__V1__EVENT__KIND__storm,
            .why = hf_draft_why(e, "%s: %s", hf_storm_state_name(view->state), view->why),
            .next = view->next,
            .next_at = view->at });
    hf_row_lead(&ret->plan, &e->term);
    rc = hf_draft_end(e, ret, &e->storm_item, NULL, e->why);
    if (rc == 1) {
        e->storm_state = view->state;
        e->storm_person = view->by_person;
        e->storm_until = view->at == HF_STORM_NEVER ? view->at : e->wall + (view->at - e->now);
    }
    return rc;
}

static int repeat_word(struct hf_engine *e, struct hf_intent *ret)
{
    static const char WHY[] = "what a person said long ago still holds";

    hf_draft_begin(e, ret);
    hf_draft_event(e, ret,
                   &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__operator,
                                             .why = HF_STORM_WORD_HOLD,
                                             .next = "`holdfast storm proceed` lets it go on",
                                             .source = "audit trail",
                                             .evidence = WHY });
    hf_row_lead(&ret->plan, &e->term);
    return hf_draft_end(e, ret, &e->storm_item, NULL, WHY);
}

/* Whether what the audit trail tells of the storm is not so, or not any more. */
static bool is_to_tell(const struct hf_engine *e, const struct hf_storm_view *view)
{
    if (view->state != e->storm_state || view->by_person != e->storm_person)
        return true;
    return view->state != HF_STORM_NORMAL && e->wall >= e->storm_until;
}

int hf_engine_decide_storm(struct hf_engine *e, struct hf_intent *ret)
{
    struct hf_storm_view view = hf_storm_get(&e->storm, e->now);

    if (hf_storm_take_alert(&e->storm))
        return alert_storm(e, &view, ret);
    if (hf_unrest_take_alert(&e->unrest, unrest_window(e), e->now))
        return alert_unrest(e, ret);
    if (is_to_tell(e, &view))
        return record_storm(e, &view, ret);
    if (is_word_old(e))
        return repeat_word(e, ret);
    grant(e);
    if (view.at != HF_STORM_NEVER)
        hf_engine_wake(e, &e->storm_item, view.at > e->now ? view.at : e->now + 1000);
    return 0;
}
