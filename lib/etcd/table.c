#include "etcd/table.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "etcd/wire.h"

enum { FIRST_SLOTS = 64 };

static bool is_key(const struct hf_slot *slot, uint32_t hash, struct hf_bytes key)
{
    return slot->hash == hash && slot->entry->key_len == key.len &&
           (key.len == 0 || memcmp(slot->entry->bytes, key.data, key.len) == 0);
}

/* The slot of the key, or the free one where it belongs. */
static size_t slot_of(const struct hf_table *table, uint32_t hash, struct hf_bytes key)
{
    size_t slot = hash & table->mask;

    while (table->slots[slot].entry != NULL && !is_key(&table->slots[slot], hash, key))
        slot = (slot + 1) & table->mask;
    return slot;
}

static bool grow(struct hf_table *table)
{
    size_t size = table->slots != NULL ? (table->mask + 1) * 2 : FIRST_SLOTS;
    struct hf_slot *slots = hf_calloc(size, sizeof *slots);

    if (slots == NULL)
        return false;
    for (size_t i = 0; table->slots != NULL && i <= table->mask; i++) {
        size_t slot = table->slots[i].hash & (size - 1);

        if (table->slots[i].entry == NULL)
            continue;
        while (slots[slot].entry != NULL)
            slot = (slot + 1) & (size - 1);
        slots[slot] = table->slots[i];
    }
    free(table->slots);
    table->slots = slots;
    table->mask = size - 1;
    return true;
}

void hf_table_done(struct hf_table *table)
{
    for (size_t i = 0; table->slots != NULL && i <= table->mask; i++)
        free(table->slots[i].entry);
    free(table->slots);
    *table = (struct hf_table){ .seed = table->seed };
}

struct hf_entry *hf_table_get(const struct hf_table *table, struct hf_bytes key)
{
    if (table->slots == NULL)
        return NULL;
    return table->slots[slot_of(table, hf_hash(table->seed, key.data, key.len), key)].entry;
}

/* The numbers of an entry, packed; returns their length. */
static size_t pack_numbers(const struct hf_kv *kv, uint8_t out[3 * HF_VARINT_MAX])
{
    size_t len = hf_varint_put(out, (uint64_t)kv->mod_rev - (uint64_t)kv->create_rev);

    len += hf_varint_put(out + len, (uint64_t)kv->version);
    return len + hf_varint_put(out + len, (uint64_t)kv->lease);
}

static uint8_t *append(uint8_t *at, const void *data, size_t len)
{
    if (len > 0) /* memcpy may not be given NULL, not even for nothing */
        memcpy(at, data, len);
    return at + len;
}

struct hf_entry *hf_table_put(struct hf_table *table, const struct hf_kv *kv, bool keep_value)
{
    size_t value_len = keep_value ? kv->value.len : 0;
    uint8_t numbers[3 * HF_VARINT_MAX];
    size_t numbers_len = pack_numbers(kv, numbers);
    struct hf_entry *entry;
    uint8_t *end;
    uint32_t hash;
    size_t slot;

    if (kv->key.len > UINT32_MAX || value_len > UINT32_MAX)
        return NULL;
    if ((table->slots == NULL || table->count >= table->mask / 8 * 7) && !grow(table))
        return NULL;
    entry = malloc(offsetof(struct hf_entry, bytes) + kv->key.len + value_len + numbers_len);
    if (entry == NULL)
        return NULL;
    hash = hf_hash(table->seed, kv->key.data, kv->key.len);
    slot = slot_of(table, hash, kv->key);
    table->count += table->slots[slot].entry == NULL;
    free(table->slots[slot].entry);
    table->slots[slot] = (struct hf_slot){ .entry = entry, .hash = hash };
    entry->mod_rev = kv->mod_rev;
    entry->key_len = (uint32_t)kv->key.len;
    entry->value_len = (uint32_t)value_len;
    entry->seen = 0;
    entry->dead = 0;
    end = append(entry->bytes, kv->key.data, kv->key.len);
    end = append(end, kv->value.data, value_len);
    memcpy(end, numbers, numbers_len);
    return entry;
}

/* Entries behind the gap move up, so that no search stops short and no tombstone is needed. */
void hf_table_remove(struct hf_table *table, struct hf_entry *entry)
{
    struct hf_bytes key = { .data = entry->bytes, .len = entry->key_len };
    size_t gap = slot_of(table, hf_hash(table->seed, key.data, key.len), key);
    size_t slot = gap;

    free(entry);
    table->count--;
    for (;;) {
        size_t home;

        table->slots[gap].entry = NULL;
        do {
            slot = (slot + 1) & table->mask;
            if (table->slots[slot].entry == NULL)
                return;
            home = table->slots[slot].hash & table->mask;
        } while (((slot - home) & table->mask) < ((slot - gap) & table->mask));
        table->slots[gap] = table->slots[slot];
        gap = slot;
    }
}

struct hf_entry *hf_table_next(const struct hf_table *table, size_t *cursor)
{
    for (; table->slots != NULL && *cursor <= table->mask; (*cursor)++) {
        if (table->slots[*cursor].entry != NULL)
            return table->slots[*cursor].entry;
    }
    return NULL;
}

struct hf_kv hf_entry_kv(const struct hf_entry *entry)
{
    const uint8_t *value = entry->bytes + entry->key_len;
    const uint8_t *numbers = value + entry->value_len;
    uint64_t age, version, lease;

    numbers += hf_varint_get(numbers, HF_VARINT_MAX, &age);
    numbers += hf_varint_get(numbers, HF_VARINT_MAX, &version);
    (void)hf_varint_get(numbers, HF_VARINT_MAX, &lease);
    return (struct hf_kv){
        .key = { .data = entry->bytes, .len = entry->key_len },
        .value = { .data = value, .len = entry->value_len },
        .create_rev = (hf_rev)((uint64_t)entry->mod_rev - age),
        .mod_rev = entry->mod_rev,
        .version = (int64_t)version,
        .lease = (int64_t)lease,
    };
}
