/* The programs of examples/c do what their first lines promise, linked as a stranger links. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/etcd.h"
#include "support/process.h"
#include "support/wait.h"

/* One running example. On a terminal, because that is where people run it: it prints line by
 * line there. */
struct example {
    pid_t pid;
    int terminal;
    char said[4096];
    size_t said_len;
    const char *wanted;
};

static void start(struct example *example, const struct hft_etcd *etcd, const char *name)
{
    HF_CLEANUP_FD int other = -1;

    *example = (struct example){ .terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC) };
    ck_assert_int_ge(example->terminal, 0);
    ck_assert_int_eq(grantpt(example->terminal), 0);
    ck_assert_int_eq(unlockpt(example->terminal), 0);
    ck_assert_int_eq(fcntl(example->terminal, F_SETFL, O_NONBLOCK), 0);
    other = open(ptsname(example->terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(other, 0);
    example->pid = hft_process_spawn(&(struct hft_spawn){
        .argv =
            (const char *const[]){ HOLDFAST_EXAMPLES "/presence", etcd->endpoint, name, NULL },
        .env = hft_sanitizer_env(),
        .out = other,
        .err = other,
    });
}

static bool has_said(void *arg)
{
    struct example *example = arg;
    size_t room = sizeof example->said - 1 - example->said_len;
    ssize_t n = read(example->terminal, example->said + example->said_len, room);

    if (n > 0)
        example->said_len += (size_t)n;
    return strstr(example->said, example->wanted) != NULL;
}

static void wait_until_said(struct example *example, const char *what, hf_ms timeout)
{
    example->wanted = what;
    ck_assert_msg(hft_wait(has_said, example, timeout), "'%s' is not in:\n%.2000s", what,
                  example->said);
}

static void kill_hard(struct example *example)
{
    ck_assert_int_eq(kill(example->pid, SIGKILL), 0);
    ck_assert(WIFSIGNALED(hft_process_reap(example->pid, 5000)));
    (void)close(example->terminal);
}

START_TEST(presence_shows_who_comes_and_who_is_gone)
{
    struct hft_etcd etcd;
    struct example alice;
    struct example bob;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    start(&alice, &etcd, "alice");
    wait_until_said(&alice, "/presence/alice is here", 20000);
    start(&bob, &etcd, "bob");
    wait_until_said(&alice, "/presence/bob is here", 20000);
    wait_until_said(&bob, "/presence/alice is here", 20000);

    /* Nobody says goodbye for bob: his lease of 10 s runs out. */
    kill_hard(&bob);
    wait_until_said(&alice, "/presence/bob has left", 30000);
    ck_assert_ptr_null(strstr(alice.said, "/presence/alice has left"));
    kill_hard(&alice);
    hft_etcd_done(&etcd);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("example");
    TCase *t = tcase_create("example");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, presence_shows_who_comes_and_who_is_gone);
    suite_add_tcase(s, t);

    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
