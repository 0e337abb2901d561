/* history.h - the checkers of the simulator on what a real etcd went through: its revisions as
 * a watch told them, one after the other from the first, with the time in which each happened.
 *
 * Who wrote a revision follows from the records: each class of writers leaves its op_id, which
 * begins with the time of its decision, and a controller its name in the audit trail and on the
 * clock. Deletions of nothing but ephemeral keys are etcd's.
 *
 * What a history does not show is not judged: what processes did (I10, effects, what they were
 * given to go on from), what etcd promised to whom, Txns that changed nothing or came twice,
 * for how long something was waited for, and which controller wrote what bears no name, unless
 * it was decided before the term began. */
#ifndef HFS_HISTORY_H
#define HFS_HISTORY_H

#include "sim/check.h"

struct hfs_history;

/* A revision: it was made after `after` and before `before`, on one clock; the wall clock was
 * ahead of that by `wall_ahead`. */
struct hfs_seen {
    hfs_rev revision;
    hf_ms after, before;
    hf_ms wall_ahead;
    bool excused; /* somebody meddled: it is taken in and not judged */
};

/* Of a namespace, with the policies that its controllers have. */
struct hfs_history *hfs_history_new(const char *ns, const struct hf_recover_policy *recover,
                                    const struct hf_restart_policy *restart);
void hfs_history_free(struct hfs_history *history);

/* Their limit on tasks of one role that run at once; 0: none that is known. */
void hfs_history_set_running_max(struct hfs_history *history, uint32_t running_max);

/* What the next revision changed, all of it. What is told of a key after its deletion begins
 * anew. */
void hfs_history_add(struct hfs_history *history, const struct hfs_seen *seen,
                     const struct hfs_event *events, size_t count);

/* The first violation; NULL: none. */
const char *hfs_history_get_violation(const struct hfs_history *history);
struct hfs_check_counts hfs_history_get_counts(const struct hfs_history *history);

/* When that id was made, on the wall clock; -1: it is none. */
hf_ms hfs_history_id_wall(const char *id);

#endif
