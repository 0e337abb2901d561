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
