#include "core/engine.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/engine_private.h"
#include "schema/json.h"

hf_ms hf_engine_clock(const struct hf_engine *e)
{
    return hf_clusterclock_now(&e->clock, e->now);
}

static bool is_active(const struct hf_engine *e)
{
    return e->term.lease != 0 && (e->synced || hf_mutated(e, HF_MUTANT_NO_SYNC));
}

void hf_engine_wake(struct hf_engine *e, struct hf_item *item, hf_ms at)
{
    if (at != HF_AGENDA_NEVER &&
        (!hf_agenda_is_timed(&e->agenda, &item->agenda) || at < item->agenda.at))
        hf_agenda_set_alarm(&e->agenda, &item->agenda, at);
}

/* Lists of agents that wait. */

void hf_engine_wait_out(struct hf_agent_state *state)
{
    struct hf_waiters *list = state->waits;

    if (list == NULL)
        return;
    *(state->wait_prev != NULL ? &state->wait_prev->wait_next : &list->first) =
        state->wait_next;
    *(state->wait_next != NULL ? &state->wait_next->wait_prev : &list->last) = state->wait_prev;
    list->count--;
    state->wait_next = state->wait_prev = NULL;
    state->waits = NULL;
}

void hf_engine_wait_in(struct hf_waiters *list, struct hf_agent_state *state)
{
    state->stays = true;
    if (state->waits == list)
        return;
    hf_engine_wait_out(state);
    state->wait_prev = list->last;
    *(list->last != NULL ? &list->last->wait_next : &list->first) = state;
    list->last = state;
    list->count++;
    state->waits = list;
}

void hf_engine_wake_list(struct hf_engine *e, struct hf_waiters *list, size_t most)
{
    for (struct hf_agent_state *state = list->first; state != NULL && most > 0;
         state = state->wait_next, most--)
        hf_agenda_add(&e->agenda, &state->item.agenda);
}

/* What the fleet tells. */

static bool note(struct hf_engine *e, enum hf_fleet_kind kind, void *object)
{
    switch (kind) {
    case HF_FLEET_AGENT: return hf_engine_note_agent(e, object);
    case HF_FLEET_HOST: return hf_engine_note_host(e, object);
    case HF_FLEET_TASK: return hf_engine_note_task(e, object);
    case HF_FLEET_ROLE: break;
    }
    return hf_engine_note_role(e, object);
}

static struct hf_item *item_of(enum hf_fleet_kind kind, void *object)
{
    switch (kind) {
    case HF_FLEET_AGENT: return &hf_agent_state(object)->item;
    case HF_FLEET_HOST: return &hf_host_state(object)->item;
    case HF_FLEET_TASK: return &hf_task_state(object)->item;
    case HF_FLEET_ROLE: break;
    }
    return &hf_role_state(object)->item;
}

static void on_touched(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct hf_engine *e = arg;
    struct hf_item *item = item_of(kind, object);

    if (item->object == NULL) {
        item->object = object;
        item->kind = (uint8_t)kind;
    }
    if (!note(e, kind, object))
        return;
    item->broken = false;
    if (is_active(e))
        hf_agenda_add(&e->agenda, &item->agenda);
}

static void on_gone(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct hf_engine *e = arg;
    struct hf_item *item = item_of(kind, object);

    hf_agenda_remove(&e->agenda, &item->agenda);
    hf_flight_forget(e, item);
    hf_trail_forget(e, item);
    if (kind == HF_FLEET_AGENT)
        hf_engine_wait_out(hf_agent_state(object));
    if (kind == HF_FLEET_HOST)
        hf_engine_remove_host(e, object);
    if (kind == HF_FLEET_TASK)
        hf_limit_forget_task(object);
    if (kind == HF_FLEET_ROLE) {
        hf_limit_forget_role(object);
        while (hf_role_state(object)->dormant.first != NULL)
            hf_engine_wait_out(hf_role_state(object)->dormant.first);
    }
}

/* Life. */

static void init_items(struct hf_engine *e)
{
    e->meta_item.kind = HF_ITEM_META;
    e->clock_item.kind = HF_ITEM_CLOCK;
    e->storm_item.kind = HF_ITEM_STORM;
    e->bad_item.kind = HF_ITEM_BAD;
    e->trail_item.kind = HF_ITEM_TRAIL;
}

struct hf_engine *hf_engine_new(const struct hf_engine_config *cfg)
{
    struct hf_engine *e = hf_calloc(1, sizeof *e);
    struct hf_fleet_config fleet = {
        .on_touched = on_touched,
        .on_gone = on_gone,
        .arg = e,
        .seed = cfg->seed,
        .user_size = { [HF_FLEET_AGENT] = sizeof(struct hf_agent_state),
                       [HF_FLEET_HOST] = sizeof(struct hf_host_state),
                       [HF_FLEET_TASK] = sizeof(struct hf_task_state),
                       [HF_FLEET_ROLE] = sizeof(struct hf_role_state) },
    };

    if (e == NULL)
        return NULL;
    e->policy = cfg->policy;
    e->stream = cfg->seed ^ 0x9e3779b97f4a7c15u;
    e->bad.seed = cfg->seed;
    e->mutants = cfg->mutants;
    e->rest_rev = INT64_MAX;
    e->rest_until = HF_ENGINE_NEVER;
    e->longest_ttl = cfg->policy.ttl;
    e->changing = HF_KEY_KINDS;
    hf_clusterclock_init(&e->clock, &e->policy.clock);
    init_items(e);
    e->ns = hf_strdup(cfg->ns);
    e->id = hf_strdup(cfg->id);
    e->fleet = hf_fleet_new(&fleet);
    if (e->ns == NULL || e->id == NULL || e->fleet == NULL) {
        hf_engine_free(e);
        return NULL;
    }
    return e;
}

void hf_engine_free(struct hf_engine *e)
{
    if (e == NULL)
        return;
    if (e->fleet != NULL)
        hf_fleet_free(e->fleet);
    hf_told_clear(e);
    hf_bad_clear(e);
    hf_index_done(&e->bad);
    free(e->hosts);
    free(e->ns);
    free(e->id);
    free(e);
}

/* Events. */

static void add_object(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct hf_engine *e = arg;

    hf_agenda_add(&e->agenda, &item_of(kind, object)->agenda);
}

/* From now on we act: everything is looked at, as if it had all just happened. Agents come
 * first, so that a task finds out what became of its owner. */
static void activate(struct hf_engine *e)
{
    e->hears_since = e->now;
    hf_engine_begin_storm(e);
    hf_told_clear(e); /* of an earlier term: whoever led since has told it, or not */
    hf_agenda_add(&e->agenda, &e->meta_item.agenda);
    hf_agenda_add(&e->agenda, &e->clock_item.agenda);
    hf_agenda_add(&e->agenda, &e->storm_item.agenda);
    hf_agenda_add(&e->agenda, &e->bad_item.agenda);
    hf_agenda_add(&e->agenda, &e->trail_item.agenda);
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE; kind++)
        hf_fleet_each(e->fleet, kind, add_object, e);
}

static void forget(struct hf_engine *e)
{
    hf_fleet_clear(e->fleet);
    hf_told_clear(e);
    hf_bad_clear(e);
    e->synced = false;
    e->told_rev = 0;
    e->trail.count = 0;
    e->trail.revision = 0;
    e->event_seq = e->event_tail = e->storm_seq = e->word_seq = 0;
    e->storm_told = HF_STORM_NORMAL;
    e->storm_person = false;
    e->facts = (struct hf_storm_facts){ 0 };
}

/* Generations up to the one that we knew belong to what is void now. */
static void on_history_reset(struct hf_engine *e)
{
    if (e->generation > e->generation_floor)
        e->generation_floor = e->generation;
    e->history_reset = true;
    e->cluster_id[0] = '\0';
    forget(e);
    hf_clusterclock_on_history_reset(&e->clock);
    hf_storm_on_doubt(&e->storm, HF_STORM_DOUBT_HISTORY, e->longest_ttl, e->now);
}

static void note_event_key(struct hf_engine *e, const struct hf_fleet_change *change)
{
    if (change->record == NULL)
        return;
    if (change->key.seq > e->event_seq)
        e->event_seq = change->key.seq;
    if (e->event_tail == 0 || change->key.seq < e->event_tail)
        e->event_tail = change->key.seq;
    hf_engine_note_storm(e, change->key.seq, (const Holdfast__V1__Event *)change->record);
    hf_trail_on_event(e, (const Holdfast__V1__Event *)change->record);
}

/* HF_EHISTORY when the cluster clock or meta contradict what was seen before. */
static int note_singleton(struct hf_engine *e, const struct hf_fleet_change *change)
{
    const Holdfast__V1__Meta *meta = (const Holdfast__V1__Meta *)change->record;
    const Holdfast__V1__Clock *clock = (const Holdfast__V1__Clock *)change->record;

    if (change->key.kind == HF_KEY_CLOCK) {
        hf_agenda_add(&e->agenda, &e->clock_item.agenda);
        return clock == NULL
                   ? hf_clusterclock_on_absent(&e->clock)
                   : hf_clusterclock_on_observed(&e->clock, hf_moment_read(clock->now),
                                                 change->seen.mod_rev,
                                                 strcmp(clock->leader, e->id) == 0, e->now);
    }
    hf_agenda_add(&e->agenda, &e->meta_item.agenda);
    if (meta == NULL || (e->cluster_id[0] != '\0' && (strncmp(e->cluster_id, meta->cluster_id,
                                                              sizeof e->cluster_id - 1) != 0 ||
                                                      meta->generation < e->generation)))
        return HF_EHISTORY;
    strncpy(e->cluster_id, meta->cluster_id, sizeof e->cluster_id - 1);
    e->generation = meta->generation;
    return HF_OK;
}

static int take_change(struct hf_engine *e, struct hf_fleet_change *change)
{
    bool is_host = change->key.kind == HF_KEY_HOST_LIVE ||
                   change->key.kind == HF_KEY_HOST_RECORD ||
                   change->key.kind == HF_KEY_AGENT_LIVE || change->key.kind == HF_KEY_COMMAND;
    int err = HF_OK;

    if (is_host && change->record != NULL)
        err = hf_engine_reserve_host(e);
    if (err != HF_OK)
        return err;
    if (change->key.kind == HF_KEY_META || change->key.kind == HF_KEY_CLOCK) {
        err = note_singleton(e, change);
        if (err != HF_OK) {
            hf_json_free(change->record);
            on_history_reset(e);
            return HF_EHISTORY;
        }
    }
    if (change->key.kind == HF_KEY_EVENT)
        note_event_key(e, change);
    e->changing = change->key.kind;
    err = hf_fleet_apply(e->fleet, change);
    e->changing = HF_KEY_KINDS;
    if (err != HF_OK)
        return err;
    if (change->seen.mod_rev > e->told_rev)
        e->told_rev = change->seen.mod_rev;
    if (e->bad.count > 0)
        hf_bad_forget(e, &change->key);
    return HF_OK;
}

static int on_synced(struct hf_engine *e, int64_t revision)
{
    if (revision > e->told_rev)
        e->told_rev = revision;
    if (e->synced)
        return HF_OK;
    e->synced = true;
    e->synced_at = e->now;
    if (hf_fleet_get_clock(e->fleet)->record == NULL &&
        hf_clusterclock_on_absent(&e->clock) != HF_OK) {
        on_history_reset(e);
        return HF_EHISTORY;
    }
    hf_trail_begin(e);
    if (e->term.lease != 0)
        activate(e);
    return HF_OK;
}

static void on_term(struct hf_engine *e, const struct hf_term *term)
{
    bool other = term->lease != e->term.lease || term->create_rev != e->term.create_rev;

    e->term = *term;
    if (other && is_active(e))
        activate(e);
}

static void on_cluster(struct hf_engine *e, const struct hf_event_cluster *cluster)
{
    bool writes = e->wrote && e->now <= e->wrote_at + 2 * e->policy.clock.interval;
    bool well = cluster->agrees && !cluster->no_space && !cluster->corrupt && writes &&
                hf_tilt_can_judge(&e->tilt, e->now);

    if (cluster->raft_term > e->raft_term && e->raft_term != 0)
        hf_engine_note_raft(e);
    if (cluster->raft_term > e->raft_term)
        e->raft_term = cluster->raft_term;
    if (cluster->no_space) {
        hf_storm_on_doubt(&e->storm, HF_STORM_DOUBT_SPACE, e->longest_ttl, e->now);
        e->hears_since = e->now;
    }
    hf_engine_note_corrupt(e, cluster->corrupt);
    hf_storm_on_proof(&e->storm, well, e->now);
    hf_agenda_add(&e->agenda, &e->storm_item.agenda);
}

static void tick(struct hf_engine *e, hf_ms now)
{
    e->now = now;
    if (!e->ticking) {
        hf_tilt_init(&e->tilt, &e->policy.tilt, now);
        hf_storm_init(&e->storm, &e->policy.storm, now);
        e->ticking = true;
    }
    if (now - e->tilt.last >= e->policy.tilt.tick)
        hf_tilt_on_tick(&e->tilt, now);
}

int hf_engine_step(struct hf_engine *e, struct hf_event *event, hf_ms now)
{
    tick(e, now);
    switch (event->kind) {
    case HF_EVENT_CHANGE: return take_change(e, &event->change);
    case HF_EVENT_BAD: return hf_bad_note(e, &event->bad);
    case HF_EVENT_SYNCED: return on_synced(e, event->revision);
    case HF_EVENT_FORGET: forget(e); break;
    case HF_EVENT_RESET: on_history_reset(e); break;
    case HF_EVENT_OUTCOME: hf_flight_on_outcome(e, &event->outcome); break;
    case HF_EVENT_CLUSTER: on_cluster(e, &event->cluster); break;
    case HF_EVENT_TERM: on_term(e, &event->term); break;
    case HF_EVENT_TIME:
    case HF_EVENT_LEASE:
    case HF_EVENT_ANSWER:
    case HF_EVENT_PROCESS:
    case HF_EVENT_VERIFIED:
    case HF_EVENT_ASK: break;
    }
    return HF_OK;
}

/* Intents. */

int hf_engine_decide_waiting(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    int rc;

    state->stays = false;
    rc = hf_engine_decide_agent(e, agent, ret);
    if (!state->stays)
        hf_engine_wait_out(state);
    return rc;
}

static int decide(struct hf_engine *e, struct hf_item *item, struct hf_intent *ret)
{
    if (item->flight != 0 || item->broken)
        return 0;
    hf_agenda_set_alarm(&e->agenda, &item->agenda, HF_AGENDA_NEVER);
    switch (item->kind) {
    case HF_ITEM_AGENT: return hf_engine_decide_waiting(e, item->object, ret);
    case HF_ITEM_TASK: return hf_engine_decide_task(e, item->object, ret);
    case HF_ITEM_ROLE: return hf_engine_decide_role(e, item->object, ret);
    case HF_ITEM_META: return hf_engine_decide_meta(e, ret);
    case HF_ITEM_CLOCK: return hf_engine_decide_clock(e, ret);
    case HF_ITEM_STORM: return hf_engine_decide_storm(e, ret);
    case HF_ITEM_BAD: return hf_engine_decide_bad(e, ret);
    case HF_ITEM_TRAIL: return hf_engine_decide_trail(e, ret);
    default: return 0;
    }
}

/* Without meta no life has a number, and without the clock no time can be stored: these two
 * come before everything else. */
static int decide_first(struct hf_engine *e, struct hf_intent *ret)
{
    int rc = e->meta_item.flight == 0 ? hf_engine_decide_meta(e, ret) : 0;

    if (rc == 0 && e->clock_item.flight == 0 && hf_flight_is_free(e))
        rc = hf_engine_decide_clock(e, ret);
    return rc;
}

int hf_engine_next(struct hf_engine *e, hf_ms now, hf_ms wall, uint32_t random,
                   struct hf_intent *ret)
{
    struct hf_agenda_item *item;
    int rc = 0;

    tick(e, now);
    e->wall = wall;
    e->random = random;
    if (e->resting_count > 0)
        hf_flight_settle(e);
    if (!is_active(e) || !hf_flight_is_free(e))
        return 0;
    if (e->corrupt)
        return hf_engine_decide_corrupt(e, ret);
    if (!hf_engine_is_ready(e))
        return decide_first(e, ret);
    while (rc == 0 && hf_flight_is_free(e) &&
           (item = hf_agenda_take(&e->agenda, now)) != NULL) {
        rc = decide(e, (struct hf_item *)item, ret);
        if (rc < 0)
            hf_agenda_add_first(&e->agenda, item);
    }
    return rc;
}

static hf_ms sooner(hf_ms a, hf_ms b)
{
    return a < b ? a : b;
}

hf_ms hf_engine_deadline(const struct hf_engine *e, hf_ms now)
{
    hf_ms at = e->ticking ? e->tilt.last + e->policy.tilt.tick : now;

    at = sooner(at, hf_flight_deadline(e));
    if (is_active(e) && hf_flight_is_free(e)) {
        if (e->corrupt)
            at = e->corrupt_told ? at : now;
        else if (hf_engine_is_ready(e))
            at = sooner(at, hf_agenda_deadline(&e->agenda, now));
        else if (hf_engine_is_due_first(e, now))
            at = now;
    }
    return at > now ? at : now;
}

const struct hf_fleet *hf_engine_get_fleet(const struct hf_engine *e)
{
    return e->fleet;
}
