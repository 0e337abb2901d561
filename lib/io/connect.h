/* connect.h - the etcd client as the common settings (schema/options.h) describe it. */
#ifndef HF_IO_CONNECT_H
#define HF_IO_CONNECT_H

#include "etcd/client.h"
#include "schema/options.h"

/* What to give to hf_etcd_new; it borrows from `options`. Cannot fail. */
struct hf_etcd_config hf_connect_config(const struct hf_options *options);

#endif
