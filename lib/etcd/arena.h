/* arena.h - memory for one decoded message, released as a whole.
 *
 * A decoded message is a thousand small objects that live and die together: a bump allocator
 * makes them cheap, and the largest chunk is kept for the next message. Internal to lib/etcd.
 */
#ifndef HF_ETCD_ARENA_H
#define HF_ETCD_ARENA_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct hf_arena_chunk;

/* Zero-initialise. */
struct hf_arena {
    struct hf_arena_chunk *chunks; /* newest first */
};

/* Aligned for any type, not zeroed. NULL when there is no memory. */
void *hf_arena_alloc(struct hf_arena *arena, size_t size);

/* Forgets everything, keeping at most `keep` bytes for the next message. */
void hf_arena_clear(struct hf_arena *arena, size_t keep);

/* The arena as protobuf-c wants it; what it allocates is never freed singly. */
ProtobufCAllocator hf_arena_allocator(struct hf_arena *arena);

#endif
