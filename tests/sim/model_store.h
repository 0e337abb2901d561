/* model_store.h - the keys of the model etcd with all their past, as etcd 3.4 keeps it.
 *
 * A plain data structure: no clock, no randomness, no leases (it only remembers their ids).
 * Writes are made one by one and become one revision with hfs_store_commit; until then they can
 * be taken back. Reads see writes that are not committed yet, as inside a txn of etcd. */
#ifndef HFS_MODEL_STORE_H
#define HFS_MODEL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

typedef int64_t hfs_rev; /* a revision of the store; 0 = none, or now */

/* Which keys: one, or all that begin with it. An empty prefix is every key. */
struct hfs_range {
    struct hf_bytes key;
    bool prefix;
};

struct hfs_key;

/* What one revision made of a key. Lives until it is compacted away. */
struct hfs_entry {
    struct hfs_key *key;
    struct hfs_entry *older; /* of the same key */
    hfs_rev create_rev;
    hfs_rev mod_rev;
    int64_t version; /* 0: the key was deleted */
    int64_t lease;
    size_t value_len;
    char value[];
};

struct hfs_key {
    struct hfs_entry *newest;
    size_t len;
    char bytes[];
};

/* Fields may be read; they change through the functions only. */
struct hfs_store {
    hfs_rev revision;  /* of the last commit */
    hfs_rev compacted; /* what is older cannot be read any more; -1: nothing */

    struct hfs_key **keys; /* in the order of their bytes, deleted ones too */
    size_t key_count, key_cap;

    /* Every entry since the compaction, in the order of the writes. */
    struct hfs_entry **log;
    size_t log_count, log_cap;
    size_t log_limit; /* entries; beyond: HF_ELIMIT */
};

/* An empty store at that revision (1 is what a new etcd has). */
void hfs_store_init(struct hfs_store *store, hfs_rev revision, size_t log_limit);
void hfs_store_done(struct hfs_store *store);

/* A copy that shares nothing with the original. */
int hfs_store_copy(const struct hfs_store *store, struct hfs_store *ret_copy) HF_MUST_CHECK;

static inline struct hf_bytes hfs_entry_key(const struct hfs_entry *entry)
{
    return (struct hf_bytes){ .data = entry->key->bytes, .len = entry->key->len };
}

bool hfs_range_contains(const struct hfs_range *range, struct hf_bytes key);

/* The key as it is now; NULL when it is not there. Borrowed until the next compaction. */
const struct hfs_entry *hfs_store_get(const struct hfs_store *store, struct hf_bytes key);

/* A list of entries that grows; zero-initialise, free `list`. */
struct hfs_found {
    const struct hfs_entry **list;
    size_t count, cap;
};

/* Whether that revision can be read: HF_ECOMPACT, HF_EHISTORY (not yet), or HF_OK. */
int hfs_store_check_readable(const struct hfs_store *store, hfs_rev revision) HF_MUST_CHECK;

/* Appends what was in the range at `revision` (0: now), in the order of keys, at most `limit`
 * entries (0: all). *ret_total is how many there were. */
int hfs_store_range(const struct hfs_store *store, const struct hfs_range *range,
                    hfs_rev revision, size_t limit, struct hfs_found *found,
                    size_t *ret_total) HF_MUST_CHECK;

/* On failure (HF_ENOMEM, HF_ELIMIT) some writes may have been made: roll back. */
int hfs_store_put(struct hfs_store *store, struct hf_bytes key, struct hf_bytes value,
                  int64_t lease) HF_MUST_CHECK;
int hfs_store_delete(struct hfs_store *store, const struct hfs_range *range,
                     size_t *ret_deleted) HF_MUST_CHECK;

/* Deletes all keys of a lease. */
int hfs_store_delete_leased(struct hfs_store *store, int64_t lease) HF_MUST_CHECK;

/* The writes since the last commit, if there are any, become one revision, which is current. */
void hfs_store_commit(struct hfs_store *store);
void hfs_store_roll_back(struct hfs_store *store);

/* Forgets what was overwritten or deleted at or before `revision`. HF_ECOMPACT when that was
 * done already, HF_EHISTORY when the revision is yet to come. */
int hfs_store_compact(struct hfs_store *store, hfs_rev revision) HF_MUST_CHECK;

/* Index in the log of the first entry at or after that revision. */
size_t hfs_store_find(const struct hfs_store *store, hfs_rev revision);

#endif
