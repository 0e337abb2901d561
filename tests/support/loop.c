#include "support/loop.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#define WAKE_INTERVAL_MS 5

struct hft_later {
    uv_timer_t timer;
    struct hft_loop *loop;
    struct hft_later *next;
    hft_loop_fn fn;
    void *arg;
};

static void on_wake(uv_timer_t *timer)
{
    (void)timer; /* turning the loop was the purpose */
}

void hft_loop_init(struct hft_loop *loop)
{
    ck_assert_int_eq(uv_loop_init(&loop->uv), 0);
    ck_assert_int_eq(uv_timer_init(&loop->uv, &loop->wake), 0);
    loop->pending = NULL;
}

static void free_later(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_later(uv_timer_t *timer)
{
    struct hft_later *later = timer->data;
    struct hft_later **slot = &later->loop->pending;

    while (*slot != later)
        slot = &(*slot)->next;
    *slot = later->next;
    later->fn(later->arg);
    uv_close((uv_handle_t *)timer, free_later);
}

void hft_loop_after(struct hft_loop *loop, hf_ms delay, hft_loop_fn fn, void *arg)
{
    struct hft_later *later = calloc(1, sizeof *later);

    ck_assert_ptr_nonnull(later);
    *later = (struct hft_later){ .loop = loop, .next = loop->pending, .fn = fn, .arg = arg };
    loop->pending = later;
    ck_assert_int_eq(uv_timer_init(&loop->uv, &later->timer), 0);
    later->timer.data = later;
    uv_update_time(&loop->uv); /* the loop may not have turned for long */
    ck_assert_int_eq(uv_timer_start(&later->timer, on_later, (uint64_t)delay, 0), 0);
}

static void count_open(uv_handle_t *handle, void *arg)
{
    int *open = arg;

    if (!uv_is_closing(handle))
        (*open)++;
}

void hft_loop_done(struct hft_loop *loop)
{
    int open = 0;

    uv_close((uv_handle_t *)&loop->wake, NULL);
    for (struct hft_later *later = loop->pending; later != NULL; later = later->next)
        uv_close((uv_handle_t *)&later->timer, free_later);
    uv_walk(&loop->uv, count_open, &open);
    if (open > 0) {
        uv_print_all_handles(&loop->uv, stderr);
        ck_abort_msg("%d handles were left open on the loop", open);
    }
    ck_assert_int_eq(uv_run(&loop->uv, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop->uv), 0);
}

/* Turns the loop while `cond` answers `while_is`, at most until the deadline; returns the last
 * answer. */
static bool turn_while(struct hft_loop *loop, hft_cond_fn cond, void *arg, bool while_is,
                       hf_ms timeout)
{
    hf_ms deadline = hft_now() + timeout;
    bool answer;

    uv_update_time(&loop->uv);
    ck_assert_int_eq(uv_timer_start(&loop->wake, on_wake, WAKE_INTERVAL_MS, WAKE_INTERVAL_MS),
                     0);
    while ((answer = cond(arg)) == while_is && hft_now() < deadline)
        (void)uv_run(&loop->uv, UV_RUN_ONCE);
    (void)uv_timer_stop(&loop->wake);
    return answer;
}

bool hft_loop_try(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms timeout)
{
    return turn_while(loop, cond, arg, false, timeout);
}

void hft_loop_until(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms timeout,
                    const char *what)
{
    if (!hft_loop_try(loop, cond, arg, hft_patience(timeout)))
        ck_abort_msg("timed out after %" PRId64 " ms waiting for %s", hft_patience(timeout),
                     what);
}

void hft_loop_hold(struct hft_loop *loop, hft_cond_fn cond, void *arg, hf_ms span,
                   const char *what)
{
    if (!turn_while(loop, cond, arg, true, span))
        ck_abort_msg("no longer so: %s", what);
}
