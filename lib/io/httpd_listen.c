#include "io/httpd_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define UNIX_PREFIX "unix:"

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

static int fail(struct hf_error *err, const char *text, const char *what)
{
    int code = HF_EIO;

    if (errno == EACCES || errno == EPERM)
        code = HF_EDENIED;
    if (errno == EADDRINUSE)
        code = HF_EEXIST;
    return hf_error_set(err, code, "%s: %s: %s", text, what, strerror(errno));
}

/* "host:port", the host in brackets if it is an IPv6 address. */
static int parse_tcp(const char *text, union address *address, socklen_t *len,
                     struct hf_error *err)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    uint64_t port;
    size_t begin = text[0] == '[' ? 1 : 0, end = colon != NULL ? (size_t)(colon - text) : 0;

    if (colon == NULL || end <= begin || end - begin >= sizeof host ||
        hf_parse_u64(colon + 1, 0, UINT16_MAX, &port) != HF_OK)
        return hf_error_set(err, HF_EINVAL, "%s is not ADDRESS:PORT", text);
    if (begin == 1 && text[--end] != ']')
        return hf_error_set(err, HF_EINVAL, "%s: the bracket is not closed", text);
    memcpy(host, text + begin, end - begin);
    host[end - begin] = '\0';
    if (strcmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    memset(address, 0, sizeof *address);
    if (begin == 0 && inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons((uint16_t)port);
        *len = sizeof address->v4;
        return HF_OK;
    }
    if (begin == 1 && inet_pton(AF_INET6, host, &address->v6.sin6_addr) == 1) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons((uint16_t)port);
        *len = sizeof address->v6;
        return HF_OK;
    }
    return hf_error_set(err, HF_EINVAL, "%s: %s is no IP address", text, host);
}

static int parse_local(const char *text, union address *address, socklen_t *len,
                       struct hf_error *err)
{
    const char *path = text + strlen(UNIX_PREFIX);

    memset(address, 0, sizeof *address);
    address->local.sun_family = AF_UNIX;
    if (path[0] == '\0' || strlen(path) >= sizeof address->local.sun_path)
        return hf_error_set(err, HF_EINVAL, "%s: the path of a socket has 1 to %zu bytes", text,
                            sizeof address->local.sun_path - 1);
    memcpy(address->local.sun_path, path, strlen(path) + 1);
    *len = sizeof address->local;
    return HF_OK;
}

/* One that is left over is in the way; a live one is not removed: somebody answers there. */
static int clear_way(const char *text, const union address *address, struct hf_error *err)
{
    HF_CLEANUP_FD int fd = -1;
    struct stat status;

    if (lstat(address->local.sun_path, &status) != 0)
        return HF_OK;
    if (!S_ISSOCK(status.st_mode))
        return hf_error_set(err, HF_EEXIST, "%s: there is something that is no socket", text);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, text, "socket");
    if (connect(fd, &address->any, sizeof address->local) == 0 || errno != ECONNREFUSED)
        return hf_error_set(err, HF_EEXIST, "%s: somebody listens there already", text);
    return unlink(address->local.sun_path) == 0 ? HF_OK : fail(err, text, "unlink");
}

static uint16_t port_of(int fd)
{
    union address address = { 0 };
    socklen_t len = sizeof address;

    if (getsockname(fd, &address.any, &len) != 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port
                                                   : address.v4.sin_port);
}

/* Nobody may connect to a Unix socket before it has its mode, hence the mask. */
static int bind_to(int fd, const union address *address, socklen_t len, mode_t mode)
{
    mode_t before;
    int rc;

    if (address->any.sa_family != AF_UNIX)
        return bind(fd, &address->any, len);
    before = umask((mode_t)~mode & 0777);
    rc = bind(fd, &address->any, len);
    (void)umask(before);
    return rc;
}

static int listen_at(int fd, const union address *address, socklen_t len,
                     const struct hf_httpd_config *cfg)
{
    return bind_to(fd, address, len, cfg->mode) == 0 ? listen(fd, (int)cfg->connections) : -1;
}

/* Whoever comes while it is still ours would be refused like a stranger, and not come again: so
 * it is made under another name, which is no longer. */
static int listen_for(int fd, const union address *address, socklen_t len,
                      const struct hf_httpd_config *cfg)
{
    const char *path = address->local.sun_path;
    union address first = *address;
    char *name = strrchr(first.local.sun_path, '/');
    int error;

    name = name != NULL ? name + 1 : first.local.sun_path;
    *name = *name != '.' ? '.' : '_';
    (void)unlink(first.local.sun_path); /* of one that was killed */
    if (listen_at(fd, &first, len, cfg) == 0 &&
        chown(first.local.sun_path, cfg->user, (gid_t)-1) == 0 &&
        rename(first.local.sun_path, path) == 0)
        return 0;
    error = errno;
    (void)unlink(first.local.sun_path);
    errno = error;
    return -1;
}

int hf_httpd_listen(const struct hf_httpd_config *cfg, struct hf_httpd_listener *ret_listener,
                    struct hf_error *err)
{
    const char *text = cfg->listen;
    bool local = strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
    union address address = { 0 };
    socklen_t len = 0;
    int fd;
    int rc = (local ? parse_local : parse_tcp)(text, &address, &len, err);

    if (rc == HF_OK && local)
        rc = clear_way(text, &address, err);
    if (rc != HF_OK)
        return rc;
    fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return fail(err, text, "socket");
    if (!local)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    if ((local && cfg->user != 0 ? listen_for : listen_at)(fd, &address, len, cfg) != 0) {
        rc = fail(err, text, "listen");
        (void)close(fd);
        return rc;
    }
    *ret_listener = (struct hf_httpd_listener){ .fd = fd, .port = local ? 0 : port_of(fd) };
    if (local)
        memcpy(ret_listener->path, address.local.sun_path, sizeof ret_listener->path);
    return HF_OK;
}
