#include "support/suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"

int hft_suite_run(const char *name, TCase *first, ...)
{
    Suite *suite = suite_create(name);
    va_list args;

    va_start(args, first);
    for (TCase *tcase = first; tcase != NULL; tcase = va_arg(args, TCase *))
        suite_add_tcase(suite, tcase);
    va_end(args);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int hft_seeds(int count)
{
    const char *slowdown = getenv("CK_TIMEOUT_MULTIPLIER");
    uint64_t times;

    return slowdown != NULL && hf_parse_u64(slowdown, 2, UINT64_MAX, &times) == HF_OK
               ? (count + 9) / 10
               : count;
}

void hft_skip(const char *fmt, ...)
{
    char why[200];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    printf("skipped: %s\n", why);
    (void)fflush(stdout);
}
