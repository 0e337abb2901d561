/* provoke.h - while a Txn is kept back for the sake of one compare (sim/net.h), what it
 * compares is made to change: whoever sent it leads no more, or a person cancels the
 * task, or wants the agent that is swept.
 *
 * For what is rarely sent, so that nothing else would change it at that very moment. One thing
 * at a time; deterministic. */
#ifndef HFS_PROVOKE_H
#define HFS_PROVOKE_H

#include "sim/cluster.h"

/* That Txn is kept back: it happens a moment later, if the cluster's aim asks for it. */
void hfs_provoke(struct hfs_cluster *cluster, const struct hfs_process *from,
                 const struct hfs_letter *letter);

/* What has not happened yet does not. */
void hfs_provoke_no_more(struct hfs_cluster *cluster);

#endif
