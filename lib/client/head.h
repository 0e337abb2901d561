/* head.h - the head of an HTTP answer: its status, and the headers that an agent needs.
 *
 * Pure. Foreign bytes: strict, bounded, without allocation. We ask in HTTP/1.0, so a body is as
 * long as Content-Length says, or ends with the connection; whoever answers in chunks all the
 * same is not understood. */
#ifndef HF_CLIENT_HEAD_H
#define HF_CLIENT_HEAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HF_HEAD_MAX 16384 /* bytes */

struct hf_head {
    int status;
    int64_t length; /* of the body; -1: not said */
    int64_t seq;    /* X-Holdfast-Seq; 0: not said */
    int64_t alive;  /* X-Holdfast-Alive, milliseconds; 0: not said */
    char sha256[65];
};

/* The length of the head that `data` begins with; 0 when more has to come. HF_EINVAL or
 * HF_ELIMIT when it is none. */
int hf_head_parse(const char *data, size_t len, struct hf_head *ret_head,
                  struct hf_error *err) HF_MUST_CHECK;

#endif
