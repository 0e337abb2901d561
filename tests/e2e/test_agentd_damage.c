/* test_agentd_damage.c - checkpoints that are spoilt, lost or find no room: what is whole is
 * gone on from, what is not is named, and a full disk costs nothing that was kept. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>

#include "stores_fixture.h"

/* The agent keeps two, which are too long to be known by heart, and asks for the newest when
 * the test has done something to it. */
#define ASK_LATER                                                                              \
    TAKE_TASK                                                                                  \
    "yes one | head -c 20000 >first; "                                                         \
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
    verify_files("t1", 0, "whole");
    do_damage(DAMAGES[_i].store, DAMAGES[_i].damage);
    verify_files("t1", 1, DAMAGES[_i].verified);
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
    TAKE_TASK "for i in 1 2 3 4 5 6; do yes $i | head -c 20000 >body; " CURL                   \
              "-o answer -T body " CHECKPOINT                                                  \
              "; done; mv answer second.answer; echo yes >kept; "                              \
              "until [ -e go ]; do sleep 0.1; done; " CURL "-o got " CHECKPOINT                \
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
    verify_files("t1", 0, "whole"); /* that the first was dropped is no hole */
    lose_entry(5);
    verify_files("t1", 1, "5      -  -");
    verify_files("t1", 1, "its entry is not there\n");
    find_key_in("second.answer", key);
    if (HOLES[_i].is_newest_bad && strcmp(HOLES[_i].store, "etcd") == 0)
        damage_etcd(FLIP, key);
    else if (HOLES[_i].is_newest_bad)
        damage_file(FLIP, key);
    write_file("go", "");
    await_line("back", HOLES[_i].back);
    lose_entry(4);
    verify_files("t1", 1, "its entry is not there, nor any after 3\n");
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
    TAKE_TASK                                                                                  \
    "yes one | head -c 100000 >first; "                                                        \
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
    verify_files("t1", 0, "whole");
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
    static const char SMALL[] = TAKE_TASK "echo two >second; " KEEP(
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

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 120);
    tcase_add_loop_test(stories, damage_is_found_and_passed_over, 0,
                        sizeof DAMAGES / sizeof DAMAGES[0]);
    tcase_add_loop_test(stories, a_successor_goes_on_from_the_newest_that_is_whole, 0,
                        sizeof LOSSES / sizeof LOSSES[0]);
    tcase_add_test(stories, a_short_checkpoint_is_given_back_though_its_store_has_lost_it);
    tcase_add_checked_fixture(chains, setup, teardown);
    tcase_set_timeout(chains, 120);
    tcase_add_loop_test(chains, a_chain_with_a_hole_is_told_of_and_gone_on_from, 0,
                        sizeof HOLES / sizeof HOLES[0]);
    tcase_add_checked_fixture(disks, setup, teardown);
    tcase_set_timeout(disks, 120);
    tcase_add_test(disks, a_full_disk_refuses_what_it_has_no_room_for);
    tcase_add_test(disks, a_full_state_directory_is_told_of_and_costs_no_agent);
    return hft_suite_run("agentd: damage", stories, chains, disks, NULL);
}
