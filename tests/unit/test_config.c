#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schema/config.h"
#include "support/chaos.h"

#define DIR         HOLDFAST_SOURCE_DIR "/tests/unit/config/"
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

enum colour { RED, GREEN, BLUE };
static const char *const COLOURS[] = { "red", "green", "blue", NULL };

struct settings {
    const char *title;
    const char *name;
    bool enabled;
    bool eager;
    int64_t workers;
    hf_ms ttl;
    enum colour colour;
    struct hf_strings labels;
    struct hf_strings peers;
    const char *token;
    const char *file;
    bool quick;
};

/* One option of every type, and one of every kind that the common table lacks. */
static const struct hf_option TABLE[] = {
    { .key = "title",
      .flag = "title",
      .env = "HOLDFAST_TITLE",
      .value = "TEXT",
      HF_OPTION_FIELD(STRING, struct settings, title),
      .help = "What to print first." },
    { .key = "server.name",
      .flag = "name",
      .env = "HOLDFAST_NAME",
      .env_fallback = "ETCDCTL_NAME",
      .value = "NAME",
      HF_OPTION_FIELD(NAME, struct settings, name),
      .preset = "main",
      .help = "The name of the server, which appears in keys." },
    { .key = "server.enabled",
      .flag = "enabled",
      .env = "HOLDFAST_ENABLED",
      HF_OPTION_FIELD(BOOL, struct settings, enabled),
      .preset = "true",
      .help = "Whether to serve at all.",
      .reloadable = true },
    { .key = "server.eager",
      .flag = "eager",
      HF_OPTION_FIELD(BOOL, struct settings, eager),
      .help = "Start before anyone asks." },
    { .key = "server.workers",
      .flag = "workers",
      .env = "HOLDFAST_WORKERS",
      .value = "N",
      HF_OPTION_FIELD(INT, struct settings, workers),
      .min = -1,
      .max = 100,
      .preset = "4",
      .help = "How many workers to run, -1 for one per processor, with a sentence that is long "
              "enough to need three lines on a screen that is eighty columns wide." },
    { .key = "server.limits.ttl",
      .flag = "ttl",
      .letter = 't',
      .env = "HOLDFAST_TTL",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, ttl),
      .min = 2000,
      .max = 600000,
      .preset = "15s",
      .help = "How long to remember a client.",
      .reloadable = true },
    { .key = "colour",
      .flag = "colour",
      .env = "HOLDFAST_COLOUR",
      HF_OPTION_FIELD(ENUM, struct settings, colour),
      .words = COLOURS,
      .preset = "green",
      .help = "The colour of the door." },
    { .key = "labels",
      .flag = "labels",
      .env = "HOLDFAST_LABELS",
      .value = "TEXT,...",
      HF_OPTION_FIELD(STRINGS, struct settings, labels),
      .help = "Words to attach." },
    { .key = "peers",
      .flag = "peers",
      .env = "HOLDFAST_PEERS",
      .value = "URL,...",
      HF_OPTION_FIELD(ENDPOINTS, struct settings, peers),
      .preset = "http://127.0.0.1:2379",
      .help = "Who to talk to." },
    { .key = "server.token",
      .env = "HOLDFAST_SECRET",
      .value = "TEXT",
      HF_OPTION_FIELD(NAME, struct settings, token),
      .help = "What clients must present.",
      .secret = true },
    { .flag = "file",
      .value = "FILE",
      HF_OPTION_FIELD(STRING, struct settings, file),
      .help = "Where to read more." },
    { .flag = "quick",
      .letter = 'q',
      HF_OPTION_FIELD(BOOL, struct settings, quick),
      .help = "Do not wait." },
};

static struct settings settings;
static struct hf_config cfg;
static struct hf_error err;

static int setup_config(void)
{
    const struct hf_option_group groups[] = {
        { "Server", TABLE, 9, &settings },
        { "Other", TABLE + 9, COUNT_OF(TABLE) - 9, &settings },
    };

    memset(&settings, 0xff, sizeof settings); /* init must not rely on zeros */
    memset(&err, 0, sizeof err);
    return hf_config_init(&cfg, groups, COUNT_OF(groups));
}

static void setup(void)
{
    ck_assert_int_eq(setup_config(), HF_OK);
}

static void teardown(void)
{
    hf_config_done(&cfg);
}

/* What main() gets, from literals. */
#define WORDS(...) ((char *const *)(const char *[]){ __VA_ARGS__, NULL })

#define ARGS(...) read_args(WORDS("prog", __VA_ARGS__))
#define ENV(...)  hf_config_read_env(&cfg, WORDS(__VA_ARGS__), &err)
#define FILE_(s)  hf_config_read_text(&cfg, "f.yaml", s, strlen(s), &err)

static int read_args(char *const *argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return hf_config_read_args(&cfg, argc, argv, &err);
}

static void assert_list(struct hf_strings list, const char *joined)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    for (size_t i = 0; i < list.count; i++)
        hf_buf_printf(&buf, "%s%s", i > 0 ? "|" : "", list.items[i]);
    ck_assert_str_eq(buf.data, joined);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "re");
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    char *text = NULL;
    int c;

    ck_assert_msg(file != NULL, "cannot open %s", path);
    while ((c = fgetc(file)) != EOF)
        hf_buf_putc(&buf, (char)c);
    (void)fclose(file);
    ck_assert_int_eq(hf_buf_take(&buf, &text, NULL), HF_OK);
    return text;
}

/* The text must be what the file says. On a wanted change: write it there and look at the diff.
 */
static void assert_golden(const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof path, DIR "%s", name);
    HF_CLEANUP_FREE char *want = read_whole(path);
    ck_assert_msg(strcmp(text, want) == 0, "%s should be:\n%s", path, text);
}

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

static const char FULL_YAML[] = "# all of it\n"
                                "title: no\n"
                                "server:\n"
                                "  name: n1\n"
                                "  enabled: false\n"
                                "  workers: 0\n"
                                "  limits:\n"
                                "    ttl: 1m30s\n"
                                "  token: 's.e'\n"
                                "colour: red\n"
                                "labels:\n"
                                "- a,b\n"
                                "- \"c d\"\n"
                                "peers: a:1,b:2\n";

static const char FULL_JSON[] =
    "{\"title\":\"no\",\n\t\"server\": {\"name\":\"n1\",\"enabled\":false,\"workers\":0,\n"
    "\t\t\"limits\":{\"ttl\":\"1m30s\"}, \"token\":\"s.e\"},\"colour\":\"red\",\n"
    "\t\"labels\":[\"a,b\",\"c \\u0064\"], \"peers\":[\"a:1\",\"b:2\"]}\n";

static const char FULL_DOTTED[] = "server.limits.ttl: 1m30s\n"
                                  "server.name: n1\n"
                                  "server: {enabled: false, token: 's.e'}\n"
                                  "server.workers: \"0\"\n"
                                  "labels: ['a,b', c d]\n"
                                  "peers: [a:1, b:2]\n"
                                  "title: 'no'\n"
                                  "colour: red\n";

static const char *const FULL[] = { FULL_YAML, FULL_JSON, FULL_DOTTED };

START_TEST(yaml_json_and_dotted_keys_say_the_same)
{
    ck_assert_msg(FILE_(FULL[_i]) == HF_OK, "%s", err.text);
    ck_assert_str_eq(settings.title, "no");
    ck_assert_str_eq(settings.name, "n1");
    ck_assert(!settings.enabled);
    ck_assert_int_eq(settings.workers, 0);
    ck_assert_int_eq(settings.ttl, 90000);
    ck_assert_int_eq(settings.colour, RED);
    assert_list(settings.labels, "a,b|c d");
    assert_list(settings.peers, "a:1|b:2");
    ck_assert_str_eq(settings.token, "s.e");
}
END_TEST

static const char *const EMPTY[] = {
    "",          "# nothing\n",          "---\n",          "--- ~\n", "{}",
    "server:\n", "server: {limits: }\n", "---\n{}\n...\n",
};

START_TEST(file_may_be_empty)
{
    ck_assert_msg(FILE_(EMPTY[_i]) == HF_OK, "%s", err.text);
    ck_assert_str_eq(settings.name, "main");
}
END_TEST

/* tests/unit/config/invalid/<case>.yaml is refused with the text in <case>.error. */
static glob_t invalid;

START_TEST(invalid_file_is_explained)
{
    const char *path = invalid.gl_pathv[_i];
    HF_CLEANUP_FREE char *text = read_whole(path);
    char error_path[512];

    (void)snprintf(error_path, sizeof error_path, "%.*s.error", (int)(strlen(path) - 5), path);
    HF_CLEANUP_FREE char *want = read_whole(error_path);
    want[strcspn(want, "\n")] = '\0';

    int rc = hf_config_read_text(&cfg, strrchr(path, '/') + 1, text, strlen(text), &err);
    ck_assert_msg(rc == HF_EINVAL || rc == HF_ELIMIT, "%s: %s", path, hf_err_name(rc));
    ck_assert_str_eq(err.text, want);
}
END_TEST

static void repeat(struct hf_buf *buf, const char *text, size_t count)
{
    while (count-- > 0)
        hf_buf_puts(buf, text);
}

START_TEST(limits_are_enforced)
{
    HF_CLEANUP_BUF struct hf_buf wide = { 0 };
    HF_CLEANUP_BUF struct hf_buf large = { 0 };

    hf_buf_puts(&wide, "labels: [");
    repeat(&wide, "a,", HF_CONFIG_LIST_MAX);
    hf_buf_puts(&wide, "]");
    ck_assert_int_eq(FILE_(wide.data), HF_OK);
    ck_assert_uint_eq(settings.labels.count, HF_CONFIG_LIST_MAX);
    teardown();
    setup();
    wide.len -= 1;
    hf_buf_puts(&wide, "a");
    ck_assert_int_eq(FILE_(wide.data), HF_ELIMIT);
    ck_assert_str_eq(err.text, "f.yaml:1:522: labels: may have 256 items at most");
    hf_buf_clear(&wide);
    repeat(&wide, "a,", HF_CONFIG_LIST_MAX);
    hf_buf_puts(&wide, "a");
    ck_assert_int_eq(ARGS("--labels", wide.data), HF_ELIMIT);
    ck_assert_str_eq(err.text, "--labels: may have 256 items at most");
    teardown();
    setup();

    hf_buf_clear(&wide);
    repeat(&wide, "x", HF_CONFIG_VALUE_MAX);
    ck_assert_int_eq(ARGS("--title", wide.data), HF_ELIMIT); /* its NUL counts */
    ck_assert_str_eq(err.text, "--title: may have 65536 bytes at most");
    ck_assert_ptr_null(settings.title);
    teardown();
    setup();

    repeat(&large, "#\n", HF_CONFIG_FILE_MAX / 2);
    ck_assert_int_eq(FILE_(large.data), HF_OK);
    teardown();
    setup();
    hf_buf_puts(&large, "#");
    ck_assert_int_eq(FILE_(large.data), HF_ELIMIT);
    ck_assert_str_eq(err.text, "f.yaml: larger than 1048576 bytes");
}
END_TEST

START_TEST(file_is_read_from_disk)
{
    ck_assert_msg(hf_config_read_file(&cfg, DIR "dump.yaml", &err) == HF_OK, "%s", err.text);
    ck_assert_str_eq(settings.title, "a \"quoted\" \\ title\n");
}
END_TEST

START_TEST(unreadable_file_is_explained)
{
    ck_assert_int_eq(hf_config_read_file(&cfg, "/nonexistent/f.yaml", &err), HF_ENOENT);
    ck_assert_str_eq(err.text,
                     "/nonexistent/f.yaml: cannot be read: No such file or directory");
    ck_assert_int_eq(hf_config_read_file(&cfg, "/", &err), HF_EIO);
    ck_assert_str_eq(err.text, "/: cannot be read: Is a directory");
    ck_assert_int_eq(hf_config_read_file(&cfg, "/dev/zero", &err), HF_ELIMIT);
    ck_assert_str_eq(err.text, "/dev/zero: larger than 1048576 bytes");
}
END_TEST

START_TEST(long_path_loses_its_head_not_the_sentence)
{
    char path[400];

    memset(path, 'd', sizeof path);
    (void)snprintf(path + 300, 100, "/holdfast.yaml");
    ck_assert_int_eq(hf_config_read_text(&cfg, path, "colour: x\n", 10, &err), HF_EINVAL);
    ck_assert_str_eq(err.text, "...dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd"
                               "dddddd/holdfast.yaml:1:9: colour: must be red, green or blue, "
                               "not \"x\"");
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
    ck_assert(option->reloadable);
    option = hf_config_next_change(&before, &cfg, &cursor);
    ck_assert_str_eq(option->key, "labels");
    ck_assert(!option->reloadable);
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
    Suite *s = suite_create("schema/config");
    TCase *t = tcase_create("config");
    TCase *bare = tcase_create("memory");

    if (glob(DIR "invalid/*.yaml", 0, NULL, &invalid) != 0)
        return EXIT_FAILURE;
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
    tcase_add_loop_test(t, yaml_json_and_dotted_keys_say_the_same, 0, COUNT_OF(FULL));
    tcase_add_loop_test(t, file_may_be_empty, 0, COUNT_OF(EMPTY));
    tcase_add_loop_test(t, invalid_file_is_explained, 0, (int)invalid.gl_pathc);
    tcase_add_test(t, limits_are_enforced);
    tcase_add_test(t, file_is_read_from_disk);
    tcase_add_test(t, unreadable_file_is_explained);
    tcase_add_test(t, long_path_loses_its_head_not_the_sentence);
    tcase_add_test(t, dump_says_where_each_value_came_from);
    tcase_add_test(t, dump_is_a_file_with_the_same_values);
    tcase_add_test(t, reload_sees_what_changed);
    tcase_add_test(t, secret_is_not_repeated_in_an_error);
    tcase_add_test(t, help_fits_the_screen);
    tcase_add_test(t, reference_has_every_option);
    tcase_add_test(t, done_accepts_zero_and_null);
    suite_add_tcase(s, t);
    tcase_add_test(bare, lack_of_memory_is_reported_wherever_it_strikes);
    suite_add_tcase(s, bare);

    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    globfree(&invalid);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
