#include "etcd/stream.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "etcd/internal.h"

enum { MOST_QUEUED = 256, INBOX = 64 };

/* A message that comes later than this after the one before it belongs to no burst. */
#define BURST_GAP_NS ((uint64_t)250 * 1000)

struct outgoing {
    struct outgoing *next;
    grpc_slice bytes;
};

struct hf_stream {
    struct hf_tag opened; /* SEND_INITIAL_METADATA */
    struct hf_tag headers;
    struct hf_tag received;
    struct hf_tag sent;
    struct hf_tag ended;
    struct hf_tag news; /* something is in the inbox */
    struct hf_auth_waiter waiter;

    struct hf_etcd *etcd;
    struct hf_stream *prev, *next;
    const struct hf_stream_handler *handler; /* NULL: closed by its owner */
    void *arg;
    const char *method;
    enum hf_lane_id lane;
    uint64_t generation;
    uint64_t token_generation;

    grpc_call *call;    /* NULL while waiting for a token */
    unsigned under_way; /* batches */
    bool sending;
    bool over; /* the status has come */

    grpc_metadata_array initial, trailing;
    grpc_byte_buffer *incoming; /* of the batch `received` */
    uint64_t taken_at;          /* of the last message; the queue's thread only */
    /* What came while the loop was busy: filled by the queue's thread, emptied by the loop's.
     */
    pthread_mutex_t inbox_lock;
    grpc_byte_buffer *inbox[INBOX];
    size_t inbox_count;
    bool loop_receives; /* the loop asks for the next message, once it has seen this one */

    grpc_status_code code;
    grpc_slice details;
    struct outgoing *queue, **queue_end;
    size_t queued;
};

#define OWNER(ptr, member)                                                                     \
    ((struct hf_stream *)((char *)(ptr)-offsetof(struct hf_stream, member)))

/* On any thread: the batch is counted already. */
static void start_counted(struct hf_stream *stream, const grpc_op *op, struct hf_tag *tag)
{
    if (!hf_queue_start(&stream->etcd->queue, stream->call, op, 1, tag))
        assert(false); /* only a malformed batch is refused */
}

static void start(struct hf_stream *stream, const grpc_op *op, struct hf_tag *tag)
{
    stream->under_way++;
    start_counted(stream, op, tag);
}

static void drop_queue(struct hf_stream *stream)
{
    while (stream->queue != NULL) {
        struct outgoing *first = stream->queue;

        stream->queue = first->next;
        grpc_slice_unref(first->bytes);
        free(first);
    }
    stream->queue_end = &stream->queue;
    stream->queued = 0;
}

static void release(struct hf_stream *stream)
{
    struct hf_etcd *etcd = stream->etcd;

    hf_auth_cancel(etcd, &stream->waiter);
    drop_queue(stream);
    if (stream->call != NULL) {
        grpc_metadata_array_destroy(&stream->initial);
        grpc_metadata_array_destroy(&stream->trailing);
        grpc_slice_unref(stream->details);
        grpc_call_unref(stream->call);
    }
    if (stream->prev != NULL)
        stream->prev->next = stream->next;
    else
        etcd->streams = stream->next;
    if (stream->next != NULL)
        stream->next->prev = stream->prev;
    (void)pthread_mutex_destroy(&stream->inbox_lock);
    free(stream);
    hf_etcd_on_released(etcd);
}

/* The last batch is back: now, and only now, may the memory go. */
static void end(struct hf_stream *stream)
{
    const struct hf_stream_handler *handler = stream->handler;
    void *arg = stream->arg;
    struct hf_status status;
    char message[256];

    hf_slice_text(stream->details, message, sizeof message);
    status = hf_status_of((int)stream->code, message);
    if (handler != NULL) {
        if (status.log_in)
            hf_auth_refused(stream->etcd, stream->token_generation);
        else
            hf_lane_give_up(stream->etcd, stream->lane, stream->generation);
    }
    release(stream);
    if (handler != NULL)
        handler->on_end(status.err != HF_OK ? status.err : HF_EAGAIN, message, arg);
}

static void on_batch(struct hf_stream *stream)
{
    if (--stream->under_way == 0 && stream->over)
        end(stream);
}

/* On any thread. */
static void receive_counted(struct hf_stream *stream)
{
    grpc_op op = { .op = GRPC_OP_RECV_MESSAGE,
                   .data.recv_message.recv_message = &stream->incoming };

    start_counted(stream, &op, &stream->received);
}

static void receive(struct hf_stream *stream)
{
    stream->under_way++;
    receive_counted(stream);
}

static bool in_burst(struct hf_stream *stream)
{
    uint64_t now = uv_hrtime();
    bool soon = now - stream->taken_at < BURST_GAP_NS;

    stream->taken_at = now;
    return soon;
}

/* On the queue's thread. etcd sends each change as a message of its own, and a busy store sends
 * many at once: they are taken in one after the other here, so that the loop wakes up once
 * for all of them. The end of the stream, or a full inbox, is the loop's business.
 *
 * To ask for a message also means a write, of the room that the last one has left. It must not
 * come between a single event and what the program does about it: the loop would wait for this
 * thread, and its next request for the connection. There the loop asks, afterwards. */
static bool take_in(struct hf_tag *tag, bool ok)
{
    struct hf_stream *stream = OWNER(tag, received);
    bool burst;
    size_t before;

    if (!ok || stream->incoming == NULL)
        return false;
    burst = in_burst(stream);
    pthread_mutex_lock(&stream->inbox_lock);
    before = stream->inbox_count;
    if (before < INBOX) {
        stream->inbox[stream->inbox_count++] = stream->incoming;
        stream->incoming = NULL;
        stream->loop_receives = !burst && before == 0;
    }
    pthread_mutex_unlock(&stream->inbox_lock);
    if (before == INBOX)
        return false;
    if (before == 0)
        hf_queue_post(&stream->etcd->queue, &stream->news, true);
    if (burst || before > 0)
        receive_counted(stream);
    return true;
}

static void send_next(struct hf_stream *stream)
{
    struct outgoing *first = stream->queue;
    grpc_byte_buffer *payload;
    grpc_op op = { .op = GRPC_OP_SEND_MESSAGE };

    if (stream->call == NULL || stream->sending || stream->over || first == NULL)
        return;
    stream->queue = first->next;
    if (stream->queue == NULL)
        stream->queue_end = &stream->queue;
    stream->queued--;
    payload = grpc_raw_byte_buffer_create(&first->bytes, 1);
    op.data.send_message.send_message = payload;
    stream->sending = true;
    start(stream, &op, &stream->sent);
    grpc_byte_buffer_destroy(payload);
    grpc_slice_unref(first->bytes);
    free(first);
}

static void on_opened(struct hf_tag *tag, bool ok)
{
    (void)ok; /* a failure comes with the status, too */
    on_batch(OWNER(tag, opened));
}

static void on_headers(struct hf_tag *tag, bool ok)
{
    (void)ok;
    on_batch(OWNER(tag, headers));
}

static void on_sent(struct hf_tag *tag, bool ok)
{
    struct hf_stream *stream = OWNER(tag, sent);

    stream->sending = false;
    if (ok)
        send_next(stream);
    on_batch(stream);
}

/* Tells the owner, unless it closed the stream, and destroys the buffer. */
static void deliver(struct hf_stream *stream, grpc_byte_buffer *buffer)
{
    struct hf_etcd *etcd = stream->etcd;
    grpc_slice whole;

    if (!hf_slice_take(buffer, &whole))
        return; /* cannot be decompressed: as good as silence, and the watchdogs see to it */
    if (stream->handler != NULL)
        stream->handler->on_message((struct hf_bytes){ .data = GRPC_SLICE_START_PTR(whole),
                                                       .len = GRPC_SLICE_LENGTH(whole) },
                                    stream->arg);
    hf_etcd_drop_message(etcd, whole);
}

/* True: the next message has to be asked for. */
static bool empty_inbox(struct hf_stream *stream)
{
    grpc_byte_buffer *taken[INBOX];
    bool loop_receives;
    size_t count;

    pthread_mutex_lock(&stream->inbox_lock);
    count = stream->inbox_count;
    for (size_t i = 0; i < count; i++)
        taken[i] = stream->inbox[i];
    stream->inbox_count = 0;
    loop_receives = stream->loop_receives;
    stream->loop_receives = false;
    pthread_mutex_unlock(&stream->inbox_lock);
    for (size_t i = 0; i < count; i++)
        deliver(stream, taken[i]);
    return loop_receives;
}

/* Whatever ends the stream was posted later and is run later: it is still there. */
static void on_news(struct hf_tag *tag, bool ok)
{
    struct hf_stream *stream = OWNER(tag, news);

    (void)ok;
    if (empty_inbox(stream))
        receive_counted(stream);
}

static void on_received(struct hf_tag *tag, bool ok)
{
    struct hf_stream *stream = OWNER(tag, received);
    grpc_byte_buffer *buffer = stream->incoming;

    stream->incoming = NULL;
    (void)empty_inbox(stream); /* what came before this one */
    if (buffer != NULL) {
        deliver(stream, buffer);
        if (ok && !stream->over)
            receive(stream);
    }
    on_batch(stream);
}

static void on_ended(struct hf_tag *tag, bool ok)
{
    struct hf_stream *stream = OWNER(tag, ended);

    (void)ok;
    stream->over = true;
    on_batch(stream);
}

/* Four batches, because etcd sends its headers only with the first answer: whatever is batched
 * with them would wait for it. */
static void open_call(struct hf_stream *stream, const char *token)
{
    struct hf_etcd *etcd = stream->etcd;
    grpc_channel *channel = hf_lane_get(etcd, stream->lane, &stream->generation);
    struct hf_metadata metadata = hf_metadata_make(token);
    grpc_op send_headers = { .op = GRPC_OP_SEND_INITIAL_METADATA,
                             .data.send_initial_metadata = { .count = metadata.count,
                                                             .metadata = metadata.entries } };
    grpc_op receive_headers = { .op = GRPC_OP_RECV_INITIAL_METADATA,
                                .data.recv_initial_metadata.recv_initial_metadata =
                                    &stream->initial };
    grpc_op receive_status = { .op = GRPC_OP_RECV_STATUS_ON_CLIENT,
                               .data.recv_status_on_client = {
                                   .trailing_metadata = &stream->trailing,
                                   .status = &stream->code,
                                   .status_details = &stream->details } };

    stream->call =
        grpc_channel_create_call(channel, NULL, GRPC_PROPAGATE_DEFAULTS, etcd->queue.cq,
                                 grpc_slice_from_static_string(stream->method), NULL,
                                 gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
    grpc_metadata_array_init(&stream->initial);
    grpc_metadata_array_init(&stream->trailing);
    stream->details = grpc_empty_slice();
    start(stream, &send_headers, &stream->opened);
    start(stream, &receive_status, &stream->ended);
    start(stream, &receive_headers, &stream->headers);
    receive(stream);
    hf_metadata_done(&metadata);
    send_next(stream);
}

static void on_token(struct hf_auth_waiter *waiter, int err, const char *message)
{
    struct hf_stream *stream = OWNER(waiter, waiter);
    const struct hf_stream_handler *handler = stream->handler;
    const char *token = NULL;
    void *arg = stream->arg;

    if (err == HF_OK && hf_auth_ready(stream->etcd, &token, &stream->token_generation)) {
        open_call(stream, token);
        return;
    }
    release(stream);
    handler->on_end(err != HF_OK ? err : HF_EAGAIN, message, arg);
}

int hf_stream_open(struct hf_etcd *etcd, enum hf_lane_id lane, const char *method,
                   const struct hf_stream_handler *handler, void *arg,
                   struct hf_stream **ret_stream)
{
    struct hf_stream *stream = hf_calloc(1, sizeof *stream);
    const char *token = NULL;

    if (stream == NULL)
        return HF_ENOMEM;
    *stream = (struct hf_stream){
        .opened.fn = on_opened,
        .headers.fn = on_headers,
        .received = { .fn = on_received, .at_once = take_in },
        .news.fn = on_news,
        .sent.fn = on_sent,
        .ended.fn = on_ended,
        .waiter.fn = on_token,
        .etcd = etcd,
        .next = etcd->streams,
        .handler = handler,
        .arg = arg,
        .method = method,
        .lane = lane,
        .queue_end = &stream->queue,
    };
    (void)pthread_mutex_init(&stream->inbox_lock, NULL);
    if (stream->next != NULL)
        stream->next->prev = stream;
    etcd->streams = stream;
    if (hf_auth_ready(etcd, &token, &stream->token_generation))
        open_call(stream, token);
    else
        hf_auth_wait(etcd, &stream->waiter);
    *ret_stream = stream;
    return HF_OK;
}

int hf_stream_send(struct hf_stream *stream, const ProtobufCMessage *message)
{
    struct outgoing *last;

    if (stream->queued >= MOST_QUEUED)
        return HF_ELIMIT;
    last = hf_calloc(1, sizeof *last);
    if (last == NULL)
        return HF_ENOMEM;
    last->bytes = hf_slice_pack(message);
    *stream->queue_end = last;
    stream->queue_end = &last->next;
    stream->queued++;
    send_next(stream);
    return HF_OK;
}

void hf_stream_close(struct hf_stream *stream)
{
    if (stream == NULL)
        return;
    stream->handler = NULL;
    drop_queue(stream);
    if (stream->call == NULL)
        release(stream);
    else
        (void)grpc_call_cancel(stream->call, NULL);
}

void hf_stream_give_up(struct hf_stream *stream)
{
    if (stream == NULL)
        return;
    if (stream->call != NULL)
        hf_lane_give_up(stream->etcd, stream->lane, stream->generation);
    hf_stream_close(stream);
}

void hf_stream_refuse_token(struct hf_stream *stream)
{
    hf_auth_refused(stream->etcd, stream->token_generation);
}
