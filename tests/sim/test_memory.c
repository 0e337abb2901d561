/* test_memory.c - plays every scenario again and again, and each time one allocation of the
 * code under test fails: the n-th, for n = 1, 2, 3 …
 *
 *     test_sim_memory [--jobs N] [--every STRIDE | --all | --only N] [FILE…]
 *
 * Nothing may crash, leak, break an invariant or stay broken; the story may be another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sim/branch.h"
#include "sim/scenario.h"
#include "support/chaos.h"

/* Seconds in an optimised build; a sanitizer looks at fewer, more closely. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STRIDE = 997 };
#else
enum { STRIDE = 53 };
#endif

struct sums {
    uint64_t stride;
    uint64_t only; /* 0: by strides */
    const char *path;
    size_t failing; /* which one, in this branch; 0: none */
    size_t scenarios, allocations, failures;
    struct hfs_branches branches;
};

static bool is_due(const struct sums *sums, size_t n)
{
    if (sums->only > 0)
        return n == sums->only;
    /* Another place in each scenario, so that a stride does not always meet the same. */
    return (n - 1) % sums->stride == sums->scenarios % sums->stride;
}

/* Here it fails in a branch, and in the trunk it does not. */
static bool branch_here(size_t n, void *arg)
{
    struct sums *sums = arg;
    char name[HFS_BRANCH_NAME];

    if (sums->branches.is_branch || !is_due(sums, n))
        return false;
    (void)snprintf(name, sizeof name, "--only %zu %s", n, sums->path);
    if (!hfs_branch(&sums->branches, name))
        return false;
    sums->failing = n;
    return true;
}

/* One run, with its branches; false: it did not end well. */
static bool play(struct sums *sums, const struct hfs_scenario *scenario, char *why, size_t size)
{
    char *text = NULL;
    bool ok;

    hft_chaos_watch();
    hft_chaos_only(hfs_memory_may_fail);
    hft_chaos_ask(branch_here, sums);
    hft_chaos_fail_at(0, false);
    ok = hfs_scenario_run(scenario, &text, why, size);
    hft_chaos_stop();
    free(text);
    if (ok && hft_chaos_live() > 0) {
        (void)snprintf(why, size, "%zu allocations are left over", hft_chaos_live());
        return false;
    }
    return ok;
}

static void play_all(const char *path, void *arg)
{
    struct sums *sums = arg;
    struct hfs_scenario scenario;
    char why[600] = "";
    bool ok;

    sums->path = path;
    if (!hfs_scenario_load(&scenario, path)) {
        sums->failures++;
        return;
    }
    ok = play(sums, &scenario, why, sizeof why);
    if (!ok && sums->failing > 0)
        (void)fprintf(stderr, "--only %zu %s: %s\n", sums->failing, path, why);
    else if (!ok)
        (void)fprintf(stderr, "%s: with memory: %s\n", path, why);
    hfs_scenario_done(&scenario);
    if (sums->branches.is_branch)
        hfs_branch_end(ok);
    sums->scenarios++;
    sums->allocations += hft_chaos_count();
    sums->failures += ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct sums sums = { .stride = STRIDE, .branches.jobs = 1 };
    uint64_t jobs = 1;
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        const struct {
            const char *flag;
            uint64_t most, *number;
        } KNOWN[] = { { "--every", UINT32_MAX, &sums.stride },
                      { "--only", UINT32_MAX, &sums.only },
                      { "--jobs", HFS_BRANCH_JOBS, &jobs } };
        size_t k = 0;

        if (strcmp(argv[i], "--all") == 0) {
            sums.stride = 1;
            continue;
        }
        while (k < 3 && strcmp(argv[i], KNOWN[k].flag) != 0)
            k++;
        if (k == 3 || ++i == argc ||
            hf_parse_u64(argv[i], 1, KNOWN[k].most, KNOWN[k].number) != HF_OK)
            return 2;
    }
    sums.branches.jobs = (unsigned)jobs;
    hft_chaos_adopt_jansson();
    if (i == argc)
        (void)hfs_scenario_each(HOLDFAST_SCENARIOS, play_all, &sums);
    for (; i < argc; i++)
        play_all(argv[i], &sums);
    hfs_branches_join(&sums.branches);
    sums.failures += sums.branches.failures;
    (void)printf("%zu scenarios with %zu allocations, %zu of them failed: %zu ended badly\n",
                 sums.scenarios, sums.allocations, sums.branches.count, sums.failures);
    return sums.failures == 0 && sums.branches.count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
