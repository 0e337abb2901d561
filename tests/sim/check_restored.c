/* check_restored.c - what successors go on from, held against what their tasks and the counts
 * of their recoveries say: no checkpoint is blamed for what another did. */
#include <string.h>

#include "sim/check_private.h"

void hfs_check_goes_on(struct hfs_check *check, const char *agent, const char *instance,
                       const char *task_name, int64_t checkpoint)
{
    const struct c_task *task = hfs_check_task(check, task_name);

    /* Whose task was taken from it meanwhile hears of that with its next call; so does one
     * whose task a restored etcd takes for over: it may look, and nobody goes on with that. */
    if (!task->exists || task->owner[0] == '\0' || hfs_check_is_final(task->state) ||
        strcmp(task->owner_instance, instance) != 0)
        return;
    for (size_t i = 0; i < task->poison_count; i++) {
        if (checkpoint != 0 && task->poisons[i] == checkpoint)
            hfs_check_violate(check, "I13 %s goes on from checkpoint %lld of %s, a poison",
                              agent, (long long)checkpoint, task->name);
    }
    if (task->restored == checkpoint)
        return;
    hfs_check_violate(check, "I13 %s goes on from checkpoint %lld of %s, which says %lld",
                      agent, (long long)checkpoint, task->name, (long long)task->restored);
}

void hfs_check_judge_recovery(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Recovery *recovery = (const Holdfast__V1__Recovery *)change->record;
    const struct c_task *task = hfs_check_task(check, change->key.name);
    const Holdfast__V1__Recovery__Outcome *outcome;
    size_t at = task->outcomes - (task->is_open ? 1 : 0);
    int64_t blamed;

    /* From there on old ones are dropped. */
    if (recovery == NULL || at >= recovery->n_outcomes || recovery->n_outcomes >= 16)
        return;
    outcome = recovery->outcomes[at];
    blamed = outcome->checkpoint != NULL ? outcome->checkpoint->seq : 0;
    if (outcome->result == HOLDFAST__V1__RECOVERY__RESULT__died && blamed != task->restored)
        hfs_check_violate(check,
                          "I13 a death is counted against checkpoint %lld of %s, but its "
                          "owner went on from %lld",
                          (long long)blamed, task->name, (long long)task->restored);
}

static size_t count_deaths(const Holdfast__V1__Recovery *recovery, int64_t checkpoint)
{
    size_t deaths = 0;

    for (size_t i = 0; i < recovery->n_outcomes; i++) {
        const Holdfast__V1__Recovery__Outcome *outcome = recovery->outcomes[i];

        deaths += outcome->result == HOLDFAST__V1__RECOVERY__RESULT__died &&
                  outcome->checkpoint != NULL && outcome->checkpoint->seq == checkpoint;
    }
    return deaths;
}

static void note_poisons(struct c_task *task, const Holdfast__V1__Recovery *recovery)
{
    enum { DEADLY = 2 };

    task->poison_count = 0;
    for (size_t i = 0; recovery != NULL && i < recovery->n_outcomes; i++) {
        const Holdfast__V1__CheckpointRef *ref = recovery->outcomes[i]->checkpoint;

        if (ref != NULL && ref->seq != 0 && task->poison_count < HFS_POISONS &&
            count_deaths(recovery, ref->seq) >= DEADLY)
            task->poisons[task->poison_count++] = ref->seq;
    }
}

void hfs_check_apply_recovery(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Recovery *recovery = (const Holdfast__V1__Recovery *)change->record;
    struct c_task *task = hfs_check_task(check, change->key.name);

    note_poisons(task, recovery);
    task->outcomes = recovery != NULL ? recovery->n_outcomes : 0;
    task->is_open = task->outcomes > 0 && recovery->outcomes[task->outcomes - 1]->result ==
                                              HOLDFAST__V1__RECOVERY__RESULT__ordered;
}
