#include "support/ticker.h"

#include <signal.h>
#include <time.h>

#include <check.h>

#include "support/wait.h"

#define INTERVAL_MS 10

static hf_ms lateness(const struct hft_ticker *ticker, hf_ms now)
{
    return now > ticker->due ? now - ticker->due : 0;
}

/* The wait runs on CLOCK_MONOTONIC, the only one a condition variable offers; what is measured
 * is BOOTTIME, so a suspended machine shows as a stall. */
static void wait_one_interval(struct hft_ticker *ticker)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += INTERVAL_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_cond_timedwait(&ticker->wake, &ticker->lock, &until);
}

static void *tick(void *arg)
{
    struct hft_ticker *ticker = arg;

    (void)pthread_mutex_lock(&ticker->lock);
    while (!ticker->stopping) {
        wait_one_interval(ticker);
        hf_ms now = hft_now();
        ticker->stall += lateness(ticker, now);
        ticker->due = now + INTERVAL_MS;
    }
    (void)pthread_mutex_unlock(&ticker->lock);
    return NULL;
}

void hft_ticker_start(struct hft_ticker *ticker)
{
    pthread_condattr_t attr;
    sigset_t all;
    sigset_t before;

    *ticker = (struct hft_ticker){ .due = hft_now() + INTERVAL_MS };
    ck_assert_int_eq(pthread_mutex_init(&ticker->lock, NULL), 0);
    ck_assert_int_eq(pthread_condattr_init(&attr), 0);
    ck_assert_int_eq(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC), 0);
    ck_assert_int_eq(pthread_cond_init(&ticker->wake, &attr), 0);
    (void)pthread_condattr_destroy(&attr);

    /* Signals belong to the program under test, never to this thread. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    ck_assert_int_eq(pthread_create(&ticker->thread, NULL, tick, ticker), 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hft_ticker_stop(struct hft_ticker *ticker)
{
    (void)pthread_mutex_lock(&ticker->lock);
    ticker->stopping = true;
    (void)pthread_cond_signal(&ticker->wake);
    (void)pthread_mutex_unlock(&ticker->lock);
    ck_assert_int_eq(pthread_join(ticker->thread, NULL), 0);
    (void)pthread_cond_destroy(&ticker->wake);
    (void)pthread_mutex_destroy(&ticker->lock);
}

void hft_ticker_mark(struct hft_ticker *ticker)
{
    (void)pthread_mutex_lock(&ticker->lock);
    ticker->stall = 0;
    ticker->due = hft_now() + INTERVAL_MS;
    (void)pthread_mutex_unlock(&ticker->lock);
}

hf_ms hft_ticker_stall(struct hft_ticker *ticker)
{
    (void)pthread_mutex_lock(&ticker->lock);
    hf_ms stall = ticker->stall + lateness(ticker, hft_now());
    (void)pthread_mutex_unlock(&ticker->lock);
    return stall;
}
