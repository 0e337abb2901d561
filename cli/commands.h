/* commands.h - every command, each in the file that has its name. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command CLI_UP, CLI_DEMO_CRASH, CLI_DEMO_HOST, CLI_DEMO_FREEZE;
extern const struct cli_command CLI_TASK_SUBMIT, CLI_TASK_LS, CLI_TASK_SHOW, CLI_TASK_WATCH;
extern const struct cli_command CLI_TASK_CANCEL, CLI_TASK_RETRY, CLI_TASK_RM;
extern const struct cli_command CLI_PS, CLI_START, CLI_STOP, CLI_RESTART;
extern const struct cli_command CLI_AGENT_RM, CLI_HOSTS, CLI_HOST_CORDON, CLI_HOST_UNCORDON;
extern const struct cli_command CLI_HOST_DRAIN, CLI_HOST_LOST, CLI_HOST_RM, CLI_LOGS;
extern const struct cli_command CLI_CHECKPOINT_LS, CLI_CHECKPOINT_GET, CLI_CHECKPOINT_VERIFY;
extern const struct cli_command CLI_STORM_STATUS, CLI_STORM_PROCEED, CLI_STORM_HOLD;
extern const struct cli_command CLI_EXPLAIN, CLI_EVENTS, CLI_LEADER, CLI_INVARIANTS, CLI_DOCTOR;

#endif
