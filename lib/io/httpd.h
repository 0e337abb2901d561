/* httpd.h - an HTTP server on a libuv loop: TCP or Unix socket, whole requests in, replies out.
 *
 * No threads: everything happens on the loop's thread. A request is told once, when all of it
 * is there, and answered at any later time: with a reply, or with a stream of pieces. What a
 * stranger can make it keep is bounded: connections, bytes of headers and body, time. */
#ifndef HF_IO_HTTPD_H
#define HF_IO_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

struct hf_httpd;
struct hf_httpd_request;

/* Zero means the default, where one is named. */
struct hf_httpd_config {
    /* "127.0.0.1:8080", "[::1]:0" (a free port), or "unix:/run/x.sock", whose directory has to
     * exist and where a socket that is left over is replaced. */
    const char *listen;
    mode_t mode;        /* of a Unix socket: 0600 */
    uid_t user;         /* whose it is from the moment that it is seen; 0: ours */
    size_t connections; /* at once: 64 */
    size_t header_max;  /* bytes of a request line and its headers, together: 16 KiB */
    size_t body_max;    /* bytes: 1 MiB; a longer one is answered with 413, not kept */
    size_t bodies_max;  /* bytes of all at once: four times body_max; else 503 */
    size_t stream_max;  /* bytes of a stream that its reader has not taken yet: 1 MiB */
    hf_ms timeout;      /* for a request to arrive, and for a client to take a reply: 10 s */

    void (*on_request)(struct hf_httpd_request *request, void *arg);
    /* The client of a request that was told is gone, or has taken all of its reply: the last
     * time that the request is valid. May be NULL. */
    void (*on_end)(struct hf_httpd_request *request, void *arg);
    void *arg;
};

/* Listens at once. HF_EINVAL, HF_EDENIED, HF_EEXIST (somebody else listens there) or HF_EIO,
 * with a sentence. */
int hf_httpd_new(uv_loop_t *loop, const struct hf_httpd_config *cfg,
                 struct hf_httpd **ret_httpd, struct hf_error *err) HF_MUST_CHECK;

typedef void (*hf_httpd_closed_fn)(void *arg);

/* Ends every connection, answered or not (on_end comes for each request), and removes a Unix
 * socket. `fn` may be NULL. Not from on_request or on_end. */
void hf_httpd_close(struct hf_httpd *httpd, hf_httpd_closed_fn fn, void *arg);

/* Of TCP; 0 for a Unix socket. */
uint16_t hf_httpd_get_port(const struct hf_httpd *httpd);

/* What was asked; borrowed until the request ends. */
const char *hf_httpd_get_method(const struct hf_httpd_request *request);
const char *hf_httpd_get_path(const struct hf_httpd_request *request);
/* NULL when there is none of that name. */
const char *hf_httpd_get_query(const struct hf_httpd_request *request, const char *name);
const char *hf_httpd_get_header(const struct hf_httpd_request *request, const char *name);
struct hf_bytes hf_httpd_get_body(const struct hf_httpd_request *request);

/* Who is at the other end of a Unix socket, as the kernel knows; HF_ENOENT for TCP. */
struct hf_httpd_peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
};
int hf_httpd_get_peer(const struct hf_httpd_request *request,
                      struct hf_httpd_peer *ret_peer) HF_MUST_CHECK;

/* The owner's, for whatever it likes. */
void hf_httpd_set_user(struct hf_httpd_request *request, void *user);
void *hf_httpd_get_user(const struct hf_httpd_request *request);

/* One header of a reply, before it is sent. */
int hf_httpd_add_header(struct hf_httpd_request *request, const char *name,
                        const char *value) HF_MUST_CHECK;

/* Answers, once. The body is copied; `type` may be NULL when there is none. Without memory the
 * connection is closed instead. */
void hf_httpd_reply(struct hf_httpd_request *request, unsigned status, const char *type,
                    struct hf_bytes body);

/* The same with the first `size` bytes of a file, of which this keeps a descriptor of its own.
 * The client may take them as slowly as it likes, but for a pause of `timeout`. */
void hf_httpd_reply_file(struct hf_httpd_request *request, unsigned status, const char *type,
                         int file, int64_t size);

/* Answers with a stream that goes on until its end, or until the client is gone. */
void hf_httpd_stream(struct hf_httpd_request *request, const char *type);
/* HF_ELIMIT: the client does not read, or not fast enough, and its connection is ended. */
int hf_httpd_send(struct hf_httpd_request *request, struct hf_bytes piece) HF_MUST_CHECK;
void hf_httpd_end_stream(struct hf_httpd_request *request);

#endif
