/* check_starts.c - what a start rests on, what goes with it, and who is ended. */
#include <string.h>

#include "sim/check_private.h"

/* Where etcd was restored, what was changed may be what it was, by the same revision and to the
 * byte: then nothing is decided on anything else. What is left out of a Txn tells, too. */
static bool is_same_spec(const struct hfs_check *check, const char *agent)
{
    const struct hfs_txn *txn = &check->letter->request->txn;
    char key[HF_KEY_SIZE];
    int len = hf_key_format(check->ns, &(struct hf_key){ HF_KEY_AGENT_SPEC, .name = agent },
                            key, NULL);
    bool any = false;

    for (size_t i = 0; check->was_restored && i < txn->compare_count; i++) {
        const struct hfs_compare *compare = &txn->compares[i];

        if (compare->key.len != (size_t)len ||
            memcmp(compare->key.data, key, compare->key.len) != 0)
            continue;
        any = true;
        if (!hfs_compare_holds(check->etcd, compare))
            return false;
    }
    return any;
}

/* What says how it is started may be another one, or gone, since that was decided. */
void hfs_check_judge_spec(struct hfs_check *check, const struct c_agent *agent)
{
    if (agent->spec_at >= check->letter->made_at &&
        hfs_check_is_of_this_past(check, agent->spec_at) && !is_same_spec(check, agent->name))
        hfs_check_violate(check, "I12 %s is started by a spec that was %s meanwhile",
                          agent->name, agent->removed ? "removed" : "changed");
}

/* Orders. */

/* The task that a Txn compares, or NULL. */
static struct c_task *task_of(struct hfs_check *check, const struct hfs_letter *letter)
{
    const struct hfs_txn *txn = &letter->request->txn;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    for (size_t i = 0; i < txn->compare_count; i++) {
        if (hf_key_parse(check->ns, txn->compares[i].key, scratch, &key, NULL) == HF_OK &&
            key.kind == HF_KEY_TASK)
            return hfs_check_task(check, key.name);
    }
    return NULL;
}

void hfs_check_sent(struct hfs_check *check, const struct hfs_process *from,
                    const struct hfs_letter *letter)
{
    struct c_task *task = letter->request->kind == HFS_TXN && from->role == HFS_CONTROLLER
                              ? task_of(check, letter)
                              : NULL;

    hfs_check_judge_role(check, from, letter->request);
    if (task != NULL)
        task->sent_at = check->world->now;
}

/* Whoever takes a start back blames the host for it, also when that does not come to pass. */
static void note_blamed(struct hfs_check *check, const struct hfs_ops *ops)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    for (size_t i = 0; i < ops->count; i++) {
        if (ops->list[i].kind == HFS_DELETE &&
            hf_key_parse(check->ns, ops->list[i].erase.key, scratch, &key, NULL) == HF_OK &&
            key.kind == HF_KEY_COMMAND)
            hfs_check_host(check, key.name)->avoided_at = check->world->now;
    }
}

void hfs_check_withheld(struct hfs_check *check, const struct hfs_process *from,
                        const struct hfs_letter *letter)
{
    struct c_task *task = task_of(check, letter);

    if (task != NULL)
        task->withheld_at = check->world->now;
    if (from->role == HFS_CONTROLLER)
        note_blamed(check, &letter->request->txn.then);
}

/* Nothing is decided about it while what became of that is not known. */
static bool is_waited_for(const struct hfs_check *check, const struct c_task *task)
{
    enum { UNDER_WAY_MS = 1000, UNKNOWN_MS = 15000 };
    hf_ms made_at = check->letter->made_at;

    return (task->sent_at != 0 && made_at - task->sent_at < UNDER_WAY_MS) ||
           (task->withheld_at != 0 && made_at - task->withheld_at < UNKNOWN_MS);
}

static bool is_changed(const struct hfs_check *check, const char *task)
{
    for (size_t i = 0; i < check->change_count; i++) {
        if (check->changes[i].key.kind == HF_KEY_TASK &&
            strcmp(check->changes[i].key.name, task) == 0)
            return true;
    }
    return false;
}

/* It died with that task, for the first time, and nothing stands against going on. */
static bool is_due(const struct hfs_check *check, const struct c_agent *agent,
                   const struct c_task *task)
{
    return task->exists && strcmp(task->owner, agent->name) == 0 &&
           (task->state == HOLDFAST__V1__TASK__STATE__acknowledged ||
            task->state == HOLDFAST__V1__TASK__STATE__in_progress) &&
           task->owner_rev == agent->life.create_rev && agent->exit_rev == task->owner_rev &&
           task->attempt == 0 && task->attempts == 0 && task->outcomes == 0 && !task->rooted &&
           !is_waited_for(check, task) && !is_changed(check, task->name);
}

/* A slow line has not brought it the end of that life yet: what it orders still follows from
 * the end of the one before. */
static bool is_untold(const struct hfs_check *check, const struct c_agent *agent)
{
    return check->letter->known_rev < agent->exit_mod &&
           check->writer->listed_at < agent->exit_at;
}

/* The first recovery is at once, and the task goes with its owner's successor. Whoever orders
 * that start without it does not know all that there is. What was refused to one that had
 * missed something rests for a while, also where a list has told it since. */
void hfs_check_judge_left(struct hfs_check *check, const struct c_agent *agent,
                          const struct c_change *change)
{
    enum { LAG_MS = 1000, REST_MS = 9000 };
    const Holdfast__V1__Command *command = (const Holdfast__V1__Command *)change->record;

    if (hfs_check_is_blind(check) || hfs_check_was_blind(check, REST_MS) ||
        check->was_restored || check->watched || command == NULL || command->task[0] != '\0' ||
        check->letter->made_at - agent->exit_at < LAG_MS || is_untold(check, agent) ||
        hf_backoff_count(&agent->recovered, check->recover.agent_window,
                         check->letter->made_at) >= check->recover.agent_limit)
        return;
    for (size_t i = 0; i < check->task_count; i++) {
        if (is_due(check, agent, &check->tasks[i]))
            hfs_check_violate(check, "I9 %s is started without %s, which it died with",
                              agent->name, check->tasks[i].name);
    }
}

/* Ends. */

/* Who is ordered to end is the life that the order names, or one before it; who is wanted
 * stopped, any. */
void hfs_check_judge_ended(struct hfs_check *check, const struct c_agent *agent,
                           const Holdfast__V1__Exit *exit)
{
    int64_t life =
        ((int64_t)exit->incarnation->generation << 48) | exit->incarnation->create_revision;

    if (exit->kind != HOLDFAST__V1__EXIT__KIND__terminated || check->watched ||
        hfs_check_is_void(check) || agent->stopped || agent->stopped_at >= agent->life.since)
        return;
    if (life > agent->end_upto)
        hfs_check_violate(check, "E %s is ended as %lld, and was to end up to %lld",
                          agent->name, (long long)life, (long long)agent->end_upto);
}
