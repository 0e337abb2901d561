/* hunt.h - shows that the simulator can fail: takes one thing away after the other and looks
 * for a history that breaks without it. */
#ifndef HFS_HUNT_H
#define HFS_HUNT_H

#include <stdbool.h>
#include <stdint.h>

struct hfs_hunt {
    uint64_t from, seeds; /* of each mutant, at most */
    unsigned jobs;
    const char *only; /* the name of one mutant, or how several begin ("RESET_*"); NULL: all */
};

/* Prints what became of each, by which invariant, and why the others harm nothing. False when a
 * mutant survives that should not, one dies that is said to harm nothing, or a history fails
 * with nothing missing. */
bool hfs_hunt(const struct hfs_hunt *hunt);

#endif
