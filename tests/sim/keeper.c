#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster.h"

enum {
    MAKE_MS = 20,
    END_MS = 40,
    POLITE_MS = 400,
    READY_MS = 30,
    LINK_AGAIN_MS = 300,
    HELD_MS = 100,
    SETTLE_MS = 20,
    LEAVE_LOOK_MS = 100,
    LEAVE_GRACE_MS = 10000,
    LEAVE_MS = 13000,
};

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define SEQ_MASK                 ((INT64_C(1) << 48) - 1)

static hf_ms draw(struct hfs_host *host, hf_ms most)
{
    return 1 + (hf_ms)hfs_random_below(&host->cluster->dice, (uint64_t)most);
}

static void after(struct hfs_host *host, struct hfs_timer *timer, hf_ms length)
{
    struct hfs_world *world = &host->cluster->world;

    hfs_timer_start(world, timer, world->now + length);
}

static void tell(struct hfs_agent *agent, enum hf_process_news news, const char *text)
{
    struct hf_event event = { .kind = HF_EVENT_PROCESS };

    event.process = (struct hf_event_process){ .agent = agent->config->name,
                                               .instance_id = agent->instance,
                                               .news = news,
                                               .pid = agent->pid,
                                               .start_time = agent->start_time,
                                               .kind = agent->exit_kind,
                                               .status = agent->exit_status,
                                               .signal = agent->exit_signal,
                                               .text = text };
    hfs_link_tell(agent->host, &event);
}

struct hfs_agent *hfs_keeper_find(struct hfs_host *host, const char *instance)
{
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        if (strcmp(agent->instance, instance) == 0)
            return agent;
    }
    return NULL;
}

static void forget(struct hfs_agent *agent)
{
    struct hfs_world *world = &agent->host->cluster->world;
    struct hfs_agent **at = &agent->host->agents;

    while (*at != agent)
        at = &(*at)->next;
    *at = agent->next;
    hfs_timer_stop(world, &agent->timer);
    hfs_timer_stop(world, &agent->making);
    hfs_timer_stop(world, &agent->ending);
    hfs_timer_stop(world, &agent->forced);
    hfs_timer_stop(world, &agent->ready);
    hfs_timer_stop(world, &agent->settling);
    hfs_check_stands(agent->host->cluster->check, agent->instance);
    free(agent);
}

/* Whether it runs, as far as the rest of the world is concerned. */
static void publish(struct hfs_agent *agent)
{
    struct hfs_check *check = agent->host->cluster->check;

    if (agent->begun && !agent->frozen && !agent->killed && !agent->ended &&
        !agent->host->machine_stands)
        hfs_check_runs(check, agent->config->name, agent->instance, agent->lease);
    else
        hfs_check_stands(check, agent->instance);
}

/* Ends. */

/* Told to every link, until one has written it: no end is ever lost. */
static void tell_end(struct hfs_agent *agent)
{
    if (agent->host->link != NULL)
        tell(agent, HF_PROCESS_ENDED, "the process is gone");
}

static void settle(struct hfs_agent *agent)
{
    if (!hfs_link_has(agent->host, agent->config->name, agent->instance))
        forget(agent);
    else
        after(agent->host, &agent->settling, SETTLE_MS);
}

static void on_settling(struct hfs_timer *timer)
{
    struct hfs_agent *agent = OWNER(timer, struct hfs_agent, settling);

    if (agent->host->link != NULL)
        settle(agent);
}

void hfs_keeper_on_told(struct hfs_host *host, const char *instance)
{
    struct hfs_agent *agent = hfs_keeper_find(host, instance);

    if (agent != NULL && agent->ended)
        settle(agent);
}

void hfs_keeper_end(struct hfs_agent *agent, Holdfast__V1__Exit__Kind kind, int32_t status,
                    int32_t signal)
{
    if (agent->ended)
        return;
    hfs_note(&agent->host->cluster->world, "%s ends on %s: status %d signal %d",
             agent->config->name, agent->host->name, status, signal);
    agent->ended = true;
    agent->exit_kind = kind;
    agent->exit_status = status;
    agent->exit_signal = signal;
    hfs_timer_stop(&agent->host->cluster->world, &agent->timer);
    publish(agent);
    tell_end(agent);
}

static void on_ending(struct hfs_timer *timer)
{
    hfs_keeper_end(OWNER(timer, struct hfs_agent, ending), HOLDFAST__V1__EXIT__KIND__crashed, 0,
                   15);
}

static void on_forced(struct hfs_timer *timer)
{
    hfs_keeper_end(OWNER(timer, struct hfs_agent, forced), HOLDFAST__V1__EXIT__KIND__crashed, 0,
                   9);
}

static void kill_soon(struct hfs_agent *agent)
{
    agent->killed = true;
    publish(agent);
    if (!hfs_timer_is_armed(&agent->forced) ||
        agent->forced.at > agent->host->cluster->world.now + END_MS)
        after(agent->host, &agent->forced, draw(agent->host, END_MS));
}

static void stop(struct hfs_agent *agent, hf_ms grace)
{
    /* What stands still hears nothing. */
    if (!agent->stubborn && !agent->frozen)
        after(agent->host, &agent->ending, draw(agent->host, POLITE_MS));
    if (!hfs_timer_is_armed(&agent->forced))
        after(agent->host, &agent->forced, grace);
}

/* Beginnings. */

static const struct hfs_agent_config *config_of(struct hfs_cluster *cluster, const char *name)
{
    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        if (strcmp(cluster->cfg.agents[i].name, name) == 0)
            return &cluster->cfg.agents[i];
    }
    return NULL;
}

static void on_made(struct hfs_timer *timer)
{
    struct hfs_agent *agent = OWNER(timer, struct hfs_agent, making);
    struct hfs_cluster *cluster = agent->host->cluster;

    if (agent->host->starts_nothing ||
        hfs_random_percent(&cluster->dice, cluster->cfg.make_fail_percent)) {
        tell(agent, HF_PROCESS_FAILED, "no such program");
        forget(agent);
        return;
    }
    agent->held = true;
    agent->pid = ++cluster->last_pid;
    agent->start_time = cluster->world.now;
    tell(agent, HF_PROCESS_HELD, NULL);
    if (cluster->cfg.make_fail_percent > 0 &&
        hfs_random_percent(&cluster->dice, cluster->cfg.make_fail_percent / 2))
        after(agent->host, &agent->forced, draw(agent->host, HELD_MS)); /* before it begins */
}

static void on_ready(struct hfs_timer *timer)
{
    struct hfs_agent *agent = OWNER(timer, struct hfs_agent, ready);

    if (!agent->ended)
        tell(agent, HF_PROCESS_READY, NULL);
}

static void make(struct hfs_host *host, const struct hf_intent_process *act)
{
    struct hfs_cluster *cluster = host->cluster;
    const struct hfs_agent_config *config = config_of(cluster, act->agent);
    struct hfs_agent *agent;

    if (config == NULL || hfs_keeper_find(host, act->instance_id) != NULL) {
        hfs_check_violate(cluster->check, "I8 %s asks twice for one process of %s", host->name,
                          act->agent);
        return;
    }
    agent = hfs_alloc(sizeof *agent);
    agent->host = host;
    agent->config = config;
    agent->fence = act->spec->fence;
    agent->stubborn = hfs_random_percent(&cluster->dice, cluster->cfg.stubborn_percent);
    (void)snprintf(agent->instance, sizeof agent->instance, "%s", act->instance_id);
    agent->timer = (struct hfs_timer){ .fn = hfs_agent_on_timer, .process = &host->machine };
    agent->making = (struct hfs_timer){ .fn = on_made, .process = &host->machine };
    agent->ending = (struct hfs_timer){ .fn = on_ending, .process = &host->machine };
    agent->forced = (struct hfs_timer){ .fn = on_forced, .process = &host->machine };
    agent->ready = (struct hfs_timer){ .fn = on_ready, .process = &host->machine };
    agent->settling = (struct hfs_timer){ .fn = on_settling, .process = &host->machine };
    agent->next = host->agents;
    host->agents = agent;
    after(host, &agent->making, draw(host, MAKE_MS));
}

static bool is_fenced(const struct hfs_host *host)
{
    return host->record.fence_at <= hfs_process_now(&host->machine);
}

static void note_fence(struct hfs_agent *agent)
{
    const struct hfs_host *host = agent->host;

    agent->fenced_at =
        is_fenced(host) ? host->record.fence_at - host->machine.clock_offset : -1;
}

static void freeze(struct hfs_agent *agent)
{
    if (!agent->begun || agent->frozen || agent->ended)
        return;
    hfs_note(&agent->host->cluster->world, "%s stands still on %s", agent->config->name,
             agent->host->name);
    agent->frozen = true;
    agent->frozen_at = agent->host->cluster->world.now;
    note_fence(agent);
    publish(agent);
    tell(agent, HF_PROCESS_FROZEN, NULL);
}

static bool lacks(const struct hfs_host *host, enum hf_mutant mutant)
{
    return (host->cluster->cfg.mutants & hf_mutant_bit(mutant)) != 0;
}

/* What stands still is killed in the end, or as soon as it does. */
static void judge_frozen(const struct hfs_agent *agent)
{
    enum { MOST_MS = 3660000, KILL_MS = 2000 };
    hf_ms now = agent->host->cluster->world.now, until = agent->host->process.stood_until;
    hf_ms frozen = now - agent->frozen_at;
    /* A link that stood still meanwhile has heard of it when it ran again. */
    hf_ms heard = until > agent->frozen_at ? now - until : frozen;

    if (heard > MOST_MS ||
        (frozen > KILL_MS && agent->fence == HOLDFAST__V1__SPEC__FENCE__kill))
        hfs_check_violate(agent->host->cluster->check,
                          "F %s on %s runs again after %lld s, and should have been killed",
                          agent->config->name, agent->host->name, (long long)frozen / 1000);
}

/* From two thirds of its time on nothing new begins under a lease. That one is lost reaches the
 * node a moment later than us, and harms nobody: every write compares it. */
void hfs_keeper_judge(struct hfs_host *host, const char *what)
{
    const struct hf_lease_record *record = &host->record;
    hf_ms now = hfs_process_now(&host->machine);

    if (record->id != 0 && now >= record->counted_at + record->ttl * 2 / 3)
        hfs_check_violate(host->cluster->check, "J %s on %s while its lease is in jeopardy",
                          what, host->name);
    hfs_check_judge_promise(host->cluster->check, record->id, what);
}

static void let_go(struct hfs_agent *agent, const struct hf_intent_process *act)
{
    struct hfs_host *host = agent->host;
    struct hfs_cluster *cluster = host->cluster;

    if (!agent->held || agent->begun || agent->ended)
        return;
    if (act->checkpoint > 0)
        hfs_note(&cluster->world, "%s begins on %s with %s from checkpoint %lld",
                 agent->config->name, host->name, act->task, (long long)act->checkpoint);
    else
        hfs_note(&cluster->world, "%s begins on %s%s%s", agent->config->name, host->name,
                 act->task != NULL ? " with " : "", act->task != NULL ? act->task : "");
    hfs_note(&cluster->world, "  as %lld (%s)", (long long)(act->incarnation & SEQ_MASK),
             agent->instance);
    hfs_keeper_judge(host, "a program begins");
    agent->begun = true;
    agent->incarnation = act->incarnation;
    agent->lease = host->record.id;
    host->started[agent->config - cluster->cfg.agents] = true;
    hfs_check_begins(cluster->check, agent->config->name, agent->instance, act->incarnation);
    publish(agent);
    after(host, &agent->ready, draw(host, READY_MS));
    hfs_agent_begin(agent, act->task, act->checkpoint);
    if (is_fenced(host) && !agent->ended)
        freeze(agent);
}

static void thaw(struct hfs_agent *agent, int64_t incarnation)
{
    if (!agent->begun || agent->ended)
        return;
    agent->incarnation = incarnation;
    agent->lease = agent->host->record.id;
    if (!agent->frozen)
        return;
    if (is_fenced(agent->host)) { /* the order took too long */
        tell(agent, HF_PROCESS_FROZEN, NULL);
        return;
    }
    hfs_note(&agent->host->cluster->world, "%s runs again on %s", agent->config->name,
             agent->host->name);
    agent->frozen = false;
    judge_frozen(agent);
    publish(agent);
    hfs_check_thawed(agent->host->cluster->check, agent->config->name, agent->instance,
                     agent->fenced_at);
    tell(agent, HF_PROCESS_THAWED, NULL);
    if (agent->missed)
        after(agent->host, &agent->timer, 1);
    agent->missed = false;
}

void hfs_keeper_on_act(struct hfs_host *host, const struct hf_intent_process *act)
{
    struct hfs_agent *agent = hfs_keeper_find(host, act->instance_id);

    if (act->act == HF_PROCESS_MAKE) {
        make(host, act);
        return;
    }
    if (agent == NULL || agent->ended)
        return;
    switch (act->act) {
    case HF_PROCESS_LET_GO: let_go(agent, act); break;
    case HF_PROCESS_DISCARD:
        if (!agent->begun)
            forget(agent);
        break;
    case HF_PROCESS_STOP: stop(agent, act->grace); break;
    case HF_PROCESS_KILL: kill_soon(agent); break;
    case HF_PROCESS_FREEZE: freeze(agent); break;
    case HF_PROCESS_THAW: thaw(agent, act->incarnation); break;
    default: break;
    }
}

/* The fence. */

static void on_fence(struct hfs_timer *timer)
{
    struct hfs_host *host = OWNER(timer, struct hfs_host, fence);

    if (!is_fenced(host)) {
        hfs_keeper_on_lease(host, &host->record);
        return;
    }
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        bool kills = agent->fence == HOLDFAST__V1__SPEC__FENCE__kill;

        if (agent->frozen && agent->fenced_at < 0)
            note_fence(agent);
        if (agent->begun && (agent->fence == HOLDFAST__V1__SPEC__FENCE__freeze ||
                             (kills && lacks(host, HF_MUTANT_NO_FENCE_KILL))))
            freeze(agent);
        else if (agent->begun && kills)
            kill_soon(agent);
    }
}

void hfs_keeper_on_lease(struct hfs_host *host, const struct hf_lease_record *record)
{
    struct hfs_world *world = &host->cluster->world;

    host->record = *record;
    if (record->id != 0)
        host->last_lease = record->id;
    if (record->fence_at == HF_LEASE_NEVER)
        hfs_timer_stop(world, &host->fence);
    else
        hfs_timer_start(world, &host->fence, record->fence_at - host->machine.clock_offset);
}

/* Links. */

static void on_restart(struct hfs_timer *timer)
{
    struct hfs_host *host = OWNER(timer, struct hfs_host, restart);

    if (host->up && host->link == NULL)
        hfs_link_start(host);
}

void hfs_keeper_on_link_gone(struct hfs_host *host)
{
    if (!hfs_timer_is_armed(&host->leave))
        host->leaving = false; /* whoever comes next has not been told */
    if (host->up)
        after(host, &host->restart, draw(host, LINK_AGAIN_MS));
}

void hfs_keeper_on_link(struct hfs_host *host)
{
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        if (agent->ended)
            tell_end(agent);
    }
}

/* Machines. */

static void on_resume(struct hfs_timer *timer)
{
    struct hfs_host *host = OWNER(timer, struct hfs_host, resume);

    host->machine_stands = false;
    hfs_note(&host->cluster->world, "%s goes on", host->name);
    if (is_fenced(host) && hfs_timer_is_armed(&host->fence))
        on_fence(&host->fence);
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next)
        publish(agent);
}

void hfs_keeper_suspend(struct hfs_host *host, hf_ms length)
{
    if (!host->up || host->machine_stands)
        return;
    host->machine_stands = true;
    hfs_process_pause(&host->machine, length);
    hfs_process_pause(&host->process, length);
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next)
        publish(agent);
    hfs_timer_start(&host->cluster->world, &host->resume, host->cluster->world.now + length);
}

/* Leaving. */

/* Their ends are written, or it has taken too long. */
static void on_leaving(struct hfs_timer *timer)
{
    struct hfs_host *host = OWNER(timer, struct hfs_host, leave);

    if (host->agents != NULL && host->cluster->world.now < host->leave_by) {
        after(host, timer, LEAVE_LOOK_MS);
        return;
    }
    hfs_note(&host->cluster->world, "%s has left", host->name);
    hfs_link_end(host);
    hfs_keeper_crash(host);
    if (host->returns)
        hfs_keeper_start(host);
}

/* Only now may the agents end: whoever sees their ends knows that nothing starts there. */
static void on_left(struct hfs_host *host)
{
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next)
        stop(agent, LEAVE_GRACE_MS);
    host->leave_by = host->cluster->world.now + LEAVE_MS;
    after(host, &host->leave, LEAVE_LOOK_MS);
}

void hfs_keeper_leave(struct hfs_host *host)
{
    if (!host->up || host->leaving || host->link == NULL)
        return;
    host->leaving = true;
    host->returns = false;
    hfs_note(&host->cluster->world, "%s leaves", host->name);
    hfs_link_say_goodbye(host, on_left);
}

void hfs_keeper_crash(struct hfs_host *host)
{
    struct hfs_world *world = &host->cluster->world;

    if (!host->up)
        return;
    host->up = false;
    hfs_link_crash(host);
    while (host->agents != NULL)
        forget(host->agents);
    hfs_timer_stop(world, &host->fence);
    hfs_timer_stop(world, &host->restart);
    hfs_timer_stop(world, &host->resume);
    hfs_timer_stop(world, &host->leave);
    host->machine_stands = host->leaving = false;
}

void hfs_keeper_start(struct hfs_host *host)
{
    host->returns = host->leaving;
    if (host->up || host->gone)
        return;
    host->up = true;
    host->boots++;
    (void)snprintf(host->boot_id, sizeof host->boot_id, "boot-%u-%u", host->number,
                   host->boots);
    host->fence = (struct hfs_timer){ .fn = on_fence, .process = &host->machine };
    host->restart = (struct hfs_timer){ .fn = on_restart, .process = &host->machine };
    host->resume = (struct hfs_timer){ .fn = on_resume };
    host->leave = (struct hfs_timer){ .fn = on_leaving, .process = &host->machine };
    host->record = (struct hf_lease_record){ .fence_at = HF_LEASE_NEVER };
    host->machine.stands_until = host->process.stands_until = 0;
    memset(host->started, 0, sizeof host->started);
    hfs_link_start(host);
}
