#include "io/alarms.h"

#include <assert.h>

static void link_in(struct hf_alarm **place, struct hf_alarm *alarm)
{
    alarm->next = *place;
    alarm->link = place;
    if (alarm->next != NULL)
        alarm->next->link = &alarm->next;
    *place = alarm;
}

void hf_alarms_set(struct hf_alarms *alarms, struct hf_alarm *alarm, hf_ms at)
{
    struct hf_alarm **place = &alarms->first;

    assert(alarm->fn != NULL);
    hf_alarms_unset(alarm);
    alarm->at = at;
    while (*place != NULL && (*place)->at <= at)
        place = &(*place)->next;
    link_in(place, alarm);
}

void hf_alarms_unset(struct hf_alarm *alarm)
{
    if (alarm->link == NULL)
        return;
    *alarm->link = alarm->next;
    if (alarm->next != NULL)
        alarm->next->link = alarm->link;
    alarm->next = NULL;
    alarm->link = NULL;
}

hf_ms hf_alarms_get_next(const struct hf_alarms *alarms)
{
    return alarms->first != NULL ? alarms->first->at : HF_ALARMS_NEVER;
}

/* Those that are due move to a list of their own, which whoever is called may still unset. */
void hf_alarms_ring(struct hf_alarms *alarms, hf_ms now)
{
    struct hf_alarm *due = NULL;
    struct hf_alarm **end = &due;

    while (alarms->first != NULL && alarms->first->at <= now) {
        struct hf_alarm *alarm = alarms->first;

        hf_alarms_unset(alarm);
        link_in(end, alarm);
        end = &alarm->next;
    }
    while (due != NULL) {
        struct hf_alarm *alarm = due;

        hf_alarms_unset(alarm);
        alarm->fn(alarm);
    }
}
