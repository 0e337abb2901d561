#include "etcd/lease.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "etcd/call.h"
#include "etcd/decode.h"
#include "etcd/internal.h"
#include "etcd/stream.h"

/* extra: the TTL that was asked. */
static void decode_grant(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_grant_result result = { .result = outcome->result };
    Etcdserverpb__LeaseGrantResponse *answer = NULL;

    if (result.result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__lease_grant_response__descriptor,
                                outcome->body, &result.result);
    if (answer != NULL) {
        result.result.header = hf_header_from(answer->header);
        result.id = answer->id;
        result.ttl_s = answer->ttl;
    } else if (result.result.err == HF_EEXIST && result.result.resent > 0) {
        /* An earlier copy of this grant did it: nobody else draws our 63 random bits. */
        result.result.err = HF_OK;
        result.result.maybe_applied = false;
        result.id = outcome->lease;
        result.ttl_s = outcome->extra;
    }
    ((hf_grant_fn)outcome->fn)(&result, outcome->arg);
}

int hf_etcd_lease_grant(struct hf_etcd *etcd, int64_t id, int64_t ttl_s, hf_ms timeout,
                        hf_grant_fn fn, void *arg, struct hf_call **ret_call)
{
    Etcdserverpb__LeaseGrantRequest message = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;

    if (id <= 0 || ttl_s <= 0)
        return HF_EINVAL;
    message.id = id;
    message.ttl = ttl_s;
    return hf_call_start(etcd,
                         &(struct hf_call_spec){ .method = "/etcdserverpb.Lease/LeaseGrant",
                                                 .request = &message.base,
                                                 .lane = HF_LANE_UNARY,
                                                 .repeatable = true,
                                                 .timeout = timeout,
                                                 .decode = decode_grant,
                                                 .fn = (hf_any_fn)fn,
                                                 .arg = arg,
                                                 .lease = id,
                                                 .extra = ttl_s },
                         ret_call);
}

static void decode_revoke(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_write_result result = { .result = outcome->result };
    Etcdserverpb__LeaseRevokeResponse *answer = NULL;

    if (result.result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__lease_revoke_response__descriptor,
                                outcome->body, &result.result);
    if (answer != NULL)
        result.result.header = hf_header_from(answer->header);
    if (result.result.err == HF_ENOENT && result.result.resent > 0)
        result.result.err = HF_OK;
    ((hf_write_fn)outcome->fn)(&result, outcome->arg);
}

int hf_etcd_lease_revoke(struct hf_etcd *etcd, int64_t id, hf_write_fn fn, void *arg,
                         struct hf_call **ret_call)
{
    Etcdserverpb__LeaseRevokeRequest message = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;

    message.id = id;
    return hf_call_start(etcd,
                         &(struct hf_call_spec){ .method = "/etcdserverpb.Lease/LeaseRevoke",
                                                 .request = &message.base,
                                                 .lane = HF_LANE_UNARY,
                                                 .repeatable = true,
                                                 .decode = decode_revoke,
                                                 .fn = (hf_any_fn)fn,
                                                 .arg = arg },
                         ret_call);
}

static void decode_ttl(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_ttl_result result = { .result = outcome->result, .ttl_s = -1 };
    Etcdserverpb__LeaseTimeToLiveResponse *answer = NULL;
    struct hf_bytes *keys = NULL;

    if (result.result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__lease_time_to_live_response__descriptor,
                                outcome->body, &result.result);
    if (answer != NULL)
        keys = hf_arena_alloc(&etcd->arena, answer->n_keys * sizeof *keys + 1);
    if (keys != NULL) {
        result.result.header = hf_header_from(answer->header);
        result.ttl_s = answer->ttl;
        result.granted_ttl_s = answer->grantedttl;
        for (size_t i = 0; i < answer->n_keys; i++)
            keys[i] = hf_bytes_from(answer->keys[i]);
        result.keys = keys;
        result.key_count = answer->n_keys;
    } else if (answer != NULL) {
        result.result.err = HF_ENOMEM;
        result.result.message = hf_err_text(HF_ENOMEM);
    }
    ((hf_ttl_fn)outcome->fn)(&result, outcome->arg);
}

int hf_etcd_lease_ttl(struct hf_etcd *etcd, int64_t id, bool with_keys, hf_ttl_fn fn, void *arg,
                      struct hf_call **ret_call)
{
    Etcdserverpb__LeaseTimeToLiveRequest message =
        ETCDSERVERPB__LEASE_TIME_TO_LIVE_REQUEST__INIT;

    message.id = id;
    message.keys = with_keys;
    return hf_call_start(
        etcd,
        &(struct hf_call_spec){ .method = "/etcdserverpb.Lease/LeaseTimeToLive",
                                .request = &message.base,
                                .lane = HF_LANE_UNARY,
                                .repeatable = true,
                                .decode = decode_ttl,
                                .fn = (hf_any_fn)fn,
                                .arg = arg },
        ret_call);
}

struct hf_renewer {
    struct hf_etcd *etcd;
    int64_t id;
    hf_renewal_fn fn;
    void *arg;
    struct hf_stream *stream; /* NULL until needed */
    bool had_stream;
    bool reopened;         /* since the last answer */
    struct hf_timer timer; /* of the attempt under way */
    bool busy;
    hf_ms sent_at;
    struct hf_timer next; /* of those that repeat */
    hf_ms period;
};

static void conclude(struct hf_renewer *renewer, struct hf_renewal renewal)
{
    hf_timer_stop(&renewer->etcd->timers, &renewer->timer);
    renewer->busy = false;
    renewal.sent_at = renewer->sent_at;
    renewer->fn(&renewal, renewer->arg); /* may close the renewer */
}

/* One attempt is under way at a time, and a stream that did not answer in time is never
 * listened to again: so an answer is to the request that was sent last. */
static void on_message(struct hf_bytes message, void *arg)
{
    struct hf_renewer *renewer = arg;
    struct hf_etcd_result result = { 0 };
    Etcdserverpb__LeaseKeepAliveResponse *answer = hf_call_unpack(
        renewer->etcd, &etcdserverpb__lease_keep_alive_response__descriptor, message, &result);
    bool reopened = renewer->reopened;

    if (answer == NULL || answer->id != renewer->id || !renewer->busy)
        return;
    renewer->reopened = false;
    conclude(renewer, (struct hf_renewal){ .err = HF_OK,
                                           .message = "",
                                           .ttl_s = answer->ttl,
                                           .reopened = reopened,
                                           .header = hf_header_from(answer->header) });
}

static void on_end(int err, const char *message, void *arg)
{
    struct hf_renewer *renewer = arg;

    renewer->stream = NULL;
    if (renewer->busy)
        conclude(renewer, (struct hf_renewal){ .err = err, .message = message });
}

static void on_timeout(struct hf_timer *timer)
{
    struct hf_renewer *renewer =
        (struct hf_renewer *)((char *)timer - offsetof(struct hf_renewer, timer));

    hf_renewer_give_up(renewer);
    conclude(renewer, (struct hf_renewal){ .err = HF_ETIMEOUT,
                                           .message = "no answer within the attempt's time" });
}

static const struct hf_stream_handler RENEWALS = { .on_message = on_message, .on_end = on_end };

int hf_renewer_new(struct hf_etcd *etcd, int64_t id, hf_renewal_fn fn, void *arg,
                   struct hf_renewer **ret_renewer)
{
    struct hf_renewer *renewer = hf_calloc(1, sizeof *renewer);

    if (renewer == NULL)
        return HF_ENOMEM;
    *renewer = (struct hf_renewer){
        .etcd = etcd, .id = id, .fn = fn, .arg = arg, .timer = { .fn = on_timeout }
    };
    etcd->attached++;
    *ret_renewer = renewer;
    return HF_OK;
}

void hf_renewer_close(struct hf_renewer *renewer)
{
    if (renewer == NULL)
        return;
    hf_timer_stop(&renewer->etcd->timers, &renewer->timer);
    hf_timer_stop(&renewer->etcd->timers, &renewer->next);
    hf_stream_close(renewer->stream);
    renewer->etcd->attached--;
    free(renewer);
}

static int open_stream(struct hf_renewer *renewer)
{
    int err = hf_stream_open(renewer->etcd, HF_LANE_LEASE, "/etcdserverpb.Lease/LeaseKeepAlive",
                             &RENEWALS, renewer, &renewer->stream);

    if (err == HF_OK) {
        renewer->reopened = renewer->had_stream;
        renewer->had_stream = true;
    }
    return err;
}

int hf_renewer_send(struct hf_renewer *renewer, hf_ms timeout)
{
    struct hf_etcd *etcd = renewer->etcd;
    Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
    int err = HF_OK;

    if (renewer->busy)
        return HF_EAGAIN;
    if (renewer->stream == NULL)
        err = open_stream(renewer);
    if (err != HF_OK)
        return err;
    renewer->sent_at = hf_etcd_now(etcd); /* before the first byte can leave */
    request.id = renewer->id;
    err = hf_stream_send(renewer->stream, &request.base);
    if (err != HF_OK)
        return err;
    hf_timer_start(&etcd->timers, &renewer->timer, renewer->sent_at + hf_span_or(timeout, 1));
    renewer->busy = true;
    return HF_OK;
}

static void on_next(struct hf_timer *timer)
{
    struct hf_renewer *renewer =
        (struct hf_renewer *)((char *)timer - offsetof(struct hf_renewer, next));
    struct hf_etcd *etcd = renewer->etcd;
    int err;

    hf_timer_start(&etcd->timers, timer, hf_etcd_now(etcd) + renewer->period);
    err = hf_renewer_send(renewer, renewer->period / 2);
    if (err != HF_OK && err != HF_EAGAIN)
        conclude(renewer, (struct hf_renewal){ .err = err, .message = hf_err_text(err) });
}

int hf_renewer_repeat(struct hf_renewer *renewer, hf_ms period)
{
    if (period <= 0)
        return HF_EINVAL;
    renewer->period = hf_span_or(period, 1);
    renewer->next.fn = on_next;
    hf_timer_start(&renewer->etcd->timers, &renewer->next, hf_etcd_now(renewer->etcd));
    return HF_OK;
}

void hf_renewer_give_up(struct hf_renewer *renewer)
{
    hf_timer_stop(&renewer->etcd->timers, &renewer->timer);
    hf_stream_give_up(renewer->stream);
    renewer->stream = NULL;
    renewer->busy = false;
}

hf_ms hf_renewer_get_sent_at(const struct hf_renewer *renewer)
{
    return renewer->sent_at;
}
