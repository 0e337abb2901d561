/* check.h - the invariants I1 to I12, I13 (a death counts against the checkpoint that was
 * restored, and against no other), I14 (nobody is ended for standing still who said or did
 * anything while it had time to answer), I15 (the audit trail does not repeat itself), I16 (in
 * etcd the body of a checkpoint is there exactly while an entry names it) and I17 (nobody asks
 * to write what its role may not), checked from outside: from every revision of the model's
 * store, from who wrote it and who asked for what, and from what the keepers' processes did.
 *
 * It believes nothing that the code under test says of itself, and asks it nothing. The first
 * violation is kept, with its id and a sentence. */
#ifndef HFS_CHECK_H
#define HFS_CHECK_H

#include "core/recover.h"
#include "core/restart.h"
#include "sim/net.h"

struct hfs_check;

struct hfs_check *hfs_check_new(struct hfs_world *world, struct hfs_etcd *etcd, const char *ns);
void hfs_check_free(struct hfs_check *check);

/* New revisions may be there; `writer` sent the request that made them, NULL: etcd itself. */
void hfs_check_commit(struct hfs_check *check, const struct hfs_process *writer);

/* A request was answered; what it changed is told with hfs_check_commit, next. */
void hfs_check_served(struct hfs_check *check, const struct hfs_process *from,
                      struct hfs_letter *letter, const struct hfs_answer *answer);

/* In this history no message and no controller is slow: what happens too soon or too late for
 * any reason but that can be judged. */
void hfs_check_set_calm(struct hfs_check *check, bool calm);

/* So many tasks of one role may run at once; 0: any number. */
void hfs_check_set_running_max(struct hfs_check *check, uint32_t running_max);

/* Somebody sends something, which its role must allow: whoever leads waits for what becomes of
 * it. */
void hfs_check_sent(struct hfs_check *check, const struct hfs_process *from,
                    const struct hfs_letter *letter);

/* A Txn is kept back, with every other attempt at it: whoever sent it waits for what becomes of
 * it. */
void hfs_check_withheld(struct hfs_check *check, const struct hfs_process *from,
                        const struct hfs_letter *letter);

/* No controller removes an agent sooner than so long after its end, or after it was made known.
 */
void hfs_check_set_sweep_after(struct hfs_check *check, hf_ms sweep_after);

/* The history is one that was watched (sim/history.h), not made here: these policies hold in
 * it, an agentd is known by its lease, since hosts of one machine share its boot, and what
 * comes next happened up to `slack` before the world's time. */
void hfs_check_set_watched(struct hfs_check *check, const struct hf_recover_policy *recover,
                           const struct hf_restart_policy *restart);
void hfs_check_set_slack(struct hfs_check *check, hf_ms slack);

/* A controller ended: nobody else knows of generations that a restore took back. */
void hfs_check_forgot(struct hfs_check *check);

/* The etcd was restored: what is there now is where it goes on from. */
void hfs_check_restored(struct hfs_check *check);

/* That process was granted this lease. */
void hfs_check_lease(struct hfs_check *check, int64_t lease, const struct hfs_process *owner);

/* etcd answered a renewal, and promised the lease until `until`. */
void hfs_check_renewed(struct hfs_check *check, int64_t lease, hf_ms until);

/* Something begins under that lease, which etcd must have promised for a while yet. */
void hfs_check_judge_promise(struct hfs_check *check, int64_t lease, const char *what);

/* A process of an agent runs from now on, unfrozen, on that host under that lease and
 * incarnation; or it does not any more. */
void hfs_check_runs(struct hfs_check *check, const char *agent, const char *instance,
                    int64_t lease);
void hfs_check_stands(struct hfs_check *check, const char *instance);

/* It stood still, and runs again; `fenced_at` is when the time of its lease was over, -1: it
 * was not. */
void hfs_check_thawed(struct hfs_check *check, const char *agent, const char *instance,
                      hf_ms fenced_at);

/* It does something for a task. */
void hfs_check_effect(struct hfs_check *check, const char *agent, const char *instance,
                      const char *task);

/* What it asked about its task at that time was answered: it knows whose that was then. */
void hfs_check_heard(struct hfs_check *check, const char *instance, hf_ms asked_at);

/* It goes on with a task from that checkpoint; 0: from the beginning. */
void hfs_check_goes_on(struct hfs_check *check, const char *agent, const char *instance,
                       const char *task, int64_t checkpoint);

/* A process begins, once in its life, with this number for its incarnation. */
void hfs_check_begins(struct hfs_check *check, const char *agent, const char *instance,
                      int64_t incarnation);

/* The first violation; NULL: none. */
const char *hfs_check_get_violation(const struct hfs_check *check);
void hfs_check_violate(struct hfs_check *check, const char *fmt, ...) HF_PRINTF(2, 3);

/* What is left over when everything should have come to rest. */
struct hfs_check_rest {
    size_t tasks_open; /* not final */
    size_t commands;
    size_t tasks, final;
    char example[320]; /* one that is not as it should be */
};

/* `has_agent` says whether somebody could do the work of a role: the tasks of others are no
 * loss. */
struct hfs_check_rest hfs_check_get_rest(const struct hfs_check *check,
                                         bool (*has_agent)(const char *role, void *arg),
                                         void *arg);

/* As the store has it now. */
bool hfs_check_is_owner(const struct hfs_check *check, const char *agent, const char *task);
bool hfs_check_is_live(const struct hfs_check *check, const char *agent);
bool hfs_check_has_spec(const struct hfs_check *check, const char *agent);
bool hfs_check_is_stopped(const struct hfs_check *check, const char *agent);
/* Of a task: a Holdfast__V1__Task__State, or -1 when there is none. */
int hfs_check_get_state(const struct hfs_check *check, const char *task);
/* One that the agent owns, or that waits for it; NULL: none. */
const char *hfs_check_find_task(const struct hfs_check *check, const char *agent);
/* Whether as many of that role run as may; and a task that is pending, and need not be, while
 * more of its role run (NULL: none). */
bool hfs_check_is_full(const struct hfs_check *check, const char *role);
const char *hfs_check_find_surplus(const struct hfs_check *check);
/* An agent that was started by leave, which nobody has counted; NULL: none. */
const char *hfs_check_find_uncounted(const struct hfs_check *check);
const char *hfs_check_get_live_host(const struct hfs_check *check, const char *agent);

struct hfs_check_counts {
    uint64_t revisions, starts, resets, completed, adopted, orders, heirs;
};

struct hfs_check_counts hfs_check_get_counts(const struct hfs_check *check);

#endif
