/* agentd_fixture.h - a real agentd on a real etcd, with a controller where a test begins one.
 */
#ifndef AGENTD_FIXTURE_H
#define AGENTD_FIXTURE_H

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/program.h"
#include "support/rights.h"
#include "support/suite.h"
#include "support/text.h"

#define ROOT "/holdfast/default/"
#ifdef HOLDFAST_PROGRAMS /* the build says where */
#define AGENTD      HOLDFAST_PROGRAMS "/agentd"
#define AGENTD_LINK HOLDFAST_PROGRAMS "/../libexec/holdfast/agentd-link"
#else
#define AGENTD      "agentd"
#define AGENTD_LINK "agentd-link"
#endif

#define CURL                                                                                   \
    "curl -s --unix-socket $HOLDFAST_SOCKET -H \"Authorization: Bearer $HOLDFAST_TOKEN\" "
#define SAY_READY CURL "-d '{\"state\":\"ready\"}' http://localhost/v1/state; "

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_tempdir dir;
static struct hft_program leader;
static int input;       /* of the agentd that is started next; 0: nothing to read */
static bool is_nobodys; /* the agentds; HOLDFAST_HOST says so */
static const char *const
    *variables; /* of the same, beside what a sanitizer needs; may be NULL */

static inline void begin_leader(void)
{
    hft_program_start(&leader, "holdfast-controller", dir.path, "c1", server.endpoint, "--id",
                      "c1", NULL);
    hft_program_until_said(&leader, "event=leading", STEP_MS);
}

static inline void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    hft_tempdir_init(&dir);
    leader = (struct hft_program){ 0 };
    is_nobodys = hft_is_nobodys(false);
    if (is_nobodys)
        hft_settle_nobody(dir.path, NULL);
}

static inline void teardown(void)
{
    if (leader.pid != 0)
        (void)hft_program_stop(&leader);
    hft_client_close(&hand);
    hft_etcd_done(&server);
    hft_tempdir_done(&dir);
}

/* What stands in etcd. */

static inline struct hft_outcome look(const char *key)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read(&hand, text);
}

/* The whole value, however long; to be freed. */
static inline char *look_whole(const char *key)
{
    char text[300];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read_values(&hand, text, false);
}

struct expectation {
    const char *key;
    const char *part; /* of its value; NULL: the key is not there */
};

static inline bool holds(void *arg)
{
    const struct expectation *expectation = arg;
    char *value = look_whole(expectation->key);
    bool as_expected = expectation->part != NULL ? strstr(value, expectation->part) != NULL
                                                 : strlen(value) <= 1;

    free(value);
    return as_expected;
}

static inline void await(const char *key, const char *part)
{
    char what[300];

    (void)snprintf(what, sizeof what, "%s in %s", part != NULL ? part : "nothing", key);
    hft_wait_or_fail(holds, &(struct expectation){ key, part }, STEP_MS, what);
}

/* A number that stands behind a name in the JSON of a key. */
static inline long long number_in(const char *key, const char *name)
{
    char *value = look_whole(key), *at = strstr(value, name);
    long long number;

    ck_assert_msg(at != NULL, "no %s in %s: %s", name, key, value);
    at += strlen(name);
    number = strtoll(at + strspn(at, "\":"), NULL, 10);
    free(value);
    return number;
}

struct head {
    const char *task;
    long long seq;
};

static inline bool has_head(void *arg)
{
    static const char SEQ[] = "\"checkpoint\":{\"seq\":\"";
    const struct head *head = arg;
    char key[200], *value, *at;
    bool has;

    (void)snprintf(key, sizeof key, "tasks/%s", head->task);
    value = look_whole(key);
    at = strstr(value, SEQ);
    has = at != NULL && strtoll(at + sizeof SEQ - 1, NULL, 10) >= head->seq;
    free(value);
    return has;
}

/* The task has got so far, or further: old entries do not stay. */
static inline void await_head(const char *task, long long seq)
{
    hft_wait_or_fail(has_head, &(struct head){ task, seq }, STEP_MS, "that checkpoint");
}

static inline void submit(const char *task, const char *role, const char *payload)
{
    struct hf_txn *txn = hf_txn_new();
    char key[200], index[200], json[300];

    (void)snprintf(key, sizeof key, ROOT "tasks/%s", task);
    (void)snprintf(index, sizeof index, ROOT "pending/%s/%s", role, task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"%s\",\"state\":\"pending\",\"payload\":\"%s\"}",
                   task, role, payload);
    hf_txn_then_put(txn, hf_bytes_of(key), hf_bytes_of(json), HF_NO_LEASE);
    hf_txn_then_put(txn, hf_bytes_of(index), hf_bytes_of("{}"), HF_NO_LEASE);
    ck_assert(hft_commit(&hand, txn, false).succeeded);
}

/* agentd. */

/* As a path: as it was built, or the copy that nobody can come to. */
static inline const char *program(const char *built, const char *copy)
{
    static char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, copy);
    return is_nobodys ? path : built;
}

static inline const char *agentd_program(void)
{
    return program(AGENTD, "bin/agentd");
}

static inline const char *link_program(void)
{
    return program(AGENTD_LINK, "libexec/holdfast/agentd-link");
}

static inline const char *const *sanitizer_env(void)
{
    return is_nobodys ? hft_nobody_env() : hft_sanitizer_env();
}

static inline pid_t start_with(const char *name, const char *const flags[],
                               const char *const command[])
{
    const char *argv[48] = { agentd_program(), "run",
                             "--name",         name,
                             "--role",         "r1",
                             "--host",         "h1",
                             "--state-dir",    dir.path,
                             "--ttl",          "10s",
                             "--endpoints",    server.endpoint,
                             "--stop-grace",   "5s" };
    size_t count = 16;
    char log[300];
    int fd;
    pid_t pid;

    for (; *flags != NULL; flags++)
        argv[count++] = *flags;
    argv[count++] = "--";
    for (; *command != NULL; command++)
        argv[count++] = *command;
    argv[count] = NULL;
    (void)snprintf(log, sizeof log, "%s/agentd.log", dir.path);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    pid = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv,
                             .env = variables != NULL ? variables : sanitizer_env(),
                             .in = input,
                             .out = fd,
                             .err = fd,
                             .as_nobody = is_nobodys });
    (void)close(fd);
    return pid;
}

static inline pid_t start(const char *name, const char *const command[])
{
    return start_with(name, (const char *[]){ NULL }, command);
}

static inline char *read_file(const char *name)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return hft_read_text(path, NULL);
}

/* A sanitizer speaks on agentd's own output. */
static inline void check_log_of(const char *file, bool of_nobody)
{
    char *log = read_file(file);

    ck_assert_msg(strstr(log, "Sanitizer") == NULL && strstr(log, "runtime error") == NULL,
                  "%s", log);
    hft_check_trees(log, of_nobody);
    free(log);
}

static inline void check_log(void)
{
    check_log_of("agentd.log", is_nobodys);
}

/* Asks it to end, and returns its exit code. */
static inline int stop(pid_t agentd)
{
    int status;

    ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    status = hft_process_reap(agentd, STEP_MS);
    ck_assert_msg(WIFEXITED(status), "agentd ended with %#x", (unsigned)status);
    check_log();
    return WEXITSTATUS(status);
}

static inline pid_t pid_in(const char *name)
{
    char *text = read_file(name);
    pid_t pid = (pid_t)strtol(text, NULL, 10);

    free(text);
    ck_assert_int_gt(pid, 1);
    return pid;
}

static inline bool is_later_life(void *arg)
{
    return look("agents/a1/live").create_rev > *(const hf_rev *)arg;
}

struct line {
    const char *file, *part;
};

static inline bool is_logged(void *arg)
{
    const struct line *line = arg;
    char *log = read_file(line->file);
    bool there = strstr(log, line->part) != NULL;

    free(log);
    return there;
}

static inline void await_line(const char *file, const char *part)
{
    hft_wait_or_fail(is_logged, &(struct line){ file, part }, STEP_MS, part);
}

/* Another link has taken over: the n-th is ready. */

static inline bool has_links(void *arg)
{
    char *log = read_file("agentd.log"), *at = log;
    int count = 0;

    while ((at = strstr(at, "event=ready")) != NULL) {
        count++;
        at++;
    }
    free(log);
    return count >= *(const int *)arg;
}

static inline void await_link(int number)
{
    hft_wait_or_fail(has_links, &number, STEP_MS, "another link");
}

static inline void kill_link(void)
{
    ck_assert_int_eq(kill(pid_in("link.pid"), SIGKILL), 0);
}

/* etcd takes its lease back, as it does after a long stall of its own. */
static inline void revoke_lease(void)
{
    char lease[32];

    (void)snprintf(lease, sizeof lease, "%llx",
                   (unsigned long long)look("agents/a1/live").lease);
    hft_etcdctl_ok(&server, NULL, "lease", "revoke", lease, NULL);
}

/* A line of the log about the process that is registered now. */
static inline void await_event(const char *event)
{
    char line[200];

    (void)snprintf(line, sizeof line,
                   "event=%s program=agentd ns=default agent=a1 pid=%lld incarnation=%lld",
                   event, number_in("agents/a1/live", "\"pid\""),
                   (long long)look("agents/a1/live").create_rev);
    await_line("agentd.log", line);
}

static inline void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

#endif
