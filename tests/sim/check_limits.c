/* check_limits.c - limits and backoff hold across leaders (I11): what the records of the
 * revision before promise is kept, and what was counted here, from outside, agrees with it.
 *
 * The cluster clock can only be late, so that what a policy asks for on it has passed in the
 * world, too; and nobody can have read more on it than what was stored, and the time since. */
#include <string.h>

#include "core/moments.h"
#include "sim/check_private.h"

/* Of two times that were read on a wall clock and told in milliseconds. */
enum { ROUNDING_MS = 4 };

/* What the cluster clock can have been, at most, for whoever made up its mind then. */
static hf_ms clock_at_most(const struct hfs_check *check)
{
    return check->clock + (check->letter->made_at - check->clock_at) +
           (check->watched ? ROUNDING_MS : 0);
}

static hf_ms larger(hf_ms a, hf_ms b)
{
    return a > b ? a : b;
}

/* Clock. */

/* It only goes on: what waits on it would wait anew. */
void hfs_check_judge_clock(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Clock *clock = (const Holdfast__V1__Clock *)change->record;
    hf_ms now = clock != NULL ? hf_moment_read(clock->now) : 0;

    if (now < check->clock)
        hfs_check_violate(check, "I11 the cluster clock goes back by %lld s",
                          (long long)(check->clock - now) / 1000);
    if (check->clock != 0 && !hfs_check_is_void(check) && now > clock_at_most(check))
        hfs_check_violate(check, "I11 the cluster clock is fast by %lld ms",
                          (long long)(now - clock_at_most(check)));
}

void hfs_check_apply_clock(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Clock *clock = (const Holdfast__V1__Clock *)change->record;

    check->clock = clock != NULL ? hf_moment_read(clock->now) : 0;
    check->clock_at = check->writer != NULL ? check->letter->made_at : check->world->now;
}

/* Starts. */

/* The first start is ordered at once, and every other after a delay, which grows. */
void hfs_check_judge_pace(struct hfs_check *check, const struct c_agent *agent)
{
    const struct hf_restart_policy *policy = &check->restart;
    hf_ms made_at = check->letter->made_at;
    uint32_t streak = hf_backoff_streak(&agent->orders, &policy->backoff, made_at);
    hf_ms least = hf_backoff_delay(&policy->backoff, streak + 1, UINT32_MAX);
    uint32_t recent = hf_backoff_count(&agent->orders, policy->window, made_at);

    if (streak > 0 && made_at - agent->command_at < least)
        hfs_check_violate(check, "I11 start %u of %s is ordered %lld ms after the last one",
                          streak + 1, agent->name, (long long)(made_at - agent->command_at));
    if (agent->next_start > clock_at_most(check))
        hfs_check_violate(check, "I11 a start of %s is ordered %lld ms before its time",
                          agent->name, (long long)(agent->next_start - clock_at_most(check)));
    if (recent >= policy->limit)
        hfs_check_violate(check, "I11 %u starts of %s within %lld s", recent + 1, agent->name,
                          (long long)policy->window / 1000);
}

void hfs_check_apply_health(struct hfs_check *check, const struct c_change *change)
{
    struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)change->record;
    bool by_person = check->writer != NULL && check->writer->role == HFS_PERSON;

    agent->next_start = health != NULL ? hf_moment_read(health->next_start) : 0;
    agent->leave = health != NULL ? health->heir_of : 0;
    if (health != NULL && health->end_upto > agent->end_upto)
        agent->end_upto = health->end_upto;
    /* A person who releases it forgets what was counted; so does whoever removes it. */
    if (health == NULL || (by_person && health->n_started_at == 0))
        agent->orders = (struct hf_backoff){ 0 };
    if (health == NULL)
        agent->recovered = (struct hf_backoff){ 0 };
}

/* Recoveries. */

/* It becomes claimable again after its owner was lost. */
void hfs_check_judge_recovered(struct hfs_check *check, const struct c_task *old)
{
    const struct hf_recover_policy *policy = &check->recover;
    hf_ms made_at = check->letter->made_at;
    hf_ms least = hf_backoff_delay(&policy->backoff, (uint32_t)old->resets + 1, UINT32_MAX);

    if (old->resets >= (int32_t)policy->limit)
        hfs_check_violate(check, "I11 %s is recovered for the %dth time", old->name,
                          old->resets + 1);
    if (old->resets >= 1 && made_at - old->reset_at < least)
        hfs_check_violate(check, "I11 %s is recovered for the %dth time after %lld ms",
                          old->name, old->resets + 1, (long long)(made_at - old->reset_at));
    if (old->state == HOLDFAST__V1__TASK__STATE__queued && old->next_at > clock_at_most(check))
        hfs_check_violate(check, "I11 %s is promoted %lld ms before its time", old->name,
                          (long long)(old->next_at - clock_at_most(check)));
}

/* So many lives of one agent may end with a task, in so much time. A life is counted once,
 * however many tasks it had. */
void hfs_check_judge_deaths(struct hfs_check *check, const struct c_task *old)
{
    const struct c_agent *agent = hfs_check_agent(check, old->owner);
    const struct hf_recover_policy *policy = &check->recover;

    if (old->owner_rev <= agent->recovered_rev || hfs_check_is_void(check))
        return;
    if (hf_backoff_count(&agent->recovered, policy->agent_window, check->letter->made_at) >=
        policy->agent_limit)
        hfs_check_violate(check, "I11 %s is recovered, and %s died with tasks too often",
                          old->name, agent->name);
}

void hfs_check_apply_deaths(struct hfs_check *check, const struct c_task *old)
{
    struct c_agent *agent = hfs_check_agent(check, old->owner);

    if (old->owner_rev <= agent->recovered_rev)
        return;
    agent->recovered_rev = old->owner_rev;
    hf_backoff_on_attempt(&agent->recovered, check->world->now);
}

/* The counting of a task is closed: it has ended, or somebody has had it for long enough. */
void hfs_check_judge_closed(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Recovery *recovery = (const Holdfast__V1__Recovery *)change->record;
    const struct c_task *task = hfs_check_task(check, change->key.name);
    hf_ms had = check->world->now - larger(task->taken_at, task->reset_at);

    if (recovery == NULL || recovery->attempts >= task->attempts || hfs_check_is_void(check) ||
        check->writer == NULL || check->writer->role != HFS_CONTROLLER)
        return;
    if (!hfs_check_is_final(task->state) &&
        (task->owner[0] == '\0' || had < check->recover.probation))
        hfs_check_violate(check, "I11 what was counted of %s is forgotten after %lld ms",
                          task->name, (long long)had);
}

void hfs_check_apply_promise(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Recovery *recovery = (const Holdfast__V1__Recovery *)change->record;
    struct c_task *task = hfs_check_task(check, change->key.name);

    task->next_at = recovery != NULL ? hf_moment_read(recovery->next_at) : 0;
    task->attempts = recovery != NULL ? recovery->attempts : 0;
    if (task->attempts == 0)
        task->resets = 0;
}

/* How many run at once. */

/* In so long who leads is told of what others did, where nothing is slow. */
enum { TOLD_MS = 1000 };

static bool runs(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__pending ||
           state == HOLDFAST__V1__TASK__STATE__acknowledged ||
           state == HOLDFAST__V1__TASK__STATE__in_progress;
}

/* Of that role, those that whoever made up its mind then must have known of: what controllers
 * promoted themselves, and, where nothing is slow, what others submitted. What came to run
 * while the promotion was on its way is nobody's fault, and is put right afterwards. */
static size_t count_known(const struct hfs_check *check, const char *role)
{
    size_t count = 0;

    for (size_t i = 0; i < check->task_count; i++) {
        const struct c_task *task = &check->tasks[i];
        hf_ms before = check->letter->made_at - task->runs_at;

        count += task->exists && strcmp(task->role, role) == 0 && runs(task->state) &&
                 before > (task->promoted ? 0 : TOLD_MS) && (task->promoted || check->calm);
    }
    return count;
}

void hfs_check_judge_promoted(struct hfs_check *check, const struct c_task *old)
{
    size_t running = count_known(check, old->role);

    if (check->running_max != 0 && running >= check->running_max && !hfs_check_is_void(check) &&
        !hfs_check_is_blind(check))
        hfs_check_violate(check, "I11 %s is promoted, and %zu of %u tasks of %s run already",
                          old->name, running, (unsigned)check->running_max, old->role);
}

/* Nobody has it, nobody is to be started with it, and it is no recovery. */
void hfs_check_judge_demoted(struct hfs_check *check, const struct c_task *old)
{
    /* What limits a watched history had need not be known. */
    bool limited = check->running_max != 0 || check->watched;

    if (!limited || old->owner[0] != '\0' || old->reserved_for[0] != '\0' || old->attempt > 0)
        hfs_check_violate(check, "I11 %s is demoted, and %s", old->name,
                          !limited                ? "there is no limit"
                          : old->owner[0] != '\0' ? "somebody has it"
                          : old->attempt > 0      ? "it is being recovered"
                                                  : "somebody is started with it");
}

void hfs_check_note_running(struct hfs_check *check, struct c_task *task,
                            Holdfast__V1__Task__State before, bool by_controller)
{
    if (!runs(task->state)) {
        task->promoted = false;
    } else if (!runs(before)) {
        task->runs_at = check->world->now;
        task->promoted = by_controller;
    }
}

static size_t count_running(const struct hfs_check *check, const char *role)
{
    size_t count = 0;

    for (size_t i = 0; i < check->task_count; i++) {
        const struct c_task *task = &check->tasks[i];

        count += task->exists && runs(task->state) && strcmp(task->role, role) == 0;
    }
    return count;
}

bool hfs_check_is_full(const struct hfs_check *check, const char *role)
{
    return check->running_max != 0 && count_running(check, role) >= check->running_max;
}

const char *hfs_check_find_surplus(const struct hfs_check *check)
{
    for (size_t i = 0; i < check->task_count && check->running_max != 0; i++) {
        const struct c_task *task = &check->tasks[i];

        if (task->exists && task->state == HOLDFAST__V1__TASK__STATE__pending &&
            task->attempt == 0 && task->reserved_for[0] == '\0' &&
            count_running(check, task->role) > check->running_max)
            return task->name;
    }
    return NULL;
}
