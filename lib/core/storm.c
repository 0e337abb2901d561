#include "core/storm.h"

#include <assert.h>
#include <stddef.h>

#define PERCENT 100

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_STORM_NEVER - delay ? HF_STORM_NEVER : moment + delay;
}

static hf_ms later(hf_ms a, hf_ms b)
{
    return a > b ? a : b;
}

void hf_storm_init(struct hf_storm *s, const struct hf_storm_policy *policy, hf_ms now)
{
    const char *why = NULL;

    assert(hf_storm_policy_check(policy, &why) == HF_OK);
    *s = (struct hf_storm){
        .policy = *policy,
        .partial_until = now,
        .doubt_until = now,
        .since = now,
        .anew = now,
        .level_at = now,
    };
}

/* The past, in buckets. */

static int64_t slot_of(const struct hf_storm *s, hf_ms now)
{
    return now / (s->policy.window / HF_STORM_BUCKETS);
}

static void count_lost(struct hf_storm *s, uint32_t count, hf_ms now)
{
    int64_t slot = slot_of(s, now);
    size_t i = (uint64_t)slot % HF_STORM_BUCKETS;

    if (s->buckets[i].slot != slot)
        s->buckets[i].lost = 0;
    s->buckets[i].slot = slot;
    s->buckets[i].lost += count;
}

static uint64_t lost_lately(const struct hf_storm *s, hf_ms now)
{
    int64_t slot = slot_of(s, now);
    uint64_t lost = 0;

    for (size_t i = 0; i < HF_STORM_BUCKETS; i++)
        if (s->buckets[i].slot > slot - HF_STORM_BUCKETS)
            lost += s->buckets[i].lost;
    return lost;
}

/* The state, which follows from what was stored and from `now`. */

/* What a person holds, only a person lets go. */
static bool is_held_by_person(const struct hf_storm *s)
{
    return s->full && s->cause == HF_STORM_PERSON;
}

static bool is_held_by_storm(const struct hf_storm *s)
{
    return s->full && s->cause != HF_STORM_PERSON;
}

static hf_ms hold_end(const struct hf_storm *s)
{
    if (is_held_by_person(s))
        return HF_STORM_NEVER;
    return after(s->full_since, s->policy.hold_max - s->held);
}

static enum hf_storm_state state_at(const struct hf_storm *s, hf_ms now)
{
    if (s->full)
        return HF_STORM_FULL;
    return now < s->partial_until || now < s->doubt_until ? HF_STORM_PARTIAL : HF_STORM_NORMAL;
}

static void end_full(struct hf_storm *s, enum hf_storm_cause cause, hf_ms at)
{
    /* How long a person held it is nothing that the guard has to answer for. */
    if (is_held_by_storm(s))
        s->held += at - s->full_since;
    s->full = false;
    s->cause = cause;
    s->since = at;
    s->partial_until = later(s->partial_until, after(at, s->policy.partial_for));
}

/* What time alone has brought about. Everything begins with this. */
static void settle(struct hf_storm *s, hf_ms now)
{
    if (s->full && now >= hold_end(s))
        end_full(s, HF_STORM_TOO_LONG, hold_end(s));
}

/* What comes after NORMAL is another episode. */
static void leave_normal(struct hf_storm *s, hf_ms now)
{
    if (state_at(s, now) != HF_STORM_NORMAL)
        return;
    s->since = now;
    s->held = 0;
    s->was_full = false;
    s->worst = s->told = HF_STORM_NORMAL;
}

static void enter_full(struct hf_storm *s, enum hf_storm_cause cause, hf_ms now)
{
    s->first_full = s->was_full ? s->first_full : now;
    s->full = s->was_full = true;
    s->full_since = now;
    s->since = now;
    s->cause = cause;
}

static void worsen(struct hf_storm *s, enum hf_storm_state state)
{
    if (state > s->worst)
        s->worst = state;
}

void hf_storm_on_begin(struct hf_storm *s, hf_ms now)
{
    struct hf_storm old = *s;

    settle(&old, now);
    hf_storm_init(s, &old.policy, now);
    s->doubt = old.doubt;
    s->doubt_until = old.doubt_until;
    s->since = old.since;
    if (is_held_by_person(&old))
        enter_full(s, HF_STORM_PERSON, old.full_since);
}

void hf_storm_on_lost(struct hf_storm *s, uint32_t count, const struct hf_storm_facts *facts,
                      hf_ms now)
{
    const struct hf_storm_policy *p = &s->policy;

    settle(s, now);
    count_lost(s, count, now);
    uint64_t lost = lost_lately(s, now);
    uint64_t percent = facts->hosts > 0 ? lost * PERCENT / facts->hosts : 0;
    bool all = count > 0 && facts->live == 0 && facts->hosts > 0;
    bool most = lost >= p->lost_min && percent >= p->full_percent;

    if (!all && (lost < p->lost_min || percent < p->partial_percent))
        return;
    leave_normal(s, now);
    s->partial_until = later(s->partial_until, after(now, p->partial_for));
    worsen(s, HF_STORM_PARTIAL);
    if (s->full)
        return;
    s->cause = HF_STORM_MANY;
    if ((all || most) && s->held < p->hold_max) {
        enter_full(s, all ? HF_STORM_ALL : HF_STORM_MOST, now);
        worsen(s, HF_STORM_FULL);
    }
}

void hf_storm_on_back(struct hf_storm *s, hf_ms now)
{
    settle(s, now);
    if (!is_held_by_storm(s))
        return;
    /* If one is back, the others may be on their way. But one that comes and goes must not keep
     * the others from ever being given up. */
    if (now < after(s->first_full, s->policy.hold_max))
        s->anew = now;
    end_full(s, HF_STORM_BACK, now);
}

void hf_storm_on_doubt(struct hf_storm *s, enum hf_storm_doubt doubt, hf_ms ttl, hf_ms now)
{
    settle(s, now);
    leave_normal(s, now);
    s->proven = false;
    s->doubt = doubt;
    s->doubt_until = later(s->doubt_until, after(now, after(s->policy.doubt_margin, ttl)));
}

/* When etcd will have been well for long enough; valid if proven. */
static hf_ms well_at(const struct hf_storm *s)
{
    return after(later(s->well_since, s->full_since), s->policy.well_for);
}

void hf_storm_on_proof(struct hf_storm *s, bool well, hf_ms now)
{
    settle(s, now);
    if (!well) {
        s->proven = false;
        return;
    }
    if (!s->proven || now > after(s->proof_at, s->policy.proof_every))
        s->well_since = now;
    s->proven = true;
    s->proof_at = now;
    if (is_held_by_storm(s) && now >= well_at(s))
        end_full(s, HF_STORM_PROVEN, now);
}

void hf_storm_on_proceed(struct hf_storm *s, hf_ms now)
{
    settle(s, now);
    s->partial_until = s->doubt_until = now;
    for (size_t i = 0; i < HF_STORM_BUCKETS; i++)
        s->buckets[i].lost = 0;
    if (s->full)
        end_full(s, HF_STORM_PERSON, now);
}

void hf_storm_on_hold(struct hf_storm *s, hf_ms now)
{
    settle(s, now);
    leave_normal(s, now);
    s->held = 0;
    enter_full(s, HF_STORM_PERSON, now);
}

static const char *doubt_text(enum hf_storm_doubt doubt)
{
    switch (doubt) {
#define X(name, text)                                                                          \
    case HF_STORM_DOUBT_##name: return text;
        HF_STORM_DOUBT_MAP(X)
#undef X
    }
    return "?";
}

static const char *full_text(enum hf_storm_cause cause)
{
    if (cause == HF_STORM_ALL)
        return "no host is left: that is more likely etcd's fault, or ours";
    if (cause == HF_STORM_PERSON)
        return "a person holds it";
    return "nearly all hosts were lost at once: that is more likely etcd's fault, or ours";
}

static const char *partial_text(enum hf_storm_cause cause)
{
    switch (cause) {
    case HF_STORM_BACK: return "all was held until somebody came back";
    case HF_STORM_PROVEN: return "all was held until etcd was proven well";
    case HF_STORM_TOO_LONG: return "all was held for as long as may be";
    case HF_STORM_PERSON: return "all was held until a person let it go on";
    case HF_STORM_MANY:
    case HF_STORM_MOST:
    case HF_STORM_ALL: break;
    }
    return "many hosts were lost at once";
}

/* When FULL will end if all stays as it is. */
static hf_ms full_until(const struct hf_storm *s, hf_ms now)
{
    bool will_be_proven = is_held_by_storm(s) && s->proven && now < well_at(s);

    return will_be_proven && well_at(s) < hold_end(s) ? well_at(s) : hold_end(s);
}

struct hf_storm_view hf_storm_get(const struct hf_storm *storm, hf_ms now)
{
    struct hf_storm s = *storm;
    struct hf_storm_view view = { .grace_factor = s.policy.grace_factor };

    settle(&s, now);
    view.state = state_at(&s, now);
    view.since = s.since;
    view.anew = s.anew;
    switch (view.state) {
    case HF_STORM_NORMAL:
        view.why = "no more hosts are lost than may be";
        view.next = "nothing";
        view.at = HF_STORM_NEVER;
        view.grace_factor = 1;
        break;
    case HF_STORM_PARTIAL:
        view.why = now < s.partial_until ? partial_text(s.cause) : doubt_text(s.doubt);
        view.next = "what is lost is given up slowly, and later as usual";
        view.at = later(s.partial_until, s.doubt_until);
        break;
    case HF_STORM_FULL:
        view.why = full_text(s.cause);
        view.next = s.cause == HF_STORM_PERSON
                        ? "`holdfast storm proceed` lets it go on"
                        : "somebody comes back, etcd is proven well, or `holdfast storm "
                          "proceed`";
        view.at = full_until(&s, now);
        view.by_person = is_held_by_person(&s);
        break;
    }
    return view;
}

bool hf_storm_take_alert(struct hf_storm *s)
{
    bool worse = s->worst > s->told;

    s->told = s->worst;
    return worse;
}

const char *hf_storm_state_name(enum hf_storm_state state)
{
    switch (state) {
    case HF_STORM_NORMAL: return "NORMAL";
    case HF_STORM_PARTIAL: return "PARTIAL";
    case HF_STORM_FULL: return "FULL";
    }
    return "?";
}
