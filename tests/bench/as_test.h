/* as_test.h - runs a benchmark as a Check test in this process: tests/support reports what goes
 * wrong to Check. */
#ifndef HFB_AS_TEST_H
#define HFB_AS_TEST_H

#include <check.h>

/* Returns the exit code. */
static inline int hfb_run_as_test(const TTest *bench, enum print_output output)
{
    Suite *suite = suite_create("bench");
    TCase *tcase = tcase_create("bench");
    SRunner *runner;
    int failed;

    tcase_add_test(tcase, bench);
    tcase_set_timeout(tcase, 0);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, output);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

#endif
