/* What an agent that runs is given to go on from, and that its task says so first. */
#include "unit/node_fixture.h"

/* a owns t, which has two checkpoints; as the ask 1. */
static void resuming(void)
{
    running();
    put_checkpoints(2);
    put_pending("t", ",\"checkpoint\":{\"seq\":\"2\"}");
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    has("tasks/t", "\"state\":\"acknowledged\"");
}

START_TEST(the_task_names_what_its_owner_is_given_before_it_has_it)
{
    resuming();
    w.quiet = false;
    ask("a", HF_ASK_RESTORE, "t");
    expect("read tasks/t\nread recoveries/t\nread checkpoints/t/\nverify 2\n"
           "read tasks/t\n"
           "if create(agents/a/live) = 104, lease(agents/a/live) = 2a, mod(tasks/t) = 109, "
           "text(tasks/t) then "
           "put tasks/t\n"
           "reply 2 OK t seq 2\n");
    has("tasks/t", "\"restored\":{\"seq\":\"2\"}");
    has("tasks/t", "\"state\":\"acknowledged\"");
}
END_TEST

START_TEST(asked_again_nothing_is_written_again)
{
    resuming();
    ask("a", HF_ASK_RESTORE, "t");
    ignore();
    w.quiet = false;
    ask("a", HF_ASK_RESTORE, "t");
    expect("read tasks/t\nread recoveries/t\nread checkpoints/t/\nverify 2\n"
           "read tasks/t\nreply 3 OK t seq 2\n");
}
END_TEST

START_TEST(two_that_ask_at_once_are_served_one_after_the_other)
{
    resuming();
    ask("a", HF_ASK_RESTORE, "t");
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\nreply 2 OK t seq 2\nverify 2\nreply 3 OK t seq 2\n");
}
END_TEST

START_TEST(what_it_keeps_itself_is_newer)
{
    resuming();
    put_checkpoints(3);
    put("tasks/t", TASK_OF("t", "in_progress",
                           ",\"checkpoint\":{\"seq\":\"3\"},\"restored\":{\"seq\":\"2\"},"
                           "\"owner\":{\"agent\":\"a\",\"incarnation\":"
                           "{\"leaseId\":\"42\",\"createRevision\":\"104\"}}"));
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 3\nreply 2 OK t seq 3\n");
    has("tasks/t", "\"restored\":{\"seq\":\"3\"}");
    has("tasks/t", "\"state\":\"in_progress\"");
}
END_TEST

START_TEST(without_checkpoints_there_is_nothing_to_write)
{
    owning();
    w.quiet = false;
    ask("a", HF_ASK_RESTORE, "t");
    expect("read tasks/t\nreply 2 OK t\n");
    ask("a", HF_ASK_RESTORE, "nothing");
    expect("read tasks/nothing\nreply 3 ENOENT\n");
}
END_TEST

START_TEST(poison_and_damage_are_passed_over_and_a_person_told_once)
{
    resuming();
    put("recoveries/t",
        "{\"task\":\"t\",\"attempts\":2,\"outcomes\":["
        "{\"at\":\"2026-01-01T00:00:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"},"
        "{\"at\":\"2026-01-01T00:01:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"}]"
        "}");
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 1\n"
           "alert a: it is whole, and successors that went on from newer ones died\n"
           "reply 2 OK t seq 1\n");
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
    w.verify_err = HF_ECORRUPT;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 1\nalert a: no checkpoint is left that is whole and killed nobody\n"
           "reply 3 OK t\n");
    has("tasks/t", "\"restored\":{\"seq\":\"0\"}");
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 1\nreply 4 OK t\n");
}
END_TEST

START_TEST(one_that_cannot_be_read_now_is_asked_for_again)
{
    resuming();
    w.verify_err = HF_EIO;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\nreply 2 EAGAIN\n");
    w.reads_are_off = true;
    ask("a", HF_ASK_RESTORE, "t");
    expect("reply 3 EAGAIN\n");
    w.reads_are_off = false;
    w.verify_err = HF_OK;
    wait(1000);
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\nreply 4 OK t seq 2\n");
}
END_TEST

START_TEST(a_store_that_hangs_keeps_nobody_waiting_for_ever)
{
    resuming();
    w.verify_hangs = true;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\n");
    ask("a", HF_ASK_START, "t");
    expect("reply 3 OK t\n"); /* and nothing else waits for it at all */
    wait(59000);
    expect("");
    wait(2000);
    expect("reply 2 EAGAIN\n");
    w.verify_hangs = false;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\nreply 4 OK t seq 2\n");
}
END_TEST

START_TEST(who_only_looks_changes_nothing)
{
    running();
    put_checkpoints(2);
    put("tasks/t", TASK_OF("t", "completed", ",\"checkpoint\":{\"seq\":\"2\"}"));
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\nreply 1 OK t seq 2\n");
    ck_assert_ptr_null(strstr(get("tasks/t"), "restored"));
}
END_TEST

START_TEST(whose_task_was_taken_meanwhile_gets_nothing)
{
    resuming();
    w.verify_hangs = true;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\n");
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"2\"}"));
    verified(HF_OK);
    expect("reply 2 ECONFLICT\n");
}
END_TEST

START_TEST(a_write_whose_outcome_is_unknown_is_found_out)
{
    resuming();
    w.fate = LOST[_i];
    ask("a", HF_ASK_RESTORE, "t");
    ignore();
    wait(2000);
    expect("reply 2 OK t seq 2\n"); /* what was verified is not verified again */
    has("tasks/t", "\"restored\":{\"seq\":\"2\"}");
}
END_TEST

START_TEST(a_lease_that_is_lost_meanwhile_is_not_kept_waiting)
{
    resuming();
    w.verify_hangs = true;
    ask("a", HF_ASK_RESTORE, "t");
    expect("verify 2\n");
    lease_is(HF_LEASE_LOST, 0, true);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "reply 2 EAGAIN\n"));
    w.log[0] = '\0';
    verified(HF_OK); /* nobody waits for it */
    expect("");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, the_task_names_what_its_owner_is_given_before_it_has_it);
    tcase_add_test(t, asked_again_nothing_is_written_again);
    tcase_add_test(t, two_that_ask_at_once_are_served_one_after_the_other);
    tcase_add_test(t, what_it_keeps_itself_is_newer);
    tcase_add_test(t, without_checkpoints_there_is_nothing_to_write);
    tcase_add_test(t, poison_and_damage_are_passed_over_and_a_person_told_once);
    tcase_add_test(t, one_that_cannot_be_read_now_is_asked_for_again);
    tcase_add_test(t, a_store_that_hangs_keeps_nobody_waiting_for_ever);
    tcase_add_test(t, who_only_looks_changes_nothing);
    tcase_add_test(t, whose_task_was_taken_meanwhile_gets_nothing);
    tcase_add_loop_test(t, a_write_whose_outcome_is_unknown_is_found_out, 0, COUNT(LOST));
    tcase_add_test(t, a_lease_that_is_lost_meanwhile_is_not_kept_waiting);
}

int main(void)
{
    return run_stories("core/node_restore", add_stories);
}
