#include "sim/model_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void hfs_store_init(struct hfs_store *store, hfs_rev revision, size_t log_limit)
{
    *store = (struct hfs_store){
        .revision = revision,
        .compacted = -1, /* etcd's own beginning: 0 can be compacted, once */
        .log_limit = log_limit,
    };
}

static void free_entries(struct hfs_entry *entry)
{
    while (entry != NULL) {
        struct hfs_entry *older = entry->older;

        free(entry);
        entry = older;
    }
}

void hfs_store_done(struct hfs_store *store)
{
    for (size_t i = 0; i < store->key_count; i++) {
        free_entries(store->keys[i]->newest);
        free(store->keys[i]);
    }
    free(store->keys);
    free(store->log);
    *store = (struct hfs_store){ 0 };
}

static int compare_bytes(struct hf_bytes a, struct hf_bytes b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len > 0 ? memcmp(a.data, b.data, len) : 0;

    if (order != 0)
        return order;
    return (a.len > b.len) - (a.len < b.len);
}

static struct hf_bytes key_bytes(const struct hfs_key *key)
{
    return (struct hf_bytes){ .data = key->bytes, .len = key->len };
}

bool hfs_range_contains(const struct hfs_range *range, struct hf_bytes key)
{
    if (range->prefix ? key.len < range->key.len : key.len != range->key.len)
        return false;
    return range->key.len == 0 || memcmp(key.data, range->key.data, range->key.len) == 0;
}

/* Where the key is, or would be. */
static size_t place_of(const struct hfs_store *store, struct hf_bytes key)
{
    size_t from = 0, to = store->key_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (compare_bytes(key_bytes(store->keys[middle]), key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool is_at(const struct hfs_store *store, size_t place, struct hf_bytes key)
{
    return place < store->key_count && compare_bytes(key_bytes(store->keys[place]), key) == 0;
}

const struct hfs_entry *hfs_store_get(const struct hfs_store *store, struct hf_bytes key)
{
    size_t place = place_of(store, key);

    if (!is_at(store, place, key) || store->keys[place]->newest->version == 0)
        return NULL;
    return store->keys[place]->newest;
}

int hfs_store_check_readable(const struct hfs_store *store, hfs_rev revision)
{
    if (revision > store->revision)
        return HF_EHISTORY;
    return revision > 0 && revision < store->compacted ? HF_ECOMPACT : HF_OK;
}

/* The key as it was at that revision; NULL when it was not there. */
static const struct hfs_entry *entry_at(const struct hfs_key *key, hfs_rev revision)
{
    const struct hfs_entry *entry = key->newest;

    while (entry != NULL && entry->mod_rev > revision)
        entry = entry->older;
    return entry != NULL && entry->version > 0 ? entry : NULL;
}

int hfs_store_range(const struct hfs_store *store, const struct hfs_range *range,
                    hfs_rev revision, size_t limit, struct hfs_found *found, size_t *ret_total)
{
    size_t total = 0;

    for (size_t i = place_of(store, range->key);
         i < store->key_count && hfs_range_contains(range, key_bytes(store->keys[i])); i++) {
        const struct hfs_entry *entry =
            entry_at(store->keys[i], revision > 0 ? revision : INT64_MAX);

        if (entry == NULL || (total++ >= limit && limit > 0))
            continue;
        if (!hf_grow(&found->list, &found->cap, found->count + 1, sizeof(void *)))
            return HF_ENOMEM;
        found->list[found->count++] = entry;
    }
    *ret_total = total;
    return HF_OK;
}

/* The place of the key, which is made when it is not there. */
static int make_key(struct hfs_store *store, struct hf_bytes bytes, size_t *ret_place)
{
    size_t place = place_of(store, bytes);
    struct hfs_key *key;

    *ret_place = place;
    if (is_at(store, place, bytes))
        return HF_OK;
    if (!hf_grow(&store->keys, &store->key_cap, store->key_count + 1, sizeof(void *)))
        return HF_ENOMEM;
    key = malloc(sizeof *key + bytes.len);
    if (key == NULL)
        return HF_ENOMEM;
    key->newest = NULL;
    key->len = bytes.len;
    memcpy(key->bytes, bytes.data, bytes.len);
    memmove(&store->keys[place + 1], &store->keys[place],
            (store->key_count - place) * sizeof(void *));
    store->keys[place] = key;
    store->key_count++;
    return HF_OK;
}

static void drop_key(struct hfs_store *store, size_t place)
{
    free(store->keys[place]);
    store->key_count--;
    memmove(&store->keys[place], &store->keys[place + 1],
            (store->key_count - place) * sizeof(void *));
}

/* Makes `entry` the newest of its key. It is freed when that is not possible. */
static int push(struct hfs_store *store, struct hfs_key *key, struct hfs_entry *entry)
{
    int err = HF_OK;

    if (store->log_count >= store->log_limit)
        err = HF_ELIMIT;
    else if (!hf_grow(&store->log, &store->log_cap, store->log_count + 1, sizeof(void *)))
        err = HF_ENOMEM;
    if (err != HF_OK) {
        free(entry);
        return err;
    }
    entry->key = key;
    entry->older = key->newest;
    entry->mod_rev = store->revision + 1;
    key->newest = entry;
    store->log[store->log_count++] = entry;
    return HF_OK;
}

static struct hfs_entry *entry_new(struct hf_bytes value)
{
    struct hfs_entry *entry = malloc(sizeof *entry + value.len);

    if (entry == NULL)
        return NULL;
    *entry = (struct hfs_entry){ .value_len = value.len };
    if (value.len > 0)
        memcpy(entry->value, value.data, value.len);
    return entry;
}

static int put_at(struct hfs_store *store, size_t place, struct hf_bytes value, int64_t lease)
{
    struct hfs_key *key = store->keys[place];
    const struct hfs_entry *old = key->newest;
    struct hfs_entry *entry = entry_new(value);
    bool is_new = old == NULL || old->version == 0;

    if (entry == NULL)
        return HF_ENOMEM;
    entry->create_rev = is_new ? store->revision + 1 : old->create_rev;
    entry->version = is_new ? 1 : old->version + 1;
    entry->lease = lease;
    return push(store, key, entry);
}

int hfs_store_put(struct hfs_store *store, struct hf_bytes key, struct hf_bytes value,
                  int64_t lease)
{
    size_t place;
    int err = make_key(store, key, &place);

    if (err != HF_OK)
        return err;
    err = put_at(store, place, value, lease);
    /* A key has an entry, always. */
    if (err != HF_OK && store->keys[place]->newest == NULL)
        drop_key(store, place);
    return err;
}

static int delete_at(struct hfs_store *store, size_t place)
{
    struct hfs_entry *tombstone = entry_new((struct hf_bytes){ 0 });

    return tombstone != NULL ? push(store, store->keys[place], tombstone) : HF_ENOMEM;
}

int hfs_store_delete(struct hfs_store *store, const struct hfs_range *range,
                     size_t *ret_deleted)
{
    size_t deleted = 0;

    for (size_t i = place_of(store, range->key);
         i < store->key_count && hfs_range_contains(range, key_bytes(store->keys[i])); i++) {
        if (store->keys[i]->newest->version == 0)
            continue;
        int err = delete_at(store, i);

        if (err != HF_OK)
            return err;
        deleted++;
    }
    *ret_deleted = deleted;
    return HF_OK;
}

int hfs_store_delete_leased(struct hfs_store *store, int64_t lease)
{
    for (size_t i = 0; i < store->key_count; i++) {
        const struct hfs_entry *newest = store->keys[i]->newest;
        int err = HF_OK;

        if (newest->version > 0 && newest->lease == lease)
            err = delete_at(store, i);
        if (err != HF_OK)
            return err;
    }
    return HF_OK;
}

void hfs_store_commit(struct hfs_store *store)
{
    if (store->log_count > 0 && store->log[store->log_count - 1]->mod_rev > store->revision)
        store->revision++;
}

void hfs_store_roll_back(struct hfs_store *store)
{
    while (store->log_count > 0 &&
           store->log[store->log_count - 1]->mod_rev > store->revision) {
        struct hfs_entry *entry = store->log[--store->log_count];
        struct hfs_key *key = entry->key;

        key->newest = entry->older;
        if (key->newest == NULL)
            drop_key(store, place_of(store, key_bytes(key)));
        free(entry);
    }
}

/* Cuts off what of the key's past is not needed to read `revision` and what came after it. A
 * deletion is not needed: the key is absent without it. */
static void compact_key(struct hfs_key *key, hfs_rev revision)
{
    struct hfs_entry **link = &key->newest;

    while (*link != NULL && (*link)->mod_rev > revision)
        link = &(*link)->older;
    if (*link != NULL && (*link)->version > 0)
        link = &(*link)->older;
    free_entries(*link);
    *link = NULL;
}

/* Of the compacted revision itself only what is still there stays. So it is in etcd 3.4, where
 * a watch from that revision on does not see its deletions. */
static void compact_log(struct hfs_store *store, hfs_rev revision)
{
    size_t kept = 0;

    for (size_t i = hfs_store_find(store, revision); i < store->log_count; i++) {
        struct hfs_entry *entry = store->log[i];

        if (entry->mod_rev > revision || entry == entry_at(entry->key, revision))
            store->log[kept++] = entry;
    }
    store->log_count = kept;
}

int hfs_store_compact(struct hfs_store *store, hfs_rev revision)
{
    size_t kept = 0;

    if (revision <= store->compacted)
        return HF_ECOMPACT;
    if (revision > store->revision)
        return HF_EHISTORY;
    store->compacted = revision;
    compact_log(store, revision);
    for (size_t i = 0; i < store->key_count; i++) {
        struct hfs_key *key = store->keys[i];

        compact_key(key, revision);
        if (key->newest == NULL)
            free(key);
        else
            store->keys[kept++] = key;
    }
    store->key_count = kept;
    return HF_OK;
}

size_t hfs_store_find(const struct hfs_store *store, hfs_rev revision)
{
    size_t from = 0, to = store->log_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (store->log[middle]->mod_rev < revision)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct hfs_entry *entry_clone(const struct hfs_entry *entry)
{
    return hf_memdup(entry, sizeof *entry + entry->value_len);
}

/* Makes a copy of `entry` the newest of its key's copy. */
static int copy_entry(struct hfs_store *copy, const struct hfs_entry *entry,
                      struct hfs_entry **ret_entry)
{
    struct hfs_entry *clone = entry_clone(entry);
    size_t place;
    int err;

    if (clone == NULL)
        return HF_ENOMEM;
    err = make_key(copy, hfs_entry_key(entry), &place);
    if (err != HF_OK) {
        free(clone);
        return err;
    }
    clone->key = copy->keys[place];
    clone->older = clone->key->newest;
    clone->key->newest = clone;
    *ret_entry = clone;
    return HF_OK;
}

/* What is older than the log: at most one entry of a key, its state at the compaction. */
static int copy_bases(const struct hfs_store *store, struct hfs_store *copy)
{
    for (size_t i = 0; i < store->key_count; i++) {
        const struct hfs_entry *oldest = store->keys[i]->newest;
        struct hfs_entry *ignored;

        while (oldest->older != NULL)
            oldest = oldest->older;
        if (oldest->mod_rev >= store->compacted)
            continue;
        if (copy_entry(copy, oldest, &ignored) != HF_OK)
            return HF_ENOMEM;
    }
    return HF_OK;
}

static int copy_log(const struct hfs_store *store, struct hfs_store *copy)
{
    if (!hf_grow(&copy->log, &copy->log_cap, store->log_count, sizeof(void *)))
        return HF_ENOMEM;
    for (size_t i = 0; i < store->log_count; i++) {
        if (copy_entry(copy, store->log[i], &copy->log[i]) != HF_OK)
            return HF_ENOMEM;
        copy->log_count++;
    }
    return HF_OK;
}

int hfs_store_copy(const struct hfs_store *store, struct hfs_store *ret_copy)
{
    struct hfs_store copy = { .revision = store->revision,
                              .compacted = store->compacted,
                              .log_limit = store->log_limit };
    int err = copy_bases(store, &copy);

    if (err == HF_OK)
        err = copy_log(store, &copy);
    if (err != HF_OK) {
        hfs_store_done(&copy);
        return err;
    }
    *ret_copy = copy;
    return HF_OK;
}
