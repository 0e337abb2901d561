#include "sim/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/moments.h"
#include "schema/json.h"

/* What everything has to be at rest after, beside its own backoff. A task that its owner does
 * not begin with is taken back after just that time, which is no excuse: whoever would begin
 * with it is offered it again on its next call, long before. */
enum { REST_MS = 120000 };

/* Something that is not as it should be. */
struct grievance {
    char what[2 * HFS_TEXT];
    uint64_t mark; /* of what it looks like; another one, and it has moved */
    hf_ms since;
    uint64_t look; /* in which it was last seen */
};

struct hfs_rest {
    struct hfs_cluster *cluster;
    hf_ms allowed;
    uint64_t looks;
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

/* Nobody has said that it shall not run, and nothing has shown that it cannot. */
static bool may_run(struct hfs_cluster *cluster, const struct hfs_agent_config *agent)
{
    return agent->kind != HFS_CRASH_START &&
           !hfs_check_is_stopped(cluster->check, agent->name) && !is_held(cluster, agent->name);
}

static bool works(const struct hfs_agent_config *agent, const char *role)
{
    return strcmp(agent->role, role) == 0 && agent->kind != HFS_IDLE;
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
    *g = (struct grievance){ .since = rest->cluster->world.now };
    (void)snprintf(g->what, sizeof g->what, "%s", what);
    return g;
}

/* It is not as it should be; `excused` says that it need not be yet. The first one that is late
 * is told, or else the last. */
static void complain(struct hfs_rest *rest, const char *what, uint64_t mark, bool excused,
                     const char *why)
{
    struct grievance *g = find_grievance(rest, what);
    hf_ms now = rest->cluster->world.now;

    if (excused || g->look + 1 != rest->looks || g->mark != mark)
        g->since = now;
    g->mark = mark;
    g->look = rest->looks;
    rest->any = true;
    if (!rest->late)
        (void)snprintf(rest->why, rest->why_size, "%s", why);
    rest->late = rest->late || now - g->since > rest->allowed;
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
    char what[HFS_TEXT + 16], why[3 * HFS_TEXT];

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *config = &cluster->cfg.agents[i];
        bool runs = find_process(cluster, config) != NULL;
        bool live = hfs_check_is_live(cluster->check, config->name);

        (void)snprintf(what, sizeof what, "agent %s", config->name);
        if (!runs && should_run(cluster, config)) {
            (void)snprintf(why, sizeof why, "%s is wanted and does not run", config->name);
            complain(rest, what, live, has_backoff(rest, config->name), why);
        } else if (runs != live) {
            (void)snprintf(why, sizeof why, "%s %s", config->name,
                           runs ? "runs and is not registered"
                                : "is registered and does not run");
            complain(rest, what, live, false, why);
        }
    }
}

/* Tasks. */

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
        if (process != NULL && process->task[0] == '\0')
            return false;
        waits = waits || process != NULL || has_backoff(rest, config->name);
    }
    return waits;
}

/* How far its owner has come with it. */
static unsigned steps_done(const struct hfs_cluster *cluster, const char *task)
{
    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent *process = find_process(cluster, &cluster->cfg.agents[i]);

        if (process != NULL && strcmp(process->task, task) == 0)
            return process->step;
    }
    return 0;
}

static bool is_task_excused(struct hfs_rest *rest, const Holdfast__V1__Task *task)
{
    Holdfast__V1__Recovery *recovery;
    bool waits;

    if (task->state == HOLDFAST__V1__TASK__STATE__pending)
        return waits_for_agent(rest, task->role);
    if (task->state != HOLDFAST__V1__TASK__STATE__queued)
        return false;
    recovery = (Holdfast__V1__Recovery *)read_record(
        rest->cluster, (struct hf_key){ HF_KEY_RECOVERY, .name = task->id });
    waits = recovery != NULL && hf_moment_read(recovery->next_at) > cluster_now(rest);
    hf_json_free((ProtobufCMessage *)recovery);
    return waits;
}

static void look_at_task(struct hfs_rest *rest, const struct hfs_entry *entry)
{
    ProtobufCMessage *record = NULL;
    const Holdfast__V1__Task *task;
    char what[HFS_TEXT + 16], why[5 * HFS_TEXT];

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
        hfs_rest_has_agent(task->role, rest->cluster) &&
        !hfs_check_is_forgotten(rest->cluster->check, task->id))
        complain(rest, what,
                 (uint64_t)entry->mod_rev * 64 + steps_done(rest->cluster, task->id),
                 is_task_excused(rest, task), why);
    hf_json_free(record);
}

static void look_at_command(struct hfs_rest *rest, const struct hfs_entry *entry)
{
    const char *name = entry->key->bytes + sizeof "/holdfast/" HFS_NS "/commands/" - 1;
    int len = (int)(entry->key->bytes + entry->key->len - name);
    char what[2 * HFS_TEXT], why[3 * HFS_TEXT];

    (void)snprintf(what, sizeof what, "start %.*s", len, name);
    (void)snprintf(why, sizeof why, "I8 a start is left over: %.*s", len, name);
    complain(rest, what, (uint64_t)entry->mod_rev, false, why);
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
            complain(rest, what, 0, false, why);
        }
    }
}

enum hfs_rest_verdict hfs_rest_look(struct hfs_rest *rest, char *ret_why, size_t size)
{
    rest->looks++;
    rest->any = rest->late = false;
    rest->why = ret_why;
    rest->why_size = size;
    (void)cluster_now(rest);
    look_at_keys(rest, "/holdfast/" HFS_NS "/tasks/", look_at_task);
    look_at_keys(rest, "/holdfast/" HFS_NS "/commands/", look_at_command);
    look_at_agents(rest);
    look_at_ghosts(rest);
    if (hfs_person_count(rest->cluster) > 0)
        complain(rest, "person", 0, false, "an errand of the person is not done");
    if (!rest->any)
        return HFS_REST_DONE;
    return rest->late ? HFS_REST_LATE : HFS_REST_WAIT;
}

struct hfs_rest *hfs_rest_new(struct hfs_cluster *cluster, hf_ms extra)
{
    struct hfs_rest *rest = hfs_alloc(sizeof *rest);

    rest->cluster = cluster;
    rest->allowed = REST_MS + extra;
    return rest;
}

void hfs_rest_free(struct hfs_rest *rest)
{
    free(rest->list);
    free(rest);
}
