/* bench_recovery.c - kill -9 in the middle of a task, until the successor holds its bytes.
 *
 * Ours is the whole way: the death is seen and written, the task reset, a start ordered, the
 * successor registered with the task, and the checkpoint read and verified. The others only
 * start their child again, which reads a file. All take turns in one run, with the same child.
 * Behind that: what a lost host and a lost leader cost. */
#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "bench/as_test.h"
#include "bench/recovery.h"
#include "bench/recovery_fleet.h"
#include "bench/recovery_peers.h"
#include "support/program.h"

enum {
    MOST_ROUNDS = 200,
    AGE_MS = 1200,  /* some pause when their child did not live for a second */
    SLOW_EVERY = 5, /* rounds between two turns of those that take seconds */
    TRACES = 15,
    COMMITS = 100,
    MOST_ENDS = 256, /* of children that hold a connection */
    WAIT_MS = 60000,
};

static bool as_json;
static const char *only;
static unsigned rounds = 30;
static char child_program[PATH_MAX];

/* Whoever told us of itself; killed by its pid. */
struct charge {
    struct hfb_news news;
    unsigned told;
    int fd;
};

static int listener = -1;
static struct charge charges[MOST_ENDS];
static size_t charge_count;
static uint8_t state[HFB_STATE_BYTES];
static char socket_path[HFT_PATH_MAX + 32], state_path[HFT_PATH_MAX + 32];

static struct charge *find_charge(const char *name)
{
    for (size_t i = 0; i < charge_count; i++) {
        if (strcmp(charges[i].news.name, name) == 0)
            return &charges[i];
    }
    ck_assert_uint_lt(charge_count, MOST_ENDS);
    charges[charge_count].fd = -1;
    (void)snprintf(charges[charge_count].news.name, sizeof charges[0].news.name, "%s", name);
    return &charges[charge_count++];
}

static void listen_to_children(const char *dir)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(socket_path, sizeof socket_path, "%s/told", dir);
    (void)snprintf(state_path, sizeof state_path, "%s/state", dir);
    ck_assert_uint_lt(strlen(socket_path), sizeof address.sun_path);
    (void)memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, MOST_ENDS), 0);
    for (size_t i = 0; i < sizeof state; i++)
        state[i] = (uint8_t)(i * 2654435761u >> 13);
    fd = open(state_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, state, sizeof state), sizeof state);
}

/* Takes what children told, without waiting. */
static void hear(void)
{
    int fd;

    while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        struct hfb_news news;
        struct charge *charge;

        if (recv(fd, &news, sizeof news, 0) != (ssize_t)sizeof news) {
            (void)close(fd);
            continue;
        }
        ck_assert_msg(memcmp(news.bytes, state, sizeof state) == 0, "%s has other bytes",
                      news.name);
        charge = find_charge(news.name);
        if (charge->fd >= 0)
            (void)close(charge->fd);
        charge->fd = fd;
        charge->news = news;
        charge->told++;
    }
}

static struct charge *await_told(const char *name, unsigned times)
{
    struct charge *charge = find_charge(name);
    int64_t limit = hfb_now_ns() + WAIT_MS * INT64_C(1000000);

    for (hear(); charge->told < times; hear()) {
        struct pollfd wait = { .fd = listener, .events = POLLIN };

        ck_assert_msg(hfb_now_ns() < limit, "%s was not told of %u times", name, times);
        (void)poll(&wait, 1, 100);
    }
    return charge;
}

/* Everybody has lived so long that nobody pauses before a restart. */
static void await_age(void)
{
    for (;;) {
        struct pollfd wait = { .fd = listener, .events = POLLIN };
        int64_t born = 0, left;

        hear();
        for (size_t i = 0; i < charge_count; i++)
            born = charges[i].news.held_ns > born ? charges[i].news.held_ns : born;
        left = born + AGE_MS * INT64_C(1000000) - hfb_now_ns();
        if (left <= 0)
            return;
        (void)poll(&wait, 1, (int)(left / 1000000) + 1);
    }
}

/* Kills the one of that name and returns how long its successor took, in milliseconds. */
static double measure(const char *name)
{
    struct charge *charge = find_charge(name);
    unsigned told = charge->told;
    int64_t killed = hfb_now_ns();

    ck_assert_int_eq(kill(charge->news.pid, SIGKILL), 0);
    (void)await_told(name, told + 1);
    ck_assert_msg(charge->news.resumed, "%s did not go on", name);
    return (double)(charge->news.held_ns - killed) / 1e6;
}

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

static void report(const char *name, double ours, double theirs, const char *peer,
                   double target)
{
    double ratio = ours / theirs;
    bool met = target <= 0 || ratio <= target;

    if (as_json)
        printf("{\"name\":\"%s\",\"ours\":%.4f,\"peer\":%.4f,\"peerName\":\"%s\","
               "\"unit\":\"ms\",\"ratio\":%.3f,\"target\":%.2f,\"met\":%s}\n",
               name, ours, theirs, peer, ratio, target, met ? "true" : "false");
    else if (target > 0)
        printf("%-26s %10.3f %10.3f ms  %8.3f   <= %.2f  %-6s  %s\n", name, ours, theirs, ratio,
               target, met ? "met" : "MISSED", peer);
    else
        printf("%-26s %10.3f %10.3f ms  %8.3f                    %s\n", name, ours, theirs,
               ratio, peer);
    (void)fflush(stdout);
}

/* What one durable write costs here: a recovery makes three, one after the other. */
static void run_commits(struct hfb_fleet *fleet)
{
    struct series commits = { .count = 0 };

    for (unsigned i = 0; i < COMMITS; i++) {
        int64_t begun = hfb_now_ns();

        (void)hft_put(&fleet->client, "/bench/commit", "value", HF_NO_LEASE);
        add(&commits, (double)(hfb_now_ns() - begun) / 1e6);
    }
    report("etcd_commit_p50", percentile(&commits, 50), 0.5, "floor", 0);
}

/* Recovery. */

static double measure_ours(unsigned agent)
{
    char name[16];

    (void)snprintf(name, sizeof name, HFB_AGENT, agent);
    return measure(name);
}

/* Each after the same rest: who is measured right behind another finds the machine awake. Those
 * that take seconds have their turn last, and seldom. */
static void run_round(unsigned round, struct series *ours, struct series theirs[HFB_PEERS],
                      const pid_t peers[HFB_PEERS])
{
    bool with_slow = round % SLOW_EVERY == 0;

    await_age();
    add(ours, measure_ours(round));
    for (enum hfb_peer p = 0; p < HFB_PEERS; p++) {
        if (peers[p] == 0 || (hfb_peer_is_slow(p) && !with_slow))
            continue;
        await_age();
        add(&theirs[p], measure(hfb_peer_name(p)));
    }
}

static void run_rounds(struct series *ours, struct series theirs[HFB_PEERS],
                       const pid_t peers[HFB_PEERS])
{
    for (unsigned i = 0; i < rounds; i++) {
        (void)fprintf(stderr, "\rround %u of %u", i + 1, rounds);
        run_round(i, ours, theirs, peers);
    }
    (void)fputc('\n', stderr);
}

static void report_recovery(struct series *ours, struct series theirs[HFB_PEERS])
{
    static const double TARGETS[HFB_PEERS] = { [HFB_RUNIT] = 2.0,
                                               [HFB_PM2] = 1.0,
                                               [HFB_S6] = 1.0,
                                               [HFB_SUPERVISOR] = 1.0,
                                               [HFB_MONIT] = 1.0 };
    double p50 = percentile(ours, 50);

    for (enum hfb_peer p = 0; p < HFB_PEERS; p++) {
        if (theirs[p].count > 0)
            report("recovery_p50", p50, percentile(&theirs[p], 50), hfb_peer_name(p),
                   TARGETS[p]);
    }
    report("recovery_p90", percentile(ours, 90), percentile(&theirs[HFB_RUNIT], 90), "runit",
           0);
}

static bool is_told(void *arg)
{
    struct charge *const *charge = arg;

    hear();
    return (*charge)->told > 1;
}

/* Where the time goes: what a watch of our own sees of each step. */
static void trace_recovery(struct hfb_fleet *fleet)
{
    struct hfb_trace traces[TRACES];

    hfb_fleet_watch(fleet);
    for (unsigned i = 0; i < TRACES; i++) {
        char name[16];
        struct charge *charge;

        (void)snprintf(name, sizeof name, HFB_AGENT, rounds + i);
        charge = find_charge(name);
        await_age();
        fleet->trace = (struct hfb_trace){ .killed = hfb_now_ns() };
        ck_assert_int_eq(kill(charge->news.pid, SIGKILL), 0);
        hft_loop_until(&fleet->client.loop, is_told, &charge, WAIT_MS, "the successor");
        fleet->trace.begun = charge->news.main_ns;
        fleet->trace.held = charge->news.held_ns;
        traces[i] = fleet->trace;
    }
    hfb_fleet_unwatch(fleet);
    hfb_trace_print(traces, TRACES, as_json);
}

static void start_peers(const char *dir, pid_t peers[HFB_PEERS])
{
    for (enum hfb_peer p = 0; p < HFB_PEERS; p++) {
        peers[p] = hfb_peer_start(p, dir, child_program, socket_path, state_path);
        if (peers[p] == 0)
            (void)fprintf(stderr, "%s is not installed: ./dev bench recovery does it\n",
                          hfb_peer_name(p));
        else
            (void)await_told(hfb_peer_name(p), 1);
    }
    ck_assert_msg(peers[HFB_RUNIT] != 0 && peers[HFB_PM2] != 0, "nothing to compare with");
}

static void stop_peers(const pid_t peers[HFB_PEERS])
{
    for (enum hfb_peer p = 0; p < HFB_PEERS; p++) {
        if (peers[p] == 0)
            continue;
        (void)kill(peers[p], SIGKILL);
        (void)hft_process_reap(peers[p], WAIT_MS);
    }
    for (size_t i = 0; i < charge_count; i++)
        (void)close(charges[i].fd); /* the children end */
}

static void run_recovery(struct hfb_fleet *fleet)
{
    struct series ours = { .count = 0 }, theirs[HFB_PEERS] = { { .count = 0 } };
    pid_t peers[HFB_PEERS];

    listen_to_children(fleet->dir.path);
    hfb_fleet_start_agents(fleet, child_program, socket_path, state_path, rounds + TRACES);
    for (unsigned i = 0; i < rounds + TRACES; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, HFB_AGENT, i);
        (void)await_told(name, 1);
    }
    start_peers(fleet->dir.path, peers);
    run_rounds(&ours, theirs, peers);
    report_recovery(&ours, theirs);
    trace_recovery(fleet);
    hfb_fleet_stop_agents(fleet);
    stop_peers(peers);
    (void)close(listener);
}

/* A lost host, and a lost leader. */

static void run_expiry(struct hfb_fleet *fleet)
{
    struct series lags = { .count = HFB_VICTIMS };

    hfb_fleet_expire(fleet, lags.values);
    report("reset_beyond_grace_p50", percentile(&lags, 50), 100, "bound", 1.0);
    report("reset_beyond_grace_max", percentile(&lags, 100), 500, "bound", 1.0);
}

static void run_failover(struct hfb_fleet *fleet)
{
    struct series asked = { .count = 0 }, killed = { .count = 0 };

    for (unsigned i = 0; i < HFB_ASKED; i++)
        add(&asked, hfb_fleet_fail_over(fleet, SIGTERM));
    for (unsigned i = 0; i < HFB_KILLED; i++)
        add(&killed, hfb_fleet_fail_over(fleet, SIGKILL));
    report("failover_sigterm_p50", percentile(&asked, 50), 1000, "bound", 1.0);
    report("failover_sigkill_max", percentile(&killed, 100), HFB_LEADER_TTL_MS + 1000,
           "ttl + 1 s", 1.0);
}

static bool is_wanted(const char *what)
{
    return only == NULL || strcmp(only, what) == 0;
}

START_TEST(bench)
{
    struct hfb_fleet fleet;

    hfb_fleet_start(&fleet);
    if (!as_json)
        printf("%-26s %10s %10s     %8s   target\n", "", "ours", "peer", "ratio");
    if (is_wanted("recovery")) {
        run_commits(&fleet);
        run_recovery(&fleet);
    }
    if (is_wanted("expiry"))
        run_expiry(&fleet);
    if (is_wanted("failover"))
        run_failover(&fleet);
    hfb_fleet_done(&fleet);
}
END_TEST

static void find_child(void)
{
    ssize_t len = readlink("/proc/self/exe", child_program, sizeof child_program - 32);
    char *slash;

    if (len > 0 && (slash = strrchr(child_program, '/')) != NULL)
        (void)snprintf(slash, 32, "/recovery_child");
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        uint64_t count;

        if (strcmp(argv[i], "--json") == 0) {
            as_json = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc &&
                   hf_parse_u64(argv[i + 1], 1, MOST_ROUNDS, &count) == HF_OK) {
            rounds = (unsigned)count;
            i++;
        } else if (strchr("ref", argv[i][0]) != NULL) {
            only = argv[i];
        } else {
            (void)fputs("usage: bench_recovery [--json] [--rounds N] "
                        "[recovery|expiry|failover]\n",
                        stderr);
            return 2;
        }
    }
    find_child();
    return hfb_run_as_test(bench, CK_NORMAL);
}
