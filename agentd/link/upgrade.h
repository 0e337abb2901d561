/* upgrade.h - asks a running agentd for a new link, which is the program that lies there now.
 */
#ifndef LINK_UPGRADE_H
#define LINK_UPGRADE_H

#include "base/err.h"

/* Waits until the new one is ready. HF_ENOENT when no agentd runs in that state directory;
 * HF_EIO with the reason when there is none, or it ended before it was ready. */
int link_upgrade(const char *state_dir, struct hf_error *err) HF_MUST_CHECK;

/* For whoever waits there: why a link does not go, or cannot begin. */
void link_upgrade_refuse(const char *state_dir, const char *why);

#endif
