/* Reasons to start an agent, and what stands against them. */
#include "unit/node_fixture.h"

#define COMMAND "{\"id\":\"1\",\"host\":\"h\"}"
#define RESUME  "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\"}"

/* A host whose agent has ended, and somebody leads. */
static void ended(void)
{
    running();
    news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
}

/* Refusals. */

START_TEST(a_command_that_cannot_be_served_is_refused)
{
    ended();
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"a\""));
    w.make_err = 1;
    w.quiet = false;
    put("commands/h/a", RESUME);
    expect("make a#2\n"
           "read tasks/t\n"
           "if create(hosts/h/live) = 102, lease(hosts/h/live) = 2a, mod(commands/h/a) = 107, "
           "text(commands/h/a), "
           "mod(tasks/t) = 106, text(tasks/t) then put agents/a/exit, delete commands/h/a, put "
           "tasks/t, "
           "put pending/r/t\n");
    has("agents/a/exit", "no such file");
    has("tasks/t", "\"reservedFor\":\"\"");
    w.make_err = 0;
    w.quiet = true;
    put("commands/h/a", COMMAND);
    expect("make a#3\nlet go a#3 as 110\n");
}
END_TEST

START_TEST(a_refusal_that_is_refused_is_decided_anew)
{
    ended();
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"a\""));
    w.make_err = 1;
    w.fate = LOSE;
    put("commands/h/a", RESUME);
    ignore();
    ck_assert_ptr_nonnull(get("commands/h/a"));
    wait(1000);
    ck_assert_ptr_null(get("commands/h/a"));
}
END_TEST

START_TEST(a_boot_start_that_cannot_be_is_told_once_and_left_to_the_leader)
{
    begin();
    w.make_err = 1;
    settle_in();
    expect("make a#1\nalert a: no such file\n");
    wait(3600000);
    expect("");
}
END_TEST

/* What stands against a boot start. */

START_TEST(an_agent_that_lives_elsewhere_is_not_waited_for)
{
    begin();
    put_leased("agents/a/live", "{\"host\":\"i\",\"instanceId\":\"x\"}", 77);
    settle_in();
    expect("");
    erase("agents/a/live");
    wait(60000);
    expect(""); /* the leader decides who stands in */
}
END_TEST

static const struct {
    const char *key;
    const char *value;
} OBSTACLES[] = {
    { "wanted/a", "{\"state\":\"stopped\"}" },
    { "health/a", "{\"held\":true}" },
};

START_TEST(what_stands_against_a_start)
{
    begin();
    put(OBSTACLES[_i].key, OBSTACLES[_i].value);
    settle_in();
    expect("");
    erase(OBSTACLES[_i].key);
    expect("make a#1\nlet go a#1 as 106\n");
}
END_TEST

START_TEST(what_cannot_be_read_stands_against_a_start_as_well)
{
    begin();
    settle_in();
    must((struct hf_event){ .kind = HF_EVENT_BAD,
                            .bad = { .key = { HF_KEY_WANTED, .name = "a" },
                                     .seen = { .create_rev = 90, .mod_rev = 90 },
                                     .why = "no JSON" } });
    must((struct hf_event){ .kind = HF_EVENT_BAD,
                            .bad = { .key = { .kind = HF_KEY_KINDS }, .why = "no key" } });
    must((struct hf_event){
        .kind = HF_EVENT_BAD,
        .bad = { .key = { HF_KEY_WANTED, .name = "stranger" }, .seen = { .mod_rev = 91 } } });
    expect("");
    put("wanted/a", "{}");
    expect("make a#1\nlet go a#1 as 105\n");
}
END_TEST

START_TEST(a_command_that_cannot_be_read_is_not_obeyed)
{
    ended();
    must((struct hf_event){ .kind = HF_EVENT_BAD,
                            .bad = { .key = { HF_KEY_COMMAND, .name = "h", .sub = "a" },
                                     .seen = { .create_rev = 90, .mod_rev = 90 } } });
    expect("");
}
END_TEST

START_TEST(an_agent_whose_process_others_start_is_left_to_them)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.starter = HOLDFAST__V1__SPEC__STARTER__external;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    settle_in();
    expect("");
}
END_TEST

/* Specs and hosts. */

START_TEST(a_spec_that_is_there_is_not_written_again)
{
    begin();
    put("agents/a/spec",
        "{\"role\":\"r\",\"launcher\":\"sh\",\"opIds\":{\"owner\":\"x\"},\"newer\":1}");
    settle_in();
    ignore();
    ck_assert_int_eq(find(ROOT "agents/a/spec")->mod_rev, 101);
}
END_TEST

START_TEST(another_spec_is_replaced_and_what_only_others_understand_stays)
{
    begin();
    put("agents/a/spec", "{\"role\":\"s\",\"newer\":1}");
    settle_in();
    ignore();
    has("agents/a/spec", "\"role\":\"r\"");
    has("agents/a/spec", "\"newer\":1");
    put("agents/a/spec", "{\"role\":\"s\"}");
    ignore();
    has("agents/a/spec", "\"role\":\"s\""); /* once: we do not fight about it */
}
END_TEST

START_TEST(a_person_s_word_about_the_host_stays)
{
    begin();
    put("hosts/h/record", "{\"cordoned\":true,\"left\":true,\"leaseId\":\"1\"}");
    settle_in();
    ignore();
    has("hosts/h/record", "\"cordoned\":true");
    has("hosts/h/record", "\"left\":false");
}
END_TEST

START_TEST(two_agentds_with_one_name_do_not_take_the_key_from_each_other)
{
    begin();
    put_leased("hosts/h/live", "{\"bootId\":\"x\"}", 77);
    settle_in();
    expect("alert -: another agentd is registered with the name of this host, or was a moment "
           "ago\n");
    wait(60000);
    expect("");
    expire(77);
    expect("make a#1\nlet go a#1 as 106\n");
}
END_TEST

static const enum fate FATES[] = { LOSE, LOSE_DONE, FAIL };

START_TEST(a_host_is_registered_until_it_is)
{
    begin();
    w.fate = FATES[_i];
    settle_in();
    ignore();
    wait(2000);
    ck_assert_ptr_nonnull(get("hosts/h/live"));
    ck_assert_ptr_nonnull(get("agents/a/live"));
}
END_TEST

START_TEST(a_registration_of_the_host_that_is_refused_is_decided_anew)
{
    begin();
    settle_in();
    w.mirror_is_off = true;
    put("hosts/h/record", "{\"cordoned\":true}");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "refused"));
    list_all();
    ignore();
    has("hosts/h/record", "\"cordoned\":true");
    ck_assert_ptr_nonnull(get("hosts/h/live"));
}
END_TEST

/* Guests. */

START_TEST(an_agent_of_another_host_may_be_started_here)
{
    uint64_t version;

    running();
    version = hf_node_get_ranges_version(w.node);
    put("agents/b/spec", "{\"role\":\"s\",\"launcher\":\"sh\"}");
    put("commands/h/b", COMMAND);
    expect(""); /* nothing is known of it */
    ck_assert_uint_gt(hf_node_get_ranges_version(w.node), version);
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    expect("make b#2\nlet go b#2 as 107\n");
    put("wanted/b", "{\"state\":\"stopped\"}");
    expect("stop b#2 within 10000\n");
    has("agents/b/exit", "terminated");
}
END_TEST

/* A range with a name that is none could not be mirrored, nor could anything beside it. */
START_TEST(a_role_that_is_no_name_is_not_mirrored)
{
    uint64_t version;

    running();
    put("agents/b/spec", "{\"role\":\"../x\",\"launcher\":\"sh\"}");
    put("commands/h/b", COMMAND);
    run_node();
    version = hf_node_get_ranges_version(w.node);
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    run_node();
    ck_assert_uint_eq(hf_node_get_ranges_version(w.node), version);
}
END_TEST

static const char *const UNFIT[] = { "{\"role\":\"s\",\"launcher\":\"perl\"}", NULL };

START_TEST(a_guest_that_cannot_be_started_here_is_refused)
{
    running();
    if (UNFIT[_i] != NULL)
        put("agents/b/spec", UNFIT[_i]);
    put("commands/h/b", COMMAND);
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    expect("");
    has("agents/b/exit", "start_failed");
    ck_assert_ptr_null(get("commands/h/b"));
}
END_TEST

START_TEST(there_is_room_for_some_guests_only)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_policy policy = hf_node_policy_default();

    policy.max_guests = 1;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, &policy);
    settle_in();
    ignore();
    put("commands/h/b", COMMAND);
    put("commands/h/c", COMMAND);
    ck_assert_str_eq(hf_node_get_agent(w.node, 1), "b");
    ck_assert_ptr_null(hf_node_get_agent(w.node, 2));
    erase("commands/h/b");
    erase("commands/h/b");
    put("commands/h/c", COMMAND);
    ck_assert_str_eq(hf_node_get_agent(w.node, 1), "c");
    put("commands/i/d", COMMAND); /* not ours */
    ck_assert_ptr_null(hf_node_get_agent(w.node, 2));
}
END_TEST

/* Nobody leads. */

START_TEST(while_nobody_leads_its_own_agentd_restarts_it)
{
    ended();
    erase("controller/leader");
    wait(14999);
    expect("");
    w.quiet = false;
    wait(1);
    expect("make a#2\n"
           "if absent(controller/leader), absent(agents/a/live), mod(agents/a/spec) = 103, "
           "text(agents/a/spec), "
           "mod(wanted/a) = 0, absent(commands/h/a) then put agents/a/live\n"
           "let go a#2 as 107\n");
    w.quiet = true;
    news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    expect(""); /* the second time after a second */
    wait(1000);
    expect("make a#3\nlet go a#3 as 109\n");
    put_leased("controller/leader", "{}", 7);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    wait(3600000);
    expect("");
}
END_TEST

START_TEST(what_a_person_removed_is_not_restarted_though_nobody_leads)
{
    ended();
    erase("controller/leader");
    erase("agents/a/spec");
    wait(3600000);
    expect("");
}
END_TEST

START_TEST(what_finished_is_restarted_when_there_is_work)
{
    running();
    news("a", HF_PROCESS_ENDED, 0, NULL);
    ignore();
    erase("controller/leader");
    wait(60000);
    expect("");
    put_pending("t", "");
    expect("make a#2\nlet go a#2 as 109\n");
}
END_TEST

START_TEST(a_local_restart_that_cannot_be_is_counted)
{
    ended();
    erase("controller/leader");
    w.make_err = 1;
    wait(15000);
    expect("make a#2\nalert a: no such file\n");
    wait(1000);
    expect("make a#3\nalert a: no such file\n");
    wait(1000);
    expect("");
}
END_TEST

START_TEST(an_end_without_an_exit_is_restarted_too)
{
    running();
    put("wanted/a", "{\"state\":\"stopped\"}");
    ignore();
    erase("agents/a/exit");
    erase("wanted/a");
    erase("controller/leader");
    wait(15000);
    expect("make a#2\nlet go a#2 as 110\n");
}
END_TEST

/* It may be running there, where nobody hears of it. */
START_TEST(what_holds_and_was_last_on_another_host_is_not_started_by_its_own)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    spec.fence = HOLDFAST__V1__SPEC__FENCE__hold;
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
    put("health/a", "{\"state\":\"failing\",\"host\":\"other\"}");
    settle_in();
    expect("");
    erase("controller/leader");
    wait(60000);
    expect("");
    put("health/a", "{\"state\":\"failing\",\"host\":\"h\"}");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "let go a#1"));
}
END_TEST

/* Ranges. */

START_TEST(what_has_to_be_mirrored)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_agent_config agents[40];
    struct hf_intent_read ranges[HF_NODE_RANGES];
    char names[40][8], roles[40][8];
    size_t count;

    begin();
    count = hf_node_get_ranges(w.node, ranges);
    ck_assert_uint_eq(count, 4 + 3 + 1);
    hf_node_free(w.node);
    for (size_t i = 0; i < COUNT(agents); i++) {
        (void)snprintf(names[i], sizeof names[i], "a%zu", i);
        (void)snprintf(roles[i], sizeof roles[i], "r%zu", i);
        spec.role = roles[i];
        agents[i] = (struct hf_node_agent_config){ .name = names[i], .spec = &spec };
    }
    w.node = make_node(agents, COUNT(agents), NULL);
    spec.role = (char *)"r";
    count = hf_node_get_ranges(w.node, ranges);
    ck_assert_uint_eq(count, 4 + 3 + 1); /* of each kind all */
    ck_assert_int_eq(ranges[4].scope, HF_KEY_IN_AGENTS);
    put("agents/stranger/live", "{}");
    settle_in();
    put("commands/h/guest", COMMAND);
    put("agents/guest/spec", "{\"launcher\":\"sh\"}");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "let go guest")); /* nothing has to be told anew */
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_command_that_cannot_be_served_is_refused);
    tcase_add_test(t, a_refusal_that_is_refused_is_decided_anew);
    tcase_add_test(t, a_boot_start_that_cannot_be_is_told_once_and_left_to_the_leader);
    tcase_add_test(t, an_agent_that_lives_elsewhere_is_not_waited_for);
    tcase_add_loop_test(t, what_stands_against_a_start, 0, COUNT(OBSTACLES));
    tcase_add_test(t, what_cannot_be_read_stands_against_a_start_as_well);
    tcase_add_test(t, a_command_that_cannot_be_read_is_not_obeyed);
    tcase_add_test(t, an_agent_whose_process_others_start_is_left_to_them);
    tcase_add_test(t, a_spec_that_is_there_is_not_written_again);
    tcase_add_test(t, another_spec_is_replaced_and_what_only_others_understand_stays);
    tcase_add_test(t, a_person_s_word_about_the_host_stays);
    tcase_add_test(t, two_agentds_with_one_name_do_not_take_the_key_from_each_other);
    tcase_add_loop_test(t, a_host_is_registered_until_it_is, 0, COUNT(FATES));
    tcase_add_test(t, a_registration_of_the_host_that_is_refused_is_decided_anew);
    tcase_add_test(t, an_agent_of_another_host_may_be_started_here);
    tcase_add_test(t, a_role_that_is_no_name_is_not_mirrored);
    tcase_add_loop_test(t, a_guest_that_cannot_be_started_here_is_refused, 0, COUNT(UNFIT));
    tcase_add_test(t, there_is_room_for_some_guests_only);
    tcase_add_test(t, while_nobody_leads_its_own_agentd_restarts_it);
    tcase_add_test(t, what_a_person_removed_is_not_restarted_though_nobody_leads);
    tcase_add_test(t, what_finished_is_restarted_when_there_is_work);
    tcase_add_test(t, a_local_restart_that_cannot_be_is_counted);
    tcase_add_test(t, an_end_without_an_exit_is_restarted_too);
    tcase_add_test(t, what_holds_and_was_last_on_another_host_is_not_started_by_its_own);
    tcase_add_test(t, what_has_to_be_mirrored);
}

int main(void)
{
    return run_stories("core/node_start", add_stories);
}
