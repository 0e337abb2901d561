/* lane.h - one gRPC channel per purpose, to one endpoint at a time.
 *
 * gRPC's own balancing is not used: it notices a hung server by its keepalive at best, long
 * after a short lease is lost. Whoever finds the endpoint wanting gives it up, and the next use
 * of the lane makes a new channel to the next endpoint. Internal to lib/etcd. */
#ifndef HF_ETCD_LANE_H
#define HF_ETCD_LANE_H

#include <stddef.h>
#include <stdint.h>

#include <grpc/grpc.h>

struct hf_endpoint;
struct hf_etcd;

enum hf_lane_id {
    HF_LANE_UNARY,
    HF_LANE_LEASE,
    HF_LANE_WATCH,
    HF_LANE_BULK, /* lists: megabytes that would hold up anything behind them */
    HF_LANE_COUNT,
};

struct hf_lane {
    grpc_channel *channel; /* NULL until used */
    size_t endpoint;
    uint64_t generation; /* counts the channels of this lane */
};

/* The channel that serves this purpose now (borrowed) and its generation. */
grpc_channel *hf_lane_get(struct hf_etcd *etcd, enum hf_lane_id id, uint64_t *ret_generation);

/* The channel of that generation did badly: the next use goes to the next endpoint, and so does
 * that of the other lanes which are on the same one. Calls and streams that are under way there
 * go on. Late reports about an earlier channel are ignored. */
void hf_lane_give_up(struct hf_etcd *etcd, enum hf_lane_id id, uint64_t generation);

#define HF_LANE_NOWHERE SIZE_MAX

/* The client is about to exchange its endpoints: places[i] is where number i will be. A lane
 * whose endpoint will be nowhere begins anew with the first. Calls that are under way go on. */
void hf_lane_move(struct hf_etcd *etcd, const size_t *places);

/* A channel of the caller's own, which the caller destroys. */
grpc_channel *hf_lane_connect(struct hf_etcd *etcd, const struct hf_endpoint *endpoint);

/* Drops the channel but keeps the endpoint: new credentials, or no longer needed. Calls that
 * are under way on it go on. */
void hf_lane_drop(struct hf_etcd *etcd, enum hf_lane_id id);

#endif
