/* alert.h - tells people: runs the program that was configured, with the event on its stdin.
 *
 * One at a time and in order; a program that fails or takes too long is tried again, later and
 * later, for some minutes: what it tells may be restarting. The queue is bounded: when nobody
 * can be told, the oldest are forgotten and counted. */
#ifndef CTL_ALERT_H
#define CTL_ALERT_H

#include <uv.h>

#include "core/intent.h"
#include "schema/config.h"

struct ctl_alerts;

struct ctl_alerts_config {
    const struct hf_strings *command; /* program and arguments; none: alerts are only logged */
    hf_ms timeout;
    const char *actor; /* whose alerts these are */
    hf_ms pause;       /* before the second attempt, at most; 0: CTL_ALERT_PAUSE */
};

/* Attempts for one alert; the pauses between them double up to the longest, less a quarter at
 * most, so that several controllers do not try in step: 6 to 8 minutes in all. */
enum { CTL_ALERT_ATTEMPTS = 10, CTL_ALERT_PAUSE = 2000, CTL_ALERT_PAUSE_MOST = 120000 };

/* What the config points at must outlive it. NULL: no memory. */
struct ctl_alerts *ctl_alerts_new(uv_loop_t *loop, const struct ctl_alerts_config *cfg);

/* Forgets what is queued, ends what runs. The memory goes when the loop has let go of it. */
void ctl_alerts_close(struct ctl_alerts *alerts);

/* Copies what it needs. */
void ctl_alerts_add(struct ctl_alerts *alerts, const struct hf_intent_alert *alert);

struct ctl_alerts_stats {
    uint64_t told, failed, dropped;
    size_t queued;
};

struct ctl_alerts_stats ctl_alerts_get_stats(const struct ctl_alerts *alerts);

#endif
