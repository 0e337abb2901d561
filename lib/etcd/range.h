/* range.h - ranges as etcd wants them: a first key and an end. Internal to lib/etcd. */
#ifndef HF_ETCD_RANGE_H
#define HF_ETCD_RANGE_H

#include <protobuf-c/protobuf-c.h>

#include "etcd/kv.h"
#include "etcd/lane.h"

/* Owns both; the end is empty for a single key. */
struct hf_range_bounds {
    ProtobufCBinaryData key;
    ProtobufCBinaryData end;
};

int hf_range_bounds_init(struct hf_range_bounds *bounds,
                         const struct hf_key_range *range) HF_MUST_CHECK;
void hf_range_bounds_done(struct hf_range_bounds *bounds);

/* Reads the bytes of an answer in place, cut between its fields (hf_wire_cut): `kvs`, which
 * must have room for all of them, points into the runs; with NULL they are only counted. Of
 * `result->result` only the header is set. False when it is no such message; the result is then
 * of no use. */
bool hf_range_decode(const struct hf_bytes *runs, size_t run_count, struct hf_kv *kvs,
                     struct hf_range_result *result);

/* hf_etcd_range with explicit bounds (request->range is not looked at) and lane. */
int hf_range_start(struct hf_etcd *etcd, const struct hf_range_bounds *bounds,
                   const struct hf_range_request *request, enum hf_lane_id lane, hf_range_fn fn,
                   void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

/* What a mirror may follow: 1 to HF_RANGES_MOST ranges, none of which contains another.
 * HF_ELIMIT or HF_EINVAL with a sentence. */
#define HF_RANGES_MOST 32
int hf_ranges_check(const struct hf_key_range *ranges, size_t count,
                    struct hf_error *err) HF_MUST_CHECK;

#endif
