/* What can be set about a bucket, and what cannot be meant. */
#include <string.h>

#include "io/s3_settings.h"
#include "support/suite.h"

static const struct hf_s3_settings GOOD = { .bucket = "checkpoints",
                                            .endpoint = "https://s3.example:9000/",
                                            .region = "us-east-1",
                                            .prefix = "holdfast/",
                                            .credentials_file = "/etc/keys",
                                            .profile = "default" };

START_TEST(without_a_bucket_nothing_else_counts)
{
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_s3_settings_check(&(struct hf_s3_settings){ .endpoint = "x" }, &err),
                     HF_OK);
    ck_assert_int_eq(hf_s3_settings_check(&GOOD, &err), HF_OK);
}
END_TEST

static const struct {
    const char *bucket, *endpoint, *prefix, *file, *id, *secret;
    const char *said; /* NULL: it is fine */
} CASES[] = {
    { .bucket = "a.b-c9", .said = NULL },
    { .bucket = "ab", .said = "bucket" },
    { .bucket = "Upper", .said = "bucket" },
    { .bucket = "a..b", .said = "bucket" },
    { .bucket = "-abc", .said = "bucket" },
    { .bucket = "a/b/c", .said = "bucket" },
    { .endpoint = "http://127.0.0.1:1", .said = NULL },
    { .endpoint = "http://[::1]:1", .said = NULL },
    { .endpoint = "s3.example", .said = "endpoint" },
    { .endpoint = "ftp://s3.example", .said = "endpoint" },
    { .endpoint = "https://", .said = "endpoint" },
    { .endpoint = "https://s3.example/path", .said = "endpoint" },
    { .endpoint = "https://user:x@s3.example", .said = "endpoint" },
    { .prefix = "a/B_c.d/", .said = NULL },
    { .prefix = "/a", .said = "prefix" },
    { .prefix = "a//b", .said = "prefix" },
    { .prefix = "../a", .said = "prefix" },
    { .prefix = "a b", .said = "prefix" },
    { .id = "x", .secret = "y", .said = NULL },
    { .id = "x", .said = "either both or none" },
    { .secret = "y", .said = "either both or none" },
    { .file = "", .said = "credentials_file" },
};

START_TEST(what_cannot_be_meant_is_said)
{
    struct hf_s3_settings settings = GOOD;
    struct hf_error err = { "" };

    settings.bucket = CASES[_i].bucket != NULL ? CASES[_i].bucket : GOOD.bucket;
    settings.endpoint = CASES[_i].endpoint != NULL ? CASES[_i].endpoint : GOOD.endpoint;
    settings.prefix = CASES[_i].prefix != NULL ? CASES[_i].prefix : GOOD.prefix;
    settings.credentials_file = CASES[_i].file != NULL ? NULL : GOOD.credentials_file;
    settings.access_key_id = CASES[_i].id;
    settings.secret_access_key = CASES[_i].secret;
    ck_assert_int_eq(hf_s3_settings_check(&settings, &err),
                     CASES[_i].said == NULL ? HF_OK : HF_EINVAL);
    if (CASES[_i].said != NULL)
        ck_assert_msg(strstr(err.text, CASES[_i].said) != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    TCase *settings = tcase_create("settings");

    tcase_add_test(settings, without_a_bucket_nothing_else_counts);
    tcase_add_loop_test(settings, what_cannot_be_meant_is_said, 0,
                        sizeof CASES / sizeof CASES[0]);
    return hft_suite_run("io/s3_settings", settings, NULL);
}
