/* lease_fixture.h - a lease of 15 s, granted at 0, for the tests of core/lease. */
#ifndef HF_TESTS_UNIT_LEASE_FIXTURE_H
#define HF_TESTS_UNIT_LEASE_FIXTURE_H

#include "core/lease.h"
#include "unit/suite.h"

enum { T = 15000, ID = 7, MEMBER = 1 };

/* The default without jitter, so that moments are round numbers. */
static inline struct hf_lease_policy exact_policy(void)
{
    struct hf_lease_policy p = hf_lease_policy_default();

    p.jitter_percent = 0;
    return p;
}

static inline struct hf_lease_reply reply(hf_ms sent_at)
{
    return (struct hf_lease_reply){ .id = ID,
                                    .sent_at = sent_at,
                                    .ttl_s = T / 1000,
                                    .member = MEMBER,
                                    .term = 2,
                                    .revision = 100 };
}

/* A lease that was granted at 0. */
static inline struct hf_lease granted(void)
{
    struct hf_lease_policy p = exact_policy();
    struct hf_lease_reply r = reply(0);
    struct hf_lease l;

    hf_lease_init(&l, &p);
    ck_assert_int_eq(hf_lease_on_granted(&l, &r, 0, 0), HF_LEASE_COUNTED);
    return l;
}

static inline void renew(struct hf_lease *l, hf_ms sent_at, hf_ms now)
{
    struct hf_lease_reply r = reply(sent_at);

    r.id = l->id;
    hf_lease_on_renew_sent(l, sent_at);
    ck_assert_int_eq(hf_lease_on_reply(l, &r, now, 0), HF_LEASE_COUNTED);
}

static inline enum hf_lease_state state(const struct hf_lease *l, hf_ms now)
{
    return hf_lease_next(l, now).state;
}

static inline enum hf_lease_what what(const struct hf_lease *l, hf_ms now)
{
    return hf_lease_next(l, now).what;
}

#endif
