/* An agent that stands still with a task: it is asked, a person is told, it is ended. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S };

#define ASKED                                                                                  \
    "agent a: put health/a (its task should be done, does not move, and nothing that it says " \
    "explains it (task t))\n"
#define ANSWERED                                                                               \
    "agent a: put health/a (it was asked why its task did not move, and said or did "          \
    "something since (task t))\n"
#define ALONE                                                                                  \
    "it was asked why its task does not move, and did not answer, though its heartbeats come"
#define ENDED                                                                                  \
    "agent a: put health/a (it was asked why its task does not move, did not answer, and its " \
    "heartbeats have stopped (task t))\n"

static int said_at; /* of the last report: another number, another word */

/* The task, which should be done when ten minutes have passed. */
static void work_at(const char *task, int64_t checkpoint)
{
    char key[100], json[500];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%lld\"}},"
                   "\"attempt\":1,\"expectedCompletion\":\"2026-09-21T14:23:20Z\","
                   "\"checkpoint\":{\"seq\":\"%lld\"}}",
                   task, (long long)life_of("a"), (long long)checkpoint);
    put(key, json);
}

static void report(const char *more)
{
    char json[500];

    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"saidAt\":"
                   "\"2026-01-01T00:00:%02dZ\"%s}",
                   (long long)life_of("a"), said_at, more);
    put("agents/a/report", json);
}

static void beat(void)
{
    report(",\"heartbeatAt\":\"2026-01-01T00:00:00Z\"");
}

static void promise(void)
{
    erase("agents/a/live");
    put_live("agents/a/live",
             "{\"host\":\"h1\",\"instanceId\":\"one\",\"ttl\":\"15s\",\"cadences\":{"
             "\"heartbeat\":\"30s\"}}",
             0x1);
    run_engine();
}

/* It works, and sends heartbeats; nothing else is said or done from here on. */
static void stand_still(void)
{
    said_at = 1;
    promise();
    work_at("t", 1);
    beat();
    run_engine();
    ignore();
}

static void be_asked(void)
{
    stand_still();
    pass(30 * MIN);
    expect(ASKED);
}

START_TEST(it_is_asked_after_30_min_and_once)
{
    stand_still();
    pass(30 * MIN - 1);
    expect("");
    pass(1);
    expect(ASKED);
    ck_assert(has("health/a", "\"state\":\"stuck\""));
    ck_assert(has("health/a", "\"task\":\"t\""));
    ck_assert(has("health/a", "task t should be done by now"));
    pass(5 * MIN - 1);
    expect("");
}
END_TEST

START_TEST(what_it_says_and_what_it_does_counts_as_a_step)
{
    stand_still();
    pass(20 * MIN);
    said_at = 2;
    beat();
    pass(20 * MIN);
    work_at("t", 2);
    pass(30 * MIN - 1);
    expect("");
    pass(1);
    expect(ASKED);
}
END_TEST

START_TEST(heartbeats_alone_are_no_step)
{
    stand_still();
    for (int i = 0; i < 29; i++) {
        beat();
        pass(1 * MIN);
    }
    expect("");
    beat();
    pass(1 * MIN);
    expect(ASKED);
}
END_TEST

START_TEST(what_has_time_is_not_asked_about)
{
    said_at = 1;
    promise();
    task_is_owned("t", "in_progress", "a"); /* nobody said when it should be done */
    beat();
    pass(600 * MIN);
    ck_assert(!has("health/a", "inquiry\":{"));
}
END_TEST

static const struct {
    const char *state;
    bool explains;
} STATES[] = {
    { ",\"state\":\"ready\"", false },
    { ",\"state\":\"busy\"", false },
    { ",\"state\":\"busy\",\"until\":\"2026-09-21T20:00:00Z\"", true },
    { ",\"state\":\"busy\",\"until\":\"2026-09-21T14:20:00Z\"", false },
    { ",\"state\":\"waiting\"", true },
    { ",\"state\":\"parked\"", true },
    { ",\"state\":\"parked\",\"until\":\"2026-09-21T14:20:00Z\"", false },
    { ",\"state\":\"draining\"", true },
    { ",\"state\":99", false },
};

START_TEST(what_it_announced_explains_it)
{
    stand_still();
    report(STATES[_i].state);
    pass(40 * MIN);
    ck_assert_int_eq(has("health/a", "\"state\":\"stuck\""), !STATES[_i].explains);
}
END_TEST

START_TEST(what_it_announced_may_end_sooner_than_it_said)
{
    stand_still();
    report(",\"state\":\"waiting\"");
    pass(70 * MIN);
    expect("");
    said_at = 2;
    report(",\"state\":\"ready\"");
    pass(60 * MIN); /* nobody is woken by a report; it is found out within half an hour */
    ck_assert_ptr_eq(strstr(said.data, ASKED), said.data);
}
END_TEST

START_TEST(a_word_answers_and_it_is_asked_again_when_it_stands_still_again)
{
    be_asked();
    said_at = 2;
    beat();
    expect(ANSWERED);
    ck_assert(has("health/a", "\"state\":\"healthy\""));
    ck_assert(has("health/a", "\"answered\":true"));
    pass(30 * MIN - 1);
    expect("");
    pass(1);
    expect(ASKED);
}
END_TEST

START_TEST(a_checkpoint_answers)
{
    be_asked();
    work_at("t", 2);
    expect(ANSWERED);
}
END_TEST

START_TEST(the_end_of_the_task_answers)
{
    be_asked();
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"}");
    expect(ANSWERED);
}
END_TEST

START_TEST(who_does_not_answer_and_is_not_heard_of_is_ended)
{
    be_asked();
    shows_guards = true;
    pass(5 * MIN - 1);
    expect("");
    pass(1);
    ck_assert_ptr_nonnull(strstr(said.data, "mod(agents/a/report)"));
    ck_assert_ptr_nonnull(strstr(said.data, "mod(tasks/t)"));
    ck_assert_ptr_nonnull(strstr(said.data, "mod(health/a)"));
    ck_assert_ptr_nonnull(strstr(said.data, "lease(controller/leader)"));
    ck_assert(has("health/a", "\"state\":\"failing\""));
    shows_guards = false;
    ignore();
    pass(60 * MIN); /* once */
    expect("");
    agent_ends("a", "terminated");
    run_engine();
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
}
END_TEST

START_TEST(what_it_says_at_the_last_moment_saves_it)
{
    be_asked();
    pass(5 * MIN - 1);
    tells = false; /* it is written, and the leader does not know yet */
    said_at = 2;
    beat();
    pass(1);
    expect(ENDED); /* is refused */
    ck_assert(has("health/a", "\"state\":\"stuck\""));
    ck_assert(has("health/a", "\"endUpto\":\"0\""));
}
END_TEST

/* Nobody can report while etcd takes nothing; and then it takes a moment until they do. */
START_TEST(while_etcd_has_no_space_nobody_is_ended_for_being_silent)
{
    struct hf_event full = { .kind = HF_EVENT_CLUSTER, .cluster = { .no_space = true } };

    be_asked();
    pass(4 * MIN);
    ck_assert_int_eq(step(&full), HF_OK);
    pass(5 * MIN - 1);
    ck_assert(has("health/a", "\"state\":\"stuck\""));
    pass(1);
    ck_assert(has("health/a", "\"state\":\"failing\""));
}
END_TEST

START_TEST(while_its_heartbeats_come_a_person_is_told_once)
{
    be_asked();
    pass(4 * MIN);
    beat();
    pass(1 * MIN);
    expect("alert agent a: " ALONE "\nagent a: put health/a (" ALONE " (task t))\n");
    ck_assert(has("health/a", "\"told\":true"));
    for (int i = 0; i < 30; i++) {
        beat();
        pass(1 * MIN);
    }
    expect("");
    pass(4 * MIN - 1);
    expect("");
    pass(1); /* and then they stop */
    expect(ENDED);
}
END_TEST

START_TEST(who_never_sent_heartbeats_is_told_of_and_not_ended)
{
    said_at = 1;
    promise();
    work_at("t", 1);
    pass(30 * MIN);
    expect(ASKED);
    pass(5 * MIN);
    ck_assert_ptr_nonnull(strstr(said.data, "alert agent a: "));
    ignore();
    pass(600 * MIN);
    expect("");
}
END_TEST

START_TEST(another_leader_neither_asks_again_nor_forgets)
{
    be_asked();
    pass(3 * MIN);
    begin_engine();
    lead();
    pass(2 * MIN);
    expect(""); /* it has not listened for long enough to say that nothing comes */
    pass(3 * MIN);
    expect(ENDED);
}
END_TEST

START_TEST(another_leader_does_not_tell_the_person_again)
{
    be_asked();
    pass(4 * MIN);
    beat();
    pass(1 * MIN);
    ignore();
    begin_engine();
    lead();
    for (int i = 0; i < 10; i++) {
        beat();
        pass(1 * MIN);
    }
    expect("");
    said_at = 2;
    beat();
    expect(ANSWERED);
}
END_TEST

START_TEST(another_life_was_not_asked)
{
    be_asked();
    agent_ends("a", "crashed");
    pass(1000);
    host_serves("h1", "a", 0x1, "two", NULL);
    pass(60 * MIN);
    ck_assert(!has("health/a", "\"state\":\"stuck\""));
    ck_assert(!has("health/a", "\"state\":\"failing\""));
}
END_TEST

/* An earlier version says nothing of words, and passes no question on. */
START_TEST(nothing_is_held_against_an_agent_whose_agentd_does_not_know_of_it)
{
    char json[100];

    said_at = 1;
    promise();
    work_at("t", 1);
    (void)snprintf(json, sizeof json, "{\"incarnation\":{\"createRevision\":\"%lld\"}}",
                   (long long)life_of("a"));
    put("agents/a/report", json);
    run_engine();
    ignore();
    pass(600 * MIN);
    expect("");
    beat(); /* it was upgraded */
    pass(60 * MIN);
    ck_assert_ptr_eq(strstr(said.data, ASKED), said.data);
}
END_TEST

/* Though it never said anything. */
START_TEST(a_receipt_is_no_answer)
{
    char json[300];

    promise();
    work_at("t", 1);
    run_engine();
    ignore();
    pass(30 * MIN);
    expect(ASKED);
    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"nudge\":{\"id\":\"q\","
                   "\"delivered\":{\"by\":\"stdin\"},\"readAt\":\"2026-01-01T00:00:00Z\"}}",
                   (long long)life_of("a"));
    put("agents/a/report", json);
    pass(5 * MIN - 1);
    expect("");
    ck_assert(has("health/a", "\"answered\":false"));
}
END_TEST

START_TEST(who_begins_with_another_task_moves_and_of_two_the_late_one_is_asked_about)
{
    stand_still();
    pass(10 * MIN);
    task_is_owned("u", "in_progress", "a"); /* nobody said when it should be done */
    pass(30 * MIN - 1);
    expect("");
    pass(1);
    expect(ASKED);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stall");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, it_is_asked_after_30_min_and_once);
    tcase_add_test(t, what_it_says_and_what_it_does_counts_as_a_step);
    tcase_add_test(t, heartbeats_alone_are_no_step);
    tcase_add_test(t, what_has_time_is_not_asked_about);
    tcase_add_loop_test(t, what_it_announced_explains_it, 0, COUNT(STATES));
    tcase_add_test(t, what_it_announced_may_end_sooner_than_it_said);
    tcase_add_test(t, a_word_answers_and_it_is_asked_again_when_it_stands_still_again);
    tcase_add_test(t, a_checkpoint_answers);
    tcase_add_test(t, the_end_of_the_task_answers);
    tcase_add_test(t, who_does_not_answer_and_is_not_heard_of_is_ended);
    tcase_add_test(t, what_it_says_at_the_last_moment_saves_it);
    tcase_add_test(t, while_etcd_has_no_space_nobody_is_ended_for_being_silent);
    tcase_add_test(t, while_its_heartbeats_come_a_person_is_told_once);
    tcase_add_test(t, who_never_sent_heartbeats_is_told_of_and_not_ended);
    tcase_add_test(t, another_leader_neither_asks_again_nor_forgets);
    tcase_add_test(t, another_leader_does_not_tell_the_person_again);
    tcase_add_test(t, another_life_was_not_asked);
    tcase_add_test(t, nothing_is_held_against_an_agent_whose_agentd_does_not_know_of_it);
    tcase_add_test(t, a_receipt_is_no_answer);
    tcase_add_test(t,
                   who_begins_with_another_task_moves_and_of_two_the_late_one_is_asked_about);
    return run("core/engine stall", t);
}
