/* replay.h - how a history that failed is lived through again, and whether two have failed in
 * the same way. */
#ifndef HFS_REPLAY_H
#define HFS_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hfs_replay {
    uint64_t seed;
    const char *profile; /* NULL: drawn at large */
    const char *mutant;  /* NULL: nothing is missing */
    bool control;        /* the mutant's aim alone: nothing is missing, either */
};

/* "./dev test sim --seeds 1 --from 7 --profile late" */
void hfs_replay_format(const struct hfs_replay *replay, char *ret_text, size_t size);

/* Whether both break the same invariant ("I7 ..."), or neither comes to rest. */
bool hfs_replay_is_same(const char *why, const char *other);

#endif
