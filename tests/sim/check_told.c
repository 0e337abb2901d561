/* check_told.c - the audit trail is a story: nobody tells the same thing again and again (I15).
 */
#include <stdio.h>

#include "base/hash.h"
#include "sim/check_private.h"

/* Who never hears what came of an entry writes it once more when it has waited for that, and
 * one whose etcd was restored does so until the first answer. Soon and again is neither. */
enum { SOON_MS = 500, MOST_TIMES = 2 };

/* What makes two entries tell the same: the same one says the same of the same, and knew
 * nothing new. */
static uint32_t sense_of(const Holdfast__V1__Event *event)
{
    char text[1024];
    int len = snprintf(text, sizeof text, "%d %s %s %s %lld %s", (int)event->kind, event->actor,
                       event->agent, event->task, (long long)event->revision, event->why);

    return hf_hash(0, text, (size_t)len < sizeof text ? (size_t)len : sizeof text - 1);
}

void hfs_check_judge_told(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Event *event = (const Holdfast__V1__Event *)change->record;
    struct c_told *told = NULL;
    uint32_t sense;

    if (event == NULL || check->writer == NULL || check->writer->role != HFS_CONTROLLER)
        return;
    sense = sense_of(event);
    for (size_t i = 0; i < HFS_TOLD && told == NULL; i++) {
        if (check->told[i].times > 0 && check->told[i].sense == sense)
            told = &check->told[i];
    }
    if (told == NULL) {
        told = &check->told[check->told_count++ % HFS_TOLD];
        *told = (struct c_told){ .sense = sense, .at = check->world->now };
    }
    if (told->revision == change->entry->mod_rev)
        return; /* what happened twice is told twice, in the same words */
    told->revision = change->entry->mod_rev;
    if (check->world->now - told->at > SOON_MS)
        told->times = 0;
    told->at = check->world->now;
    if (++told->times > MOST_TIMES)
        hfs_check_violate(check, "I15 %s tells %u times of %s%s: %s", check->writer->name,
                          told->times, event->agent, event->task, event->why);
}
