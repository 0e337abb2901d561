/* rows.h - the protocol: every step that changes etcd, as the one function that builds its
 * plan.
 *
 * This is the table of transactions, row by row, so that the two can be read side by side. A
 * row decides nothing: whether and when is the engine's and the link's business, and only the
 * guards say whether it still holds when it arrives. A plan is begun with hf_plan_init, filled
 * by one row (reset and order may share one), and checked with hf_plan_check. Pure.
 *
 * In the comments: A, create revision and lease of agents/a/live are those of the incarnation.
 * L, the same for controller/leader. M(k), k was last changed at the revision that was decided
 * on (0: absent) and, where its text is known, has the same text. */
#ifndef HF_CORE_ROWS_H
#define HF_CORE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/plan.h"
#include "holdfast/v1/records.pb-c.h"

/* A key as it was seen: what a decision rests on. All zero: it does not exist. */
struct hf_seen {
    int64_t create_rev;
    int64_t mod_rev;
    int64_t lease;
    struct hf_bytes text; /* of the value, as it stands in etcd */
};

struct hf_seen_task {
    struct hf_seen seen;
    const Holdfast__V1__Task *task;
};

struct hf_seen_recovery {
    struct hf_seen seen;
    const Holdfast__V1__Recovery *recovery; /* NULL: none yet */
};

struct hf_seen_health {
    struct hf_seen seen;
    const Holdfast__V1__Health *health; /* NULL: none yet */
};

/* A: one life of an agent, as its writes prove it. */
struct hf_life {
    const char *agent;
    int64_t lease;
    int64_t create_rev; /* of its live key */
    int32_t generation;
};

/* L: a leader in its term. */
struct hf_term {
    int64_t lease;
    int64_t create_rev; /* of the leader's key */
};

/* The create revision of the owner's live key; 0 only when nobody owns the task. A task that
 * was acknowledged by the very Txn that created that key cannot name the revision, since nobody
 * knew it: it says 0, and means its own. So does one that names no life at all, which is why
 * it will not be found alive. */
int64_t hf_rows_owner_rev(const struct hf_seen_task *task);

/* The number of the attempt after this one. A record may say anything: it stops growing at the
 * largest number that there is. */
int32_t hf_rows_next_attempt(const Holdfast__V1__Task *task);

/* submit: task absent. The task, pending, and its index entry; its payload, if that is too
 * long for the record. */
void hf_row_submit(struct hf_plan *plan, const Holdfast__V1__Task *task);

/* likewise, but queued and without an index entry: nobody can have it before who leads says so.
 */
void hf_row_enqueue(struct hf_plan *plan, const Holdfast__V1__Task *task);

/* a host says what it is by now: its live, M(record). the record. */
void hf_row_host(struct hf_plan *plan, const char *host, const struct hf_seen *record,
                 int64_t create_rev, const Holdfast__V1__Host *next);

/* a host joins: its live absent, M(record). live; the record. */
void hf_row_join(struct hf_plan *plan, const char *host, const struct hf_seen *record,
                 const Holdfast__V1__Host *next, const Holdfast__V1__HostLive *live);

/* a spec: M(spec). The spec, as the agent's own agentd has it. */
void hf_row_spec(struct hf_plan *plan, const char *agent, const struct hf_seen *spec,
                 const Holdfast__V1__Spec *next);

/* What every start rests on: live absent, M(spec), M(wanted). The caller has seen that the
 * agent is wanted running. */
struct hf_start {
    const char *agent;
    const char *host;
    const Holdfast__V1__Live *live;
    int64_t lease;
    struct hf_seen spec;
    struct hf_seen wanted;
    int32_t generation;
};

/* start by command: also M(command), M(task) if it names one. live; the command deleted; the
 * task acknowledged by the new life, which goes on from `restored` (0: from the beginning), its
 * index entry deleted. `task` may be NULL. */
void hf_row_start_by_command(struct hf_plan *plan, const struct hf_start *start,
                             const struct hf_seen *command, const struct hf_seen_task *task,
                             int64_t restored);

/* boot start: also no command on this host. live. */
void hf_row_boot_start(struct hf_plan *plan, const struct hf_start *start);

/* rejoin: as boot start. live, with the same instance id. */
void hf_row_rejoin(struct hf_plan *plan, const struct hf_start *start);

/* local restart: as boot start, and nobody leads. */
void hf_row_local_restart(struct hf_plan *plan, const struct hf_start *start);

/* succeed: as boot start, and also M(health) that gives leave to be the heir of the life that
 * crashed, the exit to the byte as that life's end wrote it (so it was the last one), M(task)
 * as that life had it. live; the task acknowledged by the new life with one more attempt, which
 * goes on from `restored` and says whose it was; the exit, which says that the leave is used.
 * The leave names a life that is over for good, and who leads clears it when it has counted the
 * start: so it serves once. An order changes health, and this makes a life: of the two, one
 * comes to pass. */
struct hf_succession {
    int64_t heir_of; /* the life that crashed */
    struct hf_seen health;
    struct hf_seen_task task;
    int64_t restored; /* 0: from the beginning */
    const char *reason;
    struct hf_bytes exit_text; /* as the end wrote it, or is about to */
    const Holdfast__V1__Exit *exit;
};

void hf_row_succeed(struct hf_plan *plan, const struct hf_start *start,
                    const struct hf_succession *succession);

/* external start (sidecar): live; a command, if any, deleted. */
void hf_row_external_start(struct hf_plan *plan, const struct hf_start *start);

/* reap: A. A live key of ours that stands for no process is deleted. */
void hf_row_reap(struct hf_plan *plan, const struct hf_life *life);

/* claim: A, M(task) pending. acknowledged by this life; index entry deleted. */
void hf_row_claim(struct hf_plan *plan, const struct hf_life *life,
                  const struct hf_seen_task *task);

/* start, restore, complete, fail: A, M(task). `next` is the task as it shall be; its result, if
 * that is too long for the record. */
void hf_row_task(struct hf_plan *plan, const struct hf_life *life,
                 const struct hf_seen_task *task, const Holdfast__V1__Task *next);

/* release: A, M(task). pending without an owner; index entry. */
void hf_row_release(struct hf_plan *plan, const struct hf_life *life,
                    const struct hf_seen_task *task, const char *reason);

/* checkpoint: A, M(task), entry absent. The entry; its body, if that lies in etcd (else without
 * data); the task's head, and where that lies. */
void hf_row_checkpoint(struct hf_plan *plan, const struct hf_life *life,
                       const struct hf_seen_task *task, const Holdfast__V1__Checkpoint *entry,
                       struct hf_bytes body);

/* report: A, M(report), so that a late copy does not bring back an old one. */
void hf_row_report(struct hf_plan *plan, const struct hf_life *life,
                   const struct hf_seen *report, const Holdfast__V1__Report *next);

/* death seen, or leave: A. exit with its evidence; live deleted. */
void hf_row_end(struct hf_plan *plan, const struct hf_life *life, const struct hf_seen *exit,
                const Holdfast__V1__Exit *next);

/* adopt: the new A, M(task) owned by the life before. The owner's incarnation. */
void hf_row_adopt(struct hf_plan *plan, const struct hf_life *life,
                  const struct hf_seen_task *task);

/* reset: L, M(task), M(recovery), the owner's life gone. The task queued, or pending at once,
 * with one more attempt; the recovery. The health of the owner, which counts its recoveries,
 * goes with it: by an order, or by itself. */
struct hf_reset {
    bool pending; /* no backoff is due */
    const char *reserved_for;
    const char *reason;
    const char *next; /* of one that is queued: what happens when its backoff is over */
    const Holdfast__V1__Recovery *recovery; /* as it shall be */
};

void hf_row_reset(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_seen_task *task, const struct hf_seen *recovery,
                  const struct hf_reset *reset);

/* order a start: L, M(health) with no command outstanding, the host's command absent, live
 * absent, M(spec), M(wanted), M(recovery) if for a task. command; health; recovery. */
struct hf_order {
    const char *agent;
    const Holdfast__V1__Command *command;
    const Holdfast__V1__Health *health; /* as it shall be, naming the command's host */
    struct hf_seen spec;
    struct hf_seen wanted;
    struct hf_seen health_seen;
    /* For a task whose recovery is not part of this plan already; else NULL. */
    const struct hf_seen_recovery *recovery;
    const Holdfast__V1__Recovery *next_recovery;
};

void hf_row_order(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_order *order);

/* promote: L, M(task) queued, M(recovery). pending; index entry. */
void hf_row_promote(struct hf_plan *plan, const struct hf_term *term,
                    const struct hf_seen_task *task, const struct hf_seen *recovery);

/* demote: L, M(task) pending. queued; index entry deleted. Of a task that nobody has, when more
 * of its role run than may; `next` is what it waits for. */
void hf_row_demote(struct hf_plan *plan, const struct hf_term *term,
                   const struct hf_seen_task *task, const char *reason, const char *next);

/* refuse a command: my host's live, M(command), M(task) if one is reserved. exit start_failed;
 * the command deleted; the task for anyone. `task` may be NULL. */
struct hf_refusal {
    const char *host;
    int64_t host_lease;
    int64_t host_create_rev;
    const char *agent;
    struct hf_seen command;
    struct hf_seen exit;
    const Holdfast__V1__Exit *next_exit;
};

void hf_row_refuse(struct hf_plan *plan, const struct hf_refusal *refusal,
                   const struct hf_seen_task *task);

/* withdraw a command: L, M(command), M(health), M(task) if one is reserved, M(recovery) if it
 * was ordered for one. The command deleted; health; the task for anyone; the recovery. */
struct hf_withdrawal {
    const char *host;
    const char *agent;
    struct hf_seen command;
    struct hf_seen health;
    const Holdfast__V1__Health *next_health;
    const struct hf_seen_task *task; /* reserved by it; may be NULL */
    const char *recovery_of;         /* the task; NULL for none */
    struct hf_seen recovery;
    const Holdfast__V1__Recovery *next_recovery;
};

void hf_row_withdraw(struct hf_plan *plan, const struct hf_term *term,
                     const struct hf_withdrawal *withdrawal);

/* take back: L, M(task). pending, for anyone; index entry. Of a task that its owner does not
 * start, or that is reserved for an agent which does not come for it. */
void hf_row_take_back(struct hf_plan *plan, const struct hf_term *term,
                      const struct hf_seen_task *task, const char *reason);

/* review: L, M(task), M(recovery), the owner's life gone if it has one. needs_review; index
 * entry deleted; the recovery if there shall be one (`next_recovery` may be NULL). */
void hf_row_review(struct hf_plan *plan, const struct hf_term *term,
                   const struct hf_seen_task *task, const struct hf_seen *recovery,
                   const Holdfast__V1__Recovery *next_recovery, const char *reason);

/* end an incarnation: L, M(health); or by an operator: M(wanted). `end_upto` in either. */
void hf_row_end_by_controller(struct hf_plan *plan, const struct hf_term *term,
                              const char *agent, const struct hf_seen *health,
                              const Holdfast__V1__Health *next);

/* end an incarnation that stands still: also M(report) and M(task), since anything that it says
 * or does would speak for it. */
struct hf_stalled {
    const char *agent;
    struct hf_seen health;
    const Holdfast__V1__Health *next; /* with its `end_upto` */
    struct hf_seen report;
    struct hf_seen_task task;
};

void hf_row_end_stalled(struct hf_plan *plan, const struct hf_term *term,
                        const struct hf_stalled *stalled);

void hf_row_want(struct hf_plan *plan, const char *agent, const struct hf_seen *wanted,
                 const Holdfast__V1__Wanted *next);

/* cancel: M(task). cancelled; index entry deleted. */
void hf_row_cancel(struct hf_plan *plan, const struct hf_seen_task *task, const char *reason);

/* retry: M(task), M(recovery). pending; index entry; the recovery's counters cleared. */
void hf_row_retry(struct hf_plan *plan, const struct hf_seen_task *task,
                  const struct hf_seen *recovery);

/* remove an agent: live absent, M(spec). All its keys. */
void hf_row_remove_agent(struct hf_plan *plan, const char *agent, const struct hf_seen *spec);

/* sweep: L, live absent, M(spec). All keys of a transient agent that is over, but for what a
 * person wants of it. */
void hf_row_sweep(struct hf_plan *plan, const struct hf_term *term, const char *agent,
                  const struct hf_seen *spec);

/* sweep a chain: L, M(task) that is over. Its checkpoints, entries and bodies; the task, which
 * names none any more. */
void hf_row_sweep_chain(struct hf_plan *plan, const struct hf_term *term,
                        const struct hf_seen_task *task);

/* remove a task: M(task) that is over. All its keys. */
void hf_row_remove_task(struct hf_plan *plan, const struct hf_seen_task *task);

/* remove a host: live absent, M(record). Its record. */
void hf_row_remove_host(struct hf_plan *plan, const char *host, const struct hf_seen *record);

/* any other controller write: L, M(target). The target; NULL deletes it. */
void hf_row_write(struct hf_plan *plan, const struct hf_term *term, struct hf_key key,
                  const struct hf_seen *target, const ProtobufCMessage *next);

/* close the counting of a task that is final: L, M(recovery), M(task), since a backup may know
 * nothing of its end. The recovery. */
void hf_row_close(struct hf_plan *plan, const struct hf_term *term,
                  const struct hf_seen_task *task, const struct hf_seen *recovery,
                  const Holdfast__V1__Recovery *next);

/* any other operator write: M(target). The target. */
void hf_row_operate(struct hf_plan *plan, struct hf_key key, const struct hf_seen *target,
                    const ProtobufCMessage *next);

/* L alone, for a plan that writes nothing but the audit trail. */
void hf_row_lead(struct hf_plan *plan, const struct hf_term *term);

/* what an action leaves in the audit trail, beside any other row: its number is free. The
 * entry. */
void hf_row_event(struct hf_plan *plan, int64_t seq, const Holdfast__V1__Event *event);

#endif
