/* The lease in doubt, lost and found: what stands still, what runs again, what is killed. */
#include "unit/node_fixture.h"

START_TEST(what_runs_stands_still_while_its_lease_is_in_doubt)
{
    running();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    expect("");
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("freeze a#1\n");
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("");
    lease_is(HF_LEASE_HELD, LEASE, false);
    expect("thaw a#1 as 104\n");
}
END_TEST

START_TEST(what_the_keeper_froze_by_itself_is_thawed_with_proof)
{
    running();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    news("a", HF_PROCESS_FROZEN, 0, NULL);
    expect("");
    lease_is(HF_LEASE_HELD, LEASE, false);
    expect("thaw a#1 as 104\n");
}
END_TEST

START_TEST(what_stood_still_for_too_long_is_killed)
{
    running();
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("freeze a#1\n");
    wait(3599999);
    expect("");
    wait(1);
    expect("kill a#1\n");
    has("agents/a/exit", "\"kind\":\"fenced\"");
}
END_TEST

static void running_with(Holdfast__V1__Spec__Fence fence)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    spec.fence = fence;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    settle_in();
    ignore();
}

START_TEST(an_agent_may_want_to_be_killed_instead)
{
    running_with(HOLDFAST__V1__SPEC__FENCE__kill);
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("kill a#1\n");
}
END_TEST

START_TEST(an_agent_may_want_to_run_through_any_outage)
{
    running_with(HOLDFAST__V1__SPEC__FENCE__hold);
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("");
    lease_is(HF_LEASE_LOST, 0, true);
    expire(LEASE);
    wait(3600000 * 2);
    expect("");
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    has("agents/a/live", "\"instanceId\"");
    ck_assert_int_eq(find(ROOT "agents/a/live")->lease, 43);
}
END_TEST

/* Rejoin. */

START_TEST(a_lost_lease_costs_no_process)
{
    running();
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    expect("");
    lease_is(HF_LEASE_HELD, 43, false);
    w.quiet = false;
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 102, text(hosts/h/record) then put "
           "hosts/h/live, "
           "put hosts/h/record\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 103, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "absent(commands/h/a) then put agents/a/live\n"
           "read tasks/\n");
}
END_TEST

START_TEST(what_is_not_registered_any_more_stands_still_soon)
{
    running();
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    wait(999);
    expect("");
    wait(1);
    expect("freeze a#1\n");
    lease_is(HF_LEASE_HELD, 43, false); /* which says nothing about what is not under it */
    expect("thaw a#1 as 107\n");
}
END_TEST

START_TEST(a_task_is_adopted_before_its_owner_runs_again)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("freeze a#1\n");
    lease_is(HF_LEASE_LOST, 0, true);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    w.quiet = false;
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 102, text(hosts/h/record) then put "
           "hosts/h/live, "
           "put hosts/h/record\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 103, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "absent(commands/h/a) then put agents/a/live\n"
           "read tasks/\n"
           "if create(agents/a/live) = 108, lease(agents/a/live) = 2b, mod(tasks/t) = 105, "
           "text(tasks/t) "
           "then put tasks/t\n"
           "thaw a#1 as 108\n");
    has("tasks/t", "\"createRevision\":\"108\"");
    has("tasks/t", "\"state\":\"in_progress\"");
}
END_TEST

START_TEST(a_task_of_the_start_itself_names_no_revision_and_is_adopted_all_the_same)
{
    running();
    w.rev = find(ROOT "agents/a/live")->create_rev - 1;
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"acknowledged\",\"owner\":{"
                   "\"agent\":\"a\",\"incarnation\":{\"leaseId\":\"42\"}}}");
    w.rev = 110;
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    has("tasks/t", "\"createRevision\":\"113\"");
}
END_TEST

START_TEST(tasks_of_others_and_of_lives_long_past_are_left_alone)
{
    running();
    put_owned("old", "in_progress", 41, 50);
    put_owned("same-rev", "in_progress", 41, 104);
    put_owned("over", "completed", LEASE, 104);
    put("tasks/free", TASK_OF("free", "pending", ""));
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    has("tasks/old", "\"leaseId\":\"41\"");
    has("tasks/same-rev", "\"leaseId\":\"41\"");
    has("tasks/over", "\"leaseId\":\"42\"");
}
END_TEST

START_TEST(all_of_its_tasks_or_it_is_killed)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    put_owned("u", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, true);
    expect("freeze a#1\n");
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    w.reads_are_off = true;
    ignore();
    w.reads_are_off = false;
    w.fate = WITHHOLD; /* of the first adoption */
    wait(1000);
    w.log[0] = '\0';
    put("tasks/u", TASK_OF("u", "pending", "")); /* the leader was faster */
    put("tasks/t", TASK_OF("t", "pending", ""));
    arrive();
    expect("kill a#1\n");
    has("agents/a/exit", "\"kind\":\"fenced\"");
}
END_TEST

START_TEST(an_adoption_that_was_not_answered_is_looked_for)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.reads_are_off = true;
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    w.reads_are_off = false;
    w.fate = LOSE_DONE;
    wait(1000);
    w.log[0] = '\0';
    wait(1000);
    expect("thaw a#1 as 108\n");
    has("tasks/t", "\"createRevision\":\"108\"");
}
END_TEST

START_TEST(an_adoption_that_was_refused_is_tried_on_what_is_there)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.reads_are_off = true;
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    w.reads_are_off = false;
    w.fate = WITHHOLD;
    wait(1000);
    w.log[0] = '\0';
    put_owned("t", "in_progress", LEASE, 104); /* somebody has changed a label */
    arrive();
    expect("thaw a#1 as 108\n");
}
END_TEST

START_TEST(a_task_that_was_cancelled_meanwhile_needs_no_adoption)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.reads_are_off = true;
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    w.reads_are_off = false;
    w.fate = WITHHOLD;
    wait(1000);
    w.log[0] = '\0';
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    arrive();
    expect("thaw a#1 as 108\n");
}
END_TEST

START_TEST(a_lease_lost_again_amid_adoption_takes_the_tasks_of_both_lives)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    put_owned("u", "in_progress", LEASE, 104);
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.reads_are_off = true;
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    lease_is(HF_LEASE_LOST, 0, true);
    expire(43);
    put_owned("t", "in_progress", 43, 109); /* one had been adopted */
    w.reads_are_off = false;
    lease_is(HF_LEASE_HELD, 44, false);
    wait(1000);
    has("tasks/t", "\"leaseId\":\"44\"");
    has("tasks/u", "\"leaseId\":\"44\"");
}
END_TEST

START_TEST(a_process_with_too_many_lives_is_killed)
{
    running();
    w.reads_are_off = true;
    for (int64_t lease = 43; lease < 53; lease++) {
        lease_is(HF_LEASE_LOST, 0, false);
        expire(lease - 1);
        lease_is(HF_LEASE_HELD, lease, false);
        wait(1000);
    }
    ck_assert_ptr_nonnull(strstr(w.log, "kill a#1\n"));
}
END_TEST

START_TEST(what_was_replaced_is_killed)
{
    running();
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    put_leased("agents/a/live", "{\"host\":\"i\",\"instanceId\":\"other\"}", 77);
    expect("kill a#1\n");
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    ck_assert_ptr_null(get("agents/a/exit")); /* its life was over already */
    has("agents/a/live", "other");
}
END_TEST

START_TEST(a_command_comes_before_a_rejoin)
{
    running();
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect("kill a#1\n");
    lease_is(HF_LEASE_HELD, 43, false);
    expect("make a#2\nlet go a#2 as 108\n");
}
END_TEST

START_TEST(a_rejoin_that_a_command_refuses_is_not_repeated)
{
    running();
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.mirror_is_off = true;
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "refused"));
    w.log[0] = '\0';
    w.quiet = true;
    list_all();
    expect("kill a#1\nmake a#2\nlet go a#2 as 108\n");
}
END_TEST

START_TEST(an_agent_that_is_not_wanted_any_more_does_not_rejoin)
{
    running();
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    put("wanted/a", "{\"state\":\"stopped\"}");
    expect("kill a#1\n");
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

START_TEST(an_incarnation_that_is_to_end_does_not_escape_into_the_next)
{
    running();
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    put("health/a", "{\"endUpto\":\"104\"}");
    expect("stop a#1 within 10000\n");
    lease_is(HF_LEASE_HELD, 43, false);
    expect("");
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

START_TEST(a_rejoin_waits_for_its_old_key_to_go)
{
    running();
    lease_is(HF_LEASE_LOST, 0, false);
    lease_is(HF_LEASE_HELD, 43, false); /* etcd has not deleted it yet */
    expect("");                         /* the key of the host is ours, too: no alarm */
    ck_assert_int_eq(find(ROOT "agents/a/live")->lease, LEASE);
    expire(LEASE);
    expect("");
    ck_assert_int_eq(find(ROOT "agents/a/live")->lease, 43);
}
END_TEST

START_TEST(a_rejoin_whose_outcome_is_unknown_is_recognised)
{
    running();
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
    w.fate = LOSE_DONE;
    w.spared = 1; /* the host is first */
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    wait(1000);
    expect("thaw a#1 as 107\n");
}
END_TEST

/* Our own keys. */

START_TEST(a_key_of_ours_that_goes_while_the_lease_seems_held_is_a_lost_lease)
{
    running();
    erase("agents/a/live");
    expect("lost 42\n");
    lease_is(HF_LEASE_HELD, LEASE, false); /* a renewal that was under way */
    wait(999);
    expect("");
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    expire(LEASE);
    ignore();
    ck_assert_int_eq(find(ROOT "agents/a/live")->lease, 43);
}
END_TEST

START_TEST(so_is_the_key_of_the_host)
{
    running();
    erase("hosts/h/live");
    expect("lost 42\n");
}
END_TEST

START_TEST(a_key_that_a_list_does_not_have_any_more_is_gone)
{
    running();
    w.mirror_is_off = true;
    erase("agents/a/live");
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    expect("");
    list_all();
    expect("lost 42\n");
}
END_TEST

START_TEST(a_host_key_that_a_list_does_not_have_any_more_is_gone)
{
    running();
    w.mirror_is_off = true;
    erase("hosts/h/live");
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    expect("lost 42\n");
}
END_TEST

START_TEST(a_mirror_that_lags_behind_our_own_write_is_no_loss)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    news("a", HF_PROCESS_HELD, 0, NULL);
    w.mirror_is_off = true;
    expect("let go a#1 as 104\n");
    must((struct hf_event){ .kind = HF_EVENT_SYNCED, .revision = w.rev - 1 });
    expect("");
    list_all();
    expect("");
}
END_TEST

/* A restored etcd. */

START_TEST(after_a_restore_everything_rejoins)
{
    running();
    w.mirror_is_off = true;
    for (size_t i = 0; i < w.pair_count; i++)
        w.pairs[i].create_rev = w.pairs[i].mod_rev = 10 + (int64_t)i;
    w.rev = 50;
    write_pair(ROOT "agents/a/live", "{\"host\":\"h\",\"instanceId\":\"older\"}", 41);
    write_pair(ROOT "hosts/h/live", "{\"bootId\":\"before\"}", 41);
    must((struct hf_event){ .kind = HF_EVENT_RESET });
    expect("lost 42\n");
    lease_is(HF_LEASE_HELD, LEASE, false); /* the session has not heard of it yet */
    expect("");
    lease_is(HF_LEASE_LOST, 0, false);
    list_all();
    lease_is(HF_LEASE_HELD, 43, false);
    wait(20000); /* the ghosts of the backup */
    expect("alert -: another agentd is registered with the name of this host, or was a moment "
           "ago\nfreeze a#1\n");
    expire(41);
    expect("thaw a#1 as 53\n");
}
END_TEST

/* Of a backup that is older than itself: who leads could not start it without a spec. */
START_TEST(a_spec_that_a_restored_etcd_does_not_have_is_written_again)
{
    running();
    w.mirror_is_off = true;
    erase("agents/a/spec");
    expire(LEASE);
    must((struct hf_event){ .kind = HF_EVENT_RESET });
    lease_is(HF_LEASE_LOST, 0, false);
    list_all();
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    has("agents/a/spec", "\"launcher\"");
}
END_TEST

START_TEST(a_life_that_stays_after_a_restore_is_somebody_else)
{
    running();
    must((struct hf_event){ .kind = HF_EVENT_RESET });
    put_leased("agents/a/live", "{\"host\":\"i\",\"instanceId\":\"other\"}", 77);
    list_all();
    lease_is(HF_LEASE_HELD, 43, false);
    wait(44000);
    ignore();
    wait(1000);
    expect("kill a#1\n");
}
END_TEST

/* A link that takes over. */

static const struct {
    const char *health, *log;
} RECOVERED[] = {
    { "{\"takenUpto\":\"103\"}", "thaw a#1 as 109\n" },
    { "{\"takenUpto\":\"104\"}", "kill a#1\n" },
};

START_TEST(a_new_link_goes_on_with_the_same_incarnation)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .pid = 100,
                                     .start_time = 7,
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 104 });
    settle_in();
    expect("");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n");
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
    has("agents/a/exit", "\"createRevision\":\"104\"");
}
END_TEST

START_TEST(a_new_link_knows_what_was_begun_before_it_came)
{
    running();
    put_owned("t", "in_progress", LEASE, 104);
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    expect("");
    lose_lease();
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":1"));
    lease_is(HF_LEASE_HELD, 43, false);
    expect("kill a#1\n");
}
END_TEST

START_TEST(a_new_link_with_a_new_lease_rejoins)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .frozen = true,
                                     .lease = LEASE,
                                     .create_rev = 104 });
    expire(LEASE);
    w.quiet = true;
    list_all();
    lease_is(HF_LEASE_HELD, 43, false);
    expect("thaw a#1 as 107\n");
}
END_TEST

START_TEST(a_new_link_that_does_not_know_what_was_taken_from_a_process_asks)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .frozen = true,
                                     .lease = LEASE,
                                     .create_rev = 104 });
    expire(LEASE);
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":1"));
    put("health/a", RECOVERED[_i].health);
    w.quiet = true;
    list_all();
    lease_is(HF_LEASE_HELD, 43, false);
    expect(RECOVERED[_i].log);
}
END_TEST

/* It may have read the tasks before it heard that the life was over. */
START_TEST(a_new_link_asks_though_it_took_the_old_life_for_its_own)
{
    running();
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":1"));
    put("health/a", "{\"takenUpto\":\"104\"}");
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .frozen = true,
                                     .lease = LEASE,
                                     .create_rev = 104 });
    w.quiet = true;
    list_all();
    lease_is(HF_LEASE_HELD, LEASE, true);
    ignore();
    expire(LEASE);
    expect("lost 42\n");
    lease_is(HF_LEASE_HELD, 43, true);
    expect("kill a#1\n");
}
END_TEST

START_TEST(a_new_link_ends_what_owns_a_task_as_a_life_that_it_never_heard_of)
{
    running();
    put_owned("t", "in_progress", 77, 105);
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    expire(LEASE);
    w.quiet = true;
    list_all();
    lease_is(HF_LEASE_HELD, 43, true);
    ignore();
    has("agents/a/exit", "fenced");
}
END_TEST

START_TEST(a_new_link_does_not_start_again_what_ended_while_there_was_none)
{
    begin();
    take_over((struct hf_node_held){ .started = true });
    settle_in();
    expect("");
    wait(60000);
    expect("");
}
END_TEST

/* A spec that an earlier link wrote and that is not there was removed; another is ours to mend.
 */
START_TEST(a_new_link_does_not_bring_back_what_was_removed)
{
    begin();
    take_over((struct hf_node_held){ .spec_written = true });
    settle_in();
    wait(60000);
    expect("");
    ck_assert_ptr_null(get("agents/a/spec"));
    put("agents/a/spec", "{\"role\":\"another\"}");
    take_over((struct hf_node_held){ .spec_written = true });
    settle_in();
    ignore();
    has("agents/a/spec", "\"role\":\"r\"");
}
END_TEST

START_TEST(a_new_link_leaves_the_spec_of_a_guest_alone)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    begin_with(
        &(struct hf_node_agent_config){
            .name = "a",
            .spec = &spec,
            .foreign = true,
            .held = { .instance_id = "m", .begun = true, .lease = LEASE, .create_rev = 101 } },
        1, NULL);
    put_leased("agents/a/live", "{\"host\":\"h\",\"instanceId\":\"m\"}", LEASE);
    put("agents/a/spec", "{\"role\":\"newer\"}");
    settle_in();
    ignore();
    has("agents/a/spec", "newer");
}
END_TEST

START_TEST(a_process_that_was_made_for_an_earlier_link_is_used)
{
    begin();
    take_over((struct hf_node_held){ .instance_id = "made" });
    settle_in();
    expect("let go amade as 104\n");
}
END_TEST

static void registered_and_not_let_go(void)
{
    begin();
    take_over((struct hf_node_held){ .instance_id = "made" });
    put_leased("agents/a/live", "{\"host\":\"h\",\"instanceId\":\"made\"}", LEASE);
}

START_TEST(a_process_that_an_earlier_link_registered_and_did_not_let_go_is_let_go)
{
    registered_and_not_let_go();
    settle_in();
    expect("let go amade as 101\n");
}
END_TEST

/* With what the start gave it, and nothing that other lives had. */
START_TEST(what_an_earlier_link_registered_with_a_task_begins_with_it)
{
    registered_and_not_let_go();
    put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"acknowledged\","
                   "\"restored\":{\"seq\":\"3\"},\"owner\":{\"agent\":\"a\","
                   "\"incarnation\":{\"leaseId\":\"42\",\"createRevision\":\"101\"}}}");
    put_owned("u", "acknowledged", LEASE, 99);
    settle_in();
    expect("let go amade as 101 with t from 3\n");
}
END_TEST

START_TEST(what_an_earlier_link_registered_and_nobody_wants_is_ended)
{
    registered_and_not_let_go();
    put("wanted/a", "{\"state\":\"stopped\"}");
    settle_in();
    expect("discard amade\n");
    has("agents/a/exit", "terminated");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, what_runs_stands_still_while_its_lease_is_in_doubt);
    tcase_add_test(t, what_the_keeper_froze_by_itself_is_thawed_with_proof);
    tcase_add_test(t, what_stood_still_for_too_long_is_killed);
    tcase_add_test(t, an_agent_may_want_to_be_killed_instead);
    tcase_add_test(t, an_agent_may_want_to_run_through_any_outage);
    tcase_add_test(t, a_lost_lease_costs_no_process);
    tcase_add_test(t, what_is_not_registered_any_more_stands_still_soon);
    tcase_add_test(t, a_task_is_adopted_before_its_owner_runs_again);
    tcase_add_test(t, a_task_of_the_start_itself_names_no_revision_and_is_adopted_all_the_same);
    tcase_add_test(t, tasks_of_others_and_of_lives_long_past_are_left_alone);
    tcase_add_test(t, all_of_its_tasks_or_it_is_killed);
    tcase_add_test(t, an_adoption_that_was_not_answered_is_looked_for);
    tcase_add_test(t, an_adoption_that_was_refused_is_tried_on_what_is_there);
    tcase_add_test(t, a_task_that_was_cancelled_meanwhile_needs_no_adoption);
    tcase_add_test(t, a_lease_lost_again_amid_adoption_takes_the_tasks_of_both_lives);
    tcase_add_test(t, a_process_with_too_many_lives_is_killed);
    tcase_add_test(t, what_was_replaced_is_killed);
    tcase_add_test(t, a_command_comes_before_a_rejoin);
    tcase_add_test(t, a_rejoin_that_a_command_refuses_is_not_repeated);
    tcase_add_test(t, an_agent_that_is_not_wanted_any_more_does_not_rejoin);
    tcase_add_test(t, an_incarnation_that_is_to_end_does_not_escape_into_the_next);
    tcase_add_test(t, a_rejoin_waits_for_its_old_key_to_go);
    tcase_add_test(t, a_rejoin_whose_outcome_is_unknown_is_recognised);
    tcase_add_test(t, a_key_of_ours_that_goes_while_the_lease_seems_held_is_a_lost_lease);
    tcase_add_test(t, so_is_the_key_of_the_host);
    tcase_add_test(t, a_key_that_a_list_does_not_have_any_more_is_gone);
    tcase_add_test(t, a_host_key_that_a_list_does_not_have_any_more_is_gone);
    tcase_add_test(t, a_mirror_that_lags_behind_our_own_write_is_no_loss);
    tcase_add_test(t, after_a_restore_everything_rejoins);
    tcase_add_test(t, a_spec_that_a_restored_etcd_does_not_have_is_written_again);
    tcase_add_test(t, a_life_that_stays_after_a_restore_is_somebody_else);
    tcase_add_test(t, a_new_link_goes_on_with_the_same_incarnation);
    tcase_add_test(t, a_new_link_knows_what_was_begun_before_it_came);
    tcase_add_test(t, a_new_link_with_a_new_lease_rejoins);
    tcase_add_loop_test(t, a_new_link_that_does_not_know_what_was_taken_from_a_process_asks, 0,
                        COUNT(RECOVERED));
    tcase_add_test(t, a_new_link_asks_though_it_took_the_old_life_for_its_own);
    tcase_add_test(t, a_new_link_ends_what_owns_a_task_as_a_life_that_it_never_heard_of);
    tcase_add_test(t, a_new_link_does_not_start_again_what_ended_while_there_was_none);
    tcase_add_test(t, a_new_link_does_not_bring_back_what_was_removed);
    tcase_add_test(t, a_new_link_leaves_the_spec_of_a_guest_alone);
    tcase_add_test(t, a_process_that_was_made_for_an_earlier_link_is_used);
    tcase_add_test(t, a_process_that_an_earlier_link_registered_and_did_not_let_go_is_let_go);
    tcase_add_test(t, what_an_earlier_link_registered_with_a_task_begins_with_it);
    tcase_add_test(t, what_an_earlier_link_registered_and_nobody_wants_is_ended);
}

int main(void)
{
    return run_stories("core/node_fence", add_stories);
}
