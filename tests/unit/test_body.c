/* Payloads and results that are too long for a task's record. */
#include <check.h>
#include <string.h>

#include "core/body.h"
#include "core/rows.h"
#include "schema/json.h"
#include "unit/suite.h"

static struct hf_plan plan;

static const struct hf_life LIFE = { .agent = "a", .lease = 0x2a, .create_rev = 9 };

static Holdfast__V1__Task task;
static struct hf_seen_task seen_task;

/* One byte more than a record has room for. */
static char large[HF_BODY_INLINE_MAX + 2];

static void setup(void)
{
    (void)memset(large, 'x', sizeof large - 1);
    holdfast__v1__task__init(&task);
    task.id = (char *)"t";
    task.role = (char *)"r";
    seen_task = (struct hf_seen_task){ .seen = { .mod_rev = 17 }, .task = &task };
    hf_plan_init(&plan, "default", HF_WRITER_OWNER, "op1");
}

static void teardown(void)
{
    hf_plan_done(&plan);
}

static void expect(const char *text)
{
    struct hf_buf described = { 0 };
    struct hf_error err = { "" };

    ck_assert_msg(hf_plan_check(&plan, &err) == HF_OK, "%s", err.text);
    hf_plan_describe(&plan, &described);
    ck_assert_str_eq(described.data, text);
    hf_buf_done(&described);
}

/* The task that the plan writes, decoded again. */
static Holdfast__V1__Task *written_task(void)
{
    for (size_t i = 0; i < plan.write_count; i++) {
        ProtobufCMessage *message = NULL;

        if (strcmp(plan.writes[i].key, "/holdfast/default/tasks/t") != 0)
            continue;
        ck_assert_int_eq(hf_json_decode(&holdfast__v1__task__descriptor, plan.writes[i].value,
                                        plan.writes[i].value_len, NULL, &message, NULL),
                         HF_OK);
        return (Holdfast__V1__Task *)message;
    }
    ck_abort_msg("the plan writes no task");
}

/* The record says what the body is, and nothing of it. */
static void expect_body(const char *key, const Holdfast__V1__Body *record)
{
    ck_assert_ptr_nonnull(record);
    for (size_t i = 0; i < plan.write_count; i++) {
        if (strcmp(plan.writes[i].key, key) != 0)
            continue;
        ck_assert_uint_eq(plan.writes[i].value_len, HF_BODY_INLINE_MAX + 1);
        ck_assert(hf_body_matches(
            record, (struct hf_bytes){ plan.writes[i].value, plan.writes[i].value_len }));
        ck_assert(!hf_body_matches(
            record, (struct hf_bytes){ plan.writes[i].value, plan.writes[i].value_len - 1 }));
        return;
    }
    ck_abort_msg("the plan does not write %s", key);
}

START_TEST(submit_with_a_payload_that_is_too_long_for_the_record)
{
    Holdfast__V1__Task *written;

    task.payload = large;
    hf_row_submit(&plan, &task);
    expect("if absent(tasks/t) then put /holdfast-data/default/tasks/t/payload, put tasks/t, "
           "put pending/r/t");
    written = written_task();
    ck_assert_str_eq(written->payload, "");
    expect_body("/holdfast-data/default/tasks/t/payload", written->payload_body);
    hf_json_free(&written->base);
}
END_TEST

START_TEST(submit_with_a_payload_that_just_fits)
{
    large[HF_BODY_INLINE_MAX] = '\0';
    task.payload = large;
    hf_row_submit(&plan, &task);
    expect("if absent(tasks/t) then put tasks/t, put pending/r/t");
}
END_TEST

START_TEST(complete_with_a_result_that_is_too_long_for_the_record)
{
    Holdfast__V1__Task next = task, *written;

    next.result = large;
    hf_row_task(&plan, &LIFE, &seen_task, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17 then "
           "put /holdfast-data/default/tasks/t/result, put tasks/t");
    written = written_task();
    ck_assert_str_eq(written->result, "");
    expect_body("/holdfast-data/default/tasks/t/result", written->result_body);
    hf_json_free(&written->base);
}
END_TEST

START_TEST(a_shorter_result_takes_the_place_of_a_long_one)
{
    Holdfast__V1__Body body = HOLDFAST__V1__BODY__INIT;
    Holdfast__V1__Task next = task;

    task.result_body = &body;
    next.result = (char *)"42";
    hf_row_task(&plan, &LIFE, &seen_task, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17 then "
           "delete /holdfast-data/default/tasks/t/result, put tasks/t");
}
END_TEST

/* Labels are in the record whatever happens, so there is an end to them. */
START_TEST(labels_have_a_limit)
{
    static char text[HF_LABELS_BYTES + 1];
    Holdfast__V1__Task__LabelsEntry entry = HOLDFAST__V1__TASK__LABELS_ENTRY__INIT;
    Holdfast__V1__Task__LabelsEntry *list[HF_LABELS_MAX + 1];
    struct hf_error err = { "" };

    for (size_t i = 0; i < COUNT(list); i++)
        list[i] = &entry;
    ck_assert_int_eq(hf_labels_check(list, HF_LABELS_MAX, &err), HF_OK);
    ck_assert_int_eq(hf_labels_check(list, HF_LABELS_MAX + 1, &err), HF_ELIMIT);
    ck_assert_str_eq(err.text, "labels: at most 64, with 16384 bytes in all");
    (void)memset(text, 'x', sizeof text - 2);
    entry.key = (char *)"k";
    entry.value = text;
    ck_assert_int_eq(hf_labels_check(list, 1, &err), HF_OK);
    text[sizeof text - 2] = 'x';
    ck_assert_int_eq(hf_labels_check(list, 1, &err), HF_ELIMIT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("bodies");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, submit_with_a_payload_that_is_too_long_for_the_record);
    tcase_add_test(t, submit_with_a_payload_that_just_fits);
    tcase_add_test(t, complete_with_a_result_that_is_too_long_for_the_record);
    tcase_add_test(t, a_shorter_result_takes_the_place_of_a_long_one);
    tcase_add_test(t, labels_have_a_limit);
    return run("core/body", t);
}
