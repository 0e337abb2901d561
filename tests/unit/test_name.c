#include <check.h>
#include <stdbool.h>
#include <string.h>

#include "schema/name.h"
#include "support/suite.h"

static char longest[HF_NAME_SIZE]; /* 253 characters: just right */
static char too_long[HF_NAME_SIZE + 1];

static const struct {
    const char *name;
    const char *complaint; /* NULL: it is a name */
} NAMES[] = {
    { "a", NULL },
    { "7", NULL },
    { "writer-3", NULL },
    { "node-7.rack_2.example", NULL },
    { "a..b--__", NULL },
    { longest, NULL },
    { NULL, "agent name is missing" },
    { "", "agent name, character 1: a name must not be empty" },
    { ".", "agent name, character 1: a name begins with" },
    { "..", "agent name, character 1: a name begins with" },
    { "-rf", "agent name, character 1: a name begins with" },
    { "_a", "agent name, character 1: a name begins with" },
    { "Writer", "agent name, character 1: a name begins with" },
    { "wriTer", "agent name, character 4: a name consists of" },
    { "a b", "agent name, character 2: a name consists of" },
    { "a/b", "agent name, character 2: a name consists of" },
    { "a\n", "agent name, character 2: a name consists of" },
    { "a\x7f", "agent name, character 2: a name consists of" },
    { "na\xc3\xafve", "agent name, character 3: a name consists of" },
    { too_long, "agent name, character 254: a name has at most" },
};

START_TEST(check_accepts_names_and_says_what_is_wrong_with_others)
{
    struct hf_error err = { "" };
    int want = NAMES[_i].complaint == NULL ? HF_OK : HF_EINVAL;

    ck_assert_int_eq(hf_name_check("agent name", NAMES[_i].name, &err), want);
    ck_assert_int_eq(hf_name_check("agent name", NAMES[_i].name, NULL), want);
    if (want == HF_OK)
        ck_assert_str_eq(err.text, "");
    else
        ck_assert_ptr_nonnull(strstr(err.text, NAMES[_i].complaint));
}
END_TEST

/* Against the rule, spelled out again over every byte and both places. */
START_TEST(every_byte_is_judged_by_the_rule)
{
    const char *first = "abcdefghijklmnopqrstuvwxyz0123456789";
    const char *inner = "abcdefghijklmnopqrstuvwxyz0123456789._-";

    for (int byte = 0; byte < 256; byte++) {
        char text[] = { 'a', (char)byte };
        bool good_first = byte != 0 && strchr(first, byte) != NULL;
        bool good_inner = byte != 0 && strchr(inner, byte) != NULL;
        size_t at = 99;

        ck_assert_int_eq(hf_name_fault(&text[1], 1, &at) == NULL, good_first);
        ck_assert_uint_eq(at, 0);
        ck_assert_int_eq(hf_name_fault(text, 2, &at) == NULL, good_inner);
        ck_assert_uint_eq(at, good_inner ? 0 : 1);
    }
}
END_TEST

START_TEST(lower_folds_the_case_of_ascii_only)
{
    char name[HF_NAME_SIZE] = "untouched";

    ck_assert_int_eq(hf_name_lower("host name", "Node-7.Example.COM", name, NULL), HF_OK);
    ck_assert_str_eq(name, "node-7.example.com");
    ck_assert_int_eq(hf_name_lower("host name", "AZaz09", name, NULL), HF_OK);
    ck_assert_str_eq(name, "azaz09");
}
END_TEST

START_TEST(lower_leaves_its_output_alone_on_failure)
{
    const char *bad[] = { NULL, "", "-A", "A B", "[", "\xc3\x84", too_long };
    struct hf_error err;
    char name[HF_NAME_SIZE] = "untouched";

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(hf_name_lower("host name", bad[i], name, &err), HF_EINVAL);
        ck_assert_str_eq(name, "untouched");
        ck_assert_int_eq(strncmp(err.text, "host name", 9), 0);
    }
}
END_TEST

START_TEST(lower_takes_the_longest_name)
{
    char upper[HF_NAME_SIZE];
    char name[HF_NAME_SIZE];

    memset(upper, 'X', HF_NAME_MAX);
    upper[HF_NAME_MAX] = '\0';
    ck_assert_int_eq(hf_name_lower("host name", upper, name, NULL), HF_OK);
    ck_assert_str_eq(name, longest);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("name");

    memset(longest, 'x', HF_NAME_MAX);
    memset(too_long, 'x', HF_NAME_MAX + 1);
    tcase_add_loop_test(t, check_accepts_names_and_says_what_is_wrong_with_others, 0,
                        sizeof NAMES / sizeof NAMES[0]);
    tcase_add_test(t, every_byte_is_judged_by_the_rule);
    tcase_add_test(t, lower_folds_the_case_of_ascii_only);
    tcase_add_test(t, lower_leaves_its_output_alone_on_failure);
    tcase_add_test(t, lower_takes_the_longest_name);
    return hft_suite_run("schema/name", t, NULL);
}
