#include "support/rights.h"

#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "support/process.h"
#include "support/tempdir.h"

enum { PATH_SIZE = HFT_PATH_MAX + 128 };

bool hft_is_nobodys(bool as_nobody)
{
    const char *text = getenv("HOLDFAST_HOST");

    ck_assert_msg(text == NULL || strcmp(text, "nobody") == 0 || strcmp(text, "root") == 0,
                  "HOLDFAST_HOST=%s is neither root nor nobody", text);
    return geteuid() == 0 && (text != NULL ? strcmp(text, "nobody") == 0 : as_nobody);
}

void hft_copy_program(const char *program, const char *dir, const char *name)
{
    char path[PATH_SIZE];
    struct hft_output output;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (access(path, F_OK) == 0)
        return;
    hft_process_run((const char *[]){ "install", "-D", program, path, NULL }, NULL, &output);
    ck_assert_msg(output.status == 0, "%s", output.err);
    hft_output_done(&output);
}

void hft_settle_nobody(const char *dir, const char *programs)
{
    char path[PATH_SIZE];

    if (programs == NULL)
        programs = HOLDFAST_PROGRAMS;
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chown(dir, HFT_NOBODY, HFT_NOBODY), 0);
    (void)snprintf(path, sizeof path, "%s/agentd", programs);
    hft_copy_program(path, dir, "bin/agentd");
    (void)snprintf(path, sizeof path, "%s/../libexec/holdfast/agentd-link", programs);
    hft_copy_program(path, dir, "libexec/holdfast/agentd-link");
    (void)snprintf(path, sizeof path, "%s/../libexec/holdfast/agentd-s3", programs);
    hft_copy_program(path, dir, "libexec/holdfast/agentd-s3");
}

const char *const *hft_nobody_env(void)
{
    static const char *const QUIET[] = { "ASAN_OPTIONS=detect_leaks=0", NULL };

    return QUIET;
}

bool hft_has_cgroups(void)
{
    FILE *mounts = setmntent("/proc/self/mounts", "re");
    const struct mntent *mount;
    bool has = false;

    ck_assert_ptr_nonnull(mounts);
    while (!has && (mount = getmntent(mounts)) != NULL)
        has =
            strcmp(mount->mnt_type, "cgroup2") == 0 && access(mount->mnt_dir, R_OK | W_OK) == 0;
    (void)endmntent(mounts);
    return has;
}

void hft_check_trees(const char *log, bool is_nobodys)
{
    bool wants_cgroups = geteuid() == 0 && !is_nobodys && hft_has_cgroups();
    const char *want = wants_cgroups ? " trees=cgroup\n" : " trees=shim\n";
    const char *other = wants_cgroups ? " trees=shim\n" : " trees=cgroup\n";

    if (geteuid() != 0 && !is_nobodys)
        return; /* a cgroup may have been given to whoever runs the test */
    ck_assert_msg(strstr(log, other) == NULL, "it should hold its agents with%s:\n%s", want,
                  log);
    /* It may have been killed before it said a word. */
    ck_assert_msg(strstr(log, "event=ready") == NULL || strstr(log, want) != NULL,
                  "it does not say%s:\n%s", want, log);
}
