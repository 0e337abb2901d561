#include "core/chain.h"
#include "core/engine_private.h"

static int64_t seq_of(const Holdfast__V1__CheckpointRef *entry)
{
    return entry != NULL ? entry->seq : 0;
}

int64_t hf_engine_restored(const struct hf_task *task)
{
    return seq_of(hf_task_record(task)->restored);
}

/* Whatever was recovered has a record, unless that was by leave and the agent was removed
 * before anybody counted it: then the task alone tells of it. */
static struct hf_recover load_recovery(const struct hf_task *task)
{
    struct hf_recover recover = hf_recover_load(hf_task_recovery(task));

    if (hf_task_recovery(task) == NULL && hf_task_record(task)->inherited != NULL)
        recover.attempts = 1;
    return recover;
}

void hf_engine_judge_reset(struct hf_engine *e, const struct hf_task *task,
                           const struct hf_death *death, bool successor,
                           struct hf_reset_case *ret_case)
{
    hf_ms now = hf_engine_clock(e);
    struct hf_reset_case c = {
        .recover = load_recovery(task),
        .agent = hf_recover_agent_load(hf_agent_health(task->owner)),
        .facts = { .incarnation = death->life,
                   .death = death->kind,
                   .restored = hf_engine_restored(task),
                   .checkpoint = seq_of(hf_task_record(task)->checkpoint),
                   .poison = hf_chain_policy_default().poison,
                   .successor = successor },
    };

    if (hf_mutated(e, HF_MUTANT_NO_RECOVER_COUNT))
        c.recover.attempts = 0;
    c.decision =
        hf_recover_decide(&c.recover, &c.agent, &e->policy.recover, &c.facts, now, e->random);
    hf_recover_on_decided(&c.recover, &c.agent, &c.facts, &c.decision, now);
    *ret_case = c;
}

/* A life that did not adopt what its process works on must not go on working on it. */
static bool must_end(const struct hf_agent *agent, const struct hf_death *death)
{
    return agent->live.record != NULL && !death->seen;
}

static void draft_health(struct hf_engine *e, const struct hf_task *task,
                         const struct hf_death *death, const struct hf_reset_case *c,
                         struct hf_health_draft *ret_draft)
{
    const struct hf_agent *agent = task->owner;
    int64_t life = hf_life_number(e->generation, agent->live.seen.create_rev);

    hf_health_begin(e, agent, ret_draft);
    hf_health_set_recover(ret_draft, &c->agent);
    hf_health_set_taken(ret_draft, death->life);
    if (!must_end(agent, death) || life <= ret_draft->record.end_upto)
        return;
    hf_health_set(ret_draft, HOLDFAST__V1__HEALTH__STATE__failing,
                  "it came back and did not adopt its task in time", "its agentd ends it", 0);
    hf_health_set_evidence(e, agent, death, ret_draft);
    ret_draft->record.end_upto = life;
}

static void add_event(struct hf_engine *e, const struct hf_task *task,
                      const struct hf_death *death, Holdfast__V1__Event__Kind kind,
                      const struct hf_reset_case *c, struct hf_intent *ret)
{
    struct hf_draft_event event = { .kind = kind,
                                    .agent = task->owner->name,
                                    .task = task->name,
                                    .why = c->decision.why,
                                    .next = c->decision.next,
                                    .next_at = c->decision.verdict == HF_RECOVER_LATER
                                                   ? hf_clusterclock_local(
                                                         &e->clock, c->decision.at, e->now)
                                                   : 0 };

    hf_trail_add_evidence(task->owner, death, &event);
    hf_draft_event(e, ret, &event);
}

static void put_health(const struct hf_engine *e, const struct hf_agent *agent,
                       const struct hf_health_draft *health, struct hf_plan *plan)
{
    const Holdfast__V1__Health *before = hf_agent_health(agent);

    hf_health_guard(agent, plan);
    if (health->record.end_upto > (before != NULL ? before->end_upto : 0))
        hf_row_end_by_controller(plan, &e->term, agent->name, &agent->health.seen,
                                 &health->record);
    else
        hf_row_write(plan, &e->term, (struct hf_key){ HF_KEY_HEALTH, .name = agent->name },
                     &agent->health.seen, &health->record.base);
}

static int review(struct hf_engine *e, struct hf_task *task, const struct hf_death *death,
                  struct hf_reset_case *c, struct hf_intent *ret)
{
    struct hf_agent *agent = task->owner;
    struct hf_health_draft health;
    struct hf_task_state *state = hf_task_state(task);
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    struct hf_recover_record recovery;

    if ((state->alerts & HF_ALERT_REVIEW) == 0) {
        state->alerts |= HF_ALERT_REVIEW;
        return hf_draft_alert(
            e, ret, &state->item,
            &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
                                       .agent = task->owner->name,
                                       .task = task->name,
                                       .why = c->decision.why,
                                       .next = c->decision.next });
    }
    hf_draft_begin(e, ret);
    draft_health(e, task, death, c, &health);
    hf_recover_store(&c->recover, task->name, &recovery);
    hf_row_review(&ret->plan, &e->term, &seen, &task->recovery.seen, &recovery.record,
                  c->decision.why);
    put_health(e, agent, &health, &ret->plan);
    hf_trail_tell_end(e, agent, death, ret);
    add_event(e, task, death, HOLDFAST__V1__EVENT__KIND__needs_review, c, ret);
    return hf_draft_end(e, ret, &state->item, &hf_agent_state(agent)->item, c->decision.why);
}

int hf_engine_reset(struct hf_engine *e, struct hf_task *task, const struct hf_death *death,
                    struct hf_intent *ret)
{
    struct hf_agent *agent = task->owner;
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    struct hf_health_draft health;
    struct hf_recover_record recovery;
    struct hf_reset_case c;

    hf_engine_judge_reset(e, task, death, false, &c);
    if (c.decision.verdict == HF_RECOVER_WAIT)
        return 0;
    if (c.decision.verdict == HF_RECOVER_REVIEW)
        return review(e, task, death, &c, ret);
    hf_draft_begin(e, ret);
    draft_health(e, task, death, &c, &health);
    hf_recover_store(&c.recover, task->name, &recovery);
    hf_row_reset(&ret->plan, &e->term, &seen, &task->recovery.seen,
                 &(struct hf_reset){ .pending = c.decision.verdict == HF_RECOVER_NOW,
                                     .reason = c.decision.why,
                                     .next = c.decision.next,
                                     .recovery = &recovery.record });
    put_health(e, agent, &health, &ret->plan);
    hf_trail_tell_end(e, agent, death, ret);
    add_event(e, task, death, HOLDFAST__V1__EVENT__KIND__reset, &c, ret);
    return hf_draft_end(e, ret, &hf_task_state(task)->item, &hf_agent_state(agent)->item,
                        c.decision.why);
}
