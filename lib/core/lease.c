#include "core/lease.h"

#include <assert.h>
#include <stddef.h>

#include "core/mutant.h"

#define TTL_MAX_S      86400 /* more is taken for this much; it also keeps T * num small */
#define SHARE_DEN_MAX  1000
#define JITTER_MAX     20
#define TTL_FLOOR_MIN  1000
#define LOST_GRACE_MAX 1500 /* what the observers' grace allows for after the news is out */
#define PERCENT        100
#define MS_PER_S       1000

struct hf_lease_policy hf_lease_policy_default(void)
{
    return (struct hf_lease_policy){
        .ttl = 15000,
        .ttl_floor = 10000,
        .renew = { 1, 3 },
        .attempt = { 1, 6 },
        .jeopardy = { 2, 3 },
        .fence = { 5, 6 },
        .jitter_percent = 5,
        .retry_min = 250,
        .retry_max = 1000,
        .lost_grace = 1000,
    };
}

struct hf_lease_policy hf_lease_policy_for(hf_ms ttl)
{
    struct hf_lease_policy policy = hf_lease_policy_default();
    hf_ms attempt;

    policy.ttl = ttl;
    if (ttl < policy.ttl_floor)
        policy.ttl_floor = ttl;
    attempt = policy.ttl_floor * policy.attempt.num / policy.attempt.den;
    if (policy.retry_max > attempt)
        policy.retry_max = attempt;
    return policy;
}

/* Saturates at HF_LEASE_NEVER; `delay` is never negative here. */
static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_LEASE_NEVER - delay ? HF_LEASE_NEVER : moment + delay;
}

static hf_ms earlier(hf_ms a, hf_ms b)
{
    return a < b ? a : b;
}

static hf_ms later(hf_ms a, hf_ms b)
{
    return a > b ? a : b;
}

static hf_ms pick(hf_ms min, hf_ms max, uint32_t random)
{
    return min + (hf_ms)(random % ((uint64_t)(max - min) + 1));
}

static hf_ms ttl_from_seconds(int64_t ttl_s)
{
    return earlier(ttl_s, TTL_MAX_S) * MS_PER_S;
}

static hf_ms part_of(hf_ms ttl, struct hf_lease_share s)
{
    return ttl * s.num / s.den;
}

static bool is_part(struct hf_lease_share s)
{
    return s.num > 0 && s.num < s.den && s.den <= SHARE_DEN_MAX;
}

static bool is_less(struct hf_lease_share a, struct hf_lease_share b)
{
    return (uint32_t)a.num * b.den < (uint32_t)b.num * a.den;
}

/* The latest renewal and a whole attempt end before jeopardy, so that one lost answer never
 * stops the work: renew * (1 + jitter) + attempt <= jeopardy, without fractions. */
static bool has_time_for_one_failure(const struct hf_lease_policy *p)
{
    uint64_t renew = (uint64_t)p->renew.num * (PERCENT + p->jitter_percent);
    uint64_t den = (uint64_t)p->renew.den * PERCENT;

    return (renew * p->attempt.den + p->attempt.num * den) * p->jeopardy.den <=
           p->jeopardy.num * den * p->attempt.den;
}

int hf_lease_policy_check(const struct hf_lease_policy *p, const char **ret_why)
{
    if (p->ttl_floor < TTL_FLOOR_MIN)
        *ret_why = "lease.ttl_floor must be at least 1 s";
    else if (p->ttl < p->ttl_floor)
        *ret_why = "lease.ttl must not be below lease.ttl_floor";
    else if (p->ttl > (hf_ms)TTL_MAX_S * MS_PER_S)
        *ret_why = "lease.ttl must not be above one day";
    else if (!is_part(p->renew) || !is_part(p->attempt) || !is_part(p->jeopardy) ||
             !is_part(p->fence))
        *ret_why = "lease.renew, attempt, jeopardy and fence must be between 0 and 1, with a "
                   "denominator up to 1000";
    else if (p->jitter_percent > JITTER_MAX)
        *ret_why = "lease.jitter_percent must be 0..20";
    else if (!has_time_for_one_failure(p))
        *ret_why = "lease.renew with its jitter and lease.attempt must end before "
                   "lease.jeopardy";
    else if (!is_less(p->jeopardy, p->fence))
        *ret_why = "lease.jeopardy must come before lease.fence";
    else if (p->retry_min <= 0 || p->retry_max < p->retry_min)
        *ret_why = "lease.retry_min must be positive and not above lease.retry_max";
    else if (p->retry_max > part_of(p->ttl_floor, p->attempt))
        *ret_why = "lease.retry_max must not be above lease.attempt at lease.ttl_floor";
    else if (p->lost_grace < 0 || p->lost_grace > LOST_GRACE_MAX)
        *ret_why = "lease.lost_grace must be 0..1500 ms";
    else
        return HF_OK;
    return HF_EINVAL;
}

int hf_lease_ttl_check(const struct hf_lease_policy *p, int64_t ttl_s, const char **ret_why)
{
    if (ttl_s <= 0)
        *ret_why = "etcd granted a lease without a TTL";
    else if (ttl_from_seconds(ttl_s) < p->ttl_floor)
        *ret_why = "etcd granted a TTL below lease.ttl_floor";
    else
        return HF_OK;
    return HF_EINVAL;
}

static hf_ms jeopardy_at(const struct hf_lease *l)
{
    return after(l->counted_at, part_of(l->ttl, l->policy.jeopardy));
}

static bool lacks(const struct hf_lease *l, enum hf_mutant mutant)
{
    return __builtin_expect((l->policy.mutants & hf_mutant_bit(mutant)) != 0, 0);
}

/* When the fence is due by the last renewal alone; fence_at may be held back before it. */
static hf_ms lapse_at(const struct hf_lease *l)
{
    if (lacks(l, HF_MUTANT_NO_FENCE))
        return HF_LEASE_NEVER;
    return after(l->counted_at, part_of(l->ttl, l->policy.fence));
}

static hf_ms attempt_end(const struct hf_lease *l, hf_ms sent_at)
{
    return after(sent_at, part_of(l->ttl, l->policy.attempt));
}

static hf_ms advance(struct hf_lease *l, hf_ms now)
{
    l->latest = later(l->latest, now);
    return l->latest;
}

void hf_lease_init(struct hf_lease *l, const struct hf_lease_policy *policy)
{
    const char *why = NULL;

    assert(hf_lease_policy_check(policy, &why) == HF_OK);
    *l = (struct hf_lease){
        .policy = *policy,
        .latest = INT64_MIN,
        .lost = true,
        .fence_at = HF_LEASE_NEVER,
    };
}

static enum hf_lease_state state_at(const struct hf_lease *l, hf_ms now)
{
    if (l->lost)
        return HF_LEASE_LOST;
    if (now >= l->fence_at)
        return HF_LEASE_FENCED;
    return now >= jeopardy_at(l) ? HF_LEASE_JEOPARDY : HF_LEASE_HELD;
}

/* A Txn can end a doubt only when renewals pass again: it proves that the key exists, not that
 * the lease has time left. Which of two terms is void it proves at any time; but an outdated
 * leader is usually left long before anybody needs to know. */
static bool wants_verification(const struct hf_lease *l, hf_ms now)
{
    if (l->lost)
        return false;
    if (l->stale && now >= jeopardy_at(l))
        return true;
    if (now >= lapse_at(l))
        return false;
    return now >= l->fence_at || (l->doubted && l->counted_at >= l->doubt_at);
}

static enum hf_lease_what due_at(const struct hf_lease *l, hf_ms now)
{
    if (l->lost)
        return HF_LEASE_NONE;
    if (l->in_flight && now >= attempt_end(l, l->sent_at))
        return HF_LEASE_ABANDON;
    if (!l->in_flight && now >= l->renew_at)
        return HF_LEASE_RENEW;
    if (wants_verification(l, now) && now >= l->verify_at)
        return HF_LEASE_VERIFY;
    return HF_LEASE_NONE;
}

struct hf_lease_step hf_lease_next(const struct hf_lease *l, hf_ms now)
{
    now = later(now, l->latest);
    return (struct hf_lease_step){
        .state = state_at(l, now),
        .frozen = now >= l->fence_at,
        .what = due_at(l, now),
        .rotate = l->rotate,
        .until = attempt_end(l, now),
    };
}

static void consider(hf_ms moment, hf_ms now, hf_ms *earliest)
{
    if (moment > now)
        *earliest = earlier(*earliest, moment);
}

hf_ms hf_lease_deadline(const struct hf_lease *l, hf_ms now)
{
    hf_ms earliest = HF_LEASE_NEVER;

    now = later(now, l->latest);
    if (due_at(l, now) != HF_LEASE_NONE)
        return now;
    consider(l->fence_at, now, &earliest);
    if (l->lost)
        return earliest;
    consider(jeopardy_at(l), now, &earliest);
    consider(l->in_flight ? attempt_end(l, l->sent_at) : l->renew_at, now, &earliest);
    if (wants_verification(l, now))
        consider(l->verify_at, now, &earliest);
    return earliest;
}

hf_ms hf_lease_proven_until(const struct hf_lease *l)
{
    return l->lost ? INT64_MIN : earlier(jeopardy_at(l), l->fence_at);
}

static struct hf_lease_member *find_member(struct hf_lease *l, uint64_t id)
{
    for (size_t i = 0; i < l->member_count; i++) {
        if (l->members[i].id == id)
            return &l->members[i];
    }
    return NULL;
}

/* A full table forgets its members in turn: that costs a little suspicion, never safety. */
static struct hf_lease_member *add_member(struct hf_lease *l, uint64_t id)
{
    struct hf_lease_member *member = &l->members[l->member_next];

    l->member_next = (uint8_t)((l->member_next + 1) % HF_LEASE_MEMBERS);
    if (l->member_count < HF_LEASE_MEMBERS)
        l->member_count++;
    *member = (struct hf_lease_member){ .id = id };
    return member;
}

void hf_lease_on_header(struct hf_lease *l, uint64_t member_id, uint64_t term, int64_t revision)
{
    struct hf_lease_member *member = find_member(l, member_id);

    if (member == NULL)
        member = add_member(l, member_id);
    if (revision > member->revision)
        member->revision = revision;
    if (term > l->term)
        l->term = term;
}

static void doubt(struct hf_lease *l, hf_ms at)
{
    l->doubted = true;
    l->doubt_at = at;
}

/* The attempt has used up its time, or pauses before the next one. Either way the stream broke,
 * and a renewal that passes after that may be for a lease whose keys are gone already. */
static void fail_attempt(struct hf_lease *l, hf_ms now, uint32_t random)
{
    bool timed_out = now >= attempt_end(l, l->sent_at);
    hf_ms pause = pick(l->policy.retry_min, l->policy.retry_max, random);

    l->in_flight = false;
    l->rotate = true;
    l->renew_at = timed_out ? now : after(now, pause);
    doubt(l, now);
}

static void schedule_renewal(struct hf_lease *l, uint32_t random)
{
    hf_ms delay = part_of(l->ttl, l->policy.renew);
    hf_ms spread = delay * l->policy.jitter_percent / PERCENT;

    l->renew_at = after(l->counted_at, pick(delay - spread, delay + spread, random));
}

/* The fence moves on only while it has not been reached, or it would be lifted by what should
 * have come before it. */
static void count_renewal(struct hf_lease *l, const struct hf_lease_reply *r, hf_ms now,
                          uint32_t random)
{
    l->counted_at = lacks(l, HF_MUTANT_RECEIVE_TIME) ? now : r->sent_at;
    l->ttl = lacks(l, HF_MUTANT_ASKED_TTL) ? l->policy.ttl : ttl_from_seconds(r->ttl_s);
    schedule_renewal(l, random);
    if (now < l->fence_at)
        l->fence_at = l->held_back ? earlier(l->fence_at, lapse_at(l)) : lapse_at(l);
}

/* What runs was registered under this lease. It gets a moment to be registered under the next
 * one; then whoever watches etcd may take it for dead and start another. */
static void lose(struct hf_lease *l, hf_ms now)
{
    l->lost = true;
    l->in_flight = false;
    l->doubted = false;
    l->stale = false;
    l->held_back = true;
    l->fence_at = earlier(l->fence_at, after(now, l->policy.lost_grace));
}

/* What went through raft and left when `known` was the highest term that we had heard of. */
static void learn_from_commit(struct hf_lease *l, uint64_t known, uint64_t term)
{
    l->stale = false;
    if (term < known && known == l->term)
        l->term = term;
}

void hf_lease_on_grant_sent(struct hf_lease *l)
{
    l->grant_term = l->term;
}

enum hf_lease_verdict hf_lease_on_granted(struct hf_lease *l, const struct hf_lease_reply *r,
                                          hf_ms now, uint32_t random)
{
    now = advance(l, now);
    hf_lease_on_header(l, r->member, r->term, r->revision);
    if (!l->lost || r->id <= 0 || r->id == l->id || r->sent_at > now)
        return HF_LEASE_REFUSED;
    if (r->ttl_s <= 0)
        return HF_LEASE_GONE;

    learn_from_commit(l, l->grant_term, r->term);
    l->id = r->id;
    l->lost = false;
    l->rotate = false;
    l->verify_at = now;
    if (l->held_back)
        doubt(l, r->sent_at);
    else
        l->fence_at = HF_LEASE_NEVER;
    count_renewal(l, r, now, random);
    return HF_LEASE_COUNTED;
}

int hf_lease_on_resumed(struct hf_lease *l, const struct hf_lease_record *record, hf_ms now)
{
    now = advance(l, now);
    if (!l->lost || record->id < 0)
        return HF_EINVAL;
    if (record->id > 0 && (record->ttl <= 0 || record->counted_at > now))
        return HF_EINVAL;

    l->id = record->id;
    l->lost = record->id == 0;
    l->ttl = earlier(record->ttl, ttl_from_seconds(TTL_MAX_S));
    l->counted_at = record->counted_at;
    l->renew_at = after(l->counted_at, part_of(l->ttl, l->policy.renew));
    l->term = record->term > l->term ? record->term : l->term;
    l->fence_at = l->lost ? record->fence_at : earlier(record->fence_at, lapse_at(l));
    l->held_back = l->fence_at != (l->lost ? HF_LEASE_NEVER : lapse_at(l));
    l->verify_at = now;
    if (!l->lost)
        doubt(l, now);
    return HF_OK;
}

struct hf_lease_record hf_lease_save(const struct hf_lease *l)
{
    return (struct hf_lease_record){
        .id = l->lost ? 0 : l->id,
        .ttl = l->ttl,
        .counted_at = l->counted_at,
        .term = l->term,
        .fence_at = l->fence_at,
    };
}

void hf_lease_on_renew_sent(struct hf_lease *l, hf_ms at)
{
    (void)advance(l, at);
    l->sent_at = at;
    l->in_flight = !l->lost;
    for (size_t i = 0; i < l->member_count; i++)
        l->members[i].floor = l->members[i].revision;
}

static int64_t known_revision(struct hf_lease *l, uint64_t member_id)
{
    const struct hf_lease_member *member = find_member(l, member_id);

    return member != NULL ? member->floor : 0;
}

/* An outdated leader renews its private copy, and denies a lease that it never heard of: what
 * it says counts neither way. */
static enum hf_lease_verdict judge(struct hf_lease *l, const struct hf_lease_reply *r,
                                   hf_ms now)
{
    if (l->lost || r->id != l->id || r->sent_at > now)
        return HF_LEASE_REFUSED;
    if (r->term < l->term && !lacks(l, HF_MUTANT_OLD_TERM))
        return HF_LEASE_STALE;
    if (r->ttl_s <= 0)
        return HF_LEASE_GONE;
    if (r->revision < known_revision(l, r->member))
        return HF_LEASE_BEHIND;
    if (r->sent_at < l->counted_at)
        return HF_LEASE_OLDER;
    return HF_LEASE_COUNTED;
}

/* Nothing that counts was heard for as long as the lease lasts: which of two terms is void may
 * never show by itself. A new lease, which only a majority can grant, ends that. */
static bool has_run_out(const struct hf_lease *l, hf_ms now)
{
    return now >= after(l->counted_at, l->ttl);
}

enum hf_lease_verdict hf_lease_on_reply(struct hf_lease *l, const struct hf_lease_reply *r,
                                        hf_ms now, uint32_t random)
{
    bool answers_current = l->in_flight && r->sent_at >= l->sent_at;
    enum hf_lease_verdict verdict;

    now = advance(l, now);
    verdict = judge(l, r, now);
    /* What is not about our lease may be from before a history reset: learn nothing from it. */
    if (verdict != HF_LEASE_REFUSED)
        hf_lease_on_header(l, r->member, r->term, r->revision);

    switch (verdict) {
    case HF_LEASE_COUNTED:
        l->stale = false;
        count_renewal(l, r, now, random);
        if (answers_current)
            l->in_flight = l->rotate = false;
        break;
    case HF_LEASE_GONE: lose(l, now); break;
    case HF_LEASE_STALE:
    case HF_LEASE_BEHIND:
        l->stale = l->stale || verdict == HF_LEASE_STALE;
        if (answers_current)
            fail_attempt(l, now, random);
        if (verdict == HF_LEASE_STALE && has_run_out(l, now))
            lose(l, now);
        break;
    case HF_LEASE_OLDER:
    case HF_LEASE_REFUSED: break;
    }
    return verdict;
}

void hf_lease_on_renew_failed(struct hf_lease *l, hf_ms sent_at, hf_ms now, uint32_t random)
{
    now = advance(l, now);
    if (l->in_flight && sent_at >= l->sent_at)
        fail_attempt(l, now, random);
}

void hf_lease_on_verify_sent(struct hf_lease *l, hf_ms at)
{
    at = advance(l, at);
    l->verify_at = attempt_end(l, at);
    l->verify_term = l->term;
}

void hf_lease_on_committed(struct hf_lease *l, uint64_t term)
{
    learn_from_commit(l, l->verify_term, term);
}

bool hf_lease_on_verified(struct hf_lease *l, int64_t id, hf_ms sent_at, hf_ms now)
{
    now = advance(l, now);
    if (l->lost || id != l->id)
        return false;
    l->verify_at = now;
    if (now >= lapse_at(l) || sent_at > now)
        return false;
    if (((l->doubted && sent_at < l->doubt_at) ||
         (now >= l->fence_at && sent_at < l->fence_at)) &&
        !lacks(l, HF_MUTANT_OLD_PROOF))
        return false;
    l->doubted = false;
    l->held_back = false;
    l->fence_at = lapse_at(l);
    return true;
}

void hf_lease_on_verify_failed(struct hf_lease *l, hf_ms now, uint32_t random)
{
    now = advance(l, now);
    l->verify_at = after(now, pick(l->policy.retry_min, l->policy.retry_max, random));
}

void hf_lease_on_lost(struct hf_lease *l, int64_t id, hf_ms now)
{
    now = advance(l, now);
    if (!l->lost && id == l->id)
        lose(l, now);
}

void hf_lease_on_emptied(struct hf_lease *l)
{
    if (l->stale)
        lose(l, l->latest);
    l->doubted = false;
    l->held_back = false;
    l->fence_at = l->lost ? HF_LEASE_NEVER : lapse_at(l);
}

void hf_lease_on_jump(struct hf_lease *l, hf_ms now)
{
    now = advance(l, now);
    if (l->lost)
        return;
    doubt(l, now);
    l->renew_at = earlier(l->renew_at, now);
}

void hf_lease_on_history_reset(struct hf_lease *l, hf_ms now)
{
    now = advance(l, now);
    if (!l->lost)
        lose(l, now);
    l->term = l->verify_term = l->grant_term = 0;
    l->member_count = l->member_next = 0;
}

const char *hf_lease_state_name(enum hf_lease_state state)
{
    switch (state) {
    case HF_LEASE_LOST: return "LOST";
    case HF_LEASE_HELD: return "HELD";
    case HF_LEASE_JEOPARDY: return "JEOPARDY";
    case HF_LEASE_FENCED: return "FENCED";
    }
    return "?";
}

const char *hf_lease_what_name(enum hf_lease_what what)
{
    switch (what) {
    case HF_LEASE_NONE: return "NONE";
    case HF_LEASE_RENEW: return "RENEW";
    case HF_LEASE_ABANDON: return "ABANDON";
    case HF_LEASE_VERIFY: return "VERIFY";
    }
    return "?";
}

const char *hf_lease_verdict_name(enum hf_lease_verdict verdict)
{
    switch (verdict) {
    case HF_LEASE_COUNTED: return "COUNTED";
    case HF_LEASE_GONE: return "GONE";
    case HF_LEASE_STALE: return "STALE";
    case HF_LEASE_BEHIND: return "BEHIND";
    case HF_LEASE_OLDER: return "OLDER";
    case HF_LEASE_REFUSED: return "REFUSED";
    }
    return "?";
}
