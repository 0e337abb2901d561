/* txn.h - guarded writes: compares, then one of two lists of operations.
 *
 * A builder with a sticky error, like hf_buf: a failed step makes the rest no-ops, and
 * hf_txn_commit says what was wrong. At most 64 compares and 64 operations in each list; no key
 * is written twice. Keys and values are copied. */
#ifndef HF_ETCD_TXN_H
#define HF_ETCD_TXN_H

#include "etcd/kv.h"

#define HF_TXN_MAX_OPS 64

struct hf_txn;

struct hf_txn *hf_txn_new(void); /* NULL when there is no memory */
void hf_txn_free(struct hf_txn *txn);

enum hf_txn_op { HF_TXN_EQUAL, HF_TXN_GREATER, HF_TXN_LESS, HF_TXN_NOT_EQUAL };

/* Compares. An absent key has create_rev, mod_rev, version and lease 0; its value compares
 * false with anything. */
void hf_txn_if_create(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, hf_rev rev);
void hf_txn_if_mod(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, hf_rev rev);
void hf_txn_if_version(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op,
                       int64_t version);
void hf_txn_if_lease(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, int64_t lease);
void hf_txn_if_value(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op,
                     struct hf_bytes value);

/* What is done when all compares hold. The lease is said each time (HF_NO_LEASE for none). */
void hf_txn_then_put(struct hf_txn *txn, struct hf_bytes key, struct hf_bytes value,
                     int64_t lease);
void hf_txn_then_delete(struct hf_txn *txn, struct hf_key_range range);
void hf_txn_then_range(struct hf_txn *txn, struct hf_key_range range);

/* What is read when one does not. */
void hf_txn_else_range(struct hf_txn *txn, struct hf_key_range range);

/* One operation's answer, in the order in which they were added. */
struct hf_txn_answer {
    const struct hf_kv *kvs; /* of a range */
    size_t count;
    int64_t deleted; /* of a delete */
};

/* result.err is HF_OK whenever etcd answered; `succeeded` says which list was done.
 *
 * With result.resent > 0 and not succeeded, an earlier copy of this very txn may be the one
 * that changed the compared keys: read them in the else list and look for your own mark. */
struct hf_txn_result {
    struct hf_etcd_result result;
    bool succeeded;
    const struct hf_txn_answer *answers;
    size_t answer_count;
};

typedef void (*hf_txn_fn)(const struct hf_txn_result *result, void *arg);

struct hf_txn_options {
    /* Send the same txn again while its outcome is unknown, until the timeout. Only for a txn
     * that changes a key whose revision it compares: then it applies at most once. */
    bool resend;
    hf_ms timeout; /* 0: the client's */
};

/* `options` may be NULL. The txn is unchanged and may be committed again or freed at once. */
int hf_txn_commit(struct hf_etcd *etcd, const struct hf_txn *txn,
                  const struct hf_txn_options *options, hf_txn_fn fn, void *arg,
                  struct hf_call **ret_call) HF_MUST_CHECK;

#endif
