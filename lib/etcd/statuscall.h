/* statuscall.h - one member's status as part of a larger answer. Internal to lib/etcd. */
#ifndef HF_ETCD_STATUSCALL_H
#define HF_ETCD_STATUSCALL_H

#include "etcd/kv.h"

struct hf_endpoint;

/* As hf_etcd_status; of the member at one endpoint, unless that is NULL. */
int hf_status_start(struct hf_etcd *etcd, const struct hf_endpoint *only, hf_ms timeout,
                    hf_status_fn fn, void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

#endif
