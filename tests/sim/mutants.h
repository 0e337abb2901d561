/* mutants.h - what can be taken away from the fleet to show that it is needed, and the kind of
 * history in which it is missed.
 *
 * Two sorts: a compare that is left out of the Txns of one row of the table of transactions, on
 * the way to etcd; and a rule of lib/core (core/mutant.h). Without it some history must break
 * an invariant or come to no rest; or it stands here why nothing can: another compare of the
 * same Txn implies it. */
#ifndef HFS_MUTANTS_H
#define HFS_MUTANTS_H

#include "core/mutant.h"
#include "sim/run.h"

/* Compares of one kind of key that Txns of one row lack, or all Txns. */
#define HFS_ANY_ROW  HF_ROWS
#define HFS_ANY_KIND HF_KEY_KINDS
struct hfs_dropped {
    enum hf_row row; /* HF_ROW_NONE: nothing is left out */
    enum hf_key_kind kind;
    unsigned compares; /* bits: 1 << enum hf_guard */
};

/* What was compared, in any history, and how often something was left out. */
struct hfs_census {
    uint8_t compares[HF_ROWS][HF_KEY_KINDS]; /* bits as above */
    uint64_t dropped;
};

/* Whether `guard` is left out. `dropped` and `census` may be NULL. */
bool hfs_dropped_has(const struct hfs_dropped *dropped, struct hfs_census *census,
                     const struct hf_plan_guard *guard);

/* With a term a claim to it comes late as well, and with what is reaped the start that left it.
 * `dropped` may be NULL. */
bool hfs_dropped_rides(const struct hfs_dropped *dropped, const struct hf_plan_guard *guard);

struct hfs_mutant {
    const char *name;
    const char *text;           /* what goes unnoticed, or does not happen */
    struct hfs_dropped dropped; /* a compare, */
    uint64_t rules;             /* or a rule of lib/core; */
    struct hfs_dropped aim;     /* with that, Txns that have this compare are kept back */
    const char *profile;    /* of its histories (sim/profile.h); several are taken in turn */
    const char *equivalent; /* why it harms nothing; NULL: it must */
};

/* All of them; `ret_count` says how many. */
const struct hfs_mutant *hfs_mutants_get(size_t *ret_count);

/* NULL: there is none of that name. */
const struct hfs_mutant *hfs_mutants_find(const char *name);

/* Takes it away in that history; where it is a compare, whoever keeps Txns back has it for its
 * aim. With `only_aim` nothing is taken away. */
void hfs_mutant_apply(const struct hfs_mutant *mutant, bool only_aim, struct hfs_run *run);

/* Names the first compare in the census that no mutant leaves out; false: there is none. */
bool hfs_mutants_find_missing(const struct hfs_census *census, char *ret_text, size_t size);

#endif
