/* local.h - what this machine knows of an agent that runs on it. */
#ifndef CLI_LOCAL_H
#define CLI_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "holdfast/v1/records.pb-c.h"

/* Registered since this machine was booted, and here. */
bool cli_is_of_this_machine(const Holdfast__V1__Live *live);

/* When a process began, as /proc has it; 0 when there is none. */
int64_t cli_start_time(pid_t pid);

/* The directory that its agentd keeps sockets and logs of agents in, as the process itself was
 * told; false when it does not run here, or somebody else's may not be looked at. */
bool cli_find_agents_dir(const Holdfast__V1__Live *live, char *ret_dir, size_t size);

#endif
