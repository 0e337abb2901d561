/* Signature Version 4, held against the examples that Amazon publishes for S3. */
#include <string.h>

#include "io/s3_sign.h"
#include "support/suite.h"

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define DATE  "20130524T000000Z"
#define HOST                                                                                   \
    {                                                                                          \
        "host", "examplebucket.s3.amazonaws.com"                                               \
    }
#define ENTRY "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"

/* Of "Signature Calculations for the Authorization Header" in the API reference of S3. */
static const struct {
    const char *method, *path, *sha256, *names, *signature;
    struct hf_s3_pair query[2];
    size_t query_count;
    struct hf_s3_pair headers[5];
    size_t header_count;
} EXAMPLES[] = {
    { .method = "GET",
      .path = "/test.txt",
      .sha256 = EMPTY,
      .headers = { HOST,
                   { "range", "bytes=0-9" },
                   { "x-amz-content-sha256", EMPTY },
                   { "x-amz-date", DATE } },
      .header_count = 4,
      .names = "host;range;x-amz-content-sha256;x-amz-date",
      .signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41" },
    { .method = "PUT",
      .path = "/test%24file.text",
      .sha256 = ENTRY,
      .headers = { { "date", "Fri, 24 May 2013 00:00:00 GMT" },
                   HOST,
                   { "x-amz-content-sha256", ENTRY },
                   { "x-amz-date", DATE },
                   { "x-amz-storage-class", "REDUCED_REDUNDANCY" } },
      .header_count = 5,
      .names = "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
      .signature = "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd" },
    { .method = "GET",
      .path = "/",
      .sha256 = EMPTY,
      .query = { { "lifecycle", "" } },
      .query_count = 1,
      .headers = { HOST, { "x-amz-content-sha256", EMPTY }, { "x-amz-date", DATE } },
      .header_count = 3,
      .names = "host;x-amz-content-sha256;x-amz-date",
      .signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543" },
    { .method = "GET",
      .path = "/",
      .sha256 = EMPTY,
      .query = { { "max-keys", "2" }, { "prefix", "J" } },
      .query_count = 2,
      .headers = { HOST, { "x-amz-content-sha256", EMPTY }, { "x-amz-date", DATE } },
      .header_count = 3,
      .names = "host;x-amz-content-sha256;x-amz-date",
      .signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7" },
};

static struct hf_s3_signed example(int i)
{
    return (struct hf_s3_signed){ .method = EXAMPLES[i].method,
                                  .path = EXAMPLES[i].path,
                                  .query = EXAMPLES[i].query,
                                  .query_count = EXAMPLES[i].query_count,
                                  .headers = EXAMPLES[i].headers,
                                  .header_count = EXAMPLES[i].header_count,
                                  .sha256 = EXAMPLES[i].sha256,
                                  .date = DATE,
                                  .region = "us-east-1",
                                  .key_id = "AKIAIOSFODNN7EXAMPLE",
                                  .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY" };
}

START_TEST(published_examples_get_their_signatures)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    HF_CLEANUP_BUF struct hf_buf want = { 0 };
    struct hf_s3_signed what = example(_i);

    hf_buf_printf(&want,
                  "AWS4-HMAC-SHA256 "
                  "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
                  "SignedHeaders=%s,Signature=%s",
                  EXAMPLES[_i].names, EXAMPLES[_i].signature);
    ck_assert_int_eq(hf_s3_sign(&what, &out), HF_OK);
    ck_assert_str_eq(out.data, want.data);
}
END_TEST

START_TEST(a_date_of_another_form_is_refused)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_s3_signed what = example(0);

    what.date = "2013-05-24";
    ck_assert_int_eq(hf_s3_sign(&what, &out), HF_EINVAL);
}
END_TEST

START_TEST(what_is_no_letter_or_digit_is_escaped)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_s3_escape(&out, "a b/c+\xc3\xa4~", true);
    hf_s3_escape(&out, "/-._", false);
    ck_assert_str_eq(out.data, "a%20b/c%2B%C3%A4~%2F-._");
}
END_TEST

START_TEST(a_parameter_without_a_value_has_its_equals_sign)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    const struct hf_s3_pair query[] = { { "prefix", "a/b" }, { "uploads", "" } };

    hf_s3_query(&out, query, 2);
    ck_assert_str_eq(out.data, "prefix=a%2Fb&uploads=");
}
END_TEST

int main(void)
{
    TCase *sign = tcase_create("sign");

    tcase_add_loop_test(sign, published_examples_get_their_signatures, 0,
                        sizeof EXAMPLES / sizeof EXAMPLES[0]);
    tcase_add_test(sign, a_date_of_another_form_is_refused);
    tcase_add_test(sign, what_is_no_letter_or_digit_is_escaped);
    tcase_add_test(sign, a_parameter_without_a_value_has_its_equals_sign);
    return hft_suite_run("io/s3_sign", sign, NULL);
}
