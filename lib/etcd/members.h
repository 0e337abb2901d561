/* members.h - learns from the cluster itself where else it can be reached.
 *
 * What was configured always stays in use; what the members advertise comes after it, and goes
 * when they do not any more. Internal to lib/etcd. */
#ifndef HF_ETCD_MEMBERS_H
#define HF_ETCD_MEMBERS_H

#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "etcd/timer.h"

struct hf_etcd;

#define HF_ENDPOINTS_MAX 64

struct hf_members {
    hf_ms every;       /* 0: nobody asked for it */
    size_t configured; /* endpoints that were given, the first of all */
    struct hf_timer timer;
};

/* Asks for the first time at once, and then regularly, until the client closes. */
void hf_members_start(struct hf_etcd *etcd, hf_ms every);
void hf_members_stop(struct hf_etcd *etcd);

/* Fills `all`, which begins with `count` endpoints that were configured (one at least), up with
 * those of the URLs that can be used: of the same scheme, not there already, and not an address
 * that means another machine to each who reads it. Returns how many there are then. Pure. */
size_t hf_members_add(struct hf_endpoint all[HF_ENDPOINTS_MAX], size_t count,
                      const char *const *urls, size_t url_count);

#endif
