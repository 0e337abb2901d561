/* What a host does for a start before it is ordered, and that nothing old is taken for new. */
#include "unit/node_fixture.h"

#define RESUME "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\"}"

/* a is at t, which has two checkpoints. */
static void at_work(void)
{
    running();
    put_checkpoints(2);
    put_pending("t", ",\"checkpoint\":{\"seq\":\"2\"}");
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    has("tasks/t", "\"state\":\"acknowledged\"");
}

static void die(void)
{
    news("a", HF_PROCESS_ENDED, 1, NULL);
}

/* What the leader does about it. */
static void order(int64_t head)
{
    char value[300];

    (void)snprintf(
        value, sizeof value,
        TASK_OF("t", "pending", ",\"reservedFor\":\"a\",\"checkpoint\":{\"seq\":\"%lld\"}"),
        (long long)head);
    put("tasks/t", value);
    put("commands/h/a", RESUME);
}

START_TEST(a_successor_is_made_and_its_checkpoint_looked_at_before_its_start_is_ordered)
{
    at_work();
    w.quiet = false;
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#2\nread checkpoints/t/\nverify 2\n"));
    ck_assert_ptr_null(get("agents/a/live"));
    w.log[0] = '\0';
    w.quiet = true;
    run_node();
    w.quiet = false;
    order(2);
    run_node();
    ck_assert_msg(strncmp(w.log, "read recoveries/t\nread tasks/t\nif ", 34) == 0, "%s", w.log);
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 2\n"));
    ck_assert_ptr_null(strstr(w.log, "verify"));
    ck_assert_ptr_null(strstr(w.log, "make"));
    has("tasks/t", "\"restored\":{\"seq\":\"2\"}");
}
END_TEST

/* a has committed the third checkpoint of t itself. */
static void has_kept(void)
{
    at_work();
    ask("a", HF_ASK_START, "t");
    ask_checkpoint("t");
    ignore();
    w.quiet = false;
}

START_TEST(what_the_dead_committed_last_is_not_read)
{
    has_kept();
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#2\nverify 3\n"));
    ck_assert_ptr_null(strstr(w.log, "read"));
    order(3);
    run_node();
    ck_assert_ptr_null(strstr(w.log, "read checkpoints"));
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 3\n"));
}
END_TEST

static void has_damage(void)
{
    w.verify_err = HF_ECORRUPT;
}

static void is_poison(void)
{
    put("recoveries/t",
        "{\"task\":\"t\",\"attempts\":2,\"outcomes\":["
        "{\"at\":\"2026-01-01T00:00:00Z\",\"checkpoint\":{\"seq\":\"3\"},\"result\":\"died\"},"
        "{\"at\":\"2026-01-01T00:01:00Z\",\"checkpoint\":{\"seq\":\"3\"},\"result\":\"died\"}]"
        "}");
}

static void was_submitted_anew(void)
{
    erase("tasks/t");
}

static void (*const NEED_THE_REST[])(void) = { has_damage, is_poison, was_submitted_anew };

START_TEST(the_rest_of_the_chain_is_read_when_it_is_needed)
{
    has_kept();
    NEED_THE_REST[_i]();
    die();
    run_node();
    order(3);
    run_node();
    ck_assert_msg(strstr(w.log, "read checkpoints/t/\nverify") != NULL, "%s", w.log);
    if (NEED_THE_REST[_i] == is_poison)
        has("tasks/t", "\"restored\":{\"seq\":\"2\"}");
}
END_TEST

/* Its chain is as complete as when the walk began. */
START_TEST(what_a_start_goes_along_does_not_grow_too_old_meanwhile)
{
    at_work();
    w.verify_err = HF_ECORRUPT;
    die();
    expect("make a#2\nverify 2\n");
    w.verify_hangs = true;
    order(2);
    expect("verify 2\n");
    wait(5000);
    verified(HF_ECORRUPT);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
    verified(HF_OK);
    run_node();
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
}
END_TEST

/* Everything waits for the end, and it for the same etcd. */
START_TEST(nothing_is_read_while_the_end_is_written)
{
    at_work();
    w.quiet = false;
    w.fate = WITHHOLD;
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#2\n"));
    ck_assert_ptr_null(strstr(w.log, "read"));
    w.log[0] = '\0';
    arrive();
    run_node();
    ck_assert_msg(strstr(w.log, "read checkpoints/t/\nverify 2\n") != NULL, "%s", w.log);
}
END_TEST

START_TEST(a_process_that_nobody_orders_is_discarded)
{
    at_work();
    die();
    expect("make a#2\nverify 2\n");
    wait(10000);
    expect("discard a#2\n");
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#3\nverify 2\nlet go a#3"));
}
END_TEST

/* While the end cannot be written nothing can be started either. */
START_TEST(a_process_that_waits_for_the_end_of_the_one_before_is_discarded_in_time)
{
    at_work();
    w.fate = FULL;
    die();
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "make a#2\n"));
    wait(2000);
    ck_assert_ptr_nonnull(strstr(w.log, "discard a#2\n"));
}
END_TEST

START_TEST(what_was_looked_at_too_long_ago_is_looked_at_again)
{
    at_work();
    w.keeper_is_off = true; /* it makes nothing, and so nothing is discarded */
    die();
    expect("make a#2\nverify 2\n");
    w.keeper_is_off = false;
    wait(5000);
    ignore();
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 2\n"));
}
END_TEST

START_TEST(a_chain_that_has_grown_since_is_read_again)
{
    at_work();
    die();
    expect("make a#2\nverify 2\n");
    put_checkpoints(3);
    order(3);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 3\n"));
    has("tasks/t", "\"restored\":{\"seq\":\"3\"}");
}
END_TEST

START_TEST(the_chain_of_a_task_that_was_submitted_anew_is_read_again)
{
    at_work();
    die();
    expect("make a#2\nverify 2\n");
    erase("tasks/t");
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 2\n"));
}
END_TEST

START_TEST(what_was_not_whole_is_looked_at_again)
{
    at_work();
    w.verify_err = HF_ECORRUPT;
    die();
    expect("make a#2\nverify 2\n");
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 2\nverify 1\n"));
}
END_TEST

START_TEST(poison_is_passed_over_though_it_was_found_to_be_whole)
{
    at_work();
    die();
    expect("make a#2\nverify 2\n");
    put("recoveries/t",
        "{\"task\":\"t\",\"attempts\":2,\"outcomes\":["
        "{\"at\":\"2026-01-01T00:00:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"},"
        "{\"at\":\"2026-01-01T00:01:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"}]"
        "}");
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
}
END_TEST

START_TEST(a_store_that_says_nothing_does_not_hold_up_another_start)
{
    at_work();
    w.verify_hangs = true;
    die();
    expect("make a#2\nverify 2\n");
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "let go a#2"));
}
END_TEST

START_TEST(what_could_not_be_made_ahead_is_made_when_it_is_ordered)
{
    at_work();
    w.make_err = HF_EIO;
    die();
    expect("make a#2\nverify 2\n");
    w.make_err = 0;
    order(2);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "let go a#3"));
}
END_TEST

static void has_restarted(void)
{
    put("health/a", "{\"state\":\"healthy\",\"restarts\":1}");
}

static void is_held(void)
{
    put("health/a", "{\"state\":\"failing\",\"held\":true}");
}

static void nobody_leads(void)
{
    erase("controller/leader");
}

static void is_in_jeopardy(void)
{
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
}

static void (*const UNLIKELY[])(void) = { has_restarted, is_held, nobody_leads,
                                          is_in_jeopardy };

START_TEST(no_process_is_made_for_an_order_that_is_not_likely)
{
    at_work();
    UNLIKELY[_i]();
    run_node();
    w.log[0] = '\0';
    die();
    run_node();
    ck_assert_ptr_null(strstr(w.log, "make"));
}
END_TEST

START_TEST(who_was_at_nothing_leaves_nothing_to_prepare)
{
    running();
    news("a", HF_PROCESS_READY, 0, NULL);
    die();
    expect("");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(
        t, a_successor_is_made_and_its_checkpoint_looked_at_before_its_start_is_ordered);
    tcase_add_test(t, what_the_dead_committed_last_is_not_read);
    tcase_add_loop_test(t, the_rest_of_the_chain_is_read_when_it_is_needed, 0,
                        COUNT(NEED_THE_REST));
    tcase_add_test(t, what_a_start_goes_along_does_not_grow_too_old_meanwhile);
    tcase_add_test(t, nothing_is_read_while_the_end_is_written);
    tcase_add_test(t, a_process_that_nobody_orders_is_discarded);
    tcase_add_test(t, a_process_that_waits_for_the_end_of_the_one_before_is_discarded_in_time);
    tcase_add_test(t, what_was_looked_at_too_long_ago_is_looked_at_again);
    tcase_add_test(t, a_chain_that_has_grown_since_is_read_again);
    tcase_add_test(t, the_chain_of_a_task_that_was_submitted_anew_is_read_again);
    tcase_add_test(t, what_was_not_whole_is_looked_at_again);
    tcase_add_test(t, poison_is_passed_over_though_it_was_found_to_be_whole);
    tcase_add_test(t, a_store_that_says_nothing_does_not_hold_up_another_start);
    tcase_add_test(t, what_could_not_be_made_ahead_is_made_when_it_is_ordered);
    tcase_add_loop_test(t, no_process_is_made_for_an_order_that_is_not_likely, 0,
                        COUNT(UNLIKELY));
    tcase_add_test(t, who_was_at_nothing_leaves_nothing_to_prepare);
}

int main(void)
{
    return run_stories("core/node_ahead", add_stories);
}
