#include "controller/policy.h"

#include <stdio.h>

#include "base/str.h"

#define DAY_MS   INT64_C(86400000)
#define PROOF_MS 25000 /* etcd is looked at this often, so nothing is known of less */

static const struct hf_option TABLE[] = {
    {
        .key = "placement.home_grace",
        .flag = "home-grace",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, home_grace),
        .max = DAY_MS,
        .preset = "60s",
        .help = "How long a host that vanished is waited for before its agents are "
                "started on another host of their pool.",
    },
    {
        .key = "restart.backoff.base",
        .flag = "restart-backoff-base",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, restart.base),
        .min = 10,
        .max = DAY_MS,
        .preset = "1s",
        .help = "How long an agent that ended waits for its second start; the first is "
                "at once.",
    },
    {
        .key = "restart.backoff.factor",
        .flag = "restart-backoff-factor",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, restart.factor),
        .min = 1,
        .max = 10,
        .preset = "2",
        .help = "How many times longer it waits for each further one.",
    },
    {
        .key = "restart.backoff.cap",
        .flag = "restart-backoff-cap",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, restart.cap),
        .min = 10,
        .max = DAY_MS,
        .preset = "60s",
        .help = "The longest that it ever waits.",
    },
    {
        .key = "restart.backoff.forget_after",
        .flag = "restart-forget-after",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, restart.forget_after),
        .min = 1000,
        .max = 7 * DAY_MS,
        .preset = "10m",
        .help = "After so long without a start earlier ones are forgotten, and the next "
                "is at once again.",
    },
    {
        .key = "restart.limit",
        .flag = "restart-limit",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, restart.limit),
        .min = 1,
        .max = HF_BACKOFF_KEPT,
        .preset = "10",
        .help = "More starts than this within restart.window, and the agent is held "
                "until a person says `holdfast restart`.",
    },
    {
        .key = "restart.window",
        .flag = "restart-window",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, restart.window),
        .min = 1000,
        .max = 7 * DAY_MS,
        .preset = "10m",
        .help = "The time in which starts count for restart.limit.",
    },
    {
        .key = "restart.leave",
        .flag = "restart-leave",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, restart.leave),
        .max = 60000,
        .preset = "1s",
        .help = "An agent that crashes at its first task is started again by its own "
                "agentd, by leave that the leader gave in advance. So long the leader waits "
                "for that before it orders the start; 0s: no leave is given, and every start "
                "is ordered.",
    },
    {
        .key = "recovery.backoff",
        .flag = "recovery-backoff",
        .value = "DURATION,...",
        HF_OPTION_FIELD(STRINGS, struct ctl_policy, recovery.backoff),
        .preset = "60s",
        .help = "How long a task waits for its second recovery, for its third, and so "
                "on; the last is for all others. One alone stands for itself, twice and "
                "four times as long. The first recovery is at once.",
    },
    {
        .key = "recovery.max_attempts_per_task",
        .flag = "recovery-limit",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, recovery.limit),
        .min = 1,
        .max = HF_RECOVER_OUTCOMES,
        .preset = "3",
        .help = "How often a task is recovered before a person has to look at it.",
    },
    {
        .key = "recovery.max_attempts_per_hour",
        .flag = "recovery-hourly-limit",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, recovery.hourly_limit),
        .min = 1,
        .max = HF_BACKOFF_KEPT,
        .preset = "5",
        .help = "How many deaths of one agent within an hour are followed by a recovery "
                "of its tasks.",
    },
    {
        .key = "recovery.probation",
        .flag = "recovery-probation",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, recovery.probation),
        .min = 100,
        .max = 7 * DAY_MS,
        .preset = "15m",
        .help = "How long a successor must have had a task before its recovery is a "
                "success.",
    },
    {
        .key = "task.start_within",
        .flag = "task-start-within",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.start_within),
        .min = 1000,
        .max = 30 * DAY_MS,
        .preset = "2m",
        .help = "How long an agent may have a task without starting it before it is "
                "taken back, for anyone.",
    },
    {
        .key = "task.alert_after",
        .flag = "task-alert-after",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.alert_after),
        .min = 1000,
        .max = 30 * DAY_MS,
        .preset = "5m",
        .help = "How long tasks wait for a role of which no agent is here before "
                "somebody is told.",
    },
    {
        .key = "task.review_after",
        .flag = "task-review-after",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.review_after),
        .min = 1000,
        .max = 30 * DAY_MS,
        .preset = "24h",
        .help = "How long they wait before a person has to look at them.",
    },
    {
        .key = "task.progress_max",
        .flag = "progress-max",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.progress_max),
        .min = 1000,
        .max = 30 * DAY_MS,
        .preset = "30m",
        .help = "How long a task that should be done by its expectedCompletion may stand "
                "still, and its agent say nothing, before the agent is asked why.",
    },
    {
        .key = "task.inquiry_answer",
        .flag = "inquiry-answer",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.inquiry_answer),
        .min = 1000,
        .max = 30 * DAY_MS,
        .preset = "5m",
        .help = "How long it has to answer. Then it is ended if its heartbeats have "
                "stopped for as long; otherwise a person is told.",
    },
    {
        .key = "checkpoints.keep",
        .flag = "keep-checkpoints",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, task.keep_chain),
        .max = 30 * DAY_MS,
        .preset = "1h",
        .help = "How long the checkpoints of a task that was completed or cancelled are "
                "kept. Those of one that failed stay until it is removed.",
    },
    {
        .key = "storm.window",
        .flag = "storm-window",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, storm.window),
        .min = 1000,
        .max = DAY_MS,
        .preset = "10s",
        .help = "The time in which lost leases count as one event.",
    },
    {
        .key = "storm.lost_min",
        .flag = "storm-lost-min",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, storm.lost_min),
        .min = 1,
        .max = 1000000,
        .preset = "3",
        .help = "Fewer lost leases than this are no storm, unless no host is left.",
    },
    {
        .key = "storm.partial_percent",
        .flag = "storm-partial-percent",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, storm.partial_percent),
        .min = 1,
        .max = 100,
        .preset = "30",
        .help = "From how many percent of the hosts on, lost at once, restarts go "
                "slowly.",
    },
    {
        .key = "storm.full_percent",
        .flag = "storm-full-percent",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, storm.full_percent),
        .min = 1,
        .max = 100,
        .preset = "80",
        .help = "From how many percent on nothing is reset or restarted until somebody "
                "is back, or etcd was well for storm.well_for.",
    },
    {
        .key = "storm.normal.per_second",
        .flag = "storm-normal-per-second",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, normal.per_second),
        .min = 1,
        .max = 1000000,
        .preset = "10",
        .help = "How many agents that nobody saw die are started again in a second, "
                "when there is no storm; more where storm.normal.all_within asks for "
                "it.",
    },
    {
        .key = "storm.normal.all_within",
        .flag = "storm-normal-all-within",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, normal.all_within),
        .min = 1000,
        .max = DAY_MS,
        .preset = "60s",
        .help = "The time in which all agents of the fleet can be started again, when "
                "there is no storm, however many they are.",
    },
    {
        .key = "storm.normal.burst",
        .flag = "storm-normal-burst",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, normal.burst),
        .min = 1,
        .max = 1000000,
        .preset = "50",
        .help = "How many may go at once after a time in which there were none.",
    },
    {
        .key = "storm.partial.per_second",
        .flag = "storm-partial-per-second",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, partial.per_second),
        .min = 1,
        .max = 1000000,
        .preset = "1",
        .help = "How many are started again in a second in and after a storm; more "
                "where storm.partial.all_within asks for it.",
    },
    {
        .key = "storm.partial.all_within",
        .flag = "storm-partial-all-within",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, partial.all_within),
        .min = 1000,
        .max = DAY_MS,
        .preset = "4m",
        .help = "The time in which all agents of the fleet can be started again then, "
                "however many they are.",
    },
    {
        .key = "storm.partial.burst",
        .flag = "storm-partial-burst",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, partial.burst),
        .min = 1,
        .max = 1000000,
        .preset = "5",
        .help = "How many may go at once in and after a storm.",
    },
    {
        .key = "storm.grace_factor",
        .flag = "storm-grace-factor",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_policy, storm.grace_factor),
        .min = 1,
        .max = 100,
        .preset = "2",
        .help = "How many times longer an agent is waited for in a storm before it is "
                "given up.",
    },
    {
        .key = "storm.partial_for",
        .flag = "storm-partial-for",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, storm.partial_for),
        .min = 1000,
        .max = DAY_MS,
        .preset = "60s",
        .help = "How long restarts go slowly after the last loss of a storm.",
    },
    {
        .key = "storm.doubt_margin",
        .flag = "storm-doubt-margin",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, storm.doubt_margin),
        .max = DAY_MS,
        .preset = "5s",
        .help = "How long, beyond a TTL, they go slowly after etcd changed its leader, "
                "had no space left or lost a part of its history.",
    },
    {
        .key = "storm.well_for",
        .flag = "storm-well-for",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, storm.well_for),
        .min = PROOF_MS,
        .max = DAY_MS,
        .preset = "60s",
        .help = "How long etcd must have been well, while nobody came back, before what "
                "is held goes on.",
    },
    {
        .key = "storm.hold_max",
        .flag = "storm-hold-max",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_policy, storm.hold_max),
        .min = 1000,
        .max = DAY_MS,
        .preset = "1h",
        .help = "How long it is held at most, whatever is known of etcd.",
    },
};

struct hf_option_group ctl_policy_group(struct ctl_policy *policy)
{
    return (struct hf_option_group){
        .title = "Limits and times of holdfast-controller",
        .options = TABLE,
        .count = sizeof TABLE / sizeof TABLE[0],
        .target = policy,
    };
}

static void set_restart(const struct ctl_policy *set, struct hf_restart_policy *restart)
{
    restart->backoff.base = set->restart.base;
    restart->backoff.factor_percent = (uint16_t)(100 * set->restart.factor);
    restart->backoff.cap = set->restart.cap;
    restart->backoff.forget_after = set->restart.forget_after;
    restart->limit = (uint32_t)set->restart.limit;
    restart->window = set->restart.window;
}

static int set_delays(const struct hf_strings *set, struct hf_backoff_policy *backoff,
                      struct hf_error *err)
{
    if (set->count > HF_BACKOFF_LIST)
        return hf_error_set(err, HF_EINVAL, "recovery.backoff: at most %d delays, not %zu",
                            HF_BACKOFF_LIST, set->count);
    for (size_t i = 0; i < set->count; i++) {
        if (hf_parse_duration(set->items[i], &backoff->list[i]) != HF_OK ||
            backoff->list[i] < 100 || backoff->list[i] > DAY_MS)
            return hf_error_set(err, HF_EINVAL,
                                "recovery.backoff: %s is not a duration from 100ms to 24h such "
                                "as 60s",
                                set->items[i]);
    }
    if (set->count > 1) {
        backoff->list_count = (uint8_t)set->count;
        return HF_OK;
    }
    for (uint8_t i = 1; i < backoff->list_count; i++)
        backoff->list[i] = backoff->list[0] << i;
    return HF_OK;
}

static int set_recovery(const struct ctl_policy *set, struct hf_recover_policy *recover,
                        struct hf_error *err)
{
    recover->limit = (uint32_t)set->recovery.limit;
    recover->agent_limit = (uint32_t)set->recovery.hourly_limit;
    recover->probation = set->recovery.probation;
    return set_delays(&set->recovery.backoff, &recover->backoff, err);
}

static struct hf_storm_rate rate_of(const struct ctl_rate *set)
{
    return (struct hf_storm_rate){ .per_second = (uint32_t)set->per_second,
                                   .all_within = set->all_within,
                                   .burst = (uint32_t)set->burst };
}

static void set_storm(const struct ctl_policy *set, struct hf_storm_policy *storm)
{
    storm->window = set->storm.window;
    storm->lost_min = (uint32_t)set->storm.lost_min;
    storm->partial_percent = (uint8_t)set->storm.partial_percent;
    storm->full_percent = (uint8_t)set->storm.full_percent;
    storm->normal = rate_of(&set->normal);
    storm->partial = rate_of(&set->partial);
    storm->grace_factor = (uint8_t)set->storm.grace_factor;
    storm->partial_for = set->storm.partial_for;
    storm->doubt_margin = set->storm.doubt_margin;
    storm->well_for = set->storm.well_for;
    storm->hold_max = set->storm.hold_max;
}

int ctl_policy_get(const struct ctl_policy *set, struct hf_engine_policy *ret_policy,
                   struct hf_error *err)
{
    struct hf_engine_policy policy = hf_engine_policy_default();
    const char *why = NULL;
    int rc = set_recovery(set, &policy.recover, err);

    if (rc != HF_OK)
        return rc;
    set_restart(set, &policy.restart);
    set_storm(set, &policy.storm);
    policy.heir_within = set->restart.leave;
    policy.stall.progress_max = set->task.progress_max;
    policy.stall.inquiry_answer = set->task.inquiry_answer;
    policy.task = (struct hf_task_policy){ .start_within = set->task.start_within,
                                           .alert_after = set->task.alert_after,
                                           .review_after = set->task.review_after,
                                           .keep_chain = set->task.keep_chain };
    policy.placement.home_grace = set->home_grace;
    if (set->restart.cap < set->restart.base)
        return hf_error_set(err, HF_EINVAL,
                            "restart.backoff.cap must not be below restart.backoff.base");
    if (hf_backoff_policy_check(&policy.restart.backoff, &why) != HF_OK)
        return hf_error_set(err, HF_EINVAL, "restart.%s", why);
    if (hf_engine_policy_check(&policy, &why) != HF_OK)
        return hf_error_set(err, HF_EINVAL, "%s", why);
    *ret_policy = policy;
    return HF_OK;
}
