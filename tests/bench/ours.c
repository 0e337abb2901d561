#include "bench/ours.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "etcd/client.h"
#include "etcd/lease.h"
#include "etcd/mirror.h"

enum { SETTLE_MS = 3000 }; /* memory is what a daemon keeps, not what it needed for a moment */

static uv_loop_t *loop;
static struct hf_etcd *etcd;

/* Small tools. */

static double now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double cpu_ms(void)
{
    struct rusage use;

    (void)getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

/* A line of /proc/self/status, in kB. */
static long memory_kb(const char *name)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    long kb = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0)
            kb = strtol(line + strlen(name) + 1, NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
    return kb;
}

static void die(const char *what, int err)
{
    (void)fprintf(stderr, "bench_etcd: %s: %s\n", what, hf_err_text(err));
    exit(1);
}

static void must(int err, const char *what)
{
    if (err != HF_OK)
        die(what, err);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(double *values, size_t count, double share)
{
    qsort(values, count, sizeof *values, by_value);
    return values[(size_t)((double)(count - 1) * share)];
}

static void open_client(const char *endpoint)
{
    struct hf_error err = { "" };

    hf_alloc_tune();
    loop = uv_default_loop();
    if (hf_etcd_new(loop,
                    &(struct hf_etcd_config){ .endpoints = &endpoint, .endpoint_count = 1 },
                    &etcd, &err) != HF_OK) {
        (void)fprintf(stderr, "bench_etcd: %s\n", err.text);
        exit(1);
    }
}

static void run_until(const bool *done)
{
    while (!*done)
        (void)uv_run(loop, UV_RUN_ONCE);
}

static void on_time(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void run_for(unsigned span_ms)
{
    uv_timer_t timer;
    bool done = false;

    (void)uv_timer_init(loop, &timer);
    timer.data = &done;
    (void)uv_timer_start(&timer, on_time, span_ms, 0);
    run_until(&done);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(loop, UV_RUN_NOWAIT);
}

static struct hf_mirror *open_mirror(const char *prefix, bool keep_values,
                                     hf_mirror_fn on_event, void *arg)
{
    struct hf_key_range range = { .key = hf_bytes_of(prefix), .prefix = true };
    struct hf_mirror *mirror = NULL;

    must(hf_mirror_new(etcd,
                       &(struct hf_mirror_config){ .ranges = &range,
                                                   .range_count = 1,
                                                   .on_event = on_event,
                                                   .arg = arg,
                                                   .keep_values = keep_values },
                       &mirror, NULL),
         "mirror");
    return mirror;
}

/* put -> watch event, revoke -> DELETE: the time from the call to the event's callback. */

struct latency {
    bool synced, seen;
    double at;
};

static void on_latency_event(const struct hf_mirror_event *event, void *arg)
{
    struct latency *latency = arg;

    latency->synced |= event->kind == HF_MIRROR_SYNCED;
    latency->seen = true;
    latency->at = now_ms();
}

static void must_write(const struct hf_write_result *result, void *arg)
{
    (void)arg;
    must(result->result.err, "write");
}

static void on_grant(const struct hf_grant_result *result, void *arg)
{
    must(result->result.err, "grant");
    *(bool *)arg = true;
}

static double time_put(struct latency *latency, int64_t lease)
{
    double start = now_ms();

    latency->seen = false;
    must(hf_etcd_put(etcd, hf_bytes_of("/latency/key"), hf_bytes_of("value"), lease, must_write,
                     NULL, NULL),
         "put");
    run_until(&latency->seen);
    return latency->at - start;
}

static double time_revoke(struct latency *latency)
{
    bool granted = false;
    int64_t lease;
    double start;

    must(hf_id_random_63(&lease), "random");
    must(hf_etcd_lease_grant(etcd, lease, 60, 0, on_grant, &granted, NULL), "grant");
    run_until(&granted);
    (void)time_put(latency, lease);
    start = now_ms();
    latency->seen = false;
    must(hf_etcd_lease_revoke(etcd, lease, must_write, NULL, NULL), "revoke");
    run_until(&latency->seen);
    return latency->at - start;
}

static void measure_latency(unsigned count)
{
    double *puts = hf_calloc(count, sizeof *puts);
    double *revokes = hf_calloc(count, sizeof *revokes);
    struct latency latency = { 0 };

    (void)open_mirror("/latency/", true, on_latency_event, &latency);
    run_until(&latency.synced);
    for (unsigned i = 0; i < 50; i++) /* warm */
        (void)time_put(&latency, HF_NO_LEASE);
    for (unsigned i = 0; i < count; i++)
        puts[i] = time_put(&latency, HF_NO_LEASE);
    for (unsigned i = 0; i < count; i++)
        revokes[i] = time_revoke(&latency);
    printf("{\"put_p50_ms\":%.4f,\"put_p99_ms\":%.4f,\"revoke_p50_ms\":%.4f,"
           "\"revoke_p99_ms\":%.4f}\n",
           percentile(puts, count, 0.5), percentile(puts, count, 0.99),
           percentile(revokes, count, 0.5), percentile(revokes, count, 0.99));
    free(puts);
    free(revokes);
}

/* List everything, then watch. */

struct mirroring {
    bool synced;
    unsigned puts;
};

static void on_mirror_event(const struct hf_mirror_event *event, void *arg)
{
    struct mirroring *mirroring = arg;

    mirroring->puts += event->kind == HF_MIRROR_PUT;
    mirroring->synced |= event->kind == HF_MIRROR_SYNCED;
}

static void measure_mirror(const char *prefix, bool keep_values)
{
    struct mirroring mirroring = { 0 };
    double cpu = cpu_ms(), start = now_ms(), synced;

    (void)open_mirror(prefix, keep_values, on_mirror_event, &mirroring);
    run_until(&mirroring.synced);
    synced = now_ms() - start;
    cpu = cpu_ms() - cpu;
    run_for(SETTLE_MS);
    printf("{\"keys\":%u,\"synced_ms\":%.2f,\"cpu_ms\":%.2f,\"rss_kb\":%ld,\"peak_kb\":%ld}\n",
           mirroring.puts, synced, cpu, memory_kb("VmRSS"), memory_kb("VmHWM"));
}

/* Says "ready" when it watches, then counts. */

struct counting {
    bool synced, done;
    unsigned wanted, seen;
    double first_at, last_at, cpu;
};

static void on_counted_event(const struct hf_mirror_event *event, void *arg)
{
    struct counting *counting = arg;

    if (event->kind == HF_MIRROR_SYNCED)
        counting->synced = true;
    if (!counting->synced || event->kind != HF_MIRROR_PUT)
        return;
    if (counting->seen++ == 0) {
        counting->first_at = now_ms();
        counting->cpu = cpu_ms();
    }
    if (counting->seen == counting->wanted) {
        counting->last_at = now_ms();
        counting->cpu = cpu_ms() - counting->cpu;
        counting->done = true;
    }
}

static void measure_events(const char *prefix, unsigned count)
{
    struct counting counting = { .wanted = count };
    struct hf_mirror *mirror = open_mirror(prefix, true, on_counted_event, &counting);

    while (!counting.synced || hf_mirror_get_stats(mirror).opens == 0)
        (void)uv_run(loop, UV_RUN_ONCE);
    printf("ready\n");
    (void)fflush(stdout);
    run_until(&counting.done);
    printf("{\"events\":%u,\"events_per_s\":%.0f,\"cpu_us_per_event\":%.3f}\n", count,
           count / ((counting.last_at - counting.first_at) / 1e3), counting.cpu * 1e3 / count);
}

/* One put after the other. */

static void on_put_done(const struct hf_write_result *result, void *arg)
{
    must(result->result.err, "put");
    *(bool *)arg = true;
}

static void measure_ops(unsigned count)
{
    double cpu = cpu_ms(), start = now_ms();

    for (unsigned i = 0; i < count; i++) {
        bool done = false;

        must(hf_etcd_put(etcd, hf_bytes_of("/ops/key"), hf_bytes_of("value"), HF_NO_LEASE,
                         on_put_done, &done, NULL),
             "put");
        run_until(&done);
    }
    printf("{\"puts_per_s\":%.0f,\"cpu_us_per_put\":%.2f}\n",
           count / ((now_ms() - start) / 1e3), (cpu_ms() - cpu) * 1e3 / count);
}

/* A lease of 6 s renewed every 2 s, and one watch, doing nothing else. */

static struct hf_renewer *renewer;

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    (void)arg;
    must(renewal->err, "renew");
}

static void on_renew_tick(uv_timer_t *timer)
{
    (void)timer;
    must(hf_renewer_send(renewer, 1000), "renew");
}

static void measure_idle(unsigned seconds)
{
    struct mirroring mirroring = { 0 };
    bool granted = false;
    uv_timer_t every;
    int64_t lease;
    double cpu;

    must(hf_id_random_63(&lease), "random");
    must(hf_etcd_lease_grant(etcd, lease, 6, 0, on_grant, &granted, NULL), "grant");
    run_until(&granted);
    must(hf_etcd_put(etcd, hf_bytes_of("/idle/key"), hf_bytes_of(""), lease, must_write, NULL,
                     NULL),
         "put");
    (void)open_mirror("/idle/", true, on_mirror_event, &mirroring);
    run_until(&mirroring.synced);
    must(hf_renewer_new(etcd, lease, on_renewal, NULL, &renewer), "renewer");
    (void)uv_timer_init(loop, &every);
    (void)uv_timer_start(&every, on_renew_tick, 0, 2000);
    cpu = cpu_ms();
    run_for(seconds * 1000);
    printf("{\"rss_kb\":%ld,\"cpu_ms_per_min\":%.2f}\n", memory_kb("VmRSS"),
           (cpu_ms() - cpu) * 60 / seconds);
}

/* The load for both sides. */

struct writing {
    const char *prefix;
    unsigned count, keys, started, finished;
    bool done;
};

static void on_written(const struct hf_write_result *result, void *arg);

static void write_next(struct writing *writing)
{
    char key[128], value[400];
    unsigned number = writing->started++ % writing->keys;

    (void)snprintf(key, sizeof key, "%s%08u", writing->prefix, number);
    (void)snprintf(value, sizeof value, "%0365u", number);
    must(hf_etcd_put(etcd, hf_bytes_of(key), hf_bytes_of(value), HF_NO_LEASE, on_written,
                     writing, NULL),
         "put");
}

static void on_written(const struct hf_write_result *result, void *arg)
{
    struct writing *writing = arg;

    must(result->result.err, result->result.message);
    writing->done = ++writing->finished == writing->count;
    if (writing->started < writing->count)
        write_next(writing);
}

static unsigned number(const char *text)
{
    uint64_t value;

    if (text == NULL || hf_parse_u64(text, 1, 100000000, &value) != HF_OK) {
        (void)fprintf(stderr, "bench_etcd: '%s' is not a number\n", text != NULL ? text : "");
        exit(2);
    }
    return (unsigned)value;
}

int hfb_writer(int argc, char **argv)
{
    struct writing writing = { 0 };

    if (argc != 4) {
        (void)fprintf(stderr, "usage: write ENDPOINT PREFIX COUNT KEYS\n");
        return 2;
    }
    writing.prefix = argv[1];
    writing.count = number(argv[2]);
    writing.keys = number(argv[3]);
    open_client(argv[0]);
    for (unsigned i = 0; i < 128 && i < writing.count; i++)
        write_next(&writing);
    run_until(&writing.done);
    return 0;
}

int hfb_ours(int argc, char **argv)
{
    const char *what = argc > 0 ? argv[0] : "";

    if (argc < 3) {
        (void)fprintf(stderr, "usage: latency|mirror|events|ops|idle ENDPOINT ARGUMENT…\n");
        return 2;
    }
    open_client(argv[1]);
    if (strcmp(what, "latency") == 0)
        measure_latency(number(argv[2]));
    else if (strcmp(what, "mirror") == 0)
        measure_mirror(argv[2], argc > 3 && strcmp(argv[3], "values") == 0);
    else if (strcmp(what, "events") == 0)
        measure_events(argv[2], number(argc > 3 ? argv[3] : NULL));
    else if (strcmp(what, "ops") == 0)
        measure_ops(number(argv[2]));
    else if (strcmp(what, "idle") == 0)
        measure_idle(number(argv[2]));
    return 0;
}
