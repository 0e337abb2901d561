/* trial.h - whether settings that make sense can be used, too, on this machine as it is.
 *
 * What a link opens when it begins is tried before one begins with it: the files that the way
 * to etcd needs, and the directory of checkpoints. Nothing is changed, and nobody is asked. */
#ifndef LINK_TRIAL_H
#define LINK_TRIAL_H

#include "agentd/link/settings.h"

/* Without this no link begins, and no agent is kept. */
int link_trial_parts(const struct link_settings *settings, struct hf_error *err) HF_MUST_CHECK;

/* Without this some agent does not start: the programs and directories of the launchers. */
int link_trial_launchers(const struct link_settings *settings,
                         struct hf_error *err) HF_MUST_CHECK;

#endif
