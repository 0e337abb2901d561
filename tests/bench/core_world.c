#include "bench/core_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "schema/json.h"

#define AGENTS_PER_HOST 50
#define AGENTS_PER_ROLE 100
#define ROOT_PREFIX     "0f3f5c6e-8f5c-4a46-" /* of the ids of roots */
#define WALL            INT64_C(1790000000000)

void hfb_die(const char *what)
{
    (void)fprintf(stderr, "bench_core: %s\n", what);
    exit(1);
}

void *hfb_need(void *memory)
{
    if (memory == NULL)
        hfb_die("no memory");
    return memory;
}

/* xorshift64*: the same stream in every run. */
static size_t draw(struct hfb_world *world, size_t below)
{
    world->random ^= world->random >> 12;
    world->random ^= world->random << 25;
    world->random ^= world->random >> 27;
    return (size_t)((world->random * 2685821657736338717u) >> 33) % below;
}

/* Records, about as long as real ones. */

static const char *const STATES[] = { "queued", "pending", "acknowledged", "in_progress",
                                      "completed" };

/* Where files lie, all are of one role: it is the longest list that there can be. */
static size_t role_of(const struct hfb_world *world, size_t i)
{
    return world->roots != HFB_ROOTS_NONE ? 0 : i / AGENTS_PER_ROLE;
}

static int format_task(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    enum _Holdfast__V1__Task__State state = world->task_states[i];
    char owner[160] = "", root[160] = "";

    if (state >= HOLDFAST__V1__TASK__STATE__acknowledged)
        (void)snprintf(owner, sizeof owner,
                       "\"owner\":{\"agent\":\"%s\",\"incarnation\":{\"leaseId\":"
                       "\"4193350771290418835\",\"createRevision\":\"%zu\"}},",
                       world->agent_names[i], (size_t)world->lives[i]);
    if (world->roots != HFB_ROOTS_NONE)
        (void)snprintf(root, sizeof root, "\"root\":{\"id\":\"%s%s\",\"host\":\"%s\"},",
                       ROOT_PREFIX, world->host_names[i / AGENTS_PER_HOST],
                       world->host_names[i / AGENTS_PER_HOST]);
    return snprintf(out, size,
                    "{\"id\":\"%s\",\"role\":\"role-%zu\",\"state\":\"%s\",%s%s\"attempt\":1,"
                    "\"priority\":10,\"labels\":{\"customer\":\"acme-corp\"},\"payload\":\"\","
                    "\"result\":\"\",\"deadline\":\"2026-01-31T12:00:00Z\",\"checkpoint\":"
                    "{\"seq\":\"7\"},\"reservedFor\":\"\",\"reason\":\"\",\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    world->task_names[i], role_of(world, i), STATES[state], owner, root);
}

static int format_report(const struct hfb_world *world, size_t i, char *out, size_t size)
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

static int format_live(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"host\":\"%s\",\"bootId\":\"0f3f5c6e-8f5c-4a46-9be1-2c1d6a7f0001\","
                    "\"pid\":%zu,\"startTime\":\"8812345\",\"instanceId\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\",\"ttl\":\"15s\",\"cadences\":{"
                    "\"heartbeat\":\"30s\",\"ping\":\"10s\"},\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    world->host_names[i / AGENTS_PER_HOST], i + 100);
}

int hfb_format_exit(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"kind\":\"crashed\",\"signal\":11,\"incarnation\":{\"leaseId\":"
                    "\"4193350771290418835\",\"createRevision\":\"%zu\"},\"evidence\":[{"
                    "\"source\":\"waitpid\",\"text\":\"ended by signal 11 (SIGSEGV)\",\"at\":"
                    "\"2026-01-31T08:16:02.118Z\"}],\"opIds\":{\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    (size_t)world->lives[i]);
}

static int format_spec(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    return snprintf(out, size,
                    "{\"role\":\"role-%zu\",\"class\":\"critical\",\"launcher\":\"writer\","
                    "\"parameters\":{\"MODEL\":\"large\"},\"pool\":\"batch\",\"home\":\"%s\","
                    "\"opIds\":{\"owner\":\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    role_of(world, i), world->host_names[i / AGENTS_PER_HOST]);
}

static int format_health(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size,
                    "{\"state\":\"healthy\",\"why\":\"reported\",\"restarts\":1,\"startedAt\":["
                    "\"2026-01-31T08:09:11Z\"],\"opIds\":{\"controller\":"
                    "\"01kg9hz4vynbrf7pkq255bxpz5\"}}");
}

static int format_host(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    char roots[96] = "";

    if (world->roots != HFB_ROOTS_NONE)
        (void)snprintf(roots, sizeof roots, "\"roots\":[\"%s%s%s\"],", ROOT_PREFIX,
                       world->host_names[i], world->roots == HFB_ROOTS_READ ? "" : "-other");
    return snprintf(out, size,
                    "{\"pools\":[\"batch\",\"default\"],\"capacity\":100,%s\"launchers\":["
                    "\"writer\"],\"version\":\"0.1.0\",\"leaseId\":\"4193350771290418835\"}",
                    roots);
}

static int format_host_live(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size,
                    "{\"bootId\":\"0f3f5c6e-8f5c-4a46-9be1-2c1d6a7f0001\",\"leaseId\":"
                    "\"4193350771290418835\",\"ttl\":\"15s\"}");
}

static int format_meta(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    (void)i;
    return snprintf(out, size,
                    "{\"clusterId\":\"01kg9mcxprersjd74rwb9d17ew\",\"schemaVersion\":1,"
                    "\"rates\":{\"report\":\"%zus\"}}",
                    world->agents < 200 ? 1 : world->agents / 200);
}

static int format_clock(const struct hfb_world *world, size_t i, char *out, size_t size)
{
    (void)world;
    (void)i;
    return snprintf(out, size, "{\"now\":\"2026-01-31T08:00:00Z\"}");
}

void hfb_world_add(struct hfb_world *world, enum hf_key_kind kind, const char *name,
                   ProtobufCMessage *record, struct hf_bytes text)
{
    struct hfb_event *event = &world->events[world->count++];
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
void hfb_world_put(struct hfb_world *world, enum hf_key_kind kind, const char *name,
                   hfb_format_fn format, size_t i)
{
    char out[1024];
    int len = format(world, i, out, sizeof out);
    ProtobufCMessage *record = NULL;
    struct hf_error err = { "" };
    struct hf_bytes text = { 0 };

    if (hf_json_decode(hf_key_get_record(kind), out, (size_t)len,
                       &(struct hf_json_options){ .reject_unknown = true }, &record,
                       &err) != HF_OK)
        hfb_die(err.text);
    if (kind == HF_KEY_AGENT_LIVE)
        world->lives[i] = world->rev + 1;
    if (kind == HF_KEY_TASK || kind == HF_KEY_HEALTH || kind == HF_KEY_META ||
        kind == HF_KEY_CLOCK)
        text = (struct hf_bytes){ .data = hfb_need(strdup(out)), .len = (size_t)len };
    hfb_world_add(world, kind, name, record, text);
}

double hfb_cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void hfb_world_step(struct hfb_world *world, struct hf_event *event)
{
    if (hf_engine_step(world->engine, event, world->now) != HF_OK)
        hfb_die("an event was not taken in");
}

/* The leader goes on when etcd tells it of the cluster clock that it wrote. */
static bool commit_clock(struct hfb_world *world, const struct hf_intent *intent)
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
        hfb_die("the clock cannot be read");
    hfb_world_step(world, &answer);
    hfb_world_step(world, &told);
    return true;
}

/* Asks for all intents; what becomes of them stays unknown, so that nothing is told, but for
 * the clock. */
void hfb_world_ask(struct hfb_world *world)
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
                hfb_world_step(world, &event);
        }
        hf_intent_done(&intent);
    }
    if (rc != 0)
        hfb_die("no memory");
}

/* Gives all changes to the engine, asks for what it wants, and returns how long that took. */
double hfb_world_apply(struct hfb_world *world)
{
    double begin = hfb_cpu_seconds(), took;

    for (size_t i = 0; i < world->count; i++) {
        struct hf_event event = { .kind = HF_EVENT_CHANGE, .change = world->events[i].change };

        hfb_world_step(world, &event);
    }
    hfb_world_ask(world);
    took = hfb_cpu_seconds() - begin;
    for (size_t i = 0; i < world->count; i++)
        free((void *)world->events[i].change.seen.text.data);
    world->count = 0;
    return took;
}

/* Everything was told, and we lead. */
double hfb_world_take_over(struct hfb_world *world)
{
    struct hf_event synced = { .kind = HF_EVENT_SYNCED, .revision = world->rev };
    struct hf_event term = { .kind = HF_EVENT_TERM,
                             .term = { .lease = 1, .create_rev = ++world->rev } };
    double begin = hfb_cpu_seconds();

    hfb_world_step(world, &synced);
    hfb_world_step(world, &term);
    hfb_world_ask(world);
    return hfb_cpu_seconds() - begin;
}

/* Worlds. */

void hfb_world_init(struct hfb_world *world, size_t agents, enum hfb_roots roots)
{
    struct hf_engine_config cfg = {
        .ns = "default", .id = "bench", .policy = hf_engine_policy_default(), .seed = 7
    };
    size_t most = agents * 6 + agents / AGENTS_PER_HOST * 2 + HFB_BATCH + 4;

    *world = (struct hfb_world){ .agents = agents,
                                 .hosts = (agents + AGENTS_PER_HOST - 1) / AGENTS_PER_HOST,
                                 .roots = roots,
                                 .now = 1000000,
                                 .random = 0x9e3779b97f4a7c15u };
    world->agent_names = hfb_need(calloc(agents, HFB_NAME_SIZE));
    world->host_names = hfb_need(calloc(world->hosts, HFB_NAME_SIZE));
    world->task_names = hfb_need(calloc(agents, HFB_NAME_SIZE));
    world->task_states = hfb_need(calloc(agents, sizeof *world->task_states));
    world->lives = hfb_need(calloc(agents, sizeof *world->lives));
    world->events = hfb_need(calloc(most, sizeof *world->events));
    for (size_t i = 0; i < agents; i++) {
        (void)snprintf(world->agent_names[i], HFB_NAME_SIZE, "writer-%06zu", i);
        (void)snprintf(world->task_names[i], HFB_NAME_SIZE, "report-%06zu", i);
        world->task_states[i] = HOLDFAST__V1__TASK__STATE__in_progress;
    }
    for (size_t i = 0; i < world->hosts; i++)
        (void)snprintf(world->host_names[i], HFB_NAME_SIZE, "node-%05zu.west", i);
    world->engine = hfb_need(hf_engine_new(&cfg));
}

void hfb_world_done(struct hfb_world *world)
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
void hfb_world_list(struct hfb_world *world)
{
    static const struct {
        enum hf_key_kind kind;
        hfb_format_fn format;
    } KINDS[] = {
        { HF_KEY_AGENT_EXIT, hfb_format_exit }, { HF_KEY_AGENT_LIVE, format_live },
        { HF_KEY_AGENT_SPEC, format_spec },     { HF_KEY_AGENT_REPORT, format_report },
        { HF_KEY_HEALTH, format_health },
    };

    hfb_world_put(world, HF_KEY_META, "", format_meta, 0);
    hfb_world_put(world, HF_KEY_CLOCK, "", format_clock, 0);
    for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
        for (size_t i = 0; i < world->agents; i++)
            hfb_world_put(world, KINDS[k].kind, world->agent_names[i], KINDS[k].format, i);
    }
    for (size_t i = 0; i < world->hosts; i++) {
        hfb_world_put(world, HF_KEY_HOST_LIVE, world->host_names[i], format_host_live, i);
        hfb_world_put(world, HF_KEY_HOST_RECORD, world->host_names[i], format_host, i);
    }
    for (size_t i = 0; i < world->agents; i++)
        hfb_world_put(world, HF_KEY_TASK, world->task_names[i], format_task, i);
}

/* The next step in the life of a task: pending, acknowledged, in progress, completed, and
 * pending again when a person retries it. */
static void add_task_event(struct hfb_world *world)
{
    size_t i = draw(world, world->agents);

    world->task_states[i] = world->task_states[i] == HOLDFAST__V1__TASK__STATE__completed
                                ? HOLDFAST__V1__TASK__STATE__pending
                                : world->task_states[i] + 1;
    hfb_world_put(world, HF_KEY_TASK, world->task_names[i], format_task, i);
}

static bool is_owned(const struct hfb_world *world, size_t i)
{
    return world->task_states[i] == HOLDFAST__V1__TASK__STATE__acknowledged ||
           world->task_states[i] == HOLDFAST__V1__TASK__STATE__in_progress;
}

/* An agent without a task ends and is there again: three events, so drawn a third as often. */
static void add_death_events(struct hfb_world *world)
{
    size_t i = draw(world, world->agents);
    const char *name = world->agent_names[i];

    if (is_owned(world, i))
        return;
    hfb_world_put(world, HF_KEY_AGENT_EXIT, name, hfb_format_exit, i);
    hfb_world_add(world, HF_KEY_AGENT_LIVE, name, NULL, (struct hf_bytes){ 0 });
    hfb_world_put(world, HF_KEY_AGENT_LIVE, name, format_live, i);
}

/* 70 % report, 20 % task, 10 % live and exit. */
void hfb_world_draw(struct hfb_world *world)
{
    while (world->count < HFB_BATCH) {
        size_t dice = draw(world, 280), i;

        if (dice < 10) {
            add_death_events(world);
        } else if (dice < 70) {
            add_task_event(world);
        } else {
            i = draw(world, world->agents);
            hfb_world_put(world, HF_KEY_AGENT_REPORT, world->agent_names[i], format_report, i);
        }
    }
}
