/* check_leader.c - who leads, and that nobody else writes what only a leader may (I4). */
#include "sim/check_private.h"

void hfs_check_judge_leader(struct hfs_check *check, const struct c_change *change)
{
    const struct c_lease *lease = hfs_check_find_lease(check, check->leader_lease);

    if (change->deleted && check->writer != NULL && lease != NULL &&
        lease->owner != check->writer)
        hfs_check_violate(check, "I4 %s ends the term of somebody else", check->writer->name);
    if (change->deleted)
        return;
    if (change->entry->version > 1)
        hfs_check_violate(check, "I4 the leader's key is put over while somebody leads");
    if (change->entry->create_rev < check->term)
        hfs_check_violate(check, "I4 the term went back to %lld",
                          (long long)change->entry->create_rev);
    if (change->entry->lease == 0)
        hfs_check_violate(check, "I4 the leader's key hangs on no lease");
}

void hfs_check_apply_leader(struct hfs_check *check, const struct c_change *change)
{
    check->leader_rev = change->deleted ? 0 : change->entry->create_rev;
    check->leader_since = check->world->now;
    check->leader_lease = change->deleted ? 0 : change->entry->lease;
    if (check->leader_rev > check->term)
        check->term = check->leader_rev;
}

/* A late copy of the claim to the term before a restore may bring it back, by the same name:
 * what was sent in it is of this one, too. */
static bool is_namesake(const struct hfs_check *check)
{
    return check->was_restored && check->leader_rev == check->past_rev &&
           check->leader_lease == check->past_lease;
}

/* A controller changes anything but its own key only while it leads. */
void hfs_check_judge_writer(struct hfs_check *check, const struct c_change *change)
{
    const struct c_lease *lease;

    if (check->writer == NULL || check->writer->role != HFS_CONTROLLER ||
        change->key.kind == HF_KEY_LEADER)
        return;
    lease = hfs_check_find_lease(check, check->leader_lease);
    if (lease == NULL || lease->owner != check->writer)
        hfs_check_violate(check, "I4 %s writes %.*s and does not lead", check->writer->name,
                          (int)change->entry->key->len, change->entry->key->bytes);
    else if (check->letter->made_at <= check->leader_since &&
             hfs_check_is_of_this_past(check, check->leader_since) && !is_namesake(check))
        hfs_check_violate(check, "I4 %s writes %.*s with what it sent before its term began",
                          check->writer->name, (int)change->entry->key->len,
                          change->entry->key->bytes);
    if (change->key.kind == HF_KEY_EVENT && change->entry->version > 1)
        hfs_check_violate(check, "I4 %s writes over entry %lld of the audit trail",
                          check->writer->name, (long long)change->key.seq);
}
