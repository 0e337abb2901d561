/* agentd_peers.h - whom `./dev bench agentd` measures ours beside.
 *
 * The first two do what keeps an agent registered, one process for each agent: a lease that is
 * renewed, and for Go a key under it and a watch as well. The others keep processes running,
 * and know nothing of a fleet. */
#ifndef HFB_AGENTD_PEERS_H
#define HFB_AGENTD_PEERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "bench/crowd.h"
#include "support/etcd.h"

enum hfb_idle_peer {
    HFB_IDLE_GO,      /* concurrency.Session, a key and a watch */
    HFB_IDLE_ETCDCTL, /* lease keep-alive */
    HFB_IDLE_RUNIT,   /* runsvdir and a runsv for each */
    HFB_IDLE_S6,      /* s6-svscan and an s6-supervise for each */
    HFB_IDLE_SUPERVISOR,
    HFB_IDLE_PM2,
    HFB_IDLE_PEERS,
};

struct hfb_idle {
    pid_t *roots;
    size_t root_count;
};

const char *hfb_idle_name(enum hfb_idle_peer peer);

/* A thousand of them keep the machine so busy that nothing is measured beside them but us. */
bool hfb_idle_is_heavy(enum hfb_idle_peer peer);

/* Starts it with `count` of `agent` (or of leases), its files beneath `dir`; false when it is
 * not installed. Leases have that TTL. */
bool hfb_idle_start(struct hfb_idle *idle, enum hfb_idle_peer peer, const char *dir,
                    const char *agent, const struct hft_etcd *etcd, unsigned ttl_s,
                    unsigned count);
/* Everything of it is there, as far as processes show it. */
bool hfb_idle_is_complete(const struct hfb_idle *idle, enum hfb_idle_peer peer, unsigned count);
void hfb_idle_stop(struct hfb_idle *idle);

#endif
