/* model_private.h - the inside of the model etcd, shared by its files and by nobody else. */
#ifndef HFS_MODEL_PRIVATE_H
#define HFS_MODEL_PRIVATE_H

#include "sim/model_etcd.h"
#include "sim/model_lease.h"
#include "sim/random.h"

enum {
    HFS_NOBODY = -1,
    HFS_QUORUM = HFS_MEMBERS / 2 + 1,
    HFS_FIRST_TERM = 2, /* what the first election of a new cluster brings */
    HFS_HEARTBEAT_MS = 100,
    HFS_GHOST_MS = 1000,
    HFS_GHOSTS = 16,
};

struct hfs_member {
    enum hfs_member_state state;
    uint64_t term;
    int leader;         /* whom it takes for the leader, or HFS_NOBODY */
    hf_ms doubts_at;    /* when it stops doing so, if nothing changes */
    hf_ms alone_since;  /* since when it has known of no leader */
    bool streams_ended; /* since then */
    hfs_rev behind;     /* the newest revision that it has; 0: all there are */

    /* A leader that lost its followers and does not know it: the leases as it has them. */
    bool is_stale;
    struct hfs_leases own;
};

struct hfs_watch {
    uint64_t id;
    unsigned member;
    struct hfs_range range; /* its key is owned */
    hfs_rev next;           /* the first revision that was not looked at yet */
    hfs_rev repeat;         /* one that is told once more; 0: none */
    bool muted;
    bool asked; /* for progress */
    bool ended; /* by the member */
};

struct hfs_etcd {
    struct hfs_etcd_config cfg;
    struct hfs_faults faults;
    struct hfs_random random;
    hf_ms now;

    struct hfs_store store; /* what is committed */
    struct hfs_leases leases;
    hf_ms expiry_phase; /* the leader looks for expired leases at this modulo the tick */
    hf_ms expiry_from;  /* no lease expires before */

    struct hfs_lease ghosts[HFS_GHOSTS]; /* the last leases that ended; `expires` is when */
    size_t ghost_count;

    struct hfs_member members[HFS_MEMBERS];
    int leader; /* the last one elected, wherever it is now; HFS_NOBODY after it gave up */
    uint64_t term;
    hf_ms election_at;

    struct hfs_watch *watches; /* in the order of ids */
    size_t watch_count, watch_cap;
    uint64_t last_watch;

    struct hfs_found found; /* scratch */
};

/* model_members.c */

/* The leader is there and has a majority. */
bool hfs_members_can_commit(const struct hfs_etcd *etcd);

/* The newest revision that the member has. */
hfs_rev hfs_member_revision(const struct hfs_etcd *etcd, unsigned member);
struct hfs_header hfs_member_header(const struct hfs_etcd *etcd, unsigned member);

void hfs_members_init(struct hfs_etcd *etcd);
/* All of them start anew, with the data that is there, as a cluster of that term. */
void hfs_members_restart(struct hfs_etcd *etcd, uint64_t term);
hf_ms hfs_members_next(const struct hfs_etcd *etcd);
int hfs_members_on_time(struct hfs_etcd *etcd) HF_MUST_CHECK;

/* model_expiry.c */

void hfs_expiry_refresh(struct hfs_etcd *etcd, struct hfs_lease *lease, hf_ms extend);
/* A new leader gives every lease its whole time, and more. */
void hfs_expiry_promote(struct hfs_etcd *etcd);
/* Ends a lease that is there; all its keys go in one revision. */
int hfs_expiry_revoke(struct hfs_etcd *etcd, int64_t id) HF_MUST_CHECK;
hf_ms hfs_expiry_next(const struct hfs_etcd *etcd);
int hfs_expiry_on_time(struct hfs_etcd *etcd) HF_MUST_CHECK;

/* model_watch.c */

/* Ends the watches on that member. */
void hfs_watches_end(struct hfs_etcd *etcd, unsigned member);
void hfs_watches_done(struct hfs_etcd *etcd);

/* model_etcd.c */

/* An entry as part of an answer: how many bytes its texts need, and the entry with those texts
 * copied to *place, which moves on. */
size_t hfs_kv_size(const struct hfs_entry *entry, bool keys_only);
struct hfs_kv hfs_kv_place(const struct hfs_entry *entry, bool keys_only, char **place);

#endif
