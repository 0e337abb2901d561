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
    if (geteuid() != 0 || !hft_keeper_find_cgroups(mount, sizeof mount)) {
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

/* A login, or a scope of systemd, takes a process elsewhere. */
START_TEST(who_was_moved_elsewhere_is_stopped_and_killed_all_the_same)
{
    const struct agentd_agent *a;
    pid_t pid;

    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    pid = hft_keeper_run(k, "a", "i1", "while :; do :; done")->pid;
    hft_keeper_move_out(pid);
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    HF_CLEANUP_FREE char *at = cgroup_of(pid);
    ck_assert_ptr_nonnull(strstr(at, "/i1"));
    ck_assert_int_eq(hft_process_state(pid), 'S'); /* as the freezer lets it sleep */
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    hft_keeper_move_out(pid);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    a = hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert_int_eq(WTERMSIG(a->exit.wait_status), SIGKILL);
    hft_keeper_done(k);
}
END_TEST

#define LONG_MS 30000

/* Counts in a file, from another cgroup. */
#define LEAVE "echo 0 > $C; "
#define COUNT(file)                                                                            \
    "n=0; while :; do n=$((n+1)); echo $n > $D/" file ".new; mv $D/" file ".new $D/" file      \
    "; done"
#define BARE   "env -i PATH=$PATH D=$D C=$C "
#define SILENT " >/dev/null 2>&1"

/* Each has left the cgroup, and all but the first have lost their parent. What it has kept of
 * the agent: its parent; its session; its output; its environment; nothing, when only one agent
 * can have made it. Who has lost its parent is all that is left of an agent that crashes. */
static const char *const LEAVERS[] = {
    BARE "setsid sh -c '" LEAVE COUNT("left") "'" SILENT " & wait",
    "(" BARE "sh -c '" LEAVE COUNT("left") "'" SILENT " &); exec sleep 1000",
    "(" BARE "setsid sh -c '" LEAVE COUNT("left") "' &); exec sleep 1000",
    "(setsid sh -c '" LEAVE COUNT("left") "'" SILENT " &); exec sleep 1000",
    "(" BARE "setsid sh -c '" LEAVE COUNT("left") "'" SILENT " &); exec sleep 1000",
};

enum { NOTHING = sizeof LEAVERS / sizeof LEAVERS[0] - 1 };

static const char *with_procs(const char *script)
{
    static char text[4096];
    char mount[PATH_SIZE];

    ck_assert(hft_keeper_find_cgroups(mount, sizeof mount));
    (void)snprintf(text, sizeof text, "export C=%.900s/cgroup.procs; %s", mount, script);
    return text;
}

struct growth {
    const char *file;
    long beyond;
};

static bool has_grown(void *arg)
{
    const struct growth *growth = arg;

    return hft_keeper_number(k, growth->file) > growth->beyond;
}

static bool does_grow(const char *file)
{
    return hft_wait(has_grown, &(struct growth){ file, hft_keeper_number(k, file) + 1 },
                    LONG_MS);
}

static void expect_standing(void)
{
    long left = hft_keeper_number(k, "left");

    ck_assert(does_grow("free")); /* time passes for others */
    ck_assert(does_grow("free"));
    ck_assert_int_eq(hft_keeper_number(k, "left"), left);
}

static struct agentd_agent *fence_and_thaw(void)
{
    hft_keeper_extend(k, -1);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_STATE);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    expect_standing();
    hft_keeper_extend(k, 60000);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    return hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
}

static bool has_ended(void *arg)
{
    (void)arg;
    (void)hft_keeper_take(k, 10);
    return hft_keeper_tree(k, "i1")->state == AGENTD_STATE_ENDED;
}

/* Somebody who counts beside it, and whom nobody stops. */
static void run_free(void)
{
    ck_assert_uint_eq(
        hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = "free",
                                                        .instance = "i0",
                                                        .script = COUNT("free"),
                                                        .fence = AGENTD_FENCE_HOLD }),
        AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i0", AGENTD_STATE_HELD);
    ck_assert_uint_eq(hft_keeper_release(k, "free", "i0"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i0", AGENTD_STATE_RUNNING);
    hft_keeper_wait_file(k, "free");
}

static pid_t free_counter(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        (void)setenv("D", k->dir.path, 1);
        (void)execl("/bin/sh", "sh", "-c", COUNT("free"), NULL);
        _exit(127);
    }
    hft_keeper_wait_file(k, "free");
    return pid;
}

START_TEST(children_that_moved_elsewhere_stop_go_on_and_end_with_the_agent)
{
    enum { KILLED, CRASHED, ENDS };
    pid_t other = 0;

    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    if (_i / ENDS == NOTHING)
        other = free_counter();
    else
        run_free();
    pid_t pid = hft_keeper_run(k, "a", "i1", with_procs(LEAVERS[_i / ENDS]))->pid;
    hft_keeper_wait_file(k, "left");
    for (int round = 0; round < 3; round++) {
        (void)fence_and_thaw();
        ck_assert(does_grow("left"));
    }
    if (_i % ENDS == KILLED)
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    else
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
    /* From the crash on, whom its parent alone told has nothing left. */
    bool is_lost = _i == CRASHED;
    hft_wait_or_fail(has_ended, NULL, LONG_MS, "the end");
    if (!is_lost)
        expect_standing();
    if (!is_lost && _i % ENDS == CRASHED)
        ck_assert_uint_ge(hft_keeper_tree(k, "i1")->exit.stragglers, 1);
    if (other > 0) {
        ck_assert_int_eq(kill(other, SIGKILL), 0);
        (void)waitpid(other, NULL, 0);
    }
    hft_keeper_done(k);
}
END_TEST

static bool is_stopped(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

START_TEST(a_child_elsewhere_that_stopped_itself_stays_stopped)
{
    pid_t self;

    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    run_free();
    (void)hft_keeper_run(k, "a", "i1",
                         with_procs("sh -c '" LEAVE
                                    "echo $$ > $D/self; kill -STOP $$; echo 1 > $D/woke' & "
                                    "(setsid sh -c '" LEAVE COUNT("left") "' &); wait"));
    hft_keeper_wait_file(k, "left");
    hft_keeper_wait_file(k, "self");
    self = (pid_t)hft_keeper_number(k, "self");
    hft_wait_or_fail(is_stopped, &self, LONG_MS, "a process that stops itself");
    for (int round = 0; round < 3; round++) {
        (void)fence_and_thaw();
        ck_assert(does_grow("left"));
        ck_assert_int_eq(hft_process_state(self), 'T');
    }
    ck_assert(!hft_keeper_has_file(k, "woke"));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(hft_process_is_gone(self));
    hft_keeper_done(k);
}
END_TEST

/* Whoever moved it there moves it back while it stands. */
START_TEST(who_comes_back_while_it_stands_goes_on)
{
    enum { LOOKS_MS = 1500 }; /* the keeper looks at who stands once a second */
    char mount[PATH_SIZE], procs[2 * PATH_SIZE];
    pid_t pid, child;

    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    pid = hft_keeper_run(k, "a", "i1", "sh -c 'echo $$ > $D/child; " COUNT("left") "' & wait")
              ->pid;
    hft_keeper_wait_file(k, "left");
    child = (pid_t)hft_keeper_number(k, "child");
    hft_keeper_move_out(child);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    /* The disk that it writes to may hold it up before. */
    hft_wait_or_fail(is_stopped, &child, LONG_MS, "the child to stand");

    HF_CLEANUP_FREE char *at = cgroup_of(pid);
    ck_assert(hft_keeper_find_cgroups(mount, sizeof mount));
    (void)snprintf(procs, sizeof procs, "%s%.900s/cgroup.procs", mount, at);
    FILE *file = fopen(procs, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%d", (int)child), 0);
    ck_assert_int_eq(fclose(file), 0);
    hft_pass_until(hft_now() + LOOKS_MS);
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_THAW, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
    ck_assert(does_grow("left"));
    hft_keeper_done(k);
}
END_TEST

/* It may be another agent's, or of a program of the link: nobody can tell, or its mark does. */
static const char *const STRANGERS[] = {
    "(" BARE "setsid sh -c '" LEAVE COUNT("left") "'" SILENT " &); sleep 1000",
    "(" BARE "HOLDFAST_STARTED_BY=7 setsid sh -c '" LEAVE COUNT("left") "'" SILENT
                                                                        " &); sleep 1000",
};

START_TEST(who_may_be_somebody_elses_is_let_alone)
{
    if (!hft_keeper_begin(k, HFT_KEEPER_CGROUP))
        return;
    if (_i == 0)
        run_free();
    (void)hft_keeper_run(k, "a", "i1", with_procs(STRANGERS[_i]));
    hft_keeper_wait_file(k, "left");
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FREEZE, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_FROZEN);
    ck_assert(does_grow("left"));
    ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
    ck_assert(does_grow("left"));
    if (_i == 0)
        ck_assert_uint_eq(hft_keeper_tree(k, "i0")->state, AGENTD_STATE_RUNNING);
    hft_keeper_done(k); /* with agentd, everybody ends */
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
    tcase_add_loop_test(t, children_that_moved_elsewhere_stop_go_on_and_end_with_the_agent, 0,
                        2 * sizeof LEAVERS / sizeof LEAVERS[0]);
    tcase_add_test(t, a_child_elsewhere_that_stopped_itself_stays_stopped);
    tcase_add_test(t, who_comes_back_while_it_stands_goes_on);
    tcase_add_loop_test(t, who_may_be_somebody_elses_is_let_alone, 0,
                        sizeof STRANGERS / sizeof STRANGERS[0]);
    return hft_suite_run("keeper: delegated", t, NULL);
}
