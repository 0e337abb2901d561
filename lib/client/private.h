/* private.h - what a client consists of. Internal to it. */
#ifndef HF_CLIENT_PRIVATE_H
#define HF_CLIENT_PRIVATE_H

#include <sys/types.h>
#include <sys/un.h>

#include "client/holdfast.h"
#include "client/sse.h"

#define HF_CLIENT_TOKEN_MAX 256

/* Of what begins like a function for others and is none. */
#define HF_CLIENT_LOCAL __attribute__((visibility("hidden")))

struct hf_client {
    /* Never changed: for all threads. */
    struct sockaddr_un address;
    char token[HF_CLIENT_TOKEN_MAX + 1];
    hf_ms timeout;
    hf_ms patience;
    size_t checkpoint_max;
    bool pongs_by_hand;
    pid_t owner;     /* the process that made it, not a child of that */
    int interrupted; /* an eventfd: readable from the first interruption on */

    /* Of whoever takes events. */
    int ready; /* an epoll descriptor over all that follows, and `interrupted` */
    int timer; /* when to connect anew, or to give up a silent connection */
    int stream;
    int pongs; /* a connection for answers to pings */
    bool has_head;
    bool is_cut; /* the connection ended before it had one */
    bool has_begun;
    hf_ms due;     /* of the timer; 0: it is not set */
    hf_ms silence; /* of the stream, after which nobody is there any more */
    struct hf_sse sse;
    struct hf_buf input;
    size_t used; /* bytes of it that were taken */
};

HF_CLIENT_LOCAL bool hf_client_is_interrupted(const struct hf_client *client);

/* Sleeps until `fd` is ready for `events`, an interruption if `is_wait`, or the deadline.
 * HF_OK, HF_ETIMEOUT or HF_ECANCELED. */
HF_CLIENT_LOCAL int hf_client_poll(const struct hf_client *client, int fd, short events,
                                   hf_ms deadline, bool is_wait) HF_MUST_CHECK;
HF_CLIENT_LOCAL hf_ms hf_client_now(void);

#endif
