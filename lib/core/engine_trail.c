#include <string.h>

#include "core/engine_private.h"

/* What others did is told by whoever acts on it, in the same write. What nobody acts on (an
 * agent that joins, a task that is submitted or ends) waits here for a moment, and is then told
 * in a small write of its own, a few at a time: it must neither come before the work nor push
 * what matters out of the ring. Every controller keeps these notes and drops those that the
 * leader has told, so that the next leader goes on where this one stopped. */

#define DELAY      1000         /* in which an action may tell of it */
#define TOO_OLD    60000        /* it is history by then */
#define RATE       2            /* notes in a second, ... */
#define BURST      INT64_C(200) /* ... saved up while there were none */
#define EVENT_MOST 5            /* in one plan, with what they push out of the ring */

static void drop(struct hf_trail *trail, size_t i)
{
    trail->count--;
    memmove(&trail->notes[i], &trail->notes[i + 1],
            (trail->count - i) * sizeof trail->notes[0]);
}

void hf_trail_note(struct hf_engine *e, Holdfast__V1__Event__Kind kind, struct hf_item *item,
                   int64_t rev)
{
    struct hf_trail *trail = &e->trail;

    if (trail->count == HF_TRAIL_NOTES) {
        trail->left_out++;
        drop(trail, 0);
    }
    trail->notes[trail->count++] =
        (struct hf_trail_note){ .item = item, .rev = rev, .at = e->now, .kind = (uint8_t)kind };
    hf_engine_wake(e, &e->trail_item, e->now + DELAY);
}

void hf_trail_forget(struct hf_engine *e, const struct hf_item *item)
{
    for (size_t i = e->trail.count; i-- > 0;) {
        if (e->trail.notes[i].item == item)
            drop(&e->trail, i);
    }
}

static const char *name_of(const struct hf_item *item)
{
    return item->object != NULL ? *(const char *const *)item->object : "";
}

/* A life that is cleared of a suspicion need not be told to have joined. */
static bool tells_of(const Holdfast__V1__Event *event, const struct hf_trail_note *note)
{
    bool same = note->kind == (uint8_t)event->kind ||
                (note->kind == HOLDFAST__V1__EVENT__KIND__joined &&
                 event->kind == HOLDFAST__V1__EVENT__KIND__cleared);

    return same && event->revision >= note->rev &&
           strcmp(note->item->kind == HF_ITEM_TASK ? event->task : event->agent,
                  name_of(note->item)) == 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void note_told(struct hf_engine *e, const Holdfast__V1__Event *event)
{
    struct hf_agent *agent =
        event->agent[0] != '\0' ? hf_fleet_get_agent(e->fleet, event->agent) : NULL;
    struct hf_agent_state *state = agent != NULL ? hf_agent_state(agent) : NULL;

    if (state == NULL)
        return;
    if (event->kind == HOLDFAST__V1__EVENT__KIND__ended)
        state->end_told = larger(state->end_told, event->revision);
    if (event->kind == HOLDFAST__V1__EVENT__KIND__joined ||
        event->kind == HOLDFAST__V1__EVENT__KIND__cleared)
        state->join_told = larger(state->join_told, event->revision);
}

void hf_trail_on_event(struct hf_engine *e, const Holdfast__V1__Event *event)
{
    e->trail.revision = larger(e->trail.revision, event->revision);
    note_told(e, event);
    for (size_t i = e->trail.count; i-- > 0;) {
        if (tells_of(event, &e->trail.notes[i]))
            drop(&e->trail, i);
    }
}

bool hf_trail_has_note(const struct hf_engine *e, Holdfast__V1__Event__Kind kind,
                       const struct hf_item *item)
{
    for (size_t i = 0; i < e->trail.count; i++) {
        if (e->trail.notes[i].item == item && e->trail.notes[i].kind == (uint8_t)kind)
            return true;
    }
    return false;
}

bool hf_trail_knows_join(const struct hf_agent *agent)
{
    return hf_agent_state(agent)->join_told >= agent->live.seen.create_rev;
}

/* What happened after the newest entry, and before we were there. */
static void catch_up(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct hf_engine *e = arg;

    if (kind == HF_FLEET_AGENT) {
        const struct hf_agent *agent = object;

        if (agent->live.record != NULL && agent->live.seen.create_rev > e->trail.revision)
            hf_trail_note(e, HOLDFAST__V1__EVENT__KIND__joined, &hf_agent_state(agent)->item,
                          agent->live.seen.create_rev);
    } else if (kind == HF_FLEET_TASK) {
        const struct hf_task *task = object;

        if (task->task.record != NULL && task->task.seen.create_rev > e->trail.revision)
            hf_trail_note(e, HOLDFAST__V1__EVENT__KIND__submitted, &hf_task_state(task)->item,
                          task->task.seen.create_rev);
        if (task->task.record != NULL && task->task.seen.mod_rev > e->trail.revision)
            hf_trail_note_end(e, task);
    }
}

void hf_trail_begin(struct hf_engine *e)
{
    hf_fleet_each(e->fleet, HF_FLEET_AGENT, catch_up, e);
    hf_fleet_each(e->fleet, HF_FLEET_TASK, catch_up, e);
}

Holdfast__V1__Event__Kind hf_trail_kind_of_end(Holdfast__V1__Task__State state)
{
    switch (state) {
    case HOLDFAST__V1__TASK__STATE__completed: return HOLDFAST__V1__EVENT__KIND__completed;
    case HOLDFAST__V1__TASK__STATE__failed: return HOLDFAST__V1__EVENT__KIND__failed;
    default: return HOLDFAST__V1__EVENT__KIND__unknown;
    }
}

void hf_trail_note_end(struct hf_engine *e, const struct hf_task *task)
{
    Holdfast__V1__Event__Kind kind = hf_trail_kind_of_end(hf_task_record(task)->state);

    if (kind != HOLDFAST__V1__EVENT__KIND__unknown)
        hf_trail_note(e, kind, &hf_task_state(task)->item, task->task.seen.mod_rev);
}

/* Telling. */

void hf_trail_tell_task(struct hf_engine *e, const struct hf_task *task,
                        Holdfast__V1__Event__Kind kind, struct hf_intent *ret)
{
    const Holdfast__V1__Task *record = hf_task_record(task);
    const char *owner = record->owner != NULL ? record->owner->agent : "";

    if (kind == HOLDFAST__V1__EVENT__KIND__submitted)
        (void)hf_draft_why(e, "it was submitted for role %s", record->role);
    else if (kind == HOLDFAST__V1__EVENT__KIND__completed)
        (void)hf_draft_why(e, "it is completed%s%s", owner[0] != '\0' ? ", by " : "", owner);
    else
        (void)hf_draft_why(e, "it failed%s%s: %s", owner[0] != '\0' ? ", by " : "", owner,
                           record->reason[0] != '\0' ? record->reason : "no reason was given");
    hf_draft_event(e, ret,
                   &(struct hf_draft_event){
                       .kind = kind,
                       .agent = kind == HOLDFAST__V1__EVENT__KIND__submitted ? NULL : owner,
                       .task = task->name,
                       .why = e->why,
                       .next = kind == HOLDFAST__V1__EVENT__KIND__submitted
                                   ? "an agent of its role takes it"
                                   : NULL });
}

void hf_trail_tell_join(struct hf_engine *e, const struct hf_agent *agent,
                        struct hf_intent *ret)
{
    const Holdfast__V1__Live *live = hf_agent_live(agent);

    hf_draft_event(
        e, ret,
        &(struct hf_draft_event){
            .kind = HOLDFAST__V1__EVENT__KIND__joined,
            .agent = agent->name,
            .host = live->host,
            .why = "it is live",
            .source = "etcd",
            .evidence = hf_draft_evidence(e, "pid %d, live key of revision %lld on lease %llx",
                                          live->pid, (long long)agent->live.seen.create_rev,
                                          (unsigned long long)agent->live.seen.lease) });
}

static const char *end_text(const struct hf_death *death)
{
    if (!death->seen)
        return "it is given up: its lease is gone, and nobody saw its end";
    switch (death->kind) {
    case HOLDFAST__V1__EXIT__KIND__left: return "it said goodbye";
    case HOLDFAST__V1__EXIT__KIND__finished: return "it finished";
    case HOLDFAST__V1__EXIT__KIND__crashed: return "it crashed";
    case HOLDFAST__V1__EXIT__KIND__oom: return "it ran out of memory";
    case HOLDFAST__V1__EXIT__KIND__frozen: return "it was alive and did nothing any more";
    case HOLDFAST__V1__EXIT__KIND__fenced: return "its own agentd stopped it";
    case HOLDFAST__V1__EXIT__KIND__terminated: return "it was told to end";
    case HOLDFAST__V1__EXIT__KIND__start_failed: return "it could not be started";
    case HOLDFAST__V1__EXIT__KIND__unkillable: return "it does not end, not even by SIGKILL";
    default: return "it ended";
    }
}

void hf_trail_add_evidence(const struct hf_agent *agent, const struct hf_death *death,
                           struct hf_draft_event *event)
{
    const Holdfast__V1__Exit *exit = hf_agent_exit(agent);

    if (death->seen && exit != NULL && exit->n_evidence > 0) {
        event->source = exit->evidence[0]->source;
        event->evidence = exit->evidence[0]->text;
    } else if (!death->seen) {
        event->source = "etcd";
        event->evidence = agent->live.record != NULL
                              ? "its live key was created anew by the same process"
                              : "its live key is gone, and no exit was written";
    }
}

/* What was decided while nobody was live is older than the next life. */
void hf_trail_tell_end(struct hf_engine *e, const struct hf_agent *agent,
                       const struct hf_death *death, struct hf_intent *ret)
{
    struct hf_draft_event event = { .kind = HOLDFAST__V1__EVENT__KIND__ended,
                                    .agent = agent->name,
                                    .host = hf_death_host(e, agent),
                                    .why = end_text(death) };

    if (death->life == 0 || agent->live.record != NULL ||
        hf_agent_state(agent)->end_told >= hf_life_revision(death->life))
        return;
    hf_trail_add_evidence(agent, death, &event);
    hf_draft_event(e, ret, &event);
}

/* Whoever is about to act on it will tell of it. */
static bool is_ready(const struct hf_engine *e, const struct hf_trail_note *note)
{
    return e->now >= note->at + DELAY && note->item->flight == 0 &&
           !hf_agenda_is_queued(&e->agenda, &note->item->agenda);
}

/* It may have changed meanwhile. */
static bool still_holds(const struct hf_trail_note *note)
{
    const struct hf_agent *agent = note->item->object;

    if (note->item->kind == HF_ITEM_AGENT)
        return agent->live.record != NULL && agent->live.seen.create_rev == note->rev;
    return hf_task_record(note->item->object) != NULL;
}

static void clean(struct hf_engine *e)
{
    for (size_t i = e->trail.count; i-- > 0;) {
        bool old = e->now >= e->trail.notes[i].at + TOO_OLD;

        if (old || !still_holds(&e->trail.notes[i]))
            drop(&e->trail, i);
        e->trail.left_out += old;
    }
}

/* Thousandths of a note. */
static void save_up(struct hf_engine *e)
{
    struct hf_trail *trail = &e->trail;

    trail->saved += (e->now - trail->saved_at) * RATE;
    if (trail->saved > BURST * 1000 || trail->saved_at == 0)
        trail->saved = BURST * 1000;
    trail->saved_at = e->now;
}

static size_t choose(struct hf_engine *e, const struct hf_trail_note *ret[EVENT_MOST])
{
    size_t count = 0;

    for (size_t i = 0; i < e->trail.count && count < EVENT_MOST; i++) {
        if (e->trail.saved >= (int64_t)(count + 1) * 1000 && is_ready(e, &e->trail.notes[i]))
            ret[count++] = &e->trail.notes[i];
    }
    return count;
}

int hf_engine_decide_trail(struct hf_engine *e, struct hf_intent *ret)
{
    const struct hf_trail_note *chosen[EVENT_MOST];
    struct hf_trail *trail = &e->trail;
    const char *why = "what was seen is told";
    size_t count;

    clean(e);
    if (trail->count == 0)
        return 0;
    save_up(e);
    count = choose(e, chosen);
    hf_engine_wake(e, &e->trail_item, e->now + DELAY);
    if (count == 0)
        return 0;
    hf_draft_begin(e, ret);
    for (size_t i = 0; i < count; i++) {
        if (chosen[i]->item->kind == HF_ITEM_AGENT)
            hf_trail_tell_join(e, chosen[i]->item->object, ret);
        else
            hf_trail_tell_task(e, chosen[i]->item->object,
                               (Holdfast__V1__Event__Kind)chosen[i]->kind, ret);
    }
    trail->saved -= (int64_t)count * 1000;
    if (trail->left_out > 0)
        why = hf_draft_why(e, "what was seen is told; %llu were too many to be told of",
                           (unsigned long long)trail->left_out);
    trail->left_out = 0;
    hf_row_lead(&ret->plan, &e->term);
    return hf_draft_end(e, ret, &e->trail_item, NULL, why);
}
