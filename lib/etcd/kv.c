#include "etcd/kv.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/call.h"
#include "etcd/decode.h"
#include "etcd/internal.h"
#include "etcd/range.h"
#include "etcd/statuscall.h"
#include "etcd/wire.h"

enum { PAGE_ATTEMPT_MS = 10000 };

bool hf_kvs_from(struct hf_arena *arena, const Etcdserverpb__RangeResponse *answer,
                 const struct hf_kv **ret_kvs)
{
    struct hf_kv *kvs = hf_arena_alloc(arena, answer->n_kvs * sizeof *kvs + 1);

    if (kvs == NULL)
        return false;
    for (size_t i = 0; i < answer->n_kvs; i++)
        kvs[i] = hf_kv_from(answer->kvs[i]);
    *ret_kvs = kvs;
    return true;
}

/* The prefix with its last byte that is not 0xff raised by one and what follows cut off; a
 * single NUL, which to etcd is "everything after", when there is none. */
static uint8_t *prefix_end(struct hf_bytes prefix, size_t *ret_len)
{
    size_t len = prefix.len;
    const uint8_t *bytes = prefix.data;
    uint8_t *end;

    while (len > 0 && bytes[len - 1] == 0xff)
        len--;
    end = hf_memdup(len > 0 ? prefix.data : "", len > 0 ? len : 1);
    if (end == NULL)
        return NULL;
    if (len > 0)
        end[len - 1]++;
    *ret_len = len > 0 ? len : 1;
    return end;
}

/* etcd knows no empty key: everything begins at a single NUL. */
int hf_range_bounds_init(struct hf_range_bounds *bounds, const struct hf_key_range *range)
{
    *bounds = (struct hf_range_bounds){ 0 };
    if (range->key.len == 0 && !range->prefix)
        return HF_EINVAL;
    bounds->key.data = hf_memdup(range->key.len > 0 ? range->key.data : "",
                                 range->key.len > 0 ? range->key.len : 1);
    bounds->key.len = range->key.len > 0 ? range->key.len : 1;
    if (range->prefix)
        bounds->end.data = prefix_end(range->key, &bounds->end.len);
    if (bounds->key.data != NULL && (bounds->end.data != NULL || !range->prefix))
        return HF_OK;
    hf_range_bounds_done(bounds);
    return HF_ENOMEM;
}

void hf_range_bounds_done(struct hf_range_bounds *bounds)
{
    free(bounds->key.data);
    free(bounds->end.data);
    *bounds = (struct hf_range_bounds){ 0 };
}

/* Lists are most of what a mirror ever reads, so their answers are walked where they lie: keys
 * and values point into the bytes that came. The numbers are etcd's field numbers. */

/* Of several headers the last one counts, as protobuf-c has it. */
static bool header_in(struct hf_bytes bytes, struct hf_etcd_header *header)
{
    struct hf_wire wire = { .rest = bytes };

    *header = (struct hf_etcd_header){ 0 };
    while (hf_wire_next(&wire)) {
        switch (wire.tag) {
        case HF_WIRE_NUMBER(1): header->cluster_id = wire.value; break;
        case HF_WIRE_NUMBER(2): header->member_id = wire.value; break;
        case HF_WIRE_NUMBER(3): header->revision = (hf_rev)wire.value; break;
        case HF_WIRE_NUMBER(4): header->raft_term = wire.value; break;
        default: break;
        }
    }
    return !wire.broken;
}

static bool kv_in(struct hf_bytes bytes, struct hf_kv *kv)
{
    struct hf_wire wire = { .rest = bytes };

    *kv = (struct hf_kv){ 0 };
    while (hf_wire_next(&wire)) {
        switch (wire.tag) {
        case HF_WIRE_BYTES(1): kv->key = wire.bytes; break;
        case HF_WIRE_NUMBER(2): kv->create_rev = (hf_rev)wire.value; break;
        case HF_WIRE_NUMBER(3): kv->mod_rev = (hf_rev)wire.value; break;
        case HF_WIRE_NUMBER(4): kv->version = (int64_t)wire.value; break;
        case HF_WIRE_BYTES(5): kv->value = wire.bytes; break;
        case HF_WIRE_NUMBER(6): kv->lease = (int64_t)wire.value; break;
        default: break;
        }
    }
    return !wire.broken;
}

static bool decode_run(struct hf_bytes run, struct hf_kv *kvs, struct hf_range_result *result)
{
    struct hf_wire wire = { .rest = run };

    while (hf_wire_next(&wire)) {
        switch (wire.tag) {
        case HF_WIRE_BYTES(1):
            if (!header_in(wire.bytes, &result->result.header))
                return false;
            break;
        case HF_WIRE_BYTES(2):
            if (kvs != NULL && !kv_in(wire.bytes, &kvs[result->count]))
                return false;
            result->count++;
            break;
        case HF_WIRE_NUMBER(3): result->more = wire.value != 0; break;
        case HF_WIRE_NUMBER(4): result->total = (int64_t)wire.value; break;
        default: break;
        }
    }
    return !wire.broken;
}

bool hf_range_decode(const struct hf_bytes *runs, size_t run_count, struct hf_kv *kvs,
                     struct hf_range_result *result)
{
    *result = (struct hf_range_result){ .result = result->result, .kvs = kvs };
    result->result.header = (struct hf_etcd_header){ 0 };
    for (size_t i = 0; i < run_count; i++) {
        if (!decode_run(runs[i], kvs, result))
            return false;
    }
    return true;
}

/* The answer is read where gRPC put it: only pairs that cross from one of its pieces to the
 * next are copied. */
static int decode_pieces(struct hf_arena *arena, const struct hf_bytes *pieces, size_t count,
                         struct hf_range_result *result)
{
    struct hf_bytes *runs = hf_arena_alloc(arena, 2 * count * sizeof *runs + 1);
    struct hf_kv *kvs;
    size_t run_count;
    int err = runs != NULL ? hf_wire_cut(pieces, count, arena, runs, &run_count) : HF_ENOMEM;

    if (err != HF_OK)
        return err;
    if (!hf_range_decode(runs, run_count, NULL, result)) /* counts */
        return HF_ECORRUPT;
    kvs = hf_arena_alloc(arena, result->count * sizeof *kvs + 1);
    if (kvs == NULL)
        return HF_ENOMEM;
    return hf_range_decode(runs, run_count, kvs, result) ? HF_OK : HF_ECORRUPT;
}

static void decode_range(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_range_result result = { .result = outcome->result };

    if (result.result.err == HF_OK) {
        int err = decode_pieces(&etcd->arena, outcome->pieces, outcome->piece_count, &result);

        if (err != HF_OK) {
            result = (struct hf_range_result){ .result = outcome->result };
            result.result.err = err;
            result.result.message = hf_err_text(err);
        }
    }
    ((hf_range_fn)outcome->fn)(&result, outcome->arg);
}

int hf_range_start(struct hf_etcd *etcd, const struct hf_range_bounds *bounds,
                   const struct hf_range_request *request, enum hf_lane_id lane, hf_range_fn fn,
                   void *arg, struct hf_call **ret_call)
{
    Etcdserverpb__RangeRequest message = ETCDSERVERPB__RANGE_REQUEST__INIT;

    message.key = bounds->key;
    message.range_end = bounds->end;
    message.limit = request->limit;
    message.revision = request->revision;
    message.keys_only = request->keys_only;
    message.count_only = request->count_only;
    return hf_call_start(etcd,
                         &(struct hf_call_spec){
                             .method = "/etcdserverpb.KV/Range",
                             .request = &message.base,
                             .lane = lane,
                             .repeatable = true,
                             .timeout = request->timeout,
                             .attempt_timeout = lane == HF_LANE_BULK ? PAGE_ATTEMPT_MS : 0,
                             .in_pieces = true,
                             .decode = decode_range,
                             .fn = (hf_any_fn)fn,
                             .arg = arg,
                         },
                         ret_call);
}

int hf_etcd_range(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                  void *arg, struct hf_call **ret_call)
{
    struct hf_range_bounds bounds;
    int err = hf_range_bounds_init(&bounds, &request->range);

    if (err != HF_OK)
        return err;
    err = hf_range_start(etcd, &bounds, request, HF_LANE_UNARY, fn, arg, ret_call);
    hf_range_bounds_done(&bounds);
    return err;
}

static void decode_write(struct hf_outcome *outcome, const Etcdserverpb__ResponseHeader *header,
                         int64_t deleted)
{
    struct hf_write_result result = { .result = outcome->result, .deleted = deleted };

    result.result.header = hf_header_from(header);
    ((hf_write_fn)outcome->fn)(&result, outcome->arg);
}

static void decode_put(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    Etcdserverpb__PutResponse *answer = NULL;

    if (outcome->result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__put_response__descriptor, outcome->body,
                                &outcome->result);
    decode_write(outcome, answer != NULL ? answer->header : NULL, 0);
}

static void decode_delete(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    Etcdserverpb__DeleteRangeResponse *answer = NULL;

    if (outcome->result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__delete_range_response__descriptor,
                                outcome->body, &outcome->result);
    decode_write(outcome, answer != NULL ? answer->header : NULL,
                 answer != NULL ? answer->deleted : 0);
}

int hf_etcd_put(struct hf_etcd *etcd, struct hf_bytes key, struct hf_bytes value, int64_t lease,
                hf_write_fn fn, void *arg, struct hf_call **ret_call)
{
    Etcdserverpb__PutRequest message = ETCDSERVERPB__PUT_REQUEST__INIT;

    if (key.len == 0)
        return HF_EINVAL;
    message.key = hf_bytes_to(key);
    message.value = hf_bytes_to(value);
    message.lease = lease;
    return hf_call_start(etcd,
                         &(struct hf_call_spec){ .method = "/etcdserverpb.KV/Put",
                                                 .request = &message.base,
                                                 .lane = HF_LANE_UNARY,
                                                 .decode = decode_put,
                                                 .fn = (hf_any_fn)fn,
                                                 .arg = arg },
                         ret_call);
}

int hf_etcd_delete(struct hf_etcd *etcd, struct hf_key_range range, hf_write_fn fn, void *arg,
                   struct hf_call **ret_call)
{
    Etcdserverpb__DeleteRangeRequest message = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    struct hf_range_bounds bounds;
    int err = hf_range_bounds_init(&bounds, &range);

    if (err != HF_OK)
        return err;
    message.key = bounds.key;
    message.range_end = bounds.end;
    err = hf_call_start(etcd,
                        &(struct hf_call_spec){ .method = "/etcdserverpb.KV/DeleteRange",
                                                .request = &message.base,
                                                .lane = HF_LANE_UNARY,
                                                .decode = decode_delete,
                                                .fn = (hf_any_fn)fn,
                                                .arg = arg },
                        ret_call);
    hf_range_bounds_done(&bounds);
    return err;
}

static void decode_status(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_status_result result = { .result = outcome->result, .version = "" };
    Etcdserverpb__StatusResponse *answer = NULL;

    if (result.result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__status_response__descriptor, outcome->body,
                                &result.result);
    if (answer != NULL) {
        result.result.header = hf_header_from(answer->header);
        result.version = answer->version;
        result.db_bytes = answer->dbsize;
        result.db_used_bytes = answer->dbsizeinuse;
        result.leader = answer->leader;
        result.raft_index = answer->raftindex;
        result.raft_applied_index = answer->raftappliedindex;
        result.alarms = (const char *const *)answer->errors;
        result.alarm_count = answer->n_errors;
        result.is_learner = answer->islearner != 0;
    }
    ((hf_status_fn)outcome->fn)(&result, outcome->arg);
}

int hf_status_start(struct hf_etcd *etcd, const struct hf_endpoint *only, hf_ms timeout,
                    hf_status_fn fn, void *arg, struct hf_call **ret_call)
{
    Etcdserverpb__StatusRequest message = ETCDSERVERPB__STATUS_REQUEST__INIT;

    return hf_call_start(etcd,
                         &(struct hf_call_spec){ .method = "/etcdserverpb.Maintenance/Status",
                                                 .request = &message.base,
                                                 .lane = HF_LANE_UNARY,
                                                 .only = only,
                                                 .repeatable = only == NULL,
                                                 .timeout = timeout,
                                                 .decode = decode_status,
                                                 .fn = (hf_any_fn)fn,
                                                 .arg = arg },
                         ret_call);
}

int hf_etcd_status(struct hf_etcd *etcd, hf_status_fn fn, void *arg, struct hf_call **ret_call)
{
    return hf_status_start(etcd, NULL, 0, fn, arg, ret_call);
}
