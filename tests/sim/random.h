/* random.h - the simulator's dice: a seed, and the same numbers from it on every machine.
 *
 * A plain value; copy it to fork a history. Not for secrets. */
#ifndef HFS_RANDOM_H
#define HFS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct hfs_random {
    uint64_t state; /* any seed is fine */
};

/* A Weyl sequence whose steps are mixed until no bit of one shows in the next (splitmix64). */
static inline uint64_t hfs_random_next(struct hfs_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* 0 .. below - 1; 0 when there is no choice. */
static inline uint64_t hfs_random_below(struct hfs_random *random, uint64_t below)
{
    return below > 1 ? hfs_random_next(random) % below : 0;
}

/* True in `percent` of 100 cases. Never and always need no dice: a fault that is switched off
 * does not change what else happens. */
static inline bool hfs_random_percent(struct hfs_random *random, unsigned percent)
{
    if (percent == 0 || percent >= 100)
        return percent != 0;
    return hfs_random_below(random, 100) < percent;
}

#endif
