/* What somebody is told of once: not once by each leader, and again when it comes again. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

#define LONELY "alert role r: 1 tasks of role r wait, and no agent of it is here\n"
#define LATE   "alert task t: its deadline is over, and it is pending\n"

static void another_leads(void)
{
    begin_engine();
    lead();
    ignore();
}

static void nobody_is_here(void)
{
    agent_ends("a", "left");
    agent_ends("b", "left");
    task_waits("t", "pending");
    ignore();
}

/* The clock stands at 14:13:31, ten seconds after the engine began. */
static void has_a_deadline(const char *state)
{
    char json[200];

    (void)snprintf(json, sizeof json,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\","
                   "\"deadline\":\"2026-09-21T14:14:11Z\"}",
                   state);
    put("tasks/t", json);
    ignore();
}

START_TEST(a_role_without_agents_is_told_of_once_whoever_leads)
{
    nobody_is_here();
    pass(300000);
    expect(LONELY);
    pass(1000);
    ck_assert(has("controller/clock", "\"told\":[\"role/r\"]"));
    for (int i = 0; i < 3; i++) {
        another_leads();
        pass(1000000);
        expect("");
    }
    ck_assert(has("controller/clock", "\"told\":[\"role/r\"]"));
}
END_TEST

START_TEST(a_role_that_loses_its_agents_again_is_told_of_again)
{
    nobody_is_here();
    pass(300000);
    expect(LONELY);
    pass(1000);
    another_leads();
    agent_lives("a", "h1", 0x1, "three");
    pass(1000);
    ck_assert(has("controller/clock", "\"told\":[]"));
    agent_ends("a", "left");
    pass(299999);
    ck_assert_ptr_null(strstr(said.data, "alert"));
    ignore();
    pass(1);
    expect(LONELY);
}
END_TEST

/* A leader that goes before it is written down may have told nobody. */
START_TEST(what_may_not_have_been_told_is_told_again)
{
    nobody_is_here();
    pass(300000);
    expect(LONELY);
    ck_assert(!has("controller/clock", "role/r"));
    another_leads();
    pass(300000);
    expect(LONELY);
}
END_TEST

START_TEST(a_deadline_is_told_of_once_whoever_leads)
{
    has_a_deadline("pending");
    pass(41000);
    expect(LATE);
    pass(1000);
    ck_assert(has("controller/clock", "\"told\":[\"late/t\"]"));
    another_leads();
    pass(100000);
    expect("");
    has_a_deadline("completed");
    pass(31000); /* the clock goes on */
    ck_assert(has("controller/clock", "\"told\":[]"));
}
END_TEST

/* There is room for some of them; nobody is told of the others less. */
START_TEST(what_finds_no_room_is_told_all_the_same)
{
    char key[32], json[200];
    size_t alerts = 0;

    for (int i = 0; i < 300; i++) {
        (void)snprintf(key, sizeof key, "tasks/t%d", i);
        (void)snprintf(json, sizeof json,
                       "{\"id\":\"t%d\",\"role\":\"r\",\"state\":\"pending\","
                       "\"deadline\":\"2026-09-21T14:14:11Z\"}",
                       i);
        put(key, json);
    }
    ignore();
    pass(42000);
    for (const char *at = said.data; (at = strstr(at, "its deadline is over")) != NULL; at++)
        alerts++;
    ck_assert_uint_eq(alerts, 300);
    ck_assert(has("controller/clock", "late/t1\""));
}
END_TEST

/* What a newer version keeps there is for it to judge. */
START_TEST(what_is_not_understood_stays)
{
    begin_engine();
    put("controller/clock", "{\"now\":\"2026-09-21T14:20:00Z\",\"told\":[\"more/x\"]}");
    lead();
    pass(31000);
    ck_assert(has("controller/clock", "\"told\":[\"more/x\"]"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("told");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_role_without_agents_is_told_of_once_whoever_leads);
    tcase_add_test(t, a_role_that_loses_its_agents_again_is_told_of_again);
    tcase_add_test(t, what_may_not_have_been_told_is_told_again);
    tcase_add_test(t, a_deadline_is_told_of_once_whoever_leads);
    tcase_add_test(t, what_finds_no_room_is_told_all_the_same);
    tcase_add_test(t, what_is_not_understood_stays);
    return run("core/engine told", t);
}
