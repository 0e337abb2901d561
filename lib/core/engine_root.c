/* Tasks that not every host can go on with, because their checkpoints lie in files. */
#include <string.h>

#include "core/engine_private.h"

#define ROOT_LOOK 10000 /* who could go on with such a task is looked for this often */

bool hf_engine_has_root(const struct hf_host *host, const Holdfast__V1__Root *root)
{
    if (root == NULL)
        return true;
    for (size_t i = 0; host != NULL && i < host->reader_count; i++) {
        if (strcmp(host->readers[i].root->name, root->id) == 0)
            return true;
    }
    return false;
}

/* A host that may start something and can read these files; who wrote them comes first. */
static struct hf_host *find_host(const struct hf_engine *e, const Holdfast__V1__Root *root)
{
    struct hf_host *writer =
        root->host[0] != '\0' ? hf_fleet_get_host(e->fleet, root->host) : NULL;
    const struct hf_root *known;

    if (writer != NULL && hf_host_is_open(writer) && hf_engine_has_root(writer, root))
        return writer;
    known = hf_fleet_get_root(e->fleet, root->id);
    return known != NULL && known->readers != NULL ? known->readers->host : NULL;
}

bool hf_engine_is_served(const struct hf_task *task)
{
    return task->waiting != NULL && task->waiting->rooted->live_count > 0;
}

struct hf_host *hf_engine_find_rooted(const struct hf_engine *e, const struct hf_agent *agent)
{
    const struct hf_rooted *call = agent->role != NULL ? agent->role->calls : NULL;
    struct hf_host *host = NULL;

    for (const struct hf_task *task = agent->tasks; task != NULL && host == NULL;
         task = task->next_owned) {
        if (hf_task_root(task) != NULL)
            host = find_host(e, hf_task_root(task));
    }
    if (agent->tasks != NULL || call == NULL)
        return host;
    return find_host(e, hf_task_root(call->tasks->task));
}

size_t hf_engine_count_work(const struct hf_role *role)
{
    return role->pending_count - role->stranded_count;
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
