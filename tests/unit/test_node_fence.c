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

/* Whoever looks at it takes a report of the life before for nobody's: what it announced, say,
 * would be unknown until the next time that it is written anyhow. */
START_TEST(what_it_said_is_written_for_its_next_life_at_once)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    char life[40];

    report.state = HOLDFAST__V1__AGENT_STATE__VALUE__waiting;
    running();
    ask_report("a", HF_ASK_REPORT, NULL, &report);
    ignore();
    has("agents/a/report", "\"createRevision\":\"104\"");
    wait(5000);
    lease_is(HF_LEASE_LOST, 0, false);
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    (void)snprintf(life, sizeof life, "\"createRevision\":\"%lld\"",
                   (long long)find(ROOT "agents/a/live")->create_rev);
    has("agents/a/report", life);
    has("agents/a/report", "\"state\":\"waiting\"");
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

/* a cannot rejoin: its old key stays. The lease can be proven for b all the same, or b would
 * stand still for as long as a does. */
START_TEST(one_that_cannot_rejoin_keeps_nobody_else_waiting)
{
    static const Holdfast__V1__Spec__Fence FENCES[] = { HOLDFAST__V1__SPEC__FENCE__freeze,
                                                        HOLDFAST__V1__SPEC__FENCE__hold };
    Holdfast__V1__Spec first = HOLDFAST__V1__SPEC__INIT, other = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_key keys[4];

    first.role = other.role = (char *)"r";
    first.launcher = other.launcher = (char *)"sh";
    first.fence = FENCES[_i];
    begin_with((struct hf_node_agent_config[]){ { .name = "a", .spec = &first },
                                                { .name = "b", .spec = &other } },
               2, NULL);
    settle_in();
    ignore();
    lease_is(HF_LEASE_LOST, 0, true);
    run_node();
    ck_assert_int_eq(hf_node_get_keys(w.node, 43, keys, 4), HF_EAGAIN);
    erase("hosts/h/live");
    erase("agents/b/live");
    lease_is(HF_LEASE_HELD, 43, true);
    ignore();
    ck_assert_int_eq(find(ROOT "agents/a/live")->lease, LEASE);
    ck_assert_int_eq(hf_node_get_keys(w.node, 43, keys, 4), 2);
    ck_assert_str_eq(keys[0].key.name, "h");
    ck_assert_str_eq(keys[1].key.name, "b");
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "thaw b"));
    ck_assert_ptr_null(strstr(w.log, "thaw a"));
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

/* All that is ever told: etcd was restored to before our own write, and has gone on since. */
START_TEST(a_later_life_is_somebody_else_however_old_the_list_is)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    news("a", HF_PROCESS_HELD, 0, NULL);
    w.mirror_is_off = true;
    expect("let go a#1 as 104\n");
    must((struct hf_event){ .kind = HF_EVENT_SYNCED, .revision = w.rev - 1 });
    erase("agents/a/live");
    expect("");
    w.mirror_is_off = false;
    put_leased("agents/a/live", "{\"host\":\"i\",\"instanceId\":\"other\"}", 77);
    expect("kill a#1\nlost 42\n");
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

static void add_stories(TCase *t)
{
    tcase_add_test(t, what_runs_stands_still_while_its_lease_is_in_doubt);
    tcase_add_test(t, what_the_keeper_froze_by_itself_is_thawed_with_proof);
    tcase_add_test(t, what_stood_still_for_too_long_is_killed);
    tcase_add_test(t, an_agent_may_want_to_be_killed_instead);
    tcase_add_test(t, an_agent_may_want_to_run_through_any_outage);
    tcase_add_test(t, a_lost_lease_costs_no_process);
    tcase_add_test(t, what_it_said_is_written_for_its_next_life_at_once);
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
    tcase_add_loop_test(t, one_that_cannot_rejoin_keeps_nobody_else_waiting, 0, 2);
    tcase_add_test(t, a_rejoin_whose_outcome_is_unknown_is_recognised);
    tcase_add_test(t, a_key_of_ours_that_goes_while_the_lease_seems_held_is_a_lost_lease);
    tcase_add_test(t, so_is_the_key_of_the_host);
    tcase_add_test(t, a_key_that_a_list_does_not_have_any_more_is_gone);
    tcase_add_test(t, a_host_key_that_a_list_does_not_have_any_more_is_gone);
    tcase_add_test(t, a_mirror_that_lags_behind_our_own_write_is_no_loss);
    tcase_add_test(t, a_later_life_is_somebody_else_however_old_the_list_is);
    tcase_add_test(t, after_a_restore_everything_rejoins);
    tcase_add_test(t, a_spec_that_a_restored_etcd_does_not_have_is_written_again);
    tcase_add_test(t, a_life_that_stays_after_a_restore_is_somebody_else);
}

int main(void)
{
    return run_stories("core/node_fence", add_stories);
}
