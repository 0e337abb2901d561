/* request.h - one question to agentd and its answer, over a connection of its own.
 *
 * Internal to the client. Blocking, with a deadline; safe in any number of threads, since
 * nothing of the client is changed. */
#ifndef HF_CLIENT_REQUEST_H
#define HF_CLIENT_REQUEST_H

#include <sys/un.h>

#include "base/buf.h"
#include "client/head.h"
#include "client/holdfast.h"

struct hf_request {
    const char *method;
    const char *path;
    const char *type; /* of the body; NULL: there is none */
    struct hf_bytes body;
    hf_ms timeout;  /* beyond that of the client; below 0: so much less */
    bool is_wait;   /* hf_client_interrupt ends it */
    bool only_once; /* never repeated */
    bool keeps;     /* the connection is for more than this one */
    int fd;         /* where the body of a 200 goes; -1: into the answer */
};

struct hf_answer {
    struct hf_head head;
    struct hf_buf body; /* its limit is the caller's */
};

#define HF_CLEANUP_ANSWER __attribute__((cleanup(hf_answer_done)))
void hf_answer_done(struct hf_answer *answer);

/* A connection that does not block, for the stream of events; HF_EAGAIN: nobody listens there
 * now. */
int hf_request_connect(const struct hf_client *client, struct hf_error *err) HF_MUST_CHECK;

/* The head of a request, for that stream and for answers to pings. */
void hf_request_format(const struct hf_client *client, const struct hf_request *request,
                       struct hf_buf *out);

/* Asks until there is an answer or patience ends. The status, 2xx, or an error with agentd's
 * own sentence. */
int hf_request_do(const struct hf_client *client, const struct hf_request *request,
                  struct hf_answer *answer, struct hf_error *err) HF_MUST_CHECK;

/* What an answer that is not 2xx means. */
int hf_request_refusal(int status, struct hf_bytes body, struct hf_error *err);

/* The same for what agentd answers with JSON. `body` is what was written with fields.h; NULL:
 * there is none. */
int hf_request_json(const struct hf_client *client, struct hf_request *request,
                    const struct hf_buf *body, struct hf_answer *answer,
                    struct hf_error *err) HF_MUST_CHECK;

/* Sets `path` to that of a task; HF_EINVAL when `id` is no name. */
#define HF_REQUEST_PATH_SIZE (HF_CLIENT_NAME_SIZE + 48)
int hf_request_path(const char *id, const char *what, char path[HF_REQUEST_PATH_SIZE],
                    struct hf_error *err) HF_MUST_CHECK;

/* agentd said something that we do not understand. */
int hf_request_corrupt(int rc, struct hf_error *err);

#endif
