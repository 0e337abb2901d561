/* upgrade.h - asks a running agentd for a new link, which is the program that lies there now.
 */
#ifndef LINK_UPGRADE_H
#define LINK_UPGRADE_H

#include "base/err.h"

/* Waits until the new one is there. HF_ENOENT when no agentd runs in that state directory. */
int link_upgrade(const char *state_dir, struct hf_error *err) HF_MUST_CHECK;

#endif
