#include <stddef.h>

#include "core/engine_private.h"

enum { MOST_REFUSALS = 7 }; /* that make the pause longer */

bool hf_flight_is_free(const struct hf_engine *e)
{
    return e->flight_count < HF_ENGINE_FLIGHTS;
}

static struct hf_flight *find_free(struct hf_engine *e)
{
    size_t i = 0;

    while (e->flights[i].phase != HF_FLIGHT_FREE)
        i++;
    return &e->flights[i];
}

void hf_flight_begin(struct hf_engine *e, struct hf_item *item, struct hf_item *other,
                     struct hf_intent *intent)
{
    struct hf_flight *flight = find_free(e);
    uint16_t number = (uint16_t)(flight - e->flights + 1);

    *flight = (struct hf_flight){ .token = ++e->last_token * HF_ENGINE_FLIGHTS + number - 1,
                                  .items = { item, other },
                                  .phase = HF_FLIGHT_OUT,
                                  .tail_from = e->drafted_tail };
    e->drafted_tail = 0;
    item->flight = number;
    if (other != NULL)
        other->flight = number;
    intent->token = flight->token;
    e->flight_count++;
}

/* Its objects are looked at again; those of an agent with it, since they waited for it. */
static void release(struct hf_engine *e, struct hf_flight *flight)
{
    for (size_t i = 0; i < HF_FLIGHT_ITEMS; i++) {
        struct hf_item *item = flight->items[i];
        const struct hf_agent *agent;

        if (item == NULL)
            continue;
        item->flight = 0;
        hf_agenda_add(&e->agenda, &item->agenda);
        agent = item->kind == HF_ITEM_AGENT ? item->object : NULL;
        for (struct hf_task *task = agent != NULL ? agent->tasks : NULL; task != NULL;
             task = task->next_owned)
            hf_agenda_add(&e->agenda, &hf_task_state(task)->item.agenda);
    }
    if (flight->phase == HF_FLIGHT_RESTING)
        e->resting_count--;
    flight->phase = HF_FLIGHT_FREE;
    e->flight_count--;
}

static void rest(struct hf_engine *e, struct hf_flight *flight, int64_t revision, hf_ms until)
{
    flight->phase = HF_FLIGHT_RESTING;
    flight->revision = revision;
    flight->until = until;
    e->resting_count++;
    if (revision < e->rest_rev)
        e->rest_rev = revision;
    if (until < e->rest_until)
        e->rest_until = until;
}

/* Once is a race that somebody else won. Again, without anything new being told, is something
 * that we do not know: that we lead no more, say. 0: no need to wait. */
static hf_ms refusal_pause(const struct hf_engine *e, struct hf_item *item)
{
    hf_ms pause = e->policy.unknown_pause / 8 + 1;
    uint8_t count = item->refused++;

    if (count == 0)
        return 0;
    if (item->refused > MOST_REFUSALS)
        item->refused = MOST_REFUSALS;
    return pause << (count - 1);
}

void hf_flight_on_outcome(struct hf_engine *e, const struct hf_event_outcome *outcome)
{
    struct hf_flight *flight = &e->flights[outcome->token % HF_ENGINE_FLIGHTS];
    bool answered =
        outcome->outcome == HF_OUTCOME_DONE || outcome->outcome == HF_OUTCOME_REFUSED;
    hf_ms pause = 0;

    if (flight->phase != HF_FLIGHT_OUT || flight->token != outcome->token)
        return;
    /* What was to be deleted from the audit trail stands, perhaps: the next one deletes it. */
    if (outcome->outcome != HF_OUTCOME_DONE && flight->tail_from != 0 &&
        flight->tail_from < e->event_tail)
        e->event_tail = flight->tail_from;
    e->wrote = answered;
    e->wrote_at = e->now;
    if (outcome->outcome == HF_OUTCOME_DONE && flight->items[0] != NULL)
        flight->items[0]->refused = 0;
    if (outcome->outcome == HF_OUTCOME_REFUSED && flight->items[0] != NULL)
        pause = refusal_pause(e, flight->items[0]);
    if (pause > 0)
        rest(e, flight, INT64_MAX, e->now + pause);
    else if (answered && hf_mutated(e, HF_MUTANT_NO_REST))
        rest(e, flight, 0, e->now);
    else if (answered)
        rest(e, flight, outcome->revision, e->now + e->policy.told_within);
    else
        rest(e, flight, INT64_MAX, e->now + e->policy.unknown_pause);
}

void hf_flight_settle(struct hf_engine *e)
{
    if (e->told_rev < e->rest_rev && e->now < e->rest_until)
        return;
    e->rest_rev = INT64_MAX;
    e->rest_until = HF_ENGINE_NEVER;
    for (size_t i = 0; i < HF_ENGINE_FLIGHTS && e->resting_count > 0; i++) {
        struct hf_flight *flight = &e->flights[i];

        if (flight->phase != HF_FLIGHT_RESTING)
            continue;
        if (e->told_rev >= flight->revision || e->now >= flight->until) {
            release(e, flight);
            continue;
        }
        if (flight->revision < e->rest_rev)
            e->rest_rev = flight->revision;
        if (flight->until < e->rest_until)
            e->rest_until = flight->until;
    }
}

void hf_flight_forget(struct hf_engine *e, struct hf_item *item)
{
    struct hf_flight *flight = item->flight != 0 ? &e->flights[item->flight - 1] : NULL;

    for (size_t i = 0; flight != NULL && i < HF_FLIGHT_ITEMS; i++) {
        if (flight->items[i] == item)
            flight->items[i] = NULL;
    }
    item->flight = 0;
}

hf_ms hf_flight_deadline(const struct hf_engine *e)
{
    if (e->resting_count > 0 && e->told_rev >= e->rest_rev)
        return e->now;
    return e->rest_until;
}
