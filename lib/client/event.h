/* event.h - what a server-sent event of agentd means. Internal to the client; pure. */
#ifndef HF_CLIENT_EVENT_H
#define HF_CLIENT_EVENT_H

#include "base/buf.h"
#include "client/private.h"

/* 1: *ret_event is it; 0: one that this version does not know. HF_EINVAL or HF_ELIMIT when its
 * data is not what its name promises. */
HF_CLIENT_LOCAL int hf_client_event_parse(struct hf_bytes name, struct hf_bytes data,
                                          struct hf_client_event *ret_event,
                                          struct hf_error *err) HF_MUST_CHECK;

#endif
