#include "io/sdnotify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { US_PER_MS = 1000 };

/* A path, or with @ in place of the NUL the name of an abstract socket. */
static bool take_address(struct hf_sdnotify *notify, const char *text)
{
    size_t len = strlen(text);

    if (len < 2 || len >= sizeof notify->to.sun_path || (text[0] != '/' && text[0] != '@'))
        return false;
    notify->to.sun_family = AF_UNIX;
    memcpy(notify->to.sun_path, text, len);
    notify->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    if (text[0] == '@')
        notify->to.sun_path[0] = '\0';
    else
        notify->to_len++;
    return true;
}

/* Of a decimal number; 0 for anything else. */
static int64_t number_of(const char *text)
{
    char *end = NULL;
    long long number;

    if (text == NULL || text[0] < '0' || text[0] > '9')
        return 0;
    errno = 0;
    number = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' ? number : 0;
}

static int64_t watchdog_of(const char *usec, const char *pid)
{
    int64_t half = number_of(usec) / 2 / US_PER_MS;

    if (usec == NULL || (pid != NULL && number_of(pid) != getpid()))
        return 0;
    return half > 0 || number_of(usec) == 0 ? half : 1;
}

void hf_sdnotify_init(struct hf_sdnotify *notify)
{
    const char *address = getenv("NOTIFY_SOCKET");

    *notify = (struct hf_sdnotify){ .fd = -1 };
    if (address != NULL && take_address(notify, address))
        notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->fd >= 0)
        notify->watchdog_ms = watchdog_of(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID"));
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
}

void hf_sdnotify_done(struct hf_sdnotify *notify)
{
    if (notify->fd >= 0)
        (void)close(notify->fd);
    notify->fd = -1;
}

bool hf_sdnotify_tell(const struct hf_sdnotify *notify, const char *text)
{
    return notify->fd < 0 || sendto(notify->fd, text, strlen(text), MSG_DONTWAIT | MSG_NOSIGNAL,
                                    (const struct sockaddr *)&notify->to, notify->to_len) >= 0;
}
