#include <check.h>
#include <string.h>

#include "schema/options.h"
#include "support/chaos.h"
#include "support/suite.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static const char FILE_GIVEN[] =
    "HOLDFAST_CONFIG=" HOLDFAST_SOURCE_DIR "/tests/unit/config/common.yaml";

struct settings {
    struct hf_options common;
    hf_ms ttl;
};

static const struct hf_option TABLE[] = {
    { .key = "ttl",
      .flag = "ttl",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, ttl),
      .min = 2000,
      .max = 600000,
      .preset = "15s",
      .help = "How long a registration lives." },
};

static struct settings settings;
static struct hf_config cfg;
static struct hf_error err;

/* What main() gets, from literals. */
#define WORDS(...) ((char *const *)(const char *[]){ __VA_ARGS__, NULL })

static int load(char *const *argv, char *const *env)
{
    const struct hf_option_group groups[] = {
        { .title = "Options of prog",
          .options = TABLE,
          .count = COUNT_OF(TABLE),
          .target = &settings },
        hf_options_group(&settings.common),
    };
    int argc = 0;
    int rc;

    while (argv[argc] != NULL)
        argc++;
    rc = hf_config_init(&cfg, groups, COUNT_OF(groups));
    if (rc < 0)
        return rc;
    return hf_options_load(&cfg, &settings.common, argc, argv, env, &err);
}

static void teardown(void)
{
    hf_config_done(&cfg);
}

START_TEST(nothing_given_means_a_local_etcd)
{
    ck_assert_int_eq(load(WORDS("prog"), WORDS("PATH=/bin")), HF_OK);
    ck_assert_uint_eq(settings.common.endpoints.count, 1);
    ck_assert_str_eq(settings.common.endpoints.items[0], "127.0.0.1:2379");
    ck_assert(!settings.common.discover);
    ck_assert_str_eq(settings.common.namespace, "default");
    ck_assert_int_eq(settings.common.log_level, HF_LOG_LEVEL_INFO);
    ck_assert_int_eq(settings.common.log_format, HF_LOG_LOGFMT);
    ck_assert_ptr_null(settings.common.user);
    ck_assert_int_eq(settings.ttl, 15000);
}
END_TEST

/* The words of the table and the enums of the log must not drift apart. */
START_TEST(words_of_the_log_mean_what_the_log_takes_them_for)
{
    static const char *const levels[] = { "debug", "info", "warn", "error" };
    static const char *const formats[] = { "logfmt", "json" };
    enum hf_log_level level;
    enum hf_log_format format;

    ck_assert_int_eq(hf_parse_log_level(levels[_i], &level), HF_OK);
    ck_assert_int_eq(hf_parse_log_format(formats[_i % 2], &format), HF_OK);
    ck_assert_int_eq(
        load(WORDS("prog", "--log-level", levels[_i], "--log-format", formats[_i % 2]),
             WORDS("A=b")),
        HF_OK);
    ck_assert_int_eq(settings.common.log_level, level);
    ck_assert_int_eq(settings.common.log_format, format);
}
END_TEST

START_TEST(every_flag_has_its_variable)
{
    ck_assert_msg(
        load(WORDS("prog"),
             WORDS("HOLDFAST_ENDPOINTS=https://a:1,https://b:2", "HOLDFAST_DISCOVER=true",
                   "HOLDFAST_CACERT=ca.pem", "HOLDFAST_CERT=c.pem", "HOLDFAST_KEY=k.pem",
                   "HOLDFAST_USER=u", "HOLDFAST_PASSWORD_FILE=p", "HOLDFAST_NAMESPACE=n",
                   FILE_GIVEN, "ETCDCTL_USER=root:secret")) == HF_OK,
        "%s", err.text);
    ck_assert_str_eq(settings.common.endpoints.items[1], "https://b:2");
    ck_assert(settings.common.discover);
    ck_assert_str_eq(settings.common.cacert, "ca.pem");
    ck_assert_str_eq(settings.common.cert, "c.pem");
    ck_assert_str_eq(settings.common.key, "k.pem");
    ck_assert_str_eq(settings.common.user, "u");
    ck_assert_str_eq(settings.common.password_file, "p");
    ck_assert_str_eq(settings.common.namespace, "n");
    ck_assert_int_eq(settings.common.log_level, HF_LOG_LEVEL_DEBUG); /* of the file */
    ck_assert_int_eq(settings.ttl, 20000);
}
END_TEST

START_TEST(members_are_discovered_when_a_flag_or_the_file_says_so)
{
    ck_assert_int_eq(load(WORDS("prog", "--discover"), WORDS("A=b")), HF_OK);
    ck_assert(settings.common.discover);
    hf_config_done(&cfg);
    ck_assert_int_eq(load(WORDS("prog", "--no-discover"), WORDS("HOLDFAST_DISCOVER=true")),
                     HF_OK);
    ck_assert(!settings.common.discover);
    ck_assert_int_eq(hf_config_read_text(&cfg, "f", "etcd: {discover: true}", 22, &err), HF_OK);
    ck_assert(!settings.common.discover); /* a flag is stronger than a file */
}
END_TEST

START_TEST(variables_of_etcdctl_are_the_fallback)
{
    ck_assert_msg(load(WORDS("prog", "--password-file", "p"),
                       WORDS("ETCDCTL_ENDPOINTS=https://c:3", "ETCDCTL_CACERT=ca.pem",
                             "ETCDCTL_CERT=c.pem", "ETCDCTL_KEY=k.pem", "ETCDCTL_USER=u")) ==
                      HF_OK,
                  "%s", err.text);
    ck_assert_str_eq(settings.common.endpoints.items[0], "https://c:3");
    ck_assert_str_eq(settings.common.cacert, "ca.pem");
    ck_assert_str_eq(settings.common.cert, "c.pem");
    ck_assert_str_eq(settings.common.key, "k.pem");
    ck_assert_str_eq(settings.common.user, "u");
}
END_TEST

START_TEST(help_and_version_work_whatever_else_is_wrong)
{
    ck_assert_int_eq(load(WORDS("prog", _i == 0 ? "-h" : "--version", "--config=/nonexistent"),
                          WORDS("HOLDFAST_LOG_LEVEL=loud")),
                     HF_OK);
    ck_assert(_i == 0 ? settings.common.help : settings.common.version);
}
END_TEST

START_TEST(file_that_was_asked_for_must_be_there)
{
    ck_assert_int_eq(load(WORDS("prog", "--config=/nonexistent"), WORDS("A=b")), HF_ENOENT);
    ck_assert_str_eq(err.text, "/nonexistent: cannot be read: No such file or directory");
}
END_TEST

static const struct {
    const char *argv[6];
    const char *want; /* NULL: fine */
} CHECKS[] = {
    { { "p", "--endpoints=https://a" }, NULL },
    { { "p", "--endpoints=a,http://b" }, NULL },
    { { "p", "--endpoints=https://a", "--cert=c", "--key=k" }, NULL },
    { { "p", "--endpoints=https://a", "--cert=c" },
      "etcd.cert is set without etcd.key: name the file with its private key (--key)" },
    { { "p", "--endpoints=https://a", "--key=c" },
      "etcd.key is set without etcd.cert: name the file with its certificate (--cert)" },
    { { "p", "--endpoints=http://a", "--cacert=c" }, NULL },
    { { "p", "--cacert=c" },
      "etcd.cacert is set, but etcd.endpoints does not say whether to "
      "encrypt: write https:// (or http://) before each" },
    { { "p", "--endpoints=http://a,b", "--cert=c", "--key=k" },
      "etcd.cert is set, but etcd.endpoints does not say whether to encrypt: write https:// "
      "(or "
      "http://) before each" },
    { { "p", "--user=u", "--password-file=f" }, NULL },
    { { "p", "--user=u" },
      "etcd.user is set without etcd.password_file: name the file with the "
      "password (--password-file)" },
    { { "p", "--user=u:pw", "--password-file=f" },
      "etcd.user must not contain a password: put it into a file and name that "
      "(--password-file)" },
    { { "p", "--password-file=f" },
      "etcd.password_file is set without etcd.user: say whose password it is (--user)" },
    { { "p", "--endpoints=https://a,b" },
      "etcd.endpoints: some are https and some are not: write https:// before all of them or "
      "before none" },
};

START_TEST(contradictions_are_explained)
{
    int want = CHECKS[_i].want != NULL ? HF_EINVAL : HF_OK;

    ck_assert_int_eq(load((char *const *)CHECKS[_i].argv, WORDS("A=b")), want);
    if (want < 0)
        ck_assert_str_eq(err.text, CHECKS[_i].want);
}
END_TEST

static int load_all(void *arg)
{
    int rc = load(WORDS("prog", "x", "--endpoints=https://a,https://b"),
                  WORDS(FILE_GIVEN, "HOLDFAST_PASSWORD_FILE=p"));

    (void)arg;
    hf_config_done(&cfg);
    return rc;
}

START_TEST(lack_of_memory_is_reported_wherever_it_strikes)
{
    ck_assert_uint_gt(hft_chaos_run(load_all, NULL), 10);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("options");

    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, nothing_given_means_a_local_etcd);
    tcase_add_loop_test(t, words_of_the_log_mean_what_the_log_takes_them_for, 0, 4);
    tcase_add_test(t, every_flag_has_its_variable);
    tcase_add_test(t, members_are_discovered_when_a_flag_or_the_file_says_so);
    tcase_add_test(t, variables_of_etcdctl_are_the_fallback);
    tcase_add_loop_test(t, help_and_version_work_whatever_else_is_wrong, 0, 2);
    tcase_add_test(t, file_that_was_asked_for_must_be_there);
    tcase_add_loop_test(t, contradictions_are_explained, 0, COUNT_OF(CHECKS));
    tcase_add_test(t, lack_of_memory_is_reported_wherever_it_strikes);
    return hft_suite_run("schema/options", t, NULL);
}
