#include "core/engine.h"
#include "core/unrest.h"

struct hf_engine_policy hf_engine_policy_default(void)
{
    return (struct hf_engine_policy){
        .restart = hf_restart_policy_default(),
        .task = hf_task_policy_default(),
        .stall = hf_stall_policy_default(),
        .tilt = hf_tilt_policy_default(),
        .clock = hf_clusterclock_policy_default(),
        .recover = hf_recover_policy_default(),
        .placement = hf_placement_policy_default(),
        .storm = hf_storm_policy_default(),
        .ttl = 15000,
        .grace_margin = 1500,
        .command_within = 30000,
        .avoid_host = 300000,
        .unknown_pause = 1000,
        .told_within = 5000,
        .settle_after = 20,
        .heir_within = 1000,
        .health_every = 5000,
        .demand_after = 2000,
        .sweep_after = 600000,
        .unrest_limit = 3,
        .ring = 10000,
        .report_floor = 1000,
        .report_rate = 200,
    };
}

static const char *find_fault(const struct hf_engine_policy *p)
{
    if (p->ttl < 1000 || p->ttl > 3600000)
        return "engine.ttl must be 1 s..1 h";
    if (p->grace_margin < 0)
        return "engine.grace_margin must not be negative";
    if (p->command_within < 1000)
        return "engine.command_within must be at least 1 s";
    if (p->avoid_host < 0)
        return "engine.avoid_host must not be negative";
    if (p->unknown_pause <= 0 || p->told_within <= 0)
        return "engine.unknown_pause and engine.told_within must be positive";
    if (p->settle_after < 0 || p->settle_after > 1000)
        return "engine.settle_after must be 0..1 s";
    if (p->heir_within < 0 || p->heir_within > 60000)
        return "engine.heir_within must be 0..60 s";
    if (p->health_every < 0 || p->demand_after < 0)
        return "engine.health_every and engine.demand_after must not be negative";
    if (p->sweep_after < p->command_within)
        return "engine.sweep_after must not be below engine.command_within";
    if (p->unrest_limit == 0 || p->unrest_limit > HF_UNREST_MOST)
        return "engine.unrest_limit must be 1..16";
    if (p->ring < 100)
        return "engine.ring must be at least 100";
    if (p->report_floor <= 0 || p->report_rate == 0)
        return "engine.report_floor and engine.report_rate must be positive";
    return NULL;
}

int hf_engine_policy_check(const struct hf_engine_policy *p, const char **ret_why)
{
    const char *fault = find_fault(p);

    if (hf_restart_policy_check(&p->restart, ret_why) != HF_OK ||
        hf_task_policy_check(&p->task, ret_why) != HF_OK ||
        hf_stall_policy_check(&p->stall, ret_why) != HF_OK ||
        hf_tilt_policy_check(&p->tilt, ret_why) != HF_OK ||
        hf_clusterclock_policy_check(&p->clock, ret_why) != HF_OK ||
        hf_recover_policy_check(&p->recover, ret_why) != HF_OK ||
        hf_placement_policy_check(&p->placement, ret_why) != HF_OK ||
        hf_storm_policy_check(&p->storm, ret_why) != HF_OK)
        return HF_EINVAL;
    if (fault == NULL)
        return HF_OK;
    *ret_why = fault;
    return HF_EINVAL;
}
