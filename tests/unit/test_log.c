#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "support/suite.h"

#define LINE_BYTES 4096
#define COUNT(a)   (sizeof(a) / sizeof(a)[0])

static int reader = -1;
static int writer = -1;

/* Logs go into a pipe, which is read back without waiting. */
static void open_log(enum hf_log_level level, enum hf_log_format format)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    reader = fds[0];
    writer = fds[1];
    ck_assert_int_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
    hf_log_setup(writer, level, format);
    hf_log_identity(NULL, 0);
}

/* One read is one write, as long as there is only one line in the pipe. "" when there is none.
 */
static const char *read_line(void)
{
    static char line[2 * LINE_BYTES];
    ssize_t n = read(reader, line, sizeof line - 1);

    if (n < 0)
        ck_assert_int_eq(errno, EAGAIN);
    line[n > 0 ? n : 0] = '\0';
    return line;
}

/* What follows the time stamp of a logfmt line. */
static const char *read_rest(void)
{
    const char *line = read_line();
    const char *space = strchr(line, ' ');

    ck_assert_msg(strncmp(line, "time=", 5) == 0 && space != NULL, "no time in: %s", line);
    return space + 1;
}

START_TEST(a_line_has_time_level_event_and_fields)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    HF_LOG_INFO("joined", HF_STR("agent", "a1"), HF_INT("pid", 17), HF_UINT("rev", 9),
                HF_BOOL("new", true), HF_BOOL("old", false));
    ck_assert_str_eq(read_rest(),
                     "level=info event=joined agent=a1 pid=17 rev=9 new=true old=false\n");
}
END_TEST

START_TEST(the_same_line_in_json)
{
    const char *line;
    const char *comma;

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    HF_LOG_WARN("joined", HF_STR("agent", "a1"), HF_INT("pid", -17), HF_UINT("rev", 9),
                HF_BOOL("new", true), HF_BOOL("old", false));
    line = read_line();
    comma = strchr(line, ',');
    ck_assert(strncmp(line, "{\"time\":\"", 9) == 0 && comma != NULL);
    ck_assert_str_eq(comma,
                     ",\"level\":\"warn\",\"event\":\"joined\",\"agent\":\"a1\",\"pid\":-17,"
                     "\"rev\":9,\"new\":true,\"old\":false}\n");
}
END_TEST

START_TEST(a_line_needs_no_field)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    hf_log_write(HF_LOG_LEVEL_ERROR, NULL, "bare", NULL, 0);
    ck_assert_str_eq(read_rest(), "level=error event=bare\n");
}
END_TEST

START_TEST(extreme_numbers_are_written_in_full)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    HF_LOG_INFO("n", HF_INT("a", INT64_MIN), HF_INT("b", INT64_MAX), HF_UINT("c", UINT64_MAX));
    ck_assert_str_eq(read_rest(), "level=info event=n a=-9223372036854775808 "
                                  "b=9223372036854775807 c=18446744073709551615\n");
}
END_TEST

/* Milliseconds are always there, so that lines sort as text. */
START_TEST(the_time_is_now_and_has_milliseconds)
{
    char text[32] = "";
    hf_ms before = hf_clock_wall();
    hf_ms wall = 0;

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    HF_LOG_INFO("tick", HF_INT("n", 1));
    ck_assert_int_eq(sscanf(read_line(), "time=%31s", text), 1);
    ck_assert_uint_eq(strlen(text), strlen("2026-01-31T08:15:30.123Z"));
    ck_assert_int_eq(hf_parse_time(text, &wall), HF_OK);
    ck_assert_int_ge(wall, before);
    ck_assert_int_le(wall, hf_clock_wall());
}
END_TEST

START_TEST(only_lines_of_the_level_and_above_are_written)
{
    open_log((enum hf_log_level)_i, HF_LOG_LOGFMT);
    for (int level = HF_LOG_LEVEL_DEBUG; level <= HF_LOG_LEVEL_ERROR; level++) {
        hf_log_write((enum hf_log_level)level, NULL, "e", NULL, 0);
        ck_assert_int_eq(hf_log_enabled((enum hf_log_level)level), level >= _i);
        ck_assert_int_eq(read_line()[0] != '\0', level >= _i);
    }
}
END_TEST

START_TEST(a_line_that_is_not_enabled_evaluates_nothing)
{
    int evaluated = 0;

    open_log(HF_LOG_LEVEL_WARN, HF_LOG_LOGFMT);
    HF_LOG_DEBUG("d", HF_INT("n", ++evaluated));
    HF_LOG_INFO("i", HF_INT("n", ++evaluated));
    ck_assert_int_eq(evaluated, 0);
    HF_LOG_ERROR("e", HF_INT("n", ++evaluated));
    ck_assert_int_eq(evaluated, 1);
}
END_TEST

static const struct {
    const char *value;
    const char *logfmt;
    const char *json;
} VALUES[] = {
    { "plain", "plain", "\"plain\"" },
    { NULL, "\"\"", "\"\"" },
    { "", "\"\"", "\"\"" },
    { "two words", "\"two words\"", "\"two words\"" },
    { "a=b", "\"a=b\"", "\"a=b\"" },
    { "say \"hi\"", "\"say \\\"hi\\\"\"", "\"say \\\"hi\\\"\"" },
    { "back\\slash", "\"back\\\\slash\"", "\"back\\\\slash\"" },
    { "a\nlevel=error", "\"a\\nlevel=error\"", "\"a\\nlevel=error\"" },
    { "tab\there\r", "\"tab\\there\\r\"", "\"tab\\there\\r\"" },
    { "\x1b[31mred", "\"\\u001b[31mred\"", "\"\\u001b[31mred\"" },
    { "\x01\x1f", "\"\\u0001\\u001f\"", "\"\\u0001\\u001f\"" },
    { "del\x7f", "\"del\\u007f\"", "\"del\\u007f\"" },
    { "c1\xc2\x9b!", "\"c1\\u009b!\"", "\"c1\\u009b!\"" },
    { "nbsp\xc2\xa0", "nbsp\xc2\xa0", "\"nbsp\xc2\xa0\"" },
    { "/a/b-c_d.e:f,g@h", "/a/b-c_d.e:f,g@h", "\"/a/b-c_d.e:f,g@h\"" },
    { "{}[]'", "{}[]'", "\"{}[]'\"" },
    { "gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82", "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82\"",
      "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x99\x82\"" },
    { "\xe2\x82\xac", "\xe2\x82\xac", "\"\xe2\x82\xac\"" },
    /* Not UTF-8: each byte becomes U+FFFD, what follows it stays. */
    { "a\xff"
      "b",
      "\"a\xef\xbf\xbd"
      "b\"",
      "\"a\xef\xbf\xbd"
      "b\"" },
    { "\xc3", "\"\xef\xbf\xbd\"", "\"\xef\xbf\xbd\"" },
    { "\xe2\x82", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"", "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
    { "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
      "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
};

START_TEST(logfmt_values_are_quoted_where_they_have_to_be)
{
    char want[128];

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    HF_LOG_INFO("e", HF_STR("v", VALUES[_i].value), HF_INT("after", 1));
    (void)snprintf(want, sizeof want, "level=info event=e v=%s after=1\n", VALUES[_i].logfmt);
    ck_assert_str_eq(read_rest(), want);
}
END_TEST

START_TEST(json_values_are_escaped)
{
    char want[128];

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    HF_LOG_INFO("e", HF_STR("v", VALUES[_i].value), HF_INT("after", 1));
    (void)snprintf(want, sizeof want, "\"event\":\"e\",\"v\":%s,\"after\":1}\n",
                   VALUES[_i].json);
    ck_assert_str_eq(strstr(read_line(), "\"event\""), want);
}
END_TEST

/* A JSON parser that is not ours reads back every text of one or two bytes, and every line is
 * one line. */
START_TEST(any_two_bytes_make_one_valid_json_line)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    for (int first = 1; first < 256; first++) {
        for (int second = 0; second < 256; second += 3) {
            const char text[3] = { (char)first, (char)second, '\0' };
            const char *line;
            const char *got;
            json_t *json;

            HF_LOG_INFO("e", HF_STR("v", text));
            line = read_line();
            ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
            json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
            ck_assert_msg(json != NULL, "not JSON: %s", line);
            got = json_string_value(json_object_get(json, "v"));
            if (hf_str_is_utf8(text, strlen(text)))
                ck_assert_str_eq(got, text);
            else
                ck_assert_ptr_nonnull(strstr(got, "\xef\xbf\xbd"));
            json_decref(json);
        }
    }
}
END_TEST

START_TEST(identity_is_in_every_line_and_can_be_replaced)
{
    char host[] = "h1";
    const struct hf_log_field first[] = { HF_STR("host", host), HF_UINT("inc", 3) };
    const struct hf_log_field second[] = { HF_STR("agent", NULL), HF_BOOL("leader", true) };

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    hf_log_identity(first, COUNT(first));
    host[1] = '9'; /* it was copied */
    HF_LOG_INFO("e", HF_INT("n", 1));
    ck_assert_str_eq(read_rest(), "level=info event=e host=h1 inc=3 n=1\n");

    hf_log_identity(second, COUNT(second));
    HF_LOG_INFO("e", HF_INT("n", 2));
    ck_assert_str_eq(read_rest(), "level=info event=e agent=\"\" leader=true n=2\n");

    hf_log_identity(NULL, 0);
    HF_LOG_INFO("e", HF_INT("n", 3));
    ck_assert_str_eq(read_rest(), "level=info event=e n=3\n");
}
END_TEST

START_TEST(identity_takes_eight_fields)
{
    struct hf_log_field fields[10];
    char keys[10][4];

    for (int i = 0; i < 10; i++) {
        (void)snprintf(keys[i], sizeof keys[i], "k%d", i);
        fields[i] = HF_INT(keys[i], i);
    }
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    hf_log_identity(fields, COUNT(fields));
    hf_log_write(HF_LOG_LEVEL_INFO, NULL, "e", NULL, 0);
    ck_assert_str_eq(read_rest(),
                     "level=info event=e k0=0 k1=1 k2=2 k3=3 k4=4 k5=5 k6=6 k7=7\n");
}
END_TEST

/* Cut to 64 bytes, or to 63 where the 64th is the first half of a character. */
START_TEST(identity_is_cut_between_characters)
{
    char value[67];
    char want[128];
    int len = _i == 0 ? 64 : 63;

    memset(value, 'x', 66);
    value[66] = '\0';
    if (_i == 1)
        memcpy(value + 63, "\xc3\xbc", 2);
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    hf_log_identity(&HF_STR("host", value), 1);
    hf_log_write(HF_LOG_LEVEL_INFO, NULL, "e", NULL, 0);
    (void)snprintf(want, sizeof want, "level=info event=e host=%.*s\n", len, value);
    ck_assert_str_eq(read_rest(), want);
}
END_TEST

/* Logs one text of `len` times `c` between two other fields; returns the line. */
static const char *log_long(size_t len, char c)
{
    char *text = malloc(len + 1);
    const char *line;

    ck_assert_ptr_nonnull(text);
    memset(text, c, len);
    text[len] = '\0';
    HF_LOG_INFO("e", HF_INT("before", 1), HF_STR("v", text), HF_INT("after", 2));
    free(text);
    line = read_line();
    ck_assert_uint_le(strlen(line), LINE_BYTES);
    return line;
}

/* Every length around the limit: a line is whole, or it is cut, marked and nearly full. */
START_TEST(a_long_line_is_cut_and_says_so)
{
    const char c = _i == 0 ? 'x' : ' '; /* bare and quoted */

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    for (size_t len = LINE_BYTES - 200; len < LINE_BYTES + 200; len++) {
        const char *line = log_long(len, c);
        const char *end = strrchr(line, ' ');

        if (strcmp(end, " after=2\n") == 0) {
            ck_assert_ptr_null(strstr(line, "cut="));
            ck_assert_uint_gt(strlen(line), len);
        } else {
            ck_assert_str_eq(end, " cut=true\n");
            ck_assert_uint_gt(strlen(line), LINE_BYTES - 100);
            ck_assert_ptr_nonnull(strstr(line, "before=1 v="));
            ck_assert_ptr_null(strstr(line, "after"));
        }
    }
    ck_assert_ptr_nonnull(strstr(log_long(LINE_BYTES - 200, c), "after=2"));
    ck_assert_ptr_nonnull(strstr(log_long(LINE_BYTES, c), "cut=true"));
}
END_TEST

static const char FILLERS[] = { 'x', '"', '\x01', '\xff' };

START_TEST(a_cut_json_line_is_still_json)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    for (size_t len = 500; len < LINE_BYTES + 50; len += 7) { /* 7: all remainders of 2, 3, 6 */
        const char *line = log_long(len, FILLERS[_i]);
        json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

        ck_assert_msg(json != NULL, "not JSON: %s", line);
        ck_assert_int_eq(json_is_true(json_object_get(json, "cut")),
                         json_object_get(json, "after") == NULL);
        json_decref(json);
    }
    ck_assert_ptr_nonnull(strstr(log_long(LINE_BYTES, FILLERS[_i]), ",\"cut\":true}\n"));
}
END_TEST

/* Many small fields: the line ends after a whole one, whatever its type. */
START_TEST(fields_that_do_not_fit_are_left_out_whole)
{
    static struct hf_log_field fields[600];
    json_t *json;
    const char *line;

    for (size_t i = 0; i < COUNT(fields); i++)
        fields[i] = i % 3 == 0   ? HF_INT("int", 1234567)
                    : i % 3 == 1 ? HF_BOOL("flag", true)
                                 : HF_STR("text", "word");
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    for (size_t skip = 0; skip < 40; skip++) {
        char event[64] = "";

        memset(event, 'e', skip);
        hf_log_write(HF_LOG_LEVEL_INFO, NULL, event, fields, COUNT(fields));
        line = read_line();
        ck_assert_uint_le(strlen(line), LINE_BYTES);
        json = json_loads(line, 0, NULL);
        ck_assert_msg(json != NULL, "not JSON: %s", line);
        ck_assert(json_is_true(json_object_get(json, "cut")));
        ck_assert_int_eq(json_integer_value(json_object_get(json, "int")), 1234567);
        json_decref(json);
    }
}
END_TEST

START_TEST(levels_and_formats_have_names)
{
    enum hf_log_level level = HF_LOG_LEVEL_ERROR;
    enum hf_log_format format = HF_LOG_JSON;

    ck_assert_int_eq(hf_parse_log_level("debug", &level), HF_OK);
    ck_assert_int_eq(level, HF_LOG_LEVEL_DEBUG);
    ck_assert_int_eq(hf_parse_log_level("info", &level), HF_OK);
    ck_assert_int_eq(level, HF_LOG_LEVEL_INFO);
    ck_assert_int_eq(hf_parse_log_level("error", &level), HF_OK);
    ck_assert_int_eq(level, HF_LOG_LEVEL_ERROR);
    ck_assert_int_eq(hf_parse_log_level("warn", &level), HF_OK);
    ck_assert_int_eq(level, HF_LOG_LEVEL_WARN);
    ck_assert_int_eq(hf_parse_log_format("logfmt", &format), HF_OK);
    ck_assert_int_eq(format, HF_LOG_LOGFMT);
    ck_assert_int_eq(hf_parse_log_format("json", &format), HF_OK);
    ck_assert_int_eq(format, HF_LOG_JSON);
}
END_TEST

static const char *const NO_NAMES[] = { "", "INFO", "warning", " info", "info ", "3", "text" };

START_TEST(other_names_are_refused)
{
    enum hf_log_level level = HF_LOG_LEVEL_WARN;
    enum hf_log_format format = HF_LOG_JSON;

    ck_assert_int_eq(hf_parse_log_level(NO_NAMES[_i], &level), HF_EINVAL);
    ck_assert_int_eq(level, HF_LOG_LEVEL_WARN);
    ck_assert_int_eq(hf_parse_log_format(NO_NAMES[_i], &format), HF_EINVAL);
    ck_assert_int_eq(format, HF_LOG_JSON);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("log");

    tcase_add_test(t, a_line_has_time_level_event_and_fields);
    tcase_add_test(t, the_same_line_in_json);
    tcase_add_test(t, a_line_needs_no_field);
    tcase_add_test(t, extreme_numbers_are_written_in_full);
    tcase_add_test(t, the_time_is_now_and_has_milliseconds);
    tcase_add_loop_test(t, only_lines_of_the_level_and_above_are_written, 0, 4);
    tcase_add_test(t, a_line_that_is_not_enabled_evaluates_nothing);
    tcase_add_loop_test(t, logfmt_values_are_quoted_where_they_have_to_be, 0, COUNT(VALUES));
    tcase_add_loop_test(t, json_values_are_escaped, 0, COUNT(VALUES));
    tcase_add_test(t, any_two_bytes_make_one_valid_json_line);
    tcase_add_test(t, identity_is_in_every_line_and_can_be_replaced);
    tcase_add_test(t, identity_takes_eight_fields);
    tcase_add_loop_test(t, identity_is_cut_between_characters, 0, 2);
    tcase_add_loop_test(t, a_long_line_is_cut_and_says_so, 0, 2);
    tcase_add_loop_test(t, a_cut_json_line_is_still_json, 0, COUNT(FILLERS));
    tcase_add_test(t, fields_that_do_not_fit_are_left_out_whole);
    tcase_add_test(t, levels_and_formats_have_names);
    tcase_add_loop_test(t, other_names_are_refused, 0, COUNT(NO_NAMES));
    tcase_set_timeout(t, 60);
    return hft_suite_run("base/log", t, NULL);
}
