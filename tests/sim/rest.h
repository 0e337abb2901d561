/* rest.h - whether everything came to rest in time after the faults stopped.
 *
 * Each thing that is not as it should be has its own clock: a task that is not final, a start
 * that is left over, an agent that is wanted, due by its policy and not running. It may stay so
 * for 120 s. The clock stands at zero while the thing moves by itself (steps are done, another
 * owner has it), and while it waits for what etcd says it waits for: a task for the end of its
 * backoff or for an agent that has other work, an agent for its next start. */
#ifndef HFS_REST_H
#define HFS_REST_H

#include "sim/cluster.h"

struct hfs_rest;

/* `extra`: what is to be added to the 120 s. */
struct hfs_rest *hfs_rest_new(struct hfs_cluster *cluster, hf_ms extra);
void hfs_rest_free(struct hfs_rest *rest);

enum hfs_rest_verdict {
    HFS_REST_DONE, /* everything is as it should be */
    HFS_REST_WAIT, /* not yet */
    HFS_REST_LATE, /* and it should be */
};

/* Looks around; to be called every second. *ret_why says what is not as it should be. */
enum hfs_rest_verdict hfs_rest_look(struct hfs_rest *rest, char *ret_why, size_t size);

/* Whether somebody can do the work of a role: wanted, not held, and of a kind that works. */
bool hfs_rest_has_agent(const char *role, void *cluster);

#endif
