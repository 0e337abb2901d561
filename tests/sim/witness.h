/* witness.h - a decider that passes everything on to another one, and shows somebody what that
 * one wants, at the moment at which it wants it. */
#ifndef HFS_WITNESS_H
#define HFS_WITNESS_H

#include "io/decider.h"

struct hfs_witness {
    struct hf_decider decider;
    void (*see)(const struct hf_intent *intent, void *arg); /* NULL: nobody looks */
    void *arg;
    bool lacks_memory; /* for the next change that it is told, once */
};

/* `witness` must outlive what comes of it. */
struct hf_decider hfs_witness_decider(struct hfs_witness *witness);

#endif
