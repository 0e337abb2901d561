/* Random histories of leases, doubt, proofs and people: what core/storm guarantees holds in
 * each of them, whatever the order of events. */
#include <string.h>

#include "core/storm.h"
#include "sim/random.h"
#include "unit/suite.h"

enum { S = 1000, STEPS = 2000, HOSTS = 40, AGENTS = 1200 };

struct run {
    struct hfs_random random;
    struct hf_storm storm;
    uint32_t live;
    hf_ms now;
    enum hf_storm_state state;         /* after the last event */
    hf_ms held;                        /* in this episode, as far as a storm did it */
    bool by_person;                    /* the present hold, or one of this episode */
    int alerts;                        /* in this episode */
    hf_ms taken[STEPS * 8];            /* when something paced was allowed, */
    enum hf_storm_state in[STEPS * 8]; /* in which state, */
    size_t taken_count;
};

static struct hf_storm_facts facts_of(const struct run *r)
{
    return (struct hf_storm_facts){ .hosts = HOSTS, .live = r->live };
}

/* Nothing happens until then; what time alone does is seen on the way. */
static void pass(struct run *r, hf_ms to)
{
    while (r->now < to) {
        struct hf_storm_view view = hf_storm_get(&r->storm, r->now);
        hf_ms next = view.at < to ? view.at : to;

        ck_assert_int_gt(next, r->now);
        if (view.state == HF_STORM_FULL)
            r->held += next - r->now;
        r->now = next;
        ck_assert_int_le(hf_storm_get(&r->storm, r->now).state, view.state);
    }
    r->state = hf_storm_get(&r->storm, r->now).state;
    if (r->state == HF_STORM_NORMAL) {
        r->held = 0;
        r->by_person = false;
        r->alerts = 0;
    }
}

enum happening { LOST, BACK, DOUBT, WELL, UNWELL, PROCEED, HOLD, NOTHING };

static enum happening draw(struct run *r)
{
    /* Of 100: mostly leases and proofs, and a person now and then. */
    static const struct {
        enum happening what;
        unsigned upto;
    } SHARES[] = { { LOST, 30 },   { BACK, 50 },    { DOUBT, 53 }, { WELL, 88 },
                   { UNWELL, 89 }, { PROCEED, 90 }, { HOLD, 91 } };
    uint64_t dice = hfs_random_below(&r->random, 100);

    for (size_t i = 0; i < COUNT(SHARES); i++)
        if (dice < SHARES[i].upto)
            return SHARES[i].what;
    return NOTHING;
}

static void lose_some(struct run *r)
{
    uint32_t most = hfs_random_percent(&r->random, 20) ? r->live : r->live / 8;
    uint32_t count = (uint32_t)hfs_random_below(&r->random, most + 1);

    r->live -= count;
    struct hf_storm_facts facts = facts_of(r);
    hf_storm_on_lost(&r->storm, count, &facts, r->now);
}

static void happen(struct run *r, enum happening what)
{
    switch (what) {
    case LOST: lose_some(r); break;
    case BACK:
        r->live += r->live < HOSTS;
        hf_storm_on_back(&r->storm, r->now);
        break;
    case DOUBT: hf_storm_on_doubt(&r->storm, HF_STORM_DOUBT_TERM, 15 * S, r->now); break;
    case WELL:
    case UNWELL: hf_storm_on_proof(&r->storm, what == WELL, r->now); break;
    case PROCEED: hf_storm_on_proceed(&r->storm, r->now); break;
    case HOLD:
        hf_storm_on_hold(&r->storm, r->now);
        r->by_person = true;
        break;
    case NOTHING: break;
    }
}

/* Whatever happened: only a loss or a person leads into FULL. */
static void check_entry(struct run *r, enum happening what, enum hf_storm_state before)
{
    struct hf_storm_view view = hf_storm_get(&r->storm, r->now);

    if (view.state == HF_STORM_FULL && before != HF_STORM_FULL)
        ck_assert(what == LOST || what == HOLD);
    if (before == HF_STORM_FULL && view.state != HF_STORM_FULL)
        ck_assert(what == BACK || what == WELL || what == PROCEED);
    ck_assert_int_le(view.anew, r->now);
    ck_assert_int_ge(view.at, r->now);
    if (before == HF_STORM_NORMAL)
        r->held = 0;
    if (!r->by_person)
        ck_assert_int_le(r->held, r->storm.policy.hold_max);
    if (hf_storm_take_alert(&r->storm))
        ck_assert_int_le(++r->alerts, 2);
    r->state = view.state;
}

static void take_some(struct run *r)
{
    for (uint64_t i = hfs_random_below(&r->random, 8); i > 0; i--) {
        struct hf_storm copy = r->storm;
        struct hf_storm_decision d =
            hf_storm_take(&r->storm, HF_STORM_RESTART_UNSEEN, AGENTS, r->now);

        ck_assert(hf_storm_take(&copy, HF_STORM_RESTART_SEEN, AGENTS, r->now).allowed);
        if (r->state == HF_STORM_FULL)
            ck_assert(!d.allowed);
        if (!d.allowed) {
            ck_assert_int_gt(d.at, r->now);
            continue;
        }
        r->in[r->taken_count] = r->state;
        r->taken[r->taken_count++] = r->now;
    }
}

/* From any moment at which something went to any other: no more than the burst and the rate of
 * the fastest state that was met. */
static void check_rates(const struct run *r)
{
    const struct hf_storm_policy *p = &r->storm.policy;

    for (size_t i = 0; i < r->taken_count; i++) {
        bool normal = false;

        for (size_t k = i; k < r->taken_count && k < i + 400; k++) {
            normal = normal || r->in[k] == HF_STORM_NORMAL;
            const struct hf_storm_rate *rate = normal ? &p->normal : &p->partial;
            double span = (double)(r->taken[k] - r->taken[i]);
            double most =
                rate->burst + span * ((double)AGENTS / (double)rate->all_within) + 0.001;

            /* An assertion that holds is a system call, and these are many. */
            if ((double)(k - i + 1) > most)
                ck_abort_msg("%zu in %.0f ms", k - i + 1, span);
        }
    }
}

START_TEST(every_history_keeps_the_guarantees)
{
    struct hf_storm_policy p = hf_storm_policy_default();
    static struct run r;

    r = (struct run){ .random = { (uint64_t)_i }, .live = HOSTS };
    hf_storm_init(&r.storm, &p, 0);
    for (int step = 0; step < STEPS; step++) {
        hf_ms pause = (hf_ms)hfs_random_below(
            &r.random, hfs_random_percent(&r.random, 3) ? 300 * S : 4 * S);
        enum happening what = draw(&r);

        pass(&r, r.now + pause);
        enum hf_storm_state before = r.state;
        happen(&r, what);
        check_entry(&r, what, before);
        take_some(&r);
    }
    check_rates(&r);

    /* When faults stop, all is normal again after a while, and then everybody has a turn; what
     * a person holds, a person lets go. */
    if (hf_storm_get(&r.storm, r.now).by_person)
        hf_storm_on_proceed(&r.storm, r.now);
    pass(&r, r.now + p.hold_max + 2 * p.partial_for);
    ck_assert_int_eq(r.state, HF_STORM_NORMAL);
    int taken = 0;
    for (hf_ms at = 0; at <= p.normal.all_within; at += 10)
        while (hf_storm_take(&r.storm, HF_STORM_RESTART_UNSEEN, AGENTS, r.now + at).allowed)
            taken++;
    ck_assert_int_ge(taken, AGENTS);
}
END_TEST

/* The oracle of the window: a plain list of losses. */
START_TEST(what_counts_as_many_is_what_a_list_of_losses_says)
{
    struct hf_storm_policy p = hf_storm_policy_default();
    struct hfs_random random = { (uint64_t)_i };
    hf_ms lost_at[200], now = (hf_ms)hfs_random_below(&random, 100000);
    size_t count = 0;
    struct hf_storm s;

    hf_storm_init(&s, &p, now);
    while (count < COUNT(lost_at)) {
        size_t within = 0, surely = 0;

        now += (hf_ms)hfs_random_below(&random, 1500);
        lost_at[count++] = now;
        for (size_t i = 0; i < count; i++) {
            within += lost_at[i] > now - p.window;
            surely += lost_at[i] > now - p.window * 19 / 20;
        }
        hf_storm_on_lost(&s, 1, &(struct hf_storm_facts){ .hosts = 50, .live = 25 }, now);
        bool after = hf_storm_get(&s, now).state == HF_STORM_PARTIAL;
        if (surely >= 15)
            ck_assert(after);
        if (within < 15)
            ck_assert(!after);
        if (after)
            return;
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("storm properties");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_history_keeps_the_guarantees, 0, hft_seeds(60));
    tcase_add_loop_test(t, what_counts_as_many_is_what_a_list_of_losses_says, 0,
                        hft_seeds(200));
    return run("core/storm, in random histories", t);
}
