/* A controller on a real etcd; hosts and agents are keys that the test writes, exactly as their
 * agentd would. */
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/http.h"
#include "support/program.h"
#include "support/records.h"
#include "support/suite.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000, TTL_S = 3 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_program a, b;
static char port_file[HFT_PATH_MAX + 32];

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    (void)snprintf(port_file, sizeof port_file, "%s/port", server.dir.path);
    a = b = (struct hft_program){ 0 };
}

static void teardown(void)
{
    if (a.pid != 0)
        hft_program_kill(&a);
    if (b.pid != 0)
        hft_program_kill(&b);
    hft_client_close(&hand);
    hft_etcd_done(&server);
}

static void start(struct hft_program *program, const char *id)
{
    hft_program_start(program, "holdfast-controller", server.dir.path, id, server.endpoint,
                      "--id", id, "--ttl", "3s", NULL);
    hft_program_until_said(program, "event=synced", STEP_MS);
}

static struct hft_outcome look(const char *key)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read(&hand, text);
}

static hf_rev put(const char *key, const char *value, int64_t lease)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_put(&hand, text, value, lease);
}

/* Its agentd saw it crash: the exit and the end of the live key are one Txn that compares both
 * the life and its lease. */
static void put_crash(hf_rev life, int64_t lease)
{
    struct hf_txn *txn = hf_txn_new();
    struct hf_bytes live = hf_bytes_of(ROOT "agents/w1/live");
    char json[256];

    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"%" PRId64
                   "\"},\"evidence\":[{\"source\":\"waitpid\",\"text\":\"signal 11\"}]}",
                   life);
    hf_txn_if_create(txn, live, HF_TXN_EQUAL, life);
    hf_txn_if_lease(txn, live, HF_TXN_EQUAL, lease);
    hf_txn_then_put(txn, hf_bytes_of(ROOT "agents/w1/exit"), hf_bytes_of(json), HF_NO_LEASE);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = live });
    ck_assert(hft_commit(&hand, txn, false).succeeded);
}

static bool is_there(void *key)
{
    return look(key).count == 1;
}

static void until_ordered(void)
{
    hft_wait_or_fail(is_there, (void *)"commands/h/w1", STEP_MS, "the order of a start");
}

static bool is_suspect(void *arg)
{
    (void)arg;
    return strstr(look("health/w1").value, "\"state\":\"suspect\"") != NULL;
}

/* A leader's first write. */
static bool has_acted(void *id)
{
    char wanted[64];

    (void)snprintf(wanted, sizeof wanted, "\"leader\":\"%s\"", (const char *)id);
    return strstr(look("controller/clock").value, wanted) != NULL;
}

/* Entries of the audit trail that a controller wrote. */
static unsigned count_events_of(const char *id)
{
    HF_CLEANUP_FREE char *events = NULL;
    char wanted[64];
    unsigned count = 0;

    (void)snprintf(wanted, sizeof wanted, "\"actor\":\"%s\"", id);
    hft_etcdctl_ok(&server, &events, "get", "--prefix", ROOT "events/", NULL);
    for (const char *at = events; (at = strstr(at, wanted)) != NULL; at++)
        count++;
    return count;
}

START_TEST(a_crash_resets_the_task_and_orders_one_start)
{
    struct hft_outcome task, command;
    hf_rev life;
    int64_t lease;

    lease = hft_put_worker(&hand, "w1", 0, &life);
    start(&a, "a");
    hft_program_until_said(&a, "event=leading", STEP_MS);
    start(&b, "b");
    put_crash(life, lease);
    until_ordered();
    command = look("commands/h/w1");
    task = look("tasks/t");
    ck_assert_ptr_nonnull(strstr(command.value, "\"task\":\"t\""));
    ck_assert_ptr_nonnull(strstr(task.value, "\"state\":\"pending\""));
    ck_assert_ptr_nonnull(strstr(task.value, "\"attempt\":1"));
    ck_assert_int_eq(task.mod_rev, command.create_rev); /* one Txn */
    /* Whoever leads next, finds it ordered. */
    ck_assert_int_eq(hft_program_stop(&a), 0);
    hft_program_until_said(&b, "event=leading", STEP_MS);
    hft_wait_or_fail(has_acted, (void *)"b", STEP_MS, "the next leader's first write");
    ck_assert_int_eq(look("commands/h/w1").version, 1);
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"attempt\":1"));
    ck_assert_int_eq(hft_program_stop(&b), 0);
}
END_TEST

START_TEST(an_owner_whose_keys_vanish_is_suspected_and_then_replaced)
{
    hf_rev life;
    int64_t lease = hft_put_worker(&hand, "w1", 0, &life);

    /* A second host, so that not everyone is gone and somebody can take over. */
    (void)put("agents/w1/spec", "{\"role\":\"r\",\"launcher\":\"w\"}", HF_NO_LEASE);
    (void)put("hosts/h2/record", "{\"capacity\":10,\"launchers\":[\"w\"]}", HF_NO_LEASE);
    (void)put("hosts/h2/live", "{\"ttl\":\"3s\"}", hft_grant(&hand, 60));
    (void)put("agents/w1/live", "{\"host\":\"h\",\"instanceId\":\"one\",\"ttl\":\"3s\"}",
              lease);
    start(&a, "a");
    hft_program_until_said(&a, "event=leading", STEP_MS);
    hft_revoke(&hand, lease);
    hft_wait_or_fail(is_suspect, NULL, STEP_MS, "the suspicion");
    hft_wait_or_fail(is_there, (void *)"commands/h2/w1", STEP_MS, "the order, elsewhere");
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"attempt\":1"));
    ck_assert_int_eq(look("commands/h2/w1").version, 1);
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

/* One that stood still longer than its lease: what it still wants to write when it goes on is
 * compared with the leader's key, and refused. */
START_TEST(a_leader_that_was_stopped_writes_nothing_when_it_goes_on)
{
    hf_rev life, term;
    int64_t lease = hft_put_worker(&hand, "w1", 0, &life);
    unsigned events;

    start(&a, "a");
    hft_wait_or_fail(has_acted, (void *)"a", STEP_MS, "the first leader's first write");
    start(&b, "b");
    hft_process_pause(a.pid);
    hft_program_until_said(&b, "event=leading", STEP_MS);
    events = count_events_of("a");
    term = look("controller/leader").create_rev;
    put_crash(life, lease);
    until_ordered();
    hft_process_resume(a.pid);
    hft_program_until_said(&a, "event=following", STEP_MS);
    ck_assert_int_eq(look("controller/leader").create_rev, term);
    ck_assert_int_eq(look("commands/h/w1").version, 1);
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"attempt\":1"));
    ck_assert_uint_eq(count_events_of("a"), events);
    ck_assert(has_acted((void *)"b"));
    ck_assert_int_eq(hft_program_stop(&b), 0);
    hft_wait_or_fail(has_acted, (void *)"a", STEP_MS, "the first one leading again");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

START_TEST(a_record_that_cannot_be_read_is_named_and_stops_nothing_else)
{
    hf_rev life;
    int64_t lease;

    (void)put("agents/bad/spec", "{\"role\":", HF_NO_LEASE);
    (void)put("tasks/Not A Name", "{}", HF_NO_LEASE);
    lease = hft_put_worker(&hand, "w1", 0, &life);
    start(&a, "a");
    hft_program_until_said(&a, "event=leading", STEP_MS);
    hft_program_until_said(&a, "event=bad_record", STEP_MS);
    ck_assert(hft_program_said(&a, "key=agents/bad/spec"));
    ck_assert(hft_program_said(&a, "key=\"tasks/Not A Name\""));
    put_crash(life, lease);
    until_ordered();
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

/* How often anybody has listed or read keys. (What the store itself counts as reads includes
 * the compares of every Txn.) */
static double count_reads(void)
{
    return hft_etcd_metric(&server,
                           "grpc_server_handled_total{grpc_code=\"OK\",grpc_method=\"Range\","
                           "grpc_service=\"etcdserverpb.KV\",grpc_type=\"unary\"}",
                           0);
}

/* A controller watches the fleet and, apart from it, the leader's key; each watch begins after
 * its list. That of the key may come after it has said that it knows the fleet. */
static bool both_watch(void *arg)
{
    (void)arg;
    return hft_etcd_metric(&server, "etcd_debugging_mvcc_watcher_total", 0) == 4;
}

/* A standby knows everything already: it leads, finds a death that nobody has acted on, resets
 * the task and orders the start, and reads nothing for it. */
START_TEST(a_takeover_needs_no_listing)
{
    hf_rev life;
    int64_t lease = hft_put_worker(&hand, "w1", 0, &life);
    double none = count_reads(), before;

    start(&a, "a");
    hft_program_until_said(&a, "event=leading", STEP_MS);
    start(&b, "b");
    hft_wait_or_fail(both_watch, NULL, STEP_MS, "the last list");
    before = count_reads();
    ck_assert_msg(before > none, "to begin with everything is read");
    hft_program_kill(&a);
    put_crash(life, lease);
    hft_program_until_said(&b, "event=leading", STEP_MS);
    hft_program_until_said(&b, "it crashed: it is started again", STEP_MS);
    ck_assert_double_eq(count_reads(), before);
    ck_assert(is_there((void *)"commands/h/w1"));
    ck_assert_int_eq(hft_program_stop(&b), 0);
}
END_TEST

static bool port_is_there(void *arg)
{
    struct stat status;

    (void)arg;
    return stat(port_file, &status) == 0;
}

static uint16_t start_serving(const char *command)
{
    char text[16] = "";
    HF_CLEANUP_FD int fd = -1;
    uint64_t port;

    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint, "--id",
                      "a", "--listen", "127.0.0.1:0", "--port-file", port_file,
                      "--alert-command", command, "--alert-timeout", "2s", NULL);
    hft_wait_or_fail(port_is_there, NULL, STEP_MS, "the port");
    fd = open(port_file, O_RDONLY | O_CLOEXEC);
    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    text[strcspn(text, "\n")] = '\0';
    ck_assert_int_eq(hf_parse_u64(text, 1, UINT16_MAX, &port), HF_OK);
    return (uint16_t)port;
}

/* Every line is a comment or `name{label="value"} number`, and every name has its head before.
 */
static void check_metrics(char *text)
{
    char head[128] = "";
    unsigned samples = 0;

    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *end, *space = strrchr(line, ' ');

        if (strncmp(line, "# TYPE ", 7) == 0) {
            (void)snprintf(head, sizeof head, "%.*s", (int)strcspn(line + 7, " "), line + 7);
            continue;
        }
        if (line[0] == '#')
            continue;
        ck_assert_msg(strncmp(line, head, strlen(head)) == 0, "%s without a head", line);
        ck_assert_msg(space != NULL, "%s", line);
        (void)strtod(space + 1, &end);
        ck_assert_msg(*end == '\0' && end != space + 1, "%s", line);
        samples++;
    }
    ck_assert_uint_gt(samples, 100);
}

/* What Prometheus itself says of them. */
static void check_with_promtool(const char *text)
{
    char file[HFT_PATH_MAX + 32], command[HFT_PATH_MAX + 128];
    HFT_CLEANUP_OUTPUT struct hft_output output;
    FILE *out;

    (void)snprintf(file, sizeof file, "%s/metrics", server.dir.path);
    out = fopen(file, "we");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_ge(fputs(text, out), 0);
    ck_assert_int_eq(fclose(out), 0);
    (void)snprintf(command, sizeof command, "promtool check metrics <%s 2>&1", file);
    hft_process_run((const char *[]){ "sh", "-c", command, NULL }, NULL, &output);
    ck_assert_msg(output.status == 0 && output.out[0] == '\0', "promtool: %s", output.out);
}

static bool is_ready(void *arg)
{
    HF_CLEANUP_FREE char *body = NULL;

    return hft_http_get(*(uint16_t *)arg, "/readyz", &body) == 200 &&
           strcmp(body, "leading\n") == 0;
}

static void expect_metric(const char *text, const char *line)
{
    ck_assert_msg(strstr(text, line) != NULL, "no %s", line);
}

static bool is_cut_off(void *arg)
{
    HF_CLEANUP_FREE char *body = NULL;

    return hft_http_get(*(uint16_t *)arg, "/readyz", &body) == 503 &&
           strcmp(body, "etcd does not answer\n") == 0;
}

/* What it knew when etcd was last heard of is not all that etcd has. */
START_TEST(a_controller_without_etcd_is_not_ready)
{
    HF_CLEANUP_FREE char *body = NULL;
    uint16_t port = start_serving("true");

    hft_wait_or_fail(is_ready, &port, STEP_MS, "the leader");
    hft_etcd_pause(&server);
    hft_wait_or_fail(is_cut_off, &port, STEP_MS, "that it says so");
    ck_assert_int_eq(hft_http_get(port, "/metrics", &body), 200);
    expect_metric(body, "\nholdfast_etcd_connected 0\n");
    hft_etcd_resume(&server);
    hft_wait_or_fail(is_ready, &port, STEP_MS, "the leader again");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

/* It learns what it wrote as everybody does, from its mirror. */
static bool has_reset(void *arg)
{
    HF_CLEANUP_FREE char *body = NULL;

    return hft_http_get(*(uint16_t *)arg, "/metrics", &body) == 200 &&
           strstr(body, "\nholdfast_tasks{state=\"pending\"} 1\n") != NULL;
}

START_TEST(metrics_tell_what_is_there_and_what_was_done)
{
    HF_CLEANUP_FREE char *body = NULL, *other = NULL;
    hf_rev life;
    int64_t lease = hft_put_worker(&hand, "w1", 0, &life);
    uint16_t port = start_serving("/bin/true");

    hft_wait_or_fail(is_ready, &port, STEP_MS, "the leader");
    put_crash(life, lease);
    until_ordered();
    hft_wait_or_fail(has_reset, &port, STEP_MS, "the task in what is told");
    ck_assert_int_eq(hft_http_get(port, "/metrics", &body), 200);
    expect_metric(body, "\nholdfast_leader 1\n");
    expect_metric(body, "\nholdfast_restarts_total 1\n");
    expect_metric(body, "\nholdfast_task_resets_total 1\n");
    expect_metric(body, "\nholdfast_agent_ends_total 1\n");
    expect_metric(body, "\nholdfast_detection_seconds_count 1\n");
    expect_metric(body, "\nholdfast_storm_state{state=\"normal\"} 1\n");
    check_metrics(body);
    ck_assert_int_eq(hft_http_get(port, "/nothing", &other), 404);
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

static bool has_promtool(void)
{
    HFT_CLEANUP_OUTPUT struct hft_output found;

    hft_process_run((const char *[]){ "sh", "-c", "command -v promtool", NULL }, NULL, &found);
    return found.status == 0;
}

START_TEST(prometheus_finds_nothing_wrong_with_the_metrics)
{
    HF_CLEANUP_FREE char *body = NULL;
    hf_rev life;
    int64_t lease;
    uint16_t port;

    if (!has_promtool()) {
        hft_skip("promtool is not installed");
        return;
    }
    lease = hft_put_worker(&hand, "w1", 0, &life);
    port = start_serving("/bin/true");
    hft_wait_or_fail(is_ready, &port, STEP_MS, "the leader");
    put_crash(life, lease);
    until_ordered();
    ck_assert_int_eq(hft_http_get(port, "/metrics", &body), 200);
    check_with_promtool(body);
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

static bool is_told(void *arg)
{
    char text[2000] = "";
    HF_CLEANUP_FD int fd = open(arg, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
           strstr(text, "agents/bad/spec cannot be read") != NULL &&
           strstr(text, "\"kind\":\"needs_review\"") != NULL;
}

/* Nobody may have reaped it yet. */
static bool has_ended(void *arg)
{
    char path[64], text[256] = "";
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", *(const long *)arg);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 || read(fd, text, sizeof text - 1) <= 0 || strstr(text, ") Z ") != NULL;
}

static long number_in_file(const char *path)
{
    char text[32] = "";
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    ck_assert_int_gt(read(fd, text, sizeof text - 1), 0);
    return strtol(text, NULL, 10);
}

/* What the program calls hangs once: both are ended, and it is run again. */
START_TEST(an_alert_reaches_the_program_that_was_configured)
{
    char script[HFT_PATH_MAX + 32], told[HFT_PATH_MAX + 32], tried[HFT_PATH_MAX + 64];
    FILE *out;
    long hanging;

    (void)snprintf(script, sizeof script, "%s/alert", server.dir.path);
    (void)snprintf(told, sizeof told, "%s/told", server.dir.path);
    out = fopen(script, "we");
    ck_assert_ptr_nonnull(out);
    (void)snprintf(tried, sizeof tried, "%s.tried", told);
    (void)fprintf(out, "#!/bin/sh\n[ -e %s ] || { sleep 600 & echo $! >%s; wait; }\ncat >>%s\n",
                  tried, tried, told);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_eq(chmod(script, 0700), 0);
    (void)put("agents/bad/spec", "{\"role\":", HF_NO_LEASE);
    (void)start_serving(script);
    hft_wait_or_fail(is_told, told, STEP_MS, "the alert");
    hanging = number_in_file(tried);
    hft_wait_or_fail(has_ended, &hanging, STEP_MS, "the end of what hung");
    ck_assert(hft_program_said(&a, "event=alert_failed"));
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("recovery");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_crash_resets_the_task_and_orders_one_start);
    tcase_add_test(t, an_owner_whose_keys_vanish_is_suspected_and_then_replaced);
    tcase_add_test(t, a_leader_that_was_stopped_writes_nothing_when_it_goes_on);
    tcase_add_test(t, a_takeover_needs_no_listing);
    tcase_add_test(t, a_record_that_cannot_be_read_is_named_and_stops_nothing_else);
    tcase_add_test(t, a_controller_without_etcd_is_not_ready);
    tcase_add_test(t, metrics_tell_what_is_there_and_what_was_done);
    tcase_add_test(t, prometheus_finds_nothing_wrong_with_the_metrics);
    tcase_add_test(t, an_alert_reaches_the_program_that_was_configured);
    return hft_suite_run("e2e: recovery", t, NULL);
}
