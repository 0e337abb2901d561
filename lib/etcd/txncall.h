/* txncall.h - a txn as part of a larger answer. Internal to lib/etcd. */
#ifndef HF_ETCD_TXNCALL_H
#define HF_ETCD_TXNCALL_H

#include "etcd/call.h"
#include "etcd/txn.h"

/* Starts the txn with the spec's decoder, callback, timeout and repeatability. */
int hf_txn_start(struct hf_etcd *etcd, const struct hf_txn *txn, struct hf_call_spec spec,
                 struct hf_call **ret_call) HF_MUST_CHECK;

void hf_txn_result_from(struct hf_etcd *etcd, const struct hf_outcome *outcome,
                        struct hf_txn_result *ret_result);

#endif
