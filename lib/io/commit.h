/* commit.h - carries a plan out: one Txn, sent until its outcome is known or its time is up.
 *
 * A plan changes a key whose revision it guards, so a second copy of it cannot apply. When the
 * guards fail, the op_id that stands in the record tells whether it was another copy that
 * changed it. */
#ifndef HF_IO_COMMIT_H
#define HF_IO_COMMIT_H

#include "core/event.h"
#include "io/backend.h"

struct hf_commit_result {
    enum hf_outcome outcome;
    hf_rev revision;              /* at which it was done, or refused; 0 without an answer */
    bool by_copy;                 /* done as the record shows: what else it bears is unknown */
    struct hf_etcd_result result; /* why, for the log */
};

typedef void (*hf_commit_fn)(const struct hf_commit_result *result, void *arg);

/* A plan on its way. Valid until its callback has begun. */
struct hf_commit;

/* The plan must have passed its check; it is not needed afterwards. `timeout` 0: the backend's.
 * `ret_commit` may be NULL. */
int hf_commit_start(const struct hf_backend *backend, const struct hf_plan *plan, hf_ms timeout,
                    hf_commit_fn fn, void *arg, struct hf_commit **ret_commit) HF_MUST_CHECK;

/* The callback will not come; the plan may still take effect. */
void hf_commit_cancel(struct hf_commit *commit);

/* "done", "refused" ...; "?" for a value that is none. Static strings. */
const char *hf_commit_outcome_name(enum hf_outcome outcome);

#endif
