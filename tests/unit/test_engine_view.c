/* What people are told of an agent or a task: a verdict, why, on what evidence, and what comes
 * next. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static struct hf_engine_view view_of_agent(const char *agent)
{
    struct hf_engine_view view = { 0 };

    run_engine();
    ck_assert_int_eq(hf_engine_explain_agent(engine, agent, now, &view), HF_OK);
    return view;
}

static struct hf_engine_view view_of_task(const char *task)
{
    struct hf_engine_view view = { 0 };

    run_engine();
    ck_assert_int_eq(hf_engine_explain_task(engine, task, now, &view), HF_OK);
    return view;
}

static void expect_agent(const char *agent, const char *verdict, const char *why,
                         const char *next)
{
    struct hf_engine_view view = view_of_agent(agent);

    ck_assert_str_eq(view.verdict, verdict);
    ck_assert_str_eq(view.why, why);
    ck_assert_str_eq(view.next, next);
}

static void expect_task(const char *task, const char *verdict, const char *why)
{
    struct hf_engine_view view = view_of_task(task);

    ck_assert_str_eq(view.verdict, verdict);
    ck_assert_str_eq(view.why, why);
}

START_TEST(what_nobody_knows_cannot_be_explained)
{
    struct hf_engine_view view = { .verdict = "as it was" };

    ck_assert_int_eq(hf_engine_explain_agent(engine, "nobody", now, &view), HF_ENOENT);
    ck_assert_int_eq(hf_engine_explain_task(engine, "nothing", now, &view), HF_ENOENT);
    put("recoveries/t", "{\"task\":\"t\",\"attempts\":1}"); /* a recovery of no task */
    ck_assert_int_eq(hf_engine_explain_task(engine, "t", now, &view), HF_ENOENT);
    ck_assert_str_eq(view.verdict, "as it was");
}
END_TEST

START_TEST(who_is_live_is_healthy_or_says_that_it_is_not)
{
    char json[200];

    expect_agent("a", "healthy", "its lease is held", "nothing");
    ck_assert_ptr_nonnull(strstr(view_of_agent("a").evidence, "on lease 1"));
    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"status\":\"degraded\"}",
                   (long long)life_of("a"));
    put("agents/a/report", json);
    expect_agent("a", "degraded", "it says that it is not well, or its agentd suspects it",
                 "nothing");
    /* What an earlier life said is not said of this one. */
    agent_ends("a", "crashed");
    run_engine();
    host_serves("h1", "a", 0x1, "three", NULL);
    expect_agent("a", "healthy", "its lease is held", "nothing");
}
END_TEST

START_TEST(a_start_that_is_under_way_is_told_before_anything_else)
{
    agent_ends("a", "crashed");
    expect_agent("a", "ordered", "it crashed: it is started again",
                 "its host starts or refuses it, or the command is withdrawn");
    ck_assert_str_eq(view_of_agent("a").evidence, "signal 11");
}
END_TEST

START_TEST(who_is_missed_is_suspect_until_it_is_given_up)
{
    expire(0x1);
    expect_agent("a", "suspect", "its lease is gone and nobody saw its end: it may be back",
                 "it is given up");
    ck_assert_str_eq(view_of_agent("a").evidence,
                     "its live key is gone, and no exit was written");
    ck_assert_int_eq(view_of_agent("a").at, now + 9000);
    pass(9000);
    expect_agent("a", "gone", "the host where it is at home vanished a moment ago",
                 "its home comes back, or it is started elsewhere");
    ck_assert_int_gt(view_of_agent("a").at, now);
}
END_TEST

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
    ck_assert_str_eq(view_of_agent("x7").verdict, "paced");
    ck_assert_str_eq(view_of_agent("x7").next, "it is started again in its turn");
    ck_assert_str_eq(view_of_agent("x7").why, hf_engine_get_status(engine, now).storm.why);
}
END_TEST

START_TEST(who_is_held_waits_for_a_person)
{
    struct hf_engine_view view;

    for (int i = 0; i < 30 && !has("health/a", "\"held\":true"); i++) {
        agent_ends("a", "crashed");
        pass(70000);
        if (get("commands/h1/a")[0] != '\0')
            host_serves("h1", "a", 0x1, "again", NULL);
    }
    view = view_of_agent("a");
    ck_assert_str_eq(view.verdict, "held");
    ck_assert_int_eq(view.at, HF_ENGINE_NEVER);
}
END_TEST

START_TEST(who_ended_as_it_should_is_terminated)
{
    agent_ends("a", "left");
    expect_agent("a", "terminated",
                 "it said goodbye, and by its restart policy that is the end",
                 view_of_agent("a").next);
    put("wanted/b", "{\"state\":\"stopped\"}");
    agent_ends("b", "terminated");
    expect_agent("b", "terminated", "it is wanted stopped", "`holdfast start` starts it");
}
END_TEST

START_TEST(of_who_was_never_started_nothing_is_known)
{
    put("agents/c/spec", "{\"role\":\"r\",\"starter\":\"external\"}");
    put("wanted/c", "{\"state\":\"stopped\"}");
    pass(60000);
    expect_agent("c", "gone", "it is not live", "nothing");
}
END_TEST

START_TEST(a_task_follows_its_owner)
{
    task_is_owned("t", "in_progress", "a");
    expect_task("t", "in_progress", "its owner is live");
    ck_assert_str_eq(view_of_task("t").evidence, "a");
    expire(0x1);
    expect_task("t", "in_progress", "its lease is gone and nobody saw its end: it may be back");
    ck_assert_str_eq(view_of_task("t").next, "it is reset");
    ck_assert_int_eq(view_of_task("t").at, now + 9000);
    answers = false; /* the reset is under way */
    pass(9000);
    expect_task("t", "in_progress", "its owner is gone");
    ck_assert_str_eq(view_of_task("t").evidence,
                     "the live key of its owner's incarnation is gone");
}
END_TEST

START_TEST(the_exit_of_an_owner_is_the_evidence_for_its_task)
{
    task_is_owned("t", "in_progress", "a");
    answers = false;
    agent_ends("a", "crashed");
    expect_task("t", "in_progress", "its owner is gone");
    ck_assert_str_eq(view_of_task("t").evidence, "signal 11");
}
END_TEST

START_TEST(a_task_without_an_owner_tells_of_its_recovery)
{
    struct hf_engine_view view;

    task_waits("t", "pending");
    ck_assert_str_eq(view_of_task("t").verdict, "pending");
    ck_assert_int_eq(view_of_task("t").at, HF_ENGINE_NEVER);
    put("tasks/u", "{\"id\":\"u\",\"role\":\"r\",\"state\":\"needs_review\",\"reason\":"
                   "\"it failed three times\"}");
    ck_assert_str_eq(view_of_task("u").evidence, "it failed three times");
    /* The second time it waits, and one can see how long. */
    task_is_owned("v", "in_progress", "a");
    agent_ends("a", "crashed");
    run_engine();
    host_serves("h1", "a", 0x1, "three", "v");
    run_engine();
    agent_ends("a", "crashed");
    view = view_of_task("v");
    ck_assert_str_eq(view.verdict, "queued");
    ck_assert_int_gt(view.at, now);
    ck_assert_int_le(view.at, now + 60000);
    pass(view.at - now);
    ck_assert_str_eq(view_of_task("v").verdict, "pending");
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
    ck_assert_str_eq(view_of_task("t").verdict, "set aside");
    ck_assert_str_eq(view_of_task("t").evidence, "expected an object");
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
    TCase *t = tcase_create("view");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_nobody_knows_cannot_be_explained);
    tcase_add_test(t, who_is_live_is_healthy_or_says_that_it_is_not);
    tcase_add_test(t, a_start_that_is_under_way_is_told_before_anything_else);
    tcase_add_test(t, who_is_missed_is_suspect_until_it_is_given_up);
    tcase_add_test(t, who_waits_for_the_storm_guard_is_paced);
    tcase_add_test(t, who_is_held_waits_for_a_person);
    tcase_add_test(t, who_ended_as_it_should_is_terminated);
    tcase_add_test(t, of_who_was_never_started_nothing_is_known);
    tcase_add_test(t, a_task_follows_its_owner);
    tcase_add_test(t, the_exit_of_an_owner_is_the_evidence_for_its_task);
    tcase_add_test(t, a_task_without_an_owner_tells_of_its_recovery);
    tcase_add_test(t, a_record_that_cannot_be_read_sets_its_task_aside);
    return run("core/engine views", t);
}
