#include "sim/profile_private.h"

#include <stdio.h>
#include <string.h>

static void at_least(unsigned *number, unsigned least)
{
    if (*number < least)
        *number = least;
}

static void draw_cast(struct hfs_run *run, struct hfs_random *dice,
                      const struct hfs_profile *profile)
{
    struct hfs_cluster_config *cfg = &run->cluster;
    unsigned drawn = cfg->agent_count;

    at_least(&cfg->hosts, profile->hosts);
    at_least(&cfg->controllers, profile->controllers);
    at_least(&cfg->agent_count, profile->agents);
    if (profile->few_hosts)
        cfg->hosts = profile->hosts;
    if (profile->few_controllers)
        cfg->controllers = profile->controllers;
    /* Who holds stays at home here: an agentd that boots starts what is at home with it, also
     * while that holds on another host. */
    cfg->make_fail_percent = profile->make_fails ? 25
                             : profile->holds    ? 0
                                                 : cfg->make_fail_percent;
    for (unsigned i = 0; i < cfg->agent_count; i++) {
        struct hfs_agent_config *agent = &cfg->agents[i];

        if (i >= drawn)
            *agent = (struct hfs_agent_config){ .home = (unsigned)hfs_random_below(
                                                    dice, cfg->hosts) };
        agent->home %= cfg->hosts;
        (void)snprintf(agent->name, sizeof agent->name, "a%u", i + 1);
        if (i >= drawn || profile->one_role)
            (void)snprintf(agent->role, sizeof agent->role, "r1");
        if (profile->relapses) {
            agent->kind = HFS_WORKER;
            agent->home = i % cfg->hosts;
        }
        if (profile->kills && hfs_random_percent(dice, 60))
            agent->fence = HOLDFAST__V1__SPEC__FENCE__kill;
        if (profile->storms)
            agent->home = i % cfg->hosts;
        agent->transient = agent->transient || profile->sweeps;
        if (profile->crashes)
            agent->kind = i % 2 == 0 ? HFS_CRASH_STEP : HFS_WORKER;
        if (profile->holds && hfs_random_percent(dice, 60))
            agent->fence = HOLDFAST__V1__SPEC__FENCE__hold;
    }
    if (profile->lazy) {
        cfg->agents[0].kind = HFS_LAZY;
        cfg->agents[1].kind = cfg->agents[2].kind = HFS_WORKER;
    }
    cfg->calm = profile->calm;
    cfg->reloads = profile->reloads;
    cfg->sweep_after = profile->sweeps ? SWEEP_MS : 0;
    cfg->page_ms = profile->paged ? PAGE_MS : profile->page_ms;
    cfg->report_percent = 10;
    cfg->release_percent = profile->releases ? 25 : 0;
    cfg->running_max = profile->running_max;
    cfg->priorities = profile->priorities;
    if (profile->step_max > 0)
        cfg->step_max = profile->step_max;
    if (profile->standstills) {
        cfg->standstill_percent = 20;
        cfg->keeps_all = true;
        cfg->expected = 1;
        cfg->heartbeat = BEAT_MS;
        cfg->progress_max = QUIET_MS;
        cfg->inquiry_answer = ANSWER_MS;
    }
}

/* Only the submissions stay of what was drawn. */
static void drop_faults(struct hfs_run *run)
{
    unsigned kept = 0;

    for (unsigned i = 0; i < run->fault_count; i++) {
        if (run->faults[i].kind == HFS_FAULT_SUBMIT)
            run->faults[kept++] = run->faults[i];
    }
    run->fault_count = kept;
}

/* The host is heard and hears nothing, until about the time at which a start that was ordered
 * there at the beginning is withdrawn. */
static void deafen(struct hfs_run *run, struct hfs_random *dice, struct hfs_fault *fault)
{
    hf_ms begin = fault->at;

    fault->b = 0;
    fault->length = DEAF_MS + (hf_ms)hfs_random_below(dice, DEAF_MS / 10);
    hfs_run_add(run, dice, HFS_FAULT_KILL_AGENT);
    run->faults[run->fault_count - 1].at =
        begin + 1 + (hf_ms)hfs_random_below(dice, DEAF_MS / 30);
}

/* The controller is away for so long that nobody leads, and agents die when it comes back:
 * their agentd is about to start them again by itself. */
static void behead(struct hfs_run *run, struct hfs_random *dice, struct hfs_fault *fault)
{
    hf_ms end;

    fault->length = LONG_MS + fault->length / 2;
    end = fault->at + fault->length;
    for (unsigned i = 0; i < DEATHS; i++) {
        hfs_run_add(run, dice, HFS_FAULT_KILL_AGENT);
        run->faults[run->fault_count - 1].at =
            end - RETURN_MS / 4 + (hf_ms)hfs_random_below(dice, RETURN_MS);
    }
}

static struct hfs_fault *add_at(struct hfs_run *run, struct hfs_random *dice,
                                enum hfs_fault_kind kind, hf_ms at, unsigned whom)
{
    struct hfs_fault *fault = &run->faults[run->fault_count];

    hfs_run_add(run, dice, kind);
    fault->at = at;
    fault->length = 0;
    fault->a = whom;
    return fault;
}

/* An agent dies while nobody leads, and what its agentd does about it by itself is kept back.
 * The controller comes back, orders the start and is gone again; the hosts do not hear of it.
 */
static void orphan(struct hfs_run *run, struct hfs_random *dice, struct hfs_fault *stop)
{
    hf_ms back, killed;

    stop->length = LONG_MS / 2 + stop->length % LONG_MS;
    back = stop->at + stop->length;
    killed = back - 1 - (hf_ms)hfs_random_below(dice, RETURN_MS);
    add_at(run, dice, HFS_FAULT_KILL_AGENT, killed, (unsigned)hfs_random_below(dice, 10000));
    for (unsigned i = 0; i < run->cluster.hosts; i++) {
        struct hfs_fault *cut =
            add_at(run, dice, HFS_FAULT_CUT_HOST,
                   killed + BRIEF_MS / 10 + (hf_ms)hfs_random_below(dice, BRIEF_MS), i);

        cut->length = DEAF_MS;
        cut->b = 0;
    }
    add_at(run, dice, HFS_FAULT_CRASH_CONTROLLER,
           back + RETURN_MS + (hf_ms)hfs_random_below(dice, (uint64_t)RETURN_MS * 4), 0);
}

/* The first host comes when the backup was made, and the second when that is restored: in
 * either past their agents take the same tasks, at about the same revisions. What the
 * controller does about those that die in the first past is kept back, and arrives in the
 * second. */
static void relapse(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms boot = BOOT_MS + (hf_ms)hfs_random_below(dice, BOOT_MS / 2);
    hf_ms made = BACKUP_MS, restored = made + PAST_MS;
    struct hfs_fault *late;

    for (unsigned i = 0; i < run->fault_count; i++)
        run->faults[i].at = made - 1 - run->faults[i].at % (made / 2);
    add_at(run, dice, HFS_FAULT_CRASH_HOST, boot, 0)->length = made - boot + 1;
    add_at(run, dice, HFS_FAULT_CRASH_HOST, boot, 1)->length = restored - boot + 1;
    add_at(run, dice, HFS_FAULT_SNAPSHOT, made, 0);
    late = add_at(run, dice, HFS_FAULT_LATE, made, HFS_FAULT_LATE_CONTROLLER + 49);
    late->length = AWAY_MS;
    late->b = 20; /* 6.5 s, about the time in which the second host's agents begin */
    for (unsigned i = 0; i < run->cluster.agent_count; i++)
        add_at(run, dice, HFS_FAULT_KILL_AGENT,
               restored - 20 - (hf_ms)hfs_random_below(dice, PAST_MS * 5 / 8), i);
    add_at(run, dice, HFS_FAULT_RESTORE, restored, 0);
    add_at(run, dice, HFS_FAULT_PAUSE_CONTROLLER, restored, 0)->length = AWAY_MS;
}

/* A backup is made, at the very beginning or later, and restored; whatever happens in either
 * past happens soon. */
static void relapse_once(struct hfs_run *run, struct hfs_random *dice)
{
    bool early = hfs_random_percent(dice, 40);
    hf_ms made = early ? 5 + (hf_ms)hfs_random_below(dice, BOOT_MS)
                       : BACKUP_MS + (hf_ms)hfs_random_below(dice, LONG_MS);
    hf_ms restored =
        made + PAST_MS + (hf_ms)hfs_random_below(dice, PAST_MS * (early ? 40 : 20));
    struct hfs_fault *late;

    run->duration = restored + LONG_MS;
    for (unsigned i = 0; i < run->fault_count; i++)
        run->faults[i].at %= restored;
    late = add_at(run, dice, HFS_FAULT_LATE, 1, 49);
    late->length = run->duration;
    add_at(run, dice, HFS_FAULT_SNAPSHOT, made, 0);
    add_at(run, dice, HFS_FAULT_RESTORE, restored, 0);
    for (unsigned i = 0; i < SAID; i++) {
        static const enum hfs_fault_kind KINDS[] = { HFS_FAULT_CANCEL, HFS_FAULT_CANCEL,
                                                     HFS_FAULT_STOP, HFS_FAULT_START,
                                                     HFS_FAULT_KILL_AGENT };
        enum hfs_fault_kind kind = KINDS[hfs_random_below(dice, 5)];
        hf_ms at = i % 2 == 0 ? made + (hf_ms)hfs_random_below(dice, restored - made)
                              : restored + (hf_ms)hfs_random_below(dice, LONG_MS / 3);
        unsigned whom = (unsigned)hfs_random_below(dice, 12);

        add_at(run, dice, kind, at, kind == HFS_FAULT_CANCEL ? 1 + whom : whom);
    }
    run->cluster.aim.relapses = true;
}

static void come_early(struct hfs_run *run)
{
    for (unsigned i = 0; i < run->fault_count; i++)
        run->faults[i].at %= EARLY_MS;
}

/* Whatever has the compare that is aimed at may be kept back, at any time and for long. */
static void provoke(struct hfs_run *run, struct hfs_random *dice)
{
    struct hfs_fault *late = add_at(run, dice, HFS_FAULT_LATE, 1, 49);

    late->length = run->duration;
    late->b = 99;
    run->cluster.aim.provokes = true;
}

/* All hosts but one go at once, and are away for long. */
static void lose_most(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms at = LONG_MS / 2 + (hf_ms)hfs_random_below(dice, LONG_MS);

    for (unsigned i = 0; i + 1 < run->cluster.hosts; i++)
        add_at(run, dice, HFS_FAULT_CRASH_HOST, at + (hf_ms)hfs_random_below(dice, 100), i)
            ->length = LONG_MS * 2;
    run->duration = at + LONG_MS * 3;
}

static void cut_off(struct hfs_run *run, struct hfs_random *dice, hf_ms length)
{
    struct hfs_fault *fault = add_at(run, dice, HFS_FAULT_CUT_HOST, LONG_MS / 2, 0);

    fault->length = length;
    fault->b = 1;
    run->duration = LONG_MS + length;
}

/* While the start is on its way that follows from it, something else happens to the agent. */
static void chase(struct hfs_run *run, struct hfs_random *dice, const struct hfs_fault *killed,
                  enum hfs_fault_kind chaser)
{
    unsigned agent = killed->a;
    hf_ms at = killed->at;

    hfs_run_add(run, dice, chaser);
    run->faults[run->fault_count - 1].a =
        chaser == HFS_FAULT_CANCEL ? HFS_FAULT_OF_AGENT + agent : agent;
    if (chaser == HFS_FAULT_CANCEL && hfs_random_percent(dice, 50))
        at += DEAF_MS; /* about when a start that nobody served is withdrawn */
    run->faults[run->fault_count - 1].at = at + 5 + (hf_ms)hfs_random_below(dice, SLIP_MS);
}

void hfs_profile_draw(struct hfs_run *run, uint64_t seed, const struct hfs_profile *profile)
{
    struct hfs_random dice = { .state = seed ^ UINT64_C(0x2545f4914f6cdd1d) };
    unsigned troubles, tasks;

    hfs_run_draw_common(run, seed);
    drop_faults(run);
    if (profile->long_run)
        run->duration += LONG_RUN_MS;
    draw_cast(run, &dice, profile);
    tasks = run->fault_count;
    for (; tasks < 4; tasks++) {
        hfs_run_add(run, &dice, HFS_FAULT_SUBMIT);
        run->faults[run->fault_count - 1].a = tasks + 1;
    }
    if (profile->relapses)
        relapse(run, &dice);
    if (profile->relapsed)
        relapse_once(run, &dice);
    if (profile->early)
        come_early(run);
    if (profile->provokes)
        provoke(run, &dice);
    if (profile->storms)
        lose_most(run, &dice);
    if (profile->outage > 0)
        cut_off(run, &dice, profile->outage);
    hfs_profile_plot(run, &dice, profile->plot);
    troubles = profile->troubles + (unsigned)hfs_random_below(&dice, profile->troubles + 1);
    for (unsigned i = 0; i < troubles && run->fault_count + DEATHS < HFS_FAULTS_MAX; i++) {
        struct hfs_fault *fault = &run->faults[run->fault_count];

        hfs_run_add(run, &dice, profile->kinds[hfs_random_below(&dice, profile->kind_count)]);
        if (fault->kind == HFS_FAULT_CANCEL || fault->kind == HFS_FAULT_RETRY)
            fault->a = 1 + fault->a % tasks;
        if (fault->kind == HFS_FAULT_CANCEL && fault->b % 2 != 0)
            fault->a += HFS_FAULT_OF_AGENT;
        if (profile->short_stops && fault->kind == HFS_FAULT_PAUSE_CONTROLLER)
            fault->length = STALL_MS + fault->length % STALL_MS;
        if (profile->long_stops && (fault->kind == HFS_FAULT_PAUSE_CONTROLLER ||
                                    fault->kind == HFS_FAULT_CUT_CONTROLLER))
            behead(run, &dice, fault);
        if (profile->orphans && (fault->kind == HFS_FAULT_PAUSE_CONTROLLER ||
                                 fault->kind == HFS_FAULT_CUT_CONTROLLER))
            orphan(run, &dice, fault);
        if (profile->deaf && fault->kind == HFS_FAULT_CUT_HOST)
            deafen(run, &dice, fault);
        else if (profile->chaser != 0 && fault->kind == HFS_FAULT_KILL_AGENT)
            chase(run, &dice, fault, profile->chaser);
        if (profile->lossy && fault->kind == HFS_FAULT_WATCHES)
            fault->a -= fault->a % 6;
        if (profile->long_faults && fault->length > 0)
            fault->length = LONG_MS + fault->length / 2;
        if (fault->kind == HFS_FAULT_CRASH_CONTROLLER && profile->resigns && fault->b % 2 != 0)
            fault->a += HFS_FAULT_ORDERLY;
        if (fault->kind == HFS_FAULT_GARBAGE && profile->cordons && fault->b % 2 != 0)
            fault->a += HFS_FAULT_OF_HOST;
        if (fault->kind == HFS_FAULT_CUT_HOST && profile->comebacks) {
            fault->b = 1;
            fault->length = COMEBACK_MS + fault->length % (COMEBACK_MS / 2);
        }
        if (fault->kind == HFS_FAULT_PAUSE_LINK && profile->pauses)
            fault->length = PAUSE_MS + fault->length % (PAUSE_MS / 2);
        if (profile->very_late && fault->kind == HFS_FAULT_LATE) {
            fault->a = 49;
            fault->length += LONG_MS;
        }
    }
    hfs_run_sort(run);
}
