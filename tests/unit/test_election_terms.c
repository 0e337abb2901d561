#include "unit/election_fixture.h"

static const struct {
    const char *name;
    struct hf_election_key first, then;
    int want;
} HISTORIES[] = {
    { "the same again", { 20, true, OTHER, 20 }, { 21, true, OTHER, 20 }, HF_OK },
    { "a later term", { 20, true, OTHER, 20 }, { 30, true, MINE, 30 }, HF_OK },
    { "an earlier term", { 20, true, OTHER, 20 }, { 30, true, MINE, 19 }, HF_EHISTORY },
    { "an earlier term of others", { 20, true, OTHER, 20 }, { 30, true, 3, 19 }, HF_EHISTORY },
    { "our term was others'", { 20, true, OTHER, 20 }, { 30, true, MINE, 20 }, HF_EHISTORY },
    { "back from the dead", { 25, false, 0, 0 }, { 30, true, MINE, 24 }, HF_EHISTORY },
    { "born at the deletion", { 25, false, 0, 0 }, { 30, true, MINE, 25 }, HF_EHISTORY },
    { "born after the deletion", { 25, false, 0, 0 }, { 30, true, MINE, 26 }, HF_OK },
    { "no create revision", { 25, false, 0, 0 }, { 30, true, MINE, 0 }, HF_EINVAL },
    { "created in the future", { 25, false, 0, 0 }, { 30, true, MINE, 31 }, HF_EINVAL },
    { "no revision", { 25, false, 0, 0 }, { 0, false, 0, 0 }, HF_EINVAL },
};

START_TEST(terms_only_grow)
{
    struct hf_election e = standing();
    struct hf_election before;

    observe(&e, HISTORIES[_i].first, NOW);
    before = e;
    ck_assert_msg(hf_election_on_observed(&e, &HISTORIES[_i].then, NOW, 0) ==
                      HISTORIES[_i].want,
                  "%s", HISTORIES[_i].name);
    if (HISTORIES[_i].want == HF_OK)
        ck_assert_int_eq(e.key.revision, HISTORIES[_i].then.revision);
    else
        ck_assert_int_eq(state(&e, NOW), state(&before, NOW));
}
END_TEST

START_TEST(after_a_history_reset_everything_starts_over_with_a_new_lease)
{
    struct hf_election e = leading();

    hf_election_on_history_reset(&e, NOW);
    ck_assert(!hf_election_can_act(&e, NOW));
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NEW_LEASE);
    hf_election_on_lease(&e, NEXT, LONG, NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_VERIFY);
    observe(&e, absent(5), NOW);
    hf_election_on_sent(&e, HF_ELECTION_CAMPAIGN, NOW);
    answer(&e, held(NEXT, 6), NOW);
    ck_assert(hf_election_can_act(&e, NOW));
    ck_assert_int_eq(hf_election_next(&e, NOW).term, 6);
}
END_TEST

START_TEST(an_answer_from_before_the_history_reset_is_not_believed)
{
    struct hf_election e = campaigning();

    hf_election_on_history_reset(&e, NOW);
    hf_election_on_lease(&e, NEXT, LONG, NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_NONE); /* one call at a time */
    answer(&e, held(MINE, 5000), NOW);
    observe(&e, absent(5), NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_CAMPAIGN);
}
END_TEST

START_TEST(time_never_goes_back)
{
    struct hf_election e = standing();
    struct hf_election_key gone = absent(30);

    ck_assert_int_eq(hf_election_on_observed(&e, &gone, NOW, 300), HF_OK);
    hf_election_stand(&e, NOW + 300);
    hf_election_stand(&e, NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_CAMPAIGN);
    ck_assert_int_eq(hf_election_deadline(&e, NOW), NOW + 300);
}
END_TEST

START_TEST(moments_at_the_end_of_time_do_not_overflow)
{
    struct hf_election e = standing();
    struct hf_election_key gone = absent(10);

    ck_assert_int_eq(hf_election_on_observed(&e, &gone, INT64_MAX - 1, 499), HF_OK);
    hf_election_on_lease(&e, MINE, INT64_MAX, INT64_MAX - 1);
    ck_assert_int_eq(hf_election_deadline(&e, INT64_MAX - 1), HF_ELECTION_NEVER);
}
END_TEST

START_TEST(what_was_not_sent_is_not_awaited)
{
    struct hf_election e = standing();

    hf_election_on_sent(&e, HF_ELECTION_NONE, NOW);
    hf_election_on_sent(&e, HF_ELECTION_NEW_LEASE, NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_VERIFY);
}
END_TEST

static const struct {
    struct hf_election_policy policy;
    int want;
} POLICIES[] = {
    { { 500, 250, 1000, 0 }, HF_OK },      { { 0, 1, 1, 0 }, HF_OK },
    { { -1, 250, 1000, 0 }, HF_EINVAL },   { { 60001, 250, 1000, 0 }, HF_EINVAL },
    { { 500, 0, 1000, 0 }, HF_EINVAL },    { { 500, 250, 249, 0 }, HF_EINVAL },
    { { 500, 250, 60001, 0 }, HF_EINVAL },
};

START_TEST(a_policy_that_contradicts_itself_is_refused_with_a_sentence)
{
    const char *why = NULL;

    ck_assert_int_eq(hf_election_policy_check(&POLICIES[_i].policy, &why), POLICIES[_i].want);
    ck_assert_int_eq(why != NULL, POLICIES[_i].want != HF_OK);
}
END_TEST

START_TEST(everything_has_a_name)
{
    for (int i = HF_ELECTION_FOLLOWER; i <= HF_ELECTION_RESIGNING; i++)
        ck_assert_str_ne(hf_election_state_name((enum hf_election_state)i), "?");
    for (int i = HF_ELECTION_NONE; i <= HF_ELECTION_NEW_LEASE; i++)
        ck_assert_str_ne(hf_election_what_name((enum hf_election_what)i), "?");
    ck_assert_str_eq(hf_election_state_name((enum hf_election_state)99), "?");
    ck_assert_str_eq(hf_election_what_name((enum hf_election_what)99), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("election");

    tcase_add_loop_test(t, terms_only_grow, 0, COUNT(HISTORIES));
    tcase_add_test(t, after_a_history_reset_everything_starts_over_with_a_new_lease);
    tcase_add_test(t, an_answer_from_before_the_history_reset_is_not_believed);
    tcase_add_test(t, time_never_goes_back);
    tcase_add_test(t, moments_at_the_end_of_time_do_not_overflow);
    tcase_add_test(t, what_was_not_sent_is_not_awaited);
    tcase_add_loop_test(t, a_policy_that_contradicts_itself_is_refused_with_a_sentence, 0,
                        COUNT(POLICIES));
    tcase_add_test(t, everything_has_a_name);
    return run("core/election, terms and limits", t);
}
