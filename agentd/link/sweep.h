/* sweep.h - bodies of checkpoints that no entry names are removed.
 *
 * A body is written before its entry, so whoever dies in between leaves one behind. In etcd,
 * where only the owner of a task can add to its chain, the owner looks when it starts a task
 * that was taken from another one, and after its first checkpoint: what is there, is not its
 * own and has no entry will never get one. Files have no owner, and those of a task that is
 * over lose their entries (docs/keys.md): each agentd looks at its directory from time to time,
 * and removes what no entry named at two looks in a row. */
#ifndef LINK_SWEEP_H
#define LINK_SWEEP_H

#include "agentd/link/link.h"

struct link_sweep;

/* Looks at the files of the store every so often, until it is freed. */
int link_sweep_new(struct link *link, hf_ms every, struct link_sweep **ret_sweep) HF_MUST_CHECK;
void link_sweep_free(struct link_sweep *sweep);

/* Removes what is left over in etcd of a task that the present life of an agent owns, which
 * puts nothing into its chain at the moment. As far as possible. */
void link_sweep_task(struct link *link, const char *agent, const char *task);

/* Forgets what is being looked at; when nothing comes of it any more. */
void link_sweep_done(struct link *link);

#endif
