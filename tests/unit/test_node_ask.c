/* What agents ask for: work on tasks, checkpoints, submissions, reports. */
#include "unit/node_fixture.h"

/* Work. */

START_TEST(a_task_is_started_and_completed)
{
    owning();
    w.quiet = false;
    ask("a", HF_ASK_START, "t");
    expect("read tasks/t\n"
           "if create(agents/a/live) = 104, lease(agents/a/live) = 2a, mod(tasks/t) = 107, "
           "text(tasks/t) then "
           "put tasks/t\n"
           "reply 2 OK t\n");
    w.quiet = true;
    ask("a", HF_ASK_START, "t");
    expect("reply 3 OK t\n"); /* the answer was lost, perhaps */
    ask_as("a", instance("a"), HF_ASK_COMPLETE, "t", "42");
    expect("reply 4 OK t\n");
    has("tasks/t", "\"result\":\"42\"");
    has("tasks/t", "\"state\":\"completed\"");
    ask_as("a", instance("a"), HF_ASK_COMPLETE, "t", "42");
    expect("reply 5 OK t\n");
}
END_TEST

START_TEST(a_large_result_lies_elsewhere)
{
    static char result[70001];

    (void)memset(result, 'x', sizeof result - 1);
    working();
    ask_as("a", instance("a"), HF_ASK_COMPLETE, "t", result);
    expect("reply 3 OK t\n");
    has("tasks/t", "\"result\":\"\"");
    has("tasks/t", "\"resultBody\":{\"size\":\"70000\"");
}
END_TEST

START_TEST(a_task_fails)
{
    working();
    ask_as("a", instance("a"), HF_ASK_FAIL, "t", "no such page");
    expect("reply 3 OK t\n");
    has("tasks/t", "\"state\":\"failed\"");
    has("tasks/t", "\"reason\":\"no such page\"");
    ask_as("a", instance("a"), HF_ASK_FAIL, "t", "no such page");
    expect("reply 4 OK t\n");
    ask("a", HF_ASK_COMPLETE, "t");
    expect("reply 5 ECONFLICT\n");
}
END_TEST

START_TEST(a_task_is_released)
{
    working();
    ask_as("a", instance("a"), HF_ASK_RELEASE, "t", "not my kind");
    expect("reply 3 OK t\n");
    has("tasks/t", "\"state\":\"pending\"");
    ck_assert_ptr_nonnull(get("pending/r/t"));
    ask("a", HF_ASK_RELEASE, "t");
    expect("reply 4 ECONFLICT\n");
}
END_TEST

START_TEST(what_is_not_its_own_is_not_its_business)
{
    running();
    put("tasks/t", TASK_OF("t", "pending", ""));
    ask("a", HF_ASK_START, "t");
    expect("reply 1 ECONFLICT\n");
    ask("a", HF_ASK_START, "nothing");
    expect("reply 2 ENOENT\n");
}
END_TEST

START_TEST(what_the_table_forbids_is_refused_with_its_words)
{
    owning();
    ask("a", HF_ASK_COMPLETE, "t");
    expect("reply 2 ECONFLICT\n");
}
END_TEST

START_TEST(a_write_that_is_refused_is_decided_on_a_fresh_read)
{
    owning();
    w.fate = WITHHOLD;
    ask("a", HF_ASK_START, "t");
    run_node();
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    arrive();
    w.log[0] = '\0';
    expect("reply 2 ECONFLICT\n");
}
END_TEST

START_TEST(a_write_whose_outcome_is_unknown_is_recognised_by_its_id)
{
    working();
    w.fate = LOST[_i];
    ask_as("a", instance("a"), HF_ASK_RELEASE, "t", "enough");
    ignore();
    wait(1000);
    expect("reply 3 OK t\n");
    has("tasks/t", "\"state\":\"pending\"");
}
END_TEST

START_TEST(without_etcd_the_agent_is_told_to_try_again)
{
    working();
    w.reads_are_off = true;
    ask("a", HF_ASK_COMPLETE, "t");
    expect("reply 3 EAGAIN\n");
}
END_TEST

/* Checkpoints. */

START_TEST(checkpoints_form_a_chain)
{
    working();
    ask_checkpoint("t");
    expect("reply 3 OK t seq 1\n");
    ask_checkpoint("t");
    expect("reply 4 OK t seq 2\n");
    has("checkpoints/t/0000000000000000002", "\"parent\":\"1\"");
    has("checkpoints/t/0000000000000000002", "\"createRevision\":\"104\"");
    has("tasks/t", "\"checkpoint\":{\"seq\":\"2\"}");
}
END_TEST

#define BODY_71 "/holdfast-data/" NS "/checkpoints/t/0000000000000000071"
#define DONE    ((struct hf_bytes){ "what was done", strlen("what was done") })

/* In one step, also when the first attempt was lost or came too late: the bytes are kept for
 * the next. */
static const enum fate FATES[] = { COMMIT, LOSE, LOSE_DONE };

START_TEST(a_checkpoint_in_etcd_comes_with_its_body)
{
    char bytes[] = "what was done";

    working();
    w.fate = FATES[_i];
    ask_checkpoint_of("t", "71", (struct hf_bytes){ bytes, strlen(bytes) });
    memset(bytes, 'x', strlen(bytes)); /* whoever asked keeps nothing */
    ignore();
    wait(1000);
    ck_assert_ptr_nonnull(find(BODY_71));
    ck_assert_str_eq(find(BODY_71)->value, "what was done");
    ck_assert_int_eq(find(BODY_71)->mod_rev,
                     find(ROOT "checkpoints/t/0000000000000000001")->mod_rev);
    ck_assert_ptr_null(get("checkpoints/t/0000000000000000002"));
}
END_TEST

START_TEST(a_checkpoint_that_comes_too_late_leaves_no_body)
{
    working();
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    ask_checkpoint_of("t", "71", DONE);
    expect("reply 3 ECONFLICT\n");
    ck_assert_ptr_null(find(BODY_71));
}
END_TEST

START_TEST(a_checkpoint_with_a_body_that_has_no_place_is_refused)
{
    working();
    ask_checkpoint_of("t", "x", DONE);
    expect("reply 3 EINVAL\n");
    ck_assert_ptr_null(get("checkpoints/t/0000000000000000001"));
}
END_TEST

START_TEST(a_checkpoint_whose_outcome_is_unknown_is_stored_once)
{
    working();
    w.fate = LOSE_DONE;
    ask_checkpoint("t");
    ignore();
    wait(1000);
    expect("reply 3 OK t seq 1\n");
    ck_assert_ptr_null(get("checkpoints/t/0000000000000000002"));
}
END_TEST

/* The write that finds etcd full is applied; those after it are not. */
START_TEST(a_full_etcd_may_have_stored_the_checkpoint)
{
    working();
    w.fate = FULL_DONE;
    ask_checkpoint("t");
    ignore();
    wait(1000);
    expect("reply 3 OK t seq 1\n");
    ask_checkpoint("t");
    run_node();
    wait(1000);
    ck_assert_ptr_nonnull(strstr(w.log, "reply 4 ENOSPACE"));
    ck_assert_ptr_null(get("checkpoints/t/0000000000000000002"));
}
END_TEST

/* Submissions. */

static void ask_submit_as(const char *id, const char *role, Holdfast__V1__Task__State state)
{
    Holdfast__V1__Task next = HOLDFAST__V1__TASK__INIT;

    next.id = (char *)id;
    next.role = (char *)role;
    next.state = state;
    next.payload = (char *)"do it";
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = HF_ASK_SUBMIT,
                                     .agent = "a",
                                     .instance_id = instance("a"),
                                     .next_task = &next } });
}

static void ask_submit(const char *id, const char *role)
{
    ask_submit_as(id, role, HOLDFAST__V1__TASK__STATE__pending);
}

START_TEST(a_task_that_is_submitted_queued_can_be_claimed_by_nobody)
{
    running();
    ask_submit_as("new", "s", HOLDFAST__V1__TASK__STATE__queued);
    expect("reply 1 OK new\n");
    has("tasks/new", "\"state\":\"queued\"");
    ck_assert_ptr_null(get("pending/s/new"));
}
END_TEST

START_TEST(a_task_is_submitted_once)
{
    running();
    ask_submit("new", "s");
    expect("reply 1 OK new\n");
    has("tasks/new", "\"state\":\"pending\"");
    ck_assert_ptr_nonnull(get("pending/s/new"));
    ask_submit("new", "s");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "reply 2 OK new existed\n"));
}
END_TEST

START_TEST(a_task_without_an_id_gets_one)
{
    running();
    ask_submit("", "s");
    run_node();
    ck_assert_int_eq(strncmp(w.log, "reply 1 OK ", 11), 0);
    ck_assert_uint_eq(strlen(w.log), 11 + HF_ID_LEN + 1);
}
END_TEST

START_TEST(a_submission_that_makes_no_sense_is_refused)
{
    running();
    ask_submit("No Such Name", "s");
    expect("reply 1 EINVAL\n");
    ask_submit("x", "");
    expect("reply 2 EINVAL\n");
    ask_submit("\xff", "s");
    expect("reply 3 EINVAL\n");
}
END_TEST

START_TEST(a_submission_whose_outcome_is_unknown_is_found_out)
{
    running();
    w.fate = LOST[_i];
    ask_submit("new", "s");
    ignore();
    wait(1000);
    expect("reply 1 OK new\n");
}
END_TEST

/* Reports. */

static Holdfast__V1__Report made_report(const char *phase)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;

    report.phase = (char *)phase;
    return report;
}

static void ask_phase(const char *phase)
{
    Holdfast__V1__Report report = made_report(phase);

    ask_report("a", HF_ASK_REPORT, NULL, &report);
}

START_TEST(a_report_is_written_when_it_says_something_new)
{
    running();
    ask_phase("thinking");
    expect("reply 1 OK\n");
    has("agents/a/report", "\"phase\":\"thinking\"");
    has("agents/a/report", "\"createRevision\":\"104\"");
    wait(5000);
    ask_phase("thinking");
    expect("reply 2 OK\n");
    ck_assert_int_eq(find(ROOT "agents/a/report")->mod_rev, 105); /* nothing new */
    wait(60000);
    ck_assert_int_eq(find(ROOT "agents/a/report")->mod_rev, 106); /* but its counters */
}
END_TEST

START_TEST(reports_are_not_written_too_often)
{
    running();
    ask_phase("one");
    ignore();
    ask_phase("two");
    ask_phase("three");
    expect("reply 2 OK\nreply 3 OK\n");
    has("agents/a/report", "\"phase\":\"one\"");
    wait(1000);
    has("agents/a/report", "\"phase\":\"three\"");
    put("meta", "{\"rates\":{\"report\":\"20s\"}}");
    ask_phase("four");
    wait(19000);
    has("agents/a/report", "\"phase\":\"three\"");
    wait(1000);
    has("agents/a/report", "\"phase\":\"four\"");
}
END_TEST

static const char *const RATES[] = { "{}", "{\"rates\":{}}", "{\"rates\":{\"report\":\"-5s\"}}",
                                     "{\"rates\":{\"report\":\"100000s\"}}" };

START_TEST(a_rate_that_makes_no_sense_is_none)
{
    running();
    put("meta", RATES[_i]);
    ask_phase("one");
    ignore();
    ask_phase("two");
    ignore();
    wait(1000);
    has("agents/a/report", "\"phase\":\"two\"");
}
END_TEST

START_TEST(a_report_waits_until_the_lease_is_proven)
{
    running();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    ask_phase("one");
    expect("reply 1 OK\n");
    ck_assert_ptr_null(get("agents/a/report"));
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    run_node();
    w.reads_are_off = true; /* nobody knows yet what it owns */
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    ck_assert_ptr_null(get("agents/a/report"));
    w.reads_are_off = false;
    wait(1000);
    has("agents/a/report", "\"phase\":\"one\"");
}
END_TEST

START_TEST(a_report_that_was_not_written_is_written_later)
{
    running();
    w.fate = LOST[_i];
    ask_phase("one");
    ignore();
    wait(70000);
    has("agents/a/report", "\"phase\":\"one\"");
}
END_TEST

START_TEST(a_report_is_answered_with_what_waits)
{
    running();
    put_pending("t", "");
    ask_phase("one");
    expect("reply 1 OK waiting 1\n");
    w.keeper_is_off = true;
    put("wanted/a", "{\"state\":\"stopped\"}");
    run_node();
    w.log[0] = '\0';
    ask_phase("two");
    expect("reply 2 OK waiting 1 stop\n");
}
END_TEST

START_TEST(progress_is_part_of_the_report)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    Holdfast__V1__Report__Progress progress = HOLDFAST__V1__REPORT__PROGRESS__INIT;

    working();
    progress.percent = 40;
    progress.note = (char *)"page 4";
    report.progress = &progress;
    ask_report("a", HF_ASK_PROGRESS, "t", &report);
    expect("reply 3 OK t\n");
    has("agents/a/report", "\"note\":\"page 4\"");
    ask("a", HF_ASK_PROGRESS, "t");
    expect("reply 4 OK t\n");
    ask_report("a", HF_ASK_PROGRESS, "nothing", &report);
    expect("reply 5 ENOENT\n");
}
END_TEST

/* Who asks. */

START_TEST(who_was_replaced_is_told)
{
    running();
    ask_as("a", "another", HF_ASK_CLAIM, NULL, NULL);
    ask_as("a", NULL, HF_ASK_CLAIM, NULL, NULL);
    ask_as("nobody", "x", HF_ASK_CLAIM, NULL, NULL);
    expect("reply 3 ENOENT\nreply 1 EFENCED\nreply 2 EFENCED\n");
}
END_TEST

START_TEST(who_dies_while_it_waits_is_answered_and_what_was_under_way_ends)
{
    running();
    put_pending("t", "");
    w.fate = WITHHOLD;
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    w.log[0] = '\0';
    news("a", HF_PROCESS_ENDED, 1, NULL);
    expect("reply 1 EFENCED\nmake a#2\n");
    arrive();
    expect("");
    has("agents/a/exit", "\"incarnation\"");
}
END_TEST

START_TEST(a_read_for_who_died_is_nobody_s)
{
    struct hf_intent intent;

    running();
    put_pending("t", "");
    ask("a", HF_ASK_CLAIM, NULL);
    ck_assert_int_eq(next_intent(&intent), 1);
    ck_assert_int_eq(intent.kind, HF_INTENT_READ);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    on_read(&intent);
    expect("reply 1 EFENCED\n");
}
END_TEST

START_TEST(what_is_incomplete_is_refused)
{
    running();
    ask("a", HF_ASK_REPORT, NULL);
    ask("a", HF_ASK_SUBMIT, NULL);
    ask("a", HF_ASK_CHECKPOINT, "t");
    ask("a", HF_ASK_START, NULL);
    expect("reply 1 EINVAL\nreply 2 EINVAL\nreply 3 EINVAL\nreply 4 EINVAL\n");
}
END_TEST

START_TEST(too_much_at_once_is_refused)
{
    running();
    for (int i = 0; i < 33; i++)
        ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 33 ELIMIT\n");
}
END_TEST

START_TEST(who_leaves_gets_no_more_work)
{
    running();
    put_pending("t", "");
    ask("a", HF_ASK_LEAVE, NULL);
    ask("a", HF_ASK_LEAVE, NULL);
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK\nreply 2 OK\nreply 3 EFENCED\n");
}
END_TEST

START_TEST(what_was_asked_while_tasks_are_adopted_waits)
{
    working();
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    ask("a", HF_ASK_COMPLETE, "t");
    expect("reply 3 EAGAIN\n");
    w.reads_are_off = true;
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    ask("a", HF_ASK_COMPLETE, "t");
    expect("");
    w.reads_are_off = false;
    wait(1000);
    expect("reply 4 OK t\n");
    has("tasks/t", "\"leaseId\":\"43\"");
}
END_TEST

START_TEST(a_task_that_it_worked_on_and_that_was_reset_ends_it)
{
    working();
    lease_is(HF_LEASE_LOST, 0, true);
    run_node();
    expire(LEASE);
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":1"));
    w.log[0] = '\0';
    lease_is(HF_LEASE_HELD, 43, false);
    expect("kill a#1\n");
    has("agents/a/exit", "fenced");
}
END_TEST

/* Views. */

START_TEST(what_holds_can_be_seen)
{
    struct hf_node_view view;
    struct hf_node_key keys[4];

    working();
    ck_assert_int_eq(hf_node_get_view(w.node, "x", w.now, &view), HF_ENOENT);
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_RUNNING);
    ck_assert_str_eq(view.task, "t");
    ck_assert_int_eq(view.incarnation, 104);
    ck_assert(view.registered && !view.jeopardy && view.ready);
    ck_assert_int_eq(hf_node_get_keys(w.node, LEASE, keys, 4), 2);
    ck_assert_int_eq(keys[0].key.kind, HF_KEY_HOST_LIVE);
    ck_assert_int_eq(keys[1].create_rev, 104);
    ck_assert_int_eq(hf_node_get_keys(w.node, LEASE, keys, 1), 2);
    lease_is(HF_LEASE_LOST, 0, true);
    ck_assert_int_eq(hf_node_get_keys(w.node, 43, keys, 4), HF_EAGAIN);
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_REJOINING);
    w.keeper_is_off = true;
    put("wanted/a", "{\"state\":\"stopped\"}");
    run_node();
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_ENDING);
    ck_assert_int_eq(hf_node_get_keys(w.node, 43, keys, 4), 0);
    news("a", HF_PROCESS_UNKILLABLE, 0, NULL);
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_STUCK);
    news("a", HF_PROCESS_ENDED, 0, NULL);
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_ENDED);
    run_node();
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_int_eq(view.state, HF_NODE_ABSENT);
    ck_assert_str_eq(hf_node_state_name(HF_NODE_STARTING), "starting");
    ck_assert_str_eq(hf_node_state_name((enum hf_node_state)99), "?");
    ck_assert_ptr_null(hf_node_get_agent(w.node, 1));
}
END_TEST

START_TEST(an_incarnation_grows_with_the_generation)
{
    struct hf_life life = { .create_rev = 5, .generation = 2 };

    ck_assert_int_eq(hf_node_incarnation(&life), (INT64_C(2) << 48) + 5);
    begin();
    put("meta", "{\"generation\":1}");
    settle_in();
    expect("make a#1\nlet go a#1 as 281474976710761\n");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_task_is_started_and_completed);
    tcase_add_test(t, a_large_result_lies_elsewhere);
    tcase_add_test(t, a_task_fails);
    tcase_add_test(t, a_task_is_released);
    tcase_add_test(t, what_is_not_its_own_is_not_its_business);
    tcase_add_test(t, what_the_table_forbids_is_refused_with_its_words);
    tcase_add_test(t, a_write_that_is_refused_is_decided_on_a_fresh_read);
    tcase_add_loop_test(t, a_write_whose_outcome_is_unknown_is_recognised_by_its_id, 0,
                        COUNT(LOST));
    tcase_add_test(t, without_etcd_the_agent_is_told_to_try_again);
    tcase_add_test(t, checkpoints_form_a_chain);
    tcase_add_loop_test(t, a_checkpoint_in_etcd_comes_with_its_body, 0,
                        sizeof FATES / sizeof FATES[0]);
    tcase_add_test(t, a_checkpoint_that_comes_too_late_leaves_no_body);
    tcase_add_test(t, a_checkpoint_with_a_body_that_has_no_place_is_refused);
    tcase_add_test(t, a_checkpoint_whose_outcome_is_unknown_is_stored_once);
    tcase_add_test(t, a_full_etcd_may_have_stored_the_checkpoint);
    tcase_add_test(t, a_task_is_submitted_once);
    tcase_add_test(t, a_task_that_is_submitted_queued_can_be_claimed_by_nobody);
    tcase_add_test(t, a_task_without_an_id_gets_one);
    tcase_add_test(t, a_submission_that_makes_no_sense_is_refused);
    tcase_add_loop_test(t, a_submission_whose_outcome_is_unknown_is_found_out, 0, COUNT(LOST));
    tcase_add_test(t, a_report_is_written_when_it_says_something_new);
    tcase_add_test(t, reports_are_not_written_too_often);
    tcase_add_loop_test(t, a_rate_that_makes_no_sense_is_none, 0, COUNT(RATES));
    tcase_add_test(t, a_report_waits_until_the_lease_is_proven);
    tcase_add_loop_test(t, a_report_that_was_not_written_is_written_later, 0, COUNT(LOST));
    tcase_add_test(t, a_report_is_answered_with_what_waits);
    tcase_add_test(t, progress_is_part_of_the_report);
    tcase_add_test(t, who_was_replaced_is_told);
    tcase_add_test(t, who_dies_while_it_waits_is_answered_and_what_was_under_way_ends);
    tcase_add_test(t, a_read_for_who_died_is_nobody_s);
    tcase_add_test(t, what_is_incomplete_is_refused);
    tcase_add_test(t, too_much_at_once_is_refused);
    tcase_add_test(t, who_leaves_gets_no_more_work);
    tcase_add_test(t, what_was_asked_while_tasks_are_adopted_waits);
    tcase_add_test(t, a_task_that_it_worked_on_and_that_was_reset_ends_it);
    tcase_add_test(t, what_holds_can_be_seen);
    tcase_add_test(t, an_incarnation_grows_with_the_generation);
}

int main(void)
{
    return run_stories("core/node_ask", add_stories);
}
