#include "core/rows_private.h"

/* The rows that remove what is over: agents and hosts that are gone, tasks that have ended, the
 * checkpoints of those. Declared in core/rows.h, as all of them. */

static void delete_agent(struct hf_plan *plan, const char *agent, const struct hf_seen *spec)
{
    guard_absent(plan, LIVE(agent));
    guard_mod(plan, SPEC(agent), spec);
    hf_plan_delete(plan, SPEC(agent));
    hf_plan_delete(plan, REPORT(agent));
    hf_plan_delete(plan, EXIT(agent));
    hf_plan_delete(plan, HEALTH(agent));
}

void hf_row_remove_agent(struct hf_plan *plan, const char *agent, const struct hf_seen *spec)
{
    hf_plan_begin_row(plan, HF_ROW_REMOVE_AGENT);
    delete_agent(plan, agent, spec);
    hf_plan_delete(plan, WANTED(agent));
}

/* What a person wants is a person's to take back: an agent that was stopped on purpose would be
 * started by whoever runs one of its name next. */
void hf_row_sweep(struct hf_plan *plan, const struct hf_term *term, const char *agent,
                  const struct hf_seen *spec)
{
    hf_plan_begin_row(plan, HF_ROW_SWEEP);
    guard_term(plan, term);
    delete_agent(plan, agent, spec);
}

static void delete_chain(struct hf_plan *plan, const char *task)
{
    hf_plan_delete_all(plan, HF_KEY_IN_CHECKPOINTS_TASK, task);
    hf_plan_delete_all(plan, HF_KEY_IN_DATA_CHECKPOINTS, task);
}

void hf_row_sweep_chain(struct hf_plan *plan, const struct hf_term *term,
                        const struct hf_seen_task *task)
{
    Holdfast__V1__Task next = *task->task;

    hf_plan_begin_row(plan, HF_ROW_SWEEP_CHAIN);
    guard_term(plan, term);
    next.checkpoint = NULL;
    next.root = NULL;
    put_task(plan, task, &next);
    delete_chain(plan, next.id);
}

void hf_row_remove_task(struct hf_plan *plan, const struct hf_seen_task *task)
{
    const char *id = task->task->id;

    hf_plan_begin_row(plan, HF_ROW_REMOVE_TASK);
    guard_mod(plan, TASK(id), &task->seen);
    hf_plan_delete(plan, TASK(id));
    hf_plan_delete(plan, PENDING(task->task->role, id));
    hf_plan_delete(plan, RECOVERY(id));
    hf_plan_delete_all(plan, HF_KEY_IN_DATA_TASK, id);
    delete_chain(plan, id);
}

void hf_row_remove_host(struct hf_plan *plan, const char *host, const struct hf_seen *record)
{
    hf_plan_begin_row(plan, HF_ROW_REMOVE_HOST);
    guard_absent(plan, HOST_LIVE(host));
    guard_mod(plan, HOST(host), record);
    hf_plan_delete(plan, HOST(host));
}
