/* bench_etcd.c - our etcd client beside Go's clientv3, in one run against one etcd.
 *
 * Every figure is taken in a fresh process, ours and the peer's in turn, several times; the
 * median counts. What matters is the ratio: both share the machine and its noise. */
#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "bench/as_test.h"
#include "bench/ours.h"
#include "support/etcd.h"

/* One process in nine may be unlucky, or four, and the median does not show it. */
enum { ROUNDS = 9, EVENTS = 50000 };

static char self[PATH_MAX];
static char peer[PATH_MAX + 16];
static bool as_json;
static const char *only; /* one command or figure; NULL: all */

static void die(const char *fmt, ...) HF_PRINTF(1, 2) __attribute__((noreturn));
static void die(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)fputs("bench_etcd: ", stderr);
    (void)vfprintf(stderr, fmt, args);
    (void)fputc('\n', stderr);
    va_end(args);
    exit(1);
}

/* A child whose output is read. */
struct child {
    FILE *out;
    pid_t pid;
};

static struct child start(const char *const argv[])
{
    struct child child;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0 || (child.pid = fork()) < 0)
        die("no process for %s", argv[0]);
    if (child.pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execv(argv[0], (char *const *)argv);
        _exit(127);
    }
    (void)close(ends[1]);
    child.out = fdopen(ends[0], "r");
    if (child.out == NULL)
        die("no memory for the output of %s", argv[0]);
    return child;
}

/* The last line that the child prints, parsed, once it has ended. */
static json_t *finish(struct child *child, const char *what)
{
    char line[1024], last[1024] = "";
    json_t *figures;
    int status;

    while (fgets(line, sizeof line, child->out) != NULL)
        (void)memcpy(last, line, sizeof last);
    (void)fclose(child->out);
    if (waitpid(child->pid, &status, 0) != child->pid || status != 0)
        die("%s failed with status %d", what, status);
    figures = json_loads(last, 0, NULL);
    if (figures == NULL)
        die("%s did not say what it measured: %s", what, last);
    return figures;
}

static void wait_ready(struct child *child, const char *what)
{
    char line[64] = "";

    if (fgets(line, sizeof line, child->out) == NULL || strcmp(line, "ready\n") != 0)
        die("%s is not ready: %s", what, line);
}

static void write_keys(const char *endpoint, const char *prefix, unsigned count, unsigned keys)
{
    char counts[2][16];
    const char *argv[] = { self, "write", endpoint, prefix, counts[0], counts[1], NULL };
    struct child child;
    int status;

    (void)snprintf(counts[0], sizeof counts[0], "%u", count);
    (void)snprintf(counts[1], sizeof counts[1], "%u", keys);
    child = start(argv);
    (void)fclose(child.out);
    if (waitpid(child.pid, &status, 0) != child.pid || status != 0)
        die("the writer failed");
}

/* One measurement: a command of both programs, with an optional load while it runs. */
struct measurement {
    const char *command;
    const char *arguments[3];
    bool with_load;
};

static json_t *measure_side(const struct measurement *m, const char *endpoint, bool ours)
{
    const char *argv[] = {
        self, "ours", m->command, endpoint, m->arguments[0], m->arguments[1], m->arguments[2],
        NULL
    };
    struct child child;

    if (!ours) { /* the peer is one program for one purpose */
        argv[1] = peer;
        child = start(argv + 1);
    } else {
        child = start(argv);
    }

    if (m->with_load) {
        wait_ready(&child, m->command);
        write_keys(endpoint, m->arguments[0], EVENTS, 1000);
    }
    return finish(&child, m->command);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(json_t *const figures[ROUNDS], const char *member)
{
    double values[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        json_t *value = json_object_get(figures[i], member);

        if (!json_is_number(value))
            die("a figure is missing: %s", member);
        values[i] = json_number_value(value);
    }
    qsort(values, ROUNDS, sizeof values[0], by_value);
    return values[ROUNDS / 2];
}

/* A figure taken from a measurement. Less is better unless `rate`. */
struct figure {
    const char *name;
    const char *member;
    const char *unit;
    double target; /* highest ratio ours : peer that is good enough; 0: for information */
    bool rate;
};

static void report(const struct figure *figure, double ours, double theirs)
{
    double ratio = figure->rate ? theirs / ours : ours / theirs;
    bool met = figure->target <= 0 || ratio <= figure->target;

    if (as_json)
        printf("{\"name\":\"%s\",\"ours\":%.4f,\"peer\":%.4f,\"peerName\":\"go-clientv3\","
               "\"unit\":\"%s\",\"ratio\":%.3f,\"target\":%.2f,\"met\":%s}\n",
               figure->name, ours, theirs, figure->unit, ratio, figure->target,
               met ? "true" : "false");
    else if (figure->target > 0)
        printf("%-28s %12.3f %12.3f %-8s %7.2f   <= %.2f  %s\n", figure->name, ours, theirs,
               figure->unit, ratio, figure->target, met ? "met" : "MISSED");
    else
        printf("%-28s %12.3f %12.3f %-8s %7.2f\n", figure->name, ours, theirs, figure->unit,
               ratio);
    (void)fflush(stdout);
}

static bool is_wanted(const struct measurement *m, const struct figure *figures, size_t count)
{
    if (only == NULL || strcmp(only, m->command) == 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(only, figures[i].name) == 0)
            return true;
    }
    return false;
}

static void compare(const struct measurement *m, const char *endpoint,
                    const struct figure *figures, size_t count)
{
    json_t *ours[ROUNDS], *theirs[ROUNDS];

    if (!is_wanted(m, figures, count))
        return;
    for (int i = 0; i < ROUNDS; i++) {
        (void)fprintf(stderr, "measuring: %s %s %s, round %d of %d\n", m->command,
                      m->arguments[0], m->arguments[1] != NULL ? m->arguments[1] : "", i + 1,
                      ROUNDS);
        /* Who comes second finds what the first one left of etcd's caches and garbage. */
        if (i % 2 == 0)
            ours[i] = measure_side(m, endpoint, true);
        theirs[i] = measure_side(m, endpoint, false);
        if (i % 2 != 0)
            ours[i] = measure_side(m, endpoint, true);
    }
    for (size_t i = 0; i < count; i++)
        report(&figures[i], median(ours, figures[i].member), median(theirs, figures[i].member));
    for (int i = 0; i < ROUNDS; i++) {
        json_decref(ours[i]);
        json_decref(theirs[i]);
    }
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const struct figure LATENCY[] = {
    { "put_to_event_p50", "put_p50_ms", "ms", 1.0, false },
    { "put_to_event_p99", "put_p99_ms", "ms", 0, false },
    { "revoke_to_delete_p50", "revoke_p50_ms", "ms", 1.0, false },
    { "revoke_to_delete_p99", "revoke_p99_ms", "ms", 0, false },
};
static const struct figure MIRROR_10K[] = {
    { "mirror_10k_synced", "synced_ms", "ms", 1.0, false },
    { "mirror_10k_rss", "rss_kb", "kB", 0, false },
};
static const struct figure MIRROR_100K[] = {
    { "mirror_100k_synced", "synced_ms", "ms", 1.0, false },
    { "mirror_100k_cpu", "cpu_ms", "ms", 0, false },
    { "mirror_100k_rss", "rss_kb", "kB", 0.5, false },
    { "mirror_100k_peak", "peak_kb", "kB", 0, false },
};
/* The peer at its leanest: pages of 10,000 keys instead of one Get of everything. */
static const struct figure MIRROR_100K_PAGES[] = {
    { "mirror_100k_pages_synced", "synced_ms", "ms", 1.0, false },
    { "mirror_100k_pages_rss", "rss_kb", "kB", 0, false },
};
/* Both keep only keys and revisions, which is all that is needed to follow changes. */
static const struct figure MIRROR_100K_REVISIONS[] = {
    { "mirror_100k_revisions_rss", "rss_kb", "kB", 0, false },
};
static const struct figure EVENT_FLOW[] = {
    { "events_per_second", "events_per_s", "/s", 0, true },
    { "cpu_per_event", "cpu_us_per_event", "us", 1.0, false },
};
static const struct figure OPERATIONS[] = {
    { "puts_per_second", "puts_per_s", "/s", 0, true },
    { "cpu_per_put", "cpu_us_per_put", "us", 0, false },
};
static const struct figure IDLE[] = {
    { "idle_rss", "rss_kb", "kB", 0, false },
    { "idle_cpu", "cpu_ms_per_min", "ms/min", 0, false },
};

static void run_all(const char *endpoint)
{
    (void)fprintf(stderr, "writing 111,000 keys\n");
    write_keys(endpoint, "/10k/", 10000, 10000);
    write_keys(endpoint, "/100k/", 100000, 100000);
    write_keys(endpoint, "/events/", 1000, 1000);
    if (!as_json)
        printf("%-28s %12s %12s %-8s %7s   target\n", "", "ours", "go", "", "ratio");
    compare(&(struct measurement){ .command = "latency", .arguments = { "1000" } }, endpoint,
            LATENCY, COUNT(LATENCY));
    compare(&(struct measurement){ "mirror", { "/10k/", "values", "0" }, false }, endpoint,
            MIRROR_10K, COUNT(MIRROR_10K));
    compare(&(struct measurement){ "mirror", { "/100k/", "values", "0" }, false }, endpoint,
            MIRROR_100K, COUNT(MIRROR_100K));
    compare(&(struct measurement){ "mirror", { "/100k/", "values", "10000" }, false }, endpoint,
            MIRROR_100K_PAGES, COUNT(MIRROR_100K_PAGES));
    compare(&(struct measurement){ "mirror", { "/100k/", "revisions", "10000" }, false },
            endpoint, MIRROR_100K_REVISIONS, COUNT(MIRROR_100K_REVISIONS));
    compare(&(struct measurement){ .command = "events",
                                   .arguments = { "/events/", "50000" },
                                   .with_load = true },
            endpoint, EVENT_FLOW, COUNT(EVENT_FLOW));
    compare(&(struct measurement){ .command = "ops", .arguments = { "3000" } }, endpoint,
            OPERATIONS, COUNT(OPERATIONS));
    compare(&(struct measurement){ .command = "idle", .arguments = { "6" } }, endpoint, IDLE,
            COUNT(IDLE));
}

START_TEST(bench)
{
    const char *const flags[] = { "--backend-batch-limit=500", NULL };
    struct hft_etcd server;

    hft_etcd_start(&server, &(struct hft_etcd_options){ .extra_flags = flags });
    run_all(server.endpoint);
    hft_etcd_done(&server);
}
END_TEST

static void find_programs(void)
{
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (len < 0)
        die("cannot find itself");
    (void)snprintf(peer, sizeof peer, "%s", self);
    slash = strrchr(peer, '/');
    (void)snprintf(slash, sizeof peer - (size_t)(slash - peer), "/etcd_peer");
    if (access(peer, X_OK) != 0)
        die("%s is missing: ./dev bench etcd builds it with Go", peer);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "ours") == 0)
        return hfb_ours(argc - 2, argv + 2);
    if (argc > 2 && strcmp(argv[1], "write") == 0)
        return hfb_writer(argc - 2, argv + 2);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            as_json = true;
        else
            only = argv[i];
    }
    find_programs();
    return hfb_run_as_test(bench, CK_SILENT);
}
