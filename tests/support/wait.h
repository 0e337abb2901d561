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

/* Asks `cond` every few milliseconds until it holds; false when `timeout` passed before. */
bool hft_wait(hft_cond_fn cond, void *arg, hf_ms timeout);

/* The same, and fails the test with "timed out after ... waiting for <what>". */
void hft_wait_or_fail(hft_cond_fn cond, void *arg, hf_ms timeout, const char *what);

#endif
