#include "controller/observe.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "io/commit.h"
#include "io/decider_engine.h"

/* What is told. */

static void tell_leader(struct ctl_observer *observer, const struct hf_fleet_change *change)
{
    const Holdfast__V1__Leader *leader = (const Holdfast__V1__Leader *)change->record;
    const char *id = leader != NULL ? leader->id : "";

    if (strncmp(observer->leader, id, sizeof observer->leader - 1) == 0)
        return;
    (void)snprintf(observer->leader, sizeof observer->leader, "%s", id);
    if (leader == NULL)
        HF_LOG_INFO("no_leader", HF_INT("revision", change->seen.mod_rev));
    else if (strcmp(id, observer->id) != 0)
        HF_LOG_INFO("following", HF_STR("leader", id), HF_INT("term", change->seen.create_rev));
}

static void tell_term(struct ctl_observer *observer, const struct hf_term *term)
{
    bool leads = term->lease != 0;

    if (leads)
        HF_LOG_INFO("leading", HF_INT("term", term->create_rev));
    else if (observer->leads)
        HF_LOG_WARN("stepped_down", HF_STR("next", "stands again as soon as it may"));
    observer->leads = leads;
}

static void tell_bad(const struct hf_event_bad *bad)
{
    static struct hf_log_limit limit = { .interval = 60000, .burst = CTL_BAD_LOGGED };

    hf_log_write(HF_LOG_LEVEL_WARN, &limit, "bad_record",
                 HF_LOG_FIELDS_(HF_STR("key", bad->text), HF_INT("revision", bad->seen.mod_rev),
                                HF_STR("message", bad->why),
                                HF_STR("next", "set aside until it is corrected")));
}

static void tell_synced(struct ctl_observer *observer, int64_t revision)
{
    struct hf_fleet_counts counts = hf_fleet_get_counts(hf_engine_get_fleet(observer->engine));

    if (observer->synced)
        return;
    observer->synced = true;
    observer->synced_rev = revision;
    HF_LOG_INFO("synced", HF_INT("revision", revision), HF_UINT("hosts", counts.hosts),
                HF_UINT("agents", counts.agents), HF_UINT("tasks", counts.tasks));
}

/* Counting. */

static struct ctl_sent *find_sent(struct ctl_observer *observer, uint64_t token)
{
    for (size_t i = 0; i < HF_ENGINE_FLIGHTS; i++) {
        if (observer->sent[i].token == token)
            return &observer->sent[i];
    }
    return NULL;
}

/* Without a free place it is not measured. */
static void count_sent(struct ctl_observer *observer, uint64_t token, hf_ms now)
{
    struct ctl_sent *sent = find_sent(observer, 0);

    if (sent != NULL)
        *sent = (struct ctl_sent){ .token = token, .at = now };
}

static void count_outcome(struct ctl_observer *observer, const struct hf_event_outcome *outcome,
                          hf_ms now)
{
    struct ctl_sent *sent = find_sent(observer, outcome->token);

    observer->counters.writes[outcome->outcome]++;
    if (sent == NULL)
        return;
    hf_histogram_observe(&observer->counters.write_took, now - sent->at);
    *sent = outcome->outcome == HF_OUTCOME_DONE
                ? (struct ctl_sent){ .token = sent->token,
                                     .at = now,
                                     .revision = outcome->revision }
                : (struct ctl_sent){ 0 };
}

/* What was answered before it was told, is told now. */
static void count_told(struct ctl_observer *observer, int64_t revision, hf_ms now)
{
    for (size_t i = 0; i < HF_ENGINE_FLIGHTS; i++) {
        struct ctl_sent *sent = &observer->sent[i];

        if (sent->revision == 0 || sent->revision > revision)
            continue;
        hf_histogram_observe(&observer->counters.watch_lag, now - sent->at);
        *sent = (struct ctl_sent){ 0 };
    }
}

static void count_live(struct ctl_observer *observer, const struct hf_agent *agent, bool put,
                       hf_ms now)
{
    bool was = agent != NULL && agent->live.record != NULL;

    if (put && !was)
        observer->counters.joins++;
    if (!put && was)
        observer->counters.ends++;
    if (put && !was && agent != NULL && hf_agent_gone_rev(agent) != 0)
        hf_histogram_observe(&observer->counters.back_in, now - hf_agent_gone_at(agent));
}

static void count_command(struct ctl_observer *observer, const struct hf_agent *agent,
                          hf_ms now)
{
    observer->counters.starts++;
    if (agent != NULL && agent->live.record == NULL && hf_agent_gone_rev(agent) != 0)
        hf_histogram_observe(&observer->counters.detected_in, now - hf_agent_gone_at(agent));
}

static void count_task(struct ctl_observer *observer, const struct hf_task *task,
                       const Holdfast__V1__Task *next)
{
    const Holdfast__V1__Task *before = task != NULL ? hf_task_record(task) : NULL;

    if (before == NULL || next->attempt <= before->attempt)
        return;
    observer->counters.resets++;
    /* With an heir that was started without an order. */
    if (next->owner != NULL)
        observer->counters.starts++;
}

static void count_event(struct ctl_observer *observer, const Holdfast__V1__Event *event)
{
    if ((size_t)event->kind < CTL_EVENT_KINDS)
        observer->counters.events[event->kind]++;
    if (event->kind == HOLDFAST__V1__EVENT__KIND__operator)
        HF_LOG_INFO("operator", HF_STR("by", event->actor), HF_STR("what", event->why),
                    HF_STR("agent", event->agent), HF_STR("task", event->task),
                    HF_STR("host", event->host));
}

/* Against what the engine knew before it; only news counts. */
static void count_change(struct ctl_observer *observer, const struct hf_fleet_change *change,
                         hf_ms now)
{
    const struct hf_fleet *fleet = hf_engine_get_fleet(observer->engine);
    bool put = change->record != NULL;

    count_told(observer, change->seen.mod_rev, now);
    if (!observer->synced)
        return;
    switch (change->key.kind) {
    case HF_KEY_AGENT_LIVE:
        count_live(observer, hf_fleet_get_agent(fleet, change->key.name), put, now);
        break;
    case HF_KEY_COMMAND:
        if (put)
            count_command(observer, hf_fleet_get_agent(fleet, change->key.sub), now);
        break;
    case HF_KEY_TASK:
        if (put)
            count_task(observer, hf_fleet_get_task(fleet, change->key.name),
                       (const Holdfast__V1__Task *)change->record);
        break;
    case HF_KEY_EVENT:
        if (put)
            count_event(observer, (const Holdfast__V1__Event *)change->record);
        break;
    default: break;
    }
}

static void tell_outcome(struct ctl_observer *observer, const struct hf_event_outcome *outcome,
                         hf_ms now)
{
    count_outcome(observer, outcome, now);
    if (outcome->outcome == HF_OUTCOME_DONE)
        return;
    HF_LOG_INFO("not_done", HF_UINT("token", outcome->token),
                HF_STR("outcome", hf_commit_outcome_name(outcome->outcome)),
                HF_STR("error", hf_err_name(outcome->err)),
                HF_STR("next", "decided anew on what etcd has then"));
}

/* Only what does not become the decider's by its step, since this comes after it. */
static void tell(struct ctl_observer *observer, const struct hf_event *event, hf_ms now)
{
    switch (event->kind) {
    case HF_EVENT_BAD:
        observer->counters.bad++;
        tell_bad(&event->bad);
        break;
    case HF_EVENT_SYNCED:
        count_told(observer, event->revision, now);
        tell_synced(observer, event->revision);
        break;
    case HF_EVENT_FORGET: observer->synced = false; break;
    case HF_EVENT_RESET:
        observer->synced = false;
        HF_LOG_WARN("history_reset", HF_STR("message", "etcd was restored from a backup"),
                    HF_STR("next", "everything is read again"));
        break;
    case HF_EVENT_TERM: tell_term(observer, &event->term); break;
    case HF_EVENT_OUTCOME: tell_outcome(observer, &event->outcome, now); break;
    default: break;
    }
}

/* The decider. */

static int step(void *self, struct hf_event *event, hf_ms now)
{
    struct ctl_observer *observer = self;
    int rc;

    if (event->kind == HF_EVENT_CHANGE) {
        count_change(observer, &event->change, now);
        if (event->change.key.kind == HF_KEY_LEADER)
            tell_leader(observer, &event->change);
    }
    rc = observer->inner.ops->step(observer->inner.self, event, now);
    if (rc == HF_OK)
        tell(observer, event, now);
    return rc;
}

/* The clock ticks every half minute, which nobody wants to read. */
static void log_act(const struct hf_intent *intent)
{
    enum hf_log_level level =
        strcmp(intent->subject, "clock") == 0 ? HF_LOG_LEVEL_DEBUG : HF_LOG_LEVEL_INFO;

    if (hf_log_enabled(level))
        hf_log_write(level, NULL, "act",
                     HF_LOG_FIELDS_(HF_UINT("token", intent->token),
                                    HF_STR("subject", intent->subject),
                                    HF_STR("why", intent->why)));
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    struct ctl_observer *observer = self;
    int rc = observer->inner.ops->next(observer->inner.self, now, wall, random, ret);

    if (rc == 1 && ret->kind == HF_INTENT_WRITE) {
        count_sent(observer, ret->token, now);
        log_act(ret);
    }
    return rc;
}

static hf_ms deadline(const void *self, hf_ms now)
{
    const struct ctl_observer *observer = self;

    return observer->inner.ops->deadline(observer->inner.self, now);
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    const struct ctl_observer *observer = self;

    return observer->inner.ops->get_ranges(observer->inner.self, ret);
}

static const struct hf_decider_ops OPS = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
};

void ctl_observer_init(struct ctl_observer *observer, struct hf_engine *engine, const char *id)
{
    *observer =
        (struct ctl_observer){ .inner = hf_decider_engine(engine), .engine = engine, .id = id };
}

struct hf_decider ctl_observer_get_decider(struct ctl_observer *observer)
{
    return (struct hf_decider){ .ops = &OPS, .self = observer };
}
