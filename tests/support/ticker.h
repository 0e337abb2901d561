/* ticker.h - notices when the machine did not let this process run.
 *
 * A thread ticks every 10 ms on CLOCK_BOOTTIME and keeps the largest delay of a tick. A test
 * that asserts a bound in time adds what the ticker saw, so that a busy machine cannot fail it:
 *
 *     hft_ticker_mark(&ticker);
 *     ...
 *     ck_assert_int_le(took, bound + hft_ticker_stall(&ticker)); */
#ifndef HFT_TICKER_H
#define HFT_TICKER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"

struct hft_ticker {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    bool stopping;
    hf_ms due;     /* of the next tick */
    hf_ms largest; /* stall since the mark */
};

void hft_ticker_start(struct hft_ticker *ticker);
void hft_ticker_stop(struct hft_ticker *ticker);

/* Forgets what was seen so far. */
void hft_ticker_mark(struct hft_ticker *ticker);

/* By how much the latest tick was late, at most, since the mark; a tick that is overdue right
 * now counts, too. */
hf_ms hft_ticker_stall(struct hft_ticker *ticker);

#endif
