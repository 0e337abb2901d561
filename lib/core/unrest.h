/* unrest.h - notices that etcd changes its leader again and again.
 *
 * Each new leader of etcd gives every lease its whole TTL anew. When leaders follow each other
 * faster than that, the leases of dead hosts never expire, and nothing in etcd says so: then a
 * person has to know. One change, or two, is what a restart of etcd looks like.
 *
 * Pure: no clock, no allocation, no I/O; a plain value that may be copied.
 *
 * Guarantee: one alert for one time of unrest, which lasts from the change that makes it until
 * there was none for as long as `window`. */
#ifndef HF_CORE_UNREST_H
#define HF_CORE_UNREST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define HF_UNREST_MOST 16 /* changes that can be asked for */

/* Zero-initialise. */
struct hf_unrest {
    hf_ms changes[HF_UNREST_MOST]; /* the last ones; count % MOST is the oldest */
    uint32_t count;                /* of all since it was calm */
    bool holds;                    /* there were too many */
    bool told;
};

/* etcd has another leader. `limit` changes (1..HF_UNREST_MOST) within `window` are unrest. */
void hf_unrest_on_change(struct hf_unrest *unrest, uint32_t limit, hf_ms window, hf_ms now);

bool hf_unrest_holds(const struct hf_unrest *unrest, hf_ms window, hf_ms now);

/* Whether somebody has to be told now; then it was. */
bool hf_unrest_take_alert(struct hf_unrest *unrest, hf_ms window, hf_ms now);

#endif
