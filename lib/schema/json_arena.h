/* json_arena.h - the memory of one decoded message: bump allocation, released at once.
 *
 * Internal to json. The blocks hang on the first one, and the first allocation lies at its
 * start: whoever holds that pointer can release everything. */
#ifndef HF_SCHEMA_JSON_ARENA_H
#define HF_SCHEMA_JSON_ARENA_H

#include <stddef.h>

struct hf_json_block;

/* Zero-initialise, but for block_bytes: how large the first block is to be. */
struct hf_json_arena {
    struct hf_json_block *first;
    char *next;
    char *end;
    size_t block_bytes; /* of the next block, unless one allocation needs more */
    size_t total_bytes;
};

/* NULL when there is no memory. `align` is 1 or HF_JSON_ALIGN. */
void *hf_json_arena_alloc(struct hf_json_arena *arena, size_t size, size_t align);

/* Gives back what the last allocation has from `unused` on. */
void hf_json_arena_trim(struct hf_json_arena *arena, void *unused);

void hf_json_arena_done(struct hf_json_arena *arena);

/* Releases the arena whose first allocation, aligned, this was. */
void hf_json_arena_free(void *first_allocation);

/* Enough for everything that a message of protobuf-c holds. */
union hf_json_align {
    void *pointer;
    size_t size;
    long long integer;
    double number;
};

#define HF_JSON_ALIGN _Alignof(union hf_json_align)

#endif
