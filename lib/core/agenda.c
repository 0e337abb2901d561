#include "core/agenda.h"

/* The queue. */

static void link_between(struct hf_agenda *agenda, struct hf_agenda_item *item,
                         struct hf_agenda_item *prev, struct hf_agenda_item *next)
{
    item->prev = prev;
    item->next = next;
    *(prev != NULL ? &prev->next : &agenda->first) = item;
    *(next != NULL ? &next->prev : &agenda->last) = item;
    item->queued = true;
    agenda->count++;
}

static void take_out(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    *(item->prev != NULL ? &item->prev->next : &agenda->first) = item->next;
    *(item->next != NULL ? &item->next->prev : &agenda->last) = item->prev;
    item->next = item->prev = NULL;
    item->queued = false;
    agenda->count--;
}

void hf_agenda_add(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (!item->queued)
        link_between(agenda, item, agenda->last, NULL);
}

void hf_agenda_add_first(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (!item->queued)
        link_between(agenda, item, NULL, agenda->first);
}

/* The heap: an item is not later than its children. `back` is the parent of a first child, and
 * the sibling before of any other. */

static struct hf_agenda_item *meld(struct hf_agenda_item *a, struct hf_agenda_item *b)
{
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    if (b->at < a->at) {
        struct hf_agenda_item *swapped = a;

        a = b;
        b = swapped;
    }
    b->sibling = a->child;
    if (b->sibling != NULL)
        b->sibling->back = b;
    b->back = a;
    a->child = b;
    return a;
}

/* Melds the siblings in pairs, then the pairs from the last to the first: that is what makes
 * the heap fast. The pairs are chained by `back` meanwhile. */
static struct hf_agenda_item *meld_all(struct hf_agenda_item *item)
{
    struct hf_agenda_item *pairs = NULL, *heap = NULL;

    while (item != NULL) {
        struct hf_agenda_item *a = item, *b = a->sibling;

        item = b != NULL ? b->sibling : NULL;
        a->sibling = a->back = NULL;
        if (b != NULL)
            b->sibling = b->back = NULL;
        a = meld(a, b);
        a->back = pairs;
        pairs = a;
    }
    while (pairs != NULL) {
        struct hf_agenda_item *next = pairs->back;

        pairs->back = NULL;
        heap = meld(heap, pairs);
        pairs = next;
    }
    return heap;
}

static void clear_alarm(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    struct hf_agenda_item *below;

    if (!item->timed)
        return;
    below = meld_all(item->child);
    item->child = NULL;
    if (item == agenda->alarms) {
        agenda->alarms = below;
    } else {
        if (item->back->child == item)
            item->back->child = item->sibling;
        else
            item->back->sibling = item->sibling;
        if (item->sibling != NULL)
            item->sibling->back = item->back;
        agenda->alarms = meld(agenda->alarms, below);
    }
    item->sibling = item->back = NULL;
    item->timed = false;
}

void hf_agenda_set_alarm(struct hf_agenda *agenda, struct hf_agenda_item *item, hf_ms at)
{
    if (item->timed && item->at == at)
        return;
    clear_alarm(agenda, item);
    if (at == HF_AGENDA_NEVER)
        return;
    item->at = at;
    item->timed = true;
    agenda->alarms = meld(agenda->alarms, item);
}

/* Puts all that share the earliest time into the queue in one pass over them: when many leases
 * end at once, their agents are due at once, and to take each out of the heap by itself would
 * order the rest again every time. Lists of siblings that are still to be looked at are chained
 * by the `back` of their first. */
static void ring_earliest(struct hf_agenda *agenda)
{
    struct hf_agenda_item *lists = agenda->alarms, *later = NULL;
    hf_ms at = lists->at;

    while (lists != NULL) {
        struct hf_agenda_item *item = lists, *child = item->child;

        lists = item->sibling != NULL ? item->sibling : item->back;
        if (item->sibling != NULL)
            item->sibling->back = item->back;
        item->sibling = item->back = NULL;
        if (item->at > at) {
            item->sibling = later;
            later = item;
            continue;
        }
        if (child != NULL) {
            child->back = lists;
            lists = child;
        }
        item->child = NULL;
        item->timed = false;
        hf_agenda_add(agenda, item);
    }
    agenda->alarms = meld_all(later);
}

struct hf_agenda_item *hf_agenda_take(struct hf_agenda *agenda, hf_ms now)
{
    struct hf_agenda_item *item;

    while (agenda->alarms != NULL && agenda->alarms->at <= now)
        ring_earliest(agenda);
    item = agenda->first;
    if (item != NULL)
        take_out(agenda, item);
    return item;
}

void hf_agenda_remove(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (item->queued)
        take_out(agenda, item);
    clear_alarm(agenda, item);
}

hf_ms hf_agenda_deadline(const struct hf_agenda *agenda, hf_ms now)
{
    if (agenda->first != NULL)
        return now;
    if (agenda->alarms == NULL)
        return HF_AGENDA_NEVER;
    return agenda->alarms->at > now ? agenda->alarms->at : now;
}
