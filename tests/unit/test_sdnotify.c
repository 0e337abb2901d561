#include "io/sdnotify.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/manager.h"
#include "unit/suite.h"

static struct hft_tempdir dir;
static struct hft_manager manager;
static struct hf_sdnotify notify;

static void setup(void)
{
    hft_tempdir_init(&dir);
}

static void teardown(void)
{
    hft_tempdir_done(&dir);
}

static void begin(const char *address, const char *usec, const char *pid)
{
    ck_assert_int_eq(clearenv(), 0);
    if (address != NULL)
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", address, 1), 0);
    if (usec != NULL)
        ck_assert_int_eq(setenv("WATCHDOG_USEC", usec, 1), 0);
    if (pid != NULL)
        ck_assert_int_eq(setenv("WATCHDOG_PID", pid, 1), 0);
    hf_sdnotify_init(&notify);
}

/* At a path and at an abstract name. */
START_TEST(the_manager_hears_what_is_said)
{
    hft_manager_open(&manager, _i == 0 ? dir.path : NULL, 0);
    begin(manager.address, NULL, NULL);
    ck_assert(hf_sdnotify_tell(&notify, "READY=1\nSTATUS=Stands by."));
    ck_assert_str_eq(hft_manager_hear(&manager, 0), "READY=1\nSTATUS=Stands by.");
    ck_assert_ptr_null(hft_manager_hear(&manager, 0));
    hf_sdnotify_done(&notify);
    hft_manager_close(&manager);
}
END_TEST

/* Whoever is started from here does not know that there is a manager. */
START_TEST(nothing_of_it_stays_in_the_environment)
{
    hft_manager_open(&manager, dir.path, 0);
    begin(manager.address, "1000000", "1");
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    ck_assert_ptr_null(getenv("WATCHDOG_PID"));
    hf_sdnotify_done(&notify);
    begin("nonsense", "1000000", NULL);
    ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
    ck_assert_ptr_null(getenv("WATCHDOG_USEC"));
    hf_sdnotify_done(&notify);
    hft_manager_close(&manager);
}
END_TEST

START_TEST(half_of_the_time_of_the_watchdog_is_taken)
{
    static const struct {
        const char *usec;
        int64_t ms;
    } CASES[] = { { "30000000", 15000 },
                  { "1000000", 500 },
                  { "1000", 1 },
                  { "1", 1 },
                  { "0", 0 },
                  { "-1000000", 0 },
                  { "", 0 },
                  { "5s", 0 },
                  { NULL, 0 },
                  { "1000000 ", 0 },
                  { " 1000000", 0 },
                  { "99999999999999999999", 0 } };
    char own[16];

    hft_manager_open(&manager, dir.path, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        begin(manager.address, CASES[i].usec, NULL);
        ck_assert_msg(notify.watchdog_ms == CASES[i].ms, "%s: %lld ms", CASES[i].usec,
                      (long long)notify.watchdog_ms);
        hf_sdnotify_done(&notify);
    }
    (void)snprintf(own, sizeof own, "%d", (int)getpid());
    begin(manager.address, "1000000", own);
    ck_assert_int_eq(notify.watchdog_ms, 500);
    hf_sdnotify_done(&notify);
    begin(manager.address, "1000000", "1"); /* it is another one's */
    ck_assert_int_eq(notify.watchdog_ms, 0);
    hf_sdnotify_done(&notify);
    begin(NULL, "1000000", NULL); /* and nobody would hear it */
    ck_assert_int_eq(notify.watchdog_ms, 0);
    hft_manager_close(&manager);
}
END_TEST

START_TEST(without_a_manager_everything_is_told_to_nobody)
{
    char far[300];

    memset(far, 'a', sizeof far - 1);
    far[0] = '/';
    far[sizeof far - 1] = '\0';

    const char *const addresses[] = { NULL, "", "/", "@", "manager", "vsock:2:1234", far };

    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        begin(addresses[i], NULL, NULL);
        ck_assert_int_eq(notify.fd, -1);
        ck_assert(hf_sdnotify_tell(&notify, "READY=1"));
        hf_sdnotify_done(&notify);
    }
}
END_TEST

START_TEST(a_manager_that_does_not_listen_is_not_waited_for)
{
    unsigned taken = 0, heard = 0;

    hft_manager_open(&manager, dir.path, 0);
    begin(manager.address, NULL, NULL);
    while (hf_sdnotify_tell(&notify, "WATCHDOG=1"))
        taken++;
    while (hft_manager_hear(&manager, 0) != NULL)
        heard++;
    ck_assert_uint_gt(taken, 0);
    ck_assert_uint_eq(heard, taken);
    ck_assert(hf_sdnotify_tell(&notify, "READY=1"));
    hft_manager_close(&manager);
    ck_assert(!hf_sdnotify_tell(&notify, "READY=1")); /* nobody is there */
    hf_sdnotify_done(&notify);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sdnotify");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, the_manager_hears_what_is_said, 0, 2);
    tcase_add_test(t, nothing_of_it_stays_in_the_environment);
    tcase_add_test(t, half_of_the_time_of_the_watchdog_is_taken);
    tcase_add_test(t, without_a_manager_everything_is_told_to_nobody);
    tcase_add_test(t, a_manager_that_does_not_listen_is_not_waited_for);
    return run("io/sdnotify", t);
}
