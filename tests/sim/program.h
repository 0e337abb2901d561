/* program.h - random programs for an etcd: requests and watches that are worth comparing.
 *
 * Few keys, few leases and revisions close to the store's own make most requests meet what an
 * earlier one left behind; some are wrong on purpose. The same seed and the same stores give
 * the same program. */
#ifndef HFS_PROGRAM_H
#define HFS_PROGRAM_H

#include "sim/model_request.h"
#include "sim/random.h"

enum {
    HFS_PROGRAM_LEASES = 4,
    HFS_PROGRAM_COMPARES = 3,
    HFS_PROGRAM_OPS = 4,
    HFS_PROGRAM_VALUE = 8, /* bytes at most */
};

struct hfs_program {
    struct hfs_random random;
    int64_t first_lease; /* ids are this and those behind it */

    /* What the step points to. */
    struct hfs_compare compares[HFS_PROGRAM_COMPARES];
    struct hfs_op then[HFS_PROGRAM_OPS], otherwise[HFS_PROGRAM_OPS];
    char values[HFS_PROGRAM_COMPARES + 2 * HFS_PROGRAM_OPS + 1][HFS_PROGRAM_VALUE];
    size_t value_count;
};

struct hfs_step {
    bool is_watch;
    struct hfs_request request;
    struct hfs_range range; /* of a watch */
    hfs_rev start_rev;
};

void hfs_program_init(struct hfs_program *program, uint64_t seed, int64_t first_lease);

/* The next step for a store in that state. What it points to is valid until the next call. */
struct hfs_step hfs_program_next(struct hfs_program *program, const struct hfs_store *store);

#endif
