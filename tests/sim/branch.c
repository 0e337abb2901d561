#include "sim/branch.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENDED_WELL, ENDED_BADLY };

/* Waits for one of them, whichever. */
static void wait_for_one(struct hfs_branches *branches)
{
    int status = 0;
    pid_t pid = wait(&status);

    for (unsigned i = 0; i < branches->jobs; i++) {
        if (branches->running[i].pid != pid)
            continue;
        branches->running[i].pid = 0;
        if (WIFEXITED(status) && WEXITSTATUS(status) == ENDED_WELL)
            return;
        branches->failures++;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != ENDED_BADLY)
            (void)fprintf(stderr, "%s: the simulator itself ended, with %#x\n",
                          branches->running[i].name, (unsigned)status);
        return;
    }
    perror("holdfast-sim: wait");
    abort();
}

static unsigned find_room(struct hfs_branches *branches)
{
    for (;;) {
        for (unsigned i = 0; i < branches->jobs; i++) {
            if (branches->running[i].pid == 0)
                return i;
        }
        wait_for_one(branches);
    }
}

bool hfs_branch(struct hfs_branches *branches, const char *name)
{
    unsigned place = find_room(branches);
    pid_t pid;

    assert(!branches->is_branch);
    (void)fflush(NULL); /* what was said is not said twice */
    pid = fork();
    if (pid < 0) {
        perror("holdfast-sim: fork");
        abort();
    }
    branches->is_branch = pid == 0;
    if (branches->is_branch)
        return true;
    branches->count++;
    branches->running[place].pid = pid;
    (void)snprintf(branches->running[place].name, sizeof branches->running[place].name, "%s",
                   name);
    return false;
}

/* By the usual way out: a sanitizer looks for leaks there. */
_Noreturn void hfs_branch_end(bool ok)
{
    exit(ok ? ENDED_WELL : ENDED_BADLY);
}

void hfs_branches_join(struct hfs_branches *branches)
{
    for (unsigned i = 0; i < branches->jobs; i++) {
        while (branches->running[i].pid != 0)
            wait_for_one(branches);
    }
}
