/* copy.h - the content of a mirror: puts lists and events together, in whatever order the two
 * come, and tells what changed.
 *
 * A list is of one revision but takes time, and the watch goes on meanwhile, ahead of it or
 * behind. Whatever comes, of each key only the newest is kept and told, and nothing older after
 * it. No clock, no I/O. Internal to lib/etcd. */
#ifndef HF_ETCD_COPY_H
#define HF_ETCD_COPY_H

#include "etcd/table.h"

struct hf_change {
    bool deleted;
    bool from_list;
    struct hf_kv kv; /* of a deletion: key and mod_rev. Valid during the call */
};

/* The copy is up to date with the change already. The callee may look into it and stop it, but
 * not change it. */
typedef void (*hf_copy_fn)(const struct hf_change *change, void *arg);

struct hf_copy {
    struct hf_table table;
    hf_copy_fn fn; /* NULL: stopped */
    void *arg;
    bool keep_values;
    bool listing;
    uint32_t list_number : 31;
    hf_rev complete_rev; /* of the last list that was completed: nothing older is news */
    size_t dead;         /* entries of the table that only remember a deletion */
    uint64_t stale;      /* events that were dropped because they were old or double */
};

void hf_copy_init(struct hf_copy *copy, uint64_t seed, bool keep_values, hf_copy_fn fn,
                  void *arg);
void hf_copy_done(struct hf_copy *copy);

/* Nothing more is told, and a list that is being ended stays as it is. */
void hf_copy_stop(struct hf_copy *copy);

/* Forgets every key, and a list under way. Nothing is told. */
void hf_copy_clear(struct hf_copy *copy);

/* A list begins; its keys come through hf_copy_list. */
void hf_copy_begin_list(struct hf_copy *copy);

/* Every key of the list has come, and `rev` is its revision: what it did not have is gone, save
 * what was put later. */
void hf_copy_end_list(struct hf_copy *copy, hf_rev rev);

/* The list will not be completed. What it brought stays; it is as true as any event. */
void hf_copy_drop_list(struct hf_copy *copy);

/* A key of the list, whose revision is `rev`. HF_EHISTORY, and nothing changed, when it
 * contradicts what was known: that was of another history. HF_ENOMEM: the copy lacks it, and
 * only another list can help. */
int hf_copy_list(struct hf_copy *copy, const struct hf_kv *kv, hf_rev rev) HF_MUST_CHECK;

/* An event of the watch. False when there is no memory, as above. */
bool hf_copy_put(struct hf_copy *copy, const struct hf_kv *kv) HF_MUST_CHECK;
bool hf_copy_delete(struct hf_copy *copy, struct hf_bytes key, hf_rev rev) HF_MUST_CHECK;

bool hf_copy_get(const struct hf_copy *copy, struct hf_bytes key, struct hf_kv *ret_kv);
void hf_copy_each(const struct hf_copy *copy, bool (*fn)(const struct hf_kv *kv, void *arg),
                  void *arg);

static inline size_t hf_copy_count(const struct hf_copy *copy)
{
    return copy->table.count - copy->dead;
}

#endif
