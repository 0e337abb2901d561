/* An agent that the kernel kills for memory: etcd knows that it was that, and a successor goes
 * on with its task. Needs a cgroup with a memory limit; without one it is skipped, and says so.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum { SKIPPED = 77, STEPS = 6 };

#define LIMIT "33554432"

static struct hft_fleet fleet;
static char cage[128]; /* a cgroup v1 that the agent is put into */

static int write_cage(const char *file, const char *text)
{
    char path[256];
    HF_CLEANUP_FD int fd = -1;

    (void)snprintf(path, sizeof path, "%s/%s", cage, file);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

static bool make_cage(void)
{
    (void)snprintf(cage, sizeof cage, "/sys/fs/cgroup/memory/holdfast-e2e-%d", (int)getpid());
    return mkdir(cage, 0755) == 0 && write_cage("memory.limit_in_bytes", LIMIT) == 0;
}

static bool is_removed(void *arg)
{
    (void)arg;
    return rmdir(cage) == 0 || errno == ENOENT; /* the dead leave a moment after their end */
}

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* The first life claims the task and works on it, and then takes all the memory that it gets;
 * should the cage not hold, its own limit ends it with a status. */
static const char HUNGRY[] = "[ -e \"$LEDGER.lived\" ] && exec \"$DEMO\"\n"
                             "touch \"$LEDGER.lived\"\n"
                             "\"$DEMO\" &\n"
                             "while ! [ -e \"$LEDGER.go\" ]; do sleep 0.05; done\n"
                             "ulimit -v 400000\n"
                             "exec tail /dev/zero\n";

static void put_into_cage(pid_t pid)
{
    char number[16];

    (void)snprintf(number, sizeof number, "%d", (int)pid);
    ck_assert_int_eq(write_cage("cgroup.procs", number), 0);
}

START_TEST(who_is_killed_for_memory_is_known_for_it_and_replaced)
{
    char path[HFT_PATH_MAX + 64];
    FILE *go;

    hft_fleet_launch(&fleet, HUNGRY);
    hft_fleet_lead(&fleet, 0, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_submit(&fleet, "t", STEPS, 0.5);
    hft_fleet_until_step(&fleet, "t", 2);
    put_into_cage(hft_fleet_agent(&fleet, "w1"));
    (void)snprintf(path, sizeof path, "%s.go", fleet.ledger);
    go = fopen(path, "we");
    ck_assert_ptr_nonnull(go);
    ck_assert_int_eq(fclose(go), 0);
    hft_fleet_await(&fleet, "agents/w1/exit", "\"kind\":\"oom\"");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", STEPS), 2);
    ck_assert_int_eq(hft_fleet_number(&fleet, "tasks/t", "attempt"), 1);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("oom");
    int code;

    if (!make_cage()) {
        printf("skipped: no cgroup v1 with a memory limit can be made here\n");
        (void)rmdir(cage);
        return SKIPPED;
    }
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_is_killed_for_memory_is_known_for_it_and_replaced);
    code = hft_suite_run("e2e: oom", t, NULL);
    (void)hft_wait(is_removed, NULL, 5000);
    return code;
}
