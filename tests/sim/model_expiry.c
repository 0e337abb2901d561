#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "sim/model_private.h"

void hfs_expiry_refresh(struct hfs_etcd *etcd, struct hfs_lease *lease, hf_ms extend)
{
    lease->expires = etcd->now + lease->ttl_s * 1000 + extend;
    lease->late =
        (hf_ms)hfs_random_below(&etcd->random, (uint64_t)etcd->faults.expiry_late + 1);
    if (lease->expires < etcd->expiry_from)
        etcd->expiry_from = lease->expires;
}

void hfs_expiry_promote(struct hfs_etcd *etcd)
{
    for (size_t i = 0; i < etcd->leases.count; i++)
        hfs_expiry_refresh(etcd, &etcd->leases.list[i], etcd->cfg.election);
}

static void remember_ghost(struct hfs_etcd *etcd, struct hfs_lease lease)
{
    lease.expires = etcd->now;
    etcd->ghosts[etcd->ghost_count++ % HFS_GHOSTS] = lease;
}

int hfs_expiry_revoke(struct hfs_etcd *etcd, int64_t id)
{
    int err = hfs_store_delete_leased(&etcd->store, id);

    if (err != HF_OK) {
        hfs_store_roll_back(&etcd->store);
        return err;
    }
    hfs_store_commit(&etcd->store);
    remember_ghost(etcd, *hfs_leases_find(&etcd->leases, id));
    hfs_leases_remove(&etcd->leases, id);
    return HF_OK;
}

/* The first time at or after `at` when the leader looks for expired leases. */
static hf_ms tick_at(const struct hfs_etcd *etcd, hf_ms at)
{
    hf_ms tick = etcd->cfg.expiry_tick;
    hf_ms over = (at - etcd->expiry_phase) % tick;

    if (over < 0)
        over += tick;
    return over == 0 ? at : at + tick - over;
}

hf_ms hfs_expiry_next(const struct hfs_etcd *etcd)
{
    hf_ms from = etcd->expiry_from;

    if (from == HFS_NEVER || etcd->faults.expiry_suspended || !hfs_members_can_commit(etcd))
        return HFS_NEVER;
    return tick_at(etcd, from > etcd->now ? from : etcd->now);
}

static int by_expiry(const void *left, const void *right)
{
    const struct hfs_lease *a = left, *b = right;

    if (a->expires != b->expires)
        return a->expires < b->expires ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Copies those that are due to `due`, which has room for all, and notes when to look again. */
static size_t collect_due(struct hfs_etcd *etcd, struct hfs_lease *due)
{
    size_t count = 0;

    etcd->expiry_from = HFS_NEVER;
    for (size_t i = 0; i < etcd->leases.count; i++) {
        const struct hfs_lease *lease = &etcd->leases.list[i];
        hf_ms at = lease->expires + lease->late;

        if (at <= etcd->now)
            due[count++] = *lease;
        else if (at < etcd->expiry_from)
            etcd->expiry_from = at;
    }
    qsort(due, count, sizeof *due, by_expiry);
    return count;
}

int hfs_expiry_on_time(struct hfs_etcd *etcd)
{
    HF_CLEANUP_FREE struct hfs_lease *due = NULL;
    size_t count, limit = etcd->cfg.expiry_limit;

    if (hfs_expiry_next(etcd) > etcd->now)
        return HF_OK;
    due = hf_calloc(etcd->leases.count, sizeof *due);
    if (due == NULL)
        return HF_ENOMEM;
    count = collect_due(etcd, due);
    if (count > limit) /* the rest has to wait for the next time */
        etcd->expiry_from = etcd->now + 1;
    for (size_t i = 0; i < count && i < limit; i++) {
        int err = hfs_expiry_revoke(etcd, due[i].id);

        if (err != HF_OK) {
            etcd->expiry_from = etcd->now;
            return err;
        }
    }
    return HF_OK;
}

int hfs_etcd_revoke_leases(struct hfs_etcd *etcd, unsigned percent)
{
    if (!hfs_members_can_commit(etcd))
        return HF_OK;
    /* From the last to the first: each revocation moves those behind it. */
    for (size_t i = etcd->leases.count; i-- > 0;) {
        int err = HF_OK;

        if (hfs_random_percent(&etcd->random, percent))
            err = hfs_expiry_revoke(etcd, etcd->leases.list[i].id);
        if (err != HF_OK)
            return err;
    }
    return HF_OK;
}
