/* check_heirs.c - who is started again without an order: by leave, once, when it crashed, with
 * the task that it died with, and no sooner than an order would have been. */
#include <string.h>

#include "sim/check_private.h"

/* The exit that says so, in a revision that makes a life. */
static const Holdfast__V1__Exit *find_exit(const struct hfs_check *check, const char *agent)
{
    const struct c_change *live = hfs_check_find_change(check, HF_KEY_AGENT_LIVE, agent);
    const struct c_change *exit = hfs_check_find_change(check, HF_KEY_AGENT_EXIT, agent);
    const Holdfast__V1__Exit *record =
        exit != NULL ? (const Holdfast__V1__Exit *)exit->record : NULL;

    return live != NULL && !live->deleted && live->entry->version == 1 && record != NULL &&
                   record->succession != NULL && record->succession->done
               ? record
               : NULL;
}

bool hfs_check_is_heir(const struct hfs_check *check, const char *agent)
{
    return find_exit(check, agent) != NULL;
}

static int64_t life_of(const Holdfast__V1__Exit *exit)
{
    return exit->incarnation != NULL ? ((int64_t)exit->incarnation->generation << 48) |
                                           exit->incarnation->create_revision
                                     : 0;
}

void hfs_check_judge_heir(struct hfs_check *check, const struct c_agent *agent)
{
    const Holdfast__V1__Exit *exit = find_exit(check, agent->name);
    int64_t heir_of = exit->succession->heir_of;

    if (life_of(exit) != heir_of || agent->leave != heir_of)
        hfs_check_violate(check, "I8 %s is started as the heir of %lld, and leave is for %lld",
                          agent->name, (long long)heir_of, (long long)agent->leave);
    if (agent->heir_of == heir_of)
        hfs_check_violate(check, "I8 %s is started as the heir of %lld again", agent->name,
                          (long long)heir_of);
    if (exit->kind != HOLDFAST__V1__EXIT__KIND__crashed &&
        exit->kind != HOLDFAST__V1__EXIT__KIND__oom)
        hfs_check_violate(check, "I8 %s has an heir, and did not crash", agent->name);
    if (exit->incarnation == NULL || agent->exit_rev != exit->incarnation->create_revision)
        hfs_check_violate(check, "I8 %s has an heir, and its end was not written", agent->name);
    if (agent->commands > 0)
        hfs_check_violate(check, "I8 %s has an heir beside the start that was ordered",
                          agent->name);
    if (hfs_check_find_change(check, HF_KEY_TASK, exit->succession->task) == NULL)
        hfs_check_violate(check, "I9 the heir of %s is started without %s, which it died with",
                          agent->name, exit->succession->task);
    hfs_check_judge_order(check, agent);
}

void hfs_check_apply_heir(struct hfs_check *check, struct c_agent *agent)
{
    const Holdfast__V1__Exit *exit = find_exit(check, agent->name);

    if (exit == NULL)
        return;
    agent->heir_of = exit->succession->heir_of;
    agent->command_at = check->world->now;
    check->counts.heirs++;
    hf_backoff_on_attempt(&agent->orders, check->world->now);
}

/* A task goes from the life that crashed to the one that this revision makes. */
void hfs_check_judge_inherited(struct hfs_check *check, const struct c_task *old,
                               const Holdfast__V1__Task *task, int64_t owner_rev)
{
    const Holdfast__V1__Exit *exit = find_exit(check, old->owner);
    const struct c_change *live = hfs_check_find_change(check, HF_KEY_AGENT_LIVE, old->owner);
    const struct c_life *life = &hfs_check_agent(check, old->owner)->life;

    if (strcmp(old->owner, task->owner->agent) != 0 || owner_rev != live->entry->create_rev)
        hfs_check_violate(check, "I3 %s goes to somebody else than the heir of %s", old->name,
                          old->owner);
    if (exit->incarnation == NULL || exit->incarnation->create_revision != old->owner_rev ||
        strcmp(exit->succession->task, old->name) != 0)
        hfs_check_violate(check, "I3 %s goes to the heir of a life that did not have it",
                          old->name);
    if (life->present && life->create_rev == old->owner_rev)
        hfs_check_violate(check, "I7 %s goes to an heir while %s, its owner, is alive",
                          old->name, old->owner);
    if (task->attempt != old->attempt + 1)
        hfs_check_violate(check, "I11 %s goes to an heir as attempt %d after %d", old->name,
                          task->attempt, old->attempt);
    hfs_check_judge_deaths(check, old);
    if (!hfs_check_is_void(check))
        hfs_check_judge_recovered(check, old);
}

bool hfs_check_is_inherited(const struct hfs_check *check, const struct c_task *old,
                            const Holdfast__V1__Task *task)
{
    return old->exists && old->owner[0] != '\0' && task->owner != NULL &&
           task->attempt > old->attempt && hfs_check_is_heir(check, old->owner);
}

const char *hfs_check_find_uncounted(const struct hfs_check *check)
{
    for (size_t i = 0; i < check->agent_count; i++) {
        const struct c_agent *agent = &check->agents[i];

        if (agent->heir_of != 0 && agent->heir_of == agent->leave)
            return agent->name;
    }
    return NULL;
}
