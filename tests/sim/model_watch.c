#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/model_private.h"

static struct hfs_watch *find(const struct hfs_etcd *etcd, uint64_t id)
{
    size_t from = 0, to = etcd->watch_count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (etcd->watches[middle].id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from < etcd->watch_count && etcd->watches[from].id == id ? &etcd->watches[from]
                                                                    : NULL;
}

static void drop(struct hfs_etcd *etcd, struct hfs_watch *watch)
{
    size_t place = (size_t)(watch - etcd->watches);

    free((void *)watch->range.key.data);
    etcd->watch_count--;
    memmove(watch, watch + 1, (etcd->watch_count - place) * sizeof *watch);
}

void hfs_watches_end(struct hfs_etcd *etcd, unsigned member)
{
    for (size_t i = 0; i < etcd->watch_count; i++) {
        if (etcd->watches[i].member == member)
            etcd->watches[i].ended = true;
    }
}

void hfs_watches_done(struct hfs_etcd *etcd)
{
    for (size_t i = 0; i < etcd->watch_count; i++)
        free((void *)etcd->watches[i].range.key.data);
    free(etcd->watches);
}

int hfs_watch_open(struct hfs_etcd *etcd, unsigned member, const struct hfs_range *range,
                   hfs_rev start_rev, uint64_t *ret_id)
{
    const struct hfs_member *asked = &etcd->members[member];
    struct hfs_watch watch = { .id = etcd->last_watch + 1, .member = member, .range = *range };

    if (asked->state == HFS_MEMBER_PAUSED || asked->state == HFS_MEMBER_STALLED)
        return HFS_SILENT;
    if (asked->state == HFS_MEMBER_DOWN || asked->leader == HFS_NOBODY)
        return HF_EAGAIN;
    if (etcd->watch_count >= etcd->cfg.max_watches)
        return HF_ELIMIT;
    if (!hf_grow(&etcd->watches, &etcd->watch_cap, etcd->watch_count + 1, sizeof watch))
        return HF_ENOMEM;
    watch.range.key.data = hf_memdup(range->key.data, range->key.len);
    if (watch.range.key.data == NULL)
        return HF_ENOMEM;
    watch.next = start_rev > 0 ? start_rev : hfs_member_revision(etcd, member) + 1;
    watch.muted = hfs_random_percent(&etcd->random, etcd->faults.mute_percent);
    etcd->watches[etcd->watch_count++] = watch;
    etcd->last_watch = watch.id;
    *ret_id = watch.id;
    return HFS_ANSWERED;
}

/* Puts the events of the first revision from `from` to `to` that has some into etcd->found. */
static int collect(struct hfs_etcd *etcd, const struct hfs_watch *watch, hfs_rev from,
                   hfs_rev to)
{
    const struct hfs_store *store = &etcd->store;
    struct hfs_found *found = &etcd->found;

    found->count = 0;
    for (size_t i = hfs_store_find(store, from); i < store->log_count; i++) {
        const struct hfs_entry *entry = store->log[i];

        if (entry->mod_rev > to ||
            (found->count > 0 && entry->mod_rev > found->list[0]->mod_rev))
            break;
        if (!hfs_range_contains(&watch->range, hfs_entry_key(entry)))
            continue;
        if (!hf_grow(&found->list, &found->cap, found->count + 1, sizeof(void *)))
            return HF_ENOMEM;
        found->list[found->count++] = entry;
    }
    return HF_OK;
}

/* Makes a batch of what was collected, even if that is nothing: returns 1 or HF_ENOMEM. */
static int emit(const struct hfs_etcd *etcd, const struct hfs_watch *watch,
                struct hfs_batch **ret_batch)
{
    size_t size = sizeof(struct hfs_batch), count = etcd->found.count;
    struct hfs_event *events;
    struct hfs_batch *batch;
    char *place;

    for (size_t i = 0; i < count; i++)
        size += sizeof *events + hfs_kv_size(etcd->found.list[i], false);
    batch = malloc(size);
    if (batch == NULL)
        return HF_ENOMEM;
    events = (struct hfs_event *)(batch + 1);
    place = (char *)(events + count);
    for (size_t i = 0; i < count; i++) {
        events[i].deleted = etcd->found.list[i]->version == 0;
        events[i].kv = hfs_kv_place(etcd->found.list[i], false, &place);
    }
    *batch = (struct hfs_batch){ .header = hfs_member_header(etcd, watch->member),
                                 .events = events,
                                 .count = count };
    *ret_batch = batch;
    return 1;
}

static void lose_one(struct hfs_etcd *etcd)
{
    struct hfs_found *found = &etcd->found;
    size_t lost = hfs_random_below(&etcd->random, found->count);

    found->count--;
    memmove(&found->list[lost], &found->list[lost + 1], (found->count - lost) * sizeof(void *));
}

/* Now that a batch was told: shall it, or an older one, come again? */
static void draw_repetition(struct hfs_etcd *etcd, struct hfs_watch *watch, hfs_rev revision)
{
    hfs_rev first = etcd->store.compacted > 0 ? etcd->store.compacted : 1;

    if (hfs_random_percent(&etcd->random, etcd->faults.duplicate_percent))
        watch->repeat = revision;
    else if (hfs_random_percent(&etcd->random, etcd->faults.old_percent))
        watch->repeat =
            first + (hfs_rev)hfs_random_below(&etcd->random, (uint64_t)(revision - first) + 1);
}

/* The next batch in its order, if it is not lost. */
static int tell_next(struct hfs_etcd *etcd, struct hfs_watch *watch,
                     struct hfs_batch **ret_batch)
{
    hfs_rev newest = hfs_member_revision(etcd, watch->member);

    while (watch->next <= newest) {
        hfs_rev revision;

        if (collect(etcd, watch, watch->next, newest) != HF_OK)
            return HF_ENOMEM;
        revision = etcd->found.count > 0 ? etcd->found.list[0]->mod_rev : newest;
        if (etcd->found.count > 0 &&
            hfs_random_percent(&etcd->random, etcd->faults.lose_percent))
            lose_one(etcd);
        if (etcd->found.count > 0 && emit(etcd, watch, ret_batch) != 1)
            return HF_ENOMEM;
        watch->next = revision + 1;
        if (etcd->found.count > 0) {
            draw_repetition(etcd, watch, revision);
            return 1;
        }
    }
    return 0;
}

static int tell_again(struct hfs_etcd *etcd, struct hfs_watch *watch,
                      struct hfs_batch **ret_batch)
{
    hfs_rev revision = watch->repeat;
    int told = 0;

    if (collect(etcd, watch, revision, revision) != HF_OK)
        return HF_ENOMEM;
    if (etcd->found.count > 0)
        told = emit(etcd, watch, ret_batch);
    if (told >= 0)
        watch->repeat = 0;
    return told;
}

static int tell_progress(struct hfs_etcd *etcd, struct hfs_watch *watch,
                         struct hfs_batch **ret_batch)
{
    int told;

    etcd->found.count = 0;
    told = emit(etcd, watch, ret_batch);
    if (told == 1)
        watch->asked = false;
    return told;
}

static int tell(struct hfs_etcd *etcd, struct hfs_watch *watch, struct hfs_batch **ret_batch)
{
    int told = 0;

    if (watch->asked && etcd->faults.early_progress)
        return tell_progress(etcd, watch, ret_batch);
    if (watch->repeat > 0)
        told = tell_again(etcd, watch, ret_batch);
    if (told == 0)
        told = tell_next(etcd, watch, ret_batch);
    if (told == 0 && watch->asked)
        told = tell_progress(etcd, watch, ret_batch);
    return told;
}

int hfs_watch_next(struct hfs_etcd *etcd, uint64_t id, struct hfs_batch **ret_batch)
{
    struct hfs_watch *watch = find(etcd, id);
    const struct hfs_member *member;

    if (watch == NULL)
        return HF_ENOENT;
    if (watch->ended) {
        drop(etcd, watch);
        return HF_EAGAIN;
    }
    member = &etcd->members[watch->member];
    if (watch->muted || member->state == HFS_MEMBER_PAUSED ||
        member->state == HFS_MEMBER_STALLED)
        return 0;
    if (watch->next >= etcd->store.compacted)
        return tell(etcd, watch, ret_batch);
    if (member->behind > 0) /* it has not heard of the compaction */
        return 0;
    drop(etcd, watch);
    return HF_ECOMPACT;
}

void hfs_watch_ask_progress(struct hfs_etcd *etcd, uint64_t id)
{
    struct hfs_watch *watch = find(etcd, id);

    if (watch != NULL)
        watch->asked = true;
}

void hfs_watch_mute(struct hfs_etcd *etcd, uint64_t id)
{
    struct hfs_watch *watch = find(etcd, id);

    if (watch != NULL)
        watch->muted = true;
}

void hfs_watch_cancel(struct hfs_etcd *etcd, uint64_t id)
{
    struct hfs_watch *watch = find(etcd, id);

    if (watch != NULL)
        drop(etcd, watch);
}
