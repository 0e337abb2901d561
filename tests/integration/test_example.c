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
#include "support/suite.h"
#include "support/wait.h"

/* One running example, and a pipe into which it prints line by line. */
struct example {
    pid_t pid;
    int out;
    char said[4096];
    size_t said_len;
    const char *wanted;
};

static void start(struct example *example, const struct hft_etcd *etcd, const char *key)
{
    HF_CLEANUP_FD int in = -1;
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    in = ends[1];
    *example = (struct example){ .out = ends[0] };
    example->pid = hft_process_spawn(&(struct hft_spawn){
        .argv =
            (const char *const[]){ HOLDFAST_EXAMPLES "/presence", etcd->endpoint, key, NULL },
        .env = hft_sanitizer_env(),
        .out = in,
        .err = in,
    });
}

static bool has_said(void *arg)
{
    struct example *example = arg;
    size_t room = sizeof example->said - 1 - example->said_len;
    ssize_t n = read(example->out, example->said + example->said_len, room);

    if (n > 0)
        example->said_len += (size_t)n;
    return strstr(example->said, example->wanted) != NULL;
}

static void wait_until_said(struct example *example, const char *what, hf_ms timeout)
{
    example->wanted = what;
    ck_assert_msg(hft_wait(has_said, example, hft_patience(timeout)),
                  "'%s' is not in:\n%.2000s", what, example->said);
}

static void kill_hard(struct example *example)
{
    ck_assert_int_eq(kill(example->pid, SIGKILL), 0);
    ck_assert(WIFSIGNALED(hft_process_reap(example->pid, 5000)));
    (void)close(example->out);
}

START_TEST(presence_shows_who_comes_and_who_is_gone)
{
    struct hft_etcd etcd;
    struct example alice;
    struct example bob;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    start(&alice, &etcd, "/presence/alice");
    wait_until_said(&alice, "/presence/alice is here", 20000);
    start(&bob, &etcd, "/presence/bob");
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

START_TEST(presence_says_that_etcd_is_away_and_comes_again_when_its_lease_was_lost)
{
    HF_CLEANUP_FREE char *leases = NULL;
    struct hft_etcd etcd;
    struct example alice;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    start(&alice, &etcd, "/presence/alice");
    wait_until_said(&alice, "/presence/alice is here", 20000);
    hft_etcdctl_ok(&etcd, &leases, "lease", "list", NULL); /* "found 1 leases\n<id>\n" */
    char *id = strchr(leases, '\n');
    ck_assert_ptr_nonnull(id);
    hft_etcdctl_ok(&etcd, NULL, "lease", "revoke", strtok(id + 1, "\n"), NULL);
    wait_until_said(&alice, "/presence/alice has left\n/presence/alice is here", 20000);

    hft_etcd_stop(&etcd);
    wait_until_said(&alice, "/presence/alice was not renewed, trying again", 20000);
    kill_hard(&alice);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(presence_is_as_short_as_the_readme_says)
{
    FILE *file = fopen(HOLDFAST_SOURCE_DIR "/examples/c/presence.c", "re");
    int lines = 0, c;

    ck_assert_ptr_nonnull(file);
    while ((c = getc(file)) != EOF)
        lines += c == '\n';
    (void)fclose(file);
    ck_assert_int_gt(lines, 0);
    ck_assert_int_lt(lines, 60);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("example");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, presence_shows_who_comes_and_who_is_gone);
    tcase_add_test(t, presence_says_that_etcd_is_away_and_comes_again_when_its_lease_was_lost);
    tcase_add_test(t, presence_is_as_short_as_the_readme_says);
    return hft_suite_run("example", t, NULL);
}
