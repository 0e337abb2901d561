/* How many tasks of a role run at once. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

#define TOO_MANY " (2 of 2 tasks of role r are running)\n"
#define HAS_ROOM " (fewer tasks of its role run than may)\n"
#define FULL(t)  "task " t ": put tasks/" t ", delete pending/r/" t TOO_MANY
#define ROOM(t)  "task " t ": put tasks/" t ", put pending/r/" t HAS_ROOM

/* Two may run. */
static void setup_limit(void)
{
    setup();
    policy.task.running_max = 2;
    begin_engine();
    lead();
    ignore();
}

static void task_is(const char *task, const char *state, int priority, const char *more)
{
    char key[300], json[400];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"%s\",\"priority\":%d%s}", task,
                   state, priority, more);
    put(key, json);
}

/* A task of another role. */
static void task_of(const char *task, const char *role, const char *state)
{
    char key[300], json[400];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json, "{\"id\":\"%s\",\"role\":\"%s\",\"state\":\"%s\"}", task,
                   role, state);
    put(key, json);
}

static bool is_in(const char *task, const char *state)
{
    char key[300], text[60];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(text, sizeof text, "\"state\":\"%s\"", state);
    return has(key, text);
}

static size_t count_in(const char *state)
{
    char text[60];
    size_t count = 0;

    (void)snprintf(text, sizeof text, "\"state\":\"%s\"", state);
    for (size_t i = 0; i < COUNT(pairs); i++)
        count += pairs[i].value != NULL && strstr(pairs[i].key, "/tasks/") != NULL &&
                 strstr(pairs[i].value, text) != NULL;
    return count;
}

START_TEST(the_newest_that_nobody_has_waits)
{
    task_waits("one", "pending");
    task_waits("two", "pending");
    expect("");
    task_waits("three", "pending");
    expect(FULL("three"));
    ck_assert(has("tasks/three", "\"reason\":\"2 of 2 tasks of role r are running\""));
    ck_assert(has("tasks/three", "\"what\":\"it may be taken when fewer tasks of its role"));
    pass(86400000);
    expect("");
}
END_TEST

START_TEST(the_least_urgent_waits_and_the_most_urgent_is_next)
{
    task_is("low", "pending", -1, "");
    task_is("high", "pending", 5, "");
    task_is("mid", "pending", 0, "");
    expect(FULL("low"));
    task_is("mid2", "pending", 0, "");
    expect(FULL("mid2"));
    task_is("high", "completed", 5, "");
    expect(ROOM("mid2"));
    ck_assert(!has("tasks/mid2", "are running"));
    ck_assert(!has("tasks/mid2", "\"what\""));
    task_is("mid", "cancelled", 0, "");
    expect(ROOM("low"));
}
END_TEST

START_TEST(what_was_submitted_queued_waits_for_room)
{
    task_waits("one", "queued");
    expect(ROOM("one"));
    task_is_owned("two", "in_progress", "a");
    task_waits("three", "queued");
    task_is("four", "queued", 1, "");
    expect("");
    erase("tasks/two");
    expect(ROOM("four"));
    task_is("one", "failed", 0, "");
    expect(ROOM("three"));
}
END_TEST

START_TEST(what_somebody_has_or_is_being_recovered_is_left_alone)
{
    task_is_owned("one", "acknowledged", "a");
    task_is_owned("two", "in_progress", "b");
    task_is("kept", "pending", 0, ",\"reservedFor\":\"a\",\"attempt\":1");
    task_is("again", "pending", 0, ",\"attempt\":1");
    expect("");
    task_waits("new", "pending");
    run_engine();
    ck_assert(is_in("new", "queued"));
    ck_assert(is_in("kept", "pending") && is_in("again", "pending"));
}
END_TEST

START_TEST(a_lower_limit_lets_those_that_run_finish)
{
    task_is_owned("one", "in_progress", "a");
    task_is_owned("two", "in_progress", "b");
    task_waits("three", "queued");
    expect("");
    policy.task.running_max = 1;
    begin_engine();
    lead();
    expect("");
    task_is("one", "completed", 0, "");
    expect("");
    task_is("two", "completed", 0, "");
    expect(ROOM("three"));
}
END_TEST

START_TEST(without_a_limit_all_run)
{
    for (int i = 0; i < 5; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "t%d", i);
        task_waits(name, i % 2 == 0 ? "queued" : "pending");
    }
    policy.task.running_max = 0;
    begin_engine();
    lead();
    run_engine();
    ck_assert_uint_eq(count_in("pending"), 5);
}
END_TEST

START_TEST(a_role_may_have_a_limit_of_its_own)
{
    static const struct hf_task_limit LIMITS[] = { { "r", 1 } };

    policy.task.running_max = 0;
    policy.task.limits = LIMITS;
    policy.task.limit_count = COUNT(LIMITS);
    begin_engine();
    lead();
    task_waits("one", "pending");
    task_waits("two", "pending");
    task_of("x", "s", "queued");
    task_of("y", "s", "queued");
    run_engine();
    ck_assert(is_in("one", "pending") && is_in("two", "queued"));
    ck_assert(is_in("x", "pending") && is_in("y", "pending"));
}
END_TEST

/* Whoever begins with nothing decides as one that saw it all, in whatever order it is told. */
START_TEST(a_new_leader_promotes_the_same)
{
    enum { MANY = 40 };

    tells = false;
    for (int i = 0; i < MANY; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "t%02d", (i * 17 + 5 * _i) % MANY);
        task_is(name, i % 3 == 0 ? "pending" : "queued", i % 4, "");
    }
    tells = true;
    begin_engine();
    lead();
    run_engine();
    ck_assert_uint_eq(count_in("pending"), 2);
    for (int i = 0; i < MANY; i++) {
        char name[16];
        /* Of those that were pending, the two that are the most urgent and the oldest. */
        bool stays = i == 3 || i == 15;

        (void)snprintf(name, sizeof name, "t%02d", (i * 17 + 5 * _i) % MANY);
        ck_assert_msg(is_in(name, stays ? "pending" : "queued"), "%d %s", i, name);
    }
}
END_TEST

START_TEST(nobody_is_promoted_twice_into_the_same_room)
{
    task_is_owned("one", "in_progress", "a");
    answers = false;
    task_waits("two", "queued");
    task_waits("three", "queued");
    expect(ROOM("two"));
    pass(200);
    expect("");
    answers = true;
    answer(&kept, execute(&kept.plan) ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED);
    expect("");
    ck_assert(is_in("three", "queued"));
}
END_TEST

START_TEST(after_an_unknown_outcome_it_is_decided_anew)
{
    answers = false;
    task_waits("one", "queued");
    expect(ROOM("one"));
    answer(&kept, HF_OUTCOME_UNKNOWN);
    answers = true;
    pass(999);
    expect("");
    pass(1);
    expect(ROOM("one"));
}
END_TEST

START_TEST(who_is_claimed_meanwhile_is_not_demoted)
{
    task_waits("one", "pending");
    task_waits("two", "pending");
    expect("");
    answers = false;
    task_waits("three", "pending");
    expect(FULL("three"));
    tells = false;
    task_is_owned("three", "acknowledged", "a");
    tells = true;
    answers = true;
    answer(&kept, execute(&kept.plan) ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED);
    ck_assert(is_in("three", "acknowledged"));
    tell_pair(full_key("tasks/three"), find_pair(full_key("tasks/three")));
    expect(FULL("two"));
}
END_TEST

START_TEST(a_backoff_is_waited_for_and_then_the_limit)
{
    task_is_owned("one", "in_progress", "a");
    task_is_owned("two", "in_progress", "b");
    put("recoveries/t", "{\"task\":\"t\",\"attempts\":2,\"nextAt\":\"2100-01-01T00:00:00Z\"}");
    task_is("t", "queued", 9, ",\"attempt\":2");
    task_waits("u", "queued");
    expect("");
    erase("tasks/one");
    expect(ROOM("u"));
    put("recoveries/t", "{\"task\":\"t\",\"attempts\":2}");
    expect("");
    erase("tasks/two");
    expect(ROOM("t"));
}
END_TEST

START_TEST(what_cannot_be_read_does_not_stand_in_the_way)
{
    struct hf_event bad = { .kind = HF_EVENT_BAD,
                            .bad = { .key = { HF_KEY_TASK, .name = "bad" },
                                     .seen = { .mod_rev = ++rev },
                                     .why = "no JSON" } };

    task_is_owned("one", "in_progress", "a");
    task_is_owned("two", "in_progress", "b");
    task_is("bad", "queued", 9, "");
    task_waits("good", "queued");
    expect("");
    ck_assert_int_eq(step(&bad), HF_OK);
    ignore();
    erase("tasks/one");
    expect(ROOM("good"));
}
END_TEST

START_TEST(what_nothing_can_be_made_of_does_not_stand_in_the_way)
{
    static const char ODD[] =
        "{\"id\":\"NO NAME\",\"role\":\"r\",\"priority\":9,\"state\":\"%s\"}";
    char json[200];

    task_is_owned("one", "in_progress", "a");
    task_is_owned("two", "in_progress", "b");
    task_waits("good", "queued");
    (void)snprintf(json, sizeof json, ODD, "queued");
    put("tasks/odd", json);
    expect("");
    erase("tasks/one");
    run_engine();
    ck_assert_ptr_nonnull(strstr(said.data, "alert task odd: nothing can be done about it"));
    ck_assert(is_in("good", "pending"));
    (void)snprintf(json, sizeof json, ODD, "pending");
    put("tasks/odd", json);
    run_engine();
    ck_assert(is_in("good", "queued"));
}
END_TEST

/* The last task of a role that has no agents takes the role along. */
START_TEST(a_role_goes_with_its_last_task)
{
    for (int i = 0; i < 3; i++) {
        task_of("x", "s", i == 0 ? "pending" : "queued");
        ignore();
        if (i < 2)
            erase("tasks/x");
        else
            task_of("x", "other", "pending");
        ignore();
        ck_assert_ptr_null(hf_fleet_get_role(hf_engine_get_fleet(engine), "s"));
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("limit");

    tcase_add_checked_fixture(t, setup_limit, teardown);
    tcase_add_test(t, the_newest_that_nobody_has_waits);
    tcase_add_test(t, the_least_urgent_waits_and_the_most_urgent_is_next);
    tcase_add_test(t, what_was_submitted_queued_waits_for_room);
    tcase_add_test(t, what_somebody_has_or_is_being_recovered_is_left_alone);
    tcase_add_test(t, a_lower_limit_lets_those_that_run_finish);
    tcase_add_test(t, without_a_limit_all_run);
    tcase_add_test(t, a_role_may_have_a_limit_of_its_own);
    tcase_add_loop_test(t, a_new_leader_promotes_the_same, 0, 4);
    tcase_add_test(t, nobody_is_promoted_twice_into_the_same_room);
    tcase_add_test(t, after_an_unknown_outcome_it_is_decided_anew);
    tcase_add_test(t, who_is_claimed_meanwhile_is_not_demoted);
    tcase_add_test(t, a_backoff_is_waited_for_and_then_the_limit);
    tcase_add_test(t, what_cannot_be_read_does_not_stand_in_the_way);
    tcase_add_test(t, what_nothing_can_be_made_of_does_not_stand_in_the_way);
    tcase_add_test(t, a_role_goes_with_its_last_task);
    return run("core/engine_limit", t);
}
