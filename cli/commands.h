/* commands.h - every command, each in the file that has its name. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command CLI_TASK_SUBMIT, CLI_TASK_LS, CLI_TASK_SHOW;
extern const struct cli_command CLI_LEADER;

#endif
