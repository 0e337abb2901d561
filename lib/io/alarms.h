/* alarms.h - timers that live inside their owners, in the order in which they are due.
 *
 * A list of the owners' own memory: to set an alarm cannot fail, so nobody has to know what to
 * do without one. Meant for the few that a process has, not for one per request. Pure. */
#ifndef HF_IO_ALARMS_H
#define HF_IO_ALARMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define HF_ALARMS_NEVER INT64_MAX

struct hf_alarm;
typedef void (*hf_alarm_fn)(struct hf_alarm *alarm);

/* Zero-initialise and set `fn`. */
struct hf_alarm {
    hf_alarm_fn fn;
    hf_ms at;
    struct hf_alarm *next;
    struct hf_alarm **link; /* where the list points to it; NULL: not set */
};

/* Zero-initialise. Must not move while an alarm is set. */
struct hf_alarms {
    struct hf_alarm *first;
};

static inline bool hf_alarm_is_set(const struct hf_alarm *alarm)
{
    return alarm->link != NULL;
}

/* Sets it, again if it was. Among those of one moment, the first to be set comes first. */
void hf_alarms_set(struct hf_alarms *alarms, struct hf_alarm *alarm, hf_ms at);

/* A no-op when it is not set. */
void hf_alarms_unset(struct hf_alarm *alarm);

/* When the first is due; HF_ALARMS_NEVER. */
hf_ms hf_alarms_get_next(const struct hf_alarms *alarms);

/* Unsets and calls everyone that is due at `now`, but not those that are set meanwhile for a
 * time that has passed: they come with the next call. */
void hf_alarms_ring(struct hf_alarms *alarms, hf_ms now);

#endif
