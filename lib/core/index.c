#include "core/index.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"

enum { FIRST_SLOTS = 16 };

static const char *name_of(const void *object)
{
    return *(const char *const *)object;
}

static struct hf_index_slot make_slot(const struct hf_index *index, const char *name)
{
    size_t len = strlen(name);

    return (struct hf_index_slot){ .hash = hf_hash(index->seed, name, len),
                                   .len = (uint32_t)len };
}

void hf_index_done(struct hf_index *index)
{
    free(index->slots);
    *index = (struct hf_index){ .seed = index->seed };
}

void *hf_index_get(const struct hf_index *index, const char *name)
{
    struct hf_index_slot want = make_slot(index, name);

    if (index->slots == NULL)
        return NULL;
    for (size_t i = want.hash & index->mask; index->slots[i].object != NULL;
         i = (i + 1) & index->mask) {
        const struct hf_index_slot *slot = &index->slots[i];

        if (slot->hash == want.hash && slot->len == want.len &&
            memcmp(name_of(slot->object), name, want.len) == 0)
            return slot->object;
    }
    return NULL;
}

/* There is a free slot. */
static void put(struct hf_index_slot *slots, size_t mask, const struct hf_index_slot *slot)
{
    size_t i = slot->hash & mask;

    while (slots[i].object != NULL)
        i = (i + 1) & mask;
    slots[i] = *slot;
}

static bool grow(struct hf_index *index)
{
    size_t size = index->slots != NULL ? (index->mask + 1) * 2 : FIRST_SLOTS;
    struct hf_index_slot *slots = hf_calloc(size, sizeof *slots);

    if (slots == NULL)
        return false;
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        if (index->slots[i].object != NULL)
            put(slots, size - 1, &index->slots[i]);
    }
    free(index->slots);
    index->slots = slots;
    index->mask = size - 1;
    return true;
}

int hf_index_add(struct hf_index *index, void *object)
{
    struct hf_index_slot slot = make_slot(index, name_of(object));

    /* An eighth stays free, so that a search ends, and soon: four slots share a cache line. */
    if ((index->slots == NULL || index->count >= (index->mask + 1) / 8 * 7) && !grow(index))
        return HF_ENOMEM;
    slot.object = object;
    put(index->slots, index->mask, &slot);
    index->count++;
    return HF_OK;
}

/* Slots behind the gap move up, so that no search stops short. */
static void close_gap(struct hf_index *index, size_t gap)
{
    size_t i = gap;

    for (;;) {
        size_t home;

        index->slots[gap].object = NULL;
        do {
            i = (i + 1) & index->mask;
            if (index->slots[i].object == NULL)
                return;
            home = index->slots[i].hash & index->mask;
        } while (((i - home) & index->mask) < ((i - gap) & index->mask));
        index->slots[gap] = index->slots[i];
        gap = i;
    }
}

void hf_index_remove(struct hf_index *index, const void *object)
{
    struct hf_index_slot want = make_slot(index, name_of(object));
    size_t i = want.hash & index->mask;

    assert(index->count > 0);
    while (index->slots[i].object != object) {
        assert(index->slots[i].object != NULL);
        i = (i + 1) & index->mask;
    }
    close_gap(index, i);
    index->count--;
}

void *hf_index_next(const struct hf_index *index, size_t *cursor)
{
    while (index->slots != NULL && *cursor <= index->mask) {
        void *object = index->slots[(*cursor)++].object;

        if (object != NULL)
            return object;
    }
    return NULL;
}
