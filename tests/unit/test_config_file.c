/* What stands in a configuration file, and what must not. */
#include <glob.h>
#include <stdlib.h>

#include "support/suite.h"
#include "unit/config_fixture.h"

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
    ck_assert_str_eq(err.text, "f.yaml:1:8202: labels: may have 4096 items at most");
    hf_buf_clear(&wide);
    repeat(&wide, "a,", HF_CONFIG_LIST_MAX);
    hf_buf_puts(&wide, "a");
    ck_assert_int_eq(ARGS("--labels", wide.data), HF_ELIMIT);
    ck_assert_str_eq(err.text, "--labels: may have 4096 items at most");
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

int main(void)
{
    TCase *t = tcase_create("file");
    int status;

    if (glob(DIR "invalid/*.yaml", 0, NULL, &invalid) != 0)
        return EXIT_FAILURE;
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, yaml_json_and_dotted_keys_say_the_same, 0, COUNT_OF(FULL));
    tcase_add_loop_test(t, file_may_be_empty, 0, COUNT_OF(EMPTY));
    tcase_add_loop_test(t, invalid_file_is_explained, 0, (int)invalid.gl_pathc);
    tcase_add_test(t, limits_are_enforced);
    tcase_add_test(t, file_is_read_from_disk);
    tcase_add_test(t, unreadable_file_is_explained);
    tcase_add_test(t, long_path_loses_its_head_not_the_sentence);
    status = hft_suite_run("schema/config: files", t, NULL);
    globfree(&invalid);
    return status;
}
