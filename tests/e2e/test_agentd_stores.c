/* test_agentd_stores.c - where agentd keeps the bodies of checkpoints: in etcd while they fit,
 * in files beyond, or where it was told to. */
#include "agentd_fixture.h"

/* The agent takes its task, keeps a small and a large checkpoint, reads the newest one back and
 * leaves what it was answered. It runs in the state directory. */
#define CHECKPOINT TASKS "t1/checkpoint"
#define KEEP(file) CURL "-w '%{http_code}' -T " file " " CHECKPOINT " >" file ".answer; "
#define TASKS      "http://localhost/v1/tasks/"
#define SCRIPT                                                                                 \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; "                                                                \
    "head -c 300 /dev/zero >small; head -c 200000 /dev/urandom >large; " KEEP("small")         \
        KEEP("large") CURL "-o back " CHECKPOINT "; "                                          \
                           "cmp back large >>same 2>&1 && echo as stored >>same; "             \
                           "echo done >>same; mv same compared; exec sleep 600"

static pid_t keep_two(const char *choice)
{
    const char *flags[] = { "--store", choice, NULL };
    pid_t agentd;

    submit("t1", "r1", "x");
    agentd = start_with("a1", choice != NULL ? flags : flags + 2,
                        (const char *[]){ "sh", "-c", SCRIPT, dir.path, NULL });
    await_line("compared", "done");
    return agentd;
}

static void expect_answer(const char *file, const char *part)
{
    char *text = read_file(file);

    ck_assert_msg(strstr(text, part) != NULL, "no %s in %s: %s", part, file, text);
    free(text);
}

/* As if others had kept that much in etcd. */
static void use_budget(long long bytes)
{
    char entry[200];

    (void)snprintf(entry, sizeof entry,
                   "{\"task\":\"other\",\"seq\":\"1\",\"size\":\"%lld\",\"store\":\"etcd\","
                   "\"key\":\"7\"}",
                   bytes);
    (void)hft_put(&hand, ROOT "checkpoints/other/0000000000000000001", entry, HF_NO_LEASE);
}

static void use_up_budget(void)
{
    use_budget(67108800);
}

START_TEST(what_fits_goes_into_etcd_and_the_rest_into_files)
{
    pid_t agentd = keep_two(NULL);

    expect_answer("small.answer", "\"store\":\"etcd\"");
    expect_answer("large.answer", "\"store\":\"file\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

START_TEST(files_go_on_when_etcd_has_no_room)
{
    pid_t agentd;

    use_up_budget();
    agentd = keep_two(NULL);
    expect_answer("small.answer", "\"store\":\"file\"");
    expect_answer("large.answer", "\"store\":\"file\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

START_TEST(who_asks_for_etcd_alone_is_told_of_the_other_stores)
{
    pid_t agentd;

    use_up_budget();
    agentd = keep_two("etcd");
    expect_answer("small.answer", "set checkpoints.store to `auto` or `file`");
    expect_answer("small.answer", "429");
    expect_answer("large.answer", "checkpoints.store");
    expect_answer("large.answer", "413");
    (void)stop(agentd);
}
END_TEST

/* There is room for ten, and six at most are there at a time. */
#define MANY                                                                                   \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; head -c 65536 /dev/zero >body; "                                 \
    "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 "  \
    "30; "                                                                                     \
    "do " CURL "-T body " CHECKPOINT " >>answers; echo >>answers; done; "                      \
    "mv answers all; exec sleep 600"

START_TEST(what_is_dropped_makes_room)
{
    pid_t agentd;
    char *answers;
    int count = 0;

    use_budget(67108864 - 10 * 65536);
    submit("t1", "r1", "x");
    agentd = start("a1", (const char *[]){ "sh", "-c", MANY, dir.path, NULL });
    await_line("all", "\"seq\":\"30\"");
    answers = read_file("all");
    for (const char *at = answers; (at = strstr(at, "\"store\":\"etcd\"")) != NULL; at++)
        count++;
    ck_assert_msg(count == 30, "%d of 30 are in etcd: %s", count, answers);
    free(answers);
    (void)stop(agentd);
}
END_TEST

START_TEST(who_asks_for_files_gets_files)
{
    pid_t agentd = keep_two("file");

    expect_answer("small.answer", "\"store\":\"file\"");
    expect_answer("compared", "as stored");
    (void)stop(agentd);
}
END_TEST

/* The agent gives up a checkpoint while etcd does not answer, and keeps another one later. */
#define GIVE_UP                                                                                \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; echo one >one; echo two >two; "                                  \
    "until [ -e go ]; do sleep 0.1; done; " CURL "-m 1 -T one " CHECKPOINT "; sleep 1; "       \
    "echo yes >gave_up; " CURL "--retry 100 --retry-delay 1 -o kept -T two " CHECKPOINT "; "   \
    "exec sleep 600"

static int count_keys(const char *prefix)
{
    char *keys = NULL;
    int count = 0;

    hft_etcdctl_ok(&server, &keys, "get", "--prefix", "--keys-only", prefix, NULL);
    for (const char *at = keys; (at = strstr(at, prefix)) != NULL; at++)
        count++;
    free(keys);
    return count;
}

static bool each_body_has_its_entry(void *arg)
{
    int entries = count_keys(ROOT "checkpoints/t1/");

    (void)arg;
    return entries > 0 && count_keys("/holdfast-data/default/checkpoints/t1/") == entries;
}

START_TEST(a_body_that_nobody_waits_for_is_not_left_behind)
{
    pid_t agentd;

    submit("t1", "r1", "x");
    agentd = start("a1", (const char *[]){ "sh", "-c", GIVE_UP, dir.path, NULL });
    await("tasks/t1", "in_progress");
    hft_etcd_pause(&server);
    write_file("go", "");
    await_line("gave_up", "yes");
    hft_etcd_resume(&server);
    await_line("kept", "sha256");
    hft_wait_or_fail(each_body_has_its_entry, NULL, STEP_MS, "bodies and entries");
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, what_fits_goes_into_etcd_and_the_rest_into_files);
    tcase_add_test(stories, files_go_on_when_etcd_has_no_room);
    tcase_add_test(stories, who_asks_for_etcd_alone_is_told_of_the_other_stores);
    tcase_add_test(stories, what_is_dropped_makes_room);
    tcase_add_test(stories, who_asks_for_files_gets_files);
    tcase_add_test(stories, a_body_that_nobody_waits_for_is_not_left_behind);
    return hft_suite_run("agentd: stores", stories, NULL);
}
