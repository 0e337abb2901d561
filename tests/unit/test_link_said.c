/* What an agent says of itself, and what adds up of it. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "agentd/link/said.h"
#include "schema/json.h"
#include "unit/suite.h"

static struct link_said said;
static struct hf_error err;

static void setup(void)
{
    said = (struct link_said){ 0 };
    err = (struct hf_error){ "" };
}

static int beat(const char *json)
{
    ProtobufCMessage *message;
    int rc;

    ck_assert_int_eq(hf_json_decode(&holdfast__v1__heartbeat__descriptor, json, strlen(json),
                                    NULL, &message, &err),
                     HF_OK);
    rc = link_said_take_heartbeat(&said, (const Holdfast__V1__Heartbeat *)message, &err);
    hf_json_free(message);
    return rc;
}

static int state(const char *json)
{
    ProtobufCMessage *message;
    int rc;

    ck_assert_int_eq(hf_json_decode(&holdfast__v1__state_request__descriptor, json,
                                    strlen(json), NULL, &message, &err),
                     HF_OK);
    rc = link_said_take_state(&said, (const Holdfast__V1__StateRequest *)message, &err);
    hf_json_free(message);
    return rc;
}

/* The report, as it would be written. */
static void expect(const char *part)
{
    struct link_said_report report;
    struct hf_buf text = { 0 };

    link_said_fill(&said, &report);
    ck_assert_int_eq(hf_json_encode(&report.record.base, &text), HF_OK);
    ck_assert_msg(strstr(text.data, part) != NULL, "%s", text.data);
    hf_buf_done(&text);
}

START_TEST(what_only_says_that_it_lives_is_told_from_what_says_more)
{
    ck_assert_int_eq(beat("{\"tokens\":-1}"), HF_EINVAL);
    ck_assert(!said.beats && !said.speaks);
    ck_assert_int_eq(beat("{}"), HF_OK); /* whoever took it knows whether that was promised */
    ck_assert(!said.beats && !said.speaks);
    ck_assert(link_said_take_notice(&said, "STATUS=thinking"));
    ck_assert(!said.beats && !said.speaks);
    ck_assert(link_said_take_notice(&said, "WATCHDOG=1"));
    ck_assert(said.beats && !said.speaks);
    said.beats = false;
    ck_assert_int_eq(state("{\"state\":\"ready\"}"), HF_OK);
    ck_assert(!said.beats && said.speaks);
}
END_TEST

START_TEST(what_is_left_out_stays_as_it_was)
{
    ck_assert_int_eq(
        beat("{\"status\":\"busy\",\"phase\":\"drafting\",\"lastTool\":\"grep\","
             "\"tokens\":\"17\",\"errors\":\"2\",\"progress\":40,\"task\":\"t1\"}"),
        HF_OK);
    ck_assert_int_eq(beat("{\"tokens\":\"18\",\"sequence\":\"3\"}"), HF_OK);
    expect("\"phase\":\"drafting\"");
    expect("\"status\":\"busy\"");
    expect("\"lastTool\":\"grep\"");
    expect("\"task\":\"t1\"");
    expect("\"counters\":{\"errors\":\"2\",\"sequence\":\"3\",\"tokens\":\"18\"}");
    expect("\"percent\":40");
}
END_TEST

START_TEST(nothing_was_said)
{
    expect("\"counters\":{}");
    expect("\"state\":\"unknown\"");
}
END_TEST

START_TEST(a_state_has_an_end_and_a_reason_until_the_next)
{
    ck_assert_int_eq(state("{\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\","
                           "\"reason\":\"rate limit\"}"),
                     HF_OK);
    expect("\"state\":\"parked\"");
    expect("\"until\":\"2031-01-01T00:00:00Z\"");
    expect("\"reason\":\"rate limit\"");
    ck_assert_int_eq(state("{\"state\":\"ready\"}"), HF_OK);
    expect("\"reason\":\"\"");
    ck_assert(!said.has_until);
}
END_TEST

START_TEST(a_turn_has_no_reason_of_the_state_before)
{
    ck_assert_int_eq(state("{\"state\":\"parked\",\"reason\":\"rate limit\"}"), HF_OK);
    ck_assert(link_said_take_notice(&said, _i == 0 ? "READY=1" : "STOPPING=1"));
    expect("\"reason\":\"\"");
}
END_TEST

/* At 1,000,000 s of the wall clock. */
static const struct {
    const char *json;
    int64_t length_s, until_s; /* 0: it has none */
} ENDS[] = {
    { "{\"state\":\"ready\"}", 0, 0 },
    { "{\"state\":\"busy\"}", 600, 1000600 },
    { "{\"state\":\"draining\"}", 600, 1000600 },
    { "{\"state\":\"parked\"}", 3600, 1003600 },
    { "{\"state\":\"waiting\"}", 86400, 1086400 },
    { "{\"state\":\"busy\",\"until\":\"1970-01-12T13:47:00Z\"}", 20, 1000020 },
    { "{\"state\":\"busy\",\"until\":\"1970-01-01T00:00:01Z\"}", 0, 1 },
    { "{\"state\":\"waiting\",\"until\":\"2031-01-01T00:00:00Z\"}", 604800, 1604800 },
    { "{\"state\":\"parked\",\"until\":\"9999-12-31T00:00:00Z\"}", 604800, 1604800 },
};

START_TEST(a_state_that_explains_silence_has_an_end_within_a_week)
{
    ck_assert_int_eq(state(ENDS[_i].json), HF_OK);
    ck_assert_int_eq(link_said_settle(&said, 1000000000), ENDS[_i].length_s * 1000);
    ck_assert_int_eq(said.has_until ? said.until_s : 0, ENDS[_i].until_s);
    ck_assert_int_eq(link_said_settle(&said, 1000000000), ENDS[_i].length_s * 1000);
}
END_TEST

/* Also when the next link settles it within the same second. */
START_TEST(an_end_stays_where_it_is)
{
    ck_assert_int_eq(state("{\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\"}"), HF_OK);
    ck_assert_int_eq(link_said_settle(&said, 1000000024), 604800000);
    ck_assert_int_eq(link_said_settle(&said, 1000000955), 604800000 - 931);
    ck_assert_int_eq(said.until_s, 1604800);
    ck_assert_int_eq(said.until_ns, 24000000);
}
END_TEST

static const struct {
    const char *json, *sentence;
} BEATS[] = {
    { "{\"phase\":\"next\",\"tokens\":\"-1\"}", "tokens, errors, sequence: none is below 0" },
    { "{\"phase\":\"next\",\"progress\":100.5}", "progress: a percentage, 0 to 100" },
    { "{\"phase\":\"next\",\"progress\":\"NaN\"}", "progress: a percentage, 0 to 100" },
    { "{\"phase\":\"next\",\"task\":\"T 1\"}", "task" },
};

/* Nothing of what makes no sense is taken, not even what stands before the mistake. */
START_TEST(a_mistake_changes_nothing)
{
    ck_assert_int_eq(beat("{\"phase\":\"drafting\"}"), HF_OK);
    ck_assert_int_eq(beat(BEATS[_i].json), HF_EINVAL);
    ck_assert_msg(strstr(err.text, BEATS[_i].sentence) != NULL, "%s", err.text);
    expect("\"phase\":\"drafting\"");
}
END_TEST

START_TEST(a_text_that_is_too_long_is_not_cut)
{
    char json[LINK_SAID_TEXT + 64];

    (void)snprintf(json, sizeof json, "{\"phase\":\"%0*d\"}", LINK_SAID_TEXT, 0);
    ck_assert_int_eq(beat(json), HF_EINVAL);
    ck_assert_str_eq(err.text, "phase: at most 255 bytes");
    (void)snprintf(json, sizeof json, "{\"phase\":\"%0*d\"}", LINK_SAID_TEXT - 1, 0);
    ck_assert_int_eq(beat(json), HF_OK);
    ck_assert_uint_eq(strlen(said.phase), LINK_SAID_TEXT - 1);
}
END_TEST

START_TEST(a_state_must_be_one)
{
    ck_assert_int_eq(state("{\"state\":\"busy\"}"), HF_OK);
    ck_assert_int_eq(state("{\"reason\":\"none\"}"), HF_EINVAL);
    ck_assert_str_eq(err.text, "state: one of ready, busy, waiting, parked, draining");
    ck_assert_int_eq(state("{\"state\":99}"), HF_EINVAL);
    ck_assert_int_eq(beat("{\"status\":99}"), HF_EINVAL);
    ck_assert_str_eq(err.text, "status: one of healthy, busy, degraded");
    expect("\"state\":\"busy\"");
}
END_TEST

static const struct {
    const char *text;
    bool taken;
    const char *part;
} NOTICES[] = {
    { "READY=1", true, "\"state\":\"ready\"" },
    { "READY=1\nSTATUS=half way\nMAINPID=17\n", true, "\"phase\":\"half way\"" },
    { "STOPPING=1\n", true, "\"state\":\"draining\"" },
    { "WATCHDOG=1", true, "\"state\":\"busy\"" },
    { "STATUS=\xc3", true, "\"phase\":\"\"" },
    { "STATUS=", true, "\"phase\":\"\"" },
    { "READY=0", false, "\"state\":\"busy\"" },
    { "READY=1 and more", false, "\"state\":\"busy\"" },
    { "\n\nFDSTORE=1", false, "\"state\":\"busy\"" },
    { "", false, "\"state\":\"busy\"" },
};

START_TEST(a_notice_is_taken_line_by_line)
{
    ck_assert_int_eq(state("{\"state\":\"busy\"}"), HF_OK);
    ck_assert(link_said_take_notice(&said, NOTICES[_i].text) == NOTICES[_i].taken);
    expect(NOTICES[_i].part);
}
END_TEST

static const struct {
    const char *text;
    bool feeds, gives_up, turns;
    int64_t watchdog_ms, extend_ms;
} ASIDES[] = {
    { .text = "WATCHDOG=1", .feeds = true },
    { .text = "WATCHDOG=trigger", .gives_up = true },
    { .text = "READY=1", .turns = true },
    { .text = "STOPPING=1", .turns = true },
    { .text = "WATCHDOG_USEC=5000000", .watchdog_ms = 5000 },
    { .text = "WATCHDOG_USEC=1", .watchdog_ms = 1 },
    { .text = "EXTEND_TIMEOUT_USEC=90000000\nSTATUS=migrating", .extend_ms = 90000 },
    { .text = "EXTEND_TIMEOUT_USEC=-1" },
    { .text = "EXTEND_TIMEOUT_USEC=9999999999999999999999" },
    { .text = "WATCHDOG_USEC=0" },
    { .text = "WATCHDOG_USEC=" },
    { .text = "WATCHDOG=2" },
};

START_TEST(a_notice_says_how_it_is_to_be_judged)
{
    (void)link_said_take_notice(&said, ASIDES[_i].text);
    ck_assert(said.feeds == ASIDES[_i].feeds);
    ck_assert(said.gives_up == ASIDES[_i].gives_up);
    ck_assert(said.turns == ASIDES[_i].turns);
    ck_assert_int_eq(said.watchdog_ms, ASIDES[_i].watchdog_ms);
    ck_assert_int_eq(said.extend_ms, ASIDES[_i].extend_ms);
}
END_TEST

START_TEST(a_status_that_is_too_long_is_cut_between_letters)
{
    char text[1000] = "STATUS=x";

    for (size_t i = 0; i < 400; i++)
        (void)strcat(text, i < 200 ? "\u00e4" : "b"); /* two bytes each */
    ck_assert(link_said_take_notice(&said, text));
    ck_assert_uint_eq(strlen(said.phase), LINK_SAID_TEXT - 1);
    expect("\u00e4\",");
}
END_TEST

/* True: it is not what was said last. */
static bool recall(const char *json)
{
    ProtobufCMessage *message;
    bool is_old;

    ck_assert_int_eq(hf_json_decode(&holdfast__v1__report__descriptor, json, strlen(json), NULL,
                                    &message, &err),
                     HF_OK);
    is_old = link_said_take_report(&said, (const Holdfast__V1__Report *)message);
    hf_json_free(message);
    return is_old;
}

#define REPORT                                                                                 \
    "{\"status\":\"busy\",\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\","            \
    "\"reason\":\"rate limit\",\"phase\":\"drafting\",\"lastTool\":\"grep\",\"task\":\"t1\","  \
    "\"counters\":{\"errors\":\"1\",\"sequence\":\"2\",\"tokens\":\"3\",\"other\":\"4\","      \
    "\"heartbeats_missed\":\"5\"},"                                                            \
    "\"progress\":{\"percent\":40}}"

START_TEST(what_was_written_before_holds)
{
    (void)recall(REPORT);
    expect("\"status\":\"busy\",\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\"");
    expect("\"counters\":{\"errors\":\"1\",\"heartbeats_missed\":\"5\",\"sequence\":\"2\","
           "\"tokens\":\"3\"}");
    expect("\"reason\":\"rate limit\"");
    expect("\"phase\":\"drafting\"");
    expect("\"lastTool\":\"grep\"");
    expect("\"task\":\"t1\"");
    expect("\"percent\":40");
}
END_TEST

/* It feeds its watchdog again, which another link hears. */
START_TEST(time_that_was_asked_for_before_ends_as_well)
{
    (void)recall("{\"state\":\"busy\",\"until\":\"2031-01-01T00:00:00Z\","
                 "\"reason\":\"it asked for time\"}");
    link_said_end_extension(&said);
    expect("\"state\":\"ready\"");
    said = (struct link_said){ 0 };
    (void)recall(REPORT);
    link_said_end_extension(&said);
    expect("\"state\":\"parked\"");
}
END_TEST

START_TEST(what_was_said_since_is_newer)
{
    ck_assert_int_eq(state("{\"state\":\"ready\"}"), HF_OK);
    ck_assert_int_eq(beat("{\"tokens\":9,\"phase\":\"done\",\"progress\":50}"), HF_OK);
    (void)recall(REPORT);
    expect("\"state\":\"ready\",\"counters\"");
    expect("\"reason\":\"\"");
    expect("\"tokens\":\"9\"");
    expect("\"errors\":\"1\"");
    expect("\"phase\":\"done\"");
    expect("\"percent\":50");
}
END_TEST

/* 2031-01-01, in milliseconds; and a while before. */
#define END  INT64_C(1924992000000)
#define WALL (END - 60000)

/* The keeper is told at once, and etcd when a report is due. */
START_TEST(what_the_keeper_knows_is_newer_than_what_was_written)
{
    link_said_keep(&said, HOLDFAST__V1__AGENT_STATE__VALUE__ready, 0, WALL);
    ck_assert(recall(REPORT));
    expect("\"state\":\"ready\",\"counters\"");
    expect("\"reason\":\"\"");
    expect("\"phase\":\"drafting\"");
    ck_assert_int_eq(link_said_settle(&said, WALL), 0);
    said = (struct link_said){ 0 };
    link_said_keep(&said, HOLDFAST__V1__AGENT_STATE__VALUE__parked, END - 1000, WALL);
    ck_assert(!recall(REPORT));
    expect("\"state\":\"parked\",\"until\":\"2030-12-31T23:59:59Z\"");
    expect("\"reason\":\"rate limit\"");
    said = (struct link_said){ 0 };
    link_said_keep(&said, HOLDFAST__V1__AGENT_STATE__VALUE__waiting, 0, WALL);
    ck_assert_int_eq(link_said_settle(&said, WALL), 0); /* it was over */
}
END_TEST

START_TEST(a_state_that_the_keeper_does_not_know_is_taken_as_it_was_written)
{
    link_said_keep(&said, 0, 0, WALL);
    link_said_keep(&said, 77, END, WALL);
    ck_assert(!recall(REPORT));
    expect("\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\"");
}
END_TEST

/* Its progress of a task was not said by the agent; its reason was, suspected or not. */
START_TEST(what_others_wrote_is_not_taken_for_its_words)
{
    (void)recall(
        "{\"state\":\"busy\",\"reason\":\"compiling\",\"suspicion\":{\"kind\":\"ping\"},"
        "\"progress\":{\"percent\":40,\"updated\":\"2031-01-01T00:00:00Z\"}}");
    expect("\"state\":\"busy\"");
    expect("\"reason\":\"compiling\"");
    ck_assert(!said.has_percent);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("said");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, what_is_left_out_stays_as_it_was);
    tcase_add_test(t, nothing_was_said);
    tcase_add_test(t, a_state_has_an_end_and_a_reason_until_the_next);
    tcase_add_loop_test(t, a_turn_has_no_reason_of_the_state_before, 0, 2);
    tcase_add_loop_test(t, a_state_that_explains_silence_has_an_end_within_a_week, 0,
                        COUNT(ENDS));
    tcase_add_test(t, an_end_stays_where_it_is);
    tcase_add_loop_test(t, a_mistake_changes_nothing, 0, COUNT(BEATS));
    tcase_add_test(t, a_text_that_is_too_long_is_not_cut);
    tcase_add_test(t, a_state_must_be_one);
    tcase_add_loop_test(t, a_notice_is_taken_line_by_line, 0, COUNT(NOTICES));
    tcase_add_loop_test(t, a_notice_says_how_it_is_to_be_judged, 0, COUNT(ASIDES));
    tcase_add_test(t, a_status_that_is_too_long_is_cut_between_letters);
    tcase_add_test(t, what_only_says_that_it_lives_is_told_from_what_says_more);
    tcase_add_test(t, what_was_written_before_holds);
    tcase_add_test(t, time_that_was_asked_for_before_ends_as_well);
    tcase_add_test(t, what_was_said_since_is_newer);
    tcase_add_test(t, what_the_keeper_knows_is_newer_than_what_was_written);
    tcase_add_test(t, a_state_that_the_keeper_does_not_know_is_taken_as_it_was_written);
    tcase_add_test(t, what_others_wrote_is_not_taken_for_its_words);
    return run("agentd/said", t);
}
