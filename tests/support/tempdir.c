#include "support/tempdir.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/process.h"

#define REMOVE_TIMEOUT_MS 30000

/* The test's servers may still be dying and writing when the pipe closes, hence the retries. */
static const char JANITOR[] = "read -r _\n"
                              "for _ in 1 2 3 4 5 6 7 8 9 10; do\n"
                              "    rm -rf -- \"$1\" 2>/dev/null && exit 0\n"
                              "    sleep 0.2\n"
                              "done\n"
                              "exit 1\n";

static void start_janitor(struct hft_tempdir *dir)
{
    HF_CLEANUP_FD int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int ends[2];

    ck_assert_int_ge(null_fd, 0);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);

    /* Its output goes nowhere: whoever reads the test's output must not wait for the janitor.
     */
    dir->janitor = hft_process_spawn(&(struct hft_spawn){
        .argv = (const char *[]){ "sh", "-c", JANITOR, "janitor", dir->path, NULL },
        .in = ends[0],
        .out = null_fd,
        .err = null_fd,
        .outlives = true,
    });
    (void)close(ends[0]);
    dir->alive_fd = ends[1];
}

void hft_tempdir_init(struct hft_tempdir *dir)
{
    const char *base = getenv("TMPDIR");

    *dir = (struct hft_tempdir){ .alive_fd = -1 };
    if (base == NULL || base[0] == '\0')
        base = "/tmp";
    ck_assert_int_lt(snprintf(dir->path, sizeof dir->path, "%s/hft-XXXXXX", base),
                     (int)sizeof dir->path);
    ck_assert_msg(mkdtemp(dir->path) != NULL, "%s: %s", dir->path, strerror(errno));

    if (getenv("HFT_KEEP") == NULL)
        start_janitor(dir);
    else
        (void)fprintf(stderr, "kept: %s\n", dir->path);
}

void hft_tempdir_done(struct hft_tempdir *dir)
{
    if (dir->janitor == 0)
        return;
    /* The line, and not only the end: a forked child of the test may still hold the pipe. */
    ck_assert_int_eq(write(dir->alive_fd, "\n", 1), 1);
    (void)close(dir->alive_fd);
    ck_assert_int_eq(hft_process_reap(dir->janitor, REMOVE_TIMEOUT_MS), 0);
    *dir = (struct hft_tempdir){ .alive_fd = -1 };
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void hft_remove_tree(const char *path)
{
    int err = nftw(path, remove_one, /* nopenfd= */ 16, FTW_DEPTH | FTW_PHYS);

    ck_assert_msg(err == 0 || errno == ENOENT, "cannot remove %s: %s", path, strerror(errno));
}
