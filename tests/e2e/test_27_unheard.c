/* Nobody is blamed for what agentd did not hear while it stood still itself: its link alone,
 * all of it, or everybody as in a machine that was suspended. Afterwards it judges as before.
 */
#include "e2e/frozen_fixture.h"

enum {
    STILL_MS = 10000,
    LATER_MS = 3000,  /* of the five in which it only listens, and as long as a verdict takes */
    AFTER_MS = 10000, /* the same five, and such a verdict */
    MOMENT_MS = 1050, /* longer than an answer may take, too short to be called a stall */
    SPARED_MS = 12000, /* twice as long as a verdict takes of an agentd that is well */
};

static const struct cast ALL[] = {
    { "hasty", "ping", "detect.profile: dev\n" },
    { "usual", "ping", "" },
    { "calm", "ping", "detect.profile: tolerant\n" },
    { "feeds", "watchdog", "detect.watchdog: 2s\n" },
    { "asked", NULL, "probe: {command: ['true'], every: 200ms}\ncommand: [sleep, 1000]\n" },
    { "plain", NULL, "command: [sh, -c, 'echo up; exec sleep 1000']\n" },
};
enum { COUNT = sizeof ALL / sizeof ALL[0] };

static hf_rev lives[COUNT];

static bool nobody_is_blamed(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (life_of(ALL[i].agent) != lives[i])
            return false;
    }
    return !is_logged(&(struct line){ "h1/agentd.log", "event=frozen" });
}

static void signal_all(int number, const pid_t *pids, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ck_assert_int_eq(kill(pids[i], number), 0);
}

/* For as long as it takes to find somebody who hangs. Agents that stood still as well find
 * their way back last: until then nothing of them lies there to be read. */
static void stand_still(const pid_t *ours, size_t count, const pid_t *agents, size_t others)
{
    signal_all(SIGSTOP, ours, count);
    signal_all(SIGSTOP, agents, others);
    hft_pass_until(now() + STILL_MS);
    signal_all(SIGCONT, ours, count);
    if (others > 0)
        hft_pass_until(now() + LATER_MS);
    signal_all(SIGCONT, agents, others);
    hft_pass_until(now() + AFTER_MS);
    ck_assert(nobody_is_blamed());
}

START_TEST(nobody_is_blamed_for_what_agentd_did_not_hear)
{
    pid_t agents[COUNT], both[2];

    host_ttl = "60s"; /* nobody is fenced meanwhile */
    both[0] = start_host("h1", ALL, COUNT, false);
    for (size_t i = 0; i < 3; i++)
        await_said("h1", ALL[i].agent, "pong 4");
    await_said("h1", "feeds", "fed 4");
    await_said("h1", "plain", "up");
    for (size_t i = 0; i < COUNT; i++) {
        lives[i] = life_of(ALL[i].agent);
        agents[i] = pid_of(ALL[i].agent);
    }
    both[1] = pid_in("h1/link.pid");
    stand_still(&both[1], 1, NULL, 0);
    stand_still(both, 2, NULL, 0);
    stand_still(both, 2, agents, COUNT);
    ck_assert_int_eq(kill(pid_of("usual"), SIGSTOP), 0);
    await("agents/usual/exit", "it is stopped by a signal");
    end_host("h1", both[0]);
}
END_TEST

/* Its second answer in a row would be too late, but lies there when the link goes on. */
START_TEST(an_answer_that_came_while_the_link_stood_still_is_read_first)
{
    static const struct cast late = { "late", "late", "" };
    pid_t agentd = start_host("h1", &late, 1, false), link;
    hf_rev life;

    await_said("h1", "late", "skipped");
    life = life_of("late");
    link = pid_in("h1/link.pid");
    await_said("h1", "late", "thinking");
    ck_assert_int_eq(kill(link, SIGSTOP), 0);
    hft_pass_until(now() + MOMENT_MS);
    ck_assert_int_eq(kill(link, SIGCONT), 0);
    await_said("h1", "late", "pong 9");
    ck_assert_int_eq(life_of("late"), life);
    ck_assert(!is_logged(&(struct line){ "h1/agentd.log", "event=frozen" }));
    end_host("h1", agentd);
}
END_TEST

/* The lease is far from its end, and yet something keeps agentd waiting: what that is may keep
 * its agents waiting, too. */
START_TEST(a_watch_that_has_gone_silent_gives_everybody_more_time)
{
    static const struct cast usual = { "usual", "ping", "" };
    pid_t agentd, pid;

    host_ttl = "180s";
    agentd = start_host("h1", &usual, 1, false);
    await_said("h1", "usual", "pong 8");
    pid = pid_of("usual");
    hft_etcd_pause(&server);
    await_line("h1/agentd.log", "what we watch in etcd has gone silent");
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    hft_pass_until(now() + SPARED_MS);
    ck_assert(!is_logged(&(struct line){ "h1/agentd.log", "event=frozen" }));
    hft_etcd_resume(&server);
    await("agents/usual/exit", "it is stopped by a signal");
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("unheard");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, nobody_is_blamed_for_what_agentd_did_not_hear);
    tcase_add_test(t, an_answer_that_came_while_the_link_stood_still_is_read_first);
    tcase_add_test(t, a_watch_that_has_gone_silent_gives_everybody_more_time);
    return hft_suite_run("e2e: unheard", t, NULL);
}
