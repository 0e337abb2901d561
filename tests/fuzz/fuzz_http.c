/* Whatever is said on an agent's socket: every answer is one that is documented, nothing of a
 * request is left when its client is gone, and the link goes on.
 *
 *     $TOKEN  the token      \x1d  another connection      \x1e  a moment passes
 *                            \x1c  nothing more is said    \x1f  a quarter of a minute does */
#include <fcntl.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "link/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    CONNECTIONS = 6,
    RESTS = 3,
    MOMENT_MS = 20,
    LONG_MS = 15000,
    SWEEP_MS = 1200,
    PATIENCE_MS = 10000
};

static struct connection {
    int fd;
    struct hf_buf said, heard;
} connections[CONNECTIONS];
static size_t count;

static void connect_another(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct connection *c = &connections[count++];

    (void)strncpy(address.sun_path, fuzz_link_get_path("agents/a1.sock"),
                  sizeof address.sun_path - 1);
    *c = (struct connection){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    fuzz_must(c->fd >= 0 &&
              connect(c->fd, (const struct sockaddr *)&address, sizeof address) == 0);
    fuzz_must(fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0);
}

static void hear(struct connection *c)
{
    char text[4096];
    ssize_t len;

    while ((len = recv(c->fd, text, sizeof text, MSG_DONTWAIT)) > 0)
        hf_buf_append(&c->heard, text, (size_t)len);
}

/* What is heard meanwhile is taken, or whoever sends it would wait. */
static void pass(hf_ms length)
{
    hf_ms part = length > MOMENT_MS ? SWEEP_MS : MOMENT_MS;

    for (hf_ms at = 0; at < length; at += part) {
        fuzz_link_wait(part);
        for (size_t i = 0; i < count; i++)
            hear(&connections[i]);
    }
}

static void flush(struct connection *c)
{
    if (c->said.len > 0) /* whoever has hung up hears no more of it */
        (void)!send(c->fd, c->said.data, c->said.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    hf_buf_clear(&c->said);
}

static void say(const uint8_t *data, size_t size)
{
    static const char NAME[] = "$TOKEN";
    int rests = 0;

    connect_another();
    for (size_t i = 0; i < size; i++) {
        struct connection *c = &connections[count - 1];

        if (size - i >= sizeof NAME - 1 && memcmp(data + i, NAME, sizeof NAME - 1) == 0) {
            hf_buf_puts(&c->said, fuzz_link_get_token());
            i += sizeof NAME - 2;
            continue;
        }
        if (data[i] < 0x1c || data[i] > 0x1f) {
            hf_buf_putc(&c->said, (char)data[i]);
            continue;
        }
        flush(c);
        if (data[i] == 0x1c)
            (void)shutdown(c->fd, SHUT_WR);
        else if (data[i] == 0x1d && count < CONNECTIONS)
            connect_another();
        else
            pass(data[i] == 0x1f && ++rests <= RESTS ? LONG_MS : MOMENT_MS);
    }
    flush(&connections[count - 1]);
    pass(MOMENT_MS);
    pass(MOMENT_MS);
}

/* What is there. */

static bool is_error(const char *text, size_t len)
{
    json_t *root = json_loadb(text, len, 0, NULL);
    const json_t *error = json_object_get(root, "error");
    bool is = json_string_length(json_object_get(error, "code")) > 0 &&
              json_string_length(json_object_get(error, "message")) > 0;

    json_decref(root);
    return is;
}

/* What libmicrohttpd itself refuses, because it is no HTTP, it refuses as a page. */
static void check_answer(int status, const char *body, size_t len)
{
    bool page = len > 0 && body[0] == '<';

    switch (status) {
    case 200:
    case 201: break;
    case 400:
    case 413:
    case 501:
    case 505: fuzz_must(page || is_error(body, len)); break;
    case 414:
    case 431: fuzz_must(page); break;
    case 401:
    case 404:
    case 405:
    case 409:
    case 429:
    case 500:
    case 503: fuzz_must(is_error(body, len)); break;
    default: fuzz_must(false); break;
    }
}

struct head {
    int status;
    ptrdiff_t length; /* of the body; -1: it is not said */
};

/* The length of the head; 0: it is not all there. */
static size_t read_head(const char *at, size_t left, struct head *ret)
{
    static const char END[] = "\r\n\r\n", LENGTH[] = "\r\nContent-Length: ";
    const char *end = memmem(at, left, END, sizeof END - 1), *length;

    if (end == NULL)
        return 0;
    fuzz_must(end - at >= 12 && memcmp(at, "HTTP/1.", 7) == 0);
    ret->status = (int)strtol(at + 9, NULL, 10);
    length = memmem(at, (size_t)(end - at), LENGTH, sizeof LENGTH - 1);
    ret->length = length != NULL ? strtol(length + sizeof LENGTH - 1, NULL, 10) : -1;
    return (size_t)(end - at) + sizeof END - 1;
}

/* One after the other, as far as they are whole. An answer without a length is a stream. */
static void check_heard(const struct connection *c)
{
    const char *at = c->heard.data;
    size_t left = c->heard.len, len;
    struct head head;

    while (left > 0 && (len = read_head(at, left, &head)) > 0) {
        at += len;
        left -= len;
        if (head.status == 100 || head.status == 204)
            continue;
        if (head.length < 0 || (size_t)head.length > left)
            return;
        if (left >= 7 && memcmp(at, "HTTP/1.", 7) == 0)
            continue; /* of HEAD there is the head alone */
        check_answer(head.status, at, (size_t)head.length);
        at += head.length;
        left -= (size_t)head.length;
    }
}

static void hang_up(void)
{
    for (size_t i = 0; i < count; i++) {
        hear(&connections[i]);
        check_heard(&connections[i]);
        hf_buf_done(&connections[i].said);
        hf_buf_done(&connections[i].heard);
        (void)close(connections[i].fd);
    }
    count = 0;
}

static void check_nothing_is_left(void)
{
    const struct link_agent *agent = fuzz_link_get()->agents;

    /* Files are read by a thread, whose time is not ours. */
    for (int i = 0;
         i < PATIENCE_MS && (agent->loans > 0 || agent->gets > 0 || agent->put_bytes > 0);
         i++) {
        (void)usleep(1000);
        fuzz_link_wait(1);
    }
    fuzz_must(agent->loans == 0 && agent->gets == 0 && agent->put_bytes == 0);
    for (const struct link_process *p = agent->processes; p != NULL; p = p->next)
        fuzz_must(p->holders == 0 && p->listeners == NULL && p->leavers == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_link_open();
    say(data, size);
    hang_up();
    fuzz_link_wait(SWEEP_MS);
    check_nothing_is_left();
    fuzz_link_close();
    return 0;
}
