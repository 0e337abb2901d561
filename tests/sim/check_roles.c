/* check_roles.c - that nobody asks to write what its role in etcd may not (I17).
 *
 * etcd refuses a Txn for one such key, whether that is there or not, and also when the Txn
 * would not have come to it: so what is judged is the request, not what came of it. The table
 * is that of docs/keys.md, once more. */
#include <string.h>

#include "sim/check_private.h"

#define DATA "/holdfast-data/"

static const char *const CONTROLLER[] = { "meta",         "hosts/",    "agents/",
                                          "health/",      "tasks/",    "pending/",
                                          "checkpoints/", "commands/", "recoveries/",
                                          "controller/",  "events/",   NULL };
static const char *const AGENTD[] = { "hosts/",   "agents/",      "commands/", "tasks/",
                                      "pending/", "checkpoints/", "events/",   NULL };
/* Of an operator: people, who also submit. */
static const char *const PERSON[] = { "wanted/",  "hosts/",      "agents/",      "tasks/",
                                      "pending/", "recoveries/", "checkpoints/", "health/",
                                      "events/",  NULL };

static const char *const *writes_of(enum hfs_role role)
{
    switch (role) {
    case HFS_CONTROLLER: return CONTROLLER;
    case HFS_AGENTD: return AGENTD;
    case HFS_PERSON: return PERSON;
    case HFS_NOBODY: break;
    }
    return NULL;
}

static bool begins_with(struct hf_bytes key, const char *text)
{
    size_t len = strlen(text);

    return key.len >= len && memcmp(key.data, text, len) == 0;
}

/* What is behind the prefix of the namespace says of which kind a key is. */
static bool may_write(const struct hfs_check *check, const char *const *kinds,
                      struct hf_bytes key)
{
    size_t root = sizeof "/holdfast//" - 1 + strlen(check->ns);

    if (begins_with(key, DATA))
        return true;
    if (key.len <= root)
        return false;
    key = (struct hf_bytes){ (const char *)key.data + root, key.len - root };
    while (*kinds != NULL && !begins_with(key, *kinds))
        kinds++;
    return *kinds != NULL;
}

static void judge_op(struct hfs_check *check, const struct hfs_process *from,
                     enum hfs_request_kind kind, const struct hfs_op *op)
{
    struct hf_bytes key = kind == HFS_PUT ? op->put.key : op->erase.key;

    if ((kind == HFS_PUT || kind == HFS_DELETE) &&
        !may_write(check, writes_of(from->role), key))
        hfs_check_violate(check, "I17 %s asks to %s %.*s, which its role may not", from->name,
                          kind == HFS_PUT ? "put" : "delete", (int)key.len,
                          (const char *)key.data);
}

static void judge_ops(struct hfs_check *check, const struct hfs_process *from,
                      const struct hfs_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++)
        judge_op(check, from, ops->list[i].kind, &ops->list[i]);
}

void hfs_check_judge_role(struct hfs_check *check, const struct hfs_process *from,
                          const struct hfs_request *request)
{
    if (from->role == HFS_NOBODY)
        return;
    if (request->kind == HFS_TXN) {
        judge_ops(check, from, &request->txn.then);
        judge_ops(check, from, &request->txn.otherwise);
    } else {
        judge_op(check, from, request->kind, &request->op);
    }
}
