#include "sim/model_lease.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void hfs_leases_done(struct hfs_leases *leases)
{
    free(leases->list);
    *leases = (struct hfs_leases){ 0 };
}

static size_t place_of(const struct hfs_leases *leases, int64_t id)
{
    size_t from = 0, to = leases->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;

        if (leases->list[middle].id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct hfs_lease *hfs_leases_find(const struct hfs_leases *leases, int64_t id)
{
    size_t place = place_of(leases, id);

    return place < leases->count && leases->list[place].id == id ? &leases->list[place] : NULL;
}

int hfs_leases_add(struct hfs_leases *leases, const struct hfs_lease *lease)
{
    size_t place = place_of(leases, lease->id);

    if (!hf_grow(&leases->list, &leases->cap, leases->count + 1, sizeof *lease))
        return HF_ENOMEM;
    memmove(&leases->list[place + 1], &leases->list[place],
            (leases->count - place) * sizeof *lease);
    leases->list[place] = *lease;
    leases->count++;
    return HF_OK;
}

void hfs_leases_remove(struct hfs_leases *leases, int64_t id)
{
    size_t place = place_of(leases, id);

    if (place == leases->count || leases->list[place].id != id)
        return;
    leases->count--;
    memmove(&leases->list[place], &leases->list[place + 1],
            (leases->count - place) * sizeof *leases->list);
}

int hfs_leases_copy(const struct hfs_leases *from, struct hfs_leases *to)
{
    struct hfs_leases copy = { .count = from->count };

    if (!hf_grow(&copy.list, &copy.cap, from->count + 1, sizeof *copy.list))
        return HF_ENOMEM;
    if (from->count > 0)
        memcpy(copy.list, from->list, from->count * sizeof *copy.list);
    hfs_leases_done(to);
    *to = copy;
    return HF_OK;
}
