/* backoff.h - decides how long to wait before something that keeps failing is tried again.
 *
 * Pure: no clock, no randomness, no allocation, no I/O; plain values that may be copied. There
 * is no counter that could be lost with a process: how often something was tried is counted
 * from the times at which it was tried, and these are stored. The times may be of any clock
 * that does not run fast, as long as it is always the same one.
 *
 * Attempts are counted from 1. The delay before each comes from a list, whose last entry
 * repeats, or is base * factor^n up to a cap; the first may go at once. Jitter only shortens a
 * delay, so that the cap is a promise.
 *
 * Guarantees: a delay is never negative and never above its cap; for one random word it never
 * shrinks from one attempt to the next unless a list says so; a time in the future, which a
 * clock that is late may find in a record, counts as just now. What is uncertain makes the wait
 * longer, never shorter. */
#ifndef HF_CORE_BACKOFF_H
#define HF_CORE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_BACKOFF_NEVER INT64_MAX
#define HF_BACKOFF_LIST  8  /* delays that a list may have */
#define HF_BACKOFF_KEPT  32 /* attempts that are remembered; no limit can be higher */

struct hf_backoff_policy {
    bool first_at_once;          /* the delays below begin with the second attempt */
    hf_ms list[HF_BACKOFF_LIST]; /* used if list_count is not 0 */
    uint8_t list_count;
    hf_ms base; /* used otherwise, with factor and cap */
    uint16_t factor_percent;
    hf_ms cap;
    uint8_t jitter_percent; /* 0..50: taken off at most */
    hf_ms forget_after;     /* this long without an attempt forgets them all; 0: never */
};

/* For an agent: at once, then 1 s doubling to 60 s, less up to 10 %; forgotten after 10 min.
 * Cannot fail. */
struct hf_backoff_policy hf_backoff_policy_restart(void);

/* For a task: at once, then 60, 120, 240 s, less up to 10 %; never forgotten. Cannot fail. */
struct hf_backoff_policy hf_backoff_policy_recovery(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_backoff_policy_check(const struct hf_backoff_policy *policy,
                            const char **ret_why) HF_MUST_CHECK;

/* When something was tried. Zero-initialise. */
struct hf_backoff {
    hf_ms at[HF_BACKOFF_KEPT]; /* oldest first */
    uint8_t count;
};

/* Something was tried at `at`. The oldest is dropped when there are too many; a time before the
 * newest is taken for that of the newest. */
void hf_backoff_on_attempt(struct hf_backoff *backoff, hf_ms at);

/* Attempts in the last `window`. */
uint32_t hf_backoff_count(const struct hf_backoff *backoff, hf_ms window, hf_ms now);

/* When fewer than `limit` attempts will lie in the last `window`: `now` if that holds already,
 * HF_BACKOFF_NEVER for a limit of 0. */
hf_ms hf_backoff_room_at(const struct hf_backoff *backoff, hf_ms window, uint32_t limit,
                         hf_ms now);

/* Attempts that are not forgotten: the newest ones of which none lies forget_after or more
 * before the next, nor before `now`. At most HF_BACKOFF_KEPT. */
uint32_t hf_backoff_streak(const struct hf_backoff *backoff,
                           const struct hf_backoff_policy *policy, hf_ms now);

/* How long to wait before attempt number `attempt`, from 1. Cannot fail. */
hf_ms hf_backoff_delay(const struct hf_backoff_policy *policy, uint32_t attempt,
                       uint32_t random);

/* When to try next what has just failed. Draw once and keep the answer: another random word
 * gives another one. */
hf_ms hf_backoff_next(const struct hf_backoff *backoff, const struct hf_backoff_policy *policy,
                      hf_ms now, uint32_t random);

#endif
