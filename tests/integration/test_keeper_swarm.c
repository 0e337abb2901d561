/* Agents that are hard to hold: they fork as fast as they can, flee from process to process,
 * wake each other up, and are related in every way there is. All of them stand still when they
 * are to, go on as they were, and end. A cgroup v1 beside the keeper's own bounds how many they
 * are. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper_swarm.h"
#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/wait.h"

#define LONG_MS 60000
#define MOST    "100" /* processes at a time */

enum { ELSEWHERE = HFT_KEEPER_MODES, MODES }; /* they have left the cgroup that they had */

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;
static struct swarm_page *page;
static char cage[128];

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
    if ((mkdir(cage, 0755) == 0 || errno == EEXIST) && write_cage("pids.max", MOST) == 0)
        return true;
    hft_skip("no cgroup v1 with pids can be made here");
    return false;
}

/* Calls for everybody who is in the cage; returns how many that are. */
static unsigned each_inmate(void (*fn)(pid_t pid))
{
    char path[256];
    unsigned count = 0;
    FILE *inmates;
    int pid;

    (void)snprintf(path, sizeof path, "%s/cgroup.procs", cage);
    inmates = fopen(path, "re");
    while (inmates != NULL && fscanf(inmates, "%d", &pid) == 1) {
        count++;
        if (fn != NULL)
            fn(pid);
    }
    if (inmates != NULL)
        (void)fclose(inmates);
    return count;
}

static void kill_inmate(pid_t pid)
{
    (void)kill(pid, SIGKILL);
}

static bool is_empty(void *arg)
{
    (void)arg;
    return each_inmate(NULL) == 0;
}

/* Whoever outlives a test that failed: with no room for anybody new, all can be killed. */
static bool is_removed(void *arg)
{
    (void)arg;
    (void)write_cage("pids.max", "0");
    (void)each_inmate(kill_inmate);
    return rmdir(cage) == 0 || errno == ENOENT;
}

static void make_page(void)
{
    char path[HFT_PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s/swarm", k->dir.path);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, 0666), 0);
    ck_assert_int_eq(ftruncate(fd, sizeof *page), 0);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    (void)close(fd);
}

static void bring_program(void)
{
    HFT_CLEANUP_OUTPUT struct hft_output output;

    hft_process_run((const char *[]){ "cp", HOLDFAST_SWARM, k->dir.path, NULL }, NULL, &output);
    ck_assert_msg(output.status == 0, "%s", output.err);
}

/* Beside somebody for whom time passes. */
static bool begin(int mode, const char *kind)
{
    char script[128], number[16];

    if (!make_cage() || !hft_keeper_begin(k, mode == ELSEWHERE ? HFT_KEEPER_CGROUP : mode))
        return false;
    make_page();
    bring_program();
    (void)hft_keeper_run(k, "free", "i0",
                         "n=0; while :; do n=$((n+1)); echo $n > $D/free.new; "
                         "mv $D/free.new $D/free; done");
    (void)snprintf(script, sizeof script, "exec $D/keeper_swarm %s", kind);
    pid_t pid = hft_keeper_run(k, "a", "i1", script)->pid;
    (void)snprintf(number, sizeof number, "%d", (int)pid);
    ck_assert_int_eq(write_cage("cgroup.procs", number), 0);
    if (mode == ELSEWHERE)
        hft_keeper_move_out(pid);
    page->go = 1;
    return true;
}

static bool has_time_passed(void *arg)
{
    return hft_keeper_number(k, "free") > *(const long *)arg;
}

static void let_time_pass(void)
{
    hft_wait_or_fail(has_time_passed, &(long){ hft_keeper_number(k, "free") + 20 }, LONG_MS,
                     "time that passes");
}

struct growth {
    _Atomic uint64_t *counter;
    uint64_t beyond;
};

static bool has_grown(void *arg)
{
    const struct growth *growth = arg;

    return *growth->counter > growth->beyond;
}

static void until_grown(_Atomic uint64_t *counter, uint64_t by, const char *what)
{
    hft_wait_or_fail(has_grown, &(struct growth){ counter, *counter + by }, LONG_MS, what);
}

/* Freezes it, and holds it to it that nobody does anything then. */
static hf_ms freeze(void)
{
    hf_ms began = hft_now();

    hft_keeper_extend(k, 300000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    began = hft_now() - began;
    uint64_t steps = page->steps, births = page->births;
    let_time_pass();
    ck_assert_uint_eq(page->births, births);
    ck_assert_uint_eq(page->steps, steps);
    return began;
}

static void thaw(void)
{
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
}

/* What is not gone within this time would be called unkillable. */
static hf_ms end(void)
{
    struct hft_ticker ticker;
    hf_ms began = hft_now();

    hft_ticker_start(&ticker);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    const struct agentd_agent *a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    began = hft_now() - began;
    ck_assert_int_le(began, AGENTD_STUCK_MS + hft_ticker_stall(&ticker));
    hft_ticker_stop(&ticker);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    hft_wait_or_fail(is_empty, NULL, 1000, "nobody in the cage"); /* the dead leave it late */
    uint64_t steps = page->steps;
    let_time_pass();
    ck_assert_uint_eq(page->steps, steps);
    return began;
}

static const struct {
    const char *kind;
    uint64_t births; /* at least, between two orders */
} SWARMS[] = { { "bomb", 500 }, { "comets", 50 }, { "wakers", 0 }, { "turns", 0 } };

enum { SWARMS_COUNT = sizeof SWARMS / sizeof SWARMS[0], ROUNDS = 4 };

START_TEST(whoever_multiplies_flees_or_wakes_others_is_held_and_ended)
{
    const char *kind = SWARMS[_i / MODES].kind;
    uint64_t births = SWARMS[_i / MODES].births;
    hf_ms longest = 0;

    if (!begin(_i % MODES, kind))
        return;
    for (int round = 0; round < ROUNDS; round++) {
        until_grown(&page->steps, 200, "work");
        if (births > 0)
            until_grown(&page->births, births, "births");
        hf_ms took = freeze();
        longest = took > longest ? took : longest;
        thaw();
    }
    until_grown(&page->steps, 200, "work");
    printf("%s, mode %d: still after at most %ld ms, ", kind, _i % MODES, (long)longest);
    printf("gone after %ld ms, %llu births\n", (long)end(), (unsigned long long)page->births);
    hft_keeper_done(k);
}
END_TEST

/* What can be related to an agent: who does something, and who stands by itself. */
static const struct {
    char stands; /* the state that it keeps; 0: it works */
    const char *who;
} FAMILY[] = {
    { 0, "the first process" },
    { 0, "one without a parent in another session" },
    { 0, "a brother" },
    { 0, "one that ignores and blocks every signal" },
    { 0, "one that was made by vfork" },
    { 0, "one whose first thread is gone" },
    { 0, "a debugger" },
    { 't', "one that a debugger holds" },
    { 'T', "one that stopped itself" },
    { 'T', "a grandchild that stopped itself" },
    { 0, "its parent" },
    { 'T', "one that a terminal stopped" },
    { 0, "one of another user" },
};

enum { MEMBERS = sizeof FAMILY / sizeof FAMILY[0] };

struct member {
    int index;
};

static bool is_as_it_should_be(void *arg)
{
    int i = ((const struct member *)arg)->index;

    return page->pids[i] > 0 &&
           (FAMILY[i].stands == 0 ? page->each[i] > 0
                                  : hft_process_state(page->pids[i]) == FAMILY[i].stands);
}

static void until_all_are_there(void)
{
    for (int i = 0; i < MEMBERS; i++)
        hft_wait_or_fail(is_as_it_should_be, &(struct member){ i }, LONG_MS, FAMILY[i].who);
}

START_TEST(everybody_goes_on_as_before_and_who_stood_by_himself_stands)
{
    pid_t pids[MEMBERS];

    if (!begin(_i, "family"))
        return;
    until_all_are_there();
    for (int round = 0; round < ROUNDS; round++) {
        (void)freeze();
        thaw();
        for (int i = 0; i < MEMBERS; i++) {
            if (FAMILY[i].stands == 0)
                until_grown(&page->each[i], 1, FAMILY[i].who);
        }
        for (int i = 0; i < MEMBERS; i++) {
            if (FAMILY[i].stands != 0)
                ck_assert_msg(hft_process_state(page->pids[i]) == FAMILY[i].stands &&
                                  page->each[i] == 0,
                              "%s runs", FAMILY[i].who);
        }
    }
    for (int i = 0; i < MEMBERS; i++)
        pids[i] = page->pids[i];
    if (_i % 2 == 0)
        (void)freeze(); /* who stands still ends as well */
    (void)end();
    for (int i = 0; i < MEMBERS; i++)
        ck_assert_msg(hft_process_is_gone(pids[i]), "%s is left", FAMILY[i].who);
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *swarm = tcase_create("swarm");
    TCase *family = tcase_create("family");

    (void)snprintf(cage, sizeof cage, "/sys/fs/cgroup/pids/holdfast-test-%d", (int)getpid());
    tcase_set_timeout(swarm, 120);
    tcase_set_timeout(family, 120);
    tcase_add_loop_test(swarm, whoever_multiplies_flees_or_wakes_others_is_held_and_ended, 0,
                        SWARMS_COUNT * MODES);
    tcase_add_loop_test(family, everybody_goes_on_as_before_and_who_stood_by_himself_stands, 0,
                        MODES);
    int code = hft_suite_run("keeper: swarm", swarm, family, NULL);
    (void)hft_wait(is_removed, NULL, 10000);
    return code;
}
