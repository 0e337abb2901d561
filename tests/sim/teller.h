/* teller.h - tells what happens in a simulated fleet as a person would: one paragraph for each
 * revision of the store, and a line for what the processes do.
 *
 * Lives are counted (a1/2 is the second life of a1), times are tenths of a second, and no id,
 * revision or lease is told: a transcript changes only when the story does. */
#ifndef HFS_TELLER_H
#define HFS_TELLER_H

#include "base/buf.h"
#include "sim/cluster.h"

struct hfs_life {
    char agent[HFS_TEXT];
    char instance[HFS_TEXT];
    int64_t create_rev;
    unsigned number; /* from 1 */
};

struct hfs_teller {
    const struct hfs_cluster *cluster;
    hfs_rev revision; /* told so far */
    struct hfs_life *lives;
    size_t count, cap;
    struct hf_buf text; /* to be emptied by whoever reads it */
};

/* To be called before anything happens. */
void hfs_teller_init(struct hfs_teller *teller, const struct hfs_cluster *cluster);
void hfs_teller_done(struct hfs_teller *teller);

/* A line of the world's own transcript; an hfs_note_fn. Details are left out. */
void hfs_teller_note(const char *line, void *arg);

/* The store has changed, by a request of `writer` (NULL: by etcd itself). */
void hfs_teller_commit(struct hfs_teller *teller, const struct hfs_process *writer);

/* A line of its own. */
void hfs_teller_say(struct hfs_teller *teller, const char *actor, const char *fmt, ...)
    HF_PRINTF(3, 4);

#endif
