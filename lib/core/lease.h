/* lease.h - decides when to renew an etcd lease, when to worry, and when what runs under it
 * must be frozen because nobody can be sure of it any more.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; a plain value that may be copied. All
 * deadlines run from the *send* time of the last renewal that counts, since that is when etcd
 * can have begun to count at the earliest, and T is the TTL that etcd returned, not the one
 * that was asked for. With the default policy: renew at T/3, give an attempt T/6 and then try
 * the next endpoint, JEOPARDY at 2T/3, FENCED at 5T/6.
 *
 * Guarantees, for every order of events and however late the caller comes:
 *   - the answer for `now` depends on `now`, not on how often it was asked: a caller that was
 *     paused sees FENCED at once;
 *   - a renewal that an outdated leader answered, or that answers another lease, never counts,
 *     unless etcd itself has shown that the newer term came to nothing (see on_committed);
 *   - what was frozen stays frozen until a Txn sent after the freeze has proved that its key
 *     still exists; neither a renewal nor a new lease is enough;
 *   - there is no error that ends it: a lost lease waits for the next grant.
 *
 * The driver does what it is told and reports it; each report may change the answer:
 *
 *     drive():
 *         loop:
 *             now = clock now                         (afresh: we may just have been paused)
 *             step = hf_lease_next(&lease, now)
 *             publish hf_lease_save(&lease), step.state, step.frozen
 *             switch step.what:
 *             NONE:    set the timer to hf_lease_deadline(&lease, now); return
 *             RENEW:   if step.rotate: take the next endpoint
 *                      send it with the deadline step.until; hf_lease_on_renew_sent(now)
 *             ABANDON: cancel it; hf_lease_on_renew_failed(sent_at, now, random)
 *             VERIFY:  if nothing is registered under the lease: hf_lease_on_emptied()
 *                      else send a Txn that compares it; hf_lease_on_verify_sent(now)
 *
 *     a renewal ended:    hf_lease_on_reply or hf_lease_on_renew_failed; drive()
 *     the Txn committed:  hf_lease_on_committed; then hf_lease_on_verified; refused:
 *                         hf_lease_on_lost; no answer: hf_lease_on_verify_failed; drive()
 *     our key is deleted: hf_lease_on_lost; drive()
 *     LOST:               hf_lease_on_grant_sent; grant a lease with a new id;
 *                         hf_lease_on_granted; drive()
 *
 * tests/unit/test_election_rivals.c drives this machine and the election that way. */
#ifndef HF_CORE_LEASE_H
#define HF_CORE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_LEASE_NEVER   INT64_MAX
#define HF_LEASE_MEMBERS 8 /* etcd recommends at most 7 */

/* A part of T: num/den. */
struct hf_lease_share {
    uint16_t num;
    uint16_t den;
};

struct hf_lease_policy {
    hf_ms ttl;                      /* what to ask etcd for */
    hf_ms ttl_floor;                /* a lease shorter than this is not worth having */
    struct hf_lease_share renew;    /* after a renewal that counts, the next one is due */
    struct hf_lease_share attempt;  /* an attempt may take this long */
    struct hf_lease_share jeopardy; /* no new effects from here on */
    struct hf_lease_share fence;    /* nothing may run from here on */
    uint8_t jitter_percent;         /* of `renew`, either way: spreads a fleet's renewals */
    hf_ms retry_min;                /* pause after an attempt that failed before its time */
    hf_ms retry_max;
    hf_ms lost_grace; /* what ran under a lost lease may run on for this long */
    uint64_t mutants; /* rules that are missing (core/mutant.h): 0 but in tests */
};

/* T = 15 s with a floor of 10 s, and the shares above. Cannot fail. */
struct hf_lease_policy hf_lease_policy_default(void);

/* The same for another TTL, of 2 s and more: one below the floor is its own floor, and failed
 * renewals are tried again as much sooner. Cannot fail. */
struct hf_lease_policy hf_lease_policy_for(hf_ms ttl);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_lease_policy_check(const struct hf_lease_policy *policy,
                          const char **ret_why) HF_MUST_CHECK;

/* HF_EINVAL, and a sentence in *ret_why, when a TTL that etcd granted is none, or is below the
 * floor. The machine works with any TTL; whether to is the caller's choice. */
int hf_lease_ttl_check(const struct hf_lease_policy *policy, int64_t ttl_s,
                       const char **ret_why) HF_MUST_CHECK;

enum hf_lease_state {
    HF_LEASE_LOST,     /* there is no lease: none was granted yet, or etcd says it is gone */
    HF_LEASE_HELD,     /* proven */
    HF_LEASE_JEOPARDY, /* no proof for too long: begin nothing new */
    HF_LEASE_FENCED,   /* what runs under it must not run until it is verified */
};

enum hf_lease_what {
    HF_LEASE_NONE,
    HF_LEASE_RENEW,   /* send a renewal, then report on_renew_sent */
    HF_LEASE_ABANDON, /* the attempt took too long: cancel it, then report on_renew_failed */
    HF_LEASE_VERIFY,  /* send a Txn comparing our key, then report on_verify_sent */
};

/* What holds at a moment, and what is to be done. */
struct hf_lease_step {
    enum hf_lease_state state;
    bool frozen; /* what runs must be frozen: FENCED, or LOST for too long */
    enum hf_lease_what what;
    bool rotate; /* RENEW: use the next endpoint */
    hf_ms until; /* RENEW, VERIFY: when the attempt has to have ended */
};

/* What etcd said of a lease. */
struct hf_lease_reply {
    int64_t id;      /* the lease that was asked about */
    hf_ms sent_at;   /* when the request left; for a repeated grant, the first time */
    int64_t ttl_s;   /* <= 0: there is no such lease */
    uint64_t member; /* from the header: who answered, */
    uint64_t term;   /* its raft term */
    int64_t revision;
};

/* What became of a reply. */
enum hf_lease_verdict {
    HF_LEASE_COUNTED,
    HF_LEASE_GONE,    /* no TTL left: the lease is lost */
    HF_LEASE_STALE,   /* from an outdated leader: an attempt that failed; after T, LOST */
    HF_LEASE_BEHIND,  /* from a member that forgot what it had known: an attempt that failed */
    HF_LEASE_OLDER,   /* a later renewal has counted already */
    HF_LEASE_REFUSED, /* not about our lease, a grant while there is one, or nonsense */
};

/* What outlives the process that renews: whoever guards the agents keeps a copy, acts on
 * fence_at by itself, and hands the copy to the next one. */
struct hf_lease_record {
    int64_t id;       /* 0: no lease */
    hf_ms ttl;        /* T */
    hf_ms counted_at; /* send time of the last renewal that counts */
    uint64_t term;    /* highest raft term seen */
    hf_ms fence_at;   /* from then on what runs must be frozen; HF_LEASE_NEVER: nothing runs */
};

/* What one member is known to have had. Answers on different streams overtake each other, so a
 * reply is held against what was known when its request left, not against what came meanwhile.
 */
struct hf_lease_member {
    uint64_t id;
    int64_t revision; /* newest seen */
    int64_t floor;    /* newest seen when the last renewal left */
};

/* Read-only for callers. */
struct hf_lease {
    struct hf_lease_policy policy;
    hf_ms latest; /* time as far as we know it: never goes back */

    int64_t id; /* of the current lease or, when lost, of the last one */
    bool lost;
    hf_ms ttl;
    hf_ms counted_at;

    /* Moved on by proof only. While it is in the past, that is the fence; `held_back` says that
     * a renewal is no proof, because what runs was registered under an earlier lease. */
    hf_ms fence_at;
    bool held_back;

    hf_ms renew_at; /* next attempt; valid while none is under way */
    hf_ms sent_at;  /* of the attempt under way */
    bool in_flight;
    bool rotate;

    bool doubted; /* something happened after which our key may be gone though renewals pass */
    hf_ms doubt_at;
    hf_ms verify_at; /* not before then */

    uint64_t term;        /* highest seen */
    uint64_t verify_term; /* highest seen when the last VERIFY left, */
    uint64_t grant_term;  /* or the last grant */
    struct hf_lease_member members[HF_LEASE_MEMBERS];
    uint8_t member_count;
    uint8_t member_next; /* the one to be replaced when the table is full */
    bool stale;          /* since the last that counted, an answer of an older term came */
};

/* Starts without a lease. `policy` must have passed its check. */
void hf_lease_init(struct hf_lease *lease, const struct hf_lease_policy *policy);

/* What holds and what is due at `now`. Asking changes nothing. Cannot fail. */
struct hf_lease_step hf_lease_next(const struct hf_lease *lease, hf_ms now);

/* When to ask again if nothing happens before: `now` if something is to be done, HF_LEASE_NEVER
 * if time alone changes nothing. */
hf_ms hf_lease_deadline(const struct hf_lease *lease, hf_ms now);

/* HELD until then, unless something happens before; in the past if it is not. */
hf_ms hf_lease_proven_until(const struct hf_lease *lease);

/* A grant leaves. */
void hf_lease_on_grant_sent(struct hf_lease *lease);

/* A grant was answered. Counts only while there is no lease, and never for the id that was
 * lost; the caller revokes a lease that was REFUSED. */
enum hf_lease_verdict hf_lease_on_granted(struct hf_lease *lease,
                                          const struct hf_lease_reply *reply, hf_ms now,
                                          uint32_t random);

/* Goes on with the lease that an earlier process held. HF_EINVAL if the record makes no sense.
 */
int hf_lease_on_resumed(struct hf_lease *lease, const struct hf_lease_record *record,
                        hf_ms now) HF_MUST_CHECK;

/* The record to be resumed from. */
struct hf_lease_record hf_lease_save(const struct hf_lease *lease);

/* A renewal leaves at `at`, or a moment later: its reply may name the exact time. One is under
 * way at a time. */
void hf_lease_on_renew_sent(struct hf_lease *lease, hf_ms at);

/* A renewal was answered, perhaps one that was abandoned long ago. */
enum hf_lease_verdict hf_lease_on_reply(struct hf_lease *lease,
                                        const struct hf_lease_reply *reply, hf_ms now,
                                        uint32_t random);

/* The renewal that left at `sent_at` failed or was abandoned. Ignored if it is not the one
 * under way. */
void hf_lease_on_renew_failed(struct hf_lease *lease, hf_ms sent_at, hf_ms now,
                              uint32_t random);

/* A Txn that compares our key (its create revision and lease `id`) left at `at`. */
void hf_lease_on_verify_sent(struct hf_lease *lease, hf_ms at);

/* The Txn of the last VERIFY went through raft, whatever it found, and was answered under
 * `term`. If that is behind the highest term that we knew when the Txn left, that one is void,
 * and forgotten: in a restored etcd terms begin anew.
 *
 * Why that lets no outdated leader in (L2): a term that has had a leader is known to a
 * majority, and a majority that knows it commits nothing under an older one. The Txn was
 * committed after we had heard of the newer term, under one that is not above what its answer
 * says. So until then the newer term had no leader in this cluster; it was that of a candidate
 * that nobody followed, or of a cluster that is no more. A leader that is outdated cannot bring
 * this about, since nothing commits through it. */
void hf_lease_on_committed(struct hf_lease *lease, uint64_t term);

/* It committed: our key exists. When several keys hang on the lease, report once, with the
 * earliest send time, after all of them have been compared. False if it proves nothing: the Txn
 * left before the doubt or the freeze that it should end, or no renewal is recent enough. */
bool hf_lease_on_verified(struct hf_lease *lease, int64_t id, hf_ms sent_at, hf_ms now);

/* Its outcome is not known. (A refused compare means that the key is gone: on_lost.) */
void hf_lease_on_verify_failed(struct hf_lease *lease, hf_ms now, uint32_t random);

/* Our key was deleted, or etcd does not know the lease. Ignored unless `id` is the current one.
 */
void hf_lease_on_lost(struct hf_lease *lease, int64_t id, hf_ms now);

/* Nothing is registered under the lease and nothing of ours runs (all of it was killed, or the
 * leader stepped down): there is nothing to verify and nothing to thaw. A lease whose renewals
 * do not count is given up: a grant goes through raft as well as a Txn does. */
void hf_lease_on_emptied(struct hf_lease *lease);

/* The header of any other answer of etcd: teaches terms and revisions. */
void hf_lease_on_header(struct hf_lease *lease, uint64_t member, uint64_t term,
                        int64_t revision);

/* Our clock jumped: this process, its loop or the machine stood still. */
void hf_lease_on_jump(struct hf_lease *lease, hf_ms now);

/* etcd was restored from a backup: the lease is lost, terms and revisions start over. */
void hf_lease_on_history_reset(struct hf_lease *lease, hf_ms now);

/* "HELD", "RENEW", "COUNTED" ...; "?" for a value that is none. Static strings. */
const char *hf_lease_state_name(enum hf_lease_state state);
const char *hf_lease_what_name(enum hf_lease_what what);
const char *hf_lease_verdict_name(enum hf_lease_verdict verdict);

#endif
