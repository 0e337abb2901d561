#include "etcd/campaign.h"

#include "etcd/call.h"
#include "etcd/txncall.h"

static void set_holder(struct hf_campaign_result *result, const struct hf_kv *kv, int64_t lease)
{
    result->held = true;
    result->holder = *kv;
    result->won = lease != HF_NO_LEASE && kv->lease == lease;
}

/* lease: ours; 0 when resigning, since a key that was deleted has no new holder. */
static void decode_campaign(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_campaign_result result = { 0 };
    struct hf_txn_result txn;

    hf_txn_result_from(etcd, outcome, &txn);
    result.result = txn.result;
    if (txn.result.err == HF_OK && !txn.succeeded && txn.answer_count > 0 &&
        txn.answers[0].count > 0)
        set_holder(&result, &txn.answers[0].kvs[0], outcome->lease);
    if (txn.result.err == HF_OK && txn.succeeded && outcome->lease != HF_NO_LEASE)
        set_holder(&result,
                   &(struct hf_kv){ .create_rev = txn.result.header.revision,
                                    .mod_rev = txn.result.header.revision,
                                    .version = 1,
                                    .lease = outcome->lease },
                   outcome->lease);
    ((hf_campaign_fn)outcome->fn)(&result, outcome->arg);
}

static int commit(struct hf_etcd *etcd, struct hf_txn *txn, int64_t lease, hf_campaign_fn fn,
                  void *arg, struct hf_call **ret_call)
{
    int err = hf_txn_start(etcd, txn,
                           (struct hf_call_spec){ .repeatable = true,
                                                  .decode = decode_campaign,
                                                  .fn = (hf_any_fn)fn,
                                                  .arg = arg,
                                                  .lease = lease },
                           ret_call);

    hf_txn_free(txn);
    return err;
}

int hf_campaign_run(struct hf_etcd *etcd, struct hf_bytes key, struct hf_bytes value,
                    int64_t lease, hf_campaign_fn fn, void *arg, struct hf_call **ret_call)
{
    struct hf_txn *txn;

    if (lease == HF_NO_LEASE)
        return HF_EINVAL; /* leadership without a lease would never end */
    txn = hf_txn_new();
    if (txn == NULL)
        return HF_ENOMEM;
    hf_txn_if_create(txn, key, HF_TXN_EQUAL, 0);
    hf_txn_then_put(txn, key, value, lease);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = key });
    return commit(etcd, txn, lease, fn, arg, ret_call);
}

/* A txn without compares succeeds always, so the read stands where a failed one has it: in the
 * else list, behind a compare that no key can pass. */
int hf_campaign_look(struct hf_etcd *etcd, struct hf_bytes key, int64_t lease,
                     hf_campaign_fn fn, void *arg, struct hf_call **ret_call)
{
    struct hf_txn *txn = hf_txn_new();

    if (txn == NULL)
        return HF_ENOMEM;
    hf_txn_if_create(txn, key, HF_TXN_LESS, 0);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = key });
    return commit(etcd, txn, lease, fn, arg, ret_call);
}

int hf_campaign_resign(struct hf_etcd *etcd, struct hf_bytes key, int64_t lease, hf_rev term,
                       hf_campaign_fn fn, void *arg, struct hf_call **ret_call)
{
    struct hf_txn *txn = hf_txn_new();

    if (txn == NULL)
        return HF_ENOMEM;
    hf_txn_if_create(txn, key, HF_TXN_EQUAL, term);
    hf_txn_if_lease(txn, key, HF_TXN_EQUAL, lease);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = key });
    hf_txn_else_range(txn, (struct hf_key_range){ .key = key });
    return commit(etcd, txn, HF_NO_LEASE, fn, arg, ret_call);
}
