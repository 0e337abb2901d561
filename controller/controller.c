#include "controller/controller.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "controller/alert.h"
#include "controller/api.h"
#include "controller/observe.h"
#include "core/moments.h"
#include "io/backend_etcd.h"
#include "io/connect.h"
#include "io/runner.h"
#include "io/sdnotify.h"
#include "schema/json.h"

enum { ASK_AGAIN_MS = 1000, SAY_AGAIN_MS = 5000, TICK_MS = 250, STALL_MS = 500 };
enum { ENDPOINTS_SIZE = 140 };

struct controller {
    const struct ctl_settings *settings;
    uv_loop_t loop;
    uv_signal_t term, intr;
    uv_timer_t retry;    /* before etcd is asked again, at the start, */
    uv_timer_t patience; /* before that is said again, or given up */
    uv_timer_t tick;     /* shows when this loop stood still, and says that it turns */
    struct hf_clock_jump jump;
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend;
    struct hf_engine *engine;
    struct ctl_observer observer;
    struct hf_runner *runner;
    struct ctl_alerts *alerts;
    struct ctl_api api;
    struct hf_httpd *httpd; /* NULL: nothing is served */
    struct hf_buf leader;   /* what our key says of us, if we lead */
    hf_ms wait_left;        /* for the first answer of etcd, while this loop turns, ... */
    hf_ms wait_step;        /* ... of which so much is waited for now */
    char away[160];         /* what was last found instead of one; "": nothing yet */
    bool stopping;          /* from here on only the end matters */
    int rc;
    struct hf_error why;
    struct hf_sdnotify service;
    const char *service_told; /* what the service manager heard last */
    hf_ms watchdog_at;        /* when to say that this loop turns */
};

/* Whoever starts us as a service. */

static void tell_service(struct controller *ctl, const char *words)
{
    if (ctl->service_told != words && hf_sdnotify_tell(&ctl->service, words))
        ctl->service_told = words;
}

static void tell_standing(struct controller *ctl, hf_ms now)
{
    static const char LEADING[] = "READY=1\nSTATUS=Leads.",
                      STANDING_BY[] = "READY=1\nSTATUS=Stands by.";

    if (ctl->observer.synced)
        tell_service(ctl, ctl->observer.leads ? LEADING : STANDING_BY);
    if (ctl->service.watchdog_ms == 0 || now < ctl->watchdog_at)
        return;
    if (hf_sdnotify_tell(&ctl->service, "WATCHDOG=1"))
        ctl->watchdog_at = now + ctl->service.watchdog_ms - TICK_MS;
}

static void on_runner_closed(void *arg)
{
    struct controller *ctl = arg;

    hf_backend_etcd_close(ctl->backend, NULL, NULL);
    hf_etcd_close(ctl->etcd, NULL, NULL);
}

/* The end, whichever way: hands over when there is something to hand over. */
static void stop(struct controller *ctl)
{
    if (ctl->stopping)
        return;
    ctl->stopping = true;
    tell_service(ctl, "STOPPING=1");
    uv_close((uv_handle_t *)&ctl->term, NULL);
    uv_close((uv_handle_t *)&ctl->intr, NULL);
    uv_close((uv_handle_t *)&ctl->retry, NULL);
    uv_close((uv_handle_t *)&ctl->patience, NULL);
    uv_close((uv_handle_t *)&ctl->tick, NULL);
    if (ctl->httpd != NULL)
        hf_httpd_close(ctl->httpd, NULL, NULL);
    ctl_alerts_close(ctl->alerts);
    if (ctl->runner != NULL)
        hf_runner_close(ctl->runner, true, on_runner_closed, ctl);
    else
        on_runner_closed(ctl);
}

/* `rc` with its sentence in ctl->why: it cannot do its job. */
static void give_up(struct controller *ctl, int rc)
{
    if (!ctl->stopping)
        ctl->rc = rc;
    stop(ctl);
}

static void on_signal(uv_signal_t *handle, int number)
{
    HF_LOG_INFO("stopping", HF_STR("signal", number == SIGTERM ? "TERM" : "INT"),
                HF_STR("next", "hands over"));
    stop(handle->data);
}

/* The engine's words for others. */

static void on_intent(const struct hf_intent *intent, void *arg)
{
    struct controller *ctl = arg;

    if (intent->kind != HF_INTENT_ALERT)
        return;
    HF_LOG_WARN("alert", HF_STR("subject", intent->subject), HF_STR("why", intent->why),
                HF_STR("next", intent->alert.next));
    ctl_alerts_add(ctl->alerts, &intent->alert);
}

static void on_tick(uv_timer_t *timer)
{
    struct controller *ctl = timer->data;
    struct hf_clock clock = hf_clock_boottime();
    hf_ms now = hf_clock_now(&clock), late = hf_clock_jump_tick(&ctl->jump, now);

    tell_standing(ctl, now);
    if (late > 0)
        ctl->api.loop_stalls++;
    if (late > ctl->api.longest_stall)
        ctl->api.longest_stall = late;
}

/* Before it has seen everything once, a refusal means that it will never do its job; but for
 * one of the survey, which some releases of etcd leave to root. */
static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    /* An etcd that is away fails everything, and may stay away for days. */
    static struct hf_log_limit away = { .interval = 30000, .burst = 3 };
    static struct hf_log_limit other = { .interval = 10000, .burst = 10 };
    struct hf_log_limit *limit = err == HF_EAGAIN || err == HF_ETIMEOUT ? &away : &other;
    struct controller *ctl = arg;

    if (err == HF_EDENIED && !ctl->observer.synced && strcmp(what, "survey") != 0) {
        give_up(ctl, hf_error_set(&ctl->why, HF_EDENIED,
                                  "etcd refuses this user (%s): give it the controller's role",
                                  message));
        return;
    }
    hf_log_write(HF_LOG_LEVEL_WARN, limit, "trouble",
                 HF_LOG_FIELDS_(HF_STR("what", what), HF_STR("error", hf_err_name(err)),
                                HF_STR("message", message), HF_STR("next", "tries again")));
}

static void on_renewed(int err, const char *message, void *arg)
{
    (void)arg;
    if (err == HF_OK)
        HF_LOG_INFO("certificate_renewed",
                    HF_STR("next", "every new connection to etcd shows it"));
    else
        HF_LOG_WARN("certificate_not_renewed", HF_STR("why", message),
                    HF_STR("next", "the old one stays in use; looks again every 30 s"));
}

/* Standing. */

static Google__Protobuf__Duration write_duration(hf_ms value)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

    duration.seconds = value / 1000;
    duration.nanos = (int32_t)(value % 1000) * 1000000;
    return duration;
}

static int encode_leader(const struct controller *ctl, struct hf_buf *out)
{
    const struct hf_task_policy *task = &ctl->settings->engine.task;
    Holdfast__V1__Leader leader = HOLDFAST__V1__LEADER__INIT;
    Holdfast__V1__Leader__Waits waits = HOLDFAST__V1__LEADER__WAITS__INIT;
    Google__Protobuf__Duration start = write_duration(task->start_within);
    Google__Protobuf__Duration alert = write_duration(task->alert_after);
    Google__Protobuf__Duration review = write_duration(task->review_after);
    Google__Protobuf__Timestamp since;
    char listen[64];

    leader.id = (char *)ctl->settings->id;
    leader.since = hf_moment_write(hf_clock_wall(), &since);
    leader.version = (char *)HOLDFAST_VERSION;
    waits.start_within = &start;
    waits.alert_after = &alert;
    waits.review_after = &review;
    leader.waits = &waits;
    if (ctl->httpd != NULL) {
        (void)snprintf(listen, sizeof listen, "%.*s:%u",
                       (int)(strrchr(ctl->settings->listen, ':') - ctl->settings->listen),
                       ctl->settings->listen, hf_httpd_get_port(ctl->httpd));
        leader.listen = listen;
    }
    return hf_json_encode(&leader.base, out);
}

/* Since when we lead is known when we campaign for it. Without memory it stays as it was. */
static struct hf_bytes get_leader(void *arg)
{
    struct controller *ctl = arg;
    struct hf_buf fresh = { 0 };

    if (encode_leader(ctl, &fresh) == HF_OK) {
        hf_buf_done(&ctl->leader);
        ctl->leader = fresh;
    }
    return (struct hf_bytes){ .data = ctl->leader.data, .len = ctl->leader.len };
}

static int stand(struct controller *ctl)
{
    struct hf_backend backend = hf_backend_etcd_get(ctl->backend);
    struct hf_runner_config cfg = { .ns = ctl->settings->common.namespace,
                                    .decider = ctl_observer_get_decider(&ctl->observer),
                                    .lease = hf_lease_policy_for(ctl->settings->ttl),
                                    .election = hf_election_policy_default(),
                                    .get_leader = get_leader,
                                    .keys_max = (size_t)ctl->settings->keys_max,
                                    .on_intent = on_intent,
                                    .on_trouble = on_trouble,
                                    .arg = ctl };
    int rc;

    cfg.leader = get_leader(ctl);
    if (cfg.leader.len == 0)
        return hf_error_set(&ctl->why, HF_ENOMEM, "out of memory");
    rc = hf_runner_new(&backend, &cfg, &ctl->runner, &ctl->why);
    ctl->api.runner = ctl->runner;
    return rc;
}

/* The first question: is etcd there, and does it let us in? */

static void ask(struct controller *ctl);

static void on_retry(uv_timer_t *timer)
{
    ask(timer->data);
}

/* As many of them as a sentence has room for. */
static const char *name_endpoints(const struct controller *ctl, char out[ENDPOINTS_SIZE])
{
    const struct hf_strings *all = &ctl->settings->common.endpoints;
    int len = snprintf(out, ENDPOINTS_SIZE, "%.100s", all->items[0]);

    for (size_t i = 1; i < all->count; i++) {
        if ((size_t)len + strlen(all->items[i]) + sizeof " and 999 more" > ENDPOINTS_SIZE) {
            (void)snprintf(out + len, ENDPOINTS_SIZE - (size_t)len, " and %zu more",
                           all->count - i);
            break;
        }
        len += snprintf(out + len, ENDPOINTS_SIZE - (size_t)len, ", %s", all->items[i]);
    }
    return out;
}

static void say_waiting(const struct controller *ctl)
{
    char endpoints[ENDPOINTS_SIZE];

    HF_LOG_WARN("waiting_for_etcd", HF_STR("endpoints", name_endpoints(ctl, endpoints)),
                HF_STR("message", ctl->away[0] != '\0' ? ctl->away : "no answer yet"),
                HF_INT("gives_up_in_ms", ctl->wait_left),
                HF_STR("next", "asks again until it answers"));
}

static void wait_on(struct controller *ctl);

/* etcd may also hang, and then nobody comes to say that it does. */
static void on_patience(uv_timer_t *timer)
{
    struct controller *ctl = timer->data;
    char endpoints[ENDPOINTS_SIZE];

    ctl->wait_left -= ctl->wait_step;
    if (ctl->wait_left > 0) {
        say_waiting(ctl);
        wait_on(ctl);
        return;
    }
    give_up(ctl, hf_error_set(&ctl->why, HF_EAGAIN,
                              "etcd did not answer within %lld s at %s: start it, say where "
                              "it is (--endpoints), or wait longer (--etcd-wait)",
                              (long long)ctl->settings->etcd_wait / 1000,
                              name_endpoints(ctl, endpoints)));
}

/* What passes while the machine sleeps, or does not let us run, is nothing that etcd took. */
static void wait_on(struct controller *ctl)
{
    ctl->wait_step = ctl->wait_left < SAY_AGAIN_MS ? ctl->wait_left : SAY_AGAIN_MS;
    (void)uv_timer_start(&ctl->patience, on_patience, (uint64_t)ctl->wait_step, 0);
}

static void wait_for_etcd(struct controller *ctl, const char *message)
{
    bool is_news = ctl->away[0] == '\0';

    (void)snprintf(ctl->away, sizeof ctl->away, "%s", message);
    if (is_news)
        say_waiting(ctl);
    (void)uv_timer_start(&ctl->retry, on_retry, ASK_AGAIN_MS, 0);
}

static void on_answer(const struct hf_range_result *result, void *arg)
{
    struct controller *ctl = arg;
    int rc;

    if (ctl->stopping)
        return;
    switch (result->result.err) {
    case HF_OK:
        (void)uv_timer_stop(&ctl->patience);
        HF_LOG_INFO("connected", HF_INT("revision", result->result.header.revision));
        rc = stand(ctl);
        if (rc != HF_OK)
            give_up(ctl, rc);
        return;
    case HF_EDENIED:
        give_up(ctl, hf_error_set(&ctl->why, HF_EDENIED,
                                  "etcd refuses this user (%s): check --user with "
                                  "--password-file, or --cert",
                                  result->result.message));
        return;
    case HF_EINVAL:
        give_up(ctl, hf_error_set(&ctl->why, HF_EIO, "etcd does not understand us: %s",
                                  result->result.message));
        return;
    default: wait_for_etcd(ctl, result->result.message);
    }
}

static void ask(struct controller *ctl)
{
    char key[HF_KEY_SIZE];
    struct hf_range_request request = { .keys_only = true };
    int len = hf_key_format(ctl->settings->common.namespace,
                            &(struct hf_key){ .kind = HF_KEY_META }, key, &ctl->why);
    int rc = len < 0 ? len : HF_OK;

    if (rc == HF_OK) {
        request.range.key = (struct hf_bytes){ .data = key, .len = (size_t)len };
        rc = hf_etcd_range(ctl->etcd, &request, on_answer, ctl, NULL);
    }
    if (rc == HF_ENOMEM)
        wait_for_etcd(ctl, hf_err_text(rc));
    else if (rc != HF_OK)
        give_up(ctl, hf_error_set(&ctl->why, rc, "%s", hf_err_text(rc)));
}

static void begin(struct controller *ctl)
{
    ctl->wait_left = ctl->settings->etcd_wait;
    wait_on(ctl);
    ask(ctl);
}

/* Life. */

static int open_parts(struct controller *ctl)
{
    const struct ctl_settings *settings = ctl->settings;
    struct hf_etcd_config etcd = hf_connect_config(&settings->common);
    struct hf_engine_config engine = { .ns = settings->common.namespace,
                                       .id = settings->id,
                                       .policy = settings->engine };
    int rc = hf_id_random(&engine.seed, sizeof engine.seed);

    if (rc != HF_OK)
        return hf_error_set(&ctl->why, rc, "the kernel gives no random bytes");
    ctl->engine = hf_engine_new(&engine);
    if (ctl->engine == NULL)
        return hf_error_set(&ctl->why, HF_ENOMEM, "out of memory");
    ctl_observer_init(&ctl->observer, ctl->engine, settings->id);
    etcd.separate_channels = true;
    etcd.on_renewed = on_renewed;
    rc = hf_connect_new(&ctl->loop, &etcd, &ctl->etcd, &ctl->why);
    if (rc == HF_OK)
        rc = hf_backend_etcd_new(&ctl->loop, ctl->etcd, &ctl->backend);
    if (rc == HF_OK) {
        ctl->alerts = ctl_alerts_new(
            &ctl->loop, &(struct ctl_alerts_config){ .command = &settings->alert_command,
                                                     .timeout = settings->alert_timeout,
                                                     .actor = settings->id });
        rc = ctl->alerts != NULL ? HF_OK : HF_ENOMEM;
    }
    return rc;
}

static int write_port(struct controller *ctl)
{
    const char *file = ctl->settings->port_file;
    char text[16];
    int len = snprintf(text, sizeof text, "%u\n", hf_httpd_get_port(ctl->httpd));

    return file == NULL ? HF_OK : hf_file_write(file, text, (size_t)len, &ctl->why);
}

static int open_api(struct controller *ctl)
{
    struct hf_httpd_config cfg = { .listen = ctl->settings->listen,
                                   .on_request = ctl_api_serve,
                                   .arg = &ctl->api };
    int rc;

    ctl->api = (struct ctl_api){ .observer = &ctl->observer,
                                 .etcd = ctl->etcd,
                                 .alerts = ctl->alerts };
    if (cfg.listen == NULL)
        return HF_OK;
    rc = hf_httpd_new(&ctl->loop, &cfg, &ctl->httpd, &ctl->why);
    if (rc == HF_OK)
        rc = write_port(ctl);
    if (rc == HF_OK)
        HF_LOG_INFO("serving", HF_UINT("port", hf_httpd_get_port(ctl->httpd)));
    return rc;
}

/* libuv fails here only without memory or descriptors. */
static bool open_handles(struct controller *ctl)
{
    ctl->term.data = ctl->intr.data = ctl->tick.data = ctl;
    ctl->retry.data = ctl->patience.data = ctl;
    ctl->jump = (struct hf_clock_jump){ .interval = TICK_MS, .tolerance = STALL_MS };
    return uv_signal_init(&ctl->loop, &ctl->term) == 0 &&
           uv_signal_init(&ctl->loop, &ctl->intr) == 0 &&
           uv_timer_init(&ctl->loop, &ctl->retry) == 0 &&
           uv_timer_init(&ctl->loop, &ctl->patience) == 0 &&
           uv_timer_init(&ctl->loop, &ctl->tick) == 0 &&
           uv_timer_start(&ctl->tick, on_tick, TICK_MS, TICK_MS) == 0 &&
           uv_signal_start(&ctl->term, on_signal, SIGTERM) == 0 &&
           uv_signal_start(&ctl->intr, on_signal, SIGINT) == 0;
}

int ctl_run(const struct ctl_settings *settings, struct hf_error *err)
{
    struct controller ctl = { .settings = settings };
    int rc;

    hf_sdnotify_init(&ctl.service);
    if (uv_loop_init(&ctl.loop) != 0)
        return hf_error_set(err, HF_EIO, "no event loop can be made");
    rc = open_parts(&ctl);
    if (rc == HF_OK && !open_handles(&ctl))
        rc = hf_error_set(&ctl.why, HF_EIO, "signals cannot be received");
    if (rc == HF_OK) {
        HF_LOG_INFO("starting", HF_STR("version", HOLDFAST_VERSION),
                    HF_INT("ttl_ms", settings->ttl));
        rc = open_api(&ctl);
        if (rc == HF_OK)
            begin(&ctl);
        else
            give_up(&ctl, rc);
        (void)uv_run(&ctl.loop, UV_RUN_DEFAULT);
        rc = ctl.rc;
    } else if (ctl.etcd == NULL) {
        (void)uv_run(&ctl.loop, UV_RUN_DEFAULT); /* which lets go of what was opened for it */
    }
    (void)uv_loop_close(&ctl.loop);
    hf_engine_free(ctl.engine);
    hf_buf_done(&ctl.leader);
    hf_sdnotify_done(&ctl.service);
    if (rc == HF_OK)
        HF_LOG_INFO("stopped", HF_INT("status", 0));
    else
        *err = ctl.why;
    return rc;
}
