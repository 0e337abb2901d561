#include "sim/world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define NEWS (UINT64_C(1) << 62) /* what goes before everything else has a lower order */

_Noreturn void hfs_die(const char *what, int err)
{
    (void)fprintf(stderr, "holdfast-sim: %s: %s\n", what, hf_err_text(err));
    abort();
}

static _Thread_local bool memory_may_fail;

bool hfs_memory_may_fail(void)
{
    return memory_may_fail;
}

bool hfs_memory_set(bool may_fail)
{
    bool was = memory_may_fail;

    memory_may_fail = may_fail;
    return was;
}

void *hfs_alloc(size_t size)
{
    bool was = hfs_memory_set(false);
    void *memory = hf_calloc(1, size);

    (void)hfs_memory_set(was);
    if (memory == NULL)
        hfs_die("memory", HF_ENOMEM);
    return memory;
}

char *hfs_copy_text(const char *text)
{
    bool was = hfs_memory_set(false);
    char *copy = hf_strdup(text);

    (void)hfs_memory_set(was);
    if (copy == NULL)
        hfs_die("memory", HF_ENOMEM);
    return copy;
}

void hfs_grow(void *slot, size_t *cap, size_t need, size_t size)
{
    bool was = hfs_memory_set(false);

    if (!hf_grow(slot, cap, need, size))
        hfs_die("memory", HF_ENOMEM);
    (void)hfs_memory_set(was);
}

void hfs_world_init(struct hfs_world *world, uint64_t seed)
{
    *world = (struct hfs_world){ .random = { .state = seed }, .order = NEWS };
}

void hfs_world_done(struct hfs_world *world)
{
    for (size_t i = 1; i <= world->count; i++)
        world->queue[i]->place = 0;
    free(world->queue);
    *world = (struct hfs_world){ 0 };
}

/* The queue. */

static bool is_before(const struct hfs_timer *a, const struct hfs_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put_at(struct hfs_world *world, struct hfs_timer *timer, size_t place)
{
    world->queue[place] = timer;
    timer->place = place;
}

static void rise(struct hfs_world *world, struct hfs_timer *timer)
{
    size_t place = timer->place;

    while (place > 1 && is_before(timer, world->queue[place / 2])) {
        put_at(world, world->queue[place / 2], place);
        place /= 2;
    }
    put_at(world, timer, place);
}

static void sink(struct hfs_world *world, struct hfs_timer *timer)
{
    size_t place = timer->place;

    for (;;) {
        size_t child = 2 * place;

        if (child > world->count)
            break;
        if (child < world->count && is_before(world->queue[child + 1], world->queue[child]))
            child++;
        if (!is_before(world->queue[child], timer))
            break;
        put_at(world, world->queue[child], place);
        place = child;
    }
    put_at(world, timer, place);
}

static void enqueue(struct hfs_world *world, struct hfs_timer *timer)
{
    hfs_grow(&world->queue, &world->cap, world->count + 2, sizeof(void *));
    put_at(world, timer, ++world->count);
    rise(world, timer);
}

static void dequeue(struct hfs_world *world, struct hfs_timer *timer)
{
    struct hfs_timer *last = world->queue[world->count--];
    size_t place = timer->place;

    timer->place = 0;
    if (last == timer)
        return;
    put_at(world, last, place);
    rise(world, last);
    sink(world, last);
}

void hfs_timer_start(struct hfs_world *world, struct hfs_timer *timer, hf_ms at)
{
    if (timer->place != 0)
        dequeue(world, timer);
    timer->at = at > world->now ? at : world->now;
    timer->order = ++world->order;
    enqueue(world, timer);
}

void hfs_timer_stop(struct hfs_world *world, struct hfs_timer *timer)
{
    if (timer->place != 0)
        dequeue(world, timer);
}

/* What a process that stands still missed comes in its old order when it goes on; or what it
 * finds in its sockets first, in that order. */
static bool put_off(struct hfs_world *world, struct hfs_timer *timer)
{
    struct hfs_process *process = timer->process;

    if (process == NULL || process->stands_until <= world->now)
        return false;
    timer->at = process->stands_until;
    if (process->reads_first && timer->is_news && timer->order > NEWS)
        timer->order -= NEWS;
    enqueue(world, timer);
    return true;
}

bool hfs_world_step(struct hfs_world *world, hf_ms until)
{
    struct hfs_timer *timer = world->count > 0 ? world->queue[1] : NULL;
    struct hfs_process *process;

    if (timer == NULL || timer->at > until) {
        world->now = until;
        return false;
    }
    world->now = timer->at;
    dequeue(world, timer);
    if (put_off(world, timer))
        return true;
    world->steps++;
    process = timer->process;
    if (process != NULL && process->turn_max > 0)
        process->stands_until =
            world->now +
            (hf_ms)hfs_random_below(&world->random, (uint64_t)process->turn_max + 1);
    (void)hfs_memory_set(process != NULL && process->is_real);
    timer->fn(timer); /* may free the timer, and its process */
    (void)hfs_memory_set(false);
    return true;
}

/* Processes. */

void hfs_process_init(struct hfs_process *process, struct hfs_world *world, const char *name)
{
    *process = (struct hfs_process){ .world = world, .name = name };
}

hf_ms hfs_process_now(const struct hfs_process *process)
{
    return process->world->now + process->clock_offset;
}

void hfs_process_pause(struct hfs_process *process, hf_ms length)
{
    hf_ms until = process->world->now + length;

    if (until <= process->stands_until)
        return;
    if (process->world->now > process->stood_until)
        process->stood_from = process->world->now;
    process->stands_until = process->stood_until = until;
}

void hfs_world_note(struct hfs_world *world, const char *fmt, ...)
{
    char line[2048];
    int len = snprintf(line, sizeof line, "%6lld.%03lld  ", (long long)(world->now / 1000),
                       (long long)(world->now % 1000));
    bool was = hfs_memory_set(false);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(line + len, sizeof line - (size_t)len, fmt, args);
    va_end(args);
    world->note(line, world->note_arg);
    (void)hfs_memory_set(was);
}
