#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "client/private.h"

enum { TIMEOUT_MS = 30000, PATIENCE_MS = 60000 };
#define CHECKPOINT_MAX ((size_t)64 << 20)

hf_ms hf_client_now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* Waiting. */

bool hf_client_is_interrupted(const struct hf_client *client)
{
    struct pollfd fd = { .fd = client->interrupted, .events = POLLIN };

    return poll(&fd, 1, 0) > 0;
}

/* A child shares what is open with its parent, for which this was not meant: so it gets one of
 * its own, in the same place. */
static void interrupt_child(const struct hf_client *client)
{
    int own = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

    if (own < 0)
        return;
    (void)dup3(own, client->interrupted, O_CLOEXEC);
    (void)close(own);
}

void hf_client_interrupt(const struct hf_client *client)
{
    uint64_t one = 1;
    int before = errno;

    if (getpid() != client->owner)
        interrupt_child(client);
    else /* it can only fail because it is there already */
        (void)!write(client->interrupted, &one, sizeof one);
    errno = before;
}

int hf_client_poll(const struct hf_client *client, int fd, short events, hf_ms deadline,
                   bool is_wait)
{
    struct pollfd fds[2] = { { .fd = fd, .events = events },
                             { .fd = is_wait ? client->interrupted : -1, .events = POLLIN } };

    for (;;) {
        hf_ms left = deadline - hf_client_now();
        int n = poll(fds, 2, left > INT_MAX ? INT_MAX : left > 0 ? (int)left : 0);

        if (n > 0)
            return fds[1].revents != 0 ? HF_ECANCELED : HF_OK;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return HF_EIO;
        if (n == 0 && left <= 0)
            return HF_ETIMEOUT;
    }
}

/* Life. */

static int take_socket(struct hf_client *client, const char *path, struct hf_error *err)
{
    if (path == NULL)
        path = getenv("HOLDFAST_SOCKET");
    if (path == NULL)
        return hf_error_set(err, HF_ENOENT,
                            "HOLDFAST_SOCKET is not set: agentd sets it for the agents that it "
                            "starts");
    if (path[0] == '\0' || strlen(path) >= sizeof client->address.sun_path)
        return hf_error_set(err, HF_EINVAL, "HOLDFAST_SOCKET: 1 to %zu bytes",
                            sizeof client->address.sun_path - 1);
    client->address.sun_family = AF_UNIX;
    memcpy(client->address.sun_path, path, strlen(path) + 1);
    return HF_OK;
}

/* It becomes a line of a request: nothing in it may end that line. */
static int take_token(struct hf_client *client, const char *token, struct hf_error *err)
{
    size_t len;

    if (token == NULL)
        token = getenv("HOLDFAST_TOKEN");
    if (token == NULL)
        return hf_error_set(err, HF_ENOENT,
                            "HOLDFAST_TOKEN is not set: agentd sets it for the agents that it "
                            "starts");
    len = strlen(token);
    if (len == 0 || len > HF_CLIENT_TOKEN_MAX)
        return hf_error_set(err, HF_EINVAL, "HOLDFAST_TOKEN: 1 to %d characters",
                            HF_CLIENT_TOKEN_MAX);
    for (size_t i = 0; i < len; i++) {
        if (token[i] <= ' ' || token[i] >= 0x7f)
            return hf_error_set(err, HF_EINVAL, "HOLDFAST_TOKEN: visible ASCII characters");
    }
    memcpy(client->token, token, len + 1);
    return HF_OK;
}

static bool add(const struct hf_client *client, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };

    return epoll_ctl(client->ready, EPOLL_CTL_ADD, fd, &event) == 0;
}

static int open_descriptors(struct hf_client *client, struct hf_error *err)
{
    client->interrupted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    client->ready = epoll_create1(EPOLL_CLOEXEC);
    if (client->interrupted < 0 || client->timer < 0 || client->ready < 0 ||
        !add(client, client->interrupted) || !add(client, client->timer))
        return hf_error_set(err, HF_EIO, "no descriptors: %s", strerror(errno));
    return HF_OK;
}

int hf_client_new(const struct hf_client_config *cfg, struct hf_client **ret_client,
                  struct hf_error *err)
{
    static const struct hf_client_config NONE = { 0 };
    struct hf_client *client = hf_calloc(1, sizeof *client);
    int rc;

    if (client == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    cfg = cfg != NULL ? cfg : &NONE;
    client->owner = getpid();
    client->interrupted = client->timer = client->ready = client->stream = client->pongs = -1;
    client->timeout = cfg->timeout != 0 ? cfg->timeout : TIMEOUT_MS;
    if (client->timeout > HF_DURATION_MAX)
        client->timeout = HF_DURATION_MAX;
    client->patience = cfg->patience != 0 ? cfg->patience : PATIENCE_MS;
    client->checkpoint_max = cfg->checkpoint_max != 0 ? cfg->checkpoint_max : CHECKPOINT_MAX;
    client->pongs_by_hand = cfg->pongs_by_hand;
    rc = cfg->timeout < 0 ? hf_error_set(err, HF_EINVAL, "timeout: not below 0")
                          : take_socket(client, cfg->socket, err);
    if (rc == HF_OK)
        rc = take_token(client, cfg->token, err);
    if (rc == HF_OK)
        rc = open_descriptors(client, err);
    if (rc != HF_OK) {
        hf_client_free(client);
        return rc;
    }
    *ret_client = client;
    return HF_OK;
}

static void close_one(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

void hf_client_free(struct hf_client *client)
{
    if (client == NULL)
        return;
    close_one(client->stream);
    close_one(client->pongs);
    close_one(client->ready);
    close_one(client->timer);
    close_one(client->interrupted);
    hf_sse_done(&client->sse);
    hf_buf_done(&client->input);
    free(client);
}
