/* Who crashes with its task is started again at once, where the leader gave leave; and by order
 * wherever anything is not as simple as that. */
#include "unit/node_fixture.h"

static int64_t life_of_a(void)
{
    return find(ROOT "agents/a/live")->create_rev;
}

static void give_leave(int64_t life)
{
    char value[100];

    (void)snprintf(value, sizeof value, "{\"state\":\"healthy\",\"heirOf\":\"%lld\"}",
                   (long long)life);
    put("health/a", value);
}

/* a is at t, has one checkpoint of its own, and leave. */
static void at_work(void)
{
    running();
    put_pending("t", "");
    ask("a", HF_ASK_CLAIM, NULL);
    ask("a", HF_ASK_START, "t");
    ask_checkpoint("t");
    news("a", HF_PROCESS_READY, 0, NULL);
    give_leave(life_of_a());
    ignore();
}

static void die(void)
{
    news("a", HF_PROCESS_ENDED, 1, NULL);
}

/* The keeper says so of what it was asked for last, when it says nothing by itself. */
static void is_made(void)
{
    w.keeper_is_off = false;
    w.processes[w.id_count - 1].state = MADE_HELD;
    news_of("a", w.ids[w.id_count - 1], HF_PROCESS_HELD, 0, NULL);
    run_node();
}

static int count_begun(void)
{
    int count = 0;

    for (const char *at = w.log; (at = strstr(at, "let go")) != NULL; at++)
        count++;
    return count;
}

START_TEST(who_crashes_with_leave_is_started_again_at_once_with_its_task)
{
    int64_t dead;
    char heir[60];

    at_work();
    dead = life_of_a();
    (void)snprintf(heir, sizeof heir, "\"heirOf\":\"%lld\"", (long long)dead);
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#2\nverify 1\nlet go a#2 as "));
    ck_assert_ptr_nonnull(strstr(w.log, " with t from 1\n"));
    ck_assert_int_gt(life_of_a(), dead);
    has("tasks/t", "\"state\":\"acknowledged\"");
    has("tasks/t", "\"attempt\":1");
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
    has("agents/a/exit", "\"kind\":\"crashed\"");
    has("agents/a/exit", heir);
    has("agents/a/exit", "\"task\":\"t\",\"done\":true");
}
END_TEST

START_TEST(the_end_says_that_an_heir_comes_before_it_has_come)
{
    at_work();
    w.keeper_is_off = true; /* nothing is made */
    die();
    ignore();
    has("agents/a/exit", "\"task\":\"t\",\"done\":false");
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

/* Everything else is for the leader to order, and the end says nothing of an heir. */

static void has_no_leave(void)
{
    put("health/a", "{\"state\":\"healthy\"}");
}

static void has_leave_of_a_life_before(void)
{
    give_leave(life_of_a() - 1);
}

static void was_restarted(void)
{
    char value[100];

    (void)snprintf(value, sizeof value,
                   "{\"state\":\"healthy\",\"restarts\":1,\"heirOf\":\"%lld\"}",
                   (long long)life_of_a());
    put("health/a", value);
}

static void has_another_task(void)
{
    put_owned("u", "in_progress", LEASE, life_of_a());
    put("tasks/t", TASK_OF("t", "completed", ""));
    ask("a", HF_ASK_COMPLETE, "t");
}

static void host_is_cordoned(void)
{
    put("hosts/h/record", "{\"cordoned\":true}");
}

static void start_is_ordered(void)
{
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
}

static void nobody_leads(void)
{
    erase("controller/leader");
}

static void is_leaving(void)
{
    ask("a", HF_ASK_LEAVE, NULL);
}

static void (*const NOT_SIMPLE[])(void) = {
    has_no_leave,     has_leave_of_a_life_before, was_restarted, has_another_task,
    host_is_cordoned, start_is_ordered,           nobody_leads,  is_leaving,
};

START_TEST(what_is_not_simple_is_for_the_leader_to_order)
{
    at_work();
    NOT_SIMPLE[_i]();
    ignore();
    die();
    ignore();
    ck_assert_ptr_null(strstr(get("agents/a/exit"), "succession"));
}
END_TEST

START_TEST(who_finished_has_no_heir)
{
    at_work();
    news("a", HF_PROCESS_ENDED, 0, NULL);
    ignore();
    has("agents/a/exit", "\"kind\":\"finished\"");
    ck_assert_ptr_null(strstr(get("agents/a/exit"), "succession"));
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

/* The task was recovered before, so somebody counts that. */
START_TEST(a_task_that_was_recovered_goes_by_order)
{
    running();
    put_pending("t", ",\"attempt\":1");
    ask("a", HF_ASK_CLAIM, NULL);
    ask("a", HF_ASK_START, "t");
    give_leave(life_of_a());
    ignore();
    die();
    ignore();
    ck_assert_ptr_null(strstr(get("agents/a/exit"), "succession"));
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

/* While the end is written anything may change; then the start is refused, and an order served.
 */

static void leave_is_gone(void)
{
    put("health/a", "{\"state\":\"failing\"}");
}

static void task_is_cancelled(void)
{
    put("tasks/t", TASK_OF("t", "cancelled", ""));
}

static void a_person_stops_it(void)
{
    put("wanted/a", "{\"state\":\"stopped\"}");
}

static void (*const BETWEEN[])(void) = { leave_is_gone, task_is_cancelled, a_person_stops_it };

START_TEST(what_changes_between_end_and_start_prevents_it)
{
    at_work();
    w.keeper_is_off = true;
    die();
    run_node();
    BETWEEN[_i]();
    is_made();
    wait(2000);
    ck_assert_ptr_null(strstr(w.log, "let go"));
    ck_assert_ptr_null(get("agents/a/live"));
    ck_assert_ptr_nonnull(strstr(get("agents/a/exit"), "\"done\":false"));
}
END_TEST

START_TEST(an_order_is_served_where_the_heir_was_refused)
{
    at_work();
    w.keeper_is_off = true;
    die();
    run_node();
    put("health/a", "{\"state\":\"failing\",\"restarts\":1,\"commandHost\":\"h\"}");
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":1,\"reservedFor\":\"a\""));
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\"}");
    is_made();
    wait(2000);
    ck_assert_ptr_nonnull(strstr(w.log, "with t"));
    has("tasks/t", "\"attempt\":1");
}
END_TEST

/* The heir dies as well before anybody has counted its start: its end still tells of it. */
START_TEST(the_end_of_an_heir_tells_of_a_start_that_is_not_counted)
{
    int64_t first;
    char heir[60];

    at_work();
    first = life_of_a();
    die();
    ignore();
    news("a", HF_PROCESS_READY, 0, NULL);
    die();
    ignore();
    (void)snprintf(heir, sizeof heir, "\"heirOf\":\"%lld\",\"task\":\"t\",\"done\":true",
                   (long long)first);
    has("agents/a/exit", heir);
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

/* The start is sent behind the end, before that is answered. */
START_TEST(the_heir_is_sent_while_the_end_is_under_way)
{
    at_work();
    w.quiet = false;
    w.fate = WITHHOLD; /* the end */
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "mod(health/a)"));
    ck_assert_ptr_nonnull(strstr(w.log, "put agents/a/live, put agents/a/exit, put tasks/t"));
    ck_assert_ptr_null(strstr(w.log, "let go"));
    arrive(); /* it was refused, because the end had not come */
    run_node();
    wait(100);
    ck_assert_ptr_nonnull(strstr(w.log, " with t from 1\n"));
    has("tasks/t", "\"attempt\":1");
    ck_assert_int_eq(count_begun(), 1);
}
END_TEST

/* Who leads does not wait for so long. */
START_TEST(an_end_that_takes_too_long_has_no_heir)
{
    at_work();
    w.quiet = false;
    w.fate = WITHHOLD; /* the end, and so the start is refused */
    die();
    run_node();
    wait(1500);
    ck_assert_ptr_nonnull(strstr(w.log, "discard a#2\n"));
    arrive();
    wait(100);
    ck_assert_int_eq(count_begun(), 0);
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

/* Whatever becomes of the answer: the process that etcd shows, or none. */
START_TEST(an_heir_whose_start_has_no_outcome_begins_once)
{
    at_work();
    w.spared = 1; /* the end */
    w.fate = _i == 0 ? LOSE : LOSE_DONE;
    die();
    run_node();
    wait(3000);
    ck_assert_int_eq(count_begun(), _i); /* else it is for the leader to order */
    if (_i == 1)
        ck_assert_ptr_nonnull(strstr(w.log, " with t from 1\n"));
    has("tasks/t", _i == 1 ? "\"attempt\":1" : "\"attempt\":0");
    ck_assert_int_eq(get("agents/a/live") != NULL, _i == 1);
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, who_crashes_with_leave_is_started_again_at_once_with_its_task);
    tcase_add_test(t, the_end_says_that_an_heir_comes_before_it_has_come);
    tcase_add_loop_test(t, what_is_not_simple_is_for_the_leader_to_order, 0, COUNT(NOT_SIMPLE));
    tcase_add_test(t, who_finished_has_no_heir);
    tcase_add_test(t, a_task_that_was_recovered_goes_by_order);
    tcase_add_loop_test(t, what_changes_between_end_and_start_prevents_it, 0, COUNT(BETWEEN));
    tcase_add_test(t, the_heir_is_sent_while_the_end_is_under_way);
    tcase_add_test(t, an_end_that_takes_too_long_has_no_heir);
    tcase_add_loop_test(t, an_heir_whose_start_has_no_outcome_begins_once, 0, 2);
    tcase_add_test(t, an_order_is_served_where_the_heir_was_refused);
    tcase_add_test(t, the_end_of_an_heir_tells_of_a_start_that_is_not_counted);
}

int main(void)
{
    return run_stories("core/node_heir", add_stories);
}
