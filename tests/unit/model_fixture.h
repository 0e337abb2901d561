/* model_fixture.h - a model etcd and short words for what its tests do with it. */
#ifndef HF_TESTS_UNIT_MODEL_FIXTURE_H
#define HF_TESTS_UNIT_MODEL_FIXTURE_H

#include <string.h>

#include "sim/model_etcd.h"
#include "unit/suite.h"

#define MODEL_UNUSED __attribute__((unused))

static struct hfs_etcd *etcd;
static hf_ms now;

static struct hfs_answer *answer; /* the last one */
static struct hfs_batch *batch;   /* likewise */

static MODEL_UNUSED void setup_with(struct hfs_etcd_config cfg)
{
    hfs_etcd_free(etcd);
    cfg.now = now = 0;
    ck_assert_int_eq(hfs_etcd_new(&cfg, &etcd), HF_OK);
}

static MODEL_UNUSED void setup(void)
{
    setup_with((struct hfs_etcd_config){ .seed = 1 });
}

static MODEL_UNUSED void teardown(void)
{
    free(answer);
    free(batch);
    hfs_etcd_free(etcd);
    answer = NULL;
    batch = NULL;
    etcd = NULL;
}

static inline struct hf_bytes bytes(const char *text)
{
    return (struct hf_bytes){ .data = text, .len = strlen(text) };
}

static inline struct hfs_range one(const char *key)
{
    return (struct hfs_range){ .key = bytes(key) };
}

static inline struct hfs_range all(const char *prefix)
{
    return (struct hfs_range){ .key = bytes(prefix), .prefix = true };
}

static inline void advance(hf_ms by)
{
    now += by;
    ck_assert_int_eq(hfs_etcd_advance(etcd, now), HF_OK);
}

/* The fate of a request; its answer, if it gets one, is the last one from then on. */
static inline int serve(unsigned member, struct hfs_request request)
{
    free(answer);
    answer = NULL;
    return hfs_etcd_serve(etcd, member, &request, &answer);
}

/* Asks the leader, and wants that error. */
static inline void ask_for(int err, struct hfs_request request)
{
    int leader = hfs_etcd_get_leader(etcd);

    ck_assert_int_ge(leader, 0);
    ck_assert_int_eq(serve((unsigned)leader, request), HFS_ANSWERED);
    ck_assert_msg(answer->err == err, "%s: %s", hf_err_name(answer->err), answer->message);
}

static inline void ask(struct hfs_request request)
{
    ask_for(HF_OK, request);
}

static inline struct hfs_op put_op(const char *key, const char *value, int64_t lease)
{
    return (struct hfs_op){
        .kind = HFS_PUT, .put = { .key = bytes(key), .value = bytes(value), .lease = lease }
    };
}

static inline struct hfs_op delete_op(struct hfs_range range)
{
    return (struct hfs_op){ .kind = HFS_DELETE, .erase = range };
}

static inline struct hfs_op range_op(struct hfs_range range)
{
    return (struct hfs_op){ .kind = HFS_RANGE, .range.range = range };
}

/* A range, put or delete outside of a txn. */
static inline struct hfs_request alone(struct hfs_op op)
{
    return (struct hfs_request){ .kind = op.kind, .op = op };
}

static inline struct hfs_request of_lease(enum hfs_request_kind kind, int64_t lease)
{
    return (struct hfs_request){ .kind = kind, .lease = lease };
}

static inline struct hfs_request grant_request(int64_t lease, int64_t ttl_s)
{
    return (struct hfs_request){ .kind = HFS_GRANT, .lease = lease, .ttl_s = ttl_s };
}

/* Each returns the revision after it. */
static inline hfs_rev put_leased(const char *key, const char *value, int64_t lease)
{
    ask(alone(put_op(key, value, lease)));
    return answer->header.revision;
}

static inline hfs_rev put(const char *key, const char *value)
{
    return put_leased(key, value, 0);
}

static inline hfs_rev delete_range(struct hfs_range range)
{
    ask(alone(delete_op(range)));
    return answer->header.revision;
}

static inline void grant(int64_t lease, int64_t ttl_s)
{
    ask(grant_request(lease, ttl_s));
}

static inline void compact(hfs_rev revision)
{
    ask((struct hfs_request){ .kind = HFS_COMPACT, .compact = revision });
}

static inline bool equals(struct hf_bytes a, const char *text)
{
    return a.len == strlen(text) && memcmp(a.data, text, a.len) == 0;
}

/* The key as it is now; NULL when it is not there. */
static inline const struct hfs_kv *get(const char *key)
{
    ask(alone(range_op(one(key))));
    return answer->ops[0].count > 0 ? &answer->ops[0].kvs[0] : NULL;
}

static inline hfs_rev revision(void)
{
    return hfs_etcd_get_store(etcd)->revision;
}

static inline uint64_t watch(unsigned member, struct hfs_range range, hfs_rev start_rev)
{
    uint64_t id = 0;

    ck_assert_int_eq(hfs_watch_open(etcd, member, &range, start_rev, &id), HFS_ANSWERED);
    return id;
}

/* As hfs_watch_next; the batch, if there is one, is the last one from then on. */
static inline int next_of(uint64_t id)
{
    free(batch);
    batch = NULL;
    return hfs_watch_next(etcd, id, &batch);
}

/* The next batch is one event: this key at this revision. */
static inline void expect_event(uint64_t id, const char *key, hfs_rev at)
{
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 1);
    ck_assert(equals(batch->events[0].kv.key, key));
    ck_assert_int_eq(batch->events[0].kv.mod_rev, at);
}

static inline struct hfs_faults *faults(void)
{
    return hfs_etcd_get_faults(etcd);
}

static inline unsigned leader(void)
{
    ck_assert_int_ge(hfs_etcd_get_leader(etcd), 0);
    return (unsigned)hfs_etcd_get_leader(etcd);
}

static inline unsigned follower(void)
{
    return (leader() + 1) % HFS_MEMBERS;
}

static inline void set(unsigned member, enum hfs_member_state state)
{
    ck_assert_int_eq(hfs_etcd_set_member(etcd, member, state), HF_OK);
}

#endif
