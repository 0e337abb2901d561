/* suite.h - a test program: its cases, run as the environment asks. */
#ifndef HFT_SUITE_H
#define HFT_SUITE_H

#include <check.h>

/* Runs the test cases (NULL-terminated, owned from here on); returns main's exit status. */
int hft_suite_run(const char *name, TCase *first, ...) __attribute__((sentinel));

#endif
