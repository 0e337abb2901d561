/* Nobody is blamed who is well, or whose silence has another reason. */
#include <sys/ptrace.h>

#include "e2e/frozen_fixture.h"

enum {
    HOGS = 6,
    LONG_S = 7,  /* a verdict of the profile `dev` takes half of it, ... */
    STALL_S = 5, /* ... and a fence longer than that */
};

/* More than all processors. */
static void burn(pid_t hogs[HOGS])
{
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        ck_assert_int_ge(hogs[i], 0);
        if (hogs[i] == 0) {
            for (;;)
                ;
        }
    }
}

static void cool(const pid_t hogs[HOGS])
{
    for (int i = 0; i < HOGS; i++) {
        ck_assert_int_eq(kill(hogs[i], SIGKILL), 0);
        (void)waitpid(hogs[i], NULL, 0);
    }
}

/* It promised nothing: what the kernel says of it is shown, and no more. */
static void stop_who_opted_into_nothing(void)
{
    ck_assert_int_eq(kill(pid_of("plain"), SIGSTOP), 0);
    await("agents/plain/report", "it is stopped by a signal");
    expect_shown("ps", NULL, "suspect");
    expect_shown("explain", "plain", "suspected by its agentd (process");
    expect_shown("explain", "plain", "next: nothing by itself: this alone does not show");
}

static bool debug(const char *agent)
{
    pid_t pid = pid_of(agent);

    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) != 0)
        return false;
    ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
    await(key_of(agent, "report"), "a debugger holds it");
    return true;
}

static void expect_same(const struct cast *all, const hf_rev *lives, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(life_of(all[i].agent) == lives[i], "%s is another one", all[i].agent);
    ck_assert(!is_logged(&(struct line){ "h1/agentd.log", "event=frozen" }));
}

/* It waits for its agentd, and that for etcd. */
static void submit_while_etcd_stands_still(void)
{
    pid_t pid = pid_of("submits");

    hft_etcd_pause(&server);
    ck_assert_int_eq(kill(pid, SIGUSR1), 0);
    (void)sleep(STALL_S);
    hft_etcd_resume(&server);
    await_line("h1/agentd.log", "event=late"); /* which gives everybody more time */
    await_said("h1", "submits", "submitted");
}

START_TEST(who_is_well_busy_held_or_starved_is_not_blamed)
{
    char asked[200], wrapped[400];
    struct cast all[] = {
        { "plain", NULL, "command: [sh, -c, 'echo up; exec sleep 1000']\n" },
        { "held", "ping", "detect.profile: dev\n" },
        { "busy", "busy", "detect.profile: dev\n" },
        { "deaf", "deaf", "detect.profile: dev\n" },    /* nobody has to be asked for ever */
        { "claims", "claim", "detect.profile: dev\n" }, /* both wait for their agentd */
        { "submits", "submit", "detect.profile: dev\n" },
        { "starved", "ping", "" },
        { "wrapped", NULL, wrapped },
        { "asked", NULL, asked }, /* by grpc.health.v1, which etcd speaks */
        { "told", NULL, "probe: {command: ['true'], every: 200ms}\ncommand: [sleep, 1000]\n" },
    };
    enum { COUNT = sizeof all / sizeof all[0] };
    hf_rev lives[COUNT];
    pid_t agentd, hogs[HOGS];
    bool debugs;

    (void)snprintf(asked, sizeof asked,
                   "probe: {address: 'grpc%s', every: 200ms, misses: 100}\ncommand: [sleep, "
                   "1000]\n",
                   strstr(server.endpoint, "://"));
    (void)snprintf(wrapped, sizeof wrapped,
                   "command: [sh, -c, 'python3 %s/pinged.py ping; exit 1']\n", dir.path);
    agentd = start_host("h1", all, COUNT, _i == 1 && geteuid() == 0);
    await_said("h1", "busy", "busy");
    await("agents/busy/report", "\"until\":\"");
    expect_shown("ps", NULL, "busy (ends in ");
    await_said("h1", "plain", "up");
    await_line("h1/agentd.log", "event=probed program=agentd ns=default agent=asked good=true");
    await_line("h1/agentd.log", "event=probed program=agentd ns=default agent=told good=true");
    await_said("h1", "held", "pong 6");
    await_said("h1", "deaf", "deaf");
    for (size_t i = 0; i < COUNT; i++)
        lives[i] = life_of(all[i].agent);
    expect_in("agents/held/live", "\"ping\":\"1s\""); /* as its launcher's profile says */
    expect_in("agents/starved/live", "\"ping\":\"2s\"");
    debugs = debug("held");
    stop_who_opted_into_nothing();
    await_said("h1", "busy", "done");
    await_said("h1", "claims", "claimed");
    await_said("h1", "claims", "pong 6");
    await_said("h1", "busy", "pong 6");
    (void)sleep(LONG_S);
    expect_same(all, lives, COUNT);
    ck_assert(is_clear((void *)"busy"));
    ck_assert_int_eq(kill(pid_of("plain"), SIGCONT), 0);
    if (debugs)
        ck_assert_int_eq(ptrace(PTRACE_DETACH, pid_of("held"), NULL, NULL), 0);
    await_clear("plain");
    await_clear("held");
    await_said("h1", "starved", "pong 8");
    await_said("h1", "wrapped", "pong 8");
    burn(hogs);
    (void)sleep(LONG_S);
    cool(hogs);
    expect_same(all, lives, COUNT);
    await_said("h1", "submits", "pong 6");
    submit_while_etcd_stands_still();
    expect_same(all, lives, COUNT);
    end_host("h1", agentd);
    if (!debugs)
        hft_skip("nothing may be traced here");
}
END_TEST

int main(void)
{
    static const char *const CASES[] = { "spared", "shim" }; /* with rights, and without */
    TCase *t[2];

    for (int i = 0; i < 2; i++) {
        t[i] = tcase_create(CASES[i]);
        tcase_add_checked_fixture(t[i], setup, teardown);
        tcase_set_timeout(t[i], 240);
        tcase_add_loop_test(t[i], who_is_well_busy_held_or_starved_is_not_blamed, i, i + 1);
    }
    return hft_suite_run("e2e: spared", t[0], t[1], NULL);
}
