/* backend_etcd.h - the backend over a real etcd, on the loop of its client. */
#ifndef HF_IO_BACKEND_ETCD_H
#define HF_IO_BACKEND_ETCD_H

#include "etcd/client.h"
#include "io/backend.h"

struct hf_backend_etcd;

/* `etcd` must live on the same loop, and outlive it. */
int hf_backend_etcd_new(uv_loop_t *loop, struct hf_etcd *etcd,
                        struct hf_backend_etcd **ret_backend) HF_MUST_CHECK;

/* Everything that was opened on it must have been closed; `fn` (may be NULL) comes when the
 * loop has let go of it, which may be after the client is gone. */
void hf_backend_etcd_close(struct hf_backend_etcd *backend, hf_etcd_closed_fn fn, void *arg);

struct hf_backend hf_backend_etcd_get(struct hf_backend_etcd *backend);

#endif
