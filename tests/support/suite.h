/* suite.h - a test program: its cases, run as the environment asks. */
#ifndef HFT_SUITE_H
#define HFT_SUITE_H

#include <check.h>

/* Runs the test cases (NULL-terminated, owned from here on); returns main's exit status. */
int hft_suite_run(const char *name, TCase *first, ...) __attribute__((sentinel));

/* How many of `count` random cases of a unit test to run: all of them in an ordinary build, a
 * tenth where a sanitizer or valgrind looks more closely, and slowly, at each. */
int hft_seeds(int count);

/* This machine cannot run the present test, which returns then; why, in a few words. It counts
 * as skipped, not as passed (tests/report.awk). */
void hft_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
