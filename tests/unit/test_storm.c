#include <stddef.h>
#include <string.h>

#include "core/storm.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S, HOUR = 60 * MIN, T = 15 * S };

#define NORMAL  HF_STORM_NORMAL
#define PARTIAL HF_STORM_PARTIAL
#define FULL    HF_STORM_FULL

static struct hf_storm begin(hf_ms now)
{
    struct hf_storm_policy p = hf_storm_policy_default();
    struct hf_storm s;

    hf_storm_init(&s, &p, now);
    return s;
}

static struct hf_storm_view look(const struct hf_storm *s, hf_ms now)
{
    struct hf_storm_view view = hf_storm_get(s, now);

    ck_assert_ptr_nonnull(view.why);
    ck_assert_ptr_nonnull(view.next);
    ck_assert_int_eq(view.at == HF_STORM_NEVER, view.state == NORMAL || view.by_person);
    ck_assert_int_gt(view.at, now);
    ck_assert_int_eq(view.grace_factor, view.state == NORMAL ? 1 : 2);
    return view;
}

static void expect(const struct hf_storm *s, hf_ms now, enum hf_storm_state state,
                   const char *why)
{
    struct hf_storm_view view = look(s, now);

    ck_assert_str_eq(hf_storm_state_name(view.state), hf_storm_state_name(state));
    ck_assert_msg(strstr(view.why, why) != NULL, "%s", view.why);
}

/* `count` of 100 hosts vanish while `live` are left. */
static void lose(struct hf_storm *s, uint32_t count, uint32_t live, hf_ms now)
{
    hf_storm_on_lost(s, count, &(struct hf_storm_facts){ .hosts = 100, .live = live }, now);
}

static void prove(struct hf_storm *s, hf_ms from, hf_ms to)
{
    for (hf_ms at = from; at <= to; at += 5 * S)
        hf_storm_on_proof(s, true, at);
}

static int take_all(struct hf_storm *s, uint32_t agents, hf_ms now)
{
    int taken = 0;

    while (hf_storm_take(s, HF_STORM_RESTART_UNSEEN, agents, now).allowed)
        taken++;
    return taken;
}

START_TEST(without_losses_all_is_normal)
{
    struct hf_storm s = begin(0);

    expect(&s, 0, NORMAL, "no more hosts");
    expect(&s, 100 * HOUR, NORMAL, "no more hosts");
    hf_storm_on_back(&s, 1 * S);
    hf_storm_on_proof(&s, true, 2 * S);
    hf_storm_on_proof(&s, false, 3 * S);
    hf_storm_on_proceed(&s, 4 * S);
    expect(&s, 4 * S, NORMAL, "no more hosts");
}
END_TEST

static const struct {
    uint32_t lost, hosts, live;
    enum hf_storm_state want;
} LOSSES[] = {
    { 1, 100, 99, NORMAL },   { 29, 100, 71, NORMAL }, { 30, 100, 70, PARTIAL },
    { 79, 100, 21, PARTIAL }, { 80, 100, 20, FULL },   { 100, 100, 0, FULL },
    { 2, 2, 0, FULL },        { 1, 1, 0, FULL },       { 1, 2, 1, NORMAL },
    { 2, 3, 1, NORMAL },      { 3, 10, 7, PARTIAL },   { 3, 11, 8, NORMAL },
    { 4, 5, 1, FULL },        { 0, 5, 0, NORMAL },     { 3, 0, 0, NORMAL },
};

START_TEST(what_is_lost_at_once_decides)
{
    struct hf_storm s = begin(0);
    struct hf_storm_facts facts = { .hosts = LOSSES[_i].hosts, .live = LOSSES[_i].live };

    hf_storm_on_lost(&s, LOSSES[_i].lost, &facts, 1 * S);
    expect(&s, 1 * S, LOSSES[_i].want, "");
}
END_TEST

START_TEST(losses_count_together_within_ten_seconds)
{
    struct hf_storm s = begin(0);

    lose(&s, 15, 85, 100 * S);
    lose(&s, 15, 70, 109 * S);
    expect(&s, 109 * S, PARTIAL, "many hosts");

    s = begin(0);
    lose(&s, 15, 85, 100 * S);
    lose(&s, 15, 70, 110 * S);
    expect(&s, 110 * S, NORMAL, "");

    s = begin(0);
    for (uint32_t i = 0; i < 20; i++) /* the same share, but spread */
        lose(&s, 5, 95 - 4 * i, 100 * S + i * 2 * S);
    expect(&s, 140 * S, NORMAL, "");
}
END_TEST

START_TEST(partial_lasts_a_minute_after_the_last_loss_of_the_storm)
{
    struct hf_storm s = begin(0);

    lose(&s, 40, 60, 10 * S);
    lose(&s, 1, 59, 15 * S);
    ck_assert_int_eq(look(&s, 20 * S).at, 75 * S);
    ck_assert_int_eq(look(&s, 20 * S).since, 10 * S);
    lose(&s, 1, 58, 30 * S); /* no longer the same */
    expect(&s, 75 * S - 1, PARTIAL, "many hosts");
    expect(&s, 75 * S, NORMAL, "");
}
END_TEST

static const struct {
    enum hf_storm_doubt doubt;
    const char *why;
} DOUBTS[] = {
    { HF_STORM_DOUBT_TERM, "leader" },     { HF_STORM_DOUBT_UNREST, "again and again" },
    { HF_STORM_DOUBT_SPACE, "space" },     { HF_STORM_DOUBT_CORRUPT, "different data" },
    { HF_STORM_DOUBT_HISTORY, "history" }, { (enum hf_storm_doubt)99, "?" },
};

START_TEST(doubt_lasts_a_ttl_and_five_seconds)
{
    struct hf_storm s = begin(0);

    hf_storm_on_doubt(&s, DOUBTS[_i].doubt, T, 10 * S);
    expect(&s, 10 * S, PARTIAL, DOUBTS[_i].why);
    ck_assert_int_eq(look(&s, 12 * S).at, 30 * S);
    hf_storm_on_doubt(&s, DOUBTS[_i].doubt, 1 * S, 12 * S); /* shortens nothing */
    expect(&s, 30 * S - 1, PARTIAL, DOUBTS[_i].why);
    expect(&s, 30 * S, NORMAL, "");
    ck_assert(!hf_storm_take_alert(&s));
}
END_TEST

START_TEST(full_ends_when_somebody_is_back_and_suspicions_count_anew)
{
    struct hf_storm s = begin(0);

    lose(&s, 100, 0, 10 * S);
    expect(&s, 10 * S, FULL, "no host is left");
    ck_assert_int_eq(look(&s, 10 * S).anew, 0);
    hf_storm_on_back(&s, 12 * S);
    expect(&s, 12 * S, PARTIAL, "came back");
    ck_assert_int_eq(look(&s, 12 * S).anew, 12 * S);
    ck_assert_int_eq(look(&s, 12 * S).since, 12 * S);
    hf_storm_on_back(&s, 14 * S); /* the next ones are nothing special */
    ck_assert_int_eq(look(&s, 14 * S).anew, 12 * S);
    expect(&s, 72 * S, NORMAL, "");
}
END_TEST

START_TEST(full_ends_when_etcd_was_proven_well_for_a_minute)
{
    struct hf_storm s = begin(0);

    prove(&s, 0, 10 * S); /* what was before does not count */
    lose(&s, 85, 15, 11 * S);
    expect(&s, 11 * S, FULL, "nearly all");
    prove(&s, 15 * S, 70 * S);
    expect(&s, 70 * S, FULL, "nearly all");
    ck_assert_int_eq(look(&s, 70 * S).at, 71 * S);
    hf_storm_on_proof(&s, true, 71 * S);
    expect(&s, 71 * S, PARTIAL, "proven well");
    ck_assert_int_eq(look(&s, 71 * S).anew, 0);
    expect(&s, 131 * S, NORMAL, "");
}
END_TEST

START_TEST(silence_and_doubt_prove_nothing)
{
    struct hf_storm s = begin(0);

    lose(&s, 85, 15, 0);
    expect(&s, 59 * MIN, FULL, "nearly all"); /* nobody says that etcd is well */
    ck_assert_int_eq(look(&s, 59 * MIN).at, 1 * HOUR);

    prove(&s, 10 * S, 60 * S);
    hf_storm_on_proof(&s, true, 86 * S); /* too long after the last */
    expect(&s, 86 * S, FULL, "nearly all");
    ck_assert_int_eq(look(&s, 86 * S).at, 146 * S);
    prove(&s, 90 * S, 140 * S);
    hf_storm_on_proof(&s, false, 144 * S);
    hf_storm_on_proof(&s, true, 146 * S);
    expect(&s, 146 * S, FULL, "nearly all");
    prove(&s, 150 * S, 200 * S);
    hf_storm_on_doubt(&s, HF_STORM_DOUBT_TERM, T, 204 * S);
    prove(&s, 206 * S, 265 * S);
    expect(&s, 265 * S, FULL, "nearly all");
    ck_assert_int_eq(look(&s, 265 * S).at, 266 * S);
    ck_assert_int_eq(look(&s, 267 * S).at, 1 * HOUR); /* it was not proven when it was due */
    hf_storm_on_proof(&s, true, 268 * S);
    expect(&s, 268 * S, PARTIAL, "proven well");
}
END_TEST

START_TEST(nothing_is_held_for_longer_than_an_hour)
{
    struct hf_storm s = begin(0);

    lose(&s, 100, 0, 10 * S);
    expect(&s, 1 * HOUR + 10 * S - 1, FULL, "no host is left");
    expect(&s, 1 * HOUR + 10 * S, PARTIAL, "as long as may be");
    ck_assert_int_eq(look(&s, 1 * HOUR + 11 * S).since, 1 * HOUR + 10 * S);
    ck_assert_int_eq(look(&s, 1 * HOUR + 11 * S).at, 1 * HOUR + 70 * S);
    lose(&s, 100, 0, 1 * HOUR + 20 * S); /* the same episode */
    expect(&s, 1 * HOUR + 20 * S, PARTIAL, "many hosts");
    expect(&s, 1 * HOUR + 80 * S, NORMAL, "");
    lose(&s, 100, 0, 2 * HOUR); /* another one */
    expect(&s, 2 * HOUR, FULL, "no host is left");
}
END_TEST

START_TEST(holds_of_one_episode_add_up_and_one_that_flaps_does_not_protect_the_others)
{
    struct hf_storm s = begin(0);
    hf_ms now = 0;
    int held = 0;

    for (; now < 3 * HOUR; now += 30 * S) { /* held for 20 s, then for 10 s not */
        lose(&s, 1, 0, now);
        held += look(&s, now).state == FULL;
        hf_storm_on_back(&s, now + 20 * S);
    }
    ck_assert_int_eq(held, 180);
    ck_assert_int_le(look(&s, now).anew, 1 * HOUR);
    ck_assert_int_gt(look(&s, now).anew, 1 * HOUR - 1 * MIN);
}
END_TEST

START_TEST(who_begins_anew_keeps_doubt_and_what_a_person_holds_and_nothing_else)
{
    struct hf_storm s = begin(0);

    lose(&s, 100, 0, 1 * MIN);
    hf_storm_on_begin(&s, 2 * MIN);
    expect(&s, 2 * MIN, NORMAL, "");
    ck_assert_int_eq(take_all(&s, 10, 2 * MIN), 0);
    lose(&s, 2, 98, 2 * MIN); /* what was lost before does not count */
    expect(&s, 2 * MIN, NORMAL, "");

    hf_storm_on_doubt(&s, HF_STORM_DOUBT_HISTORY, T, 3 * MIN);
    hf_storm_on_begin(&s, 3 * MIN + 1 * S);
    expect(&s, 3 * MIN + 1 * S, PARTIAL, "history");
    ck_assert_int_eq(look(&s, 3 * MIN + 1 * S).at, 3 * MIN + 20 * S);
    ck_assert_int_eq(look(&s, 3 * MIN + 1 * S).since, 3 * MIN);

    hf_storm_on_hold(&s, 4 * MIN);
    hf_storm_on_begin(&s, 5 * MIN);
    expect(&s, 5 * MIN, FULL, "a person holds it");
    ck_assert_int_eq(look(&s, 5 * MIN).since, 4 * MIN);
    hf_storm_on_begin(&s, 2 * HOUR);
    expect(&s, 2 * HOUR, FULL, "a person holds it");
}
END_TEST

START_TEST(full_is_entered_by_a_loss_alone)
{
    struct hf_storm s = begin(0);
    struct hf_storm_facts nobody = { .hosts = 5, .live = 0 };

    hf_storm_on_lost(&s, 0, &nobody, 1 * S); /* a fleet that is not there yet */
    hf_storm_on_doubt(&s, HF_STORM_DOUBT_TERM, T, 2 * S);
    hf_storm_on_proof(&s, false, 3 * S);
    expect(&s, 3 * S, PARTIAL, "leader");
    hf_storm_on_lost(&s, 1, &nobody, 4 * S);
    prove(&s, 5 * S, 70 * S);
    expect(&s, 70 * S, PARTIAL, "proven well"); /* still nobody, but that is known by now */
    expect(&s, 200 * S, NORMAL, "");
}
END_TEST

START_TEST(a_person_decides_sooner)
{
    struct hf_storm s = begin(0);

    lose(&s, 90, 10, 10 * S);
    hf_storm_on_proceed(&s, 11 * S);
    expect(&s, 11 * S, PARTIAL, "person");
    lose(&s, 2, 8, 12 * S); /* what came before is forgotten */
    expect(&s, 12 * S, PARTIAL, "person");
    hf_storm_on_proceed(&s, 13 * S);
    expect(&s, 13 * S, NORMAL, "");
}
END_TEST

START_TEST(what_a_person_holds_only_a_person_lets_go)
{
    struct hf_storm s = begin(0);

    hf_storm_on_hold(&s, 10 * S);
    expect(&s, 10 * S, FULL, "a person holds it");
    hf_storm_on_back(&s, 11 * S);
    prove(&s, 12 * S, 100 * S);
    lose(&s, 100, 0, 100 * S);
    expect(&s, 100 * S, FULL, "a person holds it");
    ck_assert_int_eq(look(&s, 100 * S).at, HF_STORM_NEVER);
    ck_assert(look(&s, 100 * S).by_person);
    expect(&s, 2 * HOUR + 10 * S, FULL, "a person holds it");
    expect(&s, 500 * HOUR, FULL, "a person holds it");
    ck_assert(!hf_storm_take(&s, HF_STORM_RESTART_UNSEEN, 10, 500 * HOUR).allowed);
    hf_storm_on_proceed(&s, 501 * HOUR);
    expect(&s, 501 * HOUR, PARTIAL, "person");
}
END_TEST

START_TEST(how_long_a_person_held_it_does_not_count_against_the_guard)
{
    struct hf_storm s = begin(0);

    lose(&s, 100, 0, 0);
    ck_assert(!look(&s, 30 * MIN).by_person);
    hf_storm_on_hold(&s, 30 * MIN); /* takes over, and has no end */
    expect(&s, 3 * HOUR, FULL, "a person holds it");
    hf_storm_on_proceed(&s, 3 * HOUR);
    expect(&s, 3 * HOUR, PARTIAL, "person");
    lose(&s, 100, 0, 3 * HOUR + 1 * S); /* has an hour of its own */
    expect(&s, 3 * HOUR + 1 * S, FULL, "no host is left");
    ck_assert_int_eq(look(&s, 3 * HOUR + 1 * S).at, 4 * HOUR + 1 * S);
}
END_TEST

START_TEST(one_storm_is_told_once_and_once_more_if_it_gets_worse)
{
    struct hf_storm s = begin(0);

    ck_assert(!hf_storm_take_alert(&s));
    for (uint32_t i = 0; i < 79; i++)
        lose(&s, 1, 99 - i, 10 * S + i);
    ck_assert(hf_storm_take_alert(&s));
    ck_assert(!hf_storm_take_alert(&s));
    for (uint32_t i = 79; i < 100; i++)
        lose(&s, 1, 99 - i, 11 * S + i);
    hf_storm_on_back(&s, 12 * S); /* over before anybody asked */
    ck_assert(hf_storm_take_alert(&s));
    lose(&s, 100, 0, 13 * S);
    ck_assert(!hf_storm_take_alert(&s));
    lose(&s, 50, 50, 10 * HOUR);
    ck_assert(hf_storm_take_alert(&s));

    s = begin(0);
    hf_storm_on_hold(&s, 1 * S);
    ck_assert(!hf_storm_take_alert(&s));
}
END_TEST

START_TEST(a_new_leader_has_nothing_saved_up)
{
    struct hf_storm s = begin(100 * S);

    ck_assert_int_eq(take_all(&s, 10, 100 * S), 0);
    struct hf_storm_decision d = hf_storm_take(&s, HF_STORM_RESTART_UNSEEN, 10, 100 * S);
    ck_assert(!d.allowed);
    ck_assert_int_eq(d.at, 100 * S + 100);
    ck_assert_msg(strstr(d.why, "first") != NULL, "%s", d.why);
    ck_assert_int_eq(take_all(&s, 10, 100 * S + 99), 0);
    ck_assert_int_eq(take_all(&s, 10, 100 * S + 100), 1);
    ck_assert_int_eq(take_all(&s, 10, 101 * S), 9);
    ck_assert_int_eq(take_all(&s, 10, 1 * HOUR), 50);
}
END_TEST

static const struct {
    uint32_t agents;
    int normal, partial; /* in 24 s of hunger */
} RATES[] = {
    { 0, 240, 24 },     { 10, 240, 24 },       { 600, 240, 60 },
    { 1200, 480, 120 }, { 10000, 4000, 1000 }, { UINT32_MAX, 0, 0 },
};

START_TEST(the_rate_follows_the_size_of_the_fleet)
{
    struct hf_storm s = begin(0);
    uint32_t agents = RATES[_i].agents;
    int64_t taken = 0;

    if (agents > 100000) { /* only that nothing overflows */
        ck_assert_int_eq(take_all(&s, agents, 24 * S), 50);
        ck_assert_int_eq(hf_storm_take(&s, HF_STORM_RESET_UNSEEN, agents, 24 * S).at,
                         24 * S + 1);
        return;
    }
    for (hf_ms now = 0; now <= 24 * S; now++)
        taken += take_all(&s, agents, now);
    ck_assert_int_le(taken, RATES[_i].normal);
    ck_assert_int_ge(taken, RATES[_i].normal - 1);

    s = begin(0);
    taken = 0;
    hf_storm_on_doubt(&s, HF_STORM_DOUBT_SPACE, 1 * HOUR, 0);
    for (hf_ms now = 0; now <= 24 * S; now++)
        taken += take_all(&s, agents, now);
    ck_assert_int_le(taken, RATES[_i].partial);
    ck_assert_int_ge(taken, RATES[_i].partial - 1);
}
END_TEST

START_TEST(what_was_saved_up_does_not_survive_the_beginning_of_a_storm)
{
    struct hf_storm s = begin(0);

    ck_assert(hf_storm_take(&s, HF_STORM_RESTART_UNSEEN, 10, 1 * MIN).allowed);
    lose(&s, 50, 50, 2 * MIN);
    ck_assert_int_eq(take_all(&s, 10, 2 * MIN), 5);
    struct hf_storm_decision d = hf_storm_take(&s, HF_STORM_RESTART_UNSEEN, 10, 2 * MIN);
    ck_assert_int_eq(d.at, 2 * MIN + 1 * S);
    ck_assert_msg(strstr(d.why, "many hosts") != NULL, "%s", d.why);
}
END_TEST

START_TEST(only_what_rests_on_silence_is_paced)
{
    static const struct {
        enum hf_storm_act act;
        bool paced;
        const char *name;
    } ACTS[] = {
        { HF_STORM_RESTART_UNSEEN, true, "RESTART_UNSEEN" },
        { HF_STORM_RESET_UNSEEN, true, "RESET_UNSEEN" },
        { HF_STORM_RESTART_SEEN, false, "RESTART_SEEN" },
        { HF_STORM_RESET_SEEN, false, "RESET_SEEN" },
        { HF_STORM_PROMOTE, false, "PROMOTE" },
        { (enum hf_storm_act)99, true, "?" },
    };
    struct hf_storm s = begin(0);

    lose(&s, 100, 0, 1 * HOUR);
    for (size_t i = 0; i < COUNT(ACTS); i++)
        for (int again = 0; again < 100; again++) {
            struct hf_storm_decision d = hf_storm_take(&s, ACTS[i].act, 10, 1 * HOUR + 1 * S);

            ck_assert_int_eq(d.allowed, !ACTS[i].paced);
            ck_assert_int_eq(d.at, d.allowed ? 1 * HOUR + 1 * S : 2 * HOUR);
            ck_assert_ptr_nonnull(d.why);
            ck_assert_ptr_nonnull(d.next);
            ck_assert_str_eq(hf_storm_act_name(ACTS[i].act), ACTS[i].name);
        }
}
END_TEST

START_TEST(a_stall_of_etcd_gives_nobody_up)
{
    struct hf_storm s = begin(0);

    hf_storm_on_doubt(&s, HF_STORM_DOUBT_TERM, T, 99 * S);
    for (uint32_t i = 0; i < 100; i++) /* all leases at once, although all had been renewed */
        lose(&s, 1, 99 - i, 100 * S);
    ck_assert(hf_storm_take_alert(&s));
    ck_assert(!hf_storm_take(&s, HF_STORM_RESTART_UNSEEN, 1000, 100 * S).allowed);
    for (hf_ms i = 0; i < 100; i++)
        hf_storm_on_back(&s, 100 * S + 20 * i);
    ck_assert_int_eq(look(&s, 103 * S).anew, 100 * S);
    expect(&s, 103 * S, PARTIAL, "came back");
    ck_assert(!hf_storm_take_alert(&s));
    expect(&s, 170 * S, NORMAL, "");
}
END_TEST

START_TEST(states_have_names)
{
    ck_assert_str_eq(hf_storm_state_name(NORMAL), "NORMAL");
    ck_assert_str_eq(hf_storm_state_name(PARTIAL), "PARTIAL");
    ck_assert_str_eq(hf_storm_state_name(FULL), "FULL");
    ck_assert_str_eq(hf_storm_state_name((enum hf_storm_state)99), "?");
}
END_TEST

#define BREAK(field, value)                                                                    \
    offsetof(struct hf_storm_policy, field), sizeof(((struct hf_storm_policy *)0)->field),     \
        (value)

static const struct {
    size_t offset, size;
    int64_t value;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { BREAK(lost_min, 1), NULL },
    { BREAK(window, 19), "window" },
    { BREAK(window, 24 * HOUR + 1), "window" },
    { BREAK(lost_min, 0), "lost_min" },
    { BREAK(partial_percent, 0), "partial_percent" },
    { BREAK(partial_percent, 81), "partial_percent" },
    { BREAK(full_percent, 101), "full_percent" },
    { BREAK(grace_factor, 0), "grace_factor" },
    { BREAK(normal.per_second, 1000001), "normal" },
    { BREAK(normal.burst, 1000001), "normal" },
    { BREAK(partial.per_second, 0), "let something through" },
    { BREAK(partial.burst, 0), "let something through" },
    { BREAK(normal.all_within, 0), "all_within" },
    { BREAK(partial.all_within, 24 * HOUR + 1), "all_within" },
    { BREAK(partial.per_second, 11), "faster" },
    { BREAK(partial.burst, 51), "faster" },
    { BREAK(partial.all_within, 59 * S), "faster" },
    { BREAK(partial_for, 0), "partial_for" },
    { BREAK(well_for, 0), "well_for" },
    { BREAK(hold_max, 24 * HOUR + 1), "hold_max" },
    { BREAK(doubt_margin, -1), "doubt_margin" },
    { BREAK(doubt_margin, 24 * HOUR + 1), "doubt_margin" },
    { BREAK(proof_every, 0), "proof_every" },
    { BREAK(proof_every, 61 * S), "proof_every" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    struct hf_storm_policy p = hf_storm_policy_default();
    const char *why = NULL;

    memcpy((char *)&p + CHECKS[_i].offset, &CHECKS[_i].value, CHECKS[_i].size);
    ck_assert_int_eq(hf_storm_policy_check(&p, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("storm");

    tcase_add_test(t, without_losses_all_is_normal);
    tcase_add_loop_test(t, what_is_lost_at_once_decides, 0, COUNT(LOSSES));
    tcase_add_test(t, losses_count_together_within_ten_seconds);
    tcase_add_test(t, partial_lasts_a_minute_after_the_last_loss_of_the_storm);
    tcase_add_loop_test(t, doubt_lasts_a_ttl_and_five_seconds, 0, COUNT(DOUBTS));
    tcase_add_test(t, full_ends_when_somebody_is_back_and_suspicions_count_anew);
    tcase_add_test(t, full_ends_when_etcd_was_proven_well_for_a_minute);
    tcase_add_test(t, silence_and_doubt_prove_nothing);
    tcase_add_test(t, nothing_is_held_for_longer_than_an_hour);
    tcase_add_test(t,
                   holds_of_one_episode_add_up_and_one_that_flaps_does_not_protect_the_others);
    tcase_add_test(t, who_begins_anew_keeps_doubt_and_what_a_person_holds_and_nothing_else);
    tcase_add_test(t, full_is_entered_by_a_loss_alone);
    tcase_add_test(t, a_person_decides_sooner);
    tcase_add_test(t, what_a_person_holds_only_a_person_lets_go);
    tcase_add_test(t, how_long_a_person_held_it_does_not_count_against_the_guard);
    tcase_add_test(t, one_storm_is_told_once_and_once_more_if_it_gets_worse);
    tcase_add_test(t, a_new_leader_has_nothing_saved_up);
    tcase_add_loop_test(t, the_rate_follows_the_size_of_the_fleet, 0, COUNT(RATES));
    tcase_add_test(t, what_was_saved_up_does_not_survive_the_beginning_of_a_storm);
    tcase_add_test(t, only_what_rests_on_silence_is_paced);
    tcase_add_test(t, a_stall_of_etcd_gives_nobody_up);
    tcase_add_test(t, states_have_names);
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    return run("core/storm", t);
}
