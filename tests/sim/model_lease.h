/* model_lease.h - a table of leases, as one member of the model etcd has it.
 *
 * Only the table: when leases are refreshed and ended is decided by whoever leads. */
#ifndef HFS_MODEL_LEASE_H
#define HFS_MODEL_LEASE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct hfs_lease {
    int64_t id;
    int64_t ttl_s;
    hf_ms expires;
    hf_ms late; /* it is revoked this much after that, at the earliest */
};

/* Zero-initialise. */
struct hfs_leases {
    struct hfs_lease *list; /* in the order of ids */
    size_t count, cap;
};

void hfs_leases_done(struct hfs_leases *leases);

/* The lease, or NULL. Borrowed until one is added or removed. */
struct hfs_lease *hfs_leases_find(const struct hfs_leases *leases, int64_t id);

/* Adds one whose id is not there yet. */
int hfs_leases_add(struct hfs_leases *leases, const struct hfs_lease *lease) HF_MUST_CHECK;
void hfs_leases_remove(struct hfs_leases *leases, int64_t id);

/* Replaces what is in `to`. On failure `to` is unchanged. */
int hfs_leases_copy(const struct hfs_leases *from, struct hfs_leases *to) HF_MUST_CHECK;

#endif
