/* recovery_peers.h - the supervisors that `./dev bench recovery` measures ours beside. */
#ifndef HFB_RECOVERY_PEERS_H
#define HFB_RECOVERY_PEERS_H

#include <stdbool.h>
#include <sys/types.h>

enum hfb_peer {
    HFB_RUNIT,  /* its run file is the child itself: the least that it can do */
    HFB_RUN_SH, /* runit with a run file in sh, as they are mostly written */
    HFB_PM2,
    HFB_S6,
    HFB_SUPERVISOR,
    HFB_MONIT,
    HFB_PEERS,
};

const char *hfb_peer_name(enum hfb_peer peer);

/* Seconds, not milliseconds: it pauses before a restart, or looks once in a while. */
bool hfb_peer_is_slow(enum hfb_peer peer);

/* Starts it with `child SOCKET,<name>,STATE` as its only charge, everything that it writes
 * beneath `dir`; returns its pid, or 0 when it is not installed. */
pid_t hfb_peer_start(enum hfb_peer peer, const char *dir, const char *child, const char *socket,
                     const char *state);

#endif
