/* An agent whose process not even SIGKILL ends: etcd knows it for that, a person is told, and
 * it is started on another host and on no account beside what is left of it. Nor does one that
 * holds up an end let be forgotten how that began. A cgroup v1 whose freezer holds it stands
 * for the kernel that does not let it go; without one it is skipped. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/keeper/protocol.h"
#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/keeper.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

enum { SKIPPED = 77, STEPS = 6 };

static struct hft_fleet fleet;
static char cage[128], told[HFT_PATH_MAX + 32], hook[HFT_PATH_MAX + 32];

static int write_cage(const char *file, const char *text)
{
    char path[256];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", cage, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

static bool file_has(const char *path, const char *part)
{
    char text[4096] = "";
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    return fd >= 0 && read(fd, text, sizeof text - 1) > 0 && strstr(text, part) != NULL;
}

static bool is_held_fast(void *arg)
{
    char path[256];

    (void)arg;
    (void)snprintf(path, sizeof path, "%s/freezer.state", cage);
    return file_has(path, "FROZEN");
}

static bool is_person_told(void *arg)
{
    (void)arg;
    return file_has(told, "cannot be killed");
}

static bool is_removed(void *arg)
{
    (void)arg;
    (void)write_cage("freezer.state", "THAWED");
    return rmdir(cage) == 0 || errno == ENOENT; /* the dead leave a moment after their end */
}

/* A hook that writes down what it is told. */
static void setup(void)
{
    FILE *script;

    hft_fleet_open(&fleet);
    (void)snprintf(hook, sizeof hook, "%s/hook", fleet.etcd.dir.path);
    (void)snprintf(told, sizeof told, "%s/told", fleet.etcd.dir.path);
    script = fopen(hook, "we");
    ck_assert_ptr_nonnull(script);
    (void)fprintf(script, "#!/bin/sh\ncat >>%s\n", told);
    ck_assert_int_eq(fclose(script), 0);
    ck_assert_int_eq(chmod(hook, 0700), 0);
}

static void teardown(void)
{
    (void)write_cage("freezer.state", "THAWED");
    hft_fleet_close(&fleet);
}

static void hold_fast(pid_t pid)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)pid);
    ck_assert_int_eq(write_cage("cgroup.procs", number), 0);
    ck_assert_int_eq(write_cage("freezer.state", "FROZEN"), 0);
    hft_wait_or_fail(is_held_fast, NULL, HFT_FLEET_STEP_MS, "the freezer");
}

static void begin(void)
{
    hft_fleet_lead(&fleet, 0, "--alert-command", hook, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.3);
    hft_fleet_until_step(&fleet, "t", 2);
}

START_TEST(who_cannot_be_killed_is_started_elsewhere_and_a_person_is_told)
{
    hf_ms asked_at;
    pid_t pid;

    begin();
    pid = hft_fleet_agent(&fleet, "w1");
    hold_fast(pid);
    asked_at = hft_now();
    free(hft_fleet_cli(&fleet, "restart", "w1", NULL));
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"unkillable\"");
    ck_assert_int_ge(hft_now() - asked_at, AGENTD_STUCK_MS);
    hft_fleet_await(&fleet, "agents/w1/exit", "it survived SIGKILL");
    hft_wait_or_fail(is_person_told, NULL, HFT_FLEET_STEP_MS, "the alert");
    /* There is no other host: it waits for one. */
    hft_fleet_await(&fleet, "health/w1", "cannot be killed where it could run");
    ck_assert_int_eq(hft_fleet_look(&fleet, "agents/w1/live").count, 0);
    hft_fleet_host(&fleet, 1, NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"host\":\"h2\"");
    ck_assert(!hft_process_is_gone(pid));
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(write_cage("freezer.state", "THAWED"), 0);
    hft_process_wait_gone(pid);
    hft_fleet_check(&fleet);
}
END_TEST

static bool has_lines(void *path)
{
    return file_has(path, "\n");
}

/* What it started holds up the end of its tree, and its agentd is killed meanwhile. */
START_TEST(who_ended_before_its_agentd_was_killed_is_told_with_its_status)
{
    enum { WRITTEN_MS = 1000 }; /* until the keeper has it on its disk */
    char child[sizeof fleet.ledger + 8], go[sizeof fleet.ledger + 8];
    HF_CLEANUP_FREE char *number = NULL;
    FILE *made;
    pid_t pid;

    hft_fleet_launch(&fleet, "sleep 1000 & echo $! >\"$LEDGER.child\"\n"
                             "until [ -e \"$LEDGER.go\" ]; do sleep 0.1; done; exit 7\n");
    (void)snprintf(child, sizeof child, "%s.child", fleet.ledger);
    (void)snprintf(go, sizeof go, "%s.go", fleet.ledger);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    pid = hft_fleet_agent(&fleet, "w1");
    hft_wait_or_fail(has_lines, child, HFT_FLEET_STEP_MS, "its child");
    number = hft_read_text(child, NULL);
    hold_fast((pid_t)strtol(number, NULL, 10));
    made = fopen(go, "we");
    ck_assert_ptr_nonnull(made);
    ck_assert_int_eq(fclose(made), 0);
    hft_process_wait_gone(pid);
    hft_pass_until(hft_now() + WRITTEN_MS);
    hft_program_kill(&fleet.hosts[0]);
    ck_assert_int_eq(unlink(go), 0); /* the next one stays */
    ck_assert_int_eq(write_cage("freezer.state", "THAWED"), 0);
    hft_fleet_host_again(&fleet, 0);
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"crashed\",\"status\":7,");
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("unkillable");
    int code;

    (void)snprintf(cage, sizeof cage, "/sys/fs/cgroup/freezer/holdfast-e2e-%d", (int)getpid());
    if (mkdir(cage, 0755) < 0) {
        printf("skipped: no cgroup v1 with a freezer can be made here\n");
        return SKIPPED;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_cannot_be_killed_is_started_elsewhere_and_a_person_is_told);
    tcase_add_test(t, who_ended_before_its_agentd_was_killed_is_told_with_its_status);
    code = hft_suite_run("e2e: unkillable", t, NULL);
    (void)hft_wait(is_removed, NULL, 10000);
    return code;
}
