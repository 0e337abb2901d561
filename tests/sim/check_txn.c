/* check_txn.c - what a Txn whose compares held says by itself, whatever it changed. */
#include <string.h>

#include "sim/check_private.h"

enum { LAG_MS = 1 }; /* what a message and a turn take, where none is slow */

static bool deletes_command(const struct hfs_check *check, const struct hfs_op *op)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    return op->kind == HFS_DELETE &&
           hf_key_parse(check->ns, op->erase.key, scratch, &key, NULL) == HF_OK &&
           key.kind == HF_KEY_COMMAND;
}

/* A Txn that found a key absent may do so again when that was deleted since: a start whose life
 * is over (its key is reaped then), what was said of an agent that was removed. All others
 * compare a revision that will never be again. */
void hfs_check_judge_repeat(struct hfs_check *check, const struct hfs_letter *letter)
{
    const struct hfs_ops *ops = &letter->request->txn.then;
    const struct hfs_entry *entry;

    if (letter->request->kind != HFS_TXN || letter->applied < 2 || hfs_check_is_void(check) ||
        ops->count == 0)
        return;
    entry = ops->list[0].kind == HFS_PUT
                ? hfs_store_get(hfs_etcd_get_store(check->etcd), ops->list[0].put.key)
                : NULL;
    if (entry == NULL || entry->version > 1)
        hfs_check_violate(check, "once: a copy of a Txn that was done is done again, on %.*s",
                          (int)ops->list[0].put.key.len,
                          (const char *)ops->list[0].put.key.data);
}

void hfs_check_note_done(struct hfs_check *check)
{
    if (check->writer->role == HFS_CONTROLLER)
        check->done[check->done_count++ % HFS_DONE] = (struct c_done){
            .revision = check->revision, .writer = check->writer, .at = check->world->now
        };
}

/* The key is as this writer left it before it made up its mind. */
static bool is_own(const struct hfs_check *check, const struct hfs_letter *letter, hfs_rev mod)
{
    for (size_t i = 0; i < check->done_count && i < HFS_DONE; i++) {
        const struct c_done *done = &check->done[i];

        if (done->revision == mod && done->writer == check->from)
            return done->at + LAG_MS < letter->made_at;
    }
    return false;
}

/* Where no message is slow, nobody is refused for what it wrote itself: it waits until it has
 * been told. A mirror that has not noticed a restored etcd tells nothing. */
void hfs_check_judge_refused(struct hfs_check *check, const struct hfs_letter *letter)
{
    const struct hfs_txn *txn = &letter->request->txn;

    if (check->was_restored && check->world->now - check->restored_at < HFS_RESTORE_EXCUSE)
        return;
    for (size_t i = 0; i < txn->compare_count; i++) {
        const struct hfs_compare *compare = &txn->compares[i];
        const struct hfs_entry *entry =
            hfs_store_get(hfs_etcd_get_store(check->etcd), compare->key);

        if (compare->target == HFS_TARGET_MOD && entry != NULL &&
            entry->mod_rev != compare->number && is_own(check, letter, entry->mod_rev))
            hfs_check_violate(check, "told: %s is refused %.*s for what it wrote itself",
                              check->from->name, (int)compare->key.len,
                              (const char *)compare->key.data);
    }
}

void hfs_check_judge_txn(struct hfs_check *check, const struct hfs_letter *letter,
                         const struct hfs_answer *answer)
{
    const struct hfs_ops *ops = &letter->request->txn.then;

    /* A start is served, refused or withdrawn, and nothing of it happens after that. */
    for (size_t i = 0; i < ops->count && i < answer->op_count; i++) {
        if (deletes_command(check, &ops->list[i]) && answer->ops[i].deleted == 0)
            hfs_check_violate(check, "I8 %.*s is served or withdrawn, and it is not there",
                              (int)ops->list[i].erase.key.len,
                              (const char *)ops->list[i].erase.key.data);
    }
}
