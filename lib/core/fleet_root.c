/* Who reads which files: roots, the hosts that read them, and for each role and root how many
 * of its agents live there and how many of its tasks wait for one. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fleet_private.h"

/* Roots. */

static struct hf_root *need_root(struct hf_fleet *fleet, const char *id)
{
    struct hf_root *root = hf_index_get(&fleet->roots, id);
    size_t size = strlen(id) + 1;

    if (root != NULL)
        return root;
    root = hf_calloc(1, sizeof *root + size);
    if (root == NULL)
        return NULL;
    root->name = memcpy(root + 1, id, size);
    if (hf_index_add(&fleet->roots, root) != HF_OK) {
        free(root);
        return NULL;
    }
    return root;
}

static void drop_root(struct hf_fleet *fleet, struct hf_root *root)
{
    if (root->users > 0)
        return;
    hf_index_remove(&fleet->roots, root);
    free(root);
}

/* A role and a root. */

/* After a change of anything that it counts, or of whether a host that is open reads it. */
static void settle(struct hf_rooted *rooted)
{
    bool read = rooted->root->readers != NULL;
    bool calls = read && rooted->pending_count > 0 && rooted->live_count == 0;
    size_t stranded = read ? 0 : rooted->pending_count;

    rooted->role->stranded_count += stranded - rooted->stranded;
    rooted->stranded = stranded;
    if (calls && rooted->at_call == NULL)
        LINK(rooted->role->calls, rooted, next_call, at_call);
    if (!calls && rooted->at_call != NULL)
        UNLINK(rooted, next_call, at_call);
}

static void settle_root(struct hf_root *root)
{
    for (struct hf_rooted *rooted = root->roles; rooted != NULL; rooted = rooted->next_of_root)
        settle(rooted);
}

static struct hf_rooted *need_rooted(struct hf_fleet *fleet, struct hf_role *role,
                                     const char *root)
{
    struct hf_rooted *rooted = hf_index_get(&role->rooted, root);

    if (rooted != NULL)
        return rooted;
    rooted = hf_calloc(1, sizeof *rooted);
    if (rooted == NULL)
        return NULL;
    rooted->role = role;
    rooted->root = need_root(fleet, root);
    rooted->name = rooted->root != NULL ? rooted->root->name : NULL;
    role->rooted.seed = fleet->cfg.seed;
    if (rooted->root == NULL || hf_index_add(&role->rooted, rooted) != HF_OK) {
        if (rooted->root != NULL)
            drop_root(fleet, rooted->root);
        free(rooted);
        return NULL;
    }
    rooted->root->users++;
    LINK(rooted->root->roles, rooted, next_of_root, at_of_root);
    return rooted;
}

/* If there is nothing left to count. */
static void drop_rooted(struct hf_fleet *fleet, struct hf_rooted *rooted)
{
    if (rooted->live_count > 0 || rooted->pending_count > 0)
        return;
    assert(rooted->at_call == NULL && rooted->stranded == 0);
    UNLINK(rooted, next_of_root, at_of_root);
    hf_index_remove(&rooted->role->rooted, rooted);
    rooted->root->users--;
    drop_root(fleet, rooted->root);
    free(rooted);
}

/* Tasks that wait. */

struct hf_waiting *hf_fleet_need_waiting(struct hf_fleet *fleet, struct hf_task *task,
                                         struct hf_role *role, const char *root)
{
    struct hf_waiting *waiting = task->waiting;

    if (waiting != NULL && waiting->rooted->role == role &&
        strcmp(waiting->rooted->name, root) == 0)
        return waiting;
    waiting = hf_calloc(1, sizeof *waiting);
    if (waiting == NULL)
        return NULL;
    waiting->task = task;
    waiting->rooted = need_rooted(fleet, role, root);
    if (waiting->rooted == NULL) {
        free(waiting);
        return NULL;
    }
    return waiting;
}

void hf_fleet_undo_waiting(struct hf_fleet *fleet, struct hf_waiting *waiting)
{
    if (waiting == NULL || waiting->task->waiting == waiting)
        return;
    drop_rooted(fleet, waiting->rooted);
    free(waiting);
}

void hf_fleet_set_waiting(struct hf_fleet *fleet, struct hf_task *task,
                          struct hf_waiting *waiting)
{
    struct hf_waiting *old = task->waiting;

    if (old == waiting)
        return;
    task->waiting = waiting;
    if (waiting != NULL) {
        LINK(waiting->rooted->tasks, waiting, next, at);
        waiting->rooted->pending_count++;
        settle(waiting->rooted);
    }
    if (old != NULL) {
        UNLINK(old, next, at);
        old->rooted->pending_count--;
        settle(old->rooted);
        drop_rooted(fleet, old->rooted);
        free(old);
    }
}

/* Agents where files are read. */

static void undo_seats(struct hf_fleet *fleet, struct hf_role *role,
                       const struct hf_reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_rooted *rooted = hf_index_get(&role->rooted, readers[i].root->name);

        if (rooted != NULL) /* a root that is named twice */
            drop_rooted(fleet, rooted);
    }
}

static int need_seats(struct hf_fleet *fleet, struct hf_role *role,
                      const struct hf_reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (need_rooted(fleet, role, readers[i].root->name) == NULL) {
            undo_seats(fleet, role, readers, i);
            return HF_ENOMEM;
        }
    }
    return HF_OK;
}

static void count_seats(struct hf_fleet *fleet, struct hf_role *role,
                        const struct hf_reader *readers, size_t count, bool comes)
{
    for (size_t i = 0; i < count; i++) {
        struct hf_rooted *rooted = hf_index_get(&role->rooted, readers[i].root->name);

        if (comes)
            rooted->live_count++;
        else
            rooted->live_count--;
        settle(rooted);
        drop_rooted(fleet, rooted);
    }
}

int hf_fleet_need_seat(struct hf_fleet *fleet, struct hf_role *role, const struct hf_host *host)
{
    return role != NULL && host != NULL
               ? need_seats(fleet, role, host->readers, host->reader_count)
               : HF_OK;
}

void hf_fleet_count_seat(struct hf_fleet *fleet, struct hf_role *role,
                         const struct hf_host *host, bool comes)
{
    if (role != NULL && host != NULL)
        count_seats(fleet, role, host->readers, host->reader_count, comes);
}

/* Hosts and what they read. */

static bool has_same(const struct hf_host *host, char *const *ids, size_t count)
{
    bool same = count == host->reader_count;

    for (size_t i = 0; same && i < count; i++)
        same = strcmp(host->readers[i].root->name, ids[i]) == 0;
    return same;
}

static void free_readers(struct hf_fleet *fleet, struct hf_reader *readers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        readers[i].root->users--;
        drop_root(fleet, readers[i].root);
    }
    free(readers);
}

static int make_readers(struct hf_fleet *fleet, struct hf_host *host, char *const *ids,
                        size_t count, struct hf_reader **ret_readers)
{
    struct hf_reader *readers = count > 0 ? hf_calloc(count, sizeof *readers) : NULL;

    if (count > 0 && readers == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        readers[i] = (struct hf_reader){ .root = need_root(fleet, ids[i]), .host = host };
        if (readers[i].root == NULL) {
            free_readers(fleet, readers, i);
            return HF_ENOMEM;
        }
        readers[i].root->users++;
    }
    *ret_readers = readers;
    return HF_OK;
}

int hf_fleet_need_roots(struct hf_fleet *fleet, struct hf_host *host,
                        const Holdfast__V1__Host *record, struct hf_fleet_roots *ret_roots)
{
    size_t named = record != NULL ? record->n_roots : 0;
    struct hf_fleet_roots roots = { .count = named < HF_HOST_ROOTS ? named : HF_HOST_ROOTS };
    const struct hf_agent *agent;
    int err = HF_OK;

    roots.same = has_same(host, record != NULL ? record->roots : NULL, roots.count);
    if (!roots.same)
        err = make_readers(fleet, host, record != NULL ? record->roots : NULL, roots.count,
                           &roots.readers);
    if (err != HF_OK)
        return err;
    for (agent = host->lives; agent != NULL && !roots.same; agent = agent->next_on_host) {
        if (agent->role != NULL)
            err = need_seats(fleet, agent->role, roots.readers, roots.count);
        if (err != HF_OK)
            break;
    }
    if (err != HF_OK) {
        for (const struct hf_agent *had = host->lives; had != agent; had = had->next_on_host) {
            if (had->role != NULL)
                undo_seats(fleet, had->role, roots.readers, roots.count);
        }
        free_readers(fleet, roots.readers, roots.count);
        return err;
    }
    *ret_roots = roots;
    return HF_OK;
}

static void open_reader(struct hf_reader *reader, bool open)
{
    struct hf_root *root = reader->root;
    bool was_read = root->readers != NULL;

    if (open && reader->at_open == NULL)
        LINK(root->readers, reader, next_open, at_open);
    if (!open && reader->at_open != NULL)
        UNLINK(reader, next_open, at_open);
    if ((root->readers != NULL) != was_read)
        settle_root(root);
}

void hf_fleet_open_host(struct hf_host *host)
{
    for (size_t i = 0; i < host->reader_count; i++)
        open_reader(&host->readers[i], hf_host_is_open(host));
}

/* The new ones are counted before the old ones are not, so that what is in both stays. */
void hf_fleet_set_roots(struct hf_fleet *fleet, struct hf_host *host,
                        const struct hf_fleet_roots *roots)
{
    struct hf_reader *old = host->readers;
    size_t old_count = host->reader_count;

    if (roots->same)
        return;
    host->readers = roots->readers;
    host->reader_count = roots->count;
    hf_fleet_open_host(host);
    for (struct hf_agent *agent = host->lives; agent != NULL; agent = agent->next_on_host) {
        if (agent->role == NULL)
            continue;
        count_seats(fleet, agent->role, roots->readers, roots->count, true);
        count_seats(fleet, agent->role, old, old_count, false);
    }
    for (size_t i = 0; i < old_count; i++)
        open_reader(&old[i], false);
    free_readers(fleet, old, old_count);
}

const struct hf_root *hf_fleet_get_root(const struct hf_fleet *fleet, const char *id)
{
    return hf_index_get(&fleet->roots, id);
}

/* The end of everything. */

void hf_fleet_clear_rooted(struct hf_role *role)
{
    size_t cursor = 0;
    void *rooted;

    while ((rooted = hf_index_next(&role->rooted, &cursor)) != NULL)
        free(rooted);
    hf_index_done(&role->rooted);
}

void hf_fleet_clear_roots(struct hf_fleet *fleet)
{
    size_t cursor = 0;
    void *root;

    while ((root = hf_index_next(&fleet->roots, &cursor)) != NULL)
        free(root);
    hf_index_done(&fleet->roots);
}
