/* Tasks that not every host can go on with, because their checkpoints lie in files. */
#include <string.h>

#include "core/engine_private.h"

#define ROOT_LOOK 10000 /* who could go on with such a task is looked for this often */
#define ROOT_MOST 64    /* tasks that a host is looked for, before one is as good as another */

bool hf_engine_has_root(const struct hf_host *host, const Holdfast__V1__Root *root)
{
    const Holdfast__V1__Host *record = host != NULL ? hf_host_record(host) : NULL;

    if (root == NULL)
        return true;
    for (size_t i = 0; record != NULL && i < record->n_roots; i++) {
        if (strcmp(record->roots[i], root->id) == 0)
            return true;
    }
    return false;
}

/* A host that may start something and can read these files; who wrote them comes first. */
static struct hf_host *find_host(const struct hf_engine *e, const Holdfast__V1__Root *root)
{
    struct hf_host *writer =
        root->host[0] != '\0' ? hf_fleet_get_host(e->fleet, root->host) : NULL;

    for (size_t i = 0; i <= e->host_count; i++) {
        struct hf_host *host = i == 0 ? writer : e->hosts[i - 1];
        const Holdfast__V1__Host *record = host != NULL ? hf_host_record(host) : NULL;

        if (record != NULL && host->live.record != NULL && !record->left && !record->cordoned &&
            hf_engine_has_root(host, root))
            return host;
    }
    return NULL;
}

bool hf_engine_is_served(const struct hf_task *task)
{
    const Holdfast__V1__Root *root = hf_task_root(task);

    for (const struct hf_agent *agent = task->role != NULL ? task->role->agents : NULL;
         agent != NULL; agent = agent->next_in_role) {
        if (agent->live.record != NULL && hf_engine_has_root(agent->host, root))
            return true;
    }
    return false;
}

struct hf_host *hf_engine_find_rooted(const struct hf_engine *e, const struct hf_agent *agent)
{
    const struct hf_role *role = agent->role;
    struct hf_host *host = NULL;
    size_t looked = 0;

    for (const struct hf_task *task = agent->tasks; task != NULL && host == NULL;
         task = task->next_owned) {
        if (hf_task_root(task) != NULL)
            host = find_host(e, hf_task_root(task));
    }
    if (agent->tasks != NULL || role == NULL || role->rooted_count == 0)
        return host;
    for (const struct hf_task *task = role->pending;
         task != NULL && host == NULL && looked < ROOT_MOST; task = task->next_pending) {
        const Holdfast__V1__Root *root = hf_task_root(task);

        looked += root != NULL;
        if (root != NULL && !hf_engine_is_served(task))
            host = find_host(e, root);
    }
    return host;
}

size_t hf_engine_count_work(const struct hf_engine *e, const struct hf_role *role)
{
    size_t count = role->pending_count;

    if (role->rooted_count == 0)
        return count;
    for (const struct hf_task *task = role->pending; task != NULL; task = task->next_pending) {
        const Holdfast__V1__Root *root = hf_task_root(task);

        count -= root != NULL && find_host(e, root) == NULL ? 1 : 0;
    }
    return count;
}

const char *hf_engine_say_rooted(struct hf_engine *e, const struct hf_task *task,
                                 const char **ret_next)
{
    *ret_next = "bring that host back with such an agent, let hosts share "
                "checkpoints.directory, or `holdfast task retry --lost-files`";
    return hf_draft_why(e,
                        "its checkpoint lies in files of host %s, and no agent of role %s "
                        "is where they can be read",
                        hf_task_root(task)->host, hf_task_record(task)->role);
}

struct hf_task_wait hf_engine_judge_rooted(struct hf_engine *e, const struct hf_task *task)
{
    struct hf_task_state *state = hf_task_state(task);
    struct hf_task_wait wait;

    hf_engine_wake(e, &state->item, e->now + ROOT_LOOK);
    if (hf_engine_is_served(task)) {
        state->since = e->now;
        state->alerts &= (uint8_t)~HF_ALERT_LONELY;
        hf_told_on_over(e, HF_TOLD_ROOT, task->name);
    }
    wait = hf_task_judge_wait(&e->policy.task, HOLDFAST__V1__TASK__STATE__pending, false,
                              state->since, e->now);
    wait.why = hf_engine_say_rooted(e, task, &wait.next);
    return wait;
}
