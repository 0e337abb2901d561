#include <string.h>

#include "core/stall.h"
#include "sim/random.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S };

static struct hf_stall_policy policy;

/* Nothing moved since 0, it should be done, and nothing explains it. */
static struct hf_stall_case quiet(void)
{
    return (struct hf_stall_case){ .moved = 0, .expected = 1, .cadence = 30 * S };
}

/* It was asked at 30 min; its heartbeats came until then. */
static struct hf_stall_case asked(void)
{
    return (struct hf_stall_case){ .asked = true,
                                   .answer_by = 35 * MIN,
                                   .beats = true,
                                   .hears = true,
                                   .heard = 30 * MIN,
                                   .cadence = 30 * S };
}

static void begin(void)
{
    policy = hf_stall_policy_default();
}

static void expect(const struct hf_stall_case *facts, hf_ms now, enum hf_stall_due due,
                   hf_ms at)
{
    struct hf_stall_view view = hf_stall_judge(&policy, facts, now);

    ck_assert_int_eq(view.due, due);
    ck_assert_int_eq(view.at, at);
    ck_assert_ptr_nonnull(view.why);
    ck_assert_ptr_nonnull(view.next);
}

START_TEST(the_defaults_are_30_min_and_5_min)
{
    const char *why = NULL;

    ck_assert_int_eq(policy.progress_max, 30 * MIN);
    ck_assert_int_eq(policy.inquiry_answer, 5 * MIN);
    ck_assert_int_eq(hf_stall_policy_check(&policy, &why), HF_OK);
}
END_TEST

static const struct {
    hf_ms progress_max, inquiry_answer;
    const char *part;
} FAULTS[] = { { 0, 1, "progress_max" },         { -1, 1, "progress_max" },
               { INT64_MAX, 1, "progress_max" }, { 1, 0, "inquiry_answer" },
               { 1, -1, "inquiry_answer" },      { 1, INT64_MAX, "inquiry_answer" } };

START_TEST(a_policy_without_time_is_refused)
{
    const char *why = NULL;

    policy.progress_max = FAULTS[_i].progress_max;
    policy.inquiry_answer = FAULTS[_i].inquiry_answer;
    ck_assert_int_eq(hf_stall_policy_check(&policy, &why), HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(why, FAULTS[_i].part));
}
END_TEST

START_TEST(who_stands_still_for_30_min_with_what_should_be_done_is_asked)
{
    struct hf_stall_case facts = quiet();

    expect(&facts, 30 * MIN - 1, HF_STALL_FINE, 30 * MIN);
    expect(&facts, 30 * MIN, HF_STALL_ASK, 30 * MIN);
}
END_TEST

START_TEST(what_has_time_is_not_asked_about)
{
    struct hf_stall_case facts = quiet();

    facts.expected = 90 * MIN;
    expect(&facts, 90 * MIN - 1, HF_STALL_FINE, 90 * MIN);
    expect(&facts, 90 * MIN, HF_STALL_ASK, 90 * MIN);
    facts.expected = HF_STALL_NEVER;
    expect(&facts, 900 * MIN, HF_STALL_FINE, HF_STALL_NEVER);
}
END_TEST

START_TEST(what_it_announced_explains_it_for_as_long_as_it_said)
{
    struct hf_stall_case facts = quiet();

    facts.explained = 40 * MIN;
    expect(&facts, 40 * MIN - 1, HF_STALL_FINE, 40 * MIN);
    expect(&facts, 40 * MIN, HF_STALL_ASK, 40 * MIN);
    facts.explained = HF_STALL_NEVER;
    expect(&facts, 900 * MIN, HF_STALL_FINE, HF_STALL_NEVER);
}
END_TEST

START_TEST(who_was_asked_has_5_min)
{
    struct hf_stall_case facts = asked();

    expect(&facts, 35 * MIN - 1, HF_STALL_ASKED, 35 * MIN);
}
END_TEST

START_TEST(who_answers_is_done_with_however_late)
{
    struct hf_stall_case facts = asked();

    facts.answered = true;
    expect(&facts, 31 * MIN, HF_STALL_ANSWERED, 31 * MIN);
    facts.told = true;
    expect(&facts, 310 * MIN, HF_STALL_ANSWERED, 310 * MIN);
}
END_TEST

START_TEST(who_does_not_answer_and_is_not_heard_of_any_more_is_ended)
{
    struct hf_stall_case facts = asked();

    expect(&facts, 35 * MIN, HF_STALL_END, 35 * MIN);
}
END_TEST

START_TEST(while_its_heartbeats_come_a_person_is_told_once_and_nothing_is_done_to_it)
{
    struct hf_stall_case facts = asked();

    facts.heard = 34 * MIN;
    expect(&facts, 35 * MIN, HF_STALL_TELL, 35 * MIN);
    facts.told = true;
    expect(&facts, 35 * MIN, HF_STALL_ASKED, 39 * MIN);
    expect(&facts, 39 * MIN - 1, HF_STALL_ASKED, 39 * MIN);
    expect(&facts, 39 * MIN, HF_STALL_END, 39 * MIN); /* they have stopped since */
}
END_TEST

START_TEST(who_promised_heartbeats_more_rarely_is_waited_for_longer)
{
    struct hf_stall_case facts = asked();

    facts.cadence = 10 * MIN;
    facts.told = true;
    expect(&facts, 59 * MIN, HF_STALL_ASKED, 60 * MIN);
    expect(&facts, 60 * MIN, HF_STALL_END, 60 * MIN);
    facts.cadence = INT64_MAX;
    expect(&facts, 6000 * MIN, HF_STALL_ASKED, 30 * MIN + INT64_C(2592000000));
}
END_TEST

START_TEST(who_began_to_look_a_moment_ago_cannot_say_that_heartbeats_come)
{
    struct hf_stall_case facts = asked();

    facts.hears = false;
    facts.heard = 34 * MIN; /* when it began */
    expect(&facts, 35 * MIN, HF_STALL_ASKED, 39 * MIN);
    expect(&facts, 39 * MIN, HF_STALL_END, 39 * MIN);
}
END_TEST

START_TEST(who_never_sent_heartbeats_is_told_of_and_left_alone)
{
    struct hf_stall_case facts = asked();

    facts.beats = false;
    expect(&facts, 35 * MIN, HF_STALL_TELL, 35 * MIN);
    facts.told = true;
    expect(&facts, 3500 * MIN, HF_STALL_ASKED, HF_STALL_NEVER);
}
END_TEST

START_TEST(an_inquiry_is_open_for_one_life_and_until_it_is_answered)
{
    Holdfast__V1__Health health = HOLDFAST__V1__HEALTH__INIT;
    Holdfast__V1__Health__Inquiry inquiry = HOLDFAST__V1__HEALTH__INQUIRY__INIT;

    ck_assert_ptr_null(hf_stall_open(NULL, 7));
    ck_assert_ptr_null(hf_stall_open(&health, 7));
    health.inquiry = &inquiry;
    ck_assert_ptr_null(hf_stall_open(&health, 0));
    inquiry.incarnation = 7;
    ck_assert_ptr_eq(hf_stall_open(&health, 7), &inquiry);
    ck_assert_ptr_null(hf_stall_open(&health, 8));
    inquiry.answered = true;
    ck_assert_ptr_null(hf_stall_open(&health, 7));
}
END_TEST

START_TEST(another_word_than_the_one_of_before_is_an_answer)
{
    Holdfast__V1__Health__Inquiry inquiry = HOLDFAST__V1__HEALTH__INQUIRY__INIT;
    Google__Protobuf__Timestamp said = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    ck_assert(!hf_stall_is_answer(&inquiry, 0));
    ck_assert(hf_stall_is_answer(&inquiry, 5000));
    said.seconds = 5;
    inquiry.said_at = &said;
    ck_assert(!hf_stall_is_answer(&inquiry, 5000));
    ck_assert(hf_stall_is_answer(&inquiry, 4999)); /* a clock that was set back, even */
}
END_TEST

/* Whatever is known: what the head of the header promises holds, and asking again at the time
 * that was told, with nothing new, brings something new. */

static hf_ms draw_moment(struct hfs_random *random)
{
    uint64_t kind = hfs_random_below(random, 10);

    if (kind == 0)
        return HF_STALL_NEVER;
    return kind == 1 ? 0 : (hf_ms)hfs_random_below(random, 200 * MIN);
}

static struct hf_stall_case draw_case(struct hfs_random *random)
{
    struct hf_stall_case facts = { .moved = (hf_ms)hfs_random_below(random, 200 * MIN),
                                   .expected = draw_moment(random),
                                   .explained = draw_moment(random),
                                   .asked = hfs_random_percent(random, 70),
                                   .answered = hfs_random_percent(random, 20),
                                   .told = hfs_random_percent(random, 50),
                                   .answer_by = (hf_ms)hfs_random_below(random, 200 * MIN),
                                   .beats = hfs_random_percent(random, 70),
                                   .hears = hfs_random_percent(random, 70),
                                   .heard = (hf_ms)hfs_random_below(random, 200 * MIN),
                                   .cadence = (hf_ms)hfs_random_below(random, 10 * MIN) };

    return facts;
}

static void check_promises(const struct hf_stall_case *c, hf_ms now,
                           const struct hf_stall_view *view)
{
    if (view->due == HF_STALL_ASK)
        ck_assert(!c->asked && now >= c->moved + policy.progress_max && now >= c->expected &&
                  now >= c->explained && c->expected != HF_STALL_NEVER);
    if (view->due == HF_STALL_END)
        ck_assert(c->asked && !c->answered && c->beats && now >= c->answer_by &&
                  now >= c->heard + policy.inquiry_answer && now >= c->heard + 3 * c->cadence);
    if (view->due == HF_STALL_TELL)
        ck_assert(c->asked && !c->answered && !c->told && now >= c->answer_by &&
                  (!c->beats || c->hears));
    ck_assert_int_eq(view->due == HF_STALL_ANSWERED, c->asked && c->answered);
    ck_assert(view->at >= now);
    if (view->due != HF_STALL_FINE && view->due != HF_STALL_ASKED)
        ck_assert_int_eq(view->at, now);
}

START_TEST(whatever_is_known_the_promises_hold)
{
    struct hfs_random random = { .state = (uint64_t)_i + 1 };

    for (int i = 0; i < 20000; i++) {
        struct hf_stall_case facts = draw_case(&random);
        hf_ms now = (hf_ms)hfs_random_below(&random, 400 * MIN);
        struct hf_stall_view view = hf_stall_judge(&policy, &facts, now), next;

        check_promises(&facts, now, &view);
        if (view.at == now || view.at == HF_STALL_NEVER)
            continue;
        next = hf_stall_judge(&policy, &facts, view.at - 1);
        ck_assert_int_eq(next.due, view.due);
        next = hf_stall_judge(&policy, &facts, view.at);
        ck_assert(next.due != view.due || next.at > view.at);
        check_promises(&facts, view.at, &next);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stall");

    tcase_add_checked_fixture(t, begin, NULL);
    tcase_add_test(t, the_defaults_are_30_min_and_5_min);
    tcase_add_loop_test(t, a_policy_without_time_is_refused, 0, COUNT(FAULTS));
    tcase_add_test(t, who_stands_still_for_30_min_with_what_should_be_done_is_asked);
    tcase_add_test(t, what_has_time_is_not_asked_about);
    tcase_add_test(t, what_it_announced_explains_it_for_as_long_as_it_said);
    tcase_add_test(t, who_was_asked_has_5_min);
    tcase_add_test(t, who_answers_is_done_with_however_late);
    tcase_add_test(t, who_does_not_answer_and_is_not_heard_of_any_more_is_ended);
    tcase_add_test(t,
                   while_its_heartbeats_come_a_person_is_told_once_and_nothing_is_done_to_it);
    tcase_add_test(t, who_promised_heartbeats_more_rarely_is_waited_for_longer);
    tcase_add_test(t, who_began_to_look_a_moment_ago_cannot_say_that_heartbeats_come);
    tcase_add_test(t, who_never_sent_heartbeats_is_told_of_and_left_alone);
    tcase_add_test(t, an_inquiry_is_open_for_one_life_and_until_it_is_answered);
    tcase_add_test(t, another_word_than_the_one_of_before_is_an_answer);
    tcase_add_loop_test(t, whatever_is_known_the_promises_hold, 0, 10);
    return run("core/stall", t);
}
