/* Nobody is blamed who is well, or whose silence has another reason. */
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "e2e/frozen_fixture.h"

enum {
    HOGS = 8,
    LONG_S = 7,    /* a verdict of the profile `dev` takes half of it, ... */
    STALL_S = 5,   /* ... and a fence longer than that */
    STARVED_S = 8, /* any of those who are starved would be found in five, ... */
    HOG_S = 15,    /* ... and for as long as that nobody has to starve */
};

/* Of the processors that we may use, the last is theirs who are starved; -1: it is the only
 * one. */
static int last = -1;

static bool use(pid_t pid, int processor)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(pid, sizeof set, &set) == 0;
}

/* The kernel may divide a processor among sessions first, and what one has among its own. */
static bool rank(pid_t pid, int nice)
{
    char path[64];
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/autogroup", (int)pid);
    file = fopen(path, "we");
    if (file != NULL) {
        (void)fprintf(file, "%d", nice);
        (void)fclose(file);
    }
    return setpriority(PRIO_PROCESS, (id_t)pid, nice) == 0;
}

/* More than all processors, as anybody; or one of them, before everybody else there. They end
 * though the test may have failed. */
static void burn(pid_t hogs[HOGS], int processor)
{
    for (int i = 0; i < HOGS; i++) {
        hogs[i] = fork();
        ck_assert_int_ge(hogs[i], 0);
        if (hogs[i] != 0)
            continue;
        (void)alarm(HOG_S);
        if (processor >= 0 && (setsid() < 0 || !use(0, processor) || !rank(getpid(), -20)))
            _exit(1);
        for (;;)
            ;
    }
}

static void cool(const pid_t hogs[HOGS])
{
    int status = 0;

    for (int i = 0; i < HOGS; i++) {
        (void)kill(hogs[i], SIGKILL);
        ck_assert_int_eq(waitpid(hogs[i], &status, 0), hogs[i]);
        ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL); /* it burned till now */
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
    /* Which gives everybody more time. It may have renewed just before: then it is late by now.
     */
    await_line("h1/agentd.log", "event=late");
    hft_etcd_resume(&server);
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
    burn(hogs, -1);
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

/* Nobody else is to be starved: neither etcd nor an agentd. */
static void setup_apart(void)
{
    cpu_set_t set;

    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    for (last = CPU_SETSIZE - 1; !CPU_ISSET(last, &set); last--)
        ;
    CPU_CLR(last, &set);
    if (CPU_COUNT(&set) == 0)
        last = -1;
    else
        ck_assert_int_eq(sched_setaffinity(0, sizeof set, &set), 0);
    setup();
}

static int count_said(const char *agent)
{
    char file[64], *log;
    int count = 0;

    (void)snprintf(file, sizeof file, "h1/agents/%s.log", agent);
    log = read_file(file);
    for (const char *at = log; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    free(log);
    return count;
}

/* They lose their processor to others, for longer than anybody may be silent. */
static void starve(const struct cast *all, size_t count)
{
    pid_t hogs[HOGS];
    int said[8], more[8];

    for (size_t i = 0; i < count; i++)
        ck_assert(use(pid_of(all[i].agent), last) && rank(pid_of(all[i].agent), 19));
    burn(hogs, last);
    (void)sleep(1); /* until all of them do */
    for (size_t i = 0; i < count; i++)
        said[i] = count_said(all[i].agent);
    (void)sleep(STARVED_S);
    for (size_t i = 0; i < count; i++)
        more[i] = count_said(all[i].agent) - said[i];
    cool(hogs);
    /* Whoever else computes there would starve them on, and half a minute of it is enough. */
    for (size_t i = 0; i < count; i++)
        ck_assert(rank(pid_of(all[i].agent), 0));
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(more[i] <= 1, "%s was not starved, and said %d", all[i].agent, more[i]);
}

static void await_more(const char *agent, const char *word)
{
    char line[32];

    (void)snprintf(line, sizeof line, "%s %d\n", word, count_said(agent) + 2);
    await_said("h1", agent, line);
}

START_TEST(who_gets_no_processor_is_not_blamed)
{
    static const struct cast all[] = {
        { "hasty", "ping", "detect.profile: dev\n" },
        { "usual", "ping", "" },
        { "feeds", "watchdog", "detect.watchdog: 2s\n" },
    };
    enum { COUNT = sizeof all / sizeof all[0] };
    hf_rev lives[COUNT];
    pid_t agentd;

    if (geteuid() != 0 || last < 0) {
        hft_skip("nobody can be starved here");
        return;
    }
    agentd = start_host("h1", all, COUNT, _i == 1);
    await_said("h1", "hasty", "pong 6");
    await_said("h1", "usual", "pong 6");
    await_said("h1", "feeds", "fed 4");
    for (size_t i = 0; i < COUNT; i++)
        lives[i] = life_of(all[i].agent);
    starve(all, COUNT);
    expect_same(all, lives, COUNT);
    await_more("hasty", "pong");
    await_more("usual", "pong");
    await_more("feeds", "fed");
    for (size_t i = 0; i < COUNT; i++)
        await_clear(all[i].agent);
    expect_same(all, lives, COUNT);
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    static const char *const CASES[] = { "spared", "shim" }; /* with rights, and without */
    TCase *t[2], *starved = tcase_create("starved");

    for (int i = 0; i < 2; i++) {
        t[i] = tcase_create(CASES[i]);
        tcase_add_checked_fixture(t[i], setup, teardown);
        tcase_set_timeout(t[i], 240);
        tcase_add_loop_test(t[i], who_is_well_busy_held_or_starved_is_not_blamed, i, i + 1);
    }
    tcase_add_checked_fixture(starved, setup_apart, teardown);
    tcase_set_timeout(starved, 240);
    tcase_add_loop_test(starved, who_gets_no_processor_is_not_blamed, 0, 2);
    return hft_suite_run("e2e: spared", t[0], t[1], starved, NULL);
}
