/* What can be set for an agentd: command lines, and files that must fit together. */
#include <unistd.h>

#include "agentd/link/settings.h"
#include "agentd/link/trial.h"
#include "schema/json.h"
#include "unit/link_files.h"

static struct link_settings settings;
static struct hf_config cfg;

static void setup(void)
{
    hft_tempdir_init(&dir);
    settings = (struct link_settings){ 0 };
    cfg = (struct hf_config){ 0 };
    err = (struct hf_error){ "" };
}

static void teardown(void)
{
    link_settings_done(&settings);
    hf_config_done(&cfg);
    hft_tempdir_done(&dir);
}

static int load(const char *const argv[])
{
    const struct hf_option_group groups[] = { link_settings_group(&settings),
                                              hf_options_group(&settings.common) };
    char *const nothing[] = { NULL };
    int argc = 0, rc;

    while (argv[argc] != NULL)
        argc++;
    ck_assert_int_eq(hf_config_init(&cfg, groups, 2), HF_OK);
    rc = hf_options_load(&cfg, &settings.common, argc, (char *const *)argv, nothing, &err);
    return rc == HF_OK ? link_settings_complete(&settings, &cfg, &err) : rc;
}

static int load_files(const char *main_file, const char *launcher, const char *agent)
{
    write_file("worker.yaml", launcher);
    write_file("a1.yaml", agent);
    write_file("agentd.yaml", main_file);
    return load((const char *const[]){ "agentd", "--config", path_of("agentd.yaml"), NULL });
}

#define FILES    "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
#define LAUNCHER "name: worker\ncommand: [true]\nparameters: [model=small]\n"
#define AGENT    "name: a1\nlauncher: worker\n"

START_TEST(one_agent_of_the_command_line_has_a_launcher_of_its_own)
{
    Holdfast__V1__Spec *spec;

    ck_assert_int_eq(
        load((const char *const[]){ "agentd", "run", "--name", "w1", "--role", "r", "--host",
                                    "h", "--", "sh", "-c", "true", NULL }),
        HF_OK);
    ck_assert_int_eq(settings.mode, LINK_RUN);
    ck_assert_uint_eq(settings.launcher_count, 1);
    ck_assert_str_eq(settings.launchers[0].name, "run.w1");
    ck_assert_uint_eq(settings.launchers[0].command.count, 3);
    ck_assert(settings.launchers[0].inherit);
    ck_assert_int_eq(link_settings_make_spec(&settings, &settings.run, &spec), HF_OK);
    ck_assert_str_eq(spec->role, "r");
    ck_assert_str_eq(spec->launcher, "run.w1");
    ck_assert_str_eq(spec->home, "h");
    ck_assert(spec->transient);
    hf_json_free(&spec->base);
}
END_TEST

static const struct {
    const char *argv[8];
    const char *sentence;
} LINES[] = {
    { { "agentd" }, "nothing to do" },
    { { "agentd", "start" }, "unknown command: start (run, check or upgrade)" },
    { { "agentd", "run", "--", "true" }, "run: the agent needs a name (--name)" },
    { { "agentd", "run", "--name", "w1" }, "run: say what to run, behind --" },
    { { "agentd", "run", "--name", "w1", "true" }, "the agent's command stands behind --" },
    { { "agentd", "run", "--name", "W1", "--", "true" }, "name" },
    { { "agentd", "run", "--name", "w1", "--ttl", "1s", "--", "true" }, "2s" },
    { { "agentd", "check", "--", "true" }, "unexpected argument: true" },
};

START_TEST(a_command_line_that_makes_no_sense_is_refused)
{
    const char *argv[9] = { NULL };

    memcpy(argv, LINES[_i].argv, sizeof LINES[_i].argv);
    expect_error(load(argv), HF_EINVAL, LINES[_i].sentence);
}
END_TEST

START_TEST(files_are_found_beside_the_one_that_names_them)
{
    Holdfast__V1__Spec *spec;

    ck_assert_int_eq(load_files(FILES, LAUNCHER,
                                AGENT "parameters: [model=small]\nfence: hold\nmax_tasks: 3\n"),
                     HF_OK);
    ck_assert_int_eq(settings.mode, LINK_CONFIG);
    ck_assert_uint_eq(settings.agent_count, 1);
    ck_assert_ptr_nonnull(link_settings_find_launcher(&settings, "worker"));
    ck_assert_ptr_null(link_settings_find_launcher(&settings, "other"));
    ck_assert_int_eq(link_settings_make_spec(&settings, &settings.agents[0], &spec), HF_OK);
    ck_assert_str_eq(spec->role, "a1"); /* as its name */
    ck_assert_uint_eq(spec->n_parameters, 1);
    ck_assert_str_eq(spec->parameters[0]->value, "small");
    ck_assert_int_eq(spec->fence, HOLDFAST__V1__SPEC__FENCE__hold);
    ck_assert_int_eq(spec->max_tasks, 3);
    ck_assert(!spec->transient);
    hf_json_free(&spec->base);
}
END_TEST

static const struct {
    const char *main_file, *launcher, *agent;
    int err;
    const char *sentence;
} MISFITS[] = {
    { FILES, LAUNCHER, "name: a1\nlauncher: other\n", HF_EINVAL,
      "agent a1: there is no launcher other" },
    { FILES, LAUNCHER, "launcher: worker\n", HF_EINVAL, "a1.yaml: name: an agent needs one" },
    { FILES, LAUNCHER, "name: a1\n", HF_EINVAL, "a1.yaml: launcher: say how a1 is started" },
    { FILES, LAUNCHER, AGENT "parameters: [model=large]\n", HF_EINVAL,
      "the value of parameter model does not match" },
    { FILES, LAUNCHER, AGENT "parameters: [mode=small]\n", HF_EINVAL, "has no parameter mode" },
    { FILES, LAUNCHER, AGENT "parameters: [model]\n", HF_EINVAL, "each is NAME=VALUE" },
    { FILES, LAUNCHER, AGENT "parameters: [model=small, model=small]\n", HF_EINVAL,
      "no name twice" },
    { FILES, LAUNCHER, AGENT "launchr: worker\n", HF_EINVAL, "a1.yaml:3:1: unknown key" },
    { "launchers: [worker.yaml, worker.yaml]\n", LAUNCHER, AGENT, HF_EINVAL,
      "there is a launcher worker already" },
    { "launchers: [worker.yaml]\nagents: [a1.yaml, a1.yaml]\n", LAUNCHER, AGENT, HF_EINVAL,
      "there is an agent a1 already" },
    { "agents: [none.yaml]\n", LAUNCHER, AGENT, HF_ENOENT, "none.yaml" },
};

START_TEST(files_that_do_not_fit_together_are_named)
{
    expect_error(load_files(MISFITS[_i].main_file, MISFITS[_i].launcher, MISFITS[_i].agent),
                 MISFITS[_i].err, MISFITS[_i].sentence);
}
END_TEST

/* What agents are registered under stays while they live; the rest may change. */
static const struct hf_config_files DISK = { 0 };

/* Lines that make sense, and that no link could begin with. */
static const struct {
    const char *more;
    int err;
    const char *sentence;
} DEAD_ENDS[] = {
    { "checkpoints: {store: file, directory: /no/such/place}\n", HF_EIO,
      "checkpoints.directory /no/such/place: /no/such: No such file" },
    { "checkpoints.directory: /dev/null\n", HF_EIO, "/dev/null: Not a directory" },
    { "checkpoints.store: s3\n", HF_EINVAL, "say with checkpoints.s3.bucket where" },
    { "checkpoints: {s3: {bucket: our-own}}\n", HF_EINVAL, "checkpoints.s3.credentials_file" },
    { "checkpoints: {s3: {bucket: our-own, credentials_file: /no/such}}\n", HF_EIO,
      "checkpoints.s3.credentials_file /no/such: No such file" },
    { "etcd: {user: u, password_file: /no/such}\n", HF_EINVAL, "/no/such" },
    { "etcd: {endpoints: ['https://127.0.0.1:1'], cacert: /no/such}\n", HF_EINVAL, "/no/such" },
};

START_TEST(a_reload_that_no_link_could_begin_with_is_refused)
{
    const char *argv[] = { "agentd", "--config", path_of("agentd.yaml"), NULL };
    char text[500];

    ck_assert_int_eq(load_files(FILES, LAUNCHER, AGENT), HF_OK);
    settings.argc = 3;
    settings.argv = (char **)argv;
    (void)snprintf(text, sizeof text, FILES "%s", DEAD_ENDS[_i].more);
    write_file("agentd.yaml", text);
    expect_error(link_settings_check_again(&settings, DISK, &err), DEAD_ENDS[_i].err,
                 DEAD_ENDS[_i].sentence);
    (void)snprintf(text, sizeof text, FILES "checkpoints.directory: %s/made-later\n", dir.path);
    write_file("agentd.yaml", text);
    ck_assert_int_eq(link_settings_check_again(&settings, DISK, &err), HF_OK);
    ck_assert_int_ne(access(path_of("made-later"), F_OK), 0);
}
END_TEST

static const struct {
    const char *launcher;
    const char *sentence; /* NULL: it could be started */
} PROGRAMS[] = {
    { "name: worker\ncommand: [sh, -c, true]\n", NULL },
    { "name: worker\ncommand: [/bin/sh]\ndirectory: /\n", NULL },
    { "name: worker\ncommand: [bin/../bin/sh]\ndirectory: /usr\n", NULL },
    { "name: worker\ncommand: [no-such-program]\n", "no program no-such-program in its PATH" },
    { "name: worker\ncommand: [sh]\nenvironment: ['PATH=/no/such:']\n",
      "no program sh in its PATH" },
    { "name: worker\ncommand: [/no/such]\n", "/no/such is not a program that can be run" },
    { "name: worker\ncommand: [/etc/passwd]\n", "/etc/passwd is not a program" },
    { "name: worker\ncommand: [/etc]\n", "/etc is not a program" },
    { "name: worker\ncommand: ['true']\nprobe: {command: [no-such-probe]}\n",
      "probe.command: there is no program no-such-probe" },
    { "name: worker\ncommand: ['true']\nprobe: {command: [/no/such, -x]}\n",
      "probe.command: /no/such is not a program" },
    { "name: worker\ncommand: [sh]\ndirectory: /no/such\n",
      "launcher worker: directory: /no/such: No such file" },
    { "name: worker\ncommand: [sh]\ndirectory: /etc/passwd\n", "Not a directory" },
};

START_TEST(a_launcher_that_could_start_nothing_is_found)
{
    ck_assert_int_eq(load_files(FILES, PROGRAMS[_i].launcher, AGENT), HF_OK);
    if (PROGRAMS[_i].sentence == NULL)
        ck_assert_msg(link_trial_launchers(&settings, &err) == HF_OK, "%s", err.text);
    else
        expect_error(link_trial_launchers(&settings, &err), HF_ENOENT, PROGRAMS[_i].sentence);
}
END_TEST

START_TEST(a_reload_that_would_change_who_it_is_is_refused)
{
    const char *argv[] = { "agentd", "--config", path_of("agentd.yaml"), NULL };

    ck_assert_int_eq(load_files(FILES, LAUNCHER, AGENT), HF_OK);
    settings.argc = 3;
    settings.argv = (char **)argv;
    write_file("agentd.yaml", FILES "stop_grace: 3s\n");
    ck_assert_int_eq(link_settings_check_again(&settings, DISK, &err), HF_OK);
    write_file("agentd.yaml", "host: h2\n");
    expect_error(link_settings_check_again(&settings, DISK, &err), HF_EINVAL,
                 "host cannot change");
    write_file("agentd.yaml", "host: h1\nttl: 20s\n");
    expect_error(link_settings_check_again(&settings, DISK, &err), HF_EINVAL,
                 "ttl cannot change");
    write_file("agentd.yaml", "host: h1\nlaunchers: [none.yaml]\n");
    expect_error(link_settings_check_again(&settings, DISK, &err), HF_ENOENT, "none.yaml");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("settings");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, one_agent_of_the_command_line_has_a_launcher_of_its_own);
    tcase_add_loop_test(t, a_command_line_that_makes_no_sense_is_refused, 0, COUNT(LINES));
    tcase_add_test(t, files_are_found_beside_the_one_that_names_them);
    tcase_add_loop_test(t, files_that_do_not_fit_together_are_named, 0, COUNT(MISFITS));
    tcase_add_test(t, a_reload_that_would_change_who_it_is_is_refused);
    tcase_add_loop_test(t, a_reload_that_no_link_could_begin_with_is_refused, 0,
                        COUNT(DEAD_ENDS));
    tcase_add_loop_test(t, a_launcher_that_could_start_nothing_is_found, 0, COUNT(PROGRAMS));
    return run("agentd/settings", t);
}
