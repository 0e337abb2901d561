#include "unit/lease_fixture.h"

START_TEST(what_ran_under_a_lost_lease_is_frozen_after_a_grace)
{
    struct hf_lease l = granted();

    hf_lease_on_lost(&l, ID, 2000);
    ck_assert_int_eq(state(&l, 2000), HF_LEASE_LOST);
    ck_assert(!hf_lease_next(&l, 2999).frozen);
    ck_assert_int_eq(hf_lease_deadline(&l, 2000), 3000);
    ck_assert(hf_lease_next(&l, 3000).frozen);
    ck_assert_int_eq(hf_lease_deadline(&l, 3000), HF_LEASE_NEVER);
}
END_TEST

START_TEST(the_grace_of_a_lost_lease_never_outlasts_its_fence)
{
    struct hf_lease l = granted();

    hf_lease_on_lost(&l, ID, 12000);
    ck_assert(!hf_lease_next(&l, 12499).frozen);
    ck_assert(hf_lease_next(&l, 12500).frozen);
}
END_TEST

START_TEST(news_about_another_lease_or_a_second_time_changes_nothing)
{
    struct hf_lease l = granted();

    hf_lease_on_lost(&l, ID + 1, 2000);
    ck_assert_int_eq(state(&l, 2000), HF_LEASE_HELD);
    hf_lease_on_lost(&l, ID, 2000);
    hf_lease_on_lost(&l, ID, 2900);
    ck_assert(hf_lease_next(&l, 3000).frozen);
}
END_TEST

START_TEST(a_lost_lease_never_comes_back)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(2100);

    hf_lease_on_lost(&l, ID, 2000);
    hf_lease_on_renew_sent(&l, 2100);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 2110, 0), HF_LEASE_REFUSED);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 2110, 0), HF_LEASE_REFUSED);
    ck_assert(!hf_lease_on_verified(&l, ID, 2100, 2110));
    ck_assert_int_eq(state(&l, 2110), HF_LEASE_LOST);
}
END_TEST

START_TEST(a_new_lease_thaws_nothing_before_it_is_verified)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(4000);

    r.id = 8;
    hf_lease_on_lost(&l, ID, 2000); /* frozen from 3000 */
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 4010, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 4010), HF_LEASE_FENCED);
    renew(&l, 4020, 4030);
    ck_assert(hf_lease_next(&l, 4030).frozen);
    ck_assert_int_eq(what(&l, 4030), HF_LEASE_VERIFY);
    ck_assert(hf_lease_on_verified(&l, 8, 4030, 4040));
    ck_assert_int_eq(state(&l, 4040), HF_LEASE_HELD);
}
END_TEST

START_TEST(registered_anew_within_the_grace_nothing_is_ever_frozen)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(2010);

    r.id = 8;
    hf_lease_on_lost(&l, ID, 2000);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 2020, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 2020), HF_LEASE_HELD);
    ck_assert_int_eq(hf_lease_proven_until(&l), 3000); /* nothing is registered yet */
    ck_assert_int_eq(what(&l, 2020), HF_LEASE_VERIFY);
    ck_assert(hf_lease_on_verified(&l, 8, 2020, 2030));
    ck_assert(!hf_lease_next(&l, 3000).frozen);
    ck_assert_int_eq(hf_lease_proven_until(&l), 12010);
}
END_TEST

static const struct {
    const char *name;
    struct hf_lease_reply reply;
    enum hf_lease_verdict verdict;
    bool held;
} GRANTS[] = {
    { "while one is held", { 8, 100, 15, 1, 2, 100 }, HF_LEASE_REFUSED, true },
    { "no id", { 0, 100, 15, 1, 2, 100 }, HF_LEASE_REFUSED, false },
    { "negative id", { -8, 100, 15, 1, 2, 100 }, HF_LEASE_REFUSED, false },
    { "sent in the future", { 8, 201, 15, 1, 2, 100 }, HF_LEASE_REFUSED, false },
    { "no ttl", { 8, 100, 0, 1, 2, 100 }, HF_LEASE_GONE, false },
    { "good", { 8, 100, 15, 1, 2, 100 }, HF_LEASE_COUNTED, false },
    { "old term, but it went through raft",
      { 8, 100, 15, 1, 1, 100 },
      HF_LEASE_COUNTED,
      false },
};

START_TEST(a_grant_counts_only_while_there_is_no_lease)
{
    struct hf_lease l = granted();

    if (!GRANTS[_i].held)
        hf_lease_on_lost(&l, ID, 50);
    ck_assert_msg(hf_lease_on_granted(&l, &GRANTS[_i].reply, 200, 0) == GRANTS[_i].verdict,
                  "%s", GRANTS[_i].name);
    ck_assert_int_eq(l.id, GRANTS[_i].verdict == HF_LEASE_COUNTED ? 8 : ID);
}
END_TEST

START_TEST(who_runs_nothing_has_nothing_to_thaw)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(13100);

    renew(&l, 13000, 13010); /* fenced from 12500 */
    hf_lease_on_emptied(&l);
    ck_assert_int_eq(state(&l, 13010), HF_LEASE_HELD);
    ck_assert_int_eq(what(&l, 13010), HF_LEASE_NONE);

    hf_lease_on_lost(&l, ID, 13020);
    hf_lease_on_emptied(&l);
    ck_assert(!hf_lease_next(&l, 1000000).frozen);
    r.id = 8;
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 13110, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(hf_lease_proven_until(&l), 13100 + 10000);
    ck_assert_int_eq(what(&l, 13110), HF_LEASE_NONE);
}
END_TEST

START_TEST(a_restored_etcd_loses_the_lease_and_starts_terms_and_revisions_over)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = { 8, 2000, 15, MEMBER, 1, 5 };

    hf_lease_on_history_reset(&l, 2000);
    ck_assert_int_eq(state(&l, 2000), HF_LEASE_LOST);
    hf_lease_on_history_reset(&l, 2000);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 2000, 0), HF_LEASE_COUNTED);
    hf_lease_on_renew_sent(&l, 2500);
    r.sent_at = 2500;
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 2510, 0), HF_LEASE_COUNTED);
}
END_TEST

static struct hf_lease resumed(const struct hf_lease_record *record, hf_ms now)
{
    struct hf_lease_policy p = exact_policy();
    struct hf_lease l;

    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_resumed(&l, record, now), HF_OK);
    return l;
}

START_TEST(a_successor_goes_on_with_the_same_lease)
{
    struct hf_lease before = granted();

    renew(&before, 5000, 5010);
    struct hf_lease_record record = hf_lease_save(&before);
    struct hf_lease l = resumed(&record, 6000);

    ck_assert_int_eq(l.id, ID);
    ck_assert_int_eq(state(&l, 6000), HF_LEASE_HELD);
    ck_assert_int_eq(hf_lease_deadline(&l, 6000), 10000);
    renew(&l, 10000, 10010);
    ck_assert_int_eq(what(&l, 10010), HF_LEASE_VERIFY); /* it does not know what happened */
    ck_assert_int_eq(hf_lease_save(&l).fence_at, 22500);

    struct hf_lease_reply r = reply(15000);
    r.term = 1;
    hf_lease_on_renew_sent(&l, 15000);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 15010, 0), HF_LEASE_STALE);
}
END_TEST

START_TEST(a_successor_that_comes_late_finds_the_fence)
{
    struct hf_lease before = granted();
    struct hf_lease_record record = hf_lease_save(&before);
    struct hf_lease l = resumed(&record, 20000);

    ck_assert_int_eq(state(&l, 20000), HF_LEASE_FENCED);
    ck_assert_int_eq(what(&l, 20000), HF_LEASE_RENEW);
}
END_TEST

START_TEST(a_successor_does_not_thaw_what_its_predecessor_froze)
{
    struct hf_lease before = granted();

    renew(&before, 13000, 13010); /* fenced, and no Txn yet */
    struct hf_lease_record record = hf_lease_save(&before);
    struct hf_lease l = resumed(&record, 13500);

    ck_assert(hf_lease_next(&l, 13500).frozen);
    renew(&l, 13600, 13610);
    ck_assert(hf_lease_next(&l, 13610).frozen);
    ck_assert(hf_lease_on_verified(&l, ID, 13610, 13620));
    ck_assert(!hf_lease_next(&l, 13620).frozen);
}
END_TEST

START_TEST(a_successor_inherits_the_grace_of_a_lost_lease)
{
    struct hf_lease before = granted();
    struct hf_lease_reply r = reply(2200);

    hf_lease_on_lost(&before, ID, 2000);
    struct hf_lease_record record = hf_lease_save(&before);
    ck_assert_int_eq(record.id, 0);
    struct hf_lease l = resumed(&record, 2100);

    ck_assert_int_eq(state(&l, 2100), HF_LEASE_LOST);
    r.id = 8;
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 2210, 0), HF_LEASE_COUNTED);
    ck_assert(!hf_lease_next(&l, 2999).frozen);
    ck_assert(hf_lease_next(&l, 3000).frozen);
}
END_TEST

static const struct hf_lease_record BAD_RECORDS[] = {
    { .id = -1, .ttl = T, .fence_at = 12500 },
    { .id = ID, .ttl = 0, .fence_at = 12500 },
    { .id = ID, .ttl = T, .counted_at = 1001, .fence_at = 12500 },
};

START_TEST(a_record_without_sense_is_not_resumed)
{
    struct hf_lease_policy p = exact_policy();
    struct hf_lease l;

    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_resumed(&l, &BAD_RECORDS[_i], 1000), HF_EINVAL);
    ck_assert_int_eq(state(&l, 1000), HF_LEASE_LOST);
}
END_TEST

START_TEST(a_record_is_not_resumed_over_a_lease)
{
    struct hf_lease l = granted();
    struct hf_lease_record record = hf_lease_save(&l);

    ck_assert_int_eq(hf_lease_on_resumed(&l, &record, 0), HF_EINVAL);
}
END_TEST

START_TEST(a_recorded_fence_is_never_later_than_the_lease_allows)
{
    struct hf_lease_record record = {
        .id = ID, .ttl = INT64_MAX, .counted_at = 0, .fence_at = HF_LEASE_NEVER
    };
    struct hf_lease l = resumed(&record, 0);

    ck_assert_int_eq(hf_lease_save(&l).fence_at, 72000000); /* five sixths of a day */
}
END_TEST

/* A renewal that is answered under that term. */
static enum hf_lease_verdict answer(struct hf_lease *l, hf_ms at, uint64_t term)
{
    struct hf_lease_reply r = reply(at);

    r.id = l->id;
    r.term = term;
    hf_lease_on_renew_sent(l, at);
    return hf_lease_on_reply(l, &r, at + 10, 0);
}

/* Restored without a loss: no history shows it, and its terms begin anew. */
START_TEST(a_txn_that_commits_under_an_older_term_makes_the_newer_one_void)
{
    struct hf_lease l = granted();

    hf_lease_on_header(&l, 2, 9, 100);
    ck_assert_int_eq(answer(&l, 5000, 3), HF_LEASE_STALE);
    ck_assert_int_eq(what(&l, 5200), HF_LEASE_NONE); /* another leader may yet answer */
    ck_assert_int_eq(answer(&l, 9900, 3), HF_LEASE_STALE);
    ck_assert_int_eq(what(&l, 10000), HF_LEASE_VERIFY);
    hf_lease_on_verify_sent(&l, 10000);
    hf_lease_on_committed(&l, 3);
    (void)hf_lease_on_verified(&l, ID, 10000, 10010);
    ck_assert_int_eq(what(&l, 10010), HF_LEASE_NONE);
    ck_assert_int_eq(answer(&l, 10200, 3), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 12499), HF_LEASE_HELD);
    /* What is older than that is still outdated. */
    ck_assert_int_eq(answer(&l, 15000, 2), HF_LEASE_STALE);
}
END_TEST

/* The leader of term 3 was deposed, and answers renewals; a majority has term 9. */
START_TEST(a_lying_leader_is_not_believed_because_the_majority_commits)
{
    struct hf_lease l = granted();

    hf_lease_on_header(&l, 2, 9, 100);
    ck_assert_int_eq(answer(&l, 9900, 3), HF_LEASE_STALE);
    hf_lease_on_verify_sent(&l, 10000);
    hf_lease_on_committed(&l, 9);
    ck_assert_int_eq(what(&l, 10000), HF_LEASE_NONE);
    ck_assert_int_eq(answer(&l, 10200, 3), HF_LEASE_STALE);
    ck_assert_int_eq(answer(&l, 10900, 9), HF_LEASE_COUNTED);
}
END_TEST

/* It may have been committed before there was a newer leader. */
START_TEST(a_txn_that_left_before_the_newer_term_was_heard_of_proves_nothing)
{
    struct hf_lease l = granted();

    ck_assert_int_eq(answer(&l, 5000, 3), HF_LEASE_COUNTED);
    hf_lease_on_verify_sent(&l, 9000);
    hf_lease_on_header(&l, 2, 9, 100);
    hf_lease_on_committed(&l, 3);
    ck_assert_int_eq(answer(&l, 10000, 3), HF_LEASE_STALE);
}
END_TEST

/* A grant needs a majority, too. */
START_TEST(a_lease_that_only_an_older_term_answers_for_is_given_up_when_it_has_run_out)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(16100);

    hf_lease_on_header(&l, 2, 9, 100);
    ck_assert_int_eq(answer(&l, 14900, 3), HF_LEASE_STALE);
    ck_assert_int_eq(state(&l, 14910), HF_LEASE_FENCED);
    ck_assert_int_eq(answer(&l, 15000, 3), HF_LEASE_STALE);
    ck_assert_int_eq(state(&l, 15010), HF_LEASE_LOST);
    hf_lease_on_grant_sent(&l);
    r.id = ID + 1;
    r.term = 3;
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 16200, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 16200), HF_LEASE_FENCED); /* until it is registered */
    ck_assert_int_eq(answer(&l, 17000, 3), HF_LEASE_COUNTED);
}
END_TEST

START_TEST(who_has_nothing_to_compare_gives_up_a_lease_that_only_an_older_term_answers_for)
{
    struct hf_lease l = granted();

    hf_lease_on_header(&l, 2, 9, 100);
    ck_assert_int_eq(answer(&l, 10000, 3), HF_LEASE_STALE);
    ck_assert_int_eq(what(&l, 10010), HF_LEASE_VERIFY);
    hf_lease_on_emptied(&l);
    ck_assert_int_eq(state(&l, 10010), HF_LEASE_LOST);
    ck_assert(!hf_lease_next(&l, 100000).frozen);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lease");

    tcase_add_test(t, what_ran_under_a_lost_lease_is_frozen_after_a_grace);
    tcase_add_test(t, the_grace_of_a_lost_lease_never_outlasts_its_fence);
    tcase_add_test(t, news_about_another_lease_or_a_second_time_changes_nothing);
    tcase_add_test(t, a_lost_lease_never_comes_back);
    tcase_add_test(t, a_new_lease_thaws_nothing_before_it_is_verified);
    tcase_add_test(t, registered_anew_within_the_grace_nothing_is_ever_frozen);
    tcase_add_loop_test(t, a_grant_counts_only_while_there_is_no_lease, 0, COUNT(GRANTS));
    tcase_add_test(t, who_runs_nothing_has_nothing_to_thaw);
    tcase_add_test(t, a_restored_etcd_loses_the_lease_and_starts_terms_and_revisions_over);
    tcase_add_test(t, a_successor_goes_on_with_the_same_lease);
    tcase_add_test(t, a_successor_that_comes_late_finds_the_fence);
    tcase_add_test(t, a_successor_does_not_thaw_what_its_predecessor_froze);
    tcase_add_test(t, a_successor_inherits_the_grace_of_a_lost_lease);
    tcase_add_loop_test(t, a_record_without_sense_is_not_resumed, 0, COUNT(BAD_RECORDS));
    tcase_add_test(t, a_record_is_not_resumed_over_a_lease);
    tcase_add_test(t, a_recorded_fence_is_never_later_than_the_lease_allows);
    tcase_add_test(t, a_txn_that_commits_under_an_older_term_makes_the_newer_one_void);
    tcase_add_test(t, a_lying_leader_is_not_believed_because_the_majority_commits);
    tcase_add_test(t, a_txn_that_left_before_the_newer_term_was_heard_of_proves_nothing);
    tcase_add_test(t,
                   a_lease_that_only_an_older_term_answers_for_is_given_up_when_it_has_run_out);
    tcase_add_test(
        t, who_has_nothing_to_compare_gives_up_a_lease_that_only_an_older_term_answers_for);
    return run("core/lease, lost and resumed", t);
}
