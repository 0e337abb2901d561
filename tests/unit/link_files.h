/* link_files.h - files of launchers and agents, written by tests of what reads them. */
#ifndef LINK_FILES_H
#define LINK_FILES_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "support/tempdir.h"
#include "unit/suite.h"

static struct hft_tempdir dir;
static struct hf_error err;

static inline const char *path_of(const char *name)
{
    static char path[HFT_PATH_MAX + 64];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return path;
}

static inline void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void expect_error(int rc, int expected, const char *part)
{
    ck_assert_msg(rc == expected && strstr(err.text, part) != NULL, "%s: %s", hf_err_name(rc),
                  err.text);
}

#endif
