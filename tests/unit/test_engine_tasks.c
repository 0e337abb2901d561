/* Tasks that wait, are recovered, or need a person. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

/* Its owner dies with it, and its successor takes it again, as often as the engine lets it. */
static void die_with_task(const char *instance)
{
    agent_ends("a", "crashed");
    run_engine();
    for (int second = 0; second < 90 && get("commands/h1/a")[0] == '\0'; second++)
        pass(1000);
    host_serves("h1", "a", 0x1, instance, NULL);
    run_engine();
}

/* Whether a process of that life may go on when it is back. */
static long taken_upto(void)
{
    const char *at = strstr(get("health/a"), "\"takenUpto\":\"");

    return at != NULL ? strtol(at + strlen("\"takenUpto\":\""), NULL, 10) : 0;
}

START_TEST(a_task_is_recovered_three_times_and_then_a_person_is_asked)
{
    static const hf_ms WAITS[] = { 0, 60000, 120000 };
    long taken;

    for (size_t i = 0; i < COUNT(WAITS); i++) {
        char instance[16];

        task_is_owned("t", "in_progress", "a");
        (void)snprintf(instance, sizeof instance, "i%zu", i);
        die_with_task(instance);
        if (i > 0)
            ck_assert(has("tasks/t", "\"state\":\"queued\""));
        ck_assert_int_eq(i > 0, has("tasks/t", "\"next\":{\"what\":\"anyone of its role"));
        pass(WAITS[i]);
        ck_assert_msg(has("tasks/t", "\"state\":\"pending\""), "%zu %s", i, get("tasks/t"));
    }
    task_is_owned("t", "in_progress", "a");
    ignore();
    taken = taken_upto();
    agent_ends("a", "crashed");
    run_engine();
    ck_assert_int_gt(taken_upto(), taken);
    ck_assert_ptr_nonnull(
        strstr(said.data,
               "alert task t: its owner is gone, and it was recovered as often as may "
               "be\ntask t: put tasks/t, delete pending/r/t, put recoveries/t, put health/a "
               "(its owner is gone, and it was recovered as often as may be)\n"));
    ck_assert(has("tasks/t", "\"state\":\"needs_review\""));
    ignore();
    begin_engine();
    lead();
    pass(900000);
    ck_assert_ptr_null(said.data != NULL ? strstr(said.data, "task t") : NULL);
}
END_TEST

START_TEST(a_queued_task_without_a_recovery_is_promoted_at_once)
{
    task_waits("t", "queued");
    expect("task t: put tasks/t, put pending/r/t (no attempt has to wait)\n");
}
END_TEST

START_TEST(who_acknowledges_and_does_not_start_loses_the_task_after_two_minutes)
{
    task_is_owned("t", "acknowledged", "a");
    pass(119999);
    expect("");
    pass(1);
    expect("task t: put tasks/t, put pending/r/t (its owner has claimed it but not started)\n");
    ck_assert(has("tasks/t", "\"attempt\":1"));
}
END_TEST

START_TEST(who_starts_keeps_it)
{
    task_is_owned("t", "acknowledged", "a");
    pass(60000);
    task_is_owned("t", "in_progress", "a");
    pass(600000);
    expect("");
}
END_TEST

/* etcd was restored and has gone on, and nobody has noticed: the same revision stands for
 * another change. */
START_TEST(what_another_past_completed_at_the_same_revision_is_not_reset)
{
    struct pair *pair;

    task_is_owned("t", "in_progress", "a");
    run_engine();
    pair = find_pair(full_key("tasks/t"));
    free(pair->value);
    pair->value = strdup("{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"}");
    agent_ends("a", "crashed");
    pass(1000);
    ck_assert(has("tasks/t", "\"state\":\"completed\""));
}
END_TEST

START_TEST(tasks_that_no_agent_comes_for_are_told_of_once_and_reviewed_after_a_day)
{
    agent_ends("a", "left");
    agent_ends("b", "left");
    ignore();
    task_waits("t", "pending");
    task_waits("u", "pending");
    pass(299999);
    expect("");
    pass(1);
    expect("alert role r: 2 tasks of role r wait, and no agent of it is here\n");
    pass(86400000 - 300001);
    expect("");
    pass(1);
    ck_assert_ptr_nonnull(strstr(said.data, "alert task t: "));
    ck_assert(has("tasks/t", "\"state\":\"needs_review\""));
    ck_assert(has("tasks/u", "\"state\":\"needs_review\""));
}
END_TEST

START_TEST(a_task_that_is_reserved_for_nobody_who_comes_is_for_anyone)
{
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\",\"reservedFor\":\"z\"}");
    expect("task t: put tasks/t, put pending/r/t (the agent that it was reserved for does not "
           "come)\n");
    put("tasks/u", "{\"id\":\"u\",\"role\":\"r\",\"state\":\"pending\",\"reservedFor\":\"a\"}");
    pass(119999);
    expect("");
    pass(1);
    expect("task u: put tasks/u, put pending/r/u (the agent that it was reserved for did not "
           "take it in time)\n");
}
END_TEST

START_TEST(an_agent_with_two_tasks_loses_both_and_takes_one_along)
{
    task_is_owned("t", "in_progress", "a");
    task_is_owned("u", "acknowledged", "a");
    ignore();
    agent_ends("a", "crashed");
    expect("agent a: put recoveries/u, put tasks/u, put pending/r/u, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n"
           "task t: put recoveries/t, put tasks/t, put pending/r/t, put health/a "
           "(its owner is gone: anyone of its role may have it)\n");
    ck_assert(has("health/a", "\"commandHost\":\"h1\""));
    ck_assert(has("tasks/t", "\"reservedFor\":\"\""));
}
END_TEST

START_TEST(an_owner_of_whom_nothing_else_is_known_loses_its_task)
{
    put("tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{\"agent\":"
        "\"z\",\"incarnation\":{\"createRevision\":\"3\"}}}");
    pass(9000);
    expect("task t: put recoveries/t, put tasks/t, put pending/r/t, put health/z "
           "(its owner is gone: anyone of its role may have it)\n");
}
END_TEST

START_TEST(a_task_without_a_role_cannot_be_acted_on_and_is_told_of_once)
{
    put("tasks/t", "{\"id\":\"t\",\"role\":\"\",\"state\":\"queued\"}");
    run_engine();
    ck_assert_ptr_nonnull(strstr(said.data, "alert task t: nothing can be done about it"));
    ignore();
    pass(100000);
    expect("");
}
END_TEST

#define OVER(state, more)                                                                      \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"" state "\",\"checkpoint\":{\"seq\":\"2\"}" more \
    "}"

static const struct {
    const char *task;
    bool goes;
} CHAINS[] = {
    { OVER("completed", ",\"root\":{\"id\":\"files\",\"host\":\"h1\"}"), true },
    { OVER("cancelled", ""), true },
    { OVER("failed", ""), false },
    { OVER("needs_review", ""), false },
    { OVER("pending", ""), false },
};

START_TEST(the_checkpoints_of_what_is_over_go_after_an_hour)
{
    put("checkpoints/t/0000000000000000001", "{\"task\":\"t\",\"seq\":\"1\"}");
    put("checkpoints/t/0000000000000000002", "{\"task\":\"t\",\"seq\":\"2\",\"parent\":\"1\"}");
    put("checkpoints/t2/0000000000000000001", "{\"task\":\"t2\",\"seq\":\"1\"}");
    put("tasks/t", CHAINS[_i].task);
    ignore();
    pass(3599999);
    ck_assert_ptr_null(strstr(said.data != NULL ? said.data : "", "checkpoints"));
    ck_assert_str_ne(get("checkpoints/t/0000000000000000002"), "");
    ignore();
    pass(1);
    if (!CHAINS[_i].goes) {
        ck_assert_str_ne(get("checkpoints/t/0000000000000000002"), "");
        return;
    }
    expect("task t: put tasks/t, delete checkpoints/t/, "
           "delete /holdfast-data/" NS "/checkpoints/t/ "
           "(it is over, and its checkpoints were kept for long enough)\n");
    ck_assert_str_eq(get("checkpoints/t/0000000000000000001"), "");
    ck_assert_str_eq(get("checkpoints/t/0000000000000000002"), "");
    ck_assert_str_ne(get("checkpoints/t2/0000000000000000001"), "");
    ck_assert(!has("tasks/t", "\"checkpoint\""));
    ck_assert(!has("tasks/t", "\"root\""));
    pass(7200000);
    expect("");
}
END_TEST

static void put_with_deadline(const char *key, const char *state)
{
    char json[400];

    (void)snprintf(json, sizeof json,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\",\"attempt\":1,"
                   "\"owner\":{\"agent\":\"a\",\"incarnation\":{\"createRevision\":"
                   "\"%lld\"}},\"deadline\":\"2026-09-21T14:14:11Z\"}",
                   state, (long long)life_of("a"));
    put(key, json);
}

START_TEST(somebody_is_told_once_of_a_task_that_is_late)
{
    /* The clock stands at 14:13:31, ten seconds after the engine began. */
    put_with_deadline("tasks/t", "in_progress");
    pass(39000);
    expect("");
    pass(2000);
    expect("alert task t: its deadline is over, and it is in_progress\n");
    pass(600000);
    expect("");
    put_with_deadline("tasks/u", "completed"); /* one that ended is not late */
    pass(2000);
    expect("");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tasks");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_task_is_recovered_three_times_and_then_a_person_is_asked);
    tcase_add_test(t, a_queued_task_without_a_recovery_is_promoted_at_once);
    tcase_add_test(t, who_acknowledges_and_does_not_start_loses_the_task_after_two_minutes);
    tcase_add_test(t, who_starts_keeps_it);
    tcase_add_test(t, what_another_past_completed_at_the_same_revision_is_not_reset);
    tcase_add_test(t, tasks_that_no_agent_comes_for_are_told_of_once_and_reviewed_after_a_day);
    tcase_add_test(t, a_task_that_is_reserved_for_nobody_who_comes_is_for_anyone);
    tcase_add_test(t, an_agent_with_two_tasks_loses_both_and_takes_one_along);
    tcase_add_test(t, an_owner_of_whom_nothing_else_is_known_loses_its_task);
    tcase_add_test(t, a_task_without_a_role_cannot_be_acted_on_and_is_told_of_once);
    tcase_add_loop_test(t, the_checkpoints_of_what_is_over_go_after_an_hour, 0, COUNT(CHAINS));
    tcase_add_test(t, somebody_is_told_once_of_a_task_that_is_late);
    return run("core/engine tasks", t);
}
