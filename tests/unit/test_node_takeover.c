/* A link that takes over: what the keeper held meanwhile goes on, begins, or is ended. */
#include "unit/node_fixture.h"

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

/* Whoever looks for a host that can start something looks there. What a person said stays. */
START_TEST(a_new_link_with_other_settings_says_what_its_host_is_by_now)
{
    running();
    put("hosts/h/record", "{\"launchers\":[\"old\"],\"leaseId\":\"42\",\"cordoned\":true}");
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .pid = 100,
                                     .start_time = 7,
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 104 });
    settle_in();
    run_node();
    ignore();
    has("hosts/h/record", "\"launchers\":[\"sh\"]");
    has("hosts/h/record", "\"cordoned\":true");
    put("hosts/h/record", "{\"launchers\":[\"other\"],\"leaseId\":\"42\"}");
    run_node();
    expect(""); /* it was told once; what somebody else makes of it is not fought over */
}
END_TEST

/* An etcd that was restored has not come as far as the life that the keeper knows of, and tells
 * of no end of it. */

static void take_over_in_a_restored_etcd(void)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 500,
                                     .started = true,
                                     .spec_written = true });
    erase("agents/a/live");
}

START_TEST(a_new_link_registers_a_life_again_that_etcd_has_forgotten)
{
    take_over_in_a_restored_etcd();
    settle_in();
    expect("lost 42\n");
    lease_is(HF_LEASE_HELD, 43, false);
    run_node();
    has("agents/a/live", w.ids[0]);
}
END_TEST

START_TEST(a_new_link_serves_a_start_though_etcd_has_forgotten_the_life_before)
{
    take_over_in_a_restored_etcd();
    news("a", HF_PROCESS_ENDED, 1, NULL);
    settle_in();
    ignore();
    put_leased("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}", 0);
    wait(3000);
    ck_assert_ptr_nonnull(strstr(w.log, "let go a#2"));
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

/* It was told so by the link before it, which is gone. */
START_TEST(a_new_link_knows_who_said_goodbye)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 104,
                                     .leaving = true,
                                     .leave_text = "done for today" });
    settle_in();
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 EFENCED\n");
    news("a", HF_PROCESS_ENDED, 0, NULL);
    expect("");
    has("agents/a/exit", "\"kind\":\"left\"");
    has("agents/a/exit", "done for today");
}
END_TEST

START_TEST(who_said_goodbye_to_another_link_and_stays_is_ended)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 104,
                                     .leaving = true });
    settle_in();
    wait(29999);
    expect("");
    wait(1);
    expect("stop a#1 within 10000\n");
    has("agents/a/exit", "\"kind\":\"left\"");
}
END_TEST

/* How far the task was stands there with the time of it; nobody has said it to this link. */
START_TEST(a_new_link_keeps_the_progress_that_was_written)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;

    running();
    put("agents/a/report", "{\"incarnation\":{\"leaseId\":\"42\",\"createRevision\":\"104\"},"
                           "\"progress\":{\"percent\":40,\"note\":\"nearly\",\"updated\":"
                           "\"2023-11-14T22:13:20Z\"}}");
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    report.phase = (char *)"thinking";
    ask_report("a", HF_ASK_REPORT, NULL, &report);
    expect("reply 1 OK\n");
    has("agents/a/report", "\"phase\":\"thinking\"");
    has("agents/a/report",
        "\"percent\":40,\"note\":\"nearly\",\"updated\":\"2023-11-14T22:13:20Z\"");
}
END_TEST

START_TEST(what_was_suspected_stands_until_a_new_link_knows_better)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;

    running();
    put("agents/a/report",
        "{\"incarnation\":{\"leaseId\":\"42\",\"createRevision\":\"104\"},"
        "\"suspicion\":{\"kind\":\"ping\",\"why\":\"a ping is not answered\"}}");
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    wait(100000);
    has("agents/a/report", "a ping is not answered");
    report.phase = (char *)"thinking";
    ask_report("a", HF_ASK_REPORT, NULL, &report);
    ignore();
    has("agents/a/report", "\"phase\":\"thinking\"");
    has("agents/a/report", "a ping is not answered");
    news("a", HF_PROCESS_CLEARED, 0, NULL);
    wait(1000);
    ck_assert_ptr_null(strstr(get("agents/a/report"), "suspicion"));
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

/* The link before it had a process made, because it was told of the removal in two parts. */
START_TEST(a_new_link_does_not_start_who_was_held_when_it_was_removed)
{
    begin();
    take_over((struct hf_node_held){ .instance_id = "held-one", .spec_written = true });
    settle_in();
    wait(60000);
    expect("discard aheld-one\n");
    ck_assert_ptr_null(get("agents/a/spec"));
    ck_assert_ptr_null(get("agents/a/live"));
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

/* What a Txn of a dead link left under the lease, of whom this link knows nothing. */

static void find_ghost(const char *agent, int64_t lease)
{
    char key[100];

    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    put_leased(key, "{\"host\":\"h\",\"instanceId\":\"ghost\"}", lease);
}

/* The mirror follows the ranges as they are now. */
static void follow(void)
{
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    run_node();
}

START_TEST(a_guest_that_a_dead_link_registers_late_is_reaped)
{
    uint64_t version;

    begin();
    settle_in();
    ignore();
    version = hf_node_get_ranges_version(w.node);
    find_ghost("b", LEASE);
    wait(4999);
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
    wait(1);
    ck_assert_uint_gt(hf_node_get_ranges_version(w.node), version);
    follow();
    ck_assert_ptr_null(get("agents/b/live"));
    expect(""); /* and nothing was made for it */
}
END_TEST

/* Whoever wrote it: we have no process of that agent, and not one without a name, either. */
START_TEST(a_stranger_that_names_no_process_is_reaped)
{
    begin();
    settle_in();
    ignore();
    put_leased("agents/b/live", "{}", LEASE);
    wait(5000);
    follow();
    ck_assert_ptr_null(get("agents/b/live"));
    expect("");
}
END_TEST

/* However late: it is looked for again and again, also after a look that failed. */
START_TEST(a_guest_that_is_registered_after_the_first_look_is_reaped)
{
    begin();
    settle_in();
    wait(6000);
    ck_assert_uint_eq(w.looks, 1);
    find_ghost("b", LEASE);
    w.reads_are_off = true;
    wait(30000);
    ck_assert_uint_eq(w.looks, 2);
    w.reads_are_off = false;
    wait(30000);
    ck_assert_uint_eq(w.looks, 3);
    follow();
    ck_assert_ptr_null(get("agents/b/live"));
    wait(300000);
    ck_assert_uint_eq(w.looks, 13);
}
END_TEST

/* Neither what is known, nor what hangs on the lease of another host, nor what is no agent. */
START_TEST(only_a_stranger_under_our_own_lease_is_looked_after)
{
    uint64_t version;

    running();
    version = hf_node_get_ranges_version(w.node);
    find_ghost("b", 77);
    wait(60000);
    expect("");
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
    ck_assert_ptr_nonnull(get("agents/b/live"));
    has("agents/a/live", w.ids[0]);
}
END_TEST

/* What is deleted is the very key that was seen. One that took its place meanwhile is not, here
 * of the agent on another host, where it is well. */
START_TEST(what_was_registered_since_a_ghost_was_seen_is_left_alone)
{
    begin();
    settle_in();
    ignore();
    find_ghost("b", LEASE);
    wait(5000);
    w.fate = WITHHOLD;
    follow();
    ck_assert_uint_ne(w.withheld, 0);
    erase("agents/b/live");
    find_ghost("b", 77);
    arrive();
    wait(60000);
    ck_assert_ptr_nonnull(get("agents/b/live"));
}
END_TEST

/* Likewise where only one of the two has changed, its life or the lease that it hangs on. */
START_TEST(a_ghost_is_deleted_for_its_life_and_its_lease)
{
    static const enum hf_guard WHAT[] = { HF_GUARD_CREATE, HF_GUARD_LEASE };
    int64_t expected[2] = { 0, LEASE };

    begin();
    settle_in();
    ignore();
    find_ghost("b", LEASE);
    expected[0] = find(ROOT "agents/b/live")->create_rev;
    wait(5000);
    w.fate = WITHHOLD;
    follow();
    ck_assert_uint_eq(w.plan.write_count, 1);
    ck_assert_uint_eq(w.plan.guard_count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_str_eq(w.plan.guards[i].key, ROOT "agents/b/live");
        ck_assert_int_eq(w.plan.guards[i].what, WHAT[i]);
        ck_assert_int_eq(w.plan.guards[i].value, expected[i]);
    }
}
END_TEST

/* Between the question and its answer the agent was started here, and is well. */
START_TEST(who_begins_here_while_it_is_looked_is_no_ghost)
{
    struct hf_intent look;
    uint64_t version;

    begin();
    settle_in();
    ignore();
    find_ghost("b", LEASE);
    w.now += 5000;
    ck_assert_int_eq(next_intent(&look), 1);
    ck_assert_int_eq(look.read.lease, LEASE);
    erase("agents/b/live");
    put("agents/b/spec", "{\"role\":\"r\",\"launcher\":\"sh\"}");
    put("commands/h/b", "{\"id\":\"1\",\"host\":\"h\"}");
    follow();
    has("agents/b/live", instance("b"));
    ignore();
    version = hf_node_get_ranges_version(w.node);
    on_look(&look);
    wait(120000);
    expect("");
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
    has("agents/b/live", instance("b"));
}
END_TEST

/* An answer about a lease that was lost meanwhile says nothing about the next. */
START_TEST(what_hung_on_a_lease_that_is_lost_is_nothing_to_us)
{
    struct hf_intent intent;
    uint64_t version;

    begin();
    settle_in();
    ignore();
    find_ghost("b", LEASE);
    w.now += 5000;
    ck_assert_int_eq(next_intent(&intent), 1);
    ck_assert_int_eq(intent.read.lease, LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    version = hf_node_get_ranges_version(w.node);
    on_look(&intent);
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
}
END_TEST

/* There is room for two guests. */
static void begin_with_little_room(void)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_policy policy = hf_node_policy_default();

    policy.max_guests = 2;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, &policy);
    settle_in();
    ignore();
}

/* The others are found when those have gone. */
START_TEST(more_ghosts_than_there_is_room_for_are_reaped_one_after_the_other)
{
    begin_with_little_room();
    find_ghost("b", LEASE);
    find_ghost("c", LEASE);
    find_ghost("d", LEASE);
    wait(5000);
    ck_assert_ptr_null(hf_node_get_agent(w.node, 3));
    follow();
    ck_assert_int_eq((get("agents/b/live") != NULL) + (get("agents/c/live") != NULL) +
                         (get("agents/d/live") != NULL),
                     1);
    wait(30000);
    follow();
    ck_assert(get("agents/b/live") == NULL && get("agents/c/live") == NULL &&
              get("agents/d/live") == NULL);
}
END_TEST

START_TEST(a_ghost_that_could_not_be_reaped_yet_is_not_forgotten_for_a_guest)
{
    begin_with_little_room();
    find_ghost("b", LEASE);
    find_ghost("c", LEASE);
    wait(5000);
    w.fate = FULL;
    follow();
    put("commands/h/d", "{\"id\":\"1\",\"host\":\"h\"}");
    ck_assert_str_eq(hf_node_get_agent(w.node, 1), "b");
    ck_assert_str_eq(hf_node_get_agent(w.node, 2), "c");
    w.fate = COMMIT;
    wait(2000);
    ck_assert(get("agents/b/live") == NULL && get("agents/c/live") == NULL);
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

/* One has ended, its end was written by the link before, which had made its successor and died
 * when it sent the start: who knows whether that came to pass. */
static void ended_with_a_spare(bool registered)
{
    running();
    take_over((struct hf_node_held){ .instance_id = w.ids[0],
                                     .begun = true,
                                     .lease = LEASE,
                                     .create_rev = 104,
                                     .started = true,
                                     .spec_written = true,
                                     .spare_id = "spare",
                                     .spare_pid = 101 });
    news("a", HF_PROCESS_ENDED, 1, NULL);
    erase("agents/a/live");
    if (registered)
        put_leased("agents/a/live", "{\"host\":\"h\",\"instanceId\":\"spare\"}", LEASE);
}

START_TEST(a_spare_that_an_earlier_link_registered_is_let_go)
{
    ended_with_a_spare(true);
    settle_in();
    expect("let go aspare as 106\n");
}
END_TEST

START_TEST(a_spare_that_nobody_registered_is_discarded_after_a_while)
{
    ended_with_a_spare(false);
    settle_in();
    expect("");
    wait(999);
    expect("");
    wait(1);
    expect("discard aspare\n");
}
END_TEST

START_TEST(a_spare_serves_the_start_that_is_ordered)
{
    ended_with_a_spare(false);
    settle_in();
    ignore();
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect("let go aspare as 108\n");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_spare_that_an_earlier_link_registered_is_let_go);
    tcase_add_test(t, a_spare_that_nobody_registered_is_discarded_after_a_while);
    tcase_add_test(t, a_spare_serves_the_start_that_is_ordered);
    tcase_add_test(t, a_new_link_goes_on_with_the_same_incarnation);
    tcase_add_test(t, a_new_link_with_other_settings_says_what_its_host_is_by_now);
    tcase_add_test(t, a_new_link_knows_what_was_begun_before_it_came);
    tcase_add_test(t, a_new_link_knows_who_said_goodbye);
    tcase_add_test(t, who_said_goodbye_to_another_link_and_stays_is_ended);
    tcase_add_test(t, a_new_link_keeps_the_progress_that_was_written);
    tcase_add_test(t, what_was_suspected_stands_until_a_new_link_knows_better);
    tcase_add_test(t, a_new_link_registers_a_life_again_that_etcd_has_forgotten);
    tcase_add_test(t, a_new_link_serves_a_start_though_etcd_has_forgotten_the_life_before);
    tcase_add_test(t, a_new_link_with_a_new_lease_rejoins);
    tcase_add_loop_test(t, a_new_link_that_does_not_know_what_was_taken_from_a_process_asks, 0,
                        COUNT(RECOVERED));
    tcase_add_test(t, a_new_link_asks_though_it_took_the_old_life_for_its_own);
    tcase_add_test(t, a_new_link_ends_what_owns_a_task_as_a_life_that_it_never_heard_of);
    tcase_add_test(t, a_new_link_does_not_start_again_what_ended_while_there_was_none);
    tcase_add_test(t, a_new_link_does_not_bring_back_what_was_removed);
    tcase_add_test(t, a_new_link_does_not_start_who_was_held_when_it_was_removed);
    tcase_add_test(t, a_new_link_leaves_the_spec_of_a_guest_alone);
    tcase_add_test(t, a_guest_that_a_dead_link_registers_late_is_reaped);
    tcase_add_test(t, a_stranger_that_names_no_process_is_reaped);
    tcase_add_test(t, a_guest_that_is_registered_after_the_first_look_is_reaped);
    tcase_add_test(t, only_a_stranger_under_our_own_lease_is_looked_after);
    tcase_add_test(t, what_was_registered_since_a_ghost_was_seen_is_left_alone);
    tcase_add_test(t, a_ghost_is_deleted_for_its_life_and_its_lease);
    tcase_add_test(t, who_begins_here_while_it_is_looked_is_no_ghost);
    tcase_add_test(t, what_hung_on_a_lease_that_is_lost_is_nothing_to_us);
    tcase_add_test(t, more_ghosts_than_there_is_room_for_are_reaped_one_after_the_other);
    tcase_add_test(t, a_ghost_that_could_not_be_reaped_yet_is_not_forgotten_for_a_guest);
    tcase_add_test(t, a_process_that_was_made_for_an_earlier_link_is_used);
    tcase_add_test(t, a_process_that_an_earlier_link_registered_and_did_not_let_go_is_let_go);
    tcase_add_test(t, what_an_earlier_link_registered_with_a_task_begins_with_it);
    tcase_add_test(t, what_an_earlier_link_registered_and_nobody_wants_is_ended);
}

int main(void)
{
    return run_stories("core/node_takeover", add_stories);
}
