/* agenda.h - which of many objects is looked at next: those that something happened to, in the
 * order in which it happened, and those whose time has come.
 *
 * Pure, and without memory of its own: an object brings its item, which stands in the queue at
 * most once and has one alarm at most. Adding is O(1), an alarm O(log n) amortised. */
#ifndef HF_CORE_AGENDA_H
#define HF_CORE_AGENDA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "core/heap.h"

#define HF_AGENDA_NEVER INT64_MAX

/* Zero-initialise; must not move while it is on an agenda. Read-only for callers. That it is in
 * the queue, or has an alarm, follows from its place, for which its links are enough: every
 * object has an item, and pays for each of its bytes. */
struct hf_agenda_item {
    struct hf_agenda_item *next, *prev; /* in the queue */
    struct hf_heap_node alarm;
    hf_ms at; /* of its alarm, if timed */
};

/* Zero-initialise. */
struct hf_agenda {
    struct hf_agenda_item *first, *last;
    struct hf_heap_node *alarms; /* the earliest */
    size_t count;                /* in the queue */
};

static inline bool hf_agenda_is_queued(const struct hf_agenda *agenda,
                                       const struct hf_agenda_item *item)
{
    return item->prev != NULL || agenda->first == item;
}

/* Whether it has an alarm. */
static inline bool hf_agenda_is_timed(const struct hf_agenda *agenda,
                                      const struct hf_agenda_item *item)
{
    return item->alarm.back != NULL || agenda->alarms == &item->alarm;
}

/* Into the queue, behind all others, unless it is in it. */
void hf_agenda_add(struct hf_agenda *agenda, struct hf_agenda_item *item);

/* Likewise, before all others. */
void hf_agenda_add_first(struct hf_agenda *agenda, struct hf_agenda_item *item);

/* Into the queue at `at`; replaces an earlier alarm. NEVER: no alarm. */
void hf_agenda_set_alarm(struct hf_agenda *agenda, struct hf_agenda_item *item, hf_ms at);

/* Takes the next item out of the queue, those whose time has come included; NULL: none. */
struct hf_agenda_item *hf_agenda_take(struct hf_agenda *agenda, hf_ms now);

/* Out of the queue, and no alarm. */
void hf_agenda_remove(struct hf_agenda *agenda, struct hf_agenda_item *item);

/* When there is something to take: `now`, the earliest alarm, or NEVER. */
hf_ms hf_agenda_deadline(const struct hf_agenda *agenda, hf_ms now);

#endif
