#include "support/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <check.h>

#include "base/cleanup.h"

#define PATIENCE_S 2

static int dial(uint16_t port)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
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
    HF_CLEANUP_FD int fd = dial(port);
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
