#include <stddef.h>

#include "core/storm.h"

#define PERCENT   100
#define SPAN_MAX  INT64_C(86400000) /* a day */
#define COUNT_MAX 1000000

struct hf_storm_policy hf_storm_policy_default(void)
{
    return (struct hf_storm_policy){
        .window = 10000,
        .lost_min = 3,
        .partial_percent = 30,
        .full_percent = 80,
        .normal = { .per_second = 10, .all_within = 60000, .burst = 50 },
        .partial = { .per_second = 1, .all_within = 240000, .burst = 5 },
        .grace_factor = 2,
        .partial_for = 60000,
        .doubt_margin = 5000,
        .well_for = 60000,
        .proof_every = 25000,
        .hold_max = 3600000,
    };
}

static bool is_span(hf_ms span)
{
    return span > 0 && span <= SPAN_MAX;
}

static const char *rates_fault(const struct hf_storm_rate *normal,
                               const struct hf_storm_rate *partial)
{
    if (normal->per_second > COUNT_MAX || normal->burst > COUNT_MAX)
        return "storm.normal must not be above 1000000";
    if (partial->per_second == 0 || partial->burst == 0)
        return "storm.partial must let something through, or nothing is ever recovered";
    if (!is_span(normal->all_within) || !is_span(partial->all_within))
        return "storm.*.all_within must be positive and not above 24 h";
    if (partial->per_second > normal->per_second || partial->burst > normal->burst ||
        partial->all_within < normal->all_within)
        return "storm.partial must not be faster than storm.normal";
    return NULL;
}

static const char *counts_fault(const struct hf_storm_policy *p)
{
    if (p->window < HF_STORM_BUCKETS || p->window > SPAN_MAX)
        return "storm.window must be 20 ms..24 h";
    if (p->lost_min == 0)
        return "storm.lost_min must be positive";
    if (p->partial_percent == 0 || p->partial_percent > p->full_percent)
        return "storm.partial_percent must be positive and not above storm.full_percent";
    if (p->full_percent > PERCENT)
        return "storm.full_percent must not be above 100";
    if (p->grace_factor == 0)
        return "storm.grace_factor must be positive";
    return NULL;
}

int hf_storm_policy_check(const struct hf_storm_policy *p, const char **ret_why)
{
    const char *fault = counts_fault(p);

    if (fault == NULL)
        fault = rates_fault(&p->normal, &p->partial);
    if (fault != NULL)
        *ret_why = fault;
    else if (!is_span(p->partial_for) || !is_span(p->well_for) || !is_span(p->hold_max))
        *ret_why = "storm.partial_for, well_for and hold_max must be positive and not above "
                   "24 h";
    else if (p->doubt_margin < 0 || p->doubt_margin > SPAN_MAX)
        *ret_why = "storm.doubt_margin must be 0..24 h";
    else if (p->proof_every <= 0 || p->proof_every > p->well_for)
        *ret_why = "storm.proof_every must be positive and not above storm.well_for";
    else
        return HF_OK;
    return HF_EINVAL;
}
