#include "controller/api.h"

#include <string.h>

#include "core/task.h"
#include "io/commit.h"

#define TEXT    "text/plain; charset=utf-8"
#define METRICS "text/plain; version=0.0.4; charset=utf-8"

enum { TASK_STATES = 8, HEALTH_STATES = 7, STORM_STATES = 3, OUTCOMES = 4 };

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* Counts of what is there. */

struct census {
    size_t tasks[TASK_STATES];
    size_t live[HEALTH_STATES], gone[HEALTH_STATES]; /* agents */
    size_t held;
    size_t live_hosts, gone_hosts, left_hosts;
};

static void count_agent(struct census *census, const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    size_t state = health != NULL && (size_t)health->state < HEALTH_STATES ? health->state : 0;

    if (agent->live.record != NULL)
        census->live[state]++;
    else
        census->gone[state]++;
    census->held += health != NULL && health->held;
}

static void count_host(struct census *census, const struct hf_host *host)
{
    const Holdfast__V1__Host *record = hf_host_record(host);

    if (host->live.record != NULL)
        census->live_hosts++;
    else if (record != NULL && record->left)
        census->left_hosts++;
    else
        census->gone_hosts++;
}

static void count_object(enum hf_fleet_kind kind, void *object, void *arg)
{
    const Holdfast__V1__Task *task;
    struct census *census = arg;

    if (kind == HF_FLEET_AGENT)
        count_agent(census, object);
    if (kind == HF_FLEET_HOST)
        count_host(census, object);
    if (kind != HF_FLEET_TASK)
        return;
    task = hf_task_record(object);
    if (task != NULL && (size_t)task->state < TASK_STATES)
        census->tasks[task->state]++;
}

static void write_agents(struct hf_buf *out, const struct census *census)
{
    static const char *const NAMES[HEALTH_STATES] = { "unknown",   "healthy", "suspect",
                                                      "degraded",  "stuck",   "failing",
                                                      "terminated" };
    size_t live = 0;

    hf_metrics_head(out, "holdfast_agents", "gauge",
                    "Agents by what the controller makes of them.");
    for (size_t i = 0; i < HEALTH_STATES; i++) {
        live += census->live[i];
        hf_metrics_value(out, "holdfast_agents", "state", NAMES[i],
                         (double)(census->live[i] + census->gone[i]));
    }
    hf_metrics_single(out, "holdfast_agents_live", "gauge", "Agents whose lease is held.",
                      (double)live);
    hf_metrics_single(out, "holdfast_agents_held", "gauge",
                      "Agents that are not started until a person says so.",
                      (double)census->held);
}

static void write_census(struct hf_buf *out, const struct hf_fleet *fleet)
{
    struct census census = { 0 };

    for (enum hf_fleet_kind kind = 0; kind < HF_FLEET_ROLE; kind++)
        hf_fleet_each(fleet, kind, count_object, &census);
    write_agents(out, &census);
    hf_metrics_head(out, "holdfast_tasks", "gauge", "Tasks by state.");
    for (int i = 0; i < TASK_STATES; i++)
        hf_metrics_value(out, "holdfast_tasks", "state",
                         hf_task_state_name((Holdfast__V1__Task__State)i),
                         (double)census.tasks[i]);
    hf_metrics_head(out, "holdfast_hosts", "gauge", "Hosts: here, gone, or left on purpose.");
    hf_metrics_value(out, "holdfast_hosts", "state", "live", (double)census.live_hosts);
    hf_metrics_value(out, "holdfast_hosts", "state", "gone", (double)census.gone_hosts);
    hf_metrics_value(out, "holdfast_hosts", "state", "left", (double)census.left_hosts);
}

/* Everything else. */

static void write_status(struct hf_buf *out, const struct hf_engine_status *status)
{
    static const char *const STORMS[STORM_STATES] = { "normal", "partial", "full" };

    hf_metrics_single(out, "holdfast_leader", "gauge", "1 while this controller leads.",
                      status->leads);
    hf_metrics_single(out, "holdfast_synced", "gauge", "1 when it knows all that etcd has.",
                      status->synced);
    hf_metrics_single(out, "holdfast_term", "gauge", "The term it leads in; 0 if it does not.",
                      (double)status->term.create_rev);
    hf_metrics_single(out, "holdfast_revision", "gauge", "Everything up to it is known.",
                      (double)status->revision);
    hf_metrics_single(out, "holdfast_commands", "gauge", "Starts that are outstanding.",
                      (double)status->counts.commands);
    hf_metrics_single(out, "holdfast_queued", "gauge", "Objects to be looked at.",
                      (double)status->queued);
    hf_metrics_single(out, "holdfast_writes_in_flight", "gauge", "Transactions under way.",
                      (double)status->flights);
    hf_metrics_single(out, "holdfast_bad_records", "gauge", "Keys that cannot be read now.",
                      (double)status->bad);
    hf_metrics_single(out, "holdfast_paced_agents", "gauge",
                      "Agents that wait for the storm guard.", (double)status->paced);
    hf_metrics_head(out, "holdfast_storm_state", "gauge", "1 for the state that holds.");
    for (int i = 0; i < STORM_STATES; i++)
        hf_metrics_value(out, "holdfast_storm_state", "state", STORMS[i],
                         (int)status->storm.state == i);
}

static void write_counters(struct hf_buf *out, const struct ctl_counters *counters)
{
    hf_metrics_single(out, "holdfast_agent_joins_total", "counter", "Lives that began.",
                      (double)counters->joins);
    hf_metrics_single(out, "holdfast_agent_ends_total", "counter", "Lives that ended.",
                      (double)counters->ends);
    hf_metrics_single(out, "holdfast_restarts_total", "counter",
                      "Starts that were ordered, or made by leave.", (double)counters->starts);
    hf_metrics_single(out, "holdfast_task_resets_total", "counter",
                      "Tasks that were taken from an owner that was gone.",
                      (double)counters->resets);
    hf_metrics_single(out, "holdfast_recoveries_total", "counter",
                      "Recoveries that proved to be good.",
                      (double)counters->events[HOLDFAST__V1__EVENT__KIND__recovered]);
    hf_metrics_head(out, "holdfast_txns_total", "counter",
                    "Guarded writes of this controller, by how they ended.");
    for (int i = 0; i < OUTCOMES; i++)
        hf_metrics_value(out, "holdfast_txns_total", "outcome",
                         hf_commit_outcome_name((enum hf_outcome)i),
                         (double)counters->writes[i]);
    hf_metrics_single(out, "holdfast_duplicates_suppressed_total", "counter",
                      "Writes that a compare refused: somebody else had acted.",
                      (double)counters->writes[HF_OUTCOME_REFUSED]);
    hf_metrics_single(out, "holdfast_bad_records_total", "counter",
                      "Keys that could not be read.", (double)counters->bad);
    hf_metrics_head(out, "holdfast_events_total", "counter", "Audit trail, by kind.");
    for (size_t i = 0; i < CTL_EVENT_KINDS; i++)
        hf_metrics_value(out, "holdfast_events_total", "kind",
                         holdfast__v1__event__kind__descriptor.values[i].name,
                         (double)counters->events[i]);
}

static void write_histograms(struct hf_buf *out, const struct ctl_counters *counters)
{
    hf_histogram_write(&counters->write_took, out, "holdfast_txn_seconds",
                       "From a decision to etcd's answer.");
    hf_histogram_write(&counters->watch_lag, out, "holdfast_watch_lag_seconds",
                       "From etcd's answer to a write until the watch tells of it.");
    hf_histogram_write(&counters->detected_in, out, "holdfast_detection_seconds",
                       "From the end of an agent's lease to the order of its start.");
    hf_histogram_write(&counters->back_in, out, "holdfast_recovery_seconds",
                       "From the end of an agent's lease until it lives again.");
}

/* What it knows is all that etcd has for as long as etcd answers. */
static bool is_connected(const struct ctl_api *api)
{
    return api->runner != NULL && hf_runner_is_proven(api->runner);
}

static void write_process(struct hf_buf *out, const struct ctl_api *api)
{
    struct hf_etcd_stats etcd = hf_etcd_get_stats(api->etcd);
    struct ctl_alerts_stats alerts = ctl_alerts_get_stats(api->alerts);

    hf_metrics_single(out, "holdfast_loop_stalls_total", "counter",
                      "Times that the controller's loop stood still.",
                      (double)api->loop_stalls);
    hf_metrics_single(out, "holdfast_loop_stall_seconds_max", "gauge", "The longest of them.",
                      (double)api->longest_stall / 1000);
    hf_metrics_single(out, "holdfast_etcd_connected", "gauge", "1 while etcd answers.",
                      is_connected(api));
    hf_metrics_single(out, "holdfast_etcd_calls_total", "counter", "Calls to etcd.",
                      (double)etcd.calls);
    hf_metrics_single(out, "holdfast_etcd_failures_total", "counter",
                      "Calls that failed for want of a server.", (double)etcd.failures);
    hf_metrics_single(out, "holdfast_etcd_rotations_total", "counter",
                      "Times that an endpoint was given up for the next.",
                      (double)etcd.rotations);
    hf_metrics_head(out, "holdfast_alerts_total", "counter", "Alerts, by what became of them.");
    hf_metrics_value(out, "holdfast_alerts_total", "result", "told", (double)alerts.told);
    hf_metrics_value(out, "holdfast_alerts_total", "result", "failed", (double)alerts.failed);
    hf_metrics_value(out, "holdfast_alerts_total", "result", "dropped", (double)alerts.dropped);
}

static void serve_metrics(struct hf_httpd_request *request, const struct ctl_api *api)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_engine_status status = hf_engine_get_status(api->observer->engine, now());

    write_census(&out, hf_engine_get_fleet(api->observer->engine));
    write_status(&out, &status);
    write_counters(&out, &api->observer->counters);
    write_histograms(&out, &api->observer->counters);
    write_process(&out, api);
    hf_httpd_reply(
        request, out.err == HF_OK ? 200 : 500, METRICS,
        (struct hf_bytes){ .data = out.data, .len = out.err == HF_OK ? out.len : 0 });
}

static void reply_text(struct hf_httpd_request *request, unsigned status, const char *text)
{
    hf_httpd_reply(request, status, TEXT,
                   (struct hf_bytes){ .data = text, .len = strlen(text) });
}

void ctl_api_serve(struct hf_httpd_request *request, void *arg)
{
    const struct ctl_api *api = arg;
    const char *path = hf_httpd_get_path(request), *method = hf_httpd_get_method(request);

    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        reply_text(request, 405, "only GET and HEAD\n");
    else if (strcmp(path, "/healthz") == 0)
        reply_text(request, 200, "ok\n");
    else if (strcmp(path, "/readyz") == 0 && !api->observer->synced)
        reply_text(request, 503, "does not know yet what etcd has\n");
    else if (strcmp(path, "/readyz") == 0 && !is_connected(api))
        reply_text(request, 503, "etcd does not answer\n");
    else if (strcmp(path, "/readyz") == 0)
        reply_text(request, 200, api->observer->leads ? "leading\n" : "standing by\n");
    else if (strcmp(path, "/metrics") == 0)
        serve_metrics(request, api);
    else
        reply_text(request, 404, "there is /healthz, /readyz and /metrics\n");
}
