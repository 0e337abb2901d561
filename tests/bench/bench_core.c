/* bench_core.c - what the core costs: decoded events per second, memory, a takeover, recoveries
 * per second, the end of ten thousand leases at once, and life in the simulator.
 *
 *     bench_core [--json] [events | roots | rebuild | recoveries | expiry | simulator]…
 *
 * Each figure is the median of several rounds; memory is what malloc handed out. There is no
 * peer: the targets stand in for one. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/core_world.h"
#include "sim/speed.h"

#define ROUNDS 5
#define EVENTS 100000 /* per round */

#define EVENTS_TARGET       1000000.0
#define EVENTS_TARGET_LARGE 500000.0 /* of 100,000 agents */
#define MEMORY_TARGET       1024.0
#define REBUILD_TARGET      1.0
#define RECOVERY_TARGET     10000.0
#define EXPIRY_TARGET       0.030

static const size_t SIZES[] = { 100, 1000, 10000, 100000 };
static const size_t REBUILD_SIZE = 100000;
static const size_t EXPIRY_SIZE = 10000;
static const size_t ROOTS_SIZE = 10000;

/* Results. */

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof values[0], compare_doubles);
    return values[ROUNDS / 2];
}

/* "1,371,700"; with as many decimals as it takes to see a difference. */
static const char *format_number(double value, char out[32])
{
    char digits[32];
    size_t len, from = 0;

    if (value < 100) {
        (void)snprintf(out, 32, "%.4g", value);
        return out;
    }
    len = (size_t)snprintf(digits, sizeof digits, "%.0f", value);
    for (size_t i = 0; i < len && from < 30; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[from++] = ',';
        out[from++] = digits[i];
    }
    out[from] = '\0';
    return out;
}

static void print_head(void)
{
    (void)printf("%-24s %12s %-12s %22s\n", "", "ours", "", "target");
}

/* `less`: less is better. */
static void print_result(bool json, const char *what, size_t agents, double ours,
                         const char *unit, bool less, double target)
{
    bool met = less ? ours <= target : ours >= target;
    char name[48], mine[32], its[32];

    (void)snprintf(name, sizeof name, "core.%s.%zu", what, agents);
    if (json)
        (void)printf("{\"name\":\"%s\",\"ours\":%.6g,\"peer\":%.6g,\"peerName\":\"target\","
                     "\"unit\":\"%s\",\"ratio\":%.3f,\"target\":%.6g,\"met\":%s}\n",
                     name, ours, target, unit, ours / target, target, met ? "true" : "false");
    else
        (void)printf("%-24s %12s %-12s at %-5s %12s   %s\n", name, format_number(ours, mine),
                     unit, less ? "most" : "least", format_number(target, its),
                     met ? "met" : "MISSED");
    (void)fflush(stdout);
}

/* What was handed out by malloc, large blocks included. */
static size_t heap_bytes(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static size_t text_bytes(const struct hf_cell *cell)
{
    void *text = (void *)cell->seen.text.data;

    return text != NULL ? malloc_usable_size(text) + sizeof(size_t) : 0;
}

static void add_task_text(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    *(size_t *)arg += text_bytes(&((const struct hf_task *)object)->task);
}

static void add_agent_text(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    *(size_t *)arg += text_bytes(&((const struct hf_agent *)object)->health);
}

/* Fills the engine; returns the bytes per agent beyond its records, decoded and as text. */
static double fill(struct hfb_world *world)
{
    const struct hf_fleet *fleet = hf_engine_get_fleet(world->engine);
    size_t before, text = 0;

    hfb_world_list(world);
    before = heap_bytes();
    for (size_t i = 0; i < world->count; i++)
        before -= text_bytes(&(struct hf_cell){ .seen = world->events[i].change.seen });
    (void)hfb_world_apply(world);
    (void)hfb_world_take_over(world);
    hf_fleet_each(fleet, HF_FLEET_TASK, add_task_text, &text);
    hf_fleet_each(fleet, HF_FLEET_AGENT, add_agent_text, &text);
    return (double)(heap_bytes() - before - text) / (double)world->agents;
}

/* Events per second. */
static double run_events(struct hfb_world *world)
{
    double took = 0;
    size_t count = 0;

    while (count < EVENTS) {
        world->now += 2;
        hfb_world_draw(world);
        count += world->count;
        took += hfb_world_apply(world);
    }
    return (double)count / took;
}

static const char *const ROOTS[] = {
    [HFB_ROOTS_NONE] = "",
    [HFB_ROOTS_READ] = ".roots",
    [HFB_ROOTS_UNREAD] = ".lost",
};

static void bench_size(bool json, size_t agents, enum hfb_roots roots)
{
    double target = agents < 100000 ? EVENTS_TARGET : EVENTS_TARGET_LARGE;
    double rate[ROUNDS], bytes, ours;
    struct hfb_world world;
    char what[32];

    hfb_world_init(&world, agents, roots);
    bytes = fill(&world);
    for (int i = 0; i < ROUNDS; i++)
        rate[i] = run_events(&world);
    if (hf_engine_get_status(world.engine, world.now).counts.live_agents != agents)
        hfb_die("the fleet is not what was made");
    /* One says that we lead; all is well otherwise, up to the clock now and then. */
    if (world.writes == 0 || world.writes > 100)
        hfb_die("the engine acts on a fleet that is well");
    hfb_world_done(&world);
    ours = median(rate);
    (void)snprintf(what, sizeof what, "events%s", ROOTS[roots]);
    print_result(json, what, agents, ours, "events/s", false, target);
    (void)snprintf(what, sizeof what, "memory%s", ROOTS[roots]);
    print_result(json, what, agents, bytes, "bytes/agent", true, MEMORY_TARGET);
}

static void bench_sizes(bool json)
{
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++)
        bench_size(json, SIZES[i], HFB_ROOTS_NONE);
}

/* Tasks whose checkpoints lie in files, and one role: who reads them, and does anybody? */
static void bench_roots(bool json)
{
    bench_size(json, ROOTS_SIZE, HFB_ROOTS_READ);
    bench_size(json, ROOTS_SIZE, HFB_ROOTS_UNREAD);
}

static void bench_rebuild(bool json)
{
    double took[ROUNDS], ours;

    for (int i = 0; i < ROUNDS; i++) {
        struct hfb_world world;

        hfb_world_init(&world, REBUILD_SIZE, HFB_ROOTS_NONE);
        hfb_world_list(&world);
        took[i] = hfb_world_apply(&world) + hfb_world_take_over(&world);
        hfb_world_done(&world);
    }
    ours = median(took);
    print_result(json, "rebuild", REBUILD_SIZE, ours, "s", true, REBUILD_TARGET);
}

/* Agents that crash with their task: each is one reset and one start. */
static void bench_recoveries(bool json)
{
    double rate[ROUNDS], ours;

    for (int round = 0; round < ROUNDS; round++) {
        struct hfb_world world;
        double took = 0;
        size_t before;

        hfb_world_init(&world, EXPIRY_SIZE, HFB_ROOTS_NONE);
        (void)fill(&world);
        before = world.writes;
        for (size_t i = 0; i < HFB_BATCH * 100; i++) {
            hfb_world_put(&world, HF_KEY_AGENT_EXIT, world.agent_names[i], hfb_format_exit, i);
            hfb_world_add(&world, HF_KEY_AGENT_LIVE, world.agent_names[i], NULL,
                          (struct hf_bytes){ 0 });
            if (world.count < HFB_BATCH)
                continue;
            world.now += 1100; /* so that what is under way has no outcome by now */
            took += hfb_world_apply(&world);
        }
        rate[round] = (double)(world.writes - before) / took;
        hfb_world_done(&world);
    }
    ours = median(rate);
    print_result(json, "recoveries", EXPIRY_SIZE, ours, "recoveries/s", false, RECOVERY_TARGET);
}

static double pass_seconds(struct hfb_world *world, int seconds)
{
    double begin = hfb_cpu_seconds();

    while (seconds-- > 0) {
        world->now += 1000;
        hfb_world_step(world, &(struct hf_event){ .kind = HF_EVENT_TIME });
        hfb_world_ask(world);
    }
    return hfb_cpu_seconds() - begin;
}

/* All leases end: from the first deletion to the moment when each agent has a verdict. */
static void bench_expiry(bool json)
{
    double took[ROUNDS], ours;

    for (int round = 0; round < ROUNDS; round++) {
        struct hfb_world world;

        hfb_world_init(&world, EXPIRY_SIZE, HFB_ROOTS_NONE);
        (void)fill(&world);
        (void)pass_seconds(&world, 30);
        for (size_t i = 0; i < world.hosts; i++)
            hfb_world_add(&world, HF_KEY_HOST_LIVE, world.host_names[i], NULL,
                          (struct hf_bytes){ 0 });
        for (size_t i = 0; i < world.agents; i++)
            hfb_world_add(&world, HF_KEY_AGENT_LIVE, world.agent_names[i], NULL,
                          (struct hf_bytes){ 0 });
        took[round] = hfb_world_apply(&world);
        took[round] += pass_seconds(&world, 30);
        if (hf_engine_get_status(world.engine, world.now).paced != world.agents)
            hfb_die("not every agent was given up");
        hfb_world_done(&world);
    }
    ours = median(took);
    print_result(json, "expiry", EXPIRY_SIZE, ours, "s", true, EXPIRY_TARGET);
}

/* A fleet that is well, with everything around the core that is real but etcd and processes. */
static void bench_simulator(bool json)
{
    double factor[ROUNDS];

    for (int round = 0; round < ROUNDS; round++) {
        struct hfs_speed speed = hfs_speed_measure();

        if (!speed.ok)
            hfb_die(speed.why);
        factor[round] = speed.factor;
    }
    print_result(json, "simulator", HFS_SPEED_AGENTS, median(factor), "x real time", false,
                 HFS_SPEED_TARGET);
}

static const struct {
    const char *name;
    void (*run)(bool json);
} FIGURES[] = {
    { "events", bench_sizes },    { "roots", bench_roots },
    { "rebuild", bench_rebuild }, { "recoveries", bench_recoveries },
    { "expiry", bench_expiry },   { "simulator", bench_simulator },
};

enum { FIGURE_COUNT = sizeof FIGURES / sizeof FIGURES[0] };

static size_t find_figure(const char *name)
{
    size_t i = 0;

    while (i < FIGURE_COUNT && strcmp(FIGURES[i].name, name) != 0)
        i++;
    return i;
}

int main(int argc, char **argv)
{
    bool json = false, some = false, wanted[FIGURE_COUNT + 1] = { false };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            json = true;
        else
            some = wanted[find_figure(argv[i])] = true;
    }
    if (wanted[FIGURE_COUNT]) {
        (void)fprintf(stderr, "usage: bench_core [--json] [events | roots | rebuild | "
                              "recoveries | expiry | simulator]...\n");
        return 2;
    }
    if (!json)
        print_head();
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        if (wanted[i] || !some)
            FIGURES[i].run(json);
    }
    return 0;
}
