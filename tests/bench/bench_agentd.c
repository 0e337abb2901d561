/* bench_agentd.c - what it costs to look after agents, and how soon an end is known.
 *
 * Latency: SIGKILL to an agent until its exit record is seen by another client of etcd. That
 * takes one transaction; what the same transaction takes by itself, in the same run, is the
 * yardstick.
 *
 * Idle: agentd with 1, 10, 100 and 1,000 agents that do nothing, beside whoever does part of
 * its work, all at the same time and over the same windows. Ours are keeper, link and scribe,
 * never the agents; processor time is what the kernel counted for all of their threads, memory
 * what smaps_rollup says: RSS, in which libraries that others have as well count in full, and
 * PSS, in which they count in part. What 100 agents need is compared by both, since Go's
 * session has a process for each. All leases have the same TTL.
 *
 * Pings: 100 agents that listen and answer, each a process of its own, every two seconds; what
 * they have answered is counted.
 *
 * On a machine that is busy with other things every figure of time grows, since whoever wakes
 * up finds the processor's caches cold; and who is killed waits for a processor to die on,
 * which kill_to_death tells apart. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "bench/agentd_peers.h"
#include "bench/agentd_stage.h"
#include "bench/as_test.h"
#include "bench/recovery.h"

enum {
    MOST_ROUNDS = 100,
    QUICK_ROUNDS = 20,
    SIZES = 4,
    SETTLE_MS = 6000, /* until what was needed to begin is over */
    QUICK_SETTLE_MS = 3000,
    REST_MS = 50,
    WAIT_MS = 180000,
};

#define KB_PER_MB 1024.0

static bool as_json, quick, any_peers;
static const char *only;
static char agent_program[PATH_MAX];

/* Figures. */

struct series {
    double values[MOST_ROUNDS];
    size_t count;
};

static void add(struct series *series, double value)
{
    ck_assert_uint_lt(series->count, MOST_ROUNDS);
    series->values[series->count++] = value;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double percentile(struct series *series, unsigned percent)
{
    ck_assert_uint_gt(series->count, 0);
    qsort(series->values, series->count, sizeof series->values[0], by_value);
    return series->values[(series->count - 1) * percent / 100];
}

struct figure {
    const char *name;
    const char *unit;
    double ours;
    double peer;
    const char *peer_name;
    double target; /* highest ratio that is good enough; 0: for information */
};

static void report(const struct figure *f)
{
    double ratio = f->peer > 0 ? f->ours / f->peer : 0;
    bool met = f->target <= 0 || (f->peer > 0 && ratio <= f->target);

    if (as_json)
        printf("{\"name\":\"%s\",\"ours\":%.4f,\"peer\":%.4f,\"peerName\":\"%s\","
               "\"unit\":\"%s\",\"ratio\":%.4f,\"target\":%.2f,\"met\":%s}\n",
               f->name, f->ours, f->peer, f->peer_name, f->unit, ratio, f->target,
               met ? "true" : "false");
    else if (f->target > 0)
        printf("%-28s %10.3f %10.3f %-7s %8.3f   <= %.2f  %-6s  %s\n", f->name, f->ours,
               f->peer, f->unit, ratio, f->target, met ? "met" : "MISSED", f->peer_name);
    else
        printf("%-28s %10.3f %10.3f %-7s %8.3f                    %s\n", f->name, f->ours,
               f->peer, f->unit, ratio, f->peer_name);
    (void)fflush(stdout);
}

/* Against a bound that is none of a peer's. */
static void hold(const char *name, const char *unit, double ours, double bound,
                 const char *of_what)
{
    report(&(struct figure){ name, unit, ours, bound, of_what, 1.0 });
}

/* Idle. */

struct cost {
    double cpu; /* milliseconds a minute; the median of the windows */
    struct hfb_memory memory;
};

struct subject {
    struct hfb_idle idle;
    struct hfb_crowd crowd;
    struct series cpu;
    int64_t before_ns;
    bool is_there;
    struct cost cost;
};

struct window {
    unsigned count;
    hf_ms span;
};

enum { OURS = HFB_IDLE_PEERS, SUBJECTS };
static struct subject subjects[SUBJECTS];

static const unsigned COUNTS[SIZES] = { 1, 10, 100, 1000 };

/* Who has little to do is looked at for longer. */
static struct window window_for(unsigned count)
{
    if (quick)
        return (struct window){ 2, 4000 };
    return count == 1 ? (struct window){ 6, 15000 } : (struct window){ 3, 10000 };
}

struct waiting {
    struct hfb_stage *stage;
    enum hfb_idle_peer peer;
    unsigned count;
};

static bool is_complete(void *arg)
{
    const struct waiting *waiting = arg;

    return waiting->peer == HFB_IDLE_GO ? waiting->stage->sessions >= waiting->count
                                        : hfb_idle_is_complete(&subjects[waiting->peer].idle,
                                                               waiting->peer, waiting->count);
}

/* In a hurry, a hundred are compared with Go's alone, whose tenth they may cost. */
static bool is_asked_for(enum hfb_idle_peer peer, unsigned count)
{
    return !quick || count <= 10 || peer == HFB_IDLE_GO;
}

static bool is_apart(enum hfb_idle_peer peer, unsigned count)
{
    return count >= 1000 && hfb_idle_is_heavy(peer);
}

/* Who was not there has not been compared with: that is a target missed. */
static void report_missing(enum hfb_idle_peer peer, unsigned count)
{
    char name[64];

    (void)fprintf(stderr, "%s is not installed: ./dev bench agentd does it\n",
                  hfb_idle_name(peer));
    (void)snprintf(name, sizeof name, "missing_%u", count);
    if (!any_peers)
        hold(name, "peers", 1, 0, hfb_idle_name(peer));
}

static void start_peer(struct hfb_stage *stage, enum hfb_idle_peer peer, unsigned count)
{
    struct subject *subject = &subjects[peer];
    struct waiting waiting = { stage, peer, count };

    subject->is_there = is_asked_for(peer, count) &&
                        hfb_idle_start(&subject->idle, peer, stage->dir.path, agent_program,
                                       &stage->etcd, HFB_TTL_S, count);
    if (is_asked_for(peer, count) && !subject->is_there)
        report_missing(peer, count);
    ck_assert_msg(peer != HFB_IDLE_GO || subject->is_there || !is_asked_for(peer, count),
                  "without Go's session there is nothing to hold ours to");
    if (subject->is_there)
        hft_loop_until(&stage->client.loop, is_complete, &waiting, WAIT_MS,
                       hfb_idle_name(peer));
}

static void find_crowds(struct hfb_stage *stage)
{
    for (unsigned i = 0; i < SUBJECTS; i++) {
        struct subject *subject = &subjects[i];

        subject->crowd = (struct hfb_crowd){ .count = 0 };
        subject->cpu = (struct series){ .count = 0 };
        if (i == OURS)
            hfb_stage_crowd(stage, &subject->crowd);
        else if (subject->is_there)
            hfb_crowd_find(&subject->crowd, subject->idle.roots, subject->idle.root_count);
    }
}

/* All of them over the same span. */
static void measure_window(struct hfb_stage *stage, hf_ms span)
{
    int64_t begun[SUBJECTS];

    for (unsigned i = 0; i < SUBJECTS; i++) {
        begun[i] = hfb_now_ns();
        subjects[i].before_ns = hfb_crowd_cpu_ns(&subjects[i].crowd);
    }
    hfb_stage_rest(stage, span);
    for (unsigned i = 0; i < SUBJECTS; i++) {
        int64_t used = hfb_crowd_cpu_ns(&subjects[i].crowd) - subjects[i].before_ns;

        add(&subjects[i].cpu, (double)used / (double)(hfb_now_ns() - begun[i]) * 60000);
    }
}

static void measure(struct hfb_stage *stage, struct window window)
{
    hfb_stage_rest(stage, quick ? QUICK_SETTLE_MS : SETTLE_MS);
    find_crowds(stage);
    for (unsigned i = 0; i < window.count; i++)
        measure_window(stage, window.span);
    hfb_stage_demand_all(stage);
    for (unsigned i = 0; i < SUBJECTS; i++) {
        subjects[i].cost = (struct cost){ .cpu = percentile(&subjects[i].cpu, 50),
                                          .memory = hfb_crowd_memory(&subjects[i].crowd) };
    }
}

static void report_peers(unsigned count)
{
    const struct cost *ours = &subjects[OURS].cost;
    char name[64];

    for (enum hfb_idle_peer p = 0; p < HFB_IDLE_PEERS; p++) {
        if (!subjects[p].is_there)
            continue;
        (void)snprintf(name, sizeof name, "idle_cpu_%u", count);
        report(&(struct figure){ name, "ms/min", ours->cpu, subjects[p].cost.cpu,
                                 hfb_idle_name(p), count == 1 && p == HFB_IDLE_GO ? 1.0 : 0 });
        if (count == 1 && p == HFB_IDLE_GO)
            report(&(struct figure){ "idle_cpu_1_goal", "ms/min", ours->cpu,
                                     0.7 * subjects[p].cost.cpu, "0.7 x go session", 0 });
    }
    for (enum hfb_idle_peer p = 0; p < HFB_IDLE_PEERS; p++) {
        if (!subjects[p].is_there)
            continue;
        (void)snprintf(name, sizeof name, "rss_%u", count);
        report(&(struct figure){ name, "MB", ours->memory.rss_kb / KB_PER_MB,
                                 subjects[p].cost.memory.rss_kb / KB_PER_MB, hfb_idle_name(p),
                                 count == 100 && p == HFB_IDLE_GO ? 0.1 : 0 });
        (void)snprintf(name, sizeof name, "pss_%u", count);
        report(&(struct figure){ name, "MB", ours->memory.pss_kb / KB_PER_MB,
                                 subjects[p].cost.memory.pss_kb / KB_PER_MB, hfb_idle_name(p),
                                 count == 100 && p == HFB_IDLE_GO ? 0.1 : 0 });
    }
}

static void report_parts(const struct hfb_stage *stage)
{
    const struct hfb_crowd *crowd = &subjects[OURS].crowd;
    char name[64];

    (void)snprintf(name, sizeof name, "start_%u", stage->options.count);
    report(&(struct figure){ name, "ms", stage->start_ms, stage->options.count, "agents", 0 });
    if (stage->options.count != 1)
        return;
    hold("keeper_rss", "kB", hfb_crowd_largest(crowd, "agentd").rss_kb, 1.5 * KB_PER_MB,
         "1.5 MB");
    report(&(struct figure){ "scribe_rss", "kB",
                             hfb_crowd_largest(crowd, "agentd-scribe").rss_kb, 1.5 * KB_PER_MB,
                             "1.5 MB", 0 });
    hold("link_rss", "kB", hfb_crowd_largest(crowd, "agentd-link").rss_kb, 17 * KB_PER_MB,
         "17 MB");
}

/* What one agent more costs, and that the thousandth costs no more than the hundredth: what all
 * have in common must not hide it. */
static void report_growth(const struct cost costs[SIZES], unsigned size)
{
    unsigned more = COUNTS[size] - COUNTS[0];
    const struct cost *now = &costs[size], *before = &costs[size - 1], *first = &costs[0];
    unsigned few = COUNTS[size - 1] - COUNTS[0], many = COUNTS[size] - COUNTS[size - 1];
    double grown = (now->memory.rss_kb - costs[0].memory.rss_kb) / more;
    char name[64];

    (void)snprintf(name, sizeof name, "rss_per_further_of_%u", COUNTS[size]);
    hold(name, "kB", grown, 64, "64 KiB");
    if (COUNTS[size] < 1000)
        return;
    report(&(struct figure){ "cpu_per_agent_1000", "ms/min", now->cpu / COUNTS[size],
                             before->cpu / COUNTS[size - 1], "of 100", 1.0 });
    report(&(struct figure){ "rss_per_agent_1000", "kB", now->memory.rss_kb / COUNTS[size],
                             before->memory.rss_kb / COUNTS[size - 1], "of 100", 1.0 });
    report(&(struct figure){ "cpu_per_further_1000", "ms/min", (now->cpu - before->cpu) / many,
                             (before->cpu - first->cpu) / few, "of 100", 1.5 });
    report(&(struct figure){
        "rss_per_further_1000", "kB", (now->memory.rss_kb - before->memory.rss_kb) / many,
        (before->memory.rss_kb - first->memory.rss_kb) / few, "of 100", 1.25 });
}

/* Latency: each after the same rest, in turn. */

static void run_latency(struct hfb_stage *stage)
{
    static pid_t agents[MOST_ROUNDS];
    struct series kills = { .count = 0 }, deaths = { .count = 0 }, after = { .count = 0 };
    struct series commits = { .count = 0 }, seen = { .count = 0 };
    size_t rounds = quick ? QUICK_ROUNDS : MOST_ROUNDS;
    double commit, dead, at;

    ck_assert_uint_ge(hfb_crowd_agents(stage->agentd.pid, agents, rounds), rounds);
    (void)hfb_stage_kill(stage, agents[0], &dead); /* now a commit has the length of an exit */
    for (size_t i = 1; i < rounds; i++) {
        if (isatty(STDERR_FILENO))
            (void)fprintf(stderr, "\rkill %zu of %zu", i, rounds - 1);
        hfb_stage_rest(stage, REST_MS);
        add(&kills, hfb_stage_kill(stage, agents[i], &dead));
        add(&deaths, dead);
        add(&after, kills.values[i - 1] - dead);
        hfb_stage_rest(stage, REST_MS);
        add(&commits, hfb_stage_commit(stage, &at));
        add(&seen, at);
    }
    if (isatty(STDERR_FILENO))
        (void)fputc('\n', stderr);
    commit = percentile(&commits, 50);
    report(&(struct figure){ "etcd_commit_p50", "ms", commit, percentile(&seen, 50),
                             "until it is seen", 0 });
    hold("kill_to_exit_p50", "ms", percentile(&kills, 50), 1.5 * commit + 0.2,
         "1.5 x commit + 0.2 ms");
    report(&(struct figure){ "kill_to_death_p50", "ms", percentile(&deaths, 50), 0.2, "0.2 ms",
                             0 });
    report(&(struct figure){ "death_to_exit_p50", "ms", percentile(&after, 50), commit,
                             "commit", 0 });
    report(&(struct figure){ "kill_to_exit_p90", "ms", percentile(&kills, 90),
                             percentile(&commits, 90), "commit", 0 });
}

static bool is_wanted(const char *what)
{
    return only == NULL || strcmp(only, what) == 0;
}

static void stop_peers(void)
{
    for (enum hfb_idle_peer p = 0; p < HFB_IDLE_PEERS; p++) {
        if (subjects[p].is_there)
            hfb_idle_stop(&subjects[p].idle);
        subjects[p].is_there = false;
    }
}

/* Those whose thousand would disturb the others, one after the other. */
static void run_apart(struct hfb_stage *stage, unsigned count)
{
    for (enum hfb_idle_peer p = 0; p < HFB_IDLE_PEERS; p++) {
        if (!is_apart(p, count))
            continue;
        (void)fprintf(stderr, "%u by %s\n", count, hfb_idle_name(p));
        start_peer(stage, p, count);
        measure(stage, window_for(count));
        report_peers(count);
        stop_peers();
    }
}

static void run_size(unsigned size, struct cost costs[SIZES])
{
    unsigned count = COUNTS[size];
    struct hfb_stage stage;
    char word[PATH_MAX + 8];

    (void)fprintf(stderr, "%u agents\n", count);
    (void)snprintf(word, sizeof word, "\"%s\"", agent_program);
    hfb_stage_open(&stage, &(struct hfb_stage_options){ .agent = word, .count = count });
    for (enum hfb_idle_peer p = 0; p < HFB_IDLE_PEERS && is_wanted("idle"); p++) {
        if (!is_apart(p, count))
            start_peer(&stage, p, count);
    }
    if (is_wanted("idle")) {
        measure(&stage, window_for(count));
        costs[size] = subjects[OURS].cost;
        report_parts(&stage);
        report_peers(count);
        if (size > 0)
            report_growth(costs, size);
    }
    stop_peers();
    if (is_wanted("idle"))
        run_apart(&stage, count);
    if (count == 100 && is_wanted("latency")) {
        hfb_stage_rest(&stage, 1000);
        run_latency(&stage);
    }
    hfb_stage_close(&stage);
}

/* Pings. */

static off_t count_pongs(int fd)
{
    struct stat facts;

    ck_assert_int_eq(fstat(fd, &facts), 0);
    return facts.st_size;
}

static void run_pings(void)
{
    char file[] = "/tmp/holdfast-pongs-XXXXXX", word[PATH_MAX + 64];
    HF_CLEANUP_FD int fd = mkstemp(file);
    struct hfb_stage stage;
    int64_t begun;
    off_t before;

    (void)fprintf(stderr, "100 agents that are pinged\n");
    ck_assert_int_ge(fd, 0);
    (void)snprintf(word, sizeof word, "\"%s\", pings, %s", agent_program, file);
    hfb_stage_open(&stage, &(struct hfb_stage_options){ .agent = word, .count = 100 });
    begun = hfb_now_ns();
    before = count_pongs(fd);
    measure(&stage, (struct window){ quick ? 2 : 4, quick ? 4000 : 10000 });
    hold("pings_every", "s",
         100 * (double)(hfb_now_ns() - begun) / 1e9 / (double)(count_pongs(fd) - before + 1),
         2.2, "2 s and a tenth");
    (void)unlink(file);
    hold("pings_cpu_100", "%", subjects[OURS].cost.cpu / 600, 0.4, "0.4 % of a core");
    report(&(struct figure){ "pings_rss_100", "MB",
                             subjects[OURS].cost.memory.rss_kb / KB_PER_MB, 100, "agents", 0 });
    hfb_stage_close(&stage);
}

/* Other ways to run it. */

static void run_variant(const char *what, const struct hfb_stage_options *options,
                        const char *comm, double bound_mb, const char *of_what)
{
    struct hfb_stage stage;
    struct hfb_crowd *crowd = &subjects[OURS].crowd;

    (void)fprintf(stderr, "%s\n", what);
    hfb_stage_open(&stage, options);
    hfb_stage_rest(&stage, quick ? QUICK_SETTLE_MS : SETTLE_MS);
    hfb_stage_demand_all(&stage);
    hfb_stage_crowd(&stage, crowd);
    hold(what, "kB", hfb_crowd_largest(crowd, comm).rss_kb, bound_mb * KB_PER_MB, of_what);
    hfb_stage_close(&stage);
}

static void run_variants(void)
{
    char word[PATH_MAX + 8];

    (void)snprintf(word, sizeof word, "\"%s\"", agent_program);
    run_variant("link_mtls_rss",
                &(struct hfb_stage_options){ .agent = word, .count = 1, .with_mtls = true },
                "agentd-link", 20.5, "20.5 MB");
    run_variant(
        "shim_rss",
        &(struct hfb_stage_options){ .agent = word, .count = 10, .without_cgroups = true },
        "agentd-shim", 1, "1 MB");
}

START_TEST(bench)
{
    struct cost costs[SIZES] = { { .cpu = 0 } };

    if (!as_json)
        printf("%-28s %10s %10s         %8s   target\n", "", "ours", "peer", "ratio");
    for (unsigned i = 0; i < (quick ? 3 : SIZES); i++) {
        if (is_wanted("idle") || (is_wanted("latency") && COUNTS[i] == 100))
            run_size(i, costs);
    }
    if (is_wanted("pings"))
        run_pings();
    if (is_wanted("variants"))
        run_variants();
}
END_TEST

static void find_agent(void)
{
    ssize_t len = readlink("/proc/self/exe", agent_program, sizeof agent_program - 32);
    char *slash;

    if (len > 0 && (slash = strrchr(agent_program, '/')) != NULL)
        (void)snprintf(slash, 32, "/" HFB_AGENT_NAME);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--quick") == 0) {
            quick = true;
        } else if (strcmp(argv[i], "--any-peers") == 0) {
            any_peers = true; /* whoever is installed will do */
        } else if (argv[i][0] != '-') {
            only = argv[i];
        } else {
            (void)fputs("usage: bench_agentd [--json] [--quick] [--any-peers] "
                        "[idle|latency|pings|variants]\n",
                        stderr);
            return 2;
        }
    }
    find_agent();
    return hfb_run_as_test(bench, CK_NORMAL);
}
