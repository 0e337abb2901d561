/* decode.h - from etcd's messages to ours: the small pieces that every answer shares.
 *
 * Internal to lib/etcd. */
#ifndef HF_ETCD_DECODE_H
#define HF_ETCD_DECODE_H

#include "etcd/arena.h"
#include "etcd/kv.h"
#include "etcd/rpc.pb-c.h"

static inline struct hf_bytes hf_bytes_from(ProtobufCBinaryData data)
{
    return (struct hf_bytes){ .data = data.data, .len = data.len };
}

static inline ProtobufCBinaryData hf_bytes_to(struct hf_bytes bytes)
{
    return (ProtobufCBinaryData){ .data = (uint8_t *)bytes.data, .len = bytes.len };
}

/* An absent header (NULL) is all zero. */
static inline struct hf_etcd_header hf_header_from(const Etcdserverpb__ResponseHeader *header)
{
    if (header == NULL)
        return (struct hf_etcd_header){ 0 };
    return (struct hf_etcd_header){ .cluster_id = header->cluster_id,
                                    .member_id = header->member_id,
                                    .revision = header->revision,
                                    .raft_term = header->raft_term };
}

static inline struct hf_kv hf_kv_from(const Etcdserverpb__KeyValue *kv)
{
    return (struct hf_kv){ .key = hf_bytes_from(kv->key),
                           .value = hf_bytes_from(kv->value),
                           .create_rev = kv->create_revision,
                           .mod_rev = kv->mod_revision,
                           .version = kv->version,
                           .lease = kv->lease };
}

/* The pairs of a range as an array in the arena; false when there is no memory. */
bool hf_kvs_from(struct hf_arena *arena, const Etcdserverpb__RangeResponse *answer,
                 const struct hf_kv **ret_kvs);

#endif
