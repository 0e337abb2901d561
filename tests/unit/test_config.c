#include "support/chaos.h"
#include "support/suite.h"
#include "unit/config_fixture.h"

START_TEST(defaults_are_there_before_anything_is_read)
{
    ck_assert_ptr_null(settings.title);
    ck_assert_str_eq(settings.name, "main");
    ck_assert(settings.enabled);
    ck_assert(!settings.eager);
    ck_assert_int_eq(settings.workers, 4);
    ck_assert_int_eq(settings.ttl, 15000);
    ck_assert_int_eq(settings.colour, GREEN);
    ck_assert_uint_eq(settings.labels.count, 0);
    ck_assert_ptr_null(settings.labels.items);
    assert_list(settings.peers, "http://127.0.0.1:2379");
    ck_assert_ptr_null(settings.token);
}
END_TEST

/* Every subset of the five sources; the bits are in the order of precedence. */
START_TEST(highest_source_wins)
{
    const char *want = (_i & 8) ? "flag" : (_i & 4) ? "env" : (_i & 2) ? "fallback" : "file";
    const char *env[] = { (_i & 4) ? "HOLDFAST_NAME=env" : "A=b",
                          (_i & 2) ? "ETCDCTL_NAME=fallback" : "C=d" };

    if (_i == 0)
        want = "main";
    if (_i & 8)
        ck_assert_int_eq(ARGS("--name", "flag"), HF_OK);
    ck_assert_int_eq(ENV(env[0], env[1]), HF_OK);
    if (_i & 1)
        ck_assert_int_eq(FILE_("server.name: file\n"), HF_OK);
    ck_assert_str_eq(settings.name, want);
}
END_TEST

START_TEST(order_of_reading_does_not_matter)
{
    ck_assert_int_eq(FILE_("server: {name: file, workers: 1}\n"), HF_OK);
    ck_assert_int_eq(ENV("HOLDFAST_NAME=env", "HOLDFAST_WORKERS=2", "HOLDFAST_TTL=20s"), HF_OK);
    ck_assert_int_eq(ARGS("--name=flag"), HF_OK);
    ck_assert_str_eq(settings.name, "flag");
    ck_assert_int_eq(settings.workers, 2);
    ck_assert_int_eq(settings.ttl, 20000);
}
END_TEST

START_TEST(empty_variable_is_not_set_and_lets_the_fallback_through)
{
    ck_assert_int_eq(ENV("HOLDFAST_NAME=", "ETCDCTL_NAME=x", "HOLDFAST_TITLE="), HF_OK);
    ck_assert_str_eq(settings.name, "x");
    ck_assert_ptr_null(settings.title);
}
END_TEST

START_TEST(loser_is_checked_but_not_one_of_another_program)
{
    ck_assert_int_eq(ARGS("--name", "flag", "--workers", "1"), HF_OK);
    ck_assert_int_eq(ENV("ETCDCTL_NAME=Not A Name"), HF_OK);
    ck_assert_int_eq(ENV("HOLDFAST_WORKERS=many"), HF_EINVAL);
    ck_assert_str_eq(err.text, "HOLDFAST_WORKERS: must be a whole number from -1 to 100, "
                               "not \"many\"");
    ck_assert_int_eq(settings.workers, 1);
}
END_TEST

START_TEST(flags_have_two_forms_and_bools_can_be_negated)
{
    ck_assert_int_eq(ARGS("--title", "a=b", "--name=n", "--no-enabled", "--eager", "-t", "3s",
                          "--colour=blue", "--labels", "x,y", "--peers=a,https://[::1]:1", "-q",
                          "--workers", "-1"),
                     HF_OK);
    ck_assert_str_eq(settings.title, "a=b");
    ck_assert_str_eq(settings.name, "n");
    ck_assert(!settings.enabled);
    ck_assert(settings.eager);
    ck_assert(settings.quick);
    ck_assert_int_eq(settings.ttl, 3000);
    ck_assert_int_eq(settings.colour, BLUE);
    ck_assert_int_eq(settings.workers, -1);
    assert_list(settings.labels, "x|y");
    assert_list(settings.peers, "a|https://[::1]:1");
    ck_assert_uint_eq(cfg.arguments.count, 0);
}
END_TEST

START_TEST(refused_value_leaves_the_present_one)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    ck_assert_int_eq(ARGS("--workers=5", "--workers=101"), HF_EINVAL);
    ck_assert_int_eq(settings.workers, 5);
    hf_config_write_dump(&cfg, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "server.workers: 5 "));
}
END_TEST

START_TEST(last_of_several_flags_counts)
{
    ck_assert_int_eq(ARGS("--labels=a,b", "--eager", "--labels=c", "--eager=false"), HF_OK);
    assert_list(settings.labels, "c");
    ck_assert(!settings.eager);
}
END_TEST

START_TEST(other_words_are_left_in_order)
{
    ck_assert_int_eq(ARGS("run", "--eager", "-", "--name", "n", "x", "--", "--name", "--", "y"),
                     HF_OK);
    assert_list(cfg.arguments, "run|-|x|--name|--|y");
    ck_assert_uint_eq(cfg.before_dashes, 3);
    ck_assert_str_eq(settings.name, "n");
}
END_TEST

START_TEST(no_arguments_at_all)
{
    ck_assert_int_eq(hf_config_read_args(&cfg, 0, (char *const[]){ NULL }, &err), HF_OK);
    ck_assert_uint_eq(cfg.arguments.count, 0);
    ck_assert_uint_eq(cfg.before_dashes, 0);
}
END_TEST

static const struct {
    const char *argv[4];
    const char *want;
} BAD_ARGS[] = {
    { { "p", "--titel", "x" }, "unknown flag \"--titel\"; did you mean --title?" },
    { { "p", "--titel=x" }, "unknown flag \"--titel=x\"; did you mean --title?" },
    { { "p", "-title" }, "unknown flag \"-title\"; did you mean --title?" },
    { { "p", "--bogus" }, "unknown flag \"--bogus\"; --help lists them" },
    { { "p", "-x" }, "unknown flag \"-x\"; --help lists them" },
    { { "p", "-tt" }, "unknown flag \"-tt\"; did you mean --ttl?" },
    { { "p", "--no-title" }, "unknown flag \"--no-title\"; did you mean --title?" },
    { { "p", "--=x" }, "unknown flag \"--=x\"; --help lists them" },
    { { "p", "--a-very-long-flag-that-nobody-has-ever-heard-of" },
      "unknown flag \"--a-very-long-flag-that-nobody-has-ever-he...\"; --help lists them" },
    { { "p", "--token", "x" }, "unknown flag \"--token\"; --help lists them" },
    { { "p", "--title" }, "--title: needs a value" },
    { { "p", "-t" }, "-t: needs a value" },
    { { "p", "--title", "--eager" },
      "--title: needs a value; write --title=VALUE if it begins with \"--\"" },
    { { "p", "--title=" }, "--title: must not be empty" },
    { { "p", "--title=\xff" }, "--title: must be valid UTF-8" },
    { { "p", "--no-eager=true" }, "--no-eager: takes no value" },
    { { "p", "--eager=yes" }, "--eager: must be true or false, not \"yes\"" },
    { { "p", "--ttl=15" },
      "--ttl: must be a duration from 2s to 10m, such as 15s, not \"15\"" },
    { { "p", "-t", "1s" }, "-t: must be a duration from 2s to 10m, such as 15s, not \"1s\"" },
    { { "p", "--workers", "101" },
      "--workers: must be a whole number from -1 to 100, not \"101\"" },
    { { "p", "--colour", "gren" },
      "--colour: must be red, green or blue, not \"gren\"; did you mean green?" },
    { { "p", "--colour", "mauve" }, "--colour: must be red, green or blue, not \"mauve\"" },
    { { "p", "--name", "main\n" },
      "--name: a name consists of a-z, 0-9, '.', '_' and '-', not \"main?\"" },
    { { "p", "--name", "-a" }, "--name: a name begins with a-z or 0-9, not \"-a\"" },
    { { "p", "--labels", "a,,b" }, "--labels: item 2 is empty" },
    { { "p", "--peers", "a,b:x" }, "--peers: item 2: endpoint: the port must be 1..65535" },
};

START_TEST(bad_command_line_is_explained)
{
    ck_assert_int_eq(read_args((char *const *)BAD_ARGS[_i].argv), HF_EINVAL);
    ck_assert_str_eq(err.text, BAD_ARGS[_i].want);
}
END_TEST

START_TEST(near_miss_in_the_environment_is_a_warning)
{
    ck_assert_int_eq(ENV("HOLDFAST_TITEL=x", "HOLDFAST_TOKEN=t", "HOLDFAST_TASK=t", "TITLE=x",
                         "HOLDFAST_PARAM_TITLES=x", "HOLDFAST_UNRELATED=1", "HOLDFAST_"),
                     HF_OK);
    ck_assert_uint_eq(cfg.warning_count, 1);
    ck_assert_str_eq(cfg.warnings[0].text,
                     "the variable HOLDFAST_TITEL is not used; did you mean HOLDFAST_TITLE?");
}
END_TEST

START_TEST(warnings_are_bounded)
{
    ck_assert_int_eq(ENV("HOLDFAST_TITL0=", "HOLDFAST_TITL1=", "HOLDFAST_TITL2=",
                         "HOLDFAST_TITL3=", "HOLDFAST_TITL4=", "HOLDFAST_TITL5=",
                         "HOLDFAST_TITL6=", "HOLDFAST_TITL7=", "HOLDFAST_TITL8="),
                     HF_OK);
    ck_assert_uint_eq(cfg.warning_count, COUNT_OF(cfg.warnings));
}
END_TEST

/* All kinds of sources and values; what the golden dump shows. */
static void fill(void)
{
    ck_assert_int_eq(ARGS("--title", "a \"quoted\" \\ title\n", "--eager", "--file", "x y"),
                     HF_OK);
    ck_assert_int_eq(ENV("HOLDFAST_LABELS=x,y z,\xc3\xa9\xe2\x80\xa8", "ETCDCTL_NAME=backup",
                         "HOLDFAST_SECRET=hunter2"),
                     HF_OK);
    ck_assert_int_eq(
        hf_config_read_text(&cfg, "/etc/f.yaml", "\nserver: {workers: 7}\n", 22, &err), HF_OK);
}

START_TEST(dump_says_where_each_value_came_from)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    fill();
    hf_config_write_dump(&cfg, &out);
    ck_assert_int_eq(out.err, HF_OK);
    assert_golden("dump.yaml", out.data);
    ck_assert_ptr_null(strstr(out.data, "hunter2"));
}
END_TEST

START_TEST(dump_is_a_file_with_the_same_values)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_config before;
    size_t cursor = 0;

    fill();
    hf_config_write_dump(&cfg, &out);
    before = cfg;
    setup();
    ck_assert_msg(FILE_(out.data) == HF_OK, "%s", err.text);

    ck_assert_str_eq(hf_config_next_change(&before, &cfg, &cursor)->key, "server.token");
    ck_assert_str_eq(hf_config_next_change(&before, &cfg, &cursor)->flag, "file");
    ck_assert_ptr_null(hf_config_next_change(&before, &cfg, &cursor));
    hf_config_done(&before);
}
END_TEST

START_TEST(reload_sees_what_changed)
{
    struct hf_config before;
    size_t cursor = 0;
    const struct hf_option *option;

    ck_assert_int_eq(FILE_("labels: [a, b]\ncolour: red\n"), HF_OK);
    before = cfg;
    setup();
    ck_assert_int_eq(FILE_("labels: [a]\nserver.enabled: false\ncolour: red\n"), HF_OK);

    option = hf_config_next_change(&before, &cfg, &cursor);
    ck_assert_str_eq(option->key, "server.enabled");
    ck_assert_int_eq(option->counts, HF_COUNTS_ON_RELOAD);
    option = hf_config_next_change(&before, &cfg, &cursor);
    ck_assert_str_eq(option->key, "labels");
    ck_assert_int_eq(option->counts, HF_COUNTS_AS_GROUP);
    ck_assert_ptr_null(hf_config_next_change(&before, &cfg, &cursor));
    hf_config_done(&before);
}
END_TEST

START_TEST(secret_is_not_repeated_in_an_error)
{
    ck_assert_int_eq(FILE_("server: {token: [hunter2]}\n"), HF_EINVAL);
    ck_assert_str_eq(err.text, "f.yaml:1:17: server.token: takes one value, not a list");
    ck_assert_int_eq(ENV("HOLDFAST_SECRET=Hunter2"), HF_EINVAL);
    ck_assert_str_eq(err.text, "HOLDFAST_SECRET: a name begins with a-z or 0-9");
}
END_TEST

START_TEST(help_fits_the_screen)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_config_write_help(&cfg, &out);
    ck_assert_int_eq(out.err, HF_OK);
    assert_golden("help.txt", out.data);
}
END_TEST

START_TEST(reference_has_every_option)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_config_write_markdown(&cfg, &out);
    ck_assert_int_eq(out.err, HF_OK);
    assert_golden("reference.md", out.data);
}
END_TEST

START_TEST(done_accepts_zero_and_null)
{
    struct hf_config zero = { 0 };

    hf_config_done(&zero);
    hf_config_done(NULL);
}
END_TEST

static int read_everything(void *arg)
{
    char *const *argv = WORDS("prog", "run", "--labels=a,b", "-t", "3s");
    char *const *env = WORDS("HOLDFAST_NAME=x", "ETCDCTL_NAME=y", "HOLDFAST_TITEL=t");
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    int rc = setup_config();

    (void)arg;
    if (rc == HF_OK)
        rc = hf_config_read_args(&cfg, 5, argv, &err);
    if (rc == HF_OK)
        rc = hf_config_read_env(&cfg, env, &err);
    if (rc == HF_OK)
        rc = hf_config_read_file(&cfg, DIR "dump.yaml", &err);
    if (rc == HF_OK) {
        hf_config_write_dump(&cfg, &out);
        hf_config_write_help(&cfg, &out);
        hf_config_write_markdown(&cfg, &out);
        rc = out.err;
    }
    hf_config_done(&cfg);
    return rc;
}

START_TEST(lack_of_memory_is_reported_wherever_it_strikes)
{
    ck_assert_uint_gt(hft_chaos_run(read_everything, NULL), 20);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("config");
    TCase *bare = tcase_create("memory");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, defaults_are_there_before_anything_is_read);
    tcase_add_loop_test(t, highest_source_wins, 0, 16);
    tcase_add_test(t, order_of_reading_does_not_matter);
    tcase_add_test(t, empty_variable_is_not_set_and_lets_the_fallback_through);
    tcase_add_test(t, loser_is_checked_but_not_one_of_another_program);
    tcase_add_test(t, flags_have_two_forms_and_bools_can_be_negated);
    tcase_add_test(t, refused_value_leaves_the_present_one);
    tcase_add_test(t, last_of_several_flags_counts);
    tcase_add_test(t, other_words_are_left_in_order);
    tcase_add_test(t, no_arguments_at_all);
    tcase_add_loop_test(t, bad_command_line_is_explained, 0, COUNT_OF(BAD_ARGS));
    tcase_add_test(t, near_miss_in_the_environment_is_a_warning);
    tcase_add_test(t, warnings_are_bounded);
    tcase_add_test(t, dump_says_where_each_value_came_from);
    tcase_add_test(t, dump_is_a_file_with_the_same_values);
    tcase_add_test(t, reload_sees_what_changed);
    tcase_add_test(t, secret_is_not_repeated_in_an_error);
    tcase_add_test(t, help_fits_the_screen);
    tcase_add_test(t, reference_has_every_option);
    tcase_add_test(t, done_accepts_zero_and_null);
    tcase_add_test(bare, lack_of_memory_is_reported_wherever_it_strikes);
    return hft_suite_run("schema/config", t, bare, NULL);
}
