/* node_private.h - what the parts of the node share.
 *
 *     node.c         life, events in, intents out
 *     node_apply.c   what etcd told: cells, the index of claimable work, agents of other hosts
 *     node_look.c    what hangs on our lease although nobody here knows of it
 *     node_host.c    the host's own registration, and the specs of its agents
 *     node_start.c   from a reason to start to a program that begins
 *     node_ahead.c   what a start will need, read before it is ordered
 *     node_heir.c    who crashed and is started again at once, by leave
 *     node_chain.c   which checkpoint a recovery, or an agent that asks, goes on from
 *     node_fence.c   the lease: freeze, thaw, rejoin
 *     node_adopt.c   the tasks of a life before
 *     node_end.c     from a reason to end to an exit that is written
 *     node_ask.c     what agents ask for, and the answers
 *     node_task.c    asks about a task
 *     node_claim.c   asks for a task
 *     node_report.c  what agents say of themselves
 *     node_view.c    policy, ranges, and what holds of an agent
 *
 * A decider of an agent looks at one concern and says GO_ON (nothing here), INTENT (*ret is
 * one), REST (nothing more about this agent for now), or an error. */
#ifndef HF_CORE_NODE_PRIVATE_H
#define HF_CORE_NODE_PRIVATE_H

#include "base/id.h"
#include "core/chain.h"
#include "core/index.h"
#include "core/mutant.h"
#include "core/node.h"
#include "core/recover.h"
#include "core/task.h"

enum { NODE_GO_ON = 0, NODE_INTENT = 1, NODE_REST = 2 };

enum {
    NODE_LIVES = 8,       /* of one process that are remembered for adoption */
    NODE_TEXT_SIZE = 256, /* of a sentence that is kept */
    NODE_SPREAD = 64,     /* that a claim can choose from at most */
    NODE_PARTED = 4,      /* tasks that a process had which are looked at again */
};

enum node_process {
    PROCESS_NONE,
    PROCESS_MAKING, /* asked for */
    PROCESS_HELD,   /* made; its program has not begun */
    PROCESS_BEGUN,
    PROCESS_ENDED, /* gone; its end may have to be written */
    PROCESS_STUCK, /* survived SIGKILL; its end may have to be written */
};

enum node_registration {
    REG_NONE,
    REG_HOLDS, /* `life` is in etcd, as far as we know */
    REG_LOST,  /* `life` is not, any more */
};

enum node_op {
    OP_NONE,
    OP_HOST,
    OP_RECORD,
    OP_SPEC,
    OP_START,
    OP_REFUSE,
    OP_REJOIN,
    OP_SETTLE, /* read all tasks */
    OP_ADOPT,
    OP_ADOPT_READ, /* one task, again */
    OP_RECOVERED,  /* read whether a life of it was recovered from */
    OP_REAP,
    OP_END,
    OP_REPORT,
    OP_COMMAND_TASK, /* read the task that a command names */
    OP_RECOVERY,     /* read what became of its earlier recoveries */
    OP_CHAIN,        /* read its checkpoints */
    OP_VERIFY,
    OP_ASK, /* read or write for the ask that `asking` points to */
};

/* What is under way: one thing at a time. */
struct node_flight {
    uint64_t token; /* 0: nothing */
    enum node_op op;
    bool is_void; /* what it was based on is not true any more: forget what became of it */
    int64_t lease;
    int32_t generation;
};

enum node_end {
    END_NONE,
    END_STOPPED,  /* by `wanted` */
    END_UPTO,     /* this incarnation was to end */
    END_LEFT,     /* it said goodbye */
    END_UNWELL,   /* it answers nothing */
    END_FENCED,   /* it could not be proven, or not be adopted */
    END_REPLACED, /* somebody else is this agent now, or shall be */
};

enum node_asked { ASKED_NOTHING, ASKED_STOP, ASKED_KILL };

enum node_why { START_NONE, START_COMMAND, START_BOOT, START_LOCAL, START_HEIR };

/* The walk along a chain of checkpoints. */
enum node_walk { WALK_NONE, WALK_RECOVERY, WALK_CHAIN, WALK_VERIFY, WALK_OVER };

enum node_stage {
    ASK_NEW,
    ASK_READ,     /* `cell` is how the task stands */
    ASK_SENT,     /* something is under way */
    ASK_ANSWERED, /* err, why, task: to be given */
};

struct node_ask {
    struct node_ask *next;
    uint64_t token;
    enum hf_ask_kind kind;
    enum node_stage stage;
    char *task; /* that it is about; of a claim: that it tries to get */
    char *text;
    hf_ms until;
    ProtobufCMessage *message; /* report, task or checkpoint; of RESTORE: the entry */
    char *body;                /* of a checkpoint that lies in etcd; or NULL */
    size_t body_len;
    char op_id[HF_ID_LEN + 1]; /* one for all attempts */
    struct hf_cell cell;       /* the task as it was read; nothing: there is none */
    ProtobufCMessage *reply;   /* the task as it shall be, */
    struct hf_bytes written;   /* and its text; owned */
    size_t cursor;             /* of a claim: owned tasks that were looked at */
    bool looked;               /* of a claim: all of them were */
    bool looks_back;           /* of a claim: it is at those that it has parted with */
    bool reread;               /* an attempt was refused, or its outcome is not known */
    bool full;                 /* etcd had no space for it */
    int err;
    char why[NODE_TEXT_SIZE];
    int64_t seq;
    bool existed;
    bool stop;
    bool beats, speaks; /* of a report */
    size_t tasks, nudges;
};

struct node_entry {
    const char *name; /* the task */
    int64_t create_rev;
    int32_t priority;
    char *reserved_for;
    bool elsewhere;   /* it goes on from files that this host does not have */
    hf_ms skip_until; /* it was found taken */
};

struct node_role {
    char *name;
    struct hf_index entries; /* node_entry */
};

/* A task that an agent owns, as far as we know. */
struct node_owned {
    char *name;
    int64_t claim_rev; /* a claim that found it so may still arrive; 0: none */
    bool claimed;      /* more than once: what refused the last may have been one of ours */
    bool begun;        /* that it was started is committed */
    bool found;        /* while everything is read: it is still its own, or over */
    bool unheard;      /* it was found in etcd: its process may know nothing of it */
};

/* A task that an agent had. */
struct node_parted {
    char *name; /* NULL: none */
    bool shown; /* as its own again, when it was last looked at */
};

/* The record of a start, in one piece: it points into itself, and to the agent. */
struct node_live {
    struct hf_start start;
    Holdfast__V1__Live live;
    Holdfast__V1__Live__Cadences cadences;
    Google__Protobuf__Duration ttl, heartbeat, ping;
};

/* What was read before a start is ordered, or beside its task. */
struct node_ahead {
    enum { AHEAD_NONE, AHEAD_CHAIN, AHEAD_BODY, AHEAD_OVER } stage; /* NONE: not expected */
    char task[HF_NAME_SIZE]; /* that it was at when it ended */
    uint64_t token;          /* of what is under way; 0: nothing */
    int64_t chain_rev;       /* the chain is as of it, at least; 0: not known yet */
    int64_t whole;           /* its newest entry, if that was found to be whole */
    bool partial;            /* of the chain only its newest entry is known */
    hf_ms until;             /* then it is too old */
    bool make;               /* a process is to be made as well */
    uint64_t recovery_token;
    int64_t recovery_rev; /* of the command that its recovery was read for */
};

/* Whether etcd shows it is not known yet: it was made for a link before this one. */
#define NODE_SPARE_UNSEEN ((hf_ms)-1)

/* A process that was made for an order which is expected while the end of the one before it is
 * written. */
struct node_spare {
    enum node_process process; /* NONE, MAKING or HELD */
    int32_t pid;
    int64_t start_time;
    hf_ms until; /* then it is discarded, unless there is something to start, or UNSEEN */
    char instance[HF_ID_LEN + 1];
};

/* What it takes to start the heir of a life without an order. */
struct node_heir {
    int64_t of;          /* the life that crashed; 0: an order is needed */
    hf_ms until;         /* then it is for the leader */
    struct hf_cell task; /* of the life that runs, as it wrote it last; nothing: not known. Its
                            record is there when it is needed, as is that of the next */
    struct hf_cell exit; /* of the life that crashed, as it was sent */
    struct node_flight flight; /* its start, behind the end that is under way */
    bool sent;                 /* there was one */
    char *resume;              /* the task that it begins with, and ... */
    int64_t restored;          /* ... from what */
};

struct node_agent {
    const char *name;
    hf_ms wake_at;
    hf_ms looked_at;
    ProtobufCMessage *config; /* the spec that it has here; NULL for a guest */

    struct hf_cell spec, live, report, exit, wanted, health, command;

    int64_t start_time;
    hf_ms ping; /* that its processes are promised; 0: as the policy says */
    hf_ms begun_at;
    hf_ms frozen_at; /* below 0: before we were there to see it */

    struct hf_life life; /* name borrowed from above */
    hf_ms lost_at;
    struct hf_life lives[NODE_LIVES]; /* before that one, of the same process */
    size_t life_count;
    struct hf_cell *todo; /* tasks to be adopted */
    size_t todo_count, todo_cap;
    struct node_owned *owned;
    size_t owned_count, owned_cap;
    struct node_parted parted[NODE_PARTED]; /* newest first */
    hf_ms look_back_at; /* when they are looked at again; 0: not decided yet */

    struct node_flight flight;
    int64_t wait_rev; /* decided on what was told up to it, or ... */
    hf_ms retry_at;   /* ... not before then */
    hf_ms pause_until;

    /* Starting. */
    hf_ms needless_at;   /* what was made is discarded then; NEVER: it is needed */
    int64_t command_rev; /* of the command that `task` was read for */
    int64_t read_rev;    /* of the command whose task is being read */
    int64_t carried_rev; /* of the command whose carried task was looked at */
    struct hf_cell task; /* that the command names */
    char *resume;        /* the task that it begins with */
    int64_t head;        /* of the chain that is walked */
    struct hf_cell *chain;
    size_t chain_count, chain_cap;
    struct hf_chain walker;
    struct node_ahead ahead;
    struct node_spare spare;
    struct node_heir heir;
    int64_t succeeded;                 /* the last life that an heir was sent for, */
    char succeeded_with[HF_NAME_SIZE]; /* and with what */
    ProtobufCMessage *kept;            /* the last entry that it committed; NULL: not known */
    int64_t kept_rev;                  /* its task was read at */
    struct hf_recover recover;
    int64_t chain_at;
    int64_t checkpoint;          /* to begin from */
    ProtobufCMessage *elsewhere; /* an entry that only another host can read; or NULL */
    struct hf_restart restart;

    /* Ending. */
    hf_ms asked_at;
    hf_ms extended_to; /* it has so long to end, should that be longer than its grace */
    hf_ms leave_by;    /* below 0: it said so before we were there to hear it */

    /* Asks and reports. */
    struct node_ask *asks;
    size_t ask_count;
    struct node_ask *asking;
    struct node_ask *walking; /* that the chain is walked for; NULL: for a start, if at all */
    uint64_t verifying;       /* token of a body that is looked at for it; 0: none */
    ProtobufCMessage *said;   /* its last report */
    double percent;
    hf_ms progress_wall;
    hf_ms said_wall; /* when it last said something: grows with every word; 0: never */
    hf_ms beat_wall; /* when its last heartbeat came; 0: none did */
    struct hf_receipt receipt; /* for the last thing that it was asked */
    char *reported;            /* what was written last, without what nobody wants to see */
    char *reporting;           /* what is being written */
    hf_ms reported_at;
    ProtobufCMessage *suspicion; /* what its agentd has against it; NULL: nothing */
    hf_ms unwell_at;

    /* What holds, for people. */
    const char *why;
    const char *next;
    hf_ms at;

    /* Enums, texts and flags of all of that, together for their size. */
    enum node_process process;
    int32_t pid;
    enum node_registration reg;
    enum node_why start_why;
    enum node_walk walk;
    enum node_end end;
    enum node_asked asked;
    Holdfast__V1__Exit__Kind kind;
    int32_t status, signal;
    char subject[HF_NAME_SIZE + 8];
    char instance[HF_ID_LEN + 1];
    char discarded[HF_ID_LEN + 1]; /* what the intent to do so points to */
    char failed[NODE_TEXT_SIZE];   /* why it could not be made */
    char end_text[NODE_TEXT_SIZE];
    char exit_text[NODE_TEXT_SIZE];
    char note[NODE_TEXT_SIZE];
    bool guest; /* of another host's configuration, to be started here */
    bool known; /* it is in what is mirrored */
    bool dirty;
    bool spec_written; /* once is enough: we do not fight about it */
    bool spec_stood;   /* an earlier link had written it */
    bool ready;
    bool frozen;      /* it stands still, or was told to */
    bool settled;     /* what it owns is known, and its own */
    bool unadopted;   /* it can never be */
    bool tasks_read;  /* `todo` is complete */
    bool adopt_again; /* the last of them has to be read again */
    bool blind;       /* what its process began before this link came is not known */
    bool doubtful;    /* a task of it was cancelled, and may have been taken from it before */
    bool started;     /* a process was let go since this agentd began */
    bool boot_over;
    bool start_sent;
    bool chain_waited;
    bool leaving;
    bool unwell;
    bool cleared; /* it is well, whatever a link before this one has suspected */
    bool core;
    bool alert_stuck;
    bool said_new;
    bool has_progress;
    bool progress_newest; /* no heartbeat has told of any since */
    bool has_reported;
    bool suspicion_new; /* it is another one than was written, ... */
    bool telling;       /* ... that it is unwell is being written, ... */
    bool suspected;     /* ... and was */
    bool receipt_new;
};

struct hf_node {
    char *ns, *host, *boot_id;
    ProtobufCMessage *record; /* of the host, as configured */
    struct hf_node_policy policy;
    uint64_t entropy;
    uint64_t mutants; /* rules that are missing */

    struct node_agent **agents;
    size_t agent_count, agent_cap, guest_count;
    struct hf_index by_name;
    struct node_role **roles;
    size_t role_count, role_cap;
    uint64_t ranges_version;
    size_t cursor;

    struct hf_cell meta, leader, host_record, host_live;
    int32_t generation; /* the highest that was told */
    int64_t synced_rev; /* everything up to it was told */
    int64_t told_rev;   /* something of it was */
    hf_ms leaderless_at;

    struct hf_event_lease lease;
    int64_t void_lease; /* known to be gone, whatever the session still says */
    int64_t lost_due;   /* to be told of */
    hf_ms ghosts_until; /* a restored etcd may show lives that are long over */

    struct node_flight host_flight;
    int64_t host_rev; /* create revision of hosts/<me>/live under our lease; 0: not there */
    bool host_told;   /* etcd has the record as it is to be, or had it since we began */
    int64_t host_lease;
    int64_t host_old_lease; /* the one before: its key may be seen for a moment longer */
    int64_t host_wait_rev;
    hf_ms host_retry_at, host_pause_until;
    hf_ms host_wake_at;

    struct node_flight look; /* at what hangs on the lease */
    hf_ms look_at;           /* when it is asked next; 0: not decided yet */

    struct node_ask *orphans; /* of agents that nobody knows, to be answered */
    struct node_ask *replied; /* what the last intent points to */

    uint64_t last_token;
    hf_ms now, wall; /* of the call */
    bool synced;
    bool leaderless;
    bool host_dirty;
    bool host_alerted;
    bool outdated_alerted;
    uint32_t random;
};

/* Cells. */

static inline bool hf_node_exists(const struct hf_cell *cell)
{
    return cell->seen.mod_rev != 0;
}
static inline const Holdfast__V1__Live *hf_node_live(const struct node_agent *a)
{
    return (const Holdfast__V1__Live *)a->live.record;
}
static inline const Holdfast__V1__Command *hf_node_command(const struct node_agent *a)
{
    return (const Holdfast__V1__Command *)a->command.record;
}
static inline const Holdfast__V1__Task *hf_node_task(const struct hf_cell *cell)
{
    return (const Holdfast__V1__Task *)cell->record;
}
static inline struct hf_seen_task hf_node_seen_task(const struct hf_cell *cell)
{
    return (struct hf_seen_task){ .seen = cell->seen, .task = hf_node_task(cell) };
}

static inline bool hf_node_lacks(const struct hf_node *node, enum hf_mutant mutant)
{
    return __builtin_expect((node->mutants & hf_mutant_bit(mutant)) != 0, 0);
}

/* node.c */
void hf_node_keep_text(char out[NODE_TEXT_SIZE], const char *text); /* NULL is empty */
struct node_agent *hf_node_find(const struct hf_node *node, const char *name);
bool hf_node_lease_holds(const struct hf_node *node);
int32_t hf_node_generation(const struct hf_node *node);
/* The records in etcd are of a newer version than we know. Nothing begins then, and nothing is
 * written but the ends of what runs. */
bool hf_node_is_outdated(const struct hf_node *node);
#define HF_NODE_OUTDATED "the records in etcd are newer than this agentd can write"
/* The spec that counts here; NULL: none is known. */
const Holdfast__V1__Spec *hf_node_spec(const struct node_agent *a);
/* Whether what was told is new enough to decide on. */
bool hf_node_is_told(struct hf_node *node, struct node_agent *a);
bool hf_node_owns(const struct hf_life *life, const struct hf_cell *task);
void hf_node_touch_all(struct hf_node *node);
void hf_node_wake(struct node_agent *a, hf_ms at);
void hf_node_say(struct node_agent *a, const char *why, const char *next, hf_ms at);
void hf_node_make_id(struct hf_node *node, char ret_id[HF_ID_LEN + 1]);
/* Begins the plan of *ret, with an op_id of its own. */
void hf_node_plan(struct hf_node *node, struct hf_intent *ret);
/* Intents; all of them return NODE_INTENT, the first also what is wrong with its plan. */
int hf_node_send(struct hf_node *node, struct node_agent *a, enum node_op op, const char *why,
                 struct hf_intent *ret);
int hf_node_read(struct hf_node *node, struct node_agent *a, enum node_op op,
                 struct hf_intent_read read, struct hf_intent *ret);
int hf_node_verify(struct hf_node *node, struct node_agent *a,
                   const Holdfast__V1__Checkpoint *entry, struct hf_intent *ret);
int hf_node_tell(struct node_agent *a, enum hf_process_act act, const char *why,
                 struct hf_intent *ret);
int hf_node_alert(struct hf_node *node, struct node_agent *a, Holdfast__V1__Event__Kind kind,
                  const char *why, struct hf_intent *ret);

/* node_apply.c */
void hf_node_clear_cell(struct hf_cell *cell);
void hf_node_clear_cells(struct hf_cell **list, size_t *count, size_t *cap);
/* The cell gets the change's record, whose owner must forget it then, and its text copied. */
int hf_node_make_cell(const struct hf_fleet_change *change,
                      struct hf_cell *ret_cell) HF_MUST_CHECK;
int hf_node_apply(struct hf_node *node, struct hf_fleet_change *change) HF_MUST_CHECK;
int hf_node_apply_bad(struct hf_node *node, const struct hf_event_bad *bad) HF_MUST_CHECK;
void hf_node_forget(struct hf_node *node);
struct node_role *hf_node_find_role(const struct hf_node *node, const char *name);
int hf_node_need_role(struct hf_node *node, const char *name) HF_MUST_CHECK;
void hf_node_free_role(struct node_role *role);
int hf_node_add_agent(struct hf_node *node, const char *name,
                      struct node_agent **ret_agent) HF_MUST_CHECK;
void hf_node_free_agent(struct node_agent *a);
/* An agent that is not configured here is looked after from now on. What is known of it has to
 * be mirrored first. NULL: there is no room. */
int hf_node_invite(struct hf_node *node, const char *name,
                   struct node_agent **ret_agent) HF_MUST_CHECK;
/* Forgets those that have gone. */
void hf_node_drop_idle_guests(struct hf_node *node);

/* node_look.c */
hf_ms hf_node_look_due(const struct hf_node *node);
int hf_node_look(struct hf_node *node, struct hf_intent *ret);
int hf_node_look_answer(struct hf_node *node,
                        const struct hf_event_answer *answer) HF_MUST_CHECK;

/* node_host.c */
int hf_node_host_next(struct hf_node *node, struct hf_intent *ret) HF_MUST_CHECK;
void hf_node_host_outcome(struct hf_node *node, const struct hf_event_outcome *outcome);
int hf_node_write_spec(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);

/* node_start.c */
Google__Protobuf__Timestamp hf_node_timestamp(hf_ms wall);
Google__Protobuf__Duration hf_node_duration(hf_ms value);
void hf_node_fill_live(const struct hf_node *node, const struct node_agent *a,
                       struct node_live *ret);
void hf_node_forget_start(struct node_agent *a);
bool hf_node_may_begin(const struct hf_node *node);
int hf_node_start(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_let_go(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
/* The task that it begins with; NULL: none, should an earlier attempt have had one. */
int hf_node_set_resumed(struct node_agent *a, const char *task) HF_MUST_CHECK;
void hf_node_on_refused(struct node_agent *a, const struct hf_event_outcome *outcome);
int hf_node_start_answer(struct hf_node *node, struct node_agent *a,
                         struct hf_event_answer *answer) HF_MUST_CHECK;

/* node_ahead.c */
void hf_node_drop_ahead(struct node_agent *a);
/* Its process committed an entry; the message is taken from the ask. */
void hf_node_on_kept(struct node_agent *a, struct node_ask *ask);
void hf_node_drop_kept(struct node_agent *a);
/* It has just died. */
void hf_node_expect_order(struct hf_node *node, struct node_agent *a);
void hf_node_on_spare(struct node_agent *a, const struct hf_event_process *news);
void hf_node_take_spare(struct node_agent *a);
int hf_node_look_ahead(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
/* Of the task that a command names, once, if it is the expected one. */
int hf_node_read_recovery(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_ahead_answer(struct hf_node *node, struct hf_event_answer *answer) HF_MUST_CHECK;
void hf_node_ahead_verified(struct hf_node *node, const struct hf_event_verified *verified);
/* NODE_REST: the chain comes. Else it is there if there still is something ahead. */
int hf_node_wait_ahead(struct hf_node *node, struct node_agent *a);

/* Whether the leader starts it here and now, as far as can be told. */
bool hf_node_may_make(const struct hf_node *node, const struct node_agent *a);

/* node_heir.c */
/* What the ask writes of the task is kept with it, and when it is written with its agent. */
int hf_node_copy_estate(struct node_ask *ask, struct hf_bytes text) HF_MUST_CHECK;
void hf_node_on_estate(struct node_agent *a, struct node_ask *ask, int64_t revision);
void hf_node_drop_estate(struct node_agent *a);
/* What the exit of a life that ended says of its heir. */
int hf_node_announce_heir(const struct hf_node *node, struct node_agent *a,
                          Holdfast__V1__Exit__Succession *ret,
                          Holdfast__V1__Exit *exit) HF_MUST_CHECK;
int hf_node_keep_exit(struct node_agent *a, const struct hf_plan *plan) HF_MUST_CHECK;
/* Its start, while the exit is under way. */
int hf_node_send_heir(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
/* Of that start: the agent, when it is done and the heir has taken the place of the dead. */
struct node_agent *hf_node_heir_outcome(const struct hf_node *node,
                                        const struct hf_event_outcome *outcome);
void hf_node_recognise_heir(const struct hf_node *node, struct node_agent *a);
/* The exit is written: the process is forgotten, and its heir may be started. */
void hf_node_inherit(struct node_agent *a);
/* Its key is gone: the same where the exit shows that it was ours, or may do so in a moment. */
bool hf_node_take_heir(struct node_agent *a);
void hf_node_drop_heir(struct node_agent *a);
bool hf_node_is_heir_due(struct hf_node *node, struct node_agent *a);
int hf_node_plan_heir(struct node_agent *a, const struct node_live *live,
                      struct hf_plan *plan) HF_MUST_CHECK;

/* node_chain.c */
int hf_node_walk(struct hf_node *node, struct node_agent *a, const Holdfast__V1__Task *task,
                 struct hf_intent *ret);
/* Whether files of that root can be read here; NULL: everybody can, and of one that is lost
 * nobody will. */
bool hf_node_has_root(const struct hf_node *node, const Holdfast__V1__Root *root);
const Holdfast__V1__Checkpoint *hf_node_find_entry(const struct node_agent *a, int64_t seq);
void hf_node_take_recovery(struct node_agent *a, const struct hf_event_answer *answer);
int hf_node_take_entries(struct node_agent *a, struct hf_event_answer *answer) HF_MUST_CHECK;
int hf_node_chain_answer(const struct hf_node *node, struct node_agent *a,
                         struct hf_event_answer *answer) HF_MUST_CHECK;
void hf_node_chain_verified(struct node_agent *a, int err);
int hf_node_restore(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                    struct hf_intent *ret);
void hf_node_restore_verified(struct node_agent *a, int err);

/* node_fence.c */
void hf_node_on_lease(struct hf_node *node, const struct hf_event_lease *lease);
void hf_node_on_reset(struct hf_node *node);
void hf_node_void_lease(struct hf_node *node);
/* Something was read at that revision, which is never older than what was committed before: one
 * below the life that we know of is of a history without it. */
void hf_node_on_read(struct hf_node *node, struct node_agent *a, int64_t revision);
void hf_node_on_live(struct hf_node *node, struct node_agent *a, int64_t was);
void hf_node_on_host_live(struct hf_node *node, int64_t was);
bool hf_node_must_freeze(const struct hf_node *node, const struct node_agent *a);
void hf_node_on_registered(struct node_agent *a, int64_t create_rev, int64_t lease,
                           int32_t generation);
int hf_node_recognise(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_freeze(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_rejoin(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);

/* node_adopt.c */
struct node_owned *hf_node_find_owned(const struct node_agent *a, const char *task);
int hf_node_add_owned(struct node_agent *a, const char *task) HF_MUST_CHECK;
void hf_node_drop_owned(struct node_agent *a, const char *task);
/* Likewise of one that it really had. Nothing that is mirrored tells when a restored etcd gives
 * such a task back to it, so the last of them are looked at again. */
void hf_node_part_with(struct node_agent *a, const char *task);
void hf_node_forget_parted(struct node_agent *a);
/* What it owns has to be read anew. */
void hf_node_unsettle(struct node_agent *a);
int hf_node_settle(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
void hf_node_on_adopted(struct node_agent *a, const struct hf_event_outcome *outcome);
int hf_node_settle_answer(struct node_agent *a, struct hf_event_answer *answer) HF_MUST_CHECK;

/* node_end.c */
void hf_node_forget_process(struct node_agent *a);
int hf_node_keep(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_on_process(struct hf_node *node, const struct hf_event_process *news) HF_MUST_CHECK;
int hf_node_write_end(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_reap(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
void hf_node_on_end_written(struct node_agent *a, const struct hf_event_outcome *outcome);

/* node_ask.c */
void hf_node_free_ask(struct node_ask *ask);
void hf_node_answer(struct node_ask *ask, int err, const char *fmt, ...) HF_PRINTF(3, 4);
void hf_node_grant(struct node_ask *ask);
void hf_node_refuse_asks(struct node_agent *a, int err, const char *text);
/* What was read for them is not true any more. */
void hf_node_doubt_asks(struct node_agent *a);
int hf_node_on_ask(struct hf_node *node, const struct hf_event_ask *event) HF_MUST_CHECK;
int hf_node_reply(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_reply_orphan(struct hf_node *node, struct hf_intent *ret);
int hf_node_serve(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
int hf_node_ask_read(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                     const char *task, struct hf_intent *ret);
int hf_node_ask_send(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                     const char *task, struct hf_intent *ret);
int hf_node_ask_answer(struct node_agent *a, struct hf_event_answer *answer) HF_MUST_CHECK;
void hf_node_ask_outcome(struct node_agent *a, const struct hf_event_outcome *outcome);

/* node_task.c */
void hf_node_answer_read(struct node_ask *ask);
bool hf_node_is_written(const struct node_ask *ask);
int hf_node_work(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                 struct hf_intent *ret);
int hf_node_submit(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                   struct hf_intent *ret);
void hf_node_ask_done(struct node_agent *a, struct node_ask *ask);

/* node_claim.c */
size_t hf_node_count_claimable(const struct hf_node *node, const struct node_agent *a);
int hf_node_claim(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                  struct hf_intent *ret);
void hf_node_ask_again(struct node_agent *a, struct node_ask *ask, bool unknown);

/* node_report.c */
/* It said something, now. */
void hf_node_note_word(const struct hf_node *node, struct node_agent *a);
/* It answered what it was asked, now, if it was asked something that had reached it. */
void hf_node_note_answer(const struct hf_node *node, struct node_agent *a);
/* What is known of the same inquiry stays; another one replaces it. */
void hf_node_take_receipt(struct node_agent *a, const struct hf_receipt *receipt);
/* Takes what it says of itself from the ask. */
void hf_node_take_report(const struct hf_node *node, struct node_agent *a,
                         struct node_ask *ask);
/* Before it is registered anew: what an earlier link wrote of it holds in that life, too. */
int hf_node_keep_words(struct node_agent *a) HF_MUST_CHECK;
/* What it was asked and, as far as we know, did not answer yet; NULL: nothing. */
const Holdfast__V1__Health__Inquiry *hf_node_find_inquiry(const struct node_agent *a);
int hf_node_write_report(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
void hf_node_on_reported(struct hf_node *node, struct node_agent *a,
                         const struct hf_event_outcome *outcome);

/* node_view.c */
/* With many agents whole kinds are mirrored: another one changes nothing. */
bool hf_node_ranges_are_whole(const struct hf_node *node);

#endif
