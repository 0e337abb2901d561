/* recall.h - what somebody saw of etcd's past: enough to tell later whether etcd still has it.
 *
 * It outlives the mirror that saw it, so that another one, of other ranges, notices a restored
 * etcd that the first one would have noticed. */
#ifndef HF_ETCD_RECALL_H
#define HF_ETCD_RECALL_H

#include <stdbool.h>

#include "base/buf.h"
#include "etcd/result.h"

/* The newest changes, of different revisions. One alone may come again in another history, at
 * the same revision, where somebody repeats the write; not all that was seen does. */
enum { HF_WITNESSES = 4 };

enum { HF_VERSION_UNKNOWN = -1 };

/* A key as it was at one revision. */
struct hf_witness {
    struct hf_buf key; /* empty: there is no witness */
    hf_rev create_rev;
    hf_rev mod_rev;
    int64_t version;     /* 0: it was not there; HF_VERSION_UNKNOWN: nor is create_rev known */
    size_t value_len;    /* and a hash: another history may have changed the same key, as */
    uint32_t value_hash; /* often, at the same revision, but hardly to the same value */
    bool deleted;        /* by that very change: one revision earlier it was there */
    bool compacted;      /* that revision cannot be asked for any more */
};

/* Zero-initialise: nothing was seen. */
struct hf_recall {
    uint64_t cluster_id;                       /* 0: not known yet */
    hf_rev revision;                           /* newest that etcd has told of */
    struct hf_witness witnesses[HF_WITNESSES]; /* newest first */
    struct hf_witness own; /* our newest write. Apart: what we write while we do not know yet
                            * that this is another history must not displace the others */
};

/* Everything seen belongs to another history: nothing was seen of this one. */
static inline void hf_recall_forget(struct hf_recall *recall)
{
    for (size_t i = 0; i < HF_WITNESSES; i++)
        hf_buf_clear(&recall->witnesses[i].key);
    hf_buf_clear(&recall->own.key);
    recall->cluster_id = 0;
    recall->revision = 0;
}

static inline void hf_recall_done(struct hf_recall *recall)
{
    for (size_t i = 0; i < HF_WITNESSES; i++)
        hf_buf_done(&recall->witnesses[i].key);
    hf_buf_done(&recall->own.key);
    *recall = (struct hf_recall){ 0 };
}

#endif
