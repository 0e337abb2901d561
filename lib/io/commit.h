/* commit.h - carries a plan out: one Txn, sent until its outcome is known or its time is up.
 *
 * A plan changes a key whose revision it guards, so a second copy of it cannot apply. When the
 * guards of a second copy fail, the op_id that stands in the record tells whether it was the
 * first copy that changed it. Runs on the loop of its client. */
#ifndef HF_IO_COMMIT_H
#define HF_IO_COMMIT_H

#include "core/plan.h"
#include "etcd/client.h"

enum hf_commit_outcome {
    HF_COMMIT_DONE,
    HF_COMMIT_REFUSED, /* a guard did not hold: decide again on what etcd has now */
    HF_COMMIT_UNKNOWN, /* it may have happened, or may still: wait for the mirror to tell */
    HF_COMMIT_FAILED,  /* it did not happen, and will not */
};

struct hf_commit_result {
    enum hf_commit_outcome outcome;
    hf_rev revision;              /* of a plan that is done and whose answer came */
    struct hf_etcd_result result; /* why, for the log */
};

typedef void (*hf_commit_fn)(const struct hf_commit_result *result, void *arg);

/* A plan on its way. Valid until its callback has begun. */
struct hf_commit;

/* The plan must have passed its check; it is not needed afterwards. `timeout` 0: the client's.
 * `ret_commit` may be NULL. */
int hf_commit_start(struct hf_etcd *etcd, const struct hf_plan *plan, hf_ms timeout,
                    hf_commit_fn fn, void *arg, struct hf_commit **ret_commit) HF_MUST_CHECK;

/* The callback will not come; the plan may still take effect. */
void hf_commit_cancel(struct hf_commit *commit);

const char *hf_commit_outcome_name(enum hf_commit_outcome outcome);

#endif
