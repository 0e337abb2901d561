/* internal.h - the inside of a client, shared by the files of lib/etcd and by nobody else. */
#ifndef HF_ETCD_INTERNAL_H
#define HF_ETCD_INTERNAL_H

#include <grpc/grpc.h>

#include "base/str.h"
#include "etcd/arena.h"
#include "etcd/auth.h"
#include "etcd/client.h"
#include "etcd/lane.h"
#include "etcd/members.h"
#include "etcd/queue.h"
#include "etcd/status.h"
#include "etcd/timer.h"
#include "etcd/tls.h"

/* gRPC's retries are bounded by tokens: a failed attempt costs ten, a success gives one back,
 * and below the floor only first attempts are made. A dead etcd is not beaten while it is down.
 */
enum { HF_BUDGET_MAX = 100, HF_BUDGET_FLOOR = 50, HF_BUDGET_COST = 10 };

/* The longest span that anybody can ask for: the sum with any time of the clock stays a time.
 */
#define HF_SPAN_MAX ((hf_ms)30 * 24 * 3600 * 1000)

struct hf_etcd {
    uv_loop_t *loop;
    struct hf_timers timers;
    struct hf_queue queue;

    struct hf_endpoint *endpoints; /* room for HF_ENDPOINTS_MAX where there is discovery */
    size_t endpoint_count;
    struct hf_members members;
    struct hf_lane lanes[HF_LANE_COUNT];
    bool separate_channels;
    bool tls_on;
    char *server_name;
    struct hf_tls tls;
    hf_ms tls_poll;
    unsigned tls_failures; /* in a row */
    hf_etcd_renewed_fn on_renewed;
    void *renewed_arg;
    struct hf_timer tls_timer;

    struct hf_auth auth;

    hf_ms timeout;
    hf_ms attempt_timeout;
    int budget;
    uint64_t random; /* state of hf_etcd_random */
    struct hf_arena arena;

    struct hf_call *calls;     /* every one whose memory is still needed */
    struct hf_stream *streams; /* likewise */
    size_t attached;           /* mirrors and renewers */
    size_t lists;              /* under way on the bulk lane */
    struct hf_timer trim_timer;

    bool closing; /* hf_etcd_close was called */
    bool closed;  /* and nothing is left that could call back */
    unsigned open_handles;
    hf_etcd_closed_fn closed_fn;
    void *closed_arg;

    struct hf_etcd_stats stats;
};

static inline hf_ms hf_etcd_now(const struct hf_etcd *etcd)
{
    return hf_clock_now(&etcd->timers.clock);
}

/* The span that was asked for, or the fallback if none was. */
static inline hf_ms hf_span_or(hf_ms span, hf_ms fallback)
{
    if (span <= 0)
        span = fallback;
    return span < HF_SPAN_MAX ? span : HF_SPAN_MAX;
}

/* 0 .. below - 1, for jitter only. */
uint64_t hf_etcd_random(struct hf_etcd *etcd, uint64_t below);

/* Full jitter: anything from 0 to base * 2^failures, at most cap. */
hf_ms hf_etcd_backoff(struct hf_etcd *etcd, hf_ms base, hf_ms cap, unsigned failures);

/* A call or a stream has left its list: close on when it was the last. */
void hf_etcd_on_released(struct hf_etcd *etcd);

/* The metadata of every request: `hasleader`, so that a member cut off from its peers says so
 * at once instead of being silent, and the token when there is one. Slices are the caller's. */
struct hf_metadata {
    grpc_metadata entries[2];
    size_t count;
};

struct hf_metadata hf_metadata_make(const char *token);
void hf_metadata_done(struct hf_metadata *metadata);

/* A packed message; the caller owns the slice. */
grpc_slice hf_slice_pack(const ProtobufCMessage *message);

/* The content of a received buffer in one piece, and the buffer destroyed. False when it cannot
 * be decompressed. */
bool hf_slice_take(grpc_byte_buffer *buffer, grpc_slice *ret_whole);

/* Whoever wanted to see the message has seen it: its bytes and what was decoded from them go.
 */
void hf_etcd_drop_message(struct hf_etcd *etcd, grpc_slice bytes);

/* A status's words as a string of at most `size` bytes. */
void hf_slice_text(grpc_slice slice, char *out, size_t size);

#endif
