/* core_world.h - a fleet for `./dev bench core`, what happens to it, and an engine that is
 * told.
 *
 * Events come in batches, as a watch brings them: a batch is decoded outside of the measured
 * time, then given to the engine of a leader, which is asked for everything that it wants to do
 * about it. Time is this thread's CPU time. */
#ifndef HFB_CORE_WORLD_H
#define HFB_CORE_WORLD_H

#include <stdint.h>

#include "core/engine.h"

#define HFB_BATCH     100
#define HFB_NAME_SIZE 32

/* With what it borrows beside it, as in a message from etcd. */
struct hfb_event {
    struct hf_fleet_change change;
    char name[HFB_NAME_SIZE];
};

/* Whether the checkpoints of the tasks lie in files of their agents' hosts, and then all are of
 * one role: in none, in such as are read there, or in such as no host reads any more. */
enum hfb_roots { HFB_ROOTS_NONE, HFB_ROOTS_READ, HFB_ROOTS_UNREAD };

/* A fleet of n agents with one task each, and what happens to it. */
struct hfb_world {
    size_t agents, hosts;
    enum hfb_roots roots;
    char (*agent_names)[HFB_NAME_SIZE];
    char (*host_names)[HFB_NAME_SIZE];
    char (*task_names)[HFB_NAME_SIZE];
    enum _Holdfast__V1__Task__State *task_states;
    int64_t *lives; /* revisions in which the live keys were created */
    struct hf_engine *engine;
    hf_ms now;
    size_t writes; /* that the engine asked for */
    uint64_t random;
    int64_t rev;
    struct hfb_event *events;
    size_t count;
};

/* Ends the program with a sentence. */
_Noreturn void hfb_die(const char *what);
void *hfb_need(void *memory);
double hfb_cpu_seconds(void);

void hfb_world_init(struct hfb_world *world, size_t agents, enum hfb_roots roots);
void hfb_world_done(struct hfb_world *world);

/* Adds events: all that a takeover finds; a batch of 70 % reports, 20 % tasks, 10 % ends and
 * beginnings of lives; a record of the i-th agent, host or task; or any other change. */
typedef int (*hfb_format_fn)(const struct hfb_world *world, size_t i, char *out, size_t size);
void hfb_world_list(struct hfb_world *world);
void hfb_world_draw(struct hfb_world *world);
void hfb_world_put(struct hfb_world *world, enum hf_key_kind kind, const char *name,
                   hfb_format_fn format, size_t i);
void hfb_world_add(struct hfb_world *world, enum hf_key_kind kind, const char *name,
                   ProtobufCMessage *record, struct hf_bytes text);
int hfb_format_exit(const struct hfb_world *world, size_t i, char *out, size_t size);

/* One event by itself. */
void hfb_world_step(struct hfb_world *world, struct hf_event *event);

/* Asks for all intents; what becomes of them stays unknown, so that nothing is told, but for
 * the clock. */
void hfb_world_ask(struct hfb_world *world);

/* Gives all events to the engine and asks for what it wants, or tells it that this was all and
 * that it leads; returns how long that took, in seconds. */
double hfb_world_apply(struct hfb_world *world);
double hfb_world_take_over(struct hfb_world *world);

#endif
