/* Claims: who gets which task, and what becomes of one whose outcome is unknown. */
#include "unit/node_fixture.h"

START_TEST(a_claim_is_answered_with_a_task_that_is_committed)
{
    running();
    put_pending("t", "");
    w.quiet = false;
    ask("a", HF_ASK_CLAIM, NULL);
    expect("read tasks/t\n"
           "if create(agents/a/live) = 104, lease(agents/a/live) = 2a, mod(tasks/t) = 105, "
           "text(tasks/t) then "
           "put tasks/t, delete pending/r/t\n"
           "reply 1 OK t\n");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("read tasks/t\nreply 2 OK t\n"); /* the one that it has not started */
}
END_TEST

START_TEST(a_claim_waits_for_work)
{
    running();
    ask("a", HF_ASK_CLAIM, NULL);
    expect("");
    wait(4000);
    put_pending("t", "");
    expect("reply 1 OK t\n");
}
END_TEST

START_TEST(a_claim_does_not_wait_for_ever)
{
    running();
    ask("a", HF_ASK_CLAIM, NULL);
    ask("a", HF_ASK_CLAIM, NULL);
    wait(4999);
    expect("");
    wait(1);
    expect("reply 1 ENOENT\nreply 2 ENOENT\n");
}
END_TEST

START_TEST(what_is_reserved_is_for_that_agent)
{
    running();
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"b\""));
    put("pending/r/t", "{\"reservedFor\":\"b\"}");
    put("tasks/u", TASK_OF("u", "pending", ",\"reservedFor\":\"a\""));
    put("pending/r/u", "{\"reservedFor\":\"a\"}");
    put("tasks/v", TASK_OF("v", "pending", ",\"priority\":9"));
    put("pending/r/v", "{\"priority\":9}");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK u\n");
}
END_TEST

START_TEST(of_many_those_that_are_reserved_for_it_come_first)
{
    running();
    for (int i = 0; i < 10; i++) {
        char key[32];

        (void)snprintf(key, sizeof key, "pending/r/t%d", i);
        put(key, i % 2 == 0 ? "{}" : "{\"reservedFor\":\"a\"}");
        (void)snprintf(key, sizeof key, "tasks/t%d", i);
        put(key, i % 2 == 0 ? TASK_OF("x", "pending", "")
                            : TASK_OF("x", "pending", ",\"reservedFor\":\"a\""));
    }
    w.quiet = false;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    ck_assert_int_eq(strncmp(w.log, "read tasks/t", 12), 0);
    ck_assert_int_eq(w.log[12] % 2, 1);
}
END_TEST

START_TEST(who_has_no_role_gets_no_task)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    settle_in();
    put_pending("t", "");
    ignore();
    ask("a", HF_ASK_CLAIM, NULL);
    wait(5000);
    expect("reply 1 ENOENT\n");
}
END_TEST

START_TEST(the_most_urgent_comes_first)
{
    running();
    put("tasks/t", TASK_OF("t", "pending", ""));
    put("pending/r/t", "{}");
    put("tasks/u", TASK_OF("u", "pending", ",\"priority\":9"));
    put("pending/r/u", "{\"priority\":9}");
    put("tasks/v", TASK_OF("v", "pending", ",\"priority\":1"));
    put("pending/r/v", "{\"priority\":1}");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK u\n");
}
END_TEST

START_TEST(equally_good_ones_are_spread)
{
    char first[16] = "";
    bool differs = false;

    for (uint32_t round = 0; round < 8; round++) {
        running();
        w.random = round * 0x10000000u;
        for (int i = 0; i < 9; i++) {
            char name[8];

            (void)snprintf(name, sizeof name, "t%d", i);
            put_pending(name, "");
        }
        ask("a", HF_ASK_CLAIM, NULL);
        run_node();
        ck_assert_ptr_null(strstr(w.log, " t8")); /* not among the eight oldest */
        if (first[0] == '\0')
            (void)snprintf(first, sizeof first, "%.15s", w.log);
        differs = differs || strncmp(first, w.log, 15) != 0;
        finish();
    }
    ck_assert(differs);
}
END_TEST

START_TEST(a_claim_that_others_were_faster_with_goes_on_to_the_next)
{
    running();
    put_pending("t", "");
    put("tasks/t", TASK_OF("t", "acknowledged", "")); /* the index lags behind */
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    wait(2000);
    ck_assert_ptr_nonnull(strstr(w.log, "reply 1 OK u\n"));
}
END_TEST

START_TEST(a_claim_that_is_refused_is_decided_anew)
{
    running();
    put_pending("t", "");
    w.fate = WITHHOLD;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    put("tasks/t", TASK_OF("t", "acknowledged", ""));
    erase("pending/r/t");
    arrive();
    ignore();
    put_pending("u", "");
    expect("reply 1 OK u\n");
}
END_TEST

START_TEST(a_claim_whose_outcome_is_unknown_is_found_out)
{
    running();
    put_pending("t", "");
    w.fate = LOST[_i];
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    wait(2000);
    expect("reply 1 OK t\n");
    has("tasks/t", "\"state\":\"acknowledged\"");
}
END_TEST

START_TEST(a_claim_that_failed_says_why)
{
    running();
    put_pending("t", "");
    w.fate = FAIL;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "reply 1 ENOSPACE\n"));
}
END_TEST

START_TEST(in_jeopardy_nothing_is_claimed_and_nothing_begun)
{
    running();
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    put_pending("t", "");
    expect("reply 1 EAGAIN\n");
    ask("a", HF_ASK_CLAIM, NULL);
    ask("a", HF_ASK_START, "t");
    expect("reply 2 EAGAIN\nreply 3 EAGAIN\n");
    ask("a", HF_ASK_SELF, NULL);
    expect("reply 4 OK waiting 1\n");
}
END_TEST

START_TEST(a_claim_that_waits_is_answered_when_the_lease_was_not_proven)
{
    running();
    lease_is(HF_LEASE_HELD, LEASE, false);
    ask("a", HF_ASK_CLAIM, NULL);
    w.lease.proven_until = w.now + 2000;
    must((struct hf_event){ .kind = HF_EVENT_LEASE, .lease = w.lease });
    expect("");
    ck_assert_int_le(hf_node_deadline(w.node, w.now), w.now + 2000);
    w.now += 2000;
    must((struct hf_event){ .kind = HF_EVENT_TIME });
    expect("reply 1 EAGAIN\n");
}
END_TEST

START_TEST(one_task_at_a_time_unless_its_spec_says_more)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    working();
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 3 OK t\n"); /* the one that it has */
    finish();

    spec.role = (char *)"r";
    spec.max_tasks = 2;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    settle_in();
    put_pending("t", "");
    ignore();
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    ask("a", HF_ASK_START, "t");
    ignore();
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 3 OK u\n");
}
END_TEST

START_TEST(a_task_that_was_taken_away_makes_room)
{
    working();
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 3 OK u\n");
}
END_TEST

/* A claim that may still arrive. */

/* The next write gets no answer, and arrives when a test says so. */
static void claim_late(void)
{
    put_pending("t", "");
    w.fate = LATE;
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    put("tasks/u", TASK_OF("u", "pending", ",\"priority\":9"));
    put("pending/r/u", "{\"priority\":9}");
}

START_TEST(a_claim_that_may_still_arrive_is_made_again_before_any_other)
{
    running();
    claim_late();
    wait(1000);
    expect("reply 1 OK t\n");
    arrive_late();
    has("tasks/u", "pending");
}
END_TEST

START_TEST(a_claim_that_an_earlier_copy_of_it_refused_is_granted)
{
    running();
    claim_late();
    w.fate = WITHHOLD;
    wait(1000);
    arrive_late();
    arrive();
    wait(1000);
    ck_assert_ptr_nonnull(strstr(w.log, "reply 1 OK t\n"));
    has("tasks/u", "pending");
}
END_TEST

/* Or the mark of the first, in a task that was taken from it since, would speak for the second.
 */
START_TEST(a_claim_that_is_made_again_bears_another_mark)
{
    char first[HF_ID_LEN + 1];

    running();
    put_pending("t", "");
    w.fate = WITHHOLD;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    memcpy(first, w.plan.op_id, sizeof first);
    hf_plan_done(&w.plan); /* it is lost on the way */
    answer_write(w.withheld, HF_OUTCOME_UNKNOWN, HF_ETIMEOUT);
    w.withheld = 0;
    w.fate = WITHHOLD;
    wait(1000);
    ck_assert_uint_ne(w.withheld, 0);
    ck_assert_str_ne(w.plan.op_id, first);
    arrive();
}
END_TEST

START_TEST(a_claim_that_nobody_waits_for_any_more_is_the_first_to_be_looked_at)
{
    running();
    put_pending("t", "");
    w.fate = WITHHOLD;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    run_node();
    lease_is(HF_LEASE_HELD, LEASE, false);
    hf_plan_done(&w.plan); /* it is lost on the way */
    answer_write(w.withheld, HF_OUTCOME_UNKNOWN, HF_ETIMEOUT);
    w.withheld = 0;
    put_pending("u", "");
    ignore();
    ask("a", HF_ASK_CLAIM, NULL);
    wait(1000);
    ck_assert_ptr_nonnull(strstr(w.log, "OK t\n"));
    ck_assert_ptr_null(strstr(w.log, "OK u\n"));
    has("tasks/u", "pending");
}
END_TEST

START_TEST(a_claim_that_somebody_else_was_faster_with_is_let_go)
{
    running();
    claim_late();
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    erase("pending/r/t");
    wait(1000);
    expect("reply 1 OK u\n");
    arrive_late();
    has("tasks/t", "cancelled");
}
END_TEST

/* A claim and a new life. */

START_TEST(a_claim_that_waited_through_a_rejoin_finds_what_was_adopted)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;

    running();
    ask("a", HF_ASK_CLAIM, NULL); /* and there is nothing */
    run_node();
    w.fate = WITHHOLD;
    report.phase = (char *)"thinking";
    ask_report("a", HF_ASK_REPORT, NULL, &report);
    run_node();
    put_owned("t", "acknowledged", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    put_pending("u", "");
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    arrive();
    w.log[0] = '\0';
    wait(1000);
    expect("reply 1 OK t\n");
    has("tasks/u", "pending");
}
END_TEST

/* An etcd that was restored has tasks which their owner completed and forgot. */
START_TEST(what_it_is_found_to_own_is_offered_once_whatever_else_it_may_have)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    spec.max_tasks = 2;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    settle_in();
    ignore();
    put_owned("t", "in_progress", LEASE, find(ROOT "agents/a/live")->create_rev);
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 2 OK u\n");
}
END_TEST

START_TEST(what_was_read_before_a_rejoin_does_not_count_after_it)
{
    struct hf_intent intent;

    working();
    ask("a", HF_ASK_COMPLETE, "t");
    ck_assert_int_eq(next_intent(&intent), 1);
    ck_assert_int_eq(intent.kind, HF_INTENT_READ);
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    on_read(&intent);
    expect("reply 3 OK t\n");
    has("tasks/t", "\"state\":\"completed\"");
}
END_TEST

static const struct {
    const char *task, *log;
} ENDED[] = {
    { TASK_OF("t", "completed", ",\"owner\":{\"agent\":\"b\"}"), "kill a#1\n" },
    { TASK_OF("t", "needs_review", ""), "kill a#1\n" },
    { TASK_OF("t", "cancelled", ""), "thaw a#1 as 112\n" },
    { TASK_OF("t", "completed",
              ",\"owner\":{\"agent\":\"a\",\"incarnation\":{\"leaseId\":\"42\","
              "\"createRevision\":\"104\"}}"),
      "thaw a#1 as 112\n" },
};

START_TEST(a_task_that_somebody_else_ended_was_taken_from_it)
{
    working();
    lose_lease();
    put("tasks/t", ENDED[_i].task);
    lease_is(HF_LEASE_HELD, 43, false);
    expect(ENDED[_i].log);
}
END_TEST

/* Somebody else may have worked on it in between. */
static const struct {
    const char *health, *log;
} CANCELLED[] = {
    { "{\"takenUpto\":\"103\"}", "thaw a#1 as 113\n" },
    { "{\"takenUpto\":\"104\"}", "kill a#1\n" },
};

START_TEST(a_task_that_was_cancelled_after_it_was_taken_from_it_ends_it)
{
    working();
    lose_lease();
    put("health/a", CANCELLED[_i].health);
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    lease_is(HF_LEASE_HELD, 43, false);
    expect(CANCELLED[_i].log);
}
END_TEST

START_TEST(a_task_that_is_cancelled_amid_its_adoption_is_looked_at_likewise)
{
    working();
    lose_lease();
    w.fate = WITHHOLD;
    w.spared = 2; /* the host's registration and its own */
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    ck_assert_uint_ne(w.withheld, 0);
    put("health/a", "{\"takenUpto\":\"104\"}");
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    arrive();
    wait(1000);
    ck_assert_ptr_nonnull(strstr(w.log, "kill a#1\n"));
}
END_TEST

/* A restored etcd that only the leader has noticed. */

START_TEST(what_a_restored_etcd_does_not_give_it_any_more_ends_it)
{
    working();
    put("tasks/t", TASK_OF("t", "pending", ""));
    expect("");
    put("meta", "{\"generation\":1}");
    expect("kill a#1\n");
    has("agents/a/exit", "fenced");
}
END_TEST

START_TEST(what_a_restored_etcd_gives_back_to_it_is_offered_again)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    put("meta", "{\"generation\":1}");
    put_pending("u", "");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n");
    w.quiet = false;
    put("meta", "{\"generation\":1,\"id\":\"x\"}");
    expect(""); /* not the first time that it is told */
}
END_TEST

START_TEST(everything_is_listed_anew_when_the_leader_says_that_etcd_was_restored)
{
    uint64_t version;

    running();
    version = hf_node_get_ranges_version(w.node);
    put("meta", "{\"generation\":1}");
    ck_assert_uint_gt(hf_node_get_ranges_version(w.node), version);
    version = hf_node_get_ranges_version(w.node);
    put("meta", "{\"generation\":1,\"id\":\"x\"}");
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
}
END_TEST

/* A restored etcd that nobody has noticed. */

enum { LOOK_BACK = 300000, RETRY = 1000 };

/* It had t; the first time it completed it, the second time a person cancelled it. */
static void had(bool completed)
{
    working();
    if (!completed)
        put("tasks/t", TASK_OF("t", "cancelled", ""));
    ask("a", HF_ASK_COMPLETE, "t");
    expect(completed ? "reply 3 OK t\n" : "reply 3 ECONFLICT\n");
    ask("a", HF_ASK_CLAIM, NULL);
    wait(5000);
    expect("reply 4 ENOENT\n");
}

START_TEST(what_it_had_is_offered_again_when_etcd_gives_it_back)
{
    had(_i == 0);
    put_owned("t", "in_progress", LEASE, 104);
    put_pending("u", "");
    wait(LOOK_BACK);
    w.quiet = false;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    ck_assert_int_eq(strncmp(w.log, "read tasks/t\n", 13), 0);
    ck_assert_ptr_nonnull(strstr(w.log, "reply 5 OK u\n")); /* once may be a stale read */
    ask("a", HF_ASK_FAIL, "u");
    wait(RETRY);
    w.quiet = true;
    ignore();
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 7 OK t\n");
    ask("a", HF_ASK_COMPLETE, "t");
    expect("reply 8 OK t\n");
    has("tasks/t", "\"state\":\"completed\"");
}
END_TEST

START_TEST(what_it_had_is_looked_at_while_it_waits_too)
{
    had(true);
    put_owned("t", "acknowledged", LEASE, 104);
    wait(LOOK_BACK - 7000);
    ask("a", HF_ASK_CLAIM, NULL);
    wait(2000 - 1);
    expect("");
    wait(1 + RETRY);
    expect("reply 5 OK t\n");
}
END_TEST

START_TEST(what_it_had_is_looked_at_now_and_then)
{
    had(true);
    wait(LOOK_BACK);
    w.quiet = false;
    ask("a", HF_ASK_CLAIM, NULL);
    expect("read tasks/t\n");
    wait(5000);
    expect("reply 5 ENOENT\n");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("");
}
END_TEST

/* Of many only the last. */
START_TEST(not_all_that_it_ever_had_is_looked_at)
{
    char id[] = "t0";

    running();
    for (; id[1] < '6'; id[1]++) {
        put_pending(id, "");
        ask("a", HF_ASK_CLAIM, NULL);
        ignore();
        ask("a", HF_ASK_START, id);
        ask("a", HF_ASK_COMPLETE, id);
        ignore();
    }
    wait(LOOK_BACK);
    w.quiet = false;
    ask("a", HF_ASK_CLAIM, NULL);
    expect("read tasks/t5\nread tasks/t4\nread tasks/t3\nread tasks/t2\n");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_claim_is_answered_with_a_task_that_is_committed);
    tcase_add_test(t, a_claim_waits_for_work);
    tcase_add_test(t, a_claim_does_not_wait_for_ever);
    tcase_add_test(t, what_is_reserved_is_for_that_agent);
    tcase_add_test(t, of_many_those_that_are_reserved_for_it_come_first);
    tcase_add_test(t, who_has_no_role_gets_no_task);
    tcase_add_test(t, the_most_urgent_comes_first);
    tcase_add_test(t, equally_good_ones_are_spread);
    tcase_add_test(t, a_claim_that_others_were_faster_with_goes_on_to_the_next);
    tcase_add_test(t, a_claim_that_is_refused_is_decided_anew);
    tcase_add_loop_test(t, a_claim_whose_outcome_is_unknown_is_found_out, 0, COUNT(LOST));
    tcase_add_test(t, a_claim_that_failed_says_why);
    tcase_add_test(t, in_jeopardy_nothing_is_claimed_and_nothing_begun);
    tcase_add_test(t, a_claim_that_waits_is_answered_when_the_lease_was_not_proven);
    tcase_add_test(t, one_task_at_a_time_unless_its_spec_says_more);
    tcase_add_test(t, a_task_that_was_taken_away_makes_room);
    tcase_add_test(t, a_claim_that_may_still_arrive_is_made_again_before_any_other);
    tcase_add_test(t, a_claim_that_an_earlier_copy_of_it_refused_is_granted);
    tcase_add_test(t, a_claim_that_is_made_again_bears_another_mark);
    tcase_add_test(t, a_claim_that_nobody_waits_for_any_more_is_the_first_to_be_looked_at);
    tcase_add_test(t, a_claim_that_somebody_else_was_faster_with_is_let_go);
    tcase_add_test(t, a_claim_that_waited_through_a_rejoin_finds_what_was_adopted);
    tcase_add_test(t, what_it_is_found_to_own_is_offered_once_whatever_else_it_may_have);
    tcase_add_test(t, what_was_read_before_a_rejoin_does_not_count_after_it);
    tcase_add_loop_test(t, a_task_that_somebody_else_ended_was_taken_from_it, 0, COUNT(ENDED));
    tcase_add_loop_test(t, a_task_that_was_cancelled_after_it_was_taken_from_it_ends_it, 0,
                        COUNT(CANCELLED));
    tcase_add_test(t, a_task_that_is_cancelled_amid_its_adoption_is_looked_at_likewise);
    tcase_add_test(t, what_a_restored_etcd_does_not_give_it_any_more_ends_it);
    tcase_add_test(t, what_a_restored_etcd_gives_back_to_it_is_offered_again);
    tcase_add_test(t, everything_is_listed_anew_when_the_leader_says_that_etcd_was_restored);
    tcase_add_loop_test(t, what_it_had_is_offered_again_when_etcd_gives_it_back, 0, 2);
    tcase_add_test(t, what_it_had_is_looked_at_while_it_waits_too);
    tcase_add_test(t, what_it_had_is_looked_at_now_and_then);
    tcase_add_test(t, not_all_that_it_ever_had_is_looked_at);
}

int main(void)
{
    return run_stories("core/node_claim", add_stories);
}
