#include <math.h>
#include <string.h>

#include "sim/random.h"
#include "unit/detector_fixture.h"

START_TEST(phi_is_as_the_formula_has_it)
{
    struct hf_detector_heard heard = { .count = 0 };

    /* Akka's own figures: one second, three of pause, 100 ms of deviation. */
    for (int i = 0; i < HF_DETECTOR_SAMPLES; i++)
        hf_detector_sample(&heard, 1000);
    ck_assert(hf_detector_phi(&heard, 1000, 100, 3000, 1000) < 0.001);
    ck_assert(fabs(hf_detector_phi(&heard, 1000, 100, 3000, 4000) - 0.301) < 0.01);
    ck_assert(fabs(hf_detector_phi(&heard, 1000, 100, 3000, 4523) - 8.0) < 0.05);
    ck_assert(hf_detector_phi(&heard, 1000, 100, 3000, 1000000) == 300);
}
END_TEST

START_TEST(phi_grows_with_silence_and_shrinks_with_unpunctuality)
{
    struct hf_detector_heard even = { 0 }, uneven = { 0 };
    double before = 0;

    for (int i = 0; i < HF_DETECTOR_SAMPLES; i++) {
        hf_detector_sample(&even, 2000);
        hf_detector_sample(&uneven, i % 2 == 0 ? 1000 : 3000);
    }
    for (hf_ms silence = 0; silence < 60 * S; silence += 100) {
        double phi = hf_detector_phi(&even, 2000, 100, 1000, silence);

        ck_assert(phi >= before);
        ck_assert(isfinite(phi));
        before = phi;
    }
    ck_assert(hf_detector_phi(&uneven, 2000, 100, 1000, 4500) <
              hf_detector_phi(&even, 2000, 100, 1000, 4500));
}
END_TEST

START_TEST(who_opted_into_nothing_is_well_however_long_it_is_silent)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_listens(&d, true, now); /* and never answers */
    for (int i = 0; i < 24; i++)
        pass(3600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
    ck_assert_int_eq(frozen_at, 0);
    hf_detector_on_activity(&d, now);
    pass(3600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
}
END_TEST

START_TEST(who_does_not_answer_is_asked_once_a_minute)
{
    int pings = 0;

    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_listens(&d, true, now);
    for (hf_ms until = now + 600 * S; now < until; now += LOOK) {
        look();
        if (last.ping_due) {
            hf_detector_on_ping(&d, &policy, now);
            pings++;
        }
    }
    ck_assert_int_eq(pings, 10);
}
END_TEST

static const struct {
    enum hf_detector_profile profile;
    hf_ms suspect, frozen; /* at the latest after the last answer */
} PROFILES[] = { { HF_DETECTOR_DEFAULT, 3 * S, 4500 },
                 { HF_DETECTOR_DEV, 2 * S, 3 * S },
                 { HF_DETECTOR_TOLERANT, 4 * S, 8 * S } };

START_TEST(who_stops_answering_is_suspect_and_then_frozen)
{
    hf_ms from;

    begin(PROFILES[_i].profile);
    listen_and_answer();
    from = d.heard[HF_SOURCE_PING].at;
    pass(20 * S, -1);
    ck_assert_int_gt(suspect_at, from);
    ck_assert_int_le(suspect_at - from, PROFILES[_i].suspect + LOOK);
    ck_assert_int_gt(frozen_at, suspect_at);
    ck_assert_int_le(frozen_at - from, PROFILES[_i].frozen + LOOK);
    ck_assert_int_eq(last.source, HF_SOURCE_PING);
    ck_assert_int_eq(last.since, from);
    ck_assert(last.phi >= policy.phi);
}
END_TEST

/* Also where it is not known yet how punctual it is. */
START_TEST(who_is_young_is_found_as_soon)
{
    hf_ms from;

    begin(PROFILES[_i / 6].profile);
    hf_detector_on_listens(&d, true, now);
    pass(_i % 6 * policy.ping_every + LOOK, 10); /* so many answers, and one more */
    hf_detector_on_answer(&d, &policy, now);
    from = now;
    pass(20 * S, -1);
    ck_assert_int_le(frozen_at - from, PROFILES[_i / 6].frozen + 2 * LOOK);
    ck_assert_int_ge(frozen_at - suspect_at, policy.warning);
}
END_TEST

/* A probe fails for ever, and it goes on. */
START_TEST(who_is_suspect_for_something_else_has_habits_too)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_listens(&d, true, now);
    hf_detector_on_probe(&d, true, now);
    hf_detector_on_probe(&d, false, now);
    look();
    hf_detector_on_answer(&d, &policy, now);
    pass(60 * S, 10);
    ck_assert_int_eq(last.state, HF_DETECTOR_SUSPECT);
    ck_assert_uint_ge(d.heard[HF_SOURCE_PING].count, 25);
}
END_TEST

/* Its habits earn it more misses, but twice as many are enough for anybody. */
START_TEST(who_is_unpunctual_by_habit_is_found_later)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_listens(&d, true, now);
    hf_detector_on_answer(&d, &policy, now);
    for (int i = 0; i < HF_DETECTOR_SAMPLES; i++)
        hf_detector_sample(&d.heard[HF_SOURCE_PING], i % 8 == 0 ? 60000 : 100);
    from = now;
    pass(30 * S, -1);
    ck_assert_int_gt(frozen_at - from, 5 * S);
    ck_assert_int_le(frozen_at - from, 3 * S + 3 * 1500 + 4 * LOOK);
}
END_TEST

START_TEST(one_miss_is_never_a_failure)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    pass(2 * S, -1);
    for (int i = 0; i < 40 && last.state == HF_DETECTOR_WELL; i++)
        pass(LOOK, -1);
    ck_assert_int_eq(last.state, HF_DETECTOR_SUSPECT);
    hf_detector_on_answer(&d, &policy, now); /* late */
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
    pass(60 * S, 10);
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
    ck_assert_int_eq(frozen_at, 0);
}
END_TEST

START_TEST(activity_refutes_missing_answers)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    for (int i = 0; i < 100; i++) {
        pass(2 * S, -1);
        hf_detector_on_activity(&d, now);
    }
    ck_assert_int_eq(frozen_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* Also of who has answered once only, so that nothing is known of its habits. */
START_TEST(a_ping_is_not_missed_by_who_did_something_since)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_listens(&d, true, now);
    look();
    hf_detector_on_ping(&d, &policy, now);
    hear_answer();
    for (int i = 0; i < 100; i++) {
        pass(900, -1);
        hf_detector_on_activity(&d, now);
    }
    ck_assert_int_eq(suspect_at, 0);
    for (int i = 0; i < 100; i++) { /* each of them just before a ping would be missed */
        pass(1800, -1);
        hf_detector_on_activity(&d, now);
    }
    ck_assert_int_eq(frozen_at, 0);
    pass(10 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(who_does_not_listen_any_more_is_not_judged_by_pings)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_on_listens(&d, false, now);
    pass(600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
}
END_TEST

START_TEST(a_watchdog_that_was_never_fed_bites_nobody)
{
    begin(HF_DETECTOR_DEFAULT);
    pass(600 * S, -1);
    ck_assert_int_eq(suspect_at, 0);
}
END_TEST

START_TEST(a_watchdog_bites_who_stops_feeding_it)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    feed(HF_SOURCE_WATCHDOG, 15 * S, 80);
    ck_assert_int_eq(suspect_at, 0);
    from = d.heard[HF_SOURCE_WATCHDOG].at;
    pass(40 * S, -1);
    ck_assert_int_eq(suspect_at - from, 25 * S);
    ck_assert_int_ge(frozen_at - from, 30 * S);
    ck_assert_int_le(frozen_at - from, 34 * S);
    ck_assert_int_eq(last.source, HF_SOURCE_WATCHDOG);
}
END_TEST

START_TEST(a_watchdog_may_be_set_by_the_agent)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    hf_detector_set_watchdog(&d, 4 * S);
    feed(HF_SOURCE_WATCHDOG, 2 * S, 20);
    from = d.heard[HF_SOURCE_WATCHDOG].at;
    pass(10 * S, -1);
    ck_assert_int_le(frozen_at - from, 6 * S);
    ck_assert_int_ge(frozen_at - from, 4 * S);
}
END_TEST

/* Until it feeds its watchdog again, as one that is not ended for it may. */
START_TEST(who_says_that_it_hangs_is_believed)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_give_up(&d, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_FROZEN);
    ck_assert_int_eq(last.source, HF_SOURCE_WATCHDOG);
    now += 100; /* another of its threads */
    hf_detector_on_beat(&d, HF_SOURCE_WATCHDOG, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_FROZEN);
    now += 5 * S;
    hf_detector_on_beat(&d, HF_SOURCE_WATCHDOG, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
}
END_TEST

/* The oldest of a thousand fade, and what is known of few is as it was. */
START_TEST(habits_are_those_of_the_last_thousand_intervals)
{
    struct hf_detector_heard heard = { 0 };

    hf_detector_sample(&heard, 1000);
    hf_detector_sample(&heard, 3000);
    ck_assert(fabs(heard.mean - 2000) < 1 && fabs(heard.variance - 1000000) < 1);
    for (int i = 0; i < HF_DETECTOR_SAMPLES; i++)
        hf_detector_sample(&heard, 2000);
    ck_assert_uint_eq(heard.count, HF_DETECTOR_SAMPLES);
    ck_assert(fabs(heard.mean - 2000) < 1 && heard.variance < 10000);
    for (int i = 0; i < 5 * HF_DETECTOR_SAMPLES; i++)
        hf_detector_sample(&heard, 500);
    ck_assert(fabs(heard.mean - 500) < 20);
    hf_detector_sample(&heard, 0);
    hf_detector_sample(&heard, INT64_MAX);
    ck_assert(fabs(heard.mean - 500) < 20);
}
END_TEST

START_TEST(heartbeats_that_stop_make_suspect_and_no_more)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    feed(HF_SOURCE_HEARTBEAT, 30 * S, 20);
    from = d.heard[HF_SOURCE_HEARTBEAT].at;
    pass(3600 * S, -1);
    ck_assert_int_eq(suspect_at - from, 90 * S);
    ck_assert_int_eq(frozen_at, 0);
    hf_detector_on_beat(&d, HF_SOURCE_HEARTBEAT, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
}
END_TEST

START_TEST(heartbeats_convict_where_the_policy_says_so)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    policy.convicts |= 1U << HF_SOURCE_HEARTBEAT;
    feed(HF_SOURCE_HEARTBEAT, 30 * S, 80);
    from = d.heard[HF_SOURCE_HEARTBEAT].at;
    pass(600 * S, -1);
    ck_assert_int_ge(frozen_at - from, 120 * S);
    ck_assert_int_le(frozen_at - from, 130 * S);
}
END_TEST

START_TEST(probes_that_fail_convict_who_was_well_and_does_nothing)
{
    begin(HF_DETECTOR_DEFAULT);
    pass(5 * S, -1);
    for (int i = 0; i < 10; i++) {
        ck_assert(i > 2 || suspect_at == 0); /* it may still begin */
        hf_detector_on_probe(&d, false, now);
        pass(5 * S, -1);
    }
    ck_assert_int_ne(suspect_at, 0);
    ck_assert_int_eq(frozen_at, 0); /* it was never well */
    hf_detector_on_probe(&d, true, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
    for (int i = 0; i < 10; i++) {
        hf_detector_on_probe(&d, false, now);
        pass(2 * S, -1);
        hf_detector_on_activity(&d, now); /* it goes on, though it serves nobody */
        pass(2 * S, -1);
    }
    ck_assert_int_ne(suspect_at, 0);
    ck_assert_int_eq(frozen_at, 0);
    for (int i = 0; i < 3; i++) { /* until it does not go on any more, either */
        ck_assert_int_eq(frozen_at, 0);
        pass(2 * S, -1);
        hf_detector_on_probe(&d, false, now);
        pass(LOOK, -1);
    }
    pass(2 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(who_is_late_itself_believes_a_probe_later)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_probe(&d, true, now);
    us.score = 1;
    for (int i = 0; i < 5; i++) {
        pass(1 * S, -1);
        hf_detector_on_probe(&d, false, now);
        pass(1 * S, -1);
    }
    ck_assert_int_ne(suspect_at, 0);
    ck_assert_int_eq(frozen_at, 0);
    hf_detector_on_probe(&d, false, now);
    pass(3 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(a_good_probe_does_not_speak_for_who_does_not_answer)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    for (int i = 0; i < 10; i++) {
        hf_detector_on_probe(&d, true, now);
        pass(1 * S, -1);
    }
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

START_TEST(a_process_that_is_stopped_is_suspect_and_no_more)
{
    begin(HF_DETECTOR_DEFAULT);
    hf_detector_on_shape(&d, HF_PROCESS_STOPPED, now);
    pass(3600 * S, -1);
    ck_assert_int_eq(suspect_at, 1002 * S);
    ck_assert_int_eq(frozen_at, 0);
    ck_assert_int_eq(last.source, HF_SOURCE_PROCESS);
    hf_detector_on_shape(&d, HF_PROCESS_GOES, now);
    look();
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
}
END_TEST

START_TEST(a_debugger_keeps_an_agent_from_every_verdict)
{
    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    hf_detector_on_shape(&d, HF_PROCESS_TRACED, now);
    pass(3600 * S, -1);
    ck_assert_int_ne(suspect_at, 0);
    ck_assert_int_eq(frozen_at, 0);
    hf_detector_on_shape(&d, HF_PROCESS_GOES, now);
    pass(60 * S, 10);
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
    ck_assert_int_eq(frozen_at, 0);
}
END_TEST

START_TEST(who_waits_for_a_disk_gets_more_time)
{
    hf_ms from;

    begin(HF_DETECTOR_DEFAULT);
    listen_and_answer();
    from = now;
    hf_detector_on_shape(&d, HF_PROCESS_BLOCKED, now);
    pass(60 * S, -1);
    ck_assert_int_le(suspect_at - from, 5 * S);
    ck_assert_int_ge(frozen_at - from, 30 * S);
    ck_assert_int_ne(frozen_at, 0);
}
END_TEST

/* Random histories. */

struct story {
    struct hfs_random random;
    struct hf_detector_debt debt;
    hf_ms waits_until;
    hf_ms answer_at, stall_until, lost, quiet_since;
};

static bool chance(struct story *s, unsigned of)
{
    return hfs_random_below(&s->random, of) == 0;
}

/* It has one thread, and waits for us with it now and then. */
static bool waits(struct story *s)
{
    if (s->debt.turn == 0 && chance(s, 500)) {
        s->debt = hf_detector_on_asked(&d, now);
        s->waits_until = now + (hf_ms)hfs_random_below(&s->random, 30 * S);
    }
    if (s->debt.turn != 0 && now >= s->waits_until)
        hf_detector_on_answered(&d, &policy, &s->debt, now);
    return s->debt.turn != 0;
}

/* A healthy agent: it answers in time, except while it has announced that it does not, while it
 * gets no processor or waits for us, or while we stand still. */
static void live_on(struct story *s)
{
    bool announced = d.announced_until > now, waiting = waits(s);

    if (chance(s, 400))
        hf_detector_announce(&d, now + (hf_ms)hfs_random_below(&s->random, 30 * S), now);
    if (chance(s, 800))
        s->stall_until = now + (hf_ms)hfs_random_below(&s->random, 20 * S);
    us.can_judge = now >= s->stall_until;
    us.score = (uint8_t)hfs_random_below(&s->random, 8);
    if (!waiting && chance(s, 50))
        hf_detector_on_activity(&d, now);
    if (!waiting && chance(s, 300))
        hf_detector_on_beat(&d, HF_SOURCE_WATCHDOG, now);
    if (s->answer_at != 0 && now >= s->answer_at && us.can_judge && !waiting) {
        hf_detector_on_answer(&d, &policy, now);
        s->answer_at = 0;
    }
    look();
    if (!last.ping_due)
        return;
    hf_detector_on_ping(&d, &policy, now);
    if (s->answer_at == 0 && (!announced || !chance(s, 3)))
        s->answer_at = now + 1 + (hf_ms)hfs_random_below(&s->random, 700);
}

START_TEST(nobody_who_is_well_is_ever_frozen_in_any_history)
{
    struct story s = { 0 };

    s.random.state = (uint64_t)_i + 1;
    begin((enum hf_detector_profile)(_i % 3));
    policy.watchdog = 0; /* fed at random, which is no promise */
    hf_detector_on_listens(&d, true, now);
    for (int i = 0; i < 20000; i++, now += LOOK) {
        live_on(&s);
        ck_assert_int_ne(last.state, HF_DETECTOR_FROZEN);
    }
    /* And whoever then hangs is found. */
    us = (struct hf_tilt_view){ .can_judge = true };
    hf_detector_announce(&d, 0, now);
    hf_detector_on_answered(&d, &policy, &s.debt, now);
    hf_detector_on_answer(&d, &policy, now);
    suspect_at = 0;
    pass(30 * S, -1);
    ck_assert_int_ne(frozen_at, 0);
    ck_assert_int_gt(frozen_at, suspect_at);
    ck_assert_int_ge(frozen_at - suspect_at, policy.warning);
}
END_TEST

/* Whatever happens: no verdict without a warning, none in a moment that explains it. */
START_TEST(a_verdict_has_a_warning_before_it_in_any_history)
{
    struct story s = { 0 };
    hf_ms since = 0; /* it is suspect without a break; 0: it is not */

    s.random.state = (uint64_t)_i + 1;
    begin((enum hf_detector_profile)(_i % 3));
    policy.convicts = 0xff;
    hf_detector_on_listens(&d, true, now);
    for (int i = 0; i < 20000; i++, now += 1 + (hf_ms)hfs_random_below(&s.random, 400)) {
        switch (hfs_random_below(&s.random, 40)) {
        case 0: hf_detector_on_answer(&d, &policy, now); break;
        case 1: hf_detector_on_beat(&d, HF_SOURCE_HEARTBEAT, now); break;
        case 2: hf_detector_on_beat(&d, HF_SOURCE_WATCHDOG, now); break;
        case 3: hf_detector_on_probe(&d, chance(&s, 3), now); break;
        case 4:
            hf_detector_on_shape(&d, (enum hf_process_shape)hfs_random_below(&s.random, 4),
                                 now);
            break;
        case 5: us.can_judge = !chance(&s, 4); break;
        case 6: us.score = (uint8_t)hfs_random_below(&s.random, 8); break;
        case 7: hf_detector_on_lost(&d, (hf_ms)hfs_random_below(&s.random, 3000), now); break;
        case 8: hf_detector_on_listens(&d, chance(&s, 2), now); break;
        case 9: hf_detector_announce(&d, chance(&s, 2) ? 0 : now + 5 * S, now); break;
        case 10: s.debt = s.debt.turn == 0 ? hf_detector_on_asked(&d, now) : s.debt; break;
        case 11: hf_detector_on_answered(&d, &policy, &s.debt, now); break;
        case 12: hf_detector_slow(&d, chance(&s, 2) ? 0 : now + 5 * S); break;
        default: break;
        }
        look();
        if (last.ping_due)
            hf_detector_on_ping(&d, &policy, now);
        if (last.state == HF_DETECTOR_WELL)
            since = 0;
        else if (since == 0)
            since = now;
        if (last.state != HF_DETECTOR_FROZEN)
            continue;
        ck_assert_int_ge(now - since, policy.warning);
        ck_assert(us.can_judge);
        ck_assert_int_ne(d.shape, HF_PROCESS_TRACED);
        ck_assert((d.announced_until <= now && d.owed == 0) ||
                  last.source == HF_SOURCE_PROCESS);
    }
}
END_TEST

static const struct {
    const char *want; /* NULL: it is fine */
    hf_ms every, answer;
    uint32_t misses;
    double phi;
} CHECKS[] = {
    { NULL, 2000, 1000, 2, 8 },    { "every", 500, 1000, 2, 8 },
    { "positive", 2000, 0, 2, 8 }, { "one is never a failure", 2000, 1000, 1, 8 },
    { "phi", 2000, 1000, 2, 0.5 }, { "phi", 2000, 1000, 2, NAN },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;

    policy = hf_detector_policy_for(HF_DETECTOR_DEFAULT);
    policy.ping_every = CHECKS[_i].every;
    policy.ping_answer = CHECKS[_i].answer;
    policy.ping_misses = CHECKS[_i].misses;
    policy.phi = CHECKS[_i].phi;
    ck_assert_int_eq(hf_detector_policy_check(&policy, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want != NULL)
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(sources_have_names)
{
    ck_assert_str_eq(hf_source_name(HF_SOURCE_PING), "ping");
    ck_assert_str_eq(hf_source_name(HF_SOURCE_PROCESS), "process");
    ck_assert_str_eq(hf_source_name(HF_SOURCES), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("detector");

    tcase_add_test(t, phi_is_as_the_formula_has_it);
    tcase_add_test(t, phi_grows_with_silence_and_shrinks_with_unpunctuality);
    tcase_add_test(t, who_opted_into_nothing_is_well_however_long_it_is_silent);
    tcase_add_test(t, who_does_not_answer_is_asked_once_a_minute);
    tcase_add_loop_test(t, who_stops_answering_is_suspect_and_then_frozen, 0, COUNT(PROFILES));
    tcase_add_loop_test(t, who_is_young_is_found_as_soon, 0, 6 * COUNT(PROFILES));
    tcase_add_test(t, who_is_suspect_for_something_else_has_habits_too);
    tcase_add_test(t, who_is_unpunctual_by_habit_is_found_later);
    tcase_add_test(t, one_miss_is_never_a_failure);
    tcase_add_test(t, activity_refutes_missing_answers);
    tcase_add_test(t, a_ping_is_not_missed_by_who_did_something_since);
    tcase_add_test(t, who_does_not_listen_any_more_is_not_judged_by_pings);
    tcase_add_test(t, a_watchdog_that_was_never_fed_bites_nobody);
    tcase_add_test(t, a_watchdog_bites_who_stops_feeding_it);
    tcase_add_test(t, a_watchdog_may_be_set_by_the_agent);
    tcase_add_test(t, who_says_that_it_hangs_is_believed);
    tcase_add_test(t, habits_are_those_of_the_last_thousand_intervals);
    tcase_add_test(t, heartbeats_that_stop_make_suspect_and_no_more);
    tcase_add_test(t, heartbeats_convict_where_the_policy_says_so);
    tcase_add_test(t, probes_that_fail_convict_who_was_well_and_does_nothing);
    tcase_add_test(t, who_is_late_itself_believes_a_probe_later);
    tcase_add_test(t, a_good_probe_does_not_speak_for_who_does_not_answer);
    tcase_add_test(t, a_process_that_is_stopped_is_suspect_and_no_more);
    tcase_add_test(t, a_debugger_keeps_an_agent_from_every_verdict);
    tcase_add_test(t, who_waits_for_a_disk_gets_more_time);
    tcase_add_loop_test(t, nobody_who_is_well_is_ever_frozen_in_any_history, 0, 60);
    tcase_add_loop_test(t, a_verdict_has_a_warning_before_it_in_any_history, 0, 60);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, sources_have_names);
    return run("core/detector", t);
}
