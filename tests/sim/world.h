/* world.h - virtual time: one queue for everything that will happen, and processes that can be
 * slow, stand still or die.
 *
 * Deterministic: what is due at the same moment happens in the order in which it was asked for,
 * and all chance comes from one seed. A process is whatever has a loop of its own; what is due
 * for one that stands still happens when it goes on, in the same order. The simulator needs no
 * answer to a lack of memory: it ends. */
#ifndef HFS_WORLD_H
#define HFS_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "sim/model_etcd.h"
#include "sim/random.h"

/* What the wall clocks say when the world begins: some moment in 2026. */
#define HFS_WALL_BEGIN INT64_C(1780000000000)

struct hfs_world;
struct hfs_timer;
typedef void (*hfs_timer_fn)(struct hfs_timer *timer);

/* How a process reaches a member of etcd. */
enum hfs_path {
    HFS_PATH_OPEN,
    HFS_PATH_CUT,  /* nothing arrives, in either direction, and nobody says so */
    HFS_PATH_DEAF, /* requests arrive, answers do not */
};

/* Which class of writers it belongs to. */
enum hfs_role { HFS_NOBODY, HFS_CONTROLLER, HFS_AGENTD, HFS_PERSON };

struct hfs_process {
    struct hfs_world *world;
    enum hfs_role role;
    const char *name;              /* for transcripts; borrowed */
    hf_ms clock_offset;            /* its boot was this long before the world's beginning */
    hf_ms stands_until;            /* it does nothing before */
    hf_ms stood_from, stood_until; /* the last time that it was made to stand still */
    bool reads_first; /* when it goes on: what came for it goes before what was due */
    hf_ms turn_max;   /* a slow loop: each turn takes up to so long; 0: no time at all */
    enum hfs_path paths[HFS_MEMBERS];
    bool is_real;     /* it runs the code under test */
    hf_ms listed_at;  /* when it was last told everything that it follows, */
    int64_t told_rev; /* and the newest change of it that a watch told */
};

/* Lives inside its owner. Set `fn`, and `process` unless it belongs to the world itself. */
struct hfs_timer {
    hfs_timer_fn fn;
    struct hfs_process *process;
    bool is_news; /* something came, from outside */
    hf_ms at;
    uint64_t order;
    size_t place; /* in the queue, from 1; 0: not armed */
};

struct hfs_world {
    hf_ms now;
    struct hfs_random random;
    struct hfs_timer **queue; /* [1 .. count], a heap */
    size_t count, cap;
    uint64_t order;
    uint64_t steps;
    void (*note)(const char *line, void *arg); /* the transcript; NULL: none is wanted */
    void *note_arg;
    bool note_values; /* of keys, too */
};

void hfs_world_init(struct hfs_world *world, uint64_t seed);
void hfs_world_done(struct hfs_world *world);

/* (Re)arms: fires once, at `at` or, if that is in the past, as soon as possible. */
void hfs_timer_start(struct hfs_world *world, struct hfs_timer *timer, hf_ms at);
void hfs_timer_stop(struct hfs_world *world, struct hfs_timer *timer);

static inline bool hfs_timer_is_armed(const struct hfs_timer *timer)
{
    return timer->place != 0;
}

/* Does the next thing that is due at or before `until`. False when there is none; then it is
 * `until`. */
bool hfs_world_step(struct hfs_world *world, hf_ms until);

/* A process as it is when it starts. Its clock is the world's, offset. */
void hfs_process_init(struct hfs_process *process, struct hfs_world *world, const char *name);
hf_ms hfs_process_now(const struct hfs_process *process);

/* It does nothing for so long. */
void hfs_process_pause(struct hfs_process *process, hf_ms length);

/* A line of the transcript, with the time in front of it. Cheap when nobody listens. */
#define hfs_note(world, ...)                                                                   \
    do {                                                                                       \
        if ((world)->note != NULL)                                                             \
            hfs_world_note((world), __VA_ARGS__);                                              \
    } while (0)

void hfs_world_note(struct hfs_world *world, const char *fmt, ...) HF_PRINTF(2, 3);

/* Memory that may run out: what the code under test asks for while it is the turn of a process
 * that runs it. What the simulator itself needs is not meant. Of this thread. */
bool hfs_memory_may_fail(void);

/* The code under test begins (true), or ends; returns what was before. */
bool hfs_memory_set(bool may_fail);

/* Memory, or the end of the program. */
void *hfs_alloc(size_t size); /* zeroed */
char *hfs_copy_text(const char *text);
void hfs_grow(void *slot, size_t *cap, size_t need, size_t size);

/* Something that the simulator itself needs has failed. */
#define hfs_must(expression)                                                                   \
    do {                                                                                       \
        int must_ = (expression);                                                              \
        if (must_ < 0)                                                                         \
            hfs_die(#expression, must_);                                                       \
    } while (0)

_Noreturn void hfs_die(const char *what, int err);

#endif
