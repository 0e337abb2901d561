/* check_moments.c - whether it was the time: who is missed is waited for, who may run where
 * nobody sees it is not replaced, and nothing is waited for without end.
 *
 * Only what follows from T and the promises that everybody can read; how late a controller may
 * hear of something is judged where the history says that no message is slow. */
#include <string.h>

#include "sim/check_private.h"

enum {
    GRACE_MARGIN_MS = 1500,
    STALL_MS = 3100,      /* a controller that stood still for so long has noticed */
    LAG_MS = 1000,        /* after so long everybody has heard, where no message is slow */
    STORM_MS = 60000,     /* nothing follows from a loss of all hosts before */
    COMMAND_MS = 45000,   /* a start that nobody serves is withdrawn by then, */
    TAKE_BACK_MS = 150000 /* and a task that nobody begins with is taken back */
};

static hf_ms grace_of(const struct c_life *life)
{
    return life->ttl / 3 + life->ttl / 6 + GRACE_MARGIN_MS;
}

/* Whether an exit tells of that life, or of what was tried after it. */
static bool is_seen(const struct c_agent *agent, int64_t life_rev)
{
    return agent->exit_rev != 0 ? agent->exit_rev >= life_rev : agent->exit_mod > life_rev;
}

static bool is_any_host_live(const struct hfs_check *check)
{
    for (size_t i = 0; i < check->host_count; i++) {
        if (check->hosts[i].present)
            return true;
    }
    return false;
}

/* Whoever stood still does not know how long others have been back. */
static void judge_stall(struct hfs_check *check, const struct c_agent *agent)
{
    const struct hfs_process *writer = check->writer;
    hf_ms made_at = check->letter->made_at;

    if (writer->stood_until - writer->stood_from >= STALL_MS &&
        made_at >= writer->stood_until &&
        made_at - writer->stood_until < grace_of(&agent->life))
        hfs_check_violate(check, "I7 %s is given up by %s, which has just stood still",
                          agent->name, writer->name);
}

static void judge_hold(struct hfs_check *check, const struct c_agent *agent)
{
    const struct c_host *host = hfs_check_host(check, agent->life.host);

    if (agent->holds && host->recorded && !host->present &&
        check->letter->made_at - host->gone_at > LAG_MS)
        hfs_check_violate(check, "I7 %s is given up, and may be running on %s", agent->name,
                          host->name);
}

/* Many hosts went about when the agent did: three, and nearly a third of all. */
static bool was_storm(const struct hfs_check *check, const struct c_agent *agent)
{
    enum { AROUND_MS = 4000, LEAST = 3, PERCENT = 30 };
    size_t lost = 0, all = 0;

    for (size_t i = 0; i < check->host_count; i++) {
        const struct c_host *host = &check->hosts[i];
        hf_ms apart = host->gone_at - agent->life.gone_at;

        all += host->recorded;
        lost += host->recorded && !host->present && apart < AROUND_MS && apart > -AROUND_MS;
    }
    return lost >= LEAST && lost * 100 >= all * PERCENT &&
           check->leader_since + LAG_MS < agent->life.gone_at;
}

/* Then who is missed has twice the time, and few at a time are given up. */
static void judge_storm(struct hfs_check *check, const struct c_agent *agent)
{
    enum { BURST = 5, SECOND_MS = 1000 };
    hf_ms now = check->world->now;
    size_t lately = 0;

    check->given_up[check->given_up_count++ % HFS_DONE] = now;
    if (!was_storm(check, agent))
        return;
    if (now - agent->life.gone_at < 2 * grace_of(&agent->life) - LAG_MS)
        hfs_check_violate(check, "I7 %s is given up in a storm after %lld ms", agent->name,
                          (long long)(now - agent->life.gone_at));
    for (size_t i = 0; i < check->given_up_count && i < HFS_DONE; i++)
        lately += now - check->given_up[i] < SECOND_MS;
    if (lately > BURST + 3)
        hfs_check_violate(check, "I7 %zu are given up within a second, in a storm", lately);
}

/* A start that its host had for half a minute. A leader may have decided so, too, where
 * somebody else was faster. */
void hfs_check_note_withdrawn(struct hfs_check *check, struct c_agent *agent)
{
    enum { WITHIN_MS = 29000 };
    struct c_host *host = hfs_check_host(check, agent->command_host);

    if (check->world->now - agent->command_at < WITHIN_MS)
        return;
    host->avoided_at = check->world->now;
    if (check->writer == NULL || check->writer->role != HFS_CONTROLLER || !host->present ||
        agent->stopped || agent->life.present || hfs_check_is_blind(check))
        return;
    memcpy(agent->passed_host, agent->command_host, HFS_NAME);
    agent->passed_lease = host->lease;
    agent->passed_at = check->world->now;
    agent->passed_term = check->leader_rev;
}

/* Another one is asked, if there is one. Who had missed something may have blamed that, too. */
void hfs_check_judge_host(struct hfs_check *check, const struct c_agent *agent,
                          const char *name)
{
    enum { PASSED_MS = 60000, SINCE_MS = 5000, BLAMED_MS = 300000 };
    const struct c_host *host = hfs_check_host(check, name);
    bool others = false;

    for (size_t i = 0; i < check->host_count; i++)
        others = others || (&check->hosts[i] != host && check->hosts[i].present &&
                            check->hosts[i].avoided_at == 0 && !check->hosts[i].cordoned &&
                            check->world->now - check->hosts[i].free_since > SINCE_MS &&
                            check->world->now - check->hosts[i].since > SINCE_MS);
    if (others && !check->was_restored && !hfs_check_is_blind(check) &&
        !hfs_check_was_blind(check, BLAMED_MS) && strcmp(agent->passed_host, name) == 0 &&
        agent->passed_term == check->leader_rev && agent->passed_lease == host->lease &&
        check->world->now - agent->passed_at < PASSED_MS)
        hfs_check_violate(check, "I11 %s is asked again for %s, which it did not start", name,
                          agent->name);
}

/* A death that nobody saw. */
static void judge_missed(struct hfs_check *check, const struct c_agent *agent)
{
    hf_ms now = check->world->now;

    if (check->calm)
        judge_storm(check, agent);
    if (now - agent->life.gone_at < grace_of(&agent->life))
        hfs_check_violate(check, "I7 %s is given up %lld ms after it was missed", agent->name,
                          (long long)(now - agent->life.gone_at));
    judge_stall(check, agent);
    judge_hold(check, agent);
    if (check->calm && !is_any_host_live(check) &&
        check->letter->made_at - check->hosts_gone_at > LAG_MS &&
        check->letter->made_at - check->hosts_gone_at < STORM_MS)
        hfs_check_violate(check, "I7 %s is given up while every host is missed", agent->name);
}

/* Another process has had the name since: the owner cannot come back, and nobody waits for it,
 * also where that other one is missed now. */
static bool is_replaced(const struct c_agent *agent, const struct c_task *task)
{
    return agent->life.create_rev > task->owner_rev &&
           strcmp(agent->life.instance, task->owner_instance) != 0;
}

void hfs_check_judge_reset(struct hfs_check *check, const struct c_task *task)
{
    const struct c_agent *agent = hfs_check_agent(check, task->owner);
    hf_ms made_at = check->letter->made_at, grace = grace_of(&agent->life);

    if (hfs_check_is_void(check) || hfs_check_is_blind(check) ||
        is_seen(agent, task->owner_rev) || is_replaced(agent, task))
        return;
    if (!agent->life.present && agent->life.missed)
        judge_missed(check, agent);
    else if (agent->life.present && strcmp(agent->life.instance, task->owner_instance) == 0 &&
             made_at - agent->life.gone_at < grace && made_at - agent->life.since < grace)
        hfs_check_violate(check, "I7 %s is reset %lld ms after its owner was back", task->name,
                          (long long)(made_at - agent->life.since));
}

void hfs_check_judge_order(struct hfs_check *check, const struct c_agent *agent)
{
    if (hfs_check_is_void(check))
        return;
    hfs_check_judge_pace(check, agent);
    /* A late copy may register a process once more whose end was written: nobody misses that.
     */
    if (strcmp(agent->life.instance, agent->exit_instance) == 0)
        return;
    /* Who was removed and is told of anew is another one, whom nobody has ever seen. */
    if (agent->forgotten)
        return;
    /* What was sent before that life began follows from the end of the one before. It is late,
     * and nothing that it compares tells that somebody was here meanwhile. */
    if (check->letter->made_at < agent->life.since)
        return;
    if (agent->life.missed && !hfs_check_is_blind(check) && !agent->life.present &&
        !is_seen(agent, agent->life.create_rev))
        judge_missed(check, agent);
}

/* Nothing is decided of one whose spec cannot be read, until it is corrected. */
static bool is_left_alone(const struct hfs_check *check, const struct c_agent *agent)
{
    return agent->unreadable ||
           (agent->spec_at != 0 && check->world->now - agent->spec_at <= LAG_MS);
}

static void judge_wait_of_task(struct hfs_check *check, const struct c_task *task)
{
    const struct c_agent *owner;

    if (!task->exists || task->state != HOLDFAST__V1__TASK__STATE__acknowledged)
        return;
    owner = hfs_check_agent(check, task->owner);
    if (owner->life.present && owner->life.create_rev == task->owner_rev &&
        !is_left_alone(check, owner) && check->leader_since < task->taken_at &&
        check->world->now - task->taken_at > TAKE_BACK_MS)
        hfs_check_violate(check, "I9 %s does not begin with %s, and keeps it", task->owner,
                          task->name);
}

/* One whose spec nobody can read is left alone until that is corrected. */
static void judge_wait_of_agent(struct hfs_check *check, const struct c_agent *agent)
{
    hf_ms since = agent->spec_at > agent->command_at ? agent->spec_at : agent->command_at;

    if (agent->commands > 0 && !is_left_alone(check, agent) &&
        check->leader_since < agent->command_at && check->world->now - since > COMMAND_MS)
        hfs_check_violate(check, "I8 a start of %s is waited for without end", agent->name);
}

void hfs_check_judge_waits(struct hfs_check *check)
{
    if (check->leader_rev == 0)
        return;
    for (size_t i = 0; i < check->agent_count; i++)
        judge_wait_of_agent(check, &check->agents[i]);
    for (size_t i = 0; i < check->task_count; i++)
        judge_wait_of_task(check, &check->tasks[i]);
}

static bool is_untold_life(const struct hfs_check *check, const struct c_agent *agent)
{
    return !check->watched && check->letter->known_rev < agent->life.create_rev;
}

/* Whoever was transient is remembered for a while: by whoever asks what became of it, and while
 * its agentd, which has just made it known, is about to start it. */
void hfs_check_judge_swept(struct hfs_check *check, const struct c_change *change)
{
    const struct c_agent *agent = hfs_check_agent(check, change->key.name);
    hf_ms since =
        agent->life.gone_at > agent->spec_since ? agent->life.gone_at : agent->spec_since;

    if (!change->deleted || check->sweep_after == 0 || check->was_restored ||
        check->writer == NULL || check->writer->role != HFS_CONTROLLER)
        return;
    /* Who was away for all of a life missed it, and knows only the end of the one before; so
     * does whoever has not been told of it yet. */
    if (since != agent->spec_since &&
        (check->writer->listed_at >= agent->life.since || is_untold_life(check, agent)))
        return;
    if (check->letter->made_at - since < check->sweep_after)
        hfs_check_violate(check, "I11 %s is removed %lld ms after it was here", agent->name,
                          (long long)(check->letter->made_at - since));
}
