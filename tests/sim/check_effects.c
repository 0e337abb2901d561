/* check_effects.c - what processes do in the world, held against what etcd says at that moment:
 * who is registered, and whose a task is. */
#include <stdio.h>
#include <string.h>

#include "sim/check_private.h"

/* Who has lost its registration may run on for so long until it stands still: a second, and a
 * little for the way there. */
enum { LOST_MS = 1500 };

bool hfs_check_excuses(struct hfs_check *check, int64_t lease_id)
{
    const struct c_lease *lease = hfs_check_find_lease(check, lease_id);

    if (check->was_restored && check->world->now - check->restored_at < HFS_RESTORE_EXCUSE)
        return true;
    return lease != NULL && lease->gone && check->world->now <= lease->promised_until;
}

static bool is_registered(struct hfs_check *check, const char *agent, const char *instance)
{
    const struct c_life *life = &hfs_check_agent(check, agent)->life;

    return strcmp(life->instance, instance) == 0 &&
           (life->present || check->world->now - life->gone_at <= LOST_MS);
}

/* A person's word reaches a process when it asks the next time: until then it may go on with
 * what it had. */
static struct c_begun *find_begun(struct hfs_check *check, const char *instance)
{
    for (size_t i = check->begun_count; i-- > 0;) {
        if (strcmp(check->begun[i].instance, instance) == 0)
            return &check->begun[i];
    }
    return NULL;
}

void hfs_check_excuse(struct hfs_check *check, const char *instance, const char *task)
{
    struct c_begun *begun = find_begun(check, instance);

    if (begun == NULL)
        return;
    begun->excused_at = check->world->now;
    (void)snprintf(begun->excused[begun->excused_count++ % C_EXCUSED], HFS_NAME, "%s", task);
}

void hfs_check_heard(struct hfs_check *check, const char *instance, hf_ms asked_at)
{
    struct c_begun *begun = find_begun(check, instance);

    if (begun != NULL && asked_at > begun->excused_at)
        memset(begun->excused, 0, sizeof begun->excused);
}

static bool is_excused(const struct c_begun *begun, const char *task)
{
    for (size_t i = 0; begun != NULL && i < C_EXCUSED; i++) {
        if (strcmp(begun->excused[i], task) == 0)
            return true;
    }
    return false;
}

static bool is_taken_away(struct hfs_check *check, const struct c_task *task,
                          const char *instance)
{
    if (!task->exists || is_excused(find_begun(check, instance), task->name))
        return false;
    return task->owner[0] == '\0' || strcmp(task->owner_instance, instance) != 0;
}

/* Who holds runs on through any outage: what it was given waits for it. When it is registered
 * again, it adopts all of that or is ended, a moment later. */
static bool is_on_hold(struct hfs_check *check, const char *agent, const char *instance)
{
    const struct c_agent *known = hfs_check_agent(check, agent);

    return known->holds &&
           (!known->life.present || strcmp(known->life.instance, instance) != 0 ||
            check->world->now - known->life.since <= LOST_MS);
}

void hfs_check_effect(struct hfs_check *check, const char *agent, const char *instance,
                      const char *task_name)
{
    const struct c_task *task = hfs_check_task(check, task_name);
    const struct c_process *process = hfs_check_find_process(check, instance);

    if (process == NULL || hfs_check_excuses(check, process->lease) ||
        is_on_hold(check, agent, instance))
        return;
    if (!is_registered(check, agent, instance))
        hfs_check_violate(check, "I2 %s works as %s, which is not registered", agent, instance);
    if (is_taken_away(check, task, instance))
        hfs_check_violate(check, "I3 %s works on %s, which is %s and not its own any more",
                          agent, task->name, hfs_check_state_name(task->state));
}

static bool is_owned(const struct c_task *task)
{
    return task->exists && (task->state == HOLDFAST__V1__TASK__STATE__acknowledged ||
                            task->state == HOLDFAST__V1__TASK__STATE__in_progress);
}

void hfs_check_note_proof(struct hfs_check *check)
{
    for (size_t i = 0; i < check->agent_count; i++) {
        struct c_life *life = &check->agents[i].life;
        const struct c_lease *lease = hfs_check_find_lease(check, life->lease);

        if (life->present && lease != NULL && lease->owner == check->from &&
            check->letter->made_at > life->proven_at)
            life->proven_at = check->letter->made_at;
    }
}

/* What was frozen because the time of its lease was over runs again when a Txn that left after
 * that has found it registered, or when it was registered anew: what was asked before says
 * nothing, nor does any renewal. */
static void judge_proof(struct hfs_check *check, const char *agent, const char *instance,
                        hf_ms fenced_at)
{
    const struct c_life *life = &hfs_check_agent(check, agent)->life;

    if (check->was_restored && check->world->now - check->restored_at < HFS_RESTORE_EXCUSE)
        return;
    if (strcmp(life->instance, instance) != 0 ||
        (life->since < fenced_at && life->proven_at < fenced_at))
        hfs_check_violate(check, "F %s runs again as %s, and nothing has proven it since",
                          agent, instance);
}

void hfs_check_thawed(struct hfs_check *check, const char *agent, const char *instance,
                      hf_ms fenced_at)
{
    const struct c_process *process = hfs_check_find_process(check, instance);
    const struct c_life *life = &hfs_check_agent(check, agent)->life;

    if (fenced_at >= 0)
        judge_proof(check, agent, instance, fenced_at);
    if (process == NULL || hfs_check_excuses(check, process->lease))
        return;
    for (size_t i = 0; i < check->task_count; i++) {
        const struct c_task *task = &check->tasks[i];

        if (is_owned(task) && strcmp(task->owner, agent) == 0 &&
            strcmp(task->owner_instance, instance) == 0 && task->owner_rev != life->create_rev)
            hfs_check_violate(check, "I3 %s runs again, and %s is still of the life before",
                              agent, task->name);
    }
}
