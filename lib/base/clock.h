/* clock.h - time behind a seam: what a program measures durations with, and what tests replace.
 *
 * Durations run on CLOCK_BOOTTIME, which counts through suspend. Nothing here is wall time
 * except what says _wall, and no decision may rest on wall time. */
#ifndef HF_BASE_CLOCK_H
#define HF_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef int64_t hf_ms; /* milliseconds; monotonic unless a name says _wall */

/* A source of time. `now` never goes back. */
struct hf_clock {
    hf_ms (*now)(void *arg);
    void *arg;
};

/* The real one. Cannot fail. */
struct hf_clock hf_clock_boottime(void);

/* Reads the clock afresh, never a cached value: the caller may just have been paused. */
static inline hf_ms hf_clock_now(const struct hf_clock *clock)
{
    return clock->now(clock->arg);
}

/* Milliseconds since 1970, for people to read in records and logs only. */
hf_ms hf_clock_wall(void);

/* Notices that the process, its loop or the machine stood still: feed it every tick.
 * Zero-initialise with the expected distance of two ticks and what counts as a jump. */
struct hf_clock_jump {
    hf_ms interval;  /* ticks are due this often */
    hf_ms tolerance; /* a tick this much later than due is a jump */
    hf_ms last;      /* previous tick; valid when started */
    bool started;
};

/* Reports a tick at `now`; returns by how much it was late when that is a jump, else 0. */
hf_ms hf_clock_jump_tick(struct hf_clock_jump *jump, hf_ms now);

#endif
