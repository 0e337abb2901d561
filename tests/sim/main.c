/* main.c - holdfast-sim: lives through many seeds, and tells the story of the first that fails.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/hunt.h"
#include "sim/mutants.h"
#include "sim/profile.h"
#include "sim/replay.h"
#include "sim/scenario.h"
#include "sim/speed.h"

enum { LAST_LINES = 80, LINE_SIZE = 1000, MUTANT_SEEDS = 4000 };

struct options {
    uint64_t from, seeds;
    unsigned jobs;
    bool trace, values, shrink, speed, mutants, control;
    bool survey; /* goes on after a failure, and tells of each in one line */
    const char *scenario, *scenarios; /* a file, a folder of them */
    bool update;
    const char *mutant;  /* NULL: nothing is missing */
    const char *profile; /* NULL: drawn at large */
};

/* The last moments. */
struct ring {
    char lines[LAST_LINES][LINE_SIZE];
    size_t count;
};

static void keep_line(const char *line, void *arg)
{
    struct ring *ring = arg;

    (void)snprintf(ring->lines[ring->count++ % LAST_LINES], LINE_SIZE, "%s", line);
}

static void print_line(const char *line, void *arg)
{
    (void)arg;
    (void)puts(line);
}

static void print_ring(const struct ring *ring)
{
    size_t first = ring->count > LAST_LINES ? ring->count - LAST_LINES : 0;

    for (size_t i = first; i < ring->count; i++)
        (void)printf("    %s\n", ring->lines[i % LAST_LINES]);
}

static const char *const PROGRAMS[] = { "worker",     "idle",     "flaky", "crash_start",
                                        "crash_step", "finisher", "lazy" };

static void print_cast(const struct hfs_run *run)
{
    (void)printf("    %u hosts, %u controllers\n", run->cluster.hosts,
                 run->cluster.controllers);
    for (unsigned i = 0; i < run->cluster.agent_count; i++) {
        const struct hfs_agent_config *agent = &run->cluster.agents[i];

        (void)printf("    %s: %s of %s, at home on h%u\n", agent->name, PROGRAMS[agent->kind],
                     agent->role, agent->home + 1);
    }
}

static void tell_story(const struct hfs_run *run)
{
    struct ring *ring = hfs_alloc(sizeof *ring);

    struct hfs_verdict verdict = hfs_run(run, keep_line, ring);

    print_cast(run);
    print_ring(ring);
    (void)printf("    %s\n", verdict.why);
    free(ring);
}

/* Leaves out one thing after the other, as long as it still fails in the same way. */

static bool still_fails(const struct hfs_run *run, const char *why)
{
    struct hfs_verdict verdict = hfs_run(run, NULL, NULL);

    return !verdict.ok && hfs_replay_is_same(verdict.why, why);
}

static void shrink_faults(struct hfs_run *run, const char *why)
{
    for (unsigned i = 0; i < run->fault_count; i++) {
        if (run->faults[i].off)
            continue;
        run->faults[i].off = true;
        if (!still_fails(run, why))
            run->faults[i].off = false;
    }
}

static void shrink_cast(struct hfs_run *run, const char *why)
{
    struct hfs_run smaller;

    for (smaller = *run; smaller.cluster.controllers > 1;) {
        smaller.cluster.controllers--;
        if (!still_fails(&smaller, why))
            break;
        *run = smaller;
    }
    for (smaller = *run; smaller.cluster.agent_count > 1;) {
        smaller.cluster.agent_count--;
        if (!still_fails(&smaller, why))
            break;
        *run = smaller;
    }
    smaller = *run;
    smaller.cluster.corrupt_percent = smaller.cluster.missing_percent = 0;
    smaller.cluster.poison_percent = smaller.cluster.make_fail_percent = 0;
    smaller.cluster.stubborn_percent = 0;
    if (still_fails(&smaller, why))
        *run = smaller;
}

static void shrink(struct hfs_run *run, const char *why)
{
    shrink_faults(run, why);
    shrink_cast(run, why);
    shrink_faults(run, why);
}

/* Seeds. */

static void print_replay(const struct options *options, uint64_t seed)
{
    struct hfs_replay replay = { .seed = seed,
                                 .profile = options->profile,
                                 .mutant = options->mutant,
                                 .control = options->control };
    char text[256];

    hfs_replay_format(&replay, text, sizeof text);
    (void)printf("replay: %s\n", text);
    (void)fflush(stdout);
}

static bool run_seed(const struct options *options, uint64_t seed, hf_ms *ret_time)
{
    struct hfs_run *run = hfs_alloc(sizeof *run);
    struct hfs_verdict verdict;

    if (options->profile != NULL)
        hfs_profile_draw(run, seed, hfs_profile_find(options->profile));
    else
        hfs_run_draw(run, seed);
    run->cluster.note_values = options->values;
    if (options->mutant != NULL)
        hfs_mutant_apply(hfs_mutants_find(options->mutant), options->control, run);
    verdict = hfs_run(run, options->trace ? print_line : NULL, NULL);
    *ret_time += verdict.time;
    if (options->trace)
        (void)printf("%zu tasks, %zu final; %llu revisions, %llu starts, %llu resets, %llu "
                     "completed\n",
                     verdict.tasks, verdict.final, (unsigned long long)verdict.counts.revisions,
                     (unsigned long long)verdict.counts.starts,
                     (unsigned long long)verdict.counts.resets,
                     (unsigned long long)verdict.counts.completed);
    if (!verdict.ok) {
        (void)printf("seed %llu: %s\n", (unsigned long long)seed, verdict.why);
        if (options->shrink)
            shrink(run, verdict.why);
        if (!options->trace && !options->survey)
            tell_story(run);
        print_replay(options, seed);
    }
    free(run);
    return verdict.ok;
}

/* Every `jobs`-th seed, until one fails. */
static int work(const struct options *options, unsigned job)
{
    hf_ms time = 0;
    uint64_t done = 0, failed = 0;

    for (uint64_t i = job; i < options->seeds; i += options->jobs, done++) {
        failed += !run_seed(options, options->from + i, &time);
        if (failed > 0 && !options->survey)
            return EXIT_FAILURE;
    }
    (void)printf("%llu seeds, %lld virtual seconds\n", (unsigned long long)done,
                 (long long)(time / 1000));
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int work_together(const struct options *options)
{
    int failed = 0;

    for (unsigned job = 0; job < options->jobs; job++) {
        pid_t pid = fork();

        if (pid < 0)
            return EXIT_FAILURE;
        if (pid == 0) {
            int status = work(options, job);

            (void)fflush(stdout);
            _exit(status);
        }
    }
    for (unsigned job = 0; job < options->jobs; job++) {
        int status = 0;

        if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            failed++;
    }
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int hunt_mutants(const struct options *options)
{
    struct hfs_hunt hunt = { .from = options->from,
                             .seeds = options->seeds,
                             .jobs = options->jobs,
                             .only = options->mutant };

    return hfs_hunt(&hunt) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int measure_speed(void)
{
    struct hfs_speed speed = hfs_speed_measure();
    bool met = speed.factor >= HFS_SPEED_TARGET;

    (void)printf("%d agents, %lld virtual seconds in %.3f s: %.0f times real time (target %d): "
                 "%s\n",
                 HFS_SPEED_AGENTS, (long long)(speed.time / 1000), speed.took, speed.factor,
                 HFS_SPEED_TARGET,
                 !speed.ok ? speed.why
                 : met     ? "met"
                           : "missed");
    return speed.ok && met ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int play_scenarios(const struct options *options)
{
    bool ok;

    if (options->scenarios != NULL)
        ok = hfs_scenario_folder(options->scenarios,
                                 options->update ? HFS_SCENARIO_UPDATE : HFS_SCENARIO_COMPARE);
    else
        ok = hfs_scenario_file(options->scenario,
                               options->update ? HFS_SCENARIO_UPDATE : HFS_SCENARIO_PRINT);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: holdfast-sim [--seeds N] [--from S] [--jobs J] [--trace] [--values]\n"
                  "                    [--shrink] [--survey] [--profile NAME]\n"
                  "                    [--mutant NAME [--control]]\n"
                  "       holdfast-sim --mutants [--mutant NAME*] [--seeds N] [--from S]\n"
                  "                    [--jobs J]\n"
                  "       holdfast-sim --speed\n"
                  "       holdfast-sim --scenario FILE [--update]\n"
                  "       holdfast-sim --scenarios FOLDER [--update]\n");
    return 2;
}

static bool parse_number(const char *text, uint64_t *ret)
{
    char *end = NULL;

    *ret = strtoull(text, &end, 10);
    return end != text && *end == '\0';
}

int main(int argc, char **argv)
{
    static const struct option LONG[] = {
        { "seeds", required_argument, NULL, 'n' },
        { "from", required_argument, NULL, 'f' },
        { "jobs", required_argument, NULL, 'j' },
        { "trace", no_argument, NULL, 't' },
        { "shrink", no_argument, NULL, 's' },
        { "survey", no_argument, NULL, 'y' },
        { "speed", no_argument, NULL, 'S' },
        { "scenario", required_argument, NULL, 'c' },
        { "scenarios", required_argument, NULL, 'C' },
        { "update", no_argument, NULL, 'u' },
        { "values", no_argument, NULL, 'v' },
        { "mutant", required_argument, NULL, 'm' },
        { "mutants", no_argument, NULL, 'M' },
        { "control", no_argument, NULL, 'k' },
        { "profile", required_argument, NULL, 'p' },
        { NULL, 0, NULL, 0 },
    };
    struct options options = { .from = 1, .jobs = 1 };
    uint64_t jobs = 1;
    bool ok = true;
    int c;

    while ((c = getopt_long(argc, argv, "", LONG, NULL)) != -1) {
        switch (c) {
        case 'n': ok = ok && parse_number(optarg, &options.seeds); break;
        case 'f': ok = ok && parse_number(optarg, &options.from); break;
        case 'j': ok = ok && parse_number(optarg, &jobs) && jobs >= 1 && jobs <= 64; break;
        case 't': options.trace = true; break;
        case 's': options.shrink = true; break;
        case 'y': options.survey = true; break;
        case 'S': options.speed = true; break;
        case 'c': options.scenario = optarg; break;
        case 'C': options.scenarios = optarg; break;
        case 'u': options.update = true; break;
        case 'm': options.mutant = optarg; break;
        case 'p': ok = hfs_profile_find(options.profile = optarg) != NULL && ok; break;
        case 'k': options.control = true; break;
        case 'M': options.mutants = true; break;
        case 'v': options.values = true; break;
        default: return usage();
        }
    }
    if (options.mutant != NULL && !options.mutants)
        ok = hfs_mutants_find(options.mutant) != NULL && ok;
    if (!ok)
        return usage();
    options.jobs = (unsigned)jobs;
    if (options.seeds == 0)
        options.seeds = options.mutants ? MUTANT_SEEDS : 1;
    if (options.scenario != NULL || options.scenarios != NULL)
        return play_scenarios(&options);
    if (options.speed)
        return measure_speed();
    if (optind < argc)
        return usage();
    if (options.mutants)
        return hunt_mutants(&options);
    return options.jobs > 1 ? work_together(&options) : work(&options, 0);
}
