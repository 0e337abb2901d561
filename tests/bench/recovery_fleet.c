#include "bench/recovery_fleet.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "bench/recovery.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000, STABLE_HOSTS = 80, VICTIM_EVERY_MS = 500, VICTIM_TTL_S = 2 };
/* A third and a sixth of the TTL, and the margin. */
enum { VICTIM_GRACE_MS = VICTIM_TTL_S * 500 + 1500 };

/* The watch. */

static bool is_key(const struct hf_mirror_event *event, const char *begin, const char *end)
{
    size_t len = event->kv.key.len, b = strlen(begin), e = strlen(end);
    const char *key = (const char *)event->kv.key.data;

    return len >= b + e && memcmp(key, begin, b) == 0 && memcmp(key + len - e, end, e) == 0;
}

static void note_trace(struct hfb_trace *trace, const struct hf_mirror_event *event,
                       int64_t now)
{
    if (event->kind != HF_MIRROR_PUT)
        return;
    if (is_key(event, ROOT "agents/", "/exit") && trace->written == 0)
        trace->written = now;
    else if (is_key(event, ROOT "commands/", "") && trace->ordered == 0)
        trace->ordered = now;
    else if (is_key(event, ROOT "agents/", "/live") && trace->started == 0)
        trace->started = now;
}

static void note_victim(struct hfb_fleet *fleet, const struct hf_mirror_event *event,
                        int64_t now)
{
    static const char AGENT[] = ROOT "agents/victim", TASK[] = ROOT "tasks/victim";
    bool is_agent = event->kind == HF_MIRROR_DELETE && is_key(event, AGENT, "/live");
    bool is_reset = event->kind == HF_MIRROR_PUT && is_key(event, TASK, "") &&
                    memmem(event->kv.value.data, event->kv.value.len, "\"attempt\":1", 11);
    size_t skip = is_agent ? sizeof AGENT - 1 : sizeof TASK - 1;
    unsigned i;

    if (!is_agent && !is_reset)
        return;
    i = (unsigned)strtoul((const char *)event->kv.key.data + skip, NULL, 10);
    ck_assert_uint_lt(i, HFB_VICTIMS);
    if (is_agent)
        fleet->victims[i].deleted = now;
    else if (fleet->victims[i].reset == 0)
        fleet->victims[i].reset = now;
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hfb_fleet *fleet = arg;
    int64_t now = hfb_now_ns();

    if (event->kind == HF_MIRROR_SYNCED)
        fleet->synced = true;
    if (event->kind == HF_MIRROR_SYNCED || event->synthesised)
        return;
    note_trace(&fleet->trace, event, now);
    note_victim(fleet, event, now);
    if (event->kind == HF_MIRROR_PUT && is_key(event, ROOT "controller/leader", ""))
        fleet->elected = now;
    /* The first thing that a leader does in its term. */
    if (event->kind == HF_MIRROR_PUT && is_key(event, ROOT "controller/clock", "") &&
        fleet->elected != 0 && fleet->acted == 0)
        fleet->acted = now;
}

static bool is_synced(void *fleet)
{
    return ((struct hfb_fleet *)fleet)->synced;
}

void hfb_fleet_watch(struct hfb_fleet *fleet)
{
    struct hf_key_range range = { .key = hf_bytes_of(ROOT), .prefix = true };
    struct hf_mirror_config cfg = {
        .ranges = &range, .range_count = 1, .on_event = on_event, .arg = fleet
    };

    fleet->synced = false;
    hft_be_patient(&cfg);
    ck_assert_int_eq(hf_mirror_new(fleet->client.etcd, &cfg, &fleet->mirror, NULL), HF_OK);
    hft_loop_until(&fleet->client.loop, is_synced, fleet, STEP_MS, "the watch");
}

void hfb_fleet_unwatch(struct hfb_fleet *fleet)
{
    hf_mirror_close(fleet->mirror);
    fleet->mirror = NULL;
}

/* The fleet. */

static void start_controller(struct hfb_fleet *fleet, unsigned i)
{
    char id[16];

    (void)snprintf(id, sizeof id, "c%u-%u", i, fleet->controllers_started++);
    hft_program_start(&fleet->controllers[i], "holdfast-controller", fleet->dir.path, id,
                      fleet->etcd.endpoint, "--id", id, NULL);
    hft_program_until_said(&fleet->controllers[i], "event=synced", STEP_MS);
}

void hfb_fleet_start(struct hfb_fleet *fleet)
{
    const char *const flags[] = { "--backend-batch-limit=500", NULL };

    *fleet = (struct hfb_fleet){ 0 };
    hft_tempdir_init(&fleet->dir);
    hft_etcd_start(&fleet->etcd, &(struct hft_etcd_options){ .extra_flags = flags });
    hft_client_open(&fleet->client, fleet->etcd.endpoint, NULL);
    start_controller(fleet, 0);
    hft_program_until_said(&fleet->controllers[0], "event=leading", STEP_MS);
}

void hfb_fleet_done(struct hfb_fleet *fleet)
{
    for (unsigned i = 0; i < 2; i++) {
        if (fleet->controllers[i].pid != 0)
            hft_program_kill(&fleet->controllers[i]);
    }
    hft_client_close(&fleet->client);
    hft_etcd_done(&fleet->etcd);
    hft_tempdir_done(&fleet->dir);
}

/* agentd and its agents. */

static FILE *create(const struct hfb_fleet *fleet, const char *name)
{
    char path[HFT_PATH_MAX + 64];
    FILE *out;

    (void)snprintf(path, sizeof path, "%s/%s", fleet->dir.path, name);
    out = fopen(path, "we");
    ck_assert_msg(out != NULL, "%s", path);
    return out;
}

static void write_agents(const struct hfb_fleet *fleet, const char *word, unsigned count)
{
    FILE *out = create(fleet, "launcher.yaml");

    (void)fprintf(out, "name: child\ncommand: [%s]\n", word);
    ck_assert_int_eq(fclose(out), 0);
    for (unsigned i = 0; i < count; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, HFB_AGENT ".yaml", i);
        out = create(fleet, name);
        (void)fprintf(out, "name: " HFB_AGENT "\nlauncher: child\n", i);
        ck_assert_int_eq(fclose(out), 0);
    }
    out = create(fleet, "agentd.yaml");
    (void)fprintf(out, "host: h1\nlaunchers: [launcher.yaml]\nagents:\n");
    for (unsigned i = 0; i < count; i++)
        (void)fprintf(out, "  - " HFB_AGENT ".yaml\n", i);
    ck_assert_int_eq(fclose(out), 0);
}

void hfb_fleet_start_agents(struct hfb_fleet *fleet, const char *child, const char *socket,
                            const char *state, unsigned count)
{
    char word[3 * HFT_PATH_MAX], config[HFT_PATH_MAX + 32], keeps[HFT_PATH_MAX + 32];

    (void)snprintf(word, sizeof word, "\"%s\", \"%s,agentd,%s\"", child, socket, state);
    write_agents(fleet, word, count);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", fleet->dir.path);
    (void)snprintf(keeps, sizeof keeps, "%s/agentd", fleet->dir.path);
    hft_program_start(&fleet->agentd, "agentd", fleet->dir.path, "agentd", fleet->etcd.endpoint,
                      "--config", config, "--state-dir", keeps, "--stop-grace", "1s", NULL);
}

void hfb_fleet_stop_agents(struct hfb_fleet *fleet)
{
    (void)hft_program_stop(&fleet->agentd);
}

/* Hosts that vanish. They are keys: what is measured is the controller's part. */

static void put(struct hfb_fleet *fleet, int64_t lease, const char *value, const char *key, ...)
    __attribute__((format(printf, 4, 5)));
static void put(struct hfb_fleet *fleet, int64_t lease, const char *value, const char *key, ...)
{
    char text[200] = ROOT;
    va_list args;

    va_start(args, key);
    (void)vsnprintf(text + strlen(ROOT), sizeof text - strlen(ROOT), key, args);
    va_end(args);
    fleet->last_put = hft_put(&fleet->client, text, value, lease);
}

static void put_stable_hosts(struct hfb_fleet *fleet)
{
    for (unsigned i = 0; i < STABLE_HOSTS; i++) {
        put(fleet, HF_NO_LEASE, "{\"capacity\":10,\"launchers\":[\"w\"]}",
            "hosts/stable%u/record", i);
        put(fleet, hft_grant(&fleet->client, 600), "{\"ttl\":\"600s\"}", "hosts/stable%u/live",
            i);
    }
}

static void put_victim(struct hfb_fleet *fleet, unsigned i)
{
    int64_t lease = hft_grant(&fleet->client, VICTIM_TTL_S);
    char live[128], task[300];

    (void)snprintf(live, sizeof live,
                   "{\"host\":\"victim%u\",\"instanceId\":\"one\",\"ttl\":\"%ds\"}", i,
                   VICTIM_TTL_S);
    put(fleet, HF_NO_LEASE, "{\"capacity\":10,\"launchers\":[\"w\"]}", "hosts/victim%u/record",
        i);
    put(fleet, lease, "{\"ttl\":\"2s\"}", "hosts/victim%u/live", i);
    put(fleet, HF_NO_LEASE, "{\"role\":\"r\",\"launcher\":\"w\"}", "agents/victim%u/spec", i);
    put(fleet, lease, live, "agents/victim%u/live", i);
    (void)snprintf(task, sizeof task,
                   "{\"id\":\"victim%u\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"victim%u\",\"incarnation\":{\"createRevision\":\"%" PRId64
                   "\",\"leaseId\":\"%" PRId64 "\"}}}",
                   i, i, fleet->last_put, lease);
    put(fleet, HF_NO_LEASE, task, "tasks/victim%u", i);
}

static bool are_reset(void *arg)
{
    struct hfb_fleet *fleet = arg;

    for (unsigned i = 0; i < HFB_VICTIMS; i++) {
        if (fleet->victims[i].reset == 0)
            return false;
    }
    return true;
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void hfb_fleet_expire(struct hfb_fleet *fleet, double ret_lags[HFB_VICTIMS])
{
    put_stable_hosts(fleet);
    hfb_fleet_watch(fleet);
    for (unsigned i = 0; i < HFB_VICTIMS; i++) {
        put_victim(fleet, i);
        (void)hft_loop_try(&fleet->client.loop, never, NULL, VICTIM_EVERY_MS);
    }
    hft_loop_until(&fleet->client.loop, are_reset, fleet, STEP_MS, "the resets");
    hfb_fleet_unwatch(fleet);
    for (unsigned i = 0; i < HFB_VICTIMS; i++)
        ret_lags[i] = (double)(fleet->victims[i].reset - fleet->victims[i].deleted) / 1e6 -
                      VICTIM_GRACE_MS;
}

/* Leaders that end. */

static bool has_acted(void *fleet)
{
    return ((struct hfb_fleet *)fleet)->acted != 0;
}

double hfb_fleet_fail_over(struct hfb_fleet *fleet, int signal)
{
    unsigned leader = fleet->leader;
    int64_t ended;

    if (fleet->controllers[1 - leader].pid == 0)
        start_controller(fleet, 1 - leader);
    hfb_fleet_watch(fleet);
    fleet->elected = fleet->acted = 0;
    ended = hfb_now_ns();
    ck_assert_int_eq(kill(fleet->controllers[leader].pid, signal), 0);
    hft_loop_until(&fleet->client.loop, has_acted, fleet, STEP_MS, "the next leader");
    hfb_fleet_unwatch(fleet);
    (void)hft_program_wait(&fleet->controllers[leader], STEP_MS);
    fleet->leader = 1 - leader;
    start_controller(fleet, leader);
    return (double)(fleet->acted - ended) / 1e6;
}

/* Traces. */

static const char *const STEPS[] = {
    "kill -9 to the death in etcd",       "task reset, start ordered (0: by leave)",
    "successor registered with the task", "its main()",
    "checkpoint read and verified",       "in all"
};
enum { STEP_COUNT = sizeof STEPS / sizeof STEPS[0] };

static double step_of(const struct hfb_trace *trace, unsigned step)
{
    /* By leave no start is ordered. */
    const int64_t ordered = trace->ordered != 0 ? trace->ordered : trace->written;
    const int64_t at[] = { trace->killed,  trace->written, ordered,
                           trace->started, trace->begun,   trace->held };

    return (double)(step + 1 == STEP_COUNT ? trace->held - trace->killed
                                           : at[step + 1] - at[step]) /
           1e6;
}

static int by_total(const void *a, const void *b)
{
    double x = step_of(a, STEP_COUNT - 1), y = step_of(b, STEP_COUNT - 1);

    return (x > y) - (x < y);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_step(unsigned step, double median_run, double p50, bool as_json)
{
    if (as_json)
        printf(
            "{\"name\":\"trace: %s\",\"ours\":%.4f,\"peer\":%.4f,\"peerName\":\"median run\","
            "\"unit\":\"ms\",\"ratio\":%.3f,\"target\":0,\"met\":true}\n",
            STEPS[step], p50, median_run, median_run > 0 ? p50 / median_run : 0);
    else
        printf("%-40s %12.3f %12.3f\n", STEPS[step], median_run, p50);
}

void hfb_trace_print(struct hfb_trace *traces, size_t count, bool as_json)
{
    HF_CLEANUP_FREE double *values = calloc(count, sizeof *values);

    ck_assert_ptr_nonnull(values);
    qsort(traces, count, sizeof *traces, by_total);
    if (!as_json)
        printf("\n%-40s %12s %12s\n", "where the time goes, in ms", "median run",
               "p50 of each");
    for (unsigned step = 0; step < STEP_COUNT; step++) {
        for (size_t i = 0; i < count; i++)
            values[i] = step_of(&traces[i], step);
        qsort(values, count, sizeof *values, by_value);
        print_step(step, step_of(&traces[count / 2], step), values[count / 2], as_json);
    }
    if (!as_json)
        (void)putchar('\n');
}
