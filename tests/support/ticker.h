/* ticker.h - notices when the machine did not let this process run.
 *
 * A thread ticks every 10 ms on CLOCK_BOOTTIME and adds up by how much its ticks are late. A
 * test that asserts a bound in time adds what the ticker saw, so that a busy machine cannot
 * fail it. The sum, not the longest: what is bounded takes several steps, of several processes,
 * and a busy machine is late for each of them.
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
    hf_ms due;   /* of the next tick */
    hf_ms stall; /* since the mark */
};

void hft_ticker_start(struct hft_ticker *ticker);
void hft_ticker_stop(struct hft_ticker *ticker);

/* Forgets what was seen so far. */
void hft_ticker_mark(struct hft_ticker *ticker);

/* By how much the ticks were late since the mark, all together; one that is overdue right now
 * counts, too. */
hf_ms hft_ticker_stall(struct hft_ticker *ticker);

#endif
