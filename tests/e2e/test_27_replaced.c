/* A link that is replaced takes along how the agents are judged: nobody is ended by what it
 * never agreed to, and who hangs meanwhile is found by the next one. */
#include "e2e/frozen_fixture.h"

static bool has_another_link(void *arg)
{
    char *log = read_file("h1/agentd.log"), *at = log;
    int links = 0;

    while ((at = strstr(at, "event=ready")) != NULL) {
        links++;
        at++;
    }
    free(log);
    return links >= *(const int *)arg;
}

static void expect_frozen(const char *agent, const char *why)
{
    await(key_of(agent, "exit"), "\"kind\":\"frozen\"");
    expect_in(key_of(agent, "exit"), why);
}

START_TEST(a_new_link_judges_as_the_old_one_did_and_finds_who_hangs)
{
    /* What its launcher says at first, and after SIGHUP. */
    static const struct cast all[] = {
        { "own", "own", "detect.watchdog: 2s\n" },
        { "slow", "slow", "detect.watchdog: 30s\n" },
        { "kept", "ping", "detect.freeze: report\n" },
        { "rests", "longer", "" },
        { "stops", "ping", "" },
        { "starves", "watchdog", "detect.watchdog: 4s\n" },
        { "well", "ping", "detect.profile: dev\n" },
    };
    static const struct cast changed[] = {
        { "slow", "slow", "detect.watchdog: 2s\n" },
        { "kept", "ping", "detect.freeze: end\n" },
        { "stops", "ping", "detect.by: [heartbeat]\n" },
    };
    enum { COUNT = sizeof all / sizeof all[0], SPARED = 4 };
    hf_rev lives[COUNT];
    pid_t agentd = start_host("h1", all, COUNT, false);

    await_said("h1", "own", "fed");
    await_said("h1", "slow", "fed");
    await_said("h1", "starves", "fed");
    await_said("h1", "kept", "pong 6");
    await_said("h1", "rests", "pong 6");
    await_said("h1", "stops", "pong 6");
    await_said("h1", "well", "pong 6");
    for (int i = 0; i < COUNT; i++)
        lives[i] = life_of(all[i].agent);
    ck_assert_int_eq(kill(pid_of("kept"), SIGSTOP), 0);
    await("agents/kept/report", "\"frozen\":true");
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++)
        write_cast("h1", &changed[i]);
    ck_assert_int_eq(kill(pid_of("stops"), SIGSTOP), 0);
    ck_assert_int_eq(kill(pid_of("starves"), SIGSTOP), 0);
    /* What it says last is in no report yet when the link goes. */
    ck_assert_int_eq(kill(pid_of("rests"), SIGUSR1), 0);
    await_said("h1", "rests", "resting");
    ck_assert_int_eq(kill(agentd, SIGHUP), 0);
    hft_wait_or_fail(has_another_link, &(int){ 2 }, STEP_MS, "another link");
    expect_in("agents/kept/report", "\"frozen\":true"); /* nobody has refuted it */
    expect_frozen("starves", "no watchdog came for");
    expect_frozen("stops", "it answered pings before, and does not listen any more");
    await("agents/kept/report", "does not listen any more");
    for (int i = 0; i < SPARED; i++)
        ck_assert_msg(life_of(all[i].agent) == lives[i], "%s is another one: %s", all[i].agent,
                      look_whole(key_of(all[i].agent, "exit")));
    ck_assert_int_eq(life_of("well"), lives[COUNT - 1]);
    ck_assert(is_clear((void *)"well"));
    ck_assert_int_eq(kill(pid_of("kept"), SIGCONT), 0);
    await_clear("kept");
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("replaced");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_new_link_judges_as_the_old_one_did_and_finds_who_hangs);
    return hft_suite_run("e2e: replaced", t, NULL);
}
