/* sdnotify.h - tells the service manager that started us how we are (systemd: Type=notify).
 *
 * The other side of the protocol, what agents tell us, is the link's. libc alone, since the
 * keeper uses it, too; nothing here waits. Where nobody asked to be told, nothing is. */
#ifndef HF_IO_SDNOTIFY_H
#define HF_IO_SDNOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct hf_sdnotify {
    int fd; /* -1: nobody is told */
    struct sockaddr_un to;
    socklen_t to_len;
    int64_t watchdog_ms; /* how often to say WATCHDOG=1, half of what is waited for; 0: never */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment: they are for this
 * process, and whoever it starts would speak for it. Before there are threads. Cannot fail:
 * what makes no sense counts as absent. */
void hf_sdnotify_init(struct hf_sdnotify *notify);
void hf_sdnotify_done(struct hf_sdnotify *notify);

/* One message: assignments, a newline between them. True when it was taken, or nobody is to be
 * told; else it may be said again later. */
bool hf_sdnotify_tell(const struct hf_sdnotify *notify, const char *text);

#endif
