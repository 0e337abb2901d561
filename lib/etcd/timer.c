#include "etcd/timer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

static void place(struct hf_timers *timers, size_t at, struct hf_timer *timer)
{
    timers->heap[at] = timer;
    timer->place = at;
}

static void sift_up(struct hf_timers *timers, size_t at)
{
    struct hf_timer *timer = timers->heap[at];

    for (; at > 1 && timers->heap[at / 2]->at > timer->at; at /= 2)
        place(timers, at, timers->heap[at / 2]);
    place(timers, at, timer);
}

static void sift_down(struct hf_timers *timers, size_t at)
{
    struct hf_timer *timer = timers->heap[at];

    for (;;) {
        size_t child = at * 2;

        if (child > timers->count)
            break;
        if (child < timers->count && timers->heap[child + 1]->at < timers->heap[child]->at)
            child++;
        if (timers->heap[child]->at >= timer->at)
            break;
        place(timers, at, timers->heap[child]);
        at = child;
    }
    place(timers, at, timer);
}

/* A timerfd set to 0 is disarmed, so a time that has passed is set to the first millisecond. */
static void arm(struct hf_timers *timers)
{
    hf_ms at = timers->count > 0 ? timers->heap[1]->at : 0;
    struct itimerspec spec = { 0 };

    if (timers->count > 0 && at <= 0)
        at = 1;
    if (at == timers->armed_at)
        return;
    spec.it_value.tv_sec = (time_t)(at / 1000);
    spec.it_value.tv_nsec = (long)(at % 1000) * 1000000;
    (void)timerfd_settime(timers->fd, TFD_TIMER_ABSTIME, &spec,
                          NULL); /* fails on bad fds only */
    timers->armed_at = at;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct hf_timers *timers =
        (struct hf_timers *)((char *)poll - offsetof(struct hf_timers, poll));
    size_t left = timers->count; /* one that starts itself for now must not hold up the loop */
    uint64_t expirations;
    hf_ms now;

    (void)status;
    (void)events;
    (void)!read(timers->fd, &expirations, sizeof expirations);
    timers->armed_at = 0;
    now = hf_clock_now(&timers->clock);
    for (; left > 0 && timers->count > 0 && timers->heap[1]->at <= now; left--) {
        struct hf_timer *timer = timers->heap[1];

        hf_timer_stop(timers, timer);
        timer->fn(timer);
    }
    if (timers->fd >= 0)
        arm(timers);
}

int hf_timers_init(struct hf_timers *timers, uv_loop_t *loop, struct hf_clock clock)
{
    *timers = (struct hf_timers){ .clock = clock, .fd = -1 };
    timers->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timers->fd < 0)
        return HF_EIO;
    if (uv_poll_init(loop, &timers->poll, timers->fd) != 0) {
        (void)close(timers->fd);
        return HF_EIO;
    }
    if (uv_poll_start(&timers->poll, UV_READABLE, on_readable) != 0)
        assert(false); /* fails only on a closing handle */
    return HF_OK;
}

void hf_timers_close(struct hf_timers *timers, uv_close_cb fn)
{
    while (timers->count > 0)
        hf_timer_stop(timers, timers->heap[1]);
    (void)uv_poll_stop(&timers->poll);
    uv_close((uv_handle_t *)&timers->poll, fn);
    (void)close(timers->fd);
    timers->fd = -1;
    free(timers->heap);
    timers->heap = NULL;
    timers->cap = 0;
}

int hf_timer_start(struct hf_timers *timers, struct hf_timer *timer, hf_ms at)
{
    assert(timer->fn != NULL);
    if (timer->place == 0) {
        if (!hf_grow(&timers->heap, &timers->cap, timers->count + 2, sizeof(struct hf_timer *)))
            return HF_ENOMEM;
        timers->count++;
        place(timers, timers->count, timer);
    }
    timer->at = at;
    sift_up(timers, timer->place);
    sift_down(timers, timer->place);
    arm(timers);
    return HF_OK;
}

void hf_timer_stop(struct hf_timers *timers, struct hf_timer *timer)
{
    size_t at = timer->place;
    struct hf_timer *last;

    if (at == 0)
        return;
    timer->place = 0;
    last = timers->heap[timers->count--];
    if (last != timer) {
        place(timers, at, last);
        sift_up(timers, at);
        sift_down(timers, last->place);
    }
    if (timers->fd >= 0)
        arm(timers);
}
