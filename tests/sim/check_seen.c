/* check_seen.c - nobody writes over what it cannot have seen: a record is changed by whoever
 * has decided on what is there, and no write is lost. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "sim/check_private.h"

static struct c_written *find(struct hfs_check *check, const struct hfs_entry *entry)
{
    uint32_t hash = hf_hash(1, entry->key->bytes, entry->key->len);

    for (uint32_t i = 0; i < HFS_WRITTEN; i++) {
        struct c_written *written = &check->written[(hash + i) % HFS_WRITTEN];

        if (written->len == 0 || (written->hash == hash && written->len == entry->key->len)) {
            written->hash = hash;
            written->len = entry->key->len;
            return written;
        }
    }
    return NULL;
}

/* What is put or deleted only by who compares it. An agent that is removed goes with all that
 * was said of it. */
static bool is_compared(const struct c_change *change)
{
    switch (change->key.kind) {
    case HF_KEY_COMMAND:
    case HF_KEY_RECOVERY:
    case HF_KEY_AGENT_SPEC:
    case HF_KEY_HOST_RECORD: return true;
    case HF_KEY_META:
    case HF_KEY_CLOCK:
    case HF_KEY_AGENT_REPORT:
    case HF_KEY_WANTED:
    case HF_KEY_HEALTH:
    case HF_KEY_TASK: return !change->deleted;
    default: return false;
    }
}

static bool is_told_of(const struct hfs_check *check, const char *agent)
{
    for (size_t i = 0; i < check->change_count; i++) {
        if (check->changes[i].key.kind == HF_KEY_AGENT_EXIT &&
            strcmp(check->changes[i].key.name, agent) == 0)
            return true;
    }
    return false;
}

/* Nobody is there twice; who is not there any more is taken from the list, and nobody else. */
static void judge_presence(struct hfs_check *check, const struct c_change *change)
{
    const char *name = change->key.name;

    if (change->key.kind == HF_KEY_HOST_LIVE && change->entry->version > 1)
        hfs_check_violate(check, "I1 %s is registered again while it is", name);
    if (change->key.kind == HF_KEY_AGENT_SPEC && change->deleted &&
        hfs_check_agent(check, name)->life.present)
        hfs_check_violate(check, "I1 %s is removed while it is registered", name);
    if (change->key.kind == HF_KEY_HOST_RECORD && change->deleted &&
        hfs_check_host(check, name)->present)
        hfs_check_violate(check, "I1 host %s is removed while it is registered", name);
    if (change->key.kind == HF_KEY_AGENT_LIVE && change->deleted && check->writer != NULL &&
        check->writer->role == HFS_AGENTD && !is_told_of(check, name) &&
        hfs_check_find_process(check, hfs_check_agent(check, name)->life.instance) != NULL)
        hfs_check_violate(check, "I2 %s is reaped while it runs", name);
}

static uint32_t hash_of(struct hf_bytes text)
{
    return hf_hash(1, text.data, text.len);
}

/* Where etcd was restored, a late copy may bring back what was written in the other past, at
 * the same revision and to the byte: who has decided on that has decided on this. What is left
 * out of a Txn tells, too. */
static bool is_same(const struct hfs_check *check, const struct c_change *change,
                    const struct c_written *written)
{
    const struct hfs_txn *txn = &check->letter->request->txn;
    struct hf_bytes key = hfs_entry_key(change->entry);
    bool revision = false, text = false;

    for (size_t i = 0; check->was_restored && i < txn->compare_count; i++) {
        const struct hfs_compare *compare = &txn->compares[i];

        if (compare->key.len != key.len || memcmp(compare->key.data, key.data, key.len) != 0)
            continue;
        revision = revision ||
                   (compare->target == HFS_TARGET_MOD && compare->number == written->revision);
        text = text || (compare->target == HFS_TARGET_VALUE &&
                        hash_of(compare->value) == written->text);
    }
    return revision && text;
}

void hfs_check_judge_seen(struct hfs_check *check, const struct c_change *change)
{
    struct c_written *written;

    judge_presence(check, change);
    /* In a history that was watched, moments are known too roughly for that. */
    if (!is_compared(change) || check->watched)
        return;
    written = find(check, change->entry);
    if (written == NULL)
        return;
    /* What was deleted, with all else of an agent, is as absent as it ever was. */
    if ((change->deleted || change->entry->version > 1) && check->writer != NULL &&
        check->letter != NULL && written->there && written->at > check->letter->made_at &&
        !is_same(check, change, written))
        hfs_check_violate(check, "seen: %s changes %.*s, which it cannot have seen",
                          check->writer->name, (int)change->entry->key->len,
                          change->entry->key->bytes);
    written->at = check->world->now;
    written->there = true;
    written->revision = change->entry->mod_rev;
    written->text =
        hash_of((struct hf_bytes){ change->entry->value, change->entry->value_len });
}

void hfs_check_forget_seen(struct hfs_check *check)
{
    memset(check->written, 0, sizeof check->written);
}
