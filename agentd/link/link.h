/* link.h - the link: the half of agentd that talks to etcd and to the agents.
 *
 *     link.c      life: what it is made of, its lease, its end
 *     agents.c    those that it has heard of, and those that it is to run
 *     process.c   between the node and the keeper: intents out, news in
 *     make.c      how one is made: command, environment, token
 *     evidence.c  how the processes are: heard, asked, judged
 *     nudge.c     what they are asked: by which ways it reaches them, and the receipts
 *     ask.c       between the node and the agents: what they ask for, and the answers
 *     remember.c  what the keeper holds for the next link
 *     leave.c     what is written when an agentd goes for good
 *
 * One loop, one thread. lib/core/node decides, lib/io/runner carries out what is etcd's; the
 * rest is done here. Nothing of it must outlive the process: what the next link needs, the
 * keeper holds. */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include <uv.h>

#include "agentd/link/bucket.h"
#include "agentd/link/channel.h"
#include "agentd/link/evidence.h"
#include "agentd/link/judged.h"
#include "agentd/link/kept.h"
#include "agentd/link/memo.h"
#include "agentd/link/nudge.h"
#include "agentd/link/said.h"
#include "agentd/link/settings.h"
#include "agentd/link/store.h"
#include "core/node.h"
#include "io/backend_etcd.h"
#include "io/runner.h"

#define LINK_TOKEN_BYTES 33   /* 32 hexadecimal digits and the NUL */
#define LINK_WRITE_MS    8000 /* for the ends of agents to be written, when agentd ends */

struct link_api;
struct link_sweep;
struct link_call;
struct link_agent;
struct leave;

/* A process, as the keeper last told of it. */
struct link_process {
    struct link_process *next;
    struct link_agent *agent;
    struct agentd_who who;
    struct agentd_incarnation incarnation; /* as the keeper remembers it */
    enum agentd_state state;
    int32_t pid;
    uint64_t start_time;
    int32_t code;     /* of ENDED: as a shell would say it */
    unsigned holders; /* calls that know it */
    bool freed;       /* it goes with the last of them */
    bool begun;       /* it was let go */
    bool gone;   /* nothing of it runs any more, though the keeper may not have done with it */
    bool spoken; /* it has asked something, so its start was none that failed */
    bool told_held, told_frozen, told_stuck, told_ended;
    bool is_orphan;    /* made for a link before this one */
    bool is_spare;     /* as well, and held: whether it is needed is for the node to say */
    bool discarded;    /* it was told to go */
    bool unknown;      /* the keeper never had it */
    bool recalled;     /* what an earlier link wrote of what it said is part of `said` */
    bool report_waits; /* for that */
    bool leaving;      /* it said goodbye; why is in leave_text */
    struct agentd_exit exit;
    Holdfast__V1__Spec *spec; /* that it was made of; NULL: nobody knows any more */
    bool has_user;            /* it is known as whom it was made: */
    uid_t uid;
    gid_t gid;
    hf_ms frozen_at; /* 0: it runs */
    char token[LINK_TOKEN_BYTES];
    struct link_bucket requests;
    struct link_said said;
    int64_t born; /* create revision of its first life */
    char leave_text[LINK_SAID_TEXT];
    struct link_call *leavers;     /* are answered when the keeper remembers it */
    uint64_t told, remembered;     /* how often the keeper was told what to remember, and did */
    struct link_call *listeners;   /* to what it is told by GET /v1/events */
    char told_task[HF_NAME_SIZE];  /* the last that they were told waits; "": none does */
    char told_nudge[HF_NAME_SIZE]; /* the last inquiry that they were told of; "": none */
    uint64_t pings, pongs;         /* the newest that was sent, and that was answered */
    struct link_judged judged;
    struct link_evidence evidence;
    struct link_nudge nudge;
    struct link_resume *resume; /* what it goes on from, until it adds to it; may be NULL */
};

struct link_agent {
    struct link_agent *next;
    struct link *link;
    char name[AGENTD_NAME_BYTES];
    Holdfast__V1__Spec
        *spec; /* configured, or that its last process was made of; may be NULL */
    bool configured;
    bool started;                   /* this agentd has let a process of it go */
    bool spec_written;              /* ... or has seen its spec in etcd */
    bool ended;                     /* ... and the last one's end is written */
    int32_t code;                   /* of that end */
    struct link_process *processes; /* newest first */
    struct link_api *api;
    unsigned loans;   /* files that are read for it, ... */
    unsigned gets;    /* ... checkpoints that it is given, ... */
    size_t put_bytes; /* ... and bytes of others that are on their way */
    char waits[80];   /* why it was not started yet, as the log has it */
};

/* An ask that is not answered yet. */
struct link_ask;
typedef void (*link_reply_fn)(const struct hf_intent_reply *reply, void *arg);

struct link {
    const struct link_settings *settings;
    struct hf_config *cfg;
    uv_loop_t loop;
    uv_prepare_t prepare;  /* sees that something changed, ... */
    uv_timer_t look_timer; /* ... and looks at what a moment later, once for all of it */
    uv_timer_t timer;      /* of the end */
    struct link_watch watch;
    struct link_nudges nudges;
    struct link_channel *channel;
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend_etcd;
    struct hf_backend backend;
    struct hf_node *node;
    struct hf_decider inner;
    struct hf_runner *runner;
    struct link_store *store;
    struct link_sweep *sweep, *object_sweep;
    struct link_resume *verified;  /* for processes that are about to begin, newest first */
    struct link_verify *verifies;  /* answers that wait until the runner may be fed */
    struct link_verdict *verdicts; /* on bodies that take long to read, newest first */
    struct link_agent *agents;
    struct link_ask *asks;
    struct leave *burial;     /* of what an agentd before this one left; or NULL */
    struct link_later *later; /* news that must wait until the runner may be fed */
    uint64_t last_token;
    enum hf_lease_state lease_state;
    bool was_ready, dirty, memo_due;
    bool asks_successor; /* which version it speaks */

    int stop_signal; /* that the agents are asked to end with */
    bool stopping;   /* nothing begins any more, and etcd is told that the host leaves */
    bool leaving;    /* it was told, as far as that is possible, and the agents are to end */
    bool over;       /* nothing of ours is left */
    int code;        /* that agentd ends with */
    struct hf_error why;
};

/* Runs until it is over. Returns the exit code of this process. */
int link_run(const struct link_settings *settings, struct hf_error *err);

/* For whoever runs its loop: makes all of it, where a failure leaves its sentence in `why` and
 * what was opened to the end of the process; and lets go of what its loop does not hold, once
 * that has come to its end. Not 0: something is still open. */
int link_open(struct link *link, const struct link_settings *settings) HF_MUST_CHECK;
int link_done(struct link *link);

/* Ends everything in order, and agentd with that code. */
void link_stop(struct link *link, int code);

static inline hf_ms link_now(const struct link *link)
{
    return hf_backend_now(&link->backend);
}

/* agents.c */
/* The agent of that name; made when there is none. NULL: no memory. */
struct link_agent *link_find_agent(struct link *link, const char *name);
struct link_agent *link_need_agent(struct link *link, const char *name);
/* Those of the settings. */
int link_agents_configure(struct link *link) HF_MUST_CHECK;
void link_agents_done(struct link *link);

/* make.c */
/* HF_OK also where it is not to be made. */
int link_process_make(struct link *link, const struct hf_intent_process *act,
                      struct hf_error *err) HF_MUST_CHECK;

/* process.c */
void link_process_act(struct link *link, const struct hf_intent_process *act);
void link_process_on_agent(const struct agentd_agent *told, const char *blob, void *arg);
void link_process_on_refused(uint16_t type, const struct agentd_who *who,
                             const struct agentd_reply *reply, void *arg);
void link_process_deliver(struct link *link); /* what waits to be told to the node */
struct hf_node_held link_process_get_held(const struct link_agent *agent);
/* What the keeper is to know of lives that changed, and to forget of what is written. */
void link_process_settle(struct link *link, struct link_agent *agent);
bool link_process_has_ended(
    const struct link_agent *agent); /* one of them, not forgotten yet */
void link_process_end_all(struct link *link);
/* An agentd before this one had it; the keeper has ended it. */
bool link_process_is_abandoned(const struct link_process *process);
bool link_process_are_all_gone(const struct link *link); /* and their ends written */
struct link_process *link_process_find(struct link *link, const struct agentd_who *who);
int64_t link_process_incarnation(const struct link_process *process); /* the fencing token */
struct link_process *link_process_add(struct link_agent *agent, const char *instance);
void link_process_free(struct link_process *process);
void link_process_let(struct link_process *process); /* of a call that knew it */
/* SUSPECT, CLEARED or UNWELL. False: the node could not be told. */
bool link_process_tell_suspicion(struct link_process *process, enum hf_process_news news,
                                 const Holdfast__V1__Report__Suspicion *suspicion);
/* False: the node could not be told. */
bool link_process_tell_receipt(struct link_process *process, const struct hf_receipt *receipt);
/* It has asked something, whatever that was: from now on no end of it is one of its start. */
void link_process_speaks(struct link_process *process);
/* The one that the node follows, or NULL. */
struct link_process *link_process_get_current(const struct link_agent *agent);
/* What it was made of, and as whom it runs, whatever the settings say by now; as far as that is
 * known. No user: it runs as we do. `room` is for the answer. */
const Holdfast__V1__Spec *link_process_get_spec(const struct link_process *process);
const struct link_user *link_process_get_user(const struct link_process *process,
                                              struct link_user *room);

/* remember.c */
/* Has the keeper remember what the next link has to know of the process; whoever leaves is
 * answered then. False: no memory. */
bool link_remember(struct link_process *process);
void link_remember_on_reply(const struct agentd_who *who, const struct agentd_reply *reply,
                            void *arg);
/* What a link before this one had remembered. */
void link_remember_read(struct link_process *process, const char *blob);
void link_memo_write(struct link *link); /* the same for all agents: memo.h */

/* ask.c */
int link_ask(struct link_process *process, struct hf_event_ask *ask, link_reply_fn fn,
             void *arg, struct link_ask **ret_ask) HF_MUST_CHECK;
/* What the process has said of itself becomes its report, as soon as it is known what it said
 * to links before this one. */
int link_ask_report(struct link_process *process, link_reply_fn fn, void *arg,
                    struct link_ask **ret_ask) HF_MUST_CHECK;
void link_ask_recall(struct link_process *process); /* it may be known now; NULL is fine */
void link_ask_cancel(struct link *link, struct link_ask *ask); /* its answer is not wanted */
void link_ask_on_reply(struct link *link, uint64_t token, const struct hf_intent_reply *reply);
void link_ask_done(struct link *link);

/* leave.c */
typedef void (*link_left_fn)(struct link *link);
/* Writes that the host has left, if that is possible; `fn` comes in any case, later. */
void link_leave(struct link *link, link_left_fn fn);
/* Writes the ends of what an agentd that crashed here left behind, and revokes its lease;
 * likewise, and perhaps at once. */
void link_bury_lost(struct link *link, link_left_fn fn);
void link_bury_cancel(struct link *link); /* which may be under way; `fn` does not come */

/* certificate.c - what is found when etcd's credential files are looked at, for the log. */
void link_certificate_on_renewed(int err, const char *message, void *arg);

#endif
