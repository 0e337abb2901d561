/* link.c - the link of a host: the real node and runner, and what the keeper hands to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/commit.h"
#include "io/decider_node.h"
#include "schema/json.h"
#include "sim/cluster.h"
#include "sim/witness.h"

enum { LOCAL_MS = 2, VERIFY_MS = 50, AGAIN_MS = 10, GOODBYE_MS = 3000 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define SEQ_MASK                 ((INT64_C(1) << 48) - 1)

struct hfs_link {
    struct hfs_host *host;
    struct hfs_link *next; /* of those that are dead */
    struct hfs_client client;
    struct hf_node *node;
    struct hfs_witness witness; /* of what the node wants */
    struct hf_runner *runner;
    struct hf_call *revoking; /* the lease of an agentd before this one */
    struct hf_call *reading;  /* its host's record, to say goodbye in it */
    void (*left)(struct hfs_host *host);
    bool closed;
};

/* Letters on the local sockets. */

struct letter {
    struct hfs_timer timer;
    struct hfs_host *host;
    const struct hfs_link *to;
    struct hf_event event;
    char agent[HFS_TEXT], instance[HFS_TEXT], task[HFS_TEXT], text[HFS_TEXT], key[HFS_TEXT];
    Holdfast__V1__Checkpoint entry;
    Holdfast__V1__Root root;
    Holdfast__V1__Report report;
    Holdfast__V1__Report__Progress progress;
    struct hf_receipt receipt;
};

static void on_letter(struct hfs_timer *timer)
{
    struct letter *letter = OWNER(timer, struct letter, timer);
    struct hfs_host *host = letter->host;

    if (host->link == letter->to && host->link != NULL && host->link->runner != NULL) {
        if (hf_runner_feed(host->link->runner, &letter->event) == HF_ENOMEM) {
            /* It was not taken in: it stays in the socket. */
            hfs_timer_start(&host->cluster->world, timer, host->cluster->world.now + AGAIN_MS);
            return;
        }
        if (letter->event.kind == HF_EVENT_PROCESS &&
            letter->event.process.news == HF_PROCESS_ENDED)
            hfs_keeper_on_told(host, letter->instance);
    }
    free(letter);
}

bool hfs_link_has(const struct hfs_host *host, const char *agent, const char *instance)
{
    struct hf_node_view view;

    return hf_node_get_view(host->link->node, agent, 0, &view) == HF_OK &&
           view.instance_id != NULL && strcmp(view.instance_id, instance) == 0;
}

const char *hfs_link_why(const struct hfs_host *host, const char *agent)
{
    struct hf_node_view view;

    if (host->link == NULL || hf_node_get_view(host->link->node, agent, 0, &view) != HF_OK)
        return "";
    return view.why;
}

static const char *keep(char place[HFS_TEXT], const char *text)
{
    if (text == NULL)
        return NULL;
    (void)snprintf(place, HFS_TEXT, "%s", text);
    return place;
}

void hfs_link_tell(struct hfs_host *host, const struct hf_event *event)
{
    struct hfs_cluster *cluster = host->cluster;
    struct letter *letter;

    if (host->link == NULL)
        return;
    letter = hfs_alloc(sizeof *letter);
    letter->timer = (struct hfs_timer){ .fn = on_letter, .process = &host->process };
    letter->host = host;
    letter->to = host->link;
    letter->event = *event;
    if (event->kind == HF_EVENT_PROCESS) {
        letter->event.process.agent = keep(letter->agent, event->process.agent);
        letter->event.process.instance_id = keep(letter->instance, event->process.instance_id);
        letter->event.process.text = keep(letter->text, event->process.text);
        if (event->process.receipt != NULL) {
            letter->receipt = *event->process.receipt;
            letter->event.process.receipt = &letter->receipt;
        }
    }
    if (event->kind == HF_EVENT_ASK) {
        letter->event.ask.agent = keep(letter->agent, event->ask.agent);
        letter->event.ask.instance_id = keep(letter->instance, event->ask.instance_id);
        letter->event.ask.task = keep(letter->task, event->ask.task);
        letter->event.ask.text = keep(letter->text, event->ask.text);
        if (event->ask.report != NULL) {
            letter->report = *event->ask.report;
            letter->event.ask.report = &letter->report;
        }
        if (event->ask.report != NULL && event->ask.report->progress != NULL) {
            letter->progress = *event->ask.report->progress;
            letter->report.progress = &letter->progress;
        }
        if (event->ask.checkpoint != NULL) {
            letter->entry = *event->ask.checkpoint;
            letter->entry.task = letter->task;
            letter->entry.key = (char *)keep(letter->key, event->ask.checkpoint->key);
            letter->event.ask.checkpoint = &letter->entry;
            if (letter->entry.root != NULL) {
                letter->root = *letter->entry.root;
                letter->entry.root = &letter->root;
            }
        }
    }
    hfs_timer_start(&cluster->world, &letter->timer,
                    cluster->world.now +
                        (event->kind == HF_EVENT_VERIFIED ? VERIFY_MS : LOCAL_MS));
}

/* What the node wants. */

/* Whoever hears that it is asked something has been brought it by then. */
static void hand_in_receipt(struct hfs_host *host, const struct hfs_agent *agent)
{
    const Holdfast__V1__Health__Inquiry *inquiry =
        hf_node_get_inquiry(host->link->node, agent->config->name);
    struct hf_receipt receipt = { .by = "events" };
    struct hf_event event = { .kind = HF_EVENT_PROCESS };

    if (inquiry == NULL)
        return;
    (void)snprintf(receipt.id, sizeof receipt.id, "%s", inquiry->id);
    receipt.delivered_wall = HFS_WALL_BEGIN + host->cluster->world.now;
    event.process = (struct hf_event_process){ .agent = agent->config->name,
                                               .instance_id = agent->instance,
                                               .news = HF_PROCESS_NUDGED,
                                               .receipt = &receipt };
    hfs_link_tell(host, &event);
}

static void on_reply(struct hfs_host *host, uint64_t token, const struct hf_intent_reply *reply)
{
    for (struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        if (agent->ask != token)
            continue;
        if (reply->nudges > 0)
            hand_in_receipt(host, agent);
        hfs_agent_on_reply(agent, token, reply);
        return;
    }
}

static void on_intent(const struct hf_intent *intent, void *arg)
{
    struct hfs_link *link = arg;
    struct hfs_host *host = link->host;
    struct hf_event event = { .kind = HF_EVENT_VERIFIED };

    if (host->link != link)
        return; /* it is dead: nobody hears it */
    switch (intent->kind) {
    case HF_INTENT_PROCESS: hfs_keeper_on_act(host, &intent->process); break;
    case HF_INTENT_REPLY: on_reply(host, intent->token, &intent->reply); break;
    case HF_INTENT_VERIFY:
        event.verified = (struct hf_event_verified){
            .token = intent->token, .err = hfs_cluster_verify(host->cluster, intent->verify)
        };
        hfs_link_tell(host, &event);
        break;
    case HF_INTENT_ALERT:
        hfs_note(&host->cluster->world, "%s alerts of %s: %s; next: %s", host->name,
                 hfs_alert_subject(&intent->alert), intent->alert.why, intent->alert.next);
        break;
    default: break;
    }
}

static void on_lease(const struct hf_session_view *view, void *arg)
{
    struct hfs_link *link = arg;

    if (link->host->link == link)
        hfs_keeper_on_lease(link->host, &view->record);
}

/* A claim takes a task out of the index; so does a start by command, which puts a live key. */
static bool is_claim(const struct hf_plan *plan)
{
    bool takes = false;

    for (size_t i = 0; i < plan->write_count; i++) {
        const struct hf_plan_write *write = &plan->writes[i];

        if (write->lease != 0)
            return false;
        takes = takes || (write->value == NULL && strstr(write->key, "/pending/") != NULL);
    }
    return takes;
}

static void see(const struct hf_intent *intent, void *arg)
{
    struct hfs_link *link = arg;

    if (link->host->link == link && intent->kind == HF_INTENT_WRITE && is_claim(&intent->plan))
        hfs_keeper_judge(link->host, "a task is claimed");
}

/* Life. */

static void on_closed(void *arg)
{
    struct hfs_link *link = arg;

    link->runner = NULL;
    link->closed = true;
}

/* What is closed can go, once nothing of it is running any more. */
static void sweep(struct hfs_cluster *cluster)
{
    struct hfs_link **at = &cluster->dead_links;

    while (*at != NULL) {
        struct hfs_link *link = *at;

        if (!link->closed) {
            at = &link->next;
            continue;
        }
        *at = link->next;
        hf_node_free(link->node);
        hfs_client_done(&link->client);
        free(link);
    }
}

static void bury(struct hfs_link *link, bool orderly)
{
    struct hfs_cluster *cluster = link->host->cluster;

    if (link->revoking != NULL) /* it has not begun, and shall not any more */
        hf_call_cancel(link->revoking);
    link->revoking = NULL;
    if (!orderly)
        hfs_client_die(&link->client);
    link->next = cluster->dead_links;
    cluster->dead_links = link;
    if (link->runner != NULL)
        hf_runner_close(link->runner, orderly, on_closed, link);
    else
        link->closed = true;
}

void hfs_link_crash(struct hfs_host *host)
{
    struct hfs_link *link = host->link;

    if (link == NULL)
        return;
    hfs_note(&host->cluster->world, "%s loses its link", host->name);
    host->link = NULL;
    bury(link, false);
    hfs_keeper_on_link_gone(host);
}

void hfs_link_end(struct hfs_host *host)
{
    struct hfs_link *link = host->link;

    if (link == NULL)
        return;
    host->link = NULL;
    bury(link, true);
}

/* Goodbyes. */

static void said(struct hfs_link *link)
{
    if (link->host->link == link)
        link->left(link->host);
}

static void on_said(const struct hf_commit_result *result, void *arg)
{
    (void)result; /* the lease ends by itself then */
    said(arg);
}

static int plan_goodbye(const struct hfs_link *link, const struct hf_kv *kv,
                        struct hf_plan *ret_plan)
{
    struct hf_key key = { HF_KEY_HOST_RECORD, .name = link->host->name };
    ProtobufCMessage *record = NULL;
    uint8_t random[10] = { 0 };
    char op_id[HF_ID_LEN + 1];

    hfs_must(hf_json_decode(&holdfast__v1__host__descriptor, kv->value.data, kv->value.len,
                            NULL, &record, NULL));
    ((Holdfast__V1__Host *)record)->left = true;
    random[0] = (uint8_t)link->host->number;
    hf_id_format(link->host->cluster->world.now, random, op_id);
    hf_plan_init(ret_plan, HFS_NS, HF_WRITER_OWNER, op_id);
    hf_plan_begin_row(ret_plan, HF_ROW_LEAVE);
    hf_plan_guard_same(ret_plan, key, kv->mod_rev, kv->value);
    hf_plan_put(ret_plan, key, record, kv->value, 0);
    hf_json_free(record);
    return hf_plan_check(ret_plan, NULL);
}

static void on_record(const struct hf_range_result *result, void *arg)
{
    struct hfs_link *link = arg;
    struct hf_backend backend = hfs_client_backend(&link->client);
    struct hf_plan plan;

    bool was;

    link->reading = NULL;
    if (result->result.err != HF_OK || result->count == 0) {
        said(link);
        return;
    }
    was = hfs_memory_set(false);
    hfs_must(plan_goodbye(link, &result->kvs[0], &plan));
    hfs_must(hf_commit_start(&backend, &plan, GOODBYE_MS, on_said, link, NULL));
    hf_plan_done(&plan);
    (void)hfs_memory_set(was);
}

void hfs_link_say_goodbye(struct hfs_host *host, void (*fn)(struct hfs_host *host))
{
    struct hf_backend backend = hfs_client_backend(&host->link->client);
    struct hf_range_request request = { .timeout = GOODBYE_MS };
    char key[HF_KEY_SIZE];
    int len = hf_key_format(HFS_NS, &(struct hf_key){ HF_KEY_HOST_RECORD, .name = host->name },
                            key, NULL);

    hfs_must(len);
    host->link->left = fn;
    request.range.key = (struct hf_bytes){ key, (size_t)len };
    hfs_must(backend.ops->range(backend.self, &request, on_record, host->link,
                                &host->link->reading));
}

void hfs_links_done(struct hfs_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        struct hfs_link *link = cluster->hosts[i].link;

        cluster->hosts[i].link = NULL;
        if (link != NULL)
            bury(link, false);
    }
    for (int i = 0; i < 1000000 && cluster->dead_links != NULL; i++) {
        sweep(cluster);
        (void)hfs_world_step(&cluster->world, cluster->world.now + 10);
    }
    for (size_t i = 1; i <= cluster->world.count; i++) {
        struct hfs_timer *timer = cluster->world.queue[i];

        if (timer->fn != on_letter)
            continue;
        hfs_timer_stop(&cluster->world, timer);
        free(OWNER(timer, struct letter, timer));
        i = 0; /* the heap has moved */
    }
}

/* What was made in good time for the successor of one that has ended. */
static void add_spare(const struct hfs_host *host, const struct hfs_agent_config *config,
                      struct hf_node_held *held)
{
    for (const struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        if (agent->config != config || !agent->held || agent->begun || agent->ended)
            continue;
        held->spare_id = agent->instance;
        held->spare_pid = agent->pid;
        held->spare_start_time = agent->start_time;
    }
}

static struct hf_node_held held_of(struct hfs_host *host, const struct hfs_agent_config *config)
{
    bool started = host->started[config - host->cluster->cfg.agents], has_ended = false;
    struct hf_node_held held = { .started = started, .spec_written = started };

    for (const struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
        if (agent->config != config || !agent->held ||
            (held.begun && (!agent->begun || agent->ended)))
            continue;
        has_ended = agent->ended;
        held.instance_id = agent->instance;
        held.pid = agent->pid;
        held.start_time = agent->start_time;
        held.begun = agent->begun;
        held.frozen = agent->frozen;
        held.lease = agent->lease;
        held.create_rev = agent->incarnation & SEQ_MASK;
        held.generation = (int32_t)(agent->incarnation >> 48);
        if (agent->begun && !agent->ended)
            break; /* one that runs is more than one that ran, and that than what waits */
    }
    if (held.begun && has_ended)
        add_spare(host, config, &held);
    return held;
}

static Holdfast__V1__Spec spec_of(const struct hfs_cluster *cluster,
                                  const struct hfs_agent_config *config)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)config->role;
    spec.launcher = (char *)"model";
    spec.pool = (char *)"default";
    spec.home = (char *)cluster->hosts[config->home].name;
    spec.restart = config->restart;
    spec.fence = config->fence;
    spec.max_tasks = config->max_tasks;
    spec.transient = config->transient;
    return spec;
}

static bool lacks(const struct hfs_cluster *cluster, enum hf_mutant mutant)
{
    return (cluster->cfg.mutants & hf_mutant_bit(mutant)) != 0;
}

static struct hf_node_policy policy_of(const struct hfs_cluster *cluster)
{
    struct hf_node_policy policy = hf_node_policy_default();

    if (cluster->cfg.heartbeat > 0)
        policy.heartbeat = cluster->cfg.heartbeat;
    if (lacks(cluster, HF_MUTANT_ENDLESS_FREEZE))
        policy.frozen_max *= 100;
    if (lacks(cluster, HF_MUTANT_NO_POISON))
        policy.chain.poison = HF_RECOVER_OUTCOMES;
    return policy;
}

static struct hf_node *make_node(struct hfs_host *host)
{
    struct hfs_cluster *cluster = host->cluster;
    struct hf_node_agent_config agents[HFS_AGENTS];
    Holdfast__V1__Spec specs[HFS_AGENTS];
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    char *pools[] = { (char *)"default" }, *launchers[] = { (char *)"model" };
    char *roots[] = { host->name };
    size_t count = 0;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *config = &cluster->cfg.agents[i];
        struct hf_node_held held = held_of(host, config);

        if (config->home != host->number && held.instance_id == NULL)
            continue;
        specs[count] = spec_of(cluster, config);
        agents[count] = (struct hf_node_agent_config){ .name = config->name,
                                                       .spec = &specs[count],
                                                       .held = held };
        count++;
    }
    record.pools = pools;
    record.n_pools = 1;
    record.launchers = launchers;
    record.n_launchers = 1;
    record.roots = roots;
    record.n_roots = cluster->cfg.own_files ? 1 : 0;
    record.version = (char *)(cluster->cfg.reloads && host->links % 2 != 0 ? "other" : "model");
    return hf_node_new(&(struct hf_node_config){
        .ns = HFS_NS,
        .host = host->name,
        .boot_id = host->boot_id,
        .record = &record,
        .agents = agents,
        .agent_count = count,
        .policy = policy_of(cluster),
        .seed = hfs_random_next(&cluster->dice),
        .mutants = cluster->cfg.mutants,
    });
}

static void begin(struct hfs_link *link)
{
    struct hfs_host *host = link->host;
    struct hf_backend backend = hfs_client_backend(&link->client);
    struct hf_runner_config cfg = { .ns = HFS_NS,
                                    .decider = hfs_witness_decider(&link->witness),
                                    .lease = hf_lease_policy_default(),
                                    .on_intent = on_intent,
                                    .on_lease = on_lease,
                                    .arg = link };

    cfg.lease.mutants = host->cluster->cfg.mutants;
    if (host->record.id != 0)
        cfg.resume = &host->record;
    if (hf_runner_new(&backend, &cfg, &link->runner, NULL) != HF_OK)
        hfs_link_crash(host); /* a program that cannot begin ends, and is started again */
    else
        hfs_keeper_on_link(host);
}

static void on_revoked(const struct hf_write_result *result, void *arg)
{
    struct hfs_link *link = arg;

    (void)result; /* gone, or it will expire */
    link->revoking = NULL;
    begin(link);
}

void hfs_link_start(struct hfs_host *host)
{
    struct hfs_cluster *cluster = host->cluster;
    struct hfs_link *link = hfs_alloc(sizeof *link);
    struct hf_backend backend;
    bool was;

    sweep(cluster);
    hfs_note(&cluster->world, "%s has a link", host->name);
    link->host = host;
    host->links++;
    hfs_client_init(&link->client, &cluster->net, &host->process,
                    hfs_random_next(&cluster->dice));
    was = hfs_memory_set(true);
    link->node = make_node(host);
    link->witness =
        (struct hfs_witness){ .decider = hf_decider_node(link->node), .see = see, .arg = link };
    host->link = link;
    /* A new agentd lets go of what an earlier one held. */
    if (link->node == NULL) {
        hfs_link_crash(host);
    } else if (host->record.id == 0 && host->last_lease != 0) {
        backend = hfs_client_backend(&link->client);
        hfs_must(backend.ops->revoke(backend.self, host->last_lease, on_revoked, link,
                                     &link->revoking));
        host->last_lease = 0;
    } else {
        begin(link);
    }
    (void)hfs_memory_set(was);
}
