#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/provoke.h"

/* Machines have been up for at most a month when a history begins: what was never seen must not
 * count from the boot on, and what would only be wrong after days is. */
#define UPTIME_MS UINT64_C(2592000000)

static void on_commit(const struct hfs_process *writer, void *arg)
{
    struct hfs_cluster *cluster = arg;

    hfs_check_commit(cluster->check, writer);
    if (cluster->ear.on_commit != NULL)
        cluster->ear.on_commit(writer, cluster->ear.arg);
}

static bool on_send(struct hfs_process *from, struct hfs_letter *letter, void *arg)
{
    struct hfs_cluster *cluster = arg;
    const struct hfs_ear *ear = &cluster->ear;
    bool was = hfs_memory_set(false);
    bool lost = ear->on_send != NULL && ear->on_send(from, letter, ear->arg);

    hfs_check_sent(cluster->check, from, letter);
    (void)hfs_memory_set(was);
    return lost;
}

/* A controller follows the whole namespace; an agentd lists the starts of its host for no other
 * reason but to follow them. */
static bool is_list(const struct hfs_request *request)
{
    static const char WHOLE[] = "/holdfast/" HFS_NS "/";
    static const char STARTS[] = "/holdfast/" HFS_NS "/commands/";
    struct hf_bytes key = request->op.range.range.key;

    if (request->kind != HFS_RANGE || !request->op.range.range.prefix)
        return false;
    return key.len == sizeof WHOLE - 1 ||
           (key.len > sizeof STARTS - 1 && memcmp(key.data, STARTS, sizeof STARTS - 1) == 0);
}

static void note_list(struct hfs_cluster *cluster, const struct hfs_process *from)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        if (&cluster->hosts[i].process == from)
            cluster->hosts[i].process.listed_at = cluster->world.now;
    }
    for (unsigned i = 0; i < cluster->cfg.controllers; i++) {
        if (&cluster->controllers[i].process == from)
            cluster->controllers[i].process.listed_at = cluster->world.now;
    }
}

/* Whoever has heard of a later term knows that this is no promise. */
static bool is_outdated(const struct hfs_cluster *cluster, const struct hfs_process *from,
                        const struct hfs_answer *answer)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        const struct hfs_host *host = &cluster->hosts[i];

        if (from == &host->process && host->record.id != 0)
            return answer->header.raft_term < host->record.term;
    }
    return false;
}

/* What etcd promised, and to whom. */
static void on_served(const struct hfs_process *from, struct hfs_letter *letter,
                      const struct hfs_answer *answer, void *arg)
{
    struct hfs_cluster *cluster = arg;
    const struct hfs_request *request = letter->request;

    hfs_check_served(cluster->check, from, letter, answer);
    if (is_list(request))
        note_list(cluster, from);
    if (answer->err != HF_OK || answer->ttl_s <= 0 ||
        (request->kind != HFS_GRANT && request->kind != HFS_RENEW))
        return;
    if (is_outdated(cluster, from, answer))
        return;
    if (request->kind == HFS_GRANT)
        hfs_check_lease(cluster->check, request->lease, from);
    hfs_check_renewed(cluster->check, request->lease,
                      cluster->world.now + answer->ttl_s * 1000);
}

static void on_withheld(const struct hfs_process *from, const struct hfs_letter *letter,
                        void *arg)
{
    hfs_check_withheld(((struct hfs_cluster *)arg)->check, from, letter);
    hfs_provoke(arg, from, letter);
}

static void init_host(struct hfs_cluster *cluster, unsigned number)
{
    struct hfs_host *host = &cluster->hosts[number];

    host->cluster = cluster;
    host->number = number;
    (void)snprintf(host->name, sizeof host->name, "h%u", number + 1);
    (void)snprintf(host->process_name, sizeof host->process_name, "agentd-h%u", number + 1);
    hfs_process_init(&host->process, &cluster->world, host->process_name);
    host->process.is_real = true;
    host->process.role = HFS_AGENTD;
    hfs_process_init(&host->machine, &cluster->world, host->name);
    host->process.clock_offset = host->machine.clock_offset =
        (hf_ms)hfs_random_below(&cluster->dice, UPTIME_MS);
}

static void init_controller(struct hfs_cluster *cluster, unsigned number)
{
    struct hfs_controller *controller = &cluster->controllers[number];

    controller->cluster = cluster;
    (void)snprintf(controller->name, sizeof controller->name, "controller-%u", number + 1);
    hfs_process_init(&controller->process, &cluster->world, controller->name);
    controller->process.is_real = true;
    controller->process.role = HFS_CONTROLLER;
    controller->process.clock_offset = (hf_ms)hfs_random_below(&cluster->dice, UPTIME_MS);
}

struct hfs_cluster *hfs_cluster_new(const struct hfs_cluster_config *cfg,
                                    void (*note)(const char *line, void *arg), void *arg)
{
    struct hfs_cluster *cluster = hfs_alloc(sizeof *cluster);

    cluster->cfg = *cfg;
    hfs_world_init(&cluster->world, cfg->seed);
    cluster->world.note = note;
    cluster->world.note_arg = arg;
    cluster->world.note_values = cfg->note_values;
    cluster->dice.state = cfg->seed ^ UINT64_C(0x5851f42d4c957f2d);
    hfs_must(hfs_etcd_new(&(struct hfs_etcd_config){ .seed = cfg->seed + 1 }, &cluster->etcd));
    hfs_net_init(&cluster->net, &cluster->world, cluster->etcd);
    cluster->net.faults.delay_max = 3;
    cluster->net.aim = cfg->aim;
    cluster->net.is_blind = (cfg->mutants & hf_mutant_bit(HF_MUTANT_NO_MARK)) != 0;
    cluster->net.skips = (cfg->mutants & hf_mutant_bit(HF_MUTANT_SKIP_EVENT)) != 0;
    cluster->net.page_ms = cfg->page_ms;
    cluster->net.census = cfg->census;
    cluster->check = hfs_check_new(&cluster->world, cluster->etcd, HFS_NS);
    hfs_check_set_calm(cluster->check, cfg->calm);
    hfs_check_set_running_max(cluster->check, cfg->running_max);
    hfs_check_set_sweep_after(cluster->check, cfg->sweep_after != 0
                                                  ? cfg->sweep_after
                                                  : hf_engine_policy_default().sweep_after);
    cluster->net.on_commit = on_commit;
    cluster->net.on_send = on_send;
    cluster->net.on_served = on_served;
    cluster->net.on_withheld = on_withheld;
    cluster->net.arg = cluster;
    hfs_process_init(&cluster->person, &cluster->world, "person");
    cluster->person.role = HFS_PERSON;
    hfs_client_init(&cluster->person_client, &cluster->net, &cluster->person, cfg->seed + 2);
    for (unsigned i = 0; i < cfg->hosts; i++)
        init_host(cluster, i);
    for (unsigned i = 0; i < cfg->controllers; i++) {
        init_controller(cluster, i);
        hfs_controller_start(&cluster->controllers[i]);
    }
    for (unsigned i = 0; i < cfg->hosts; i++)
        hfs_keeper_start(&cluster->hosts[i]);
    return cluster;
}

void hfs_cluster_free(struct hfs_cluster *cluster)
{
    if (cluster == NULL)
        return;
    cluster->world.note = NULL;
    hfs_provoke_no_more(cluster);
    hfs_person_done(cluster);
    for (unsigned i = 0; i < cluster->cfg.hosts; i++)
        hfs_keeper_crash(&cluster->hosts[i]);
    hfs_controllers_done(cluster);
    hfs_links_done(cluster);
    hfs_client_done(&cluster->person_client);
    hfs_net_done(&cluster->net);
    hfs_check_free(cluster->check);
    hfs_etcd_free(cluster->etcd);
    hfs_world_done(&cluster->world);
    free(cluster->bodies);
    free(cluster);
}

const char *hfs_alert_subject(const struct hf_intent_alert *alert)
{
    if (alert->task != NULL && alert->task[0] != '\0')
        return alert->task;
    if (alert->agent != NULL && alert->agent[0] != '\0')
        return alert->agent;
    return alert->host != NULL && alert->host[0] != '\0' ? alert->host : "the fleet";
}

bool hfs_cluster_run(struct hfs_cluster *cluster, hf_ms length)
{
    hf_ms until = cluster->world.now + length;

    while (hfs_world_step(&cluster->world, until)) {
        if (hfs_check_get_violation(cluster->check) != NULL)
            return false;
    }
    return hfs_check_get_violation(cluster->check) == NULL;
}
