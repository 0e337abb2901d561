/* Storms as the engine lives through them: what it knew of etcd before it began. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static void expect_storm(enum hf_storm_state state, const char *why)
{
    struct hf_storm_view view = hf_engine_get_status(engine, now).storm;

    ck_assert_str_eq(hf_storm_state_name(view.state), hf_storm_state_name(state));
    ck_assert_msg(strstr(view.why, why) != NULL, "%s", view.why);
}

START_TEST(who_learns_everything_anew_after_a_restore_still_doubts)
{
    ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_RESET }), HF_OK);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
    }
    sync_engine();
    expect_storm(HF_STORM_PARTIAL, "history");
    pass(30000);
    expect_storm(HF_STORM_NORMAL, "");
}
END_TEST

START_TEST(who_begins_to_lead_after_etcd_changed_its_leader_doubts)
{
    struct hf_event event = { .kind = HF_EVENT_CLUSTER, .cluster = { .raft_term = 5 } };

    ck_assert_int_eq(step(&event), HF_OK);
    expect_storm(HF_STORM_NORMAL, "");
    event.cluster.raft_term = 6;
    ck_assert_int_eq(step(&event), HF_OK);
    lead(); /* the same who led before, in another term */
    expect_storm(HF_STORM_PARTIAL, "leader");
    pass(30000);
    expect_storm(HF_STORM_NORMAL, "");
}
END_TEST

static void raft_term(uint64_t term)
{
    ck_assert_int_eq(
        step(&(struct hf_event){ .kind = HF_EVENT_CLUSTER, .cluster = { .raft_term = term } }),
        HF_OK);
    run_engine();
}

static bool was_alerted(void)
{
    bool alerted = said.data != NULL && strstr(said.data, "again and again; leases") != NULL;

    ignore();
    return alerted;
}

START_TEST(three_leaders_of_etcd_within_three_ttls_are_told_of_once)
{
    raft_term(5); /* the first that is heard of is no change */
    raft_term(6);
    pass(20000);
    raft_term(7);
    ck_assert(!was_alerted());
    expect_storm(HF_STORM_PARTIAL, "a moment ago");
    pass(20000);
    raft_term(7); /* nor is the same again */
    ck_assert(!was_alerted());
    raft_term(8);
    ck_assert(was_alerted());
    expect_storm(HF_STORM_PARTIAL, "leases of dead hosts may not expire");
    for (uint64_t term = 9; term < 20; term++) {
        pass(7500);
        raft_term(term);
        ck_assert(!was_alerted());
    }
}
END_TEST

START_TEST(leaders_of_etcd_that_stay_longer_are_not_told_of)
{
    for (uint64_t term = 5; term < 20; term++) {
        raft_term(term);
        pass(23000); /* two fit into three TTLs, not three */
        ck_assert(!was_alerted());
    }
}
END_TEST

START_TEST(unrest_that_comes_back_after_a_calm_is_told_of_again)
{
    for (uint64_t term = 5; term < 9; term++)
        raft_term(term);
    ck_assert(was_alerted());
    pass(45001);
    for (uint64_t term = 9; term < 11; term++)
        raft_term(term);
    ck_assert(!was_alerted());
    raft_term(11);
    ck_assert(was_alerted());
}
END_TEST

static void survey(bool corrupt)
{
    struct hf_event event = { .kind = HF_EVENT_CLUSTER,
                              .cluster = { .corrupt = corrupt, .agrees = !corrupt } };

    ck_assert_int_eq(step(&event), HF_OK);
    run_engine();
}

/* Not even a death that was seen: what shows it may be what is wrong. */
START_TEST(nothing_is_decided_while_etcd_is_corrupt_and_one_alert_says_so)
{
    task_is_owned("t", "in_progress", "a");
    ignore();
    survey(true);
    ck_assert_ptr_nonnull(
        strstr(said.data, "alert storm: members of etcd have different data"));
    ignore();
    agent_ends("a", "crashed");
    for (int i = 0; i < 60; i++) {
        pass(10000);
        survey(true);
    }
    expect("");
    ck_assert(has("tasks/t", "\"state\":\"in_progress\""));
    ck_assert_str_eq(get("commands/h1/a"), "");
    ck_assert_int_gt(hf_engine_deadline(engine, now),
                     now); /* and it does not turn in circles */
    survey(false);
    pass(10000);
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
    ck_assert(has("commands/h1/a", "\"task\":\"t\""));
}
END_TEST

START_TEST(etcd_that_is_corrupt_again_is_told_of_again)
{
    for (int i = 0; i < 2; i++) {
        survey(true);
        ck_assert_ptr_nonnull(strstr(said.data, "alert storm: members of etcd"));
        ignore();
        survey(false);
        ck_assert_ptr_null(strstr(said.data != NULL ? said.data : "", "alert"));
        ignore();
    }
}
END_TEST

/* The grace of a is over, what follows may happen, and its health says so: then the last host
 * is missed. */
START_TEST(what_was_let_go_and_has_not_happened_waits_when_everybody_is_missed)
{
    struct hf_intent intent = { .kind = HF_INTENT_NONE };
    bool written = false;

    task_is_owned("t", "in_progress", "a");
    ignore();
    expire(0x1);
    pass(8999);
    ignore();
    now++;
    ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_TIME }), HF_OK);
    while (!written) {
        ck_assert_int_eq(hf_engine_next(engine, now, WALL + now - UPTIME, 0x80000000u, &intent),
                         1);
        written = intent.kind == HF_INTENT_WRITE && strcmp(intent.subject, "agent a") == 0;
        take(&intent);
        hf_intent_done(&intent);
    }
    expire(0x2);
    pass(30000);
    expect_storm(HF_STORM_FULL, "");
    ck_assert(has("tasks/t", "\"state\":\"in_progress\""));
}
END_TEST

START_TEST(a_storm_that_goes_on_is_told_of_once_whoever_leads)
{
    expire(0x1);
    expire(0x2);
    pass(5000);
    expect_storm(HF_STORM_FULL, "");
    ck_assert_ptr_nonnull(strstr(said.data, "alert storm: "));
    ignore();
    begin_engine();
    lead();
    pass(5000);
    expect_storm(HF_STORM_FULL, "");
    ck_assert(said.data == NULL || strstr(said.data, "storm: ") == NULL);
    host_joins("h1", 0x11); /* it ends, and that is told of as ever */
    host_joins("h2", 0x12);
    ignore();
    pass(300000);
    expect_storm(HF_STORM_NORMAL, "");
    ck_assert_ptr_nonnull(strstr(said.data, "storm:  (NORMAL: "));
}
END_TEST

START_TEST(a_storm_that_ended_while_nobody_led_does_not_keep_the_next_one_quiet)
{
    expire(0x1);
    expire(0x2);
    pass(5000);
    host_joins("h1", 0x11);
    host_joins("h2", 0x12);
    begin_engine();
    ignore();
    lead();
    pass(30000);
    expect_storm(HF_STORM_NORMAL, "");
    ck_assert_ptr_nonnull(strstr(said.data, "storm:  (NORMAL: "));
    ignore();
    expire(0x11);
    expire(0x12);
    pass(5000);
    expect_storm(HF_STORM_FULL, "");
    ck_assert_ptr_nonnull(strstr(said.data, "alert storm: "));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("storm");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_learns_everything_anew_after_a_restore_still_doubts);
    tcase_add_test(t, nothing_is_decided_while_etcd_is_corrupt_and_one_alert_says_so);
    tcase_add_test(t, etcd_that_is_corrupt_again_is_told_of_again);
    tcase_add_test(t, three_leaders_of_etcd_within_three_ttls_are_told_of_once);
    tcase_add_test(t, leaders_of_etcd_that_stay_longer_are_not_told_of);
    tcase_add_test(t, unrest_that_comes_back_after_a_calm_is_told_of_again);
    tcase_add_test(t, who_begins_to_lead_after_etcd_changed_its_leader_doubts);
    tcase_add_test(t, what_was_let_go_and_has_not_happened_waits_when_everybody_is_missed);
    tcase_add_test(t, a_storm_that_goes_on_is_told_of_once_whoever_leads);
    tcase_add_test(t, a_storm_that_ended_while_nobody_led_does_not_keep_the_next_one_quiet);
    return run("core/engine storms", t);
}
