/* result.h - how anything that was asked of etcd ended.
 *
 * Plain values, so that whoever only handles answers needs neither libuv nor a client: the
 * headers of requests (kv.h, txn.h, lease.h, mirror.h) stand on this one alone. */
#ifndef HF_ETCD_RESULT_H
#define HF_ETCD_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

typedef int64_t hf_rev; /* a revision of the store; 0 = none */

/* Opaque: one connection pool, one set of credentials (client.h). */
struct hf_etcd;

/* What etcd says of itself with every answer. */
struct hf_etcd_header {
    uint64_t cluster_id;
    uint64_t member_id;
    hf_rev revision;
    uint64_t raft_term;
};

/* How a call ended; the first member of every result. Valid during the callback only. */
struct hf_etcd_result {
    int err;                      /* HF_OK, or what went wrong */
    bool maybe_applied;           /* with err: the write may have happened all the same */
    unsigned resent;              /* attempts before this one whose outcome is unknown */
    const char *message;          /* the server's words, or ours; never NULL */
    hf_ms sent_at;                /* first attempt that may have arrived */
    struct hf_etcd_header header; /* zero on failure */
};

/* A call under way. Valid until its callback has begun. */
struct hf_call;

/* The callback will not come; what was sent may still take effect. */
void hf_call_cancel(struct hf_call *call);

#endif
