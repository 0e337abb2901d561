/* What somebody was told of and still lasts: a task beyond its deadline, one that only some
 * hosts could go on with, a role that has work and no agent. Nothing else of it stands in etcd,
 * so the clock, which each leader writes and the next one reads, says what was told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/engine_private.h"

#define WRITE_WITHIN 1000 /* what is told in a second is written once */

static const struct {
    const char *prefix;
    size_t len;
} TOPICS[] = {
#define X(name, text) [HF_TOLD_##name] = { text "/", sizeof(text) },
    HF_TOLD_MAP(X)
#undef X
};

static const Holdfast__V1__Clock *get_clock(const struct hf_engine *e)
{
    return (const Holdfast__V1__Clock *)hf_fleet_get_clock(e->fleet)->record;
}

static bool is_entry(const char *entry, enum hf_told_topic topic, const char *name)
{
    return strncmp(entry, TOPICS[topic].prefix, TOPICS[topic].len) == 0 &&
           strcmp(entry + TOPICS[topic].len, name) == 0;
}

static bool is_written(const struct hf_engine *e, enum hf_told_topic topic, const char *name)
{
    const Holdfast__V1__Clock *clock = get_clock(e);

    for (size_t i = 0; clock != NULL && i < clock->n_told; i++) {
        if (is_entry(clock->told[i], topic, name))
            return true;
    }
    return false;
}

bool hf_told_has(const struct hf_engine *e, enum hf_told_topic topic, const char *name)
{
    for (size_t i = 0; i < e->told.count; i++) {
        if (is_entry(e->told.fresh[i], topic, name))
            return true;
    }
    return is_written(e, topic, name);
}

static void write_soon(struct hf_engine *e)
{
    if (e->told.due == 0)
        e->told.due = e->now + WRITE_WITHIN;
    hf_engine_wake(e, &e->clock_item, e->told.due);
}

/* Without room or memory the next leader tells it again, which is not worth more. */
void hf_told_add(struct hf_engine *e, enum hf_told_topic topic, const char *name)
{
    size_t size = TOPICS[topic].len + strlen(name) + 1;
    char *entry = e->told.count < HF_TOLD_MOST ? hf_calloc(1, size) : NULL;

    if (entry == NULL)
        return;
    (void)snprintf(entry, size, "%s%s", TOPICS[topic].prefix, name);
    e->told.fresh[e->told.count++] = entry;
    write_soon(e);
}

void hf_told_on_over(struct hf_engine *e, enum hf_told_topic topic, const char *name)
{
    if (e->term.lease != 0 && e->synced && is_written(e, topic, name))
        write_soon(e);
}

static bool is_late(const struct hf_engine *e, const char *name)
{
    const struct hf_task *task = hf_fleet_get_task(e->fleet, name);
    const Holdfast__V1__Task *record = task != NULL ? hf_task_record(task) : NULL;

    return record != NULL && record->deadline != NULL && !hf_task_is_final(record->state);
}

static bool is_rooted(const struct hf_engine *e, const char *name)
{
    const struct hf_task *task = hf_fleet_get_task(e->fleet, name);

    return task != NULL && hf_task_record(task) != NULL &&
           hf_task_record(task)->state == HOLDFAST__V1__TASK__STATE__pending &&
           hf_task_root(task) != NULL && !hf_engine_is_served(task);
}

static bool is_lonely(const struct hf_engine *e, const char *name)
{
    const struct hf_role *role = hf_fleet_get_role(e->fleet, name);

    return role != NULL && role->live_count == 0 && role->pending_count > 0;
}

/* An entry that only a newer version knows stays for it to judge. */
static bool lasts(const struct hf_engine *e, const char *entry)
{
    if (strncmp(entry, TOPICS[HF_TOLD_LATE].prefix, TOPICS[HF_TOLD_LATE].len) == 0)
        return is_late(e, entry + TOPICS[HF_TOLD_LATE].len);
    if (strncmp(entry, TOPICS[HF_TOLD_ROOT].prefix, TOPICS[HF_TOLD_ROOT].len) == 0)
        return is_rooted(e, entry + TOPICS[HF_TOLD_ROOT].len);
    if (strncmp(entry, TOPICS[HF_TOLD_ROLE].prefix, TOPICS[HF_TOLD_ROLE].len) == 0)
        return is_lonely(e, entry + TOPICS[HF_TOLD_ROLE].len);
    return true;
}

/* What the record has is not fresh any more. */
static void drop_written(struct hf_engine *e)
{
    const Holdfast__V1__Clock *clock = get_clock(e);
    size_t kept = 0;

    for (size_t i = 0; i < e->told.count; i++) {
        char *entry = e->told.fresh[i];
        bool written = false;

        for (size_t k = 0; clock != NULL && k < clock->n_told && !written; k++)
            written = strcmp(clock->told[k], entry) == 0;
        if (written)
            free(entry);
        else
            e->told.fresh[kept++] = entry;
    }
    e->told.count = kept;
}

bool hf_told_is_due(const struct hf_engine *e, hf_ms now)
{
    return e->told.due != 0 && now >= e->told.due;
}

void hf_told_write(struct hf_engine *e, Holdfast__V1__Clock *next)
{
    const Holdfast__V1__Clock *clock = get_clock(e);
    size_t count = 0;

    drop_written(e);
    e->told.due = 0;
    for (size_t i = 0; i < e->told.count && count < HF_TOLD_MOST; i++)
        e->told.list[count++] = e->told.fresh[i];
    for (size_t i = 0; clock != NULL && i < clock->n_told && count < HF_TOLD_MOST; i++) {
        if (lasts(e, clock->told[i]))
            e->told.list[count++] = clock->told[i];
    }
    next->told = e->told.list;
    next->n_told = count;
}

void hf_told_clear(struct hf_engine *e)
{
    while (e->told.count > 0)
        free(e->told.fresh[--e->told.count]);
    e->told.due = 0;
}
