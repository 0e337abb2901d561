#include "schema/json_arena.h"

#include <stdint.h>
#include <stdlib.h>

struct hf_json_block {
    struct hf_json_block *more;
    union hf_json_align data[];
};

/* Mostly the first block suffices, and else little is missing: a quarter of what there is
 * wastes little then, and grows fast enough where much is missing. */
static char *add_block(struct hf_json_arena *arena, size_t size)
{
    struct hf_json_block *block;

    if (size < arena->block_bytes)
        size = arena->block_bytes;
    if (size > SIZE_MAX - sizeof *block)
        return NULL;
    block = malloc(sizeof *block + size);
    if (block == NULL)
        return NULL;
    if (arena->first == NULL) {
        block->more = NULL;
        arena->first = block;
    } else {
        block->more = arena->first->more;
        arena->first->more = block;
    }
    arena->next = (char *)block->data;
    arena->end = arena->next + size;
    arena->total_bytes += size;
    arena->block_bytes = arena->total_bytes / 4;
    return arena->next;
}

void *hf_json_arena_alloc(struct hf_json_arena *arena, size_t size, size_t align)
{
    size_t pad = -(uintptr_t)arena->next & (align - 1);
    size_t room = (size_t)(arena->end - arena->next);
    char *p;

    if (room < pad || room - pad < size) {
        if (add_block(arena, size) == NULL)
            return NULL;
        pad = 0;
    }
    p = arena->next + pad;
    arena->next = p + size;
    return p;
}

void hf_json_arena_trim(struct hf_json_arena *arena, void *unused)
{
    arena->next = unused;
}

static void free_blocks(struct hf_json_block *block)
{
    while (block != NULL) {
        struct hf_json_block *more = block->more;

        free(block);
        block = more;
    }
}

void hf_json_arena_done(struct hf_json_arena *arena)
{
    free_blocks(arena->first);
    *arena = (struct hf_json_arena){ 0 };
}

void hf_json_arena_free(void *first_allocation)
{
    if (first_allocation != NULL)
        free_blocks((void *)((char *)first_allocation - offsetof(struct hf_json_block, data)));
}
