/* fleet_private.h - what fleet.c (objects), fleet_apply.c (changes) and fleet_root.c (who reads
 * which files) share. */
#ifndef HF_CORE_FLEET_PRIVATE_H
#define HF_CORE_FLEET_PRIVATE_H

#include "core/fleet.h"
#include "core/index.h"

enum { HF_FLEET_RETIRED = 16 };

/* Of a cell that was replaced. */
struct hf_retired {
    ProtobufCMessage *record;
    const void *text;
};

struct hf_fleet {
    struct hf_fleet_config cfg;
    struct hf_index objects[HF_FLEET_KINDS];
    struct hf_index roots;
    struct hf_cell meta, clock, leader;
    size_t live_agents, live_hosts, commands;
    struct hf_retired retired[HF_FLEET_RETIRED]; /* replaced, and freed a few changes later */
    size_t oldest;                               /* of them */
};

/* Links. Each list is singly linked, and a member knows the pointer that points at it. */

#define LINK(list, member, next, at)                                                           \
    do {                                                                                       \
        (member)->next = (list);                                                               \
        (member)->at = &(list);                                                                \
        if ((member)->next != NULL)                                                            \
            (member)->next->at = &(member)->next;                                              \
        (list) = (member);                                                                     \
    } while (0)

#define UNLINK(member, next, at)                                                               \
    do {                                                                                       \
        *(member)->at = (member)->next;                                                        \
        if ((member)->next != NULL)                                                            \
            (member)->next->at = (member)->at;                                                 \
        (member)->next = NULL;                                                                 \
        (member)->at = NULL;                                                                   \
    } while (0)

static inline bool hf_cell_exists(const struct hf_cell *cell)
{
    return cell->record != NULL;
}

static inline bool hf_lean_cell_exists(const struct hf_lean_cell *cell)
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
void hf_lean_cell_clear(struct hf_lean_cell *cell);
void hf_retired_clear(struct hf_retired *retired);

/* NULL: it is not known. */
void *hf_fleet_find(const struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name);

/* Finds it or makes it; NULL: no memory. */
void *hf_fleet_need(struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name);

/* Objects go when nothing is left of them; NULL is fine. */
void hf_fleet_drop_if_empty(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object);

/* After a failure: an object that was made for it goes as it came, unknown to anybody. One that
 * was there before is not empty, and stays. NULL is fine. */
void hf_fleet_undo(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object);

/* fleet_root.c. What may fail is asked for first, with `need`; nothing else here can. */

/* Room to count an agent of that role where the files of this host are read; it is always used.
 * Here and below, NULL is fine. */
int hf_fleet_need_seat(struct hf_fleet *fleet, struct hf_role *role,
                       const struct hf_host *host) HF_MUST_CHECK;

/* An agent of that role that lives here comes, or goes. Who moves comes before it goes, so that
 * what is in both places stays. */
void hf_fleet_count_seat(struct hf_fleet *fleet, struct hf_role *role,
                         const struct hf_host *host, bool comes);

/* How a pending task waits for an agent of that role where that root is; NULL: no memory. */
struct hf_waiting *hf_fleet_need_waiting(struct hf_fleet *fleet, struct hf_task *task,
                                         struct hf_role *role, const char *root);
void hf_fleet_undo_waiting(struct hf_fleet *fleet, struct hf_waiting *waiting);
void hf_fleet_set_waiting(struct hf_fleet *fleet, struct hf_task *task,
                          struct hf_waiting *waiting);

/* The roots of a host, as they shall be. */
struct hf_fleet_roots {
    struct hf_reader *readers;
    size_t count;
    bool same; /* as it has them: there is nothing to do */
};

int hf_fleet_need_roots(struct hf_fleet *fleet, struct hf_host *host,
                        const Holdfast__V1__Host *record,
                        struct hf_fleet_roots *ret_roots) HF_MUST_CHECK;
void hf_fleet_set_roots(struct hf_fleet *fleet, struct hf_host *host,
                        const struct hf_fleet_roots *roots);

/* After any change of its keys. */
void hf_fleet_open_host(struct hf_host *host);

/* What all of them hold, when everything goes. */
void hf_fleet_clear_roots(struct hf_fleet *fleet);
void hf_fleet_clear_rooted(struct hf_role *role);

#endif
