/* status.h - what a gRPC status and etcd's words with it mean for us.
 *
 * etcd uses one code for several things (8 is both "too busy" and "out of space"), so the text
 * decides as well. Pure. Internal to lib/etcd. */
#ifndef HF_ETCD_STATUS_H
#define HF_ETCD_STATUS_H

#include <stdbool.h>

#include "base/err.h"

struct hf_status {
    int err;
    bool unknown;  /* a write may have been applied all the same */
    bool retry;    /* the same request may do better, here or elsewhere */
    bool rotate;   /* this endpoint is no good now */
    bool log_in;   /* our token is not accepted */
    bool overload; /* wait a second at least */
};

/* `code` is a grpc_status_code; `message` the server's or gRPC's words, never NULL. */
struct hf_status hf_status_of(int code, const char *message);

/* The same for the words with which etcd ends a watch on a stream that itself lives on. */
struct hf_status hf_status_of_cancel(const char *reason);

#endif
