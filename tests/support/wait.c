#include "support/wait.h"

#include <inttypes.h>
#include <time.h>

#include <check.h>

#define POLL_INTERVAL_MS 5
#define PATIENCE_MS      120000

hf_ms hft_now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

hf_ms hft_patience(hf_ms timeout)
{
    return timeout > PATIENCE_MS ? timeout : PATIENCE_MS;
}

void hft_pass_until(hf_ms moment)
{
    while (hft_now() < moment)
        nanosleep(&(struct timespec){ .tv_nsec = POLL_INTERVAL_MS * 1000000L }, NULL);
}

bool hft_wait(hft_cond_fn cond, void *arg, hf_ms timeout)
{
    hf_ms deadline = hft_now() + timeout;

    while (!cond(arg)) {
        if (hft_now() >= deadline)
            return false;
        nanosleep(&(struct timespec){ .tv_nsec = POLL_INTERVAL_MS * 1000000L }, NULL);
    }
    return true;
}

void hft_wait_or_fail(hft_cond_fn cond, void *arg, hf_ms timeout, const char *what)
{
    if (!hft_wait(cond, arg, hft_patience(timeout)))
        ck_abort_msg("timed out after %" PRId64 " ms waiting for %s", hft_patience(timeout),
                     what);
}
