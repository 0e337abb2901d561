/* What an agent says, when that is written, and what it is asked. */
#include "unit/node_fixture.h"
#include "unit/suite.h"

/* In these words; `beats` and `speaks` as of core/event.h. */
static void speak(const char *phase, bool beats, bool speaks)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    char id[32];

    report.phase = (char *)phase;
    (void)snprintf(id, sizeof id, "%s", instance("a"));
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = HF_ASK_REPORT,
                                     .agent = "a",
                                     .instance_id = id,
                                     .beats = beats,
                                     .speaks = speaks,
                                     .report = &report } });
}

static void beat(void)
{
    speak("thinking", true, false);
}

/* Of the task, or with a heartbeat. */
static void advance(enum hf_ask_kind kind, double percent)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    Holdfast__V1__Report__Progress progress = HOLDFAST__V1__REPORT__PROGRESS__INIT;

    progress.percent = percent;
    report.progress = &progress;
    ask_report("a", kind, "t", &report);
    ignore();
    wait(2000);
}

/* A moment of the report, as a text that lasts until the next but one. */
static const char *moment(const char *member)
{
    static char texts[4][40];
    static unsigned turn;
    const char *report = get("agents/a/report"), *at;
    char *text = texts[turn++ % 4];

    at = report != NULL ? strstr(report, member) : NULL;
    text[0] = '\0';
    if (at != NULL)
        (void)sscanf(at + strlen(member), "\":\"%39[^\"]", text);
    return text;
}

/* It has sent a heartbeat, and is asked why it does nothing else. */
static void be_asked(int64_t life)
{
    char json[300];

    working();
    beat();
    ignore();
    ck_assert_str_ne(moment("saidAt"), "");
    (void)snprintf(json, sizeof json,
                   "{\"inquiry\":{\"id\":\"q\",\"incarnation\":\"%lld\",\"task\":\"t\","
                   "\"text\":\"why?\",\"saidAt\":\"%s\"}}",
                   (long long)life, moment("saidAt"));
    put("health/a", json);
}

START_TEST(a_heartbeat_is_no_word_and_the_first_is_written_at_once)
{
    const char *said;

    running();
    beat();
    expect("reply 1 OK\n");
    said = moment("saidAt");
    ck_assert_str_ne(said, ""); /* its phase is something that it said */
    ck_assert_str_ne(moment("heartbeatAt"), "");
    wait(90000);
    beat();
    wait(1000);
    ck_assert_str_eq(moment("saidAt"), said);
    ck_assert_str_ne(moment("heartbeatAt"), said);
}
END_TEST

START_TEST(who_only_announces_something_has_sent_no_heartbeat)
{
    running();
    speak("thinking", false, true);
    ignore();
    ck_assert_str_ne(moment("saidAt"), "");
    ck_assert_str_eq(moment("heartbeatAt"), "");
    wait(2000);
    beat();
    wait(1000);
    ck_assert_str_ne(moment("heartbeatAt"), "");
}
END_TEST

START_TEST(it_hears_of_the_inquiry_until_it_says_something)
{
    be_asked(104);
    ck_assert_str_eq(hf_node_get_inquiry(w.node, "a")->text, "why?");
    beat();
    expect("reply 4 OK asked 1\n");
    speak("writing", true, false);
    expect("reply 5 OK\n");
    ck_assert_ptr_null(hf_node_get_inquiry(w.node, "a"));
    ck_assert_ptr_null(hf_node_get_inquiry(w.node, "nobody"));
}
END_TEST

START_TEST(an_inquiry_of_another_life_is_not_for_it)
{
    be_asked(103);
    ck_assert_ptr_null(hf_node_get_inquiry(w.node, "a"));
    beat();
    expect("reply 4 OK\n");
}
END_TEST

START_TEST(while_it_is_asked_its_heartbeats_are_written_as_often_as_promised)
{
    int64_t rev;

    be_asked(104);
    wait(10000);
    rev = find(ROOT "agents/a/report")->mod_rev;
    beat();
    wait(19000);
    ck_assert_int_eq(find(ROOT "agents/a/report")->mod_rev, rev);
    wait(2000);
    ck_assert_int_gt(find(ROOT "agents/a/report")->mod_rev, rev);
}
END_TEST

static void act(void)
{
    speak("thinking", true, true);
}
static void announce(void)
{
    speak("thinking", false, true);
}
static void say_more(void)
{
    speak("writing", true, false);
}
static void progress(void)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    Holdfast__V1__Report__Progress done = HOLDFAST__V1__REPORT__PROGRESS__INIT;

    report.progress = &done;
    ask_report("a", HF_ASK_PROGRESS, "t", &report);
}

static void (*const ANSWERS[])(void) = { act, announce, say_more, progress };

START_TEST(an_answer_is_written_at_once_be_it_in_the_same_words)
{
    const char *said;

    be_asked(104);
    wait(1000);
    said = moment("saidAt");
    ANSWERS[_i]();
    run_node();
    ck_assert_str_ne(moment("saidAt"), said);
    ck_assert_ptr_null(hf_node_get_inquiry(w.node, "a"));
}
END_TEST

START_TEST(every_word_is_another_one_though_the_clock_stands_still)
{
    const char *said;

    running();
    act();
    ignore();
    said = moment("saidAt");
    act();
    wait(61000);
    ck_assert_str_ne(moment("saidAt"), said);
}
END_TEST

START_TEST(a_new_link_does_not_take_a_heartbeat_for_a_word)
{
    const char *said;

    be_asked(104);
    said = moment("saidAt");
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    ignore();
    ck_assert_ptr_nonnull(hf_node_get_inquiry(w.node, "a"));
    beat();
    ck_assert_ptr_nonnull(hf_node_get_inquiry(w.node, "a"));
    wait(61000);
    ck_assert_str_eq(moment("saidAt"), said);
}
END_TEST

/* Its heartbeats do not repeat how far its task is. */
START_TEST(a_new_link_does_not_take_a_heartbeat_for_progress)
{
    const char *said;

    working();
    beat();
    advance(HF_ASK_PROGRESS, 40);
    said = moment("saidAt");
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    ignore();
    beat();
    wait(61000);
    ck_assert_str_eq(moment("saidAt"), said);
    has("agents/a/report", "\"percent\":40,");
}
END_TEST

START_TEST(a_new_link_and_a_new_lease_keep_the_words)
{
    working();
    speak("thinking", false, true);
    advance(HF_ASK_PROGRESS, 40);
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    ignore();
    lose_lease();
    lease_is(HF_LEASE_HELD, 43, false);
    wait(61000);
    has("agents/a/report", "\"leaseId\":\"43\"");
    has("agents/a/report", "\"phase\":\"thinking\"");
    has("agents/a/report", "\"percent\":40,");
}
END_TEST

START_TEST(what_it_said_holds_in_its_next_life_too)
{
    const char *said;

    working();
    beat();
    ignore();
    said = moment("saidAt");
    lose_lease();
    lease_is(HF_LEASE_HELD, 43, false);
    wait(61000); /* there is no hurry: thousands may be back at once */
    has("agents/a/report", "\"leaseId\":\"43\"");
    ck_assert_str_eq(moment("saidAt"), said);
    ck_assert_str_ne(moment("heartbeatAt"), "");
}
END_TEST

START_TEST(the_newer_word_about_progress_counts)
{
    working();
    advance(HF_ASK_REPORT, 10);
    has("agents/a/report", "\"percent\":10,");
    advance(HF_ASK_PROGRESS, 20);
    has("agents/a/report", "\"percent\":20,");
    beat(); /* says nothing of it */
    wait(61000);
    has("agents/a/report", "\"percent\":20,");
    advance(HF_ASK_REPORT, 30);
    has("agents/a/report", "\"percent\":30,");
}
END_TEST

START_TEST(a_new_link_tells_of_progress_as_it_comes)
{
    working();
    beat();
    advance(HF_ASK_PROGRESS, 10);
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    ignore();
    advance(HF_ASK_PROGRESS, 20);
    has("agents/a/report", "\"percent\":20,");
    advance(HF_ASK_PROGRESS, 30);
    has("agents/a/report", "\"percent\":30,");
    has("agents/a/report", "\"phase\":\"thinking\"");
}
END_TEST

/* Receipts. */

static void receipt(const char *by, hf_ms delivered, hf_ms read)
{
    struct hf_receipt known = { .id = "q", .delivered_wall = delivered, .read_wall = read };
    char id[32];

    (void)snprintf(known.by, sizeof known.by, "%s", by);
    (void)snprintf(id, sizeof id, "%s", instance("a"));
    must((struct hf_event){
        .kind = HF_EVENT_PROCESS,
        .process = {
            .agent = "a", .instance_id = id, .news = HF_PROCESS_NUDGED, .receipt = &known } });
}

START_TEST(that_it_was_delivered_is_written_and_is_no_answer)
{
    const char *said;

    be_asked(104);
    said = moment("saidAt");
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    has("agents/a/report", "\"nudge\":{\"id\":\"q\",\"delivered\":{\"by\":\"stdin\",\"at\":"
                           "\"2023-11-14T22:13:21Z\"}}");
    ck_assert_str_eq(moment("saidAt"), said);
    ck_assert_ptr_nonnull(hf_node_get_inquiry(w.node, "a"));
}
END_TEST

START_TEST(of_who_never_said_anything_it_is_no_word_either)
{
    running();
    receipt("hook", 1700000001000, 1700000002000);
    wait(1000);
    has("agents/a/report", "\"by\":\"hook\"");
    ck_assert_str_eq(moment("readAt"), "2023-11-14T22:13:22Z");
    ck_assert_str_eq(moment("saidAt"), "");
}
END_TEST

START_TEST(the_first_delivery_counts_and_is_written_once)
{
    int64_t rev;

    be_asked(104);
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    rev = find(ROOT "agents/a/report")->mod_rev;
    receipt("events", 1700000002000, 0);
    wait(5000);
    ck_assert_int_eq(find(ROOT "agents/a/report")->mod_rev, rev);
    receipt("events", 1700000002000, 1700000003000);
    wait(1000);
    has("agents/a/report", "\"by\":\"stdin\"");
    ck_assert_str_eq(moment("readAt"), "2023-11-14T22:13:23Z");
}
END_TEST

static void complete(void)
{
    ask("a", HF_ASK_COMPLETE, "t");
}

static void (*const READS[])(void) = { act, announce, say_more, progress, complete };

START_TEST(who_answers_has_read_what_had_reached_it)
{
    be_asked(104);
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    ck_assert_str_eq(moment("readAt"), "");
    READS[_i]();
    wait(1000);
    ck_assert_str_ne(moment("readAt"), "");
}
END_TEST

START_TEST(an_answer_before_it_came_is_no_receipt)
{
    be_asked(104);
    act();
    wait(1000);
    ck_assert_ptr_null(strstr(get("agents/a/report"), "nudge"));
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    ck_assert_str_eq(moment("readAt"), "");
}
END_TEST

START_TEST(a_new_link_keeps_the_receipt_and_the_words)
{
    be_asked(104);
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    take_over((struct hf_node_held){
        .instance_id = w.ids[0], .begun = true, .lease = LEASE, .create_rev = 104 });
    settle_in();
    ignore();
    receipt("events", 1700000009000, 1700000010000);
    wait(1000);
    has("agents/a/report", "\"by\":\"stdin\",\"at\":\"2023-11-14T22:13:21Z\"");
    ck_assert_str_eq(moment("readAt"), "2023-11-14T22:13:30Z");
    has("agents/a/report", "\"phase\":\"thinking\"");
    beat();
    wait(61000);
    has("agents/a/report", "\"by\":\"stdin\"");
}
END_TEST

START_TEST(the_next_process_was_told_nothing)
{
    be_asked(104);
    receipt("stdin", 1700000001000, 0);
    wait(1000);
    news("a", HF_PROCESS_ENDED, 1, "exit status 1");
    ignore();
    put("commands/h/a", "{\"id\":\"c1\",\"host\":\"h\"}");
    ignore();
    ck_assert_str_ne(instance("a"), w.ids[0]);
    beat();
    wait(1000);
    ck_assert_ptr_null(strstr(get("agents/a/report"), "nudge"));
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_heartbeat_is_no_word_and_the_first_is_written_at_once);
    tcase_add_test(t, who_only_announces_something_has_sent_no_heartbeat);
    tcase_add_test(t, it_hears_of_the_inquiry_until_it_says_something);
    tcase_add_test(t, an_inquiry_of_another_life_is_not_for_it);
    tcase_add_test(t, while_it_is_asked_its_heartbeats_are_written_as_often_as_promised);
    tcase_add_loop_test(t, an_answer_is_written_at_once_be_it_in_the_same_words, 0,
                        COUNT(ANSWERS));
    tcase_add_test(t, every_word_is_another_one_though_the_clock_stands_still);
    tcase_add_test(t, a_new_link_does_not_take_a_heartbeat_for_a_word);
    tcase_add_test(t, a_new_link_does_not_take_a_heartbeat_for_progress);
    tcase_add_test(t, a_new_link_and_a_new_lease_keep_the_words);
    tcase_add_test(t, what_it_said_holds_in_its_next_life_too);
    tcase_add_test(t, the_newer_word_about_progress_counts);
    tcase_add_test(t, a_new_link_tells_of_progress_as_it_comes);
    tcase_add_test(t, that_it_was_delivered_is_written_and_is_no_answer);
    tcase_add_test(t, of_who_never_said_anything_it_is_no_word_either);
    tcase_add_test(t, the_first_delivery_counts_and_is_written_once);
    tcase_add_loop_test(t, who_answers_has_read_what_had_reached_it, 0, COUNT(READS));
    tcase_add_test(t, an_answer_before_it_came_is_no_receipt);
    tcase_add_test(t, a_new_link_keeps_the_receipt_and_the_words);
    tcase_add_test(t, the_next_process_was_told_nothing);
}

int main(void)
{
    return run_stories("core/node inquiry", add_stories);
}
