#include "sim/model_private.h"

static size_t count_up(const struct hfs_etcd *etcd)
{
    size_t up = 0;

    for (size_t i = 0; i < HFS_MEMBERS; i++)
        up += etcd->members[i].state == HFS_MEMBER_UP;
    return up;
}

bool hfs_members_can_commit(const struct hfs_etcd *etcd)
{
    return etcd->leader != HFS_NOBODY && etcd->members[etcd->leader].state == HFS_MEMBER_UP &&
           count_up(etcd) >= HFS_QUORUM;
}

hfs_rev hfs_member_revision(const struct hfs_etcd *etcd, unsigned member)
{
    hfs_rev behind = etcd->members[member].behind;

    return behind > 0 ? behind : etcd->store.revision;
}

struct hfs_header hfs_member_header(const struct hfs_etcd *etcd, unsigned member)
{
    return (struct hfs_header){
        .cluster_id = 0xc1,
        .member_id = 0xa1 + member,
        .revision = hfs_member_revision(etcd, member),
        .raft_term = etcd->members[member].term,
    };
}

/* Members do not all wait equally long, or they would all stand for election at once. */
static hf_ms patience(struct hfs_etcd *etcd)
{
    return etcd->cfg.election +
           (hf_ms)hfs_random_below(&etcd->random, (uint64_t)etcd->cfg.election);
}

static void lose_leader(struct hfs_etcd *etcd, struct hfs_member *member)
{
    member->leader = HFS_NOBODY;
    member->alone_since = etcd->now;
    member->doubts_at = HFS_NEVER;
    member->streams_ended = false;
    member->is_stale = false;
    hfs_leases_done(&member->own);
}

/* Hears from the leader, and has all that it has. */
static void follow(struct hfs_etcd *etcd, struct hfs_member *member)
{
    member->term = etcd->term;
    member->leader = etcd->leader;
    member->doubts_at = HFS_NEVER;
    member->alone_since = HFS_NEVER;
    member->behind = 0;
}

/* Something changed: who follows, and is an election needed? */
static void settle(struct hfs_etcd *etcd)
{
    if (hfs_members_can_commit(etcd)) {
        etcd->election_at = HFS_NEVER;
        for (size_t i = 0; i < HFS_MEMBERS; i++) {
            if (etcd->members[i].state == HFS_MEMBER_UP && !etcd->members[i].is_stale)
                follow(etcd, &etcd->members[i]);
        }
    } else if (etcd->leader == HFS_NOBODY && count_up(etcd) < HFS_QUORUM) {
        etcd->election_at = HFS_NEVER;
    } else if (etcd->election_at == HFS_NEVER) {
        etcd->election_at = etcd->now + patience(etcd);
    }
}

/* Nobody leads any more, as far as those who are connected know. */
static void vacate(struct hfs_etcd *etcd)
{
    etcd->leader = HFS_NOBODY;
    etcd->election_at = HFS_NEVER;
    for (size_t i = 0; i < HFS_MEMBERS; i++) {
        struct hfs_member *member = &etcd->members[i];

        if (member->state == HFS_MEMBER_UP && member->leader != HFS_NOBODY)
            lose_leader(etcd, member);
    }
    settle(etcd);
}

/* Who has all that was committed may win; `except` only if nobody else can. */
static int pick_winner(struct hfs_etcd *etcd, int except)
{
    int able[HFS_MEMBERS];
    size_t count = 0;

    for (int i = 0; i < HFS_MEMBERS; i++) {
        if (etcd->members[i].state == HFS_MEMBER_UP && i != except &&
            hfs_member_revision(etcd, (unsigned)i) == etcd->store.revision)
            able[count++] = i;
    }
    return count > 0 ? able[hfs_random_below(&etcd->random, count)] : except;
}

static void seat(struct hfs_etcd *etcd, int winner)
{
    for (size_t i = 0; i < HFS_MEMBERS; i++) {
        if (etcd->members[i].state == HFS_MEMBER_UP && etcd->members[i].term > etcd->term)
            etcd->term = etcd->members[i].term;
    }
    etcd->term++;
    etcd->leader = winner;
    etcd->members[winner].is_stale = false;
    hfs_leases_done(&etcd->members[winner].own);
    etcd->expiry_phase =
        (hf_ms)hfs_random_below(&etcd->random, (uint64_t)etcd->cfg.expiry_tick);
    hfs_expiry_promote(etcd);
    settle(etcd);
}

static void elect(struct hfs_etcd *etcd)
{
    etcd->election_at = HFS_NEVER;
    if (count_up(etcd) < HFS_QUORUM)
        vacate(etcd);
    else
        seat(etcd, pick_winner(etcd, HFS_NOBODY));
}

void hfs_members_init(struct hfs_etcd *etcd)
{
    etcd->term = HFS_FIRST_TERM - 1;
    seat(etcd, pick_winner(etcd, HFS_NOBODY));
}

void hfs_members_restart(struct hfs_etcd *etcd, uint64_t term)
{
    for (unsigned i = 0; i < HFS_MEMBERS; i++) {
        struct hfs_member *member = &etcd->members[i];

        hfs_watches_end(etcd, i);
        lose_leader(etcd, member);
        member->state = HFS_MEMBER_UP;
        member->term = term;
        member->behind = 0;
    }
    etcd->term = term;
    vacate(etcd);
}

int hfs_etcd_change_leader(struct hfs_etcd *etcd)
{
    if (!hfs_members_can_commit(etcd))
        return HF_EAGAIN;
    seat(etcd, pick_winner(etcd, etcd->leader));
    return HF_OK;
}

/* A former leader knows at last. Before that it has sent revocations of what had expired in its
 * eyes, and the new leader takes them like anybody's. */
static int come_to_know(struct hfs_etcd *etcd, unsigned index)
{
    struct hfs_member *member = &etcd->members[index];
    hf_ms election_at = etcd->election_at;

    if (member->state == HFS_MEMBER_UP && etcd->faults.revoke_on_return &&
        hfs_members_can_commit(etcd)) {
        for (size_t i = 0; i < member->own.count; i++) {
            const struct hfs_lease *lease = &member->own.list[i];
            int err = HF_OK;

            if (lease->expires <= etcd->now &&
                hfs_leases_find(&etcd->leases, lease->id) != NULL)
                err = hfs_expiry_revoke(etcd, lease->id);
            if (err != HF_OK)
                return err;
        }
    }
    lose_leader(etcd, member);
    if (etcd->leader == (int)index) {
        vacate(etcd);
        /* The others have waited since they heard of it last. */
        if (etcd->election_at != HFS_NEVER)
            etcd->election_at = election_at;
    }
    settle(etcd);
    return HF_OK;
}

/* From UP to anything else. */
static int leave(struct hfs_etcd *etcd, unsigned index, enum hfs_member_state state)
{
    struct hfs_member *member = &etcd->members[index];

    if ((int)index == etcd->leader && state != HFS_MEMBER_DOWN) {
        if (hfs_leases_copy(&etcd->leases, &member->own) != HF_OK)
            return HF_ENOMEM;
        member->is_stale = true;
    }
    member->behind = hfs_member_revision(etcd, index);
    return HF_OK;
}

/* A member that knew of no leader stood for election again and again, and its term is news to
 * the others: the leader steps down. */
static void disturb(struct hfs_etcd *etcd, struct hfs_member *member)
{
    if (member->alone_since != HFS_NEVER && !etcd->cfg.pre_vote)
        member->term +=
            1 + (uint64_t)((etcd->now - member->alone_since) / (etcd->cfg.election * 3 / 2));
    if (member->term <= etcd->term)
        return;
    etcd->term = member->term;
    vacate(etcd);
}

/* To UP from anything else. A former leader needs a heartbeat to learn what happened. */
static void come_back(struct hfs_etcd *etcd, unsigned index, enum hfs_member_state was)
{
    struct hfs_member *member = &etcd->members[index];

    if (member->is_stale && etcd->leader == (int)index) {
        hfs_leases_done(&etcd->leases);
        etcd->leases = member->own;
        etcd->expiry_from = etcd->now;
        member->own = (struct hfs_leases){ 0 };
        member->is_stale = false;
    } else if (member->is_stale) {
        member->doubts_at = etcd->now + HFS_HEARTBEAT_MS;
    } else if (was == HFS_MEMBER_CUT) {
        disturb(etcd, member);
    }
}

int hfs_etcd_set_member(struct hfs_etcd *etcd, unsigned index, enum hfs_member_state state)
{
    struct hfs_member *member = &etcd->members[index];
    enum hfs_member_state was = member->state;

    if (state == was)
        return HF_OK;
    if (was == HFS_MEMBER_UP && leave(etcd, index, state) != HF_OK)
        return HF_ENOMEM;
    if (was == HFS_MEMBER_DOWN)
        lose_leader(etcd, member);
    member->state = state;
    member->doubts_at = HFS_NEVER;
    if (state == HFS_MEMBER_CUT && member->leader != HFS_NOBODY)
        member->doubts_at =
            etcd->now + (member->is_stale ? etcd->cfg.election : patience(etcd));
    if (state == HFS_MEMBER_DOWN) {
        hfs_watches_end(etcd, index);
        lose_leader(etcd, member);
    }
    if (state == HFS_MEMBER_UP)
        come_back(etcd, index, was);
    settle(etcd);
    return HF_OK;
}

enum hfs_member_state hfs_etcd_get_member(const struct hfs_etcd *etcd, unsigned index)
{
    return etcd->members[index].state;
}

int hfs_etcd_get_leader(const struct hfs_etcd *etcd)
{
    return hfs_members_can_commit(etcd) ? etcd->leader : HFS_NOBODY;
}

uint64_t hfs_etcd_get_term(const struct hfs_etcd *etcd)
{
    return etcd->term;
}

/* Streams that ask for a leader are ended after three election timeouts without one. */
static hf_ms streams_end_at(const struct hfs_etcd *etcd, const struct hfs_member *member)
{
    if (member->alone_since == HFS_NEVER || member->streams_ended ||
        (member->state != HFS_MEMBER_UP && member->state != HFS_MEMBER_CUT))
        return HFS_NEVER;
    return member->alone_since + 3 * etcd->cfg.election;
}

static hf_ms earlier(hf_ms a, hf_ms b)
{
    return a < b ? a : b;
}

hf_ms hfs_members_next(const struct hfs_etcd *etcd)
{
    hf_ms next = etcd->election_at;

    for (size_t i = 0; i < HFS_MEMBERS; i++) {
        next = earlier(next, etcd->members[i].doubts_at);
        next = earlier(next, streams_end_at(etcd, &etcd->members[i]));
    }
    return next;
}

int hfs_members_on_time(struct hfs_etcd *etcd)
{
    for (unsigned i = 0; i < HFS_MEMBERS; i++) {
        struct hfs_member *member = &etcd->members[i];
        int err = HF_OK;

        if (member->doubts_at <= etcd->now)
            err = come_to_know(etcd, i);
        if (err != HF_OK)
            return err;
        if (streams_end_at(etcd, member) <= etcd->now) {
            hfs_watches_end(etcd, i);
            member->streams_ended = true;
        }
    }
    if (etcd->election_at <= etcd->now)
        elect(etcd);
    return HF_OK;
}
