/* A record written over an older text keeps what this version does not know. */
#include <check.h>
#include <string.h>

#include "base/cleanup.h"
#include "holdfast/v1/records.pb-c.h"
#include "schema/json.h"
#include "support/suite.h"
#include "types/everything.pb-c.h"

#define OWNER (&holdfast__v1__owner__descriptor)

/* The text of `new`, decoded, laid over `old`. */
static char *over(const ProtobufCMessageDescriptor *type, const char *new, const char *old)
{
    ProtobufCMessage *message = NULL;
    struct hf_buf out = { 0 };
    struct hf_error err = { "" };
    char *text = NULL;
    int code;

    ck_assert_int_eq(hf_json_decode(type, new, strlen(new), NULL, &message, &err), HF_OK);
    code = hf_json_encode_over(message, old, strlen(old), &out, &err);
    ck_assert_msg(code == HF_OK, "%s", err.text);
    hf_json_free(message);
    ck_assert_int_eq(hf_buf_take(&out, &text, NULL), HF_OK);
    return text;
}

#define INCARNATION "{\"leaseId\":\"1\",\"createRevision\":\"2\",\"generation\":3"

static const struct {
    const char *name;
    const char *new;
    const char *old;
    const char *want;
} OVERS[] = {
    { "nothing_unknown", "{\"agent\":\"new\"}", "{\"agent\":\"old\"}", "{\"agent\":\"new\"}" },
    { "no_old_text", "{\"agent\":\"new\"}", "", "{\"agent\":\"new\"}" },
    { "old_spelling_is_known", "{\"incarnation\":" INCARNATION "}}",
      "{\"incarnation\":{\"lease_id\":\"9\",\"create_revision\":8}}",
      "{\"agent\":\"\",\"incarnation\":" INCARNATION "}}" },
    { "unknown_goes_behind", "{\"agent\":\"new\"}",
      "{\"zone\":\"z\",\"agent\":\"old\",\"a\":1}",
      "{\"agent\":\"new\",\"zone\":\"z\",\"a\":1}" },
    { "unknown_is_verbatim_but_for_space", "{\"agent\":\"new\"}",
      " { \"x\" : { \"b\" : [ 1.50 , 2E3,\t\"a \\\" \\u00e9 b\" ] , \"a\" : null\n} } ",
      "{\"agent\":\"new\",\"x\":{\"b\":[1.50,2E3,\"a \\\" \\u00e9 b\"],\"a\":null}}" },
    { "unknown_in_depth", "{\"agent\":\"new\",\"incarnation\":" INCARNATION "}}",
      "{\"incarnation\":{\"term\":{\"n\":4},\"leaseId\":\"7\"},\"zone\":[]}",
      "{\"agent\":\"new\",\"incarnation\":" INCARNATION ",\"term\":{\"n\":4}},\"zone\":[]}" },
    { "unknown_in_depth_of_the_old_spelling", "{\"incarnation\":" INCARNATION "}}",
      "{\"incarn\\u0061tion\":{\"t\\u0065rm\":4}}",
      "{\"agent\":\"\",\"incarnation\":" INCARNATION ",\"term\":4}}" },
    { "unset_message_takes_its_unknowns_along", "{\"agent\":\"new\"}",
      "{\"incarnation\":{\"term\":4}}", "{\"agent\":\"new\"}" },
    { "old_message_was_null", "{\"incarnation\":" INCARNATION "}}", "{\"incarnation\":null}",
      "{\"agent\":\"\",\"incarnation\":" INCARNATION "}}" },
    { "old_message_was_none", "{\"incarnation\":" INCARNATION "}}", "{\"incarnation\":[{}]}",
      "{\"agent\":\"\",\"incarnation\":" INCARNATION "}}" },
    { "old_was_empty", "{\"agent\":\"new\"}", "{}", "{\"agent\":\"new\"}" },
    { "unknown_name_with_escapes", "{\"agent\":\"new\"}", "{\"\\u0022\\n\\u00e9\":1}",
      "{\"agent\":\"new\",\"\\\"\\n\xc3\xa9\":1}" },
};

START_TEST(lays_the_record_over_the_old_text)
{
    HF_CLEANUP_FREE char *text = over(OWNER, OVERS[_i].new, OVERS[_i].old);

    ck_assert_msg(strcmp(text, OVERS[_i].want) == 0, "%s:\n  got  %s\n  want %s",
                  OVERS[_i].name, text, OVERS[_i].want);
}
END_TEST

/* Once more over its own result changes nothing: rewriting does not make a record grow. */
START_TEST(writing_over_is_stable)
{
    HF_CLEANUP_FREE char *once = over(OWNER, OVERS[_i].new, OVERS[_i].old);
    HF_CLEANUP_FREE char *twice = over(OWNER, OVERS[_i].new, once);

    ck_assert_str_eq(once, twice);
}
END_TEST

START_TEST(values_of_maps_keep_their_unknown_members_and_removed_keys_go)
{
    HF_CLEANUP_FREE char *text =
        over(&holdfast__test__everything__descriptor,
             "{\"childByName\":{\"b\":{},\"new\":{}},\"byString\":{\"k\":\"new\"}}",
             "{\"childByName\":{\"a\":{\"x\":1},\"b\":{\"x\":2}},\"byString\":{\"k\":\"old\","
             "\"gone\":\"\"}}");
    const char *map = strstr(text, "\"childByName\":");

    ck_assert_ptr_nonnull(map);
    ck_assert_ptr_nonnull(strstr(text, "\"byString\":{\"k\":\"new\"}"));
    ck_assert_ptr_null(strstr(text, "\"x\":1"));
    ck_assert_ptr_null(strstr(text, "gone"));
    ck_assert_ptr_nonnull(strstr(map, "\"UPPERCase\":\"\",\"x\":2},\"new\":{"));
}
END_TEST

static size_t count(const char *text, const char *part)
{
    size_t n = 0;

    for (; (text = strstr(text, part)) != NULL; text++)
        n++;
    return n;
}

/* The inner object is new: it must not take what stood in the outer one of the same name. */
START_TEST(an_unknown_member_stays_at_its_depth)
{
    HF_CLEANUP_FREE char *child = over(&holdfast__test__everything__descriptor,
                                       "{\"child\":{\"child\":{}}}", "{\"child\":{\"x\":1}}");
    HF_CLEANUP_FREE char *map = over(&holdfast__test__everything__descriptor,
                                     "{\"childByName\":{\"k\":{\"childByName\":{\"k\":{}}}}}",
                                     "{\"childByName\":{\"k\":{\"x\":1}}}");

    ck_assert_uint_eq(count(child, "\"x\":1"), 1);
    ck_assert_uint_eq(count(map, "\"x\":1"), 1);
}
END_TEST

START_TEST(elements_of_arrays_do_not_keep_them)
{
    HF_CLEANUP_FREE char *text =
        over(&holdfast__test__everything__descriptor, "{\"pairs\":[{\"key\":\"k\"}]}",
             "{\"pairs\":[{\"key\":\"k\",\"x\":1}]}");

    ck_assert_ptr_nonnull(strstr(text, "\"pairs\":[{\"key\":\"k\",\"value\":\"\"}]"));
}
END_TEST

static const struct {
    const char *old;
    const char *error;
} BROKEN[] = {
    { "null", "line 1, column 1: expected an object, got null" },
    { " ", "line 1, column 2: expected an object, got the end of the text" },
    { "{\"x\":1", "line 1, column 7: expected ',' or '}', got the end of the text" },
    { "{}x", "line 1, column 3: expected nothing more, got x" },
    { "{\"x\":{\"a\":1,\n\"a\":2}}", "line 2, column 1: duplicate member \"a\"" },
    { "{\"x\":1,\"x\":2}", "line 1, column 8: duplicate member \"x\"" },
};

START_TEST(a_broken_old_text_is_refused)
{
    Holdfast__V1__Owner owner = HOLDFAST__V1__OWNER__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_error err = { "" };

    hf_buf_puts(&out, "before");
    ck_assert_int_eq(
        hf_json_encode_over(&owner.base, BROKEN[_i].old, strlen(BROKEN[_i].old), &out, &err),
        HF_EINVAL);
    ck_assert_str_eq(err.text, BROKEN[_i].error);
    ck_assert_str_eq(out.data, "before");
}
END_TEST

START_TEST(limits_hold_for_the_old_text)
{
    Holdfast__V1__Owner owner = HOLDFAST__V1__OWNER__INIT;
    HF_CLEANUP_BUF struct hf_buf old = { 0 };
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_error err = { "" };

    hf_buf_puts(&old, "{\"x\":");
    for (int i = 0; i < HF_JSON_MAX_DEPTH; i++)
        hf_buf_putc(&old, '[');
    ck_assert_int_eq(hf_json_encode_over(&owner.base, old.data, old.len, &out, &err),
                     HF_ELIMIT);
    ck_assert_str_eq(err.text, "line 1, column 69: nested deeper than the limit");
    ck_assert_int_eq(
        hf_json_encode_over(&owner.base, old.data, HF_JSON_MAX_BYTES + 1, &out, &err),
        HF_ELIMIT);
}
END_TEST

START_TEST(a_failing_buffer_keeps_what_it_had)
{
    Holdfast__V1__Owner owner = HOLDFAST__V1__OWNER__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { .limit = 24 };
    const char *old = "{\"unknown\":\"12345678901234567890\"}";

    hf_buf_puts(&out, "before");
    ck_assert_int_eq(hf_json_encode_over(&owner.base, old, strlen(old), &out, NULL), HF_ELIMIT);
    ck_assert_str_eq(out.data, "before");
}
END_TEST

/* As many labels as a text can hold. Whoever looks for each of them among all takes longer than
 * a test may, and than a lease lives. */
START_TEST(many_keys_of_a_map_are_not_compared_with_each_other)
{
    enum { MANY = 340000 };
    HF_CLEANUP_BUF struct hf_buf old = { 0 };
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    ProtobufCMessage *task = NULL;

    hf_buf_puts(&old, "{\"labels\":{");
    for (int i = MANY; i > 0; i--)
        hf_buf_printf(&old, "\"%06d\":\"\"%s", i, i > 1 ? "," : "}}");
    ck_assert_int_eq(
        hf_json_decode(&holdfast__v1__task__descriptor, old.data, old.len, NULL, &task, NULL),
        HF_OK);
    ck_assert_int_eq(hf_json_encode_over(task, old.data, old.len, &out, NULL), HF_OK);
    ck_assert_ptr_nonnull(strstr(out.data, "{\"340000\":\"\",\"339999\":"));
    hf_json_free(task);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("over");
    int n = sizeof OVERS / sizeof OVERS[0];

    tcase_add_loop_test(t, lays_the_record_over_the_old_text, 0, n);
    tcase_add_loop_test(t, writing_over_is_stable, 0, n);
    tcase_add_test(t, values_of_maps_keep_their_unknown_members_and_removed_keys_go);
    tcase_add_test(t, an_unknown_member_stays_at_its_depth);
    tcase_add_test(t, elements_of_arrays_do_not_keep_them);
    tcase_add_loop_test(t, a_broken_old_text_is_refused, 0, sizeof BROKEN / sizeof BROKEN[0]);
    tcase_add_test(t, limits_hold_for_the_old_text);
    tcase_add_test(t, a_failing_buffer_keeps_what_it_had);
    tcase_add_test(t, many_keys_of_a_map_are_not_compared_with_each_other);
    return hft_suite_run("schema/json", t, NULL);
}
