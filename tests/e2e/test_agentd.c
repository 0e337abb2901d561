/* The real agentd, keeper and link, with real agents that are really killed, on a real etcd.
 * The leader is the engine in its runner. */
#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
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
#include "support/suite.h"

#define ROOT   "/holdfast/default/"
#define AGENTD HOLDFAST_PROGRAMS "/agentd"

#define CURL                                                                                   \
    "curl -s --unix-socket $HOLDFAST_SOCKET -H \"Authorization: Bearer $HOLDFAST_TOKEN\" "
#define SAY_READY CURL "-d '{\"state\":\"ready\"}' http://localhost/v1/state; "

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_tempdir dir;
static struct hft_program leader;

static void begin_leader(void)
{
    hft_program_start(&leader, "holdfast-controller", dir.path, "c1", server.endpoint, "--id",
                      "c1", NULL);
    hft_program_until_said(&leader, "event=leading", STEP_MS);
}

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    hft_tempdir_init(&dir);
    leader = (struct hft_program){ 0 };
}

static void teardown(void)
{
    if (leader.pid != 0)
        (void)hft_program_stop(&leader);
    hft_client_close(&hand);
    hft_etcd_done(&server);
    hft_tempdir_done(&dir);
}

/* What stands in etcd. */

static struct hft_outcome look(const char *key)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read(&hand, text);
}

/* The whole value, however long; to be freed. Inlined, gcc takes it for a pointer to the stack.
 */
__attribute__((noinline)) static char *look_whole(const char *key)
{
    char text[200], *value = NULL;

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    hft_etcdctl_ok(&server, &value, "get", "--print-value-only", text, NULL);
    return value;
}

struct expectation {
    const char *key;
    const char *part; /* of its value; NULL: the key is not there */
};

static bool holds(void *arg)
{
    const struct expectation *expectation = arg;
    char *value = look_whole(expectation->key);
    bool as_expected = expectation->part != NULL ? strstr(value, expectation->part) != NULL
                                                 : strlen(value) <= 1;

    free(value);
    return as_expected;
}

static void await(const char *key, const char *part)
{
    char what[300];

    (void)snprintf(what, sizeof what, "%s in %s", part != NULL ? part : "nothing", key);
    hft_wait_or_fail(holds, &(struct expectation){ key, part }, STEP_MS, what);
}

/* A number that stands behind a name in the JSON of a key. */
static long long number_in(const char *key, const char *name)
{
    char *value = look_whole(key), *at = strstr(value, name);
    long long number;

    ck_assert_msg(at != NULL, "no %s in %s: %s", name, key, value);
    at += strlen(name);
    number = strtoll(at + strspn(at, "\":"), NULL, 10);
    free(value);
    return number;
}

static void submit(const char *task, const char *role, const char *payload)
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

static pid_t start(const char *name, const char *const command[])
{
    const char *argv[32] = { AGENTD,
                             "run",
                             "--name",
                             name,
                             "--role",
                             "r1",
                             "--host",
                             "h1",
                             "--state-dir",
                             dir.path,
                             "--ttl",
                             "10s",
                             "--endpoints",
                             server.endpoint,
                             "--stop-grace",
                             "5s",
                             "--" };
    size_t count = 17;
    char log[300];
    int fd;
    pid_t pid;

    for (; *command != NULL; command++)
        argv[count++] = *command;
    argv[count] = NULL;
    (void)snprintf(log, sizeof log, "%s/agentd.log", dir.path);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    pid = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = hft_sanitizer_env(), .out = fd, .err = fd });
    (void)close(fd);
    return pid;
}

static char *read_file(const char *name)
{
    char path[400], *text = calloc(1, 1 << 20);
    int fd;

    ck_assert_ptr_nonnull(text);
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ck_assert_int_ge(read(fd, text, (1 << 20) - 1), 0);
        (void)close(fd);
    }
    return text;
}

/* A sanitizer speaks on agentd's own output. */
static void check_log(void)
{
    char *log = read_file("agentd.log");

    ck_assert_msg(strstr(log, "Sanitizer") == NULL && strstr(log, "runtime error") == NULL,
                  "%s", log);
    free(log);
}

/* Asks it to end, and returns its exit code. */
static int stop(pid_t agentd)
{
    int status;

    ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    status = hft_process_reap(agentd, STEP_MS);
    ck_assert_msg(WIFEXITED(status), "agentd ended with %#x", (unsigned)status);
    check_log();
    return WEXITSTATUS(status);
}

static pid_t pid_in(const char *name)
{
    char *text = read_file(name);
    pid_t pid = (pid_t)strtol(text, NULL, 10);

    free(text);
    ck_assert_int_gt(pid, 1);
    return pid;
}

static bool is_later_life(void *arg)
{
    return look("agents/a1/live").create_rev > *(const hf_rev *)arg;
}

struct line {
    const char *file, *part;
};

static bool is_logged(void *arg)
{
    const struct line *line = arg;
    char *log = read_file(line->file);
    bool there = strstr(log, line->part) != NULL;

    free(log);
    return there;
}

static void await_line(const char *file, const char *part)
{
    hft_wait_or_fail(is_logged, &(struct line){ file, part }, STEP_MS, part);
}

/* Stories. */

/* Registered before it begins, and its end is written with what is known of it. */
START_TEST(an_agent_is_registered_and_its_death_is_told)
{
    pid_t agentd =
        start("a1", (const char *[]){ "sh", "-c", SAY_READY "exec sleep 600", NULL });
    hf_rev life;
    char *exit;

    await("agents/a1/live", "\"host\":\"h1\"");
    await("agents/a1/spec", "\"transient\":true");
    await("hosts/h1/record", "\"launchers\":[\"run.a1\"]");
    await("agents/a1/report", "\"state\":\"ready\"");
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await("agents/a1/exit", "\"signal\":9");
    exit = look_whole("agents/a1/exit");
    ck_assert_msg(strstr(exit, "\"kind\":\"crashed\"") != NULL, "%s", exit);
    free(exit);
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
    ck_assert_int_eq(stop(agentd), 128 + SIGKILL);
    ck_assert_int_eq(look("hosts/h1/live").count, 0);
    await("hosts/h1/record", "\"left\":true");
}
END_TEST

/* The agent knows who it is. */
START_TEST(an_agent_gets_its_environment_and_ends_as_it_likes)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 "env >\"$0\"/env.new; mv \"$0\"/env.new "
                                                 "\"$0\"/env; exit 0",
                                                 dir.path, NULL });
    int status = hft_process_reap(agentd, STEP_MS);
    char *env = read_file("env"), expected[64];

    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    (void)snprintf(expected, sizeof expected, "HOLDFAST_INCARNATION=%lld\n",
                   number_in("agents/a1/exit", "\"createRevision\""));
    ck_assert_ptr_nonnull(strstr(env, expected));
    ck_assert_ptr_nonnull(strstr(env, "HOLDFAST_AGENT=a1\n"));
    ck_assert_ptr_nonnull(strstr(env, "HOLDFAST_ROLE=r1\n"));
    ck_assert_ptr_nonnull(strstr(env, "/agents/a1.sock\n"));
    ck_assert_ptr_null(strstr(env, "HOLDFAST_TASK="));
    free(env);
    await("agents/a1/exit", "\"kind\":\"finished\"");
    await("agents/a1/live", NULL);
}
END_TEST

/* The whole story: a task, its checkpoints, a death, a successor that goes on, one end. */
static void tell_story(const char *const command[])
{
    pid_t agentd;
    hf_rev life;
    char *log;

    begin_leader();
    agentd = start("a1", command);
    submit("t1", "r1", "12");
    await("checkpoints/t1/0000000000000000003", "\"seq\":\"3\"");
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    ck_assert_int_gt(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(number_in("tasks/t1", "\"attempt\""), 1); /* it was 0 */
    await("tasks/t1", "\"restored\":{\"seq\":\"");             /* and it says from where */
    await_line("agents/a1.log", "completed t1");
    log = read_file("agents/a1.log");
    ck_assert_msg(strstr(log, "resume t1 behind step") != NULL, "%s", log);
    ck_assert_ptr_eq(strstr(strstr(log, "completed t1") + 1, "completed t1"), NULL);
    free(log);
    /* The last five are kept, with their bodies. */
    await("checkpoints/t1/0000000000000000007", NULL);
    ck_assert_int_eq(look("checkpoints/t1/0000000000000000008").count, 1);
    (void)stop(agentd);
}

START_TEST(a_task_is_resumed_from_its_checkpoint_by_the_successor)
{
    tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "python3",
                                 HOLDFAST_SOURCE_DIR "/examples/python/worker.py", NULL });
    await("tasks/t1", "\\\"sum\\\": 78");
}
END_TEST

START_TEST(a_shell_can_do_it_too)
{
    tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "sh",
                                 HOLDFAST_SOURCE_DIR "/examples/shell/worker.sh", NULL });
}
END_TEST

START_TEST(node_can_do_it_too)
{
    struct hft_output found;

    hft_process_run((const char *[]){ "sh", "-c", "command -v node", NULL }, NULL, &found);
    if (found.status == 0) {
        tell_story((const char *[]){ "env", "STEP_SECONDS=0.1", "node",
                                     HOLDFAST_SOURCE_DIR "/examples/node/worker.mjs", NULL });
        await("tasks/t1", "\\\"sum\\\":78");
    } else {
        printf("node is not installed\n");
    }
    hft_output_done(&found);
}
END_TEST

/* A link that is killed costs no agent: the next one has its lease, its life and its socket. */
START_TEST(a_link_that_is_killed_costs_nothing)
{
    pid_t agentd, link, agent;
    long long lease;
    hf_rev life;

    begin_leader();
    agentd =
        start("a1", (const char *[]){ "env", "STEP_SECONDS=0.1", "python3",
                                      HOLDFAST_SOURCE_DIR "/examples/python/worker.py", NULL });
    submit("t1", "r1", "30");
    await("checkpoints/t1/0000000000000000003", "\"seq\":\"3\"");
    life = look("agents/a1/live").create_rev;
    lease = look("agents/a1/live").lease;
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    link = pid_in("link.pid");
    ck_assert_int_eq(kill(link, SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(look("agents/a1/live").lease, lease);
    ck_assert_int_eq(kill(agent, 0), 0);
    ck_assert_int_ne(pid_in("link.pid"), link);

    /* And it sees to the end of what another one began. */
    ck_assert_int_eq(kill(agent, SIGKILL), 0);
    await("agents/a1/exit", "\"signal\":9");
    (void)stop(agentd);
}
END_TEST

static char state_of(pid_t pid)
{
    char path[64], text[512] = "", *end;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return '?';
    end = fgets(text, sizeof text, file) != NULL ? strrchr(text, ')') : NULL;
    (void)fclose(file);
    return end != NULL ? end[2] : '?';
}

/* What is left of an agentd that crashed is ended and told of by the next one, at once. */
START_TEST(an_agentd_that_crashed_is_followed_by_another_at_once)
{
    const char *const command[] = { "sh", "-c", SAY_READY "exec sleep 600", NULL };
    pid_t agentd = start("a1", command);
    long long pid, lease;
    hf_rev life;

    await("agents/a1/report", "\"state\":\"ready\"");
    life = look("agents/a1/live").create_rev;
    lease = look("agents/a1/live").lease;
    pid = number_in("agents/a1/live", "\"pid\"");
    ck_assert_int_eq(kill(agentd, SIGKILL), 0);
    (void)hft_process_reap(agentd, STEP_MS);
    agentd = start("a1", command);
    hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
    ck_assert_int_ne(look("agents/a1/live").lease, lease);
    ck_assert_int_ne(number_in("agents/a1/live", "\"pid\""), pid);
    ck_assert_int_eq(number_in("agents/a1/exit", "\"createRevision\""), life);
    ck_assert_ptr_nonnull(strchr("?ZX", state_of((pid_t)pid))); /* whoever reaps it */
    (void)stop(agentd);
}
END_TEST

/* While etcd cannot be asked nobody can be sure of the lease: the agent stands still, and goes
 * on as the same process, registered. */
START_TEST(an_agent_stands_still_while_nobody_can_be_sure_of_it)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 SAY_READY CURL
                                                 "-N http://localhost/v1/events >\"$0\"/events",
                                                 dir.path, NULL });
    pid_t agent;

    await("agents/a1/report", "\"state\":\"ready\"");
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    hft_etcd_pause(&server);
    await_line("agentd.log", "event=fenced");
    hft_etcd_resume(&server);
    await_line("agentd.log", "event=thawed");
    await_line("events", "event: jeopardy\ndata: {\"until\":");
    await_line("events", "event: thawed\ndata: {\"frozenFor\":");
    ck_assert_int_eq(number_in("agents/a1/live", "\"pid\""), agent);
    (void)stop(agentd);
}
END_TEST

static void write_file(const char *name, const char *text)
{
    char path[400];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* The bodies lie in files of which the next life of the agent finds the newest. */
START_TEST(agents_of_a_configuration_keep_their_checkpoints_in_files)
{
    char config[300];
    struct hft_program agentd = { 0 };
    char *log;

    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
                              "checkpoints: {store: file}\n");
    write_file("worker.yaml", "name: worker\nparameters: [model=(small|large)]\n"
                              "command: [env, STEP_SECONDS=0.1, python3, " HOLDFAST_SOURCE_DIR
                              "/examples/python/worker.py]\n");
    write_file("a1.yaml", "name: a1\nrole: r1\nlauncher: worker\nparameters: [model=small]\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    begin_leader();
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, "--ttl", "10s", NULL);
    submit("t1", "r1", "12");
    await("checkpoints/t1/0000000000000000003", "\"store\":\"file\"");
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    await("tasks/t1", "\"state\":\"completed\"");
    await_line("agents/a1.log", "completed t1");
    log = read_file("agents/a1.log");
    ck_assert_msg(strstr(log, "resume t1 behind step") != NULL, "%s", log);
    free(log);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
    await("agents/a1/exit", "\"kind\":\"terminated\"");
}
END_TEST

/* As somebody else, within limits, and still able to ask. */
START_TEST(a_launcher_says_as_whom_and_within_which_limits)
{
    char config[300], expected[64];
    struct hft_program agentd = { 0 };
    char *said;

    if (geteuid() != 0) {
        printf("only root can start it as another user\n");
        return;
    }
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    write_file("worker.yaml",
               "name: worker\nuser: nobody\nopen_files_max: 99\nnice: 3\ndirectory: /\n"
               "environment: [MODE=fast]\n"
               "command: [sh, -c, 'id -un; ulimit -n; nice; pwd; echo $MODE $USER; " CURL
               "http://localhost/v1/self; exec sleep 600']\n");
    write_file("a1.yaml", "name: a1\nrole: r1\nlauncher: worker\n");
    ck_assert_int_eq(chmod(dir.path, 0700), 0);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, NULL);
    await_line("agents/a1.log", "\"agent\":\"a1\"");
    said = read_file("agents/a1.log");
    (void)snprintf(expected, sizeof expected, "nobody\n99\n%d\n/\nfast nobody\n{",
                   nice(0) + 3 < 19 ? nice(0) + 3 : 19);
    ck_assert_msg(strncmp(said, expected, strlen(expected)) == 0, "%s", said);
    free(said);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
    write_file("worker.yaml", "name: worker\nuser: no-such-user\ncommand: [true]\n");
    hft_program_start(&agentd, "agentd", dir.path, "again", server.endpoint, "--config", config,
                      "--state-dir", dir.path, NULL);
    ck_assert_int_eq(hft_program_wait(&agentd, STEP_MS), 2);
    ck_assert(hft_program_said(&agentd, "this machine has no no-such-user"));
}
END_TEST

START_TEST(a_new_configuration_touches_nothing_that_did_not_change)
{
    char config[300];
    struct hft_program agentd = { 0 };
    struct hft_output output;
    hf_rev life;
    long long pid;

    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    write_file("worker.yaml", "name: worker\ncommand: [sleep, 600]\n");
    write_file("a1.yaml", "name: a1\nlauncher: worker\n");
    write_file("a2.yaml", "name: a2\nlauncher: worker\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, NULL);
    await("agents/a1/live", "\"host\":\"h1\"");
    await_line("agentd.log", "event=joined");
    life = look("agents/a1/live").create_rev;
    pid = number_in("agents/a1/live", "\"pid\"");
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml, gone]\n");
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await_line("agentd.log", "event=not_reloaded");
    write_file("agentd.yaml", "host: h2\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await_line("agentd.log", "host cannot change while the agents live");
    write_file("agentd.yaml",
               "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml, a2.yaml]\n");
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await("agents/a2/live", "\"host\":\"h1\"");
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_msg(output.status == 0, "%s", output.err);
    hft_output_done(&output);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(kill((pid_t)pid, 0), 0);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    await("agents/a1/exit", "\"kind\":\"terminated\"");
    check_log();
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_int_eq(output.status, 3);
    hft_output_done(&output);
}
END_TEST

/* What an agent may ask, and what it is told when that makes no sense. */

static char token[80], sock[300];

/* Runs curl, and returns the status that it was answered with; the body is in `ret`. */
static int ask(const char *method, const char *path, const char *body, const char *bearer,
               char ret[4096])
{
    char url[200], authorization[200];
    const char *argv[] = { "curl",        "-s", "--max-time", "30", "--unix-socket", sock, "-H",
                           authorization, "-X", method,       "-w", "%{http_code}",  url,  "-d",
                           body,          NULL };
    HFT_CLEANUP_OUTPUT struct hft_output output;
    size_t len;

    (void)snprintf(url, sizeof url, "http://localhost%s", path);
    (void)snprintf(authorization, sizeof authorization, "Authorization: Bearer %s", bearer);
    if (body == NULL)
        argv[13] = NULL;
    hft_process_run(argv, NULL, &output);
    len = strlen(output.out);
    ck_assert_msg(len >= 3, "%s %s: %s", method, path, output.err);
    (void)snprintf(ret, 4096, "%.*s", (int)(len - 3), output.out);
    return (int)strtol(output.out + len - 3, NULL, 10);
}

static const struct {
    const char *method, *path, *body;
    int status;
    const char *said;
} ASKS[] = {
    { "GET", "/v1/self", NULL, 200, "\"agent\":\"a1\"" },
    { "POST", "/v1/heartbeat", "{\"status\":\"busy\",\"tokens\":17}", 200, "\"interval\":" },
    { "POST", "/v1/activity", "", 200, "\"waiting\":" },
    { "POST", "/v1/heartbeat", "{\"tokens\":-1}", 400, "below 0" },
    { "POST", "/v1/heartbeat", "{\"tokns\":1}", 400, "tokns" },
    { "POST", "/v1/heartbeat", "{\"status\":", 400, "column" },
    { "POST", "/v1/state", "{\"state\":\"asleep\"}", 400, "asleep" },
    { "POST", "/v1/state", "{\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\"}", 200,
      "" },
    { "POST", "/v1/pong", "{\"id\":\"1\"}", 204, "" },
    { "GET", "/v1/nothing", NULL, 404, "nothing at this path" },
    { "DELETE", "/v1/self", NULL, 405, "cannot be asked that way" },
    { "GET", "/v1/tasks/t9", NULL, 404, "no such task" },
    { "GET", "/v1/tasks/T9", NULL, 400, "name" },
    { "POST", "/v1/tasks/t9/start", "", 404, "no such task" },
    { "GET", "/v1/tasks/t9/checkpoint", NULL, 404, "" },
    { "GET", "/v1/tasks/t9/checkpoints", NULL, 200, "\"checkpoints\":[]" },
    { "PUT", "/v1/tasks/t9/checkpoint", "state", 404, "no such task" },
    { "POST", "/v1/tasks", "{\"payload\":\"x\"}", 400, "role" },
    { "POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"other\",\"payload\":\"x\"}", 201,
      "\"state\":\"pending\"" },
    { "POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"other\",\"payload\":\"y\"}", 200,
      "\"payload\":\"x\"" },
    { "GET", "/v1/tasks/t1", NULL, 200, "\"role\":\"other\"" },
    { "POST", "/v1/tasks/t1/complete", "{\"result\":\"z\"}", 409, "not this agent's" },
    { "POST", "/v1/tasks/claim", "{\"wait\":\"0s\"}", 204, "" },
    { "POST", "/v1/tasks", "{\"id\":\"t2\",\"role\":\"r1\",\"labels\":{\"a\":\"b\"}}", 201,
      "\"labels\":{\"a\":\"b\"}" },
    { "POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", 200, "\"state\":\"acknowledged\"" },
    { "POST", "/v1/tasks/claim", "", 200, "\"id\":\"t2\"" }, /* the one already mine */
    { "POST", "/v1/tasks/t2/start", "", 200, "\"state\":\"in_progress\"" },
    { "PUT", "/v1/tasks/t2/checkpoint", "state of things", 201, "\"seq\":\"1\"" },
    { "GET", "/v1/tasks/t2/checkpoint", NULL, 200, "state of things" },
    { "POST", "/v1/tasks/t2/progress", "{\"percent\":101}", 400, "percent" },
    { "POST", "/v1/tasks/t2/release", "{\"reason\":\"later\"}", 200, "\"state\":\"pending\"" },
    { "POST", "/v1/tasks/claim", "", 200, "\"checkpoint\":{\"seq\":\"1\"}" },
    { "POST", "/v1/tasks/t2/fail", "{\"reason\":\"no use\"}", 200, "\"state\":\"failed\"" },
    { "POST", "/v1/leave", "{\"reason\":\"done\"}", 200, "" },
};

static bool is_ready(void *arg)
{
    char *env = read_file("env"), *at = strstr(env, "HOLDFAST_TOKEN=");

    (void)arg;
    token[0] = '\0';
    if (at != NULL)
        (void)sscanf(at, "HOLDFAST_TOKEN=%79[0-9a-f]", token);
    free(env);
    return token[0] != '\0';
}

static void ask_all(void)
{
    char body[4096];

    for (size_t i = 0; i < sizeof ASKS / sizeof ASKS[0]; i++) {
        int status = ask(ASKS[i].method, ASKS[i].path, ASKS[i].body, token, body);

        ck_assert_msg(status == ASKS[i].status && strstr(body, ASKS[i].said) != NULL,
                      "%zu: %s %s: %d %s", i, ASKS[i].method, ASKS[i].path, status, body);
    }
}

static void ask_too_much(void)
{
    char body[4096];
    static char large[(64 << 10) + 100];

    (void)memset(large, 'x', sizeof large - 1);
    ck_assert_int_eq(ask("PUT", "/v1/tasks/t9/checkpoint", large, token, body), 413);
    ck_assert_ptr_nonnull(strstr(body, "too_large"));
}

START_TEST(an_agent_is_answered_after_etcd_has_it_and_told_what_is_wrong)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c",
                                                 "env >\"$0\"/env.new; mv \"$0\"/env.new "
                                                 "\"$0\"/env; exec sleep 600",
                                                 dir.path, NULL });
    struct stat info;
    char body[4096];

    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a1.sock", dir.path);
    ck_assert_int_eq(stat(sock, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(ask("GET", "/v1/self", NULL, "wrong", body), 401);
    ask_too_much();
    ask_all();
    (void)stop(agentd);
    await("agents/a1/exit", "\"kind\":\"left\"");
    await("agents/a1/exit", "\"text\":\"done\"");
}
END_TEST

/* A command line that makes no sense is told so, and starts nothing. */
static const struct {
    const char *argv[8];
    int status;
    const char *said;
} WORDS[] = {
    { { AGENTD, "--help" }, 0, "agentd run --name NAME" },
    { { AGENTD, "--version" }, 0, "agentd 0" },
    { { AGENTD, "run", "--", "true" }, 2, "the agent needs a name" },
    { { AGENTD, "run", "--name", "a1" }, 2, "say what to run" },
    { { AGENTD, "run", "--name", "A 1", "--", "true" }, 2, "name" },
    { { AGENTD, "fly" }, 2, "unknown command: fly" },
    { { AGENTD, "run", "--nmae", "a1" }, 2, "--nmae" },
    { { AGENTD, "check" }, 0, "no fault found" },
    { { AGENTD, "upgrade" }, 3, "no agentd runs in" },
};

START_TEST(what_makes_no_sense_is_said)
{
    char env[300];
    HFT_CLEANUP_OUTPUT struct hft_output output;

    (void)snprintf(env, sizeof env, "HOLDFAST_STATE_DIR=%s/w", dir.path);
    hft_process_run(WORDS[_i].argv, (const char *[]){ env, NULL }, &output);
    ck_assert_msg(output.status == WORDS[_i].status, "status %d: %s%s", output.status,
                  output.out, output.err);
    ck_assert_msg(strstr(output.out, WORDS[_i].said) != NULL ||
                      strstr(output.err, WORDS[_i].said) != NULL,
                  "%s%s", output.out, output.err);
}
END_TEST

static void scratch(void)
{
    hft_tempdir_init(&dir);
}

static void no_scratch(void)
{
    hft_tempdir_done(&dir);
}

int main(void)
{
    TCase *stories = tcase_create("stories"), *words = tcase_create("words");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, an_agent_is_registered_and_its_death_is_told);
    tcase_add_test(stories, an_agent_gets_its_environment_and_ends_as_it_likes);
    tcase_add_test(stories, a_task_is_resumed_from_its_checkpoint_by_the_successor);
    tcase_add_test(stories, a_shell_can_do_it_too);
    tcase_add_test(stories, node_can_do_it_too);
    tcase_add_test(stories, a_link_that_is_killed_costs_nothing);
    tcase_add_test(stories, an_agentd_that_crashed_is_followed_by_another_at_once);
    tcase_add_test(stories, an_agent_stands_still_while_nobody_can_be_sure_of_it);
    tcase_add_test(stories, agents_of_a_configuration_keep_their_checkpoints_in_files);
    tcase_add_test(stories, a_new_configuration_touches_nothing_that_did_not_change);
    tcase_add_test(stories, a_launcher_says_as_whom_and_within_which_limits);
    tcase_add_test(stories, an_agent_is_answered_after_etcd_has_it_and_told_what_is_wrong);
    tcase_add_checked_fixture(words, scratch, no_scratch);
    tcase_set_timeout(words, 120);
    tcase_add_loop_test(words, what_makes_no_sense_is_said, 0, sizeof WORDS / sizeof WORDS[0]);
    return hft_suite_run("agentd on an etcd", stories, words, NULL);
}
