#include "etcd/call.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <grpc/byte_buffer_reader.h>
#include <grpc/support/alloc.h>

#include "base/alloc.h"
#include "etcd/internal.h"

enum {
    RETRY_BASE_MS = 100,
    RETRY_CAP_MS = 5000,
    OVERLOAD_MS = 1000,
    MOST_LOGINS = 3,
};

struct hf_call {
    struct hf_tag tag;
    struct hf_auth_waiter waiter;
    struct hf_timer timer; /* the pause before a retry, or the deadline while waiting */
    struct hf_etcd *etcd;
    struct hf_call *prev, *next;

    struct hf_call_spec spec; /* its request is packed below */
    grpc_slice request;
    hf_ms deadline;
    hf_ms sent_at;    /* of the first attempt that may have arrived; valid when resent > 0 */
    hf_ms attempt_at; /* of the attempt under way */
    unsigned attempts;
    unsigned resent;
    unsigned logins;
    uint64_t generation;       /* of the channel of this attempt */
    uint64_t token_generation; /* of its token */
    bool detached;             /* the owner does not want to hear of it any more */

    grpc_channel *own; /* NULL: its lane's */
    grpc_call *call;   /* NULL between attempts */
    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *body;
    grpc_status_code code;
    grpc_slice details;
};

static void attempt(struct hf_call *call);
static void on_answer(struct hf_tag *tag, bool ok);
static void on_token(struct hf_auth_waiter *waiter, int err, const char *message);
static void on_timer(struct hf_timer *timer);

#define OWNER(ptr, member) ((struct hf_call *)((char *)(ptr)-offsetof(struct hf_call, member)))

static void release(struct hf_call *call)
{
    struct hf_etcd *etcd = call->etcd;

    hf_timer_stop(&etcd->timers, &call->timer);
    hf_auth_cancel(etcd, &call->waiter);
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        etcd->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    grpc_slice_unref(call->request);
    if (call->own != NULL)
        grpc_channel_destroy(call->own);
    free(call);
    hf_etcd_on_released(etcd);
}

static void finish(struct hf_call *call, struct hf_etcd_result result,
                   const struct hf_bytes *pieces, size_t piece_count)
{
    struct hf_etcd *etcd = call->etcd;
    struct hf_outcome outcome = {
        .result = result,
        .pieces = pieces,
        .piece_count = piece_count,
        .body = piece_count == 1 ? pieces[0] : (struct hf_bytes){ 0 },
        .fn = call->spec.fn,
        .arg = call->spec.arg,
        .lease = call->spec.lease,
        .extra = call->spec.extra,
    };
    hf_decode_fn decode = call->spec.decode;
    bool detached = call->detached;

    /* Released first: the owner's callback may close the client. */
    outcome.result.resent = call->resent;
    outcome.result.sent_at = call->resent > 0 ? call->sent_at : call->attempt_at;
    release(call);
    if (!detached)
        decode(etcd, &outcome);
}

static void fail(struct hf_call *call, int err, bool unknown, const char *message)
{
    finish(call,
           (struct hf_etcd_result){
               .err = err, .maybe_applied = unknown || call->resent > 0, .message = message },
           NULL, 0);
}

static void wait_until(struct hf_call *call, hf_ms at)
{
    hf_timer_start(&call->etcd->timers, &call->timer, at);
}

/* gRPC's own clock is the one it understands; only the distance matters. */
static gpr_timespec grpc_deadline(hf_ms distance)
{
    return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                        gpr_time_from_millis(distance, GPR_TIMESPAN));
}

static hf_ms attempt_length(const struct hf_call *call, hf_ms now)
{
    hf_ms left = call->deadline > now ? call->deadline - now : 1;
    hf_ms most = call->spec.attempt_timeout > 0 ? call->spec.attempt_timeout
                                                : call->etcd->attempt_timeout;

    return call->spec.repeatable && left > most ? most : left;
}

/* One batch for the whole call: it comes back with a status whatever happens. */
static void send_batch(struct hf_call *call, const char *token)
{
    struct hf_metadata metadata = hf_metadata_make(token);
    grpc_slice copy = grpc_slice_ref(call->request);
    grpc_byte_buffer *payload = grpc_raw_byte_buffer_create(&copy, 1);
    grpc_op ops[6] = {
        { .op = GRPC_OP_SEND_INITIAL_METADATA,
          .data.send_initial_metadata = { .count = metadata.count,
                                          .metadata = metadata.entries } },
        { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = payload },
        { .op = GRPC_OP_SEND_CLOSE_FROM_CLIENT },
        { .op = GRPC_OP_RECV_INITIAL_METADATA,
          .data.recv_initial_metadata.recv_initial_metadata = &call->initial },
        { .op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->body },
        { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
          .data.recv_status_on_client = { .trailing_metadata = &call->trailing,
                                          .status = &call->code,
                                          .status_details = &call->details } },
    };

    grpc_metadata_array_init(&call->initial);
    grpc_metadata_array_init(&call->trailing);
    call->details = grpc_empty_slice();
    call->body = NULL;
    if (!hf_queue_start(&call->etcd->queue, call->call, ops, 6, &call->tag))
        assert(false); /* only a malformed batch is refused */
    grpc_byte_buffer_destroy(payload);
    grpc_slice_unref(copy);
    hf_metadata_done(&metadata);
}

static bool may_go(struct hf_call *call, const char **ret_token)
{
    return call->spec.without_token ||
           hf_auth_ready(call->etcd, ret_token, &call->token_generation);
}

/* Never fails at once: however late it is, the answer comes by the queue. */
static void launch(struct hf_call *call, const char *token)
{
    struct hf_etcd *etcd = call->etcd;
    grpc_channel *channel =
        call->own != NULL ? call->own : hf_lane_get(etcd, call->spec.lane, &call->generation);

    call->call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, etcd->queue.cq,
                                 grpc_slice_from_static_string(call->spec.method), NULL,
                                 grpc_deadline(attempt_length(call, hf_etcd_now(etcd))), NULL);
    call->attempts++;
    etcd->stats.calls++;
    call->attempt_at = hf_etcd_now(etcd);
    send_batch(call, token);
}

static void attempt(struct hf_call *call)
{
    const char *token = NULL;

    if (call->etcd->closing) {
        fail(call, HF_ECANCELED, false, hf_err_text(HF_ECANCELED));
    } else if (hf_etcd_now(call->etcd) >= call->deadline) {
        fail(call, HF_ETIMEOUT, false, "the call's time was up before it could be sent");
    } else if (may_go(call, &token)) {
        launch(call, token);
    } else {
        hf_auth_wait(call->etcd, &call->waiter);
        wait_until(call, call->deadline);
    }
}

static void on_token(struct hf_auth_waiter *waiter, int err, const char *message)
{
    struct hf_call *call = OWNER(waiter, waiter);

    hf_timer_stop(&call->etcd->timers, &call->timer);
    if (err != HF_OK)
        fail(call, err, false, message);
    else
        attempt(call);
}

/* Either the pause is over, or the time ran out while waiting for a token: attempt() sees. */
static void on_timer(struct hf_timer *timer)
{
    struct hf_call *call = OWNER(timer, timer);

    hf_auth_cancel(call->etcd, &call->waiter);
    attempt(call);
}

static bool budget_allows(struct hf_etcd *etcd)
{
    if (etcd->budget > HF_BUDGET_FLOOR)
        return true;
    etcd->stats.budget_spent++;
    return false;
}

static bool may_retry(struct hf_call *call, const struct hf_status *status)
{
    struct hf_etcd *etcd = call->etcd;

    if (call->own != NULL || (status->log_in && call->spec.without_token))
        return false;
    if (status->log_in)
        return etcd->auth.user != NULL && call->logins++ < MOST_LOGINS;
    if (!status->retry || (status->unknown && !call->spec.repeatable))
        return false;
    return budget_allows(etcd);
}

static void retry(struct hf_call *call, const struct hf_status *status, const char *message)
{
    struct hf_etcd *etcd = call->etcd;
    hf_ms pause = 0;

    if (!status->log_in)
        pause = hf_etcd_backoff(etcd, RETRY_BASE_MS, RETRY_CAP_MS, call->attempts - 1);
    if (status->overload)
        pause += OVERLOAD_MS;
    if (hf_etcd_now(etcd) + pause >= call->deadline) {
        fail(call, status->err, status->unknown, message);
        return;
    }
    if (status->unknown) {
        if (call->resent == 0)
            call->sent_at = call->attempt_at;
        call->resent++;
    }
    etcd->stats.retries++;
    wait_until(call, hf_etcd_now(etcd) + pause);
}

/* What this answer says about the endpoint and the token, whatever becomes of the call. */
static void take_note(struct hf_call *call, const struct hf_status *status)
{
    struct hf_etcd *etcd = call->etcd;

    if (call->own != NULL)
        return; /* nobody else goes there because of it, and nobody leaves */
    if (status->rotate || status->overload)
        etcd->budget = etcd->budget > HF_BUDGET_COST ? etcd->budget - HF_BUDGET_COST : 0;
    else if (etcd->budget < HF_BUDGET_MAX)
        etcd->budget++;
    if (status->rotate) {
        etcd->stats.failures++;
        hf_lane_give_up(etcd, call->spec.lane, call->generation);
    }
    if (status->log_in)
        hf_auth_refused(etcd, call->token_generation);
}

static void on_failure(struct hf_call *call, const char *message)
{
    struct hf_status status = hf_status_of((int)call->code, message);

    if (call->etcd->closing || call->detached) {
        fail(call, HF_ECANCELED, status.unknown, hf_err_text(HF_ECANCELED));
        return;
    }
    take_note(call, &status);
    if (may_retry(call, &status))
        retry(call, &status, message);
    else
        fail(call, status.err, status.unknown, message);
}

static const struct hf_etcd_result SUCCESS = { .err = HF_OK, .message = "" };
static const char UNREADABLE[] = "an answer that cannot be decompressed";

/* The bytes are in the slice itself when they are few. */
static struct hf_bytes bytes_in(const grpc_slice *slice)
{
    return (struct hf_bytes){ .data = GRPC_SLICE_START_PTR(*slice),
                              .len = GRPC_SLICE_LENGTH(*slice) };
}

static void tell_whole(struct hf_call *call, grpc_byte_buffer *body)
{
    struct hf_etcd *etcd = call->etcd;
    struct hf_bytes bytes;
    grpc_slice whole;

    if (!hf_slice_take(body, &whole)) {
        fail(call, HF_ECORRUPT, true, UNREADABLE);
        return;
    }
    bytes = bytes_in(&whole);
    finish(call, SUCCESS, &bytes, 1);
    hf_etcd_drop_message(etcd, whole);
}

static void tell_slices(struct hf_call *call, const grpc_slice_buffer *slices)
{
    struct hf_etcd *etcd = call->etcd;
    struct hf_bytes *pieces = hf_arena_alloc(&etcd->arena, slices->count * sizeof *pieces + 1);

    for (size_t i = 0; pieces != NULL && i < slices->count; i++)
        pieces[i] = bytes_in(&slices->slices[i]);
    if (pieces != NULL)
        finish(call, SUCCESS, pieces, slices->count);
    else
        fail(call, HF_ENOMEM, true, hf_err_text(HF_ENOMEM));
    hf_etcd_drop_message(etcd, grpc_empty_slice());
}

static void tell_in_pieces(struct hf_call *call, grpc_byte_buffer *body)
{
    grpc_byte_buffer_reader reader;

    if (grpc_byte_buffer_reader_init(&reader, body)) {
        tell_slices(call, &reader.buffer_out->data.raw.slice_buffer);
        grpc_byte_buffer_reader_destroy(&reader);
    } else {
        fail(call, HF_ECORRUPT, true, UNREADABLE);
    }
    grpc_byte_buffer_destroy(body);
}

static void on_success(struct hf_call *call, grpc_byte_buffer *body)
{
    take_note(call, &(struct hf_status){ .err = HF_OK });
    if (call->spec.in_pieces)
        tell_in_pieces(call, body);
    else
        tell_whole(call, body);
}

static void on_answer(struct hf_tag *tag, bool ok)
{
    struct hf_call *call = OWNER(tag, tag);
    grpc_byte_buffer *body = call->body;
    char message[256];

    (void)ok; /* a batch with a status always succeeds */
    hf_slice_text(call->details, message, sizeof message);
    grpc_slice_unref(call->details);
    grpc_metadata_array_destroy(&call->initial);
    grpc_metadata_array_destroy(&call->trailing);
    grpc_call_unref(call->call);
    call->call = NULL;
    call->body = NULL;

    if (call->code == GRPC_STATUS_OK && body != NULL) {
        on_success(call, body);
    } else {
        if (call->code == GRPC_STATUS_OK)
            call->code = GRPC_STATUS_INTERNAL; /* an answer without a body is none */
        if (body != NULL)
            grpc_byte_buffer_destroy(body);
        on_failure(call, message);
    }
}

int hf_call_start(struct hf_etcd *etcd, const struct hf_call_spec *spec,
                  struct hf_call **ret_call)
{
    struct hf_call *call;
    const char *token = NULL;

    if (etcd->closing)
        return HF_ECANCELED;
    call = hf_calloc(1, sizeof *call);
    if (call == NULL)
        return HF_ENOMEM;
    call->tag.fn = on_answer;
    call->waiter.fn = on_token;
    call->timer.fn = on_timer;
    call->etcd = etcd;
    call->spec = *spec;
    call->spec.request = NULL;
    call->spec.only = NULL;
    if (spec->only != NULL)
        call->own = hf_lane_connect(etcd, spec->only);
    call->request = hf_slice_pack(spec->request);
    call->deadline = hf_etcd_now(etcd) + hf_span_or(spec->timeout, etcd->timeout);
    call->next = etcd->calls;
    if (call->next != NULL)
        call->next->prev = call;
    etcd->calls = call;

    if (may_go(call, &token)) {
        launch(call, token);
    } else {
        wait_until(call, call->deadline);
        hf_auth_wait(etcd, &call->waiter);
    }
    if (ret_call != NULL)
        *ret_call = call;
    return HF_OK;
}

void hf_call_cancel(struct hf_call *call)
{
    call->detached = true;
    if (call->call != NULL)
        (void)grpc_call_cancel(call->call, NULL);
    else
        release(call);
}

void hf_call_cancel_all(struct hf_etcd *etcd)
{
    for (struct hf_call *call = etcd->calls; call != NULL; call = call->next) {
        if (call->call != NULL)
            (void)grpc_call_cancel(call->call, NULL);
        else
            wait_until(call, 0);
    }
}

void *hf_call_unpack(struct hf_etcd *etcd, const ProtobufCMessageDescriptor *type,
                     struct hf_bytes body, struct hf_etcd_result *result)
{
    ProtobufCAllocator allocator = hf_arena_allocator(&etcd->arena);
    void *message;

    message = protobuf_c_message_unpack(type, &allocator, body.len, body.data);
    if (message == NULL) {
        result->err = HF_ECORRUPT;
        result->maybe_applied = true;
        result->message = "an answer that is not what the protocol promises";
    }
    return message;
}
