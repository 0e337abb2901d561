/* branch.h - a history that goes on in many ways: at each place where something may go wrong,
 * it does in a process of its own (fork), and in the one that was there it does not.
 *
 * What lies before such a place is lived through once, and not once more for each of them. One
 * thread. Nobody is a branch of a branch. */
#ifndef HFS_BRANCH_H
#define HFS_BRANCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { HFS_BRANCH_JOBS = 64, HFS_BRANCH_NAME = 256 };

/* Zero-initialise, but for `jobs`. */
struct hfs_branches {
    unsigned jobs; /* how many run at once, 1 to HFS_BRANCH_JOBS */
    size_t count, failures;
    bool is_branch; /* this process is one */
    struct {
        pid_t pid; /* 0: none */
        char name[HFS_BRANCH_NAME];
    } running[HFS_BRANCH_JOBS];
};

/* True in the new process, false in the one that was there. */
bool hfs_branch(struct hfs_branches *branches, const char *name);

/* The end of a branch. */
_Noreturn void hfs_branch_end(bool ok);

/* Waits for those that still run. Who ended without hfs_branch_end is named on stderr. */
void hfs_branches_join(struct hfs_branches *branches);

#endif
