/* controller.h - one controller: follows etcd, stands for leadership, and acts while it leads.
 *
 * Everything runs on one loop, which ctl_run turns until it is told to stop. */
#ifndef CTL_CONTROLLER_H
#define CTL_CONTROLLER_H

#include "controller/settings.h"

/* Runs until SIGTERM or SIGINT, which hand over at once: HF_OK. Otherwise what kept it from
 * doing its job, with a sentence; that has not been logged yet. */
int ctl_run(const struct ctl_settings *settings, struct hf_error *err) HF_MUST_CHECK;

#endif
