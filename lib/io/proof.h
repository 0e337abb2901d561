/* proof.h - asks etcd whether every key that hangs on a lease is still there as it was created.
 *
 * A Txn has room for a few dozen compares, a host for more agents than that: the keys are
 * compared some at a time, one Txn after the other, and the whole is told once. A key that its
 * owner meanwhile removes by itself proves nothing about the lease, and is not held against it.
 *
 * Each Txn goes through raft, which takes an operation: one that only compares is answered by
 * whichever member is asked, from its own memory, and one that has lost the others proves
 * nothing. So it deletes a key that nobody has, next to the first that it compares. */
#ifndef HF_IO_PROOF_H
#define HF_IO_PROOF_H

#include "io/backend.h"

struct hf_proof_key {
    const char *text; /* borrowed until the next question */
    hf_rev create_rev;
};

enum hf_proof_verdict {
    HF_PROOF_HOLDS,   /* all of them are there */
    HF_PROOF_REFUTED, /* one is not, and nobody of ours removed it */
    HF_PROOF_UNKNOWN, /* etcd did not say: err and message, for the log */
};

struct hf_proof_config {
    struct hf_backend backend;

    /* 1 and key number `index`, from 0, of those that hang on the lease; 0 when there are no
     * more. On failure nothing is proved: HF_EAGAIN when not all is known that should be. */
    int (*get_key)(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg);
    void (*fn)(enum hf_proof_verdict verdict, int err, const char *message, void *arg);
    void *arg;
};

/* Lives inside its owner. Zero-initialise and set `cfg`. */
struct hf_proof {
    struct hf_proof_config cfg;
    int64_t lease;
    hf_ms until;
    struct hf_proof_key *keys; /* their texts are owned */
    size_t count, cap;
    size_t begun, done; /* [done, begun) are under way */
    uint64_t term;      /* under which the last Txn was answered; 0: none was */
    struct hf_call *call;
};

/* Begins; what was under way is forgotten. Returns how many keys there are, 0 when there is
 * nothing to prove: then, and on failure, no callback comes. */
int hf_proof_start(struct hf_proof *proof, int64_t lease, hf_ms until) HF_MUST_CHECK;

/* No callback comes. Leaves nothing to be released. */
void hf_proof_stop(struct hf_proof *proof);

#endif
