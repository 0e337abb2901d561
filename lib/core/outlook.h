/* outlook.h - what comes next for a task or an agent, by what stands in etcd alone.
 *
 * For people who ask without asking the leader: what they are told follows from the same
 * records and the same rules as what the leader will do, and from when the records were last
 * written, which their op_ids tell. So it is right about what, and about when as far as the
 * clocks of those who wrote agree; the leader's own clock decides.
 *
 * Pure: no clock, no allocation, no I/O. */
#ifndef HF_CORE_OUTLOOK_H
#define HF_CORE_OUTLOOK_H

#include "core/fleet.h"
#include "core/task.h"

struct hf_outlook {
    const char *what; /* a sentence; borrowed from the records, or static; NULL: nothing */
    hf_ms at;         /* by the wall clock; 0: no time can be told */
};

/* When a record was last written, by the wall clock of whoever did; 0: it does not say. NULL is
 * fine. */
hf_ms hf_outlook_written(const ProtobufCMessage *record);

/* By which the leader judges tasks that wait, as its key says. False: it does not say, or there
 * is no leader (NULL); then nobody knows when. */
bool hf_outlook_policy(const Holdfast__V1__Leader *leader, struct hf_task_policy *ret_policy);

/* `fleet` has at least all agents with their health. `policy` is the leader's, or NULL: what
 * follows from waiting has no time then. */
struct hf_outlook hf_outlook_task(const struct hf_fleet *fleet, const struct hf_seen_task *task,
                                  const struct hf_task_policy *policy, hf_ms now);
struct hf_outlook hf_outlook_agent(const struct hf_agent *agent);

#endif
