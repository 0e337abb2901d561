/* S13: gRPC does not support fork, and still a controller starts programs, with uv_spawn: its
 * child touches nothing of gRPC before it becomes another program. Here the controller's own
 * code starts one after the other while everything that lib/etcd can do goes on. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/alert.h"
#include "support/etcd.h"
#include "support/follower.h"
#include "support/suite.h"

enum { SPAWNS = 150, LOOKS = 50, AHEAD = 40, PROGRAM_MS = 60000 };

static struct hft_etcd etcd;
static struct hft_client client;

/* What came from outside, and Check's own, is not what is looked for. */
static void hide_descriptors(void)
{
    for (int fd = 3; fd < 1024; fd++)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* most are not open */
}

static void setup(void)
{
    hide_descriptors();
    (void)signal(SIGPIPE, SIG_IGN); /* as in the controller */
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open_with(
        &client, &(struct hf_etcd_config){ .endpoints = &(const char *){ etcd.endpoint },
                                           .endpoint_count = 1,
                                           .timeout = 60000,
                                           .separate_channels = true }); /* as there */
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&etcd);
}

/* Puts, one after the other. */
struct puts {
    bool going, busy;
    unsigned done, failed;
};

static void put_next(struct puts *puts);

static void on_put(const struct hf_write_result *result, void *arg)
{
    struct puts *puts = arg;

    puts->busy = false;
    puts->done++;
    puts->failed += result->result.err != HF_OK;
    if (puts->going)
        put_next(puts);
}

static void put_next(struct puts *puts)
{
    char key[32];

    (void)snprintf(key, sizeof key, "w/%02u", puts->done % 50);
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of(key), hf_bytes_of("v"), HF_NO_LEASE,
                                 on_put, puts, NULL),
                     HF_OK);
    puts->busy = true;
}

static bool rests(void *arg)
{
    return !((struct puts *)arg)->busy;
}

/* A program that is run over and over. */
struct program {
    struct hf_strings command;
    struct ctl_alerts_config cfg;
    struct ctl_alerts *alerts;
    unsigned wanted, added;
};

static void begin_program(struct program *program, const char *const *words, unsigned wanted)
{
    *program = (struct program){ .wanted = wanted };
    program->command.items = words;
    while (words[program->command.count] != NULL)
        program->command.count++;
    program->cfg = (struct ctl_alerts_config){ .command = &program->command,
                                               .timeout = PROGRAM_MS,
                                               .actor = "test" };
    program->alerts = ctl_alerts_new(&client.loop.uv, &program->cfg);
    ck_assert_ptr_nonnull(program->alerts);
}

/* Keeps it busy; false when it has run as often as was wanted. */
static bool goes_on(struct program *program)
{
    struct hf_intent_alert alert = { .kind = HOLDFAST__V1__EVENT__KIND__held, .agent = "a" };
    struct ctl_alerts_stats stats = ctl_alerts_get_stats(program->alerts);

    ck_assert_uint_eq(stats.failed + stats.dropped, 0);
    for (size_t i = stats.queued; i < AHEAD && program->added < program->wanted; i++) {
        ctl_alerts_add(program->alerts, &alert);
        program->added++;
    }
    return stats.told < program->wanted;
}

static unsigned spawns(void)
{
    const char *text = getenv("HOLDFAST_SPAWNS");

    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : SPAWNS;
}

START_TEST(s13_programs_started_while_grpc_lives_disturb_neither_calls_nor_watch_nor_lease)
{
    static const char *const WORDS[] = { "/bin/true", NULL };
    struct puts puts = { .going = true };
    struct hft_follower follower = { 0 };
    struct hft_renewals renewals;
    struct program program;

    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 30000);
    hft_renewals_start(&client, &renewals, hft_grant(&client, 600));
    put_next(&puts);
    begin_program(&program, WORDS, spawns());
    while (goes_on(&program)) {
        unsigned events = follower.events;

        ck_assert_int_eq(hft_renew(&client, &renewals, 60000).ttl_s, 600);
        hft_client_until(&client, &puts.done, puts.done + 2, 60000, "more puts");
        hft_client_until(&client, &follower.events, events + 1, 60000, "more events");
    }
    ctl_alerts_close(program.alerts);
    puts.going = false;
    hft_loop_until(&client.loop, rests, &puts, 60000, "the last put");
    ck_assert_uint_eq(puts.failed, 0);
    hft_follower_settle(&follower, &etcd, 30000);
    hft_follower_assert_undisturbed(&follower);
    hft_renewals_stop(&renewals);
    hft_follower_stop(&follower);
}
END_TEST

static void expect_standard_descriptors(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned lines = 0;
    char line[256];

    ck_assert_ptr_nonnull(file);
    for (; fgets(line, sizeof line, file) != NULL; lines++)
        ck_assert_str_eq(line, "0, 1, 2\n");
    ck_assert_uint_eq(lines, LOOKS);
    (void)fclose(file);
}

/* Connections to etcd, made and broken meanwhile, the loop's own descriptors: none of them is
 * for a stranger to have. */
START_TEST(s13_programs_inherit_no_descriptor)
{
    char path[HFT_PATH_MAX + 16];
    const char *const words[] = { "/bin/sh", "-c", "exec >>\"$0\"; ls -m /proc/$$/fd; exit $?",
                                  path, NULL };
    struct hft_follower follower = { 0 };
    struct puts puts = { .going = true };
    struct program program;

    (void)snprintf(path, sizeof path, "%s/descriptors", etcd.dir.path);
    hft_follower_start(&client, &follower, "w/");
    put_next(&puts);
    begin_program(&program, words, LOOKS);
    while (goes_on(&program)) {
        struct hft_client guest;

        hft_client_open(&guest, etcd.endpoint, NULL);
        (void)hft_read_at_last(&guest, "k");
        hft_client_until(&client, &puts.done, puts.done + 1, 60000, "another put");
        hft_client_close(&guest);
    }
    ctl_alerts_close(program.alerts);
    puts.going = false;
    hft_loop_until(&client.loop, rests, &puts, 60000, "the last put");
    hft_follower_stop(&follower);
    expect_standard_descriptors(path);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("s13");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60 + spawns() / 10.0);
    tcase_add_test(
        t, s13_programs_started_while_grpc_lives_disturb_neither_calls_nor_watch_nor_lease);
    tcase_add_test(t, s13_programs_inherit_no_descriptor);
    return hft_suite_run("controller/alert: S13", t, NULL);
}
