#include "support/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <check.h>

#include "base/cleanup.h"

#define PATIENCE_S      2
#define POST_PATIENCE_S 20
#define REPLY_MAX       65536

static int dial(uint16_t port, int patience_s)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval patience = { .tv_sec = patience_s };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)), 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Everything up to the end of the connection; NULL when it broke. */
static char *read_to_end(int fd)
{
    char *text = NULL;
    size_t len = 0;
    FILE *stream = open_memstream(&text, &len);
    char chunk[16384];
    ssize_t n;

    ck_assert_ptr_nonnull(stream);
    while ((n = recv(fd, chunk, sizeof chunk, 0)) > 0 || (n < 0 && errno == EINTR)) {
        if (n > 0)
            ck_assert_uint_eq(fwrite(chunk, 1, (size_t)n, stream), (size_t)n);
    }
    ck_assert_int_eq(fclose(stream), 0);
    if (n == 0)
        return text;
    free(text);
    return NULL;
}

/* HTTP/1.0, so that the server neither chunks the body nor keeps the connection. */
int hft_http_get(uint16_t port, const char *path, char **ret_body)
{
    HF_CLEANUP_FD int fd = dial(port, PATIENCE_S);
    HF_CLEANUP_FREE char *reply = NULL;
    char request[512];
    int len = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);

    ck_assert_int_lt(len, (int)sizeof request);
    if (fd < 0 || send(fd, request, (size_t)len, MSG_NOSIGNAL) != len)
        return 0;
    reply = read_to_end(fd);
    const char *body = reply != NULL ? strstr(reply, "\r\n\r\n") : NULL;
    if (body == NULL || strncmp(reply, "HTTP/1.", 7) != 0 || strlen(reply) < 12)
        return 0;

    *ret_body = strdup(body + 4);
    ck_assert_ptr_nonnull(*ret_body);
    return (int)strtol(reply + 9, NULL, 10);
}

void hft_http_open(struct hft_http *http, uint16_t port)
{
    http->fd = dial(port, POST_PATIENCE_S);
    ck_assert_msg(http->fd >= 0, "cannot connect to port %u: %s", port, strerror(errno));
}

void hft_http_close(struct hft_http *http)
{
    (void)close(http->fd);
    http->fd = -1;
}

static void send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        ck_assert_msg(n > 0, "cannot send: %s", strerror(errno));
        data += n;
        len -= (size_t)n;
    }
}

/* Reads until the header and, of a good answer, all of the announced body are there; returns
 * the body's place in `reply`. */
static const char *read_reply(int fd, char reply[static REPLY_MAX])
{
    size_t len = 0;

    for (;;) {
        ssize_t n = recv(fd, reply + len, REPLY_MAX - 1 - len, 0);

        ck_assert_msg(n > 0, "no complete answer: %s", n < 0 ? strerror(errno) : "closed");
        len += (size_t)n;
        reply[len] = '\0';
        const char *body = strstr(reply, "\r\n\r\n");
        if (body == NULL)
            continue;
        body += 4;
        const char *announced = strcasestr(reply, "\r\nContent-Length: ");
        if (strncmp(reply, "HTTP/1.1 200 ", 13) != 0) /* chunked, and not worth the parsing */
            return body;
        ck_assert_msg(announced != NULL && announced < body, "unexpected answer: %s", reply);
        size_t want = strtoul(announced + strlen("\r\nContent-Length: "), NULL, 10);
        if (len - (size_t)(body - reply) >= want)
            return body;
    }
}

int hft_http_post(struct hft_http *http, const char *path, const char *json, char **ret_body)
{
    char reply[REPLY_MAX];
    char head[256];
    int len = snprintf(head, sizeof head,
                       "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
                       path, strlen(json));

    ck_assert_int_lt(len, (int)sizeof head);
    send_all(http->fd, head, (size_t)len);
    send_all(http->fd, json, strlen(json));
    *ret_body = strdup(read_reply(http->fd, reply));
    ck_assert_ptr_nonnull(*ret_body);
    ck_assert_msg(strncmp(reply, "HTTP/1.1 ", 9) == 0, "unexpected answer: %s", reply);
    return (int)strtol(reply + 9, NULL, 10);
}
