/* process.h - processes of this machine, as /proc has them. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"

struct cli_process {
    pid_t pid, parent;
    char state;         /* R, S, D, T (stopped), Z (dead, not yet reaped) … */
    int64_t start_time; /* in clock ticks since boot: pid and this are unique */
    char name[32];      /* of its program, cut by the kernel */
};

/* False when there is no such process. */
bool cli_process_read(pid_t pid, struct cli_process *ret_process);

/* Ends a process and everything that it has started, with SIGKILL. It is stopped first and ends
 * last: what escapes its own parent becomes its child, so that nothing is overlooked. False
 * when something is left after `patience`. */
bool cli_process_kill_tree(pid_t root, hf_ms patience);

#endif
