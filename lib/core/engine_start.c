#include <string.h>

#include "core/engine_private.h"

#define MOST_CARRIED 8192 /* bytes that a command carries of other records */

/* When we first saw this very command. */
static hf_ms seen_at(const struct hf_engine *e, struct hf_command *command)
{
    if (command->user.rev != command->command.seen.mod_rev) {
        command->user.rev = command->command.seen.mod_rev;
        command->user.at = e->now;
    }
    return command->user.at;
}

static bool is_wanted(const struct hf_agent *agent)
{
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);

    return wanted == NULL || wanted->state == HOLDFAST__V1__WANTED__STATE__running;
}

/* NULL: it may still be served. Its host is at fault where *ret_blame is set. */
static const char *reason_to_withdraw(struct hf_engine *e, const struct hf_agent *agent,
                                      struct hf_command *command, bool *ret_blame)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    hf_ms until;

    *ret_blame = false;
    if (agent->live.record != NULL)
        return "the agent is live";
    if (!is_wanted(agent) && !hf_mutated(e, HF_MUTANT_NO_WANTED))
        return "the agent is wanted stopped";
    if (health == NULL || strcmp(health->command_host, command->host->name) != 0)
        return "it is not the start that was ordered last";
    until = seen_at(e, command) + e->policy.command_within;
    *ret_blame = true;
    if (hf_mutated(e, HF_MUTANT_NO_WITHDRAW))
        return NULL;
    if (e->now >= until)
        return "its host did not serve it in time";
    /* A host that lost its lease may be back in a moment, and serve it. */
    if (command->host->live.record == NULL && command->host->live_gone_rev != 0)
        until = hf_tilt_due(&e->tilt, command->host->live_gone_at,
                            e->policy.ttl / 2 + e->policy.grace_margin);
    if (command->host->live.record == NULL && e->now >= until)
        return "its host is gone";
    hf_engine_wake(e, &state->item, until);
    return NULL;
}

/* The task that waits for the start, or NULL. */
static struct hf_task *reserved_task(const struct hf_engine *e, const struct hf_agent *agent,
                                     const Holdfast__V1__Command *command)
{
    struct hf_task *task =
        command->task[0] != '\0' ? hf_fleet_get_task(e->fleet, command->task) : NULL;
    const Holdfast__V1__Task *record = task != NULL ? hf_task_record(task) : NULL;

    if (record == NULL || record->state != HOLDFAST__V1__TASK__STATE__pending ||
        strcmp(record->reserved_for, agent->name) != 0)
        return NULL;
    return task;
}

static int withdraw(struct hf_engine *e, struct hf_agent *agent,
                    const struct hf_command *command, const char *reason, struct hf_intent *ret)
{
    const Holdfast__V1__Command *record =
        (const Holdfast__V1__Command *)command->command.record;
    struct hf_task *task =
        hf_mutated(e, HF_MUTANT_NO_UNRESERVE) ? NULL : reserved_task(e, agent, record);
    struct hf_seen_task seen = { 0 };
    struct hf_health_draft health;
    struct hf_recover recover;
    struct hf_recover_record recovery;
    struct hf_withdrawal withdrawal = { .host = command->host->name,
                                        .agent = agent->name,
                                        .command = command->command.seen,
                                        .health = agent->health.seen,
                                        .next_health = &health.record };

    if (task != NULL && hf_task_state(task)->item.flight != 0) {
        hf_engine_wake(e, &hf_agent_state(agent)->item, e->now + e->policy.unknown_pause);
        return 0;
    }
    hf_draft_begin(e, ret);
    hf_health_begin(e, agent, &health);
    hf_health_set(
        &health, HOLDFAST__V1__HEALTH__STATE__failing,
        hf_draft_why(e, "the start on %s was withdrawn: %s", command->host->name, reason),
        "it is decided anew", 0);
    /* Withdrawing one that was not ordered last leaves the one that was. */
    if (strcmp(health.record.command_host, command->host->name) == 0)
        health.record.command_host = (char *)"";
    if (task != NULL) {
        seen = (struct hf_seen_task){ .seen = task->task.seen, .task = hf_task_record(task) };
        withdrawal.task = &seen;
        recover = hf_recover_load(hf_task_recovery(task));
        hf_recover_on_unstarted(&recover, HOLDFAST__V1__RECOVERY__RESULT__withdrawn);
        hf_recover_store(&recover, task->name, &recovery);
        withdrawal.recovery_of = task->name;
        withdrawal.recovery = task->recovery.seen;
        withdrawal.next_recovery = &recovery.record;
    }
    hf_row_withdraw(&ret->plan, &e->term, &withdrawal);
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item,
                        task != NULL ? &hf_task_state(task)->item : NULL, e->why);
}

int hf_engine_judge_starts(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);

    for (struct hf_command *command = agent->commands; command != NULL;
         command = command->next) {
        bool blame = false;
        const char *reason = reason_to_withdraw(e, agent, command, &blame);
        int rc = reason != NULL ? withdraw(e, agent, command, reason, ret) : 0;

        if (rc == 1 && blame && spec != NULL)
            hf_engine_pass_over(e, command->host->name, spec->launcher);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/* Orders. */

/* A task of its own whose reset goes with the start, or NULL. One that the host could not go on
 * with is reset by itself, and waits for a host that can. */
static struct hf_task *find_task(struct hf_engine *e, const struct hf_agent *agent,
                                 const struct hf_host *host, struct hf_reset_case *ret_case)
{
    for (struct hf_task *task = agent->tasks; task != NULL; task = task->next_owned) {
        struct hf_death death;

        if (hf_task_state(task)->item.flight != 0 || hf_task_state(task)->item.broken ||
            hf_bad_of_task(e, task->name) != NULL || !hf_death_of_owner(e, task, &death) ||
            death.due > e->now || !hf_engine_has_root(host, hf_task_root(task)))
            continue;
        hf_engine_judge_reset(e, task, &death, true, ret_case);
        if (ret_case->decision.verdict == HF_RECOVER_NOW && ret_case->decision.reserved)
            return task;
    }
    return NULL;
}

static void add_reset(struct hf_engine *e, const struct hf_agent *agent, struct hf_task *task,
                      const struct hf_death *death, struct hf_reset_case *c,
                      struct hf_intent *ret)
{
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    struct hf_recover_record recovery;
    struct hf_draft_event event = { .kind = HOLDFAST__V1__EVENT__KIND__reset,
                                    .agent = agent->name,
                                    .task = task->name,
                                    .why = c->decision.why,
                                    .next = "it waits for its owner's successor",
                                    .next_at = e->now + e->policy.command_within };

    hf_recover_store(&c->recover, task->name, &recovery);
    hf_row_reset(&ret->plan, &e->term, &seen, &task->recovery.seen,
                 &(struct hf_reset){ .pending = true,
                                     .reserved_for = agent->name,
                                     .reason = c->decision.why,
                                     .recovery = &recovery.record });
    hf_trail_add_evidence(agent, death, &event);
    hf_draft_event(e, ret, &event);
}

/* What this very plan makes of the task and of its recovery, for a host that would have to read
 * both before it can register the start. */
static void carry(const struct hf_plan *plan, const struct hf_task *task,
                  Holdfast__V1__Command *command)
{
    struct hf_bytes text =
        hf_plan_find_put(plan, (struct hf_key){ HF_KEY_TASK, .name = task->name });
    struct hf_bytes recovery =
        hf_plan_find_put(plan, (struct hf_key){ HF_KEY_RECOVERY, .name = task->name });

    if (text.data == NULL || recovery.data == NULL || text.len + recovery.len > MOST_CARRIED)
        return;
    command->task_text = (char *)text.data;
    command->recovery_text = (char *)recovery.data;
    command->task_create_revision = task->task.seen.create_rev;
}

static void add_order(struct hf_engine *e, const struct hf_agent *agent,
                      const struct hf_task *task, int64_t checkpoint,
                      const struct hf_start_order *order, const struct hf_health_draft *health,
                      struct hf_intent *ret)
{
    Holdfast__V1__Command command = HOLDFAST__V1__COMMAND__INIT;
    Holdfast__V1__CheckpointRef from = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    char id[HF_ID_LEN + 1];

    hf_draft_id(e, id);
    command.id = id;
    command.host = (char *)order->host->name;
    command.attempt = (int32_t)order->attempt;
    command.reason = (char *)order->why;
    if (task != NULL) {
        command.task = (char *)task->name;
        from.seq = checkpoint;
        command.checkpoint = checkpoint != 0 ? &from : NULL;
        command.attempt = hf_rows_next_attempt(hf_task_record(task));
        carry(&ret->plan, task, &command);
    }
    hf_row_order(&ret->plan, &e->term,
                 &(struct hf_order){ .agent = agent->name,
                                     .command = &command,
                                     .health = &health->record,
                                     .spec = hf_lean_cell_seen(&agent->spec),
                                     .wanted = agent->wanted.seen,
                                     .health_seen = agent->health.seen });
    hf_draft_event(
        e, ret,
        &(struct hf_draft_event){
            .kind = HOLDFAST__V1__EVENT__KIND__restart_ordered,
            .agent = agent->name,
            .task = task != NULL ? task->name : NULL,
            .host = order->host->name,
            .why = order->why,
            .next = "its host starts or refuses it",
            .next_at = e->now + e->policy.command_within,
            .source = health->record.n_evidence > 0 ? health->record.evidence[0]->source : NULL,
            .evidence =
                health->record.n_evidence > 0 ? health->record.evidence[0]->text : NULL });
}

/* Whose end was no failure is not failing because it is started again. */
static Holdfast__V1__Health__State state_until_started(const struct hf_death *death)
{
    switch (death->kind) {
    case HOLDFAST__V1__EXIT__KIND__left:
    case HOLDFAST__V1__EXIT__KIND__finished:
    case HOLDFAST__V1__EXIT__KIND__terminated: return HOLDFAST__V1__HEALTH__STATE__terminated;
    default: return HOLDFAST__V1__HEALTH__STATE__failing;
    }
}

int hf_engine_order(struct hf_engine *e, struct hf_agent *agent,
                    const struct hf_start_order *order, struct hf_intent *ret)
{
    struct hf_reset_case c;
    struct hf_task *task = find_task(e, agent, order->host, &c);
    hf_ms cluster_now = hf_engine_clock(e);
    struct hf_restart restart = order->restart;
    struct hf_health_draft health;

    hf_draft_begin(e, ret);
    hf_health_begin(e, agent, &health);
    hf_health_set(&health, state_until_started(order->death), order->why,
                  "its host starts or refuses it, or the command is withdrawn",
                  cluster_now + e->policy.command_within);
    hf_health_set_evidence(e, agent, order->death, &health);
    if (!hf_mutated(e, HF_MUTANT_NO_START_COUNT))
        hf_restart_on_ordered(&restart, cluster_now);
    hf_health_set_restart(e, &health, &restart);
    if (task != NULL) {
        hf_health_set_recover(&health, &c.agent);
        hf_health_set_taken(&health, c.facts.incarnation);
    }
    health.record.command_host = (char *)order->host->name;
    health.record.host = (char *)order->host->name;
    hf_health_guard(agent, &ret->plan);
    hf_trail_tell_end(e, agent, order->death, ret);
    if (task != NULL)
        add_reset(e, agent, task, order->death, &c, ret);
    add_order(e, agent, task, task != NULL ? hf_recover_checkpoint(&c.recover) : 0, order,
              &health, ret);
    return hf_draft_end(e, ret, &hf_agent_state(agent)->item,
                        task != NULL ? &hf_task_state(task)->item : NULL, order->why);
}
