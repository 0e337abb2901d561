/* tempdir.h - a scratch directory that goes away even when the test crashes.
 *
 * A small process of its own waits for the test's end and removes the directory then: Check
 * ends a failed test with _exit, where no handler of ours would run. With HFT_KEEP in the
 * environment the directory stays and its path is printed. */
#ifndef HFT_TEMPDIR_H
#define HFT_TEMPDIR_H

#include <sys/types.h>

#define HFT_PATH_MAX 256

struct hft_tempdir {
    char path[HFT_PATH_MAX];
    int alive_fd;  /* closing it tells the janitor to clean up */
    pid_t janitor; /* 0 when the directory is kept */
};

void hft_tempdir_init(struct hft_tempdir *dir);

/* Removes the directory and all in it. */
void hft_tempdir_done(struct hft_tempdir *dir);

/* Removes a file or a whole tree. */
void hft_remove_tree(const char *path);

#endif
