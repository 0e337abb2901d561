/* stream.h - a bidirectional stream: messages in order both ways, until one side ends it.
 *
 * Internal to lib/etcd. */
#ifndef HF_ETCD_STREAM_H
#define HF_ETCD_STREAM_H

#include <protobuf-c/protobuf-c.h>

#include "etcd/client.h"
#include "etcd/lane.h"

struct hf_stream;

struct hf_stream_handler {
    /* The bytes are valid during the call. The stream may be closed from inside. */
    void (*on_message)(struct hf_bytes message, void *arg);
    /* The stream is over and must be forgotten; it was not closed by its owner. */
    void (*on_end)(int err, const char *message, void *arg);
};

/* Opens as soon as there is a token; what is sent before is kept. Neither handler is called
 * from inside. */
int hf_stream_open(struct hf_etcd *etcd, enum hf_lane_id lane, const char *method,
                   const struct hf_stream_handler *handler, void *arg,
                   struct hf_stream **ret_stream) HF_MUST_CHECK;

/* Queues a message; HF_ELIMIT when too many wait already. */
int hf_stream_send(struct hf_stream *stream, const ProtobufCMessage *message) HF_MUST_CHECK;

/* Ends it; no handler is called any more. NULL is fine. */
void hf_stream_close(struct hf_stream *stream);

/* The same, and the endpoint is given up: it did not answer in time. */
void hf_stream_give_up(struct hf_stream *stream);

/* The stream's token was refused by a message on it. */
void hf_stream_refuse_token(struct hf_stream *stream);

#endif
