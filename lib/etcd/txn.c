#include "etcd/txn.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "etcd/arena.h"
#include "etcd/call.h"
#include "etcd/decode.h"
#include "etcd/internal.h"
#include "etcd/range.h"
#include "etcd/txncall.h"

struct ops {
    Etcdserverpb__RequestOp *list[HF_TXN_MAX_OPS];
    size_t count;
};

struct hf_txn {
    struct hf_arena arena; /* everything below hangs on it */
    Etcdserverpb__Compare *compares[HF_TXN_MAX_OPS];
    size_t compare_count;
    struct ops then, otherwise;
    int err;
};

struct hf_txn *hf_txn_new(void)
{
    return calloc(1, sizeof(struct hf_txn));
}

void hf_txn_free(struct hf_txn *txn)
{
    if (txn == NULL)
        return;
    hf_arena_clear(&txn->arena, 0);
    free(txn);
}

static void *make(struct hf_txn *txn, const ProtobufCMessageDescriptor *type)
{
    void *message = hf_arena_alloc(&txn->arena, type->sizeof_message);

    if (message == NULL)
        txn->err = HF_ENOMEM;
    else
        protobuf_c_message_init(type, message);
    return message;
}

static ProtobufCBinaryData copy(struct hf_txn *txn, struct hf_bytes bytes)
{
    ProtobufCBinaryData data = { .len = bytes.len,
                                 .data = hf_arena_alloc(&txn->arena, bytes.len + 1) };

    if (data.data == NULL)
        txn->err = HF_ENOMEM;
    else if (bytes.len > 0)
        memcpy(data.data, bytes.data, bytes.len);
    return data;
}

static Etcdserverpb__Compare *add_compare(struct hf_txn *txn, struct hf_bytes key,
                                          enum hf_txn_op op)
{
    static const Etcdserverpb__Compare__CompareResult RESULTS[] = {
        [HF_TXN_EQUAL] = ETCDSERVERPB__COMPARE__COMPARE_RESULT__EQUAL,
        [HF_TXN_GREATER] = ETCDSERVERPB__COMPARE__COMPARE_RESULT__GREATER,
        [HF_TXN_LESS] = ETCDSERVERPB__COMPARE__COMPARE_RESULT__LESS,
        [HF_TXN_NOT_EQUAL] = ETCDSERVERPB__COMPARE__COMPARE_RESULT__NOT_EQUAL,
    };
    Etcdserverpb__Compare *compare;

    if (txn->err == HF_OK && txn->compare_count == HF_TXN_MAX_OPS)
        txn->err = HF_ELIMIT;
    if (txn->err == HF_OK && key.len == 0)
        txn->err = HF_EINVAL;
    if (txn->err != HF_OK)
        return NULL;
    compare = make(txn, &etcdserverpb__compare__descriptor);
    if (compare == NULL)
        return NULL;
    compare->result = RESULTS[op];
    compare->key = copy(txn, key);
    if (txn->err != HF_OK)
        return NULL;
    txn->compares[txn->compare_count++] = compare;
    return compare;
}

void hf_txn_if_create(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, hf_rev rev)
{
    Etcdserverpb__Compare *compare = add_compare(txn, key, op);

    if (compare == NULL)
        return;
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__CREATE;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_CREATE_REVISION;
    compare->create_revision = rev;
}

void hf_txn_if_mod(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, hf_rev rev)
{
    Etcdserverpb__Compare *compare = add_compare(txn, key, op);

    if (compare == NULL)
        return;
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__MOD;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_MOD_REVISION;
    compare->mod_revision = rev;
}

void hf_txn_if_version(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op,
                       int64_t version)
{
    Etcdserverpb__Compare *compare = add_compare(txn, key, op);

    if (compare == NULL)
        return;
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VERSION;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VERSION;
    compare->version = version;
}

void hf_txn_if_lease(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op, int64_t lease)
{
    Etcdserverpb__Compare *compare = add_compare(txn, key, op);

    if (compare == NULL)
        return;
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__LEASE;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_LEASE;
    compare->lease = lease;
}

void hf_txn_if_value(struct hf_txn *txn, struct hf_bytes key, enum hf_txn_op op,
                     struct hf_bytes value)
{
    Etcdserverpb__Compare *compare = add_compare(txn, key, op);

    if (compare == NULL)
        return;
    compare->target = ETCDSERVERPB__COMPARE__COMPARE_TARGET__VALUE;
    compare->target_union_case = ETCDSERVERPB__COMPARE__TARGET_UNION_VALUE;
    compare->value = copy(txn, value);
}

static Etcdserverpb__RequestOp *add_op(struct hf_txn *txn, struct ops *ops)
{
    Etcdserverpb__RequestOp *op;

    if (txn->err == HF_OK && ops->count == HF_TXN_MAX_OPS)
        txn->err = HF_ELIMIT;
    if (txn->err != HF_OK)
        return NULL;
    op = make(txn, &etcdserverpb__request_op__descriptor);
    if (op != NULL)
        ops->list[ops->count++] = op;
    return op;
}

static bool same_key(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* The last operation of the list was just added; etcd refuses a txn that writes a key twice, so
 * it is refused here, where it is made. */
static void check_written_once(struct hf_txn *txn)
{
    const Etcdserverpb__RequestOp *last = txn->then.list[txn->then.count - 1];

    for (size_t i = 0; i + 1 < txn->then.count; i++) {
        const Etcdserverpb__RequestOp *op = txn->then.list[i];

        if (op->request_case == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT &&
            same_key(op->request_put->key, last->request_put->key))
            txn->err = HF_EINVAL;
    }
}

void hf_txn_then_put(struct hf_txn *txn, struct hf_bytes key, struct hf_bytes value,
                     int64_t lease)
{
    Etcdserverpb__RequestOp *op;
    Etcdserverpb__PutRequest *put;

    if (key.len == 0 && txn->err == HF_OK)
        txn->err = HF_EINVAL;
    op = add_op(txn, &txn->then);
    put = op != NULL ? make(txn, &etcdserverpb__put_request__descriptor) : NULL;
    if (put == NULL)
        return;
    put->key = copy(txn, key);
    put->value = copy(txn, value);
    put->lease = lease;
    op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
    op->request_put = put;
    if (txn->err == HF_OK)
        check_written_once(txn);
}

/* The bounds of a range, copied into the txn. */
static bool set_bounds(struct hf_txn *txn, const struct hf_key_range *range,
                       ProtobufCBinaryData *key, ProtobufCBinaryData *end)
{
    struct hf_range_bounds bounds;
    int err = hf_range_bounds_init(&bounds, range);

    if (err != HF_OK) {
        txn->err = err;
        return false;
    }
    *key = copy(txn, hf_bytes_from(bounds.key));
    *end = copy(txn, hf_bytes_from(bounds.end));
    hf_range_bounds_done(&bounds);
    return txn->err == HF_OK;
}

void hf_txn_then_delete(struct hf_txn *txn, struct hf_key_range range)
{
    Etcdserverpb__RequestOp *op = add_op(txn, &txn->then);
    Etcdserverpb__DeleteRangeRequest *erase =
        op != NULL ? make(txn, &etcdserverpb__delete_range_request__descriptor) : NULL;

    if (erase == NULL || !set_bounds(txn, &range, &erase->key, &erase->range_end))
        return;
    op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_DELETE_RANGE;
    op->request_delete_range = erase;
}

static void add_range(struct hf_txn *txn, struct ops *ops, const struct hf_key_range *range)
{
    Etcdserverpb__RequestOp *op = add_op(txn, ops);
    Etcdserverpb__RangeRequest *read =
        op != NULL ? make(txn, &etcdserverpb__range_request__descriptor) : NULL;

    if (read == NULL || !set_bounds(txn, range, &read->key, &read->range_end))
        return;
    op->request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
    op->request_range = read;
}

void hf_txn_then_range(struct hf_txn *txn, struct hf_key_range range)
{
    add_range(txn, &txn->then, &range);
}

void hf_txn_else_range(struct hf_txn *txn, struct hf_key_range range)
{
    add_range(txn, &txn->otherwise, &range);
}

static bool answer_from(struct hf_arena *arena, const Etcdserverpb__ResponseOp *op,
                        struct hf_txn_answer *answer)
{
    *answer = (struct hf_txn_answer){ 0 };
    if (op->response_case == ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_DELETE_RANGE)
        answer->deleted = op->response_delete_range->deleted;
    if (op->response_case != ETCDSERVERPB__RESPONSE_OP__RESPONSE_RESPONSE_RANGE)
        return true;
    answer->count = op->response_range->n_kvs;
    return hf_kvs_from(arena, op->response_range, &answer->kvs);
}

static bool answers_from(struct hf_arena *arena, const Etcdserverpb__TxnResponse *message,
                         struct hf_txn_result *result)
{
    struct hf_txn_answer *answers =
        hf_arena_alloc(arena, message->n_responses * sizeof *answers + 1);

    if (answers == NULL)
        return false;
    for (size_t i = 0; i < message->n_responses; i++) {
        if (!answer_from(arena, message->responses[i], &answers[i]))
            return false;
    }
    result->answers = answers;
    result->answer_count = message->n_responses;
    return true;
}

void hf_txn_result_from(struct hf_etcd *etcd, const struct hf_outcome *outcome,
                        struct hf_txn_result *ret_result)
{
    struct hf_txn_result result = { .result = outcome->result };
    Etcdserverpb__TxnResponse *message = NULL;

    if (result.result.err == HF_OK)
        message = hf_call_unpack(etcd, &etcdserverpb__txn_response__descriptor, outcome->body,
                                 &result.result);
    if (message != NULL) {
        result.result.header = hf_header_from(message->header);
        result.succeeded = message->succeeded != 0;
        if (!answers_from(&etcd->arena, message, &result)) {
            result.result.err = HF_ENOMEM;
            result.result.maybe_applied = true;
            result.result.message = hf_err_text(HF_ENOMEM);
        }
    }
    *ret_result = result;
}

static void decode_txn(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_txn_result result;

    hf_txn_result_from(etcd, outcome, &result);
    ((hf_txn_fn)outcome->fn)(&result, outcome->arg);
}

int hf_txn_start(struct hf_etcd *etcd, const struct hf_txn *txn, struct hf_call_spec spec,
                 struct hf_call **ret_call)
{
    Etcdserverpb__TxnRequest message = ETCDSERVERPB__TXN_REQUEST__INIT;

    if (txn->err != HF_OK)
        return txn->err;
    message.n_compare = txn->compare_count;
    message.compare = (Etcdserverpb__Compare **)txn->compares;
    message.n_success = txn->then.count;
    message.success = (Etcdserverpb__RequestOp **)txn->then.list;
    message.n_failure = txn->otherwise.count;
    message.failure = (Etcdserverpb__RequestOp **)txn->otherwise.list;
    spec.method = "/etcdserverpb.KV/Txn";
    spec.request = &message.base;
    spec.lane = HF_LANE_UNARY;
    return hf_call_start(etcd, &spec, ret_call);
}

int hf_txn_commit(struct hf_etcd *etcd, const struct hf_txn *txn,
                  const struct hf_txn_options *options, hf_txn_fn fn, void *arg,
                  struct hf_call **ret_call)
{
    return hf_txn_start(etcd, txn,
                        (struct hf_call_spec){
                            .repeatable = options != NULL && options->resend,
                            .timeout = options != NULL ? options->timeout : 0,
                            .decode = decode_txn,
                            .fn = (hf_any_fn)fn,
                            .arg = arg,
                        },
                        ret_call);
}
