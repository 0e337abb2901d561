#include "unit/lease_fixture.h"

START_TEST(without_a_lease_nothing_is_due_and_nothing_is_frozen)
{
    struct hf_lease_policy p = hf_lease_policy_default();
    struct hf_lease l;

    hf_lease_init(&l, &p);
    struct hf_lease_step step = hf_lease_next(&l, 123456);

    ck_assert_int_eq(step.state, HF_LEASE_LOST);
    ck_assert_int_eq(step.what, HF_LEASE_NONE);
    ck_assert(!step.frozen);
    ck_assert_int_eq(hf_lease_deadline(&l, 123456), HF_LEASE_NEVER);
    ck_assert_int_lt(hf_lease_proven_until(&l), 0);
}
END_TEST

static const struct {
    hf_ms now;
    enum hf_lease_state state;
    enum hf_lease_what what;
    hf_ms deadline;
} SILENCE[] = {
    { 0, HF_LEASE_HELD, HF_LEASE_NONE, 5000 },
    { 4999, HF_LEASE_HELD, HF_LEASE_NONE, 5000 },
    { 5000, HF_LEASE_HELD, HF_LEASE_RENEW, 5000 },
    { 9999, HF_LEASE_HELD, HF_LEASE_RENEW, 9999 },
    { 10000, HF_LEASE_JEOPARDY, HF_LEASE_RENEW, 10000 },
    { 12499, HF_LEASE_JEOPARDY, HF_LEASE_RENEW, 12499 },
    { 12500, HF_LEASE_FENCED, HF_LEASE_RENEW, 12500 },
    { 1000000, HF_LEASE_FENCED, HF_LEASE_RENEW, 1000000 },
    { INT64_MAX, HF_LEASE_FENCED, HF_LEASE_RENEW, INT64_MAX },
};

/* Each row asks a machine that was not asked before: a caller that was paused. */
START_TEST(the_answer_depends_on_now_and_not_on_when_it_was_asked_last)
{
    struct hf_lease l = granted();
    struct hf_lease_step step = hf_lease_next(&l, SILENCE[_i].now);

    ck_assert_int_eq(step.state, SILENCE[_i].state);
    ck_assert_int_eq(step.what, SILENCE[_i].what);
    ck_assert_int_eq(step.frozen, SILENCE[_i].state == HF_LEASE_FENCED);
    ck_assert_int_eq(hf_lease_deadline(&l, SILENCE[_i].now), SILENCE[_i].deadline);
    ck_assert_int_eq(SILENCE[_i].now < hf_lease_proven_until(&l),
                     SILENCE[_i].state == HF_LEASE_HELD);
}
END_TEST

START_TEST(time_never_goes_back)
{
    struct hf_lease l = granted();

    hf_lease_on_jump(&l, 12500);
    ck_assert_int_eq(state(&l, 100), HF_LEASE_FENCED);
    ck_assert_int_eq(hf_lease_deadline(&l, 100), 12500);
}
END_TEST

START_TEST(deadlines_run_from_the_send_time_of_a_late_reply)
{
    struct hf_lease l = granted();

    renew(&l, 5000, 9000);
    ck_assert_int_eq(state(&l, 14999), HF_LEASE_HELD);
    ck_assert_int_eq(state(&l, 15000), HF_LEASE_JEOPARDY);
    ck_assert_int_eq(state(&l, 17500), HF_LEASE_FENCED);
}
END_TEST

START_TEST(a_grant_that_is_answered_late_counts_from_its_send_time)
{
    struct hf_lease_policy p = exact_policy();
    struct hf_lease_reply r = reply(1000);
    struct hf_lease l;

    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 11000, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 11000), HF_LEASE_JEOPARDY);
    ck_assert_int_eq(what(&l, 11000), HF_LEASE_RENEW);

    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 13500, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(state(&l, 13500), HF_LEASE_FENCED);
}
END_TEST

START_TEST(the_ttl_that_etcd_returns_is_the_one_that_is_used)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5000);

    r.ttl_s = 30;
    hf_lease_on_renew_sent(&l, 5000);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 5010, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(hf_lease_deadline(&l, 5010), 15000);
    ck_assert_int_eq(hf_lease_proven_until(&l), 25000);

    r.sent_at = 15000;
    r.ttl_s = 6;
    hf_lease_on_renew_sent(&l, 15000);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 15010, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(hf_lease_deadline(&l, 15010), 17000);
    ck_assert_int_eq(state(&l, 20000), HF_LEASE_FENCED);
}
END_TEST

START_TEST(an_absurd_ttl_is_taken_for_a_day)
{
    struct hf_lease_policy p = exact_policy();
    struct hf_lease_reply r = reply(INT64_MAX - 5);
    struct hf_lease l;

    r.ttl_s = INT64_MAX;
    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, INT64_MAX - 5, UINT32_MAX), HF_LEASE_COUNTED);
    ck_assert_int_eq(l.ttl, 86400000);
    ck_assert_int_eq(state(&l, INT64_MAX - 1), HF_LEASE_HELD);
    ck_assert_int_eq(hf_lease_deadline(&l, INT64_MAX - 5), HF_LEASE_NEVER);
}
END_TEST

/* One reply to a renewal that left at 5000, arriving at 5100. Members 1 and 2 are known with
 * revisions 100 and 200, the term is 2. */
static const struct {
    const char *name;
    struct hf_lease_reply reply;
    enum hf_lease_verdict verdict;
    enum hf_lease_state state_at_10000;
    hf_ms next_attempt;
} REPLIES[] = {
    { "good", { ID, 5000, 15, 1, 2, 100 }, HF_LEASE_COUNTED, HF_LEASE_HELD, 10000 },
    { "higher term", { ID, 5000, 15, 1, 3, 100 }, HF_LEASE_COUNTED, HF_LEASE_HELD, 10000 },
    { "new member", { ID, 5000, 15, 9, 2, 1 }, HF_LEASE_COUNTED, HF_LEASE_HELD, 10000 },
    { "old term", { ID, 5000, 15, 1, 1, 100 }, HF_LEASE_STALE, HF_LEASE_JEOPARDY, 5350 },
    { "old term denies", { ID, 5000, 0, 1, 1, 100 }, HF_LEASE_STALE, HF_LEASE_JEOPARDY, 5350 },
    { "member went back",
      { ID, 5000, 15, 2, 2, 199 },
      HF_LEASE_BEHIND,
      HF_LEASE_JEOPARDY,
      5350 },
    { "no ttl", { ID, 5000, 0, 1, 2, 100 }, HF_LEASE_GONE, HF_LEASE_LOST, HF_LEASE_NEVER },
    { "negative ttl",
      { ID, 5000, -1, 1, 2, 100 },
      HF_LEASE_GONE,
      HF_LEASE_LOST,
      HF_LEASE_NEVER },
    { "other lease", { 8, 5000, 15, 1, 2, 100 }, HF_LEASE_REFUSED, HF_LEASE_JEOPARDY, 7500 },
    { "other lease gone",
      { 8, 5000, 0, 1, 2, 100 },
      HF_LEASE_REFUSED,
      HF_LEASE_JEOPARDY,
      7500 },
    { "from the future",
      { ID, 5101, 15, 1, 2, 100 },
      HF_LEASE_REFUSED,
      HF_LEASE_JEOPARDY,
      7500 },
    { "before the grant", { ID, -1, 15, 1, 2, 100 }, HF_LEASE_OLDER, HF_LEASE_JEOPARDY, 7500 },
};

START_TEST(a_renewal_counts_only_if_a_current_leader_answers_it_for_our_lease)
{
    struct hf_lease l = granted();

    hf_lease_on_header(&l, 2, 2, 200);
    hf_lease_on_renew_sent(&l, 5000);
    ck_assert_msg(hf_lease_on_reply(&l, &REPLIES[_i].reply, 5100, 0) == REPLIES[_i].verdict,
                  "%s", REPLIES[_i].name);
    ck_assert_msg(state(&l, 10000) == REPLIES[_i].state_at_10000, "%s", REPLIES[_i].name);
    if (REPLIES[_i].next_attempt == HF_LEASE_NEVER)
        ck_assert_int_eq(what(&l, 1000000), HF_LEASE_NONE);
    else
        ck_assert_int_eq(hf_lease_deadline(&l, 5100), REPLIES[_i].next_attempt);
}
END_TEST

START_TEST(a_term_seen_elsewhere_unmasks_the_leader_that_was_deposed)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5000);

    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_header(&l, 2, 3, 100);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 5100, 0), HF_LEASE_STALE);
}
END_TEST

START_TEST(an_answer_that_was_overtaken_on_another_stream_still_counts)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5000);

    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_header(&l, MEMBER, 2, 105); /* a Txn, answered after and heard before */
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 5100, 0), HF_LEASE_COUNTED);

    r.sent_at = 10000;
    hf_lease_on_renew_sent(&l, 10000);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 10100, 0), HF_LEASE_BEHIND);
}
END_TEST

START_TEST(a_full_table_of_members_forgets_the_oldest)
{
    struct hf_lease l = granted(); /* knows member 1 */
    struct hf_lease_reply r = reply(5000);

    for (uint64_t id = 2; id <= HF_LEASE_MEMBERS + 1; id++)
        hf_lease_on_header(&l, id, 2, 1000);
    ck_assert_uint_eq(l.member_count, HF_LEASE_MEMBERS);
    hf_lease_on_renew_sent(&l, 5000);

    r.revision = 1;
    r.member = 2;
    struct hf_lease copy = l;
    ck_assert_int_eq(hf_lease_on_reply(&copy, &r, 5100, 0), HF_LEASE_BEHIND);
    r.member = MEMBER;
    copy = l;
    ck_assert_int_eq(hf_lease_on_reply(&copy, &r, 5100, 0), HF_LEASE_COUNTED);
}
END_TEST

START_TEST(an_attempt_may_take_a_sixth_and_then_the_next_endpoint_is_tried_at_once)
{
    struct hf_lease l = granted();

    ck_assert(!hf_lease_next(&l, 5000).rotate);
    ck_assert_int_eq(hf_lease_next(&l, 5000).until, 7500);
    hf_lease_on_renew_sent(&l, 5000);
    ck_assert_int_eq(what(&l, 7499), HF_LEASE_NONE);
    ck_assert_int_eq(hf_lease_deadline(&l, 5000), 7500);
    ck_assert_int_eq(what(&l, 7500), HF_LEASE_ABANDON);
    hf_lease_on_renew_failed(&l, 5000, 7500, 0);

    struct hf_lease_step step = hf_lease_next(&l, 7500);
    ck_assert_int_eq(step.what, HF_LEASE_RENEW);
    ck_assert(step.rotate);
    ck_assert_int_eq(step.until, 10000);
}
END_TEST

START_TEST(an_attempt_that_fails_at_once_is_repeated_after_a_pause)
{
    for (uint32_t random = 0; random < 2000; random++) {
        struct hf_lease l = granted();

        hf_lease_on_renew_sent(&l, 5000);
        hf_lease_on_renew_failed(&l, 5000, 5001, random);
        hf_ms at = hf_lease_deadline(&l, 5001);
        ck_assert_int_ge(at, 5001 + 250);
        ck_assert_int_le(at, 5001 + 1000);
        ck_assert(hf_lease_next(&l, at).rotate);
    }
}
END_TEST

START_TEST(a_late_failure_of_an_abandoned_attempt_does_not_end_the_next_one)
{
    struct hf_lease l = granted();

    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_renew_failed(&l, 5000, 7500, 0);
    hf_lease_on_renew_sent(&l, 7500);
    hf_lease_on_renew_failed(&l, 5000, 7600, 0);
    ck_assert(l.in_flight);
    hf_lease_on_renew_failed(&l, 7500, 7700, 0);
    ck_assert(!l.in_flight);
    hf_lease_on_renew_failed(&l, 7500, 7701, 0);
    ck_assert_int_eq(hf_lease_deadline(&l, 7701), 7700 + 250);
}
END_TEST

START_TEST(a_late_reply_to_an_abandoned_attempt_counts_by_its_own_send_time)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5000);

    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_renew_failed(&l, 5000, 7500, 0);
    hf_lease_on_renew_sent(&l, 7500);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 7600, 0), HF_LEASE_COUNTED);
    ck_assert_int_eq(l.counted_at, 5000);
    ck_assert(l.in_flight); /* the later attempt is still awaited */

    r.sent_at = 7500;
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 7700, 0), HF_LEASE_COUNTED);
    r.sent_at = 5000;
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 7800, 0), HF_LEASE_OLDER);
    ck_assert_int_eq(l.counted_at, 7500);
}
END_TEST

START_TEST(a_reply_may_name_a_later_send_time_than_was_reported)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5003); /* as the transport read the clock */

    hf_lease_on_renew_sent(&l, 5000);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 5020, 0), HF_LEASE_COUNTED);
    ck_assert(!l.in_flight);
    ck_assert_int_eq(hf_lease_deadline(&l, 5020), 10003);
}
END_TEST

START_TEST(a_stale_answer_to_an_abandoned_attempt_changes_nothing)
{
    struct hf_lease l = granted();
    struct hf_lease_reply r = reply(5000);

    r.term = 1;
    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_renew_failed(&l, 5000, 7500, 0);
    hf_lease_on_renew_sent(&l, 7500);
    ck_assert_int_eq(hf_lease_on_reply(&l, &r, 7600, 0), HF_LEASE_STALE);
    ck_assert(l.in_flight);
}
END_TEST

START_TEST(renewals_are_spread_by_the_jitter_and_no_further)
{
    struct hf_lease_policy p = hf_lease_policy_default();
    hf_ms first = INT64_MAX, last = 0;

    for (uint32_t i = 0; i < 5000; i++) {
        struct hf_lease_reply r = reply(0);
        struct hf_lease l;

        hf_lease_init(&l, &p);
        ck_assert_int_eq(hf_lease_on_granted(&l, &r, 0, i * 2654435761u), HF_LEASE_COUNTED);
        hf_ms at = hf_lease_deadline(&l, 0);
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    ck_assert_int_eq(first, 4750);
    ck_assert_int_eq(last, 5250);
}
END_TEST

START_TEST(jeopardy_ends_with_a_renewal_that_counts)
{
    struct hf_lease l = granted();

    ck_assert_int_eq(state(&l, 12000), HF_LEASE_JEOPARDY);
    renew(&l, 11990, 12010);
    ck_assert_int_eq(state(&l, 12010), HF_LEASE_HELD);
    ck_assert_int_eq(hf_lease_next(&l, 12010).what, HF_LEASE_NONE);
}
END_TEST

START_TEST(a_fence_is_not_lifted_by_a_renewal)
{
    struct hf_lease l = granted();

    renew(&l, 12499, 12500); /* sent before the fence, heard after it: too late */
    ck_assert_int_eq(state(&l, 12500), HF_LEASE_FENCED);
    renew(&l, 13000, 13010);
    ck_assert_int_eq(state(&l, 13010), HF_LEASE_FENCED);
    ck_assert(hf_lease_next(&l, 13010).frozen);
    ck_assert_int_eq(what(&l, 13010), HF_LEASE_VERIFY);
    ck_assert_int_le(hf_lease_proven_until(&l), 13010);
}
END_TEST

START_TEST(a_fence_is_lifted_by_a_txn_sent_after_it_while_renewals_pass)
{
    struct hf_lease l = granted();

    /* Renewals do not pass: the key exists, but perhaps not for another moment. */
    ck_assert(!hf_lease_on_verified(&l, ID, 12600, 12650));
    ck_assert_int_eq(what(&l, 12650), HF_LEASE_RENEW);
    renew(&l, 12700, 12710);
    /* Sent before the freeze. */
    ck_assert(!hf_lease_on_verified(&l, ID, 12499, 12720));
    /* About an earlier lease; from the future. */
    ck_assert(!hf_lease_on_verified(&l, ID + 1, 12711, 12720));
    ck_assert(!hf_lease_on_verified(&l, ID, 12721, 12720));
    ck_assert(hf_lease_next(&l, 12720).frozen);

    ck_assert_int_eq(what(&l, 12720), HF_LEASE_VERIFY);
    hf_lease_on_verify_sent(&l, 12720);
    ck_assert_int_eq(what(&l, 12720), HF_LEASE_NONE);
    ck_assert(hf_lease_on_verified(&l, ID, 12720, 12740));
    ck_assert_int_eq(state(&l, 12740), HF_LEASE_HELD);
    ck_assert(!hf_lease_next(&l, 12740).frozen);
    ck_assert_int_eq(hf_lease_save(&l).fence_at, 12700 + 12500);
}
END_TEST

START_TEST(a_verification_is_repeated_until_its_outcome_is_known)
{
    struct hf_lease l = granted();

    renew(&l, 13000, 13010);
    hf_lease_on_verify_sent(&l, 13010);
    ck_assert_int_eq(hf_lease_deadline(&l, 13010), 13010 + T / 6); /* not answered at all */
    hf_lease_on_verify_failed(&l, 13100, 0);
    ck_assert_int_eq(what(&l, 13349), HF_LEASE_NONE);
    ck_assert_int_eq(hf_lease_deadline(&l, 13100), 13350);
    ck_assert_int_eq(what(&l, 13350), HF_LEASE_VERIFY);
}
END_TEST

START_TEST(after_a_break_the_key_is_verified_once_though_renewals_pass)
{
    struct hf_lease l = granted();

    hf_lease_on_renew_sent(&l, 5000);
    hf_lease_on_renew_failed(&l, 5000, 5100, 0);
    ck_assert_int_eq(what(&l, 5200), HF_LEASE_NONE); /* first renewals have to pass again */
    renew(&l, 5350, 5360);
    ck_assert_int_eq(what(&l, 5360), HF_LEASE_VERIFY);
    ck_assert_int_eq(state(&l, 5360), HF_LEASE_HELD);
    ck_assert(!hf_lease_on_verified(&l, ID, 5099, 5361)); /* from before the break */
    ck_assert(hf_lease_on_verified(&l, ID, 5360, 5370));
    ck_assert_int_eq(what(&l, 5370), HF_LEASE_NONE);
}
END_TEST

START_TEST(after_a_jump_of_the_clock_it_renews_and_verifies_at_once)
{
    struct hf_lease l = granted();

    hf_lease_on_jump(&l, 3000);
    ck_assert_int_eq(state(&l, 3000), HF_LEASE_HELD);
    ck_assert_int_eq(what(&l, 3000), HF_LEASE_RENEW);
    renew(&l, 3000, 3010);
    ck_assert_int_eq(what(&l, 3010), HF_LEASE_VERIFY);

    hf_lease_on_lost(&l, ID, 3020);
    hf_lease_on_jump(&l, 3030);
    ck_assert_int_eq(what(&l, 3030), HF_LEASE_NONE);
}
END_TEST

static bool accepts(const struct hf_lease_policy *p)
{
    const char *why = NULL;
    int err = hf_lease_policy_check(p, &why);

    ck_assert_int_eq(err, why == NULL ? HF_OK : HF_EINVAL);
    return err == HF_OK;
}

/* Whether the default with one change is accepted. */
#define WITH(change)                                                                           \
    ({                                                                                         \
        struct hf_lease_policy p = hf_lease_policy_default();                                  \
        change;                                                                                \
        accepts(&p);                                                                           \
    })

START_TEST(a_policy_that_leaves_time_for_everything_is_accepted)
{
    ck_assert(WITH((void)0));
    ck_assert(WITH(p.ttl = p.ttl_floor = 6000));
    ck_assert(WITH(p.ttl = 86400000));
    ck_assert(WITH(p.jitter_percent = 20));
    ck_assert(WITH(p.lost_grace = 0));
    ck_assert(WITH(p.renew.den = 2; p.jitter_percent = 0));
}
END_TEST

START_TEST(a_policy_that_contradicts_itself_is_refused_with_a_sentence)
{
    ck_assert(!WITH(p.ttl_floor = 999));
    ck_assert(!WITH(p.ttl = 9999));
    ck_assert(!WITH(p.ttl = 86400001));
    ck_assert(!WITH(p.renew.num = 0));
    ck_assert(!WITH(p.attempt.den = 0));
    ck_assert(!WITH(p.jeopardy.num = 3));
    ck_assert(!WITH(p.fence.num = 1000; p.fence.den = 1001));
    ck_assert(!WITH(p.jitter_percent = 21));
    ck_assert(!WITH(p.renew.den = 2));
    ck_assert(!WITH(p.attempt.den = 2));
    ck_assert(!WITH(p.fence = p.jeopardy));
    ck_assert(!WITH(p.retry_min = 0));
    ck_assert(!WITH(p.retry_max = 249));
    ck_assert(!WITH(p.retry_max = 1667));
    ck_assert(!WITH(p.lost_grace = -1));
    ck_assert(!WITH(p.lost_grace = 1501));
}
END_TEST

static const struct {
    int64_t ttl_s;
    int want;
} TTLS[] = {
    { 15, HF_OK },    { 10, HF_OK },    { INT64_MAX, HF_OK },
    { 9, HF_EINVAL }, { 0, HF_EINVAL }, { -1, HF_EINVAL },
};

START_TEST(a_ttl_below_the_floor_is_reported)
{
    struct hf_lease_policy p = hf_lease_policy_default();
    const char *why = NULL;

    ck_assert_int_eq(hf_lease_ttl_check(&p, TTLS[_i].ttl_s, &why), TTLS[_i].want);
    ck_assert_int_eq(why != NULL, TTLS[_i].want != HF_OK);
}
END_TEST

START_TEST(everything_has_a_name)
{
    for (int i = HF_LEASE_LOST; i <= HF_LEASE_FENCED; i++)
        ck_assert_str_ne(hf_lease_state_name((enum hf_lease_state)i), "?");
    for (int i = HF_LEASE_NONE; i <= HF_LEASE_VERIFY; i++)
        ck_assert_str_ne(hf_lease_what_name((enum hf_lease_what)i), "?");
    for (int i = HF_LEASE_COUNTED; i <= HF_LEASE_REFUSED; i++)
        ck_assert_str_ne(hf_lease_verdict_name((enum hf_lease_verdict)i), "?");
    ck_assert_str_eq(hf_lease_state_name((enum hf_lease_state)99), "?");
    ck_assert_str_eq(hf_lease_what_name((enum hf_lease_what)99), "?");
    ck_assert_str_eq(hf_lease_verdict_name((enum hf_lease_verdict)99), "?");
}
END_TEST

START_TEST(a_policy_for_any_ttl_that_may_be_chosen_is_sound)
{
    const char *why = NULL;

    for (hf_ms ttl = 2000; ttl <= 600000; ttl += 500) {
        struct hf_lease_policy p = hf_lease_policy_for(ttl);

        ck_assert_msg(hf_lease_policy_check(&p, &why) == HF_OK, "%lld: %s", (long long)ttl,
                      why);
        ck_assert_int_eq(p.ttl, ttl);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lease");

    tcase_add_test(t, a_policy_for_any_ttl_that_may_be_chosen_is_sound);
    tcase_add_test(t, without_a_lease_nothing_is_due_and_nothing_is_frozen);
    tcase_add_loop_test(t, the_answer_depends_on_now_and_not_on_when_it_was_asked_last, 0,
                        COUNT(SILENCE));
    tcase_add_test(t, time_never_goes_back);
    tcase_add_test(t, deadlines_run_from_the_send_time_of_a_late_reply);
    tcase_add_test(t, a_grant_that_is_answered_late_counts_from_its_send_time);
    tcase_add_test(t, the_ttl_that_etcd_returns_is_the_one_that_is_used);
    tcase_add_test(t, an_absurd_ttl_is_taken_for_a_day);
    tcase_add_loop_test(t, a_renewal_counts_only_if_a_current_leader_answers_it_for_our_lease,
                        0, COUNT(REPLIES));
    tcase_add_test(t, a_term_seen_elsewhere_unmasks_the_leader_that_was_deposed);
    tcase_add_test(t, an_answer_that_was_overtaken_on_another_stream_still_counts);
    tcase_add_test(t, a_full_table_of_members_forgets_the_oldest);
    tcase_add_test(t, an_attempt_may_take_a_sixth_and_then_the_next_endpoint_is_tried_at_once);
    tcase_add_test(t, an_attempt_that_fails_at_once_is_repeated_after_a_pause);
    tcase_add_test(t, a_late_failure_of_an_abandoned_attempt_does_not_end_the_next_one);
    tcase_add_test(t, a_late_reply_to_an_abandoned_attempt_counts_by_its_own_send_time);
    tcase_add_test(t, a_reply_may_name_a_later_send_time_than_was_reported);
    tcase_add_test(t, a_stale_answer_to_an_abandoned_attempt_changes_nothing);
    tcase_add_test(t, renewals_are_spread_by_the_jitter_and_no_further);
    tcase_add_test(t, jeopardy_ends_with_a_renewal_that_counts);
    tcase_add_test(t, a_fence_is_not_lifted_by_a_renewal);
    tcase_add_test(t, a_fence_is_lifted_by_a_txn_sent_after_it_while_renewals_pass);
    tcase_add_test(t, a_verification_is_repeated_until_its_outcome_is_known);
    tcase_add_test(t, after_a_break_the_key_is_verified_once_though_renewals_pass);
    tcase_add_test(t, after_a_jump_of_the_clock_it_renews_and_verifies_at_once);
    tcase_add_test(t, a_policy_that_leaves_time_for_everything_is_accepted);
    tcase_add_test(t, a_policy_that_contradicts_itself_is_refused_with_a_sentence);
    tcase_add_loop_test(t, a_ttl_below_the_floor_is_reported, 0, COUNT(TTLS));
    tcase_add_test(t, everything_has_a_name);
    return run("core/lease", t);
}
