/* table.h - the keys of a mirror: a hash table with one allocation per key.
 *
 * Internal to lib/etcd. */
#ifndef HF_ETCD_TABLE_H
#define HF_ETCD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etcd/kv.h"

/* Revisions, version and lease are small numbers most of the time; all but the one that every
 * event is compared with stand packed behind the value. */
struct hf_entry {
    hf_rev mod_rev;
    uint32_t key_len;
    uint32_t value_len;
    uint32_t seen : 31; /* the list that last contained it */
    uint32_t dead : 1;  /* deleted since the last list: remembered for the next one */
    uint8_t bytes[];    /* key, value, mod_rev - create_rev, version, lease */
};

/* The hash stands beside the entry, which is somewhere else in memory and is looked at only
 * when it is probably the one. */
struct hf_slot {
    struct hf_entry *entry; /* NULL: free */
    uint32_t hash;
};

/* Zero-initialise; `seed` should be random, because others choose the keys. */
struct hf_table {
    struct hf_slot *slots;
    size_t mask; /* number of slots - 1; 0 with slots NULL */
    size_t count;
    uint64_t seed;
};

void hf_table_done(struct hf_table *table);

/* The entry of that key, or NULL. Borrowed until it is put again or removed. */
struct hf_entry *hf_table_get(const struct hf_table *table, struct hf_bytes key);

/* Inserts or replaces; the value is kept only when asked. NULL when there is no memory, and the
 * table is unchanged. */
struct hf_entry *hf_table_put(struct hf_table *table, const struct hf_kv *kv, bool keep_value);

void hf_table_remove(struct hf_table *table, struct hf_entry *entry);

/* The entry in slot *cursor or the first after it, with *cursor set to it; NULL at the end.
 * Begin with 0, go on with *cursor + 1; after a removal look at the same slot again, because
 * another entry may have moved into it. A walk that removes may come to an entry twice. */
struct hf_entry *hf_table_next(const struct hf_table *table, size_t *cursor);

/* Borrowed. */
struct hf_kv hf_entry_kv(const struct hf_entry *entry);

#endif
