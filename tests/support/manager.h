/* manager.h - a service manager as its services see it: a datagram socket that hears what they
 * say (sd_notify). */
#ifndef HFT_MANAGER_H
#define HFT_MANAGER_H

#include "base/clock.h"
#include "support/tempdir.h"

struct hft_manager {
    int fd;
    char address[HFT_PATH_MAX]; /* as it stands in NOTIFY_SOCKET */
    char socket_env[HFT_PATH_MAX + 32], watchdog_env[64];
    const char *env[3]; /* NULL-terminated, for those that are started */
    char heard[512];    /* the last message */
};

/* Listens at a path in `directory`; NULL: at an abstract name. Services are told to say that
 * they live within `watchdog_ms`; 0: not to. */
void hft_manager_open(struct hft_manager *manager, const char *directory, hf_ms watchdog_ms);
void hft_manager_close(struct hft_manager *manager);

/* The next message; NULL when none came in time. */
const char *hft_manager_hear(struct hft_manager *manager, hf_ms timeout);

/* Hears until a message has that part; fails the test when none did, or when one before it had
 * `never` (NULL: whatever they said). */
void hft_manager_until(struct hft_manager *manager, const char *part, const char *never);

#endif
