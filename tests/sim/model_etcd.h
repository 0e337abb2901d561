/* model_etcd.h - a cluster of three etcd 3.4 members as a data structure, in virtual time.
 *
 * Deterministic: no threads, no I/O, no globals, no clock but the one that the caller advances,
 * no randomness but what comes from the seed. It is not a network: a request that is given to a
 * member is served at once. Delay, loss, repetition and reordering are made by whoever carries
 * requests, answers and batches about.
 *
 * tests/integration/test_model_etcd_differential.c holds its answers against a real etcd's. */
#ifndef HFS_MODEL_ETCD_H
#define HFS_MODEL_ETCD_H

#include "base/clock.h"
#include "sim/model_request.h"

#define HFS_MEMBERS 3
#define HFS_NEVER   INT64_MAX

struct hfs_etcd;

/* Zero means the default for every member. */
struct hfs_etcd_config {
    uint64_t seed;
    hf_ms now;             /* virtual time to begin with */
    hfs_rev revision;      /* likewise; 1 */
    hf_ms election;        /* election timeout: 1 s */
    hf_ms expiry_tick;     /* expired leases are looked for this often: 500 ms; 1: at once */
    unsigned expiry_limit; /* and at most so many of them are revoked then: 500 */
    bool pre_vote;         /* a member that was cut off comes back without a new election */
    size_t max_entries;    /* memory: versions of keys kept (1 Mi), ... */
    size_t max_leases;     /* ... leases (64 Ki), ... */
    size_t max_watches;    /* ... and watches (4 Ki); beyond: HF_ELIMIT */
};

/* What can go wrong by itself; all off to begin with. Percentages are drawn from the seed. */
struct hfs_faults {
    /* Leases. A leader without followers still has its own copy of them. */
    bool lying_renewals;   /* L2: from that copy it answers renewals, under its old term */
    bool revoke_on_return; /* L1: when it comes back it revokes what has expired there */
    bool ghost_renewals;   /* L3: a lease that ended within the last second is "renewed" */
    uint8_t lie_percent;   /* L2 without a story: answered under an old term, nothing done */
    bool expiry_suspended; /* L12: no lease ends by itself */
    hf_ms expiry_late;     /* L10: each ends up to so much later */

    /* Watches. */
    uint8_t mute_percent;      /* W1: opened, and nothing ever comes of it */
    uint8_t lose_percent;      /* W5: a batch, or one event of it, is left out */
    uint8_t duplicate_percent; /* W6: a batch comes twice */
    uint8_t old_percent;       /* W6: an old batch comes again */
    bool early_progress;       /* W3: progress is told before the events */

    bool no_space; /* S5: puts, txns with puts and grants are refused */
};

int hfs_etcd_new(const struct hfs_etcd_config *cfg, struct hfs_etcd **ret_etcd) HF_MUST_CHECK;
void hfs_etcd_free(struct hfs_etcd *etcd);

/* The switches, to be set at any time. Borrowed. */
struct hfs_faults *hfs_etcd_get_faults(struct hfs_etcd *etcd);

/* What is stored, for those who check. Borrowed until the next call that is not const. */
const struct hfs_store *hfs_etcd_get_store(const struct hfs_etcd *etcd);
bool hfs_etcd_has_lease(const struct hfs_etcd *etcd, int64_t lease);

/* When something will happen by itself, unless somebody intervenes; HFS_NEVER. */
hf_ms hfs_etcd_next(const struct hfs_etcd *etcd);

/* Lets time pass until `now`: leases expire, members lose and elect their leader. On failure
 * (HF_ENOMEM, HF_ELIMIT) time has passed as far as it could; call it again. */
int hfs_etcd_advance(struct hfs_etcd *etcd, hf_ms now) HF_MUST_CHECK;

/* Requests. */

enum hfs_fate {
    HFS_ANSWERED, /* free(*ret_answer) */
    HFS_SILENT,   /* nothing was done, and no answer will ever come */
    HFS_LATER,    /* etcd does not answer yet: serve the same again after hfs_etcd_next() */
};

/* Whether it would hold now. */
bool hfs_compare_holds(const struct hfs_etcd *etcd, const struct hfs_compare *compare);

/* Gives a request to a member; returns an enum hfs_fate, or HF_ENOMEM: nobody knows what was
 * done. A request that the model refuses is answered, with answer->err set and nothing done. */
int hfs_etcd_serve(struct hfs_etcd *etcd, unsigned index, const struct hfs_request *request,
                   struct hfs_answer **ret_answer) HF_MUST_CHECK;

/* Watches. */

struct hfs_event {
    bool deleted; /* then only kv.key and kv.mod_rev are set */
    struct hfs_kv kv;
};

/* All events of one revision, or (count 0) the progress that was asked for. */
struct hfs_batch {
    struct hfs_header header; /* its revision may be far ahead of the events' */
    const struct hfs_event *events;
    size_t count;
};

/* Begins at `start_rev` (0: with the next change). Returns an enum hfs_fate with *ret_id set
 * when HFS_ANSWERED, or HF_EAGAIN (refused), HF_ELIMIT or HF_ENOMEM. */
int hfs_watch_open(struct hfs_etcd *etcd, unsigned member, const struct hfs_range *range,
                   hfs_rev start_rev, uint64_t *ret_id) HF_MUST_CHECK;

/* What the member has to say: 1 and a batch (free it), 0 for nothing now, or the end of the
 * watch, which is gone then: HF_ECOMPACT or HF_EAGAIN (HF_ENOENT: it was not there). After
 * HF_ENOMEM it goes on. A watch that is not emptied before a compaction may end of it. */
int hfs_watch_next(struct hfs_etcd *etcd, uint64_t id,
                   struct hfs_batch **ret_batch) HF_MUST_CHECK;

/* Asks for a sign of life. */
void hfs_watch_ask_progress(struct hfs_etcd *etcd, uint64_t id);

/* Nothing comes of it any more, though it is there. */
void hfs_watch_mute(struct hfs_etcd *etcd, uint64_t id);

void hfs_watch_cancel(struct hfs_etcd *etcd, uint64_t id);

/* Members. */

enum hfs_member_state {
    HFS_MEMBER_UP,
    HFS_MEMBER_DOWN,    /* refuses connections */
    HFS_MEMBER_PAUSED,  /* SIGSTOP: connections stay, nothing answers */
    HFS_MEMBER_CUT,     /* clients reach it, the other members do not */
    HFS_MEMBER_STALLED, /* its disk hangs: nothing but its leases works */
};

int hfs_etcd_set_member(struct hfs_etcd *etcd, unsigned index,
                        enum hfs_member_state state) HF_MUST_CHECK;
enum hfs_member_state hfs_etcd_get_member(const struct hfs_etcd *etcd, unsigned index);

/* The member that leads and can commit; -1 when there is none. */
int hfs_etcd_get_leader(const struct hfs_etcd *etcd);
uint64_t hfs_etcd_get_term(const struct hfs_etcd *etcd);

/* Another member leads from now on (the same, if no other can): the term grows, and every lease
 * is extended. HF_EAGAIN when nobody leads. */
int hfs_etcd_change_leader(struct hfs_etcd *etcd) HF_MUST_CHECK;

/* L1 without a story: revokes that many of 100 leases at once, whoever renewed them; none while
 * nobody leads, since that would be a change that no member has. */
int hfs_etcd_revoke_leases(struct hfs_etcd *etcd, unsigned percent) HF_MUST_CHECK;

/* Backups. */

struct hfs_snapshot;

int hfs_etcd_snapshot(const struct hfs_etcd *etcd,
                      struct hfs_snapshot **ret_snapshot) HF_MUST_CHECK;
void hfs_snapshot_free(struct hfs_snapshot *snapshot);

/* Puts the data of a snapshot in the place of what is there, which may be repeated: revisions
 * go back, ids stay, the raft term begins anew, all watches end, and a leader is elected. */
int hfs_etcd_restore(struct hfs_etcd *etcd, const struct hfs_snapshot *snapshot) HF_MUST_CHECK;

#endif
