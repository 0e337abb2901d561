#include "core/outlook.h"

#include <stddef.h>
#include <string.h>

#include "base/id.h"
#include "core/moments.h"
#include "core/plan.h"
#include "core/rows.h"

#define LIFE_REVISIONS (UINT64_C(1) << 48) /* a generation has at most */

hf_ms hf_outlook_written(const ProtobufCMessage *record)
{
    hf_ms newest = 0;

    for (int writer = HF_WRITER_OWNER; record != NULL && writer <= (int)HF_WRITER_OPERATOR;
         writer++) {
        const char *id = hf_plan_find_op_id(record, (enum hf_writer)writer);
        hf_ms at = 0;

        if (id != NULL && hf_id_get_time(id, &at) == HF_OK && at > newest)
            newest = at;
    }
    return newest;
}

static struct hf_outlook of_next(const Holdfast__V1__Next *next)
{
    return (struct hf_outlook){ .what = next->what,
                                .at = next->at != NULL ? hf_moment_read(next->at) : 0 };
}

static hf_ms read_duration(const Google__Protobuf__Duration *duration)
{
    return duration != NULL ? duration->seconds * 1000 + duration->nanos / 1000000 : 0;
}

bool hf_outlook_policy(const Holdfast__V1__Leader *leader, struct hf_task_policy *ret_policy)
{
    const Holdfast__V1__Leader__Waits *waits = leader != NULL ? leader->waits : NULL;

    if (waits == NULL)
        return false;
    *ret_policy = hf_task_policy_default();
    ret_policy->start_within = read_duration(waits->start_within);
    ret_policy->alert_after = read_duration(waits->alert_after);
    ret_policy->review_after = read_duration(waits->review_after);
    return true;
}

/* Without a known beginning, or not knowing how long, the rule holds, but nobody can say when.
 */
static struct hf_outlook of_wait(const struct hf_task_policy *policy,
                                 Holdfast__V1__Task__State state, hf_ms since, hf_ms now)
{
    struct hf_task_policy usual = hf_task_policy_default();
    bool is_timed = policy != NULL && since != 0;
    struct hf_task_wait wait = hf_task_judge_wait(is_timed ? policy : &usual, state, false,
                                                  is_timed ? since : now, now);

    return (struct hf_outlook){ .what = wait.next,
                                .at = is_timed && wait.at != HF_TASK_NEVER ? wait.at : 0 };
}

/* When the role lost its last agent, as far as their exits tell. */
static hf_ms lonely_since(const struct hf_role *role, hf_ms since)
{
    for (const struct hf_agent *agent = role != NULL ? role->agents : NULL; agent != NULL;
         agent = agent->next_in_role) {
        hf_ms end = hf_outlook_written((const ProtobufCMessage *)agent->exit.record);

        if (since != 0 && end > since)
            since = end;
    }
    return since;
}

static struct hf_outlook of_pending(const struct hf_fleet *fleet,
                                    const Holdfast__V1__Task *task,
                                    const struct hf_task_policy *policy, hf_ms since, hf_ms now)
{
    const struct hf_role *role = hf_fleet_get_role(fleet, task->role);

    if (task->reserved_for[0] != '\0')
        return (struct hf_outlook){ .what = "the agent that it is reserved for is started with "
                                            "it, or anyone of its role may have it" };
    if (role != NULL && role->live_count > 0)
        return (struct hf_outlook){ .what = "an agent of its role takes it" };
    return of_wait(policy, task->state, lonely_since(role, since), now);
}

/* A backoff has an end. What waits after it, or without one, waits for others of its role. */
static struct hf_outlook of_queued(const Holdfast__V1__Task *task, hf_ms now)
{
    struct hf_outlook said =
        task->next != NULL ? of_next(task->next) : (struct hf_outlook){ 0 };

    if (said.what != NULL && (said.at == 0 || said.at > now))
        return said;
    return (struct hf_outlook){
        .what = "the leader lets it be taken, as soon as a limit of its role allows it"
    };
}

/* Its owner is not live any more: it follows from what is known of that. */
static struct hf_outlook of_gone(const struct hf_agent *owner)
{
    const Holdfast__V1__Health *health = hf_agent_health(owner);
    bool timed = health != NULL && health->next != NULL && health->next->at != NULL;

    if (health != NULL && health->state == HOLDFAST__V1__HEALTH__STATE__suspect)
        return (struct hf_outlook){
            .what = "its owner comes back and adopts it, or is given up, and it is reset",
            .at = timed ? hf_moment_read(health->next->at) : 0
        };
    return (struct hf_outlook){ .what = "it is reset: its owner is gone" };
}

/* Its owner, who is live, was asked why it does not move, and did not answer yet. */
static bool is_asked_about(const struct hf_agent *owner, const char *task)
{
    const Holdfast__V1__Health *health = hf_agent_health(owner);
    const Holdfast__V1__Health__Inquiry *inquiry = health != NULL ? health->inquiry : NULL;

    return inquiry != NULL && !inquiry->answered && health->next != NULL &&
           strcmp(inquiry->task, task) == 0 &&
           (uint64_t)inquiry->incarnation % LIFE_REVISIONS ==
               (uint64_t)owner->live.seen.create_rev;
}

static struct hf_outlook of_owned(const struct hf_fleet *fleet, const struct hf_seen_task *seen,
                                  const struct hf_task_policy *policy, hf_ms since, hf_ms now)
{
    const Holdfast__V1__Task *task = seen->task;
    const struct hf_agent *owner =
        task->owner != NULL ? hf_fleet_get_agent(fleet, task->owner->agent) : NULL;

    if (owner == NULL)
        return (struct hf_outlook){ .what = "it is reset: its owner is not known" };
    if (owner->live.record == NULL)
        return of_gone(owner);
    if (owner->live.seen.create_rev > hf_rows_owner_rev(seen))
        return (struct hf_outlook){
            .what = "its owner, who is back as another life, adopts it, or it is reset"
        };
    if (task->state == HOLDFAST__V1__TASK__STATE__acknowledged)
        return of_wait(policy, task->state, since, now);
    if (is_asked_about(owner, task->id))
        return of_next(hf_agent_health(owner)->next);
    return (struct hf_outlook){ .what = "its owner brings it to an end",
                                .at = task->expected_completion != NULL
                                          ? hf_moment_read(task->expected_completion)
                                          : 0 };
}

struct hf_outlook hf_outlook_task(const struct hf_fleet *fleet, const struct hf_seen_task *task,
                                  const struct hf_task_policy *policy, hf_ms now)
{
    hf_ms since = hf_outlook_written(&task->task->base);

    if (hf_task_is_owned(task->task->state))
        return of_owned(fleet, task, policy, since, now);
    if (task->task->state == HOLDFAST__V1__TASK__STATE__queued)
        return of_queued(task->task, now);
    if (task->task->next != NULL)
        return of_next(task->task->next);
    switch (task->task->state) {
    case HOLDFAST__V1__TASK__STATE__pending:
        return of_pending(fleet, task->task, policy, since, now);
    case HOLDFAST__V1__TASK__STATE__needs_review:
        return (struct hf_outlook){ .what = "a person decides: `holdfast task retry` begins "
                                            "anew, `holdfast task cancel` ends it" };
    default: return (struct hf_outlook){ 0 };
    }
}

struct hf_outlook hf_outlook_agent(const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);
    bool live = agent->live.record != NULL;
    bool stopped = wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped;

    if (stopped)
        return (struct hf_outlook){ .what = live ? "its agentd ends it"
                                                 : "`holdfast start` starts it" };
    if (health != NULL && health->next != NULL)
        return of_next(health->next);
    if (live)
        return (struct hf_outlook){ 0 };
    if (agent->commands != NULL)
        return (struct hf_outlook){ .what = "its host starts or refuses it" };
    return (struct hf_outlook){ .what = hf_agent_exit(agent) != NULL
                                            ? "the leader decides whether it is started again"
                                            : "the leader gives it up unless it comes back" };
}
