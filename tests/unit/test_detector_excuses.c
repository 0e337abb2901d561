/* What explains that nothing is heard of an agent, for how long, and that nothing else does. */
#include "unit/detector_fixture.h"

/* Somebody else has watched it before. */

static void begin_again(unsigned used)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_recall(&d, (uint8_t)used, now);
    ck_assert_uint_eq(hf_detector_get_used(&d), used);
}

START_TEST(who_answered_before_and_does_not_listen_again_is_frozen)
{
    begin_again(1U << HF_SOURCE_PING);
    pass(60 * S, -1);
    ck_assert_int_ge(suspect_at, 1010 * S);
    ck_assert_int_ge(frozen_at, 1015 * S);
    ck_assert_int_le(frozen_at, 1016 * S);
    ck_assert_int_eq(last.source, HF_SOURCE_PING);
    ck_assert(!hf_detector_is_known(&d, &policy, now));
}
END_TEST

START_TEST(who_listens_again_and_does_not_answer_is_frozen)
{
    begin_again(1U << HF_SOURCE_PING);
    pass(8 * S, -1);
    (void)hf_detector_on_asked(&d, now);
    hf_detector_on_answer(&d, &policy, now);
    hf_detector_on_listens(&d, true, now);
    ck_assert(hf_detector_is_known(&d, &policy, now));
    pass(6 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(who_goes_on_and_does_not_want_to_be_asked_again_is_well)
{
    begin_again(1U << HF_SOURCE_PING);
    pass(8 * S, -1);
    hf_detector_on_activity(&d, now);
    pass(600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    ck_assert_uint_eq(hf_detector_get_used(&d), 0);
}
END_TEST

START_TEST(a_watchdog_that_was_fed_before_is_due_once_more)
{
    begin_again(1U << HF_SOURCE_WATCHDOG);
    pass(24 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    ck_assert(!hf_detector_is_known(&d, &policy, now));
    pass(30 * S, -1);
    ck_assert_int_ge(frozen_at, 1030 * S);
}
END_TEST

START_TEST(a_probe_that_was_good_before_may_convict)
{
    begin_again(1U << HF_SOURCE_PROBE);
    for (int i = 0; i < 3; i++) {
        pass(2 * S, -1);
        hf_detector_on_probe(&d, false, now);
    }
    pass(2 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
    ck_assert(!hf_detector_is_known(&d, &policy, now));
    hf_detector_on_probe(&d, true, now);
    hf_detector_on_activity(&d, now);
    ck_assert(hf_detector_is_known(&d, &policy, now));
}
END_TEST

START_TEST(who_is_judged_by_its_process_alone_is_known_after_a_look)
{
    begin_again(0);
    ck_assert(!hf_detector_is_known(&d, &policy, now));
    pass(3 * S, -1);
    ck_assert(hf_detector_is_known(&d, &policy, now));
    hf_detector_on_shape(&d, HF_PROCESS_STOPPED, now);
    ck_assert(!hf_detector_is_known(&d, &policy, now));
}
END_TEST

START_TEST(what_it_announced_explains_silence_until_its_end)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_announce(&d, now + 100 * S, now);
    pass(100 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    pass(3 * S, -1); /* counted from the end on */
    ck_assert_int_eq(frozen_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* That it waits, or that we keep it waiting, does not explain that somebody has stopped it. */
START_TEST(what_explains_silence_does_not_explain_a_process_that_is_stopped)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    if (_i == 0)
        hf_detector_announce(&d, now + 3600 * S, now);
    else
        (void)hf_detector_on_asked(&d, now);
    from = now;
    hf_detector_on_shape(&d, HF_PROCESS_STOPPED, now);
    pass(600 * S, -1);
    ck_assert_int_eq(suspect_at, from + 2 * S);
    ck_assert_int_eq(last.source, HF_SOURCE_PROCESS);
    ck_assert_int_eq(frozen_at, 0);
    hf_detector_on_shape(&d, HF_PROCESS_GOES, now);
    pass(600 * S, -1);
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
}
END_TEST

/* It answers before it says that it goes on. */
START_TEST(a_silence_that_was_explained_is_no_habit)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_announce(&d, now + 120 * S, now);
    pass(60 * S, -1);
    hear_answer();
    hf_detector_announce(&d, 0, now);
    pass(10 * S, 10);
    from = now;
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
    ck_assert_int_le(frozen_at - from, 5 * S);
}
END_TEST

/* Nobody reads them, and a stream holds only so much. */
START_TEST(who_said_that_it_will_be_silent_is_asked_less_often)
{
    int pings = 0;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_announce(&d, now + 3600 * S, now);
    for (hf_ms until = now + 3600 * S; now < until; now += LOOK) {
        look();
        if (!last.ping_due)
            continue;
        hf_detector_on_ping(&d, &policy, now);
        pings++;
    }
    ck_assert_int_ge(pings, 59);
    ck_assert_int_le(pings, 62);
    pass(6 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(what_is_said_to_be_over_explains_nothing)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_announce(&d, now + 100 * S, now);
    pass(5 * S, -1);
    hf_detector_announce(&d, 0, now);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* One thread, which waits for us. */
START_TEST(an_answer_that_we_owe_explains_silence_until_it_is_there)
{
    struct hf_detector_debt first, second;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    feed(HF_SOURCE_WATCHDOG, 1 * S, 5);
    first = hf_detector_on_asked(&d, now);
    pass(300 * S, -1);
    second = hf_detector_on_asked(&d, now);
    hf_detector_on_answered(&d, &policy, &first, now);
    pass(300 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    hf_detector_on_answered(&d, &policy, &second, now);
    pass(2 * S, -1); /* counted from the answer on */
    ck_assert_int_eq(frozen_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(an_answer_that_never_comes_does_not_explain_for_ever)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    (void)hf_detector_on_asked(&d, now);
    pass(3600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* Another of its threads does: then it stands still only when that one does, too. */
START_TEST(who_answers_while_it_waits_is_judged_by_that)
{
    struct hf_detector_debt debt;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    debt = hf_detector_on_asked(&d, now);
    pass(10 * S, 10);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
    hf_detector_on_answered(&d, &policy, &debt, now);
    (void)hf_detector_on_asked(&d, now);
    pass(10 * S, -1);
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL); /* this one it may wait for */
}
END_TEST

START_TEST(a_short_wait_is_no_excuse)
{
    struct hf_detector_debt debt;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    pass(500, -1);
    debt = hf_detector_on_asked(&d, now);
    hf_detector_on_answered(&d, &policy, &debt, now);
    hf_detector_on_answered(&d, &policy, &debt, now); /* once is enough */
    ck_assert_uint_eq(d.owed, 0);
    ck_assert(!d.heard[HF_SOURCE_PING].skip);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(a_stall_of_our_own_counts_against_nobody)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    us.can_judge = false;
    pass(100 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    us.can_judge = true;
    pass(60 * S, 10);
    ck_assert_int_eq(suspect_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(who_is_late_itself_gives_others_more_time)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    us.score = 7;
    from = d.heard[HF_SOURCE_PING].at;
    pass(60 * S, -1);
    ck_assert_int_ge(suspect_at - from, 8 * S);
    ck_assert_int_ge(frozen_at - from, 16 * S);
}
END_TEST

START_TEST(who_is_at_work_has_twice_the_time_until_its_end)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_slow(&d, now + 3600 * S);
    from = d.heard[HF_SOURCE_PING].at;
    pass(60 * S, -1);
    ck_assert_int_ge(suspect_at - from, 4 * S - 2 * LOOK);
    ck_assert_int_ge(frozen_at - from, 6 * S - 2 * LOOK);
    ck_assert_int_le(frozen_at - from, 9 * S);
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_slow(&d, now);
    from = d.heard[HF_SOURCE_PING].at;
    pass(60 * S, -1);
    ck_assert_int_le(frozen_at - from, 4500 + LOOK);
}
END_TEST

/* It waited for a processor all the time. */
START_TEST(time_that_was_not_its_own_does_not_count)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    for (int i = 0; i < 200; i++) {
        pass(100, -1);
        hf_detector_on_lost(&d, 100, now);
    }
    ck_assert_int_eq(suspect_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* Nor does it use up the warning: from then on it has as long as anybody. */
START_TEST(a_warning_counts_while_it_can_be_heeded)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_set_watchdog(&d, 2 * S);
    feed(HF_SOURCE_WATCHDOG, 1 * S, 20);
    while (suspect_at == 0)
        pass(LOOK, -1);
    for (int i = 0; i < 10 * S / LOOK; i++) {
        pass(LOOK, -1);
        hf_detector_on_lost(&d, LOOK, now);
    }
    ck_assert_int_eq(frozen_at, 0);
    hf_ms from = now;
    pass(10 * S, -1);
    ck_assert_int_ge(frozen_at, from + policy.warning - LOOK);
    ck_assert_int_le(frozen_at, from + 2 * S);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("excuses");

    tcase_add_test(t, who_answered_before_and_does_not_listen_again_is_frozen);
    tcase_add_test(t, who_listens_again_and_does_not_answer_is_frozen);
    tcase_add_test(t, who_goes_on_and_does_not_want_to_be_asked_again_is_well);
    tcase_add_test(t, a_watchdog_that_was_fed_before_is_due_once_more);
    tcase_add_test(t, a_probe_that_was_good_before_may_convict);
    tcase_add_test(t, who_is_judged_by_its_process_alone_is_known_after_a_look);
    tcase_add_test(t, what_it_announced_explains_silence_until_its_end);
    tcase_add_loop_test(t, what_explains_silence_does_not_explain_a_process_that_is_stopped, 0,
                        2);
    tcase_add_test(t, a_silence_that_was_explained_is_no_habit);
    tcase_add_test(t, who_said_that_it_will_be_silent_is_asked_less_often);
    tcase_add_test(t, what_is_said_to_be_over_explains_nothing);
    tcase_add_test(t, an_answer_that_we_owe_explains_silence_until_it_is_there);
    tcase_add_test(t, an_answer_that_never_comes_does_not_explain_for_ever);
    tcase_add_test(t, who_answers_while_it_waits_is_judged_by_that);
    tcase_add_test(t, a_short_wait_is_no_excuse);
    tcase_add_test(t, a_stall_of_our_own_counts_against_nobody);
    tcase_add_test(t, who_is_late_itself_gives_others_more_time);
    tcase_add_test(t, who_is_at_work_has_twice_the_time_until_its_end);
    tcase_add_test(t, time_that_was_not_its_own_does_not_count);
    tcase_add_test(t, a_warning_counts_while_it_can_be_heeded);
    return run("core/detector: excuses", t);
}
