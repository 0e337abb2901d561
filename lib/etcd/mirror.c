#include "etcd/mirror.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/copy.h"
#include "etcd/decode.h"
#include "etcd/history.h"
#include "etcd/internal.h"
#include "etcd/watch.h"

enum {
    PROBE_EVERY_MS = 5000,
    PROBE_TIMEOUT_MS = 3000,
    HISTORY_EVERY_MS = 10000,
    RESYNC_EVERY_MS = 300000,
    PENDING_BYTES = 256 * 1024 * 1024,
    RETRY_BASE_MS = 100,
    RETRY_CAP_MS = 2000,
    STEADY_MS = 1000,       /* a watch that lived shorter is one more failure */
    FEWEST_KEYS = 100,      /* of a page on a slow line */
    MOST_KEYS = 2500,       /* likewise */
    OLD_WATCH_MS = 30000,   /* one that is older is opened anew after a list */
    LONG_OUTAGE_MS = 30000, /* after that, a list finds what a faulty resume would lose */
};

struct range {
    struct hf_range_bounds bounds;
    struct hf_key_range asked; /* points into bounds */
    hf_rev next_rev;           /* every change before it is in the copy */
    hf_rev batch_rev;          /* newest of the batch that is being told */
};

struct hf_mirror {
    struct hf_etcd *etcd;
    struct hf_mirror_config cfg; /* without its ranges */
    struct range *ranges;
    size_t range_count;

    struct hf_copy copy;
    struct hf_history history;
    struct hf_watch *watch; /* NULL: none */
    bool live;              /* the watch was confirmed */
    hf_ms live_at;          /* since when */
    hf_ms lost_at;          /* when the last one that was live ended, or a list after it */
    hf_ms heard_at;         /* of the watches before this one, or when it began */
    unsigned failures;      /* in a row */
    bool synced;
    bool list_wanted; /* as soon as the history is known to be ours */

    struct hf_list *list; /* NULL: no page is asked for */
    bool listing;
    size_t list_range;
    size_t list_keys;  /* that it had so far */
    size_t page_keys;  /* of its pages; 0: as many as are quickest */
    hf_rev list_rev;   /* 0 until the first page has come */
    hf_rev list_floor; /* the list cannot be older than what was seen when it was asked for */

    struct hf_timer retry;   /* list or watch again */
    struct hf_timer inspect; /* look for a restored etcd */
    struct hf_timer resync;
    unsigned depth; /* callbacks that are running */
    bool closed;
    struct hf_mirror_stats stats;
};

static void begin_list(struct hf_mirror *mirror);

/* The copy and its events. */

static void tell(struct hf_mirror *mirror, const struct hf_mirror_event *event)
{
    if (!mirror->closed)
        mirror->cfg.on_event(event, mirror->cfg.arg);
}

static void on_change(const struct hf_change *change, void *arg)
{
    struct hf_mirror *mirror = arg;

    if (!change->from_list) {
        hf_history_on_change(&mirror->history, &change->kv);
        mirror->stats.events++;
    } else {
        mirror->stats.missed += mirror->synced;
        if (change->kv.version > 0)
            hf_history_on_listed(&mirror->history, &change->kv);
    }
    tell(mirror,
         &(struct hf_mirror_event){ .kind = change->deleted ? HF_MIRROR_DELETE : HF_MIRROR_PUT,
                                    .synthesised = change->from_list,
                                    .revision = change->kv.mod_rev,
                                    .kv = change->kv });
}

/* Trouble. */

static void leave(struct hf_mirror *mirror)
{
    if (--mirror->depth > 0 || !mirror->closed)
        return;
    hf_copy_done(&mirror->copy);
    for (size_t i = 0; i < mirror->range_count; i++)
        hf_range_bounds_done(&mirror->ranges[i].bounds);
    free(mirror->ranges);
    free(mirror);
}

/* One that was only opened has proven nothing yet. */
static hf_ms heard_at(const struct hf_mirror *mirror)
{
    hf_ms at = mirror->watch != NULL ? hf_watch_get_heard_at(mirror->watch) : 0;

    return at != 0 ? at : mirror->heard_at;
}

/* The watch is over, or about to be closed. */
static void forget_watch(struct hf_mirror *mirror)
{
    mirror->heard_at = heard_at(mirror);
    if (mirror->live) {
        mirror->lost_at = hf_etcd_now(mirror->etcd);
        if (mirror->lost_at - mirror->live_at >= STEADY_MS)
            mirror->failures = 0;
    }
    mirror->live = false;
    mirror->watch = NULL;
}

static void drop_watch(struct hf_mirror *mirror)
{
    struct hf_watch *watch = mirror->watch;

    if (watch != NULL)
        forget_watch(mirror);
    hf_watch_close(watch);
}

/* What is under way of a list, if anything, is given up. */
static void drop_list(struct hf_mirror *mirror)
{
    if (mirror->list != NULL)
        hf_list_cancel(mirror->list);
    mirror->list = NULL;
    mirror->listing = false;
    hf_copy_drop_list(&mirror->copy);
}

static void retry_later(struct hf_mirror *mirror, int err, const char *message)
{
    hf_ms pause = 0;

    if (mirror->closed)
        return;
    if (mirror->failures > 0)
        pause =
            hf_etcd_backoff(mirror->etcd, RETRY_BASE_MS, RETRY_CAP_MS, mirror->failures - 1);
    mirror->failures++;
    if (mirror->cfg.on_trouble != NULL)
        mirror->cfg.on_trouble(err, message, pause, mirror->cfg.arg);
    if (!mirror->closed)
        hf_timer_start(&mirror->etcd->timers, &mirror->retry,
                       hf_etcd_now(mirror->etcd) + pause);
}

static void fail_list(struct hf_mirror *mirror, int err, const char *message)
{
    drop_list(mirror);
    mirror->list_wanted = true;
    retry_later(mirror, err, message);
}

/* The copy cannot be trusted any more, but is better than nothing: list again, and tell what is
 * different. */
static void lose_sync(struct hf_mirror *mirror, int err, const char *message)
{
    drop_watch(mirror);
    drop_list(mirror);
    mirror->synced = false;
    retry_later(mirror, err, message);
}

/* More than there is memory for, by what was configured: then nothing is told of, rather than a
 * part. False: it is not. */
static bool refuse_more(struct hf_mirror *mirror, const struct range *range, size_t keys)
{
    struct hf_error why = { "" };

    if (mirror->cfg.keys_max == 0 || keys <= mirror->cfg.keys_max)
        return false;
    (void)hf_error_set(&why, HF_ELIMIT,
                       "%zu keys are to be followed, by %.*s, and at most %zu may be: remove "
                       "what does not belong there, or raise keys_max",
                       keys, (int)range->asked.key.len, (const char *)range->asked.key.data,
                       mirror->cfg.keys_max);
    lose_sync(mirror, HF_ELIMIT, why.text);
    return true;
}

/* Another history: nothing that was seen holds. */
static void reset(struct hf_mirror *mirror)
{
    hf_timer_stop(&mirror->etcd->timers, &mirror->retry);
    drop_watch(mirror);
    drop_list(mirror);
    mirror->synced = false;
    hf_copy_clear(&mirror->copy);
    hf_history_forget(&mirror->history);
    for (size_t i = 0; i < mirror->range_count; i++)
        mirror->ranges[i].next_rev = 0;
    mirror->stats.resets++;
    tell(mirror, &(struct hf_mirror_event){ .kind = HF_MIRROR_RESET });
    if (!mirror->closed)
        begin_list(mirror);
}

/* The watch. */

static void on_live(void *arg)
{
    struct hf_mirror *mirror = arg;

    mirror->live = true;
    mirror->live_at = hf_etcd_now(mirror->etcd);
}

static void on_events(size_t index, const Etcdserverpb__WatchResponse *message, bool last,
                      void *arg)
{
    struct hf_mirror *mirror = arg;
    struct range *range = &mirror->ranges[index];
    struct hf_etcd_header header = hf_header_from(message->header);

    mirror->depth++;
    if (!hf_history_on_header(&mirror->history, &header)) {
        lose_sync(mirror, HF_EHISTORY, "the watch is answered by another cluster");
        leave(mirror);
        return;
    }
    for (size_t i = 0; i < message->n_events && !mirror->closed; i++) {
        const Etcdserverpb__Event *event = message->events[i];
        struct hf_kv kv = event->kv != NULL ? hf_kv_from(event->kv) : (struct hf_kv){ 0 };

        if (kv.mod_rev < range->next_rev) {
            mirror->stats.stale++;
            continue;
        }
        if (kv.mod_rev > range->batch_rev)
            range->batch_rev = kv.mod_rev;
        if (event->type == ETCDSERVERPB__EVENT__EVENT_TYPE__DELETE
                ? !hf_copy_delete(&mirror->copy, kv.key, kv.mod_rev)
                : !hf_copy_put(&mirror->copy, &kv)) {
            lose_sync(mirror, HF_ENOMEM, hf_err_text(HF_ENOMEM));
            break;
        }
    }
    /* Only a complete batch moves the place to resume from: an incomplete one comes again. */
    if (last && range->batch_rev >= range->next_rev)
        range->next_rev = range->batch_rev + 1;
    if (!mirror->closed && mirror->watch != NULL && !mirror->listing)
        (void)refuse_more(mirror, range, hf_copy_count(&mirror->copy));
    leave(mirror);
}

/* A watch that worked has failed, and with it the endpoint: what else was asked there would
 * wait for an answer of its own. */
static void leave_endpoint(struct hf_mirror *mirror)
{
    hf_history_cancel(&mirror->history);
    if (mirror->listing) {
        drop_list(mirror);
        mirror->list_wanted = true;
    }
}

/* What was compacted away, or is too large to be put together, only a list can tell; one that
 * is under way will, and opens the next watch when it is done. */
static void on_watch_end(int err, const char *message, void *arg)
{
    struct hf_mirror *mirror = arg;
    bool list_tells = err == HF_ECOMPACT || err == HF_ELIMIT;
    bool was_live = mirror->live;

    forget_watch(mirror);
    mirror->depth++;
    if (list_tells)
        mirror->synced = false;
    else if (was_live)
        leave_endpoint(mirror);
    if (!mirror->listing && err == HF_ECOMPACT)
        begin_list(mirror);
    else if (!mirror->listing)
        retry_later(mirror, err, message);
    leave(mirror);
}

static const struct hf_watch_handler WATCH = { .on_live = on_live,
                                               .on_events = on_events,
                                               .on_end = on_watch_end };

/* A watch that begins at the very revision up to which etcd was compacted is accepted, but etcd
 * 3.4 has forgotten the deletions of that revision. So one that resumes begins with the
 * revision before, whose events are dropped: then it is refused, and everything is listed.
 * After a list there was no time for a compaction, and one that begins in the past would be
 * served late. */
static void open_watch(struct hf_mirror *mirror, bool resumes)
{
    struct hf_watch_range ranges[HF_RANGES_MOST];
    int err;

    for (size_t i = 0; i < mirror->range_count; i++) {
        ranges[i] =
            (struct hf_watch_range){ .bounds = &mirror->ranges[i].bounds,
                                     .start_rev = mirror->ranges[i].next_rev - resumes };
        mirror->ranges[i].batch_rev = 0;
    }
    err = hf_watch_open(mirror->etcd,
                        &(struct hf_watch_config){ .ranges = ranges,
                                                   .range_count = mirror->range_count,
                                                   .probe_every = mirror->cfg.probe_every,
                                                   .probe_timeout = mirror->cfg.probe_timeout,
                                                   .pending_bytes = mirror->cfg.pending_bytes,
                                                   .handler = &WATCH,
                                                   .arg = mirror },
                        &mirror->watch);
    if (err != HF_OK) {
        mirror->watch = NULL;
        retry_later(mirror, err, hf_err_text(err));
        return;
    }
    mirror->stats.opens++;
}

/* The list. */

static void list_range(struct hf_mirror *mirror);

/* A page that is too large for a slow line would be too late every time. */
static void shrink_pages(struct hf_mirror *mirror)
{
    mirror->page_keys = mirror->page_keys == 0 ? MOST_KEYS : mirror->page_keys / 4;
    if (mirror->page_keys < FEWEST_KEYS)
        mirror->page_keys = FEWEST_KEYS;
}

static void grow_pages(struct hf_mirror *mirror)
{
    mirror->page_keys *= 4;
    if (mirror->page_keys > MOST_KEYS)
        mirror->page_keys = 0;
}

/* Of several watches on a stream one may be dead: the others answer every probe for it, and a
 * list finds only what happens to be there. So none lives for longer than to the next list. */
static void drop_old_watch(struct hf_mirror *mirror)
{
    if (!mirror->live || hf_etcd_now(mirror->etcd) - mirror->live_at < OLD_WATCH_MS)
        return;
    drop_watch(mirror);
    mirror->stats.renews++;
}

static void end_list(struct hf_mirror *mirror)
{
    hf_copy_end_list(&mirror->copy, mirror->list_rev);
    if (mirror->closed)
        return;
    grow_pages(mirror);
    mirror->listing = false;
    mirror->failures = 0;
    mirror->lost_at = hf_etcd_now(mirror->etcd);
    mirror->stats.lists++;
    for (size_t i = 0; i < mirror->range_count; i++) {
        if (mirror->ranges[i].next_rev <= mirror->list_rev)
            mirror->ranges[i].next_rev = mirror->list_rev + 1;
    }
    if (!mirror->synced) {
        mirror->synced = true;
        tell(mirror, &(struct hf_mirror_event){ .kind = HF_MIRROR_SYNCED,
                                                .revision = mirror->list_rev });
    }
    if (mirror->closed)
        return;
    drop_old_watch(mirror);
    if (mirror->watch == NULL)
        open_watch(mirror, false);
}

static void on_page_failed(struct hf_mirror *mirror, const struct hf_etcd_result *result)
{
    if (result->err == HF_ETIMEOUT)
        shrink_pages(mirror);
    if (result->err == HF_ECOMPACT) /* compacted while we were reading: a newer one, then */
        fail_list(mirror, result->err, "the list was overtaken by a compaction");
    else
        fail_list(mirror, result->err, result->message);
}

/* The first page tells what revision the list is of; one older than what we have seen is either
 * a stale read or a restored etcd. */
static bool list_is_current(struct hf_mirror *mirror, const struct hf_etcd_header *header)
{
    if (mirror->list_rev != 0)
        return true;
    mirror->list_rev = header->revision;
    return header->revision >= mirror->list_floor &&
           hf_history_on_header(&mirror->history, header);
}

/* Takes a page in. Of the keys that were news the newest are witnesses. One that the list did
 * not have is none: it went some time ago, nobody knows when. */
static void on_keys(struct hf_mirror *mirror, const struct hf_range_result *page)
{
    const struct range *range = &mirror->ranges[mirror->list_range];
    int err = HF_OK;

    if (refuse_more(mirror, range,
                    mirror->list_keys + (page->total > 0 ? (size_t)page->total : 0)))
        return; /* before any of it was taken in */
    mirror->list_keys += page->count;
    for (size_t i = 0; i < page->count && err == HF_OK && !mirror->closed; i++)
        err = hf_copy_list(&mirror->copy, &page->kvs[i], mirror->list_rev);
    if (mirror->closed)
        return;
    hf_history_end_page(&mirror->history);
    if (err == HF_EHISTORY)
        reset(mirror);
    else if (err != HF_OK)
        lose_sync(mirror, err, hf_err_text(err));
    else if (!page->more && ++mirror->list_range < mirror->range_count)
        list_range(mirror);
    else if (!page->more)
        end_list(mirror);
}

static void on_page(const struct hf_range_result *page, void *arg)
{
    struct hf_mirror *mirror = arg;

    mirror->depth++;
    if (!page->more)
        mirror->list = NULL;
    if (page->result.err != HF_OK) {
        on_page_failed(mirror, &page->result);
    } else if (!list_is_current(mirror, &page->result.header)) {
        fail_list(mirror, HF_EHISTORY, "the list is older than what was seen before");
    } else {
        on_keys(mirror, page);
    }
    leave(mirror);
}

static void list_range(struct hf_mirror *mirror)
{
    struct hf_range_request request = { .range = mirror->ranges[mirror->list_range].asked,
                                        .revision = mirror->list_rev,
                                        .timeout = mirror->cfg.page_timeout,
                                        .limit = (int64_t)mirror->page_keys };
    int err = hf_etcd_list(mirror->etcd, &request, on_page, mirror, &mirror->list);

    if (err == HF_OK)
        return;
    fail_list(mirror, err, hf_err_text(err));
}

static void begin_list(struct hf_mirror *mirror)
{
    assert(!mirror->listing);
    mirror->listing = true;
    mirror->list_wanted = false;
    mirror->list_range = 0;
    mirror->list_keys = 0;
    mirror->list_rev = 0;
    mirror->list_floor = mirror->history.past.revision;
    hf_copy_begin_list(&mirror->copy);
    list_range(mirror);
}

/* History. */

/* A list moves the place to resume past the last change that was seen, to its own revision. The
 * history vouches for no more than that change: an etcd that was restored and has gone on may
 * have one of ours in between, which no watch would tell. */
static bool resumes_past_the_witness(const struct hf_mirror *mirror)
{
    hf_rev vouched = hf_history_get_vouched(&mirror->history);

    for (size_t i = 0; i < mirror->range_count && vouched > 0; i++) {
        if (mirror->ranges[i].next_rev > vouched + 1)
            return true;
    }
    return false;
}

/* The history is known to be ours: resume where the watch stopped, and fill the copy. A list
 * may take long, so what is synced is watched meanwhile. */
static void go_on(struct hf_mirror *mirror)
{
    if (mirror->watch == NULL && (resumes_past_the_witness(mirror) ||
                                  hf_etcd_now(mirror->etcd) - mirror->lost_at > LONG_OUTAGE_MS))
        mirror->list_wanted = true;
    if (mirror->watch == NULL && mirror->synced)
        open_watch(mirror, true);
    if (!mirror->closed && (mirror->list_wanted || !mirror->synced))
        begin_list(mirror);
}

static bool is_idle(const struct hf_mirror *mirror)
{
    return !mirror->listing && (mirror->watch == NULL || mirror->list_wanted);
}

static void on_history(int err, const char *message, void *arg)
{
    struct hf_mirror *mirror = arg;

    mirror->depth++;
    if (err == HF_EHISTORY)
        reset(mirror);
    else if (is_idle(mirror) && err != HF_OK)
        retry_later(mirror, err, message);
    else if (is_idle(mirror))
        go_on(mirror);
    leave(mirror);
}

/* Timers. */

static void on_retry(struct hf_timer *timer)
{
    struct hf_mirror *mirror =
        (struct hf_mirror *)((char *)timer - offsetof(struct hf_mirror, retry));

    mirror->depth++;
    if (is_idle(mirror) && mirror->history.past.revision == 0)
        begin_list(mirror);
    else if (is_idle(mirror))
        hf_history_check(&mirror->history, true);
    leave(mirror);
}

static void on_inspect(struct hf_timer *timer)
{
    struct hf_mirror *mirror =
        (struct hf_mirror *)((char *)timer - offsetof(struct hf_mirror, inspect));

    hf_timer_start(&mirror->etcd->timers, timer,
                   hf_etcd_now(mirror->etcd) + mirror->cfg.history_every);
    if (mirror->watch != NULL)
        hf_history_check(&mirror->history, false);
}

static void arm_resync(struct hf_mirror *mirror)
{
    hf_ms fifth = mirror->cfg.resync_every / 5;
    hf_ms jitter = (hf_ms)hf_etcd_random(mirror->etcd, (uint64_t)(2 * fifth + 1)) - fifth;

    hf_timer_start(&mirror->etcd->timers, &mirror->resync,
                   hf_etcd_now(mirror->etcd) + mirror->cfg.resync_every + jitter);
}

static void on_resync(struct hf_timer *timer)
{
    struct hf_mirror *mirror =
        (struct hf_mirror *)((char *)timer - offsetof(struct hf_mirror, resync));

    arm_resync(mirror);
    hf_mirror_resync(mirror);
}

/* Never from inside: the caller may be one of the callbacks. */
void hf_mirror_resync(struct hf_mirror *mirror)
{
    mirror->list_wanted |= !mirror->listing;
    hf_timer_start(&mirror->etcd->timers, &mirror->retry, hf_etcd_now(mirror->etcd));
}

/* Life. */

static int copy_ranges(struct hf_mirror *mirror, const struct hf_mirror_config *cfg)
{
    mirror->ranges = hf_calloc(cfg->range_count, sizeof mirror->ranges[0]);
    if (mirror->ranges == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < cfg->range_count; i++) {
        struct range *range = &mirror->ranges[i];
        int err = hf_range_bounds_init(&range->bounds, &cfg->ranges[i]);

        if (err != HF_OK)
            return err;
        mirror->range_count++;
        range->asked.prefix = cfg->ranges[i].prefix;
        range->asked.key =
            (struct hf_bytes){ .data = range->bounds.key.data, .len = cfg->ranges[i].key.len };
    }
    return HF_OK;
}

static void configure(struct hf_mirror *mirror, const struct hf_mirror_config *cfg)
{
    struct hf_mirror_config *own = &mirror->cfg;

    *own = *cfg;
    own->ranges = NULL;
    own->probe_every = hf_span_or(cfg->probe_every, PROBE_EVERY_MS);
    own->probe_timeout = hf_span_or(cfg->probe_timeout, PROBE_TIMEOUT_MS);
    own->history_every = hf_span_or(cfg->history_every, HISTORY_EVERY_MS);
    own->resync_every = hf_span_or(cfg->resync_every, RESYNC_EVERY_MS);
    if (own->pending_bytes == 0)
        own->pending_bytes = PENDING_BYTES;
    mirror->retry.fn = on_retry;
    mirror->inspect.fn = on_inspect;
    mirror->resync.fn = on_resync;
    hf_copy_init(&mirror->copy, hf_etcd_random(mirror->etcd, UINT64_MAX), own->keep_values,
                 on_change, mirror);
}

int hf_mirror_new(struct hf_etcd *etcd, const struct hf_mirror_config *cfg,
                  struct hf_mirror **ret_mirror, struct hf_error *err)
{
    struct hf_mirror *mirror;
    hf_ms now = hf_etcd_now(etcd);
    int code = hf_ranges_check(cfg->ranges, cfg->range_count, err);

    if (code != HF_OK)
        return code;
    mirror = hf_calloc(1, sizeof *mirror);
    if (mirror == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    mirror->etcd = etcd;
    mirror->heard_at = hf_etcd_now(etcd);
    etcd->attached++;
    configure(mirror, cfg);
    code = copy_ranges(mirror, cfg);
    hf_history_init(&mirror->history, etcd,
                    code == HF_OK ? hf_bytes_from(mirror->ranges[0].bounds.key)
                                  : (struct hf_bytes){ 0 },
                    on_history, mirror);
    if (cfg->past != NULL)
        hf_history_resume(&mirror->history, cfg->past);
    if (code != HF_OK) {
        hf_mirror_close(mirror);
        return hf_error_set(err, code, "%s", hf_err_text(code));
    }
    hf_timer_start(&etcd->timers, &mirror->retry, now);
    hf_timer_start(&etcd->timers, &mirror->inspect, now + mirror->cfg.history_every);
    arm_resync(mirror);
    *ret_mirror = mirror;
    return HF_OK;
}

void hf_mirror_close(struct hf_mirror *mirror)
{
    struct hf_timers *timers;

    if (mirror == NULL)
        return;
    timers = &mirror->etcd->timers;
    hf_timer_stop(timers, &mirror->retry);
    hf_timer_stop(timers, &mirror->inspect);
    hf_timer_stop(timers, &mirror->resync);
    if (mirror->cfg.past != NULL)
        *mirror->cfg.past = hf_history_take_past(&mirror->history);
    hf_history_done(&mirror->history);
    hf_watch_close(mirror->watch);
    mirror->watch = NULL;
    if (mirror->list != NULL)
        hf_list_cancel(mirror->list);
    mirror->list = NULL;
    mirror->etcd->attached--;
    mirror->closed = true;
    hf_copy_stop(&mirror->copy);
    mirror->depth++;
    leave(mirror);
}

bool hf_mirror_get(const struct hf_mirror *mirror, struct hf_bytes key, struct hf_kv *ret_kv)
{
    return hf_copy_get(&mirror->copy, key, ret_kv);
}

void hf_mirror_each(const struct hf_mirror *mirror,
                    bool (*fn)(const struct hf_kv *kv, void *arg), void *arg)
{
    hf_copy_each(&mirror->copy, fn, arg);
}

void hf_mirror_on_write(struct hf_mirror *mirror, const struct hf_kv *kv)
{
    hf_history_on_write(&mirror->history, kv);
}

struct hf_mirror_stats hf_mirror_get_stats(const struct hf_mirror *mirror)
{
    struct hf_mirror_stats stats = mirror->stats;

    stats.keys = hf_copy_count(&mirror->copy);
    stats.stale += mirror->copy.stale;
    stats.synced = mirror->synced;
    stats.revision = mirror->history.past.revision;
    stats.heard_at = heard_at(mirror);
    return stats;
}
