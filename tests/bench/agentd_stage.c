#include "bench/agentd_stage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "bench/recovery.h"

#define AGENTS "/holdfast/default/agents/"

enum { START_MS = 180000, STEP_MS = 30000 };

/* The watcher. */

static bool is_key(const struct hf_kv *kv, const char *begin, const char *end)
{
    size_t len = kv->key.len, b = strlen(begin), e = strlen(end);
    const char *key = (const char *)kv->key.data;

    return len >= b + e && memcmp(key, begin, b) == 0 && memcmp(key + len - e, end, e) == 0;
}

static void on_exit_put(struct hfb_stage *stage, const struct hf_kv *kv, int64_t now)
{
    size_t len = strlen(stage->exit_key);

    stage->exits++;
    if (kv->key.len != len || memcmp(kv->key.data, stage->exit_key, len) != 0)
        return; /* of somebody whom nobody killed: that tells nothing of who was */
    stage->exit_ns = now;
    (void)snprintf(stage->exit_value, sizeof stage->exit_value, "%.*s", (int)kv->value.len,
                   (const char *)kv->value.data);
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hfb_stage *stage = arg;
    int64_t now = hfb_now_ns();

    if (event->kind == HF_MIRROR_SYNCED)
        stage->synced = true;
    if (event->kind != HF_MIRROR_PUT)
        return;
    if (is_key(&event->kv, AGENTS, "/live"))
        stage->live++;
    else if (is_key(&event->kv, AGENTS, "/exit"))
        on_exit_put(stage, &event->kv, now);
    else if (is_key(&event->kv, "/bench/", "/exit"))
        stage->commit_ns = now;
    else if (is_key(&event->kv, "/go/", "/live"))
        stage->sessions++;
}

static bool is_synced(void *stage)
{
    return ((struct hfb_stage *)stage)->synced;
}

static void watch(struct hfb_stage *stage)
{
    struct hf_key_range ranges[] = {
        { .key = hf_bytes_of("/holdfast/"), .prefix = true },
        { .key = hf_bytes_of("/bench/"), .prefix = true },
        { .key = hf_bytes_of("/go/"), .prefix = true },
    };
    struct hf_mirror_config cfg = {
        .ranges = ranges, .range_count = 3, .on_event = on_event, .arg = stage
    };

    hft_be_patient(&cfg);
    ck_assert_int_eq(hf_mirror_new(stage->client.etcd, &cfg, &stage->mirror, NULL), HF_OK);
    hft_loop_until(&stage->client.loop, is_synced, stage, STEP_MS, "the watch");
}

/* agentd. */

static FILE *create(const struct hfb_stage *stage, const char *name)
{
    char path[HFT_PATH_MAX + 64];
    FILE *out;

    (void)snprintf(path, sizeof path, "%s/%s", stage->dir.path, name);
    out = fopen(path, "we");
    ck_assert_msg(out != NULL, "%s", path);
    return out;
}

static void write_files(const struct hfb_stage *stage)
{
    const struct hfb_stage_options *options = &stage->options;
    FILE *out = create(stage, "launcher.yaml");

    (void)fprintf(out, "name: idle\ncommand: [%s]\n", options->agent);
    ck_assert_int_eq(fclose(out), 0);
    for (unsigned i = 0; i < options->count; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "a%u.yaml", i);
        out = create(stage, name);
        (void)fprintf(out, "name: a%u\nlauncher: idle\n", i);
        ck_assert_int_eq(fclose(out), 0);
    }
    out = create(stage, "agentd.yaml");
    (void)fprintf(out,
                  "host: h1\nttl: %ds\ncapacity: %u\nlaunchers: [launcher.yaml]\nagents:\n",
                  HFB_TTL_S, options->count);
    for (unsigned i = 0; i < options->count; i++)
        (void)fprintf(out, "  - a%u.yaml\n", i);
    ck_assert_int_eq(fclose(out), 0);
}

static void start_agentd(struct hfb_stage *stage)
{
    char config[HFT_PATH_MAX + 32], state[HFT_PATH_MAX + 32];

    (void)snprintf(config, sizeof config, "%s/agentd.yaml", stage->dir.path);
    (void)snprintf(state, sizeof state, "%s/agentd", stage->dir.path);
    if (stage->options.without_cgroups)
        (void)snprintf(stage->agentd.env, sizeof stage->agentd.env,
                       "HOLDFAST_AGENTD_CGROUPS=off");
    if (stage->options.with_mtls)
        hft_program_start(&stage->agentd, "agentd", stage->dir.path, "agentd",
                          stage->etcd.endpoint, "--config", config, "--state-dir", state,
                          "--stop-grace", "1s", "--cacert", stage->pki.ca, "--cert",
                          stage->cert.cert, "--key", stage->cert.key, NULL);
    else
        hft_program_start(&stage->agentd, "agentd", stage->dir.path, "agentd",
                          stage->etcd.endpoint, "--config", config, "--state-dir", state,
                          "--stop-grace", "1s", NULL);
}

static bool are_running(void *arg)
{
    const struct hfb_stage *stage = arg;

    return stage->live >= stage->options.count &&
           hfb_crowd_agents(stage->agentd.pid, NULL, 0) >= stage->options.count;
}

static void open_etcd(struct hfb_stage *stage)
{
    const char *const flags[] = { "--backend-batch-limit=500", NULL };
    struct hft_etcd_options options = { .extra_flags = flags };
    struct hft_etcd_tls tls;

    if (!stage->options.with_mtls) {
        hft_etcd_start(&stage->etcd, &options);
        hft_client_open(&stage->client, stage->etcd.endpoint, NULL);
        return;
    }
    hft_pki_init(&stage->pki);
    hft_pki_issue(&stage->pki, "bench", 86400, &stage->cert);
    tls = hft_pki_tls(&stage->pki, &stage->cert);
    options.tls = &tls;
    hft_etcd_start(&stage->etcd, &options);
    hft_client_open_with(
        &stage->client,
        &(struct hf_etcd_config){ .endpoints = (const char *const[]){ stage->etcd.endpoint },
                                  .endpoint_count = 1,
                                  .cacert = stage->pki.ca,
                                  .cert = stage->cert.cert,
                                  .key = stage->cert.key });
}

void hfb_stage_open(struct hfb_stage *stage, const struct hfb_stage_options *options)
{
    int64_t begun;

    *stage = (struct hfb_stage){ .options = *options };
    hft_tempdir_init(&stage->dir);
    open_etcd(stage);
    watch(stage);
    write_files(stage);
    begun = hfb_now_ns();
    start_agentd(stage);
    if (!hft_loop_try(&stage->client.loop, are_running, stage, START_MS))
        ck_abort_msg("%u of %u agents are registered after %d s, see %s", stage->live,
                     options->count, START_MS / 1000, stage->agentd.log_file);
    stage->start_ms = (double)(hfb_now_ns() - begun) / 1e6;
    stage->exits = 0;
}

void hfb_stage_close(struct hfb_stage *stage)
{
    (void)hft_program_stop(&stage->agentd);
    hf_mirror_close(stage->mirror);
    hft_client_close(&stage->client);
    hft_etcd_done(&stage->etcd);
    if (stage->options.with_mtls)
        hft_pki_done(&stage->pki);
    hft_tempdir_done(&stage->dir);
}

void hfb_stage_crowd(const struct hfb_stage *stage, struct hfb_crowd *ret_crowd)
{
    *ret_crowd = (struct hfb_crowd){ .count = 0 };
    hfb_crowd_find(ret_crowd, &stage->agentd.pid, 1);
}

static bool count_live(const struct hf_kv *kv, void *arg)
{
    if (is_key(kv, AGENTS, "/live"))
        (*(unsigned *)arg)++;
    return true;
}

void hfb_stage_demand_all(const struct hfb_stage *stage)
{
    size_t running = hfb_crowd_agents(stage->agentd.pid, NULL, 0);
    unsigned live = 0;

    hf_mirror_each(stage->mirror, count_live, &live);
    ck_assert_msg(live == stage->options.count && running >= live && stage->exits == 0,
                  "of %u agents %u are registered, %zu run, and %u have ended: that is not "
                  "what was to be measured",
                  stage->options.count, live, running, stage->exits);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void hfb_stage_rest(struct hfb_stage *stage, hf_ms span)
{
    (void)hft_loop_try(&stage->client.loop, never, NULL, span);
}

/* What is measured. */

static bool has_exit(void *arg)
{
    const struct hfb_stage *stage = arg;

    return stage->exit_ns != 0 && stage->dead_ns != 0;
}

static void on_dead(uv_poll_t *poll, int status, int events)
{
    struct hfb_stage *stage = poll->data;

    (void)status;
    (void)events;
    stage->dead_ns = hfb_now_ns();
    (void)uv_poll_stop(poll);
}

static void on_closed(uv_handle_t *handle)
{
    ((struct hfb_stage *)handle->data)->dead_ns = 0;
}

static bool is_closed(void *stage)
{
    return ((struct hfb_stage *)stage)->dead_ns == 0;
}

/* Where its end will stand; its environment says whose it is. */
static void find_exit_key(struct hfb_stage *stage, pid_t agent)
{
    static const char NAME[] = "HOLDFAST_AGENT=";
    HF_CLEANUP_FREE char *entry = NULL;
    char path[64];
    size_t cap = 0, len = sizeof NAME - 1;
    FILE *in;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", agent);
    in = fopen(path, "re");
    ck_assert_msg(in != NULL, "%s", path);
    stage->exit_key[0] = '\0';
    while (getdelim(&entry, &cap, '\0', in) > 0) {
        if (strncmp(entry, NAME, len) == 0)
            (void)snprintf(stage->exit_key, sizeof stage->exit_key, AGENTS "%s/exit",
                           entry + len);
    }
    (void)fclose(in);
    ck_assert_msg(stage->exit_key[0] != '\0', "process %d has no name", agent);
}

double hfb_stage_kill(struct hfb_stage *stage, pid_t agent, double *ret_dead_ms)
{
    HF_CLEANUP_FD int fd = (int)syscall(SYS_pidfd_open, agent, 0);
    uv_poll_t poll = { .data = stage };
    int64_t killed;

    ck_assert(fd >= 0 && uv_poll_init(&stage->client.loop.uv, &poll, fd) == 0 &&
              uv_poll_start(&poll, UV_READABLE, on_dead) == 0);
    find_exit_key(stage, agent);
    stage->exit_ns = stage->dead_ns = 0;
    killed = hfb_now_ns();
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    hft_loop_until(&stage->client.loop, has_exit, stage, STEP_MS, "the exit");
    *ret_dead_ms = (double)(stage->dead_ns - killed) / 1e6;
    uv_close((uv_handle_t *)&poll, on_closed);
    hft_loop_until(&stage->client.loop, is_closed, stage, STEP_MS, "the end of a handle");
    return (double)(stage->exit_ns - killed) / 1e6;
}

struct commit {
    struct hfb_stage *stage;
    int64_t answered_ns;
};

static void on_answer(const struct hf_txn_result *result, void *arg)
{
    struct commit *commit = arg;

    ck_assert_int_eq(result->result.err, HF_OK);
    ck_assert(result->succeeded);
    commit->answered_ns = hfb_now_ns();
}

static bool is_seen(void *arg)
{
    const struct commit *commit = arg;

    return commit->answered_ns != 0 && commit->stage->commit_ns != 0;
}

double hfb_stage_commit(struct hfb_stage *stage, double *ret_seen_ms)
{
    const struct hf_bytes live = hf_bytes_of("/bench/a/live"),
                          end = hf_bytes_of("/bench/a/exit");
    hf_rev born = hft_put(&stage->client, "/bench/a/live", "life", HF_NO_LEASE);
    struct commit commit = { .stage = stage };
    struct hf_txn *txn = hf_txn_new();
    int64_t begun;

    hfb_stage_rest(stage, 50); /* as long as the rest before a kill is, or the machine sleeps */
    hf_txn_if_create(txn, live, HF_TXN_EQUAL, born);
    hf_txn_if_lease(txn, live, HF_TXN_EQUAL, HF_NO_LEASE);
    hf_txn_then_put(txn, end, hf_bytes_of(stage->exit_value), HF_NO_LEASE);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = live });
    stage->commit_ns = 0;
    begun = hfb_now_ns();
    ck_assert_int_eq(hf_txn_commit(stage->client.etcd, txn, NULL, on_answer, &commit, NULL),
                     HF_OK);
    hft_loop_until(&stage->client.loop, is_seen, &commit, STEP_MS, "the commit");
    hf_txn_free(txn);
    *ret_seen_ms = (double)(stage->commit_ns - begun) / 1e6;
    return (double)(commit.answered_ns - begun) / 1e6;
}
