#include "unit/election_fixture.h"

/* Everything that can be known of the key, under every worth of the lease. */
enum fact { UNREAD, ABSENT, UNCERTAIN, OTHERS, OURS, DOUBTED, GIVEN_UP };
enum worth { NONE, SPENT, UNPROVEN, PROVEN };

static struct hf_election situation(enum fact fact, enum worth worth, bool stands)
{
    struct hf_election e = standing();

    e.read = fact != UNREAD && fact != UNCERTAIN;
    e.key = fact == OTHERS ? held(OTHER, 20) : absent(20);
    if (fact == OURS || fact == DOUBTED || fact == GIVEN_UP)
        e.key = held(MINE, 20);
    e.resigned = fact == GIVEN_UP ? 20 : 0;
    e.uncertain = fact == UNCERTAIN;
    e.doubted = fact == DOUBTED;
    e.lease = worth == NONE ? 0 : MINE;
    e.spent = worth == SPENT ? MINE : 0;
    e.proven_until = worth == PROVEN ? LONG : NOW;
    e.standing = stands;
    return e;
}

#define F HF_ELECTION_FOLLOWER
#define C HF_ELECTION_CANDIDATE
#define S HF_ELECTION_SUSPENDED
#define L HF_ELECTION_LEADER
#define R HF_ELECTION_RESIGNING

static const struct {
    enum fact fact;
    enum worth worth;
    struct {
        enum hf_election_state state;
        enum hf_election_what what;
    } standing, withdrawn;
} SITUATIONS[] = {
    { UNREAD, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { UNREAD, SPENT, { F, HF_ELECTION_NEW_LEASE }, { F, HF_ELECTION_NONE } },
    { UNREAD, UNPROVEN, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { UNREAD, PROVEN, { C, HF_ELECTION_VERIFY }, { F, HF_ELECTION_NONE } },
    { ABSENT, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { ABSENT, SPENT, { F, HF_ELECTION_NEW_LEASE }, { F, HF_ELECTION_NONE } },
    { ABSENT, UNPROVEN, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { ABSENT, PROVEN, { C, HF_ELECTION_CAMPAIGN }, { F, HF_ELECTION_NONE } },
    { UNCERTAIN, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { UNCERTAIN, SPENT, { F, HF_ELECTION_NEW_LEASE }, { R, HF_ELECTION_VERIFY } },
    { UNCERTAIN, UNPROVEN, { C, HF_ELECTION_NONE }, { R, HF_ELECTION_VERIFY } },
    { UNCERTAIN, PROVEN, { C, HF_ELECTION_VERIFY }, { R, HF_ELECTION_VERIFY } },
    { OTHERS, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { OTHERS, SPENT, { F, HF_ELECTION_NEW_LEASE }, { F, HF_ELECTION_NONE } },
    { OTHERS, UNPROVEN, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { OTHERS, PROVEN, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { OURS, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { OURS, SPENT, { F, HF_ELECTION_NEW_LEASE }, { R, HF_ELECTION_RESIGN } },
    { OURS, UNPROVEN, { S, HF_ELECTION_NONE }, { R, HF_ELECTION_RESIGN } },
    { OURS, PROVEN, { L, HF_ELECTION_NONE }, { R, HF_ELECTION_RESIGN } },
    { DOUBTED, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { DOUBTED, SPENT, { F, HF_ELECTION_NEW_LEASE }, { R, HF_ELECTION_RESIGN } },
    { DOUBTED, UNPROVEN, { S, HF_ELECTION_NONE }, { R, HF_ELECTION_RESIGN } },
    { DOUBTED, PROVEN, { S, HF_ELECTION_VERIFY }, { R, HF_ELECTION_RESIGN } },
    { GIVEN_UP, NONE, { F, HF_ELECTION_NONE }, { F, HF_ELECTION_NONE } },
    { GIVEN_UP, SPENT, { F, HF_ELECTION_NEW_LEASE }, { R, HF_ELECTION_RESIGN } },
    { GIVEN_UP, UNPROVEN, { R, HF_ELECTION_RESIGN }, { R, HF_ELECTION_RESIGN } },
    { GIVEN_UP, PROVEN, { R, HF_ELECTION_RESIGN }, { R, HF_ELECTION_RESIGN } },
};

START_TEST(what_is_known_decides)
{
    struct hf_election e = situation(SITUATIONS[_i].fact, SITUATIONS[_i].worth, true);

    ck_assert_int_eq(state(&e, NOW), SITUATIONS[_i].standing.state);
    ck_assert_int_eq(what(&e, NOW), SITUATIONS[_i].standing.what);
    ck_assert_int_eq(hf_election_can_act(&e, NOW), SITUATIONS[_i].standing.state == L);

    e = situation(SITUATIONS[_i].fact, SITUATIONS[_i].worth, false);
    ck_assert_int_eq(state(&e, NOW), SITUATIONS[_i].withdrawn.state);
    ck_assert_int_eq(what(&e, NOW), SITUATIONS[_i].withdrawn.what);
}
END_TEST

START_TEST(who_does_not_stand_does_nothing)
{
    struct hf_election_policy p = hf_election_policy_default();
    struct hf_election e;

    hf_election_init(&e, &p);
    hf_election_on_lease(&e, MINE, LONG, NOW);
    observe(&e, absent(10), NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), HF_ELECTION_NEVER);
}
END_TEST

START_TEST(a_key_that_was_deleted_is_campaigned_for_after_a_random_wait)
{
    hf_ms first = LONG, last = 0;

    for (uint32_t random = 0; random < 2000; random++) {
        struct hf_election e = standing();
        struct hf_election_key gone = absent(30);

        observe(&e, held(OTHER, 20), NOW);
        ck_assert_int_eq(hf_election_on_observed(&e, &gone, NOW, random), HF_OK);
        ck_assert_int_eq(state(&e, NOW), HF_ELECTION_CANDIDATE);
        hf_ms at = hf_election_deadline(&e, NOW);
        ck_assert_int_eq(what(&e, at), HF_ELECTION_CAMPAIGN);
        ck_assert(at == NOW || what(&e, at - 1) == HF_ELECTION_NONE);
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    ck_assert_int_eq(first, NOW);
    ck_assert_int_eq(last, NOW + 500);
}
END_TEST

START_TEST(a_deletion_that_is_told_twice_does_not_prolong_the_wait)
{
    struct hf_election e = standing();
    struct hf_election_key gone = absent(30);

    ck_assert_int_eq(hf_election_on_observed(&e, &gone, NOW, 300), HF_OK);
    ck_assert_int_eq(hf_election_on_observed(&e, &gone, NOW + 200, 300), HF_OK);
    ck_assert_int_eq(hf_election_deadline(&e, NOW + 200), NOW + 300);
}
END_TEST

START_TEST(the_winner_leads_with_the_create_revision_as_term)
{
    struct hf_election e = leading();
    struct hf_election_step step = hf_election_next(&e, NOW);

    ck_assert_int_eq(step.state, HF_ELECTION_LEADER);
    ck_assert_int_eq(step.term, 20);
    ck_assert_int_eq(step.lease, MINE);
    ck_assert_int_eq(step.what, HF_ELECTION_NONE);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), LONG);
}
END_TEST

START_TEST(the_loser_follows_and_waits_for_the_deletion)
{
    struct hf_election e = campaigning();

    answer(&e, held(OTHER, 19), NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(hf_election_next(&e, NOW).term, 0);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NONE);
}
END_TEST

START_TEST(who_hears_nothing_of_the_leaders_key_for_long_reads_it)
{
    struct hf_election e = campaigning();
    hf_ms later = NOW + 30000;

    answer(&e, held(OTHER, 19), NOW);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), later);
    ck_assert_int_eq(what(&e, later - 1), HF_ELECTION_NONE);
    ck_assert_int_eq(what(&e, later), HF_ELECTION_VERIFY);
    ck_assert_int_eq(state(&e, later), HF_ELECTION_FOLLOWER);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, later);
    answer(&e, held(OTHER, 19), later);
    ck_assert_int_eq(what(&e, later + 29999), HF_ELECTION_NONE);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, later + 30000);
    answer(&e, absent(25), later + 30000);
    ck_assert_int_eq(what(&e, later + 31000), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(the_watch_may_tell_of_the_victory_before_the_answer)
{
    struct hf_election e = campaigning();

    observe(&e, held(MINE, 20), NOW);
    ck_assert(hf_election_can_act(&e, NOW));
    answer(&e, held(MINE, 20), NOW + 5);
    ck_assert(hf_election_can_act(&e, NOW + 5));
}
END_TEST

START_TEST(an_unknown_outcome_is_resolved_by_reading_the_key)
{
    struct hf_election e = campaigning();

    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_CANDIDATE);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NONE);
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    ck_assert(!hf_election_can_act(&e, NOW));
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NONE);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), NOW + 250);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_VERIFY);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW + 250);
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW + 300);
    ck_assert_int_eq(hf_election_deadline(&e, NOW + 300), NOW + 550);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW + 550);

    struct hf_election copy = e;
    answer(&copy, held(MINE, 20), NOW + 600);
    ck_assert(hf_election_can_act(&copy, NOW + 600));
    copy = e;
    answer(&copy, held(OTHER, 20), NOW + 600);
    ck_assert_int_eq(state(&copy, NOW + 600), HF_ELECTION_FOLLOWER);
    copy = e;
    answer(&copy, absent(10), NOW + 600); /* nothing was written since the campaign */
    ck_assert_int_eq(what(&copy, NOW + 600), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(news_from_the_watch_resolve_an_unknown_outcome_as_well)
{
    struct hf_election e = campaigning();

    observe(&e, absent(11), NOW); /* may be from before the campaign arrived */
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_VERIFY);
    observe(&e, absent(11), NOW + 250); /* no news */
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_VERIFY);
    observe(&e, absent(12), NOW + 250);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(a_stale_reading_does_not_resolve_an_unknown_outcome)
{
    struct hf_election e = campaigning();

    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW + 250);
    answer(&e, absent(9), NOW + 260);
    ck_assert_int_eq(hf_election_deadline(&e, NOW + 260), NOW + 510);
    ck_assert_int_eq(what(&e, NOW + 510), HF_ELECTION_VERIFY);
}
END_TEST

START_TEST(a_campaign_that_took_effect_late_still_wins)
{
    struct hf_election e = campaigning();

    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW + 250);
    answer(&e, absent(15), NOW + 260);
    hf_election_on_sent(&e, HF_ELECTION_CAMPAIGN, NOW + 260);
    answer(&e, (struct hf_election_key){ 21, true, MINE, 20 }, NOW + 270); /* refused: by us */
    ck_assert(hf_election_can_act(&e, NOW + 270));
    ck_assert_int_eq(hf_election_next(&e, NOW + 270).term, 20);
}
END_TEST

START_TEST(an_answer_that_the_watch_overtook_makes_no_leader)
{
    struct hf_election e = campaigning();

    observe(&e, held(MINE, 20), NOW);
    observe(&e, absent(25), NOW + 1);
    answer(&e, held(MINE, 20), NOW + 2);
    ck_assert(!hf_election_can_act(&e, NOW + 2));
    ck_assert_int_eq(what(&e, NOW + 2), HF_ELECTION_NEW_LEASE);
}
END_TEST

START_TEST(a_victory_under_a_lease_that_was_lost_makes_no_leader)
{
    struct hf_election e = campaigning();

    hf_election_on_lease(&e, 0, INT64_MIN, NOW + 1);
    answer(&e, held(MINE, 20), NOW + 2);
    ck_assert_int_eq(state(&e, NOW + 2), HF_ELECTION_FOLLOWER);
    hf_election_on_lease(&e, NEXT, LONG, NOW + 3);
    ck_assert_int_eq(state(&e, NOW + 3), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(what(&e, NOW + 3), HF_ELECTION_NONE);
    observe(&e, absent(30), NOW + 4); /* the old lease expired */
    ck_assert_int_eq(what(&e, NOW + 4), HF_ELECTION_CAMPAIGN);
    ck_assert_int_eq(hf_election_next(&e, NOW + 4).lease, NEXT);
}
END_TEST

START_TEST(a_victory_under_a_lease_in_jeopardy_is_read_again_first)
{
    struct hf_election e = campaigning();

    hf_election_on_lease(&e, MINE, NOW + 1, NOW + 1);
    answer(&e, held(MINE, 20), NOW + 2);
    ck_assert_int_eq(state(&e, NOW + 2), HF_ELECTION_SUSPENDED);
    hf_election_on_lease(&e, MINE, LONG, NOW + 3);
    ck_assert_int_eq(what(&e, NOW + 3), HF_ELECTION_VERIFY);
}
END_TEST

START_TEST(a_candidate_whose_lease_died_campaigns_only_with_a_new_one)
{
    struct hf_election e = campaigning();

    unanswered(&e, HF_ELECTION_NO_LEASE, NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NEW_LEASE);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), NOW);
    hf_election_on_lease(&e, 0, INT64_MIN, NOW);
    ck_assert_int_eq(hf_election_deadline(&e, NOW + 5000), HF_ELECTION_NEVER);
    hf_election_on_lease(&e, MINE, LONG, NOW + 5000);
    ck_assert_int_eq(what(&e, NOW + 5000), HF_ELECTION_NEW_LEASE);
    hf_election_on_lease(&e, NEXT, LONG, NOW + 5000);
    ck_assert_int_eq(what(&e, NOW + 5000), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(a_refusal_of_the_last_lease_does_not_spend_the_current_one)
{
    struct hf_election e = campaigning();

    hf_election_on_lease(&e, NEXT, LONG, NOW);
    unanswered(&e, HF_ELECTION_NO_LEASE, NOW);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(a_leader_stops_acting_the_moment_its_proof_runs_out)
{
    struct hf_election e = leading();

    ck_assert(hf_election_can_act(&e, LONG - 1));
    ck_assert(!hf_election_can_act(&e, LONG));
    ck_assert_int_eq(state(&e, LONG), HF_ELECTION_SUSPENDED);
    ck_assert_int_eq(hf_election_deadline(&e, LONG), HF_ELECTION_NEVER);
}
END_TEST

START_TEST(after_an_interruption_the_key_is_read_before_the_leader_acts)
{
    struct hf_election e = leading();

    hf_election_on_lease(&e, MINE, LONG + LONG,
                         LONG); /* nobody asked while the proof was out */
    ck_assert_int_eq(state(&e, LONG), HF_ELECTION_SUSPENDED);
    observe(&e, (struct hf_election_key){ 22, true, MINE, 20 }, LONG); /* may be old news */
    ck_assert_int_eq(what(&e, LONG), HF_ELECTION_VERIFY);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, LONG);
    answer(&e, (struct hf_election_key){ 22, true, MINE, 20 }, LONG + 10);
    ck_assert(hf_election_can_act(&e, LONG + 10));
    ck_assert_int_eq(hf_election_next(&e, LONG + 10).term, 20);
}
END_TEST

START_TEST(a_reading_from_before_the_interruption_proves_nothing)
{
    struct hf_election e = campaigning();

    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW + 250);
    observe(&e, held(MINE, 20), NOW + 260);
    hf_election_on_lease(&e, MINE, NOW + 300, NOW + 300); /* jeopardy, */
    hf_election_on_lease(&e, MINE, LONG, NOW + 400);      /* and out of it */
    answer(&e, (struct hf_election_key){ 21, true, MINE, 20 }, NOW + 410);
    ck_assert_int_eq(state(&e, NOW + 410), HF_ELECTION_SUSPENDED);
    ck_assert_int_eq(what(&e, NOW + 660), HF_ELECTION_VERIFY);
}
END_TEST

START_TEST(a_reading_that_is_older_than_what_is_known_is_repeated)
{
    struct hf_election e = leading();

    observe(&e, (struct hf_election_key){ 30, true, MINE, 20 }, NOW);
    hf_election_on_lease(&e, MINE, LONG, NOW);
    hf_election_on_lease(&e, MINE, NOW, NOW);
    hf_election_on_lease(&e, MINE, LONG, NOW);
    hf_election_on_sent(&e, HF_ELECTION_VERIFY, NOW);
    answer(&e, (struct hf_election_key){ 29, true, MINE, 20 }, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_SUSPENDED);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), NOW + 250);
}
END_TEST

START_TEST(a_leader_whose_lease_was_gone_for_a_moment_reads_the_key_first)
{
    struct hf_election e = leading();

    hf_election_on_lease(&e, 0, INT64_MIN, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    hf_election_on_lease(&e, MINE, LONG, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_SUSPENDED);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_VERIFY);
}
END_TEST

START_TEST(a_leader_whose_key_was_deleted_follows_and_takes_a_new_lease)
{
    struct hf_election e = leading();

    observe(&e, absent(30), NOW);
    ck_assert(!hf_election_can_act(&e, NOW));
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NEW_LEASE);

    e = leading();
    observe(&e, held(OTHER, 31), NOW); /* the deletion itself was not seen */
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NEW_LEASE);
}
END_TEST

START_TEST(a_key_that_was_detached_from_the_lease_is_not_ours)
{
    struct hf_election e = leading();

    observe(&e, (struct hf_election_key){ 30, true, 0, 20 }, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NONE);
    hf_election_on_lease(&e, 0, INT64_MIN, NOW);
    observe(&e, (struct hf_election_key){ 31, true, 0, 20 }, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(hf_election_next(&e, NOW).term, 0);
}
END_TEST

START_TEST(old_news_change_nothing)
{
    struct hf_election e = leading();

    observe(&e, absent(15), NOW); /* the deletion before our campaign, told late */
    observe(&e, held(OTHER, 12), NOW);
    ck_assert(hf_election_can_act(&e, NOW));
}
END_TEST

START_TEST(a_leader_resigns_by_deleting_its_key)
{
    struct hf_election e = leading();

    hf_election_resign(&e, NOW);
    ck_assert(!hf_election_can_act(&e, NOW));
    struct hf_election_step step = hf_election_next(&e, NOW);
    ck_assert_int_eq(step.what, HF_ELECTION_RESIGN);
    ck_assert_int_eq(step.term, 20);
    hf_election_on_sent(&e, HF_ELECTION_RESIGN, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_RESIGNING);
    answer(&e, absent(30), NOW + 5);
    ck_assert_int_eq(state(&e, NOW + 5), HF_ELECTION_FOLLOWER);
    ck_assert_int_eq(what(&e, LONG), HF_ELECTION_NONE);

    hf_election_stand(&e, NOW + 1000); /* the lease is still good */
    ck_assert_int_eq(what(&e, NOW + 1000), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(a_resignation_without_an_answer_is_repeated)
{
    struct hf_election e = leading();

    hf_election_resign(&e, NOW);
    hf_election_on_sent(&e, HF_ELECTION_RESIGN, NOW);
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_RESIGNING);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), NOW + 250);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_RESIGN);
}
END_TEST

/* The resignation may be under way for long: whoever led on would lose the key under its feet.
 */
START_TEST(a_term_that_was_given_up_is_never_led_again)
{
    struct hf_election e = leading();

    hf_election_resign(&e, NOW);
    hf_election_on_sent(&e, HF_ELECTION_RESIGN, NOW);
    hf_election_stand(&e, NOW);
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    observe(&e, (struct hf_election_key){ 21, true, MINE, 20 }, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_RESIGNING);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_RESIGN);
    hf_election_on_sent(&e, HF_ELECTION_RESIGN, NOW + 250);
    answer(&e, absent(30), NOW + 260);
    ck_assert_int_eq(what(&e, NOW + 260), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(who_resigns_while_campaigning_takes_the_victory_back)
{
    struct hf_election e = campaigning();

    hf_election_resign(&e, NOW);
    ck_assert_int_eq(state(&e, NOW), HF_ELECTION_RESIGNING); /* it may have won */
    answer(&e, held(MINE, 20), NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_RESIGN);

    e = campaigning();
    hf_election_resign(&e, NOW);
    unanswered(&e, HF_ELECTION_UNKNOWN, NOW);
    ck_assert_int_eq(what(&e, NOW + 250), HF_ELECTION_VERIFY);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("election");

    tcase_add_loop_test(t, what_is_known_decides, 0, COUNT(SITUATIONS));
    tcase_add_test(t, who_does_not_stand_does_nothing);
    tcase_add_test(t, a_key_that_was_deleted_is_campaigned_for_after_a_random_wait);
    tcase_add_test(t, a_deletion_that_is_told_twice_does_not_prolong_the_wait);
    tcase_add_test(t, the_winner_leads_with_the_create_revision_as_term);
    tcase_add_test(t, the_loser_follows_and_waits_for_the_deletion);
    tcase_add_test(t, who_hears_nothing_of_the_leaders_key_for_long_reads_it);
    tcase_add_test(t, the_watch_may_tell_of_the_victory_before_the_answer);
    tcase_add_test(t, an_unknown_outcome_is_resolved_by_reading_the_key);
    tcase_add_test(t, news_from_the_watch_resolve_an_unknown_outcome_as_well);
    tcase_add_test(t, a_stale_reading_does_not_resolve_an_unknown_outcome);
    tcase_add_test(t, a_campaign_that_took_effect_late_still_wins);
    tcase_add_test(t, an_answer_that_the_watch_overtook_makes_no_leader);
    tcase_add_test(t, a_victory_under_a_lease_that_was_lost_makes_no_leader);
    tcase_add_test(t, a_victory_under_a_lease_in_jeopardy_is_read_again_first);
    tcase_add_test(t, a_candidate_whose_lease_died_campaigns_only_with_a_new_one);
    tcase_add_test(t, a_refusal_of_the_last_lease_does_not_spend_the_current_one);
    tcase_add_test(t, a_leader_stops_acting_the_moment_its_proof_runs_out);
    tcase_add_test(t, after_an_interruption_the_key_is_read_before_the_leader_acts);
    tcase_add_test(t, a_reading_from_before_the_interruption_proves_nothing);
    tcase_add_test(t, a_reading_that_is_older_than_what_is_known_is_repeated);
    tcase_add_test(t, a_leader_whose_lease_was_gone_for_a_moment_reads_the_key_first);
    tcase_add_test(t, a_leader_whose_key_was_deleted_follows_and_takes_a_new_lease);
    tcase_add_test(t, a_key_that_was_detached_from_the_lease_is_not_ours);
    tcase_add_test(t, old_news_change_nothing);
    tcase_add_test(t, a_leader_resigns_by_deleting_its_key);
    tcase_add_test(t, a_resignation_without_an_answer_is_repeated);
    tcase_add_test(t, a_term_that_was_given_up_is_never_led_again);
    tcase_add_test(t, who_resigns_while_campaigning_takes_the_victory_back);
    return run("core/election", t);
}
