#include "etcd/timer.h"

#include <assert.h>
#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

/* A pairing heap: it lives in the timers themselves, so that arming one cannot fail. */

static void hold(struct hf_timer **by, struct hf_timer *timer)
{
    *by = timer;
    if (timer != NULL)
        timer->held_by = by;
}

/* Of two heaps one: the later becomes the first child of the earlier. */
static struct hf_timer *meld(struct hf_timer *one, struct hf_timer *other)
{
    struct hf_timer *early =
        other == NULL || (one != NULL && one->at <= other->at) ? one : other;
    struct hf_timer *late = early == one ? other : one;

    if (late == NULL)
        return early;
    hold(&late->next, early->child);
    hold(&early->child, late);
    return early;
}

static struct hf_timer *pop(struct hf_timer **list)
{
    struct hf_timer *timer = *list;

    if (timer != NULL) {
        *list = timer->next;
        timer->next = NULL;
    }
    return timer;
}

/* Brothers become one heap: in pairs first, then the pairs, which keeps it flat. */
static struct hf_timer *meld_all(struct hf_timer *brothers)
{
    struct hf_timer *pairs = NULL;
    struct hf_timer *heap = NULL;

    while (brothers != NULL) {
        struct hf_timer *one = pop(&brothers);
        struct hf_timer *pair = meld(one, pop(&brothers));

        pair->next = pairs;
        pairs = pair;
    }
    while (pairs != NULL)
        heap = meld(heap, pop(&pairs));
    return heap;
}

static void put_in(struct hf_timers *timers, struct hf_timer *timer)
{
    hold(&timers->first, meld(timers->first, timer));
    timers->count++;
}

static void take_out(struct hf_timers *timers, struct hf_timer *timer)
{
    assert(hf_timer_is_armed(timer));
    hold(timer->held_by, timer->next);
    hold(&timers->first, meld(timers->first, meld_all(timer->child)));
    timer->child = NULL;
    timer->next = NULL;
    timer->held_by = NULL;
    timers->count--;
}

/* A timerfd set to 0 is disarmed, so a time that has passed is set to the first millisecond. */
static void arm(struct hf_timers *timers)
{
    hf_ms at = timers->first != NULL ? timers->first->at : 0;
    struct itimerspec spec = { 0 };

    if (timers->first != NULL && at <= 0)
        at = 1;
    if (at == timers->armed_at)
        return;
    spec.it_value.tv_sec = (time_t)(at / 1000);
    spec.it_value.tv_nsec = (long)(at % 1000) * 1000000;
    (void)timerfd_settime(timers->fd, TFD_TIMER_ABSTIME, &spec,
                          NULL); /* fails on bad fds only */
    timers->armed_at = at;
}

static hf_ms get_now(const struct hf_timers *timers)
{
    return hf_clock_now(&timers->clock);
}

static bool is_due(const struct hf_timers *timers)
{
    return timers->first != NULL && timers->first->at <= get_now(timers);
}

/* What is due when we begin; one that starts itself for now must not hold up the loop. */
static void fire(struct hf_timers *timers)
{
    size_t left = timers->count;
    hf_ms now = get_now(timers);

    for (; left > 0 && timers->first != NULL && timers->first->at <= now; left--) {
        struct hf_timer *timer = timers->first;

        take_out(timers, timer);
        timer->fn(timer);
    }
}

/* The loop does not sleep while this is active, and that is all. */
static void on_idle(uv_idle_t *idle)
{
    (void)idle;
}

/* Before the loop sleeps: what is due fires, and the kernel is told once of what comes next,
 * however often that changed in this turn. Most timers are for now, or are stopped in time;
 * neither needs the kernel at all. */
static void on_prepare(uv_prepare_t *prepare)
{
    struct hf_timers *timers =
        (struct hf_timers *)((char *)prepare - offsetof(struct hf_timers, prepare));

    if (is_due(timers))
        fire(timers);
    if (timers->fd < 0)
        return; /* one of them has closed us */
    if (is_due(timers)) {
        (void)uv_idle_start(&timers->idle, on_idle);
        return;
    }
    (void)uv_idle_stop(&timers->idle);
    arm(timers);
}

/* The time has come; what is due fires before the loop sleeps again. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct hf_timers *timers =
        (struct hf_timers *)((char *)poll - offsetof(struct hf_timers, poll));
    uint64_t expirations;

    (void)status;
    (void)events;
    (void)!read(timers->fd, &expirations, sizeof expirations);
    timers->armed_at = 0;
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
    (void)uv_prepare_init(loop, &timers->prepare); /* these two cannot fail */
    (void)uv_idle_init(loop, &timers->idle);
    uv_unref((uv_handle_t *)&timers->prepare);
    uv_unref((uv_handle_t *)&timers->idle);
    if (uv_poll_start(&timers->poll, UV_READABLE, on_readable) != 0 ||
        uv_prepare_start(&timers->prepare, on_prepare) != 0)
        assert(false); /* fails only on a closing handle */
    return HF_OK;
}

/* One after the other, so that the caller hears of the last. */

static void on_prepare_closed(uv_handle_t *handle)
{
    struct hf_timers *timers =
        (struct hf_timers *)((char *)handle - offsetof(struct hf_timers, prepare));

    /* libuv speaks of the descriptor once more: until then the number must not be another's. */
    uv_close((uv_handle_t *)&timers->poll, timers->closed_fn);
    (void)close(timers->fd);
    timers->fd = -1;
}

static void on_idle_closed(uv_handle_t *handle)
{
    struct hf_timers *timers =
        (struct hf_timers *)((char *)handle - offsetof(struct hf_timers, idle));

    uv_close((uv_handle_t *)&timers->prepare, on_prepare_closed);
}

void hf_timers_close(struct hf_timers *timers, uv_close_cb fn)
{
    while (timers->first != NULL)
        take_out(timers, timers->first);
    timers->closed_fn = fn;
    (void)uv_poll_stop(&timers->poll);
    (void)uv_prepare_stop(&timers->prepare);
    uv_close((uv_handle_t *)&timers->idle, on_idle_closed);
}

void hf_timer_start(struct hf_timers *timers, struct hf_timer *timer, hf_ms at)
{
    assert(timer->fn != NULL);
    if (hf_timer_is_armed(timer))
        take_out(timers, timer);
    timer->at = at;
    put_in(timers, timer);
}

void hf_timer_stop(struct hf_timers *timers, struct hf_timer *timer)
{
    if (hf_timer_is_armed(timer))
        take_out(timers, timer);
}
