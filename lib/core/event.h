/* event.h - everything that can happen to a decider (the controller's engine, an agentd's
 * node).
 *
 * A decider is pure: it takes one event at a time, with the time at which it happened, and is
 * then asked for intents (core/intent.h). What a mirror delivers, what became of earlier
 * intents, the lease, the keeper's and the agents' words, and time itself: nothing else. */
#ifndef HF_CORE_EVENT_H
#define HF_CORE_EVENT_H

#include "core/fleet.h"
#include "core/lease.h"

enum hf_event_kind {
    /* For every decider. */
    HF_EVENT_TIME,    /* nothing but time has passed */
    HF_EVENT_CHANGE,  /* change: a key was put or deleted, as the mirror tells it */
    HF_EVENT_BAD,     /* bad: a key holds what cannot be read; it is set aside, not forgotten */
    HF_EVENT_SYNCED,  /* revision: everything up to it was told; may come after every batch */
    HF_EVENT_FORGET,  /* all that was told is void; it will be told again (no memory, say) */
    HF_EVENT_RESET,   /* likewise, because etcd's history went back */
    HF_EVENT_OUTCOME, /* outcome: of an intent to write */
    HF_EVENT_CLUSTER, /* cluster: how etcd itself is */

    /* For the controller. */
    HF_EVENT_TERM, /* term: that we lead in; lease 0: we do not lead */

    /* For an agentd. */
    HF_EVENT_LEASE,    /* lease */
    HF_EVENT_ANSWER,   /* answer: to an intent to read */
    HF_EVENT_VERIFIED, /* verified: whether a checkpoint's body is what its entry says */
    HF_EVENT_PROCESS,  /* process: news of the keeper */
    HF_EVENT_ASK,      /* ask: an agent wants something */
};

/* What became of an intent to write. */
enum hf_outcome {
    HF_OUTCOME_DONE,    /* at `revision` */
    HF_OUTCOME_REFUSED, /* a guard did not hold at `revision`: wait for that, decide anew */
    HF_OUTCOME_UNKNOWN, /* it may have happened, or may still */
    HF_OUTCOME_FAILED,  /* it did not happen, and will not */
};

struct hf_event_outcome {
    uint64_t token; /* of the intent */
    enum hf_outcome outcome;
    int64_t revision; /* of the answer; 0 without one */
    int err;          /* of UNKNOWN and FAILED, for the reason */
};

struct hf_event_bad {
    struct hf_key key; /* kind HF_KEY_KINDS when not even the key makes sense */
    struct hf_seen seen;
    const char *text; /* of the key, without its prefix */
    const char *why;  /* a sentence */
};

struct hf_event_cluster {
    uint64_t raft_term; /* of an answer; 0: not known */
    bool no_space;
    bool corrupt; /* its members do not have the same data: nothing that it says can be trusted
                   */
    bool agrees;  /* its members were asked, and agree on leader and revision */
};

/* The lease that everything of an agentd hangs on, as io/session shows it. */
struct hf_event_lease {
    enum hf_lease_state state;
    bool frozen;   /* what runs must stand still */
    int64_t lease; /* 0 while there is none */
    hf_ms ttl;     /* as granted */
    hf_ms proven_until;
};

/* Everything that was read; `more` on all parts but the last. */
struct hf_event_answer {
    uint64_t token;
    int err;                       /* HF_OK: it was read, as of `revision` */
    int64_t revision;              /* 0: of no revision in particular */
    struct hf_fleet_change *found; /* the decider takes the records that it keeps */
    size_t found_count;
    bool more;
};

/* HF_OK: it is valid. HF_ENOENT, HF_ECORRUPT: it is not, and never will be. Anything else: that
 * could not be found out now. */
struct hf_event_verified {
    uint64_t token;
    int err;
};

enum hf_process_news {
    HF_PROCESS_HELD,       /* made, and held before its program begins */
    HF_PROCESS_FAILED,     /* could not be made; why in `text` */
    HF_PROCESS_READY,      /* it said so, or used its socket */
    HF_PROCESS_ENDED,      /* the whole tree is gone: kind, status, signal, evidence */
    HF_PROCESS_FROZEN,     /* stands still, as was asked */
    HF_PROCESS_THAWED,     /* runs again, as was asked */
    HF_PROCESS_SUSPECT,    /* something is missing that it promised: suspicion */
    HF_PROCESS_CLEARED,    /* nothing is, any more */
    HF_PROCESS_UNWELL,     /* alive, answers nothing, and is to be ended: suspicion */
    HF_PROCESS_UNKILLABLE, /* survived SIGKILL */
    HF_PROCESS_NUDGED,     /* what it was asked has reached it, or was read: receipt */
    HF_PROCESS_EXTENDED,   /* asked to end, it was given `more` time from now */
};

#define HF_RECEIPT_ID 64 /* bytes of an inquiry's id, with its NUL */

/* What became of an inquiry on its way to the process. A plain value. */
struct hf_receipt {
    char id[HF_RECEIPT_ID]; /* of the inquiry; "": there was none */
    char by[16];            /* the way that was first: "events", "stdin", "hook" */
    hf_ms delivered_wall;   /* 0: it was not, yet */
    hf_ms read_wall;        /* likewise */
};

struct hf_event_process {
    const char *agent;
    const char *instance_id; /* of the process */
    enum hf_process_news news;
    int32_t pid;
    int64_t start_time;
    hf_ms ping; /* of HELD: how often it is asked once it answers; 0: as ever */
    Holdfast__V1__Exit__Kind kind; /* of ENDED, as far as the keeper can tell */
    int32_t status;
    int32_t signal;
    bool core;
    hf_ms more;                                       /* of EXTENDED */
    const char *text;                                 /* evidence, a sentence; may be NULL */
    const Holdfast__V1__Report__Suspicion *suspicion; /* of SUSPECT and UNWELL; never NULL */
    const struct hf_receipt *receipt;                 /* of NUDGED; never NULL */
};

enum hf_ask_kind {
    HF_ASK_SELF,   /* nothing: only what waits for it */
    HF_ASK_REPORT, /* report: a heartbeat, an activity or an announced state, as it shall be */
    HF_ASK_CLAIM,  /* until: how long it waits for one */
    HF_ASK_SUBMIT, /* next_task, pending or queued; made up where it has no id */
    HF_ASK_START,
    HF_ASK_PROGRESS,   /* report: its progress counts */
    HF_ASK_COMPLETE,   /* text: result */
    HF_ASK_FAIL,       /* text: reason */
    HF_ASK_RELEASE,    /* text: reason */
    HF_ASK_CHECKPOINT, /* checkpoint: the entry; seq and parent are filled in */
    HF_ASK_RESTORE,    /* the newest checkpoint of the task that can be trusted, if any */
    HF_ASK_LEAVE,      /* text: reason */
};

/* An agent's request; its reply is an intent with the same token. */
struct hf_event_ask {
    uint64_t token;
    enum hf_ask_kind kind;
    const char *agent;
    const char *instance_id; /* of the process that asks */
    const char *task;        /* where it is about one */
    const char *text;
    hf_ms until;
    const Holdfast__V1__Report *report;
    bool beats;  /* of REPORT: it says that it lives, and will again; */
    bool speaks; /* it says more than that, even if in the same words as before */
    const Holdfast__V1__Task *next_task;
    const Holdfast__V1__Checkpoint *checkpoint;
    struct hf_bytes
        body; /* of CHECKPOINT: what goes into etcd with the entry, if data is set */
};

struct hf_event {
    enum hf_event_kind kind;
    union {
        /* On success the record belongs to the decider. A deletion has its revision in
         * seen.mod_rev. What one Txn did is told without a pause, so whoever is asked for
         * intents after a change of some revision takes that revision for told. */
        struct hf_fleet_change change;
        struct hf_event_bad bad;
        int64_t revision;
        struct hf_event_outcome outcome;
        struct hf_event_cluster cluster;
        struct hf_term term;
        struct hf_event_lease lease;
        struct hf_event_answer answer;
        struct hf_event_verified verified;
        struct hf_event_process process;
        struct hf_event_ask ask;
    };
};

#endif
