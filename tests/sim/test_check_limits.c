/* The same for what is counted, and for who is started when. */
#include "sim/check_fixture.h"

#define MINUTE 60000

/* A start is ordered, and withdrawn. */
static void order(hf_ms later)
{
    world.now += later;
    put(&controller, NS "commands/h1/b", "{\"id\":\"x\",\"host\":\"h1\"}", 0);
    erase(&controller, NS "commands/h1/b");
}

/* First one that was never started, then one that is gone; each in time, then too early. */
START_TEST(i11_an_agent_that_is_removed_before_its_time)
{
    bool lived = _i % 2 != 0, early = _i >= 2;

    hfs_check_set_sweep_after(check, 10 * MINUTE);
    lead();
    world.now = 20 * MINUTE;
    put(&agentd, NS "agents/b/spec", "{\"role\":\"r\",\"transient\":true}", 0);
    if (lived) {
        world.now += 20 * MINUTE;
        put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
        erase(NULL, NS "agents/b/live");
    }
    world.now += 10 * MINUTE - early;
    erase(&controller, NS "agents/b/spec");
    if (early)
        expect("I11");
    else
        ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(an_agent_is_removed_by_one_that_was_not_told_of_its_life)
{
    hfs_check_set_sweep_after(check, 10 * MINUTE);
    lead();
    world.now = 20 * MINUTE;
    put(&agentd, NS "agents/b/spec", "{\"role\":\"r\",\"transient\":true}", 0);
    world.now += 20 * MINUTE;
    put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
    erase(NULL, NS "agents/b/live");
    controller.told_rev = 1;
    erase(&controller, NS "agents/b/spec");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i11_a_clock_that_is_fast)
{
    lead();
    world.now = 3000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:11Z\"}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now = 4000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:13Z\"}", 0);
    expect("I11");
}
END_TEST

START_TEST(i11_a_start_before_the_time_that_was_promised)
{
    lead();
    put(&controller, NS "health/b", "{\"nextStart\":\"2026-01-01T00:00:20Z\"}", 0);
    order(9999);
    expect("I11");
}
END_TEST

START_TEST(i11_starts_whose_delays_do_not_grow)
{
    lead();
    order(0);
    order(1000);
    order(2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    order(2000);
    expect("I11");
}
END_TEST

START_TEST(i11_starts_that_are_not_counted)
{
    lead();
    for (int i = 0; i < 10; i++)
        order(58000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    order(58000);
    expect("I11");
}
END_TEST

/* Its owner dies, and it is for anyone. */
static void recover_task(const char *task, int attempt, int64_t life)
{
    char text[300], key[100], index[100];

    (void)snprintf(key, sizeof key, NS "tasks/%s", task);
    (void)snprintf(index, sizeof index, NS "pending/r/%s", task);
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\",\"attempt\":%d,"
                   "\"opIds\":{\"controller\":\"x%lld\"}}",
                   task, attempt, (long long)life);
    erase(&agentd, NS "agents/a/live");
    put_two(&controller, key, text, index, "{}");
}

/* Somebody has it again. */
static int64_t live_again(const char *task)
{
    int64_t life;

    put(&agentd, NS "agents/a/live", LIVE_1, LEASE);
    life = hfs_etcd_get_store(etcd)->revision;
    claim_as(task, life);
    return life;
}

START_TEST(i11_a_recovery_whose_delay_does_not_grow)
{
    lead();
    recover_task("t", 1, 2);
    world.now += MINUTE;
    recover_task("t", 2, live_again("t"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now += MINUTE;
    recover_task("t", 3, live_again("t"));
    expect("I11");
}
END_TEST

START_TEST(i11_a_sixth_recovery_of_one_agent_within_the_hour)
{
    char task[8] = "u0";

    lead();
    recover_task("t", 1, 2);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_null(hfs_check_get_violation(check));
        world.now += 11 * MINUTE;
        task[1] = (char)('0' + i);
        submit(task);
        recover_task(task, 1, live_again(task));
    }
    expect("I11");
}
END_TEST

START_TEST(i11_what_was_counted_is_forgotten_before_its_time)
{
    int64_t life;

    lead();
    put(&controller, NS "recoveries/t", "{\"task\":\"t\",\"attempts\":1}", 0);
    recover_task("t", 1, 2);
    life = live_again("t");
    ck_assert_int_gt(life, 2);
    world.now += 14 * MINUTE;
    put(&controller, NS "recoveries/t", "{\"task\":\"t\",\"attempts\":0}", 0);
    expect("I11");
}
END_TEST

#define START "{\"id\":\"x\",\"host\":\"h1\"}"

/* A start of the agent that died, for a task or for none, at such a time. */
static void start_again(const char *text, hf_ms at)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    end_life("crashed");
    world.now = at;
    put(&controller, NS "commands/h1/a", text, 0);
}

START_TEST(i9_a_start_without_the_task_that_it_died_with)
{
    start_again(START, 2000);
    expect("I9");
}
END_TEST

START_TEST(a_start_by_one_that_was_not_told_of_the_end_yet)
{
    controller.told_rev = 1;
    start_again(START, 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* Whoever leads sends something about that task, so long before it orders the start. */
static void start_again_after_a_write(hf_ms before)
{
    struct hfs_compare same = { .key = bytes(NS "tasks/t") };
    struct hfs_request request = { .kind = HFS_TXN,
                                   .txn = { .compares = &same, .compare_count = 1 } };
    struct hfs_letter *letter = hfs_letter_new(&request, 2000 - before);

    world.now = 2000 - before;
    hfs_check_sent(check, &controller, letter);
    hfs_letter_unref(letter);
    start_again(START, 2000);
}

START_TEST(a_start_while_a_write_to_its_task_is_under_way)
{
    start_again_after_a_write(999);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_start_after_a_write_to_its_task)
{
    start_again_after_a_write(1000);
    expect("I9");
}
END_TEST

START_TEST(i9_a_start_with_the_task_that_it_died_with)
{
    start_again("{\"id\":\"x\",\"host\":\"h1\",\"task\":\"t\"}", 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* Something may have been left out for whoever leads, and then it was told everything. */
static void miss_something(void)
{
    hfs_etcd_get_faults(etcd)->lose_percent = 10;
    put(&agentd, NS "agents/a/report", "{}", 0);
    hfs_etcd_get_faults(etcd)->lose_percent = 0;
    controller.listed_at = world.now + 1;
}

START_TEST(a_start_by_one_that_rests_from_what_it_had_missed)
{
    miss_something();
    start_again(START, 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_start_by_one_that_has_rested)
{
    miss_something();
    start_again(START, 10000);
    expect("I9");
}
END_TEST

/* A host does not serve a start, and is asked for the same once more while another is here. */
static void ask_the_same_host(void)
{
    lead();
    put(&agentd, NS "hosts/h1/live", "{}", LEASE);
    put(&agentd, NS "hosts/h2/live", "{}", LEASE);
    world.now = 10000;
    put(&controller, NS "commands/h1/b", START, 0);
    world.now = 40000;
    erase(&controller, NS "commands/h1/b");
    world.now = 45000;
    put(&controller, NS "commands/h1/b", START, 0);
}

START_TEST(i11_a_host_that_did_not_start_it_is_asked_again)
{
    ask_the_same_host();
    expect("I11");
}
END_TEST

START_TEST(a_host_is_asked_again_by_one_that_has_blamed_the_other)
{
    miss_something();
    ask_the_same_host();
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* Its owner's life ends, another one begins, and that one is missed when the task is reset. */
static void reset_after_two_lives(const char *second)
{
    lead();
    erase(&agentd, NS "agents/a/live");
    put(&agentd, NS "agents/a/live", second, LEASE);
    world.now = 20000;
    erase(NULL, NS "agents/a/live");
    world.now += 10;
    put_two(
        &controller, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\",\"opIds\":{\"controller\":\"x\"}}",
        NS "pending/r/t", "{}");
}

START_TEST(i7_a_reset_when_its_owner_has_just_gone_again)
{
    reset_after_two_lives(LIVE_1);
    expect("I7");
}
END_TEST

START_TEST(a_reset_when_who_replaced_its_owner_has_just_gone)
{
    reset_after_two_lives(LIVE_OTHER);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* It is missed, and its start is ordered a moment later. */
static void start_one_that_is_missed(bool removed)
{
    lead();
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\"}", 0);
    world.now = 3000;
    erase(NULL, NS "agents/a/live");
    world.now = 4000;
    if (removed)
        erase(&agentd, NS "agents/a/spec");
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\"}", 0);
    world.now = 5000;
    put(&controller, NS "commands/h1/a", START, 0);
}

/* It is missed when a start arrives that was ordered at `made_at`; it had come at 3000. */
static void start_late_one_that_is_missed(hf_ms made_at)
{
    struct hfs_op op = put_op(NS "commands/h1/a", START, 0);
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ &op, 1 };
    lead();
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\"}", 0);
    erase(&agentd, NS "agents/a/live");
    world.now = 3000;
    put(&agentd, NS "agents/a/live", LIVE_OTHER, LEASE);
    world.now = 4000;
    erase(NULL, NS "agents/a/live");
    world.now = 5000;
    serve_late(&controller, &request, made_at);
}

START_TEST(a_late_start_for_the_end_before_the_life_that_is_missed)
{
    start_late_one_that_is_missed(2999);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i7_a_late_start_of_one_that_is_missed)
{
    start_late_one_that_is_missed(3000);
    expect("I7");
}
END_TEST

START_TEST(i7_a_start_of_one_that_is_missed)
{
    start_one_that_is_missed(false);
    expect("I7");
}
END_TEST

START_TEST(a_start_of_one_that_was_removed_while_it_was_missed)
{
    start_one_that_is_missed(true);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("check");

    tcase_add_test(t, i11_a_clock_that_is_fast);
    tcase_add_loop_test(t, i11_an_agent_that_is_removed_before_its_time, 0, 4);
    tcase_add_test(t, i11_a_start_before_the_time_that_was_promised);
    tcase_add_test(t, i11_starts_whose_delays_do_not_grow);
    tcase_add_test(t, i11_starts_that_are_not_counted);
    tcase_add_test(t, i11_a_recovery_whose_delay_does_not_grow);
    tcase_add_test(t, i11_a_sixth_recovery_of_one_agent_within_the_hour);
    tcase_add_test(t, i11_what_was_counted_is_forgotten_before_its_time);
    tcase_add_test(t, i9_a_start_without_the_task_that_it_died_with);
    tcase_add_test(t, a_start_by_one_that_was_not_told_of_the_end_yet);
    tcase_add_test(t, a_start_while_a_write_to_its_task_is_under_way);
    tcase_add_test(t, i9_a_start_after_a_write_to_its_task);
    tcase_add_test(t, i9_a_start_with_the_task_that_it_died_with);
    tcase_add_test(t, a_start_by_one_that_rests_from_what_it_had_missed);
    tcase_add_test(t, i9_a_start_by_one_that_has_rested);
    tcase_add_test(t, i11_a_host_that_did_not_start_it_is_asked_again);
    tcase_add_test(t, a_host_is_asked_again_by_one_that_has_blamed_the_other);
    tcase_add_test(t, i7_a_reset_when_its_owner_has_just_gone_again);
    tcase_add_test(t, a_reset_when_who_replaced_its_owner_has_just_gone);
    tcase_add_test(t, i7_a_start_of_one_that_is_missed);
    tcase_add_test(t, a_late_start_for_the_end_before_the_life_that_is_missed);
    tcase_add_test(t, i7_a_late_start_of_one_that_is_missed);
    tcase_add_test(t, an_agent_is_removed_by_one_that_was_not_told_of_its_life);
    tcase_add_test(t, a_start_of_one_that_was_removed_while_it_was_missed);
    return run_check("sim/check: limits", t);
}
