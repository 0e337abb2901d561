/* rest.h - whether everything came to rest in time after the faults stopped.
 *
 * Each thing that is not as it should be has its own clock: a task that is not final, a start
 * that is left over, an agent that is wanted, due by its policy and not running. It may be so
 * for 120 s in all, however often it was well in between and however much it moves: one that
 * comes and goes, or changes hands without end, is late like one that stands still.
 *
 * Not counted is what etcd says that it waits for, and work:
 *   - the backoff of a task, and of an agent, as long as all delays of the policy together;
 *   - a task that can be claimed while every agent of its role has another one, or waits for
 *     its own start: these have clocks of their own;
 *   - the time for which an agent's home is waited for that is gone for good;
 *   - the steps of a task while its owner does them: so many times as it may be recovered, and
 *     once more;
 *   - the time that a task may be with one that does not begin with it, or does not know of it,
 *     once for each of those.
 */
#ifndef HFS_REST_H
#define HFS_REST_H

#include "sim/cluster.h"

struct hfs_rest;

/* `lossy`: watches may have left out events without a word, which is found with the next list
 * alone: the clocks stand until everybody has listed everything once more. */
struct hfs_rest *hfs_rest_new(struct hfs_cluster *cluster, bool lossy);
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
