/* place.h - where an agentd keeps its state: chosen alike by who runs and by who looks for it.
 */
#ifndef AGENTD_KEEPER_PLACE_H
#define AGENTD_KEEPER_PLACE_H

#include <stddef.h>

/* What stands behind the option on the command line, up to `--`; NULL: nothing does. */
const char *agentd_find_option(char *const *argv, const char *option);

/* --state-dir, or HOLDFAST_STATE_DIR; else below /var/lib for root, the user's directory of
 * states for others: `run-NAME` for the `agentd run` of that name, `agentd` for any other. 0;
 * -EINVAL: `run` without a valid name; -ENAMETOOLONG. */
int agentd_choose_state_dir(char *const *argv, char *ret_dir, size_t size);

#endif
