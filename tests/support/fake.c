#include "support/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "support/fake_store.h"
#include "support/wait.h"

enum { TURN_MS = 2, FIRST_CLUSTER = 4711 };

struct call;

/* A batch under way; its place in the call tells what it is. */
struct tag {
    void (*fn)(struct call *call, bool ok);
    struct call *call;
};

struct outgoing {
    struct outgoing *next;
    grpc_slice bytes;
    int code; /* ends the stream when not OK */
    char details[64];
};

struct call {
    struct hft_fake *fake;
    grpc_call *call;
    struct tag received, sent, opened, closed;
    unsigned under_way;
    bool is_closed; /* the client is gone, or the status was sent */
    bool sending;
    grpc_byte_buffer *incoming;
    int cancelled;
    struct outgoing *queue, **queue_end; /* guarded by the fake's lock */
};

struct hft_fake {
    char endpoint[40];
    grpc_completion_queue *cq;
    grpc_server *server;
    pthread_t thread;

    /* Of the next call. */
    grpc_call *next_call;
    grpc_call_details details;
    grpc_metadata_array metadata;
    struct tag accepted;

    pthread_mutex_t lock; /* guards the rest */
    bool stopping;
    struct hft_fake_store store;
    uint64_t cluster_id;
    int64_t stale_rev;
    unsigned stale_skip, stale_left;
    int64_t most_keys; /* that come through; 0: all */
    unsigned refusals; /* still to come */
    int refusal;
    const char *refusal_details;
    bool mute, silent, replays;
    struct call *watch; /* the newest stream */
    struct hft_fake_stats stats;
};

/* Calls. Only the thread of the fake comes here. */

static void free_call(struct call *call)
{
    struct hft_fake *fake = call->fake;

    pthread_mutex_lock(&fake->lock);
    if (fake->watch == call)
        fake->watch = NULL;
    while (call->queue != NULL) {
        struct outgoing *first = call->queue;

        call->queue = first->next;
        grpc_slice_unref(first->bytes);
        free(first);
    }
    pthread_mutex_unlock(&fake->lock);
    if (call->incoming != NULL)
        grpc_byte_buffer_destroy(call->incoming);
    grpc_call_unref(call->call);
    free(call);
}

static void start(struct call *call, const grpc_op *ops, size_t count, struct tag *tag)
{
    call->under_way++;
    tag->call = call;
    if (grpc_call_start_batch(call->call, ops, count, tag, NULL) != GRPC_CALL_OK)
        abort(); /* a malformed batch */
}

static void ignore(struct call *call, bool ok)
{
    (void)call;
    (void)ok;
}

static void receive(struct call *call, void (*fn)(struct call *call, bool ok))
{
    grpc_op op = { .op = GRPC_OP_RECV_MESSAGE,
                   .data.recv_message.recv_message = &call->incoming };

    call->received.fn = fn;
    start(call, &op, 1, &call->received);
}

/* The message that has come, unpacked; NULL at the end. */
static void *take_message(struct call *call, const ProtobufCMessageDescriptor *type)
{
    grpc_byte_buffer_reader reader;
    grpc_slice whole;
    void *message;

    if (call->incoming == NULL || !grpc_byte_buffer_reader_init(&reader, call->incoming))
        return NULL;
    whole = grpc_byte_buffer_reader_readall(&reader);
    grpc_byte_buffer_reader_destroy(&reader);
    grpc_byte_buffer_destroy(call->incoming);
    call->incoming = NULL;
    message = protobuf_c_message_unpack(type, NULL, GRPC_SLICE_LENGTH(whole),
                                        GRPC_SLICE_START_PTR(whole));
    grpc_slice_unref(whole);
    return message;
}

static grpc_op status_op(grpc_status_code code, grpc_slice *details)
{
    return (grpc_op){ .op = GRPC_OP_SEND_STATUS_FROM_SERVER,
                      .data.send_status_from_server = { .status = code,
                                                        .status_details = details } };
}

static void on_closed(struct call *call, bool ok)
{
    (void)ok;
    call->is_closed = true;
}

static void watch_for_end(struct call *call)
{
    grpc_op op = { .op = GRPC_OP_RECV_CLOSE_ON_SERVER,
                   .data.recv_close_on_server.cancelled = &call->cancelled };

    call->closed.fn = on_closed;
    start(call, &op, 1, &call->closed);
}

/* A unary answer: `bytes` unless the code says otherwise. */
static void answer(struct call *call, grpc_slice bytes, grpc_status_code code,
                   const char *details)
{
    grpc_slice text = grpc_slice_from_static_string(details);
    grpc_byte_buffer *payload = grpc_raw_byte_buffer_create(&bytes, 1);
    grpc_op ops[3] = { { .op = GRPC_OP_SEND_INITIAL_METADATA }, status_op(code, &text) };
    size_t count = 2;

    if (code == GRPC_STATUS_OK)
        ops[count++] =
            (grpc_op){ .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = payload };
    call->sent.fn = ignore;
    start(call, ops, count, &call->sent);
    grpc_byte_buffer_destroy(payload);
    grpc_slice_unref(bytes);
}

/* The lock is held. */
static grpc_slice answer_range(struct hft_fake *fake, const Etcdserverpb__RangeRequest *request,
                               grpc_status_code *ret_code)
{
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    int64_t now = hft_fake_store_newest(&fake->store);
    grpc_slice slice;
    uint8_t *bytes;
    size_t len;

    if (fake->stale_skip > 0) {
        fake->stale_skip--;
    } else if (fake->stale_left > 0) {
        fake->stale_left--;
        now = fake->stale_rev;
    }
    *ret_code = request->revision > now ? GRPC_STATUS_OUT_OF_RANGE : GRPC_STATUS_OK;
    header.cluster_id = fake->cluster_id;
    header.revision = now;
    if (request->revision > 0 && request->revision < now)
        now = request->revision;
    bytes = hft_fake_store_range(&fake->store, request, now, &header, &len);
    slice = grpc_slice_from_copied_buffer((const char *)bytes, len);
    free(bytes);
    return slice;
}

static void on_range(struct call *call, bool ok)
{
    struct hft_fake *fake = call->fake;
    Etcdserverpb__RangeRequest *request =
        ok ? take_message(call, &etcdserverpb__range_request__descriptor) : NULL;
    grpc_status_code code;
    grpc_slice bytes;
    bool too_slow;

    if (request == NULL)
        return;
    pthread_mutex_lock(&fake->lock);
    fake->stats.ranges++;
    too_slow = fake->most_keys > 0 && request->range_end.len > 0 &&
               (request->limit == 0 || request->limit > fake->most_keys);
    if (!too_slow)
        bytes = answer_range(fake, request, &code);
    pthread_mutex_unlock(&fake->lock);
    etcdserverpb__range_request__free_unpacked(request, NULL);
    if (too_slow)
        return; /* the client ends it */
    answer(call, bytes, code, "etcdserver: mvcc: required revision is a future revision");
}

static void on_put(struct call *call, bool ok)
{
    struct hft_fake *fake = call->fake;
    Etcdserverpb__PutRequest *request =
        ok ? take_message(call, &etcdserverpb__put_request__descriptor) : NULL;
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    uint8_t *bytes;
    size_t len;

    if (request == NULL)
        return;
    pthread_mutex_lock(&fake->lock);
    header.cluster_id = fake->cluster_id;
    bytes = hft_fake_store_put(&fake->store, request, &header, &len);
    pthread_mutex_unlock(&fake->lock);
    etcdserverpb__put_request__free_unpacked(request, NULL);
    answer(call, grpc_slice_from_copied_buffer((const char *)bytes, len), GRPC_STATUS_OK, "");
    free(bytes);
}

/* Counts a call, and refuses it if that is due. */
static bool is_refused(struct call *call)
{
    struct hft_fake *fake = call->fake;
    bool refused;

    pthread_mutex_lock(&fake->lock);
    if (fake->stats.calls < HFT_FAKE_TIMES)
        fake->stats.called_at[fake->stats.calls] = hft_now();
    fake->stats.calls++;
    refused = fake->refusals > 0;
    if (refused) {
        fake->refusals--;
        answer(call, grpc_empty_slice(), (grpc_status_code)fake->refusal,
               fake->refusal_details);
    }
    pthread_mutex_unlock(&fake->lock);
    return refused;
}

/* The lock is held. */
static void enqueue(struct call *call, struct outgoing *last)
{
    if (call == NULL) {
        grpc_slice_unref(last->bytes);
        free(last);
        return;
    }
    *call->queue_end = last;
    call->queue_end = &last->next;
}

static struct outgoing *make_outgoing(const void *bytes, size_t len)
{
    struct outgoing *message = calloc(1, sizeof *message);

    if (message == NULL)
        abort();
    message->bytes = grpc_slice_from_copied_buffer(bytes, len);
    return message;
}

static struct outgoing *pack(const Etcdserverpb__WatchResponse *message)
{
    size_t len = etcdserverpb__watch_response__get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);
    struct outgoing *packed;

    if (bytes == NULL)
        abort();
    (void)etcdserverpb__watch_response__pack(message, bytes);
    packed = make_outgoing(bytes, len);
    free(bytes);
    return packed;
}

static void on_sent(struct call *call, bool ok)
{
    (void)ok;
    call->sending = false;
}

/* Sends what waits, one message at a time. */
static void flush(struct hft_fake *fake)
{
    struct call *call;
    struct outgoing *first = NULL;

    pthread_mutex_lock(&fake->lock);
    call = fake->watch;
    if (call != NULL && !call->sending && !call->is_closed && call->queue != NULL) {
        first = call->queue;
        call->queue = first->next;
        if (call->queue == NULL)
            call->queue_end = &call->queue;
    }
    pthread_mutex_unlock(&fake->lock);
    if (first == NULL)
        return;

    grpc_slice text = grpc_slice_from_copied_string(first->details);
    grpc_byte_buffer *payload = grpc_raw_byte_buffer_create(&first->bytes, 1);
    grpc_op op = { .op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = payload };

    if (first->code != GRPC_STATUS_OK)
        op = status_op((grpc_status_code)first->code, &text);
    call->sending = true;
    call->sent.fn = on_sent;
    start(call, &op, 1, &call->sent);
    grpc_byte_buffer_destroy(payload);
    grpc_slice_unref(text);
    grpc_slice_unref(first->bytes);
    free(first);
}

/* The lock is held. `call` NULL: nobody listens. */
static void tell(struct hft_fake *fake, struct call *call, int64_t first, int64_t last,
                 int64_t header_rev, bool fragment)
{
    size_t count = (size_t)(last - first + 1);
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    Etcdserverpb__WatchResponse message = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Etcdserverpb__KeyValue *kvs = calloc(count, sizeof *kvs);
    Etcdserverpb__Event *events = calloc(count, sizeof *events);
    Etcdserverpb__Event **pointers = calloc(count, sizeof(Etcdserverpb__Event *));

    ck_assert(kvs != NULL && events != NULL && pointers != NULL);
    for (size_t i = 0; i < count; i++) {
        kvs[i] = hft_fake_store_kv(&fake->store, first + (int64_t)i);
        etcdserverpb__event__init(&events[i]);
        events[i].kv = &kvs[i];
        if (kvs[i].version == 0)
            events[i].type = ETCDSERVERPB__EVENT__EVENT_TYPE__DELETE;
        pointers[i] = &events[i];
    }
    header.cluster_id = fake->cluster_id;
    header.revision = header_rev != 0 ? header_rev : hft_fake_store_newest(&fake->store);
    message.header = &header;
    message.watch_id = 1;
    message.n_events = count;
    message.events = pointers;
    message.fragment = fragment;
    enqueue(call, pack(&message));
    free(kvs);
    free(events);
    free(pointers);
}

/* The lock is held. */
static void on_watch_request(struct call *call, const Etcdserverpb__WatchRequest *request)
{
    struct hft_fake *fake = call->fake;
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    Etcdserverpb__WatchResponse reply = ETCDSERVERPB__WATCH_RESPONSE__INIT;

    header.cluster_id = fake->cluster_id;
    header.revision = hft_fake_store_newest(&fake->store);
    reply.header = &header;
    switch (request->request_union_case) {
    case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST:
        fake->stats.watches++;
        fake->stats.start_rev = request->create_request->start_revision;
        reply.watch_id = request->create_request->watch_id;
        reply.created = 1;
        if (!fake->silent)
            enqueue(call, pack(&reply));
        if (fake->replays && fake->stats.start_rev > 0 &&
            fake->stats.start_rev <= header.revision)
            tell(fake, call, fake->stats.start_rev, header.revision, 0, false);
        break;
    case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST:
        fake->stats.probes++;
        reply.watch_id = -1;
        if (!fake->mute)
            enqueue(call, pack(&reply));
        break;
    default: break;
    }
}

static void on_watch_message(struct call *call, bool ok)
{
    struct hft_fake *fake = call->fake;
    Etcdserverpb__WatchRequest *request =
        ok ? take_message(call, &etcdserverpb__watch_request__descriptor) : NULL;

    if (request == NULL)
        return;
    pthread_mutex_lock(&fake->lock);
    on_watch_request(call, request);
    pthread_mutex_unlock(&fake->lock);
    etcdserverpb__watch_request__free_unpacked(request, NULL);
    receive(call, on_watch_message);
}

static void begin_watch(struct call *call)
{
    struct hft_fake *fake = call->fake;
    grpc_op op = { .op = GRPC_OP_SEND_INITIAL_METADATA };

    pthread_mutex_lock(&fake->lock);
    fake->watch = call;
    fake->stats.streams++;
    pthread_mutex_unlock(&fake->lock);
    call->opened.fn = ignore;
    start(call, &op, 1, &call->opened);
    receive(call, on_watch_message);
}

static void accept_next(struct hft_fake *fake)
{
    grpc_call_details_init(&fake->details);
    grpc_metadata_array_init(&fake->metadata);
    if (grpc_server_request_call(fake->server, &fake->next_call, &fake->details,
                                 &fake->metadata, fake->cq, fake->cq,
                                 &fake->accepted) != GRPC_CALL_OK)
        abort();
}

static bool is_method(const struct hft_fake *fake, const char *method)
{
    return grpc_slice_str_cmp(fake->details.method, method) == 0;
}

static void begin_unary(struct call *call)
{
    if (is_method(call->fake, "/etcdserverpb.KV/Range"))
        receive(call, on_range);
    else if (is_method(call->fake, "/etcdserverpb.KV/Put"))
        receive(call, on_put);
    else
        answer(call, grpc_empty_slice(), GRPC_STATUS_UNIMPLEMENTED, "not in this fake");
}

static void on_accepted(struct hft_fake *fake, bool ok)
{
    struct call *call;

    if (ok) {
        call = calloc(1, sizeof *call);
        if (call == NULL)
            abort();
        call->fake = fake;
        call->call = fake->next_call;
        call->queue_end = &call->queue;
        watch_for_end(call);
        if (is_method(fake, "/etcdserverpb.Watch/Watch"))
            begin_watch(call);
        else if (!is_refused(call))
            begin_unary(call);
    }
    grpc_call_details_destroy(&fake->details);
    grpc_metadata_array_destroy(&fake->metadata);
    if (ok)
        accept_next(fake);
}

static void on_event(struct hft_fake *fake, const grpc_event *event)
{
    struct tag *tag = event->tag;
    struct call *call = tag->call;

    if (tag == &fake->accepted) {
        on_accepted(fake, event->success != 0);
        return;
    }
    tag->fn(call, event->success != 0);
    if (--call->under_way == 0)
        free_call(call);
}

static bool is_stopping(struct hft_fake *fake)
{
    bool stopping;

    pthread_mutex_lock(&fake->lock);
    stopping = fake->stopping;
    pthread_mutex_unlock(&fake->lock);
    return stopping;
}

static void *serve(void *arg)
{
    struct hft_fake *fake = arg;
    struct tag down = { 0 };
    bool stopping = false;

    for (;;) {
        gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                             gpr_time_from_millis(TURN_MS, GPR_TIMESPAN));
        grpc_event event = grpc_completion_queue_next(fake->cq, deadline, NULL);

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return NULL;
        if (event.type == GRPC_OP_COMPLETE && event.tag == &down)
            grpc_completion_queue_shutdown(fake->cq);
        else if (event.type == GRPC_OP_COMPLETE)
            on_event(fake, &event);
        if (stopping)
            continue;
        flush(fake);
        stopping = is_stopping(fake);
        if (stopping) {
            grpc_server_shutdown_and_notify(fake->server, fake->cq, &down);
            grpc_server_cancel_all_calls(fake->server);
        }
    }
}

/* The tests' side. */

struct hft_fake *hft_fake_new(void)
{
    struct hft_fake *fake = calloc(1, sizeof *fake);
    grpc_server_credentials *credentials;
    grpc_arg reuse = { .type = GRPC_ARG_INTEGER, .key = (char *)GRPC_ARG_ALLOW_REUSEPORT };
    grpc_channel_args args = { .num_args = 1, .args = &reuse };
    int port;

    ck_assert_ptr_nonnull(fake);
    fake->cluster_id = FIRST_CLUSTER;
    ck_assert_int_eq(pthread_mutex_init(&fake->lock, NULL), 0);
    grpc_init();
    fake->cq = grpc_completion_queue_create_for_next(NULL);
    fake->server = grpc_server_create(&args, NULL);
    grpc_server_register_completion_queue(fake->server, fake->cq, NULL);
    credentials = grpc_insecure_server_credentials_create();
    port = grpc_server_add_http2_port(fake->server, "127.0.0.1:0", credentials);
    grpc_server_credentials_release(credentials);
    ck_assert_int_ne(port, 0);
    (void)snprintf(fake->endpoint, sizeof fake->endpoint, "http://127.0.0.1:%d", port);
    grpc_server_start(fake->server);
    accept_next(fake);
    ck_assert_int_eq(pthread_create(&fake->thread, NULL, serve, fake), 0);
    return fake;
}

void hft_fake_free(struct hft_fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->stopping = true;
    pthread_mutex_unlock(&fake->lock);
    (void)pthread_join(fake->thread, NULL);
    grpc_server_destroy(fake->server);
    grpc_completion_queue_destroy(fake->cq);
    grpc_shutdown();
    hft_fake_store_done(&fake->store);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

const char *hft_fake_endpoint(const struct hft_fake *fake)
{
    return fake->endpoint;
}

int64_t hft_fake_change(struct hft_fake *fake, const char *key, const char *value)
{
    int64_t rev;

    pthread_mutex_lock(&fake->lock);
    rev = hft_fake_store_change(&fake->store, key, value);
    pthread_mutex_unlock(&fake->lock);
    return rev;
}

void hft_fake_go_back(struct hft_fake *fake, int64_t revision)
{
    pthread_mutex_lock(&fake->lock);
    hft_fake_store_go_back(&fake->store, revision);
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_set_cluster(struct hft_fake *fake, uint64_t cluster_id)
{
    pthread_mutex_lock(&fake->lock);
    fake->cluster_id = cluster_id;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_be_slow(struct hft_fake *fake, int64_t most_keys)
{
    pthread_mutex_lock(&fake->lock);
    fake->most_keys = most_keys;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_be_stale(struct hft_fake *fake, int64_t revision, unsigned skip, unsigned count)
{
    pthread_mutex_lock(&fake->lock);
    fake->stale_skip = skip;
    fake->stale_rev = revision;
    fake->stale_left = count;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_refuse(struct hft_fake *fake, unsigned count, int code, const char *details)
{
    pthread_mutex_lock(&fake->lock);
    fake->refusals = count;
    fake->refusal = code;
    fake->refusal_details = details;
    fake->stats.calls = 0;
    pthread_mutex_unlock(&fake->lock);
}

struct hft_fake_stats hft_fake_stats(struct hft_fake *fake)
{
    struct hft_fake_stats stats;

    pthread_mutex_lock(&fake->lock);
    stats = fake->stats;
    pthread_mutex_unlock(&fake->lock);
    return stats;
}

void hft_fake_replay(struct hft_fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    fake->replays = true;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_answer_probes(struct hft_fake *fake, bool answer_them)
{
    pthread_mutex_lock(&fake->lock);
    fake->mute = !answer_them;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_confirm(struct hft_fake *fake, bool confirm_them)
{
    pthread_mutex_lock(&fake->lock);
    fake->silent = !confirm_them;
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_tell(struct hft_fake *fake, int64_t first, int64_t last, int64_t header_rev,
                   bool fragment)
{
    pthread_mutex_lock(&fake->lock);
    tell(fake, fake->watch, first, last, header_rev, fragment);
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_send(struct hft_fake *fake, const Etcdserverpb__WatchResponse *message)
{
    pthread_mutex_lock(&fake->lock);
    enqueue(fake->watch, pack(message));
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_send_bytes(struct hft_fake *fake, const void *bytes, size_t len)
{
    pthread_mutex_lock(&fake->lock);
    enqueue(fake->watch, make_outgoing(bytes, len));
    pthread_mutex_unlock(&fake->lock);
}

void hft_fake_end(struct hft_fake *fake, int code, const char *details)
{
    struct outgoing *status = make_outgoing("", 0);

    status->code = code;
    (void)snprintf(status->details, sizeof status->details, "%s", details);
    pthread_mutex_lock(&fake->lock);
    enqueue(fake->watch, status);
    pthread_mutex_unlock(&fake->lock);
}
