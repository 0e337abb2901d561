/* hash.h - hashes for tables whose keys others choose.
 *
 * Pure. Seeded, so that nobody who does not know the seed can aim many keys at one slot. Not a
 * digest, and not for storing: see sha256.h. */
#ifndef HF_BASE_HASH_H
#define HF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* The low bits are as good as any. Cannot fail; `data` may be NULL when len is 0. */
uint32_t hf_hash(uint64_t seed, const void *data, size_t len);

#endif
