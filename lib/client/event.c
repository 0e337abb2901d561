#include "client/event.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/str.h"
#include "client/fields.h"
#include "client/private.h"
#include "client/request.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
    AGAIN_MS = 200,    /* agentd is being replaced */
    REFUSED_MS = 5000, /* it does not want to talk to us */
    ALIVE_MS = 15000,  /* between two signs of life, unless agentd says how long */
    ALIVE_MAX = 3600000,
    MISSED = 3 /* signs of life that did not come: it is not there any more */
};
#define PIECE_SIZE ((size_t)4 << 10)

/* Meaning. */

static const struct {
    const char *name;
    enum hf_client_event_kind kind;
    const char *length; /* the member that is one; NULL: there is none */
} KINDS[] = {
    { "ping", HF_CLIENT_EVENT_PING, NULL },
    { "task", HF_CLIENT_EVENT_TASK, NULL },
    { "jeopardy", HF_CLIENT_EVENT_JEOPARDY, NULL },
    { "thawed", HF_CLIENT_EVENT_THAWED, "frozenFor" },
    { "nudge", HF_CLIENT_EVENT_NUDGE, NULL },
    { "stop", HF_CLIENT_EVENT_STOP, "grace" },
};

static bool needs_id(enum hf_client_event_kind kind)
{
    return kind == HF_CLIENT_EVENT_PING || kind == HF_CLIENT_EVENT_TASK ||
           kind == HF_CLIENT_EVENT_NUDGE;
}

int hf_client_event_parse(struct hf_bytes name, struct hf_bytes data,
                          struct hf_client_event *ret_event, struct hf_error *err)
{
    struct hf_client_event event = { .length = 0 };
    struct hf_field fields[] = {
        { "id", HF_FIELD_NAME, event.id, sizeof event.id, NULL },
        { "text", HF_FIELD_CUT, event.text, sizeof event.text, NULL },
        { .name = "until", .kind = HF_FIELD_TIME, .place = &event.until_wall },
        { .kind = HF_FIELD_DURATION, .place = &event.length },
    };
    size_t i = 0;
    int rc;

    while (i < COUNT(KINDS) && (strlen(KINDS[i].name) != name.len ||
                                memcmp(KINDS[i].name, name.data, name.len) != 0))
        i++;
    if (i == COUNT(KINDS))
        return 0;
    event.kind = KINDS[i].kind;
    fields[3].name = KINDS[i].length;
    rc = hf_fields_read(data.data, data.len, fields,
                        COUNT(fields) - (KINDS[i].length == NULL ? 1 : 0), err);
    if (rc != HF_OK)
        return rc;
    if (needs_id(event.kind) && event.id[0] == '\0')
        return hf_error_set(err, HF_EINVAL, "%s: without its id", KINDS[i].name);
    *ret_event = event;
    return 1;
}

/* The stream. */

/* Lets `ready` be so, then; at once for 0. */
static void wake_after(const struct hf_client *client, hf_ms after)
{
    struct itimerspec spec = { .it_value = { .tv_sec = after / 1000,
                                             .tv_nsec = after % 1000 * 1000000 } };

    if (after <= 0)
        spec.it_value = (struct timespec){ .tv_nsec = 1 };
    (void)timerfd_settime(client->timer, 0, &spec, NULL); /* which cannot fail */
}

static void set_timer(struct hf_client *client, hf_ms after)
{
    client->due = hf_client_now() + after;
    wake_after(client, after);
}

int hf_client_get_fd(struct hf_client *client)
{
    if (!client->has_begun) {
        client->has_begun = true;
        set_timer(client, 0);
    }
    return client->ready;
}

static void hang_up(struct hf_client *client, hf_ms pause)
{
    if (client->stream >= 0) {
        /* Not by closing it alone, where a child of this process has it, too. */
        (void)epoll_ctl(client->ready, EPOLL_CTL_DEL, client->stream, NULL);
        (void)close(client->stream);
    }
    client->stream = -1;
    client->has_head = client->is_cut = false;
    client->silence = (hf_ms)MISSED * ALIVE_MS;
    client->used = 0;
    hf_buf_clear(&client->input);
    hf_sse_clear(&client->sse);
    set_timer(client, pause);
}

/* The request is so short that a socket that nobody has written to takes it at once. */
static bool send_request(const struct hf_client *client, int fd)
{
    struct hf_request request = { .method = "GET", .path = "/v1/events" };
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_request_format(client, &request, &text);
    return text.err == HF_OK &&
           send(fd, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len;
}

/* HF_EAGAIN: later. */
static int connect_stream(struct hf_client *client, struct hf_error *err)
{
    struct epoll_event event = { .events = EPOLLIN };
    int fd = hf_request_connect(client, err);

    hang_up(client, fd == HF_EAGAIN ? AGAIN_MS : REFUSED_MS);
    if (fd < 0)
        return fd;
    client->stream = fd;
    if (epoll_ctl(client->ready, EPOLL_CTL_ADD, fd, &event) != 0 || !send_request(client, fd)) {
        hang_up(client, AGAIN_MS);
        return HF_EAGAIN;
    }
    set_timer(client, client->silence);
    return HF_OK;
}

/* Takes what has come. HF_EAGAIN: nothing. */
static int read_stream(struct hf_client *client)
{
    char *room;
    ssize_t n;

    if (client->used > 0) { /* all of it: what is left over is taken before more is read */
        hf_buf_clear(&client->input);
        client->used = 0;
    }
    room = hf_buf_reserve(&client->input, PIECE_SIZE);
    if (room == NULL)
        return client->input.err;
    do
        n = recv(client->stream, room, PIECE_SIZE, 0);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        client->input.len += (size_t)n;
        set_timer(client, client->silence);
        return HF_OK;
    }
    if (n < 0 && errno == EAGAIN)
        return HF_EAGAIN;
    if (client->has_head || client->input.len == 0 || client->is_cut)
        hang_up(client, AGAIN_MS);
    else
        client->is_cut = true; /* it may be a refusal: what there is of that counts */
    return HF_OK;
}

/* Whether the sentence that belongs to a refusal has come, or never will. */
static bool is_there(const struct hf_client *client, int head_len, int64_t body_len)
{
    return client->is_cut || body_len > HF_HEAD_MAX ||
           (int64_t)client->input.len - head_len >= body_len;
}

/* 1 when the head was taken, 0 when more has to come. */
static int take_head(struct hf_client *client, struct hf_error *err)
{
    struct hf_head head;
    struct hf_error what = { "" };
    int n = hf_head_parse(client->input.data, client->input.len, &head, &what), rc;

    if (n == 0 || (n > 0 && head.status != 200 && !is_there(client, n, head.length)))
        return 0;
    if (n < 0) {
        hang_up(client, REFUSED_MS);
        return hf_error_set(err, HF_ECORRUPT, "agentd's answer: %s", what.text);
    }
    if (head.status == 200) {
        client->used = (size_t)n;
        client->has_head = true;
        if (head.alive > 0 && head.alive <= ALIVE_MAX)
            client->silence = MISSED * head.alive;
        set_timer(client, client->silence);
        return 1;
    }
    rc = hf_request_refusal(
        head.status, (struct hf_bytes){ client->input.data + n, client->input.len - (size_t)n },
        err);
    hang_up(client, head.status == 503 || head.status == 429 ? AGAIN_MS : REFUSED_MS);
    return head.status == 503 || head.status == 429 ? 0 : rc;
}

/* The next event of what was read. 1: *ret_event; 0: there is none. */
static int take_event(struct hf_client *client, struct hf_client_event *ret_event,
                      struct hf_error *err)
{
    struct hf_sse *sse = &client->sse;
    int rc = 0;

    while (rc == 0 && client->used < client->input.len) {
        size_t used;

        rc = hf_sse_feed(sse, client->input.data + client->used,
                         client->input.len - client->used, &used);
        client->used += used;
        if (rc == 1)
            rc = hf_client_event_parse((struct hf_bytes){ sse->name.data, sse->name.len },
                                       (struct hf_bytes){ sse->data.data, sse->data.len },
                                       ret_event, err);
        else if (rc < 0)
            (void)hf_error_set(err, rc, "an event: %s", hf_err_text(rc));
    }
    return rc < 0 ? hf_request_corrupt(rc, err) : rc;
}

/* Whatever is there already. 1, 0 or an error. */
static int look(struct hf_client *client, struct hf_client_event *ret_event,
                struct hf_error *err)
{
    for (;;) {
        hf_ms left;
        int rc;

        if (client->stream < 0) {
            if (client->has_begun && hf_client_now() < client->due)
                return 0;
            client->has_begun = true;
            rc = connect_stream(client, err);
            if (rc != HF_OK)
                return rc == HF_EAGAIN ? 0 : rc;
        }
        if (!client->has_head && client->input.len > 0) {
            rc = take_head(client, err);
            if (rc < 0)
                return rc;
        }
        rc = client->has_head ? take_event(client, ret_event, err) : 0;
        if (rc != 0)
            return rc;
        if (client->stream < 0)
            continue;
        rc = read_stream(client);
        left = client->due - hf_client_now();
        if (rc == HF_EAGAIN && left > 0) {
            wake_after(client, left); /* and no more because of what was left over */
            return 0;
        }
        if (rc == HF_EAGAIN)
            hang_up(client, 0); /* it has been silent for too long */
        else if (rc != HF_OK)
            return hf_error_set(err, rc, "out of memory");
    }
}

/* Pings. */

/* What was said to the answers before is of no interest. False: nobody is there any more. */
static bool skip_input(int fd)
{
    char text[1024];
    ssize_t n;

    do
        n = recv(fd, text, sizeof text, 0);
    while (n > 0 || (n < 0 && errno == EINTR));
    return n < 0 && errno == EAGAIN;
}

static void format_pong(const struct hf_client *client, const char *id, struct hf_buf *text)
{
    struct hf_request request = {
        .method = "POST", .path = "/v1/pong", .type = "application/json", .keeps = true
    };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    hf_fields_begin(&body);
    hf_fields_add_text(&body, "id", id);
    hf_fields_end(&body);
    request.body = (struct hf_bytes){ body.data, body.len };
    hf_request_format(client, &request, text);
    hf_buf_append(text, body.data, body.len);
}

/* There is one every few seconds for as long as we live, so its connection is kept, and nobody
 * is woken by what agentd says to it: one that is lost is asked for anew. */
static void answer_ping(struct hf_client *client, const char *id)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    format_pong(client, id, &text);
    for (int tries = 0; tries < 2 && text.err == HF_OK; tries++) {
        if (client->pongs < 0)
            client->pongs = hf_request_connect(client, NULL);
        if (client->pongs < 0)
            return;
        if (skip_input(client->pongs) &&
            send(client->pongs, text.data, text.len, MSG_NOSIGNAL) == (ssize_t)text.len)
            return;
        (void)close(client->pongs);
        client->pongs = -1;
    }
}

int hf_client_next_event(struct hf_client *client, hf_ms timeout,
                         struct hf_client_event *ret_event, struct hf_error *err)
{
    hf_ms deadline = hf_client_now();
    int rc;

    deadline += timeout < 0 || timeout > HF_DURATION_MAX ? HF_DURATION_MAX : timeout;
    do {
        if (hf_client_is_interrupted(client))
            return hf_error_set(err, HF_ECANCELED, "interrupted");
        rc = look(client, ret_event, err);
        if (rc != 0)
            break;
        rc = hf_client_poll(client, client->ready, POLLIN, deadline, true);
    } while (rc == HF_OK || rc == HF_ECANCELED);
    if (rc == 1 && ret_event->kind == HF_CLIENT_EVENT_PING && !client->pongs_by_hand)
        answer_ping(client, ret_event->id);
    if (client->has_head && client->used < client->input.len)
        wake_after(client, 0); /* there is more, which the socket does not know of any more */
    if (rc == HF_EIO)
        return hf_error_set(err, rc, "the descriptors of this client cannot be waited for");
    return rc == HF_ETIMEOUT ? 0 : rc;
}
