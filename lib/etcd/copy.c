#include "etcd/copy.h"

#include <assert.h>

/* Deletions that are remembered between lists. */
enum { MOST_DEAD = 4096 };

void hf_copy_init(struct hf_copy *copy, uint64_t seed, bool keep_values, hf_copy_fn fn,
                  void *arg)
{
    *copy = (struct hf_copy){
        .table.seed = seed, .fn = fn, .arg = arg, .keep_values = keep_values
    };
}

void hf_copy_done(struct hf_copy *copy)
{
    hf_table_done(&copy->table);
    copy->dead = 0;
}

void hf_copy_stop(struct hf_copy *copy)
{
    copy->fn = NULL;
}

void hf_copy_clear(struct hf_copy *copy)
{
    hf_copy_done(copy);
    copy->listing = false;
    copy->complete_rev = 0;
}

static void tell(struct hf_copy *copy, const struct hf_change *change)
{
    if (copy->fn != NULL)
        copy->fn(change, copy->arg);
}

static void tell_delete(struct hf_copy *copy, struct hf_bytes key, hf_rev rev, bool from_list)
{
    tell(copy, &(struct hf_change){ .deleted = true,
                                    .from_list = from_list,
                                    .kv = { .key = key, .mod_rev = rev } });
}

/* `entry` is what the table has of that key. */
static struct hf_entry *replace(struct hf_copy *copy, const struct hf_entry *entry,
                                const struct hf_kv *kv)
{
    bool was_dead = entry != NULL && entry->dead;
    struct hf_entry *fresh = hf_table_put(&copy->table, kv, copy->keep_values);

    if (fresh != NULL)
        copy->dead -= was_dead;
    return fresh;
}

/* What is newer than the key of the list must be newer than the list, and what was not known
 * newer than the list before. */
static bool contradicts(const struct hf_copy *copy, const struct hf_entry *entry,
                        const struct hf_kv *kv, hf_rev rev)
{
    if (entry != NULL && entry->mod_rev >= kv->mod_rev)
        return entry->mod_rev > kv->mod_rev && entry->mod_rev <= rev;
    return kv->mod_rev <= copy->complete_rev;
}

int hf_copy_list(struct hf_copy *copy, const struct hf_kv *kv, hf_rev rev)
{
    struct hf_entry *entry = hf_table_get(&copy->table, kv->key);

    assert(copy->listing);
    if (contradicts(copy, entry, kv, rev))
        return HF_EHISTORY;
    if (entry != NULL && entry->mod_rev >= kv->mod_rev) {
        entry->seen = copy->list_number;
        return HF_OK;
    }
    entry = replace(copy, entry, kv);
    if (entry == NULL)
        return HF_ENOMEM;
    entry->seen = copy->list_number;
    tell(copy, &(struct hf_change){ .from_list = true, .kv = *kv });
    return HF_OK;
}

/* Does not count as seen by the list: a key that was put and deleted before the list's revision
 * is not in it, and its deletion may be told too late to be listened to. */
bool hf_copy_put(struct hf_copy *copy, const struct hf_kv *kv)
{
    struct hf_entry *entry = hf_table_get(&copy->table, kv->key);

    if (entry != NULL && entry->mod_rev >= kv->mod_rev) {
        copy->stale++;
        return true;
    }
    if (replace(copy, entry, kv) == NULL)
        return false;
    tell(copy, &(struct hf_change){ .kv = *kv });
    return true;
}

static void bury(struct hf_copy *copy, struct hf_entry *entry, hf_rev rev)
{
    entry->dead = 1;
    entry->mod_rev = rev;
    copy->dead++;
}

static void remove_entry(struct hf_copy *copy, struct hf_entry *entry)
{
    copy->dead -= entry->dead;
    hf_table_remove(&copy->table, entry);
}

static void forget_dead(struct hf_copy *copy)
{
    struct hf_entry *entry;
    size_t cursor = 0;

    while (copy->dead > 0 && (entry = hf_table_next(&copy->table, &cursor)) != NULL) {
        if (entry->dead)
            remove_entry(copy, entry);
        else
            cursor++;
    }
}

/* Without its value; where there is no memory for that, not at all. */
static void replace_by_dead(struct hf_copy *copy, struct hf_entry *entry, struct hf_bytes key,
                            hf_rev rev)
{
    struct hf_entry *dead = NULL;

    if (copy->dead >= MOST_DEAD)
        forget_dead(copy);
    else
        dead = hf_table_put(&copy->table, &(struct hf_kv){ .key = key }, false);
    if (dead != NULL)
        bury(copy, dead, rev);
    else
        hf_table_remove(&copy->table, entry);
}

/* A deletion that the copy needs only for the list: of a key which it does not have, because
 * the event that put it was lost, but which a page still to come may have. */
static bool remember_deletion(struct hf_copy *copy, struct hf_entry *entry, struct hf_bytes key,
                              hf_rev rev)
{
    copy->stale++;
    if (!copy->listing)
        return true;
    if (entry != NULL) {
        entry->mod_rev = rev;
        return true;
    }
    entry = hf_table_put(&copy->table, &(struct hf_kv){ .key = key }, false);
    if (entry == NULL)
        return false;
    bury(copy, entry, rev);
    return true;
}

/* A deleted key stays as a dead entry: so that an older page of a list under way which still
 * has it cannot bring it back, and so that a later list that has an older version of it is
 * known to be of another history. A complete list takes the place of all that. */
bool hf_copy_delete(struct hf_copy *copy, struct hf_bytes key, hf_rev rev)
{
    struct hf_entry *entry = hf_table_get(&copy->table, key);

    if (entry != NULL && entry->mod_rev >= rev) {
        copy->stale++;
        return true;
    }
    if (entry == NULL || entry->dead)
        return remember_deletion(copy, entry, key, rev);
    if (copy->listing)
        bury(copy, entry, rev);
    else
        replace_by_dead(copy, entry, key, rev);
    tell_delete(copy, key, rev, false);
    return true;
}

void hf_copy_begin_list(struct hf_copy *copy)
{
    assert(!copy->listing);
    copy->listing = true;
    copy->list_number++;
}

void hf_copy_end_list(struct hf_copy *copy, hf_rev rev)
{
    struct hf_entry *entry;
    size_t cursor = 0;

    while (copy->fn != NULL && (entry = hf_table_next(&copy->table, &cursor)) != NULL) {
        if (!entry->dead && entry->seen != copy->list_number && entry->mod_rev <= rev) {
            struct hf_bytes key = { .data = entry->bytes, .len = entry->key_len };

            bury(copy, entry, rev); /* the key is needed until it has been told */
            tell_delete(copy, key, rev, true);
        }
        if (entry->dead && entry->mod_rev <= rev)
            remove_entry(copy, entry);
        else
            cursor++;
    }
    copy->listing = false;
    copy->complete_rev = rev;
}

/* What was deleted meanwhile stays deleted. */
void hf_copy_drop_list(struct hf_copy *copy)
{
    copy->listing = false;
    if (copy->dead > MOST_DEAD)
        forget_dead(copy);
}

bool hf_copy_get(const struct hf_copy *copy, struct hf_bytes key, struct hf_kv *ret_kv)
{
    const struct hf_entry *entry = hf_table_get(&copy->table, key);

    if (entry == NULL || entry->dead)
        return false;
    *ret_kv = hf_entry_kv(entry);
    return true;
}

void hf_copy_each(const struct hf_copy *copy, bool (*fn)(const struct hf_kv *kv, void *arg),
                  void *arg)
{
    const struct hf_entry *entry;

    for (size_t cursor = 0; (entry = hf_table_next(&copy->table, &cursor)) != NULL; cursor++) {
        struct hf_kv kv = hf_entry_kv(entry);

        if (!entry->dead && !fn(&kv, arg))
            return;
    }
}
