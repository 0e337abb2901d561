/* campaign.h - leadership on one key, as mechanism: take it, look at it, give it back.
 *
 * When to campaign and when to stop acting is decided elsewhere (core/election.h); who holds
 * the key is followed with a mirror of it. There is no queue of candidates: the key is created
 * if absent, under the candidate's lease, and its create_rev is the term. */
#ifndef HF_ETCD_CAMPAIGN_H
#define HF_ETCD_CAMPAIGN_H

#include "etcd/kv.h"

struct hf_campaign_result {
    struct hf_etcd_result result; /* an error: nothing is known; ask with hf_campaign_look */
    bool held;                    /* somebody has the key */
    bool won;                     /* we have: it hangs on our lease */
    struct hf_kv holder; /* when held. Just created: create_rev, mod_rev and lease only */
};

typedef void (*hf_campaign_fn)(const struct hf_campaign_result *result, void *arg);

/* Creates `key` with `value` under `lease` unless somebody has it. Sent again while its outcome
 * is unknown; won when the key was created or, after that, is found to hang on our lease.
 * HF_ENOENT when the lease is gone. */
int hf_campaign_run(struct hf_etcd *etcd, struct hf_bytes key, struct hf_bytes value,
                    int64_t lease, hf_campaign_fn fn, void *arg,
                    struct hf_call **ret_call) HF_MUST_CHECK;

/* Who has the key now, by a linearizable read. */
int hf_campaign_look(struct hf_etcd *etcd, struct hf_bytes key, int64_t lease,
                     hf_campaign_fn fn, void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

/* Deletes the key if it is still ours of that term; if it is not, that is success, too. */
int hf_campaign_resign(struct hf_etcd *etcd, struct hf_bytes key, int64_t lease, hf_rev term,
                       hf_campaign_fn fn, void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

#endif
