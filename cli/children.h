/* children.h - the processes that `holdfast up` starts and ends again.
 *
 * Each is in a process group of its own, so that Ctrl-C reaches us alone and we end them in
 * order; and each is sent SIGTERM by the kernel when we are killed. */
#ifndef CLI_CHILDREN_H
#define CLI_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"

/* A command line under construction: it fits, or the start fails. */
struct cli_args {
    char text[8192];
    size_t used;
    char *argv[40];
    size_t count;
};

void cli_args_add(struct cli_args *args, const char *fmt, ...) HF_PRINTF(2, 3);

struct cli_child {
    const char *name; /* for messages; borrowed */
    pid_t pid;        /* 0: not running */
    int status;       /* of waitpid, once it has ended */
    char log[512];    /* where its output goes */
};

/* Starts the first word (a path, or a name to be found in PATH) with its output appended to
 * `log`. HF_ENOENT with a sentence when there is no such program. */
int cli_child_start(struct cli_child *child, const char *name, const struct cli_args *args,
                    const char *log, struct hf_error *err) HF_MUST_CHECK;

/* Looks, without waiting. */
bool cli_child_has_ended(struct cli_child *child);

/* Asks it to end (SIGTERM). */
void cli_child_ask(const struct cli_child *child);

/* Waits until it has ended, for at most `grace`; then it is killed. */
void cli_child_reap(struct cli_child *child, hf_ms grace);

/* The last lines of its output, to be shown when it ended against our will. */
void cli_child_show_log(const struct cli_child *child);

#endif
