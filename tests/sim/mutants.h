/* mutants.h - what can be taken away from the fleet to show that it is needed, and the kind of
 * history in which it is missed.
 *
 * Two sorts: a compare that is left out of the Txns of one class of writers, on the way to
 * etcd; and a rule of lib/core (core/mutant.h). Without it some history must break an invariant
 * or come to no rest; or it stands here why nothing can: another compare implies it. */
#ifndef HFS_MUTANTS_H
#define HFS_MUTANTS_H

#include "core/mutant.h"
#include "core/plan.h"
#include "sim/world.h"

/* Compares of one kind of key that Txns of a class of writers lack. */
struct hfs_dropped {
    enum hfs_role writer; /* HFS_NOBODY: nothing is left out */
    enum hf_key_kind kind;
    unsigned compares; /* bits: 1 << enum hf_guard */
};

/* Whether `guard`, of a Txn of that process, is left out. `dropped` may be NULL. */
bool hfs_dropped_has(const struct hfs_dropped *dropped, const struct hfs_process *process,
                     const struct hf_plan_guard *guard);

struct hfs_mutant {
    const char *name;
    const char *text;           /* what goes unnoticed, or does not happen */
    struct hfs_dropped dropped; /* a compare, */
    uint64_t rules;             /* or a rule of lib/core */
    const char *profile;        /* of the histories to begin with (sim/profile.h) */
    const char *equivalent;     /* why it harms nothing; NULL: it must */
};

/* All of them; `ret_count` says how many. */
const struct hfs_mutant *hfs_mutants_get(size_t *ret_count);

/* NULL: there is none of that name. */
const struct hfs_mutant *hfs_mutants_find(const char *name);

#endif
