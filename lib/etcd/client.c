#include "etcd/client.h"

#include <assert.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer_reader.h>

#include "base/alloc.h"
#include "base/id.h"
#include "etcd/call.h"
#include "etcd/internal.h"

enum {
    DEFAULT_TIMEOUT_MS = 5000,
    DEFAULT_ATTEMPT_MS = 2000,
    DEFAULT_TLS_POLL_MS = 30000,
    TLS_FAILURES_TOLD = 2,
    DEFAULT_DISCOVER_MS = 60000,
    ARENA_KEEP = 64 * 1024,
};

static void poll_tls(struct hf_timer *timer);
static void trim(struct hf_timer *timer);

static int parse_endpoints(struct hf_etcd *etcd, const struct hf_etcd_config *cfg,
                           struct hf_error *err)
{
    if (cfg->endpoint_count == 0)
        return hf_error_set(err, HF_EINVAL, "no etcd endpoint was given");
    if (cfg->endpoint_count > HF_ENDPOINTS_MAX)
        return hf_error_set(err, HF_ELIMIT, "%zu endpoints were given, at most %d can be used",
                            cfg->endpoint_count, HF_ENDPOINTS_MAX);
    etcd->endpoints = hf_calloc(cfg->discover ? HF_ENDPOINTS_MAX : cfg->endpoint_count,
                                sizeof etcd->endpoints[0]);
    if (etcd->endpoints == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < cfg->endpoint_count; i++) {
        int code = hf_parse_endpoint(cfg->endpoints[i], &etcd->endpoints[i], err);

        if (code != HF_OK)
            return code;
        if (etcd->endpoints[i].tls != etcd->endpoints[0].tls)
            return hf_error_set(err, HF_EINVAL,
                                "endpoints mix http and https: %s and %s; a client speaks one",
                                cfg->endpoints[0], cfg->endpoints[i]);
    }
    etcd->endpoint_count = cfg->endpoint_count;
    etcd->members.configured = cfg->endpoint_count;
    etcd->tls_on = etcd->endpoints[0].tls;
    return HF_OK;
}

static int read_credentials(struct hf_etcd *etcd, const struct hf_etcd_config *cfg,
                            struct hf_error *err)
{
    int code = hf_auth_init(&etcd->auth, cfg->user, cfg->password_file, err);

    if (code != HF_OK)
        return code;
    if (cfg->server_name != NULL && (etcd->server_name = hf_strdup(cfg->server_name)) == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    if (!etcd->tls_on) {
        if (cfg->cacert != NULL || cfg->cert != NULL || cfg->key != NULL)
            return hf_error_set(err, HF_EINVAL,
                                "certificates were given, but the endpoints are "
                                "http; write https://…");
        return HF_OK;
    }
    return hf_tls_init(&etcd->tls, cfg->cacert, cfg->cert, cfg->key, err);
}

static void free_client(struct hf_etcd *etcd)
{
    hf_tls_done(&etcd->tls);
    hf_auth_done(&etcd->auth);
    hf_arena_clear(&etcd->arena, 0);
    free(etcd->server_name);
    free(etcd->endpoints);
    free(etcd);
}

/* A fleet spreads over the members; whoever keeps the order begins with the first. */
static int choose_endpoint(struct hf_etcd *etcd, const struct hf_etcd_config *cfg,
                           struct hf_error *err)
{
    if (hf_id_random(&etcd->random, sizeof etcd->random) != HF_OK)
        return hf_error_set(err, HF_EIO, "the kernel gives no random numbers");
    etcd->random |= 1; /* the generator must not start at zero */
    for (int id = 0; id < HF_LANE_COUNT && !cfg->keep_order; id++)
        etcd->lanes[id].endpoint =
            id == 0 ? hf_etcd_random(etcd, etcd->endpoint_count) : etcd->lanes[0].endpoint;
    return HF_OK;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct hf_etcd *etcd = handle->data;
    hf_etcd_closed_fn fn = etcd->closed_fn;
    void *arg = etcd->closed_arg;

    if (--etcd->open_handles > 0)
        return;
    free_client(etcd);
    if (fn != NULL)
        fn(arg);
}

static int open_handles(struct hf_etcd *etcd, const struct hf_etcd_config *cfg)
{
    struct hf_clock clock = cfg->clock.now != NULL ? cfg->clock : hf_clock_boottime();
    int code = hf_timers_init(&etcd->timers, etcd->loop, clock);

    if (code != HF_OK)
        return code;
    etcd->timers.poll.data = etcd;
    etcd->open_handles++;
    code = hf_queue_init(&etcd->queue, etcd->loop);
    if (code != HF_OK)
        return code;
    etcd->queue.wake.data = etcd;
    etcd->open_handles++;
    return HF_OK;
}

int hf_etcd_new(uv_loop_t *loop, const struct hf_etcd_config *cfg, struct hf_etcd **ret_etcd,
                struct hf_error *err)
{
    struct hf_etcd *etcd = hf_calloc(1, sizeof *etcd);
    int code;

    if (etcd == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    etcd->loop = loop;
    etcd->separate_channels = cfg->separate_channels;
    etcd->timeout = hf_span_or(cfg->timeout, DEFAULT_TIMEOUT_MS);
    etcd->attempt_timeout = hf_span_or(cfg->attempt_timeout, DEFAULT_ATTEMPT_MS);
    etcd->tls_poll = hf_span_or(cfg->tls_poll, DEFAULT_TLS_POLL_MS);
    etcd->on_renewed = cfg->on_renewed;
    etcd->renewed_arg = cfg->renewed_arg;
    etcd->budget = HF_BUDGET_MAX;
    code = parse_endpoints(etcd, cfg, err);
    if (code == HF_OK)
        code = read_credentials(etcd, cfg, err);
    if (code == HF_OK)
        code = choose_endpoint(etcd, cfg, err);
    if (code != HF_OK) {
        free_client(etcd);
        return code;
    }
    code = open_handles(etcd, cfg);
    etcd->tls_timer.fn = poll_tls;
    etcd->trim_timer.fn = trim;
    if (code == HF_OK && etcd->tls_on)
        hf_timer_start(&etcd->timers, &etcd->tls_timer, hf_etcd_now(etcd) + etcd->tls_poll);
    if (code == HF_OK && cfg->discover)
        hf_members_start(etcd, hf_span_or(cfg->discover_every, DEFAULT_DISCOVER_MS));
    if (code != HF_OK) {
        if (etcd->open_handles == 0)
            free_client(etcd);
        else
            hf_etcd_close(etcd, NULL, NULL);
        return hf_error_set(err, code, "the client cannot start: %s", hf_err_text(code));
    }
    *ret_etcd = etcd;
    return HF_OK;
}

static void close_handles(struct hf_etcd *etcd)
{
    bool with_queue = etcd->open_handles > 1;

    for (int id = 0; id < HF_LANE_COUNT; id++)
        hf_lane_drop(etcd, (enum hf_lane_id)id);
    hf_timers_close(&etcd->timers, on_handle_closed);
    if (with_queue)
        hf_queue_close(&etcd->queue, on_handle_closed);
}

void hf_etcd_on_released(struct hf_etcd *etcd)
{
    if (etcd->closing && etcd->calls == NULL && etcd->streams == NULL && !etcd->closed) {
        etcd->closed = true;
        close_handles(etcd);
    }
}

void hf_etcd_close(struct hf_etcd *etcd, hf_etcd_closed_fn fn, void *arg)
{
    assert(etcd->attached == 0 && !etcd->closing);
    etcd->closing = true;
    etcd->closed_fn = fn;
    etcd->closed_arg = arg;
    hf_timer_stop(&etcd->timers, &etcd->tls_timer);
    hf_timer_stop(&etcd->timers, &etcd->trim_timer);
    hf_timer_stop(&etcd->timers, &etcd->auth.timer);
    hf_members_stop(etcd);
    hf_call_cancel_all(etcd);
    hf_etcd_on_released(etcd);
}

int hf_etcd_reload_tls(struct hf_etcd *etcd, struct hf_error *err)
{
    bool changed = false;
    int code;

    if (!etcd->tls_on)
        return HF_OK;
    code = hf_tls_reload(&etcd->tls, &changed, err);
    if (code != HF_OK || !changed)
        return code;
    etcd->stats.tls_reloads++;
    /* Streams under way keep the connection on which they are; certificates matter only when
     * a connection is made, and the next one is made with the new ones. */
    for (int id = 0; id < HF_LANE_COUNT; id++)
        hf_lane_drop(etcd, (enum hf_lane_id)id);
    return HF_OK;
}

int64_t hf_etcd_get_certificate_end(const struct hf_etcd *etcd)
{
    int64_t begins = 0, ends = 0;

    return etcd->tls_on && etcd->tls.cert != NULL &&
                   hf_tls_read_validity(etcd->tls.cert, &begins, &ends) == HF_OK
               ? ends
               : 0;
}

/* A list of everything is megabytes once in a while: they go back to the system, and do not
 * stay with a daemon that needs kilobytes from then on. */
static void trim(struct hf_timer *timer)
{
    (void)timer;
    (void)malloc_trim(0);
}

static void poll_tls(struct hf_timer *timer)
{
    struct hf_etcd *etcd =
        (struct hf_etcd *)((char *)timer - offsetof(struct hf_etcd, tls_timer));
    uint64_t reloads = etcd->stats.tls_reloads;
    struct hf_error err = { "" };
    int code = hf_etcd_reload_tls(etcd, &err);

    /* A half-written file is looked at again next time. */
    etcd->tls_failures = code != HF_OK ? etcd->tls_failures + 1 : 0;
    if (etcd->on_renewed != NULL &&
        (etcd->tls_failures == TLS_FAILURES_TOLD || etcd->stats.tls_reloads > reloads))
        etcd->on_renewed(code, err.text, etcd->renewed_arg);
    hf_timer_start(&etcd->timers, timer, hf_etcd_now(etcd) + etcd->tls_poll);
}

struct hf_etcd_stats hf_etcd_get_stats(const struct hf_etcd *etcd)
{
    struct hf_etcd_stats stats = etcd->stats;

    stats.endpoints = etcd->endpoint_count;
    return stats;
}

const struct hf_clock *hf_etcd_get_clock(const struct hf_etcd *etcd)
{
    return &etcd->timers.clock;
}

void hf_etcd_get_endpoint(const struct hf_etcd *etcd, char *out, size_t size)
{
    (void)hf_format_endpoint(&etcd->endpoints[etcd->lanes[HF_LANE_UNARY].endpoint], out, size);
}

/* xorshift64*: enough to keep a herd apart. */
uint64_t hf_etcd_random(struct hf_etcd *etcd, uint64_t below)
{
    etcd->random ^= etcd->random >> 12;
    etcd->random ^= etcd->random << 25;
    etcd->random ^= etcd->random >> 27;
    return below > 0 ? (etcd->random * 2685821657736338717u >> 16) % below : 0;
}

hf_ms hf_etcd_backoff(struct hf_etcd *etcd, hf_ms base, hf_ms cap, unsigned failures)
{
    hf_ms most = base;

    while (failures-- > 0 && most < cap)
        most *= 2;
    if (most > cap)
        most = cap;
    return (hf_ms)hf_etcd_random(etcd, (uint64_t)most + 1);
}

struct hf_metadata hf_metadata_make(const char *token)
{
    struct hf_metadata metadata = { .count = 1 };

    metadata.entries[0].key = grpc_slice_from_static_string("hasleader");
    metadata.entries[0].value = grpc_slice_from_static_string("true");
    if (token != NULL) {
        metadata.entries[1].key = grpc_slice_from_static_string("token");
        metadata.entries[1].value = grpc_slice_from_copied_string(token);
        metadata.count = 2;
    }
    return metadata;
}

void hf_metadata_done(struct hf_metadata *metadata)
{
    if (metadata->count > 1)
        grpc_slice_unref(metadata->entries[1].value);
}

grpc_slice hf_slice_pack(const ProtobufCMessage *message)
{
    grpc_slice slice = grpc_slice_malloc(protobuf_c_message_get_packed_size(message));

    (void)protobuf_c_message_pack(message, GRPC_SLICE_START_PTR(slice));
    return slice;
}

bool hf_slice_take(grpc_byte_buffer *buffer, grpc_slice *ret_whole)
{
    grpc_byte_buffer_reader reader;
    bool readable = grpc_byte_buffer_reader_init(&reader, buffer) != 0;

    if (readable) {
        *ret_whole = grpc_byte_buffer_reader_readall(&reader);
        grpc_byte_buffer_reader_destroy(&reader);
    }
    grpc_byte_buffer_destroy(buffer);
    return readable;
}

void hf_etcd_drop_message(struct hf_etcd *etcd, grpc_slice bytes)
{
    grpc_slice_unref(bytes);
    hf_arena_clear(&etcd->arena, ARENA_KEEP);
}

void hf_slice_text(grpc_slice slice, char *out, size_t size)
{
    size_t len = GRPC_SLICE_LENGTH(slice);

    if (len >= size)
        len = size - 1;
    memcpy(out, GRPC_SLICE_START_PTR(slice), len);
    out[len] = '\0';
}
