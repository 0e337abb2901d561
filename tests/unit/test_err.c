#include <check.h>
#include <string.h>

#include "base/err.h"
#include "support/suite.h"

/* The numbers are part of the wire between our programs: a change must be noticed. */
static const struct {
    int code;
    int value;
    const char *name;
} CODES[] = {
    { HF_OK, 0, "OK" },
    { HF_ENOMEM, -1, "ENOMEM" },
    { HF_EINVAL, -2, "EINVAL" },
    { HF_ENOENT, -3, "ENOENT" },
    { HF_EEXIST, -4, "EEXIST" },
    { HF_ECONFLICT, -5, "ECONFLICT" },
    { HF_EFENCED, -6, "EFENCED" },
    { HF_ECOMPACT, -7, "ECOMPACT" },
    { HF_EAGAIN, -8, "EAGAIN" },
    { HF_ETIMEOUT, -9, "ETIMEOUT" },
    { HF_EDENIED, -10, "EDENIED" },
    { HF_ELIMIT, -11, "ELIMIT" },
    { HF_ECORRUPT, -12, "ECORRUPT" },
    { HF_EIO, -13, "EIO" },
    { HF_ENOSPACE, -14, "ENOSPACE" },
    { HF_EHISTORY, -15, "EHISTORY" },
    { HF_ECANCELED, -16, "ECANCELED" },
};

#define CODE_COUNT ((int)(sizeof CODES / sizeof CODES[0]))

START_TEST(every_code_has_its_value_name_and_text)
{
    ck_assert_int_eq(CODES[_i].code, CODES[_i].value);
    ck_assert_str_eq(hf_err_name(CODES[_i].code), CODES[_i].name);
    ck_assert_str_ne(hf_err_text(CODES[_i].code), "E?");
    ck_assert_uint_gt(strlen(hf_err_text(CODES[_i].code)), 4);
}
END_TEST

START_TEST(the_table_above_is_complete)
{
#define X(name, value, text) (value),
    const int values[] = { HF_OK, HF_ERR_MAP(X) };
#undef X

    ck_assert_int_eq(CODE_COUNT, sizeof values / sizeof values[0]);
}
END_TEST

START_TEST(texts_differ)
{
    for (int i = 0; i < CODE_COUNT; i++) {
        for (int j = i + 1; j < CODE_COUNT; j++)
            ck_assert_str_ne(hf_err_text(CODES[i].code), hf_err_text(CODES[j].code));
    }
}
END_TEST

START_TEST(unknown_codes_have_a_name_too)
{
    ck_assert_str_eq(hf_err_name(1), "E?");
    ck_assert_str_eq(hf_err_name(-17), "E?");
    ck_assert_str_eq(hf_err_text(-1000), "E?");
}
END_TEST

START_TEST(error_set_formats_and_returns_the_code)
{
    struct hf_error err;

    ck_assert_int_eq(hf_error_set(&err, HF_EINVAL, "ttl must be positive, not %d", -3),
                     HF_EINVAL);
    ck_assert_str_eq(err.text, "ttl must be positive, not -3");
}
END_TEST

START_TEST(error_set_does_without_a_place_for_the_text)
{
    ck_assert_int_eq(hf_error_set(NULL, HF_EIO, "lost"), HF_EIO);
}
END_TEST

START_TEST(error_set_cuts_a_long_text)
{
    struct hf_error err;

    ck_assert_int_eq(hf_error_set(&err, HF_ELIMIT, "%0300d", 7), HF_ELIMIT);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_uint_eq(strspn(err.text, "0"), sizeof err.text - 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("err");

    tcase_add_loop_test(t, every_code_has_its_value_name_and_text, 0, CODE_COUNT);
    tcase_add_test(t, the_table_above_is_complete);
    tcase_add_test(t, texts_differ);
    tcase_add_test(t, unknown_codes_have_a_name_too);
    tcase_add_test(t, error_set_formats_and_returns_the_code);
    tcase_add_test(t, error_set_does_without_a_place_for_the_text);
    tcase_add_test(t, error_set_cuts_a_long_text);
    return hft_suite_run("base/err", t, NULL);
}
