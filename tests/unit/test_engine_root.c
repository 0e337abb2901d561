/* Tasks whose checkpoints lie in files that only some hosts have. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

#define ROOT   ",\"root\":{\"id\":\"files\",\"host\":\"h1\"}"
#define RECORD "{\"launchers\":[\"w\"]"

/* t is at work on h1, and its checkpoint lies in files. */
static void at_work(void)
{
    char json[500];

    put("hosts/h1/record", RECORD ",\"roots\":[\"files\"]}");
    put("hosts/h2/record", RECORD ",\"roots\":[\"others\"]}");
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%lld\"}},"
                   "\"attempt\":1,\"checkpoint\":{\"seq\":\"3\"}" ROOT "}",
                   (long long)life_of("a"));
    put("tasks/t", json);
    ignore();
}

START_TEST(a_successor_with_the_task_is_ordered_where_the_files_are)
{
    at_work();
    agent_ends("a", "crashed");
    run_engine();
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
    ck_assert(has("tasks/t", "\"reservedFor\":\"a\""));
}
END_TEST

/* It has no home, and h2 has more room: the files decide. */
START_TEST(who_is_at_home_nowhere_goes_where_the_files_are)
{
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\"}");
    at_work();
    put("hosts/h1/record", RECORD ",\"capacity\":2,\"roots\":[\"files\"]}");
    ignore();
    agent_ends("a", "crashed");
    run_engine();
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
}
END_TEST

START_TEST(on_a_host_without_the_files_the_agent_is_started_without_the_task)
{
    at_work();
    expire(0x1);
    pass(120000);
    ck_assert(has("commands/h2/a", "\"task\":\"\""));
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
    ck_assert(has("tasks/t", "\"reservedFor\":\"\""));
    ck_assert(has("pending/r/t", "\"root\":{\"id\":\"files\""));
}
END_TEST

START_TEST(a_host_that_shares_the_files_gets_the_task)
{
    at_work();
    put("hosts/h2/record", RECORD ",\"roots\":[\"files\"]}");
    ignore();
    expire(0x1);
    pass(120000);
    ck_assert_str_ne(get("commands/h2/a"), "");
    ck_assert(has("pending/r/t", "\"root\":{\"id\":\"files\""));
}
END_TEST

/* Somebody of the role lives, but not there: a person hears of it, and has the last word. */
START_TEST(a_task_that_nobody_can_go_on_with_ends_with_a_person)
{
    at_work();
    expire(0x1);
    pass(60000);
    ignore();
    pass(300000);
    ck_assert_ptr_nonnull(
        strstr(said.data, "alert task t: its checkpoint lies in files of host h1"));
    ignore();
    pass(86400000 - 360000);
    pass(60000);
    ck_assert(has("tasks/t", "\"state\":\"needs_review\""));
    ck_assert(has("tasks/t", "lies in files of host h1"));
}
END_TEST

START_TEST(while_somebody_is_there_nobody_is_told)
{
    at_work();
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\"" ROOT "}");
    ignore();
    pass(86400000 + 600000);
    ck_assert_ptr_null(strstr(said.data != NULL ? said.data : "", "task t"));
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
}
END_TEST

/* What nobody could claim wakes nobody; when its host is back, somebody is started there. */
START_TEST(who_sleeps_is_called_to_where_the_files_are)
{
    at_work();
    agent_ends("b", "left");
    agent_ends("a", "finished");
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\""
                   ",\"root\":{\"id\":\"away\",\"host\":\"h3\"}}");
    pass(200000);
    ck_assert_str_eq(get("commands/h1/a"), "");
    ck_assert_str_eq(get("commands/h2/a"), "");
    ignore();
    put("hosts/h2/record", RECORD ",\"roots\":[\"away\"]}");
    pass(60000);
    ck_assert_ptr_nonnull(strstr(said.data, "agent a: put commands/h2/a"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("root");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_successor_with_the_task_is_ordered_where_the_files_are);
    tcase_add_test(t, who_is_at_home_nowhere_goes_where_the_files_are);
    tcase_add_test(t, on_a_host_without_the_files_the_agent_is_started_without_the_task);
    tcase_add_test(t, a_host_that_shares_the_files_gets_the_task);
    tcase_add_test(t, a_task_that_nobody_can_go_on_with_ends_with_a_person);
    tcase_add_test(t, while_somebody_is_there_nobody_is_told);
    tcase_add_test(t, who_sleeps_is_called_to_where_the_files_are);
    return run("core/engine_root", t);
}
