/* call.h - one request, one answer: deadline, endpoints, token, retries, outcome.
 *
 * Internal to lib/etcd. */
#ifndef HF_ETCD_CALL_H
#define HF_ETCD_CALL_H

#include <protobuf-c/protobuf-c.h>

#include "etcd/client.h"
#include "etcd/lane.h"

/* Any function; cast back by the decoder that knows its type. */
typedef void (*hf_any_fn)(void);

/* What an answer is made from. */
struct hf_outcome {
    struct hf_etcd_result result;
    const struct hf_bytes *pieces; /* the packed answer as it came; none on failure */
    size_t piece_count;
    struct hf_bytes body; /* the same in one piece, unless the spec says `in_pieces` */
    hf_any_fn fn;         /* the caller's */
    void *arg;
    int64_t lease; /* the decoder's, as in the spec */
    int64_t extra;
};

/* Unpacks outcome->body and calls outcome->fn. */
typedef void (*hf_decode_fn)(struct hf_etcd *etcd, struct hf_outcome *outcome);

struct hf_call_spec {
    const char *method;
    const ProtobufCMessage *request;
    enum hf_lane_id lane;
    const struct hf_endpoint *only; /* instead: asked there, once, on a connection of its own */
    bool repeatable;       /* harmless to send again: a read, or a write that guards itself */
    bool without_token;    /* the log-in itself */
    hf_ms timeout;         /* 0: the client's */
    hf_ms attempt_timeout; /* 0: the client's */
    bool in_pieces;        /* the answer may be large: it is not put together for the decoder */
    hf_decode_fn decode;
    hf_any_fn fn;
    void *arg;
    int64_t lease; /* what the decoder needs to know of the request: whose it is, ... */
    int64_t extra; /* ... and whatever else */
};

int hf_call_start(struct hf_etcd *etcd, const struct hf_call_spec *spec,
                  struct hf_call **ret_call) HF_MUST_CHECK;

/* For hf_etcd_close: every call ends with HF_ECANCELED, soon. */
void hf_call_cancel_all(struct hf_etcd *etcd);

/* Unpacks `body` into the client's arena, where it lives until hf_etcd_drop_message. NULL, and
 * result->err set, when it is not such a message. */
void *hf_call_unpack(struct hf_etcd *etcd, const ProtobufCMessageDescriptor *type,
                     struct hf_bytes body, struct hf_etcd_result *result);

#endif
