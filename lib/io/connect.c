#include "io/connect.h"

struct hf_etcd_config hf_connect_config(const struct hf_options *options)
{
    return (struct hf_etcd_config){
        .endpoints = options->endpoints.items,
        .endpoint_count = options->endpoints.count,
        .discover = options->discover,
        .cacert = options->cacert,
        .cert = options->cert,
        .key = options->key,
        .user = options->user,
        .password_file = options->password_file,
    };
}

int hf_connect_new(uv_loop_t *loop, const struct hf_etcd_config *cfg, struct hf_etcd **ret_etcd,
                   struct hf_error *err)
{
    int rc = hf_etcd_new(loop, cfg, ret_etcd, err);

    return rc == HF_OK || rc == HF_ENOMEM ? rc : HF_EINVAL;
}
