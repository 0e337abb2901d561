/* bench_core.c - what the core costs: decoded events per second, memory, a takeover, recoveries
 * per second, and the end of ten thousand leases at once.
 *
 * Events come in batches, as a watch brings them: a batch is decoded outside of the measured
 * time, then given to the engine of a leader, which is asked for everything that it wants to do
 * about it. Time is this thread's CPU time, the median of several rounds; memory is what malloc
 * handed out. There is no peer: the targets stand in for one. */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/engine.h"
#include "schema/json.h"

#define ROUNDS          5
#define EVENTS          100000 /* per round */
#define BATCH           100
#define AGENTS_PER_HOST 50
#define AGENTS_PER_ROLE 100
#define NAME_SIZE       32

#define EVENTS_TARGET       1000000.0
#define EVENTS_TARGET_LARGE 500000.0 /* of 100,000 agents */
#define MEMORY_TARGET       1024.0
#define REBUILD_TARGET      1.0
#define RECOVERY_TARGET     10000.0
#define EXPIRY_TARGET       0.030

#define WALL INT64_C(1790000000000)

static const size_t SIZES[] = { 100, 1000, 10000, 100000 };
static const size_t REBUILD_SIZE = 100000;
static const size_t EXPIRY_SIZE = 10000;

/* With what it borrows beside it, as in a message from etcd. */
struct event {
    struct hf_fleet_change change;
    char name[NAME_SIZE];
};

/* A fleet of n agents with one task each, and what happens to it. */
struct world {
    size_t agents, hosts;
    char (*agent_names)[NAME_SIZE];
    char (*host_names)[NAME_SIZE];
    char (*task_names)[NAME_SIZE];
    enum _Holdfast__V1__Task__State *task_states;
    int64_t *lives; /* revisions in which the live keys were created */
    struct hf_engine *engine;
    hf_ms now;
    size_t writes; /* that the engine asked for */
    uint64_t random;
    int64_t rev;
    struct event *events;
    size_t count;
};

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_core: %s\n", what);
    exit(1);
}

static void *need(void *memory)
{
    if (memory == NULL)
        die("no memory");
    return memory;
}

/* xorshift64*: the same stream in every run. */
static size_t draw(struct world *world, size_t below)
{
    world->random ^= world->random >> 12;
    world->random ^= world->random << 25;
    world->random ^= world->random >> 27;
    return (size_t)((world->random * 2685821657736338717u) >> 33) % below;
}

/* Records, about as long as real ones. */

static const char *const STATES[] = { "queued", "pending", "acknowledged", "in_progress",
                                      "completed" };

static int format_task(const struct world *world, size_t i, char *out, size_t size)
{
    enum _Holdfast__V1__Task__State state = world->task_states[i];
    char owner[160] = "";

    if (state >= HOLDFAST__V1__TASK__STATE__acknowledged)
        (void)snprintf(owner, sizeof owner,
                       "\"owner\":{\"agent\":\"%s\",\"incarnation\":{\"leaseId\":"
                       "\"4193350771290418835\",\"createRevision\":\"%zu\"}},",
                       world->agent_names[i], (size_t)world->lives[i]);
    return snprintf(out, size,
                    "{\"id\":\"%s\",\"role\":\"role-%zu\",\"state\":\"%s\",%s\"attempt\":1,"
                    "\"priority\":10,\"labels\":{\"customer\":\"acme-corp\"},\"payload\":\"\","
                    "\"result\":\"\",\"deadline\":\"2026-01-31T12:00:00Z\",\"checkpoint\":"
                    "{\"seq\":\"7\"},\"reservedFor\":\"\",\"reason\":\"\",\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    world->task_names[i], i / AGENTS_PER_ROLE, STATES[state], owner);
}

static int format_report(const struct world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"incarnation\":{\"leaseId\":\"4193350771290418835\",\"createRevision\":"
                    "\"%zu\"},\"phase\":\"drafting\",\"status\":\"healthy\",\"state\":\"busy\","
                    "\"counters\":{\"errors\":\"2\",\"tokens\":\"184320\"},\"progress\":"
                    "{\"percent\":62.5,\"note\":\"section 5 of 8, sources\"},\"task\":\"%s\","
                    "\"lastTool\":\"web_search\",\"at\":\"2026-01-31T08:15:30.250Z\",\"opIds\":"
                    "{\"owner\":\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    i + 1, world->task_names[i]);
}

static int format_live(const struct world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"host\":\"%s\",\"bootId\":\"0f3f5c6e-8f5c-4a46-9be1-2c1d6a7f0001\","
                    "\"pid\":%zu,\"startTime\":\"8812345\",\"instanceId\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\",\"ttl\":\"15s\",\"cadences\":{"
                    "\"heartbeat\":\"30s\",\"ping\":\"10s\"},\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    world->host_names[i / AGENTS_PER_HOST], i + 100);
}

static int format_exit(const struct world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"kind\":\"crashed\",\"signal\":11,\"incarnation\":{\"leaseId\":"
                    "\"4193350771290418835\",\"createRevision\":\"%zu\"},\"evidence\":[{"
                    "\"source\":\"waitpid\",\"text\":\"ended by signal 11 (SIGSEGV)\",\"at\":"
                    "\"2026-01-31T08:16:02.118Z\"}],\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    (size_t)world->lives[i]);
}

static int format_spec(const struct world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"role\":\"role-%zu\",\"class\":\"critical\",\"launcher\":\"writer\","
                    "\"parameters\":{\"MODEL\":\"large\"},\"pool\":\"batch\",\"home\":\"%s\","
                    "\"opIds\":{\"owner\":\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    i / AGENTS_PER_ROLE, world->host_names[i / AGENTS_PER_HOST]);
}

static int format_health(const struct world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size,
                    "{\"state\":\"healthy\",\"why\":\"reported\",\"restarts\":1,\"startedAt\":["
                    "\"2026-01-31T08:09:11Z\"],\"opIds\":{\"controller\":"
                    "\"01kg9hz4vynbrf7pkq255bxpz5\"}}");
}

static int format_host(const struct world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size,
                    "{\"pools\":[\"batch\",\"default\"],\"capacity\":100,\"launchers\":["
                    "\"writer\"],\"version\":\"0.1.0\",\"leaseId\":\"4193350771290418835\"}");
}

static int format_host_live(const struct world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size,
                    "{\"bootId\":\"0f3f5c6e-8f5c-4a46-9be1-2c1d6a7f0001\",\"leaseId\":"
                    "\"4193350771290418835\",\"ttl\":\"15s\"}");
}

static int format_meta(const struct world *world, size_t i, char *out, size_t size)
{
    (void)i;
    return snprintf(out, size,
                    "{\"clusterId\":\"01kg9mcxprersjd74rwb9d17ew\",\"schemaVersion\":1,"
                    "\"rates\":{\"report\":\"%zus\"}}",
                    world->agents < 200 ? 1 : world->agents / 200);
}

static int format_clock(const struct world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size, "{\"now\":\"2026-01-31T08:00:00Z\"}");
}

typedef int (*format_fn)(const struct world *world, size_t i, char *out, size_t size);

static void add_change(struct world *world, enum hf_key_kind kind, const char *name,
                       ProtobufCMessage *record, struct hf_bytes text)
{
    struct event *event = &world->events[world->count++];
    int64_t rev = ++world->rev;

    (void)snprintf(event->name, sizeof event->name, "%s", name);
    event->change = (struct hf_fleet_change){
        .key = { .kind = kind, .name = event->name },
        .seen = { .create_rev = rev, .mod_rev = rev, .lease = 42, .text = text },
        .record = record,
        .at = world->now,
    };
}

/* The text is kept for the tasks alone: nobody else asks for it. */
static void add_put(struct world *world, enum hf_key_kind kind, const char *name,
                    format_fn format, size_t i)
{
    char out[1024];
    int len = format(world, i, out, sizeof out);
    ProtobufCMessage *record = NULL;
    struct hf_error err = { "" };
    struct hf_bytes text = { 0 };

    if (hf_json_decode(hf_key_get_record(kind), out, (size_t)len,
                       &(struct hf_json_options){ .reject_unknown = true }, &record,
                       &err) != HF_OK)
        die(err.text);
    if (kind == HF_KEY_AGENT_LIVE)
        world->lives[i] = world->rev + 1;
    if (kind == HF_KEY_TASK || kind == HF_KEY_HEALTH || kind == HF_KEY_META ||
        kind == HF_KEY_CLOCK)
        text = (struct hf_bytes){ .data = need(strdup(out)), .len = (size_t)len };
    add_change(world, kind, name, record, text);
}

static double cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void step(struct world *world, struct hf_event *event)
{
    if (hf_engine_step(world->engine, event, world->now) != HF_OK)
        die("an event was not taken in");
}

/* The leader goes on when etcd tells it of the cluster clock that it wrote. */
static bool commit_clock(struct world *world, const struct hf_intent *intent)
{
    const struct hf_plan_write *write = &intent->plan.writes[0];
    struct hf_event answer = { .kind = HF_EVENT_OUTCOME,
                               .outcome = { .token = intent->token,
                                            .outcome = HF_OUTCOME_DONE,
                                            .revision = world->rev + 1 } };
    struct hf_event told = { .kind = HF_EVENT_CHANGE };

    if (strcmp(write->key, "/holdfast/default/controller/clock") != 0)
        return false;
    world->rev++;
    told.change = (struct hf_fleet_change){
        .key = { .kind = HF_KEY_CLOCK },
        .seen = { .create_rev = 1,
                  .mod_rev = world->rev,
                  .text = { .data = write->value, .len = write->value_len } },
        .at = world->now,
    };
    if (hf_json_decode(hf_key_get_record(HF_KEY_CLOCK), write->value, write->value_len, NULL,
                       &told.change.record, NULL) != HF_OK)
        die("the clock cannot be read");
    step(world, &answer);
    step(world, &told);
    return true;
}

/* Asks for all intents; what becomes of them stays unknown, so that nothing is told, but for
 * the clock. */
static void ask_all(struct world *world)
{
    struct hf_intent intent;
    int rc;

    while ((rc = hf_engine_next(world->engine, world->now, WALL, 0x80000000u, &intent)) == 1) {
        struct hf_event event = { .kind = HF_EVENT_OUTCOME,
                                  .outcome = { .token = intent.token,
                                               .outcome = HF_OUTCOME_UNKNOWN } };

        if (intent.kind == HF_INTENT_WRITE) {
            world->writes++;
            if (!commit_clock(world, &intent))
                step(world, &event);
        }
        hf_intent_done(&intent);
    }
    if (rc != 0)
        die("no memory");
}

/* Gives all changes to the engine, asks for what it wants, and returns how long that took. */
static double apply_all(struct world *world)
{
    double begin = cpu_seconds(), took;

    for (size_t i = 0; i < world->count; i++) {
        struct hf_event event = { .kind = HF_EVENT_CHANGE, .change = world->events[i].change };

        step(world, &event);
    }
    ask_all(world);
    took = cpu_seconds() - begin;
    for (size_t i = 0; i < world->count; i++)
        free((void *)world->events[i].change.seen.text.data);
    world->count = 0;
    return took;
}

/* Everything was told, and we lead. */
static double take_over(struct world *world)
{
    struct hf_event synced = { .kind = HF_EVENT_SYNCED, .revision = world->rev };
    struct hf_event term = { .kind = HF_EVENT_TERM,
                             .term = { .lease = 1, .create_rev = ++world->rev } };
    double begin = cpu_seconds();

    step(world, &synced);
    step(world, &term);
    ask_all(world);
    return cpu_seconds() - begin;
}

/* Worlds. */

static void init_world(struct world *world, size_t agents)
{
    struct hf_engine_config cfg = {
        .ns = "default", .id = "bench", .policy = hf_engine_policy_default(), .seed = 7
    };
    size_t most = agents * 6 + agents / AGENTS_PER_HOST * 2 + BATCH + 4;

    *world = (struct world){ .agents = agents,
                             .hosts = (agents + AGENTS_PER_HOST - 1) / AGENTS_PER_HOST,
                             .now = 1000000,
                             .random = 0x9e3779b97f4a7c15u };
    world->agent_names = need(calloc(agents, NAME_SIZE));
    world->host_names = need(calloc(world->hosts, NAME_SIZE));
    world->task_names = need(calloc(agents, NAME_SIZE));
    world->task_states = need(calloc(agents, sizeof *world->task_states));
    world->lives = need(calloc(agents, sizeof *world->lives));
    world->events = need(calloc(most, sizeof *world->events));
    for (size_t i = 0; i < agents; i++) {
        (void)snprintf(world->agent_names[i], NAME_SIZE, "writer-%06zu", i);
        (void)snprintf(world->task_names[i], NAME_SIZE, "report-%06zu", i);
        world->task_states[i] = HOLDFAST__V1__TASK__STATE__in_progress;
    }
    for (size_t i = 0; i < world->hosts; i++)
        (void)snprintf(world->host_names[i], NAME_SIZE, "node-%05zu.west", i);
    world->engine = need(hf_engine_new(&cfg));
}

static void done_world(struct world *world)
{
    hf_engine_free(world->engine);
    free(world->agent_names);
    free(world->host_names);
    free(world->task_names);
    free(world->task_states);
    free(world->lives);
    free(world->events);
}

/* All that a takeover finds, kind after kind, as a list of etcd has it. */
static void list_world(struct world *world)
{
    static const struct {
        enum hf_key_kind kind;
        format_fn format;
    } KINDS[] = {
        { HF_KEY_AGENT_EXIT, format_exit }, { HF_KEY_AGENT_LIVE, format_live },
        { HF_KEY_AGENT_SPEC, format_spec }, { HF_KEY_AGENT_REPORT, format_report },
        { HF_KEY_HEALTH, format_health },
    };

    add_put(world, HF_KEY_META, "", format_meta, 0);
    add_put(world, HF_KEY_CLOCK, "", format_clock, 0);
    for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
        for (size_t i = 0; i < world->agents; i++)
            add_put(world, KINDS[k].kind, world->agent_names[i], KINDS[k].format, i);
    }
    for (size_t i = 0; i < world->hosts; i++) {
        add_put(world, HF_KEY_HOST_LIVE, world->host_names[i], format_host_live, i);
        add_put(world, HF_KEY_HOST_RECORD, world->host_names[i], format_host, i);
    }
    for (size_t i = 0; i < world->agents; i++)
        add_put(world, HF_KEY_TASK, world->task_names[i], format_task, i);
}

/* The next step in the life of a task: pending, acknowledged, in progress, completed, and
 * pending again when a person retries it. */
static void add_task_event(struct world *world)
{
    size_t i = draw(world, world->agents);

    world->task_states[i] = world->task_states[i] == HOLDFAST__V1__TASK__STATE__completed
                                ? HOLDFAST__V1__TASK__STATE__pending
                                : world->task_states[i] + 1;
    add_put(world, HF_KEY_TASK, world->task_names[i], format_task, i);
}

static bool is_owned(const struct world *world, size_t i)
{
    return world->task_states[i] == HOLDFAST__V1__TASK__STATE__acknowledged ||
           world->task_states[i] == HOLDFAST__V1__TASK__STATE__in_progress;
}

/* An agent without a task ends and is there again: three events, so drawn a third as often. */
static void add_death_events(struct world *world)
{
    size_t i = draw(world, world->agents);
    const char *name = world->agent_names[i];

    if (is_owned(world, i))
        return;
    add_put(world, HF_KEY_AGENT_EXIT, name, format_exit, i);
    add_change(world, HF_KEY_AGENT_LIVE, name, NULL, (struct hf_bytes){ 0 });
    add_put(world, HF_KEY_AGENT_LIVE, name, format_live, i);
}

/* 70 % report, 20 % task, 10 % live and exit. */
static void draw_batch(struct world *world)
{
    while (world->count < BATCH) {
        size_t dice = draw(world, 280), i;

        if (dice < 10) {
            add_death_events(world);
        } else if (dice < 70) {
            add_task_event(world);
        } else {
            i = draw(world, world->agents);
            add_put(world, HF_KEY_AGENT_REPORT, world->agent_names[i], format_report, i);
        }
    }
}

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

static void print_result(bool json, const char *what, size_t agents, double ours,
                         const char *unit, double target, bool met)
{
    char name[48];

    (void)snprintf(name, sizeof name, "core.%s.%zu", what, agents);
    if (json)
        (void)printf("{\"name\":\"%s\",\"ours\":%.6g,\"peer\":%.6g,\"peerName\":\"target\","
                     "\"unit\":\"%s\",\"ratio\":%.3f,\"target\":%.6g,\"met\":%s}\n",
                     name, ours, target, unit, ours / target, target, met ? "true" : "false");
    else
        (void)printf("%-22s %12.6g %12.6g %-12s %s\n", name, ours, target, unit,
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
static double fill(struct world *world)
{
    const struct hf_fleet *fleet = hf_engine_get_fleet(world->engine);
    size_t before, text = 0;

    list_world(world);
    before = heap_bytes();
    for (size_t i = 0; i < world->count; i++)
        before -= text_bytes(&(struct hf_cell){ .seen = world->events[i].change.seen });
    (void)apply_all(world);
    (void)take_over(world);
    hf_fleet_each(fleet, HF_FLEET_TASK, add_task_text, &text);
    hf_fleet_each(fleet, HF_FLEET_AGENT, add_agent_text, &text);
    return (double)(heap_bytes() - before - text) / (double)world->agents;
}

/* Events per second. */
static double run_events(struct world *world)
{
    double took = 0;
    size_t count = 0;

    while (count < EVENTS) {
        world->now += 2;
        draw_batch(world);
        count += world->count;
        took += apply_all(world);
    }
    return (double)count / took;
}

static void bench_size(bool json, size_t agents)
{
    double target = agents < 100000 ? EVENTS_TARGET : EVENTS_TARGET_LARGE;
    double rate[ROUNDS], bytes, ours;
    struct world world;

    init_world(&world, agents);
    bytes = fill(&world);
    for (int i = 0; i < ROUNDS; i++)
        rate[i] = run_events(&world);
    if (hf_engine_get_status(world.engine, world.now).counts.live_agents != agents)
        die("the fleet is not what was made");
    /* One says that we lead; all is well otherwise, up to the clock now and then. */
    if (world.writes == 0 || world.writes > 100)
        die("the engine acts on a fleet that is well");
    done_world(&world);
    ours = median(rate);
    print_result(json, "events", agents, ours, "events/s", target, ours >= target);
    print_result(json, "memory", agents, bytes, "bytes/agent", MEMORY_TARGET,
                 bytes <= MEMORY_TARGET);
}

static void bench_rebuild(bool json)
{
    double took[ROUNDS], ours;

    for (int i = 0; i < ROUNDS; i++) {
        struct world world;

        init_world(&world, REBUILD_SIZE);
        list_world(&world);
        took[i] = apply_all(&world) + take_over(&world);
        done_world(&world);
    }
    ours = median(took);
    print_result(json, "rebuild", REBUILD_SIZE, ours, "s", REBUILD_TARGET,
                 ours < REBUILD_TARGET);
}

/* Agents that crash with their task: each is one reset and one start. */
static void bench_recoveries(bool json)
{
    double rate[ROUNDS], ours;

    for (int round = 0; round < ROUNDS; round++) {
        struct world world;
        double took = 0;
        size_t before;

        init_world(&world, EXPIRY_SIZE);
        (void)fill(&world);
        before = world.writes;
        for (size_t i = 0; i < BATCH * 100; i++) {
            add_put(&world, HF_KEY_AGENT_EXIT, world.agent_names[i], format_exit, i);
            add_change(&world, HF_KEY_AGENT_LIVE, world.agent_names[i], NULL,
                       (struct hf_bytes){ 0 });
            if (world.count < BATCH)
                continue;
            world.now += 1100; /* so that what is under way has no outcome by now */
            took += apply_all(&world);
        }
        rate[round] = (double)(world.writes - before) / took;
        done_world(&world);
    }
    ours = median(rate);
    print_result(json, "recoveries", EXPIRY_SIZE, ours, "recoveries/s", RECOVERY_TARGET,
                 ours >= RECOVERY_TARGET);
}

static double pass_seconds(struct world *world, int seconds)
{
    double begin = cpu_seconds();

    while (seconds-- > 0) {
        world->now += 1000;
        step(world, &(struct hf_event){ .kind = HF_EVENT_TIME });
        ask_all(world);
    }
    return cpu_seconds() - begin;
}

/* All leases end: from the first deletion to the moment when each agent has a verdict. */
static void bench_expiry(bool json)
{
    double took[ROUNDS], ours;

    for (int round = 0; round < ROUNDS; round++) {
        struct world world;

        init_world(&world, EXPIRY_SIZE);
        (void)fill(&world);
        (void)pass_seconds(&world, 30);
        for (size_t i = 0; i < world.hosts; i++)
            add_change(&world, HF_KEY_HOST_LIVE, world.host_names[i], NULL,
                       (struct hf_bytes){ 0 });
        for (size_t i = 0; i < world.agents; i++)
            add_change(&world, HF_KEY_AGENT_LIVE, world.agent_names[i], NULL,
                       (struct hf_bytes){ 0 });
        took[round] = apply_all(&world);
        took[round] += pass_seconds(&world, 30);
        if (hf_engine_get_status(world.engine, world.now).paced != world.agents)
            die("not every agent was given up");
        done_world(&world);
    }
    ours = median(took);
    print_result(json, "expiry", EXPIRY_SIZE, ours, "s", EXPIRY_TARGET, ours < EXPIRY_TARGET);
}

static bool is_wanted(const char *what, int argc, char **argv)
{
    bool all = true;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], what) == 0)
            return true;
        all &= strcmp(argv[i], "--json") == 0;
    }
    return all;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;

    if (!json)
        (void)printf("%-22s %12s %12s %-12s\n", "", "ours", "target", "unit");
    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0] && is_wanted("events", argc, argv);
         i++)
        bench_size(json, SIZES[i]);
    if (is_wanted("rebuild", argc, argv))
        bench_rebuild(json);
    if (is_wanted("recoveries", argc, argv))
        bench_recoveries(json);
    if (is_wanted("expiry", argc, argv))
        bench_expiry(json);
    return 0;
}
