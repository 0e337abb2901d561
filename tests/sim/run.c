#include "sim/run.h"

#include <stdio.h>
#include <string.h>

#include "sim/rest.h"

enum {
    LOOK_MS = 1000,
    VERY_LONG_MS = 600000,
    MOST_MS = 3000000, /* the end, whatever happens */
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
static void draw_kinds(struct hfs_random *dice, bool kinds[HFS_FAULT_KINDS])
{
    unsigned count = draw(dice, 8);

    memset(kinds, 0, HFS_FAULT_KINDS * sizeof kinds[0]);
    for (unsigned i = 0; i < count; i++)
        kinds[1 + draw(dice, HFS_FAULT_FIRST_LATER - 1)] = true;
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
    case HFS_FAULT_LATE:
    case HFS_FAULT_GARBAGE:
    case HFS_FAULT_LEAVE:
    case HFS_FAULT_NO_SPACE: return true;
    default: return false;
    }
}

void hfs_run_add(struct hfs_run *run, struct hfs_random *dice, enum hfs_fault_kind kind)
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

void hfs_run_sort(struct hfs_run *run)
{
    for (unsigned i = 1; i < run->fault_count; i++) {
        struct hfs_fault fault = run->faults[i];
        unsigned j = i;

        for (; j > 0 && run->faults[j - 1].at > fault.at; j--)
            run->faults[j] = run->faults[j - 1];
        run->faults[j] = fault;
    }
}

void hfs_run_draw_common(struct hfs_run *run, uint64_t seed)
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
    cfg->keep_chain = 1 + (hf_ms)(seed % 30) * 1000; /* histories that were known stay so */
    cfg->step_max = 200 + draw(&dice, 4000);
    run->duration = 10000 + (hf_ms)draw(&dice, 120000);
    for (unsigned i = 0; i < tasks; i++) {
        hfs_run_add(run, &dice, HFS_FAULT_SUBMIT);
        run->faults[run->fault_count - 1].a = i + 1;
    }
    draw_kinds(&dice, kinds);
    for (unsigned i = 0; i < troubles; i++) {
        enum hfs_fault_kind kind =
            (enum hfs_fault_kind)(1 + draw(&dice, HFS_FAULT_FIRST_LATER - 1));

        for (unsigned j = 0; j < HFS_FAULT_FIRST_LATER && !kinds[kind]; j++)
            kind = (enum hfs_fault_kind)(1 + draw(&dice, HFS_FAULT_FIRST_LATER - 1));
        if (!kinds[kind])
            continue;
        hfs_run_add(run, &dice, kind);
        if (kind == HFS_FAULT_CANCEL || kind == HFS_FAULT_RETRY)
            run->faults[run->fault_count - 1].a = 1 + draw(&dice, tasks + 1);
    }
    hfs_run_sort(run);
}

/* Agents as others may have them. */
static void draw_policies(struct hfs_cluster_config *cfg, struct hfs_random *dice)
{
    for (unsigned i = 0; i < cfg->agent_count; i++) {
        struct hfs_agent_config *agent = &cfg->agents[i];

        if (hfs_random_percent(dice, 20))
            agent->fence = HOLDFAST__V1__SPEC__FENCE__kill;
        else if (hfs_random_percent(dice, 25))
            agent->fence = HOLDFAST__V1__SPEC__FENCE__hold;
        if (hfs_random_percent(dice, 15))
            agent->restart = HOLDFAST__V1__SPEC__RESTART__never;
        if (hfs_random_percent(dice, 30))
            agent->max_tasks = 1 + (int32_t)draw(dice, HFS_TASKS_LATER + 1);
        agent->transient = hfs_random_percent(dice, 15);
    }
    cfg->priorities = hfs_random_percent(dice, 50);
}

static bool pauses(enum hfs_fault_kind kind)
{
    return kind == HFS_FAULT_PAUSE_LINK || kind == HFS_FAULT_PAUSE_CONTROLLER ||
           kind == HFS_FAULT_SUSPEND_HOST;
}

/* One of those that stand still does so for very long: others stand in for it, what stands
 * still is killed in the end, and what is counted for a while is forgotten. */
static void draw_long_pause(struct hfs_run *run, struct hfs_random *dice)
{
    static const enum hfs_fault_kind KINDS[] = { HFS_FAULT_PAUSE_LINK, HFS_FAULT_SUSPEND_HOST,
                                                 HFS_FAULT_CUT_HOST,
                                                 HFS_FAULT_PAUSE_CONTROLLER };
    static const hf_ms LENGTHS[] = { 600000, 600000, 3700000 };

    hfs_run_add(run, dice, KINDS[draw(dice, 4)]);
    run->faults[run->fault_count - 1].length = LENGTHS[draw(dice, 3)];
}

/* Hosts that come and go, and what a person says about them. */
static void draw_changes(struct hfs_run *run, struct hfs_random *dice)
{
    for (unsigned i = 1 + draw(dice, 3); i > 0 && run->fault_count + 2 < HFS_FAULTS_MAX; i--) {
        enum hfs_fault_kind kind = (enum hfs_fault_kind)(
            HFS_FAULT_FIRST_LATER + draw(dice, HFS_FAULT_KINDS - HFS_FAULT_FIRST_LATER));
        struct hfs_fault *fault = &run->faults[run->fault_count];

        hfs_run_add(run, dice, kind);
        if (kind != HFS_FAULT_LOSE_HOST && kind != HFS_FAULT_REMOVE_HOST)
            continue;
        /* Nobody says so of one that is here. */
        hfs_run_add(run, dice, HFS_FAULT_CRASH_HOST);
        fault[1].at = fault->at > 20000 ? fault->at - 20000 : 0;
        fault[1].a = fault->a;
        fault[1].length = 20000 + fault[1].length;
    }
}

void hfs_run_draw(struct hfs_run *run, uint64_t seed)
{
    struct hfs_random dice = { .state = seed ^ UINT64_C(0x9fb21c651e98df25) };

    hfs_run_draw_common(run, seed);
    if (hfs_random_percent(&dice, 30))
        draw_policies(&run->cluster, &dice);
    if (hfs_random_percent(&dice, 30))
        draw_changes(run, &dice);
    if (hfs_random_percent(&dice, 3) && run->fault_count < HFS_FAULTS_MAX)
        draw_long_pause(run, &dice);
    if (hfs_random_percent(&dice, 25))
        run->cluster.running_max = 1 + draw(&dice, 3);
    hfs_run_sort(run);
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

/* A watch that silently leaves out an event is found by nobody before everything is listed
 * again; nor is another past, where the last thing that was known comes at the same revision.
 */
static bool is_lossy(const struct hfs_run *run)
{
    if (run->cluster.aim.relapses)
        return true;
    for (unsigned i = 0; i < run->fault_count; i++) {
        if (hfs_fault_loses_events(&run->faults[i]) && !run->faults[i].off)
            return true;
    }
    return false;
}

/* Until the last of these is over. */
static bool wait_for(struct hfs_cluster *cluster, const struct hfs_run *run,
                     bool (*is_meant)(const struct hfs_fault *fault))
{
    hf_ms last = cluster->world.now;

    for (unsigned i = 0; i < run->fault_count; i++) {
        const struct hfs_fault *fault = &run->faults[i];

        if (is_meant(fault) && !fault->off && fault->at + fault->length > last)
            last = fault->at + fault->length;
    }
    return hfs_cluster_run(cluster, last - cluster->world.now);
}

/* Who stands still goes on at its own time. */
static bool is_pause(const struct hfs_fault *fault)
{
    return pauses(fault->kind);
}

/* What takes very long goes on while the other faults are over. */
static bool is_very_long(const struct hfs_fault *fault)
{
    return fault->length >= VERY_LONG_MS && !is_pause(fault);
}

bool hfs_run_come_to_rest(struct hfs_cluster *cluster, bool lossy, char *ret_why, size_t size)
{
    struct hfs_rest *rest = hfs_rest_new(cluster, lossy);
    enum hfs_rest_verdict found = HFS_REST_WAIT;
    hf_ms end = cluster->world.now + MOST_MS;
    bool ok = true;

    while (ok && found == HFS_REST_WAIT && cluster->world.now < end) {
        ok = hfs_cluster_run(cluster, LOOK_MS);
        found = hfs_rest_look(rest, ret_why, size);
    }
    hfs_rest_free(rest);
    return ok && found == HFS_REST_DONE;
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
        verdict.ok = wait_for(cluster, run, is_very_long);
        hfs_trouble_heal(trouble);
        verdict.ok =
            verdict.ok && wait_for(cluster, run, is_pause) &&
            hfs_run_come_to_rest(cluster, is_lossy(run), verdict.why, sizeof verdict.why);
    }
    violation = hfs_check_get_violation(cluster->check);
    if (violation != NULL)
        (void)snprintf(verdict.why, sizeof verdict.why, "%s", violation);
    if (!verdict.ok)
        hfs_note(&cluster->world, "FAILED %s", verdict.why);
    verdict.time = cluster->world.now;
    verdict.steps = cluster->world.steps;
    verdict.counts = hfs_check_get_counts(cluster->check);
    rest = hfs_check_get_rest(cluster->check, hfs_rest_has_agent, cluster);
    verdict.tasks = rest.tasks;
    verdict.final = rest.final;
    hfs_trouble_free(trouble);
    hfs_cluster_free(cluster);
    return verdict;
}
