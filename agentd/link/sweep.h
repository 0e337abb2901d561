/* sweep.h - files and objects of checkpoints that no entry names are removed.
 *
 * One is written before its entry, so whoever dies in between leaves it behind, and those of a
 * task that is over lose their entries (docs/keys.md). Each agentd of a
 * fleet looks at its directory and at its bucket from time to time, and removes what is of its
 * fleet and namespace and no entry named at two looks in a row: whatever else lies there may
 * have its entry elsewhere. What lies in etcd comes and goes with its entry. */
#ifndef LINK_SWEEP_H
#define LINK_SWEEP_H

#include "agentd/link/link.h"

struct link_sweep;

/* Looks at what lies in that store, `file` or `s3`, every so often, until it is freed. */
int link_sweep_new(struct link *link, const char *store, hf_ms every,
                   struct link_sweep **ret_sweep) HF_MUST_CHECK;
void link_sweep_free(struct link_sweep *sweep);

#endif
