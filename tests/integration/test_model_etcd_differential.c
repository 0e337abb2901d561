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
                  "seed %" PRIu64 ", %s differs\n--- etcd:\n%.1000s\n--- model:\n%.1000s\n--- "
                  "after:\n%.5000s"
                  "--- to see it again:\nHFT_SEED=%" PRIu64 " HFT_PROGRAMS=1 HFT_STEPS=%u "
                  "test_model_etcd_differential",
                  run.seed, what, real, model, text_of(&run.transcript), run.seed, run.steps);
}

/* What is wrong by itself is told first by an etcd that is full and yet has room for so little.
 * If the model had taken it, the difference is told in any case. */
static void answer_with_space(const struct hfs_request *request, struct hf_buf *model)
{
    HF_CLEANUP_FREE struct hfs_answer *answer = NULL;

    hfs_etcd_get_faults(run.model)->no_space = false;
    ck_assert_int_eq(hfs_etcd_serve(run.model, MEMBER, request, &answer), HFS_ANSWERED);
    hfs_etcd_get_faults(run.model)->no_space = true;
    hf_buf_clear(model);
    hfs_answer_format(request->kind, answer, model);
}

/* The same question to both. */
static void ask(const struct hfs_request *request)
{
    HF_CLEANUP_BUF struct hf_buf real = { 0 };
    HF_CLEANUP_BUF struct hf_buf model = { 0 };
    HF_CLEANUP_FREE struct hfs_answer *answer = NULL;

    const struct hfs_faults *faults = hfs_etcd_get_faults(run.model);

    hfs_request_format(request, &run.transcript);
    hf_buf_putc(&run.transcript, '\n');
    ck_assert_int_eq(hfs_etcd_advance(run.model, hft_now() - began_at), HF_OK);
    ck_assert_int_eq(hfs_etcd_serve(run.model, MEMBER, request, &answer), HFS_ANSWERED);
    hfs_answer_format(request->kind, answer, &model);
    hft_peer_ask(&client, request, answer, &real);
    if (faults->no_space && strncmp(text_of(&real), "EINVAL", 6) == 0)
        answer_with_space(request, &model);
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

static int64_t first_lease_of(uint64_t seed)
{
    return (int64_t)(seed % INT32_MAX) * HFS_PROGRAM_LEASES + 1;
}

static void do_steps(struct hfs_program *program, unsigned steps, bool with_watches)
{
    for (unsigned i = 0; i < steps; i++) {
        struct hfs_step step = hfs_program_next(program, hfs_etcd_get_store(run.model));

        if (step.is_watch && with_watches)
            open_watch(&step.range, step.start_rev);
        if (step.is_watch)
            continue;
        if (step.request.kind == HFS_COMPACT)
            settle_watches();
        ask(&step.request);
    }
}

static void revoke_all(uint64_t seed)
{
    for (int i = 0; i < HFS_PROGRAM_LEASES; i++)
        ask(&(struct hfs_request){ .kind = HFS_REVOKE, .lease = first_lease_of(seed) + i });
}

/* A program from its beginning to its end, in what is there. */
static void live_through(uint64_t seed, unsigned steps)
{
    struct hfs_program program;

    hfs_program_init(&program, seed, first_lease_of(seed));
    do_steps(&program, steps, true);
    revoke_all(seed);
    settle_watches();
    compare_watches();
}

static void run_program(uint64_t seed, unsigned steps)
{
    begin(seed, steps);
    live_through(seed, steps);
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

/* Leases that end by themselves. */

enum { SHORT_TTL_S = 2, WAIT_MS = 60000 };

static void grant(int64_t lease, int64_t ttl_s)
{
    ask(&(struct hfs_request){ .kind = HFS_GRANT, .lease = lease, .ttl_s = ttl_s });
}

static void put_both(const char *key, const char *value, int64_t lease)
{
    struct hfs_request request = put(key, value, lease);

    ask(&request);
}

static void read_all(void)
{
    ask(&(struct hfs_request){ .kind = HFS_RANGE, .op.range.range.prefix = true });
}

static int64_t ttl_left(int64_t lease)
{
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_etcd_lease_ttl(client.etcd, lease, false, hft_on_ttl, &outcome, NULL),
                     HF_OK);
    hft_await(&client, &outcome, WAIT_MS);
    ck_assert_int_eq(outcome.err, HF_OK);
    return outcome.ttl_s;
}

static int64_t model_ttl_left(int64_t lease)
{
    HF_CLEANUP_FREE struct hfs_answer *answer = NULL;
    struct hfs_request request = { .kind = HFS_TTL, .lease = lease };

    ck_assert_int_eq(hfs_etcd_advance(run.model, hft_now() - began_at), HF_OK);
    ck_assert_int_eq(hfs_etcd_serve(run.model, MEMBER, &request, &answer), HFS_ANSWERED);
    return answer->ttl_s;
}

/* In both: each ends a lease when it looks for those that are over, and not at the same moment.
 */
static bool is_over(void *lease)
{
    int64_t id = *(int64_t *)lease;

    return model_ttl_left(id) < 0 && ttl_left(id) < 0;
}

START_TEST(a_lease_that_nobody_renews_takes_all_its_keys_in_one_revision)
{
    begin(setting("HFT_SEED", 1), 0);
    open_watch(&(struct hfs_range){ .prefix = true }, 0);
    grant(1000, 3600);
    put_both("stays", "1", 1000);
    for (int64_t lease = 1001; lease <= 1003; lease++) {
        grant(lease, SHORT_TTL_S);
        put_both("c", "1", lease);
        put_both("a", "1", lease);
        put_both("b", "1", lease);
        put_both("moved", "1", lease);
        put_both("moved", "2", 1000);
        put_both("freed", "1", lease);
        put_both("freed", "2", 0);
        /* The lease may end any moment now, in one before the other. */
        hft_wait_or_fail(is_over, &lease, WAIT_MS, "a lease to end");
        read_all();
        ask(&(struct hfs_request){ .kind = HFS_TTL, .lease = lease });
        ask(&(struct hfs_request){ .kind = HFS_RENEW, .lease = lease });
        ask(&(struct hfs_request){ .kind = HFS_REVOKE, .lease = lease });
        put_both("late", "1", lease);
    }
    ask(&(struct hfs_request){ .kind = HFS_REVOKE, .lease = 1000 });
    settle_watches();
    compare_watches();
    end();
}
END_TEST

/* Another leader. */

enum { LONG_TTL_S = 60, AGED_TTL_S = 54 };

static bool has_aged(void *lease)
{
    return ttl_left(*(int64_t *)lease) <= AGED_TTL_S;
}

START_TEST(a_new_leader_keeps_what_there_is_and_extends_every_lease)
{
    uint64_t seed = setting("HFT_SEED", 1);
    struct hfs_program program;
    int64_t lease = 1000;

    begin(seed, 60);
    grant(lease, LONG_TTL_S);
    put_both("held", "1", lease);
    hfs_program_init(&program, seed, first_lease_of(seed));
    do_steps(&program, 60, false);
    revoke_all(seed);
    hft_wait_or_fail(has_aged, &lease, WAIT_MS, "a lease to grow old");
    ck_assert_int_le(model_ttl_left(lease), AGED_TTL_S + 1);
    /* The only member leads in another term. */
    hft_etcd_kill(&server);
    hft_etcd_restart(&server);
    ck_assert_int_eq(hfs_etcd_advance(run.model, hft_now() - began_at), HF_OK);
    ck_assert_int_eq(hfs_etcd_change_leader(run.model), HF_OK);
    ck_assert_int_gt(ttl_left(lease), AGED_TTL_S);
    ck_assert_int_le(ttl_left(lease), LONG_TTL_S + 1);
    ck_assert_int_gt(model_ttl_left(lease), AGED_TTL_S);
    ck_assert_int_le(model_ttl_left(lease), LONG_TTL_S + 1);
    read_all();
    ask(&(struct hfs_request){ .kind = HFS_REVOKE, .lease = lease });
    live_through(seed + 1, 60);
    end();
}
END_TEST

/* A full etcd. */

enum { QUOTA_BYTES = 16 << 20, BLOB_BYTES = 1 << 20, MOST_BLOBS = 100 };

static void setup_small(void)
{
    start(&(struct hft_etcd_options){ .no_fsync = true, .quota_bytes = QUOTA_BYTES });
}

/* One large put to both; false: etcd says that it is full. The put that finds it out may have
 * been applied all the same, which only the revision tells. */
static bool put_large(const struct hfs_request *request)
{
    HF_CLEANUP_BUF struct hf_buf real = { 0 };
    HF_CLEANUP_BUF struct hf_buf model = { 0 };
    HF_CLEANUP_FREE struct hfs_answer *answer = NULL;
    hf_rev before = hft_read(&client, LAST).header.revision;
    bool full, applied;

    hft_peer_ask(&client, request, NULL, &real);
    full = strncmp(text_of(&real), "ENOSPACE", 8) == 0;
    applied = hft_read(&client, LAST).header.revision > before;
    hfs_etcd_get_faults(run.model)->no_space = !applied;
    ck_assert_int_eq(hfs_etcd_serve(run.model, MEMBER, request, &answer), HFS_ANSWERED);
    hfs_etcd_get_faults(run.model)->no_space = full;
    hfs_answer_format(request->kind, answer, &model);
    if (full != applied)
        expect_same("a large put", text_of(&real), text_of(&model));
    return !full;
}

/* The model is told when etcd is full. */
static void fill_both(void)
{
    HF_CLEANUP_FREE char *blob = malloc(BLOB_BYTES + 1);
    struct hfs_request request;
    int count = 0;

    ck_assert_ptr_nonnull(blob);
    memset(blob, 'x', BLOB_BYTES);
    blob[BLOB_BYTES] = '\0';
    request = put("fill", blob, 0);
    while (put_large(&request))
        ck_assert_msg(++count < MOST_BLOBS, "etcd takes more than its quota");
}

static void compact_all(void)
{
    settle_watches();
    ask(&(struct hfs_request){ .kind = HFS_COMPACT,
                               .compact = hft_read(&client, LAST).header.revision });
}

static void make_room(void)
{
    hft_etcdctl_ok(&server, NULL, "defrag", NULL);
    hft_etcdctl_ok(&server, NULL, "alarm", "disarm", NULL);
    hfs_etcd_get_faults(run.model)->no_space = false;
}

START_TEST(a_full_etcd_refuses_what_adds_and_serves_the_rest)
{
    uint64_t seed = setting("HFT_SEED", 1);
    struct hfs_program program;

    begin(seed, 120);
    hfs_program_init(&program, seed, first_lease_of(seed));
    do_steps(&program, 60, false);
    fill_both();
    ask(&(struct hfs_request){ .kind = HFS_DELETE, .op.erase.key = hf_bytes_of("fill") });
    compact_all(); /* nobody watches what is larger than a watch may be */
    do_steps(&program, 120, true);
    grant(1000, LONG_TTL_S);
    put_both("more", "1", 0);
    make_room();
    put_both("more", "1", 0);
    do_steps(&program, 60, true);
    revoke_all(seed);
    settle_watches();
    compare_watches();
    end();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("programs");
    TCase *full = tcase_create("full");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, random_programs_get_the_same_answers);
    tcase_add_test(t, a_lease_that_nobody_renews_takes_all_its_keys_in_one_revision);
    tcase_add_test(t, a_new_leader_keeps_what_there_is_and_extends_every_lease);
    tcase_set_timeout(t, 280);
    tcase_add_checked_fixture(full, setup_small, teardown);
    tcase_add_test(full, a_full_etcd_refuses_what_adds_and_serves_the_rest);
    tcase_set_timeout(full, 280);
    return hft_suite_run("model etcd against etcd", t, full, NULL);
}
