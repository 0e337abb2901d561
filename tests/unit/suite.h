/* suite.h - one test case as a program. */
#ifndef HF_TESTS_UNIT_SUITE_H
#define HF_TESTS_UNIT_SUITE_H

#include <check.h>
#include <stdlib.h>

#include "support/suite.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* For main() to return. */
static inline int run(const char *name, TCase *tcase)
{
    return hft_suite_run(name, tcase, NULL);
}

#endif
