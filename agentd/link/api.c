#include "agentd/link/api.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/link/call.h"
#include "agentd/link/notify.h"
#include "base/alloc.h"
#include "base/log.h"
#include "io/httpd.h"

enum {
    MOST_CONNECTIONS =
        64,           /* of one agent: no more than it can use, so that it disturbs nobody */
    ALIVE_MS = 15000, /* between two signs of life to whoever listens to events */
    READ_BYTES = 16 << 10, /* of JSON take as long as another request */
};
#define ALIVE_TEXT "15000" /* the same, as whoever listens is promised it */

struct link_api {
    struct link_agent *agent;
    struct hf_httpd *httpd;
    struct link_notify *notify; /* NULL: there is none, which costs little */
    uv_timer_t alive;
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    uid_t user;                   /* that the agent runs as */
    struct link_bucket strangers; /* who ask without a token */
};

struct http_call {
    struct link_call call;
    struct hf_httpd_request *request;
    bool answered;
};

/* Answers. */

static void add_header(struct hf_httpd_request *request, const char *name, const char *value)
{
    if (value != NULL && hf_httpd_add_header(request, name, value) != HF_OK)
        HF_LOG_WARN("header_lost", HF_STR("name", name));
}

static void answer(struct link_call *call, const struct link_answer *given)
{
    struct http_call *http = (struct http_call *)call;
    const char *type = given->type != NULL ? given->type : "application/json";

    http->answered = true;
    add_header(http->request, "X-Holdfast-Seq", given->seq);
    add_header(http->request, "X-Holdfast-Sha256", given->sha256);
    add_header(http->request, "Retry-After", given->status == 429 ? "1" : NULL);
    if (given->has_file)
        hf_httpd_reply_file(http->request, (unsigned)given->status, type, given->file,
                            given->size);
    else
        hf_httpd_reply(http->request, (unsigned)given->status,
                       given->body.len > 0 ? type : NULL, given->body);
}

static void begin_events(struct link_call *call)
{
    struct http_call *http = (struct http_call *)call;

    add_header(http->request, "Cache-Control", "no-store");
    add_header(http->request, "X-Holdfast-Alive", ALIVE_TEXT);
    hf_httpd_stream(http->request, "text/event-stream");
}

static void end_events(struct link_call *call)
{
    struct http_call *http = (struct http_call *)call;

    http->answered = true;
    hf_httpd_end_stream(http->request);
}

/* Whoever does not read for so long that a megabyte waits loses this, and its connection. */
static bool send_event(struct link_call *call, const char *name, const char *data)
{
    struct http_call *http = (struct http_call *)call;
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_buf_printf(&text, "event: %s\ndata: %s\n\n", name, data);
    if (text.err == HF_OK &&
        hf_httpd_send(http->request, (struct hf_bytes){ text.data, text.len }) == HF_OK)
        return true;
    HF_LOG_WARN("event_lost", HF_STR("agent", call->process->who.agent), HF_STR("event", name));
    return false;
}

static const struct link_call_ops OPS = {
    .answer = answer,
    .begin_events = begin_events,
    .send_event = send_event,
    .end_events = end_events,
};

/* Shows to both sides whether the other one is still there. */
static void on_alive(uv_timer_t *timer)
{
    const struct link_api *api = timer->data;

    for (struct link_process *p = api->agent->processes; p != NULL; p = p->next) {
        for (struct link_call *call = p->listeners; call != NULL; call = call->next)
            (void)!hf_httpd_send(((struct http_call *)call)->request,
                                 hf_bytes_of(": alive\n\n"));
    }
}

/* Who asks. */

static bool is_same_text(const char *a, const char *b)
{
    size_t len = strlen(a);
    unsigned char differs = 0;

    if (len != strlen(b))
        return false;
    for (size_t i = 0; i < len; i++) /* in a time that tells nothing about where they differ */
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

static struct link_process *find_process(const struct link_api *api, const char *header)
{
    static const char SCHEME[] = "Bearer ";

    if (header == NULL || strncmp(header, SCHEME, sizeof SCHEME - 1) != 0)
        return NULL;
    for (struct link_process *p = api->agent->processes; p != NULL; p = p->next) {
        if (p->token[0] != '\0' && is_same_text(header + sizeof SCHEME - 1, p->token))
            return p;
    }
    return NULL;
}

static bool is_same_user(const struct link_api *api, const struct hf_httpd_request *request,
                         struct hf_httpd_peer *ret_peer)
{
    return hf_httpd_get_peer(request, ret_peer) == HF_OK &&
           (ret_peer->uid == api->user || ret_peer->uid == geteuid() || ret_peer->uid == 0);
}

static void refuse(struct hf_httpd_request *request, unsigned status, const char *code,
                   const char *message, const char *next)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    /* All of them constants: nothing needs escapes. */
    hf_buf_printf(&text, "{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"next\":\"%s\"}}\n",
                  code, message, next);
    hf_httpd_reply(request, status, "application/json",
                   (struct hf_bytes){ text.data, text.len });
}

/* How many requests its body is worth. What is stored as it is, or is too long to be looked at,
 * takes no time to read. */
static int64_t count_of(const struct hf_httpd_request *request)
{
    size_t len = hf_httpd_get_body(request).len;
    bool is_stored = strcmp(hf_httpd_get_method(request), "PUT") == 0 &&
                     !link_call_is_json(hf_httpd_get_header(request, "Content-Type"));

    return is_stored || len > LINK_JSON_MAX ? 1 : 1 + (int64_t)(len / READ_BYTES);
}

/* One that asks and asks gets no more of our time than it takes to say so. */
static bool is_too_often(struct link_api *api, struct link_process *process,
                         const struct hf_httpd_request *request)
{
    const struct link *link = api->agent->link;

    return !link_bucket_take(process != NULL ? &process->requests : &api->strangers,
                             link->settings->rate, count_of(request), link_now(link));
}

static void on_request(struct hf_httpd_request *request, void *arg)
{
    struct link_api *api = arg;
    struct link_process *process =
        find_process(api, hf_httpd_get_header(request, "Authorization"));
    struct hf_httpd_peer peer = { 0 };
    struct http_call *http;

    if (is_too_often(api, process, request)) {
        add_header(request, "Retry-After", "1");
        refuse(request, 429, "limit", "more requests per second than api.rate allows",
               "wait a second, and ask less often");
        return;
    }
    if (!is_same_user(api, request, &peer)) {
        refuse(request, 401, "denied", "this socket is for the user of the agent alone",
               "ask as that user");
        return;
    }
    if (process == NULL) {
        refuse(request, 401, "denied",
               "the token is missing, or not that of a process that runs",
               "send `Authorization: Bearer $HOLDFAST_TOKEN`");
        return;
    }
    http = hf_calloc(1, sizeof *http);
    if (http == NULL || api->agent->link->runner == NULL) {
        free(http);
        refuse(request, 503, "unavailable", "agentd is just starting, or ending",
               "try again in a moment");
        return;
    }
    http->request = request;
    http->call =
        (struct link_call){ .ops = &OPS,
                            .process = process,
                            .sender = peer.pid,
                            .method = hf_httpd_get_method(request),
                            .path = hf_httpd_get_path(request),
                            .content_type = hf_httpd_get_header(request, "Content-Type"),
                            .body = hf_httpd_get_body(request) };
    hf_httpd_set_user(request, http);
    link_process_speaks(process);
    link_call_serve(&http->call);
}

static void on_end(struct hf_httpd_request *request, void *arg)
{
    struct http_call *http = hf_httpd_get_user(request);
    const struct link_api *api = arg;

    if (http != NULL && !http->answered)
        link_call_cancel(&http->call);
    if (http != NULL && http->call.is_get)
        api->agent->gets--;
    free(http);
}

/* Life. */

static int make_path(const struct link_agent *agent, struct link_api *api, struct hf_error *err)
{
    const char *state_dir = link_channel_get_hello(agent->link->channel)->state_dir;
    char directory[AGENTD_PATH_BYTES + 16];
    int len =
        snprintf(api->path, sizeof api->path, "%s/agents/%s.sock", state_dir, agent->name);

    if (len >= (int)sizeof api->path)
        return hf_error_set(err, HF_ELIMIT,
                            "the path of its socket is too long (%d bytes, at most %zu): "
                            "choose a shorter --state-dir",
                            len, sizeof api->path - 1);
    (void)snprintf(directory, sizeof directory, "%s/agents", state_dir);
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return hf_error_set(err, HF_EIO, "%s: %s", directory, strerror(errno));
    return HF_OK;
}

static int listen_there(struct link_api *api, struct hf_error *err)
{
    size_t body_max = link_store_get_max(api->agent->link->store);
    char address[sizeof api->path + 8];
    struct hf_httpd_config cfg = { .listen = address,
                                   .user = api->user != geteuid() ? api->user : 0,
                                   .connections = MOST_CONNECTIONS,
                                   .body_max =
                                       body_max > LINK_JSON_MAX ? body_max : LINK_JSON_MAX,
                                   .on_request = on_request,
                                   .on_end = on_end,
                                   .arg = api };

    /* The directory is ours alone: whoever has put something there, or listens there, is none
     * of us. */
    (void)unlink(api->path);
    (void)snprintf(address, sizeof address, "unix:%s", api->path);
    return hf_httpd_new(&api->agent->link->loop, &cfg, &api->httpd, err);
}

/* Others may pass through the directories to what is theirs, and see nothing else. */
static int let_pass(const struct link_api *api, struct hf_error *err)
{
    char directory[sizeof api->path];

    (void)snprintf(directory, sizeof directory, "%s", api->path);
    for (int i = 0; i < 2; i++) {
        *strrchr(directory, '/') = '\0';
        if (chmod(directory, 0711) != 0)
            return hf_error_set(err, HF_EIO, "%s: %s", directory, strerror(errno));
    }
    return HF_OK;
}

static int give_rest(const struct link_api *api, struct hf_error *err)
{
    int rc = api->notify != NULL ? link_notify_give(api->notify, api->user, err) : HF_OK;

    return rc == HF_OK && api->user != geteuid() ? let_pass(api, err) : rc;
}

static int give(struct link_api *api, uid_t user, struct hf_error *err)
{
    if (user == api->user)
        return HF_OK;
    if (chown(api->path, user, (gid_t)-1) != 0)
        return hf_error_set(err, HF_EIO, "%s: %s", api->path, strerror(errno));
    api->user = user;
    return give_rest(api, err);
}

static void open_notify(struct link_api *api)
{
    const struct link *link = api->agent->link;
    struct hf_error err = { "" };

    if (link_notify_open(api->agent, link_channel_get_hello(link->channel)->state_dir,
                         &api->notify, &err) != HF_OK)
        HF_LOG_WARN("no_notify_socket", HF_STR("agent", api->agent->name),
                    HF_STR("why", err.text));
}

int link_api_open(struct link_agent *agent, uid_t user, struct hf_error *err)
{
    struct link_api *api;
    int rc;

    if (agent->api != NULL)
        return give(agent->api, user, err);
    api = hf_calloc(1, sizeof *api);
    if (api == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    api->agent = agent;
    api->user = user;
    rc = make_path(agent, api, err);
    if (rc == HF_OK)
        rc = listen_there(api, err);
    if (rc != HF_OK) {
        free(api);
        return rc;
    }
    (void)uv_timer_init(&agent->link->loop, &api->alive); /* which cannot fail */
    api->alive.data = api;
    (void)uv_timer_start(&api->alive, on_alive, ALIVE_MS, ALIVE_MS);
    agent->api = api;
    open_notify(api);
    if (agent->link->runner != NULL)
        link_notify_begin(api->notify);
    return give_rest(api, err);
}

void link_api_begin(struct link *link)
{
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        if (agent->api != NULL)
            link_notify_begin(agent->api->notify);
    }
    link_notify_drop_unused(link);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_httpd_closed(void *arg)
{
    struct link_api *api = arg;

    uv_close((uv_handle_t *)&api->alive, on_timer_closed);
}

void link_api_close(struct link_agent *agent)
{
    struct link_api *api = agent->api;

    if (api == NULL)
        return;
    agent->api = NULL;
    link_notify_close(api->notify);
    (void)uv_timer_stop(&api->alive);
    hf_httpd_close(api->httpd, on_httpd_closed, api);
}

const char *link_api_get_path(const struct link_api *api)
{
    return api->path;
}

const char *link_api_get_notify_path(const struct link_api *api)
{
    return api->notify != NULL ? link_notify_get_path(api->notify) : NULL;
}
