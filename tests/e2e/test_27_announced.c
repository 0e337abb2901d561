/* What an agent announced explains its silence until its end, which everybody can see, and
 * nothing after it. */
#include "e2e/frozen_fixture.h"

#define SAYS(state)                                                                            \
    "command: [sh, -c, '" CURL "-d \"{\\\"state\\\":\\\"" state                                \
    "\\\"}\" http://localhost/v1/state; echo said; exec sleep 1000']\n"

static const struct {
    const char *state, *end;
} ENDS[] = { /* that it gets where it names none */
             { "busy", "busy (ends in " },
             { "draining", "draining (ends in " },
             { "parked", "parked (ends in 5" },
             { "waiting", "waiting (ends in 23h" }
};

struct row {
    const char *agent, *part;
};

/* In the line of that agent. */
static bool is_shown(void *arg)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    const struct row *row = arg;
    char *line, *rest;

    hft_cli(&output, server.endpoint, "ps", NULL);
    rest = output.out;
    while ((line = strsep(&rest, "\n")) != NULL) {
        size_t len = strlen(row->agent);

        if (strncmp(line, row->agent, len) == 0 && line[len] == ' ')
            return strstr(line, row->part) != NULL;
    }
    return false;
}

/* What "late" said before it fell silent, all of it. */
static const char LAST_REPORT[] =
    "{\"source\":\"report\",\"text\":\"state busy (a tool runs), status degraded, "
    "phase reading, last tool grep, task t7, 40 % done, 1200 tokens, 3 errors\"";

static void await_shown(const char *agent, const char *part)
{
    hft_wait_or_fail(is_shown, &(struct row){ agent, part }, STEP_MS, part);
}

/* What explains that it does not answer does not explain that it is stopped. */
static void expect_stop_seen(const char *agent)
{
    ck_assert_int_eq(kill(pid_of(agent), SIGSTOP), 0);
    await(key_of(agent, "report"), "\"suspicion\":{\"kind\":\"process\"");
    expect_in(key_of(agent, "report"), "it is stopped by a signal");
    ck_assert_int_eq(kill(pid_of(agent), SIGCONT), 0);
    await_clear(agent);
}

START_TEST(every_announced_state_shows_its_end_and_has_one)
{
    struct cast all[] = {
        { "busy", NULL, SAYS("busy") },
        { "draining", NULL, SAYS("draining") },
        { "parked", NULL, SAYS("parked") },
        { "waiting", NULL, SAYS("waiting") },
        { "late", "brief", "detect.profile: dev\n" },
        { "extends", "pause", "detect.watchdog: 2s\n" },
        { "rests", "rest, waiting", "" },
        { "claims", "claim, 300s", "" },
    };
    pid_t agentd;
    hf_rev life;

    begin_leader();
    agentd = start_host("h1", all, sizeof all / sizeof all[0], false);
    await_said("h1", "extends", "asked for time");
    life = life_of("extends");
    await("agents/extends/report", "it asked for time");
    await_shown("extends", "busy (ends in ");
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        await_said("h1", ENDS[i].state, "said");
        await(key_of(ENDS[i].state, "report"), "\"until\":\"");
        await_shown(ENDS[i].state, ENDS[i].end);
    }
    await_said("h1", "rests", "blocking");
    await_shown("rests", "waiting (ends in ");
    expect_stop_seen("rests");
    await_said("h1", "claims", "claiming");
    expect_stop_seen("claims");
    await("agents/late/exit", "\"kind\":\"frozen\"");
    expect_in("agents/late/exit", LAST_REPORT);
    await_said("h1", "extends", "fed 4");
    await("agents/extends/report", "\"state\":\"ready\"");
    ck_assert_int_eq(life_of("extends"), life);
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("announced");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, every_announced_state_shows_its_end_and_has_one);
    return hft_suite_run("e2e: announced", t, NULL);
}
