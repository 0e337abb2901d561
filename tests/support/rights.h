/* rights.h - with what rights an agentd of a test runs: root's, and then it holds its agents in
 * cgroups, or nobody's, and then behind shims. It can choose only where the test is root. */
#ifndef HFT_RIGHTS_H
#define HFT_RIGHTS_H

#include <stdbool.h>

enum { HFT_NOBODY = 65534 };

/* What a test asks for, unless HOLDFAST_HOST (root or nobody) tells the same story with other
 * rights. */
bool hft_is_nobodys(bool as_nobody);

/* Copies a program to <dir>/<name>, unless it is there: where it was built may be in somebody's
 * home, to which nobody cannot come. */
void hft_copy_program(const char *program, const char *dir, const char *name);

/* Copies agentd and its link, of those programs (NULL: as they were built), to
 * <dir>/bin/agentd and <dir>/libexec/holdfast/agentd-link, and gives the directory to nobody.
 */
void hft_settle_nobody(const char *dir, const char *programs);

/* For a program of nobody's. What a sanitizer's variables name lies where it was built. */
const char *const *hft_nobody_env(void);

/* Whether root can make cgroups v2 on this machine. */
bool hft_has_cgroups(void);

/* Fails the test when an agentd, of which this is the log, held its agents otherwise than its
 * rights let it: a story in cgroups must not be told behind shims, unseen. */
void hft_check_trees(const char *log, bool is_nobodys);

#endif
