#include <stddef.h>

#include "core/storm.h"

#define ONE      INT64_C(1000000000) /* of what is saved up */
#define MS_PER_S 1000

/* What is saved up in a millisecond. */
static int64_t rate_of(const struct hf_storm_rate *rate, uint32_t agents)
{
    int64_t floor = (int64_t)rate->per_second * (ONE / MS_PER_S);
    int64_t all = (int64_t)agents * ONE / rate->all_within;

    return floor > all ? floor : all;
}

/* Fills it with what the present state gives. The time since the last look may have been
 * another one's in part: the bound holds for the larger of both. */
static void refill(struct hf_storm *s, const struct hf_storm_rate *rate, int64_t per_ms,
                   hf_ms now)
{
    int64_t most = rate->burst * ONE;
    hf_ms elapsed = now > s->level_at ? now - s->level_at : 0;

    s->level_at += elapsed;
    if (s->level >= most || elapsed > (most - s->level) / per_ms)
        s->level = most;
    else
        s->level += elapsed * per_ms;
}

static const bool PACED[] = {
#define X(name, paced) [HF_STORM_##name] = (paced),
    HF_STORM_ACT_MAP(X)
#undef X
};

static bool is_paced(enum hf_storm_act act)
{
    return (size_t)act >= sizeof PACED / sizeof PACED[0] || PACED[act];
}

struct hf_storm_decision hf_storm_take(struct hf_storm *s, enum hf_storm_act act,
                                       uint32_t agents, hf_ms now)
{
    struct hf_storm_view view = hf_storm_get(s, now);
    const struct hf_storm_rate *rate =
        view.state == HF_STORM_NORMAL ? &s->policy.normal : &s->policy.partial;
    int64_t per_ms = rate_of(rate, agents);
    struct hf_storm_decision d = { .allowed = true, .why = view.why, .at = now };

    d.next = "it is done";
    if (!is_paced(act)) {
        d.why = "it does not rest on silence";
        return d;
    }
    if (view.state == HF_STORM_FULL)
        return (struct hf_storm_decision){ .why = view.why, .next = view.next, .at = view.at };
    refill(s, rate, per_ms, now);
    if (s->level >= ONE) {
        s->level -= ONE;
        return d;
    }
    d.allowed = false;
    d.why = view.state == HF_STORM_NORMAL ? "others are given up first" : view.why;
    d.next = "its turn comes";
    d.at = now + (ONE - s->level + per_ms - 1) / per_ms;
    return d;
}

const char *hf_storm_act_name(enum hf_storm_act act)
{
    switch (act) {
#define X(name, paced)                                                                         \
    case HF_STORM_##name: return #name;
        HF_STORM_ACT_MAP(X)
#undef X
    }
    return "?";
}
