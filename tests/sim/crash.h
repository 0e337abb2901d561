/* crash.h - ends one process of the fleet exactly at its k-th step: with what it was about to
 * send lost, or on its way.
 *
 * A step is a request to etcd (but for renewals, of which there is no end), and for an agent's
 * program what it asks its agentd for. What is left of the turn in which it dies is lost. A
 * controller and a link are started again as they always are; a machine is after a while. */
#ifndef HFS_CRASH_H
#define HFS_CRASH_H

#include "sim/cluster.h"

enum hfs_victim {
    HFS_VICTIM_CONTROLLER,
    HFS_VICTIM_LINK,
    HFS_VICTIM_MACHINE, /* with its keeper and all that it keeps */
    HFS_VICTIM_AGENT,
    HFS_VICTIMS, /* how many */
};

struct hfs_crash {
    enum hfs_victim who;
    unsigned number; /* of the controller, the host or the agent, from 0 */
    uint64_t step;   /* from 1; 0: it is not ended, its steps are counted */
    bool is_lost;    /* the step itself does not reach anybody */
    /* Unless NULL it is asked at each step, and `step` does not count: true: here it is ended,
     * and *ret_is_lost says how. Not asked again after that. */
    bool (*is_here)(uint64_t step, bool *ret_is_lost, void *arg);
    void *arg;
};

struct hfs_crasher {
    struct hfs_cluster *cluster;
    struct hfs_crash crash;
    uint64_t steps; /* that it has made */
    bool is_dying, has_died;
    struct hfs_agent *agent;
    struct hfs_timer now, again;
};

void hfs_crasher_init(struct hfs_crasher *crasher, struct hfs_cluster *cluster,
                      const struct hfs_crash *crash);
void hfs_crasher_done(struct hfs_crasher *crasher);

/* As in struct hfs_ear; true: it gets lost. */
bool hfs_crasher_on_send(struct hfs_crasher *crasher, const struct hfs_process *from,
                         const struct hfs_letter *letter);
bool hfs_crasher_on_ask(struct hfs_crasher *crasher, struct hfs_agent *agent);

#endif
