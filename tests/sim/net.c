#include "sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "etcd/kv.h"
#include "sim/aim.h"

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static bool is_reached(const struct hfs_process *process, unsigned member)
{
    return process->paths[member] != HFS_PATH_CUT;
}

static bool answers_come(const struct hfs_process *process, unsigned member)
{
    return process->paths[member] == HFS_PATH_OPEN;
}

static hf_ms draw_delay(struct hfs_net *net)
{
    struct hfs_random *random = &net->world->random;
    hf_ms most = net->faults.delay_max;

    if (hfs_random_percent(random, net->faults.slow_percent))
        most = net->faults.slow_max;
    return 1 + (most > 1 ? (hf_ms)hfs_random_below(random, (uint64_t)most) : 0);
}

/* Of an answer, or of what a watch tells. */
static hf_ms draw_way_back(struct hfs_net *net)
{
    hf_ms delay = draw_delay(net), most = net->faults.answer_max;

    return most > 0 ? delay + (hf_ms)hfs_random_below(&net->world->random, (uint64_t)most)
                    : delay;
}

static bool draw_loss(struct hfs_net *net)
{
    return hfs_random_percent(&net->world->random, net->faults.lose_percent);
}

/* The etcd. */

static void pump(struct hfs_net *net);
static void wake_late(struct hfs_net *net, hfs_rev since);
static void make_way(struct hfs_net *net, unsigned member, const struct hfs_request *request);

static void set_clock(struct hfs_net *net)
{
    hf_ms next = hfs_etcd_next(net->etcd);

    if (next == HFS_NEVER)
        hfs_timer_stop(net->world, &net->clock);
    else if (!hfs_timer_is_armed(&net->clock) || net->clock.at != next)
        hfs_timer_start(net->world, &net->clock, next);
}

/* After anything that may have changed the etcd. */
static void settle(struct hfs_net *net)
{
    hfs_rev revision = hfs_etcd_get_store(net->etcd)->revision, before = net->pumped;

    set_clock(net);
    if (revision == before)
        return;
    net->pumped = revision;
    if (net->on_commit != NULL)
        net->on_commit(net->writer, net->arg);
    /* What was restored is no news. */
    if (net->late != NULL && before != 0 && net->faults.late_role == HFS_NOBODY)
        wake_late(net, before);
    pump(net);
}

void hfs_net_poke(struct hfs_net *net)
{
    hfs_must(hfs_etcd_advance(net->etcd, net->world->now));
    settle(net);
    pump(net); /* members may have come back without a change */
}

static void on_clock(struct hfs_timer *timer)
{
    hfs_net_poke(OWNER(timer, struct hfs_net, clock));
}

void hfs_net_init(struct hfs_net *net, struct hfs_world *world, struct hfs_etcd *etcd)
{
    *net = (struct hfs_net){ .world = world,
                             .etcd = etcd,
                             .clock = { .fn = on_clock },
                             .pumped = hfs_etcd_get_store(etcd)->revision };
    set_clock(net);
}

/* Requests. */

struct hfs_exchange {
    unsigned refs;
    struct hfs_net *net;
    struct hfs_process *from;
    unsigned member;
    struct hfs_letter *letter;
    hfs_exchange_fn fn; /* NULL: nobody waits any more */
    void *arg;
};

/* A request, or its answer, on the way. */
struct hfs_parcel {
    struct hfs_timer timer;
    struct hfs_exchange *exchange;
    struct hfs_answer *answer;
    struct hfs_parcel *next, **at; /* in net->late; `at` NULL: it is not kept back */
    unsigned patience;             /* occasions that it lets pass */
};

struct hfs_letter *hfs_letter_new(const struct hfs_request *request, hf_ms now)
{
    struct hfs_letter *letter = hfs_alloc(sizeof *letter);
    bool was = hfs_memory_set(false);

    letter->refs = 1;
    letter->made_at = now;
    hfs_must(hfs_request_copy(request, &letter->request));
    (void)hfs_memory_set(was);
    return letter;
}

void hfs_letter_unref(struct hfs_letter *letter)
{
    if (letter == NULL || --letter->refs > 0)
        return;
    free(letter->request);
    free(letter);
}

static void unref(struct hfs_exchange *exchange)
{
    if (--exchange->refs > 0)
        return;
    hfs_letter_unref(exchange->letter);
    free(exchange);
}

static void let_come(struct hfs_parcel *parcel)
{
    if (parcel->at == NULL)
        return;
    *parcel->at = parcel->next;
    if (parcel->next != NULL)
        parcel->next->at = parcel->at;
    parcel->at = NULL;
}

static void drop_parcel(struct hfs_parcel *parcel)
{
    let_come(parcel);
    unref(parcel->exchange);
    free(parcel->answer);
    free(parcel);
}

static void on_answer(struct hfs_timer *timer)
{
    struct hfs_parcel *parcel = OWNER(timer, struct hfs_parcel, timer);
    struct hfs_exchange *exchange = parcel->exchange;
    hfs_exchange_fn fn = exchange->fn;

    if (fn != NULL) {
        exchange->fn = NULL;
        exchange->refs--; /* its owner's; the parcel has one */
        fn(parcel->answer, exchange->arg);
    }
    drop_parcel(parcel);
}

static void send_answer(struct hfs_parcel *parcel)
{
    struct hfs_exchange *exchange = parcel->exchange;
    struct hfs_net *net = exchange->net;

    if (exchange->fn == NULL || !answers_come(exchange->from, exchange->member) ||
        draw_loss(net)) {
        drop_parcel(parcel);
        return;
    }
    parcel->timer.fn = on_answer;
    parcel->timer.process = exchange->from;
    parcel->timer.is_news = true;
    hfs_timer_start(net->world, &parcel->timer, net->world->now + draw_way_back(net));
}

static void on_request(struct hfs_timer *timer)
{
    struct hfs_parcel *parcel = OWNER(timer, struct hfs_parcel, timer);
    struct hfs_exchange *exchange = parcel->exchange;
    struct hfs_net *net = exchange->net;
    hf_ms now = net->world->now, next;
    int fate;

    let_come(parcel);
    if (!is_reached(exchange->from, exchange->member)) {
        drop_parcel(parcel);
        return;
    }
    hfs_must(hfs_etcd_advance(net->etcd, now));
    settle(net); /* what etcd did by itself was nobody's request */
    make_way(net, exchange->member, exchange->letter->request);
    fate =
        hfs_etcd_serve(net->etcd, exchange->member, exchange->letter->request, &parcel->answer);
    hfs_must(fate);
    net->requests++;
    if (fate == HFS_ANSWERED && net->on_served != NULL)
        net->on_served(exchange->from, exchange->letter, parcel->answer, net->arg);
    net->writer = exchange->from;
    settle(net);
    net->writer = NULL;
    next = hfs_etcd_next(net->etcd);
    if (fate == HFS_ANSWERED)
        send_answer(parcel);
    else if (fate == HFS_LATER && next != HFS_NEVER)
        hfs_timer_start(net->world, timer, next > now ? next : now + 1);
    else
        drop_parcel(parcel);
}

static struct hfs_parcel *post(struct hfs_exchange *exchange, hf_ms delay)
{
    struct hfs_net *net = exchange->net;
    struct hfs_parcel *parcel = hfs_alloc(sizeof *parcel);

    parcel->exchange = exchange;
    parcel->timer.fn = on_request;
    exchange->refs++;
    hfs_timer_start(net->world, &parcel->timer, net->world->now + delay);
    return parcel;
}

static void post_late(struct hfs_exchange *exchange)
{
    struct hfs_net *net = exchange->net;
    enum {
        RELAPSE_MS = 60000,
        PATIENCE = 20
    }; /* what is kept back outlasts the way to a restore */
    bool rides = exchange->letter->request->txn.rides;
    hf_ms way = net->aim.way > 0 ? net->aim.way : RELAPSE_MS;
    hf_ms least = net->aim.relapses && !net->relapsed && !rides ? way : 1;
    struct hfs_parcel *parcel =
        post(exchange, least + (hf_ms)hfs_random_below(&net->world->random,
                                                       (uint64_t)net->faults.late_max));

    /* Not always at the first occasion: the next one may be worse. */
    if (net->aim.at != NULL && hfs_random_percent(&net->world->random, 50))
        parcel->patience = (unsigned)hfs_random_below(&net->world->random, PATIENCE);
    parcel->next = net->late;
    parcel->at = &net->late;
    if (parcel->next != NULL)
        parcel->next->at = &parcel->next;
    net->late = parcel;
}

static bool is_same(struct hf_bytes a, struct hf_bytes b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static bool compares(const struct hfs_parcel *parcel, const struct hfs_entry *entry)
{
    const struct hfs_txn *txn = &parcel->exchange->letter->request->txn;
    struct hf_bytes key = hfs_entry_key(entry);

    for (size_t i = 0; i < txn->compare_count; i++) {
        if (is_same(txn->compares[i].key, key))
            return true;
    }
    return false;
}

/* Aims. */

/* The revision that something kept back knows the key by; 0: none does. */
static hfs_rev known_rev(const struct hfs_net *net, struct hf_bytes key)
{
    hfs_rev known = 0;

    for (const struct hfs_parcel *parcel = net->late; parcel != NULL && known == 0;
         parcel = parcel->next)
        known = hfs_aim_known_rev(&parcel->exchange->letter->request->txn, key,
                                  hfs_etcd_get_store(net->etcd)->revision);
    return known;
}

/* Somebody else writes until the next revision is the one that is known. */
static void pass_revisions(struct hfs_net *net, unsigned member, hfs_rev known)
{
    enum { MOST = 3000 };
    struct hfs_request request = { .kind = HFS_PUT };

    request.op.put.key = hf_bytes_of("/elsewhere");
    request.op.put.value = hf_bytes_of("another's");
    for (int i = 0; i < MOST && hfs_etcd_get_store(net->etcd)->revision + 1 < known; i++) {
        struct hfs_answer *answer = NULL;
        int fate = hfs_etcd_serve(net->etcd, member, &request, &answer);

        free(answer);
        if (fate != HFS_ANSWERED)
            break;
    }
    settle(net);
}

static void make_way(struct hfs_net *net, unsigned member, const struct hfs_request *request)
{
    const struct hfs_ops *ops = &request->txn.then;
    hfs_rev known = 0;

    if (!net->aim.relapses || !net->relapsed || net->late == NULL || request->kind != HFS_TXN)
        return;
    for (size_t i = 0; i < ops->count && known == 0; i++) {
        if (ops->list[i].kind == HFS_PUT)
            known = known_rev(net, ops->list[i].put.key);
    }
    if (known != 0)
        pass_revisions(net, member, known);
}

static void come_soon(struct hfs_net *net, struct hfs_parcel *parcel)
{
    enum { SOON_MS = 20 };

    let_come(parcel);
    hfs_timer_start(net->world, &parcel->timer,
                    net->world->now + (hf_ms)hfs_random_below(&net->world->random, SOON_MS));
}

/* At once, before anybody else comes. */
static void wake_aimed(struct hfs_net *net)
{
    if (net->aim.relapses && !net->relapsed)
        return;
    for (struct hfs_parcel *parcel = net->late, *next; parcel != NULL; parcel = next) {
        next = parcel->next;
        if (!hfs_aim_is_worst(&parcel->exchange->letter->request->txn, net->etcd) ||
            parcel->patience-- > 0)
            continue;
        hfs_note(net->world, "(what was kept back comes)");
        let_come(parcel);
        hfs_timer_start(net->world, &parcel->timer, net->world->now);
    }
}

/* Not always at the first occasion: the next change may be the worse one. */
static void wake_late(struct hfs_net *net, hfs_rev since)
{
    enum { WOKEN_PERCENT = 40 };
    const struct hfs_store *store = hfs_etcd_get_store(net->etcd);
    struct hfs_random *random = &net->world->random;

    if (net->aim.at != NULL) {
        wake_aimed(net);
        return;
    }
    for (size_t i = hfs_store_find(store, since + 1); i < store->log_count; i++) {
        for (struct hfs_parcel *parcel = net->late, *next; parcel != NULL; parcel = next) {
            next = parcel->next;
            if (!compares(parcel, store->log[i]) || !hfs_random_percent(random, WOKEN_PERCENT))
                continue;
            come_soon(net, parcel);
        }
    }
}

static bool may_be_late(const struct hfs_net *net, const struct hfs_process *from,
                        const struct hfs_request *request)
{
    if (request->kind != HFS_TXN)
        return false;
    if (net->aim.at != NULL)
        return request->txn.rides || hfs_aim_is_at(request);
    return net->faults.late_role == HFS_NOBODY || net->faults.late_role == from->role;
}

static bool draw_late(struct hfs_net *net)
{
    return net->aim.withholds
               ? net->faults.late_percent > 0
               : hfs_random_percent(&net->world->random, net->faults.late_percent);
}

struct hfs_exchange *hfs_net_send(struct hfs_net *net, struct hfs_process *from,
                                  unsigned member, struct hfs_letter *letter,
                                  hfs_exchange_fn fn, void *arg)
{
    struct hfs_exchange *exchange = hfs_alloc(sizeof *exchange);

    *exchange = (struct hfs_exchange){ .refs = 1,
                                       .net = net,
                                       .from = from,
                                       .member = member,
                                       .letter = letter,
                                       .fn = fn,
                                       .arg = arg };
    letter->refs++;
    if (net->on_send != NULL && net->on_send(from, letter, net->arg))
        return exchange;
    if (letter->withheld)
        return exchange;
    if (may_be_late(net, from, letter->request) && draw_late(net)) {
        post_late(exchange);
        if ((net->aim.withholds || hfs_random_percent(&net->world->random, 50)) &&
            !letter->request->txn.rides) {
            letter->withheld = net->aim.at != NULL;
            if (letter->withheld && net->on_withheld != NULL)
                net->on_withheld(from, letter, net->arg);
            return exchange; /* else it is a copy that comes late */
        }
    }
    if (!draw_loss(net))
        (void)post(exchange, draw_delay(net));
    if (hfs_random_percent(&net->world->random, net->faults.repeat_percent))
        (void)post(exchange, draw_delay(net));
    return exchange;
}

void hfs_exchange_drop(struct hfs_exchange *exchange)
{
    if (exchange == NULL)
        return;
    exchange->fn = NULL;
    unref(exchange);
}

/* Streams. */

struct watched {
    struct hfs_range range; /* its key is owned */
    hfs_rev start_rev;
    uint64_t id; /* with the etcd; 0: not there, or no longer */
};

struct hfs_stream {
    unsigned refs;
    struct hfs_net *net;
    struct hfs_process *from;
    unsigned member;
    const struct hfs_stream_handler *handler; /* NULL: closed */
    void *arg;
    struct watched *ranges;
    size_t range_count, range_cap;
    hf_ms there_at, back_at; /* when the last message in either direction arrives */
    bool broken;
    struct hfs_stream *next, **at; /* in net->streams, while it is open */
};

enum news { NEWS_OPEN, NEWS_ASK, NEWS_CREATED, NEWS_BATCH, NEWS_END };

/* Something on its way over a stream. */
struct piece {
    struct hfs_timer timer;
    struct hfs_stream *stream;
    enum news news;
    size_t range;
    struct hfs_batch *batch;
    int err;
};

static void unref_stream(struct hfs_stream *stream)
{
    if (--stream->refs > 0)
        return;
    for (size_t i = 0; i < stream->range_count; i++)
        free((void *)stream->ranges[i].range.key.data);
    free(stream->ranges);
    free(stream);
}

static void drop_piece(struct piece *piece)
{
    unref_stream(piece->stream);
    free(piece->batch);
    free(piece);
}

/* Ends the etcd's part of it. */
static void cancel_watches(struct hfs_stream *stream)
{
    for (size_t i = 0; i < stream->range_count; i++) {
        if (stream->ranges[i].id != 0)
            hfs_watch_cancel(stream->net->etcd, stream->ranges[i].id);
        stream->ranges[i].id = 0;
    }
}

void hfs_stream_close(struct hfs_stream *stream)
{
    if (stream == NULL || stream->handler == NULL)
        return;
    stream->handler = NULL;
    cancel_watches(stream);
    *stream->at = stream->next;
    if (stream->next != NULL)
        stream->next->at = stream->at;
    unref_stream(stream);
}

static void on_piece_back(struct hfs_timer *timer)
{
    struct piece *piece = OWNER(timer, struct piece, timer);
    struct hfs_stream *stream = piece->stream;
    const struct hfs_stream_handler *handler = stream->handler;

    if (handler != NULL && !stream->broken) {
        switch (piece->news) {
        case NEWS_CREATED: handler->on_created(piece->range, stream->arg); break;
        case NEWS_BATCH: handler->on_batch(piece->range, piece->batch, stream->arg); break;
        default: {
            void *arg = stream->arg;

            hfs_stream_close(stream);
            handler->on_end(piece->err, arg);
            break;
        }
        }
    }
    drop_piece(piece);
}

static void send_back(struct hfs_stream *stream, enum news news, size_t range,
                      struct hfs_batch *batch, int err)
{
    struct hfs_net *net = stream->net;
    struct piece *piece;
    hf_ms at;

    if (!answers_come(stream->from, stream->member) || draw_loss(net))
        stream->broken = true;
    if (stream->broken) {
        free(batch);
        return;
    }
    piece = hfs_alloc(sizeof *piece);
    *piece = (struct piece){ .timer = { .fn = on_piece_back, .process = stream->from },
                             .stream = stream,
                             .news = news,
                             .range = range,
                             .batch = batch,
                             .err = err };
    stream->refs++;
    at = net->world->now + draw_way_back(net);
    stream->back_at = at > stream->back_at ? at : stream->back_at;
    hfs_timer_start(net->world, &piece->timer, stream->back_at);
}

/* What one watch has to say now. */
static void pump_range(struct hfs_stream *stream, size_t index)
{
    struct watched *watched = &stream->ranges[index];
    struct hfs_batch *batch = NULL;
    int told;

    while (watched->id != 0 &&
           (told = hfs_watch_next(stream->net->etcd, watched->id, &batch)) != 0) {
        if (told == 1) {
            send_back(stream, NEWS_BATCH, index, batch, HF_OK);
        } else {
            watched->id = 0;
            send_back(stream, NEWS_END, index, NULL, told);
        }
    }
}

static void pump(struct hfs_net *net)
{
    for (struct hfs_stream *stream = net->streams; stream != NULL; stream = stream->next) {
        for (size_t i = 0; i < stream->range_count && !stream->broken; i++)
            pump_range(stream, i);
    }
}

static void open_there(struct hfs_stream *stream, size_t index)
{
    struct watched *watched = &stream->ranges[index];
    int fate = hfs_watch_open(stream->net->etcd, stream->member, &watched->range,
                              watched->start_rev, &watched->id);

    if (fate == HFS_ANSWERED) {
        send_back(stream, NEWS_CREATED, index, NULL, HF_OK);
        pump_range(stream, index);
    } else if (fate == HF_EAGAIN) {
        send_back(stream, NEWS_END, index, NULL, HF_EAGAIN);
    } else if (fate < 0) {
        hfs_die("hfs_watch_open", fate);
    }
}

static void on_piece_there(struct hfs_timer *timer)
{
    struct piece *piece = OWNER(timer, struct piece, timer);
    struct hfs_stream *stream = piece->stream;

    if (!is_reached(stream->from, stream->member))
        stream->broken = true;
    if (stream->handler != NULL && !stream->broken) {
        hfs_must(hfs_etcd_advance(stream->net->etcd, stream->net->world->now));
        settle(stream->net);
        if (piece->news == NEWS_OPEN)
            open_there(stream, piece->range);
        /* One answer for the whole stream. */
        if (piece->news == NEWS_ASK && stream->range_count > 0 && stream->ranges[0].id != 0) {
            hfs_watch_ask_progress(stream->net->etcd, stream->ranges[0].id);
            pump_range(stream, 0);
        }
    }
    drop_piece(piece);
}

static void send_there(struct hfs_stream *stream, enum news news, size_t range)
{
    struct hfs_net *net = stream->net;
    struct piece *piece;
    hf_ms at = net->world->now + draw_delay(net);

    if (draw_loss(net))
        stream->broken = true;
    if (stream->broken)
        return;
    piece = hfs_alloc(sizeof *piece);
    *piece = (struct piece){
        .timer = { .fn = on_piece_there }, .stream = stream, .news = news, .range = range
    };
    stream->refs++;
    stream->there_at = at > stream->there_at ? at : stream->there_at;
    hfs_timer_start(net->world, &piece->timer, stream->there_at);
}

struct hfs_stream *hfs_stream_open(struct hfs_net *net, struct hfs_process *from,
                                   unsigned member, const struct hfs_stream_handler *handler,
                                   void *arg)
{
    struct hfs_stream *stream = hfs_alloc(sizeof *stream);

    *stream = (struct hfs_stream){ .refs = 1,
                                   .net = net,
                                   .from = from,
                                   .member = member,
                                   .handler = handler,
                                   .arg = arg,
                                   .next = net->streams,
                                   .at = &net->streams };
    if (stream->next != NULL)
        stream->next->at = &stream->next;
    net->streams = stream;
    return stream;
}

void hfs_stream_watch(struct hfs_stream *stream, const struct hfs_range *range,
                      hfs_rev start_rev)
{
    struct watched *watched;
    char *key = hfs_alloc(range->key.len + 1);

    for (size_t i = 0; i < range->key.len; i++)
        key[i] = ((const char *)range->key.data)[i];
    hfs_grow(&stream->ranges, &stream->range_cap, stream->range_count + 1, sizeof *watched);
    watched = &stream->ranges[stream->range_count++];
    *watched = (struct watched){ .range = *range, .start_rev = start_rev };
    watched->range.key.data = key;
    send_there(stream, NEWS_OPEN, stream->range_count - 1);
}

void hfs_stream_ask(struct hfs_stream *stream)
{
    send_there(stream, NEWS_ASK, 0);
}

/* What is still on its way goes with the network. */
void hfs_net_done(struct hfs_net *net)
{
    struct hfs_world *world = net->world;

    hfs_timer_stop(world, &net->clock);
    for (size_t i = world->count; i >= 1; i--) {
        struct hfs_timer *timer = world->queue[i];

        if (timer->fn != on_request && timer->fn != on_answer && timer->fn != on_piece_there &&
            timer->fn != on_piece_back)
            continue;
        hfs_timer_stop(world, timer);
        if (timer->fn == on_request || timer->fn == on_answer)
            drop_parcel(OWNER(timer, struct hfs_parcel, timer));
        else
            drop_piece(OWNER(timer, struct piece, timer));
        i = world->count + 1; /* the heap has moved */
    }
}
