/* range_oracle.h - whether our reader of RangeResponse and protobuf-c's read the same. */
#ifndef HF_TESTS_UNIT_RANGE_ORACLE_H
#define HF_TESTS_UNIT_RANGE_ORACLE_H

#include <stdbool.h>
#include <string.h>

#include "etcd/decode.h"

static inline bool bytes_agree(struct hf_bytes ours, struct hf_bytes theirs)
{
    return ours.len == theirs.len &&
           (ours.len == 0 || memcmp(ours.data, theirs.data, ours.len) == 0);
}

static inline bool kvs_agree(const struct hf_kv *ours, const struct hf_kv *theirs)
{
    return bytes_agree(ours->key, theirs->key) && bytes_agree(ours->value, theirs->value) &&
           ours->create_rev == theirs->create_rev && ours->mod_rev == theirs->mod_rev &&
           ours->version == theirs->version && ours->lease == theirs->lease;
}

static inline bool headers_agree(const struct hf_etcd_header *ours,
                                 const struct hf_etcd_header *theirs)
{
    return ours->cluster_id == theirs->cluster_id && ours->member_id == theirs->member_id &&
           ours->revision == theirs->revision && ours->raft_term == theirs->raft_term;
}

static inline bool ranges_agree(const struct hf_range_result *ours,
                                const Etcdserverpb__RangeResponse *theirs)
{
    struct hf_etcd_header header = hf_header_from(theirs->header);

    if (!headers_agree(&ours->result.header, &header) || ours->count != theirs->n_kvs ||
        ours->more != (theirs->more != 0) || ours->total != theirs->count)
        return false;
    for (size_t i = 0; i < ours->count; i++) {
        struct hf_kv kv = hf_kv_from(theirs->kvs[i]);

        if (!kvs_agree(&ours->kvs[i], &kv))
            return false;
    }
    return true;
}

#endif
