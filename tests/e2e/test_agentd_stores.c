/* test_agentd_stores.c - where agentd keeps the bodies of checkpoints: in etcd while they fit,
 * in files beyond, or where it was told to. */
#include <errno.h>

#include "stores_fixture.h"

/* The agent takes its task, keeps a small and a large checkpoint, reads the newest one back and
 * leaves what it was answered. It runs in the state directory. */
#define SCRIPT                                                                                 \
    TAKE_TASK                                                                                  \
    "head -c 300 /dev/zero >small; head -c 200000 /dev/urandom >large; " KEEP("small")         \
        KEEP("large") CURL "-o back " CHECKPOINT "; "                                          \
                           "cmp back large >>same 2>&1 && echo as stored >>same; "             \
                           "echo done >>same; mv same compared; exec sleep 600"

#define OTHER_SCRIPT                                                                           \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t2/start; head -c 200000 /dev/urandom >large; " CURL "-T large " TASKS     \
    "t2/checkpoint >large.answer; echo yes >kept; exec sleep 600"

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
    expect_answer("small.answer", "set checkpoints.store to `auto`, `file` or `s3`");
    expect_answer("small.answer", "429");
    expect_answer("large.answer", "checkpoints.store");
    expect_answer("large.answer", "413");
    (void)stop(agentd);
}
END_TEST

static bool each_body_has_its_entry(void *arg)
{
    int entries = count_keys(ROOT "checkpoints/t1/");

    (void)arg;
    return entries > 0 && count_keys("/holdfast-data/default/checkpoints/t1/") == entries;
}

/* There is room for ten, and six at most are there at a time. */
#define MANY                                                                                   \
    TAKE_TASK "head -c 65536 /dev/zero >body; "                                                \
              "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 " \
              "27 28 29 "                                                                      \
              "30; "                                                                           \
              "do " CURL "-T body " CHECKPOINT " >>answers; echo >>answers; done; "            \
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
    hft_wait_or_fail(only_the_last_are_kept, NULL, STEP_MS, "the last five");
    ck_assert(each_body_has_its_entry(NULL));
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
    TAKE_TASK                                                                                  \
    "echo one >one; echo two >two; "                                                           \
    "until [ -e go ]; do sleep 0.1; done; " CURL "-m 1 -T one " CHECKPOINT "; sleep 1; "       \
    "echo yes >gave_up; " CURL "--retry 100 --retry-delay 1 -o kept -T two " CHECKPOINT "; "   \
    "exec sleep 600"

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

static bool is_gone(void *file)
{
    char path[HFT_PATH_MAX + 100];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, (const char *)file);
    return access(path, F_OK) != 0;
}

static void leave_file(const char *task, const char *name)
{
    char path[HFT_PATH_MAX + 32], beneath[100];

    (void)snprintf(path, sizeof path, "%s/checkpoints/%s", dir.path, task);
    ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
    give_to_agentd(path);
    (void)snprintf(beneath, sizeof beneath, "checkpoints/%s/%s", task, name);
    write_file(beneath, "left");
}

/* A controller was here, and gave the namespace its id. */
static void begin_fleet(const char *ns)
{
    char key[100], meta[100];

    (void)snprintf(key, sizeof key, "/holdfast/%s/meta", ns);
    (void)snprintf(meta, sizeof meta, "{\"clusterId\":\"id-of-%s\"}", ns);
    (void)hft_put(&hand, key, meta, HF_NO_LEASE);
}

/* One that is none, and could have been made by whoever answered with that one. */
static void find_stray(const char *file, char ret_key[64])
{
    find_key_in(file, ret_key);
    ck_assert_uint_gt(strlen(ret_key), 20);
    ret_key[15] = ret_key[15] == 'a' ? 'b' : 'a';
}

static void await_gone(const char *task, const char *key)
{
    char path[100];

    (void)snprintf(path, sizeof path, "checkpoints/%s/%s", task, key);
    hft_wait_or_fail(is_gone, path, STEP_MS, path);
}

/* Of a task that nobody knows, of one that is at work, and one that was not even whole. One
 * that does not say whose it is may be another's. */
START_TEST(files_that_no_checkpoint_names_are_removed)
{
    const char *flags[] = { "--store", "file", "--store-sweep", "1s", NULL };
    char stray[64], half[65];
    pid_t agentd;

    begin_fleet("default");
    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", SCRIPT, dir.path, NULL });
    await_line("compared", "done");
    find_stray("large.answer", stray);
    (void)snprintf(half, sizeof half, ".%s", stray);
    leave_file("t8", "01m7mdz22emvmymyz8bmbg7rdn");
    leave_file("t9", stray);
    leave_file("t1", stray);
    leave_file("t1", half);
    await_gone("t1", stray);
    await_gone("t1", half);
    hft_wait_or_fail(is_gone, (void *)"checkpoints/t9", STEP_MS, "t9 and its directory");
    verify_files("t1", 0, "whole"); /* and what is named stays */
    /* When the task is gone, so are they. */
    (void)hft_etcdctl(&server, NULL, "del", "--prefix", ROOT "checkpoints/t1/", NULL);
    hft_wait_or_fail(is_gone, (void *)"checkpoints/t1", STEP_MS, "t1 and its directory");
    ck_assert(!is_gone((void *)"checkpoints/t8/01m7mdz22emvmymyz8bmbg7rdn"));
    (void)stop(agentd);
}
END_TEST

/* Until a person has corrected it: nothing of its task is removed, and everything else is. */
START_TEST(what_an_entry_names_stays_though_the_entry_cannot_be_read)
{
    const char *flags[] = { "--store", "file", "--store-sweep", "1s", NULL };
    static const char KEY[] = ROOT "checkpoints/t1/0000000000000000002";
    char key[64], stray[64], path[100], *entry;
    pid_t agentd;

    begin_fleet("default");
    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", SCRIPT, dir.path, NULL });
    await_line("compared", "done");
    entry = look_whole("checkpoints/t1/0000000000000000002");
    (void)hft_put(&hand, KEY, "garbled", HF_NO_LEASE);
    find_key_in("large.answer", key);
    find_stray("large.answer", stray);
    for (int i = 0; i < 2; i++) { /* at least two looks for each that goes */
        leave_file("t9", stray);
        await_gone("t9", stray);
    }
    (void)snprintf(path, sizeof path, "checkpoints/t1/%s", key);
    ck_assert(!is_gone(path));
    (void)hft_put(&hand, KEY, entry, HF_NO_LEASE);
    free(entry);
    verify_files("t1", 0, "whole");
    (void)stop(agentd);
}
END_TEST

/* The agent of the other namespace works beneath a state directory of its own. */
static pid_t start_other(const char *store)
{
    const char *flags[] = { "--store", "file",        "--store-sweep", "1s", "--store-dir",
                            store,     "--namespace", "other",         NULL };
    struct hft_tempdir ours = dir;
    pid_t agentd;

    (void)strncat(dir.path, "/other", sizeof dir.path - strlen(dir.path) - 1);
    ck_assert_int_eq(mkdir(dir.path, 0700), 0);
    if (is_nobodys)
        hft_settle_nobody(dir.path, NULL);
    (void)hft_put(&hand, "/holdfast/other/tasks/t2",
                  "{\"id\":\"t2\",\"role\":\"r1\",\"state\":\"pending\"}", HF_NO_LEASE);
    (void)hft_put(&hand, "/holdfast/other/pending/r1/t2", "{}", HF_NO_LEASE);
    agentd =
        start_with("a1", flags, (const char *[]){ "sh", "-c", OTHER_SCRIPT, dir.path, NULL });
    dir = ours;
    return agentd;
}

/* Each removes what it left itself, after two looks, and by then the other one's are there. */
START_TEST(two_namespaces_that_share_a_directory_remove_nothing_of_each_other)
{
    char store[HFT_PATH_MAX + 32], ours[64], theirs[64], path[100];
    const char *flags[] = { "--store", "file", "--store-sweep", "1s", NULL };
    pid_t agentd, other;

    (void)snprintf(store, sizeof store, "%s/checkpoints", dir.path);
    begin_fleet("default");
    begin_fleet("other");
    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", SCRIPT, dir.path, NULL });
    await_line("compared", "done");
    other = start_other(store);
    await_line("other/kept", "yes");
    find_stray("large.answer", ours);
    find_stray("other/large.answer", theirs);
    leave_file("t1", ours);
    leave_file("t1", theirs);
    await_gone("t1", ours);
    await_gone("t1", theirs);
    verify_files("t1", 0, "whole");
    find_key_in("other/large.answer", theirs);
    (void)snprintf(path, sizeof path, "checkpoints/t2/%s", theirs);
    ck_assert(!is_gone(path));
    (void)stop(other);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories"), *sweeps = tcase_create("sweeps");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, what_fits_goes_into_etcd_and_the_rest_into_files);
    tcase_add_test(stories, files_go_on_when_etcd_has_no_room);
    tcase_add_test(stories, who_asks_for_etcd_alone_is_told_of_the_other_stores);
    tcase_add_test(stories, what_is_dropped_makes_room);
    tcase_add_test(stories, who_asks_for_files_gets_files);
    tcase_add_test(stories, a_body_that_nobody_waits_for_is_not_left_behind);
    tcase_add_checked_fixture(sweeps, setup, teardown);
    tcase_set_timeout(sweeps, 60);
    tcase_add_test(sweeps, files_that_no_checkpoint_names_are_removed);
    tcase_add_test(sweeps, what_an_entry_names_stays_though_the_entry_cannot_be_read);
    tcase_add_test(sweeps, two_namespaces_that_share_a_directory_remove_nothing_of_each_other);
    return hft_suite_run("agentd: stores", stories, sweeps, NULL);
}
