/* election_fixture.h - a candidate with a good lease, for the tests of core/election. */
#ifndef HF_TESTS_UNIT_ELECTION_FIXTURE_H
#define HF_TESTS_UNIT_ELECTION_FIXTURE_H

#include "core/election.h"
#include "unit/suite.h"

enum { MINE = 7, NEXT = 8, OTHER = 9, NOW = 1000, LONG = 100000 };

static inline struct hf_election_key absent(int64_t revision)
{
    return (struct hf_election_key){ .revision = revision };
}

static inline struct hf_election_key held(int64_t lease, int64_t create_rev)
{
    return (struct hf_election_key){
        .revision = create_rev, .present = true, .lease = lease, .create_rev = create_rev
    };
}

static inline void observe(struct hf_election *e, struct hf_election_key key, hf_ms now)
{
    ck_assert_int_eq(hf_election_on_observed(e, &key, now, 0), HF_OK);
}

static inline void answer(struct hf_election *e, struct hf_election_key key, hf_ms now)
{
    ck_assert_int_eq(hf_election_on_outcome(e, HF_ELECTION_ANSWERED, &key, now, 0), HF_OK);
}

static inline void unanswered(struct hf_election *e, enum hf_election_outcome outcome,
                              hf_ms now)
{
    ck_assert_int_eq(hf_election_on_outcome(e, outcome, NULL, now, 0), HF_OK);
}

static inline enum hf_election_state state(const struct hf_election *e, hf_ms now)
{
    return hf_election_next(e, now).state;
}

static inline enum hf_election_what what(const struct hf_election *e, hf_ms now)
{
    return hf_election_next(e, now).what;
}

/* Stands with a lease that is proven for long, and knows nothing of the key. */
static inline struct hf_election standing(void)
{
    struct hf_election_policy p = hf_election_policy_default();
    struct hf_election e;

    hf_election_init(&e, &p);
    hf_election_on_lease(&e, MINE, LONG, NOW);
    hf_election_stand(&e, NOW);
    return e;
}

/* Has sent its campaign. */
static inline struct hf_election campaigning(void)
{
    struct hf_election e = standing();

    observe(&e, absent(10), NOW);
    ck_assert_int_eq(what(&e, NOW), HF_ELECTION_CAMPAIGN);
    hf_election_on_sent(&e, HF_ELECTION_CAMPAIGN, NOW);
    return e;
}

static inline struct hf_election leading(void)
{
    struct hf_election e = campaigning();

    answer(&e, held(MINE, 20), NOW);
    ck_assert(hf_election_can_act(&e, NOW));
    return e;
}

#endif
