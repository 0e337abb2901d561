/* What may run on a host: launchers, their parameters, and what their processes find. */
#include "agentd/link/launcher.h"
#include "base/buf.h"
#include "base/str.h"
#include "unit/link_files.h"

static struct link_launcher launcher;

static void setup(void)
{
    hft_tempdir_init(&dir);
    launcher = (struct link_launcher){ 0 };
    err = (struct hf_error){ "" };
}

static void teardown(void)
{
    link_launcher_done(&launcher);
    hft_tempdir_done(&dir);
}

static int load(const char *text)
{
    write_file("worker.yaml", text);
    return link_launcher_read(&launcher, path_of("worker.yaml"), (struct hf_config_files){ 0 },
                              &err);
}

START_TEST(a_launcher_is_read)
{
    ck_assert_int_eq(load("name: worker\ncommand: [python3, /opt/w.py, a b]\ndirectory: /opt\n"
                          "environment: [MODE=fast]\nnice: 3\nmemory_max: 2000000000\n"),
                     HF_OK);
    ck_assert_str_eq(launcher.name, "worker");
    ck_assert_uint_eq(launcher.command.count, 3);
    ck_assert_str_eq(launcher.command.items[2], "a b"); /* no shell takes it apart */
    ck_assert_str_eq(launcher.directory, "/opt");
    ck_assert_int_eq(launcher.nice, 3);
    ck_assert_int_eq(launcher.memory_max, 2000000000);
    ck_assert(!launcher.inherit);
}
END_TEST

#define EIGHT_WORDS "a, a, a, a, a, a, a, a, "
#define SIXTY_FOUR_WORDS                                                                       \
    EIGHT_WORDS EIGHT_WORDS EIGHT_WORDS EIGHT_WORDS EIGHT_WORDS EIGHT_WORDS EIGHT_WORDS        \
        EIGHT_WORDS

START_TEST(a_command_may_have_as_many_words_as_are_run)
{
    ck_assert_int_eq(load("name: w\ncommand: [true]\nprobe: {command: [" SIXTY_FOUR_WORDS
                          "]}\nnudge: {by: [hook], command: [" SIXTY_FOUR_WORDS "]}\n"),
                     HF_OK);
    ck_assert_uint_eq(launcher.detect.probe_command.count, 64);
    ck_assert_uint_eq(launcher.nudge.command.count, 64);
}
END_TEST

static const struct {
    const char *text;
    int err;
    const char *sentence;
} MISTAKES[] = {
    { "name: w\ncommand: [true]\nprobe: {command: [" SIXTY_FOUR_WORDS "a]}\n", HF_EINVAL,
      "probe.command: at most 64 words" },
    { "name: w\ncommand: [true]\nnudge: {by: [hook], command: [" SIXTY_FOUR_WORDS "a]}\n",
      HF_EINVAL, "nudge.command: at most 64 words" },
    { "command: [true]\n", HF_EINVAL, "worker.yaml: name: a launcher needs one" },
    { "name: w\n", HF_EINVAL, "worker.yaml: command: say what to run" },
    { "name: w\ncommand: [true]\ndirectory: opt\n", HF_EINVAL, "must be an absolute path" },
    { "name: w\ncommand: [true]\nenvironment: [MODE]\n", HF_EINVAL,
      "environment: \"MODE\" is not NAME=VALUE" },
    { "name: w\ncommand: [true]\nenvironment: [=fast]\n", HF_EINVAL, "is not NAME=VALUE" },
    { "name: w\ncommand: [true]\nparameters: [Model=.*]\n", HF_EINVAL,
      "\"Model=.*\" is not NAME=PATTERN" },
    { "name: w\ncommand: [true]\nparameters: [model]\n", HF_EINVAL, "is not NAME=PATTERN" },
    { "name: w\ncommand: [true]\nparameters: ['model=(']\n", HF_EINVAL,
      "\"model=(\" has no valid pattern" },
    { "name: w\ncommand: [true]\nuser: no-such-user\n", HF_ENOENT,
      "this machine has no no-such-user" },
    { "name: w\ncommand: [true]\nnice: 20\n", HF_EINVAL, "worker.yaml:3:7: nice" },
    { "name: w\ncommand: [true]\ndetect: {by: [ping, guess]}\n", HF_EINVAL,
      "detect.by: \"guess\" is none of ping, watchdog, heartbeat, probe" },
    { "name: w\ncommand: [true]\ndetect: {by: [probe]}\n", HF_EINVAL,
      "detect.by: names probe alone, and no probe is set" },
    { "name: w\ncommand: [true]\ndetect: {profile: fast}\n", HF_EINVAL, "detect.profile" },
    { "name: w\ncommand: [true]\nprobe: {address: 'http://127.0.0.1:${port}/'}\n", HF_EINVAL,
      "probe.address: there is no parameter port" },
    { "name: w\ncommand: [true]\nparameters: ['port=[0-9]+']\n"
      "probe: {address: 'http://127.0.0.1:${port}${por}/'}\n",
      HF_EINVAL, "probe.address: there is no parameter por" },
    { "name: w\ncommand: [true]\nparameters: ['port=[0-9]+']\n"
      "probe: {address: 'http://127.0.0.1:${port'}\n",
      HF_EINVAL, "probe.address" },
    { "name: w\ncommand: [true]\ndetect: {watchdog: 999ms}\n", HF_EINVAL,
      "detect.watchdog: at least 1s, or 0s for none at all" },
    { "name: w\ncommand: [true]\nnudge: {by: [events, pigeon]}\n", HF_EINVAL,
      "nudge.by: \"pigeon\" is none of events, stdin, hook" },
    { "name: w\ncommand: [true]\nnudge: {by: [hook]}\n", HF_EINVAL,
      "nudge.command: say what the hook is" },
    { "name: w\ncommand: [true]\nnudge: {command: [true]}\n", HF_EINVAL,
      "nudge.command: nudge.by does not name the hook" },
    { "name: w\ncommand: [true]\nnudge: {timeout: 1h}\n", HF_EINVAL, "nudge.timeout" },
    { "name: w\ncomand: [true]\n", HF_EINVAL, "did you mean command?" },
};

START_TEST(a_launcher_says_how_nudges_reach_its_agents)
{
    ck_assert_int_eq(load("name: w\ncommand: [true]\n"), HF_OK);
    ck_assert_uint_eq(launcher.nudge.set, LINK_BY_EVENTS);
    ck_assert_int_eq(launcher.nudge.timeout, 10000);
    link_launcher_done(&launcher);
    launcher = (struct link_launcher){ 0 };
    ck_assert_int_eq(load("name: w\ncommand: [true]\nnudge:\n  by: [stdin, hook]\n"
                          "  command: [/opt/nudge, now]\n  timeout: 3s\n"),
                     HF_OK);
    ck_assert_uint_eq(launcher.nudge.set, LINK_BY_STDIN | LINK_BY_HOOK);
    ck_assert_str_eq(launcher.nudge.command.items[1], "now");
    ck_assert_int_eq(launcher.nudge.timeout, 3000);
}
END_TEST

START_TEST(a_nudge_is_a_line_whatever_its_text)
{
    HF_CLEANUP_BUF struct hf_buf line = { 0 };
    char text[6000];

    ck_assert_int_eq(link_ways_format("q1", "why?\n\"so\"", 4096, &line), HF_OK);
    ck_assert_str_eq(line.data, "{\"nudge\":{\"id\":\"q1\",\"text\":\"why?\\n\\\"so\\\"\"}}\n");
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3); /* no character is cut in two */
    ck_assert_int_eq(link_ways_format("q1", text, 4096, &line), HF_OK);
    ck_assert_uint_le(line.len, 4096);
    ck_assert_uint_ge(line.len, 4094);
    ck_assert(hf_str_is_utf8(line.data, line.len));
    ck_assert_str_eq(line.data + line.len - 4, "\"}}\n");
    memset(text, '\n', sizeof text - 1); /* of which each becomes two */
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(link_ways_format("q1", text, 4096, &line), HF_OK);
    ck_assert_uint_le(line.len, 4096);
    ck_assert_int_eq(link_ways_format("q1", text, 10, &line), HF_ELIMIT);
}
END_TEST

/* What is not said about it is as for most agents: heartbeats do not convict. */
START_TEST(a_launcher_says_how_its_agents_are_judged)
{
    struct hf_detector_policy policy;
    const char *why = NULL;

    ck_assert_int_eq(load("name: w\ncommand: [true]\n"), HF_OK);
    policy = link_detect_policy(&launcher.detect, 45000);
    ck_assert_int_eq(hf_detector_policy_check(&policy, &why), HF_OK);
    ck_assert_int_eq(policy.ping_every, 2000);
    ck_assert_int_eq(policy.heartbeat, 45000);
    ck_assert_int_eq(policy.watchdog, 30000);
    ck_assert(policy.phi == 8);
    ck_assert_uint_eq(policy.convicts,
                      1U << HF_SOURCE_PING | 1U << HF_SOURCE_WATCHDOG | 1U << HF_SOURCE_PROBE);
    ck_assert_int_eq(launcher.detect.on_freeze, LINK_ON_FREEZE_END);
    link_launcher_done(&launcher);
    launcher = (struct link_launcher){ 0 };
    ck_assert_int_eq(load("name: w\ncommand: [true]\ndetect: {profile: tolerant, by: "
                          "[heartbeat], freeze: report, phi: 12, watchdog: 0s}\n"),
                     HF_OK);
    policy = link_detect_policy(&launcher.detect, 45000);
    ck_assert_uint_eq(policy.ping_misses, 3);
    ck_assert_uint_eq(policy.convicts, 1U << HF_SOURCE_HEARTBEAT);
    ck_assert_int_eq(policy.watchdog, 0);
    ck_assert(policy.phi == 12);
    ck_assert_int_eq(launcher.detect.on_freeze, LINK_ON_FREEZE_REPORT);
}
END_TEST

START_TEST(an_address_may_name_parameters)
{
    Holdfast__V1__Spec__ParametersEntry entry = HOLDFAST__V1__SPEC__PARAMETERS_ENTRY__INIT;
    Holdfast__V1__Spec__ParametersEntry *entries[] = { &entry };
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct link_probe_target target;
    struct hf_strings env;
    struct hf_error why = { "" };

    ck_assert_int_eq(load("name: w\ncommand: [true]\nparameters: ['port=[0-9]+', 'path=.*']\n"
                          "probe: {address: 'http://127.0.0.1:${port}/a${path}'}\n"),
                     HF_OK);
    entry.key = (char *)"port";
    entry.value = (char *)"8080";
    spec.parameters = entries;
    spec.n_parameters = 1;
    spec.role = (char *)"r1";
    ck_assert_int_eq(link_detect_find_target(&launcher.detect, &spec, &target, &why), HF_OK);
    ck_assert_str_eq(target.host, "127.0.0.1:8080");
    ck_assert_str_eq(target.path, "/a");
    entry.value = (char *)"";
    ck_assert_int_eq(link_detect_find_target(&launcher.detect, &spec, &target, &why),
                     HF_EINVAL);
    ck_assert_int_eq(link_launcher_make_probe_env("a1", &spec, &env), HF_OK);
    ck_assert_uint_eq(env.count, 3);
    ck_assert_str_eq(env.items[0], "HOLDFAST_AGENT=a1");
    ck_assert_str_eq(env.items[1], "HOLDFAST_ROLE=r1");
    ck_assert_str_eq(env.items[2], "HOLDFAST_PARAM_PORT=");
    free((void *)env.items);
}
END_TEST

static int load_with_parameters(int count, const char *more)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_buf_printf(&text, "name: w\ncommand: [true]\n%sparameters: [", more);
    for (int i = 0; i < count; i++)
        hf_buf_printf(&text, "p%d=x, ", i);
    hf_buf_puts(&text, "]\n");
    ck_assert_int_eq(text.err, HF_OK);
    link_launcher_done(&launcher);
    launcher = (struct link_launcher){ 0 };
    return load(text.data);
}

/* Beside the names of the agent and its role. */
START_TEST(who_probes_gets_all_parameters_or_there_are_too_many)
{
    static const char PROBED[] = "probe: {command: ['true']}\n";

    ck_assert_int_eq(load_with_parameters(126, PROBED), HF_OK);
    ck_assert_int_eq(load_with_parameters(127, ""), HF_OK);
    expect_error(load_with_parameters(127, PROBED), HF_EINVAL,
                 "parameters: at most 126 where there is a probe.command");
}
END_TEST

START_TEST(a_mistake_is_named)
{
    expect_error(load(MISTAKES[_i].text), MISTAKES[_i].err, MISTAKES[_i].sentence);
}
END_TEST

START_TEST(a_file_that_is_not_there_is_named)
{
    expect_error(link_launcher_read(&launcher, path_of("none.yaml"),
                                    (struct hf_config_files){ 0 }, &err),
                 HF_ENOENT, "none.yaml");
}
END_TEST

/* One parameter of a spec. */
struct given {
    Holdfast__V1__Spec spec;
    Holdfast__V1__Spec__ParametersEntry entry, *list;
};

static const Holdfast__V1__Spec *give(struct given *given, const char *name, const char *value)
{
    holdfast__v1__spec__init(&given->spec);
    holdfast__v1__spec__parameters_entry__init(&given->entry);
    given->entry.key = (char *)name;
    given->entry.value = (char *)value;
    given->list = &given->entry;
    given->spec.parameters = &given->list;
    given->spec.n_parameters = 1;
    return &given->spec;
}

static const struct {
    const char *name, *value;
    const char *sentence; /* NULL: it is fine */
} VALUES[] = {
    { "model", "small", NULL },
    { "model", "large", NULL },
    { "model", "small; rm", "the value of parameter model does not match" },
    { "model", "smaller", "does not match" },
    { "model", "x\nsmall", "does not match" }, /* the whole of it, not a line */
    { "model", "", "does not match" },
    { "mode", "small", "launcher w has no parameter mode" },
    { "model_", "small", "has no parameter model_" },
    { "", "small", "has no parameter" },
};

START_TEST(a_value_must_match_as_a_whole)
{
    struct given given;
    int rc;

    ck_assert_int_eq(load("name: w\ncommand: [true]\nparameters: [model=small|large]\n"),
                     HF_OK);
    rc = link_launcher_check(&launcher, give(&given, VALUES[_i].name, VALUES[_i].value), &err);
    if (VALUES[_i].sentence == NULL)
        ck_assert_int_eq(rc, HF_OK);
    else
        expect_error(rc, HF_EINVAL, VALUES[_i].sentence);
}
END_TEST

static bool has(const struct hf_strings *env, const char *entry)
{
    for (size_t i = 0; i < env->count; i++) {
        if (strcmp(env->items[i], entry) == 0)
            return true;
    }
    return false;
}

static const char *const OWN[] = { "HOLDFAST_AGENT=a1" };
static char *const INHERITED[] = { (char *)"PATH=/bin",
                                   (char *)"MODE=slow",
                                   (char *)"EXTRA=1",
                                   (char *)"HOLDFAST_PASSWORD_FILE=/secret",
                                   (char *)"ETCDCTL_PASSWORD=secret",
                                   (char *)"NOTIFY_SOCKET=/run/systemd/notify",
                                   (char *)LINK_LAUNCHER_POOL,
                                   NULL };

static void make_env(bool inherit, struct hf_strings *ret_env)
{
    struct given given;

    ck_assert_int_eq(load("name: w\ncommand: [true]\nparameters: [model=.*]\n"
                          "environment: [MODE=fast, HOLDFAST_AGENT=other, "
                          "HOLDFAST_PARAM_MODEL=other]\n"),
                     HF_OK);
    launcher.inherit = inherit;
    ck_assert_int_eq(link_launcher_make_env(&launcher, give(&given, "model", "small"),
                                            (struct hf_strings){ OWN, 1 }, INHERITED, ret_env),
                     HF_OK);
}

/* Who it is counts most, then the parameters, then the launcher, then what is inherited; and
 * nobody inherits what is agentd's own. */
START_TEST(an_agent_finds_what_is_meant_for_it)
{
    struct hf_strings env;

    make_env(_i == 1, &env);
    ck_assert(has(&env, "HOLDFAST_AGENT=a1"));
    ck_assert(has(&env, "HOLDFAST_PARAM_MODEL=small"));
    ck_assert(has(&env, "MODE=fast"));
    ck_assert(has(&env, "PATH=/bin"));
    ck_assert(has(&env, "EXTRA=1") == (_i == 1));
    ck_assert_uint_eq(env.count, _i == 1 ? 5 : 4);
    free((void *)env.items);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("launcher");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_launcher_is_read);
    tcase_add_test(t, a_command_may_have_as_many_words_as_are_run);
    tcase_add_test(t, who_probes_gets_all_parameters_or_there_are_too_many);
    tcase_add_test(t, a_launcher_says_how_its_agents_are_judged);
    tcase_add_test(t, a_launcher_says_how_nudges_reach_its_agents);
    tcase_add_test(t, a_nudge_is_a_line_whatever_its_text);
    tcase_add_test(t, an_address_may_name_parameters);
    tcase_add_loop_test(t, a_mistake_is_named, 0, COUNT(MISTAKES));
    tcase_add_test(t, a_file_that_is_not_there_is_named);
    tcase_add_loop_test(t, a_value_must_match_as_a_whole, 0, COUNT(VALUES));
    tcase_add_loop_test(t, an_agent_finds_what_is_meant_for_it, 0, 2);
    return run("agentd/launcher", t);
}
