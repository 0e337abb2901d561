#include "core/detector.h"

#include <math.h>
#include <stddef.h>

#define PHI_MAX     300.0
#define FIRST       2 /* intervals that the first estimate counts as */
#define HABIT       5 /* intervals that make one */
#define EVERY_MAX   3600000
#define BEAT_MAX    86400000
#define MISSES_MAX  100
#define OWED_MAX    3600000 /* that an answer may take: more than any of ours */
#define GIVEN_UP_MS 2000    /* that who says so is taken at its word */

static const char *const SOURCES[] = {
#define X(name, text) text,
    HF_SOURCE_MAP(X)
#undef X
};

const char *hf_source_name(enum hf_source source)
{
    return (size_t)source < HF_SOURCES ? SOURCES[source] : "?";
}

/* Policies. */

struct hf_detector_policy hf_detector_policy_for(enum hf_detector_profile profile)
{
    static const struct {
        hf_ms every, answer;
        uint32_t misses;
    } PINGS[] = { [HF_DETECTOR_DEFAULT] = { 2000, 1000, 2 },
                  [HF_DETECTOR_DEV] = { 1000, 1000, 2 },
                  [HF_DETECTOR_TOLERANT] = { 3000, 1000, 3 } };

    return (struct hf_detector_policy){
        .ping_every = PINGS[profile].every,
        .ping_answer = PINGS[profile].answer,
        .ping_misses = PINGS[profile].misses,
        .ping_idle = 60000,
        .ping_return = 10000,
        .heartbeat = 30000,
        .beat_misses = 3,
        .watchdog = 30000,
        .probe_misses = 3,
        .still_after = 2000,
        .blocked_max = 30000,
        .warning = 1000,
        .deviation_min = 100,
        .phi = 8,
        .convicts = 1U << HF_SOURCE_PING | 1U << HF_SOURCE_WATCHDOG | 1U << HF_SOURCE_PROBE,
    };
}

int hf_detector_policy_check(const struct hf_detector_policy *p, const char **ret_why)
{
    if (p->ping_answer <= 0 || p->ping_every < p->ping_answer || p->ping_every > EVERY_MAX)
        *ret_why = "pings: every must not be below answer, which must be positive";
    else if (p->ping_misses < 2 || p->ping_misses > MISSES_MAX)
        *ret_why = "pings: misses must be 2 to 100, for one is never a failure";
    else if (p->ping_idle < p->ping_every)
        *ret_why = "pings: who does not answer must not be asked more often than who does";
    else if (p->heartbeat <= 0 || p->heartbeat > BEAT_MAX)
        *ret_why = "heartbeat must be positive and not above a day";
    else if (p->beat_misses < 1 || p->beat_misses > MISSES_MAX || p->probe_misses < 1 ||
             p->probe_misses > MISSES_MAX)
        *ret_why = "misses must be 1 to 100";
    else if (p->watchdog < 0 || p->watchdog > BEAT_MAX)
        *ret_why = "watchdog must not be negative or above a day";
    else if (p->still_after <= 0 || p->blocked_max <= 0 || p->warning <= 0 ||
             p->deviation_min <= 0 || p->ping_return <= 0)
        *ret_why = "what a verdict waits for must be positive";
    else if (!(p->phi >= 1 && p->phi <= 100))
        *ret_why = "phi must be 1 to 100";
    else
        return HF_OK;
    return HF_EINVAL;
}

/* What is heard. */

void hf_detector_init(struct hf_detector *d, hf_ms now)
{
    *d = (struct hf_detector){ .shape_since = now, .active_at = now, .begun = now, .turn = 1 };
}

void hf_detector_sample(struct hf_detector_heard *heard, hf_ms interval)
{
    double off = (double)interval - heard->mean;

    if (interval <= 0 || interval > BEAT_MAX)
        return;
    if (heard->count < HF_DETECTOR_SAMPLES)
        heard->count++;
    heard->mean += off / heard->count;
    heard->variance +=
        (off * ((double)interval - heard->mean) - heard->variance) / heard->count;
}

/* An interval that was suspicious, or announced, is none that is usual. Whoever is heard by a
 * request is owed its answer at that moment: that is no excuse. */
static void hear(struct hf_detector *d, enum hf_source source, hf_ms now)
{
    struct hf_detector_heard *heard = &d->heard[source];

    if (heard->used && !heard->skip && d->announced_until == 0 &&
        (d->doubted & 1U << source) == 0)
        hf_detector_sample(heard, now - heard->at);
    heard->used = true;
    heard->skip = false;
    heard->at = now;
}

/* Who does something is well, whatever else is missing. How often it does is another matter. */
void hf_detector_on_activity(struct hf_detector *d, hf_ms now)
{
    for (size_t i = 0; i < sizeof d->heard / sizeof d->heard[0]; i++) {
        if ((d->doubted & 1U << i) != 0 && d->heard[i].at < now)
            d->heard[i].skip = true; /* it was too long to be usual */
    }
    d->active_at = now;
    d->active = true;
    d->missed = d->probe_alone = 0;
}

void hf_detector_recall(struct hf_detector *d, uint8_t used, hf_ms now)
{
    for (enum hf_source s = HF_SOURCE_PING; s <= HF_SOURCE_HEARTBEAT; s++) {
        if ((used & 1U << s) == 0 || d->heard[s].used)
            continue;
        d->heard[s].used = d->heard[s].skip = true;
        d->heard[s].at = now;
    }
    d->probe_used = d->probe_used || (used & 1U << HF_SOURCE_PROBE) != 0;
    if ((used & 1U << HF_SOURCE_PING) != 0 && !d->listens)
        d->awaited = now;
}

uint8_t hf_detector_get_used(const struct hf_detector *d)
{
    uint8_t used = d->probe_used ? 1U << HF_SOURCE_PROBE : 0;

    for (enum hf_source s = HF_SOURCE_PING; s <= HF_SOURCE_HEARTBEAT; s++) {
        if (d->heard[s].used)
            used |= (uint8_t)(1U << s);
    }
    return used;
}

/* What we owe it explains nothing any more. */
static void forgive(struct hf_detector *d)
{
    d->owed = 0;
    d->turn = d->turn < UINT32_MAX ? d->turn + 1 : 1;
}

struct hf_detector_debt hf_detector_on_asked(struct hf_detector *d, hf_ms now)
{
    hf_detector_on_activity(d, now);
    d->owed++;
    d->owed_until = now + OWED_MAX;
    return (struct hf_detector_debt){ .turn = d->turn, .since = now };
}

void hf_detector_on_answered(struct hf_detector *d, const struct hf_detector_policy *p,
                             struct hf_detector_debt *debt, hf_ms now)
{
    bool counts = debt->turn == d->turn;

    debt->turn = 0;
    if (!counts)
        return;
    d->owed--;
    /* A short wait is no reason to forget how punctual it is. */
    if (now - debt->since >= p->deviation_min)
        hf_detector_begin_anew(d, now);
}

void hf_detector_on_listens(struct hf_detector *d, bool listens, hf_ms now)
{
    d->listens = listens;
    d->awaited = 0;
    d->ping_out = false;
    d->missed = 0;
    d->ping_next = now;
    d->heard[HF_SOURCE_PING].used = d->heard[HF_SOURCE_PING].used && listens;
    d->heard[HF_SOURCE_PING].skip = true;
    d->heard[HF_SOURCE_PING].at = now;
}

void hf_detector_on_ping(struct hf_detector *d, const struct hf_detector_policy *p, hf_ms now)
{
    /* Who said that it will be silent may not read for a day: its stream must hold them. */
    bool is_expected = d->heard[HF_SOURCE_PING].used && d->announced_until == 0;

    d->ping_out = true;
    d->ping_at = now;
    d->ping_next = now + (is_expected ? p->ping_every : p->ping_idle);
}

void hf_detector_on_answer(struct hf_detector *d, const struct hf_detector_policy *p, hf_ms now)
{
    hear(d, HF_SOURCE_PING, now);
    d->ping_out = false;
    d->ping_next = d->ping_at + p->ping_every;
    hf_detector_on_activity(d, now);
    forgive(d); /* it does not have to wait for anything to answer */
}

void hf_detector_on_beat(struct hf_detector *d, enum hf_source source, hf_ms now)
{
    /* Another of its threads may not know yet. */
    if (source == HF_SOURCE_WATCHDOG && now >= d->gave_up + GIVEN_UP_MS)
        d->gave_up = 0;
    hear(d, source, now);
    hf_detector_on_activity(d, now);
}

void hf_detector_on_probe(struct hf_detector *d, bool good, hf_ms now)
{
    if (good)
        d->probe_used = d->probed = true;
    if (!good && d->probe_failed == 0)
        d->probe_since = now;
    d->probe_failed = good ? 0 : d->probe_failed + 1;
    d->probe_alone = good ? 0 : d->probe_alone + 1;
}

void hf_detector_on_shape(struct hf_detector *d, enum hf_process_shape shape, hf_ms now)
{
    if (shape == d->shape)
        return;
    /* What a debugger held has to find its way back first. */
    if (d->shape == HF_PROCESS_TRACED)
        hf_detector_begin_anew(d, now);
    d->shape = shape;
    d->shape_since = now;
}

/* What it did not say while it need not, it cannot be blamed for later. */
void hf_detector_begin_anew(struct hf_detector *d, hf_ms now)
{
    for (size_t i = 0; i < sizeof d->heard / sizeof d->heard[0]; i++) {
        d->heard[i].skip = true;
        if (d->heard[i].at < now)
            d->heard[i].at = now;
    }
    d->missed = d->probe_failed = d->probe_alone = 0;
    d->ping_out = false;
    d->ping_next = now;
    d->shape_since = now;
    if (d->awaited != 0)
        d->awaited = now;
}

void hf_detector_announce(struct hf_detector *d, hf_ms until, hf_ms now)
{
    if (d->announced_until != 0)
        hf_detector_begin_anew(d, now); /* until now everything was explained */
    d->announced_until = until;
}

void hf_detector_slow(struct hf_detector *d, hf_ms until)
{
    d->slow_until = until;
}

void hf_detector_set_watchdog(struct hf_detector *d, hf_ms watchdog)
{
    d->watchdog = watchdog;
}

void hf_detector_give_up(struct hf_detector *d, hf_ms now)
{
    d->gave_up = now;
}

static hf_ms earlier(hf_ms a, hf_ms b)
{
    return a < b ? a : b;
}

void hf_detector_on_lost(struct hf_detector *d, hf_ms lost, hf_ms now)
{
    if (lost <= 0)
        return;
    for (size_t i = 0; i < sizeof d->heard / sizeof d->heard[0]; i++) {
        d->heard[i].skip = true;
        d->heard[i].at = earlier(d->heard[i].at + lost, now);
    }
    d->active_at = earlier(d->active_at + lost, now);
    if (d->awaited != 0)
        d->awaited = earlier(d->awaited + lost, now);
    if (d->ping_out)
        d->ping_at = earlier(d->ping_at + lost, now);
    if (d->suspect_at != 0) /* a warning counts while it can be heeded */
        d->suspect_at = earlier(d->suspect_at + lost, now);
}

/* How unlikely. */

double hf_detector_phi(const struct hf_detector_heard *heard, hf_ms expected,
                       hf_ms deviation_min, hf_ms pause, hf_ms silence)
{
    /* The first estimate: as expected, give or take a quarter. */
    double count = FIRST + (double)heard->count;
    double sum = FIRST * (double)expected + heard->count * heard->mean;
    double squares = FIRST * (double)expected * (double)expected * (1 + 1.0 / 16) +
                     heard->count * (heard->variance + heard->mean * heard->mean);
    double mean, deviation, y, x;

    mean = sum / count;
    deviation = sqrt(fmax(squares / count - mean * mean, 0));
    y = ((double)silence - mean - (double)pause) / fmax(deviation, (double)deviation_min);
    x = y * (1.5976 + 0.070566 * y * y);
    return fmin(x > 600 ? x / M_LN10 : log1p(exp(x)) / M_LN10, PHI_MAX);
}

/* What is missing. */

struct clock {
    hf_ms expected; /* between two beats */
    hf_ms pause;    /* beyond that is nothing special */
    hf_ms warn, limit;
};

static struct clock clock_of(const struct hf_detector *d, const struct hf_detector_policy *p,
                             enum hf_source source)
{
    hf_ms watchdog = d->watchdog != 0 ? d->watchdog : p->watchdog;
    struct clock clock = { .expected = p->ping_every, .pause = p->ping_answer };

    if (source == HF_SOURCE_WATCHDOG) /* half of it is what programs beat at */
        clock = (struct clock){ .expected = watchdog / 2, .pause = watchdog / 2 };
    else if (source == HF_SOURCE_HEARTBEAT)
        clock =
            (struct clock){ .expected = p->heartbeat, .pause = p->heartbeat * p->beat_misses };
    clock.limit = clock.expected + clock.pause;
    clock.warn = clock.expected + clock.pause * 2 / 3;
    return clock;
}

static hf_ms last_sign(const struct hf_detector *d, enum hf_source source)
{
    return d->heard[source].at > d->active_at ? d->heard[source].at : d->active_at;
}

static double phi_of(const struct hf_detector *d, const struct hf_detector_policy *p,
                     enum hf_source source, hf_ms now)
{
    struct clock clock = clock_of(d, p, source);

    return hf_detector_phi(&d->heard[source], clock.expected, p->deviation_min, clock.pause,
                           now - last_sign(d, source));
}

static struct hf_detector_verdict found(enum hf_detector_state state, enum hf_source source,
                                        double phi, hf_ms since, hf_ms at)
{
    return (struct hf_detector_verdict){
        .state = state, .source = source, .phi = phi, .since = since, .at = at
    };
}

/* A ping that nobody answered in time is a miss, unless the agent did something else since, and
 * the next one follows soon. */
static void count_misses(struct hf_detector *d, const struct hf_detector_policy *p,
                         hf_ms factor, bool explained, hf_ms now)
{
    if (!d->ping_out || now < d->ping_at + p->ping_answer * factor)
        return;
    d->ping_out = false;
    if (!d->heard[HF_SOURCE_PING].used || explained || d->active_at > d->ping_at)
        return;
    d->missed++;
    d->ping_next = now + (p->ping_every - p->ping_answer) / 2;
}

static struct hf_detector_verdict look_at_pings(const struct hf_detector *d,
                                                const struct hf_detector_policy *p, hf_ms now)
{
    double phi = phi_of(d, p, HF_SOURCE_PING, now);
    enum hf_detector_state state = HF_DETECTOR_WELL;
    struct hf_detector_verdict v;

    /* Who is unpunctual by habit gets more of them, but not for ever. */
    if (d->missed >= p->ping_misses && (phi >= p->phi || d->missed >= 2 * p->ping_misses ||
                                        d->heard[HF_SOURCE_PING].count < HABIT))
        state = HF_DETECTOR_FROZEN;
    else if (d->missed > 0)
        state = HF_DETECTOR_SUSPECT;
    v = found(state, HF_SOURCE_PING, phi, last_sign(d, HF_SOURCE_PING), HF_DETECTOR_NEVER);
    v.missed = d->missed;
    return v;
}

/* It is up again, and does not want to be asked any more. */
static void take_leave(struct hf_detector *d, const struct hf_detector_policy *p, hf_ms now)
{
    if (d->awaited == 0 || !d->active || now < last_sign(d, HF_SOURCE_PING) + p->ping_return)
        return;
    d->awaited = 0;
    d->heard[HF_SOURCE_PING].used = false;
}

/* It answered who watched it before, and nothing was heard of it since. */
static struct hf_detector_verdict look_for_return(const struct hf_detector *d,
                                                  const struct hf_detector_policy *p,
                                                  hf_ms factor, hf_ms now)
{
    hf_ms suspect_at = d->awaited + p->ping_return * factor;
    hf_ms frozen_at = suspect_at + p->ping_return / 2 * factor;

    if (d->active)
        return found(HF_DETECTOR_WELL, HF_SOURCE_PING, 0, d->awaited,
                     last_sign(d, HF_SOURCE_PING) + p->ping_return);
    if (now < suspect_at)
        return found(HF_DETECTOR_WELL, HF_SOURCE_PING, 0, d->awaited, suspect_at);
    return found(now < frozen_at ? HF_DETECTOR_SUSPECT : HF_DETECTOR_FROZEN, HF_SOURCE_PING, 0,
                 d->awaited, now < frozen_at ? frozen_at : HF_DETECTOR_NEVER);
}

static struct hf_detector_verdict look_at_beats(const struct hf_detector *d,
                                                const struct hf_detector_policy *p,
                                                enum hf_source source, hf_ms factor, hf_ms now)
{
    struct clock clock = clock_of(d, p, source);
    hf_ms since = last_sign(d, source), silence = now - since;
    double phi = phi_of(d, p, source, now);
    hf_ms warn = clock.warn * factor, limit = clock.limit * factor;

    if (clock.expected == 0)
        return found(HF_DETECTOR_WELL, source, 0, since, HF_DETECTOR_NEVER);
    if (silence < warn)
        return found(HF_DETECTOR_WELL, source, phi, since, since + warn);
    if (silence < limit)
        return found(HF_DETECTOR_SUSPECT, source, phi, since, since + limit);
    /* Who is unpunctual by habit gets as much again, and no more. */
    return found(phi >= p->phi || silence >= 2 * limit ? HF_DETECTOR_FROZEN
                                                       : HF_DETECTOR_SUSPECT,
                 source, phi, since, earlier(now + p->warning, since + 2 * limit));
}

static struct hf_detector_verdict
look_at_probes(const struct hf_detector *d, const struct hf_detector_policy *p, hf_ms factor)
{
    struct hf_detector_verdict v =
        found(HF_DETECTOR_SUSPECT, HF_SOURCE_PROBE, 0, d->probe_since, HF_DETECTOR_NEVER);

    /* Who has not served yet may need a while to begin. */
    if (d->probe_failed == 0 || (!d->probe_used && d->probe_failed < p->probe_misses))
        v.state = HF_DETECTOR_WELL;
    else if (d->probe_used && d->probe_alone >= p->probe_misses * factor)
        v.state = HF_DETECTOR_FROZEN;
    v.missed = d->probe_failed;
    return v;
}

static struct hf_detector_verdict look_at_process(const struct hf_detector *d,
                                                  const struct hf_detector_policy *p, hf_ms now)
{
    hf_ms due =
        d->shape_since + (d->shape == HF_PROCESS_BLOCKED ? p->blocked_max : p->still_after);

    if (d->shape == HF_PROCESS_GOES)
        return found(HF_DETECTOR_WELL, HF_SOURCE_PROCESS, 0, now, HF_DETECTOR_NEVER);
    return found(now >= due ? HF_DETECTOR_SUSPECT : HF_DETECTOR_WELL, HF_SOURCE_PROCESS, 0,
                 d->shape_since, now >= due ? HF_DETECTOR_NEVER : due);
}

/* What convicts counts more than what does not; of two suspicions the first one in the list. */
static void weigh(struct hf_detector *d, struct hf_detector_verdict *worst,
                  struct hf_detector_verdict v, const struct hf_detector_policy *p)
{
    hf_ms at = earlier(worst->at, v.at);

    if (v.state != HF_DETECTOR_WELL)
        d->doubted |= (uint8_t)(1U << v.source);
    if (v.state == HF_DETECTOR_FROZEN && (p->convicts & 1U << v.source) == 0)
        v.state = HF_DETECTOR_SUSPECT;
    if (v.state > worst->state)
        *worst = v;
    worst->at = at;
}

static struct hf_detector_verdict weigh_all(struct hf_detector *d,
                                            const struct hf_detector_policy *p, hf_ms factor,
                                            bool explained, hf_ms now)
{
    struct hf_detector_verdict worst =
        found(HF_DETECTOR_WELL, HF_SOURCES, 0, now, HF_DETECTOR_NEVER);

    d->doubted = 0;
    if (d->heard[HF_SOURCE_PING].used && !explained)
        weigh(d, &worst,
              d->awaited != 0 ? look_for_return(d, p, factor, now) : look_at_pings(d, p, now),
              p);
    for (enum hf_source s = HF_SOURCE_WATCHDOG; s <= HF_SOURCE_HEARTBEAT; s++) {
        if (d->heard[s].used && !explained)
            weigh(d, &worst, look_at_beats(d, p, s, factor, now), p);
    }
    if (!explained)
        weigh(d, &worst, look_at_probes(d, p, factor), p);
    weigh(d, &worst, look_at_process(d, p, now), p);
    if (d->gave_up != 0)
        weigh(d, &worst,
              found(HF_DETECTOR_FROZEN, HF_SOURCE_WATCHDOG, 0, d->active_at, HF_DETECTOR_NEVER),
              p);
    return worst;
}

/* A verdict needs a warning, and nobody who holds the agent or keeps it waiting. */
static void temper(struct hf_detector *d, const struct hf_detector_policy *p, hf_ms factor,
                   struct hf_detector_verdict *v, hf_ms now)
{
    hf_ms due;

    if (v->state == HF_DETECTOR_WELL) {
        d->suspect_at = 0;
        return;
    }
    if (d->suspect_at == 0)
        d->suspect_at = now;
    due = d->gave_up != 0 ? now : d->suspect_at + p->warning * factor;
    if (d->shape == HF_PROCESS_TRACED)
        due = HF_DETECTOR_NEVER;
    else if (d->shape == HF_PROCESS_BLOCKED && due < d->shape_since + p->blocked_max)
        due = d->shape_since + p->blocked_max;
    if (v->state == HF_DETECTOR_FROZEN && now < due) {
        v->state = HF_DETECTOR_SUSPECT;
        v->at = earlier(v->at, due);
    }
}

bool hf_detector_is_explained(const struct hf_detector *d)
{
    return d->announced_until != 0 || d->owed > 0;
}

struct hf_detector_verdict hf_detector_look(struct hf_detector *d,
                                            const struct hf_detector_policy *p,
                                            const struct hf_tilt_view *us, hf_ms now)
{
    hf_ms factor = (hf_ms)(us->score + 1) * (now < d->slow_until ? 2 : 1);
    struct hf_detector_verdict v;
    bool explained;

    if (d->announced_until != 0 && now >= d->announced_until)
        hf_detector_announce(d, 0, now);
    if (d->owed > 0 && now >= d->owed_until) {
        forgive(d);
        hf_detector_begin_anew(d, now);
    }
    explained = hf_detector_is_explained(d);
    if (!us->can_judge) {
        hf_detector_begin_anew(d, now);
        d->suspect_at = 0;
        d->doubted = 0;
        return found(HF_DETECTOR_WELL, HF_SOURCES, 0, now, us->at);
    }
    take_leave(d, p, now);
    count_misses(d, p, factor, explained, now);
    v = weigh_all(d, p, factor, explained, now);
    temper(d, p, factor, &v, now);
    v.ping_due = d->listens && !d->ping_out && now >= d->ping_next;
    if (d->ping_out)
        v.at = earlier(v.at, d->ping_at + p->ping_answer * factor);
    else if (d->listens)
        v.at = earlier(v.at, d->ping_next);
    if (d->announced_until != 0)
        v.at = earlier(v.at, d->announced_until);
    if (d->owed > 0)
        v.at = earlier(v.at, d->owed_until);
    if (v.at < now)
        v.at = now;
    return v;
}

bool hf_detector_is_known(const struct hf_detector *d, const struct hf_detector_policy *p,
                          hf_ms now)
{
    if (d->probe_used && !d->probed)
        return false; /* nothing else refutes what a probe has found */
    if (d->active)
        return true;
    if (d->awaited != 0)
        return false;
    for (enum hf_source s = HF_SOURCE_WATCHDOG; s <= HF_SOURCE_HEARTBEAT; s++) {
        if (d->heard[s].used)
            return false; /* the next beat shows it, or that none comes */
    }
    return d->shape == HF_PROCESS_GOES && now - d->begun > p->still_after;
}
