/* detector.h - decides from what is heard of an agent whether it is well, suspect or frozen.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; a plain value that may be copied. Five
 * sources, each of which counts only once the agent has used it (a program that opted into
 * nothing is judged by its process alone):
 *
 *     ping       it is asked, and answers            watchdog   it promised WATCHDOG=1
 *     heartbeat  it was asked for heartbeats         probe      somebody asks it from outside
 *     process    what the kernel says of its first process, and of who answers for it
 *
 * How unlikely a silence is, given how the agent was heard of before, is phi (phi-accrual: 8 is
 * one in a hundred million). Guarantees:
 *   - whatever the agent does itself (a request, an answer, a beat) refutes every suspicion but
 *     that of a probe, which only the probe itself refutes; a probe refutes nothing else, since
 *     the kernel accepts connections for who stands still;
 *   - nobody is frozen without having been suspect for `warning` before, nor while a debugger
 *     holds it, nor by its process or by heartbeats alone unless the policy says so;
 *   - what it announced (busy, waiting, parked, draining) explains every silence until its end,
 *     and nothing after it; so does an answer that we owe it, until it has it, unless it
 * answers pings meanwhile;
 *   - time that was not the agent's to use (we stood still, it waited for a processor) does not
 *     count, and where we are late ourselves every limit is multiplied by 1 to 8. */
#ifndef HF_CORE_DETECTOR_H
#define HF_CORE_DETECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/tilt.h"

#define HF_DETECTOR_NEVER INT64_MAX
/* Intervals of a source that its habit is made of: each newer one counts as one of so many, and
 * older ones fade. */
#define HF_DETECTOR_SAMPLES 1000

/* clang-format off */
#define HF_SOURCE_MAP(X)                                                                       \
    X(PING,      "ping")                                                                       \
    X(WATCHDOG,  "watchdog")                                                                   \
    X(HEARTBEAT, "heartbeat")                                                                  \
    X(PROBE,     "probe")                                                                      \
    X(PROCESS,   "process")
/* clang-format on */

enum hf_source {
#define X(name, text) HF_SOURCE_##name,
    HF_SOURCE_MAP(X)
#undef X
        HF_SOURCES
};

/* "ping" ...; "?" for a value that is none. A static string. */
const char *hf_source_name(enum hf_source source);

struct hf_detector_policy {
    hf_ms ping_every;      /* who has answered one is asked so often, ... */
    hf_ms ping_answer;     /* ... has so long to answer, ... */
    uint32_t ping_misses;  /* ... and is frozen when so many in a row were not answered */
    hf_ms ping_idle;       /* who never answered one is asked so often */
    hf_ms ping_return;     /* who did, of another watcher, has so long to listen again */
    hf_ms heartbeat;       /* the interval that it is asked for, ... */
    uint32_t beat_misses;  /* ... of which so many may be missing */
    hf_ms watchdog;        /* WATCHDOG=1 is due within; 0: it is not promised */
    uint32_t probe_misses; /* probes that fail in a row */
    hf_ms still_after;     /* a process that is stopped or traced for so long is suspect */
    hf_ms blocked_max; /* in a state that no signal ends it waits for the machine for so long */
    hf_ms warning;     /* at least between a suspicion and a verdict */
    hf_ms deviation_min; /* of intervals, however regular they are */
    double phi;          /* from here on a silence convicts */
    uint8_t convicts;    /* bits 1 << source: what may */
};

/* clang-format off */
#define HF_DETECTOR_PROFILE_MAP(X)                                                             \
    X(DEFAULT,  "default")  /* pings every 2 s, 1 s to answer, 2 in a row */                   \
    X(DEV,      "dev")      /* 1 s, 1 s, 2 */                                                  \
    X(TOLERANT, "tolerant") /* 3 s, 1 s, 3 */
/* clang-format on */

enum hf_detector_profile {
#define X(name, text) HF_DETECTOR_##name,
    HF_DETECTOR_PROFILE_MAP(X)
#undef X
};

/* Pings, watchdog and probes convict; heartbeats and the process make suspect. Cannot fail. */
struct hf_detector_policy hf_detector_policy_for(enum hf_detector_profile profile);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_detector_policy_check(const struct hf_detector_policy *policy,
                             const char **ret_why) HF_MUST_CHECK;

/* Its first process, or who answers for it, as the kernel has it. */
enum hf_process_shape {
    HF_PROCESS_GOES,    /* it runs, or sleeps */
    HF_PROCESS_STOPPED, /* by a signal */
    HF_PROCESS_TRACED,  /* a debugger holds it */
    HF_PROCESS_BLOCKED, /* in a state that no signal ends */
};

/* How a source was heard of. */
struct hf_detector_heard {
    bool used;       /* it counts */
    bool skip;       /* the next interval says nothing about the agent */
    uint16_t count;  /* of intervals that are known, up to HF_DETECTOR_SAMPLES, ... */
    double mean;     /* ... their mean, ... */
    double variance; /* ... and how far they lie from it, squared */
    hf_ms at;        /* when it was last heard of */
};

/* One more interval. */
void hf_detector_sample(struct hf_detector_heard *heard, hf_ms interval);

enum hf_detector_state { HF_DETECTOR_WELL, HF_DETECTOR_SUSPECT, HF_DETECTOR_FROZEN };

struct hf_detector_verdict {
    enum hf_detector_state state;
    enum hf_source source; /* that says so; not of WELL */
    double phi;
    hf_ms since;     /* nothing was heard since then */
    uint32_t missed; /* pings or probes in a row */
    bool ping_due;   /* it should be asked now */
    hf_ms at;        /* when to look again; NEVER: when something was heard */
};

/* Read-only for callers. */
struct hf_detector {
    struct hf_detector_heard heard[HF_SOURCE_HEARTBEAT + 1];
    hf_ms announced_until; /* 0: nothing is announced */
    bool listens;          /* it can be asked */
    hf_ms awaited;         /* since then it is to listen again; 0: it is not */
    bool active;           /* it did something itself since the beginning, ... */
    bool probed;           /* ... and was asked from outside, with a good answer */
    hf_ms begun;
    bool ping_out;   /* it was, and did not answer yet */
    hf_ms ping_at;   /* when it was asked last, ... */
    hf_ms ping_next; /* ... and is next */
    uint32_t missed;
    uint32_t probe_failed; /* in a row, ... */
    hf_ms probe_since;     /* ... since then, ... */
    uint32_t probe_alone;  /* ... and since it did something itself */
    hf_ms active_at;       /* when it last did something itself */
    bool probe_used;
    enum hf_process_shape shape;
    hf_ms shape_since;
    hf_ms suspect_at; /* 0: it is not */
    uint8_t doubted;  /* bits 1 << source: what is suspicious */
    hf_ms watchdog;   /* as the agent has set it; 0: as the policy says */
    hf_ms gave_up;    /* when it asked to be taken for frozen; 0: it did not */
    hf_ms slow_until; /* it is at work, and has twice the time until then; 0: it is not */
    uint32_t owed;    /* answers that it waits for, ... */
    uint32_t turn;    /* ... of those that it asked for since this was counted up; never 0 */
    hf_ms owed_until; /* they explain nothing from here on */
};

/* What it has asked for, and when. */
struct hf_detector_debt {
    uint32_t turn; /* 0: nothing, or it was settled */
    hf_ms since;
};

/* Begins at `now`, with nothing heard. */
void hf_detector_init(struct hf_detector *d, hf_ms now);

/* What it had used (bits 1 << source) before somebody else ceased to watch it counts from now
 * on; who answered pings is expected to listen again. */
void hf_detector_recall(struct hf_detector *d, uint8_t used, hf_ms now);
uint8_t hf_detector_get_used(const struct hf_detector *d); /* the same bits */

/* It can be asked (it listens), or cannot any more. */
void hf_detector_on_listens(struct hf_detector *d, bool listens, hf_ms now);
/* It was asked, ... */
void hf_detector_on_ping(struct hf_detector *d, const struct hf_detector_policy *p, hf_ms now);
/* ... and answered, be it late. */
void hf_detector_on_answer(struct hf_detector *d, const struct hf_detector_policy *p,
                           hf_ms now);

/* WATCHDOG or HEARTBEAT came. */
void hf_detector_on_beat(struct hf_detector *d, enum hf_source source, hf_ms now);
/* It did anything else itself. */
void hf_detector_on_activity(struct hf_detector *d, hf_ms now);
/* It did so by asking us something, and may do nothing else until it has the answer; ... */
struct hf_detector_debt hf_detector_on_asked(struct hf_detector *d, hf_ms now);
/* ... which it has now, or wants no more. What it did not do meanwhile is forgotten. */
void hf_detector_on_answered(struct hf_detector *d, const struct hf_detector_policy *p,
                             struct hf_detector_debt *debt, hf_ms now);
void hf_detector_on_probe(struct hf_detector *d, bool good, hf_ms now);
void hf_detector_on_shape(struct hf_detector *d, enum hf_process_shape shape, hf_ms now);

/* It announced something that explains a silence until then; 0: nothing any more. */
void hf_detector_announce(struct hf_detector *d, hf_ms until, hf_ms now);
/* It is at work until then, and everything may take twice as long; 0: not any more. */
void hf_detector_slow(struct hf_detector *d, hf_ms until);
/* It set its watchdog itself; or says that it hangs (WATCHDOG=trigger), which it takes back
 * when it feeds its watchdog later on. */
void hf_detector_set_watchdog(struct hf_detector *d, hf_ms watchdog);
void hf_detector_give_up(struct hf_detector *d, hf_ms now);

/* So much of the time since the last look was not the agent's to use. */
void hf_detector_on_lost(struct hf_detector *d, hf_ms lost, hf_ms now);
/* Everything is counted anew from `now`: it stood still because we made it, say. */
void hf_detector_begin_anew(struct hf_detector *d, hf_ms now);

/* What holds at `now`, by somebody whose own health is `us`. To be called when `at` has come
 * and whenever something was heard; counts what is missing. */
struct hf_detector_verdict hf_detector_look(struct hf_detector *d,
                                            const struct hf_detector_policy *p,
                                            const struct hf_tilt_view *us, hf_ms now);

/* It need not be heard of: it said so, or waits for us. */
bool hf_detector_is_explained(const struct hf_detector *d);

/* Enough was heard of it, or looked at, since the beginning to say that it is well, where it is
 * not suspect. */
bool hf_detector_is_known(const struct hf_detector *d, const struct hf_detector_policy *p,
                          hf_ms now);

/* How unlikely it is that nothing was heard for `silence`, where `pause` more than usual is
 * nothing special; 0 to 300. `expected` stands for what is not known yet. */
double hf_detector_phi(const struct hf_detector_heard *heard, hf_ms expected,
                       hf_ms deviation_min, hf_ms pause, hf_ms silence);

#endif
