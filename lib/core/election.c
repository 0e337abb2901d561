#include "core/election.h"

#include <assert.h>
#include <stddef.h>

#include "core/mutant.h"

#define PAUSE_MAX 60000 /* nobody waits longer than this for a leader */
#define LOOK_EVERY                                                                             \
    30000 /* nobody believes for longer than this, unheard, that another leads                 \
           */

struct hf_election_policy hf_election_policy_default(void)
{
    return (struct hf_election_policy){ .spread = 500, .retry_min = 250, .retry_max = 1000 };
}

int hf_election_policy_check(const struct hf_election_policy *p, const char **ret_why)
{
    if (p->spread < 0 || p->spread > PAUSE_MAX)
        *ret_why = "election.spread must be 0..60 s";
    else if (p->retry_min <= 0 || p->retry_max < p->retry_min)
        *ret_why = "election.retry_min must be positive and not above election.retry_max";
    else if (p->retry_max > PAUSE_MAX)
        *ret_why = "election.retry_max must not be above 60 s";
    else
        return HF_OK;
    return HF_EINVAL;
}

/* What we know of the key. */
enum knowledge {
    KEY_UNREAD,
    KEY_ABSENT,
    KEY_UNCERTAIN, /* absent, but for a campaign of ours whose outcome is not known */
    KEY_OTHERS,
    KEY_MINE,
    KEY_DOUBTED,  /* mine, but it must be read again before we act */
    KEY_GIVEN_UP, /* mine, but a resignation that was sent may take effect at any time */
};

/* What our lease is worth. */
enum proof { LEASE_NONE, LEASE_SPENT, LEASE_UNPROVEN, LEASE_PROVEN };

struct rule {
    enum hf_election_state state;
    enum hf_election_what what;
};

static const struct rule FOLLOW = { HF_ELECTION_FOLLOWER, HF_ELECTION_NONE };
static const struct rule MIND = { HF_ELECTION_FOLLOWER, HF_ELECTION_VERIFY };
static const struct rule RELEASE = { HF_ELECTION_FOLLOWER, HF_ELECTION_NEW_LEASE };
static const struct rule AWAIT = { HF_ELECTION_CANDIDATE, HF_ELECTION_NONE };
static const struct rule LOOK = { HF_ELECTION_CANDIDATE, HF_ELECTION_VERIFY };
static const struct rule RUN = { HF_ELECTION_CANDIDATE, HF_ELECTION_CAMPAIGN };
static const struct rule LEAD = { HF_ELECTION_LEADER, HF_ELECTION_NONE };
static const struct rule PAUSE = { HF_ELECTION_SUSPENDED, HF_ELECTION_NONE };
static const struct rule RECHECK = { HF_ELECTION_SUSPENDED, HF_ELECTION_VERIFY };
static const struct rule INQUIRE = { HF_ELECTION_RESIGNING, HF_ELECTION_VERIFY };
static const struct rule RESIGN = { HF_ELECTION_RESIGNING, HF_ELECTION_RESIGN };

/* One row of the tables below. The switches have no default: the compiler finds a forgotten
 * case. */
static struct rule row(enum proof proof, struct rule none, struct rule spent,
                       struct rule unproven, struct rule proven)
{
    switch (proof) {
    case LEASE_NONE: return none;
    case LEASE_SPENT: return spent;
    case LEASE_UNPROVEN: return unproven;
    case LEASE_PROVEN: return proven;
    }
    return FOLLOW;
}

/* clang-format off */
static struct rule when_standing(enum knowledge key, enum proof p)
{
    switch (key) {              /* no lease  spent    unproven  proven */
    case KEY_UNREAD:    return row(p, FOLLOW,  RELEASE, FOLLOW,   LOOK);
    case KEY_ABSENT:    return row(p, FOLLOW,  RELEASE, FOLLOW,   RUN);
    case KEY_UNCERTAIN: return row(p, FOLLOW,  RELEASE, AWAIT,    LOOK);
    case KEY_OTHERS:    return row(p, FOLLOW,  RELEASE, FOLLOW,   MIND);
    case KEY_MINE:      return row(p, FOLLOW,  RELEASE, PAUSE,    LEAD);
    case KEY_DOUBTED:   return row(p, FOLLOW,  RELEASE, PAUSE,    RECHECK);
    case KEY_GIVEN_UP:  return row(p, FOLLOW,  RELEASE, RESIGN,   RESIGN);
    }
    return FOLLOW;
}

/* Without a lease no key is ours: it goes with the lease. */
static struct rule when_withdrawn(enum knowledge key, enum proof p)
{
    switch (key) {
    case KEY_UNREAD:
    case KEY_ABSENT:
    case KEY_OTHERS:    return FOLLOW;
                                /* no lease  spent    unproven  proven */
    case KEY_UNCERTAIN: return row(p, FOLLOW,  INQUIRE, INQUIRE,  INQUIRE);
    case KEY_MINE:
    case KEY_DOUBTED:
    case KEY_GIVEN_UP:  return row(p, FOLLOW,  RESIGN,  RESIGN,   RESIGN);
    }
    return FOLLOW;
}
/* clang-format on */

static hf_ms later(hf_ms a, hf_ms b)
{
    return a > b ? a : b;
}

/* min..max after `now`, saturating. */
static hf_ms some_time_after(hf_ms now, hf_ms min, hf_ms max, uint32_t random)
{
    hf_ms delay = min + (hf_ms)(random % ((uint64_t)(max - min) + 1));

    return now > HF_ELECTION_NEVER - delay ? HF_ELECTION_NEVER : now + delay;
}

static bool is_mine(const struct hf_election *e)
{
    return e->read && e->key.present && e->lease != 0 && e->key.lease == e->lease;
}

static enum knowledge knowledge(const struct hf_election *e)
{
    if (is_mine(e) && e->key.create_rev == e->resigned)
        return KEY_GIVEN_UP;
    if (is_mine(e))
        return e->doubted ? KEY_DOUBTED : KEY_MINE;
    if (e->read && e->key.present)
        return KEY_OTHERS;
    if (e->uncertain)
        return KEY_UNCERTAIN;
    return e->read ? KEY_ABSENT : KEY_UNREAD;
}

static enum proof proof(const struct hf_election *e, hf_ms now)
{
    if (e->lease == 0)
        return LEASE_NONE;
    if (e->lease == e->spent)
        return LEASE_SPENT;
    if (__builtin_expect((e->policy.mutants & hf_mutant_bit(HF_MUTANT_LEAD_ON)) != 0, 0))
        return LEASE_PROVEN;
    return now < e->proven_until ? LEASE_PROVEN : LEASE_UNPROVEN;
}

static struct rule rule(const struct hf_election *e, hf_ms now)
{
    enum knowledge key = knowledge(e);
    enum proof lease = proof(e, now);

    return e->standing ? when_standing(key, lease) : when_withdrawn(key, lease);
}

/* When what is to be done may be done. Another's key is told of by the watch; but one that was
 * created while a watch lost events is deleted unheard, since the watch never had it. */
static hf_ms action_at(const struct hf_election *e)
{
    return knowledge(e) == KEY_OTHERS ? later(e->due_at, e->heard_at + LOOK_EVERY) : e->due_at;
}

/* Pauses are for what goes to etcd; to give a lease up needs nobody. */
static enum hf_election_what due(const struct hf_election *e, hf_ms now)
{
    enum hf_election_what what = rule(e, now).what;

    if (what == HF_ELECTION_NONE || what == HF_ELECTION_NEW_LEASE)
        return what;
    return e->in_flight == HF_ELECTION_NONE && now >= action_at(e) ? what : HF_ELECTION_NONE;
}

void hf_election_init(struct hf_election *e, const struct hf_election_policy *policy)
{
    const char *why = NULL;

    assert(hf_election_policy_check(policy, &why) == HF_OK);
    *e = (struct hf_election){
        .policy = *policy,
        .latest = INT64_MIN,
        .proven_until = INT64_MIN,
        .due_at = INT64_MIN,
    };
}

struct hf_election_step hf_election_next(const struct hf_election *e, hf_ms now)
{
    now = later(now, e->latest);
    return (struct hf_election_step){
        .state = rule(e, now).state,
        .what = due(e, now),
        .lease = e->lease,
        .term = is_mine(e) ? e->key.create_rev : 0,
    };
}

bool hf_election_can_act(const struct hf_election *e, hf_ms now)
{
    return hf_election_next(e, now).state == HF_ELECTION_LEADER;
}

hf_ms hf_election_deadline(const struct hf_election *e, hf_ms now)
{
    hf_ms deadline = HF_ELECTION_NEVER;
    struct rule current, lapsed;

    now = later(now, e->latest);
    if (due(e, now) != HF_ELECTION_NONE)
        return now;
    current = rule(e, now);
    lapsed = rule(e, later(now, e->proven_until));
    if (current.what != HF_ELECTION_NONE && e->in_flight == HF_ELECTION_NONE)
        deadline = action_at(e);
    if ((lapsed.state != current.state || lapsed.what != current.what) &&
        e->proven_until < deadline)
        deadline = e->proven_until;
    return deadline;
}

static void doubt(struct hf_election *e, hf_ms now)
{
    e->doubted = true;
    e->doubt_at = now;
}

/* Brings what is known up to `now`: a leader whose proof ran out was interrupted, even if
 * nobody asked while it lasted. */
static hf_ms advance(struct hf_election *e, hf_ms now)
{
    e->latest = later(e->latest, now);
    if (knowledge(e) == KEY_MINE && proof(e, e->latest) != LEASE_PROVEN)
        doubt(e, e->latest);
    return e->latest;
}

void hf_election_stand(struct hf_election *e, hf_ms now)
{
    (void)advance(e, now);
    e->standing = true;
}

void hf_election_resign(struct hf_election *e, hf_ms now)
{
    (void)advance(e, now);
    e->standing = false;
}

void hf_election_on_lease(struct hf_election *e, int64_t lease, hf_ms proven_until, hf_ms now)
{
    now = advance(e, now);
    if (lease != e->lease)
        doubt(e, now);
    e->lease = lease;
    e->proven_until = proven_until;
}

/* A key that is gone comes back only with a later revision, and never with an earlier one. */
static bool contradicts(const struct hf_election *e, const struct hf_election_key *key)
{
    if (!key->present)
        return false;
    if (key->create_rev < e->top_term)
        return true;
    if (e->read && !e->key.present && key->create_rev <= e->key.revision)
        return true;
    return key->create_rev == e->top_term && key->lease != e->top_lease && e->lease != 0 &&
           key->lease == e->lease;
}

static bool is_sane(const struct hf_election_key *key)
{
    if (key->revision <= 0)
        return false;
    return !key->present || (key->create_rev > 0 && key->create_rev <= key->revision);
}

static bool is_same_key(const struct hf_election_key *a, const struct hf_election_key *b)
{
    return a->present && b->present && a->create_rev == b->create_rev;
}

/* Our key went, and not because we resigned: then the lease is gone, or somebody wants us gone.
 * Either way it is no lease to campaign with. */
static void note_change(struct hf_election *e, const struct hf_election_key *key, hf_ms now,
                        uint32_t random)
{
    if (is_mine(e) && e->key.create_rev != e->resigned)
        e->spent = e->lease;
    if (key->present)
        e->doubted = false; /* what was in doubt was another key */
    else
        e->due_at = later(e->due_at, some_time_after(now, 0, e->policy.spread, random));
}

/* Sets *ret_news to whether `key` is the newest that is known. */
static int learn(struct hf_election *e, const struct hf_election_key *key, hf_ms now,
                 uint32_t random, bool *ret_news)
{
    bool absent_before = e->read && !e->key.present;

    *ret_news = false;
    if (!is_sane(key))
        return HF_EINVAL;
    if (e->read && key->revision < e->key.revision)
        return HF_OK;
    if (contradicts(e, key))
        return HF_EHISTORY;

    if (!is_same_key(&e->key, key) && !(absent_before && !key->present))
        note_change(e, key, now, random);
    if (key->present && key->create_rev > e->top_term) {
        e->top_term = key->create_rev;
        e->top_lease = key->lease;
    }
    if (key->revision > e->key.revision && e->in_flight != HF_ELECTION_CAMPAIGN)
        e->uncertain = false;
    e->key = *key;
    e->read = true;
    e->heard_at = now;
    *ret_news = true;
    return HF_OK;
}

int hf_election_on_observed(struct hf_election *e, const struct hf_election_key *key, hf_ms now,
                            uint32_t random)
{
    bool news;

    now = advance(e, now);
    return learn(e, key, now, random, &news);
}

void hf_election_on_sent(struct hf_election *e, enum hf_election_what what, hf_ms now)
{
    now = advance(e, now);
    switch (what) {
    case HF_ELECTION_NONE:
    case HF_ELECTION_NEW_LEASE: return;
    case HF_ELECTION_VERIFY: break;
    case HF_ELECTION_CAMPAIGN: e->uncertain = true; break;
    case HF_ELECTION_RESIGN: e->resigned = e->key.create_rev; break;
    }
    e->in_flight = what;
    e->sent_at = now;
    e->sent_lease = e->lease;
    e->outdated = false;
}

static int on_answer(struct hf_election *e, const struct hf_election_key *key, hf_ms now,
                     uint32_t random)
{
    bool news;
    int err = learn(e, key, now, random, &news);

    if (news) {
        e->uncertain = false;
        e->doubted = e->doubted && e->sent_at < e->doubt_at;
    }
    return err;
}

int hf_election_on_outcome(struct hf_election *e, enum hf_election_outcome outcome,
                           const struct hf_election_key *key, hf_ms now, uint32_t random)
{
    enum hf_election_what what = e->in_flight;
    int err = HF_OK;

    now = advance(e, now);
    e->in_flight = HF_ELECTION_NONE;
    if (e->outdated)
        return HF_OK;

    switch (outcome) {
    case HF_ELECTION_ANSWERED: err = on_answer(e, key, now, random); break;
    case HF_ELECTION_NO_LEASE:
        e->spent = e->sent_lease;
        e->uncertain = false;
        break;
    case HF_ELECTION_UNKNOWN: break;
    }
    /* Whoever got nowhere waits, or two calls that fail at once would chase each other. */
    if (outcome != HF_ELECTION_ANSWERED || rule(e, now).what == what)
        e->due_at = later(
            e->due_at, some_time_after(now, e->policy.retry_min, e->policy.retry_max, random));
    return err;
}

void hf_election_on_history_reset(struct hf_election *e, hf_ms now)
{
    (void)advance(e, now);
    e->spent = e->lease;
    e->read = false;
    e->key = (struct hf_election_key){ 0 };
    e->top_term = e->top_lease = e->resigned = 0;
    e->uncertain = false;
    e->outdated = e->in_flight != HF_ELECTION_NONE;
}

const char *hf_election_state_name(enum hf_election_state state)
{
    switch (state) {
    case HF_ELECTION_FOLLOWER: return "FOLLOWER";
    case HF_ELECTION_CANDIDATE: return "CANDIDATE";
    case HF_ELECTION_LEADER: return "LEADER";
    case HF_ELECTION_SUSPENDED: return "SUSPENDED";
    case HF_ELECTION_RESIGNING: return "RESIGNING";
    }
    return "?";
}

const char *hf_election_what_name(enum hf_election_what what)
{
    switch (what) {
    case HF_ELECTION_NONE: return "NONE";
    case HF_ELECTION_CAMPAIGN: return "CAMPAIGN";
    case HF_ELECTION_VERIFY: return "VERIFY";
    case HF_ELECTION_RESIGN: return "RESIGN";
    case HF_ELECTION_NEW_LEASE: return "NEW_LEASE";
    }
    return "?";
}
