#include "client/request.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "client/fields.h"
#include "client/private.h"
#include "schema/name.h"

enum {
    PAUSE_MS = 200,      /* before something is asked again */
    PAUSE_LONG_MS = 1000 /* when that was too often */
};
#define JSON_MAX   ((size_t)8 << 20)
#define PIECE_SIZE ((size_t)16 << 10)

void hf_answer_done(struct hf_answer *answer)
{
    hf_buf_done(&answer->body);
}

/* One attempt. */

struct attempt {
    const struct hf_client *client;
    const struct hf_request *request;
    struct hf_answer *answer;
    struct hf_error *err;
    int fd;
    hf_ms deadline;
    struct hf_buf head; /* until it is whole, and what came with it */
    int64_t got;        /* bytes of the body */
    bool has_written;   /* something of it, to the descriptor of the request */
};

static int wait_for(const struct attempt *a, short events)
{
    int rc = hf_client_poll(a->client, a->fd, events, a->deadline, a->request->is_wait);

    if (rc == HF_ETIMEOUT)
        return hf_error_set(a->err, rc, "agentd did not answer in time");
    if (rc == HF_ECANCELED)
        return hf_error_set(a->err, rc, "interrupted");
    return rc == HF_OK ? rc : hf_error_set(a->err, rc, "poll: %s", strerror(errno));
}

int hf_request_connect(const struct hf_client *client, struct hf_error *err)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;

    if (fd < 0)
        return hf_error_set(err, HF_EIO, "no socket: %s", strerror(errno));
    if (connect(fd, (const struct sockaddr *)&client->address, sizeof client->address) == 0)
        return fd;
    error = errno;
    (void)close(fd);
    return hf_error_set(err, error == EACCES ? HF_EDENIED : HF_EAGAIN, "%s: %s",
                        client->address.sun_path, strerror(error));
}

void hf_request_format(const struct hf_client *client, const struct hf_request *request,
                       struct hf_buf *out)
{
    hf_buf_printf(out, "%s %s HTTP/1.%d\r\nHost: agentd\r\nAuthorization: Bearer %s\r\n",
                  request->method, request->path, request->keeps ? 1 : 0, client->token);
    if (request->type != NULL)
        hf_buf_printf(out, "Content-Type: %s\r\n", request->type);
    if (strcmp(request->method, "GET") != 0)
        hf_buf_printf(out, "Content-Length: %zu\r\n", request->body.len);
    hf_buf_puts(out, "\r\n");
}

/* Whoever refuses a body may answer before it has all of it and hang up: the answer counts. */
static int send_all(const struct attempt *a, struct hf_bytes bytes)
{
    const char *at = bytes.data;
    size_t left = bytes.len;

    while (left > 0) {
        ssize_t n = send(a->fd, at, left, MSG_NOSIGNAL);
        int rc = HF_OK;

        if (n > 0) {
            at += n;
            left -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            rc = wait_for(a, POLLOUT);
        } else if (n < 0 && errno != EINTR) {
            return HF_OK;
        }
        if (rc != HF_OK)
            return rc;
    }
    return HF_OK;
}

static int send_request(const struct attempt *a)
{
    HF_CLEANUP_BUF struct hf_buf head = { 0 };
    int rc;

    hf_request_format(a->client, a->request, &head);
    if (head.err != HF_OK)
        return hf_error_set(a->err, head.err, "%s", hf_err_text(head.err));
    rc = send_all(a, (struct hf_bytes){ head.data, head.len });
    return rc == HF_OK ? send_all(a, a->request->body) : rc;
}

static int write_all(const struct attempt *a, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(a->request->fd, data, len);

        if (n < 0 && errno != EINTR)
            return hf_error_set(a->err, HF_EIO, "the checkpoint could not be written: %s",
                                strerror(errno));
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        }
    }
    return HF_OK;
}

static int take_body(struct attempt *a, const char *data, size_t len)
{
    struct hf_answer *answer = a->answer;

    if (answer->head.length >= 0 && (int64_t)len > answer->head.length - a->got)
        return hf_error_set(a->err, HF_ECORRUPT, "agentd's answer is longer than it says");
    a->got += (int64_t)len;
    if (a->request->fd >= 0 && answer->head.status == 200) {
        a->has_written |= len > 0;
        return write_all(a, data, len);
    }
    hf_buf_append(&answer->body, data, len);
    if (answer->body.err != HF_OK)
        return hf_error_set(a->err, answer->body.err,
                            answer->body.err == HF_ELIMIT
                                ? "agentd's answer is longer than what was allowed for"
                                : "out of memory");
    return HF_OK;
}

static int take(struct attempt *a, const char *data, size_t len)
{
    struct hf_error what = { "" };
    int n;

    if (a->answer->head.status != 0)
        return take_body(a, data, len);
    hf_buf_append(&a->head, data, len);
    if (a->head.err != HF_OK)
        return hf_error_set(a->err, a->head.err, "out of memory");
    n = hf_head_parse(a->head.data, a->head.len, &a->answer->head, &what);
    if (n < 0)
        return hf_error_set(a->err, HF_ECORRUPT, "agentd's answer: %s", what.text);
    return n > 0 ? take_body(a, a->head.data + n, a->head.len - (size_t)n) : HF_OK;
}

static bool is_whole(const struct attempt *a)
{
    const struct hf_head *head = &a->answer->head;

    return head->status != 0 &&
           (head->status == 204 || (head->length >= 0 && a->got == head->length));
}

/* The other side has closed: is what came an answer? */
static int end_of(const struct attempt *a, int error)
{
    if (error == 0 && a->answer->head.status != 0 && a->answer->head.length < 0)
        return HF_OK;
    return hf_error_set(a->err, HF_EAGAIN, "agentd closed the connection %s",
                        a->answer->head.status != 0 ? "in the middle of its answer"
                                                    : "without an answer");
}

static int receive(struct attempt *a)
{
    char piece[PIECE_SIZE];
    int rc = HF_OK;

    while (rc == HF_OK && !is_whole(a)) {
        ssize_t n = recv(a->fd, piece, sizeof piece, 0);

        if (n > 0)
            rc = take(a, piece, (size_t)n);
        else if (n < 0 && errno == EAGAIN)
            rc = wait_for(a, POLLIN);
        else if (n == 0 || errno != EINTR)
            return end_of(a, n == 0 ? 0 : errno);
    }
    return rc;
}

static int try_once(struct attempt *a)
{
    HF_CLEANUP_FD int fd = hf_request_connect(a->client, a->err);
    int rc = fd >= 0 ? HF_OK : fd;

    if (rc == HF_OK) {
        a->fd = fd;
        a->deadline = hf_client_now() + a->client->timeout + a->request->timeout;
        a->got = 0;
        a->answer->head = (struct hf_head){ 0 };
        hf_buf_clear(&a->answer->body);
        rc = send_request(a);
    }
    if (rc == HF_OK)
        rc = receive(a);
    hf_buf_done(&a->head);
    return rc;
}

/* Answers that are not 2xx. */

static int code_of(int status, const char *code)
{
    switch (status) {
    case 401: return HF_EDENIED;
    case 404: return HF_ENOENT;
    case 409: return strcmp(code, "fenced") == 0 ? HF_EFENCED : HF_ECONFLICT;
    case 413:
    case 429: return HF_ELIMIT;
    case 500: return HF_ECORRUPT;
    case 503: return HF_EAGAIN;
    default: return status >= 400 && status < 500 ? HF_EINVAL : HF_ECORRUPT;
    }
}

int hf_request_refusal(int status, struct hf_bytes body, struct hf_error *err)
{
    char code[64] = "", message[200] = "", next[100] = "";
    const struct hf_field inner[] = {
        { .name = "code", .kind = HF_FIELD_CUT, .place = code, .size = sizeof code },
        { .name = "message", .kind = HF_FIELD_CUT, .place = message, .size = sizeof message },
        { .name = "next", .kind = HF_FIELD_CUT, .place = next, .size = sizeof next },
    };
    const struct hf_field outer = { .name = "error",
                                    .kind = HF_FIELD_OBJECT,
                                    .inner = inner,
                                    .size = sizeof inner / sizeof inner[0] };

    if (hf_fields_read(body.data, body.len, &outer, 1, NULL) != HF_OK || message[0] == '\0')
        return hf_error_set(err, code_of(status, ""), "agentd answered %d", status);
    return hf_error_set(err, code_of(status, code), next[0] != '\0' ? "%s (%s)" : "%s", message,
                        next);
}

/* Repetition. */

/* What a freeze of this process has added is not charged, nor what a request may take beyond
 * the ordinary: whoever thaws, or loses the link in the middle of a long one, is patient still.
 */
static hf_ms cost_of(const struct attempt *a, hf_ms began)
{
    hf_ms took = hf_client_now() - began;

    return took < a->client->timeout ? took : a->client->timeout;
}

/* True when it is time to ask again. */
static bool pause_before_next(const struct attempt *a, hf_ms pause)
{
    return hf_client_poll(a->client, -1, 0, hf_client_now() + pause, true) == HF_ETIMEOUT;
}

int hf_request_do(const struct hf_client *client, const struct hf_request *request,
                  struct hf_answer *answer, struct hf_error *err)
{
    struct attempt a = { .client = client, .request = request, .answer = answer, .err = err };
    hf_ms spent = 0;

    for (;;) {
        hf_ms began = hf_client_now(), pause = PAUSE_MS;
        int rc = try_once(&a), status = rc == HF_OK ? answer->head.status : 0;

        if (status >= 200 && status < 300)
            return status;
        if (rc == HF_OK)
            rc = hf_request_refusal(
                status, (struct hf_bytes){ answer->body.data, answer->body.len }, err);
        if (status == 429)
            pause = PAUSE_LONG_MS;
        else if (rc != HF_EAGAIN && rc != HF_ETIMEOUT)
            return rc;
        spent += cost_of(&a, began) + pause;
        if (request->only_once || a.has_written || spent > client->patience ||
            !pause_before_next(&a, pause))
            return rc;
    }
}

int hf_request_corrupt(int rc, struct hf_error *err)
{
    struct hf_error what = { "" };

    if (rc == HF_OK || rc == HF_ENOMEM)
        return rc;
    if (err != NULL)
        what = *err;
    return hf_error_set(err, HF_ECORRUPT, "agentd's answer: %.230s", what.text);
}

int hf_request_json(const struct hf_client *client, struct hf_request *request,
                    const struct hf_buf *body, struct hf_answer *answer, struct hf_error *err)
{
    if (body != NULL && body->err != HF_OK)
        return hf_error_set(err, body->err, "%s",
                            body->err == HF_EINVAL ? "a text is not UTF-8"
                                                   : hf_err_text(body->err));
    if (body != NULL) {
        request->type = "application/json";
        request->body = (struct hf_bytes){ body->data, body->len };
    }
    request->fd = -1;
    answer->body.limit = JSON_MAX;
    return hf_request_do(client, request, answer, err);
}

int hf_request_path(const char *id, const char *what, char path[HF_REQUEST_PATH_SIZE],
                    struct hf_error *err)
{
    int rc = hf_name_check("the task's id", id, err);

    if (rc == HF_OK)
        (void)snprintf(path, HF_REQUEST_PATH_SIZE, "/v1/tasks/%s%s%s", id,
                       what[0] != '\0' ? "/" : "", what);
    return rc;
}
