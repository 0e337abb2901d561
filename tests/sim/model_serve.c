#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "sim/model_private.h"

#define LEASE_TTL_MAX INT64_C(9000000000)

static const char COMPACTED[] = "etcdserver: mvcc: required revision has been compacted";
static const char FUTURE[] = "etcdserver: mvcc: required revision is a future revision";
static const char NO_KEY[] = "etcdserver: key is not provided";
static const char DUPLICATE[] = "etcdserver: duplicate key given in txn request";
static const char TOO_MANY[] = "etcdserver: too many operations in txn request";
static const char NO_LEASE[] = "etcdserver: requested lease not found";
static const char NO_SPACE[] = "etcdserver: mvcc: database space exceeded";

/* What one operation found: a part of etcd->found. */
struct done {
    size_t first, count;
    size_t total, deleted;
    bool keys_only, more;
};

/* What will be an answer. */
struct draft {
    struct hfs_answer answer;
    struct done ops[HFS_TXN_MAX_OPS];
    size_t op_count;
    struct done keys; /* of a lease */
};

/* The request is answered with an error. Errors that are returned without it are the model's
 * own, for which etcd has no words. */
static int refuse(struct draft *draft, int err, const char *message)
{
    draft->answer.err = err;
    draft->answer.message = message;
    return err;
}

/* Keys and transactions. */

static bool names_no_key(const struct hfs_range *range)
{
    return range->key.len == 0 && !range->prefix;
}

static bool op_names_no_key(const struct hfs_op *op)
{
    switch (op->kind) {
    case HFS_RANGE: return names_no_key(&op->range.range);
    case HFS_DELETE: return names_no_key(&op->erase);
    default: return op->put.key.len == 0;
    }
}

/* etcd writes the end of some prefixes (of all keys, for one) as a single NUL. Where it looks
 * for keys that are written twice it takes that for an ordinary end, before everything. */
static bool has_odd_end(const struct hfs_range *range)
{
    const unsigned char *bytes = range->key.data;

    for (size_t i = 0; i < range->key.len; i++) {
        if (bytes[i] != 0xff)
            return false;
    }
    return range->prefix;
}

static bool writes_key(const struct hfs_op *op, struct hf_bytes key)
{
    if (op->kind == HFS_DELETE)
        return !has_odd_end(&op->erase) && hfs_range_contains(&op->erase, key);
    return op->kind == HFS_PUT &&
           hfs_range_contains(&(struct hfs_range){ .key = op->put.key }, key);
}

static bool writes_twice(const struct hfs_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++) {
        if (ops->list[i].kind != HFS_PUT)
            continue;
        for (size_t j = 0; j < ops->count; j++) {
            if (j != i && writes_key(&ops->list[j], ops->list[i].put.key))
                return true;
        }
    }
    return false;
}

static bool has_put(const struct hfs_ops *ops)
{
    for (size_t i = 0; i < ops->count; i++) {
        if (ops->list[i].kind == HFS_PUT)
            return true;
    }
    return false;
}

static bool has_empty_key(const struct hfs_txn *txn)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (txn->compares[i].key.len == 0)
            return true;
    }
    for (size_t i = 0; i < txn->then.count; i++) {
        if (op_names_no_key(&txn->then.list[i]))
            return true;
    }
    for (size_t i = 0; i < txn->otherwise.count; i++) {
        if (op_names_no_key(&txn->otherwise.list[i]))
            return true;
    }
    return false;
}

/* What is looked at before the store is. */
static int check_txn(const struct hfs_etcd *etcd, const struct hfs_txn *txn,
                     struct draft *draft)
{
    /* A member asks about space first, whatever else is wrong. */
    if (etcd->faults.no_space && (has_put(&txn->then) || has_put(&txn->otherwise)))
        return refuse(draft, HF_ENOSPACE, NO_SPACE);
    if (txn->compare_count > HFS_TXN_MAX_OPS || txn->then.count > HFS_TXN_MAX_OPS ||
        txn->otherwise.count > HFS_TXN_MAX_OPS)
        return refuse(draft, HF_ELIMIT, TOO_MANY);
    if (has_empty_key(txn))
        return refuse(draft, HF_EINVAL, NO_KEY);
    if (writes_twice(&txn->then) || writes_twice(&txn->otherwise))
        return refuse(draft, HF_EINVAL, DUPLICATE);
    return HF_OK;
}

static int order_of_values(const struct hfs_entry *entry, struct hf_bytes value)
{
    size_t len = entry->value_len < value.len ? entry->value_len : value.len;
    int order = len > 0 ? memcmp(entry->value, value.data, len) : 0;

    if (order != 0)
        return order;
    return (entry->value_len > value.len) - (entry->value_len < value.len);
}

static int order_of_numbers(const struct hfs_entry *entry, const struct hfs_compare *compare)
{
    int64_t number = 0;

    switch (compare->target) {
    case HFS_TARGET_VERSION: number = entry->version; break;
    case HFS_TARGET_CREATE: number = entry->create_rev; break;
    case HFS_TARGET_MOD: number = entry->mod_rev; break;
    case HFS_TARGET_LEASE: number = entry->lease; break;
    case HFS_TARGET_VALUE: break;
    }
    return (number > compare->number) - (number < compare->number);
}

bool hfs_compare_holds(const struct hfs_etcd *etcd, const struct hfs_compare *compare)
{
    static const struct hfs_entry ABSENT = { 0 };
    const struct hfs_entry *entry = hfs_store_get(&etcd->store, compare->key);
    int order;

    if (entry == NULL && compare->target == HFS_TARGET_VALUE)
        return false;
    if (compare->target == HFS_TARGET_VALUE)
        order = order_of_values(entry, compare->value);
    else
        order = order_of_numbers(entry != NULL ? entry : &ABSENT, compare);
    switch (compare->relation) {
    case HFS_EQUAL: return order == 0;
    case HFS_GREATER: return order > 0;
    case HFS_LESS: return order < 0;
    case HFS_NOT_EQUAL: return order != 0;
    }
    return false;
}

static bool all_hold(const struct hfs_etcd *etcd, const struct hfs_txn *txn)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (!txn->compares[i].dropped && !hfs_compare_holds(etcd, &txn->compares[i]))
            return false;
    }
    return true;
}

/* What of the chosen list cannot be done: then nothing is. */
static int check_ops(const struct hfs_etcd *etcd, const struct hfs_ops *ops,
                     struct draft *draft)
{
    for (size_t i = 0; i < ops->count; i++) {
        const struct hfs_op *op = &ops->list[i];

        if (op->kind == HFS_PUT && op->put.lease != 0 &&
            hfs_leases_find(&etcd->leases, op->put.lease) == NULL)
            return refuse(draft, HF_ENOENT, NO_LEASE);
    }
    for (size_t i = 0; i < ops->count; i++) {
        const struct hfs_op *op = &ops->list[i];
        int err = HF_OK;

        if (op->kind == HFS_RANGE)
            err = hfs_store_check_readable(&etcd->store, op->range.revision);
        if (err != HF_OK)
            return refuse(draft, err, err == HF_ECOMPACT ? COMPACTED : FUTURE);
    }
    return HF_OK;
}

static int do_range(struct hfs_etcd *etcd, const struct hfs_range_request *request,
                    struct done *done)
{
    size_t limit = request->limit > 0 ? (size_t)request->limit : 0;
    int err;

    done->first = etcd->found.count;
    err = hfs_store_range(&etcd->store, &request->range, request->revision, limit, &etcd->found,
                          &done->total);
    if (err != HF_OK)
        return err;
    if (request->count_only)
        etcd->found.count = done->first;
    done->count = etcd->found.count - done->first;
    done->more = !request->count_only && done->total > done->count;
    done->keys_only = request->keys_only;
    return HF_OK;
}

static int do_ops(struct hfs_etcd *etcd, const struct hfs_ops *ops, struct draft *draft)
{
    int err = HF_OK;

    for (size_t i = 0; i < ops->count && err == HF_OK; i++) {
        const struct hfs_op *op = &ops->list[i];
        struct done *done = &draft->ops[draft->op_count++];

        if (op->kind == HFS_RANGE)
            err = do_range(etcd, &op->range, done);
        else if (op->kind == HFS_DELETE)
            err = hfs_store_delete(&etcd->store, &op->erase, &done->deleted);
        else
            err = hfs_store_put(&etcd->store, op->put.key, op->put.value, op->put.lease);
    }
    if (err == HF_OK)
        hfs_store_commit(&etcd->store);
    else
        hfs_store_roll_back(&etcd->store);
    return err;
}

static int serve_txn(struct hfs_etcd *etcd, const struct hfs_txn *txn, struct draft *draft)
{
    const struct hfs_ops *ops;
    int err = check_txn(etcd, txn, draft);

    if (err != HF_OK)
        return err;
    draft->answer.succeeded = all_hold(etcd, txn);
    ops = draft->answer.succeeded ? &txn->then : &txn->otherwise;
    err = check_ops(etcd, ops, draft);
    return err == HF_OK ? do_ops(etcd, ops, draft) : err;
}

/* A single operation is a txn without conditions. */
static int serve_op(struct hfs_etcd *etcd, const struct hfs_request *request,
                    struct draft *draft)
{
    struct hfs_op op = request->op;

    op.kind = request->kind;
    return serve_txn(etcd, &(struct hfs_txn){ .then = { .list = &op, .count = 1 } }, draft);
}

static int serve_compact(struct hfs_etcd *etcd, hfs_rev revision, struct draft *draft)
{
    int err = hfs_store_compact(&etcd->store, revision);

    return err == HF_OK ? err : refuse(draft, err, err == HF_ECOMPACT ? COMPACTED : FUTURE);
}

/* Leases. */

static int serve_grant(struct hfs_etcd *etcd, const struct hfs_request *request,
                       struct draft *draft)
{
    int64_t least = (etcd->cfg.election * 3 / 2 + 999) / 1000;
    struct hfs_lease lease = { .id = request->lease,
                               .ttl_s = request->ttl_s > least ? request->ttl_s : least };
    int err;

    if (etcd->faults.no_space)
        return refuse(draft, HF_ENOSPACE, NO_SPACE);
    if (lease.id <= 0 || lease.ttl_s > LEASE_TTL_MAX)
        return refuse(draft, HF_EINVAL, "not a lease that a client of ours would ask for");
    if (hfs_leases_find(&etcd->leases, lease.id) != NULL)
        return refuse(draft, HF_EEXIST, "etcdserver: lease already exists");
    if (etcd->leases.count >= etcd->cfg.max_leases)
        return HF_ELIMIT;
    hfs_expiry_refresh(etcd, &lease, 0);
    err = hfs_leases_add(&etcd->leases, &lease);
    draft->answer.lease = lease.id;
    draft->answer.ttl_s = lease.ttl_s;
    return err;
}

static int serve_revoke(struct hfs_etcd *etcd, int64_t id, struct draft *draft)
{
    if (hfs_leases_find(&etcd->leases, id) == NULL)
        return refuse(draft, HF_ENOENT, NO_LEASE);
    return hfs_expiry_revoke(etcd, id);
}

/* The TTL of a lease that has just ended; 0 when it is none. */
static int64_t ghost_ttl(const struct hfs_etcd *etcd, int64_t id)
{
    for (size_t i = 0; i < HFS_GHOSTS && etcd->faults.ghost_renewals; i++) {
        const struct hfs_lease *ghost = &etcd->ghosts[i];

        if (ghost->id == id && etcd->now - ghost->expires <= HFS_GHOST_MS)
            return ghost->ttl_s;
    }
    return 0;
}

/* `leases` is the table of whoever answers; that it has none is an answer, not an error. */
static int serve_renew(struct hfs_etcd *etcd, const struct hfs_leases *leases, int64_t id,
                       struct draft *draft)
{
    struct hfs_lease *lease = hfs_leases_find(leases, id);

    draft->answer.lease = id;
    if (lease == NULL) {
        draft->answer.ttl_s = ghost_ttl(etcd, id);
        return HF_OK;
    }
    if (lease->expires <= etcd->now) /* to be exact, etcd waits until it is gone */
        return HFS_LATER;
    draft->answer.ttl_s = lease->ttl_s;
    if (hfs_random_percent(&etcd->random, etcd->faults.lie_percent))
        draft->answer.header.raft_term--;
    else
        hfs_expiry_refresh(etcd, lease, 0);
    return HF_OK;
}

static int find_keys(struct hfs_etcd *etcd, int64_t lease, struct done *done)
{
    for (size_t i = 0; i < etcd->store.key_count; i++) {
        const struct hfs_entry *newest = etcd->store.keys[i]->newest;
        struct hfs_found *found = &etcd->found;

        if (newest->version == 0 || newest->lease != lease)
            continue;
        if (!hf_grow(&found->list, &found->cap, found->count + 1, sizeof(void *)))
            return HF_ENOMEM;
        found->list[found->count++] = newest;
        done->count++;
    }
    return HF_OK;
}

static int serve_ttl(struct hfs_etcd *etcd, int64_t id, struct draft *draft)
{
    const struct hfs_lease *lease = hfs_leases_find(&etcd->leases, id);

    draft->answer.lease = id;
    draft->answer.ttl_s = -1;
    if (lease == NULL)
        return HF_OK;
    draft->answer.ttl_s = (lease->expires - etcd->now) / 1000;
    draft->answer.granted_ttl_s = lease->ttl_s;
    return find_keys(etcd, id, &draft->keys);
}

/* Answers. */

static struct hfs_op_answer place_op(const struct hfs_etcd *etcd, const struct done *done,
                                     struct hfs_kv **kvs, char **place)
{
    struct hfs_op_answer answer = { .kvs = *kvs,
                                    .count = done->count,
                                    .total = (int64_t)done->total,
                                    .more = done->more,
                                    .deleted = (int64_t)done->deleted };

    for (size_t i = 0; i < done->count; i++)
        *(*kvs)++ = hfs_kv_place(etcd->found.list[done->first + i], done->keys_only, place);
    return answer;
}

static size_t size_of(const struct hfs_etcd *etcd, const struct draft *draft)
{
    size_t size = sizeof(struct hfs_answer) + draft->op_count * sizeof(struct hfs_op_answer);

    for (size_t i = 0; i < etcd->found.count; i++)
        size += sizeof(struct hfs_kv) + hfs_kv_size(etcd->found.list[i], false);
    return size;
}

/* One block: the answer, its operations, what they found, and the bytes of that. */
static int finish(const struct hfs_etcd *etcd, const struct draft *draft,
                  struct hfs_answer **ret_answer)
{
    struct hfs_answer *answer = malloc(size_of(etcd, draft));
    struct hfs_op_answer *ops;
    struct hf_bytes *keys;
    struct hfs_kv *kvs;
    char *place;

    if (answer == NULL)
        return HF_ENOMEM;
    *answer = draft->answer;
    answer->ops = ops = (struct hfs_op_answer *)(answer + 1);
    answer->op_count = draft->op_count;
    kvs = (struct hfs_kv *)(ops + draft->op_count);
    place = (char *)(kvs + etcd->found.count);
    answer->keys = keys = (struct hf_bytes *)kvs;
    answer->key_count = draft->keys.count;
    for (size_t i = 0; i < draft->keys.count; i++)
        keys[i] = hfs_kv_place(etcd->found.list[i], true, &place).key;
    for (size_t i = 0; i < draft->op_count; i++)
        ops[i] = place_op(etcd, &draft->ops[i], &kvs, &place);
    *ret_answer = answer;
    return HFS_ANSWERED;
}

static int dispatch(struct hfs_etcd *etcd, const struct hfs_request *request,
                    struct draft *draft)
{
    switch (request->kind) {
    case HFS_RANGE:
    case HFS_PUT:
    case HFS_DELETE: return serve_op(etcd, request, draft);
    case HFS_TXN: return serve_txn(etcd, &request->txn, draft);
    case HFS_COMPACT: return serve_compact(etcd, request->compact, draft);
    case HFS_GRANT: return serve_grant(etcd, request, draft);
    case HFS_REVOKE: return serve_revoke(etcd, request->lease, draft);
    case HFS_RENEW: return serve_renew(etcd, &etcd->leases, request->lease, draft);
    case HFS_TTL: return serve_ttl(etcd, request->lease, draft);
    }
    return HF_EINVAL;
}

/* Whether the leader gets to see the request. Leases are its own business, the rest needs a
 * majority. */
static bool reaches_leader(const struct hfs_etcd *etcd, const struct hfs_request *request)
{
    if (request->kind == HFS_RENEW || request->kind == HFS_TTL)
        return etcd->leader != HFS_NOBODY && etcd->members[etcd->leader].state == HFS_MEMBER_UP;
    return hfs_members_can_commit(etcd);
}

/* What the member makes of the request: as hfs_etcd_serve, before there is an answer. */
static int handle(struct hfs_etcd *etcd, unsigned index, const struct hfs_request *request,
                  struct draft *draft)
{
    const struct hfs_member *member = &etcd->members[index];

    if (member->state == HFS_MEMBER_DOWN)
        return refuse(draft, HF_EAGAIN, "failed to connect to all addresses");
    if (member->state == HFS_MEMBER_PAUSED)
        return HFS_SILENT;
    if (member->is_stale) {
        if (request->kind != HFS_RENEW || !etcd->faults.lying_renewals)
            return HFS_SILENT;
        return serve_renew(etcd, &member->own, request->lease, draft);
    }
    if (member->leader == HFS_NOBODY)
        return refuse(draft, HF_EAGAIN, "etcdserver: no leader");
    if (member->state != HFS_MEMBER_UP || !reaches_leader(etcd, request))
        return HFS_SILENT;
    return dispatch(etcd, request, draft);
}

int hfs_etcd_serve(struct hfs_etcd *etcd, unsigned index, const struct hfs_request *request,
                   struct hfs_answer **ret_answer)
{
    struct draft draft = { .answer = { .message = "",
                                       .header = hfs_member_header(etcd, index) } };
    int fate;

    etcd->found.count = 0;
    fate = handle(etcd, index, request, &draft);
    if (draft.answer.err != HF_OK) {
        draft.answer =
            (struct hfs_answer){ .err = draft.answer.err, .message = draft.answer.message };
        draft.op_count = 0;
        etcd->found.count = 0;
        return finish(etcd, &draft, ret_answer);
    }
    if (fate != HF_OK)
        return fate;
    /* A renewal tells the revision from before it, everything else the one after it. */
    if (request->kind != HFS_RENEW)
        draft.answer.header.revision = hfs_member_revision(etcd, index);
    return finish(etcd, &draft, ret_answer);
}
