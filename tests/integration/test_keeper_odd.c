/* Requests that are well formed and come in any order, lengths that are not, and records that a
 * disk has spoilt: the keeper answers or refuses, does not die, and leaves nobody behind. */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "support/keeper.h"
#include "support/process.h"
#include "support/suite.h"
#include "support/text.h"
#include "support/wait.h"

#define LONG_MS 10000

enum { REQUESTS = 400, AGENTS = 4, INSTANCES = 12, RESTARTS = 5, CROWD = 6 };

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;
static unsigned seed;

static const char *const SCRIPTS[] = { "exec sleep 1000", "exit 3",
                                       "(setsid sleep 1000 &); (sleep 1000 &); sleep 1000",
                                       "trap '' TERM; while :; do sleep 0.05; done",
                                       "while read -r line; do :; done; exit 4" };

static unsigned draw(unsigned of)
{
    return (unsigned)rand_r(&seed) % of;
}

/* HOLDFAST_SEED tells a story again; what the machine makes of it is its own. */
static void begin_story(void)
{
    const char *text = getenv("HOLDFAST_SEED");

    seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : (unsigned)hft_now();
    printf("mode %d: seed %u\n", (int)k->mode, seed);
    (void)fflush(stdout);
}

/* Whoever the keeper started, and has not ended, knows the scratch directory. */
static bool is_of_keeper(const char *pid)
{
    char path[300], want[HFT_PATH_MAX + 8];
    size_t len = 0;
    HF_CLEANUP_FREE char *said = NULL;
    int want_len = snprintf(want, sizeof want, "D=%s", k->dir.path);

    (void)snprintf(path, sizeof path, "/proc/%s/environ", pid);
    said = hft_read_text(path, &len);
    return memmem(said, len, want, (size_t)want_len + 1) != NULL;
}

static bool has_no_orphan(void *arg)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;
    bool none = true;

    (void)arg;
    ck_assert_ptr_nonnull(proc);
    while ((entry = readdir(proc)) != NULL)
        none = none && (strtol(entry->d_name, NULL, 10) <= 0 || !is_of_keeper(entry->d_name));
    (void)closedir(proc);
    return none;
}

static bool has_few_children(void *arg)
{
    char command[128];
    HFT_CLEANUP_OUTPUT struct hft_output out;

    (void)arg;
    (void)snprintf(command, sizeof command, "ps --ppid %d -o comm= | sort | tr '\\n' ' '",
                   (int)k->hello.keeper_pid);
    hft_process_run((const char *[]){ "sh", "-c", command, NULL }, NULL, &out);
    return strcmp(out.out, "agentd-scribe keeper_relay ") == 0;
}

static void expect_nobody(void)
{
    hft_wait_or_fail(has_no_orphan, NULL, LONG_MS, "the end of all that it started");
    hft_wait_or_fail(has_few_children, NULL, LONG_MS, "a keeper with its own two alone");
}

/* Any of them: what may be asked of a process that is there, was, or never will be. */

static const struct agentd_who *draw_who(void)
{
    static struct agentd_who who;

    who = (struct agentd_who){ 0 };
    (void)snprintf(who.agent, sizeof who.agent, "a%u", draw(AGENTS));
    (void)snprintf(who.instance, sizeof who.instance, "i%u", draw(INSTANCES));
    for (size_t i = 0; draw(8) != 0 && k->tree_count > 0 && i < 1; i++)
        who = k->trees[draw((unsigned)k->tree_count)].who;
    return &who;
}

static size_t put_order(char *packet, uint16_t type)
{
    struct agentd_order m = { .head = { .length = sizeof m, .type = type },
                              .who = *draw_who() };

    if (type == AGENTD_END || type == AGENTD_EXTEND)
        m.grace_ms = draw(2) == 0 ? 0 : draw(300);
    if (type == AGENTD_END)
        m.signal = draw(2) == 0 ? SIGTERM : 1 + draw(64);
    memcpy(packet, &m, sizeof m);
    return sizeof m;
}

static size_t put_release(char *packet)
{
    struct agentd_release m = { .head = { .length = sizeof m, .type = AGENTD_RELEASE },
                                .who = *draw_who(),
                                .incarnation = { 5, 77, 0 } };

    memcpy(packet, &m, sizeof m);
    return sizeof m;
}

static size_t put_remember(char *packet)
{
    uint32_t len = draw(AGENTD_BLOB_MAX + 1);
    struct agentd_remember m = { .head = { .length = (uint32_t)sizeof m + len,
                                           .type = AGENTD_REMEMBER },
                                 .who = *draw_who(),
                                 .blob_len = len };

    memcpy(packet, &m, sizeof m);
    memset(packet + sizeof m, 'b', len);
    return m.head.length;
}

static size_t put_tell(char *packet)
{
    uint32_t len = 1 + draw(AGENTD_TELL_MAX);
    struct agentd_tell m = { .head = { .length = (uint32_t)sizeof m + len,
                                       .type = AGENTD_TELL },
                             .who = *draw_who(),
                             .len = len };

    (void)snprintf(m.id, sizeof m.id, "t%u", draw(4));
    memcpy(packet, &m, sizeof m);
    memset(packet + sizeof m, '\n', len);
    return m.head.length;
}

static size_t put_lease(char *packet)
{
    struct agentd_lease m = { .head = { .length = sizeof m, .type = AGENTD_LEASE },
                              .lease = { draw(3), draw(AGENTD_TTL_MAX + 1), draw(1000), 3 } };

    memcpy(packet, &m, sizeof m);
    return sizeof m;
}

static size_t put_memo(char *packet)
{
    uint32_t len = draw(AGENTD_MEMO_MAX + 1);
    struct agentd_memo m = {
        .head = { .length = (uint32_t)sizeof m + len, .type = AGENTD_MEMO }, .len = len
    };

    memcpy(packet, &m, sizeof m);
    memset(packet + sizeof m, 'm', len);
    return m.head.length;
}

static size_t put_let(char *packet)
{
    struct agentd_held m = { .head = { .length = sizeof m, .type = AGENTD_LET } };

    (void)snprintf(m.agent, sizeof m.agent, "a%u", draw(AGENTS));
    memcpy(packet, &m, sizeof m);
    return sizeof m;
}

static size_t put_any(char *packet)
{
    static const uint16_t ORDERS[] = { AGENTD_DISCARD, AGENTD_FREEZE, AGENTD_FREEZE,
                                       AGENTD_THAW,    AGENTD_THAW,   AGENTD_END,
                                       AGENTD_KILL,    AGENTD_FORGET, AGENTD_EXTEND };

    switch (draw(12)) {
    case 0:
    case 1:
    case 2: return put_release(packet);
    case 3: return put_remember(packet);
    case 4: return put_tell(packet);
    case 5: return put_lease(packet);
    case 6: return put_memo(packet);
    case 7: return put_let(packet);
    default: return put_order(packet, ORDERS[draw(sizeof ORDERS / sizeof ORDERS[0])]);
    }
}

/* What was forgotten is not told any more. */
static void drop_tree(const char *instance)
{
    struct agentd_agent *tree = hft_keeper_tree(k, instance);

    if (tree != NULL)
        *tree = k->trees[--k->tree_count];
}

static void ask_anything(void)
{
    static _Alignas(8) char packet[AGENTD_MESSAGE_MAX];
    struct agentd_head *head = (struct agentd_head *)packet;
    size_t len = put_any(packet);
    bool is_wrong = draw(6) == 0;
    uint32_t code;

    head->id = ++k->last_id;
    if (is_wrong) /* longer or shorter than it is, or by far */
        head->length = draw(2) == 0 ? head->length + 1 + draw(64) : draw((unsigned)len);
    code = hft_keeper_raw(k, packet, len);
    if (is_wrong)
        ck_assert_uint_eq(code, AGENTD_CODE_MALFORMED);
    else
        ck_assert_msg(code != AGENTD_CODE_MALFORMED, "%s: %s", agentd_message_name(head->type),
                      k->reply.text);
    if (!is_wrong && head->type == AGENTD_FORGET && code == AGENTD_CODE_OK)
        drop_tree(((const struct agentd_order *)packet)->who.instance);
}

static void spawn_anybody(void)
{
    struct agentd_who who = *draw_who();
    bool was_there = hft_keeper_tree(k, who.instance) != NULL;
    uint32_t code = hft_keeper_spawn(
        k,
        &(struct hft_keeper_spawn){ .agent = who.agent,
                                    .instance = who.instance,
                                    .script = SCRIPTS[draw(sizeof SCRIPTS / sizeof SCRIPTS[0])],
                                    .fence = draw(3), /* freeze, kill, hold */
                                    .flags = draw(2) == 0 ? AGENTD_SPAWN_TELL_INPUT : 0 });

    ck_assert_msg(!was_there || code == AGENTD_CODE_EXISTS, "%s twice: %s", who.instance,
                  k->reply.text);
    ck_assert_msg(code == AGENTD_CODE_OK || code == AGENTD_CODE_EXISTS ||
                      code == AGENTD_CODE_LIMIT,
                  "%s", k->reply.text);
    /* The reply may come before the news, and who is not known here is not ended in the end. */
    while (code == AGENTD_CODE_OK && hft_keeper_tree(k, who.instance) == NULL)
        ck_assert_msg(hft_keeper_take(k, LONG_MS), "%s is not told", who.instance);
}

static void end_everybody(void)
{
    hft_keeper_extend(k, 60000);
    while (k->tree_count > 0) {
        struct agentd_who who = k->trees[0].who;

        if (k->trees[0].state != AGENTD_STATE_ENDED)
            (void)hft_keeper_order(k, AGENTD_KILL, who.agent, who.instance);
        (void)hft_keeper_wait(k, who.instance, AGENTD_STATE_ENDED);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, who.agent, who.instance),
                          AGENTD_CODE_OK);
        drop_tree(who.instance);
    }
}

static void expect_service(const char *instance)
{
    (void)hft_keeper_run(k, "last", instance, "exit 6");
    ck_assert_int_eq(
        WEXITSTATUS(hft_keeper_wait(k, instance, AGENTD_STATE_ENDED)->exit.wait_status), 6);
    end_everybody();
}

START_TEST(requests_in_any_order_are_answered_and_leave_nobody)
{
    if (!hft_keeper_begin(k, _i))
        return;
    begin_story();
    for (int i = 0; i < REQUESTS; i++) {
        if (draw(4) == 0)
            spawn_anybody();
        else
            ask_anything();
        if (draw(20) == 0)
            hft_keeper_extend(k, draw(2) == 0 ? -1 : 60000);
        if (i % 100 == 50) {
            ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
            hft_keeper_accept(k);
        }
    }
    end_everybody();
    expect_nobody();
    expect_service("n1");
    hft_keeper_done(k);
}
END_TEST

/* Records. */

static void flip(const char *path)
{
    HF_CLEANUP_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat facts;
    unsigned char byte;

    ck_assert_int_eq(fstat(fd, &facts), 0);
    for (unsigned i = 1 + draw(8); i > 0 && facts.st_size > 0; i--) {
        /* Most of a record is texts that are empty: its head and names are hit more often. */
        off_t at =
            (off_t)draw(draw(2) == 0 && facts.st_size > 400 ? 400 : (unsigned)facts.st_size);

        ck_assert_int_eq(pread(fd, &byte, 1, at), 1);
        byte ^= (unsigned char)(1u << draw(8));
        ck_assert_int_eq(pwrite(fd, &byte, 1, at), 1);
    }
}

static void lengthen(const char *path)
{
    char block[6000] = { 1 };
    HF_CLEANUP_FD int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    size_t len = 1 + draw(sizeof block);

    ck_assert_int_eq(write(fd, block, len), (ssize_t)len);
}

static void shorten(const char *path)
{
    struct stat facts;

    ck_assert_int_eq(stat(path, &facts), 0);
    ck_assert_int_eq(truncate(path, (off_t)draw((unsigned)facts.st_size + 1)), 0);
}

/* As if it were of another process: what is in it names the first. */
static void rename_it(const char *path)
{
    char other[HFT_PATH_MAX + 300];

    (void)snprintf(other, sizeof other, "%s-%u", path, draw(1000));
    ck_assert_int_eq(rename(path, other), 0);
}

static void spoil(const char *dir_path)
{
    static void (*const WAYS[])(const char *) = { flip, flip, shorten, lengthen, rename_it };
    DIR *dir = opendir(dir_path);
    const struct dirent *entry;
    char path[HFT_PATH_MAX + 300];
    struct stat facts;

    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        if (strchr(entry->d_name, '-') == NULL && lstat(path, &facts) == 0 &&
            S_ISREG(facts.st_mode) && draw(5) != 0)
            WAYS[draw(sizeof WAYS / sizeof WAYS[0])](path);
    }
    (void)closedir(dir);
}

static void run_crowd(int round)
{
    char agent[16], instance[16];

    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(agent, sizeof agent, "a%d", i);
        (void)snprintf(instance, sizeof instance, "r%di%d", round, i);
        (void)hft_keeper_run(k, agent, instance,
                             SCRIPTS[draw(sizeof SCRIPTS / sizeof SCRIPTS[0])]);
    }
}

static unsigned count_records(void)
{
    char path[HFT_PATH_MAX + 32];
    DIR *dir;
    const struct dirent *entry;
    unsigned count = 0;

    (void)snprintf(path, sizeof path, "%s/run", k->state);
    dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    while ((entry = readdir(dir)) != NULL)
        count += entry->d_name[0] != '.';
    (void)closedir(dir);
    return count;
}

static bool is_recorded(void *arg)
{
    (void)arg;
    return count_records() == CROWD;
}

static bool is_clean(void *arg)
{
    (void)arg;
    return count_records() == 0;
}

START_TEST(spoilt_records_cost_no_keeper_and_leave_nobody)
{
    char run[HFT_PATH_MAX + 32], instance[16];

    if (!hft_keeper_begin(k, _i))
        return;
    begin_story();
    (void)snprintf(run, sizeof run, "%s/run", k->state);
    for (int i = 0; i < RESTARTS; i++) {
        run_crowd(i);
        hft_wait_or_fail(is_recorded, NULL, LONG_MS, "their records");
        ck_assert_int_eq(kill(k->hello.keeper_pid, SIGKILL), 0);
        (void)hft_process_reap(k->pid, LONG_MS);
        spoil(run);
        hft_keeper_start(k);
        for (size_t t = 0; t < k->tree_count; t++)
            ck_assert_uint_eq(k->trees[t].state, AGENTD_STATE_ENDED);
        end_everybody();
        expect_nobody();
        hft_wait_or_fail(is_clean, NULL, LONG_MS, "no record of anybody who is forgotten");
        (void)snprintf(instance, sizeof instance, "n%d", i);
        expect_service(instance);
        hft_wait_or_fail(is_clean, NULL, LONG_MS, "no record of the last");
    }
    hft_keeper_done(k);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("odd");

    tcase_set_timeout(t, 180); /* longer than the patience of one wait, which says for what */
    tcase_add_loop_test(t, requests_in_any_order_are_answered_and_leave_nobody, 0,
                        HFT_KEEPER_MODES);
    tcase_add_loop_test(t, spoilt_records_cost_no_keeper_and_leave_nobody, 0, HFT_KEEPER_MODES);
    return hft_suite_run("keeper: odd", t, NULL);
}
