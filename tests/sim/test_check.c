/* The checkers can fail: each of these histories is wrong in one way, and one that is right is
 * told, too. */
#include "sim/check_fixture.h"

START_TEST(i1_a_second_registration)
{
    put(&agentd, NS "agents/a/live", LIVE_2, LEASE);
    expect("I1");
}
END_TEST

START_TEST(i1_a_registration_without_a_lease)
{
    put(&agentd, NS "agents/b/live", LIVE_2, 0);
    expect("I1");
}
END_TEST

START_TEST(i2_a_report_of_a_life_that_is_gone)
{
    put(&agentd, NS "agents/a/report",
        "{\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"1\"}}", 0);
    expect("I2");
}
END_TEST

START_TEST(i3_a_task_that_goes_from_one_to_another)
{
    put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{\"agent\":\"b\","
        "\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"5\"}}}",
        0);
    expect("I3");
}
END_TEST

START_TEST(i4_a_controller_that_does_not_lead)
{
    put(&controller, NS "health/a", "{\"state\":\"healthy\"}", 0);
    expect("I4");
}
END_TEST

#define TOLD(WHAT)                                                                             \
    "{\"kind\":\"submitted\",\"actor\":\"c1\",\"task\":\"t\",\"revision\":\"7\",\"why\":"      \
    "\"" WHAT "\"}"

/* Each is another entry: that no number is used twice is not the point. */
static void tell_of(unsigned number, const char *text)
{
    char key[100];

    (void)snprintf(key, sizeof key, NS "events/%019u", number);
    put(&controller, key, text, 0);
}

START_TEST(i15_a_trail_that_repeats_itself)
{
    lead();
    tell_of(1, TOLD("it was submitted"));
    tell_of(2, TOLD("it was submitted"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now += 400;
    tell_of(3, TOLD("it was submitted"));
    expect("I15");
}
END_TEST

/* Of something else, or once more after it was waited for what came of it. */
START_TEST(a_trail_that_only_seems_to_repeat_itself)
{
    lead();
    for (unsigned i = 0; i < 5; i++) {
        tell_of(1 + 2 * i, TOLD("it was submitted"));
        tell_of(2 + 2 * i, TOLD("it was completed"));
        world.now += 1000;
    }
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

#define ENTRY(SEQ, PARENT)                                                                     \
    "{\"task\":\"t\",\"seq\":\"" SEQ "\",\"parent\":\"" PARENT                                 \
    "\",\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"2\"}}"
#define HEAD(SEQ)                                                                              \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"checkpoint\":{\"seq\":\"" SEQ    \
    "\"}," OWNED "}"

START_TEST(i5_a_checkpoint_that_leaves_one_out)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put_two(&agentd, NS "checkpoints/t/0000000000000000003", ENTRY("3", "2"), NS "tasks/t",
            HEAD("3"));
    expect("I5");
}
END_TEST

#define NAMING(SEQ, PARENT, NUMBER)                                                            \
    "{\"task\":\"t\",\"seq\":\"" SEQ "\",\"parent\":\"" PARENT                                 \
    "\",\"store\":\"etcd\",\"key\":\"" NUMBER                                                  \
    "\",\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"2\"}}"
#define BODY_71 "/holdfast-data/sim/checkpoints/t/0000000000000000071"

static void put_three(const char *entry, const char *head, const char *body)
{
    struct hfs_op ops[3] = { put_op(NS "checkpoints/t/0000000000000000001", entry, 0),
                             put_op(NS "tasks/t", head, 0), put_op(body, "bytes", 0) };
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ ops, 3 };
    serve(&agentd, &request);
}

START_TEST(i16_a_body_that_comes_before_its_entry)
{
    put(&agentd, BODY_71, "bytes", 0);
    expect("I16");
}
END_TEST

START_TEST(i16_an_entry_that_comes_before_its_body)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", NAMING("1", "0", "71"),
            NS "tasks/t", HEAD("1"));
    expect("I16");
}
END_TEST

START_TEST(i16_a_body_of_another_number)
{
    put_three(NAMING("1", "0", "72"), HEAD("1"), BODY_71);
    expect("I16");
}
END_TEST

/* Both go, or none of them. */
START_TEST(i16_a_body_that_is_left_behind)
{
    struct hfs_op ops[3] = { { .kind = HFS_DELETE }, { 0 }, { .kind = HFS_DELETE } };
    struct hfs_request request = { .kind = HFS_TXN };

    put_three(NAMING("1", "0", "71"), HEAD("1"), BODY_71);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    ops[0].erase = (struct hfs_range){ .key = bytes(NS "checkpoints/t/0000000000000000001") };
    ops[1] = put_op(NS "tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"cancelled\"}", 0);
    ops[2].erase = (struct hfs_range){ .key = bytes(BODY_71) };
    request.txn.then = (struct hfs_ops){ ops, _i == 0 ? 2 : 3 };
    serve(NULL, &request);
    if (_i == 0)
        expect("I16");
    else
        ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

static struct hfs_process person = { .name = "person", .role = HFS_PERSON };

/* What is wanted of an agent is a person's to say, and to take back. */
static const struct {
    struct hfs_process *from;
    const char *key;
    bool allowed;
} ASKED[] = {
    { &controller, NS "wanted/a", false }, { &agentd, NS "wanted/a", false },
    { &agentd, NS "health/a", false },     { &agentd, NS "controller/leader", false },
    { &person, NS "meta", false },         { &person, NS "commands/h1/a", false },
    { &person, NS "wanted/a", true },      { &controller, NS "commands/h1/a", true },
    { &agentd, NS "commands/h1/a", true }, { &controller, NS "", false },
};

/* Neither is it there, nor would the Txn come to it. */
static void ask_to_delete(struct hfs_process *from, const char *key)
{
    struct hfs_op op = { .kind = HFS_DELETE, .erase.key = bytes(key) };
    struct hfs_request request = { .kind = HFS_TXN };
    struct hfs_letter *letter;

    request.txn.otherwise = (struct hfs_ops){ &op, 1 };
    letter = hfs_letter_new(&request, world.now);
    hfs_check_sent(check, from, letter);
    hfs_letter_unref(letter);
}

START_TEST(i17_a_write_that_the_role_does_not_allow)
{
    ask_to_delete(ASKED[_i].from, ASKED[_i].key);
    if (ASKED[_i].allowed)
        ck_assert_ptr_null(hfs_check_get_violation(check));
    else
        expect("I17");
}
END_TEST

START_TEST(i5_a_checkpoint_that_is_not_the_head)
{
    put(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), 0);
    expect("I5");
}
END_TEST

START_TEST(i5_checkpoints_that_are_removed_from_a_task_at_work)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    erase(&agentd, NS "checkpoints/t/0000000000000000001");
    expect("I5");
}
END_TEST

START_TEST(i5_a_task_at_work_that_forgets_its_checkpoints)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\"," OWNED "}", 0);
    expect("I5");
}
END_TEST

#define RESTORED(SEQ)                                                                          \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"restored\":{\"seq\":\"" SEQ      \
    "\"}," OWNED "}"
#define OUTCOME(SEQ, RESULT)                                                                   \
    "{\"task\":\"t\",\"attempts\":1,\"outcomes\":[{\"checkpoint\":{\"seq\":\"" SEQ             \
    "\"},\"result\":\"" RESULT "\"}]}"

START_TEST(i13_a_death_that_is_counted_against_another_checkpoint)
{
    put(&agentd, NS "tasks/t", RESTORED("2"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("3", "ordered"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("2", "died"), 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&agentd, NS "recoveries/t", OUTCOME("3", "ordered"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("3", "died"), 0);
    expect("I13");
}
END_TEST

START_TEST(i13_a_successor_that_goes_on_from_what_its_task_does_not_name)
{
    put(&agentd, NS "tasks/t", RESTORED("2"), 0);
    hfs_check_goes_on(check, "a", "another", "t", 3); /* not its task any more */
    hfs_check_goes_on(check, "a", "i1", "t", 2);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_goes_on(check, "a", "i1", "t", 3);
    expect("I13");
}
END_TEST

/* It is not its owner's to go on with: a restored etcd may say so of what was at work. */
START_TEST(a_look_at_a_checkpoint_of_what_is_over)
{
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"," OWNED "}", 0);
    hfs_check_goes_on(check, "a", "i1", "t", 1);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i6_a_final_state_that_is_left)
{
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"," OWNED "}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\"," OWNED "}", 0);
    expect("I6");
}
END_TEST

START_TEST(i7_a_reset_while_the_owner_lives)
{
    world.now = 1000;
    grant(&controller, 3);
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", 3);
    world.now = 2000;
    put_two(
        &controller, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\",\"opIds\":{\"controller\":\"x\"}}",
        NS "pending/r/t", "{}");
    expect("I7");
}
END_TEST

/* Who leads takes it from an owner that lives, and has not begun with it in two minutes. */
static void take_back(const char *state)
{
    char text[200];

    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"acknowledged\"," OWNED "}", 0);
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 125000;
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\","
                   "\"opIds\":{\"controller\":\"x\"}}",
                   state);
    if (strcmp(state, "pending") == 0)
        put_two(&controller, NS "tasks/t", text, NS "pending/r/t", "{}");
    else
        put(&controller, NS "tasks/t", text, 0);
}

START_TEST(i7_a_review_while_the_owner_lives)
{
    take_back("needs_review");
    expect("I7");
}
END_TEST

START_TEST(what_nobody_begins_with_may_be_taken_back)
{
    take_back("pending");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i8_a_start_of_one_that_lives)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "commands/h1/a", "{\"id\":\"x\",\"host\":\"h1\"}", 0);
    expect("I8");
}
END_TEST

START_TEST(i8_one_life_that_begins_twice)
{
    hfs_check_begins(check, "a", "i1", 2);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_begins(check, "a", "i1", 2);
    expect("I8");
}
END_TEST

/* What an agentd asked for at that moment arrives after a process of it has come and gone,
 * while somebody leads. */
static void start_after_the_end(hf_ms made_at)
{
    struct hfs_op op = put_op(NS "agents/a/live", LIVE_OTHER, LEASE);
    struct hfs_request request = { .kind = HFS_TXN };

    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    hfs_check_begins(check, "a", "i1", 2);
    world.now = 2000;
    erase(&agentd, NS "agents/a/live");
    world.now = 3000;
    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve_late(&agentd, &request, made_at);
}

START_TEST(i8_an_agentd_that_starts_again_by_itself)
{
    start_after_the_end(2500);
    expect("I8");
}
END_TEST

START_TEST(a_start_that_was_asked_for_before_is_not_a_second_one)
{
    start_after_the_end(500);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_task_that_is_pending_and_not_in_the_index)
{
    put(&agentd, NS "tasks/u", "{\"id\":\"u\",\"role\":\"r\",\"state\":\"pending\"}", 0);
    expect("I9");
}
END_TEST

#define CANCELLED_U                                                                            \
    "{\"id\":\"u\",\"role\":\"r\",\"state\":\"cancelled\",\"opIds\":{\"operator\":\"p\"}}"
#define CANCELLED                                                                              \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"cancelled\",\"opIds\":{\"operator\":\"p\"}}"

/* Until it has asked again it cannot know. */
START_TEST(i3_work_on_what_a_person_took_away)
{
    hfs_check_begins(check, "a", "i1", 2);
    hfs_check_runs(check, "a", "i1", LEASE);
    put(&agentd, NS "tasks/t", CANCELLED, 0);
    world.now++;
    hfs_check_effect(check, "a", "i1", "t");
    hfs_check_heard(check, "i1", 50); /* a late answer to an old question */
    hfs_check_effect(check, "a", "i1", "t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_heard(check, "i1", world.now);
    hfs_check_effect(check, "a", "i1", "t");
    expect("I3");
}
END_TEST

/* It has more than one task, and another one is taken as well. */
START_TEST(i3_work_on_one_of_two_that_people_took_away)
{
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\",\"maxTasks\":2}", 0);
    submit("u");
    claim("u");
    hfs_check_begins(check, "a", "i1", 2);
    hfs_check_runs(check, "a", "i1", LEASE);
    put(&agentd, NS "tasks/t", CANCELLED, 0);
    put(&agentd, NS "tasks/u", CANCELLED_U, 0);
    world.now++;
    hfs_check_effect(check, "a", "i1", "t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_heard(check, "i1", world.now);
    hfs_check_effect(check, "a", "i1", "t");
    expect("I3");
}
END_TEST

/* While it is missed it is excused, and when it is back it is not. */
START_TEST(i3_work_of_one_that_holds_on_what_is_not_its_own)
{
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\",\"fence\":\"hold\"}", 0);
    hfs_check_begins(check, "a", "i1", 2);
    hfs_check_runs(check, "a", "i1", LEASE);
    erase(NULL, NS "agents/a/live");
    world.now = 10000;
    hfs_check_effect(check, "a", "i1", "t");
    put(NULL, NS "tasks/t", CANCELLED, 0); /* a person */
    put(&agentd, NS "agents/a/live", LIVE_1, LEASE);
    hfs_check_heard(check, "i1", world.now + 1);
    hfs_check_effect(check, "a", "i1", "t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now += 2000;
    hfs_check_effect(check, "a", "i1", "t");
    expect("I3");
}
END_TEST

START_TEST(i10_two_processes_at_once)
{
    hfs_check_runs(check, "a", "i1", LEASE);
    hfs_check_stands(check, "i1");
    hfs_check_runs(check, "a", "i2", LEASE);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_runs(check, "a", "i1", LEASE);
    expect("I10");
}
END_TEST

START_TEST(i11_a_clock_that_goes_back)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:10Z\"}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:09Z\"}", 0);
    expect("I11");
}
END_TEST

START_TEST(i12_a_start_of_one_that_is_wanted_stopped)
{
    put(&agentd, NS "wanted/b", "{\"state\":\"stopped\"}", 0);
    put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
    expect("I12");
}
END_TEST

START_TEST(e_a_life_that_was_not_to_end)
{
    put(&agentd, NS "wanted/a", "{\"state\":\"running\",\"endUpto\":\"1\"}", 0);
    end_life("terminated");
    expect("E");
}
END_TEST

START_TEST(e_a_life_that_was_to_end)
{
    put(&agentd, NS "wanted/a", "{\"state\":\"running\",\"endUpto\":\"2\"}", 0);
    end_life("terminated");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(e_a_life_of_one_that_was_stopped_for_a_moment)
{
    world.now += 10;
    put(&agentd, NS "wanted/a", "{\"state\":\"stopped\"}", 0);
    put(&agentd, NS "wanted/a", "{\"state\":\"running\"}", 0);
    end_life("terminated");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

static void thaw(hf_ms fenced_at)
{
    hfs_check_runs(check, "a", "i1", LEASE);
    hfs_check_thawed(check, "a", "i1", fenced_at);
}

START_TEST(f_what_nothing_has_proven_since_it_stood_still)
{
    world.now = 1000;
    put(&agentd, NS "agents/a/report", "{}", 0); /* which left before */
    thaw(1001);
    expect("F");
}
END_TEST

START_TEST(f_what_a_txn_has_proven_that_left_since_it_stood_still)
{
    world.now = 1001;
    put(&agentd, NS "agents/a/report", "{}", 0);
    thaw(1001);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(f_what_was_gone_when_that_was_asked)
{
    erase(&agentd, NS "agents/a/live");
    world.now = 1001;
    put(&agentd, NS "agents/b/report", "{}", 0);
    thaw(1001);
    expect("F");
}
END_TEST

START_TEST(f_another_whose_lease_is_none_of_its_agentd)
{
    world.now = 1001;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    thaw(1001);
    expect("F");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("check");

    tcase_add_test(t, i1_a_second_registration);
    tcase_add_test(t, i1_a_registration_without_a_lease);
    tcase_add_test(t, i2_a_report_of_a_life_that_is_gone);
    tcase_add_test(t, i3_a_task_that_goes_from_one_to_another);
    tcase_add_test(t, i4_a_controller_that_does_not_lead);
    tcase_add_test(t, i5_a_checkpoint_that_leaves_one_out);
    tcase_add_test(t, i15_a_trail_that_repeats_itself);
    tcase_add_test(t, a_trail_that_only_seems_to_repeat_itself);
    tcase_add_test(t, i16_a_body_that_comes_before_its_entry);
    tcase_add_test(t, i16_an_entry_that_comes_before_its_body);
    tcase_add_test(t, i16_a_body_of_another_number);
    tcase_add_loop_test(t, i16_a_body_that_is_left_behind, 0, 2);
    tcase_add_loop_test(t, i17_a_write_that_the_role_does_not_allow, 0,
                        sizeof ASKED / sizeof ASKED[0]);
    tcase_add_test(t, i5_a_checkpoint_that_is_not_the_head);
    tcase_add_test(t, i5_checkpoints_that_are_removed_from_a_task_at_work);
    tcase_add_test(t, i5_a_task_at_work_that_forgets_its_checkpoints);
    tcase_add_test(t, i13_a_death_that_is_counted_against_another_checkpoint);
    tcase_add_test(t, i13_a_successor_that_goes_on_from_what_its_task_does_not_name);
    tcase_add_test(t, a_look_at_a_checkpoint_of_what_is_over);
    tcase_add_test(t, i6_a_final_state_that_is_left);
    tcase_add_test(t, i7_a_reset_while_the_owner_lives);
    tcase_add_test(t, i7_a_review_while_the_owner_lives);
    tcase_add_test(t, what_nobody_begins_with_may_be_taken_back);
    tcase_add_test(t, i8_a_start_of_one_that_lives);
    tcase_add_test(t, i8_one_life_that_begins_twice);
    tcase_add_test(t, i8_an_agentd_that_starts_again_by_itself);
    tcase_add_test(t, a_start_that_was_asked_for_before_is_not_a_second_one);
    tcase_add_test(t, i9_a_task_that_is_pending_and_not_in_the_index);
    tcase_add_test(t, i3_work_on_what_a_person_took_away);
    tcase_add_test(t, i3_work_on_one_of_two_that_people_took_away);
    tcase_add_test(t, i3_work_of_one_that_holds_on_what_is_not_its_own);
    tcase_add_test(t, i10_two_processes_at_once);
    tcase_add_test(t, i11_a_clock_that_goes_back);
    tcase_add_test(t, i12_a_start_of_one_that_is_wanted_stopped);
    tcase_add_test(t, e_a_life_that_was_not_to_end);
    tcase_add_test(t, e_a_life_that_was_to_end);
    tcase_add_test(t, e_a_life_of_one_that_was_stopped_for_a_moment);
    tcase_add_test(t, f_what_nothing_has_proven_since_it_stood_still);
    tcase_add_test(t, f_what_a_txn_has_proven_that_left_since_it_stood_still);
    tcase_add_test(t, f_what_was_gone_when_that_was_asked);
    tcase_add_test(t, f_another_whose_lease_is_none_of_its_agentd);
    return run_check("sim/check", t);
}
