#include "support/wait.h"

#include <inttypes.h>
#include <time.h>

#include <check.h>

#define POLL_INTERVAL_MS 5
#define LATE_INTERVAL_MS 20  /* of a wait that takes its time */
#define MOST_INTERVAL_MS 200 /* whatever an answer costs */
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

static void pass(hf_ms length)
{
    nanosleep(&(struct timespec){ .tv_sec = length / 1000, .tv_nsec = length % 1000 * 1000000 },
              NULL);
}

void hft_pass_until(hf_ms moment)
{
    for (hf_ms now = hft_now(); now < moment; now = hft_now())
        pass(moment - now);
}

/* To ask may cost a request to etcd, or even a process. Whoever waits leaves the machine to
 * those that it waits for: it pauses for twice as long as the answer took, and for a twentieth
 * of the time that it has waited. */
static hf_ms pause_after(hf_ms waited, hf_ms answer_took)
{
    hf_ms pause = waited / 20 < LATE_INTERVAL_MS ? waited / 20 : LATE_INTERVAL_MS;

    if (pause < 2 * answer_took)
        pause = 2 * answer_took;
    if (pause > MOST_INTERVAL_MS)
        pause = MOST_INTERVAL_MS;
    return pause > POLL_INTERVAL_MS ? pause : POLL_INTERVAL_MS;
}

bool hft_wait(hft_cond_fn cond, void *arg, hf_ms timeout)
{
    hf_ms began = hft_now(), asked = began;

    while (!cond(arg)) {
        hf_ms now = hft_now();

        if (now >= began + timeout)
            return false;
        pass(pause_after(now - began, now - asked));
        asked = hft_now();
    }
    return true;
}

void hft_wait_or_fail(hft_cond_fn cond, void *arg, hf_ms timeout, const char *what)
{
    if (!hft_wait(cond, arg, hft_patience(timeout)))
        ck_abort_msg("timed out after %" PRId64 " ms waiting for %s", hft_patience(timeout),
                     what);
}
