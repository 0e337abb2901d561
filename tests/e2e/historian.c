/* historian: watches everything in an etcd from its first revision on, and writes down what
 * each revision changed and when that happened, as tests/support/history.c reads it.
 *
 *     historian ENDPOINT FILE
 *
 * A process of its own, so that its clock does not stop while a test does something else. A
 * change is told some time after it was made: how late that may have been is known from the
 * revision that etcd is asked for all the time. What was asked before the change and answered
 * with an older revision was asked before the change was made. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include "base/alloc.h"
#include "etcd/decode.h"
#include "etcd/watch.h"

enum { ASK_EVERY_MS = 50, AGAIN_MS = 100, PATIENCE_MS = 60000, PENDING_BYTES = 64 << 20 };

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* etcd was asked then, and had this revision when it answered. */
struct asked {
    hf_ms at;
    hf_rev revision;
};

struct historian {
    uv_loop_t loop;
    struct hf_etcd *etcd;
    FILE *out;
    struct hf_range_bounds everything;
    struct hf_watch *watch; /* NULL: it has ended, and is opened again */
    uv_timer_t ask, again;
    uv_signal_t stop;
    bool is_asking;
    hf_ms asking_since;
    struct asked *asked; /* revisions grow */
    size_t asked_count, asked_cap;
    hf_rev told; /* the newest that was written down */
};

/* When this revision was not there yet. */
static hf_ms find_after(const struct historian *h, hf_rev revision)
{
    for (size_t i = h->asked_count; i-- > 0;) {
        if (h->asked[i].revision < revision)
            return h->asked[i].at;
    }
    return 0;
}

static void on_status(const struct hf_status_result *result, void *arg)
{
    struct historian *h = arg;

    h->is_asking = false;
    if (result->result.err != HF_OK)
        return;
    if (!hf_grow(&h->asked, &h->asked_cap, h->asked_count + 1, sizeof *h->asked))
        abort();
    h->asked[h->asked_count++] =
        (struct asked){ h->asking_since, result->result.header.revision };
}

static void on_ask(uv_timer_t *timer)
{
    struct historian *h = timer->data;

    if (h->is_asking)
        return;
    h->asking_since = now();
    h->is_asking = hf_etcd_status(h->etcd, on_status, h, NULL) == HF_OK;
}

static void on_live(void *arg)
{
    (void)arg;
}

/* Revision, when it was made at the earliest and at the latest, by how much the wall clock is
 * ahead of that clock, whether it is a deletion, the rest of etcd's numbers, and the lengths of
 * key and value, which follow. */
static void write_down(struct historian *h, const Etcdserverpb__Event *event)
{
    const struct hf_kv kv = hf_kv_from(event->kv);
    hf_ms before = now();

    (void)fprintf(h->out,
                  "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %d %" PRId64 " %" PRId64
                  " %" PRId64 " %zu %zu\n",
                  kv.mod_rev, find_after(h, kv.mod_rev), before, hf_clock_wall() - before,
                  event->type == ETCDSERVERPB__EVENT__EVENT_TYPE__DELETE, kv.create_rev,
                  kv.version, kv.lease, kv.key.len, kv.value.len);
    (void)fwrite(kv.key.data, 1, kv.key.len, h->out);
    if (kv.value.len > 0) /* a deletion has none */
        (void)fwrite(kv.value.data, 1, kv.value.len, h->out);
    (void)fputc('\n', h->out);
    h->told = kv.mod_rev;
}

static void on_events(size_t range, const Etcdserverpb__WatchResponse *message, bool last,
                      void *arg)
{
    struct historian *h = arg;

    (void)range;
    (void)last;
    for (size_t i = 0; i < message->n_events; i++)
        write_down(h, message->events[i]);
    if (fflush(h->out) != 0)
        abort();
}

static void on_end(int err, const char *message, void *arg);

static void on_again(uv_timer_t *timer)
{
    static const struct hf_watch_handler HANDLER = { .on_live = on_live,
                                                     .on_events = on_events,
                                                     .on_end = on_end };
    struct historian *h = timer->data;
    struct hf_watch_range range = { .bounds = &h->everything, .start_rev = h->told + 1 };
    int err = hf_watch_open(h->etcd,
                            &(struct hf_watch_config){ .ranges = &range,
                                                       .range_count = 1,
                                                       .probe_every = PATIENCE_MS,
                                                       .probe_timeout = PATIENCE_MS,
                                                       .pending_bytes = PENDING_BYTES,
                                                       .handler = &HANDLER,
                                                       .arg = h },
                            &h->watch);

    if (err != HF_OK)
        (void)uv_timer_start(&h->again, on_again, AGAIN_MS, 0);
}

static void on_end(int err, const char *message, void *arg)
{
    struct historian *h = arg;

    h->watch = NULL;
    if (err == HF_ECOMPACT || err == HF_ELIMIT) {
        (void)fprintf(stderr, "historian: %s: %s\n", hf_err_name(err), message);
        exit(EXIT_FAILURE);
    }
    (void)uv_timer_start(&h->again, on_again, AGAIN_MS, 0);
}

static void on_stop(uv_signal_t *stop, int number)
{
    (void)number;
    uv_stop(stop->loop);
}

static int start(struct historian *h, const char *endpoint)
{
    uv_timer_t *timers[] = { &h->ask, &h->again };
    struct hf_key_range everything = { .key = hf_bytes_of(""), .prefix = true };
    struct hf_etcd_config cfg = { .endpoints = &endpoint,
                                  .endpoint_count = 1,
                                  .timeout = PATIENCE_MS };
    int rc = hf_range_bounds_init(&h->everything, &everything);

    if (rc == HF_OK)
        rc = hf_etcd_new(&h->loop, &cfg, &h->etcd, NULL);
    if (rc != HF_OK)
        return rc;
    for (size_t i = 0; i < 2; i++) {
        (void)uv_timer_init(&h->loop, timers[i]);
        timers[i]->data = h;
    }
    (void)uv_signal_init(&h->loop, &h->stop);
    (void)uv_signal_start(&h->stop, on_stop, SIGTERM);
    (void)uv_timer_start(&h->ask, on_ask, 0, ASK_EVERY_MS);
    (void)uv_timer_start(&h->again, on_again, 0, 0);
    return HF_OK;
}

static void on_closed(void *arg)
{
    (void)arg;
}

static void finish(struct historian *h)
{
    hf_watch_close(h->watch);
    uv_close((uv_handle_t *)&h->ask, NULL);
    uv_close((uv_handle_t *)&h->again, NULL);
    uv_close((uv_handle_t *)&h->stop, NULL);
    hf_etcd_close(h->etcd, on_closed, NULL);
    (void)uv_run(&h->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&h->loop);
    hf_range_bounds_done(&h->everything);
    free(h->asked);
    (void)fclose(h->out);
}

int main(int argc, char *argv[])
{
    struct historian h = { .out = argc == 3 ? fopen(argv[2], "we") : NULL };

    if (h.out == NULL || uv_loop_init(&h.loop) != 0 || start(&h, argv[1]) != HF_OK) {
        (void)fprintf(stderr, "usage: historian ENDPOINT FILE: cannot start\n");
        return EXIT_FAILURE;
    }
    (void)uv_run(&h.loop, UV_RUN_DEFAULT);
    finish(&h);
    return EXIT_SUCCESS;
}
