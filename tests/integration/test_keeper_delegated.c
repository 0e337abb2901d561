/* A cgroup that a service manager has given away (systemd's Delegate=) is divided: the keeper
 * in one half, the agents in the other, so that controllers can be given to them. And one that
 * a process was moved out of is its own nonetheless. */
#include <check.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/keeper.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

enum { PATH_SIZE = 1024 };

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;
static char cgroup[PATH_SIZE]; /* its directory, in which the keeper begins */
static char name[64];          /* the end of that */

/* The cgroup v2 of a process: what follows "0::". */
static char *cgroup_of(pid_t pid)
{
    HF_CLEANUP_FREE char *text = NULL;
    char path[64];
    char *at;

    (void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    text = hft_read_text(path, NULL);
    at = strstr(text, "0::");
    ck_assert_msg(at != NULL, "%s", text);
    at[strcspn(at, "\n")] = '\0';
    return strdup(at + 3);
}

static bool find_mount(char ret_path[PATH_SIZE])
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_SIZE];
    bool found = false;

    ck_assert_ptr_nonnull(file);
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, " - cgroup2 ") != NULL &&
                sscanf(line, "%*s %*s %*s %*s %900s", ret_path) == 1;
    (void)fclose(file);
    return found;
}

/* A program in the place of agentd that goes into the cgroup and becomes it. */
static void begin_inside(void)
{
    char program[sizeof k->agentd];

    (void)snprintf(program, sizeof program, "%s/begin", k->dir.path);
    FILE *file = fopen(program, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "#!/bin/sh\necho 0 >%s/cgroup.procs\nexec %s \"$@\"\n",
                             cgroup, k->agentd),
                     0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(program, 0755), 0);
    (void)snprintf(k->agentd, sizeof k->agentd, "%s", program);
    hft_keeper_start(k);
    ck_assert_uint_ne(k->hello.flags & AGENTD_HAS_CGROUPS, 0);
    hft_keeper_extend(k, 60000);
}

/* With that mark, unless it is NULL. False when this machine cannot do it. */
static bool make_cgroup(const char *mark)
{
    HF_CLEANUP_FREE char *own = cgroup_of(getpid());
    char mount[PATH_SIZE];

    (void)snprintf(name, sizeof name, "hft-delegated-%d", (int)getpid());
    if (geteuid() != 0 || !find_mount(mount)) {
        hft_skip("needs root and a cgroup v2");
        return false;
    }
    (void)snprintf(cgroup, sizeof cgroup, "%.500s%.400s/%.60s", mount,
                   strcmp(own, "/") == 0 ? "" : own, name);
    if (mkdir(cgroup, 0755) != 0) {
        hft_skip("no cgroup can be made: %s", strerror(errno));
        return false;
    }
    if (mark != NULL && setxattr(cgroup, mark, "1", 1, 0) != 0) {
        hft_skip("a cgroup cannot be marked with %s: %s", mark, strerror(errno));
        (void)rmdir(cgroup);
        return false;
    }
    return true;
}

static bool is_removed(void *arg)
{
    char below[PATH_SIZE + 16];

    (void)arg;
    (void)snprintf(below, sizeof below, "%s/keeper", cgroup);
    (void)rmdir(below);
    return rmdir(cgroup) == 0;
}

static void finish(void)
{
    ck_assert_uint_eq(hft_keeper_shutdown(k, 0, 1000), AGENTD_CODE_OK);
    hft_keeper_done(k);
    hft_wait_or_fail(is_removed, NULL, 10000, "an empty cgroup");
}

static void expect_cgroup(pid_t pid, const char *part)
{
    HF_CLEANUP_FREE char *at = cgroup_of(pid);
    char expected[128];

    (void)snprintf(expected, sizeof expected, "/%s%s", name, part);
    ck_assert_msg(strstr(at, expected) != NULL, "%s is not in %s", at, expected);
}

static char *read_in_cgroup(const char *file)
{
    char path[PATH_SIZE + 64];

    (void)snprintf(path, sizeof path, "%s/%s", cgroup, file);
    return hft_read_text(path, NULL);
}

/* Only who may administer the machine sees the first. */
static const char *const MARKS[] = { "trusted.delegate", "user.delegate" };

START_TEST(a_cgroup_that_was_given_away_is_divided)
{
    HF_CLEANUP_FREE char *has = NULL, *gives = NULL, *left = NULL;

    if (!make_cgroup(MARKS[_i]))
        return;
    hft_keeper_init(k, HFT_KEEPER_CGROUP);
    begin_inside();
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    expect_cgroup(k->pid, "/keeper");
    expect_cgroup(k->link_pid, "/keeper");
    expect_cgroup(hft_keeper_tree(k, "i1")->pid, "/holdfast-");
    left = read_in_cgroup("cgroup.procs");
    ck_assert_str_eq(left, "");
    has = read_in_cgroup("cgroup.controllers");
    gives = read_in_cgroup("cgroup.subtree_control");
    if (strstr(has, "memory") != NULL)
        ck_assert_ptr_nonnull(strstr(gives, "memory"));
    if (strstr(has, "pids") != NULL)
        ck_assert_ptr_nonnull(strstr(gives, "pids"));
    finish();
}
END_TEST

START_TEST(any_other_cgroup_is_left_as_it_is)
{
    if (!make_cgroup(NULL))
        return;
    hft_keeper_init(k, HFT_KEEPER_CGROUP);
    begin_inside();
    (void)hft_keeper_run(k, "a", "i1", "sleep 1000");
    HF_CLEANUP_FREE char *at = cgroup_of(k->pid);
    ck_assert_str_eq(strrchr(at, '/') + 1, name);
    expect_cgroup(hft_keeper_tree(k, "i1")->pid, "/holdfast-");
    finish();
}
END_TEST

static void move_out(pid_t pid)
{
    char path[PATH_SIZE + 16];

    ck_assert(find_mount(path));
    (void)snprintf(path + strlen(path), sizeof path - strlen(path), "/cgroup.procs");
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%d", (int)pid), 0);
    ck_assert_int_eq(fclose(file), 0);
    HF_CLEANUP_FREE char *at = cgroup_of(pid);
    ck_assert_ptr_null(strstr(at, "i1"));
}

/* A login, or a scope of systemd, takes a process elsewhere. */
START_TEST(who_was_moved_elsewhere_is_stopped_and_killed_all_the_same)
{
    const struct agentd_agent *a;
    pid_t pid;

    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    pid = hft_keeper_run(k, "a", "i1", "while :; do :; done")->pid;
    move_out(pid);
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    HF_CLEANUP_FREE char *at = cgroup_of(pid);
    ck_assert_ptr_nonnull(strstr(at, "/i1"));
    ck_assert_int_eq(hft_process_state(pid), 'S'); /* as the freezer lets it sleep */
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    move_out(pid);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("delegated");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_cgroup_that_was_given_away_is_divided, 0,
                        sizeof MARKS / sizeof MARKS[0]);
    tcase_add_test(t, any_other_cgroup_is_left_as_it_is);
    tcase_add_test(t, who_was_moved_elsewhere_is_stopped_and_killed_all_the_same);
    return hft_suite_run("keeper: delegated", t, NULL);
}
