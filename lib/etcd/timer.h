/* timer.h - many timers on one timerfd that counts CLOCK_BOOTTIME, as every duration here does.
 *
 * libuv's timers run on CLOCK_MONOTONIC, which stands still while the machine sleeps: a lease
 * would be renewed too late by the length of the nap. Internal to lib/etcd. */
#ifndef HF_ETCD_TIMER_H
#define HF_ETCD_TIMER_H

#include <stdbool.h>

#include <uv.h>

#include "base/clock.h"
#include "base/err.h"

struct hf_timer;
typedef void (*hf_timer_fn)(struct hf_timer *timer);

/* Lives inside its owner. Zero-initialise and set `fn`. */
struct hf_timer {
    hf_timer_fn fn;
    hf_ms at;
    struct hf_timer *child;    /* none of the timers below is earlier */
    struct hf_timer *next;     /* brother */
    struct hf_timer **held_by; /* what points here; NULL = not armed */
};

struct hf_timers {
    struct hf_clock clock;
    int fd;
    uv_poll_t poll;
    uv_prepare_t prepare;
    uv_idle_t idle; /* active while something is due */
    uv_close_cb closed_fn;
    struct hf_timer *first; /* the earliest */
    size_t count;
    hf_ms armed_at; /* what the timerfd is set to; 0 = nothing */
};

int hf_timers_init(struct hf_timers *timers, uv_loop_t *loop,
                   struct hf_clock clock) HF_MUST_CHECK;

/* Disarms all and calls `fn` when libuv has let go. timers->poll.data is the caller's. */
void hf_timers_close(struct hf_timers *timers, uv_close_cb fn);

/* (Re)arms, which needs no memory; fires once, not before `at`. */
void hf_timer_start(struct hf_timers *timers, struct hf_timer *timer, hf_ms at);

/* A no-op when it is not armed. */
void hf_timer_stop(struct hf_timers *timers, struct hf_timer *timer);

static inline bool hf_timer_is_armed(const struct hf_timer *timer)
{
    return timer->held_by != NULL;
}

#endif
