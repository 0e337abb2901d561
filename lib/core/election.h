/* election.h - decides when to campaign for leadership on one key, whether we lead, and when we
 * stop acting.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; a plain value that may be copied. The
 * key is created if absent under the candidate's lease; there is no queue of candidates. The
 * term of a leader is the create revision of its key. What is known of the key and of the lease
 * decides, by one table; events only add to what is known.
 *
 * Guarantees, for every order of events:
 *   - we lead only while etcd's last word is that the key hangs on our current lease, and only
 *     until that lease was due to be proven again; a Txn that won under a lease that is gone
 *     meanwhile makes nobody a leader;
 *   - after an interruption (jeopardy, another lease) the key is read again before we act;
 *   - nobody campaigns with a lease that died or whose key was deleted: a new lease first;
 *   - a term that was given up is never led again, since the deletion may come late;
 *   - terms only grow, until a history reset is reported.
 * Every write of a leader compares the key all the same: this shortens overlaps, the compare
 * makes them harmless.
 *
 *     drive():
 *         loop:
 *             now = clock now
 *             hf_election_on_lease(&e, hf_lease_save(&lease).id,
 *                                  hf_lease_proven_until(&lease), now)
 *             step = hf_election_next(&e, now)
 *             publish step.state, step.term
 *             switch step.what:
 *             NONE:      set the timer to hf_election_deadline(&e, now); return
 *             CAMPAIGN:  create the key under step.lease, else read it
 *             VERIFY:    read the key, linearizably
 *             RESIGN:    delete the key of step.lease and step.term, else read it
 *             NEW_LEASE: hf_lease_on_lost(&lease, step.lease, now); revoke it; continue
 *             hf_election_on_sent(&e, step.what, now)
 *
 *     the answer:       hf_election_on_outcome(&e, ANSWERED, what the key is now); drive()
 *     the key's watch:  hf_election_on_observed(&e, what the key is now); drive()
 *     HF_EHISTORY from either: etcd was restored; hf_election_on_history_reset, watch anew
 *     before every effect: hf_election_can_act(&e, clock now)
 *
 * Every action that was reported as sent has exactly one outcome: calls have deadlines. */
#ifndef HF_CORE_ELECTION_H
#define HF_CORE_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_ELECTION_NEVER INT64_MAX

struct hf_election_policy {
    hf_ms spread;    /* a key that was deleted is campaigned for after 0..spread */
    hf_ms retry_min; /* pause after an action that led nowhere */
    hf_ms retry_max;
    uint64_t mutants; /* rules that are missing (core/mutant.h): 0 but in tests */
};

/* 500 ms, 250 ms .. 1 s. Cannot fail. */
struct hf_election_policy hf_election_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_election_policy_check(const struct hf_election_policy *policy,
                             const char **ret_why) HF_MUST_CHECK;

enum hf_election_state {
    HF_ELECTION_FOLLOWER,  /* somebody else leads, or we do not stand or have no proven lease */
    HF_ELECTION_CANDIDATE, /* nobody leads as far as we know: we are about to, or just tried */
    HF_ELECTION_LEADER,    /* may act */
    HF_ELECTION_SUSPENDED, /* the key is ours, the proof is not: must not act */
    HF_ELECTION_RESIGNING, /* the key may still be ours: must not act */
};

enum hf_election_what {
    HF_ELECTION_NONE,
    HF_ELECTION_CAMPAIGN,
    HF_ELECTION_VERIFY,
    HF_ELECTION_RESIGN,
    HF_ELECTION_NEW_LEASE, /* step.lease is of no more use: give it up and grant another */
};

/* What holds at a moment, and what is to be done. */
struct hf_election_step {
    enum hf_election_state state;
    enum hf_election_what what;
    int64_t lease; /* ours; 0: none */
    int64_t term;  /* create revision of our key; 0 when it is not ours */
};

/* The key as etcd had it at a revision. */
struct hf_election_key {
    int64_t revision; /* of the answer's header or, from a watch, of the event */
    bool present;
    int64_t lease; /* that it hangs on; 0: on none */
    int64_t create_rev;
};

enum hf_election_outcome {
    HF_ELECTION_ANSWERED, /* done or refused: etcd said what the key is now */
    HF_ELECTION_UNKNOWN,  /* no answer: what was sent may have happened, or may still happen */
    HF_ELECTION_NO_LEASE, /* etcd does not know the lease: nothing happened */
};

/* Read-only for callers. */
struct hf_election {
    struct hf_election_policy policy;
    hf_ms latest; /* time as far as we know it: never goes back */
    bool standing;

    int64_t lease; /* 0: none */
    int64_t spent; /* a lease that must not be used again */
    hf_ms proven_until;

    bool read; /* `key` is valid */
    struct hf_election_key key;
    hf_ms heard_at;   /* of it */
    int64_t top_term; /* highest ever seen, whosever it was, */
    int64_t top_lease;
    int64_t resigned; /* the term that we gave up */

    bool uncertain; /* a campaign of ours may have changed the key */
    bool doubted;   /* the key must be read again before we act */
    hf_ms doubt_at;

    enum hf_election_what in_flight;
    hf_ms sent_at;
    int64_t sent_lease;
    bool outdated; /* what is in flight belongs to an earlier history */
    hf_ms due_at;  /* no action before */
};

/* Does not stand yet. `policy` must have passed its check. */
void hf_election_init(struct hf_election *election, const struct hf_election_policy *policy);

/* What holds and what is due at `now`. Asking changes nothing. Cannot fail. */
struct hf_election_step hf_election_next(const struct hf_election *election, hf_ms now);

/* When to ask again if nothing happens before: `now` if something is to be done,
 * HF_ELECTION_NEVER if time alone changes nothing. */
hf_ms hf_election_deadline(const struct hf_election *election, hf_ms now);

/* True only as leader with a proven lease at `now`, which must be read for the purpose. */
bool hf_election_can_act(const struct hf_election *election, hf_ms now);

/* Wants to lead; no longer wants to. Resigning is over when the state is FOLLOWER. */
void hf_election_stand(struct hf_election *election, hf_ms now);
void hf_election_resign(struct hf_election *election, hf_ms now);

/* The lease as it is now: its id (0: none) and until when it is proven. May be repeated. */
void hf_election_on_lease(struct hf_election *election, int64_t lease, hf_ms proven_until,
                          hf_ms now);

/* The key was seen. Older news than what is known already is ignored. HF_EHISTORY, and nothing
 * changed, when it contradicts what was seen before: revisions were issued twice. HF_EINVAL
 * when it makes no sense. */
int hf_election_on_observed(struct hf_election *election, const struct hf_election_key *key,
                            hf_ms now, uint32_t random) HF_MUST_CHECK;

/* An action was carried out; its outcome follows. Not for NONE and NEW_LEASE. */
void hf_election_on_sent(struct hf_election *election, enum hf_election_what what, hf_ms now);

/* The outcome of what was sent; `key` is for ANSWERED only. Errors as for on_observed. */
int hf_election_on_outcome(struct hf_election *election, enum hf_election_outcome outcome,
                           const struct hf_election_key *key, hf_ms now,
                           uint32_t random) HF_MUST_CHECK;

/* etcd was restored from a backup: nothing that was known holds, and the lease is spent. */
void hf_election_on_history_reset(struct hf_election *election, hf_ms now);

/* "LEADER", "CAMPAIGN" ...; "?" for a value that is none. Static strings. */
const char *hf_election_state_name(enum hf_election_state state);
const char *hf_election_what_name(enum hf_election_what what);

#endif
