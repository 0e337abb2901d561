#include "core/agenda.h"

/* The queue. */

static void link_between(struct hf_agenda *agenda, struct hf_agenda_item *item,
                         struct hf_agenda_item *prev, struct hf_agenda_item *next)
{
    item->prev = prev;
    item->next = next;
    *(prev != NULL ? &prev->next : &agenda->first) = item;
    *(next != NULL ? &next->prev : &agenda->last) = item;
    agenda->count++;
}

static void take_out(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    *(item->prev != NULL ? &item->prev->next : &agenda->first) = item->next;
    *(item->next != NULL ? &item->next->prev : &agenda->last) = item->prev;
    item->next = item->prev = NULL;
    agenda->count--;
}

void hf_agenda_add(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (!hf_agenda_is_queued(agenda, item))
        link_between(agenda, item, agenda->last, NULL);
}

void hf_agenda_add_first(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (!hf_agenda_is_queued(agenda, item))
        link_between(agenda, item, NULL, agenda->first);
}

/* Alarms. */

static struct hf_agenda_item *item_of(const struct hf_heap_node *node)
{
    return (struct hf_agenda_item *)((char *)node - offsetof(struct hf_agenda_item, alarm));
}

static bool is_earlier(const struct hf_heap_node *a, const struct hf_heap_node *b)
{
    return item_of(a)->at < item_of(b)->at;
}

static void clear_alarm(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (!hf_agenda_is_timed(agenda, item))
        return;
    agenda->alarms = hf_heap_remove(agenda->alarms, &item->alarm, is_earlier);
}

void hf_agenda_set_alarm(struct hf_agenda *agenda, struct hf_agenda_item *item, hf_ms at)
{
    if (hf_agenda_is_timed(agenda, item) && item->at == at)
        return;
    clear_alarm(agenda, item);
    if (at == HF_AGENDA_NEVER)
        return;
    item->at = at;
    agenda->alarms = hf_heap_meld(agenda->alarms, &item->alarm, is_earlier);
}

/* Puts all that share the earliest time into the queue in one pass over them: when many leases
 * end at once, their agents are due at once, and to take each out of the heap by itself would
 * order the rest again every time. Lists of siblings that are still to be looked at are chained
 * by the `back` of their first. */
static void ring_earliest(struct hf_agenda *agenda)
{
    struct hf_heap_node *lists = agenda->alarms, *later = NULL;
    hf_ms at = item_of(lists)->at;

    while (lists != NULL) {
        struct hf_heap_node *node = lists, *child = node->child;

        lists = node->sibling != NULL ? node->sibling : node->back;
        if (node->sibling != NULL)
            node->sibling->back = node->back;
        node->sibling = node->back = NULL;
        if (item_of(node)->at > at) {
            node->sibling = later;
            later = node;
            continue;
        }
        if (child != NULL) {
            child->back = lists;
            lists = child;
        }
        node->child = NULL;
        hf_agenda_add(agenda, item_of(node));
    }
    agenda->alarms = hf_heap_meld_all(later, is_earlier);
}

struct hf_agenda_item *hf_agenda_take(struct hf_agenda *agenda, hf_ms now)
{
    struct hf_agenda_item *item;

    while (agenda->alarms != NULL && item_of(agenda->alarms)->at <= now)
        ring_earliest(agenda);
    item = agenda->first;
    if (item != NULL)
        take_out(agenda, item);
    return item;
}

void hf_agenda_remove(struct hf_agenda *agenda, struct hf_agenda_item *item)
{
    if (hf_agenda_is_queued(agenda, item))
        take_out(agenda, item);
    clear_alarm(agenda, item);
}

hf_ms hf_agenda_deadline(const struct hf_agenda *agenda, hf_ms now)
{
    if (agenda->first != NULL)
        return now;
    if (agenda->alarms == NULL)
        return HF_AGENDA_NEVER;
    return item_of(agenda->alarms)->at > now ? item_of(agenda->alarms)->at : now;
}
