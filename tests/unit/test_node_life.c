/* The life of an agent: it is started, it dies, and what is known of that. */
#include "unit/node_fixture.h"

START_TEST(an_agentd_that_begins_registers_its_host_and_starts_its_agents)
{
    begin();
    expect("");
    lease_is(HF_LEASE_HELD, LEASE, false);
    expect(""); /* nobody has told it anything */
    list_all();
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 0 then put hosts/h/live, "
           "put hosts/h/record\n"
           "if mod(agents/a/spec) = 0 then put agents/a/spec\n"
           "make a#1\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 102, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "absent(commands/h/a) then put agents/a/live\n"
           "let go a#1 as 103\n");
    has("hosts/h/live", "\"bootId\":\"boot\"");
    has("hosts/h/record", "\"leaseId\":\"42\"");
    has("agents/a/live", "\"pid\":100");
    has("agents/a/live", "\"ttl\":\"15s\"");
    wait(60000);
    expect("");
}
END_TEST

START_TEST(without_a_lease_nothing_begins)
{
    begin();
    list_all();
    expect("");
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 0 then put hosts/h/live, "
           "put hosts/h/record\n");
    lease_is(HF_LEASE_HELD, LEASE, false);
    w.quiet = true;
    expect("make a#1\nlet go a#1 as 103\n");
}
END_TEST

START_TEST(a_lease_that_nobody_has_proven_lately_is_not_held)
{
    begin();
    settle_in();
    w.now += 10000; /* and the session has said nothing */
    expect("");
    lease_is(HF_LEASE_HELD, LEASE, false);
    expect("make a#1\nlet go a#1 as 104\n");
}
END_TEST

START_TEST(a_program_does_not_begin_when_the_lease_was_not_held_any_more)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    w.fate = WITHHOLD;
    news("a", HF_PROCESS_HELD, 0, NULL);
    ignore();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    arrive();
    expect("");
    lease_is(HF_LEASE_HELD, LEASE, false);
    expect("let go a#1 as 104\n");
}
END_TEST

START_TEST(a_process_whose_registration_is_refused_is_discarded)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    put("wanted/a", "{\"state\":\"stopped\"}");
    news("a", HF_PROCESS_HELD, 0, NULL);
    expect("");
    wait(2000);
    expect("discard a#1\n");
    ck_assert_ptr_null(get("agents/a/live"));
    put("wanted/a", "{\"state\":\"running\"}");
    expect("make a#2\n");
}
END_TEST

START_TEST(a_start_whose_outcome_is_unknown_is_held_until_etcd_shows_it)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    w.mirror_is_off = true;
    w.fate = LOSE_DONE;
    news("a", HF_PROCESS_HELD, 0, NULL);
    ignore();
    expect("");
    list_all();
    expect("let go a#1 as 104\n");
}
END_TEST

START_TEST(a_start_that_did_not_arrive_is_sent_again_with_the_same_process)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    w.fate = LOSE;
    news("a", HF_PROCESS_HELD, 0, NULL);
    ignore();
    expect("");
    wait(1000);
    expect("let go a#1 as 104\n");
}
END_TEST

START_TEST(a_late_copy_of_a_start_that_was_given_up_is_reaped)
{
    begin();
    settle_in();
    w.keeper_is_off = true;
    expect("make a#1\n");
    w.fate = WITHHOLD;
    news("a", HF_PROCESS_HELD, 0, NULL);
    run_node();
    w.log[0] = '\0';
    answer_write(w.withheld, HF_OUTCOME_UNKNOWN, HF_ETIMEOUT);
    put_leased("commands/h/a", "{\"id\":\"1\"}", 0); /* so that it would be refused */
    erase("commands/h/a");
    w.keeper_is_off = true;
    news("a", HF_PROCESS_ENDED, 1, NULL); /* before its program began */
    wait(1000);
    expect("alert a: its process ended before its program began\n");
    ck_assert(commit(&w.plan)); /* now it arrives */
    hf_plan_done(&w.plan);
    w.withheld = 0;
    w.quiet = false;
    expect("if create(agents/a/live) = 106, lease(agents/a/live) = 2a then delete "
           "agents/a/live\n");
}
END_TEST

/* Deaths. */

START_TEST(a_death_is_written_with_its_evidence_and_frees_the_name)
{
    running();
    w.quiet = false;
    w.now += 5000;
    news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, 3, "exit status 3");
    expect("if create(agents/a/live) = 104, lease(agents/a/live) = 2a then put agents/a/exit, "
           "delete agents/a/live\n");
    has("agents/a/exit", "\"kind\":\"crashed\"");
    has("agents/a/exit", "\"status\":3");
    has("agents/a/exit", "\"createRevision\":\"104\"");
    has("agents/a/exit", "\"text\":\"exit status 3\"");
    wait(3600000);
    expect(""); /* whoever leads decides about a restart */
}
END_TEST

static const struct {
    hf_ms lived;
    bool ready;
    int status;
    const char *kind;
} DEATHS[] = {
    { 500, false, 1, "start_failed" }, { 500, true, 1, "crashed" },
    { 500, false, 0, "finished" },     { 1001, false, 1, "crashed" },
    { 1001, false, 0, "finished" },
};

START_TEST(what_kind_of_death_it_was)
{
    char kind[64];

    running();
    w.now += DEATHS[_i].lived;
    lease_is(HF_LEASE_HELD, LEASE, false);
    if (DEATHS[_i].ready)
        news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, DEATHS[_i].status, NULL);
    ignore();
    (void)snprintf(kind, sizeof kind, "\"kind\":\"%s\"", DEATHS[_i].kind);
    has("agents/a/exit", kind);
}
END_TEST

static const struct {
    Holdfast__V1__Exit__Kind kind;
    int signal;
    bool young; /* it has not said that it is ready */
    const char *written;
} SEEN[] = {
    { HOLDFAST__V1__EXIT__KIND__oom, 9, false, "\"kind\":\"oom\"" },
    { HOLDFAST__V1__EXIT__KIND__frozen, 9, false, "\"kind\":\"frozen\"" },
    { HOLDFAST__V1__EXIT__KIND__unknown, 11, false, "\"kind\":\"crashed\"" },
    { HOLDFAST__V1__EXIT__KIND__unknown, 11, true, "\"kind\":\"start_failed\"" },
    { HOLDFAST__V1__EXIT__KIND__terminated, 15, true, "\"kind\":\"terminated\"" },
    { HOLDFAST__V1__EXIT__KIND__fenced, 9, true, "\"kind\":\"fenced\"" },
};

START_TEST(what_the_keeper_knows_of_a_death_counts)
{
    char id[32];

    running();
    if (!SEEN[_i].young)
        news("a", HF_PROCESS_READY, 0, NULL);
    (void)snprintf(id, sizeof id, "%s", instance("a"));
    must((struct hf_event){ .kind = HF_EVENT_PROCESS,
                            .process = { .agent = "a",
                                         .instance_id = id,
                                         .news = HF_PROCESS_ENDED,
                                         .kind = SEEN[_i].kind,
                                         .signal = SEEN[_i].signal } });
    ignore();
    has("agents/a/exit", SEEN[_i].written);
}
END_TEST

START_TEST(news_of_others_and_of_what_was_before_mean_nothing)
{
    running();
    news_of("nobody", "x", HF_PROCESS_ENDED, 1, NULL);
    news_of("a", "another", HF_PROCESS_ENDED, 1, NULL);
    news("a", HF_PROCESS_HELD, 0, NULL);
    news("a", HF_PROCESS_FAILED, 0, NULL);
    expect("");
    put("wanted/a", "{\"state\":\"stopped\"}");
    ignore();
    news_of("a", "", HF_PROCESS_ENDED, 1, NULL); /* there is none */
    expect("");
}
END_TEST

START_TEST(an_unkillable_process_that_never_began_is_none)
{
    begin();
    w.keeper_is_off = true;
    settle_in();
    expect("make a#1\n");
    news("a", HF_PROCESS_UNKILLABLE, 0, NULL);
    expect("");
    news("a", HF_PROCESS_FAILED, 0, "");
    expect("alert a: its process could not be made\n");
}
END_TEST

START_TEST(an_end_is_written_until_it_is_there)
{
    running();
    w.fate = LOSE;
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
    ck_assert_ptr_nonnull(get("agents/a/live"));
    wait(1000);
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

START_TEST(an_end_that_was_written_unheard_is_not_a_lost_lease)
{
    running();
    w.fate = LOSE_DONE;
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
    wait(5000);
    expect("");
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

START_TEST(an_end_is_not_written_when_the_life_is_gone_anyway)
{
    running();
    lease_is(HF_LEASE_LOST, 0, false);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    expect("");
    expire(LEASE);
    lease_is(HF_LEASE_HELD, 43, false);
    w.quiet = false;
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 102, text(hosts/h/record) then put "
           "hosts/h/live, "
           "put hosts/h/record\n");
    ck_assert_ptr_null(get("agents/a/exit"));
}
END_TEST

/* Ending. */

START_TEST(an_agent_that_is_wanted_stopped_is_asked_to_end)
{
    running();
    put("wanted/a", "{\"state\":\"stopped\"}");
    expect("stop a#1 within 10000\n");
    has("agents/a/exit", "\"kind\":\"terminated\"");
    wait(3600000);
    expect("");
}
END_TEST

START_TEST(an_order_ends_the_incarnations_up_to_it_and_no_later_one)
{
    running();
    put("wanted/a", "{\"endUpto\":\"103\"}");
    expect("");
    put("health/a", "{\"endUpto\":\"104\"}");
    expect("stop a#1 within 10000\n");
    has("agents/a/exit", "\"kind\":\"terminated\"");
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect("make a#2\nlet go a#2 as 109\n");
}
END_TEST

/* The keeper has given it that. */
START_TEST(who_was_given_longer_to_end_is_not_killed_before)
{
    running();
    w.keeper_is_off = true;
    put("wanted/a", "{\"state\":\"stopped\"}");
    expect("stop a#1 within 10000\n");
    wait(9000);
    must((struct hf_event){ .kind = HF_EVENT_PROCESS,
                            .process = { .agent = "a",
                                         .instance_id = instance("a"),
                                         .news = HF_PROCESS_EXTENDED,
                                         .more = 30000 } });
    wait(39000);
    expect("");
    wait(1000);
    expect("kill a#1\n");
}
END_TEST

START_TEST(what_does_not_end_is_killed_and_what_does_not_die_is_said_to_be_stuck)
{
    running();
    w.keeper_is_off = true;
    put("wanted/a", "{\"state\":\"stopped\"}");
    expect("stop a#1 within 10000\n");
    wait(20000);
    expect("kill a#1\n");
    wait(10000);
    expect("alert a: its process survives SIGKILL\n");
    has("agents/a/exit", "\"kind\":\"unkillable\"");
    ck_assert_ptr_null(get("agents/a/live"));
    put("wanted/a", "{\"state\":\"running\"}");
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect(""); /* the place is taken */
    news_of("a", w.ids[0], HF_PROCESS_ENDED, 0, NULL);
    expect("make a#2\n");
}
END_TEST

START_TEST(the_keeper_says_that_it_cannot_be_killed)
{
    running();
    w.keeper_is_off = true;
    put("wanted/a", "{\"state\":\"stopped\"}");
    ignore();
    news("a", HF_PROCESS_UNKILLABLE, 0, NULL);
    expect("alert a: its process survives SIGKILL\n");
    has("agents/a/exit", "\"kind\":\"unkillable\"");
    news("a", HF_PROCESS_ENDED, 0, NULL);
    expect("");
}
END_TEST

START_TEST(an_agent_that_answers_nothing_is_said_to_and_ended)
{
    running();
    w.keeper_is_off = true;
    news("a", HF_PROCESS_UNWELL, 0, "2 pings are not answered");
    expect("stop a#1 within 1000\n");
    has("agents/a/report", "\"frozen\":true");
    has("agents/a/report", "state S in futex_wait");
    news("a", HF_PROCESS_ENDED, 0, "signal 9");
    ignore();
    has("agents/a/exit", "\"kind\":\"frozen\"");
    has("agents/a/exit", "2 pings are not answered");
    has("agents/a/exit", "state S in futex_wait");
}
END_TEST

START_TEST(a_suspicion_is_reported_and_taken_back)
{
    running();
    news("a", HF_PROCESS_SUSPECT, 0, "a ping is not answered");
    expect("");
    has("agents/a/report", "\"suspicion\":{\"kind\":\"ping\"");
    has("agents/a/report", "a ping is not answered");
    news("a", HF_PROCESS_CLEARED, 0, NULL);
    wait(1000); /* reports are not written more often */
    expect("");
    ck_assert_ptr_null(strstr(get("agents/a/report"), "suspicion"));
    wait(100000);
    expect("");
    ck_assert_ptr_nonnull(get("agents/a/live"));
}
END_TEST

/* However often something was reported before: who reads it should know why it ends. */
START_TEST(a_verdict_is_reported_at_once_and_before_it_is_carried_out)
{
    running();
    w.keeper_is_off = true;
    news("a", HF_PROCESS_SUSPECT, 0, "a ping is not answered");
    expect("");
    w.fate = WITHHOLD;
    news("a", HF_PROCESS_UNWELL, 0, "2 pings are not answered");
    run_node();
    ck_assert_ptr_null(strstr(w.log, "stop"));
    w.log[0] = '\0';
    arrive();
    has("agents/a/report", "\"frozen\":true");
    expect("stop a#1 within 1000\n");
}
END_TEST

START_TEST(a_verdict_that_cannot_be_reported_is_carried_out_a_second_later)
{
    running();
    w.keeper_is_off = true;
    w.fate = WITHHOLD;
    news("a", HF_PROCESS_UNWELL, 0, "2 pings are not answered");
    ignore();
    wait(999);
    expect("");
    wait(1);
    expect("stop a#1 within 1000\n");
}
END_TEST

/* Where the launcher says that who is frozen is only told of. */
START_TEST(a_verdict_that_ends_nobody_is_said_at_once_as_well)
{
    running();
    news("a", HF_PROCESS_SUSPECT, 0, "a ping is not answered");
    expect("");
    w.only_reported = true;
    news("a", HF_PROCESS_SUSPECT, 0, "2 pings are not answered");
    expect("");
    has("agents/a/report", "\"frozen\":true");
    has("agents/a/report", "2 pings are not answered");
}
END_TEST

/* A later version may want what this one has no name for. */
START_TEST(what_is_wanted_in_a_way_that_nobody_knows_ends_and_starts_nobody)
{
    struct hf_node_view view;

    running();
    put("wanted/a", "{\"state\":7}");
    wait(1000);
    expect("");
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert(!view.stopped);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
    put("commands/h/a", "{\"id\":\"c1\",\"host\":\"h\"}");
    wait(1000);
    ck_assert_int_eq(count_running(), 0);
    ck_assert_ptr_null(get("agents/a/live"));
}
END_TEST

START_TEST(who_answers_before_it_was_told_to_end_goes_on)
{
    running();
    w.keeper_is_off = true;
    w.fate = WITHHOLD;
    news("a", HF_PROCESS_UNWELL, 0, "2 pings are not answered");
    ignore();
    news("a", HF_PROCESS_CLEARED, 0, NULL);
    arrive();
    wait(100000);
    expect("");
    ck_assert_ptr_null(strstr(get("agents/a/report"), "suspicion"));
    ck_assert_ptr_nonnull(get("agents/a/live"));
}
END_TEST

START_TEST(an_agent_that_leaves_may_go_by_itself_and_is_not_restarted)
{
    running();
    ask_as("a", instance("a"), HF_ASK_LEAVE, NULL, "done for today");
    expect("reply 1 OK\n");
    ck_assert_ptr_nonnull(get("agents/a/live")); /* until it is gone */
    news("a", HF_PROCESS_ENDED, 0, NULL);
    expect("");
    has("agents/a/exit", "\"kind\":\"left\"");
}
END_TEST

/* A text that is too long is cut between two characters: half of one could never be written. */
START_TEST(a_long_farewell_does_not_keep_an_end_from_being_written)
{
    char text[400];

    (void)memset(text, 'x', 254);
    (void)snprintf(text + 254, sizeof text - 254, "\xc3\xa9 and more");
    running();
    ask_as("a", instance("a"), HF_ASK_LEAVE, NULL, text);
    expect("reply 1 OK\n");
    news("a", HF_PROCESS_ENDED, 0, NULL);
    expect("");
    has("agents/a/exit", "\"kind\":\"left\"");
    has("agents/a/exit", "xxx\"");
}
END_TEST

START_TEST(an_agent_that_leaves_and_stays_is_ended)
{
    running();
    ask_as("a", instance("a"), HF_ASK_LEAVE, NULL, NULL);
    expect("reply 1 OK\n");
    wait(29999);
    expect("");
    wait(1);
    expect("stop a#1 within 10000\n");
    has("agents/a/exit", "\"kind\":\"left\"");
}
END_TEST

/* Who does not know what others write leaves it alone. */
START_TEST(an_agentd_that_is_older_than_the_records_begins_nothing)
{
    begin();
    put("meta", "{\"schemaVersion\":2}");
    settle_in();
    expect("alert -: the records in etcd are newer than this agentd can write\n");
    wait(100000);
    expect("");
    ck_assert_ptr_null(get("hosts/h/live"));
    ck_assert_ptr_null(get("agents/a/spec"));
    put("meta", "{\"schemaVersion\":1}");
    ignore();
    ck_assert_ptr_nonnull(get("agents/a/live"));
}
END_TEST

/* An end is not kept to itself: its key would say that it lives. */
START_TEST(what_runs_when_the_records_become_newer_goes_on_until_its_end)
{
    struct hf_node_view view;

    running();
    put("meta", "{\"schemaVersion\":2}");
    expect("alert -: the records in etcd are newer than this agentd can write\n");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 EAGAIN\n");
    ck_assert_ptr_nonnull(get("agents/a/live"));
    news("a", HF_PROCESS_ENDED, 1, NULL);
    expect("");
    has("agents/a/exit", "\"createRevision\":\"104\"");
    put("commands/h/a", "{\"id\":\"c1\",\"host\":\"h\"}");
    wait(100000);
    expect("");
    ck_assert_ptr_null(get("agents/a/live"));
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_str_eq(view.next, "nothing begins until it is upgraded");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, an_agentd_that_begins_registers_its_host_and_starts_its_agents);
    tcase_add_test(t, without_a_lease_nothing_begins);
    tcase_add_test(t, a_lease_that_nobody_has_proven_lately_is_not_held);
    tcase_add_test(t, a_program_does_not_begin_when_the_lease_was_not_held_any_more);
    tcase_add_test(t, a_process_whose_registration_is_refused_is_discarded);
    tcase_add_test(t, a_start_whose_outcome_is_unknown_is_held_until_etcd_shows_it);
    tcase_add_test(t, a_start_that_did_not_arrive_is_sent_again_with_the_same_process);
    tcase_add_test(t, a_late_copy_of_a_start_that_was_given_up_is_reaped);
    tcase_add_test(t, a_death_is_written_with_its_evidence_and_frees_the_name);
    tcase_add_loop_test(t, what_kind_of_death_it_was, 0, COUNT(DEATHS));
    tcase_add_loop_test(t, what_the_keeper_knows_of_a_death_counts, 0, COUNT(SEEN));
    tcase_add_test(t, news_of_others_and_of_what_was_before_mean_nothing);
    tcase_add_test(t, an_unkillable_process_that_never_began_is_none);
    tcase_add_test(t, an_end_is_written_until_it_is_there);
    tcase_add_test(t, an_end_that_was_written_unheard_is_not_a_lost_lease);
    tcase_add_test(t, an_end_is_not_written_when_the_life_is_gone_anyway);
    tcase_add_test(t, an_agent_that_is_wanted_stopped_is_asked_to_end);
    tcase_add_test(t, an_order_ends_the_incarnations_up_to_it_and_no_later_one);
    tcase_add_test(t, who_was_given_longer_to_end_is_not_killed_before);
    tcase_add_test(t, what_does_not_end_is_killed_and_what_does_not_die_is_said_to_be_stuck);
    tcase_add_test(t, the_keeper_says_that_it_cannot_be_killed);
    tcase_add_test(t, an_agent_that_answers_nothing_is_said_to_and_ended);
    tcase_add_test(t, a_suspicion_is_reported_and_taken_back);
    tcase_add_test(t, a_verdict_is_reported_at_once_and_before_it_is_carried_out);
    tcase_add_test(t, a_verdict_that_cannot_be_reported_is_carried_out_a_second_later);
    tcase_add_test(t, a_verdict_that_ends_nobody_is_said_at_once_as_well);
    tcase_add_test(t, what_is_wanted_in_a_way_that_nobody_knows_ends_and_starts_nobody);
    tcase_add_test(t, who_answers_before_it_was_told_to_end_goes_on);
    tcase_add_test(t, an_agent_that_leaves_may_go_by_itself_and_is_not_restarted);
    tcase_add_test(t, a_long_farewell_does_not_keep_an_end_from_being_written);
    tcase_add_test(t, an_agent_that_leaves_and_stays_is_ended);
    tcase_add_test(t, an_agentd_that_is_older_than_the_records_begins_nothing);
    tcase_add_test(t, what_runs_when_the_records_become_newer_goes_on_until_its_end);
}

int main(void)
{
    return run_stories("core/node_life", add_stories);
}
