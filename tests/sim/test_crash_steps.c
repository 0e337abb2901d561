/* test_crash_steps.c - plays every scenario again and again, and each time one process of the
 * fleet is ended at one of its steps (sim/crash.h): every controller, link, machine and agent,
 * at its 1st, 2nd, 3rd … step, before the step has reached anybody and just after it was sent.
 *
 *     test_sim_crash_steps [--jobs N] [--every STRIDE | --all] [FILE…]
 *     test_sim_crash_steps --only VICTIM NUMBER STEP lost|sent FILE
 *
 * No invariant may be broken, and everything must come to rest; the story may be another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sim/branch.h"
#include "sim/scenario.h"

/* Seconds in an optimised build; a sanitizer looks at fewer, more closely. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 997 };
#else
enum { STRIDE = 31 };
#endif

static const char *const VICTIMS[HFS_VICTIMS] = {
    [HFS_VICTIM_CONTROLLER] = "controller",
    [HFS_VICTIM_LINK] = "link",
    [HFS_VICTIM_MACHINE] = "machine",
    [HFS_VICTIM_AGENT] = "agent",
};

struct sums {
    uint64_t stride;
    size_t victims, steps, failures;
    struct hfs_branches branches;
};

/* A victim whose story is being told, or that of its end in one of the branches. */
struct story {
    struct sums *sums;
    const char *path;
    struct hfs_crash crash;
};

static void name_story(const struct story *story, char name[static HFS_BRANCH_NAME])
{
    (void)snprintf(name, HFS_BRANCH_NAME, "--only %s %u %llu %s %s", VICTIMS[story->crash.who],
                   story->crash.number, (unsigned long long)story->crash.step,
                   story->crash.is_lost ? "lost" : "sent", story->path);
}

/* One run; false: it did not end well. */
static bool play(const struct hfs_scenario *scenario, struct story *story, uint64_t *ret_steps)
{
    char *text = NULL, why[600] = "", name[HFS_BRANCH_NAME];
    bool ok = hfs_scenario_run_with(scenario, &story->crash, ret_steps, &text, why, sizeof why);

    free(text);
    name_story(story, name);
    if (!ok)
        (void)fprintf(stderr, "%s: %s\n", name, why);
    return ok;
}

/* Who begins anew may hang before its first heartbeat: then only a person ends it. */
static bool load(struct hfs_scenario *scenario, const char *path)
{
    bool ok = hfs_scenario_load(scenario, path);

    scenario->cluster.minded = true;
    return ok;
}

/* Here it ends in a branch, before the step and after it, and in the trunk it goes on. */
static bool branch_here(uint64_t step, bool *ret_is_lost, void *arg)
{
    struct story *story = arg;
    struct sums *sums = story->sums;
    char name[HFS_BRANCH_NAME];

    for (uint64_t i = 2 * (step - 1); i < 2 * step; i++) {
        /* Another place for each victim, so that a stride does not always meet the same. */
        if (i % sums->stride != sums->victims % sums->stride)
            continue;
        story->crash.step = step;
        story->crash.is_lost = *ret_is_lost = i % 2 == 0;
        name_story(story, name);
        if (hfs_branch(&sums->branches, name))
            return true;
    }
    story->crash.step = 0;
    story->crash.is_lost = false;
    return false;
}

/* One victim at each of its steps, as the story goes without its end. */
static void play_victim(struct sums *sums, const struct hfs_scenario *scenario,
                        const char *path, struct hfs_crash crash)
{
    struct story story = { .sums = sums, .path = path, .crash = crash };
    uint64_t steps = 0;
    bool ok;

    story.crash.is_here = branch_here;
    story.crash.arg = &story;
    ok = play(scenario, &story, &steps);
    if (sums->branches.is_branch)
        hfs_branch_end(ok);
    sums->failures += ok ? 0 : 1;
    sums->victims++;
    sums->steps += steps;
}

static unsigned count_of(const struct hfs_scenario *scenario, enum hfs_victim who)
{
    switch (who) {
    case HFS_VICTIM_CONTROLLER: return scenario->cluster.controllers;
    case HFS_VICTIM_LINK:
    case HFS_VICTIM_MACHINE: return scenario->cluster.hosts;
    case HFS_VICTIM_AGENT: return scenario->cluster.agent_count;
    case HFS_VICTIMS: break;
    }
    return 0;
}

static void play_all(const char *path, void *arg)
{
    struct sums *sums = arg;
    struct hfs_scenario scenario;

    if (!load(&scenario, path)) {
        sums->failures++;
        return;
    }
    /* Without its files a task waits for a person, who comes once and may come too early. */
    for (int who = 0; who < HFS_VICTIMS && !scenario.cluster.own_files; who++) {
        for (unsigned i = 0; i < count_of(&scenario, (enum hfs_victim)who); i++)
            play_victim(sums, &scenario, path,
                        (struct hfs_crash){ .who = (enum hfs_victim)who, .number = i });
    }
    hfs_scenario_done(&scenario);
}

/* VICTIM NUMBER STEP lost|sent FILE */
static int play_one(char **args)
{
    struct hfs_scenario scenario;
    struct hfs_crash crash = { .is_lost = strcmp(args[3], "lost") == 0 };
    uint64_t number;
    bool ok;

    while (crash.who < HFS_VICTIMS && strcmp(VICTIMS[crash.who], args[0]) != 0)
        crash.who++;
    if (crash.who == HFS_VICTIMS || hf_parse_u64(args[1], 0, HFS_AGENTS, &number) != HF_OK ||
        hf_parse_u64(args[2], 0, UINT32_MAX, &crash.step) != HF_OK || !load(&scenario, args[4]))
        return 2;
    crash.number = (unsigned)number;
    ok = crash.number < count_of(&scenario, crash.who) &&
         play(&scenario, &(struct story){ .path = args[4], .crash = crash }, NULL);
    hfs_scenario_done(&scenario);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct sums sums = { .stride = STRIDE, .branches.jobs = 1 };
    uint64_t jobs = 1;
    int i = 1;

    if (argc == 7 && strcmp(argv[1], "--only") == 0)
        return play_one(argv + 2);
    for (; i < argc && argv[i][0] == '-'; i++) {
        bool is_jobs = strcmp(argv[i], "--jobs") == 0;

        if (strcmp(argv[i], "--all") == 0)
            sums.stride = 1;
        else if ((!is_jobs && strcmp(argv[i], "--every") != 0) || ++i == argc ||
                 hf_parse_u64(argv[i], 1, is_jobs ? HFS_BRANCH_JOBS : UINT32_MAX,
                              is_jobs ? &jobs : &sums.stride) != HF_OK)
            return 2;
    }
    sums.branches.jobs = (unsigned)jobs;
    if (i == argc)
        (void)hfs_scenario_each(HOLDFAST_SCENARIOS, play_all, &sums);
    for (; i < argc; i++)
        play_all(argv[i], &sums);
    hfs_branches_join(&sums.branches);
    sums.failures += sums.branches.failures;
    (void)printf("%zu victims with %zu steps, ended at %zu of them: %zu ended badly\n",
                 sums.victims, sums.steps, sums.branches.count, sums.failures);
    return sums.failures == 0 && sums.branches.count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
