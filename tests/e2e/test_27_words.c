/* What agents say of themselves, how they are asked from outside, and how soon each profile is:
 * who is found by it, and who is spared. Then their link itself stands still for a while, and
 * they with it, which is nobody's fault. */
#include "e2e/frozen_fixture.h"
#include "support/port.h"

enum {
    LONG_S = 10,
    LATER_S = 3, /* of the five in which a link that stood still only listens */
    FOUND = 16,
};

static struct hft_port tcp, grpc;
static const char mixed[] = "detect: {profile: dev, by: [ping, probe, watchdog]}\n"
                            "probe: {command: ['true'], every: 1s}\n";
static char by_tcp[100], by_grpc[100], tcp_mode[20], grpc_mode[20], failing[500], hanging[500];

/* The first of them hang, after the signal if there is one; the others are spared. */
static const struct {
    struct cast cast;
    const char *ready;
    int signal;
    const char *why;
} ALL[] = {
    { { "dev", "ping", "detect.profile: dev\n" }, "pong 6", SIGSTOP, "2 pings" },
    { { "tolerant", "ping", "detect.profile: tolerant\n" }, "pong 5", SIGSTOP, "3 pings" },
    { { "trigger", "watchdog", "" }, "fed 1", SIGUSR1, "it said itself that it hangs" },
    { { "fails", "idle", failing }, "idle", 0, "its program says that it does not serve" },
    { { "hangs", "idle", hanging }, "idle", 0, "it took too long" },
    { { "tcp", tcp_mode, by_tcp }, "asked", SIGUSR1, "3 probes failed in" },
    { { "grpc", grpc_mode, by_grpc }, "asked", SIGUSR1, "it answers that it does not serve" },
    { { "brief", "brief", "detect.profile: dev\n" }, "busy", 0, "2 pings" },
    { { "fed", "watchdog", "detect.watchdog: 2s\n" }, "fed 3", SIGSTOP, "no watchdog came" },
    { { "beats", "beat", "detect.by: [heartbeat]\n" }, "beat 4", SIGSTOP, "no heartbeat came" },
    { { "waits", "'rest', waiting, '3'", "detect.profile: dev\n" }, "resting", 0, "2 pings" },
    { { "parks", "'rest', parked, '3'", "detect.profile: dev\n" }, "resting", 0, "2 pings" },
    { { "drains", "'rest', draining, '3'", "detect.profile: dev\n" }, "resting", 0, "2 pings" },
    /* What answers from outside does not speak for who does not answer itself. */
    { { "mixed", "ping", mixed }, "pong 6", SIGSTOP, "2 pings" },
    /* Who is unpunctual by habit has been spared once before for what nobody else is. */
    { { "moody", "moody", "detect.profile: dev\n" }, "pong 16", SIGSTOP, " pings" },
    { { "uneven", "uneven", "detect.watchdog: 4s\n" }, "fed 12", SIGSTOP, "no watchdog came" },
    { { "waiting", "'rest', waiting", "detect.profile: dev\n" }, "resting", 0, NULL },
    { { "parked", "'rest', parked", "detect.profile: dev\n" }, "resting", 0, NULL },
    { { "draining", "'rest', draining", "detect.profile: dev\n" }, "resting", 0, NULL },
    { { "extend", "extend", "detect.watchdog: 2s\n" }, "blocking", 0, NULL },
    { { "stopping", "stopping", "detect.watchdog: 2s\n" }, "blocking", 0, NULL },
    { { "relents", "relent", "detect: {watchdog: 2s, freeze: report}\n" }, "fed 1", 0, NULL },
    { { "own", "own", "detect.watchdog: 2s\n" }, "fed 2", 0, NULL },
    { { "mute", "mute", "detect.profile: dev\n" }, "active 8", 0, NULL },
    { { "well", "ping", "detect.profile: dev\n" }, "pong 6", 0, NULL },
};

enum { COUNT = sizeof ALL / sizeof ALL[0] };

static hf_rev lives[COUNT];

/* Its programs serve until a file is there. */
static void fill(void)
{
    hft_port_take(&tcp);
    hft_port_take(&grpc);
    (void)snprintf(tcp_mode, sizeof tcp_mode, "tcp, %d", tcp.number);
    (void)snprintf(grpc_mode, sizeof grpc_mode, "grpc, %d", grpc.number);
    (void)snprintf(by_tcp, sizeof by_tcp, "probe: {address: 'tcp://127.0.0.1:%d', every: 1s}\n",
                   tcp.number);
    (void)snprintf(by_grpc, sizeof by_grpc,
                   "probe: {address: 'grpc://127.0.0.1:%d/a', every: 1s}\n", grpc.number);
    (void)snprintf(failing, sizeof failing,
                   "probe: {command: [sh, -c, 'test ! -e %s/hang -a $HOLDFAST_AGENT = fails'], "
                   "every: 1s}\n",
                   dir.path);
    (void)snprintf(hanging, sizeof hanging,
                   "probe: {command: [sh, -c, 'test ! -e %s/hang || sleep 100'], every: 1s}\n",
                   dir.path);
}

static pid_t start_all(void)
{
    struct cast cast[COUNT];
    pid_t agentd;

    fill();
    for (int i = 0; i < COUNT; i++)
        cast[i] = ALL[i].cast;
    host_ttl = "30s"; /* no fence while their link stands still */
    host_more = "heartbeat: 1s\n";
    agentd = start_host("h1", cast, COUNT, geteuid() == 0);
    for (int i = 0; i < COUNT; i++) {
        await_said("h1", ALL[i].cast.agent, ALL[i].ready);
        lives[i] = life_of(ALL[i].cast.agent);
    }
    await_line("h1/agentd.log", "agent=fails good=true");
    await_line("h1/agentd.log", "agent=hangs good=true");
    await_line("h1/agentd.log", "agent=mixed good=true");
    await_line("h1/agentd.log", "agent=tcp good=true");
    await_line("h1/agentd.log", "agent=grpc good=true");
    return agentd;
}

static void expect_found(const char *agent, const char *why)
{
    await(key_of(agent, "exit"), "\"kind\":\"frozen\"");
    expect_in(key_of(agent, "exit"), why);
}

/* Whom habits have earned more of them than anybody else. */
static void expect_more_pings(const char *agent)
{
    char *exit = look_whole(key_of(agent, "exit"));

    ck_assert_msg(strstr(exit, " 2 pings") == NULL, "%s: %s", agent, exit);
    free(exit);
}

/* Whoever is not ended for it may go on. */
static void expect_taken_back(const char *agent)
{
    const char *report = key_of(agent, "report");

    ck_assert_int_eq(kill(pid_of(agent), SIGUSR1), 0);
    await(report, "it said itself that it hangs");
    await(report, "\"frozen\":true");
    ck_assert_int_eq(kill(pid_of(agent), SIGUSR2), 0);
    await_clear(agent);
}

static void expect_spared(void)
{
    for (int i = FOUND; i < COUNT; i++) {
        const char *agent = ALL[i].cast.agent;

        ck_assert_msg(life_of(agent) == lives[i], "%s is another one", agent);
        ck_assert_msg(is_clear((void *)agent), "%s is suspect", agent);
    }
}

static void send_spared(int signal)
{
    for (int i = FOUND; i < COUNT; i++)
        ck_assert_int_eq(kill(pid_of(ALL[i].cast.agent), signal), 0);
}

/* Those who are left find their way back after it. */
static void stop_link_and_agents(void)
{
    pid_t link = pid_in("h1/link.pid");

    ck_assert_int_eq(kill(link, SIGSTOP), 0);
    send_spared(SIGSTOP);
    (void)sleep(LONG_S);
    ck_assert_int_eq(kill(link, SIGCONT), 0);
    (void)sleep(LATER_S);
    send_spared(SIGCONT);
    (void)sleep(LONG_S);
}

START_TEST(words_explain_what_they_say_and_no_more)
{
    pid_t agentd = start_all();

    write_file("hang", "");
    for (int i = 0; i < FOUND; i++) {
        if (ALL[i].signal != 0)
            ck_assert_int_eq(kill(pid_of(ALL[i].cast.agent), ALL[i].signal), 0);
    }
    for (int i = 0; i < FOUND; i++)
        expect_found(ALL[i].cast.agent, ALL[i].why);
    expect_more_pings("moody");
    expect_taken_back("relents");
    expect_spared();
    stop_link_and_agents();
    expect_spared();
    end_host("h1", agentd);
    hft_port_release(&tcp);
    hft_port_release(&grpc);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("words");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, words_explain_what_they_say_and_no_more);
    return hft_suite_run("e2e: words", t, NULL);
}
