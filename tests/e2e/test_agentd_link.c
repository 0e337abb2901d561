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

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, a_goodbye_outlives_the_link_that_heard_it);
    return hft_suite_run("agentd: links", stories, NULL);
}
