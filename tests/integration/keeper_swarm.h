/* keeper_swarm.h - what the processes of a swarm and the test that watches them share. */
#ifndef HFT_KEEPER_SWARM_H
#define HFT_KEEPER_SWARM_H

#include <stdint.h>

enum { SWARM_NAMED = 16 };

/* $D/swarm, mapped by all. */
struct swarm_page {
    _Atomic uint32_t go;                /* the test lets them begin */
    _Atomic uint64_t steps;             /* that they have done, all together */
    _Atomic uint64_t births;            /* forks that succeeded */
    _Atomic int32_t pids[SWARM_NAMED];  /* of those that have a name, ... */
    _Atomic uint64_t each[SWARM_NAMED]; /* ... and the steps of each */
};

#endif
