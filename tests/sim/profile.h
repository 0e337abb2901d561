/* profile.h - histories of a certain kind: few sorts of faults, and many of each.
 *
 * What a seed draws at large rarely meets the one moment at which a certain rule is needed.
 * Nothing else is special about them: without a mutant they must be as green as all others. */
#ifndef HFS_PROFILE_H
#define HFS_PROFILE_H

#include "sim/run.h"

struct hfs_profile;

/* NULL: there is none of that name. */
const struct hfs_profile *hfs_profile_find(const char *name);

/* The names, in their order; NULL after the last. */
const char *hfs_profile_name(size_t index);

/* As hfs_run_draw_common. */
void hfs_profile_draw(struct hfs_run *run, uint64_t seed, const struct hfs_profile *profile);

#endif
