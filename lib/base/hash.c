#include "base/hash.h"

#include <string.h>

static const uint64_t FACTOR = 0x9e3779b97f4a7c15u;

/* Both halves of the product: every bit of `value` reaches the low ones of the result. */
static uint64_t mix(uint64_t value, uint64_t factor)
{
    unsigned __int128 product = (unsigned __int128)value * factor;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The factor is secret, too: with a known one, differences between keys would cancel out
 * whatever the seed is. It stays odd, so that it is never 0. */
uint32_t hf_hash(uint64_t seed, const void *data, size_t len)
{
    const char *bytes = data;
    uint64_t factor = FACTOR ^ (seed << 1);
    uint64_t hash = seed ^ (len * FACTOR);
    uint64_t word = 0;
    size_t i;

    for (i = 0; i + sizeof word < len; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        hash = mix(hash ^ word, factor);
    }
    /* The last eight bytes, though some were read already: faster than a shorter read. */
    if (len >= sizeof word) {
        memcpy(&word, bytes + len - sizeof word, sizeof word);
    } else {
        for (word = 0, i = 0; i < len; i++)
            word = word << 8 | (unsigned char)bytes[i];
    }
    hash = mix(hash ^ word, factor);
    return (uint32_t)(hash ^ hash >> 32);
}
