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

static bool is_shown(void *arg)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };

    hft_cli(&output, server.endpoint, "ps", NULL);
    return strstr(output.out, arg) != NULL;
}

static void await_shown(const char *part)
{
    hft_wait_or_fail(is_shown, (void *)part, STEP_MS, part);
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
    };
    pid_t agentd;
    hf_rev life;

    begin_leader();
    agentd = start_host("h1", all, sizeof all / sizeof all[0], false);
    await_said("h1", "extends", "asked for time");
    life = life_of("extends");
    await("agents/extends/report", "it asked for time");
    await_shown("busy (ends in ");
    for (size_t i = 0; i < sizeof ENDS / sizeof ENDS[0]; i++) {
        await_said("h1", ENDS[i].state, "said");
        await(key_of(ENDS[i].state, "report"), "\"until\":\"");
        expect_shown("ps", NULL, ENDS[i].end);
    }
    await("agents/late/exit", "\"kind\":\"frozen\"");
    expect_in("agents/late/exit", "state busy");
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
