/* Random lives of one task and its agents under leaders that come and go: what core/recover
 * guarantees holds whatever happens, because all of it is in the records. */
#include <string.h>

#include "core/recover.h"
#include "sim/random.h"
#include "unit/suite.h"

enum { S = 1000, MIN = 60 * S, STEPS = 600, AGENTS = 3 };

#define QUEUED    HOLDFAST__V1__TASK__STATE__queued
#define PENDING   HOLDFAST__V1__TASK__STATE__pending
#define PROGRESS  HOLDFAST__V1__TASK__STATE__in_progress
#define COMPLETED HOLDFAST__V1__TASK__STATE__completed
#define IN_REVIEW HOLDFAST__V1__TASK__STATE__needs_review

/* etcd, and what a watcher has noted of it. */
struct world {
    struct hfs_random random;
    struct hf_recover_policy policy;
    hf_ms now;
    Holdfast__V1__Task__State state;
    struct hf_recover_record record; /* of the task, as it is stored */
    struct hf_recover_agent agents[AGENTS];
    int64_t lives[AGENTS];
    int owner;
    hf_ms seen_since;                           /* with an owner, by a leader */
    hf_ms resets[STEPS], deaths[AGENTS][STEPS]; /* when */
    int reset_count, death_count[AGENTS];
    int since_success; /* resets */
};

static struct hf_recover load(const struct world *w)
{
    return hf_recover_load(&w->record.record);
}

static void store(struct world *w, const struct hf_recover *recover)
{
    hf_recover_store(recover, "t1", &w->record);
    ck_assert_uint_le(w->record.record.n_outcomes, HF_RECOVER_OUTCOMES);
}

/* A leader looks at the task, with nothing but the record in its hands. */
static void reconcile(struct world *w)
{
    struct hf_recover recover = load(w);
    struct hf_recover_view view = hf_recover_judge(&recover, w->state, w->now);

    ck_assert_ptr_nonnull(view.why);
    ck_assert_ptr_nonnull(view.next);
    switch (view.due) {
    case HF_RECOVER_FINE: ck_assert_int_gt(view.at, w->now); return;
    case HF_RECOVER_PROMOTE:
        ck_assert_int_eq(w->state, QUEUED);
        w->state = PENDING;
        return;
    case HF_RECOVER_TAKEN:
        hf_recover_on_taken(&recover, &w->policy, w->now);
        w->seen_since = w->now;
        break;
    case HF_RECOVER_RELEASED: hf_recover_on_released(&recover); break;
    case HF_RECOVER_CLOSE:
        ck_assert(w->state == COMPLETED ||
                  (w->state == PROGRESS && w->now - w->seen_since >= w->policy.probation));
        hf_recover_on_closed(&recover, w->state, 1, w->now);
        w->since_success = 0;
        break;
    }
    store(w, &recover);
    ck_assert_int_ne(hf_recover_judge(&recover, w->state, w->now).due, view.due);
}

static void note_reset(struct world *w, const struct hf_recover_decision *d)
{
    w->since_success++;
    ck_assert_int_le(w->since_success, (int)w->policy.limit);
    if (w->since_success > 1) {
        hf_ms delay =
            hf_backoff_delay(&w->policy.backoff, (uint32_t)w->since_success, UINT32_MAX);

        ck_assert_int_ge(d->at - w->resets[w->reset_count - 1], delay);
    }
    w->resets[w->reset_count++] = d->at;
}

static void note_death(struct world *w, int agent)
{
    int n = w->death_count[agent]++;

    w->deaths[agent][n] = w->now;
    if (n >= (int)w->policy.agent_limit)
        ck_assert_int_ge(w->now - w->deaths[agent][n - (int)w->policy.agent_limit],
                         w->policy.agent_window);
}

static void die(struct world *w)
{
    struct hf_recover recover = load(w);
    struct hf_recover_agent *agent = &w->agents[w->owner];
    struct hf_recover_case facts = {
        .incarnation = w->lives[w->owner],
        .death = (Holdfast__V1__Exit__Kind)hfs_random_below(&w->random, 11),
        .restored = (int64_t)hfs_random_below(&w->random, 4),
        .checkpoint = (int64_t)hfs_random_below(&w->random, 4),
        .poison = 2,
        .successor = hfs_random_percent(&w->random, 50),
    };
    struct hf_recover_decision d = hf_recover_decide(
        &recover, agent, &w->policy, &facts, w->now, (uint32_t)hfs_random_next(&w->random));

    hf_recover_on_decided(&recover, agent, &facts, &d, w->now);
    store(w, &recover);
    ck_assert_int_ne(d.verdict, HF_RECOVER_WAIT);
    w->state = d.verdict == HF_RECOVER_NOW     ? PENDING
               : d.verdict == HF_RECOVER_LATER ? QUEUED
                                               : IN_REVIEW;
    if (d.verdict != HF_RECOVER_REVIEW) {
        note_reset(w, &d);
        note_death(w, w->owner);
    }
    w->lives[w->owner]++; /* it starts again, whatever becomes of its task */
}

static void retry(struct world *w)
{
    store(w, &(struct hf_recover){ 0 });
    w->since_success = 0;
    w->state = PENDING;
}

static void happen(struct world *w)
{
    uint64_t dice = hfs_random_below(&w->random, 100);
    struct hf_recover recover = load(w);

    if (w->state == PENDING && dice < 60) {
        w->owner = (int)hfs_random_below(&w->random, AGENTS);
        w->state = PROGRESS;
    } else if (w->state == PENDING && dice < 70) {
        hf_recover_on_unstarted(&recover, dice < 65
                                              ? HOLDFAST__V1__RECOVERY__RESULT__refused
                                              : HOLDFAST__V1__RECOVERY__RESULT__withdrawn);
        store(w, &recover);
    } else if (w->state == PROGRESS && dice < 60) {
        die(w);
    } else if (w->state == PROGRESS && dice < 70) {
        w->state = PENDING;
    } else if (w->state == PROGRESS && dice < 75) {
        w->state = COMPLETED;
    } else if (w->state == IN_REVIEW && dice < 50) {
        retry(w);
    }
}

START_TEST(limits_hold_whoever_leads)
{
    static struct world w;

    w = (struct world){ .random = { (uint64_t)_i }, .state = PENDING };
    w.policy = hf_recover_policy_default();
    w.now = INT64_C(1769846951430);
    for (int agent = 0; agent < AGENTS; agent++)
        w.lives[agent] = 1;
    store(&w, &(struct hf_recover){ 0 });
    for (int step = 0; step < STEPS; step++) {
        w.now += (hf_ms)hfs_random_below(
            &w.random, hfs_random_percent(&w.random, 20) ? 20 * MIN : 2 * MIN);
        happen(&w);
        if (hfs_random_percent(&w.random, 70)) /* else nobody leads at the moment */
            reconcile(&w);
        if (w.state == COMPLETED && hf_recover_load(&w.record.record).attempts == 0)
            retry(&w); /* as another task, which has its own record */
    }
    ck_assert_int_gt(w.reset_count, 10);
}
END_TEST

/* Whatever a record says: the decision is one that can be carried out and stored. */
START_TEST(no_record_leads_astray)
{
    struct hfs_random random = { (uint64_t)_i };
    struct hf_recover_policy p = hf_recover_policy_default();
    struct hf_recover r = { .attempts = (uint32_t)hfs_random_below(&random, 6) };
    struct hf_recover_agent agent = { 0 };
    struct hf_recover_case facts = { .incarnation = 5, .successor = true };
    hf_ms now = (hf_ms)hfs_random_below(&random, INT64_C(1) << 42);

    r.next_at = (hf_ms)hfs_random_next(&random);
    r.probation_until = (hf_ms)hfs_random_next(&random);
    r.outcome_count = (uint8_t)hfs_random_below(&random, HF_RECOVER_OUTCOMES + 1);
    for (int i = 0; i < r.outcome_count; i++)
        r.outcomes[i] = (struct hf_recover_outcome){
            .at = (hf_ms)hfs_random_next(&random),
            .checkpoint = (int64_t)hfs_random_next(&random),
            .result = (Holdfast__V1__Recovery__Result)hfs_random_below(&random, 7),
        };
    for (int state = QUEUED; state <= IN_REVIEW + 1; state++)
        ck_assert_ptr_nonnull(hf_recover_judge(&r, (Holdfast__V1__Task__State)state, now).why);
    struct hf_recover_decision d =
        hf_recover_decide(&r, &agent, &p, &facts, now, (uint32_t)hfs_random_next(&random));
    ck_assert_int_eq(d.verdict == HF_RECOVER_REVIEW, r.attempts >= p.limit);
    if (d.verdict != HF_RECOVER_REVIEW)
        ck_assert(d.at >= now && d.at <= now + 4 * MIN);
    hf_recover_on_decided(&r, &agent, &facts, &d, now);
    ck_assert_uint_le(r.attempts, 5);
    ck_assert_uint_le(r.outcome_count, HF_RECOVER_OUTCOMES);
    ck_assert_int_eq(r.probation_until, 0);
    ck_assert_int_eq(r.next_at, d.verdict == HF_RECOVER_LATER ? d.at : 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("recover properties");

    tcase_add_loop_test(t, limits_hold_whoever_leads, 0, hft_seeds(300));
    tcase_add_loop_test(t, no_record_leads_astray, 0, hft_seeds(500));
    return run("core/recover, in random histories", t);
}
