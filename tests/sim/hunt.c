#include "sim/hunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/mutants.h"
#include "sim/profile.h"

enum { WHY = 200, INVARIANTS = 13 };

/* What became of one mutant, or of the histories of one profile without any. */
struct result {
    bool done, failed;
    uint64_t histories;  /* that were lived through */
    uint64_t seed;       /* of the last one, */
    const char *profile; /* and its kind; NULL: drawn at large */
    char why[WHY];
};

static size_t count_profiles(void)
{
    size_t count = 0;

    while (hfs_profile_name(count) != NULL)
        count++;
    return count;
}

static bool live_once(uint64_t seed, const char *profile, const struct hfs_mutant *mutant,
                      struct result *result)
{
    struct hfs_run *run = hfs_alloc(sizeof *run);
    struct hfs_verdict verdict;

    if (profile != NULL)
        hfs_profile_draw(run, seed, hfs_profile_find(profile));
    else
        hfs_run_draw(run, seed);
    if (mutant != NULL) {
        run->cluster.mutants = mutant->rules;
        run->cluster.dropped = mutant->dropped.writer != HFS_NOBODY ? &mutant->dropped : NULL;
    }
    verdict = hfs_run(run, NULL, NULL);
    result->histories++;
    result->seed = seed;
    result->profile = profile;
    result->failed = !verdict.ok;
    if (!verdict.ok)
        (void)snprintf(result->why, sizeof result->why, "%.*s", WHY - 1, verdict.why);
    free(run);
    return verdict.ok;
}

/* Its own kind of history first, then at large. */
static void hunt_one(const struct hfs_hunt *hunt, const struct hfs_mutant *mutant,
                     struct result *result)
{
    uint64_t own = mutant->profile != NULL ? hunt->seeds / 2 : 0;

    for (uint64_t i = 0; i < hunt->seeds; i++) {
        if (!live_once(hunt->from + i, i < own ? mutant->profile : NULL, mutant, result))
            break;
    }
    result->done = true;
}

static void live_without(const struct hfs_hunt *hunt, const char *profile,
                         struct result *result)
{
    for (uint64_t i = 0; i < hunt->seeds / 2; i++) {
        if (!live_once(hunt->from + i, profile, NULL, result))
            break;
    }
    result->done = true;
}

static bool is_asked_for(const struct hfs_hunt *hunt, const struct hfs_mutant *mutant)
{
    return hunt->only == NULL || strcmp(hunt->only, mutant->name) == 0;
}

/* Every `jobs`-th of the list: first the profiles with nothing missing, then the mutants. */
static void work(const struct hfs_hunt *hunt, unsigned job, struct result *results)
{
    size_t profiles = count_profiles(), count;
    const struct hfs_mutant *mutants = hfs_mutants_get(&count);

    for (size_t i = job; i < profiles + count; i += hunt->jobs) {
        if (i < profiles && hunt->only == NULL)
            live_without(hunt, hfs_profile_name(i), &results[i]);
        else if (i >= profiles && is_asked_for(hunt, &mutants[i - profiles]))
            hunt_one(hunt, &mutants[i - profiles], &results[i]);
    }
}

static bool work_together(const struct hfs_hunt *hunt, struct result *results)
{
    bool ok = true;

    for (unsigned job = 0; job < hunt->jobs; job++) {
        pid_t pid = fork();

        if (pid < 0)
            return false;
        if (pid == 0) {
            work(hunt, job, results);
            _exit(EXIT_SUCCESS);
        }
    }
    for (unsigned job = 0; job < hunt->jobs; job++) {
        int status = 0;

        ok = wait(&status) >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && ok;
    }
    return ok;
}

/* Telling. */

static const char *text_of(const struct hfs_mutant *mutant)
{
    for (enum hf_mutant rule = 0; rule < HF_MUTANTS; rule++) {
        if (mutant->rules == hf_mutant_bit(rule))
            return hf_mutant_text(rule);
    }
    return mutant->text;
}

static void tell_death(const struct hfs_mutant *mutant, const struct result *result)
{
    (void)printf("%-18s dies in history %llu (%s %llu): %s\n", mutant->name,
                 (unsigned long long)result->histories,
                 result->profile != NULL ? result->profile : "seed",
                 (unsigned long long)result->seed, result->why);
}

/* True: it is as it should be. */
static bool tell(const struct hfs_mutant *mutant, const struct result *result)
{
    bool ok = result->done && result->failed == (mutant->equivalent == NULL);

    if (!result->done)
        (void)printf("%-18s was not lived through\n", mutant->name);
    else if (result->failed && mutant->equivalent == NULL)
        tell_death(mutant, result);
    else if (result->failed) {
        tell_death(mutant, result);
        (void)printf("%-18s ... though it is said to harm nothing: %s\n", "",
                     mutant->equivalent);
    } else if (mutant->equivalent != NULL)
        (void)printf("%-18s harms nothing in %llu histories: %s\n", mutant->name,
                     (unsigned long long)result->histories, mutant->equivalent);
    else
        (void)printf("%-18s SURVIVES %llu histories: %s\n", mutant->name,
                     (unsigned long long)result->histories, text_of(mutant));
    return ok;
}

/* "I7" begins the sentence of a violation. */
static bool is_by(const struct result *result, unsigned invariant)
{
    char *end = NULL;

    return result->done && result->failed && result->why[0] == 'I' &&
           strtoul(result->why + 1, &end, 10) == invariant && *end == ' ';
}

static void tell_invariants(const struct hfs_mutant *mutants, size_t count,
                            const struct result *results)
{
    for (unsigned invariant = 1; invariant < INVARIANTS; invariant++) {
        bool any = false;

        (void)printf("I%-3u", invariant);
        for (size_t i = 0; i < count; i++) {
            if (!is_by(&results[i], invariant))
                continue;
            (void)printf(" %s", mutants[i].name);
            any = true;
        }
        (void)printf("%s\n", any ? "" : " kills none of these");
    }
}

bool hfs_hunt(const struct hfs_hunt *hunt)
{
    size_t profiles = count_profiles(), count, wrong = 0, dead = 0;
    const struct hfs_mutant *mutants = hfs_mutants_get(&count);
    size_t size = (profiles + count) * sizeof(struct result);
    struct result *results =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bool ok;

    if (results == MAP_FAILED)
        return false;
    ok = work_together(hunt, results);
    for (size_t i = 0; i < profiles && hunt->only == NULL; i++) {
        const char *name = hfs_profile_name(i);

        if (results[i].failed)
            (void)printf("%s %llu fails with nothing missing: %s\n", name,
                         (unsigned long long)results[i].seed, results[i].why);
        ok = ok && results[i].done && !results[i].failed;
    }
    for (size_t i = 0; i < count; i++) {
        if (!is_asked_for(hunt, &mutants[i]))
            continue;
        wrong += !tell(&mutants[i], &results[profiles + i]);
        dead += results[profiles + i].failed && mutants[i].equivalent == NULL;
    }
    if (hunt->only == NULL)
        tell_invariants(mutants, count, results + profiles);
    (void)printf("%zu mutants: %zu die, %zu are not as they should be\n", count, dead, wrong);
    (void)munmap(results, size);
    return ok && wrong == 0;
}
