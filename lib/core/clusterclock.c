#include "core/clusterclock.h"

#include <assert.h>
#include <stddef.h>

#define INTERVAL_MIN 1000
#define INTERVAL_MAX 600000

struct hf_clusterclock_policy hf_clusterclock_policy_default(void)
{
    return (struct hf_clusterclock_policy){ .interval = 30000 };
}

int hf_clusterclock_policy_check(const struct hf_clusterclock_policy *p, const char **ret_why)
{
    if (p->interval >= INTERVAL_MIN && p->interval <= INTERVAL_MAX)
        return HF_OK;
    *ret_why = "clock.interval must be 1 s..10 min";
    return HF_EINVAL;
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > INT64_MAX - delay ? INT64_MAX : moment + delay;
}

/* How much later b is than a, at least 0, saturating. */
static hf_ms between(hf_ms a, hf_ms b)
{
    uint64_t distance = (uint64_t)b - (uint64_t)a;

    if (b <= a)
        return 0;
    return distance > INT64_MAX ? INT64_MAX : (hf_ms)distance;
}

void hf_clusterclock_init(struct hf_clusterclock *c,
                          const struct hf_clusterclock_policy *policy)
{
    const char *why = NULL;

    assert(hf_clusterclock_policy_check(policy, &why) == HF_OK);
    *c = (struct hf_clusterclock){ .policy = *policy };
}

int hf_clusterclock_on_observed(struct hf_clusterclock *c, hf_ms value, int64_t revision,
                                bool ours, hf_ms now)
{
    hf_ms known = hf_clusterclock_now(c, now);

    if (revision <= 0)
        return HF_EINVAL;
    if (c->present && revision < c->revision)
        return HF_OK;
    if (c->present && (value < c->stored || (revision == c->revision && value != c->stored)))
        return HF_EHISTORY;
    if (c->present && revision == c->revision)
        return HF_OK;

    c->read = c->present = true;
    c->revision = revision;
    c->stored = value;
    /* From what we wrote we have counted on; what others write holds. */
    c->base = ours && known > value ? known : value;
    c->base_at = now;
    return HF_OK;
}

int hf_clusterclock_on_absent(struct hf_clusterclock *c)
{
    if (c->present)
        return HF_EHISTORY;
    c->read = true;
    return HF_OK;
}

void hf_clusterclock_on_history_reset(struct hf_clusterclock *c)
{
    *c = (struct hf_clusterclock){ .policy = c->policy };
}

struct hf_clusterclock_step hf_clusterclock_next(const struct hf_clusterclock *c, hf_ms wall,
                                                 hf_ms now)
{
    hf_ms store_at = after(c->base_at, c->policy.interval);

    if (!c->read)
        return (struct hf_clusterclock_step){ .at = HF_CLUSTERCLOCK_NEVER };
    if (!c->present)
        return (struct hf_clusterclock_step){ .due = true, .value = wall, .at = now };
    if (now < store_at)
        return (struct hf_clusterclock_step){ .at = store_at };
    return (struct hf_clusterclock_step){
        .due = true,
        .value = hf_clusterclock_now(c, now),
        .at = now,
    };
}

hf_ms hf_clusterclock_now(const struct hf_clusterclock *c, hf_ms now)
{
    if (!c->present)
        return HF_CLUSTERCLOCK_UNREAD;
    return after(c->base, between(c->base_at, now));
}

hf_ms hf_clusterclock_age(const struct hf_clusterclock *c, hf_ms moment, hf_ms now)
{
    return between(moment, hf_clusterclock_now(c, now));
}

hf_ms hf_clusterclock_local(const struct hf_clusterclock *c, hf_ms moment, hf_ms now)
{
    if (!c->present)
        return HF_CLUSTERCLOCK_NEVER;
    return after(now, between(hf_clusterclock_now(c, now), moment));
}
