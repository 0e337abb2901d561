#include <string.h>

#include "core/chain.h"
#include "core/engine_private.h"

#define WORKS_AFTER 1000 /* what is done sooner is not worth a write */

/* Leave to succeed. A life that is at work, and would be started again at once and where it is
 * if it crashed now, is given leave in its health record: its agentd then needs no order. One
 * start follows from it at most, because the leave names that life; it is counted before
 * anything else is decided about the agent, and whoever was started again has no leave until
 * that is forgotten. So limits and backoff hold from the second end on as they do without. */

static const Holdfast__V1__Exit__Succession *succession_of(const struct hf_agent *agent)
{
    const Holdfast__V1__Exit *exit = hf_agent_exit(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);

    return exit != NULL && exit->succession != NULL && health != NULL && health->heir_of != 0 &&
                   exit->succession->heir_of == health->heir_of
               ? exit->succession
               : NULL;
}

bool hf_heir_is_uncounted(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Exit__Succession *succession = succession_of(agent);

    return succession != NULL && succession->done && !hf_mutated(e, HF_MUTANT_NO_HEIR_COUNT);
}

bool hf_heir_is_coming(const struct hf_engine *e, const struct hf_agent *agent, hf_ms *ret_due)
{
    const Holdfast__V1__Exit__Succession *succession = succession_of(agent);
    hf_ms since = hf_agent_gone_rev(agent) != 0 ? hf_agent_gone_at(agent)
                                                : hf_agent_state(agent)->life_at;

    if (succession == NULL || succession->done || agent->live.record != NULL)
        return false;
    *ret_due = since + e->policy.heir_within;
    return e->now < *ret_due;
}

/* Giving it. */

static bool is_at_home(const struct hf_agent *agent)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const struct hf_host *host = agent->host;
    const Holdfast__V1__Host *record = host != NULL ? hf_host_record(host) : NULL;

    return record != NULL && host->live.record != NULL && !record->cordoned && !record->left &&
           (spec->home[0] == '\0' || strcmp(spec->home, host->name) == 0);
}

static bool is_running_wanted(const struct hf_agent *agent)
{
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);

    return wanted == NULL || wanted->state == HOLDFAST__V1__WANTED__STATE__running;
}

/* It would be ordered back at once. */
static bool is_first_restart(const struct hf_engine *e, const struct hf_agent *agent)
{
    struct hf_restart r = hf_health_get_restart(hf_agent_health(agent));
    struct hf_restart_decision d;

    if (r.planned || hf_backoff_count(&r.starts, e->policy.restart.window, hf_engine_clock(e)))
        return false;
    d = hf_restart_decide(
        &r, &e->policy.restart,
        &(struct hf_restart_case){ .death = HOLDFAST__V1__EXIT__KIND__crashed,
                                   .restart = hf_agent_spec(agent)->restart,
                                   .wanted = HOLDFAST__V1__WANTED__STATE__running },
        hf_engine_clock(e), 0);
    return d.verdict == HF_RESTART_START_AT && d.at <= hf_engine_clock(e);
}

/* Not that of a life before, which it may adopt. */
static bool is_its_own(const struct hf_agent *agent, const struct hf_task *task)
{
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };

    return hf_rows_owner_rev(&seen) == agent->live.seen.create_rev;
}

/* Its only task was never recovered, and would be kept for its successor. */
static bool is_first_recovery(const struct hf_engine *e, const struct hf_agent *agent,
                              int64_t life)
{
    const struct hf_task *task = agent->tasks;
    struct hf_recover recover = hf_recover_load(NULL);
    struct hf_recover_agent counted;
    struct hf_recover_decision d;

    if (task == NULL || task->next_owned != NULL || hf_task_record(task)->attempt != 0 ||
        hf_task_recovery(task) != NULL || !is_its_own(agent, task))
        return false;
    counted = hf_recover_agent_load(hf_agent_health(agent));
    d = hf_recover_decide(&recover, &counted, &e->policy.recover,
                          &(struct hf_recover_case){ .incarnation = life,
                                                     .death = HOLDFAST__V1__EXIT__KIND__crashed,
                                                     .successor = true },
                          hf_engine_clock(e), 0);
    return d.verdict == HF_RECOVER_NOW && d.reserved;
}

int64_t hf_heir_get_leave(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    int64_t life = hf_life_number(e->generation, agent->live.seen.create_rev);

    if (hf_heir_is_uncounted(e, agent))
        return health->heir_of;
    if (e->policy.heir_within == 0 || agent->live.record == NULL || spec == NULL ||
        agent->live.seen.lease == 0 || agent->commands != NULL || spec->max_tasks > 1 ||
        spec->starter == HOLDFAST__V1__SPEC__STARTER__external || !is_running_wanted(agent) ||
        (health != NULL && health->end_upto >= life) || !is_at_home(agent) ||
        !is_first_restart(e, agent) || !is_first_recovery(e, agent, life))
        return 0;
    return life;
}

/* It has begun with its task, and not only now. */
static bool is_at_work(struct hf_engine *e, const struct hf_agent *agent)
{
    hf_ms at = hf_task_state(agent->tasks)->since + WORKS_AFTER;

    if (hf_task_record(agent->tasks)->state != HOLDFAST__V1__TASK__STATE__in_progress)
        return false;
    if (e->now < at)
        hf_engine_wake(e, &hf_agent_state(agent)->item, at);
    return e->now >= at;
}

int hf_heir_give_leave(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    int64_t leave = hf_heir_get_leave(e, agent);
    struct hf_health_draft draft;

    /* Of what it has nothing is taken back: its guards say whether it still holds. */
    if (leave == 0 || (health != NULL && health->heir_of == leave) || !is_at_work(e, agent))
        return 0;
    hf_health_begin(e, agent, &draft);
    if (health == NULL)
        hf_health_set(&draft, HOLDFAST__V1__HEALTH__STATE__healthy, "it is live", NULL, 0);
    hf_draft_begin(e, ret);
    hf_health_guard(agent, &ret->plan);
    hf_row_write(&ret->plan, &e->term, (struct hf_key){ HF_KEY_HEALTH, .name = agent->name },
                 &agent->health.seen, &draft.record.base);
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item, NULL,
                        "it may be succeeded at once, should it crash with its task");
}

/* Counting what came of it. */

/* What was recovered is counted with the agent, and with the task while it still is that one.
 */
static struct hf_task *count_recovery(struct hf_engine *e, const struct hf_agent *agent,
                                      const Holdfast__V1__Exit__Succession *succession,
                                      struct hf_reset_case *ret)
{
    struct hf_task *task =
        succession->task[0] != '\0' ? hf_fleet_get_task(e->fleet, succession->task) : NULL;
    const Holdfast__V1__Task *record = task != NULL ? hf_task_record(task) : NULL;
    const Holdfast__V1__CheckpointRef *from = NULL;

    if (record == NULL || hf_bad_of_task(e, task->name) != NULL || record->attempt == 0)
        task = NULL;
    else
        from = record->restored != NULL ? record->restored : record->checkpoint;
    *ret = (struct hf_reset_case){
        .recover = hf_recover_load(task != NULL ? hf_task_recovery(task) : NULL),
        .agent = hf_recover_agent_load(hf_agent_health(agent)),
        .facts = { .incarnation = succession->heir_of,
                   .death = HOLDFAST__V1__EXIT__KIND__crashed,
                   .checkpoint = from != NULL ? from->seq : 0,
                   .poison = hf_chain_policy_default().poison },
    };
    if (ret->recover.attempts != 0)
        task = NULL; /* it was recovered since */
    ret->decision =
        (struct hf_recover_decision){ .verdict = HF_RECOVER_NOW,
                                      .why = "its owner crashed, and its heir was started with "
                                             "it at once",
                                      .attempt = ret->recover.attempts + 1 };
    hf_recover_on_decided(&ret->recover, &ret->agent, &ret->facts, &ret->decision,
                          hf_engine_clock(e));
    return task;
}

static void put_recovery(struct hf_engine *e, const struct hf_task *task,
                         const struct hf_recover *recover, struct hf_intent *ret)
{
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    struct hf_recover_record recovery;

    hf_recover_store(recover, task->name, &recovery);
    if (hf_task_is_final(seen.task->state))
        hf_row_close(&ret->plan, &e->term, &seen, &task->recovery.seen, &recovery.record);
    else
        hf_row_write(&ret->plan, &e->term,
                     (struct hf_key){ HF_KEY_RECOVERY, .name = task->name },
                     &task->recovery.seen, &recovery.record.base);
}

static const char COUNTED[] =
    "it crashed; its agentd started it again at once, by leave, and that is counted now";

/* The same that an order leaves behind: the end, the task, the start; and that it lives. */
static void tell(struct hf_engine *e, const struct hf_agent *agent,
                 const Holdfast__V1__Exit__Succession *succession,
                 const struct hf_reset_case *c, struct hf_intent *ret)
{
    const Holdfast__V1__Exit *exit = hf_agent_exit(agent);
    struct hf_draft_event event = { .agent = agent->name, .host = hf_death_host(e, agent) };

    /* Its heir may have ended as well, and then the exit tells of that. */
    if (exit->incarnation != NULL && exit->n_evidence > 0 &&
        hf_life_number(exit->incarnation->generation, exit->incarnation->create_revision) ==
            succession->heir_of) {
        event.source = exit->evidence[0]->source;
        event.evidence = exit->evidence[0]->text;
    }
    if (hf_agent_state(agent)->end_told < hf_life_revision(succession->heir_of)) {
        event.kind = HOLDFAST__V1__EVENT__KIND__ended;
        event.why = "it crashed";
        hf_draft_event(e, ret, &event);
    }
    event.task = succession->task;
    event.kind = HOLDFAST__V1__EVENT__KIND__reset;
    event.why = c->decision.why;
    hf_draft_event(e, ret, &event);
    event.kind = HOLDFAST__V1__EVENT__KIND__succeeded;
    event.why = COUNTED;
    hf_draft_event(e, ret, &event);
    if (agent->live.record != NULL && !hf_trail_knows_join(agent))
        hf_trail_tell_join(e, agent, ret);
}

int hf_heir_count(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Exit__Succession *succession = succession_of(agent);
    struct hf_restart restart = hf_health_get_restart(hf_agent_health(agent));
    struct hf_health_draft draft;
    struct hf_reset_case c;
    struct hf_task *task;

    if (hf_engine_has_just_begun(e, agent, &hf_agent_state(agent)->item))
        return 0;
    task = count_recovery(e, agent, succession, &c);
    if (task != NULL && hf_task_state(task)->item.flight != 0) {
        hf_engine_wake(e, &hf_agent_state(agent)->item, e->now + e->policy.unknown_pause);
        return 0;
    }
    hf_health_begin(e, agent, &draft);
    hf_restart_on_ordered(&restart, hf_engine_clock(e));
    hf_health_set_restart(e, &draft, &restart);
    hf_health_set_recover(&draft, &c.agent);
    hf_health_set_taken(&draft, succession->heir_of);
    draft.record.heir_of = 0;
    if (agent->live.record != NULL)
        hf_health_set(&draft, HOLDFAST__V1__HEALTH__STATE__healthy, COUNTED, NULL, 0);
    hf_draft_begin(e, ret);
    hf_health_guard(agent, &ret->plan);
    hf_row_write(&ret->plan, &e->term, (struct hf_key){ HF_KEY_HEALTH, .name = agent->name },
                 &agent->health.seen, &draft.record.base);
    if (task != NULL)
        put_recovery(e, task, &c.recover, ret);
    tell(e, agent, succession, &c, ret);
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item,
                        task != NULL ? &hf_task_state(task)->item : NULL, COUNTED);
}
