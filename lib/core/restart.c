#include "core/restart.h"

#include <stddef.h>

#define WINDOW_MAX INT64_C(604800000) /* a week */

enum rule {
    NO,
    YES,
    DEMAND, /* when there is work */
    MOVE,   /* yes; elsewhere if its host is gone */
    OTHER,  /* on another host; held if there is none */
    AWAY,   /* only on another host, and somebody is told */
};

/* clang-format off */
#define DEATHS(X)                                                                              \
    /* kind         on_failure always  never */                                                \
    X(unknown,      YES,       YES,    NO,   "how it ended is not known")                      \
    X(left,         NO,        NO,     NO,   "it said goodbye")                                \
    X(finished,     DEMAND,    YES,    NO,   "it finished")                                    \
    X(crashed,      YES,       YES,    NO,   "it crashed")                                     \
    X(oom,          YES,       YES,    NO,   "it ran out of memory")                           \
    X(frozen,       YES,       YES,    NO,   "it was frozen and had to be ended")              \
    X(unreachable,  MOVE,      MOVE,   NO,   "its lease expired and nobody saw its end")       \
    X(fenced,       YES,       YES,    NO,   "its own agentd ended it")                        \
    X(terminated,   YES,       YES,    YES,  "it was ended on request")                        \
    X(start_failed, OTHER,     OTHER,  NO,   "it could not be started")                        \
    X(unkillable,   AWAY,      AWAY,   NO,   "its process cannot be killed")
/* clang-format on */

enum {
    ON_FAILURE = HOLDFAST__V1__SPEC__RESTART__on_failure,
    ALWAYS = HOLDFAST__V1__SPEC__RESTART__always,
    NEVER = HOLDFAST__V1__SPEC__RESTART__never,
    POLICIES,
};

struct death {
    enum rule rules[POLICIES];
    const char *again;
    const char *elsewhere;
    const char *on_demand;
    const char *not_again;
    const char *nowhere;
};

static const struct death TABLE[] = {
#define X(kind, on_failure, always, never, text)                                               \
    [HOLDFAST__V1__EXIT__KIND__##kind] = {                                                     \
        .rules = { [ON_FAILURE] = (on_failure), [ALWAYS] = (always), [NEVER] = (never) },      \
        .again = text ": it is started again",                                                 \
        .elsewhere = text ": it is started on another host",                                   \
        .on_demand = text ": it is started when its role has work",                            \
        .not_again = text ", and by its restart policy that is the end",                       \
        .nowhere = text ", and no other host can take it",                                     \
    },
    DEATHS(X)
#undef X
};

/* The switches have no default: a kind or a policy without a place in the table does not
 * compile. */
static const struct death *find_death(Holdfast__V1__Exit__Kind kind)
{
    switch (kind) {
#define X(name, ...) case HOLDFAST__V1__EXIT__KIND__##name:
        DEATHS(X)
#undef X
        return &TABLE[kind];
    case _HOLDFAST__V1__EXIT__KIND_IS_INT_SIZE: break;
    }
    return &TABLE[HOLDFAST__V1__EXIT__KIND__unknown];
}

static enum rule find_rule(const struct death *death, Holdfast__V1__Spec__Restart policy)
{
    switch (policy) {
    case HOLDFAST__V1__SPEC__RESTART__on_failure:
    case HOLDFAST__V1__SPEC__RESTART__always:
    case HOLDFAST__V1__SPEC__RESTART__never: return death->rules[policy];
    case _HOLDFAST__V1__SPEC__RESTART_IS_INT_SIZE: break;
    }
    return death->rules[ON_FAILURE];
}

struct hf_restart_policy hf_restart_policy_default(void)
{
    return (struct hf_restart_policy){
        .backoff = hf_backoff_policy_restart(),
        .limit = 10,
        .window = 600000,
    };
}

/* Whether an agent that dies at once, every time, ever comes to its limit. */
static bool can_reach_limit(const struct hf_restart_policy *p)
{
    hf_ms elapsed = 0;

    for (uint32_t attempt = 2; attempt <= p->limit + 1; attempt++)
        elapsed += hf_backoff_delay(&p->backoff, attempt, UINT32_MAX);
    return elapsed < p->window;
}

int hf_restart_policy_check(const struct hf_restart_policy *p, const char **ret_why)
{
    const char *why = NULL;

    if (hf_backoff_policy_check(&p->backoff, &why) != HF_OK)
        *ret_why = why;
    else if (p->limit == 0 || p->limit > HF_BACKOFF_KEPT)
        *ret_why = "restart.limit must be 1..32";
    else if (p->window <= 0 || p->window > WINDOW_MAX)
        *ret_why = "restart.window must be positive and not above a week";
    else if (!can_reach_limit(p))
        *ret_why = "restart.limit cannot be reached within restart.window with these delays";
    else
        return HF_OK;
    return HF_EINVAL;
}

static struct hf_restart_decision leave(struct hf_restart *r, enum hf_restart_verdict verdict,
                                        const char *why, const char *next)
{
    r->planned = false;
    return (struct hf_restart_decision){
        .verdict = verdict,
        .why = why,
        .next = next,
        .at = HF_RESTART_NEVER,
    };
}

static struct hf_restart_decision hold(struct hf_restart *r, const char *why)
{
    struct hf_restart_decision d =
        leave(r, HF_RESTART_HELD, why, "`holdfast restart` releases it");

    d.alert = !r->held;
    r->held = true;
    return d;
}

static struct hf_restart_decision start(struct hf_restart *r, const struct hf_restart_policy *p,
                                        const struct death *death, bool elsewhere, hf_ms now,
                                        uint32_t random)
{
    /* What was planned stands, even if the limit would forbid it by now: it was counted. */
    if (!r->planned && hf_backoff_count(&r->starts, p->window, now) >= p->limit)
        return hold(r, "it was started too often in too short a time");
    if (!r->planned)
        r->next_at = hf_backoff_next(&r->starts, &p->backoff, now, random);
    r->planned = true;
    return (struct hf_restart_decision){
        .verdict = elsewhere ? HF_RESTART_ELSEWHERE : HF_RESTART_START_AT,
        .why = elsewhere ? death->elsewhere : death->again,
        .next = "a start is ordered",
        .at = r->next_at,
        .attempt = hf_backoff_streak(&r->starts, &p->backoff, now) + 1,
    };
}

static const struct death ASKED = { .again = "a person wants it to run" };

static struct hf_restart_decision by_rule(struct hf_restart *r,
                                          const struct hf_restart_policy *p,
                                          const struct hf_restart_case *facts, hf_ms now,
                                          uint32_t random)
{
    const struct death *death = find_death(facts->death);
    bool planned = r->planned;
    struct hf_restart_decision d;

    switch (find_rule(death, facts->restart)) {
    case NO:
        if (facts->asked)
            return start(r, p, &ASKED, false, now, random);
        return leave(r, HF_RESTART_NOT_WANTED, death->not_again, "`holdfast start` starts it");
    case DEMAND:
        if (facts->asked)
            return start(r, p, &ASKED, false, now, random);
        if (!facts->has_work)
            return leave(r, HF_RESTART_ON_DEMAND, death->on_demand, "a task of its role");
        return start(r, p, death, false, now, random);
    case MOVE: return start(r, p, death, facts->host_gone, now, random);
    case OTHER:
        if (facts->asked)
            return start(r, p, &ASKED, false, now, random);
        if (!facts->has_other_host)
            return hold(r, death->nowhere);
        return start(r, p, death, true, now, random);
    case AWAY:
        d = start(r, p, death, true, now, random);
        d.alert = d.alert || !planned;
        return d;
    case YES: break;
    }
    return start(r, p, death, false, now, random);
}

struct hf_restart_decision hf_restart_decide(struct hf_restart *r,
                                             const struct hf_restart_policy *p,
                                             const struct hf_restart_case *facts, hf_ms now,
                                             uint32_t random)
{
    if (facts->wanted != HOLDFAST__V1__WANTED__STATE__running)
        return leave(r, HF_RESTART_NOT_WANTED, "it is wanted stopped",
                     "`holdfast start` starts it");
    if (facts->live)
        return leave(r, HF_RESTART_DUPLICATE, "it is live", "nothing");
    if (facts->ordered)
        return leave(r, HF_RESTART_DUPLICATE, "a start is ordered already",
                     "its host starts or refuses it, or the command is withdrawn");
    if (r->held)
        return hold(r, "it is held until a person releases it");
    return by_rule(r, p, facts, now, random);
}

void hf_restart_on_ordered(struct hf_restart *r, hf_ms now)
{
    hf_backoff_on_attempt(&r->starts, now);
    r->planned = false;
}

void hf_restart_on_released(struct hf_restart *r)
{
    *r = (struct hf_restart){ 0 };
}

const char *hf_restart_verdict_name(enum hf_restart_verdict verdict)
{
    switch (verdict) {
    case HF_RESTART_START_AT: return "START_AT";
    case HF_RESTART_ELSEWHERE: return "ELSEWHERE";
    case HF_RESTART_ON_DEMAND: return "ON_DEMAND";
    case HF_RESTART_NOT_WANTED: return "NOT_WANTED";
    case HF_RESTART_HELD: return "HELD";
    case HF_RESTART_DUPLICATE: return "DUPLICATE";
    }
    return "?";
}
