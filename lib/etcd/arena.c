#include "etcd/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CHUNK = 16 * 1024, LARGEST_CHUNK = 1024 * 1024 };

struct hf_arena_chunk {
    struct hf_arena_chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static struct hf_arena_chunk *add_chunk(struct hf_arena *arena, size_t need)
{
    size_t size = arena->chunks != NULL ? arena->chunks->size * 2 : FIRST_CHUNK;
    struct hf_arena_chunk *chunk;

    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    if (size < need)
        size = need;
    chunk = malloc(sizeof *chunk + size);
    if (chunk == NULL)
        return NULL;
    chunk->used = 0;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *hf_arena_alloc(struct hf_arena *arena, size_t size)
{
    struct hf_arena_chunk *chunk = arena->chunks;
    void *memory;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (chunk == NULL || chunk->size - chunk->used < size)
        chunk = add_chunk(arena, size);
    if (chunk == NULL)
        return NULL;
    memory = chunk->bytes + chunk->used;
    chunk->used += size;
    return memory;
}

void hf_arena_clear(struct hf_arena *arena, size_t keep)
{
    struct hf_arena_chunk *kept = NULL;

    while (arena->chunks != NULL) {
        struct hf_arena_chunk *chunk = arena->chunks;

        arena->chunks = chunk->next;
        if (kept == NULL && chunk->size <= keep) {
            kept = chunk;
            kept->used = 0;
            kept->next = NULL;
        } else {
            free(chunk);
        }
    }
    arena->chunks = kept;
}

static void *pb_alloc(void *arena, size_t size)
{
    return hf_arena_alloc(arena, size);
}

static void pb_free(void *arena, void *memory)
{
    (void)arena;
    (void)memory;
}

ProtobufCAllocator hf_arena_allocator(struct hf_arena *arena)
{
    return (ProtobufCAllocator){ .alloc = pb_alloc, .free = pb_free, .allocator_data = arena };
}
