/* local.h - what this machine knows of an agent that runs on it. */
#ifndef CLI_LOCAL_H
#define CLI_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "cli/process.h"
#include "holdfast/v1/records.pb-c.h"

enum { CLI_PATH_SIZE = 4096 };

/* Registered since this machine was booted, and here. */
bool cli_is_of_this_machine(const Holdfast__V1__Live *live);

/* When a process began, as /proc has it; 0 when there is none. */
int64_t cli_start_time(pid_t pid);

/* The directory that its agentd keeps sockets and logs of agents in, as the process itself was
 * told; false when it does not run here, or somebody else's may not be looked at. */
bool cli_find_agents_dir(const Holdfast__V1__Live *live, char *ret_dir, size_t size);

/* The agentd of an agent that runs here. */
struct cli_agentd {
    struct cli_process link; /* its parent is the keeper */
    char state_dir[CLI_PATH_SIZE];
    char cgroup[CLI_PATH_SIZE + 300]; /* of the agent; empty: it has none of its own */
};

/* False when it cannot be found, for the reasons above. */
bool cli_find_agentd(const Holdfast__V1__Live *live, struct cli_agentd *ret_agentd);

/* Whether that process cannot run: it is stopped, or the cgroup is frozen. */
bool cli_stands_still(pid_t pid, const char *cgroup);

#endif
