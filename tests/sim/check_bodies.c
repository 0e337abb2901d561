/* check_bodies.c - checkpoints that lie in etcd: a body is there exactly while an entry names
 * it (I16). */
#include <stdio.h>
#include <string.h>

#include "core/body.h"
#include "sim/check_private.h"

static struct c_kept *find(struct hfs_check *check, const char *task, int64_t number)
{
    struct c_kept *kept;

    for (size_t i = 0; i < check->kept_count; i++) {
        kept = &check->kept[i];
        if (kept->number == number && strcmp(kept->task, task) == 0)
            return kept;
    }
    hfs_grow(&check->kept, &check->kept_cap, check->kept_count + 1, sizeof *kept);
    kept = &check->kept[check->kept_count++];
    *kept = (struct c_kept){ .number = number };
    (void)snprintf(kept->task, sizeof kept->task, "%s", task);
    return kept;
}

static struct c_kept *find_entry(struct hfs_check *check, const char *task, int64_t seq)
{
    for (size_t i = 0; i < check->kept_count; i++) {
        struct c_kept *kept = &check->kept[i];

        if (kept->named && kept->seq == seq && strcmp(kept->task, task) == 0)
            return kept;
    }
    return NULL;
}

void hfs_check_apply_entry(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Checkpoint *entry = (const Holdfast__V1__Checkpoint *)change->record;
    struct c_kept *kept = find_entry(check, change->key.name, change->key.seq);

    if (kept != NULL) {
        kept->named = false;
        kept->touched = true;
    }
    if (entry == NULL || hf_body_number(entry) == 0)
        return;
    kept = find(check, change->key.name, hf_body_number(entry));
    kept->named = kept->touched = true;
    kept->seq = change->key.seq;
}

void hfs_check_apply_body(struct hfs_check *check, const struct c_change *change)
{
    struct c_kept *kept = find(check, change->key.name, change->key.seq);

    kept->there = !change->deleted;
    kept->touched = true;
}

void hfs_check_judge_bodies(struct hfs_check *check, bool judge)
{
    for (size_t i = check->kept_count; i-- > 0;) {
        struct c_kept *kept = &check->kept[i];

        if (judge && kept->touched && kept->there != kept->named)
            hfs_check_violate(check, "I16 body %lld of %s is %s, and %s names it",
                              (long long)kept->number, kept->task,
                              kept->there ? "there" : "not there",
                              kept->named ? "a checkpoint" : "no checkpoint");
        kept->touched = false;
        if (!kept->there && !kept->named)
            *kept = check->kept[--check->kept_count];
    }
}
