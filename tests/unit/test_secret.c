/* What a process that holds secrets lets others of its user see. */
#include <check.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "io/secret.h"
#include "unit/suite.h"

/* Each case is a process of its own. */

static rlim_t core_limit(void)
{
    struct rlimit core;

    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &core), 0);
    return core.rlim_cur;
}

static void allow_cores(void)
{
    struct rlimit core;

    ck_assert_int_eq(getrlimit(RLIMIT_CORE, &core), 0);
    core.rlim_cur = core.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_CORE, &core), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1), 0);
}

START_TEST(nobody_reads_it_and_it_leaves_no_core)
{
    allow_cores();
    ck_assert_int_eq(unsetenv("HOLDFAST_DUMPABLE"), 0);
    hf_secret_protect();
    ck_assert_uint_eq(core_limit(), 0);
#ifndef __SANITIZE_ADDRESS__
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 0);
#endif
}
END_TEST

START_TEST(a_debugger_can_be_let_in)
{
    rlim_t before;

    allow_cores();
    before = core_limit();
    ck_assert_int_eq(setenv("HOLDFAST_DUMPABLE", "1", 1), 0);
    hf_secret_protect();
    ck_assert_uint_eq(core_limit(), before);
    ck_assert_int_eq(prctl(PR_GET_DUMPABLE), 1);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("secret");

    tcase_add_test(t, nobody_reads_it_and_it_leaves_no_core);
    tcase_add_test(t, a_debugger_can_be_let_in);
    return run("io/secret", t);
}
