#include "support/wait.h"

#include <inttypes.h>
#include <time.h>

#include <check.h>

#define POLL_INTERVAL_MS 5

hf_ms hft_now(void)
{
    struct timespec ts;

    ck_assert_int_eq(clock_gettime(CLOCK_BOOTTIME, &ts), 0);
    return (hf_ms)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
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
    if (!hft_wait(cond, arg, timeout))
        ck_abort_msg("timed out after %" PRId64 " ms waiting for %s", timeout, what);
}
