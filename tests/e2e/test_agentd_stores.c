/* test_agentd_stores.c - where agentd keeps the bodies of checkpoints: in etcd while they fit,
 * in files beyond, or where it was told to. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

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

/* What `holdfast checkpoint verify` says of a task's checkpoints, and with which status. */
static void verify(const char *task, int status, const char *part)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    char store[HFT_PATH_MAX + 32];

    (void)snprintf(store, sizeof store, "%s/checkpoints", dir.path);
    hft_cli(&output, server.endpoint, "checkpoint", "verify", task, "--store-dir", store, NULL);
    ck_assert_msg(output.status == status &&
                      (strstr(output.out, part) != NULL || strstr(output.err, part) != NULL),
                  "status %d, not %d; no %s in: %s%s", output.status, status, part, output.out,
                  output.err);
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
    expect_answer("small.answer", "set checkpoints.store to `auto`, `file` or `s3`");
    expect_answer("small.answer", "429");
    expect_answer("large.answer", "checkpoints.store");
    expect_answer("large.answer", "413");
    (void)stop(agentd);
}
END_TEST

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

static bool only_the_last_are_kept(void *arg)
{
    enum { KEPT = 5 };

    (void)arg;
    return count_keys(ROOT "checkpoints/t1/") == KEPT;
}

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
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; echo one >one; echo two >two; "                                  \
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

/* To whoever agentd is. */
static void give_to_agentd(const char *path)
{
    if (is_nobodys)
        ck_assert_int_eq(chown(path, HFT_NOBODY, HFT_NOBODY), 0);
}

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

/* The key that stands in an answer. */
static void find_key_in(const char *file, char ret_key[64])
{
    char *answer = read_file(file);
    const char *at = strstr(answer, "\"key\":\"");

    ck_assert_msg(at != NULL && sscanf(at, "\"key\":\"%63[a-z0-9]", ret_key) == 1, "%s",
                  answer);
    free(answer);
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
    verify("t1", 0, "whole"); /* and what is named stays */
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
    verify("t1", 0, "whole");
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
    verify("t1", 0, "whole");
    find_key_in("other/large.answer", theirs);
    (void)snprintf(path, sizeof path, "checkpoints/t2/%s", theirs);
    ck_assert(!is_gone(path));
    (void)stop(other);
    (void)stop(agentd);
}
END_TEST

/* The agent keeps two, which are too long to be known by heart, and asks for the newest when
 * the test has done something to it. */
#define ASK_LATER                                                                              \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; yes one | head -c 20000 >first; "                                \
    "yes two | head -c 20000 >second; " KEEP("first")                                          \
        KEEP("second") "echo yes >kept; until [ -e go ]; do sleep 0.1; done; " CURL            \
                       "-w '%{http_code}' -o got " CHECKPOINT " >status; "                     \
                       "(cat status; echo; head -n 1 got) >told; mv told back; exec sleep 600"

enum damage { FLIP, CUT, LOSE_BODY, LOSE_ENTRY, CUT_ENTRY, GARBLE_ENTRY, UNMOUNT };

static const struct {
    const char *store;
    enum damage damage;
    const char *verified; /* what the command line says of it */
    const char *back;     /* what the agent is given */
} DAMAGES[] = {
    { "etcd", FLIP, "2  20000  etcd   its body has another digest", "200\none" },
    { "etcd", CUT, "2  20000  etcd   its body has another size", "200\none" },
    { "etcd", LOSE_BODY, "2  20000  etcd   its body is not there", "200\none" },
    { "etcd", LOSE_ENTRY, "2      -  -      its entry is not there", "200\none" },
    { "etcd", CUT_ENTRY, "0002 cannot be read and is left out", "200\none" },
    { "file", FLIP, "its body has another digest", "200\none" },
    { "file", CUT, "its body has another size", "200\none" },
    { "file", LOSE_BODY, "its body is not there", "200\none" },
    { "file", LOSE_ENTRY, "its entry is not there", "200\none" },
    { "file", GARBLE_ENTRY, "0002 cannot be read and is left out", "200\none" },
    { "file", UNMOUNT, "is another directory", "503" },
};

/* What it is instead: one letter is another, or the end is missing. */
static const char *damaged(enum damage damage)
{
    static char text[20001];

    for (size_t i = 0; i < 20000; i++)
        text[i] = "two\n"[i % 4];
    text[damage == FLIP ? 10000 : 19999] = damage == FLIP ? 'x' : '\0';
    return text;
}

static void damage_etcd(enum damage damage, const char *key)
{
    char body[200];

    (void)snprintf(body, sizeof body, "/holdfast-data/default/checkpoints/t1/%s", key);
    ck_assert_int_eq(count_keys(body), 1);
    if (damage == LOSE_BODY)
        hft_etcdctl_ok(&server, NULL, "del", body, NULL);
    else
        (void)hft_put(&hand, body, damaged(damage), HF_NO_LEASE);
}

static void damage_file(enum damage damage, const char *key)
{
    char beneath[100], path[HFT_PATH_MAX + 200], away[HFT_PATH_MAX + 32];

    (void)snprintf(beneath, sizeof beneath, "checkpoints/t1/%s", key);
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, beneath);
    ck_assert_int_eq(access(path, F_OK), 0);
    if (damage == UNMOUNT) {
        (void)snprintf(path, sizeof path, "%s/checkpoints", dir.path);
        (void)snprintf(away, sizeof away, "%s/away", dir.path);
        ck_assert_int_eq(rename(path, away), 0);
        ck_assert_int_eq(mkdir(path, 0700), 0);
        give_to_agentd(path);
    } else if (damage == LOSE_BODY) {
        ck_assert_int_eq(unlink(path), 0);
    } else {
        write_file(beneath, damaged(damage));
    }
}

static void damage_entry(enum damage damage)
{
    static const char KEY[] = ROOT "checkpoints/t1/0000000000000000002";
    char *entry = look_whole("checkpoints/t1/0000000000000000002");

    entry[strlen(entry) / 2] = '\0';
    if (damage == LOSE_ENTRY)
        hft_etcdctl_ok(&server, NULL, "del", KEY, NULL);
    else
        (void)hft_put(&hand, KEY, damage == CUT_ENTRY ? entry : "garbled", HF_NO_LEASE);
    free(entry);
}

static void do_damage(const char *store, enum damage damage)
{
    char key[64];

    find_key_in("second.answer", key);
    if (damage == LOSE_ENTRY || damage == CUT_ENTRY || damage == GARBLE_ENTRY)
        damage_entry(damage);
    else if (strcmp(store, "etcd") == 0)
        damage_etcd(damage, key);
    else
        damage_file(damage, key);
}

START_TEST(damage_is_found_and_passed_over)
{
    const char *flags[] = { "--store", DAMAGES[_i].store, NULL };
    pid_t agentd;

    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", ASK_LATER, dir.path, NULL });
    await_line("kept", "yes");
    verify("t1", 0, "whole");
    do_damage(DAMAGES[_i].store, DAMAGES[_i].damage);
    verify("t1", 1, DAMAGES[_i].verified);
    write_file("go", "");
    await_line("back", DAMAGES[_i].back);
    (void)stop(agentd);
}
END_TEST

/* The agent keeps two and dies when the test has done something to the newest: whoever follows
 * it is started with what is left. */
#define ASK_IN_NEXT_LIFE                                                                       \
    "cd \"$0\"; if [ -e kept ]; then " CURL "-w '%{http_code}' -o got " CHECKPOINT             \
    " >status; (cat status; echo; head -n 1 got) >told; mv told back; exec sleep 600; "        \
    "fi; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL "-d '' " TASKS      \
    "t1/start; yes one | head -c 20000 >first; yes two | head -c 20000 >second; " KEEP(        \
        "first") KEEP("second") "echo yes >kept; exec sleep 600"

static const struct {
    const char *store;
    enum damage damage;
} LOSSES[] = {
    { "etcd", FLIP },       { "etcd", CUT },          { "etcd", LOSE_BODY },
    { "etcd", LOSE_ENTRY }, { "etcd", GARBLE_ENTRY }, { "file", FLIP },
    { "file", CUT },        { "file", LOSE_BODY },    { "file", LOSE_ENTRY },
    { "file", CUT_ENTRY },
};

START_TEST(a_successor_goes_on_from_the_newest_that_is_whole)
{
    const char *flags[] = { "--store", LOSSES[_i].store, NULL };
    pid_t agentd;

    begin_leader();
    submit("t1", "r1", "x");
    agentd = start_with("a1", flags,
                        (const char *[]){ "sh", "-c", ASK_IN_NEXT_LIFE, dir.path, NULL });
    await_line("kept", "yes");
    do_damage(LOSSES[_i].store, LOSSES[_i].damage);
    kill_link(); /* which may know what it gave to the store by heart */
    await_link(2);
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await_line("back", "200\none");
    await("tasks/t1", "\"restored\":{\"seq\":\"1\"");
    (void)stop(agentd);
}
END_TEST

/* The agent keeps six, of which the last five stay, and asks for the newest. */
#define KEEP_SIX                                                                               \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; for i in 1 2 3 4 5 6; do yes $i | head -c 20000 >body; " CURL    \
    "-o answer -T body " CHECKPOINT "; done; mv answer second.answer; echo yes >kept; "        \
    "until [ -e go ]; do sleep 0.1; done; " CURL "-o got " CHECKPOINT                          \
    "; head -n 1 got >told; mv told back; exec sleep 600"

static const struct {
    const char *store;
    bool is_newest_bad;
    const char *back;
} HOLES[] = {
    { "etcd", false, "6" },
    { "etcd", true, "4" },
    { "file", false, "6" },
    { "file", true, "4" },
};

static void lose_entry(int seq)
{
    char key[100];

    (void)snprintf(key, sizeof key, ROOT "checkpoints/t1/%019d", seq);
    hft_etcdctl_ok(&server, NULL, "del", key, NULL);
}

/* What is whole is gone on from, though one before it is missing; what is not, and whose
 * parent is missing, is passed over together with that. */
START_TEST(a_chain_with_a_hole_is_told_of_and_gone_on_from)
{
    const char *flags[] = { "--store", HOLES[_i].store, NULL };
    char key[64];
    pid_t agentd;

    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", KEEP_SIX, dir.path, NULL });
    await_line("kept", "yes");
    hft_wait_or_fail(only_the_last_are_kept, NULL, STEP_MS, "the last five");
    verify("t1", 0, "whole"); /* that the first was dropped is no hole */
    lose_entry(5);
    verify("t1", 1, "5      -  -");
    verify("t1", 1, "its entry is not there\n");
    find_key_in("second.answer", key);
    if (HOLES[_i].is_newest_bad && strcmp(HOLES[_i].store, "etcd") == 0)
        damage_etcd(FLIP, key);
    else if (HOLES[_i].is_newest_bad)
        damage_file(FLIP, key);
    write_file("go", "");
    await_line("back", HOLES[_i].back);
    lose_entry(4);
    verify("t1", 1, "its entry is not there, nor any after 3\n");
    (void)stop(agentd);
}
END_TEST

/* A disk of one megabyte, which only this test and what it starts see. */
static bool mount_small_disk(const char *name)
{
    char path[HFT_PATH_MAX + 32];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount(name, path, "tmpfs", 0, "size=1m,mode=700") == 0) {
        give_to_agentd(path);
        return true;
    }
    (void)printf("skipped: no disk can be made here: %s\n", strerror(errno));
    return false;
}

/* What is kept, what there is no room for, and what fits again. */
#define FILL_DISK                                                                              \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; yes one | head -c 100000 >first; "                               \
    "head -c 2000000 /dev/urandom >toolong; yes two | head -c 100000 >second; " KEEP("first")  \
        KEEP("toolong") CURL "-o back " CHECKPOINT                                             \
                             "; head -n 1 back >meanwhile; " KEEP("second") CURL               \
        "-o back " CHECKPOINT "; "                                                             \
        "cmp back second && echo as stored >>same; echo done >>same; "                         \
        "mv same compared; exec sleep 600"

static int count_files(const char *beneath)
{
    char path[HFT_PATH_MAX + 100];
    const struct dirent *found;
    int count = 0;
    DIR *list;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, beneath);
    list = opendir(path);
    ck_assert_ptr_nonnull(list);
    while ((found = readdir(list)) != NULL)
        count += strcmp(found->d_name, ".") != 0 && strcmp(found->d_name, "..") != 0;
    (void)closedir(list);
    return count;
}

START_TEST(a_full_disk_refuses_what_it_has_no_room_for)
{
    const char *flags[] = { "--store", "file", NULL };
    pid_t agentd;

    if (!mount_small_disk("checkpoints"))
        return;
    submit("t1", "r1", "x");
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", FILL_DISK, dir.path, NULL });
    await_line("compared", "done");
    expect_answer("first.answer", "201");
    expect_answer("toolong.answer", "No space left on device");
    expect_answer("toolong.answer", "429");
    expect_answer("meanwhile", "one"); /* what was kept before is still what there is */
    expect_answer("second.answer", "201");
    expect_answer("second.answer", "\"seq\":\"2\"");
    expect_answer("compared", "as stored");
    verify("t1", 0, "whole");
    ck_assert_int_eq(count_files("checkpoints/t1"), 2); /* and nothing of what had no room */
    (void)stop(agentd);
}
END_TEST

/* The agent prints on, whatever becomes of it, and does its work. */
#define PRINT_ON                                                                               \
    "cd \"$0\"; until [ -e full ]; do sleep 0.1; done; yes | head -c 100000; " CURL            \
    "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL "-d '' " TASKS "t1/start; "     \
    "echo one >small; " KEEP("small") "echo yes >kept; "                                       \
                                      "while :; do echo I print on; sleep 0.2; done"

static void fill_disk(const char *name, bool full)
{
    char path[HFT_PATH_MAX + 64], block[4096] = { 1 };
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    while (full && write(fd, block, sizeof block) > 0)
        ;
    ck_assert(!full || errno == ENOSPC);
    ck_assert_int_eq(close(fd), 0);
}

/* What it prints is lost; its work, its life and a link that has to be replaced are not. */
START_TEST(a_full_state_directory_is_told_of_and_costs_no_agent)
{
    char state[HFT_PATH_MAX + 32];
    const char *flags[] = { "--state-dir", state, NULL };
    pid_t agentd;
    hf_rev life;

    if (!mount_small_disk("state"))
        return;
    submit("t1", "r1", "x");
    (void)snprintf(state, sizeof state, "%s/state", dir.path);
    agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", PRINT_ON, dir.path, NULL });
    await("agents/a1/live", "\"pid\"");
    life = look("agents/a1/live").create_rev;
    fill_disk("state/filler", true);
    write_file("full", "");
    await_line("kept", "yes");
    expect_answer("small.answer", "201");
    await_line("agentd.log", "event=state_not_written");
    await_line("agentd.log", "No space left on device");
    await_link(1);
    ck_assert_int_eq(kill(pid_in("state/link.pid"), SIGKILL), 0);
    await_link(2);
    fill_disk("state/filler", false);
    await_line("agentd.log", "event=state_written");
    await_line("state/agents/a1.log", "I print on");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    (void)stop(agentd);
}
END_TEST

/* What went through this agentd is known by heart, whatever becomes of its store. */
START_TEST(a_short_checkpoint_is_given_back_though_its_store_has_lost_it)
{
    static const char SMALL[] =
        "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL
        "-d '' " TASKS "t1/start; echo two >second; " KEEP(
            "second") "echo yes >kept; until [ -e go ]; do sleep 0.1; done; " CURL
                      "-w '%{http_code}' -o got " CHECKPOINT " >status; "
                      "(cat status; echo; head -n 1 got) >told; mv told back; exec sleep 600";
    char key[64];
    pid_t agentd;

    submit("t1", "r1", "x");
    agentd = start("a1", (const char *[]){ "sh", "-c", SMALL, dir.path, NULL });
    await_line("kept", "yes");
    find_key_in("second.answer", key);
    damage_etcd(LOSE_BODY, key);
    write_file("go", "");
    await_line("back", "200\ntwo");
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");
    TCase *chains = tcase_create("chains"), *disks = tcase_create("disks");
    TCase *sweeps = tcase_create("sweeps");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 120);
    tcase_add_test(stories, what_fits_goes_into_etcd_and_the_rest_into_files);
    tcase_add_test(stories, files_go_on_when_etcd_has_no_room);
    tcase_add_test(stories, who_asks_for_etcd_alone_is_told_of_the_other_stores);
    tcase_add_test(stories, what_is_dropped_makes_room);
    tcase_add_test(stories, who_asks_for_files_gets_files);
    tcase_add_test(stories, a_body_that_nobody_waits_for_is_not_left_behind);
    tcase_add_test(stories, a_short_checkpoint_is_given_back_though_its_store_has_lost_it);
    tcase_add_loop_test(stories, damage_is_found_and_passed_over, 0,
                        sizeof DAMAGES / sizeof DAMAGES[0]);
    tcase_add_loop_test(stories, a_successor_goes_on_from_the_newest_that_is_whole, 0,
                        sizeof LOSSES / sizeof LOSSES[0]);
    tcase_add_checked_fixture(sweeps, setup, teardown);
    tcase_set_timeout(sweeps, 60);
    tcase_add_test(sweeps, files_that_no_checkpoint_names_are_removed);
    tcase_add_test(sweeps, what_an_entry_names_stays_though_the_entry_cannot_be_read);
    tcase_add_test(sweeps, two_namespaces_that_share_a_directory_remove_nothing_of_each_other);
    tcase_add_checked_fixture(disks, setup, teardown);
    tcase_set_timeout(disks, 120);
    tcase_add_test(disks, a_full_disk_refuses_what_it_has_no_room_for);
    tcase_add_test(disks, a_full_state_directory_is_told_of_and_costs_no_agent);
    tcase_add_checked_fixture(chains, setup, teardown);
    tcase_set_timeout(chains, 120);
    tcase_add_loop_test(chains, a_chain_with_a_hole_is_told_of_and_gone_on_from, 0,
                        sizeof HOLES / sizeof HOLES[0]);
    return hft_suite_run("agentd: stores", stories, chains, disks, sweeps, NULL);
}
