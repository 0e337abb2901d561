/* connect.h - the etcd client as the common settings (schema/options.h) describe it. */
#ifndef HF_IO_CONNECT_H
#define HF_IO_CONNECT_H

#include "etcd/client.h"
#include "schema/options.h"

/* What to give to hf_connect_new; it borrows from `options`. Cannot fail. */
struct hf_etcd_config hf_connect_config(const struct hf_options *options);

/* hf_etcd_new for a program that was configured: whatever keeps the client from being made, a
 * file that is not there or may not be read as well, is a mistake in the settings and
 * HF_EINVAL, with its sentence; but for HF_ENOMEM. */
int hf_connect_new(uv_loop_t *loop, const struct hf_etcd_config *cfg, struct hf_etcd **ret_etcd,
                   struct hf_error *err) HF_MUST_CHECK;

#endif
