#include "core/backoff.h"

#include <assert.h>
#include <stddef.h>

#define PERCENT    100
#define FACTOR_MAX 1000
#define JITTER_MAX 50
#define DELAY_MAX  INT64_C(604800000) /* a week; it also keeps every product below small */

struct hf_backoff_policy hf_backoff_policy_restart(void)
{
    return (struct hf_backoff_policy){
        .first_at_once = true,
        .base = 1000,
        .factor_percent = 200,
        .cap = 60000,
        .jitter_percent = 10,
        .forget_after = 600000,
    };
}

struct hf_backoff_policy hf_backoff_policy_recovery(void)
{
    return (struct hf_backoff_policy){
        .first_at_once = true,
        .list = { 60000, 120000, 240000 },
        .list_count = 3,
        .jitter_percent = 10,
    };
}

static const char *list_fault(const struct hf_backoff_policy *p)
{
    if (p->list_count > HF_BACKOFF_LIST)
        return "backoff.list must not have more than 8 delays";
    if (p->base != 0 || p->cap != 0 || p->factor_percent != 0)
        return "backoff.list must not be given together with base, factor or cap";
    for (uint8_t i = 0; i < p->list_count; i++)
        if (p->list[i] <= 0 || p->list[i] > DELAY_MAX)
            return "backoff.list must have positive delays of at most a week";
    return NULL;
}

static const char *growth_fault(const struct hf_backoff_policy *p)
{
    if (p->base <= 0)
        return "backoff.base must be positive";
    if (p->cap < p->base)
        return "backoff.cap must not be below backoff.base";
    if (p->cap > DELAY_MAX)
        return "backoff.cap must not be above a week";
    if (p->factor_percent < PERCENT || p->factor_percent > FACTOR_MAX)
        return "backoff.factor must be 1..10";
    return NULL;
}

static hf_ms longest(const struct hf_backoff_policy *p)
{
    hf_ms delay = p->list_count == 0 ? p->cap : 0;

    for (uint8_t i = 0; i < p->list_count; i++)
        if (p->list[i] > delay)
            delay = p->list[i];
    return delay;
}

int hf_backoff_policy_check(const struct hf_backoff_policy *p, const char **ret_why)
{
    const char *fault = p->list_count > 0 ? list_fault(p) : growth_fault(p);

    if (fault != NULL)
        *ret_why = fault;
    else if (p->jitter_percent > JITTER_MAX)
        *ret_why = "backoff.jitter_percent must be 0..50";
    else if (p->forget_after < 0)
        *ret_why = "backoff.forget_after must not be negative";
    else if (p->forget_after != 0 && p->forget_after <= longest(p))
        *ret_why = "backoff.forget_after must be above the longest delay, or waiting would be "
                   "taken for health";
    else
        return HF_OK;
    return HF_EINVAL;
}

void hf_backoff_on_attempt(struct hf_backoff *b, hf_ms at)
{
    if (b->count > 0 && at < b->at[b->count - 1])
        at = b->at[b->count - 1];
    if (b->count == HF_BACKOFF_KEPT) {
        for (uint8_t i = 1; i < b->count; i++)
            b->at[i - 1] = b->at[i];
        b->count--;
    }
    b->at[b->count++] = at;
}

/* Whether `moment` lies less than `window` before `now`; without overflow, since the difference
 * of two times need not fit. */
static bool is_within(hf_ms moment, hf_ms window, hf_ms now)
{
    return window > 0 && (moment >= now || (uint64_t)now - (uint64_t)moment < (uint64_t)window);
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_BACKOFF_NEVER - delay ? HF_BACKOFF_NEVER : moment + delay;
}

uint32_t hf_backoff_count(const struct hf_backoff *b, hf_ms window, hf_ms now)
{
    uint32_t count = 0;

    while (count < b->count && is_within(b->at[b->count - 1 - count], window, now))
        count++;
    return count;
}

hf_ms hf_backoff_room_at(const struct hf_backoff *b, hf_ms window, uint32_t limit, hf_ms now)
{
    if (limit == 0)
        return HF_BACKOFF_NEVER;
    if (hf_backoff_count(b, window, now) < limit)
        return now;
    return after(b->at[b->count - limit], window);
}

uint32_t hf_backoff_streak(const struct hf_backoff *b, const struct hf_backoff_policy *p,
                           hf_ms now)
{
    uint32_t streak = 0;
    hf_ms next = now;

    while (streak < b->count) {
        hf_ms at = b->at[b->count - 1 - streak];

        if (p->forget_after != 0 && !is_within(at, p->forget_after, next))
            break;
        next = at;
        streak++;
    }
    return streak;
}

/* base * factor^(step-1), rounded up, so that every factor above 1 gets on. A cap that is
 * reached ends it, and so does a factor of 1: the loop is short for every step. */
static hf_ms grown(const struct hf_backoff_policy *p, uint32_t step)
{
    hf_ms delay = p->base;

    while (--step > 0 && delay < p->cap && p->factor_percent > PERCENT)
        delay = (delay * p->factor_percent + PERCENT - 1) / PERCENT;
    return delay < p->cap ? delay : p->cap;
}

static hf_ms listed(const struct hf_backoff_policy *p, uint32_t step)
{
    return p->list[step < p->list_count ? step - 1 : p->list_count - 1U];
}

/* Takes off 0..spread. The word is scaled, not divided: a longer delay stays the longer one. */
static hf_ms with_jitter(hf_ms delay, uint8_t percent, uint32_t random)
{
    uint64_t spread = (uint64_t)delay * percent / PERCENT;

    return delay - (hf_ms)(((spread + 1) * random) >> 32);
}

hf_ms hf_backoff_delay(const struct hf_backoff_policy *p, uint32_t attempt, uint32_t random)
{
    uint32_t step = p->first_at_once ? attempt - 1 : attempt;

    assert(attempt > 0);
    if (step == 0)
        return 0;
    return with_jitter(p->list_count > 0 ? listed(p, step) : grown(p, step), p->jitter_percent,
                       random);
}

hf_ms hf_backoff_next(const struct hf_backoff *b, const struct hf_backoff_policy *p, hf_ms now,
                      uint32_t random)
{
    return after(now, hf_backoff_delay(p, hf_backoff_streak(b, p, now) + 1, random));
}
