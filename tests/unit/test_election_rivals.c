/* Rivals for one key in virtual time: each drives a lease and an election as their headers say,
 * against a model of etcd that honours its leases, over a network that loses, delays and
 * reorders, and on machines that stand still now and then. The seeds are fixed. */
#include "core/election.h"
#include "core/lease.h"
#include "unit/suite.h"

enum {
    RIVALS = 3,
    SEEDS = 40,
    TICK = 10,
    TROUBLE = 240000, /* so long everything may happen, */
    CALM = 60000,     /* then nothing does */
    TTL_S = 10,
    TTL = TTL_S * 1000,
    MAIL_MAX = 256,
    LEASES_MAX = 1024,
};

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

enum call { GRANT, RENEW, COMPARE, CAMPAIGN, LOOK, RESIGN, CALLS };

/* A call on its way to etcd, or its answer on its way back, or an event of the watch. */
struct mail {
    enum { REQUEST, ANSWER, EVENT } kind;
    enum call call;
    size_t rival;
    hf_ms at;
    hf_ms sent_at;
    int64_t lease;
    int64_t term;
    int64_t ttl_s;              /* answers to GRANT and RENEW */
    bool ok;                    /* answers to COMPARE and CAMPAIGN */
    struct hf_election_key key; /* answers and events */
};

struct rival {
    struct hf_lease lease;
    struct hf_election election;
    hf_ms asleep_until;
    hf_ms heard_until; /* events of a watch do not overtake each other */
    struct {
        bool open;
        hf_ms sent_at;
        hf_ms until;
    } calls[CALLS];
};

struct world {
    struct rng rng;
    unsigned seed;
    hf_ms now;
    struct rival rivals[RIVALS];
    struct mail mail[MAIL_MAX];
    size_t mail_count;

    int64_t revision;
    struct hf_election_key key;
    hf_ms expiry[LEASES_MAX]; /* by lease id; 0: there is no such lease */
    int64_t last_lease;

    int64_t last_term;
    unsigned terms;
    hf_ms led;
};

static hf_ms between(struct world *w, hf_ms min, hf_ms max)
{
    return min + (hf_ms)(next_random(&w->rng) % (uint64_t)(max - min + 1));
}

static bool trouble(struct world *w, uint32_t per_mille)
{
    return w->now < TROUBLE && next_random(&w->rng) % 1000 < per_mille;
}

static void post(struct world *w, struct mail mail)
{
    hf_ms delay = trouble(w, 30) ? between(w, 0, 12000) : between(w, 1, 30);

    ck_assert_uint_lt(w->mail_count, MAIL_MAX);
    mail.at = w->now + delay;
    if (mail.kind == EVENT) {
        hf_ms *heard = &w->rivals[mail.rival].heard_until;

        mail.at = mail.at > *heard ? mail.at : *heard;
        *heard = mail.at;
    } else if (trouble(w, 80)) {
        return;
    }
    w->mail[w->mail_count++] = mail;
}

/* etcd. A lease lives for its TTL after the renewal arrived, and a little longer. */

static bool is_alive(const struct world *w, int64_t lease)
{
    return lease > 0 && w->expiry[lease] > w->now;
}

static struct hf_election_key read_key(const struct world *w)
{
    struct hf_election_key key = w->key;

    key.revision = w->revision;
    return key;
}

static void write_key(struct world *w, bool present, int64_t lease)
{
    w->revision++;
    w->key = (struct hf_election_key){ .revision = w->revision, .present = present };
    if (present) {
        w->key.lease = lease;
        w->key.create_rev = w->revision;
    }
    for (size_t i = 0; i < RIVALS; i++)
        post(w, (struct mail){ .kind = EVENT, .rival = i, .key = w->key });
}

static void expire(struct world *w)
{
    if (w->key.present && !is_alive(w, w->key.lease))
        write_key(w, false, 0);
}

static void extend(struct world *w, int64_t lease)
{
    w->expiry[lease] = w->now + TTL + between(w, 0, 500);
}

static void serve(struct world *w, const struct mail *m)
{
    struct mail answer = *m;
    bool mine = w->key.present && w->key.lease == m->lease && w->key.create_rev == m->term;

    answer.kind = ANSWER;
    switch (m->call) {
    case GRANT:
        extend(w, m->lease);
        answer.ttl_s = TTL_S;
        break;
    case RENEW:
        answer.ttl_s = is_alive(w, m->lease) ? TTL_S : 0;
        if (answer.ttl_s > 0)
            extend(w, m->lease);
        break;
    case COMPARE: answer.ok = mine; break;
    case CAMPAIGN:
        answer.ok = is_alive(w, m->lease);
        if (answer.ok && !w->key.present)
            write_key(w, true, m->lease);
        break;
    case RESIGN:
        if (mine)
            write_key(w, false, 0);
        break;
    case LOOK:
    case CALLS: break;
    }
    answer.key = read_key(w);
    post(w, answer);
}

/* The rivals. */

static uint32_t word(struct world *w)
{
    return next_random(&w->rng);
}

static void send(struct world *w, size_t i, enum call call, hf_ms until)
{
    struct rival *r = &w->rivals[i];
    struct hf_election_step step = hf_election_next(&r->election, w->now);

    r->calls[call].open = true;
    r->calls[call].sent_at = w->now;
    r->calls[call].until = until;
    post(w, (struct mail){
                .kind = REQUEST,
                .call = call,
                .rival = i,
                .sent_at = w->now,
                .lease = call == GRANT ? ++w->last_lease : r->lease.id,
                .term = step.term,
            });
    ck_assert_int_lt(w->last_lease, LEASES_MAX);
}

static bool does_hold(const struct rival *r, hf_ms now)
{
    return hf_election_next(&r->election, now).term != 0;
}

static void drive_lease(struct world *w, size_t i)
{
    struct rival *r = &w->rivals[i];

    for (;;) {
        struct hf_lease_step step = hf_lease_next(&r->lease, w->now);

        switch (step.what) {
        case HF_LEASE_NONE:
            if (step.state == HF_LEASE_LOST && !r->calls[GRANT].open) {
                hf_lease_on_emptied(&r->lease); /* a leader without a lease has stopped */
                send(w, i, GRANT, w->now + 2000);
            }
            return;
        case HF_LEASE_RENEW:
            hf_lease_on_renew_sent(&r->lease, w->now);
            send(w, i, RENEW, step.until);
            break;
        case HF_LEASE_ABANDON:
            hf_lease_on_renew_failed(&r->lease, r->calls[RENEW].sent_at, w->now, word(w));
            break;
        case HF_LEASE_VERIFY:
            if (!does_hold(r, w->now)) {
                hf_lease_on_emptied(&r->lease);
                break;
            }
            hf_lease_on_verify_sent(&r->lease, w->now);
            send(w, i, COMPARE, step.until);
            break;
        }
    }
}

static const enum call CALL_OF[] = {
    [HF_ELECTION_CAMPAIGN] = CAMPAIGN,
    [HF_ELECTION_VERIFY] = LOOK,
    [HF_ELECTION_RESIGN] = RESIGN,
};

static void drive(struct world *w, size_t i)
{
    struct rival *r = &w->rivals[i];

    for (;;) {
        drive_lease(w, i);
        hf_election_on_lease(&r->election, hf_lease_save(&r->lease).id,
                             hf_lease_proven_until(&r->lease), w->now);
        struct hf_election_step step = hf_election_next(&r->election, w->now);

        if (step.what == HF_ELECTION_NONE)
            return;
        if (step.what == HF_ELECTION_NEW_LEASE) {
            hf_lease_on_lost(&r->lease, step.lease, w->now);
            continue;
        }
        send(w, i, CALL_OF[step.what], w->now + 2000);
        hf_election_on_sent(&r->election, step.what, w->now);
    }
}

static void hear_election(struct world *w, struct rival *r, const struct mail *m)
{
    enum hf_election_outcome outcome =
        m->call == CAMPAIGN && !m->ok ? HF_ELECTION_NO_LEASE : HF_ELECTION_ANSWERED;

    ck_assert_int_eq(hf_election_on_outcome(&r->election, outcome, &m->key, w->now, word(w)),
                     HF_OK);
}

/* An answer counts as one only while its call is open; renewals count by their send time. */
static void hear(struct world *w, const struct mail *m)
{
    struct rival *r = &w->rivals[m->rival];
    struct hf_lease_reply reply = { m->lease, m->sent_at, m->ttl_s, 1, 1, m->key.revision };
    bool current = r->calls[m->call].open && r->calls[m->call].sent_at == m->sent_at;

    if (m->kind == EVENT) {
        ck_assert_int_eq(hf_election_on_observed(&r->election, &m->key, w->now, word(w)),
                         HF_OK);
        return;
    }
    if (current)
        r->calls[m->call].open = false;
    switch (m->call) {
    case GRANT: (void)hf_lease_on_granted(&r->lease, &reply, w->now, word(w)); break;
    case RENEW: (void)hf_lease_on_reply(&r->lease, &reply, w->now, word(w)); break;
    case COMPARE:
        if (m->ok)
            (void)hf_lease_on_verified(&r->lease, m->lease, m->sent_at, w->now);
        else
            hf_lease_on_lost(&r->lease, m->lease, w->now);
        break;
    case CAMPAIGN:
    case LOOK:
    case RESIGN:
        if (current)
            hear_election(w, r, m);
        break;
    case CALLS: break;
    }
}

static void time_out(struct world *w, struct rival *r)
{
    for (enum call call = GRANT; call < CALLS; call++) {
        if (!r->calls[call].open || r->calls[call].until > w->now)
            continue;
        r->calls[call].open = false;
        if (call == CAMPAIGN || call == LOOK || call == RESIGN)
            ck_assert_int_eq(hf_election_on_outcome(&r->election, HF_ELECTION_UNKNOWN, NULL,
                                                    w->now, word(w)),
                             HF_OK);
    }
}

static void disturb(struct world *w, struct rival *r)
{
    if (trouble(w, 1))
        r->asleep_until = w->now + between(w, 0, 25000);
    if (trouble(w, 1) && next_random(&w->rng) % 4 == 0)
        hf_election_resign(&r->election, w->now);
    else if (!trouble(w, 997))
        hf_election_stand(&r->election, w->now);
}

static void deliver(struct world *w)
{
    for (size_t i = 0; i < w->mail_count;) {
        struct mail m = w->mail[i];

        if (m.at > w->now || (m.kind != REQUEST && w->rivals[m.rival].asleep_until > w->now)) {
            i++;
            continue;
        }
        /* Keeps the order: the events of a watch arrive as they happened. */
        w->mail_count--;
        for (size_t k = i; k < w->mail_count; k++)
            w->mail[k] = w->mail[k + 1];
        if (m.kind == REQUEST)
            serve(w, &m);
        else
            hear(w, &m);
    }
}

/* Whoever may act holds the key in etcd itself, at this very moment; so there is only one. A
 * rival that stands still is asked as well: it might be about to look at the clock. */
static void check_leaders(struct world *w)
{
    for (size_t i = 0; i < RIVALS; i++) {
        struct rival *r = &w->rivals[i];
        int64_t term = hf_election_next(&r->election, w->now).term;

        if (!hf_election_can_act(&r->election, w->now))
            continue;
        if (!w->key.present || w->key.lease != r->lease.id || w->key.create_rev != term)
            ck_abort_msg("seed %u at %ld: rival %zu acts in term %ld without the key", w->seed,
                         (long)w->now, i, (long)term);
        if (term < w->last_term)
            ck_abort_msg("seed %u: term %ld after %ld", w->seed, (long)term,
                         (long)w->last_term);
        w->terms += term > w->last_term;
        w->last_term = term;
        w->led += TICK;
    }
}

static void start(struct world *w)
{
    struct hf_lease_policy lease = hf_lease_policy_default();
    struct hf_election_policy election = hf_election_policy_default();

    lease.ttl = TTL;
    w->rng.state = w->seed * 0x9E3779B97F4A7C15u;
    w->revision = 1;
    for (size_t i = 0; i < RIVALS; i++) {
        hf_lease_init(&w->rivals[i].lease, &lease);
        hf_election_init(&w->rivals[i].election, &election);
        hf_election_stand(&w->rivals[i].election, 0);
    }
}

static void live(struct world *w)
{
    for (w->now = 0; w->now < TROUBLE + CALM; w->now += TICK) {
        expire(w);
        deliver(w);
        for (size_t i = 0; i < RIVALS; i++) {
            struct rival *r = &w->rivals[i];

            disturb(w, r);
            if (r->asleep_until > w->now)
                continue;
            time_out(w, r);
            drive(w, i);
        }
        check_leaders(w);
    }
}

START_TEST(no_two_rivals_ever_act_and_in_the_end_one_does)
{
    unsigned terms = 0;
    hf_ms led = 0;

    for (unsigned seed = 1; seed <= SEEDS; seed++) {
        struct world *w = calloc(1, sizeof *w);
        unsigned acting = 0;

        ck_assert_ptr_nonnull(w);
        w->seed = seed;
        start(w);
        live(w);
        for (size_t i = 0; i < RIVALS; i++)
            acting += hf_election_can_act(&w->rivals[i].election, w->now);
        ck_assert_msg(acting == 1, "seed %u: %u leaders in the end", seed, acting);
        terms += w->terms;
        led += w->led;
        free(w);
    }
    /* Leadership changed hands often, and somebody led for most of the time. */
    ck_assert_uint_gt(terms / 5, SEEDS);
    ck_assert_int_gt(led, (hf_ms)SEEDS * (TROUBLE + CALM) / 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("election");

    tcase_set_timeout(t, 0); /* ctest has a limit of its own */
    tcase_add_test(t, no_two_rivals_ever_act_and_in_the_end_one_does);
    return run("core/election, rivals", t);
}
