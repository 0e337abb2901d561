/* policy.h - the limits, delays and rates that the controller goes by, as far as an operator
 * may set them: restarts, recoveries, waiting tasks and the storm guard. What lib/core decides
 * by and what is not named here has no option. */
#ifndef CTL_POLICY_H
#define CTL_POLICY_H

#include "core/engine.h"
#include "schema/options.h"

/* As it was set; the texts belong to the hf_config that filled it. */
struct ctl_policy {
    struct {
        hf_ms base, cap, forget_after;
        int64_t factor;
        int64_t limit;
        hf_ms window, leave;
    } restart;
    struct {
        struct hf_strings backoff;
        int64_t limit, hourly_limit;
        hf_ms probation;
    } recovery;
    struct {
        hf_ms start_within, alert_after, review_after;
        hf_ms progress_max, inquiry_answer;
        hf_ms keep_chain;
    } task;
    struct ctl_rate {
        int64_t per_second;
        hf_ms all_within;
        int64_t burst;
    } normal, partial;
    struct {
        hf_ms window;
        int64_t lost_min, partial_percent, full_percent, grace_factor;
        hf_ms partial_for, doubt_margin, well_for, hold_max;
    } storm;
    hf_ms home_grace;
};

/* The table, filling *policy (NULL to only print it). Cannot fail. */
struct hf_option_group ctl_policy_group(struct ctl_policy *policy);

/* What the engine is to go by. HF_EINVAL, and a sentence, where two settings contradict each
 * other. */
int ctl_policy_get(const struct ctl_policy *set, struct hf_engine_policy *ret_policy,
                   struct hf_error *err) HF_MUST_CHECK;

#endif
