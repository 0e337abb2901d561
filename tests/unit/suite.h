/* suite.h - one test case as a program. */
#ifndef HF_TESTS_UNIT_SUITE_H
#define HF_TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* For main() to return. */
static inline int run(const char *name, TCase *tcase)
{
    Suite *suite = suite_create(name);

    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
