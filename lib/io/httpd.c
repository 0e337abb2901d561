#include "io/httpd.h"

#include <fcntl.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "io/httpd_listen.h"

enum {
    SWEEP_MS = 500,
    CONNECTIONS = 64,
    TIMEOUT_MS = 10000,
    PIECE = 16 << 10,
    FILE_PIECE = 64 << 10,
    BODIES = 4
};

#define HEADER_MAX ((size_t)16 << 10)
#define BODY_MAX   ((size_t)1 << 20)

/* One connection, whose requests come one after the other. */
struct connection {
    struct hf_httpd *httpd;
    struct connection *next, **at;
    struct hf_httpd_request *request; /* that is under way; NULL between two */
    int fd;
    hf_ms since; /* it waits for a request, or for the client to take a reply, since then */
    bool ours;   /* a request was told and is not answered: it may take any time */
};

struct hf_httpd_request {
    struct hf_httpd *httpd;
    struct MHD_Connection *mhd;
    struct connection *connection;
    const char *method, *path;
    struct hf_buf body;
    unsigned refusal; /* the status that its end is answered with, whatever else comes; or 0 */
    void *user;
    bool told;      /* to the owner */
    bool suspended; /* until there is something to send */
    bool failed;    /* no memory for its reply, or its client is gone: it is closed */
    bool queued;    /* MHD has the response */
    unsigned status;
    struct MHD_Response *response;

    int file; /* that the reply is read from; valid with has_file */
    bool has_file;
    bool streams, ended;
    struct hf_buf out; /* of the stream: from `taken` on */
    size_t taken;
    struct {
        char *name, *value;
    } headers[8];
    size_t header_count;
};

struct hf_httpd {
    struct hf_httpd_config cfg;
    struct MHD_Daemon *daemon;
    struct hf_httpd_listener listener;
    uv_poll_t poll;
    uv_timer_t timer; /* MHD's own deadlines */
    uv_idle_t soon;   /* it has more to do at once */
    uv_timer_t sweep; /* ours */
    unsigned handles;
    bool woken; /* somebody who slept, or waits for a place, since the last run */
    struct connection *connections;
    size_t count; /* of them */
    size_t held;  /* bytes of all bodies */
    hf_httpd_closed_fn closed_fn;
    void *closed_arg;
};

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* The loop. */

static void on_timer(uv_timer_t *timer);
static void on_soon(uv_idle_t *soon);
static void wake(struct hf_httpd_request *request);

/* In the next turn of the loop. A timer of no time would do as well, but one that is set again
 * in its own turn may come again in it: who sends without a pause, and there is always more of
 * that, would have the loop for itself. */
static void run_soon(struct hf_httpd *httpd)
{
    if (!uv_is_closing((uv_handle_t *)&httpd->soon))
        (void)uv_idle_start(&httpd->soon, on_soon);
}

static void run_daemon(struct hf_httpd *httpd)
{
    MHD_UNSIGNED_LONG_LONG wait = 0;
    bool waits;

    httpd->woken = false;
    (void)uv_idle_stop(&httpd->soon);
    (void)uv_timer_stop(&httpd->timer);
    (void)MHD_run(httpd->daemon);
    waits = MHD_get_timeout(httpd->daemon, &wait) == MHD_YES;
    if (httpd->woken || (waits && wait == 0)) /* woken amid the run, which MHD does not count */
        run_soon(httpd);
    else if (waits)
        (void)uv_timer_start(&httpd->timer, on_timer, wait, 0);
}

static void on_timer(uv_timer_t *timer)
{
    run_daemon(timer->data);
}

static void on_soon(uv_idle_t *soon)
{
    run_daemon(soon->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run_daemon(poll->data);
}

/* Not one who only has nothing more to say; over TCP the two look the same. */
static bool is_gone(const struct connection *c)
{
    struct pollfd hangup = { .fd = c->fd };

    return poll(&hangup, 1, 0) == 1 && (hangup.revents & (POLLHUP | POLLERR)) != 0;
}

static void on_sweep(uv_timer_t *timer);

/* All servers of a loop sweep at the same time, and none that has nobody to look at: a process
 * with many of them is not woken for each. */
static void plan_sweep(struct hf_httpd *httpd)
{
    if (httpd->connections != NULL && !uv_is_closing((uv_handle_t *)&httpd->sweep))
        (void)uv_timer_start(&httpd->sweep, on_sweep,
                             SWEEP_MS - uv_now(httpd->sweep.loop) % SWEEP_MS, 0);
}

/* A client that trickles is not idle, so MHD would let it: its time is up all the same. Nor
 * does MHD notice that the client of a suspended connection is gone. */
static void on_sweep(uv_timer_t *timer)
{
    struct hf_httpd *httpd = timer->data;
    hf_ms late = now() - httpd->cfg.timeout;

    for (struct connection *c = httpd->connections; c != NULL; c = c->next) {
        struct hf_httpd_request *request = c->request;

        if (!c->ours && c->since < late)
            (void)shutdown(c->fd, SHUT_RDWR);
        if (request != NULL && request->suspended && is_gone(c)) {
            request->failed = true;
            wake(request);
        }
    }
    plan_sweep(httpd);
}

/* Connections. */

static void on_connection(void *arg, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct hf_httpd *httpd = arg;
    struct connection *c = *socket_context;
    const union MHD_ConnectionInfo *info;

    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        /* There is room, which MHD sees when it runs the next time. */
        if (httpd->count-- >= httpd->cfg.connections)
            httpd->woken = true;
        if (c == NULL)
            return;
        if (c->next != NULL)
            c->next->at = c->at;
        *c->at = c->next;
        free(c);
        return;
    }
    httpd->count++;
    info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    c = hf_calloc(1, sizeof *c);
    *socket_context = c;
    if (c == NULL || info == NULL)
        return;
    *c = (struct connection){ .httpd = httpd,
                              .next = httpd->connections,
                              .at = &httpd->connections,
                              .fd = info->connect_fd,
                              .since = now() };
    if (c->next != NULL)
        c->next->at = &c->next;
    httpd->connections = c;
    if (!uv_is_active((uv_handle_t *)&httpd->sweep))
        plan_sweep(httpd);
}

static void drop_body(struct hf_httpd_request *request)
{
    request->httpd->held -= request->body.len;
    hf_buf_done(&request->body);
}

static void free_request(struct hf_httpd_request *request)
{
    drop_body(request);
    hf_buf_done(&request->out);
    for (size_t i = 0; i < request->header_count; i++) {
        free(request->headers[i].name);
        free(request->headers[i].value);
    }
    if (request->response != NULL)
        MHD_destroy_response(request->response);
    if (request->has_file)
        (void)close(request->file);
    free(request);
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **slot,
                         enum MHD_RequestTerminationCode code)
{
    struct hf_httpd *httpd = arg;
    struct hf_httpd_request *request = *slot;

    (void)mhd;
    (void)code;
    if (request == NULL)
        return;
    *slot = NULL;
    request->connection->request = NULL;
    request->connection->ours = false;
    request->connection->since = now();
    if (request->told && httpd->cfg.on_end != NULL)
        httpd->cfg.on_end(request, httpd->cfg.arg);
    free_request(request);
}

/* Requests. */

static struct hf_httpd_request *begin_request(struct hf_httpd *httpd,
                                              struct MHD_Connection *mhd, const char *path,
                                              const char *method)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info != NULL ? info->socket_context : NULL;
    struct hf_httpd_request *request;

    if (connection == NULL)
        return NULL;
    request = hf_calloc(1, sizeof *request);
    if (request == NULL)
        return NULL;
    request->httpd = httpd;
    request->mhd = mhd;
    request->connection = connection;
    request->method = method;
    request->path = path;
    request->body.limit = httpd->cfg.body_max + 1;
    connection->request = request;
    return request;
}

/* The status of a refusal of so many more bytes, or 0. */
static unsigned judge(const struct hf_httpd_request *request, unsigned long long more)
{
    const struct hf_httpd *httpd = request->httpd;

    if (more > httpd->cfg.body_max - request->body.len)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    return more > httpd->cfg.bodies_max - httpd->held ? MHD_HTTP_SERVICE_UNAVAILABLE : 0;
}

static unsigned judge_length(const struct hf_httpd_request *request)
{
    const char *text =
        MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, "Content-Length");

    return judge(request, text != NULL ? strtoull(text, NULL, 10) : 0);
}

/* MHD lets nobody answer in the middle of a body. So one that grows too long without having
 * announced it is read to its end, or until its time is up, and none of it is kept. */
static enum MHD_Result take_body(struct hf_httpd_request *request, const char *data,
                                 size_t *len)
{
    if (request->refusal == 0)
        request->refusal = judge(request, *len);
    if (request->refusal != 0) {
        drop_body(request);
        *len = 0;
        return MHD_YES;
    }
    hf_buf_append(&request->body, data, *len);
    if (request->body.err != HF_OK)
        return MHD_NO;
    request->httpd->held += *len;
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result refuse(struct hf_httpd_request *request, unsigned status)
{
    bool too_large = status == MHD_HTTP_CONTENT_TOO_LARGE;
    char text[256];
    int len =
        snprintf(text, sizeof text,
                 "{\"error\":{\"code\":\"%s\",\"message\":\"%s %zu bytes\",\"next\":\"%s\"}}\n",
                 too_large ? "too_large" : "unavailable",
                 too_large ? "a body may have at most"
                           : "all bodies that are under way may have at most",
                 too_large ? request->httpd->cfg.body_max : request->httpd->cfg.bodies_max,
                 too_large ? "send less" : "try again in a moment");
    struct MHD_Response *response =
        MHD_create_response_from_buffer((size_t)len, text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result rc;

    if (response == NULL)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Connection", "close");
    (void)MHD_add_response_header(response, "Content-Type", "application/json");
    if (!too_large)
        (void)MHD_add_response_header(response, "Retry-After", "1");
    rc = MHD_queue_response(request->mhd, status, response);
    MHD_destroy_response(response);
    return rc;
}

static enum MHD_Result queue(struct hf_httpd_request *request)
{
    if (request->failed || request->response == NULL)
        return MHD_NO;
    request->queued = true;
    request->connection->ours = request->streams; /* a stream may be silent for long */
    request->connection->since = now();
    return MHD_queue_response(request->mhd, request->status, request->response);
}

/* All of it is there: it is told, and waits unless it was answered at once. */
static enum MHD_Result tell(struct hf_httpd_request *request)
{
    request->told = true;
    request->connection->ours = true;
    request->httpd->cfg.on_request(request, request->httpd->cfg.arg);
    if (request->response != NULL || request->failed)
        return queue(request);
    request->suspended = true;
    MHD_suspend_connection(request->mhd);
    return MHD_YES;
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *mhd, const char *path,
                                 const char *method, const char *version, const char *data,
                                 size_t *len, void **slot)
{
    struct hf_httpd_request *request = *slot;
    unsigned status;

    (void)version;
    if (request == NULL) {
        request = begin_request(arg, mhd, path, method);
        *slot = request;
        if (request == NULL)
            return MHD_NO;
        status = judge_length(request);
        return status != 0 ? refuse(request, status) : MHD_YES;
    }
    if (*len > 0)
        return take_body(request, data, len);
    if (request->refusal != 0)
        return refuse(request, request->refusal);
    if (!request->told)
        return tell(request);
    return request->queued ? MHD_YES : queue(request);
}

/* What the owner asks of a request. */

const char *hf_httpd_get_method(const struct hf_httpd_request *request)
{
    return request->method;
}

const char *hf_httpd_get_path(const struct hf_httpd_request *request)
{
    return request->path;
}

const char *hf_httpd_get_query(const struct hf_httpd_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *hf_httpd_get_header(const struct hf_httpd_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, name);
}

struct hf_bytes hf_httpd_get_body(const struct hf_httpd_request *request)
{
    return (struct hf_bytes){ .data = request->body.data, .len = request->body.len };
}

int hf_httpd_get_peer(const struct hf_httpd_request *request, struct hf_httpd_peer *ret_peer)
{
    struct ucred peer;
    socklen_t len = sizeof peer;

    if (request->httpd->listener.port != 0 ||
        getsockopt(request->connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
        return HF_ENOENT;
    *ret_peer = (struct hf_httpd_peer){ .uid = peer.uid, .gid = peer.gid, .pid = peer.pid };
    return HF_OK;
}

void hf_httpd_set_user(struct hf_httpd_request *request, void *user)
{
    request->user = user;
}

void *hf_httpd_get_user(const struct hf_httpd_request *request)
{
    return request->user;
}

int hf_httpd_add_header(struct hf_httpd_request *request, const char *name, const char *value)
{
    size_t i = request->header_count;

    if (i == sizeof request->headers / sizeof request->headers[0])
        return HF_ELIMIT;
    request->headers[i].name = hf_strdup(name);
    request->headers[i].value = hf_strdup(value);
    request->header_count++; /* also when one is missing: both are freed with the request */
    return request->headers[i].name != NULL && request->headers[i].value != NULL ? HF_OK
                                                                                 : HF_ENOMEM;
}

/* Replies. */

static void wake(struct hf_httpd_request *request)
{
    if (!request->suspended)
        return;
    request->suspended = false;
    request->httpd->woken = true;
    MHD_resume_connection(request->mhd);
    run_soon(request->httpd);
}

static void answer(struct hf_httpd_request *request, unsigned status, const char *type,
                   struct MHD_Response *response)
{
    bool fine = response != NULL;

    if (fine && type != NULL)
        fine = MHD_add_response_header(response, "Content-Type", type) == MHD_YES;
    for (size_t i = 0; fine && i < request->header_count; i++)
        fine = request->headers[i].name != NULL && request->headers[i].value != NULL &&
               MHD_add_response_header(response, request->headers[i].name,
                                       request->headers[i].value) == MHD_YES;
    request->response = response;
    request->status = status;
    request->failed = !fine;
    wake(request);
}

void hf_httpd_reply(struct hf_httpd_request *request, unsigned status, const char *type,
                    struct hf_bytes body)
{
    static char nothing;
    void *data = body.len > 0 ? (void *)body.data : &nothing;

    if (request->response == NULL)
        answer(request, status, type,
               MHD_create_response_from_buffer(body.len, data, MHD_RESPMEM_MUST_COPY));
}

/* Whoever takes some of it has its time anew for the rest. */
static ssize_t read_from_file(void *arg, uint64_t pos, char *out, size_t max)
{
    struct hf_httpd_request *request = arg;
    ssize_t n = pread(request->file, out, max, (off_t)pos);

    request->connection->since = now();
    return n > 0 ? n : MHD_CONTENT_READER_END_WITH_ERROR;
}

void hf_httpd_reply_file(struct hf_httpd_request *request, unsigned status, const char *type,
                         int file, int64_t size)
{
    if (request->response != NULL)
        return;
    request->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
    request->has_file = request->file >= 0;
    answer(request, status, type,
           request->has_file ? MHD_create_response_from_callback((uint64_t)size, FILE_PIECE,
                                                                 read_from_file, request, NULL)
                             : NULL);
}

/* Hands out what is there; without anything the connection sleeps until there is. */
static ssize_t read_stream(void *arg, uint64_t pos, char *out, size_t max)
{
    struct hf_httpd_request *request = arg;
    size_t left = request->out.len - request->taken;
    size_t n = left < max ? left : max;

    (void)pos;
    if (request->failed)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    if (n == 0 && request->ended)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == 0) {
        request->suspended = true;
        MHD_suspend_connection(request->mhd);
        return 0;
    }
    memcpy(out, request->out.data + request->taken, n);
    request->taken += n;
    if (request->taken == request->out.len) {
        hf_buf_clear(&request->out);
        request->taken = 0;
    }
    return (ssize_t)n;
}

void hf_httpd_stream(struct hf_httpd_request *request, const char *type)
{
    if (request->response != NULL)
        return;
    request->streams = true;
    request->out.limit = request->httpd->cfg.stream_max;
    answer(
        request, MHD_HTTP_OK, type,
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE, read_stream, request, NULL));
}

/* Who does not read would not see the end of a stream either; and MHD waits for it. */
static void cut_off(struct hf_httpd_request *request)
{
    request->failed = true;
    (void)shutdown(request->connection->fd, SHUT_RDWR);
    if (request->queued)
        wake(request);
}

int hf_httpd_send(struct hf_httpd_request *request, struct hf_bytes piece)
{
    if (request->taken > 0) { /* what was taken makes room */
        memmove(request->out.data, request->out.data + request->taken,
                request->out.len - request->taken);
        request->out.len -= request->taken;
        request->taken = 0;
    }
    if (request->out.len + piece.len > request->httpd->cfg.stream_max) {
        cut_off(request);
        return HF_ELIMIT;
    }
    hf_buf_append(&request->out, piece.data, piece.len);
    if (request->out.err != HF_OK)
        return request->out.err;
    if (request->queued)
        wake(request);
    return HF_OK;
}

void hf_httpd_end_stream(struct hf_httpd_request *request)
{
    request->ended = true;
    if (request->queued)
        wake(request);
}

/* Life. */

static void set_defaults(struct hf_httpd_config *cfg)
{
    cfg->mode = cfg->mode != 0 ? cfg->mode : 0600;
    cfg->connections = cfg->connections != 0 ? cfg->connections : CONNECTIONS;
    cfg->header_max = cfg->header_max != 0 ? cfg->header_max : HEADER_MAX;
    cfg->body_max = cfg->body_max != 0 ? cfg->body_max : BODY_MAX;
    cfg->bodies_max = cfg->bodies_max != 0 ? cfg->bodies_max : BODIES * cfg->body_max;
    cfg->stream_max = cfg->stream_max != 0 ? cfg->stream_max : BODY_MAX;
    cfg->timeout = cfg->timeout != 0 ? cfg->timeout : TIMEOUT_MS;
}

static struct MHD_Daemon *start_daemon(struct hf_httpd *httpd)
{
    const struct hf_httpd_config *cfg = &httpd->cfg;

    /* Turbo: a request is read as soon as its connection is accepted, in the same turn. */
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO, 0, NULL, NULL, on_access,
        httpd, MHD_OPTION_LISTEN_SOCKET, httpd->listener.fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)cfg->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, cfg->header_max + PIECE,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, httpd, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, httpd, MHD_OPTION_END);
}

static void free_httpd(struct hf_httpd *httpd)
{
    hf_httpd_closed_fn fn = httpd->closed_fn;
    void *arg = httpd->closed_arg;

    free(httpd);
    if (fn != NULL)
        fn(arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct hf_httpd *httpd = handle->data;

    if (--httpd->handles == 0)
        free_httpd(httpd);
}

static bool watch(struct hf_httpd *httpd, uv_loop_t *loop)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(httpd->daemon, MHD_DAEMON_INFO_EPOLL_FD);

    httpd->poll.data = httpd->timer.data = httpd->soon.data = httpd->sweep.data = httpd;
    if (info == NULL || uv_poll_init(loop, &httpd->poll, info->epoll_fd) != 0)
        return false;
    (void)uv_timer_init(loop, &httpd->timer);
    (void)uv_timer_init(loop, &httpd->sweep);
    (void)uv_idle_init(loop, &httpd->soon);
    httpd->handles = 4;
    return uv_poll_start(&httpd->poll, UV_READABLE, on_poll) == 0;
}

int hf_httpd_new(uv_loop_t *loop, const struct hf_httpd_config *cfg,
                 struct hf_httpd **ret_httpd, struct hf_error *err)
{
    struct hf_httpd *httpd = hf_calloc(1, sizeof *httpd);
    int rc;

    if (httpd == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    httpd->cfg = *cfg;
    set_defaults(&httpd->cfg);
    rc = hf_httpd_listen(&httpd->cfg, &httpd->listener, err);
    if (rc != HF_OK) {
        free(httpd);
        return rc;
    }
    httpd->cfg.listen = NULL;
    httpd->daemon = start_daemon(httpd);
    if (httpd->daemon == NULL) {
        (void)close(httpd->listener.fd);
        free(httpd);
        return hf_error_set(err, HF_EIO, "the HTTP server does not start");
    }
    if (!watch(httpd, loop)) {
        hf_httpd_close(httpd, NULL, NULL);
        return hf_error_set(err, HF_EIO, "the HTTP server cannot be watched");
    }
    *ret_httpd = httpd;
    return HF_OK;
}

/* MHD insists that nothing is suspended when it stops. */
static void wake_all(struct hf_httpd *httpd)
{
    struct hf_httpd_request *request;

    for (struct connection *c = httpd->connections; c != NULL; c = c->next) {
        request = c->request;
        if (request == NULL || !request->suspended)
            continue;
        request->failed = request->response == NULL;
        request->ended = true;
        wake(request);
    }
}

void hf_httpd_close(struct hf_httpd *httpd, hf_httpd_closed_fn fn, void *arg)
{
    httpd->closed_fn = fn;
    httpd->closed_arg = arg;
    wake_all(httpd);
    if (httpd->handles > 0) { /* before the descriptor that it watches is closed */
        uv_close((uv_handle_t *)&httpd->poll, on_handle_closed);
        uv_close((uv_handle_t *)&httpd->timer, on_handle_closed);
        uv_close((uv_handle_t *)&httpd->soon, on_handle_closed);
        uv_close((uv_handle_t *)&httpd->sweep, on_handle_closed);
    }
    MHD_stop_daemon(httpd->daemon);
    if (httpd->listener.path[0] != '\0')
        (void)unlink(httpd->listener.path);
    if (httpd->handles == 0)
        free_httpd(httpd);
}

uint16_t hf_httpd_get_port(const struct hf_httpd *httpd)
{
    return httpd->listener.port;
}
