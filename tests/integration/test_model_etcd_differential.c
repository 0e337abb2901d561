/* The model etcd of tests/sim against a real one: the same random programs, answer for answer.
 *
 * HFT_SEED is the first seed (1), HFT_PROGRAMS how many programs are run (40), HFT_STEPS how
 * long each is (60). A difference is told with the seed that shows it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "integration/model_peer.h"
#include "sim/program.h"
#include "support/etcd.h"
#include "support/suite.h"

enum { MOST_WATCHES = 64, MEMBER = 0 };

static const char LAST[] = "~last"; /* written at the end, to know that nothing more comes */

static struct hft_etcd server;
static struct hft_client client;
static hf_ms began_at; /* virtual time is the time since then */

/* One program under way. */
static struct {
    struct hfs_etcd *model;
    uint64_t seed;
    unsigned steps;
    struct hf_buf transcript;
    struct both_watches {
        struct hft_peer_watch *real;
        uint64_t model;
        struct hf_buf told; /* by the model */
        size_t events;
        bool over;
    } watches[MOST_WATCHES];
    size_t watch_count;
    bool has_new_watch;
} run;

static void start(const struct hft_etcd_options *options)
{
    hft_etcd_start(&server, options);
    hft_client_open(&client, server.endpoint, NULL);
    began_at = hft_now();
}

static void setup(void)
{
    start(&(struct hft_etcd_options){ .no_fsync = true });
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&server);
}

/* A number from the environment. */
static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    ck_assert_msg(text == NULL || hf_parse_u64(text, 1, UINT64_MAX, &value) == HF_OK,
                  "%s is not a number: %s", name, text);
    return value;
}

static const char *text_of(const struct hf_buf *buf)
{
    ck_assert_int_eq(buf->err, HF_OK);
    return buf->len > 0 ? buf->data : "";
}

static void expect_same(const char *what, const char *real, const char *model)
{
    ck_assert_msg(strcmp(real, model) == 0,
                  "seed %" PRIu64 ", %s differs\n--- etcd:\n%s\n--- model:\n%s\n--- after:\n%s"
                  "--- to see it again:\nHFT_SEED=%" PRIu64 " HFT_PROGRAMS=1 HFT_STEPS=%u "
                  "test_model_etcd_differential",
                  run.seed, what, real, model, text_of(&run.transcript), run.seed, run.steps);
}

/* The same question to both. */
static void ask(const struct hfs_request *request)
{
    HF_CLEANUP_BUF struct hf_buf real = { 0 };
    HF_CLEANUP_BUF struct hf_buf model = { 0 };
    HF_CLEANUP_FREE struct hfs_answer *answer = NULL;

    hfs_request_format(request, &run.transcript);
    hf_buf_putc(&run.transcript, '\n');
    ck_assert_int_eq(hfs_etcd_advance(run.model, hft_now() - began_at), HF_OK);
    ck_assert_int_eq(hfs_etcd_serve(run.model, MEMBER, request, &answer), HFS_ANSWERED);
    hfs_answer_format(request->kind, answer, &model);
    hft_peer_ask(&client, request, answer, &real);
    expect_same("the last answer", text_of(&real), text_of(&model));
}

static struct hfs_request put(const char *key, const char *value, int64_t lease)
{
    return (struct hfs_request){
        .kind = HFS_PUT,
        .op.put = { .key = hf_bytes_of(key), .value = hf_bytes_of(value), .lease = lease }
    };
}

static void open_watch(const struct hfs_range *range, hfs_rev start_rev)
{
    struct both_watches *both = &run.watches[run.watch_count++];

    ck_assert_uint_lt(run.watch_count, MOST_WATCHES);
    hf_buf_puts(&run.transcript, "watch ");
    hfs_range_format(range, &run.transcript);
    hf_buf_printf(&run.transcript, " from %" PRId64 "\n", start_rev);
    ck_assert_int_eq(hfs_watch_open(run.model, MEMBER, range, start_rev, &both->model),
                     HFS_ANSWERED);
    both->real = hft_peer_watch_open(&client, range, start_rev, LAST);
    run.has_new_watch = true;
}

/* Writes down all that the model has to tell a watch. */
static void drain(struct both_watches *both)
{
    struct hfs_batch *batch = NULL;
    int told = 0;

    while (!both->over && (told = hfs_watch_next(run.model, both->model, &batch)) == 1) {
        for (size_t i = 0; i < batch->count; i++) {
            hfs_event_format(&batch->events[i], &both->told);
            hf_buf_putc(&both->told, '\n');
        }
        both->events += batch->count;
        free(batch);
    }
    if (told < 0) {
        hf_buf_printf(&both->told, "%s\n", hf_err_name(told));
        both->over = true;
    }
}

static bool watches_are_up_to_date(void *ignored)
{
    (void)ignored;
    return hft_etcd_metric(&server, "etcd_debugging_mvcc_slow_watcher_total", 1) == 0;
}

/* A watch that is behind when a compaction comes may be ended by it, or not. What can be
 * compared are those that are not behind. */
static void settle_watches(void)
{
    if (run.has_new_watch)
        hft_wait_or_fail(watches_are_up_to_date, NULL, 10000, "watches to be up to date");
    run.has_new_watch = false;
    for (size_t i = 0; i < run.watch_count; i++)
        drain(&run.watches[i]);
}

static void compare_watches(void)
{
    struct hfs_request last = put(LAST, "", 0);

    ask(&last);
    for (size_t i = 0; i < run.watch_count; i++) {
        struct both_watches *both = &run.watches[i];
        char name[32];

        drain(both);
        (void)snprintf(name, sizeof name, "watch %zu", i + 1);
        expect_same(name, hft_peer_watch_collect(&client, both->real, both->events),
                    text_of(&both->told));
    }
}

/* An empty etcd, whose past is gone, and a model of it. */
static void begin(uint64_t seed, unsigned steps)
{
    HF_CLEANUP_BUF struct hf_buf ignored = { 0 };
    struct hfs_request everything = { .kind = HFS_DELETE, .op.erase.prefix = true };
    struct hfs_request compaction = { .kind = HFS_COMPACT };
    struct hfs_etcd_config cfg = { .seed = seed, .now = hft_now() - began_at };

    run.seed = seed;
    run.steps = steps;
    hft_put(&client, LAST, "", HF_NO_LEASE);
    hft_peer_ask(&client, &everything, NULL, &ignored);
    cfg.revision = compaction.compact = hft_read(&client, LAST).header.revision;
    ck_assert_int_eq(hfs_etcd_new(&cfg, &run.model), HF_OK);
    ask(&compaction);
}

static void end(void)
{
    for (size_t i = 0; i < run.watch_count; i++) {
        hft_peer_watch_free(run.watches[i].real);
        hf_buf_done(&run.watches[i].told);
    }
    hf_buf_done(&run.transcript);
    hfs_etcd_free(run.model);
    memset(&run, 0, sizeof run);
}

static void run_program(uint64_t seed, unsigned steps)
{
    struct hfs_program program;
    int64_t first_lease = (int64_t)(seed % INT32_MAX) * HFS_PROGRAM_LEASES + 1;

    begin(seed, steps);
    hfs_program_init(&program, seed, first_lease);
    for (unsigned i = 0; i < steps; i++) {
        struct hfs_step step = hfs_program_next(&program, hfs_etcd_get_store(run.model));

        if (step.is_watch) {
            open_watch(&step.range, step.start_rev);
            continue;
        }
        if (step.request.kind == HFS_COMPACT)
            settle_watches();
        ask(&step.request);
    }
    for (int i = 0; i < HFS_PROGRAM_LEASES; i++)
        ask(&(struct hfs_request){ .kind = HFS_REVOKE, .lease = first_lease + i });
    settle_watches();
    compare_watches();
    end();
}

START_TEST(random_programs_get_the_same_answers)
{
    uint64_t first = setting("HFT_SEED", 1), programs = setting("HFT_PROGRAMS", 40);
    unsigned steps = (unsigned)setting("HFT_STEPS", 60);

    for (uint64_t i = 0; i < programs; i++)
        run_program(first + i, steps);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("programs");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, random_programs_get_the_same_answers);
    tcase_set_timeout(t, 280);
    return hft_suite_run("model etcd against etcd", t, NULL);
}
