#include "agentd/link/link.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/api.h"
#include "agentd/link/resume.h"
#include "agentd/link/stray.h"
#include "agentd/link/successor.h"
#include "agentd/link/sweep.h"
#include "agentd/link/upgrade.h"
#include "agentd/link/verify.h"
#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "io/connect.h"
#include "io/decider_node.h"
#include "schema/json.h"

enum {
    LOOK_MS = 10, /* after a change; what is decided is not waited for */
    NS_PER_MS = 1000000,
};

/* The node. */

static void fill_record(const struct link *link, Holdfast__V1__Host *record, char **launchers,
                        char **pool, char **root)
{
    *root = (char *)link_store_get_root(link->store);
    record->roots = root;
    record->n_roots = (*root)[0] != '\0' ? 1 : 0;
    *pool = (char *)link->settings->pool;
    record->pools = pool;
    record->n_pools = 1;
    record->capacity = (int32_t)link->settings->capacity;
    record->version = (char *)HOLDFAST_VERSION;
    record->launchers = launchers;
    for (size_t i = 0; i < link->settings->launcher_count; i++)
        launchers[record->n_launchers++] = (char *)link->settings->launchers[i].name;
}

static int make_node(struct link *link)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    Holdfast__V1__Spec nothing = HOLDFAST__V1__SPEC__INIT;
    char **launchers = hf_calloc(link->settings->launcher_count + 1, sizeof *launchers);
    char *pool, *root;
    struct hf_node_config cfg = { .ns = link->settings->common.namespace,
                                  .host = link->settings->host,
                                  .boot_id = link_channel_get_hello(link->channel)->boot_id,
                                  .record = &record,
                                  .policy = hf_node_policy_default() };
    struct hf_node_agent_config *agents;
    size_t count = 0;

    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next)
        count++;
    agents = hf_calloc(count + 1, sizeof *agents);
    if (agents == NULL || launchers == NULL ||
        hf_id_random(&cfg.seed, sizeof cfg.seed) != HF_OK) {
        free(agents);
        free(launchers);
        return HF_ENOMEM;
    }
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next)
        agents[cfg.agent_count++] =
            (struct hf_node_agent_config){ .name = agent->name,
                                           .spec = agent->spec != NULL ? agent->spec : &nothing,
                                           .foreign = !agent->configured,
                                           .held = link_process_get_held(agent) };
    fill_record(link, &record, launchers, &pool, &root);
    cfg.agents = agents;
    cfg.policy.stop_grace = link->settings->stop_grace;
    cfg.policy.start_seconds = link->settings->start_seconds;
    cfg.policy.heartbeat = link->settings->heartbeat;
    cfg.policy.make_ahead = !link->settings->once;
    link->node = hf_node_new(&cfg);
    free(agents);
    free(launchers);
    return link->node != NULL ? HF_OK : HF_ENOMEM;
}

/* Around the node: after every change there may be something for us to see. That takes as long
 * as there are agents, and whoever waits for a start waits for the same processors. */

static int step(void *self, struct hf_event *event, hf_ms now)
{
    struct link *link = self;

    link->dirty = true;
    return link->inner.ops->step(link->inner.self, event, now);
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    struct link *link = self;
    int rc = link->inner.ops->next(link->inner.self, now, wall, random, ret);

    if (rc == 1)
        HF_LOG_DEBUG("intent", HF_INT("kind", ret->kind), HF_STR("subject", ret->subject),
                     HF_STR("why", ret->why));
    return rc;
}

static hf_ms deadline(const void *self, hf_ms now)
{
    const struct link *link = self;

    return link->inner.ops->deadline(link->inner.self, now);
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    const struct link *link = self;

    return link->inner.ops->get_ranges(link->inner.self, ret);
}

static uint64_t get_ranges_version(const void *self)
{
    const struct link *link = self;

    return link->inner.ops->get_ranges_version(link->inner.self);
}

static int get_keys(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                    size_t max)
{
    const struct link *link = self;

    return link->inner.ops->get_keys(link->inner.self, lease, ret_keys, max);
}

static const struct hf_decider_ops OPS = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
    .get_ranges_version = get_ranges_version,
    .get_keys = get_keys,
};

/* What the node wants. */

static void on_intent(const struct hf_intent *intent, void *arg)
{
    struct link *link = arg;

    switch (intent->kind) {
    case HF_INTENT_PROCESS: link_process_act(link, &intent->process); break;
    case HF_INTENT_REPLY: link_ask_on_reply(link, intent->token, &intent->reply); break;
    case HF_INTENT_VERIFY: link_verify_begin(link, intent); break;
    case HF_INTENT_ALERT:
        HF_LOG_WARN("alert", HF_STR("subject", intent->subject), HF_STR("why", intent->why),
                    HF_STR("next", intent->alert.next));
        break;
    default: break;
    }
}

/* The lease. */

static void tell_jeopardy(struct link *link, const struct hf_session_view *view)
{
    hf_ms left =
        view->record.fence_at != HF_LEASE_NEVER ? view->record.fence_at - link_now(link) : 0;

    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
            if (!p->begun || p->gone)
                continue;
            HF_LOG_WARN("jeopardy", HF_STR("agent", agent->name), HF_INT("pid", p->pid),
                        HF_INT("incarnation", link_process_incarnation(p)),
                        HF_INT("fence_in_ms", left));
            link_api_on_jeopardy(p, hf_clock_wall() + (left > 0 ? left : 0));
        }
    }
}

static void on_lease(const struct hf_session_view *view, void *arg)
{
    struct link *link = arg;
    const struct hf_lease_record *record = &view->record;
    struct agentd_lease_state lease = { .lease_id = record->id,
                                        .ttl_ms = record->ttl,
                                        .renewed_ns = record->counted_at * NS_PER_MS,
                                        .raft_term = record->term };

    /* Forward it needs no word, but the next link must find the newest renewal. */
    link_channel_set_deadline(link->channel,
                              record->fence_at != HF_LEASE_NEVER ? record->fence_at : 0);
    link_channel_lease(link->channel, &lease);
    if (view->state != link->lease_state)
        HF_LOG_INFO("lease", HF_STR("state", hf_lease_state_name(view->state)),
                    HF_INT("lease", view->lease), HF_INT("ttl_ms", record->ttl));
    if (view->state == HF_LEASE_JEOPARDY && link->lease_state == HF_LEASE_HELD)
        tell_jeopardy(link, view);
    link->lease_state = view->state;
    link->dirty = true;
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    /* An etcd that is away fails everything, and may stay away for days. */
    static struct hf_log_limit away = { .interval = 30000, .burst = 3 };
    static struct hf_log_limit other = { .interval = 10000, .burst = 10 };
    struct hf_log_limit *limit = err == HF_EAGAIN || err == HF_ETIMEOUT ? &away : &other;

    (void)arg;
    hf_log_write(HF_LOG_LEVEL_WARN, limit, "trouble",
                 HF_LOG_FIELDS_(HF_STR("what", what), HF_STR("error", hf_err_name(err)),
                                HF_STR("message", message), HF_STR("next", "tries again")));
}

/* The end. */

static void on_etcd_closed(void *arg)
{
    struct link *link = arg;

    hf_backend_etcd_close(link->backend_etcd, NULL, NULL);
}

static void let_all_go(struct link *link)
{
    link_channel_shutdown(link->channel, link->code);
    link_channel_close_when_sent(link->channel);
    link_sweep_free(link->sweep);
    link_sweep_free(link->object_sweep);
    link->sweep = link->object_sweep = NULL;
    link_store_close(link->store);
    uv_close((uv_handle_t *)&link->prepare, NULL);
    uv_close((uv_handle_t *)&link->timer, NULL);
    uv_close((uv_handle_t *)&link->look_timer, NULL);
    link_watch_close(link);
    link_nudges_close(link);
    hf_etcd_close(link->etcd, on_etcd_closed, link);
}

static void on_runner_closed(void *arg)
{
    struct link *link = arg;

    link->runner = NULL;
    link_bury_cancel(link);
    link_ask_done(link);
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next)
        link_api_close(agent);
    let_all_go(link);
}

static void finish(struct link *link)
{
    if (link->over)
        return;
    link->over = true;
    if (link->runner != NULL)
        hf_runner_close(link->runner, true, on_runner_closed, link);
    else
        on_runner_closed(link);
}

static void on_timer(uv_timer_t *timer)
{
    HF_LOG_WARN("stop_incomplete", HF_STR("why", "not all ends could be written in time"),
                HF_STR("next", "agentd ends"));
    finish(timer->data);
}

/* Only now may the agents end: whoever sees their ends knows that nothing starts here. */
static void on_left(struct link *link)
{
    link->leaving = true;
    link->dirty = true;
    link_process_end_all(link);
    (void)uv_timer_start(&link->timer, on_timer,
                         (uint64_t)(link->settings->stop_grace + LINK_WRITE_MS), 0);
}

void link_stop(struct link *link, int code)
{
    if (link->stopping)
        return;
    link->stopping = true;
    link->code = code;
    link_leave(link, on_left);
}

/* `agentd run` stays while its agent may come back: NULL, or why it does not. */
static const char *find_why_over(const struct link *link, const struct link_agent *agent)
{
    struct hf_node_view view;
    Holdfast__V1__Exit__Kind kind;

    if (link->settings->once && agent->ended)
        return "it ended, and that was to be once"; /* whatever was ordered meanwhile */
    if (hf_node_get_view(link->node, agent->name, link_now(link), &view) != HF_OK ||
        view.state != HF_NODE_ABSENT)
        return NULL;
    if (view.stopped || view.held) {
        if (!agent->ended && agent->started)
            return NULL;
        return view.stopped ? "it is wanted stopped: `holdfast start` wants it again"
                            : "it is held: `holdfast restart` releases it";
    }
    if (!agent->ended)
        return NULL;
    if (agent->spec->restart == HOLDFAST__V1__SPEC__RESTART__never)
        return "it ended, and is never restarted";
    kind = view.exit != NULL ? view.exit->kind : HOLDFAST__V1__EXIT__KIND__unknown;
    if (kind == HOLDFAST__V1__EXIT__KIND__left)
        return "it said goodbye";
    return kind == HOLDFAST__V1__EXIT__KIND__finished &&
                   agent->spec->restart != HOLDFAST__V1__SPEC__RESTART__always
               ? "it finished"
               : NULL;
}

static void look_whether_over(struct link *link)
{
    const struct link_agent *agent = link->agents;
    const char *why;

    if (link->stopping || link->settings->mode != LINK_RUN || agent == NULL)
        return;
    why = find_why_over(link, agent);
    if (why == NULL)
        return;
    HF_LOG_INFO("over", HF_STR("agent", agent->name), HF_INT("status", agent->code),
                HF_STR("why", why));
    link_stop(link, agent->code);
}

/* Who has started an agentd and sees no agent wants to know what it waits for. */
static void tell_waiting(const struct link *link, struct link_agent *agent)
{
    struct hf_node_view view;

    if (!link->was_ready || link->stopping || !agent->configured || agent->started ||
        agent->processes != NULL ||
        hf_node_get_view(link->node, agent->name, link_now(link), &view) != HF_OK ||
        !view.told || view.why == NULL ||
        strncmp(view.why, agent->waits, sizeof agent->waits - 1) == 0)
        return;
    (void)snprintf(agent->waits, sizeof agent->waits, "%s", view.why);
    HF_LOG_INFO("waiting", HF_STR("agent", agent->name), HF_STR("why", view.why),
                HF_STR("next", view.next));
}

static void note_spec(struct link *link, struct link_agent *agent)
{
    struct hf_node_view view;

    if (hf_node_get_view(link->node, agent->name, link_now(link), &view) != HF_OK ||
        view.spec_written == agent->spec_written)
        return;
    agent->spec_written = view.spec_written;
    link->memo_due = true;
}

static void look(struct link *link)
{
    struct link_process *current;

    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        link_process_settle(link, agent);
        note_spec(link, agent);
        tell_waiting(link, agent);
        current = link_process_get_current(agent);
        link_ask_recall(current);
        link_api_tell_work(current);
        link_nudge_look(current);
    }
    if (link->memo_due)
        link_memo_write(link);
    if (!link->was_ready && hf_runner_get_stats(link->runner).synced &&
        link->lease_state == HF_LEASE_HELD) {
        link->was_ready = true;
        hf_alloc_trim();
        HF_LOG_INFO("ready", HF_STR("host", link->settings->host),
                    HF_INT("lease", hf_runner_get_lease(link->runner).lease));
    }
    look_whether_over(link);
    if (link->leaving && link_process_are_all_gone(link)) {
        if (link->settings->mode == LINK_RUN && link->agents != NULL && link->agents->started)
            link->code = link->agents->code;
        (void)uv_timer_stop(&link->timer);
        finish(link);
    }
}

static void on_look(uv_timer_t *timer)
{
    struct link *link = timer->data;

    if (link->runner == NULL || link->over)
        return;
    link->dirty = false;
    link_process_deliver(link);
    if (link->memo_due)
        link_memo_write(link); /* before the keeper forgets what it tells of */
    look(link);
}

/* An end that is written is forgotten at once: a link that finds the dead beside who is
 * registered by then would look after the dead, and discard the other. */
static void forget_ended(struct link *link)
{
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        if (!link_process_has_ended(agent))
            continue;
        if (link->memo_due)
            link_memo_write(link);
        link_process_settle(link, agent);
    }
}

static void on_prepare(uv_prepare_t *prepare)
{
    struct link *link = prepare->data;

    if (!link->dirty || link->runner == NULL || link->over)
        return;
    link_verify_deliver(link);
    forget_ended(link);
    if (!uv_is_active((uv_handle_t *)&link->look_timer))
        (void)uv_timer_start(&link->look_timer, on_look, LOOK_MS, 0);
}

/* The keeper. */

static void refuse(const struct link *link, const char *why)
{
    HF_LOG_ERROR("not_reloaded", HF_STR("why", why),
                 HF_STR("next", "everything stays as it is"));
    link_upgrade_refuse(link_channel_get_hello(link->channel)->state_dir, why);
}

/* The next link gets the files as they are now, and has our lease and our agents: what did not
 * change is not touched. With a mistake in them there would be none, so it is looked for first.
 */
static void give_way(const struct link *link, const char *release)
{
    struct hf_error err = { "" };
    LINK_CLEANUP_KEPT struct link_kept kept = { 0 };

    link_kept_begin(&kept);
    if (link_settings_check_again(link->settings, link_kept_get_files(&kept), &err) != HF_OK) {
        refuse(link, err.text);
        return;
    }
    link_kept_leave(&kept);
    HF_LOG_INFO("reloading", HF_STR("version", release),
                HF_STR("next", "another link goes on with the new settings"));
    _Exit(AGENTD_LINK_AGAIN);
}

static void on_successor(int err, const char *text, void *arg)
{
    struct link *link = arg;

    link->asks_successor = false;
    if (link->stopping || link->over)
        return;
    if (err == HF_OK)
        give_way(link, text);
    else
        refuse(link, text);
}

static void reload(struct link *link)
{
    uint32_t version = link_channel_get_hello(link->channel)->version;

    if (link->asks_successor)
        return; /* the files are read after the answer, as they are then */
    link->asks_successor =
        link_successor_ask(&link->loop, version, on_successor, link) == HF_OK;
    if (!link->asks_successor)
        refuse(link, "the link that is installed cannot be asked for its version");
}

static void on_signal(int number, void *arg)
{
    struct link *link = arg;
    bool run = link->settings->mode == LINK_RUN;

    /* The agent of `agentd run` got it, too; there, files are read once. */
    if (((number == SIGHUP && !run) || number == SIGUSR2) && !link->stopping)
        reload(link);
    if ((number != SIGTERM && number != SIGINT) || link->stopping)
        return;
    if (run)
        link->stop_signal = number;
    HF_LOG_INFO("stopping", HF_STR("signal", number == SIGTERM ? "TERM" : "INT"),
                HF_STR("next", "the agents are asked to end"));
    link_stop(link, 0);
}

/* Without its keeper a link has nothing to do: the lease is left to whoever comes next. */
static void on_broken(const char *why, void *arg)
{
    (void)arg;
    HF_LOG_ERROR("keeper_lost", HF_STR("why", why));
    _Exit(EXIT_FAILURE);
}

/* Life. */

static int begin(struct link *link)
{
    const struct agentd_lease_state *kept = &link_channel_get_hello(link->channel)->lease;
    hf_ms fence_at = link_channel_get_deadline(link->channel);
    struct hf_lease_record resume = { .id = kept->lease_id,
                                      .ttl = kept->ttl_ms,
                                      .counted_at = kept->renewed_ns / NS_PER_MS,
                                      .term = kept->raft_term,
                                      .fence_at = fence_at != 0 ? fence_at : HF_LEASE_NEVER };
    struct hf_runner_config cfg = { .ns = link->settings->common.namespace,
                                    .decider = { .ops = &OPS, .self = link },
                                    .lease = hf_lease_policy_for(link->settings->ttl),
                                    .keys_max = (size_t)link->settings->keys_max,
                                    .on_intent = on_intent,
                                    .on_lease = on_lease,
                                    .on_trouble = on_trouble,
                                    .arg = link };
    int rc;

    if (kept->lease_id != 0 && kept->ttl_ms > 0)
        cfg.resume = &resume;
    link->dirty = true;
    link_watch_wake(link);
    rc = hf_runner_new(&link->backend, &cfg, &link->runner, &link->why);
    if (rc == HF_OK)
        link_api_begin(link);
    return rc;
}

static void on_buried(struct link *link)
{
    int rc = begin(link);

    if (rc == HF_OK)
        return;
    HF_LOG_ERROR("cannot_go_on", HF_STR("error", hf_err_name(rc)),
                 HF_STR("message", link->why.text));
    _Exit(EXIT_FAILURE);
}

static int open_parts(struct link *link)
{
    struct hf_etcd_config etcd = hf_connect_config(&link->settings->common);
    const struct agentd_hello *hello = link_channel_get_hello(link->channel);
    char directory[AGENTD_PATH_BYTES + 16];
    struct link_store_config store = { .loop = &link->loop,
                                       .ns = link->settings->common.namespace,
                                       .directory = directory,
                                       .choice = link->settings->store,
                                       .s3 = &link->settings->s3,
                                       .s3_idle = link->settings->s3_idle,
                                       .spool = hello->state_dir };
    int rc;

    etcd.on_renewed = link_certificate_on_renewed;
    rc = hf_connect_new(&link->loop, &etcd, &link->etcd, &link->why);
    if (rc == HF_OK)
        rc = hf_backend_etcd_new(&link->loop, link->etcd, &link->backend_etcd);
    if (rc != HF_OK)
        return rc;
    link->backend = store.backend = hf_backend_etcd_get(link->backend_etcd);
    if (link->settings->store_dir != NULL)
        store.directory = link->settings->store_dir;
    else
        (void)snprintf(directory, sizeof directory, "%s/checkpoints", hello->state_dir);
    rc = link_store_new(&store, &link->store, &link->why);
    /* A directory that was named, and is none, is a mistake in the settings. */
    return rc == HF_EIO && link->settings->store_dir != NULL ? HF_EINVAL : rc;
}

/* Its socket is for whom its process runs as, and that is not changed by new settings. */
static int open_api(struct link_agent *agent, struct hf_error *err)
{
    const struct link_process *process = agent->processes;
    const struct link_user *user;
    struct link_user room;

    while (process->gone && process->next != NULL)
        process = process->next;
    user = link_process_get_user(process, &room);
    return link_api_open(agent, user != NULL ? user->uid : geteuid(), err);
}

static int open_apis(struct link *link)
{
    int rc = HF_OK;

    /* Processes of a link before this one go on asking. */
    for (struct link_agent *agent = link->agents; agent != NULL && rc == HF_OK;
         agent = agent->next) {
        if (agent->processes != NULL)
            rc = open_api(agent, &link->why);
        if (rc == HF_EEXIST) { /* one that makes that impossible costs nobody else anything */
            HF_LOG_ERROR("no_socket", HF_STR("agent", agent->name),
                         HF_STR("why", link->why.text),
                         HF_STR("next", "its process is not heard of"));
            rc = HF_OK;
        }
    }
    return rc;
}

static int open_all(struct link *link)
{
    const struct link_channel_config keeper = { .on_agent = link_process_on_agent,
                                                .on_refused = link_process_on_refused,
                                                .on_remembered = link_remember_on_reply,
                                                .on_told = link_nudge_on_told,
                                                .on_signal = on_signal,
                                                .on_broken = on_broken,
                                                .arg = link };
    int rc;

    link->prepare.data = link->timer.data = link->look_timer.data = link;
    if (uv_prepare_init(&link->loop, &link->prepare) != 0 ||
        uv_timer_init(&link->loop, &link->timer) != 0 ||
        uv_timer_init(&link->loop, &link->look_timer) != 0 || link_watch_open(link) != HF_OK ||
        link_nudges_open(link) != HF_OK || uv_prepare_start(&link->prepare, on_prepare) != 0)
        return hf_error_set(&link->why, HF_EIO, "no event loop can be made");
    rc = link_channel_open(&link->loop, &keeper, &link->channel, &link->why);
    if (rc == HF_OK)
        rc = link_agents_configure(link);
    if (rc != HF_OK)
        return rc;
    link_memo_parse(link_channel_get_memo(link->channel), link->agents);
    rc = open_parts(link);
    if (rc == HF_OK)
        rc = make_node(link);
    if (rc == HF_OK)
        rc = link_sweep_new(link, "file", link->settings->store_sweep, &link->sweep);
    if (rc == HF_OK)
        rc = link_sweep_new(link, "s3", link->settings->store_sweep, &link->object_sweep);
    if (rc == HF_OK)
        rc = open_apis(link);
    link->inner = hf_decider_node(link->node);
    return rc;
}

int link_open(struct link *link, const struct link_settings *settings)
{
    int rc;

    *link = (struct link){ .settings = settings, .stop_signal = SIGTERM };
    if (uv_loop_init(&link->loop) != 0)
        return hf_error_set(&link->why, HF_EIO, "no event loop can be made");
    rc = open_all(link);
    if (rc != HF_OK)
        return rc;
    HF_LOG_INFO("starting", HF_STR("version", HOLDFAST_VERSION), HF_STR("host", settings->host),
                HF_INT("ttl_ms", settings->ttl));
    link_channel_ready(link->channel);
    link_bury_lost(link, on_buried);
    return HF_OK;
}

int link_done(struct link *link)
{
    link_store_free(link->store);
    hf_node_free(link->node);
    link_agents_done(link);
    return uv_loop_close(&link->loop);
}

int link_run(const struct link_settings *settings, struct hf_error *err)
{
    struct link link;
    int rc;

    link_stray_begin();
    rc = link_open(&link, settings);
    if (rc != HF_OK) {
        *err = link.why.text[0] != '\0' ? link.why : (struct hf_error){ "out of memory" };
        return rc;
    }
    (void)uv_run(&link.loop, UV_RUN_DEFAULT);
    (void)link_done(&link);
    return HF_OK;
}
