#include "etcd/lane.h"

#include <stdio.h>

#include <grpc/grpc_security.h>

#include "etcd/internal.h"

/* Where a client has one connection for everything, all purposes but the lists are one lane. */
static struct hf_lane *lane_of(struct hf_etcd *etcd, enum hf_lane_id id)
{
    if (!etcd->separate_channels && id != HF_LANE_BULK)
        id = HF_LANE_UNARY;
    return &etcd->lanes[id];
}

static grpc_arg int_arg(const char *key, int value)
{
    return (grpc_arg){ .type = GRPC_ARG_INTEGER, .key = (char *)key, .value.integer = value };
}

static grpc_arg text_arg(const char *key, char *value)
{
    return (grpc_arg){ .type = GRPC_ARG_STRING, .key = (char *)key, .value.string = value };
}

/* Addresses are given as such, so that the resolver does not look at them; names go to DNS. */
static void format_target(const struct hf_endpoint *endpoint, char *out, size_t size)
{
    char address[HF_HOST_MAX + 16];

    (void)hf_format_endpoint(endpoint, address, sizeof address);
    (void)snprintf(out, size, "%s%s",
                   endpoint->ipv6   ? "ipv6:"
                   : endpoint->ipv4 ? "ipv4:"
                                    : "dns:///",
                   address);
}

/* What may be on its way to us in a stream before we have taken it. gRPC finds out by itself
 * how much that should be, but asks the server after every answer, however small: for whoever
 * mostly waits, that is a fifth of its processor time. So only the lists are left to it. */
enum { LOOKAHEAD = 1 << 20 };

/* The connect timeout is min_reconnect_backoff. The pings are the second line of defence, slow
 * enough for etcd's policy (a server that sees them oftener than every 5 s hangs up). A local
 * subchannel pool makes every channel a connection of its own. */
static grpc_channel *connect_to(struct hf_etcd *etcd, const struct hf_endpoint *endpoint,
                                bool for_lists)
{
    char target[HF_HOST_MAX + 32];
    grpc_arg args[] = {
        int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 200),
        int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 2000),
        int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000),
        int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, 10000),
        int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 3000),
        int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0),
        int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0),
        int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
        int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1),
        int_arg(GRPC_ARG_ENABLE_RETRIES, 0),
        int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
        int_arg(GRPC_ARG_HTTP2_BDP_PROBE, for_lists),
        int_arg(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, LOOKAHEAD),
        text_arg(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, etcd->server_name),
    };
    grpc_channel_args all = { .num_args = sizeof args / sizeof args[0], .args = args };
    grpc_channel_credentials *credentials;
    grpc_channel *channel;
    sigset_t old;

    if (etcd->server_name == NULL)
        all.num_args--;
    format_target(endpoint, target, sizeof target);
    hf_signals_block(&old);
    credentials =
        etcd->tls_on ? hf_tls_credentials(&etcd->tls) : grpc_insecure_credentials_create();
    channel = grpc_channel_create(target, credentials, &all);
    grpc_channel_credentials_release(credentials);
    hf_signals_restore(&old);
    return channel;
}

grpc_channel *hf_lane_connect(struct hf_etcd *etcd, const struct hf_endpoint *endpoint)
{
    return connect_to(etcd, endpoint, false);
}

grpc_channel *hf_lane_get(struct hf_etcd *etcd, enum hf_lane_id id, uint64_t *ret_generation)
{
    struct hf_lane *lane = lane_of(etcd, id);

    if (lane->channel == NULL) {
        lane->channel = connect_to(etcd, &etcd->endpoints[lane->endpoint], id == HF_LANE_BULK);
        lane->generation++;
    }
    *ret_generation = lane->generation;
    return lane->channel;
}

static void drop(struct hf_lane *lane)
{
    if (lane->channel != NULL)
        grpc_channel_destroy(lane->channel);
    lane->channel = NULL;
}

/* An endpoint that one purpose found wanting would keep the others waiting as well, each for
 * the length of its own patience: all leave it. Where there is no other, only the one purpose
 * gets a new connection. */
void hf_lane_give_up(struct hf_etcd *etcd, enum hf_lane_id id, uint64_t generation)
{
    struct hf_lane *lane = lane_of(etcd, id);
    size_t given_up = lane->endpoint;

    if (lane->channel == NULL || lane->generation != generation)
        return;
    drop(lane);
    etcd->stats.rotations++;
    for (int i = 0; i < HF_LANE_COUNT && etcd->endpoint_count > 1; i++) {
        if (etcd->lanes[i].endpoint != given_up)
            continue;
        drop(&etcd->lanes[i]);
        etcd->lanes[i].endpoint = (given_up + 1) % etcd->endpoint_count;
    }
}

void hf_lane_move(struct hf_etcd *etcd, const size_t *places)
{
    for (int i = 0; i < HF_LANE_COUNT; i++) {
        struct hf_lane *lane = &etcd->lanes[i];
        size_t place = places[lane->endpoint];

        if (place == HF_LANE_NOWHERE)
            drop(lane);
        lane->endpoint = place != HF_LANE_NOWHERE ? place : 0;
    }
}

void hf_lane_drop(struct hf_etcd *etcd, enum hf_lane_id id)
{
    drop(lane_of(etcd, id));
}
