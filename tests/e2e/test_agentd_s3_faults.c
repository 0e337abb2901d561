/* test_agentd_s3_faults.c - servers that are busy, refuse, or lose what they were told, and
 * deaths on our side. Nothing is lost, and nothing is left behind. */
#include "s3_fixture.h"

/* Servers that are not well. */

#define ONE TAKE_TASK "head -c 100000 /dev/urandom >one; " KEEP("one") COMPARE("one") STAY

START_TEST(a_busy_server_is_asked_again)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "busy", "3");
    agentd = start_s3(NULL, ONE);
    await_line("compared", "done");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_count(&bucket, "503 SlowDown"), 3);
    (void)stop(agentd);
}
END_TEST

START_TEST(half_an_object_is_asked_for_again)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "cut", "2");
    agentd = start_s3(NULL, ONE);
    await_line("compared", "done");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_count(&bucket, " cut"), 2);
    (void)stop(agentd);
}
END_TEST

/* Who is refused is told why, in words that say what to do. */
static const struct {
    const char *id, *secret, *region, *fault, *said;
} REFUSALS[] = {
    { "nobody", "x", "us-east-1", NULL, "does not know the access key of" },
    { HFT_BUCKET_KEY_ID, "wrong", "us-east-1", NULL, "does not fit its id" },
    { HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET, "eu-west-1", NULL,
      "is not in checkpoints.s3.region eu-west-1, but in us-east-1" },
    { HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET, "us-east-1", "skew", "clock is wrong" },
};

START_TEST(who_is_refused_is_told_why)
{
    pid_t agentd;

    write_keys(REFUSALS[_i].id, REFUSALS[_i].secret);
    if (REFUSALS[_i].fault != NULL)
        hft_bucket_set(&bucket, REFUSALS[_i].fault, "");
    agentd = start_s3((const char *[]){ "--s3-region", REFUSALS[_i].region, NULL },
                      TAKE_TASK "echo x >one; " KEEP("one") "mv one.answer told; " STAY);
    await_line("told", "503");
    expect_answer("told", REFUSALS[_i].said);
    ck_assert_int_eq(hft_bucket_count(&bucket, ""), 1); /* to ask again would not help */
    (void)stop(agentd);
}
END_TEST

/* A key that was renewed counts from the next request on. */
START_TEST(keys_can_be_renewed)
{
    pid_t agentd;

    write_keys(HFT_BUCKET_KEY_ID, "old");
    agentd = start_s3(NULL, TAKE_TASK "echo x >one; " KEEP("one") "mv one.answer told; " AFTER(
                                "go") KEEP("one") "mv one.answer again; " STAY);
    await_line("told", "503");
    write_keys(HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET);
    write_file("go", "");
    await_line("again", "201");
    (void)stop(agentd);
}
END_TEST

/* A key that is only lent comes with a token, which is signed as well: the bucket refuses what
 * it finds in a request and not in its signature. */
START_TEST(a_lent_key_goes_with_its_token)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "token", "FwoGZXIvYXdzE/+a==");
    write_lent_keys(HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET, "another");
    agentd = start_s3(NULL, TAKE_TASK "head -c 9000000 /dev/urandom >one; " KEEP_PATH(
                                "one") "mv one.answer told; " AFTER("go") KEEP_PATH("one")
                                COMPARE("one") STAY);
    await_line("told", "503");
    expect_answer("told", "is over: renew it");
    write_lent_keys(HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET, "FwoGZXIvYXdzE/+a==");
    write_file("go", "");
    await_line("compared", "done");
    expect_answer("one.answer", "201");
    expect_answer("compared", "as stored");
    verify(0, "whole");
    ck_assert_int_eq(hft_bucket_count(&bucket, " 403"), 1); /* that of before */
    (void)stop(agentd);
}
END_TEST

/* Keys may stand in the environment; the agent has one, too, and sees nothing of them. */
START_TEST(agents_see_no_keys)
{
    const char *const *needed = hft_sanitizer_env();
    const char *list[24] = { "HOLDFAST_S3_ACCESS_KEY_ID=" HFT_BUCKET_KEY_ID,
                             "HOLDFAST_S3_SECRET_ACCESS_KEY=" HFT_BUCKET_SECRET };
    size_t count = 2;
    char *seen;
    pid_t agentd;

    for (; needed != NULL && *needed != NULL; needed++)
        list[count++] = *needed;
    variables = list;
    write_keys("nobody", "nothing");
    agentd =
        start_s3(NULL, TAKE_TASK "echo x >one; " KEEP("one") "env >seen; mv seen env; " STAY);
    await_line("env", "HOLDFAST_TOKEN");
    expect_answer("one.answer", "201");
    seen = read_file("env");
    ck_assert_msg(strstr(seen, HFT_BUCKET_SECRET) == NULL &&
                      strstr(seen, "HOLDFAST_S3") == NULL,
                  "%s", seen);
    free(seen);
    seen = read_file("agentd.log");
    ck_assert_msg(strstr(seen, HFT_BUCKET_SECRET) == NULL, "%s", seen);
    free(seen);
    (void)stop(agentd);
}
END_TEST

/* Each of them may need a gigabyte of the disk. */
START_TEST(no_more_than_four_are_given_back_at_once)
{
    char *codes;
    int given = 0;
    pid_t agentd =
        start_s3(NULL, TAKE_TASK "head -c 100000 /dev/urandom >one; " KEEP("one")
                           AFTER("go") "for i in 1 2 3 4 5; do " CURL
                                       "-o got$i -w '%{http_code}\\n' " CHECKPOINT
                                       " >>codes & done; wait; echo over >>codes; " STAY);

    await_line("one.answer", "201");
    hft_bucket_set(&bucket, "hang", "");
    write_file("go", "");
    await_line("codes", "429");
    hft_bucket_unset(&bucket, "hang");
    await_line("codes", "over");
    codes = read_file("codes");
    for (const char *at = codes; (at = strstr(at, "200\n")) != NULL; at++)
        given++;
    ck_assert_msg(given == 4, "%s", codes);
    free(codes);
    (void)stop(agentd);
}
END_TEST

/* Uploads that come to no good end. */

#define PARTS                                                                                  \
    TAKE_TASK "head -c 20000000 /dev/urandom >long; " KEEP_PATH(                               \
        "long") "mv long.answer told; " AFTER("go")                                            \
        KEEP_PATH("long") "mv long.answer again; " COMPARE("long") STAY

START_TEST(an_upload_that_fails_leaves_nothing)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "parts", "3");
    agentd = start_s3(NULL, PARTS);
    await_line("told", "503");
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 0);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/t1/"), 0);
    ck_assert_int_eq(hft_bucket_count(&bucket, "DELETE"), 1);
    hft_bucket_unset(&bucket, "parts");
    write_file("go", "");
    await_line("compared", "done");
    expect_answer("again", "201");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

START_TEST(a_failure_that_comes_with_200_is_one)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "late", "1");
    agentd = start_s3(NULL, PARTS);
    await_line("told", "503");
    expect_answer("told", "could not join the parts");
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 0);
    (void)stop(agentd);
}
END_TEST

START_TEST(an_upload_whose_end_nobody_heard_of_is_one)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "lost", "1");
    write_file("go", "");
    agentd = start_s3(NULL, PARTS);
    await_line("compared", "done");
    expect_answer("told", "201");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_count(&bucket, "404 NoSuchUpload"), 1);
    (void)stop(agentd);
}
END_TEST

/* Deaths. */

START_TEST(a_helper_that_is_killed_is_replaced)
{
    pid_t agentd;

    begin_leader();
    hft_bucket_set(&bucket, "stall", "2");
    write_file("go", "");
    agentd = start_s3((const char *[]){ "--store-sweep", "1s", NULL }, PARTS);
    await_count(count_requests, "partNumber=1", 1, "the first part");
    kill_helpers(); /* the one that looks for leftovers as well */
    await_line("agentd.log", "object=default/t1/");
    hft_bucket_unset(&bucket, "stall");
    await_line("told", "201");
    await_line("compared", "as stored");
    expect_signed();
    /* What it left is found when it is old. */
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 1);
    hft_bucket_set(&bucket, "old", "");
    await_count(count_uploads, "", 0, "no uploads");
    verify(0, "whole");
    (void)stop(agentd);
}
END_TEST

START_TEST(a_link_that_is_killed_takes_its_uploads_with_it)
{
    pid_t agentd;

    hft_bucket_set(&bucket, "hang", "");
    agentd = start_s3(NULL, PARTS);
    await("tasks/t1", "in_progress");
    await_helper();
    kill_link();
    await_link(2);
    hft_bucket_unset(&bucket, "hang");
    await_count(count_uploads, "", 0, "no uploads");
    write_file("go", "");
    await_line("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

START_TEST(an_agentd_that_is_stopped_waits_for_no_server)
{
    hf_ms began;
    pid_t agentd;

    hft_bucket_set(&bucket, "hang", "");
    agentd = start_s3((const char *[]){ "--s3-timeout", "10m", NULL }, PARTS);
    await("tasks/t1", "in_progress");
    await_helper();
    began = hft_now();
    (void)stop(agentd);
    ck_assert_int_lt(hft_now() - began, 30000);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");
    int rc = hft_bucket_install();

    if (rc != 0)
        return rc;
    tcase_add_checked_fixture(stories, begin, end);
    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, a_busy_server_is_asked_again);
    tcase_add_test(stories, half_an_object_is_asked_for_again);
    tcase_add_loop_test(stories, who_is_refused_is_told_why, 0,
                        sizeof REFUSALS / sizeof REFUSALS[0]);
    tcase_add_test(stories, keys_can_be_renewed);
    tcase_add_test(stories, a_lent_key_goes_with_its_token);
    tcase_add_test(stories, agents_see_no_keys);
    tcase_add_test(stories, no_more_than_four_are_given_back_at_once);
    tcase_add_test(stories, an_upload_that_fails_leaves_nothing);
    tcase_add_test(stories, a_failure_that_comes_with_200_is_one);
    tcase_add_test(stories, an_upload_whose_end_nobody_heard_of_is_one);
    tcase_add_test(stories, a_helper_that_is_killed_is_replaced);
    tcase_add_test(stories, a_link_that_is_killed_takes_its_uploads_with_it);
    tcase_add_test(stories, an_agentd_that_is_stopped_waits_for_no_server);
    return hft_suite_run("agentd: s3, faults", stories, NULL);
}
