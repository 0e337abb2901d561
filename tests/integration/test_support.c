#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/etcd.h"
#include "support/loop.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/ticker.h"

static const struct hft_etcd_options QUICK = { .no_fsync = true };

START_TEST(etcd_serves_and_keeps_its_data_over_kill_and_restart)
{
    struct hft_etcd etcd;
    HF_CLEANUP_FREE char *got = NULL;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ 0 });
    hft_etcdctl_ok(&etcd, NULL, "put", "k", "v1", NULL);
    int64_t revision = hft_etcd_revision(&etcd);
    hft_etcd_kill(&etcd);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "--dial-timeout=200ms", "--command-timeout=300ms",
                                 "get", "k", NULL),
                     0);
    hft_etcd_restart(&etcd);

    hft_etcdctl_ok(&etcd, &got, "get", "k", "--print-value-only", NULL);
    ck_assert_str_eq(got, "v1\n");
    ck_assert_int_eq(hft_etcd_revision(&etcd), revision);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(paused_etcd_keeps_its_listener_and_answers_only_after_resume)
{
    struct hft_etcd etcd;

    hft_etcd_start(&etcd, &QUICK);
    hft_etcd_pause(&etcd);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "--command-timeout=300ms", "put", "k", "v", NULL),
                     0);
    ck_assert(hft_port_is_listened_by(etcd.client.number, etcd.pid));
    hft_etcd_resume(&etcd);
    hft_etcdctl_ok(&etcd, NULL, "put", "k", "v", NULL);
    hft_etcd_stop(&etcd);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(options_reach_etcd)
{
    static const char *const FLAGS[] = { "--max-txn-ops=7", NULL };
    struct hft_etcd etcd;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){
                              .no_fsync = true,
                              .quota_bytes = 16 << 20,
                              .heartbeat_ms = 50,
                              .election_ms = 500,
                              .auth_token_ttl_s = 5,
                              .extra_flags = FLAGS,
                          });
    ck_assert_double_eq(hft_etcd_metric(&etcd, "etcd_server_quota_backend_bytes", 0), 16 << 20);
    ck_assert_double_eq(hft_etcd_metric(&etcd, "no_such_series", -7), -7);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(a_port_is_given_to_one_taker_only)
{
    struct hft_port ports[64] = { 0 };

    for (size_t i = 0; i < 64; i++) {
        hft_port_take(&ports[i]);
        for (size_t j = 0; j < i; j++)
            ck_assert_uint_ne(ports[i].number, ports[j].number);
        ck_assert(!hft_port_is_listened_by(ports[i].number, getpid()));
    }
    for (size_t i = 0; i < 64; i++)
        hft_port_release(&ports[i]);
}
END_TEST

static bool is_gone(void *arg)
{
    return access(arg, F_OK) != 0;
}

/* What Check does to a test that fails: _exit at once. */
START_TEST(a_crashed_test_leaves_no_etcd_and_no_directory)
{
    struct hft_etcd *etcd =
        mmap(NULL, sizeof *etcd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char proc[64];

    ck_assert_ptr_ne(etcd, MAP_FAILED);
    pid_t victim = fork();
    ck_assert_int_ge(victim, 0);
    if (victim == 0) {
        hft_etcd_start(etcd, &QUICK);
        (void)kill(getpid(), SIGKILL);
    }
    int status = hft_process_reap(victim, 60000);
    ck_assert_int_eq(WTERMSIG(status), SIGKILL);

    (void)snprintf(proc, sizeof proc, "/proc/%d", (int)etcd->pid);
    ck_assert_int_ne(etcd->pid, 0);
    hft_wait_or_fail(is_gone, proc, 5000, "etcd to die with its test");
    hft_wait_or_fail(is_gone, etcd->dir.path, 5000, "its directory to go");
    (void)munmap(etcd, sizeof *etcd);
}
END_TEST

static void count_call(void *arg)
{
    ++*(int *)arg;
}

static bool called_twice(void *arg)
{
    return *(int *)arg == 2;
}

static bool not_called_thrice(void *arg)
{
    return *(int *)arg < 3;
}

START_TEST(loop_runs_until_a_condition_holds_and_no_further)
{
    struct hft_loop loop;
    int calls = 0;

    hft_loop_init(&loop);
    hft_loop_after(&loop, 60000, count_call, &calls); /* never comes; done() takes it back */
    hft_loop_after(&loop, 30, count_call, &calls);
    hft_loop_after(&loop, 1, count_call, &calls);
    ck_assert(!hft_loop_try(&loop, called_twice, &calls, 0));
    hft_loop_until(&loop, called_twice, &calls, 5000, "two calls");
    hft_loop_hold(&loop, not_called_thrice, &calls, 30, "two calls only");
    ck_assert_int_eq(calls, 2);
    hft_loop_done(&loop);
}
END_TEST

/* Stops this process for so long. */
static void stand_still(long ms)
{
    pid_t self = getpid();
    pid_t waker = fork();

    ck_assert_int_ge(waker, 0);
    if (waker == 0) {
        (void)kill(self, SIGSTOP);
        (void)nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
        (void)kill(self, SIGCONT);
        _exit(0);
    }
    (void)hft_process_reap(waker, 30000);
}

START_TEST(ticker_sees_how_long_the_process_stood_still_in_all)
{
    struct hft_ticker ticker;
    hf_ms before;

    hft_ticker_start(&ticker);
    stand_still(300);
    stand_still(400);
    stand_still(300);
    before = hft_ticker_stall(&ticker);
    ck_assert_int_ge(before, 900);
    hft_ticker_mark(&ticker);
    ck_assert_int_lt(hft_ticker_stall(&ticker), before);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("etcd");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, etcd_serves_and_keeps_its_data_over_kill_and_restart);
    tcase_add_test(t, paused_etcd_keeps_its_listener_and_answers_only_after_resume);
    tcase_add_test(t, options_reach_etcd);
    tcase_add_test(t, a_port_is_given_to_one_taker_only);
    tcase_add_test(t, a_crashed_test_leaves_no_etcd_and_no_directory);
    tcase_add_test(t, loop_runs_until_a_condition_holds_and_no_further);
    tcase_add_test(t, ticker_sees_how_long_the_process_stood_still_in_all);
    return hft_suite_run("support", t, NULL);
}
