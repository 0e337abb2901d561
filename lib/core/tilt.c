#include "core/tilt.h"

#include <assert.h>
#include <stddef.h>

#define TICK_MAX  60000
#define QUIET_MAX 600000

struct hf_tilt_policy hf_tilt_policy_default(void)
{
    return (struct hf_tilt_policy){ .tick = 1000, .lag = 250, .stall = 2000, .quiet = 5000 };
}

int hf_tilt_policy_check(const struct hf_tilt_policy *p, const char **ret_why)
{
    if (p->tick <= 0 || p->tick > TICK_MAX)
        *ret_why = "tilt.tick must be positive and not above 60 s";
    else if (p->lag <= 0)
        *ret_why = "tilt.lag must be positive";
    else if (p->stall <= p->lag)
        *ret_why = "tilt.stall must be above tilt.lag";
    else if (p->stall > TICK_MAX)
        *ret_why = "tilt.stall must not be above 60 s";
    else if (p->quiet < p->tick)
        *ret_why = "tilt.quiet must not be below tilt.tick, or nothing is learnt in it";
    else if (p->quiet > QUIET_MAX)
        *ret_why = "tilt.quiet must not be above 10 min";
    else
        return HF_OK;
    return HF_EINVAL;
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_TILT_NEVER - delay ? HF_TILT_NEVER : moment + delay;
}

/* Whether more than a tick and `slack` lie between the last tick and `now`. */
static bool is_late(const struct hf_tilt *t, hf_ms slack, hf_ms now)
{
    return now > after(t->last, t->policy.tick + slack);
}

/* A clock that goes back is as little to be trusted as one that leaps. */
static bool is_stalled(const struct hf_tilt *t, hf_ms now)
{
    return now < t->last || is_late(t, t->policy.stall, now);
}

void hf_tilt_init(struct hf_tilt *t, const struct hf_tilt_policy *policy, hf_ms now)
{
    const char *why = NULL;

    assert(hf_tilt_policy_check(policy, &why) == HF_OK);
    *t = (struct hf_tilt){
        .policy = *policy,
        .last = now,
        .resumed_at = now,
        .quiet_until = now,
    };
}

void hf_tilt_on_tick(struct hf_tilt *t, hf_ms now)
{
    bool stalled = is_stalled(t, now);

    if (!stalled && now < after(t->last, t->policy.tick / 2))
        return;
    if (stalled) {
        t->resumed_at = now;
        t->quiet_until = after(now, t->policy.quiet);
    }
    bool late = stalled || t->strained || is_late(t, t->policy.lag, now);
    if (late && t->score < HF_TILT_SCORE_MAX)
        t->score++;
    else if (!late && t->score > 0)
        t->score--;
    t->strained = false;
    t->last = now;
}

void hf_tilt_on_late(struct hf_tilt *t)
{
    t->strained = true;
}

struct hf_tilt_view hf_tilt_get(const struct hf_tilt *t, hf_ms now)
{
    struct hf_tilt_view view = { .score = t->score };

    if (is_stalled(t, now)) {
        view.why = "our own clock jumped or our loop stood still";
        view.at = after(now, t->policy.quiet);
    } else if (now < t->quiet_until) {
        view.why = "we stood still a moment ago and catch up first";
        view.at = t->quiet_until;
    } else {
        view.can_judge = true;
        view.why =
            t->score > 0 ? "we are late ourselves and give others more time" : "we are well";
        view.at = now;
    }
    return view;
}

bool hf_tilt_can_judge(const struct hf_tilt *t, hf_ms now)
{
    return hf_tilt_get(t, now).can_judge;
}

hf_ms hf_tilt_due(const struct hf_tilt *t, hf_ms since, hf_ms grace)
{
    hf_ms from = since > t->resumed_at ? since : t->resumed_at;
    hf_ms factor = t->score + 1;

    return after(from, grace > HF_TILT_NEVER / factor ? HF_TILT_NEVER : grace * factor);
}
