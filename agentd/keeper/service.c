/* service.c - what a service manager is told of agentd: that it holds a lease, that its loop
 * turns, that it ends. The keeper says it, since it is the process that was started; whoever
 * else would have to be believed, the agents would be, too. */
#include <stdio.h>

#include "agentd/keeper/keeper.h"

#define AGAIN    (100 * KEEPER_MS)    /* when the manager takes no more just now */
#define TO_WRITE (10 * KEEPER_SECOND) /* how the last of them ended */

static const char *const WORDS[] = {
    [SERVICE_UNKNOWN] = "",
    [SERVICE_WAITING] = "STATUS=Waits for etcd, to get a lease.",
    [SERVICE_HELD] = "READY=1\nSTATUS=Holds its lease.",
    [SERVICE_FENCED] = "STATUS=Cannot be sure of its lease: agents stand still.",
    [SERVICE_STOPPING] = "STOPPING=1\nSTATUS=Ends its agents.",
};

void keeper_service_init(struct keeper *k)
{
    hf_sdnotify_init(&k->service);
}

static enum keeper_service state_of(struct keeper *k)
{
    if (k->stopping || k->stop_signals > 0)
        return SERVICE_STOPPING;
    if (k->lease.ttl_ms > 0 && !keeper_fence_has_passed(k))
        return SERVICE_HELD;
    return k->service_told >= SERVICE_HELD ? SERVICE_FENCED : SERVICE_WAITING;
}

/* An agent that was given longer would be killed by the manager, with us. */
static bool tell_end(struct keeper *k, int64_t now)
{
    int64_t end = 0;
    char text[64];

    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->kill_at != KEEPER_NEVER && k->slots[i]->kill_at > end)
            end = k->slots[i]->kill_at;
    }
    if (end <= k->service_end)
        return true;
    (void)snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%jd",
                   (intmax_t)((end - now + TO_WRITE) / 1000));
    if (!hf_sdnotify_tell(&k->service, text))
        return false;
    k->service_end = end;
    return true;
}

int64_t keeper_service_tell(struct keeper *k, int64_t now)
{
    enum keeper_service state = state_of(k);

    if (k->service.fd < 0)
        return KEEPER_NEVER;
    if (state != k->service_told) {
        if (!hf_sdnotify_tell(&k->service, WORDS[state]))
            return now + AGAIN;
        k->service_told = state;
    }
    if (state == SERVICE_STOPPING && !tell_end(k, now))
        return now + AGAIN;
    if (k->service.watchdog_ms == 0)
        return KEEPER_NEVER;
    if (now >= k->watchdog_at) {
        if (!hf_sdnotify_tell(&k->service, "WATCHDOG=1"))
            return now + AGAIN;
        k->watchdog_at = now + k->service.watchdog_ms * KEEPER_MS;
    }
    return k->watchdog_at;
}
