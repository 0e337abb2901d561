/* standin.c - the functions of lib/etcd that its mirror stands on, over the simulated network.
 *
 * They do what their headers promise; watch.c's probes are here once more, because the real
 * ones speak to a gRPC stream. */
#include <stdlib.h>
#include <string.h>

#include "etcd/call.h"
#include "etcd/watch.h"
#include "sim/client.h"

enum { PAGE_MS = 30000, OWN_STALL_MS = 1000 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static struct hfs_client *client_of(struct hf_etcd *etcd)
{
    return OWNER(etcd, struct hfs_client, etcd);
}

/* etcd/timer.h */

static void place(struct hfs_client *client, size_t at, struct hf_timer *timer)
{
    client->timers[at] = timer;
    timer->held_by = &client->timers[at];
}

void hf_timer_start(struct hf_timers *timers, struct hf_timer *timer, hf_ms at)
{
    struct hfs_client *client = client_of(OWNER(timers, struct hf_etcd, timers));

    timer->at = at;
    if (!hf_timer_is_armed(timer)) {
        hfs_grow(&client->timers, &client->timer_cap, client->timer_count + 1, sizeof(void *));
        client->timers[client->timer_count++] = timer;
        for (size_t i = 0; i < client->timer_count; i++) /* all may have moved */
            place(client, i, client->timers[i]);
    }
    hfs_client_set_tick(client);
}

void hf_timer_stop(struct hf_timers *timers, struct hf_timer *timer)
{
    struct hfs_client *client = client_of(OWNER(timers, struct hf_etcd, timers));
    struct hf_timer *last;

    if (!hf_timer_is_armed(timer))
        return;
    last = client->timers[--client->timer_count];
    place(client, (size_t)(timer->held_by - client->timers), last);
    timer->held_by = NULL;
}

/* etcd/internal.h */

uint64_t hf_etcd_random(struct hf_etcd *etcd, uint64_t below)
{
    return hfs_random_below(&client_of(etcd)->random, below);
}

hf_ms hf_etcd_backoff(struct hf_etcd *etcd, hf_ms base, hf_ms cap, unsigned failures)
{
    hf_ms most = base;

    while (failures-- > 0 && most < cap)
        most *= 2;
    return (hf_ms)hf_etcd_random(etcd, (uint64_t)(most < cap ? most : cap) + 1);
}

/* etcd/range.h: a prefix is an end that is not empty; nobody else looks into it. */

int hf_range_bounds_init(struct hf_range_bounds *bounds, const struct hf_key_range *range)
{
    *bounds = (struct hf_range_bounds){
        .key = { .data = hfs_alloc(range->key.len + 1), .len = range->key.len },
        .end = { .len = range->prefix },
    };
    memcpy(bounds->key.data, range->key.data, range->key.len);
    return HF_OK;
}

void hf_range_bounds_done(struct hf_range_bounds *bounds)
{
    free(bounds->key.data);
}

/* etcd/kv.h */

_Static_assert(sizeof(struct hf_kv) == sizeof(struct hfs_kv) &&
                   offsetof(struct hf_kv, lease) == offsetof(struct hfs_kv, lease) &&
                   offsetof(struct hf_kv, mod_rev) == offsetof(struct hfs_kv, mod_rev),
               "both are the same five members");

static void decode_range(struct hf_call *call, struct hfs_outcome *outcome)
{
    const struct hfs_call_spec *spec = hfs_call_get_spec(call);
    struct hf_range_result result = { .result = outcome->result };

    if (result.result.err == HF_OK && outcome->answer != NULL) {
        const struct hfs_op_answer *op = &outcome->answer->ops[0];

        result.kvs = (const struct hf_kv *)(const void *)op->kvs;
        result.count = op->count;
        result.total = op->total;
        result.more = op->more;
    }
    ((hf_range_fn)spec->fn)(&result, spec->arg);
}

static struct hf_call *start_range(struct hf_etcd *etcd, const struct hf_range_request *request,
                                   enum hf_lane_id lane, hf_range_fn fn, void *arg)
{
    struct hfs_request message = { .kind = HFS_RANGE };

    message.op.range = (struct hfs_range_request){
        .range = { .key = request->range.key, .prefix = request->range.prefix },
        .revision = request->revision,
        .limit = request->limit,
        .keys_only = request->keys_only,
        .count_only = request->count_only,
    };
    return hfs_call_start(client_of(etcd), &message,
                          &(struct hfs_call_spec){ .lane = lane,
                                                   .repeatable = true,
                                                   .timeout = request->timeout,
                                                   .decode = decode_range,
                                                   .fn = (void (*)(void))fn,
                                                   .arg = arg });
}

int hf_etcd_range(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                  void *arg, struct hf_call **ret_call)
{
    *ret_call = start_range(etcd, request, HF_LANE_UNARY, fn, arg);
    return HF_OK;
}

/* One page is enough for a fleet that fits into a simulator; but what it holds may be told in
 * several, with time between them, as it is on a slow line. */
struct hf_list {
    struct hfs_client *client;
    hf_rev revision;
    hf_range_fn fn;
    void *arg;
    struct hf_call *call;        /* NULL: it was answered */
    struct hf_range_result told; /* of what is told bit by bit */
    struct hf_kv *kvs;           /* with their texts behind them; NULL: all is told at once */
    size_t next, count;
    struct hfs_timer timer;
};

static void free_list(struct hf_list *list)
{
    hfs_timer_stop(list->client->net->world, &list->timer);
    free(list->kvs);
    free(list);
}

static struct hf_bytes keep_bytes(char **at, struct hf_bytes bytes)
{
    struct hf_bytes copy = { *at, bytes.len };

    if (bytes.len > 0)
        memcpy(*at, bytes.data, bytes.len);
    *at += bytes.len;
    return copy;
}

static void copy_page(struct hf_list *list, const struct hf_range_result *page)
{
    size_t size = page->count * sizeof *list->kvs;
    char *at;

    for (size_t i = 0; i < page->count; i++)
        size += page->kvs[i].key.len + page->kvs[i].value.len;
    list->kvs = hfs_alloc(size + 1);
    at = (char *)(list->kvs + page->count);
    for (size_t i = 0; i < page->count; i++) {
        list->kvs[i] = page->kvs[i];
        list->kvs[i].key = keep_bytes(&at, page->kvs[i].key);
        list->kvs[i].value = keep_bytes(&at, page->kvs[i].value);
    }
    list->told = *page;
    list->count = page->count;
}

static void turn_page(struct hf_list *list)
{
    struct hfs_random *random = &list->client->net->world->random;

    hfs_timer_start(list->client->net->world, &list->timer,
                    list->client->net->world->now + 1 +
                        (hf_ms)hfs_random_below(random, (uint64_t)list->client->net->page_ms));
}

static void on_turned(struct hfs_timer *timer)
{
    enum { PAGE_KEYS = 4 };
    struct hf_list *list = OWNER(timer, struct hf_list, timer);
    size_t left = list->count - list->next;
    struct hf_range_result told = list->told;
    bool was = hfs_memory_set(true);

    told.kvs = list->kvs + list->next;
    told.count = left < PAGE_KEYS ? left : PAGE_KEYS;
    told.more = told.count < left;
    list->next += told.count;
    if (told.more) {
        turn_page(list);
        list->fn(&told, list->arg); /* which may cancel it */
    } else {
        struct hf_kv *kvs = list->kvs;

        list->kvs = NULL;
        told.kvs = kvs + (list->next - told.count);
        hf_range_fn fn = list->fn;
        void *arg = list->arg;

        free_list(list);
        fn(&told, arg);
        free(kvs);
    }
    (void)hfs_memory_set(was);
}

static void on_page(const struct hf_range_result *page, void *arg)
{
    struct hf_list *list = arg;
    struct hf_range_result told = *page;
    hf_range_fn fn = list->fn;
    void *fn_arg = list->arg;

    list->call = NULL;
    if (list->revision != 0)
        told.result.header.revision = list->revision;
    if (list->client->net->page_ms > 0 && page->result.err == HF_OK && page->count > 0) {
        copy_page(list, &told);
        turn_page(list);
        return;
    }
    free_list(list);
    fn(&told, fn_arg);
}

int hf_etcd_list(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                 void *arg, struct hf_list **ret_list)
{
    struct hf_range_request all = *request;
    struct hf_list *list = hfs_alloc(sizeof *list);

    *list =
        (struct hf_list){ .client = client_of(etcd),
                          .revision = request->revision,
                          .fn = fn,
                          .arg = arg,
                          .timer = { .fn = on_turned, .process = client_of(etcd)->process } };
    all.limit = 0;
    if (all.timeout == 0)
        all.timeout = PAGE_MS;
    list->call = start_range(etcd, &all, HF_LANE_BULK, on_page, list);
    *ret_list = list;
    return HF_OK;
}

void hf_list_cancel(struct hf_list *list)
{
    if (list->call != NULL)
        hf_call_cancel(list->call);
    free_list(list);
}

/* etcd/watch.h */

struct hf_watch {
    struct hfs_client *client;
    struct hf_watch_config cfg; /* without its ranges */
    struct hfs_stream *stream;
    uint64_t generation;
    struct hf_timer watchdog;
    hf_ms heard_at;
    bool probing;
    bool whole; /* it follows prefixes, not one key */
    size_t live;
    unsigned depth; /* handlers that are running */
    bool closed;
};

static void leave(struct hf_watch *watch)
{
    if (--watch->depth == 0 && watch->closed)
        free(watch);
}

static void stop(struct hf_watch *watch)
{
    hf_timer_stop(&watch->client->etcd.timers, &watch->watchdog);
    hfs_stream_close(watch->stream);
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

static void end(struct hf_watch *watch, int err, const char *message)
{
    watch->depth++;
    stop(watch);
    watch->cfg.handler->on_end(err, message, watch->cfg.arg);
    leave(watch);
}

static void set_watchdog(struct hf_watch *watch, hf_ms at)
{
    hf_timer_start(&watch->client->etcd.timers, &watch->watchdog, at);
}

static void on_watchdog(struct hf_timer *timer)
{
    struct hf_watch *watch = OWNER(timer, struct hf_watch, watchdog);
    hf_ms now = hfs_process_now(watch->client->process);

    if (watch->probing && now - timer->at < OWN_STALL_MS) {
        hfs_client_give_up(watch->client, HF_LANE_WATCH, watch->generation);
        end(watch, HF_ETIMEOUT, "the watch has gone silent");
    } else if (watch->probing || now - watch->heard_at >= watch->cfg.probe_every) {
        watch->probing = true;
        if (!watch->client->dead)
            hfs_stream_ask(watch->stream);
        set_watchdog(watch, now + watch->cfg.probe_timeout);
    } else {
        set_watchdog(watch, watch->heard_at + watch->cfg.probe_every);
    }
}

static void heard(struct hf_watch *watch)
{
    watch->heard_at = hfs_process_now(watch->client->process);
    if (!watch->probing || watch->live < watch->cfg.range_count)
        return;
    watch->probing = false;
    set_watchdog(watch, watch->heard_at + watch->cfg.probe_every);
}

static void on_created(size_t range, void *arg)
{
    struct hf_watch *watch = arg;

    (void)range;
    watch->depth++;
    watch->live++;
    heard(watch);
    if (watch->live == watch->cfg.range_count)
        watch->cfg.handler->on_live(watch->cfg.arg);
    leave(watch);
}

static void note_told(struct hf_watch *watch, hf_rev revision)
{
    struct hfs_process *process = watch->client->process;

    if (watch->whole && revision > process->told_rev)
        process->told_rev = revision;
}

static void tell(struct hf_watch *watch, size_t range, const struct hfs_batch *batch)
{
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    Etcdserverpb__WatchResponse message = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Etcdserverpb__Event *events = hfs_alloc(batch->count * sizeof *events);
    Etcdserverpb__Event **list = hfs_alloc(batch->count * sizeof(void *));
    Etcdserverpb__KeyValue *kvs = hfs_alloc(batch->count * sizeof *kvs);

    for (size_t i = 0; i < batch->count; i++) {
        const struct hfs_kv *kv = &batch->events[i].kv;

        kvs[i] = (Etcdserverpb__KeyValue){
            .key = { .data = (uint8_t *)kv->key.data, .len = kv->key.len },
            .value = { .data = (uint8_t *)kv->value.data, .len = kv->value.len },
            .create_revision = kv->create_rev,
            .mod_revision = kv->mod_rev,
            .version = kv->version,
            .lease = kv->lease,
        };
        events[i].type = batch->events[i].deleted ? ETCDSERVERPB__EVENT__EVENT_TYPE__DELETE
                                                  : ETCDSERVERPB__EVENT__EVENT_TYPE__PUT;
        events[i].kv = &kvs[i];
        list[i] = &events[i];
    }
    header.cluster_id = batch->header.cluster_id;
    header.member_id = batch->header.member_id;
    header.revision = batch->header.revision;
    header.raft_term = batch->header.raft_term;
    message.header = &header;
    message.n_events = batch->count;
    message.events = list;
    note_told(watch, kvs[batch->count - 1].mod_revision);
    watch->cfg.handler->on_events(range, &message, true, watch->cfg.arg);
    free(kvs);
    free(list);
    free(events);
}

static void on_batch(size_t range, const struct hfs_batch *batch, void *arg)
{
    struct hf_watch *watch = arg;

    watch->depth++;
    heard(watch);
    if (batch->count > 0)
        tell(watch, range, batch);
    leave(watch);
}

static void on_end(int err, void *arg)
{
    struct hf_watch *watch = arg;

    watch->stream = NULL; /* it is gone already */
    if (err != HF_ECOMPACT)
        hfs_client_give_up(watch->client, HF_LANE_WATCH, watch->generation);
    end(watch, err, err == HF_ECOMPACT ? hf_err_text(err) : "etcd ended the watch");
}

static const struct hfs_stream_handler STREAM = { .on_created = on_created,
                                                  .on_batch = on_batch,
                                                  .on_end = on_end };

int hf_watch_open(struct hf_etcd *etcd, const struct hf_watch_config *cfg,
                  struct hf_watch **ret_watch)
{
    struct hfs_client *client = client_of(etcd);
    struct hf_watch *watch = hfs_alloc(sizeof *watch);
    unsigned member;

    watch->client = client;
    watch->cfg = *cfg;
    watch->cfg.ranges = NULL;
    watch->whole = cfg->range_count > 0 && cfg->ranges[0].bounds->end.len > 0;
    watch->watchdog.fn = on_watchdog;
    watch->probing = true; /* the confirmations are due */
    set_watchdog(watch, hfs_process_now(client->process) + cfg->probe_timeout);
    member = hfs_client_endpoint(client, HF_LANE_WATCH, &watch->generation);
    watch->stream = hfs_stream_open(client->net, client->process, member, &STREAM, watch);
    for (size_t i = 0; i < cfg->range_count && !client->dead; i++) {
        const struct hf_range_bounds *bounds = cfg->ranges[i].bounds;

        hfs_stream_watch(
            watch->stream,
            &(struct hfs_range){ .key = { .data = bounds->key.data, .len = bounds->key.len },
                                 .prefix = bounds->end.len > 0 },
            cfg->ranges[i].start_rev + (client_of(etcd)->net->skips ? 1 : 0));
    }
    *ret_watch = watch;
    return HF_OK;
}

hf_ms hf_watch_get_heard_at(const struct hf_watch *watch)
{
    return watch->heard_at;
}
