#include "sim/program.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define BYTES(text)                                                                            \
    {                                                                                          \
        .data = (text), .len = sizeof(text) - 1                                                \
    }

/* Keys that are prefixes of others, that end where ranges do, and that sort at the edges. */
static const struct hf_bytes KEYS[] = {
    BYTES("a"),  BYTES("a/"),   BYTES("a/1"),      BYTES("a/2"),
    BYTES("ab"), BYTES("b"),    BYTES("b\xff"),    BYTES("b\xff\xff"),
    BYTES("c"),  BYTES("\xff"), BYTES("\xff\xff"), BYTES("\0"),
};

static uint64_t below(struct hfs_program *program, uint64_t count)
{
    return hfs_random_below(&program->random, count);
}

static bool chance(struct hfs_program *program, unsigned percent)
{
    return hfs_random_percent(&program->random, percent);
}

void hfs_program_init(struct hfs_program *program, uint64_t seed, int64_t first_lease)
{
    *program = (struct hfs_program){ .random = { .state = seed }, .first_lease = first_lease };
}

static struct hf_bytes draw_key(struct hfs_program *program)
{
    return KEYS[below(program, COUNT(KEYS))];
}

static struct hfs_range draw_range(struct hfs_program *program)
{
    struct hfs_range range = { .key = draw_key(program) };

    range.prefix = chance(program, 50);
    if (range.prefix && chance(program, 20))
        range.key.len = 0;
    return range;
}

static struct hf_bytes draw_value(struct hfs_program *program)
{
    char *value = program->values[program->value_count++];
    size_t len = below(program, HFS_PROGRAM_VALUE + 1);

    /* Few different bytes, so that values are equal now and then. */
    for (size_t i = 0; i < len; i++)
        value[i] = "ab\0\xff"[below(program, 4)];
    return (struct hf_bytes){ .data = value, .len = chance(program, 50) ? len / 4 : len };
}

/* One of ours, granted or not; none at all more often than not. */
static int64_t draw_lease(struct hfs_program *program, unsigned none_percent)
{
    if (chance(program, none_percent))
        return 0;
    return program->first_lease + (int64_t)below(program, HFS_PROGRAM_LEASES);
}

/* From a little before the compaction to a little after now. */
static hfs_rev draw_revision(struct hfs_program *program, const struct hfs_store *store)
{
    hfs_rev from = store->compacted > 2 ? store->compacted - 2 : 1;

    return from + (hfs_rev)below(program, (uint64_t)(store->revision + 3 - from));
}

static struct hfs_range_request draw_read(struct hfs_program *program,
                                          const struct hfs_store *store)
{
    struct hfs_range_request read = { .range = draw_range(program) };

    if (chance(program, 50))
        read.revision = draw_revision(program, store);
    if (chance(program, 40))
        read.limit = (int64_t)below(program, 4);
    read.keys_only = chance(program, 10);
    read.count_only = chance(program, 10);
    return read;
}

static struct hfs_op draw_op(struct hfs_program *program, const struct hfs_store *store,
                             enum hfs_request_kind kind)
{
    struct hfs_op op = { .kind = kind };

    if (kind == HFS_RANGE) {
        op.range = draw_read(program, store);
    } else if (kind == HFS_DELETE) {
        op.erase = draw_range(program);
    } else {
        op.put.key = draw_key(program);
        op.put.value = draw_value(program);
        op.put.lease = draw_lease(program, 60);
    }
    return op;
}

/* In a txn a key may be missing; elsewhere our client does not let that pass. */
static struct hfs_op draw_txn_op(struct hfs_program *program, const struct hfs_store *store)
{
    static const enum hfs_request_kind KINDS[] = { HFS_RANGE, HFS_PUT, HFS_PUT, HFS_DELETE };
    struct hfs_op op = draw_op(program, store, KINDS[below(program, COUNT(KINDS))]);

    /* At a revision of its own a range makes the whole txn fail too often. */
    if (op.kind == HFS_RANGE && chance(program, 80))
        op.range.revision = 0;
    if (op.kind == HFS_PUT && chance(program, 1))
        op.put.key.len = 0;
    return op;
}

/* What holds now. */
static void set_truth(struct hfs_compare *compare, const struct hfs_entry *entry)
{
    switch (compare->target) {
    case HFS_TARGET_VERSION: compare->number = entry->version; break;
    case HFS_TARGET_CREATE: compare->number = entry->create_rev; break;
    case HFS_TARGET_MOD: compare->number = entry->mod_rev; break;
    case HFS_TARGET_LEASE: compare->number = entry->lease; break;
    case HFS_TARGET_VALUE:
        compare->value.data = entry->value;
        compare->value.len = entry->value_len;
        break;
    }
}

static struct hfs_compare draw_compare(struct hfs_program *program,
                                       const struct hfs_store *store)
{
    struct hfs_compare compare = { .key = draw_key(program) };
    const struct hfs_entry *entry = hfs_store_get(store, compare.key);

    compare.target = (enum hfs_target)below(program, 5);
    if (chance(program, 60))
        compare.relation = HFS_EQUAL;
    else
        compare.relation = (enum hfs_relation)below(program, 4);
    if (chance(program, 1))
        compare.key.len = 0;
    if (compare.target == HFS_TARGET_VALUE)
        compare.value = draw_value(program);
    else if (compare.target == HFS_TARGET_LEASE)
        compare.number = draw_lease(program, 50);
    else if (compare.target == HFS_TARGET_VERSION)
        compare.number = (int64_t)below(program, 4);
    else if (chance(program, 50))
        compare.number = draw_revision(program, store);
    if (entry != NULL && chance(program, 60))
        set_truth(&compare, entry);
    return compare;
}

static struct hfs_ops draw_ops(struct hfs_program *program, const struct hfs_store *store,
                               struct hfs_op list[HFS_PROGRAM_OPS])
{
    struct hfs_ops ops = { .list = list, .count = below(program, HFS_PROGRAM_OPS + 1) };

    for (size_t i = 0; i < ops.count; i++)
        list[i] = draw_txn_op(program, store);
    return ops;
}

static struct hfs_txn draw_txn(struct hfs_program *program, const struct hfs_store *store)
{
    struct hfs_txn txn = { .compares = program->compares };

    txn.compare_count = below(program, HFS_PROGRAM_COMPARES + 1);
    for (size_t i = 0; i < txn.compare_count; i++)
        program->compares[i] = draw_compare(program, store);
    txn.then = draw_ops(program, store, program->then);
    txn.otherwise = draw_ops(program, store, program->otherwise);
    return txn;
}

static struct hfs_request draw_request(struct hfs_program *program,
                                       const struct hfs_store *store)
{
    static const struct {
        enum hfs_request_kind kind;
        unsigned weight;
    } WEIGHTS[] = { { HFS_RANGE, 18 }, { HFS_PUT, 25 },  { HFS_DELETE, 10 },
                    { HFS_TXN, 28 },   { HFS_GRANT, 7 }, { HFS_REVOKE, 4 },
                    { HFS_RENEW, 2 },  { HFS_TTL, 4 },   { HFS_COMPACT, 2 } };
    struct hfs_request request = { 0 };
    size_t i = 0;

    for (uint64_t at = below(program, 100); at >= WEIGHTS[i].weight; i++)
        at -= WEIGHTS[i].weight;
    request.kind = WEIGHTS[i].kind;
    if (request.kind <= HFS_DELETE) {
        request.op = draw_op(program, store, request.kind);
    } else if (request.kind == HFS_TXN) {
        request.txn = draw_txn(program, store);
    } else if (request.kind == HFS_COMPACT) {
        request.compact = draw_revision(program, store);
    } else {
        request.lease = draw_lease(program, 0);
        request.ttl_s = 100 + (int64_t)below(program, 1000);
    }
    return request;
}

struct hfs_step hfs_program_next(struct hfs_program *program, const struct hfs_store *store)
{
    struct hfs_step step = { .is_watch = chance(program, 5) };

    program->value_count = 0;
    if (!step.is_watch) {
        step.request = draw_request(program, store);
        return step;
    }
    step.range = draw_range(program);
    if (chance(program, 80))
        step.start_rev = draw_revision(program, store);
    return step;
}
