#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/fields.h"
#include "support/chaos.h"
#include "unit/suite.h"

static struct {
    char *text;
    char name[8], cut[8];
    int64_t number;
    int32_t small;
    bool flag;
    hf_ms length, time;
} got;

static const struct hf_field INNER[] = {
    { .name = "seq", .kind = HF_FIELD_INT, .place = &got.number }
};
static const struct hf_field FIELDS[] = {
    { .name = "text", .kind = HF_FIELD_TEXT, .place = (void *)&got.text },
    { .name = "name", .kind = HF_FIELD_NAME, .place = got.name, .size = sizeof got.name },
    { .name = "cut", .kind = HF_FIELD_CUT, .place = got.cut, .size = sizeof got.cut },
    { .name = "number", .kind = HF_FIELD_INT, .place = &got.number },
    { .name = "small", .kind = HF_FIELD_INT32, .place = &got.small },
    { .name = "flag", .kind = HF_FIELD_BOOL, .place = &got.flag },
    { .name = "length", .kind = HF_FIELD_DURATION, .place = &got.length },
    { .name = "time", .kind = HF_FIELD_TIME, .place = &got.time },
    { .name = "inner", .kind = HF_FIELD_OBJECT, .inner = INNER, .size = COUNT(INNER) },
};

static int read_text(const char *text, struct hf_error *err)
{
    free(got.text);
    memset(&got, 0, sizeof got);
    return hf_fields_read(text, strlen(text), FIELDS, COUNT(FIELDS), err);
}

static void forget(void)
{
    free(got.text);
    got.text = NULL;
}

START_TEST(members_are_read_in_any_order_and_others_passed_over)
{
    ck_assert_int_eq(read_text(" {\"other\": [{\"text\":1}], \"flag\":true,\"number\":\"-5\",\n"
                               "\"small\":7,\"length\":\"2.500s\",\"cut\":\"abc\\u00e9fgh\","
                               "\"time\":\"2026-01-31T08:15:30.250Z\",\"name\":\"1234567\","
                               "\"text\":\"a\\n\\\"b\\u20ac\"} ",
                               NULL),
                     HF_OK);
    ck_assert(got.flag);
    ck_assert_int_eq(got.number, -5);
    ck_assert_int_eq(got.small, 7);
    ck_assert_int_eq(got.length, 2500);
    ck_assert_int_eq(got.time, 1769847330250);
    ck_assert_str_eq(got.cut, "abc\xc3\xa9"
                              "fg");
    ck_assert_str_eq(got.name, "1234567");
    ck_assert_str_eq(got.text, "a\n\"b\xe2\x82\xac");
    ck_assert_int_eq(read_text("{\"cut\":\"abcdef\\u00e9\"}", NULL), HF_OK);
    ck_assert_str_eq(got.cut, "abcdef"); /* no half of a character */
    ck_assert_int_eq(read_text("{\"inner\":{\"x\":1,\"seq\":9}}", NULL), HF_OK);
    ck_assert_int_eq(got.number, 9);
    forget();
}
END_TEST

START_TEST(what_is_absent_or_null_is_left_as_it_was)
{
    ck_assert_int_eq(read_text("{\"text\":null,\"number\":null,\"inner\":null}", NULL), HF_OK);
    ck_assert_ptr_null(got.text);
    ck_assert_int_eq(got.number, 0);
    ck_assert_int_eq(read_text("{}", NULL), HF_OK);
}
END_TEST

static const struct {
    const char *text, *why;
    int rc;
} BAD[] = {
    { "", "object", HF_EINVAL },
    { "[]", "object", HF_EINVAL },
    { "{} x", "nothing more", HF_EINVAL },
    { "{", "member name", HF_EINVAL },
    { "{\"text\":\"a}", "does not end", HF_EINVAL },
    { "{\"text\":1}", "text", HF_EINVAL },
    { "{\"text\":\"a\\u0000b\"}", "NUL", HF_EINVAL },
    { "{\"text\":\"\xff\"}", "UTF-8", HF_EINVAL },
    { "{\"text\":\"a\",\"text\":\"b\"}", "duplicate", HF_EINVAL },
    { "{\"other\":{\"a\":1,\"a\":2}}", "duplicate", HF_EINVAL },
    { "{\"name\":\"12345678\"}", "longer than 7 bytes", HF_ELIMIT },
    { "{\"number\":1.5}", "integer", HF_EINVAL },
    { "{\"number\":\"9223372036854775808\"}", "integer", HF_ELIMIT },
    { "{\"small\":2147483648}", "integer", HF_ELIMIT },
    { "{\"flag\":1}", "value", HF_EINVAL },
    { "{\"length\":\"5\"}", "duration", HF_EINVAL },
    { "{\"time\":\"yesterday\"}", "time", HF_EINVAL },
    { "{\"inner\":[]}", "inner", HF_EINVAL },
    { "{\"inner\":{\"seq\":true}}", "inner.seq", HF_EINVAL },
};

START_TEST(what_makes_no_sense_is_refused_with_its_place)
{
    struct hf_error err = { "" };

    ck_assert_int_eq(read_text(BAD[_i].text, &err), BAD[_i].rc);
    ck_assert_msg(strstr(err.text, BAD[_i].why) != NULL, "%s", err.text);
    forget();
}
END_TEST

START_TEST(no_depth_exhausts_the_stack)
{
    static char text[4000];

    (void)snprintf(text, sizeof text, "{\"other\":");
    memset(text + 9, '[', sizeof text - 10);
    ck_assert_int_eq(read_text(text, NULL), HF_ELIMIT);
}
END_TEST

START_TEST(what_is_written_reads_back)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_fields_begin(&buf);
    hf_fields_add_text(&buf, "text", "a\"\\\n\x01\xe2\x82\xac{");
    hf_fields_add_text(&buf, "other", NULL);
    hf_fields_add_int(&buf, "number", INT64_MIN);
    hf_fields_add_number(&buf, "percent", 12.5);
    hf_fields_add_time(&buf, "time", 1769847330250);
    hf_fields_add_duration(&buf, "length", 61042);
    hf_fields_end(&buf);
    ck_assert_int_eq(buf.err, HF_OK);
    ck_assert_str_eq(buf.data, "{\"text\":\"a\\u0022\\u005c\\u000a\\u0001\xe2\x82\xac{\","
                               "\"number\":\"-9223372036854775808\",\"percent\":12.5,"
                               "\"time\":\"2026-01-31T08:15:30.250Z\",\"length\":\"61.042s\"}");
    ck_assert_int_eq(read_text(buf.data, NULL), HF_OK);
    ck_assert_str_eq(got.text, "a\"\\\n\x01\xe2\x82\xac{");
    ck_assert_int_eq(got.number, INT64_MIN);
    ck_assert_int_eq(got.length, 61042);
    forget();
}
END_TEST

START_TEST(a_text_that_is_not_utf_8_is_not_written)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_fields_begin(&buf);
    hf_fields_add_text(&buf, "text", "\xc3");
    hf_fields_end(&buf);
    ck_assert_int_eq(buf.err, HF_EINVAL);
}
END_TEST

static int read_one(void *arg)
{
    char *text = NULL;
    const struct hf_field field = { .name = "text",
                                    .kind = HF_FIELD_TEXT,
                                    .place = (void *)&text };
    static const char TEXT[] = "{\"a\\u0041\":1,\"text\":\"b\\n\"}";
    int rc = hf_fields_read(TEXT, sizeof TEXT - 1, &field, 1, NULL);

    (void)arg;
    free(text);
    return rc;
}

START_TEST(without_memory_it_says_so)
{
    ck_assert_uint_ge(hft_chaos_run(read_one, NULL), 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fields");

    tcase_add_test(t, members_are_read_in_any_order_and_others_passed_over);
    tcase_add_test(t, what_is_absent_or_null_is_left_as_it_was);
    tcase_add_loop_test(t, what_makes_no_sense_is_refused_with_its_place, 0, COUNT(BAD));
    tcase_add_test(t, no_depth_exhausts_the_stack);
    tcase_add_test(t, what_is_written_reads_back);
    tcase_add_test(t, a_text_that_is_not_utf_8_is_not_written);
    tcase_add_test(t, without_memory_it_says_so);
    return run("client/fields", t);
}
