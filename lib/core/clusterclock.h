/* clusterclock.h - reads and advances the one clock that outlives leaders: a time in etcd to
 * which each leader adds what it measured.
 *
 * Pure: no allocation, no I/O; a plain value that may be copied. `now` is the observer's own
 * monotonic time, wall time is used once, to begin with. A reader takes the stored value for
 * the time at which it saw it and counts on from there by itself; a leader stores what it reads
 * before it does anything else, and then every `interval`. What passes while nobody counts is
 * lost, for everybody: whoever had counted on for longer than the leader takes the leader's
 * word, or a delay that was drawn on the late clock would be over too soon under the next one.
 *
 * Guarantees:
 *   - for one leader the clock never goes back, until a history reset is reported; nor does
 *     what is stored;
 *   - nobody's clock is ahead of the leader's, from when it has seen the leader's first write;
 *   - it may be late, never early: a limit that is read on it lasts at least as long as it
 *     says. Until it was read it is as late as can be: every age is 0, no moment has come;
 *   - a stored value that goes back means a restored etcd, and is refused with HF_EHISTORY.
 *
 * A time that a leader wrote into a record may be ahead of a successor's clock, by what was
 * counted but not stored; its age is 0 until the clock has caught up. */
#ifndef HF_CORE_CLUSTERCLOCK_H
#define HF_CORE_CLUSTERCLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_CLUSTERCLOCK_NEVER  INT64_MAX
#define HF_CLUSTERCLOCK_UNREAD INT64_MIN

struct hf_clusterclock_policy {
    hf_ms interval; /* the leader stores it this often */
};

/* 30 s. Cannot fail. */
struct hf_clusterclock_policy hf_clusterclock_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy makes no sense. */
int hf_clusterclock_policy_check(const struct hf_clusterclock_policy *policy,
                                 const char **ret_why) HF_MUST_CHECK;

/* Read-only for callers. */
struct hf_clusterclock {
    struct hf_clusterclock_policy policy;
    bool read;        /* we know what etcd has, */
    bool present;     /* and that is a clock */
    int64_t revision; /* of `stored` */
    hf_ms stored;
    hf_ms base;    /* what the clock was */
    hf_ms base_at; /* when it was seen, on our own clock */
};

/* What a leader has to do. */
struct hf_clusterclock_step {
    bool due;    /* store `value` */
    hf_ms value; /* valid if due */
    hf_ms at;    /* when to ask again if nothing happens before; `now` if due */
};

/* `policy` must have passed its check. */
void hf_clusterclock_init(struct hf_clusterclock *clock,
                          const struct hf_clusterclock_policy *policy);

/* etcd has this value since `revision`; `ours`: it was read on this very clock, however late we
 * are told. Older news is ignored. HF_EHISTORY, and nothing changed, when it contradicts what
 * was seen before; HF_EINVAL for no revision. */
int hf_clusterclock_on_observed(struct hf_clusterclock *clock, hf_ms value, int64_t revision,
                                bool ours, hf_ms now) HF_MUST_CHECK;

/* etcd has no clock yet. HF_EHISTORY, and nothing changed, when it had one. */
int hf_clusterclock_on_absent(struct hf_clusterclock *clock) HF_MUST_CHECK;

/* etcd was restored: what it has now is read anew. */
void hf_clusterclock_on_history_reset(struct hf_clusterclock *clock);

/* For a leader. `wall` is what a clock begins with that does not exist yet. Cannot fail. */
struct hf_clusterclock_step hf_clusterclock_next(const struct hf_clusterclock *clock,
                                                 hf_ms wall, hf_ms now);

/* What the clock says at `now`; HF_CLUSTERCLOCK_UNREAD if that is not known. */
hf_ms hf_clusterclock_now(const struct hf_clusterclock *clock, hf_ms now);

/* How long ago `moment` was, at least. */
hf_ms hf_clusterclock_age(const struct hf_clusterclock *clock, hf_ms moment, hf_ms now);

/* When, on our own clock, `moment` will have come: `now` if it has, HF_CLUSTERCLOCK_NEVER if
 * the clock is not known. */
hf_ms hf_clusterclock_local(const struct hf_clusterclock *clock, hf_ms moment, hf_ms now);

#endif
