#include "integration/model_peer.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "etcd/call.h"
#include "etcd/decode.h"
#include "etcd/watch.h"

enum { ANSWER_MS = 60000, PROBE_MS = 60000 };

/* One question under way. */
struct question {
    struct hf_etcd *etcd;
    enum hfs_request_kind kind;
    const struct hfs_answer *model;
    struct hf_buf *out;
    bool answered;
};

static bool is_answered(void *question)
{
    return ((struct question *)question)->answered;
}

static struct hfs_answer answer_from(const struct hf_etcd_result *result)
{
    return (struct hfs_answer){ .err = result->err,
                                .message = result->message,
                                .header = { .revision = result->header.revision } };
}

static void tell(struct question *question, const struct hfs_answer *answer)
{
    ck_assert(!question->answered);
    question->answered = true;
    hfs_answer_format(question->kind, answer, question->out);
}

static struct hfs_kv kv_from(const struct hf_kv *kv)
{
    return (struct hfs_kv){ .key = kv->key,
                            .value = kv->value,
                            .create_rev = kv->create_rev,
                            .mod_rev = kv->mod_rev,
                            .version = kv->version,
                            .lease = kv->lease };
}

static struct hfs_kv *kvs_new(size_t count)
{
    struct hfs_kv *kvs = hf_calloc(count, sizeof *kvs);

    ck_assert_ptr_nonnull(kvs);
    return kvs;
}

static void on_range(const struct hf_range_result *result, void *arg)
{
    struct hfs_answer answer = answer_from(&result->result);
    struct hfs_kv *kvs = kvs_new(result->count);
    struct hfs_op_answer op = {
        .kvs = kvs, .count = result->count, .total = result->total, .more = result->more
    };

    for (size_t i = 0; i < result->count; i++)
        kvs[i] = kv_from(&result->kvs[i]);
    answer.ops = &op;
    answer.op_count = 1;
    tell(arg, &answer);
    free(kvs);
}

static void on_write(const struct hf_write_result *result, void *arg)
{
    struct question *question = arg;
    struct hfs_answer answer = answer_from(&result->result);
    struct hfs_op_answer op = { .deleted = result->deleted };

    answer.ops = &op;
    answer.op_count = question->kind == HFS_REVOKE ? 0 : 1;
    tell(question, &answer);
}

static void on_grant(const struct hf_grant_result *result, void *arg)
{
    struct hfs_answer answer = answer_from(&result->result);

    answer.lease = result->id;
    answer.ttl_s = result->ttl_s;
    tell(arg, &answer);
}

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    struct question *question = arg;

    tell(question, &(struct hfs_answer){ .err = renewal->err,
                                         .message = renewal->message,
                                         .header = { .revision = renewal->header.revision },
                                         .lease = question->model->lease,
                                         .ttl_s = renewal->ttl_s });
}

static int by_bytes(const void *left, const void *right)
{
    const struct hf_bytes *a = left, *b = right;
    size_t len = a->len < b->len ? a->len : b->len;
    int order = memcmp(a->data, b->data, len);

    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

/* etcd tells the keys in no order. */
static void on_ttl(const struct hf_ttl_result *result, void *arg)
{
    struct question *question = arg;
    struct hfs_answer answer = answer_from(&result->result);
    struct hf_bytes *keys = hf_memdup(result->keys, result->key_count * sizeof *keys);
    int64_t model_ttl_s = question->model->ttl_s;

    ck_assert_ptr_nonnull(keys);
    qsort(keys, result->key_count, sizeof *keys, by_bytes);
    answer.lease = question->model->lease;
    answer.ttl_s = result->ttl_s;
    if (model_ttl_s >= 0 && result->ttl_s >= 0 && llabs(result->ttl_s - model_ttl_s) <= 1)
        answer.ttl_s = model_ttl_s;
    answer.granted_ttl_s = result->granted_ttl_s;
    answer.keys = keys;
    answer.key_count = result->key_count;
    tell(question, &answer);
    free(keys);
}

/* What lib/etcd has no functions for: txns that write in both lists, and compactions. The
 * messages are made here and sent as any other call's. */

#define MAX_LIST 8

struct message {
    Etcdserverpb__TxnRequest txn;
    Etcdserverpb__Compare compares[MAX_LIST], *compare_list[MAX_LIST];
    Etcdserverpb__RequestOp ops[2 * MAX_LIST], *then[MAX_LIST], *otherwise[MAX_LIST];
    Etcdserverpb__RangeRequest ranges[2 * MAX_LIST];
    Etcdserverpb__PutRequest puts[2 * MAX_LIST];
    Etcdserverpb__DeleteRangeRequest deletes[2 * MAX_LIST];
    struct hf_range_bounds bounds[2 * MAX_LIST];
    size_t op_count;
};

static void add_compare(struct message *message, const struct hfs_compare *compare)
{
    size_t i = message->txn.n_compare++;
    Etcdserverpb__Compare *to = &message->compares[i];

    *to = (Etcdserverpb__Compare)ETCDSERVERPB__COMPARE__INIT;
    message->compare_list[i] = to;
    to->key = hf_bytes_to(compare->key);
    to->result = (Etcdserverpb__Compare__CompareResult)compare->relation;
    to->target = (Etcdserverpb__Compare__CompareTarget)compare->target;
    switch (compare->target) {
    case HFS_TARGET_VERSION:
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
        break;
    case HFS_TARGET_CREATE:
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
        break;
    case HFS_TARGET_MOD:
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
        break;
    case HFS_TARGET_LEASE:
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_LEASE;
        break;
    case HFS_TARGET_VALUE:
        to->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VALUE;
        to->value = hf_bytes_to(compare->value);
        return;
    }
    to->version = compare->number; /* a union: all numbers are in the same place */
}

static const struct hf_range_bounds *bounds_of(struct message *message, size_t i,
                                               const struct hfs_range *range)
{
    struct hf_key_range keys = { .key = range->key, .prefix = range->prefix };

    ck_assert_int_eq(hf_range_bounds_init(&message->bounds[i], &keys), HF_OK);
    return &message->bounds[i];
}

static Etcdserverpb__RequestOp *add_op(struct message *message, const struct hfs_op *op)
{
    size_t i = message->op_count++;
    Etcdserverpb__RequestOp *to = &message->ops[i];

    *to = (Etcdserverpb__RequestOp)ETCDSERVERPB__REQUEST_OP__INIT;
    if (op->kind == HFS_RANGE) {
        Etcdserverpb__RangeRequest *read = to->request_range = &message->ranges[i];
        const struct hf_range_bounds *bounds = bounds_of(message, i, &op->range.range);

        *read = (Etcdserverpb__RangeRequest)ETCDSERVERPB__RANGE_REQUEST__INIT;
        to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
        read->key = bounds->key;
        read->range_end = bounds->end;
        read->revision = op->range.revision;
        read->limit = op->range.limit;
        read->keys_only = op->range.keys_only;
        read->count_only = op->range.count_only;
    } else if (op->kind == HFS_DELETE) {
        Etcdserverpb__DeleteRangeRequest *erase = to->request_delete_range =
            &message->deletes[i];
        const struct hf_range_bounds *bounds = bounds_of(message, i, &op->erase);

        *erase = (Etcdserverpb__DeleteRangeRequest)ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
        to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
        erase->key = bounds->key;
        erase->range_end = bounds->end;
    } else {
        Etcdserverpb__PutRequest *put = to->request_put = &message->puts[i];

        *put = (Etcdserverpb__PutRequest)ETCDSERVERPB__PUT_REQUEST__INIT;
        to->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
        put->key = hf_bytes_to(op->put.key);
        put->value = hf_bytes_to(op->put.value);
        put->lease = op->put.lease;
    }
    return to;
}

static void make_message(struct message *message, const struct hfs_txn *txn)
{
    ck_assert_uint_le(txn->compare_count, MAX_LIST);
    ck_assert_uint_le(txn->then.count, MAX_LIST);
    ck_assert_uint_le(txn->otherwise.count, MAX_LIST);
    *message = (struct message){ .txn = ETCDSERVERPB__TXN_REQUEST__INIT };
    for (size_t i = 0; i < txn->compare_count; i++)
        add_compare(message, &txn->compares[i]);
    for (size_t i = 0; i < txn->then.count; i++)
        message->then[i] = add_op(message, &txn->then.list[i]);
    for (size_t i = 0; i < txn->otherwise.count; i++)
        message->otherwise[i] = add_op(message, &txn->otherwise.list[i]);
    message->txn.compare = message->compare_list;
    message->txn.success = message->then;
    message->txn.n_success = txn->then.count;
    message->txn.failure = message->otherwise;
    message->txn.n_failure = txn->otherwise.count;
}

static struct hfs_op_answer op_answer_from(const Etcdserverpb__ResponseOp *op)
{
    const Etcdserverpb__RangeResponse *range = op->response_range;
    struct hfs_kv *kvs;

    if (op->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE)
        return (struct hfs_op_answer){ .deleted = op->response_delete_range->deleted };
    if (op->response_case != ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
        return (struct hfs_op_answer){ 0 };
    kvs = kvs_new(range->n_kvs);
    for (size_t i = 0; i < range->n_kvs; i++) {
        struct hf_kv kv = hf_kv_from(range->kvs[i]);

        kvs[i] = kv_from(&kv);
    }
    return (struct hfs_op_answer){
        .kvs = kvs, .count = range->n_kvs, .total = range->count, .more = range->more != 0
    };
}

static void decode_txn(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hfs_answer answer;
    struct hfs_op_answer ops[MAX_LIST];
    Etcdserverpb__TxnResponse *message = NULL;

    if (outcome->result.err == HF_OK)
        message = hf_call_unpack(etcd, &etcdserverpb__txn_response__descriptor, outcome->body,
                                 &outcome->result);
    answer = answer_from(&outcome->result);
    if (message != NULL) {
        ck_assert_uint_le(message->n_responses, MAX_LIST);
        answer.header.revision = message->header->revision;
        answer.succeeded = message->succeeded != 0;
        answer.op_count = message->n_responses;
        answer.ops = ops;
        for (size_t i = 0; i < answer.op_count; i++)
            ops[i] = op_answer_from(message->responses[i]);
    }
    tell(outcome->arg, &answer);
    for (size_t i = 0; i < answer.op_count; i++)
        free((void *)ops[i].kvs);
}

static int ask_txn(struct question *question, const struct hfs_txn *txn)
{
    struct message message;
    int err;

    make_message(&message, txn);
    err = hf_call_start(question->etcd,
                        &(struct hf_call_spec){ .method = "/etcdserverpb.KV/Txn",
                                                .request = &message.txn.base,
                                                .lane = HF_LANE_UNARY,
                                                .decode = decode_txn,
                                                .arg = question },
                        NULL);
    for (size_t i = 0; i < message.op_count; i++)
        hf_range_bounds_done(&message.bounds[i]);
    return err;
}

/* The answer is a header in field 1, as that of a put. */
static void decode_compaction(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    Etcdserverpb__PutResponse *message = NULL;
    struct hfs_answer answer;

    if (outcome->result.err == HF_OK)
        message = hf_call_unpack(etcd, &etcdserverpb__put_response__descriptor, outcome->body,
                                 &outcome->result);
    answer = answer_from(&outcome->result);
    if (message != NULL)
        answer.header.revision = message->header->revision;
    tell(outcome->arg, &answer);
}

/* A CompactionRequest is a number in field 1 and, in field 2, whether to wait until the data is
 * gone from the disk: on the wire the same as this. */
static int ask_compaction(struct question *question, hfs_rev revision)
{
    Etcdserverpb__LeaseTimeToLiveRequest message =
        ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;

    message.id = revision;
    message.keys = 1;
    return hf_call_start(question->etcd,
                         &(struct hf_call_spec){ .method = "/etcdserverpb.KV/Compact",
                                                 .request = &message.base,
                                                 .lane = HF_LANE_UNARY,
                                                 .decode = decode_compaction,
                                                 .arg = question },
                         NULL);
}

static int ask_range(struct question *question, const struct hfs_range_request *read)
{
    return hf_etcd_range(question->etcd,
                         &(struct hf_range_request){
                             .range = { .key = read->range.key, .prefix = read->range.prefix },
                             .revision = read->revision,
                             .limit = read->limit,
                             .keys_only = read->keys_only,
                             .count_only = read->count_only },
                         on_range, question, NULL);
}

static int ask(struct question *question, const struct hfs_request *request)
{
    const struct hfs_op *op = &request->op;
    struct hf_etcd *etcd = question->etcd;

    switch (request->kind) {
    case HFS_RANGE: return ask_range(question, &op->range);
    case HFS_PUT:
        return hf_etcd_put(etcd, op->put.key, op->put.value, op->put.lease, on_write, question,
                           NULL);
    case HFS_DELETE:
        return hf_etcd_delete(
            etcd, (struct hf_key_range){ .key = op->erase.key, .prefix = op->erase.prefix },
            on_write, question, NULL);
    case HFS_TXN: return ask_txn(question, &request->txn);
    case HFS_COMPACT: return ask_compaction(question, request->compact);
    case HFS_GRANT:
        return hf_etcd_lease_grant(etcd, request->lease, request->ttl_s, 0, on_grant, question,
                                   NULL);
    case HFS_REVOKE:
        return hf_etcd_lease_revoke(etcd, request->lease, on_write, question, NULL);
    case HFS_TTL: return hf_etcd_lease_ttl(etcd, request->lease, true, on_ttl, question, NULL);
    case HFS_RENEW: break;
    }
    return HF_EINVAL;
}

static void ask_renewal(struct hft_client *client, struct question *question, int64_t lease)
{
    struct hf_renewer *renewer;

    ck_assert_int_eq(hf_renewer_new(client->etcd, lease, on_renewal, question, &renewer),
                     HF_OK);
    ck_assert_int_eq(hf_renewer_send(renewer, ANSWER_MS), HF_OK);
    hft_loop_until(&client->loop, is_answered, question, ANSWER_MS, "a renewal's answer");
    hf_renewer_close(renewer);
}

void hft_peer_ask(struct hft_client *client, const struct hfs_request *request,
                  const struct hfs_answer *model, struct hf_buf *out)
{
    struct question question = {
        .etcd = client->etcd, .kind = request->kind, .model = model, .out = out
    };

    if (request->kind == HFS_RENEW) {
        ask_renewal(client, &question, request->lease);
        return;
    }
    ck_assert_int_eq(ask(&question, request), HF_OK);
    hft_loop_until(&client->loop, is_answered, &question, ANSWER_MS, "etcd's answer");
}

/* Watches. */

struct hft_peer_watch {
    struct hf_range_bounds bounds[2]; /* what is compared, and the last key */
    struct hf_watch *watch;           /* NULL when it has ended */
    struct hf_buf text;
    size_t events, wanted;
    hf_rev told; /* revision of the newest event */
    bool live, saw_last;
};

static void on_live(void *arg)
{
    ((struct hft_peer_watch *)arg)->live = true;
}

static void on_events(size_t range, const Etcdserverpb__WatchResponse *message, bool last,
                      void *arg)
{
    struct hft_peer_watch *watch = arg;

    (void)last;
    if (range == 1) {
        watch->saw_last = true;
        return;
    }
    ck_assert_msg(message->events[0]->kv->mod_revision > watch->told,
                  "the events of a revision came in pieces");
    for (size_t i = 0; i < message->n_events; i++) {
        const Etcdserverpb__Event *event = message->events[i];
        struct hf_kv kv = hf_kv_from(event->kv);

        hfs_event_format(
            &(struct hfs_event){ .deleted =
                                     event->type == ETCDSERVERPB__EVENT__EVENT_TYPE__DELETE,
                                 .kv = kv_from(&kv) },
            &watch->text);
        hf_buf_putc(&watch->text, '\n');
        watch->told = kv.mod_rev;
        watch->events++;
    }
}

static void on_end(int err, const char *message, void *arg)
{
    struct hft_peer_watch *watch = arg;

    (void)message;
    watch->watch = NULL;
    hf_buf_printf(&watch->text, "%s\n", hf_err_name(err));
}

static bool is_open(void *arg)
{
    struct hft_peer_watch *watch = arg;

    return watch->live || watch->watch == NULL;
}

static bool has_all(void *arg)
{
    struct hft_peer_watch *watch = arg;

    return watch->watch == NULL || (watch->saw_last && watch->events >= watch->wanted);
}

struct hft_peer_watch *hft_peer_watch_open(struct hft_client *client,
                                           const struct hfs_range *range, hfs_rev start_rev,
                                           const char *last)
{
    static const struct hf_watch_handler HANDLER = { .on_live = on_live,
                                                     .on_events = on_events,
                                                     .on_end = on_end };
    struct hf_key_range keys[2] = { { .key = range->key, .prefix = range->prefix },
                                    { .key = hf_bytes_of(last) } };
    struct hft_peer_watch *watch = hf_calloc(1, sizeof *watch);
    struct hf_watch_range ranges[2];

    ck_assert_ptr_nonnull(watch);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(hf_range_bounds_init(&watch->bounds[i], &keys[i]), HF_OK);
        ranges[i] = (struct hf_watch_range){ .bounds = &watch->bounds[i],
                                             .start_rev = i == 0 ? start_rev : 0 };
    }
    ck_assert_int_eq(hf_watch_open(client->etcd,
                                   &(struct hf_watch_config){ .ranges = ranges,
                                                              .range_count = 2,
                                                              .probe_every = PROBE_MS,
                                                              .probe_timeout = PROBE_MS,
                                                              .pending_bytes = 1 << 20,
                                                              .handler = &HANDLER,
                                                              .arg = watch },
                                   &watch->watch),
                     HF_OK);
    hft_loop_until(&client->loop, is_open, watch, ANSWER_MS, "a watch to begin");
    return watch;
}

void hft_peer_watch_free(struct hft_peer_watch *watch)
{
    hf_watch_close(watch->watch);
    for (size_t i = 0; i < 2; i++)
        hf_range_bounds_done(&watch->bounds[i]);
    hf_buf_done(&watch->text);
    free(watch);
}

const char *hft_peer_watch_collect(struct hft_client *client, struct hft_peer_watch *watch,
                                   size_t events)
{
    watch->wanted = events;
    /* What does not come is seen by whoever compares. */
    (void)hft_loop_try(&client->loop, has_all, watch, ANSWER_MS);
    ck_assert_int_eq(watch->text.err, HF_OK);
    return watch->text.len > 0 ? watch->text.data : "";
}
