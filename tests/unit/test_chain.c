#include <string.h>

#include "core/chain.h"
#include "sim/random.h"
#include "unit/suite.h"

#define VERIFY     HF_CHAIN_VERIFY
#define USE        HF_CHAIN_USE
#define START_OVER HF_CHAIN_START_OVER
#define REFUSE     HF_CHAIN_REFUSE

#define VALID      HF_CHAIN_VALID
#define CORRUPT    HF_CHAIN_CORRUPT
#define MISSING    HF_CHAIN_MISSING
#define BROKEN     HF_CHAIN_BROKEN
#define ELSEWHERE  HF_CHAIN_ELSEWHERE
#define UNREADABLE HF_CHAIN_UNREADABLE

#define DIED HOLDFAST__V1__RECOVERY__RESULT__died

static struct hf_recover with_deaths(int64_t first, int64_t second, int64_t third)
{
    return (struct hf_recover){
        .outcomes = { { .at = 1, .checkpoint = first, .result = DIED },
                      { .at = 2, .checkpoint = second, .result = DIED },
                      { .at = 3, .checkpoint = third, .result = DIED } },
        .outcome_count = 3,
    };
}

static struct hf_chain begin(int64_t head, const struct hf_recover *recover)
{
    static const struct hf_recover FRESH;
    struct hf_chain_policy p = hf_chain_policy_default();
    struct hf_chain c;

    hf_chain_init(&c, &p, head, recover != NULL ? recover : &FRESH);
    return c;
}

static struct hf_chain_step next(const struct hf_chain *c)
{
    struct hf_chain_step step = hf_chain_next(c);

    ck_assert_ptr_nonnull(step.why);
    ck_assert_ptr_nonnull(step.next);
    ck_assert_int_eq(step.seq > 0, step.verdict == VERIFY || step.verdict == USE);
    return step;
}

/* It asks for `seq`, and hears this of it. */
static void answer(struct hf_chain *c, int64_t seq, enum hf_chain_result result)
{
    struct hf_chain_step step = next(c);

    ck_assert_int_eq(step.verdict, VERIFY);
    ck_assert_int_eq(step.seq, seq);
    hf_chain_on_verified(c, seq, result, result == MISSING ? -1 : seq - 1);
}

static void expect(const struct hf_chain *c, enum hf_chain_verdict verdict, int64_t seq,
                   bool alert, const char *why)
{
    struct hf_chain_step step = next(c);

    ck_assert_str_eq(hf_chain_verdict_name(step.verdict), hf_chain_verdict_name(verdict));
    ck_assert_int_eq(step.seq, seq);
    ck_assert_int_eq(step.alert, alert);
    ck_assert_msg(strstr(step.why, why) != NULL, "%s", step.why);
}

START_TEST(a_task_without_checkpoints_starts_over_and_nobody_is_told)
{
    struct hf_chain c = begin(0, NULL);

    expect(&c, START_OVER, 0, false, "no checkpoint");
    c = begin(-3, NULL);
    expect(&c, START_OVER, 0, false, "no checkpoint");
}
END_TEST

START_TEST(the_newest_that_is_whole_is_used_in_silence)
{
    struct hf_chain c = begin(7, NULL);

    expect(&c, VERIFY, 7, false, "newest");
    answer(&c, 7, VALID);
    expect(&c, USE, 7, false, "newest");
}
END_TEST

START_TEST(what_is_damaged_is_passed_over_and_somebody_is_told)
{
    struct hf_chain c = begin(7, NULL);

    answer(&c, 7, CORRUPT);
    expect(&c, VERIFY, 6, false, "newer ones");
    answer(&c, 6, MISSING);
    answer(&c, 5, BROKEN);
    answer(&c, 4, VALID);
    expect(&c, USE, 4, true, "newer ones are damaged");
}
END_TEST

START_TEST(when_none_is_whole_the_task_starts_over_and_somebody_is_told)
{
    struct hf_chain c = begin(2, NULL);

    answer(&c, 2, CORRUPT);
    answer(&c, 1, CORRUPT);
    expect(&c, START_OVER, 0, true, "no checkpoint is left");
}
END_TEST

START_TEST(one_that_killed_two_successors_is_not_even_read)
{
    struct hf_recover r = with_deaths(7, 6, 7);
    struct hf_chain c = begin(7, &r);

    answer(&c, 6, VALID);
    expect(&c, USE, 6, true, "successors that went on from newer ones died");
}
END_TEST

START_TEST(poison_is_passed_over_wherever_it_stands)
{
    struct hf_recover r = with_deaths(5, 5, 4);
    struct hf_chain c = begin(6, &r);

    answer(&c, 6, CORRUPT);
    answer(&c, 4, VALID);
    expect(&c, USE, 4, true, "newer ones are damaged");

    r = with_deaths(1, 1, 1);
    c = begin(1, &r);
    expect(&c, START_OVER, 0, true, "successors died");
    c = begin(2, &r);
    answer(&c, 2, CORRUPT);
    expect(&c, START_OVER, 0, true, "killed nobody");
}
END_TEST

START_TEST(the_link_is_followed_where_there_is_one)
{
    struct hf_chain c = begin(9, NULL);

    hf_chain_on_verified(&c, 9, CORRUPT, 5);
    ck_assert_int_eq(next(&c).seq, 5);
    hf_chain_on_verified(&c, 5, MISSING, 3); /* the body is, the record is not */
    ck_assert_int_eq(next(&c).seq, 3);
    hf_chain_on_verified(&c, 3, CORRUPT, 0); /* the first of all */
    expect(&c, START_OVER, 0, true, "no checkpoint is left");
}
END_TEST

START_TEST(one_that_names_itself_or_a_newer_one_is_broken_even_if_it_is_whole)
{
    struct hf_chain c = begin(9, NULL);

    hf_chain_on_verified(&c, 9, VALID, 9);
    hf_chain_on_verified(&c, 8, VALID, INT64_MAX);
    ck_assert_uint_eq(c.found[BROKEN], 2);
    hf_chain_on_verified(&c, 7, BROKEN, 2); /* nothing of it is believed */
    answer(&c, 6, VALID);
    expect(&c, USE, 6, true, "damaged");
}
END_TEST

START_TEST(one_that_cannot_be_read_is_read_again_and_then_refused)
{
    struct hf_chain c = begin(7, NULL);

    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(next(&c).wait, i == 0 ? 0 : 2000);
        answer(&c, 7, UNREADABLE);
    }
    expect(&c, REFUSE, 0, true, "cannot be read");

    c = begin(7, NULL);
    answer(&c, 7, UNREADABLE);
    expect(&c, VERIFY, 7, false, "at first");
    answer(&c, 7, CORRUPT);
    ck_assert_int_eq(next(&c).wait, 0); /* the next one has its own chances */
    answer(&c, 6, UNREADABLE);
    answer(&c, 6, VALID);
    expect(&c, USE, 6, true, "damaged");
}
END_TEST

START_TEST(one_that_lies_elsewhere_is_refused_at_once_whatever_is_older)
{
    struct hf_chain c = begin(7, NULL);

    answer(&c, 7, CORRUPT);
    answer(&c, 6, ELSEWHERE);
    expect(&c, REFUSE, 0, true, "does not have");
    ck_assert_int_eq(c.at, 6);
    hf_chain_on_verified(&c, 6, VALID, 5); /* nobody asked */
    expect(&c, REFUSE, 0, true, "does not have");
}
END_TEST

START_TEST(a_walk_ends_after_so_many_answers)
{
    struct hf_chain c = begin(1000, NULL);

    for (int64_t seq = 1000; seq > 900; seq--)
        answer(&c, seq, MISSING);
    expect(&c, START_OVER, 0, true, "as many");

    c = begin(1000, NULL);
    for (int64_t seq = 1000; seq > 901; seq--)
        answer(&c, seq, MISSING);
    answer(&c, 901, UNREADABLE); /* may be whole */
    expect(&c, REFUSE, 0, true, "cannot be read");
}
END_TEST

START_TEST(what_was_not_asked_for_changes_nothing)
{
    struct hf_chain c = begin(7, NULL);

    hf_chain_on_verified(&c, 6, VALID, 5);
    ck_assert_int_eq(next(&c).seq, 7);
    answer(&c, 7, VALID);
    hf_chain_on_verified(&c, 7, CORRUPT, 6); /* a late copy of an answer */
    expect(&c, USE, 7, false, "newest");
}
END_TEST

/* Random chains, with damage, poison and outages: the answer is what a look at the whole chain
 * gives, and every entry is asked for in order. */
START_TEST(the_answer_is_the_newest_that_is_whole_and_no_poison)
{
    struct hfs_random random = { (uint64_t)_i };
    int64_t head = (int64_t)hfs_random_below(&random, 20);
    struct hf_recover r = with_deaths((int64_t)hfs_random_below(&random, 20),
                                      (int64_t)hfs_random_below(&random, 4),
                                      (int64_t)hfs_random_below(&random, 4));
    enum hf_chain_result truth[21];
    int64_t want = 0, last = INT64_MAX;
    bool damage = false;

    for (int64_t seq = 1; seq <= head; seq++) {
        truth[seq] = (enum hf_chain_result)hfs_random_below(&random, 4);
        if (truth[seq] == VALID && hf_recover_deaths(&r, seq) < 2)
            want = seq;
    }
    struct hf_chain c = begin(head, &r);
    for (int i = 0; next(&c).verdict == VERIFY; i++) {
        int64_t seq = next(&c).seq;

        ck_assert_int_lt(i, 40);
        ck_assert_int_ge(seq, want);
        ck_assert_uint_lt(hf_recover_deaths(&r, seq), 2);
        ck_assert_int_le(seq, last - (next(&c).wait == 0));
        last = seq;
        bool outage = next(&c).wait == 0 && hfs_random_percent(&random, 30);
        damage = damage || (!outage && truth[seq] != VALID);
        hf_chain_on_verified(&c, seq, outage ? UNREADABLE : truth[seq],
                             outage || truth[seq] == MISSING ? -1 : seq - 1);
    }
    ck_assert_int_eq(next(&c).verdict, want > 0 ? USE : START_OVER);
    ck_assert_int_eq(next(&c).seq, want);
    ck_assert_int_eq(next(&c).alert, want != head);
    ck_assert(damage || next(&c).verdict != USE || strstr(next(&c).why, "damaged") == NULL);
}
END_TEST

static const struct {
    struct hf_chain_policy policy;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { { 2, 100, 3, 2000 }, NULL },
    { { 16, 10000, 9999, 60000 }, NULL },
    { { 1, 1, 0, 0 }, NULL },
    { { 0, 100, 3, 2000 }, "poison" },
    { { 17, 100, 3, 2000 }, "poison" },
    { { 2, 0, 0, 2000 }, "tries must" },
    { { 2, 10001, 3, 2000 }, "tries must" },
    { { 2, 3, 3, 2000 }, "rereads must be below" },
    { { 2, 100, 3, -1 }, "reread_after" },
    { { 2, 100, 3, 60001 }, "reread_after" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;

    ck_assert_int_eq(hf_chain_policy_check(&CHECKS[_i].policy, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(results_and_verdicts_have_names)
{
    ck_assert_str_eq(hf_chain_result_name(VALID), "VALID");
    ck_assert_str_eq(hf_chain_result_name(CORRUPT), "CORRUPT");
    ck_assert_str_eq(hf_chain_result_name(MISSING), "MISSING");
    ck_assert_str_eq(hf_chain_result_name(BROKEN), "BROKEN");
    ck_assert_str_eq(hf_chain_result_name(UNREADABLE), "UNREADABLE");
    ck_assert_str_eq(hf_chain_result_name((enum hf_chain_result)99), "?");
    for (int i = VALID; i <= UNREADABLE; i++)
        ck_assert_uint_gt(strlen(hf_chain_result_text((enum hf_chain_result)i)), 5);
    ck_assert_str_eq(hf_chain_result_text((enum hf_chain_result)99), "?");
    ck_assert_str_eq(hf_chain_verdict_name(VERIFY), "VERIFY");
    ck_assert_str_eq(hf_chain_verdict_name(USE), "USE");
    ck_assert_str_eq(hf_chain_verdict_name(START_OVER), "START_OVER");
    ck_assert_str_eq(hf_chain_verdict_name(REFUSE), "REFUSE");
    ck_assert_str_eq(hf_chain_verdict_name((enum hf_chain_verdict)99), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("chain");

    tcase_add_test(t, a_task_without_checkpoints_starts_over_and_nobody_is_told);
    tcase_add_test(t, the_newest_that_is_whole_is_used_in_silence);
    tcase_add_test(t, what_is_damaged_is_passed_over_and_somebody_is_told);
    tcase_add_test(t, when_none_is_whole_the_task_starts_over_and_somebody_is_told);
    tcase_add_test(t, one_that_killed_two_successors_is_not_even_read);
    tcase_add_test(t, poison_is_passed_over_wherever_it_stands);
    tcase_add_test(t, the_link_is_followed_where_there_is_one);
    tcase_add_test(t, one_that_names_itself_or_a_newer_one_is_broken_even_if_it_is_whole);
    tcase_add_test(t, one_that_cannot_be_read_is_read_again_and_then_refused);
    tcase_add_test(t, one_that_lies_elsewhere_is_refused_at_once_whatever_is_older);
    tcase_add_test(t, a_walk_ends_after_so_many_answers);
    tcase_add_test(t, what_was_not_asked_for_changes_nothing);
    tcase_add_loop_test(t, the_answer_is_the_newest_that_is_whole_and_no_poison, 0,
                        hft_seeds(500));
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, results_and_verdicts_have_names);
    return run("core/chain", t);
}
