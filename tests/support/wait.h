/* wait.h - waiting for conditions in tests: a deadline instead of a sleep.
 *
 * Everything in tests/support fails the running Check test when it cannot do its work, unless
 * its header says otherwise; call it on the thread that runs the test. */
#ifndef HFT_WAIT_H
#define HFT_WAIT_H

#include <stdbool.h>

#include "base/clock.h"

typedef bool (*hft_cond_fn)(void *arg);

/* CLOCK_BOOTTIME now. */
hf_ms hft_now(void);

/* The limit of a wait for something that must happen. It only ends a test that hangs, so it is
 * two minutes at least, however little `timeout` says: a busy machine may stand still for long,
 * and a test that passes does not wait. A bound that is part of what is tested is asserted,
 * with what a ticker saw (ticker.h). */
hf_ms hft_patience(hf_ms timeout);

/* Lets time pass until then: for a fault whose length is what is tested, never in place of a
 * condition. */
void hft_pass_until(hf_ms moment);

/* Asks `cond` every few milliseconds until it holds, less often when the answer costs much or
 * is long in coming; false when `timeout` passed before. */
bool hft_wait(hft_cond_fn cond, void *arg, hf_ms timeout);

/* The same with patience, and fails the test with "timed out after ... waiting for <what>". */
void hft_wait_or_fail(hft_cond_fn cond, void *arg, hf_ms timeout, const char *what);

#endif
