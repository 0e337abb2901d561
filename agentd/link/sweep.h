/* sweep.h - files of checkpoints that no entry names are removed.
 *
 * A file is written before its entry, so whoever dies in between leaves one behind, and those
 * of a task that is over lose their entries (docs/keys.md). Files have no owner: each agentd
 * looks at its directory from time to time, and removes what no entry named at two looks in a
 * row. What lies in etcd comes and goes with its entry. */
#ifndef LINK_SWEEP_H
#define LINK_SWEEP_H

#include "agentd/link/link.h"

struct link_sweep;

/* Looks at the files of the store every so often, until it is freed. */
int link_sweep_new(struct link *link, hf_ms every, struct link_sweep **ret_sweep) HF_MUST_CHECK;
void link_sweep_free(struct link_sweep *sweep);

#endif
