/* tilt.h - decides whether this process is well enough to judge others.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; a plain value that may be copied. A
 * process that stood still (a stalled loop, SIGSTOP, a suspended machine, a clock that jumped)
 * has not heard what happened meanwhile, so silence proves nothing. Feed it a tick of a timer,
 * and whatever else of ours came late.
 *
 * Guarantees:
 *   - the answer for `now` depends on `now`: a stall suspends verdicts before anybody has
 *     reported it, because the tick is missing;
 *   - after a stall every suspicion is counted anew from its end, and nobody is judged for
 *     `quiet`, so that what is waiting to be read is read first;
 *   - the score only widens: graces are multiplied by 1 to 8, never shortened.
 *
 * The score is Lifeguard's local health: one up for each tick during which something of ours
 * was late, however much of it, and one down for each other tick. */
#ifndef HF_CORE_TILT_H
#define HF_CORE_TILT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_TILT_NEVER     INT64_MAX
#define HF_TILT_SCORE_MAX 7

struct hf_tilt_policy {
    hf_ms tick;  /* ticks are due this often */
    hf_ms lag;   /* a tick that is later than this speaks against us */
    hf_ms stall; /* one that is later than this suspends verdicts */
    hf_ms quiet; /* for this long after it came */
};

/* 1 s, 250 ms, 2 s, 5 s. Cannot fail. */
struct hf_tilt_policy hf_tilt_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_tilt_policy_check(const struct hf_tilt_policy *policy,
                         const char **ret_why) HF_MUST_CHECK;

/* Read-only for callers. */
struct hf_tilt {
    struct hf_tilt_policy policy;
    hf_ms last;       /* tick */
    hf_ms resumed_at; /* the end of the last stall, or the beginning */
    hf_ms quiet_until;
    uint8_t score;
    bool strained; /* something was late since the last tick */
};

/* What holds at a moment. */
struct hf_tilt_view {
    bool can_judge;
    uint8_t score;   /* 0..7 */
    const char *why; /* a sentence; static */
    hf_ms at;        /* when verdicts go on, if nothing else happens; `now` if they do */
};

/* Begins at `now`. `policy` must have passed its check. */
void hf_tilt_init(struct hf_tilt *tilt, const struct hf_tilt_policy *policy, hf_ms now);

/* A tick. One that comes less than half a tick after the last is ignored. */
void hf_tilt_on_tick(struct hf_tilt *tilt, hf_ms now);

/* Something of ours was late: a callback, a renewal, what a watch told. */
void hf_tilt_on_late(struct hf_tilt *tilt);

/* Asking changes nothing. Cannot fail. */
struct hf_tilt_view hf_tilt_get(const struct hf_tilt *tilt, hf_ms now);
bool hf_tilt_can_judge(const struct hf_tilt *tilt, hf_ms now);

/* When a suspicion that began at `since` and has `grace` to be refuted may be judged, as far as
 * our own health goes. */
hf_ms hf_tilt_due(const struct hf_tilt *tilt, hf_ms since, hf_ms grace);

#endif
