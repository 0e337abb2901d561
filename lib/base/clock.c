#include "base/clock.h"

#include <assert.h>
#include <stddef.h>
#include <time.h>

static hf_ms read_clock(clockid_t id)
{
    struct timespec ts;
    int rc = clock_gettime(id, &ts);

    /* Every kernel we run on has both; a made-up time would be worse than no process. */
    assert(rc == 0);
    (void)rc;
    return (hf_ms)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static hf_ms now_boottime(void *arg)
{
    (void)arg;
    return read_clock(CLOCK_BOOTTIME);
}

struct hf_clock hf_clock_boottime(void)
{
    return (struct hf_clock){ .now = now_boottime, .arg = NULL };
}

hf_ms hf_clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

hf_ms hf_clock_jump_tick(struct hf_clock_jump *jump, hf_ms now)
{
    hf_ms late = jump->started ? now - jump->last - jump->interval : 0;

    jump->last = now;
    jump->started = true;
    return late > 0 && late >= jump->tolerance ? late : 0;
}
