#include <string.h>

#include "core/engine_private.h"

#define GENERATION_BITS 48
#define TTL_MAX         INT64_C(3600000) /* nobody is granted more; a record may say anything */

int64_t hf_life_number(int32_t generation, int64_t create_rev)
{
    /* Unsigned, because a record may say anything. */
    return (int64_t)(((uint64_t)generation << GENERATION_BITS) + (uint64_t)create_rev);
}

static int64_t number_of(const Holdfast__V1__Incarnation *life)
{
    return life != NULL ? hf_life_number(life->generation, life->create_revision) : 0;
}

static hf_ms duration(const Google__Protobuf__Duration *value)
{
    return value != NULL ? value->seconds * 1000 + value->nanos / 1000000 : 0;
}

/* How long a healthy client may need to find out that its lease is gone, and to be back or
 * fenced: a renewal's interval, one attempt, and some margin. */
static hf_ms grace_of(const struct hf_engine *e, const Holdfast__V1__Live *live)
{
    hf_ms ttl = live != NULL ? duration(live->ttl) : 0;

    if (hf_mutated(e, HF_MUTANT_NO_GRACE))
        return 0;
    if (ttl <= 0)
        ttl = e->policy.ttl;
    if (ttl > TTL_MAX)
        ttl = TTL_MAX;
    return ttl / 3 + ttl / 6 + e->policy.grace_margin;
}

/* Sets when a death that nobody saw may be judged. */
static void set_due(const struct hf_engine *e, struct hf_death *death, hf_ms grace)
{
    struct hf_storm_view storm = hf_storm_get(&e->storm, e->now);
    struct hf_tilt_view tilt = hf_tilt_get(&e->tilt, e->now);

    if (hf_mutated(e, HF_MUTANT_NO_STORM))
        storm = (struct hf_storm_view){ .anew = INT64_MIN, .grace_factor = 1 };
    if (death->since < storm.anew)
        death->since = storm.anew;
    death->due = hf_tilt_due(&e->tilt, death->since, grace * storm.grace_factor);
    death->why = "its lease is gone and nobody saw its end: it may be back";
    if (hf_mutated(e, HF_MUTANT_NO_TILT))
        death->due = death->since + grace * storm.grace_factor;
    else if (!tilt.can_judge && death->due < tilt.at) {
        death->due = tilt.at;
        death->why = tilt.why;
    }
}

/* An exit tells of a life, or of what was tried after it: nobody writes the exit of a life when
 * another one has begun. */
static bool exit_tells(const struct hf_engine *e, const struct hf_agent *agent, int64_t life,
                       int64_t life_rev)
{
    const Holdfast__V1__Exit *record = hf_agent_exit(agent);

    if (record == NULL)
        return false;
    if (hf_mutated(e, HF_MUTANT_ANY_EXIT))
        return true;
    if (record->incarnation != NULL && record->incarnation->create_revision != 0)
        return number_of(record->incarnation) >= life;
    return agent->exit.seen.mod_rev > life_rev;
}

static void set_seen(const struct hf_engine *e, const struct hf_agent *agent,
                     struct hf_death *death)
{
    death->seen = true;
    death->kind = hf_agent_exit(agent)->kind;
    if (!hf_heir_is_coming(e, agent, &death->due))
        death->due = e->now;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t owner_number(const struct hf_engine *e, const struct hf_task *task)
{
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    const Holdfast__V1__Incarnation *life = seen.task->owner->incarnation;

    return hf_life_number(life != NULL ? life->generation : e->generation,
                          hf_rows_owner_rev(&seen));
}

/* The newest life that anything tells of; a leader that has just begun finds it in records. */
static int64_t newest_life(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;
    int64_t life = hf_agent_gone_rev(agent) != 0
                       ? hf_life_number(e->generation, hf_agent_gone_rev(agent))
                       : 0;

    if (health != NULL)
        life = larger(life, health->incarnation);
    if (report != NULL)
        life = larger(life, number_of(report->incarnation));
    for (const struct hf_task *task = agent->tasks; task != NULL; task = task->next_owned)
        life = larger(life, owner_number(e, task));
    return life;
}

int64_t hf_life_revision(int64_t life)
{
    return life & ((INT64_C(1) << GENERATION_BITS) - 1);
}

struct hf_death hf_death_of_agent(const struct hf_engine *e, const struct hf_agent *agent)
{
    struct hf_death death = {
        .life = newest_life(e, agent),
        .kind = HOLDFAST__V1__EXIT__KIND__unreachable,
        .since = hf_agent_gone_rev(agent) != 0 ? hf_agent_gone_at(agent)
                                               : hf_agent_state(agent)->life_at,
    };

    if (exit_tells(e, agent, death.life, hf_life_revision(death.life)))
        set_seen(e, agent, &death);
    else
        set_due(e, &death, grace_of(e, hf_agent_past(agent)));
    return death;
}

/* Another process has the name: the one before is over, or it could not have it. */
static bool is_replaced(const struct hf_agent *agent, int64_t owner_rev)
{
    const Holdfast__V1__Live *past = hf_agent_past(agent), *live = hf_agent_live(agent);

    return live != NULL && past != NULL && hf_agent_past_rev(agent) == owner_rev &&
           strcmp(past->instance_id, live->instance_id) != 0;
}

bool hf_death_of_owner(const struct hf_engine *e, const struct hf_task *task,
                       struct hf_death *ret_death)
{
    const struct hf_agent *agent = task->owner;
    const struct hf_agent_state *state = hf_agent_state(agent);
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    int64_t rev = hf_rows_owner_rev(&seen);
    struct hf_death death = {
        .life = owner_number(e, task),
        .kind = HOLDFAST__V1__EXIT__KIND__unreachable,
    };

    if (agent->live.record != NULL && agent->live.seen.create_rev <= rev)
        return false;
    if (exit_tells(e, agent, death.life, rev)) {
        set_seen(e, agent, &death);
    } else if (is_replaced(agent, rev)) {
        death.seen = true;
        death.kind = HOLDFAST__V1__EXIT__KIND__unknown;
        death.due = e->now;
    } else if (agent->live.record != NULL) {
        death.since = state->life_at;
        set_due(e, &death, grace_of(e, hf_agent_live(agent)));
        if (hf_mutated(e, HF_MUTANT_NO_ADOPT_GRACE))
            death.due = e->now;
        death.why = "it is back as another life, and may adopt the task";
    } else {
        death.since = hf_agent_gone_rev(agent) != 0 ? hf_agent_gone_at(agent) : state->life_at;
        set_due(e, &death, grace_of(e, hf_agent_past(agent)));
    }
    *ret_death = death;
    return true;
}

const char *hf_death_host(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const Holdfast__V1__Live *past = hf_agent_past(agent);
    bool stored = health != NULL && health->host[0] != '\0';

    /* A start was ordered after the life that health knows of; a life that it does not know of
     * began after that. */
    if (past != NULL && past->host[0] != '\0' &&
        (!stored ||
         hf_life_number(e->generation, hf_agent_past_rev(agent)) > health->incarnation))
        return past->host;
    if (stored)
        return health->host;
    return spec != NULL && spec->home[0] != '\0' ? spec->home : NULL;
}

bool hf_death_is_on_hold(const struct hf_engine *e, const struct hf_agent *agent,
                         const struct hf_death *death)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const Holdfast__V1__Host *record;
    const struct hf_host *host;
    const char *name;

    if (hf_mutated(e, HF_MUTANT_NO_HOLD))
        return false;
    if (death->seen || spec == NULL || spec->fence != HOLDFAST__V1__SPEC__FENCE__hold)
        return false;
    name = hf_death_host(e, agent);
    host = name != NULL ? hf_fleet_get_host(e->fleet, name) : NULL;
    record = host != NULL ? hf_host_record(host) : NULL;
    /* Lost, a person says: its record is removed, or says that it left. */
    if (record == NULL || record->left)
        return false;
    if (host->live.record == NULL)
        return true;
    /* It is back, and has as long as anybody to register what it held through. */
    return e->now < hf_host_state(host)->live_at + grace_of(e, hf_agent_past(agent));
}
