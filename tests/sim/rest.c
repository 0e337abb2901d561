#include "sim/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/moments.h"
#include "core/stall.h"
#include "schema/json.h"

/* What everything has to be at rest after, beside its own backoff. */
enum {
    REST_MS = 120000,
    RESYNC_MS = 360000, /* everything is listed every 5 min, give or take a fifth */
    TURN_MS = 1100,     /* an answer that says to ask again, on top of a step */
};

/* Why it need not be yet. */
enum excuse {
    EXCUSE_NONE,
    EXCUSE_BACKOFF,
    EXCUSE_BUSY, /* who could have it has another one */
    EXCUSE_WORK,
    EXCUSE_LAZY,
    EXCUSE_HOME,
    EXCUSES,
};

/* Something that was not as it should be. */
struct grievance {
    char what[2 * HFS_TEXT];
    hf_ms spent[EXCUSES]; /* how long, by why */
};

struct hfs_rest {
    struct hfs_cluster *cluster;
    hf_ms begun, looked_at;
    bool lossy; /* and not everybody has listed everything yet */
    struct hf_recover_policy recover;
    struct hf_restart_policy restart;
    struct hf_task_policy task;
    hf_ms home_grace;
    struct grievance *list;
    size_t count, cap;

    hfs_rev clock_rev; /* of the cluster clock that was read last, */
    hf_ms clock, clock_at;

    char *why;
    size_t why_size;
    bool any, late;
};

/* Records. */

static const struct hfs_entry *find(struct hfs_cluster *cluster, struct hf_key key)
{
    char text[HF_KEY_SIZE];
    int len = hf_key_format(HFS_NS, &key, text, NULL);

    hfs_must(len);
    return hfs_store_get(hfs_etcd_get_store(cluster->etcd),
                         (struct hf_bytes){ text, (size_t)len });
}

/* NULL: there is none. To be freed with hf_json_free. */
static ProtobufCMessage *read_record(struct hfs_cluster *cluster, struct hf_key key)
{
    const struct hfs_entry *entry = find(cluster, key);
    ProtobufCMessage *record = NULL;

    if (entry != NULL)
        hfs_must(hf_json_decode(hf_key_get_record(key.kind), entry->value, entry->value_len,
                                NULL, &record, NULL));
    return record;
}

static Holdfast__V1__Health *read_health(struct hfs_cluster *cluster, const char *agent)
{
    return (Holdfast__V1__Health *)read_record(cluster,
                                               (struct hf_key){ HF_KEY_HEALTH, .name = agent });
}

/* Agents. */

static bool is_held(struct hfs_cluster *cluster, const char *agent)
{
    Holdfast__V1__Health *health = read_health(cluster, agent);
    bool held = health != NULL && health->held;

    hf_json_free((ProtobufCMessage *)health);
    return held;
}

/* Whether its process is there, standing still or not. */
static bool has_process(const struct hfs_cluster *cluster,
                        const struct hfs_agent_config *config)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        for (const struct hfs_agent *agent = cluster->hosts[i].agents; agent != NULL;
             agent = agent->next) {
            if (agent->config == config && agent->begun && !agent->ended)
                return true;
        }
    }
    return false;
}

/* Its home is gone, and may be waited for. */
static bool is_homeless(const struct hfs_cluster *cluster,
                        const struct hfs_agent_config *config)
{
    return cluster->hosts[config->home].gone;
}

/* Nobody has said that it shall not run, and nothing has shown that it cannot. One that is
 * never started again runs while it does. */
static bool may_run(struct hfs_cluster *cluster, const struct hfs_agent_config *agent)
{
    if (agent->restart == HOLDFAST__V1__SPEC__RESTART__never && !has_process(cluster, agent))
        return false;
    /* Its host vanished before anybody heard of it. */
    if (is_homeless(cluster, agent) && !hfs_check_has_spec(cluster->check, agent->name))
        return false;
    return agent->kind != HFS_CRASH_START &&
           !hfs_check_is_stopped(cluster->check, agent->name) && !is_held(cluster, agent->name);
}

static bool works(const struct hfs_agent_config *agent, const char *role)
{
    return strcmp(agent->role, role) == 0 && agent->kind != HFS_IDLE && agent->kind != HFS_LAZY;
}

bool hfs_rest_has_agent(const char *role, void *arg)
{
    struct hfs_cluster *cluster = arg;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *agent = &cluster->cfg.agents[i];

        if (works(agent, role) && may_run(cluster, agent))
            return true;
    }
    return false;
}

/* NULL: it does not run. */
static const struct hfs_agent *find_process(const struct hfs_cluster *cluster,
                                            const struct hfs_agent_config *config)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        for (const struct hfs_agent *agent = cluster->hosts[i].agents; agent != NULL;
             agent = agent->next) {
            if (agent->config == config && agent->begun && !agent->ended && !agent->frozen)
                return agent;
        }
    }
    return NULL;
}

/* One that goes home after its work need not be there. */
static bool should_run(struct hfs_cluster *cluster, const struct hfs_agent_config *agent)
{
    return may_run(cluster, agent) && (agent->kind != HFS_FINISHER ||
                                       agent->restart == HOLDFAST__V1__SPEC__RESTART__always);
}

/* Grievances. */

static struct grievance *find_grievance(struct hfs_rest *rest, const char *what)
{
    struct grievance *g;

    for (size_t i = 0; i < rest->count; i++) {
        if (strcmp(rest->list[i].what, what) == 0)
            return &rest->list[i];
    }
    hfs_grow(&rest->list, &rest->cap, rest->count + 1, sizeof *g);
    g = &rest->list[rest->count++];
    *g = (struct grievance){ 0 };
    (void)snprintf(g->what, sizeof g->what, "%s", what);
    return g;
}

/* It is not as it should be, and need not be for so long in all for that reason. The first one
 * that is late is told, or else the last. */
static void complain(struct hfs_rest *rest, const char *what, enum excuse excuse, hf_ms most,
                     const char *why)
{
    struct grievance *g = find_grievance(rest, what);
    hf_ms passed = rest->cluster->world.now - rest->looked_at;

    if (!rest->lossy) {
        if (excuse != EXCUSE_NONE && g->spent[excuse] + passed > most)
            excuse = EXCUSE_NONE;
        g->spent[excuse] += passed;
    }
    rest->any = true;
    if (!rest->late)
        (void)snprintf(rest->why, rest->why_size, "%s (%lld s)", why,
                       (long long)g->spent[EXCUSE_NONE] / 1000);
    rest->late = rest->late || g->spent[EXCUSE_NONE] > REST_MS;
}

/* The cluster clock, as its leader would reckon it. */
static hf_ms cluster_now(struct hfs_rest *rest)
{
    struct hf_key key = { .kind = HF_KEY_CLOCK };
    const struct hfs_entry *entry = find(rest->cluster, key);
    Holdfast__V1__Clock *clock;

    if (entry != NULL && entry->mod_rev != rest->clock_rev) {
        clock = (Holdfast__V1__Clock *)read_record(rest->cluster, key);
        rest->clock = hf_moment_read(clock->now);
        rest->clock_at = rest->cluster->world.now;
        rest->clock_rev = entry->mod_rev;
        hf_json_free((ProtobufCMessage *)clock);
    }
    return rest->clock + (rest->cluster->world.now - rest->clock_at);
}

/* All delays of one streak, and a look for each that ends between two. */
static hf_ms sum_delays(const struct hf_backoff_policy *backoff, uint32_t limit)
{
    hf_ms sum = 0;

    for (uint32_t i = 1; i <= limit; i++)
        sum += hf_backoff_delay(backoff, i, 0) + 1000;
    return sum;
}

/* Its next start was drawn, and is yet to come. */
static bool has_backoff(struct hfs_rest *rest, const char *agent)
{
    Holdfast__V1__Health *health = read_health(rest->cluster, agent);
    bool waits = health != NULL && health->next_start != NULL &&
                 hf_moment_read(health->next_start) > cluster_now(rest);

    hf_json_free((ProtobufCMessage *)health);
    return waits;
}

static void look_at_agents(struct hfs_rest *rest)
{
    struct hfs_cluster *cluster = rest->cluster;
    char what[HFS_TEXT + 16], why[5 * HFS_TEXT];

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *config = &cluster->cfg.agents[i];
        bool runs = find_process(cluster, config) != NULL;
        bool live = hfs_check_is_live(cluster->check, config->name);

        (void)snprintf(what, sizeof what, "agent %s", config->name);
        if (!runs && should_run(cluster, config)) {
            (void)snprintf(why, sizeof why, "%s is wanted and does not run; %s says: %.80s",
                           config->name, cluster->hosts[config->home].name,
                           hfs_link_why(&cluster->hosts[config->home], config->name));
            if (has_backoff(rest, config->name))
                complain(rest, what, EXCUSE_BACKOFF,
                         sum_delays(&rest->restart.backoff, rest->restart.limit), why);
            else
                complain(rest, what, is_homeless(cluster, config) ? EXCUSE_HOME : EXCUSE_NONE,
                         rest->home_grace, why);
        } else if (runs != live) {
            (void)snprintf(why, sizeof why, "%s %s", config->name,
                           runs ? "runs and is not registered"
                                : "is registered and does not run");
            complain(rest, what, EXCUSE_NONE, 0, why);
        }
    }
}

/* Tasks. */

/* Whether it has a task, by its own word and by etcd's. */
static bool is_busy(const struct hfs_cluster *cluster, const struct hfs_agent *process)
{
    return process->task[0] != '\0' &&
           hfs_check_is_owner(cluster->check, process->config->name, process->task);
}

/* Nobody is free to take it, and that will change by itself. */
static bool waits_for_agent(struct hfs_rest *rest, const char *role)
{
    struct hfs_cluster *cluster = rest->cluster;
    bool waits = false;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *config = &cluster->cfg.agents[i];
        const struct hfs_agent *process;

        if (!works(config, role) || !may_run(cluster, config))
            continue;
        process = find_process(cluster, config);
        if (process != NULL && !is_busy(cluster, process))
            return false;
        waits = waits || process != NULL || has_backoff(rest, config->name) ||
                (is_homeless(cluster, config) &&
                 cluster->world.now - rest->begun < rest->home_grace);
    }
    return waits;
}

/* Who owns it has it, and another one before. */
static bool is_for_later(const struct hfs_cluster *cluster, const char *task)
{
    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent *process = find_process(cluster, &cluster->cfg.agents[i]);

        if (process == NULL || !is_busy(cluster, process) ||
            !hfs_check_is_owner(cluster->check, process->config->name, task))
            continue;
        for (unsigned j = 0; j < process->later_count; j++) {
            if (strcmp(process->later[j].name, task) == 0)
                return true;
        }
    }
    return false;
}

/* The process that has it, NULL: none. */
static const struct hfs_agent *find_worker(const struct hfs_cluster *cluster, const char *task)
{
    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent *process = find_process(cluster, &cluster->cfg.agents[i]);

        if (process != NULL && strcmp(process->task, task) == 0 && is_busy(cluster, process))
            return process;
    }
    return NULL;
}

static unsigned count_lazy(const struct hfs_cluster *cluster, const char *role)
{
    unsigned count = 0;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++)
        count += cluster->cfg.agents[i].kind == HFS_LAZY &&
                 strcmp(cluster->cfg.agents[i].role, role) == 0;
    return count;
}

/* It may stand still, be asked, and be heard of until just before; and whoever leads next, or
 * has to list everything again, counts anew. */
static hf_ms most_standstill(const struct hfs_cluster_config *cfg)
{
    struct hf_stall_policy stall = hf_stall_policy_default();
    hf_ms quiet = cfg->progress_max > 0 ? cfg->progress_max : stall.progress_max;
    hf_ms answer = cfg->inquiry_answer > 0 ? cfg->inquiry_answer : stall.inquiry_answer;

    return cfg->expected > 0 ? 2 * (quiet + 2 * answer + 4 * cfg->heartbeat) : 0;
}

/* As often as it may be recovered, and once more. Some turns are for a report or for a
 * checkpoint, which another agent of the host may keep waiting. */
static hf_ms most_work(const struct hfs_rest *rest, const struct hfs_agent *worker)
{
    const struct hfs_cluster_config *cfg = &rest->cluster->cfg;
    hf_ms turn = (cfg->step_exact > 0 ? cfg->step_exact
                  : cfg->step_max > 0 ? cfg->step_max + 50
                                      : TURN_MS) +
                 TURN_MS;

    turn = turn * (hf_ms)(worker->steps + 2) * 100 / (100 - cfg->report_percent);
    return (hf_ms)(rest->recover.limit + 1) * (turn + most_standstill(cfg));
}

static enum excuse excuse_of(struct hfs_rest *rest, const Holdfast__V1__Task *task,
                             hf_ms *ret_most)
{
    const struct hfs_agent *worker = find_worker(rest->cluster, task->id);
    Holdfast__V1__Recovery *recovery;
    bool waits;

    *ret_most = INT64_MAX / 2;
    if (worker != NULL) {
        bool lazy = worker->config->kind == HFS_LAZY;

        *ret_most = lazy ? count_lazy(rest->cluster, task->role) * rest->task.start_within
                         : most_work(rest, worker);
        return lazy ? EXCUSE_LAZY : EXCUSE_WORK;
    }
    if (is_for_later(rest->cluster, task->id))
        return EXCUSE_BUSY;
    /* A claim that an earlier link sent came late: its process knows nothing of it. */
    if (task->state == HOLDFAST__V1__TASK__STATE__acknowledged) {
        *ret_most = rest->task.start_within;
        return EXCUSE_LAZY;
    }
    if (task->state == HOLDFAST__V1__TASK__STATE__pending)
        return waits_for_agent(rest, task->role) ? EXCUSE_BUSY : EXCUSE_NONE;
    if (task->state != HOLDFAST__V1__TASK__STATE__queued)
        return EXCUSE_NONE;
    if (hfs_check_is_full(rest->cluster->check, task->role))
        return EXCUSE_BUSY;
    recovery = (Holdfast__V1__Recovery *)read_record(
        rest->cluster, (struct hf_key){ HF_KEY_RECOVERY, .name = task->id });
    waits = recovery != NULL && hf_moment_read(recovery->next_at) > cluster_now(rest);
    hf_json_free((ProtobufCMessage *)recovery);
    *ret_most = sum_delays(&rest->recover.backoff, rest->recover.limit);
    return waits ? EXCUSE_BACKOFF : EXCUSE_NONE;
}

static void look_at_task(struct hfs_rest *rest, const struct hfs_entry *entry)
{
    ProtobufCMessage *record = NULL;
    const Holdfast__V1__Task *task;
    char what[HFS_TEXT + 16], why[5 * HFS_TEXT];
    enum excuse excuse;
    hf_ms most;

    hfs_must(hf_json_decode(hf_key_get_record(HF_KEY_TASK), entry->value, entry->value_len,
                            NULL, &record, NULL));
    task = (const Holdfast__V1__Task *)record;
    (void)snprintf(what, sizeof what, "task %.40s", task->id);
    (void)snprintf(
        why, sizeof why, "I9 %.40s of %.40s is not final: %s%s%.40s", task->id, task->role,
        protobuf_c_enum_descriptor_get_value(&holdfast__v1__task__state__descriptor,
                                             (int)task->state)
            ->name,
        task->owner != NULL ? " with " : "", task->owner != NULL ? task->owner->agent : "");
    if (task->state < HOLDFAST__V1__TASK__STATE__completed &&
        hfs_rest_has_agent(task->role, rest->cluster)) {
        excuse = excuse_of(rest, task, &most);
        complain(rest, what, excuse, most, why);
    }
    hf_json_free(record);
}

static void look_at_command(struct hfs_rest *rest, const struct hfs_entry *entry)
{
    const char *name = entry->key->bytes + sizeof "/holdfast/" HFS_NS "/commands/" - 1;
    int len = (int)(entry->key->bytes + entry->key->len - name);
    char what[2 * HFS_TEXT], why[3 * HFS_TEXT];

    (void)snprintf(what, sizeof what, "start %.*s", len, name);
    (void)snprintf(why, sizeof why, "I8 a start is left over: %.*s", len, name);
    complain(rest, what, EXCUSE_NONE, 0, why);
}

static void look_at_keys(struct hfs_rest *rest, const char *prefix,
                         void (*look)(struct hfs_rest *rest, const struct hfs_entry *entry))
{
    struct hfs_range range = { .key = { prefix, strlen(prefix) }, .prefix = true };
    struct hfs_found found = { 0 };
    size_t total;

    hfs_must(
        hfs_store_range(hfs_etcd_get_store(rest->cluster->etcd), &range, 0, 0, &found, &total));
    for (size_t i = 0; i < found.count; i++)
        look(rest, found.list[i]);
    free(found.list);
}

/* More run than may be, and some of them could wait. */
static void look_at_limits(struct hfs_rest *rest)
{
    char why[5 * HFS_TEXT];
    const char *task = hfs_check_find_surplus(rest->cluster->check);

    if (task == NULL)
        return;
    (void)snprintf(why, sizeof why,
                   "I11 %.40s is pending, and more tasks of its role run than may", task);
    complain(rest, "surplus", EXCUSE_NONE, 0, why);
}

static void look_at_heirs(struct hfs_rest *rest)
{
    char why[5 * HFS_TEXT];
    const char *agent = hfs_check_find_uncounted(rest->cluster->check);

    if (agent == NULL)
        return;
    (void)snprintf(why, sizeof why,
                   "I11 %.40s was started again by leave, and nobody counts it", agent);
    complain(rest, "uncounted", EXCUSE_NONE, 0, why);
}

/* One that stands still for good while another one lives is left over, too. */
static void look_at_ghosts(struct hfs_rest *rest)
{
    for (unsigned i = 0; i < rest->cluster->cfg.hosts; i++) {
        const struct hfs_host *host = &rest->cluster->hosts[i];

        for (const struct hfs_agent *agent = host->agents; agent != NULL; agent = agent->next) {
            const struct hfs_agent *other = find_process(rest->cluster, agent->config);
            char what[2 * HFS_TEXT + 16], why[4 * HFS_TEXT];

            if (!agent->begun || agent->ended || other == NULL || other == agent)
                continue;
            (void)snprintf(what, sizeof what, "ghost %s %s", agent->config->name, host->name);
            (void)snprintf(why, sizeof why, "%.40s is left over on %.40s, and lives on %.40s",
                           agent->config->name, host->name, other->host->name);
            complain(rest, what, EXCUSE_NONE, 0, why);
        }
    }
}

/* Somebody that runs has not listed everything since the faults stopped. */
static bool is_deaf(const struct hfs_rest *rest)
{
    const struct hfs_cluster *cluster = rest->cluster;

    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        if (cluster->hosts[i].up && cluster->hosts[i].process.listed_at < rest->begun)
            return true;
    }
    for (unsigned i = 0; i < cluster->cfg.controllers; i++) {
        if (cluster->controllers[i].process.listed_at < rest->begun)
            return true;
    }
    return false;
}

enum hfs_rest_verdict hfs_rest_look(struct hfs_rest *rest, char *ret_why, size_t size)
{
    hf_ms now = rest->cluster->world.now;

    rest->lossy = rest->lossy && now - rest->begun < RESYNC_MS && is_deaf(rest);
    rest->any = rest->late = false;
    rest->why = ret_why;
    rest->why_size = size;
    (void)cluster_now(rest);
    look_at_keys(rest, "/holdfast/" HFS_NS "/tasks/", look_at_task);
    look_at_keys(rest, "/holdfast/" HFS_NS "/commands/", look_at_command);
    look_at_agents(rest);
    look_at_ghosts(rest);
    look_at_limits(rest);
    look_at_heirs(rest);
    if (hfs_person_count(rest->cluster) > 0)
        complain(rest, "person", EXCUSE_NONE, 0, "an errand of the person is not done");
    rest->looked_at = now;
    if (!rest->any)
        return HFS_REST_DONE;
    return rest->late ? HFS_REST_LATE : HFS_REST_WAIT;
}

struct hfs_rest *hfs_rest_new(struct hfs_cluster *cluster, bool lossy)
{
    struct hfs_rest *rest = hfs_alloc(sizeof *rest);

    rest->cluster = cluster;
    rest->begun = rest->looked_at = cluster->world.now;
    rest->lossy = lossy;
    rest->recover = hf_recover_policy_default();
    rest->restart = hf_restart_policy_default();
    rest->task = hf_task_policy_default();
    rest->home_grace = hf_placement_policy_default().home_grace;
    return rest;
}

void hfs_rest_free(struct hfs_rest *rest)
{
    free(rest->list);
    free(rest);
}
