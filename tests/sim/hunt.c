#include "sim/hunt.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/mutants.h"
#include "sim/profile.h"
#include "sim/replay.h"

enum { WHY = 200, INVARIANTS = 15, NAME = 24, JOBS = 64, FEW = 8 };

/* A history that failed. */
struct failure {
    bool any;
    uint64_t seed;
    char profile[NAME]; /* empty: drawn at large */
    char why[WHY];
};

/* What became of one mutant, or of the histories of one profile without any. */
struct result {
    bool done;
    uint64_t histories; /* that were lived through */
    uint64_t missed;    /* compares that were left out in them */
    struct failure failure;
    struct failure control; /* one that fails with nothing missing, too */
};

/* What the jobs share. */
struct shared {
    atomic_size_t next; /* nobody works on it yet */
    struct hfs_census censuses[JOBS];
    struct result results[];
};

static size_t count_profiles(void)
{
    size_t count = 0;

    while (hfs_profile_name(count) != NULL)
        count++;
    return count;
}

/* The i-th of the words, beginning anew after the last. */
static void pick_word(const char *words, uint64_t i, char ret_word[NAME])
{
    const char *at = words;
    size_t len;

    for (;; i--) {
        len = strcspn(at, " ");
        if (i == 0)
            break;
        at = at[len] == '\0' ? words : at + len + 1;
    }
    (void)snprintf(ret_word, NAME, "%.*s", (int)len, at);
}

static bool live_once(uint64_t seed, const char *profile, const struct hfs_mutant *mutant,
                      bool control, struct hfs_census *census, struct failure *ret_failure)
{
    struct hfs_run *run = hfs_alloc(sizeof *run);
    struct hfs_verdict verdict;

    if (profile[0] != '\0')
        hfs_profile_draw(run, seed, hfs_profile_find(profile));
    else
        hfs_run_draw(run, seed);
    if (mutant != NULL)
        hfs_mutant_apply(mutant, control, run);
    run->cluster.census = census;
    verdict = hfs_run(run, NULL, NULL);
    free(run);
    if (verdict.ok)
        return true;
    *ret_failure = (struct failure){ .any = true, .seed = seed };
    (void)snprintf(ret_failure->profile, NAME, "%s", profile);
    (void)snprintf(ret_failure->why, WHY, "%.*s", WHY - 1, verdict.why);
    return false;
}

/* It dies of what is missing when the same history is fine without that. */
static void hunt_one(const struct hfs_hunt *hunt, const struct hfs_mutant *mutant,
                     struct hfs_census *census, struct result *result)
{
    uint64_t seeds = mutant->equivalent == NULL ? hunt->seeds : hunt->seeds / FEW;
    uint64_t before = census->dropped;
    char profile[NAME] = "";

    for (uint64_t i = 0; i < seeds && !result->failure.any; i++) {
        struct failure failure;

        if (mutant->profile != NULL)
            pick_word(mutant->profile, i, profile);
        result->histories++;
        if (live_once(hunt->from + i, profile, mutant, false, census, &failure))
            continue;
        if (live_once(hunt->from + i, profile, mutant, true, NULL, &result->control))
            result->failure = failure;
    }
    result->missed = census->dropped - before;
    result->done = true;
}

static void live_without(const struct hfs_hunt *hunt, const char *profile,
                         struct hfs_census *census, struct result *result)
{
    for (uint64_t i = 0; i < hunt->seeds / FEW; i++) {
        result->histories++;
        if (!live_once(hunt->from + i, profile, NULL, false, census, &result->control))
            break;
    }
    result->done = true;
}

static bool is_asked_for(const struct hfs_hunt *hunt, const struct hfs_mutant *mutant)
{
    size_t len = hunt->only != NULL ? strlen(hunt->only) : 0;

    return len == 0 ||
           (hunt->only[len - 1] == '*' ? strncmp(hunt->only, mutant->name, len - 1) == 0
                                       : strcmp(hunt->only, mutant->name) == 0);
}

/* First the profiles with nothing missing, then the mutants, each by whoever is free. */
static void work(const struct hfs_hunt *hunt, unsigned job, struct shared *shared)
{
    size_t profiles = count_profiles(), count, i;
    const struct hfs_mutant *mutants = hfs_mutants_get(&count);
    struct hfs_census *census = &shared->censuses[job];

    while ((i = atomic_fetch_add(&shared->next, 1)) < profiles + count) {
        if (i < profiles && hunt->only == NULL)
            live_without(hunt, hfs_profile_name(i), census, &shared->results[i]);
        else if (i >= profiles && is_asked_for(hunt, &mutants[i - profiles]))
            hunt_one(hunt, &mutants[i - profiles], census, &shared->results[i]);
    }
}

static bool work_together(const struct hfs_hunt *hunt, struct shared *shared)
{
    bool ok = true;

    for (unsigned job = 0; job < hunt->jobs; job++) {
        pid_t pid = fork();

        if (pid < 0)
            return false;
        if (pid == 0) {
            work(hunt, job, shared);
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

static const char *text_of(const struct hfs_mutant *mutant, char *scratch, size_t size)
{
    for (enum hf_mutant rule = 0; rule < HF_MUTANTS; rule++) {
        if (mutant->rules == hf_mutant_bit(rule))
            return hf_mutant_text(rule);
    }
    (void)snprintf(scratch, size, "%s lacks a compare", hf_row_name(mutant->dropped.row));
    return scratch;
}

static void tell_replay(const struct failure *failure, const char *mutant, bool control)
{
    struct hfs_replay replay = { .seed = failure->seed,
                                 .profile =
                                     failure->profile[0] != '\0' ? failure->profile : NULL,
                                 .mutant = mutant,
                                 .control = control };
    char text[256];

    hfs_replay_format(&replay, text, sizeof text);
    (void)printf("    replay: %s\n", text);
}

static void tell_death(const struct hfs_mutant *mutant, const struct result *result)
{
    const struct failure *failure = &result->failure;

    (void)printf("%-32s dies in history %llu (%s %llu): %s\n", mutant->name,
                 (unsigned long long)result->histories,
                 failure->profile[0] != '\0' ? failure->profile : "seed",
                 (unsigned long long)failure->seed, failure->why);
}

/* A history that fails though nothing is missing is worth more than any mutant. */
static bool tell_control(const char *name, const char *mutant, const struct failure *control)
{
    if (!control->any)
        return true;
    (void)printf("%s %llu fails with nothing missing: %s\n", name,
                 (unsigned long long)control->seed, control->why);
    tell_replay(control, mutant, mutant != NULL);
    return false;
}

/* True: it is as it should be. */
static bool tell(const struct hfs_mutant *mutant, const struct result *result)
{
    bool died = result->failure.any, equivalent = mutant->equivalent != NULL;
    bool idle = mutant->dropped.row != HF_ROW_NONE && result->missed == 0 && !equivalent;
    unsigned long long histories = (unsigned long long)result->histories;
    bool ok = tell_control(mutant->name, mutant->name, &result->control);
    char text[100];

    if (!result->done)
        (void)printf("%-32s was not lived through\n", mutant->name);
    else if (died && !equivalent)
        tell_death(mutant, result);
    else if (died) {
        tell_death(mutant, result);
        (void)printf("%-32s ... though it is said to harm nothing: %s\n", "",
                     mutant->equivalent);
        tell_replay(&result->failure, mutant->name, false);
    } else if (idle)
        (void)printf("%-32s IS NEVER SENT in %llu histories\n", mutant->name, histories);
    else if (equivalent)
        (void)printf("%-32s harms nothing in %llu histories: %s\n", mutant->name, histories,
                     mutant->equivalent);
    else
        (void)printf("%-32s SURVIVES %llu histories: %s\n", mutant->name, histories,
                     text_of(mutant, text, sizeof text));
    return ok && result->done && died != equivalent && !idle;
}

/* "I7" begins the sentence of a violation. */
static bool is_by(const struct result *result, unsigned invariant)
{
    char *end = NULL;

    return result->done && result->failure.any && result->failure.why[0] == 'I' &&
           strtoul(result->failure.why + 1, &end, 10) == invariant && *end == ' ';
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

/* Every compare that was ever sent must have a mutant. */
static bool tell_census(const struct hfs_hunt *hunt, const struct shared *shared)
{
    char text[100];
    bool ok = true;

    for (unsigned job = 0; job < hunt->jobs; job++) {
        if (!hfs_mutants_find_missing(&shared->censuses[job], text, sizeof text))
            continue;
        (void)printf("nothing shows that this is needed: %s\n", text);
        ok = false;
    }
    return ok;
}

static bool tell_all(const struct hfs_hunt *hunt, const struct shared *shared)
{
    size_t profiles = count_profiles(), count, wrong = 0, dead = 0;
    const struct hfs_mutant *mutants = hfs_mutants_get(&count);
    const struct result *results = shared->results + profiles;
    bool ok = true;

    for (size_t i = 0; i < profiles && hunt->only == NULL; i++)
        ok = tell_control(hfs_profile_name(i), NULL, &shared->results[i].control) &&
             shared->results[i].done && ok;
    for (size_t i = 0; i < count; i++) {
        if (!is_asked_for(hunt, &mutants[i]))
            continue;
        wrong += !tell(&mutants[i], &results[i]);
        dead += results[i].failure.any && mutants[i].equivalent == NULL;
    }
    if (hunt->only == NULL)
        tell_invariants(mutants, count, results);
    (void)printf("%zu mutants: %zu die, %zu are not as they should be\n", count, dead, wrong);
    return tell_census(hunt, shared) && ok && wrong == 0;
}

bool hfs_hunt(const struct hfs_hunt *hunt)
{
    size_t count, size;
    struct shared *shared;
    bool ok;

    (void)hfs_mutants_get(&count);
    size = sizeof *shared + (count_profiles() + count) * sizeof shared->results[0];
    shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return false;
    ok = work_together(hunt, shared);
    ok = tell_all(hunt, shared) && ok;
    (void)munmap(shared, size);
    return ok;
}
