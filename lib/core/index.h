/* index.h - finds objects by their names.
 *
 * A hash table with open addressing: one or two slots per object, no chains to follow, no
 * tombstones. It owns its slots, never the objects. Pure. An object is a struct that begins
 * with
 *
 *     const char *name;
 *
 * which must not change while the object is in an index. */
#ifndef HF_CORE_INDEX_H
#define HF_CORE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct hf_index_slot {
    void *object; /* NULL: free */
    uint32_t hash;
    uint32_t len; /* of its name */
};

/* Zero-initialise; `seed` should be random, because others choose the names. */
struct hf_index {
    struct hf_index_slot *slots;
    size_t mask; /* number of slots - 1; 0 with slots NULL */
    size_t count;
    uint64_t seed;
};

/* Leaves the index empty and usable. */
void hf_index_done(struct hf_index *index);

/* The object of that name, or NULL. */
void *hf_index_get(const struct hf_index *index, const char *name);

/* The name must not be in it yet. HF_ENOMEM, and nothing changed, when it cannot grow. */
int hf_index_add(struct hf_index *index, void *object) HF_MUST_CHECK;

/* Needs no memory; the object must be in it. */
void hf_index_remove(struct hf_index *index, const void *object);

/* The next object in no particular order, NULL at the end. Begin with *cursor = 0; the index
 * must not change meanwhile. */
void *hf_index_next(const struct hf_index *index, size_t *cursor);

#endif
