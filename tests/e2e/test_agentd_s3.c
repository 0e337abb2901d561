/* test_agentd_s3.c - checkpoints in a bucket: kept, given back, damaged, and swept. */
#include "s3_fixture.h"
#include "support/pki.h"
#include "support/stall.h"

/* What fits into one request, and what does not. */

#define TWO                                                                                    \
    TAKE_TASK                                                                                  \
    AFTER("go")                                                                                \
    "head -c 300 /dev/zero >small; head -c 200000 /dev/urandom >large; " KEEP("small")         \
        KEEP("large") COMPARE("large") STAY

START_TEST(checkpoints_go_into_the_bucket_and_come_back)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    char *large;
    pid_t agentd = start_s3(NULL, TWO);

    await("tasks/t1", "in_progress");
    ck_assert_int_eq(count_helpers(), 0); /* nobody needs one yet */
    write_file("go", "");
    await_line("compared", "done");
    expect_answer("small.answer", "\"store\":\"s3\"");
    expect_answer("large.answer", "\"store\":\"s3\"");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(count_helpers(), 1);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/checkpoints/holdfast/default/t1/"), 2);
    verify(0, "whole");
    cli(&output, "get");
    ck_assert_int_eq(output.status, 0);
    large = read_file("large");
    ck_assert_mem_eq(output.out, large, 64);
    free(large);
    expect_signed();
    (void)stop(agentd);
}
END_TEST

/* 64 MiB and some: nine parts. It is given by its path, and passes through nobody's memory.
 * Then 12 MiB and some, which is given as it is. */
#define LONG                                                                                   \
    TAKE_TASK "head -c 67108869 /dev/urandom >long; " KEEP_PATH("long") COMPARE("long")        \
        AFTER("more") "head -c 12582917 /dev/urandom >body; " KEEP("body") STAY

static inline long peak_of(pid_t pid)
{
    char path[64], *text, *at;
    long kib;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    text = hft_read_text(path, NULL);
    at = strstr(text, "VmHWM:");
    kib = at != NULL ? strtol(at + 6, NULL, 10) : 0;
    free(text);
    return kib;
}

START_TEST(what_is_long_goes_in_parts_and_needs_no_memory)
{
    pid_t agentd = start_s3(NULL, LONG);

    await_line("compared", "done");
    expect_answer("long.answer", "\"size\":\"67108869\"");
    expect_answer("compared", "as stored");
    ck_assert_int_eq(hft_bucket_count(&bucket, "partNumber="), 9);
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    {
        pid_t helpers[8];
        long helper = list_helpers(helpers) == 1 ? peak_of(helpers[0]) : 0;
        long link = peak_of(pid_in("link.pid"));

        ck_assert_msg(helper > 0 && helper < 32 << 10, "the helper took %ld KiB", helper);
        ck_assert_msg(link > 0 && link < 40 << 10, "the link took %ld KiB", link);
    }
#endif
    verify(0, "67108869  s3");
    write_file("more", "");
    await_line("body.answer", "201");
    ck_assert_int_eq(hft_bucket_count(&bucket, "partNumber="), 9 + 2);
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 0);
    verify(0, "12582917  s3");
    expect_signed();
    (void)stop(agentd);
}
END_TEST

START_TEST(what_fits_goes_into_etcd_and_the_rest_into_the_bucket)
{
    pid_t agentd;

    write_file("go", "");
    agentd = start_s3((const char *[]){ "--store", "auto", NULL }, TWO);
    await_line("compared", "done");
    expect_answer("small.answer", "\"store\":\"etcd\"");
    expect_answer("large.answer", "\"store\":\"s3\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

/* By its path something short goes where it would have gone otherwise. */
START_TEST(what_is_short_goes_into_etcd_by_its_path_too)
{
    pid_t agentd = start_s3((const char *[]){ "--store", "auto", NULL }, TAKE_TASK
                            "echo short >short; " KEEP_PATH("short") COMPARE("short") STAY);

    await_line("compared", "done");
    expect_answer("short.answer", "\"store\":\"etcd\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

/* Files of /proc claim to have nothing in them. */
START_TEST(a_short_file_is_read_to_its_end_whatever_its_size)
{
    pid_t agentd = start_s3((const char *[]){ "--store", "auto", NULL }, TAKE_TASK CURL
                            "-o kept.answer -X PUT -H 'Content-Type: application/json' -d "
                            "'{\"path\":\"/proc/sys/kernel/ostype\"}' " CHECKPOINT
                            "; cat /proc/sys/kernel/ostype >kept; " COMPARE("kept") STAY);

    await_line("compared", "done");
    expect_answer("kept.answer", "\"store\":\"etcd\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

/* Its file system hangs, which is nothing to anybody else. */
START_TEST(a_short_file_that_cannot_be_read_holds_up_nobody)
{
    struct hft_stall stall;
    char path[HFT_PATH_MAX + 8];
    pid_t agentd;

    (void)snprintf(path, sizeof path, "%s/short", dir.path);
    write_file("short", "short");
    if (!hft_stall_begin(&stall, path)) {
        hft_skip("only root can let a file hang");
        return;
    }
    agentd = start_s3((const char *[]){ "--store", "auto", NULL },
                      TAKE_TASK "(" KEEP_PATH("short") ") & " AFTER("go") CURL
                      "-o self http://localhost/v1/self; wait; mv short.answer told; " STAY);
    hft_stall_await(&stall);
    write_file("go", "");
    await_line("self", "\"agent\":\"a1\"");
    hft_stall_end(&stall);
    await_line("told", "201");
    expect_answer("told", "\"store\":\"etcd\"");
    (void)stop(agentd);
}
END_TEST

START_TEST(what_is_too_long_is_refused)
{
    pid_t agentd =
        start_s3(NULL, TAKE_TASK "truncate -s 20M body; " KEEP(
                           "body") "truncate -s 2G sparse; " KEEP_PATH("sparse") STAY);

    await_line("sparse.answer", "413");
    expect_answer("body.answer", "413");
    ck_assert_int_eq(hft_bucket_count(&bucket, "PUT"), 0);
    (void)stop(agentd);
}
END_TEST

/* It is opened, and before anybody reads of it there is more than may be kept. */
#define GROW                                                                                   \
    TAKE_TASK                                                                                  \
    "echo small >small; " KEEP("small") "truncate -s 9M grows; echo yes >ready; " AFTER(       \
        "go") "{ " KEEP_PATH("grows") "} & sleep 1; truncate -s 2G grows; echo yes "           \
                                      ">grown; " STAY

START_TEST(what_grows_too_long_on_its_way_is_refused)
{
    pid_t agentd = start_s3(NULL, GROW), helper[8];

    await_line("ready", "yes");
    ck_assert_int_eq(list_helpers(helper), 1);
    ck_assert_int_eq(kill(helper[0], SIGSTOP), 0);
    write_file("go", "");
    await_line("grown", "yes");
    ck_assert_int_eq(kill(helper[0], SIGCONT), 0);
    await_line("grows.answer", "\n4"); /* the status comes last */
    expect_answer("grows.answer", "413");
    ck_assert_int_eq(hft_bucket_uploads(&bucket), 0);
    (void)stop(agentd);
}
END_TEST

static bool has_no_helper(void *arg)
{
    (void)arg;
    return count_helpers() == 0;
}

/* And the next checkpoint has another one. */
START_TEST(a_helper_without_work_goes)
{
    pid_t agentd = start_s3((const char *[]){ "--s3-idle", "100ms", NULL },
                            TAKE_TASK "echo one >one; echo two >two; " KEEP("one") AFTER("go")
                                KEEP("two") COMPARE("two") STAY);

    await_line("one.answer", "201");
    hft_wait_or_fail(has_no_helper, NULL, STEP_MS, "no helper");
    write_file("go", "");
    await_line("compared", "done");
    expect_answer("two.answer", "201");
    expect_answer("compared", "as stored");
    hft_wait_or_fail(has_no_helper, NULL, STEP_MS, "no helper");
    ck_assert_int_eq(hft_bucket_count(&bucket, "PUT"), 2); /* nothing was done twice */
    (void)stop(agentd);
}
END_TEST

/* The server has a certificate of an authority that the system does not know. */
START_TEST(a_server_is_believed_by_its_certificate)
{
    struct hft_pki pki;
    pid_t agentd;

    hft_pki_init(&pki);
    hft_bucket_stop(&bucket);
    hft_bucket_start_tls(&bucket, dir.path, pki.server.cert, pki.server.key);
    authority = pki.ca;
    ck_assert_int_eq(chmod(authority, 0644), 0);
    write_file("go", "");
    agentd = start_s3((const char *[]){ "--s3-cacert", pki.ca, NULL }, TWO);
    await_line("compared", "done");
    expect_answer("compared", "as stored");
    verify(0, "whole");
    expect_signed();
    authority = NULL;
    verify(1, "checkpoints.s3.cacert names who is believed");
    (void)stop(agentd);
    hft_pki_done(&pki);
}
END_TEST

START_TEST(a_server_that_is_not_believed_is_told_nothing)
{
    struct hft_pki pki, other;
    pid_t agentd;

    hft_pki_init(&pki);
    hft_pki_init(&other);
    hft_bucket_stop(&bucket);
    hft_bucket_start_tls(&bucket, dir.path, pki.server.cert, pki.server.key);
    agentd = start_s3((const char *[]){ "--s3-cacert", other.ca, NULL },
                      TAKE_TASK "echo x >one; " KEEP("one") "mv one.answer told; " STAY);
    await_line("told", "503");
    expect_answer("told", "checkpoints.s3.cacert names who is believed");
    ck_assert_int_eq(hft_bucket_count(&bucket, ""), 0);
    (void)stop(agentd);
    hft_pki_done(&other);
    hft_pki_done(&pki);
}
END_TEST

/* The agent has the task before, dies, and finds what it had kept. */
START_TEST(a_successor_goes_on_from_the_bucket)
{
    pid_t agentd;

    begin_leader();
    agentd = start_s3(NULL, "cd \"$0\"; if [ -e kept.answer ]; then " COMPARE("kept") STAY
                      "; fi; " TAKE_TASK
                      "head -c 100000 /dev/urandom >kept; " KEEP("kept") "kill -9 $$");
    await_line("compared", "done");
    expect_answer("compared", "as stored");
    expect_signed();
    (void)stop(agentd);
}
END_TEST

/* Damage. */

#define ASK_LATER                                                                              \
    TAKE_TASK                                                                                  \
    "yes one | head -c 20000 >first; yes two | head -c 20000 >second; " KEEP("first")          \
        KEEP("second") "echo yes >kept; " AFTER("go") CURL                                     \
        "-w '%{http_code}' -o got " CHECKPOINT " >status; "                                    \
        "(cat status; echo; head -n 1 got) >told; mv told back; " STAY

enum damage { FLIP, CUT, LENGTHEN, LOSE_BODY, LOSE_ENTRY, AWAY, LOSE_BUCKET, STRANGER };

static const struct {
    enum damage damage;
    const char *verified, *back;
} DAMAGES[] = {
    { FLIP, "2  20000  s3     its body has another digest", "200\none" },
    { CUT, "2  20000  s3     its body has another size", "200\none" },
    { LENGTHEN, "2  20000  s3     its body has another size", "200\none" },
    { LOSE_BODY, "2  20000  s3     its body is not there", "200\none" },
    { LOSE_ENTRY, "its entry is not there", "200\none" },
    /* What cannot be asked has lost nothing: nobody starts over because of that. */
    { AWAY, "its bucket cannot be asked: http://127.0.0.1:", "503" },
    { LOSE_BUCKET, "has no bucket checkpoints", "503" },
    { STRANGER, "is no server of S3", "503" },
};

static void find_key(char ret_key[64])
{
    char *answer = read_file("second.answer");
    const char *at = strstr(answer, "\"key\":\"");

    ck_assert_msg(at != NULL && sscanf(at, "\"key\":\"%63[a-z0-9]", ret_key) == 1, "%s",
                  answer);
    free(answer);
}

static void damage_object(enum damage damage)
{
    char key[64], path[600], text[20002];
    size_t len = damage == CUT ? 19999 : damage == LENGTHEN ? 20001 : 20000;
    FILE *file;

    find_key(key);
    hft_bucket_find(&bucket, key, path);
    if (damage == LOSE_BODY) {
        ck_assert_int_eq(unlink(path), 0);
        return;
    }
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "two\n"[i % 4];
    text[10000] ^= damage == FLIP ? 1 : 0;
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, len, file), len);
    ck_assert_int_eq(fclose(file), 0);
}

static void do_damage(enum damage damage)
{
    char path[600], away[600];

    if (damage == LOSE_ENTRY) {
        hft_etcdctl_ok(&server, NULL, "del", ROOT "checkpoints/t1/0000000000000000002", NULL);
    } else if (damage == AWAY) {
        hft_bucket_stop(&bucket);
    } else if (damage == STRANGER) {
        hft_bucket_set(&bucket, "stranger", "");
    } else if (damage == LOSE_BUCKET) {
        (void)snprintf(path, sizeof path, "%s/data/checkpoints", bucket.dir);
        (void)snprintf(away, sizeof away, "%s/away", bucket.dir);
        ck_assert_int_eq(rename(path, away), 0);
    } else {
        damage_object(damage);
    }
}

START_TEST(damage_is_found_and_passed_over)
{
    pid_t agentd = start_s3(NULL, ASK_LATER);

    await_line("kept", "yes");
    verify(0, "whole");
    do_damage(DAMAGES[_i].damage);
    verify(1, DAMAGES[_i].verified);
    write_file("go", "");
    await_line("back", DAMAGES[_i].back);
    (void)stop(agentd);
}
END_TEST

#define ASK_IN_NEXT_LIFE                                                                       \
    "cd \"$0\"; if [ -e kept ]; then " CURL "-w '%{http_code}' -o got " CHECKPOINT             \
    " >status; (cat status; echo; head -n 1 got) >told; mv told back; " STAY                   \
    "; fi; " TAKE_TASK                                                                         \
    "yes one | head -c 20000 >first; yes two | head -c 20000 >second; " KEEP("first")          \
        KEEP("second") "echo yes >kept; " STAY

static const enum damage LOSSES[] = { FLIP, CUT, LOSE_BODY, LOSE_ENTRY };

START_TEST(a_successor_goes_on_from_the_newest_that_is_whole)
{
    pid_t agentd;

    begin_leader();
    agentd = start_s3(NULL, ASK_IN_NEXT_LIFE);
    await_line("kept", "yes");
    do_damage(LOSSES[_i]);
    kill_link(); /* which may know what it gave to the store by heart */
    await_link(2);
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await_line("back", "200\none");
    await("tasks/t1", "\"restored\":{\"seq\":\"1\"");
    (void)stop(agentd);
}
END_TEST

/* Old ones, and those that nobody names. */

#define EIGHT                                                                                  \
    TAKE_TASK                                                                                  \
    "echo body >body; for i in 1 2 3 4 5 6 7 8; do " KEEP("body") "done; "                     \
                                                                  "echo yes >kept; " STAY

START_TEST(the_last_five_are_kept)
{
    pid_t agentd = start_s3(NULL, EIGHT);

    await_line("kept", "yes");
    await_count(count_objects, "/default/t1/", 5, "five objects");
    verify(0, "whole");
    hft_etcdctl_ok(&server, NULL, "del", ROOT "checkpoints/t1/0000000000000000006", NULL);
    verify(1, "6     -  -      its entry is not there\n");
    (void)stop(agentd);
}
END_TEST

/* As another fleet would have made it: all but the last character says that it is ours. */
static void leave_foreign(const char *answer, const char *name)
{
    char *text = read_file(answer), key[64], foreign[64];
    const char *at = strstr(text, "\"key\":\"");
    size_t last;

    ck_assert_msg(at != NULL && sscanf(at, "\"key\":\"%63[a-z0-9]", key) == 1, "%s", text);
    free(text);
    last = strlen(key) - 1;
    ck_assert_uint_ge(last, 26);
    key[last] = key[last] == 'a' ? 'b' : 'a';
    (void)snprintf(foreign, sizeof foreign, "%.40s%.20s", name, key + 26);
    leave_object(foreign);
}

START_TEST(objects_that_no_checkpoint_names_are_removed)
{
    pid_t agentd;

    begin_leader();
    agentd = start_s3((const char *[]){ "--store-sweep", "1s", NULL }, EIGHT);
    await_line("kept", "yes");
    /* In a list they stand before what is removed, one after the other. */
    leave_object("not-ours");                      /* is not of a form that ours have */
    leave_object("t0/01m7mdz33emvmymyz8bmbg7rdn"); /* does not say whose it is */
    leave_foreign("body.answer", "t0/01m7mdz33emvmymyz8bmbg7rdp");
    leave_stray("body.answer", "t9");
    leave_stray("body.answer", "t1");
    await_count(count_objects, "01m7mdz22emvmymyz8bmbg0000", 0, "no leftovers");
    await_count(count_objects, "/default/t1/", 5, "what is named");
    ck_assert_int_eq(hft_bucket_objects(&bucket, "not-ours"), 1);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "01m7mdz33emvmymyz8bmbg7rdn"), 1);
    ck_assert_int_eq(hft_bucket_objects(&bucket, "01m7mdz33emvmymyz8bmbg7rdp"), 1);
    verify(0, "whole");
    (void)hft_etcdctl(&server, NULL, "del", "--prefix", ROOT "checkpoints/t1/", NULL);
    await_count(count_objects, "/default/t1/", 0, "nothing of t1");
    expect_signed();
    (void)stop(agentd);
}
END_TEST

START_TEST(what_belongs_to_another_fleet_is_left_alone)
{
    pid_t agentd;

    begin_leader();
    leave_object(".holdfast-owner"); /* says "left", which is nobody here */
    leave_object("t9/01m7mdz22emvmymyz8bmbg7rdn");
    agentd = start_s3((const char *[]){ "--store-sweep", "1s", NULL }, EIGHT);
    await_line("kept", "yes");
    await_line("agentd.log", "belongs to another fleet");
    ck_assert_int_eq(hft_bucket_objects(&bucket, "/t9/"), 1);
    ck_assert_int_eq(hft_bucket_count(&bucket, "list-type"), 0);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories"), *sweeps = tcase_create("sweeps");
    TCase *limits = tcase_create("limits");
    int rc = hft_bucket_install();

    if (rc != 0)
        return rc;
    tcase_add_checked_fixture(stories, begin, end);
    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, checkpoints_go_into_the_bucket_and_come_back);
    tcase_add_test(stories, what_is_long_goes_in_parts_and_needs_no_memory);
    tcase_add_test(stories, what_fits_goes_into_etcd_and_the_rest_into_the_bucket);
    tcase_add_test(stories, what_is_short_goes_into_etcd_by_its_path_too);
    tcase_add_test(stories, a_short_file_is_read_to_its_end_whatever_its_size);
    tcase_add_test(stories, a_short_file_that_cannot_be_read_holds_up_nobody);
    tcase_add_test(stories, a_helper_without_work_goes);
    tcase_add_test(stories, a_server_is_believed_by_its_certificate);
    tcase_add_test(stories, a_server_that_is_not_believed_is_told_nothing);
    tcase_add_test(stories, a_successor_goes_on_from_the_bucket);
    tcase_add_loop_test(stories, damage_is_found_and_passed_over, 0,
                        sizeof DAMAGES / sizeof DAMAGES[0]);
    tcase_add_loop_test(stories, a_successor_goes_on_from_the_newest_that_is_whole, 0,
                        sizeof LOSSES / sizeof LOSSES[0]);
    tcase_add_test(stories, the_last_five_are_kept);
    tcase_add_checked_fixture(sweeps, begin, end);
    tcase_set_timeout(sweeps, 120);
    tcase_add_checked_fixture(limits, begin, end);
    tcase_set_timeout(limits, 60);
    tcase_add_test(limits, what_is_too_long_is_refused);
    tcase_add_test(limits, what_grows_too_long_on_its_way_is_refused);
    tcase_add_test(sweeps, objects_that_no_checkpoint_names_are_removed);
    tcase_add_test(sweeps, what_belongs_to_another_fleet_is_left_alone);
    return hft_suite_run("agentd: s3", stories, limits, sweeps, NULL);
}
