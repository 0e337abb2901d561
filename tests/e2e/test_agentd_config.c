/* What can be set for an agentd: files of agents and launchers, and command lines. */
#include <sys/resource.h>

#include "e2e/agentd_fixture.h"

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

#define PUT_FILE(path)                                                                         \
    CURL "-X PUT -H \"Content-Type: application/json\" -d \"{\\\"path\\\":\\\"" path           \
         "\\\"}\" http://localhost/v1/tasks/t1/checkpoint; "

/* As somebody else, within limits, and still able to ask; but not for what others may not see,
 * nor for what the kernel tells us and not them. */
START_TEST(a_launcher_says_as_whom_and_within_which_limits)
{
    char config[300], expected[64];
    struct hft_program agentd = { 0 };
    char *said;

    if (geteuid() != 0) {
        hft_skip("only root can start it as another user");
        return;
    }
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    write_file("worker.yaml",
               "name: worker\nuser: nobody\nopen_files_max: 99\nnice: 3\ndirectory: /\n"
               "environment: [MODE=fast]\n"
               "command: [sh, -c, 'id -un; ulimit -n; nice; pwd; echo $MODE $USER; " CURL
               "http://localhost/v1/self; " PUT_FILE("/etc/shadow") PUT_FILE("/proc/kallsyms")
                   PUT_FILE("/etc/passwd") "exec sleep 600']\n");
    write_file("a1.yaml", "name: a1\nrole: r1\nlauncher: worker\n");
    ck_assert_int_eq(chmod(dir.path, 0700), 0);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, NULL);
    await_line("agents/a1.log", "\"agent\":\"a1\"");
    await_line("agents/a1.log", "path: /etc/shadow: Permission denied");
    await_line("agents/a1.log", "there is no such task"); /* for what it may read */
    await_line("agents/a1.log", "path: /proc/kallsyms: ");
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
    write_file("other.yaml", "name: other\ncommand: [sleep, 600]\n");
    write_file("a2.yaml", "name: a2\nlauncher: other\n");
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
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_int_eq(output.status, 1);
    ck_assert_ptr_nonnull(strstr(output.err, "host cannot change while the agents live"));
    hft_output_done(&output);
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
                              "checkpoints: {store: file, directory: /no/such/place}\n");
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await_line("agentd.log", "checkpoints.directory /no/such/place");
    ck_assert(!is_logged(&(struct line){ "agentd.log", "event=reloading" }));
    write_file("agentd.yaml", "host: h1\ncapacity: 7\nlaunchers: [worker.yaml, other.yaml]\n"
                              "agents: [a1.yaml, a2.yaml]\n");
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await("agents/a2/live", "\"host\":\"h1\"");
    await("hosts/h1/record", "\"launchers\":[\"worker\",\"other\"]");
    await("hosts/h1/record", "\"capacity\":7");
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

static void start_sleeper(struct hft_program *agentd, const char *password)
{
    char config[300];

    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    write_file("worker.yaml", "name: worker\ncommand: [sleep, 600]\n");
    write_file("a1.yaml", "name: a1\nlauncher: worker\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(agentd, "agentd", dir.path, "agentd", server.endpoint, "--config", config,
                      "--state-dir", dir.path, "--user", "somebody", "--password-file",
                      password, NULL);
    await_line("agentd.log", "event=joined");
    await_link(1);
}

static size_t count_sleepers(const char *seconds)
{
    char name[64];
    HFT_CLEANUP_OUTPUT struct hft_output found;
    size_t count = 0;

    (void)snprintf(name, sizeof name, "^sleep %s$", seconds);
    hft_process_run((const char *[]){ "pgrep", "-f", name, NULL }, NULL, &found);
    for (const char *p = found.out; *p != '\0'; p++)
        count += *p == '\n';
    return count;
}

/* Each leaves a process of its own session behind; neither agentd nor its link may. */
START_TEST(what_probes_leave_behind_ends)
{
    struct hft_program agentd = { 0 };
    char config[300], launcher[1000], seconds[32];

    (void)snprintf(seconds, sizeof seconds, "7%d", (int)getpid());
    (void)snprintf(launcher, sizeof launcher,
                   "name: worker\ncommand: [sleep, 600]\nprobe.every: 100ms\n"
                   "probe.command: [sh, -c, 'echo x >>%s/probes; "
                   "x=$(setsid sh -c \"exec sleep %s >&2\" 2>/dev/null &)']\n",
                   dir.path, seconds);
    write_file("worker.yaml", launcher);
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n");
    write_file("a1.yaml", "name: a1\nlauncher: worker\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, NULL);
    await_line("probes", "x\nx\nx\nx\nx\nx\nx\nx\nx\nx\n");
    ck_assert_uint_le(count_sleepers(seconds), 2); /* of the last, and the one before */
    kill_link();
    await_link(2);
    ck_assert_uint_le(count_sleepers(seconds), 2);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    ck_assert_uint_eq(count_sleepers(seconds), 0);
    check_log();
}
END_TEST

/* Files count when agentd is told to read them: until then a link goes on with what the one
 * before it had, whatever stands in them. */
START_TEST(a_mistake_in_a_file_costs_no_agent_whose_link_dies)
{
    struct hft_program agentd = { 0 };
    char password[300];
    hf_rev life;
    pid_t agent;

    write_file("password", "secret\n");
    (void)snprintf(password, sizeof password, "%s/password", dir.path);
    start_sleeper(&agentd, password);
    life = look("agents/a1/live").create_rev;
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    write_file("agentd.yaml", "nonsense: h1\n");
    write_file("worker.yaml", "");
    kill_link();
    await_link(2);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(kill(agent, 0), 0);
    ck_assert_int_eq(kill(agentd.pid, SIGHUP), 0);
    await_line("agentd.log", "unknown key");
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    await("agents/a1/exit", "\"kind\":\"terminated\"");
    check_log();
}
END_TEST

/* Its link cannot come back, so nobody can tell the agents; they end all the same. */
START_TEST(an_agentd_whose_links_cannot_begin_can_be_stopped)
{
    struct hft_program agentd = { 0 };
    char password[300];
    pid_t agent;

    write_file("password", "secret\n");
    (void)snprintf(password, sizeof password, "%s/password", dir.path);
    start_sleeper(&agentd, password);
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    ck_assert_int_eq(unlink(password), 0);
    ck_assert_int_eq(kill(pid_in("link.pid"), SIGKILL), 0);
    await_line("agentd.log", "event=cannot_go_on");
    ck_assert_int_eq(hft_program_stop(&agentd), 2);
    ck_assert_int_ne(kill(agent, 0), 0);
}
END_TEST

/* What the last link had is of no use any more: to correct the file is enough. */
START_TEST(links_that_cannot_begin_find_a_file_that_was_corrected)
{
    struct hft_program agentd = { 0 };
    char config[300], text[1000];
    hf_rev life;
    pid_t agent;

    write_file("old", "secret\n");
    write_file("new", "secret\n");
    write_file("worker.yaml", "name: worker\ncommand: [sleep, 600]\n");
    write_file("a1.yaml", "name: a1\nlauncher: worker\n");
    (void)snprintf(text, sizeof text,
                   "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
                   "etcd: {user: somebody, password_file: %s/old}\n",
                   dir.path);
    write_file("agentd.yaml", text);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, "--ttl", "60s", NULL);
    await_line("agentd.log", "event=joined");
    await_link(1);
    life = look("agents/a1/live").create_rev;
    agent = (pid_t)number_in("agents/a1/live", "\"pid\"");
    (void)snprintf(text, sizeof text, "%s/old", dir.path);
    ck_assert_int_eq(unlink(text), 0);
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml\n"); /* not done yet */
    ck_assert_int_eq(kill(pid_in("link.pid"), SIGKILL), 0);
    await_line("agentd.log", "event=cannot_go_on");
    (void)snprintf(text, sizeof text,
                   "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
                   "etcd: {user: somebody, password_file: %s/new}\n",
                   dir.path);
    write_file("agentd.yaml", text);
    await_link(2);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    ck_assert_int_eq(kill(agent, 0), 0);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    await("agents/a1/exit", "\"kind\":\"terminated\"");
    check_log();
}
END_TEST

/* A file that the settings name and that is not there is a mistake in them. */
START_TEST(a_file_that_is_not_there_is_a_mistake_in_the_settings)
{
    static const char *const FLAGS[][4] = { { "--user", "u", "--password-file", "/no/such" },
                                            { "--user", "u", "--password-file", "/" },
                                            { "--store", "file", "--store-dir",
                                              "/no/such/place" } };
    struct hft_program agentd = { 0 };
    const char *const *flags = FLAGS[_i];

    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "run", "--name",
                      "a1", "--state-dir", dir.path, flags[0], flags[1], flags[2], flags[3],
                      "--", "sleep", "600", NULL);
    ck_assert_int_eq(hft_program_wait(&agentd, STEP_MS), 2);
    ck_assert(hft_program_said(&agentd, flags[3]));
}
END_TEST

static bool is_past(void *arg)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock) > *(const hf_ms *)arg;
}

/* Its agents come later; what it waits for it says now and then. */
START_TEST(an_agentd_waits_for_its_etcd_without_flooding_its_log)
{
    struct hft_program agentd = { 0 };
    struct hf_clock clock = hf_clock_boottime();
    hf_ms later;

    hft_etcd_stop(&server);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "run", "--name",
                      "a1", "--state-dir", dir.path, "--", "sleep", "600", NULL);
    hft_program_until_said(&agentd, "event=trouble", STEP_MS);
    later = hf_clock_now(&clock) + 12000;
    hft_wait_or_fail(is_past, &later, STEP_MS, "some attempts");
    ck_assert_uint_le(hft_program_count(&agentd, "event=trouble"), 3);
    hft_etcd_restart(&server);
    await_line("agentd.log", "event=joined");
    (void)hft_program_stop(&agentd);
    check_log();
}
END_TEST

static bool are_all_registered(void *arg)
{
    const size_t *count = arg;
    char key[40];

    for (size_t i = 0; i < *count; i++) {
        (void)snprintf(key, sizeof key, "agents/b%zu/live", i);
        if (look(key).count == 0)
            return false;
    }
    return true;
}

/* Agents that all sleep. */
static void write_sleepers(size_t count)
{
    char text[1000] = "host: h1\nlaunchers: [worker.yaml]\nagents: [", name[40];

    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(text);

        (void)snprintf(text + len, sizeof text - len, "%sb%zu.yaml", i > 0 ? ", " : "", i);
    }
    (void)snprintf(text + strlen(text), sizeof text - strlen(text), "]\n");
    write_file("agentd.yaml", text);
    write_file("worker.yaml", "name: worker\ncommand: [sleep, 600]\n");
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "b%zu.yaml", i);
        (void)snprintf(text, sizeof text, "name: b%zu\nlauncher: worker\n", i);
        write_file(name, text);
    }
}

/* Each of their ends would take three seconds not to be written, more than there is before it
 * has to end in any case. */
START_TEST(an_agentd_that_finds_dead_agents_and_no_etcd_can_be_stopped)
{
    struct hft_program agentd = { 0 };
    size_t count = 8;
    char config[300];

    write_sleepers(count);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(&agentd, "agentd", dir.path, "agentd", server.endpoint, "--config",
                      config, "--state-dir", dir.path, "--ttl", "60s", NULL);
    hft_wait_or_fail(are_all_registered, &count, STEP_MS, "eight agents");
    ck_assert_int_eq(kill(agentd.pid, SIGSTOP), 0); /* or it starts another link */
    kill_link();
    hft_program_kill(&agentd);
    hft_etcd_pause(&server);
    hft_program_start(&agentd, "agentd", dir.path, "again", server.endpoint, "--config", config,
                      "--state-dir", dir.path, "--ttl", "60s", "--stop-grace", "1s", NULL);
    hft_program_until_said(&agentd, "event=starting", STEP_MS);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    hft_etcd_resume(&server);
    ck_assert(
        !hft_program_said(&agentd, "out of memory")); /* it asked an etcd that is closed */
    ck_assert(hft_program_said(&agentd, "event=end_not_written"));
    check_log();
}
END_TEST

static bool leaves_core(pid_t pid)
{
    char path[64], line[200];
    bool found = false, none = false;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/limits", (int)pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL && !found) {
        found = strncmp(line, "Max core file size ", 19) == 0;
        none = found && line[19 + strspn(line + 19, " ")] == '0';
    }
    (void)fclose(file);
    ck_assert(found);
    return !none;
}

/* Its library forbids a core to whatever is built with it. */
#ifdef __SANITIZE_ADDRESS__
enum { CORES = 0 };
#else
enum { CORES = 1 };
#endif

/* They hold passwords, tokens and keys. */
START_TEST(neither_link_nor_controller_leaves_a_core)
{
    struct hft_program agentd = { 0 };
    struct rlimit core;
    char password[300];

    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &core), 0);
    core.rlim_cur = core.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_CORE, &core), 0);
    if (core.rlim_max == 0) {
        hft_skip("nobody leaves a core here");
        return;
    }
    write_file("password", "secret\n");
    (void)snprintf(password, sizeof password, "%s/password", dir.path);
    begin_leader();
    start_sleeper(&agentd, password);
    ck_assert(!leaves_core(leader.pid));
    ck_assert(!leaves_core(pid_in("link.pid")));
    ck_assert(leaves_core((pid_t)number_in("agents/a1/live", "\"pid\""))); /* its own affair */
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    ck_assert_int_eq(hft_program_stop(&leader), 0);
    (void)snprintf(agentd.env, sizeof agentd.env, "HOLDFAST_DUMPABLE=1");
    (void)snprintf(leader.env, sizeof leader.env, "HOLDFAST_DUMPABLE=1");
    begin_leader();
    hft_program_start(&agentd, "agentd", dir.path, "again", server.endpoint, "run", "--name",
                      "a2", "--state-dir", dir.path, "--", "sleep", "600", NULL);
    await_line("again.log", "event=joined");
    ck_assert(leaves_core(leader.pid));
    ck_assert(leaves_core(pid_in("link.pid")));
    ck_assert_int_eq(hft_program_stop(&agentd), 128 + SIGTERM);
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
    { { AGENTD, "check" }, 0, "0 launchers, 0 agents, no fault found" },
    { { AGENTD, "check", "--store-dir", "/no/such/place" }, 2, "/no/such: No such file" },
    { { AGENTD, "check", "--password-file", "/no/such", "--user", "u" }, 2, "/no/such" },
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

START_TEST(a_check_says_what_it_has_read)
{
    char config[400];
    HFT_CLEANUP_OUTPUT struct hft_output output;

    write_file("agentd.yaml", "host: h1\nlaunchers: [w.yaml]\nagents: [a1.yaml]\n");
    write_file("w.yaml", "name: w\ncommand: [sleep, '9']\n");
    write_file("a1.yaml", "name: a1\nrole: r1\nlauncher: w\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_process_run((const char *[]){ AGENTD, "check", "--config", config, NULL }, NULL,
                    &output);
    ck_assert_msg(strstr(output.out, ": 1 launcher, 1 agent, no fault found\n") != NULL, "%s%s",
                  output.out, output.err);
}
END_TEST

/* Where the agentd that is meant keeps its state need not be said where it was not said to it.
 */
START_TEST(an_upgrade_looks_where_an_agentd_begins)
{
    static const char *const NAMES[] = { NULL, "w1" };
    static const char *const PLACES[] = { "/holdfast/agentd\n", "/holdfast/run-w1\n" };
    char env[300], said[400];
    HFT_CLEANUP_OUTPUT struct hft_output output;

    (void)snprintf(env, sizeof env, "XDG_STATE_HOME=%s", dir.path);
    (void)snprintf(said, sizeof said, "no agentd runs in %s%s",
                   geteuid() == 0 ? "/var/lib" : dir.path, PLACES[_i]);
    hft_process_run((const char *[]){ AGENTD, "upgrade", NAMES[_i] != NULL ? "--name" : NULL,
                                      NAMES[_i], NULL },
                    (const char *[]){ env, NULL }, &output);
    ck_assert_int_eq(output.status, 3);
    ck_assert_msg(strstr(output.err, said) != NULL, "%s and not %s", output.err, said);
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
    tcase_add_test(stories, agents_of_a_configuration_keep_their_checkpoints_in_files);
    tcase_add_test(stories, a_new_configuration_touches_nothing_that_did_not_change);
    tcase_add_test(stories, what_probes_leave_behind_ends);
    tcase_add_test(stories, a_mistake_in_a_file_costs_no_agent_whose_link_dies);
    tcase_add_test(stories, an_agentd_whose_links_cannot_begin_can_be_stopped);
    tcase_add_test(stories, links_that_cannot_begin_find_a_file_that_was_corrected);
    tcase_add_loop_test(stories, a_file_that_is_not_there_is_a_mistake_in_the_settings, 0, 3);
    tcase_add_test(stories, an_agentd_waits_for_its_etcd_without_flooding_its_log);
    tcase_add_test(stories, an_agentd_that_finds_dead_agents_and_no_etcd_can_be_stopped);
    if (CORES)
        tcase_add_test(stories, neither_link_nor_controller_leaves_a_core);
    tcase_add_test(stories, a_launcher_says_as_whom_and_within_which_limits);
    tcase_add_checked_fixture(words, scratch, no_scratch);
    tcase_set_timeout(words, 120);
    tcase_add_loop_test(words, what_makes_no_sense_is_said, 0, sizeof WORDS / sizeof WORDS[0]);
    tcase_add_test(words, a_check_says_what_it_has_read);
    tcase_add_loop_test(words, an_upgrade_looks_where_an_agentd_begins, 0, 2);
    return hft_suite_run("agentd: configuration", stories, words, NULL);
}
