/* client.h - an etcd client in virtual time: what lib/etcd does over gRPC, over hfs_net.
 *
 * Calls with attempts, deadlines and rotation, renewals, and lib/etcd's own mirror: mirror.c,
 * history.c and copy.c run here as they are, on stand-ins for the few functions of lib/etcd
 * that they stand on (standin.c). hfs_client_backend makes an io/backend.h of it. */
#ifndef HFS_CLIENT_H
#define HFS_CLIENT_H

#include "etcd/internal.h"
#include "etcd/lane.h"
#include "io/alarms.h"
#include "io/backend.h"
#include "sim/net.h"

struct hfs_client {
    struct hf_etcd etcd; /* first: the stand-ins come from it to the client */
    struct hfs_net *net;
    struct hfs_process *process;
    struct hfs_random random;
    unsigned endpoints[HF_LANE_COUNT];
    uint64_t generations[HF_LANE_COUNT];
    unsigned budget;
    struct hf_call *calls;
    struct hf_survey *surveys;

    struct hfs_timer tick; /* for both of: */
    struct hf_alarms alarms;
    struct hf_timer **timers; /* of lib/etcd, in the order of their places */
    size_t timer_count, timer_cap;

    bool dead; /* nothing leaves it any more */
};

/* `seed` is its own chance: jitter and ids. */
void hfs_client_init(struct hfs_client *client, struct hfs_net *net,
                     struct hfs_process *process, uint64_t seed);

/* Nothing that was opened on it may be open any more; calls are forgotten. */
void hfs_client_done(struct hfs_client *client);

/* The process has died: nothing leaves and nothing arrives from now on. What is open has to be
 * closed all the same. */
void hfs_client_die(struct hfs_client *client);

struct hf_backend hfs_client_backend(struct hfs_client *client);

/* A call: what lib/etcd's call.c does. */

struct hfs_outcome {
    struct hf_etcd_result result;
    const struct hfs_answer *answer; /* NULL when there is none */
};

struct hfs_call_spec {
    enum hf_lane_id lane;
    bool repeatable;
    hf_ms timeout; /* 0: 5 s */
    void (*decode)(struct hf_call *call, struct hfs_outcome *outcome);
    void (*fn)(void); /* of the caller, for `decode` */
    void *arg;
    int64_t lease, ttl_s; /* of a grant */
};

struct hf_call *hfs_call_start(struct hfs_client *client, const struct hfs_request *request,
                               const struct hfs_call_spec *spec);
const struct hfs_call_spec *hfs_call_get_spec(const struct hf_call *call);

/* Endpoints, as in etcd/lane.h. */
unsigned hfs_client_endpoint(struct hfs_client *client, enum hf_lane_id lane,
                             uint64_t *ret_generation);
void hfs_client_give_up(struct hfs_client *client, enum hf_lane_id lane, uint64_t generation);

/* Arms the tick for whatever is due next. */
void hfs_client_set_tick(struct hfs_client *client);

#endif
