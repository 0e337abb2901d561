/* Starts that are ordered, refused, withdrawn, repeated, and held back. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

/* Its host cannot start it. */
static void host_refuses(const char *host, const char *agent)
{
    char key[300];

    rev++;
    (void)snprintf(key, sizeof key, "commands/%s/%s", host, agent);
    ck_assert_str_ne(get(key), "");
    erase_pair(full_key(key));
    (void)snprintf(key, sizeof key, "agents/%s/exit", agent);
    store_pair(full_key(key), "{\"kind\":\"start_failed\"}", 23, 0);
}

START_TEST(a_start_that_nobody_serves_is_withdrawn_and_ordered_elsewhere)
{
    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    ignore();
    pass(29999);
    expect("");
    pass(1);
    expect(
        "agent a: delete commands/h1/a, put health/a, put tasks/t, put pending/r/t, "
        "put recoveries/t (the start on h1 was withdrawn: its host did not serve it in time)\n"
        "agent a: put health/a (it crashed: it is started again)\n");
    ck_assert(has("tasks/t", "\"reservedFor\":\"\""));
    ck_assert(has("health/a", "\"commandHost\":\"\""));
    ck_assert(has("recoveries/t", "\"result\":\"withdrawn\""));
    pass(1000);
    expect("agent a: put commands/h2/a, put health/a (it crashed: it is started again)\n");
}
END_TEST

/* Nowhere else can it be started: its own backoff is all that it waits for. */
START_TEST(the_only_host_is_asked_again_though_it_did_not_serve_a_start)
{
    put("hosts/h2/record", "{\"launchers\":[\"other\"]}");
    agent_ends("a", "crashed");
    pass(30000);
    ignore();
    ck_assert_str_eq(get("commands/h1/a"), "");
    pass(1000);
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
}
END_TEST

/* What it did not do before it went says nothing of what it does now. */
START_TEST(a_host_that_is_back_with_another_lease_is_as_good_as_any)
{
    agent_ends("a", "crashed");
    ignore();
    expire(0x1);
    pass(9000);
    ignore();
    ck_assert_str_eq(get("commands/h1/a"), "");
    host_joins("h1", 0x9);
    pass(1000);
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
}
END_TEST

START_TEST(a_start_is_withdrawn_when_its_host_is_gone_for_long_enough)
{
    agent_ends("a", "crashed");
    ignore();
    expire(0x1);
    pass(8999);
    expect("");
    pass(1);
    expect("agent a: delete commands/h1/a, put health/a (the start on h1 was withdrawn: its "
           "host is gone)\n"
           "agent a: put health/a (it crashed: it is started again)\n");
}
END_TEST

START_TEST(a_start_is_withdrawn_when_the_agent_is_wanted_stopped)
{
    agent_ends("a", "crashed");
    ignore();
    put("wanted/a", "{\"state\":\"stopped\"}");
    expect("agent a: delete commands/h1/a, put health/a (the start on h1 was withdrawn: the "
           "agent is wanted stopped)\n"
           "agent a: put health/a (it is wanted stopped)\n");
}
END_TEST

START_TEST(a_start_is_withdrawn_when_the_agent_is_live_elsewhere)
{
    agent_ends("a", "crashed");
    ignore();
    agent_lives("a", "h2", 0x2, "four");
    expect("agent a: delete commands/h1/a, put health/a (the start on h1 was withdrawn: the "
           "agent is live)\n");
    pass(20);
    expect("agent a: put health/a (it is live)\n");
}
END_TEST

START_TEST(a_start_that_is_refused_is_ordered_on_another_host_and_then_the_agent_is_held)
{
    agent_ends("a", "crashed");
    ignore();
    host_refuses("h1", "a");
    pass(1000);
    expect(
        "agent a: put health/a (it could not be started: it is started on another host)\n"
        "agent a: put commands/h2/a, put health/a (it could not be started: it is started on "
        "another host)\n");
    host_refuses("h2", "a");
    expect("alert agent a: it could not be started, and no other host can take it\n"
           "agent a: put health/a (it could not be started, and no other host can take it)\n");
    ck_assert(has("health/a", "\"held\":true"));
    pass(400000);
    expect("");
}
END_TEST

START_TEST(a_start_that_did_not_come_is_an_outcome_of_the_recovery)
{
    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    ignore();
    ck_assert(has("tasks/t", "\"reservedFor\":\"a\""));
    host_refuses("h1", "a");
    /* As its host does in the same step; or it waits for somebody who does not come. */
    put("tasks/t", _i == 0 ? "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\"}"
                           : "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\","
                             "\"reservedFor\":\"z\"}");
    run_engine();
    ck_assert(
        has("recoveries/t", _i == 0 ? "\"result\":\"refused\"" : "\"result\":\"withdrawn\""));
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
}
END_TEST

/* a, b and c have the same role. c lives and takes nothing; one of the others is enough for one
 * task, if it can be started. */
START_TEST(another_one_is_called_when_the_first_that_was_called_cannot_be_started)
{
    agent_lives("c", "h1", 0x1, "ic");
    agent_ends("a", "finished");
    agent_ends("b", "finished");
    ignore();
    task_waits("t", "pending");
    pass(2000);
    ck_assert_str_ne(get("commands/h1/a"), "");
    host_refuses("h1", "a");
    pass(1000);
    ck_assert_str_ne(get("commands/h2/a"), "");
    host_refuses("h2", "a");
    pass(1);
    ck_assert(has("health/a", "\"held\":true"));
    ck_assert_str_eq(get("commands/h1/b"), "");
    pass(30000); /* who was called has so long to come */
    ck_assert(strcmp(get("commands/h1/b"), "") != 0 || strcmp(get("commands/h2/b"), "") != 0);
}
END_TEST

/* Crashes at once, as often as it is started; returns how often that was. */
static int crash_until_rest(void)
{
    int starts = 0;

    agent_ends("a", "crashed");
    for (int i = 0; i < 100; i++) {
        char instance[32];

        run_engine();
        for (int second = 0; second < 130 && get("commands/h1/a")[0] == '\0'; second++)
            pass(1000);
        if (get("commands/h1/a")[0] == '\0')
            return starts;
        starts++;
        (void)snprintf(instance, sizeof instance, "i%d", i);
        host_serves("h1", "a", 0x1, instance, NULL);
        run_engine();
        agent_ends("a", "crashed");
    }
    return starts;
}

START_TEST(who_crashes_again_and_again_waits_longer_and_is_held_in_the_end)
{
    hf_ms began = now;

    ck_assert_int_eq(crash_until_rest(), 10);
    ck_assert(has("health/a", "\"held\":true"));
    ck_assert_ptr_nonnull(
        strstr(said.data, "alert agent a: it was started too often in too short a time\n"));
    /* 1, 2, 4, 8, 16, 32, 60, 60, 60 s less a tenth. */
    ck_assert_int_ge(now - began, 218000);
    ignore();
    /* Another leader finds it held, and tells nobody again. */
    begin_engine();
    lead();
    pass(700000);
    expect("");
    /* A person releases it. */
    put("health/a", "{\"state\":\"failing\"}");
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
}
END_TEST

/* The cluster clock counts what its leaders stored: it may be late by what they did not. */
START_TEST(another_leader_waits_at_least_as_long_as_the_one_before_would_have)
{
    agent_ends("a", "crashed");
    ignore();
    host_serves("h1", "a", 0x1, "three", NULL);
    ignore();
    agent_ends("a", "crashed");
    run_engine();
    ck_assert(has("health/a", "\"nextStart\":\"2"));
    ignore();
    pass(500);
    begin_engine();
    lead();
    pass(399);
    expect("");
    pass(12000);
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
}
END_TEST

START_TEST(a_second_start_of_one_agent_is_withdrawn)
{
    agent_ends("a", "crashed");
    ignore();
    put("commands/h2/a", "{\"host\":\"h2\"}");
    expect("agent a: delete commands/h2/a, put health/a (the start on h2 was withdrawn: it is "
           "not the start that was ordered last)\n");
    ck_assert(has("health/a", "\"commandHost\":\"h1\""));
}
END_TEST

/* The watch has lost the command, and the engine takes it for served: etcd knows better. */
START_TEST(a_start_that_we_do_not_see_is_outstanding_until_etcd_says_that_it_is_not)
{
    agent_ends("a", "crashed");
    ignore();
    tell_pair(full_key("commands/h1/a"), NULL);
    pass(60000);
    ck_assert_str_ne(get("commands/h1/a"), "");
    ck_assert_str_eq(get("commands/h2/a"), "");
    ck_assert(has("health/a", "\"commandHost\":\"h1\""));
    erase("commands/h1/a");
    pass(60000);
    ck_assert(get("commands/h1/a")[0] != '\0' || get("commands/h2/a")[0] != '\0');
    ignore();
}
END_TEST

START_TEST(who_finds_no_host_is_started_when_one_comes)
{
    expire(0x2);
    pass(30000);
    put("hosts/h1/record", "{\"launchers\":[\"w\"],\"cordoned\":true}");
    agent_ends("a", "crashed");
    ignore();
    pass(20000);
    ignore();
    host_joins("h2", 0x4);
    run_engine();
    ck_assert_ptr_nonnull(strstr(said.data, "agent a: put commands/h2/a, put health/a"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("starts");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_start_that_nobody_serves_is_withdrawn_and_ordered_elsewhere);
    tcase_add_test(t, the_only_host_is_asked_again_though_it_did_not_serve_a_start);
    tcase_add_test(t, a_host_that_is_back_with_another_lease_is_as_good_as_any);
    tcase_add_test(t, a_start_is_withdrawn_when_its_host_is_gone_for_long_enough);
    tcase_add_test(t, a_start_is_withdrawn_when_the_agent_is_wanted_stopped);
    tcase_add_test(t, a_start_is_withdrawn_when_the_agent_is_live_elsewhere);
    tcase_add_test(
        t, a_start_that_is_refused_is_ordered_on_another_host_and_then_the_agent_is_held);
    tcase_add_loop_test(t, a_start_that_did_not_come_is_an_outcome_of_the_recovery, 0, 2);
    tcase_add_test(t, another_one_is_called_when_the_first_that_was_called_cannot_be_started);
    tcase_add_test(t, who_crashes_again_and_again_waits_longer_and_is_held_in_the_end);
    tcase_add_test(t, another_leader_waits_at_least_as_long_as_the_one_before_would_have);
    tcase_add_test(t, a_second_start_of_one_agent_is_withdrawn);
    tcase_add_test(t, a_start_that_we_do_not_see_is_outstanding_until_etcd_says_that_it_is_not);
    tcase_add_test(t, who_finds_no_host_is_started_when_one_comes);
    return run("core/engine starts", t);
}
