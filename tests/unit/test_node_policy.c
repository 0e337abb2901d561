/* Which policies contradict themselves. */
#include "core/node.h"
#include "unit/suite.h"

static void no_change(struct hf_node_policy *p)
{
    (void)p;
}

#define CHANGE(name, field, value)                                                             \
    static void name(struct hf_node_policy *p)                                                 \
    {                                                                                          \
        p->field = (value);                                                                    \
    }

CHANGE(grace, stop_grace, -1)
CHANGE(cleanup, cleanup, INT64_MAX)
CHANGE(kill_timeout, kill_timeout, 0)
CHANGE(frozen_max, frozen_max, 0)
CHANGE(start_seconds, start_seconds, -1)
CHANGE(lost_grace, lost_grace, 1501)
CHANGE(lost_grace_below, lost_grace, -1)
CHANGE(leaderless, leaderless_after, -1)
CHANGE(look_back, look_back, 0)
CHANGE(look_first, look_first, -1)
CHANGE(look_again, look_again, 0)
CHANGE(retry, retry, 0)
CHANGE(report, report_every, 0)
CHANGE(quiet, report_quiet, 999)
CHANGE(heartbeat, heartbeat, 0)
CHANGE(ping, ping, 0)
CHANGE(max_tasks, max_tasks, 0)
CHANGE(max_asks, max_asks, 0)
CHANGE(spread, claim_spread, 0)
CHANGE(spread_above, claim_spread, 65)
CHANGE(restart, restart.window, -1)
CHANGE(chain, chain.tries, 0)
CHANGE(no_guests, max_guests, 0)

static const struct {
    void (*change)(struct hf_node_policy *p);
    int want;
} CHECKS[] = {
    { no_change, HF_OK },         { no_guests, HF_OK },        { grace, HF_EINVAL },
    { cleanup, HF_EINVAL },       { kill_timeout, HF_EINVAL }, { frozen_max, HF_EINVAL },
    { start_seconds, HF_EINVAL }, { lost_grace, HF_EINVAL },   { lost_grace_below, HF_EINVAL },
    { leaderless, HF_EINVAL },    { look_back, HF_EINVAL },    { retry, HF_EINVAL },
    { report, HF_EINVAL },        { quiet, HF_EINVAL },        { heartbeat, HF_EINVAL },
    { ping, HF_EINVAL },          { max_tasks, HF_EINVAL },    { max_asks, HF_EINVAL },
    { spread, HF_EINVAL },        { spread_above, HF_EINVAL }, { restart, HF_EINVAL },
    { chain, HF_EINVAL },         { look_first, HF_EINVAL },   { look_again, HF_EINVAL },
};

START_TEST(a_policy_that_contradicts_itself_is_refused_with_a_sentence)
{
    struct hf_node_policy policy = hf_node_policy_default();
    const char *why = NULL;

    CHECKS[_i].change(&policy);
    ck_assert_int_eq(hf_node_policy_check(&policy, &why), CHECKS[_i].want);
    ck_assert_int_eq(why != NULL, CHECKS[_i].want != HF_OK);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("node_policy");

    tcase_add_loop_test(t, a_policy_that_contradicts_itself_is_refused_with_a_sentence, 0,
                        COUNT(CHECKS));
    return run("core/node_policy", t);
}
