#include "support/manager.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "support/wait.h"

void hft_manager_open(struct hft_manager *manager, const char *directory, hf_ms watchdog_ms)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    size_t len;

    *manager = (struct hft_manager){ .fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0) };
    ck_assert_int_ge(manager->fd, 0);
    if (directory != NULL)
        (void)snprintf(manager->address, sizeof manager->address, "%s/manager", directory);
    else
        (void)snprintf(manager->address, sizeof manager->address, "@holdfast-manager-%d",
                       (int)getpid());
    len = strlen(manager->address);
    ck_assert_uint_lt(len, sizeof at.sun_path);
    memcpy(at.sun_path, manager->address, len);
    if (directory == NULL)
        at.sun_path[0] = '\0';
    ck_assert_int_eq(bind(manager->fd, (struct sockaddr *)&at,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)),
                     0);
    (void)snprintf(manager->socket_env, sizeof manager->socket_env, "NOTIFY_SOCKET=%s",
                   manager->address);
    (void)snprintf(manager->watchdog_env, sizeof manager->watchdog_env, "WATCHDOG_USEC=%lld",
                   (long long)watchdog_ms * 1000);
    manager->env[0] = manager->socket_env;
    manager->env[1] = watchdog_ms > 0 ? manager->watchdog_env : NULL;
}

void hft_manager_close(struct hft_manager *manager)
{
    (void)close(manager->fd);
    if (manager->address[0] == '/')
        (void)unlink(manager->address);
}

const char *hft_manager_hear(struct hft_manager *manager, hf_ms timeout)
{
    struct pollfd wait = { .fd = manager->fd, .events = POLLIN };
    ssize_t len;

    if (poll(&wait, 1, (int)timeout) <= 0)
        return NULL;
    len = recv(manager->fd, manager->heard, sizeof manager->heard - 1, 0);
    ck_assert_int_ge(len, 0);
    manager->heard[len] = '\0';
    return manager->heard;
}

void hft_manager_until(struct hft_manager *manager, const char *part, const char *never)
{
    hf_ms until = hft_now() + hft_patience(0);
    const char *heard;

    do {
        hf_ms left = until - hft_now();

        heard = hft_manager_hear(manager, left > 0 ? left : 0);
        ck_assert_msg(heard != NULL, "nobody said %s", part);
        ck_assert_msg(never == NULL || strstr(heard, never) == NULL, "somebody said %s", heard);
    } while (strstr(heard, part) == NULL);
}
