/* Random histories of one lease, held against a second opinion that knows only the rules. The
 * seeds are fixed: a failure names its seed and step, and repeats. */
#include <stdio.h>
#include <string.h>

#include "unit/lease_fixture.h"

enum { SEEDS = 300, STEPS = 400, SENDS = 8, PEERS = 3, HORIZON = 10 * T };

struct rng {
    uint64_t state;
};

static uint32_t next_random(struct rng *rng)
{
    rng->state ^= rng->state << 13;
    rng->state ^= rng->state >> 7;
    rng->state ^= rng->state << 17;
    return (uint32_t)(rng->state >> 32);
}

static hf_ms between(struct rng *rng, hf_ms min, hf_ms max)
{
    return min + (hf_ms)(next_random(rng) % (uint64_t)(max - min + 1));
}

static bool chance(struct rng *rng, uint32_t percent)
{
    return next_random(rng) % 100 < percent;
}

/* What anybody could have noted down who saw the same events. */
struct witness {
    bool lost;
    int64_t id;
    hf_ms counted_at, ttl;
    uint64_t term;
    uint64_t verify_term;              /* when the last one left */
    int64_t seen[PEERS], floor[PEERS]; /* revisions: newest, and newest at the last send */
    hf_ms sends[SENDS];                /* newest first */
    bool in_flight;
    hf_ms retry_by; /* an attempt failed: the next one is due by then; 0: none failed */
    bool jumped;
};

struct run {
    struct rng rng;
    struct hf_lease lease;
    struct witness witness;
    hf_ms now;
    int64_t last_id;
    int64_t revision[PEERS]; /* what the members really have */
    unsigned thaws, losses, renewals;
    char where[64];
};

#define CHECK(r, condition)                                                                    \
    do {                                                                                       \
        if (!(condition))                                                                      \
            ck_abort_msg("%s: %s", (r)->where, #condition);                                    \
    } while (0)

static struct hf_lease_reply random_reply(struct run *r, int64_t id)
{
    struct rng *rng = &r->rng;
    struct witness *w = &r->witness;
    uint64_t peer = next_random(rng) % PEERS;

    if (chance(rng, 20))
        r->revision[peer]++;
    return (struct hf_lease_reply){
        .id = chance(rng, 95) ? id : id + 1000,
        .sent_at = w->sends[chance(rng, 70) ? 0 : next_random(rng) % SENDS],
        .ttl_s = chance(rng, 97) ? between(rng, 6, 20) : between(rng, -1, 0),
        .member = peer + 1,
        .term = w->term + (chance(rng, 5) ? 1 : 0) - (chance(rng, 10) && w->term > 0 ? 1 : 0),
        .revision = r->revision[peer] - (chance(rng, 5) ? 1 : 0),
    };
}

/* The rules for a renewal that counts, in the order of their importance. */
static enum hf_lease_verdict opinion(const struct witness *w,
                                     const struct hf_lease_reply *reply)
{
    if (w->lost || reply->id != w->id)
        return HF_LEASE_REFUSED;
    if (reply->term < w->term)
        return HF_LEASE_STALE;
    if (reply->ttl_s <= 0)
        return HF_LEASE_GONE;
    if (reply->revision < w->floor[reply->member - 1])
        return HF_LEASE_BEHIND;
    return reply->sent_at < w->counted_at ? HF_LEASE_OLDER : HF_LEASE_COUNTED;
}

static void note_header(struct witness *w, uint64_t member, uint64_t term, int64_t revision)
{
    int64_t *seen = &w->seen[member - 1];

    *seen = revision > *seen ? revision : *seen;
    w->term = term > w->term ? term : w->term;
}

static void note_loss(struct run *r)
{
    r->witness.lost = true;
    r->witness.in_flight = false;
    r->losses++;
}

static void note_failure(struct run *r)
{
    r->witness.in_flight = false;
    r->witness.retry_by = r->now + r->lease.policy.retry_max;
}

static void note_proof(struct run *r, const struct hf_lease_reply *reply)
{
    struct witness *w = &r->witness;

    w->counted_at = reply->sent_at;
    w->ttl = reply->ttl_s * 1000;
    w->retry_by = 0;
    w->jumped = false;
    r->renewals++;
}

static void do_reply(struct run *r)
{
    struct witness *w = &r->witness;
    struct hf_lease_reply reply = random_reply(r, w->id);
    enum hf_lease_verdict verdict = opinion(w, &reply);
    bool current = w->in_flight && reply.sent_at == w->sends[0];

    CHECK(r, hf_lease_on_reply(&r->lease, &reply, r->now, next_random(&r->rng)) == verdict);
    if (verdict == HF_LEASE_REFUSED)
        return;
    note_header(w, reply.member, reply.term, reply.revision);
    if (verdict == HF_LEASE_GONE)
        note_loss(r);
    if (verdict == HF_LEASE_COUNTED) {
        note_proof(r, &reply);
        w->in_flight = w->in_flight && !current;
    }
    if ((verdict == HF_LEASE_STALE || verdict == HF_LEASE_BEHIND) && current)
        note_failure(r);
    if (verdict == HF_LEASE_STALE && r->now >= w->counted_at + w->ttl)
        note_loss(r);
}

static void do_grant(struct run *r)
{
    struct witness *w = &r->witness;
    struct hf_lease_reply reply = random_reply(r, r->last_id + 1);
    bool good = w->lost && reply.ttl_s > 0;

    reply.id = ++r->last_id;
    reply.sent_at = r->now - between(&r->rng, 0, chance(&r->rng, 90) ? 100 : 2 * T);
    CHECK(r, (hf_lease_on_granted(&r->lease, &reply, r->now, next_random(&r->rng)) ==
              HF_LEASE_COUNTED) == good);
    note_header(w, reply.member, reply.term, reply.revision);
    if (!good)
        return;
    w->lost = false;
    w->id = reply.id;
    note_proof(r, &reply);
    for (size_t i = 0; i < SENDS; i++)
        w->sends[i] = reply.sent_at;
}

static void do_send(struct run *r)
{
    struct witness *w = &r->witness;

    hf_lease_on_renew_sent(&r->lease, r->now);
    memmove(w->sends + 1, w->sends, sizeof w->sends - sizeof w->sends[0]);
    w->sends[0] = r->now;
    w->in_flight = !w->lost;
    for (size_t i = 0; i < PEERS; i++)
        w->floor[i] = w->seen[i];
}

static void do_fail(struct run *r)
{
    struct witness *w = &r->witness;
    hf_ms sent_at = w->sends[chance(&r->rng, 80) ? 0 : 1];

    hf_lease_on_renew_failed(&r->lease, sent_at, r->now, next_random(&r->rng));
    if (w->in_flight && sent_at >= w->sends[0])
        note_failure(r);
}

static void do_verify(struct run *r)
{
    r->witness.verify_term = r->witness.term;
    hf_lease_on_verify_sent(&r->lease, r->now);
}

/* Something went through raft under that term: nothing else ever makes a term void. */
static void do_commit(struct run *r)
{
    struct witness *w = &r->witness;
    uint64_t term = w->verify_term - (chance(&r->rng, 30) && w->verify_term > 0 ? 1 : 0);

    hf_lease_on_committed(&r->lease, term);
    if (term < w->verify_term && w->verify_term == w->term)
        w->term = term;
    CHECK(r, hf_lease_save(&r->lease).term == w->term);
}

static void do_verified(struct run *r)
{
    hf_ms sent_at = r->now - between(&r->rng, 0, chance(&r->rng, 80) ? 100 : T);
    hf_ms fence_at = hf_lease_save(&r->lease).fence_at;
    bool frozen = hf_lease_next(&r->lease, r->now).frozen;
    bool accepted = hf_lease_on_verified(&r->lease, r->witness.id, sent_at, r->now);

    if (accepted && frozen) {
        CHECK(r, sent_at >= fence_at);
        CHECK(r, r->now - r->witness.counted_at < r->witness.ttl * 5 / 6);
        r->thaws++;
    }
}

static void do_rare(struct run *r)
{
    struct witness *w = &r->witness;

    switch (next_random(&r->rng) % 7) {
    case 0:
        hf_lease_on_lost(&r->lease, w->id, r->now);
        if (!w->lost)
            note_loss(r);
        break;
    case 1: hf_lease_on_lost(&r->lease, w->id - 1, r->now); break;
    case 2:
        hf_lease_on_jump(&r->lease, r->now);
        w->jumped = !w->lost;
        break;
    case 3:
        note_header(w, 1, w->term + 1, ++r->revision[0]);
        hf_lease_on_header(&r->lease, 1, w->term, r->revision[0]);
        break;
    case 4: hf_lease_on_verify_failed(&r->lease, r->now, next_random(&r->rng)); break;
    case 5: do_grant(r); break;
    case 6: do_commit(r); break;
    }
}

/* Mostly what the machine asks for; now and then whatever else can happen. */
static void do_something(struct run *r)
{
    enum hf_lease_what due = what(&r->lease, r->now);
    uint32_t dice = next_random(&r->rng) % 100;

    if (dice < 50 && due == HF_LEASE_RENEW)
        do_send(r);
    else if (dice < 50 && due == HF_LEASE_VERIFY)
        do_verify(r);
    else if (dice < 5 || (dice < 50 && due == HF_LEASE_ABANDON))
        do_fail(r);
    else if (dice < 80)
        do_reply(r);
    else if (dice < 90)
        do_verified(r);
    else if (dice < 95)
        do_grant(r);
    else
        do_rare(r);
}

static void check_state(struct run *r, hf_ms at)
{
    const struct witness *w = &r->witness;
    struct hf_lease_step step = hf_lease_next(&r->lease, at);
    hf_ms age = at - w->counted_at;

    CHECK(r, (step.state == HF_LEASE_LOST) == w->lost);
    CHECK(r, hf_lease_save(&r->lease).id == (w->lost ? 0 : w->id));
    CHECK(r, (step.state == HF_LEASE_HELD) == (at < hf_lease_proven_until(&r->lease)));
    if (w->lost)
        return;
    CHECK(r, step.state != HF_LEASE_HELD || age < w->ttl * 2 / 3);
    CHECK(r, step.state != HF_LEASE_JEOPARDY || age >= w->ttl * 2 / 3);
    CHECK(r, step.state == HF_LEASE_FENCED || age < w->ttl * 5 / 6);
    CHECK(r, step.frozen == (step.state == HF_LEASE_FENCED));
    CHECK(r, hf_lease_save(&r->lease).fence_at <= w->counted_at + w->ttl * 5 / 6 ||
                 hf_lease_save(&r->lease).fence_at <= r->now);
}

static void check_attempts(struct run *r, hf_ms at)
{
    const struct witness *w = &r->witness;
    enum hf_lease_what due = what(&r->lease, at);
    hf_ms third = w->ttl / 3;

    if (w->lost) {
        CHECK(r, due == HF_LEASE_NONE);
        return;
    }
    if (w->in_flight) {
        CHECK(r, (due == HF_LEASE_ABANDON) == (at >= w->sends[0] + w->ttl / 6));
        CHECK(r, due != HF_LEASE_RENEW);
        return;
    }
    CHECK(r, due != HF_LEASE_ABANDON);
    if (w->retry_by != 0)
        CHECK(r, at < w->retry_by || due == HF_LEASE_RENEW);
    else
        CHECK(r, at < w->counted_at + third + third / 20 || due == HF_LEASE_RENEW);
    if (w->retry_by == 0 && !w->jumped)
        CHECK(r, at >= w->counted_at + third - third / 20 || due != HF_LEASE_RENEW);
}

/* Whoever sleeps until the deadline misses nothing. */
static void check_deadline(struct run *r)
{
    hf_ms deadline = hf_lease_deadline(&r->lease, r->now);
    struct hf_lease_step now = hf_lease_next(&r->lease, r->now), then;

    CHECK(r, (deadline == r->now) == (now.what != HF_LEASE_NONE));
    if (deadline == r->now)
        return;
    if (deadline > r->now + HORIZON)
        deadline = r->now + HORIZON;
    then = hf_lease_next(&r->lease, between(&r->rng, r->now, deadline - 1));
    CHECK(r, then.state == now.state && then.frozen == now.frozen && then.what == now.what);
    then = hf_lease_next(&r->lease, deadline - 1);
    CHECK(r, then.state == now.state && then.frozen == now.frozen && then.what == now.what);
}

/* A successor is never more trusting than its predecessor. */
static void check_successor(struct run *r)
{
    struct hf_lease_record record = hf_lease_save(&r->lease);
    struct hf_lease successor;

    hf_lease_init(&successor, &r->lease.policy);
    CHECK(r, hf_lease_on_resumed(&successor, &record, r->now) == HF_OK);
    CHECK(r, state(&successor, r->now) == state(&r->lease, r->now));
    CHECK(r, hf_lease_save(&successor).fence_at <= record.fence_at);
    CHECK(r,
          hf_lease_next(&successor, r->now).frozen == hf_lease_next(&r->lease, r->now).frozen);
}

static void step(struct run *r)
{
    struct hf_lease_step before, after;
    unsigned thaws;

    switch (next_random(&r->rng) % 5) {
    case 0: break;
    case 1: r->now += between(&r->rng, 0, 50); break;
    case 2: r->now += between(&r->rng, 0, T / 6); break;
    case 3: r->now += chance(&r->rng, 20) ? between(&r->rng, 0, T) : 1; break;
    case 4: {
        hf_ms deadline = hf_lease_deadline(&r->lease, r->now);

        if (deadline > r->now && deadline < r->now + T)
            r->now = deadline - (chance(&r->rng, 20) ? 1 : 0);
        break;
    }
    }
    before = hf_lease_next(&r->lease, r->now);
    thaws = r->thaws;
    do_something(r);
    after = hf_lease_next(&r->lease, r->now);
    CHECK(r, !before.frozen || after.frozen || r->thaws == thaws + 1);

    hf_ms later = r->now + between(&r->rng, 0, T);
    check_state(r, r->now);
    check_state(r, later);
    check_attempts(r, r->now);
    check_attempts(r, later);
    check_deadline(r);
    check_successor(r);
}

START_TEST(no_history_breaks_the_rules)
{
    struct hf_lease_policy p = hf_lease_policy_default();
    unsigned thaws = 0, losses = 0, renewals = 0;

    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct run r = { .rng = { seed * 0x9E3779B97F4A7C15u }, .now = 1000000 };

        r.witness.lost = true;
        hf_lease_init(&r.lease, &p);
        for (unsigned i = 0; i < STEPS; i++) {
            (void)snprintf(r.where, sizeof r.where, "seed %u step %u", seed, i);
            step(&r);
        }
        thaws += r.thaws;
        losses += r.losses;
        renewals += r.renewals;
    }
    /* The dice reach every corner, or this would prove little. */
    ck_assert_uint_gt(thaws, SEEDS);
    ck_assert_uint_gt(losses, SEEDS);
    ck_assert_uint_gt(renewals / 10, SEEDS);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lease");

    tcase_set_timeout(t, 0); /* ctest has a limit of its own */
    tcase_add_test(t, no_history_breaks_the_rules);
    return run("core/lease, random histories", t);
}
