/* What a link knew, and the one that follows it must know, too. */
#include "e2e/agentd_fixture.h"

/* Until the test says so. */
#define UNTIL_GO "until [ -e \"$0\"/go ]; do sleep 0.1; done; "

/* An answer to a goodbye is a promise: who left is not started again, although the link that
 * heard it is gone. */
START_TEST(a_goodbye_outlives_the_link_that_heard_it)
{
    pid_t agentd;
    hf_rev life;
    int status;

    begin_leader();
    agentd = start_with(
        "a1", (const char *[]){ "--restart", "always", NULL },
        (const char *[]){ "sh", "-c",
                          CURL "-f -d '{\"reason\":\"enough\"}' "
                               "http://localhost/v1/leave && echo gone; " UNTIL_GO "exit 0",
                          dir.path, NULL });
    await_line("agents/a1.log", "gone");
    life = look("agents/a1/live").create_rev;
    kill_link();
    await_link(2);
    write_file("go", "");
    status = hft_process_reap(agentd, STEP_MS);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    await("agents/a1/exit", "\"kind\":\"left\"");
    await("agents/a1/exit", "{\"source\":\"agent\",\"text\":\"enough\"");
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
    ck_assert_int_eq(look("agents/a1/live").count, 0);
    check_log();
}
END_TEST

#define SAY_PARKED                                                                             \
    CURL                                                                                       \
        "-d '{\"tokens\":7,\"phase\":\"thinking\"}' http://localhost/v1/heartbeat; " CURL      \
        "-d '{\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\",\"reason\":\"quota\"}' " \
        "http://localhost/v1/state; "

/* What the agent announced holds until it says something else, whoever asks and writes; also
 * where it was written of an earlier life of the same process. */
START_TEST(what_an_agent_announced_outlives_the_link_that_heard_it)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 SAY_PARKED UNTIL_GO CURL
                                                 "-d '{\"errors\":1}' "
                                                 "http://localhost/v1/heartbeat; " CURL
                                                 "http://localhost/v1/self; exec sleep 600",
                                                 dir.path, NULL });
    char *report, state[100];
    hf_rev life;

    await("agents/a1/report", "\"state\":\"parked\"");
    await("agents/a1/report", "\"tokens\":\"7\"");
    report = look_whole("agents/a1/report");
    (void)snprintf(state, sizeof state, "%.64s",
                   strstr(report, "\"state\":\"parked\",\"until\""));
    *strchrnul(state, 'Z') = '\0';
    ck_assert_msg(strstr(state, "2031") == NULL, "%s", state); /* in a week at the latest */
    free(report);
    life = look("agents/a1/live").create_rev;
    if (_i == 1) {
        revoke_lease();
        hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
        await_event("adopted");
    }
    kill_link();
    await_link(2);
    write_file("go", "");
    await("agents/a1/report", "\"errors\":\"1\"");
    report = look_whole("agents/a1/report");
    ck_assert_msg(strstr(report, state) != NULL, "no %s in %s", state, report);
    ck_assert_msg(strstr(report, "\"tokens\":\"7\"") != NULL, "%s", report);
    ck_assert_msg(strstr(report, "\"reason\":\"quota\"") != NULL, "%s", report);
    ck_assert_msg(strstr(report, "\"phase\":\"thinking\"") != NULL, "%s", report);
    free(report);
    await_line("agents/a1.log", "\"state\":\"parked\"");
    (void)stop(agentd);
}
END_TEST

/* A transaction of the dead link that applies after the next one has begun: it registers an
 * agent which that one has never heard of. Twice: it may come after it was looked for. */
START_TEST(what_a_dead_link_registers_late_goes)
{
    pid_t agentd = start("a1", (const char *[]){ "sleep", "600", NULL });
    hf_rev life;
    int64_t lease;

    await("agents/a1/live", "\"pid\"");
    life = look("agents/a1/live").create_rev;
    lease = look("agents/a1/live").lease;
    await_link(1); /* it says so a moment later, and is counted */
    kill_link();
    await_link(2);
    for (int i = 0; i < 2; i++) {
        (void)hft_put(&hand, ROOT "agents/guest/live",
                      "{\"host\":\"h\",\"instanceId\":\"ghost\"}", lease);
        await("agents/guest/live", NULL);
    }
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(look("agents/a1/live").lease, lease);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, a_goodbye_outlives_the_link_that_heard_it);
    tcase_add_test(stories, what_a_dead_link_registers_late_goes);
    tcase_add_loop_test(stories, what_an_agent_announced_outlives_the_link_that_heard_it, 0, 2);
    return hft_suite_run("agentd: links", stories, NULL);
}
