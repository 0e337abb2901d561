/* An agent that speaks sd_notify by systemd's own program: a child of its shell, not the agent
 * itself, which waits until what it said was taken, and fails if that takes five seconds. */
#include "e2e/frozen_fixture.h"

#define TELL                                                                                   \
    "systemd-notify --ready --status=\"read 3 of 7\" && n=0 && "                               \
    "while systemd-notify WATCHDOG=1; do n=$((n+1)); echo told $n; sleep 0.4; done; "          \
    "echo refused; exec sleep 1000"

static const struct cast shell = { "shell", NULL,
                                   "detect.watchdog: 2s\ncommand: [sh, -c, '" TELL "']\n" };

START_TEST(what_systemds_own_program_says_for_an_agent_counts_as_the_agents)
{
    pid_t agentd = start_host("h1", &shell, 1, _i == 1 && geteuid() == 0);
    hf_rev life;

    await("agents/shell/report", "\"state\":\"ready\"");
    await("agents/shell/report", "\"phase\":\"read 3 of 7\"");
    life = life_of("shell");
    await_said("h1", "shell", "told 20"); /* for as long as several watchdogs take */
    ck_assert_int_eq(life_of("shell"), life);
    ck_assert(is_clear((void *)"shell"));
    ck_assert(!is_logged(&(struct line){ "h1/agents/shell.log", "refused" }));
    ck_assert_int_eq(kill(pid_of("shell"), SIGSTOP), 0);
    await("agents/shell/exit", "\"kind\":\"frozen\"");
    expect_in("agents/shell/exit", "no watchdog came");
    expect_in("agents/shell/exit", "it is stopped by a signal");
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("notify");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, what_systemds_own_program_says_for_an_agent_counts_as_the_agents, 0,
                        2); /* with rights, and without */
    return hft_suite_run("e2e: notify", t, NULL);
}
