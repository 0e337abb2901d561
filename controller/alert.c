#include "controller/alert.h"

#include <signal.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "core/backoff.h"
#include "core/moments.h"
#include "schema/json.h"

enum { MOST_QUEUED = 100, MOST_ARGS = 32, JITTER_PERCENT = 25 };

struct alert {
    struct alert *next;
    struct hf_buf json;
    unsigned attempts;
};

struct ctl_alerts {
    struct ctl_alerts_config cfg;
    uv_loop_t *loop;
    struct alert *first, **end;
    struct ctl_alerts_stats stats;
    uv_timer_t timer; /* of the program's time, and of the pause before the next attempt */
    uv_process_t process;
    uv_pipe_t input;
    uv_write_t write;
    bool running; /* the program, or the closing of its handles */
    bool killed, closing;
    unsigned open; /* handles of a run that are not closed yet */
    int64_t status;
    char *args[MOST_ARGS + 1];
};

static void start_next(struct ctl_alerts *alerts);

static void drop_first(struct ctl_alerts *alerts)
{
    struct alert *alert = alerts->first;

    alerts->first = alert->next;
    if (alerts->first == NULL)
        alerts->end = &alerts->first;
    alerts->stats.queued--;
    hf_buf_done(&alert->json);
    free(alert);
}

static void on_pause_over(uv_timer_t *timer)
{
    start_next(timer->data);
}

/* Before the attempt that follows so many. Without random bytes it is the longest. */
static hf_ms get_pause(const struct ctl_alerts *alerts, unsigned attempts)
{
    hf_ms first = alerts->cfg.pause > 0 ? alerts->cfg.pause : CTL_ALERT_PAUSE;
    const struct hf_backoff_policy policy = { .base = first,
                                              .factor_percent = 200,
                                              .cap = first * CTL_ALERT_PAUSE_MOST /
                                                     CTL_ALERT_PAUSE,
                                              .jitter_percent = JITTER_PERCENT };
    uint32_t random = 0;

    (void)!hf_id_random(&random, sizeof random);
    return hf_backoff_delay(&policy, attempts, random);
}

/* The run is over: on to the next one, or once more. */
static void finish_run(struct ctl_alerts *alerts)
{
    unsigned attempts = alerts->first->attempts;
    hf_ms pause = get_pause(alerts, attempts);

    alerts->running = false;
    if (alerts->status == 0) {
        alerts->stats.told++;
        drop_first(alerts);
        start_next(alerts);
        return;
    }
    alerts->stats.failed++;
    HF_LOG_WARN("alert_failed", HF_STR("command", alerts->args[0]),
                HF_INT("status", alerts->status), HF_BOOL("killed", alerts->killed),
                HF_UINT("attempt", attempts), HF_INT("next_in_ms", pause),
                HF_STR("next", attempts < CTL_ALERT_ATTEMPTS ? "tries again" : "gives it up"));
    if (attempts >= CTL_ALERT_ATTEMPTS)
        drop_first(alerts);
    (void)uv_timer_start(&alerts->timer, on_pause_over, (uint64_t)pause, 0);
}

static void free_alerts(struct ctl_alerts *alerts)
{
    while (alerts->first != NULL)
        drop_first(alerts);
    free(alerts);
}

static void on_timer_closed(uv_handle_t *handle)
{
    free_alerts(handle->data);
}

static void on_closed(uv_handle_t *handle)
{
    struct ctl_alerts *alerts = handle->data;

    if (--alerts->open > 0)
        return;
    if (alerts->closing)
        uv_close((uv_handle_t *)&alerts->timer, on_timer_closed);
    else
        finish_run(alerts);
}

static void close_input(struct ctl_alerts *alerts)
{
    if (!uv_is_closing((uv_handle_t *)&alerts->input))
        uv_close((uv_handle_t *)&alerts->input, on_closed);
}

static void close_run(struct ctl_alerts *alerts)
{
    (void)uv_timer_stop(&alerts->timer);
    close_input(alerts);
    uv_close((uv_handle_t *)&alerts->process, on_closed);
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct ctl_alerts *alerts = process->data;

    alerts->status = status != 0 ? status : number;
    close_run(alerts);
}

/* With all that it started: a script is not what hangs, but what it called. */
static void kill_run(struct ctl_alerts *alerts)
{
    (void)uv_kill(-alerts->process.pid, SIGKILL);
}

static void on_time_up(uv_timer_t *timer)
{
    struct ctl_alerts *alerts = timer->data;

    alerts->killed = true;
    kill_run(alerts);
}

static void on_written(uv_write_t *write, int status)
{
    struct ctl_alerts *alerts = write->data;

    (void)status; /* a program need not read what it is told */
    close_input(alerts);
}

static int spawn(struct ctl_alerts *alerts)
{
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
          .data.stream = (uv_stream_t *)&alerts->input },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
        { .flags = UV_INHERIT_FD, .data.fd = 2 },
    };
    uv_process_options_t options = { .exit_cb = on_exit_of,
                                     .file = alerts->args[0],
                                     .args = alerts->args,
                                     .flags = UV_PROCESS_DETACHED, /* a group of its own */
                                     .stdio = stdio,
                                     .stdio_count = 3 };

    alerts->process.data = alerts->input.data = alerts->write.data = alerts;
    (void)uv_pipe_init(alerts->loop, &alerts->input, 0);
    alerts->open = 2;
    alerts->running = true;
    alerts->killed = false;
    return uv_spawn(alerts->loop, &alerts->process, &options);
}

static void start_next(struct ctl_alerts *alerts)
{
    struct alert *alert = alerts->first;
    uv_buf_t text;
    int rc;

    if (alert == NULL || alerts->running || alerts->closing)
        return;
    alert->attempts++;
    rc = spawn(alerts);
    if (rc != 0) {
        alerts->status = rc;
        close_run(alerts);
        return;
    }
    (void)uv_timer_start(&alerts->timer, on_time_up, (uint64_t)alerts->cfg.timeout, 0);
    text = uv_buf_init(alert->json.data, (unsigned)alert->json.len);
    if (uv_write(&alerts->write, (uv_stream_t *)&alerts->input, &text, 1, on_written) != 0)
        kill_run(alerts);
}

/* The event as it would stand in the audit trail. */
static int encode(const struct ctl_alerts *alerts, const struct hf_intent_alert *alert,
                  struct hf_buf *out)
{
    Holdfast__V1__Event event = HOLDFAST__V1__EVENT__INIT;
    Holdfast__V1__Next next = HOLDFAST__V1__NEXT__INIT;
    Google__Protobuf__Timestamp at;
    int rc;

    event.at = hf_moment_write(hf_clock_wall(), &at);
    event.kind = alert->kind;
    event.actor = (char *)alerts->cfg.actor;
    event.agent = (char *)(alert->agent != NULL ? alert->agent : "");
    event.host = (char *)(alert->host != NULL ? alert->host : "");
    event.task = (char *)(alert->task != NULL ? alert->task : "");
    event.why = (char *)(alert->why != NULL ? alert->why : "");
    if (alert->next != NULL) {
        next.what = (char *)alert->next;
        event.next = &next;
    }
    rc = hf_json_encode(&event.base, out);
    if (rc == HF_OK)
        hf_buf_putc(out, '\n');
    return rc == HF_OK ? out->err : rc;
}

/* The one that runs stays; of the others the oldest goes. */
static void make_room(struct ctl_alerts *alerts)
{
    struct alert *second = alerts->first != NULL ? alerts->first->next : NULL;

    if (alerts->stats.queued < MOST_QUEUED || second == NULL)
        return;
    alerts->first->next = second->next;
    if (second->next == NULL)
        alerts->end = &alerts->first->next;
    alerts->stats.queued--;
    alerts->stats.dropped++;
    hf_buf_done(&second->json);
    free(second);
}

void ctl_alerts_add(struct ctl_alerts *alerts, const struct hf_intent_alert *alert)
{
    struct alert *added;

    if (alerts->cfg.command->count == 0 || alerts->closing)
        return;
    added = hf_calloc(1, sizeof *added);
    if (added == NULL || encode(alerts, alert, &added->json) != HF_OK) {
        if (added != NULL)
            hf_buf_done(&added->json);
        free(added);
        alerts->stats.dropped++;
        return;
    }
    make_room(alerts);
    *alerts->end = added;
    alerts->end = &added->next;
    alerts->stats.queued++;
    if (!uv_is_active((uv_handle_t *)&alerts->timer))
        start_next(alerts);
}

struct ctl_alerts *ctl_alerts_new(uv_loop_t *loop, const struct ctl_alerts_config *cfg)
{
    struct ctl_alerts *alerts = hf_calloc(1, sizeof *alerts);

    if (alerts == NULL)
        return NULL;
    alerts->cfg = *cfg;
    alerts->loop = loop;
    alerts->end = &alerts->first;
    for (size_t i = 0; i < cfg->command->count && i < MOST_ARGS; i++)
        alerts->args[i] = (char *)cfg->command->items[i];
    alerts->timer.data = alerts;
    (void)uv_timer_init(loop, &alerts->timer);
    return alerts;
}

void ctl_alerts_close(struct ctl_alerts *alerts)
{
    alerts->closing = true;
    if (!alerts->running)
        uv_close((uv_handle_t *)&alerts->timer, on_timer_closed);
    else if (!uv_is_closing((uv_handle_t *)&alerts->process))
        kill_run(alerts);
}

struct ctl_alerts_stats ctl_alerts_get_stats(const struct ctl_alerts *alerts)
{
    return alerts->stats;
}
