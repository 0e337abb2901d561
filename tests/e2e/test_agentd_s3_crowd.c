/* test_agentd_s3_crowd.c - many objects and much to do: who waits for a checkpoint goes first,
 * and a list goes on where its first page ends. */
#include "s3_fixture.h"

#define TWO                                                                                    \
    TAKE_TASK                                                                                  \
    "head -c 100000 /dev/urandom >one; head -c 100000 /dev/urandom >two; " KEEP("one")         \
        AFTER("go") KEEP("two") COMPARE("two") STAY

enum { STRAYS = 300, AT_ONE_LOOK = 50 };

START_TEST(whatever_is_to_be_removed_holds_up_nobody)
{
    pid_t agentd;

    begin_leader();
    hft_bucket_set(&bucket, "keep", "");
    agentd =
        start_s3((const char *[]){ "--store-sweep", "1s", "--s3-timeout", "10m", NULL }, TWO);
    await_line("one.answer", "201");
    leave_strays("one.answer", "t9", STRAYS);
    await_count(count_requests, " kept", 1, "an object that is removed");
    write_file("go", "");
    await_line("compared", "done");
    expect_answer("two.answer", "201");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_count(&bucket, " kept"), 1); /* one helper is at it */
    hft_bucket_unset(&bucket, "keep");
    await_count(count_objects, "/t9/", 0, "no leftovers");
    ck_assert_int_ge(hft_bucket_count(&bucket, "list-type"), STRAYS / AT_ONE_LOOK);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/t1/"), 2);
    expect_signed();
    (void)stop(agentd);
}
END_TEST

#define FOUR_PUTS                                                                              \
    TAKE_TASK                                                                                  \
    "head -c 100000 /dev/urandom >one; head -c 9000000 /dev/urandom >long; " KEEP("one")       \
        AFTER("go") "for i in 1 2 3 4; do " CURL "-o put$i -T long " CHECKPOINT                \
                    " & done; " AFTER("load") COMPARE("one") STAY

static bool are_uploads_begun(void *arg)
{
    (void)arg;
    return hft_bucket_count(&bucket, "partNumber=1") >= 3;
}

START_TEST(uploads_do_not_hold_up_who_reads)
{
    pid_t agentd = start_s3((const char *[]){ "--s3-timeout", "10m", NULL }, FOUR_PUTS);

    await_line("one.answer", "201");
    hft_bucket_set(&bucket, "stall", "2");
    write_file("go", "");
    hft_wait_or_fail(are_uploads_begun, NULL, STEP_MS, "uploads");
    write_file("load", "");
    await_line("compared", "done");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

START_TEST(a_list_is_read_to_its_last_page)
{
    pid_t agentd;

    begin_leader();
    hft_bucket_set(&bucket, "page", "2");
    write_file("go", "");
    agentd = start_s3((const char *[]){ "--store-sweep", "1s", NULL }, TWO);
    await_line("compared", "done");
    leave_strays("one.answer", "t9", 3); /* after .holdfast-owner and both of t1 */
    await_count(count_objects, "/t9/", 0, "no leftovers");
    ck_assert_int_gt(hft_bucket_count(&bucket, "continuation-token"), 0);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/t1/"), 2);
    expect_signed();
    (void)stop(agentd);
}
END_TEST

/* <bucket>.localhost is this machine, as every name beneath localhost (RFC 6761). */
START_TEST(the_bucket_may_stand_in_the_name_of_the_host)
{
    pid_t agentd;

    (void)snprintf(bucket.endpoint, sizeof bucket.endpoint, "http://localhost:%s",
                   strrchr(bucket.endpoint, ':') + 1);
    write_file("go", "");
    agentd = start_s3((const char *[]){ "--s3-addressing", "virtual_host", NULL }, TWO);
    await_line("compared", "done");
    expect_answer("two.answer", "201");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/checkpoints/holdfast/default/t1/"), 2);
    ck_assert_int_eq(hft_bucket_count(&bucket, "PUT /holdfast/default/t1/"), 2);
    expect_signed();
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");
    int rc = hft_bucket_install();

    if (rc != 0)
        return rc;
    tcase_add_checked_fixture(stories, begin, end);
    tcase_set_timeout(stories, 180);
    tcase_add_test(stories, whatever_is_to_be_removed_holds_up_nobody);
    tcase_add_test(stories, uploads_do_not_hold_up_who_reads);
    tcase_add_test(stories, a_list_is_read_to_its_last_page);
    tcase_add_test(stories, the_bucket_may_stand_in_the_name_of_the_host);
    return hft_suite_run("agentd: s3, a crowd", stories, NULL);
}
