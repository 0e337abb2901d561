/* How the engine stands, and what its records tell of agents and tasks that nothing is done
 * about.
 */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

START_TEST(who_waits_for_the_storm_guard_is_paced)
{
    hf_ms left = 60000;

    for (int i = 0; i < 10; i++) {
        char host[16], agent[16];

        (void)snprintf(host, sizeof host, "n%d", i);
        (void)snprintf(agent, sizeof agent, "x%d", i);
        host_joins(host, 0x100 + i);
        agent_lives(agent, host, 0x100 + i, "i");
    }
    pass(30000);
    expire(0x1);
    expire(0x2);
    for (int i = 0; i < 10; i++)
        expire(0x100 + i);
    for (; left > 0 && hf_engine_get_status(engine, now).paced < 12; left -= 1000)
        pass(1000);
    ck_assert_uint_eq(hf_engine_get_status(engine, now).paced, 12);
    ck_assert_int_ne(hf_engine_get_status(engine, now).storm.state, HF_STORM_NORMAL);
}
END_TEST

static void expect_health(const char *agent, const char *why)
{
    char key[32], text[200];

    (void)snprintf(key, sizeof key, "health/%s", agent);
    (void)snprintf(text, sizeof text, "\"why\":\"%s\"", why);
    ck_assert_msg(has(key, text), "%s", get(key));
    ck_assert(has(key, "\"state\":\"terminated\""));
    ck_assert(has(key, "\"what\":\"`holdfast start` starts it\""));
}

START_TEST(who_ended_as_it_should_is_terminated)
{
    agent_ends("a", "left");
    run_engine();
    expect_health("a", "it said goodbye, and by its restart policy that is the end");
    put("wanted/b", "{\"state\":\"stopped\"}");
    agent_ends("b", "terminated");
    run_engine();
    expect_health("b", "it is wanted stopped");
}
END_TEST

START_TEST(a_record_that_cannot_be_read_sets_its_task_aside)
{
    struct hf_event event = { .kind = HF_EVENT_BAD,
                              .bad = { .key = { HF_KEY_RECOVERY, .name = "t" },
                                       .seen = { .mod_rev = ++rev },
                                       .why = "expected an object" } };

    task_is_owned("t", "in_progress", "a");
    ck_assert_int_eq(step(&event), HF_OK);
    run_engine();
    ck_assert_uint_eq(hf_engine_get_status(engine, now).bad, 1);
    agent_ends("a", "crashed");
    pass(100000);
    ck_assert(has("tasks/t", "\"state\":\"in_progress\""));
    put("recoveries/t", "{\"task\":\"t\"}"); /* a person corrects it */
    run_engine();
    ck_assert(!has("tasks/t", "\"state\":\"in_progress\""));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("status");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_waits_for_the_storm_guard_is_paced);
    tcase_add_test(t, who_ended_as_it_should_is_terminated);
    tcase_add_test(t, a_record_that_cannot_be_read_sets_its_task_aside);
    return run("core/engine status", t);
}
