/* model_request.h - what a client may ask of the model etcd, and what it is told.
 *
 * Requests and answers are values that a network can keep, delay, lose and repeat: a copy of a
 * request and every answer is one block of memory, released with free(). */
#ifndef HFS_MODEL_REQUEST_H
#define HFS_MODEL_REQUEST_H

#include "sim/model_store.h"

struct hfs_kv {
    struct hf_bytes key;
    struct hf_bytes value;
    hfs_rev create_rev;
    hfs_rev mod_rev;
    int64_t version;
    int64_t lease; /* 0: none */
};

enum hfs_request_kind {
    HFS_RANGE,   /* op.range */
    HFS_PUT,     /* op.put */
    HFS_DELETE,  /* op.erase */
    HFS_TXN,     /* txn */
    HFS_COMPACT, /* compact */
    HFS_GRANT,   /* lease, and ttl_s */
    HFS_REVOKE,  /* lease */
    HFS_RENEW,   /* lease */
    HFS_TTL,     /* lease; the keys are always told */
};

struct hfs_range_request {
    struct hfs_range range;
    hfs_rev revision; /* 0: now */
    int64_t limit;    /* 0: none */
    bool keys_only;
    bool count_only;
};

struct hfs_put_request {
    struct hf_bytes key;
    struct hf_bytes value;
    int64_t lease; /* 0: none; a lease that the key had is taken from it */
};

/* HFS_RANGE, HFS_PUT or HFS_DELETE, alone or in a txn. */
struct hfs_op {
    enum hfs_request_kind kind;
    union {
        struct hfs_range_request range;
        struct hfs_put_request put;
        struct hfs_range erase;
    };
};

struct hfs_ops {
    const struct hfs_op *list;
    size_t count;
};

enum hfs_target {
    HFS_TARGET_VERSION,
    HFS_TARGET_CREATE,
    HFS_TARGET_MOD,
    HFS_TARGET_VALUE,
    HFS_TARGET_LEASE,
};

enum hfs_relation { HFS_EQUAL, HFS_GREATER, HFS_LESS, HFS_NOT_EQUAL };

/* A key that is not there has 0 for every number, and no value that anything holds for. */
struct hfs_compare {
    struct hf_bytes key;
    enum hfs_target target;
    enum hfs_relation relation;
    int64_t number;        /* of all targets but the value */
    struct hf_bytes value; /* of HFS_TARGET_VALUE */
    bool aimed;            /* by whoever keeps Txns back (sim/net.h) */
    bool dropped;          /* etcd never sees it */
};

struct hfs_txn {
    const struct hfs_compare *compares;
    size_t compare_count;
    struct hfs_ops then;
    struct hfs_ops otherwise;
    bool rides; /* a copy comes late with those that are kept back (sim/net.h) */
};

#define HFS_TXN_MAX_OPS 128 /* etcd's default, for compares and for each list */

struct hfs_request {
    enum hfs_request_kind kind;
    union {
        struct hfs_op op; /* its kind need not be set */
        struct hfs_txn txn;
        hfs_rev compact;
        struct {
            int64_t lease;
            int64_t ttl_s;
        };
    };
};

/* A copy that owns everything it points to. */
int hfs_request_copy(const struct hfs_request *request,
                     struct hfs_request **ret_copy) HF_MUST_CHECK;

/* What etcd says of itself with every answer. */
struct hfs_header {
    uint64_t cluster_id;
    uint64_t member_id;
    hfs_rev revision;
    uint64_t raft_term;
};

/* What one operation brought. */
struct hfs_op_answer {
    const struct hfs_kv *kvs; /* of a range */
    size_t count;
    int64_t total; /* keys in the range, whatever the limit */
    bool more;
    int64_t deleted; /* of a delete */
};

struct hfs_answer {
    int err;                  /* as lib/etcd translates etcd's codes */
    const char *message;      /* etcd's words for it; static, "" on success */
    struct hfs_header header; /* zero on failure */
    bool succeeded;           /* of a txn: which list was done */
    const struct hfs_op_answer *ops;
    size_t op_count; /* of a txn; 1 for a range, put or delete */

    int64_t lease;
    int64_t ttl_s; /* granted, renewed (0: there is no such lease) or left (-1: likewise) */
    int64_t granted_ttl_s;
    const struct hf_bytes *keys; /* of the lease, in their order */
    size_t key_count;
};

#endif
