/* Leave to start again without an order: who gets it, what is waited for, and that every start
 * that comes of it is counted before anything else. */
#include "base/str.h"
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static void task_is_new(const char *task, const char *agent)
{
    char key[300], json[400];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"%s\",\"incarnation\":{\"createRevision\":\"%lld\"}}}",
                   task, agent, (long long)life_of(agent));
    put(key, json);
}

static const char *leave_of(int64_t life)
{
    static char text[60];

    (void)snprintf(text, sizeof text, "\"heirOf\":\"%lld\"", (long long)life);
    return text;
}

/* Its agentd saw it crash, and says that an heir comes. */
static void a_crashes(void)
{
    char json[400];
    long long life = (long long)life_of("a");

    rev++;
    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"%lld\"},"
                   "\"evidence\":[{\"source\":\"waitpid\",\"text\":\"signal 11\"}],"
                   "\"succession\":{\"heirOf\":\"%lld\",\"task\":\"t\"}}",
                   life, life);
    store_pair(full_key("agents/a/exit"), json, strlen(json), 0);
    erase_pair(full_key("agents/a/live"));
}

/* And here it is. */
static void heir_comes(int64_t life)
{
    static const char LIVE[] = "{\"host\":\"h1\",\"instanceId\":\"three\",\"ttl\":\"15s\"}";
    static const char TASK[] = "{\"id\":\"t\",\"role\":\"r\",\"state\":\"acknowledged\","
                               "\"owner\":{\"agent\":\"a\",\"incarnation\":{}},\"attempt\":1,"
                               "\"inherited\":{\"incarnation\":\"1\"}}";
    char json[400];

    rev++;
    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"%lld\"},"
                   "\"evidence\":[{\"source\":\"waitpid\",\"text\":\"signal 11\"}],"
                   "\"succession\":{\"heirOf\":\"%lld\",\"task\":\"t\",\"done\":true}}",
                   (long long)life, (long long)life);
    store_pair(full_key("agents/a/live"), LIVE, sizeof LIVE - 1, 0x1);
    store_pair(full_key("agents/a/exit"), json, strlen(json), 0);
    store_pair(full_key("tasks/t"), TASK, sizeof TASK - 1, 0);
}

/* Entries of the audit trail of that kind. */
static size_t count_told(const char *kind)
{
    char text[60];
    size_t count = 0;

    (void)snprintf(text, sizeof text, "\"kind\":\"%s\"", kind);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        count += pairs[i].value != NULL && strstr(pairs[i].key, "/events/") != NULL &&
                 strstr(pairs[i].value, text) != NULL;
    return count;
}

static int64_t with_leave(void)
{
    int64_t life = life_of("a");

    task_is_new("t", "a");
    pass(1000);
    ignore();
    ck_assert(has("health/a", leave_of(life)));
    return life;
}

START_TEST(who_is_at_work_is_given_leave_once)
{
    task_is_new("t", "a");
    pass(999);
    expect("");
    pass(1);
    expect("agent a: put health/a "
           "(it may be succeeded at once, should it crash with its task)\n");
    ck_assert(has("health/a", "\"state\":\"healthy\""));
    ck_assert(has("health/a", leave_of(life_of("a"))));
    task_is_new("t", "a"); /* it moves */
    pass(60000);
    expect("");
}
END_TEST

/* Whom the leader would not start again at once, where it is. */

static void was_started(void)
{
    char json[300], at[40];

    (void)hf_format_time(WALL, at, sizeof at);
    (void)snprintf(json, sizeof json,
                   "{\"state\":\"healthy\",\"restarts\":1,\"startedAt\":[\"%s\"]}", at);
    put("health/a", json);
}

static void is_held(void)
{
    put("health/a", "{\"state\":\"healthy\",\"held\":true}");
}

static void is_stopped(void)
{
    put("wanted/a", "{\"state\":\"stopped\"}");
}

static void has_to_end(void)
{
    char json[100];

    (void)snprintf(json, sizeof json, "{\"state\":\"healthy\",\"endUpto\":\"%lld\"}",
                   (long long)life_of("a"));
    put("health/a", json);
}

static void is_never_restarted(void)
{
    put("agents/a/spec",
        "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\",\"restart\":\"never\"}");
}

static void is_started_by_others(void)
{
    put("agents/a/spec",
        "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\",\"starter\":\"external\"}");
}

static void has_many_tasks(void)
{
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\",\"maxTasks\":2}");
}

static void is_a_guest(void)
{
    put("agents/a/spec", "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h2\"}");
}

static void host_is_cordoned(void)
{
    put("hosts/h1/record", "{\"capacity\":100,\"launchers\":[\"w\"],\"cordoned\":true}");
}

static void was_recovered(void)
{
    put("recoveries/t", "{\"task\":\"t\",\"attempts\":1}");
}

static void has_another(void)
{
    task_is_new("u", "a");
}

static void (*const NO_LEAVE[])(void) = {
    was_started,          is_held,        is_stopped, has_to_end,       is_never_restarted,
    is_started_by_others, has_many_tasks, is_a_guest, host_is_cordoned, was_recovered,
    has_another,
};

START_TEST(who_would_not_be_started_again_at_once_has_no_leave)
{
    answers = false; /* what is told comes first */
    NO_LEAVE[_i]();
    answers = true;
    if (NO_LEAVE[_i] == has_another)
        put("health/a", "{\"state\":\"healthy\"}");
    task_is_new("t", "a");
    pass(2000);
    ignore();
    ck_assert(!has("health/a", leave_of(life_of("a"))));
}
END_TEST

START_TEST(an_heir_that_was_announced_is_waited_for)
{
    (void)with_leave();
    a_crashes();
    expect("");
    pass(999);
    expect("");
    ck_assert_str_eq(get("commands/h1/a"), "");
}
END_TEST

START_TEST(an_heir_that_does_not_come_is_ordered)
{
    (void)with_leave();
    a_crashes();
    pass(1000);
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
    ck_assert(has("tasks/t", "\"attempt\":1"));
    ck_assert(has("health/a", leave_of(0)));
    ck_assert(has("health/a", "\"restarts\":1"));
}
END_TEST

START_TEST(without_leave_nobody_is_waited_for)
{
    int64_t life = with_leave();

    put("health/a", "{\"state\":\"healthy\"}");
    (void)life;
    answers = true;
    a_crashes();
    run_engine();
    ck_assert_str_ne(get("commands/h1/a"), "");
}
END_TEST

/* As the reset and the order would have been. */
START_TEST(an_heir_is_counted)
{
    int64_t life = with_leave();

    a_crashes();
    expect("");
    heir_comes(life);
    expect(""); /* it has the machine to itself for a moment */
    pass(20);
    expect("agent a: put health/a, put recoveries/t (it crashed; its agentd started it again "
           "at once, by leave, and that is counted now)\n"
           "task t: put recoveries/t (somebody has it again)\n");
    ck_assert(has("health/a", "\"restarts\":1"));
    ck_assert(has("health/a", leave_of(0)));
    ck_assert(has("health/a", "\"state\":\"healthy\""));
    ck_assert(has("recoveries/t", "\"attempts\":1"));
    ck_assert(has("recoveries/t", "\"result\":\"ordered\""));
    ck_assert_uint_eq(count_told("ended"), 1);
    ck_assert_uint_eq(count_told("reset"), 1);
    ck_assert_uint_eq(count_told("succeeded"), 1);
    pass(60000);
    expect(""); /* once */
}
END_TEST

/* The second end is like any other: after a delay, and with the count of both. */
START_TEST(the_next_end_waits_as_if_the_first_start_had_been_ordered)
{
    int64_t life = with_leave();

    a_crashes();
    heir_comes(life);
    pass(20);
    ignore();
    agent_ends("a", "crashed");
    run_engine();
    ck_assert_str_eq(get("commands/h1/a"), "");
    pass(2000);
    run_engine();
    ck_assert_str_ne(get("commands/h1/a"), "");
    ck_assert(has("health/a", "\"restarts\":2"));
}
END_TEST

/* Its end tells of the start that nobody has counted. */
START_TEST(an_heir_that_is_gone_before_anybody_counts_is_counted_first)
{
    int64_t life = with_leave();
    char json[400];

    a_crashes();
    heir_comes(life);
    rev++;
    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"%lld\"},"
                   "\"succession\":{\"heirOf\":\"%lld\",\"task\":\"t\",\"done\":true}}",
                   (long long)life_of("a"), (long long)life);
    store_pair(full_key("agents/a/exit"), json, strlen(json), 0);
    erase_pair(full_key("agents/a/live"));
    run_engine();
    ck_assert_ptr_eq(strstr(said.data, "agent a: put health/a, put recoveries/t"), said.data);
    ck_assert(has("health/a", "\"restarts\":1"));
    ck_assert_str_eq(get("commands/h1/a"), "");
    pass(2000);
    run_engine();
    ck_assert(has("health/a", "\"restarts\":2"));
    ck_assert(has("recoveries/t", "\"attempts\":2"));
}
END_TEST

START_TEST(a_leader_that_begins_with_nothing_counts_it_as_well)
{
    int64_t life = with_leave();

    a_crashes();
    heir_comes(life);
    expire(0x1); /* nobody wrote down how the heir ended */
    begin_engine();
    lead();
    pass(30000);
    run_engine();
    ck_assert(has("health/a", leave_of(0)));
    ck_assert(has("health/a", "\"restarts\":1"));
    ck_assert(has("recoveries/t", "\"attempts\":2"));
    ck_assert_uint_eq(count_told("succeeded"), 1);
}
END_TEST

/* A person removes what tells of it; the task says how often it was recovered. */
START_TEST(what_was_recovered_is_known_when_its_owner_was_removed_uncounted)
{
    int64_t life = with_leave();

    a_crashes();
    heir_comes(life);
    rev++;
    erase_pair(full_key("agents/a/live"));
    erase_pair(full_key("agents/a/exit"));
    erase_pair(full_key("agents/a/spec"));
    erase_pair(full_key("health/a"));
    pass(30000);
    run_engine();
    ck_assert(has("recoveries/t", "\"attempts\":2"));
    ck_assert(has("tasks/t", "\"state\":\"queued\""));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("heirs");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_is_at_work_is_given_leave_once);
    tcase_add_loop_test(t, who_would_not_be_started_again_at_once_has_no_leave, 0,
                        COUNT(NO_LEAVE));
    tcase_add_test(t, an_heir_that_was_announced_is_waited_for);
    tcase_add_test(t, an_heir_that_does_not_come_is_ordered);
    tcase_add_test(t, without_leave_nobody_is_waited_for);
    tcase_add_test(t, an_heir_is_counted);
    tcase_add_test(t, the_next_end_waits_as_if_the_first_start_had_been_ordered);
    tcase_add_test(t, an_heir_that_is_gone_before_anybody_counts_is_counted_first);
    tcase_add_test(t, a_leader_that_begins_with_nothing_counts_it_as_well);
    tcase_add_test(t, what_was_recovered_is_known_when_its_owner_was_removed_uncounted);
    return run("core/engine_heir", t);
}
