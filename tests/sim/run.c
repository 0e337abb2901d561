#include "sim/run.h"

#include <stdio.h>
#include <string.h>

#include "schema/json.h"

enum {
    LOOK_MS = 1000,
    REST_MS = 120000,   /* after everything is quiet, everything must be done */
    PASSED_MS = 300000, /* a host that did not serve a start is passed over for so long */
    RESYNC_MS = 400000, /* an event that a watch lost is found with the next list */
    MOST_MS = 3000000,  /* and in the end whatever happens */
};

/* Drawing. */

static unsigned draw(struct hfs_random *dice, unsigned below)
{
    return (unsigned)hfs_random_below(dice, below);
}

static hf_ms draw_length(struct hfs_random *dice)
{
    static const hf_ms MOST[] = { 500, 3000, 10000, 20000, 60000 };

    return 1 + (hf_ms)hfs_random_below(dice, (uint64_t)MOST[draw(dice, 5)]);
}

static void draw_agents(struct hfs_cluster_config *cfg, struct hfs_random *dice)
{
    static const enum hfs_program_kind KINDS[] = { HFS_WORKER,     HFS_WORKER,     HFS_WORKER,
                                                   HFS_FLAKY,      HFS_IDLE,       HFS_FINISHER,
                                                   HFS_CRASH_STEP, HFS_CRASH_START };

    cfg->agent_count = 1 + draw(dice, 6);
    for (unsigned i = 0; i < cfg->agent_count; i++) {
        struct hfs_agent_config *agent = &cfg->agents[i];

        (void)snprintf(agent->name, sizeof agent->name, "a%u", i + 1);
        (void)snprintf(agent->role, sizeof agent->role, "r%u", 1 + draw(dice, 2));
        agent->home = draw(dice, cfg->hosts);
        agent->kind = KINDS[draw(dice, 8)];
        if (hfs_random_percent(dice, 15))
            agent->restart = HOLDFAST__V1__SPEC__RESTART__always;
    }
}

/* Which kinds of faults this history has: few, so that each gets its turn. */
static void draw_kinds(struct hfs_random *dice, bool restores, bool kinds[HFS_FAULT_KINDS])
{
    unsigned count = draw(dice, 8);

    memset(kinds, 0, HFS_FAULT_KINDS * sizeof kinds[0]);
    for (unsigned i = 0; i < count; i++)
        kinds[1 + draw(dice, HFS_FAULT_KINDS - 1)] = true;
    kinds[HFS_FAULT_RESTORE] = kinds[HFS_FAULT_RESTORE] && restores;
    if (kinds[HFS_FAULT_RESTORE])
        kinds[HFS_FAULT_SNAPSHOT] = true;
    if (kinds[HFS_FAULT_STOP])
        kinds[HFS_FAULT_START] = true;
}

static bool lasts(enum hfs_fault_kind kind)
{
    switch (kind) {
    case HFS_FAULT_CRASH_HOST:
    case HFS_FAULT_PAUSE_LINK:
    case HFS_FAULT_SUSPEND_HOST:
    case HFS_FAULT_PAUSE_CONTROLLER:
    case HFS_FAULT_SLOW_LOOP:
    case HFS_FAULT_CUT_HOST:
    case HFS_FAULT_CUT_CONTROLLER:
    case HFS_FAULT_CUT_MEMBER:
    case HFS_FAULT_NETWORK:
    case HFS_FAULT_MEMBER:
    case HFS_FAULT_LYING:
    case HFS_FAULT_LATE_EXPIRY:
    case HFS_FAULT_WATCHES:
    case HFS_FAULT_NO_SPACE: return true;
    default: return false;
    }
}

static void add_fault(struct hfs_run *run, struct hfs_random *dice, enum hfs_fault_kind kind)
{
    struct hfs_fault *fault;

    if (run->fault_count == HFS_FAULTS_MAX)
        return;
    fault = &run->faults[run->fault_count++];
    *fault = (struct hfs_fault){ .kind = kind,
                                 .at = (hf_ms)hfs_random_below(dice, (uint64_t)run->duration),
                                 .a = draw(dice, 10000),
                                 .b = draw(dice, 10000) };
    if (lasts(kind))
        fault->length = draw_length(dice);
}

static void sort_faults(struct hfs_run *run)
{
    for (unsigned i = 1; i < run->fault_count; i++) {
        struct hfs_fault fault = run->faults[i];
        unsigned j = i;

        for (; j > 0 && run->faults[j - 1].at > fault.at; j--)
            run->faults[j] = run->faults[j - 1];
        run->faults[j] = fault;
    }
}

void hfs_run_draw(struct hfs_run *run, uint64_t seed, bool restores)
{
    struct hfs_random dice = { .state = seed * 2 + 1 };
    struct hfs_cluster_config *cfg = &run->cluster;
    bool kinds[HFS_FAULT_KINDS];
    unsigned tasks = draw(&dice, 12), troubles = draw(&dice, 24);

    memset(run, 0, sizeof *run);
    cfg->seed = seed;
    cfg->hosts = 1 + draw(&dice, 4);
    cfg->controllers = 1 + draw(&dice, HFS_CONTROLLERS);
    draw_agents(cfg, &dice);
    if (hfs_random_percent(&dice, 30)) {
        cfg->corrupt_percent = (uint8_t)draw(&dice, 60);
        cfg->missing_percent = (uint8_t)draw(&dice, 30);
        cfg->poison_percent = (uint8_t)draw(&dice, 40);
    }
    if (hfs_random_percent(&dice, 20))
        cfg->make_fail_percent = (uint8_t)draw(&dice, 50);
    if (hfs_random_percent(&dice, 20))
        cfg->stubborn_percent = 50;
    cfg->step_max = 200 + draw(&dice, 4000);
    run->duration = 10000 + (hf_ms)draw(&dice, 120000);
    for (unsigned i = 0; i < tasks; i++) {
        add_fault(run, &dice, HFS_FAULT_SUBMIT);
        run->faults[run->fault_count - 1].a = i + 1;
    }
    draw_kinds(&dice, restores, kinds);
    for (unsigned i = 0; i < troubles; i++) {
        enum hfs_fault_kind kind = (enum hfs_fault_kind)(1 + draw(&dice, HFS_FAULT_KINDS - 1));

        for (unsigned j = 0; j < HFS_FAULT_KINDS && !kinds[kind]; j++)
            kind = (enum hfs_fault_kind)(1 + draw(&dice, HFS_FAULT_KINDS - 1));
        if (!kinds[kind])
            continue;
        add_fault(run, &dice, kind);
        if (kind == HFS_FAULT_CANCEL || kind == HFS_FAULT_RETRY)
            run->faults[run->fault_count - 1].a = 1 + draw(&dice, tasks + 1);
    }
    sort_faults(run);
}

/* Rest. */

static bool is_held(struct hfs_cluster *cluster, const char *agent)
{
    char text[HF_KEY_SIZE];
    struct hf_key key = { HF_KEY_HEALTH, .name = agent };
    int len = hf_key_format(HFS_NS, &key, text, NULL);
    const struct hfs_entry *entry;
    ProtobufCMessage *record = NULL;
    bool held;

    hfs_must(len);
    entry = hfs_store_get(hfs_etcd_get_store(cluster->etcd),
                          (struct hf_bytes){ text, (size_t)len });
    if (entry == NULL)
        return false;
    hfs_must(hf_json_decode(hf_key_get_record(HF_KEY_HEALTH), entry->value, entry->value_len,
                            NULL, &record, NULL));
    held = ((const Holdfast__V1__Health *)record)->held;
    hf_json_free(record);
    return held;
}

/* Nobody has said that it shall not run, and nothing has shown that it cannot. */
static bool may_run(struct hfs_cluster *cluster, const struct hfs_agent_config *agent)
{
    return agent->kind != HFS_CRASH_START &&
           !hfs_check_is_stopped(cluster->check, agent->name) && !is_held(cluster, agent->name);
}

static bool has_agent(const char *role, void *arg)
{
    struct hfs_cluster *cluster = arg;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *agent = &cluster->cfg.agents[i];

        if (strcmp(agent->role, role) == 0 && agent->kind != HFS_IDLE &&
            may_run(cluster, agent))
            return true;
    }
    return false;
}

static bool runs(struct hfs_cluster *cluster, const struct hfs_agent_config *config)
{
    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        for (const struct hfs_agent *agent = cluster->hosts[i].agents; agent != NULL;
             agent = agent->next) {
            if (agent->config == config && agent->begun && !agent->ended && !agent->frozen)
                return true;
        }
    }
    return false;
}

/* One that goes home after its work need not be there. */
static bool should_run(struct hfs_cluster *cluster, const struct hfs_agent_config *agent)
{
    return may_run(cluster, agent) && (agent->kind != HFS_FINISHER ||
                                       agent->restart == HOLDFAST__V1__SPEC__RESTART__always);
}

bool hfs_run_is_at_rest(struct hfs_cluster *cluster, char *ret_why, size_t size)
{
    struct hfs_check_rest rest = hfs_check_get_rest(cluster->check, has_agent, cluster);

    if (rest.tasks_open > 0) {
        (void)snprintf(ret_why, size, "I9 %zu tasks are not final: %s", rest.tasks_open,
                       rest.example);
        return false;
    }
    if (rest.commands > 0) {
        (void)snprintf(ret_why, size, "I8 a start of %s is left over", rest.example);
        return false;
    }
    for (unsigned i = 0; i < cluster->cfg.agent_count; i++) {
        const struct hfs_agent_config *agent = &cluster->cfg.agents[i];

        if (should_run(cluster, agent) && !runs(cluster, agent)) {
            (void)snprintf(ret_why, size, "%s is wanted and does not run", agent->name);
            return false;
        }
        if (runs(cluster, agent) != hfs_check_is_live(cluster->check, agent->name)) {
            (void)snprintf(ret_why, size, "%s %s", agent->name,
                           runs(cluster, agent) ? "runs and is not registered"
                                                : "is registered and does not run");
            return false;
        }
    }
    if (hfs_person_count(cluster) > 0) {
        (void)snprintf(ret_why, size, "an errand of the person is not done");
        return false;
    }
    return true;
}

/* Living. */

struct alarm {
    struct hfs_timer timer;
    struct hfs_trouble *trouble;
    const struct hfs_fault *fault;
};

static void on_alarm(struct hfs_timer *timer)
{
    struct alarm *alarm = (struct alarm *)((char *)timer - offsetof(struct alarm, timer));

    hfs_trouble_make(alarm->trouble, alarm->fault);
}

static bool live(struct hfs_cluster *cluster, const struct hfs_run *run,
                 struct hfs_trouble *trouble)
{
    struct alarm alarms[HFS_FAULTS_MAX];
    bool ok;

    for (unsigned i = 0; i < run->fault_count; i++) {
        alarms[i] = (struct alarm){ .timer = { .fn = on_alarm },
                                    .trouble = trouble,
                                    .fault = &run->faults[i] };
        if (!run->faults[i].off)
            hfs_timer_start(&cluster->world, &alarms[i].timer, run->faults[i].at);
    }
    ok = hfs_cluster_run(cluster, run->duration);
    for (unsigned i = 0; i < run->fault_count; i++)
        hfs_timer_stop(&cluster->world, &alarms[i].timer);
    return ok;
}

static bool has_kind(const struct hfs_run *run, enum hfs_fault_kind kind)
{
    for (unsigned i = 0; i < run->fault_count; i++) {
        if (run->faults[i].kind == kind && !run->faults[i].off)
            return true;
    }
    return false;
}

bool hfs_run_come_to_rest(struct hfs_cluster *cluster, hf_ms extra, char *ret_why, size_t size)
{
    hf_ms begun = cluster->world.now, quiet_since = begun;
    hf_ms most = REST_MS + PASSED_MS + extra;

    for (;;) {
        if (!hfs_cluster_run(cluster, LOOK_MS))
            return false;
        if (hfs_run_is_at_rest(cluster, ret_why, size))
            return true;
        if (hfs_check_is_waiting(cluster->check) || cluster->last_death > quiet_since)
            quiet_since = cluster->world.now;
        if (cluster->world.now - quiet_since > most || cluster->world.now - begun > MOST_MS)
            return false;
    }
}

struct hfs_verdict hfs_run(const struct hfs_run *run, hfs_note_fn note, void *arg)
{
    struct hfs_cluster *cluster = hfs_cluster_new(&run->cluster, note, arg);
    struct hfs_trouble *trouble = hfs_trouble_new(cluster);
    struct hfs_verdict verdict = { .ok = true };
    struct hfs_check_rest rest;
    const char *violation;

    verdict.ok = live(cluster, run, trouble);
    if (verdict.ok) {
        hfs_note(&cluster->world, "(the faults stop)");
        hfs_trouble_heal(trouble);
        verdict.ok =
            hfs_run_come_to_rest(cluster, has_kind(run, HFS_FAULT_WATCHES) ? RESYNC_MS : 0,
                                 verdict.why, sizeof verdict.why);
    }
    violation = hfs_check_get_violation(cluster->check);
    if (violation != NULL)
        (void)snprintf(verdict.why, sizeof verdict.why, "%s", violation);
    if (!verdict.ok)
        hfs_note(&cluster->world, "FAILED %s", verdict.why);
    verdict.time = cluster->world.now;
    verdict.steps = cluster->world.steps;
    verdict.counts = hfs_check_get_counts(cluster->check);
    rest = hfs_check_get_rest(cluster->check, has_agent, cluster);
    verdict.tasks = rest.tasks;
    verdict.final = rest.final;
    hfs_trouble_free(trouble);
    hfs_cluster_free(cluster);
    return verdict;
}
