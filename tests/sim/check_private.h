/* check_private.h - the inside of the checker, shared by its files and by nobody else. */
#ifndef HFS_CHECK_PRIVATE_H
#define HFS_CHECK_PRIVATE_H

#include "holdfast/v1/records.pb-c.h"
#include "schema/keys.h"
#include "sim/check.h"

enum {
    HFS_NAME = 64,
    HFS_DONE = 64,
    HFS_TOLD = 64,
    HFS_POISONS = 8,
    HFS_WRITTEN = 4096,
    HFS_UNSTARTED =
        120000, /* after so long a task that was only acknowledged may be taken back */
    /* After a restore etcd has forgotten what it had promised to those who came later: as long
     * as a lease and the grace last. */
    HFS_RESTORE_EXCUSE = 60000,
};

/* A registration. */
struct c_life {
    bool present;
    hf_ms since, gone_at; /* when it came, and when it went */
    bool missed;          /* etcd ended it: nobody said so */
    hf_ms proven_at;      /* the last Txn of its agentd that found it there left then */
    hf_ms ttl;
    int64_t create_rev;
    int64_t lease;
    char host[HFS_NAME], boot[HFS_NAME];
    char instance[HFS_NAME];
};

struct c_agent {
    char name[HFS_NAME];
    struct c_life life;  /* the last one; `present` while it is there */
    bool stopped;        /* by `wanted` */
    hf_ms stopped_at;    /* when it was last, or ceased to be */
    int64_t end_upto;    /* the highest life that anybody has ordered to end */
    bool removed;        /* its spec was there, and was deleted, */
    hfs_rev removed_rev; /* at this revision */
    hf_ms spec_since;    /* when that was written first, */
    hf_ms spec_at;       /* and changed last, */
    bool unreadable;     /* and whether to something that nobody can read */
    bool forgotten;      /* it was removed since its last life, with all that was said of it */
    bool holds;          /* its fence policy: it runs on through an outage */
    size_t commands;     /* outstanding, on all hosts */
    char command_host[HFS_NAME], command_task[HFS_NAME]; /* of the last one */
    hf_ms command_at;
    hf_ms exit_at;                /* when that was written, */
    int64_t exit_rev;             /* incarnation of which the last exit tells; 0: of none, */
    int64_t exit_mod;             /* but of something after this revision */
    char exit_instance[HFS_NAME]; /* the last process whose end was written */
    int64_t begun_rev;            /* incarnation that a process last began as, and ... */
    char begun_boot[HFS_NAME];    /* ... the agentd that let it go, */
    hf_ms begun_at;               /* and when */
    struct hf_backoff orders;     /* when starts were ordered, or made by leave, */
    int64_t leave;                /* which this life has by its health record; 0: none, */
    int64_t heir_of;              /* and the last that was made use of */
    hf_ms next_start;             /* that was promised, on the cluster clock; 0: none */
    struct hf_backoff recovered;  /* when tasks of lives that had ended were recovered, */
    int64_t recovered_rev;        /* and the newest of these lives */
    char passed_host[HFS_NAME];   /* that did not serve its start, */
    int64_t passed_lease;         /* the lease it had then, */
    hf_ms passed_at;              /* and when that was withdrawn, */
    int64_t passed_term;          /* by whom */
    char inquiry[HFS_NAME];       /* the last that it was asked, */
    hf_ms asked_at, reported_at;  /* when, and when its last report was written, */
    int64_t health_upto;          /* and up to which life it was to end */
};

/* A process that began, and the number that it was given to show to others. */
enum { C_EXCUSED = 4 };

struct c_begun {
    char agent[HFS_NAME], instance[HFS_NAME];
    int64_t number;
    hf_ms at; /* when it began */
    /* Tasks that people took from it, which it has not heard of, in a ring. */
    char excused[C_EXCUSED][HFS_NAME];
    size_t excused_count;
    hf_ms excused_at; /* the last of them */
};

/* A revision that a controller made. */
struct c_done {
    hfs_rev revision;
    const struct hfs_process *writer;
    hf_ms at;
};

/* A host that joined. */
struct c_host {
    char name[HFS_NAME];
    bool recorded, present;
    bool cordoned;
    hf_ms free_since; /* when it was no longer cordoned; 0: never was */
    int64_t lease;
    hf_ms since, gone_at;
    hf_ms avoided_at; /* when it last could not start something; 0: never */
};

struct c_task {
    char name[HFS_NAME];
    char role[HFS_NAME];
    bool exists, indexed;
    Holdfast__V1__Task__State state;
    char owner[HFS_NAME]; /* empty: nobody */
    int64_t owner_rev;
    int32_t attempt;
    bool rooted;                  /* only some hosts can go on with it */
    int64_t head;                 /* of its checkpoints */
    int64_t restored;             /* that its owner was given */
    size_t outcomes;              /* of its recoveries */
    bool is_open;                 /* what came of the last of them is not known */
    int64_t poisons[HFS_POISONS]; /* checkpoints that killed two successors */
    size_t poison_count;
    char op_ids[3][HFS_NAME];
    hf_ms taken_at, reset_at;
    hf_ms sent_at;     /* when a controller last sent a Txn that compares it; 0: never */
    hf_ms withheld_at; /* when one was last kept back; 0: never */
    int32_t resets;    /* since a success or a person's word, */
    int32_t attempts;  /* and as its record counts them */
    hf_ms next_at;     /* that was promised, on the cluster clock; 0: none */
    char reserved_for[HFS_NAME];
    char owner_instance[HFS_NAME]; /* of its owner, when it became that */
    hf_ms runs_at;                 /* when it last became pending, from a state in which ... */
    bool promoted; /* ... nobody could have it; and whether by a leader's word */
};

struct c_lease {
    int64_t id;
    const struct hfs_process *owner;
    hf_ms promised_until;
    bool gone;
};

struct c_process {
    char agent[HFS_NAME];
    char instance[HFS_NAME];
    int64_t lease; /* that it was registered under last */
};

/* When a key was changed last, by anybody. */
struct c_written {
    uint32_t hash;
    size_t len; /* 0: none */
    hf_ms at;
    bool there;
    hfs_rev revision; /* and to what */
    uint32_t text;
};

/* A checkpoint in etcd. */
struct c_kept {
    char task[HFS_NAME];
    int64_t number; /* of its body */
    int64_t seq;    /* of the entry that names it */
    bool there;     /* the body is, */
    bool named;     /* and the entry */
    bool touched;   /* by this revision */
};

/* Something that the audit trail tells. */
struct c_told {
    uint32_t sense; /* a hash of it */
    hfs_rev revision;
    hf_ms at;       /* when it was told last, */
    unsigned times; /* and how often, each time soon after the one before */
};

struct c_change {
    const struct hfs_entry *entry;
    bool deleted;
    struct hf_key key;
    ProtobufCMessage *record;
    char scratch[HF_KEY_SIZE];
};

struct hfs_check {
    struct hfs_world *world;
    struct hfs_etcd *etcd;
    const char *ns;
    hfs_rev revision;
    const struct hfs_process *writer;
    const struct hfs_process *from;  /* who sent what is being served */
    const struct hfs_letter *letter; /* what is being served, while `writer` is somebody */
    bool calm;
    bool watched; /* see hfs_check_set_watched */
    hf_ms slack;  /* what is judged at the world's time happened up to so much earlier */
    struct c_done done[HFS_DONE]; /* the last writes of controllers, in a ring */
    size_t done_count;
    struct c_kept *kept;
    size_t kept_count, kept_cap;
    struct c_told told[HFS_TOLD]; /* the last of the audit trail, in a ring */
    size_t told_count;
    hf_ms lossy_at; /* when a watch may last have left out an event; -1: never */
    struct c_change *changes;
    size_t change_count, change_cap;
    struct c_agent *agents;
    size_t agent_count, agent_cap;
    struct c_task *tasks;
    size_t task_count, task_cap;
    struct c_host *hosts;
    size_t host_count, host_cap;
    struct c_lease *leases;
    size_t lease_count, lease_cap;
    struct c_process *processes; /* that run */
    size_t process_count, process_cap;
    struct c_begun *begun; /* processes that ever ran */
    size_t begun_count, begun_cap;
    int64_t leader_rev, leader_lease; /* 0: nobody leads */
    hf_ms leader_since;
    int64_t past_rev, past_lease; /* of whoever led when etcd was restored */
    hf_ms given_up[HFS_DONE];     /* when somebody was whom nobody saw die, in a ring */
    size_t given_up_count;
    hf_ms clock, clock_at; /* the cluster clock, and when it was read to be stored */
    hf_ms hosts_gone_at;   /* when the last host that was live went */
    int64_t term;          /* the highest */
    hf_ms restored_at;
    hf_ms forgot_at; /* when a controller last ended, with what it alone knew; -1: never */
    bool was_restored;
    struct hf_recover_policy recover;
    struct hf_restart_policy restart;
    uint32_t running_max;
    hf_ms sweep_after; /* 0: that is not judged */
    struct hfs_check_counts counts;
    struct c_written written[HFS_WRITTEN];
    char violation[512];
};

struct c_agent *hfs_check_agent(struct hfs_check *check, const char *name);
struct c_task *hfs_check_task(struct hfs_check *check, const char *name);
/* What the revision that is being judged did to that key; NULL: nothing. */
const struct c_change *hfs_check_find_change(const struct hfs_check *check,
                                             enum hf_key_kind kind, const char *name);
struct c_host *hfs_check_host(struct hfs_check *check, const char *name);
struct c_lease *hfs_check_find_lease(struct hfs_check *check, int64_t id);
struct c_process *hfs_check_find_process(struct hfs_check *check, const char *instance);
const char *hfs_check_state_name(Holdfast__V1__Task__State state);
bool hfs_check_has_begun(const struct hfs_check *check, const char *instance);
bool hfs_check_is_final(Holdfast__V1__Task__State state);

/* What is being served was made up from a history that etcd forgot, or may have been: whoever
 * follows it needs a moment to notice. */
bool hfs_check_is_void(const struct hfs_check *check);

/* Whoever writes may not have been told something, and has not listed everything since. */
bool hfs_check_is_blind(const struct hfs_check *check);

/* It may have been so within that time, and what it concluded then holds. */
bool hfs_check_was_blind(const struct hfs_check *check, hf_ms within);

/* etcd has taken back what it had promised, or forgot it when it was restored: two processes of
 * one agent may be excused, and one that is not registered. */
bool hfs_check_excuses(struct hfs_check *check, int64_t lease);

/* check_rows.c: one change against what was before its revision, taking it in, and what must
 * hold when the whole revision was. */
void hfs_check_judge(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply(struct hfs_check *check, const struct c_change *change);
void hfs_check_judge_after(struct hfs_check *check, const struct c_change *change);

/* check_leader.c */
void hfs_check_judge_leader(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_leader(struct hfs_check *check, const struct c_change *change);
void hfs_check_judge_writer(struct hfs_check *check, const struct c_change *change);

/* check_moments.c: whether it is the time for it. An agent's start is ordered; a task is taken
 * from the life of its owner that is called `owner_rev`. */
void hfs_check_judge_order(struct hfs_check *check, const struct c_agent *agent);
void hfs_check_judge_reset(struct hfs_check *check, const struct c_task *task);
/* A start of that agent was ordered on a host, or withdrawn. */
void hfs_check_judge_host(struct hfs_check *check, const struct c_agent *agent,
                          const char *host);
void hfs_check_note_withdrawn(struct hfs_check *check, struct c_agent *agent);
/* What has to be over by now. */
void hfs_check_judge_waits(struct hfs_check *check);
void hfs_check_judge_swept(struct hfs_check *check, const struct c_change *change);

/* check_starts.c */
void hfs_check_judge_spec(struct hfs_check *check, const struct c_agent *agent);
void hfs_check_judge_left(struct hfs_check *check, const struct c_agent *agent,
                          const struct c_change *change);
void hfs_check_judge_ended(struct hfs_check *check, const struct c_agent *agent,
                           const Holdfast__V1__Exit *exit);

/* check_heirs.c: starts without an order, by leave. Whether this revision makes one; and
 * whether a task goes over with it. */
bool hfs_check_is_heir(const struct hfs_check *check, const char *agent);
void hfs_check_judge_heir(struct hfs_check *check, const struct c_agent *agent);
void hfs_check_apply_heir(struct hfs_check *check, struct c_agent *agent);
bool hfs_check_is_inherited(const struct hfs_check *check, const struct c_task *old,
                            const Holdfast__V1__Task *task);
void hfs_check_judge_inherited(struct hfs_check *check, const struct c_task *old,
                               const Holdfast__V1__Task *task, int64_t owner_rev);

/* check_limits.c: limits and backoff. */
void hfs_check_judge_clock(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_clock(struct hfs_check *check, const struct c_change *change);
void hfs_check_judge_pace(struct hfs_check *check, const struct c_agent *agent);
void hfs_check_apply_health(struct hfs_check *check, const struct c_change *change);
void hfs_check_judge_recovered(struct hfs_check *check, const struct c_task *old);
void hfs_check_judge_deaths(struct hfs_check *check, const struct c_task *old);
void hfs_check_apply_deaths(struct hfs_check *check, const struct c_task *old);
void hfs_check_judge_closed(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_promise(struct hfs_check *check, const struct c_change *change);
/* A task is promoted, or demoted, by a controller; or what it is was changed. */
void hfs_check_judge_promoted(struct hfs_check *check, const struct c_task *old);
void hfs_check_judge_demoted(struct hfs_check *check, const struct c_task *old);
void hfs_check_note_running(struct hfs_check *check, struct c_task *task,
                            Holdfast__V1__Task__State before, bool by_controller);

/* check_stalled.c: who is ended because it stands still. */
void hfs_check_judge_stalled(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_inquiry(struct hfs_check *check, const struct c_change *change);

/* check_roles.c: who asks for what. */
void hfs_check_judge_role(struct hfs_check *check, const struct hfs_process *from,
                          const struct hfs_request *request);

/* check_txn.c: a Txn by itself. */
void hfs_check_judge_repeat(struct hfs_check *check, const struct hfs_letter *letter);
void hfs_check_judge_refused(struct hfs_check *check, const struct hfs_letter *letter);
void hfs_check_note_done(struct hfs_check *check);
void hfs_check_judge_txn(struct hfs_check *check, const struct hfs_letter *letter,
                         const struct hfs_answer *answer);

/* What a backup brought back is older than it looks. */
static inline bool hfs_check_is_of_this_past(const struct hfs_check *check, hf_ms moment)
{
    return !check->was_restored || moment > check->restored_at;
}

/* check_seen.c; what is in a backup was written at any time before. */
void hfs_check_judge_seen(struct hfs_check *check, const struct c_change *change);
void hfs_check_forget_seen(struct hfs_check *check);

/* check_effects.c */
/* A Txn of an agentd has succeeded. */
void hfs_check_note_proof(struct hfs_check *check);
void hfs_check_excuse(struct hfs_check *check, const char *instance, const char *task);

/* check_bodies.c: what a revision did is taken in, and judged when all of it was. */
void hfs_check_apply_entry(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_body(struct hfs_check *check, const struct c_change *change);
void hfs_check_judge_bodies(struct hfs_check *check, bool judge);

/* check_told.c */
void hfs_check_judge_told(struct hfs_check *check, const struct c_change *change);

/* check_restored.c */
void hfs_check_judge_recovery(struct hfs_check *check, const struct c_change *change);
void hfs_check_apply_recovery(struct hfs_check *check, const struct c_change *change);

#endif
