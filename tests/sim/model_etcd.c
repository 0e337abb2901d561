#include "sim/model_etcd.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/model_private.h"

struct hfs_snapshot {
    struct hfs_store store;
    struct hfs_leases leases;
};

static struct hfs_etcd_config with_defaults(const struct hfs_etcd_config *cfg)
{
    struct hfs_etcd_config full = *cfg;

    if (full.revision == 0)
        full.revision = 1;
    if (full.election == 0)
        full.election = 1000;
    if (full.expiry_tick == 0)
        full.expiry_tick = 500;
    if (full.expiry_limit == 0)
        full.expiry_limit = 500;
    if (full.max_entries == 0)
        full.max_entries = 1 << 20;
    if (full.max_leases == 0)
        full.max_leases = 1 << 16;
    if (full.max_watches == 0)
        full.max_watches = 1 << 12;
    return full;
}

int hfs_etcd_new(const struct hfs_etcd_config *cfg, struct hfs_etcd **ret_etcd)
{
    struct hfs_etcd *etcd = hf_calloc(1, sizeof *etcd);

    if (etcd == NULL)
        return HF_ENOMEM;
    etcd->cfg = with_defaults(cfg);
    etcd->random.state = cfg->seed;
    etcd->now = cfg->now;
    etcd->expiry_from = HFS_NEVER;
    hfs_store_init(&etcd->store, etcd->cfg.revision, etcd->cfg.max_entries);
    hfs_members_init(etcd);
    *ret_etcd = etcd;
    return HF_OK;
}

void hfs_etcd_free(struct hfs_etcd *etcd)
{
    if (etcd == NULL)
        return;
    for (size_t i = 0; i < HFS_MEMBERS; i++)
        hfs_leases_done(&etcd->members[i].own);
    hfs_watches_done(etcd);
    hfs_leases_done(&etcd->leases);
    hfs_store_done(&etcd->store);
    free(etcd->found.list);
    free(etcd);
}

struct hfs_faults *hfs_etcd_get_faults(struct hfs_etcd *etcd)
{
    return &etcd->faults;
}

const struct hfs_store *hfs_etcd_get_store(const struct hfs_etcd *etcd)
{
    return &etcd->store;
}

bool hfs_etcd_has_lease(const struct hfs_etcd *etcd, int64_t lease)
{
    return hfs_leases_find(&etcd->leases, lease) != NULL;
}

hf_ms hfs_etcd_next(const struct hfs_etcd *etcd)
{
    hf_ms members = hfs_members_next(etcd), expiry = hfs_expiry_next(etcd);

    return members < expiry ? members : expiry;
}

int hfs_etcd_advance(struct hfs_etcd *etcd, hf_ms now)
{
    hf_ms next;

    while ((next = hfs_etcd_next(etcd)) <= now) {
        int err;

        if (next > etcd->now)
            etcd->now = next;
        err = hfs_members_on_time(etcd);
        if (err == HF_OK)
            err = hfs_expiry_on_time(etcd);
        if (err != HF_OK)
            return err;
    }
    if (now > etcd->now)
        etcd->now = now;
    return HF_OK;
}

int hfs_etcd_snapshot(const struct hfs_etcd *etcd, struct hfs_snapshot **ret_snapshot)
{
    struct hfs_snapshot *snapshot = hf_calloc(1, sizeof *snapshot);
    int err = HF_ENOMEM;

    if (snapshot != NULL)
        err = hfs_leases_copy(&etcd->leases, &snapshot->leases);
    if (err == HF_OK)
        err = hfs_store_copy(&etcd->store, &snapshot->store);
    if (err != HF_OK) {
        hfs_snapshot_free(snapshot);
        return err;
    }
    *ret_snapshot = snapshot;
    return HF_OK;
}

void hfs_snapshot_free(struct hfs_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    hfs_store_done(&snapshot->store);
    hfs_leases_done(&snapshot->leases);
    free(snapshot);
}

int hfs_etcd_restore(struct hfs_etcd *etcd, const struct hfs_snapshot *snapshot)
{
    struct hfs_store store;
    int err = hfs_store_copy(&snapshot->store, &store);

    if (err != HF_OK)
        return err;
    err = hfs_leases_copy(&snapshot->leases, &etcd->leases);
    if (err != HF_OK) {
        hfs_store_done(&store);
        return err;
    }
    hfs_store_done(&etcd->store);
    etcd->store = store;
    etcd->ghost_count = 0;
    memset(etcd->ghosts, 0, sizeof etcd->ghosts);
    hfs_members_restart(etcd, HFS_FIRST_TERM - 1);
    return HF_OK;
}

size_t hfs_kv_size(const struct hfs_entry *entry, bool keys_only)
{
    return entry->key->len + (keys_only ? 0 : entry->value_len);
}

static struct hf_bytes place_bytes(const void *data, size_t len, char **place)
{
    struct hf_bytes bytes = { .data = *place, .len = len };

    if (len > 0)
        memcpy(*place, data, len);
    *place += len;
    return bytes;
}

struct hfs_kv hfs_kv_place(const struct hfs_entry *entry, bool keys_only, char **place)
{
    return (struct hfs_kv){
        .key = place_bytes(entry->key->bytes, entry->key->len, place),
        .value = place_bytes(entry->value, keys_only ? 0 : entry->value_len, place),
        .create_rev = entry->create_rev,
        .mod_rev = entry->mod_rev,
        .version = entry->version,
        .lease = entry->lease,
    };
}
