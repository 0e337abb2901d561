/* What each kind of key does to the fleet: links, counts, and who is told. */
#include "unit/fleet_fixture.h"
#include "unit/suite.h"

/* Agents. */

static const enum hf_key_kind AGENT_KINDS[] = {
    HF_KEY_AGENT_SPEC, HF_KEY_AGENT_LIVE, HF_KEY_AGENT_REPORT,
    HF_KEY_AGENT_EXIT, HF_KEY_WANTED,     HF_KEY_HEALTH,
};

START_TEST(an_agent_comes_with_its_first_key_and_goes_with_its_last)
{
    put(AGENT_KINDS[_i], "a", "{}");
    expect("agent a");
    ck_assert_str_eq(agent("a")->name, "a");
    ck_assert_uint_eq(counts().agents, 1);
    erase(AGENT_KINDS[_i], "a");
    expect("agent a, gone agent a");
    ck_assert_ptr_null(agent("a"));
    ck_assert_uint_eq(counts().agents, 0);
}
END_TEST

START_TEST(any_other_key_keeps_the_agent)
{
    enum hf_key_kind other = AGENT_KINDS[((size_t)_i + 1) % COUNT(AGENT_KINDS)];

    put(AGENT_KINDS[_i], "a", "{}");
    put(other, "a", "{}");
    ignore();
    erase(AGENT_KINDS[_i], "a");
    expect("agent a");
    ck_assert_ptr_null(agent_cell(agent("a"), AGENT_KINDS[_i]).record);
    ck_assert_ptr_nonnull(agent_cell(agent("a"), other).record);
}
END_TEST

START_TEST(a_cell_has_what_was_last_put)
{
    struct hf_cell cell;

    put(AGENT_KINDS[_i], "a", "{}");
    for (size_t i = 0; i < COUNT(AGENT_KINDS); i++)
        ck_assert_int_eq(agent_cell(agent("a"), AGENT_KINDS[i]).record != NULL,
                         i == (size_t)_i);
    put(AGENT_KINDS[_i], "a", "{}");
    cell = agent_cell(agent("a"), AGENT_KINDS[_i]);
    ck_assert_ptr_eq(cell.record->descriptor, hf_key_get_record(AGENT_KINDS[_i]));
    ck_assert_int_eq(cell.seen.mod_rev, 102);
    ck_assert_int_eq(cell.seen.create_rev, 102);
    ck_assert_int_eq(cell.seen.lease, AGENT_KINDS[_i] == HF_KEY_AGENT_LIVE ? 42 : 0);
}
END_TEST

START_TEST(the_records_have_their_types)
{
    put(HF_KEY_AGENT_SPEC, "a", "{\"home\":\"h\"}");
    put(HF_KEY_AGENT_LIVE, "a", "{\"pid\":7}");
    put(HF_KEY_AGENT_EXIT, "a", "{\"signal\":11}");
    put(HF_KEY_WANTED, "a", "{\"by\":\"ada\"}");
    put(HF_KEY_HEALTH, "a", "{\"restarts\":3}");
    put(HF_KEY_HOST_RECORD, "h", "{\"capacity\":4}");
    put(HF_KEY_TASK, "t", "{\"attempt\":2}");
    put(HF_KEY_RECOVERY, "t", "{\"attempts\":5}");
    ck_assert_str_eq(hf_agent_spec(agent("a"))->home, "h");
    ck_assert_int_eq(hf_agent_live(agent("a"))->pid, 7);
    ck_assert_int_eq(hf_agent_exit(agent("a"))->signal, 11);
    ck_assert_str_eq(hf_agent_wanted(agent("a"))->by, "ada");
    ck_assert_int_eq(hf_agent_health(agent("a"))->restarts, 3);
    ck_assert_int_eq(hf_host_record(host("h"))->capacity, 4);
    ck_assert_int_eq(hf_task_record(task("t"))->attempt, 2);
    ck_assert_int_eq(hf_task_recovery(task("t"))->attempts, 5);
}
END_TEST

START_TEST(a_spec_puts_an_agent_into_a_role)
{
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    expect("agent a, role r");
    put(HF_KEY_AGENT_SPEC, "b", "{\"role\":\"r\"}");
    ignore();
    ck_assert_uint_eq(role("r")->agent_count, 2);
    ck_assert_ptr_eq(agent("a")->role, role("r"));
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\",\"home\":\"elsewhere\"}");
    expect("agent a");
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"s\"}");
    expect("agent a, role r, role s");
    ck_assert_ptr_eq(role("r")->agents, agent("b"));
    ck_assert_ptr_null(agent("b")->next_in_role);
    ck_assert_uint_eq(role("r")->agent_count, 1);
    put(HF_KEY_AGENT_SPEC, "a", "{}");
    expect("agent a, gone role s, role s");
    ck_assert_ptr_null(agent("a")->role);
    erase(HF_KEY_AGENT_SPEC, "b");
    expect("agent b, gone agent b, gone role r, role r");
    ck_assert_uint_eq(counts().roles, 0);
}
END_TEST

START_TEST(a_role_counts_those_of_its_agents_that_live)
{
    put(HF_KEY_AGENT_LIVE, "a", "{}");
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}"); /* the spec after the life */
    put(HF_KEY_AGENT_SPEC, "b", "{\"role\":\"r\"}");
    ck_assert_uint_eq(role("r")->live_count, 1);
    ignore();
    put(HF_KEY_AGENT_LIVE, "b", "{}");
    expect("agent b, role r");
    ck_assert_uint_eq(role("r")->live_count, 2);
    put(HF_KEY_AGENT_LIVE, "b", "{\"pid\":8}");
    expect("agent b");
    put(HF_KEY_AGENT_SPEC, "b", "{\"role\":\"s\"}");
    ignore();
    ck_assert_uint_eq(role("r")->live_count, 1);
    ck_assert_uint_eq(role("s")->live_count, 1);
    erase(HF_KEY_AGENT_LIVE, "b");
    expect("agent b, role s");
    ck_assert_uint_eq(role("s")->live_count, 0);
    ck_assert_uint_eq(counts().live_agents, 1);
}
END_TEST

START_TEST(an_agent_lives_on_its_host)
{
    put(HF_KEY_AGENT_SPEC, "a", "{}");
    put(HF_KEY_HOST_RECORD, "h", "{}");
    ignore();
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    expect("agent a, host h");
    ck_assert_ptr_eq(agent("a")->host, host("h"));
    ck_assert_uint_eq(host("h")->agents, 1);
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"i\"}"); /* known by that alone */
    expect("agent a, host h, host i");
    ck_assert_uint_eq(host("h")->agents, 0);
    ck_assert_uint_eq(host("i")->agents, 1);
    erase(HF_KEY_AGENT_LIVE, "a");
    expect("agent a, gone host i, host i");
    ck_assert_ptr_null(agent("a")->host);
    ck_assert_uint_eq(counts().hosts, 1);
    put(HF_KEY_AGENT_LIVE, "a", "{}");
    ck_assert_ptr_null(agent("a")->host);
}
END_TEST

START_TEST(the_end_of_a_life_is_remembered)
{
    put(HF_KEY_AGENT_SPEC, "a", "{}");
    ck_assert_int_eq(hf_agent_gone_rev(agent("a")), 0);
    put(HF_KEY_AGENT_LIVE, "a", "{}"); /* revision 102 */
    ck_assert_uint_eq(counts().live_agents, 1);
    erase(HF_KEY_AGENT_LIVE, "a");
    ck_assert_uint_eq(counts().live_agents, 0);
    ck_assert_int_eq(hf_agent_gone_rev(agent("a")), 102);
    ck_assert_int_eq(hf_agent_gone_at(agent("a")), 5030);
    ignore();
    erase(HF_KEY_AGENT_LIVE, "a"); /* told again, which must not start the clock again */
    expect("");
    ck_assert_int_eq(hf_agent_gone_at(agent("a")), 5030);
    put(HF_KEY_AGENT_LIVE, "a", "{}"); /* 105 */
    erase(HF_KEY_AGENT_LIVE, "a");
    ck_assert_int_eq(hf_agent_gone_rev(agent("a")), 105);
    ck_assert_int_eq(hf_agent_gone_at(agent("a")), 5060);
}
END_TEST

/* Tasks. */

static const struct {
    const char *state;
    bool owned;
    bool pending;
} STATES[] = {
    { "queued", false, false },      { "pending", false, true },
    { "acknowledged", true, false }, { "in_progress", true, false },
    { "completed", false, false },   { "failed", false, false },
    { "cancelled", false, false },   { "needs_review", false, false },
};

static void put_task_in(const char *state)
{
    char json[128];

    (void)snprintf(json, sizeof json,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\",\"owner\":{\"agent\":\"a\"}}",
                   state);
    put(HF_KEY_TASK, "t", json);
}

START_TEST(the_last_life_is_kept_until_the_next_one_ends)
{
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h1\",\"instanceId\":\"one\"}");
    put(HF_KEY_AGENT_SPEC, "a", "{}");
    ck_assert_ptr_null(hf_agent_past(agent("a")));
    erase(HF_KEY_AGENT_LIVE, "a");
    ck_assert_str_eq(hf_agent_past(agent("a"))->instance_id, "one");
    ck_assert_int_eq(hf_agent_past_rev(agent("a")), hf_agent_gone_rev(agent("a")));
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h1\",\"instanceId\":\"two\"}");
    ck_assert_str_eq(hf_agent_past(agent("a"))->instance_id, "one");
    /* A list shows a third life, and not the end of the second. */
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h1\",\"instanceId\":\"three\"}");
    ck_assert_str_eq(hf_agent_past(agent("a"))->instance_id, "two");
}
END_TEST

START_TEST(the_users_bytes_come_with_the_object)
{
    struct hf_fleet_config cfg = { .on_touched = on_touched,
                                   .user_size = { [HF_FLEET_AGENT] = 24 } };
    struct hf_fleet *other = hf_fleet_new(&cfg);
    struct hf_fleet_change change =
        make_put((struct hf_key){ HF_KEY_AGENT_LIVE, .name = "a" }, "{\"host\":\"h\"}");
    static const char ZERO[24] = { 0 };

    ck_assert_int_eq(hf_fleet_apply(other, &change), HF_OK);
    ck_assert_mem_eq(hf_fleet_get_agent(other, "a")->user, ZERO, sizeof ZERO);
    ck_assert_ptr_null(hf_fleet_get_host(other, "h")->user);
    hf_fleet_free(other);
}
END_TEST

START_TEST(a_task_has_an_owner_while_somebody_works_on_it)
{
    put_task_in(STATES[_i].state);
    expect(STATES[_i].owned ? "agent a, role r, task t" : "role r, task t");
    ck_assert_int_eq(agent("a") != NULL, STATES[_i].owned);
    ck_assert_ptr_eq(task("t")->owner, agent("a"));
    ck_assert_ptr_eq(task("t")->role, role("r"));
    ck_assert_ptr_eq(role("r")->pending, STATES[_i].pending ? task("t") : NULL);
    ck_assert_uint_eq(role("r")->pending_count, STATES[_i].pending);
    ck_assert_uint_eq(role("r")->running_count, STATES[_i].pending || STATES[_i].owned);
    ck_assert_uint_eq(role("r")->users, 1);
    if (STATES[_i].owned)
        ck_assert_ptr_eq(agent("a")->tasks, task("t"));
    erase(HF_KEY_TASK, "t");
    expect(STATES[_i].owned ? "agent a, gone agent a, gone role r, gone task t, role r, task t"
                            : "gone role r, gone task t, role r, task t");
    ck_assert_uint_eq(counts().tasks + counts().roles + counts().agents, 0);
}
END_TEST

START_TEST(from_any_state_to_any_other_the_links_follow)
{
    for (size_t next = 0; next < COUNT(STATES); next++) {
        put_task_in(STATES[_i].state);
        put_task_in(STATES[next].state);
        ck_assert_int_eq(task("t")->owner != NULL, STATES[next].owned);
        ck_assert_int_eq(task("t")->at_owned != NULL, STATES[next].owned);
        ck_assert_int_eq(task("t")->at_pending != NULL, STATES[next].pending);
        ck_assert_uint_eq(role("r")->pending_count, STATES[next].pending);
        ck_assert_uint_eq(role("r")->running_count, STATES[next].pending || STATES[next].owned);
        ck_assert_uint_eq(role("r")->users, 1);
        ck_assert_uint_eq(counts().agents, STATES[next].owned);
    }
}
END_TEST

START_TEST(a_task_passes_from_one_agent_to_another)
{
    put(HF_KEY_AGENT_SPEC, "a", "{}");
    put(HF_KEY_TASK, "t", TASK("in_progress", "r", "a"));
    put(HF_KEY_TASK, "u", TASK("in_progress", "r", "a"));
    ck_assert_ptr_eq(agent("a")->tasks->next_owned, task("t"));
    ignore();
    put(HF_KEY_TASK, "t", TASK("acknowledged", "r", "a"));
    expect("role r, task t"); /* who owns it is as it was */
    put(HF_KEY_TASK, "t", TASK("acknowledged", "r", "b"));
    expect("agent a, agent b, role r, task t");
    ck_assert_ptr_eq(agent("a")->tasks, task("u"));
    ck_assert_ptr_null(task("u")->next_owned);
    ck_assert_ptr_eq(agent("b")->tasks, task("t"));
    put(HF_KEY_TASK, "t", TASK("pending", "r", "b"));
    expect("agent b, gone agent b, role r, task t");
    put(HF_KEY_TASK, "u", TASK("in_progress", "r", "")); /* malformed: nobody's */
    expect("agent a, role r, task u");
    ck_assert_ptr_null(agent("a")->tasks);
}
END_TEST

START_TEST(a_task_passes_from_one_role_to_another)
{
    put(HF_KEY_TASK, "t", TASK("pending", "r", ""));
    put(HF_KEY_TASK, "u", TASK("pending", "r", ""));
    put(HF_KEY_TASK, "v", TASK("queued", "r", ""));
    ignore();
    ck_assert_uint_eq(role("r")->users, 3);
    ck_assert_uint_eq(role("r")->pending_count, 2);
    put(HF_KEY_TASK, "u", TASK("pending", "s", ""));
    expect("role r, role s, task u");
    ck_assert_ptr_eq(role("r")->pending, task("t"));
    ck_assert_ptr_null(task("t")->next_pending);
    ck_assert_uint_eq(role("r")->pending_count, 1);
    ck_assert_ptr_eq(role("s")->pending, task("u"));
    put(HF_KEY_TASK, "u", TASK("pending", "", ""));
    expect("gone role s, role s, task u");
    ck_assert_ptr_null(task("u")->role);
    ck_assert_ptr_null(task("u")->at_pending);
}
END_TEST

START_TEST(a_recovery_keeps_a_task_that_is_deleted)
{
    put(HF_KEY_RECOVERY, "t", "{}");
    expect("task t");
    ck_assert_ptr_null(task("t")->role);
    put(HF_KEY_TASK, "t", TASK("in_progress", "r", "a"));
    ignore();
    erase(HF_KEY_TASK, "t");
    expect("agent a, gone agent a, gone role r, role r, task t");
    ck_assert_ptr_null(task("t")->task.record);
    erase(HF_KEY_RECOVERY, "t");
    expect("gone task t, task t");
}
END_TEST

/* Who is told. */

START_TEST(tasks_are_told_of_the_life_of_their_owner)
{
    struct hf_fleet_change again;

    put(HF_KEY_TASK, "t", TASK("in_progress", "r", "a"));
    put(HF_KEY_TASK, "u", TASK("in_progress", "r", "a"));
    put(HF_KEY_TASK, "v", TASK("completed", "r", "a")); /* nothing of this concerns it */
    ignore();
    put(HF_KEY_AGENT_LIVE, "a", "{}");
    expect("agent a, task t, task u");
    again = make_put((struct hf_key){ HF_KEY_AGENT_LIVE, .name = "a" }, "{}");
    again.seen.create_rev = agent("a")->live.seen.create_rev;
    ck_assert_int_eq(hf_fleet_apply(fleet, &again), HF_OK);
    expect("agent a"); /* the same life */
    put(HF_KEY_AGENT_LIVE, "a", "{}");
    expect("agent a, task t, task u"); /* another one, and its beginning is all that was seen */
    put(HF_KEY_AGENT_EXIT, "a", "{}");
    expect("agent a, task t, task u");
    erase(HF_KEY_AGENT_LIVE, "a");
    expect("agent a, task t, task u");
    erase(HF_KEY_AGENT_EXIT, "a");
    expect("agent a, task t, task u");
}
END_TEST

START_TEST(what_concerns_the_agent_alone)
{
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    put(HF_KEY_TASK, "t", TASK("in_progress", "r", "a"));
    ignore();
    put(HF_KEY_AGENT_REPORT, "a", "{}");
    expect("agent a");
    put(HF_KEY_WANTED, "a", "{}");
    expect("agent a");
    put(HF_KEY_HEALTH, "a", "{}");
    expect("agent a");
    put(HF_KEY_RECOVERY, "t", "{}");
    expect("task t");
}
END_TEST

/* Hosts and commands. */

START_TEST(a_host_comes_with_its_first_key_and_goes_with_its_last)
{
    put(HF_KEY_HOST_RECORD, "h", "{}");
    expect("host h");
    put(HF_KEY_HOST_LIVE, "h", "{}"); /* revision 102 */
    expect("host h");
    ck_assert_uint_eq(counts().hosts, 1);
    ck_assert_uint_eq(counts().live_hosts, 1);
    put(HF_KEY_HOST_LIVE, "h", "{}"); /* 103 */
    ck_assert_uint_eq(counts().live_hosts, 1);
    erase(HF_KEY_HOST_LIVE, "h");
    ck_assert_uint_eq(counts().live_hosts, 0);
    ck_assert_int_eq(host("h")->live_gone_rev, 103);
    ck_assert_int_eq(host("h")->live_gone_at, 5040);
    erase(HF_KEY_HOST_LIVE, "h");
    ck_assert_int_eq(host("h")->live_gone_at, 5040);
    ignore();
    erase(HF_KEY_HOST_RECORD, "h");
    expect("gone host h, host h");
    ck_assert_uint_eq(counts().hosts, 0);
    put(HF_KEY_HOST_LIVE, "h", "{}");
    ck_assert_int_eq(host("h")->live_gone_rev, 0); /* another object */
    erase(HF_KEY_HOST_LIVE, "h");
    ck_assert_ptr_null(host("h"));
    ck_assert_uint_eq(counts().live_hosts, 0);
}
END_TEST

START_TEST(a_command_stands_between_an_agent_and_a_host)
{
    const struct hf_command *command;

    put_command("h", "a", "{\"id\":\"c1\"}");
    expect("agent a, host h");
    command = agent("a")->commands;
    ck_assert_ptr_eq(command->agent, agent("a"));
    ck_assert_ptr_eq(command->host, host("h"));
    ck_assert_ptr_eq(host("h")->starts, command);
    ck_assert_uint_eq(host("h")->commands, 1);
    ck_assert_uint_eq(counts().commands, 1);
    put_command("h", "a", "{\"id\":\"c2\"}");
    expect("agent a, host h");
    ck_assert_ptr_eq(agent("a")->commands, command);
    ck_assert_str_eq(((const Holdfast__V1__Command *)command->command.record)->id, "c2");
    ck_assert_uint_eq(counts().commands, 1);
    erase_command("h", "a");
    expect("agent a, gone agent a, gone host h, host h");
    ck_assert_uint_eq(counts().commands + counts().agents + counts().hosts, 0);
}
END_TEST

START_TEST(commands_on_several_hosts_are_kept_apart)
{
    put_command("h", "a", "{\"id\":\"c1\"}");
    put_command("i", "a", "{\"id\":\"c2\"}");
    put_command("i", "b", "{\"id\":\"c3\"}");
    ck_assert_uint_eq(counts().commands, 3);
    ck_assert_uint_eq(host("i")->commands, 2);
    ignore();
    erase_command("h", "a");
    expect("agent a, gone host h, host h");
    ck_assert_str_eq(agent("a")->commands->host->name, "i");
    ck_assert_ptr_null(agent("a")->commands->next);
    erase_command("i", "a");
    expect("agent a, gone agent a, host i");
    ck_assert_ptr_eq(host("i")->starts, agent("b")->commands);
    ck_assert_ptr_null(host("i")->starts->next_here);
}
END_TEST

START_TEST(agents_are_told_when_the_host_that_shall_start_them_comes_or_goes)
{
    put_command("h", "a", "{}");
    put_command("h", "b", "{}");
    put_command("i", "c", "{}");
    put(HF_KEY_AGENT_LIVE, "d", "{\"host\":\"h\"}");
    ignore();
    put(HF_KEY_HOST_LIVE, "h", "{}");
    expect("agent a, agent b, host h");
    put(HF_KEY_HOST_LIVE, "h", "{}");
    expect("host h");
    put(HF_KEY_HOST_RECORD, "h", "{}");
    expect("host h");
    erase(HF_KEY_HOST_LIVE, "h");
    expect("agent a, agent b, host h");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fleet");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, an_agent_comes_with_its_first_key_and_goes_with_its_last, 0,
                        COUNT(AGENT_KINDS));
    tcase_add_loop_test(t, any_other_key_keeps_the_agent, 0, COUNT(AGENT_KINDS));
    tcase_add_loop_test(t, a_cell_has_what_was_last_put, 0, COUNT(AGENT_KINDS));
    tcase_add_test(t, the_records_have_their_types);
    tcase_add_test(t, a_spec_puts_an_agent_into_a_role);
    tcase_add_test(t, a_role_counts_those_of_its_agents_that_live);
    tcase_add_test(t, an_agent_lives_on_its_host);
    tcase_add_test(t, the_end_of_a_life_is_remembered);
    tcase_add_test(t, the_last_life_is_kept_until_the_next_one_ends);
    tcase_add_test(t, the_users_bytes_come_with_the_object);
    tcase_add_loop_test(t, a_task_has_an_owner_while_somebody_works_on_it, 0, COUNT(STATES));
    tcase_add_loop_test(t, from_any_state_to_any_other_the_links_follow, 0, COUNT(STATES));
    tcase_add_test(t, a_task_passes_from_one_agent_to_another);
    tcase_add_test(t, a_task_passes_from_one_role_to_another);
    tcase_add_test(t, a_recovery_keeps_a_task_that_is_deleted);
    tcase_add_test(t, tasks_are_told_of_the_life_of_their_owner);
    tcase_add_test(t, what_concerns_the_agent_alone);
    tcase_add_test(t, a_host_comes_with_its_first_key_and_goes_with_its_last);
    tcase_add_test(t, a_command_stands_between_an_agent_and_a_host);
    tcase_add_test(t, commands_on_several_hosts_are_kept_apart);
    tcase_add_test(t, agents_are_told_when_the_host_that_shall_start_them_comes_or_goes);
    return run("core/fleet", t);
}
