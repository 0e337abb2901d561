#include "sim/crash.h"

enum { AGAIN_MS = 3000 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static struct hfs_host *host_of(const struct hfs_crasher *crasher)
{
    return &crasher->cluster->hosts[crasher->crash.number];
}

static void on_now(struct hfs_timer *timer)
{
    struct hfs_crasher *crasher = OWNER(timer, struct hfs_crasher, now);
    struct hfs_world *world = &crasher->cluster->world;

    crasher->is_dying = false;
    switch (crasher->crash.who) {
    case HFS_VICTIM_CONTROLLER:
        hfs_controller_crash(&crasher->cluster->controllers[crasher->crash.number]);
        break;
    case HFS_VICTIM_LINK: hfs_link_crash(host_of(crasher)); break;
    case HFS_VICTIM_MACHINE:
        hfs_keeper_crash(host_of(crasher));
        hfs_timer_start(world, &crasher->again, world->now + AGAIN_MS);
        break;
    case HFS_VICTIM_AGENT:
        hfs_keeper_end(crasher->agent, HOLDFAST__V1__EXIT__KIND__crashed, 0, 9);
        break;
    case HFS_VICTIMS: break;
    }
}

static void on_again(struct hfs_timer *timer)
{
    hfs_keeper_start(host_of(OWNER(timer, struct hfs_crasher, again)));
}

void hfs_crasher_init(struct hfs_crasher *crasher, struct hfs_cluster *cluster,
                      const struct hfs_crash *crash)
{
    *crasher = (struct hfs_crasher){ .cluster = cluster,
                                     .crash = *crash,
                                     .now = { .fn = on_now },
                                     .again = { .fn = on_again } };
}

void hfs_crasher_done(struct hfs_crasher *crasher)
{
    hfs_timer_stop(&crasher->cluster->world, &crasher->now);
    hfs_timer_stop(&crasher->cluster->world, &crasher->again);
}

static bool is_last_step(struct hfs_crasher *crasher)
{
    struct hfs_crash *crash = &crasher->crash;

    if (crash->is_here == NULL)
        return crasher->steps == crash->step;
    return !crasher->has_died && crash->is_here(crasher->steps, &crash->is_lost, crash->arg);
}

/* Not from inside: whoever takes the step is in the middle of it. */
static bool take_step(struct hfs_crasher *crasher)
{
    struct hfs_world *world = &crasher->cluster->world;

    if (crasher->is_dying)
        return true;
    crasher->steps++;
    if (!is_last_step(crasher))
        return false;
    crasher->is_dying = crasher->has_died = true;
    hfs_timer_start(world, &crasher->now, world->now);
    return crasher->crash.is_lost;
}

static bool is_victim(const struct hfs_crasher *crasher, const struct hfs_process *from)
{
    switch (crasher->crash.who) {
    case HFS_VICTIM_CONTROLLER:
        return from == &crasher->cluster->controllers[crasher->crash.number].process;
    case HFS_VICTIM_LINK:
    case HFS_VICTIM_MACHINE: return from == &host_of(crasher)->process;
    case HFS_VICTIM_AGENT:
    case HFS_VICTIMS: break;
    }
    return false;
}

bool hfs_crasher_on_send(struct hfs_crasher *crasher, const struct hfs_process *from,
                         const struct hfs_letter *letter)
{
    if (!is_victim(crasher, from))
        return false;
    if (letter->request->kind == HFS_RENEW)
        return crasher->is_dying;
    return take_step(crasher);
}

bool hfs_crasher_on_ask(struct hfs_crasher *crasher, struct hfs_agent *agent)
{
    const struct hfs_agent_config *agents = crasher->cluster->cfg.agents;

    if (crasher->crash.who != HFS_VICTIM_AGENT ||
        agent->config != &agents[crasher->crash.number])
        return false;
    if (!crasher->is_dying)
        crasher->agent = agent;
    return take_step(crasher);
}
