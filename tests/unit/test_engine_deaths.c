/* Deaths, and what follows. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

START_TEST(a_death_that_was_seen_is_followed_by_reset_and_start_in_one_step)
{
    task_is_owned("t", "in_progress", "a");
    expect("");
    agent_ends("a", "crashed");
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
    ck_assert(has("tasks/t", "\"reservedFor\":\"a\""));
    ck_assert(has("tasks/t", "\"attempt\":2"));
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
    ck_assert(has("health/a", "\"commandHost\":\"h1\""));
    ck_assert(has("health/a", "signal 11"));
    host_serves("h1", "a", 0x1, "three", "t");
    expect(""); /* the successor has the machine to itself for a moment */
    pass(20);
    expect("agent a: put health/a (it is live)\n"
           "task t: put recoveries/t (somebody has it again)\n");
    ck_assert(has("health/a", "\"state\":\"healthy\""));
    ck_assert(has("health/a", "\"commandHost\":\"\""));
    task_is_owned("t", "in_progress", "a");
    pass(900000);
    expect("task t: put recoveries/t (its probation is over)\n");
}
END_TEST

/* Anybody may have written the record. */
START_TEST(a_task_with_the_largest_number_of_attempts_is_started_all_the_same)
{
    char json[300];

    (void)snprintf(json, sizeof json,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%lld\"}},"
                   "\"attempt\":%d}",
                   (long long)life_of("a"), INT32_MAX);
    put("tasks/t", json);
    agent_ends("a", "crashed");
    run_engine();
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
    ck_assert(has("tasks/t", "\"attempt\":2147483647"));
    ck_assert(has("commands/h1/a", "\"attempt\":2147483647"));
}
END_TEST

/* As JSON says it in a string. */
static void quote(const char *text, char *out, size_t size)
{
    size_t len = 0;

    for (; *text != '\0' && len + 2 < size; text++) {
        if (*text == '"')
            out[len++] = '\\';
        out[len++] = *text;
    }
    out[len] = '\0';
}

START_TEST(a_start_carries_what_its_own_step_made_of_the_task)
{
    char task[4000], recovery[4000];
    char created[64];

    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    ignore();
    quote(get("tasks/t"), task, sizeof task);
    quote(get("recoveries/t"), recovery, sizeof recovery);
    (void)snprintf(created, sizeof created, "\"taskCreateRevision\":\"%lld\"",
                   (long long)find_pair(full_key("tasks/t"))->create_rev);
    ck_assert(has("commands/h1/a", task));
    ck_assert(has("commands/h1/a", recovery));
    ck_assert(has("commands/h1/a", created));
}
END_TEST

START_TEST(a_start_carries_no_long_task)
{
    char payload[9000];
    char value[10000];

    memset(payload, 'x', sizeof payload);
    payload[sizeof payload - 1] = '\0';
    task_is_owned("t", "in_progress", "a");
    (void)snprintf(value, sizeof value, "{\"payload\":\"%s\",%s", payload, get("tasks/t") + 1);
    put("tasks/t", value);
    agent_ends("a", "crashed");
    ignore();
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
    ck_assert(has("commands/h1/a", "\"taskText\":\"\",\"recoveryText\":\"\""));
}
END_TEST

static const char *const NO_LIVES[] = {
    "{\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"1\",\"generation\":-1},"
    "\"kind\":\"crashed\"}",
    "{\"incarnation\":{\"leaseId\":\"-1\",\"createRevision\":\"-9223372036854775808\","
    "\"generation\":-2147483648},\"kind\":\"crashed\"}",
};

/* Anybody may have written it; nothing may follow for the one who lives. */
START_TEST(the_end_of_a_life_that_never_was_is_nothing)
{
    put("agents/a/exit", NO_LIVES[_i]);
    expect("");
    ck_assert(life_of("a") > 0);
}
END_TEST

START_TEST(every_guard_of_it_is_there)
{
    char text[1024];
    int64_t task_rev, life = life_of("a"), spec;

    task_is_owned("t", "in_progress", "a");
    task_rev = rev;
    spec = find_pair(full_key("agents/a/spec"))->mod_rev;
    ignore();
    shows_guards = true;
    agent_ends("a", "oom");
    (void)snprintf(
        text, sizeof text,
        "agent a: if absent(events/0000000000000000004), create(controller/leader) = 110, "
        "lease(controller/leader) = 77, "
        "mod(recoveries/t) = 0, create(agents/a/live) != %lld, mod(tasks/t) = %lld, "
        "text(tasks/t), "
        "absent(events/0000000000000000005), mod(health/a) = 0, absent(commands/h1/a), "
        "absent(agents/a/live), mod(agents/a/spec) = %lld, mod(wanted/a) = 0, "
        "absent(events/0000000000000000006) then put events/0000000000000000004, "
        "put recoveries/t, put tasks/t, "
        "put pending/r/t, put events/0000000000000000005, put commands/h1/a, put health/a, "
        "put events/0000000000000000006 (it ran out of memory: it is started again)\n",
        (long long)life, (long long)task_rev, (long long)spec);
    expect(text);
}
END_TEST

START_TEST(an_expiry_is_judged_after_its_grace)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    pass(8999);
    expect(
        "agent a: put health/a (its lease is gone and nobody saw its end: it may be back)\n");
    ck_assert(has("health/a", "\"state\":\"suspect\""));
    pass(1);
    /* Whoever lives may have the task; the agent waits for its home. */
    expect("agent a: put health/a (the host where it is at home vanished a moment ago)\n"
           "task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
    ck_assert(has("tasks/t", "\"reservedFor\":\"\""));
    ck_assert(
        has("health/a", "\"what\":\"its home comes back, or it is started elsewhere\",\"at\""));
    pass(50999);
    expect("");
    pass(1);
    expect("agent a: put commands/h2/a, put health/a "
           "(its lease expired and nobody saw its end: it is started on another host)\n");
}
END_TEST

START_TEST(who_is_back_in_time_and_adopts_its_task_loses_nothing)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    pass(2000);
    ignore();
    host_joins("h1", 0x3);
    agent_lives("a", "h1", 0x3, "one");
    pass(5000);
    expect("agent a: put health/a (it is live)\n");
    task_is_owned("t", "in_progress", "a");
    pass(60000);
    expect("");
}
END_TEST

START_TEST(who_is_back_and_adopts_nothing_loses_its_task_and_is_ended)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    pass(6000);
    ignore();
    host_joins("h1", 0x3);
    agent_lives("a", "h1", 0x3, "one");
    pass(8999);
    expect("agent a: put health/a (it is live)\n");
    pass(1);
    expect("task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
    {
        char text[64];

        (void)snprintf(text, sizeof text, "\"endUpto\":\"%lld\"", (long long)life_of("a"));
        ck_assert(has("health/a", text));
    }
    pass(60000);
    expect("");
}
END_TEST

START_TEST(another_process_under_the_name_proves_the_end_of_the_first)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    pass(1000);
    ignore();
    host_joins("h1", 0x3);
    agent_lives("a", "h1", 0x3, "other");
    expect("task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
    ck_assert(has("health/a", "\"endUpto\":\"0\""));
}
END_TEST

START_TEST(a_leader_that_begins_with_nothing_decides_as_one_that_saw_everything)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    begin_engine();
    lead();
    pass(8999);
    expect(
        "agent a: put health/a (its lease is gone and nobody saw its end: it may be back)\n");
    pass(1);
    expect("agent a: put health/a (the host where it is at home vanished a moment ago)\n"
           "task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
}
END_TEST

START_TEST(a_standby_asks_for_nothing)
{
    struct hf_event event = { .kind = HF_EVENT_TERM };

    ck_assert_int_eq(step(&event), HF_OK);
    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    pass(60000);
    expect("");
    lead();
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
}
END_TEST

START_TEST(nothing_is_decided_before_everything_was_told)
{
    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_FORGET }), HF_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
        run_engine();
    }
    expect("");
    sync_engine();
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
}
END_TEST

static const struct {
    const char *kind, *said;
} ENDS[] = {
    { "left", "agent a: put health/a (it said goodbye, and by its restart policy that is the "
              "end)\n" },
    { "finished",
      "agent a: put health/a (it finished: it is started when its role has work)\n" },
    { "terminated", "agent a: put commands/h1/a, put health/a (it was ended on request: it is "
                    "started again)\n" },
    { "start_failed",
      "agent a: put commands/h2/a, put health/a (it could not be started: it is "
      "started on another host)\n" },
    { "unkillable", "alert agent a: its process cannot be killed: it is started on another "
                    "host\nagent a: put commands/h2/a, put health/a (its process cannot be "
                    "killed: it is started on another host)\n" },
};

START_TEST(each_end_has_its_consequence)
{
    agent_ends("a", ENDS[_i].kind);
    expect(ENDS[_i].said);
    pass(10000);
    expect("");
}
END_TEST

START_TEST(who_is_wanted_stopped_is_not_started)
{
    put("wanted/a", "{\"state\":\"stopped\"}");
    agent_ends("a", "terminated");
    expect("agent a: put health/a (it is wanted stopped)\n");
    pass(100000);
    expect("");
    put("wanted/a", "{\"state\":\"running\"}");
    expect("agent a: put commands/h1/a, put health/a (it was ended on request: it is started "
           "again)\n");
}
END_TEST

/* A person's word is for the end that it followed, and for none that comes after. */
START_TEST(who_was_asked_for_once_is_started_once)
{
    put("agents/a/spec",
        "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\",\"restart\":\"never\"}");
    agent_ends("a", "crashed");
    pass(60000);
    ck_assert_str_eq(get("commands/h1/a"), "");
    put("wanted/a", "{\"state\":\"running\"}");
    pass(5000);
    ck_assert_str_ne(get("commands/h1/a"), "");
    host_serves("h1", "a", 0x1, "three", NULL);
    pass(60000);
    ignore();
    expire(0x1); /* nobody writes how it ended: the exit is still that of the life before */
    host_joins("h1", 0x3);
    pass(600000);
    ck_assert_ptr_null(strstr(said.data, "put commands/"));
    put("wanted/a", "{\"state\":\"running\",\"reason\":\"again\"}");
    pass(5000);
    ck_assert_str_ne(get("commands/h1/a"), "");
}
END_TEST

START_TEST(who_finished_is_started_when_there_is_work_and_once)
{
    agent_ends("a", "finished");
    agent_ends("b", "finished");
    ignore();
    task_waits("t", "pending");
    expect("agent a: put commands/h1/a, put health/a (it finished: it is started again)\n");
    ck_assert(has("health/a", "\"state\":\"terminated\"")); /* nothing has failed */
    pass(5000);
    expect("");
}
END_TEST

START_TEST(live_peers_have_a_moment_to_take_work_before_others_are_woken)
{
    agent_ends("a", "finished");
    ignore();
    task_waits("t", "pending");
    pass(1999);
    expect("");
    pass(1);
    expect("agent a: put commands/h1/a, put health/a (it finished: it is started again)\n");
}
END_TEST

/* One that ends with each task is needed once more for each: it does not have to wait until the
 * call that it came for is forgotten. */
START_TEST(who_comes_and_finishes_is_called_again_for_what_is_left)
{
    agent_ends("a", "finished");
    agent_ends("b", "finished");
    ignore();
    task_waits("t", "pending");
    task_waits("u", "pending");
    task_waits("v", "pending");
    ignore();
    host_serves("h1", "a", 0x1, "two", NULL);
    host_serves("h2", "b", 0x2, "two", NULL);
    ignore();
    agent_ends("a", "finished");
    agent_ends("b", "finished");
    pass(2000);
    ck_assert_str_ne(get("commands/h1/a"), "");
    ck_assert_str_ne(get("commands/h2/b"), "");
}
END_TEST

START_TEST(a_live_key_without_a_lease_is_removed)
{
    agent_lives("c", "h1", 0, "x");
    expect(
        "agent c: delete agents/c/live (its live key hangs on no lease, so it proves "
        "nothing)\n"
        "agent c: put health/c (its lease is gone and nobody saw its end: it may be back)\n");
}
END_TEST

START_TEST(what_holds_through_an_outage_is_left_alone_until_its_host_is_back)
{
    put("agents/a/spec",
        "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\",\"fence\":\"hold\"}");
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    pass(3600000);
    expect("agent a: put health/a (its lease is gone and nobody saw its end: it may be back)\n"
           "agent a: put health/a (its host is gone, and it may be running there)\n");
    put("hosts/h1/record", "{\"capacity\":100,\"launchers\":[\"w\"],\"left\":true}");
    pass(5000);
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h2/a, "
           "put health/a (its lease expired and nobody saw its end: it is started on another "
           "host)\n");
}
END_TEST

START_TEST(others_start_what_is_external)
{
    put("agents/a/spec", "{\"role\":\"r\",\"starter\":\"external\"}");
    agent_ends("a", "crashed");
    pass(100000);
    expect("agent a: put health/a (it is gone, and others start it)\n");
}
END_TEST

START_TEST(what_was_transient_is_swept)
{
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"transient\":true}");
    agent_ends("a", "left");
    ignore();
    pass(599999);
    expect("");
    pass(1);
    expect("agent a: delete agents/a/spec, delete agents/a/report, delete agents/a/exit, "
           "delete health/a (it was transient, and its end is long ago)\n");
    ck_assert_str_eq(get("health/a"), "");
}
END_TEST

/* It is a person's, and by itself no agent that anything would be done about. */
START_TEST(what_is_wanted_of_who_is_swept_stays)
{
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"transient\":true}");
    put("wanted/a", "{\"state\":\"stopped\"}");
    agent_ends("a", "terminated");
    pass(600000);
    ignore();
    ck_assert_str_eq(get("agents/a/spec"), "");
    ck_assert_str_eq(get("wanted/a"), "{\"state\":\"stopped\"}");
    pass(7200000);
    expect("");
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"transient\":true}");
    pass(1000);
    expect("agent a: put health/a (it is wanted stopped)\n");
}
END_TEST

/* Its time counts from when it was first heard of, however long the machine is up. */
START_TEST(what_is_transient_and_has_not_begun_yet_is_not_swept)
{
    pass(7200000);
    ignore();
    put("agents/c/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"transient\":true}");
    put("wanted/c", "{\"state\":\"stopped\"}");
    pass(599999);
    ck_assert_str_ne(get("agents/c/spec"), "");
    pass(1);
    ck_assert_str_eq(get("agents/c/spec"), "");
}
END_TEST

/* A person may have spoken of it before, or it was here and was removed. */
START_TEST(what_is_transient_is_not_swept_because_it_was_known_before_its_spec)
{
    put("wanted/c", "{\"state\":\"stopped\"}");
    pass(7200000);
    ignore();
    put("agents/c/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"transient\":true}");
    pass(599999);
    ck_assert_str_ne(get("agents/c/spec"), "");
    put("agents/c/spec", "{\"role\":\"r\",\"launcher\":\"v\",\"transient\":true}");
    pass(1); /* that it is another now is not the beginning */
    ck_assert_str_eq(get("agents/c/spec"), "");
}
END_TEST

START_TEST(a_stall_of_our_own_begins_every_suspicion_anew)
{
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    ignore();
    now += 30000;
    expect("");
    pass(8999);
    expect("");
    /* One tick was late: the grace is doubled until as many were not. */
    pass(9001);
    expect("agent a: put health/a (the host where it is at home vanished a moment ago)\n"
           "task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("deaths");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_was_asked_for_once_is_started_once);
    tcase_add_test(t, a_task_with_the_largest_number_of_attempts_is_started_all_the_same);
    tcase_add_test(t, a_death_that_was_seen_is_followed_by_reset_and_start_in_one_step);
    tcase_add_test(t, a_start_carries_what_its_own_step_made_of_the_task);
    tcase_add_test(t, a_start_carries_no_long_task);
    tcase_add_loop_test(t, the_end_of_a_life_that_never_was_is_nothing, 0, COUNT(NO_LIVES));
    tcase_add_test(t, every_guard_of_it_is_there);
    tcase_add_test(t, an_expiry_is_judged_after_its_grace);
    tcase_add_test(t, who_is_back_in_time_and_adopts_its_task_loses_nothing);
    tcase_add_test(t, who_is_back_and_adopts_nothing_loses_its_task_and_is_ended);
    tcase_add_test(t, another_process_under_the_name_proves_the_end_of_the_first);
    tcase_add_test(t, a_leader_that_begins_with_nothing_decides_as_one_that_saw_everything);
    tcase_add_test(t, a_standby_asks_for_nothing);
    tcase_add_test(t, nothing_is_decided_before_everything_was_told);
    tcase_add_loop_test(t, each_end_has_its_consequence, 0, COUNT(ENDS));
    tcase_add_test(t, who_is_wanted_stopped_is_not_started);
    tcase_add_test(t, who_finished_is_started_when_there_is_work_and_once);
    tcase_add_test(t, who_comes_and_finishes_is_called_again_for_what_is_left);
    tcase_add_test(t, live_peers_have_a_moment_to_take_work_before_others_are_woken);
    tcase_add_test(t, a_live_key_without_a_lease_is_removed);
    tcase_add_test(t, what_holds_through_an_outage_is_left_alone_until_its_host_is_back);
    tcase_add_test(t, others_start_what_is_external);
    tcase_add_test(t, what_was_transient_is_swept);
    tcase_add_test(t, what_is_wanted_of_who_is_swept_stays);
    tcase_add_test(t, what_is_transient_and_has_not_begun_yet_is_not_swept);
    tcase_add_test(t, what_is_transient_is_not_swept_because_it_was_known_before_its_spec);
    tcase_add_test(t, a_stall_of_our_own_begins_every_suspicion_anew);
    return run("core/engine deaths", t);
}
