/* fleet_private.h - what fleet.c (objects) and fleet_apply.c (changes) share. */
#ifndef HF_CORE_FLEET_PRIVATE_H
#define HF_CORE_FLEET_PRIVATE_H

#include "core/fleet.h"
#include "core/index.h"

enum { HF_FLEET_RETIRED = 16 };

struct hf_fleet {
    struct hf_fleet_config cfg;
    struct hf_index objects[HF_FLEET_KINDS];
    struct hf_cell meta, clock, leader;
    size_t live_agents, live_hosts, commands;
    struct hf_cell retired[HF_FLEET_RETIRED]; /* replaced, and freed a few changes later */
    size_t oldest;                            /* of them */
};

static inline bool hf_cell_exists(const struct hf_cell *cell)
{
    return cell->record != NULL;
}

/* Of any object. */
static inline const char *hf_fleet_name(const void *object)
{
    return *(const char *const *)object;
}

/* Frees what it holds. */
void hf_cell_clear(struct hf_cell *cell);

/* NULL: it is not known. */
void *hf_fleet_find(const struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name);

/* Finds it or makes it; NULL: no memory. */
void *hf_fleet_need(struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name);

/* Objects go when nothing is left of them; NULL is fine. */
void hf_fleet_drop_if_empty(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object);

/* After a failure: an object that was made for it goes as it came, unknown to anybody. One that
 * was there before is not empty, and stays. NULL is fine. */
void hf_fleet_undo(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object);

#endif
