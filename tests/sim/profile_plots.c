/* profile_plots.c - histories in which several faults come one after the other, each at the
 * moment at which only one rule stands between it and harm. */
#include "sim/profile_private.h"

enum { SECOND = 1000, TTL_MS = 15000, TURNS = 3, MANY = 12, LATEST = 49, LATE_B = 99 };

static hf_ms draw(struct hfs_random *dice, hf_ms below)
{
    return (hf_ms)hfs_random_below(dice, (uint64_t)below);
}

/* One more fault, at that moment. */
static struct hfs_fault *add(struct hfs_run *run, struct hfs_random *dice,
                             enum hfs_fault_kind kind, hf_ms at, unsigned whom)
{
    struct hfs_fault *fault = &run->faults[run->fault_count];

    if (run->fault_count == HFS_FAULTS_MAX)
        hfs_die("a plot with too many faults", HF_ELIMIT);
    hfs_run_add(run, dice, kind);
    fault->at = at;
    fault->length = 0;
    fault->a = whom;
    return fault;
}

static struct hfs_fault *add_for(struct hfs_run *run, struct hfs_random *dice,
                                 enum hfs_fault_kind kind, hf_ms at, hf_ms length,
                                 unsigned whom)
{
    struct hfs_fault *fault = add(run, dice, kind, at, whom);

    fault->length = length;
    return fault;
}

static void cut_host(struct hfs_run *run, struct hfs_random *dice, hf_ms at, hf_ms length,
                     unsigned host)
{
    add_for(run, dice, HFS_FAULT_CUT_HOST, at, length, host)->b = 1;
}

/* All that is given out comes before that. */
static void submit_before(struct hfs_run *run, hf_ms end)
{
    for (unsigned i = 0; i < run->fault_count; i++)
        run->faults[i].at = 1 + run->faults[i].at % end;
}

static void submit_more(struct hfs_run *run, struct hfs_random *dice, hf_ms at, hf_ms within)
{
    enum { FIRST = 50, COUNT = 8 };

    for (unsigned i = 0; i < COUNT; i++)
        add(run, dice, HFS_FAULT_SUBMIT, at + draw(dice, within), FIRST + i);
}

/* Tasks are long, and whoever has one asks nobody while it works: it does not notice by itself
 * that it is not registered any more. */
static void work_alone(struct hfs_run *run)
{
    run->cluster.steps_max = 40;
    run->cluster.keeps_none = true;
    run->cluster.report_percent = 0;
}

/* Hosts are cut off for about as long as their leases last. The renewal that comes just after
 * one has ended is answered as if it had not, and no watch that was opened since tells of it.
 */
static void plot_ghosts(struct hfs_run *run, struct hfs_random *dice)
{
    enum { GHOSTS = 1, PERIOD = 40 * SECOND };
    hf_ms at = 5 * SECOND;

    run->duration = at + TURNS * PERIOD;
    add_for(run, dice, HFS_FAULT_LYING, 1, run->duration, GHOSTS);
    add_for(run, dice, HFS_FAULT_WATCHES, at, run->duration, HFS_FAULT_MUTE + 1);
    for (unsigned i = 0; i < TURNS; i++)
        cut_host(run, dice, at + i * PERIOD + draw(dice, PERIOD / 2),
                 TTL_MS - 4 * SECOND + draw(dice, 5 * SECOND), i);
}

/* The disk of whoever leads hangs, and it goes on renewing leases that end elsewhere. */
static void plot_liars(struct hfs_run *run, struct hfs_random *dice)
{
    enum { LIES_ALONE = 6 };
    hf_ms at = 10 * SECOND + draw(dice, 20 * SECOND);
    hf_ms length = 40 * SECOND + draw(dice, 30 * SECOND);

    run->duration = at + length + 10 * SECOND;
    submit_more(run, dice, at, 5 * SECOND);
    add_for(run, dice, HFS_FAULT_LYING, 1, run->duration, LIES_ALONE);
    add_for(run, dice, HFS_FAULT_WATCHES, at, length, HFS_FAULT_MUTE + 1);
    add_for(run, dice, HFS_FAULT_MEMBER, at, length, HFS_FAULT_STALLS);
}

/* Answers take their time. A link stands still while one comes, and is cut off when it goes on:
 * that answer is the last, and old. */
static void plot_receipts(struct hfs_run *run, struct hfs_random *dice)
{
    enum { PERIOD = 45 * SECOND };
    hf_ms begin = 5 * SECOND;

    run->duration = begin + TURNS * PERIOD;
    work_alone(run);
    add_for(run, dice, HFS_FAULT_NETWORK, 1, run->duration,
            HFS_FAULT_ANSWERS + (unsigned)hfs_random_below(dice, HFS_FAULT_ANSWERS));
    for (unsigned i = 0; i < TURNS; i++) {
        hf_ms at = begin + i * PERIOD + draw(dice, 10 * SECOND);
        hf_ms length = 4 * SECOND + draw(dice, 3 * SECOND);

        for (unsigned host = 0; host < run->cluster.hosts; host++) {
            add_for(run, dice, HFS_FAULT_PAUSE_LINK, at, length, host)->b = HFS_FAULT_READS;
            cut_host(run, dice, at + length - 1, 20 * SECOND, host);
        }
        submit_more(run, dice, at - 5 * SECOND, 5 * SECOND);
    }
}

/* Whoever leads lacks memory for the news that an agent is dead, and reads everything anew, bit
 * by bit: of the dead it hears before it hears what they were working on. */
static void plot_forgetful(struct hfs_run *run, struct hfs_random *dice)
{
    enum { ROUNDS = 8, PERIOD = 15 * SECOND };

    run->duration = 10 * SECOND + ROUNDS * PERIOD;
    work_alone(run);
    for (unsigned i = 0; i < run->cluster.agent_count; i++)
        run->cluster.agents[i].kind = HFS_WORKER;
    for (unsigned i = 0; i < ROUNDS; i++) {
        hf_ms at = 10 * SECOND + i * PERIOD + draw(dice, 5 * SECOND);

        add(run, dice, HFS_FAULT_CRASH_CONTROLLER, at, 0)->b = HFS_FAULT_FORGETS;
        add(run, dice, HFS_FAULT_KILL_AGENT, at + 1 + draw(dice, SECOND),
            i % run->cluster.agent_count);
    }
}

/* Leaders come and go, and some have just begun: what these read on the cluster clock is later
 * than what others do. Meanwhile agents die that have died too often. */
static void plot_clocks(struct hfs_run *run, struct hfs_random *dice)
{
    static const hf_ms DEATHS_AT[] = { 1000, 3000, 7000, 21500, 28000 };
    static const hf_ms ENDS_AT[] = { 22000, 26500, 30000, 32000 };
    enum { ROUNDS = 4, PERIOD = 45 * SECOND };

    run->duration = 3 * SECOND + ROUNDS * PERIOD;
    for (unsigned i = 0; i < run->cluster.agent_count; i++)
        run->cluster.agents[i].kind = HFS_WORKER;
    for (unsigned i = 0; i < ROUNDS; i++) {
        hf_ms at = 3 * SECOND + i * PERIOD;

        add_for(run, dice, HFS_FAULT_LATE, at + 25 * SECOND, 15 * SECOND, LATEST)->b = LATE_B;
        for (unsigned j = 0; j < sizeof ENDS_AT / sizeof ENDS_AT[0]; j++)
            add(run, dice, HFS_FAULT_CRASH_CONTROLLER, at + ENDS_AT[j] + draw(dice, SECOND),
                HFS_FAULT_ORDERLY + (unsigned)hfs_random_below(dice, 3));
        for (unsigned j = 0; j < 2 * sizeof DEATHS_AT / sizeof DEATHS_AT[0]; j++)
            add(run, dice, HFS_FAULT_KILL_AGENT, at + DEATHS_AT[j / 2] + draw(dice, SECOND / 2),
                2 * i + j % 2);
    }
}

/* From here on: a backup is made and restored, and what is kept back comes after that. */
static void relapse(struct hfs_run *run, struct hfs_random *dice, hf_ms made, hf_ms restored)
{
    run->duration = restored + 40 * SECOND;
    add_for(run, dice, HFS_FAULT_LATE, 1, run->duration, LATEST)->b = LATE_B;
    add(run, dice, HFS_FAULT_SNAPSHOT, made, 0);
    add(run, dice, HFS_FAULT_RESTORE, restored, 0);
    run->cluster.aim.relapses = true;
}

/* The backup is made while nobody leads and work waits for those who went home. So they are
 * called in either past, as soon as somebody leads. */
static void plot_calls(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms at = 15 * SECOND, back = at + 26 * SECOND;

    for (unsigned i = 0; i < run->cluster.agent_count; i++)
        run->cluster.agents[i].kind = HFS_FINISHER;
    submit_before(run, 8 * SECOND);
    add_for(run, dice, HFS_FAULT_CUT_CONTROLLER, at, back - at, 0);
    submit_more(run, dice, at + 13 * SECOND, 8 * SECOND);
    relapse(run, dice, back - draw(dice, 3 * SECOND),
            back + 3 * SECOND + draw(dice, 6 * SECOND));
}

/* Everybody dies shortly before the backup is made, and gives back what it then goes on with.
 */
static void plot_returns(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms made = 25 * SECOND, restored = made + 58 * SECOND + draw(dice, 20 * SECOND);

    submit_before(run, made - 8 * SECOND);
    for (unsigned i = 0; i < run->cluster.agent_count; i++) {
        run->cluster.agents[i].kind = HFS_WORKER;
        add(run, dice, HFS_FAULT_KILL_AGENT, made - 1 - draw(dice, 7 * SECOND), i);
    }
    submit_more(run, dice, SECOND, 15 * SECOND);
    relapse(run, dice, made, restored);
}

/* Agents that always die are held, and a person releases them. */
static void plot_releases(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms restored = 320 * SECOND + draw(dice, 40 * SECOND);

    for (unsigned i = 0; i < 2; i++)
        run->cluster.agents[i].kind = HFS_CRASH_START;
    for (unsigned i = 0; i < MANY; i++)
        add(run, dice, HFS_FAULT_START, restored - 1 - draw(dice, 50 * SECOND),
            HFS_FAULT_RELEASE + i % 2);
    relapse(run, dice, restored - 60 * SECOND - draw(dice, 60 * SECOND), restored);
}

/* How often agents report follows the size of the fleet, which changes; it is looked at once a
 * minute. */
static void plot_rates(struct hfs_run *run, struct hfs_random *dice)
{
    enum { MINUTE = 60 * SECOND };
    hf_ms restored = 3 * MINUTE + 4 * SECOND + draw(dice, 6 * SECOND);

    run->cluster.report_rate = 1;
    for (unsigned i = 0; i < run->cluster.agent_count / 2; i++) {
        add(run, dice, HFS_FAULT_STOP, 2 * MINUTE + draw(dice, SECOND), i);
        add(run, dice, HFS_FAULT_REMOVE, 2 * MINUTE + 30 * SECOND, i);
    }
    relapse(run, dice, MINUTE + 10 * SECOND + draw(dice, 45 * SECOND), restored);
    run->cluster.aim.way = 2 * MINUTE;
}

/* A host comes back and is lost after the backup was made; it comes back to what is restored.
 */
static void plot_losses(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms made = 3 * SECOND + draw(dice, 2 * SECOND), lost = made + 3 * SECOND;
    hf_ms said = lost + TTL_MS + SECOND, restored = said + 4 * SECOND;

    for (unsigned host = 0; host < 2; host++) {
        hf_ms back = restored + draw(dice, 3 * SECOND);

        add_for(run, dice, HFS_FAULT_CRASH_HOST, made + 100 + draw(dice, SECOND),
                200 + draw(dice, SECOND), host);
        add_for(run, dice, HFS_FAULT_CRASH_HOST, lost, back - lost, host);
        add(run, dice, HFS_FAULT_LOSE_HOST, said + draw(dice, SECOND), host);
        add(run, dice, HFS_FAULT_LOSE_HOST, said + draw(dice, 3 * SECOND), host);
    }
    relapse(run, dice, made, restored);
}

/* A host is lost, and its agents are started on others. Then all leases end, and what registers
 * the agents again is kept back. They die, and when nobody waits for that any more the links
 * do, too: those who come after them have never heard of the guests. */
static void plot_guests(struct hfs_run *run, struct hfs_random *dice)
{
    enum { WAIT_MS = 5 * SECOND, LATER_B = 35 }; /* for an outcome; up to 11 s */
    hf_ms lost = 3 * SECOND + draw(dice, 2 * SECOND), said = lost + TTL_MS + SECOND;
    hf_ms at = said + 20 * SECOND;

    run->duration = at + 25 * SECOND;
    add_for(run, dice, HFS_FAULT_CRASH_HOST, lost, run->duration - lost, 0);
    for (unsigned i = 0; i < TURNS; i++)
        add(run, dice, HFS_FAULT_LOSE_HOST, said + i * SECOND, 0);
    add_for(run, dice, HFS_FAULT_LATE, at - 1, WAIT_MS, LATEST)->b = LATER_B;
    add(run, dice, HFS_FAULT_REVOKE, at, 1);
    for (unsigned i = 0; i < run->cluster.agent_count; i++)
        add(run, dice, HFS_FAULT_KILL_AGENT, at + 200 + draw(dice, WAIT_MS - SECOND), i);
    for (unsigned host = 1; host < run->cluster.hosts; host++)
        add(run, dice, HFS_FAULT_CRASH_LINK, at + WAIT_MS + 500 + draw(dice, SECOND), host);
}

/* Everybody works, has leave, and is killed; what follows by leave is kept back. Then nobody
 * leads for so long that agentd starts them by itself; or no host is to start anything when who
 * leads has waited long enough. */
static void plot_heirs(struct hfs_run *run, struct hfs_random *dice)
{
    hf_ms at = 12 * SECOND;
    bool headless = hfs_random_percent(dice, 50);

    run->duration = at + 60 * SECOND;
    work_alone(run);
    submit_before(run, 4 * SECOND);
    submit_more(run, dice, SECOND, 3 * SECOND);
    add_for(run, dice, HFS_FAULT_LATE, 1, run->duration, LATEST)->b = LATE_B;
    for (unsigned i = 0; headless && i < run->cluster.controllers; i++)
        add_for(run, dice, HFS_FAULT_CUT_CONTROLLER, at, 50 * SECOND, i);
    for (unsigned i = 0; i < run->cluster.agent_count; i++) {
        run->cluster.agents[i].kind = HFS_WORKER;
        add(run, dice, HFS_FAULT_KILL_AGENT, at + (headless ? draw(dice, 5 * SECOND) : 1), i);
    }
    for (unsigned i = 0; !headless && i < run->cluster.hosts; i++)
        add_for(run, dice, HFS_FAULT_GARBAGE, at + 100 + draw(dice, SECOND / 2), 20 * SECOND,
                HFS_FAULT_OF_HOST + i);
}

void hfs_profile_plot(struct hfs_run *run, struct hfs_random *dice, enum hfs_plot plot)
{
    switch (plot) {
    case HFS_PLOT_NONE: break;
    case HFS_PLOT_GHOSTS: plot_ghosts(run, dice); break;
    case HFS_PLOT_LIARS: plot_liars(run, dice); break;
    case HFS_PLOT_RECEIPTS: plot_receipts(run, dice); break;
    case HFS_PLOT_FORGETFUL: plot_forgetful(run, dice); break;
    case HFS_PLOT_CLOCKS: plot_clocks(run, dice); break;
    case HFS_PLOT_CALLS: plot_calls(run, dice); break;
    case HFS_PLOT_RETURNS: plot_returns(run, dice); break;
    case HFS_PLOT_RELEASES: plot_releases(run, dice); break;
    case HFS_PLOT_RATES: plot_rates(run, dice); break;
    case HFS_PLOT_HEIRS: plot_heirs(run, dice); break;
    case HFS_PLOT_LOSSES: plot_losses(run, dice); break;
    case HFS_PLOT_GUESTS: plot_guests(run, dice); break;
    }
}
