/* test_memory.c - plays every scenario again and again, and each time one allocation of the
 * code under test fails: the n-th, for n = 1, 2, 3 …
 *
 *     test_sim_memory [--every STRIDE | --all | --only N] [FILE…]
 *
 * Nothing may crash, leak, break an invariant or stay broken; the story may be another one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
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
    size_t scenarios, allocations, runs, failures;
};

/* One run in which the n-th fails (0: none); false: it did not end well. */
static bool play(const struct hfs_scenario *scenario, size_t n, char *why, size_t size)
{
    char *text = NULL;
    bool ok;

    hft_chaos_watch();
    hft_chaos_only(hfs_memory_may_fail);
    hft_chaos_fail_at(n, false);
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
    size_t count, failures = 0;

    if (!hfs_scenario_load(&scenario, path)) {
        sums->failures++;
        return;
    }
    if (!play(&scenario, 0, why, sizeof why)) {
        failures++;
        (void)fprintf(stderr, "%s: with memory: %s\n", path, why);
    }
    count = hft_chaos_count();
    /* Another place in each scenario, so that a stride does not always meet the same. */
    for (size_t n = sums->only > 0 ? sums->only : 1 + sums->scenarios % sums->stride;
         n <= count; n += sums->only > 0 ? count : sums->stride) {
        sums->runs++;
        if (play(&scenario, n, why, sizeof why))
            continue;
        failures++;
        (void)fprintf(stderr, "%s: allocation %zu of %zu fails: %s\n", path, n, count, why);
    }
    hfs_scenario_done(&scenario);
    sums->scenarios++;
    sums->allocations += count;
    sums->failures += failures;
}

int main(int argc, char **argv)
{
    struct sums sums = { .stride = STRIDE };
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        uint64_t *number = strcmp(argv[i], "--only") == 0 ? &sums.only : &sums.stride;

        if (strcmp(argv[i], "--all") == 0)
            sums.stride = 1;
        else if ((strcmp(argv[i], "--every") != 0 && number != &sums.only) || ++i == argc ||
                 hf_parse_u64(argv[i], 1, UINT32_MAX, number) != HF_OK)
            return 2;
    }
    hft_chaos_adopt_jansson();
    if (i == argc)
        (void)hfs_scenario_each(HOLDFAST_SCENARIOS, play_all, &sums);
    for (; i < argc; i++)
        play_all(argv[i], &sums);
    (void)printf("%zu scenarios with %zu allocations, %zu of them failed: %zu ended badly\n",
                 sums.scenarios, sums.allocations, sums.runs, sums.failures);
    return sums.failures == 0 && sums.runs > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
