/* controller.c - a controller: the real engine and runner. */
#include <stdio.h>
#include <stdlib.h>

#include "io/decider_engine.h"
#include "sim/cluster.h"
#include "sim/witness.h"

enum { AGAIN_MS = 1000 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct hfs_brain {
    struct hfs_controller *controller;
    struct hfs_brain *next; /* of those that are dead */
    struct hfs_client client;
    struct hf_engine *engine;
    struct hfs_witness witness; /* of what the engine wants */
    struct hf_runner *runner;
    bool closed;
};

static void on_intent(const struct hf_intent *intent, void *arg)
{
    struct hfs_brain *brain = arg;
    struct hfs_cluster *cluster = brain->controller->cluster;

    if (intent->kind != HF_INTENT_ALERT)
        return;
    hfs_note(&cluster->world, "%s alerts of %s: %s; next: %s", brain->controller->name,
             hfs_alert_subject(&intent->alert), intent->alert.why, intent->alert.next);
    if (intent->alert.kind == HOLDFAST__V1__EVENT__KIND__stalled &&
        (cluster->cfg.standstill_percent > 0 || cluster->cfg.minded))
        hfs_person_restart(cluster, intent->alert.agent);
}

/* Life. */

static void on_closed(void *arg)
{
    struct hfs_brain *brain = arg;

    brain->runner = NULL;
    brain->closed = true;
}

static void sweep(struct hfs_cluster *cluster)
{
    struct hfs_brain **at = &cluster->dead_brains;

    while (*at != NULL) {
        struct hfs_brain *brain = *at;

        if (!brain->closed) {
            at = &brain->next;
            continue;
        }
        *at = brain->next;
        hf_engine_free(brain->engine);
        hfs_client_done(&brain->client);
        free(brain);
    }
}

/* One that ends as it should says so first. */
static void bury(struct hfs_brain *brain, bool orderly)
{
    struct hfs_cluster *cluster = brain->controller->cluster;

    if (!orderly)
        hfs_client_die(&brain->client);
    brain->next = cluster->dead_brains;
    cluster->dead_brains = brain;
    if (brain->runner != NULL)
        hf_runner_close(brain->runner, false, on_closed, brain);
    else
        brain->closed = true;
}

static void on_restart(struct hfs_timer *timer)
{
    hfs_controller_start(OWNER(timer, struct hfs_controller, restart));
}

static void end(struct hfs_controller *controller, bool orderly)
{
    struct hfs_world *world = &controller->cluster->world;
    struct hfs_brain *brain = controller->brain;

    if (brain == NULL)
        return;
    hfs_note(world, "%s %s", controller->name, orderly ? "ends" : "dies");
    controller->brain = NULL;
    hfs_check_forgot(controller->cluster->check);
    bury(brain, orderly);
    controller->restart = (struct hfs_timer){ .fn = on_restart };
    hfs_timer_start(world, &controller->restart,
                    world->now + 1 +
                        (hf_ms)hfs_random_below(&controller->cluster->dice, AGAIN_MS));
}

void hfs_controller_crash(struct hfs_controller *controller)
{
    end(controller, false);
}

void hfs_controller_resign(struct hfs_controller *controller)
{
    end(controller, true);
}

void hfs_controller_forget(struct hfs_controller *controller)
{
    if (controller->brain != NULL)
        controller->brain->witness.lacks_memory = true;
}

void hfs_controllers_done(struct hfs_cluster *cluster)
{
    for (unsigned i = 0; i < cluster->cfg.controllers; i++) {
        struct hfs_controller *controller = &cluster->controllers[i];
        struct hfs_brain *brain = controller->brain;

        controller->brain = NULL;
        hfs_timer_stop(&cluster->world, &controller->restart);
        if (brain != NULL)
            bury(brain, false);
    }
    for (int i = 0; i < 1000000 && cluster->dead_brains != NULL; i++) {
        sweep(cluster);
        (void)hfs_world_step(&cluster->world, cluster->world.now + 10);
    }
}

static struct hf_engine_policy policy_of(const struct hfs_cluster *cluster)
{
    struct hf_engine_policy policy = hf_engine_policy_default();
    uint64_t mutants = cluster->cfg.mutants;

    if (cluster->cfg.keep_chain != 0)
        policy.task.keep_chain = cluster->cfg.keep_chain;
    policy.task.running_max = cluster->cfg.running_max;
    if (cluster->cfg.progress_max != 0)
        policy.stall.progress_max = cluster->cfg.progress_max;
    if (cluster->cfg.inquiry_answer != 0)
        policy.stall.inquiry_answer = cluster->cfg.inquiry_answer;
    if (cluster->cfg.sweep_after != 0)
        policy.sweep_after = cluster->cfg.sweep_after;
    if (cluster->cfg.report_rate != 0)
        policy.report_rate = cluster->cfg.report_rate;
    if (mutants == 0)
        return policy;
    if ((mutants & hf_mutant_bit(HF_MUTANT_ONE_GRACE)) != 0)
        policy.storm.grace_factor = 1;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_RATE)) != 0)
        policy.storm.partial = policy.storm.normal;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_FULL)) != 0)
        policy.storm.hold_max = 1;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_AGENT_LIMIT)) != 0)
        policy.recover.agent_limit = HF_BACKOFF_KEPT;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_TASK_BACKOFF)) != 0)
        policy.recover.backoff.list[0] = policy.recover.backoff.list[1] =
            policy.recover.backoff.list[2] = 1;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_PROBATION)) != 0)
        policy.recover.probation = 1;
    if ((mutants & hf_mutant_bit(HF_MUTANT_NO_PASS_OVER)) != 0)
        policy.avoid_host = 0;
    return policy;
}

void hfs_controller_start(struct hfs_controller *controller)
{
    struct hfs_cluster *cluster = controller->cluster;
    struct hfs_brain *brain = hfs_alloc(sizeof *brain);
    struct hf_lease_policy lease = hf_lease_policy_default();
    struct hf_backend backend;
    bool was;
    char leader[128];
    int len = snprintf(leader, sizeof leader, "{\"id\":\"%s\"}", controller->name);
    struct hf_runner_config cfg = { .ns = HFS_NS,
                                    .leader = { leader, (size_t)len },
                                    .election = hf_election_policy_default(),
                                    .on_intent = on_intent,
                                    .arg = brain };

    sweep(cluster);
    hfs_note(&cluster->world, "%s begins", controller->name);
    brain->controller = controller;
    hfs_client_init(&brain->client, &cluster->net, &controller->process,
                    hfs_random_next(&cluster->dice));
    was = hfs_memory_set(true);
    brain->engine =
        hf_engine_new(&(struct hf_engine_config){ .ns = HFS_NS,
                                                  .id = controller->name,
                                                  .policy = policy_of(cluster),
                                                  .mutants = cluster->cfg.mutants,
                                                  .seed = hfs_random_next(&cluster->dice) });
    controller->brain = brain;
    lease.ttl = 10000;
    lease.mutants = cfg.election.mutants = cluster->cfg.mutants;
    cfg.lease = lease;
    brain->witness.decider = hf_decider_engine(brain->engine);
    cfg.decider = hfs_witness_decider(&brain->witness);
    backend = hfs_client_backend(&brain->client);
    /* A program that cannot begin ends, and is started again. */
    if (brain->engine == NULL || hf_runner_new(&backend, &cfg, &brain->runner, NULL) != HF_OK)
        hfs_controller_crash(controller);
    (void)hfs_memory_set(was);
}
