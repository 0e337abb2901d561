/* A program that uses the client and is told to stop, at any moment of its life, whatever state
 * etcd is in: it ends at once, with status 0, and a sanitizer finds nothing left behind. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "etcd/mirror.h"
#include "io/backend_etcd.h"
#include "io/session.h"
#include "support/etcd.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/suite.h"

/* The program: follows a prefix, holds a lease, writes without a pause. */

struct program {
    uv_loop_t loop;
    uv_signal_t term;
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend;
    struct hf_mirror *mirror;
    struct hf_session *session;
    bool stopping;
    bool revoke;
};

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    (void)event;
    (void)arg;
}

static void on_change(const struct hf_session_view *view, void *arg)
{
    (void)view;
    (void)arg;
}

static void on_put(const struct hf_write_result *result, void *arg);

static void put(struct program *program)
{
    (void)!hf_etcd_put(program->etcd, hf_bytes_of("p/k"), hf_bytes_of("v"), HF_NO_LEASE, on_put,
                       program, NULL);
}

static void on_put(const struct hf_write_result *result, void *arg)
{
    struct program *program = arg;

    (void)result;
    if (!program->stopping)
        put(program);
}

static void on_session_closed(void *arg)
{
    struct program *program = arg;

    hf_backend_etcd_close(program->backend, NULL, NULL);
    hf_etcd_close(program->etcd, NULL, NULL);
}

static void on_term(uv_signal_t *term, int number)
{
    struct program *program = term->data;

    (void)number;
    program->stopping = true;
    uv_close((uv_handle_t *)term, NULL);
    hf_mirror_close(program->mirror);
    hf_session_close(program->session, program->revoke, on_session_closed, program);
}

/* The handler first; then SIGTERM, which main blocked, may come. */
static void catch_term(struct program *program)
{
    sigset_t term;

    if (uv_loop_init(&program->loop) != 0 ||
        uv_signal_init(&program->loop, &program->term) != 0)
        exit(3);
    program->term.data = program;
    if (uv_signal_start(&program->term, on_term, SIGTERM) != 0)
        exit(3);
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_UNBLOCK, &term, NULL);
}

static int run_program(const char *endpoint, bool revoke)
{
    static struct program program;
    struct hf_key_range range = { .key = hf_bytes_of("p/"), .prefix = true };
    struct hf_session_config session = { .policy = hf_lease_policy_default(),
                                         .on_change = on_change };
    struct hf_backend backend;
    struct hf_error err = { "" };

    program.revoke = revoke;
    catch_term(&program);
    if (hf_etcd_new(&program.loop,
                    &(struct hf_etcd_config){ .endpoints = &endpoint, .endpoint_count = 1 },
                    &program.etcd, &err) != HF_OK ||
        hf_mirror_new(program.etcd,
                      &(struct hf_mirror_config){
                          .ranges = &range, .range_count = 1, .on_event = on_event },
                      &program.mirror, &err) != HF_OK ||
        hf_backend_etcd_new(&program.loop, program.etcd, &program.backend) != HF_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 4;
    }
    backend = hf_backend_etcd_get(program.backend);
    if (hf_session_new(&backend, &session, &program.session, &err) != HF_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return 4;
    }
    put(&program);
    (void)uv_run(&program.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&program.loop) == 0 ? EXIT_SUCCESS : 5;
}

/* The test. */

enum { MOMENTS_EACH = 34, LATEST_MS = 300, STOP_MS = 30000, SEED = 4711 };

enum weather { UP, REFUSING, HANGING, WEATHERS };

static const char *program_path;
static struct hft_etcd server;
static struct hft_proxy *proxy;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
}

static void teardown(void)
{
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

/* Starts it and returns when it is in main. */
static pid_t start_program(bool revoke)
{
    const char *const argv[] = { program_path, hft_proxy_endpoint(proxy),
                                 revoke ? "revoke" : "keep", NULL };
    HF_CLEANUP_FD int out = -1;
    int ends[2];
    pid_t pid;
    char dot;

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    out = ends[0];
    pid = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = hft_sanitizer_env(), .out = ends[1] });
    (void)close(ends[1]);
    ck_assert_int_eq(read(out, &dot, 1), 1);
    return pid;
}

/* The moment is the point here, so for once time is let pass. */
static void let_pass(int ms)
{
    (void)poll(NULL, 0, ms);
}

START_TEST(sigterm_at_100_random_moments_clean_exit_no_leak)
{
    enum weather weather = (enum weather)_i;
    unsigned state = SEED + (unsigned)_i;

    if (weather == REFUSING)
        hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    if (weather == HANGING)
        hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    for (int i = 0; i < MOMENTS_EACH; i++) {
        int moment = rand_r(&state) % LATEST_MS;
        pid_t pid = start_program(weather == UP && i % 2 == 0);
        int status;

        let_pass(moment);
        ck_assert_int_eq(kill(pid, SIGTERM), 0);
        status = hft_process_reap(pid, STOP_MS);
        ck_assert_msg(status == 0, "wait status %#x, SIGTERM after %d ms, weather %d",
                      (unsigned)status, moment, _i);
    }
}
END_TEST

static int run_tests(const char *self)
{
    TCase *t = tcase_create("sigterm");

    program_path = self;
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, sigterm_at_100_random_moments_clean_exit_no_leak, 0, WEATHERS);
    return hft_suite_run("etcd/sigterm", t, NULL);
}

int main(int argc, char **argv)
{
    sigset_t term;

    if (argc < 3)
        return run_tests("/proc/self/exe");
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    if (write(STDOUT_FILENO, ".", 1) != 1)
        return 2;
    return run_program(argv[1], strcmp(argv[2], "revoke") == 0);
}
