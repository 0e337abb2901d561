/* loop.h - a libuv loop that a test runs until something has happened. */
#ifndef HFT_LOOP_H
#define HFT_LOOP_H

#include <uv.h>

#include "support/wait.h"

struct hft_later;

struct hft_loop {
    uv_loop_t uv;
    uv_timer_t wake;           /* makes the loop turn while only the outside world changes */
    struct hft_later *pending; /* calls of hft_loop_after still to come */
};

void hft_loop_init(struct hft_loop *loop);

/* Fails the test, after naming them on stderr, when handles were left open: everything that
 * lives on a loop must be able to end. Close callbacks still to come are run. */
void hft_loop_done(struct hft_loop *loop);

/* Runs the loop until `cond` holds; it is asked after every turn. Fails the test with a message
 * that names `what` when `timeout` passed before, or hft_patience if that is longer. */
void hft_loop_until(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms timeout,
                    const char *what);

/* The same without failing: false when the time was up. */
bool hft_loop_try(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms timeout);

/* Runs the loop for `span` and fails the test as soon as `cond` does not hold: how a test shows
 * that something does not happen. */
void hft_loop_hold(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms span,
                   const char *what);

typedef void (*hft_loop_fn)(void *arg);

/* Calls `fn` once on the loop, `delay` from now. It is not called when the loop ends before. */
void hft_loop_after(struct hft_loop *loop, hf_ms delay, hft_loop_fn fn, void *arg);

#endif
