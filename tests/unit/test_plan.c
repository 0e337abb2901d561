#include <check.h>
#include <string.h>

#include "core/plan.h"
#include "holdfast/v1/records.pb-c.h"
#include "schema/json.h"
#include "support/chaos.h"
#include "unit/suite.h"

static struct hf_plan plan;
static const struct hf_key TASK = { HF_KEY_TASK, .name = "t" };
static const struct hf_key LIVE = { HF_KEY_AGENT_LIVE, .name = "a" };
static const struct hf_bytes NOTHING = { 0 };

static void setup(void)
{
    hf_plan_init(&plan, "default", HF_WRITER_CONTROLLER, "op9");
}

static void teardown(void)
{
    hf_plan_done(&plan);
}

static void refuses(int err, const char *words)
{
    struct hf_error why = { "" };

    ck_assert_int_eq(hf_plan_check(&plan, &why), err);
    ck_assert_msg(strstr(why.text, words) != NULL, "'%s' does not say '%s'", why.text, words);
}

static Holdfast__V1__Task make_task(void)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;

    task.id = (char *)"t";
    return task;
}

START_TEST(a_plan_must_change_what_it_guards)
{
    Holdfast__V1__Task task = make_task();

    hf_plan_guard(&plan, LIVE, HF_GUARD_CREATE, 9);
    hf_plan_put(&plan, TASK, &task.base, NOTHING, 0);
    refuses(HF_EINVAL, "must change a key whose revision it guards");
}
END_TEST

static const struct {
    enum hf_guard what;
    int64_t value;
    bool puts;
    int want;
} ONCE[] = {
    { HF_GUARD_ABSENT, 0, true, HF_OK },     { HF_GUARD_ABSENT, 0, false, HF_EINVAL },
    { HF_GUARD_MOD, 7, true, HF_OK },        { HF_GUARD_MOD, 7, false, HF_OK },
    { HF_GUARD_MOD, 0, true, HF_OK },        { HF_GUARD_MOD, 0, false, HF_EINVAL },
    { HF_GUARD_CREATE, 7, true, HF_EINVAL }, { HF_GUARD_CREATE, 7, false, HF_OK },
    { HF_GUARD_GONE, 7, true, HF_EINVAL },   { HF_GUARD_GONE, 7, false, HF_EINVAL },
    { HF_GUARD_LEASE, 7, true, HF_EINVAL },  { HF_GUARD_LEASE, 7, false, HF_EINVAL },
    { HF_GUARD_TEXT, 0, true, HF_EINVAL },   { HF_GUARD_TEXT, 0, false, HF_EINVAL },
};

START_TEST(what_makes_a_second_copy_fail)
{
    Holdfast__V1__Task task = make_task();

    hf_plan_guard(&plan, TASK, ONCE[_i].what, ONCE[_i].value);
    if (ONCE[_i].puts)
        hf_plan_put(&plan, TASK, &task.base, NOTHING, 0);
    else
        hf_plan_delete(&plan, TASK);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), ONCE[_i].want);
}
END_TEST

START_TEST(l14_an_ephemeral_key_without_its_lease_is_refused)
{
    Holdfast__V1__Live live = HOLDFAST__V1__LIVE__INIT;

    hf_plan_guard(&plan, LIVE, HF_GUARD_ABSENT, 0);
    hf_plan_put(&plan, LIVE, &live.base, NOTHING, 0);
    refuses(HF_EINVAL, "without its lease");
}
END_TEST

START_TEST(a_kept_key_with_a_lease_is_refused)
{
    Holdfast__V1__Task task = make_task();

    hf_plan_guard(&plan, TASK, HF_GUARD_ABSENT, 0);
    hf_plan_put(&plan, TASK, &task.base, NOTHING, 5);
    refuses(HF_EINVAL, "with a lease");
}
END_TEST

START_TEST(the_same_key_twice_is_refused)
{
    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_delete(&plan, TASK);
    hf_plan_delete(&plan, TASK);
    refuses(HF_EINVAL, "twice");
}
END_TEST

START_TEST(a_malformed_name_is_refused_and_the_first_error_stays)
{
    hf_plan_guard(&plan, (struct hf_key){ HF_KEY_TASK, .name = "No Such Name" }, HF_GUARD_MOD,
                  7);
    hf_plan_delete(&plan, TASK);
    hf_plan_delete(&plan, TASK);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_EINVAL);
    ck_assert_uint_eq(plan.write_count, 0);
}
END_TEST

START_TEST(too_many_guards_or_writes_are_refused)
{
    for (int i = 0; i <= HF_PLAN_GUARDS; i++)
        hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7 + i);
    refuses(HF_ELIMIT, "guards");
    hf_plan_done(&plan);
    setup();
    for (int64_t i = 1; i <= HF_PLAN_WRITES + 1; i++)
        hf_plan_delete(&plan, (struct hf_key){ HF_KEY_EVENT, .seq = i });
    refuses(HF_ELIMIT, "writes");
}
END_TEST

START_TEST(the_same_guard_is_kept_once_and_another_one_is_not_taken_for_it)
{
    for (int i = 0; i <= HF_PLAN_GUARDS; i++)
        hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    ck_assert_uint_eq(plan.guard_count, 1);
    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 8);
    hf_plan_guard(&plan, TASK, HF_GUARD_CREATE, 7);
    hf_plan_guard(&plan, LIVE, HF_GUARD_MOD, 7);
    ck_assert_uint_eq(plan.guard_count, 4);
    ck_assert_uint_eq(plan.text_count, 4);
}
END_TEST

START_TEST(what_is_known_of_a_text_is_guarded_beside_the_revision)
{
    struct hf_bytes text = { .data = "{}", .len = 2 }, other = { .data = "{ }", .len = 3 };
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_plan_guard_same(&plan, LIVE, 7, NOTHING);
    ck_assert_uint_eq(plan.guard_count, 1);
    for (int i = 0; i <= HF_PLAN_GUARDS; i++)
        hf_plan_guard_same(&plan, TASK, 7, text);
    hf_plan_guard_same(&plan, TASK, 7, other);
    ck_assert_uint_eq(plan.guard_count, 4);
    ck_assert_int_eq(plan.guards[2].what, HF_GUARD_TEXT);
    ck_assert_uint_eq(plan.guards[2].text.len, 2);
    ck_assert_mem_eq(plan.guards[2].text.data, "{}", 2);
    ck_assert_ptr_ne(plan.guards[2].text.data, text.data);
    hf_plan_delete(&plan, TASK);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    hf_plan_describe(&plan, &out);
    ck_assert_str_eq(out.data, "if mod(agents/a/live) = 7, mod(tasks/t) = 7, text(tasks/t), "
                               "text(tasks/t) then delete tasks/t");
}
END_TEST

START_TEST(unknown_members_and_the_op_ids_of_others_survive)
{
    const char *old = "{\"id\":\"t\",\"colour\":\"blue\",\"opIds\":{\"owner\":\"op1\","
                      "\"controller\":\"op2\"}}";
    ProtobufCMessage *record = NULL, *again = NULL;

    ck_assert_int_eq(
        hf_json_decode(&holdfast__v1__task__descriptor, old, strlen(old), NULL, &record, NULL),
        HF_OK);
    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_put(&plan, TASK, record, (struct hf_bytes){ .data = old, .len = strlen(old) }, 0);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    ck_assert_ptr_nonnull(strstr(plan.writes[0].value, "\"colour\":\"blue\""));
    ck_assert_int_eq(hf_json_decode(&holdfast__v1__task__descriptor, plan.writes[0].value,
                                    plan.writes[0].value_len, NULL, &again, NULL),
                     HF_OK);
    ck_assert_str_eq(hf_plan_find_op_id(again, HF_WRITER_OWNER), "op1");
    ck_assert_str_eq(hf_plan_find_op_id(again, HF_WRITER_CONTROLLER), "op9");
    ck_assert_ptr_null(hf_plan_find_op_id(again, HF_WRITER_OPERATOR));
    /* The record that was given is as it was. */
    ck_assert_str_eq(hf_plan_find_op_id(record, HF_WRITER_CONTROLLER), "op2");
    hf_json_free(record);
    hf_json_free(again);
}
END_TEST

START_TEST(op_ids_of_many_other_classes_leave_room_for_ours)
{
    const char *old = "{\"opIds\":{\"a\":\"1\",\"b\":\"2\",\"c\":\"3\",\"d\":\"4\",\"e\":\"5\","
                      "\"f\":\"6\",\"g\":\"7\",\"h\":\"8\",\"i\":\"9\"}}";
    ProtobufCMessage *record = NULL;

    ck_assert_int_eq(
        hf_json_decode(&holdfast__v1__task__descriptor, old, strlen(old), NULL, &record, NULL),
        HF_OK);
    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_put(&plan, TASK, record, NOTHING, 0);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    ck_assert_ptr_nonnull(strstr(plan.writes[0].value, "\"controller\":\"op9\""));
    ck_assert_ptr_nonnull(strstr(plan.writes[0].value, "\"g\":\"7\""));
    hf_json_free(record);
}
END_TEST

START_TEST(a_record_without_op_ids_is_written_as_it_is)
{
    Holdfast__V1__Pending entry = HOLDFAST__V1__PENDING__INIT;

    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_delete(&plan, TASK);
    hf_plan_put(&plan, (struct hf_key){ HF_KEY_PENDING, .name = "r", .sub = "t" }, &entry.base,
                NOTHING, 0);
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    ck_assert_str_eq(plan.writes[1].value, "{\"priority\":0,\"reservedFor\":\"\"}");
    ck_assert_ptr_null(hf_plan_find_op_id(&entry.base, HF_WRITER_OWNER));
}
END_TEST

START_TEST(what_is_no_record_cannot_be_written_over)
{
    Holdfast__V1__Task task = make_task();

    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_put(&plan, TASK, &task.base, (struct hf_bytes){ .data = "[1]", .len = 3 }, 0);
    refuses(HF_EINVAL, "line 1");
}
END_TEST

START_TEST(a_key_outside_of_the_mirrored_prefix_is_described_in_full)
{
    struct hf_buf out = { 0 };

    hf_plan_guard(&plan, TASK, HF_GUARD_MOD, 7);
    hf_plan_delete(&plan, TASK);
    hf_plan_delete(&plan, (struct hf_key){ HF_KEY_TASK_PAYLOAD, .name = "t" });
    hf_plan_describe(&plan, &out);
    ck_assert_str_eq(out.data, "if mod(tasks/t) = 7 then delete tasks/t, "
                               "delete /holdfast-data/default/tasks/t/payload");
    hf_buf_done(&out);
}
END_TEST

static int build_under_chaos(void *arg)
{
    Holdfast__V1__Task task = make_task();
    struct hf_plan own;
    int err;

    (void)arg;
    hf_plan_init(&own, "default", HF_WRITER_OWNER, "op1");
    hf_plan_guard(&own, TASK, HF_GUARD_MOD, 7);
    hf_plan_put(&own, TASK, &task.base, NOTHING, 0);
    hf_plan_delete(&own, (struct hf_key){ HF_KEY_PENDING, .name = "r", .sub = "t" });
    err = hf_plan_check(&own, NULL);
    hf_plan_done(&own);
    return err;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert_uint_gt(hft_chaos_run(build_under_chaos, NULL), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("plan");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_plan_must_change_what_it_guards);
    tcase_add_loop_test(t, what_makes_a_second_copy_fail, 0, COUNT(ONCE));
    tcase_add_test(t, l14_an_ephemeral_key_without_its_lease_is_refused);
    tcase_add_test(t, a_kept_key_with_a_lease_is_refused);
    tcase_add_test(t, the_same_key_twice_is_refused);
    tcase_add_test(t, a_malformed_name_is_refused_and_the_first_error_stays);
    tcase_add_test(t, too_many_guards_or_writes_are_refused);
    tcase_add_test(t, the_same_guard_is_kept_once_and_another_one_is_not_taken_for_it);
    tcase_add_test(t, what_is_known_of_a_text_is_guarded_beside_the_revision);
    tcase_add_test(t, unknown_members_and_the_op_ids_of_others_survive);
    tcase_add_test(t, op_ids_of_many_other_classes_leave_room_for_ours);
    tcase_add_test(t, a_record_without_op_ids_is_written_as_it_is);
    tcase_add_test(t, what_is_no_record_cannot_be_written_over);
    tcase_add_test(t, a_key_outside_of_the_mirrored_prefix_is_described_in_full);
    tcase_add_test(t, every_allocation_may_fail);
    return run("core/plan", t);
}
