#include "etcd/watch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/call.h"
#include "etcd/decode.h"
#include "etcd/internal.h"
#include "etcd/stream.h"

/* The time for an answer is counted in steps. One that ends late does not count: the loop was
 * held up, or the machine stood still, and the answer may be waiting with everything else. A
 * loop that is always late must not wait for ever, so there is a limit. */
enum { STEPS = 6, MOST_STEPS = 4 * STEPS };

/* A message of a batch that is not complete yet. */
struct fragment {
    struct fragment *next;
    size_t len;
    char bytes[];
};

struct hf_watch {
    struct hf_etcd *etcd;
    struct hf_watch_config cfg; /* without its ranges */
    struct hf_stream *stream;
    struct hf_timer watchdog;
    hf_ms heard_at;        /* 0: nothing yet */
    bool probing;          /* an answer is due */
    unsigned silent_steps; /* that count, since it is */
    unsigned steps;        /* all of them */
    size_t live;           /* ranges that etcd has confirmed */
    struct fragment *fragments, **fragments_end;
    size_t fragment_bytes;
    unsigned depth; /* handlers that are running */
    bool closed;
};

static void drop_fragments(struct hf_watch *watch)
{
    while (watch->fragments != NULL) {
        struct fragment *first = watch->fragments;

        watch->fragments = first->next;
        free(first);
    }
    watch->fragments_end = &watch->fragments;
    watch->fragment_bytes = 0;
}

static void leave(struct hf_watch *watch)
{
    if (--watch->depth > 0 || !watch->closed)
        return;
    drop_fragments(watch);
    free(watch);
}

static void stop(struct hf_watch *watch)
{
    hf_timer_stop(&watch->etcd->timers, &watch->watchdog);
    hf_stream_close(watch->stream);
    watch->stream = NULL;
    watch->closed = true;
}

void hf_watch_close(struct hf_watch *watch)
{
    if (watch == NULL)
        return;
    watch->depth++;
    stop(watch);
    leave(watch);
}

/* Tells the owner and forgets everything. */
static void end(struct hf_watch *watch, int err, const char *message)
{
    watch->depth++;
    stop(watch);
    watch->cfg.handler->on_end(err, message, watch->cfg.arg);
    leave(watch);
}

static void set_watchdog(struct hf_watch *watch, hf_ms at)
{
    hf_timer_start(&watch->etcd->timers, &watch->watchdog, at);
}

static hf_ms step_of(const struct hf_watch *watch)
{
    return (watch->cfg.probe_timeout + STEPS - 1) / STEPS;
}

static void probe(struct hf_watch *watch, hf_ms now)
{
    Etcdserverpb__WatchProgressRequest progress = ETCDSERVERPB__WATCH_PROGRESS_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;

    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
    request.progress_request = &progress;
    watch->probing = true;
    watch->silent_steps = watch->steps = 0;
    /* One that cannot be sent is one that is not answered. */
    (void)!hf_stream_send(watch->stream, &request.base);
    set_watchdog(watch, now + step_of(watch));
}

/* One more step without an answer. */
static void on_silence(struct hf_watch *watch, hf_ms now)
{
    watch->silent_steps += now - watch->watchdog.at < step_of(watch) / 2 + 1;
    if (watch->silent_steps < STEPS && ++watch->steps < MOST_STEPS) {
        set_watchdog(watch, now + step_of(watch));
        return;
    }
    hf_stream_give_up(watch->stream);
    watch->stream = NULL;
    end(watch, HF_ETIMEOUT, "the watch has gone silent");
}

static void on_watchdog(struct hf_timer *timer)
{
    struct hf_watch *watch =
        (struct hf_watch *)((char *)timer - offsetof(struct hf_watch, watchdog));
    hf_ms now = hf_etcd_now(watch->etcd);

    if (watch->probing)
        on_silence(watch, now);
    else if (now - watch->heard_at >= watch->cfg.probe_every)
        probe(watch, now);
    else
        set_watchdog(watch, watch->heard_at + watch->cfg.probe_every);
}

static void heard(struct hf_watch *watch)
{
    watch->heard_at = hf_etcd_now(watch->etcd);
    if (!watch->probing || watch->live < watch->cfg.range_count)
        return;
    watch->probing = false;
    set_watchdog(watch, watch->heard_at + watch->cfg.probe_every);
}

static bool keep_fragment(struct hf_watch *watch, struct hf_bytes message)
{
    struct fragment *last;

    if (watch->fragment_bytes + message.len > watch->cfg.pending_bytes)
        return false;
    last = malloc(sizeof *last + message.len);
    if (last == NULL)
        return false;
    last->next = NULL;
    last->len = message.len;
    memcpy(last->bytes, message.data, message.len);
    *watch->fragments_end = last;
    watch->fragments_end = &last->next;
    watch->fragment_bytes += message.len;
    return true;
}

static void tell(struct hf_watch *watch, const Etcdserverpb__WatchResponse *message)
{
    size_t range = (size_t)message->watch_id - 1;

    if (range < watch->cfg.range_count && message->n_events > 0)
        watch->cfg.handler->on_events(range, message, message->fragment == 0, watch->cfg.arg);
}

/* The messages of a batch that was put together, in order. */
static void tell_fragments(struct hf_watch *watch)
{
    for (struct fragment *f = watch->fragments; f != NULL && !watch->closed; f = f->next) {
        struct hf_etcd_result ignored;
        Etcdserverpb__WatchResponse *message =
            hf_call_unpack(watch->etcd, &etcdserverpb__watch_response__descriptor,
                           (struct hf_bytes){ .data = f->bytes, .len = f->len }, &ignored);

        if (message == NULL) {
            end(watch, HF_ENOMEM, hf_err_text(HF_ENOMEM));
            return;
        }
        tell(watch, message);
    }
    if (!watch->closed)
        drop_fragments(watch);
}

static void on_cancelled(struct hf_watch *watch, const Etcdserverpb__WatchResponse *message)
{
    struct hf_status status = hf_status_of_cancel(message->cancel_reason);

    if (message->compact_revision > 0) {
        end(watch, HF_ECOMPACT, hf_err_text(HF_ECOMPACT));
        return;
    }
    if (status.log_in)
        hf_stream_refuse_token(watch->stream);
    if (status.rotate) {
        hf_stream_give_up(watch->stream);
        watch->stream = NULL;
    }
    end(watch, status.err,
        message->cancel_reason[0] != '\0' ? message->cancel_reason : "etcd ended the watch");
}

/* `canceled` is looked at before `created`: a watch that is refused has both. */
static void take(struct hf_watch *watch, struct hf_bytes bytes,
                 const Etcdserverpb__WatchResponse *message)
{
    if (message->canceled) {
        on_cancelled(watch, message);
        return;
    }
    if (message->created)
        watch->live++;
    heard(watch);
    if (message->created && watch->live == watch->cfg.range_count)
        watch->cfg.handler->on_live(watch->cfg.arg);
    if (watch->closed || message->n_events == 0)
        return;
    if (!message->fragment && watch->fragments == NULL)
        tell(watch, message);
    else if (!keep_fragment(watch, bytes))
        end(watch, HF_ELIMIT, "a change is larger than what may be put together");
    else if (!message->fragment)
        tell_fragments(watch);
}

static void on_message(struct hf_bytes bytes, void *arg)
{
    struct hf_watch *watch = arg;
    struct hf_etcd_result ignored;
    Etcdserverpb__WatchResponse *message =
        hf_call_unpack(watch->etcd, &etcdserverpb__watch_response__descriptor, bytes, &ignored);

    watch->depth++;
    if (message == NULL)
        end(watch, HF_ECORRUPT, "a message that is not what the protocol promises");
    else
        take(watch, bytes, message);
    /* Counted above, so nothing before this line has freed it, whatever the analyser thinks. */
    leave(watch); /* NOLINT(clang-analyzer-unix.Malloc) */
}

static void on_end(int err, const char *message, void *arg)
{
    struct hf_watch *watch = arg;

    watch->stream = NULL;
    end(watch, err, message);
}

static const struct hf_stream_handler WATCH_STREAM = { .on_message = on_message,
                                                       .on_end = on_end };

/* Ids of our own choice (the index, from 1) save the matching of answers to requests. */
static int create(struct hf_watch *watch, size_t index, const struct hf_watch_range *range)
{
    Etcdserverpb__WatchCreateRequest create = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
    Etcdserverpb__WatchRequest request = ETCDSERVERPB__WATCH_REQUEST__INIT;

    create.key = range->bounds->key;
    create.range_end = range->bounds->end;
    create.start_revision = range->start_rev;
    create.watch_id = (int64_t)index + 1;
    create.fragment = 1;
    request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
    request.create_request = &create;
    return hf_stream_send(watch->stream, &request.base);
}

int hf_watch_open(struct hf_etcd *etcd, const struct hf_watch_config *cfg,
                  struct hf_watch **ret_watch)
{
    struct hf_watch *watch = hf_calloc(1, sizeof *watch);
    int err;

    if (watch == NULL)
        return HF_ENOMEM;
    watch->etcd = etcd;
    watch->cfg = *cfg;
    watch->cfg.ranges = NULL;
    watch->watchdog.fn = on_watchdog;
    watch->fragments_end = &watch->fragments;
    watch->probing = true; /* the confirmations are due */
    set_watchdog(watch, hf_etcd_now(etcd) + step_of(watch));
    err = hf_stream_open(etcd, HF_LANE_WATCH, "/etcdserverpb.Watch/Watch", &WATCH_STREAM, watch,
                         &watch->stream);
    for (size_t i = 0; err == HF_OK && i < cfg->range_count; i++)
        err = create(watch, i, &cfg->ranges[i]);
    if (err != HF_OK) {
        hf_watch_close(watch);
        return err;
    }
    *ret_watch = watch;
    return HF_OK;
}

hf_ms hf_watch_get_heard_at(const struct hf_watch *watch)
{
    return watch->heard_at;
}
