#include "core/placement.h"

#include <string.h>

#define SPAN_MAX      INT64_C(86400000) /* a day */
#define UNLIMITED_MAX 1000000

struct hf_placement_policy hf_placement_policy_default(void)
{
    return (struct hf_placement_policy){
        .home_grace = 60000,
        .ask_again = 30000,
        .sample = 4,
        .unlimited = 100,
    };
}

int hf_placement_policy_check(const struct hf_placement_policy *p, const char **ret_why)
{
    if (p->home_grace < 0 || p->home_grace > SPAN_MAX)
        *ret_why = "placement.home_grace must be 0..24 h";
    else if (p->ask_again <= 0 || p->ask_again > SPAN_MAX)
        *ret_why = "placement.ask_again must be positive and not above 24 h";
    else if (p->sample == 0 || p->sample > HF_PLACEMENT_SAMPLE)
        *ret_why = "placement.sample must be 1..8";
    else if (p->unlimited == 0 || p->unlimited > UNLIMITED_MAX)
        *ret_why = "placement.unlimited must be 1..1000000";
    else
        return HF_OK;
    return HF_EINVAL;
}

/* What NONE says when this is the least that stands against any host. */
/* clang-format off */
#define NOWHERE(ROW)                                                                           \
    ROW(FIT,        "there is no host",                                                        \
                    "a host joins")                                                            \
    ROW(UNKNOWN,    "nothing is known of any host",                                            \
                    "a host joins")                                                            \
    ROW(POOL,       "no host is of its pool",                                                  \
                    "a host of its pool joins")                                                \
    ROW(LAUNCHER,   "no host of its pool has its launcher",                                    \
                    "a host with its launcher joins")                                          \
    ROW(UNKILLABLE, "it has a process that cannot be killed where it could run",               \
                    "another host joins, or a person ends that process")                       \
    ROW(AVOIDED,    "it could not be started on any host that could take it",                  \
                    "another host joins")                                                      \
    ROW(LEFT,       "every host that could take it said goodbye",                              \
                    "a host joins")                                                            \
    ROW(CORDONED,   "every host that could take it is cordoned",                               \
                    "`holdfast host uncordon` is said")                                        \
    ROW(GONE,       "every host that could take it is gone",                                   \
                    "a host comes back")                                                       \
    ROW(FULL,       "every host that could take it is full",                                   \
                    "an agent there ends")                                                     \
    ROW(PASSED,     "starts failed lately on every host that could take it",                   \
                    "they are tried again")
/* clang-format on */

static const struct {
    const char *why, *next;
} NOWHERE_TEXTS[] = {
#define ROW(name, why, next) [HF_PLACEMENT_##name] = { why, next },
    NOWHERE(ROW)
#undef ROW
};

/* Two rows of one fault do not compile, so as many rows as faults are all of them. */
enum {
#define ROW(name, ...) ROW_##name,
    NOWHERE(ROW)
#undef ROW
        ROWS
};
enum {
#define X(name, text) FAULT_##name,
    HF_PLACEMENT_FAULT_MAP(X)
#undef X
        FAULTS
};
_Static_assert((int)ROWS == (int)FAULTS, "every fault needs a row");

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_PLACEMENT_NEVER - delay ? HF_PLACEMENT_NEVER : moment + delay;
}

static bool has(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool is_of_pool(const Holdfast__V1__Host *record, const char *pool)
{
    if (*pool == '\0')
        return record->n_pools == 0;
    return has(record->pools, record->n_pools, pool);
}

static bool is_full(const struct hf_placement_host *host)
{
    int32_t capacity = host->record->capacity;

    return capacity > 0 && host->agents + host->starts >= (size_t)capacity;
}

enum hf_placement_fault hf_placement_judge(const struct hf_placement_host *host,
                                           const Holdfast__V1__Spec *spec, hf_ms now)
{
    const Holdfast__V1__Host *record = host->record;

    if (record == NULL)
        return HF_PLACEMENT_UNKNOWN;
    if (!is_of_pool(record, spec->pool))
        return HF_PLACEMENT_POOL;
    if (!has(record->launchers, record->n_launchers, spec->launcher))
        return HF_PLACEMENT_LAUNCHER;
    if (host->unkillable)
        return HF_PLACEMENT_UNKILLABLE;
    if (host->avoided)
        return HF_PLACEMENT_AVOIDED;
    if (record->left)
        return HF_PLACEMENT_LEFT;
    if (record->cordoned)
        return HF_PLACEMENT_CORDONED;
    if (!host->live)
        return HF_PLACEMENT_GONE;
    if (is_full(host))
        return HF_PLACEMENT_FULL;
    return now < host->passed_until ? HF_PLACEMENT_PASSED : HF_PLACEMENT_FIT;
}

/* Below 0 when a is less loaded than b, relative to what they can take; 0 when they are equal.
 */
static int compare_load(const struct hf_placement_policy *p, const struct hf_placement_host *a,
                        const struct hf_placement_host *b)
{
    uint64_t room_a = a->record->capacity > 0 ? (uint64_t)a->record->capacity : p->unlimited;
    uint64_t room_b = b->record->capacity > 0 ? (uint64_t)b->record->capacity : p->unlimited;
    /* Of what is fit, or has no limit, these are numbers of agents of one host: no overflow. */
    uint64_t load_a = (a->agents + a->starts) * room_b;
    uint64_t load_b = (b->agents + b->starts) * room_a;

    return (load_a > load_b) - (load_a < load_b);
}

/* The least loaded of some hosts. */
struct best {
    const struct hf_placement_host *host; /* NULL: there was none */
    uint32_t equals;                      /* as good as it, itself included */
};

/* What is known after having looked at some hosts. */
struct search {
    struct best fit, passed;
    enum hf_placement_fault near; /* the least that stands against any */
    hf_ms passed_until;           /* the earliest */
};

static uint32_t scale(uint32_t random, uint32_t below)
{
    return (uint32_t)(((uint64_t)random * below) >> 32);
}

/* A different word for each equal, so that the one that is kept is as likely as any other. */
static uint32_t stir(uint32_t random, uint32_t round)
{
    uint64_t z = ((uint64_t)round << 32 | random) * UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(z >> 32);
}

static void compare(struct best *best, const struct hf_placement_policy *p,
                    const struct hf_placement_host *host, uint32_t random)
{
    int order = best->host == NULL ? -1 : compare_load(p, host, best->host);

    best->equals = order < 0 ? 1 : best->equals + (order == 0);
    if (order < 0 || (order == 0 && scale(stir(random, best->equals), best->equals) == 0))
        best->host = host;
}

static void look_at(struct search *s, const struct hf_placement_policy *p,
                    const struct hf_placement_host *host, const Holdfast__V1__Spec *spec,
                    hf_ms now, uint32_t random)
{
    enum hf_placement_fault fault = hf_placement_judge(host, spec, now);

    if (fault > s->near)
        s->near = fault;
    if (fault == HF_PLACEMENT_PASSED && host->passed_until < s->passed_until)
        s->passed_until = host->passed_until;
    if (fault == HF_PLACEMENT_FIT)
        compare(&s->fit, p, host, random);
    if (fault == HF_PLACEMENT_PASSED)
        compare(&s->passed, p, host, random);
}

static struct hf_placement_decision on(const struct hf_placement_host *host, const char *why,
                                       hf_ms now)
{
    return (struct hf_placement_decision){
        .verdict = HF_PLACEMENT_HOST,
        .why = why,
        .next = "a start is ordered there",
        .at = now,
        .host = host,
    };
}

static struct hf_placement_decision nowhere(const struct hf_placement_policy *p,
                                            const struct search *s, hf_ms now)
{
    hf_ms at = after(now, p->ask_again);

    return (struct hf_placement_decision){
        .verdict = HF_PLACEMENT_NONE,
        .why = NOWHERE_TEXTS[s->near].why,
        .next = NOWHERE_TEXTS[s->near].next,
        .at = at < s->passed_until ? at : s->passed_until,
    };
}

struct hf_placement_decision hf_placement_decide(const struct hf_placement_policy *p,
                                                 const struct hf_placement_case *facts,
                                                 hf_ms now, uint32_t random)
{
    const struct hf_placement_host *home = facts->home;
    struct search s = { .near = HF_PLACEMENT_FIT, .passed_until = HF_PLACEMENT_NEVER };

    if (home != NULL) {
        look_at(&s, p, home, facts->spec, now, random);
        if (s.fit.host != NULL)
            return on(home, "it is at home there", now);
        if (s.near == HF_PLACEMENT_GONE && now < after(home->gone_at, p->home_grace))
            return (struct hf_placement_decision){
                .verdict = HF_PLACEMENT_WAIT_HOME,
                .why = "the host where it is at home vanished a moment ago",
                .next = "its home comes back, or it is started elsewhere",
                .at = after(home->gone_at, p->home_grace),
            };
    }
    for (size_t i = 0; i < facts->count; i++)
        if (home == NULL || strcmp(facts->hosts[i].name, home->name) != 0)
            look_at(&s, p, &facts->hosts[i], facts->spec, now, random);
    if (s.fit.host != NULL)
        return on(s.fit.host, "of those that can take it, it has most room", now);
    if (!facts->is_all)
        return (struct hf_placement_decision){
            .verdict = HF_PLACEMENT_WIDEN,
            .why = "none of the hosts that were looked at can take it",
            .next = "all hosts of its pool are looked at",
            .at = now,
        };
    if (s.passed.host != NULL && !facts->fresh_only)
        return on(s.passed.host, "starts failed lately on every host that could take it", now);
    return nowhere(p, &s, now);
}

/* Floyd's way: each step adds one, the new index itself if what was drawn is there already. */
size_t hf_placement_sample(const struct hf_placement_policy *p, size_t count, uint64_t random,
                           size_t ret_indices[HF_PLACEMENT_SAMPLE])
{
    size_t want = count < p->sample ? count : p->sample;

    for (size_t n = 0; n < want; n++) {
        size_t top = count - want + n;
        size_t drawn;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        drawn = (size_t)((random >> 33) % (top + 1));
        for (size_t i = 0; i < n; i++)
            if (ret_indices[i] == drawn)
                drawn = top;
        ret_indices[n] = drawn;
    }
    return want;
}

const char *hf_placement_verdict_name(enum hf_placement_verdict verdict)
{
    switch (verdict) {
    case HF_PLACEMENT_HOST: return "HOST";
    case HF_PLACEMENT_WAIT_HOME: return "WAIT_HOME";
    case HF_PLACEMENT_WIDEN: return "WIDEN";
    case HF_PLACEMENT_NONE: return "NONE";
    }
    return "?";
}

const char *hf_placement_fault_name(enum hf_placement_fault fault)
{
    switch (fault) {
#define X(name, text)                                                                          \
    case HF_PLACEMENT_##name: return #name;
        HF_PLACEMENT_FAULT_MAP(X)
#undef X
    }
    return "?";
}

const char *hf_placement_fault_text(enum hf_placement_fault fault)
{
    switch (fault) {
#define X(name, text)                                                                          \
    case HF_PLACEMENT_##name: return text;
        HF_PLACEMENT_FAULT_MAP(X)
#undef X
    }
    return "?";
}
